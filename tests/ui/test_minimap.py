"""The map in the corner: shown when something is out of sight, follows the view, a click goes there."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui


from painted import strokes
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSettings, QSize, Qt, QTimer
from PySide6.QtGui import QRegion
from PySide6.QtTest import QTest
from window_kit import show

from app.ui.canvas.far_view import FarView
from app.ui.canvas.frames import FrameItem
from app.ui.canvas.minimap import Minimap
from app.ui.canvas.viewer import LayerViewer
from app.ui.widgets import theme
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer, Source


@pytest.fixture
def window(empty_window):
    layers = [Layer("n0", "input", params={"dims": "64x64x3"})]
    for number in range(1, 120):
        place = (320 * (number % 20), 240 * (number // 20))
        layers.append(Layer(f"n{number}", "identity", place, (Source(f"n{number - 1}"),)))
    return show(empty_window, Graph(layers))


def test_shown_while_something_is_out_of_sight(window, qtbot):
    minimap, viewer = window.canvas.minimap, window.canvas.viewer
    viewer.zoom_by(1 / viewer.zoom)
    qtbot.waitUntil(minimap.isVisible)
    corner = viewer.rect().bottomRight() - minimap.geometry().bottomRight()
    assert 0 < corner.x() < 20
    assert 0 < corner.y() < 20
    viewer.frame_all()
    assert not minimap.isVisible()


def test_a_click_and_a_drag_go_there(window, qtbot):
    minimap, viewer = window.canvas.minimap, window.canvas.viewer
    viewer.zoom_by(1 / viewer.zoom)
    qtbot.waitUntil(minimap.isVisible)
    left, right = QPoint(20, 64), QPoint(180, 64)
    QTest.mousePress(minimap, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, left)
    before = viewer.visible_center()
    QTest.mouseMove(minimap, right)
    QTest.mouseRelease(minimap, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, right)
    assert viewer.visible_center().x() > before.x() + 3000
    here = viewer.visible_center()
    QTest.mouseMove(minimap, left)
    assert viewer.visible_center() == here, "no button is pressed"
    for button in (Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton):
        QTest.mousePress(minimap, button, Qt.KeyboardModifier.NoModifier, right)
        QTest.mouseMove(minimap, left)
        assert viewer.visible_center() == here, "only the left button drags"
        QTest.mouseRelease(minimap, button, Qt.KeyboardModifier.NoModifier, left)
    with qtbot.assertNotEmitted(viewer.quick_add_requested):
        QTest.mouseDClick(minimap, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, right)
    assert viewer.visible_center() == here
    assert window.context.selection == ()
    assert window.context.document.history.is_clean


def test_the_rectangle_is_around_what_is_seen(window, qtbot):
    """A click into its middle moves nothing, and it is as wide as the part of the network that is seen."""
    minimap, viewer = window.canvas.minimap, window.canvas.viewer
    viewer.zoom_by(0.8 / viewer.zoom)
    viewer.go(QPointF(2200, 500))
    qtbot.waitUntil(minimap.isVisible)
    minimap.redraw()
    image, color = minimap.grab().toImage(), theme.color("link_active")
    marked = QRegion()
    for x in range(image.width()):
        for y in range(image.height()):
            if sum(abs(a - b) for a, b in zip(image.pixelColor(x, y).getRgb(), color.getRgb(), strict=True)) < 90:
                marked += QRect(x, y, 1, 1)
    around = marked.boundingRect()
    before, seen = viewer.visible_center(), viewer.seen()
    QTest.mouseClick(minimap, Qt.MouseButton.LeftButton, pos=around.center())
    step = viewer.supply.extent().width() / (minimap.width() - 12)  # of the canvas for a pixel
    assert (viewer.visible_center() - before).manhattanLength() < 4 * step
    assert around.width() == pytest.approx(seen.width() / step, abs=4)
    QTest.mouseMove(minimap, QPoint(20, 60))  # without a button
    assert (viewer.visible_center() - before).manhattanLength() < 4 * step


def test_hidden_where_it_would_cover_much(window, qtbot):
    minimap, viewer = window.canvas.minimap, window.canvas.viewer
    viewer.zoom_by(1 / viewer.zoom)
    qtbot.waitUntil(minimap.isVisible)
    for width, height, seen in ((500, 400, False), (560, 300, False), (560, 400, True)):
        viewer.resize(width, height)
        viewer.pan(QPoint(1, 0))
        assert minimap.isVisible() is seen


def test_it_stays_in_the_corner_when_only_the_room_of_the_view_changes(window, qtbot):
    """At most a fifth of the width and a quarter of the height of the canvas, 12 pixels from its corner."""
    minimap, viewer = window.canvas.minimap, window.canvas.viewer
    viewer.zoom_by(1 / viewer.zoom)
    qtbot.waitUntil(minimap.isVisible)
    for bar in (viewer.horizontalScrollBar(), viewer.verticalScrollBar()):
        minimap.move(0, 0)
        with qtbot.waitSignal(bar.rangeChanged):
            bar.setRange(bar.minimum() - 500, bar.maximum() + 500)
        around = viewer.rect()
        size = QSize(min(around.width() // 5, 200), min(around.height() // 4, 128))
        assert minimap.size() == size
        assert minimap.pos() == around.bottomRight() - QPoint(size.width() + 12, size.height() + 12)


def test_the_network_is_painted_again_for_another_size(window, qtbot):
    minimap, viewer = window.canvas.minimap, window.canvas.viewer
    viewer.zoom_by(1 / viewer.zoom)
    qtbot.waitUntil(minimap.isVisible)
    before = minimap.size()
    viewer.resize(600, 400)
    viewer.pan(QPoint(1, 0))
    assert minimap.size() == QSize(120, 100) != before
    timer = minimap.findChild(QTimer)
    qtbot.waitUntil(lambda: not timer.isActive())
    image = minimap.grab().toImage()
    minimap.redraw()
    assert minimap.grab().toImage() == image


def test_what_is_collected_in_parts_is_completed(qtbot):
    """A large network is collected over several turns of the event loop; the minimap asks until all of it is there."""
    viewer, answers = LayerViewer(), [False, False, True]
    qtbot.addWidget(viewer)
    minimap = Minimap(viewer, FarView(), lambda: answers.pop(0))
    minimap.redraw()
    assert answers == [False, True]
    qtbot.waitUntil(lambda: not answers)
    assert not minimap.findChild(QTimer).isActive()


def test_a_frame_far_from_all_layers_counts(empty_window, qtbot):
    window = show(empty_window, Graph([Layer("n", "input")], frames=(Frame("f", "Far", rect=(9000, 0, 300, 200)),)))
    viewer = window.canvas.viewer
    viewer.zoom_by(1 / viewer.zoom)
    viewer.go(QPointF(0, 0))
    qtbot.waitUntil(window.canvas.minimap.isVisible)


@pytest.mark.parametrize("collapsed", [False, True])
def test_what_is_seen_of_a_frame_counts(qtbot, collapsed):
    """Of a collapsed frame that is only its box, however large it is open."""
    viewer = LayerViewer()
    qtbot.addWidget(viewer)
    frames = [
        FrameItem(Frame("f", "One", rect=(-6000, 200, 4000, 9000), collapsed=collapsed)),
        FrameItem(Frame("g", "Two", rect=(1000, -800, 5000, 600), collapsed=collapsed)),
    ]
    minimap = Minimap(viewer, FarView(frames=frames), lambda: True)
    for _ in range(2):  # its size follows that of the view
        minimap.redraw()
    seen = frames[0].seen.united(frames[1].seen)
    wide, high = minimap.width() - 12, minimap.height() - 12
    shown = minimap._map.mapRect(seen)
    assert QRectF(minimap.rect()).contains(shown)
    assert shown.width() == pytest.approx(wide) or shown.height() == pytest.approx(high)
    assert shown.center().toTuple() == pytest.approx((minimap.width() / 2, minimap.height() / 2))
    small = FrameItem(
        Frame("s", "Small", rect=(40, -90, 320, 160), collapsed=collapsed)
    )  # a quarter of its size at most
    minimap = Minimap(viewer, FarView(frames=[small]), lambda: True)
    for _ in range(2):
        minimap.redraw()
    shown = minimap._map.mapRect(small.seen)
    assert shown.size().toTuple() == pytest.approx((small.seen.width() / 4, small.seen.height() / 4))
    assert shown.center().toTuple() == pytest.approx((minimap.width() / 2, minimap.height() / 2))


def test_follows_edits(window, qtbot):
    minimap, viewer, document = window.canvas.minimap, window.canvas.viewer, window.context.document
    viewer.frame_all()
    minimap.redraw()
    assert not minimap.isVisible()
    document.do(commands.move_layers(document.graph, {"n7": (90_000, 0)}))
    qtbot.waitUntil(minimap.isVisible)


def test_switched_off_and_remembered(window, qtbot):
    minimap, viewer = window.canvas.minimap, window.canvas.viewer
    viewer.zoom_by(1 / viewer.zoom)
    qtbot.waitUntil(minimap.isVisible)
    window.actions_["view.minimap"].trigger()
    assert not minimap.isVisible()
    viewer.pan(QPoint(50, 0))
    assert not minimap.isVisible()
    window.settings.sync()
    assert QSettings(window.settings.fileName(), QSettings.Format.IniFormat).value("minimap", type=bool) is False
    window.actions_["view.minimap"].trigger()
    assert minimap.isVisible()


def test_moving_the_view_does_not_paint_the_network_again(window, qtbot):
    minimap, viewer = window.canvas.minimap, window.canvas.viewer
    viewer.zoom_by(1 / viewer.zoom)
    qtbot.waitUntil(minimap.isVisible)
    redraw = minimap.findChild(QTimer)
    qtbot.waitUntil(lambda: not redraw.isActive())
    for _ in range(20):
        viewer.pan(QPoint(-5, 0))
        minimap.repaint()
    assert not redraw.isActive()


def test_layers_smaller_than_a_pixel_are_painted(empty_window, qtbot):
    chain = [Layer("n0", "input", params={"dims": "64x64x3"})]
    chain += [Layer(f"n{n}", "identity", (320 * n, 3 * n), (Source(f"n{n - 1}"),)) for n in range(1, 100)]
    canvas = show(empty_window, Graph(chain)).canvas
    qtbot.waitUntil(canvas.minimap.isVisible)
    canvas.minimap.redraw()
    image = canvas.minimap.grab().toImage()
    ground = theme.color("surface")
    inner = range(10, image.width() - 10)
    empty = [x for x in inner if all(image.pixelColor(x, y) == ground for y in range(10, image.height() - 10))]
    assert len(empty) < 0.1 * len(inner)


def test_the_rectangle_is_cut_at_the_edge_of_the_map_and_nowhere_else(window, qtbot):
    """Also where it is outside of the network, and where nothing of the network is seen."""
    minimap, viewer = window.canvas.minimap, window.canvas.viewer
    viewer.zoom_by(0.8 / viewer.zoom)
    qtbot.waitUntil(minimap.isVisible)
    minimap.redraw()
    extent = viewer.supply.extent()
    scale = min((minimap.width() - 12) / extent.width(), (minimap.height() - 12) / extent.height(), 0.25)
    middle = QPointF(minimap.width() / 2, minimap.height() / 2)
    around = QRectF(1, 1, minimap.width() - 2, minimap.height() - 2)
    shown = 0
    for place in (
        extent.center(),
        extent.topLeft(),
        extent.bottomRight(),
        QPointF(extent.left(), extent.center().y()),
        QPointF(extent.center().x(), extent.bottom() + 900),
        QPointF(extent.center().x(), extent.top() - 900),
    ):
        viewer.go(place)
        seen = viewer.seen()
        corner = middle + (seen.topLeft() - extent.center()) * scale
        expected = QRectF(corner, seen.size() * scale).intersected(around)
        found = [each for each in strokes(minimap) if each.kind in ("rect", "path", "polyline", "polygon")]
        frame, marked = found[-2:]
        assert frame.pen.split(" ")[0] == "outline", [str(each) for each in found]
        assert "link_active" in marked.pen
        assert frame.area == QRectF(minimap.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        for edge in ("left", "top", "right", "bottom"):
            assert getattr(marked.area, edge)() == pytest.approx(getattr(expected, edge)(), abs=0.2), (place, edge)
        shown += not expected.isEmpty()
    assert shown == 6
