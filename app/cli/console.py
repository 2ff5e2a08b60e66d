"""The output and error streams of the command line, and printing of diagnostics."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from designer.graph.diagnostics import Diagnostic, Severity
from designer.texts import visible


class PlainConsole(Console):
    """A console for text from documents and files: `[/x]` is not markup, `:x:` is not an emoji, and control characters are escaped.

    Rich renders every string through `render_str`, including cells and titles of tables.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, soft_wrap=True, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


out = PlainConsole()
err = PlainConsole(stderr=True)


def print_json(value: object) -> None:
    """Print JSON to the output stream, in ASCII."""
    out.print_json(json.dumps(value), ensure_ascii=True)


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
        err.print(str(diagnostic), style=colours[diagnostic.severity], highlight=False)
