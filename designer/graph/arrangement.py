"""Edits that change positions: automatic layout, alignment, distribution and making room."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum

from designer.graph import routes
from designer.graph.commands import move_layers
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.layout import LayerBox, arrange
from designer.graph.model import GRID, ROUTES, Frame, Layer
from designer.texts import mark, tr, tr_data

FRAME_TOP = 3 * GRID  # space above the layers for the title of a frame
FRAME_EDGE = 2 * GRID
NODE_WIDTH = 15 * GRID  # assumed width of a layer whose box was not measured
_NODE_HEIGHT, _FIRST_PORT, _PORT_HEIGHT, _CHARACTER = 120.0, 48.0, 20.0, 9.0  # of such a box; generous
GAP = 3 * GRID  # between a layer and its producers
Position = tuple[int, int]  # canvas units, on the grid
Rect = tuple[int, int, int, int]  # x, y, width, height


def on_grid(x: float, y: float) -> Position:
    """The nearest grid point."""
    return (round(x / GRID) * GRID, round(y / GRID) * GRID)


def assumed_box(layer: Layer, level: int = 0) -> LayerBox:
    """A generous box of a layer that was not measured; `level` as in `LayerBox`."""
    entries = tuple(_FIRST_PORT + _PORT_HEIGHT * index for index in range(len(layer.inputs)))
    height = max(_NODE_HEIGHT, _FIRST_PORT + _PORT_HEIGHT * len(entries))
    return LayerBox(max(NODE_WIDTH, _CHARACTER * len(layer.name)), height, entries, {"": _FIRST_PORT}, level)


def lay_out(
    graph: Graph, boxes: Mapping[str, LayerBox], names: Collection[str], held: Mapping[str, Collection[str]]
) -> Edit:
    """Lay out the layers `names` automatically and refit each frame of `held` ({frame: layers}) around its layers and frames.

    `boxes` must contain the layers of `names` and those of `held`.
    """
    places = arrange(graph, boxes, names)
    edit = _straightened(graph, move_layers(graph, places), names)
    frames: dict[str, tuple[Frame | None, Frame | None]] = {}
    fitted: dict[str, Rect] = {}
    for key in sorted(held, key=lambda key: _size(graph.frames[key].rect)):  # inner frames first
        frame, inside = graph.frames[key], held[key]
        fitted[key] = frame.rect
        if any(places.get(n, graph[n].position) != graph[n].position for n in inside):
            inner = [rect for other, rect in fitted.items() if other != key and _holds(frame, graph.frames[other])]
            fitted[key] = _around_frames(around({n: places.get(n, graph[n].position) for n in inside}, boxes), inner)
            frames[key] = (frame, replace(frame, rect=fitted[key]))
    return replace(edit, title=tr("Lay out"), frames=frames) if edit.layers else edit


def _straightened(graph: Graph, edit: Edit, names: Collection[str]) -> Edit:
    """Remove the waypoints of links between the layers laid out: they avoided layers that are elsewhere now."""
    layers = dict(edit.layers)
    for name in names:
        if ROUTES in graph[name].attributes:
            before, after = layers.get(name, (graph[name], graph[name]))
            layers[name] = (before, routes.cleared(after, names) if after is not None else None)
    return replace(edit, layers={n: pair for n, pair in layers.items() if pair[0] != pair[1]})


def around(positions: Mapping[str, Position], boxes: Mapping[str, LayerBox]) -> Rect:
    """The rect of a frame around layers at `positions`."""
    left = min(x for x, _ in positions.values()) - FRAME_EDGE
    top = min(y for _, y in positions.values()) - FRAME_TOP
    right = max(x + boxes[n].width for n, (x, _) in positions.items()) + FRAME_EDGE
    bottom = max(y + boxes[n].height for n, (_, y) in positions.items()) + GRID
    return (left, top, _up(right - left), _up(bottom - top))


def _around_frames(rect: Rect, inner: Sequence[Rect]) -> Rect:
    """The rect enlarged around frames inside it, whose titles stay clear of its own."""
    left = min([rect[0], *(x - FRAME_EDGE for x, *_ in inner)])
    top = min([rect[1], *(y - FRAME_TOP for _, y, *_ in inner)])
    right = max([rect[0] + rect[2], *(x + width + FRAME_EDGE for x, _, width, _ in inner)])
    bottom = max([rect[1] + rect[3], *(y + height + GRID for _, y, _, height in inner)])
    return (left, top, right - left, bottom - top)


def _holds(outer: Frame, inner: Frame) -> bool:
    x, y, width, height = outer.rect
    left, top, wide, high = inner.rect
    return x <= left and y <= top and left + wide <= x + width and top + high <= y + height


def _size(rect: Rect) -> int:
    return rect[2] * rect[3]


def _up(length: float) -> int:
    return -int(-length // GRID) * GRID


class Side(Enum):
    """A side or center line to align at, as (axis, fraction of the layer's size)."""

    LEFT = (0, 0.0)
    CENTER = (0, 0.5)
    RIGHT = (0, 1.0)
    TOP = (1, 0.0)
    MIDDLE = (1, 0.5)
    BOTTOM = (1, 1.0)


_ALIGN_TITLES = {
    Side.LEFT: mark("Align left"),
    Side.CENTER: mark("Align center"),
    Side.RIGHT: mark("Align right"),
    Side.TOP: mark("Align top"),
    Side.MIDDLE: mark("Align middle"),
    Side.BOTTOM: mark("Align bottom"),
}
Sizes = Mapping[str, tuple[float, float]]  # width and height of each layer's box, in canvas units


def align(graph: Graph, sizes: Sizes, names: Sequence[str], side: Side) -> Edit:
    """Align layers at the outermost of their sides, or at the center of their bounding box."""
    axis, share = side.value
    starts = {n: float(graph[n].position[axis]) for n in names}
    low = min(starts.values())
    high = max(starts[n] + sizes[n][axis] for n in names)
    line = low + share * (high - low)
    places = {n: _moved(graph[n].position, axis, line - share * sizes[n][axis]) for n in names}
    return replace(move_layers(graph, places), title=tr_data(_ALIGN_TITLES[side]))


def distribute(graph: Graph, sizes: Sizes, names: Sequence[str], *, vertical: bool) -> Edit:
    """Space layers equally between the two outermost ones, which keep their positions."""
    axis = int(vertical)
    order = sorted(names, key=lambda n: (graph[n].position[axis], n))
    first, last = graph[order[0]].position[axis], graph[order[-1]].position[axis] + sizes[order[-1]][axis]
    gap = (last - first - sum(sizes[n][axis] for n in order)) / max(1, len(order) - 1)
    places: dict[str, Position] = {}
    start = float(first)
    for name in order:
        places[name] = _moved(graph[name].position, axis, start)
        start += sizes[name][axis] + gap
    del places[order[-1]]
    title = tr("Distribute vertically") if vertical else tr("Distribute horizontally")
    return replace(move_layers(graph, places), title=title)


def _moved(position: Position, axis: int, to: float) -> Position:
    place = round(to / GRID) * GRID
    return (place, position[1]) if axis == 0 else (position[0], place)


def make_room(graph: Graph, names: Collection[str], run: float, held: Mapping[str, Collection[str]]) -> Edit:
    """Move layers right by at least `run`. A frame whose layers all move follows; other frames grow."""
    step = _up(run)
    edit = move_layers(graph, {n: (graph[n].position[0] + step, graph[n].position[1]) for n in names})
    frames: dict[str, tuple[Frame | None, Frame | None]] = {}
    for key, inside in held.items():
        moving = sum(1 for n in inside if n in names)
        if moving:
            x, y, width, height = graph.frames[key].rect
            whole = moving == len(inside)
            rect = (x + step, y, width, height) if whole else (x, y, width + step, height)
            frames[key] = (graph.frames[key], replace(graph.frames[key], rect=rect))
    return replace(edit, title=tr("Make room"), frames=frames)
