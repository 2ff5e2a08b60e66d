"""Bypassed layers: what they hand on, what is refused, and that nothing of them is lost."""

from __future__ import annotations

import pytest
from test_commands import check_reversible
from tiny_operators import tiny_registry

from designer.graph.bypass import bypass
from designer.graph.commands import set_params
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source


@pytest.fixture
def graph() -> Graph:
    """in (3 channels) -> wide (4), same (3); add reads same and in; two gives two outputs."""
    return Graph(
        [
            Layer("in", "tiny_input"),
            Layer("wide", "tiny_convolution", inputs=(Source("in"),)),
            Layer("same", "tiny_convolution", inputs=(Source("in"),), params={"features": "3"}),
            Layer("add", "tiny_add", inputs=(Source("same"), Source("in"))),
            Layer("join", "tiny_join", inputs=(Source("in"), Source("wide"))),
            Layer("two", "tiny_split", inputs=(Source("add"),)),
            Layer("open", "tiny_add", inputs=(Source("in"),)),
        ]
    )


def toggled(graph: Graph, *names: str, ends: tuple[str, ...] = ()) -> Edit:
    return bypass(graph, Inference(graph, tiny_registry()), names, ends=ends)


def test_it_is_a_toggle_that_keeps_everything(graph: Graph) -> None:
    before = graph.copy()
    check_reversible(graph, toggled(graph, "add"))
    layer = graph["add"]
    assert layer.bypassed
    assert (layer.type, layer.inputs) == (before["add"].type, before["add"].inputs)
    graph.apply(toggled(graph, "add"))
    assert graph == before
    graph.apply(toggled(graph, "add"))
    graph.apply(toggled(graph, "add", "same"))
    assert graph["add"].bypassed
    assert graph["same"].bypassed


def test_the_first_input_of_the_outputs_type_is_handed_on(graph: Graph) -> None:
    inference = Inference(graph, tiny_registry())
    assert inference.passed_input("add") == Source("same")
    assert inference.passed_input("join") is None
    assert inference.passed_input("two") is None


@pytest.mark.parametrize(
    ("name", "reason"), [("wide", "no input has its output shape"), ("two", "has 2 outputs"), ("open", "unknown")]
)
def test_a_layer_without_a_fitting_input_is_refused(graph: Graph, name: str, reason: str) -> None:
    with pytest.raises(DiagnosticError, match=reason) as caught:
        toggled(graph, name)
    assert caught.value.diagnostics[0].remedy


def test_ends_of_the_network_are_refused(graph: Graph) -> None:
    with pytest.raises(DiagnosticError, match="is an input or output of the network"):
        toggled(graph, "same", "add", ends=("add",))


def test_shapes_are_still_checked(graph: Graph) -> None:
    inference = Inference(graph, tiny_registry())
    inference.update(graph.apply(bypass(graph, inference, ["same"])))
    assert inference.states["same"].ok
    inference.update(graph.apply(set_params(graph, {"same": {"features": "5"}})))
    (finding,) = inference.states["same"].diagnostics
    assert finding.code == "bypass"
    assert inference.states["add"].because_of == "same"
    inference.update(graph.apply(bypass(graph, inference, ["same"])))
    assert inference.states["same"].ok


@pytest.mark.parametrize("kind", ["template_input", "template_output"])
def test_ports_of_a_template_are_refused(kind: str) -> None:
    inside = Graph(
        [
            Layer("x", "template_input", params={"index": "0"}),
            Layer("y", "template_output", inputs=(Source("x"),), params={"index": "0"}),
        ]
    )
    name = next(layer.name for layer in inside if layer.type == kind)
    with pytest.raises(DiagnosticError, match="is an input or output of the network") as caught:
        toggled(inside, name)
    assert caught.value.diagnostics[0].layer == name
    assert caught.value.diagnostics[0].remedy == "bypass a layer between inputs and outputs"


def test_titles_of_bypassing(graph: Graph) -> None:
    assert toggled(graph, "add").title == "Bypass add"
    edit = toggled(graph, "add", "same")
    assert edit.title == "Bypass 2 layers"
    graph.apply(edit)
    assert toggled(graph, "same").title == "End bypass of same"
    assert toggled(graph, "add", "same").title == "End bypass of 2 layers"
