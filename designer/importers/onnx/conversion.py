"""The state of an import: which layer makes which value, and what is known about values without running anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from re import escape, fullmatch
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from designer.graph.model import Source
from designer.graph.types import DataType, Symbol, TensorType
from designer.importers.builder import GraphBuilder
from designer.importers.onnx.folding import CODES, NotFoldedError, can_fold, fold, is_numeric
from designer.importers.report import NodeOutcome, Outcome
from designer.importers.templates import Scope
from designer.operators.params import Value

Array = NDArray[Any]
MAX_SMALL = 4096  # elements of a value that is folded into a constant where a layer reads it
MAX_TEXT = 900_000  # characters of the numbers of a constant
INLINE = 16  # elements up to which float32 constants are parameters instead of weights


class UnsupportedError(Exception):
    """Why a node has no layers of the library; it becomes opaque."""


class Tensor(NamedTuple):
    """A learned tensor: its values and, where it is one unchanged, the initializer that it comes from."""

    array: Array
    name: str = ""

    def as_array(self, array: Array) -> Tensor:
        """The tensor with other values: transposed or reshaped."""
        return Tensor(array, self.name)


@dataclass(frozen=True)
class OnnxOp:
    """A node of the graph, with attributes as Python values. Inputs that are left out are empty names."""

    name: str
    op_type: str
    domain: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    scope: Scope = ()
    nodes: tuple[Any, ...] = ()  # the nodes of the file that it replaces
    asked: set[str] = field(default_factory=set, compare=False)  # attributes that the converter knows

    def attribute(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        found = self.attributes.get(name)
        return default if found is None else found

    def input(self, index: int) -> str:
        """The name of an input; empty if it is left out."""
        return self.inputs[index] if index < len(self.inputs) else ""


# In inference: learning, the precision of sums, the size of filters that are there, values of a mode that is refused.
_WITHOUT_EFFECT = {
    "consumed_inputs",
    "extrapolation_value",
    "kernel_shape",
    "momentum",
    "saturate",
    "seed",
    "stash_type",
}


def check_attributes(op: OnnxOp) -> None:
    """Raise UnsupportedError if a node has an attribute that its converter does not know, unless it has the default value."""
    from onnx import defs, helper

    for name in op.attributes.keys() - op.asked - _WITHOUT_EFFECT:
        try:
            default = defs.get_schema(op.op_type, op.opset, op.domain).attributes[name].default_value
        except (defs.SchemaError, KeyError):
            default = None
        if (
            default is None
            or not default.name
            or helper.get_attribute_value(default)
            not in (
                op.attributes[name],
                str(op.attributes[name]).encode(),
            )
        ):
            raise UnsupportedError(f"its attribute '{name}' is not supported")


@dataclass
class Conversion:
    """What is known while nodes are converted in topological order."""

    builder: GraphBuilder
    opset: int
    sources: dict[str, Source] = field(default_factory=dict)  # value -> the tensor of the document
    arrays: dict[str, Array] = field(default_factory=dict)  # value -> its numbers, symbols included
    tensors: dict[str, Any] = field(default_factory=dict)  # initializer -> tensor of onnx_ir, read when used
    deferred: dict[str, OnnxOp] = field(default_factory=dict)  # value -> the node that makes it from known values
    embedded: dict[str, OnnxOp] = field(default_factory=dict)  # value that no layer can hold -> its node
    outcomes: dict[int, NodeOutcome] = field(default_factory=dict)  # by identity of the file's node
    current: OnnxOp | None = None
    made: list[str] = field(default_factory=list)  # layers of the current node
    batch: Source | None = None  # an input of the network with a batch of any size
    opened: bool = False  # the batch of an input is 1 in the file, and of any size in the document
    convert_now: Callable[[OnnxOp], None] | None = None
    declared: Mapping[str, TensorType] = field(default_factory=dict)  # the types of values in the file, where complete

    def mark(self) -> tuple[int, int]:
        """The present state, for `rollback`."""
        return self.builder.mark(), len(self.sources)

    def rollback(self, mark: tuple[int, int]) -> None:
        """Undo the conversion of the current node."""
        self.builder.rollback(mark[0])
        while len(self.sources) > mark[1]:
            self.sources.popitem()

    # --- what is known ---------------------------------------------------------------------------------------------

    def known(self, name: str) -> Array | None:
        """The numbers of a value that does not depend on the inputs of the model, symbols included; None if unknown."""
        if name in self.arrays:
            return self.arrays[name]
        if name in self.tensors:
            found = self._read(name)
        elif name in self.deferred:
            op = self.deferred[name]
            values = [self.known(item) if item else None for item in op.inputs]
            if any(value is None and item for value, item in zip(values, op.inputs, strict=True)):
                return None
            try:
                found = fold(op.op_type, op.opset, op.attributes, values)
            except NotFoldedError:
                return None
        else:
            return None
        if found is not None and found.size <= MAX_SMALL:
            self.arrays[name] = found
        return found

    def _read(self, name: str) -> Array | None:
        tensor = self.tensors[name]
        array = tensor.numpy()
        return np.asarray(array) if array.dtype.kind in "fiub" else None

    def constant(self, name: str) -> Array | None:
        """The numbers of a constant; None for other values."""
        found = self.known(name)
        return found if found is not None and is_numeric(found) else None

    def numbers(self, name: str) -> tuple[Any, ...] | None:
        """A known value as a flat tuple of Python numbers."""
        found = self.constant(name)
        return tuple(found.reshape(-1).tolist()) if found is not None else None

    def scalar(self, name: str) -> Any:
        """The number of a constant with one element. Raises UnsupportedError for other values."""
        found = self.constant(name)
        if found is None or found.size != 1:
            raise UnsupportedError(f"'{name}' is not a constant number")
        return found.reshape(-1)[0].item()

    def dims(self, name: str) -> tuple[int | Symbol, ...]:
        """A shape: numbers and symbols. Raises UnsupportedError if it is computed from values."""
        found = self.known(name)
        if found is None:
            raise UnsupportedError(f"the shape '{name}' is computed while running")
        return tuple(item if isinstance(item, Symbol) else int(item) for item in found.reshape(-1))

    def target(self, op: OnnxOp, index: int) -> tuple[int | Symbol, ...]:
        """The shape that input `index` of a node gives to its output; if it is computed while running, the declared one."""
        if self.known(op.input(index)) is None and op.outputs[0] in self.declared:
            return self.declared[op.outputs[0]].shape
        return self.dims(op.input(index))

    def ints(self, name: str) -> tuple[int, ...]:
        """Constant integers. Raises UnsupportedError for other values."""
        found = self.dims(name)
        if any(isinstance(item, Symbol) for item in found):
            raise UnsupportedError(f"'{name}' depends on the batch")
        return tuple(item for item in found if isinstance(item, int))

    def weight(self, name: str) -> Tensor:
        """A constant as a learned tensor, float32. Raises UnsupportedError for values that are computed while running."""
        found = self.constant(name)
        if found is None:
            raise UnsupportedError(f"'{name}' is not a constant")
        if found.dtype != np.float32:
            raise UnsupportedError(f"'{name}' is {found.dtype.name}, but weights are float32")
        return Tensor(found, name if name in self.tensors else "")

    def is_symbolic(self, name: str) -> bool:
        """Whether a value is known but for the batch: part of a shape."""
        found = self.known(name) if name in self.arrays or name in self.deferred else None
        return found is not None and not is_numeric(found)

    def is_constant(self, name: str) -> bool:
        return name in self.tensors or name in self.deferred or (name in self.arrays and is_numeric(self.arrays[name]))

    def type_of(self, name: str) -> TensorType:
        """The type of a value. Raises UnsupportedError if it is unknown."""
        source = self.sources.get(name)
        if source is None and name in self.tensors:
            tensor = self.tensors[name]
            return TensorType(tuple(map(int, tensor.shape)), _dtype(tensor.dtype.name))
        if source is None:
            found = self.known(name)
            if found is None:
                raise UnsupportedError(f"the type of '{name}' is unknown")
            return TensorType(found.shape, DataType(found.dtype.name if is_numeric(found) else "int64"))
        if source not in self.builder.types:
            raise UnsupportedError(f"the type of '{name}' is unknown")
        return self.builder.types[source]

    # --- layers ----------------------------------------------------------------------------------------------------

    def source(self, name: str) -> Source:
        """The tensor of the document with a value; a constant becomes a layer. Raises UnsupportedError if there is none."""
        found = self.sources.get(name)
        if found is not None:
            return found
        if name in self.embedded:
            raise UnsupportedError(f"'{name}' has an unknown shape or a type that no layer can have")
        if self.is_symbolic(name):
            raise UnsupportedError(f"'{name}' depends on the batch")
        if name in self.deferred:
            array = self.constant(name)
            if array is None or array.size > MAX_SMALL:
                self._materialize(self.deferred[name])
                if name not in self.sources:
                    raise UnsupportedError(f"'{name}' is of a type that no layer can have")
                return self.sources[name]
        else:
            array = self.constant(name)
        if array is None:
            raise UnsupportedError(f"'{name}' has symbols or is of a type that no layer can have")
        self.sources[name] = self._constant_layer(name, array)
        return self.sources[name]

    def _materialize(self, op: OnnxOp) -> None:
        """Convert a node whose value is too large to be folded."""
        if self.convert_now is None:
            raise UnsupportedError(f"'{op.name}' is too large to be folded")
        around, made = self.current, self.made
        self.convert_now(op)
        self.current, self.made = around, made

    def _constant_layer(self, name: str, array: Array) -> Source:
        kind = _dtype(array.dtype.name)
        if 0 in array.shape:
            raise UnsupportedError(f"'{name}' is an empty tensor")
        params: dict[str, Value] = {"shape": array.shape, "dtype": kind.value}
        hint = name.rpartition("/")[2] or "constant"
        if kind is DataType.FLOAT32 and array.size > INLINE:
            params["source"] = "weights"
            (made,) = self.builder.add(
                "tensor_constant", (), params, name=hint, weights={"value": array}, scope=self._scope()
            )
            if name in self.tensors:
                self.builder.name_weights(made.layer, {"value": name})
            return made
        flat = array.reshape(-1)
        same = (
            flat.size > 1
            and bool(np.all(flat == flat[0]))
            and not np.any((flat == 0) & np.signbit(flat) if kind.is_float else False)
        )
        params["numbers"] = ",".join(_text(value) for value in (flat[:1] if same else flat))
        if len(str(params["numbers"])) > MAX_TEXT:
            raise UnsupportedError(f"'{name}' has {array.size} elements of type {kind.value}, too many for a parameter")
        return self.builder.add("tensor_constant", (), params, name=hint, scope=self._scope())[0]

    def _scope(self) -> Scope:
        return self.current.scope if self.current is not None else ()

    def add(
        self,
        type: str,
        inputs: Sequence[str | Source | None],
        params: Mapping[str, Value] | None = None,
        *,
        weights: Mapping[str, Tensor] | None = None,
        activation: tuple[str, Mapping[str, Value]] | None = None,
        name: str = "",
    ) -> tuple[Source, ...]:
        """Add a layer for the current node. Inputs are names of values, or tensors of the document."""
        op = self.current
        assert op is not None
        read = [self.source(item) if isinstance(item, str) else item for item in inputs]
        tensors = dict(weights or {})
        made = self.builder.add(
            type,
            read,
            params,
            name=name or self._hint(op, tensors),
            weights={key: tensor.array for key, tensor in tensors.items()},
            origins=[tensor.name for tensor in tensors.values()],
            activation=activation,
            scope=op.scope,
        )
        self.made.append(made[0].layer)
        return made

    def _hint(self, op: OnnxOp, tensors: Mapping[str, Tensor]) -> str:
        """A name for a layer: that of the module in the names of its weights, else the node's.

        torch.onnx gives folded weights names such as `onnx::Conv_60`; their module is the path in the node's name, `/e1/c1/Conv`.
        """
        folded = False
        for tensor in tensors.values():
            module, dot, _ = tensor.name.rpartition(".")
            if dot and not module.startswith("onnx::"):
                return module
            folded |= tensor.name.startswith("onnx::")
        *path, last = op.name.strip("/").split("/")
        if folded and path and fullmatch(rf"{escape(op.op_type)}(_\d+)?", last):
            return _module(path)
        return op.name.strip("/").replace("/", ".") or op.op_type.lower()

    def put(self, name: str, source: Source) -> None:
        """Record the tensor that holds a value of the file."""
        if name:
            self.sources[name] = source

    def one(
        self,
        type: str,
        inputs: Sequence[str | Source | None],
        params: Mapping[str, Value] | None = None,
        *,
        weights: Mapping[str, Tensor] | None = None,
        activation: tuple[str, Mapping[str, Value]] | None = None,
    ) -> None:
        """Add the one layer that the current node is."""
        op = self.current
        assert op is not None
        made = self.add(type, inputs, params, weights=weights, activation=activation)
        self.finish(made[0])

    def finish(self, source: Source) -> None:
        """The first output of the current node is `source`, and it has no other that is used."""
        op = self.current
        assert op is not None
        self.put(op.outputs[0], source)

    def record(self, op: OnnxOp, outcome: Outcome, reason: str = "") -> None:
        """Record what became of a node."""
        for node in op.nodes:
            self.outcomes[id(node)] = NodeOutcome(
                getattr(node, "name", None) or op.name, node.op_type, outcome, tuple(dict.fromkeys(self.made)), reason
            )

    def kept_inside(self, op: OnnxOp) -> None:
        """Record that the layers of the current node contain `op` too."""
        for node in op.nodes:
            found = self.outcomes.get(id(node))
            if found is not None and found.outcome is Outcome.OPAQUE:
                layers = tuple(dict.fromkeys((*found.layers, *self.made)))
                self.outcomes[id(node)] = msgspec.structs.replace(found, layers=layers)


def foldable(conversion: Conversion, op: OnnxOp) -> bool:
    """Whether a node depends on known values only and can be computed without a runtime."""
    if op.domain or not can_fold(op.op_type) or len(op.outputs) != 1:
        return False
    return all(not name or conversion.is_constant(name) or name in conversion.arrays for name in op.inputs)


def plain_cast(conversion: Conversion, op: OnnxOp) -> OnnxOp:
    """A CastLike as the Cast that it is, so that constants are folded."""
    if op.op_type != "CastLike" or op.domain:
        return op
    try:
        code = CODES.get(conversion.type_of(op.inputs[1]).dtype.value)
    except UnsupportedError:
        return op
    return (
        op if code is None else replace(op, op_type="Cast", inputs=op.inputs[:1], attributes={"to": code}, asked=set())
    )


def _dtype(name: str) -> DataType:
    name = {"FLOAT": "float32", "DOUBLE": "float64"}.get(name, name.lower())
    try:
        return DataType(name)
    except ValueError:
        raise UnsupportedError(f"no layer can have the element type {name}") from None


def _text(value: Any) -> str:
    """The shortest number that reads back equal."""
    if isinstance(value, np.bool_ | bool):
        return "1" if value else "0"
    if isinstance(value, np.floating):
        return str(value)
    return str(int(value))


def _module(path: Sequence[str]) -> str:
    """The module of a path such as `layer1/layer1.0/conv1`, in which members of a sequence repeat its name: `layer1.0.conv1`."""
    around = [part for part, inside in pairwise(path) if not inside.startswith(f"{part}.")]
    return ".".join((*around, path[-1]))
