"""Which tensors two computations have in common, by which names, and what each step reads."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_networks import layer

from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.precision.blame import Operator
from designer.precision.computations import EngineComputation, FileComputation, names_in_file
from designer.precision.mixed import PrecisionResult, _kept_for, _shares
from designer.runtime.api import RunOptions
from designer.runtime.session import Session

onnx = pytest.importorskip("onnx")
pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

X = np.random.default_rng(8).random((1, 3, 4, 5), np.float32)


def computation(registry, rewritten=()) -> EngineComputation:
    """image -> a -> same -> again (pass on) -> b -> result; unread is read by nobody."""
    graph = Graph(
        [
            layer("image", "input", dims="5x4x3", scale="2"),
            layer("a", "scale_shift", "image", scale="3"),
            layer("unread", "scale_shift", "a", scale="7"),
            layer("same", "identity", "a"),
            layer("again", "identity", "same"),
            layer("b", "element_wise", "again,image", operation="subtract"),
            layer("result", "output", "b"),
        ]
    )
    weights = fill_missing(Weights(), required_weights(Inference(graph, registry)), 0)
    session = Session(graph, registry, weights, RunOptions("torch", threads=1))
    session.set_input("image", X, is_image=True)
    return EngineComputation(session, rewritten)


def sources(*names: str) -> set[Source]:
    return {Source(name) for name in names}


def test_layers_that_compute_what_the_outputs_need(registry):
    found = computation(registry)
    assert found.layers == ("a", "b")
    assert found.outputs == (Source("b"),)
    assert set(found.tensors) == sources("a", "b")
    assert set(computation(registry, ["a"]).tensors) == sources("b")
    assert {source: len(array) for source, array in found.inputs().items()} == {Source("image"): 1}
    np.testing.assert_allclose(found.inputs()[Source("image")], X * 2)
    aliases = found.aliases()
    assert aliases[Source("a")] == [Source("a"), Source("same"), Source("again")]
    assert aliases[Source("b")] == [Source("b"), Source("result")]


def test_operators_that_another_computation_has_too(registry):
    found, rewritten = computation(registry), computation(registry, ["a"])
    assert found.operators([found]) == [Operator("a", (Source("a"),)), Operator("b", (Source("b"),))]
    for others in ([rewritten], [found, rewritten], [rewritten, found]):
        assert found.operators(others) == [Operator("b", (Source("b"),))]
    for others in ([computation(registry, ["b"]), found], [found, computation(registry, ["b"])]):
        with pytest.raises(DiagnosticError, match="the tensor 'b'"):
            found.operators(others)
    with pytest.raises(DiagnosticError, match="the tensor 'b'"):
        found.operators([computation(registry, ["b"])])


def test_a_step_computes_what_is_not_known(registry):
    found = computation(registry)
    values = {Source("image"): X, Source("a"): X + 5}
    alone = found.step((Source("b"),), sources("image", "a"))
    assert set(alone.reads) == sources("image", "a")
    np.testing.assert_allclose(alone.run(values)[Source("b")], 5, atol=1e-5)
    both = found.step((Source("b"),), sources("image"))
    assert both.reads == (Source("image"),)
    np.testing.assert_allclose(both.run(values)[Source("b")], 2 * X, atol=1e-5)
    with pytest.raises(DiagnosticError, match="reads 'image', which the other"):
        found.step((Source("b"),), set())


@pytest.mark.parametrize("engine", ["torch", "onnxruntime"])
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("known", [["image"], ["image", "near"], ["image", "far"], ["near", "far"]])
def test_layers_of_a_step_are_computed_after_what_they_read(registry, engine, order, known):
    """`near` is read directly by the sum, and through `far` and `deep`."""
    layers = [
        layer("image", "input", dims="5x4x3"),
        layer("near", "scale_shift", "image", scale="3"),
        layer("far", "scale_shift", "near", scale="5"),
        layer("deep", "element_wise", "far,near", operation="subtract"),
        layer("sum", "element_wise", "near,deep" if order == 1 else "deep,near"),
        layer("all", "element_wise", "sum,far" if order == 1 else "far,sum"),
        layer("result", "output", "all"),
    ]
    graph = Graph(layers[::order])
    weights = fill_missing(Weights(), required_weights(Inference(graph, registry)), 0)
    session = Session(graph, registry, weights, RunOptions(engine, threads=1))
    session.set_input("image", X, is_image=True)
    values = {Source("image"): X, Source("near"): 3 * X, Source("far"): 15 * X, Source("deep"): 12 * X}
    step = EngineComputation(session).step((Source("all"), Source("deep")), sources(*known))
    assert set(step.reads) <= sources(*known)
    found = step.run({source: values[source] for source in step.reads})
    np.testing.assert_allclose(found[Source("all")], 30 * X, rtol=1e-5)
    np.testing.assert_allclose(found[Source("deep")], 12 * X, rtol=1e-5)


def model_of(dtype="FLOAT"):
    """in -> Mul(3) = t1 -> Sub(t1, in) = out, and t1 > 0 = sign."""
    helper, kind = onnx.helper, getattr(onnx.TensorProto, dtype)
    nodes = [
        helper.make_node("Mul", ["in", "three"], ["t1"], "first"),
        helper.make_node("Sub", ["t1", "in"], ["out"], "second"),
        helper.make_node("ArgMax", ["t1"], ["sign"], "third", axis=1),
    ]
    array = np.array(3, {"FLOAT": np.float32, "FLOAT16": np.float16}[dtype])
    ends = [helper.make_tensor_value_info(name, kind, (1, 3, 4, 5)) for name in ("in", "out")]
    last = helper.make_tensor_value_info("sign", onnx.TensorProto.INT64, (1, 1, 4, 5))
    graph = helper.make_graph(nodes, "g", ends[:1], [ends[1], last], [onnx.numpy_helper.from_array(array, "three")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


NAMES = {Source("image"): "in", Source("a"): "t1", Source("b"): "out", Source("c"): "sign", Source("gone"): "t9"}


@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16"])
def test_steps_of_a_file(dtype):
    found = FileComputation(model_of(dtype), NAMES, 1)
    assert set(found.tensors) == sources("image", "a", "b", "c")
    values = {Source("image"): X, Source("a"): X + 5}
    alone = found.step((Source("b"),), sources("image", "a", "b"))
    assert set(alone.reads) == sources("image", "a")
    made = alone.run(values)[Source("b")]
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, 5, atol=1e-2)
    both = found.step((Source("b"), Source("c")), sources("image"))
    assert both.reads == (Source("image"),)
    made = both.run(values)
    np.testing.assert_allclose(made[Source("b")], 2 * X, atol=1e-2)
    assert made[Source("c")].dtype == np.int64
    np.testing.assert_array_equal(made[Source("c")], X.argmax(1, keepdims=True))
    with pytest.raises(DiagnosticError, match="'b' reads 'in'"):
        found.step((Source("b"),), sources("a"))


def test_of_a_quantized_tensor_the_rounded_values_are_taken():
    """Its rounding belongs to the operator that makes it; an input is taken as it is given."""
    model, helper = model_of(), onnx.helper
    for name, reader, scale in (("t1", "second", 1.0), ("in", "first", 0.5)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(scale), f"{name}_scale"))
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.uint8(0), f"{name}_zero"))
        parts = [f"{name}_scale", f"{name}_zero"]
        made = f"{name}_DequantizeLinear_Output"
        nodes = {node.name: node for node in model.graph.node}
        nodes[reader].input[0] = made
        place = list(model.graph.node).index(nodes[reader])
        model.graph.node.insert(place, helper.make_node("QuantizeLinear", [name, *parts], [f"{name}_q"]))
        model.graph.node.insert(place + 1, helper.make_node("DequantizeLinear", [f"{name}_q", *parts], [made]))
    found = FileComputation(model, NAMES, 1)
    assert set(found.tensors) == sources("image", "a", "b", "c")
    values = {Source("image"): X, Source("a"): np.round(X * 8) / 2}
    first = found.step((Source("a"),), sources("image", "a", "b"))
    assert first.reads == (Source("image"),)
    np.testing.assert_allclose(first.run(values)[Source("a")], np.round(np.round(X * 2) / 2 * 3), atol=1e-6)
    second = found.step((Source("b"),), sources("image", "a", "b"))
    assert set(second.reads) == sources("image", "a")
    np.testing.assert_allclose(second.run(values)[Source("b")], values[Source("a")] - X, atol=1e-6)


def test_names_of_the_network_in_a_file(registry):
    network = computation(registry)
    assert names_in_file(network, model_of(), {Source("image"): "in", Source("same"): "t1", Source("b"): "absent"}) == {
        Source("image"): "in", Source("a"): "t1"
    }  # fmt: skip
    model = model_of()
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [{"t1": "a", "out": "result", "in": "image"}.get(name, name) for name in names]
    model.graph.input[0].name = "image"
    others = {Source("a"): "sign"}
    assert names_in_file(network, model, others) == {
        Source("image"): "image", Source("a"): "a", Source("b"): "result"
    }  # fmt: skip


# --- which layers mixed precision keeps --------------------------------------------------------------------------


class Sums:
    """Stands in for a validation: each layer in FP16 adds its part to the squared error."""

    def __init__(self, inference, **errors):
        self.ranges = dict.fromkeys(errors)
        self._errors = errors
        self.emulation = type("Emulation", (), {"session": type("Session", (), {"inference": inference})})

    def psnr(self, precision, formats, count=None):
        half = {name for name, each in formats.items() if each == "float16"}
        if precision == "fp16":
            half = self._errors.keys() - {name for name, each in formats.items() if each == "float32"}
        error = sum(self._errors[name] for name in half)
        return -10 * np.log10(error) if error else np.inf


@pytest.fixture
def sums(registry):
    return Sums(computation(registry)._session.inference, a=1e-4, b=6e-4, c=2e-4, d=0.0, e=1e-4)


def test_shares_of_the_squared_error(sums):
    reports = []
    found = _shares(sums, ["a", "b", "c", "d"], lambda *each: reports.append(each[:2]))
    assert found == pytest.approx({"a": 1 / 9, "b": 6 / 9, "c": 2 / 9, "d": 0.0})
    assert reports == [(number, 4) for number in range(4)]
    assert _shares(sums, ["d"], None) == {"d": 0.0}


@pytest.mark.parametrize(
    ("budget", "kept"),
    [
        (30.1, "b"),
        (33.9, "b"),
        (34.0, "bc"),
        (36.9, "bc"),
        (37.0, "bca"),
        (39.9, "bca"),
        (40.1, "bcae"),
        (99.0, "bcae"),
    ],
)
def test_as_few_layers_as_reach_the_budget_are_kept(sums, budget, kept):
    found, reached = _kept_for(sums, {}, budget, None)
    assert list(found) == list(kept)
    assert reached >= budget
    assert found["b"] == "has 60% of the error of the result"


def test_layers_that_are_kept_anyway_come_first(sums):
    found, _ = _kept_for(sums, {"b": "chosen by the user"}, 36.9, None)
    assert found == {"b": "chosen by the user", "c": "has 50% of the error of the result"}


def test_the_formats_of_a_result_are_those_of_the_layers_that_are_kept():
    assert PrecisionResult("mixed", 1.0, None, {"a": "x", "b": "y"}).formats == {"a": "float32", "b": "float32"}
