"""ONNX files: valid, equal to torch, open in the batch, and never half written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from runtime_networks import analysed, layer, pixels, plain_unet, unet, unet_weights

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.operators.registry import load
from exporters.onnx import export_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
torch = pytest.importorskip("torch")
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def onnx_registry():
    return load(entry_points=False)


def run(path, array):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: array})


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_the_file_computes_what_plain_torch_computes(onnx_registry, tmp_path, batch):
    path = tmp_path / "unet.onnx"
    export_onnx(unet(), onnx_registry, unet_weights(), path)
    array = pixels(batch=batch)
    (made,) = run(path, array)
    np.testing.assert_allclose(made, plain_unet(unet_weights())(array), atol=1e-5, rtol=1e-5)


def test_what_the_file_says_about_itself(onnx_registry, tmp_path):
    path = tmp_path / "unet.onnx"
    graph = unet(scale="2.0", shift="-1.0", tiling="8")
    graph.properties["user_version_tag"] = "v7"
    report = export_onnx(graph, onnx_registry, unet_weights(note="random weights (seed 0)"), path)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert (model.producer_name, model.graph.name) == ("layerwright", "small unet")
    properties = {p.key: p.value for p in model.metadata_props}
    assert properties["name"] == "small unet"
    assert properties["weights"] == "random weights (seed 0)"
    assert properties["user_version_tag"] == "v7"
    assert report.weights_note == "random weights (seed 0)"
    assert model.doc_string == "small unet, written by Layerwright"
    assert (properties["image.scale"], properties["image.shift"], properties["image.tiling"]) == ("2.0", "-1.0", "8")
    assert [v.name for v in model.graph.input] == ["image"]
    assert [v.name for v in model.graph.output] == ["result"]
    for value in (*model.graph.input, *model.graph.output):
        assert value.type.tensor_type.shape.dim[0].dim_param == "N"
    assert report.inputs == {"image": "N x 3 x height x width"}
    assert report.outputs == {"result": "N x 3 x height x width"}
    assert str(report.sizes) == "Accepts any height and width that are multiples of 8"
    assert report.bytes == path.stat().st_size
    assert report.nodes == len(model.graph.node)
    assert report.left_out == ()


def test_analysis_layers_are_left_out(onnx_registry, tmp_path):
    report = export_onnx(analysed(), onnx_registry, unet_weights(), tmp_path / "a.onnx")
    assert sorted(report.left_out) == ["mix", "noise"]
    (made,) = run(tmp_path / "a.onnx", pixels())
    np.testing.assert_allclose(made, plain_unet(unet_weights())(pixels()), atol=1e-5)


def test_several_outputs_in_the_order_of_their_names(onnx_registry, tmp_path):
    graph = unet()
    graph = Graph(
        [*graph, layer("early", "output", "enc 1"), layer("same", "output", "out"), layer("raw", "output", "image")]
    )
    export_onnx(graph, onnx_registry, unet_weights(), tmp_path / "a.onnx")
    early, raw, result, same = run(tmp_path / "a.onnx", pixels())
    np.testing.assert_allclose(early, plain_unet(unet_weights())(pixels(), "enc 1"), atol=1e-5)
    np.testing.assert_array_equal(result, same)
    np.testing.assert_array_equal(raw, pixels())


def code_of(call) -> str:
    with pytest.raises(DiagnosticError) as caught:
        call()
    assert caught.value.diagnostics[0].remedy
    return caught.value.diagnostics[0].code


def test_what_cannot_be_exported_leaves_the_old_file_whole(onnx_registry, tmp_path):
    path = tmp_path / "unet.onnx"
    path.write_bytes(b"old")
    tensors = {k: v for k, v in unet_weights().tensors.items() if k != WeightKey("dec", "kernel")}
    assert code_of(lambda: export_onnx(unet(), onnx_registry, Weights(tensors), path)) == "missing-weight"
    assert code_of(lambda: export_onnx(Graph(), onnx_registry, Weights(), path)) == "no-output"
    broken = Graph([layer("image", "input"), layer("x", "from_the_future", "image"), layer("result", "output", "x")])
    assert code_of(lambda: export_onnx(broken, onnx_registry, Weights(), path)) == "unknown-operator"
    assert (
        code_of(lambda: export_onnx(unet(), onnx_registry, unet_weights(), tmp_path / "no" / "a.onnx")) == "cannot-save"
    )
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["unet.onnx"]


def test_a_model_that_onnx_rejects_is_not_written(onnx_registry, tmp_path):
    """It is checked as it is after the conversion."""
    path = tmp_path / "unet.onnx"
    path.write_bytes(b"old")

    def spoiled(model):
        model.graph.node[0].op_type = "Nothing"
        return model

    assert code_of(lambda: export_onnx(unet(), onnx_registry, unet_weights(), path, spoiled)) == "onnx-invalid"
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["unet.onnx"]


def test_layers_that_no_output_needs_are_not_in_the_file(onnx_registry, tmp_path):
    graph = Graph([*unet(), layer("spare", "convolution", "image", features=2), layer("other", "input", dims="4x4x1")])
    report = export_onnx(graph, onnx_registry, unet_weights(), tmp_path / "a.onnx")
    assert (sorted(report.left_out), report.weights_note) == (["other", "spare"], unet_weights().note)
    plain = export_onnx(unet(), onnx_registry, unet_weights(), tmp_path / "b.onnx")
    one, other = (onnx.load(each.path).graph for each in (report, plain))
    assert (one.node, one.initializer, one.input) == (other.node, other.initializer, other.input)


def test_the_provenance_names_document_and_weights_by_their_content(onnx_registry, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")

    def entries(graph, weights):
        export_onnx(graph, onnx_registry, weights, tmp_path / "a.onnx")
        return {p.key: p.value for p in onnx.load(tmp_path / "a.onnx").metadata_props}

    first = entries(unet(), unet_weights())
    assert first == entries(unet(), unet_weights())
    assert (first["document"], first["date"]) == ("small unet", "1970-01-01T00:00:00+00:00")
    stored = replace(unet_weights(), source="/some/folder/best.pt", sha256="ab" * 32)
    other = entries(unet(), stored)
    assert {key for key, value in other.items() if first.get(key) != value} == {"weights", "weights_sha256"}
    assert (other["weights"], other["weights_sha256"]) == ("best.pt", "ab" * 32)
    moved = {key for key, value in entries(unet(scale="2.0"), unet_weights()).items() if first.get(key) != value}
    assert moved == {"document_sha256", "image.scale"}
