"""What each layer of a run costs, as amounts to color a network with, and the critical path of the run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush

from designer.graph.graph import Graph
from designer.profiling.difference import RunDifference
from designer.profiling.schema import OperatorProfile, ProfileRun
from designer.texts import mark, tr_data
from designer.units import digits, quantity

PLAIN = ("x", "%")  # units without prefixes
Node = int | str  # the number of a row, or the name of a layer without one


@dataclass(frozen=True)
class Metric:
    """An amount of a row. `unit` is a unit of `designer.units.quantity` or in PLAIN; `extensive` amounts add up, others do not."""

    id: str
    title: str
    unit: str
    amount: Callable[[OperatorProfile], float | None]
    extensive: bool = True


METRICS = {
    metric.id: metric
    for metric in (
        Metric("time", mark("Time"), "s", lambda row: row.time_ms / 1e3),
        Metric("flops", mark("FLOPs"), "FLOP", lambda row: float(row.flops)),
        Metric("memory", mark("Memory traffic"), "B", lambda row: float(row.bytes)),
        Metric("roof", mark("Distance from the roof"), "x", lambda row: row.distance, extensive=False),
    )
}


DIFFERENCE = Metric("difference", mark("Difference of the compared runs"), "s", lambda row: None)


@dataclass(frozen=True)
class Heat:
    """Amounts by layer. `most` is the largest magnitude, or 0 without layers; amounts of `DIFFERENCE` are signed.

    `labels` are texts of layers that say more than their amount.
    """

    metric: Metric
    values: Mapping[str, float]
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def signed(self) -> bool:
        return self.metric is DIFFERENCE

    @cached_property
    def most(self) -> float:
        return max(map(abs, self.values.values()), default=0.0)

    @property
    def title(self) -> str:
        return tr_data(self.metric.title)

    @property
    def ends(self) -> tuple[str, str]:
        """The amounts at the ends of the scale."""
        return (self.text(-self.most) if self.signed else "0"), self.text(self.most)

    def share(self, layer: str) -> float:
        """The amount of a layer relative to the largest magnitude: 0 to 1, or -1 to 1 if signed."""
        return self.values[layer] / self.most if self.most > 0 else 0.0

    def label(self, layer: str) -> str:
        return self.labels.get(layer) or self.text(self.values[layer])

    def text(self, amount: float) -> str:
        """An amount with its unit, and with its sign if signed."""
        if self.signed:
            return f"{'+' if amount > 0 else ''}{quantity(amount, self.metric.unit)}"
        if self.metric.unit in PLAIN:
            return f"{digits(amount)} {self.metric.unit}"
        return quantity(amount, self.metric.unit)


def heat(run: ProfileRun, metric: Metric, in_sight: Callable[[str], str] = str) -> Heat:
    """The amounts of the layers of a run.

    `in_sight` maps a layer path to the layer that displays it, such as an instance of a template, or to an empty string.
    Rows of several layers that appear as one layer add up, or, if the metric is not extensive, the largest counts. Layers
    that the engine fused have the amount of the whole row each, because the engine does not divide it.
    """
    values: dict[str, float] = {}
    for row in run.operators:
        amount = metric.amount(row)
        if amount is None:
            continue
        for name in dict.fromkeys(found for layer in row.layers if (found := in_sight(layer))):
            before = values.get(name, 0.0)
            values[name] = before + amount if metric.extensive else max(before, amount)
    return Heat(metric, values)


def difference_heat(found: RunDifference, in_sight: Callable[[str], str] = str) -> Heat:
    """The differences of the steps of two runs in s; those within the noise of the measurements are 0."""
    values: dict[str, float] = {}
    for row in found.rows:
        amount = 0.0 if row.verdict == "none" else row.difference_ms / 1e3
        for name in dict.fromkeys(shown for layer in row.layers if (shown := in_sight(layer))):
            values[name] = values.get(name, 0.0) + amount
    return Heat(DIFFERENCE, values)


def in_scope(found: Heat, in_sight: Callable[[str], str]) -> Heat:
    """Heat of layer paths as that of the layers that display them; of several paths the largest amount counts."""
    values: dict[str, float] = {}
    labels: dict[str, str] = {}
    for path, amount in found.values.items():
        name = in_sight(path)
        if name and abs(amount) >= abs(values.get(name, 0.0)):
            values[name], labels[name] = amount, found.label(path)
    return Heat(found.metric, values, labels)


def _in_order(reads: Mapping[Node, Collection[Node]]) -> Iterator[Node]:
    """Each node after all that it reads, otherwise as given. Where nodes read each other, the first of them comes first."""
    nodes, done = list(reads), set[Node]()
    place = {node: number for number, node in enumerate(nodes)}
    missing = {node: sum(source in reads for source in reads[node]) for node in nodes}
    readers: dict[Node, list[Node]] = {}
    for node in nodes:
        for source in reads[node]:
            readers.setdefault(source, []).append(node)
    ready = [place[node] for node in nodes if not missing[node]]  # in ascending order, thus a heap
    rest = iter(nodes)
    while len(done) < len(nodes):
        node = nodes[heappop(ready)] if ready else next(node for node in rest if node not in done)
        if node in done:
            continue
        yield node
        done.add(node)
        for reader in readers.get(node, ()):
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, place[reader])


def critical_path(run: ProfileRun, graph: Graph) -> tuple[str, ...]:
    """The layers of the chain of dependent rows that takes the longest, from input to output.

    No number of parallel streams makes the network faster than this chain. `graph` is the inlined network. Layers that the
    run does not contain take no time.
    """
    row_of = {layer: number for number, row in enumerate(run.operators) for layer in row.layers}
    reads: dict[Node, dict[Node, None]] = {}
    for name in graph.order()[0]:
        node: Node = row_of.get(name, name)
        sources = (row_of.get(s.layer, s.layer) for s in graph[name].inputs if s is not None)
        reads.setdefault(node, {}).update((source, None) for source in sources if source != node)
    spent: dict[Node, float] = {}
    before: dict[Node, Node | None] = {}
    for node in _in_order(reads):
        known = (source for source in reads[node] if source in spent)
        longest = max(known, key=lambda source: spent[source], default=None)  # of equal ones the first
        own = run.operators[node].time_ms if isinstance(node, int) else 0.0
        spent[node], before[node] = own + (spent[longest] if longest is not None else 0.0), longest
    if not spent:
        return ()
    last: Node | None = max(spent, key=lambda s: spent[s])
    path: list[str] = []
    while last is not None:
        path[:0] = run.operators[last].layers if isinstance(last, int) else (last,)
        last = before[last]
    return tuple(path)
