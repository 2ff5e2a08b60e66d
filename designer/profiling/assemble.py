"""Measured times and declared costs become a record. Knows no engine: whoever measures hands in samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from designer.operators.api import Cost
from designer.profiling.cost import CostTable
from designer.profiling.figures import Figure, Origin, measured, modelled, ratio, unavailable
from designer.profiling.machine import Machine
from designer.profiling.peaks import Peaks
from designer.profiling.report import UTILISATION, Figures, Group, Record
from designer.profiling.roofline import place, spread
from designer.runtime.engine_api import Sample
from designer.runtime.provenance import Provenance, written_at

ON_CPU = "the run used the processor; only NVIDIA GPUs have {what}"
NO_COUNTERS = "no hardware counters were read; times come from CUDA events"


@dataclass(frozen=True)
class Run:
    """What else the record says of a run."""

    network: str
    options: Mapping[str, str]
    iterations: int
    warmup: int
    inputs: Mapping[str, str]
    weights_note: str = ""
    notes: tuple[str, ...] = ()
    checks: Mapping[str, Figure] = field(default_factory=dict)
    counters: Mapping[tuple[str, ...], Figures] = field(default_factory=dict)
    no_counters: str = NO_COUNTERS
    provenance: Provenance | None = None


def assemble(
    table: CostTable, samples: Iterable[Sample], whole: Sequence[float], peaks: Peaks | None, machine: Machine, run: Run
) -> Record:
    """The record of a run; groups are sorted by what would be saved at the roof, largest first."""
    on_gpu = run.options.get("device", "cpu") != "cpu"
    groups = [_group(table, s, peaks, run, on_gpu) for s in samples if s.seconds]
    summed = sum(g.figures["time"].value or 0.0 for g in groups)
    groups = [_with_share(g, summed) for g in groups]
    groups.sort(key=lambda g: -(g.figures["saving"].value or 0.0))
    time = measured(median(whole), "s", f"median of {len(whole)} runs of the whole network")
    ran = {n for g in groups for n in g.layers}
    absent = [n for n, row in table.rows.items() if n not in ran and row.sources and row.type != "output"]
    notes = list(run.notes)
    if absent:
        notes.append(f"no work of their own in this run: {', '.join(absent)}")
    if peaks is not None and peaks.note:
        notes.append(peaks.note)
    return Record(
        network=run.network,
        date=written_at(),
        machine=machine,
        options=dict(run.options),
        iterations=run.iterations,
        warmup=run.warmup,
        inputs=dict(run.inputs),
        total=_total(table, groups, time, list(whole), summed),
        utilisation=mean_utilisation(groups, time.value, "whole network"),
        groups=tuple(groups),
        peaks=peaks,
        weights=run.weights_note,
        notes=tuple(notes),
        checks=dict(run.checks),
        provenance=run.provenance.texts() if run.provenance is not None else {},
    )


def _group(table: CostTable, sample: Sample, peaks: Peaks | None, run: Run, on_gpu: bool) -> Group:
    layers = sample.layers
    cost = table.group(layers)
    time = measured(median(sample.seconds), "s", f"median of {len(sample.seconds)}")
    placed = place(time, cost.flops, cost.bytes_read + cost.bytes_written, peaks)
    rows = [table.rows[n] for n in layers if n in table.rows]
    inside = set(layers)
    counted = run.counters.get(layers, {})
    missing = run.no_counters if on_gpu else ON_CPU
    utilisation = {
        "tensor_cores": counted.get("tensor_cores") or unavailable("%", missing.format(what="Tensor Cores")),
        "memory": counted.get("memory") or placed.memory,
        "occupancy": counted.get("occupancy")
        or unavailable("%", missing.format(what="streaming multiprocessors (SM)")),
        "compute": placed.compute,
    }
    return Group(
        layers=layers,
        types=tuple(dict.fromkeys(r.type for r in rows)),
        summary=rows[0].summary if len(rows) == 1 else "; ".join(r.summary for r in rows if r.summary),
        parameters={r.layer: dict(r.parameters) for r in rows},
        inputs=tuple(str(t) for r in rows for s, t in zip(r.sources, r.inputs, strict=False) if s.layer not in inside),
        outputs=tuple(str(t) for t in (rows[-1].outputs if rows else ())),
        figures={
            "time": time,
            "spread": spread(sample.seconds),
            **_work(cost),
            "compute_rate": placed.achieved_compute,
            "bandwidth": placed.achieved_bandwidth,
            "intensity": placed.intensity,
            "roof": placed.roof,
            "saving": placed.saving,
        },
        utilisation=utilisation,
        bound=placed.bound,
        what=sample.what,
    )


def _work(cost: Cost) -> dict[str, Figure]:
    reason = "by the declaration of the operators"
    return {
        "flops": modelled(cost.flops, "FLOP", reason),
        "bytes": modelled(cost.bytes_read + cost.bytes_written, "B", "inputs, weights and outputs, each moved once"),
        "parameters": modelled(cost.parameters, "", reason),
    }


def _with_share(group: Group, summed: float) -> Group:
    share = ratio(group.figures["time"], measured(summed, "s"), "%", "of the sum of all steps", factor=100)
    return replace(group, figures={**group.figures, "share": share})


def _total(
    table: CostTable, groups: Sequence[Group], time: Figure, whole: list[float], summed: float
) -> dict[str, Figure]:
    flops = sum(g.figures["flops"].value or 0.0 for g in groups)
    moved = sum(g.figures["bytes"].value or 0.0 for g in groups)
    cost = table.total()
    roofs = [g.figures["roof"] for g in groups]
    lacking = next((r for r in roofs if r.value is None), None)
    roof = lacking if lacking is not None else modelled(sum(r.value or 0.0 for r in roofs), "s", "sum over the steps")
    work = modelled(flops, "FLOP", "by the declaration")
    traffic = modelled(moved, "B", "each step moves its tensors once")
    saving = (
        unavailable("s", roof.reason)
        if roof.value is None or time.value is None
        else modelled(time.value - roof.value, "s", "measured time minus the steps' time at the roof")
    )
    return {
        "time": time,
        "spread": spread(whole),
        "steps": measured(summed, "s", "sum of the steps' medians, timed one by one: not the same as the whole"),
        "flops": modelled(cost.flops, "FLOP", "by the declaration of the operators"),
        "bytes": traffic,
        "parameters": modelled(cost.parameters, "", "by the declaration of the operators"),
        "compute_rate": ratio(work, time, "FLOP/s", "operations over the measured time"),
        "bandwidth": ratio(traffic, time, "B/s", "bytes over the measured time"),
        "roof": roof,
        "saving": saving,
    }


def mean_utilisation(groups: Sequence[Group], span: float | None, what: str) -> dict[str, Figure]:
    """Utilization of several groups together: each weighted by its time, over `span` seconds (None: their own sum)."""
    total = span if span is not None else sum(g.figures["time"].value or 0.0 for g in groups)
    found: dict[str, Figure] = {}
    for key in UTILISATION:
        figures = [g.utilisation[key] for g in groups if key in g.utilisation]
        missing = next((f for f in figures if f.value is None), None)
        if not figures or total <= 0.0:
            found[key] = unavailable("%", "nothing was timed")
        elif missing is not None:
            found[key] = unavailable("%", missing.reason)
        else:
            busy = sum((g.utilisation[key].value or 0.0) * (g.figures["time"].value or 0.0) for g in groups)
            reason = f"{what}: mean over the steps, weighted by time"
            make = measured if all(f.source is Origin.MEASURED for f in figures) else modelled
            found[key] = make(busy / total, "%", reason)
    return found
