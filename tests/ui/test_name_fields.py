"""Fields in which names are edited: which texts they accept, and every way to leave them."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from app.ui.canvas.inline_editor import InlineEditor
from app.ui.canvas.template_name import TemplateNameDialog
from designer.graph import frames
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer
from designer.graph.template import Template

# --- the name of a template ------------------------------------------------------------------------------------------

NAMES = {  # the text, what is said about it, and the name that it is; for a new template and for `block`
    "new": ("fresh", "", "", "fresh"),
    "with blanks around it": ("  fresh ", "", "", "fresh"),
    "its own": ("block", "already exists", "", "block"),
    "its own with blanks": (" block ", "already exists", "", "block"),
    "another one": ("pair", "already exists", "already exists", ""),
    "another one with blanks": ("pair ", "already exists", "already exists", ""),
    "with a comma": ("a,b", "comma", "comma", ""),
    "nothing": ("", "name", "name", ""),
    "blanks": ("   ", "name", "name", ""),
}


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("case", NAMES)
def test_names_of_templates(qtbot, case, renamed):
    text, new, old, name = NAMES[case]
    said = old if renamed else new
    graph = Graph([Layer("a", "input")], templates=[Template("block"), Template("pair")])
    given = []
    dialog = TemplateNameDialog(graph, "Title", "Text", "Agree", "block" if renamed else "", given.append)
    qtbot.addWidget(dialog)
    dialog.open()
    dialog.line.setText("something else")
    dialog.line.selectAll()
    QTest.keyClick(dialog.line, Qt.Key.Key_Delete)
    QTest.keyClicks(dialog.line, text)
    assert (said in dialog.message.text()) if said else not dialog.message.text()
    assert dialog.ok.isEnabled() is not bool(said)
    QTest.keyClick(dialog.line, Qt.Key.Key_Return)
    assert given == ([] if said else [name])
    assert dialog.isVisible() is bool(said)
    dialog.close()


@pytest.mark.parametrize("way", ["button", "Escape"])
def test_a_cancelled_name_is_not_given(qtbot, way):
    given = []
    dialog = TemplateNameDialog(Graph(), "Title", "Text", "Agree", "fresh", given.append)
    qtbot.addWidget(dialog)
    dialog.open()
    assert dialog.ok.isEnabled()
    if way == "Escape":
        QTest.keyClick(dialog.line, Qt.Key.Key_Escape)
    else:
        (cancel,) = (b for b in dialog.buttons.findChildren(QPushButton) if b is not dialog.ok)
        cancel.click()
    assert given == []


# --- fields on the canvas --------------------------------------------------------------------------------------------


@pytest.fixture
def canvas(qtbot):
    canvas = kit.open_canvas(qtbot, kit.small_graph())
    document = canvas.context.document
    document.do(frames.set_frame(document.graph, "f", Frame("f", "Title", "text", "", (272, 300, 304, 160))))
    document.history.mark_clean()
    canvas.activateWindow()
    return canvas


def wheel(canvas) -> None:
    view = canvas.viewer.viewport()
    place = QPointF(view.rect().center())
    nothing, keys = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
    event = QWheelEvent(
        place,
        QPointF(view.mapToGlobal(place.toPoint())),
        QPoint(),
        QPoint(0, 120),
        nothing,
        keys,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(view, event)


def field_of(canvas) -> InlineEditor | None:
    found = [e for e in canvas.viewer.viewport().findChildren(InlineEditor) if e.isVisible()]
    return found[0] if found else None


LEAVING = {  # how, and whether a valid text is accepted
    "Return": (lambda c: QTest.keyClick(field_of(c).field, Qt.Key.Key_Return), True),
    "Enter": (lambda c: QTest.keyClick(field_of(c).field, Qt.Key.Key_Enter), True),
    "Escape": (lambda c: QTest.keyClick(field_of(c).field, Qt.Key.Key_Escape), False),
    "a click elsewhere": (lambda c: kit.click(c, QPoint(15, 680)), True),
    "Tab": (lambda c: QTest.keyClick(field_of(c).field, Qt.Key.Key_Tab), True),
    "the wheel": (wheel, True),
    "another size": (lambda c: c.resize(1200, 600), True),
    "another document": (
        lambda c: c.context.set_document(type(c.context.document)(Graph(), c.context.registry, parent=c.context)),
        False,
    ),
}
TEXTS = {  # the text of the field for a layer's name, and the name after it is accepted
    "another name": ("other", "other"),
    "a name with blanks around it": (" other  ", "other"),
    "the same name": ("conv", "conv"),
    "a name that is taken": ("cat", None),
    "nothing": ("", None),
    "a name with a comma": ("a,b", None),
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("way", LEAVING)
def test_every_way_to_leave_the_name_of_a_layer(canvas, way, text):
    leave, accepts = LEAVING[way]
    typed, name = TEXTS[text]
    document = canvas.context.document
    before = document.graph.copy()
    canvas.context.select(("conv",))
    canvas.rename_selection()
    field = field_of(canvas).field
    field.setFocus()
    field.selectAll()
    QTest.keyClick(field, Qt.Key.Key_Delete)
    QTest.keyClicks(field, typed)
    leave(canvas)
    QApplication.processEvents()
    if name is None and way in ("Return", "Enter"):
        assert field_of(canvas) is not None
        QTest.keyClick(field_of(canvas).field, Qt.Key.Key_Escape)
    assert field_of(canvas) is None
    if accepts and name not in (None, "conv"):
        assert name in document.graph
        assert "conv" not in document.graph
        document.undo()
    assert document.graph == before
    assert document.history.is_clean


NOTES = {  # what is typed in place of all, and the content of the frame after it is accepted
    "another title": ("Other", "Other"),
    "a title and a text": ("Other\nmore\nlines", "Other\nmore\nlines"),
    "blanks at the end": ("Other\nmore  \n\n", "Other\nmore"),
    "the same": ("Title\ntext", "Title\ntext"),
    "the same with a line more": ("Title\ntext\n", "Title\ntext"),
    "no title": ("\ntext", "\ntext"),
}


@pytest.mark.parametrize("text", NOTES)
@pytest.mark.parametrize("way", ["Return", "Escape", "a click elsewhere"])
def test_every_way_to_leave_a_note(canvas, way, text):
    leave, accepts = LEAVING[way]
    typed, content = NOTES[text]
    document = canvas.context.document
    before = document.graph.copy()
    canvas.viewer.select_frame(canvas.projection.frame("f"))
    canvas.rename_selection()
    field = field_of(canvas).field
    field.setFocus()
    field.selectAll()
    QTest.keyClick(field, Qt.Key.Key_Delete)
    for number, line in enumerate(typed.split("\n")):
        if number:
            QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
        QTest.keyClicks(field, line)
    leave(canvas)
    QApplication.processEvents()
    assert field_of(canvas) is None
    assert document.graph.frames["f"].content == (content if accepts else "Title\ntext")
    if accepts and content != "Title\ntext":
        document.undo()
    assert document.graph == before
    assert document.history.is_clean
