"""Predicted times: the calibration on this machine, data sheets, and training memory."""

from __future__ import annotations

from dataclasses import replace
from math import log2

import pytest
from generated_networks import generated_network
from profiling_networks import layer_

from designer.graph.diagnostics import DiagnosticError
from designer.graph.freezing import freeze
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template_commands import edit_template, make_template
from designer.graph.types import Size2D
from designer.operators.deploy import deploy
from designer.operators.registry import load
from designer.profiling import calibration
from designer.profiling.calibration import calibrate, calibrated
from designer.profiling.cost import cost_table
from designer.profiling.devices import DEVICES, device_named
from designer.profiling.layer_work import LayerWork, layer_works
from designer.profiling.measure import NO_PEAKS
from designer.profiling.model import CalibratedModel, CalibrationPoint, DataSheetModel, predict
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
    assert all(point.ms_per_unit >= 0 for points in found.kinds.values() for point in points)
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


@pytest.mark.parametrize("function", sorted(load(entry_points=False).activations))
def test_memory_for_the_gradient_of_an_activation_is_what_autograd_keeps(profiling_registry, function):
    torch = pytest.importorskip("torch")
    from designer.operators.torch_program import build_program
    from designer.runtime.engines.torch_engine import Interpreter, build_module

    def layers(type_, **params):
        image, result = (
            Layer("image", "input", params={"dims": "4x6x8"}),
            Layer("out", "output", inputs=(Source("it"),)),
        )
        it = Layer("it", type_, inputs=(Source("image"),), params=params, activation=ActivationSpec(function))
        return [image, it, result]

    def after_convolution(chain):
        """The chain with a trained layer in front: without one nothing is kept for a gradient."""
        image, it, *rest = chain
        trained = layer_("trained", "convolution", "image", features="8", kernel="1x1")
        return [image, trained, replace(it, inputs=(Source("trained"),)), *rest]

    inference = Inference(Graph(layers("activation")), profiling_registry)
    program = build_program(inference, ["it"], [Source("image")], [Source("it")])
    module = build_module(program).train()
    made = (
        torch.rand(1, 8, 6, 4).requires_grad_() * 2
    )  # what the convolution made, of which autograd keeps its input only
    kept = {}

    def keep(tensor):
        if tensor.numel() > 8:  # not slopes
            kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        (y,) = Interpreter(module, program)([made])
    alone = {pointer: size for pointer, size in kept.items() if pointer != made.data_ptr()}
    for graph, expected in (
        (layers("convolution", features="8", kernel="1x1"), kept),
        (after_convolution(layers("activation")), alone),
    ):
        found = training_memory(cost_table(Inference(Graph(graph), profiling_registry)))
        memory = next(row.activations for row in found.rows if row.layer == "it")
        assert memory == sum({**expected, y.data_ptr(): y.nbytes}.values())


@pytest.mark.parametrize("function", ["", "relu", "sigmoid"])
@pytest.mark.parametrize("kind", ["flatten", "identity"])
def test_a_view_of_its_input_keeps_the_result_of_its_activation_only(profiling_registry, function, kind):
    spec = ActivationSpec(function) if function else None
    table = network(
        profiling_registry,
        layer_("image", "input", dims="6x4x3"),
        layer_("before", "convolution", "image", features=3, kernel="3x3"),
        layer_("view", kind, "before", spec),
        layer_("after", "fully_connected", "view", features=5),
        batch=2,
    )
    rows = {row.layer: row.activations for row in training_memory(table).rows}
    tensor = 4 * 2 * 6 * 4 * 3
    assert (rows["before"], rows.get("view", 0), rows["after"]) == (tensor, tensor if function else 0, 4 * 2 * 5)


@pytest.mark.parametrize("kind", ["flatten", "identity"])
@pytest.mark.parametrize(("function", "share"), [("silu", 1), ("glu", 0.5), ("softsign", 2)])
def test_what_an_activation_behind_a_view_reads_counts_where_it_was_made(profiling_registry, function, share, kind):
    torch = pytest.importorskip("torch")
    table = network(
        profiling_registry,
        layer_("image", "input", dims="6x4x3"),
        layer_("before", "convolution", "image", features=4, kernel="3x3"),
        layer_("view", kind, "before", ActivationSpec(function)),
        batch=2,
    )
    kept = {}

    def keep(tensor):
        kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    made = torch.rand(2, 4, 6, 4).requires_grad_() * 2
    seen = made.flatten(1) if kind == "flatten" else made
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        y = getattr(torch.nn.functional, function)(seen, **({"dim": 1} if function == "glu" else {}))
    tensor = 4 * 2 * 6 * 4 * 4
    rows = {row.layer: row.activations for row in training_memory(table).rows}
    assert (rows["before"], rows["view"]) == (tensor, share * tensor)
    assert rows["before"] + rows["view"] == sum({**kept, made.data_ptr(): made.nbytes, y.data_ptr(): y.nbytes}.values())


def test_frozen_layers_need_no_gradients(small_graph, profiling_registry):
    def gradients(graph):
        found = training_memory(cost_table(Inference(deploy(graph, profiling_registry), profiling_registry)), "adam")
        assert all(row.weights for row in found.rows if row.gradients)
        return {row.layer: (row.gradients, row.optimizer) for row in found.rows if row.weights}

    sizes = {name: (4 * size, 8 * size) for name, size in (("conv a", 224), ("conv_b", 584), ("conv_c", 1200))}
    assert gradients(small_graph) == sizes
    small_graph.apply(freeze(small_graph, ["conv_b"]))
    assert gradients(small_graph) == {**sizes, "conv_b": (0, 0)}
    small_graph.apply(make_template(small_graph, ["conv_b", "up"], "Part"))
    inside = {"conv a": sizes["conv a"], "Part_0.conv_b": (0, 0), "conv_c": sizes["conv_c"]}
    assert gradients(small_graph) == inside
    thawed = freeze(small_graph.inside("Part"), ["conv_b"])
    small_graph.apply(edit_template(small_graph, "Part", thawed))
    assert gradients(small_graph) == {**inside, "Part_0.conv_b": sizes["conv_b"]}
    small_graph.apply(freeze(small_graph, ["Part_0"]))
    assert gradients(small_graph) == inside


@pytest.mark.parametrize("frozen", [False, True])
def test_a_layer_with_the_weights_of_a_frozen_one_is_frozen(profiling_registry, frozen):
    first = layer_("a", "convolution", "image", features="3", kernel="3x3")
    again = replace(layer_("b", "convolution", "a", features="3", kernel="3x3"), weights_of="a")
    image, result = layer_("image", "input", dims="4x6x3"), layer_("out", "output", "b")
    graph = Graph([image, first, again, result])
    if frozen:
        graph.apply(freeze(graph, ["a"]))
    found = training_memory(cost_table(Inference(graph, profiling_registry)))
    weights, tensor = 4 * (3 * 3 * 9 + 3), 4 * 3 * 24
    rows = {row.layer: (row.weights, row.gradients, row.optimizer, row.activations) for row in found.rows}
    if frozen:
        assert rows == {"image": (0, 0, 0, tensor), "a": (weights, 0, 0, 0)}
    else:
        assert rows == {
            "image": (0, 0, 0, tensor),
            "a": (weights, weights, 2 * weights, tensor),
            "b": (0, 0, 0, tensor),
        }


@pytest.mark.parametrize("frozen", [(), ("a",), ("b",), ("a", "b"), ("a", "b", "c")])
def test_nothing_is_kept_before_the_first_trained_layer(profiling_registry, frozen):
    torch = pytest.importorskip("torch")
    from designer.operators.torch_program import build_program
    from designer.runtime.engines.torch_engine import Interpreter, build_module

    layers = [Layer("image", "input", params={"dims": "6x8x3"})]
    for name, features in (("noisy", ""), ("a", "4"), ("b", "8"), ("same", ""), ("c", "16"), ("d", "32")):
        source = (Source(layers[-1].name),)
        if features:
            params, activation = {"features": features, "kernel": "3x3"}, ActivationSpec("silu")
            layers.append(Layer(name, "convolution", inputs=source, params=params, activation=activation))
        else:
            kind, params = ("scale_shift", {"scale": "2"}) if name == "noisy" else ("identity", {})
            layers.append(Layer(name, kind, inputs=source, params=params))
    layers.append(Layer("out", "output", inputs=(Source("d"),)))
    graph = Graph(layers)
    if frozen:
        graph.apply(freeze(graph, frozen))
    inference = Inference(graph, profiling_registry)
    names = [layer.name for layer in layers[1:]]
    program = build_program(inference, names, [Source("image")], [Source("out")])
    module = build_module(program).train()
    for bound in program.weights:
        if bound.weight.trainable:
            module.get_parameter(bound.key).requires_grad_(bound.layer not in frozen)
    weights = {parameter.data_ptr() for parameter in module.parameters()}
    kept = {}

    def keep(tensor):
        if tensor.data_ptr() not in weights:
            kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        (y,) = Interpreter(module, program)([torch.rand(1, 3, 8, 6)])
        loss = (y * y).sum()
    assert loss.requires_grad
    found = training_memory(cost_table(inference))
    assert sum(row.activations for row in found.rows if row.layer != "image") == sum(kept.values())


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


def network(registry, *layers, batch=1):
    return cost_table(Inference(Graph(layers), registry), batch=batch)


def test_the_work_of_layers_by_kind_bytes_and_sizes(profiling_registry):
    table = network(
        profiling_registry,
        layer_("image", "input", dims="32x24x16"),
        layer_("c", "convolution", "image", ActivationSpec("sigmoid"), features=24, kernel="3x3"),
        layer_("each", "convolution", "c", features=24, kernel="3x3", groups=24),
        layer_("bend", "activation", "each", ActivationSpec("leaky_relu")),
        layer_("same", "identity", "bend"),
        layer_("mean", "global_pooling", "same"),
        layer_("flat", "flatten", "mean"),
        layer_("full", "fully_connected", "flat", features=10),
        layer_("out", "output", "full"),
        batch=2,
    )
    pixels = 2 * 32 * 24
    depth, fine = log2(24), log2(pixels)
    assert list(layer_works(table)) == [
        LayerWork("c", "convolution", 2 * pixels * 24 * 16 * 9, 4 * (40 * pixels + 24 * 16 * 9 + 24),
                  (4.0, depth, log2(16 * 9), fine, 0.0, 2.0)),
        LayerWork("c", "sigmoid", 0, 8 * 24 * pixels, (log2(8 * 24 * pixels),)),
        LayerWork("each", "depthwise_convolution", 2 * pixels * 24 * 9, 4 * (48 * pixels + 24 * 9 + 24),
                  (depth, depth, log2(9), fine, 2.0, 2.0)),
        LayerWork("bend", "relu", 0, 8 * 24 * pixels, (log2(8 * 24 * pixels),)),
        LayerWork("mean", "pooling", 0, 4 * 24 * (pixels + 2), (log2(4 * 24 * (pixels + 2)),)),
        LayerWork("full", "fully_connected", 2 * 2 * 24 * 10, 4 * (2 * 24 + 2 * 10 + 24 * 10 + 10),
                  (depth, log2(10), depth, 1.0, 2.0, 2.0)),
    ]  # fmt: skip


def test_an_attached_activation_has_work_where_its_layer_moves_no_data(profiling_registry):
    table = network(
        profiling_registry,
        layer_("image", "input", dims="8x4x6"),
        layer_("free", "identity", "image", ActivationSpec("sigmoid")),
        layer_("view", "flatten", "free", ActivationSpec("relu")),
        layer_("bare", "flatten", "image"),
        batch=3,
    )
    moved = 2 * 4 * 3 * 8 * 4 * 6
    assert list(layer_works(table)) == [
        LayerWork("free", "sigmoid", 0, moved, (log2(moved),)),
        LayerWork("view", "relu", 0, moved, (log2(moved),)),
    ]


def test_a_grouped_convolution_to_other_channels_is_not_depthwise(profiling_registry):
    table = network(
        profiling_registry,
        layer_("image", "input", dims="8x4x16"),
        layer_("more", "convolution", "image", features=32, kernel="3x3", groups=16),
    )
    (work,) = layer_works(table)
    assert (work.kind, work.sizes) == ("convolution", (4.0, 5.0, log2(9), 5.0, 0.0, 0.0))


def test_the_three_nearest_points_count_by_the_square_of_their_distance():
    points = tuple(
        CalibrationPoint((size,), ms) for size, ms in ((2.0, 30.0), (10.0, 1000.0), (0.0, 10.0), (1.0, 20.0))
    )
    found = CalibratedModel("here", "", {"element_wise": points}, 0.25, NO_PEAKS)
    work = LayerWork("layer", "element_wise", 0, 2 * 10**6, (0.0,))
    assert found.work_ms(work) == pytest.approx(2 * 10.034474734 + 0.25)


@pytest.mark.parametrize(
    ("machine", "precision", "flops", "moved", "ms"),
    [
        ("T4", "fp16", 39 * 10**9, 0, 1.004),  # 60 % of 65 TFLOP/s
        ("T4", "fp32", 4_860_000_000, 0, 1.004),
        ("T4", "bf16", 4_860_000_000, 0, 1.004),  # not in its data sheet: as FP32
        ("T4", "fp16", 39 * 10**9, 512 * 10**6, 2.004),  # 80 % of 320 GB/s
        ("Ryzen 9 7950X", "fp32", 1_382_400_000, 0, 1.002),  # 60 % of 16 cores x 4.5 GHz x 32
        ("Ryzen 9 7950X", "fp16", 1_382_400_000, 0, 1.002),
        ("Ryzen 9 7950X", "fp32", 0, 66_560_000, 1.002),
        ("A100", "bf16", 187_200_000_000, 0, 1.004),
        ("A100", "fp32", 11_700_000_000, 0, 1.004),
        ("h200", "fp32", 0, 3_840_000_000, 1.004),
    ],
)
def test_the_time_by_a_data_sheet(machine, precision, flops, moved, ms):
    model = DataSheetModel(device_named(machine), precision)
    assert model.work_ms(LayerWork("layer", "any", flops, moved, ())) == pytest.approx(ms)


def test_the_peaks_of_a_data_sheet():
    found = DataSheetModel(device_named("RTX 4090"), "fp16").peaks()
    assert (found.flops_per_s.value, found.memory_bytes_per_s.value) == (165.2e12, 1008e9)
    assert found.cache_bytes_per_s == found.memory_bytes_per_s
    assert (found.cache_bytes, found.launch_ms.value) == (0, 0.004)
    assert {found.flops_per_s.source, found.launch_ms.source} == {ValueSource.MODELLED}
    assert device_named("RTX 4090").cache_bytes == 72 * 2**20
    assert device_named("epyc9654").cache_bytes == 384 * 2**20
    assert device_named("EPYC 9654").flops_per_s == {"fp32": pytest.approx(96 * 2.4e9 * 32)}


RELU_LAYER = ActivationSpec("relu")


@pytest.mark.parametrize(
    ("before", "layers", "free"),
    [
        (
            {},
            [("norm", "batch_normalization", "conv", None), ("act", "activation", "norm", RELU_LAYER)],
            ["norm", "act"],
        ),
        ({}, [("act", "activation", "conv", RELU_LAYER)], ["act"]),
        ({}, [("act", "activation", "conv", RELU_LAYER), ("more", "activation", "act", RELU_LAYER)], ["act"]),
        ({}, [("act", "activation", "conv", RELU_LAYER), ("two", "element_wise", "conv,act", None)], []),
        ({"activation": RELU_LAYER}, [("norm", "batch_normalization", "conv", None)], []),
        ({}, [("pool", "pooling", "conv", None), ("act", "activation", "pool", RELU_LAYER)], []),
        ({}, [("two", "element_wise", "conv,image", None)], []),
    ],
)
def test_layers_that_run_inside_the_kernel_of_a_convolution(profiling_registry, before, layers, free):
    table = network(
        profiling_registry,
        layer_("image", "input", dims="8x4x3"),
        layer_("conv", "convolution", "image", before.get("activation"), features=3, kernel="3x3"),
        *(layer_(name, type_, inputs, activation) for name, type_, inputs, activation in layers),
    )
    for found in (DataSheetModel(device_named("A100"), "fp32"), model(fused=("activation", "batch_normalization"))):
        rows = predict(table, found, BASE).operators
        assert [row.name for row in rows if row.time_ms == 0.0] == free


def test_the_predicted_run_has_the_configuration_and_the_totals(small_inference):
    table = cost_table(small_inference, batch=3)
    base = replace(BASE, precision="fp16", layout="nhwc", threads=5, inputs={"image": "3 x 3 x 24 x 32"})
    here = predict(table, model(run_ms=0.5), base)
    assert here.time_ms == pytest.approx(sum(row.time_ms for row in here.operators) + 0.5)
    assert (here.engine, here.precision, here.layout, here.device) == ("onnxruntime", "fp16", "nhwc", "cpu")
    assert (here.batch, here.size, here.threads, here.inputs) == (3, "32x24", 5, base.inputs)
    assert (here.flops, here.learned) == (table.total().flops, 224 + 584 + 1200)
    assert here.peaks == NO_PEAKS
    assert here.peak_memory.operator == 4
    there = predict(table, DataSheetModel(device_named("T4"), "fp16"), base)
    assert (there.device, there.time_ms) == ("T4", pytest.approx(sum(row.time_ms for row in there.operators)))
    row = there.operators[0]
    flops, moved = table.group(["conv a"]).flops, 4 * 3 * 768 * 11 + 4 * 224
    assert (row.flops, row.bytes, row.learned, row.type) == (flops, moved, 224, "convolution")
    assert (row.inputs, row.outputs) == (("N x 3 x 24 x 32",), ("N x 8 x 24 x 32",))
    assert row.bound == "launch"
    assert row.roof_ms == 0.004
    assert row.saving_ms == pytest.approx(row.time_ms - 0.004)
    assert row.compute_throughput.value == pytest.approx(1e5 * flops / row.time_ms / 65e12)
    assert row.memory_throughput.value == pytest.approx(1e5 * moved / row.time_ms / 320e9)


def test_the_configuration_of_a_prediction_has_the_sizes_of_the_inputs(small_graph, profiling_registry):
    options = RunOptions(engine="torch", precision="fp16", layout="nhwc", threads=3)
    run = predicted_run(small_graph, profiling_registry, options, machine="T4", batch=4, size=Size2D(64, 16))
    assert (run.engine, run.precision, run.layout, run.threads) == ("torch", "fp16", "nhwc", 3)
    assert (run.batch, run.size, run.inputs) == (4, "64x16", {"image": "4 x 3 x 16 x 64"})
    assert run.operators[0].bytes == 2 * (4 * 11 * 64 * 16 + 224)  # FP16


@pytest.mark.parametrize("first", ["volume", "image", "vector"])
def test_the_size_of_a_prediction_is_that_of_the_first_image_among_other_inputs(profiling_registry, first):
    layers = {
        "volume": Layer("volume", "tensor_input", params={"shape": "2,3,4,5"}),
        "image": Layer("image", "input", params={"dims": "7x6x3"}),
        "more": Layer("more", "input", params={"dims": "9x8x1"}),
        "vector": Layer("vector", "tensor_input", params={"shape": "5"}),
    }
    order = [first, *(name for name in layers if name != first)]
    readers = [Layer(f"{name} twice", "scale_shift", inputs=(Source(name),), params={"scale": "2.0"}) for name in order]
    ends = [Layer(f"{name} out", "output", inputs=(Source(f"{name} twice"),)) for name in order]
    graph = Graph([*(layers[name] for name in order), *readers, *ends])
    run = predicted_run(graph, profiling_registry, RunOptions("torch"), machine="T4", batch=4)
    assert run.size == "7x6"
    shapes = {"volume": "4 x 2 x 3 x 4 x 5", "image": "4 x 3 x 6 x 7", "more": "4 x 1 x 8 x 9", "vector": "4 x 5"}
    assert run.inputs == shapes
    alone = Graph([layers["volume"], *(each for each in (*readers, *ends) if each.name.startswith("volume"))])
    found = predicted_run(alone, profiling_registry, RunOptions("torch"), machine="T4")
    assert (found.size, found.inputs) == ("", {"volume": "1 x 2 x 3 x 4 x 5"})


@pytest.mark.parametrize(("fixed", "asked", "batch"), [("0", 4, 4), ("3", 4, 3), ("3", 1, 3), ("0", 1, 1)])
def test_a_batch_that_the_document_fixes_is_predicted_whatever_is_asked_for(profiling_registry, fixed, asked, batch):
    image = Layer("image", "input", params={"dims": "7x6x3", "batch": fixed})
    graph = Graph([image, layer_("twice", "scale_shift", "image", scale="2.0"), layer_("out", "output", "twice")])
    run = predicted_run(graph, profiling_registry, RunOptions("torch"), machine="T4", batch=asked)
    assert (run.batch, run.inputs) == (batch, {"image": f"{batch} x 3 x 6 x 7"})


def test_a_gpu_of_this_machine_is_not_predicted(small_graph, profiling_registry):
    with pytest.raises(DiagnosticError, match="not-modelled"):
        predicted_run(small_graph, profiling_registry, replace(OPTIONS, device="cuda"))


@pytest.mark.parametrize(
    ("optimizer", "values"), [("sgd", 0), ("sgd with momentum", 1), ("rmsprop", 1), ("adam", 2), ("adamw", 2)]
)
def test_what_each_optimizer_keeps(small_inference, optimizer, values):
    found = training_memory(cost_table(small_inference, precision="bf16"), optimizer)
    rows = {row.layer: row for row in found.rows}
    assert rows["conv_b"].optimizer == values * 2 * 584
    assert rows["conv_b"].total == (2 + values) * 2 * 584 + 2 * 8 * 12 * 16
    assert found.optimizer == optimizer


def test_the_reason_of_a_prediction_names_the_data_sheet_and_the_shares_of_its_peaks():
    sheet = device_named("t4")
    assert DataSheetModel(sheet, "fp16").reason == (
        f"data sheet of T4 ({sheet.source}), at 60% of the compute peak and 80% of the bandwidth"
    )
    assert DataSheetModel(sheet, "fp16").peaks().note == sheet.source


@pytest.mark.parametrize(
    ("type_", "params"),
    [
        ("convolution_1d", {"features": 4, "kernel": 3}),
        ("separable_convolution", {"features": 4, "kernel": "3x3"}),
        ("depthwise_convolution", {"kernel": "3x3"}),
        ("transposed_convolution", {"features": 4, "kernel": "2x2", "stride": "2x2"}),
    ],
)
def test_only_the_activation_of_a_convolution_of_any_kind_runs_inside_its_kernel(profiling_registry, type_, params):
    dims = {"shape": "3,16"} if type_ == "convolution_1d" else {"dims": "8x4x3"}
    table = network(
        profiling_registry,
        layer_("image", "tensor_input" if "shape" in dims else "input", **dims),
        layer_("conv", type_, "image", RELU_LAYER, **params),
    )
    convolution, activation = layer_works(table)
    for found in (DataSheetModel(device_named("A100"), "fp32"), model(fused=("activation",))):
        (row,) = predict(table, found, BASE).operators
        assert row.time_ms == pytest.approx(found.work_ms(convolution)) != 0.0
    (row,) = predict(table, model(), BASE).operators
    assert row.time_ms == pytest.approx(model().work_ms(convolution) + model().work_ms(activation))


def test_work_with_other_sizes_than_were_calibrated_has_the_rate_of_the_first_point():
    points = (
        CalibrationPoint((1.0, 2.0), 3.0),
        CalibrationPoint((1.0,), 50.0),
        CalibrationPoint((1.0, 2.0, 3.0), 70.0),
    )
    found = CalibratedModel("here", "", {"convolution": points}, 0.5, NO_PEAKS)
    assert found.work_ms(LayerWork("layer", "convolution", 2 * 10**9, 0, (1.0, 2.0))) == pytest.approx(6.5)


SHEETS = {  # FLOP/s in FP32 and half precision, bytes per second, MiB of the cache
    "T4": (8.1e12, 65e12, 320e9, 4),
    "RTX 4090": (82.6e12, 165.2e12, 1008e9, 72),
    "RTX 5090": (104.8e12, 209.5e12, 1792e9, 96),
    "A100": (19.5e12, 312e12, 2039e9, 40),
    "H100": (67e12, 989.5e12, 3350e9, 50),
    "H200": (67e12, 989.5e12, 4800e9, 50),
    "B200": (75e12, 2250e12, 8000e9, 126),
    "Jetson AGX Orin": (5.3e12, 42.5e12, 204.8e9, 4),
    "EPYC 9654": (96 * 2.4e9 * 32, None, 460.8e9, 384),
    "Xeon Platinum 8480+": (56 * 2.0e9 * 64, None, 307.2e9, 105),
    "Ryzen 9 7950X": (16 * 4.5e9 * 32, None, 83.2e9, 64),
}


def test_the_values_of_every_data_sheet():
    assert [sheet.name for sheet in DEVICES] == list(SHEETS)
    for sheet in DEVICES:
        full, half, bandwidth, cache = SHEETS[sheet.name]
        peaks = sheet.flops_per_s
        assert (peaks["fp32"], peaks.get("fp16")) == (pytest.approx(full), half and pytest.approx(half)), sheet.name
        if sheet.name not in ("T4", "Jetson AGX Orin"):
            assert peaks.get("bf16") == peaks.get("fp16"), sheet.name
        assert (sheet.memory_bytes_per_s, sheet.cache_bytes) == (pytest.approx(bandwidth), cache * 2**20), sheet.name
        assert sheet.kind == ("cpu" if half is None else "gpu")
        assert device_named(sheet.name.upper()) is device_named(sheet.name.lower().replace(" ", "")) is sheet
    assert device_named("T") is None
