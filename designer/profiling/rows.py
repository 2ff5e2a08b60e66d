"""Rows of a profile from the times of an engine, the costs of the layers, and the peaks of the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from designer.profiling.cost import CostTable
from designer.profiling.live_memory import live_tensors
from designer.profiling.quantities import Quantity, measured, unavailable
from designer.profiling.roofline import place, spread
from designer.profiling.schema import OperatorProfile, PeakMemory, RunPeaks
from designer.runtime.engine_api import Sample

OUTSIDE = "not in any operator"
Counted = Mapping[tuple[str, ...], Mapping[str, Quantity]]  # utilization by the layers of a step


def operator_rows(
    table: CostTable, samples: Sequence[Sample], peaks: RunPeaks, counted: Counted, not_counted: str
) -> tuple[OperatorProfile, ...]:
    """One row per step that ran, in running order.

    `not_counted` is the reason why there are no counters. If it is empty, a step that is not in `counted` launched no kernel.
    """
    timed = [sample for sample in samples if sample.seconds and sample.layers]
    live = live_tensors(table, [sample.layers for sample in timed])
    without = unavailable(not_counted) if not_counted else measured(0.0, "the step launched no kernel")
    return tuple(
        _row(table, sample, peaks, sum(held.values()), counted.get(sample.layers, {}), without)
        for sample, held in zip(timed, live, strict=True)
    )


def _row(
    table: CostTable,
    sample: Sample,
    peaks: RunPeaks,
    held: int,
    counted: Mapping[str, Quantity],
    without: Quantity,
) -> OperatorProfile:
    layers = sample.layers
    cost = table.group(layers)
    time_ms, spread_ms = median(sample.seconds) * 1e3, spread(sample.seconds)
    moved = cost.bytes_read + cost.bytes_written
    placed = place(time_ms, cost.flops, moved, peaks)
    rows = [table.rows[name] for name in layers if name in table.rows]
    inside = set(layers)
    memory = counted.get("memory_throughput")
    return OperatorProfile(
        layers=layers,
        type=" + ".join(dict.fromkeys(row.type for row in rows)),
        time_ms=time_ms,
        spread_ms=spread_ms,
        summary=rows[0].summary if len(rows) == 1 else "; ".join(row.summary for row in rows if row.summary),
        parameters={row.layer: dict(row.parameters) for row in rows},
        inputs=tuple(
            str(kind) for row in rows for s, kind in zip(row.sources, row.inputs, strict=False) if s.layer not in inside
        ),
        outputs=tuple(str(kind) for kind in (rows[-1].outputs if rows else ())),
        flops=cost.flops,
        bytes=moved,
        learned=cost.parameters,
        memory_bytes=held,
        kernels=sample.what,
        bound=placed.bound,
        roof_ms=placed.roof_ms,
        saving_ms=placed.saving_ms,
        tensor_core=counted.get("tensor_core", without),
        memory_throughput=placed.memory if memory is None or memory.value is None else memory,
        occupancy=counted.get("occupancy", without),
        compute_throughput=placed.compute,
    )


def outside_row(time_ms: float, spread_ms: float | None, kernels: str = "") -> OperatorProfile:
    """The row of time that belongs to no operator: conversion of inputs and outputs, scheduling, kernels of no layer."""
    none = unavailable("this time is not in any operator")
    return OperatorProfile(
        (), "", time_ms, spread_ms, summary=OUTSIDE, kernels=kernels,
        tensor_core=none, memory_throughput=none, occupancy=none, compute_throughput=none,
    )  # fmt: skip


def peak_memory(table: CostTable, rows: Sequence[OperatorProfile]) -> PeakMemory | None:
    """The step with the most memory, and the tensors that exist then; None without steps."""
    steps = [row.layers for row in rows if row.layers]
    if not steps:
        return None
    live = live_tensors(table, steps)
    at = max(range(len(live)), key=lambda number: sum(live[number].values()))
    largest_first = dict(sorted(live[at].items(), key=lambda item: -item[1]))
    return PeakMemory(sum(largest_first.values()), at, largest_first)
