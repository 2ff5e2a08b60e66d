"""The network as engines and exporters see it, as a recorded file: what stays of a document with bypassed layers and templates."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recorded import changes, check_recorded
from runtime_networks import RELU, layer

from designer.files.document import write_document
from designer.graph.commands import set_params
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import BYPASSED, FROZEN, Foreign, Frame
from designer.graph.template import Template
from designer.operators.inlining import inline
from designer.operators.registry import Registry, load


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load(entry_points=False)


def off(made, **attributes):
    return replace(made, attributes={BYPASSED: "true", **attributes})


def document() -> Graph:
    """Bypassed layers in a row, of the second input, with an activation, of a port, and that cannot pass an input."""
    inside = (
        layer("x", "template_input"),
        off(layer("scaled", "scale_shift", "x", RELU, scale="2"), vendor="inside"),
        layer("y", "template_output", "scaled"),
    )
    plain = (
        layer("x", "template_input"),
        layer("sin", "unary", "x", function="sin"),
        layer("made", "template_output", "sin"),
    )
    layers = [
        layer("image", "input", dims="8x8x4"),
        off(layer("one", "scale_shift", "image", RELU, scale="3"), **{FROZEN: "true", "vendor": "kept"}),
        off(layer("two", "convolution", "one", features="4", kernel="3x3")),
        layer("halves", "split", "two", parts="2"),
        off(layer("port", "unary", "halves:y1", function="sin")),
        layer("mean", "global_pooling", "two"),
        off(layer("second", "element_wise", "mean,two", operation="multiply")),
        off(layer("fixed", "convolution", "second", features="6", kernel="3x3")),
        off(layer("parts", "split", "second", parts="2")),
        off(layer("whole", "template", "port", template="plain")),
        layer("used", "template", "whole:made", template="plain"),
        off(layer("after", "unary", "whole:made", function="cos")),
        layer("again", "template", "used:made", template="inner"),
        replace(layer("sum", "element_wise", "again,after", operation="add"), children=(Foreign("<vendor:x />"),)),
        layer("result", "output", "sum"),
        off(layer("result_2", "output", "fixed")),
        layer("result_3", "output", "parts:y1"),
    ]
    graph = Graph(
        layers,
        name="net",
        attributes={"vendor": "root"},
        foreign=[Foreign("<other />")],
        frames=[Frame("f1", "a frame", "more text", "#ff8800", (0, 0, 64, 64))],
        templates=[Template("plain", plain), Template("inner", inside)],
    )
    graph.properties["notes"] = "of the document"
    return graph


def test_what_engines_see_of_a_document_is_as_recorded(registry: Registry) -> None:
    graph = document()
    before = write_document(graph)
    flat = inline(graph, registry)
    none = inline(graph, registry, lambda template: False)
    found = [f"{d.severity.name.lower()} {d.layer}: {d.code}" for d in Inference(flat, registry).diagnostics()]
    texts = [write_document(each).decode() for each in (flat, none)]
    parts = ["all templates", texts[0], *found, "", "only templates with bypassed layers"]
    check_recorded("inlined.txt", "\n".join([*parts, changes(texts[0], texts[1])]))
    assert write_document(graph) == before


def test_readers_of_an_output_that_is_renamed_are_checked_again(registry: Registry) -> None:
    """The other template yields the same tensor under another name."""
    bodies = {name: (layer("x", "template_input"), layer(name, "template_output", "x")) for name in ("left", "right")}
    templates = [Template(name, layers) for name, layers in bodies.items()]
    layers = [
        layer("image", "input", dims="8x8x4"),
        layer("used", "template", "image", template="left"),
        layer("reader", "unary", "used:left", function="sin"),
        layer("result", "output", "reader"),
    ]
    graph = Graph(layers, templates=templates)
    inference = Inference(graph, registry)
    for name in ("right", "left", "right"):
        inference.update(graph.apply(set_params(graph, {"used": {"template": name}})))
        fresh = Inference(graph, registry).diagnostics()
        assert inference.diagnostics() == fresh
        assert bool(fresh) == (name == "right")
