"""Random networks with templates in templates, bypassed, shared, analysis and training layers: what they are made into, as recorded."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from operator_oracles import REGISTRY
from recorded import check_recorded
from test_recorded_random_networks import finding_text

from designer.files.weights import required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import BYPASSED, ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.graph.types import BATCH, TensorType
from designer.operators.default_layers import default_layer
from designer.operators.deploy import deploy, without_analysis, without_observers
from designer.operators.inlining import declarations, inline, inlined_source
from designer.operators.inside import InsideInference, feeds_of
from designer.operators.live_cost import LiveCost
from designer.operators.templates import TemplateLookup
from designer.operators.training_branch import loss_ends, missing_output, no_output, training_branch

KINDS = (
    "convolution",
    "unary",
    "noise",
    "batch_normalization",
    "l1_loss",
    "element_wise",
    "template",
    "template",
    "pooling",
    "split",
    "statistics",
)
ACTIVE = ("relu", "prelu", "elu")


def some_layer(draw: Random, name: str, kind: str, sources: list[str], templates: list[str]) -> Layer:
    inputs = tuple(
        Source.parse(draw.choice(sources[-3:])) for _ in range(2 if kind in ("element_wise", "l1_loss") else 1)
    )
    params = {
        "convolution": {"features": draw.choice(["4", "6"]), "kernel": "3x3"},
        "template": {
            "template": draw.choice(templates or [""]),
            "shared_weights": draw.choice(["true", "false", "false"]),
        },
        "split": {"parts": "2"},
    }.get(kind, {})
    plain = kind in ("noise", "statistics", "l1_loss")
    active = ActivationSpec(draw.choice(ACTIVE)) if draw.random() < 0.25 and not plain else None
    attributes = {BYPASSED: "true"} if draw.random() < 0.15 and not plain else {}
    return Layer(name, kind, (0, 0), inputs, params, active, attributes)


def layers_of(draw: Random, starts: list[str], count: int, templates: list[str], kinds: tuple[str, ...]) -> list[Layer]:
    made: list[Layer] = []
    sources = list(starts)
    for number in range(count):
        kind = draw.choice(kinds)
        if kind == "template" and not templates:
            kind = "unary"
        name = f"{kind[:4]}{number}{draw.choice(['', '', '.b'])}"
        made.append(some_layer(draw, name, kind, sources, templates))
        if kind != "statistics" and (kind != "l1_loss" or draw.random() < 0.5):
            sources.append(f"{name}:y1" if kind == "split" and draw.random() < 0.5 else name)
    return made


def network(seed: int) -> Graph:
    draw = Random(seed)
    templates: list[Template] = []
    for number in range(draw.randint(1, 3)):
        inside = tuple(kind for kind in KINDS if kind not in ("noise", "l1_loss", "statistics"))
        names = [template.name for template in templates]
        layers = layers_of(draw, ["x"], draw.randint(1, 3), names, inside)
        ends = [Layer("r", "template_output", inputs=(Source(layers[-1].name),), params={"index": "0"})]
        if draw.random() < 0.4:
            ends.append(Layer("r2", "template_output", inputs=(Source(layers[0].name),), params={"index": "1"}))
        templates.append(Template(f"part{number}", (Layer("x", "template_input"), *layers, *ends)))
    names = [template.name for template in templates]
    image = Layer("in", "input", params={"dims": draw.choice(["8x6x4", "12x12x6"])})
    layers = layers_of(draw, ["in"], draw.randint(3, 7), names, KINDS)
    ends = [Layer("out", "output", inputs=(Source(layers[-1].name),))] if draw.random() < 0.8 else []
    return Graph([image, *layers, *ends], templates=templates, name=f"net{seed}")


def layer_line(layer: Layer) -> str:
    shown = [f"{layer.name}: {layer.type}({', '.join(map(str, layer.inputs))})"]
    shown += [f"of {layer.weights_of}"] if layer.weights_of else []
    shown += [f"-> {layer.activation.type}"] if layer.activation is not None else []
    shown += [f"{dict(layer.params)}"] if layer.params else []
    shown += ["bypassed"] if layer.bypassed else []
    return " ".join(shown)


def changed(before: Graph, after: Graph) -> Iterator[str]:
    yield f"    without {sorted(set(before.layers) - set(after.layers))}"
    yield from (f"    {layer_line(layer)}" for layer in after if before.get(layer.name) != layer)


def described(seed: int) -> Iterator[str]:
    graph = network(seed)
    inference = Inference(graph, REGISTRY)
    yield f"network {seed}"
    yield from (f"  {layer_line(layer)}: {inference.type_of(Source(layer.name))}" for layer in graph)
    for template in graph.templates.values():
        yield f"  {template.name}: {'; '.join(map(layer_line, template.layers))}"
    yield from map(finding_text, inference.diagnostics())
    flat = inline(graph, REGISTRY)
    yield "  inlined"
    yield from (f"    {layer_line(layer)}" for layer in flat if graph.get(layer.name) != layer)
    yield "  deployed"
    for make in (deploy, without_observers, without_analysis):
        yield from changed(flat if make is deploy else graph, make(graph, REGISTRY))
    yield f"  branch {sorted(training_branch(graph, REGISTRY))}, ends {loss_ends(graph, REGISTRY)}"
    yield f"  {no_output(graph, REGISTRY).message} | {missing_output(graph, REGISTRY)}"
    live = LiveCost(inference)
    live.count()
    for layer in graph:
        yield f"  cost {layer.name} {live.of(layer.name)}"
    yield f"  total {live.total()} {live.total(training_branch(graph, REGISTRY))} {live.total(names=list(graph.layers)[2:])} {live.total().memory}"
    yield f"  needed { ({str(key): weight.shape for key, weight in required_weights(inference).items()}) }"
    for path, declared in declarations(graph).items():
        if declared.template:
            yield f"  {path} is {declared.template} {declared.layer.name}"
    lookup = TemplateLookup(REGISTRY, graph)
    for layer in graph:
        state = inference.states[layer.name]
        body = lookup.body(layer.params.get("template", ""))
        if layer.type == "template" and body is not None and state.ok:
            weights = [f"{w.name} {w.torch} {w.shape} {w.init}" for w in body.weights(state.inputs)]
            yield f"  {layer.name}: {body.cost(state.inputs)} {weights} {body.expands}"
            for port in ("", "r", "r2"):
                yield f"    {port} is {inlined_source(graph, Source(layer.name, port))}"
            inside = InsideInference(
                graph.inside(body.template.name), REGISTRY, feeds_of(inference, layer.name, body.template.inputs)
            )
            yield f"    { ({name: str(inside.type_of(Source(name))) for name in inside.graph.layers}) }"
            yield from map(finding_text, inside.diagnostics())


def test_what_random_networks_are_made_into() -> None:
    lines: list[str] = []
    for seed in range(45):
        try:
            lines += described(seed)
        except DiagnosticError as error:
            lines.append(f"  {error}")
    check_recorded("operators/random_templates.txt", "\n".join([*lines, ""]))


def test_findings_inside_of_templates() -> None:
    """Problems of layers in templates, and in templates within, by themselves and where they are used."""

    def layer(name: str, kind: str, *inputs: str, **params: str) -> Layer:
        return Layer(name, kind, inputs=tuple(map(Source.parse, inputs)), params=params)

    ends = (layer("x", "template_input"), layer("r", "template_output", "c"))
    inner = Template("inner", (*ends, layer("c", "convolution", "x", features="3", groups="2")))
    wrong = Template(
        "wrong", (*ends, layer("c", "convolution", "x", features="no", kernel="3"), layer("in", "input", dims="3"))
    )
    outer = Template("outer", (*ends, layer("c", "template", "x", template="inner")))
    open_ = Template("open", (layer("x", "template_input"), layer("c", "unary", "x", function="no")))
    image = layer("image", "input", dims="8x6x4")
    used = [
        layer(f"use_{name}", "template", "image", template=name) for name in ("inner", "wrong", "outer", "open", "none")
    ]
    graph = Graph([image, *used], templates=[inner, wrong, outer, open_])
    lines = [finding_text(d) for d in Inference(graph, REGISTRY).diagnostics()]
    for name in graph.templates:
        inside = InsideInference(graph.inside(name), REGISTRY)
        for feeds in (
            {},
            {"x": TensorType((BATCH, 4, 6, 8))},
            {"x": TensorType((BATCH, 6, 6, 8))},
            {"y": TensorType((1, 2))},
            {},
        ):
            changed_layers = sorted(inside.feed(feeds))
            lines.append(
                f"{name} with { ({port: str(kind) for port, kind in feeds.items()}) }: {changed_layers} {inside.type_of(Source('c'))}"
            )
            lines += map(finding_text, inside.diagnostics())
    check_recorded("operators/findings_inside.txt", "\n".join([*lines, ""]))


def test_new_layers_of_every_type() -> None:
    graph = network(3)
    one = Graph(list(graph), templates=list(graph.templates.values())[:1])
    types = [
        *(cls.type for cls in REGISTRY),
        *sorted(REGISTRY.activations),
        "template:part0",
        "template:none",
        "nothing",
    ]
    lines = []
    for name in types:
        for where in (graph, one, one.inside("part0")):
            layer = default_layer(where, REGISTRY, name, (32, 64))
            lines.append(
                f"{name}: {layer_line(layer) if layer is not None else None} {layer.position if layer is not None else ''}"
            )
    check_recorded("operators/new_layers.txt", "\n".join([*dict.fromkeys(lines), ""]))
