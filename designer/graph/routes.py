"""Waypoints of links, set by the user. They affect only how links are drawn.

They are stored at the consumer, in an attribute of our namespace: `index/source/x,y/x,y//index/source/...`; names contain
neither commas nor slashes. A route is valid as long as the input reads the same source; `rewired` makes it follow its link.
In files written elsewhere it follows its source. Text that is not a route is preserved and ignored.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import ROUTES, Layer, Source
from designer.texts import tr

Point = tuple[int, int]  # canvas units
Points = tuple[Point, ...]
Inputs = tuple[Source | None, ...]
MOST = 64  # waypoints of one link
_POINT = re.compile(r"(-?\d{1,7}),(-?\d{1,7})\Z")


def routes_of(layer: Layer) -> dict[int, Points]:
    """The waypoints of the links into a layer by input index, for links that have any."""
    text = layer.attributes.get(ROUTES)
    if not text:
        return {}
    found: dict[int, Points] = {}
    for index, source, points in _entries(text):
        at = _place(layer, index, source, found)
        if at is not None:
            found[at] = points
    return found


def points_into(graph: Graph, consumer: str, index: int) -> Points:
    """The waypoints of one link; empty if it does not exist."""
    layer = graph.get(consumer)
    return routes_of(layer).get(index, ()) if layer is not None and ROUTES in layer.attributes else ()


def _place(layer: Layer, index: int, source: str, taken: Mapping[int, Points]) -> int | None:
    """The input that reads `source`: `index` if it still does, otherwise the first."""
    reads = [str(s) if s is not None else "" for s in layer.inputs]
    if index < len(reads) and reads[index] == source:
        return index
    return next((i for i, s in enumerate(reads) if s == source and i not in taken), None)


def _entries(text: str) -> Iterable[tuple[int, str, Points]]:
    for entry in text.split("//"):
        index, _, rest = entry.partition("/")
        source, *points = rest.split("/")
        places = [_POINT.match(point) for point in points]
        if index.isascii() and index.isdigit() and len(index) < 5 and places and len(places) <= MOST and all(places):
            yield int(index), source, tuple((int(p[1]), int(p[2])) for p in places if p is not None)


def with_routes(layer: Layer, routes: Mapping[int, Points]) -> Layer:
    """A copy of the layer with these waypoints of its links."""
    entries = []
    for index, points in sorted(routes.items()):
        source = layer.inputs[index] if index < len(layer.inputs) else None
        if source is not None and points:
            places = "/".join(f"{x},{y}" for x, y in points)
            entries.append(f"{index}/{source}/{places}")
    rest = {name: text for name, text in layer.attributes.items() if name != ROUTES}
    return replace(layer, attributes={**rest, ROUTES: "//".join(entries)} if entries else rest)


def rewired(layer: Layer, inputs: Inputs, origins: Sequence[int | None] | None = None) -> Layer:
    """The layer with other inputs. Waypoints stay with their links, and new links have none.

    `origins` is the previous index of each input, None for a new link. By default a link keeps its index, or, if the layer
    still reads its source equally often, its rank among the links from that source.
    """
    after = replace(layer, inputs=inputs)
    if ROUTES not in layer.attributes or (inputs == layer.inputs and origins is None):
        return after
    routes = routes_of(layer)
    chosen = origins if origins is not None else _origins(layer.inputs, inputs)
    kept = {
        new: routes[old]
        for new, old in enumerate(chosen)
        if old in routes and new < len(inputs) and inputs[new] == layer.inputs[old]
    }
    return after if routes_of(after) == kept else with_routes(after, kept)


def _origins(before: Inputs, after: Inputs) -> list[int | None]:
    """The probable previous index of each input."""
    found: list[int | None] = [i if i < len(before) and before[i] == s else None for i, s in enumerate(after)]
    for source in {s for s in after if s is not None}:
        old, new = ([i for i, s in enumerate(inputs) if s == source] for inputs in (before, after))
        if len(old) == len(new):
            for origin, index in zip(old, new, strict=True):
                found[index] = origin
    return found


def set_route(graph: Graph, consumer: str, index: int, points: Iterable[Point], title: str = "Move link") -> Edit:
    """Set the waypoints of the link into input `index` of `consumer`; empty means automatic routing."""
    layer, chosen = graph.get(consumer), tuple(points)
    if layer is None or not 0 <= index < len(layer.inputs) or layer.inputs[index] is None:
        raise DiagnosticError.of(
            "no-link",
            tr("input {index} of '{consumer}' has no link", index=index, consumer=consumer),
            remedy=tr("connect it first"),
        )
    if len(chosen) > MOST:
        raise DiagnosticError.of(
            "too-many-points",
            tr("a link has at most {MOST} waypoints", MOST=MOST),
            layer=consumer,
            remedy=tr("remove one of its waypoints first"),
        )
    return Edit(title, {consumer: (layer, with_routes(layer, {**routes_of(layer), index: chosen}))})


def moved(layer: Layer, run: Point, along: Container[str] | None = None) -> Layer:
    """The layer with its waypoints moved by `run`: those of links from the layers of `along`, or all."""
    routes = routes_of(layer)
    after = dict(routes)
    for index, points in routes.items():
        source = layer.inputs[index]
        if along is None or (source is not None and source.layer in along):
            after[index] = tuple((x + run[0], y + run[1]) for x, y in points)
    return with_routes(layer, after) if after != routes else layer


def renamed(before: Layer, after: Layer) -> Layer:
    """`after`, whose inputs are those of `before` renamed, with the routes of `before`."""
    return with_routes(after, routes_of(before)) if ROUTES in before.attributes else after


def cleared(layer: Layer, sources: Iterable[str]) -> Layer:
    """The layer without the waypoints of links from `sources`."""
    routes, gone = routes_of(layer), set(sources)
    kept = {i: p for i, p in routes.items() if (s := layer.inputs[i]) is None or s.layer not in gone}
    return with_routes(layer, kept) if kept != routes else layer
