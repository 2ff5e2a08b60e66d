"""FLOPs, parameters and memory in the status bar, at the layer and on the canvas, live."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtWidgets import QApplication, QLabel
from window_kit import show

import samples
from app.ui.design.layer_facts import LayerFacts
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.shell.live_totals import LiveTotals, explanation, short_text
from designer.files.document import read_document
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.live_cost import LiveCost, Total
from designer.operators.registry import default_registry


@pytest.fixture
def window(empty_window):
    return show(empty_window, kit.small_graph())


def shown(window) -> QLabel:
    return window.findChild(QLabel, "status.totals")


def settled(window) -> bool:
    return window.findChild(LiveTotals).total is not None


def test_the_status_bar_follows_an_edit_and_its_undo(qtbot, window):
    label, document = shown(window), window.context.document
    qtbot.waitUntil(lambda: label.isVisible() and settled(window))
    first = label.text()
    pixels = 64 * 48
    assert first.startswith("~1.33 MFLOP · 224 parameters · ~")  # 2 * pixels * 8 * 27, 8 * 27 + 8
    assert 2 * pixels * 8 * 27 == 1_327_104
    document.do(lambda g: commands.set_params(g, {"conv": {"features": "16"}}))
    qtbot.waitUntil(lambda: "448 parameters" in label.text())
    assert label.text().startswith("~2.65 MFLOP")
    document.undo()
    qtbot.waitUntil(lambda: label.text() == first)
    assert "Two per multiply-add" in label.toolTip()
    assert "1 layer with unknown shapes is not included" in label.toolTip()  # `free` reads nothing


def test_another_document_has_its_own_figures(qtbot, window):
    graph = read_document(samples.path("denoiser.xml")).graph
    document = Document(graph, window.context.registry, parent=window.context)
    window.context.set_document(document)
    qtbot.waitUntil(lambda: settled(window))
    total = window.findChild(LiveTotals).total
    live = LiveCost(document.inference)
    live.count()
    assert total == live.total(document.training)
    assert shown(window).text() == short_text(total)


def test_the_training_branch_and_templates_are_explained():
    text = explanation(Total(flops=2_000, learned=1_234_567, weights=4096, outputs=4096, layers=3), 2)
    assert "1,234,567 learned parameters" in text
    assert "8.00 KiB: 4.00 KiB of weights and 4.00 KiB of layer outputs" in text
    assert "training branch (2 layers) is not included" in text
    assert short_text(Total()) == ""


def test_memory_of_the_selected_layers_is_shown(qtbot, window):
    window.context.select(("conv",))
    facts = window.findChild(LayerFacts, "parameters.facts") or window.findChild(LayerFacts)
    assert facts.facts()["Parameters"] == "224"
    assert facts.facts()["Memory, FP32"] == "~896 B weights, ~96.0 KiB outputs"


def test_the_training_branch_is_not_counted(qtbot, empty_window):
    layers = [
        Layer("image", "input", params={"dims": "16x12x3"}),
        Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "3", "kernel": "3x3"}),
        Layer("result", "output", inputs=(Source("conv"),)),
        Layer("only_trained", "convolution", inputs=(Source("conv"),), params={"features": "3", "kernel": "1x1"}),
        Layer("loss", "l1_loss", inputs=(Source("only_trained"), Source("image"))),
    ]
    window = show(empty_window, Graph(layers))
    qtbot.waitUntil(lambda: settled(window) and shown(window).isVisible())
    assert " 84 parameters " in shown(window).text()  # 3 * 3 * 9 + 3
    assert "The training branch (2 layers) is not included." in shown(window).toolTip()


def test_the_totals_are_those_of_a_new_count_after_every_edit(qtbot):
    """Also where an edit changes the shapes of layers that it does not name, and in another document."""
    context = Context(default_registry())
    documents = [Document(graph, context.registry, parent=context) for graph in (kit.small_graph(), Graph())]
    first, other = documents
    totals = LiveTotals(context)
    said: list[tuple[str, str]] = []
    totals.changed.connect(lambda *words: said.append(words))

    def check(what: str) -> None:
        qtbot.waitUntil(lambda: totals.total is not None and not totals._timer.isActive())
        document = context.root
        live = LiveCost(document.inference)
        live.count()
        wanted = live.total(document.training)
        assert totals.total == wanted, what
        assert said[-1] == (short_text(wanted), explanation(wanted, len(document.training))), what

    context.set_document(first)
    check("at first")
    edits = {
        "remove what others read": lambda g: commands.remove_layers(g, ["conv"]),
        "remove and heal": lambda g: commands.remove_layers(g, ["conv"], heal=True),
        "remove one that nobody reads": lambda g: commands.remove_layers(g, ["free"]),
        "remove all": lambda g: commands.remove_layers(g, list(g.layers)),
        "the size of the input": lambda g: commands.set_params(g, {"input": {"dims": "32x32x3"}}),
        "the kernel": lambda g: commands.set_params(g, {"conv": {"kernel": "5x5"}}),
        "an error": lambda g: commands.set_params(g, {"conv": {"kernel": "none"}}),
        "connect": lambda g: commands.connect(g, Source("input"), "free", 0),
        "cut": lambda g: commands.disconnect(g, "conv", 0, close_gap=False),
        "add": lambda g: commands.add_layer(
            g, Layer("new", "convolution", (0, 0), (Source("cat"),), {"features": "2"})
        ),
        "rename": lambda g: commands.rename_layer(g, "conv", "other"),
        "activation": lambda g: commands.set_activation(g, ["conv"], None),
    }
    for what, edit in edits.items():
        assert first.do(edit), what
        check(what)
        first.undo()
        check(f"undo {what}")
        first.redo()
        check(f"redo {what}")
        first.undo()
    context.set_document(other)
    check("another document")
    assert said[-1][0] == ""
    count = len(said)
    first.do(edits["the kernel"])
    assert not totals._timer.isActive()
    QApplication.processEvents()
    assert len(said) == count, "an edit of a document that is not shown"
    other.do(lambda g: commands.add_layer(g, Layer("input", "input", params={"dims": "8x8x3"})))
    check("the first layer")
    context.set_document(first)
    check("the first document")
    other.do(lambda g: commands.remove_layers(g, ["input"]))
    assert not totals._timer.isActive()
