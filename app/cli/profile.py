"""`layerwright profile`: time a network's operators and print them, what would be saved first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from app.cli.opened_network import load_weights_for, open_network
from app.cli.trust import with_trust
from designer.profiling.report import UTILISATION, Group, Record
from designer.profiling.units import text
from designer.runtime.api import RunOptions

COLUMNS = ("time", "share", "flops", "compute_rate", "saving")  # figures of a step that a table shows


def profile_network(
    document: Path,
    weights: Path | None,
    seed: int | None,
    json_out: Path | None,
    iterations: int,
    options: RunOptions,
    trust: Sequence[str] = (),
) -> Iterator[RenderableType]:
    """Profile at the document's own input size; yields what is to be printed and writes the record to `json_out`."""
    from designer.profiling.report import save_records
    from designer.profiling.timing import profile
    from designer.runtime.session import Session

    network = open_network(document)
    tensors = load_weights_for(network, weights, seed)
    options = with_trust(network, options, trust)
    record = profile(Session(network.graph, network.registry, tensors, options), iterations)
    yield record.title + (f" - {record.weights_note}" if record.weights_note else "")
    yield operators_table(record)
    yield "whole network: " + ", ".join(f"{name} {text(figure)}" for name, figure in record.total.items())
    yield from utilisation(record)
    yield from record.notes
    if json_out is not None:
        save_records(json_out, [record])
        yield f"wrote {json_out}"


def utilisation(record: Record) -> Iterator[str]:
    """What the machine was used for, each figure with where it comes from."""
    for key, title in UTILISATION.items():
        figure = record.utilisation[key]
        reason = f": {figure.reason}" if figure.reason else ""
        yield f"{title}: {text(figure)} ({figure.source.value}{reason})"


def by_saving(record: Record) -> list[Group]:
    """Steps of the network, those first of which most time would be saved at the machine's roof."""
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
