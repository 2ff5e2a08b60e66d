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
