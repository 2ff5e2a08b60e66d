"""A network with templates inside of templates, and the same network with every layer written out by hand."""

from __future__ import annotations

from pathlib import Path

from designer.files.document import read_document
from designer.files.weights import WeightKey, Weights, random_weights, required_weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.registry import Registry

DATA = Path(__file__).parent / "data"
CONV = {"features": "8", "kernel": "3x3"}


def nested() -> Graph:
    """`a` is a residual block with separate weights, `b` one with shared weights, `c` holds one of each kind."""
    graph = read_document(DATA / "good" / "templates.xml").graph
    assert graph is not None
    return graph


def seeded(graph: Graph, registry: Registry, seed: int = 0) -> Weights:
    return random_weights(required_weights(Inference(graph, registry)), seed)


def by_hand() -> Graph:
    """What `nested` computes, without templates."""
    layers = [
        Layer("in", "input", params={"dims": "16x12x3", "tiling": "0"}),
        Layer("head", "convolution", inputs=(Source("in"),), params=CONV),
    ]

    def residual(name: str, source: str) -> str:
        layers.append(
            Layer(f"{name}_conv_1", "convolution", (0, 0), (Source(source),), CONV, ActivationSpec("relu")),
        )
        layers.append(Layer(f"{name}_conv_2", "convolution", (0, 0), (Source(f"{name}_conv_1"),), CONV))
        reads = (Source(f"{name}_conv_2"), Source(source))
        layers.append(Layer(f"{name}_add", "element_wise", (0, 0), reads, {"operation": "add"}))
        return f"{name}_add"

    behind_a = residual("a", "head")
    layers.append(Layer("a_prelu", "activation", (0, 0), (Source(behind_a),), activation=ActivationSpec("prelu")))
    residual("b", "a_prelu")
    residual("r2", residual("r", "b_conv_1"))
    layers.append(Layer("out", "output", inputs=(Source("r2_conv_1"),)))
    return Graph(layers, name="by hand")


def weights_by_hand(weights: Weights) -> Weights:
    """The weights of `nested` under the names of `by_hand`."""
    owners = {"a": "a", "b": "residual", "r": "c.r", "r2": "residual"}
    tensors = {}
    for key, array in weights.tensors.items():
        if key.layer == "head":
            tensors[key] = array
        if key.layer == "a":
            tensors[WeightKey("a_prelu", key.tensor)] = array
        for name, owner in owners.items():
            if key.layer in (f"{owner}.conv_1", f"{owner}.conv_2"):
                tensors[WeightKey(f"{name}_{key.layer.rpartition('.')[2]}", key.tensor)] = array
    return Weights(tensors)
