"""Going about and editing by keys on the real window: walking, nudging, finding, commands, views, bypass."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QTreeWidget, QWidget
from window_kit import press, show

from app.ui.canvas.inline_editor import WIDTH, InlineEditor
from designer.graph import commands
from designer.graph.model import Layer, Source
from designer.graph.template_commands import make_template


@pytest.fixture
def window(shared_window):
    window = show(shared_window, kit.small_graph())
    window.said = []
    window.context.message.connect(lambda severity, text: window.said.append((severity, text)))
    return window


def popup(name: str, window) -> tuple[QWidget, QLineEdit, QTreeWidget]:
    found = window.findChild(QWidget, name)
    assert found.isVisible()
    return found, found.findChild(QLineEdit, f"{name}.text"), found.findChild(QTreeWidget, f"{name}.list")


@pytest.mark.parametrize("key", ["Space", "Tab", "Shift+A"])
def test_keys_open_the_search_at_the_pointer(window, key):
    press(window, key)
    _, edit, _ = popup("quick_add", window)
    QTest.keyClicks(edit, "conv2d")
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert not edit.isVisible()
    assert "convolution_0" in window.context.document.graph
    assert window.context.selection == ("convolution_0",)
    x, y = window.context.document.graph["convolution_0"].position
    assert (x % 16, y % 16) == (0, 0)


def lines(tree: QTreeWidget) -> list[str]:
    return [tree.topLevelItem(i).text(0) for i in range(tree.topLevelItemCount())]


def test_arrows_walk_along_links(window):
    press(window, "Right")
    assert window.context.selection == ("input",)
    press(window, "Right")
    assert window.context.selection[0] in ("conv", "cat")
    window.context.select(("conv",))
    press(window, "Right")
    assert window.context.selection == ("cat",)
    press(window, "Right", "Right")
    assert window.context.selection == ("out",)
    press(window, "Left", "Left")
    assert window.context.selection[0] in ("conv", "input")
    window.context.select(("conv",))
    press(window, "Down")
    assert window.context.selection == ("free",)
    press(window, "Up")
    assert window.context.selection != ("free",)
    assert window.context.document.history.is_clean


def test_shift_arrows_extend(window):
    window.context.select(("conv",))
    press(window, "Shift+Right", "Shift+Right")
    assert window.context.selection == ("conv", "cat", "out")
    for key, start in (("Left", "cat"), ("Right", "input"), ("Up", "free"), ("Down", "input")):
        window.context.select((start,))
        press(window, key)
        (found,) = window.context.selection
        assert found != start, key
        window.context.select((start,))
        press(window, f"Shift+{key}")
        assert window.context.selection == (start, found), key


def test_a_walk_keeps_the_layer_in_view(window):
    document, viewer = window.context.document, window.canvas.viewer
    document.do(commands.move_layers(document.graph, {"out": (9600, 4800)}))
    viewer.zoom_by(1 / viewer.zoom)
    window.context.select(("cat",))
    press(window, "Right")
    shown = viewer.mapToScene(viewer.viewport().rect()).boundingRect()
    assert shown.contains(window.canvas.projection["out"].box())
    assert viewer.zoom == 1


@pytest.mark.parametrize("place", [(9600, 4800), (-9600, 4800), (9600, -4800), (-9600, -4800)])
def test_the_field_for_the_name_of_a_layer_out_of_sight_opens_on_the_layer(window, place):
    document, viewer = window.context.document, window.canvas.viewer
    document.do(commands.move_layers(document.graph, {"free": place}))
    viewer.zoom_by(1 / viewer.zoom)
    viewer.go(QPointF(400, 80))
    window.context.select(("free",))
    window.canvas.rename_selection()
    (editor,) = (each for each in viewer.viewport().findChildren(InlineEditor) if each.isVisible())
    box = kit.rect(window.canvas, window.canvas.projection["free"].box())
    assert viewer.viewport().rect().contains(box)
    assert editor.width() == max(box.width(), WIDTH)
    assert editor.y() == box.top()
    assert editor.x() == min(box.left(), viewer.viewport().rect().right() - editor.width())
    kit.write(window, "lonely")
    assert document.graph["lonely"].position == place


def test_alt_arrows_nudge_and_undo_together(window):
    document = window.context.document
    window.context.select(("conv", "free"))
    press(window, "Alt+Right", "Alt+Right", "Alt+Down", "Alt+Left", "Alt+Up")
    assert document.graph["conv"].position == (336, 0)
    assert document.graph["free"].position == (336, 160)
    document.undo()
    assert document.history.is_clean


def test_nudges_of_different_layers_are_different_steps(window):
    document = window.context.document
    for name in ("conv", "free"):
        window.context.select((name,))
        press(window, "Alt+Right")
    document.undo()
    assert [document.graph[name].position[0] for name in ("conv", "free")] == [336, 320]


def test_brackets_select_up_and_downstream(window):
    window.context.select(("conv",))
    press(window, "[")
    assert set(window.context.selection) == {"input", "conv"}
    window.context.select(("conv",))
    press(window, "]")
    assert set(window.context.selection) == {"conv", "cat", "out"}


def test_find_by_name_parameter_and_shape(window):
    press(window, "Ctrl+F")
    found, edit, tree = popup("find", window)
    QTest.keyClicks(edit, "concat")
    assert lines(tree) == ["cat"]
    edit.selectAll()
    QTest.keyClicks(edit, "kernel=3x3")
    assert lines(tree) == ["conv", "free"]
    edit.selectAll()
    QTest.keyClicks(edit, "8x48x64")
    assert lines(tree) == ["conv"]
    edit.selectAll()
    QTest.keyClicks(edit, "features=8 convol")
    assert lines(tree) == ["conv", "free"]
    QTest.keyClick(edit, Qt.Key.Key_Down)
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert not found.isVisible()
    assert window.context.selection == ("free",)
    press(window, "F3")
    assert window.context.selection == ("conv",)
    press(window, "F3", "F3")
    assert window.context.selection == ("conv",)
    press(window, "Shift+F3")
    assert window.context.selection == ("free",)
    press(window, "Ctrl+F")
    _, edit, tree = popup("find", window)
    assert edit.selectedText() == "features=8 convol"
    QTest.keyClicks(edit, "nothing like it")
    assert lines(tree) == []
    QTest.keyClick(edit, Qt.Key.Key_Escape)


def test_find_inside_a_template_finds_the_layers_around_it(window):
    context = window.context
    context.root.do(lambda g: make_template(g, ["conv"], "part"))
    instance = next(layer.name for layer in context.root.graph if layer.type == "template")
    assert context.enter(instance)
    press(window, "Ctrl+F")
    _, edit, tree = popup("find", window)
    QTest.keyClicks(edit, "cat")
    assert [(tree.topLevelItem(0).text(0), tree.topLevelItem(0).text(1))] == [("cat", f"in {context.root.graph.name}")]
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert (context.scope, context.selection) == ((), ("cat",))


def test_f8_goes_from_problem_to_problem(window):
    document = window.context.document
    document.do(commands.set_params(document.graph, {"conv": {"kernel": "0x0"}}))
    press(window, "F8")
    first = window.context.selection
    press(window, "F8")
    assert {*first, *window.context.selection} >= {"conv", "free"}
    assert window.said[-1][0] in ("error", "warning")
    press(window, "Shift+F8")
    assert window.context.selection == first


def test_commands_by_name(window):
    press(window, "Ctrl+P")
    found, edit, tree = popup("commands", window)
    QTest.keyClicks(edit, "lay everything")
    assert lines(tree)[0] == "Lay Out Everything"
    assert tree.topLevelItem(0).text(1) == "Shift+L"
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert not found.isVisible()
    assert window.context.document.history.undo_title == "Lay out"


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("layout everything", "Lay Out Everything"),
        ("theme dark", "Theme: Dark"),
        ("curved", "Links: Curved"),
        ("image", "Export Image"),
    ],
)
def test_commands_are_found_by_their_menu_and_without_spaces(window, typed, wanted):
    press(window, "Ctrl+P")
    found, edit, tree = popup("commands", window)
    QTest.keyClicks(edit, typed)
    assert wanted in lines(tree)
    assert not any(tree.topLevelItem(n).icon(0).isNull() for n in range(tree.topLevelItemCount()))
    found.close()


def test_a_command_that_cannot_be_done_says_why(window):
    press(window, "Ctrl+P")
    found, edit, tree = popup("commands", window)
    QTest.keyClicks(edit, "bypass")
    assert tree.topLevelItem(0).isDisabled()
    assert "no layer is selected" in tree.topLevelItem(0).toolTip(0)
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert found.isVisible()
    QTest.keyClick(edit, Qt.Key.Key_Escape)
    assert window.context.document.history.is_clean


def test_views_are_stored_and_come_back(window):
    viewer = window.canvas.viewer
    press(window, "3")
    assert "Press Ctrl+3" in window.said[-1][1]
    viewer.zoom_by(1.4 / viewer.zoom)
    viewer.centerOn(700, 20)
    centre, zoom = viewer.visible_center(), viewer.zoom
    press(window, "Ctrl+3", "Home")
    viewer.pan(QPoint(400, 300))
    press(window, "3")
    assert viewer.zoom == pytest.approx(zoom)
    assert (viewer.visible_center() - centre).manhattanLength() < 3


def test_m_bypasses_where_shapes_allow(window):
    document = window.context.document
    same = Layer("same", "convolution", (320, 320), (Source("input"),), {"features": "3", "padding": "same"})
    document.do(commands.add_layer(document.graph, same))
    window.context.select(("same",))
    press(window, "M")
    bypassed = document.graph["same"]
    assert bypassed.bypassed
    assert (bypassed.type, bypassed.inputs, bypassed.params) == (same.type, same.inputs, same.params)
    assert "passes 'input' through" in window.canvas.projection["same"].toolTip()
    press(window, "M")
    assert document.graph["same"] == same
    document.undo()
    assert document.graph["same"] == bypassed
    document.undo()
    assert document.graph["same"] == same
    window.context.select(("conv",))
    press(window, "M")
    assert not document.graph["conv"].bypassed
    assert "'conv' cannot be bypassed" in window.said[-1][1]
    window.context.select(("same", "input"))
    press(window, "M")
    assert not document.graph["same"].bypassed
    assert "is an input or output of the network" in window.said[-1][1]


def test_bare_keys_in_a_text_field_stay_text(window):
    window.context.select(("conv",))
    field = next(f for f in window.findChildren(QLineEdit) if f.isVisible() and not f.isReadOnly() and f.isEnabled())
    field.setFocus()
    field.clear()
    QApplication.processEvents()
    QTest.keyClicks(field, "mlc3[]")
    assert field.text() == "mlc3[]"
    assert not window.context.document.graph.frames
    field.clear()


def test_layers_of_the_open_template_are_listed_once(window):
    context = window.context
    context.root.do(lambda g: make_template(g, ["conv"], "part"))
    instance = next(layer.name for layer in context.root.graph if layer.type == "template")
    assert context.enter(instance)
    inner = next(layer.name for layer in context.document.graph if layer.type == "convolution")
    context.root.do(lambda g: commands.rename_layer(g, "free", "lonely"))
    press(window, "Ctrl+F")
    found, edit, tree = popup("find", window)
    QTest.keyClicks(edit, inner)
    assert lines(tree).count(inner) == 1
    edit.clear()
    QTest.keyClicks(edit, "lonely")
    assert [tree.topLevelItem(0).text(n) for n in range(2)] == ["lonely", f"in {context.root.graph.name}"]
    found.close()


def test_f8_comes_back_from_a_problem_inside_a_template(window):
    context = window.context
    context.root.do(lambda g: make_template(g, ["conv"], "part"))
    instance = next(layer.name for layer in context.root.graph if layer.type == "template")
    assert context.enter(instance)
    inner = next(layer.name for layer in context.document.graph if layer.type == "convolution")
    context.document.do(lambda g: commands.set_params(g, {inner: {"kernel": "0x0"}}))
    context.set_scope(())
    context.select(())
    seen = []
    for _ in range(4):
        press(window, "F8")
        seen.append((tuple(step.instance for step in context.scope), context.selection))
    assert ((instance,), (inner,)) in seen
    assert len(set(seen)) > 1
    assert seen[: len(set(seen))] * 4 == (seen[: len(set(seen))] * 4)[: 4 * len(set(seen))]
    assert seen[len(set(seen)) :] == seen[: 4 - len(set(seen))]  # round and round, in the order of the network
    press(window, "Shift+F8")
    assert (tuple(step.instance for step in context.scope), context.selection) == seen[-2]


def test_without_problems_and_matches_the_keys_say_so(window):
    document = window.context.document
    document.do(commands.remove_layers(document.graph, ["free"]))
    press(window, "F8")
    assert window.said[-1] == ("info", "No problems")
    document.do(commands.rename_layer(document.graph, "cat", "zebra"))
    press(window, "Ctrl+F")
    _, edit, _ = popup("find", window)
    QTest.keyClicks(edit, "zebra")
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert window.context.selection == ("zebra",)
    document.do(commands.rename_layer(document.graph, "zebra", "horse"))
    press(window, "F3")
    assert window.said[-1] == ("info", "No layer matches 'zebra'.")
