"""Names and texts of a document stay names in ONNX files, which a reader that executes nothing opens."""

from __future__ import annotations

import pytest
from hostile_networks import hostile, hostile_graph

from designer.files.weights import random_weights, required_weights
from designer.graph.inference import Inference
from exporters.onnx import export_onnx

onnx = pytest.importorskip("onnx")


def test_hostile_text_gives_a_valid_model_of_the_same_operators(registry, tmp_path):
    def exported(graph, name):
        weights = random_weights(required_weights(Inference(graph, registry)), 0)
        export_onnx(graph, registry, weights, tmp_path / name)
        model = onnx.load(tmp_path / name)
        onnx.checker.check_model(model)
        return model

    made = exported(hostile_graph(), "hostile.onnx")
    plain = exported(hostile_graph(str, "plain"), "plain.onnx")
    assert sorted(node.op_type for node in made.graph.node) == sorted(node.op_type for node in plain.graph.node)
    assert {value.name for value in made.graph.output} == {hostile("other"), hostile("result")}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hostile.onnx", "plain.onnx"]
