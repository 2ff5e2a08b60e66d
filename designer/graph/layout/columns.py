"""The column of each layer, and the bends of long links in the columns between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from designer.graph.graph import Graph

MAX_BENDS = 6_000  # of one network; beyond it, the longest links have no bends and may cross layers


class LayoutEdge(NamedTuple):
    """A link, or a part of a long one, between points of neighboring columns."""

    start: int
    end: int
    port: str  # of the producer; "" for its first and for a bend
    entry: int  # the number of the consumer's input; 0 for a bend
    weight: int  # priority of being straight


@dataclass
class LayeredNetwork:
    """Points (layers first, then bends), each in a column, and the edges between neighboring columns."""

    names: list[str]
    column: list[int]
    level: list[int]  # of downsampling: deeper points are placed further down; a bend has the level of its producer
    edges: list[LayoutEdge] = field(default_factory=list)
    columns: list[list[int]] = field(default_factory=list)  # points of each column from top to bottom
    before: list[list[LayoutEdge]] = field(default_factory=list)  # edges that end at a point
    after: list[list[LayoutEdge]] = field(default_factory=list)  # edges that start at a point

    def is_bend(self, point: int) -> bool:
        return point >= len(self.names)


def components(graph: Graph, names: Sequence[str]) -> list[list[str]]:
    """Connected components of `names`, the largest first; layers without links come last, as one group."""
    members = set(names)
    seen: set[str] = set()
    groups: list[list[str]] = []
    for start in names:
        if start in seen:
            continue
        seen.add(start)
        group = [start]
        for name in group:
            for other in (*graph[name].producers(), *graph.consumers(name)):
                if other in members and other not in seen:
                    seen.add(other)
                    group.append(other)
        groups.append(sorted(group))
    alone = sorted(group[0] for group in groups if len(group) == 1)
    groups = sorted((g for g in groups if len(g) > 1), key=lambda g: (-len(g), g))
    return [*groups, alone] if alone else groups


def network(graph: Graph, names: Iterable[str], levels: Mapping[str, int]) -> LayeredNetwork:
    """The points and edges of some layers; the level of a layer not in `levels` is 0."""
    sorted_, cyclic = graph.order(names)
    order = [*sorted_, *cyclic]
    number = {name: i for i, name in enumerate(order)}
    links = [
        (number[source.layer], number[name], source.port, index)
        for name in order
        for index, source in enumerate(graph[name].inputs)
        if source is not None and number.get(source.layer, len(order)) < number[name]
    ]
    column = _columns(len(order), links)
    if not links:  # layers without links: one row
        column = list(range(len(order)))
    net = LayeredNetwork(order, column, [levels.get(name, 0) for name in order])
    main = _main_links(len(order), column, links)
    _add_edges(net, links, main)
    points = range(len(net.column))
    net.columns = [[] for _ in range(max(net.column) + 1)]
    net.before = [[] for _ in points]
    net.after = [[] for _ in points]
    for point in points:
        net.columns[net.column[point]].append(point)
    for edge in net.edges:
        net.after[edge.start].append(edge)
        net.before[edge.end].append(edge)
    return net


Link = tuple[int, int, str, int]


def _columns(count: int, links: list[Link]) -> list[int]:
    """The longest path from the left; layers that only feed columns far to the right are moved next to them."""
    column = [0] * count
    readers: list[list[int]] = [[] for _ in range(count)]
    reads = [0] * count
    for start, end, _, _ in links:  # in topological order of `end`
        column[end] = max(column[end], column[start] + 1)
        readers[start].append(end)
        reads[end] += 1
    for point in reversed(range(count)):
        if readers[point] and reads[point] == 0:
            column[point] = max(column[point], min(column[end] for end in readers[point]) - 1)
    return column


def _main_links(count: int, column: list[int], links: list[Link]) -> set[tuple[int, int]]:
    """The links of the longest paths, at most one into and one out of each layer."""
    after: list[list[int]] = [[] for _ in range(count)]
    before: list[list[int]] = [[] for _ in range(count)]
    for start, end, _, _ in links:
        after[start].append(end)
        before[end].append(start)
    height = [0] * count
    depth = [0] * count
    for point in range(count):
        depth[point] = max((depth[p] + 1 for p in before[point]), default=0)
    for point in reversed(range(count)):
        height[point] = max((height[p] + 1 for p in after[point]), default=0)
    found = set()
    for point in range(count):
        near = [p for p in after[point] if column[p] == column[point] + 1]
        if not near:
            continue
        reader = max(near, key=lambda p: (height[p], -p))
        back = max((p for p in before[reader] if column[p] == column[reader] - 1), key=lambda p: (depth[p], -p))
        if back == point:
            found.add((point, reader))
    return found


def _add_edges(net: LayeredNetwork, links: list[Link], main: set[tuple[int, int]]) -> None:
    """Edges for all links; those of one output that are long share their bends."""
    room = MAX_BENDS
    chains: dict[tuple[int, str], list[int]] = {}  # bends of an output in the columns right of it
    for start, end, port, index in sorted(links, key=lambda link: net.column[link[1]] - net.column[link[0]]):
        span = net.column[end] - net.column[start]
        if span == 1:
            net.edges.append(LayoutEdge(start, end, port, index, 16 if (start, end) in main else 1))
            continue
        chain = chains.setdefault((start, port), [])
        missing = span - 1 - len(chain)
        if missing > room:
            continue
        room -= max(missing, 0)
        while len(chain) < span - 1:
            net.column.append(net.column[start] + len(chain) + 1)
            net.level.append(net.level[start])
            bend = len(net.column) - 1
            if chain:
                net.edges.append(LayoutEdge(chain[-1], bend, "", 0, 6))
            else:
                net.edges.append(LayoutEdge(start, bend, port, 0, 2))
            chain.append(bend)
        net.edges.append(LayoutEdge(chain[span - 2], end, "", index, 2))
