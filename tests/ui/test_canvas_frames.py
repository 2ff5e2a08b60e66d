"""Comment frames by mouse and keys: made, moved with their layers, resized, titled, deleted, undone, saved."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QInputDialog, QLineEdit
from window_kit import press, show

from designer.files.document import parse_document, write_document
from designer.graph import frames
from designer.graph.model import Frame

RECT = (288, -48, 288, 192)  # around conv


@pytest.fixture
def window(empty_window):
    window = show(empty_window, kit.small_graph())
    window.canvas.viewer.zoom_by(1 / window.canvas.viewer.zoom)
    window.canvas.viewer.centerOn(420, 40)
    return window


@pytest.fixture
def framed(window):
    document = window.context.document
    document.do(frames.set_frame(document.graph, "f", Frame("f", "encoder", "text", "", RECT)))
    return window


def frame(window) -> Frame:
    return window.context.document.graph.frames["f"]


def at(window, x: float, y: float) -> QPoint:
    return kit.at(window.canvas, QPointF(x, y))


def answer(window, name: str, text: str) -> None:
    dialog = window.findChild(QInputDialog, name)
    edit = dialog.findChild(QLineEdit)
    edit.selectAll()
    QTest.keyClicks(edit, text)
    QTest.keyClick(edit, Qt.Key.Key_Return)


def test_c_frames_the_selection_and_asks_for_a_title(window):
    window.context.select(("conv", "free"))
    press(window, "C")
    answer(window, "canvas.frame_title", "encoder & co")
    graph = window.context.document.graph
    (made,) = graph.frames.values()
    assert made.title == "encoder & co"
    x, y, width, height = made.rect
    for name in ("conv", "free"):
        box = window.canvas.projection[name].box()
        assert x < box.left() < box.right() < x + width
        assert y < box.top() < box.bottom() < y + height
    assert parse_document(write_document(graph)).graph == graph
    press(window, "Ctrl+Z", "Ctrl+Z")
    assert not graph.frames
    assert window.context.document.history.is_clean


def test_c_without_a_selection_frames_the_middle_of_the_view(window):
    press(window, "C")
    (made,) = window.context.document.graph.frames.values()
    x, y, width, height = made.rect
    centre = window.canvas.viewer.visible_center()
    assert x < centre.x() < x + width
    assert y < centre.y() < y + height
    window.findChild(QInputDialog, "canvas.frame_title").reject()


def test_the_title_moves_the_frame_and_what_is_in_it(framed):
    start = at(framed, 400, -38)
    kit.drag(framed.canvas, start, start + QPoint(70, 33))
    graph = framed.context.document.graph
    assert frame(framed).rect == (352, -16, 288, 192)
    assert graph["conv"].position == (384, 32)
    assert graph["free"].position == (320, 160)
    assert framed.canvas.projection["conv"].pos() == QPointF(384, 32)
    framed.context.document.undo()
    assert frame(framed).rect == RECT
    assert graph["conv"].position == (320, 0)
    assert framed.canvas.projection["conv"].pos() == QPointF(320, 0)


@pytest.mark.parametrize(
    ("place", "run", "rect"),
    [
        ((576, 128), (48, 20), (288, -48, 336, 192)),
        ((288, 128), (-32, 0), (256, -48, 320, 192)),
        ((400, 144), (0, 64), (288, -48, 288, 256)),
        ((400, -48), (0, -32), (288, -80, 288, 224)),
        ((576, 144), (32, 16), (288, -48, 320, 208)),
        ((576, 128), (-900, 0), (288, -48, 64, 192)),
    ],
    ids=["right", "left", "bottom", "top", "corner", "least"],
)
def test_edges_resize(framed, place, run, rect):
    start = at(framed, *place)
    kit.drag(framed.canvas, start, start + QPoint(*run))
    assert frame(framed).rect == rect
    assert framed.context.document.graph["conv"].position == (320, 0)
    framed.context.document.undo()
    assert frame(framed).rect == RECT


def test_escape_leaves_a_frame_where_it_was(framed):
    view, start = framed.canvas.viewer.viewport(), at(framed, 400, -38)
    QTest.mousePress(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, start)
    QTest.mouseMove(view, start + QPoint(100, 0))
    assert framed.canvas.projection["conv"].pos() != QPointF(320, 0)
    QTest.keyClick(framed.canvas.viewer, Qt.Key.Key_Escape)
    QTest.mouseRelease(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, start + QPoint(100, 0))
    assert framed.canvas.projection["conv"].pos() == QPointF(320, 0)
    assert frame(framed).rect == RECT


def test_a_click_on_the_title_selects_and_delete_takes_the_frame_only(framed):
    kit.click(framed.canvas, at(framed, 400, -38))
    assert [item.frame.id for item in framed.canvas.viewer.selected_frames()] == ["f"]
    assert framed.context.selection == ()
    press(framed, "Del")
    graph = framed.context.document.graph
    assert not graph.frames
    assert "conv" in graph
    assert framed.canvas.projection.frame("f") is None
    framed.context.document.undo()
    assert frame(framed).title == "encoder"


def test_f2_and_double_click_change_the_title(framed):
    kit.click(framed.canvas, at(framed, 400, -38))
    press(framed, "F2")
    answer(framed, "canvas.frame_title", "stem")
    assert frame(framed).title == "stem"
    QApplication.processEvents()
    QTest.mouseDClick(framed.canvas.viewer.viewport(), kit.LEFT, Qt.KeyboardModifier.NoModifier, at(framed, 400, -38))
    assert framed.findChild(QInputDialog, "canvas.frame_title") is not None
    answer(framed, "canvas.frame_title", "head")
    assert frame(framed).title == "head"
    assert frame(framed).text == "text"


def test_inside_a_frame_layers_and_the_rubber_band_work_as_ever(framed):
    kit.click(framed.canvas, kit.node(framed.canvas, "conv"))
    assert framed.context.selection == ("conv",)
    kit.drag(framed.canvas, at(framed, 306, -8), at(framed, 360, 60))
    assert framed.context.selection == ("conv",)
    assert frame(framed).rect == RECT


def test_far_out_the_title_stands_above_the_frame_and_takes_hold_there(framed):
    viewer = framed.canvas.viewer
    viewer.zoom_by(0.3 / viewer.zoom)
    title = at(framed, 400, RECT[1]) - QPoint(0, 10)
    kit.click(framed.canvas, title)
    assert [item.frame.id for item in viewer.selected_frames()] == ["f"]
    kit.drag(framed.canvas, title, title + QPoint(24, 0))
    assert frame(framed).rect[0] == RECT[0] + 80
    assert framed.context.document.graph["conv"].position == (400, 0)
