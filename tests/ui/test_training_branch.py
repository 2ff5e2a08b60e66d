"""The training branch in the window: marked on the canvas, shown by the Layer Editor, not asked for by the analysis."""

from __future__ import annotations

from itertools import pairwise

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QRectF, Qt
from window_kit import shown

from app.ui.canvas.canvas import Canvas
from app.ui.design.code_view import CodeViewPanel
from app.ui.design.layer_editor import ParametersPanel
from app.ui.design.layer_facts import LayerFacts
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.inputs import layers_of
from app.ui.engine.requests import outermost, runnable
from app.ui.widgets import theme
from designer.graph.commands import add_layer, connect, disconnect
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.api import Role
from designer.operators.registry import default_registry


def layer(name, kind, position, *inputs, **params):
    return Layer(name, kind, position, tuple(map(Source, inputs)), params)


@pytest.fixture
def context(qapp):
    context = Context(default_registry())
    layers = [
        layer("image", "input", (0, 0), dims="16x12x3"),
        layer("clean", "input", (0, 160), dims="16x12x3"),
        layer("conv", "convolution", (320, 0), "image", features="3", kernel="3x3"),
        layer("result", "output", (640, 0), "conv"),
        layer("loss", "l1_loss", (640, 160), "conv", "clean"),
    ]
    context.set_document(Document(Graph(layers), context.registry, parent=context))
    return context


@pytest.fixture
def canvas(qtbot, context):
    return shown(qtbot, Canvas(context), 1000, 500)


def marked(canvas):
    return {name for name in canvas.projection.layers if canvas.projection[name].look.training}


def test_the_branch_is_marked_and_the_mark_follows_edits(context, canvas):
    assert marked(canvas) == {"clean", "loss"}
    assert "left out of inference" in canvas.projection["clean"].toolTip()
    document = context.document
    assert document.do(lambda graph: connect(graph, Source("clean"), "conv", 0))
    assert marked(canvas) == {"loss"}
    document.undo()
    assert marked(canvas) == {"clean", "loss"}
    assert document.do(lambda graph: disconnect(graph, "loss", 1))
    assert marked(canvas) == {"loss"}


@pytest.mark.parametrize("mode", ["dark", "light"])
@pytest.mark.parametrize("wide", [900, 3600], ids=["near", "far"])
def test_the_mark_can_be_seen_without_colours(qapp, context, canvas, mode, wide):
    """The outline of a layer of the branch is broken, that of another layer is not."""
    theme.apply(qapp, mode)
    canvas.viewer.fitInView(QRectF(-50, -50, wide, wide / 2), Qt.AspectRatioMode.KeepAspectRatio)
    picture = canvas.viewer.grab().toImage()
    ratio = picture.devicePixelRatio()

    def shades(name):
        """How often brightness jumps along the bottom edge of a layer's box."""
        item = canvas.projection[name]
        box = item.mapRectToScene(item.layout.box if wide == 900 else item.layout.block)
        left, right = (canvas.viewer.mapFromScene(p) for p in (box.bottomLeft(), box.bottomRight()))
        best = 0
        for y in range(left.y() - 2, left.y() + 3):
            row = [
                picture.pixelColor(round(x * ratio), round(y * ratio)).lightness()
                for x in range(left.x() + 4, right.x() - 4)
            ]
            best = max(best, sum(abs(a - b) > 20 for a, b in pairwise(row)))
        return best

    assert shades("loss") >= 4
    assert shades("clean") >= 4
    assert shades("conv") < shades("loss")


def test_the_layer_editor_says_so(qtbot, context):
    panel = ParametersPanel(context)
    qtbot.addWidget(panel)
    facts = panel.findChild(LayerFacts)
    context.select(("loss",))
    assert facts.facts()["Training"] == "part of the training branch, not used in inference"
    context.select(("loss", "conv"))
    assert facts.facts()["Training"].startswith("1 of 2 ")
    context.select(("conv",))
    assert "Training" not in facts.facts()
    context.select(("clean",))
    assert "Training" in facts.facts()
    context.document.do(lambda graph: connect(graph, Source("clean"), "conv", 0))
    assert "Training" not in facts.facts()


def test_the_analysis_asks_for_no_target(context):
    graph = context.document.graph
    assert layers_of(graph, context.registry, Role.INPUT) == ("image",)
    assert layers_of(graph, context.registry, Role.OUTPUT) == ("result",)


def test_the_code_view_shows_the_losses_of_a_selected_one(qtbot, context):
    panel = CodeViewPanel(context)
    qtbot.addWidget(panel)
    panel.show()
    qtbot.waitExposed(panel)
    context.select(("loss",))
    qtbot.waitUntil(lambda: "nn.L1Loss" in panel.source(), timeout=20_000)
    assert "class Losses(nn.Module)" in panel.source()
    context.select(("conv",))
    qtbot.waitUntil(lambda: "nn.Conv2d" in panel.source(), timeout=20_000)
    assert "Losses" not in panel.source()


@pytest.mark.parametrize(
    ("selected", "network", "losses"),
    [
        (("conv",), True, False),
        (("loss",), False, True),
        (("loss", "clean"), False, True),
        (("conv", "loss"), True, False),
    ],
)
def test_the_code_is_that_of_the_losses_only_for_a_selection_inside_the_branch(
    qtbot, context, selected, network, losses
):
    context.select(selected)
    panel = shown(qtbot, CodeViewPanel(context), 600, 400)
    qtbot.waitUntil(lambda: "class" in panel.source() or "def " in panel.source(), timeout=20_000)
    assert ("conv" in panel.source() and "nn.Conv2d" in panel.source()) is network
    assert ("l1_loss" in panel.source().casefold() or "L1Loss" in panel.source()) is losses


def test_layers_with_periods_in_their_names_are_layers_of_the_document(context):
    """Imported and dissolved layers have such names; only layers inside of an instance belong to the instance."""
    body = [
        layer("x", "template_input", (0, 0)),
        layer("act.1", "relu", (9, 0), "x"),
        layer("y", "template_output", (20, 0), "act.1"),
    ]
    layers = [
        layer("net.image", "input", (0, 0), dims="16x12x3"),
        layer("net.clean", "input", (0, 160), dims="16x12x3"),
        layer("net.first", "identity", (160, 0), "net.image"),
        layer("net.conv.1", "convolution", (320, 0), "net.first", features="3", kernel="3x3"),
        layer("net.block", "template", (480, 0), "net.conv.1", template="unit"),
        layer("result", "output", (640, 0), "net.block"),
        layer("net.loss", "l1_loss", (640, 160), "net.block", "net.clean"),
    ]
    document = Document(Graph(layers, templates=[Template("unit", tuple(body))]), context.registry, parent=context)
    assert document.training == {"net.clean", "net.loss"}
    names = [item.name for item in layers]
    assert [outermost(document, name) for name in names] == names
    inside = {"net.block.act.1": "net.block", "net.gone": "net.gone", "gone.conv": "gone.conv"}
    assert {path: outermost(document, path) for path in inside} == inside
    document.do(lambda graph: add_layer(graph, layer("net", "relu", (0, 320), "net.image")))
    assert outermost(document, "net.block.act.1") == "net.block", "the longest name that is a layer"
    document.undo()
    asked = [name for name in names if name not in document.training] + ["net.block.act.1"]
    assert runnable(document, [*names, *inside]) == asked
    target = layer("net.target", "template", (320, 160), "net.clean", template="unit")
    document.do(lambda graph: add_layer(graph, target))
    document.do(lambda graph: connect(graph, Source("net.target"), "net.loss", 1))
    assert document.training == {"net.clean", "net.target", "net.loss"}
    assert runnable(document, [*names, *inside, "net.target", "net.target.act.1"]) == asked, (
        "also inside of an instance"
    )
