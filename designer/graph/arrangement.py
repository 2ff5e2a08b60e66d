"""Edits of positions: laying out, aligning, distributing and making room."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum

from designer.graph import routes
from designer.graph.commands import move_layers
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.layout import Box, arrange
from designer.graph.model import GRID, ROUTES, Frame
from designer.texts import tr

FRAME_TOP = 3 * GRID  # room for the title of a frame
FRAME_EDGE = 2 * GRID
NODE_WIDTH = 15 * GRID  # about that of a layer's box, where it was not measured
GAP = 3 * GRID  # between a layer and what it reads
Position = tuple[int, int]  # canvas units, on the grid


def on_grid(x: float, y: float) -> Position:
    """The nearest grid point."""
    return (round(x / GRID) * GRID, round(y / GRID) * GRID)


def lay_out(
    graph: Graph, boxes: Mapping[str, Box], names: Collection[str], held: Mapping[str, Collection[str]]
) -> Edit:
    """Lay out `names`. Frames are fitted again around the layers that they hold: {frame: layers}.

    `boxes` has the sizes of the layers of `names` and of those that frames hold.
    """
    places = arrange(graph, boxes, names)
    edit = _straightened(graph, move_layers(graph, places), names)
    frames: dict[str, tuple[Frame | None, Frame | None]] = {}
    for key, inside in held.items():
        if any(places.get(n, graph[n].position) != graph[n].position for n in inside):
            rect = around({n: places.get(n, graph[n].position) for n in inside}, boxes)
            frames[key] = (graph.frames[key], replace(graph.frames[key], rect=rect))
    return replace(edit, title="Lay out", frames=frames) if edit.layers else edit


def _straightened(graph: Graph, edit: Edit, names: Collection[str]) -> Edit:
    """The edit without the points of links among the layers that were laid out: they led around what was there."""
    layers = dict(edit.layers)
    for name in names:
        if ROUTES in graph[name].attributes:
            before, after = layers.get(name, (graph[name], graph[name]))
            layers[name] = (before, routes.cleared(after, names) if after is not None else None)
    return replace(edit, layers={n: pair for n, pair in layers.items() if pair[0] != pair[1]})


def around(places: Mapping[str, Position], boxes: Mapping[str, Box]) -> tuple[int, int, int, int]:
    """The rect of a frame that holds layers at `places`."""
    left = min(x for x, _ in places.values()) - FRAME_EDGE
    top = min(y for _, y in places.values()) - FRAME_TOP
    right = max(x + boxes[n].width for n, (x, _) in places.items()) + FRAME_EDGE
    bottom = max(y + boxes[n].height for n, (_, y) in places.items()) + GRID
    return (left, top, _up(right - left), _up(bottom - top))


def _up(length: float) -> int:
    return -int(-length // GRID) * GRID


class Side(Enum):
    """What layers are aligned at, as (axis, share of their size)."""

    LEFT = (0, 0.0)
    CENTRE = (0, 0.5)
    RIGHT = (0, 1.0)
    TOP = (1, 0.0)
    MIDDLE = (1, 0.5)
    BOTTOM = (1, 1.0)


Sizes = Mapping[str, tuple[float, float]]  # width and height of the boxes of layers


def align(graph: Graph, sizes: Sizes, names: Sequence[str], side: Side) -> Edit:
    """Put one side of layers on a line: the outermost side of them, or the middle between the outermost."""
    axis, share = side.value
    starts = {n: float(graph[n].position[axis]) for n in names}
    low = min(starts.values())
    high = max(starts[n] + sizes[n][axis] for n in names)
    line = low + share * (high - low)
    places = {n: _moved(graph[n].position, axis, line - share * sizes[n][axis]) for n in names}
    return replace(move_layers(graph, places), title=f"Align {side.name.lower()}")


def distribute(graph: Graph, sizes: Sizes, names: Sequence[str], *, vertical: bool) -> Edit:
    """Space layers equally between the two outermost ones, which stay."""
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
    return replace(move_layers(graph, places), title=f"Distribute {'vertically' if vertical else 'horizontally'}")


def _moved(position: Position, axis: int, to: float) -> Position:
    place = round(to / GRID) * GRID
    return (place, position[1]) if axis == 0 else (position[0], place)


def make_room(graph: Graph, names: Collection[str], run: float, held: Mapping[str, Collection[str]]) -> Edit:
    """Move layers at least `run` to the right. Frames whose layers all move follow; others become wider."""
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
