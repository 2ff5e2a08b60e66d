"""The nodes of a trace in a form that does not depend on torch.fx, and the tensors that they read."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from designer.graph.model import check_layer_name
from designer.graph.types import DataType
from designer.importers.pytorch.conversion import Constant, Size, TraceNode, UnsupportedError, data_type
from designer.importers.templates import Scope

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Node

_TRACE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in \S+\n\s*(?P<code>[^\n]*)')


class OpenSize:
    """A number that depends on the size of the batch."""


OPEN = OpenSize()


def constants(program: ExportedProgram) -> dict[str, Constant]:
    """The tensors of the module, by the name of their node: parameters, buffers, and constants in its code."""
    import torch

    found = {}
    for spec in program.graph_signature.input_specs:
        name, kind = getattr(spec.arg, "name", ""), spec.kind.name
        if kind in ("PARAMETER", "BUFFER") and spec.target is not None:
            tensor = program.state_dict.get(spec.target)
            if tensor is None:
                tensor = program.constants[spec.target]
            found[name] = Constant(tensor, spec.target, kind == "PARAMETER")
        elif kind == "CONSTANT_TENSOR" and spec.target is not None:
            tensor = program.constants[spec.target]
            if isinstance(tensor, torch.Tensor):
                found[name] = Constant(tensor)
    return found


def user_inputs(program: ExportedProgram) -> list[str]:
    """The inputs of the module that are tensors, named as the arguments of `forward`."""
    return [str(name) for name in program.graph_signature.user_inputs if isinstance(name, str)]


def user_outputs(program: ExportedProgram, single: str = "y") -> dict[str, Any]:
    """Names of the results -> nodes: `single`, the keys of a dictionary, or `y1`, `y2`, ..."""
    nodes = [arg for arg, spec in _outputs(program) if spec.kind.name == "USER_OUTPUT"]
    tree = program.call_spec.out_spec
    keys = [str(key) for key in getattr(tree, "context", None) or ()] if _is_dict(tree) else []
    if len(nodes) == 1:
        names = [single]
    elif len(keys) == len(nodes) and all(check_layer_name(key) is None for key in keys):
        names = keys
    else:
        names = [f"y{number}" for number in range(1, len(nodes) + 1)]
    return dict(zip(names, nodes, strict=True))


def _is_dict(tree: Any) -> bool:
    return getattr(tree, "type", None) is dict


def _outputs(program: ExportedProgram) -> Iterator[tuple[Any, Any]]:
    (end,) = (node for node in program.graph.nodes if node.op == "output")
    return zip(end.args[0], program.graph_signature.output_specs, strict=True)


def sizes_of(shape: Sequence[Any]) -> tuple[Size | None, ...]:
    """A shape of the trace: numbers, the batch, and None for sizes that contain the batch."""
    found: list[Size | None] = []
    for size in shape:
        if isinstance(size, int):
            found.append(size)
            continue
        expression = size.node.expr
        if expression.is_Integer:
            found.append(int(expression))
        else:
            found.append(None)
    return tuple(found)


def shapes_of(node: Node) -> tuple[tuple[tuple[Size | None, ...], DataType | None], ...]:
    """Shape and element type of each result."""
    value = node.meta.get("val")
    items: Any = value if isinstance(value, list | tuple) else [value]
    found = []
    for item in items:
        if not hasattr(item, "shape"):
            continue
        try:
            dtype: DataType | None = data_type(str(item.dtype))
        except UnsupportedError:
            dtype = None
        found.append((sizes_of(item.shape), dtype))
    return tuple(found)


def is_number(node: Node) -> bool:
    """Whether a node is a size or a number computed from sizes."""
    import torch

    return isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat | torch.SymBool | int | float | bool)


def plain_number(value: Any) -> Any:
    """A number of the trace: as such if it does not depend on the batch."""
    node = getattr(value, "node", None)
    if node is None:
        return value
    expression = node.expr
    if expression.is_Integer:
        return int(expression)
    return float(expression) if expression.is_number else OPEN


def described(node: Node, resolve: Mapping[str, Any]) -> TraceNode:
    """A node with its arguments by name; nodes are replaced by what `resolve` has for them."""
    schema = node.target._schema  # type: ignore[union-attr]
    name = schema.name.rpartition("::")[2]
    if schema.is_mutable and name.endswith("_") and not name.endswith("__"):
        name = name[:-1]
    given: dict[str, Any] = {
        argument.name: argument.default_value for argument in schema.arguments if argument.has_default_value()
    }
    names = [argument.name for argument in schema.arguments]
    given |= {key: _resolved(value, resolve) for key, value in zip(names, node.args, strict=False)}
    given |= {key: _resolved(value, resolve) for key, value in node.kwargs.items()}
    label, scope = module_of(node, name)
    return replace(
        undescribed(node), op=name, arguments=given, label=label, scope=scope, line=line_of(node), text=call_text(node)
    )


def undescribed(node: Node) -> TraceNode:
    """A node without its arguments."""
    several = isinstance(node.meta.get("val"), list | tuple)
    return TraceNode(node.name, str(node.target), {}, shapes_of(node), several=several)


def _resolved(value: Any, resolve: Mapping[str, Any]) -> Any:
    from torch.fx import Node

    if isinstance(value, Node):
        if value.name in resolve:
            return resolve[value.name]
        if is_number(value):
            return plain_number(value.meta["val"])
        raise UnsupportedError(f"its input '{value.name}' has no layer")
    if isinstance(value, list | tuple):
        return [_resolved(item, resolve) for item in value]
    return value


def module_calls(node: Node) -> Iterator[tuple[str, str, Scope]]:
    """The calls of modules around a node, the outermost first: class, path, and the path with the number of each call.

    The second call of a module has the number 1: `block@1`.
    """
    parts: list[str] = []
    for key, (place, cls) in (node.meta.get("nn_module_stack") or {}).items():
        path = place.partition("@")[0].removeprefix("L['self'].").strip(".")
        names = [part for part in path.split(".") if part]
        parts = [*parts[: len(names)], *names[len(parts) :]]
        _, called, number = key.rpartition("@")
        if parts and called:
            parts[-1] = f"{names[-1]}@{number}"
        yield cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}", path, tuple(parts)


def module_of(node: Node, op: str) -> tuple[str, Scope]:
    """A name for the layer, and the path of modules around it."""
    *_, (kind, path, parts) = [("", "", ()), *module_calls(node)]
    if parts and kind.startswith("torch.nn.modules.") and not kind.startswith("torch.nn.modules.container"):
        return path, parts[:-1]
    return (f"{path}.{op}" if path else op), parts


class Frame(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    code: str


def frames_of(node: Node) -> list[Frame]:
    """The lines of the user's code that made a node, the outermost call first."""
    found = _TRACE.finditer(node.meta.get("stack_trace") or "")
    return [Frame(m["file"], int(m["line"]), m["code"].strip()) for m in found if "/torch/" not in m["file"]]


def line_of(node: Node) -> str:
    """The line of the user's code that made a node, as `file.py:12: code`."""
    frames = frames_of(node)
    if not frames:
        return ""
    file, line, code = frames[-1]
    return f"{file.rpartition('/')[2]}:{line}: {code[:120]}"


def call_text(node: Node) -> str:
    """The call as Python with the tensors x1, x2, ...; empty if an argument cannot be written.

    It writes to copies of tensors, which other layers read too.
    """
    from torch.fx import Node as FxNode

    seen: dict[str, str] = {}

    def write(value: Any) -> str:
        if isinstance(value, FxNode):
            return seen.setdefault(value.name, f"x{len(seen) + 1}")
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(write, value))}]"
        if isinstance(value, float) and not isfinite(value):
            return f"float('{value}')"
        if value is None or isinstance(value, bool | int | float | str):
            return repr(value)
        raise UnsupportedError("an argument has no text")

    described = getattr(getattr(node.target, "_schema", None), "arguments", ())
    written = {
        place for place, item in enumerate(described) if item.alias_info is not None and item.alias_info.is_write
    }
    try:
        positional = [
            f"{write(item)}.clone()" if place in written else write(item) for place, item in enumerate(node.args)
        ]
        texts = [*positional, *(f"{key}={write(value)}" for key, value in node.kwargs.items())]
    except UnsupportedError:
        return ""
    if any(is_number(item) for item in node.all_input_nodes):
        return ""
    return f"torch.ops.{node.target}({', '.join(texts)})"


def is_item(node: Node) -> bool:
    return node.target is operator.getitem
