"""ONNX models of unusual nodes in other number formats, compared with recorded texts and with what they computed before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from recorded import check_files, check_recorded, onnx_text

from designer.runtime.number_formats import BFLOAT16, FLOAT16, FLOAT32, FORMATS, NumberFormat
from exporters.onnx_formats import with_formats

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def node(kind: str, reads: str, gives: str, layer: str = "", **attributes: Any) -> Any:
    """A node of the layer that its name begins with; `-` is an input that is left out."""
    inputs = ["" if name == "-" else name for name in reads.split()]
    return helper.make_node(kind, inputs, gives.split(), name=f"{layer or gives.split()[0]}/{kind}", **attributes)


def constant(name: str, values: Any, kind: Any = np.float32) -> Any:
    return numpy_helper.from_array(np.array(values, kind), name)


def entry(name: str, *shape: Any, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes: list[Any], outputs: list[Any], constants: Sequence[Any] = (), inputs: Sequence[Any] = ()) -> Any:
    graph = helper.make_graph(nodes, "g", inputs or [entry("x", "N", 3)], outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10, producer_name="test")


def bodies() -> Any:
    """Branches within branches that read tensors and constants from around them."""
    inner_then = helper.make_graph([node("Add", "a inner/k", "deep")], "inner then", [], [entry("deep", None, 3)])
    inner_else = helper.make_graph([node("Mul", "y0 a", "deep2")], "inner else", [], [entry("deep2", None, 3)])
    then = helper.make_graph(
        [node("Neg", "a", "y0"), node("If", "flag", "made", "branch", then_branch=inner_then, else_branch=inner_else)],
        "then", [], [entry("made", None, 3)],
    )  # fmt: skip
    other = helper.make_graph([node("Identity", "b", "same")], "else", [], [entry("same", None, 3)])
    nodes = [
        node("Mul", "x a/k", "a"),
        node("Abs", "a", "b"),
        node("If", "flag", "c", "branch", then_branch=then, else_branch=other),
        node("Exp", "c", "d"),
    ]
    constants = [constant("a/k", [0.5, 1, 2]), constant("inner/k", [3.0]), constant("unused/k", [1.0])]
    return model(nodes, [entry("d", "N", 3)], constants, [entry("x", "N", 3), entry("flag", kind=TensorProto.BOOL)])


def numbers() -> Any:
    """Single numbers that a format cannot hold, or can: tiny, huge, infinite, 0; and several of them in one tensor."""
    nodes = [
        node("Add", "x tiny", "a"), node("Mul", "a huge", "b"), node("Min", "b infinite", "c"), node("Max", "c zero", "d"),
        node("Add", "d several", "e"), node("Mul", "e small", "f"), node("Clip", "f - huge", "g"), node("Pow", "g two", "h"),
    ]  # fmt: skip
    constants = [
        constant("tiny", 1e-12), constant("huge", [1e6]), constant("infinite", np.inf), constant("zero", [[0.0]]),
        constant("several", [1e-12, 1e6, 1.0]), constant("small", 1e-7), constant("two", 2, np.int64),
    ]  # fmt: skip
    return model(nodes, [entry("h", "N", 3)], constants)


def kinds() -> Any:
    """Nodes whose types follow attributes, are fixed, or come from shapes and integers; and outputs that others read."""
    nodes = [
        node("Identity", "k", "kept"),
        node("Identity", "x", "same"),
        node("Cast", "same", "whole", to=TensorProto.INT64),
        node("Cast", "whole", "back", to=FLOAT),
        node("Constant", "", "half", value=constant("v", [0.5, 0.25, 1.0])),
        node("Constant", "", "count", value=constant("v", [2], np.int64)),
        node("Shape", "back", "dims", "ones"),
        node("ConstantOfShape", "dims", "ones", value=constant("v", [1.0])),
        node("Sum", "back half ones kept", "total"),
        node("TopK", "total count", "best places", "best", axis=1),
        node("Cast", "places", "order", to=FLOAT),
        node("Add", "best order", "last"),
        node("Identity", "last", "shown"),
        node("Split", "total three", "one two three_", "cut", axis=1),
        node("Concat", "one two", "joined", axis=1),
        node("Where", "flag one two", "chosen"),
    ]
    outputs = [entry("shown", "N", 2), entry("last", "N", 2), entry("joined", "N", 2), entry("chosen", "N", 1), entry("places", "N", 2, kind=TensorProto.INT64)]  # fmt: skip
    constants = [constant("k", [0.1, 0.2, 0.3]), constant("three", [1, 1, 1], np.int64)]
    return model(nodes, outputs, constants, [entry("x", "N", 3), entry("flag", kind=TensorProto.BOOL)])


def names() -> Any:
    """Names that casts would have are taken already."""
    nodes = [
        node("Abs", "x", "x/float16"),
        node("Neg", "x", "x/float16_1"),
        helper.make_node("Add", ["x/float16", "x/float16_1"], ["sum"], name="sum/Cast"),
        node("Mul", "sum x", "y"),
    ]
    return model(nodes, [entry("y", "N", 3), entry("sum", "N", 3)])


def image() -> Any:
    """A Resize, whose scales stay float32, a convolution with a bias, and a normalization."""
    rng = np.random.default_rng(0)
    nodes = [
        node("Conv", "x conv/w conv/b", "conv", pads=[1, 1, 1, 1]),
        node("InstanceNormalization", "conv norm/s norm/b", "norm", epsilon=1e-5),
        node("Resize", "norm - up/scales", "up", mode="nearest"),
        node("GlobalAveragePool", "up", "mean"),
    ]
    constants = [
        constant("conv/w", rng.normal(0, 0.2, (4, 3, 3, 3))), constant("conv/b", rng.normal(0, 0.2, 4)),
        constant("norm/s", np.ones(4)), constant("norm/b", np.zeros(4)), constant("up/scales", [1, 1, 2, 2]),
    ]  # fmt: skip
    return model(
        nodes, [entry("up", "N", 4, 12, 16), entry("mean", "N", 4, 1, 1)], constants, [entry("x", "N", 3, 6, 8)]
    )


MODELS = {"bodies": bodies, "numbers": numbers, "kinds": kinds, "names": names, "image": image}
CHOICES: dict[str, tuple[dict[str, NumberFormat], NumberFormat, tuple[NumberFormat, ...]]] = {
    "half": ({}, FLOAT16, (FLOAT16,)),
    "some": ({"a": FLOAT16, "b": FLOAT16, "total": FLOAT16, "best": BFLOAT16, "y": FLOAT16, "norm": FLOAT16, "d": BFLOAT16}, FLOAT32, (FLOAT16,)),
    "stored": ({}, BFLOAT16, (FLOAT16,)),
    "all but some": ({"b": FLOAT32, "c": FORMATS["int8"], "cut": FLOAT32, "ones": FLOAT32, "sum": FLOAT32, "conv": FLOAT32}, FLOAT16, (FLOAT16,)),
}  # fmt: skip


def run(made: Any, feeds: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found: list[Any] = session.run(None, feeds)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_a_model_in_other_formats_is_as_recorded_and_computes_nearly_the_same(name: str) -> None:
    plain = MODELS[name]()
    before = plain.SerializeToString()
    lines = []
    rng = np.random.default_rng(1)
    for choice, (formats, otherwise, computing) in CHOICES.items():
        found = with_formats(plain, lambda layer, f=formats, o=otherwise: f.get(layer, o), computing)
        assert plain.SerializeToString() == before
        onnx.checker.check_model(found.model, full_check=True)
        lines += [
            f"=== {choice}: {found.casts} casts, in float32: {', '.join(found.in_float32)}",
            onnx_text(found.model),
        ]
        before_, after = (sum(n.op_type == "Cast" for n in each.graph.node) for each in (plain, found.model))
        assert found.casts == after - before_
        if name == "numbers":  # larger than FP16 can hold
            continue
        shape = (2, 3, 6, 8) if name == "image" else (2, 3)
        for flag in (True, False):
            feeds: dict[str, Any] = {"x": rng.uniform(0.5, 1.5, shape).astype(np.float32)}
            if any(each.name == "flag" for each in plain.graph.input):
                feeds["flag"] = np.array(flag)
            for ours, theirs in zip(run(found.model, feeds), run(plain, feeds), strict=True):
                assert ours.dtype == theirs.dtype
                np.testing.assert_allclose(ours, theirs, rtol=0.06, atol=0.02)
    check_recorded(f"typed/{name}.txt", "\n".join(lines))


def test_nothing_else_is_recorded() -> None:
    check_files("typed", [f"{name}.txt" for name in MODELS])
