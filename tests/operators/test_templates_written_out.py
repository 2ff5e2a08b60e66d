"""Random networks of templates whose layers all keep the shape: everything is what it is with every layer written out."""

from __future__ import annotations

from dataclasses import fields
from math import prod
from random import Random

import pytest
from operator_oracles import REGISTRY

from designer.files.weights import required_weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import BYPASSED, ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.operators.api import Cost
from designer.operators.inlining import inline, inlined_source
from designer.operators.live_cost import LiveCost
from designer.operators.templates import TemplateLookup

KINDS = (
    "convolution",
    "convolution",
    "batch_normalization",
    "element_wise",
    "unary",
    "template",
    "template",
    "template",
)


def layers_of(draw: Random, start: str, count: int, templates: dict[str, int]) -> list[Layer]:
    """Layers that read those before them; the outputs of an instance beyond the first one too."""
    made: list[Layer] = []
    sources = [Source(start)]
    for number in range(count):
        kind = draw.choice(KINDS)
        params = {"convolution": {"features": "4"}}.get(kind, {})
        if kind == "template":
            if not templates:
                continue
            params = {"template": draw.choice(list(templates)), "shared_weights": draw.choice(["true", "false"])}
        inputs = tuple(draw.choice(sources[-4:]) for _ in range(2 if kind == "element_wise" else 1))
        active = ActivationSpec(draw.choice(["prelu", "relu"])) if draw.random() < 0.3 else None
        off = {BYPASSED: "true"} if draw.random() < 0.25 and templates.get(params.get("template", ""), 1) == 1 else {}
        name = f"{kind[:5]}_{number}"
        made.append(Layer(name, kind, (0, 0), inputs, params, active, off))
        sources.append(Source(name))
        if templates.get(params.get("template", ""), 1) == 2:
            sources.append(Source(name, "second"))
    return made


def network(seed: int) -> Graph:
    draw = Random(seed)
    templates: list[Template] = []
    ends: dict[str, int] = {}
    for number in range(draw.randint(1, 3)):
        layers = layers_of(draw, "x", draw.randint(1, 4), ends) or [Layer("same", "unary", inputs=(Source("x"),))]
        ports = [Layer("y", "template_output", inputs=(Source(layers[-1].name),), params={"index": "0"})]
        if draw.random() < 0.4:
            first = Source(layers[0].name)
            ports.append(Layer("second", "template_output", inputs=(first,), params={"index": "1"}))
        if draw.random() < 0.3:
            ports[-1] = Layer(
                ports[-1].name, ports[-1].type, (0, 0), ports[-1].inputs, ports[-1].params, ActivationSpec("prelu")
            )
        templates.append(Template(f"block{number}", (Layer("x", "template_input"), *layers, *ports)))
        ends[f"block{number}"] = len(ports)
    layers = layers_of(draw, "image", draw.randint(3, 6), ends)
    image = Layer("image", "input", params={"dims": "6x5x4"})
    return Graph(
        [image, *layers, Layer("end", "output", inputs=(Source(layers[-1].name if layers else "image"),))],
        templates=templates,
    )


def work(inference: Inference, name: str) -> Cost:
    """What a layer computes, with its activation; nothing if it is bypassed."""
    state, read = inference.states[name], inference.read(name)
    assert read.operator is not None
    assert state.outputs is not None
    if inference.graph[name].bypassed:
        return Cost()
    before, found = state.outputs, []
    if read.activation is not None:
        assert state.before_activation is not None
        before = (state.before_activation, *state.outputs[1:])
        found.append(read.activation.cost(before[:1], state.outputs[:1]))
    if inference.graph[name].type != "identity":  # a port that is written out
        found.append(read.operator.cost(state.inputs, before))
    return Cost(*(sum(getattr(item, field.name) for item in found) for field in fields(Cost)))


@pytest.mark.parametrize("seed", range(40))
def test_a_network_of_templates_is_what_its_layers_are(seed: int) -> None:
    graph = network(seed)
    flat = inline(graph, REGISTRY)
    assert not any(layer.type == "template" for layer in flat)
    whole, plain = Inference(graph, REGISTRY), Inference(flat, REGISTRY)
    assert not whole.diagnostics()
    assert not plain.diagnostics()
    for name in graph.layers:
        for port, kind in zip(("", "second"), whole.states[name].outputs or (), strict=False):
            assert kind == plain.type_of(inlined_source(graph, Source(name, port)))
    needed = {str(key): weight.shape for key, weight in required_weights(whole).items()}
    assert needed == {str(key): weight.shape for key, weight in required_weights(plain).items()}
    live = LiveCost(whole)
    live.count()
    total = sum(work(plain, name).flops for name in flat.layers)
    assert live.total().flops == sum(work(whole, name).flops for name in graph.layers) == total
    learned = [prod(weight.shape) for weight in required_weights(plain).values() if weight.trainable]
    assert live.total().learned == sum(learned)
    for name, layer in graph.layers.items():
        if layer.type == "template" and not layer.bypassed:
            check_instance(graph, plain, whole, name)


def check_instance(graph: Graph, plain: Inference, whole: Inference, name: str) -> None:
    """The cost of an instance without its own activation is that of the layers with its name before them."""
    body = TemplateLookup(REGISTRY, graph).body(graph[name].params["template"])
    assert body is not None
    inside = [work(plain, other) for other in plain.graph.layers if other.startswith(f"{name}.")]
    found = body.cost(whole.states[name].inputs)
    for field in fields(Cost):
        assert getattr(found, field.name) == sum(getattr(cost, field.name) for cost in inside)
