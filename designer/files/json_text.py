"""JSON of files and of the engine process, read as declared types.

File names of Linux may be any bytes. Python keeps those that are not UTF-8 as lone surrogates, which JSON can only escape
and msgspec does not take: such texts go through the standard library.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
_ENCODER = msgspec.json.Encoder()
_SURROGATE = b"\\ud"


def encode(value: Any) -> bytes:
    """The value as JSON, in one line."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


def decode(data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], *, raw: str = "") -> T:
    """What `decoder` reads; `raw` is the field that it leaves undecoded. Raises ValueError or RecursionError; `problem_of` says in words what is wrong."""
    try:
        return decoder.decode(data)
    except msgspec.DecodeError:
        text = bytes(data)
        if _SURROGATE not in text:
            raise
        value = json.loads(text)
        if isinstance(value, dict) and raw in value:
            value[raw] = msgspec.Raw(encode(value[raw]))
        return msgspec.convert(value, decoder.type)


def problem_of(error: Exception) -> str:
    """What is wrong, in words: `threads: expected int, got str`."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    text, _, place = str(error).replace("`", "").partition(" - at ")
    place = place.removeprefix("$").removeprefix(".")
    text = text[:1].lower() + text[1:] if not text.startswith("JSON") else text
    return f"{place}: {text}" if place else text
