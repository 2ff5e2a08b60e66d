"""Runs of one configuration at several batch sizes: throughput, latency, and the knee."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from designer.profiling.schema import ProfileRun

ENOUGH = 0.9  # share of the largest throughput that the knee must reach


@dataclass(frozen=True)
class Sweep:
    """Timed runs that differ in their batch only, by batch."""

    title: str
    runs: tuple[ProfileRun, ...]


def sweeps(runs: Iterable[ProfileRun]) -> list[Sweep]:
    """The configurations that were measured at two batch sizes or more."""
    found: dict[tuple[str, ...], dict[int, ProfileRun]] = {}
    for run in runs:
        if run.time_ms:
            key = (run.engine, run.precision, run.layout, run.device, run.size)
            found.setdefault(key, {})[run.batch] = run
    return [
        Sweep(" ".join(part for part in key if part), tuple(by_batch[batch] for batch in sorted(by_batch)))
        for key, by_batch in found.items()
        if len(by_batch) > 1
    ]


def images_per_second(run: ProfileRun) -> float:
    return 1e3 * run.batch / run.time_ms if run.time_ms else 0.0


def knee(runs: Sequence[ProfileRun]) -> ProfileRun:
    """The run with the smallest batch that reaches 90 % of the largest throughput: above it, latency grows for little."""
    largest = max(images_per_second(run) for run in runs)
    return min((run for run in runs if images_per_second(run) >= ENOUGH * largest), key=lambda run: run.batch)
