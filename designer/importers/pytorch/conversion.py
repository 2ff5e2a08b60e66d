"""The state of an import: which layer makes which value of the trace, and which values are known without running."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designer.graph.model import Layer, Source
from designer.graph.types import BATCH, DataType, Dim, Symbol, TensorType
from designer.importers.builder import GraphBuilder
from designer.importers.report import NodeOutcome, Outcome
from designer.importers.templates import Scope
from designer.operators.params import Value as Param

if TYPE_CHECKING:
    import torch

Array = NDArray[Any]
MAX_FOLDED = 2**26  # elements of a constant
INLINE = 16  # elements up to which float32 constants are parameters instead of weights
MAX_TEXT = 900_000  # characters of the numbers of a constant


class UnsupportedError(Exception):
    """Why a node has no layers of the library."""


class BatchError(UnsupportedError):
    """The node needs a batch of a fixed size."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A dimension of size `before` x N x `after`: the batch merged with its neighbors. Documents keep these as axes."""

    before: int = 1
    after: int = 1

    def axes(self) -> tuple[Dim, ...]:
        """The axes of the tensor in the document."""
        before = (self.before,) if self.before > 1 else ()
        return (*before, BATCH, *((self.after,) if self.after > 1 else ()))


Size = int | Merged
Traced = tuple[tuple[int | None, ...], DataType | None]  # shape, None where the batch is, and element type


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the trace: its shape there, and the tensor of the document, whose axes are those of `shape` in order."""

    source: Source
    shape: tuple[Size, ...]
    dtype: DataType = DataType.FLOAT32

    @property
    def rank(self) -> int:
        return len(self.shape)

    def traced(self) -> Traced:
        """Its shape and element type in the trace."""
        return tuple(None if isinstance(size, Merged) else size for size in self.shape), self.dtype

    @property
    def plain(self) -> bool:
        """Whether the document has the same axes."""
        return all(not isinstance(size, Merged) or size == Merged() for size in self.shape)

    def axis(self, axis: int) -> int:
        """The axis of the document for an axis of the trace. Raises BatchError for one that contains the batch."""
        axis %= max(self.rank, 1)
        if self.shape and isinstance(self.shape[axis], Merged):
            raise BatchError("it works along the batch")
        return len(axes_of(self.shape[:axis]))

    def place(self, axis: int) -> int:
        """An axis of the trace counted from the front. Raises UnsupportedError for a tensor without axes."""
        if not self.shape:
            raise UnsupportedError("its input has no axes")
        return axis % self.rank

    def size(self, axis: int) -> int:
        """The size of an axis. Raises BatchError for the batch."""
        found = self.shape[axis]
        if isinstance(found, Merged):
            raise BatchError("it needs the size of the batch")
        return found


@dataclass(frozen=True, slots=True)
class Constant:
    """A tensor that does not depend on the inputs. `name` is its key in the state dict where it is one unchanged."""

    tensor: torch.Tensor
    name: str = ""
    learned: bool = False

    def traced(self) -> Traced:
        """Its shape and element type in the trace."""
        return tuple(map(int, self.tensor.shape)), data_type(str(self.tensor.dtype))

    def array(self) -> Array:
        return np.asarray(self.tensor.detach().cpu().contiguous().numpy())


@dataclass(frozen=True, slots=True)
class Repeated:
    """A constant repeated along the batch, by default its first axis."""

    constant: Constant
    axis: int = 0

    def traced(self) -> Traced:
        """Its shape and element type in the trace."""
        shape, dtype = self.constant.traced()
        return (*shape[: self.axis], None, *shape[self.axis + 1 :]), dtype


@dataclass(frozen=True, slots=True)
class Maxima:
    """Where the largest values of the windows of `image` are. Only an unpooling reads it: no layer holds the places."""

    image: Value
    window: tuple[int, int]  # height, width
    shape: tuple[Size, ...]

    def traced(self) -> Traced:
        """Its shape and element type in the trace."""
        return Value(self.image.source, self.shape, DataType.INT64).traced()


def is_empty(item: Any) -> bool:
    """Whether it is a tensor without values."""
    return isinstance(item, Value | Constant | Repeated) and 0 in item.traced()[0]


def without_values(shape: Sequence[Size | None], dtype: DataType | None) -> Constant | Repeated | None:
    """A tensor of size 0, which is a constant, whatever it is computed from; None for others. No layer can hold it."""
    import torch

    batch = [axis for axis, size in enumerate(shape) if size is None]
    sizes = [1 if size is None else size for size in shape if not isinstance(size, Merged)]
    if 0 not in shape or dtype is None or len(batch) > 1 or len(sizes) < len(shape):
        return None
    made = Constant(torch.empty(sizes, dtype=getattr(torch, dtype.value)))
    return Repeated(made, batch[0]) if batch else made


def axes_of(shape: Sequence[Size]) -> tuple[Dim, ...]:
    """The axes of a tensor of the document."""
    found: list[Dim] = []
    for size in shape:
        found.extend(size.axes() if isinstance(size, Merged) else (size,))
    return tuple(found)


@dataclass(frozen=True)
class TraceNode:
    """A node of the trace: its operator (`conv2d`, in-place forms without the underscore), arguments and place in the code.

    `shapes` are those of its results and `label` is a name for its layer: the path of the module, if that makes only this node.
    Nodes of one `statement` of generated code are parts of one layer; `attached`: it is the activation of the layer before it.
    """

    name: str
    op: str
    arguments: Mapping[str, Any]
    shapes: tuple[tuple[tuple[Size | None, ...], DataType | None], ...]
    label: str = ""
    scope: Scope = ()
    line: str = ""
    text: str = ""  # the call as Python, for tensors x1, x2, ...; empty if it cannot be written
    statement: Hashable = None
    attached: bool = False
    several: bool = False  # the result is a list of tensors, perhaps of only one

    def get(self, name: str, default: Any = None) -> Any:
        found = self.arguments.get(name)
        return default if found is None else found


@dataclass
class Conversion:
    """What is known while nodes are converted in their order."""

    builder: GraphBuilder
    values: dict[str, Any] = field(default_factory=dict)  # node -> Value, Constant, or a tuple of these
    outcomes: list[NodeOutcome] = field(default_factory=list)
    made: list[str] = field(default_factory=list)  # layers of the current node
    current: TraceNode | None = None
    batch: Value | None = None  # an input that has the batch
    _constants: dict[int, tuple[Any, Value]] = field(default_factory=dict)
    _statements: dict[str, Hashable] = field(default_factory=dict)  # layer -> statement of generated code

    # --- values ----------------------------------------------------------------------------------------------------

    def value(self, item: Any) -> Value:
        """An argument as a tensor of the document; constants become layers."""
        if isinstance(item, Value):
            return item
        if isinstance(item, Constant):
            return self._constant(item)
        if isinstance(item, Repeated):
            if item.axis:
                raise BatchError("a constant has the batch on another axis than the first")
            return self.repeated(self._constant(item.constant))
        if isinstance(item, Maxima):
            raise UnsupportedError("only an unpooling reads the places of a pooling")
        raise UnsupportedError(f"an argument is {type(item).__name__}, not a tensor")

    def converted(self, node: TraceNode) -> Value:
        """The tensor `self` of a call with the element type that its argument `dtype` asks for."""
        x = self.value(node.get("self"))
        return self.typed(x, data_type(str(node.get("dtype", x.dtype.value))))

    def typed(self, item: Any, dtype: DataType | None) -> Value:
        """A tensor with another element type; None is one that layers cannot have."""
        x = self.value(item.constant if isinstance(item, Repeated) else item)
        if dtype is None:
            raise UnsupportedError("no layer can have its element type")
        return x if x.dtype is dtype else self.layer("cast", [x], {"target": dtype.value}, shape=x.shape)

    def plain(self, item: Any) -> Value:
        """The same for operators that need the axes of the trace. Raises BatchError if the batch is merged with others."""
        found = self.value(item)
        if not found.plain:
            raise BatchError("the batch is merged with other axes")
        return found

    def _constant(self, item: Constant) -> Value:
        found = self._constants.get(id(item.tensor))
        if found is not None:
            return found[1]
        array = item.array()
        made = Value(self._constant_layer(item, array), tuple(map(int, array.shape)), data_type(str(array.dtype)))
        self._constants[id(item.tensor)] = (item.tensor, made)
        return made

    def _constant_layer(self, item: Constant, array: Array) -> Source:
        kind = data_type(str(array.dtype))
        if 0 in array.shape:
            raise UnsupportedError("a constant is an empty tensor")
        hint = item.name or "constant"
        if item.learned and kind is DataType.FLOAT32 and array.shape:
            made = self.add_raw("parameter", (), {"shape": array.shape}, weights={"value": array}, name=hint)
        else:
            params: dict[str, Param] = {"shape": array.shape, "dtype": kind.value}
            if kind is DataType.FLOAT32 and array.size > INLINE:
                params["source"] = "weights"
                made = self.add_raw("tensor_constant", (), params, weights={"value": array}, name=hint)
            else:
                params["numbers"] = _numbers(array)
                return self.add_raw("tensor_constant", (), params, name=hint)[0]
        if item.name:
            self.builder.name_weights(made[0].layer, {"value": item.name})
        return made[0]

    # --- layers ----------------------------------------------------------------------------------------------------

    def add_raw(
        self,
        type: str,
        inputs: Sequence[Source],
        params: Mapping[str, Param] | None = None,
        *,
        weights: Mapping[str, Array] | None = None,
        origins: Sequence[str] = (),
        activation: tuple[str, Mapping[str, Param]] | None = None,
        name: str = "",
    ) -> tuple[Source, ...]:
        """Add a layer for the current node."""
        node = self.current
        made = self.builder.add(
            type,
            inputs,
            params,
            name=name or (node.label if node is not None else type),
            weights=weights,
            origins=origins,
            activation=activation,
            scope=node.scope if node is not None else (),
        )
        self.made.append(made[0].layer)
        if node is not None and node.statement is not None:
            self._statements[made[0].layer] = node.statement
        return made

    def layer(
        self,
        type: str,
        inputs: Sequence[Any],
        params: Mapping[str, Param] | None = None,
        *,
        weights: Mapping[str, Constant] | None = None,
        activation: tuple[str, Mapping[str, Param]] | None = None,
        shape: Sequence[Size] | None = None,
    ) -> Value:
        """Add a layer and return its first output: of `shape`, or with the axes of the document."""
        sources = [self.value(item).source for item in inputs]
        tensors = dict(weights or {})
        made = self.add_raw(
            type,
            sources,
            params,
            weights={key: constant.array() for key, constant in tensors.items()},
            origins=[constant.name for constant in tensors.values()],
            activation=activation,
        )
        return self.wrap(made[0], shape)

    def outputs(self, layer: str) -> tuple[Source, ...]:
        """All outputs of a layer."""
        return self.builder.outputs(layer)

    def wrap(self, source: Source, shape: Sequence[Size] | None = None) -> Value:
        """A tensor of the document as a value of `shape`; by default each axis is one of the trace."""
        kind = self.builder.types[source]
        if shape is None:
            shape = [Merged() if isinstance(dim, Symbol) else dim for dim in kind.shape]
        if axes_of(shape) != kind.shape:
            raise UnsupportedError(f"its result is {kind}, but the module makes {axes_of(shape)}")
        return Value(source, tuple(shape), kind.dtype)

    def activate(
        self,
        item: Any,
        type: str,
        params: Mapping[str, Param] | None = None,
        *,
        weights: Mapping[str, Constant] | None = None,
        shape: Sequence[Size] | None = None,
    ) -> Value:
        """A layer that is only an activation, or the activation of the layer before if the code says so."""
        x = self.value(item)
        shape = x.shape if shape is None else shape
        tensors = dict(weights or {})
        if self.current is not None and self.current.attached and self._same_statement(x.source):
            arrays = {key: constant.array() for key, constant in tensors.items()}
            names = [constant.name for constant in tensors.values()]
            if self.builder.attach(x.source, (type, params or {}), arrays, names):
                self.made.append(x.source.layer)
                return self.wrap(x.source, shape)
        return self.layer("activation", [x], activation=(type, params or {}), weights=tensors, shape=shape)

    def _same_statement(self, source: Source) -> bool:
        statement = self.current.statement if self.current is not None else None
        return statement is not None and self._statements.get(source.layer) == statement

    def part(self, item: Any, type: str) -> Layer | None:
        """The last layer, if it makes this value, is of a type, and is a part of the current statement of generated code."""
        if not isinstance(item, Value) or not self._same_statement(item.source):
            return None
        layer = self.builder.layers[item.source.layer]
        last = next(reversed(self.builder.layers))
        return layer if layer.type == type and layer.name == last and layer.activation is None else None

    def take(self, part: Layer) -> Value:
        """Remove a part, since the layer to come includes what it does; the result is what it reads."""
        self.builder.rollback(self.builder.mark() - 1)
        (source,) = part.inputs
        assert source is not None
        return self.wrap(source)

    def weight(self, item: Any) -> Constant:
        """An argument as a learned tensor, float32. Raises UnsupportedError for values that are computed while running."""
        if not isinstance(item, Constant):
            raise UnsupportedError("a weight is computed while running")
        if str(item.tensor.dtype) != "torch.float32":
            raise UnsupportedError(f"a weight is {item.tensor.dtype}, but weights are float32")
        return item

    def repeated(self, x: Value) -> Value:
        """A tensor of batch 1, repeated along the batch of the network's input."""
        if self.batch is None:
            raise BatchError("no input has a batch")
        shape = (Merged(), *x.shape[1:])
        return self.layer("expand", [x, self.batch], {"shape": (-1,) * x.rank}, shape=shape)

    # --- shapes ----------------------------------------------------------------------------------------------------

    def reshaped(self, item: Any, wanted: Sequence[Size | None]) -> Value:
        """A reshape. Sizes that contain the batch may be None: they follow from what is in front and behind."""
        x = self.value(item)
        place = next((place for place, size in enumerate(x.shape) if isinstance(size, Merged)), None)
        if place is None:
            fixed = tuple(size for size in wanted if isinstance(size, int))
            if len(fixed) != len(wanted):
                raise BatchError("it splits a constant by the batch")
            if fixed == x.shape:
                return x
            return self.layer("reshape", [x], {"shape": fixed, "keep_batch": False}, shape=fixed)
        target = _around_batch(x.shape, wanted)
        if target == x.shape or axes_of(target) == axes_of(x.shape):
            return Value(x.source, target, x.dtype)
        old, new = axes_of(x.shape), axes_of(target)
        here, there = old.index(BATCH), new.index(BATCH)
        made: Value = x
        if here:
            made = self._permuted(made, (here, *(axis for axis in range(len(old)) if axis != here)))
        rest = tuple(dim for dim in new if isinstance(dim, int))
        if not rest:
            raise BatchError("only the batch remains")
        made = self.layer("reshape", [made], {"shape": rest})
        if there:
            made = self._permuted(made, (*range(1, there + 1), 0, *range(there + 1, len(new))))
        return self.wrap(made.source, target)

    def _permuted(self, x: Value, axes: Sequence[int]) -> Value:
        if tuple(axes) == tuple(range(len(axes))):
            return x
        return self.layer("permute", [x], {"axes": tuple(axes)})

    def permuted(self, item: Any, axes: Sequence[int]) -> Value:
        """A permutation of the axes of the trace."""
        x = self.value(item)
        groups = []
        start = 0
        for size in x.shape:
            length = len(size.axes()) if isinstance(size, Merged) else 1
            groups.append(tuple(range(start, start + length)))
            start += length
        order = [x.place(axis) for axis in axes]
        if order == list(range(x.rank)):
            return x
        flat = tuple(axis for place in order for axis in groups[place])
        return self.layer("permute", [x], {"axes": flat}, shape=[x.shape[place] for place in order])

    def forget(self) -> None:
        """Drop what refers to layers that were removed."""
        gone = [key for key, (_, value) in self._constants.items() if value.source.layer not in self.builder.layers]
        for key in gone:
            del self._constants[key]

    def record(self, node: TraceNode, outcome: Outcome, reason: str = "") -> None:
        """Record what became of a node."""
        self.outcomes.append(NodeOutcome(node.name, node.op, outcome, tuple(dict.fromkeys(self.made)), reason))


def _around_batch(shape: Sequence[Size], wanted: Sequence[Size | None]) -> tuple[Size, ...]:
    """`wanted` with the size that contains the batch filled in, so that the values keep their order."""
    place = next(place for place, size in enumerate(shape) if isinstance(size, Merged))
    merged = shape[place]
    assert isinstance(merged, Merged)
    before = prod(size for size in shape[:place] if isinstance(size, int)) * merged.before
    there = [place for place, size in enumerate(wanted) if not isinstance(size, int)]
    if len(there) != 1:
        raise BatchError("it has the batch on several axes")
    in_front = prod(size for size in wanted[: there[0]] if isinstance(size, int))
    behind = prod(size for size in wanted[there[0] + 1 :] if isinstance(size, int))
    after = merged.after * prod(size for size in shape[place + 1 :] if isinstance(size, int))
    if before % in_front or after % behind:
        raise BatchError("it splits the batch")
    return (
        *(size for size in wanted[: there[0]] if isinstance(size, int)),
        Merged(before // in_front, after // behind),
        *(size for size in wanted[there[0] + 1 :] if isinstance(size, int)),
    )


def data_type(name: str) -> DataType:
    """The element type of a layer. Raises UnsupportedError for types that no layer can have."""
    try:
        return DataType(name.removeprefix("torch."))
    except ValueError:
        raise UnsupportedError(f"no layer can have the element type {name}") from None


def _numbers(array: Array) -> str:
    flat = array.reshape(-1)
    same = flat.size > 1 and bool(np.all(flat == flat[0])) and not np.any((flat == 0) & np.signbit(flat.astype(float)))
    if array.dtype.kind == "f":
        texts = [str(value) for value in (flat[:1] if same else flat)]
    else:
        texts = [str(int(value)) for value in (flat[:1] if same else flat)]
    text = ",".join(texts)
    if len(text) > MAX_TEXT:
        raise UnsupportedError(f"a constant has {array.size} elements of type {array.dtype}, too many for a parameter")
    return text


def tensor_type(value: Value) -> TensorType:
    """The type of a value in the document."""
    return TensorType(axes_of(value.shape), value.dtype)
