"""A profile as an HTML page: the operators, the roofline, memory over time, and sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.reports.page import Page
from app.reports.profile_figures import figure_png
from app.reports.profile_table import (
    AXES,
    COLUMNS,
    WORDS,
    difference_table,
    knee_text,
    name_of,
    order_text,
    summary,
    training_line,
    utilization_lines,
)
from app.reports.provenance_table import add_texts
from designer.profiling.difference import RunDifference
from designer.profiling.schema import Profile, ProfileRun
from designer.profiling.sweep import sweeps
from designer.texts import tr, tr_data
from designer.units import quantity

NUMBERS = range(1 + WORDS, 1 + len(COLUMNS))


def write_page(path: Path, profile: Profile, differences: Sequence[RunDifference] = ()) -> None:
    """Write all runs of a profile, and their differences from another profile."""
    page = Page(tr("Profile of {network}", network=profile.network))
    for run in profile.runs:
        _add_run(page, profile, run)
    for sweep in (*sweeps(profile.runs, "batch"), *sweeps(profile.runs, "size")):
        page.heading(tr("{title} by {axis}", title=sweep.title, axis=tr_data(AXES[sweep.axis])))
        page.picture_inside(figure_png(sweep.axis, sweep.runs[0], sweep), knee_text(sweep))
    for found in differences:
        page.heading(tr("{after} against {before}", after=found.after.configuration, before=found.before.configuration))
        page.table(*difference_table(found), numbers=range(1, 5))
        if found.doubt:
            page.text(found.doubt)
    _add_provenance(page, profile)
    machine = profile.machine
    page.heading(tr("Machine and versions"))
    rows = [("processor", machine.cpu), ("cores", str(machine.cores)), ("gpu", machine.gpu), ("system", machine.system)]
    page.table(("", ""), [*(row for row in rows if row[1]), *sorted(machine.versions.items())])
    page.write(path)


def _add_provenance(page: Page, profile: Profile) -> None:
    """What the runs measured: one column for all that differ in their date, batch or size only."""
    different: dict[tuple[tuple[str, str], ...], ProfileRun] = {}
    for run in profile.runs:
        if run.provenance:
            different.setdefault(tuple(sorted((k, v) for k, v in run.provenance.items() if k != "date")), run)
    if different:
        page.heading(tr("Provenance"))
        add_texts(page, {profile.title(run): run.provenance for run in different.values()})


def _add_run(page: Page, profile: Profile, run: ProfileRun) -> None:
    page.heading(profile.title(run) + (f" - {run.weights}" if run.weights else ""))
    if run.partial:
        page.text(tr("Partial: {reason}.", reason=run.partial))
    page.text(summary(run))
    rows = [(name_of(row), *(make(run, row) for _, make in COLUMNS)) for row in run.by_saving()]
    page.text(order_text())
    page.table((tr("layers"), *(title for title, _ in COLUMNS)), rows, numbers=NUMBERS)
    if run.peaks is not None and run.peaks.flops_per_s.value and run.peaks.memory_bytes_per_s.value:
        page.picture_inside(figure_png("roofline", run), tr("Roofline: a point is an operator."))
    if run.peak_memory is not None:
        largest = ", ".join(f"{n} {quantity(b, 'B')}" for n, b in list(run.peak_memory.tensors.items())[:5])
        page.picture_inside(figure_png("memory", run), tr("Memory over time; at the peak: {largest}.", largest=largest))
    training = [training_line(run.training)] if run.training is not None else []
    for line in (*utilization_lines(run), *training, *run.notes):
        page.text(line)
