"""Views under the keys 1 to 9: kept in the document, also inside of templates; they survive saving and pass undo by."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import template_networks
from canvas_kit import open_canvas
from PySide6.QtCore import QPointF, QRectF
from window_kit import press, show

import samples
from app.ui.canvas.saved_views import SavedView, SavedViews
from app.ui.document.template_view import ScopeStep
from designer.files.document import parse_document, read_document, write_document
from designer.graph import commands, template_commands
from designer.graph.graph import Graph
from designer.graph.model import GRID, Layer


@pytest.fixture
def window(empty_window):
    return show(empty_window, read_document(samples.path("residual_blocks.xml")).graph)


def test_a_view_goes_with_the_file(window):
    viewer, root = window.canvas.viewer, window.context.root
    viewer.zoom_by(0.7 / viewer.zoom)
    viewer.go(QPointF(320, 96))
    press(window, "Ctrl+3")
    assert not root.history.is_clean
    assert root.history.undo_title is None
    data = write_document(root.graph)
    root.history.mark_clean()
    assert root.history.is_clean
    show(window, parse_document(data).graph)
    assert window.context.root.history.is_clean
    press(window, "Home", "3")
    assert viewer.zoom == pytest.approx(0.7, abs=1e-3)
    assert (viewer.visible_center() - QPointF(320, 96)).manhattanLength() < 8


def test_a_view_inside_of_a_template_goes_there(window):
    window.context.enter("group_1")
    window.context.enter("block_1")
    press(window, "Ctrl+1")
    window.context.set_scope(())
    window.context.enter("residual_group")
    press(window, "Ctrl+2")
    window.context.set_scope(())
    press(window, "1")
    assert [step.instance for step in window.context.scope] == ["group_1", "block_1"]
    press(window, "2")
    assert window.context.scope == (ScopeStep("", "residual_group"),)


def test_undo_passes_a_view_by(window):
    root = window.context.root
    name = next(iter(root.graph.layers))
    root.do(lambda g: commands.move_layers(g, {name: (0, 480)}))
    press(window, "Ctrl+1", "Ctrl+Z")
    assert "view.1" in root.graph.properties
    assert not root.history.is_clean


def test_a_way_that_is_gone_is_told(qtbot, window):
    window.context.enter("group_1")
    press(window, "Ctrl+1")
    window.context.set_scope(())
    window.context.root.do(lambda g: commands.remove_layers(g, ["group_1"]))
    with qtbot.waitSignal(window.context.message) as reported:
        press(window, "1")
    assert reported.args == ["warning", "View 1 shows a template or instance that no longer exists."]


def test_a_view_goes_where_its_instances_and_templates_still_are(qtbot):
    """Stored in an instance inside of another, and in a template that was opened by name; then a part of the way changes."""
    canvas = open_canvas(qtbot, template_networks.nested(), (400, 300))
    context, root, views = canvas.context, canvas.context.root, SavedViews(canvas.context, canvas)
    ways = {1: (), 2: ("c",), 3: ("c", "r"), 4: ("outer",), 5: ("outer", "r")}
    for number, steps in ways.items():
        context.set_scope(())
        for step in steps:
            context.enter(step)
        views.store(number)
    edits = {
        "nothing": (None, {1, 2, 3, 4, 5}),
        "the instance": (lambda g: commands.rename_layer(g, "c", "front"), {1, 4, 5}),
        "the instance inside": (
            lambda g: template_commands.edit_template(g, "outer", commands.rename_layer(g.inside("outer"), "r", "s")),
            {1, 2, 4},
        ),
        "the template of both": (lambda g: template_commands.rename_template(g, "outer", "other"), {1, 2, 3}),
        "the template inside": (lambda g: template_commands.rename_template(g, "residual", "other"), {1, 2, 3, 4, 5}),
    }
    for what, (edit, there) in edits.items():
        assert edit is None or root.do(edit)
        for number, steps in ways.items():
            context.set_scope(())
            canvas.messages.clear()
            views.recall(number)
            found = tuple(step.instance or step.template for step in context.scope)
            assert found == (steps if number in there else ()), (what, number)
            assert len(canvas.messages) == (number not in there), (what, number)
        context.set_scope(())
        if edit is not None:
            root.undo()


@pytest.mark.parametrize("text", ["", "1,2", "1,2,x", "1,2,0.00001", "99999999999,0,1", "1,2,3,4\x00"])
def test_texts_that_are_no_views_are_none(text):
    view = SavedView.parse(text)
    assert view is None or view.way


def test_the_whole_of_a_huge_network_is_a_view_like_others(empty_window):
    """Zoom to Fit may go a little below the least scale of the wheel."""
    window = show(empty_window, Graph([Layer("a", "input"), Layer("b", "output", (0, 30_000))]))
    viewer = window.canvas.viewer
    height = viewer.viewport().height()
    viewer.frame_rect(QRectF(0, 0, 1000, height / 0.0195 - 4 * GRID))
    far = viewer.zoom
    assert far == pytest.approx(0.0195, abs=2e-4)
    viewer.zoom_by(0.99)
    assert viewer.zoom < far
    press(window, "Ctrl+1")
    stored, place = viewer.zoom, viewer.place()
    viewer.zoom_by(1 / viewer.zoom)
    press(window, "1")
    assert viewer.zoom == pytest.approx(stored, abs=1e-4)
    viewer.zoom_by(1 / viewer.zoom)
    viewer.restore(place)
    assert viewer.zoom == pytest.approx(stored)
    viewer.frame_rect(QRectF(0, 0, 1000, 10 * height / 0.02))
    viewer.zoom_by(0.01)
    least = viewer.zoom
    press(window, "Ctrl+1")
    viewer.zoom_by(1 / viewer.zoom)
    press(window, "1")
    assert viewer.zoom == pytest.approx(least, abs=1e-4)
