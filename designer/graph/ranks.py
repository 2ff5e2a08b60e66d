"""A topological order that is updated incrementally, so that an edit does not visit the whole network."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from designer.graph.graph import Graph


class Ranks:
    """A rank for each layer, greater than those of its producers. A network with a loop has no ranks: `known` is False.

    Call `renew` before use.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._rank: dict[str, float] = {}
        self.known = False

    def __getitem__(self, name: str) -> float:
        return self._rank[name]

    def adopt(self, other: Ranks) -> None:
        """Take the ranks of an equal network."""
        self._rank, self.known = dict(other._rank), other.known

    def renew(self) -> None:
        """Rank all layers again."""
        order, stuck = self._graph.order()
        self.known = not stuck
        self._rank = {name: float(place) for place, name in enumerate(order)} if self.known else {}

    def update(self, removed: Iterable[str], moved: Iterable[str]) -> None:
        """Update the ranks after an edit: `moved` are layers that are new or have other producers."""
        if self.known:
            for name in removed:
                self._rank.pop(name, None)
            order, stuck = self._graph.order(moved)
            if not stuck and all(self._place(name) for name in order):
                return
        self.renew()

    def _place(self, name: str) -> bool:
        """Rank a layer between its producers and its consumers; False if there is no room between them."""
        rank, graph = self._rank, self._graph
        low = max((rank.get(p, -inf) for p in graph[name].producers()), default=-inf)
        high = min((rank.get(c, inf) for c in graph.consumers(name)), default=inf)
        if low < rank.get(name, -inf) < high:
            return True
        if not low < high:
            return False
        if low == -inf:
            place = high - 1 if high < inf else 0.0
        else:
            place = (low + high) / 2 if high < inf else low + 1
        rank[name] = place
        return low < place < high
