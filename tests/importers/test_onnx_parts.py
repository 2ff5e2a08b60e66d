"""Parts of the import of ONNX files on their own: inputs, cases, patterns of unequal sizes, the kept file, versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data
from onnx_models import FLOAT, model, random, saved
from onnx_node_cases import CASES, KEPT, REFUSED, NodeCase
from recorded import check_recorded

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.types import DataType, ShapeError, Symbol, TensorType
from designer.importers.formats import ImportOptions
from designer.importers.imported import Imported
from designer.importers.onnx import conversion, importing, model_file, opaque, origin, versions
from designer.importers.onnx.conversion import OnnxOp, UnsupportedError, check_attributes
from designer.importers.onnx.importing import _declared, import_onnx, import_proto
from designer.importers.onnx.model_file import check_opsets, check_tensor
from designer.importers.onnx.opaque import _attributes_text, _open_size, _shapes_of_runs, _text, captured, data_type
from designer.importers.onnx.origin import _way, restored
from designer.importers.onnx.original import FileRunner, OnnxOriginal
from designer.importers.onnx.scopes import NAME_SCOPES, scope_of
from designer.importers.onnx.versions import (
    _expanded,
    _nodes,
    _same,
    has_definition,
    runnable_opset,
    upgraded,
    with_opset,
)
from designer.importers.report import ImportReport
from designer.importers.verification import run_document
from designer.operators.library.development.opaque import unpacked
from designer.operators.onnx_data import OPSET
from designer.operators.params import ParamError
from designer.operators.registry import Registry


def relu(inputs: dict[str, Sequence[int | str]], **options: Any) -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", [name], [f"{name}_y"], name=name) for name in inputs]
    return model(nodes, inputs, {f"{name}_y": None for name in inputs}, **options)


def imported(proto: onnx.ModelProto, registry: Registry, **sizes: tuple[int, ...]) -> Imported:
    return import_proto(proto, Path("file.onnx"), registry, ImportOptions(sizes=sizes))


# --- inputs and cases ----------------------------------------------------------------------------------------------


def drawn(found: Imported, name: str) -> str:
    params = found.graph[name].params
    return params.get("dims") or params["shape"]


@pytest.mark.parametrize(
    ("shape", "type", "text"),
    [
        (["n", 3, "h", "w"], "input", "64x64x3"),
        (["n", "c", 20, "w"], "input", "64x20x3"),
        ([1, 4, 20, 30], "input", "30x20x4"),
        (["n", "l", 5], "tensor_input", "16,5"),
        (["n"], "tensor_input", ""),
    ],
)
def test_open_sizes_of_inputs_have_usual_values(
    shape: list[int | str], type: str, text: str, registry: Registry
) -> None:
    found = imported(relu({"x": shape}), registry)
    assert found.graph["x"].type == type
    assert (found.graph["x"].params.get("dims") or found.graph["x"].params.get("shape", "")) == text


def test_sizes_are_given_by_name_or_for_all_inputs(registry: Registry) -> None:
    proto = relu({"a": ["n", 3, "h", "w"], "b": ["n", "c", 20, "w"]})
    found = imported(proto, registry, a=(1, 3, 10, 12))
    assert (drawn(found, "a"), drawn(found, "b")) == ("12x10x3", "64x20x3")
    found = imported(proto, registry, **{"": (1, 5, 10, 12)})
    assert (drawn(found, "a"), drawn(found, "b")) == ("12x10x3", "12x20x5")
    found = imported(proto, registry, **{"": (1, 5, 10, 12), "a": (1, 3, 8, 9)})
    assert (drawn(found, "a"), drawn(found, "b")) == ("9x8x3", "64x20x3")


def test_the_document_is_compared_at_the_sizes_that_the_file_leaves_open(registry: Registry) -> None:
    def shapes(*inputs: list[int | str]) -> list[list[tuple[int, ...]]]:
        found = imported(relu({f"x{number}": shape for number, shape in enumerate(inputs)}), registry)
        assert found.original is not None
        return [[shape for shape, _ in case.values()] for case in found.original.cases()]

    assert shapes(["n", 3, "h", 20]) == [[(1, 3, 64, 20)], [(2, 3, 64, 20)], [(1, 3, 96, 20)]]
    assert shapes(["n", "c", "h", 20]) == [[(1, 3, 64, 20)], [(2, 3, 64, 20)], [(1, 3, 96, 20)]]
    assert shapes([1, "c", 10, 20]) == [[(1, 3, 10, 20)]]
    assert shapes([2, 3, 10, "w"], [1, 3, "h", 20]) == [
        [(2, 3, 10, 64), (1, 3, 64, 20)],
        [(2, 3, 10, 96), (1, 3, 96, 20)],
    ]
    assert shapes([1, 3, 10, 20]) == [[(1, 3, 10, 20)]]
    assert shapes(["n", 7]) == [[(1, 7)], [(2, 7)]]
    assert shapes(["n", 7, "l"]) == [[(1, 7, 16)], [(2, 7, 16)]], "only images have another size"
    assert shapes(["n", 2, "d", 4, 5]) == [[(1, 2, 16, 4, 5)], [(2, 2, 16, 4, 5)]]
    assert shapes([1, 3, "h", "w"]) == [[(1, 3, 64, 64)], [(1, 3, 96, 96)]]
    assert shapes(["n", 7], [2, 3]) == [[(1, 7), (2, 3)], [(2, 7), (2, 3)]]
    assert shapes([2, 3], ["n", 7]) == [[(2, 3), (1, 7)], [(2, 3), (2, 7)]]
    assert shapes(["n", 3], ["m", 7]) == [[(1, 3), (1, 7)], [(2, 3), (2, 7)]]


@pytest.mark.parametrize(
    ("shape", "words"), [(["n", 3, -4, 5], "negative dimension"), (None, "not a tensor of numbers with a known rank")]
)
def test_inputs_that_no_layer_can_have(shape: Any, words: str, registry: Registry) -> None:
    proto = relu({"x": [2, 3]})
    proto.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", FLOAT, shape))
    with pytest.raises(DiagnosticError) as failed:
        imported(proto, registry)
    assert words in failed.value.diagnostics[0].message


def test_an_input_without_elements_is_a_constant(registry: Registry, tmp_path: Path) -> None:
    nodes = [helper.make_node("Concat", ["x", "none"], ["y"], axis=1)]
    proto = model(nodes, {"x": [2, 3], "none": [2, 0]}, {"y": None})
    found = import_onnx(saved(proto, tmp_path), registry, ImportOptions()).verified(registry)
    assert set(found.graph.layers) >= {"x", "y"}
    assert "none" not in found.graph
    assert found.report.max_abs_difference == 0


def test_the_name_of_the_graph_is_the_title_if_it_is_legal(registry: Registry) -> None:
    proto = relu({"x": [2, 3]})
    assert imported(proto, registry).graph.name == "network"
    proto.graph.name = "a,b"
    assert imported(proto, registry).graph.name == "file"


# --- patterns ------------------------------------------------------------------------------------------------------


def layers(found: Imported) -> list[str]:
    plain = [layer for layer in found.graph if layer.type not in ("input", "tensor_input", "output", "tensor_constant")]
    return [layer.activation.type if layer.activation else layer.type for layer in plain]


def attention(scale: str, number: float, *, mask: int = 0, axis: int = -1) -> onnx.ModelProto:
    """softmax(q x k * scale + mask) x v of unequal lengths; `mask` is 1 in front of the scores, 2 behind."""
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["s"]),
        helper.make_node(scale, ["s", "factor"], ["d"]),
        helper.make_node("Softmax", ["p" if mask else "d"], ["w"], axis=axis),
        helper.make_node("MatMul", ["w", "v"], ["y"]),
    ]
    if mask:
        nodes.insert(2, helper.make_node("Add", ["mask", "d"] if mask == 1 else ["d", "mask"], ["p"]))
    weights = {"factor": np.float32(number).reshape(()), **({"mask": random(3, 5, seed=3)} if mask else {})}
    inputs = {"q": [2, 6, 3, 4], "k": [2, 6, 4, 5], "v": [2, 6, 5, 7]}
    return model(nodes, inputs, {"y": None}, weights, opset=17)


@pytest.mark.parametrize("scale", [("Mul", 0.3), ("Div", 3.0)], ids=["times", "divided"])
@pytest.mark.parametrize("mask", [0, 1, 2])
def test_attention_with_scale_and_mask(scale: tuple[str, float], mask: int, registry: Registry, tmp_path: Path) -> None:
    path = saved(attention(*scale, mask=mask), tmp_path)
    found = import_onnx(path, registry, ImportOptions()).verified(registry)
    assert "scaled_dot_product_attention" in layers(found)
    assert found.report.max_rel_difference is not None
    assert found.report.max_rel_difference < 1e-5


@pytest.mark.parametrize("axis", [3, 2])
def test_only_a_softmax_over_the_keys_is_attention(axis: int, registry: Registry, tmp_path: Path) -> None:
    found = import_onnx(saved(attention("Mul", 0.3, axis=axis), tmp_path), registry, ImportOptions()).verified(registry)
    assert ("scaled_dot_product_attention" in layers(found)) is (axis == 3)
    assert found.report.agrees


def shuffle(six: list[int], perm: list[int], four: list[int], shape: list[int]) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Reshape", ["x", "six"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=perm),
        helper.make_node("Reshape", ["t", "four"], ["y"]),
    ]
    return model(nodes, {"x": shape}, {"y": None}, {"six": np.array(six), "four": np.array(four)}, opset=17)


UP, DOWN = [0, 1, 4, 2, 5, 3], [0, 1, 3, 5, 2, 4]


@pytest.mark.parametrize(
    ("six", "perm", "four", "shape", "expected"),
    [
        ([2, 2, 3, 3, 4, 5], UP, [2, 2, 12, 15], [2, 18, 4, 5], ["depth_to_space"]),
        ([-1, 2, 3, 3, 4, 5], UP, [-1, 2, 12, 15], [2, 18, 4, 5], ["depth_to_space"]),
        ([2, 2, 4, 3, 5, 3], DOWN, [2, 18, 4, 5], [2, 2, 12, 15], ["space_to_depth"]),
        ([2, 2, 2, 3, 4, 5], UP, [2, 2, 8, 15], [2, 12, 4, 5], ["reshape", "permute", "reshape"]),
        ([2, 2, 4, 2, 5, 3], DOWN, [2, 12, 4, 5], [2, 2, 8, 15], ["reshape", "permute", "reshape"]),
        ([2, 2, 3, 3, 4, 5], UP, [2, 24, 1, 15], [2, 18, 4, 5], ["reshape", "permute", "reshape"]),
        ([2, 2, 3, 3, 5, 4], UP, [2, 2, 15, 12], [2, 18, 4, 5], ["reshape", "permute", "reshape"]),
        ([2, 2, 3, 3, 5, 4], UP, [2, 2, 12, 15], [2, 18, 4, 5], ["reshape", "permute", "reshape"]),
        ([2, 2, 5, 3, 4, 3], DOWN, [2, 18, 4, 5], [2, 2, 12, 15], ["reshape", "permute", "reshape"]),
        ([2, 4, 2, 3, 5, 3], DOWN, [2, 18, 4, 5], [2, 2, 12, 15], ["reshape", "permute", "reshape"]),
        ([2, 2, 4, 3, 5, 3], DOWN, [2, 18, 5, 4], [2, 2, 12, 15], ["reshape", "permute", "reshape"]),
        ([2, 2, 4, 3, 5, 3], DOWN, [2, 9, 8, 5], [2, 2, 12, 15], ["reshape", "permute", "reshape"]),
        ([2, 2, 3, 3, 4, 5], [0, 1, 4, 3, 5, 2], [2, 2, 12, 15], [2, 18, 4, 5], ["reshape", "permute", "reshape"]),
    ],
)
def test_blocks_of_unequal_sizes(
    six: list[int],
    perm: list[int],
    four: list[int],
    shape: list[int],
    expected: list[str],
    registry: Registry,
    tmp_path: Path,
) -> None:
    found = import_onnx(saved(shuffle(six, perm, four, shape), tmp_path), registry, ImportOptions()).verified(registry)
    assert layers(found) == expected
    assert found.report.max_abs_difference == 0


def norm(
    *, axis: int = -1, keep: int = 1, epsilon: float = 0.1, other: bool = False, affine: bool = True
) -> onnx.ModelProto:
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[axis], keepdims=keep),
        helper.make_node("Sub", ["x", "m"], ["c"]),
        helper.make_node("Mul", ["c", "x" if other else "c"], ["p"]),
        helper.make_node("ReduceMean", ["p"], ["v"], axes=[-1]),
        helper.make_node("Add", ["v", "eps"], ["ve"]),
        helper.make_node("Sqrt", ["ve"], ["s"]),
        helper.make_node("Div", ["c", "s"], ["n"]),
    ]
    weights = {"eps": np.array(epsilon + 2 * other, np.float32)}
    if affine:
        nodes += [
            helper.make_node("Mul", ["norm.weight", "n"], ["nw"]),
            helper.make_node("Add", ["norm.bias", "nw"], ["y"]),
        ]
        weights |= {"norm.weight": random(5), "norm.bias": random(5, seed=1)}
    return model(nodes, {"x": [2, 5, 5]}, {"y" if affine else "n": None}, weights, opset=17)


@pytest.mark.parametrize(
    ("options", "one"),
    [({}, True), ({"affine": False}, True), ({"axis": 1}, False), ({"other": True}, False)],
)
def test_a_layer_normalization_needs_the_same_axis_and_a_square(
    options: dict[str, Any], one: bool, registry: Registry, tmp_path: Path
) -> None:
    found = import_onnx(saved(norm(**options), tmp_path), registry, ImportOptions()).verified(registry)
    assert (layers(found) == ["layer_normalization"]) is one
    assert found.report.max_rel_difference is not None
    assert found.report.max_rel_difference < 1e-5


def test_a_constant_that_is_too_large_to_be_folded_belongs_to_its_own_node(registry: Registry, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Expand", ["row", "shape"], ["wide"], name="expand"),
        helper.make_node("Add", ["x", "wide"], ["y"], name="sum"),
    ]
    weights = {"row": random(1, 100), "shape": np.array([50, 100])}
    found = import_onnx(
        saved(model(nodes, {"x": [50, 100]}, {"y": None}, weights), tmp_path), registry, ImportOptions()
    )
    outcomes = {item.node: item for item in found.report.outcomes}
    assert [found.graph[name].type for name in outcomes["sum"].layers] == ["element_wise"]
    assert [found.graph[name].type for name in outcomes["expand"].layers] == ["expand"]
    assert found.verified(registry).report.max_abs_difference == 0


# --- nodes as they are kept -----------------------------------------------------------------------------------------


def op(kind: str, attributes: dict[str, Any], **more: Any) -> OnnxOp:
    return OnnxOp("n", kind, "", 20, ("x",), ("y",), attributes, **more)


def test_attributes_that_no_converter_asked_for_must_have_their_default() -> None:
    check_attributes(op("LeakyRelu", {"alpha": helper.get_attribute_value(helper.make_attribute("alpha", 0.01))}))
    check_attributes(op("Conv", {"kernel_shape": [3, 3], "auto_pad": "NOTSET"}))
    asked = op("Conv", {"group": 2})
    assert asked.attribute("group", 1) == 2
    check_attributes(asked)
    for kind, attributes in (
        ("Conv", {"group": 2}),
        ("Conv", {"auto_pad": "VALID"}),
        ("Conv", {"pads": [1]}),
        ("Relu", {"x": 1}),
    ):
        with pytest.raises(UnsupportedError, match=f"its attribute '{next(iter(attributes))}' is not supported"):
            check_attributes(op(kind, attributes))


def test_attributes_as_text_are_read_back_equal() -> None:
    text = _attributes_text(op("X", {"a": 3, "b": 0.5, "c": "some text", "d": (1, 2), "e": [0.5, 1.5]}))
    assert text == "a=3\nb=0.5\nc='some text'\nd=[1, 2]\ne=[0.5, 1.5]"
    for value in (np.ones(2), [], [np.ones(2)], object()):
        assert _attributes_text(op("X", {"a": value})) is None


N = Symbol("N")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ([N, N, N, N], "N"),
        ([7, 7, 7, 7], "7"),
        ([12, 13, 14, 24], "H"),
        ([20, 22, 23, 60], "W"),
        ([24, 26, 28, 48], "H*2"),
        ([10, 11, 11, 30], "W/2"),
        ([13, 14, 15, 25], None),
        ([12, 13, 14, 25], None),
        ([12, N, N, N], None),
    ],
)
def test_sizes_that_follow_the_image(found: list[Any], text: str | None) -> None:
    assert _open_size(found, [(12, 20), (13, 22), (14, 23), (24, 60)]) == text


def test_types_as_text() -> None:
    assert _text(TensorType((), DataType.FLOAT32)) == "scalar"
    assert _text(TensorType((), DataType.INT64)) == "scalar int64"
    assert _text(TensorType((2, 3), DataType.UINT8)) == "2 x 3 uint8"
    assert _text(TensorType((2, 3), DataType.UINT8), ["N", "H/2"]) == "N x H/2 uint8"
    assert _text(TensorType((2, 3), DataType.FLOAT32), ["N", "W"]) == "N x W"
    assert data_type(TensorProto.DOUBLE) is DataType.FLOAT64
    assert data_type(TensorProto.STRING) is None


def test_shapes_of_runs_leave_out_what_depends_on_values() -> None:
    """The first row has the same values in both batches, and another number of values above 0.5 with another seed."""
    nodes = [
        helper.make_node("Slice", ["x", "zero", "one"], ["row"]),
        helper.make_node("Greater", ["row", "half"], ["above"]),
        helper.make_node("NonZero", ["above"], ["places"]),
        helper.make_node("Relu", ["x"], ["same"]),
        helper.make_node("Transpose", ["x"], ["turned"]),
        helper.make_node("Concat", ["x", "x"], ["twice"], axis=0),
    ]
    weights = {"zero": np.array([0]), "one": np.array([1]), "half": np.float32(0.5).reshape(())}
    outputs = ("places", "same", "turned", "row", "twice")
    proto = model(nodes, {"x": ["n", 3]}, dict.fromkeys(outputs), weights)
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    assert _shapes_of_runs(proto) == {"same": (N, 3), "turned": (3, N), "row": (1, 3)}
    proto.graph.node[0].op_type = "Sparkle"
    assert _shapes_of_runs(proto) == {}
    fixed = model([helper.make_node("Concat", ["a", "b"], ["c"], axis=0)], {"a": [5, 3], "b": ["n", 3]}, {"c": None})
    assert _shapes_of_runs(fixed) == {}, "neither fixed nor the batch"
    fixed = model([helper.make_node("MatMul", ["b", "a"], ["c"])], {"a": [5, 3], "b": ["n", 5]}, {"c": None})
    assert _shapes_of_runs(fixed) == {"c": (N, 3)}


def test_values_that_inner_graphs_read_from_around() -> None:
    import onnx_ir as ir

    def entry(name: str) -> Any:
        return helper.make_tensor_value_info(name, FLOAT, [2])

    inner = helper.make_graph([helper.make_node("Add", ["c", "far"], ["d"])], "inner", [], [entry("d")])
    nodes = [
        helper.make_node("Add", ["a", "near"], ["c"]),
        helper.make_node("If", ["flag"], ["e"], then_branch=inner, else_branch=inner),
    ]
    body = helper.make_graph(nodes, "body", [entry("a")], [entry("e"), entry("passed")])
    graph = helper.make_graph(
        [helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)], "g", [entry("x")], [entry("y")]
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    (node,) = ir.from_proto(proto).graph
    assert set(captured(op("Scan", {}, nodes=(node,)))) == {"near", "flag", "far", "passed"}


# --- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "metadata", "scope"),
    [
        ("/layer1/layer1.0/conv1/Conv", "", ("layer1", "layer1.0", "conv1")),
        ("block/conv/Conv", "", ("block", "conv")),
        ("//block//Conv", "", ("block",)),
        ("Conv", "", ()),
        ("", "", ()),
        ("/ignored/x", "['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d']", ("layer1", "0", "conv1")),
        ("/a/b", "['', 'head', 'linear']", ("head",)),
        ("/a/b", "['', 'a', 'b.c', 'x']", ("a", "b.c")),
        ("/a/b", "['', 'a', 'a', 'a.b', 'x']", ("a", "a", "b")),
        ("/a/b", "[1, 2]", ()),
        ("/a/b", "nonsense(", ()),
        ("/a/b", "{'a': 1}", ()),
    ],
)
def test_modules_around_a_node(name: str, metadata: str, scope: tuple[str, ...]) -> None:
    from types import SimpleNamespace

    node = SimpleNamespace(name=name, metadata_props={NAME_SCOPES: metadata} if metadata else {})
    assert scope_of(node) == scope


@pytest.mark.parametrize(
    ("node", "name"),
    [
        ("/e1/c1/Conv", "e1_c1"),
        ("/e1/Conv_1", "e1"),
        ("/layer1/layer1.0/conv1/Conv", "layer1_0_conv1"),
        ("/body/body.0/body.0.1/Conv", "body_0_1"),
        ("/conv/conv1/Conv", "conv_conv1"),
        ("/e1/e10/c.1/Conv", "e1_e10_c_1"),
        ("Conv", "Conv"),
        ("/e1/c1", "e1_c1"),
    ],
)
def test_a_folded_convolution_is_named_after_its_module_as_others_are(node: str, name: str, registry: Registry) -> None:
    """torch.onnx folds batch normalization, and the names of the weights are lost."""
    nodes = [
        helper.make_node("Conv", ["x", "onnx::Conv_60", "onnx::Conv_61"], ["a"], name=node),
        helper.make_node("Conv", ["a", "other.c2.weight"], ["c"], name="/other/c2/Conv"),
        helper.make_node("Conv", ["c", "onnx::Conv_63", "bias"], ["y"], name="/last/c3/Conv"),
    ]
    weights = {
        "onnx::Conv_60": random(4, 3, 3, 3),
        "onnx::Conv_61": random(4),
        "other.c2.weight": random(4, 4, 3, 3),
        "onnx::Conv_63": random(4, 4, 3, 3),
        "bias": random(4),
    }
    found = imported(model(nodes, {"x": [1, 3, 9, 9]}, {"y": None}, weights), registry)
    assert [layer.name for layer in found.graph if layer.type == "convolution"] == [name, "other_c2", "last_c3"]


# --- the kept file -------------------------------------------------------------------------------------------------


def test_how_a_weight_becomes_its_initializer(tmp_path: Path) -> None:
    array = random(2, 3)
    assert _way(numpy_helper.from_array(array), array, tmp_path) == "same"
    assert _way(numpy_helper.from_array(array), array.reshape(-1), tmp_path) == "same"
    assert _way(numpy_helper.from_array(array), np.ascontiguousarray(array.T), tmp_path) == "transposed"
    assert _way(numpy_helper.from_array(array), array * 2, tmp_path) is None
    assert _way(numpy_helper.from_array(array), random(5), tmp_path) is None
    assert _way(numpy_helper.from_array(array.astype(np.float64)), array, tmp_path) is None
    assert _way(numpy_helper.from_array(np.zeros(2, np.float32)), -np.zeros(2, np.float32), tmp_path) is None
    outside = numpy_helper.from_array(array)
    outside.data_location = TensorProto.EXTERNAL
    assert _way(outside, array, tmp_path) == "same"
    assert _way(outside, array.T, tmp_path) == "transposed"


def test_a_square_matrix_in_another_file_is_the_weight_or_its_transpose(tmp_path: Path) -> None:
    """The first row that differs from the column decides; a weight that is neither is not taken from the file."""
    plain = random(4, 4)
    late = np.eye(4, dtype=np.float32)
    late[2, 3] = 5
    for number, array in enumerate((plain, late, np.eye(4, dtype=np.float32))):
        stored = numpy_helper.from_array(array, "w")
        set_external_data(stored, f"data{number}.bin", offset=8)
        (tmp_path / f"data{number}.bin").write_bytes(b"in front" + stored.raw_data)
        stored.ClearField("raw_data")
        stored.data_location = TensorProto.EXTERNAL
        assert _way(stored, array.copy(), tmp_path) == "same"
        assert _way(stored, array[:], tmp_path) == "same"
        assert _way(stored, array.T.copy("C"), tmp_path) == ("same" if number == 2 else "transposed")
        assert _way(stored, array * 2, tmp_path) is None


def linear() -> onnx.ModelProto:
    """A matrix that is stored transposed, and a constant that is no weight."""
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["g"], name="fc"), helper.make_node("Mul", ["g", "half"], ["y"])]
    weights = {"w": random(3, 5), "b": random(5, seed=1), "half": np.float32(0.5).reshape(())}
    return model(nodes, {"x": ["n", 3]}, {"y": ["n", 5]}, weights)


@pytest.mark.parametrize("kind", ["MatMul", "Gemm"])
def test_a_square_matrix_in_another_file_is_exported_as_it_was(kind: str, tmp_path: Path, registry: Registry) -> None:
    path, matrix = tmp_path / "model.onnx", random(5, 5)
    proto = model([helper.make_node(kind, ["x", "w"], ["y"])], {"x": ["n", 5]}, {"y": ["n", 5]}, {"w": matrix})
    onnx.save_model(proto, path, save_as_external_data=True, location="data.bin", size_threshold=0)
    found = import_onnx(path, registry, ImportOptions())
    again = restored(found.graph, found.weights)
    assert again is not None
    np.testing.assert_array_equal(numpy_helper.to_array(again.graph.initializer[0]), matrix)


@pytest.mark.parametrize("external", [False, True])
def test_trained_weights_of_a_transposed_matrix_are_restored(
    external: bool, tmp_path: Path, registry: Registry
) -> None:
    path = tmp_path / "model.onnx"
    if external:
        onnx.save_model(linear(), path, save_as_external_data=True, location="data.bin", size_threshold=0)
    else:
        path.write_bytes(linear().SerializeToString())
    found = import_onnx(path, registry, ImportOptions())
    trained = {key: array * np.float32(3) for key, array in found.weights.tensors.items()}
    again = restored(found.graph, Weights(trained))
    assert again is not None
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in again.graph.initializer}
    np.testing.assert_array_equal(arrays["w"], random(3, 5) * np.float32(3))
    np.testing.assert_array_equal(arrays["b"], random(5, seed=1) * np.float32(3))
    assert arrays["half"] == 0.5
    key = next(key for key in trained if key.tensor == "kernel")
    assert restored(found.graph, Weights({k: a for k, a in trained.items() if k != key})) is None
    assert restored(found.graph, Weights({**trained, key: random(4, 4)})) is None
    damaged = found.graph.copy()
    damaged.properties["onnx"] = damaged.properties["onnx"][:-8] + "!!!!"
    assert restored(damaged, Weights(trained)) is None
    damaged.properties["onnx"] = ""
    assert restored(damaged, Weights(trained)) is None
    assert WeightKey("absent", "x") not in trained


def test_only_outputs_of_images_are_viewed_as_images(registry: Registry) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["image"]),
        helper.make_node("ArgMax", ["x"], ["classes"], axis=1, keepdims=1),
        helper.make_node("GlobalAveragePool", ["x"], ["means"]),
        helper.make_node("Flatten", ["means"], ["scores"]),
    ]
    proto = model(nodes, {"x": [1, 3, 8, 8]}, {"image": None, "classes": None, "scores": None})
    proto.graph.output[1].type.tensor_type.elem_type = TensorProto.INT64
    graph = imported(proto, registry).graph
    views = {layer.name: layer.params["analysis_view"] for layer in graph if layer.type == "output"}
    assert views == {"image": "image", "classes": "tensor", "scores": "tensor"}


def test_a_file_that_the_runtime_does_not_know_is_run_by_the_reference(tmp_path: Path) -> None:
    known = relu({"x": [2, 3]})
    x = random(2, 3)
    runner = FileRunner(saved(known, tmp_path))
    for _ in range(2):
        (made,) = runner.run(["x_y"], {"x": x})
        np.testing.assert_array_equal(made, np.maximum(x, 0))
    node = helper.make_node("Swish", ["x"], ["y"], alpha=0.5)
    newer = saved(model([node], {"x": [2, 3]}, {"y": [2, 3]}, opset=onnx.defs.onnx_opset_version()), tmp_path)
    runner = FileRunner(newer)
    for _ in range(2):
        (made,) = runner.run(None, {"x": x})
        np.testing.assert_allclose(made, x / (1 + np.exp(-0.5 * x)), rtol=1e-5)


def test_the_reference_tells_its_own_reason_after_it_took_over(tmp_path: Path) -> None:
    node = helper.make_node("Swish", ["x"], ["y"])
    newest = onnx.defs.onnx_opset_version()
    if newest == runnable_opset():
        pytest.skip("ONNX Runtime has all opsets of onnx")
    runner = FileRunner(saved(model([node], {"x": [2, 3]}, {"y": [2, 3]}, opset=newest), tmp_path))
    runner.run(["y"], {"x": random(2, 3)})
    with pytest.raises(RuntimeError, match="Unable to find input 'x'"):
        runner.run(["y"], {"absent": random(2, 3)})
    (made,) = runner.run(["y"], {"x": random(2, 3)})
    assert made.shape == (2, 3)


@pytest.mark.parametrize(("limit", "fits"), [(3, True), (2, False)])
def test_a_file_has_at_most_so_many_nodes_in_a_graph(
    limit: int, fits: bool, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_file, "MAX_NODES", limit)
    proto = relu({"a": [2], "b": [2], "c": [2]})
    if fits:
        model_file._check_graph(proto.graph, Path("file.onnx"), Path())
        return
    with pytest.raises(DiagnosticError, match="too many nodes"):
        model_file._check_graph(proto.graph, Path("file.onnx"), Path())


def test_the_original_computes_integers_without_saturation_on_any_processor(tmp_path: Path) -> None:
    weights = {
        "one": np.float32(1),
        "zero": np.uint8(0),
        "middle": np.int8(0),
        "coarse": np.float32(1e5),
        "kernel": np.full((4, 64, 3, 3), 127, np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "one", "zero"], ["q"]),
        helper.make_node("QLinearConv", ["q", "one", "zero", "kernel", "one", "middle", "coarse", "zero"], ["c"]),
        helper.make_node("DequantizeLinear", ["c", "one", "zero"], ["y"]),
    ]
    shapes = {name: np.asarray(array) for name, array in weights.items()}
    runner = FileRunner(saved(model(nodes, {"x": [1, 64, 3, 3]}, {"y": [1, 4, 1, 1]}, shapes), tmp_path))
    (made,) = runner.run(None, {"x": np.full((1, 64, 3, 3), 255, np.float32)})
    assert made.reshape(-1).tolist() == [round(255 * 127 * 64 * 9 / 1e5)] * 4
    options = runner._opened.get_session_options()  # only processors without VNNI show it in the values
    assert options.get_session_config_entry("session.x64quantprecision") == "1"


def test_cases_that_need_too_much_memory_are_left_out() -> None:
    small, large = {"x": ((2, 3), "float32")}, {"x": ((2**15, 2**14), "float32")}
    original = OnnxOriginal(Path("a"), {}, {}, [small, large])
    assert original.cases() == [small]
    assert OnnxOriginal(Path("a"), {}, {}, [{"x": ((2**14, 2**14), "float32")}]).cases()
    assert (
        OnnxOriginal(
            Path("a"), {}, {}, [{"x": ((2**14, 2**13), "f"), "y": ((2**14, 2**13), "f"), "z": ((1,), "f")}]
        ).cases()
        == []
    )


# --- versions and stored tensors -------------------------------------------------------------------------------------


def test_only_the_number_of_the_opset_changes_where_operators_are_the_same() -> None:
    plain = relu({"x": [2, 3]}, opset=13)
    with_opset(plain, 20)
    assert plain.opset_import[0].version == 20
    with_opset(plain, 17)
    assert plain.opset_import[0].version == 20
    unknown = model([helper.make_node("Sparkle", ["x"], ["y"])], {"x": [2]}, {"y": [2]}, opset=13)
    with_opset(unknown, 20)
    assert unknown.opset_import[0].version == 13
    node = helper.make_node("Softmax", ["x"], ["y"])
    other = model([node], {"x": [2, 3]}, {"y": [2, 3]}, opset=11)
    with_opset(other, 20)
    assert other.opset_import[0].version == 11
    made = upgraded(other, 22)
    assert made.opset_import[0].version > 12
    feeds = {"x": random(2, 3)}
    from onnx.reference import ReferenceEvaluator

    softmax = np.exp(feeds["x"]) / np.exp(feeds["x"]).sum(1, keepdims=True)
    np.testing.assert_allclose(ReferenceEvaluator(made).run(None, feeds)[0], softmax, rtol=1e-5)


def old_cases() -> list[NodeCase]:
    """At most four cases of each operator in each opset that is older than that of exports, of types that ONNX Runtime has there."""
    found: dict[tuple[str, int], list[NodeCase]] = {}
    for case in (*CASES, *KEPT, *(case for case, _ in REFUSED)):
        if case.opset < OPSET and not any(array.dtype in (np.float16, np.float64) for array in case.feeds.values()):
            found.setdefault((case.op, case.opset), []).append(case)
    return [case for cases in found.values() for case in cases[-4:]]


def test_a_newer_opset_leaves_what_a_model_computes_as_it_was() -> None:
    """Each model has a node of an old opset and one that is the same in all opsets, in both orders."""

    def computed(proto: onnx.ModelProto, feeds: Any) -> list[np.ndarray]:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
        return list(session.run(None, feeds))

    tried, different = 0, list[str]()
    for number, case in enumerate(old_cases()):
        proto = case.model()
        first = case.order[0] if case.order else next(iter(case.feeds))
        proto.graph.node.insert(number % 2, helper.make_node("Shape", [first], ["sizes"]))
        proto.graph.output.append(helper.make_tensor_value_info("sizes", TensorProto.INT64, None))
        before = computed(proto, dict(case.feeds))
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        try:
            made = upgraded(copy, runnable_opset())
        except UnsupportedError:
            continue
        assert made.opset_import[0].version >= OPSET
        tried += 1
        after = computed(made, dict(case.feeds))
        if not all(map(np.allclose, before, after)):
            different.append(str(case))
    assert not different
    assert tried > 30


@pytest.mark.parametrize(
    ("kind", "attributes", "opset"),
    [
        ("Softmax", {}, 11),
        ("Hardmax", {"axis": 2}, 11),
        ("Resize", {"mode": "nearest"}, 10),
        ("Resize", {"mode": "linear"}, 10),
        ("Upsample", {"mode": "linear"}, 9),
        ("Relu", {}, 12),
    ],
    ids=str,
)
def test_a_graph_inside_of_a_node_computes_what_it_did_in_its_opset(
    kind: str, attributes: dict[str, Any], opset: int, registry: Registry
) -> None:
    """The branch is the same in all opsets, the node inside of it is not."""
    resizes = kind in ("Resize", "Upsample")
    shape = [2, 3, 5, 12 if resizes else 4]
    inner = helper.make_node(kind, ["x", "factors"] if resizes else ["x"], ["a"], **attributes)
    ends = [helper.make_tensor_value_info(name, FLOAT, shape) for name in "ab"]
    branches = {
        "then_branch": helper.make_graph([inner], "then", [], ends[:1]),
        "else_branch": helper.make_graph([helper.make_node("Concat", ["x"] * (shape[3] // 4), ["b"], axis=3)], "else", [], ends[1:]),
    }  # fmt: skip
    factors = np.array([1, 1, 1, 3] if kind == "Upsample" else [1, 1, 1.01, 3], np.float32)
    proto = model(
        [helper.make_node("If", ["choice"], ["y"], **branches)], {"x": [2, 3, 5, 4]}, {"y": shape}, {"factors": factors}, opset=opset,
    )  # fmt: skip
    proto.graph.input.append(helper.make_tensor_value_info("choice", TensorProto.BOOL, [1]))
    feeds = {"x": random(2, 3, 5, 4), "choice": np.array([True])}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, feeds)
    found = imported(proto, registry)
    assert found.report.opaque == 1
    made = run_document(found.graph, registry, found.weights, feeds)
    np.testing.assert_allclose(made["y"], expected, rtol=1e-5)


def test_the_newest_opset_is_looked_for_from_above(monkeypatch: pytest.MonkeyPatch) -> None:
    newest = runnable_opset()
    for older in (newest - 1, newest - 3):
        monkeypatch.setattr(versions, "OPSET", older)
        assert runnable_opset.__wrapped__() == newest
    monkeypatch.setattr(versions, "OPSET", onnx.defs.onnx_opset_version())
    assert runnable_opset.__wrapped__() == onnx.defs.onnx_opset_version(), "no other is tried"


def test_versions_of_operators_that_mean_the_same() -> None:
    """Of every operator the versions up to opset 21: those joined by = differ in their element types only."""
    versions: dict[str, dict[int, Any]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= 21:
            versions.setdefault(schema.name, {})[schema.since_version] = schema
    lines = []
    for name, found in sorted(versions.items()):
        numbers = sorted(found)
        text = str(numbers[0])
        for before, after in pairwise(numbers):
            text += f" {'=' if _same(found[before], found[after]) else '|'} {after}"
        lines.append(f"{name}: {text}")
        assert _same(found[numbers[0]], found[numbers[0]])
        assert not _same(found[numbers[0]], None)
    check_recorded("imports/onnx_versions.txt", "\n".join([*lines, ""]))


@pytest.mark.parametrize(
    ("kind", "since"), [("Gelu", 20), ("Mish", 18), ("LayerNormalization", 17), ("Relu", 14), ("Sparkle", 1)]
)
def test_only_operators_that_are_newer_than_the_runtime_are_replaced_by_their_definition(kind: str, since: int) -> None:
    names = ["x", "s"] if kind == "LayerNormalization" else ["x"]
    inputs: dict[str, Any] = {"x": [2, 3], **({"s": [3]} if len(names) == 2 else {})}
    for opset, newest in ((since, since), (since + 1, since), (since + 1, since - 1)):
        nodes = [helper.make_node(kind, names, ["y"]), helper.make_node("Abs", ["y"], ["z"])]
        made = _expanded(model(nodes, inputs, {"z": [2, 3]}, opset=opset), newest)
        kinds = [node.op_type for node in made.graph.node]
        assert kinds[-1] == "Abs"
        assert (kinds[0] == kind) == (newest == since or kind in ("Relu", "Sparkle")), (opset, newest)


@pytest.mark.parametrize(("limit", "kept"), [(8_000, False), (12_000, False), (17_000, True)])
def test_a_file_whose_other_tensors_are_large_is_not_kept(
    limit: int, kept: bool, tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tables of indices of 8 kB each; trained weights do not count."""
    monkeypatch.setattr(origin, "MAX_ORIGIN", limit)
    weights = {"w": random(100, 100), "one": np.arange(1000), "two": np.arange(1000)[::-1].copy()}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["one", "two"], ["sum"]),
        helper.make_node("Mod", ["sum", "hundred"], ["index"]),
        helper.make_node("Gather", ["a", "index"], ["y"], axis=1),
    ]
    proto = model(nodes, {"x": [2, 100]}, {"y": [2, 1000]}, {**weights, "hundred": np.array(100)})
    found = import_onnx(saved(proto, tmp_path), registry, ImportOptions())
    assert (origin.ORIGIN in found.graph.properties) == kept
    assert (restored(found.graph, found.weights) is not None) == kept


def test_operators_with_a_definition() -> None:
    assert has_definition(op("Selu", {}))
    assert has_definition(op("Selu", {"alpha": 1.0}))
    assert not has_definition(op("Selu", {"strange": 1.0}))
    assert not has_definition(op("Conv", {}))
    assert not has_definition(op("Sparkle", {}))
    assert not has_definition(replace(op("Selu", {}), domain="com.example"))


@pytest.mark.parametrize(("opset", "fits"), [(6, False), (7, True), (20, True), (999, False)])
def test_versions_of_the_standard_operators(opset: int, fits: bool) -> None:
    proto = relu({"x": [2]}, opset=opset, domains={"com.example": 999})
    if fits:
        check_opsets(proto, Path("a.onnx"))
    else:
        with pytest.raises(DiagnosticError, match=f"uses opset {opset}"):
            check_opsets(proto, Path("a.onnx"))


@pytest.mark.parametrize(
    ("kind", "field", "per_value", "raw"),
    [
        ("FLOAT", "float_data", 1, 4), ("DOUBLE", "double_data", 1, 8), ("INT64", "int64_data", 1, 8),
        ("INT32", "int32_data", 1, 4), ("BOOL", "int32_data", 1, 1), ("FLOAT16", "int32_data", 1, 2),
        ("UINT64", "uint64_data", 1, 8), ("UINT32", "uint64_data", 1, 4), ("COMPLEX64", "float_data", 0.5, 8),
        ("INT4", "int32_data", 2, 0.5),
    ],
)  # fmt: skip
def test_the_data_of_a_tensor_has_the_size_of_its_shape(kind: str, field: str, per_value: float, raw: float) -> None:
    def tensor() -> onnx.TensorProto:
        return onnx.TensorProto(name="w", data_type=getattr(TensorProto, kind), dims=[3, 2])

    def fits(made: onnx.TensorProto) -> bool:
        try:
            check_tensor(made, Path("a.onnx"), Path())
        except DiagnosticError:
            return False
        return True

    for extra in (-1, 0, 1):
        stored = tensor()
        getattr(stored, field).extend([1] * (int(6 / per_value) + extra))
        assert fits(stored) is (extra == 0)
        stored = tensor()
        stored.raw_data = bytes(int(6 * raw) + extra)
        assert fits(stored) is (extra == 0)
    odd = tensor()
    odd.dims[:] = [3, -2]
    assert not fits(odd)


@pytest.mark.parametrize("enabled", [True, False])
def test_an_import_leaves_the_garbage_collection_as_it_was(enabled: bool, registry: Registry, tmp_path: Path) -> None:
    import gc

    (tmp_path / "bad.onnx").write_bytes(b"nonsense")
    good = saved(relu({"x": [2, 3]}), tmp_path)
    was_enabled = gc.isenabled()  # not in the process of a window
    (gc.enable if enabled else gc.disable)()
    try:
        import_onnx(good, registry, ImportOptions())
        assert gc.isenabled() is enabled
        with pytest.raises(DiagnosticError):
            import_onnx(tmp_path / "bad.onnx", registry, ImportOptions())
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_a_declared_first_size_is_the_batch_only_if_it_is_that_of_an_input() -> None:
    import onnx_ir as ir

    outputs: dict[str, list[int | str] | None] = {
        "batch": ["n", 4], "alone": ["n"], "count": ["k", 4], "fixed": [2, 4], "two": ["n", "m"], "behind": [3, "n"],
        "empty": [0, 4], "unknown": None,
    }  # fmt: skip
    proto = model([helper.make_node("Relu", ["x"], [name]) for name in outputs], {"x": ["n", "m"]}, outputs)
    ids = proto.graph.output.add()
    ids.CopyFrom(helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"]))
    text = proto.graph.output.add()
    text.CopyFrom(helper.make_tensor_value_info("text", TensorProto.STRING, [3]))
    assert _declared(ir.from_proto(proto).graph) == {
        "batch": TensorType((N, 4)),
        "alone": TensorType((N,)),
        "fixed": TensorType((2, 4)),
        "ids": TensorType((N,), DataType.INT64),
    }


def test_the_nodes_of_a_graph_are_those_of_all_graphs_inside_too() -> None:
    def body(name: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
        return helper.make_graph([helper.make_node("Relu", ["x"], [name]), *nodes], name, [], [])

    innermost = helper.make_node("If", ["c"], ["i"], then_branch=body("a"), else_branch=body("b"))
    around = helper.make_node("Loop", ["n", "c"], ["l"], body=body("loop", innermost))
    many = helper.make_node("Scan", ["x"], ["s"])
    many.attribute.append(helper.make_attribute("graphs", [body("first"), body("second")]))
    found = _nodes(helper.make_graph([around, many], "g", [], []))
    assert sorted(node.output[0] for node in found) == ["a", "b", "first", "i", "l", "loop", "s", "second"]


# --- the two attempts of an import -------------------------------------------------------------------------------------


def attempt(opaque: int, title: str) -> Imported:
    report = ImportReport("file.onnx", opaque=opaque, warnings=("first",))
    return Imported(Graph([], name=title), Weights({}), report)


NOTE = "the document has a batch of 1: layers of the library cannot express some nodes for other batches"


@pytest.mark.parametrize(
    ("shape", "opened", "fixed", "expected"),
    [
        (["n", 3], 0, 0, "open"),
        (["n", 3], 2, 1, "fixed"),
        (["n", 3], 1, 1, "open"),
        (["n", 3], 1, 2, "open"),
        (["n", 3], None, 4, "fixed"),
        (["n", 3], 4, None, "open"),
        (["n", 3], None, None, "error of open"),
        ([2, 3], 2, 1, "open"),
        ([2, 3], None, 1, "error of open"),
        ([1, 3, 8, 8], 2, 1, "fixed"),
        ([2, 3, 8, 8], 2, 1, "open"),
        ([1, 3, 8], 2, 1, "open"),
    ],
)
def test_a_batch_of_any_size_is_kept_unless_it_costs_layers(
    shape: list[int | str],
    opened: int | None,
    fixed: int | None,
    expected: str,
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`opened` and `fixed` are the opaque layers of the import with a batch of any size and of 1; None if it fails."""

    def attempted(*_: Any, open_batch: bool) -> Imported | DiagnosticError:
        title, opaque = ("open", opened) if open_batch else ("fixed", fixed)
        return attempt(opaque, title) if opaque is not None else DiagnosticError.of("bad-onnx", f"error of {title}")

    monkeypatch.setattr(importing, "_attempt", attempted)
    if expected.startswith("error"):
        with pytest.raises(DiagnosticError, match=expected):
            imported(relu({"x": shape}), registry)
        return
    found = imported(relu({"x": shape}), registry)
    assert found.graph.name == expected
    assert found.report.warnings == (("first", NOTE) if expected == "fixed" else ("first",))


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ShapeError("no shape"), "no shape"), (ParamError("no value"), "no value"), (KeyError("x"), "'x'"), (ValueError("y" * 400), "y" * 300)],
    ids=["shape", "parameter", "key", "value"],
)  # fmt: skip
def test_what_fails_unexpectedly_is_a_reason_why_the_file_is_not_imported(
    error: Exception, reason: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Imported:
        raise error

    monkeypatch.setattr(importing, "_imported", failing)
    with pytest.raises(DiagnosticError) as caught:
        imported(relu({"x": [2, 3]}), registry)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.file) == (
        "bad-onnx",
        f"file.onnx cannot be imported: {reason}",
        "file.onnx",
    )


def test_a_node_that_cannot_be_kept_is_named_by_its_output_if_it_has_no_name(registry: Registry) -> None:
    def message(name: str) -> str:
        proto = model([helper.make_node("Relu", ["nowhere"], ["y"], name=name)], {"x": [2]}, {"y": [2]})
        with pytest.raises(DiagnosticError) as caught:
            imported(proto, registry)
        (found,) = caught.value.diagnostics
        assert (found.code, found.file) == ("onnx-node", "file.onnx")
        return found.message

    assert message("sharp").startswith("file.onnx: the node 'sharp' (Relu) cannot be imported: ")
    assert message("").startswith("file.onnx: the node 'y' (Relu) cannot be imported: ")


@pytest.mark.parametrize(
    ("sizes", "message", "remedy"),
    [
        ({"z": (1, 2)}, "file.onnx has no input 'z'", "choose x, y"),
        ({"w": (3,)}, "file.onnx has no input 'w'", "choose x, y"),
        (
            {"x": (1, 4, 5)}, "file.onnx has the input 'x' of the shape n x 3 x ?, which cannot be 1 x 4 x 5",
            "choose sizes only for dimensions that the file leaves open",
        ),
        (
            {"y": (2, 3)}, "file.onnx has the input 'y' of the shape 7, which cannot be 2 x 3",
            "choose sizes only for dimensions that the file leaves open",
        ),
    ],
)  # fmt: skip
def test_sizes_that_do_not_fit_are_refused_with_what_does(
    sizes: dict[str, tuple[int, ...]], message: str, remedy: str
) -> None:
    """Stored tensors are among the inputs of old files; the first axis is the batch."""
    nodes = [helper.make_node("Add", ["y", "w"], ["a"]), helper.make_node("Relu", ["x"], ["b"])]
    proto = model(nodes, {"x": ["n", 3, None], "y": [7], "w": [7]}, {"a": [7]}, {"w": random(7)})
    with pytest.raises(DiagnosticError) as caught:
        importing._check_sizes(proto, Path("file.onnx"), sizes)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.remedy) == ("onnx-input", message, remedy)
    importing._check_sizes(proto, Path("file.onnx"), {"x": (5, 3, 9), "y": (8,), "": (1, 2, 3, 4)})


def test_without_inputs_there_is_nothing_to_choose() -> None:
    proto = model([helper.make_node("Relu", ["w"], ["y"])], {}, {"y": [2]}, {"w": random(2)})
    with pytest.raises(DiagnosticError) as caught:
        importing._check_sizes(proto, Path("file.onnx"), {"x": (2,)})
    assert caught.value.diagnostics[0].remedy == "choose -"


def test_progress_is_reported_every_256_nodes_with_the_name_of_the_next(registry: Registry) -> None:
    nodes = [
        helper.make_node("Neg", [f"v{number}"], [f"v{number + 1}"], name=f"node {number}") for number in range(520)
    ]
    seen: list[tuple[int, int, str]] = []
    options = ImportOptions(progress=lambda done, total, text: seen.append((done, total, text)))
    import_proto(model(nodes, {"v0": [2]}, {"v520": [2]}), Path("file.onnx"), registry, options)
    assert seen == [(0, 520, "node 0"), (256, 520, "node 256"), (512, 520, "node 512")]


def test_a_progress_that_raises_cancels_the_import(registry: Registry) -> None:
    class CancelledError(Exception):
        pass

    def cancel(*_: Any) -> None:
        raise CancelledError

    with pytest.raises(CancelledError):
        import_proto(relu({"x": [2]}), Path("file.onnx"), registry, ImportOptions(progress=cancel))


@pytest.mark.parametrize(
    ("shape", "type", "params"),
    [
        ([1, 1, 1, 65536], "input", {"dims": "65536x1x1", "batch": None}),
        ([1, 1, 65537, 1], "tensor_input", {"shape": "1,65537,1", "batch": "true"}),
        ([2, 3, 4, 5], "tensor_input", {"shape": "2,3,4,5", "batch": "false"}),
        (["n", 3, 4], "tensor_input", {"shape": "3,4", "batch": "true"}),
        ([1, 3], "tensor_input", {"shape": "1,3", "batch": "false"}),
    ],
)
def test_inputs_are_images_if_an_image_can_have_their_shape(
    shape: list[int | str], type: str, params: dict[str, str | None], registry: Registry
) -> None:
    layer = imported(relu({"x": shape}), registry).graph["x"]
    defaults = {"batch": {"input": None, "tensor_input": "true"}[type]}
    assert layer.type == type
    assert {name: layer.params.get(name, defaults.get(name)) for name in params} == params


def test_a_batch_that_was_opened_stays_opened_where_another_input_has_one_too(registry: Registry) -> None:
    """A squeeze of all axes would remove the batch of 1 of the file."""
    for order in (["a", "b"], ["b", "a"]):
        shapes: dict[str, list[int | str]] = {"a": [1, 1, 6, 8], "b": ["n", 3]}
        nodes = [helper.make_node("Squeeze", ["a"], ["y"]), helper.make_node("Relu", ["b"], ["z"])]
        proto = model(nodes, {name: shapes[name] for name in order}, {"y": None, "z": None})
        found = imported(proto, registry)
        assert found.report.opaque == 0
        assert found.report.warnings == (NOTE,)
        assert found.graph["a"].params["batch"] == "1"


def test_an_input_without_elements_keeps_its_type(registry: Registry) -> None:
    proto = relu({"x": ["n", 3]})
    proto.graph.input.append(helper.make_tensor_value_info("none", TensorProto.INT64, ["n", 0]))
    original = imported(proto, registry).original
    assert isinstance(original, OnnxOriginal)
    assert {name: (array.shape, str(array.dtype)) for name, array in original.empty.items()} == {
        "none": ((0, 0), "int64")
    }
    assert dict(original.inputs) == {"x": "x"}


def test_what_is_warned_about_in_a_file() -> None:
    import onnx_ir as ir

    def warnings(proto: onnx.ModelProto) -> list[str]:
        return list(importing._warnings(ir.from_proto(proto)))

    large = "an input has more than 2^30 elements"
    assert warnings(relu({"x": [2**15, 2**15]})) == []
    assert warnings(relu({"x": [2, 3], "y": [2**15, 2**15 + 1]})) == [large]
    assert warnings(relu({"x": ["n", 2**31]})) == []
    shuffle = helper.make_node("SpaceToDepth", ["x"], ["y"], blocksize=2)
    for producer, count in (("pytorch", 1), ("PyTorch", 0), ("", 0)):
        found = warnings(model([shuffle], {"x": [1, 1, 4, 4]}, {"y": None}, producer=producer))
        assert len(found) == count
        assert all("pytorch#186080" in text for text in found)
    known = ["", "ai.onnx", "ai.onnx.ml", "com.microsoft"]
    nodes = [
        helper.make_node("Relu", ["x"], [f"y{number}"], domain=name)
        for number, name in enumerate([*known, "b", "a", "b"])
    ]
    proto = model(nodes, {"x": [2]}, {"y0": [2]}, domains=dict.fromkeys([*known[1:], "a", "b"], 1))
    rule = "its operators are preserved, but run only where ONNX Runtime has them"
    assert warnings(proto) == [f"the domain '{name}' is unknown: {rule}" for name in "ab"]


# --- values that are known ------------------------------------------------------------------------------------------


def test_a_constant_that_a_failed_attempt_made_a_layer_of_is_one_again(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def converter(c: Any, op: OnnxOp) -> None:
        c.add("element_wise", op.inputs, {"operation": "add"})
        raise UnsupportedError("no")

    monkeypatch.setitem(importing.CONVERTERS, ("", "Sum"), converter)
    proto = model([helper.make_node("Sum", ["x", "w"], ["y"])], {"x": [2, 3]}, {"y": [2, 3]}, {"w": random(3)})
    found = imported(proto, registry)
    assert {layer.name: [str(source) for source in layer.inputs] for layer in found.graph} == {
        "x": [], "w": [], "sum_": ["x", "w"], "y": ["sum_"],
    }  # fmt: skip


def test_weights_of_another_precision_are_not_rounded(registry: Registry) -> None:
    weight = random(3, 4).astype(np.float64)
    proto = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [2, 3]}, {"y": [2, 4]}, {"w": weight})
    for entry in (*proto.graph.input, *proto.graph.output):
        entry.type.tensor_type.elem_type = TensorProto.DOUBLE
    (outcome,) = imported(proto, registry).report.outcomes
    assert outcome.reason == "'w' is float64, but weights are float32"


@pytest.mark.parametrize("limit", [len("1,2,3"), len("1,2,3") - 1])
def test_a_constant_with_too_much_text_is_refused(
    limit: int, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "MAX_TEXT", limit)
    proto = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [3]}, {"y": [3]}, {"w": np.array([1, 2, 3])})
    for entry in (*proto.graph.input, *proto.graph.output):
        entry.type.tensor_type.elem_type = TensorProto.INT64
    (outcome,) = imported(proto, registry).report.outcomes
    expected = "" if limit == 5 else "'w' has 3 elements of type int64, too many for a parameter"
    assert outcome.reason == expected


@pytest.mark.parametrize(
    ("array", "numbers"),
    [
        (np.array([0.1, 0.1], np.float32), "0.1"),
        (np.array([0.1, 0.2], np.float32), "0.1,0.2"),
        (np.array([0.0, -0.0], np.float32), "0.0,-0.0"),
        (np.array([-0.0, -0.0], np.float32), "-0.0,-0.0"),
        (np.array([0, 0], np.int64), "0"),
        (np.array([True, False]), "1,0"),
        (np.array([True, True]), "1"),
        (np.array([7], np.uint8), "7"),
        (np.array(2.5, np.float64), "2.5"),
        (np.array([1e-30, 3e30], np.float32), "1e-30,3e+30"),
        (np.array([0.5, 1.5], np.float16), "0.5,1.5"),
    ],
)
def test_the_numbers_of_a_constant(array: np.ndarray, numbers: str, registry: Registry) -> None:
    from designer.importers.builder import GraphBuilder

    c = conversion.Conversion(GraphBuilder(registry), 20)
    source = c._constant_layer("net/value.1", array)
    layer = c.builder.layers[source.layer]
    params = dict(registry.read(layer).operator.texts())  # type: ignore[union-attr]
    assert layer.name == "value_1"
    assert (params["numbers"], params["dtype"]) == (numbers, str(array.dtype))
    assert params["shape"] == ",".join(map(str, array.shape))


@pytest.mark.parametrize(("size", "source"), [(15, "numbers"), (16, "numbers"), (17, "weights")])
def test_large_constants_of_floats_are_weights(size: int, source: str, registry: Registry) -> None:
    from designer.importers.builder import GraphBuilder

    c = conversion.Conversion(GraphBuilder(registry), 20)
    layer = c.builder.layers[c._constant_layer("w", np.arange(size, dtype=np.float32)).layer]
    assert layer.params.get("source", "numbers") == source
    assert len(c.builder.weights) == (source == "weights")
    integers = c.builder.layers[c._constant_layer("w", np.arange(size)).layer]
    assert integers.params["numbers"] == ",".join(map(str, range(size)))


# --- what is kept in documents and layers ---------------------------------------------------------------------------


def test_a_pattern_is_named_after_its_last_node_and_has_its_nodes_in_order() -> None:
    import onnx_ir as ir

    from designer.importers.onnx.patterns import find_patterns

    nodes = [
        helper.make_node("Erf", ["d"], ["e"], name="/gelu/inner/Erf"),
        helper.make_node("Mul", ["x", "half"], ["h"], name="/gelu/Half"),
        helper.make_node("Add", ["e", "one"], ["a"], name="/gelu/One"),
        helper.make_node("Mul", ["h", "a"], ["y"], name="/outer/gelu/Last"),
        helper.make_node("Div", ["x", "root"], ["d"], name="/gelu/first/Div"),
    ]
    weights = {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}
    proto = model(nodes, {"x": [2]}, {"y": [2]}, {name: np.asarray(value) for name, value in weights.items()})
    graph = ir.from_proto(proto).graph
    graph.sort()
    found = find_patterns(graph).replaced
    order = [node.name for node in graph]
    ops = {node.name: found.get(id(node), "absent") for node in graph}
    assert {name: item for name, item in ops.items() if name != "/outer/gelu/Last"} == dict.fromkeys(
        name for name in order if name != "/outer/gelu/Last"
    )
    gelu = ops["/outer/gelu/Last"]
    assert isinstance(gelu, OnnxOp)
    assert (gelu.name, gelu.op_type, gelu.domain, gelu.opset) == ("/outer/gelu/Last", "Gelu", "layerwright", 1)
    assert (gelu.inputs, gelu.outputs, dict(gelu.attributes)) == (("x",), ("y",), {"approximate": "none"})
    assert gelu.scope == ("outer", "gelu")
    assert [node.name for node in gelu.nodes] == order


def test_a_mean_that_drops_its_axis_is_not_that_of_a_layer_normalization(registry: Registry, tmp_path: Path) -> None:
    proto = norm(keep=0)
    for dim in proto.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_value = 5
    found = import_onnx(saved(proto, tmp_path), registry, ImportOptions()).verified(registry)
    assert "layer_normalization" not in layers(found)
    assert found.report.agrees
    assert found.report.max_rel_difference is not None


def test_an_opaque_layer_has_as_many_inputs_as_it_may(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    node = helper.make_node("Join", ["a", "b", "c"], ["y"], name="join", domain="own")
    proto = model([node], {"a": [2], "b": [2], "c": [2]}, {"y": [2]}, domains={"own": 1})
    monkeypatch.setattr(opaque, "MAX_INPUTS", 3)
    assert imported(proto, registry).report.opaque == 1
    monkeypatch.setattr(opaque, "MAX_INPUTS", 2)
    with pytest.raises(DiagnosticError, match="it has 3 inputs, an opaque layer at most 2"):
        imported(proto, registry)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [([], ()), ([2, 3], (2, 3)), (["N", 3], (N, 3)), (["M", 3], None), ([0, 3], None), ([None, 3], None), (None, None)],
)
def test_the_shape_of_a_kept_node_is_known_or_of_the_batch(
    shape: list[int | str | None] | None, expected: tuple[Any, ...] | None
) -> None:
    entry = helper.make_tensor_value_info("x", FLOAT, shape)
    assert opaque._shape(entry.type.tensor_type) == expected


def test_sizes_of_a_node_that_reads_images_of_two_sizes_are_fixed() -> None:
    def texts(first: list[int], second: list[int], made: tuple[int, ...]) -> list[str]:
        node = helper.make_node("Add", ["a", "b"], ["y"])
        entries = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in (("a", first), ("b", second))]
        ends = [helper.make_empty_tensor_value_info("y")]
        graph = helper.make_graph([node], "g", entries, ends)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        return opaque._open_texts(proto, op("Add", {}), [TensorType(made)])

    assert texts([1, 3, 8, 6], [1, 3, 8, 6], (1, 3, 8, 6)) == ["1 x 3 x H x W"]
    assert texts([1, 3, 8, 6], [1, 3, 1, 1], (1, 3, 8, 6)) == ["1 x 3 x 8 x 6"]
    assert texts([1, 3, 8, 6], [8, 6], (1, 3, 8, 6)) == ["1 x 3 x 8 x 6"], "it does not run at other sizes"
    assert texts([8, 6], [8, 6], (8, 6)) == ["8 x 6"]


def test_a_definition_of_many_nodes_becomes_layers(registry: Registry) -> None:
    """The definition of this operator has more than 50 nodes, most of which depend on sizes only."""
    node = helper.make_node("CenterCropPad", ["x", "size"], ["y"], name="/net/crop/Center", axes=[2, 3])
    proto = model([node], {"x": [1, 3, 6, 9]}, {"y": None}, {"size": np.array([4, 12])})
    found = imported(proto, registry)
    assert [item.outcome for item in found.report.outcomes] == ["known"]
    x = random(1, 3, 6, 9)
    made = run_document(found.graph, registry, found.weights, {"x": x})
    expected = np.pad(x[:, :, 1:5], ((0, 0), (0, 0), (0, 0), (1, 2)))
    np.testing.assert_array_equal(made["y"], expected)


def test_the_key_of_a_weight_is_that_of_its_layer_also_in_an_instance() -> None:
    assert origin._key("conv.kernel") == WeightKey("conv", "kernel")
    assert origin._key("stage_0.block.conv.kernel") == WeightKey("stage_0.block.conv", "kernel")
    assert origin._key("") is None
    assert origin._key("kernel") is None


def test_only_tensors_that_were_marked_are_filled_in() -> None:
    weights = Weights({WeightKey("fc", "kernel"): random(2, 3)})

    def filled(**entries: str) -> onnx.TensorProto | None:
        tensor = onnx.TensorProto(name="w", data_type=FLOAT, dims=[3, 2], data_location=TensorProto.EXTERNAL)
        for key, text in {
            "location": origin.LOCATION,
            "layer": "fc",
            "tensor": "kernel",
            "way": "same",
            **entries,
        }.items():
            tensor.external_data.add(key=key, value=text)
        return tensor if origin._fill(tensor, weights) else None

    plain, turned = filled(), filled(way="transposed")
    assert plain is not None
    assert turned is not None
    np.testing.assert_array_equal(numpy_helper.to_array(plain), random(2, 3).reshape(3, 2))
    np.testing.assert_array_equal(numpy_helper.to_array(turned), random(2, 3).T)
    assert plain.data_location == TensorProto.DEFAULT
    assert not plain.external_data
    assert filled(location="data.bin") is None
    assert filled(layer="gone") is None
    assert filled(tensor="bias") is None


@pytest.mark.parametrize("field", ["raw_data", "float_data"])
def test_the_kept_file_has_no_values_of_weights_and_large_tables(
    field: str, registry: Registry, tmp_path: Path
) -> None:
    """Indices of 240 kB are kept; 40 kB of weights are not, however they are stored."""
    proto = model(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Gather", ["a", "index"], ["y"], axis=1)],
        {"x": [2, 100]}, {"y": None}, {"w": random(100, 100), "index": np.arange(30_000) % 100},
    )  # fmt: skip
    weight = proto.graph.initializer[0]
    if field == "float_data":
        weight.ClearField("raw_data")
        weight.float_data.extend(random(100, 100).reshape(-1).tolist())
    found = import_onnx(saved(proto, tmp_path), registry, ImportOptions())
    assert len(found.graph.properties[origin.ORIGIN]) < 20_000
    again = restored(found.graph, found.weights)
    assert again is not None
    for tensor, before in zip(again.graph.initializer, proto.graph.initializer, strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), numpy_helper.to_array(before))
    for name in ("raw_data", "float_data", "external_data"):
        weight.ClearField(name)
        again.graph.initializer[0].ClearField(name)
    again.graph.initializer[0].ClearField("data_location")
    assert again == proto


@pytest.mark.parametrize(("limit", "kept"), [(7_999, False), (20_000, True)])
def test_a_large_table_in_another_file_counts_before_it_is_read(
    limit: int, kept: bool, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origin, "MAX_ORIGIN", limit)
    proto = model(
        [helper.make_node("Gather", ["x", "index"], ["y"], axis=1)],
        {"x": [2, 100]},
        {"y": None},
        {"index": np.arange(2000) % 100},
    )
    onnx.save_model(proto, tmp_path / "a.onnx", save_as_external_data=True, location="data.bin", size_threshold=0)
    read: list[str] = []
    load = onnx.external_data_helper.load_external_data_for_tensor

    def loading(tensor: onnx.TensorProto, folder: str) -> None:
        read.append(tensor.name)
        load(tensor, folder)

    monkeypatch.setattr(onnx.external_data_helper, "load_external_data_for_tensor", loading)
    found = import_onnx(tmp_path / "a.onnx", registry, ImportOptions())
    assert (origin.ORIGIN in found.graph.properties) is kept
    assert read == (["index"] if kept else [])
    if kept:
        assert restored(found.graph, found.weights) == onnx.load(tmp_path / "a.onnx")  # with its data inside


def test_a_kept_node_computes_the_sizes_of_the_batch_that_it_reads(registry: Registry) -> None:
    """No tensor of the document has the sizes with the batch: their nodes are kept inside, in running order."""
    import onnx_ir as ir

    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], name="shape"),
        helper.make_node("Gather", ["shape", "zero"], ["n"], name="first"),
        helper.make_node("Concat", ["n", "two"], ["wide"], axis=0, name="sizes"),
        helper.make_node("Expand", ["row", "wide"], ["y"], name="expand"),
    ]
    weights = {"zero": np.array([0]), "two": np.array([2, 3]), "row": random(1, 2, 1)}
    proto = model(nodes, {"x": ["N", 3]}, {"y": ["N", 2, 3]}, weights)
    path = Path("file.onnx")
    found = importing._attempt(ir.from_proto(proto), path, registry, ImportOptions(), open_batch=True)
    assert isinstance(found, Imported)
    (layer,) = (layer for layer in found.graph if layer.type == "opaque")
    assert [str(source) for source in layer.inputs] == ["x", "row"]
    assert layer.params["shapes"] == "N x 2 x 3"
    inside = onnx.load_from_string(unpacked(layer.params["model"])).graph
    assert [node.name for node in inside.node] == ["shape", "first", "sizes", "expand"]
    assert sorted(tensor.name for tensor in inside.initializer) == ["two", "zero"]
    outcomes = {item.node: item.layers for item in found.report.outcomes}
    assert outcomes["expand"] == (layer.name,)
    made = run_document(found.graph, registry, found.weights, {"x": random(4, 3)})
    np.testing.assert_array_equal(made["y"], np.broadcast_to(weights["row"], (4, 2, 3)))


def test_why_a_node_is_not_valid_is_the_last_line_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnx import shape_inference

    def infer_shapes(*_: Any, **__: Any) -> None:
        raise shape_inference.InferenceError(f"around\nnode\n{'x' * 300} \n")

    monkeypatch.setattr(shape_inference, "infer_shapes", infer_shapes)
    with pytest.raises(UnsupportedError) as caught:
        opaque._types(onnx.ModelProto(), op("Det", {}), {})
    assert str(caught.value) == f"Det is not valid: {'x' * 200}"


def test_a_kept_node_that_is_newer_than_exports_keeps_its_opset(registry: Registry) -> None:
    """Attributes as text would be those of the opset of exports, which does not have the operator."""
    node = helper.make_node("TensorScatter", ["past", "new"], ["y"], name="scatter", axis=1, mode="linear")
    proto = model([node], {"past": [2, 5, 3], "new": [2, 2, 3]}, {"y": [2, 5, 3]}, opset=24)
    found = imported(proto, registry)
    (layer,) = (layer for layer in found.graph if layer.type == "opaque")
    assert "attributes" not in layer.params or not layer.params["attributes"]
    kept = onnx.load_from_string(unpacked(layer.params["model"]))
    assert [(entry.domain, entry.version) for entry in kept.opset_import] == [("", 24)]
    assert kept.graph.node[0].op_type == "TensorScatter"


# --- states of recurrent layers that follow the batch ----------------------------------------------------------------


def started(kind: str, start: float) -> onnx.ModelProto:
    """A recurrent layer of any batch whose first state is made as exporters write it."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["batch"], axis=0),
        helper.make_node("Concat", ["one", "batch", "five"], ["sizes"], axis=0),
        helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
        helper.make_node("LSTM", ["steps", "w", "r", "", "", "state", "state"], ["made"], name="rnn", hidden_size=5),
        helper.make_node("Squeeze", ["made", "one"], ["rows"]),
        helper.make_node("Transpose", ["rows"], ["y"], perm=[1, 0, 2]),
    ]
    filled = numpy_helper.from_array(np.array([start], np.float32))
    if kind == "filled":
        nodes.insert(3, helper.make_node("ConstantOfShape", ["sizes"], ["state"], value=filled))
    else:
        nodes.insert(3, helper.make_node("Expand", ["start", "sizes"], ["wide"]))
        nodes.insert(4, helper.make_node("Identity", ["wide"], ["state"]))
    numbers = {"first": np.array([0]), "one": np.array([1]), "five": np.array([5])}
    weights = {"w": random(1, 20, 4), "r": random(1, 20, 5), "start": np.full((1, 1, 5), start, np.float32), **numbers}
    return model(nodes, {"x": ["n", 6, 4]}, {"y": None}, weights, opset=17)


@pytest.mark.parametrize("start", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["filled", "expanded"])
def test_a_state_that_follows_the_batch_may_only_be_zero(
    kind: str, start: float, registry: Registry, tmp_path: Path
) -> None:
    found = import_onnx(saved(started(kind, start), tmp_path), registry, ImportOptions()).verified(registry)
    assert ("lstm" in layers(found)) == (start == 0)
    reasons = {item.type: item.reason for item in found.report.outcomes if item.outcome == "opaque"}
    assert reasons == ({} if start == 0 else {"LSTM": "it has an initial state"})
    assert found.report.agrees
    if start == 0:
        assert len({case.inputs["x"][0] for case in found.report.cases}) == 2, "the batch is fixed"


def test_the_newest_opset_is_that_of_the_last_model_that_the_runtime_loads() -> None:
    def loads(version: int) -> bool:
        entries = [helper.make_tensor_value_info(name, FLOAT, [1]) for name in "xy"]
        graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "probe", entries[:1], entries[1:])
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception:
            return False
        return True

    versions = range(OPSET, onnx.defs.onnx_opset_version() + 1)
    assert runnable_opset() == max(version for version in versions if loads(version))


@pytest.mark.parametrize(
    ("result", "body", "layer"),
    [
        ("float[1,3,H,W]", "f = Cast<to=1>(h)  y = Mul(x, f)", "f"),
        ("float[1,3,S]", "hw = Mul(h, w)  t = Concat<axis=0>(c, hw)  y = Reshape(x, t)", "reshape"),
    ],
    ids=["other values", "it does not run"],
)
def test_layers_with_values_from_sizes_that_the_file_leaves_open_are_named(
    result: str, body: str, layer: str, tmp_path: Path, registry: Registry
) -> None:
    sizes = "c = Shape<start=0, end=2>(x)  h = Shape<start=2, end=3>(x)  w = Shape<start=3, end=4>(x)"
    text = f'<ir_version: 9, opset_import: ["" : 19]> g (float[1,3,H,W] x) => ({result} y) {{ {sizes}  {body} }}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "a.onnx")
    found = import_onnx(tmp_path / "a.onnx", registry, ImportOptions({"x": (1, 3, 8, 8)})).verified(registry).report
    assert found.max_abs_difference == 0.0
    assert found.size_note == (
        f"the document is right only for inputs of 1 x 3 x 8 x 8: the original computes values of '{layer}' from the size; "
        "import it again for another size"
    )
