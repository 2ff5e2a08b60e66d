"""Provenance tables of a report page."""

from __future__ import annotations

from collections.abc import Mapping

from app.reports.page import Page
from designer.runtime.provenance import VERSION, Provenance, texts_of, versions

_TITLES = {"document_sha256": "SHA-256 of the document", "weights_sha256": "SHA-256 of the weights"}


def add_provenance(page: Page, origin: Mapping[str, Provenance]) -> None:
    """A column for each network; versions are left to `add_machine`."""
    add_texts(page, texts_of(origin))


def add_texts(page: Page, tables: Mapping[str, Mapping[str, str]]) -> None:
    """A column for each of these texts of a provenance, without the versions."""
    rows = dict.fromkeys(row for table in tables.values() for row in table if not row.startswith(VERSION))
    lines = [
        (_TITLES.get(row, row.replace("_", " ")), *(table.get(row, "") for table in tables.values())) for row in rows
    ]
    page.table(("", *tables), lines)


def add_machine(page: Page) -> None:
    """The machine and the versions of the software."""
    from designer.profiling.machine import this_machine

    machine = this_machine()
    page.heading("Machine and versions")
    rows = [("processor", machine.cpu), ("cores", str(machine.cores)), ("system", machine.system)]
    if machine.gpu:
        rows.append(("graphics", machine.gpu))
    page.table(("", ""), [*rows, *sorted(versions().items())])
