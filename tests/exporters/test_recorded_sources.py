"""Generated sources of unusual networks, and why some cannot be generated, compared with recorded texts."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator

import pytest
from loss_networks import restorer
from pytorch_networks import RELU, node, small
from recorded import check_files, check_recorded
from template_networks import nested

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer
from designer.graph.template import Template
from designer.operators.registry import Registry
from exporters.pytorch import generate_losses, generate_source, generate_template, project_files
from exporters.pytorch.losses import losses_of
from exporters.pytorch.source import class_name, module_source, network_module

PRELU = ActivationSpec("prelu")


def template(name: str, *layers: Layer, inputs: int = 1) -> Template:
    """A template that reads `x` (and `x1`, ...)."""
    ports = (node("x" if not n else f"x{n}", "template_input", index=n) for n in range(inputs))
    return Template(name, (*ports, *layers))


def instance(name: str, kind: str, *reads: str, shared: bool = False, **more) -> Layer:
    return node(name, "template", *reads, template=kind, **({"shared_weights": "true"} if shared else {}), **more)


def odd_names() -> Graph:
    """Names that are words of Python or the same identifier, attached weights, constants, and a layer without an attribute."""
    return Graph(
        [
            node("in", "input", dims="8x6x3"),
            node("a b", "convolution", "in", activation=PRELU, features=4, kernel="3x3"),
            node("a_b", "convolution", "a b", activation=RELU, features=4, kernel="4x4"),
            node("class", "batch_normalization", "a_b", activation=PRELU),
            node("F", "input_cst", dims="8x6x4", value="0.25"),
            node("1st", "input_cst", dims="8x6x4", source="weights"),
            node("mask!", "tensor_constant", shape="4,1,1", dtype="float32", numbers="1,0,1,0"),
            node("self", "element_wise", "class", "F", operation="add"),
            node("torch", "element_wise", "self", "1st", operation="multiply"),
            node("nn", "element_wise", "torch", "mask!", operation="subtract"),
            node("the end", "output", "nn"),
        ],
        name="odd names",
    )  # fmt: skip


def variants() -> Graph:
    """A template with the name of the network: a class for 3 channels, and one for 4 at two sizes, used inside of another."""
    block = template("block", node("conv", "convolution", "x", features=4), node("y", "template_output", "conv"))
    two = template(
        "two_of-them", instance("p", "block", "x"), instance("q", "block", "p"), node("y", "template_output", "q")
    )
    return Graph(
        [
            node("in", "input", dims="16x12x3"),
            instance("a", "block", "in"),
            instance("b", "two_of-them", "a", activation=PRELU),
            node("small", "pooling", "b", size="2x2", stride="2x2"),
            instance("c", "block", "small", activation=RELU),
            node("out", "output", "c"),
        ],
        name="block",
        templates=[block, two, template("unused", node("y", "template_output", "x"))],
    )  # fmt: skip


def shared_deeply() -> Graph:
    """Shared templates inside of shared ones, whose names are the same identifiers as those of layers, with several results."""
    part = template("a b", node("a_b", "convolution", "x", features=3), node("y", "template_output", "a_b"))
    middle = template(
        "nn",
        instance("a_b", "a b", "x", shared=True),
        instance("own", "a b", "a_b"),
        node("y", "template_output", "own"),
        node("z", "template_output", "a_b", index=1),
    )
    outer = template("o1", instance("n n", "nn", "x", shared=True), node("y", "template_output", "n n"))
    return Graph(
        [
            node("a_b", "input", dims="16x12x3"),
            instance("o 1", "o1", "a_b"),
            instance("o2", "o1", "o 1"),
            instance("m", "nn", "o2", shared=True),
            node("out", "output", "m:z"),
            node("more", "output", "m"),
        ],
        templates=[part, middle, outer],
    )


def two_inputs() -> Graph:
    """A template that reads two tensors and returns one of them, and an analysis layer inside."""
    blend = template(
        "blend",
        node("noisy", "noise", "x", scale=0.5),
        node("sum", "element_wise", "noisy", "x1", operation="add"),
        node("half", "scale_shift", "sum", scale=0.5),
        node("y", "template_output", "half"),
        inputs=2,
    )
    return Graph(
        [
            node("left", "input", dims="8x6x3"),
            node("right", "input", dims="8x6x3"),
            instance("one", "blend", "left", "right"),
            instance("two", "blend", "one", "left"),
            node("out", "output", "two"),
            node("spare", "convolution", "one", features=2),
        ],
        templates=[blend],
    )


def siamese(**more) -> Graph:
    """The losses compare what one shared module makes of two images."""
    net = template("net", node("c", "convolution", "x", features=2, **more), node("y", "template_output", "c"))
    return Graph(
        [
            node("image", "input", dims="16x16x3"),
            node("other", "input", dims="16x16x3"),
            instance("here", "net", "image", shared=True),
            instance("there", "net", "other", shared=True),
            node("apart", "l1_loss", "here", "there"),
            node("result", "output", "here"),
        ],
        name="siamese",
        templates=[net],
    )


def inner_loss(shared: bool) -> Graph:
    """A template with a loss inside, within another one."""
    judged = template(
        "judged",
        node("conv", "convolution", "x", features=3),
        node("loss", "l1_loss", "conv", "x1"),
        node("y", "template_output", "conv"),
        inputs=2,
    )
    outer = template(
        "outer", instance("j", "judged", "x", "x1", shared=shared), node("y", "template_output", "j"), inputs=2
    )
    return Graph(
        [
            node("in", "input", dims="8x6x3"),
            node("wanted", "input", dims="8x6x3"),
            instance("a", "outer", "in", "wanted"),
            instance("b", "outer", "wanted", "in"),
            node("out", "output", "a"),
        ],
        templates=[judged, outer],
    )  # fmt: skip


def judged_by_features() -> Graph:
    """The losses compare features of two tensors, which a shared module that only they have computes."""
    features = template("features", node("c", "convolution", "x", features=2), node("y", "template_output", "c"))
    graph = restorer(
        instance("made", "features", "tail", shared=True),
        instance("wanted", "features", "clean", shared=True),
        node("alike", "mse_loss", "made", "wanted"),
    )
    return Graph(graph, name="judged", templates=[features])


def shared_with_losses(name: str) -> Callable[[], Graph]:
    """The network and its losses have a module in common, the template `name`."""

    def graph() -> Graph:
        common = template(name, node("c", "convolution", "x", features=3), node("y", "template_output", "c"))
        made = restorer(
            instance("made", name, "tail", shared=True),
            node("second", "output", "made"),
            instance("wanted", name, "clean", shared=True),
            node("alike", "mse_loss", "made", "wanted"),
            node("near", "l1_loss", "tail", "clean"),
        )
        return Graph(made, name="common", templates=[common])

    return graph


def whole(graph: Callable[[], Graph], name: str, selection: list[str] | None = None) -> Callable[[Registry], str]:
    return lambda registry: generate_source(graph(), registry, name, selection)


def templates(graph: Callable[[], Graph]) -> Callable[[Registry], str]:
    def text(registry: Registry) -> str:
        made = graph()
        used = {layer.params["template"] for layers in (made, *(t.layers for t in made.templates.values()))
                for layer in layers if layer.type == "template"}  # fmt: skip
        return "".join(f"# {name}\n{generate_template(made, registry, name)}" for name in sorted(used))

    return text


def trained(graph: Callable[[], Graph]) -> Callable[[Registry], str]:
    """The network as it is trained, and its losses."""

    def text(registry: Registry) -> str:
        losses = losses_of(graph(), registry)
        assert losses is not None
        module = network_module(graph(), registry, taps=losses.taps, name="Net")
        lines = [f"# shared: {losses.shared}, taps: {[*map(str, losses.taps)]}, targets: {[*map(str, losses.targets)]}"]
        return "\n".join([*lines, module_source(module, "Net"), generate_losses(graph(), registry)])

    return text


SOURCES = {
    "odd_names": whole(odd_names, "net_work"),
    "odd_names_of_a_selection": whole(odd_names, "part", ["F", "self", "class", "in"]),
    "variants": whole(variants, "block"),
    "variants_of_a_selection": whole(variants, "Block", ["b", "c", "small"]),
    "variants_as_templates": templates(variants),
    "shared_deeply": whole(shared_deeply, "O1"),
    "shared_deeply_as_templates": templates(shared_deeply),
    "shared_of_a_selection": whole(shared_deeply, "x", ["o2", "m"]),
    "nested_as_templates": templates(nested),
    "two_inputs": whole(two_inputs, "two_inputs"),
    "an_input_that_nothing_selected_reads": whole(two_inputs, "part", ["right", "two"]),
    "siamese": trained(siamese),
    "inner_loss": trained(lambda: inner_loss(False)),
    "judged_by_features": trained(judged_by_features),
    "shared_with_losses": trained(shared_with_losses("features")),
    "shared_with_losses_under_no_identifier": trained(shared_with_losses("1 feature map")),
    "shared_with_losses_under_the_name_of_a_local": trained(shared_with_losses("wanted")),
    "one_tap": trained(lambda: restorer(node("compared", "l1_loss", "result", "clean"))),
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_source_of_an_unusual_network(name: str, registry: Registry) -> None:
    text = SOURCES[name](registry)
    ast.parse(text)
    check_recorded(f"sources/{name}.txt", text)


@pytest.mark.parametrize(
    ("graph", "name"), [(variants, "block"), (siamese, "net"), (odd_names, "nn"), (two_inputs, "blend")]
)
def test_the_project_has_the_class_of_the_code_view_next_to_templates_of_its_name(
    graph: Callable[[], Graph], name: str, registry: Registry
) -> None:
    files = project_files(graph(), registry, name)
    cls = class_name(name)
    losses = losses_of(graph(), registry)
    module = network_module(graph(), registry, taps=losses.taps if losses is not None else (), name=cls)
    assert files["model.py"].decode() == module_source(module, cls)
    assert f"class {cls}(nn.Module)" in files["model.py"].decode()
    if losses is None:
        assert files["model.py"].decode() == generate_source(graph(), registry, name)
    else:
        assert files["losses.py"].decode() == generate_losses(graph(), registry)
    assert json.loads(files["project.json"])["model"] == cls


def test_nothing_else_is_recorded() -> None:
    check_files("sources", [f"{name}.txt" for name in SOURCES])


CUSTOM = "class Gain(nn.Module):\n    def forward(self, x):\n        return x\n"


def own(*sources: str, **more) -> Graph:
    layers = [node("image", "input", dims="8x8x3")]
    for number, source in enumerate(sources):
        layers.append(node(f"own {number}", "custom", layers[-1].name, source=source, class_name="Gain", **more))
    return Graph([*layers, node("result", "output", layers[-1].name)], name="own")


def shared_by_two_shapes() -> Graph:
    """The same weights are read by an image, which is made flat, and by a vector."""
    head = template("head", node("c", "fully_connected", "x", features=2), node("y", "template_output", "c"))
    return Graph(
        [
            node("image", "input", dims="1x1x4"),
            node("vector", "tensor_input", shape=4),
            instance("a", "head", "image", shared=True),
            instance("b", "head", "vector", shared=True),
            node("out", "output", "a", analysis_view="tensor"),
            node("other", "output", "b", analysis_view="tensor"),
        ],
        templates=[head],
    )


def losses_of_another_shape() -> Graph:
    graph = shared_by_two_shapes()
    layers = [layer for layer in graph if layer.name != "other"]
    return Graph([*layers, node("loss", "l1_loss", "b", "a")], templates=graph.templates.values())


def trained_twice() -> Graph:
    """The template has a loss inside, so its instances become layers, which share weights."""
    judged = template(
        "judged",
        node("conv", "convolution", "x", features=3),
        node("loss", "l1_loss", "conv", "x1"),
        node("y", "template_output", "conv"),
        inputs=2,
    )
    layers = [
        node("in", "input", dims="8x6x3"),
        node("wanted", "input", dims="8x6x3"),
        instance("a", "judged", "in", "wanted", shared=True),
        instance("b", "judged", "wanted", "in", shared=True),
        node("out", "output", "a"),
        node("more", "mse_loss", "b", "in"),
    ]
    return Graph(layers, templates=[judged])


def refused(registry: Registry) -> Iterator[tuple[str, Callable[[], object]]]:
    def source(graph: Graph, name: str = "Net", selection: list[str] | None = None) -> Callable[[], object]:
        return lambda: generate_source(graph, registry, name, selection)

    def losses(graph: Graph) -> Callable[[], object]:
        return lambda: generate_losses(graph, registry)

    image = node("image", "input", dims="8x8x3")
    yield "one module for two shapes", source(shared_by_two_shapes())
    yield "losses that use a shared module with another shape", losses(losses_of_another_shape())
    yield "losses with weights of the network", losses(trained_twice())
    yield "losses of a template within another, with weights of the network", losses(inner_loss(True))
    apart = [node("second", "l1_loss", "clean", "clean"), node("first", "mse_loss", "clean", "clean")]
    yield "losses apart", losses(restorer(*apart))
    yield (
        "losses of an unknown shape",
        losses(restorer(node("loss", "l1_loss", "tail", "image2"), node("image2", "input", dims="9x9x3"))),
    )
    yield "losses without an output", losses(Graph([x for x in restorer(apart[0]) if x.type != "output"]))
    yield "losses without a network", losses(Graph([image, node("loss", "l1_loss", "image", "image")]))
    yield "an unused template", lambda: generate_template(variants(), registry, "unused")
    yield (
        "a template of a network without an output",
        lambda: generate_template(
            Graph([x for x in variants() if x.type != "output"], templates=variants().templates.values()),
            registry,
            "block",
        ),
    )
    noisy = Graph([image, node("noise", "noise", "image"), node("out", "output", "noise")])
    yield "a selection of analysis layers", source(noisy, selection=["noise", "gone"])
    yield "an empty selection", source(noisy, selection=[])
    broken = Graph(
        [
            image,
            node("conv", "convolution", "image", stride="0x0"),
            node("up", "upsample", "conv"),
            node("out", "output", "up"),
        ]
    )
    yield "a selection behind an invalid layer", source(broken, selection=["up"])
    yield "a network behind an invalid layer", source(broken)
    yield "a constant of 4097 numbers", source(constant(4097))
    yield "the same class of another text", source(own(CUSTOM, CUSTOM + "\n"))
    yield "a class with the name of the network", source(own(CUSTOM), "gain")
    yield "a text that redefines torch", source(own(CUSTOM + "torch = 1\n"))
    yield "a class with the name of a template's", source(
        Graph([*own(CUSTOM), instance("t", "gain", "own 0"), node("o", "output", "t")],
              templates=[template("gain", node("c", "convolution", "x"), node("y", "template_output", "c"))])
    )  # fmt: skip
    inside = template(
        "block",
        node("own", "custom", "x", source=CUSTOM + "nn = 1\n", class_name="Gain"),
        node("y", "template_output", "own"),
    )
    yield (
        "a text inside of a template",
        source(Graph([image, instance("t", "block", "image"), node("o", "output", "t")], templates=[inside])),
    )


def constant(count: int) -> Graph:
    numbers = ",".join(str(n % 7) for n in range(count))
    layers = [
        node("image", "input", dims=f"{count}x1x1"),
        node("table", "tensor_constant", shape=str(count), dtype="float32", numbers=numbers),
        node("product", "element_wise", "image", "table", operation="multiply"),
    ]
    return Graph([*layers, node("out", "output", "product")])


def test_why_a_source_is_not_generated(registry: Registry) -> None:
    lines = []
    for name, make in refused(registry):
        try:
            make()
        except DiagnosticError as error:
            found = error.diagnostics
        else:
            found = ()
        lines.append(name)
        for d in found:
            place = ", ".join(map(str, filter(None, (d.layer, d.template, d.parameter))))
            lines.append(f"  {d.code} ({place}): {d.message}; {d.remedy}")
    check_recorded("refused_sources.txt", "\n".join([*lines, ""]))


@pytest.mark.parametrize("name", ["f", "o", "i", "F"])
def test_the_class_of_a_template_is_not_called_like_an_import_or_a_name_that_linters_refuse(
    name: str, registry: Registry
) -> None:
    block = template(
        name, node("c", "convolution", "x", features=3, activation=RELU), node("y", "template_output", "c")
    )
    layers = [node("in", "input", dims="8x6x3"), instance("a", name, "in"), node("out", "output", "a")]
    text = generate_source(Graph(layers, templates=[block]), registry, "Net")
    assert f"class {name.upper()}_2(nn.Module):" in text
    assert f"self.a = {name.upper()}_2()" in text


def test_layers_that_no_output_needs_may_be_invalid(registry: Registry) -> None:
    spare = [
        node("broken", "convolution", "left", stride="0x0"),
        node("odd", "what_is_this", "one"),
        node("alone", "convolution"),
    ]
    graph = Graph([*two_inputs(), *spare], templates=two_inputs().templates.values())
    assert generate_source(graph, registry, "two_inputs") == generate_source(two_inputs(), registry, "two_inputs")


def test_a_constant_of_4096_numbers_is_in_the_source(registry: Registry) -> None:
    text = generate_source(constant(4096), registry, "Net")
    assert text.count(", 6.0") + text.count(", 5.0") == 2 * (4096 // 7)


@pytest.mark.parametrize(
    ("name", "made"),
    [("resNet", "ResNet"), ("DnCNN", "DnCNN"), ("a-b.c", "ABC"), (" two words ", "TwoWords"), ("nn", "Nn"), ("o", "O_"), ("!", "layer_"), ("ünet", "net_")],
)  # fmt: skip
def test_the_class_of_a_network_keeps_the_capitals_of_its_name(name: str, made: str, registry: Registry) -> None:
    assert class_name(name) == made
    assert f"class {made}(nn.Module):" in generate_source(small(), registry, name)
