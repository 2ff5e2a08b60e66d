"""Layers with weights: convolutions, linear layers and normalizations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from designer.graph.model import Source
from designer.graph.types import Symbol, TensorType
from designer.importers.onnx.conversion import Conversion, OnnxOp, Tensor, UnsupportedError
from designer.importers.onnx.nodes.activations import rounded
from designer.importers.onnx.nodes.table import PATTERNS, converts
from designer.importers.windows import padding as padding_params
from designer.importers.windows import size
from designer.operators.params import Value

_MAX_KERNEL = 1024


def window_pads(
    c: Conversion, op: OnnxOp, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    """(before, after) for each spatial axis, `auto_pad` included."""
    rank = len(kernel)
    auto = op.attribute("auto_pad", "NOTSET")
    if auto == "VALID":
        return [(0, 0)] * rank
    if auto == "NOTSET":
        flat = list(op.attribute("pads", [0] * 2 * rank))
        return list(zip(flat[:rank], flat[rank:], strict=True))
    pads = []
    sizes = c.type_of(op.inputs[0]).shape[2:]
    for length, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        if isinstance(length, Symbol):
            raise UnsupportedError("auto_pad of an unknown size")
        total = max(0, (-(-length // s) - 1) * s + d * (k - 1) + 1 - length)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if auto == "SAME_UPPER" else (large, small))
    return pads


@converts("Conv")
def convolution(c: Conversion, op: OnnxOp) -> None:
    if not c.is_constant(op.inputs[1]) or (op.input(2) and not c.is_constant(op.inputs[2])):
        dynamic_convolution(c, op)
        return
    kernel = c.weight(op.inputs[1])
    sizes = kernel.array.shape[2:]
    op.attribute("kernel_shape", [])  # equals that of the weight
    strides = op.attribute("strides", [1] * len(sizes))
    dilations = op.attribute("dilations", [1] * len(sizes))
    pads = window_pads(c, op, sizes, strides, dilations)
    padding = padding_params(pads, sizes, dilations)
    if len(sizes) not in (1, 2, 3):
        raise UnsupportedError(f"it has {len(sizes)} spatial axes")
    source: str | Source = op.inputs[0]
    if padding is None:
        source, padding = pad_borders(c, op.inputs[0], pads), {"padding": "valid"}
    weights = {"kernel": kernel}
    if op.input(2):
        weights["bias"] = c.weight(op.inputs[2])
    params: dict[str, Value] = {
        "features": kernel.array.shape[0],
        "kernel": size(sizes),
        "stride": size(strides),
        "dilation": size(dilations),
        "groups": op.attribute("group", 1),
        "apply_bias": bool(op.input(2)),
        **padding,
    }
    type = {1: "convolution_1d", 2: "convolution", 3: "convolution_3d"}[len(sizes)]
    c.one(type, [source], params, weights=weights)


def pad_borders(c: Conversion, name: str, pads: Sequence[tuple[int, int]], value: float = 0.0) -> Source:
    """A layer that pads the spatial axes."""
    before, after = zip(*pads, strict=True)
    params: dict[str, Value] = {"before": (0, 0, *before), "after": (0, 0, *after), "value": value}
    return c.add("pad_tensor", [name], params)[0]


def dynamic_convolution(c: Conversion, op: OnnxOp) -> None:
    """A convolution whose filters are computed by the network."""
    kernel = c.type_of(op.inputs[1])
    sizes = [dim for dim in kernel.shape[2:] if isinstance(dim, int)]
    strides = op.attribute("strides", [1] * len(sizes))
    dilations = op.attribute("dilations", [1] * len(sizes))
    pads = window_pads(c, op, sizes, strides, dilations)
    params: dict[str, Value] = {
        "stride": tuple(strides),
        "before": tuple(before for before, _ in pads),
        "after": tuple(after for _, after in pads),
        "dilation": tuple(dilations),
        "groups": op.attribute("group", 1),
    }
    c.one("dynamic_convolution", [name for name in op.inputs if name], params)


@converts("ConvTranspose")
def transposed_convolution(c: Conversion, op: OnnxOp) -> None:
    kernel = c.type_of(op.inputs[1])
    sizes = [dim for dim in kernel.shape[2:] if isinstance(dim, int)]
    op.attribute("kernel_shape", [])  # equals that of the weight
    strides = op.attribute("strides", [1] * len(sizes))
    dilations = op.attribute("dilations", [1] * len(sizes))
    extra = list(op.attribute("output_padding", [0] * len(sizes)))
    pads = _transposed_pads(c, op, sizes, strides, dilations, extra)
    if not c.is_constant(op.inputs[1]) or len(sizes) != 2:
        _dynamic_transposed(c, op, strides, pads, dilations, extra)
        return
    if any(before != after for before, after in pads):
        _dynamic_transposed(c, op, strides, pads, dilations, extra)
        return
    weights = {"kernel": c.weight(op.inputs[1])}
    if op.input(2):
        weights["bias"] = c.weight(op.inputs[2])
    padded = any(map(any, pads))
    params: dict[str, Value] = {
        "features": weights["kernel"].array.shape[1] * op.attribute("group", 1),
        "kernel": size(sizes),
        "stride": size(strides),
        "dilation": size(dilations),
        "groups": op.attribute("group", 1),
        "output_padding": size(extra),
        "apply_bias": bool(op.input(2)),
        "padding": "tuple" if padded else "valid",
        "padding_tuple": size([before for before, _ in pads]),
    }
    c.one("transposed_convolution", [op.inputs[0]], params, weights=weights)


def _transposed_pads(
    c: Conversion,
    op: OnnxOp,
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    extra: Sequence[int],
) -> list[tuple[int, int]]:
    auto = op.attribute("auto_pad", "NOTSET")
    wanted = op.attribute("output_shape")
    if wanted is None and auto == "NOTSET":
        flat = list(op.attribute("pads", [0] * 2 * len(sizes)))
        return list(zip(flat[: len(sizes)], flat[len(sizes) :], strict=True))
    if wanted is None and auto == "VALID":
        return [(0, 0)] * len(sizes)
    pads = []
    for place, length in enumerate(c.type_of(op.inputs[0]).shape[2:]):
        if isinstance(length, Symbol):
            raise UnsupportedError("the size is not known")
        target = wanted[-len(sizes) :][place] if wanted is not None else length * strides[place]
        full = strides[place] * (length - 1) + extra[place] + (sizes[place] - 1) * dilations[place] + 1
        total = full - target
        if total < 0:
            raise UnsupportedError("the output is larger than the filters reach")
        small, large = total // 2, total - total // 2
        pads.append((small, large) if auto == "SAME_UPPER" else (large, small))
    return pads


def _dynamic_transposed(
    c: Conversion,
    op: OnnxOp,
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
    dilations: Sequence[int],
    extra: Sequence[int],
) -> None:
    params: dict[str, Value] = {
        "transposed": True,
        "stride": tuple(strides),
        "before": tuple(before for before, _ in pads),
        "after": tuple(after for _, after in pads),
        "dilation": tuple(dilations),
        "output_padding": tuple(extra),
        "groups": op.attribute("group", 1),
    }
    c.one("dynamic_convolution", [name for name in op.inputs if name], params)


# --- linear layers ------------------------------------------------------------------------------------------------


@converts("Linear", domain=PATTERNS)
def linear(c: Conversion, op: OnnxOp) -> None:
    """MatMul with a constant matrix, and the addition of a constant vector."""
    kernel = c.weight(op.inputs[1])
    kind = c.type_of(op.inputs[0])
    bias = c.weight(op.inputs[2])
    if kernel.array.ndim != 2 or kind.rank < 2 or bias.array.shape != (kernel.array.shape[1],):
        raise UnsupportedError("it is not a linear layer")
    _fully_connected(c, op.inputs[0], kernel.as_array(kernel.array.T), bias)


def matrix_product(c: Conversion, op: OnnxOp) -> None:
    """A matrix product; with a constant matrix a linear layer."""
    one, other = op.inputs[:2]
    left, right = c.type_of(one), c.type_of(other)
    if c.is_constant(other) and right.rank == 2 and 2 <= left.rank <= 5:
        kernel = c.weight(other)
        _fully_connected(c, one, kernel.as_array(kernel.array.T), None)
        return
    inputs: list[str | Source] = [one, other]
    if left.rank == 1:
        inputs[0] = c.add("unsqueeze", [one], {"axis": 0})[0]
    if right.rank == 1:
        inputs[1] = c.add("unsqueeze", [other], {"axis": 1})[0]
    (made,) = c.add("matmul", inputs)
    for rank, axis in ((left.rank, -2), (right.rank, -1)):
        if rank == 1:
            (made,) = c.add("squeeze", [made], {"axes": (axis,)})
    c.finish(made)


def _fully_connected(c: Conversion, x: str | Source, kernel: Tensor, bias: Tensor | None) -> None:
    weights = {"kernel": kernel}
    if bias is not None:
        weights["bias"] = bias
    params: dict[str, Value] = {"features": kernel.array.shape[0], "apply_bias": bias is not None, "flatten": False}
    c.one("fully_connected", [x], params, weights=weights)


@converts("Gemm")
def gemm(c: Conversion, op: OnnxOp) -> None:
    alpha, beta = op.attribute("alpha", 1.0), op.attribute("beta", 1.0)
    across, down = op.attribute("transA", 0), op.attribute("transB", 0)
    plain = alpha == 1.0 and (beta == 1.0 or not op.input(2)) and not across and c.is_constant(op.inputs[1])
    if plain and (not op.input(2) or _is_bias(c, op)):
        kernel = c.weight(op.inputs[1])
        if not down:
            kernel = kernel.as_array(kernel.array.T)
        bias = None
        if op.input(2):
            found = c.weight(op.inputs[2])
            bias = found.as_array(found.array.reshape(-1))
        _fully_connected(c, op.inputs[0], kernel, bias)
        return
    (made,) = c.add("matmul", op.inputs[:2], {"transpose_a": bool(across), "transpose_b": bool(down)})
    if alpha != 1.0:
        (made,) = c.add("scale_shift", [made], {"scale": rounded(alpha)})
    if op.input(2):
        other: str | Source = op.inputs[2]
        if beta != 1.0:
            (other,) = c.add("scale_shift", [other], {"scale": rounded(beta)})
        (made,) = c.add("element_wise", [made, other], {"operation": "add"})
    c.finish(made)


def _is_bias(c: Conversion, op: OnnxOp) -> bool:
    if not c.is_constant(op.inputs[2]):
        return False
    kind, kernel = c.type_of(op.inputs[2]), c.type_of(op.inputs[1])
    features = kernel.shape[0 if op.attribute("transB", 0) else 1]
    return prod(dim for dim in kind.shape if isinstance(dim, int)) == features and kind.shape[-1:] == (features,)


# --- normalization ------------------------------------------------------------------------------------------------


@converts("BatchNormalization")
def batch_normalization(c: Conversion, op: OnnxOp) -> None:
    if op.attribute("training_mode", 0) or (op.opset < 14 and len(op.outputs) > 1):
        raise UnsupportedError("it is in training mode")
    if op.opset < 9 and op.attribute("spatial", 1) != 1:
        raise UnsupportedError("it has statistics for every position")
    kind = c.type_of(op.inputs[0])
    epsilon = rounded(op.attribute("epsilon", 1e-5))
    if all(map(c.is_constant, op.inputs[1:5])) and 2 <= kind.rank <= 5:
        names = ("scale", "bias", "mean", "variance")
        weights = {name: c.weight(given) for name, given in zip(names, op.inputs[1:5], strict=True)}
        c.one("batch_normalization", [op.inputs[0]], {"epsilon": epsilon}, weights=weights)
        return
    scale, bias, mean, variance = (_along_channels(c, name, kind) for name in op.inputs[1:5])
    (centered,) = c.add("element_wise", [op.inputs[0], mean], {"operation": "subtract"})
    (shifted,) = c.add("scale_shift", [variance], {"shift": epsilon})
    (deviation,) = c.add("unary", [shifted], {"function": "sqrt"})
    (normal,) = c.add("element_wise", [centered, deviation], {"operation": "divide"})
    c.finish(_affine(c, normal, scale, bias))


def _along_channels(c: Conversion, name: str, kind: TensorType) -> Source:
    """A vector of one number a channel, so that it is broadcast over the positions."""
    if kind.rank < 3:
        return c.source(name)
    shape: dict[str, Value] = {"shape": (-1, *(1,) * (kind.rank - 2)), "keep_batch": False}
    return c.add("reshape", [name], shape)[0]


def _affine(c: Conversion, x: Source, scale: Source | str, bias: Source | str) -> Source:
    (made,) = c.add("element_wise", [x, scale], {"operation": "multiply"})
    if bias:
        (made,) = c.add("element_wise", [made, bias], {"operation": "add"})
    return made


@converts("InstanceNormalization")
def instance_normalization(c: Conversion, op: OnnxOp) -> None:
    kind = c.type_of(op.inputs[0])
    params: dict[str, Value] = {"epsilon": rounded(op.attribute("epsilon", 1e-5))}
    if all(map(c.is_constant, op.inputs[1:3])):
        weights = {"scale": c.weight(op.inputs[1]), "bias": c.weight(op.inputs[2])}
        c.one("instance_normalization", [op.inputs[0]], {**params, "affine": True}, weights=weights)
        return
    (normal,) = c.add("instance_normalization", [op.inputs[0]], params)
    c.finish(_affine(c, normal, *(_along_channels(c, name, kind) for name in op.inputs[1:3])))


@converts("GroupNormalization")
def group_normalization(c: Conversion, op: OnnxOp) -> None:
    kind = c.type_of(op.inputs[0])
    params: dict[str, Value] = {
        "groups": op.attribute("num_groups"),
        "epsilon": rounded(op.attribute("epsilon", 1e-5)),
    }
    if op.opset < 21:
        raise UnsupportedError("before opset 21 it has a scale for each group")
    if all(map(c.is_constant, op.inputs[1:3])):
        weights = {"scale": c.weight(op.inputs[1]), "bias": c.weight(op.inputs[2])}
        c.one("group_normalization", [op.inputs[0]], params, weights=weights)
        return
    (normal,) = c.add("group_normalization", [op.inputs[0]], {**params, "affine": False})
    c.finish(_affine(c, normal, *(_along_channels(c, name, kind) for name in op.inputs[1:3])))


@converts("LayerNormalization")
def layer_normalization(c: Conversion, op: OnnxOp) -> None:
    _trailing(c, op, "layer_normalization")


@converts("LayerNormalization", domain=PATTERNS)
def layer_normalization_pattern(c: Conversion, op: OnnxOp) -> None:
    _trailing(c, op, "layer_normalization")


@converts("RMSNormalization")
def rms_normalization(c: Conversion, op: OnnxOp) -> None:
    _trailing(c, op, "rms_normalization")


@converts("RMSNormalization", domain=PATTERNS)
def rms_normalization_pattern(c: Conversion, op: OnnxOp) -> None:
    _trailing(c, op, "rms_normalization")


def _trailing(c: Conversion, op: OnnxOp, type: str) -> None:
    kind = c.type_of(op.inputs[0])
    if len(op.outputs) > 1:
        _moments(c, op, tuple(range(op.attribute("axis", -1) % kind.rank, kind.rank)))
    axis = op.attribute("axis", -1) % kind.rank - kind.rank
    params: dict[str, Value] = {"axis": axis, "epsilon": rounded(op.attribute("epsilon", 1e-5))}
    shape = kind.shape[axis:]
    given = [name for name in op.inputs[1:3] if name]
    constant = all(c.is_constant(name) and c.type_of(name).shape == shape for name in given)
    if constant and op.input(1) and (type == "rms_normalization" or op.input(2)):
        weights = {"scale": c.weight(op.inputs[1])}
        if op.input(2):
            weights["bias"] = c.weight(op.inputs[2])
        c.one(type, [op.inputs[0]], params, weights=weights)
        return
    if constant and op.input(1):
        zeros = Tensor(np.zeros([dim for dim in shape if isinstance(dim, int)], np.float32))
        c.one(type, [op.inputs[0]], params, weights={"scale": c.weight(op.inputs[1]), "bias": zeros})
        return
    (normal,) = c.add(type, [op.inputs[0]], {**params, "affine": False})
    c.finish(_affine(c, normal, op.inputs[1], op.input(2)) if op.input(1) else normal)


def _moments(c: Conversion, op: OnnxOp, axes: tuple[int, ...]) -> None:
    """The second and third output of a layer normalization: mean and 1 / deviation."""
    (mean,) = c.add("reduce", [op.inputs[0]], {"operation": "mean", "axes": axes})
    c.put(op.outputs[1], mean)
    if len(op.outputs) > 2:
        (centered,) = c.add("element_wise", [op.inputs[0], mean], {"operation": "subtract"})
        (square,) = c.add("unary", [centered], {"function": "square"})
        (variance,) = c.add("reduce", [square], {"operation": "mean", "axes": axes})
        (shifted,) = c.add("scale_shift", [variance], {"shift": rounded(op.attribute("epsilon", 1e-5))})
        (deviation,) = c.add("unary", [shifted], {"function": "sqrt"})
        c.put(op.outputs[2], c.add("unary", [deviation], {"function": "reciprocal"})[0])


@converts("LRN")
def local_response_normalization(c: Conversion, op: OnnxOp) -> None:
    params: dict[str, Value] = {
        "size": op.attribute("size"),
        "alpha": rounded(op.attribute("alpha", 1e-4)),
        "beta": rounded(op.attribute("beta", 0.75)),
        "bias": rounded(op.attribute("bias", 1.0)),
    }
    c.one("local_response_normalization", op.inputs, params)


@converts("LpNormalization")
def lp_normalization(c: Conversion, op: OnnxOp) -> None:
    axis, order = op.attribute("axis", -1), op.attribute("p", 2)
    if order == 2:
        c.one("l2_normalization", op.inputs, {"axis": axis})
        return
    (norm,) = c.add("reduce", op.inputs, {"operation": "l1_norm", "axes": (axis,)})
    c.one("element_wise", [op.inputs[0], norm], {"operation": "divide"})


@converts("MeanVarianceNormalization")
def mean_variance_normalization(c: Conversion, op: OnnxOp) -> None:
    axes = tuple(op.attribute("axes", (0, 2, 3)))
    (mean,) = c.add("reduce", op.inputs, {"operation": "mean", "axes": axes})
    (centered,) = c.add("element_wise", [op.inputs[0], mean], {"operation": "subtract"})
    (square,) = c.add("unary", [centered], {"function": "square"})
    (variance,) = c.add("reduce", [square], {"operation": "mean", "axes": axes})
    (deviation,) = c.add("unary", [variance], {"function": "sqrt"})
    (kept,) = c.add("scale_shift", [deviation], {"shift": 1e-9})
    c.one("element_wise", [centered, kept], {"operation": "divide"})


# --- attention ----------------------------------------------------------------------------------------------------


@converts("Attention", domain=PATTERNS)
def attention_pattern(c: Conversion, op: OnnxOp) -> None:
    """softmax(query x keys x scale + mask) x value; the keys are given transposed."""
    query, keys, value, mask = op.inputs
    kind = c.type_of(keys)
    if kind.rank != 4:
        raise UnsupportedError("it has no axis of heads")
    (key,) = c.add("permute", [keys], {"axes": (0, 1, 3, 2)})
    inputs: list[str | Source] = [query, key, value, *([mask] if mask else [])]
    scale = rounded(op.attribute("scale", 1.0))
    c.one("scaled_dot_product_attention", inputs, {"scale": scale})
