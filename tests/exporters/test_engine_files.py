"""What an export of an engine hands to the builder and writes, with a builder that only remembers what it was asked for."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from runtime_networks import layer, unet, unet_weights

from designer.files.digest_list import read_digests
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.template import Template
from designer.operators.code_text import PROVIDED
from designer.operators.registry import load
from designer.operators.torch_data import TorchModule, TorchSource
from designer.operators.torch_program import Attribute
from designer.runtime.engines import trt
from designer.runtime.engines.trt_build import BuiltEngine, ShapeRange
from designer.runtime.engines.trt_layers import EngineLayer
from designer.runtime.number_formats import FLOAT16
from exporters import onnx as onnx_exporter
from exporters import sparse_sweep, tensorrt
from exporters.generated_folder import GeneratedFolder
from exporters.onnx import export_onnx
from exporters.onnx_formats import with_formats
from exporters.pytorch.custom import custom_sources
from exporters.tensorrt import (
    EngineOptions,
    _check_replaced,
    _owner,
    built_list,
    description_of,
    export_tensorrt,
    read_engine_file,
)

onnx = pytest.importorskip("onnx")
REGISTRY = load(entry_points=False)
LAYERS = (EngineLayer("fused", "kgen", "fp32", ("enc 1",), ("enc 1/Conv",)),)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What the builder was asked for."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(trt, "unavailable", lambda: None)
    found = []

    def build(model, shapes, **more):
        found.append((model, shapes, more))
        return BuiltEngine(b"engine %d" % len(found), LAYERS, "tensorrt", "10.9", 1.5, b"cache %d" % len(found))

    monkeypatch.setattr(tensorrt, "build_engine", build)
    return found


def export(path: Path, onnx_file: Path | None = None, convert=None, **options):
    graph = unet(tiling="4")
    return export_tensorrt(graph, REGISTRY, unet_weights(), path, EngineOptions(**options), onnx_file, convert=convert)


def test_an_engine_is_written_with_its_model_its_description_and_the_timing_cache(asked, tmp_path):
    path, cache = tmp_path / "net.engine", tmp_path / "a.cache"
    made = export(path, smallest=(8, 8), largest=(48, 64), batch=3, sparse=True, timing_cache=cache)
    ((model, shapes, more),) = asked
    ranges = ShapeRange((1, 3, 8, 8), (1, 3, 24, 32), (3, 3, 48, 64))
    assert shapes == {"image": ranges}
    assert (more["sparse"], more["timing_cache"]) == (True, b"")
    assert [more["owner"](name) for name in ("enc 1/Conv", "dec", "nothing/Conv", "nothing")] == [
        "enc 1",
        "dec",
        "",
        "",
    ]
    assert (tmp_path / "net.onnx").read_bytes() == model
    assert path.read_bytes() == b"engine 1"
    assert cache.read_bytes() == b"cache 1"
    assert read_engine_file(path) == made
    assert (made.sha256, made.model_sha256) == (digest(b"engine 1"), digest(model))
    assert read_digests(built_list()) == {digest(b"engine 1")}
    assert made.inputs == {"image": (ranges.smallest, ranges.best, ranges.largest)}
    assert (made.package, made.version, made.network, made.sparse, made.seconds) == (
        "tensorrt",
        "10.9",
        "small unet",
        True,
        1.5,
    )
    assert made.layers == LAYERS
    assert made.provenance["document"] == "small unet"
    assert f"--onnx={tmp_path}/net.onnx --saveEngine={path}" in made.trtexec
    assert f"--timingCacheFile={cache}" in made.trtexec
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "a.cache",
        "data",
        "net.engine",
        "net.engine.json",
        "net.onnx",
    ]

    again = export(path, timing_cache=cache)
    assert (asked[1][2]["timing_cache"], asked[1][2]["sparse"]) == (b"cache 1", False)
    assert asked[1][1] == {"image": ShapeRange((1, 3, 24, 32), (1, 3, 24, 32), (1, 3, 24, 32))}
    assert read_engine_file(path) == again
    assert read_digests(built_list()) == {digest(b"engine 1"), digest(b"engine 2")}
    export(tmp_path / "other.engine")
    assert asked[2][2]["timing_cache"] is None
    assert cache.read_bytes() == b"cache 2"


def test_an_engine_is_built_from_the_converted_model_or_from_another_file(asked, tmp_path):
    def convert(model):
        model.graph.doc_string = "converted"
        return model

    export(tmp_path / "a.engine", convert=convert)
    assert onnx.load_from_string(asked[0][0]).graph.doc_string == "converted"
    other = tmp_path / "int8.onnx"
    export_onnx(unet(tiling="4"), REGISTRY, unet_weights(seed=5), other)
    export(tmp_path / "b.engine", other)
    assert asked[1][0] == other.read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert asked[0][0] != asked[1][0]
    for name in ("net.ENGINE", "net.plan", "net"):
        with pytest.raises(DiagnosticError) as refused:
            export(tmp_path / name)
        (found,) = refused.value.diagnostics
        assert found.message == "a TensorRT engine is written to a file that ends with .engine"
        assert (found.code, found.file) == ("unknown-format", str(tmp_path / name))
    assert len(asked) == 2


@pytest.mark.parametrize("description", [None, b"", b"{", b"[]", b"[" * 100_000])
def test_a_model_whose_description_cannot_be_read_is_not_replaced(tmp_path, description):
    path, model = tmp_path / "net.engine", tmp_path / "net.onnx"
    _check_replaced(model, b"new", path)
    model.write_bytes(b"mine")
    if description is not None:
        description_of(path).write_bytes(description)
    with pytest.raises(DiagnosticError) as refused:
        _check_replaced(model, b"new", path)
    (found,) = refused.value.diagnostics
    assert (
        found.message
        == f"the model of the engine is written to {model}, which exists and was not written with this engine"
    )
    assert found.remedy == "choose another name for the engine, or move the model away"
    _check_replaced(model, b"mine", path)
    model.unlink()
    model.mkdir()
    with pytest.raises(DiagnosticError):
        _check_replaced(model, b"new", path)


def test_the_layer_of_a_node_is_known_by_its_name_by_its_tensors_and_inside_of_templates(tmp_path):
    block = Template(
        "block",
        (
            layer("x", "template_input"),
            layer("conv", "convolution", "x", features="2"),
            layer("y", "template_output", "conv"),
        ),
    )
    graph = Graph(
        [
            layer("image", "input", dims="8x6x3"),
            layer("one", "template", "image", template="block"),
            layer("out", "output", "one"),
        ],
        templates=[block],
    )
    nodes = [
        onnx.helper.make_node("Conv", ["a"], ["one.conv"], name="/imported/name"),
        onnx.helper.make_node("Relu", ["one.conv"], ["b", "out"], name="/several"),
    ]
    data = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [], [])).SerializeToString()
    owner = _owner(data, graph, REGISTRY)
    names = ("one.conv/Conv", "/imported/name", "/several", "one.conv:y_QuantizeLinear", "one/Conv", "/unknown")
    assert [owner(name) for name in names] == ["one.conv", "one.conv", "out", "one.conv", "one", ""]


# --- the sweep ---------------------------------------------------------------------------------------------------------


def test_the_sweep_builds_dense_and_sparse_weights_in_fp16_for_each_batch(monkeypatch):
    built = []

    def build(model, ranges, *, sparse):
        kinds = {
            tensor.data_type for tensor in onnx.load_from_string(model).graph.initializer if "kernel" in tensor.name
        }
        built.append((digest(model), ranges, sparse, kinds))
        return len(built)

    monkeypatch.setattr(sparse_sweep, "build_engine", build)
    timed = []
    rows = sparse_sweep.sparse_sweep(
        unet(),
        REGISTRY,
        unet_weights(),
        unet_weights(seed=1),
        (2, 5),
        lambda engine, shapes: timed.append((engine, shapes)) or engine * 10.0,
    )
    assert [(row.batch, row.dense, row.sparse) for row in rows] == [(2, 10.0, 30.0), (5, 20.0, 40.0)]
    shapes = [(batch, 3, 24, 32) for batch in (2, 5)] * 2
    assert timed == [(n + 1, {"image": shape}) for n, shape in enumerate(shapes)]
    assert [each[1] for each in built] == [{"image": ShapeRange(shape, shape, shape)} for shape in shapes]
    assert [each[2] for each in built] == [False, False, True, True]
    assert [len({each[0] for each in built[a:b]}) for a, b in ((0, 2), (2, 4), (0, 4))] == [1, 1, 2]
    assert {kind for each in built for kind in each[3]} == {onnx.TensorProto.FLOAT16}
    assert sparse_sweep.BATCHES == (1, 4, 16)


@pytest.mark.parametrize(
    ("count", "missing", "capability", "message"),
    [
        (0, False, None, "times by batch size need a GPU with sparse Tensor Cores (no driver)"),
        (0, True, None, "times by batch size need a GPU with sparse Tensor Cores (no driver)"),
        (1, True, None, "times by batch size need TensorRT: install it"),
        (1, False, (7, 5), "times by batch size need sparse Tensor Cores: compute capability 8.0, not 7.5"),
        (1, False, (8, 0), ""),
        (2, False, (9, 0), ""),
    ],
)
def test_why_there_is_no_sweep(monkeypatch, count, missing, capability, message):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(trt, "unavailable", lambda: SimpleNamespace(remedy="install it") if missing else None)
    monkeypatch.setattr(sparse_sweep, "cuda_devices", lambda: (count, "no driver"))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert sparse_sweep.no_sweep() == message


# --- the rest ----------------------------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_copied_is_an_error_of_the_folder(tmp_path, monkeypatch):
    target = tmp_path / "out"

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with GeneratedFolder(target) as stage:
        stage.write("a", "1")
        with pytest.raises(DiagnosticError) as refused:
            stage.copy("a", "b")
    (found,) = refused.value.diagnostics
    assert found.message == f"{target} cannot be written: No space left on device; nothing was changed there"
    assert (found.code, found.file) == ("cannot-export", str(target))
    assert os.listdir(tmp_path) == []


def test_an_uninstalled_program_writes_files_without_its_version(tmp_path, monkeypatch):
    def absent(name):
        raise onnx_exporter.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(onnx_exporter.metadata, "version", lambda name: "1.2.3")
    export_onnx(unet(), REGISTRY, unet_weights(), tmp_path / "a.onnx")
    assert onnx.load(tmp_path / "a.onnx").producer_version == "1.2.3"
    monkeypatch.setattr(onnx_exporter.metadata, "version", absent)
    export_onnx(unet(), REGISTRY, unet_weights(), tmp_path / "a.onnx")
    model = onnx.load(tmp_path / "a.onnx")
    assert (model.producer_name, model.producer_version) == ("layerwright", "")


def test_operators_that_the_standard_does_not_have_stay_in_float32():
    entry = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in ("x", "y")]
    nodes = [
        onnx.helper.make_node("Abs", ["x"], ["a"], name="a/Abs"),
        onnx.helper.make_node("Special", ["a"], ["b"], name="b/Special", domain="org.example"),
        onnx.helper.make_node("Neg", ["a"], ["y"], name="y/Neg"),
    ]
    opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("org.example", 1)]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "g", entry[:1], entry[1:]), opset_imports=opsets, ir_version=10
    )
    made = with_formats(model, lambda name: FLOAT16).model
    assert [(node.name, list(node.input), list(node.output)) for node in made.graph.node] == [
        ("a/Cast", ["x"], ["x/float16"]),
        ("a/Abs", ["x/float16"], ["a"]),
        ("b/Cast", ["a"], ["a/float32"]),
        ("b/Special", ["a/float32"], ["b"]),
        ("y/Neg", ["a"], ["y/float16"]),
        ("y/Cast", ["y/float16"], ["y"]),
    ]


GAIN = "class Gain(nn.Module):\n    def forward(self, x):\n        return x\n"


def own(text: str, layer_: str = "own", attached: bool = False) -> Attribute:
    made = TorchSource("Gain", text=text)
    content = {"layer": TorchModule("torch.nn.ReLU"), "activation": made} if attached else made
    return Attribute("gain", layer_, content)


def test_texts_of_custom_layers_are_there_once_in_their_order():
    other = GAIN.replace("Gain", "Other")
    plain = Attribute("relu", "r", TorchModule("torch.nn.ReLU"))
    assert custom_sources([own(GAIN), plain, own(other, attached=True), own(GAIN, "again")], ("Net",)) == [GAIN, other]
    assert custom_sources([plain], ("Gain",)) == []
    for taken in ("Gain", *PROVIDED):
        text = GAIN + (f"{taken} = 1\n" if taken != "Gain" else "")
        with pytest.raises(DiagnosticError) as refused:
            custom_sources([own(text, "mine", attached=True)], ("Gain",) if taken == "Gain" else ())
        (found,) = refused.value.diagnostics
        assert found.message == f"the source of 'mine' defines '{taken}', but so does the generated code"
        assert (found.layer, found.parameter) == ("mine", "source")
    with pytest.raises(DiagnosticError) as refused:
        custom_sources([own(GAIN, "first"), own(GAIN + "x = 1\n", "second")], ())
    assert (
        refused.value.diagnostics[0].message
        == "the source of 'second' defines 'Gain', but so does another text, of 'first'"
    )


def test_a_custom_text_that_cannot_be_read_is_named_with_its_layer():
    with pytest.raises(DiagnosticError) as refused:
        custom_sources([Attribute("attribute_name", "the layer", TorchSource("Gain", text="class Gain(:\n"))], ())
    (found,) = refused.value.diagnostics
    assert (found.code, found.layer) == ("bad-parameter", "the layer")
    assert found.message
    assert found.remedy
