"""Requests about a network other than runs: weights, gradients, receptive fields, NaN and infinite values, predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from app.engine.protocol import (
    GradientReply,
    GradientRequest,
    PredictReply,
    PredictRequest,
    ReceptiveFieldReply,
    ReceptiveFieldRequest,
    TraceReply,
    TrainingMemoryRow,
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


def predict(session: Session, request: PredictRequest) -> PredictReply:
    """The modelled run of the open network, and the memory of a training step."""
    from designer.graph.types import Size2D
    from designer.operators.deploy import deploy
    from designer.profiling.cost import cost_table
    from designer.profiling.measure import machine_of, sized
    from designer.profiling.schema import Profile
    from designer.profiling.what_if import predicted_run, training_memory

    graph, registry = session.inference.graph, session.registry
    options = replace(session.options, precision=request.precision)
    size = Size2D(*request.size) if request.size is not None else None
    run = predicted_run(graph, registry, options, batch=request.batch, size=size, machine=request.machine)
    table = cost_table(sized(deploy(graph, registry), registry, size), batch=request.batch)
    memory = training_memory(table, request.optimizer)
    rows = tuple(
        TrainingMemoryRow(row.layer, row.weights, row.gradients, row.optimizer, row.activations) for row in memory.rows
    )
    return PredictReply(Profile(machine_of(session.options), graph.name, (run,)), rows)
