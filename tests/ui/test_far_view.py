"""The view of a whole network from afar: collected in slices while the network changes, and painted again after every change."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QDeadlineTimer, QEvent, QObject, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QImage, QPainter, QPainterPath, QTransform
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QStyleOptionGraphicsItem

from app.ui.canvas.far_view import CURVES, STRIDE, FarView, Sweep
from app.ui.widgets import theme
from designer.graph import commands, frames, routes
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer, Source
from designer.operators.api import Category

EXPIRED, FOREVER = 0, QDeadlineTimer.ForeverConstant.Forever


@pytest.mark.parametrize("seed", range(8))
def test_a_pass_that_says_it_is_up_to_date_has_seen_every_change(seed):
    """Values change at any time, which is reported as a move, or as a change that makes what was collected useless."""
    numbers = Random(seed)
    values, collected = [0] * (3 * STRIDE), [[]]
    sweep = Sweep()

    def begin():
        found = []
        for value in values:
            yield
            found.append(value)
        collected[0] = found

    finished = partial = 0
    for _ in range(300):
        if numbers.random() < 0.3:
            values[numbers.randrange(len(values))] += 1
            sweep.forget(restart=numbers.random() < 0.5)
        done = sweep.proceed(begin, QDeadlineTimer(numbers.choice((EXPIRED, EXPIRED, FOREVER))))
        if done:
            assert collected[0] == values
        finished, partial = finished + done, partial + (not done)
    assert finished > 20
    assert partial > 20
    assert sweep.proceed(begin, QDeadlineTimer(FOREVER))
    assert collected[0] == values


def test_moves_do_not_put_off_the_end_of_a_pass_but_other_changes_begin_anew():
    count = 10 * STRIDE
    for restart in (False, True):
        sweep, begun, ended = Sweep(), [0], [0]

        def begin(begun=begun, ended=ended):
            begun[0] += 1
            for _ in range(count):
                yield
            ended[0] += 1

        for _ in range(15):
            assert not sweep.proceed(begin, QDeadlineTimer(EXPIRED))
            sweep.forget(restart=restart)
        assert bool(ended[0]) is not restart
        assert begun[0] == (15 if restart else 2)


class Painted(QObject):
    """Counts what a widget paints."""

    def __init__(self, widget):
        super().__init__(widget)
        self.count = 0
        widget.installEventFilter(self)

    def eventFilter(self, watched, event):
        self.count += event.type() is QEvent.Type.Paint
        return False


def in_frame(canvas):
    members = canvas.projection.members
    return lambda g: frames.collapse(g, [], ["f"], members)


CHANGES = {
    "a layer is moved": lambda c: commands.move_layers(c.graph, {"conv": (400, 80)}),
    "a layer is added": lambda c: commands.add_layer(c.graph, Layer("more", "identity", (640, 320))),
    "a layer is deleted": lambda c: commands.delete(c.graph, ["free"], [], variadic=lambda *_: False),
    "a layer has an error": lambda c: commands.set_params(c.graph, {"conv": {"kernel": "0x0"}}),
    "a link is added": lambda c: commands.connect(c.graph, Source("input"), "free", 0),
    "a link is bent": lambda c: routes.set_route(c.graph, "cat", 1, [(304, 240), (560, 240)], "Bend"),
    "a frame is added": lambda c: frames.set_frame(c.graph, "g", Frame("g", "More", "", "", (0, 320, 304, 160))),
    "a frame is collapsed": lambda c: frames.collapse(c.graph, [], ["f"], c.members),
}


class Edited:
    def __init__(self, canvas):
        self.graph, self.members = canvas.context.document.graph, canvas.projection.members


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("name", CHANGES)
def test_from_afar_every_change_is_painted_without_another_event(qtbot, monkeypatch, name, eager):
    """`eager`: whether all layers have items, as in a small network."""
    if not eager:
        if name == "a link is bent":
            pytest.skip("links without items are straight from afar")
        monkeypatch.setattr("app.ui.canvas.projection.EAGER", 0)
    canvas = kit.open_canvas(qtbot, kit.small_graph())
    document, viewer = canvas.context.document, canvas.viewer
    document.do(frames.set_frame(document.graph, "f", Frame("f", "Encoder", "", "", (272, -64, 304, 160))))
    viewer.zoom_by(0.1 / viewer.zoom)
    viewer.centerOn(480, 60)
    qtbot.waitUntil(lambda: not canvas.projection.busy)
    painted = Painted(viewer.viewport())
    for step in (lambda: document.do(CHANGES[name](Edited(canvas))), document.undo, document.redo):
        QApplication.processEvents()
        before = viewer.grab().toImage()
        QApplication.processEvents()
        painted.count = 0
        step()
        qtbot.waitUntil(lambda: painted.count > 0)
        qtbot.waitUntil(lambda: not canvas.projection.busy)
        assert viewer.grab().toImage() != before


@pytest.mark.parametrize("what", ["a layer", "two layers", "a frame", "a collapsed frame"])
def test_from_afar_what_is_dragged_is_shown_where_it_would_be_dropped(qtbot, what):
    """After every move of the mouse, the view is that of the network after a drop there."""
    canvas = kit.open_canvas(qtbot, kit.small_graph())
    document, viewer = canvas.context.document, canvas.viewer
    document.do(frames.set_frame(document.graph, "f", Frame("f", "Encoder", "", "", (272, -64, 304, 160))))
    if what == "a collapsed frame":
        document.do(CHANGES["a frame is collapsed"](Edited(canvas)))
    viewer.zoom_by(0.1 / viewer.zoom)
    viewer.centerOn(480, 60)
    qtbot.waitUntil(lambda: not canvas.projection.busy)
    if what == "two layers":
        canvas.context.select(("conv", "free"))
    held = canvas.projection["free" if what == "a layer" else "conv"].box()
    start = kit.at(
        canvas, held.center() if "layer" in what else canvas.projection.frame("f").seen.topLeft() + QPointF(60, 12)
    )
    places = [start + QPoint(*run) for run in ((12, 30), (-20, 60), (40, 90))]
    painted = Painted(viewer.viewport())

    def seen() -> tuple[object, ...]:
        qtbot.waitUntil(lambda: painted.count > 0)
        far = canvas.projection.far  # as it was painted
        painted.count = 0
        return dict(far.blocks), list(far.selected), [frame.seen for frame in far.frames]

    dragged, dropped = [], []
    QTest.mousePress(viewer.viewport(), kit.LEFT, pos=start)
    for place in places:
        QApplication.processEvents()
        painted.count = 0
        QTest.mouseMove(viewer.viewport(), place)
        dragged.append(seen())
    QTest.keyClick(viewer, Qt.Key.Key_Escape)
    for place in places:
        kit.drag(canvas, start, place)
        QApplication.processEvents()
        dropped.append(seen())
        document.undo()
    assert dragged == dropped
    assert all(one != other for one, other in pairwise(dragged))


def test_links_from_afar_are_where_they_are_near_by(qtbot):
    """Direct links, links around a layer, links with points, and those that get points or lose them."""
    canvas = kit.open_canvas(qtbot, kit.small_graph())
    document = canvas.context.document
    document.do(lambda g: commands.connect(g, Source("input"), "out", 0))

    def check() -> set[str]:
        kinds = set()
        for edge in list(canvas.projection.links):
            link, lines = canvas.projection.link(*edge.key), QPainterPath()
            link.add_lines(lines)
            path = link.path()
            near = [path.pointAtPercent(share / 400) for share in range(401)]
            for at in (lines.elementAt(n) for n in range(lines.elementCount())):
                place = QPointF(at.x, at.y)
                assert min((place - other).manhattanLength() for other in near) < 12, edge.key
            kinds.add("points" if link.points else "around" if lines.elementCount() > 2 else "direct")
        return kinds

    assert check() == {"direct", "around"}
    document.do(lambda g: routes.set_route(g, "out", 0, [(304, 340), (700, 340)], "Bend"))
    assert "points" in check()
    document.do(lambda g: routes.set_route(g, "cat", 0, [(560, 40)], "Bend"))
    check()
    document.undo()
    document.undo()
    assert check() == {"direct", "around"}


@pytest.mark.parametrize("eager", [True, False])
def test_the_marks_of_problems_from_afar_are_those_near_by(qtbot, monkeypatch, eager):
    """An error and a warning, alone and together; a layer behind the error has no mark."""
    if not eager:
        monkeypatch.setattr("app.ui.canvas.projection.EAGER", 0)
    canvas = kit.open_canvas(qtbot, kit.small_graph())
    document, viewer = canvas.context.document, canvas.viewer
    document.do(lambda g: commands.add_layer(g, Layer("more", "output", (640, 160), (Source("free"),))))
    viewer.zoom_by(0.16 / viewer.zoom)
    viewer.centerOn(480, 60)
    qtbot.waitUntil(lambda: not canvas.projection.busy)
    marks: set[tuple[int, int, int, str]] = set()

    def note(painter: QPainter, place: QRectF, problem: str) -> None:
        shown = painter.transform().mapRect(place)
        marks.add((round(shown.center().x()), round(shown.center().y()), round(shown.width()), problem))

    monkeypatch.setattr("app.ui.canvas.node_paint._paint_mark", note)

    def far() -> set[tuple[int, int, int, str]]:
        marks.clear()
        viewer.viewport().grab()
        return set(marks)

    def near() -> set[tuple[int, int, int, str]]:
        marks.clear()
        image = QImage(viewer.viewport().size(), QImage.Format.Format_RGB32)
        painter = QPainter(image)
        for name in canvas.projection.layers:
            item = canvas.projection[name]
            painter.setTransform(viewer.viewportTransform())
            painter.translate(item.pos())
            item.paint(painter, QStyleOptionGraphicsItem())
        painter.end()
        return set(marks)

    found = []
    for step in (
        lambda: None,
        lambda: document.do(lambda g: commands.set_params(g, {"cat": {"color": "red"}})),
        lambda: document.do(lambda g: commands.connect(g, Source("input"), "free", 0)),
        document.undo,
        document.undo,
    ):
        step()
        qtbot.waitUntil(lambda: not canvas.projection.busy)
        shown = far()
        assert shown == near()
        found.append(sorted(problem for *_, problem in shown))
    assert found == [["error"], ["error", "warning"], ["warning"], ["error", "warning"], ["error"]]


def test_a_crowd_of_links_or_of_layers_is_painted_from_afar(qtbot, monkeypatch):
    """Links at any scale, layers where they have no ports, and everything while links are still collected."""
    monkeypatch.setattr("app.ui.canvas.projection.EAGER", 0)
    canvas = kit.open_canvas(qtbot, kit.small_graph())
    items = canvas.projection
    area, nowhere = items.extent(), items.extent().translated(9000, 9000)
    qtbot.waitUntil(lambda: not items.busy)
    links, layers = len(list(items.links)), len(list(items.layers))
    for crowd, many, near_by, far_off in (
        (links, layers, False, False),
        (links - 1, layers, True, True),
        (links, layers - 1, False, True),
    ):
        monkeypatch.setattr("app.ui.canvas.projection.CROWD", crowd)
        monkeypatch.setattr("app.ui.canvas.projection.MANY", many)
        assert items.crowded(area, 1.0) is near_by
        assert items.crowded(area, 0.3) is far_off
        assert not items.crowded(nowhere, 0.3)
    items.show(canvas.context.document)
    assert items.busy
    assert items.crowded(nowhere, 1.0)
    qtbot.waitUntil(lambda: not items.busy)


@pytest.mark.parametrize("how", ["a click on nothing", "another layer", "a panel", "a band"])
def test_from_afar_many_selected_layers_are_seen_until_something_else_is_selected(qtbot, monkeypatch, how):
    """Layers without items are marked only."""
    for name, value in (("EAGER", 0), ("FEW", 2)):
        monkeypatch.setattr(f"app.ui.canvas.projection.{name}", value)
    canvas = kit.open_canvas(qtbot, kit.small_graph())
    viewer, items = canvas.viewer, canvas.projection
    viewer.zoom_by(0.1 / viewer.zoom)
    viewer.centerOn(480, 60)
    qtbot.waitUntil(lambda: not items.busy)
    plain = viewer.grab().toImage()
    canvas.select_all()
    assert len(items.marked) == len(items.collect_far().selected) == 5
    QApplication.processEvents()
    assert viewer.grab().toImage() != plain
    left = 0
    painted = Painted(viewer.viewport())
    if how == "a click on nothing":
        kit.click(canvas, QPoint(8, 8))
    elif how == "another layer":
        left = 1
        canvas.context.select(("free",))
    elif how == "a panel":
        canvas.context.select(())
    else:
        kit.drag(canvas, QPoint(8, 8), QPoint(60, 60))
    assert len(items.collect_far().selected) == left
    qtbot.waitUntil(lambda: painted.count > 0)
    assert canvas.context.selection == (("free",) if left else ())
    assert (viewer.grab().toImage() == plain) is not bool(left)


@pytest.mark.parametrize("count", [4, CURVES + 1])
def test_what_is_drawn_on_a_far_view_is_as_thick_at_every_scale(qapp, count):
    """Links, highlighted links, blocks and selected ones, of which each has the same place and size in pixels at each scale."""

    def line(y: float) -> QPainterPath:
        path = QPainterPath(QPointF(8, y))
        path.lineTo(120, y)
        path.lineTo(150, y + 12)
        return path

    def painted(scale: float) -> QImage:
        there = QTransform.fromScale(1 / scale, 1 / scale)
        far = FarView(count=count)
        far.links = there.map(line(20))
        far.marked = {"link_path": there.map(line(50)), "link_active": there.map(line(80))}
        far.blocks = {Category.CONVOLUTION: [there.mapRect(QRectF(16, 104, 32, 16))]}
        far.ghosts = {Category.CONVOLUTION: [there.mapRect(QRectF(64, 104, 32, 16))]}
        far.selected = [there.mapRect(QRectF(112, 104, 32, 16))]
        image = QImage(160, 128, QImage.Format.Format_RGB32)
        image.fill(theme.color("sunken"))
        painter = QPainter(image)
        painter.scale(scale, scale)
        far.paint(painter, scale)
        painter.end()
        return image

    expected = painted(1.0)
    empty = theme.color("sunken").rgb()
    thick = [sum(expected.pixel(40, y) != empty for y in range(top, top + 24)) for top in (8, 38, 68)]
    assert 0 < thick[0] < thick[1] == thick[2]
    for scale in (0.5, 0.25, 0.0625, 0.015625):
        assert painted(scale) == expected, scale


def ends(path: QPainterPath) -> set[tuple[float, float]]:
    """The first point of every line of a path."""
    elements = (path.elementAt(number) for number in range(path.elementCount()))
    return {(element.x, element.y) for element in elements if element.isMoveTo()}


def test_from_afar_a_link_is_marked_once_as_selected_before_on_the_path(qtbot):
    """Links at the selected layer are active, as near by; those further up and down the path are not."""
    canvas = kit.open_canvas(qtbot, kit.small_graph())
    canvas.context.select(("conv",))
    marked = canvas.projection.collect_far().marked
    starts = {
        key: canvas.projection.link(*key).source.center().toTuple() for key in (("conv", 0), ("cat", 0), ("out", 0))
    }
    assert ends(marked["link_active"]) == {starts["conv", 0], starts["cat", 0]}
    assert ends(marked["link_path"]) == {starts["out", 0]}


@pytest.mark.parametrize(("eager", "left"), [(300, 0), (1, 90_000)])
def test_from_afar_links_inside_of_a_collapsed_frame_are_hidden_with_it(qtbot, monkeypatch, eager, left):
    """Whether there are items or, far from the view, not."""
    monkeypatch.setattr("app.ui.canvas.projection.EAGER", eager)
    layers = [Layer("l0", "identity", (left, 0)), Layer("near", "identity", (0, 320))]
    layers += [Layer(f"l{n}", "identity", (left + 320 * n, 0), (Source(f"l{n - 1}"),)) for n in range(1, 5)]
    frame = Frame("f", "inside", rect=(left + 600, -64, 560, 192))
    canvas = kit.open_canvas(qtbot, Graph(layers, frames=(frame,)))
    document, projection = canvas.context.document, canvas.projection
    qtbot.waitUntil(lambda: len(ends(projection.collect_far().links)) == 4)
    document.do(lambda g: frames.collapse(g, [], ["f"], projection.members))
    assert [name for name in document.graph.layers if projection.hides(name)] == ["l2", "l3"]
    assert next(edge.item is None for edge in projection.links if edge.key == ("l3", 0)) is (eager == 1)
    qtbot.waitUntil(lambda: len(ends(projection.collect_far().links)) == 3)


def test_a_layer_that_is_painted_from_afar_is_hovered(qtbot, monkeypatch):
    """Layers have no items there until the pointer is on them: then they have a tip, and are selected as before."""
    for limit in ("EAGER", "MANY", "FEW"):
        monkeypatch.setattr(f"app.ui.canvas.projection.{limit}", 0)
    canvas = kit.open_canvas(qtbot, kit.small_graph())
    items, viewer = canvas.projection, canvas.viewer
    viewer.zoom_by(0.3 / viewer.zoom)
    items.show(canvas.context.document)
    qtbot.waitUntil(lambda: not items.busy)
    assert not items.whole
    canvas.context.select(("cat",))
    for name in ("conv", "cat"):
        place = kit.at(canvas, items.entry(name).box().center())
        QTest.mouseMove(viewer.viewport(), place)
        qtbot.waitUntil(lambda name=name: name in items.whole)
        assert name in viewer.itemAt(place).toolTip()
        assert items[name].isSelected() is (name == "cat")
    assert viewer.selected_names() == ["cat"]
