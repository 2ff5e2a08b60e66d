"""The lines that the window and the engine process send each other: JSON objects, one a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from designer.files.agreements import is_digest
from designer.graph.diagnostics import Diagnostic

MAX_LINE = 256 << 20  # bytes of one request: a document is at most as large
Params = Mapping[str, Any]


class BadRequestError(Exception):
    """The request is not what the protocol says."""


def text_of(params: Params, name: str, default: str | None = None) -> str:
    value = params.get(name, default)
    if not isinstance(value, str):
        raise BadRequestError(f"'{name}' must be a text")
    return value


def whole_of(params: Params, name: str, default: int) -> int:
    value = params.get(name, default)
    if type(value) is not int or value < 0:
        raise BadRequestError(f"'{name}' must be a whole number, 0 or more")
    return value


def digests_of(params: Params) -> tuple[str, ...]:
    """The digests of the sources that the person agreed to run."""
    found = params.get("agreed") or []
    if not isinstance(found, list) or not all(isinstance(item, str) and is_digest(item) for item in found):
        raise BadRequestError("'agreed' must be a list of SHA-256 digests")
    return tuple(sorted(found))


def line_of(message: dict[str, Any]) -> bytes:
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def failure(number: Any, *found: Diagnostic) -> bytes:
    return line_of({"id": number, "error": [d.as_dict() for d in found]})


def request_of(line: bytes) -> dict[str, Any]:
    """A request, or what is wrong with the line under "malformed"."""
    if not line.endswith(b"\n") and len(line) >= MAX_LINE:
        return {"malformed": f"a line of more than {MAX_LINE >> 20} MiB"}
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {"malformed": f"no JSON ({error})"}
    return request if isinstance(request, dict) else {"malformed": "not an object"}
