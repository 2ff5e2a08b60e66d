"""Strongly typed ONNX models: every layer in its number format, with Cast nodes where formats meet.

Which tensors of a node can have a format follows from the schema of its operator, so there is no list of operators here. A node
that cannot compute in the format of its layer computes in float32 from rounded inputs, and its results are cast.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from designer.runtime.engines.fusion import layer_of
from designer.runtime.number_formats import BFLOAT16, FLOAT16, FLOAT32, NumberFormat

_ELEMENTS = {FLOAT32: "FLOAT", FLOAT16: "FLOAT16", BFLOAT16: "BFLOAT16"}


@dataclass(frozen=True)
class FormattedModel:
    """`in_float32` are layers of another format with operators that compute in float32."""

    model: Any
    casts: int
    in_float32: tuple[str, ...]


def with_formats(
    model: Any, format_of: Callable[[str], NumberFormat], computing: Collection[NumberFormat] = (FLOAT16,)
) -> FormattedModel:
    """A copy of `model` (float32, with values and nodes named by layers as in `onnx_model.py`) with the formats of its layers.

    Inputs and outputs stay float32. Nodes compute in the formats `computing`; layers of other formats store their weights and
    results in these, and compute in float32, for runtimes that have no kernels for them.
    """
    made = type(model)()
    made.CopyFrom(model)
    work = _Formatter(made, format_of, {FLOAT32, *computing})
    work.convert()
    return FormattedModel(made, work.casts, tuple(work.in_float32))


class _Formatter:
    """Converts the graph of one model in place. `formats` has the present format of every float value."""

    def __init__(self, model: Any, format_of: Callable[[str], NumberFormat], computing: set[NumberFormat]) -> None:
        self._graph = model.graph
        self._opsets = {entry.domain: entry.version for entry in model.opset_import}
        self._format_of = format_of
        self._computing = computing
        self._types = _element_types(model)
        float32 = _element(FLOAT32)
        self._formats = {name: FLOAT32 for name, kind in self._types.items() if kind == float32}
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self._cast: dict[tuple[str, NumberFormat], str] = {}
        self._nodes: list[Any] = []
        self._taken = {*self._types, *(node.name for node in model.graph.node)}
        self.casts = 0
        self.in_float32: dict[str, None] = {}

    def convert(self) -> None:
        graph = self._graph
        for node in list(graph.node):
            if node.op_type == "Identity" and node.input[0] not in self._constants:
                self._pass_on(node)
            else:
                self._convert(node)
        for entry in graph.output:
            self._restore_output(entry.name)
        used = {name for node in self._nodes for name in _reads(node)} | {entry.name for entry in graph.output}
        constants = [tensor for name, tensor in self._constants.items() if name in used]
        del graph.node[:], graph.initializer[:], graph.value_info[:]
        graph.node.extend(self._nodes)
        graph.initializer.extend(constants)

    def _convert(self, node: Any) -> None:
        layer = layer_of(node.name or node.output[0])
        slots = _Slots.of(node, self._opsets)
        stored = self._format_of(layer)
        stored = FLOAT32 if stored.is_integer else stored
        computed = stored if self._can_compute(node, slots, stored) else FLOAT32
        for index, name in enumerate(node.input):
            if name in self._formats:
                if computed is not stored and slots.takes(index) and not self._is_lost(name, stored):
                    name = self._in_format(name, stored, layer)
                node.input[index] = self._in_format(name, computed if slots.takes(index) else FLOAT32, layer)
        for body in _bodies(node):
            captured = {name: self._in_format(name, FLOAT32, layer) for name in _outer(body) if name in self._formats}
            _rename_inside(body, captured)
        if computed is not FLOAT32:
            _convert_attributes(node, computed)
        self._nodes.append(node)
        for index, name in enumerate(node.output):
            if name in self._formats:
                given = computed if slots.gives(index) else FLOAT32
                self._formats[name] = given
                if given is not stored and slots.gives(index):
                    self._store(node, index, stored, layer)

    def _pass_on(self, node: Any) -> None:
        """An Identity has the format of what it passes on."""
        self._nodes.append(node)
        if node.input[0] in self._formats:
            self._formats[node.output[0]] = self._formats[node.input[0]]

    def _can_compute(self, node: Any, slots: _Slots, target: NumberFormat) -> bool:
        if target not in self._computing or not slots.allow(node, self._types, target):
            return False
        return not any(self._is_lost(name, target) for name in node.input)

    def _is_lost(self, name: str, target: NumberFormat) -> bool:
        """Whether a value is a constant number, such as an epsilon, that becomes infinite or 0 in a format."""
        from onnx import numpy_helper

        tensor = self._constants.get(name)
        if tensor is None or self._formats.get(name) is not FLOAT32 or target is FLOAT32 or np.prod(tensor.dims) != 1:
            return False
        value = float(np.abs(numpy_helper.to_array(tensor)).reshape(()))
        return bool(np.isfinite(value)) and (value > target.largest or 0 < value < target.smallest)

    def _store(self, node: Any, index: int, stored: NumberFormat, layer: str) -> None:
        """Cast a result in float32 to the format of the layer, under its name."""
        name = node.output[index]
        node.output[index] = inner = self._fresh(f"{name}/float32")
        self._formats[inner] = FLOAT32
        self._add_cast(inner, name, stored, layer)
        self.in_float32[layer] = None

    def _in_format(self, name: str, target: NumberFormat, layer: str) -> str:
        """The name of a value in a format; it is converted once for all its readers."""
        if self._formats[name] is target:
            return name
        known = self._cast.get((name, target))
        if known is None:
            known = self._cast[name, target] = self._fresh(f"{name}/{target.name}")
            if name in self._constants and target is not FLOAT32:
                self._constants[known] = _converted(self._constants[name], target, known)
                self._formats[known] = target
            else:
                self._add_cast(name, known, target, layer)
        return known

    def _restore_output(self, name: str) -> None:
        """Make an output of the model float32 again."""
        present = self._formats.get(name, FLOAT32)
        if present is FLOAT32:
            return
        inner = self._fresh(f"{name}/{present.name}")
        for node in self._nodes:
            node.input[:] = [inner if other == name else other for other in node.input]
            node.output[:] = [inner if other == name else other for other in node.output]
        self._add_cast(inner, name, FLOAT32, layer_of(name))

    def _add_cast(self, source: str, made: str, target: NumberFormat, layer: str) -> None:
        from onnx import helper

        name = self._fresh(f"{layer}/Cast")
        self._nodes.append(helper.make_node("Cast", [source], [made], name=name, to=_element(target)))
        self._formats[made] = target
        self.casts += 1

    def _fresh(self, base: str) -> str:
        name, number = base, 1
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        return name


@dataclass(frozen=True)
class _Slots:
    """The type variables of a node's inputs and outputs, or concrete types, by the schema of its operator; none if unknown."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    allowed: Mapping[str, frozenset[str]] | None = None
    by_attribute: bool = False

    @classmethod
    def of(cls, node: Any, opsets: Mapping[str, int]) -> _Slots:
        from onnx import defs

        domain = "" if node.domain == "ai.onnx" else node.domain
        if list(_bodies(node)) or domain not in opsets:
            return cls()
        try:
            schema = defs.get_schema(node.op_type, opsets[domain], domain)
        except defs.SchemaError:
            return cls()
        allowed = {each.type_param_str: frozenset(each.allowed_type_strs) for each in schema.type_constraints}
        return cls(
            _spread(schema.inputs, len(node.input)),
            _spread(schema.outputs, len(node.output)),
            allowed,
            node.op_type in _TYPED_BY_ATTRIBUTE,
        )

    def takes(self, index: int) -> bool:
        """Whether the type of an input is a variable."""
        return self.allowed is not None and self.inputs[index] in self.allowed

    def gives(self, index: int) -> bool:
        """Whether the type of an output follows those of the inputs, or an attribute that is converted."""
        if self.allowed is None:
            return False
        kind = self.outputs[index]
        return self.by_attribute or (kind in self.allowed and kind in self.inputs)

    def allow(self, node: Any, types: Mapping[str, int], target: NumberFormat) -> bool:
        """Whether all float tensors of the node whose types are variables can have the format."""
        if self.allowed is None or any(name and name not in types for name in node.input):
            return False
        float32, text = _element(FLOAT32), f"tensor({target.name})"
        text = "tensor(float)" if target is FLOAT32 else text
        named = [
            *zip(node.input, self.inputs, strict=True),
            *(
                (name, kind)
                for i, (name, kind) in enumerate(zip(node.output, self.outputs, strict=True))
                if self.gives(i)
            ),
        ]
        return all(text in self.allowed.get(kind, (text,)) for name, kind in named if types.get(name) == float32)


_TYPED_BY_ATTRIBUTE = frozenset({"Cast", "Constant", "ConstantOfShape"})


def _spread(formal: Any, count: int) -> tuple[str, ...]:
    """The types of `count` actual tensors; the last formal one may be variadic."""
    return tuple(formal[min(index, len(formal) - 1)].type_str for index in range(count))


def _element(target: NumberFormat) -> int:
    from onnx import TensorProto

    found: int = TensorProto.DataType.Value(_ELEMENTS[target])
    return found


def _element_types(model: Any) -> dict[str, int]:
    """The element type of every tensor of the graph, as far as it can be inferred."""
    from onnx import shape_inference

    graph = shape_inference.infer_shapes(model, check_type=True).graph
    found = {
        entry.name: entry.type.tensor_type.elem_type
        for entry in (*graph.input, *graph.value_info, *graph.output)
        if entry.type.HasField("tensor_type")
    }
    return found | {tensor.name: tensor.data_type for tensor in graph.initializer}


def _converted(tensor: Any, target: NumberFormat, name: str = "") -> Any:
    from onnx import helper, numpy_helper

    with np.errstate(over="ignore"):
        values = numpy_helper.to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(_element(target)))
    return numpy_helper.from_array(values, name or tensor.name)


def _convert_attributes(node: Any, target: NumberFormat) -> None:
    """Give the float32 tensors and types in the attributes of Cast, Constant and ConstantOfShape another format."""
    float32 = _element(FLOAT32)
    for attribute in node.attribute:
        if node.op_type == "Cast" and attribute.name == "to" and attribute.i == float32:
            attribute.i = _element(target)
        elif attribute.HasField("t") and attribute.t.data_type == float32:
            attribute.t.CopyFrom(_converted(attribute.t, target))


def _bodies(node: Any) -> Iterator[Any]:
    """The graphs in the attributes of a node, such as the branches of If."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _reads(node: Any) -> set[str]:
    """The values that a node reads, also inside its graphs."""
    return {*node.input, *(name for body in _bodies(node) for name in _outer(body))}


def _outer(body: Any) -> set[str]:
    """The values that a graph reads from around it."""
    own = {entry.name for entry in (*body.input, *body.initializer)} | {name for n in body.node for name in n.output}
    read = {name for node in body.node for name in _reads(node)} | {entry.name for entry in body.output}
    return read - own - {""}


def _rename_inside(body: Any, names: Mapping[str, str]) -> None:
    for node in body.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        for inner in _bodies(node):
            _rename_inside(inner, names)
    for entry in body.output:
        entry.name = names.get(entry.name, entry.name)
