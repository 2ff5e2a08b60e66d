"""Export of imported files: the same file if nothing was edited, else the document."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx_models import random, saved, small_network
from test_onnx_import import loop_network

from designer.files.document import parse_document, write_document
from designer.files.weights import Weights
from designer.graph.commands import insert_on_link, set_params
from designer.graph.model import Layer
from designer.importers.formats import ImportOptions
from designer.importers.onnx.importing import import_onnx
from designer.operators.registry import Registry
from exporters.onnx import export_onnx


def run(path: Path, feeds: dict[str, np.ndarray]) -> list[Any]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    found: list[Any] = session.run(None, feeds)
    return found


@pytest.mark.parametrize(
    ("proto", "feeds"),
    [(small_network(), {"image": random(2, 3, 20, 24)}), (loop_network(), {"x": random(2, 3)})],
    ids=["network", "loop"],
)
def test_an_unedited_file_is_exported_as_it_was(
    proto: onnx.ModelProto, feeds: dict[str, np.ndarray], tmp_path: Path, registry: Registry
) -> None:
    path = saved(proto, tmp_path)
    found = import_onnx(path, registry, ImportOptions())
    reading = parse_document(write_document(found.graph))  # as the document is saved and opened
    assert reading.graph is not None
    target = tmp_path / "again.onnx"
    report = export_onnx(reading.graph, registry, found.weights, target)
    again = onnx.load(target)
    assert again == proto
    assert report.opset == proto.opset_import[0].version
    assert str(report.sizes) == "Heights and widths are those of the imported file, which is exported as it was"
    for ours, theirs in zip(run(target, feeds), run(path, feeds), strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_the_report_of_an_unedited_file_is_about_its_inputs(tmp_path: Path, registry: Registry) -> None:
    """Older files list their weights among the inputs, and may name the domain of the opset."""
    proto = small_network()
    for tensor in proto.graph.initializer:
        proto.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    version = proto.opset_import[0].version
    del proto.opset_import[:]
    proto.opset_import.extend([onnx.helper.make_opsetid(*pair) for pair in (("com.example", 3), ("ai.onnx", version))])
    found = import_onnx(saved(proto, tmp_path), registry, ImportOptions())
    weights = replace(found.weights, note="as downloaded")
    report = export_onnx(found.graph, registry, weights, tmp_path / "again.onnx")
    assert report.sizes.as_imported
    assert list(report.inputs) == ["image"]
    assert (report.opset, report.weights_note) == (version, "as downloaded")
    assert report.nodes == len(proto.graph.node)
    assert report.bytes == (tmp_path / "again.onnx").stat().st_size


def test_trained_weights_are_written_into_the_file(tmp_path: Path, registry: Registry) -> None:
    """The names and attributes stay, the values are the present ones."""
    proto = small_network()
    found = import_onnx(saved(proto, tmp_path), registry, ImportOptions())
    trained = Weights({key: array * np.float32(1.5) for key, array in found.weights.tensors.items()})
    target = tmp_path / "trained.onnx"
    export_onnx(found.graph, registry, trained, target)
    again = onnx.load(target)
    assert again.graph.node == proto.graph.node
    expected = onnx.numpy_helper.to_array(proto.graph.initializer[0]) * np.float32(1.5)
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(again.graph.initializer[0]), expected)


def test_an_edited_document_is_exported_as_edited(tmp_path: Path, registry: Registry) -> None:
    found = import_onnx(saved(small_network(), tmp_path), registry, ImportOptions())
    layer = next(item for item in found.graph if item.activation and item.activation.type == "threshold")
    assert layer.activation is not None
    spec = replace(layer.activation, params={**layer.activation.params, "threshold": "0.75"})
    graph = found.graph.copy()
    edit = set_params(graph, {"image": {"scale": "2.0"}})
    graph.apply(edit)
    graph.apply(replace(edit, layers={layer.name: (layer, replace(layer, activation=spec))}))
    target = tmp_path / "edited.onnx"
    export_onnx(graph, registry, found.weights, target)
    again = onnx.load(target)
    (cut,) = (node for node in again.graph.node if node.op_type == "Where" or node.op_type == "ThresholdedRelu")
    assert cut.name not in [node.name for node in small_network().graph.node]


def test_the_unedited_parts_of_an_edited_file_keep_their_names_attributes_and_metadata(
    tmp_path: Path, registry: Registry
) -> None:
    proto = small_network()
    proto.producer_version = "7"
    proto.metadata_props.add(key="license", value="MIT")
    for number, node in enumerate(proto.graph.node):
        node.name = f"part/{number}"
        node.metadata_props.add(key="place", value=str(number))
        node.doc_string = f"about {number}"
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("kernel_shape", [3, 3]))
    path = saved(proto, tmp_path)
    found = import_onnx(path, registry, ImportOptions())
    graph = found.graph.copy()
    relu = next(item.name for item in graph if item.activation and item.activation.type == "relu")
    graph.apply(insert_on_link(graph, Layer("again", "identity"), relu, 0))
    target = tmp_path / "edited.onnx"
    export_onnx(graph, registry, found.weights, target)
    again = onnx.load(target)
    assert (again.producer_name, again.producer_version) == ("test", "7")
    assert {entry.key: entry.value for entry in again.metadata_props}["license"] == "MIT"
    nodes = {node.name: node for node in again.graph.node}
    assert nodes["part/0"].attribute == proto.graph.node[0].attribute
    assert nodes["part/0"].metadata_props[0].value == "0"
    assert nodes["part/0"].doc_string == "about 0"
    assert nodes["part/0"].output == proto.graph.node[0].output
    assert {tensor.name for tensor in proto.graph.initializer} & {
        tensor.name for tensor in again.graph.initializer
    } >= {
        "block.conv.weight",
        "block.conv.bias",
        "block.norm.mean",
    }
    feeds = {"image": random(2, 3, 20, 24)}
    np.testing.assert_allclose(run(target, feeds)[0], run(path, feeds)[0], rtol=1e-4, atol=1e-5)


def test_an_edited_file_has_the_descriptions_of_the_file_and_the_metadata_of_the_document(
    tmp_path: Path, registry: Registry
) -> None:
    """Also if the file is an earlier export, whose scales and digests are outdated."""
    proto = small_network()
    proto.graph.doc_string, proto.doc_string = "about the graph", "about the model"
    proto.domain, proto.model_version, proto.producer_version = "org.example", 12, "7"
    old = {"license": "MIT", "image.scale": "9.0", "image.shift": "8.0", "document_sha256": "old", "date": "2020-01-01"}
    for key, value in old.items():
        proto.metadata_props.add(key=key, value=value)
    for tensor in proto.graph.initializer:
        tensor.doc_string = "trained"
    found = import_onnx(saved(proto, tmp_path), registry, ImportOptions())
    graph = found.graph.copy()
    graph.apply(set_params(graph, {"image": {"scale": "2.0"}}))
    target = tmp_path / "edited.onnx"
    export_onnx(graph, registry, found.weights, target)
    again = onnx.load(target)
    names = ("producer_name", "producer_version", "domain", "model_version", "doc_string")
    assert [getattr(again, name) for name in names] == ["test", "7", "org.example", 12, "about the model"]
    assert (again.graph.name, again.graph.doc_string) == ("network", "about the graph")
    assert again.ir_version >= proto.ir_version
    entries = {entry.key: entry.value for entry in again.metadata_props}
    assert len(entries) == len(again.metadata_props)
    assert (entries["license"], entries["image.scale"], entries["image.shift"]) == ("MIT", "2.0", "0.0")
    assert len(entries["document_sha256"]) == 64
    assert entries["date"] > "2025"


def test_a_layer_that_reads_another_keeps_the_name_of_its_node(tmp_path: Path, registry: Registry) -> None:
    found = import_onnx(saved(small_network(), tmp_path), registry, ImportOptions())
    graph = found.graph.copy()
    (outcome,) = (item for item in found.report.outcomes if item.type == "Add")
    graph.apply(insert_on_link(graph, Layer("again", "identity"), outcome.layers[0], 1))
    export_onnx(graph, registry, found.weights, tmp_path / "edited.onnx")
    nodes = {node.name: node for node in onnx.load(tmp_path / "edited.onnx").graph.node}
    assert list(nodes["/block/Add"].input)[1:] == ["again"]
    assert list(nodes["/block/Add"].output) == ["a"]


def test_moved_layers_are_no_edit(tmp_path: Path, registry: Registry) -> None:
    proto = small_network()
    found = import_onnx(saved(proto, tmp_path), registry, ImportOptions())
    graph = found.graph.copy()
    layer = graph["image"]
    moved = replace(layer, position=(4096, 4096))
    graph.apply(replace(set_params(graph, {"image": {"tiling": "0"}}), layers={"image": (layer, moved)}))
    target = tmp_path / "again.onnx"
    export_onnx(graph, registry, found.weights, target)
    assert onnx.load(target) == proto


def test_a_conversion_of_an_unedited_file_is_carried_out(tmp_path: Path, registry: Registry) -> None:
    found = import_onnx(saved(small_network(), tmp_path), registry, ImportOptions())
    asked = []

    def convert(model: onnx.ModelProto) -> onnx.ModelProto:
        asked.append([node.op_type for node in model.graph.node])
        model.graph.doc_string = "converted"
        return model

    report = export_onnx(found.graph, registry, found.weights, tmp_path / "again.onnx", convert)
    assert len(asked) == 1
    assert onnx.load(tmp_path / "again.onnx").graph.doc_string == "converted"
    assert not report.sizes.as_imported
