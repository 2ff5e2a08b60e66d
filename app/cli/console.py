"""What the commands of the command line share: the two streams, how findings are printed, and the file argument."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from designer.graph.diagnostics import Diagnostic, Severity

out = Console(soft_wrap=True)
err = Console(stderr=True, soft_wrap=True)

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A model file (.xml or .nv-neural-model).")]


def of_the_system(error: OSError | MemoryError) -> Diagnostic:
    """A refusal of the system that no part has turned into a finding of its own."""
    if isinstance(error, MemoryError):
        return Diagnostic(
            "out-of-memory",
            "the memory of the machine was not enough",
            remedy="use a smaller picture or network, or close other programs",
        )
    place = f"{error.filename}: " if error.filename else ""
    return Diagnostic(
        "system",
        f"{place}{error.strerror or error}",
        remedy="check that the place exists, may be used, and has space; then try again",
    )


def show(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Print findings to the error stream, one a line."""
    colours = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "blue"}
    for diagnostic in diagnostics:
        err.print(str(diagnostic), style=colours[diagnostic.severity], markup=False, highlight=False)
