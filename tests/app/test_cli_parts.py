"""Parts of the commands on their own: options, what is printed, and exit statuses of less common outcomes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cli_kit import Run, layerwright
from PIL import Image

import samples
from app.cli import compare_request, console, main, precision, prune, run_request, sizes, train
from app.cli.blame import _files
from app.cli.compare_request import CompareArguments
from app.cli.options import extent, one_each, pairs
from app.cli.run_request import RunArguments, tile_of
from app.opened_network import open_network
from designer.files.document import read_document, save_document
from designer.files.settings import MAX_TILE
from designer.files.weights import WeightKey, Weights, load_weights, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.api import Role
from designer.passes.passes import Optimized, PassResult, Traffic
from designer.precision.blame import Blame, Blamed
from designer.profiling.machine import Machine
from designer.profiling.profile_files import load_profile, save_profile
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun, TrainingStep
from designer.runtime.api import AUTO, RunOptions
from designer.runtime.edit_effect import EditEffect
from designer.runtime.images import write_image
from designer.runtime.session import Session
from designer.training.run_folder import RunFolder
from designer.units import percent
from exporters.sparse_sweep import SweepRow

__all__ = ["layerwright"]


def network(path: Path, *layers: Layer) -> Path:
    save_document(Graph(layers, name=path.stem), path)
    return path


def two_inputs(path: Path) -> Path:
    """`b` before `a`; the target of a loss is not an input of a run."""
    return network(
        path,
        Layer("b", "input", params={"dims": "6x4x1"}),
        Layer("a", "input", params={"dims": "6x4x1"}),
        Layer("target", "input", params={"dims": "6x4x1"}),
        Layer("difference", "element_wise", inputs=(Source("b"), Source("a")), params={"operation": "subtract"}),
        Layer("loss", "l1_loss", inputs=(Source("difference"), Source("target"))),
        Layer("result", "output", inputs=(Source("difference"),)),
    )


def refusal(call: Callable[..., object], *arguments: Any) -> Any:
    with pytest.raises(DiagnosticError) as failed:
        call(*arguments)
    return failed.value.diagnostics[0]


# --- options -------------------------------------------------------------------------------------------------------


def test_the_first_run_of_every_size_is_not_timed_for_any_variant(tmp_path, monkeypatch):
    ran: list[str] = []

    def variant(name: str) -> SimpleNamespace:
        def run(noisy):
            ran.append(name)
            return noisy

        session = SimpleNamespace(invalidate=lambda: ran.append("invalidate"))
        return SimpleNamespace(name=name, channels=3, run=run, session=session, emulated=False, output="out")

    variants, compiled = [variant("a"), variant("b")], set()
    for name, size in (("one", 8), ("two", 8), ("three", 12)):
        Image.new("RGB", (size, size)).save(tmp_path / f"{name}.png")
        compare_request._results(tmp_path / f"{name}.png", None, variants, compiled)
        first = [] if name == "two" else [1]
        assert ran == [each for of in "ab" for each in (*[of for _ in first], "invalidate", of)]
        ran.clear()


def test_pairs_keep_their_order_and_everything_after_the_first_sign() -> None:
    texts = ["b=x=1.png", "a=y.npy", "b=z"]
    assert pairs("--input", texts) == [("b", Path("x=1.png")), ("a", Path("y.npy")), ("b", Path("z"))]
    assert pairs("--input", None) == []
    for wrong in ("a", "=x.png", "a=", ""):
        found = refusal(pairs, "--capture", [wrong])
        assert found.code == "bad-option"
        assert found.message.startswith("--capture")


def test_a_name_that_is_given_twice_is_named_with_both_files() -> None:
    assert one_each("--input", [("b", Path("1")), ("a", Path("2"))]) == {"b": Path("1"), "a": Path("2")}
    found = refusal(one_each, "--output", [("a", Path("1")), ("b", Path("3")), ("a", Path("2"))])
    assert (found.layer, found.message) == ("a", "--output a is given twice: 1 and 2")
    found = refusal(one_each, "--input", [("a", Path("1")), ("a", Path("1"))])  # the same file twice
    assert (found.code, found.message, found.remedy) == (
        "bad-option", "--input a is given twice: 1 and 1", "give --input a=PATH once"
    )  # fmt: skip


def test_an_extent_is_written_width_first_and_read_height_first() -> None:
    assert extent("--size", "640x480") == (480, 640)
    assert extent("--size", "") is None
    assert refusal(extent, "--size", "640").message.startswith("--size: '640' is not a size")


@pytest.mark.parametrize(
    ("text", "tile"), [("auto", AUTO), ("off", 0), ("1", 1), ("96", 96), (str(MAX_TILE), MAX_TILE)]
)
def test_tiles_are_automatic_off_or_a_side(text: str, tile: int) -> None:
    assert tile_of(text) == tile


@pytest.mark.parametrize("text", ["0", "-1", "", "9.5", "Auto", "²", str(MAX_TILE + 1)])
def test_other_tiles_are_refused(text: str) -> None:
    assert refusal(tile_of, text).code == "bad-tile"


def test_options_of_a_comparison_are_given_once_or_for_each_network() -> None:
    one_of = compare_request._one_of
    assert [one_of("--engine", (), index, 3) for index in range(3)] == [None] * 3
    assert [one_of("--engine", ("torch",), index, 3) for index in range(3)] == ["torch"] * 3
    assert [one_of("--engine", ("x", "y", "z"), index, 3) for index in range(3)] == ["x", "y", "z"]
    found = refusal(one_of, "--engine", ("x", "y"), 0, 3)
    assert found.message == "--engine is given 2 times for 3 variants"
    base = RunOptions(engine="torch", precision="fp16", layout="nhwc", device="cuda", threads=3)
    plain = CompareArguments([Path("a"), Path("b")], Path("i"), options=base)
    assert compare_request._options(plain, 1) == base
    each = CompareArguments(
        [Path("a"), Path("b")], Path("i"), options=RunOptions(threads=3), engines=("onnxruntime", "torch"),
        precisions=("fp32", "bf16"), layouts=("nchw", "nhwc"), devices=("cpu", "cuda"),
    )  # fmt: skip
    assert compare_request._options(each, 1) == RunOptions("torch", "bf16", "nhwc", "cuda", 3)
    once = {"engines": ("torch",), "precisions": ("bf16",), "layouts": ("nhwc",), "devices": ("cuda",)}
    for name, (value,) in once.items():
        one = CompareArguments(plain.documents, plain.images, **{name: (value,)})
        for index in range(2):
            assert compare_request._options(one, index) == RunOptions(**{name[:-1]: value})
        three = CompareArguments(plain.documents, plain.images, **{name: (value,) * 3})
        found = refusal(compare_request._options, three, 0)
        assert found.message == f"--{name[:-1]} is given 3 times for 2 variants"


def test_files_of_blame_are_given_by_name_or_for_the_only_input(tmp_path: Path) -> None:
    odd = tmp_path / "a=b.png"
    assert "the network has the inputs image" in refusal(_files, [str(odd)], ["image"]).message
    odd.touch()
    assert _files([str(odd)], ["image"]) == _files([f"image={odd}"], ["image"]) == {"image": odd}
    assert _files(["a.png"], ["image"]) == {"image": Path("a.png")}
    (tmp_path / "image=b.png").touch()
    with contextlib.chdir(tmp_path):
        assert _files(["image=b.png"], ["image"]) == {"image": Path("b.png")}, "the name comes first"
    assert _files(["b=1.png", "a=2.png"], ["a", "b"]) == {"b": Path("1.png"), "a": Path("2.png")}
    for wrong in (["1.png", "2.png"], ["a=1.png"], ["a=1.png", "a=2.png", "b=3.png"], ["a=1", "b=2", "c=3"]):
        assert "the network has the inputs a, b" in refusal(_files, wrong, ["a", "b"]).message


# --- run -----------------------------------------------------------------------------------------------------------


def test_inputs_and_outputs_are_those_of_inference(tmp_path: Path) -> None:
    opened = open_network(two_inputs(tmp_path / "two.xml"))
    assert run_request.layers_with(opened, Role.INPUT) == ["a", "b"]
    assert run_request.layers_with(opened, Role.OUTPUT) == ["result"]


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"inputs": {"b": "x.npy"}}, "input-missing", "the input 'a' has no file"),
        ({"inputs": {"a": "x.npy", "b": "x.npy", "target": "x.npy"}}, "training-only", "target"),
        ({"inputs": {"a": "x.npy", "result": "x.npy"}}, "no-such-layer", "--input: there is no input 'result'"),
        ({"outputs": [("difference", "x.npy")]}, "no-such-layer", "--output: there is no output 'difference'"),
        ({"captures": [("nothing:1", "x.npy")]}, "no-such-layer", "--capture: there is no layer 'nothing'"),
        ({"outputs": [("result", "x.mkv")]}, "unknown-format", "x.mkv"),
    ],
)
def test_requests_that_cannot_run(tmp_path: Path, changes: dict[str, Any], code: str, words: str) -> None:
    path = two_inputs(tmp_path / "two.xml")
    files = {name: Path(file) for name, file in changes.get("inputs", {"a": "x.npy", "b": "x.npy"}).items()}
    named = {key: [(n, Path(f)) for n, f in changes.get(key, ())] for key in ("outputs", "captures")}
    found = refusal(lambda request: list(run_request.run_network(request)), RunArguments(path, inputs=files, **named))
    assert found.code == code
    assert words in str(found)


def test_a_run_prints_notes_files_and_the_median(layerwright: Run, tmp_path: Path) -> None:
    path = two_inputs(tmp_path / "two.xml")
    values = {"a": np.full((1, 1, 4, 6), 0.25, np.float32), "b": np.ones((1, 1, 4, 6), np.float32)}
    for name, array in values.items():
        np.save(tmp_path / f"{name}.npy", array)
    feed = [word for name in values for word in ("--input", f"{name}={tmp_path / name}.npy")]
    done = layerwright("run", path, *feed, "--iterations", 3, "--threads", 1)
    lines = done.out.splitlines()
    assert lines[0] == "nothing was written: give --output NAME=PATH or --capture LAYER=PATH"
    assert lines[1].startswith("onnxruntime fp32: median ")
    assert lines[1].endswith(" of 3")
    done = layerwright("run", path, *feed, "--output", f"result={tmp_path / 'r.npy'}")
    assert done.out.splitlines()[0] == f"result -> {tmp_path / 'r.npy'}  1 x 1 x 4 x 6"
    np.testing.assert_array_equal(np.load(tmp_path / "r.npy"), np.full((1, 1, 4, 6), 0.75))


@pytest.mark.parametrize(
    ("iterations", "median"), [(1, "900 ms, including the time to build the network"), (2, "median 3.00 ms of 2")]
)
def test_the_median_is_without_the_first_run_which_builds_the_network(
    layerwright: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, iterations: int, median: str
) -> None:
    path = network(
        tmp_path / "n.xml", Layer("x", "input", params={"dims": "6x4x1"}), Layer("y", "output", inputs=(Source("x"),))
    )
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 4, 6), np.float32))
    times, run = iter((900.0, 2.0, 4.0, 8.0)), Session.run
    monkeypatch.setattr(Session, "run", lambda *a, **k: replace(run(*a, **k), milliseconds=next(times)))
    done = layerwright("run", path, "--input", f"x={tmp_path / 'x.npy'}", "--iterations", iterations)
    assert done.out.splitlines()[-1] == f"onnxruntime fp32: {median}"


@pytest.mark.parametrize("lowest", [-0.5, 0.5])
@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_a_run_warns_of_nan_in_one_of_several_outputs(
    layerwright: Run, tmp_path: Path, engine: str, lowest: float
) -> None:
    path = network(
        tmp_path / "n.xml",
        Layer("image", "input", params={"dims": "6x4x1"}),
        Layer("log", "unary", inputs=(Source("image"),), params={"function": "log"}),
        Layer("good", "output", inputs=(Source("image"),)),
        Layer("bad", "output", inputs=(Source("log"),)),
    )
    np.save(tmp_path / "x.npy", np.linspace(lowest, 1, 24, dtype=np.float32).reshape(1, 1, 4, 6))
    done = layerwright("run", path, "--input", f"image={tmp_path / 'x.npy'}", "--engine", engine)
    assert done.code == 0, done.err
    assert ("warning: NaN is first in 'log'" in done.err) is (lowest < 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--throughput",), "--throughput needs a folder of images"),
        (("--cluster", "local", "--output", "result=x.npy"), "--cluster runs folders of images"),
        (("--tile", "-3"), "'-3' is not a tile size"),
    ],
)
def test_options_of_folders_need_folders(
    layerwright: Run, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    path = two_inputs(tmp_path / "two.xml")
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 4, 6), np.float32))
    feed = [word for name in "ab" for word in ("--input", f"{name}={tmp_path / 'x.npy'}")]
    done = layerwright("run", path, *feed, *options)
    assert done.code == 1
    assert words in done.err


def test_folders_refuse_captures(layerwright: Run, tmp_path: Path) -> None:
    path = network(
        tmp_path / "n.xml",
        Layer("image", "input", params={"dims": "6x4x3"}),
        Layer("result", "output", inputs=(Source("image"),)),
    )
    (tmp_path / "images").mkdir()
    write_image(tmp_path / "images" / "a.png", np.zeros((1, 3, 4, 6), np.float32))
    feed = ("--input", f"image={tmp_path / 'images'}")
    for words, said in (
        (("--output", f"result={tmp_path / 'out'}", "--capture", f"image={tmp_path / 'c'}"), "only for single images"),
        (("--capture", f"image={tmp_path / 'c.npy'}"), "only for single images"),
        ((), "needs --output"),
    ):
        done = layerwright("run", path, *feed, *words)
        assert done.code == 1
        assert said in done.err
    done = layerwright("run", path, *feed, "--throughput", "--against", "torch", "--threads", 1)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("onnxruntime fp32: ")
    assert "times" not in lines[0]
    assert lines[1].startswith("torch: torch fp32: ")
    assert " times); " in lines[1]
    assert lines[2] == "measured on 1 images in turn, without reading and writing"
    done = layerwright("run", path, *feed, "--against", "torch")
    assert (done.code, "--against needs --throughput" in done.err) == (1, True)


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_an_unknown_format_of_a_profile_is_refused_before_anything_is_read(
    layerwright, tmp_path: Path, option: str
) -> None:
    done = layerwright("profile", tmp_path / "missing.xml", option, tmp_path / "profile.txt")
    assert (done.code, "unknown-format" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("prune", "--report", "r.json"), "--report needs --output"),
        (("prune", "--validate", "images"), "--validate needs --output"),
        (("prune", "-o", "w", "--report", "r.txt"), "unknown-format"),
        (("prune", "-o", "w", "--report", "r"), "unknown-format"),
        (("precision", "--to", "fp16", "--validate", "images", "-o", "a.onnx", "--report", "r"), "unknown-format"),
        (("precision", "--to", "fp16", "--validate", "images", "-o", "a.onnx", "--report", "r.txt"), "unknown-format"),
    ],
)
def test_reports_that_would_not_be_written_are_refused(layerwright, words: tuple[str, ...], said: str) -> None:
    done = layerwright(words[0], "missing.xml", *words[1:])
    assert (done.code, said in done.err) == (1, True)


@pytest.mark.parametrize("to", ["int8", "int8+fp16"])
def test_layers_of_int8_are_not_kept_by_name(layerwright, tmp_path: Path, to: str) -> None:
    given = ("--to", to, "--calibration", tmp_path, "--keep", "conv", "-o", tmp_path / "a.onnx")
    done = layerwright("precision", tmp_path / "n.xml", *given)
    assert (done.code, "--keep conv: " in done.err) == (1, True)


# --- other commands ------------------------------------------------------------------------------------------------


def test_engines_are_listed_with_what_they_compute_in(layerwright: Run) -> None:
    done = layerwright("engines")
    assert done.code == 0
    line = next(line for line in done.out.splitlines() if "onnxruntime" in line)
    assert "ready" in line
    assert "fp32" in line


def test_operators_are_listed_with_category_and_parameters(layerwright: Run) -> None:
    done = layerwright("operators")
    assert done.code == 0
    assert any("convolution" in line and "features" in line.replace("│", " ") for line in done.out.splitlines())
    assert "attached activations: " in done.out
    assert "plugin folder: " in done.out


def test_diff_with_and_without_moves(layerwright: Run, tmp_path: Path) -> None:
    one = two_inputs(tmp_path / "one.xml")
    layers = [replace(layer, position=(500, 20)) if layer.name == "b" else layer for layer in open_network(one).graph]
    save_document(Graph(layers, name="one"), tmp_path / "two.xml")
    done = layerwright("diff", one, tmp_path / "two.xml")
    assert done.code == 1
    assert "b" in done.out
    same = layerwright("diff", one, tmp_path / "two.xml", "--no-moves")
    assert (same.code, same.out) == (0, "no differences\n")
    found = layerwright("diff", one, tmp_path / "two.xml", "--json")
    assert found.code == 1
    assert json.loads(found.out)
    broken = tmp_path / "broken.xml"
    broken.write_text("<NetworkModel")
    (tmp_path / "other.xml").write_text("<Other/>")
    problems = {path.name: list(map(str, read_document(path).diagnostics)) for path in (broken, tmp_path / "other.xml")}
    for names in (
        (one.name, broken.name),
        (broken.name, one.name),
        (broken.name, "other.xml"),
        (broken.name, broken.name),
    ):
        failed = layerwright("diff", *(tmp_path / name for name in names))
        assert (failed.code, failed.out) == (1, "")
        assert failed.err.splitlines() == [line for name in names for line in problems.get(name, ())]


def test_sizes_are_printed_with_causes_exceptions_and_what_is_coupled(capsys: pytest.CaptureFixture[str]) -> None:
    item = SimpleNamespace(
        layer="photo", height=Rule("multiples of 4", True, [SimpleNamespace(size=5, layer="blocks", message="no")]),
        width=Rule("any", False, []), with_inputs=("guide", "mask"),
    )  # fmt: skip
    contract: Any = SimpleNamespace(
        problem=None, inputs=[item], exceptions=[(7, 9), (1, 2)], coupled=[("pool", "sum is 8")]
    )
    sizes._print(contract)
    assert capsys.readouterr().out.splitlines() == [
        "photo",
        "  height: multiples of 4",
        "    5 fails at blocks: no",
        "  width: any (tried up to 512)",
        "  the same size as guide, mask",
        "except 9 x 7, 2 x 1",
        "sum is 8, because of pool. The rules hold while the other size keeps its value.",
    ]


class Rule:
    def __init__(self, text: str, proven: bool, causes: list[Any]) -> None:
        self.text, self.proven, self.causes = text, proven, causes

    def __str__(self) -> str:
        return self.text


def test_output_of_sizes_needs_fix(layerwright: Run, tmp_path: Path) -> None:
    done = layerwright("sizes", two_inputs(tmp_path / "two.xml"), "-o", tmp_path / "new.xml")
    assert done.code == 2
    assert "--output needs --fix" in done.err
    assert not (tmp_path / "new.xml").exists()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(28, "No space left on device", "a.png"), "a.png: No space left on device"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("strange"), "strange"),
    ],
)
def test_errors_of_the_system_name_file_and_reason(error: OSError, message: str) -> None:
    assert console.of_the_system(error).message == message
    assert console.of_the_system(MemoryError()).code == "out-of-memory"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [(KeyboardInterrupt(), 130, "stopped"), (BrokenPipeError(), 1, ""), (MemoryError(), 1, "ran out of memory")],
)
def test_exit_statuses_of_interruptions(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, words: str
) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setattr(main, "app", fails)
    done = layerwright("check")
    assert (done.code, words in done.err) == (code, True)


# --- prune ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    """Two convolutions, of which the first has too few input channels, and weights."""
    path = network(
        tmp_path / "net.xml",
        Layer("image", "input", params={"dims": "8x6x3"}),
        Layer("first", "convolution", inputs=(Source("image"),), params={"features": "8", "kernel": "3x3", "apply_bias": "false"}),
        Layer("second", "convolution", inputs=(Source("first"),), params={"features": "4", "kernel": "3x3", "apply_bias": "false"}),
        Layer("result", "output", inputs=(Source("second"),)),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    (tmp_path / "weights").mkdir()
    for name, shape in (("first", (8, 3, 3, 3)), ("second", (4, 8, 3, 3))):
        np.save(tmp_path / "weights" / f"{name}_kernel.npy", rng.standard_normal(shape).astype(np.float32))
    return path


def test_prune_checks_writes_and_reports(layerwright: Run, dense: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = dense.parent
    monkeypatch.setattr("exporters.sparse_sweep.no_sweep", lambda: "there is no GPU")
    weights = ("--weights", folder / "weights")
    done = layerwright("prune", dense, *weights)
    assert done.code == 1
    assert "second: 72 groups of four are not 2:4 sparse" in done.out
    assert "first is not pruned: " in done.out
    (folder / "images").mkdir()
    for seed, name in enumerate("ab"):
        array = np.random.default_rng(seed).random((1, 3, 6, 8), np.float32) * np.float32(0.2 + 0.8 * seed)
        write_image(folder / "images" / f"{name}.png", array)
    report = folder / "r.json"
    images = ("--validate", folder / "images", "--report", report)
    done = layerwright("prune", dense, *weights, "-o", folder / "sparse", *images)
    assert done.code == 0, done.err
    assert "second: " in done.out
    assert "of the magnitude is kept" in done.out
    assert "on 2 images, before retraining" in done.out
    assert "times of dense and sparse weights: unavailable, there is no GPU" in done.out
    found = json.loads(report.read_text())
    by_layer = {entry["layer"]: entry for entry in found["layers"]}
    assert (by_layer["first"]["pruned"], by_layer["second"]["pruned"]) == (False, True)
    assert by_layer["first"]["reason"]
    assert "kept" not in by_layer["first"]
    assert 0.5 < by_layer["second"]["kept"] < 1
    assert len(set(found["images"].values())) == 2
    mean = sum(found["images"].values()) / 2
    assert found["psnr_db"] == pytest.approx(mean)
    assert f"{mean:.2f} dB against the dense weights on 2 images, before retraining" in done.out.splitlines()
    assert set(found["images"]) == {"a.png", "b.png"}
    assert found["batch_sweep"] == {"unavailable": "there is no GPU"}
    done = layerwright("prune", dense, "--weights", folder / "sparse")
    assert done.code == 0
    assert "second: sparse" in done.out
    done = layerwright("prune", dense, *weights, "-o", folder / "sparse")
    assert done.code == 1
    assert "has files; nothing was changed" in done.err


@pytest.mark.parametrize("sparse", [(), ("second",), ("third",), ("second", "third")])
def test_weights_are_sparse_if_those_of_every_layer_are(layerwright: Run, dense: Path, sparse: tuple[str, ...]) -> None:
    folder = dense.parent
    read = {layer.name: layer for layer in open_network(dense).graph}
    third = replace(
        read["second"], name="third", inputs=(Source("first"),), params={**read["second"].params, "features": "2"}
    )
    both = Layer("both", "concatenation", inputs=(Source("second"), Source("third")))
    path = network(
        folder / "both.xml", *(read[name] for name in ("image", "first", "second")), third, both,
        Layer("result", "output", inputs=(Source("both"),)),
    )  # fmt: skip
    for name, outputs in (("second", 4), ("third", 2)):
        kernel = np.arange(1, 1 + outputs * 8 * 9, dtype=np.float32).reshape(outputs, 8, 3, 3)
        if name in sparse:
            kernel[:, [0, 2, 5, 6]] = 0.0
        else:
            kernel[0, [1, 3], 0, 0] = 0.0  # one group of four is sparse
        np.save(folder / "weights" / f"{name}_kernel.npy", kernel)
    done = layerwright("prune", path, "--weights", folder / "weights")
    groups = {"second": 4 * 2 * 9 - 1, "third": 2 * 2 * 9 - 1}
    said = {n: "sparse" if n in sparse else f"{count} groups of four are not 2:4 sparse" for n, count in groups.items()}
    lines = [f"{name}: {text}" for name, text in said.items()]
    assert done.out.splitlines()[:2] == lines
    assert done.out.splitlines()[2].startswith("first is not pruned: ")
    assert done.code == (0 if len(sparse) == 2 else 1)


def test_what_pruning_keeps_is_printed_and_nothing_else_is_left(
    layerwright: Run, dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, report = dense.parent, dense.parent / "r.json"
    monkeypatch.setattr("exporters.sparse_sweep.no_sweep", lambda: "there is no GPU")
    (folder / "images").mkdir()
    write_image(folder / "images" / "a.png", np.random.default_rng(1).random((1, 3, 6, 8), np.float32))
    (folder / "images" / "broken.png").write_bytes(b"no image")
    words = (
        "--weights",
        folder / "weights",
        "-o",
        folder / "sparse",
        "--report",
        report,
        "--validate",
        folder / "images",
    )
    done = layerwright("prune", dense, *words)
    assert done.code == 0, done.err
    (kernel,) = (entry for entry in json.loads(report.read_text())["layers"] if entry["pruned"])
    kept, plain = (percent(kernel[name]) for name in ("kept", "kept_unpermuted"))
    assert kept != plain
    assert f"second: {kept} of the magnitude is kept ({plain} without the permutation)" in done.out.splitlines()
    assert "skipped broken.png: " in done.err
    assert not list(folder.glob(".lw-prune-*"))
    path = network(folder / "alone.xml", *(layer for layer in open_network(dense).graph if layer.name in ("image", "first")),
                   Layer("result", "output", inputs=(Source("first"),)))  # fmt: skip
    done = layerwright("prune", path, "--weights", folder / "weights")
    assert (done.code, done.out) == (1, "")


def test_pruned_and_dense_weights_are_timed(layerwright: Run, dense: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def timed(graph: Graph, registry: object, one: Weights, other: Weights) -> list[SweepRow]:
        seen.extend((one, other))
        return [SweepRow(1, 3.0, 2.0), SweepRow(16, 1.0, 4.0)]

    monkeypatch.setattr("exporters.sparse_sweep.no_sweep", lambda: "")
    monkeypatch.setattr("exporters.sparse_sweep.sparse_sweep", timed)
    folder, report = dense.parent, dense.parent / "r.json"
    done = layerwright("prune", dense, "--weights", folder / "weights", "-o", folder / "sparse", "--report", report)
    assert done.code == 0, done.err
    assert "batch 1: 3 ms dense, 2 ms sparse (1.50 times as fast)" in done.out
    assert "batch 16: 1 ms dense, 4 ms sparse (0.25 times as fast)" in done.out
    assert "unavailable" not in done.out
    zeros = [int((one.tensors[WeightKey("second", "kernel")] == 0).sum()) for one in seen]
    assert zeros == [0, 4 * 8 * 9 // 2]
    assert json.loads(report.read_text())["batch_sweep"][1] == {"batch": 16, "dense": 1.0, "sparse": 4.0}


def test_a_sweep_is_a_table_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    candidate: Any = SimpleNamespace(layer="a", inputs=8, outputs=4, work=0.5, gains=True, reason="")
    kernel = SimpleNamespace(layer="a", kept=0.75, kept_unpermuted=0.5)
    monkeypatch.setattr("designer.surgery.sparsity.expected_gain", lambda found: "twice")
    pruned: Any = SimpleNamespace(kernels=[kernel])
    found = prune._report((candidate,), pruned, {}, [SweepRow(4, 2.0, 1.5)], "")
    assert found["batch_sweep"] == [{"batch": 4, "dense": 2.0, "sparse": 1.5}]
    assert (found["gain"], found["psnr_db"], found["violations"]) == ("twice", None, 0)
    for images, mean, written in (
        ({"a": 30.0, "b": 50.0, "c": 10.0}, 30.0, {"a": 30.0, "b": 50.0, "c": 10.0}),
        ({"a": 30.0, "b": float("inf")}, None, {"a": 30.0, "b": None}),
    ):
        more = prune._report((candidate,), pruned, images, [], "no GPU")
        assert (more["psnr_db"], more["images"], more["batch_sweep"]) == (mean, written, {"unavailable": "no GPU"})
    assert found["layers"] == [
        {
            "layer": "a", "inputs": 8, "outputs": 4, "share_of_operations": 0.5, "can_be_faster": True, "pruned": True,
            "reason": "", "kept": 0.75, "kept_unpermuted": 0.5,
        }
    ]  # fmt: skip


def test_psnr_of_pruned_weights_is_that_of_the_results(dense: Path) -> None:
    found = open_network(dense)
    folder = dense.parent
    one = load_weights(folder / "weights", required_weights(found.inference))
    write_image(folder / "a.png", np.full((1, 3, 6, 8), 0.5, np.float32))
    other = Weights({key: array * np.float32(0.5) for key, array in one.tensors.items()})
    (folder / "only").mkdir()
    (folder / "a.png").rename(folder / "only" / "a.png")
    same = prune._compare(found, one, one, folder / "only")
    assert same == {"a.png": float("inf")}
    assert prune._compare(found, one, other, folder / "only")["a.png"] < 40


# --- precision -----------------------------------------------------------------------------------------------------


def test_the_summary_of_a_precision_names_every_layer_that_matters() -> None:
    result = SimpleNamespace(
        precision="fp16", psnr_db=51.234, kept={"last": "by request"}, layers=7, bf16_db=40.0,
        nonfinite={"log": 3}, overflow={"large": 7e4, "last": 8e4}, underflow={"small": 0.25, "less": 0.0125, "fine": 0.01},
    )  # fmt: skip
    used = SimpleNamespace(images=("a", "b"), skipped={"c.txt": "not an image"})
    made: Any = SimpleNamespace(result=result, validation=used, written=SimpleNamespace(bytes=2048))
    assert precision._precision_summary(made) == [
        "skipped c.txt: not an image",
        "2 images used, 1 skipped",
        "log has 3 values that are NaN or infinite in FP32",
        "large overflows in FP16: values up to 7e+04",
        "small: 25.00% of the values become 0",
        "less: 1.25% of the values become 0",
        "last stays in FP32: by request",
        "BF16 has the range of FP32 and reaches 40.00 dB: --to bf16",
        "51.23 dB against FP32; 6 of 7 layers in FP16; 2.00 KiB",
    ]
    result.psnr_db, result.bf16_db, used.skipped = float("inf"), None, {}
    lines = precision._precision_summary(made)
    assert lines[0] == "2 images used"
    assert lines[-1].startswith("equal to FP32; ")


def test_the_summary_of_int8_names_kept_layers_and_sizes() -> None:
    result = SimpleNamespace(psnr_db=33.333, kept={"last": "sensitive"}, quantized=("a", "b", "c"))
    images = SimpleNamespace(names=("a", "b"), skipped={"c.txt": "not an image"})
    made: Any = SimpleNamespace(result=result, images=images, format="float16", bytes=1024, bytes_fp32=4096)
    assert precision._summary(made) == [
        "skipped c.txt: not an image",
        "2 images used, 1 skipped",
        "last stays in float16: sensitive",
        "33.33 dB against FP32; 3 layers in INT8; 1.00 KiB instead of 4.00 KiB",
    ]


def test_convert_writes_what_it_can_read_and_prints_what_it_cannot(layerwright: Run, tmp_path: Path) -> None:
    path = two_inputs(tmp_path / "two.xml")
    path.write_text(path.read_text().replace('edit_pos="0,0"', 'edit_pos="here"', 1))
    findings = read_document(path).diagnostics
    assert findings
    done = layerwright("convert", path, tmp_path / "copy.xml")
    assert done.code == 0, done.err
    for finding in findings:
        assert finding.message in done.err
    assert done.out == f"wrote {tmp_path / 'copy.xml'}\n"
    assert read_document(tmp_path / "copy.xml").diagnostics == ()
    path.write_text("<NetworkModel")
    done = layerwright("convert", path, tmp_path / "other.xml")
    assert done.code == 1
    assert not (tmp_path / "other.xml").exists()


@pytest.mark.parametrize("sample", ["denoiser.xml", "starting_points/autoencoder.xml"])
def test_training_and_sweeps_of_samples_write_into_the_data_folder(
    layerwright: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: str
) -> None:
    started: list[Path] = []
    monkeypatch.setattr("platformdirs.user_data_path", lambda _name: tmp_path / "data")
    monkeypatch.setattr("designer.training.trainer.start", lambda run, _options: started.append(run.path))
    monkeypatch.setattr("app.engine.sweep_process.conduct", lambda made, *_: started.append(made.folder))
    monkeypatch.setattr("exporters.pytorch.export_project", lambda *_: None)
    monkeypatch.setattr("app.engine.sweep_job.prepare", lambda *_: [])
    monkeypatch.setattr("app.cli.sweep._print", lambda _: None)
    link = tmp_path / "link.xml"
    link.symlink_to(samples.path(sample))
    for file in (samples.path(sample), link):
        assert layerwright("train", file, "--data", tmp_path, "--detach").code == 0
        assert layerwright("sweep", file, "--grid", "lr=0.1,0.2", "--data", tmp_path).code == 0
    projects = tmp_path / "data" / "projects"
    assert len(started) == 4
    assert all(projects in folder.parents for folder in started)
    assert started[1] == projects / f"{Path(sample).stem}_sample_sweep"


def test_warnings_of_check_are_not_counted_as_errors(layerwright: Run, tmp_path: Path) -> None:
    path = network(
        tmp_path / "n.xml",
        Layer("x", "input", params={"dims": "6x4x3"}),
        Layer("conv", "convolution", inputs=(Source("x"),), params={"strange": "1"}),
        Layer("y", "output", inputs=(Source("conv"),)),
    )
    done = layerwright("check", path)
    assert done.code == 0
    assert "3 layers, " in done.out
    assert " parameters, 0 errors" in done.out
    assert "warning" in done.out + done.err


# --- blame, passes, profile, train ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2, 10])
def test_blame_prints_as_many_operators_as_asked(
    layerwright: Run, dense: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    operators = (Blamed("first", -0.25, 0.5), Blamed("second", 1.25, 0.125), Blamed("third", 0.0, 0.0078125))
    monkeypatch.setattr("app.computations.blame_between", lambda *_: Blame(operators, 0.0312, "first"))
    weights = ("--weights", dense.parent / "weights", "--rows", rows)
    done = layerwright("blame", dense, "--a", "fp32", "--b", "int8", "--input", "a.png", *weights)
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.out.splitlines() if "│" in line]
    expected = [["second", "125.0%", "0.12"], ["first", "-25.0%", "0.5"], ["third", "0.0%", "0.0078"]]
    assert cells == expected[:rows]
    assert done.out.splitlines()[-2:] == ["error of the result: 0.0312 RMS", "first operator that deviates: first"]


@pytest.mark.parametrize("kept", [True, False])
def test_passes_print_every_pass_and_end_with_1_if_the_outputs_differ(
    layerwright: Run, dense: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    results = (
        PassResult("fold_constants", 2, Traffic(9, 4096), Traffic(7, 3072)),
        PassResult("fuse_activations", 1, Traffic(7, 3072), Traffic(6, 1024)),
    )
    made = Optimized(open_network(dense).graph, Weights(), results)
    monkeypatch.setattr("designer.passes.passes.optimize", lambda *_: made)
    monkeypatch.setattr("designer.passes.effect.pass_effect", lambda *_: EditEffect(0.25, kept))
    weights, output = ("--weights", dense.parent / "weights"), dense.with_suffix(".onnx")
    done = layerwright("passes", dense, *weights)
    assert done.code == (0 if kept else 1)
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.out.splitlines() if "│" in line]
    assert cells == [
        ["fold_constants", "2", "9 -> 7", "4.00 KiB -> 3.00 KiB"],
        ["fuse_activations", "1", "7 -> 6", "3.00 KiB -> 1.00 KiB"],
    ]
    assert done.out.splitlines()[-1] == str(EditEffect(0.25, kept))
    found = json.loads(layerwright("passes", dense, *weights, "--json").out)
    assert (found["max_abs"], found["equal"]) == (0.25, kept)
    assert [entry["after"]["bytes"] for entry in found["passes"]] == [3072, 1024]
    monkeypatch.setattr("exporters.onnx.export_onnx", lambda graph, _, __, path: path.write_text(graph.name))
    assert layerwright("passes", dense, *weights, "-o", output).code == (0 if kept else 1)
    assert output.read_text() == made.graph.name


def profiled(*times: float) -> Profile:
    """Runs of one operator each, with these times in ms."""
    runs = (
        ProfileRun("torch", "fp32", "nchw", "cpu", number, "6x4", time, 0.0, (OperatorProfile(("first",), "convolution", time),))
        for number, time in enumerate(times, 1)
    )  # fmt: skip
    return Profile(Machine("Test CPU", 2), "net", tuple(runs))


def test_a_profile_has_the_training_step_and_the_difference_to_another_one(
    layerwright: Run, dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = TrainingStep(4, 15.0, 5.0, 4.0, 3.0, 2.0, 1.0, "compute", "the device is never idle")
    monkeypatch.setattr("designer.profiling.measure.profile_session", lambda *_, **__: profiled(8.0, 9.0))
    monkeypatch.setattr("app.engine.training_profile.profile_training", lambda *_: step)
    path, other = dense.with_suffix(".json"), dense.with_name("other.json")
    save_profile(other, profiled(6.0))
    words = ("profile", dense, "--weights", dense.parent / "weights", "--json", path)
    done = layerwright(*words, "--training", "--against", other)
    assert done.code == 0, done.err
    assert [run.training for run in load_profile(path).runs] == [step, None]
    assert done.out.count("Training step of batch 4: 15.0 ms") == 1
    assert "whole network" in done.out
    table = [line for line in done.out.splitlines() if line.startswith("│ whole network")]
    assert [cell.strip() for cell in table[0].split("│")[2:5]] == ["6.00 ms", "8.00 ms", "2.00 ms"]
    assert layerwright(*words).out.count("Training step") == 0


def test_an_interrupted_profile_prints_and_keeps_what_was_measured(
    layerwright: Run, dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, on_profile: Callable[[Profile], None], **__: object) -> None:
        on_profile(profiled(7.0))
        on_profile(profiled(8.0))  # replaces the first one
        raise KeyboardInterrupt

    monkeypatch.setattr("designer.profiling.measure.profile_session", interrupted)
    path, page = dense.with_suffix(".json"), dense.with_suffix(".html")
    done = layerwright("profile", dense, "--weights", dense.parent / "weights", "--json", path, "--html", page)
    assert (done.code, done.err) == (130, "stopped\n")
    assert done.out.splitlines()[-2:] == [f"wrote {path}", f"wrote {page}"]
    assert "8.00 ms" in page.read_text()
    assert done.out.count("whole network") == done.out.count("whole network 8.00 ms") == 1
    assert [run.time_ms for run in load_profile(path).runs] == [8.0]
    plain = layerwright("profile", dense, "--weights", dense.parent / "weights")
    assert (plain.code, plain.err) == (130, "stopped\n")
    assert plain.out.splitlines() == done.out.splitlines()[:-2], "without files it is printed all the same"


@pytest.mark.parametrize(
    ("state", "code", "said"),
    [
        ("finished", 0, "finished: weights are in w"),
        ("stopped", 130, "stopped: weights are in w"),
        ("failed", 1, "failed: weights are in w"),
        ("running", 1, "interrupted: The process ended unexpectedly. Resume continues from the last checkpoint."),
    ],
)
def test_following_a_run_prints_its_steps_and_ends_with_its_state(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, state: str, code: int, said: str
) -> None:
    run = RunFolder(tmp_path / "p" / "runs" / "a")
    run.path.mkdir(parents=True)
    status = {"state": state, "pid": 0, "step": 12, "total_steps": 40, "message": "weights are in w"}
    (run.path / "status.json").write_text(json.dumps(status))
    line = {"step": 12, "loss": 0.123456, "validation": {"psnr": 31.5, "ssim": 0.875}}
    run.metrics.write_text(json.dumps({"schema": 1, "total_steps": 40}) + "\n" + json.dumps(line) + "\n")
    assert train._follow(run.path, lambda: iter(())) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["step 12 of 40, loss 0.1235, psnr 31.5, ssim 0.875", said]


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_stops_a_run_after_its_step_and_the_second_one_leaves_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, presses: int
) -> None:
    run = RunFolder(tmp_path / "p" / "runs" / "a")
    run.path.mkdir(parents=True)
    sent: list[str] = []

    def send(folder: RunFolder, command: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)  # as from a program that passes Ctrl+C on to this one
        sent.append(command)

    monkeypatch.setattr("designer.training.run_folder.RunFolder.send", send)
    left = iter([True] * presses)

    def status(state: str) -> None:
        text = {"state": state, "pid": os.getpid(), "step": 1, "total_steps": 9, "message": ""}
        (run.path / "status.json").write_text(json.dumps(text))

    def looks() -> Iterator[None]:
        status("running")
        if next(left, False):
            raise KeyboardInterrupt
        status("stopped")
        yield

    if presses == 2:
        with pytest.raises(KeyboardInterrupt):
            train._follow(run.path, looks)
    else:
        assert train._follow(run.path, looks) == 130
    captured = capsys.readouterr()
    assert (sent, captured.err) == (["stop"], "stopping after this step\n")
    assert captured.out.splitlines()[-1:] == (["stopped"] if presses == 1 else [])


@pytest.mark.parametrize("note", ["", "emulated in FP32"])
def test_a_profile_says_how_its_variant_runs(
    layerwright: Run, dense: Path, monkeypatch: pytest.MonkeyPatch, note: str
) -> None:
    from app import variant

    monkeypatch.setattr(variant.OpenedVariant, "note", property(lambda self: note))
    monkeypatch.setattr("designer.profiling.measure.profile_session", lambda *_, **__: profiled(8.0))
    done = layerwright("profile", dense, "--weights", dense.parent / "weights")
    assert (done.code, done.err) == (0, f"note: {note}\n" if note else "")


class Bar:
    """The progress bars of `rich`: what they were given."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def __call__(self, **given: Any) -> Bar:
        assert given["transient"]
        return self

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def add_task(self, text: str, *, total: int | None) -> str:
        self.log.append((text, total))
        return "task"

    def update(self, task: str, *, completed: int, total: int | None, description: str) -> None:
        self.log.append((task, completed, total, description))


@pytest.mark.parametrize("to", ["fp16", "int8"])
def test_the_progress_of_a_conversion_is_shown(
    layerwright: Run, dense: Path, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    """Without a known number of steps, the bar moves to and fro."""
    log: list[Any] = []

    def export(*_: object, progress: Callable[[int, int, str], None], **__: object) -> Any:
        progress(0, 0, "reading")
        progress(3, 8, "layer")
        raise DiagnosticError.of("a-code", "it ends here")

    monkeypatch.setattr("rich.progress.Progress", Bar(log))
    monkeypatch.setattr("exporters.mixed.export_precision", export)
    monkeypatch.setattr("exporters.int8.export_int8", export)
    folder = ("--validate" if to == "fp16" else "--calibration", dense.parent)
    done = layerwright(
        "precision", dense, "--to", to, "-o", dense.with_suffix(".onnx"), *folder, "--weights", dense.parent / "weights"
    )
    assert (done.code, "it ends here" in done.err) == (1, True)
    assert log == [("", None), ("task", 0, None, "reading"), ("task", 3, 8, "layer")]
