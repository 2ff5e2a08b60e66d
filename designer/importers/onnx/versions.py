"""Versions of ONNX operators: which the runtime has, and models of other versions."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from designer.importers.onnx.conversion import OnnxOp, UnsupportedError
from designer.operators.onnx_data import OPSET

_STANDARD = ("", "ai.onnx")


@lru_cache(maxsize=1)
def runnable_opset() -> int:
    """The newest opset whose models ONNX Runtime loads here."""
    from onnx import TensorProto, defs, helper

    from designer.runtime.engines.ort import runtime, session_options

    entry = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "probe", entry[:1], entry[1:])
    options = session_options(4)
    for version in range(int(defs.onnx_opset_version()), OPSET, -1):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)
        try:
            runtime().InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception:  # the classes of the binding have no common base; an older version is tried
            continue
        return version
    return OPSET


def upgraded(model: Any, newest: int) -> Any:
    """A small model in opset `OPSET` or later, at most `newest`.

    Nothing but the number changes if its operators are the same there; else onnx.version_converter converts them. Raises
    UnsupportedError if that fails.
    """
    if model.opset_import[0].version > newest:
        model = _expanded(model, newest)
    version = model.opset_import[0].version
    needed = _since(model.graph, version)
    target = min(max(OPSET, needed), newest)
    if target == version or all(_same(*pair) for pair in _pairs(model.graph, version, target)):
        model.opset_import[0].version = target
        return model
    try:
        return _converted(model, version, target)
    except UnsupportedError:
        if version < OPSET:
            raise
        return model  # ONNX Runtime cannot load it, the reference implementation can


def with_opset(model: Any, target: int) -> None:
    """Give a model a newer opset if all its operators are the same there."""
    version = model.opset_import[0].version
    if target > version and all(_same(*pair) for pair in _pairs(model.graph, version, target)):
        model.opset_import[0].version = target


def _expanded(model: Any, newest: int) -> Any:
    """The model with operators that are newer than `newest` replaced by their definitions in the standard, if they have one."""
    from onnx import inliner

    version = model.opset_import[0].version
    schemas = [(node, _schema(node, version)) for node in _nodes(model.graph)]
    new = {(node.domain, node.op_type) for node, schema in schemas if schema and schema.since_version > newest}
    composed = [pair for pair in new if any(n.op_type == pair[1] and s and _has_body(s) for n, s in schemas)]
    if not composed:
        return model
    try:
        return inliner.inline_selected_functions(model, composed, exclude=False, inline_schema_functions=True)
    except Exception:  # pybind11 raises classes of its own; the model is converted as a whole then
        return model


def has_definition(op: OnnxOp) -> bool:
    """Whether the standard defines an operator, with all attributes of this node, by others."""
    from onnx import defs

    try:
        schema = defs.get_schema(op.op_type, op.opset, op.domain)
    except defs.SchemaError:
        return False
    return _has_body(schema) and op.attributes.keys() <= schema.attributes.keys()


def _has_body(schema: Any) -> bool:
    return bool(schema.has_function or schema.has_context_dependent_function)


def _converted(model: Any, version: int, target: int) -> Any:
    from onnx import version_converter

    for entry in (*model.graph.output, *model.graph.value_info):
        entry.ClearField("type")
    if version < 13:
        _rewrite(model.graph, _over_one_axis)
    try:
        made = version_converter.convert_version(model, target)
    except Exception as error:  # the converter is C++ code with exceptions of its own
        lines = str(error).strip().splitlines()
        kinds = ", ".join(sorted({node.op_type for node in model.graph.node}))
        raise UnsupportedError(
            f"{kinds} of opset {version} cannot be converted to opset {target}: {lines[0][:160] if lines else 'unknown'}"
        ) from None
    if version < 11:
        _rewrite(made.graph, _as_upsample if version < 10 else _as_first_resize)
        _rewrite(made.graph, _with_numbers_of_its_type)
    return made


def _rewrite(graph: Any, rewritten: Callable[[Any], list[Any]]) -> None:
    """Replace each node of a graph, and of the graphs inside, by others."""
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        for inner in _inner(node):
            _rewrite(inner, rewritten)
        graph.node.extend(rewritten(node))


def _over_one_axis(node: Any) -> list[Any]:
    """A Hardmax before opset 13 as one over a row of a matrix; the converter leaves it the axes that it has since then."""
    from onnx import helper

    if node.op_type != "Hardmax" or node.domain not in _STANDARD:
        return [node]
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 1)
    (x,), (y,) = node.input, node.output
    return [
        helper.make_node("Shape", [x], [f"{y}/shape"]),
        helper.make_node("Flatten", [x], [f"{y}/flat"], axis=axis),
        helper.make_node("Hardmax", [f"{y}/flat"], [f"{y}/one"], axis=1),
        helper.make_node("Reshape", [f"{y}/one", f"{y}/shape"], [y], name=node.name),
    ]


def _with_numbers_of_its_type(node: Any) -> list[Any]:
    """Let the bounds of a Clip and the value of a Pad have the element type of its input; the converter makes them float32."""
    from onnx import helper

    numbers = {"Clip": (1, 2), "Pad": (2,)}.get(node.op_type, ()) if node.domain in _STANDARD else ()
    made = []
    for place in numbers:
        if place < len(node.input) and node.input[place]:
            name = f"{node.output[0]}/{place}"
            made.append(helper.make_node("CastLike", [node.input[place], node.input[0]], [name]))
            node.input[place] = name
    return [*made, node]


def _as_upsample(node: Any, rounding: str = "floor") -> list[Any]:
    """Let a Resize sample where an Upsample or a linear Resize of opset 10 did; the converter leaves it the new defaults."""
    from onnx import helper

    if node.op_type == "Resize" and node.domain in _STANDARD:
        kept = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": rounding}
        node.attribute.extend(helper.make_attribute(name, text) for name, text in kept.items())
    return [node]


def _as_first_resize(node: Any) -> list[Any]:
    """Let a Resize sample where that of opset 10 did: its nearest pixel is rounded up along axes that become smaller."""
    from onnx import helper

    linear = any(attribute.name == "mode" and attribute.s == b"linear" for attribute in node.attribute)
    if node.op_type != "Resize" or node.domain not in _STANDARD or linear:
        return _as_upsample(node)
    (x, roi, scales), (y,) = node.input, node.output
    one, larger, smaller, between = (f"{y}/{name}" for name in ("one", "larger", "smaller", "between"))
    first, second = type(node)(), type(node)()
    for made, inputs, output in ((first, (x, roi, larger), between), (second, (between, roi, smaller), y)):
        made.CopyFrom(node)
        made.input[:], made.output[:] = inputs, [output]
    first.name = ""
    return [
        helper.make_node("Constant", [], [one], value_float=1.0),
        helper.make_node("Max", [scales, one], [larger]),
        helper.make_node("Min", [scales, one], [smaller]),
        *_as_upsample(first),
        *_as_upsample(second, "ceil"),
    ]


def _since(graph: Any, version: int) -> int:
    """The oldest opset in which all operators of a graph are what they are in `version`."""
    return max((schema.since_version for schema in (_schema(n, version) for n in _nodes(graph)) if schema), default=1)


def _pairs(graph: Any, version: int, target: int) -> list[tuple[Any, Any]]:
    return [(_schema(node, version), _schema(node, target)) for node in _nodes(graph) if node.domain in _STANDARD]


def _nodes(graph: Any) -> list[Any]:
    found = list(graph.node)
    for node in graph.node:
        for inner in _inner(node):
            found += _nodes(inner)
    return found


def _inner(node: Any) -> list[Any]:
    """The graphs in the attributes of a node."""
    return [
        graph
        for attribute in node.attribute
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs)
    ]


def _schema(node: Any, version: int) -> Any | None:
    from onnx import defs

    if node.domain not in _STANDARD:
        return None
    try:
        return defs.get_schema(node.op_type, version, "")
    except defs.SchemaError:
        return None


def _same(one: Any | None, other: Any | None) -> bool:
    """Whether two versions of an operator have the same inputs, outputs and attributes: only element types were added."""
    if one is None or other is None:
        return False
    if one.since_version == other.since_version:
        return True
    if one.name in _CHANGED:
        return False
    return _signature(one) == _signature(other)


def _signature(schema: Any) -> tuple[Any, ...]:
    attributes = {name: (item.type, item.required, str(item.default_value)) for name, item in schema.attributes.items()}
    inputs = [(item.name, item.option) for item in schema.inputs]
    return attributes, inputs, [(item.name, item.option) for item in schema.outputs]


_CHANGED = frozenset({"Softmax", "LogSoftmax", "Hardmax", "BatchNormalization", "GroupNormalization", "Upsample"})
