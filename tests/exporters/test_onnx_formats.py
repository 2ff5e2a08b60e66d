"""Strongly typed ONNX models: every operator in half precision passes the checker and runs in ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from operator_oracles import COMPUTE, LAYER, Case, network, random_inputs, randomise, runner, weights_of

from designer.graph.diagnostics import DiagnosticError
from designer.runtime.api import Part
from designer.runtime.engines.onnx_model import build_model
from designer.runtime.number_formats import BFLOAT16, FLOAT16, FLOAT32, NumberFormat
from exporters.onnx_formats import FormattedModel, with_formats

NOT_IN_ONNX_RUNTIME = {"scatter-1-sums"}  # it has no kernel that adds float16
CASES = [case for case in COMPUTE if "onnx" not in case.subject.exceptions]


def typed(model: Any, formats: dict[str, NumberFormat], otherwise: NumberFormat = FLOAT32) -> FormattedModel:
    found = with_formats(model, lambda layer: formats.get(layer, otherwise))
    onnx.checker.check_model(found.model, full_check=True)
    return found


def outputs(model: Any, feeds: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_operator_runs_in_half_precision(case: Case) -> None:
    net = network(case)
    module = runner(case, net=net)
    randomise(module)
    try:
        model = build_model(net.inference, Part((LAYER,), net.feeds), net.outputs, weights_of(module))
    except DiagnosticError as error:
        pytest.skip(error.diagnostics[0].message)
    feeds = dict(zip([str(feed) for feed in net.feeds], [t.numpy() for t in random_inputs(case.types, 2)], strict=True))
    expected = outputs(model, feeds)
    for target in (FLOAT16, BFLOAT16):
        found = typed(model, {LAYER: target}).model
        if case.name in NOT_IN_ONNX_RUNTIME and target is FLOAT16:
            continue
        for one, other in zip(expected, outputs(found, feeds), strict=True):
            assert one.dtype == other.dtype
            assert one.shape == other.shape


def two_layers() -> Any:
    """float x -> a (times 3) -> b (plus a constant) -> y."""
    nodes = [
        helper.make_node("Mul", ["x", "a/factor"], ["a"], name="a/Mul"),
        helper.make_node("Add", ["a", "b/shift"], ["b"], name="b/Add"),
        helper.make_node("Add", ["b", "a"], ["y"], name="y/Add"),
    ]
    constants = [
        numpy_helper.from_array(np.array([3.0, 1e-9, 0.1], np.float32), "a/factor"),
        numpy_helper.from_array(np.float32(1e-12), "b/shift"),
    ]
    entries = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "two", entries[:1], entries[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def test_casts_are_where_formats_meet_and_once_for_all_readers() -> None:
    found = typed(two_layers(), {"a": FLOAT16, "y": FLOAT32, "b": FLOAT32})
    assert [node.op_type for node in found.model.graph.node] == ["Cast", "Mul", "Cast", "Add", "Add"]
    assert found.casts == 2
    stored = {tensor.name: tensor.data_type for tensor in found.model.graph.initializer}
    assert stored == {"a/factor/float16": TensorProto.FLOAT16, "b/shift": TensorProto.FLOAT}
    assert not found.in_float32


def test_results_are_rounded_to_the_format() -> None:
    x = np.array([[1.0, 1.0, 1 / 3]], np.float32)
    (found,) = outputs(typed(two_layers(), {}, FLOAT16).model, {"x": x})
    half = x.astype(np.float16) * np.array([3, 1e-9, 0.1], np.float32).astype(np.float16)
    assert np.allclose(found, (half + half).astype(np.float32), rtol=0, atol=1e-6)  # it skips some casts
    (brain,) = outputs(typed(two_layers(), {"a": BFLOAT16}).model, {"x": x})
    product = torch.tensor(x).bfloat16() * torch.tensor([3, 1e-9, 0.1]).bfloat16()
    assert np.array_equal(brain, (product.float() + 1e-12 + product.float()).numpy())


def test_a_node_with_a_constant_that_the_format_loses_computes_in_float32() -> None:
    found = typed(two_layers(), {}, FLOAT16)
    assert found.in_float32 == ("b",)  # 1e-12 would be 0
    stored = {tensor.name: tensor.data_type for tensor in found.model.graph.initializer}
    assert stored["b/shift"] == TensorProto.FLOAT


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize(
    ("value", "lost"),
    [
        (1e-12, True),
        (-1e-12, True),
        (1e6, True),
        (-1e6, True),
        (65504.0, False),
        (0.0, False),
        (np.inf, False),
        (0.5, False),
    ],
)
def test_only_a_single_finite_number_beyond_the_format_keeps_a_node_in_float32(shape, value, lost) -> None:
    model = two_layers()
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.full(shape, value, np.float32), "b/shift"))
    found = typed(model, {}, FLOAT16)
    assert found.in_float32 == (("b",) if lost else ())
    stored = {tensor.name for tensor in found.model.graph.initializer}
    assert stored == {"a/factor/float16", "b/shift" if lost else "b/shift/float16"}
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.full(3, value, np.float32), "b/shift"))
    assert not typed(model, {}, FLOAT16).in_float32


def test_a_constant_behind_an_identity_is_stored_in_the_format_of_its_layer() -> None:
    model = two_layers()
    model.graph.node[0].input[1] = "factor"
    model.graph.node.insert(0, helper.make_node("Identity", ["a/factor"], ["factor"], name="a/Identity"))
    found = typed(model, {"a": FLOAT16})
    assert [node.op_type for node in found.model.graph.node] == ["Identity", "Cast", "Mul", "Cast", "Add", "Add"]
    stored = {tensor.name: tensor.data_type for tensor in found.model.graph.initializer}
    assert stored == {"a/factor/float16": TensorProto.FLOAT16, "b/shift": TensorProto.FLOAT}


def test_an_identity_has_the_format_of_what_it_passes_on() -> None:
    model = two_layers()
    model.graph.node[2].input[1] = "passed"
    model.graph.node.insert(2, helper.make_node("Identity", ["a"], ["passed"], name="passed/Identity"))
    found = typed(model, {"a": FLOAT16})
    assert [node.op_type for node in found.model.graph.node] == [
        "Cast",
        "Mul",
        "Cast",
        "Add",
        "Identity",
        "Cast",
        "Add",
    ]


def test_a_graph_inside_a_node_reads_float32() -> None:
    branch = [
        helper.make_graph(
            [helper.make_node(op, ["a"], [f"{op}/made"], name=f"if/{op}")],
            op,
            [],
            [helper.make_tensor_value_info(f"{op}/made", TensorProto.FLOAT, ["N", 3])],
        )
        for op in ("Relu", "Neg")
    ]
    model = two_layers()
    del model.graph.node[1:]
    model.graph.node.append(
        helper.make_node("If", ["condition"], ["y"], name="if/If", then_branch=branch[0], else_branch=branch[1])
    )
    model.graph.initializer.append(numpy_helper.from_array(np.array(False), "condition"))
    found = typed(model, {}, FLOAT16)
    (made,) = outputs(found.model, {"x": np.ones((1, 3), np.float32)})
    assert made.ravel()[0] == -3
    assert model.graph.node[1].attribute[0].g.node[0].input[0] == "a"  # the argument is not changed


@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_graphs_inside_of_graphs_read_float32_of_all_levels(condition, inner) -> None:
    def choice(name: str, one: list[Any], other: list[Any], constants: list[Any]) -> Any:
        sides = [
            helper.make_graph(
                nodes, side, [], [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, ["N", 3])], kept
            )
            for side, nodes, kept in ((f"{name}/then", one, constants), (f"{name}/else", other, []))
        ]
        flag = "inner" if name == "if/deep" else "condition"
        return helper.make_node("If", [flag], [f"{name}/made"], name=name, then_branch=sides[0], else_branch=sides[1])

    deep = choice(
        "if/deep",
        [helper.make_node("Mul", ["a", "scaled"], ["deep/one"], name="if/one")],
        [helper.make_node("Sub", ["scaled", "offset"], ["deep/two"], name="if/two")],
        [],
    )
    half = numpy_helper.from_array(np.float32(0.5), "half")
    scaled = helper.make_node("Mul", ["a", "half"], ["scaled"], name="if/scaled")
    end = helper.make_node("Add", ["if/deep/made", "b"], ["then/end"], name="if/end")
    outer = choice(
        "if", [scaled, deep, end], [helper.make_node("Add", ["offset", "b"], ["else/end"], name="if/x")], [half]
    )
    model = two_layers()
    del model.graph.node[1:]
    model.graph.node.append(helper.make_node("Neg", ["a"], ["b"], name="b/Neg"))
    model.graph.node.append(outer)
    model.graph.node.append(helper.make_node("Identity", ["if/made"], ["y"], name="y/Identity"))
    factors = numpy_helper.from_array(np.float32([3, -2, 0.5]), "a/factor")
    model.graph.initializer[0].CopyFrom(factors)  # numbers that half precision has
    model.graph.initializer.append(numpy_helper.from_array(np.array(condition), "condition"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(inner), "inner"))
    model.graph.initializer.append(numpy_helper.from_array(np.float32([[1, 2, 4]]), "offset"))
    feeds = {"x": np.ones((1, 3), np.float32)}
    (expected,) = outputs(model, feeds)
    found = typed(model, {}, FLOAT16)
    (made,) = outputs(found.model, feeds)
    np.testing.assert_array_equal(made, expected)
    assert found.casts == len([node for node in found.model.graph.node if node.op_type == "Cast"])
