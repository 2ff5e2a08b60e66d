"""Networks of random modules: with templates they are the network that was built, layer by layer, with the same weights."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designer.files.weights import Weights, required_weights
from designer.graph.diagnostics import errors
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.template import closure
from designer.graph.types import Size2D, Size3D
from designer.importers.builder import GraphBuilder
from designer.operators.inlining import inline, inlined
from designer.operators.registry import default_registry
from designer.operators.templates import TemplateLookup

REGISTRY = default_registry()
CHANNELS = 4


@dataclass(frozen=True)
class Call:
    """A statement of a module: `attribute` applied to the values with these numbers, which may be called again."""

    attribute: str
    reads: tuple[int, ...]


@dataclass(frozen=True)
class Module:
    """A class: its parts by attribute (other classes, or types of layers), its statements, and the values that it returns.

    The first values are its inputs.
    """

    parts: dict[str, Module | str]
    inputs: int
    calls: tuple[Call, ...]
    results: tuple[int, ...]


OUTPUTS = {"halves": 2}
INPUTS = {"add": 2, "swapped": 2}


def outputs_of(part: Module | str) -> int:
    return OUTPUTS.get(part, 1) if isinstance(part, str) else len(part.results)


def inputs_of(part: Module | str) -> int:
    return INPUTS.get(part, 1) if isinstance(part, str) else part.inputs


def random_module(draw: Random, classes: list[Module], inputs: int) -> Module:
    parts: dict[str, Module | str] = {}
    calls: list[Call] = []
    count = inputs
    for number in range(draw.randint(2, 5)):
        if parts and draw.random() < 0.2:
            attribute = draw.choice(sorted(parts))  # the same module again: it has the same weights
        else:
            attribute = f"{draw.choice(['part', 'block.', 'm'])}{number}"
            own = draw.choice(classes) if classes and draw.random() < 0.6 else None
            parts[attribute] = own or draw.choice(["conv", "conv", "relu", "add", "swapped", "halves"])
        part = parts[attribute]
        reads = [draw.choice([count - 1, draw.randrange(count)]) for _ in range(inputs_of(part))]
        calls.append(Call(attribute, tuple(reads)))
        count += outputs_of(part)
    results = sorted({count - 1, *(draw.randrange(inputs, count) for _ in range(draw.choice([0, 0, 1])))})
    return Module(parts, inputs, tuple(calls), tuple(results))


def random_network(draw: Random) -> Module:
    classes: list[Module] = []
    for _ in range(draw.randint(1, 4)):
        classes.append(random_module(draw, list(classes), draw.choice([1, 1, 2])))
    return random_module(draw, classes, 1)


class Tracer:
    """Adds the layers of modules to a builder as a trace does: paths of modules with the number of each call."""

    def __init__(self) -> None:
        self.builder = GraphBuilder(REGISTRY)
        self.called: Counter[str] = Counter()
        self.values: dict[str, dict[str, np.ndarray]] = {}
        self.origins: dict[str, str] = {}  # layer -> the module whose weights it has

    def trace(self, network: Module, prefix: str) -> None:
        image = self.builder.add("input", (), {"dims": Size3D(8, 6, CHANNELS)}, name="image", exact=True)
        results = self.module(network, "", (), image)
        for number, source in enumerate(results):
            self.builder.add("output", [source], name=f"{prefix}y{number}", exact=True)

    def module(self, kind: Module, path: str, scope: tuple[str, ...], reads: tuple[Source, ...]) -> list[Source]:
        values = list(reads)
        for call in kind.calls:
            part, place = kind.parts[call.attribute], f"{path}.{call.attribute}".lstrip(".")
            sources = tuple(values[number] for number in call.reads)
            if isinstance(part, str):
                values += self.layer(part, place, scope, sources)
                continue
            number = self.called[place]
            self.called[place] += 1
            inner = (*scope, *call.attribute.split("."))
            values += self.module(part, place, (*inner[:-1], f"{inner[-1]}@{number}") if number else inner, sources)
        return [values[number] for number in kind.results]

    def layer(self, kind: str, path: str, scope: tuple[str, ...], reads: tuple[Source, ...]) -> tuple[Source, ...]:
        add = self.builder.add
        if kind == "conv":
            values = self.values.setdefault(path, kernel(len(self.values)))
            params = {"features": CHANNELS, "kernel": Size2D(1, 1), "apply_bias": False}
            made = add("convolution", reads, params, name=path, weights=values, origins=[f"{path}.weight"], scope=scope)
            self.origins[made[0].layer] = path
            return made
        if kind == "relu":
            return add("activation", reads, activation=("relu", {}), name=path, scope=scope)
        if kind == "halves":  # two outputs, each of the shape of the input
            one, two = add("split", reads, {"parts": 2, "axis": 1}, name=path, scope=scope)
            return (
                *add("concatenation", (one, one), {"axis": 1}, name=f"{path}.one", scope=scope),
                *add("concatenation", (two, one), {"axis": 1}, name=f"{path}.two", scope=scope),
            )
        operation = "add" if kind == "add" else "subtract"
        return add("element_wise", reads, {"operation": operation}, name=path, scope=scope)


def kernel(seed: int) -> dict[str, np.ndarray]:
    return {"kernel": np.random.default_rng(seed).normal(size=(CHANNELS, CHANNELS, 1, 1)).astype(np.float32)}


def real(graph: Graph, source: Source) -> Source:
    """The tensor behind the identities that are made for instances and ports."""
    while graph[source.layer].type == "identity":
        (read,) = graph[source.layer].inputs
        assert read is not None
        source = read
    return source


def meaning(layer: Layer) -> tuple[object, ...]:
    return layer.type, dict(layer.params), layer.activation


def check(builder: GraphBuilder, origins: dict[str, str]) -> Graph:
    """Compare what is built with the layers that were added."""
    before, values = dict(builder.layers), dict(builder.weights)
    graph, weights = builder.finish()
    inference = Inference(graph, TemplateLookup(REGISTRY, graph))
    assert not errors(inference.diagnostics())
    flat = inline(graph, REGISTRY)

    now = {name: builder.moved.get(name, name) for name in before}
    assert sorted(now.values()) == sorted(layer.name for layer in flat if layer.type != "identity")
    for name, layer in before.items():
        made = flat[now[name]]
        assert meaning(made) == meaning(layer)
        reads = [real(flat, source) for source in made.inputs if source is not None]
        assert reads == [Source(now[s.layer], s.port) for s in layer.inputs if s is not None], name

    owners = {name: builder.owners.get(name, name) for name in before}
    for name in origins:
        assert (flat[now[name]].weights_of or now[name]) == owners[name]
    for key, array in values.items():
        moved = {(k.layer, k.tensor): tensor for k, tensor in weights.tensors.items()}
        assert np.array_equal(moved[owners[key.layer], key.tensor], array)
    check_weights(graph, weights)

    instances = Counter(layer.params["template"] for layer in everywhere(graph) if layer.type == "template")
    assert instances == builder.repeats
    assert instances.keys() == graph.templates.keys()
    used = {
        name
        for layer in graph
        if layer.type == "template"
        for name in closure(graph.templates, layer.params["template"])
    }
    assert used == graph.templates.keys()
    return graph


def check_weights(graph: Graph, weights: Weights) -> None:
    """The tensors are exactly those that the document needs."""
    needed = required_weights(inlined(Inference(graph, TemplateLookup(REGISTRY, graph))))
    assert {key: item.shape for key, item in needed.items()} == {k: t.shape for k, t in weights.tensors.items()}


def everywhere(graph: Graph) -> list[Layer]:
    return [*graph, *(layer for template in graph.templates.values() for layer in template.layers)]


@settings(max_examples=250, deadline=None)
@given(st.integers(0, 10**6))
def test_a_network_with_templates_is_the_network_that_was_built(seed: int) -> None:
    tracer, draw = Tracer(), Random(seed)
    network = random_network(draw)
    tracer.trace(network, draw.choice(["", f"{draw.choice(list(network.parts))}."]))
    check(tracer.builder, tracer.origins)


@pytest.mark.parametrize("seed", [1382, 2508, 5231, 5904, 54544, 7800])
def test_instances_that_go_into_another_template_and_those_that_would_wait_for_each_other(seed: int) -> None:
    """Layers of the last one depend on each other only through what becomes one instance."""
    tracer, draw = Tracer(), Random(seed)
    network = random_network(draw)
    tracer.trace(network, draw.choice(["", f"{draw.choice(list(network.parts))}."]))
    check(tracer.builder, tracer.origins)
