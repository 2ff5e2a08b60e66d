"""New layers, and what links to them are refused for."""

from __future__ import annotations

import pytest

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.operators.default_layers import default_layer
from designer.operators.links import input_port, is_variadic, misfit, network_ends, refusal
from designer.operators.registry import default_registry

REGISTRY = default_registry()
PART = Template("part", (Layer("a", "template_input"), Layer("b", "template_output", inputs=(Source("a"),))))


def made(type_name: str, *templates: Template) -> Layer | None:
    graph = Graph([Layer("convolution_0", "t"), Layer("elu_0", "t")], templates=templates)
    return default_layer(graph, REGISTRY, type_name, (16, 32))


def test_a_new_layer_has_the_defaults_of_its_operator_and_a_free_name() -> None:
    layer = made("convolution")
    assert layer is not None
    assert (layer.name, layer.type, layer.position, layer.activation) == (
        "convolution_1",
        "convolution",
        (16, 32),
        None,
    )
    cls = REGISTRY.get("convolution")
    assert cls is not None
    assert layer.params == cls().texts(all=False) != {}
    assert made("no such operator") is None


def test_an_activation_is_attached_to_a_layer_that_is_named_after_it() -> None:
    layer = made("elu")
    assert layer is not None
    assert (layer.name, layer.type) == ("elu_1", "activation")
    assert layer.activation == ActivationSpec("elu", REGISTRY.activations["elu"]().texts(all=False))
    layer = made("activation")
    assert layer is not None
    assert (layer.name, layer.type) == ("activation_0", "activation")
    assert layer.activation == ActivationSpec("relu", REGISTRY.activations["relu"]().texts(all=False))


def test_an_instance_is_of_the_named_template_or_of_the_only_one() -> None:
    other = Template("other", PART.layers)
    layer = made("template:other", PART, other)
    assert layer is not None
    assert (layer.type, layer.params["template"], layer.position) == ("template", "other", (16, 32))
    assert made("template:none", PART) is None
    for templates, name in (((PART,), "part"), ((PART, other), ""), ((), "")):
        layer = made("template", *templates)
        assert layer is not None
        assert layer.params.get("template", "") == name


def test_ports_of_templates_are_numbered() -> None:
    graph = Graph([Layer("x", "template_input", params={"index": "0"})])
    layer = default_layer(graph, REGISTRY, "template_input", (0, 0))
    assert layer is not None
    assert layer.params["index"] == "1"


@pytest.fixture
def inference() -> Inference:
    graph = Graph(
        [
            Layer("in", "input", params={"dims": "16x12x3"}),
            Layer("small", "input", params={"dims": "9x7x3"}),
            Layer("flat", "flatten", inputs=(Source("in"),)),
            Layer("cat", "concatenation", inputs=(Source("in"), Source("in"))),
            Layer("conv", "convolution", inputs=(Source("in"),)),
            Layer("sum", "element_wise", inputs=(Source("in"), Source("in"))),
            Layer("bad", "convolution", inputs=(Source("in"),), params={"features": "x"}),
            Layer("unknown", "no such type"),
            Layer("out", "output", inputs=(Source("conv"),)),
        ]
    )
    return Inference(graph, REGISTRY)


def test_the_port_of_an_input(inference: Inference) -> None:
    assert [is_variadic(inference, "cat", index) for index in (0, 1, 9)] == [True, True, True]
    assert [is_variadic(inference, "conv", index) for index in (0, 1)] == [False, False]
    port = input_port(inference, "conv", 0)
    assert port is not None
    assert port.name == "x"
    assert input_port(inference, "conv", 1) is None
    assert input_port(inference, "unknown", 0) is None


def test_which_links_are_refused(inference: Inference) -> None:
    assert refusal(inference, Source("in"), "conv", 0) == ""
    assert refusal(inference, Source("in"), "conv", 1) == "this layer does not accept more inputs"
    assert refusal(inference, Source("flat"), "conv", 0).startswith("this layer ")
    assert refusal(inference, Source("bad"), "conv", 0) == "", "its type is not known"


def test_which_rule_a_link_would_break(inference: Inference) -> None:
    assert misfit(inference, Source("in"), "cat", 2) == ""
    broken = misfit(inference, Source("small"), "cat", 2)
    assert broken
    assert misfit(inference, Source("small"), "cat", 1)
    assert misfit(inference, Source("bad"), "cat", 2) == "", "its type is not known"
    assert misfit(inference, Source("small"), "unknown", 0) == ""
    assert misfit(inference, Source("small"), "bad", 0) == ""
    graph = inference.graph
    assert [str(s) for s in graph["cat"].inputs] == ["in", "in"], "nothing changes"


def test_a_link_that_is_moved_is_no_longer_read(inference: Inference) -> None:
    assert misfit(inference, Source("small"), "sum", 1)
    assert misfit(inference, Source("small"), "sum", 1, loose=("sum", 0)) == "", "the other input is open then"
    assert misfit(inference, Source("small"), "sum", 1, loose=("sum", 9))
    assert misfit(inference, Source("small"), "sum", 1, loose=("conv", 0))
    assert misfit(inference, Source("in"), "sum", 1, loose=("sum", 1)) == ""


def test_the_ends_of_a_network(inference: Inference) -> None:
    assert network_ends(inference.graph, REGISTRY, ["conv", "out", "in", "unknown"]) == ["out", "in"]
