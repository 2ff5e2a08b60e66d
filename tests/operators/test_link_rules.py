"""Which inputs a layer has, and why one cannot read the output of another layer."""

from __future__ import annotations

import pytest

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.operators.links import input_port, is_variadic, misfit, network_ends, open_sides, port_name, refusal
from designer.operators.registry import default_registry

REGISTRY = default_registry()


def layer(name: str, type: str, inputs: str = "", activation: ActivationSpec | None = None, **params: str) -> Layer:
    """A layer; `inputs` are the layers that it reads, `-` for an open input."""
    sources = tuple(None if text == "-" else Source(*text.split(":")) for text in inputs.split())
    return Layer(name, type, inputs=sources, params=params, activation=activation)


def network(*more: Layer) -> Inference:
    """Images of two sizes, a vector, integers, and layers that read them."""
    layers = [
        layer("image", "input", dims="8x6x4"),
        layer("small", "input", dims="4x3x4"),
        layer("vector", "tensor_input", shape="5"),
        layer("ids", "tensor_input", shape="5", dtype="int64"),
        layer("conv", "convolution", "image", features="3"),
        layer("sum", "element_wise", "image image image"),
        layer("pair", "element_wise", "image -"),
        layer("product", "matmul", "vector vector"),
        layer("half", "matmul", "vector"),
        layer("late", "element_wise", "- image image"),
        layer("gap", "element_wise", "image - image"),
        layer("gaps", "concatenation", "image - - image", axis="1"),
        layer("unknown", "no_such_type", "image"),
        layer("open", "convolution", "-"),
        layer("gated", "identity", "image", ActivationSpec("glu", {"axis": "1"})),
        layer("bent", "flatten", "image", ActivationSpec("relu")),
        layer("joined", "concatenation", "image image", axis="1"),
        layer("y", "output", "conv"),
    ]
    return Inference(Graph([*layers, *more]), REGISTRY.for_graph(Graph([*layers, *more])))


def test_inputs_beyond_the_ports_belong_to_a_variadic_one() -> None:
    inference = network()
    ports = {
        name: [getattr(input_port(inference, name, index), "name", None) for index in range(4)]
        for name in ("conv", "sum", "image", "unknown", "joined", "product")
    }
    assert ports["conv"] == ["x", None, None, None]
    assert ports["image"] == ports["unknown"] == [None] * 4
    assert ports["sum"][1] is not None
    assert ports["sum"][1:] == [ports["sum"][1]] * 3
    assert ports["product"][2:] == [None, None]
    assert len(set(ports["product"][:2])) == 2
    assert [is_variadic(inference, "sum", index) for index in (0, 1, 5)][1:] == [True, True]
    assert not is_variadic(inference, "conv", 0)
    assert not is_variadic(inference, "conv", 3)
    assert not is_variadic(inference, "unknown", 0)


def test_links_of_a_variadic_port_are_numbered_from_the_second_on() -> None:
    port = input_port(network(), "sum", 1)
    assert port is not None
    assert [port_name(port, number) for number in range(3)] == [port.name, f"{port.name} 2", f"{port.name} 3"]


@pytest.mark.parametrize(
    ("source", "consumer", "index", "words"),
    [
        ("image", "conv", 0, ""),
        ("image", "conv", 1, "this layer does not accept more inputs"),
        ("vector", "conv", 0, "this layer needs rank 4 at 'x', not N x 5 (rank 2)"),
        ("ids", "product", 0, "this layer needs float"),
        ("image", "sum", 7, ""),
        ("image", "image", 0, "this layer does not accept more inputs"),
        ("unknown", "conv", 0, ""),
    ],
)
def test_why_an_input_rejects_a_tensor(source: str, consumer: str, index: int, words: str) -> None:
    found = refusal(network(), Source(source), consumer, index)
    assert found == words or (words.endswith("float") and found.startswith(words))


SIZES = "shapes N x 4 x 3 x 4 and N x 4 x 6 x 8 cannot be broadcast: 3 and 6 differ"


@pytest.mark.parametrize(
    ("source", "consumer", "index", "loose", "words"),
    [
        ("image", "sum", 1, None, ""),
        ("small", "sum", 1, None, "differ"),
        ("small", "sum", 3, None, "differ"),
        ("small", "sum", 0, None, "differ"),
        ("small", "pair", 0, None, ""),  # it only replaces the link that is there
        ("small", "pair", 1, None, "differ"),
        ("small", "pair", 1, ("pair", 0), ""),  # the link that is moved there
        ("small", "sum", 1, ("sum", 2), "differ"),
        ("small", "sum", 1, ("pair", 0), "differ"),
        ("small", "joined", 0, None, "axis"),
        ("image", "joined", 1, ("joined", 1), ""),
        ("small", "open", 0, None, ""),
        ("small", "unknown", 0, None, ""),
        ("unknown", "sum", 0, None, ""),
        ("vector", "gated", 0, None, "5"),
        ("ids", "half", 0, None, ""),  # another input is missing, which is not about the link
        ("small", "late", 2, None, ""),  # its first port is open
        ("conv", "gated", 0, None, "3"),
        ("ids", "bent", 0, None, "needs float32 at 'x', not int64"),  # says its activation
        ("vector", "bent", 0, None, ""),
        ("small", "gap", 2, None, "differ"),  # an open input of a variadic port is none that is missing
        ("small", "gap", 1, None, "differ"),
        ("small", "gaps", 3, None, "axis"),
        ("small", "gaps", 2, None, "axis"),
        ("conv", "gaps", 1, None, ""),
        ("small", "gaps", 0, None, "axis"),
    ],
)
def test_the_rule_that_a_link_would_break(
    source: str, consumer: str, index: int, loose: tuple[str, int] | None, words: str
) -> None:
    inference = network()
    before = inference.graph.copy()
    found = misfit(inference, Source(source), consumer, index, loose)
    if words:
        assert words in found
    else:
        assert found == ""
    assert inference.graph == before


def test_a_link_that_is_put_back_is_never_wrong() -> None:
    """Its layer has an error already, which is not about the link that is moved."""
    wrong = layer("wrong", "element_wise", "image small")
    inference = network(wrong)
    assert misfit(inference, Source("small"), "wrong", 1, ("wrong", 1)) == ""
    assert misfit(inference, Source("image"), "wrong", 0, ("wrong", 0)) == ""
    assert "differ" in misfit(inference, Source("small"), "wrong", 1)
    assert "differ" in misfit(inference, Source("small"), "wrong", 1, ("wrong", 5))


def test_ends_are_inputs_and_outputs_of_the_network() -> None:
    inference = network()
    names = list(inference.graph.layers)
    assert network_ends(inference.graph, REGISTRY, names) == ["image", "small", "vector", "ids", "y"]
    assert network_ends(inference.graph, REGISTRY, ["y", "conv", "image"]) == ["y", "image"]


@pytest.mark.parametrize(
    ("added", "sides"),
    [
        (layer("new", "identity"), (True, True)),
        (layer("new", "input"), (False, True)),
        (layer("new", "no_such_type"), (True, True)),
        (layer("new", "template", template="both"), (True, True)),
        (layer("new", "template", template="given"), (False, True)),
        (layer("new", "template", template="sink"), (True, False)),
        (layer("new", "template", template="alone"), (False, False)),
        (layer("new", "template", template="nowhere"), (True, True)),
        (layer("new", "template"), (True, True)),
        (layer("new", "identity", template="alone"), (True, True)),
    ],
)
def test_an_instance_has_the_sides_of_its_template_and_other_layers_those_of_their_operators(
    added: Layer, sides: tuple[bool, bool]
) -> None:
    port_in, port_out = layer("x", "template_input"), layer("y", "template_output")
    parts = {"both": (port_in, port_out), "given": (port_out,), "sink": (port_in,), "alone": ()}
    graph = Graph([], templates=[Template(name, ports) for name, ports in parts.items()])
    assert open_sides(graph, REGISTRY, added) == sides
