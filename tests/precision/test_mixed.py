"""FP16, BF16 and mixed precision: verdicts on images, layers that stay in FP32 with the reason, and the file that is written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image
from recorded import check_recorded
from restoration_networks import restoring_unet, restoring_weights
from runtime_networks import layer
from typer.testing import CliRunner

from app.cli.main import app
from designer.files.document import save_document
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.metrics import result_psnr
from designer.operators.registry import Registry
from designer.precision import mixed
from designer.precision.emulation import Emulation
from designer.precision.mixed import Validation, choose_precision, validate
from designer.precision.normalization import normalization_groups
from designer.runtime.api import RunOptions
from exporters.mixed import export_precision


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two photos and a file that is not one."""
    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(1)
    for name in ("a", "b"):
        Image.fromarray(random.integers(0, 256, (32, 48, 3), np.uint8)).save(folder / f"{name}.png")
    (folder / "broken.png").write_bytes(b"no image")
    return folder


@pytest.fixture(scope="module")
def unet(registry: Registry, photos: Path) -> Validation:
    graph = restoring_unet(4, 32)
    return validate(Emulation(graph, registry, restoring_weights(graph, registry), RunOptions(threads=1)), photos)


def chain(*layers: object, side: int = 32) -> Graph:
    image = layer("image", "input", dims=f"{side}x{side}x3")
    return Graph([image, *layers, layer("result", "output", layers[-1].name)], name="chain")


def large(scale: float = 1e5) -> Graph:
    """Values up to `scale`, scaled back to 0..1 and dimmed."""
    return chain(
        layer("up", "scale_shift", "image", None, scale=f"{scale:g}"),
        layer("down", "scale_shift", "up", None, scale=f"{1 / scale:g}"),
        layer("dimmed", "scale_shift", "down", None, scale="0.9"),
    )


def own_normalization() -> Graph:
    """Layer normalization over the channels from single layers, of values up to 600, with a layer before and after."""
    return chain(
        layer("before", "scale_shift", "image", None, scale="600"),
        layer("mean", "reduce", "before", None, operation="mean", axes="1"),
        layer("centered", "element_wise", "before,mean", None, operation="subtract"),
        layer("square", "unary", "centered", None, function="square"),
        layer("variance", "reduce", "square", None, operation="mean", axes="1"),
        layer("plus", "scale_shift", "variance", None, shift="1"),
        layer("deviation", "unary", "plus", None, function="sqrt"),
        layer("normalized", "element_wise", "centered,deviation", None, operation="divide"),
        layer("after", "scale_shift", "normalized", None, scale="0.2", shift="0.5"),
    )


def validated(graph: Graph, registry: Registry, photos: Path) -> Validation:
    return validate(Emulation(graph, registry, Weights(), RunOptions(threads=1)), photos)


def test_half_precision_is_compared_with_single_precision_on_images(unet: Validation) -> None:
    fp16, bf16 = choose_precision(unet, "fp16"), choose_precision(unet, "bf16")
    assert 55 < fp16.psnr_db < 90
    assert bf16.psnr_db == pytest.approx(fp16.psnr_db - 18, abs=3)  # three bits fewer
    assert not fp16.kept
    assert not fp16.overflow
    assert fp16.bf16_db is None
    assert unet.skipped == {"broken.png": "the file is not a supported image"}


def test_mixed_precision_keeps_the_layers_that_cost_most_for_the_budget(unet: Validation) -> None:
    plain = choose_precision(unet, "mixed", 40)
    assert not plain.kept
    budget = plain.psnr_db + 6
    found = choose_precision(unet, "mixed", budget)
    assert found.psnr_db >= budget
    assert found.met
    assert 0 < len(found.kept) < found.layers
    assert all("of the error of the result" in reason for reason in found.kept.values())
    fewer = dict.fromkeys(list(found.kept)[:-1], "float32")
    assert unet.psnr("fp16", fewer) < budget
    # BF16 is an alternative where FP16 of all layers misses the budget, whichever layers are kept in the end.
    brain = choose_precision(unet, "bf16").psnr_db
    by_hand = choose_precision(unet, "fp16", budget, keep=found.kept)
    assert (plain.bf16_db, found.bf16_db) == (None, pytest.approx(brain))
    assert (by_hand.met, by_hand.psnr_db, by_hand.bf16_db) == (True, pytest.approx(found.psnr_db), pytest.approx(brain))


def test_a_budget_that_is_not_met_is_reported(unet: Validation) -> None:
    found = choose_precision(unet, "bf16", 80)
    assert not found.met
    assert found.psnr_db == pytest.approx(choose_precision(unet, "bf16").psnr_db)


def test_the_middle_of_large_images_is_used(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    height, width = 47, 40
    monkeypatch.setattr(mixed, "LARGEST_SIDE", 32)
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "large.png")
    (used,) = validated(large(), registry, tmp_path).images.values()
    top, left = (height - 32) // 2, (width - 32) // 2
    expected = pixels[top : top + 32, left : left + 32]
    np.testing.assert_allclose(used[0].transpose(1, 2, 0), expected / 255, atol=1e-6)


def test_overflow_is_named_with_its_magnitude_and_bfloat16_is_offered(registry: Registry, photos: Path) -> None:
    validation = validated(large(), registry, photos)
    found = choose_precision(validation, "fp16")
    assert found.overflow == {"up": pytest.approx(1e5, rel=0.02)}
    assert found.psnr_db < 20
    assert found.bf16_db is not None
    assert found.bf16_db > 40
    mixed = choose_precision(validation, "mixed")
    assert set(mixed.kept) == {"up", "down"}
    assert mixed.kept["up"] == "values up to 100000 exceed 65504, the largest FP16 number"
    assert mixed.kept["down"] == "reads values up to 100000, which exceed 65504"
    assert mixed.psnr_db > 50


def test_layers_of_a_normalization_stay_together(registry: Registry, photos: Path) -> None:
    graph = own_normalization()
    members = {"mean", "centered", "square", "variance", "plus", "deviation", "normalized"}
    groups = normalization_groups(Inference(graph, registry))
    assert set(groups) == members
    assert all(group == members for group in groups.values())
    kept = choose_precision(validated(graph, registry, photos), "mixed").kept
    assert set(kept) == members
    assert "65504" in kept["square"]
    assert "belongs to the normalization" in kept["deviation"]


def test_the_normalization_of_a_layer_that_reads_large_values_stays_together(registry: Registry, photos: Path) -> None:
    graph = chain(
        layer("up", "scale_shift", "image", None, scale="1.32e5", shift="-6.6e4"),
        layer("small", "scale_shift", "up", None, scale="1e-5"),
        layer("tiny", "scale_shift", "small", None, scale="1e-4"),
        layer("product", "element_wise", "up,tiny", None, operation="multiply"),
        layer("mean", "reduce", "small", None, operation="mean", axes="1"),
        layer("plus", "scale_shift", "mean", None, shift="2"),
        layer("over", "element_wise", "product,plus", None, operation="divide"),
        layer("shown", "scale_shift", "over", None, scale="0.2"),
    )
    kept = choose_precision(validated(graph, registry, photos), "mixed", 20).kept
    assert set(kept) == {"up", "small", "product", "tiny", "mean", "plus", "over"}
    for name in ("small", "product"):
        assert kept[name].startswith("reads values up to ")
    for name in ("tiny", "mean", "plus", "over"):
        assert kept[name] == "belongs to the normalization with 'product'"
    chosen = choose_precision(validated(graph, registry, photos), "mixed", 20, keep=["up", "tiny"]).kept
    assert (chosen["up"], chosen["tiny"]) == ("chosen by the user", "chosen by the user")
    assert set(chosen) == set(kept)


def test_layers_are_kept_at_the_request_of_the_user(unet: Validation) -> None:
    found = choose_precision(unet, "mixed", 40, keep=["enc_0_a"])
    assert found.kept == {"enc_0_a": "chosen by the user"}
    with pytest.raises(DiagnosticError) as caught:
        choose_precision(unet, "mixed", keep=["nowhere"])
    assert caught.value.diagnostics[0].layer == "nowhere"


def test_underflow_is_named_with_its_share(registry: Registry, photos: Path) -> None:
    found = choose_precision(validated(large(1e-9), registry, photos), "fp16")
    assert found.underflow["up"] == pytest.approx(1 / 3, abs=0.01)  # of its input, its product and its sum
    assert not choose_precision(validated(large(1e-9), registry, photos), "bf16").underflow


def test_values_that_are_not_finite_count_as_the_worst() -> None:
    expected = np.array([[[[0.2, 0.8]]]], np.float32)
    assert result_psnr(expected, np.array([[[[np.nan, 0.8]]]], np.float32)) < 5
    logits = np.array([[-3.0, 9.0]], np.float32)
    assert result_psnr(logits, logits + 0.12) == pytest.approx(40, abs=0.1)


@pytest.mark.parametrize("target", ["fp16", "bf16", "mixed"])
def test_the_file_passes_the_checker_and_computes_what_was_emulated(
    target: str, registry: Registry, photos: Path, tmp_path: Path
) -> None:
    graph = restoring_unet(4, 32)
    weights = restoring_weights(graph, registry)
    made = export_precision(graph, registry, weights, tmp_path / "x.onnx", target, photos, keep=["last"])
    model = onnx.load(tmp_path / "x.onnx")
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(tmp_path / "x.onnx", providers=["CPUExecutionProvider"])
    image = made.validation.images["a.png"]
    (found,) = session.run(None, {"image": image})
    assert found.dtype == np.float32
    assert result_psnr(made.validation.expected["a.png"]["result"], found) >= made.result.psnr_db - 2
    assert made.casts


def test_the_command_writes_file_and_report(photos: Path, tmp_path: Path) -> None:
    document, output, report = tmp_path / "x.xml", tmp_path / "x.onnx", tmp_path / "r.json"
    save_document(large(), document)
    common = ["precision", str(document), "--validate", str(photos), "-o", str(output), "--report", str(report)]
    done = CliRunner().invoke(app, [*common, "--to", "mixed"])
    assert done.exit_code == 0, done.output
    found = json.loads(report.read_text())
    assert {entry["layer"] for entry in found["kept"]} == {"up", "down"}
    assert all(entry["reason"] for entry in found["kept"])
    assert found["overflow"] == [{"layer": "up", "magnitude": pytest.approx(1e5, rel=0.02)}]
    assert found["psnr_db"] > 50
    assert found["skipped"] == [{"file": "broken.png", "reason": "the file is not a supported image"}]
    onnx.checker.check_model(onnx.load(output), full_check=True)
    output.unlink()
    failed = CliRunner().invoke(app, [*common, "--to", "fp16", "--budget-db", "60"])
    assert failed.exit_code == 1
    assert "the budget of 60 dB is not met" in failed.output
    assert output.is_file()
    refused = CliRunner().invoke(app, ["precision", str(document), "--to", "fp16", "-o", str(tmp_path / "y.onnx")])
    assert isinstance(refused.exception, DiagnosticError)
    assert "--validate" in refused.exception.diagnostics[0].remedy
    assert not (tmp_path / "y.onnx").exists()


def troubled() -> Graph:
    """Values that are infinite in FP32, that leave FP16, that become 0 in it, and a normalization, on an input with a scale."""
    return Graph(
        [
            layer("image", "input", dims="32x32x3", scale="2", shift="-0.25"),
            layer("logarithm", "unary", "image", function="log"),
            layer("finite", "element_wise", "image,logarithm", None, operation="maximum"),
            layer("up", "scale_shift", "image", None, scale="3e4", shift="1e4"),
            layer("top", "scale_shift", "image", None, scale="1e38", shift="3.2e38"),
            layer("back", "scale_shift", "top", None, scale="1e-38"),
            layer("down", "scale_shift", "up", None, scale="2e-5"),
            layer("tiny", "scale_shift", "image", None, scale="1e-8"),
            layer("again", "scale_shift", "tiny", None, scale="1e8"),
            layer("mean", "reduce", "down", None, operation="mean", axes="1"),
            layer("centered", "element_wise", "down,mean", None, operation="subtract"),
            layer("square", "unary", "centered", None, function="square"),
            layer("variance", "reduce", "square", None, operation="mean", axes="1"),
            layer("plus", "scale_shift", "variance", None, shift="0.001"),
            layer("deviation", "unary", "plus", None, function="sqrt"),
            layer("normalized", "element_wise", "centered,deviation", None, operation="divide"),
            layer("shown", "scale_shift", "normalized", None, scale="0.2", shift="0.5"),
            layer("sum", "element_wise", "shown,again", None, operation="add"),
            layer("result", "output", "sum"),
            layer("other", "output", "back"),
            layer("dark", "output", "finite"),
        ],
        name="troubled",
    )


def test_choices_are_as_recorded(registry: Registry, photos: Path) -> None:
    """What each precision costs, which layers are kept and why, with and without budget and layers of the user, and the progress."""
    found, steps = validated(troubled(), registry, photos), list[str]()
    lines = [
        f"{name}: largest {one.largest:.3g}, {one.values} values, {one.nonfinite} not finite, sums of {one.terms}"
        + (f", smallest {one.smallest:.3g}" if name in ("tiny", "up", "top") else "")
        for name, one in found.ranges.items()
    ]
    for target, budget, keep in (
        ("fp16", None, ()),
        ("fp16", 20.0, ("sum", "tiny")),
        ("bf16", 60.0, ()),
        ("mixed", None, ()),
        ("mixed", 20.0, ("tiny",)),
        ("mixed", 75.0, ("again", "deviation")),
    ):
        steps.clear()
        made = choose_precision(found, target, budget, keep, lambda *step: steps.append(" ".join(map(str, step))))
        lines += [
            "",
            f"{target}, budget {budget}, keep {', '.join(keep)}: {int(made.psnr_db)} dB of {made.budget_db}, {'met' if made.met else 'missed'}",
            f"BF16 {made.bf16_db and round(made.bf16_db)}, {made.layers} layers, computed in {made.precision}",
            f"overflow {', '.join(f'{name} {size:.4g}' for name, size in made.overflow.items())}",
            f"underflow {', '.join(f'{name} {share:.1%}' for name, share in made.underflow.items())}",
            f"not finite {dict(made.nonfinite)}",
            *(f"  {name}: {reason}" for name, reason in made.kept.items()),
            *(f"  > {step}" for step in steps),
        ]
    check_recorded("precision_choices.txt", "\n".join([*lines, ""]))
