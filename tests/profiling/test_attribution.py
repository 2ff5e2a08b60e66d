"""Every operator of the library, profiled on every engine: its time is found under its own name."""

from __future__ import annotations

import pytest

from designer.files.agreements import not_agreed
from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.types import DataType
from designer.operators.api import Example, Operator, Role
from designer.operators.code_text import digest
from designer.operators.registry import load
from designer.profiling.measure import Measurement, measure
from designer.profiling.peaks import Peaks
from designer.profiling.quantities import measured
from designer.runtime.api import RunOptions
from designer.runtime.engine_registry import load_engines

REGISTRY = load(entry_points=False)
ENGINES = [engine for engine in load_engines(installed=False) if engine.available() is None]
PEAKS = Peaks(
    measured(100e9),
    measured(80e9),
    measured(20e9),
    1 << 20,
    measured(0.5),
    "2026-01-01T00:00:00+00:00",
    "torch",
    "fp32",
    1,
)


def network_of(cls: type[Operator], example: Example) -> Inference | None:
    """Inputs, the operator, a sigmoid and an output; None where an image cannot be fed or the result is NaN."""
    if not example.inputs or any(t.rank != 4 or t.dtype is not DataType.FLOAT32 for t in example.inputs):
        return None
    images = [t.image() for t in example.inputs]
    layers = [Layer(f"in{i}", "input", params={"dims": f"{m.w}x{m.h}x{m.c}"}) for i, m in enumerate(images)]
    sources = tuple(Source(layer.name) for layer in layers)
    layers.append(Layer("the operator", cls.type, inputs=sources, params=cls(**example.params).texts()))
    end = Layer("end", "activation", inputs=(Source("the operator"),), activation=ActivationSpec("sigmoid"))
    inference = Inference(Graph([*layers, end, Layer("out", "output", inputs=(Source("end"),))]), REGISTRY)
    return None if inference.diagnostics() else inference


@pytest.mark.parametrize("cls", [c for c in REGISTRY if c.role is Role.COMPUTE], ids=lambda c: c.type)
def test_no_time_is_lost(cls):
    networks = [n for n in (network_of(cls, example) for example in cls.examples) if n is not None]
    if not networks:
        pytest.skip("no example of images")
    for inference in networks[::2]:
        weights = fill_missing(Weights(), required_weights(inference), 0)
        agreed = tuple(digest(text) for text in not_agreed(inference.graph, REGISTRY, ()))
        for engine in ENGINES:
            options = RunOptions(engine=engine.name, threads=1, agreed=agreed)
            try:
                measurement = Measurement(inference, weights, options, iterations=1, warmup=0, peaks=PEAKS)
                (run,) = measure([[measurement]]).runs
            except DiagnosticError as error:
                if error.diagnostics[0].code not in ("not-in-onnx", "not-in-torch", "not-in-engine"):
                    raise
                continue
            layers = {name for row in run.operators for name in row.layers}
            done_elsewhere = any("without time in this run: end" in note for note in run.notes)
            assert "end" in layers or done_elsewhere  # OpenVINO fuses it and keeps no trace
            if inference.read("the operator").operator.weights(inference.states["the operator"].inputs):
                assert "the operator" in layers  # what has no weights may be nothing but its input to the engine
