"""The map in the corner: shown when something is out of sight, follows the view, a click goes there."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui


from PySide6.QtCore import QPoint, QSettings, Qt, QTimer
from PySide6.QtTest import QTest
from window_kit import show

from app.ui.widgets import theme
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source


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
    assert window.context.selection == ()
    assert window.context.document.history.is_clean


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
