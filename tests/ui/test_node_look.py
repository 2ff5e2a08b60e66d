"""What a node shows of its layer: ports, summary, marks, problems and tip, as the document says; no canvas is needed."""

from __future__ import annotations

from dataclasses import replace
from html import unescape

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtWidgets import QApplication

from app.ui.canvas import node_metrics
from app.ui.canvas.node_look import NodeLook, input_ports, node_look, output_ports
from app.ui.document.document import Document
from designer.graph import commands
from designer.graph.bypass import bypass
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.freezing import freeze
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import INSTANCE, Template
from designer.graph.template_commands import new_instance
from designer.operators.registry import default_registry
from designer.units import binary, si

CONV = {"features": "8", "kernel": "3x3", "padding": "same"}


@pytest.fixture
def document(qapp: QApplication) -> Document:
    inner = (
        Layer("x", "template_input"),
        Layer("inside", "convolution", (320, 0), (Source("x"),), CONV),
        Layer("y", "template_output", (640, 0), (Source("inside"),)),
    )
    layers = [
        Layer("image", "input", params={"dims": "64x48x3"}),
        Layer("conv", "convolution", (320, 0), (Source("image"),), CONV, ActivationSpec("relu")),
        Layer("cat", "concatenation", (640, 0), (Source("conv"), Source("image"))),
        Layer("add", "element_wise", (640, 160), (Source("conv"), Source("conv"))),
        Layer("block", INSTANCE, (640, 320), (Source("conv"),), {"template": "pair"}),
        Layer("out", "output", (960, 0), (Source("cat"),)),
        Layer("strange", "of_a_plugin", (0, 320), (Source("image"), Source("conv"))),
        Layer("target", "input", (640, 640), params={"dims": "64x48x8"}),
        Layer("loss", "l1_loss", (960, 640), (Source("conv"), Source("target"))),
    ]
    made = Document(Graph(layers, templates=[Template("pair", inner)]), default_registry())
    yield made
    made.deleteLater()


def look(document: Document, name: str) -> NodeLook:
    return node_look(document, name)


def lines(document: Document, name: str) -> list[str]:
    """The tip without its first two lines: the name, and the help of the operator."""
    return look(document, name).tip.split("<br>")[2:]


def sources(*names: str | None) -> tuple[Source | None, ...]:
    return tuple(Source(name) if name else None for name in names)


@pytest.mark.parametrize("count", range(5))
def test_a_list_of_inputs_has_one_free_place_behind_those_that_are_connected(document: Document, count: int) -> None:
    names = [("conv", "image", "add", "conv")[number] for number in range(count)]
    document.do(lambda g: commands.remove_layers(g, ["out"]))
    document.do(lambda g: commands.add_layer(g, Layer("new", "concatenation", (0, 900), sources(*names))))
    ports = look(document, "new").inputs
    assert [port.free for port in ports] == [*[False] * count, True]
    assert len({port.name for port in ports}) == 1, "the inputs of one port alone need no numbers"
    assert [port.tip.partition(",")[0].partition(":")[0] for port in ports] == [
        f"{ports[0].name} {number}" for number in range(1, count + 2)
    ]
    assert look(document, "new").summary == f"{count} input{'' if count == 1 else 's'}"


def test_open_places_of_a_list_do_not_count_as_inputs(document: Document) -> None:
    document.do(lambda g: commands.disconnect(g, "cat", 0, close_gap=False))
    shown = look(document, "cat")
    assert document.graph["cat"].inputs == sources(None, "image")
    assert (len(shown.inputs), shown.summary) == (3, "1 input")
    assert [port.free for port in shown.inputs] == [False, False, True]


def test_the_tip_of_a_port_has_its_rank_types_and_whether_it_is_optional() -> None:
    """Of every operator; inputs that a port takes any number of are counted from 1."""
    ranks = set()
    for cls in default_registry():
        shown = [*input_ports(Layer("new", cls.type), None, cls), *output_ports(None, cls)] if cls.inputs else []
        for port, found in zip((*cls.inputs, *cls.outputs), shown, strict=bool(shown)):
            name = f"{port.name} 1" if port.variadic else port.name
            several = " or ".join(map(str, port.rank)) if isinstance(port.rank, tuple) else port.rank
            rank = f", rank {several}" if port.rank else ""
            types = f", {' or '.join(dtype.value for dtype in port.dtypes)}" if port.dtypes else ""
            text = f"{name}{rank}{types}{', optional' if port.optional else ''}{f': {port.doc}' if port.doc else ''}"
            assert found.tip == text, cls.type
            ranks.add(port.rank)
    assert {type(rank) for rank in ranks} >= {int, tuple, type(None)}


@pytest.mark.parametrize("count", range(4))
def test_more_connections_than_inputs_are_shown_so_that_they_can_be_removed(document: Document, count: int) -> None:
    layer = Layer("new", "output", (0, 900), sources(*["conv", "image", "add"][:count]))
    document.do(lambda g: commands.replace_layers(g, {"new": layer}, "Add", {}))
    ports = look(document, "new").inputs
    assert len(ports) == max(1, count)
    assert [(port.name, port.tip) for port in ports[1:]] == [
        (f"input {number}", "excess connection: remove it") for number in range(1, count)
    ]
    assert look(document, "new").problem == ("" if count == 1 else "error")


def test_a_layer_that_nobody_knows_has_the_ports_of_its_links(document: Document) -> None:
    shown = look(document, "strange")
    assert (shown.title, shown.category, shown.summary, shown.problem) == ("unknown: of_a_plugin", None, "", "error")
    assert [port.name for port in shown.inputs] == ["input 0", "input 1"]
    assert [port.name for port in shown.outputs] == ["y"]
    document.do(lambda g: commands.disconnect(g, "strange", 1, close_gap=True))
    assert [port.name for port in look(document, "strange").inputs] == ["input 0"]


def test_an_instance_says_how_many_there_are_of_its_template(document: Document) -> None:
    plain = look(document, "block").summary
    assert "×" not in plain
    for count in (2, 3):
        document.do(lambda g: commands.add_layer(g, new_instance(g, "pair", (0, 900))))
        assert look(document, "block").summary == f"{plain} ×{count}"
    document.undo()
    assert look(document, "block").summary == f"{plain} ×2"
    assert "×" not in look(document, "conv").summary
    document.undo()
    assert look(document, "block").summary == plain


def test_the_tip_names_every_element_type_once(document: Document) -> None:
    layers = [
        Layer("best", "top_k", (960, 0), sources("conv"), {"k": "2"}),
        Layer("half", "cast", (960, 160), sources("conv"), {"target": "float16"}),
    ]
    for layer in layers:
        document.do(lambda g, layer=layer: commands.add_layer(g, layer))
    outputs = {name: lines(document, name)[0] for name in ("image", "best", "half")}
    assert outputs == {
        "image": "output N x 3 x 48 x 64 float32",
        "best": "output N x 8 x 48 x 2 float32, N x 8 x 48 x 2 int64",
        "half": "output N x 8 x 48 x 64 float16",
    }


def test_a_warning_hides_nothing_of_a_layer(document: Document) -> None:
    before = look(document, "conv")
    document.do(lambda g: commands.set_params(g, {"conv": {"strange": "1"}}))
    after = look(document, "conv")
    assert (before.problem, after.problem) == ("", "warning")
    assert after.tip != before.tip
    assert replace(after, problem="", tip=before.tip) == before


def test_a_frozen_and_a_bypassed_layer_say_so(document: Document) -> None:
    plain, tip = look(document, "conv").summary, lines(document, "conv")
    document.do(lambda g: freeze(g, ["conv"]))
    assert look(document, "conv").summary == f"{plain}  frozen"
    assert [line for line in lines(document, "conv") if line not in tip] == ["frozen: training keeps its weights"]
    document.undo()
    assert (look(document, "conv").summary, lines(document, "conv")) == (plain, tip)
    for name, passed in (("add", "conv"),):
        document.do(lambda g, name=name: bypass(g, document.inference, [name]))
        shown = look(document, name)
        assert shown.bypassed
        text = f"bypassed: passes '{passed}' through in inference, analysis and exports"
        assert [line for line in lines(document, name) if "bypassed" in line] == [text]
        document.undo()
        assert not look(document, name).bypassed
    conv = document.graph["conv"]
    alone = replace(conv, inputs=(), attributes={**conv.attributes, "lw:bypassed": "true"})
    document.do(lambda g: commands.replace_layers(g, {"conv": alone}, "Open", {}))
    assert look(document, "conv").bypassed
    assert [line for line in lines(document, "conv") if "bypassed" in line][:1] == ["bypassed"]


def test_the_tip_has_the_output_or_why_it_is_unknown(document: Document) -> None:
    layer = document.graph["conv"]
    metrics = node_metrics.summary(layer, document.inference.read("conv"), document.inference.states["conv"])
    assert metrics
    assert lines(document, "conv") == ["output N x 8 x 48 x 64 float32", metrics]
    assert look(document, "conv").shapes == ("8 x 48 x 64",)
    assert "part of the training branch: left out of inference" in lines(document, "loss")
    assert (look(document, "loss").training, look(document, "conv").training) == (True, False)
    document.do(lambda g: commands.set_params(g, {"conv": {"kernel": "0x0"}}))
    shown = look(document, "conv")
    assert (shown.problem, shown.shapes) == ("error", ())
    assert not any(line.startswith("output") for line in lines(document, "conv"))
    assert any(line.startswith("error: ") for line in lines(document, "conv"))
    for name in ("cat", "add", "block"):
        assert look(document, name).problem == "unknown"
        assert lines(document, name)[0] == "output unknown because of 'conv'"
    document.undo()
    assert look(document, "add").problem == ""


def test_marks_in_the_title_bar_are_counted_and_the_figure_below_is_the_chosen_one(document: Document) -> None:
    assert [look(document, name).marks for name in ("conv", "strange", "loss")] == [0, 1, 1]
    assert node_look(document, "strange", inspected=True).marks == 2
    assert look(document, "conv").under == "8 x 48 x 64"
    try:
        node_metrics.show("parameters")
        assert look(document, "conv").under == "224"
    finally:
        node_metrics.show(node_metrics.SHAPES)
    assert look(document, "conv").activation == "relu"
    assert look(document, "cat").activation == ""
    document.do(lambda g: commands.collapse_layers(g, ["conv"], True))
    assert look(document, "conv").collapsed


def test_figures_of_a_layer_are_its_work_alone_and_in_one_line(qapp: QApplication) -> None:
    """3 channels of 8 x 16 pixels: numbers by hand, each alone and all together; 0 is left out."""
    layers = [
        Layer("in", "input", params={"dims": "16x8x3"}),
        Layer(
            "conv", "convolution", inputs=(Source("in"),), params={"features": "4", "kernel": "3x3", "padding": "same"}
        ),
        Layer("one", "convolution", inputs=(Source("in"),), params={"features": "1", "kernel": "1x1"}),
        Layer("same", "identity", inputs=(Source("conv"),)),
        Layer("free", "convolution", params={"features": "4"}),
        Layer("other", "of_a_plugin", inputs=(Source("in"),)),
    ]
    document = Document(Graph(layers), default_registry())
    learned, pixels = 4 * 3 * 9 + 4, 8 * 16
    expected = {
        "conv": (f"{learned} parameters", 2 * 4 * 27 * pixels, 4 * learned + 4 * 4 * pixels),
        "one": ("4 parameters", 2 * 3 * pixels, 4 * 4 + 4 * pixels),
        "same": ("", 0, 4 * 4 * pixels),
        "in": ("", 0, 4 * 3 * pixels),
    }
    for name in document.graph.layers:
        layer, read, state = document.graph[name], document.inference.read(name), document.inference.states[name]
        alone = {kind: node_metrics.metric(layer, read, state, kind) for kind in node_metrics.METRICS}
        line = node_metrics.summary(layer, read, state)
        if name not in expected:
            assert (alone, line) == ({"shapes": "", "parameters": "-", "flops": "-", "memory": "-"}, "")
            continue
        parameters, flops, memory = expected[name]
        texts = [f"~{si(flops, 'FLOP')}" if flops else "", f"~{binary(memory)}"]
        assert alone == {
            "shapes": "",
            "parameters": parameters.partition(" ")[0] or "-",
            "flops": texts[0] or "-",
            "memory": texts[1],
        }
        assert line == ", ".join([*filter(None, (parameters, texts[0])), f"{texts[1]} of weights and outputs"])


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("bypassed", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_layer_says_each_of_its_states(qapp: QApplication, frozen: bool, bypassed: bool, training: bool) -> None:
    layers = [
        Layer("in", "input", params={"dims": "16x8x3"}),
        Layer(
            "conv", "convolution", inputs=(Source("in"),), params={"features": "3", "kernel": "3x3", "padding": "same"}
        ),
        Layer("out", "output", inputs=(Source("in" if training else "conv"),)),
        Layer("loss", "l1_loss", inputs=(Source("conv"), Source("in"))),
    ]
    document = Document(Graph(layers), default_registry())
    if frozen:
        document.do(lambda g: freeze(g, ["conv"]))
    if bypassed:
        document.do(lambda g: bypass(g, document.inference, ["conv"]))
    texts = {
        "bypassed: passes 'in' through in inference, analysis and exports": bypassed,
        "frozen: training keeps its weights": frozen,
        "part of the training branch: left out of inference": training,
    }
    found = lines(document, "conv")
    output = found.index("output N x 3 x 8 x 16 float32")
    assert found[:output] == [text for text, said in texts.items() if said]
    shown = look(document, "conv")
    assert (shown.bypassed, shown.training, "frozen" in shown.summary) == (bypassed, training, frozen)


def test_findings_are_in_the_tip_in_their_order_with_their_remedies_as_plain_text(document: Document) -> None:
    """Whatever characters a file or a plugin brings: the tip is rich text."""
    found = (
        Diagnostic("a", "'<b>x</b>' & more", Severity.WARNING, remedy="use 'y' <or> z"),
        Diagnostic("b", "plain", Severity.ERROR),
        Diagnostic("c", "a < b", Severity.INFO, remedy="&amp;"),
    )
    state = document.inference.states["conv"]
    before = lines(document, "conv")
    document.inference.states["conv"] = replace(state, diagnostics=found)
    said = lines(document, "conv")
    assert said[: len(before)] == before
    assert [unescape(line) for line in said[len(before) :]] == [
        "warning: '<b>x</b>' & more (use 'y' <or> z)",
        "error: plain",
        "note: a < b (&amp;)",
    ]
    assert not any("<" in line or ">" in line for line in said[len(before) :])
    assert look(document, "conv").problem == "error"
