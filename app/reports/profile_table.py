"""A profile as lines and tables for a terminal, steps with the largest possible saving first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table

from designer.graph.graph import Graph
from designer.profiling.advice import Advisable, advise
from designer.profiling.difference import RunDifference
from designer.profiling.quantities import Quantity, text
from designer.profiling.rows import OUTSIDE
from designer.profiling.schema import (
    TIE,
    UTILIZATION,
    OperatorProfile,
    Profile,
    ProfileRun,
    TrainingStep,
    Verdict,
    mean_utilization,
)
from designer.profiling.sweep import Axis, Sweep, sweeps
from designer.texts import mark, tr, tr_data
from designer.units import UNAVAILABLE_SIGN, digits, duration, quantity

Cell = Callable[[ProfileRun, OperatorProfile], str]


AXES: dict[Axis, str] = {"batch": mark("batch"), "size": mark("size")}
VERDICTS: dict[Verdict, str] = {
    "input": mark("input-bound"),
    "compute": mark("compute-bound"),
    "memory": mark("memory-bound"),
    "waiting": mark("waiting"),
}


def name_of(row: OperatorProfile) -> str:
    return row.name or f"({tr_data(OUTSIDE)})"


def saving_text(row: OperatorProfile) -> str:
    """The saving at the roof; "at roof" where there is none."""
    if row.saving_ms is None:
        return UNAVAILABLE_SIGN
    return tr("at roof") if row.at_roof else duration(row.saving_ms)


def rate_text(value: float | None, unit: str) -> str:
    return UNAVAILABLE_SIGN if not value else quantity(value, unit)


COLUMNS: tuple[tuple[str, Cell], ...] = (
    ("hyperparameters", lambda _, row: row.summary if row.layers else ""),
    ("type", lambda _, row: row.type),
    ("output", lambda _, row: ", ".join(row.outputs)),
    ("time", lambda _, row: duration(row.time_ms)),
    ("±", lambda _, row: UNAVAILABLE_SIGN if row.spread_ms is None else duration(row.spread_ms)),
    ("share", lambda run, row: quantity(run.share(row), "%")),
    ("FLOP", lambda _, row: quantity(row.flops, "FLOP") if row.flops else UNAVAILABLE_SIGN),
    ("rate", lambda _, row: rate_text(row.flops_per_s, "FLOP/s")),
    ("moved", lambda _, row: quantity(row.bytes, "B") if row.bytes else UNAVAILABLE_SIGN),
    ("bandwidth", lambda _, row: rate_text(row.bytes_per_s, "B/s")),
    ("held", lambda _, row: quantity(row.memory_bytes, "B") if row.memory_bytes is not None else UNAVAILABLE_SIGN),
    ("bound by", lambda _, row: row.bound or UNAVAILABLE_SIGN),
    ("x roof", lambda _, row: digits(row.distance) if row.distance is not None else UNAVAILABLE_SIGN),
    ("saving", lambda _, row: saving_text(row)),
)
"""Titles and texts of the columns after the layers. "x roof" is the time relative to the time at the roof."""
WORDS = 3  # the first columns are texts, the others numbers
ESSENTIAL = ("hyperparameters", "time", "share", "FLOP", "bound by", "saving")  # on narrow terminals
WIDE = 200  # characters that all columns need


def order_text() -> str:
    """How the rows of a table are ordered."""
    return tr(
        "Largest possible saving first. Neighbors within {share} % of each other, and equal work within its spread, rank equal and are in "
        "running order.",
        share=digits(100 * TIE),
    )


def lines(profile: Profile, width: int = WIDE) -> Iterator[RenderableType]:
    """All runs of a profile for a terminal of `width` characters."""
    for run in profile.runs:
        yield profile.title(run) + (f" - {run.weights}" if run.weights else "")
        if run.partial:
            yield tr("partial: {reason}", reason=run.partial)
        yield operators_table(run, width)
        yield order_text()
        yield summary(run)
        yield from utilization_lines(run)
        if run.training is not None:
            yield training_line(run.training)
        yield from run.notes
    for sweep in (*sweeps(profile.runs, "batch"), *sweeps(profile.runs, "size")):
        yield from sweep_lines(sweep)


def operators_table(run: ProfileRun, width: int = WIDE) -> Table:
    """The operators of a run, in the order of optimization priority. A narrow table has the essential columns only."""
    table = Table(width=None if width < WIDE else max(width, WIDE))
    table.add_column(tr("layers (fused ones together)"), min_width=14, ratio=2, overflow="fold")
    shown = [(title, make) for title, make in COLUMNS if width >= WIDE or title in ESSENTIAL]
    texts = [title for title, _ in COLUMNS[:WORDS]]
    for title, _ in shown:
        if title in texts:
            table.add_column(title, min_width=18 if title == "output" else 10, ratio=2, overflow="fold")
        else:
            table.add_column(title, justify="right", no_wrap=True)
    for row in run.by_saving():
        table.add_row(name_of(row), *(make(run, row) for _, make in shown))
    return table


def summary(run: ProfileRun) -> str:
    """The whole network against the sum of its rows, in one line."""
    if run.time_ms is None:
        return tr("the run ended before the network was timed")
    spread = "" if run.spread_ms is None else f" ± {duration(run.spread_ms)}"
    parts = [
        tr("whole network {time}{spread}", time=duration(run.time_ms), spread=spread),
        tr("sum of the rows {time}", time=duration(run.rows_ms)),
        f"{quantity(run.flops, 'FLOP')}, {rate_text(run.flops_per_s, 'FLOP/s')}",
    ]
    if run.roof_ms is not None:
        parts.append(tr("at the roof {time}", time=duration(run.roof_ms)))
    if run.peak_memory is not None:
        parts.append(tr("peak memory {size}", size=quantity(run.peak_memory.bytes, "B")))
    return "; ".join(parts)


def utilization_lines(run: ProfileRun) -> Iterator[str]:
    """Utilization of the machine, each value with its source, and energy."""
    for key, found in mean_utilization(run.operators).items():
        yield f"{tr_data(UTILIZATION[key])}: {_sourced(found, '%')}"
    if run.energy is not None:
        yield tr("Energy per run: {value}", value=_sourced(run.energy.joules, "J"))
        if run.energy.flops_per_joule.value is not None:
            yield tr("Performance per watt: {value}", value=_sourced(run.energy.flops_per_joule, "FLOP/s"))


def sweep_lines(sweep: Sweep) -> Iterator[str]:
    """Throughput and latency of every run, and the knee."""
    yield tr("{title} by {axis}", title=sweep.title, axis=tr_data(AXES[sweep.axis]))
    for run in sweep.runs:
        yield tr(
            "  {label}: {throughput} {unit}, latency {latency}",
            label=sweep.label(run),
            throughput=digits(sweep.throughput(run)),
            unit=sweep.unit,
            latency=duration(run.time_ms or 0.0),
        )
    yield f"  {knee_text(sweep)}"


def knee_text(sweep: Sweep) -> str:
    """Where the throughput of a sweep stops growing, or that it still grows."""
    knee = sweep.knee
    if knee is sweep.runs[-1]:
        return tr(
            "knee at {axis} {label} with {throughput} {unit} or above, which was not measured: throughput still grows",
            axis=tr_data(AXES[sweep.axis]),
            label=sweep.label(knee),
            throughput=digits(sweep.throughput(knee)),
            unit=sweep.unit,
        )
    return tr(
        "knee at {axis} {label} with {throughput} {unit}; above it, throughput grows by less than 10 %",
        axis=tr_data(AXES[sweep.axis]),
        label=sweep.label(knee),
        throughput=digits(sweep.throughput(knee)),
        unit=sweep.unit,
    )


def _sourced(found: Quantity, unit: str) -> str:
    reason = f": {found.reason}" if found.reason else ""
    return f"{text(found, unit)} ({found.source.value}{reason})"


def training_line(step: TrainingStep) -> str:
    """The phases of a training step and its verdict."""
    phases = tr(
        "data {data}, forward {forward}, backward {backward}, optimizer {optimizer}, waiting {waiting}",
        data=duration(step.data_ms),
        forward=duration(step.forward_ms),
        backward=duration(step.backward_ms),
        optimizer=duration(step.optimizer_ms),
        waiting=duration(step.waiting_ms),
    )
    return tr(
        "Training step of batch {batch}: {time} ({phases}); {verdict}: {reason}",
        batch=step.batch,
        time=duration(step.step_ms),
        phases=phases,
        verdict=tr_data(VERDICTS[step.verdict]),
        reason=step.reason,
    )


def advice_lines(graph: Graph, run: ProfileRun, runs: Sequence[ProfileRun]) -> Iterator[str]:
    """The advice for a run, which it names if there are several; `runs` are all measured runs of the network."""
    others = [other for other in runs if other is not run]
    begin = tr("Advice for {run}", run=run.configuration) if others else tr("Advice")
    for advice in advise(Advisable(graph, run, others)):
        yield tr(
            "{begin}, saves {saving}: {message}; {remedy} ({reason})",
            begin=begin,
            saving=duration(advice.saving_ms),
            message=advice.message,
            remedy=advice.remedy,
            reason=advice.reason,
        )


def difference_lines(found: RunDifference) -> Iterator[RenderableType]:
    """The difference of two runs for a terminal."""
    yield tr("difference from {before} to {after}", before=found.before.configuration, after=found.after.configuration)
    headings, rows = difference_table(found)
    table = Table()
    for number, title in enumerate(headings):
        table.add_column(title, justify="right" if number else "left", no_wrap=number > 0, overflow="fold")
    for cells in rows:
        table.add_row(*cells)
    yield table
    if found.doubt:
        yield found.doubt


def difference_table(found: RunDifference) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows of a difference, the whole network first. A difference within the noise is "none".

    The whole network has no difference if one of the runs ended before it was timed.
    """
    total = found.total
    untimed = total.before_ms is None or total.after_ms is None
    rows: list[tuple[str, ...]] = [
        (
            " + ".join(row.layers) or (tr("whole network") if row is total else f"({tr_data(OUTSIDE)})"),
            UNAVAILABLE_SIGN if row.before_ms is None else duration(row.before_ms),
            UNAVAILABLE_SIGN if row.after_ms is None else duration(row.after_ms),
            *(
                (UNAVAILABLE_SIGN, UNAVAILABLE_SIGN, tr("not timed"))
                if row is total and untimed
                else (
                    tr("none") if row.verdict == "none" else duration(row.difference_ms),
                    duration(row.noise_ms),
                    str(row.verdict),
                )
            ),
        )
        for row in (total, *found.rows)
    ]
    return (tr("layers"), tr("before"), tr("after"), tr("difference"), tr("noise"), tr("verdict")), rows
