"""Predicts the time of a network that was not run: on this machine by calibrated efficiencies, on others by data sheets.

The time of a layer is the time at the roof over the efficiency that the same kind of operator with similar sizes reached at
calibration, plus the overhead of launching it. Everything that is predicted is marked as modelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import dist
from typing import Protocol

from designer.profiling.cost import CostTable
from designer.profiling.devices import DataSheet
from designer.profiling.layer_work import LayerWork, layer_works
from designer.profiling.quantities import ValueSource, modelled
from designer.profiling.roofline import place
from designer.profiling.rows import peak_memory
from designer.profiling.schema import OperatorProfile, ProfileRun, RunPeaks
from designer.runtime.provenance import written_at

NEIGHBORS = 3
TYPICAL_COMPUTE = 0.6  # share of the peaks of a data sheet that tuned kernels reach
TYPICAL_MEMORY = 0.8
GPU_LAUNCH_MS = 0.004
CPU_LAUNCH_MS = 0.002


class DeviceModel(Protocol):
    """What predicts times. `reason` says where its values come from."""

    @property
    def name(self) -> str: ...

    @property
    def reason(self) -> str: ...

    def work_ms(self, work: LayerWork) -> float: ...

    def peaks(self) -> RunPeaks: ...

    def fuses(self, row_type: str, producer_type: str) -> bool: ...


@dataclass(frozen=True)
class CalibrationPoint:
    """The measured time of one layer, without its launch, in ms per unit of work: per GFLOP if it has FLOPs, per MB otherwise."""

    sizes: tuple[float, ...]
    ms_per_unit: float


@dataclass(frozen=True)
class CalibratedModel:
    """This machine with an engine, as `calibration.py` measured it. `fused` are the types that run for free after a convolution."""

    name: str
    reason: str
    kinds: Mapping[str, tuple[CalibrationPoint, ...]]
    launch_ms: float
    measured_peaks: RunPeaks
    fused: tuple[str, ...] = ()
    run_ms: float = 0.0  # of a run, besides its layers
    date: str = ""
    notes: tuple[str, ...] = field(default=())

    def work_ms(self, work: LayerWork) -> float:
        points = self.kinds.get(work.kind)
        if points is None or (work.flops > 0) != (len(points[0].sizes) > 1):
            points = self.kinds["convolution" if work.flops else "element_wise"]
        units = work.flops * 1e-9 if work.flops else work.bytes * 1e-6
        return units * _interpolated(points, work.sizes) + self.launch_ms

    def peaks(self) -> RunPeaks:
        return self.measured_peaks

    def fuses(self, row_type: str, producer_type: str) -> bool:
        return row_type in self.fused and "convolution" in producer_type


@dataclass(frozen=True)
class DataSheetModel:
    """A machine by its data sheet, at the share of the peaks that tuned kernels typically reach."""

    sheet: DataSheet
    precision: str

    @property
    def name(self) -> str:
        return self.sheet.name

    @property
    def reason(self) -> str:
        return (
            f"data sheet of {self.sheet.name} ({self.sheet.source}), at {TYPICAL_COMPUTE:.0%} of the compute peak and "
            f"{TYPICAL_MEMORY:.0%} of the bandwidth"
        )

    def work_ms(self, work: LayerWork) -> float:
        flops = self._flops_per_s * TYPICAL_COMPUTE
        bytes_ = self.sheet.memory_bytes_per_s * TYPICAL_MEMORY
        return max(work.flops / flops, work.bytes / bytes_) * 1e3 + self._launch_ms

    def peaks(self) -> RunPeaks:
        reason = self.sheet.source
        bandwidth = modelled(self.sheet.memory_bytes_per_s, reason)
        return RunPeaks(
            modelled(self._flops_per_s, reason),
            bandwidth,
            bandwidth,
            0,
            modelled(self._launch_ms, "typical"),
            note=reason,
        )

    def fuses(self, row_type: str, producer_type: str) -> bool:
        return row_type in ("batch_normalization", "relu", "activation") and "convolution" in producer_type

    @property
    def _flops_per_s(self) -> float:
        known = self.sheet.flops_per_s
        return known.get(self.precision, known["fp32"])

    @property
    def _launch_ms(self) -> float:
        return GPU_LAUNCH_MS if self.sheet.kind == "gpu" else CPU_LAUNCH_MS


def predict(table: CostTable, model: DeviceModel, base: ProfileRun) -> ProfileRun:
    """The predicted run of a network with the costs in `table`; `base` gives the configuration."""
    times: dict[str, float] = {}
    for work in layer_works(table):
        times[work.layer] = times.get(work.layer, 0.0) + (0.0 if _fused(table, model, work) else model.work_ms(work))
    rows = tuple(_row(table, name, ms, model) for name, ms in times.items())
    return ProfileRun(
        engine=base.engine,
        precision=base.precision,
        layout=base.layout,
        device=base.device if isinstance(model, CalibratedModel) else model.name,
        batch=table.batch,
        size=base.size,
        time_ms=sum(times.values()) + getattr(model, "run_ms", 0.0),
        spread_ms=None,
        operators=rows,
        source=ValueSource.MODELLED,
        threads=base.threads,
        date=written_at(),
        inputs=base.inputs,
        flops=table.total().flops,
        learned=table.total().parameters,
        peaks=model.peaks(),
        peak_memory=peak_memory(table, rows),
        notes=(f"modelled, nothing ran: {model.reason}",),
    )


def _fused(table: CostTable, model: DeviceModel, work: LayerWork) -> bool:
    """Whether the engine runs this work inside the kernel of its producer."""
    row = table.rows[work.layer]
    attached = work.kind != row.type and row.parameters.get("activation") and row.type != "activation"
    if attached and not work.flops and "convolution" in row.type:
        return model.fuses("activation", row.type)
    producer = row.sources[0].layer if row.sources else ""
    if attached or producer not in table.rows or len(table.graph.consumers(producer)) > 1:
        return False
    before = table.rows[producer]
    if row.type in ("activation", "relu") and before.type == "batch_normalization" and before.sources:
        before = table.rows.get(before.sources[0].layer, before)
    return not before.parameters.get("activation") and model.fuses(row.type, before.type)


def _row(table: CostTable, name: str, time_ms: float, model: DeviceModel) -> OperatorProfile:
    row = table.rows[name]
    cost = table.group([name])
    moved = cost.bytes_read + cost.bytes_written
    placed = place(time_ms, cost.flops, moved, model.peaks())
    return OperatorProfile(
        layers=(name,),
        type=row.type,
        time_ms=time_ms,
        summary=row.summary,
        parameters={name: dict(row.parameters)},
        inputs=tuple(str(kind) for kind in row.inputs),
        outputs=tuple(str(kind) for kind in row.outputs),
        flops=cost.flops,
        bytes=moved,
        learned=cost.parameters,
        bound=placed.bound,
        roof_ms=placed.roof_ms,
        saving_ms=placed.saving_ms,
        memory_throughput=placed.memory,
        compute_throughput=placed.compute,
    )


def _interpolated(points: Sequence[CalibrationPoint], sizes: tuple[float, ...]) -> float:
    """The mean of the nearest points, weighted by the inverse square of their distance in `sizes`."""
    if any(len(point.sizes) != len(sizes) for point in points):
        return points[0].ms_per_unit
    nearest = sorted((dist(point.sizes, sizes), point.ms_per_unit) for point in points)[:NEIGHBORS]
    weights = [1 / (distance + 0.05) ** 2 for distance, _ in nearest]
    return sum(weight * ms for weight, (_, ms) in zip(weights, nearest, strict=True)) / sum(weights)
