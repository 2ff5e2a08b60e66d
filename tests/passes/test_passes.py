"""Graph passes: what each finds, that the function is kept, and the memory traffic that it saves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from runtime_networks import RELU, layer
from typer.testing import CliRunner

from app.cli.main import app
from designer.files.document import save_document
from designer.files.variants import Variant
from designer.files.weight_random import random_weights
from designer.files.weights import Weights, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec
from designer.graph.template import Template
from designer.operators.inlining import inline
from designer.operators.registry import Registry, load
from designer.passes.effect import pass_effect
from designer.passes.passes import PASSES, Optimized, chosen, optimize
from designer.precision.variants import runnable_variant
from designer.runtime.api import RunOptions


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load(entry_points=False)


def network(*layers: object) -> Graph:
    image = layer("image", "input", dims="12x8x3")
    return Graph([image, *layers, layer("result", "output", layers[-1].name)], name="net")


def block() -> Graph:
    """Convolution, batch normalization and activation as three layers."""
    return network(
        layer("conv", "convolution", "image", None, features=4, kernel="3x3", apply_bias="false"),
        layer("norm", "batch_normalization", "conv", None),
        layer("act", "activation", "norm", ActivationSpec("prelu")),
    )


def weights_of(graph: Graph, registry: Registry) -> Weights:
    made = random_weights(required_weights(Inference(graph, registry)), 3)
    random = np.random.default_rng(0)
    changed = {
        key: (random.random(array.shape, np.float32) + 0.5 if key.layer == "norm" or "slope" in key.tensor else array)
        for key, array in made.tensors.items()
    }
    return Weights(changed)


def optimized(graph: Graph, registry: Registry, *names: str) -> Optimized:
    weights = weights_of(graph, registry)
    found = optimize(graph, registry, weights, names or None)
    effect = pass_effect(graph, found, registry, weights, RunOptions("torch", threads=1))
    assert effect.kept, effect
    return found


def test_three_fused_layers_turn_six_accesses_into_two(registry: Registry) -> None:
    found = optimized(block(), registry)
    assert {result.name: result.count for result in found.results if result.count} == {
        "fold_normalizations": 1,
        "fuse_activations": 1,
    }
    assert set(found.graph.layers) == {"image", "conv", "result"}
    assert found.results[0].before.accesses == 6
    assert found.results[-1].after.accesses == 2
    assert found.results[-1].after.bytes < found.results[0].before.bytes / 2


def shared_blocks() -> Graph:
    """Two instances of a normalized convolution with shared weights, each with a PReLU of its own."""
    inside = (
        layer("x", "template_input", "", None),
        layer("conv", "convolution", "x", None, features=3, kernel="3x3"),
        layer("norm", "batch_normalization", "conv", None),
        layer("y", "template_output", "norm", None),
    )
    call = {"template": "block", "shared_weights": "true"}
    layers = [
        layer("image", "input", "", None, dims="12x8x3"),
        layer("one", "template", "image", None, **call),
        layer("act_1", "activation", "one", ActivationSpec("prelu")),
        layer("two", "template", "act_1", None, **call),
        layer("act_2", "activation", "two", ActivationSpec("prelu")),
        layer("result", "output", "act_2", None),
    ]
    return inline(Graph(layers, name="net", templates=[Template("block", inside)]), load(entry_points=False))


def test_shared_weights_stay_shared_while_they_are_equal(registry: Registry) -> None:
    found = optimized(shared_blocks(), registry, "drop_identities", "fold_normalizations")
    assert found.results[-1].count == 2
    assert found.graph["one.conv"].weights_name == found.graph["two.conv"].weights_name
    assert sum(key.tensor == "kernel" for key in found.weights.tensors) == 1


def test_layers_with_shared_weights_take_their_own_normalizations_and_slopes(registry: Registry) -> None:
    found = optimized(shared_blocks(), registry)  # the slopes of the two activations differ
    assert set(found.graph.layers) == {"image", "one.conv", "two.conv", "result"}
    assert len({layer.weights_name for layer in found.graph if layer.type == "convolution"}) == 2
    weights = (
        layer("a", "convolution", "image", None, features=3),
        layer("b", "convolution", "norm", None, features=3),
    )
    first, second = weights[0], replace(weights[1], weights_of="a")
    norm, other = layer("norm", "batch_normalization", "a", None), layer("norm_2", "batch_normalization", "b", None)
    for layers in ((first, norm, second, other), (first, norm, second)):
        assert optimized(network(*layers), registry).graph["a"].params["apply_bias"] == "true"


def test_layers_that_share_the_weights_of_a_folded_layer_share_them_afterwards(registry: Registry) -> None:
    found = optimized(
        network(
            layer("a", "convolution", "image", None, features=3),
            layer("norm", "batch_normalization", "a", None),
            replace(layer("b", "convolution", "norm", None, features=3), weights_of="a"),
            replace(layer("c", "convolution", "b", None, features=3), weights_of="a"),
        ),
        registry,
    )
    assert "norm" not in found.graph
    assert found.graph["b"].weights_name == found.graph["c"].weights_name != found.graph["a"].weights_name
    assert {key.layer for key in found.weights.tensors} == {"a", found.graph["b"].weights_name}


def test_each_pass_can_be_left_out(registry: Registry) -> None:
    found = optimized(block(), registry, *chosen(without=["fold_normalizations"]))
    assert "norm" in found.graph
    assert "fold_normalizations" not in [result.name for result in found.results]
    assert [result.name for result in optimized(block(), registry, "fuse_activations").results] == ["fuse_activations"]
    with pytest.raises(DiagnosticError) as caught:
        chosen(["fuse"])
    assert "fuse_activations" in caught.value.diagnostics[0].remedy


def test_identities_are_dropped(registry: Registry) -> None:
    graph = network(
        layer("same", "identity", "image", None),
        layer("off", "dropout", "same", None),
        layer("x", "unary", "off", None),
    )
    found = optimized(graph, registry, "drop_identities")
    assert set(found.graph.layers) == {"image", "x", "result"}
    assert found.results[0].count == 2


def test_equal_layers_are_computed_once(registry: Registry) -> None:
    graph = network(
        layer("a", "unary", "image", None, function="sqrt"),
        layer("b", "unary", "image", None, function="sqrt"),
        layer("c", "unary", "a", None, function="sin"),
        layer("d", "unary", "b", None, function="sin"),
        layer("e", "unary", "b", None, function="cos"),
        layer("sum", "element_wise", "c,d,e", None),
    )
    found = optimized(graph, registry, "merge_equal_layers")
    assert set(found.graph.layers) == {"image", "a", "c", "e", "sum", "result"}


def test_layers_of_other_weights_are_not_merged(registry: Registry) -> None:
    convolutions = [layer(name, "convolution", "image", None, features=2, kernel="1x1") for name in "ab"]
    found = optimized(network(*convolutions, layer("sum", "element_wise", "a,b", None)), registry, "merge_equal_layers")
    assert found.results[0].count == 0


def test_constants_are_computed_in_advance(registry: Registry) -> None:
    graph = network(
        layer("scale", "parameter", None, None, shape="1,3,1,1"),
        layer("root", "unary", "scale", None, function="sqrt"),
        layer("twice", "element_wise", "root,scale", None),
        layer("scaled", "element_wise", "image,twice", None, operation="multiply"),
    )
    found = optimized(graph, registry, "fold_constants")
    assert set(found.graph.layers) == {"image", "twice", "scaled", "result"}
    assert found.graph["twice"].type == "parameter"


def test_layout_changes_that_cancel_are_removed(registry: Registry) -> None:
    graph = network(
        layer("there", "permute", "image", None, axes="0,2,3,1"),
        layer("back", "permute", "there", None, axes="0,3,1,2"),
        layer("other", "permute", "back", None, axes="0,1,3,2"),
        layer("x", "permute", "other", None, axes="0,2,1,3"),
    )
    found = optimized(graph, registry, "cancel_permutations")
    assert set(found.graph.layers) == {"image", "other", "x", "result"}
    assert found.results[0].count == 1


def test_an_activation_that_another_layer_bypasses_is_not_fused(registry: Registry) -> None:
    graph = network(
        layer("conv", "convolution", "image", None, features=3, kernel="1x1"),
        layer("act", "activation", "conv", RELU),
        layer("sum", "element_wise", "act,conv", None),
    )
    assert not optimized(graph, registry, "fuse_activations").results[0].count


def test_the_command_prints_and_writes_the_network_after_the_passes(registry: Registry, tmp_path: Path) -> None:
    document, output = tmp_path / "x.xml", tmp_path / "x.onnx"
    save_document(block(), document)
    done = CliRunner().invoke(app, ["passes", str(document), "--random-weights", "1", "-o", str(output)])
    assert done.exit_code == 0, done.output
    assert "6 -> 4" in done.output
    assert "function kept" in done.output
    assert "BatchNormalization" not in [node.op_type for node in onnx.load(output).graph.node]
    done = CliRunner().invoke(app, ["passes", str(document), "--random-weights", "1", "--json"])
    found = json.loads(done.output)
    assert found["equal"]
    assert [entry["name"] for entry in found["passes"]] == list(PASSES)


def test_a_variant_runs_with_its_passes(registry: Registry) -> None:
    graph = block()
    weights = weights_of(graph, registry)
    variant = Variant("fast", passes=("fold_normalizations", "fuse_activations"))
    found = runnable_variant(variant, graph, registry, weights, RunOptions("torch"))
    assert set(found.graph.layers) == {"image", "conv", "result"}
    assert found.options == RunOptions("torch")
    with pytest.raises(DiagnosticError):
        runnable_variant(Variant("later", passes=("unroll",)), graph, registry, weights, RunOptions())
