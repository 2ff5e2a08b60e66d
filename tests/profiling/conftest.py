"""A small U-Net with an attached activation, a branch, a concatenation and an addition; seeded weights."""

from __future__ import annotations

import numpy as np
import pytest
from profiling_networks import RELU, layer_

from designer.files.weights import WeightKey, Weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.registry import Registry, load


@pytest.fixture(scope="session")
def profiling_registry() -> Registry:
    return load(entry_points=False)


@pytest.fixture
def small_graph() -> Graph:
    return Graph(
        [
            layer_("image", "input", dims="32x24x3", scale="1.0", shift="0", tiling="0", rgba="false"),
            layer_("conv a", "convolution", "image", RELU, features=8, kernel="3x3"),
            layer_("pool", "pooling", "conv a", operation="max", size="2x2", stride="2x2"),
            layer_("conv_b", "convolution", "pool", RELU, features=8, kernel="3x3"),
            layer_("up", "upsample", "conv_b", factor="2x2"),
            layer_("cat", "concatenation", "up,conv a"),
            layer_("conv_c", "convolution", "cat", features=3, kernel="5x5", apply_bias="false"),
            layer_("sum", "element_wise", "conv_c,image", operation="add"),
            layer_("result", "output", "sum"),
        ],
        name="small",
    )


@pytest.fixture
def small_inference(small_graph, profiling_registry) -> Inference:
    return Inference(small_graph, profiling_registry)


def seeded_weights(inference: Inference, seed: int = 0) -> Weights:
    rng = np.random.default_rng(seed)
    tensors = {}
    for layer in inference.graph:
        read, state = inference.read(layer.name), inference.states[layer.name]
        for weight in read.operator.weights(state.inputs):
            tensors[WeightKey(layer.name, weight.name)] = rng.normal(0, 0.1, weight.shape).astype(np.float32)
    return Weights(tensors, source="test", note="random weights (seed 0)")


@pytest.fixture
def small_weights(small_inference) -> Weights:
    return seeded_weights(small_inference)
