"""Predicted times: the calibration on this machine, data sheets, and training memory."""

from __future__ import annotations

import pytest
from generated_networks import generated_network

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.types import Size2D
from designer.profiling import calibration
from designer.profiling.calibration import calibrate, calibrated
from designer.profiling.cost import cost_table
from designer.profiling.devices import DEVICES, device_named
from designer.profiling.layer_work import LayerWork, layer_works
from designer.profiling.measure import NO_PEAKS
from designer.profiling.model import CalibratedModel, CalibrationPoint, predict
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import ProfileRun
from designer.profiling.what_if import OPTIMIZER_STATES, predicted_run, training_memory
from designer.runtime.api import RunOptions

OPTIONS = RunOptions(engine="onnxruntime", threads=1)
BASE = ProfileRun("onnxruntime", "fp32", "nchw", "cpu", 1, "32x24", None, None, ())


def model(**more):
    kinds = {
        "convolution": (CalibrationPoint((3.0, 3.0, 6.0, 9.0, 0.0, 0.0), 10.0),),
        "element_wise": (CalibrationPoint((14.0,), 0.5),),
        "relu": (CalibrationPoint((14.0,), 1.0),),
    }
    return CalibratedModel("here", "calibrated", kinds, 0.001, NO_PEAKS, **more)


def test_a_layer_takes_its_work_at_the_calibrated_rate_and_a_launch(small_inference):
    table = cost_table(small_inference)
    times = {row.name: row.time_ms for row in predict(table, model(), BASE).operators}
    convolution = table.group(["conv a"]).flops * 1e-9 * 10.0 + 0.001
    relu = 2 * 4 * 8 * 24 * 32 * 1e-6 * 1.0 + 0.001
    assert times["conv a"] == pytest.approx(convolution + relu)
    assert times["sum"] == pytest.approx(3 * 4 * 3 * 24 * 32 * 1e-6 * 0.5 + 0.001)
    assert set(times) == {"conv a", "pool", "conv_b", "up", "cat", "conv_c", "sum"}


@pytest.mark.parametrize(
    ("kind", "flops", "sizes", "ms"),
    [
        ("relu", 0, (14.0,), 3.0),
        ("relu", 10**9, (3.0, 3.0, 6.0, 9.0, 0.0, 0.0), 10.0),  # the time of a convolution with as many FLOPs
        ("convolution", 10**9, (3.0, 3.0, 6.0, 9.0, 0.0, 0.0), 10.0),
        ("convolution", 0, (14.0,), 1.5),  # the time of element-wise work on as many bytes
        ("unknown", 0, (14.0,), 1.5),
        ("unknown", 10**9, (3.0, 3.0, 6.0, 9.0, 0.0, 0.0), 10.0),
    ],
)
def test_work_of_another_kind_than_was_calibrated(kind, flops, sizes, ms):
    assert model().work_ms(LayerWork("layer", kind, flops, 3 * 10**6, sizes)) == pytest.approx(ms + 0.001)


def test_an_engine_that_fuses_activations_gets_them_for_free(small_inference):
    table = cost_table(small_inference)
    fused = predict(table, model(fused=("activation",)), BASE)
    assert fused.operators[0].time_ms == pytest.approx(table.group(["conv a"]).flops * 1e-9 * 10.0 + 0.001)
    assert fused.source is ValueSource.MODELLED
    assert "modelled" in fused.notes[0]


def test_calibration_measures_every_kind_and_is_kept(profiling_registry, monkeypatch, tmp_path):
    monkeypatch.setattr(calibration, "CHANNELS", ((8, 8), (16, 16)))
    found = calibrate(OPTIONS, profiling_registry, NO_PEAKS, sides=(8,))
    assert {"convolution", "element_wise", "pooling", "upsample", "concatenation", "relu"} <= set(found.kinds)
    assert all(point.ms_per_unit > 0 for points in found.kinds.values() for point in points)
    calls = []
    monkeypatch.setattr(calibration, "calibrate", lambda *_: calls.append(1) or found)
    monkeypatch.setattr(calibration, "machine_peaks", lambda *_: None)
    monkeypatch.setattr(calibration, "run_peaks", lambda _: NO_PEAKS)
    store = tmp_path / "peaks.json"
    assert calibrated(OPTIONS, profiling_registry, store) == calibrated(OPTIONS, profiling_registry, store) == found
    assert calls == [1]


@pytest.mark.parametrize("sheet", DEVICES, ids=lambda sheet: sheet.name)
def test_every_data_sheet_has_a_source_and_gives_a_time(small_graph, profiling_registry, sheet):
    assert sheet.source.startswith("https://")
    run = predicted_run(small_graph, profiling_registry, OPTIONS, machine=sheet.name.lower(), batch=4)
    assert run.time_ms > 0
    assert run.device == sheet.name
    assert sheet.source in run.notes[0]
    assert all(row.saving_ms is None or row.saving_ms >= 0 for row in run.operators)


def test_a_larger_image_takes_longer_and_half_precision_is_faster(small_graph, profiling_registry):
    def ms(size, precision="fp32"):
        options = RunOptions(engine="torch", precision=precision)
        found = predicted_run(small_graph, profiling_registry, options, machine="H100", size=size, batch=16)
        assert found.size == str(size)
        return found.time_ms

    assert ms(Size2D(2048, 2048)) > 3 * ms(Size2D(1024, 1024))
    assert ms(Size2D(2048, 2048), "fp16") < ms(Size2D(2048, 2048))
    assert device_named("rtx4090").flops_per_s["fp16"] > device_named("T4").flops_per_s["fp16"]


def test_an_unknown_machine_is_an_error_with_the_known_ones(small_graph, profiling_registry):
    with pytest.raises(DiagnosticError, match="unknown-machine") as caught:
        predicted_run(small_graph, profiling_registry, OPTIONS, machine="abacus")
    assert "RTX 4090" in caught.value.diagnostics[0].remedy


def test_training_memory_by_layer(small_inference):
    table = cost_table(small_inference, batch=2)
    found = training_memory(table, "adam")
    rows = {row.layer: row for row in found.rows}
    weights = 4 * (8 * 3 * 9 + 8)
    assert (rows["conv a"].weights, rows["conv a"].gradients, rows["conv a"].optimizer) == (
        weights,
        weights,
        2 * weights,
    )
    assert rows["conv a"].activations == 2 * 4 * 8 * 24 * 32
    assert rows["pool"].gradients == 0
    assert found.total == sum(row.total for row in found.rows)
    assert training_memory(table, "sgd").total == found.total - 2 * sum(row.gradients for row in found.rows)
    assert set(OPTIMIZER_STATES) >= {"adam", "sgd"}


@pytest.mark.parametrize(
    ("type_", "attached", "function", "tensors"),
    [
        ("convolution", True, "relu", 1),
        ("convolution", True, "sigmoid", 2),
        ("activation", False, "relu", 1),
        ("activation", False, "sigmoid", 1),
    ],
)
def test_the_input_of_an_attached_activation_is_kept_for_the_gradient(
    profiling_registry, type_, attached, function, tensors
):
    layers = [
        Layer("image", "input", params={"dims": "4x4x3"}),
        Layer(
            "it",
            type_,
            inputs=(Source("image"),),
            params={"features": "3"} if attached else {},
            activation=ActivationSpec(function),
        ),
        Layer("result", "output", inputs=(Source("it"),)),
    ]
    found = training_memory(cost_table(Inference(Graph(layers), profiling_registry)))
    assert next(row.activations for row in found.rows if row.layer == "it") == tensors * 4 * 48


def test_layers_that_hand_their_input_on_need_no_training_memory(profiling_registry):
    names = ("image", "same", "flat", "result")
    layers = [Layer("image", "input", params={"dims": "4x4x3"})]
    for name, kind in zip(names[1:], ("identity", "flatten", "output"), strict=True):
        layers.append(Layer(name, kind, inputs=(Source(layers[-1].name),)))
    found = training_memory(cost_table(Inference(Graph(layers), profiling_registry)))
    assert [(row.layer, row.total) for row in found.rows] == [("image", 4 * 48)]


@pytest.mark.parametrize("seed", range(10))
def test_generated_networks_are_valid_and_every_kind_of_their_layers_is_calibrated(profiling_registry, seed):
    inference = Inference(generated_network(seed), profiling_registry)
    assert not inference.diagnostics()
    kinds = {work.kind for work in layer_works(cost_table(inference))}
    assert kinds <= {name for name, _ in calibration.SINGLE} | {"convolution", *calibration.ACTIVATIONS}
