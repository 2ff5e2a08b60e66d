"""The two streams of the command line, and how problems are printed."""

from __future__ import annotations

from rich.console import Console

from designer.graph.diagnostics import Diagnostic, Severity

# Names of documents and files are text: `[/x]` is no markup.
out = Console(soft_wrap=True, markup=False)
err = Console(stderr=True, soft_wrap=True, markup=False)


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
