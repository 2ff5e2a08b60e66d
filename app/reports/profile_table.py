"""A profile as lines and a table for a terminal, steps with the largest possible saving first."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table

from designer.profiling.figures import text
from designer.profiling.report import UTILISATION, Group, Record

COLUMNS = ("time", "share", "flops", "compute_rate", "saving")  # figures of a step that a table shows


def lines(record: Record) -> Iterator[RenderableType]:
    """The whole record, for a terminal."""
    yield record.title + (f" - {record.weights}" if record.weights else "")
    yield operators_table(record)
    yield "whole network: " + ", ".join(f"{name} {text(figure)}" for name, figure in record.total.items())
    yield from utilisation(record)
    yield from record.notes


def utilisation(record: Record) -> Iterator[str]:
    """Utilization of the machine, each value with its source."""
    for key, title in UTILISATION.items():
        figure = record.utilisation[key]
        reason = f": {figure.reason}" if figure.reason else ""
        yield f"{title}: {text(figure)} ({figure.source.value}{reason})"


def by_saving(record: Record) -> list[Group]:
    """Steps of the network, sorted by the time that reaching the roofline would save, longest first."""
    return sorted(record.groups, key=lambda group: -(group.figures["saving"].value or 0.0))


def operators_table(record: Record) -> Table:
    """The record as a table for a terminal."""
    table = Table()
    table.add_column("layers (fused ones together)", min_width=18, overflow="fold")
    for name in COLUMNS:
        table.add_column(name.replace("_", " "), justify="right", no_wrap=True)
    for group in by_saving(record):
        table.add_row(group.name, *(text(group.figures[name]) for name in COLUMNS))
    return table
