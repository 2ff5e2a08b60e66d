"""Every gesture that replaces one of NodeGraphQt's, driven with real mouse and key events."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QMimeData, QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QContextMenuEvent, QDragEnterEvent, QDropEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QTreeWidget

from app.ui.canvas.links import LiveLink
from app.ui.canvas.viewer import OPERATOR_MIME
from app.ui.document.document import Document
from designer.graph import commands, frames
from designer.graph.model import Frame, Layer, Source

SHIFT, CTRL, ALT = (
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.AltModifier,
)


@pytest.fixture
def canvas(qtbot):
    return kit.open_canvas(qtbot, kit.small_graph())


def document(canvas) -> Document:
    return canvas.context.document


def inputs(canvas, name: str) -> tuple:
    return document(canvas).graph[name].inputs


def test_move_snaps_and_is_one_step(canvas):
    start = kit.node(canvas, "free")
    kit.drag(canvas, start, start + QPoint(101, 43))
    x, y = document(canvas).graph["free"].position
    assert (x, y) != (320, 160)
    assert x % 16 == 0
    assert y % 16 == 0
    document(canvas).undo()
    assert document(canvas).graph["free"].position == (320, 160)
    assert canvas.projection["free"].pos() == QPointF(320, 160)
    assert document(canvas).history.undo_title is None


def test_selected_layers_move_together(canvas):
    canvas.context.select(("free", "conv"))
    start = kit.node(canvas, "conv")
    kit.drag(canvas, start, start + QPoint(64, 0))
    graph = document(canvas).graph
    moved = graph["conv"].position[0] - 320
    assert moved > 0
    assert graph["free"].position == (320 + moved, 160)
    assert canvas.context.selection == ("free", "conv")


@pytest.mark.parametrize("other", [kit.MIDDLE, Qt.MouseButton.RightButton])
def test_another_button_does_not_end_a_drag(canvas, other):
    view, start = canvas.viewer.viewport(), kit.node(canvas, "conv")
    place = canvas.projection["conv"].pos()
    QTest.mousePress(view, kit.LEFT, pos=start)
    QTest.mouseMove(view, start + QPoint(0, 40))
    QTest.mousePress(view, other, pos=start + QPoint(0, 40))
    QTest.mouseRelease(view, other, pos=start + QPoint(0, 40))
    QTest.mouseMove(view, start + QPoint(0, 96))
    QTest.mouseRelease(view, kit.LEFT, pos=start + QPoint(0, 96))
    run = canvas.projection["conv"].pos() - place
    assert run.y() * canvas.viewer.zoom == pytest.approx(96, abs=8 * canvas.viewer.zoom)


def test_escape_takes_a_move_back(canvas):
    view = canvas.viewer.viewport()
    start = kit.node(canvas, "free")
    QTest.mousePress(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, start)
    QTest.mouseMove(view, start + QPoint(90, 0))
    assert canvas.projection["free"].pos() != QPointF(320, 160)
    QTest.keyClick(canvas.viewer, Qt.Key.Key_Escape)
    QTest.mouseRelease(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, start + QPoint(90, 0))
    assert canvas.projection["free"].pos() == QPointF(320, 160)
    assert document(canvas).history.is_clean


def test_click_selects_and_shift_and_ctrl_toggle(canvas):
    kit.click(canvas, kit.node(canvas, "conv"))
    assert canvas.context.selection == ("conv",)
    kit.click(canvas, kit.node(canvas, "cat"), SHIFT)
    assert canvas.context.selection == ("conv", "cat")
    kit.click(canvas, kit.node(canvas, "conv"), CTRL)
    assert canvas.context.selection == ("cat",)
    kit.click(canvas, kit.node(canvas, "out"))
    assert canvas.context.selection == ("out",)


def test_click_on_one_of_many_selected_leaves_it_alone(canvas):
    canvas.context.select(("conv", "cat"))
    kit.click(canvas, kit.node(canvas, "cat"))
    assert canvas.context.selection == ("cat",)


def test_rubber_band(canvas):
    corner = kit.at(canvas, QPointF(280, -40))
    kit.drag(canvas, corner, kit.at(canvas, QPointF(600, 300)))
    assert set(canvas.context.selection) == {"conv", "free"}
    kit.drag(canvas, kit.at(canvas, QPointF(920, -40)), kit.at(canvas, QPointF(1200, 200)), keys=SHIFT)
    assert set(canvas.context.selection) == {"conv", "free", "out"}
    kit.click(canvas, kit.at(canvas, QPointF(500, 300)))
    assert canvas.context.selection == ()


@pytest.mark.parametrize("keys", [Qt.KeyboardModifier.NoModifier, SHIFT])
def test_escape_takes_a_rubber_band_back(canvas, keys):
    canvas.context.select(("out",))
    view, corner, end = canvas.viewer.viewport(), kit.at(canvas, QPointF(280, -40)), kit.at(canvas, QPointF(600, 300))
    QTest.mousePress(view, kit.LEFT, keys, corner)
    QTest.mouseMove(view, end)
    assert canvas.projection["conv"].isSelected()
    QTest.keyClick(canvas.viewer, Qt.Key.Key_Escape)
    QTest.mouseRelease(view, kit.LEFT, keys, end)
    assert canvas.context.selection == ("out",)
    assert [i.layer for i in canvas.viewer.selected_layers()] == ["out"]


def test_selection_of_the_context_shows_on_the_canvas(canvas):
    canvas.context.select(("out",))
    assert [i.layer for i in canvas.viewer.selected_layers()] == ["out"]
    canvas.context.reveal_requested.emit("free")
    assert canvas.context.selection == ("free",)
    assert canvas.projection["free"].isSelected()


def test_drag_from_output_to_input_connects(canvas):
    kit.drag(canvas, kit.output(canvas, "input"), kit.port(canvas, "free"))
    assert inputs(canvas, "free") == (Source("input"),)
    assert canvas.projection.link("free", 0) is not None
    document(canvas).undo()
    assert inputs(canvas, "free") == ()
    assert canvas.projection.link("free", 0) is None


def test_drag_from_input_to_output_connects(canvas):
    kit.drag(canvas, kit.port(canvas, "free"), kit.output(canvas, "input"))
    assert inputs(canvas, "free") == (Source("input"),)


@pytest.mark.parametrize("button", [Qt.MouseButton.RightButton, kit.MIDDLE])
@pytest.mark.parametrize("place", [(380, 12), (160, 320)], ids=["layer", "nothing"])
def test_a_double_click_with_another_button_opens_nothing(canvas, button, place):
    asked = []
    canvas.context.inspect_requested.connect(asked.append)
    at = kit.at(canvas, QPointF(*place))
    QTest.mouseDClick(canvas.viewer.viewport(), button, pos=at)
    QTest.mouseRelease(canvas.viewer.viewport(), button, pos=at)  # else it is held in the tests that follow
    assert not asked
    assert not canvas.findChild(QLineEdit, "quick_add.text").isVisible()


@pytest.mark.parametrize("start", [kit.output, kit.port])
def test_a_link_that_is_dropped_on_its_own_layer_is_given_up(canvas, start):
    kit.drag(canvas, start(canvas, "free"), kit.node(canvas, "free"))
    assert document(canvas).history.is_clean
    assert not canvas.findChild(QLineEdit, "quick_add.text").isVisible()
    assert canvas.messages == []
    assert not canvas.viewer.busy


def test_drop_on_a_node_takes_its_free_port(canvas):
    kit.drag(canvas, kit.output(canvas, "free"), kit.node(canvas, "cat"))
    assert inputs(canvas, "cat") == (Source("conv"), Source("input"), Source("free"))


def test_variadic_port_grows_and_closes_gaps(canvas):
    assert len(canvas.projection["cat"].inputs) == 3
    kit.drag(canvas, kit.output(canvas, "free"), kit.port(canvas, "cat", 2))
    assert inputs(canvas, "cat") == (Source("conv"), Source("input"), Source("free"))
    assert len(canvas.projection["cat"].inputs) == 4
    kit.drag(canvas, kit.port(canvas, "cat", 0), kit.at(canvas, QPointF(700, 400)))
    assert inputs(canvas, "cat") == (Source("input"), Source("free"))
    assert len(canvas.projection["cat"].inputs) == 3
    assert canvas.projection.link("cat", 0).source.node.layer == "input"


def test_link_is_moved_to_another_layer_in_one_step(canvas):
    kit.drag(canvas, kit.port(canvas, "conv"), kit.port(canvas, "free"))
    assert inputs(canvas, "conv") == ()
    assert inputs(canvas, "free") == (Source("input"),)
    document(canvas).undo()
    assert inputs(canvas, "conv") == (Source("input"),)
    assert inputs(canvas, "free") == ()


def test_link_dropped_where_it_was_changes_nothing(canvas):
    kit.drag(canvas, kit.port(canvas, "conv"), kit.port(canvas, "conv") + QPoint(2, 1))
    assert document(canvas).history.is_clean
    assert canvas.projection.link("conv", 0).isVisible()


def test_body_of_a_link_can_be_dragged_off(canvas):
    link = canvas.projection.link("out", 0)
    start = kit.at(canvas, link.path().pointAtPercent(0.8))
    kit.drag(canvas, start, start + QPoint(0, 200))
    assert inputs(canvas, "out") == ()


def test_loop_is_refused_and_shown(canvas):
    view = canvas.viewer.viewport()
    start, end = kit.output(canvas, "cat"), kit.port(canvas, "conv")
    QTest.mousePress(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, start)
    QTest.mouseMove(view, start - QPoint(0, 60))
    kit.settle(canvas)
    dot = canvas.projection["conv"].inputs[0]
    assert "loop" in dot.refusal
    assert "loop" in dot.toolTip()
    assert canvas.projection["free"].inputs[0].refusal == ""
    QTest.mouseMove(view, end)
    QTest.mouseRelease(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, end)
    assert inputs(canvas, "conv") == (Source("input"),)
    assert document(canvas).history.is_clean
    assert dot.refusal == ""
    assert any("loop" in text for _, text in canvas.messages)


@pytest.mark.parametrize("how", ["on nothing", "refused", "Escape"])
@pytest.mark.parametrize("start", ["output", "input", "taken input"])
def test_no_port_stays_gray_after_a_drag(canvas, start, how):
    """Ports that cannot take the link are gray while it is dragged, on the side where it can end."""
    items, view = canvas.projection, canvas.viewer.viewport()
    document(canvas).do(lambda g: commands.add_layer(g, Layer("flat", "flatten", (320, 400), (Source("input"),))))
    document(canvas).do(
        lambda g: commands.add_layer(g, Layer("wide", "convolution", (640, 400), (), {"features": "2"}))
    )
    canvas.viewer.frame_all()
    QApplication.processEvents()
    name, place = {
        "output": ("flat", kit.output(canvas, "flat")),
        "input": ("wide", kit.port(canvas, "wide")),
        "taken input": ("cat", kit.port(canvas, "cat")),
    }[start]
    tips = {dot: dot.toolTip() for layer in items.layers for dot in (*items[layer].inputs, *items[layer].outputs)}
    QTest.mousePress(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, place)
    QTest.mouseMove(view, place + QPoint(0, 60))
    kit.settle(canvas)
    gray = {dot for dot in tips if dot.grayed}
    assert gray, name
    assert {dot.is_input for dot in gray} == {start != "input"}
    end = place + QPoint(0, 60)
    if how == "refused":
        end = kit.at(canvas, next(iter(gray)).center())
    elif how == "Escape":
        QTest.keyClick(canvas.viewer, Qt.Key.Key_Escape)
    QTest.mouseMove(view, end)
    QTest.mouseRelease(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, end)
    QApplication.processEvents()
    left = [dot for layer in items.layers for dot in (*items[layer].inputs, *items[layer].outputs)]
    assert not any(dot.grayed for dot in left)
    assert all(dot.toolTip() == tips[dot] for dot in left if dot in tips)


def test_escape_takes_a_link_back(canvas):
    view = canvas.viewer.viewport()
    start = kit.port(canvas, "conv")
    QTest.mousePress(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, start)
    QTest.mouseMove(view, start + QPoint(0, 90))
    assert not canvas.projection.link("conv", 0).isVisible()
    QTest.keyClick(canvas.viewer, Qt.Key.Key_Escape)
    QTest.mouseRelease(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, start + QPoint(0, 90))
    assert canvas.projection.link("conv", 0).isVisible()
    assert document(canvas).history.is_clean


def test_click_selects_a_link_and_delete_removes_it(canvas):
    link = canvas.projection.link("out", 0)
    kit.click(canvas, kit.at(canvas, link.path().pointAtPercent(0.5)))
    assert canvas.viewer.selected_links() == [link]
    assert canvas.context.selection == ()
    canvas.delete_selection()
    assert inputs(canvas, "out") == ()
    document(canvas).undo()
    assert inputs(canvas, "out") == (Source("cat"),)


def test_double_click_on_a_layer_asks_for_the_inspector(canvas, qtbot):
    with qtbot.waitSignal(canvas.context.inspect_requested) as asked:
        QTest.mouseDClick(canvas.viewer.viewport(), kit.LEFT, Qt.KeyboardModifier.NoModifier, kit.node(canvas, "conv"))
    assert asked.args == ["conv"]


def add_by_search(canvas, text: str) -> None:
    """Type into the search that is open, and choose the first operator."""
    edit = canvas.findChild(QLineEdit, "quick_add.text")
    assert edit.isVisible()
    QTest.keyClicks(edit, text)
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert not edit.isVisible()


def offers(canvas) -> set[str]:
    """The titles in the search that is open."""
    tree = canvas.findChild(QTreeWidget, "quick_add.list")
    return {tree.topLevelItem(row).text(0) for row in range(tree.topLevelItemCount())}


def test_double_click_on_the_empty_canvas_adds_there(canvas):
    place = QPointF(160, 320)
    QTest.mouseDClick(canvas.viewer.viewport(), kit.LEFT, Qt.KeyboardModifier.NoModifier, kit.at(canvas, place))
    add_by_search(canvas, "relu")
    graph = document(canvas).graph
    name = canvas.context.selection[0]
    assert graph[name].activation is not None
    assert graph[name].activation.type == "relu"
    assert (canvas.projection[name].box().center() - place).manhattanLength() <= 16


@pytest.mark.parametrize("place", [kit.output, kit.port])
def test_double_click_on_a_port_opens_nothing(canvas, qtbot, place):
    """It is a link that was begun twice."""
    point = place(canvas, "conv")
    with (
        qtbot.assertNotEmitted(canvas.context.inspect_requested),
        qtbot.assertNotEmitted(canvas.viewer.rename_requested),
    ):
        QTest.mouseDClick(canvas.viewer.viewport(), kit.LEFT, Qt.KeyboardModifier.NoModifier, point)
    assert not canvas.findChild(QLineEdit, "quick_add.text").isVisible()


def test_double_click_on_a_link_inserts(canvas):
    link = canvas.projection.link("out", 0)
    point = kit.at(canvas, link.path().pointAtPercent(0.5))
    QTest.mouseDClick(canvas.viewer.viewport(), kit.LEFT, Qt.KeyboardModifier.NoModifier, point)
    add_by_search(canvas, "identity")
    assert inputs(canvas, "out") == (Source("identity_0"),)
    assert inputs(canvas, "identity_0") == (Source("cat"),)


def test_link_dropped_on_nothing_offers_operators_and_connects(canvas):
    kit.drag(canvas, kit.output(canvas, "free"), kit.at(canvas, QPointF(640, 240)))
    add_by_search(canvas, "pooling")
    assert inputs(canvas, "pooling_0") == (Source("free"),)


def test_escape_closes_the_search(canvas):
    canvas.viewer.setFocus()
    canvas.quick_add()
    edit = canvas.findChild(QLineEdit, "quick_add.text")
    QTest.keyClick(edit, Qt.Key.Key_Escape)
    assert not edit.isVisible()
    assert document(canvas).history.is_clean


def drop(canvas, type_name: str, point: QPoint) -> None:
    mime = QMimeData()
    mime.setData(OPERATOR_MIME, type_name.encode())
    view = canvas.viewer.viewport()
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(point, Qt.DropAction.CopyAction, mime, buttons, keys)
    QApplication.sendEvent(view, enter)
    assert enter.isAccepted()
    event = QDropEvent(QPointF(point), Qt.DropAction.CopyAction, mime, buttons, keys)
    QApplication.sendEvent(view, event)
    assert event.isAccepted()


def test_drop_from_the_palette_adds(canvas):
    drop(canvas, "pooling", kit.at(canvas, QPointF(163, 330)))
    box = canvas.projection["pooling_0"].box()
    assert (box.center() - QPointF(163, 330)).manhattanLength() <= 16
    assert canvas.context.selection == ("pooling_0",)


def test_drop_on_a_link_inserts(canvas):
    link = canvas.projection.link("out", 0)
    drop(canvas, "identity", kit.at(canvas, link.path().pointAtPercent(0.5)))
    assert inputs(canvas, "out") == (Source("identity_0"),)


def test_drop_of_an_unknown_operator_is_said(canvas):
    drop(canvas, "warp_drive", QPoint(50, 50))
    assert document(canvas).history.is_clean
    assert any("warp_drive" in text for _, text in canvas.messages)


def test_wheel_zooms_at_the_pointer(canvas):
    point = kit.node(canvas, "conv")
    before = canvas.viewer.mapToScene(point)
    zoom = canvas.viewer.zoom
    view = canvas.viewer.viewport()
    event = QWheelEvent(
        QPointF(point),
        QPointF(view.mapToGlobal(point)),
        QPoint(),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(view, event)
    assert canvas.viewer.zoom == pytest.approx(zoom / 1.0015**120)
    after = canvas.viewer.mapToScene(point)
    assert abs(after.x() - before.x()) < 2
    assert abs(after.y() - before.y()) < 2


@pytest.mark.parametrize(("button", "keys"), [(kit.MIDDLE, Qt.KeyboardModifier.NoModifier), (kit.LEFT, ALT)])
def test_pan(canvas, button, keys):
    before = kit.node(canvas, "conv")
    kit.drag(canvas, QPoint(40, 600), QPoint(140, 560), button, keys)
    moved = kit.node(canvas, "conv") - before
    assert abs(moved.x() - 100) <= 1
    assert abs(moved.y() + 40) <= 1
    assert canvas.context.selection == ()


@pytest.mark.parametrize("button", [kit.MIDDLE, kit.LEFT], ids=["scrolling", "rubber band"])
def test_an_edit_meanwhile_ends_neither_scrolling_nor_the_rubber_band(canvas, button):
    """A panel or a run edits the document. Only what is dragged may be gone."""
    view, start = canvas.viewer.viewport(), QPoint(40, 640)
    QTest.mousePress(view, button, Qt.KeyboardModifier.NoModifier, start)
    QTest.mouseMove(view, start + QPoint(30, 0))
    document(canvas).do(lambda g: commands.set_params(g, {"conv": {"features": "9"}}))
    left = canvas.viewer.seen().left() * canvas.viewer.zoom
    QTest.mouseMove(view, start + QPoint(130, 0))
    scrolled = left - canvas.viewer.seen().left() * canvas.viewer.zoom
    assert scrolled == pytest.approx(100 if button == kit.MIDDLE else 0, abs=1)
    end = QPoint(view.width() - 40, 2)
    QTest.mouseMove(view, end)
    QTest.mouseRelease(view, button, Qt.KeyboardModifier.NoModifier, end)
    assert (set(canvas.context.selection) >= {"conv", "free", "cat"}) is (button == kit.LEFT)


def test_right_click_selects_and_asks_for_the_menu(canvas, qtbot):
    point = kit.node(canvas, "conv")
    QTest.mouseClick(canvas.viewer.viewport(), Qt.MouseButton.RightButton, Qt.KeyboardModifier.NoModifier, point)
    assert canvas.context.selection == ("conv",)
    view = canvas.viewer.viewport()
    with qtbot.waitSignal(canvas.menu_requested):
        event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, point, view.mapToGlobal(point))
        QApplication.sendEvent(view, event)


def test_right_click_on_one_of_several_selected_keeps_them(canvas):
    canvas.context.select(("conv", "cat"))
    view = canvas.viewer.viewport()
    QTest.mouseClick(view, Qt.MouseButton.RightButton, Qt.KeyboardModifier.NoModifier, kit.node(canvas, "conv"))
    assert canvas.context.selection == ("conv", "cat")


def test_a_press_that_hardly_moves_is_a_click(canvas):
    canvas.viewer.zoom_by(1 / canvas.viewer.zoom)
    box = canvas.projection["free"].box()
    start = kit.at(canvas, QPointF(box.left() - 2, box.bottom() - 4))
    kit.drag(canvas, start, start + QPoint(3, 0))
    assert canvas.context.selection == ()
    kit.drag(canvas, start, start + QPoint(4, 0))
    assert canvas.context.selection == ("free",)


def test_a_selected_link_stays_selected_when_something_else_changes(canvas):
    link = canvas.projection.link("out", 0)
    kit.click(canvas, kit.at(canvas, link.path().pointAtPercent(0.5)))
    document(canvas).do(lambda g: commands.move_layers(g, {"free": (320, 480)}))
    assert canvas.viewer.selected_links() == [link]
    canvas.context.select(("free",))
    assert canvas.viewer.selected_links() == []


@pytest.mark.parametrize("what", ["layer", "frame", "link"])
def test_undo_while_something_is_dragged_cancels_the_drag(canvas, what):
    """What the drag began with may be gone."""
    view, end = canvas.viewer.viewport(), kit.at(canvas, QPointF(480, 330))
    if what == "layer":
        document(canvas).do(lambda g: commands.move_layers(g, {"free": (320, 240)}))
        start = kit.node(canvas, "free")
    elif what == "frame":
        document(canvas).do(lambda g: frames.set_frame(g, "f", Frame("f", "Frame", rect=(280, 140, 280, 160))))
        start = kit.at(canvas, QPointF(300, 150))
    else:
        document(canvas).do(lambda g: commands.connect(g, Source("input"), "free", 0))
        start, end = kit.port(canvas, "free"), kit.port(canvas, "cat", 2)
    QTest.mousePress(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, start)
    QTest.mouseMove(view, (start + end) / 2)
    canvas.context.undo()
    QTest.mouseMove(view, end)
    QTest.mouseRelease(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, end)
    assert document(canvas).graph == kit.small_graph()
    assert document(canvas).history.undo_title is None
    assert canvas.projection["free"].pos() == QPointF(320, 160)
    assert not canvas.viewer.busy


def test_framing(canvas):
    canvas.context.select(("out",))
    canvas.frame_selection()
    assert canvas.viewer.zoom == pytest.approx(1.0)
    middle = canvas.viewer.visible_center()
    assert canvas.projection["out"].sceneBoundingRect().contains(middle)
    document(canvas).do(lambda g: commands.move_layers(g, {"free": (320, 2400)}))
    canvas.context.select(("free", "conv"))
    canvas.frame_selection()
    assert all(canvas.viewer.seen().contains(canvas.projection[n].box()) for n in ("free", "conv"))
    canvas.frame_all()
    shown = canvas.viewer.mapToScene(canvas.viewer.viewport().rect()).boundingRect()
    assert all(shown.contains(canvas.projection[n].box()) for n in canvas.projection.layers)


def test_far_out_a_press_on_a_node_moves_it(canvas):
    canvas.viewer.zoom_by(0.15 / canvas.viewer.zoom)
    item = canvas.projection["free"]
    start = kit.at(canvas, item.pos() + QPointF(4, 30))  # where its input port is
    kit.drag(canvas, start, start + QPoint(30, 20))
    assert document(canvas).graph["free"].position != (320, 160)


@pytest.mark.parametrize(
    ("index", "port", "offered", "left_out"), [(0, "", "Pooling", "One hot"), (1, "indices", "One hot", "Pooling")]
)
def test_a_link_from_any_output_to_nothing_offers_what_reads_it_and_connects_that_output(
    canvas, index, port, offered, left_out
):
    largest = Layer("largest", "top_k", (320, 400), (Source("input"),))
    document(canvas).do(lambda g: commands.add_layer(g, largest))
    canvas.viewer.frame_all()
    before = document(canvas).graph.copy()
    kit.drag(canvas, kit.output(canvas, "largest", index), kit.at(canvas, QPointF(800, 300)))
    titles = offers(canvas)
    assert {"Identity", offered} <= titles
    assert titles.isdisjoint(("Input", left_out))
    add_by_search(canvas, "identity")
    after = document(canvas).graph
    assert after["identity_0"].inputs == (Source("largest", port),)
    assert canvas.projection.link("identity_0", 0).source is canvas.projection["largest"].outputs[index]
    for selected in ((), ("input",)):
        canvas.context.select(selected)
        canvas.viewer.pointer = lambda: None
        canvas.quick_add()
        assert {"Identity", "Input", "Pooling", "One hot"} <= offers(canvas), "what the link could not go to too"
        QTest.keyClick(canvas.findChild(QLineEdit, "quick_add.text"), Qt.Key.Key_Escape)
    assert {n: after[n] for n in before.layers} == before.layers
    document(canvas).undo()
    assert document(canvas).graph == before


@pytest.mark.parametrize(
    ("layer", "index", "inputs_after"),
    [
        ("gap", 0, ("identity_0", "input")),
        ("gap", 1, ("conv", "identity_0")),
        ("cat", 2, ("conv", "input", "identity_0")),
    ],
)
def test_a_link_from_any_input_to_nothing_connects_the_layer_that_is_chosen_to_that_input(
    canvas, layer, index, inputs_after
):
    """A taken input loses its link first: it is the end that is dragged off."""
    pair = (Source("conv"), Source("input"))
    document(canvas).do(lambda g: commands.add_layer(g, Layer("gap", "difference", (640, 300), pair)))
    canvas.viewer.frame_all()
    nowhere = kit.at(canvas, QPointF(160, 300))
    if index < len(inputs(canvas, layer)):
        kit.drag(canvas, kit.port(canvas, layer, index), nowhere)
        assert not canvas.findChild(QLineEdit, "quick_add.text").isVisible()
    kit.drag(canvas, kit.port(canvas, layer, index), nowhere)
    assert {"Identity", "Input", "Pooling"} <= offers(canvas)
    add_by_search(canvas, "identity")
    assert inputs(canvas, "identity_0") == ()
    assert inputs(canvas, layer) == tuple(map(Source, inputs_after))


def test_the_end_of_a_link_that_is_let_go_on_an_input_of_the_layer_that_it_leaves_is_taken_off(canvas):
    """As on the layer itself and on nothing."""
    kit.drag(canvas, kit.port(canvas, "cat", 0), kit.port(canvas, "conv"))
    assert inputs(canvas, "cat") == (Source("input"),)
    assert inputs(canvas, "conv") == (Source("input"),)
    assert canvas.messages == []
    document(canvas).undo()
    assert document(canvas).graph == kit.small_graph()


@pytest.mark.parametrize("linked", ["input", "output", ""])
def test_only_a_layer_without_any_link_goes_into_the_link_on_which_it_is_dropped(canvas, linked):
    if linked == "input":
        document(canvas).do(lambda g: commands.connect(g, Source("input"), "free", 0))
    elif linked == "output":
        document(canvas).do(lambda g: commands.connect(g, Source("free"), "cat", 2))
    before = document(canvas).graph.copy()
    middle = kit.at(canvas, canvas.projection.link("out", 0).path().pointAtPercent(0.5))
    grip = kit.node(canvas, "free")
    kit.drag(canvas, grip, middle + grip - kit.at(canvas, canvas.projection["free"].box().center()))
    after = document(canvas).graph
    assert after["free"].position != before["free"].position
    if linked:
        assert {n: after[n].inputs for n in after.layers} == {n: before[n].inputs for n in before.layers}
    else:
        assert (after["free"].inputs, after["out"].inputs) == ((Source("cat"),), (Source("free"),))


@pytest.mark.parametrize(("name", "side"), [("free", "output"), ("free", "input"), ("conv", "input")])
def test_the_link_that_is_dragged_is_seen_from_its_fixed_end_to_the_pointer(canvas, name, side):
    start = kit.output(canvas, name) if side == "output" else kit.port(canvas, name)
    view, scene = canvas.viewer.viewport(), canvas.viewer.scene()
    QTest.mousePress(view, kit.LEFT, pos=start)
    QTest.mouseMove(view, start + QPoint(2, 0))
    assert not [item for item in scene.items() if isinstance(item, LiveLink)]
    for run in (QPoint(40, 70), QPoint(-60, 90)):
        QTest.mouseMove(view, start + run)
        (live,) = (item for item in scene.items() if isinstance(item, LiveLink))
        assert live.isVisible()
        assert live in canvas.viewer.overlays
        place = canvas.viewer.mapToScene(start + run)
        if name == "conv":  # the loose end of a link
            ends = (canvas.projection["input"].outputs[0].center(), place)
        elif side == "output":
            ends = (canvas.projection[name].outputs[0].center(), place)
        else:
            ends = (place, canvas.projection[name].inputs[0].center())
        assert (live.path().pointAtPercent(0), live.path().pointAtPercent(1)) == ends
        assert live.pen().style() is Qt.PenStyle.DashLine
    QTest.keyClick(canvas.viewer, Qt.Key.Key_Escape)
    QTest.mouseRelease(view, kit.LEFT, pos=start)
    assert not [item for item in scene.items() if isinstance(item, LiveLink)]


@pytest.mark.parametrize("zoom", [0.26, 0.3, 1.0])
def test_a_link_that_would_close_a_loop_is_refused_at_every_scale_however_fast_it_is_dragged(canvas, zoom):
    """Where ports are too small to be seen, they are checked under the pointer only."""
    canvas.viewer.zoom_by(zoom / canvas.viewer.zoom)
    canvas.viewer.centerOn(480, 60)
    view, end = canvas.viewer.viewport(), kit.node(canvas, "conv")
    QTest.mousePress(view, kit.LEFT, pos=kit.output(canvas, "cat"))
    QTest.mouseMove(view, end)
    QTest.mouseRelease(view, kit.LEFT, pos=end)
    assert document(canvas).graph == kit.small_graph()
    assert canvas.messages == [("error", "Not connected: the link would create a loop")]


def test_the_rubber_band_reaches_from_the_press_to_the_pointer_until_the_release(canvas):
    view, band, start = canvas.viewer.viewport(), canvas.viewer._rubber_band, kit.at(canvas, QPointF(500, 330))
    for end, keys in (
        (QPoint(300, 200), Qt.KeyboardModifier.NoModifier),
        (QPoint(-80, 120), SHIFT),
        (QPoint(-90, -70), CTRL),
    ):
        QTest.mousePress(view, kit.LEFT, keys, start)
        assert not band.isVisible()
        for share in (0.5, 1.0, 0.7):
            QTest.mouseMove(view, start + end * share)
            assert band.isVisible()
            assert band.geometry() == QRect(start, start + end * share).normalized()
        QTest.mouseRelease(view, kit.LEFT, keys, start + end * 0.7)
        assert not band.isVisible()


def test_the_search_for_an_operator_opens_next_to_the_selected_layer_also_if_it_was_out_of_view(canvas):
    canvas.viewer.zoom_by(1 / canvas.viewer.zoom)
    canvas.viewer.pointer = lambda: None
    for name in ("out", "free"):
        canvas.context.select((name,))
        canvas.viewer.go(QPointF(-4000, 4000))
        canvas.quick_add()
        popup = canvas.findChild(QLineEdit, "quick_add.text").window()
        assert popup.isVisible()
        box = canvas.projection.entry(name).box()
        assert canvas.viewer.seen().contains(box)
        assert canvas._place.x() > box.right()
        popup.hide()
