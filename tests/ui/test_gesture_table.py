"""The table of gestures that people expect of a node editor, row by row, on the real window with real events.

Rows on templates are driven in test_canvas_templates.py, folding in test_canvas_folding.py.
"""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QTreeWidget, QWidget
from window_kit import press, show

from app.ui.canvas.viewer import OPERATOR_MIME
from app.ui.document.document import Document
from designer.files.document import parse_document, write_document
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source

NONE = Qt.KeyboardModifier.NoModifier


@pytest.fixture
def window(shared_window):
    window = show(shared_window, kit.small_graph())
    window.said = said = []
    connection = window.context.message.connect(lambda severity, text: said.append((severity, text)))
    yield window
    window.context.message.disconnect(connection)


def document(window) -> Document:
    return window.context.document


def graph(window) -> Graph:
    return window.context.document.graph


def popup(window, name: str = "quick_add") -> QLineEdit:
    """The text of a search that is open."""
    found = window.findChild(QWidget, name)
    assert found.isVisible()
    return found.findChild(QLineEdit, f"{name}.text")


def choices(window, name: str = "quick_add") -> list[str]:
    tree = window.findChild(QTreeWidget, f"{name}.list")
    return [tree.topLevelItem(i).text(0) for i in range(tree.topLevelItemCount())]


def choose(window, text: str, name: str = "quick_add") -> None:
    edit = popup(window, name)
    QTest.keyClicks(edit, text)
    QTest.keyClick(edit, Qt.Key.Key_Return)


def drop(window, type_name: str, place: QPoint) -> None:
    """What Qt sends while an entry of the palette is dragged over the canvas and dropped."""
    mime = QMimeData()
    mime.setData(OPERATOR_MIME, type_name.encode())
    buttons, copy = Qt.MouseButton.LeftButton, Qt.DropAction.CopyAction
    view = window.canvas.viewer.viewport()
    QApplication.sendEvent(view, QDragEnterEvent(place, copy, mime, buttons, NONE))
    QApplication.sendEvent(view, QDropEvent(QPointF(place), copy, mime, buttons, NONE))


def free_place(window) -> QPoint:
    return kit.at(window.canvas, QPointF(200, 420))


# --- add an operator ---------------------------------------------------------------------------------------------


def test_drag_from_the_palette(window):
    drop(window, "pooling", free_place(window))
    assert graph(window)["pooling_0"].inputs == ()
    assert window.context.selection == ("pooling_0",)
    press(window, "Ctrl+Z")
    assert "pooling_0" not in graph(window)


@pytest.mark.parametrize("key", ["Tab", "Shift+A", "Space"])
def test_keys_add_an_operator(window, key):
    press(window, key)
    choose(window, "flatten")
    assert "flatten_0" in graph(window)


def test_double_click_on_the_empty_canvas(window):
    QTest.mouseDClick(window.canvas.viewer.viewport(), kit.LEFT, NONE, free_place(window))
    choose(window, "conv")
    centre = window.canvas.projection["convolution_0"].box().center()
    assert abs(centre.x() - 200) <= 16
    assert abs(centre.y() - 420) <= 16


@pytest.mark.parametrize(("word", "found"), [("relu", "relu"), ("conv2d", "convolution"), ("maxpool", "pooling")])
def test_synonyms_find_the_operator(window, word, found):
    before = set(graph(window).layers)
    press(window, "Space")
    choose(window, word)
    (added,) = set(graph(window).layers) - before
    layer = graph(window)[added]
    assert found in (layer.type, layer.activation.type if layer.activation is not None else "")


def test_what_was_added_last_is_offered_first(window):
    for word in ("flatten", "identity", "concatenation", "flatten"):
        press(window, "Space")
        choose(window, word)
    press(window, "Space")
    assert choices(window)[:3] == ["Flatten", "Concatenation", "Identity"]
    assert choices(window).count("Flatten") == 1
    QTest.keyClick(popup(window), Qt.Key.Key_Escape)


# --- links -------------------------------------------------------------------------------------------------------


def test_a_link_dragged_into_the_empty_offers_what_accepts_it(window):
    kit.drag(window.canvas, kit.output(window.canvas, "conv"), free_place(window))
    offered = choices(window)
    assert "Pooling" in offered
    assert "Embedding" not in offered  # it reads whole numbers
    assert "Input" not in offered  # it reads nothing
    choose(window, "pooling")
    assert graph(window)["pooling_0"].inputs == (Source("conv"),)


def test_a_link_dragged_from_an_input_offers_what_gives_something(window):
    kit.drag(window.canvas, kit.port(window.canvas, "free"), free_place(window))
    choose(window, "input")
    assert graph(window)["free"].inputs == (Source("input_0"),)


def test_a_node_dropped_on_a_link_goes_into_it(window):
    canvas = window.canvas
    link = canvas.projection.link("out", 0)
    start = kit.node(canvas, "free")
    middle = kit.at(canvas, link.path().pointAtPercent(0.5))
    item = canvas.projection["free"]
    grip = start - kit.at(canvas, item.box().center())
    view = canvas.viewer.viewport()
    QTest.mousePress(view, kit.LEFT, NONE, start)
    for step in (0.5, 1.0):
        QTest.mouseMove(view, start + (middle + grip - start) * step)
    assert link.emphasized  # before it is dropped
    QTest.mouseRelease(view, kit.LEFT, NONE, middle + grip)
    assert graph(window)["free"].inputs == (Source("cat"),)
    assert graph(window)["out"].inputs == (Source("free"),)
    assert graph(window)["free"].position != (320, 160)
    assert document(window).history.undo_title == "Insert free"
    press(window, "Ctrl+Z")
    assert graph(window) == kit.small_graph()


def test_a_node_with_links_is_only_moved_over_a_link(window):
    canvas = window.canvas
    link = canvas.projection.link("cat", 1)
    middle = kit.at(canvas, link.path().pointAtPercent(0.3))
    kit.drag(canvas, kit.node(canvas, "out"), middle)
    assert graph(window)["cat"].inputs == (Source("conv"), Source("input"))
    assert document(window).history.undo_title == "Move"


def test_escape_while_a_node_is_over_a_link(window):
    canvas, view = window.canvas, window.canvas.viewer.viewport()
    start = kit.node(canvas, "free")
    QTest.mousePress(view, kit.LEFT, NONE, start)
    QTest.mouseMove(view, kit.at(canvas, canvas.projection.link("out", 0).path().pointAtPercent(0.5)))
    QTest.keyClick(canvas.viewer, Qt.Key.Key_Escape)
    QTest.mouseRelease(view, kit.LEFT, NONE, start)
    assert graph(window) == kit.small_graph()
    assert not canvas.projection.link("out", 0).emphasized


def test_an_operator_dropped_on_a_link_goes_into_it(window):
    link = window.canvas.projection.link("out", 0)
    drop(window, "identity", kit.at(window.canvas, link.path().pointAtPercent(0.5)))
    assert graph(window)["out"].inputs == (Source("identity_0"),)


def test_ctrl_delete_heals_the_links(window):
    window.context.select(("cat",))
    press(window, "Ctrl+Del")
    assert graph(window)["out"].inputs == (Source("conv"),)
    press(window, "Ctrl+Z")
    window.context.select(("cat",))
    press(window, "Del")
    assert graph(window)["out"].inputs == ()


# --- clipboard ---------------------------------------------------------------------------------------------------


def copies(window) -> dict[str, Layer]:
    return {n: graph(window)[n] for n in graph(window).layers if n not in kit.small_graph().layers}


@pytest.mark.parametrize(
    ("pressed", "kept"),
    [
        (("Ctrl+C", "Ctrl+V"), False),
        (("Ctrl+C", "Ctrl+Shift+V"), True),
        (("Ctrl+D",), False),
        (("Ctrl+Shift+D",), True),
    ],
)
def test_copies_with_and_without_incoming_links(window, pressed, kept):
    window.context.select(("conv", "cat"))
    press(window, *pressed)
    made = copies(window)
    conv = next(layer for layer in made.values() if layer.type == "convolution")
    cat = next(layer for layer in made.values() if layer.type == "concatenation")
    assert conv.inputs == ((Source("input"),) if kept else ())
    assert cat.inputs[0] == Source(conv.name)  # links among the copies stay
    assert set(window.context.selection) == set(made)


def test_cut_and_paste_into_another_document(window):
    window.context.select(("conv",))
    press(window, "Ctrl+X")
    assert "conv" not in graph(window)
    show(window, Graph([], name="other"))
    press(window, "Ctrl+V")
    assert graph(window)["conv"].params["features"] == "8"
    assert graph(window)["conv"].activation.type == "relu"


def test_paste_from_a_quoted_mail(window):
    text = write_document(Graph([Layer("mailed", "pooling", (0, 0))], name="part")).decode()
    mail = "You wrote:\n" + "".join(f"> {line}\n" for line in text.splitlines()) + "\nYes, a > b!\n"
    QApplication.clipboard().setText(mail)
    press(window, "Ctrl+V")
    assert graph(window)["mailed"].type == "pooling"


def test_the_clipboard_holds_plain_text_of_a_model_file(window):
    document = window.context.document
    assert document.do(lambda g: commands.set_property(g, "name", "denoiser"))
    window.context.select(("conv",))
    press(window, "Ctrl+C")
    graph = parse_document(QApplication.clipboard().text().encode()).graph
    assert (graph.name, graph.layers) == ("denoiser", {"conv": document.graph["conv"]})


def test_a_text_without_layers_cannot_be_pasted_and_says_why(window):
    QApplication.clipboard().setText("hello")
    QApplication.processEvents()
    action = window.actions_["edit.paste"]
    assert not action.isEnabled()
    assert "clipboard holds no layers" in action.toolTip()


# --- undo --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("redo", ["Ctrl+Shift+Z", "Ctrl+Y"])
def test_undo_and_redo_of_everything(window, redo):
    doc = document(window)
    states = [graph(window).copy()]
    doc.do(lambda g: commands.set_params(g, {"conv": {"features": "12"}}))
    states.append(graph(window).copy())
    kit.drag(window.canvas, kit.node(window.canvas, "free"), kit.node(window.canvas, "free") + QPoint(0, 90))
    states.append(graph(window).copy())
    press(window, "Shift+L")
    states.append(graph(window).copy())
    before = doc.settings
    doc.change_settings(iterations=before.iterations + 5)
    press(window, "Ctrl+Z")
    assert doc.settings == before
    for state in reversed(states[:-1]):
        press(window, "Ctrl+Z")
        assert graph(window) == state
    for state in states[1:]:
        press(window, redo)
        assert graph(window) == state
    press(window, redo)
    assert doc.settings.iterations == before.iterations + 5


# --- looking and laying out --------------------------------------------------------------------------------------


def test_frames_and_stored_views(window, qtbot):
    viewer = window.canvas.viewer
    window.context.select(("conv",))
    press(window, "F")
    zoom = viewer.zoom
    near = viewer.visible_center()
    press(window, "Ctrl+3", "Home")
    qtbot.waitUntil(lambda: viewer.zoom != zoom or (viewer.visible_center() - near).manhattanLength() > 20)
    press(window, "3")
    qtbot.waitUntil(lambda: abs(viewer.zoom - zoom) < 1e-3 and (viewer.visible_center() - near).manhattanLength() < 4)


def test_layouts_of_the_selection_and_of_everything(window):
    doc = document(window)
    doc.do(lambda g: commands.move_layers(g, {"conv": (1600, 800), "cat": (16, 640)}))
    others = {n: graph(window)[n].position for n in ("input", "free", "out")}
    window.context.select(("conv", "cat"))
    press(window, "L")
    assert {n: graph(window)[n].position for n in others} == others
    assert graph(window)["conv"].position[0] < graph(window)["cat"].position[0]
    press(window, "Shift+L")
    x = {n: graph(window)[n].position[0] for n in graph(window).layers}
    assert x["input"] < x["conv"] < x["cat"] < x["out"]


# --- finding -----------------------------------------------------------------------------------------------------


def test_find_next_and_next_problem(window):
    press(window, "Ctrl+F")
    choose(window, "convolution", "find")
    first = window.context.selection
    press(window, "F3")
    assert window.context.selection != first
    assert {*first, *window.context.selection} == {"conv", "free"}
    document(window).do(lambda g: commands.set_params(g, {"conv": {"features": "0"}}))
    window.context.select(("out",))
    press(window, "F8")
    problem = window.context.selection
    assert problem in (("conv",), ("free",))
    press(window, "F8")
    assert {*problem, *window.context.selection} == {"conv", "free"}


# --- frames, names, bypass ---------------------------------------------------------------------------------------


def test_a_comment_frame_a_rename_and_a_bypass(window, qtbot):
    window.context.select(("conv",))
    press(window, "F2")
    kit.write(window, "first")
    assert "first" in graph(window)
    assert graph(window)["cat"].inputs[0] == Source("first")
    press(window, "C")
    kit.write(window, "Encoder")
    assert [f.title for f in graph(window).frames.values()] == ["Encoder"]
    document(window).do(lambda g: commands.set_params(g, {"first": {"features": "3"}}))
    window.context.select(("first",))
    press(window, "M")
    assert graph(window)["first"].bypassed


# --- along the network -------------------------------------------------------------------------------------------


def test_brackets_select_upstream_and_downstream(window):
    window.context.select(("conv",))
    press(window, "[")
    assert set(window.context.selection) == {"input", "conv"}
    window.context.select(("conv",))
    press(window, "]")
    assert set(window.context.selection) == {"conv", "cat", "out"}


def test_arrows_walk_extend_and_nudge(window):
    window.context.select(("input",))
    press(window, "Right")
    assert window.context.selection == ("conv",)
    press(window, "Shift+Right")
    assert window.context.selection == ("conv", "cat")
    press(window, "Left")
    assert len(window.context.selection) == 1
    window.context.select(("conv",))
    press(window, "Alt+Down", "Alt+Right")
    assert graph(window)["conv"].position == (336, 16)
    press(window, "Ctrl+Z")
    assert graph(window)["conv"].position == (320, 0)


# --- commands, runs ----------------------------------------------------------------------------------------------


def test_command_palette_and_sheet_of_shortcuts(window):
    press(window, "Ctrl+P")
    edit = popup(window, "commands")
    QTest.keyClicks(edit, "frame all")
    assert any("Zoom to Fit" in text for text in choices(window, "commands"))
    QTest.keyClick(edit, Qt.Key.Key_Escape)
    press(window, "F1")
    shown = [w for w in QApplication.topLevelWidgets() if w.isVisible() and w is not window and w.windowTitle()]
    assert any("hortcut" in w.windowTitle() for w in shown)
    for w in shown:
        w.close()


def test_ctrl_enter_runs_and_escape_stops(window, monkeypatch):
    asked = []
    monkeypatch.setattr(window, "stop", lambda: asked.append("stop"))
    document(window).do(lambda g: commands.remove_layers(g, ["free"]))  # a network with an error does not run
    action = window.actions_["run.inference"]
    action.triggered.disconnect()  # no engine starts here
    action.triggered.connect(lambda: asked.append("run"))
    press(window, "Ctrl+Return")
    assert asked == ["run"]
    press(window, "Escape")
    assert asked == ["run"]  # nothing that could be stopped
    window.status.busy = True
    press(window, "Escape")
    assert asked == ["run", "stop"]
    tree = window.docks["palette"].findChild(QTreeWidget)
    QTest.keyClick(tree, Qt.Key.Key_Escape)  # from other windows too
    assert asked == ["run", "stop", "stop"]
    window.status.busy = False
    QTest.keyClick(tree, Qt.Key.Key_Escape)
    assert asked == ["run", "stop", "stop"]


def test_nothing_destructive_is_bound_to_a_bare_key(window):
    bare = {
        spec.id: k
        for spec in window.actions_.declared.values()
        for k in spec.keys
        if len(k) == 1 and ("delete" in spec.id or "cut" in spec.id or "close" in spec.id or "quit" in spec.id)
    }
    assert bare == {}


def test_hints_of_searches_are_not_cut_with_large_letters(window, qapp):
    small, large = qapp.font(), qapp.font()
    large.setPointSizeF(small.pointSizeF() * 2)
    qapp.setFont(large)
    try:
        press(window, "Space")
        edit = popup(window)
        assert edit.fontMetrics().horizontalAdvance(edit.placeholderText()) + 8 <= edit.width()
        QTest.keyClick(edit, Qt.Key.Key_Escape)
    finally:
        qapp.setFont(small)
