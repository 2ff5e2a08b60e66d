"""The order of the points within each column, chosen so that few edges cross."""

from __future__ import annotations

from bisect import bisect_right, insort

from designer.graph.layout.columns import LayeredNetwork, LayoutEdge

SWEEPS = 8
PATIENCE = 3  # stop after this many sweeps without improvement


def order_columns(net: LayeredNetwork) -> None:
    """Sort the columns of `net` in place."""
    _begin(net)
    position = [0] * len(net.column)
    for column in net.columns:
        _number(column, position)
    best = [list(column) for column in net.columns]
    fewest = crossings(net, position)
    stale = 0
    for sweep in range(SWEEPS):
        if fewest == 0 or stale >= PATIENCE:
            break
        _sweep(net, position, forward=sweep % 2 == 0)
        found = crossings(net, position)
        stale += 1
        if found < fewest:
            fewest, stale = found, 0
            best = [list(column) for column in net.columns]
    net.columns = best


def _begin(net: LayeredNetwork) -> None:
    """The initial order, by a walk along the heaviest edges: main paths on top, bends below, deep levels last."""
    met = [-1] * len(net.column)
    count = 0
    for start in range(len(net.names)):
        stack = [start] if met[start] < 0 and not net.before[start] else []
        while stack:
            point = stack.pop()
            if met[point] >= 0:
                continue
            met[point] = count
            count += 1
            edges = sorted(net.after[point], key=lambda e: (net.is_bend(e.end), -e.weight))
            stack += [e.end for e in reversed(edges)]
    for column in net.columns:
        column.sort(key=lambda p: (net.level[p], met[p]))


def _number(column: list[int], position: list[int]) -> None:
    for place, point in enumerate(column):
        position[point] = place


def _sweep(net: LayeredNetwork, position: list[int], *, forward: bool) -> None:
    """Sort each column by the mean position of its points' neighbors in the column before (or after)."""
    columns = net.columns if forward else list(reversed(net.columns))
    for column in columns[1:]:
        if len(column) == 1:
            continue
        wanted: dict[int, tuple[int, float]] = {}
        for point in column:
            if forward:
                found = [float(position[e.start]) for e in net.before[point]]
            else:  # the input's number breaks ties, so that links into one layer do not cross
                found = [position[e.end] + e.entry * 0.01 for e in net.after[point]]
            wanted[point] = (net.level[point], sum(found) / len(found) if found else float(position[point]))
        column.sort(key=wanted.__getitem__)
        _number(column, position)


def crossings(net: LayeredNetwork, position: list[int]) -> int:
    """How many pairs of edges cross."""
    total = 0
    for column in net.columns[:-1]:
        edges = [e for point in column for e in net.after[point]]
        total += _crossings(edges, position)
    return total


def _crossings(edges: list[LayoutEdge], position: list[int]) -> int:
    if len(edges) < 2:
        return 0
    ends = [(position[e.start], position[e.end] * 1024 + e.entry) for e in edges]
    ends.sort()
    seen: list[int] = []
    total = 0
    for _, end in ends:
        total += len(seen) - bisect_right(seen, end)
        insort(seen, end)
    return total
