"""The columns of the operator table: content, unit and explanation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from designer.profiling.quantities import Quantity, ValueSource, measured, modelled, unavailable
from designer.profiling.schema import UTILIZATION, OperatorProfile, ProfileRun
from designer.texts import mark, tr, tr_data
from designer.units import UNAVAILABLE_SIGN, count, digits


@dataclass(frozen=True)
class Column:
    """A column of text, or of values shown as `value / scale`. `heat` draws a bar behind the number."""

    key: str
    header: str
    tip: str
    text: Callable[[OperatorProfile], str] | None = None
    value: Callable[[ProfileRun, OperatorProfile], Quantity] | None = None
    scale: float = 1.0
    heat: bool = False
    monospace: bool = False
    whole: bool = False  # a count, shown with all its digits


def _known(value: float | None, reason: str, missing: str, *, timed: bool = False) -> Quantity:
    if value is None:
        return unavailable(missing)
    return measured(value, reason) if timed else modelled(value, reason)


def _time(run: ProfileRun, row: OperatorProfile) -> Quantity:
    if row.alone:
        return modelled(row.time_ms, tr("measured by itself, not in the network"))
    if run.source is ValueSource.MODELLED:
        return modelled(row.time_ms, tr("predicted, not run"))
    return measured(row.time_ms, _runs_text(run.iterations))


def _runs_text(iterations: int) -> str:
    return tr("median of {iterations} runs", iterations=iterations) if iterations else tr("median")


def _saving(run: ProfileRun, row: OperatorProfile) -> Quantity:
    return _known(row.saving_ms, tr("time minus the time at the roof"), tr("the peaks of the machine are unknown"))


def _distance(run: ProfileRun, row: OperatorProfile) -> Quantity:
    return _known(row.distance, tr("time over the time at the roof"), tr("the peaks of the machine are unknown"))


def _flops(run: ProfileRun, row: OperatorProfile) -> Quantity:
    return modelled(row.flops, tr("counted from the operator declarations"))


def _bytes(run: ProfileRun, row: OperatorProfile) -> Quantity:
    return modelled(row.bytes, tr("inputs, weights and outputs, each moved once"))


def _rate(value: float | None) -> Quantity:
    return _known(value, tr("over the measured time"), tr("the time was too short to measure"))


def _used(key: str) -> Callable[[ProfileRun, OperatorProfile], Quantity]:
    def used(run: ProfileRun, row: OperatorProfile) -> Quantity:
        found: Quantity = getattr(row, key)
        return found

    return used


BOUND = {
    "compute": mark("compute"),
    "memory": mark("memory"),
    "cache": mark("cache"),
    "launch": mark("launch"),
    "": UNAVAILABLE_SIGN,
}


def bound_text(row: OperatorProfile) -> str:
    """What bounds a row, or that it is at its roof."""
    bound = tr_data(BOUND.get(row.bound, row.bound))
    return tr("{bound}, at roof", bound=bound) if row.bound and row.at_roof else bound


def _layers(row: OperatorProfile) -> str:
    return row.name or tr("outside of operators")


# The most important columns are first: a narrow dock shows the layer and its cost.
COLUMNS = (
    Column("layers", mark("Layers"), mark("Layers that ran as one step; several if the engine fused them"), _layers),
    Column(
        "summary",
        mark("Hyperparameters"),
        mark("The most important hyperparameters; all of them in the tooltip"),
        lambda row: row.summary,
    ),
    Column("time", mark("Time\nms"), mark("Median time of the step"), value=_time),
    Column(
        "share",
        mark("Share\n%"),
        mark("Share of the sum of all rows"),
        value=lambda run, row: modelled(run.share(row), tr("of the sum of all rows")),
        heat=True,
    ),
    Column(
        "saving",
        mark("Saving\nms"),
        mark(
            "Possible saving: time minus the time at the roofline. Without a sorted column, the largest saving is first, and neighbors "
            "within 5 % of each other, and equal work within its spread, rank equal and are in running order"
        ),
        value=_saving,
    ),
    Column(
        "bound",
        mark("Bound by"),
        mark("Limit of the step in the roofline model: compute, memory, cache or launch"),
        bound_text,
    ),
    Column(
        "distance",
        mark("Roof\nx"),
        mark("Time relative to the time at the roof: 1 is at the roof, below 1 the peak was measured too low"),
        value=_distance,
    ),
    Column(
        "flops", mark("Work\nMFLOP"), mark("Operations, counted like torch's FLOP counter"), value=_flops, scale=1e6
    ),
    Column(
        "bytes", mark("Moved\nMiB"), mark("Inputs, weights and outputs, each moved once"), value=_bytes, scale=2**20
    ),
    Column(
        "flops_per_s",
        mark("Rate\nGFLOP/s"),
        mark("Operations per second"),
        value=lambda run, row: _rate(row.flops_per_s),
        scale=1e9,
    ),
    Column(
        "bytes_per_s",
        mark("Flow\nGB/s"),
        mark("Bytes per second"),
        value=lambda run, row: _rate(row.bytes_per_s),
        scale=1e9,
    ),
    *(
        Column(key, f"{title}\n%", UTILIZATION[key], value=_used(key))
        for key, title in (
            ("compute_throughput", mark("Compute")),
            ("memory_throughput", mark("Memory")),
            ("tensor_core", mark("Tensor Cores")),
            ("occupancy", mark("Occupancy")),
        )
    ),
    Column(
        "memory",
        mark("Held\nMiB"),
        mark("Tensors that exist while the step runs, with all weights"),
        value=lambda run, row: _known(row.memory_bytes, tr("from the running order"), tr("not part of this profile")),
        scale=2**20,
    ),
    Column(
        "learned",
        mark("Learned"),
        mark("Number of learned values"),
        value=lambda run, row: modelled(row.learned, tr("counted from the operator declarations")),
        whole=True,
    ),
    Column("types", mark("Type"), mark("Operator types of the step"), lambda row: row.type),
    Column(
        "inputs", mark("Input"), mark("Input shapes of the step"), lambda row: ", ".join(row.inputs), monospace=True
    ),
    Column(
        "outputs", mark("Output"), mark("Output shape of the step"), lambda row: ", ".join(row.outputs), monospace=True
    ),
    Column(
        "spread",
        mark("±\nms"),
        mark("Half the interquartile range of the times"),
        value=lambda run, row: _known(row.spread_ms, tr("of the timed runs"), tr("one run has no spread"), timed=True),
    ),
    Column("kernels", mark("Kernels"), mark("Kernel names of the engine"), lambda row: row.kernels),
)


def shown(column: Column, found: Quantity) -> str:
    """The text of a cell: three digits, or `-` if the value is unavailable."""
    if found.value is None:
        return UNAVAILABLE_SIGN
    return count(round(found.value)) if column.whole else digits(found.value / column.scale)


def explained(found: Quantity) -> str:
    """The tooltip of a cell: the source of the value."""
    return f"{found.source.value}: {found.reason}" if found.reason else str(found.source.value)
