"""ONNX files as documents: layers, weights, names, the report, and the comparison with the original."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import FLOAT, model, random, saved, small_network

from designer.files.document import parse_document, write_document
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.types import DataType
from designer.importers.formats import ImportOptions
from designer.importers.imported import Imported
from designer.importers.onnx.importing import import_onnx
from designer.importers.verification import compare, run_document
from designer.operators.registry import Registry
from designer.operators.size_contract import size_contract
from exporters.onnx import export_onnx


def imported(proto: onnx.ModelProto, folder: Path, registry: Registry) -> Imported:
    return import_onnx(saved(proto, folder), registry, ImportOptions()).verified(registry)


def types(found: Imported) -> list[str]:
    """The types of all layers but inputs and outputs; activations by their own."""
    plain = [layer for layer in found.graph if layer.type not in ("input", "tensor_input", "output")]
    return [layer.activation.type if layer.activation else layer.type for layer in plain]


def test_known_nodes_become_layers_with_the_trained_weights(tmp_path: Path, registry: Registry) -> None:
    found = imported(small_network(), tmp_path, registry)
    assert types(found) == [
        "convolution", "batch_normalization", "relu", "threshold", "element_wise", "global_pooling", "flatten",
        "fully_connected",
    ]  # fmt: skip
    assert {"image", "logits", "block_conv", "block_norm", "head"} <= set(found.graph.layers)
    report = found.report
    assert (report.nodes, report.known, report.opaque, report.folded) == (8, 8, 0, 0)
    assert report.weights["head.weight"] == "head.kernel"
    assert report.max_rel_difference is not None
    assert report.max_rel_difference < 1e-5
    assert [dict(case.inputs)["image"] for case in report.cases] == [(1, 3, 64, 64), (2, 3, 64, 64), (1, 3, 96, 96)]


def test_the_document_is_read_back_equal(tmp_path: Path, registry: Registry) -> None:
    graph = imported(small_network(), tmp_path, registry).graph
    reading = parse_document(write_document(graph))
    assert reading.diagnostics == ()
    assert reading.graph == graph


def test_a_wrong_weight_is_found_by_the_comparison(tmp_path: Path, registry: Registry) -> None:
    found = import_onnx(saved(small_network(), tmp_path), registry, ImportOptions())
    key = next(key for key in found.weights.tensors if key.tensor == "kernel")
    changed = {**found.weights.tensors, key: found.weights.tensors[key] + np.float32(0.01)}
    assert found.original is not None
    fields = compare(found.graph, registry, type(found.weights)(changed), found.original)
    assert fields["max_rel_difference"] > 1e-4


def test_unknown_operators_stay_opaque_and_run(tmp_path: Path, registry: Registry) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Det", ["r"], ["d"], name="determinant"),
        helper.make_node("Exp", ["d"], ["y"]),
    ]
    found = imported(model(nodes, {"x": [2, 3, 3]}, {"y": [2]}), tmp_path, registry)
    assert types(found) == ["relu", "opaque", "unary"]
    assert found.report.max_abs_difference == 0
    (opaque,) = [item for item in found.report.outcomes if item.outcome == "opaque"]
    assert (opaque.node, opaque.type, opaque.reason) == (
        "determinant",
        "Det",
        "Det is not an operator of the library",
    )


def loop_network() -> onnx.ModelProto:
    """A loop that adds a value of the graph around three times."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "outer"], ["next"]),
            helper.make_node("Identity", ["condition"], ["again"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("number", TensorProto.INT64, []),
            helper.make_tensor_value_info("condition", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", FLOAT, [2, 3]),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", FLOAT, [2, 3]),
        ],
    )
    nodes = [
        helper.make_node("Exp", ["x"], ["outer"]),
        helper.make_node("Loop", ["times", "", "x"], ["y"], name="loop", body=body),
    ]
    proto = model(nodes, {"x": [2, 3]}, {"y": [2, 3]})
    proto.graph.initializer.append(numpy_helper.from_array(np.array(3), "times"))
    return proto


def test_a_loop_is_one_opaque_layer_with_the_values_it_captures(tmp_path: Path, registry: Registry) -> None:
    found = imported(loop_network(), tmp_path, registry)
    assert types(found) == ["unary", "opaque"]
    (opaque,) = [layer for layer in found.graph if layer.type == "opaque"]
    assert {source.layer for source in opaque.inputs if source} == {"x", "exp"}
    assert found.report.max_abs_difference == 0


def test_a_loop_that_declares_no_shapes_follows_the_size_of_the_image(tmp_path: Path, registry: Registry) -> None:
    untyped = [helper.make_tensor_value_info(name, FLOAT, None) for name in ("a", "b")]
    flags = [helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("again", "still")]
    steps = [helper.make_node("Identity", ["again"], ["still"]), helper.make_node("Mul", ["a", "factor"], ["b"])]
    number = helper.make_tensor_value_info("number", TensorProto.INT64, [])
    body = helper.make_graph(steps, "body", [number, flags[0], untyped[0]], [flags[1], untyped[1]])
    nodes = [
        helper.make_node("Loop", ["count", "true", "x"], ["scaled"], body=body),
        helper.make_node("Relu", ["scaled"], ["y"]),
    ]
    values = {"count": np.array(3), "true": np.array(True), "factor": np.array(1.5, np.float32)}
    sizes = ["n", 3, "h", "w"]
    found = imported(model(nodes, {"x": sizes}, {"y": sizes}, values), tmp_path, registry)
    assert types(found) == ["tensor_constant", "opaque", "relu"]
    (opaque,) = [layer for layer in found.graph if layer.type == "opaque"]
    assert opaque.params["shapes"] == "N x 3 x H x W"
    assert found.report.max_abs_difference == 0


def branch(name: str, node: Any) -> onnx.GraphProto:
    return helper.make_graph([node], name, [], [helper.make_tensor_value_info(node.output[0], FLOAT, [2, 3])])


def test_every_result_of_a_branch_is_an_output_of_its_layer(tmp_path: Path, registry: Registry) -> None:
    def results(name: str, first: str, second: str) -> onnx.GraphProto:
        nodes = [helper.make_node(first, ["x"], [f"{name}_1"]), helper.make_node(second, ["x"], [f"{name}_2"])]
        entries = [helper.make_tensor_value_info(f"{name}_{number}", FLOAT, [2, 3]) for number in (1, 2)]
        return helper.make_graph(nodes, name, [], entries)

    then, other = results("then", "Exp", "Neg"), results("else", "Neg", "Exp")
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["highest"], keepdims=0),
        helper.make_node("Greater", ["highest", "limit"], ["flag"]),
        helper.make_node("If", ["flag"], ["a", "b"], then_branch=then, else_branch=other),
    ]
    proto = model(nodes, {"x": [2, 3]}, {"a": [2, 3], "b": [2, 3]}, {"limit": np.array(0.5, np.float32)})
    found = imported(proto, tmp_path, registry)
    assert [layer.params["output_count"] for layer in found.graph if layer.type == "opaque"] == ["2"]
    assert found.report.max_abs_difference == 0
    x = random(2, 3)
    x[0, 0] = 1.0
    made = run_document(found.graph, registry, found.weights, {"x": x})
    np.testing.assert_allclose(made["a"], np.exp(x), rtol=1e-5)
    np.testing.assert_allclose(made["b"], -x, rtol=1e-5)


def test_a_branch_in_a_loop_reads_values_of_the_loop(tmp_path: Path, registry: Registry) -> None:
    """They are made inside of the layer, so only `x` and `outer` are its inputs."""
    proto = loop_network()
    body = next(item.g for item in proto.graph.node[1].attribute if item.name == "body")
    del body.node[:]
    body.node.extend(
        [
            helper.make_node("Mul", ["state", "state"], ["square"]),
            helper.make_node(
                "If",
                ["condition"],
                ["next"],
                then_branch=branch("then", helper.make_node("Add", ["square", "outer"], ["one"])),
                else_branch=branch("else", helper.make_node("Sub", ["state", "outer"], ["other"])),
            ),
            helper.make_node("Identity", ["condition"], ["again"]),
        ]
    )
    found = imported(proto, tmp_path, registry)
    assert types(found) == ["unary", "opaque"]
    assert found.report.max_abs_difference == 0


@pytest.mark.parametrize("dtype", [kind for kind in DataType if kind is not DataType.BFLOAT16])
def test_an_opaque_layer_reads_every_element_type(dtype: DataType, tmp_path: Path, registry: Registry) -> None:
    code = {"float32": "FLOAT", "float64": "DOUBLE"}.get(dtype, dtype.upper())
    nodes = [
        helper.make_node("Cast", ["x"], ["c"], to=getattr(TensorProto, code)),
        helper.make_node("ReverseSequence", ["c", "lengths"], ["r"], name="reverse"),
        helper.make_node("Cast", ["r"], ["y"], to=FLOAT),
    ]
    proto = model(nodes, {"x": [4, 2]}, {"y": [4, 2]}, {"lengths": np.array([3, 2])})
    found = import_onnx(saved(proto, tmp_path), registry, ImportOptions())
    (outcome,) = [item for item in found.report.outcomes if item.node == "reverse"]
    assert outcome.reason == "ReverseSequence is not an operator of the library"
    assert found.graph[outcome.layers[0]].params["shapes"] == f"4 x 2 {dtype.value}".removesuffix(" float32")


def test_a_kept_node_of_another_domain_is_run_and_exported_in_its_version(tmp_path: Path, registry: Registry) -> None:
    """Version 1 of this operator has no tables of keys and values."""
    node = helper.make_node(
        "LabelEncoder",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        keys_floats=[0.0, 1.0],
        values_floats=[0.5, 7.0],
        default_float=-1.0,
    )
    found = imported(model([node], {"x": [2, 3]}, {"y": [2, 3]}, domains={"ai.onnx.ml": 2}), tmp_path, registry)
    (layer,) = [layer for layer in found.graph if layer.type == "opaque"]
    assert (layer.params["domain"], layer.params["opset"], "model" in layer.params) == ("ai.onnx.ml", "2", False)
    x = np.array([[0, 1, 2], [1, 0, 3]], np.float32)
    made = run_document(found.graph, registry, found.weights, {"x": x})
    np.testing.assert_array_equal(made["y"], [[0.5, 7, -1], [7, 0.5, -1]])
    edited = Graph([*found.graph], name="edited")
    export_onnx(edited, registry, found.weights, tmp_path / "edited.onnx")
    assert ("ai.onnx.ml", 2) in {
        (entry.domain, entry.version) for entry in onnx.load(tmp_path / "edited.onnx").opset_import
    }


def test_an_empty_attribute_of_an_opaque_layer_is_kept(tmp_path: Path, registry: Registry) -> None:
    node = helper.make_node("Imputer", ["x"], ["y"], domain="ai.onnx.ml", imputed_value_floats=[0.5])
    node.attribute.append(helper.make_attribute("imputed_value_int64s", [], attr_type=onnx.AttributeProto.INTS))
    proto = model([node], {"x": [2, 3]}, {"y": [2, 3]}, domains={"ai.onnx.ml": 3})
    found = imported(proto, tmp_path, registry)
    assert types(found) == ["opaque"]
    assert found.report.max_abs_difference == 0


@pytest.mark.parametrize("axis", [0, 1, 2, 3, 4, -1, -3])
def test_flatten_keeps_the_axes_before(axis: int, tmp_path: Path, registry: Registry) -> None:
    proto = model([helper.make_node("Flatten", ["x"], ["y"], axis=axis)], {"x": [2, 3, 4, 5]}, {"y": None})
    found = imported(proto, tmp_path, registry)
    assert types(found) == ["flatten" if axis in (1, -3) else "reshape"]
    assert found.report.max_abs_difference == 0


SOURCES = ("constant", "broadcast", "computed")


@pytest.mark.parametrize(
    ("kind", "scale", "bias"),
    [
        *(("LayerNormalization", scale, bias) for scale in SOURCES for bias in ("", *SOURCES)),
        *(("RMSNormalization", scale, "") for scale in SOURCES),
    ],
)
def test_scales_and_biases_of_normalizations(
    kind: str, scale: str, bias: str, tmp_path: Path, registry: Registry
) -> None:
    shapes = {"constant": (4, 5), "broadcast": (5,)}
    weights = {name: random(*shapes[kind]) for name, kind in (("s", scale), ("b", bias)) if kind in shapes}
    inputs = {name: [4, 5] for name, kind in (("s", scale), ("b", bias)) if kind == "computed"}
    node = helper.make_node(kind, ["x", "s", *(["b"] if bias else [])], ["y"], axis=1)
    found = imported(model([node], {"x": [2, 4, 5], **inputs}, {"y": None}, weights, opset=23), tmp_path, registry)
    assert found.report.opaque == 0
    assert found.report.max_rel_difference is not None
    assert found.report.max_rel_difference < 1e-5


def test_values_that_no_layer_can_hold_stay_inside_of_their_reader(tmp_path: Path, registry: Registry) -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["a", "b"], ["s"]),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ]
    found = imported(model(nodes, {"a": [2, 3], "b": [1, 3]}, {"y": [3, 3]}), tmp_path, registry)
    (layer,) = [layer for layer in found.graph if layer.type == "opaque"]
    assert [outcome.layers for outcome in found.report.outcomes] == [(layer.name,)] * 2, "both nodes are in that layer"
    assert found.report.max_abs_difference == 0


def test_values_that_no_layer_can_hold_are_captured_by_an_inner_graph(tmp_path: Path, registry: Registry) -> None:
    def branch(name: str, index: str) -> onnx.GraphProto:
        node = helper.make_node("SequenceAt", ["s", index], [name])
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, FLOAT, [2, 3])])

    nodes = [
        helper.make_node("SequenceConstruct", ["a", "b"], ["s"]),
        helper.make_node("ReduceMax", ["a"], ["top"], keepdims=0),
        helper.make_node("Greater", ["top", "limit"], ["high"]),
        helper.make_node("If", ["high"], ["y"], then_branch=branch("t", "zero"), else_branch=branch("e", "one")),
    ]
    numbers = {"limit": np.float32(0), "zero": np.array(0), "one": np.array(1)}
    found = imported(model(nodes, {"a": [2, 3], "b": [2, 3]}, {"y": [2, 3]}, numbers), tmp_path, registry)
    outcomes = {outcome.type: outcome.layers for outcome in found.report.outcomes}
    assert outcomes["SequenceConstruct"] == outcomes["If"], "both nodes are in one layer"
    assert found.report.max_abs_difference == 0


def test_constants_are_folded_only_into_parameters(tmp_path: Path, registry: Registry) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"], axis=0),
        helper.make_node("Unsqueeze", ["batch", "axis"], ["batch_1"]),
        helper.make_node("Concat", ["batch_1", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["flat"]),
        helper.make_node("Mul", ["flat", "factor"], ["y"]),
    ]
    integers = {"zero": np.array(0), "axis": np.array([0]), "rest": np.array([-1])}
    weights = {**integers, "factor": random(4 * 5)}
    found = imported(model(nodes, {"x": ["n", 4, 5]}, {"y": ["n", 20]}, weights), tmp_path, registry)
    assert types(found) == ["reshape", "tensor_constant", "element_wise"]
    assert found.report.folded == 3
    assert found.report.max_abs_difference == 0


def test_names_of_inputs_and_outputs_are_kept_if_legal(tmp_path: Path, registry: Registry) -> None:
    proto = model([helper.make_node("Relu", ["input.1"], ["onnx::out"])], {"input.1": [2, 3]}, {"onnx::out": [2, 3]})
    found = imported(proto, tmp_path, registry)
    assert set(found.graph.layers) >= {"input.1", "onnx__out"}
    assert found.report.max_abs_difference == 0


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 18, 22])
def test_operators_of_old_and_new_opsets(opset: int, tmp_path: Path, registry: Registry) -> None:
    """Attributes of older versions are inputs of newer ones."""
    weights: dict[str, np.ndarray] = {}
    if opset < 11:
        pad = helper.make_node("Pad", ["x"], ["p"], pads=[0, 0, 1, 1, 0, 0, 1, 1], value=0.5)
        clip = helper.make_node("Clip", ["p"], ["c"], min=-0.5, max=0.75)
    else:
        weights |= {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "value": np.float32(0.5).reshape(())}
        weights |= {"low": np.float32(-0.5).reshape(()), "high": np.float32(0.75).reshape(())}
        pad = helper.make_node("Pad", ["x", "pads", "value"], ["p"])
        clip = helper.make_node("Clip", ["p", "low", "high"], ["c"])
    if opset < 13:
        mean = helper.make_node("ReduceSum", ["c"], ["m"], axes=[2, 3], keepdims=0)
        out = helper.make_node("Unsqueeze", ["m"], ["y"], axes=[2])
    else:
        weights |= {"axes": np.array([2, 3]), "axis": np.array([2])}
        mean = helper.make_node("ReduceSum", ["c", "axes"], ["m"], keepdims=0)
        out = helper.make_node("Unsqueeze", ["m", "axis"], ["y"])
    proto = model([pad, clip, mean, out], {"x": ["n", 3, 6, 6]}, {"y": ["n", 3, 1]}, weights, opset=opset)
    found = imported(proto, tmp_path, registry)
    assert types(found) == ["padding", "unary", "reduce", "unsqueeze"]
    assert found.report.agrees


def test_external_data_is_read(tmp_path: Path, registry: Registry) -> None:
    path = tmp_path / "model.onnx"
    onnx.save_model(small_network(), path, save_as_external_data=True, location="data.bin", size_threshold=0)
    found = import_onnx(path, registry, ImportOptions()).verified(registry)
    assert found.report.agrees
    assert found.report.max_abs_difference is not None


_MEASURED = """
import re, sys
from pathlib import Path
from designer.importers.formats import ImportOptions
from designer.importers.onnx.importing import import_onnx
from designer.operators.registry import load

found = import_onnx(Path(sys.argv[1]), load(entry_points=False), ImportOptions())
(kernel,) = (tensor for key, tensor in found.weights.tensors.items() if key.tensor == "kernel")
assert kernel.nbytes > 3 * 10**9, kernel.shape
status = Path("/proc/self/status").read_text()  # ru_maxrss includes the process that started this one
print(int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) // 1024)
"""


def test_external_data_of_gigabytes_is_not_read_before_it_is_used(tmp_path: Path) -> None:
    side = 28_000
    proto = model([helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)], {"x": ["n", side]}, {"y": ["n", side]})
    weight = proto.graph.initializer.add(name="w", data_type=FLOAT, dims=[side, side])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(4 * side * side)  # without blocks on the disk
    path = saved(proto, tmp_path)
    run = subprocess.run([sys.executable, "-c", _MEASURED, path], capture_output=True, text=True, check=False)
    assert not run.returncode, run.stderr
    assert int(run.stdout) < 700  # MiB


def reduction(after: list[int], **attributes: int) -> onnx.ModelProto:
    """A sum over axes that are an input of the model."""
    x = helper.make_tensor_value_info("x", FLOAT, [2, 3, 4])
    axes = helper.make_tensor_value_info("axes", TensorProto.INT64, [1])
    y = helper.make_tensor_value_info("y", FLOAT, after)
    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"], **attributes)], "sum", [x, axes], [y]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_axes_that_are_computed_follow_from_the_declared_type(tmp_path: Path, registry: Registry) -> None:
    found = import_onnx(saved(reduction([2, 1, 4]), tmp_path), registry, ImportOptions())
    (layer,) = (layer for layer in found.graph if layer.type == "reduce")
    assert layer.params["axes"] == "1"


@pytest.mark.parametrize(("after", "keep"), [([2, 4], 0), ([2, 3, 4], 1)])
def test_axes_that_the_declared_type_leaves_open_make_the_node_opaque(
    after: list[int], keep: int, tmp_path: Path, registry: Registry
) -> None:
    found = import_onnx(saved(reduction(after, keepdims=keep), tmp_path), registry, ImportOptions())
    assert [item.reason for item in found.report.outcomes] == ["the axes 'axes' are computed while running"]


@pytest.mark.parametrize(
    ("after", "attributes"), [([2, 5, 3], {}), ([2, 3, 7], {"axis": 1}), ([3, 5, 7], {"axis": -3})]
)
def test_a_number_of_largest_values_that_is_computed_follows_from_the_declared_type(
    after: list[int], attributes: dict[str, int], tmp_path: Path, registry: Registry
) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "places"], **attributes)
    proto = model([node], {"x": [4 if after[0] == 3 else 2, 5, 7]}, {"y": after})
    proto.graph.input.append(helper.make_tensor_value_info("k", TensorProto.INT64, [1]))
    found = import_onnx(saved(proto, tmp_path), registry, ImportOptions())
    (layer,) = (layer for layer in found.graph if layer.type == "top_k")
    assert layer.params["k"] == "3"


def test_space_to_depth_of_pytorch_is_warned_about(tmp_path: Path, registry: Registry) -> None:
    node = helper.make_node("SpaceToDepth", ["x"], ["y"], blocksize=2)
    proto = model([node], {"x": ["n", 3, 4, 4]}, {"y": ["n", 12, 2, 2]}, producer="pytorch")
    found = imported(proto, tmp_path, registry)
    assert "pytorch#186080" in found.report.warnings[0]


def test_sizes_of_open_dimensions_can_be_given(tmp_path: Path, registry: Registry) -> None:
    path = saved(small_network(), tmp_path)
    found = import_onnx(path, registry, ImportOptions(sizes={"image": (1, 3, 48, 40)}))
    assert found.graph["image"].params["dims"] == "40x48x3"


@pytest.mark.parametrize(
    ("name", "size", "words"),
    [
        ("imgae", (1, 3, 48, 40), "has no input 'imgae'"),
        ("w", (2, 3), "has no input 'w'"),
        ("x", (3, 48, 40), "N x 3 x ? x 40, which cannot be 3 x 48 x 40"),
        ("x", (1, 3, 48, 41), "which cannot be 1 x 3 x 48 x 41"),
        ("x", (1, 4, 48, 40), "which cannot be 1 x 4 x 48 x 40"),
        ("x", (2, 3, 48, 40), ""),
    ],
)
def test_sizes_of_other_inputs_or_dimensions_are_refused(
    name: str, size: tuple[int, ...], words: str, tmp_path: Path, registry: Registry
) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    proto = model(nodes, {"x": ["N", 3, "?", 40]}, {"y": ["N", 3, "?", 40]}, {"w": random(2, 3)})
    proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [2, 3]))
    path, options = saved(proto, tmp_path), ImportOptions(sizes={name: size})
    if not words:
        assert import_onnx(path, registry, options).graph["x"].params["dims"] == "40x48x3"
        return
    with pytest.raises(DiagnosticError) as refused:
        import_onnx(path, registry, options)
    assert words in refused.value.diagnostics[0].message


def test_an_attribute_that_the_converter_does_not_know_makes_the_node_opaque(
    tmp_path: Path, registry: Registry
) -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="strange")
    node.attribute.append(helper.make_attribute("slope", 0.5))
    found = import_onnx(saved(model([node], {"x": [2, 3]}, {"y": [2, 3]}), tmp_path), registry, ImportOptions())
    assert [item.reason for item in found.report.outcomes] == ["its attribute 'slope' is not supported"]


def test_attributes_without_effect_do_not_matter(tmp_path: Path, registry: Registry) -> None:
    """Exporters write the size of the filters and the momentum of training."""
    proto = small_network()
    proto.graph.node[0].attribute.append(helper.make_attribute("kernel_shape", [3, 3]))
    proto.graph.node[1].attribute.append(helper.make_attribute("momentum", 0.75))
    assert import_onnx(saved(proto, tmp_path), registry, ImportOptions()).report.opaque == 0


def test_an_operator_becomes_the_layers_of_its_definition(tmp_path: Path, registry: Registry) -> None:
    """The standard defines it by operators that are known."""
    nodes = [helper.make_node("SwiGLU", ["a", "b"], ["y"], name="gate")]
    found = imported(model(nodes, {"a": [2, 3], "b": [2, 3]}, {"y": [2, 3]}, opset=28), tmp_path, registry)
    assert "opaque" not in types(found)
    assert len(types(found)) > 1
    assert (found.report.nodes, found.report.known) == (1, 1)
    assert found.report.agrees


def test_a_definition_with_an_unknown_operator_leaves_no_layers(tmp_path: Path, registry: Registry) -> None:
    """Its first operators are known, the last one is QuantizeLinear."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"], name="quantize"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    found = imported(model(nodes, {"x": [2, 3]}, {"y": [2, 3]}), tmp_path, registry)
    assert types(found) == ["opaque", "opaque"]
    assert found.report.max_abs_difference == 0


def blocks(count: int, *, different: bool = False) -> onnx.ModelProto:
    """Equal residual blocks one after the other; with `different` the second has another activation."""
    nodes, weights, x = [], {}, "x"
    for number in range(count):
        scope, kind = f"/body/layers.{number}", "Tanh" if different and number == 1 else "Relu"
        weights[f"body.layers.{number}.conv.weight"] = random(4, 4, 3, 3, seed=number)
        nodes += [
            helper.make_node(
                "Conv",
                [x, f"body.layers.{number}.conv.weight"],
                [f"c{number}"],
                name=f"{scope}/conv/Conv",
                pads=[1] * 4,
            ),
            helper.make_node(kind, [f"c{number}"], [f"r{number}"], name=f"{scope}/act/{kind}"),
            helper.make_node("Add", [x, f"r{number}"], [f"a{number}"], name=f"{scope}/Add"),
        ]
        x = f"a{number}"
    return model(nodes, {"x": ["n", 4, "h", "w"]}, {x: None}, weights, opset=17)


def test_equal_modules_become_instances_of_one_template(tmp_path: Path, registry: Registry) -> None:
    found = imported(blocks(3), tmp_path, registry)
    assert types(found) == ["template"] * 3
    assert found.report.templates == {"layers": 3}
    assert [layer.type for layer in found.graph.templates["layers"].layers].count("convolution") == 1
    assert found.report.weights["body.layers.1.conv.weight"] == "body_layers_1.conv.kernel"
    assert found.report.outcomes[3].layers == ("body_layers_1.conv",)
    assert found.report.agrees
    assert len(found.report.cases) == 3


def test_a_module_that_differs_stays_as_layers(tmp_path: Path, registry: Registry) -> None:
    found = imported(blocks(3, different=True), tmp_path, registry)
    assert sorted(types(found)) == ["convolution", "element_wise", "tanh", "template", "template"]
    assert found.report.agrees


def test_opaque_layers_follow_the_size_of_the_image(tmp_path: Path, registry: Registry) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("MaxPool", ["q"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("DequantizeLinear", ["p", "scale", "zero"], ["y"]),
    ]
    weights = {"scale": np.array(0.02, np.float32), "zero": np.array(3, np.uint8)}
    proto = model(nodes, {"x": ["n", 3, "h", "w"]}, {"y": ["n", 3, None, None]}, weights)
    found = import_onnx(saved(proto, tmp_path), registry, ImportOptions()).verified(registry)
    shapes = [layer.params["shapes"] for layer in found.graph if layer.type == "opaque"]
    assert sorted(shapes) == ["N x 3 x H x W", "N x 3 x H x W uint8", "N x 3 x H/2 x W/2 uint8"]
    assert {case.inputs["x"][2:] for case in found.report.cases} == {(64, 64), (96, 96)}
    assert found.report.max_abs_difference == 0
    (item,) = size_contract(found.graph, registry).inputs
    assert (str(item.height), str(item.width)) == ("at least 2", "at least 2")
