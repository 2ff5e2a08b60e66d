"""Where a view of a network begins: at the height of its left end, or of its leftmost layer if that is too high for the view."""

from __future__ import annotations

from itertools import product

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QRectF, QSizeF

from app.ui.canvas.view import MARGIN, ZOOM_MIN
from designer.graph.graph import Graph
from designer.graph.model import Layer


@pytest.mark.parametrize(
    "places",
    [
        {"a": (0, 2000), "b": (160, 0), "c": (160, 4000)},
        {"a": (0, 0), "b": (160, 2000), "c": (160, 4000)},
        {"a": (160, 0), "b": (160, 2000), "c": (0, 4000)},
        {"a": (0, 2500), "b": (0, 1500), "c": (160, 4000), "d": (16, 0)},
        {"a": (0, 100), "b": (160, 200), "c": (5000, 4000)},
        {"a": (0, 100), "b": (160, 800), "c": (5000, -4000)},
        {"a": (0, 100), "b": (160, 200), "c": (500, 4000)},
    ],
)
def test_a_view_begins_where_the_network_does(qtbot, places: dict[str, tuple[int, int]]) -> None:
    graph = Graph([Layer(name, "input", place, params={"dims": "8x8x3"}) for name, place in places.items()])
    canvas = kit.open_canvas(qtbot, graph)
    entries = {name: canvas.projection.entry(name) for name in places}
    for width, height in ((800.0, 600.0), (300.0, 6000.0), (300.0, 400.0), (9000.0, 900.0)):
        left = min(entry.bounds()[0] for entry in entries.values())
        near = {name: entry for name, entry in entries.items() if entry.bounds()[0] <= left + width}
        top, bottom = min(e.bounds()[1] for e in near.values()), max(e.bounds()[3] for e in near.values())
        if bottom - top <= height:
            wanted = (top + bottom) / 2
        else:
            first = min(near, key=lambda name: places[name])
            middle = near[first].box().center().y()
            wanted = min(max(middle, top + height / 2), bottom - height / 2)
        assert canvas.projection.start(QSizeF(width, height)) == pytest.approx(wanted)


def test_nothing_begins_nowhere(qtbot) -> None:
    assert kit.open_canvas(qtbot, Graph([])).projection.start(QSizeF(800, 600)) is None


@pytest.mark.parametrize("least", [ZOOM_MIN, 0.25, 0.5])
@pytest.mark.parametrize("start", [None, 700.0])
def test_an_area_is_shown_whole_where_it_can_be_read_and_else_from_its_left_end(
    qtbot, least: float, start: float | None
) -> None:
    """In the middle, at 100% at most. What is too small to be read at that scale is shown at the least one: from the left if it is
    too wide, and at the height where it starts, or else at its upper edge if it is too high."""
    viewer = kit.open_canvas(qtbot, Graph([]), (800, 500)).viewer
    room = viewer.viewport().size()
    nearly = [(room.width() - 4) / (share * least) - 2 * MARGIN for share in (0.94, 0.97)]  # of the least scale
    for left, top, width, height in product(
        (-300.0, 5000.0), (-900.0,), (50, 900, 2900, 3300, 90000, *nearly), (40, 700, 1800, 2100, 60000)
    ):
        viewer.frame_rect(QRectF(left, top, width, height), least=least, start=start)
        around = QRectF(left, top, width, height).adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)
        fitting = min(
            (room.width() - 4) / around.width(), (room.height() - 4) / around.height()
        )  # Qt leaves two pixels
        zoom = min(1.0, fitting) if fitting >= max(0.95 * least, ZOOM_MIN) else least
        assert viewer.zoom == pytest.approx(zoom, rel=0.01), (width, height)
        seen, step = viewer.seen(), 2 / viewer.zoom
        wide, high = around.width() * viewer.zoom > room.width(), around.height() * viewer.zoom > room.height()
        if wide:
            assert seen.left() == pytest.approx(around.left(), abs=step)
        else:
            assert seen.center().x() == pytest.approx(around.center().x(), abs=step)
        if start is not None and (wide or high):
            assert seen.center().y() == pytest.approx(start, abs=step)
        elif high:
            assert seen.top() == pytest.approx(around.top(), abs=step)
        else:
            assert seen.center().y() == pytest.approx(around.center().y(), abs=step)
    viewer.frame_rect(QRectF())
    assert viewer.zoom == 1.0
    assert viewer.visible_center().toTuple() == pytest.approx((0, 0), abs=2)
