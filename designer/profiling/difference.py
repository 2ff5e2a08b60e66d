"""The difference of two runs: of the whole network and of every operator, against the noise of the measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from typing import Literal

from designer.profiling.peaks import BUSY_PERCENT
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun
from designer.texts import tr

Verdict = Literal["none", "faster", "slower", "only before", "only after"]
LEAST = 0.01  # relative difference that the clock rate alone causes
ERRORS = 3.0  # standard errors within which a difference is noise


@dataclass(frozen=True)
class RowDifference:
    """Times in ms of the same layers in two runs; None if one run does not have them.

    `noise_ms` is three standard errors of the difference of the two medians.
    """

    layers: tuple[str, ...]
    before_ms: float | None
    after_ms: float | None
    noise_ms: float

    @property
    def difference_ms(self) -> float:
        return (self.after_ms or 0.0) - (self.before_ms or 0.0)

    @property
    def verdict(self) -> Verdict:
        """ "none" if the difference is within the noise."""
        if self.before_ms is None:
            return "only after"
        if self.after_ms is None:
            return "only before"
        if abs(self.difference_ms) <= self.noise_ms:
            return "none"
        return "slower" if self.difference_ms > 0 else "faster"


@dataclass(frozen=True)
class RunDifference:
    """`rows` are sorted by the size of the difference; layers that an engine fused in one of the runs are joined."""

    before: ProfileRun
    after: ProfileRun
    total: RowDifference
    rows: tuple[RowDifference, ...]

    @property
    def doubt(self) -> str:
        """Why the times may differ for another reason than the network; empty for runs in turns on a quiet machine."""
        load = max(self.before.load.value or 0.0, self.after.load.value or 0.0)
        if load > BUSY_PERCENT:
            return tr(
                "other programs used {load:.0f} % of the cores during one of the runs; measure both again", load=load
            )
        if self.before is not self.after and not (self.before.turns and self.before.turns == self.after.turns):
            return tr(
                "the runs were not measured in turns, so a change of clock rate or load between them counts as a difference"
            )
        return ""


def difference(before: ProfileRun, after: ProfileRun) -> RunDifference:
    """Compare two runs of one network, or of a network before and after an edit."""
    rows = [_row(first, second, before, after) for first, second in _matched(before.operators, after.operators)]
    rows.sort(key=lambda row: -abs(row.difference_ms))
    total = RowDifference(
        (),
        before.time_ms,
        after.time_ms,
        _noise(before.time_ms, _error(before.spread_ms, before), after.time_ms, _error(after.spread_ms, after)),
    )
    return RunDifference(before, after, total, tuple(rows))


def differences(before: Profile, after: Profile) -> list[RunDifference]:
    """The runs of `after`, each against the run of `before` with the same configuration, or else with the same batch and size.

    A run without such a run, or with several of them, is not compared.
    """
    by_configuration = {run.configuration: run for run in before.runs}
    compared = []
    for run in after.runs:
        alike = [each for each in before.runs if (each.batch, each.size) == (run.batch, run.size)]
        first = by_configuration.get(run.configuration, alike[0] if len(alike) == 1 else None)
        if first is not None:
            compared.append(difference(first, run))
    return compared


def configuration_differences(profile: Profile) -> list[RunDifference]:
    """The runs of other engines, precisions and layouts, each against the first run of the same batch and size."""
    first: dict[tuple[int, str], ProfileRun] = {}
    for run in profile.runs:
        first.setdefault((run.batch, run.size), run)
    pairs = ((first[run.batch, run.size], run) for run in profile.runs)
    return [difference(before, after) for before, after in pairs if before is not after]


def _row(
    first: Sequence[OperatorProfile], second: Sequence[OperatorProfile], before: ProfileRun, after: ProfileRun
) -> RowDifference:
    layers = tuple(dict.fromkeys(name for row in (*first, *second) for name in row.layers))
    times = [sum(row.time_ms for row in rows) if rows else None for rows in (first, second)]
    errors = [hypot(*(_error(row.spread_ms, run) for row in rows)) for rows, run in ((first, before), (second, after))]
    return RowDifference(layers, times[0], times[1], _noise(times[0], errors[0], times[1], errors[1]))


def _error(spread_ms: float | None, run: ProfileRun) -> float:
    """The standard error of a median from half the interquartile range: 1.253 sigma / sqrt(n), sigma = IQR / 1.349."""
    return 1.253 * 2 * (spread_ms or 0.0) / 1.349 / sqrt(max(run.iterations, 1))


def _noise(before: float | None, before_error: float, after: float | None, after_error: float) -> float:
    return max(ERRORS * hypot(before_error, after_error), LEAST * max(before or 0.0, after or 0.0))


def _matched(
    before: Sequence[OperatorProfile], after: Sequence[OperatorProfile]
) -> list[tuple[list[OperatorProfile], list[OperatorProfile]]]:
    """Rows of both runs that share layers, joined until no group shares a layer with another one."""
    home: dict[str, int] = {}
    groups: list[tuple[list[OperatorProfile], list[OperatorProfile]]] = []
    for side, rows in enumerate((before, after)):
        for row in rows:
            names = row.layers or ("",)  # time outside of operators is compared too
            found = sorted({home[name] for name in names if name in home})
            if not found:
                found = [len(groups)]
                groups.append(([], []))
            for other in found[1:]:
                for mine, theirs in zip(groups[found[0]], groups[other], strict=True):
                    mine += theirs
                groups[other] = ([], [])
                home.update({name: found[0] for name, number in home.items() if number == other})
            home.update(dict.fromkeys(names, found[0]))
            groups[found[0]][side].append(row)
    return [group for group in groups if group[0] or group[1]]
