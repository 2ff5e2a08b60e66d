"""The output and error streams of the command line, and printing of diagnostics."""

from __future__ import annotations

from rich.console import Console

from designer.graph.diagnostics import Diagnostic, Severity

# Names of documents and files are plain text: `[/x]` is not markup.
out = Console(soft_wrap=True, markup=False)
err = Console(stderr=True, soft_wrap=True, markup=False)


def of_the_system(error: OSError | MemoryError) -> Diagnostic:
    """The diagnostic for an error of the operating system that nothing else has handled."""
    if isinstance(error, MemoryError):
        return Diagnostic(
            "out-of-memory",
            "the machine ran out of memory",
            remedy="use a smaller image or network, or close other programs",
        )
    place = f"{error.filename}: " if error.filename else ""
    return Diagnostic(
        "system",
        f"{place}{error.strerror or error}",
        remedy="check that the path exists, that you have permission, and that the disk has space; then try again",
    )


def show(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Print diagnostics to the error stream, one per line."""
    colours = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "blue"}
    for diagnostic in diagnostics:
        err.print(str(diagnostic), style=colours[diagnostic.severity], markup=False, highlight=False)
