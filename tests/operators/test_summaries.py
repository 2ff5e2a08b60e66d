"""The short text that the canvas shows below the title of a layer."""

from __future__ import annotations

import pytest

from designer.graph.model import Layer
from designer.operators.registry import load

REGISTRY = load(entry_points=False)
LONG = "n" * 50


@pytest.mark.parametrize(
    ("type_name", "params", "text"),
    [
        ("convolution", {"kernel": "5x3", "features": "7"}, "5x3 · 7"),
        ("convolution", {"kernel": "5x3", "features": "7", "stride": "1x2"}, "5x3 / 1x2 · 7"),
        ("convolution_1d", {"kernel": "5", "features": "7"}, "5 · 7"),
        ("convolution_1d", {"kernel": "5", "features": "7", "stride": "2"}, "5 / 2 · 7"),
        ("convolution_3d", {"kernel": "5x3x1", "features": "7"}, "5x3x1 · 7"),
        ("convolution_3d", {"kernel": "5x3x1", "features": "7", "stride": "1x1x2"}, "5x3x1 / 1x1x2 · 7"),
        ("separable_convolution", {"kernel": "5x3", "features": "7", "stride": "2x1"}, "5x3 / 2x1 · 7"),
        ("depthwise_convolution", {"kernel": "5x3"}, "5x3"),
        ("depthwise_convolution", {"kernel": "5x3", "stride": "2x1"}, "5x3 / 2x1"),
        ("transposed_convolution", {"kernel": "5x3", "features": "7", "stride": "2x4"}, "5x3 x 2x4 · 7"),
        ("pooling", {"operation": "max", "size": "3x2", "stride": "3x2"}, "max 3x2"),
        ("pooling", {"operation": "average", "size": "3x2", "stride": "2x3"}, "average 3x2 / 2x3"),
        ("adaptive_pooling", {"operation": "average", "size": "5x3"}, "average to 5x3"),
        ("global_pooling", {"operation": "max"}, "max"),
        ("dynamic_convolution", {"transposed": "true"}, "transposed"),
        ("dynamic_convolution", {}, ""),
        ("squeeze", {"axes": "3,2"}, "axes 3,2"),
        ("flip", {"axes": "1,3"}, "axes 1,3"),
        ("top_k", {"k": "4", "axis": "2"}, "4 · axis 2"),
        ("selector", {"indices": "5,0"}, "5,0"),
        ("selector", {"indices": "5,0,1,2,3,4"}, "5,0,1,2,3,4"),
        ("selector", {"indices": "6,5,4,3,2,1,0", "axis": "2"}, "axis 2 · 6,5,4,3,2,1,..."),
        ("concatenation", {}, ""),
        ("concatenation", {"axis": "3"}, "axis 3"),
        ("split", {"parts": "3"}, "3 parts"),
        ("unsqueeze", {"axis": "2"}, "axis 2"),
        ("slice", {"axis": "2", "start": "1", "end": "5"}, "axis 2 · 1:5"),
        ("slice", {"axis": "2", "start": "1", "end": "9", "step": "3"}, "axis 2 · 1:9:3"),
        ("stack", {"axis": "2"}, "axis 2"),
        ("pad_to_valid_size", {"multiple": "8x4"}, "multiple of 8x4"),
        ("pad_to_valid_size", {"multiple": "1x1", "minimum": "9x7"}, "≥ 9x7"),
        ("pad_to_valid_size", {"multiple": "8x4", "minimum": "9x7"}, "multiple of 8x4 · ≥ 9x7"),
        ("permute", {"axes": "0,3,1,2"}, "0,3,1,2"),
        ("padding", {"mode": "reflect", "left": "1", "top": "2", "right": "3", "bottom": "4"}, "reflect 1,2,3,4"),
        ("crop", {"left": "1", "top": "2", "right": "3", "bottom": "4"}, "1,2,3,4"),
        ("crop", {"bottom": "4"}, "0,0,0,4"),
        ("crop", {}, "to size"),
        ("scatter", {"axis": "2"}, "axis 2"),
        ("scatter", {"axis": "2", "reduction": "add"}, "add · axis 2"),
        ("triangle", {"part": "upper"}, "upper"),
        ("triangle", {"part": "upper", "diagonal": "2"}, "upper +2"),
        ("triangle", {"part": "lower", "diagonal": "-1"}, "lower -1"),
        ("dropout", {"probability": "0.25"}, "0.25"),
        ("l1_loss", {}, ""),
        ("l1_loss", {"weight": "0.5"}, "x 0.5"),
        ("multi_head_attention", {"heads": "4"}, "4 heads"),
        ("multi_head_attention", {"heads": "4", "causal": "true"}, "4 heads · causal"),
        ("scaled_dot_product_attention", {}, ""),
        ("scaled_dot_product_attention", {"causal": "true"}, "causal"),
        ("lstm", {"hidden": "12"}, "12"),
        ("gru", {"hidden": "12", "bidirectional": "true"}, "12 x 2"),
        ("rnn", {"hidden": "12", "layers": "3"}, "12 · 3 layers"),
        ("template", {"template": "part"}, "part"),
        ("template", {"template": "part", "shared_weights": "true"}, "part · shared weights"),
        ("template", {"shared_weights": "true"}, ""),
        ("template", {"template": LONG}, f"{LONG[:39]}…"),
        ("template", {"template": LONG[:40]}, LONG[:40]),
        ("reduce", {"operation": "sum", "axes": "2,3"}, "sum · 2,3"),
        ("reduce", {"operation": "sum", "axes": ""}, "sum · all axes"),
        ("arg_extreme", {"operation": "min", "axis": "-1"}, "min · axis -1"),
        ("cumulative", {"axis": "2"}, "axis 2"),
        ("cast", {"target": "int64"}, "to int64"),
        ("bitwise", {"operation": "shift_left"}, "shift left"),
        ("compare", {"operation": "less"}, "less"),
        ("logical", {"operation": "xor"}, "xor"),
        ("element_wise", {"operation": "multiply"}, "multiply"),
        ("crop_padding", {"multiply": "4x4", "divide": "2x2"}, "x 4x4 / 2x2"),
        ("crop_padding", {"multiply": "2x2", "divide": "2x2"}, ""),
        ("expand", {"shape": "1,3,5"}, "1 x 3 x 5"),
        ("gather", {"mode": "elements", "axis": "2"}, "elements · axis 2"),
        ("one_hot", {"depth": "10"}, "10"),
        ("pad_tensor", {"before": "0,1", "after": "2,3"}, "0,1 · 2,3"),
        ("pad_to_multiple", {"multiple": "24"}, "24"),
        ("reshape", {"shape": "2,-1"}, "2 x -1"),
        ("tile", {"repeats": "1,2,3"}, "1x2x3"),
        ("depth_to_space", {"block_size": "3"}, "3x3"),
        ("unpooling", {"size": "3x2"}, "3x2"),
        ("bilinear", {"features": "7"}, "7"),
        ("fully_connected", {"features": "7"}, "7"),
        ("einsum", {"equation": "ij,jk->ik"}, "ij,jk->ik"),
        ("colorconversion", {"source": "linear_rgb", "target": "lab"}, "linear rgb to lab"),
        ("group_normalization", {"groups": "4"}, "4 groups"),
        ("l2_normalization", {"axis": "2"}, "axis 2"),
        ("local_response_normalization", {"size": "7"}, "7 channels"),
        ("tensor_input", {"shape": "1,3", "dtype": "int64"}, "1 x 3 int64"),
        ("unary", {"function": "clip", "low": "-1", "high": "2.5"}, "clip -1..2.5"),
        ("unary", {"function": "sin"}, "sin"),
        ("scale_shift", {"scale": "2", "shift": "-0.5"}, "x 2 + -0.5"),
        ("scale_shift", {"learned": "true"}, "learned"),
        ("space_to_depth", {"block_size": "3"}, "3x3"),
        ("resize", {"method": "nearest", "size": "5x3"}, "nearest to 5x3"),
        ("upsample", {"method": "nearest", "factor": "2x3"}, "nearest 2x3"),
        ("upsample", {"method": "nearest", "fixed_upscale": "5x3"}, "nearest to 5x3"),
        ("upscale_concat", {"method": "nearest", "factor": "2x3"}, "nearest 2x3"),
        ("input", {"dims": "16x12x3"}, "16x12x3"),
        ("input_cst", {"dims": "16x12x3", "source": "fill", "value": "0.25"}, "16x12x3 · 0.25"),
        ("input_cst", {"dims": "16x12x3", "source": "weights", "value": "0.25"}, "16x12x3"),
        ("output", {"analysis_view": "image"}, ""),
        ("gaussian_blur", {"sigma": "1.5"}, "sigma 1.5"),
        ("embedding", {"vocabulary": "100", "features": "8"}, "100 · 8"),
    ],
)  # fmt: skip
def test_summaries_have_the_values_that_differ_from_the_usual(
    type_name: str, params: dict[str, str], text: str
) -> None:
    read = REGISTRY.read(Layer("x", type_name, params=params))
    assert read.diagnostics == (), [str(d) for d in read.diagnostics]
    assert read.operator is not None
    assert read.operator.summary() == text


@pytest.mark.parametrize(
    ("type_name", "params", "text"),
    [
        ("leaky_relu", {"negative_slope": "0.25"}, "0.25"),
        ("relu", {}, ""),
        ("relu", {"alpha": "0.5"}, "0.5"),
        ("gelu", {"approximate": "none"}, ""),
        ("gelu", {"approximate": "tanh"}, "tanh"),
        ("softmax", {}, ""),
        ("softmax", {"axis": "3"}, "axis 3"),
    ],
)
def test_summaries_of_activations(type_name: str, params: dict[str, str], text: str) -> None:
    cls = REGISTRY.activations[type_name]
    parsed = {name: float(value) if name in ("negative_slope", "alpha") else value for name, value in params.items()}
    parsed = {name: int(value) if name == "axis" else value for name, value in parsed.items()}
    assert cls(**parsed).summary() == text
