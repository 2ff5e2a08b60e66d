"""Where a view of a network begins: at the height of its left end, or of its leftmost layer if that is too high for the view."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QSizeF

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
