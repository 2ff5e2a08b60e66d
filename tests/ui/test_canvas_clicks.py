"""What clicks and rubber bands select, from any selection of layers, links and frames, as recorded text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from recorded_state import compare

from app.ui.canvas.canvas import Canvas
from designer.graph import frames
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer, Source
from designer.graph.routes import set_route

NONE, SHIFT, CTRL = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.ControlModifier,
)
RIGHT = Qt.MouseButton.RightButton
KEYS = {"": NONE, "Shift ": SHIFT, "Ctrl ": CTRL}
# layers, links and frames that are selected before
BEFORE = {
    "nothing": ((), (), ()),
    "a": (("a",), (), ()),
    "b and c": (("b", "c"), (), ()),
    "a link": ((), ("c",), ()),
    "a frame": ((), (), ("f",)),
    "b, a link and both frames": (("b",), ("c",), ("f", "g")),
    "what is hidden": (("h",), (), ()),
}
# from and to, canvas units
BANDS = {
    "b": ((290, -90), (460, 40)),
    "nothing": ((0, 420), (100, 440)),
    "b, c": ((800, 150), (400, -60)),
    "a dot": ((0, 420), (2, 421)),
    "a dot next to b": ((400, -3), (400, 0)),
}


def network() -> Graph:
    layers = [
        Layer("a", "input", (0, 0), params={"dims": "16x16x3"}),
        Layer("b", "identity", (320, 0), (Source("a"),)),
        Layer("c", "identity", (640, 0), (Source("b"),)),
        Layer("h", "identity", (320, 320), (Source("a"),)),
    ]
    boxes = (Frame("f", "Open", rect=(600, 200, 272, 160)), Frame("g", "Closed", rect=(288, 272, 272, 160)))
    graph = Graph(layers, frames=boxes)
    graph.apply(set_route(graph, "c", 0, [(560, 128)]))
    return graph


@pytest.fixture
def canvas(qtbot: QtBot) -> Canvas:
    made = kit.open_canvas(qtbot, network())
    document = made.context.document
    document.do(lambda g: frames.collapse(g, [], ["g"], made.projection.members))
    document.history.mark_clean()
    made.viewer.zoom_by(1 / made.viewer.zoom)
    made.viewer.go(QPointF(400, 200))
    return made


def select(canvas: Canvas, layers: tuple[str, ...], links: tuple[str, ...], boxes: tuple[str, ...]) -> None:
    canvas.viewer.select_items([])
    canvas.context.select(())
    canvas.context.select(layers)
    for item in (*(canvas.projection.link(name, 0) for name in links), *map(canvas.projection.frame, boxes)):
        item.setSelected(True)


def selected(canvas: Canvas) -> str:
    viewer = canvas.viewer
    assert set(viewer.selected_names()) == {n for n in canvas.context.selection if not canvas.projection.hides(n)}
    links = [f"link to {link.key[0]}" for link in viewer.selected_links()]
    boxes = sorted(f"frame {item.frame.title}" for item in viewer.selected_frames())
    return " ".join((*canvas.context.selection, *links, *boxes)) or "nothing"


def targets(canvas: Canvas) -> dict[str, QPoint]:
    projection = canvas.projection
    link = projection.link("c", 0)
    found = {name: kit.node(canvas, name) for name in "abc"}
    found["link"] = kit.at(canvas, link.path().pointAtPercent(0.2))
    found["point"] = kit.at(canvas, link.points[0])
    for key in "fg":
        item = projection.frame(key)
        found[f"frame {item.frame.title}"] = kit.at(canvas, item.seen.topLeft() + QPointF(60, 10))
    found["edge of frame Open"] = kit.at(canvas, QPointF(872, 320))
    found["input of b"], found["output of c"] = kit.port(canvas, "b"), kit.output(canvas, "c")
    found["nothing"] = kit.at(canvas, QPointF(0, 420))
    return found


def actions(canvas: Canvas) -> Iterator[tuple[str, Callable[[], object]]]:
    view = canvas.viewer.viewport()
    for name, point in targets(canvas).items():
        for key, keys in KEYS.items():
            yield f"{key}click on {name}", lambda p=point, k=keys: QTest.mouseClick(view, kit.LEFT, k, p)
        yield f"right click on {name}", lambda p=point: QTest.mouseClick(view, RIGHT, NONE, p)
    for over, (start, end) in BANDS.items():
        for key, keys in KEYS.items():
            for cancelled in (False, True):

                def band(start=start, end=end, keys=keys, cancelled=cancelled) -> None:
                    first, last = (kit.at(canvas, QPointF(*place)) for place in (start, end))
                    QTest.mousePress(view, kit.LEFT, keys, first)
                    QTest.mouseMove(view, (first + last) / 2)
                    QTest.mouseMove(view, last)
                    if cancelled:
                        QTest.keyClick(canvas.viewer, Qt.Key.Key_Escape)
                    QTest.mouseRelease(view, kit.LEFT, keys, last)

                yield f"{key}rubber band over {over}{', cancelled' * cancelled}", band


def test_what_clicks_and_rubber_bands_select(canvas: Canvas) -> None:
    document, found = canvas.context.document, []
    told: list[str] = []
    canvas.selection_state_changed.connect(lambda: told.append(selected(canvas)))
    for name, before in BEFORE.items():
        found += ["", f"# {name} is selected"]
        for what, act in actions(canvas):
            select(canvas, *before)
            was = selected(canvas)
            told.clear()
            act()
            now = selected(canvas)
            assert not canvas.viewer.busy
            assert document.history.is_clean, what
            assert told[-1:] == [now] or now == was, f"{what} is not told"
            found.append(f"{what}: {now if now != was else 'as before'}")
    compare("canvas_clicks", found)
