"""Extracts layers from text around them: a quoted mail, a chat, a part of a model file."""

from __future__ import annotations

import html
import re

from designer.files.reader import NAMESPACE, PREFIX, ROOT, VERSION

MOST = 32 * 1024 * 1024  # characters searched at most
_QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_LAYER = re.compile(r"<Layer[\s>]")
_EMPTY = re.compile(rf"<{ROOT}\b[^<>]*/>")
_SPACES = dict.fromkeys(map(ord, "\u00a0\u2007\u202f"), " ") | dict.fromkeys(map(ord, "\u200b\ufeff"))
_ODD = re.compile("[\u00a0\u2007\u202f\u200b\ufeff“”„‟]")
_CURLY = {ord(c): '"' for c in "“”„‟"}


def holds_layers(text: str) -> bool:
    """Whether a text may contain layers; fast, because it checks only the beginning."""
    head = text[:65536]
    return f"<{ROOT}" in head or f"&lt;{ROOT}" in head or "<Layer " in head or "&lt;Layer " in head


def model_text(text: str) -> str | None:
    """The model file in a text; None if there is none.

    Text around it, quote marks of mails, HTML entities and curly quotes are removed. Layers without a root element get one.
    """
    if len(text) > MOST or not holds_layers(text):
        return None
    found = _cut(text)
    if found is not None and not _is_quoted(text) and not _ODD.search(found):
        return _rooted(found)
    plain = text.replace("\r\n", "\n").translate(_SPACES)
    if f"&lt;{ROOT}" in plain or "&lt;Layer " in plain:
        plain = html.unescape(plain)
    if _is_quoted(plain):
        plain = _QUOTE.sub("", plain)
    found = _cut(plain) or found
    if found is None:
        return None
    return _rooted(found if '="' in found else found.translate(_CURLY))


def _is_quoted(text: str) -> bool:
    """Whether the first line of the layers starts with the quote mark of a mail; a lone ">" can also end a tag."""
    start = text.find(f"<{ROOT}")
    if start < 0:
        first = _LAYER.search(text)
        start = first.start() if first is not None else 0
    return _QUOTE.match(text[text.rfind("\n", 0, start) + 1 : start]) is not None


def _cut(text: str) -> str | None:
    """From the first `<NetworkModel` to its end, else from the first `<Layer` to the end of the last."""
    start = text.find(f"<{ROOT}")
    if start >= 0:
        end = text.find(f"</{ROOT}>", start)
        if end >= 0:
            return text[start : end + len(f"</{ROOT}>")]
        empty = _EMPTY.match(text, start)
        return empty[0] if empty is not None else text[start:]
    first = _LAYER.search(text)
    if first is None:
        return None
    end = max(text.rfind("</Layer>") + len("</Layer>"), text.rfind("/>") + len("/>"))
    return text[first.start() : max(end, first.end())]


def _rooted(part: str) -> str:
    """Layers without a root element get one."""
    if part.startswith(f"<{ROOT}"):
        return part
    return f'<{ROOT} name="part" version="{VERSION}" xmlns:{PREFIX}="{NAMESPACE}">\n{part}\n</{ROOT}>'
