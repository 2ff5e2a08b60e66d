"""Runs of one configuration at several batch or image sizes: throughput, latency, and the knee."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from designer.profiling.configurations import parse_size
from designer.profiling.schema import ProfileRun
from designer.texts import tr

Axis = Literal["batch", "size"]

ENOUGH = 0.9  # share of the largest throughput that the knee must reach


@dataclass(frozen=True)
class Sweep:
    """Timed runs that differ in `axis` only, smallest first."""

    axis: Axis
    title: str
    runs: tuple[ProfileRun, ...]

    def label(self, run: ProfileRun) -> str:
        return str(run.batch) if self.axis == "batch" else run.size

    def position(self, run: ProfileRun) -> float:
        """The batch, or the pixels of an image."""
        return float(run.batch) if self.axis == "batch" else float(pixels(run))

    def throughput(self, run: ProfileRun) -> float:
        """Images per second, or megapixels per second if the sizes differ."""
        return images_per_second(run) * (1.0 if self.axis == "batch" else pixels(run) * 1e-6)

    @property
    def unit(self) -> str:
        return "images/s" if self.axis == "batch" else "Mpixel/s"

    @property
    def knee(self) -> ProfileRun:
        """The smallest run that reaches 90 % of the largest throughput: above it, latency grows for little."""
        enough = ENOUGH * max(map(self.throughput, self.runs))
        return next(run for run in self.runs if self.throughput(run) >= enough)


def sweeps(runs: Iterable[ProfileRun], axis: Axis) -> list[Sweep]:
    """The configurations that were run at two values of `axis` or more. Of runs with the same value the last one counts."""
    found: dict[tuple[str, ...], dict[str, ProfileRun]] = {}
    for run in runs:
        if run.time_ms and (axis == "batch" or pixels(run)):
            fixed, value = (
                (run.size, str(run.batch)) if axis == "batch" else (tr("batch {batch}", batch=run.batch), run.size)
            )
            key = (run.engine, run.precision, run.layout, run.device, fixed, f"{run.threads} threads", run.source.value)
            found.setdefault(key, {})[value] = run
    made = (
        Sweep(axis, " ".join(filter(None, key[:5])), tuple(by_value.values()))
        for key, by_value in found.items()
        if len(by_value) > 1
    )
    return [replace(sweep, runs=tuple(sorted(sweep.runs, key=sweep.position))) for sweep in made]


def of_one_network(one: ProfileRun, other: ProfileRun) -> bool:
    """Whether the same network was measured, maybe with its layers at other places or with another size of its input.

    Documents with equal digests are equal. Others are compared by their layers with all parameters, which engines fuse differently.
    """
    digests = [run.provenance.get("document_sha256", "") for run in (one, other)]
    return (digests[0] == digests[1] != "") or _computed(one) == _computed(other)


def _computed(run: ProfileRun) -> tuple[object, ...]:
    types = {kind for row in run.operators if row.layers for kind in row.type.split(" + ")}
    parameters = {layer: dict(texts) for row in run.operators for layer, texts in row.parameters.items()}
    return run.learned, types, parameters


def pixels(run: ProfileRun) -> int:
    """The pixels of one input image; 0 if the run has no image input."""
    try:
        size = parse_size(run.size)
    except ValueError:
        return 0
    return size.width * size.height


def images_per_second(run: ProfileRun) -> float:
    return 1e3 * run.batch / run.time_ms if run.time_ms else 0.0
