"""Automatic layout: the sizes of the nodes go in, one edit comes out, and frames stay around their layers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import log

from app.ui.canvas.projection import Projection
from app.ui.canvas.spots import Spot
from app.ui.document.document import Document
from app.ui.widgets.texts import tr
from designer.graph import commands, routes
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.layout import Box, arrange
from designer.graph.model import GRID, ROUTES, Frame

FRAME_TOP = 3 * GRID  # room for the title of a frame
FRAME_EDGE = 2 * GRID
MAX_LEVEL = 10


def arranged(document: Document, projection: Projection, names: Collection[str] | None = None) -> Edit:
    """Lay out `names` (default: everything). Frames that held layers are put around them again."""
    graph = document.graph
    levels = levels_of(document)
    chosen = list(graph.layers) if names is None else list(names)
    places = arrange(graph, {n: box_of(projection.spot(n), levels[n]) for n in chosen}, chosen)
    edit = _straightened(graph, commands.move_layers(graph, places), chosen)
    frames = {}
    for frame in graph.frames.values():
        inside = members(frame, projection)
        if inside and any(places.get(n, graph[n].position) != graph[n].position for n in inside):
            rect = around({n: places.get(n, graph[n].position) for n in inside}, projection)
            frames[frame.id] = (frame, replace(frame, rect=rect))
    return replace(edit, title=tr("Lay out"), frames=frames) if edit.layers else edit


def _straightened(graph: Graph, edit: Edit, names: Collection[str]) -> Edit:
    """The edit without the points of links among the layers that were laid out: they led around what stood there."""
    layers = dict(edit.layers)
    for name in names:
        if ROUTES in graph[name].attributes:
            before, after = layers.get(name, (graph[name], graph[name]))
            layers[name] = (before, routes.cleared(after, names) if after is not None else None)
    return replace(edit, layers={n: pair for n, pair in layers.items() if pair[0] != pair[1]})


def levels_of(document: Document) -> dict[str, int]:
    """How often each layer's picture was halved. Tensors without height and width are where their producers are."""
    graph, states = document.graph, document.inference.states
    sizes: dict[str, int] = {}
    order, cyclic = graph.order()
    for name in (*order, *cyclic):
        outputs = states[name].outputs if name in states else None
        shape = outputs[0].shape if outputs else ()
        sides = [d for d in shape[2:] if isinstance(d, int) and d > 0]
        if len(sides) == 2:
            sizes[name] = sides[0] * sides[1]
        else:
            sizes[name] = min((sizes[p] for p in graph[name].producers() if p in sizes), default=0)
    largest = max(sizes.values(), default=1)
    return {n: min(MAX_LEVEL, round(log(largest / size, 4))) if size else 0 for n, size in sizes.items()}


def box_of(spot: Spot, level: int = 0) -> Box:
    """What the layout needs to know of a node; its height includes the shape under it."""
    look, place = spot.seen
    outputs = {port.name: y for port, (_, y) in zip(look.outputs, place.outputs, strict=True)}
    if look.outputs:
        outputs[""] = place.outputs[0][1]
    return Box(
        place.box.united(place.tab).width(),
        max(place.box.height(), place.bounds.bottom()),
        tuple(y for _, y in place.inputs),
        outputs,
        level,
    )


def members(frame: Frame, projection: Projection) -> list[str]:
    """The layers that a frame holds: whose middle is inside, or that it stands for while it is collapsed."""
    return projection.members(frame.id)[0]


def around(places: Mapping[str, tuple[int, int]], projection: Projection) -> tuple[int, int, int, int]:
    """The rect of a frame that holds layers which stand at `places`."""
    boxes = {name: box_of(projection.spot(name)) for name in places}
    left = min(x for x, _ in places.values()) - FRAME_EDGE
    top = min(y for _, y in places.values()) - FRAME_TOP
    right = max(x + boxes[n].width for n, (x, _) in places.items()) + FRAME_EDGE
    bottom = max(y + boxes[n].height for n, (_, y) in places.items()) + GRID
    return (left, top, _up(right - left), _up(bottom - top))


def _up(length: float) -> int:
    return -int(-length // GRID) * GRID
