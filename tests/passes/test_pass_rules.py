"""What every pass leaves alone, what each reports, and sessions that follow a document through its passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from runtime_networks import RELU, layer

from designer.files.weight_random import random_weights
from designer.files.weights import WeightKey, Weights, required_weights
from designer.graph.commands import set_params
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import BYPASSED, ActivationSpec, Layer
from designer.graph.template import Template
from designer.operators.registry import load
from designer.passes import effect, passes
from designer.passes.effect import pass_effect, pass_effects
from designer.passes.optimized_session import OptimizedSession
from designer.passes.passes import PASSES, chosen, optimize, rewritten_layers
from designer.runtime.api import RunOptions
from designer.runtime.images import write_image
from designer.runtime.session import Session

REGISTRY = load(entry_points=False)
OPTIONS = RunOptions("torch", threads=1)


def network(*layers: Layer) -> Graph:
    image = layer("image", "input", dims="12x8x3")
    return Graph([image, *layers, layer("result", "output", layers[-1].name)], name="net")


def weights_of(graph: Graph, seed: int = 3) -> Weights:
    made = random_weights(required_weights(Inference(graph, REGISTRY)), seed)
    random = np.random.default_rng(seed)
    return Weights({key: random.random(array.shape, np.float32) + 0.5 for key, array in made.tensors.items()})


def bypassed(one: Layer) -> Layer:
    return replace(one, attributes={**one.attributes, BYPASSED: "true"})


CONV = layer("conv", "convolution", "image", None, features=3, kernel="1x1")
UNTOUCHED = {  # the pass, and a network in which it finds nothing
    "an activation that is bypassed": ("fuse_activations", [CONV, bypassed(layer("act", "activation", "conv", RELU))]),
    "an activation behind a bypassed layer": (
        "fuse_activations",
        [bypassed(CONV), layer("act", "activation", "conv", RELU)],
    ),
    "an activation behind another": (
        "fuse_activations",
        [
            layer("conv", "convolution", "image", ActivationSpec("tanh"), features=3),
            layer("act", "activation", "conv", RELU),
        ],
    ),
    "an activation behind an addition": (
        "fuse_activations",
        [layer("sum", "element_wise", "image,image", None), layer("act", "activation", "sum", RELU)],
    ),
    "permutations with an activation between": (
        "cancel_permutations",
        [
            layer("there", "permute", "image", RELU, axes="0,2,3,1"),
            layer("back", "permute", "there", None, axes="0,3,1,2"),
        ],
    ),
    "permutations with an activation behind": (
        "cancel_permutations",
        [
            layer("there", "permute", "image", None, axes="0,2,3,1"),
            layer("back", "permute", "there", RELU, axes="0,3,1,2"),
        ],
    ),
    "permutations that do not cancel": (
        "cancel_permutations",
        [
            layer("there", "permute", "image", None, axes="0,2,3,1"),
            layer("again", "permute", "there", None, axes="0,2,3,1"),
        ],
    ),
    "equal layers with other activations": (
        "merge_equal_layers",
        [
            layer("a", "scale_shift", "image", RELU, scale="2.0"),
            layer("b", "scale_shift", "image", ActivationSpec("tanh"), scale="2.0"),
            layer("sum", "element_wise", "a,b", None, operation="multiply"),
        ],
    ),
    "equal layers with other weights": (
        "merge_equal_layers",
        [
            layer("a", "convolution", "image", None, features=3),
            layer("b", "convolution", "image", None, features=3),
            layer("sum", "element_wise", "a,b", None),
        ],
    ),
    "equal layers with other parameters": (
        "merge_equal_layers",
        [
            layer("a", "scale_shift", "image", None, scale="2.0"),
            layer("b", "scale_shift", "image", None, scale="3.0"),
            layer("sum", "element_wise", "a,b", None),
        ],
    ),
    "equal splits": (
        "merge_equal_layers",
        [
            layer("a", "split", "image", None, axis="1", sizes="1,2"),
            layer("b", "split", "image", None, axis="1", sizes="1,2"),
            layer("sum", "element_wise", "a:y1,b:y1", None),
        ],
    ),
    "an identity with an activation": ("drop_identities", [layer("same", "identity", "image", RELU)]),
    "constants of another type": (
        "fold_constants",
        [
            layer("half", "tensor_constant", None, None, shape="3,1,1", dtype="float16", numbers="1,2,3"),
            layer("same", "unsqueeze", "half", None, axis="0"),
            layer("wide", "cast", "same", None, target="float32"),
            layer("sum", "element_wise", "image,wide", None),
        ],
    ),
    "a snapshot, which analyses": ("drop_identities", [layer("seen", "snapshot", "image", None)]),
}


@pytest.mark.parametrize("case", UNTOUCHED)
def test_what_a_pass_leaves_alone(case: str) -> None:
    name, layers = UNTOUCHED[case]
    graph = network(*layers)
    weights = weights_of(graph)
    found = optimize(graph, REGISTRY, weights, [name])
    assert [(result.name, result.count) for result in found.results] == [(name, 0)]
    assert found.graph == graph
    assert found.results[0].before == found.results[0].after
    assert not rewritten_layers(graph, weights, found)


def test_layers_are_equal_if_what_they_read_was_merged() -> None:
    graph = network(
        layer("a", "scale_shift", "image", None, scale="2.0"),
        layer("b", "scale_shift", "image", None, scale="2.0"),
        layer("c", "unary", "a", None, function="sin"),
        layer("d", "unary", "b", None, function="sin"),
        layer("sum", "element_wise", "c,d", None),
    )
    found = optimize(graph, REGISTRY, weights_of(graph), ["merge_equal_layers"])
    assert set(found.graph.layers) == {"image", "a", "c", "sum", "result"}
    assert found.results[0].count == 2
    shared = network(
        layer("a", "convolution", "image", None, features=3),
        replace(layer("b", "convolution", "image", None, features=3), weights_of="a"),
        layer("sum", "element_wise", "a,b", None),
    )
    found = optimize(shared, REGISTRY, weights_of(shared), ["merge_equal_layers"])
    assert set(found.graph.layers) == {"image", "a", "sum", "result"}


def test_three_permutations_in_a_row_leave_one() -> None:
    graph = network(
        layer("one", "permute", "image", None, axes="0,1,3,2"),
        layer("two", "permute", "one", None, axes="0,1,3,2"),
        layer("three", "permute", "two", None, axes="0,1,3,2"),
    )
    weights = weights_of(graph)
    found = optimize(graph, REGISTRY, weights, ["cancel_permutations"])
    assert len([one for one in found.graph if one.type == "permute"]) == 1
    assert found.results[0].count == 1
    assert pass_effect(graph, found, REGISTRY, weights, OPTIONS).kept


def test_which_constants_are_computed_in_advance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants that another layer reads stay, and large ones are not stored."""
    graph = network(
        layer("scale", "parameter", None, None, shape="1,3,1,1"),
        layer("root", "unary", "scale", None, function="sqrt"),
        replace(layer("twice", "element_wise", "root,scale", None), position=(40, 70)),
        layer("scaled", "element_wise", "image,twice", None, operation="multiply"),
        layer("shifted", "element_wise", "scaled,scale", None),
    )
    weights = weights_of(graph)
    found = optimize(graph, REGISTRY, weights, ["fold_constants"])
    assert set(found.graph.layers) == {"image", "scale", "twice", "scaled", "shifted", "result"}
    assert found.graph["twice"].position == (40, 70)
    assert found.results[0].count == 1
    scale = weights.tensors[WeightKey("scale", "value")]
    np.testing.assert_allclose(found.weights.tensors[WeightKey("twice", "value")], np.sqrt(scale) + scale, rtol=1e-6)
    for most, count in ((3, 1), (2, 0)):
        monkeypatch.setattr(passes, "MAX_CONSTANT", most)
        assert optimize(graph, REGISTRY, weights, ["fold_constants"]).results[0].count == count


def test_each_pass_begins_with_the_traffic_that_the_last_one_left() -> None:
    graph = network(
        layer("same", "identity", "image", None),
        layer("conv", "convolution", "same", None, features=4, kernel="3x3"),
        layer("norm", "batch_normalization", "conv", None),
        layer("act", "activation", "norm", RELU),
        layer("unread", "convolution", "image", None, features=64),
    )
    graph = Graph([*[one for one in graph if one.name != "result"], layer("result", "output", "act")], name="net")
    weights = weights_of(graph)
    found = optimize(graph, REGISTRY, weights)
    assert [result.name for result in found.results] == list(PASSES)
    for one, following in zip(found.results, found.results[1:], strict=False):
        assert following.before == one.after
    assert [result.after.accesses for result in found.results] == [8, 6, 6, 6, 4, 2]
    pixels = 12 * 8 * 4  # bytes of a channel
    kernel, bias, norm = 4 * 3 * 9 * 4, 4 * 4, 4 * 4 * 4
    assert found.results[0].before.bytes == pixels * (3 + 3 + 3 + 4 + 4 + 4 + 4 + 4) + kernel + bias + norm
    assert found.results[-1].after.bytes == pixels * (3 + 4) + kernel + bias
    assert rewritten_layers(graph, weights, found) == {"conv"}


def test_passes_are_chosen_by_name() -> None:
    first, second, *rest = PASSES
    assert chosen() == tuple(PASSES)
    assert chosen([second, first]) == (first, second)
    assert chosen(without=[first]) == (second, *rest)
    assert chosen([first, second], [first]) == (second,)
    for only, without in ((["unroll"], []), ([], ["unroll"]), ([first], ["unroll"])):
        with pytest.raises(DiagnosticError, match="there is no graph pass 'unroll'"):
            chosen(only, without)


# --- effects --------------------------------------------------------------------------------------------------------


def two_inputs() -> Graph:
    return Graph(
        [
            layer("image", "input", dims="12x8x3", scale="2.0"),
            layer("guide", "input", dims="12x8x3", scale="3.0"),
            layer("same", "identity", "image", None),
            layer("conv", "convolution", "same", None, features=3, kernel="1x1"),
            layer("norm", "batch_normalization", "conv", None),
            layer("sum", "element_wise", "norm,guide", None),
            layer("result", "output", "sum"),
        ],
        name="two",
    )


def test_effects_one_after_the_other(tmp_path: Path) -> None:
    graph = two_inputs()
    session = Session(graph, REGISTRY, weights_of(graph), OPTIONS)
    array = np.random.default_rng(1).random((1, 3, 8, 12), np.float32)
    session.set_input("image", array, is_image=True)
    session.set_input("guide", array, is_image=False)
    calls: list[tuple[int, int, str]] = []
    on = {"drop_identities"}
    found = {each.result.name: each for each in pass_effects(session, on, lambda *call: calls.append(call))}
    assert list(found) == list(PASSES)
    assert [number for number, _, _ in calls] == list(range(len(PASSES)))
    assert {total for _, total, _ in calls} == {len(PASSES)}
    assert calls[1][2] == "Drop Identities"
    assert {name for name, each in found.items() if each.on} == on
    assert {name: each.result.count for name, each in found.items() if each.result.count} == {
        "drop_identities": 1,
        "fold_normalizations": 1,
    }
    assert {name for name, each in found.items() if each.effect is not None} == {
        "drop_identities",
        "fold_normalizations",
    }
    start = found["fold_constants"].result.before.accesses
    assert found["drop_identities"].result.after.accesses == start - 2
    for later in list(PASSES)[2:]:  # a pass that is off is tried on the network of those that are on
        assert found[later].result.before.accesses == start - 2
    assert found["fold_normalizations"].result.after.accesses == start - 4
    assert found["fuse_activations"].result.after.accesses == start - 2
    assert all(each.effect.kept for each in found.values() if each.effect is not None)


def test_the_effect_is_measured_on_the_files_that_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = two_inputs()
    weights = weights_of(graph)
    found = optimize(graph, REGISTRY, weights)
    fed: list[dict[str, np.ndarray]] = []
    measure = effect.edit_effect

    def noted(*sessions: Session) -> object:
        fed.extend({name: session.fed(name).array for name in session.fed_layers()} for session in sessions)
        return measure(*sessions)

    monkeypatch.setattr(effect, "edit_effect", noted)
    for name, value in (("a", 0.2), ("b", 0.6)):
        write_image(tmp_path / f"{name}.png", np.full((1, 3, 8, 12), value, np.float32))
    pass_effect(graph, found, REGISTRY, weights, OPTIONS, {"image": tmp_path / "a.png", "guide": tmp_path / "b.png"})
    pass_effect(graph, found, REGISTRY, weights, OPTIONS, {"guide": tmp_path / "b.png"})
    both, other = fed[:2], fed[2:]
    for arrays in both:
        assert arrays["image"].mean() == pytest.approx(0.2, abs=0.01)
        assert arrays["guide"].mean() == pytest.approx(0.6, abs=0.01)
    for arrays in other:
        assert arrays["image"].std() > 0.2
        assert arrays["guide"].mean() == pytest.approx(0.6, abs=0.01)
    np.testing.assert_array_equal(other[0]["image"], other[1]["image"])


# --- a session that follows -----------------------------------------------------------------------------------------


def analysed(*, template: bool = False) -> Graph:
    inside = Template(
        "block",
        (
            layer("x", "template_input"),
            layer("shift", "scale_shift", "x", None, scale="2.0"),
            layer("y", "template_output", "shift", None),
        ),
    )
    middle = (
        layer("block", "template", "conv", None, template="block")
        if template
        else layer("block", "identity", "conv", None)
    )
    layers = [
        layer("image", "input", dims="12x8x3", scale="2.0"),
        layer("same", "identity", "image", None),
        layer("noise", "noise", "same", None, scale="0.05"),
        layer("conv", "convolution", "noise", None, features=3, kernel="1x1"),
        middle,
        layer("norm", "batch_normalization", "block", None),
        layer("result", "output", "norm"),
    ]
    return Graph(layers, name="net", templates=[inside] if template else [])


def results(*sessions: Session) -> Sequence[np.ndarray]:
    return [session.run().outputs["result"] for session in sessions]


@pytest.mark.parametrize("template", [False, True])
def test_a_session_after_passes_follows_every_change(template: bool) -> None:
    graph = analysed(template=template)
    full = Session(graph, REGISTRY, weights_of(graph), RunOptions("emulated", threads=1))
    names = ("drop_identities", "fold_normalizations")
    fast = OptimizedSession(full, names)
    random = np.random.default_rng(0)

    def check() -> Session:
        session = fast.current()
        one, other = results(full, session)
        rounding = 0.05 if full.options.formats else 1e-4
        np.testing.assert_allclose(other, one, rtol=1e-3, atol=rounding * np.abs(one).max())
        return session

    full.set_input("image", random.random((1, 3, 8, 12), np.float32), is_image=True)
    first = check()
    assert "same" not in first.graph
    assert ("norm" in first.graph) == template
    assert fast.current() is first
    full.set_input("image", random.random((1, 3, 8, 12), np.float32), is_image=True)  # the same layer again
    check()
    full.set_input("image", random.random((1, 3, 8, 12), np.float32), is_image=False)  # without the scale
    check()
    for amount in ("0.1", "0.2", "0.05"):
        full.set_param("noise", "scale", amount)
        assert check().graph["noise"].params["scale"] == amount
    full.set_weights(weights_of(graph, 5))
    check()
    full.set_formats({"conv": "float16"})
    assert dict(check().options.formats) == {"conv": "float16"}
    full.set_param("noise", "scale", "0.3")
    full.set_formats({})
    assert dict(check().options.formats) == {}
    edited = graph.copy()
    edited.apply(set_params(edited, {"conv": {"kernel": "3x3"}}))
    full.set_graph(edited)
    full.set_weights(weights_of(edited, 6))
    full.set_formats({"conv": "bfloat16"})
    after = check()
    assert after.graph["conv"].params["kernel"] == "3x3"
    assert dict(after.options.formats) == {"conv": "bfloat16"}
    full.set_param("noise", "scale", "0.1")
    assert check().graph["noise"].params["scale"] == "0.1"


def test_a_session_after_passes_follows_a_parameter_that_the_document_does_not_have() -> None:
    layers = [replace(each, params={}) if each.name == "noise" else each for each in analysed()]
    graph = Graph(layers, name="net")
    full = Session(graph, REGISTRY, weights_of(graph), OPTIONS)
    fast = OptimizedSession(full, ("drop_identities", "fold_normalizations"))
    full.set_input("image", np.full((1, 3, 8, 12), 0.5, np.float32), is_image=True)
    for amount in (None, "0.3", "0.01"):
        if amount is not None:
            full.set_param("noise", "scale", amount)
        one, other = results(full, fast.current())
        np.testing.assert_allclose(other, one, rtol=1e-3, atol=1e-4 * np.abs(one).max())
        assert fast.current().graph["noise"].params.get("scale") == amount
