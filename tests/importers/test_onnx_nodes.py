"""Every converter of ONNX nodes: the layers compute what the node computes, or the node is kept as it is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_models import model, random
from onnx_node_cases import CASES, KEPT, REFUSED, NodeCase, ints

from designer.graph.types import ShapeError
from designer.importers.formats import ImportOptions
from designer.importers.onnx.conversion import Conversion, OnnxOp, UnsupportedError
from designer.importers.onnx.importing import import_proto
from designer.importers.onnx.nodes import CONVERTERS
from designer.importers.onnx.original import OnnxOriginal
from designer.importers.verification import run_document
from designer.operators.params import ParamError
from designer.operators.registry import Registry


def expected(case: NodeCase) -> list[Any]:
    proto, feeds = case.model(), dict(case.feeds)
    if not case.by_runtime:
        return list(ReferenceEvaluator(proto).run(None, feeds))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return list(onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, feeds))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_node_becomes_layers_that_compute_the_same(case: NodeCase, registry: Registry) -> None:
    found = import_proto(case.model(), Path("node.onnx"), registry, ImportOptions())
    assert [item.reason for item in found.report.outcomes] == [""]
    assert isinstance(found.original, OnnxOriginal)
    feeds = {found.original.inputs[name]: array for name, array in case.feeds.items()}
    made = run_document(found.graph, registry, found.weights, feeds)
    for (name, layer), array in zip(found.original.outputs.items(), expected(case), strict=True):
        assert made[layer].shape == array.shape, name
        np.testing.assert_allclose(made[layer], array, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(("case", "reason"), REFUSED, ids=[f"{case}: {reason}" for case, reason in REFUSED])
def test_a_node_that_layers_cannot_express_is_kept(case: NodeCase, reason: str, registry: Registry) -> None:
    found = import_proto(case.model(), Path("node.onnx"), registry, ImportOptions())
    assert [item.node for item in found.report.outcomes] == ["node"], "nodes of its definition count"
    assert found.report.opaque == 1
    assert reason in found.report.outcomes[0].reason
    kinds = {layer.type for layer in found.graph} - {"input", "tensor_input", "tensor_constant", "output"}
    assert kinds == {"opaque"}, "layers of the attempt remain"
    if reason in ("training mode", "three spatial axes", "larger than the filters reach", "the batch first"):
        return  # random values, or ONNX Runtime cannot run it either
    assert isinstance(found.original, OnnxOriginal)
    made = run_document(found.graph, registry, found.weights, dict(case.feeds))
    values = expected(replace(case, by_runtime=True))
    for (name, layer), array in zip(found.original.outputs.items(), values, strict=True):
        np.testing.assert_allclose(made[layer], array, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("case", KEPT, ids=str)
def test_a_node_that_is_kept_computes_what_it_does_in_its_opset(case: NodeCase, registry: Registry) -> None:
    found = import_proto(case.model(), Path("node.onnx"), registry, ImportOptions())
    assert found.report.opaque == 1
    made = run_document(found.graph, registry, found.weights, dict(case.feeds))
    np.testing.assert_allclose(made["y0"], expected(case)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("mode", "coordinates", "factors", "kind"), [
    ("linear", "half_pixel", (0.7, 1.1), "resize"), ("linear", "half_pixel", (0.3, 0.77), "opaque"),
    ("cubic", "align_corners", (0.7, 0.55), "resize"), ("linear", "asymmetric", (0.7, 1.1), "opaque"),
    ("nearest", "asymmetric", (0.7, 1.1), "resize"), ("nearest", "half_pixel", (0.7, 1.03), "opaque"),
])  # fmt: skip
@pytest.mark.parametrize("declared", [None, ("n", 2, "h", "w")], ids=["no shape", "open shape"])
def test_a_resize_by_factors_has_the_sizes_of_the_runtime(
    mode: str, coordinates: str, factors: tuple[float, float], kind: str, declared: Any, registry: Registry
) -> None:
    """Also where the file does not have them: 0.7 of 10 pixels are 7 in float32, and 6 for the shape inference of ONNX."""
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": "floor"}
    scales = {"scales": np.array([1, 1, *factors], np.float32)}
    case = NodeCase("Resize", {"x": random(1, 2, 10, 20)}, scales, attributes, order=["x", "", "scales"])
    (values,) = expected(replace(case, by_runtime=True))
    assert values.shape == (1, 2, *(int(np.float32(a) * np.float32(b)) for a, b in zip((10, 20), factors, strict=True)))
    model = case.model()
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y0", TensorProto.FLOAT, declared))
    found = import_proto(model, Path("node.onnx"), registry, ImportOptions())
    assert {layer.type for layer in found.graph} == {"input", kind, "output"}
    (made,) = run_document(found.graph, registry, found.weights, dict(case.feeds)).values()
    assert made.shape == values.shape
    np.testing.assert_allclose(made, values, rtol=1e-4, atol=1e-5)


def test_parts_that_nothing_reads_count_in_an_even_split(registry: Registry) -> None:
    nodes = [helper.make_node("Split", ["x"], ["a", "b", "c"], axis=1), helper.make_node("Sub", ["b", "a"], ["y"])]
    proto = model(nodes, {"x": [1, 6, 2]}, {"y": None}, opset=13)
    found = import_proto(proto, Path("split.onnx"), registry, ImportOptions())
    x = random(1, 6, 2)
    made = run_document(found.graph, registry, found.weights, {"x": x})
    np.testing.assert_allclose(made["y"], x[:, 2:4] - x[:, :2], rtol=1e-6)


def test_a_squeeze_of_all_axes_of_1_removes_the_batch_of_the_file(registry: Registry) -> None:
    proto = model([helper.make_node("Squeeze", ["x"], ["y"])], {"x": [1, 3, 8, 1]}, {"y": None})
    found = import_proto(proto, Path("squeeze.onnx"), registry, ImportOptions())
    made = run_document(found.graph, registry, found.weights, {"x": random(1, 3, 8, 1)})
    assert made["y"].shape == (3, 8)
    assert found.report.opaque == 0


@pytest.mark.parametrize(
    ("of", "attributes", "expected"),
    [
        (TensorProto.FLOAT, {"dtype": TensorProto.FLOAT16}, "float16"),
        (TensorProto.INT64, {"dtype": TensorProto.FLOAT}, "float32"),
        (TensorProto.INT64, {}, "int64"),
        (TensorProto.BOOL, {}, "bool"),
    ],
)
def test_the_element_type_of_an_identity_matrix_is_that_of_its_attribute_else_of_its_input(
    of: int, attributes: dict[str, Any], expected: str, registry: Registry
) -> None:
    node = helper.make_node("EyeLike", ["x"], ["y"], k=1, **attributes)
    proto = model([node], {"x": [3, 4]}, {"y": None})
    proto.graph.input[0].type.tensor_type.elem_type = of
    found = import_proto(proto, Path("eye.onnx"), registry, ImportOptions())
    constants = [layer.params for layer in found.graph if layer.type == "tensor_constant"]
    assert [(params["shape"], params["dtype"]) for params in constants] == [("3,4", expected)]
    numbers = np.array([float(text) for text in constants[0]["numbers"].split(",")]).reshape(3, 4)
    np.testing.assert_array_equal(numbers, np.eye(3, 4, 1))


@pytest.mark.parametrize(
    ("op", "outputs"),
    [
        (op, outputs)
        for op, names in (("LSTM", "yhc"), ("GRU", "yh"), ("RNN", "yh"))
        for outputs in product(*(("", name) for name in names))
        if any(outputs) and not all(outputs)
    ],
    ids=str,
)
def test_a_recurrent_layer_has_each_of_its_results_without_the_others(
    op: str, outputs: tuple[str, ...], registry: Registry
) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    weights = {"w": random(2, gates * 5, 4, seed=1), "r": random(2, gates * 5, 5, seed=2)}
    more = {"linear_before_reset": 1} if op == "GRU" else {}
    node = helper.make_node(op, ["x", "w", "r"], outputs, hidden_size=5, direction="bidirectional", **more)
    wanted = [name for name in outputs if name]
    proto = model([node], {"x": [6, 3, 4]}, dict.fromkeys(wanted), weights)
    found = import_proto(proto, Path("node.onnx"), registry, ImportOptions())
    assert isinstance(found.original, OnnxOriginal)
    x = random(6, 3, 4)
    made = run_document(found.graph, registry, found.weights, {"x": x})
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for name, array in zip(wanted, session.run(wanted, {"x": x}), strict=True):
        np.testing.assert_allclose(made[found.original.outputs[name]], array, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    "error", [UnsupportedError("no"), ShapeError("no"), ParamError("no"), TypeError("no")], ids=repr
)
def test_a_converter_that_fails_leaves_no_layers(
    error: Exception, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def converter(c: Conversion, op: OnnxOp) -> None:
        c.finish(c.add("identity", op.inputs)[0])
        raise error

    monkeypatch.setitem(CONVERTERS, ("", "Sin"), converter)
    found = import_proto(NodeCase("Sin").model(), Path("node.onnx"), registry, ImportOptions())
    assert [layer.type for layer in found.graph] == ["tensor_input", "opaque", "output"]
    assert "no" in found.report.outcomes[0].reason


def test_the_probability_of_a_dropout_is_kept(registry: Registry) -> None:
    case = next(case for case in CASES if case.op == "Dropout")
    graph = import_proto(case.model(), Path("node.onnx"), registry, ImportOptions()).graph
    assert [layer.params["probability"] for layer in graph if layer.type == "dropout"] == ["0.3"]


@pytest.mark.parametrize(
    ("case", "drawn"),
    [
        (NodeCase("Flatten", {"x": random(1, 3, 4)}, attributes={"axis": 2}, open_batch=True), "1,3,4"),
        (NodeCase("Reshape", {"x": random(1, 1)}, {"shape": ints(-1)}, open_batch=True), "1,1"),
        (NodeCase("Reshape", {"x": random(1)}, {"shape": ints(-1, 1)}, open_batch=True), "1"),
    ],
    ids=["merges", "removes", "splits"],
)
def test_a_node_that_changes_the_batch_makes_the_document_one_for_a_batch_of_1(
    case: NodeCase, drawn: str, registry: Registry
) -> None:
    found = import_proto(case.model(), Path("node.onnx"), registry, ImportOptions())
    assert found.report.opaque == 0
    assert found.graph["x"].params["shape"] == drawn
    assert [warning.partition(":")[0] for warning in found.report.warnings] == ["the document has a batch of 1"]
