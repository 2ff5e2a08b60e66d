"""Which layers a kernel ran, on optimized models as ONNX Runtime writes them on several kinds of processors."""

from __future__ import annotations

import pytest

from designer.runtime.engines.fusion import KernelGroup, Node, groups, kernel_groups
from designer.runtime.engines.ort_timing import samples

ORIGINAL = [
    Node("Conv", "a/Conv", ("x", "a/kernel", "a/bias"), ("a/Conv:y",)),
    Node("Relu", "a/Relu", ("a/Conv:y",), ("a",)),
    Node("MaxPool", "pool/MaxPool", ("a",), ("pool",)),
    Node("Conv", "c/Conv", ("pool", "c/kernel"), ("c/Conv:y",)),
    Node("LeakyRelu", "c/LeakyRelu", ("c/Conv:y",), ("c",)),
    Node("Identity", "id/Identity", ("c",), ("id",)),
    Node("Resize", "up/Resize", ("id", "", "up/constant"), ("up",)),
    Node("Concat", "cat/Concat", ("up", "a"), ("cat",)),
    Node("Conv", "d/Conv", ("cat", "d/kernel"), ("d/Conv:y",)),
    Node("Add", "add/Add", ("d/Conv:y", "a"), ("add",)),
    Node("Relu", "r/Relu", ("add",), ("r",)),
    Node("Conv", "e/Conv", ("r", "e/kernel"), ("e",)),
]
LAYERS = ("a", "pool", "c", "id", "up", "cat", "d", "add", "r", "e")


def kernels(found: list[KernelGroup]) -> dict[tuple[str, ...], list[str]]:
    return {g.layers: g.kernels for g in found}


def test_blocked_layout_fuses_the_addition_into_the_convolution_before_it():
    optimized = [
        Node("Conv", "a_nchwc", ("x", "reorder", "a/bias"), ("t0",)),
        Node("ReorderOutput", "ReorderOutput_token_12", ("t0",), ("a",)),
        Node("MaxPool", "pool_nchwc", ("t0",), ("t1",)),
        Node("Conv", "c_nchwc", ("t1", "t2"), ("t3",)),
        Node("ReorderOutput", "ReorderOutput_token_11", ("t3",), ("c",)),
        Node("Resize", "up/Resize", ("c", "", "up/constant"), ("up",)),
        Node("Concat", "cat/Concat", ("up", "a"), ("cat",)),
        Node("ReorderInput", "ReorderInput", ("cat",), ("t7",)),
        Node("Conv", "d/Conv:y_nchwc", ("t7", "t6", "", "t0"), ("t8",)),
        Node("Conv", "e_nchwc_token_3", ("t8", "t9"), ("t10",)),
        Node("ReorderOutput", "ReorderOutput", ("t10",), ("e",)),
    ]
    assert kernels(groups(ORIGINAL, optimized, LAYERS)) == {
        ("a",): ["a_nchwc", "ReorderOutput_token_12"],
        ("pool",): ["pool_nchwc"],
        ("c",): ["c_nchwc", "ReorderOutput_token_11"],
        ("up",): ["up/Resize"],
        ("cat",): ["cat/Concat"],
        ("d", "add", "r"): ["ReorderInput", "d/Conv:y_nchwc"],
        ("e",): ["e_nchwc_token_3", "ReorderOutput"],
    }


def test_plain_layout_fuses_activations_only():
    optimized = [
        Node("FusedConv", "fused a/Conv", ("x", "a/kernel", "a/bias"), ("a",)),
        Node("MaxPool", "pool/MaxPool", ("a",), ("pool",)),
        Node("FusedConv", "fused c/Conv", ("pool", "c/kernel"), ("c",)),
        Node("Resize", "up/Resize", ("c", "", "up/constant"), ("up",)),
        Node("Concat", "cat/Concat", ("up", "a"), ("cat",)),
        Node("FusedConv", "fused d/Conv", ("cat", "d/kernel", "", "a"), ("r",)),
        Node("Conv", "e/Conv", ("r", "e/kernel"), ("e",)),
    ]
    found = kernels(groups(ORIGINAL, optimized, LAYERS))
    assert ("d", "add", "r") in found
    assert found["c",] == ["fused c/Conv"]
    assert not any("id" in layers for layers in found)


def test_a_folded_normalization_goes_with_its_convolution():
    original = [
        Node("Conv", "a/Conv", ("x", "k"), ("a",)),
        Node("BatchNormalization", "bn/BatchNormalization", ("a", "s", "b", "m", "v"), ("bn",)),
    ]
    found = groups(original, [Node("Conv", "a/Conv", ("x", "k2", "b2"), ("bn",))], ("a", "bn"))
    assert kernels(found) == {("a", "bn"): ["a/Conv"]}


@pytest.mark.parametrize("op", ["Conv", "FusedConv"])
def test_a_layer_without_a_trace_joins_the_kernel_before_it_whatever_its_reader_is_fused_with(op):
    original = [
        Node("Conv", "a/Conv", ("x", "k"), ("a",)),
        Node("Mul", "scale/Mul", ("a", "f"), ("scale",)),
        Node("Conv", "c/Conv", ("scale", "l"), ("c/Conv:y",)),
        Node("Relu", "c/Relu", ("c/Conv:y",), ("c",)),
    ]
    optimized = [Node("Conv", "a/Conv", ("x", "k2"), ("a",)), Node(op, "c/Conv", ("a", "l"), ("c",))]
    assert kernels(groups(original, optimized, ("a", "scale", "c"))) == {("a", "scale"): ["a/Conv"], ("c",): ["c/Conv"]}


def test_several_kernels_of_one_layer_are_one_group():
    original = [
        Node("MatMul", "m/MatMul", ("x", "w"), ("m/MatMul:y",)),
        Node("Erf", "m/Erf", ("m/MatMul:y",), ("m",)),
    ]
    assert kernels(groups(original, original, ("m",))) == {("m",): ["m/MatMul", "m/Erf"]}


def test_a_kernel_that_runs_layers_of_two_others_is_one_group_with_both():
    nodes = [Node("Conv", name, (), (f"{name}:y",)) for name in ("first", "second", "both", "later")]
    ran = [{"a": None}, {"b": None}, {"a": None, "b": None}, {"b": None}]
    found = kernel_groups(nodes, ran)
    assert kernels(found) == {("a", "b"): ["first", "second", "both", "later"]}


def test_transposes_at_the_border_belong_to_what_they_convert_for():
    original = [
        Node("Transpose", "x/to_nchw", ("x",), ("x/nchw",)),
        Node("Conv", "a/Conv", ("x/nchw", "k"), ("a",)),
        Node("Transpose", "a/nhwc/to_nhwc", ("a",), ("a/nhwc",)),
    ]
    found = groups(original, original, ("a",))
    assert kernels(found) == {("a",): ["x/to_nchw", "a/Conv", "a/nhwc/to_nhwc"]}


def test_values_renamed_by_moved_transposes_are_found_by_the_kernels_name():
    original = [
        Node("Transpose", "n/Transpose", ("x",), ("n/Transpose:y",)),
        Node("Sqrt", "n/Sqrt", ("n/Transpose:y",), ("n/Sqrt:y",)),
        Node("Transpose", "n/Transpose_1", ("n/Sqrt:y",), ("n",)),
        Node("Sigmoid", "s/Sigmoid", ("n",), ("s",)),
    ]
    optimized = [Node("Sqrt", "n/Sqrt", ("x",), ("n/Sqrt",)), Node("Sigmoid", "s/Sigmoid", ("n/Sqrt",), ("s",))]
    assert kernels(groups(original, optimized, ("n", "s"))) == {("n",): ["n/Sqrt"], ("s",): ["s/Sigmoid"]}


def test_times_are_summed_by_run_and_warm_up_is_dropped():
    found = [KernelGroup(("a",), ["k1", "k2"], ["Conv", "ReorderOutput"])]
    run = [
        {"cat": "Node", "name": "k1_kernel_time", "dur": 10},
        {"cat": "Node", "name": "k2_kernel_time", "dur": 5},
        {"cat": "Node", "name": "other_kernel_time", "dur": 99},
        {"cat": "Session", "name": "model_run", "dur": 20},
    ]
    sample, rest = samples([*run, *run, *run], found, warmup=1)
    assert sample.seconds == pytest.approx([1.5e-5, 1.5e-5])
    assert sample.what == "Conv, ReorderOutput"
    assert rest.layers == ()
    assert rest.seconds == pytest.approx([9.9e-5, 9.9e-5])
    assert rest.what == "other"


@pytest.mark.parametrize(
    ("kernels_", "expected"),
    [
        ("r ReorderInput x: | a Conv r:a | b Conv r:b", ["a: r a", "b: b"]),
        ("k Conv x:k | r ReorderInput k: | b Conv r:b", ["k: k", "b: r b"]),
        ("k Conv x:k | r ReorderInput k:", ["k: k r"]),
        ("k Conv x:k | r ReorderOutput k: | b Conv r:b", ["k: k r", "b: b"]),
        ("r Transpose x: | a Conv r:a | b Conv r:b", ["a: r a", "b: b"]),
        ("k Conv x:k | l Conv x:l | r Concat l,k: | b Conv r:b", ["k: k", "l: l r", "b: b"]),
        ("k Conv x:k | r Transpose k: | s Transpose r: | b Conv s:b", ["k: k r", "b: s b"]),
        ("r Transpose x: | s Transpose r: | a Conv s:a", [": r", "a: s a"]),
        ("r Transpose x: | a Conv x:a", [": r", "a: a"]),
        ("a Conv x:a | b Conv a:b | c Add b:c,a | d Add c:b", ["a c: a c", "b: b d"]),
        ("a Conv x:a | b Conv a:b | c Conv b:c | d Add c:b,c | e Add d:a,c", ["a b c: a b c d e"]),
        ("a Conv x:a | b Conv x:b | r ReorderInput a: | c Add r,b:b,a", ["a b: a b r c"]),
    ],
)
def test_kernels_without_layers_join_a_neighbor_that_has_some(kernels_, expected):
    """What converts an input joins the first kernel that reads it; others the first that they read, if there is one."""
    nodes, ran = [], []
    for text in kernels_.split(" | "):
        words, _, layers = text.partition(":")
        name, op, reads = words.split()
        nodes.append(Node(op, name, tuple(reads.split(",")), (name,)))
        ran.append({layer: None for layer in layers.split(",") if layer})
    found = kernel_groups(nodes, ran)
    assert [f"{' '.join(sorted(group.layers))}: {' '.join(group.kernels)}" for group in found] == expected
    assert [group.ops for group in found] == [[node.op for node in nodes if node.name in g.kernels] for g in found]


def test_what_is_fused_into_a_blocked_convolution_stays_there_where_its_layout_is_converted():
    original = [
        Node("Conv", "d/Conv", ("x", "d/kernel"), ("d/Conv:y",)),
        Node("Add", "add/Add", ("d/Conv:y", "y"), ("add",)),
        Node("Relu", "r/Relu", ("add",), ("r",)),
        Node("Sqrt", "s/Sqrt", ("r",), ("s",)),
    ]
    optimized = [
        Node("Conv", "d/Conv:y_nchwc", ("t1", "t2", "", "t3"), ("t4",)),
        Node("ReorderOutput", "ReorderOutput", ("t4",), ("r",)),
        Node("Sqrt", "s/Sqrt", ("r",), ("s",)),
    ]
    assert kernels(groups(original, optimized, ("d", "add", "r", "s"))) == {
        ("d", "add", "r"): ["d/Conv:y_nchwc", "ReorderOutput"],
        ("s",): ["s/Sqrt"],
    }
