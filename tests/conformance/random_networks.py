"""Random networks of up to six layers: any operator, with parameters near those of its examples, reading any earlier tensors."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from operator_oracles import REGISTRY, Case, Feeds
from trials import CASES, Trial, layer_of, outputs_of

from designer.files.document import parse_document, write_document
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.types import Size2D, Size3D, TensorType
from designer.operators.params import Parameter
from designer.runtime.api import Part

LAYERS = 6
ATTEMPTS = 20  # to fit another layer
LARGEST = 20_000  # elements of a tensor
ACTIVATIONS = tuple(sorted(REGISTRY.activations))


def random_network(seed: int) -> Trial:
    """A network that inference accepts, read back from its document. The same seed makes the same one."""
    dice = random.Random(seed)
    growth = _Growth(dice)
    for _ in range(dice.randint(2, LAYERS)):
        any(growth.grown() for _ in range(ATTEMPTS))
    return growth.trial(f"network {seed}")


class _Growth:
    """A network that grows by one random layer at a time."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._lookup = Feeds(REGISTRY)
        self._layers: list[Layer] = []
        self._types: dict[Source, TensorType] = {}

    def grown(self) -> bool:
        """Add a layer that reads an earlier tensor, and feeds for what else it needs; False if it does not fit."""
        case, dice = self._dice.choice(CASES), self._dice
        operator = _varied(case, dice)
        if operator is None:
            return False
        case = replace(case, operator=operator)
        known, feeds = list(self._types), len(self._lookup.types)
        reads, fresh = [], {}
        for number, kind in enumerate(case.types):
            fitting = known if number == 0 else [s for s in known if self._types[s] == kind]
            if fitting and (number == 0 or dice.random() < 0.5):
                reads.append(dice.choice(fitting))
                continue
            if number and kind == case.types[0]:  # what is added, joined, ... has the same shape
                kind = self._types.get(reads[0], kind)
            source = Source(f"in_{feeds + len(fresh)}")
            fresh[source] = kind
            reads.append(source)
        layer = layer_of(f"layer_{len(self._layers)}", case, reads)
        if layer.activation is None and dice.random() < 0.3:
            layer = replace(layer, activation=ActivationSpec(dice.choice(ACTIVATIONS)))
        return self._added(layer, fresh)

    def _added(self, layer: Layer, fresh: dict[Source, TensorType]) -> bool:
        before = dict(self._lookup.types)
        self._lookup.types |= {source.layer: kind for source, kind in fresh.items()}
        inference = Inference(self._graph([*self._layers, layer]), self._lookup)
        made = inference.states[layer.name].outputs
        if inference.diagnostics() or not made or any(t.elements() > LARGEST or not t.elements() for t in made):
            self._lookup.types = before
            return False
        self._layers.append(layer)
        self._types |= fresh
        self._types |= dict(zip(outputs_of(inference, layer.name), made, strict=True))
        return True

    def _graph(self, layers: list[Layer]) -> Graph:
        return Graph([*(Layer(name, "test_feed") for name in self._lookup.types), *layers])

    def trial(self, name: str) -> Trial:
        """The network as its document says; compared is what no layer reads."""
        graph = parse_document(write_document(self._graph(self._layers)), validate=False).graph
        assert graph is not None
        inference = Inference(graph, self._lookup)
        assert not inference.diagnostics()
        layers = tuple(layer.name for layer in self._layers)
        read = {source for layer in self._layers for source in layer.inputs}
        wanted = tuple(s for n in layers for s in outputs_of(inference, n) if s not in read)
        feeds = {Source(name): kind for name, kind in self._lookup.types.items()}
        kinds = " -> ".join(layer.type for layer in self._layers)
        return Trial(f"{name} ({kinds})", inference, Part(layers, tuple(feeds)), tuple(feeds.values()), wanted)


def _varied(case: Case, dice: random.Random) -> Any:
    """The case's operator with some other parameters; None if it rejects them."""
    values = case.operator.values()
    for parameter in type(case.operator).parameters:
        if dice.random() < 0.25:
            values[parameter.name] = _value(parameter, values[parameter.name], dice)
    operator = type(case.operator)(**values)
    return None if any(operator.faults()) else operator


def _value(parameter: Parameter, now: Any, dice: random.Random) -> Any:
    low = int(parameter.info.min if parameter.info.min is not None else -2)
    high = int(min(parameter.info.max if parameter.info.max is not None else 6, low + 6))
    match parameter.kind:
        case "bool":
            return dice.random() < 0.5
        case "choice":
            return dice.choice(parameter.info.choices)
        case "int":
            return dice.randint(low, high)
        case "float":
            return dice.uniform(low, high)
        case "size2d":
            return Size2D(dice.randint(low, high), dice.randint(low, high))
        case "size3d":
            return Size3D(dice.randint(low, high), dice.randint(low, high), dice.randint(low, high))
    return now
