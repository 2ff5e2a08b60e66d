"""Random networks whose channels meet in every way: concatenation, addition, depthwise filters, normalization, flattening."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
from numpy.typing import NDArray

from designer.files.weights import WeightKey, Weights, random_weights, required_weights
from designer.graph.commands import replace_layers
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template_commands import make_template
from designer.operators.registry import load
from designer.runtime.session import Session
from designer.surgery.operations import Patient

REGISTRY = load(entry_points=False)
KINDS = (
    "conv",
    "conv",
    "norm",
    "depthwise",
    "grouped",
    "separable",
    "transposed",
    "pool",
    "relu",
    "add",
    "concat",
    "gate",
    "group norm",
    "shuffle",
    "slice",
    "split",
)


def layer(name: str, kind: str, inputs: str = "", activation: str = "", **params: object) -> Layer:
    """A layer with its inputs in one text and parameters of any type."""
    return Layer(
        name,
        kind,
        inputs=tuple(map(Source.parse, inputs.split())),
        params={key: str(value) for key, value in params.items()},
        activation=ActivationSpec(activation) if activation else None,
    )


class Builder:
    """Layers on an 8 x 8 image with a running tensor, and earlier ones to meet again."""

    def __init__(self, seed: int, kinds: Sequence[str] = KINDS) -> None:
        self.random = Random(seed)
        self.kinds = kinds
        self.layers = [Layer("in", "input", params={"dims": "8x8x3"})]
        self.seen: list[tuple[str, int]] = []
        self.now, self.count = "in", 3

    def add(self, kind: str, *inputs: str, activation: str = "", **params: object) -> str:
        name = f"{kind}_{len(self.layers)}"
        spec = ActivationSpec(activation) if activation else None
        texts = {key: str(value) for key, value in params.items()}
        sources = tuple(map(Source.parse, inputs or (self.now,)))
        self.layers.append(Layer(name, kind, inputs=sources, params=texts, activation=spec))
        self.now = name
        return name

    def conv(self, features: int, kernel: int = 3) -> None:
        activation = self.random.choice(("", "relu", "sigmoid"))
        bias = self.random.choice(("true", "false"))
        self.add("convolution", activation=activation, features=features, kernel=f"{kernel}x{kernel}", apply_bias=bias)
        self.count = features

    def step(self, kind: str) -> None:
        features = self.random.randint(2, 6)
        others = [name for name, count in self.seen if count == self.count and name != self.now]
        match kind:
            case "conv":
                self.conv(features, self.random.choice((1, 3)))
            case "norm":
                self.add("batch_normalization", activation=self.random.choice(("", "relu")))
            case "depthwise":
                multiplier = self.random.choice((1, 1, 2))
                self.add("depthwise_convolution", multiplier=multiplier)
                self.count *= multiplier
            case "grouped":
                self.add("convolution", features=self.count, groups=self.count)
            case "separable":
                self.add("separable_convolution", features=features)
                self.count = features
            case "transposed":
                self.add("transposed_convolution", features=features, stride="1x1")
                self.count = features
            case "pool":
                self.add("pooling", size="3x3", stride="1x1", padding="1x1")
            case "relu":
                self.add("activation", activation="relu")
            case "group norm" | "shuffle" | "slice" | "split":
                self.rearrange(kind)
            case "add" if others:
                self.add("element_wise", self.now, self.random.choice(others))
            case "concat" if self.seen:
                name, count = self.random.choice(self.seen)
                self.add("concatenation", self.now, name)
                self.count += count
            case "gate":
                source = self.now
                self.add("global_pooling")
                self.add("convolution", features=self.count, kernel="1x1", activation="sigmoid")
                self.add("element_wise", source, self.now, operation="multiply")

    def rearrange(self, kind: str) -> None:
        """Layers that reorder or select channels."""
        match kind:
            case "group norm" if self.count % 2 == 0:
                self.add("group_normalization", groups=self.random.choice((2, self.count)))
            case "shuffle":
                mode = self.random.choice(("channel_dominant", "pixel_dominant"))
                self.add("space_to_depth", mode=mode)
                self.conv(4 * self.count, 1)
                self.add("depth_to_space", mode=mode)
                self.count //= 4
            case "slice" if self.count > 2:
                start, end = self.random.choice(((0, 2), (1, 0), (-2, 0), (1, -1)))
                self.add("slice", start=start, end=end)
                self.count = len(range(self.count)[start : end or None])
            case "split" if self.count > 2:
                name = self.add("split", sizes=f"1,{self.count - 1}")
                self.add("concatenation", f"{name}:y1", name)

    def made(self) -> Graph:
        self.conv(4)
        self.seen.append((self.now, self.count))
        for _ in range(self.random.randint(2, 8)):
            self.step(self.random.choice(self.kinds))
            if self.now != self.seen[-1][0]:
                self.seen.append((self.now, self.count))
        if self.random.random() < 0.4:
            self.add("flatten")
            self.add("fully_connected", features=5)
        else:
            self.add("convolution", features=3)
        self.add("output")
        return Graph(self.layers)


def network(seed: int) -> Graph:
    return Builder(seed).made()


def templated(graph: Graph, seed: int) -> Graph:
    """The network with some of its layers in a template, of which there are two instances one after the other if they fit."""
    random = Random(seed)
    order = [name for name in graph.order()[0] if graph[name].type not in ("input", "output")]
    for _ in range(8):
        start = random.randrange(len(order))
        names = order[start : start + random.randint(1, 3)]
        try:
            edit = make_template(graph, names, "block")
        except DiagnosticError:
            continue
        made = graph.copy()
        made.apply(edit)
        return _repeated(made, random) or made
    return graph


def _repeated(graph: Graph, random: Random) -> Graph | None:
    """The network with a second instance behind the first one; None if its types do not fit."""
    first = graph["block_0"]
    if len(first.inputs) != 1 or len(graph.templates["block"].outputs) != 1:
        return None
    shared = {"shared_weights": "true"} if random.random() < 0.5 else {}
    second = Layer("block_1", "template", inputs=(Source("block_0"),), params={"template": "block", **shared})
    readers = {
        name: replace(
            graph[name], inputs=tuple(Source("block_1") if s == Source("block_0") else s for s in graph[name].inputs)
        )
        for name in graph.consumers("block_0")
    }
    made = graph.copy()
    made.apply(
        replace_layers(
            graph, {"block_0": replace(first, params={**first.params, **shared}), "block_1": second, **readers}, "", {}
        )
    )
    inference = Inference(made, REGISTRY)
    return made if all(state.ok for state in inference.states.values()) and not inference.diagnostics() else None


def trained(graph: Graph) -> Weights:
    """Random weights; means and scales of normalizations are no longer the initial ones, variances stay positive."""
    needed = required_weights(Inference(graph, REGISTRY))
    tensors = dict(random_weights(needed, 1).tensors)
    generator = np.random.default_rng(2)
    for key, tensor in tensors.items():
        if key.tensor in ("scale", "bias", "mean", "variance"):
            values = generator.standard_normal(tensor.shape).astype(np.float32)
            tensors[key] = np.abs(values) + 0.5 if key.tensor == "variance" else values
    return Weights(tensors)


def patient(graph: Graph, weights: Weights) -> Patient:
    return Patient(graph, REGISTRY, weights)


def result(graph: Graph, weights: Weights) -> NDArray[np.float32]:
    """What the network computes for one image."""
    session = Session(graph, REGISTRY, weights)
    image = np.random.default_rng(3).random((1, 3, 8, 8), np.float32)
    session.set_input("in", image, is_image=False)
    return next(iter(session.run().outputs.values()))


def same(one: Weights, other: Weights) -> bool:
    """Whether the tensors are equal bit for bit."""
    tensors: tuple[dict[WeightKey, NDArray[np.float32]], ...] = (dict(one.tensors), dict(other.tensors))
    return tensors[0].keys() == tensors[1].keys() and all(
        np.array_equal(tensors[0][key], tensors[1][key]) for key in tensors[0]
    )
