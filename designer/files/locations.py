"""File locations of diagnostics."""

from __future__ import annotations

from dataclasses import replace

from designer.files.document import Reading
from designer.graph.diagnostics import Diagnostic


def located(diagnostics: tuple[Diagnostic, ...], reading: Reading) -> tuple[Diagnostic, ...]:
    """Add the file and line of the layer, or of the template's layer, to each diagnostic."""
    made = []
    for finding in diagnostics:
        inside = f"{finding.template}/{finding.inner or ''}" if finding.template is not None else finding.layer
        line = reading.lines.get(inside or "", reading.lines.get(finding.layer or ""))
        known = finding.line is None and line is not None
        made.append(replace(finding, line=line, file=reading.file or None) if known else finding)
    return tuple(made)
