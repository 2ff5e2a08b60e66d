"""INT8 ONNX files: calibrated on a folder of images, measured on them, and run by the engines that they are for."""

from __future__ import annotations

import errno
import json
import os
import re

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from restoration_networks import restoring_unet, restoring_weights

from app.cli import main as cli
from designer.files import atomic
from designer.files.document import save_document
from designer.files.variants import CalibrationRecipe
from designer.files.weight_files import save_weights
from designer.graph.diagnostics import DiagnosticError
from designer.precision.int8 import Quantizer
from designer.runtime.engines.ort_engine import inference_session
from designer.runtime.engines.trt_build import ShapeRange, build_engine
from designer.runtime.images import write_image
from designer.runtime.interrupt import Interrupt, InterruptedRunError, interruptible
from exporters.int8 import export_int8
from samples import PHOTOGRAPHS

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def network(registry):
    graph = restoring_unet()
    return graph, registry, restoring_weights(graph, registry)


@pytest.fixture
def files(network, tmp_path):
    """A document, its weights, and a folder with three photographs, a damaged file, and an image that is too small."""
    graph, _, weights = network
    save_document(graph, tmp_path / "unet.xml")
    save_weights(tmp_path / "weights", weights.tensors)
    images = tmp_path / "images"
    images.mkdir()
    for name in ("astronaut", "camera", "coffee"):
        (images / f"{name}.jpg").write_bytes((PHOTOGRAPHS / f"{name}.jpg").read_bytes())
    (images / "broken.png").write_bytes(b"no image")
    write_image(images / "small.png", np.zeros((1, 3, 20, 20), np.float32))
    return tmp_path


def recipe(files, **options) -> CalibrationRecipe:
    return CalibrationRecipe(str(files / "images"), **options)


@pytest.fixture
def run(files, monkeypatch, capsys):
    """`layerwright precision` on the document: its exit status, and what it printed."""

    def call(*options: object) -> tuple[int, str]:
        arguments = ["precision", files / "unet.xml", "--weights", files / "weights", "--to", "int8"]
        monkeypatch.setattr("sys.argv", ["layerwright", *map(str, (*arguments, "-o", files / "int8.onnx", *options))])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return call


def test_the_command_writes_a_model_and_what_it_costs(files, run):
    report = files / "report.json"
    code, text = run("--calibration", files / "images", "--budget-db", 40, "--report", report)
    assert code == 0

    found = json.loads(report.read_text())
    assert found["budget_met"]
    assert found["psnr_db"] >= 40
    assert found["calibration"]["images"] == ["astronaut.jpg", "camera.jpg", "coffee.jpg"]
    assert [entry["file"] for entry in found["calibration"]["skipped"]] == ["broken.png", "small.png"]
    kept = {entry["layer"]: entry["reason"] for entry in found["kept"]}
    assert kept == {"enc_0_a": "first layer", "last": "last layer", "sum": "residual addition"}
    assert {entry["layer"] for entry in found["sensitivity"]} == set(found["quantized"])
    assert found["bytes"] < found["bytes_fp32"] / 2
    assert "skipped broken.png" in text
    assert "3 images used, 2 skipped" in text
    assert f"{found['psnr_db']:.2f} dB" in text

    model = onnx.load(files / "int8.onnx")
    onnx.checker.check_model(model, full_check=True)
    quantized = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer if i.name.endswith("quantized")}
    assert {name.partition("/")[0] for name in quantized} == set(found["quantized"])
    scale = next(i for i in model.graph.initializer if i.name == "dec_0_b/kernel_scale")
    assert list(scale.dims) == [8]  # one for each channel
    assert {entry.key: entry.value for entry in model.metadata_props}["name"] == "restoring unet"


def test_sums_of_products_do_not_saturate() -> None:
    values = {"scale": np.float32(1), "zero": np.uint8(0), "middle": np.int8(0), "coarse": np.float32(1e5)}
    constants = {**values, "kernel": np.full((4, 64, 3, 3), 127, np.int8)}
    inputs = ["x", "scale", "zero", "kernel", "scale", "middle", "coarse", "zero"]
    graph = helper.make_graph(
        [helper.make_node("QLinearConv", inputs, ["y"])],
        "largest",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, (1, 64, 3, 3))],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, (1, 4, 1, 1))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (made,) = inference_session(model.SerializeToString()).run(None, {"x": np.full((1, 64, 3, 3), 255, np.uint8)})
    assert made.reshape(-1).tolist() == [round(255 * 127 * 64 * 9 / 1e5)] * 4


def test_layers_of_a_model_without_names_of_nodes_are_chosen_by_their_results():
    arrays = {f"w{number}": np.full((3, 3, 1, 1), 0.3, np.float32) for number in range(3)}
    nodes = [
        onnx.helper.make_node("Conv", [f"y{number}", f"w{number}"], [f"y{number + 1}"]) for number in range(len(arrays))
    ]
    first, last = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (1, 3, 8, 8)) for name in ("y0", "y3")
    )
    stored = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "nameless", [first], [last], stored),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
        ir_version=8,
    )
    quantizer = Quantizer(model, [{"y0": np.random.default_rng(0).random((1, 3, 8, 8), np.float32)}])
    assert quantizer.layers == ("y1", "y2", "y3")
    assert quantizer.kept_by_default() == {"y1": "first layer", "y3": "last layer"}
    made = quantizer.quantized(["y2"])
    assert [tensor.name for tensor in made.graph.initializer if tensor.name.endswith("_quantized")] == ["w1_quantized"]


def test_openvino_computes_what_onnx_runtime_does(files, network):
    pytest.importorskip("openvino")
    import openvino

    graph, registry, weights = network
    export_int8(graph, registry, weights, files / "int8.onnx", recipe(files))
    image = np.random.default_rng(0).random((1, 3, 64, 64), np.float32)
    (expected,) = ort.InferenceSession(files / "int8.onnx").run(None, {"image": image})
    core = openvino.Core()
    model = core.read_model(str(files / "int8.onnx"))
    model.reshape([1, 3, 64, 64])
    found = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})({"image": image})[0]
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.004


def test_the_form_for_tensorrt_has_no_zero_points_and_float_biases(files, network):
    graph, registry, weights = network
    export_int8(graph, registry, weights, files / "trt.onnx", recipe(files, form="tensorrt"))
    model = onnx.load(files / "trt.onnx")
    arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    pairs = [node for node in model.graph.node if node.op_type in ("QuantizeLinear", "DequantizeLinear")]
    assert pairs
    assert all(arrays[node.input[2]].dtype == np.int8 and not arrays[node.input[2]].any() for node in pairs)
    assert {array.dtype.name for name, array in arrays.items() if "bias" in name} == {"float32"}


def test_tensorrt_builds_an_engine_that_computes_in_int8(files, network):
    pytest.importorskip("tensorrt_rtx")
    graph, registry, weights = network
    export_int8(graph, registry, weights, files / "trt.onnx", recipe(files, form="tensorrt"))
    shape = (1, 3, 64, 64)
    built = build_engine((files / "trt.onnx").read_bytes(), {"image": ShapeRange(shape, shape, shape)})
    assert built.data
    export_int8(graph, registry, weights, files / "ort.onnx", recipe(files))
    with pytest.raises(DiagnosticError, match="bias"):
        build_engine((files / "ort.onnx").read_bytes(), {"image": ShapeRange(shape, shape, shape)})


def test_a_higher_budget_keeps_the_sensitive_layers(files, network):
    graph, registry, weights = network
    free = export_int8(graph, registry, weights, files / "free.onnx", recipe(files))
    budget = free.result.psnr_db + 2
    mixed = export_int8(graph, registry, weights, files / "mixed.onnx", recipe(files), budget_db=budget)
    assert mixed.result.met
    assert mixed.result.psnr_db >= budget
    taken = set(free.result.quantized) - set(mixed.result.quantized)
    assert taken
    assert all(mixed.result.kept[name] == "sensitive" for name in taken)
    assert max(free.result.sensitivity, key=lambda item: item.error).layer in taken


def test_a_budget_that_cannot_be_met_leaves_the_best_choice(files, run):
    code, text = run("--calibration", files / "images", "--budget-db", 150, "--report", files / "r.json")
    assert code == 1
    found = json.loads((files / "r.json").read_text())
    assert not found["budget_met"]
    assert (files / "int8.onnx").exists()
    assert f"the budget of 150 dB is not met: {found['psnr_db']:.2f} dB" in text


def test_percentiles_ignore_extreme_values(files, network):
    graph, registry, weights = network

    def scale(**options: object) -> float:
        export_int8(graph, registry, weights, files / "x.onnx", recipe(files, **options))
        initializers = onnx.load(files / "x.onnx").graph.initializer
        return float(next(onnx.numpy_helper.to_array(i) for i in initializers if i.name == "enc_1_a_scale"))

    assert scale(method="percentile", percentile=99) < 0.9 * scale()


def test_calibration_sizes_and_counts(files, network):
    graph, registry, weights = network
    report = export_int8(graph, registry, weights, files / "x.onnx", recipe(files, count=2, size="128x96"))
    assert report.images.names == ("astronaut.jpg", "camera.jpg")
    assert {array.shape for one in report.images.feeds for array in one.values()} == {(1, 3, 96, 128)}


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("empty", "the folder has no images"),
        ("missing", "the folder does not exist"),
        ("bad", "none of the 2 images can be used: broken.png: .*; small.png: 20 x 20 pixels are fewer than 64 x 64"),
    ],
)
def test_folders_without_usable_images_are_named(files, run, folder, message):
    (files / "empty").mkdir()
    (files / "bad").mkdir()
    for name in ("broken.png", "small.png"):
        (files / "images" / name).rename(files / "bad" / name)
    code, text = run("--calibration", files / folder)
    assert code == 1
    assert re.search(message, text)
    assert not (files / "int8.onnx").exists()


def test_int8_needs_calibration_and_a_size_in_pixels(files, run):
    assert "give --calibration with a folder of images" in run()[1]
    assert "--size: 'big' is not a size; write width x height" in run("--calibration", files, "--size", "big")[1]


def test_missing_weights_are_named(files, run):
    code, text = run("--calibration", files / "images", "--weights", files / "nowhere")
    assert code == 1
    assert "nowhere" in text
    assert not (files / "int8.onnx").exists()


def test_a_full_disk_leaves_no_file(files, network, monkeypatch):
    graph, registry, weights = network

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(DiagnosticError, match="space"):
        export_int8(graph, registry, weights, files / "int8.onnx", recipe(files))
    assert not list(files.glob("*int8*"))
    assert not list(files.glob(".lw*"))


def test_a_canceled_export_leaves_no_file(files, network):
    graph, registry, weights = network
    interrupt = Interrupt()
    seen = []

    def progress(done: int, total: int, text: str) -> None:
        seen.append(text)
        if text.startswith("Measuring"):
            interrupt.ask()

    with interruptible(interrupt), pytest.raises(InterruptedRunError):
        export_int8(graph, registry, weights, files / "int8.onnx", recipe(files), progress=progress)
    assert seen[0] == "Calibrating"
    assert not (files / "int8.onnx").exists()


def test_a_network_without_products_has_nothing_to_quantize(files, registry):
    from runtime_networks import layer

    from designer.files.weights import Weights
    from designer.graph.graph import Graph

    graph = Graph(
        [
            layer("image", "input", dims="64x64x3"),
            layer("pool", "pooling", "image", operation="max", size="2x2", stride="2x2"),
            layer("result", "output", "pool"),
        ],
        name="pool",
    )
    with pytest.raises(DiagnosticError, match="'pool' has no convolution and no matrix product"):
        export_int8(graph, registry, Weights(), files / "x.onnx", recipe(files))
