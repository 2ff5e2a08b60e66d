"""Plain-text tooltips, for texts that Qt would interpret as markup and whose images it would load."""

from __future__ import annotations

from html import escape


def plain_tip(text: str) -> str:
    """A tooltip that shows `text` literally, so that `<img src=...>` in a document's comment loads no image."""
    if "<" not in text and "&lt;" not in text:
        return text
    return f"<p>{escape(text).replace(chr(10), '<br>')}</p>"
