"""The roof: the shortest time that a machine's measured peaks allow for some work, and how far a run is from it.

Nothing is clipped: a run above the roof means that the data was in a faster memory than modelled, or that the peak was
measured too low, and both are worth seeing.
"""

from __future__ import annotations

from dataclasses import dataclass

from designer.profiling.figures import Figure, measured, modelled, ratio, unavailable
from designer.profiling.peaks import Peaks


@dataclass(frozen=True)
class Placed:
    """Some work under the roof. `bound` is "compute", "memory", "cache" or "" (unknown); figures as `Figure`."""

    bound: str
    roof: Figure  # s
    saving: Figure  # s: time - roof; below zero where the run beat the roof
    achieved_compute: Figure  # FLOP/s
    achieved_bandwidth: Figure  # B/s
    intensity: Figure  # FLOP/B
    compute: Figure  # % of the compute peak
    memory: Figure  # % of the bandwidth peak that applies


def place(time: Figure, flops: int, moved: int, peaks: Peaks | None) -> Placed:
    """Put work of `flops` and `moved` bytes that took `time` under the roof of `peaks`."""
    work, traffic = modelled(flops, "FLOP"), modelled(moved, "B")
    rate = ratio(work, time, "FLOP/s", "operations by the declaration over the measured time")
    flow = ratio(traffic, time, "B/s", "bytes of the tensors and weights over the measured time")
    intensity = ratio(work, traffic, "FLOP/B", "operations over bytes, both by the declaration")
    if peaks is None:
        none = "the machine's peaks were not measured"
        return Placed(
            "",
            unavailable("s", none),
            unavailable("s", none),
            rate,
            flow,
            intensity,
            unavailable("%", none),
            unavailable("%", none),
        )
    bandwidth, where = peaks.bandwidth_for(moved)
    compute_peak = peaks.compute
    compute = ratio(rate, compute_peak, "%", "achieved FLOP/s over the measured peak", factor=100)
    memory = ratio(flow, bandwidth, "%", f"achieved bytes a second over the measured peak of the {where}", factor=100)
    if compute_peak.value is None or bandwidth.value is None:
        reason = compute_peak.reason if compute_peak.value is None else bandwidth.reason
        return Placed("", unavailable("s", reason), unavailable("s", reason), rate, flow, intensity, compute, memory)
    by_compute, by_memory = flops / compute_peak.value, moved / bandwidth.value
    roof = modelled(
        max(by_compute, by_memory), "s", "the longer of operations at the compute peak and bytes at the bandwidth"
    )
    saving = (
        unavailable("s", time.reason)
        if time.value is None or roof.value is None
        else modelled(time.value - roof.value, "s", "measured time minus time at the roof")
    )
    bound = "compute" if by_compute > by_memory else where
    return Placed(bound, roof, saving, rate, flow, intensity, compute, memory)


def spread(seconds: list[float]) -> Figure:
    """Half the distance between the quartiles of repeated times: robust against a few disturbed runs."""
    if len(seconds) < 2:
        return unavailable("s", "one run has no spread")
    ordered = sorted(seconds)
    return measured((quantile(ordered, 0.75) - quantile(ordered, 0.25)) / 2, "s", "half the interquartile range")


def quantile(ordered: list[float], part: float) -> float:
    """Linear interpolation between the sorted values."""
    place_ = part * (len(ordered) - 1)
    low = int(place_)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place_ - low)
