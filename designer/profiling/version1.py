"""Reads version 1 of the profile schema, in which a file was a list of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from designer.profiling.machine import Machine
from designer.profiling.quantities import Quantity
from designer.profiling.schema import NOT_COUNTED, Bound, OperatorProfile, Profile, ProfileRun, RunPeaks

Quantities = Mapping[str, Quantity]


@dataclass(frozen=True)
class GroupV1:
    layers: tuple[str, ...]
    types: tuple[str, ...]
    summary: str
    parameters: Mapping[str, Mapping[str, str]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    figures: Quantities
    utilisation: Quantities
    bound: Bound = ""
    what: str = ""

    def __post_init__(self) -> None:
        if not self.layers:
            raise ValueError("layers is empty")
        if "time" not in self.figures:
            raise ValueError("figures has no time")


@dataclass(frozen=True)
class PeaksV1:
    compute: Quantity
    cache: Quantity
    memory: Quantity
    cache_bytes: int
    foreign: Quantity
    date: str
    others: Quantities = field(default_factory=dict)


@dataclass(frozen=True)
class RecordV1:
    network: str
    date: str
    machine: Machine
    options: Mapping[str, str]
    iterations: int
    warmup: int
    inputs: Mapping[str, str]
    total: Quantities
    groups: tuple[GroupV1, ...]
    peaks: PeaksV1 | None = None
    weights: str = ""
    notes: tuple[str, ...] = ()
    checks: Quantities = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)


def profile_of(records: tuple[RecordV1, ...]) -> Profile:
    """The records as one profile. Raises ValueError if they are of several networks or machines."""
    first = records[0]
    if any((record.network, record.machine.cpu) != (first.network, first.machine.cpu) for record in records):
        raise ValueError("the records are of several networks or machines; save them in one file each")
    return Profile(first.machine, first.network, tuple(_run(record) for record in records))


def _run(record: RecordV1) -> ProfileRun:
    options = record.options
    sizes = [shape.split(" x ") for shape in record.inputs.values()]
    image = next((size for size in sizes if len(size) == 4), None)
    batch = sizes[0][0] if sizes else "1"
    threads = options.get("threads", "0")
    return ProfileRun(
        engine=options.get("engine", "?"),
        precision=options.get("precision", "?"),
        layout=options.get("layout", "?"),
        device=options.get("device", "cpu"),
        batch=int(batch) if batch.isdigit() and int(batch) else 1,
        size=f"{image[3]}x{image[2]}" if image else "",
        time_ms=_ms(record.total.get("time")),
        spread_ms=_ms(record.total.get("spread")),
        operators=tuple(_operator(group) for group in record.groups),
        threads=int(threads) if threads.isdigit() else 0,
        iterations=record.iterations,
        warmup=record.warmup,
        date=record.date,
        inputs=record.inputs,
        flops=_whole(record.total, "flops"),
        learned=_whole(record.total, "parameters"),
        weights=record.weights,
        peaks=_peaks(record.peaks) if record.peaks is not None else None,
        load=record.peaks.foreign if record.peaks is not None else NOT_COUNTED,
        notes=record.notes,
        checks=record.checks,
        provenance=record.provenance,
    )


def _operator(group: GroupV1) -> OperatorProfile:
    saving = _ms(group.figures.get("saving"), signed=True)
    used = group.utilisation
    return OperatorProfile(
        layers=group.layers,
        type=" + ".join(group.types),
        time_ms=_ms(group.figures["time"]) or 0.0,
        spread_ms=_ms(group.figures.get("spread")),
        summary=group.summary,
        parameters=group.parameters,
        inputs=group.inputs,
        outputs=group.outputs,
        flops=_whole(group.figures, "flops"),
        bytes=_whole(group.figures, "bytes"),
        learned=_whole(group.figures, "parameters"),
        kernels=group.what,
        bound=group.bound,
        roof_ms=_ms(group.figures.get("roof")),
        saving_ms=None if saving is None else max(saving, 0.0),
        tensor_core=used.get("tensor_cores", NOT_COUNTED),
        memory_throughput=used.get("memory", NOT_COUNTED),
        occupancy=used.get("occupancy", NOT_COUNTED),
        compute_throughput=used.get("compute", NOT_COUNTED),
    )


def _peaks(peaks: PeaksV1) -> RunPeaks:
    return RunPeaks(
        peaks.compute, peaks.memory, peaks.cache, peaks.cache_bytes, NOT_COUNTED, dict(peaks.others), peaks.date
    )


def _ms(found: Quantity | None, *, signed: bool = False) -> float | None:
    """A time in seconds as milliseconds."""
    if found is None or found.value is None:
        return None
    if found.value < 0 and not signed:
        raise ValueError("a time must not be negative")
    return found.value * 1e3


def _whole(found: Quantities, key: str) -> int:
    value = found[key].value if key in found else None
    return round(value) if value is not None else 0
