"""Requests of the engine process that look into a network beside its run: weights, gradients, what a pixel depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.engine.protocol import BadRequestError, Params, text_of, whole_of
from designer.graph.model import Source
from designer.runtime import layer_weights
from designer.runtime.api import Array
from designer.runtime.gradient import gradient as gradient_of
from designer.runtime.nonfinite import trace_nonfinite as find_nonfinite
from designer.runtime.receptive import receptive as receptive_of
from designer.runtime.session import Session

Put = Callable[[Mapping[str, Array]], dict[str, Any]]  # arrays to handles, all or none


def weights_of(session: Session, params: Params, put: Put) -> dict[str, Any]:
    """`{layer}` -> `{tensors: {name: handle}}`, axes in torch's order."""
    return {"tensors": put(layer_weights.weights_of(session, text_of(params, "layer")))}


def gradient(session: Session, params: Params, put: Put) -> dict[str, Any]:
    """`{of, at: [channel or null, y, x] or null, input}` -> `{gradient: handle, note}`."""
    made = gradient_of(session, Source.parse(text_of(params, "of")), text_of(params, "input"), _place(params.get("at")))
    return {**put({"gradient": made.array}), "note": made.note}


def receptive(session: Session, params: Params, put: Put) -> dict[str, Any]:
    """`{of, y, x, input}` -> `{box: [left, top, right, bottom], source, note}`, in pixels of what was fed."""
    of, layer = Source.parse(text_of(params, "of")), text_of(params, "input")
    found = receptive_of(session, of, whole_of(params, "y", 0), whole_of(params, "x", 0), layer)
    return {"box": list(found.box), "source": found.source, "note": found.note}


def trace_nonfinite(session: Session, params: Params, put: Put) -> dict[str, Any]:
    """-> `{layer or null, kind: "nan", "inf" or "", share, checked: [layer], note}`."""
    trace = find_nonfinite(session)
    kind, share = (trace.found.kind, trace.found.share) if trace.found is not None else ("", 0.0)
    return {"layer": trace.layer, "kind": kind, "share": share, "checked": list(trace.checked), "note": trace.note}


METHODS: Mapping[str, Callable[[Session, Params, Put], dict[str, Any]]] = {
    "weights_of": weights_of,
    "gradient": gradient,
    "receptive": receptive,
    "trace_nonfinite": trace_nonfinite,
}


def _place(found: Any) -> tuple[int | None, int, int] | None:
    if found is None:
        return None
    if not isinstance(found, list) or len(found) != 3:
        raise BadRequestError("'at' must be [channel or null, y, x] or null")
    channel, y, x = found
    if not all(type(n) is int for n in (y, x)) or not (channel is None or type(channel) is int):
        raise BadRequestError("'at' must hold whole numbers")
    return channel, y, x
