"""What runs, in which groups, and why something cannot."""

from __future__ import annotations

import pytest
from runtime_networks import analysed, layer, unet

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Source
from designer.runtime.plan import AnalysisStep, PartStep, make_plan


def plan_of(graph, registry, *targets):
    return make_plan(Inference(graph, registry), [Source.parse(t) for t in targets])


def shape_of(plan):
    """Steps as text: analysis layers by name, parts by their layers."""
    return [step.layer if isinstance(step, AnalysisStep) else step.part.layers for step in plan.steps]


def test_a_network_is_one_part_without_its_output_layer(runtime_registry):
    plan = plan_of(unet(), runtime_registry, "result")
    (step,) = plan.steps
    assert isinstance(step, PartStep)
    assert step.part.feeds == (Source("image"),)
    assert step.wanted == (Source("out"),)
    assert "result" not in step.part.layers
    assert plan.origin == {Source("result"): Source("out")}
    assert plan.inputs == ("image",)


def test_analysis_layers_stand_between_parts(runtime_registry):
    plan = plan_of(analysed(), runtime_registry, "result")
    noise, part, mix = plan.steps
    assert isinstance(noise, AnalysisStep)
    assert isinstance(part, PartStep)
    assert isinstance(mix, AnalysisStep)
    assert (noise.layer, noise.feeds, noise.late) == ("noise", (Source("image"),), False)
    assert part.part.feeds == (Source("noise"),)
    assert (mix.layer, mix.feeds, mix.late) == ("mix", (Source("out"), Source("noise")), True)


def test_only_what_is_needed(runtime_registry):
    plan = plan_of(analysed(), runtime_registry, "pool")
    assert shape_of(plan) == ["noise", ("enc 1", "pool")]
    assert shape_of(plan_of(unet(), runtime_registry, "image")) == []


def test_a_branch_without_noise_is_a_part_of_its_own(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("clean", "activation", "image", ActivationSpec("relu")),
            layer("noise", "noise", "image"),
            layer("a", "activation", "noise", ActivationSpec("relu")),
            layer("b", "element_wise", "a,clean", operation="add"),
            layer("result", "output", "b"),
        ]
    )
    assert shape_of(plan_of(graph, runtime_registry, "result")) == [("clean",), "noise", ("a", "b")]


def test_layers_that_pass_their_input_on_cost_nothing(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("conv", "activation", "image", ActivationSpec("relu")),
            layer("drop", "dropout", "conv"),
            layer("same", "identity", "drop"),
            layer("mix", "mix", "same,same"),
            layer("result", "output", "mix"),
            layer("direct", "output", "same"),
        ]
    )
    plan = plan_of(graph, runtime_registry, "result", "direct", "drop")
    assert shape_of(plan) == [("conv",), "mix"]
    assert plan.steps[1].feeds == (Source("conv"), Source("conv"))
    assert plan.origin[Source("direct")] == plan.origin[Source("drop")] == Source("conv")


def test_ports_by_name(runtime_registry):
    first = runtime_registry.get("convolution").outputs[0].name
    assert plan_of(unet(), runtime_registry, f"dec:{first}") == plan_of(unet(), runtime_registry, "dec")
    with pytest.raises(DiagnosticError, match="no output 'nope'"):
        plan_of(unet(), runtime_registry, "dec:nope")


def errors_of(graph, registry, *targets):
    with pytest.raises(DiagnosticError) as caught:
        plan_of(graph, registry, *targets)
    return caught.value.diagnostics


def test_the_layer_in_the_way_is_named(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("strange", "from_the_future", "image"),
            layer("conv", "convolution", "strange", features=4),
            layer("result", "output", "conv"),
            layer("other", "output", "image"),
        ]
    )
    (wrong,) = errors_of(graph, runtime_registry, "result")
    assert wrong.layer == "strange"
    assert wrong.message.startswith("the network cannot run because of 'strange'")
    assert wrong.remedy
    assert shape_of(plan_of(graph, runtime_registry, "other")) == []  # what is not needed is not in the way


def test_a_cycle_is_named(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("a", "element_wise", "image,b", operation="add"),
            layer("b", "identity", "a"),
            layer("result", "output", "b"),
        ]
    )
    assert errors_of(graph, runtime_registry, "result")[0].code == "cycle"


def test_an_activation_on_an_analysis_layer_is_refused(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("noise", "noise", "image", ActivationSpec("relu")),
            layer("result", "output", "noise"),
        ]
    )
    assert errors_of(graph, runtime_registry, "result")[0].code == "activation-on-analysis"


def test_a_long_chain_is_planned_without_recursion(runtime_registry):
    names = [f"n{i}" for i in range(1500)]
    layers = [layer("image", "input", dims="8x8x3")]
    layers += [layer(n, "identity", p) for n, p in zip(names, ["image", *names], strict=False)]
    graph = Graph([*layers, layer("result", "output", names[-1])])
    assert shape_of(plan_of(graph, runtime_registry, "result")) == []
