"""Everything that can be said about a document: findings of the reader and of the shapes, with lines of the file."""

from __future__ import annotations

from dataclasses import replace

from designer.files.document import Reading
from designer.graph.diagnostics import Diagnostic
from designer.graph.inference import Inference, Lookup


def check_document(reading: Reading, lookup: Lookup) -> tuple[Diagnostic, ...]:
    """The reader's findings, then those of types, parameters, links and shapes."""
    if reading.graph is None:
        return reading.diagnostics
    return (*reading.diagnostics, *located(Inference(reading.graph, lookup).diagnostics(), reading))


def located(diagnostics: tuple[Diagnostic, ...], reading: Reading) -> tuple[Diagnostic, ...]:
    """`diagnostics` with the file and the line of the layer that each is about."""
    return tuple(
        replace(d, line=reading.lines[d.layer], file=reading.file or None)
        if d.line is None and d.layer is not None and d.layer in reading.lines
        else d
        for d in diagnostics
    )
