"""Figures of a profiled run for files: roofline, timeline, memory and precision, drawn by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.reports.profile_table import AXES
from designer.files.atomic import atomic_file
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.profiling.grouping import precision_shares
from designer.profiling.schema import ProfileRun
from designer.profiling.sweep import Sweep
from designer.texts import tr, tr_data
from designer.units import binary, duration, si

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {"compute": "#3b76c8", "memory": "#d08a1d", "cache": "#3a9d9d", "launch": "#8a63c2", "": "#8a8a8a"}


def save_figure(path: Path, name: str, run: ProfileRun, title: str, sweep: Sweep | None = None) -> None:
    """Draw the figure `name` ("roofline", "timeline", "memory", "precision", "batch", "size", "training") into a PNG, SVG or PDF file.

    Raises DiagnosticError ("bad-suffix", "cannot-save") for another suffix, or if the file cannot be written; a previous file
    is kept then.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        message = tr("'{name}' is not a .png, .svg or .pdf file", name=path.name)
        raise DiagnosticError(Diagnostic("bad-suffix", message, remedy=tr("use one of these suffixes")))
    figure = draw(name, run, title, sweep)
    with atomic_file(path) as stream:
        figure.savefig(stream, format=kind, dpi=150)


def figure_png(name: str, run: ProfileRun, sweep: Sweep | None = None) -> bytes:
    """The figure `name` as PNG data, without a title."""
    data = io.BytesIO()
    draw(name, run, "", sweep).savefig(data, format="png", dpi=110)
    return data.getvalue()


def draw(name: str, run: ProfileRun, title: str, sweep: Sweep | None = None) -> Figure:
    """The figure `name` of a run; "batch" and "size" draw the runs of `sweep`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.2), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=10)
    if name in _DRAWN:
        _DRAWN[name](axes, run)
    elif sweep is not None:
        _sweep(axes, sweep)
    return figure


def _roofline(axes: Axes, run: ProfileRun) -> None:
    placed = [row for row in run.operators if row.flops_per_s and row.intensity]
    for bound in dict.fromkeys(row.bound for row in placed):
        rows = [row for row in placed if row.bound == bound]
        axes.scatter(
            [row.intensity or 0.0 for row in rows],
            [row.flops_per_s or 0.0 for row in rows],
            color=COLORS[bound],
            label=bound or tr("unknown"),
            zorder=3,
        )
    peaks = run.peaks
    if peaks is not None and peaks.flops_per_s.value is not None and placed:
        top = peaks.flops_per_s.value
        flows = (peaks.memory_bytes_per_s.value, peaks.cache_bytes_per_s.value)
        ridges = [top / flow for flow in flows if flow]  # where the memory roofs meet that of the operations
        shown = [*(row.intensity or 1.0 for row in placed), *ridges]
        low, high = min(shown) / 2, max(shown) * 2
        for flow, style, what in (
            (peaks.memory_bytes_per_s.value, "-", tr("memory")),
            (peaks.cache_bytes_per_s.value, "--", tr("cache")),
        ):
            if flow:
                label = f"{what} {si(flow, 'B/s')}"
                axes.plot([low, top / flow], [low * flow, top], style, color="#555555", label=label)
        axes.plot(
            [min(ridges, default=low), high],
            [top, top],
            color="#555555",
            label=tr("compute {rate}", rate=si(top, "FLOP/s")),
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(tr("Intensity (FLOP/B)"))
    axes.set_ylabel(tr("Achieved (FLOP/s)"))
    axes.grid(True, which="major", alpha=0.3)
    if placed:
        axes.legend(fontsize=8)


def _timeline(axes: Axes, run: ProfileRun) -> None:
    ends = list(accumulate(row.time_ms for row in run.operators))
    for row, end in zip(run.operators, ends, strict=True):
        axes.barh(0, row.time_ms, left=end - row.time_ms, color=COLORS[row.bound], edgecolor="white", linewidth=0.5)
        if row.time_ms > ends[-1] / 25:
            axes.text(end - row.time_ms / 2, 0, row.name, rotation=90, ha="center", va="center", fontsize=7)
    axes.set_yticks([])
    axes.set_xlabel(tr("Time (ms), steps in running order"))


def _memory(axes: Axes, run: ProfileRun) -> None:
    ends = list(accumulate(row.time_ms for row in run.operators))
    held = [(row.memory_bytes or 0) / 2**20 for row in run.operators]
    if held:
        axes.stairs(held, [0.0, *ends], fill=True, color=COLORS["compute"], alpha=0.5)
    if run.peak_memory is not None:
        peak = run.peak_memory
        middle = ends[peak.operator] - run.operators[peak.operator].time_ms / 2
        text = f"{binary(peak.bytes)}, {run.operators[peak.operator].name}"
        axes.annotate(text, (middle, peak.bytes / 2**20), fontsize=8, ha="center", va="bottom")
    axes.set_xlabel(tr("Time (ms), steps in running order"))
    axes.set_ylabel(tr("Memory (MiB)"))


def _precision(axes: Axes, run: ProfileRun) -> None:
    base = [0.0, 0.0]
    for precision, heights in precision_shares(run).items():
        axes.bar([tr("Time"), tr("FLOPs")], heights, bottom=base, label=precision)
        base = [b + h for b, h in zip(base, heights, strict=True)]
    axes.set_ylabel(tr("Share (%)"))
    if run.operators:
        axes.legend(fontsize=8)


def _training(axes: Axes, run: ProfileRun) -> None:
    phases = run.training.phases if run.training is not None else {}
    bars = axes.barh([tr_data(name) for name in phases], list(phases.values()), color=COLORS["compute"])
    axes.bar_label(bars, [duration(milliseconds) for milliseconds in phases.values()], padding=3)
    axes.invert_yaxis()
    axes.set_xlabel(tr("Time (ms)"))


def _sweep(axes: Axes, sweep: Sweep) -> None:
    positions = [sweep.position(run) for run in sweep.runs]
    axes.plot(positions, [sweep.throughput(run) for run in sweep.runs], "o-", color=COLORS["compute"])
    axes.axvline(sweep.position(sweep.knee), linestyle=":", color=COLORS[""])
    axes.set_xticks(positions, [sweep.label(run) for run in sweep.runs])
    axes.set_xlabel(tr_data(AXES[sweep.axis]))
    axes.set_ylabel(tr("throughput ({unit})", unit=sweep.unit), color=COLORS["compute"])
    axes.set_ylim(bottom=0)
    other = axes.twinx()
    other.plot(positions, [run.time_ms or 0.0 for run in sweep.runs], "s--", color=COLORS["memory"])
    other.set_ylabel(tr("latency (ms)"), color=COLORS["memory"])
    other.set_ylim(bottom=0)


_DRAWN: dict[str, Callable[[Any, ProfileRun], None]] = {
    "roofline": _roofline,
    "timeline": _timeline,
    "memory": _memory,
    "precision": _precision,
    "training": _training,
}
