"""Layers with weights: convolutions, linear and recurrent layers, normalizations, embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from designer.graph.types import DataType
from designer.importers.pytorch.conversion import (
    BatchError,
    Constant,
    Conversion,
    Merged,
    Repeated,
    TraceNode,
    UnsupportedError,
    Value,
    axes_of,
)
from designer.importers.pytorch.nodes.table import converts
from designer.importers.windows import padding as padding_params
from designer.importers.windows import size
from designer.operators.params import Value as Param

MAX_RANK = 5  # of linear layers and normalizations
_CONVOLUTION = {1: "convolution_1d", 2: "convolution", 3: "convolution_3d"}


def each(values: Any, count: int) -> list[int]:
    """A number for each spatial axis."""
    if isinstance(values, int):
        return [values] * count
    found = list(values)
    return found * count if len(found) == 1 else found


@converts("conv1d", "conv2d", "conv3d", "convolution", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def convolution(c: Conversion, node: TraceNode) -> Value:
    x = c.plain(node.get("input"))
    kernel, bias = node.get("weight"), node.get("bias")
    rank = x.rank - 2
    if rank not in _CONVOLUTION or (shape_of(kernel) and len(shape_of(kernel)) != x.rank):
        raise UnsupportedError("its input has no batch")
    strides, dilations = each(node.get("stride", 1), rank), each(node.get("dilation", 1), rank)
    sizes = shape_of(kernel)[2:]
    pads = _pads(node.get("padding", 0), sizes, dilations)
    if node.op.startswith("conv_transpose") or node.get("transposed"):
        return _transposed(c, node, x, strides, dilations, pads)
    x, pads = _with_border(c, x, pads)
    groups = node.get("groups", 1)
    if not isinstance(kernel, Constant) or (bias is not None and not isinstance(bias, Constant)):
        params: dict[str, Param] = {
            "stride": tuple(strides),
            "before": tuple(before for before, _ in pads),
            "after": tuple(after for _, after in pads),
            "dilation": tuple(dilations),
            "groups": groups,
        }
        inputs = [x, c.plain(kernel), *([c.plain(bias)] if bias is not None else [])]
        return c.layer("dynamic_convolution", inputs, params)
    padding = padding_params(pads, sizes, dilations)
    if padding is None:
        before, after = zip(*pads, strict=True)
        x = c.layer("pad_tensor", [x], {"before": (0, 0, *before), "after": (0, 0, *after), "value": 0.0})
        padding = {"padding": "valid"}
    params = {
        "features": kernel.tensor.shape[0],
        "kernel": size(sizes),
        "stride": size(strides),
        "dilation": size(dilations),
        "groups": groups,
        "apply_bias": bias is not None,
        **padding,
    }
    return c.layer(_CONVOLUTION[rank], [x], params, weights=_weights(c, kernel=kernel, bias=bias))


def _with_border(c: Conversion, x: Value, pads: list[tuple[int, int]]) -> tuple[Value, list[tuple[int, int]]]:
    """Borders of zeros that generated code adds in the same statement belong to the convolution."""
    part = c.part(x, "padding")
    if part is None or part.params.get("mode", "constant") != "constant" or any(map(any, pads)):
        return x, pads
    if float(part.params.get("value", "0")):
        return x, pads
    top, bottom, left, right = (int(part.params.get(side, "0")) for side in ("top", "bottom", "left", "right"))
    return c.take(part), [(top, bottom), (left, right)]


def _weights(c: Conversion, **tensors: Any) -> dict[str, Constant]:
    return {key: c.weight(tensor) for key, tensor in tensors.items() if tensor is not None}


def shape_of(item: Any) -> list[int]:
    """The shape of a kernel: a constant, or a tensor without a batch."""
    if isinstance(item, Constant):
        return list(map(int, item.tensor.shape))
    if isinstance(item, Value):
        return [item.size(axis) for axis in range(item.rank)]
    raise UnsupportedError("its kernel is not a tensor")


def _pads(given: Any, sizes: Sequence[int], dilations: Sequence[int]) -> list[tuple[int, int]]:
    if given == "valid":
        return [(0, 0)] * len(sizes)
    if given == "same":
        totals = [d * (k - 1) for k, d in zip(sizes, dilations, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    return [(pad, pad) for pad in each(given, len(sizes))]


def _transposed(
    c: Conversion,
    node: TraceNode,
    x: Value,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> Value:
    kernel, bias, rank = node.get("weight"), node.get("bias"), x.rank - 2
    extra, groups = each(node.get("output_padding", 0), rank), node.get("groups", 1)
    if rank != 2 or not isinstance(kernel, Constant) or not isinstance(bias, Constant | None):
        params: dict[str, Param] = {
            "transposed": True,
            "stride": tuple(strides),
            "before": tuple(before for before, _ in pads),
            "after": tuple(after for _, after in pads),
            "dilation": tuple(dilations),
            "output_padding": tuple(extra),
            "groups": groups,
        }
        inputs = [x, c.plain(kernel), *([c.plain(bias)] if bias is not None else [])]
        return c.layer("dynamic_convolution", inputs, params)
    padded = any(map(any, pads))
    params = {
        "features": int(kernel.tensor.shape[1]) * groups,
        "kernel": size(shape_of(kernel)[2:]),
        "stride": size(strides),
        "dilation": size(dilations),
        "groups": groups,
        "output_padding": size(extra),
        "apply_bias": bias is not None,
        "padding": "tuple" if padded else "valid",
        "padding_tuple": size([before for before, _ in pads]),
    }
    return c.layer("transposed_convolution", [x], params, weights=_weights(c, kernel=kernel, bias=bias))


# --- linear layers ------------------------------------------------------------------------------------------------


def fully_connected(c: Conversion, item: Any, kernel: Constant, bias: Constant | None) -> Value:
    """A linear layer along the last axis."""
    x = c.value(item)
    if isinstance(x.shape[-1], Merged):
        raise BatchError("it works along the batch")
    part = c.part(x, "flatten")
    if part is not None:
        x = c.take(part)
        params: dict[str, Param] = {"features": int(kernel.tensor.shape[0]), "apply_bias": bias is not None}
        return c.layer("fully_connected", [x], params, weights=_weights(c, kernel=kernel, bias=bias))
    shape = (*x.shape[:-1], int(kernel.tensor.shape[0]))
    whole = c.reshaped(x, (1, x.size(0))) if x.rank == 1 else merged_rows(c, x, 1)
    params = {
        "features": int(kernel.tensor.shape[0]),
        "apply_bias": bias is not None,
        "flatten": len(axes_of(whole.shape)) == 2,
    }
    weights = _weights(c, kernel=kernel, bias=bias)
    made = c.layer("fully_connected", [whole], params, weights=weights, shape=(*whole.shape[:-1], shape[-1]))
    return c.reshaped(made, shape) if whole is not x else made


def merged_rows(c: Conversion, x: Value, kept: int) -> Value:
    """A tensor with at most `MAX_RANK` axes: those between the first and the last `kept` become one if there are more."""
    axes = axes_of(x.shape)
    if len(axes) <= MAX_RANK:
        return x
    if any(isinstance(size, Merged) for size in x.shape[1:]) or x.shape[0] not in (Merged(), axes[0]):
        raise BatchError("the batch is merged with other axes")
    count = prod(size for size in axes[1 : len(axes) - kept] if isinstance(size, int))
    return c.reshaped(x, (x.shape[0], count, *x.shape[x.rank - kept :]))


@converts("linear")
def linear(c: Conversion, node: TraceNode) -> Value:
    from designer.importers.pytorch.nodes.arithmetic import aligned, product

    x, kernel, bias = node.get("input"), node.get("weight"), node.get("bias")
    if isinstance(kernel, Constant) and isinstance(bias, Constant | None):
        return fully_connected(c, x, kernel, bias)
    made = product(c, x, c.permuted(kernel, (1, 0)))
    if bias is None:
        return made
    values, shape = aligned(c, made, bias)
    return c.layer("element_wise", values, {"operation": "add"}, shape=shape)


@converts("bilinear")
def bilinear(c: Conversion, node: TraceNode) -> Value:
    kernel, bias = node.get("weight"), node.get("bias")
    params: dict[str, Param] = {"features": int(c.weight(kernel).tensor.shape[0]), "apply_bias": bias is not None}
    inputs = [c.plain(node.get("input1")), c.plain(node.get("input2"))]
    return c.layer("bilinear", inputs, params, weights=_weights(c, kernel=kernel, bias=bias))


@converts("embedding")
def embedding(c: Conversion, node: TraceNode) -> Value:
    table, index = c.weight(node.get("weight")), c.value(node.get("indices"))
    if index.dtype is not DataType.INT64:
        index = c.layer("cast", [index], {"target": "int64"}, shape=index.shape)
    vocabulary, features = map(int, table.tensor.shape)
    params: dict[str, Param] = {"vocabulary": vocabulary, "features": features}
    return c.layer("embedding", [index], params, weights={"table": table}, shape=(*index.shape, features))


# --- recurrent layers ---------------------------------------------------------------------------------------------

_RECURRENT = {"lstm": "lstm", "gru": "gru", "rnn_tanh": "rnn", "rnn_relu": "rnn"}


@converts(*_RECURRENT)
def recurrent(c: Conversion, node: TraceNode) -> tuple[Value, ...]:
    states = node.get("hx")
    for state in states if isinstance(states, list | tuple) else [states]:
        constant = state.constant if isinstance(state, Repeated) else state
        if not isinstance(constant, Constant) or bool(constant.tensor.any()):
            raise UnsupportedError("its first state is not zero")
    given, biased, layers = list(node.get("params")), bool(node.get("has_biases")), node.get("num_layers")
    both = bool(node.get("bidirectional"))
    kinds = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if biased else [])]
    names = [
        f"{kind}_l{layer}{suffix}"
        for layer in range(layers)
        for suffix in ("", "_reverse")[: 2 if both else 1]
        for kind in kinds
    ]
    if len(names) != len(given):
        raise UnsupportedError("it projects its state")
    x = c.plain(node.get("input"))
    if not node.get("batch_first"):
        x = c.permuted(x, (1, 0, 2))
    params: dict[str, Param] = {
        "hidden": int(given[1].tensor.shape[1]),
        "layers": layers,
        "bidirectional": both,
        "apply_bias": biased,
    }
    if node.op == "rnn_relu":
        params["nonlinearity"] = "relu"
    weights = {name: c.weight(tensor) for name, tensor in zip(names, given, strict=True)}
    first = c.layer(_RECURRENT[node.op], [x], params, weights=weights)
    name = first.source.layer
    found = [c.wrap(source) for source in c.outputs(name)]
    if not node.get("batch_first"):
        found[0] = c.permuted(found[0], (1, 0, 2))
    return tuple(found)


# --- normalization ------------------------------------------------------------------------------------------------


def _affine(node: TraceNode) -> tuple[Any, Any]:
    """The scale and the bias of a normalization; one that is left out is 1 or 0, unless both are."""
    import torch

    scale, bias = node.get("weight"), node.get("bias")
    if scale is None and isinstance(bias, Constant):
        scale = Constant(torch.ones_like(bias.tensor))
    elif bias is None and isinstance(scale, Constant):
        bias = Constant(torch.zeros_like(scale.tensor))
    return scale, bias


@converts("batch_norm", "_native_batch_norm_legit_no_training", "cudnn_batch_norm")
def batch_norm(c: Conversion, node: TraceNode) -> Value:
    if node.get("training") or node.get("running_mean") is None:
        raise UnsupportedError("it uses the statistics of the batch")
    scale, bias = _affine(node)
    weights = _weights(c, scale=scale, bias=bias, mean=node.get("running_mean"), variance=node.get("running_var"))
    params: dict[str, Param] = {"epsilon": float(node.get("eps", 1e-5)), "affine": scale is not None}
    return c.layer("batch_normalization", [c.plain(node.get("input"))], params, weights=weights)


@converts("instance_norm")
def instance_norm(c: Conversion, node: TraceNode) -> Value:
    if not node.get("use_input_stats", True):
        raise UnsupportedError("it uses running statistics")
    scale, bias = _affine(node)
    params: dict[str, Param] = {"epsilon": float(node.get("eps", 1e-5)), "affine": scale is not None}
    weights = _weights(c, scale=scale, bias=bias)
    return c.layer("instance_normalization", [c.plain(node.get("input"))], params, weights=weights)


@converts("group_norm")
def group_norm(c: Conversion, node: TraceNode) -> Value:
    scale, bias = _affine(node)
    params: dict[str, Param] = {
        "groups": node.get("num_groups"),
        "epsilon": float(node.get("eps", 1e-5)),
        "affine": scale is not None,
    }
    weights = _weights(c, scale=scale, bias=bias)
    return c.layer("group_normalization", [c.plain(node.get("input"))], params, weights=weights)


@converts("layer_norm", "rms_norm")
def layer_norm(c: Conversion, node: TraceNode) -> Value:
    import torch

    x = c.value(node.get("input"))
    scale, bias = _affine(node) if node.op == "layer_norm" else (node.get("weight"), None)
    epsilon = node.get("eps", 1e-5 if node.op == "layer_norm" else float(torch.finfo(torch.float32).eps))
    params: dict[str, Param] = {
        "axis": -len(node.get("normalized_shape")),
        "epsilon": float(epsilon),
        "affine": scale is not None,
    }
    type = "layer_normalization" if node.op == "layer_norm" else "rms_normalization"
    whole = merged_rows(c, x, len(node.get("normalized_shape")))
    made = c.layer(type, [whole], params, weights=_weights(c, scale=scale, bias=bias), shape=whole.shape)
    return c.reshaped(made, x.shape)
