"""What each pass does to networks with its borders and special cases, as recorded text, and that the results stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from recorded import changes, check_files, check_recorded
from runtime_networks import RELU, layer

from designer.files.document import write_document
from designer.files.weights import Weights, random_weights, required_weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Frame
from designer.operators.registry import Registry, load
from designer.passes import passes
from designer.passes.effect import pass_effect, pass_effects
from designer.passes.passes import PASSES, optimize, rewritten_layers
from designer.runtime.api import RunOptions
from designer.runtime.engines.rounded_torch import EMULATED
from designer.runtime.session import Session

FEW = 48  # elements of the largest constant here


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load(entry_points=False)


def network(*layers: object, results: str = "") -> Graph:
    ends = results.split(",") if results else [layers[-1].name]
    outputs = [layer(f"result_{number}", "output", end) for number, end in enumerate(ends)]
    frame = Frame("f1", "a frame", "", "#ff8800", (0, 0, 400, 200))
    graph = Graph([layer("image", "input", dims="12x8x4"), *layers, *outputs], name="net", frames=[frame])
    graph.properties["notes"] = "kept"
    return graph


def constants() -> Graph:
    """Constants of every rank, of integers, with two outputs, as large as permitted and larger, and read by an analysis layer."""
    return network(
        layer("scale", "parameter", "", shape="1,4,1,1"),
        layer("root", "unary", "scale", function="abs"),
        layer("halves", "split", "root", parts="2"),
        layer("both", "concatenation", "halves:y1,halves:y0", axis="1"),
        layer("kept", "unary", "both", function="neg"),
        layer("wide", "parameter", "", shape="1,4,1,12"),
        layer("largest", "unary", "wide", function="abs"),
        layer("larger", "parameter", "", shape="1,4,8,12"),
        layer("too_large", "unary", "larger", function="abs"),
        layer("index", "arg_extreme", "scale", axis="1"),
        layer("number", "cast", "index", target="float32"),
        layer("total", "reduce", "scale", operation="sum", axes="", keep="false"),
        layer("noisy", "noise", "wide", kind="gaussian", scale="0.1", seed="1"),
        layer("sum_1", "element_wise", "image,kept", operation="multiply"),
        layer("sum_2", "element_wise", "sum_1,largest", operation="add"),
        layer("sum_3", "element_wise", "sum_2,too_large", operation="add"),
        layer("sum_4", "element_wise", "sum_3,number", operation="add"),
        layer("sum_5", "element_wise", "sum_4,noisy", operation="add"),
        layer("sum_6", "element_wise", "sum_5,root", operation="add"),
        layer("sum_7", "element_wise", "sum_6,total", operation="add"),
        results="sum_7,root",
    )


def identities() -> Graph:
    """Identities one after the other, of the second output, with an activation, before an output and read twice."""
    return network(
        layer("halves", "split", "image", parts="2"),
        layer("one", "identity", "halves:y1"),
        layer("two", "dropout", "one", probability="0.4"),
        layer("three", "identity", "two", RELU),
        layer("four", "identity", "three"),
        layer("half", "unary", "halves:y0", function="abs"),
        layer("whole", "concatenation", "four,half", axis="1"),
        layer("more", "concatenation", "two,four", axis="1"),
        layer("sum", "element_wise", "whole,more", operation="add"),
        layer("last", "drop_path", "sum", probability="0.3"),
        layer("alone", "identity", "image"),
        results="last,alone,last",
    )


def permutations() -> Graph:
    """Four that cancel, a pair of which the first is read too, negative axes, an activation between, and a pair that cancels not."""
    return network(
        layer("a", "permute", "image", axes="0,2,3,1"),
        layer("b", "permute", "a", axes="0,2,3,1"),
        layer("c", "permute", "b", axes="0,3,1,2"),
        layer("d", "permute", "c", axes="0,-1,1,-2"),
        layer("e", "permute", "d", axes="0,2,3,1"),
        layer("f", "permute", "e", axes="0,3,1,2"),
        layer("g", "unary", "e", function="abs"),
        layer("h", "permute", "g", axes="0,3,1,2"),
        layer("i", "permute", "f", RELU, axes="0,2,3,1"),
        layer("j", "permute", "i", axes="0,3,1,2"),
        layer("k", "element_wise", "h,j", operation="add"),
        layer("l", "permute", "k", axes="0,2,3,1"),
        layer("m", "permute", "l", RELU, axes="0,3,1,2"),
        layer("n", "permute", "m", axes="0,2,3,1"),
        layer("o", "permute", "n", axes="0,2,3,1"),
    )


def equals() -> Graph:
    """Pairs that are equal, or differ in one thing: the activation, a parameter, the order of inputs, the port, the weights."""
    f = {"features": "3", "kernel": "1x1"}
    pairs = [
        [layer("same_1", "convolution", "image", **f), layer("same_2", "convolution", "image", **f)],
        [layer("spelt_1", "pooling", "image"), layer("spelt_2", "pooling", "image", size="2x2")],
        [layer("acts_1", "unary", "image", function="sin"), layer("acts_2", "unary", "image", RELU, function="sin")],
        [layer("cut_1", "split", "image", parts="2"), layer("cut_2", "split", "image", parts="2")],
        [layer("port_1", "unary", "cut_1:y0", function="sin"), layer("port_2", "unary", "cut_1:y1", function="sin")],
        [
            layer("order_1", "element_wise", "image,acts_1", operation="subtract"),
            layer("order_2", "element_wise", "acts_1,image", operation="subtract"),
        ],
        [
            layer("noise_1", "noise", "image", scale="0.1", seed="1"),
            layer("noise_2", "noise", "image", scale="0.1", seed="1"),
        ],
        [layer("other_1", "convolution", "image", **f), layer("other_2", "convolution", "image", **f)],
    ]
    pairs[0][1] = replace(pairs[0][1], weights_of="same_1")
    ends = "same_1,same_2,spelt_1,spelt_2,acts_1,acts_2,cut_1:y0,cut_2:y1,port_1,port_2,order_1,order_2,noise_1,noise_2,other_1,other_2"
    return network(*[each for pair in pairs for each in pair], results=ends)


def normalizations() -> Graph:
    """After every layer with a kernel; after one with an activation, one that is read twice, one with shared weights, and after none."""
    f = {"features": "4", "kernel": "3x3"}
    return network(
        layer("first", "batch_normalization", "image"),
        layer("conv", "convolution", "first", **f, apply_bias="false"),
        layer("norm_1", "batch_normalization", "conv", RELU),
        layer("deep", "depthwise_convolution", "norm_1", kernel="3x3"),
        layer("norm_2", "batch_normalization", "deep", epsilon="0.01"),
        layer("up", "transposed_convolution", "norm_2", **f, groups="2"),
        layer("norm_3", "batch_normalization", "up", affine="false"),
        layer("apart", "separable_convolution", "norm_3", **f),
        layer("norm_4", "batch_normalization", "apart"),
        layer("active", "convolution", "norm_4", RELU, **f),
        layer("norm_5", "batch_normalization", "active"),
        layer("read", "convolution", "norm_5", **f),
        layer("norm_6", "batch_normalization", "read"),
        layer("sum", "element_wise", "norm_6,read", operation="add"),
        layer("shared", "convolution", "sum", **f),
        layer("norm_7", "batch_normalization", "shared"),
        replace(layer("shared_2", "convolution", "norm_7", **f), weights_of="shared"),
        layer("norm_8", "batch_normalization", "shared_2"),
        layer("flat", "flatten", "norm_8"),
        layer("full", "fully_connected", "flat", features="5"),
        layer("norm_9", "batch_normalization", "full"),
    )


def activations() -> Graph:
    """After every layer with a kernel; with a slope; after one with an activation, one that is read twice, and after a sum."""
    f = {"features": "4", "kernel": "3x3"}
    leaky, slope = ActivationSpec("leaky_relu", {"negative_slope": "0.2"}), ActivationSpec("prelu")
    return network(
        layer("conv", "convolution", "image", **f),
        layer("act_1", "activation", "conv", leaky),
        layer("deep", "depthwise_convolution", "act_1", kernel="3x3"),
        layer("act_2", "activation", "deep", slope),
        layer("up", "transposed_convolution", "act_2", **f),
        layer("act_3", "activation", "up", RELU),
        layer("apart", "separable_convolution", "act_3", **f),
        layer("act_4", "activation", "apart", ActivationSpec("gelu")),
        layer("active", "convolution", "act_4", RELU, **f),
        layer("act_5", "activation", "active", leaky),
        layer("read", "convolution", "act_5", **f),
        layer("act_6", "activation", "read", leaky),
        layer("sum", "element_wise", "act_6,read", operation="add"),
        layer("act_7", "activation", "sum", leaky),
        layer("shared", "convolution", "act_7", **f),
        layer("act_8", "activation", "shared", slope),
        replace(layer("shared_2", "convolution", "act_8", **f), weights_of="shared"),
        layer("act_9", "activation", "shared_2", RELU),
        layer("flat", "flatten", "act_9"),
        layer("full", "fully_connected", "flat", features="5"),
        layer("act_10", "activation", "full", RELU),
    )


NETWORKS: dict[str, Callable[[], Graph]] = {
    "fold_constants": constants,
    "drop_identities": identities,
    "cancel_permutations": permutations,
    "merge_equal_layers": equals,
    "fold_normalizations": normalizations,
    "fuse_activations": activations,
}


def weights_of(graph: Graph, registry: Registry) -> Weights:
    """Random weights, normalizations and slopes that change values, and layers of equal kernels with other names."""
    random = np.random.default_rng(0)
    made = random_weights(required_weights(Inference(graph, registry)), 3)
    changed = {
        key: random.random(array.shape, np.float32) + np.float32(0.5)
        if "norm" in key.layer or key.layer == "first" or "slope" in key.tensor
        else array
        for key, array in made.tensors.items()
    }
    return Weights(changed)


def described(graph: Graph, registry: Registry, name: str) -> str:
    weights = weights_of(graph, registry)
    made = optimize(graph, registry, weights, [name])
    assert pass_effect(graph, made, registry, weights, RunOptions("torch", threads=1)).kept
    (result,) = made.results
    shapes = {f"{key.layer}.{key.tensor}": array.shape for key, array in made.weights.tensors.items()}
    before = {f"{key.layer}.{key.tensor}": array.shape for key, array in weights.tensors.items()}
    return "\n".join(
        [
            f"{result.name}: {result.count}",
            f"accesses {result.before.accesses} -> {result.after.accesses}, bytes {result.before.bytes} -> {result.after.bytes}",
            f"rewritten: {', '.join(sorted(rewritten_layers(graph, weights, made)))}",
            *(f"+ {key} {shape}" for key, shape in sorted(shapes.items()) if before.get(key) != shape),
            *(f"- {key}" for key in sorted(before.keys() - shapes.keys())),
            "",
            changes(write_document(graph).decode(), write_document(made.graph).decode()),
        ]
    )


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_rewrites_its_special_cases_as_recorded(
    name: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "MAX_CONSTANT", FEW)
    check_recorded(f"passes/{name}.txt", described(NETWORKS[name](), registry, name))


def test_both_networks_run_with_the_options_of_the_comparison(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[RunOptions] = []

    class Noted(Session):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            used.append(self.options)

    monkeypatch.setattr("designer.passes.effect.Session", Noted)
    graph = Graph([layer("image", "input", dims="8x8x4"), layer("result", "output", "image")], name="net")
    weights, options = weights_of(graph, registry), RunOptions(EMULATED.name, "bf16", threads=1)
    assert pass_effect(graph, optimize(graph, registry, weights, []), registry, weights, options).kept
    assert used == [options, options]


def test_every_pass_has_a_record() -> None:
    assert NETWORKS.keys() == PASSES.keys()
    check_files("passes", [*(f"{name}.txt" for name in PASSES), "effects.txt"])


def test_passes_that_are_off_are_tried_after_those_that_are_on(registry: Registry) -> None:
    """On the inputs of the session, images and tensors, with its options."""
    layers = [
        layer("image", "input", dims="12x8x4", scale="4", shift="-2"),
        layer("more", "tensor_input", shape="4,8,12"),
        layer("conv", "convolution", "image", features="4", kernel="3x3", apply_bias="false"),
        layer("norm", "batch_normalization", "conv"),
        layer("act", "activation", "norm", RELU),
        layer("same", "identity", "act"),
        layer("sum", "element_wise", "same,more", operation="add"),
        layer("result", "output", "sum"),
    ]
    graph = Graph(layers, name="net")
    options = RunOptions(EMULATED.name, "bf16", threads=1)
    session = Session(graph, registry, weights_of(graph, registry), options)
    random = np.random.default_rng(1)
    session.set_input("image", random.random((1, 4, 8, 12), np.float32), is_image=True)
    session.set_input("more", random.random((1, 4, 8, 12), np.float32), is_image=False)
    lines, calls = [], list[tuple[int, int, str]]()
    for on in ((), ("fold_normalizations",), ("drop_identities", "fold_normalizations"), tuple(PASSES)):
        lines.append(f"on: {', '.join(on)}")
        for found in pass_effects(session, on, lambda *call: calls.append(call)):
            assert found.result.name == list(PASSES)[calls[-1][0]]
            one = found.result
            text = f"{calls[-1]} {one.name}: {one.count}, {one.before.accesses} -> {one.after.accesses}"
            effect = "" if found.effect is None else " equal" if found.effect.difference == 0 else " rounding"
            assert found.effect is None or found.effect.difference < 0.05
            lines.append(f"{text}{' on' if found.on else ''}{effect}")
    check_recorded("passes/effects.txt", "\n".join([*lines, ""]))
