"""Patterns of nodes that exporters write for one layer, found from a characteristic node in the middle.

All values inside of a pattern are read inside of it only, so that nothing else changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import pi, prod, sqrt
from typing import Any

from designer.importers.onnx.conversion import OnnxOp
from designer.importers.onnx.nodes.table import PATTERNS
from designer.importers.onnx.scopes import scope_of

TOLERANCE = 1e-5  # relative, of constants: exporters round them differently


@dataclass
class Patterns:
    """The nodes that belong to patterns, by identity. The last node of each has the operation, the others None."""

    replaced: dict[int, OnnxOp | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Match:
    """A found pattern: the nodes in order, what it reads, and its parameters."""

    op_type: str
    nodes: tuple[Any, ...]
    inputs: tuple[Any, ...]  # values; None if left out
    attributes: Mapping[str, Any] = field(default_factory=dict)


def find_patterns(graph: Any) -> Patterns:
    """The patterns of a graph; none overlap."""
    found = Patterns()
    order = {id(node): place for place, node in enumerate(graph)}
    for node in graph:
        search = _SEARCHES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        match = search(node) if search is not None and id(node) not in found.replaced else None
        if match is None or any(id(item) in found.replaced for item in match.nodes):
            continue
        if not _is_closed(match) or _adds_axes(match):
            continue
        last = max(match.nodes, key=lambda item: order[id(item)])
        for item in match.nodes:
            found.replaced[id(item)] = None
        found.replaced[id(last)] = OnnxOp(
            last.name or "",
            match.op_type,
            PATTERNS,
            1,
            tuple(value.name if value is not None else "" for value in match.inputs),
            (last.outputs[0].name or "",),
            match.attributes,
            scope_of(last),
            tuple(sorted(match.nodes, key=lambda item: order[id(item)])),
        )
    return found


def _is_closed(match: Match) -> bool:
    """Whether only the last node's output is read outside of the pattern."""
    inside = {id(node) for node in match.nodes}
    ends = 0
    for node in match.nodes:
        for value in node.outputs:
            outside = value.is_graph_output() or any(id(use.node) not in inside for use in value.uses())
            ends += outside
            if outside and value is not node.outputs[0]:
                return False
    return ends == 1


def _adds_axes(match: Match) -> bool:
    """Whether a number inside of the pattern has more axes than what it reads, so that the result has them too."""
    shape = match.inputs[0].shape
    most = len(shape) if shape is not None else 1
    inner = (value for node in match.nodes for value in node.inputs if not any(value is item for item in match.inputs))
    return any(len(getattr(_constant(value, "value_float"), "shape", ())) > most for value in inner)


# --- questions about nodes ----------------------------------------------------------------------------------------


def _constant(value: Any, plain: str) -> Any | None:
    """The tensor of a constant, or what its node has in the attribute `plain`; None for other values."""
    if value is None:
        return None
    producer = value.producer()
    if value.const_value is None and producer is not None and producer.op_type == "Constant":
        attribute = producer.attributes.get("value") or producer.attributes.get(plain)
        return attribute.value if attribute is not None else None
    return value.const_value


def _number(value: Any) -> float | None:
    """A constant with one element."""
    tensor = _constant(value, "value_float")
    if isinstance(tensor, int | float):
        return float(tensor)
    if tensor is None or prod(tensor.shape) != 1 or tensor.dtype.name == "STRING":
        return None
    return float(tensor.numpy().reshape(-1)[0])


def _is_number(value: Any, number: float) -> bool:
    found = _number(value)
    return found is not None and abs(found - number) <= TOLERANCE * abs(number)


def _numbers(value: Any) -> tuple[int, ...] | None:
    """A constant vector of integers."""
    tensor = _constant(value, "value_ints")
    if isinstance(tensor, Sequence):
        return tuple(tensor)
    if tensor is None or tensor.dtype.name not in ("INT64", "INT32") or prod(tensor.shape) > 64:
        return None
    return tuple(int(number) for number in tensor.numpy().reshape(-1))


def _is_constant(value: Any) -> bool:
    producer = value.producer() if value is not None else None
    return value is not None and (
        value.const_value is not None or (producer is not None and producer.op_type == "Constant")
    )


def _made_by(value: Any, *op_types: str) -> Any | None:
    """The node that makes a value, if it is of one of these types."""
    node = value.producer() if value is not None else None
    return node if node is not None and node.op_type in op_types and node.domain in ("", "ai.onnx") else None


def _reader(node: Any, *op_types: str) -> Any | None:
    """The only node that reads the output of `node`, if it is of one of these types."""
    uses = node.outputs[0].uses()
    readers = {id(use.node): use.node for use in uses}
    if len(readers) != 1 or node.outputs[0].is_graph_output():
        return None
    (reader,) = readers.values()
    return reader if reader.op_type in op_types and reader.domain in ("", "ai.onnx") else None


def _other(node: Any, value: Any) -> Any:
    """The other of two inputs."""
    return node.inputs[1] if node.inputs[0] is value else node.inputs[0]


def _attribute(node: Any, name: str, default: Any) -> Any:
    found = node.attributes.get(name)
    return default if found is None else found.value


def _scaled(value: Any, factor: float) -> tuple[Any, Any] | None:
    """(x, node) if a value is x * factor, also written as a division."""
    node = _made_by(value, "Mul", "Div")
    if node is None:
        return None
    if node.op_type == "Div":
        return (node.inputs[0], node) if _is_number(node.inputs[1], 1 / factor) else None
    for one, other in (tuple(node.inputs), tuple(reversed(node.inputs))):
        if _is_number(other, factor):
            return one, node
    return None


# --- patterns -----------------------------------------------------------------------------------------------------


def _silu(sigmoid: Any) -> Match | None:
    """x * sigmoid(x)"""
    x = sigmoid.inputs[0]
    product = _reader(sigmoid, "Mul")
    if product is None or _other(product, sigmoid.outputs[0]) is not x:
        return None
    return Match("Silu", (sigmoid, product), (x,))


def _exact_gelu(erf: Any) -> Match | None:
    """x * 0.5 * (1 + erf(x / sqrt(2))), in any order of the factors"""
    scaled = _scaled(erf.inputs[0], 1 / sqrt(2))
    return _gelu(erf, scaled[0], (scaled[1], erf), "none") if scaled is not None else None


def _tanh_gelu(tanh: Any) -> Match | None:
    """x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))"""
    scaled = _scaled(tanh.inputs[0], sqrt(2 / pi))
    total = _made_by(scaled[0], "Add") if scaled is not None else None
    if scaled is None or total is None:
        return None
    for x, cubic in (tuple(total.inputs), tuple(reversed(total.inputs))):
        weighted = _scaled(cubic, 0.044715)
        power = _made_by(weighted[0], "Pow") if weighted is not None else None
        if weighted is not None and power is not None and power.inputs[0] is x and _is_number(power.inputs[1], 3.0):
            return _gelu(tanh, x, (power, weighted[1], total, scaled[1], tanh), "tanh")
    return None


def _gelu(inner: Any, x: Any, nodes: tuple[Any, ...], approximate: str) -> Match | None:
    """The part that both forms share: the sum with 1, then the product with x and 0.5."""
    total = _reader(inner, "Add")
    if total is None or not _is_number(_other(total, inner.outputs[0]), 1.0):
        return None
    found = [*nodes, total]
    missing = {"x", "half"}
    last = total
    while missing:
        product = _reader(last, "Mul")
        if product is None:
            return None
        factor = _other(product, last.outputs[0])
        halved = _scaled(factor, 0.5)
        if factor is x and "x" in missing:
            missing.remove("x")
        elif _is_number(factor, 0.5) and "half" in missing:
            missing.remove("half")
        elif halved is not None and halved[0] is x and missing == {"x", "half"}:
            missing.clear()
            found.append(halved[1])
        else:
            return None
        found.append(product)
        last = product
    return Match("Gelu", tuple(found), (x,), {"approximate": approximate})


def _layer_normalization(root: Any) -> Match | None:
    """(x - mean) / sqrt(mean of squares + epsilon), scaled and shifted; found from the square root"""
    shifted = _made_by(root.inputs[0], "Add")
    epsilon = _number(shifted.inputs[1]) if shifted is not None else None
    variance = _made_by(shifted.inputs[0], "ReduceMean") if shifted is not None else None
    square = _made_by(variance.inputs[0], "Pow", "Mul") if variance is not None else None
    quotient = _reader(root, "Div")
    if epsilon is None or square is None or quotient is None or not _is_square(square):
        return None
    axis = _trailing_axis(variance)
    base = square.inputs[0]
    if axis is None or quotient.inputs[0] is not base:
        return None
    nodes = [square, variance, shifted, root, quotient]
    centered = _made_by(base, "Sub")
    mean = _made_by(centered.inputs[1], "ReduceMean") if centered is not None else None
    if centered is None or mean is None or mean.inputs[0] is not centered.inputs[0] or _trailing_axis(mean) != axis:
        return _affine("RMSNormalization", nodes, base, quotient, {"axis": axis, "epsilon": epsilon})
    nodes = [mean, centered, *nodes]
    return _affine("LayerNormalization", nodes, centered.inputs[0], quotient, {"axis": axis, "epsilon": epsilon})


def _affine(op_type: str, nodes: list[Any], x: Any, last: Any, attributes: Mapping[str, Any]) -> Match:
    """The pattern with the scale and the shift behind it, if they are constants."""
    inputs = [x]
    product = _reader(last, "Mul")
    if product is not None and _is_constant(_other(product, last.outputs[0])):
        inputs.append(_other(product, last.outputs[0]))
        nodes.append(product)
        total = _reader(product, "Add") if op_type == "LayerNormalization" else None
        if total is not None and _is_constant(_other(total, product.outputs[0])):
            inputs.append(_other(total, product.outputs[0]))
            nodes.append(total)
    return Match(op_type, tuple(nodes), tuple(inputs), attributes)


def _is_square(node: Any) -> bool:
    if node.op_type == "Pow":
        return _is_number(node.inputs[1], 2.0)
    return node.inputs[0] is node.inputs[1]


def _trailing_axis(node: Any) -> int | None:
    """The axis of a mean over the last axis; None for other means."""
    axes = _attribute(node, "axes", None)
    if axes is None and len(node.inputs) > 1:
        axes = _numbers(node.inputs[1])
    return -1 if axes is not None and tuple(axes) == (-1,) and _attribute(node, "keepdims", 1) else None


def _attention(softmax: Any) -> Match | None:
    """softmax(q x k * scale + mask) x v"""
    default = -1 if softmax.graph.opset_imports.get("", 1) >= 13 else 1  # before, of all axes from the second on
    if _attribute(softmax, "axis", default) not in (-1, 3):
        return None
    nodes = [softmax]
    scores, mask = softmax.inputs[0], None
    total = _made_by(scores, "Add")
    if total is not None:
        inner = [value for value in total.inputs if _made_by(value, "MatMul", "Mul", "Div") is not None]
        if len(inner) != 1:
            return None
        scores, mask = inner[0], _other(total, inner[0])
        nodes.append(total)
    scale = 1.0
    factor = _made_by(scores, "Mul", "Div")
    if factor is not None:
        number = _number(factor.inputs[1])
        if not number:
            return None
        scale = number if factor.op_type == "Mul" else 1 / number
        scores = factor.inputs[0]
        nodes.append(factor)
    product = _made_by(scores, "MatMul")
    result = _reader(softmax, "MatMul")
    if product is None or result is None or result.inputs[0] is not softmax.outputs[0]:
        return None
    inputs = (product.inputs[0], product.inputs[1], result.inputs[1], mask)
    return Match("Attention", (product, *nodes, result), inputs, {"scale": scale})


def _linear(product: Any) -> Match | None:
    """x times a constant matrix, plus a constant vector"""
    total = _reader(product, "Add")
    if total is None or not _is_constant(product.inputs[1]):
        return None
    bias = _other(total, product.outputs[0])
    if not _is_constant(bias) or bias.const_value is None or len(bias.const_value.shape) != 1:
        return None
    return Match("Linear", (product, total), (product.inputs[0], product.inputs[1], bias))


_SHUFFLES = {
    (0, 1, 4, 2, 5, 3): "PixelShuffle",
    (0, 1, 3, 5, 2, 4): "PixelUnshuffle",
}


def _pixel_shuffle(permuted: Any) -> Match | None:
    """Reshape to six axes, permutation, reshape to four"""
    kind = _SHUFFLES.get(tuple(_attribute(permuted, "perm", ())))
    before, after = _made_by(permuted.inputs[0], "Reshape"), _reader(permuted, "Reshape")
    if kind is None or before is None or after is None:
        return None
    sizes = _numbers(before.inputs[1])
    if sizes is None or len(sizes) != 6 or _numbers(after.inputs[1]) is None:
        return None
    factors = (sizes[2], sizes[3]) if kind == "PixelShuffle" else (sizes[3], sizes[5])
    if factors[0] != factors[1] or factors[0] < 1:
        return None
    expected = (
        (sizes[1], *factors, sizes[4], sizes[5])
        if kind == "PixelShuffle"
        else (sizes[1], sizes[2], factors[0], sizes[4])
    )
    attributes = {"factor": factors[0], "sizes": expected, "to": _numbers(after.inputs[1])}
    return Match(kind, (before, permuted, after), (before.inputs[0],), attributes)


_SEARCHES = {
    "Sigmoid": _silu,
    "Erf": _exact_gelu,
    "Tanh": _tanh_gelu,
    "Sqrt": _layer_normalization,
    "Softmax": _attention,
    "MatMul": _linear,
    "Transpose": _pixel_shuffle,
}
