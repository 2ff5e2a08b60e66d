"""Comment frames by mouse and keys: made, moved with their layers, resized, titled, deleted, undone, saved."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPlainTextEdit
from window_kit import press, show

from app.ui.canvas.frames import needed_height
from app.ui.canvas.inline_editor import InlineEditor
from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.files.document import parse_document, write_document
from designer.graph import frames
from designer.graph.model import GRID, Frame

RECT = (288, -48, 288, 192)  # around conv


@pytest.fixture
def window(shared_window):
    window = show(shared_window, kit.small_graph())
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


def test_c_frames_the_selection_and_asks_for_a_title(window):
    window.context.select(("conv", "free"))
    press(window, "C")
    kit.write(window, "encoder & co")
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
    field = window.findChild(QPlainTextEdit, "canvas.comment.text")
    QTest.keyClicks(field, "lost")
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert window.canvas.viewer.hasFocus()
    assert next(iter(window.context.document.graph.frames.values())) == made


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


def test_frames_in_a_frame_move_with_it(framed):
    document = framed.context.document
    outer, near = Frame("g", "All", "", "", (256, -112, 352, 304)), Frame("h", "Near", "", "", (64, -96, 160, 64))
    for made in (outer, near):
        document.do(frames.set_frame(document.graph, made.id, made))
    before = document.graph.copy()
    start = at(framed, 400, -102)
    kit.drag(framed.canvas, start, start + QPoint(70, 33))
    graph = document.graph
    assert (graph.frames["g"].rect, frame(framed).rect) == ((320, -80, 352, 304), (352, -16, 288, 192))
    assert graph["conv"].position == (384, 32)
    assert graph.frames["h"] == near
    document.undo()
    assert graph == before
    assert framed.canvas.projection.frame("f").rect == QRectF(*RECT)


@pytest.mark.parametrize(
    ("place", "run", "rect"),
    [
        ((576, 128), (48, 20), (288, -48, 336, 192)),
        ((288, 128), (-32, 0), (256, -48, 320, 192)),
        ((400, 144), (0, 64), (288, -48, 288, 256)),
        ((400, -48), (0, -32), (288, -80, 288, 224)),
        ((576, 144), (32, 16), (288, -48, 320, 208)),
        ((576, 128), (-900, 0), (288, -48, 64, 192)),
        ((288, 128), (900, 0), (512, -48, 64, 192)),
        ((400, 144), (0, -900), (288, -48, 288, 64)),
        ((400, -48), (0, 900), (288, 80, 288, 64)),
    ],
    ids=["right", "left", "bottom", "top", "corner", "least", "least left", "least bottom", "least top"],
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
    kit.write(framed, "stem")
    assert frame(framed).title == "stem"
    QApplication.processEvents()
    QTest.mouseDClick(framed.canvas.viewer.viewport(), kit.LEFT, Qt.KeyboardModifier.NoModifier, at(framed, 400, -38))
    kit.write(framed, "head")
    assert frame(framed).title == "head"
    assert frame(framed).text == "text"


@pytest.mark.parametrize("collapsed", [False, True])
def test_a_frame_without_a_title_is_picked_and_gets_one(framed, collapsed):
    document = framed.context.document
    document.do(frames.set_frame(document.graph, "f", Frame("f", "", "first\nsecond", "", RECT, collapsed)))
    before = document.graph.frames["f"]
    kit.click(framed.canvas, at(framed, 340, -38))
    assert [item.frame.id for item in framed.canvas.viewer.selected_frames()] == ["f"]
    press(framed, "F2")
    kit.write(framed, "")
    assert frame(framed) == before
    press(framed, "F2")
    kit.write(framed, "stem")
    assert (frame(framed).title, frame(framed).text) == ("stem", "first\nsecond")
    press(framed, "Ctrl+Z", "F2")
    (editor,) = (e for e in framed.canvas.viewer.viewport().findChildren(InlineEditor) if e.isVisible())
    cursor = editor.field.textCursor()
    cursor.movePosition(cursor.MoveOperation.End)
    editor.field.setTextCursor(cursor)
    kit.write(framed, " and last")
    assert (frame(framed).title, frame(framed).text) == ("", "first\nsecond and last")


def test_the_menu_of_a_frame_acts_on_the_frame(framed):
    """Delete and Rename would act on the layer that was selected before."""
    framed.context.select(("free",))
    QTest.mousePress(framed.canvas.viewer.viewport(), Qt.MouseButton.RightButton, pos=at(framed, 400, -38))
    QTest.mouseRelease(framed.canvas.viewer.viewport(), Qt.MouseButton.RightButton, pos=at(framed, 400, -38))
    assert framed.context.selection == ()
    assert [item.frame.id for item in framed.canvas.viewer.selected_frames()] == ["f"]
    assert framed.canvas.viewer.selected_names() == []


def test_inside_a_frame_layers_and_the_rubber_band_work_as_ever(framed):
    kit.click(framed.canvas, kit.node(framed.canvas, "conv"))
    assert framed.context.selection == ("conv",)
    kit.drag(framed.canvas, at(framed, 306, -8), at(framed, 360, 60))
    assert framed.context.selection == ("conv",)
    assert frame(framed).rect == RECT


@pytest.mark.parametrize("keys", [Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier])
@pytest.mark.parametrize("kind", ["frame", "link"])
def test_escape_from_a_rubber_band_selects_a_frame_or_a_link_again(framed, kind, keys):
    viewer = framed.canvas.viewer
    if kind == "frame":
        kit.click(framed.canvas, at(framed, 400, -38))
    else:
        viewer.select_link(framed.canvas.projection.link("out", 0))
    before = viewer.scene().selectedItems()
    assert len(before) == 1
    corner, end = at(framed, 560, 130), at(framed, 400, 10)
    QTest.mousePress(viewer.viewport(), kit.LEFT, keys, corner)
    QTest.mouseMove(viewer.viewport(), end)
    assert viewer.selected_names() == ["conv"]
    QTest.keyClick(viewer, Qt.Key.Key_Escape)
    QTest.mouseRelease(viewer.viewport(), kit.LEFT, keys, end)
    assert viewer.scene().selectedItems() == before
    assert framed.context.selection == ()


def test_far_out_the_title_stands_above_the_frame_and_takes_hold_there(framed):
    viewer = framed.canvas.viewer
    viewer.zoom_by(0.3 / viewer.zoom)
    title = at(framed, 400, RECT[1]) - QPoint(0, 10)
    kit.click(framed.canvas, title)
    assert [item.frame.id for item in viewer.selected_frames()] == ["f"]
    kit.drag(framed.canvas, title, title + QPoint(24, 0))
    assert frame(framed).rect[0] == RECT[0] + 80
    assert framed.context.document.graph["conv"].position == (400, 0)


# --- text --------------------------------------------------------------------------------------------------------


def ink(window, area: QRectF) -> int:
    """The number of pixels in an area of the canvas that have the color of text."""
    image = window.canvas.viewer.viewport().grab(kit.rect(window.canvas, area)).toImage()
    wanted = theme.color("text").lightness()
    places = [(x, y) for x in range(image.width()) for y in range(image.height())]
    return sum(abs(image.pixelColor(*place).lightness() - wanted) < 60 for place in places)


def test_a_note_is_written_on_the_canvas_and_grows_with_its_text(window):
    document = window.context.document
    press(window, "N")
    field = window.findChild(QPlainTextEdit, "canvas.comment.text")
    QTest.keyClicks(field, "Why 48 features")
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    for _ in range(12):
        QTest.keyClicks(field, "More gave no better result on the photos. ")
    QTest.keyClick(field, Qt.Key.Key_Return)
    (note,) = document.graph.frames.values()
    assert note.title == "Why 48 features"
    assert note.text.startswith("More gave")
    assert window.canvas.projection.frame(note.id).toolTip() == plain_tip(note.text)
    assert note.rect[3] >= needed_height(note.rect[2], note.content) > 5 * GRID
    assert parse_document(write_document(document.graph)).graph == document.graph
    window.canvas.viewer.zoom_by(1 / window.canvas.viewer.zoom)
    window.canvas.viewer.go(QRectF(*note.rect).center())
    body = QRectF(*note.rect).adjusted(8, 40, -8, -40)
    assert ink(window, body) > 200
    press(window, "Ctrl+Z", "Ctrl+Z")
    assert not document.graph.frames


def test_the_text_of_a_frame_is_whole_lines_inside_it_at_every_scale(framed):
    document = framed.context.document
    long = Frame("f", "encoder", "many words in a small frame " * 40, "", (0, 400, 320, 160))
    document.do(frames.set_frame(document.graph, "f", long))
    viewer = framed.canvas.viewer
    for zoom in (1.0, 0.6, 0.5):
        viewer.zoom_by(zoom / viewer.zoom)
        viewer.go(QPointF(160, 480))
        assert ink(framed, QRectF(0, 562, 320, 60)) == 0
        assert ink(framed, QRectF(20, 440, 280, 100)) > 50


def test_keys_that_mean_something_to_the_canvas_are_text_in_a_note(framed):
    framed.context.select(("conv",))
    press(framed, "N")
    field = framed.findChild(QPlainTextEdit, "canvas.comment.text")
    QTest.keyClicks(field, "cmnhl w")
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Backspace, Qt.Key.Key_Delete):
        QTest.keyClick(field, key)
    QTest.keyClick(field, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    assert field.toPlainText() == "cmnhl"
    kit.click(framed.canvas, framed.canvas.viewer.viewport().rect().bottomLeft() + QPoint(20, -20))
    assert "cmnhl" in {f.title for f in framed.context.document.graph.frames.values()}
    assert len(framed.context.document.graph) == 5


def test_a_name_is_edited_where_it_is_shown_and_says_which_rule_it_breaks(window):
    kit.click(window.canvas, kit.node(window.canvas, "conv"))
    press(window, "F2")
    editor = window.findChild(InlineEditor, "canvas.rename")
    item = window.canvas.projection["conv"]
    title = window.canvas.viewer.mapFromScene(item.box()).boundingRect()
    assert editor.geometry().intersects(title)
    assert window.canvas.viewer.viewport().rect().contains(editor.geometry())
    QTest.keyClicks(editor.field, "cat")
    QTest.keyClick(editor.field, Qt.Key.Key_Return)
    assert editor.isVisible()
    assert "used by another layer" in window.findChild(QLabel, "canvas.rename.message").text()
    QTest.keyClicks(editor.field, "2")
    QTest.keyClick(editor.field, Qt.Key.Key_Return)
    assert window.context.selection == ("cat2",)
    assert window.canvas.viewer.hasFocus()


def test_a_field_closes_with_its_document(window):
    kit.click(window.canvas, kit.node(window.canvas, "conv"))
    press(window, "F2")
    editor = window.findChild(InlineEditor, "canvas.rename")
    window.files.new()
    assert not editor.isVisible()


def test_a_note_covers_no_layer(window):
    canvas = window.canvas
    place = canvas.projection["conv"].box().center()
    QCursor.setPos(canvas.viewer.viewport().mapToGlobal(kit.at(canvas, place)))
    press(window, "N")
    kit.write(window, "here")
    (note,) = window.context.document.graph.frames.values()
    assert not canvas.projection.within(QRectF(*note.rect))


def test_the_label_of_a_link_gives_way_to_the_title_of_a_frame(window):
    canvas, document = window.canvas, window.context.document
    link = canvas.projection.link("conv", 0)
    middle = link.path().pointAtPercent(0.5)
    area = QRectF(middle.x() - 30, middle.y() - 8, 60, 16)
    before = canvas.viewer.viewport().grab(kit.rect(canvas, area)).toImage()
    title = Frame("f", "W" * 12, "", "", (round(middle.x()) - 60, round(middle.y()) - 12, 300, 200))
    document.do(frames.set_frame(document.graph, "f", title))
    with_title = canvas.viewer.viewport().grab(kit.rect(canvas, area)).toImage()
    link.set_label("")
    assert canvas.viewer.viewport().grab(kit.rect(canvas, area)).toImage() == with_title
    assert with_title != before
