"""The command line, played in this process with real files and real engines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_kit import Run, layerwright
from rich.table import Table

import samples
from app.cli import main as cli
from app.cli.console import err, out
from designer.files.document import DOCUMENTS, write_document
from designer.files.formats import Format
from designer.files.settings import Settings, save_settings, settings_path
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source

__all__ = ["layerwright"]
NETWORK = """<?xml version="1.0"?>
<NetworkModel name="tiny" version="2" user_version_tag="1">
	<Layer name="conv_1" type="convolution" edit_pos="160,0" input="picture">
		<Parameters apply_bias="true" features="4" kernel="3x3" padding="same" padding_tuple="0x0" stride="1x1" />
		<Activation type="relu">
			<Parameters alpha="0.0" />
		</Activation>
	</Layer>
	<Layer name="picture" type="input" edit_pos="0,0">
		<Parameters dims="16x12x3" rgba="false" scale="1.0" shift="0" tiling="1" />
	</Layer>
	<Layer name="result" type="output" edit_pos="320,0" input="conv_1">
		<Parameters analysis_view="tensor" channels="0" height="0" label_path="" offset="0x0x0" width="0" />
	</Layer>
</NetworkModel>
"""


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.xml"
    path.write_text(NETWORK)
    return path


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    generator = np.random.default_rng(0)
    np.save(folder / "conv_1_kernel.npy", generator.standard_normal((4, 3, 3, 3)).astype(np.float32))
    np.save(folder / "conv_1_bias.npy", generator.standard_normal(4).astype(np.float32))
    return folder


def test_check_shows_shapes(layerwright: Run, network: Path) -> None:
    done = layerwright("check", network)
    assert done.code == 0
    assert "N x 4 x 12 x 16" in done.out
    assert "112 parameters, 0 errors" in done.out


@pytest.mark.parametrize(("count", "options", "listed"), [(59, (), True), (60, (), False), (60, ("--layers",), True)])
def test_check_prints_problems_and_totals_before_the_layers(
    layerwright: Run, tmp_path: Path, count: int, options: tuple[str, ...], listed: bool
) -> None:
    layers = [Layer("image", "input", params={"dims": "16x12x3"})]
    layers += [Layer(f"same_{n}", "identity", inputs=(Source(layers[-1].name),)) for n in range(1, count - 1)]
    layers.append(Layer("lost", "identity", inputs=(Source("gone"),)))
    path = tmp_path / "chain.xml"
    path.write_bytes(write_document(Graph(layers, name="chain")))
    done = layerwright("check", path, *options)
    assert done.code == 1
    assert "unknown-source" in done.err
    assert done.out.startswith(f"chain: {count} layers, 0 parameters, 1 error\n")
    assert ("N x 3 x 12 x 16" in done.out) is listed
    assert ("layerwright check --layers" in done.out) is not listed


def test_check_json_names_the_broken_layer(layerwright: Run, network: Path) -> None:
    network.write_text(NETWORK.replace('input="picture"', 'input="gone"'))
    done = layerwright("check", network, "--json")
    assert done.code == 1
    report = json.loads(done.out)
    (finding,) = [d for d in report["diagnostics"] if d["severity"] == "error"]
    assert (finding["code"], finding["layer"]) == ("unknown-source", "conv_1")
    by_layer = {row["layer"]: row["shape"] for row in report["layers"]}
    assert by_layer["result"] == "unknown because of conv_1"


def test_check_json_of_a_file_that_is_none(layerwright: Run, tmp_path: Path) -> None:
    path = tmp_path / "broken.xml"
    path.write_text("<NetworkModel")
    done = layerwright("check", path, "--json")
    assert done.code == 1
    assert json.loads(done.out)["diagnostics"][0]["severity"] == "error"


@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_run_warns_of_nan_that_a_hidden_layer_computes(layerwright: Run, tmp_path: Path, engine: str) -> None:
    pytest.importorskip(engine)
    layers = [
        Layer("picture", "input", params={"dims": "16x12x3"}),
        Layer("log", "unary", inputs=(Source("picture"),), params={"function": "log"}),
        Layer("bright", "compare", inputs=(Source("log"),), params={"value": "-1"}),
        Layer("number", "cast", inputs=(Source("bright"),)),
        Layer("result", "output", inputs=(Source("number"),)),
    ]
    network = tmp_path / "log.xml"
    network.write_bytes(write_document(Graph(layers)))
    result = tmp_path / "out.npy"
    for lowest, warned in ((-0.5, True), (0.5, False)):
        np.save(tmp_path / "in.npy", np.linspace(lowest, 1, 12 * 16 * 3, dtype=np.float32).reshape(1, 3, 12, 16))
        done = layerwright(
            "run", network, "--input", f"picture={tmp_path / 'in.npy'}", "--output", f"result={result}",
            "--engine", engine, "--threads", 1,
        )  # fmt: skip
        assert done.code == 0, done.err
        assert np.isfinite(np.load(result)).all()
        assert ("warning: NaN is first in 'log' (33.3 % of its values)" in done.err) is warned
        assert "NaN" not in done.out


@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_run_agrees_with_torch(layerwright: Run, network: Path, weights: Path, tmp_path: Path, engine: str) -> None:
    torch = pytest.importorskip("torch")
    image = np.random.default_rng(1).random((1, 3, 12, 16), dtype=np.float32)
    np.save(tmp_path / "in.npy", image)
    done = layerwright(
        "run", network, "--weights", weights, "--input", f"picture={tmp_path / 'in.npy'}", "--engine", engine,
        "--output", f"result={tmp_path / 'out.npy'}", "--capture", f"conv_1={tmp_path / 'conv.npy'}", "--threads", 1,
    )  # fmt: skip
    assert done.code == 0, done.err
    kernel, bias = (torch.from_numpy(np.load(weights / f"conv_1_{n}.npy")) for n in ("kernel", "bias"))
    expected = torch.relu(torch.nn.functional.conv2d(torch.from_numpy(image), kernel, bias, padding=1)).numpy()
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-5)
    np.testing.assert_allclose(np.load(tmp_path / "conv.npy"), expected, atol=1e-5)


def test_a_layer_is_written_to_every_file_that_is_given(
    layerwright: Run, network: Path, weights: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "in.npy", np.full((1, 3, 12, 16), 0.5, np.float32))
    files = [tmp_path / name for name in ("a.npy", "b.npy", "c.npy", "d.npy")]
    done = layerwright(
        "run", network, "--weights", weights, "--input", f"picture={tmp_path / 'in.npy'}",
        *(word for path in files[:2] for word in ("--output", f"result={path}")),
        *(word for path in files[2:] for word in ("--capture", f"conv_1={path}")),
    )  # fmt: skip
    assert done.code == 0, done.err
    assert len({path.read_bytes() for path in files}) == 1
    twice = [word for name in ("in", "other") for word in ("--input", f"picture={tmp_path / name}.npy")]
    refused = layerwright("run", network, "--weights", weights, *twice)
    assert refused.code == 1
    assert "--input picture is given twice" in refused.err


def test_a_capture_says_that_its_input_was_padded(layerwright: Run, tmp_path: Path) -> None:
    image = np.random.default_rng(1).random((1, 3, 300, 451), dtype=np.float32)
    np.save(tmp_path / "in.npy", image)
    done = layerwright(
        "run", samples.path("denoiser.xml"), "--weights", samples.weights("denoiser"), "--input",
        f"input_image={tmp_path / 'in.npy'}", "--capture", f"conv_2s={tmp_path / 'c.npy'}", "--threads", 1,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert np.load(tmp_path / "c.npy").shape == (1, 32, 152, 228)
    assert "of the input padded from 451 x 300 to 456 x 304" in done.out


@pytest.mark.parametrize(
    ("option", "name", "suffixes"),
    [
        ("--output", "result={}.tiff", ".png, .jpg, .jpeg or .npy"),
        ("--capture", "conv_1={}.mat", ".png, .jpg, .jpeg or .npy"),
        ("--input", "picture={}.heic", ".ppm, .pgm, .npy, .mp4"),
    ],
)
def test_run_refuses_unknown_formats_before_it_writes_anything(
    layerwright: Run, network: Path, weights: Path, tmp_path: Path, option: str, name: str, suffixes: str
) -> None:
    np.save(tmp_path / "in.npy", np.zeros((1, 3, 12, 16), np.float32))
    done = layerwright(
        "run", network, "--weights", weights, "--capture", f"picture={tmp_path / 'good.npy'}",
        option, name.format(tmp_path / "a"), *(("--input", f"picture={tmp_path / 'in.npy'}") if option != "--input" else ()),
    )  # fmt: skip
    assert done.code == 1
    assert "unknown-format" in done.err
    assert suffixes in done.err
    assert not (tmp_path / "good.npy").exists()


def test_folders_go_on_with_the_same_weights_only(
    layerwright: Run, network: Path, weights: Path, tmp_path: Path
) -> None:
    (tmp_path / "images").mkdir()
    np.save(tmp_path / "images" / "a.npy", np.zeros((1, 3, 12, 16), np.float32))
    folders = ("--input", f"picture={tmp_path / 'images'}", "--output", f"result={tmp_path / 'made'}")
    for bias, code, words in ((1, 0, "1 images at"), (1, 0, "0 images, including"), (2, 1, "folder-not-empty")):
        np.save(weights / "conv_1_bias.npy", np.full(4, bias, np.float32))
        done = layerwright("run", network, "--weights", weights, *folders)
        assert done.code == code, done.err
        assert words in done.out + done.err


def test_run_refuses_missing_weights_and_says_so_with_random_ones(
    layerwright: Run, network: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "in.npy", np.zeros((1, 3, 12, 16), np.float32))
    feed = ("--input", f"picture={tmp_path / 'in.npy'}")
    refused = layerwright("run", network, *feed)
    assert refused.code == 1
    assert "weights-missing" in refused.err
    assert "--random-weights" in refused.err
    seeded = layerwright("run", network, *feed, "--random-weights", 3)
    assert seeded.code == 0, seeded.err
    assert "random" in seeded.out
    assert "seed 3" in seeded.out


def test_wrong_names_and_options_are_named(layerwright: Run, network: Path, weights: Path, tmp_path: Path) -> None:
    done = layerwright("run", network, "--weights", weights, "--input", "pictur=x.npy")
    assert done.code == 1
    assert "'pictur'" in done.err
    assert "picture" in done.err
    done = layerwright("run", network, "--weights", weights, "--input", "picture")
    assert done.code == 1
    assert "NAME=PATH" in done.err


@pytest.mark.parametrize(
    ("command", "option", "suffixes"),
    [
        (("export", "onnx", "--random-weights", 1), "--output", "use .onnx"),
        (("profile", "--random-weights", 1), "--json", "use .json or .csv"),
        (("compare", "--random-weights", 1, "--images", "none"), "--report", "use .html"),
        (("compare", "--random-weights", 1, "--images", "none"), "--json", "use .json"),
    ],
)
def test_other_suffixes_are_refused_by_every_command_that_writes(
    layerwright: Run, network: Path, tmp_path: Path, command: tuple[object, ...], option: str, suffixes: str
) -> None:
    done = layerwright(*command, network, option, tmp_path / "a.xml.txt")
    assert done.code == 1
    assert "unknown-format" in done.err
    assert done.err.strip().endswith(suffixes)
    assert not (tmp_path / "a.xml.txt").exists()


@pytest.mark.parametrize("name", ["copy.onnx", "copy.foo", "copy"])
def test_convert_refuses_a_suffix_that_is_not_a_network(
    layerwright: Run, network: Path, tmp_path: Path, name: str
) -> None:
    done = layerwright("convert", network, tmp_path / name)
    assert done.code == 1
    assert "unknown-format" in done.err
    assert "use .xml or .nv-neural-model" in done.err
    assert not (tmp_path / name).exists()


def test_a_format_that_is_registered_is_written_and_named(
    layerwright: Run, network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DOCUMENTS, "formats", list(DOCUMENTS.formats))
    DOCUMENTS.register(Format("Names", (".names",), write=lambda graph: " ".join(graph.layers).encode()))
    assert layerwright("convert", network, tmp_path / "a.names").code == 0
    assert (tmp_path / "a.names").read_text() == "conv_1 picture result"
    assert "use .xml, .nv-neural-model or .names" in layerwright("convert", network, tmp_path / "a.other").err


def test_convert_is_open_and_save_as(layerwright: Run, network: Path, tmp_path: Path) -> None:
    done = layerwright("convert", network, tmp_path / "copy.xml")
    assert done.code == 0
    assert (tmp_path / "copy.xml").read_bytes() == network.read_bytes()


def test_operators_as_json(layerwright: Run) -> None:
    done = layerwright("operators", "--json")
    assert done.code == 0
    by_type = {entry["type"]: entry for entry in json.loads(done.out)}
    kernel = next(p for p in by_type["convolution"]["parameters"] if p["name"] == "kernel")
    assert kernel["default"] == "3x3"


def test_samples_and_starting_points_are_listed_and_open(layerwright: Run) -> None:
    paths = layerwright("samples").out.splitlines()
    starts = [f"starting_points/{name}" for name in samples.STARTING_POINTS]
    assert paths == [str(samples.path(f"{name}.xml")) for name in (*samples.DOCUMENTS, *starts)]
    for path in paths:
        assert layerwright("check", path).code == 0


def test_exports(layerwright: Run, network: Path, weights: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    assert layerwright("export", "pytorch", network, "--output", tmp_path / "project", "--name", "Tiny").code == 0
    assert layerwright("export", "pytorch", network, "--output", tmp_path / "named").code == 0
    assert "class Tiny(" in (tmp_path / "named" / "model.py").read_text()
    assert "class Tiny(" in (tmp_path / "project" / "model.py").read_text()
    again = ("export", "pytorch", network, "--output", tmp_path / "project", "--name", "Tiny", "--weights", weights)
    assert "initial_weights.pt" in layerwright(*again).out
    done = layerwright("export", "onnx", network, "--weights", weights, "--output", tmp_path / "tiny.onnx")
    assert done.code == 0, done.err
    assert (tmp_path / "tiny.onnx").stat().st_size > 500


def test_every_command_takes_the_weights_that_the_settings_name(
    layerwright: Run, network: Path, weights: Path, tmp_path: Path
) -> None:
    pytest.importorskip("onnx")
    refused = layerwright("export", "onnx", network, "--output", tmp_path / "tiny.onnx")
    assert refused.code == 1
    assert "weights-missing" in refused.err
    save_settings(Settings(weights=str(weights)), settings_path(network))
    np.save(tmp_path / "in.npy", np.zeros((1, 3, 12, 16), np.float32))
    for command in (
        ("export", "onnx", network, "--output", tmp_path / "tiny.onnx"),
        ("profile", network, "--iterations", 1, "--threads", 1),
        ("run", network, "--input", f"picture={tmp_path / 'in.npy'}", "--threads", 1),
    ):
        done = layerwright(*command)
        assert done.code == 0, done.err
        assert "random" not in done.out


def test_profile_writes_every_run_as_json_and_a_page(layerwright: Run, network: Path, tmp_path: Path) -> None:
    path, page = tmp_path / "profile.json", tmp_path / "profile.html"
    done = layerwright(
        "profile", network, "--random-weights", 0, "--batch", "1,2", "--size", "32x32,48x32", "--counters", "off",
        "--json", path, "--html", page, "--iterations", 2, "--threads", 1,
    )  # fmt: skip
    assert done.code == 0, done.err
    written = json.loads(path.read_text())
    assert [(run["batch"], run["size"]) for run in written["runs"]] == [
        (1, "32x32"), (2, "32x32"), (1, "48x32"), (2, "48x32"),
    ]  # fmt: skip
    for run in written["runs"]:
        assert sum(row["time_ms"] for row in run["operators"]) == pytest.approx(run["time_ms"], rel=0.05)
        assert ["conv_1"] in [row["layers"] for row in run["operators"]]
    assert "sum of the rows" in done.out
    assert page.read_text().count("<img") == 4 * 2 + 4  # roofline and memory of every run; sweeps of batches and sizes
    for text in ("knee at batch ", "knee at size ", "Mpixel/s", "x roof", "bound by"):
        assert text in done.out
    again = layerwright(
        "profile", network, "--random-weights", 0, "--against", path, "--batch", "1", "--size", "32x32", "--iterations", 2,
        "--threads", 1, "--engine", "onnxruntime,torch",
    )  # fmt: skip
    assert "whole network" in again.out
    assert "verdict" in again.out
    assert "difference from onnxruntime fp32 nchw batch 1 32x32 to torch fp32 nchw batch 1 32x32" in " ".join(
        again.out.split()
    )
    assert "is not compared" not in again.err
    larger = layerwright(
        "profile", network, "--random-weights", 0, "--against", path, "--size", "64x64", "--iterations", 1, "--threads", 1,
    )  # fmt: skip
    assert "note: onnxruntime fp32 nchw batch 1 64x64 is not compared" in larger.err
    assert "verdict" not in larger.out


@pytest.mark.parametrize(
    ("option", "text", "remedy"),
    [
        ("--batch", "1,none", "1,4,16"),
        ("--batch", "0", "1,4,16"),
        ("--size", "12", "256x256"),
        ("--size", "0x4", "256x256"),
        ("--engine", "torch,steam", "onnxruntime"),
    ],
)
def test_profile_names_a_wrong_batch_or_size(
    layerwright: Run, network: Path, option: str, text: str, remedy: str
) -> None:
    done = layerwright("profile", network, option, text)
    assert done.code == 1
    assert f"{option.strip('-')} '{text}' cannot be read" in done.err
    assert remedy in done.err


def test_a_picture_in_tiles(layerwright: Run, network: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.random.default_rng(0).random((1, 3, 96, 128), np.float32))
    written = []
    for tile in ("off", "auto", "48"):
        path = tmp_path / f"{tile}.npy"
        made = layerwright(
            "run", network, "--random-weights", 0, "--input", f"picture={tmp_path / 'in.npy'}", "--output", f"result={path}",
            "--tile", tile,
        )  # fmt: skip
        assert made.code == 0, made.err
        assert ("run in 6 tiles of up to 48 x 48" in made.out) == (tile == "48")
        written.append(np.load(path))
    np.testing.assert_allclose(written[2], written[0], atol=1e-5)
    np.testing.assert_array_equal(written[1], written[0])
    refused = layerwright("run", network, "--tile", "large")
    assert refused.code != 0
    assert "auto, off, or pixels" in refused.err


@pytest.mark.parametrize("name", ["[/x]", "img[final].png"])
def test_names_are_no_markup_on_the_terminal(name: str) -> None:
    for console in (out, err):
        table = Table("file", title=name)
        table.add_row(name)
        with console.capture() as capture:
            console.print(name)
            console.print(table)
        assert capture.get().count(name) == 3


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_help_of_the_program_summarizes_each_command(name: str) -> None:
    help_text = cli.load_command(name).help
    assert help_text is not None
    assert help_text.split("\n\n")[0].replace("\n", " ") == cli.COMMANDS[name][2]


def test_the_help_of_the_program_imports_no_command() -> None:
    script = (
        "import sys; sys.argv = ['layerwright', '--help']\n"
        "from app.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print(sorted({'numpy', 'designer.operators.api'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
