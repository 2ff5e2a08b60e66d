"""Findings of networks that are wrong, and why they have no source and no losses, with place and remedy, as recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from recorded import check_recorded

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.graph.types import BATCH, TensorType
from designer.operators.inside import InsideInference
from designer.operators.registry import load
from exporters.pytorch.losses import losses_of
from exporters.pytorch.source import generate_source, generate_template

REGISTRY = load(entry_points=False)


def layer(name: str, kind: str, *inputs: str, act: str = "", shared: str = "", **params: object) -> Layer:
    sources = tuple(Source.parse(text) for text in inputs)
    texts = {key: str(value) for key, value in params.items()} | ({"shared_weights": "true"} if shared else {})
    return Layer(name, kind, inputs=sources, params=texts, activation=ActivationSpec(act) if act else None)


def image(name: str = "image", dims: str = "8x6x3") -> Layer:
    return layer(name, "input", dims=dims)


def end(source: str, name: str = "y") -> Layer:
    return layer(name, "output", source)


def block(name: str, *layers: Layer, last: str = "a") -> Template:
    return Template(name, (layer("x", "template_input"), *layers, layer("r", "template_output", last)))


def chain(count: int) -> list[Template]:
    """Templates inside each other."""
    inner = [block("level0", layer("a", "identity", "x"))]
    return inner + [block(f"level{n}", layer("a", "template", "x", template=f"level{n - 1}")) for n in range(1, count)]


def doubled(count: int) -> list[Template]:
    """Templates that contain the one before twice."""
    inner = [block("level0", layer("a", "identity", "x"))]
    for n in range(1, count):
        twice = [
            layer("b", "template", "x", template=f"level{n - 1}"),
            layer("a", "template", "b", template=f"level{n - 1}"),
        ]
        inner.append(block(f"level{n}", *twice))
    return inner


CONV = block("block", layer("a", "convolution", "x", features=4))
PART = block("part", layer("a", "identity", "x"))


def used(name: str, kind: str = "template", **params: object) -> list[Layer]:
    return [image(), layer("t", kind, "image", template=name, **params), end("t")]


def one(kind: str, *inputs: str, **params: object) -> list[Layer]:
    """An input, a layer, and an output."""
    return [image(), layer("it", kind, *(inputs or ("image",)), **params), end("it")]


def large(numbers: str) -> list[Layer]:
    constant = layer("c", "tensor_constant", shape="1,3,60,80", numbers=numbers)
    return [image(dims="80x60x3"), constant, layer("a", "element_wise", "image", "c"), end("a")]


NAMED = "import torch.nn as nn\nclass Twice(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
GRAPHS: dict[str, tuple[list[Layer], list[Template]]] = {
    "a template that uses itself": (used("loop"), [block("loop", layer("a", "template", "x", template="loop"))]),
    "templates that use each other": (
        used("one"),
        [block("one", layer("a", "template", "x", template="two")), block("two", layer("a", "template", "x", template="one"))],
    ),
    "templates of 16 levels": (used("level15"), chain(16)),
    "templates of 17 levels": (used("level16"), chain(17)),
    "a large template": (used("level15"), doubled(16)),
    "no template": (used("block"), []),
    "no selected template": (used(""), []),
    "another template": (used("blok"), [CONV, PART]),
    "a template without an output": (
        used("open"), [Template("open", (layer("x", "template_input"), layer("a", "identity", "x")))]
    ),
    "a template without an input": (
        [layer("t", "template", template="constant"), end("t")],
        [Template("constant", (layer("a", "tensor_constant", shape="1,3"), layer("r", "template_output", "a")))],
    ),
    "an unused template that is wrong": ([image(), end("image")], [block("wrong", layer("a", "convolution", "gone"))]),
    "an input and an output in a template": (
        used("wrong"), [block("wrong", image("inner"), layer("a", "identity", "x"), layer("o", "output", "a"))]
    ),
    "an activation of a port": (
        used("wrong"),
        [Template("wrong", (layer("x", "template_input", act="relu"), layer("r", "template_output", "x")))],
    ),
    "a port outside": ([image(), layer("p", "template_output", "image"), end("image")], []),
    "an error inside of a template": (used("wrong"), [block("wrong", layer("a", "space_to_depth", "x", block_size=5))]),
    "a name inside of an instance": (
        [image(), layer("t", "template", "image", template="part"), layer("t.a", "identity", "t"), end("t.a")], [PART]
    ),
    "the name of shared weights": (
        [image(), layer("block", "identity", "image"), layer("t", "template", "block", shared="yes", template="block"), end("t")],
        [CONV],
    ),
    "a name inside of shared weights": (
        [image(), layer("block.a", "identity", "image"), layer("t", "template", "block.a", shared="yes", template="block"), end("t")],
        [CONV],
    ),
    "shared weights of other channels": (
        [
            image(), layer("t", "template", "image", shared="yes", template="block"),
            layer("u", "template", "t", shared="yes", template="block"), end("u"),
        ],
        [CONV],
    ),
    "a layer with the weights of another": (
        [image(), layer("a", "convolution", "image", features=4), Layer("b", "convolution", inputs=(Source("a"),), params={"features": "4"}, weights_of="a"), end("b")],
        [],
    ),
    "a layer with the weights of another type": (
        [image(), layer("a", "convolution", "image", features=3), Layer("b", "batch_normalization", inputs=(Source("a"),), weights_of="a"), end("b")],
        [],
    ),
    "a layer with the weights of nothing": (
        [image(), Layer("b", "convolution", inputs=(Source("image"),), weights_of="gone"), end("b")], []
    ),
    "no output": ([image(), layer("a", "identity", "image")], []),
    "only losses": ([image(), image("target"), layer("a", "identity", "image"), layer("l", "l1_loss", "a", "target")], []),
    "losses apart": ([image(), image("target"), layer("l", "l1_loss", "target", "target"), end("image")], []),
    "losses with weights of the network": (
        [
            image(), image("target"), layer("a", "convolution", "image", features=4), end("a"),
            Layer("b", "convolution", inputs=(Source("target"),), params={"features": "4"}, weights_of="a"),
            layer("l", "l1_loss", "a", "b"),
        ],
        [],
    ),
    "losses with shared weights of other channels": (
        [
            image(), image("target", "8x6x5"), layer("t", "template", "image", shared="yes", template="block"), end("t"),
            layer("u", "template", "target", shared="yes", template="block"), layer("l", "l1_loss", "t", "u"),
        ],
        [CONV],
    ),
    "two custom layers with classes of one name": (
        [
            image(), layer("a", "custom", "image", source=NAMED, class_name="Twice"),
            layer("b", "custom", "a", source=NAMED.replace("2", "3"), class_name="Twice"), end("b"),
        ],
        [],
    ),
    "two custom layers with one source": (
        [
            image(), layer("a", "custom", "image", source=NAMED, class_name="Twice"),
            layer("b", "custom", "a", source=NAMED, class_name="Twice"), end("b"),
        ],
        [],
    ),
    "an output that reads no input": ([image(), layer("c", "tensor_constant", shape="1,3"), end("c")], []),
    "a constant of many numbers": (large(",".join(map(str, range(14400)))), []),
    "a large constant of one number": (large("7"), []),
}  # fmt: skip
LAYERS: dict[str, list[Layer]] = {
    "custom, no Python": one("custom", source="class A:\n  def f(self:\n"),
    "custom, no such class": one("custom", source=NAMED, class_name="Thrice"),
    "custom, no class": one("custom", source="a = 1", class_name="Thrice"),
    "custom, from the future": one("custom", source=f"from __future__ import annotations\n{NAMED}", class_name="Twice"),
    "custom, too long": one("custom", source=NAMED + "#" * 1_000_000, class_name="Twice"),
    "custom, a call as an argument": one("custom", source=NAMED, class_name="Twice", arguments="open('x')"),
    "custom, an expression as an argument": one("custom", source=NAMED, class_name="Twice", arguments="1 + 2"),
    "custom, named arguments of a variable": one("custom", source=NAMED, class_name="Twice", arguments="**more"),
    "custom, unfinished arguments": one("custom", source=NAMED, class_name="Twice", arguments="1, (2"),
    "custom, arguments and more": one("custom", source=NAMED, class_name="Twice", arguments="1) + (2"),
    "custom, a sign before a truth value": one("custom", source=NAMED, class_name="Twice", arguments="-True"),
    "custom, many arguments": one("custom", source=NAMED, class_name="Twice", arguments="1," * 60_000),
    "custom, an empty result": one("custom", source=NAMED, class_name="Twice", result="shape", shape=""),
    "custom, a small result": one("custom", source=NAMED, class_name="Twice", result="scaled", scale=0.01),
    "custom, wrong tensors": one("custom", source=NAMED, class_name="Twice", tensors="weight 3 by 4"),
    "custom, a tensor twice": one("custom", source=NAMED, class_name="Twice", tensors="weight 3x4\nweight 3x4"),
    "opaque, no operator": one("opaque", op_type="Not an operator", shapes="N x 3"),
    "opaque, no shapes": one("opaque", op_type="Sin"),
    "opaque, two outputs and one shape": one("opaque", op_type="Sin", output_count=2, shapes="N x 3"),
    "opaque, a wrong dimension": one("opaque", op_type="Sin", shapes="N x 3\nN x three int64"),
    "opaque, a wrong type": one("opaque", op_type="Sin", shapes="N x 3 int63"),
    "opaque, nothing left": one("opaque", op_type="Sin", shapes="N x 3 x H/9 x W"),
    "opaque, a size of no image": [
        image(), layer("f", "flatten", "image"), layer("it", "opaque", "f", op_type="Sin", shapes="N x H"), end("it")
    ],
    "opaque, attributes without a value": one("opaque", op_type="Sin", shapes="N", attributes="axis=1\nkeep"),
    "opaque, an attribute twice": one("opaque", op_type="Sin", shapes="N", attributes="axis=1\naxis=2"),
    "opaque, an attribute of two types": one("opaque", op_type="Sin", shapes="N", attributes="axis=[1, 'a']"),
    "opaque, an attribute that is called": one("opaque", op_type="Sin", shapes="N", attributes="axis=int(1)"),
    "opaque, a damaged model": one("opaque", op_type="Sin", shapes="N", model="bm9uZQ=="),
    "einsum, no arrow": one("einsum", equation="bchw"),
    "einsum, too few letters": one("einsum", equation="bij->bi"),
    "einsum, other letters in the result": one("einsum", equation="bchw->bx"),
    "einsum, a letter of two sizes": [image(), image("b", "4x6x3"), layer("it", "einsum", "image", "b", equation="bchw,bchw->bc"), end("it")],
    "a kernel of another rank": [
        image(), layer("k", "parameter", shape="4,3,3"), layer("it", "dynamic_convolution", "image", "k"), end("it")
    ],
    "a kernel that leaves nothing": one(
        "transposed_convolution", kernel="1x1", padding="tuple", padding_tuple="4x4", stride="1x1"
    ),
    "a window over padding only": one("pooling", size="2x2", padding="1x1", dilation="20x20", ceil_mode="true"),
    "many parts": one("split", sizes=",".join(["1"] * 300)),
    "an image of one row": [image(dims="8x1x3"), layer("it", "gradient_loss", "image", "image"), end("image")],
    "an image of one column": [image(dims="1x8x3"), layer("it", "gradient_loss", "image", "image"), end("image")],
    "a wide window": [image(dims="11x9x3"), layer("it", "ssim_loss", "image", "image"), end("image")],
    "a high window": [image(dims="9x11x3"), layer("it", "ssim_loss", "image", "image"), end("image")],
    "a number that is infinite": one("scale_shift", scale="inf"),
    "a number of many digits": one("convolution", features="9" * 5000),
    "groups of single values": [image(dims="1x1x4"), layer("it", "group_normalization", "image", groups=4), end("it")],
    "an unknown operator": one("fancy"),
    "an unknown activation": [image(), layer("it", "convolution", "image", act="fancy"), end("it")],
    "a huge output": [*one("upsample", factor="256x256"), layer("more", "upsample", "it", factor="256x256")],
}  # fmt: skip


def line(diagnostic: Diagnostic) -> str:
    d = diagnostic
    place = ", ".join(
        f"{kind} {value}"
        for kind, value in (
            ("layer", d.layer), ("port", d.port), ("parameter", d.parameter), ("template", d.template), ("inner", d.inner),
            ("line", d.line),
        )
        if value
    )  # fmt: skip
    return f"{d.severity.value} {d.code} ({place}): {d.message[:300]}; {d.remedy[:200]}"


def refusal(make: Callable[[], Any]) -> list[Diagnostic]:
    try:
        make()
    except DiagnosticError as error:
        return list(error.diagnostics)
    return []


def findings(graph: Graph) -> Iterator[str]:
    yield from (f"  {line(found)}" for found in Inference(graph, REGISTRY).diagnostics())
    for what, make in (
        ("source", lambda: generate_source(graph, REGISTRY, "net")),
        ("template", lambda: [generate_template(graph, REGISTRY, name) for name in graph.templates]),
        ("losses", lambda: losses_of(graph, REGISTRY)),
    ):
        yield from (f"  {what}: {line(found)}" for found in refusal(make))


def inside_findings(graph: Graph) -> Iterator[str]:
    """Of the inside of each template: as it is opened alone, through an instance, and after its inputs are known no more."""
    for name in graph.templates:
        feeds = {"x": TensorType((BATCH, 3, 6, 8))}
        inference = InsideInference(graph.inside(name), REGISTRY)
        for how, now in (("alone", {}), ("with an input", feeds), ("alone again", {})):
            inference.feed(now)
            found = [line(each) for each in inference.diagnostics()]
            types = [f"{key} {inference.type_of(Source(key))}" for key in ("x", "a") if key in inference.graph]
            yield f"  inside {name}, {how}: {', '.join(types)}"
            yield from (f"    {text}" for text in found)


def test_findings_of_wrong_networks() -> None:
    cases = {name: Graph(layers, templates=templates) for name, (layers, templates) in GRAPHS.items()}
    cases |= {name: Graph(layers) for name, layers in LAYERS.items()}
    lines = [text for name, graph in cases.items() for text in (name, *findings(graph))]
    few = [name for name, graph in cases.items() if 0 < len(graph.templates) < 4]
    lines += [text for name in few for text in (name, *inside_findings(cases[name]))]
    check_recorded("operators/findings.txt", "\n".join([*lines, ""]))
