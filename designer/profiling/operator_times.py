"""Times the different operators of a network one by one on this machine, without running the network.

Operators that do the same work are timed once, and times are kept per machine, engine, its version and number of threads, so that
a changed network only runs what is new in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Annotated, Protocol

import numpy as np
from msgspec import Meta, ValidationError, convert
from numpy.typing import NDArray

from designer.graph.diagnostics import DiagnosticError
from designer.profiling.peaks import (
    BUSY_PERCENT,
    busy_times,
    default_store,
    foreign_load,
    load_store,
    save_store,
)
from designer.runtime.api import Progress
from designer.runtime.engine_api import Sample, SingleStep
from designer.runtime.interrupt import current
from designer.texts import tr

LEAST, MOST = 3, 15  # runs of an operator
SECONDS = 0.2  # after which an operator has run often enough
EVICTED = 4 << 20  # bytes: more than the caches of a core hold
LARGEST = 1 << 30  # bytes that an operator reads and writes; larger ones are modelled
MOST_KEPT = 20_000  # times of an engine
MOST_SECONDS = 1e6


class StepSource(Protocol):
    def single_steps(self) -> list[SingleStep]: ...


@dataclass(frozen=True)
class OperatorTimes:
    """`samples` have one time for each step of the network, in execution order; `missing` are the layers of steps without a time.

    `fresh` of the `different` operators were timed now, while other programs used `load` percent of all cores.
    """

    samples: tuple[Sample, ...] = ()
    missing: frozenset[str] = frozenset()
    different: int = 0
    fresh: int = 0
    load: float = 0.0


@dataclass(frozen=True)
class KeptTimes:
    """What the store keeps for an engine: times in s by the digest of what an operator does."""

    seconds: Mapping[str, Annotated[float, Meta(gt=0, le=MOST_SECONDS)]] = field(default_factory=dict)


def operator_times(
    timer: StepSource, machine: str, store: Path | None = None, progress: Progress | None = None
) -> OperatorTimes:
    """The times of all steps of `timer`, from what is kept under `machine` or timed now. Those of a busy machine are not kept.

    Between two runs of a step its data is pushed out of the caches of the core, as by the other layers of a network, and its inputs
    are read, as the layer before wrote them.
    Steps that are too large or fail by themselves are `missing`.
    """
    path = (store or default_store()).with_name("operators.json")
    kept = _kept(path, machine)
    steps = timer.single_steps()
    keys = [sha256(step.key.encode()).hexdigest() for step in steps]
    different = {key: step for key, step in zip(keys, steps, strict=True) if step.bytes <= LARGEST}
    fresh = {key: step for key, step in different.items() if key not in kept}
    before = busy_times()
    other = np.zeros(EVICTED, np.uint8)
    times = {key: kept[key] for key in different if key in kept}
    for number, (key, step) in enumerate(fresh.items()):
        if progress is not None:
            progress(number, len(fresh), tr("measuring operators one by one"))
        seconds = _seconds(step, other)
        if seconds is not None:
            times[key] = seconds
    load = (foreign_load(before).value or 0.0) if fresh else 0.0
    if fresh and load <= BUSY_PERCENT:
        every = [*(kept | times).items()]
        save_store(path, machine, KeptTimes(dict(every[-MOST_KEPT:])))
    missing = frozenset(
        layer for key, step in zip(keys, steps, strict=True) if key not in times for layer in step.layers
    )
    return OperatorTimes(_samples(steps, keys, times, missing), missing, len(different), len(fresh), load)


def _samples(
    steps: Sequence[SingleStep], keys: Sequence[str], times: Mapping[str, float], missing: frozenset[str]
) -> tuple[Sample, ...]:
    """One sample for the steps of the same layers."""
    found: dict[tuple[str, ...], tuple[float, dict[str, None]]] = {}
    for step, key in zip(steps, keys, strict=True):
        if key in times and missing.isdisjoint(step.layers):
            seconds, what = found.setdefault(step.layers, (0.0, {}))
            found[step.layers] = (seconds + times[key], {**what, step.what: None})
    return tuple(Sample(layers, [seconds], ", ".join(filter(None, what))) for layers, (seconds, what) in found.items())


def _seconds(step: SingleStep, other: NDArray[np.uint8]) -> float | None:
    """The median time of a step after a first run; None if it cannot run by itself. `other` pushes its data out of the caches of the core."""
    try:
        prepared = step.prepare()
        prepared.run()
        end = perf_counter() + SECONDS
        times: list[float] = []
        while len(times) < LEAST or (len(times) < MOST and perf_counter() < end):
            current().check()
            other += 1
            prepared.read()
            times.append(prepared.run())
    except DiagnosticError:
        return None
    return median(times)


def _kept(path: Path, machine: str) -> dict[str, float]:
    """What is kept for a machine; nothing if the store is missing, truncated or not ours."""
    try:
        return dict(convert(load_store(path).get(machine), KeptTimes).seconds)
    except ValidationError:
        return {}
