"""Texts of documents and names of files, where Qt would take them for markup and fetch the pictures that they name."""

from __future__ import annotations

from html import escape


def plain_tip(text: str) -> str:
    """A tooltip that shows `text` as it is: `<img src=...>` in a document's comment is no picture."""
    if "<" not in text and "&lt;" not in text:
        return text
    return f"<p>{escape(text).replace(chr(10), '<br>')}</p>"
