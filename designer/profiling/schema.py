"""The profile of a network: one versioned schema for CPU timing, CUDA events, hardware counters and modelled runs.

Plain dataclasses, because `make gpu-check` writes profiles with torch and numpy only; msgspec validates them when they are
read (`profile_files.py`). Times are in milliseconds, sizes in bytes, utilization in percent of the peak.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from statistics import median
from typing import Final, Literal

from designer.profiling.machine import Machine
from designer.profiling.quantities import Quantity, ValueSource, unavailable
from designer.texts import mark, tr

SCHEMA: Final = "layerwright-profile"
VERSION: Final = 2
LARGEST = 1e18  # no time, size or number of operations in a profile is larger
TIE = 0.05  # share by which savings differ between two profiles of a network on a quiet machine
SMALLEST = 1e-30  # other numbers are 0: with these bounds, no ratio or product of values in a profile overflows

Bound = Literal["compute", "memory", "cache", "launch", ""]
Verdict = Literal["input", "compute", "memory", "waiting"]
NOT_COUNTED = unavailable("not part of this profile")

UTILIZATION = {
    "tensor_core": "Tensor Core utilization",
    "memory_throughput": "Memory throughput",
    "occupancy": "SM occupancy",
    "compute_throughput": "Compute throughput",
}
"""The utilization fields of `OperatorProfile` and their titles."""


@dataclass(frozen=True)
class OperatorProfile:
    """Layers that the engine ran as one step, several if it fused them, none for time outside of operators.

    `type` joins the operator types with " + ". `parameters` are the hyperparameters by layer. `bytes` are inputs, weights and
    outputs, each moved once. `memory_bytes` are the tensors that exist while the step runs, with all weights. `roof_ms` is the shortest time
    that the measured peaks allow, `saving_ms` what reaching it would save: 0 at the roof, None if the peaks are unknown.
    `alone` marks a time in a modelled run that was measured of this step by itself, not in the network.
    """

    layers: tuple[str, ...]
    type: str
    time_ms: float
    spread_ms: float | None = None  # half the interquartile range
    summary: str = ""
    parameters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()  # shapes, such as N x 48 x 64 x 64
    outputs: tuple[str, ...] = ()
    flops: int = 0
    bytes: int = 0
    learned: int = 0  # number of learned values
    memory_bytes: int | None = None
    precision: str = ""  # if it is not that of the run
    kernels: str = ""  # names of the engine
    bound: Bound = ""
    roof_ms: float | None = None
    saving_ms: float | None = None
    tensor_core: Quantity = NOT_COUNTED
    memory_throughput: Quantity = NOT_COUNTED
    occupancy: Quantity = NOT_COUNTED
    compute_throughput: Quantity = NOT_COUNTED
    alone: bool = False

    def __post_init__(self) -> None:
        check_numbers(self)

    @property
    def name(self) -> str:
        return " + ".join(self.layers)

    @property
    def flops_per_s(self) -> float | None:
        return self.flops / self.time_ms * 1e3 if self.time_ms > 0 else None

    @property
    def bytes_per_s(self) -> float | None:
        return self.bytes / self.time_ms * 1e3 if self.time_ms > 0 else None

    @property
    def intensity(self) -> float | None:
        """FLOP per byte."""
        return self.flops / self.bytes if self.bytes else None

    @property
    def distance(self) -> float | None:
        """Time relative to the time at the roof: 1 at the roof, below 1 if the peaks were measured too low."""
        return self.time_ms / self.roof_ms if self.roof_ms else None

    @property
    def at_roof(self) -> bool:
        return self.saving_ms == 0.0


def ranked(rows: Sequence[OperatorProfile]) -> list[OperatorProfile]:
    """Rows in the order of optimization priority: largest saving first, then longest time.

    What another profile would swap keeps its order: equal work whose times differ by no more than their spreads counts alike, and neighbors
    that differ by at most `TIE` have one rank. A rank spans at most 2 `TIE`.
    """
    values = _settled(rows)
    ranks: list[list[int]] = []
    for place in sorted(range(len(rows)), key=lambda place: values[place], reverse=True):
        if (
            ranks
            and _near(values[ranks[-1][-1]], values[place], TIE)
            and _near(values[ranks[-1][0]], values[place], 2 * TIE)
        ):
            ranks[-1].append(place)
        else:
            ranks.append([place])
    return [rows[place] for rank in ranks for place in sorted(rank)]


def _settled(rows: Sequence[OperatorProfile]) -> list[tuple[float, float]]:
    """Saving and time of each row; for rows of equal work the medians, unless a time is further from them than two spreads or 2 `TIE`."""
    values = [(row.saving_ms or 0.0, row.time_ms) for row in rows]
    equal: dict[tuple[object, ...], list[int]] = {}
    for place, row in enumerate(rows):
        equal.setdefault((row.type, row.summary, row.inputs, row.outputs, row.flops, row.bytes), []).append(place)
    for places in equal.values():
        middle = (median(values[place][0] for place in places), median(values[place][1] for place in places))
        for place in places:
            if abs(values[place][1] - middle[1]) <= min(2 * (rows[place].spread_ms or 0.0), 2 * TIE * middle[1]):
                values[place] = middle
    return values


def _near(above: tuple[float, float], below: tuple[float, float], share: float) -> bool:
    """Whether the saving `below` is at most `share` smaller, or the time if nothing can be saved above."""
    number = 0 if above[0] else 1
    return below[number] >= (1 - share) * above[number]


@dataclass(frozen=True)
class RunPeaks:
    """The peaks that the roofs of a run are computed from."""

    flops_per_s: Quantity
    memory_bytes_per_s: Quantity
    cache_bytes_per_s: Quantity
    cache_bytes: int = 0
    launch_ms: Quantity = NOT_COUNTED  # the shortest time of a step
    others: Mapping[str, Quantity] = field(default_factory=dict)  # FLOP/s by precision, such as tf32
    date: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        check_numbers(self)


@dataclass(frozen=True)
class PeakMemory:
    """The largest memory of a run: the step at which it occurs and the tensors that exist then, in bytes by layer."""

    bytes: int
    operator: int  # index in `operators`
    tensors: Mapping[str, int] = field(default_factory=dict)
    measured_bytes: Quantity = NOT_COUNTED  # by the allocator of the device

    def __post_init__(self) -> None:
        check_numbers(self)


@dataclass(frozen=True)
class Energy:
    """Energy of one run of the network, with the idle power of the device."""

    joules: Quantity
    watts: Quantity
    flops_per_joule: Quantity

    def __post_init__(self) -> None:
        check_numbers(self)


@dataclass(frozen=True)
class TrainingStep:
    """One training step of the exported project. `waiting_ms` is the time in which neither device nor data loader works."""

    batch: int
    step_ms: float
    forward_ms: float
    backward_ms: float
    optimizer_ms: float
    data_ms: float
    waiting_ms: float
    verdict: Verdict
    reason: str

    def __post_init__(self) -> None:
        check_numbers(self)

    @property
    def phases(self) -> dict[str, float]:
        """Titles of the phases and their times in ms."""
        return {
            mark("data"): self.data_ms,
            mark("forward"): self.forward_ms,
            mark("backward"): self.backward_ms,
            mark("optimizer"): self.optimizer_ms,
            mark("waiting"): self.waiting_ms,
        }


@dataclass(frozen=True)
class ProfileRun:
    """One configuration of the network. `operators` are in running order; `time_ms` is measured without a profiler.

    `partial` says why the run is incomplete, and is empty for a complete run.
    """

    engine: str
    precision: str
    layout: str
    device: str
    batch: int
    size: str  # width x height of the first image input, such as 256x256
    time_ms: float | None  # median; None if the run ended before it was measured
    spread_ms: float | None
    operators: tuple[OperatorProfile, ...]
    source: ValueSource = ValueSource.MEASURED  # MODELLED: predicted, nothing ran
    threads: int = 0
    iterations: int = 0
    warmup: int = 0
    date: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)  # shapes by input layer
    flops: int = 0
    learned: int = 0
    weights: str = ""  # where they come from if not from a file
    peaks: RunPeaks | None = None
    load: Quantity = NOT_COUNTED  # % of all cores that other programs used
    overhead: Quantity = NOT_COUNTED  # % that profiling added to the run
    counters: str = ""  # why there are no hardware counters; empty if there are
    peak_memory: PeakMemory | None = None
    energy: Energy | None = None
    training: TrainingStep | None = None
    partial: str = ""
    turns: str = ""  # equal in the runs that were measured in turns, empty in others
    notes: tuple[str, ...] = ()
    checks: Mapping[str, Quantity] = field(default_factory=dict)  # differences from the results of the CPU
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.batch < 1:
            raise ValueError("batch must be 1 or more")
        if self.peak_memory is not None and self.peak_memory.operator >= len(self.operators):
            raise ValueError("peak_memory.operator must be the index of an operator")

    @cached_property
    def rows_ms(self) -> float:
        """The sum of the rows, the base of every share."""
        return sum(row.time_ms for row in self.operators)

    @property
    def bytes(self) -> int:
        return sum(row.bytes for row in self.operators)

    @property
    def roof_ms(self) -> float | None:
        """The sum of the steps at their roofs; None if one is unknown."""
        roofs = [row.roof_ms for row in self.operators if row.layers]
        return sum(r for r in roofs if r is not None) if roofs and None not in roofs else None

    @property
    def flops_per_s(self) -> float | None:
        return self.flops / self.time_ms * 1e3 if self.time_ms else None

    def share(self, row: OperatorProfile) -> float:
        """Percentage of `row` in the sum of the rows."""
        total = self.rows_ms
        return 100 * row.time_ms / total if total > 0 else 0.0

    def by_saving(self) -> list[OperatorProfile]:
        """The rows in the order of optimization priority, see `ranked`."""
        return ranked(self.operators)

    @property
    def configuration(self) -> str:
        """Engine, precision, layout, batch and size in one line."""
        parts = [self.engine, self.precision, self.layout, tr("batch {batch}", batch=self.batch), self.size]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Profile:
    """All runs of one network on one machine: the content of a profile file."""

    schema: Literal["layerwright-profile"] = field(default=SCHEMA, kw_only=True)
    version: Literal[2] = field(default=VERSION, kw_only=True)
    machine: Machine
    network: str
    runs: tuple[ProfileRun, ...]

    def title(self, run: ProfileRun) -> str:
        return tr("{run} on {chip}", run=f"{self.network}, {run.configuration}", chip=self.chip(run))

    def chip(self, run: ProfileRun) -> str:
        """The name of the processor or GPU that `run` used, or was predicted for."""
        if run.source is ValueSource.MODELLED and run.device != "cpu":
            return run.device
        return self.machine.gpu if run.device != "cpu" and self.machine.gpu else self.machine.cpu


def mean_utilization(rows: Iterable[OperatorProfile]) -> dict[str, Quantity]:
    """Utilization of several operators together, weighted by time. Unavailable if it is for one that took time."""
    timed = [row for row in rows if row.time_ms > 0 and row.layers]
    total = sum(row.time_ms for row in timed)
    found: dict[str, Quantity] = {}
    for key in UTILIZATION:
        parts = [(getattr(row, key), row.time_ms) for row in timed]
        missing = next((part for part, _ in parts if part.value is None), None)
        if missing is not None or not parts:
            found[key] = unavailable(missing.reason if missing is not None else "no operator was timed")
            continue
        same = parts[0][0].source if len({part.source for part, _ in parts}) == 1 else ValueSource.MODELLED
        mean = sum(part.value * time for part, time in parts) / total
        reasons = {part.reason for part, _ in parts}
        found[key] = Quantity(mean, same, reasons.pop() if len(reasons) == 1 else "mean weighted by time")
    return found


def check_numbers(record: object) -> None:
    """Raise ValueError if a number or quantity of a dataclass is negative, infinite, NaN, absurdly large or absurdly small."""
    for item in fields(record):  # type: ignore[arg-type]
        value = getattr(record, item.name)
        value = value.value if isinstance(value, Quantity) else value
        if isinstance(value, int | float) and not (value == 0 or SMALLEST <= value <= LARGEST):
            raise ValueError(f"{item.name} must be 0 or from {SMALLEST:.0e} to {LARGEST:.0e}")
