"""Every option of the exports in FP16, BF16, mixed precision and INT8 reaches the file and the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image
from restoration_networks import restoring_unet, restoring_weights

from designer.files.variants import CalibrationRecipe
from designer.graph.diagnostics import DiagnosticError
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from exporters import mixed
from exporters.int8 import export_int8
from exporters.mixed import export_precision, formatted
from exporters.onnx import export_onnx

REGISTRY = load(entry_points=False)
GRAPH = restoring_unet(4, 32)
WEIGHTS = replace(restoring_weights(GRAPH, REGISTRY), note="trained")
FLOAT16, FLOAT = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(1)
    for name in ("a", "b"):
        Image.fromarray(random.integers(0, 256, (32, 64, 3), np.uint8)).save(folder / f"{name}.png")
    return folder


def kinds(path: Path) -> dict[str, set[int]]:
    """The element types of the weights of each layer."""
    found: dict[str, set[int]] = {}
    for tensor in onnx.load(path).graph.initializer:
        found.setdefault(tensor.name.partition("/")[0].partition("_quantized")[0], set()).add(tensor.data_type)
    return found


class Calls:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, done: int, total: int, text: str) -> None:
        self.texts.append(text)


def test_layers_that_are_kept_stay_in_float32(photos: Path, tmp_path: Path) -> None:
    calls, options = Calls(), RunOptions(threads=1)
    path = tmp_path / "x.onnx"
    layers = [layer.name for layer in GRAPH if layer.type == "convolution"]
    kept = layers[1]
    made = export_precision(
        GRAPH, REGISTRY, WEIGHTS, path, "mixed", photos, keep=[kept], options=options, progress=calls
    )
    assert set(made.result.kept) == {kept}
    found = kinds(path)
    assert found[kept] == {FLOAT}
    assert all(found[name] == {FLOAT16} for name in layers if name != kept)
    assert calls.texts == ["Running in FP32"] * 2  # once for each photo
    assert made.written.weights_note == "trained"
    report = made.as_dict()
    assert [entry["layer"] for entry in report["kept"]] == [kept]
    assert (report["precision"], report["budget_met"], report["images"]) == ("mixed", True, ["a.png", "b.png"])
    free = export_precision(GRAPH, REGISTRY, WEIGHTS, path, "mixed", photos, options=options)
    assert not free.result.kept
    assert kinds(path)[kept] == {FLOAT16}


def test_a_budget_that_is_not_met_is_reported(photos: Path, tmp_path: Path) -> None:
    made = export_precision(GRAPH, REGISTRY, WEIGHTS, tmp_path / "x.onnx", "fp16", photos, budget_db=200.0)
    report = made.as_dict()
    assert (report["budget_db"], report["budget_met"]) == (200.0, False)


def test_the_options_of_the_run_reach_the_emulation(photos: Path, tmp_path: Path, monkeypatch) -> None:
    seen = []
    emulation = mixed.Emulation

    def noted(*arguments):
        seen.append(arguments[3])
        return emulation(*arguments)

    monkeypatch.setattr(mixed, "Emulation", noted)
    options = RunOptions(threads=1)
    export_precision(GRAPH, REGISTRY, WEIGHTS, tmp_path / "x.onnx", "fp16", photos, options=options)
    assert seen == [options]


@pytest.mark.parametrize("formats", [{}, {"enc_1_a": "bfloat16"}])
def test_native_bfloat16_needs_another_opset_also_for_single_layers(formats: dict[str, str], tmp_path: Path) -> None:
    export_onnx(GRAPH, REGISTRY, WEIGHTS, tmp_path / "x.onnx")
    model = onnx.load(tmp_path / "x.onnx")
    before = model.opset_import[0].version
    assert before < 22
    precision = "fp16" if formats else "bf16"
    assert formatted(model, precision, formats, native=True).model.opset_import[0].version == 22
    assert formatted(model, precision, formats).model.opset_import[0].version == before
    assert formatted(model, "fp16", {}, native=True).model.opset_import[0].version == before


@pytest.mark.parametrize(("precision", "native"), [("bf16", True), ("bf16", False), ("fp16", True), ("fp16", False)])
def test_only_a_native_export_in_bfloat16_computes_in_it(
    photos: Path, tmp_path: Path, precision: str, native: bool
) -> None:
    path = tmp_path / "x.onnx"
    made = export_precision(GRAPH, REGISTRY, WEIGHTS, path, precision, photos, native=native)
    computes = native or precision == "fp16"
    assert bool(made.in_float32) is not computes
    assert (onnx.load(path).opset_import[0].version >= 22) is (native and precision == "bf16")


def test_layers_that_are_not_int8_have_the_format_that_was_chosen(photos: Path, tmp_path: Path) -> None:
    recipe = CalibrationRecipe(str(photos), size="64x32")
    calls = Calls()
    plain = export_int8(GRAPH, REGISTRY, WEIGHTS, tmp_path / "plain.onnx", recipe, progress=calls)
    assert calls.texts[0] == "Calibrating"
    assert any(text.startswith("Measuring") for text in calls.texts)
    made = export_int8(GRAPH, REGISTRY, WEIGHTS, tmp_path / "half.onnx", recipe, format="float16")
    assert made.result.kept == plain.result.kept
    assert made.result.kept
    assert made.result.quantized == plain.result.quantized
    before, after = kinds(tmp_path / "plain.onnx"), kinds(tmp_path / "half.onnx")
    for layer in made.result.kept:
        if layer in before:
            assert FLOAT16 not in before[layer], layer
            assert FLOAT16 in after[layer], layer
    report = made.as_dict()
    assert {entry["format"] for entry in report["kept"]} == {"float16"}
    assert report["calibration"]["size"] == [32, 64]
    assert report["calibration"]["percentile"] is None
    assert report["bytes"] == (tmp_path / "half.onnx").stat().st_size
    assert plain.bytes < plain.bytes_fp32
    export_onnx(GRAPH, REGISTRY, WEIGHTS, tmp_path / "fp32.onnx")
    assert abs(plain.bytes_fp32 - (tmp_path / "fp32.onnx").stat().st_size) < 100
    assert set(made.variant("v").formats.values()) == {"float16"}


def test_another_suffix_is_refused_before_anything_runs(photos: Path, tmp_path: Path) -> None:
    calls = Calls()
    with pytest.raises(DiagnosticError) as failed:
        export_int8(GRAPH, REGISTRY, WEIGHTS, tmp_path / "x.txt", CalibrationRecipe(str(photos)), progress=calls)
    assert failed.value.diagnostics[0].code == "unknown-format"
    with pytest.raises(DiagnosticError) as failed:
        export_precision(GRAPH, REGISTRY, WEIGHTS, tmp_path / "x.txt", "fp16", photos, progress=calls)
    assert failed.value.diagnostics[0].code == "unknown-format"
    assert not calls.texts
    assert not list(tmp_path.iterdir())
