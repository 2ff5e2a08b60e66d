"""The columns of the operator table: content, unit and explanation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from designer.profiling.figures import Figure, Origin
from designer.profiling.report import UTILISATION, Group
from designer.texts import mark, tr, tr_data
from designer.units import MODELLED_SIGN, UNAVAILABLE_SIGN, digits


@dataclass(frozen=True)
class Column:
    """A column of text, or of values shown as `value / scale`. `heat` draws a bar behind the number."""

    key: str
    header: str
    tip: str
    text: Callable[[Group], str] | None = None
    figure: Callable[[Group], Figure | None] | None = None
    scale: float = 1.0
    heat: bool = False
    monospace: bool = False


def _named(name: str) -> Callable[[Group], Figure | None]:
    return lambda group: group.figures.get(name)


def _used(name: str) -> Callable[[Group], Figure | None]:
    return lambda group: group.utilisation.get(name)


_BOUND = {"compute": mark("compute"), "memory": mark("memory"), "cache": mark("cache"), "": UNAVAILABLE_SIGN}

# The most important columns are first: a narrow dock shows the layer and its cost.
COLUMNS = (
    Column("layers", "Layers", "Layers that ran as one step; several if the engine fused them", lambda g: g.name),
    Column("summary", "Parameters", "The most important parameters; all of them in the tooltip", lambda g: g.summary),
    Column("time", "Time\nms", "Median time of the step", figure=_named("time"), scale=1e-3),
    Column("share", "Share\n%", "Share of the total time of all steps", figure=_named("share"), heat=True),
    Column(
        "saving",
        "Saving\nms",
        "Possible saving: measured time minus the time at the roofline",
        figure=_named("saving"),
        scale=1e-3,
    ),
    Column(
        "bound",
        "Roof",
        "Limit of the step according to the roofline model: compute, memory or cache",
        lambda g: tr_data(_BOUND.get(g.bound, g.bound)),
    ),
    Column("flops", "Work\nMFLOP", "Operations, counted like torch's FLOP counter", figure=_named("flops"), scale=1e6),
    Column(
        "bytes",
        "Moved\nMiB",
        "Inputs, weights and outputs, each read or written once",
        figure=_named("bytes"),
        scale=2**20,
    ),
    Column("compute_rate", "Rate\nGFLOP/s", "Operations per second", figure=_named("compute_rate"), scale=1e9),
    Column("bandwidth", "Flow\nGB/s", "Bytes per second", figure=_named("bandwidth"), scale=1e9),
    *(
        Column(key, f"{title}\n%", UTILISATION[key], figure=_used(key))
        for key, title in (
            ("compute", "Compute"),
            ("memory", "Memory"),
            ("tensor_cores", "Tensor Cores"),
            ("occupancy", "Occupancy"),
        )
    ),
    Column("types", "Type", "Operator types of the step", lambda g: " + ".join(g.types)),
    Column("inputs", "Input", "Input shapes of the step", lambda g: ", ".join(g.inputs), monospace=True),
    Column("outputs", "Output", "Output shape of the step", lambda g: ", ".join(g.outputs), monospace=True),
    Column("spread", "±\nms", "Half the interquartile range of the times", figure=_named("spread"), scale=1e-3),
    Column("what", "Kernels", "Kernel names of the engine", lambda g: g.what),
)


def shown(figure: Figure | None, scale: float) -> str:
    """The text of a cell: three digits, `~` for modelled, `-` for unavailable."""
    if figure is None or figure.value is None:
        return UNAVAILABLE_SIGN
    sign = MODELLED_SIGN if figure.source is Origin.MODELLED else ""
    return sign + digits(figure.value / scale)


def explained(figure: Figure | None) -> str:
    """The tooltip of a cell: the source of the value."""
    if figure is None:
        return tr("unavailable: not part of this record")
    return f"{figure.source.value}: {figure.reason}" if figure.reason else str(figure.source.value)
