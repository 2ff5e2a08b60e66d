"""An engine in a few lines of NumPy that remembers what it compiled and ran, for tests of what runs around engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.runtime.api import Part, RunOptions
from designer.runtime.engine_api import Device, Engine, EngineDescriptor
from designer.runtime.engine_registry import EngineRegistry
from designer.runtime.network import activation_of, inputs_of, operator_of
from designer.runtime.number_formats import FLOAT32, format_of


@dataclass
class Record:
    """What engines did: `made` are their names and options, `compiled` and `ran` the layers and the wanted tensors."""

    made: list[tuple[str, RunOptions]] = field(default_factory=list)
    compiled: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    ran: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)  # layers that the engine "plain" rejects with "not-in-onnx"
    code: str = "not-in-onnx"
    disturb: int = 99  # from so many wanted tensors on, values differ in their last bits
    fixed: set[str] = field(default_factory=set)  # layers whose parts are always compiled with their weights

    def clear(self) -> None:
        for each in (self.made, self.compiled, self.ran):
            each.clear()


class PlainCompiled:
    def __init__(self, engine: PlainEngine, part: Part, wanted: Sequence[Source], weights: Weights) -> None:
        self.engine, self.part, self.wanted, self.weights = engine, part, tuple(wanted), weights

    def run(self, feeds: Mapping[Source, np.ndarray]) -> dict[Source, np.ndarray]:
        engine, inference = self.engine, self.engine.inference
        engine.record.ran.append((engine.name, self.part.layers, tuple(map(str, self.wanted))))
        values: dict[Source, np.ndarray] = dict(feeds)
        for name in self.part.layers:
            reads = [values[source] for source in inputs_of(inference, inference.graph[name])]
            made = computed(inference, name, reads, self.weights)
            target = format_of(name, dict(engine.options.formats), FLOAT32)
            if target.is_integer:
                made = np.rint(made * 2**target.bits) / 2**target.bits
            values[Source(name)] = np.ascontiguousarray(made, np.float32)
        more = np.float32(1e-6 if len(self.wanted) >= engine.record.disturb else 0)
        return {source: values[inference.tensor(source)] + more for source in self.wanted}


class PlainForWeights(PlainCompiled):
    def with_weights(self, weights: Weights) -> PlainForWeights:
        return PlainForWeights(self.engine, self.part, self.wanted, weights)


class PlainEngine(Engine):
    name = "plain"
    record = Record()

    def compile(self, part: Part, wanted: Sequence[Source]) -> PlainCompiled:
        bad = sorted(self.record.refused & set(part.layers)) if self.name == "plain" else []
        if bad:
            raise DiagnosticError(
                found
                for name in bad
                for found in DiagnosticError.of(self.record.code, "cannot be expressed", layer=name).diagnostics
            )
        self.record.compiled.append((self.name, part.layers, tuple(map(str, wanted))))
        as_inputs = self.options.weights_as_inputs and self.record.fixed.isdisjoint(part.layers)
        kind = PlainForWeights if as_inputs else PlainCompiled
        return kind(self, part, wanted, self.weights)


def computed(inference: Any, name: str, reads: list[np.ndarray], weights: Weights) -> np.ndarray:
    layer, operator = inference.graph[name], operator_of(inference, name)
    owner = layer.weights_name
    with np.errstate(all="ignore"):
        if layer.type == "convolution":  # with a kernel of one pixel
            kernel = weights.tensors[WeightKey(owner, "kernel")][:, :, 0, 0]
            made = np.einsum("oi,nihw->nohw", kernel, reads[0]) + weights.tensors[WeightKey(owner, "bias")].reshape(
                1, -1, 1, 1
            )
        elif layer.type == "element_wise":
            made = reads[0] + reads[1]
        elif layer.type == "pooling":
            rows = [reads[0][:, :, y::2, x::2] for y in (0, 1) for x in (0, 1)]
            made = np.fmax.reduce(rows) if operator.values()["operation"] == "max" else sum(rows) / 4
        elif layer.type == "unary":
            made = getattr(np, operator.values()["function"])(reads[0])
        elif layer.type == "upsample":
            made = reads[0].repeat(2, 2).repeat(2, 3)
        elif layer.type in ("activation", "identity", "output", "dropout"):
            made = reads[0]
        else:
            raise NotImplementedError(layer.type)
        return np.maximum(made, 0) if activation_of(inference, name) is not None else made


def plain_engines(record: Record) -> EngineRegistry:
    """The engines "plain" and "standby", which runs what the first rejects; "gpu" runs on CUDA only."""
    registry = EngineRegistry()
    for name in ("plain", "standby", "gpu"):
        kind = type(name, (PlainEngine,), {"name": name, "record": record})

        def make(inference: Any, weights: Weights, options: RunOptions, kind: type[PlainEngine] = kind) -> PlainEngine:
            record.made.append((kind.name, options))
            return kind(inference, weights, options)

        registry.register(
            EngineDescriptor(
                name=name,
                title=name.capitalize(),
                package=name,
                engine=make,
                step_timer=lambda *_: None,
                kernels={"one": min},
                available=lambda: None,
                devices=(Device("cuda" if name == "gpu" else "cpu", ("fp32", "fp16")),),
                layouts=("nchw", "nhwc"),
                formats=("int8", "int4") if name == "plain" else (),
                skips_nan=frozenset({"MaxPool"}),
                stand_in="standby" if name == "plain" else "",
            )
        )
    return registry
