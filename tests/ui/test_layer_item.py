"""The item of a layer: after any change of its look it is the item that the new look would have got at first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import permutations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from painted import strokes
from PySide6.QtCore import QPointF
from PySide6.QtGui import QTransform
from pytestqt.qtbot import QtBot

from app.ui.canvas import node_paint
from app.ui.canvas.node import LayerItem
from app.ui.canvas.node_layout import Layout, layout
from app.ui.canvas.node_look import NodeLook, PortLook
from designer.operators.api import Category

ONE, TWO = PortLook("x", "x: an image"), PortLook("y", "y: a <b>mask</b>")
PLAIN = NodeLook(
    "conv", "Convolution", Category.CONVOLUTION, "8 of 3x3", "", (ONE,), (ONE,), ("8 x 16 x 16",), tip="plain"
)
LOOKS = {
    "plain": PLAIN,
    "another tip": replace(PLAIN, tip="another"),
    "a problem": replace(PLAIN, problem="error"),
    "a warning": replace(PLAIN, problem="warning", shapes=()),
    "unknown": replace(PLAIN, problem="unknown"),
    "inputs": replace(PLAIN, inputs=(ONE, TWO, TWO)),
    "other input": replace(PLAIN, inputs=(TWO,)),
    "no input": replace(PLAIN, inputs=()),
    "outputs": replace(PLAIN, outputs=(ONE, TWO)),
    "other output": replace(PLAIN, outputs=(TWO,)),
    "no output": replace(PLAIN, outputs=(), shapes=()),
    "a tab": replace(PLAIN, activation="relu"),
    "collapsed": replace(PLAIN, collapsed=True, outputs=(ONE, TWO)),
    "wide": replace(PLAIN, name="a layer with a very long name indeed"),
}


def state(item: LayerItem) -> list[object]:
    """Everything that an item shows and where."""
    dots = [
        [(dot.index, dot.is_input, dot.pos().toTuple(), dot.toolTip(), dot.look) for dot in side]
        for side in (item.inputs, item.outputs)
    ]
    painted = [(str(stroke), stroke.area.getRect()) for stroke in strokes(item)]
    return [
        item.layer, item.toolTip(), item.boundingRect(), item.box(), item.shape().boundingRect(), item.width, item.height,
        len(item.childItems()), *dots, painted,
    ]  # fmt: skip


@cache
def wanted(name: str) -> list[object]:
    """What the item of a look shows that never had another one."""
    return state(made(LOOKS[name]))


def made(look: NodeLook) -> LayerItem:
    item = LayerItem()
    item.show_look(look, layout(look))
    return item


@pytest.mark.parametrize("first", LOOKS)
def test_a_look_that_follows_another_one_leaves_nothing_of_it(qtbot: QtBot, first: str) -> None:
    """It says that links must be redrawn where ports were changed or moved, and only there."""
    for name, look in LOOKS.items():
        item, new = made(LOOKS[first]), layout(look)
        old = item.layout
        kept = [*item.inputs, *item.outputs]
        moved = (new.inputs, new.outputs) != (old.inputs, old.outputs)
        changed = (look.inputs, look.outputs) != (LOOKS[first].inputs, LOOKS[first].outputs)
        assert item.show_look(look, new) is (moved or changed), name
        assert state(item) == wanted(name), name
        counts = [
            (len(side), len(before))
            for side, before in ((look.inputs, LOOKS[first].inputs), (look.outputs, LOOKS[first].outputs))
        ]
        assert sum(dot in kept for dot in (*item.inputs, *item.outputs)) == sum(map(min, counts)), name
        assert not item.show_look(look, new), "nothing changed"


def test_a_layout_alone_is_followed_too(qtbot: QtBot) -> None:
    """The font of the application can change while the look stays."""
    look = LOOKS["outputs"]
    item, old = made(look), layout(look)
    wider = Layout(
        old.box.adjusted(0, 0, 64, 32),
        old.header,
        old.tab,
        old.left,
        old.right,
        old.bounds.adjusted(0, 0, 64, 32),
        old.inputs,
        tuple((x + 64, y) for x, y in old.outputs),
    )
    assert item.show_look(replace(look), wider)
    assert [dot.pos().toTuple() for dot in item.outputs] == list(wider.outputs)
    assert (item.boundingRect(), item.width, item.height) == (wider.bounds, wider.box.width(), wider.box.height())
    taller = Layout(
        wider.box,
        wider.header,
        wider.tab,
        wider.left,
        wider.right,
        wider.bounds.adjusted(0, 0, 0, 20),
        wider.inputs,
        wider.outputs,
    )
    assert not item.show_look(replace(look), taller), "no port moved"
    assert item.boundingRect() == taller.bounds


def test_ports_that_are_refused_for_a_dragged_link_are_free_after_a_change_of_ports(qtbot: QtBot) -> None:
    for first, second in permutations(("plain", "inputs", "other input", "outputs"), 2):
        item = made(LOOKS[first])
        for dot in (*item.inputs, *item.outputs):
            dot.refuse("it is full")
        item.show_look(LOOKS[second], layout(LOOKS[second]))
        assert not any(dot.grayed for dot in (*item.inputs, *item.outputs)), (first, second)
        assert state(item) == wanted(second), (first, second)


@pytest.mark.parametrize("name", LOOKS)
def test_a_point_is_covered_where_the_node_is_painted(qtbot: QtBot, name: str) -> None:
    """From afar the node is its block, with the text below it; the mark of a problem is there while it can be read."""
    look, item = LOOKS[name], made(LOOKS[name])
    item.setPos(1000, -500)
    shift = QTransform.fromTranslate(1000, -500)
    now = item.layout
    whole = shift.mapRect(now.box.united(now.tab) if look.activation else now.box)
    for zoom in (0.05, node_paint.READABLE - 0.01, node_paint.READABLE, 1.0, 3.0):
        afar = zoom < node_paint.READABLE
        for x in range(int(now.bounds.left()) - 20, int(now.bounds.right()) + 20, 9):
            for y in range(int(now.bounds.top()) - 20, int(now.bounds.bottom()) + 20, 7):
                place = QPointF(x + 1000.5, y - 499.5)
                block = shift.mapRect(now.block).contains(place)
                assert item.covers(place, zoom) is (whole.contains(place) or (afar and block))
                mark = shift.mapRect(now.mark).contains(place)
                assert item.marked_at(place, zoom) is (mark and look.problem in ("error", "warning") and not afar)
                inside = QPointF(x + 0.5, y + 0.5)
                assert item.shape().contains(inside) is (now.block.contains(inside) or now.tab.contains(inside))


class Pipe:
    """A link that notes what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Callable[[], None]:
        return lambda: self.asked.append(name)


def test_a_selected_node_is_in_front_and_its_links_are_painted_anew(qtbot: QtBot) -> None:
    item = made(LOOKS["outputs"])
    ends = [Pipe(), Pipe(), Pipe()]
    item.inputs[0].connected_pipes.append(ends[0])
    item.outputs[1].connected_pipes.extend(ends[1:])
    assert item.links() == ends
    for number, selected in enumerate((True, True, False, False, True), 1):
        before = [len(pipe.asked) for pipe in ends]
        changes = selected is not item.isSelected()
        item.setSelected(selected)
        assert item.isSelected() is selected, number
        assert item.zValue() == (2 if selected else 1), number
        assert [pipe.asked[start:] for pipe, start in zip(ends, before, strict=True)] == [["update"] * changes] * 3
    for pipe in ends:
        pipe.asked.clear()
    item.move_to(QPointF(30, 40))
    assert item.pos() == QPointF(30, 40)
    assert [pipe.asked for pipe in ends] == [["redraw"]] * 3


def test_the_links_of_ports_that_are_gone_are_deleted_and_those_of_others_stay(qtbot: QtBot) -> None:
    item = made(replace(PLAIN, inputs=(ONE, TWO, TWO), outputs=(ONE, TWO)))
    pipes = []
    for dot in (*item.inputs, *item.outputs):
        dot.connected_pipes.append(Pipe())
        pipes += dot.connected_pipes
    item.show_look(PLAIN, layout(PLAIN))
    assert [pipe.asked for pipe in pipes] == [[], ["delete"], ["delete"], [], ["delete"]]
    assert item.links() == [pipes[0], pipes[3]]
