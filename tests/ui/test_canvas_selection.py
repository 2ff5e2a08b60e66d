"""What is selected and marked on the canvas: in which order, from afar, in other scopes; what new layers and frames make of it."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from window_kit import press, show

from app.ui.canvas.frames import needed_height
from app.ui.canvas.inline_editor import InlineEditor
from app.ui.document.document import Document
from app.ui.document.template_view import ScopeStep
from designer.graph import commands, frames
from designer.graph.arrangement import NODE_WIDTH
from designer.graph.model import Frame, Layer, Source
from designer.graph.template_commands import make_template

SHIFT = Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def window(empty_window):
    made = show(empty_window, kit.small_graph())
    made.said = []
    made.context.message.connect(lambda severity, text: made.said.append((severity, text)))
    return made


def document(window) -> Document:
    return window.context.document


def test_layers_stay_selected_in_the_order_in_which_they_were_chosen(window):
    canvas = window.canvas
    kit.click(canvas, kit.node(canvas, "out"))
    kit.click(canvas, kit.node(canvas, "free"), SHIFT)
    assert window.context.selection == ("out", "free")
    around = canvas.projection["conv"].box()
    start, end = kit.at(canvas, around.topLeft() - QPointF(12, 40)), kit.at(canvas, around.center())
    kit.drag(canvas, start, end, keys=SHIFT)
    assert window.context.selection == ("out", "free", "conv")


def test_a_layer_that_was_deleted_is_not_selected_from_afar(window, monkeypatch):
    monkeypatch.setattr("app.ui.canvas.projection.EAGER", 0)
    monkeypatch.setattr("app.ui.canvas.projection.FEW", 0)
    graph = document(window).graph.copy()
    window.context.root.history.mark_clean()
    window.context.set_document(Document(graph, window.context.registry, parent=window.context))
    window.context.select(("free", "conv", "cat"))
    document(window).do(commands.remove_layers(graph, ["free"]))
    assert set(window.canvas.viewer.selected_names()) == {"conv", "cat"}
    assert set(window.context.selection) == {"conv", "cat"}
    document(window).undo()
    assert "free" not in window.canvas.viewer.selected_names()


def test_a_layer_in_a_template_opened_on_its_own_is_not_the_inspected_one_of_the_network(window):
    document(window).do(lambda g: make_template(g, ["conv"], "part"))
    instance = next(layer.name for layer in document(window).graph if layer.type == "template")
    inside = next(
        layer.name for layer in document(window).graph.templates["part"].layers if layer.type == "convolution"
    )
    document(window).do(commands.rename_layer(document(window).graph, "free", inside))
    window.context.inspected.emit(inside)
    assert window.canvas.projection[inside].look.inspected
    window.context.set_scope((ScopeStep("", "part"),))
    assert not window.canvas.projection[inside].look.inspected
    window.context.set_scope(())
    window.context.enter(instance)
    assert not window.canvas.projection[inside].look.inspected


def test_the_text_of_a_frame_makes_it_as_tall_as_its_width_needs(window):
    text = "notes\n" + "one word after the other, " * 30
    for key, width, height in (("wide", 640, 160), ("narrow", 192, 320)):
        document(window).do(
            frames.set_frame(document(window).graph, key, Frame(key, "notes", "", "", (0, 400, width, height)))
        )
        window.canvas.viewer.select_frame(window.canvas.projection.frame(key))
        press(window, "F2")
        (editor,) = (e for e in window.canvas.viewer.viewport().findChildren(InlineEditor) if e.isVisible())
        editor.field.selectAll()
        editor.field.insertPlainText(text)
        QTest.keyClick(editor.field, Qt.Key.Key_Return)
        rect = document(window).graph.frames[key].rect
        assert rect[2] == width
        assert rect[3] == max(height, needed_height(width, text))
        document(window).do(frames.set_frame(document(window).graph, key, None))


def test_a_layer_from_the_palette_is_placed_level_with_the_middle_of_a_tall_one(window):
    sources = tuple(Source("input") for _ in range(12))
    document(window).do(
        commands.add_layer(document(window).graph, Layer("tall", "concatenation", (1280, 320), sources))
    )
    window.context.select(("tall",))
    window.context.add_requested.emit("activation")
    (name,) = window.context.selection
    canvas = window.canvas
    tall, new = canvas.projection["tall"].box(), canvas.projection[name].box()
    assert abs(new.center().y() - tall.center().y()) <= 16
    assert tall.right() < new.left() < tall.right() + NODE_WIDTH


def test_a_drag_ends_with_its_own_button_only(window):
    canvas = window.canvas
    start = kit.node(canvas, "free")
    viewport = canvas.viewer.viewport()
    QTest.mousePress(viewport, kit.LEFT, Qt.KeyboardModifier.NoModifier, start)
    QTest.mouseMove(viewport, start + QPoint(0, 40))
    QTest.mouseRelease(viewport, Qt.MouseButton.RightButton, Qt.KeyboardModifier.NoModifier, start + QPoint(0, 40))
    assert document(window).graph["free"].position == (320, 160)
    QTest.mouseMove(viewport, start + QPoint(0, 80))
    QTest.mouseRelease(viewport, kit.LEFT, Qt.KeyboardModifier.NoModifier, start + QPoint(0, 80))
    assert document(window).graph["free"].position[1] > 160


def test_a_layer_in_a_template_that_no_instance_led_to_cannot_be_inspected(window):
    document(window).do(lambda g: make_template(g, ["conv"], "part"))
    window.context.set_scope((ScopeStep("", "part"),))
    inside = next(layer.name for layer in document(window).graph if layer.type == "convolution")
    asked = []
    window.context.inspect_requested.connect(asked.append)
    window.canvas.viewer.inspect_requested.emit(inside)
    assert asked == []
    assert window.said[-1] == (
        "info",
        "This layer does not run here. Open the template through an instance to inspect it.",
    )


def test_a_collapsed_frame_inside_a_moved_frame_takes_its_layers_along(window):
    graph = document(window).graph
    document(window).do(frames.set_frame(graph, "inner", Frame("inner", "inner", "", "", (288, 128, 192, 128))))
    document(window).do(frames.set_frame(graph, "outer", Frame("outer", "outer", "", "", (240, 64, 320, 320))))
    canvas = window.canvas
    canvas.viewer.select_frame(canvas.projection.frame("inner"))
    press(window, "H")
    assert document(window).graph.frames["inner"].collapsed
    before = document(window).graph["free"].position
    outer = canvas.projection.frame("outer")
    grip = kit.at(canvas, QPointF(outer.rect.left() + 60, outer.rect.top() + 8))
    kit.drag(canvas, grip, grip + QPoint(0, 96))
    run = document(window).graph.frames["outer"].rect[1] - 64
    assert run > 0
    assert document(window).graph.frames["inner"].rect[1] == 128 + run
    assert document(window).graph["free"].position == (before[0], before[1] + run)
