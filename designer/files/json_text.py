"""JSON of files and of the engine process, read as declared types."""

from __future__ import annotations


def problem_of(error: Exception) -> str:
    """What msgspec found wrong, in words: `threads: expected int, got str`."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    text, _, place = str(error).replace("`", "").partition(" - at ")
    place = place.removeprefix("$").removeprefix(".")
    text = text[:1].lower() + text[1:] if not text.startswith("JSON") else text
    return f"{place}: {text}" if place else text
