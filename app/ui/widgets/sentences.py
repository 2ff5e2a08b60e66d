"""Findings as sentences."""

from __future__ import annotations

from pathlib import Path

from designer.graph.diagnostics import Diagnostic


def sentence(text: str) -> str:
    """`text` with a capital first letter and a final period."""
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) or not text else '.'}"


def finding_text(finding: Diagnostic) -> str:
    """The message and remedy of a finding in one line."""
    return f"{sentence(finding.message)} {sentence(finding.remedy)}".strip()


def placed_text(finding: Diagnostic) -> str:
    """The location, message and remedy of a finding in one line."""
    names = [name for name in (finding.layer, Path(finding.file).name if finding.file else None) if name]
    where = "".join(f"{name}: " for name in names if name not in finding.message)
    named = any(finding.message.startswith(name) for name in names)  # do not capitalize a name
    message = f"{where}{finding.message}" if where or named else sentence(finding.message)
    return f"{message}{'' if message.endswith(('.', '?', '!')) else '.'} {sentence(finding.remedy)}".strip()
