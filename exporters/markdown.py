"""Text for generated Markdown pages."""

from __future__ import annotations

from designer.texts import visible


def code(name: str) -> str:
    """A name as code, with backticks replaced."""
    return f"`{visible(name).replace('`', chr(39))}`"
