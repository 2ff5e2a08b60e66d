"""The health of the layers during a run: `health.jsonl`, written by the project's `monitor.py`, read as it grows."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from designer.texts import mark, tr, tr_data
from designer.training.growing_file import GrowingFile
from designer.units import digits

KINDS = {
    "not_finite": mark("NaN or infinite values"),
    "exploding": mark("exploding gradient or weights"),
    "vanishing": mark("vanishing gradient"),
    "dead": mark("dead units"),
    "frozen": mark("weights do not change"),
    "saturated": mark("saturated units"),
}


@dataclass(frozen=True, slots=True)
class HealthMetric:
    """A statistic that the canvas can show as heat; `logarithmic` ones span orders of magnitude."""

    id: str
    title: str
    logarithmic: bool = False


METRICS = {
    metric.id: metric
    for metric in (
        HealthMetric("gradient", mark("Gradient norm"), logarithmic=True),
        HealthMetric("update", mark("Update-to-weight ratio"), logarithmic=True),
        HealthMetric("activation", mark("Mean absolute activation"), logarithmic=True),
        HealthMetric("dead", mark("Share of dead units")),
        HealthMetric("saturated", mark("Share of saturated values")),
    )
}


class Problem(Struct, frozen=True):
    """A problem of a layer, and the step at which it began."""

    layer: str
    kind: str
    since: int

    @property
    def text(self) -> str:
        """The problem without the name of the layer."""
        title = tr_data(KINDS[self.kind]) if self.kind in KINDS else self.kind
        return tr("{problem} since step {step}", problem=title, step=self.since)

    def __str__(self) -> str:
        return f"{self.layer}: {self.text}"


class Health(Struct, frozen=True):
    """The statistics by layer after one step, the problems at that step, and the one that stopped the run."""

    step: int
    layers: Mapping[str, Mapping[str, float | None]] = {}
    problems: tuple[Problem, ...] = ()
    stopped_by: Problem | None = None


_HEALTH = msgspec.json.Decoder(Health)


class HealthFile:
    """The measurements in the order of their steps."""

    def __init__(self, path: Path) -> None:
        self._file = GrowingFile(path)
        self.measured: tuple[Health, ...] = ()

    def read(self) -> bool:
        """Read what was appended. Returns whether anything changed; a missing file has no measurements."""
        try:
            restarted, lines = self._file.read()
        except OSError:
            changed, self.measured = bool(self.measured), ()
            return changed
        found = [] if restarted else list(self.measured)
        for line in lines:
            health = _health(line)
            if health is None:
                continue
            while found and found[-1].step >= health.step:  # a resumed run measures them again
                found.pop()
            found.append(health)
        self.measured = tuple(found)
        return restarted or bool(lines)


def health_at(measured: Sequence[Health], step: int | None = None) -> Health | None:
    """The last measurement that is not after `step`; of all steps by default."""
    if step is None:
        return measured[-1] if measured else None
    place = bisect_right([health.step for health in measured], step)
    return measured[place - 1] if place else None


@dataclass(frozen=True)
class HealthHeat:
    """One statistic of each layer, to color the layers with, and the problems of the layers as text."""

    title: str
    values: Mapping[str, float]
    problems: Mapping[str, str]
    logarithmic: bool = False
    signed: bool = False

    def share(self, layer: str) -> float:
        """0 for the smallest to 1 for the largest value; by magnitude if the scale is logarithmic."""
        low, high = self._limits()
        if not self.logarithmic:
            return self.values[layer] / high if high > 0 else 0.0
        value = self.values[layer]
        return math.log(max(value, low) / low) / math.log(high / low) if high > low else float(value > 0)

    def text(self, value: float) -> str:
        return digits(value)

    @property
    def ends(self) -> tuple[str, str]:
        """The values at the ends of the scale."""
        low, high = self._limits()
        return (digits(low) if self.logarithmic else "0"), digits(high)

    def _limits(self) -> tuple[float, float]:
        """The smallest and largest value; a logarithmic scale starts at most six orders of magnitude below its end."""
        high = max(self.values.values(), default=0.0)
        if not self.logarithmic:
            return 0.0, high
        positive = [value for value in self.values.values() if value > 0]
        return max(min(positive, default=1.0), high * 1e-6) or 1.0, high or 1.0


def health_heat(health: Health, metric: str, in_sight: Callable[[str], str] = str) -> HealthHeat:
    """The values of a metric of `METRICS`; without values for any other text.

    `in_sight` maps a layer to the one that displays it, or to an empty string. Of several that are displayed as one layer, the
    largest value counts.
    """
    known = METRICS.get(metric)
    values: dict[str, float] = {}
    for layer, statistics in health.layers.items() if known is not None else ():
        name, value = in_sight(layer), statistics.get(metric)
        if name and value is not None:
            values[name] = max(values.get(name, 0.0), value)
    problems: dict[str, str] = {}
    for problem in health.problems:
        name = in_sight(problem.layer)
        if name:
            problems.setdefault(name, problem.text)
    title = tr_data(known.title) if known is not None else tr("Problems of the run")
    return HealthHeat(title, values, problems, known is not None and known.logarithmic)


def _health(line: bytes) -> Health | None:
    try:
        return _HEALTH.decode(line)
    except (ValueError, RecursionError):
        return None
