"""TensorRT: engines built without a GPU, their layers as ours, and engines of others refused."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from runtime_networks import unet, unet_weights

from designer.files.document import save_document
from designer.files.weights import save_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.importers.formats import ImportOptions
from designer.importers.onnx.importing import import_onnx
from designer.operators.registry import load
from designer.runtime.api import Part, RunOptions
from designer.runtime.engine_registry import default_engines
from designer.runtime.engines import trt
from designer.runtime.engines.tensorrt_engine import TensorRtEngine
from designer.runtime.engines.trt_build import ShapeRange, build_engine
from designer.runtime.engines.trt_layers import read_layers
from exporters.sparse_sweep import SweepRow, no_sweep, sparse_sweep
from exporters.tensorrt import (
    EngineFile,
    EngineOptions,
    _check_replaced,
    _digest,
    description_of,
    export_tensorrt,
    read_engine_file,
    trtexec_command,
)

ROOT = Path(__file__).parents[2]
REGISTRY = load(entry_points=False)


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path, monkeypatch):
    """The list of built engines is in the user's data folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def installed():
    problem = trt.unavailable()
    if problem is not None:
        pytest.skip(problem.message)


def refusal(call, *arguments, **options):
    with pytest.raises(DiagnosticError) as failed:
        call(*arguments, **options)
    return failed.value.diagnostics[0]


def export(path: Path, **options):
    return export_tensorrt(unet(tiling="4"), REGISTRY, unet_weights(), path, EngineOptions(**options))


def test_an_engine_lists_the_layers_that_it_fused(installed, tmp_path):
    found = export(tmp_path / "unet.engine", smallest=(16, 16), largest=(96, 64), batch=3)
    assert (tmp_path / "unet.engine").stat().st_size > 1000
    assert found.inputs == {"image": ((1, 3, 16, 16), (1, 3, 24, 32), (3, 3, 96, 64))}
    fused = [one for one in found.layers if {"enc_2/Conv", "norm/BatchNormalization"} & set(one.nodes)]
    assert {"enc_2", "norm"} <= set(fused[0].layers)
    assert all(one.precision == "fp32" for one in found.layers)
    named = {name for one in found.layers for name in one.layers}
    assert {"enc 1", "enc_2", "pool", "down", "cat", "dec", "out"} <= named
    assert named <= set(unet().layers)
    assert read_engine_file(tmp_path / "unet.engine") == found
    assert sorted(p.name for p in tmp_path.glob("unet*")) == ["unet.engine", "unet.engine.json", "unet.onnx"]


def test_quantization_belongs_to_the_layer_whose_tensor_it_is():
    inside = (
        "Inputs: [ { Name: a, Datatype: Float }], Outputs: [ { Name: b, Datatype: Int8, Format: x }], TacticName: t, "
    )
    nodes = ("conv 1/Conv", "conv 1:y_QuantizeLinear", "conv 1/kernel_DequantizeLinear_1", "pool/MaxPool")
    text = "Layers:\nName: a, LayerType: kgen, " + inside + "StreamId: 0, Metadata: "
    text += "\x1f".join(f"[ONNX Layer: {node}]" for node in nodes)
    text += (
        "\nName: wait, LayerType: signal, Inputs: [], Outputs: [], TacticName: , Metadata: \n\nI/O Tensors:\nName: a"
    )
    (found,) = read_layers(["something else", text])
    assert (found.layers, found.precision, found.nodes) == (("conv 1", "pool"), "int8", nodes)
    assert found.operations == "Conv + QuantizeLinear + DequantizeLinear + MaxPool"
    assert read_layers(["no layers here"]) == ()


def test_the_trtexec_line_builds_the_same():
    shapes = {"my image": ShapeRange((1, 3, 8, 8), (1, 3, 16, 16), (4, 3, 32, 32))}
    options = EngineOptions(sparse=True, timing_cache=Path("a.cache"))
    line = trtexec_command("tensorrt", Path("net.onnx"), Path("net.engine"), shapes, options)
    assert line == (
        "trtexec --onnx=net.onnx --saveEngine=net.engine --stronglyTyped --noTF32 '--minShapes=my image:1x3x8x8' "
        "'--optShapes=my image:1x3x16x16' '--maxShapes=my image:4x3x32x32' --sparsity=enable --timingCacheFile=a.cache "
        "--profilingVerbosity=detailed"
    )


def test_dense_and_sparse_weights_are_swept_by_batch(installed):
    seen = []

    def timer(built, shapes):
        seen.append((len(built.data) > 1000, shapes["image"][0]))
        return float(len(seen))

    rows = sparse_sweep(unet(), REGISTRY, unet_weights(), unet_weights(seed=1), (1, 2), timer)
    assert seen == [(True, 1), (True, 2)] * 2
    assert rows == [SweepRow(1, 1.0, 3.0), SweepRow(2, 2.0, 4.0)]
    assert "need a GPU with sparse Tensor Cores" in no_sweep()


def test_refused_layers_are_ours(installed):
    from onnx import TensorProto, helper

    given = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 8, 8])
    made = helper.make_empty_tensor_value_info("result")
    node = helper.make_node("Det", ["image"], ["result"], name="odd one/Det")
    model = helper.make_model(helper.make_graph([node], "g", [given], [made]))
    found = refusal(build_engine, model.SerializeToString(), {})
    assert (found.code, found.layer) == ("not-in-tensorrt", "odd one")
    assert "Det" in found.message
    assert refusal(build_engine, b"nonsense", {}).code == "tensorrt-failed"


def test_refused_nodes_of_an_import_lead_to_its_layers(installed, tmp_path):
    """An unedited import is built from the original file, whose nodes have names of their own."""
    from onnx import TensorProto, helper, save

    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])
    nodes = [helper.make_node("Relu", ["x"], ["r"], "n1"), helper.make_node("Det", ["r"], ["y"], "n2")]
    save(helper.make_model(helper.make_graph(nodes, "g", [given], [made])), tmp_path / "det.onnx")
    found = import_onnx(tmp_path / "det.onnx", REGISTRY, ImportOptions())
    path = tmp_path / "det.engine"
    error = refusal(export_tensorrt, found.graph, REGISTRY, found.weights, path, EngineOptions())
    assert error.code == "not-in-tensorrt"
    assert error.layer in found.graph.layers
    assert found.graph[error.layer].type == "opaque"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["det.onnx"]


def test_wrong_sizes_are_explained_and_nothing_is_written(installed, tmp_path):
    path = tmp_path / "unet.engine"
    assert "multiples of 4" in refusal(export, path, largest=(30, 64)).message
    assert "do not increase" in refusal(export, path, smallest=(48, 48)).message
    assert refusal(export, tmp_path / "unet.plan").code == "unknown-format"
    assert refusal(export, path, timing_cache=tmp_path / "t.cache").code == "no-timing-cache"
    assert refusal(export, tmp_path / "absent" / "unet.engine").code == "cannot-save"
    assert list(tmp_path.iterdir()) == []


def test_the_model_next_to_the_engine_replaces_only_what_was_written_with_it(tmp_path, monkeypatch):
    path, model = tmp_path / "unet.engine", tmp_path / "unet.onnx"
    monkeypatch.setattr(trt, "unavailable", lambda: None)
    model.write_bytes(b"a model of the user")
    found = refusal(export, path)
    assert (found.code, found.file) == ("file-in-the-way", str(model))
    assert model.read_bytes() == b"a model of the user"
    _check_replaced(model, b"a model of the user", path)
    described = EngineFile("", "tensorrt", "11", "unet", {}, False, 1.0, "", (), {}, _digest(b"a model of the user"))
    description_of(path).write_bytes(msgspec.json.encode(described))
    _check_replaced(model, b"the next model", path)
    model.write_bytes(b"edited")
    assert refusal(_check_replaced, model, b"the next model", path).code == "file-in-the-way"
    model.unlink()
    _check_replaced(model, b"the next model", path)


def test_engines_of_others_are_refused(installed, tmp_path):
    path = tmp_path / "unet.engine"
    export(path)
    read_engine_file(path)
    (tmp_path / "other.engine").write_bytes(path.read_bytes())
    assert "other.engine.json cannot be read" in refusal(read_engine_file, tmp_path / "other.engine").message
    description_of(tmp_path / "other.engine").write_bytes(description_of(path).read_bytes())
    read_engine_file(tmp_path / "other.engine")  # a copy of our own
    path.write_bytes(path.read_bytes() + b"x")
    assert "not the engine" in refusal(read_engine_file, path).message
    forged = json.loads(description_of(path).read_text())
    import hashlib

    description_of(path).write_text(json.dumps(forged | {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}))
    found = refusal(read_engine_file, path)
    assert found.code == "foreign-engine"
    assert "not built on this computer" in found.message


def test_without_tensorrt_the_command_says_what_to_install(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    hidden = lambda name, *more: None if name in trt.PACKAGES else find(name, *more)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    found = refusal(export, tmp_path / "unet.engine")
    assert found.message == "TensorRT is not installed"
    assert "layerwright[tensorrt-rtx]" in found.remedy
    engines = default_engines()
    assert engines.problem(engines.get("tensorrt")).message == "TensorRT is not installed"
    assert list(tmp_path.iterdir()) == []


def test_engines_of_another_version_are_named(monkeypatch):
    monkeypatch.setattr(trt, "unavailable", lambda: None)
    monkeypatch.setattr(trt, "package", lambda: "tensorrt")
    monkeypatch.setattr(trt, "library", lambda: SimpleNamespace(__version__="11.0"))
    assert trt.version_note("tensorrt", "11.0") == ""
    assert "built with tensorrt 10.9, but tensorrt 11.0 is installed" in trt.version_note("tensorrt", "10.9")
    assert "built with tensorrt_rtx 11.0, but tensorrt 11.0 is installed" in trt.version_note("tensorrt_rtx", "11.0")


def test_a_library_that_cannot_be_loaded_is_named(tmp_path, monkeypatch):
    (tmp_path / "tensorrt.py").write_text("raise OSError('libnvinfer.so.11: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    found = refusal(trt.library)
    assert found.message == "tensorrt cannot be loaded: libnvinfer.so.11: cannot open shared object file"


def test_the_engine_builds_here_and_says_why_it_does_not_run(installed):
    """Without a GPU the engine is built but cannot be loaded."""
    from designer.runtime.engines.pytorch import cuda_devices

    if cuda_devices()[0]:
        pytest.skip("there is a GPU")
    engines = default_engines()
    found = engines.problem(engines.get("tensorrt"))
    assert found.code == "engine-unavailable"
    assert "no NVIDIA GPU" in found.message
    inference = Inference(unet(), REGISTRY)
    engine = TensorRtEngine(inference, unet_weights(), RunOptions(engine="tensorrt", device="cuda"))
    names = tuple(name for name in unet().order()[0] if name != "image")
    found = refusal(engine.compile, Part(names, (Source("image"),)), [Source("out")])
    assert found.code == "engine-failed"
    assert "CUDA driver" in found.message


@pytest.mark.slow
def test_the_commands(installed, tmp_path):
    save_document(unet(tiling="4"), tmp_path / "net.xml")
    save_weights(tmp_path / "weights", unet_weights().tensors)

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "app.cli.main", *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)

    engine = str(tmp_path / "net.engine")
    base = ("export", "tensorrt", str(tmp_path / "net.xml"), "--weights", str(tmp_path / "weights"), "-o", engine)
    done = command(*base, "--max-size", "64x48", "--sparse")
    assert done.returncode == 0, done.stderr
    assert "image: 1 x 3 x 24 x 32 to 1 x 3 x 48 x 64, optimized for 1 x 3 x 24 x 32" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("tensorrt_rtx --onnx=")
    assert "--sparsity=enable" in done.stdout
    listed = json.loads(command("engine-layers", engine, "--json").stdout)
    assert listed["sparse"]
    assert command("engine-layers", engine).stdout.splitlines()[0] in done.stdout
    done = command(*base, "--max-size", "large")
    assert "--max-size: 'large' is not a size" in done.stderr
