"""What benchmarks share: rows of the table that `make bench` prints, and two ways to do the same work timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, declared by a benchmark next to what it measures.

    `target` is the highest value of `ours`, or, where there is a `peer`, of `ours / peer`.
    """

    what: str
    ours: float
    unit: str
    target: float
    peer: float | None = None
    peer_name: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.peer is None else self.ours / self.peer

    @property
    def met(self) -> bool:
        return (self.ours if self.ratio is None else self.ratio) <= self.target


class Report:
    """Collects the rows of one benchmark in its `extra_info`, so that they are in the JSON file as well."""

    def __init__(self, benchmark: Any) -> None:
        self._benchmark = benchmark
        self._rows: list[dict[str, Any]] = benchmark.extra_info.setdefault("rows", [])

    def median(self, what: str, *, target: float) -> None:
        """The median of the benchmark's own rounds, in ms."""
        if not self._benchmark.disabled:
            self.value(what, self._benchmark.stats["median"] * 1000, "ms", target=target)

    def value(self, what: str, ours: float, unit: str, *, target: float) -> None:
        """A value and the highest that it should have."""
        self._rows.append(asdict(Row(what, ours, unit, target)))

    def ratio(self, what: str, ours: float, unit: str, *, peer: float, peer_name: str, target: float) -> None:
        """A value, the same of `peer_name`, and the highest ratio that they should have."""
        self._rows.append(asdict(Row(what, ours, unit, target, peer, peer_name)))


def medians_in_turns(ours: Callable[[], object], peer: Callable[[], object], pairs: int) -> tuple[float, float]:
    """The median times of both in ms. They run in turns, after a first run that is not timed: a busy machine disturbs both.

    Medians, not minima: one lucky turn on a shared machine changed the ratio of equal work by 1.8.
    """
    works = (ours, peer)
    times: dict[int, list[float]] = {0: [], 1: []}
    for work in works:
        work()
    for pair in range(pairs):
        for index in (0, 1) if pair % 2 == 0 else (1, 0):
            started = perf_counter()
            works[index]()
            times[index].append((perf_counter() - started) * 1000)
    return median(times[0]), median(times[1])


def table(benchmarks: Iterable[dict[str, Any]]) -> str:
    """The rows of benchmarks of pytest-benchmark's JSON form, as a Markdown table that is aligned for a terminal too."""
    lines = [("group", "what", "ours", "peer", "ratio", "target", "met")]
    met = []
    for benchmark in benchmarks:
        group = benchmark["fullname"].partition("::")[0].rpartition("/")[2].removeprefix("test_").removesuffix(".py")
        rows = [Row(**row) for row in benchmark["extra_info"].get("rows", ())]
        lines += [(group, *_cells(row)) for row in rows]
        met += [row.met for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = tuple("-" * width for width in widths)
    shown = "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in (lines[0], rule, *lines[1:])
    )
    return f"{shown}\n\n{sum(met)} of {len(met)} targets met."


def _cells(row: Row) -> tuple[str, ...]:
    peer = "" if row.peer is None else f"{_number(row.peer)} {row.unit} {row.peer_name}"
    ratio = "" if row.ratio is None else f"{_number(row.ratio)} x"
    target = f"<= {_number(row.target)} {row.unit if row.ratio is None else 'x'}"
    return row.what, f"{_number(row.ours)} {row.unit}", peer, ratio, target, "yes" if row.met else "NO"


def _number(value: float) -> str:
    """Three digits, as many as a comparison needs."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
