"""Coordinates of the points: columns as wide as their widest layer, heights that keep edges straight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil

from designer.graph.layout.columns import LayeredNetwork
from designer.graph.model import GRID

SWEEPS = 6


@dataclass(frozen=True, slots=True)
class LayerBox:
    """The size of a layer and the heights at which its links start and end, from its top, in canvas units.

    Layers of a higher `level` (how often the image was halved) are placed further down: a U-Net looks like a U.
    """

    width: float
    height: float
    inputs: tuple[float, ...] = ()
    outputs: Mapping[str, float] = field(default_factory=dict)  # by port name; "" is the first
    level: int = 0

    def input(self, index: int) -> float:
        return self.inputs[min(index, len(self.inputs) - 1)] if self.inputs else self.height / 2

    def output(self, port: str) -> float:
        return self.outputs.get(port, self.outputs.get("", self.height / 2))


@dataclass(frozen=True, slots=True)
class Spacing:
    """Distances in canvas units: between columns, between layers, and around the bend of a link."""

    column: float = 4.0 * GRID
    layer: float = 2.0 * GRID
    bend: float = 1.0 * GRID
    level: float = 8.0 * GRID


def place(net: LayeredNetwork, boxes: Mapping[str, LayerBox], spacing: Spacing) -> dict[str, tuple[float, float]]:
    """The top left corner of every layer."""
    lefts = _lefts(net, boxes, spacing)
    tops = _Tops(net, boxes, spacing).solved()
    return {name: (lefts[net.column[point]], tops[point]) for point, name in enumerate(net.names)}


def _lefts(net: LayeredNetwork, boxes: Mapping[str, LayerBox], spacing: Spacing) -> list[float]:
    left, result = 0.0, []
    for column in net.columns:
        result.append(left)
        width = max((boxes[net.names[p]].width for p in column if not net.is_bend(p)), default=0.0)
        left += ceil((width + spacing.column) / GRID) * GRID
    return result


class _Tops:
    """Heights by sweeps: each point is moved to where its heaviest edges are straight."""

    def __init__(self, net: LayeredNetwork, boxes: Mapping[str, LayerBox], spacing: Spacing) -> None:
        self._net = net
        size = len(net.column)
        self._top = [0.0] * size
        self._height = [boxes[net.names[p]].height if p < len(net.names) else 0.0 for p in range(size)]
        # edges as (other point, its height of the edge minus this point's, weight)
        self._before: list[list[tuple[int, float, int]]] = [[] for _ in range(size)]
        self._after: list[list[tuple[int, float, int]]] = [[] for _ in range(size)]
        for edge in net.edges:
            start = 0.0 if net.is_bend(edge.start) else boxes[net.names[edge.start]].output(edge.port)
            end = 0.0 if net.is_bend(edge.end) else boxes[net.names[edge.end]].input(edge.entry)
            step = (net.level[edge.end] - net.level[edge.start]) * spacing.level
            self._before[edge.end].append((edge.start, start - end + step, edge.weight))
            self._after[edge.start].append((edge.end, end - start - step, edge.weight))
        self._gaps = [
            [self._height[a] + self._gap(a, b, spacing) for a, b in pairwise(column)] for column in net.columns
        ]

    def _gap(self, above: int, below: int, spacing: Spacing) -> float:
        return spacing.bend if self._net.is_bend(above) or self._net.is_bend(below) else spacing.layer

    def solved(self) -> list[float]:
        columns = range(len(self._net.columns))
        for sweep in range(SWEEPS):
            forward = sweep % 2 == 0
            both = sweep >= SWEEPS - 2
            for column in columns if forward else reversed(columns):
                self._settle(column, forward=forward, both=both)
        return self._top

    def _settle(self, column: int, *, forward: bool, both: bool) -> None:
        """Move the points of a column as near to their targets as the distances allow (least squares)."""
        points, gaps = self._net.columns[column], self._gaps[column]
        blocks: list[tuple[float, float, int]] = []  # (weighted mean of target - offset, weight, points)
        offset = 0.0
        for place, point in enumerate(points):
            if place:
                offset += gaps[place - 1]
            edges = self._before[point] if forward else self._after[point]
            if both:
                edges = self._before[point] + self._after[point]
            target, weight = self._target(point, edges)
            mean, total, count = target - offset, weight, 1
            while blocks and blocks[-1][0] > mean:
                above, more, others = blocks.pop()
                mean = (mean * total + above * more) / (total + more)
                total, count = total + more, count + others
            blocks.append((mean, total, count))
        offset, place = 0.0, 0
        for mean, _, count in blocks:
            for _ in range(count):
                if place:
                    offset += gaps[place - 1]
                self._top[points[place]] = mean + offset
                place += 1

    def _target(self, point: int, edges: list[tuple[int, float, int]]) -> tuple[float, float]:
        """The weighted median of the heights at which its edges are straight, and its weight."""
        if not edges:
            return self._top[point], 0.1
        if len(edges) == 1:
            other, shift, weight = edges[0]
            return self._top[other] + shift, float(weight)
        targets = sorted((self._top[other] + shift, weight) for other, shift, weight in edges)
        half = sum(weight for _, weight in targets) / 2
        passed = 0.0
        for target, weight in targets:
            passed += weight
            if passed >= half:
                return target, 2 * half
        return targets[-1][0], 2 * half
