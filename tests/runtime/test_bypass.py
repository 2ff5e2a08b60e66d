"""Bypassed layers on engines and in exports: as if their readers read what they hand on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from template_networks import nested, seeded

import samples
from designer.files.document import parse_document, read_document, write_document
from designer.files.weights import Weights, required_weights
from designer.graph.bypass import bypass
from designer.graph.commands import set_params
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import BYPASSED, ActivationSpec, Layer, Source
from designer.graph.template_commands import edit_template
from designer.operators.deploy import deploy
from designer.operators.inlining import inline
from designer.operators.inside import InsideInference, feeds_of
from designer.operators.live_cost import layer_work
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.session import Session
from exporters.pytorch import generate_source

pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

ENGINES = ["onnxruntime", "torch"]
IMAGE = np.random.default_rng(1).random((1, 3, 12, 16), dtype=np.float32)


@pytest.fixture(scope="module")
def library():
    return load(entry_points=False)


def network() -> Graph:
    """in -> conv (3 channels, relu) -> add (with in) -> noise -> out"""
    conv = {"features": "3", "kernel": "3x3"}
    return Graph(
        [
            Layer("in", "input", params={"dims": "16x12x3"}),
            Layer("conv", "convolution", inputs=(Source("in"),), params=conv, activation=ActivationSpec("relu")),
            Layer("add", "element_wise", inputs=(Source("conv"), Source("in"))),
            Layer("noise", "noise", inputs=(Source("add"),)),
            Layer("out", "output", inputs=(Source("noise"),)),
        ]
    )


def toggled(graph: Graph, registry, *names: str) -> Graph:
    graph.apply(bypass(graph, Inference(graph, registry), names))
    return graph


def output(graph: Graph, registry, weights: Weights, engine: str) -> np.ndarray:
    session = Session(graph, registry, weights, RunOptions(engine=engine, threads=1))
    session.set_input("in", IMAGE, is_image=False)
    return session.run().outputs["out"]


@pytest.mark.parametrize("engine", ENGINES)
def test_readers_get_what_is_handed_on(library, engine):
    weights = seeded(network(), library)
    assert required_weights(Inference(network(), library))
    graph = toggled(network(), library, "conv", "noise")
    np.testing.assert_array_equal(output(graph, library, weights, engine), IMAGE + IMAGE)
    graph = toggled(graph, library, "add")  # first of two equal inputs: conv, which hands on in
    np.testing.assert_array_equal(output(graph, library, weights, engine), IMAGE)


def test_a_session_follows_the_toggle_and_its_own_parameters(library):
    weights = seeded(network(), library)
    graph = toggled(network(), library, "noise")
    session = Session(graph, library, weights, RunOptions(threads=1))
    session.set_input("in", IMAGE, is_image=False)
    plain = session.run().outputs["out"]
    session.set_param("noise", "scale", "0.5")
    np.testing.assert_array_equal(session.run().outputs["out"], plain)
    graph.apply(set_params(graph, {"noise": {"scale": "0.5"}}))
    session.set_graph(toggled(graph, library, "noise"))
    assert not np.array_equal(session.run().outputs["out"], plain)


def test_exports_and_costs_leave_it_out(library):
    graph = toggled(network(), library, "conv")
    assert {layer.type for layer in deploy(graph, library)} == {"input", "identity", "element_wise", "output"}
    source = generate_source(graph, library, "net")
    assert "Conv2d" not in source
    inference = Inference(graph, library)
    work = layer_work(graph["conv"], inference.read("conv"), inference.states["conv"])
    assert (work.flops, work.learned) == (0, 0)


@pytest.mark.parametrize(("features", "fits"), [("6", True), ("3", False)])
def test_an_attached_activation_decides_what_is_handed_on(library, features, fits):
    """GLU halves the channels: only a convolution of 6 channels gives the 3 of the input."""
    params = {"features": features, "kernel": "3x3"}
    glu = ActivationSpec("glu", {"axis": "1" if fits else "2"})
    layers = [
        Layer("in", "input", params={"dims": "16x12x3"}),
        Layer("conv", "convolution", inputs=(Source("in"),), params=params, activation=glu),
        Layer("out", "output", inputs=(Source("conv"),)),
    ]
    graph = Graph(layers)
    inference = Inference(graph, library)
    assert not inference.diagnostics()
    if not fits:  # as many channels as the input, but half of its height
        with pytest.raises(DiagnosticError, match="no input has its output shape"):
            toggled(graph, library, "conv")
        graph = Graph([replace(each, attributes={BYPASSED: "true"} if each.name == "conv" else {}) for each in layers])
        inference = Inference(graph, library)
        assert [(each.code, each.layer) for each in inference.diagnostics()] == [("bypass", "conv")]
        assert inference.states["out"].because_of == "conv"
        return
    toggled(graph, library, "conv")
    assert not Inference(graph, library).diagnostics()
    assert Inference(graph, library).passed_input("conv") == Source("in")
    np.testing.assert_array_equal(output(graph, library, Weights(), "torch"), IMAGE)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_layer_inside_a_template(library, engine):
    graph, weights = nested(), seeded(nested(), library)
    normal = output(graph, library, weights, engine)
    inside = graph.inside("residual")
    graph.apply(edit_template(graph, "residual", bypass(inside, fed(graph, library, "a"), ["conv_2"])))
    assert not any(layer.bypassed for layer in inline(graph, library))
    assert "conv_2" not in generate_source(graph, library, "net")
    assert not np.allclose(output(graph, library, weights, engine), normal)


def fed(graph: Graph, registry, instance: str) -> InsideInference:
    template = graph.templates[graph[instance].params["template"]]
    feeds = feeds_of(Inference(graph, registry), instance, template.inputs)
    return InsideInference(graph.inside(template.name), registry, feeds)


def test_a_whole_instance(library):
    graph = read_document(samples.path("residual_blocks.xml")).graph
    toggled(graph, library, "group_1")
    flat = inline(graph, library)
    assert flat["group_1"].type == "identity"
    assert flat["group_1"].inputs == graph["group_1"].inputs
    assert not any(name.startswith("group_1.") for name in flat.layers)
    assert any(name.startswith("group_2.") for name in flat.layers)


def test_files_keep_it_and_old_files_stay_as_they_are(library):
    graph = network()
    before = write_document(graph)
    toggled(graph, library, "conv", "add")
    found = parse_document(write_document(graph)).graph
    assert found == graph
    assert {layer.name for layer in found if layer.bypassed} == {"add", "conv"}
    assert write_document(toggled(found, library, "conv", "add")) == before
