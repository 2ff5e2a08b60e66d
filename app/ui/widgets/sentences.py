"""Findings as sentences for people."""

from __future__ import annotations

from pathlib import Path

from designer.graph.diagnostics import Diagnostic


def sentence(text: str) -> str:
    """`text` with a capital at its beginning and a full stop at its end."""
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) or not text else '.'}"


def finding_text(finding: Diagnostic) -> str:
    """What is wrong and what to do, in one line."""
    return f"{sentence(finding.message)} {sentence(finding.remedy)}".strip()


def placed_text(finding: Diagnostic) -> str:
    """Where, what is wrong and what to do, in one line, for a place that shows neither the layer nor the file."""
    names = [name for name in (finding.layer, Path(finding.file).name if finding.file else None) if name]
    where = "".join(f"{name}: " for name in names if name not in finding.message)
    named = any(finding.message.startswith(name) for name in names)  # a name keeps its letters as they are
    message = f"{where}{finding.message}" if where or named else sentence(finding.message)
    return f"{message}{'' if message.endswith(('.', '?', '!')) else '.'} {sentence(finding.remedy)}".strip()
