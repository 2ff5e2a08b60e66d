"""Rows of a run combined: by operator type, template or frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from designer.profiling.schema import OperatorProfile, ProfileRun, mean_utilization


@dataclass(frozen=True)
class RowGroup:
    """Rows with a common key. `total` has their sums; its layers are those of all rows."""

    key: str
    total: OperatorProfile
    rows: tuple[OperatorProfile, ...]


def group_rows(rows: Iterable[OperatorProfile], key: Callable[[OperatorProfile], str]) -> tuple[RowGroup, ...]:
    """The rows by `key`, in the order of their first row."""
    found: dict[str, list[OperatorProfile]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return tuple(RowGroup(name, combined(members), tuple(members)) for name, members in found.items())


def combined(rows: list[OperatorProfile]) -> OperatorProfile:
    """One row with the sums of several. Roof and saving are unknown if one is; the bound is that of the longest row."""
    roofs = [row.roof_ms for row in rows]
    savings = [row.saving_ms for row in rows]
    held = [row.memory_bytes for row in rows if row.memory_bytes is not None]
    total = OperatorProfile(
        layers=tuple(layer for row in rows for layer in row.layers),
        type=" + ".join(dict.fromkeys(row.type for row in rows if row.type)),
        time_ms=sum(row.time_ms for row in rows),
        flops=sum(row.flops for row in rows),
        bytes=sum(row.bytes for row in rows),
        learned=sum(row.learned for row in rows),
        memory_bytes=max(held, default=None),
        bound=max(rows, key=lambda row: row.time_ms).bound,
        roof_ms=None if None in roofs else sum(roof for roof in roofs if roof is not None),
        saving_ms=None if None in savings else sum(saving for saving in savings if saving is not None),
    )
    return replace(total, **mean_utilization(rows))  # type: ignore[arg-type]


def precision_shares(run: ProfileRun) -> dict[str, tuple[float, float]]:
    """Percentages of the time and of the FLOPs of a run by precision."""
    flops = sum(row.flops for row in run.operators) or 1
    groups = group_rows(run.operators, lambda row: row.precision or run.precision)
    return {group.key: (run.share(group.total), 100 * group.total.flops / flops) for group in groups}
