"""The health of the layers during a run: `health.jsonl`, written by the project's `monitor.py`, read as it grows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from designer.texts import mark, tr, tr_data
from designer.training.growing_file import GrowingFile

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

    def __str__(self) -> str:
        title = tr_data(KINDS[self.kind]) if self.kind in KINDS else self.kind
        return tr("{layer}: {problem} since step {step}", layer=self.layer, problem=title, step=self.since)


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

    def at(self, step: int | None = None) -> Health | None:
        """The last measurement that is not after `step`; of all steps by default."""
        if not self.measured:
            return None
        if step is None:
            return self.measured[-1]
        place = bisect_right([health.step for health in self.measured], step)
        return self.measured[place - 1] if place else None


def _health(line: bytes) -> Health | None:
    try:
        return _HEALTH.decode(line)
    except (ValueError, RecursionError):
        return None
