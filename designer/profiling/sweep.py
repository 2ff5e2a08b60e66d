"""Runs of one configuration at several batch sizes: throughput, latency, and the knee."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.types import Size2D
from designer.profiling.schema import ProfileRun
from designer.texts import tr

T = TypeVar("T")

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


def batches_of(text: str) -> tuple[int, ...]:
    """Batch sizes from text such as `1,4,16`. Raises DiagnosticError for any other text."""
    return _listed("batch", text, _batch, tr("write whole numbers such as 1,4,16"))


def sizes_of(text: str) -> tuple[Size2D, ...]:
    """Sizes from text such as `256x256,512x512`. Raises DiagnosticError for any other text."""
    return _listed("size", text, _size, tr("write width x height such as 256x256,512x512"))


def _listed(option: str, text: str, parse: Callable[[str], T], remedy: str) -> tuple[T, ...]:
    try:
        return tuple(dict.fromkeys(parse(part.strip()) for part in text.split(",") if text))
    except ValueError:
        raise DiagnosticError(
            Diagnostic("bad-option", tr("{option} {text!r} cannot be read", option=option, text=text), remedy=remedy)
        ) from None


def _batch(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 65536:
        raise ValueError(text)
    return number


def _size(text: str) -> Size2D:
    size = Size2D.parse(text)
    if not (1 <= size.width <= 65536 and 1 <= size.height <= 65536):
        raise ValueError(text)
    return size
