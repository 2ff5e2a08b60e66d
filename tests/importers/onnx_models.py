"""Small ONNX models for the tests of the import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Mapping[str, Sequence[int | str] | None],
    weights: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = 20,
    producer: str = "test",
    domains: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A model of float32 tensors."""
    graph = helper.make_graph(
        list(nodes),
        "network",
        [helper.make_tensor_value_info(name, FLOAT, list(shape)) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None if s is None else list(s)) for name, s in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in (domains or {}).items())]
    return helper.make_model(graph, opset_imports=opsets, producer_name=producer, ir_version=8)


def saved(proto: onnx.ModelProto, folder: Path) -> Path:
    """The model as a file."""
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def small_network() -> onnx.ModelProto:
    """Convolution, batch normalization, ReLU, an unknown operator, a residual, and a linear layer; any batch and size."""
    weights = {
        "block.conv.weight": random(4, 3, 3, 3),
        "block.conv.bias": random(4, seed=1),
        "block.norm.weight": random(4, seed=2),
        "block.norm.bias": random(4, seed=3),
        "block.norm.mean": random(4, seed=4),
        "block.norm.var": np.abs(random(4, seed=5)) + 0.5,
        "head.weight": random(4, 10, seed=6),
        "head.bias": random(10, seed=7),
    }
    names = list(weights)
    nodes = [
        helper.make_node("Conv", ["image", *names[:2]], ["c"], name="/block/conv/Conv", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", *names[2:6]], ["n"], name="/block/norm/BatchNormalization"),
        helper.make_node("Relu", ["n"], ["r"], name="/block/act/Relu"),
        helper.make_node("ThresholdedRelu", ["r"], ["t"], name="/block/Thresholded", alpha=0.25),
        helper.make_node("Add", ["t", "c"], ["a"], name="/block/Add"),
        helper.make_node("GlobalAveragePool", ["a"], ["p"], name="/head/Pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="/head/Flatten"),
        helper.make_node("Gemm", ["f", "head.weight", "head.bias"], ["logits"], name="/head/Gemm"),
    ]
    proto = model(nodes, {"image": ["batch", 3, "height", "width"]}, {"logits": ["batch", 10]}, weights, opset=17)
    helper.set_model_props(proto, {"license": "MIT", "trained on": "nothing"})
    proto.doc_string = "A network for tests."
    return proto
