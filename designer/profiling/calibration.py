"""Measures what a performance model needs: how efficiently this machine runs each kind of operator at several sizes.

Chains of equal layers run like a network, timed by the engine's own clock. The first and last layer of a chain also convert their
data and are left out. Takes about half a minute per engine; the result is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.registry import Registry
from designer.profiling.cost import cost_table
from designer.profiling.layer_work import layer_works
from designer.profiling.measure import SEED, machine_peaks, peaks_key, run_peaks
from designer.profiling.model import CalibratedModel, CalibrationPoint
from designer.profiling.network_part import whole_part
from designer.profiling.peaks import default_store, load_store, now, save_store
from designer.profiling.schema import RunPeaks
from designer.runtime.api import RunOptions
from designer.runtime.engine_registry import default_engines

CHANNELS = ((3, 16), (16, 16), (16, 32), (32, 32), (32, 64), (64, 64), (64, 128), (128, 128), (256, 256), (64, 3),
            (24, 24), (24, 48), (48, 48), (48, 96), (96, 96), (40, 40), (3, 24), (3, 48))  # fmt: skip
KERNELS = (1, 3, 5)
SIDES = (16, 64, 160)  # pixels
LARGEST = 0.5e9  # FLOP of one convolution
LENGTH = 4  # layers of a chain
RUNS = 15
FUSED: Mapping[str, tuple[str, ...]] = {"torch": ()}  # of other engines:
FUSED_BY_OTHERS = ("activation", "relu", "batch_normalization")
SINGLE: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("element_wise", {"operation": "add"}),
    ("pooling", {"operation": "max", "size": "2x2", "stride": "2x2"}),
    ("upsample", {"factor": "2x2"}),
    ("concatenation", {}),
    ("depth_to_space", {}),
    ("batch_normalization", {}),
    ("instance_normalization", {}),
    ("depthwise_convolution", {"kernel": "3x3"}),
    ("transposed_convolution", {"kernel": "2x2", "stride": "2x2", "features": "32"}),
)
ACTIVATIONS = ("relu", "sigmoid", "tanh", "gelu", "silu", "elu", "softmax")


@dataclass(frozen=True)
class _Case:
    """A network to time, and the layers whose times count."""

    graph: Graph
    counted: tuple[str, ...]


def calibrated(options: RunOptions, registry: Registry, store: Path | None = None) -> CalibratedModel:
    """The model of this machine for an engine: the kept one, or calibrated now."""
    import msgspec

    path = (store or default_store()).with_name("models.json")
    key = f"{peaks_key(options)} | {options.layout} | {options.precision} | without launches"
    try:
        return msgspec.convert(load_store(path).get(key), CalibratedModel)
    except msgspec.ValidationError:
        model = calibrate(options, registry, run_peaks(machine_peaks(options, store)))
        save_store(path, key, model)
        return model


def calibrate(
    options: RunOptions, registry: Registry, peaks: RunPeaks, sides: Sequence[int] = SIDES
) -> CalibratedModel:
    """Measure the efficiency of each kind of operator on this machine with an engine."""
    kinds: dict[str, list[CalibrationPoint]] = {}
    launch_ms = min(_times(Inference(_chain("relu", {}, 1, 1).graph, registry), options).values())
    for case in _cases(sides):
        inference = Inference(case.graph, registry)
        if inference.diagnostics():
            raise ValueError(f"calibration network: {inference.diagnostics()[0]}")
        times = _times(inference, options)
        for work in layer_works(cost_table(inference)):
            if work.layer in case.counted and work.layer in times and (work.flops or work.bytes):
                units = work.flops * 1e-9 if work.flops else work.bytes * 1e-6
                spent = max(times[work.layer] - launch_ms, 0.0)
                kinds.setdefault(work.kind, []).append(CalibrationPoint(work.sizes, spent / units))
    return CalibratedModel(
        name=f"{options.engine} on this machine",
        reason=f"efficiency of {options.engine} on this machine, calibrated at {now()}",
        kinds={kind: tuple(points) for kind, points in kinds.items()},
        launch_ms=launch_ms,
        measured_peaks=peaks,
        fused=FUSED.get(options.engine, FUSED_BY_OTHERS),
        date=now(),
    )


def _times(inference: Inference, options: RunOptions) -> dict[str, float]:
    """The median time of each layer in ms, of layers that ran as a step of their own."""
    part, wanted, inputs = whole_part(inference)
    rng = np.random.default_rng(SEED)
    feeds = {}
    for name in inputs:
        outputs = inference.states[name].outputs
        assert outputs is not None
        feeds[Source(name)] = rng.random(outputs[0].concrete(1), np.float32)
    weights = fill_missing(Weights(), required_weights(inference), SEED)
    timer = default_engines().step_timer(inference, weights, options, part, wanted, feeds)
    found: dict[str, float] = {}
    for sample in timer.layers(RUNS, 1, lambda: None):
        if len(sample.layers) == 1 and sample.seconds:
            found[sample.layers[0]] = found.get(sample.layers[0], 0.0) + median(sample.seconds) * 1e3
    return found


def _cases(sides: Sequence[int]) -> Iterator[_Case]:
    for side in sides:
        for first, second in CHANNELS:
            for kernel in KERNELS:
                if 2.0 * side * side * first * second * kernel * kernel <= LARGEST:
                    yield _convolutions(first, second, kernel, side)
        for type_, parameters in SINGLE:
            yield _chain(type_, parameters, 32, side)
        for activation in ACTIVATIONS:
            yield _chain(activation, {}, 32, side)


def _convolutions(first: int, second: int, kernel: int, side: int) -> _Case:
    """Convolutions that alternate between two numbers of channels."""
    layers = [_input(first, side)]
    for number in range(LENGTH):
        features = second if number % 2 == 0 else first
        layers.append(
            _layer(f"c{number}", "convolution", (layers[-1].name,), features=features, kernel=f"{kernel}x{kernel}")
        )
    layers.append(_layer("out", "output", (layers[-1].name,)))
    return _Case(Graph(layers), ("c1", "c2"))


def _chain(type_: str, parameters: Mapping[str, str], channels: int, side: int) -> _Case:
    """One layer between convolutions, as in a network."""
    layers = [_input(channels, side), _layer("before", "convolution", ("in",), features=channels, kernel="1x1")]
    inputs = ("before", "in") if type_ in ("element_wise", "concatenation") else ("before",)
    if type_ in ACTIVATIONS:
        # An engine fuses an activation that follows a convolution; one after a pooling it runs by itself.
        layers.append(_layer("pooled", "pooling", ("before",), operation="max", size="1x1", stride="1x1"))
        source = (Source("pooled"),)
        layers.append(Layer("it", "activation", inputs=source, activation=ActivationSpec(type_)))
    else:
        layers.append(_layer("it", type_, inputs, **parameters))
    layers.append(_layer("out", "output", ("it",)))
    return _Case(Graph(layers), ("it",))


def _input(channels: int, side: int) -> Layer:
    return _layer("in", "input", (), dims=f"{side}x{side}x{channels}")


def _layer(name: str, type_: str, inputs: tuple[str, ...], **parameters: object) -> Layer:
    return Layer(
        name,
        type_,
        inputs=tuple(Source(i) for i in inputs),
        params={key: str(value) for key, value in parameters.items()},
    )
