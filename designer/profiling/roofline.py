"""The roof: the shortest time that measured peaks allow for some work, and how far a run is from it.

There are up to four roofs: operations at the compute peak, bytes at the bandwidth of the last-level cache or of DRAM, and the
overhead of launching a step (Williams, Waterman and Patterson, "Roofline", 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from designer.profiling.quantities import Quantity, modelled, unavailable
from designer.profiling.schema import Bound, RunPeaks

AT_ROOF = 0.03  # relative difference that counts as none
NO_PEAKS = "the peaks of the machine were not measured"


@dataclass(frozen=True)
class Placed:
    """Some work under the roof. `compute` and `memory` are percentages of the peak, above 100 if the peak was measured too low."""

    bound: Bound
    roof_ms: float | None
    saving_ms: float | None
    compute: Quantity
    memory: Quantity


def place(time_ms: float, flops: int, moved: int, peaks: RunPeaks) -> Placed:
    """Place work of `flops` operations and `moved` bytes that took `time_ms` under the roof of `peaks`."""
    bandwidth, where = bandwidth_for(moved, peaks)
    compute = _percentage(flops, time_ms, peaks.flops_per_s, "operations per second over the measured peak")
    memory = _percentage(moved, time_ms, bandwidth, f"bytes per second over the measured peak of the {where}")
    if not peaks.flops_per_s.value or not bandwidth.value:
        return Placed("", None, None, compute, memory)
    limits: dict[Bound, float] = {
        "compute": flops / peaks.flops_per_s.value * 1e3,
        where: moved / bandwidth.value * 1e3,
        "launch": peaks.launch_ms.value or 0.0,
    }
    bound = max(limits, key=lambda key: limits[key])
    roof_ms = limits[bound]
    if roof_ms <= 0.0:
        return Placed("", None, None, compute, memory)
    return Placed(bound, roof_ms, saving_at(time_ms, roof_ms), compute, memory)


def saving_at(time_ms: float, roof_ms: float) -> float:
    """What reaching the roof would save in ms; 0 for a step at the roof."""
    saving_ms = time_ms - roof_ms
    return saving_ms if saving_ms > AT_ROOF * time_ms else 0.0


def bandwidth_for(moved: int, peaks: RunPeaks) -> tuple[Quantity, Bound]:
    """The bandwidth for work that moves `moved` bytes: that of the cache if they fit half of it."""
    if peaks.cache_bytes_per_s.value is not None and 0 < moved <= peaks.cache_bytes // 2:
        return peaks.cache_bytes_per_s, "cache"
    return peaks.memory_bytes_per_s, "memory"


def above_roof(time_ms: float, spread_ms: float | None, roof_ms: float | None) -> bool:
    """Whether a step was faster than the measured peaks allow."""
    return roof_ms is not None and time_ms + (spread_ms or 0.0) < (1 - AT_ROOF) * roof_ms


def _percentage(amount: int, time_ms: float, peak: Quantity, reason: str) -> Quantity:
    if peak.value is None:
        return unavailable(peak.reason)
    if time_ms <= 0.0 or peak.value <= 0.0:
        return unavailable("the time was too short to measure")
    return modelled(1e5 * amount / time_ms / peak.value, reason)


def spread(values: Sequence[float]) -> float | None:
    """Half the interquartile range in ms of times in s: robust against a few disturbed runs. None for one time."""
    if len(values) < 2:
        return None
    ordered = sorted(values)
    return (quantile(ordered, 0.75) - quantile(ordered, 0.25)) / 2 * 1e3


def quantile(ordered: Sequence[float], part: float) -> float:
    """Linear interpolation between sorted values."""
    position = part * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
