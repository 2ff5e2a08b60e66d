"""Findings as sentences for people."""

from __future__ import annotations

from designer.graph.diagnostics import Diagnostic


def sentence(text: str) -> str:
    """`text` with a capital at its beginning and a full stop at its end."""
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) or not text else '.'}"


def finding_text(finding: Diagnostic) -> str:
    """What is wrong and what to do, in one line."""
    return f"{sentence(finding.message)} {sentence(finding.remedy)}".strip()
