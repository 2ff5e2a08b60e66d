"""Deployment folders: Python, C++ and Triton compute what the network computes, and nothing is half written."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from runtime_networks import layer, unet, unet_weights

from designer.files.document import save_document
from designer.files.weights import Weights, fill_missing, required_weights, save_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.images import read_image, write_image
from designer.runtime.session import Session
from exporters.deploy import deployment, export_deployment
from exporters.generated_folder import GeneratedFolder
from exporters.interface import interface_of
from exporters.onnx import export_onnx

onnxruntime = pytest.importorskip("onnxruntime")
torch = pytest.importorskip("torch")
torch.set_num_threads(1)

REGISTRY = load(entry_points=False)
DATA = Path(__file__).parents[1] / "data"
ROOT = Path(__file__).parents[2]


def run(folder: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", str(folder / "python" / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def weights_for(graph: Graph) -> Weights:
    return fill_missing(Weights(), required_weights(Inference(graph, REGISTRY)), 3)


def session(graph: Graph, weights: Weights) -> Session:
    return Session(graph, REGISTRY, weights, RunOptions(engine="torch", threads=1))


@pytest.fixture(scope="module")
def deployed(tmp_path_factory) -> Path:
    """A U-Net with scale, shift and padding."""
    folder = tmp_path_factory.mktemp("deploy") / "unet"
    export_deployment(unet(scale="2.0", shift="-1.0", tiling="8"), REGISTRY, unet_weights(), folder)
    return folder


@pytest.fixture
def photo(tmp_path) -> Path:
    """An image that needs padding."""
    rng = np.random.default_rng(1)
    write_image(tmp_path / "photo.png", rng.random((1, 3, 21, 30), np.float32))
    return tmp_path / "photo.png"


def test_the_check_runs_on_the_middle_of_an_example(tmp_path):
    values = np.random.default_rng(1).integers(0, 256, (1, 3, 30, 600)).astype(np.float32) / 255
    write_image(tmp_path / "photo.png", values)
    folder = tmp_path / "out"
    graph = unet(tiling="8")
    export_deployment(graph, REGISTRY, unet_weights(), folder, examples={"image": tmp_path / "photo.png"})
    shown = read_image(folder / "check" / "input_1.ppm")
    np.testing.assert_array_equal(shown, values[..., 44:556])
    assert "(the middle of photo.png)" in (folder / "README.md").read_text("utf-8")
    assert run(folder, "check.py").returncode == 0
    (tmp_path / "photo.png").write_bytes(b"broken")
    export_deployment(graph, REGISTRY, unet_weights(), folder, examples={"image": tmp_path / "photo.png"})
    assert "(a test pattern)" in (folder / "README.md").read_text("utf-8")


def test_a_photo_that_needs_padding_is_checked_whole_and_what_was_deployed_is_recorded(tmp_path, photo):
    """The document has no tiling: the multiple comes from the layers, for the generated code and for the expected results."""
    weights = unet_weights(note="trained")
    folder = tmp_path / "out"
    found = export_deployment(unet(), REGISTRY, weights, folder, {"image": photo})
    assert found.interface.inputs[0].multiple > 1
    assert 21 % found.interface.inputs[0].multiple
    assert found.measured.ok
    marker = json.loads((folder / "deploy.json").read_text())
    assert np.load(folder / marker["check"]["outputs"][0]).shape == (1, 3, 21, 30)
    assert marker["check"]["contents"] == ["photo.png"]
    assert marker["provenance"]["weights"] == "trained"
    assert marker["measured"]["ok"]
    assert sorted(marker["files"]) == sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "deploy.json"
    )
    for name in ("conv", "result"):
        inner = next((layer.name for layer in unet() if layer.type == "convolution"), name) if name == "conv" else name
        with pytest.raises(DiagnosticError, match="is not an input of the network") as failed:
            export_deployment(unet(), REGISTRY, weights, folder, {inner: photo})
        assert failed.value.diagnostics[0].layer == inner
    assert json.loads((folder / "deploy.json").read_text()) == marker


def test_an_infinite_output_does_not_make_every_difference_acceptable(tmp_path):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x1"),
            layer("log", "unary", "image", function="log"),
            layer("result", "output", "log"),
        ],
        name="log",
    )
    folder = tmp_path / "out"
    interface = interface_of(export_onnx(graph, REGISTRY, Weights(), tmp_path / "x.onnx"), graph, REGISTRY)
    image = np.full((1, 1, 8, 8), 0.5, np.float32)
    image[..., 0] = 0
    write_image(tmp_path / "image.png", image)
    files = deployment._CheckFiles({"image": tmp_path / "image.png"}, {})
    with GeneratedFolder(folder) as stage:
        check = deployment._write_check(stage, graph, REGISTRY, Weights(), interface, files)
        assert not np.isfinite(np.load(stage.path / check.outputs[0])).all()
    assert check.tolerances == [pytest.approx(1e-4 * np.log(2), rel=0.02)]


def fixed_size() -> Graph:
    """An image of 16 columns and 8 rows: a fully connected layer leaves no other size."""
    return Graph(
        [
            layer("image", "input", dims="16x8x3"),
            layer("scores", "fully_connected", "image", features=4),
            layer("result", "output", "scores"),
        ],
        name="fixed size",
    )


def test_the_middle_of_an_example_has_the_fixed_size_of_the_input(tmp_path):
    values = np.random.default_rng(1).integers(0, 256, (1, 3, 20, 30)).astype(np.float32) / 255
    write_image(tmp_path / "photo.png", values)
    graph, folder = fixed_size(), tmp_path / "out"
    export_deployment(graph, REGISTRY, weights_for(graph), folder, examples={"image": tmp_path / "photo.png"})
    np.testing.assert_array_equal(read_image(folder / "check" / "input_1.ppm"), values[..., 6:14, 7:23])


@pytest.mark.parametrize("scale", [100, -100])
def test_the_tolerance_follows_the_largest_output_of_either_sign(scale, tmp_path):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x1"),
            layer("scaled", "scale_shift", "image", scale=scale),
            layer("result", "output", "scaled"),
        ],
        name="scaled",
    )
    export_deployment(graph, REGISTRY, Weights(), tmp_path / "out")
    check = json.loads((tmp_path / "out" / "deploy.json").read_text())["check"]
    largest = np.abs(np.load(tmp_path / "out" / check["outputs"][0])).max()
    assert largest > 50
    assert check["tolerances"] == pytest.approx([largest * 1e-4])


def test_a_wrong_output_of_small_values_is_not_accepted_because_another_has_large_ones(tmp_path):
    """The model computes the double of the small output."""
    onnx = pytest.importorskip("onnx")
    graph = Graph(
        [
            layer("image", "input", dims="8x8x1"),
            layer("scaled", "scale_shift", "image", scale=0.0001),
            layer("small", "output", "scaled"),
            layer("enlarged", "scale_shift", "image", scale=100),
            layer("large", "output", "enlarged"),
            layer("emptied", "scale_shift", "image", scale=0),
            layer("empty", "output", "emptied"),
        ],
        name="scaled",
    )
    export_deployment(graph, REGISTRY, Weights(), tmp_path / "out")
    tolerances = json.loads((tmp_path / "out" / "deploy.json").read_text())["check"]["tolerances"]
    assert tolerances == pytest.approx([1e-6, 1e-2, 1e-6], rel=0.1)  # empty, large, small

    def doubled(model):
        (node,) = [node for node in model.graph.node if "small" in node.output]
        node.output[0] = "half"
        model.graph.node.append(onnx.helper.make_node("Add", ["half", "half"], ["small"]))
        return model

    found = export_deployment(graph, REGISTRY, Weights(), tmp_path / "other", convert=doubled)
    assert found.measured.outputs["small"].ok
    accepted = json.loads((tmp_path / "other" / "deploy.json").read_text())["check"]["tolerances"]
    assert accepted == pytest.approx([1e-6, 1e-2, 1.5 * found.measured.outputs["small"].difference], rel=0.1)
    shutil.copy(tmp_path / "other" / "model.onnx", tmp_path / "out" / "model.onnx")
    done = run(tmp_path / "out", "check.py")
    assert done.returncode == 1
    assert "\nsmall: DIFFERENT within 1e-06" in done.stdout
    assert "large: equal within" in done.stdout


def test_python_computes_what_the_program_computes(deployed, photo, tmp_path):
    done = run(deployed, "run.py", str(photo), "--output", str(tmp_path / "result.npy"))
    assert done.returncode == 0, done.stderr
    one = session(unet(scale="2.0", shift="-1.0", tiling="8"), unet_weights())
    one.set_input_file("image", photo)
    right = one.run().outputs["result"]
    made = np.load(tmp_path / "result.npy")
    assert made.shape == right.shape == (1, 3, 21, 30)
    np.testing.assert_allclose(made, right, atol=1e-4)


def test_images_are_written_and_wrong_files_are_named(deployed, photo, tmp_path):
    assert run(deployed, "run.py", str(photo), "--output", str(tmp_path / "a.png")).returncode == 0
    assert read_image(tmp_path / "a.png").shape == (1, 3, 21, 30)
    done = run(deployed, "run.py", str(photo), str(photo))
    assert (done.returncode, done.stderr) == (1, "error: the network needs 1 files (image), not 2\n")
    np.save(tmp_path / "wrong.npy", np.zeros((1, 2, 8, 8), np.float32))
    done = run(deployed, "run.py", str(tmp_path / "wrong.npy"))
    assert (done.returncode, done.stderr) == (1, "error: the input 'image' needs N x 3 x H x W, not 1 x 2 x 8 x 8\n")


def test_the_check_passes_and_finds_a_changed_model(deployed, tmp_path):
    done = run(deployed, "check.py")
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("result: equal within")
    broken = tmp_path / "broken"
    shutil.copytree(deployed, broken)
    onnx = pytest.importorskip("onnx")
    model = onnx.load(broken / "model.onnx")
    bias = next(tensor for tensor in model.graph.initializer if tensor.name == "out/bias")
    bias.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(bias) + np.float32(0.01), bias.name))
    onnx.save(model, broken / "model.onnx")
    done = run(broken, "check.py")
    assert done.returncode == 1
    assert "DIFFERENT" in done.stdout


def test_the_readme_has_the_measured_values(deployed):
    information = json.loads((deployed / "deploy.json").read_text())
    text = (deployed / "README.md").read_text()
    difference = information["measured"]["outputs"]["result"]["difference"]
    assert f"| `result` | {difference:.2g} |" in text
    assert 0 < information["measured"]["milliseconds"] < 10_000
    assert "image`: N x 3 x height x width" in text
    assert not [word for word in ("NETWORK_NAME", "INPUT_LIST", "MEASURED", "RESULTS") if word in text]
    listed = {str(path.relative_to(deployed)) for path in deployed.rglob("*") if path.is_file()}
    assert listed == {*information["files"], "deploy.json"}
    assert information["provenance"]["document"] == "small unet"


def test_a_model_in_another_precision_is_measured_against_fp32(deployed, tmp_path):
    """Rounded weights, as an example of any conversion."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load(deployed / "model.onnx")
    for tensor in model.graph.initializer:
        rounded = onnx.numpy_helper.to_array(tensor).astype(np.float16).astype(np.float32)
        tensor.CopyFrom(onnx.numpy_helper.from_array(rounded, tensor.name))
    onnx.save(model, tmp_path / "rounded.onnx")
    graph = unet(scale="2.0", shift="-1.0", tiling="8")

    def export(path: Path, network: Graph = graph):
        return export_deployment(network, REGISTRY, unet_weights(), tmp_path / "out", None, path)

    found = export(tmp_path / "rounded.onnx")
    difference = found.measured.outputs["result"].difference
    assert 1e-5 < difference < 0.1
    information = json.loads((tmp_path / "out" / "deploy.json").read_text())
    assert information["check"]["tolerances"] == pytest.approx([1.5 * difference])
    assert information["precision"] == "FP32"
    assert (tmp_path / "out" / "model.onnx").read_bytes() == (tmp_path / "rounded.onnx").read_bytes()
    assert run(tmp_path / "out", "check.py").returncode == 0
    (tmp_path / "nonsense.onnx").write_bytes(b"nonsense")
    other = Graph([layer("x", "input", dims="8x8x3"), layer("result", "output", "x")], name="other")
    for path, network, code in (
        (tmp_path / "nonsense.onnx", graph, "not-a-model"),
        (tmp_path / "absent.onnx", graph, "not-a-model"),
        (tmp_path / "rounded.onnx", other, "other-model"),
    ):
        with pytest.raises(DiagnosticError) as failed:
            export(path, network)
        assert failed.value.diagnostics[0].code == code


# --- C++ -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """A folder with the shared library of the Python package under the names that a release of ONNX Runtime has."""
    for program in ("cmake", "c++"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    found = sorted((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*"))
    if not found:
        pytest.skip("this package of ONNX Runtime has no shared library")
    folder = tmp_path_factory.mktemp("onnxruntime")
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (folder / name).symlink_to(found[0])
    return folder


def build(folder: Path, library: Path) -> Path:
    """Build the C++ sample of a deployment folder."""
    release = Path("/usr/include/onnxruntime")  # the Debian package libonnxruntime-dev
    headers = release if release.is_dir() else DATA / "onnxruntime"
    options = (f"-DONNXRUNTIME_INCLUDE={headers}", f"-DONNXRUNTIME_LIBRARY={library / 'libonnxruntime.so'}")
    for command in (
        ("cmake", "-S", folder / "cpp", "-B", folder / "cpp" / "build", "-DCMAKE_CXX_FLAGS=-Werror", *options),
        ("cmake", "--build", folder / "cpp" / "build"),
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "cpp" / "build" / "infer"


def infer(program: Path, library: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(program), *map(str, arguments)]
    environment = {"LD_LIBRARY_PATH": str(library)}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)


@pytest.mark.slow
def test_the_cpp_sample_computes_the_same(deployed, library, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(deployed, folder)
    program = build(folder, library)
    (file,) = json.loads((folder / "deploy.json").read_text())["check"]["inputs"]
    done = infer(program, library, folder / "model.onnx", folder / file, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert run(folder, "check.py", "--results", str(tmp_path / "out_1.npy")).returncode == 0
    pixels = np.random.default_rng(2).integers(0, 256, (13, 27), np.uint8)  # gray, and padded
    (tmp_path / "gray.pgm").write_bytes(b"P5\n# a comment\n27 13\n255\n" + pixels.tobytes())
    assert infer(program, library, folder / "model.onnx", tmp_path / "gray.pgm", tmp_path / "gray").returncode == 0
    assert run(folder, "run.py", str(tmp_path / "gray.pgm"), "--output", str(tmp_path / "right.npy")).returncode == 0
    np.testing.assert_allclose(np.load(tmp_path / "gray_1.npy"), np.load(tmp_path / "right.npy"), atol=1e-5)
    assert read_image(tmp_path / "gray_1.ppm").shape == (1, 3, 13, 27)
    done = infer(program, library, folder / "model.onnx", tmp_path / "absent.ppm", tmp_path / "x")
    assert (done.returncode, done.stderr) == (1, f"error: {tmp_path / 'absent.ppm'} is not a binary PPM or PGM image\n")
    assert infer(program, library, "no.onnx", folder / file, tmp_path / "x").returncode == 1


def two_inputs() -> Graph:
    """An image and a vector; an image and a vector come out. The names need escapes in C++ and in protobuf."""
    return Graph(
        [
            layer('in"a', "input", dims="8x8x1"),
            layer("état", "tensor_input", shape="5"),
            layer("features", "convolution", 'in"a', features=4, kernel="3x3"),
            layer("flat", "flatten", "features"),
            layer("joined", "concatenation", "flat,état", axis="1"),
            layer("classes", "fully_connected", "joined", features=10),
            layer("scores", "output", "classes"),
            layer("map", "output", "features"),
        ],
        name="two inputs",
    )


@pytest.mark.slow
def test_several_inputs_of_fixed_size_and_outputs_that_are_no_images(library, tmp_path):
    graph, folder = two_inputs(), tmp_path / "two"
    found = export_deployment(graph, REGISTRY, weights_for(graph), folder)
    assert [(e.name, e.image, e.height) for e in found.interface.inputs] == [('in"a', True, 8), ("état", False, None)]
    inputs = [folder / file for file in json.loads((folder / "deploy.json").read_text())["check"]["inputs"]]
    program = build(folder, library)
    assert infer(program, library, folder / "model.onnx", *inputs, tmp_path / "out").returncode == 0
    done = run(folder, "check.py", "--results", str(tmp_path / "out_1.npy"), str(tmp_path / "out_2.npy"))
    assert done.returncode == 0, done.stdout
    large = tmp_path / "large.png"
    write_image(large, np.zeros((1, 1, 9, 8), np.float32))
    done = run(folder, "run.py", str(large), str(inputs[1]))
    assert done.stderr == "error: the input 'in\"a' needs the height 8, not 9; resize the image\n"


@pytest.mark.parametrize("name", ["all", "whole"])
def test_images_of_different_sizes_are_padded_in_proportion(name, tmp_path):
    """The multiple belongs to the first image of the model: the large one if it is called "all", else "half"."""
    graph = Graph(
        [
            layer(name, "input", dims="48x72x3"),
            layer("half", "input", dims="24x36x1"),
            layer("pooled", "pooling", name, operation="max", size="2x2"),
            layer("joined", "concatenation", "pooled,half", axis="1"),
            layer("blocks", "space_to_depth", "joined", block_size="4"),
            layer("result", "output", "blocks"),
        ],
        name="two sizes",
    )
    folder = tmp_path / "out"
    found = export_deployment(graph, REGISTRY, Weights(), folder)
    assert {entry.layer: entry.multiple for entry in found.interface.inputs} == {name: 8, "half": 4}
    write_image(tmp_path / f"{name}.png", np.zeros((1, 3, 20, 42), np.float32))
    write_image(tmp_path / "half.png", np.zeros((1, 1, 10, 21), np.float32))
    files = [str(tmp_path / f"{entry.layer}.png") for entry in found.interface.inputs]
    done = run(folder, "run.py", *files, "--output", str(tmp_path / "result.npy"))
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "result.npy").shape[:2] == (1, 64)


def test_an_output_without_axes_is_deployed(tmp_path):
    graph = Graph(
        [
            layer("image", "input", dims="8x6x3"),
            layer("total", "reduce", "image", operation="sum", axes="", keep="false"),
            layer("result", "output", "total"),
        ],
        name="total",
    )
    export_deployment(graph, REGISTRY, Weights(), tmp_path / "out")
    assert "- output `result`: scalar" in (tmp_path / "out" / "README.md").read_text("utf-8")
    config = triton_config(tmp_path / "out")
    assert (config.max_batch_size, list(config.output[0].dims)) == (0, [])


def test_elements_other_than_float32_are_refused(tmp_path):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("classes", "arg_extreme", "image", axis="1"),
            layer("result", "output", "classes"),
        ],
        name="classes",
    )
    with pytest.raises(DiagnosticError) as failed:
        export_deployment(graph, REGISTRY, Weights(), tmp_path / "out")
    assert failed.value.diagnostics[0].code == "not-deployable"
    assert list(tmp_path.iterdir()) == []


# --- Triton --------------------------------------------------------------------------------------------------------


def triton_config(folder: Path):
    """`config.pbtxt` read with Triton's schema."""
    from google.protobuf import descriptor_pool, message_factory, text_format

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile((DATA / "triton" / "model_config.binpb").read_bytes())
    config = message_factory.GetMessageClass(pool.FindMessageTypeByName("inference.ModelConfig"))()
    (file,) = folder.glob("triton/*/config.pbtxt")
    text_format.Parse(file.read_text(), config)
    assert config.name == file.parent.name
    assert (file.parent / "1" / "model.onnx").read_bytes() == (folder / "model.onnx").read_bytes()
    return config


def test_triton_batches_what_has_an_open_batch(deployed):
    config = triton_config(deployed)
    assert (config.name, config.platform, config.max_batch_size) == ("small_unet", "onnxruntime_onnx", 8)
    assert config.HasField("dynamic_batching")
    (given,) = config.input
    assert (given.name, list(given.dims)) == ("image", [3, -1, -1])
    assert given.data_type == 11  # TYPE_FP32


def test_triton_gets_every_name_and_size(tmp_path):
    graph = two_inputs()
    export_deployment(graph, REGISTRY, weights_for(graph), tmp_path / "two")
    config = triton_config(tmp_path / "two")
    assert [(e.name, list(e.dims)) for e in config.input] == [('in"a', [1, 8, 8]), ("état", [5])]
    assert [(e.name, list(e.dims)) for e in config.output] == [("map", [4, 8, 8]), ("scores", [10])]


def test_triton_does_not_batch_a_fixed_batch(tmp_path):
    graph = Graph(
        [layer("image", "input", dims="8x8x3", batch=2), layer("result", "output", "image")],
        name="fixed",
    )
    export_deployment(graph, REGISTRY, Weights(), tmp_path / "fixed")
    config = triton_config(tmp_path / "fixed")
    assert config.max_batch_size == 0
    assert not config.HasField("dynamic_batching")
    assert list(config.input[0].dims) == [2, 3, -1, -1]


# --- the folder ----------------------------------------------------------------------------------------------------


def test_an_unchanged_export_is_replaced_and_an_edited_one_is_kept(tmp_path):
    folder = tmp_path / "unet"
    export_deployment(unet(), REGISTRY, unet_weights(), folder)
    (folder / "notes.txt").write_text("mine")
    other = Graph(list(unet()), name="renamed")
    export_deployment(other, REGISTRY, unet_weights(seed=1), folder)
    assert (folder / "notes.txt").read_text() == "mine"
    assert [path.name for path in (folder / "triton").glob("*/1/model.onnx")] == ["model.onnx"]
    assert run(folder, "check.py").returncode == 0
    edited = (folder / "python" / "run.py").read_text() + "# mine\n"
    (folder / "python" / "run.py").write_text(edited)
    with pytest.raises(DiagnosticError) as failed:
        export_deployment(unet(), REGISTRY, unet_weights(), folder)
    assert failed.value.diagnostics[0].code == "file-in-the-way"
    assert (folder / "python" / "run.py").read_text() == edited


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(DiagnosticError) as failed:
        export_deployment(unet(), REGISTRY, unet_weights(), tmp_path)
    assert failed.value.diagnostics[0].code == "folder-not-empty"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_disk_that_gets_full_while_a_folder_is_replaced_leaves_the_old_one(tmp_path, monkeypatch):
    def export(text: str) -> None:
        with GeneratedFolder(tmp_path / "out") as stage:
            for name in ("a.txt", "b/c.txt"):
                stage.write(name, text)
            stage.mark({})
            stage.install()

    def full(source, target) -> None:
        if Path(source).name == "c.txt" and Path(target).is_relative_to(tmp_path / "out"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rename(source, target)

    export("old")
    rename = os.rename
    monkeypatch.setattr("exporters.generated_folder.os.rename", full)
    with pytest.raises(DiagnosticError, match="No space left"):
        export("new")
    monkeypatch.undo()
    assert {path.read_text() for path in (tmp_path / "out").rglob("*.txt")} == {"old"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    export("new")
    assert {path.read_text() for path in (tmp_path / "out").rglob("*.txt")} == {"new"}


def command(tmp_path: Path, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    save_document(unet(), tmp_path / "net.xml")
    save_weights(tmp_path / "weights", unet_weights().tensors)
    line = [sys.executable, "-m", "app.cli.main", "export", "deploy", str(tmp_path / "net.xml"), "-o"]
    return subprocess.run(
        [*line, str(tmp_path / "out"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=120,
        **options,
    )


def test_the_command_checks_with_a_photo(tmp_path, photo):
    done = command(tmp_path, "--weights", str(tmp_path / "weights"), "--input", f"image={photo}")
    assert done.returncode == 0, done.stderr
    assert read_image(tmp_path / "out" / "check" / "input_1.ppm").shape == (1, 3, 21, 30)  # padded to multiples of 4


def test_a_failed_export_leaves_nothing(tmp_path):
    done = command(tmp_path)
    assert done.returncode == 1
    assert "weights" in done.stderr
    done = command(tmp_path, "--weights", str(tmp_path / "weights"), "--input", "nobody=a.png")
    assert "'nobody' is not an input of the network" in done.stderr
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # noqa: E731  # a full disk
    done = command(tmp_path, "--weights", str(tmp_path / "weights"), preexec_fn=limit)
    assert done.returncode == 1
    assert "cannot be saved" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.xml", "weights"]
