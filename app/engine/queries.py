"""Requests about a network other than runs: weights, gradients, receptive fields, NaN and infinite values, predictions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path

from app.computations import Compared, blame_between, tensors_of
from app.engine.protocol import (
    BitsReply,
    BlamedOperator,
    BlameReply,
    BlameRequest,
    ChoosePrecisionReply,
    ChoosePrecisionRequest,
    CompareTensorReply,
    CompareTensorRequest,
    GradientReply,
    GradientRequest,
    LayerBits,
    LayerSensitivity,
    MeasureVariantsReply,
    MeasureVariantsRequest,
    PassesReply,
    PassesRequest,
    PassRow,
    PredictReply,
    PredictRequest,
    ReceptiveFieldReply,
    ReceptiveFieldRequest,
    SizePoint,
    TraceReply,
    TrainingMemoryRow,
    VariantRow,
    WeightsReply,
    WeightsRequest,
)
from designer.files.variants import CalibrationRecipe, Variant
from designer.graph.model import Source
from designer.precision.bits import BitsMeasurement
from designer.runtime.api import Array, Progress
from designer.runtime.gradient import gradient
from designer.runtime.layer_weights import weights_of
from designer.runtime.nonfinite import trace_nonfinite
from designer.runtime.receptive import receptive
from designer.runtime.session import Session
from designer.runtime.shared import Handle

EQUAL_DB = 999.0  # PSNR of equal images in replies, where JSON has no infinity
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


def predict(session: Session, request: PredictRequest, progress: Progress) -> PredictReply:
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
    run = predicted_run(
        graph, registry, options, batch=request.batch, size=size, machine=request.machine, progress=progress
    )
    table = cost_table(sized(deploy(graph, registry), registry, size), batch=request.batch)
    memory = training_memory(table, request.optimizer)
    rows = tuple(
        TrainingMemoryRow(row.layer, row.weights, row.gradients, row.optimizer, row.activations) for row in memory.rows
    )
    return PredictReply(Profile(machine_of(session.options), graph.name, (run,)), rows)


def blame(session: Session, request: BlameRequest, progress: Progress) -> BlameReply:
    found = blame_between(_compared(session, request.variants), request.a, request.b, progress)
    operators = (BlamedOperator(item.layer, item.share, item.deviation) for item in found.operators)
    return BlameReply(tuple(operators), found.rms, found.first)


def compare_tensor(session: Session, request: CompareTensorRequest, put: Put) -> CompareTensorReply:
    source = Source.parse(request.tensor)
    a, b = tensors_of(_compared(session, request.variants), (request.a, request.b), source)
    handles = put({"a": a, "b": b})
    return CompareTensorReply(handles["a"], handles["b"])


def bits(session: Session, progress: Progress) -> BitsReply:
    measurement = BitsMeasurement(session)
    layers = measurement.layer_bits(progress)
    points = measurement.points(layers, progress)
    return BitsReply(
        tuple(LayerBits(item.layer, item.weights, dict(item.psnr), item.vectors) for item in layers),
        tuple(SizePoint(item.bytes, item.psnr, dict(item.formats)) for item in points),
    )


def _compared(session: Session, variants: tuple[Variant, ...]) -> Compared:
    """The open network with its inputs, except those that only losses read."""

    def feed(other: Session) -> None:
        for layer in session.fed_layers():
            if layer in other.graph:
                fed = session.fed(layer)
                other.set_input(layer, fed.array, is_image=fed.is_image)

    options = replace(session.options, formats=(), precision="fp32", device="cpu", layout="nchw")
    return Compared(session.graph, session.registry, session.weights, options, feed, variants)


def measure(session: Session, request: MeasureVariantsRequest, progress: Progress) -> MeasureVariantsReply:
    """The network in FP32 and its variants on the inputs of the open network."""
    from designer.precision.measure import measure_variants
    from exporters.variants import variant_model

    options = session.options
    base = replace(
        options, engine=request.engine, layout=request.layout, device=request.device, threads=request.threads
    )
    total = len(request.variants) + 1
    found = measure_variants(
        session, base, request.variants, variant_model, lambda done, name: progress(done, total, name)
    )
    return MeasureVariantsReply(
        tuple(
            VariantRow(
                one.name,
                one.bytes,
                _plain(one.psnr),
                _plain(one.ssim),
                _plain(one.clean_psnr),
                _plain(one.clean_ssim),
                _plain(one.milliseconds),
                one.emulated,
                one.error,
            )
            for one in found
        )
    )


def passes(session: Session, request: PassesRequest, progress: Progress) -> PassesReply:
    """What every graph pass does to the open network on its inputs."""
    from designer.passes.effect import pass_effects

    rows = []
    for found in pass_effects(session, request.names, progress):
        result, effect = found.result, found.effect
        rows.append(
            PassRow(
                result.name,
                found.on,
                result.count,
                (result.before.accesses, result.after.accesses),
                (result.before.bytes, result.after.bytes),
                effect.difference if effect is not None and isfinite(effect.difference) else None,
                effect is None or effect.kept,
            )
        )
    return PassesReply(tuple(rows))


def choose(session: Session, request: ChoosePrecisionRequest, progress: Progress) -> ChoosePrecisionReply:
    """The layers of the open network that stay in FP32, or that are not INT8."""
    if request.calibration is not None:
        return _calibrated(session, request, request.calibration, progress)
    from designer.precision.emulation import Emulation
    from designer.precision.mixed import choose_precision, validate

    emulation = Emulation(session.graph, session.registry, session.weights, session.options)
    validation = validate(emulation, Path(request.folder), progress)
    found = choose_precision(validation, request.target, request.budget_db, progress=progress)
    return ChoosePrecisionReply(
        found.precision,
        found.psnr_db if isfinite(found.psnr_db) else None,
        found.met,
        dict(found.kept),
        len(validation.images),
        dict(validation.skipped),
        overflow=dict(found.overflow),
        bf16_db=found.bf16_db if found.bf16_db is not None and isfinite(found.bf16_db) else None,
    )


def _calibrated(
    session: Session, request: ChoosePrecisionRequest, recipe: CalibrationRecipe, progress: Progress
) -> ChoosePrecisionReply:
    from exporters.int8 import quantize_network

    _, report = quantize_network(
        session.graph, session.registry, session.weights, recipe,
        budget_db=request.budget_db, format=request.format, progress=progress,
    )  # fmt: skip
    result = report.result
    return ChoosePrecisionReply(
        "int8",
        result.psnr_db if isfinite(result.psnr_db) else None,
        result.met,
        dict(result.kept),
        len(report.images.names),
        dict(report.images.skipped),
        request.format,
        sensitivity=tuple(
            LayerSensitivity(item.layer, min(item.alone_db, EQUAL_DB), min(item.without_db, EQUAL_DB))
            for item in sorted(result.sensitivity, key=lambda item: -item.error)
        ),
        bytes=report.bytes,
        bytes_fp32=report.bytes_fp32,
        report=json.dumps(report.as_dict(), indent=2, allow_nan=False) + "\n",
    )


def _plain(value: float) -> float | None:
    return None if value != value else min(value, EQUAL_DB)
