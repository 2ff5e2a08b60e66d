"""What graph passes do to a network and its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from designer.files.weights import WeightKey, Weights
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.operators.registry import Registry


@dataclass(frozen=True)
class Subject:
    """A network without templates, and its weights."""

    graph: Graph
    registry: Registry
    weights: Weights
    inference: Inference

    @classmethod
    def of(cls, graph: Graph, registry: Registry, weights: Weights) -> Subject:
        return cls(graph, registry, weights, Inference(graph, registry))


@dataclass
class Rewriting:
    """Changes of a network: layers that are replaced by a tensor, layers with other parameters or activations, and new weights."""

    replaced: dict[str, Source] = field(default_factory=dict)
    changed: dict[str, Layer] = field(default_factory=dict)
    weights: dict[WeightKey, NDArray[np.float32]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.replaced or self.changed)

    def source(self, source: Source) -> Source:
        """The tensor that is read instead of `source`."""
        while source.layer in self.replaced:
            source = self.replaced[source.layer]
        return source

    def applied(self, subject: Subject) -> Subject:
        """The network after the changes."""
        graph = subject.graph.copy()
        edits: dict[str, tuple[Layer | None, Layer | None]] = {name: (graph[name], None) for name in self.replaced}
        for layer in graph:
            if layer.name in self.replaced:
                continue
            made = self.changed.get(layer.name, layer)
            inputs = tuple(None if source is None else self.source(source) for source in made.inputs)
            made = replace(made, inputs=inputs)
            if made != layer:
                edits[layer.name] = (layer, made)
        graph.apply(Edit("", edits))
        tensors = {**subject.weights.tensors, **self.weights}
        return Subject.of(graph, subject.registry, replace(subject.weights, tensors=tensors))


def moved_activation(subject: Subject, layer: Layer, to: Layer) -> Mapping[WeightKey, NDArray[np.float32]]:
    """The weights of the activation of `layer`, such as slopes, under the name of the layer to which it moves."""
    return {
        WeightKey(to.weights_name, key.tensor): tensor
        for key, tensor in subject.weights.tensors.items()
        if key.layer == layer.weights_name and key.tensor.startswith("activation_")
    }


def alone(subject: Subject, name: str) -> Subject:
    """The network in which layer `name` shares its weights with no other layer, so that they can change."""
    layer = subject.graph[name]
    others = [other for other in subject.graph if other.weights_name == layer.weights_name and other.name != name]
    if not layer.weights_of and not others:
        return subject
    owner = name if layer.weights_of else others[0].name  # who gets weights under its own name
    moved = [layer] if layer.weights_of else others
    edits = {each.name: (each, replace(each, weights_of="" if each.name == owner else owner)) for each in moved}
    copied = {
        WeightKey(owner, key.tensor): tensor
        for key, tensor in subject.weights.tensors.items()
        if key.layer == layer.weights_name
    }
    return _with(subject, edits, {**subject.weights.tensors, **copied})


def shared_again(subject: Subject, before: Graph) -> Subject:
    """The network in which layers that shared their weights in `before` share them if they are still equal."""
    tensors: dict[str, dict[str, NDArray[np.float32]]] = {}
    for key, tensor in subject.weights.tensors.items():
        tensors.setdefault(key.layer, {})[key.tensor] = tensor
    first: dict[str, list[Layer]] = {}  # layers with different weights by the name that these had
    edits: dict[str, tuple[Layer | None, Layer | None]] = {}
    for layer in subject.graph:
        if layer.name not in before:
            continue
        known = first.setdefault(before[layer.name].weights_name, [])
        mine = tensors.get(layer.weights_name, {})
        same = next((one for one in known if _equal(tensors.get(one.weights_name, {}), mine)), None)
        if same is None:
            known.append(layer)
        elif same.weights_name != layer.weights_name:
            edits[layer.name] = (layer, replace(layer, weights_of=same.weights_name))
    return _with(subject, edits, subject.weights.tensors)


def _equal(one: Mapping[str, NDArray[np.float32]], other: Mapping[str, NDArray[np.float32]]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def _with(
    subject: Subject,
    edits: Mapping[str, tuple[Layer | None, Layer | None]],
    tensors: Mapping[WeightKey, NDArray[np.float32]],
) -> Subject:
    """The network after edits, with those of `tensors` that it needs."""
    graph = subject.graph.copy()
    graph.apply(Edit("", dict(edits)))
    needed = {layer.weights_name for layer in graph}
    kept = {key: tensor for key, tensor in tensors.items() if key.layer in needed}
    return Subject.of(graph, subject.registry, replace(subject.weights, tensors=kept))
