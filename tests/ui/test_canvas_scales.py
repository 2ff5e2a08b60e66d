"""Gestures do the same at every scale of the canvas, as one step of undo; what moves the view, and what keeps it."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import itertools
import math

import canvas_kit as kit
from painted import strokes
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QContextMenuEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from window_kit import press, show

from app.ui.canvas.canvas import OPENING_ZOOM
from app.ui.canvas.edge_scroll import EdgeScroll
from app.ui.canvas.view import ZOOM_MAX, ZOOM_MIN
from designer.graph.graph import Graph
from designer.graph.model import GRID, Frame, Layer, Source
from designer.graph.routes import routes_of, set_route

NONE = Qt.KeyboardModifier.NoModifier
SCALES = [0.26, 0.5, 1.0, 2.4]


def plain_graph() -> Graph:
    """Layers off the grid, two of them free, a chain, a second input, and frames that hold, touch and miss layers."""
    same = {"features": "3", "kernel": "3x3", "padding": "same"}
    return Graph(
        [
            Layer("in", "input", (0, 0), params={"dims": "64x48x3"}),
            Layer("other", "input", (0, 320), params={"dims": "64x48x3"}),
            Layer("conv", "convolution", (480, 0), (Source("in"),), same),
            Layer("out", "output", (960, 0), (Source("conv"),)),
            Layer("odd", "identity", (325, 163)),
            Layer("free", "identity", (485, 331)),
        ],
        frames=(
            Frame("around", "Around", rect=(448, -64, 256, 192)),
            Frame("beside", "Beside", rect=(880, -240, 128, 288)),
        ),
    )


@pytest.fixture
def canvas(qtbot):
    return kit.open_canvas(qtbot, plain_graph(), (1500, 800))


def graph(canvas) -> Graph:
    return canvas.context.document.graph


def look(canvas, zoom: float, center: QPointF) -> None:
    canvas.viewer.zoom_by(zoom / canvas.viewer.zoom)
    canvas.viewer.go(center)


def look_past(canvas, zoom: float, area: QRectF, gap: float, side: str) -> None:
    """Look so that an area ends `gap` pixels from the left ("l"), right, upper ("t") or lower edge of the view; negative: outside."""
    look(canvas, zoom, QPointF(0, 0))
    seen, away = canvas.viewer.seen(), gap / zoom
    half = QPointF(seen.width() / 2, seen.height() / 2)
    places = {
        "l": QPointF(area.left() - away + half.x(), area.center().y()),
        "r": QPointF(area.right() + away - half.x(), area.center().y()),
        "t": QPointF(area.center().x(), area.top() - away + half.y()),
        "b": QPointF(area.center().x(), area.bottom() + away - half.y()),
    }
    canvas.viewer.go(places[side])


def drag(canvas, start: QPointF, run: QPointF) -> None:
    """Drag from a point of the canvas by a distance on the canvas."""
    kit.drag(canvas, kit.at(canvas, start), kit.at(canvas, start + run))


def grip(canvas, name: str) -> QPointF:
    """A point of a layer without a port."""
    return canvas.projection[name].pos() + QPointF(60, 12)


def grid(value: float) -> int:
    return 16 * round(value / 16)


def one_step(canvas, title: str, before: Graph) -> None:
    """What was done is one step, which can be undone and redone; the items follow."""
    document = canvas.context.document
    done = document.graph.copy()
    kit.check(canvas, document)
    assert document.history.undo_title == title
    document.undo()
    assert document.graph == before
    assert document.history.undo_title is None
    kit.check(canvas, document)
    document.redo()
    assert document.graph == done
    kit.check(canvas, document)


@pytest.mark.parametrize("zoom", SCALES)
@pytest.mark.parametrize("names", [("odd",), ("free", "odd"), ("conv", "odd", "free")], ids="+".join)
def test_layers_keep_their_distances_and_the_dragged_one_comes_to_the_grid(canvas, names, zoom):
    before = graph(canvas).copy()
    run = QPointF(-95, 172)  # to (230, 335), near the point (224, 336) of the grid
    canvas.context.select(names)
    look(canvas, zoom, QPointF(400, 240))
    drag(canvas, grip(canvas, "odd"), run)
    step = (grid(325 + run.x()) - 325, grid(163 + run.y()) - 163)
    for layer in before:
        moved = layer.name in names
        x, y = layer.position
        assert graph(canvas)[layer.name].position == ((x + step[0], y + step[1]) if moved else (x, y))
    assert canvas.context.selection == names
    one_step(canvas, "Move" if len(names) == 1 else f"Move {len(names)} layers", before)


@pytest.mark.parametrize("zoom", SCALES)
def test_several_layers_dropped_on_a_link_are_only_moved(canvas, zoom):
    before = graph(canvas).copy()
    canvas.context.select(("odd", "free"))
    link = canvas.projection.link("out", 0)
    look(canvas, zoom, QPointF(600, 160))
    start = canvas.projection["odd"].box().center()
    drag(canvas, start, link.path().pointAtPercent(0.5) - start)
    assert all(graph(canvas)[name].inputs == before[name].inputs for name in before.layers)
    assert graph(canvas)["odd"].position != before["odd"].position
    one_step(canvas, "Move 2 layers", before)


@pytest.mark.parametrize("zoom", SCALES)
@pytest.mark.parametrize(
    ("share", "end", "wanted"),
    [
        (0.2, "other", {"conv": Source("other")}),  # nearer to its source: that end is loose
        (0.2, "", {"conv": None}),
        (0.8, "free", {"conv": None, "free": Source("in")}),
        (0.8, "", {"conv": None}),
    ],
)
def test_a_link_is_dragged_by_the_nearer_end(canvas, share, end, wanted, zoom):
    before = graph(canvas).copy()
    look(canvas, zoom, QPointF(320, 160))
    link = canvas.projection.link("conv", 0)
    start = link.path().pointAtPercent(share)
    anchor = link.target if share < 0.5 else link.source
    target = QPointF(200, 140)
    if end:
        item = canvas.projection[end]
        target = (item.outputs if share < 0.5 else item.inputs)[0].center()
    view = canvas.viewer.viewport()
    QTest.mousePress(view, kit.LEFT, NONE, kit.at(canvas, start))
    QTest.mouseMove(view, kit.at(canvas, target))
    (live,) = canvas.viewer.overlays[-1:]
    ends = live.path().pointAtPercent(0), live.path().pointAtPercent(1)
    assert (ends[1] if share < 0.5 else ends[0]) == anchor.center()  # the other end stays at its port
    QTest.mouseRelease(view, kit.LEFT, NONE, kit.at(canvas, target))
    for name, source in wanted.items():
        assert graph(canvas)[name].inputs == ((source,) if source is not None else ())
    assert [n for n in before.layers if before[n].inputs != graph(canvas)[n].inputs] == list(wanted)
    one_step(canvas, canvas.context.document.history.undo_title, before)


@pytest.mark.parametrize("zoom", SCALES)
def test_a_reroute_point_is_added_and_dragged_to_the_grid(canvas, zoom):
    document, before = canvas.context.document, graph(canvas).copy()
    look(canvas, zoom, QPointF(240, 100))
    link = canvas.projection.link("conv", 0)
    place = link.path().pointAtPercent(0.5)
    QTest.mouseDClick(canvas.viewer.viewport(), kit.LEFT, Qt.KeyboardModifier.AltModifier, kit.at(canvas, place))
    ((x, y),) = routes_of(graph(canvas)["conv"])[0]
    assert (x % 16, y % 16) == (0, 0)
    assert max(abs(x - place.x()), abs(y - place.y())) <= 8 + 2 / zoom
    one_step(canvas, "Add reroute point", before)
    with_point = graph(canvas).copy()
    drag(canvas, QPointF(x, y), QPointF(35, 148))
    assert routes_of(graph(canvas)["conv"])[0] == ((x + 32, y + 144),)
    document.undo()
    assert graph(canvas) == with_point


@pytest.mark.parametrize("zoom", [s for s in SCALES if s >= 0.5])
def test_a_frame_takes_the_layers_whose_centers_are_in_it(canvas, zoom):
    """`out` reaches into "Beside" with less than half of its box."""
    before = graph(canvas).copy()
    box, frame = canvas.projection["out"].box(), QRectF(880, -240, 128, 288)
    assert box.intersects(frame)
    assert not frame.contains(box.center())
    for key, inside in (("around", {"conv"}), ("beside", set())):
        item = canvas.projection.frame(key)
        look(canvas, zoom, item.rect.center())
        drag(canvas, item.rect.topLeft() + QPointF(40, 13), QPointF(-50, -35))
        assert {n for n in before.layers if graph(canvas)[n].position != before[n].position} == inside
        x, y, width, height = before.frames[key].rect
        assert graph(canvas).frames[key].rect == (x - 48, y - 32, width, height)
        assert all(
            graph(canvas)[n].position == (before[n].position[0] - 48, before[n].position[1] - 32) for n in inside
        )
        one_step(canvas, canvas.context.document.history.undo_title, before)
        canvas.context.document.undo()


@pytest.mark.parametrize("zoom", SCALES)
@pytest.mark.parametrize("pan", [0, 260, -260], ids=["rest", "right", "left"])
def test_a_rubber_band_selects_what_is_between_its_ends_on_the_canvas(canvas, pan, zoom):
    """Also if the view scrolls before the second end, and in any direction."""
    look(canvas, zoom, QPointF(480, 160))
    view = canvas.viewer.viewport()
    first = canvas.viewer.mapToScene(QPoint(740, 560))
    QTest.mousePress(view, kit.LEFT, NONE, QPoint(740, 560))
    QTest.mouseMove(view, QPoint(700, 500))
    canvas.viewer.pan(QPoint(pan, 0))
    end = QPoint(560, 140)
    QTest.mouseMove(view, end)
    area = QRectF(first, canvas.viewer.mapToScene(end)).normalized()
    wanted = {n for n in graph(canvas).layers if canvas.projection.entry(n).box().intersects(area)}
    QTest.mouseRelease(view, kit.LEFT, NONE, end)
    assert set(canvas.context.selection) == wanted
    assert canvas.context.document.history.is_clean


def wheel(canvas, point: QPoint, turn: QPoint) -> None:
    view, place = canvas.viewer.viewport(), QPointF(point)
    button, phase = Qt.MouseButton.NoButton, Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(place, QPointF(view.mapToGlobal(point)), QPoint(), turn, button, NONE, phase, False)
    QApplication.sendEvent(view, event)


@pytest.mark.parametrize("turn", [QPoint(0, 120), QPoint(0, -120), QPoint(120, 0), QPoint(-120, 0)])
def test_a_wheel_of_either_axis_zooms_to_the_limits_and_the_pointer_stays_where_it_is(canvas, turn):
    """Alt turns the wheel into one of the other axis."""
    point = QPoint(900, 300)
    look(canvas, 1, QPointF(300, 100))
    place = canvas.viewer.mapToScene(point)
    wheel(canvas, point, turn)
    assert canvas.viewer.zoom == pytest.approx(1.0015 ** (turn.x() + turn.y()))
    for _ in range(60):
        wheel(canvas, point, turn)
        assert (canvas.viewer.mapToScene(point) - place).manhattanLength() < 4 / canvas.viewer.zoom
    assert canvas.viewer.zoom == pytest.approx(ZOOM_MAX if turn.x() + turn.y() > 0 else ZOOM_MIN)


MOVES = {
    "pan": lambda canvas: kit.drag(canvas, QPoint(300, 600), QPoint(420, 560), kit.MIDDLE),
    "wheel": lambda canvas: wheel(canvas, QPoint(300, 300), QPoint(0, 360)),
    "reveal": lambda canvas: (canvas.viewer.go(QPointF(0, 9000)), canvas.frame_all(), canvas.reveal("odd")),
    "walk": lambda canvas: canvas.show_layer("out"),
    "minimap": lambda canvas: canvas.viewer.go(QPointF(500, 200)),
    "selection": lambda canvas: (canvas.context.select(("free",)), canvas.frame_selection()),
}


@pytest.mark.parametrize("move", MOVES)
def test_what_the_user_looks_at_stays_when_the_window_is_resized(canvas, move):
    """Zoom to Fit keeps the whole network in view, until the user looks at something else."""
    viewer = canvas.viewer
    canvas.frame_all()
    fitted = viewer.zoom
    canvas.resize(700, 420)
    QApplication.processEvents()
    assert viewer.zoom < 0.9 * fitted
    assert all(viewer.seen().contains(canvas.projection[name].box()) for name in canvas.projection.layers)
    MOVES[move](canvas)
    zoom, corner = viewer.zoom, viewer.mapToScene(QPoint(0, 0))
    canvas.resize(1500, 800)
    QApplication.processEvents()
    assert viewer.zoom == pytest.approx(zoom)
    assert (viewer.mapToScene(QPoint(0, 0)) - corner).manhattanLength() < 2 / zoom


@pytest.mark.parametrize(("zoom", "found"), [(0.1, 0.8), (0.49, 0.8), (0.5, 0.5), (2.0, 2.0)])
def test_a_revealed_layer_can_be_read(canvas, zoom, found):
    """The scale changes only where names are too small, the place only where the layer is not in view."""
    look(canvas, zoom, QPointF(9000, 9000))
    canvas.reveal("free")
    assert canvas.viewer.zoom == pytest.approx(found)
    assert canvas.viewer.seen().contains(canvas.projection["free"].sceneBoundingRect())
    place = canvas.viewer.visible_center()
    canvas.reveal("free")
    assert canvas.viewer.visible_center() == place


def test_the_view_moves_to_a_revealed_layer_exactly_if_a_part_of_it_is_not_seen(canvas):
    viewer, area = canvas.viewer, canvas.projection["free"].sceneBoundingRect()
    for zoom, gap, side in itertools.product((0.4, 0.6, 2.5), (-3.0, 1.0, 40.0), "lrtb"):
        look_past(canvas, zoom, area, gap, side)
        before, whole = viewer.visible_center(), viewer.seen().contains(area)
        assert whole is (gap > 0), (zoom, gap, side)
        canvas.context.select(())
        canvas.reveal("free")
        assert canvas.context.selection == ("free",)
        assert viewer.seen().contains(area)
        assert viewer.zoom == pytest.approx(0.8 if zoom < 0.5 else zoom)
        if zoom >= 0.5:
            wanted = before if whole else area.center()
            assert (viewer.visible_center() - wanted).manhattanLength() <= 4 / zoom, (zoom, gap, side)


def test_zoom_to_selection_shows_everything_if_nothing_is_selected(canvas):
    look(canvas, 2, QPointF(9000, 9000))
    canvas.frame_selection()
    assert all(canvas.viewer.seen().contains(canvas.projection[name].box()) for name in canvas.projection.layers)


POINTS = ((192, 256), (320, 256), (448, 256))


@pytest.mark.parametrize(
    ("opened", "left"),
    [("keys", POINTS[:2]), (POINTS[0], POINTS[1:]), (POINTS[1], (POINTS[0], POINTS[2])), (POINTS[2], POINTS[:2])],
)
def test_the_menu_removes_the_point_at_which_it_was_opened(empty_window, opened, left):
    """By keys there is no such place: it removes the last point."""
    window = show(empty_window, plain_graph())
    canvas, document = window.canvas, window.context.document
    document.do(lambda g: set_route(g, "conv", 0, list(POINTS)))
    link = canvas.projection.link("conv", 0)
    canvas.viewer.select_link(link)
    for place in ("mouse", opened):  # a place of an earlier menu does not count
        point = kit.at(canvas, QPointF(*(POINTS[0] if isinstance(place, str) else place)))
        reason = QContextMenuEvent.Reason.Keyboard if place == "keys" else QContextMenuEvent.Reason.Mouse
        view = canvas.viewer.viewport()
        QApplication.sendEvent(view, QContextMenuEvent(reason, point, view.mapToGlobal(point)))
        window.findChild(QMenu, "canvas.menu").close()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    QApplication.processEvents()
    window.actions_["edit.remove_reroute"].trigger()
    assert routes_of(document.graph["conv"])[0] == left


def test_the_menu_adds_a_point_where_it_was_opened_on_the_link_or_else_in_its_middle(empty_window):
    window = show(empty_window, plain_graph())
    canvas, document = window.canvas, window.context.document
    link = canvas.projection.link("conv", 0)
    path = link.path()
    for place, wanted in (
        (path.pointAtPercent(0.2), path.pointAtPercent(0.2)),
        (QPointF(0, 500), path.pointAtPercent(0.5)),
    ):
        canvas.viewer.select_link(link)
        canvas.viewer.menu_place = place
        QApplication.processEvents()  # actions follow with the next turn
        window.actions_["edit.add_reroute"].trigger()
        ((x, y),) = routes_of(document.graph["conv"])[0]
        assert max(abs(x - wanted.x()), abs(y - wanted.y())) <= 8
        document.undo()


def test_arrow_keys_go_to_the_nearest_layer_in_that_direction(empty_window):
    """From nothing to the leftmost one; along links to the nearest in height, else down to the nearest, more below than aside."""
    places = {
        "a_far": (640, 480), "b": (640, 0), "start": (320, 0), "left": (0, 0), "z_left": (-320, 320),
        "below": (320, 320), "aside": (0, 160), "above": (352, -480),
    }  # fmt: skip
    feeds = {"start": ("left", "z_left"), "a_far": ("start",), "b": ("start",)}
    layers = [
        Layer(n, "element_wise" if n == "start" else "identity", at, tuple(map(Source, feeds.get(n, ()))))
        for n, at in places.items()
    ]
    window = show(empty_window, Graph(layers))
    context = window.context
    press(window, "Right")
    assert context.selection == ("z_left",)
    for key, found in (("Right", "b"), ("Left", "left"), ("Down", "below"), ("Up", "above")):
        context.select(("start",))
        press(window, key)
        assert context.selection == (found,), key
    context.select(("b",))
    press(window, "Shift+Left", "Shift+Left", "Shift+Right")
    assert context.selection == ("b", "left", "start")
    assert context.document.history.is_clean


@pytest.mark.parametrize("center", [QPointF(0, 0), QPointF(-777, -1234), QPointF(5003, 907)])
def test_lines_of_the_grid_are_apart_and_where_layers_snap_to(canvas, center):
    """At least 24 pixels apart, at most twice that unless one grid step is wider, over the whole area that is painted."""
    for zoom in (ZOOM_MIN, 0.07, 0.3, 0.9, 1.0, 2.4):
        check_grid(canvas, zoom, center)


def check_grid(canvas, zoom, center):
    look(canvas, zoom, center)
    area = canvas.viewer.seen().adjusted(3, 5, -3, -7)
    found = [
        s.area for s in strokes(lambda painter: canvas.viewer.drawBackground(painter, area)) if s.kind == "polyline"
    ]
    columns = sorted(line.left() for line in found if line.height())
    rows = sorted(line.top() for line in found if line.width())
    for places, first, last in ((columns, area.left(), area.right()), (rows, area.top(), area.bottom())):
        step = places[1] - places[0]
        assert step == pytest.approx(GRID) if GRID * zoom >= 24 else 23.9 < step * zoom < 48.1
        power = step / GRID
        assert power == pytest.approx(2 ** round(math.log2(power)))
        assert all(b - a == pytest.approx(step, abs=0.1) for a, b in itertools.pairwise(places))
        assert all(min(place % step, step - place % step) < 0.1 for place in places)
        assert places[0] <= first + step
        assert places[-1] >= last - step
    assert all(line.height() == pytest.approx(area.height(), abs=0.1) for line in found if line.height())


@pytest.mark.parametrize("leave", ["pan", "zoom", "fit"])
def test_a_place_that_is_shown_again_stays_in_the_middle_until_the_user_looks_elsewhere(canvas, leave):
    """Also while the canvas gets other sizes, as when a window is opened; the whole network stays whole."""
    viewer = canvas.viewer
    canvas.frame_all()
    whole = viewer.place()
    look(canvas, 0.6, QPointF(500, 200))
    place = viewer.place()
    assert place.zoom == pytest.approx(0.6)
    for wanted in (place, whole, place):
        look(canvas, 1.0, QPointF(-4000, 900))
        viewer.restore(wanted)
        for size in ((700, 420), (1500, 800), (640, 900)):
            canvas.resize(*size)
            QApplication.processEvents()
            if wanted is place:
                assert viewer.zoom == pytest.approx(place.zoom)
                assert (viewer.visible_center() - place.center).manhattanLength() < 4 / place.zoom
                assert viewer.place() == place, "exactly, however often one comes back to it"
            else:
                assert all(viewer.seen().contains(canvas.projection[name].box()) for name in canvas.projection.layers)
                assert viewer.place().fitted_from == whole.fitted_from
    {"pan": lambda: viewer.pan(QPoint(60, 40)), "zoom": lambda: viewer.zoom_by(1.2), "fit": canvas.frame_all}[leave]()
    assert viewer.place() != place
    zoom, corner = viewer.zoom, viewer.mapToScene(QPoint(0, 0))
    canvas.resize(1200, 700)
    QApplication.processEvents()
    if leave == "fit":
        assert viewer.zoom > zoom
    else:
        assert viewer.zoom == pytest.approx(zoom)
        assert (viewer.mapToScene(QPoint(0, 0)) - corner).manhattanLength() < 2 / zoom


def test_a_network_that_begins_at_a_legible_scale_keeps_it_when_the_canvas_gets_another_size(qtbot):
    """One that is smaller than the canvas is fitted into it again; the view stays where the user went."""
    layers = [Layer("l0", "identity")]
    layers += [Layer(f"l{n}", "identity", (320 * n, 0), (Source(f"l{n - 1}"),)) for n in range(1, 60)]
    canvas = kit.open_canvas(qtbot, Graph(layers), (900, 500))
    viewer = canvas.viewer
    assert viewer.zoom == pytest.approx(OPENING_ZOOM)
    for size in ((700, 400), (1200, 600)):
        canvas.resize(*size)
        assert viewer.zoom == pytest.approx(OPENING_ZOOM)
        assert viewer.seen().contains(canvas.projection.entry("l0").area())
    look(canvas, 0.5, QPointF(9000, 0))
    canvas.resize(800, 500)
    assert viewer.zoom == pytest.approx(0.5)
    assert not viewer.seen().contains(canvas.projection.entry("l0").area())


def test_the_view_moves_only_as_far_as_a_layer_needs_to_be_seen_with_a_margin(canvas):
    viewer, area = canvas.viewer, canvas.projection["free"].sceneBoundingRect()
    margin = 2 * GRID
    for zoom, gap, side in itertools.product((0.6, 2.0), (-200.0, -5.0, 10.0, 60.0), "lrtb"):
        look_past(canvas, zoom, area, gap, side)
        before = viewer.visible_center()
        canvas.show_layer("free")
        run = (viewer.visible_center() - before) * zoom
        along, aside = (run.x(), run.y()) if side in "lr" else (run.y(), run.x())
        wanted = max(0.0, margin - gap) * (-1 if side in "lt" else 1)
        assert abs(along - wanted) <= 4, (zoom, gap, side)
        assert abs(aside) <= 4, (zoom, gap, side)
        assert viewer.zoom == pytest.approx(zoom)


def test_the_canvas_scrolls_faster_the_nearer_to_its_border_and_not_elsewhere(canvas):
    size, pans, moved = canvas.viewer.viewport().size(), [], []
    scroll = EdgeScroll(canvas.viewer, pans.append, moved.append)
    width, height = size.width(), size.height()
    speeds = {0: 22, -50: 22, 14: 11, 26: 2, 27: 1, 28: 0, 300: 0}
    for at, speed in speeds.items():
        for point, run in (
            (QPoint(at, 300), QPoint(speed, 0)),
            (QPoint(width - 1 - at, 300), QPoint(-speed, 0)),
            (QPoint(300, at), QPoint(0, speed)),
            (QPoint(300, height - 1 - at), QPoint(0, -speed)),
            (QPoint(at, height - 1 - at), QPoint(speed, -speed)),
        ):
            scroll.follow(point)
            assert scroll.active is (speed > 0)
            scroll._step()
            assert (pans[-1], moved[-1]) == (run, point)
        scroll.follow(QPoint(300, 300))
        assert not scroll.active
    scroll.follow(QPoint(0, 0))
    scroll.stop()
    assert not scroll.active
