"""Variants in the settings of a network, chosen by name in every command that runs or exports it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image
from restoration_networks import restoring_unet, restoring_weights
from runtime_networks import chain
from typer.testing import CliRunner

from app.cli.main import app
from designer.files.document import read_document, save_document
from designer.files.settings import Settings, save_settings, settings_path
from designer.files.variants import CalibrationRecipe, Variant
from designer.files.weight_files import save_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.code_text import agreement_text, digest
from designer.operators.registry import load
from designer.passes.passes import PASSES
from designer.runtime.engines.ort_engine import inference_session
from designer.runtime.images import write_image

HALF = Variant("half", "fp16", {"kept": "float32"})
COARSE = Variant("coarse", "int8")
LATER = Variant("later", "fp8")


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """Two layers that scale, with variants in the settings, and an image `a.png`."""
    path = tmp_path / "x.xml"
    scales = (("scaled", "scale_shift", {"scale": 0.3}), ("kept", "scale_shift", {"scale": 3.3}))
    save_document(chain(*scales, size="16x12x3"), path)
    save_settings(Settings(variants=(HALF, COARSE, LATER)), settings_path(path))
    Image.fromarray(np.random.default_rng(0).integers(0, 250, (12, 16, 3), np.uint8)).save(tmp_path / "a.png")
    return path


def call(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None:
        raise done.exception
    return done.output


def run(document: Path, *more: str) -> np.ndarray:
    output = document.with_suffix(".npy")
    call("run", document, "--input", f"image={document.parent / 'a.png'}", "--output", f"result={output}", *more)
    return np.load(output)


def test_run_computes_in_the_precision_of_the_variant(document: Path) -> None:
    single, half, coarse = run(document), run(document, "--variant", "half"), run(document, "--variant", "coarse")
    image = np.asarray(Image.open(document.parent / "a.png"), np.float32).transpose(2, 0, 1)[None] / 255
    scaled = (image.astype(np.float16) * np.float32(0.3)).astype(np.float16).astype(np.float32)
    assert np.allclose(half, scaled * np.float32(3.3), rtol=0, atol=1e-6)
    assert not np.array_equal(half, single)
    assert np.abs(half - single).max() < np.abs(coarse - single).max()


def test_a_variant_that_is_emulated_says_so(document: Path) -> None:
    given = ("--input", f"image={document.parent / 'a.png'}", "--variant", "half")
    assert "half is emulated in FP32" in call("run", document, *given)


def test_compare_takes_variants_and_precisions(document: Path) -> None:
    report = document.with_suffix(".json")
    images = ("--images", document.parent / "a.png", "--json", report)
    call("compare", document, document, document, *images, "--variant", "", "--variant", "half", "--variant", "coarse")
    found = json.loads(report.read_text())
    assert found["columns"] == ["input", "A x", "B x (half)", "C x (coarse)"]
    half, coarse = (metrics["psnr"] for metrics in found["images"][0]["metrics"][2:])
    assert [metrics["ms"] is None for metrics in found["images"][0]["metrics"][1:]] == [False, True, True]
    assert 60 < half < 100
    assert 20 < coarse < half
    with pytest.raises(DiagnosticError) as caught:
        call("compare", document, document, *images, "--precision", "fp32", "--precision", "fp16")
    assert caught.value.diagnostics[0].code == "precision-unavailable"
    layouts = ("--engine", "torch", "--layout", "nchw", "--layout", "nhwc", "--device", "cpu")
    call("compare", document, document, *images, *layouts)


def test_export_writes_the_formats_of_the_variant(document: Path) -> None:
    output = document.with_suffix(".onnx")
    call("export", "onnx", document, "--output", output, "--variant", "half")
    model = onnx.load(output)
    onnx.checker.check_model(model, full_check=True)
    casts = [node for node in model.graph.node if node.op_type == "Cast"]
    assert [(node.input[0], node.output[0]) for node in casts] == [
        ("image", "image/float16"),
        ("scaled", "scaled/float32"),
    ]
    with pytest.raises(DiagnosticError) as caught:
        call("export", "onnx", document, "--output", output, "--variant", "coarse")
    assert "--to int8" in caught.value.diagnostics[0].remedy


@pytest.mark.parametrize(
    ("precision", "passes"),
    [("fp32", ()), ("fp32", ("fold_normalizations",)), ("fp16", tuple(PASSES)), ("bf16", tuple(PASSES))],
)
def test_an_exported_model_computes_what_its_variant_does(
    tmp_path: Path, precision: str, passes: tuple[str, ...]
) -> None:
    path, output = tmp_path / "x.xml", tmp_path / "x.onnx"
    layers = (
        ("conv", "convolution", {"features": 3}),
        ("norm", "batch_normalization", {}),
        ("last", "convolution", {"features": 2}),
    )
    save_document(chain(*layers, size="16x12x3"), path)
    save_settings(Settings(variants=(Variant("v", precision, passes=passes),)), settings_path(path))
    Image.fromarray(np.random.default_rng(0).integers(0, 250, (12, 16, 3), np.uint8)).save(tmp_path / "a.png")
    given = ("--random-weights", "0", "--variant", "v")
    call("export", "onnx", path, "--output", output, *given)
    kinds = [node.op_type for node in onnx.load(output).graph.node if node.op_type not in ("Cast", "Identity")]
    assert kinds == ["Conv", *([] if passes else ["BatchNormalization"]), "Conv"]
    picture = np.asarray(Image.open(tmp_path / "a.png"), np.float32).transpose(2, 0, 1)[None] / 255
    (made,) = inference_session(output.read_bytes()).run(None, {"image": picture})
    np.testing.assert_allclose(made, run(path, *given), atol={"fp32": 1e-6, "fp16": 2e-3, "bf16": 2e-2}[precision])


@pytest.fixture
def calibrated(tmp_path: Path) -> Path:
    """A U-Net with weights, two INT8 variants that differ in the format of kept layers, and images to calibrate with."""
    graph, registry = restoring_unet(4, 32), load(entry_points=False)
    path = tmp_path / "unet.xml"
    save_document(graph, path)
    save_weights(tmp_path / "weights", restoring_weights(graph, registry).tensors)
    (tmp_path / "images").mkdir()
    for name in "ab":
        write_image(tmp_path / "images" / f"{name}.png", np.random.default_rng(1).random((1, 3, 32, 32), np.float32))
    recipe = CalibrationRecipe(str(tmp_path / "images"))
    kept = ("enc_0_a", "dec_0_b", "last", "sum")
    variants = (
        Variant("int8", "int8", dict.fromkeys(kept, "float32"), calibration=recipe),
        Variant("both", "int8", dict.fromkeys(kept, "float16"), calibration=recipe),
        Variant("lost", "int8", calibration=CalibrationRecipe(str(tmp_path / "nowhere"))),
    )
    save_settings(Settings(variants=variants), settings_path(path))
    return path


def test_export_quantizes_a_calibrated_variant(calibrated: Path) -> None:
    output = calibrated.with_suffix(".onnx")
    given = ("export", "onnx", calibrated, "--weights", calibrated.parent / "weights", "--output", output, "--variant")
    call(*given, "int8")
    model = onnx.load(output)
    quantized = {
        tensor.name.partition("/")[0] for tensor in model.graph.initializer if tensor.name.endswith("quantized")
    }
    assert quantized == {"enc_0_b", "enc_1_a", "enc_1_b", "enc_2_a", "enc_2_b", "dec_1_a", "dec_1_b", "dec_0_a"}
    call(*given, "both")
    model = onnx.load(output)
    onnx.checker.check_model(model, full_check=True)
    kinds = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    half = {name.partition("/")[0] for name, kind in kinds.items() if kind == onnx.TensorProto.FLOAT16}
    assert half == {"enc_0_a", "dec_0_b", "last"}
    onnxruntime.InferenceSession(output).run(None, {"image": np.zeros((1, 3, 32, 32), np.float32)})
    with pytest.raises(DiagnosticError, match="the folder does not exist"):
        call(*given, "lost")


def test_calibrated_int8_runs_as_it_is_exported(calibrated: Path) -> None:
    weights = ("--weights", calibrated.parent / "weights")
    model, output = calibrated.with_suffix(".onnx"), calibrated.with_suffix(".npy")
    call("export", "onnx", calibrated, *weights, "--output", model, "--variant", "int8")
    picture = np.random.default_rng(2).random((1, 3, 64, 96), np.float32)
    np.save(calibrated.parent / "picture.npy", picture)
    (expected,) = inference_session(model.read_bytes()).run(None, {"image": picture})
    given = ("run", calibrated, *weights, "--input", f"image={calibrated.parent / 'picture.npy'}", "--threads", "1")
    said = call(*given, "--output", f"result={output}", "--variant", "int8")
    assert "emulated" not in said
    np.testing.assert_allclose(np.load(output), expected, atol=1e-6)
    call(*given, "--output", f"result={output}", "--variant", "int8", "--tile", "48")
    np.testing.assert_allclose(np.load(output), expected, atol=0.02)  # another padding changes single steps of 1 / 255
    assert "both is emulated" in call(*given, "--output", f"result={output}", "--variant", "both")
    with pytest.raises(DiagnosticError, match="the folder does not exist"):
        call(*given, "--output", f"result={output}", "--variant", "lost")


@pytest.mark.parametrize("passes", [(), tuple(PASSES)])
def test_int8_layers_that_share_weights_run(tmp_path: Path, passes: tuple[str, ...]) -> None:
    inside = (
        Layer("x", "template_input"),
        Layer("conv", "convolution", inputs=(Source("x"),), params={"features": "4"}),
        Layer("y", "template_output", inputs=(Source("conv"),)),
    )
    layers = [Layer("image", "input", params={"dims": "32x32x3"})]
    layers.append(Layer("first", "convolution", inputs=(Source("image"),), params={"features": "4"}))
    for name in "abc":
        params = {"template": "block", "shared_weights": "true"}
        layers.append(Layer(name, "template", inputs=(Source(layers[-1].name),), params=params))
    layers.append(Layer("result", "output", inputs=(Source("c"),)))
    path, output = tmp_path / "x.xml", tmp_path / "y.npy"
    save_document(Graph(layers, templates=[Template("block", inside)], name="x"), path)
    (tmp_path / "images").mkdir()
    picture = tmp_path / "images" / "a.png"
    write_image(picture, np.random.default_rng(1).random((1, 3, 32, 32), np.float32))
    recipe = CalibrationRecipe(str(tmp_path / "images"))
    save_settings(Settings(variants=(Variant("int8", "int8", passes=passes, calibration=recipe),)), settings_path(path))
    found = []
    for more in ((), ("--variant", "int8")):
        call("run", path, "--random-weights", 0, "--input", f"image={picture}", "--output", f"result={output}", *more)
        found.append(np.load(output))
    exact, rounded = found
    assert 0 < np.abs(rounded - exact).max() < 0.05 * np.abs(exact).max()


@pytest.mark.parametrize("reads", ["image", "scaled"])
def test_networks_that_int8_cannot_make_faster_are_refused(document: Path, reads: str) -> None:
    layers = read_document(document).graph.layers
    result = replace(layers["result"], inputs=(Source(reads),))
    save_document(Graph([layers["image"], *([layers[reads]] if reads != "image" else []), result], name="x"), document)
    variant = Variant("int8", "int8", calibration=CalibrationRecipe(str(document.parent)))
    save_settings(Settings(variants=(variant,)), settings_path(document))
    with pytest.raises(DiagnosticError, match="no convolution and no matrix product"):
        run(document, "--variant", "int8")


def test_throughput_of_calibrated_int8_is_measured(calibrated: Path) -> None:
    weights, images = ("--weights", calibrated.parent / "weights"), calibrated.parent / "images"
    said = call("run", calibrated, *weights, "--input", f"image={images}", "--throughput", "--against", "int8")
    assert "int8: onnxruntime int8:" in said
    assert "emulated" not in said
    report = calibrated.with_suffix(".json")
    compared = (*weights, "--variant", "", "--variant", "int8", "--images", images, "--json", report)
    call("compare", calibrated, calibrated, *compared)
    found = json.loads(report.read_text())
    assert all(metrics["ms"] > 0 for image in found["images"] for metrics in image["metrics"][1:])
    assert {origin["precision"] for origin in found["provenance"].values()} == {"fp32", "int8"}


def test_throughput_against_an_engine_is_that_of_the_network_itself(tmp_path: Path) -> None:
    """A variant whose passes merge layers has other weights; layers with code are agreed to for both."""
    path = tmp_path / "x.xml"
    source = "class Custom(nn.Module):\n    def forward(self, x):\n        return x * 0.25\n"
    layers = (
        Layer("image", "input", params={"dims": "16x12x3"}),
        Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "3"}),
        Layer("norm", "batch_normalization", inputs=(Source("conv"),)),
        Layer("mine", "custom", inputs=(Source("norm"),), params={"source": source}),
        Layer("result", "output", inputs=(Source("mine"),)),
    )
    save_document(Graph(layers, name="x"), path)
    save_settings(Settings(variants=(Variant("folded", passes=tuple(PASSES)),)), settings_path(path))
    images = tmp_path / "images"
    images.mkdir()
    write_image(images / "a.png", np.zeros((1, 3, 12, 16), np.float32))
    agreed = ("--trust-custom", digest(agreement_text(source, "Custom", (), {})))
    given = ("run", path, "--random-weights", 0, "--input", f"image={images}", "--throughput", "--threads", 1, *agreed)
    for variant, against in (("", "torch"), ("folded", "torch"), ("", "folded")):
        said = [line for line in call(*given, "--variant", variant, "--against", against).splitlines() if line]
        title = "torch: torch fp32" if against == "torch" else "folded: onnxruntime fp32"
        assert [line.partition(": ")[0] for line in said[:2]] == ["onnxruntime fp32", against]
        assert said[1].startswith(f"{title}: ")
        assert said[2].startswith("measured on 1 images")


def test_a_variant_is_deployed_with_its_difference_to_single_precision(calibrated: Path) -> None:
    folder = calibrated.parent / "deployed"
    weights = ("--weights", calibrated.parent / "weights")
    call("export", "deploy", calibrated, *weights, "--output", folder, "--variant", "int8")
    found = json.loads((folder / "deploy.json").read_text())
    assert found["precision"] == "INT8 + FP32"
    assert 0 < found["measured"]["outputs"]["result"]["difference"] < found["check"]["tolerances"][0]
    with pytest.raises(DiagnosticError, match="both choose the model"):
        call("export", "deploy", calibrated, "--output", folder, "--variant", "int8", "--onnx", folder / "model.onnx")


def test_a_variant_without_templates_is_deployed_with_the_image_of_the_settings(tmp_path: Path) -> None:
    """Its passes replace instances by their layers."""
    inside = (
        Layer("x", "template_input"),
        Layer("conv", "convolution", inputs=(Source("x"),), params={"features": "3"}),
        Layer("norm", "batch_normalization", inputs=(Source("conv"),)),
        Layer("y", "template_output", inputs=(Source("norm"),)),
    )
    layers = (
        Layer("image", "input", params={"dims": "16x12x3"}),
        Layer("b", "template", inputs=(Source("image"),), params={"template": "block"}),
        Layer("result", "output", inputs=(Source("b"),)),
    )
    path, folder, picture = tmp_path / "x.xml", tmp_path / "deployed", tmp_path / "a.png"
    save_document(Graph(layers, templates=[Template("block", inside)], name="x"), path)
    write_image(picture, np.random.default_rng(0).random((1, 3, 12, 16), np.float32))
    settings = Settings(variants=(Variant("fast", passes=tuple(PASSES)),), input_files={"image": str(picture)})
    save_settings(settings, settings_path(path))
    call("export", "deploy", path, "--random-weights", 0, "--output", folder, "--variant", "fast")
    nodes = {node.op_type for node in onnx.load(folder / "model.onnx").graph.node}
    assert "BatchNormalization" not in nodes
    assert "Conv" in nodes
    assert json.loads((folder / "deploy.json").read_text())["check"]["contents"] == ["the middle of a.png"]


def test_profile_measures_the_variant(document: Path) -> None:
    report = document.with_suffix(".json")
    call("profile", document, "--variant", "half", "--json", report, "--iterations", "1")
    assert json.loads(report.read_text())["runs"][0]["precision"] == "fp16"


@pytest.mark.parametrize(
    "variant",
    [
        Variant("v", "fp16"), Variant("v", "bf16", {"conv": "float32"}), Variant("v", "int8", {"last": "float16"}),
        Variant("v", "fp16", passes=tuple(PASSES)), Variant("v", engine="torch", passes=tuple(PASSES)),
    ],
)  # fmt: skip
def test_a_network_with_weights_is_profiled_as_its_variant(tmp_path: Path, variant: Variant) -> None:
    path, report = tmp_path / "x.xml", tmp_path / "p.json"
    layers = (
        ("conv", "convolution", {"features": 3}),
        ("norm", "batch_normalization", {}),
        ("last", "convolution", {"features": 2}),
    )
    save_document(chain(*layers, size="16x12x3"), path)
    save_settings(Settings(variants=(variant,)), settings_path(path))
    call("profile", path, "--random-weights", 0, "--variant", "v", "--json", report, "--iterations", 1, "--threads", 1)
    (found,) = json.loads(report.read_text())["runs"]
    emulated = variant.engine == ""
    assert found["engine"] == ("emulated" if emulated else "torch")
    assert found["precision"] == ("fp32" if variant.precision == "int8" else variant.precision)
    timed = {name for operator in found["operators"] for name in operator["layers"]}
    assert timed == {"conv", "last"} | ({"norm"} if not variant.passes else set())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--variant", "none"), "the network has no variant 'none'"),
        (("--variant", "later"), "the variant 'later' uses the number format 'fp8', which is not known"),
        (("--variant", "half", "--precision", "bf16"), "--variant half has a precision of its own"),
    ],
)
def test_unknown_variants_are_refused(document: Path, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        run(document, *arguments)
    assert words in caught.value.diagnostics[0].message


def test_the_weights_of_a_variant_are_used(document: Path) -> None:
    settings = Settings(variants=(replace(HALF, weights=str(document.parent / "nowhere")),))
    save_settings(settings, settings_path(document))
    with pytest.raises(DiagnosticError) as caught:
        run(document, "--variant", "half")
    assert "nowhere" in str(caught.value)
