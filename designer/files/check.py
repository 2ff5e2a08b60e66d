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
    """`diagnostics` with the file and the line of the layer, or of a template's layer, that each is about."""
    made = []
    for finding in diagnostics:
        inside = f"{finding.template}/{finding.inner or ''}" if finding.template is not None else finding.layer
        line = reading.lines.get(inside or "", reading.lines.get(finding.layer or ""))
        known = finding.line is None and line is not None
        made.append(replace(finding, line=line, file=reading.file or None) if known else finding)
    return tuple(made)
