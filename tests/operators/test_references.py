"""What is measured against what: the deployed output against the image before noise, or nothing."""

from __future__ import annotations

import pytest

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import BYPASSED, Layer, Source
from designer.operators.references import restorations
from designer.operators.registry import default_registry

REGISTRY = default_registry()


def layer(name: str, kind: str, *inputs: str, **params: str) -> Layer:
    cls = REGISTRY.get(kind)
    assert cls is not None
    return Layer(name, kind, inputs=tuple(map(Source, inputs)), params={**cls().texts(all=False), **params})


def network(**changes: Layer) -> Graph:
    layers = [
        layer("image", "input", dims="24x16x3", tiling="0"),
        layer("first", "noise", "image"),
        layer("second", "noise", "first"),
        layer("conv", "convolution", "second", features="3"),
        layer("mix", "mix", "conv", "image"),
        layer("shown", "output", "mix"),
    ]
    return Graph([changes.pop(item.name, item) for item in layers] + list(changes.values()))


def found(graph: Graph) -> list[tuple[str, str, str]]:
    items = restorations(Inference(graph, REGISTRY), ["shown"])
    return [(item.output, str(item.result), str(item.clean)) for item in items]


def test_the_deployed_output_is_measured_against_what_the_first_noise_reads() -> None:
    assert found(network()) == [("shown", "conv", "image")]


@pytest.mark.parametrize(
    "changes",
    [
        {"first": layer("first", "identity", "image"), "second": layer("second", "identity", "first")},
        {"image": layer("image", "input", dims="24x16x3", tiling="0", scale="2.0")},
        {"image": layer("image", "input", dims="24x16x3", tiling="0", shift="-0.5")},
        {"conv": layer("conv", "convolution", "second", features="4")},
        {"other": layer("other", "input", dims="24x16x3"), "second": layer("second", "noise", "other"),
         "conv": layer("conv", "convolution", "sum", features="3"), "sum": layer("sum", "element_wise", "first", "second")},
        {"shown": layer("shown", "output")},
    ],
    ids=["no noise", "scaled values", "shifted values", "another size", "two clean images", "nothing connected"],
)  # fmt: skip
def test_without_one_clean_image_nothing_is_measured(changes: dict[str, Layer]) -> None:
    assert found(network(**changes)) == []


def test_a_bypassed_noise_disturbs_nothing() -> None:
    first = layer("first", "noise", "image")
    bypassed = Layer(first.name, first.type, first.position, first.inputs, first.params, attributes={BYPASSED: "true"})
    assert found(network(first=bypassed)) == [("shown", "conv", "first")]


def test_only_what_the_clean_image_is_made_of_must_be_plain() -> None:
    """Another input that the network reads, and noise on it, have scales of their own; several noises may read one image."""
    scaled = layer("guide", "input", dims="24x16x3", tiling="0", scale="2.0", shift="-0.5")
    mixed = layer("conv", "convolution", "sum", features="3")
    for name, changes, wanted in (
        ("a guide", {"guide": scaled, "sum": layer("sum", "element_wise", "second", "guide")}, "image"),
        (
            "two noises of one image",
            {"second": layer("second", "noise", "image"), "sum": layer("sum", "element_wise", "first", "second")},
            "image",
        ),
        (
            "an image that was computed",
            {"small": layer("small", "convolution", "image", features="3"), "first": layer("first", "noise", "small"),
             "sum": layer("sum", "identity", "second")},
            "small",
        ),
        (
            "an image that was computed from a guide",
            {"guide": scaled, "both": layer("both", "element_wise", "image", "guide"),
             "first": layer("first", "noise", "both"), "sum": layer("sum", "identity", "second")},
            None,
        ),
        (
            "noise on the guide",
            {"guide": scaled, "dust": layer("dust", "noise", "guide"), "sum": layer("sum", "element_wise", "second", "dust")},
            None,
        ),
    ):  # fmt: skip
        made = found(network(conv=mixed, **changes))
        assert made == ([("shown", "conv", wanted)] if wanted is not None else []), name


def test_outputs_are_measured_in_their_order_and_each_against_its_own_image() -> None:
    graph = network(
        other=layer("other", "input", dims="24x16x3"),
        third=layer("third", "noise", "other"),
        made=layer("made", "convolution", "third", features="3"),
        also=layer("also", "output", "made"),
        plain=layer("plain", "output", "image"),
        noisy=layer("noisy", "output", "second"),
        again=layer("again", "output", "conv"),
    )
    items = restorations(Inference(graph, REGISTRY), ["plain", "again", "noisy", "also", "shown"])
    assert [(item.output, str(item.result), str(item.clean)) for item in items] == [
        ("again", "conv", "image"),
        ("also", "made", "other"),
        ("shown", "conv", "image"),
    ]
