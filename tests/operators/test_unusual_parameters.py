"""Combinations of parameters and shapes that no example has: shapes and numbers of torch, of ONNX and of the printed source."""

from __future__ import annotations

from typing import Any

import pytest
from operator_oracles import REGISTRY, Case, assert_onnx_agrees, case_of
from test_conformance import test_emitted_source_equals_module as check_source
from test_conformance import test_flops_equal_torch_counter as check_flops
from test_conformance import test_types_equal_torch_on_meta as check_types

from designer.graph.types import DataType, Size2D, TensorType
from designer.operators.api import BATCH, image

SIZE = Size2D


def typed(*shape: Any, dtype: DataType = DataType.FLOAT32) -> TensorType:
    return TensorType(shape, dtype)


WINDOW = {"size": SIZE(4, 3), "stride": SIZE(3, 2), "padding": SIZE(2, 1), "ceil_mode": True}
CASES: list[tuple[str, dict[str, Any], tuple[TensorType, ...]]] = [
    ("pooling", {**WINDOW, "operation": "average"}, (image(2, 8, 10),)),
    ("pooling", {**WINDOW, "operation": "average", "count_include_pad": False}, (image(2, 8, 10),)),
    ("pooling", {**WINDOW, "operation": "average", "divisor_override": 5}, (image(2, 8, 10),)),
    ("pooling", {**WINDOW, "operation": "max"}, (image(2, 8, 10),)),
    ("pooling", {**WINDOW, "operation": "lp", "norm": 3, "padding": SIZE(0, 0)}, (image(2, 8, 10),)),
    ("pooling", {"operation": "average", "size": SIZE(3, 3), "stride": SIZE(1, 2), "padding": SIZE(1, 0)}, (image(2, 8, 10),)),
    ("pooling", {"operation": "average", "size": SIZE(3, 3), "stride": SIZE(1, 2), "padding": SIZE(0, 1), "ceil_mode": True},
     (image(2, 8, 10),)),
    ("pooling", {"size": SIZE(2, 3), "stride": SIZE(5, 4), "padding": SIZE(1, 1), "dilation": SIZE(3, 2), "ceil_mode": True},
     (image(2, 9, 12),)),
    ("prelu", {"per_channel": False}, (typed(),)),
    ("prelu", {"per_channel": True}, (typed(BATCH, 3),)),
    ("gather", {"mode": "elements", "axis": 2}, (typed(4, 3, 5), typed(2, 2, 7, dtype=DataType.INT64))),
    ("gather", {"mode": "elements", "axis": -3, "wrap": True}, (typed(4, 3, 5), typed(6, 2, 5, dtype=DataType.INT64))),
    ("gather", {"mode": "slices", "axis": -2}, (typed(4, 3, 5), typed(2, dtype=DataType.INT64))),
    ("pad_to_multiple", {"multiple": 1}, (image(2, 5, 7),)),
    ("pad_to_multiple", {"multiple": 3, "mode": "reflect"}, (image(2, 6, 7),)),
    ("flip", {"axes": (-1, 1, 2)}, (image(2, 3, 4),)),
    ("flip", {"axes": ()}, (image(2, 3, 4),)),
    ("split", {"sizes": (1, 3, 2), "axis": -2}, (image(2, 6, 4),)),
    ("split", {"parts": 3, "axis": 2}, (image(2, 6, 4),)),
    ("adaptive_pooling", {"size": SIZE(3, 5)}, (image(2, 7, 8),)),
    ("adaptive_pooling", {"size": SIZE(4, 2), "operation": "max"}, (image(2, 7, 6),)),
    ("adaptive_pooling", {"size": SIZE(1, 1), "operation": "max"}, (image(2, 7, 6),)),
    ("dynamic_convolution", {"transposed": True, "stride": (2, 3), "before": (1, 0), "after": (0, 1), "dilation": (1, 2),
                             "output_padding": (1, 0), "groups": 2},
     (typed(2, 4, 5, 6), typed(4, 3, 3, 2), typed(6))),
    ("dynamic_convolution", {"transposed": True, "stride": (3,), "before": (2,), "after": (1,)}, (typed(2, 4, 5), typed(4, 3, 4))),
    ("dynamic_convolution", {"transposed": True, "after": (1, 2)}, (typed(2, 4, 5, 6), typed(4, 3, 3, 2))),
    ("dynamic_convolution", {"transposed": True, "before": (2, 1)}, (typed(2, 4, 5, 6), typed(4, 3, 3, 2))),
    ("dynamic_convolution", {"stride": (1, 2, 1), "before": (1, 0, 2), "after": (0, 1, 1), "dilation": (2, 1, 1)},
     (typed(2, 4, 5, 6, 7), typed(3, 4, 2, 2, 3))),
    ("convolution", {"kernel": SIZE(4, 2), "stride": SIZE(1, 3), "dilation": SIZE(2, 1), "features": 4, "groups": 2},
     (image(2, 9, 8),)),
    ("convolution", {"kernel": SIZE(4, 3), "padding_mode": "reflect", "features": 4}, (image(2, 9, 8),)),
    *(("convolution", {"kernel": SIZE(2, 2), "padding_mode": mode, "features": 3}, (image(2, 6, 7),))  # padding at one side only
      for mode in ("reflect", "replicate", "circular")),
    ("convolution", {"kernel": SIZE(3, 5), "padding": "tuple", "padding_tuple": SIZE(2, 1), "features": 4}, (image(2, 9, 8),)),
    ("transposed_convolution", {"kernel": SIZE(5, 3), "stride": SIZE(2, 3), "features": 4, "groups": 2}, (image(2, 5, 6),)),
    ("transposed_convolution", {"kernel": SIZE(2, 3), "stride": SIZE(3, 2), "padding": "valid", "output_padding": SIZE(2, 1),
                                "dilation": SIZE(1, 2), "features": 3, "apply_bias": False}, (image(2, 5, 6),)),
    ("transposed_convolution", {"kernel": SIZE(4, 3), "stride": SIZE(1, 1), "features": 3}, (image(2, 5, 6),)),
    ("reduce", {"operation": "product", "axes": (1, 3), "keep": False}, (image(2, 3, 4),)),
    ("reduce", {"operation": "log_sum", "axes": (-1,), "keep": True}, (image(2, 3, 4),)),
    ("reduce", {"operation": "l1_norm", "axes": (2, 3), "keep": False}, (image(2, 3, 4),)),
    ("top_k", {"k": 2, "axis": -2, "largest": False}, (image(2, 5, 4),)),
    ("arg_extreme", {"axis": 1, "keep": True, "last": True, "operation": "min"}, (image(3, 5, 4),)),
    ("matmul", {"transpose_a": True, "transpose_b": True}, (typed(2, 4, 3), typed(5, 4))),
    ("matmul", {"transpose_b": True}, (typed(3, 4), typed(2, 5, 4))),
    ("fully_connected", {"features": 5, "flatten": False}, (typed(BATCH, 3, 4),)),
    ("fully_connected", {"features": 5, "flatten": False, "apply_bias": False}, (typed(BATCH, 3, 2, 4),)),
    ("instance_normalization", {"track_running_stats": True, "affine": False, "epsilon": 0.1}, (image(3, 4, 5),)),
    ("instance_normalization", {"track_running_stats": True, "epsilon": 0.1}, (typed(BATCH, 3, 4),)),
    ("expand", {"shape": (-1, 4, 3, -1)}, (typed(2, 1, 3, 1),)),
    ("expand", {"shape": (5, -1, 4, 3)}, (typed(2, 1, 3),)),
    ("upsample", {"factor": SIZE(3, 2), "method": "bicubic"}, (image(2, 4, 5),)),
    ("upsample", {"factor": SIZE(3, 2), "method": "bilinear", "align_corners": True}, (image(2, 4, 5),)),
    ("resize", {"size": SIZE(5, 9), "method": "bicubic", "align_corners": True}, (image(2, 6, 7),)),
    ("unpooling", {"size": SIZE(3, 2)}, (image(2, 3, 4),)),
    ("convolution", {"kernel": SIZE(3, 1), "padding_mode": "reflect", "features": 4}, (image(2, 9, 8),)),
    ("convolution", {"kernel": SIZE(1, 3), "padding_mode": "replicate", "features": 4}, (image(2, 9, 8),)),
    ("dynamic_convolution", {"transposed": True, "dilation": (2, 3), "output_padding": (1, 2)}, (typed(2, 4, 5, 6), typed(4, 3, 3, 2))),
    ("dynamic_convolution", {"transposed": True, "stride": (2, 1), "dilation": (4, 3), "output_padding": (3, 2), "after": (2, 1)},
     (typed(2, 4, 5, 6), typed(4, 3, 3, 2), typed(3))),
    ("dynamic_convolution", {"transposed": True, "stride": (2,), "dilation": (5,), "output_padding": (4,), "after": (1,), "before": (2,)},
     (typed(2, 4, 5), typed(4, 3, 3), typed(3))),
    ("softplus", {"beta": 30.0, "threshold": 1.0}, (image(2, 8, 9),)),
    ("softplus", {"beta": 0.1, "threshold": 0.2}, (image(2, 8, 9),)),
]  # fmt: skip


def made(kind: str, params: dict[str, Any], types: tuple[TensorType, ...]) -> Case:
    cls = REGISTRY.get(kind) or REGISTRY.activations[kind]
    return case_of(cls(**params), types, f"{kind} {params}")


@pytest.mark.parametrize(("kind", "params", "types"), CASES, ids=[f"{kind}-{n}" for n, (kind, *_) in enumerate(CASES)])
def test_unusual_parameters(kind: str, params: dict[str, Any], types: tuple[TensorType, ...]) -> None:
    case = made(kind, params, types)
    assert not list(case.subject.faults())
    for check in (lambda case: check_types(case, 2), check_flops, check_source, assert_onnx_agrees):
        check(case)
