"""Requests about a network other than runs: weights, gradients, receptive fields, NaN and infinite values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.engine.protocol import (
    GradientReply,
    GradientRequest,
    ReceptiveFieldReply,
    ReceptiveFieldRequest,
    TraceReply,
    WeightsReply,
    WeightsRequest,
)
from designer.graph.model import Source
from designer.runtime.api import Array
from designer.runtime.gradient import gradient
from designer.runtime.layer_weights import weights_of
from designer.runtime.nonfinite import trace_nonfinite
from designer.runtime.receptive import receptive
from designer.runtime.session import Session
from designer.runtime.shared import Handle

Put = Callable[[Mapping[str, Array]], dict[str, Handle]]  # arrays to handles, all or none


def weights(session: Session, request: WeightsRequest, put: Put) -> WeightsReply:
    return WeightsReply(put(weights_of(session, request.layer)))


def gradient_to_input(session: Session, request: GradientRequest, put: Put) -> GradientReply:
    made = gradient(session, Source.parse(request.of), request.input, request.at)
    return GradientReply(put({"gradient": made.array})["gradient"], made.note)


def receptive_field(session: Session, request: ReceptiveFieldRequest) -> ReceptiveFieldReply:
    found = receptive(session, Source.parse(request.of), request.y, request.x, request.input)
    return ReceptiveFieldReply(found.box, found.source, found.note)


def first_nonfinite(session: Session) -> TraceReply:
    trace = trace_nonfinite(session)
    found = trace.found
    if found is None:
        return TraceReply(trace.layer, "", 0.0, trace.checked, trace.note)
    return TraceReply(trace.layer, found.kind, found.share, trace.checked, trace.note)
