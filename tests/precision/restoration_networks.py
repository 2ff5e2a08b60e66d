"""A U-Net that adds what it computes to its input, as restoration networks do, with weights of realistic magnitude."""

from __future__ import annotations

import numpy as np
from runtime_networks import RELU, layer

from designer.files.weight_random import random_weights
from designer.files.weights import Weights, required_weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.registry import Registry


def restoring_unet(features: int = 8, side: int = 64) -> Graph:
    """Two levels down and up again, two convolutions each; 472,387 parameters with 32 features."""
    layers = [layer("image", "input", dims=f"{side}x{side}x3")]

    def pair(name: str, source: str, count: int) -> str:
        layers.append(layer(f"{name}_a", "convolution", source, RELU, features=count, kernel="3x3"))
        layers.append(layer(f"{name}_b", "convolution", f"{name}_a", RELU, features=count, kernel="3x3"))
        return f"{name}_b"

    end = "image"
    skips = []
    for level in range(3):
        end = pair(f"enc_{level}", end, features << level)
        if level < 2:
            skips.append(end)
            layers.append(layer(f"pool_{level}", "pooling", end, operation="max", size="2x2", stride="2x2"))
            end = f"pool_{level}"
    for level in (1, 0):
        layers.append(layer(f"up_{level}", "upsample", end, factor="2x2", method="nearest"))
        layers.append(layer(f"cat_{level}", "concatenation", f"up_{level},{skips[level]}", axis="1"))
        end = pair(f"dec_{level}", f"cat_{level}", features << level)
    layers.append(layer("last", "convolution", end, None, features=3, kernel="3x3"))
    layers.append(layer("sum", "element_wise", "last,image", operation="add"))
    layers.append(layer("result", "output", "sum"))
    return Graph(layers, name="restoring unet")


def restoring_weights(graph: Graph, registry: Registry, seed: int = 1) -> Weights:
    """Random weights that keep the variance of the values; the residual is about a tenth of the range of an image."""
    weights = random_weights(required_weights(Inference(graph, registry)), seed)
    tensors = {
        key: array * np.float32((0.7 if key.layer == "last" else 2.4) if key.tensor == "kernel" else 1)
        for key, array in weights.tensors.items()
    }
    return Weights(tensors)
