"""JSON of files and of the engine process, decoded into declared types.

Linux file names can be any bytes. Python represents bytes that are not UTF-8 as lone surrogates, which msgspec rejects: such
texts are encoded and decoded by the standard library.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
_ENCODER = msgspec.json.Encoder()
_SURROGATE = b"\\ud"


def encode(value: Any) -> bytes:
    """The value as one line of JSON."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


def decode(data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], *, raw: str = "") -> T:
    """Decode JSON; `raw` is the field that `decoder` leaves undecoded. Raises ValueError or RecursionError (see `problem_of`)."""
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
    """The message of a decoding error: `threads: expected int, got str`."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    text, _, place = str(error).replace("`", "").partition(" - at ")
    place = place.removeprefix("$").removeprefix(".")
    text = text[:1].lower() + text[1:] if not text.startswith("JSON") else text
    return f"{place}: {text}" if place else text
