"""Templates in the domain: ports, shapes, findings, what an edit reaches, and the network without them."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from pathlib import Path

import pytest

import samples
from designer.files.document import parse_document, read_document
from designer.files.weights import WeightKey, required_weights
from designer.graph import commands, template_commands
from designer.graph.diagnostics import DiagnosticError, Severity
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.operators.api import Cost
from designer.operators.inlining import inline, inlined_source
from designer.operators.registry import Registry, load
from designer.operators.template_faults import MAX_DEPTH

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture(scope="module")
def library() -> Registry:
    return load(entry_points=False)


def read(path: Path) -> Graph:
    graph = read_document(path).graph
    assert graph is not None
    return graph


@pytest.fixture
def nested() -> Graph:
    return read(DATA / "good" / "templates.xml")


@pytest.fixture
def blocks() -> Graph:
    return read(samples.path("residual_blocks.xml"))


def block(features: int = 4) -> Template:
    return Template(
        "block",
        (
            Layer("x", "template_input"),
            Layer("conv", "convolution", inputs=(Source("x"),), params={"features": str(features)}),
            Layer("y", "template_output", inputs=(Source("conv"),)),
        ),
    )


def chain(count: int, template: Template, **params: str) -> Graph:
    layers = [Layer("picture", "input", params={"dims": "8x8x4"})]
    for number in range(count):
        source = Source(layers[-1].name)
        layers.append(Layer(f"b{number}", "template", inputs=(source,), params={"template": template.name, **params}))
    layers.append(Layer("end", "output", inputs=(Source(layers[-1].name),)))
    return Graph(layers, templates=[template])


def test_an_instance_has_the_ports_of_its_template(nested: Graph, library: Registry) -> None:
    inference = Inference(nested, library)
    operator = inference.read("c").operator
    assert operator is not None
    assert [port.name for port in operator.input_ports()] == ["x"]
    assert [port.name for port in operator.output_ports()] == ["y", "z"]
    assert [str(t) for t in inference.states["c"].outputs or ()] == ["N x 8 x 12 x 16"] * 2
    assert not [d for d in inference.diagnostics() if d.severity is Severity.ERROR]


def test_ports_are_in_the_order_of_their_index() -> None:
    ports = [("b", "1"), ("a", "1"), ("c", "0"), ("d", "10"), ("e", "")]
    template = Template("t", tuple(Layer(n, "template_input", params={"index": i}) for n, i in ports))
    assert template.inputs == ("c", "e", "a", "b", "d")


def test_weights_are_named_after_instances_or_after_the_template(nested: Graph, library: Registry) -> None:
    keys = set(required_weights(Inference(nested, library)))
    assert {k.layer for k in keys} == {
        "head",
        "a",  # of the attached activation
        "a.conv_1",
        "a.conv_2",
        "residual.conv_1",  # shared by b and, inside of c, by r2
        "residual.conv_2",
        "c.r.conv_1",
        "c.r.conv_2",
    }
    assert WeightKey("a", "activation_slope") in keys


def test_cost_and_weights_of_an_instance_are_those_of_its_layers(blocks: Graph, library: Registry) -> None:
    whole, flat = Inference(blocks, library), Inference(inline(blocks, library), library)

    def total(inference: Inference, what: str) -> int:
        found = 0
        for name, state in inference.states.items():
            operator = inference.read(name).operator
            assert operator is not None
            assert state.outputs is not None
            found += getattr(operator.cost(state.inputs, state.outputs), what)
        return found

    assert total(whole, "flops") == total(flat, "flops") > 0
    assert total(whole, "parameters") == total(flat, "parameters") == 94_243


def test_work_and_bytes_of_an_instance_are_those_of_its_layers(blocks: Graph, library: Registry) -> None:
    whole, flat = Inference(blocks, library), Inference(inline(blocks, library), library)
    costs = []
    for name, state in flat.states.items():
        if name.startswith("group_1.") and flat.graph[name].type != "identity":
            read = flat.read(name)
            before = state.before_activation
            assert read.operator is not None
            assert before is not None
            costs.append(read.operator.cost(state.inputs, (before,)))
            if read.activation is not None:
                costs.append(read.activation.cost((before,), state.outputs))
    state, instance = whole.states["group_1"], whole.read("group_1").operator
    assert instance is not None
    total = instance.cost(state.inputs, state.outputs)
    for field in fields(Cost):
        assert getattr(total, field.name) == sum(getattr(cost, field.name) for cost in costs) > 0


def test_inlined_layers_have_scoped_names_and_the_same_shapes(nested: Graph, library: Registry) -> None:
    flat = inline(nested, library)
    assert not flat.templates
    assert {"a.conv_1", "c.r.conv_2", "c.r2", "c.z"} <= set(flat.layers)
    states, whole = Inference(flat, library).states, Inference(nested, library).states
    for name, state in whole.items():
        for index, kind in enumerate(state.outputs or ()):
            operator = Inference(nested, library).read(name).operator
            assert operator is not None
            port = operator.output_ports()[index].name
            source = inlined_source(nested, Source(name, port))
            outputs = states[source.layer].outputs
            assert outputs is not None
            assert outputs[0] == kind
    assert flat["c.r2.conv_1"].weights_name == "residual.conv_1"
    assert flat["c.r.conv_1"].weights_name == "c.r.conv_1"
    assert flat["out"].inputs == (Source("c.z"),)


def test_a_graph_without_instances_is_left_alone(library: Registry) -> None:
    graph = read(samples.path("denoiser.xml"))
    assert inline(graph, library) == graph


def test_an_error_inside_stands_at_the_instance_and_names_the_layer(library: Registry) -> None:
    graph = chain(2, block())
    broken = template_commands.edit_template(
        graph, "block", commands.set_params(graph.inside("block"), {"conv": {"kernel": "9x9", "padding": "valid"}})
    )
    history = History(graph)
    inference = Inference(graph, library)
    history.subscribe(lambda change: inference.update(change) and None)
    assert not inference.diagnostics()
    history.commit(broken)
    first, *more = inference.diagnostics()
    assert not more
    assert (first.code, first.layer, first.template, first.inner) == ("shape-mismatch", "b0", "block", "conv")
    assert "in the template 'block', layer 'conv': kernel 9x9" in first.message
    assert inference.states["b1"].because_of == "b0"
    history.undo()
    assert not inference.diagnostics()


def test_an_edit_of_a_template_infers_its_instances_again_and_nothing_else(library: Registry) -> None:
    graph = chain(3, block())
    other = replace(block(), name="other")
    history = History(graph)
    inference = Inference(graph, library)
    history.subscribe(lambda change: inference.update(change) and None)
    history.commit(template_commands.set_template(graph, other))
    assert inference.last_inferred == 0
    edit = commands.set_params(graph.inside("block"), {"conv": {"features": "6"}})
    history.commit(template_commands.edit_template(graph, "block", edit))
    assert inference.last_inferred == 4  # three instances and the output
    assert str((inference.states["end"].outputs or ())[0]) == "N x 6 x 8 x 8"
    assert inference.states == Inference(graph, library).states
    history.undo()
    assert inference.states == Inference(graph, library).states


def test_a_template_inside_a_template_reaches_all_instances(blocks: Graph, library: Registry) -> None:
    history = History(blocks)
    inference = Inference(blocks, library)
    history.subscribe(lambda change: inference.update(change) and None)
    edit = commands.set_params(blocks.inside("residual_block"), {"conv_2": {"features": "16"}})
    history.commit(template_commands.edit_template(blocks, "residual_block", edit))
    found = inference.diagnostics()
    assert [(d.layer, d.template, d.inner) for d in found] == [("group_1", "residual_block", "add")]
    assert inference.states == Inference(blocks, library).states
    history.undo()
    assert not inference.diagnostics()


def test_a_missing_template_is_known_as_soon_as_it_is_there(library: Registry) -> None:
    graph = chain(1, block())
    history = History(graph)
    history.commit(commands.set_params(graph, {"b0": {"template": "later"}}))
    inference = Inference(graph, library)
    history.subscribe(lambda change: inference.update(change) and None)
    finding = next(d for d in inference.diagnostics() if d.code == "unknown-template")
    assert (finding.layer, finding.parameter) == ("b0", "template")
    history.commit(template_commands.set_template(graph, replace(block(), name="other")))
    (finding,) = (d for d in inference.diagnostics() if d.code == "unknown-template")
    assert finding.remedy == "choose one of 'block', 'other'"  # those that there are now
    history.undo()
    assert inference.diagnostics() == Inference(graph, library).diagnostics()
    history.commit(template_commands.set_template(graph, replace(block(), name="later")))
    assert inference.states["end"].ok
    history.undo()
    assert not inference.states["b0"].ok


def test_a_name_that_belongs_inside_an_instance_is_refused(library: Registry) -> None:
    graph = chain(1, block())
    history = History(graph)
    inference = Inference(graph, library)
    history.subscribe(lambda change: inference.update(change) and None)
    history.commit(commands.add_layer(graph, Layer("b0.conv", "identity", inputs=(Source("picture"),))))
    assert [d.code for d in inference.diagnostics()] == ["template-name-clash"]
    with pytest.raises(DiagnosticError, match="template-name-clash"):
        inline(graph, library)
    history.undo()
    assert not inference.diagnostics()
    for name in ("b0conv", "b", "b1.conv", "b01.conv"):
        history.commit(commands.add_layer(graph, Layer(name, "identity", inputs=(Source("picture"),))))
        assert not inference.diagnostics(), name
        assert not Inference(graph, library).diagnostics(), name


def test_shared_weights_must_have_one_shape(library: Registry) -> None:
    graph = chain(2, block(6), shared_weights="true")
    found = Inference(graph, library).diagnostics()
    assert [(d.code, d.layer, d.parameter) for d in found] == [("shared-shape", "b1", "shared_weights")]
    assert not Inference(chain(2, block(4), shared_weights="true"), library).diagnostics()


OWNERS = {  # templates, whether the instance shares weights, and the layer whose tensors it then has; * is the instance
    ("inner", True): "inner.conv",
    ("inner", False): "*.conv",
    ("apart", True): "apart.t.conv",  # with an instance of inner that has weights of its own
    ("apart", False): "*.t.conv",
    ("sharing", True): "inner.conv",  # with an instance of inner that shares the weights of inner
    ("sharing", False): "inner.conv",
    ("deep", True): "inner.conv",  # with an instance of sharing
    ("deep", False): "inner.conv",
    ("far", True): "apart.t.conv",  # with an instance of apart that shares
    ("far", False): "apart.t.conv",
}


def around(name: str, used: str, shared: str = "false") -> Template:
    params = {"template": used, "shared_weights": shared}
    return Template(
        name,
        (
            Layer("x", "template_input"),
            Layer("t", "template", inputs=(Source("x"),), params=params),
            Layer("y", "template_output", inputs=(Source("t"),)),
        ),
    )


def test_whatever_shares_a_tensor_needs_one_shape_of_it(library: Registry) -> None:
    """Also an instance that itself has weights of its own, but uses a template whose weights are shared."""
    templates = [
        replace(block(6), name="inner"), around("apart", "inner"), around("sharing", "inner", "true"),
        around("deep", "sharing"), around("far", "apart", "true"),
    ]  # fmt: skip
    for (one, first), (other, second) in product(OWNERS, OWNERS):
        layers = [Layer("picture", "input", params={"dims": "8x8x4"})]
        for name, used, shared in (("a", one, first), ("b", other, second)):
            params = {"template": used, "shared_weights": str(shared).lower()}
            layers.append(Layer(name, "template", inputs=(Source(layers[-1].name),), params=params))
        graph = Graph([*layers, Layer("end", "output", inputs=(Source("b"),))], templates=templates)
        found = [(d.code, d.layer) for d in Inference(graph, library).diagnostics() if d.severity is Severity.ERROR]
        shares = OWNERS[one, first] == OWNERS[other, second] and "*" not in OWNERS[one, first]
        assert found == [("shared-shape", "b")] * shares, (one, first, other, second)


def test_shared_weights_cannot_have_the_name_of_a_layer(library: Registry) -> None:
    graph = chain(1, block(), shared_weights="true")
    graph.apply(commands.add_layer(graph, Layer("block", "identity", inputs=(Source("picture"),))))
    assert "template-name-clash" in {d.code for d in Inference(graph, library).diagnostics()}


def test_only_an_instance_that_shares_the_weights_of_a_template_can_have_its_name(library: Registry) -> None:
    graph = chain(1, block(4), shared_weights="true")
    history = History(graph)
    inference = Inference(graph, library)
    history.subscribe(lambda change: inference.update(change) and None)
    shared = replace(graph["b0"], name="block", inputs=(Source("picture"),))
    history.commit(commands.add_layer(graph, shared))
    assert not inference.diagnostics()
    for key, value in (("shared_weights", "false"), ("template", "another")):
        history.commit(commands.set_params(graph, {"block": {key: value}}))
        assert [d.layer for d in inference.diagnostics() if d.code == "template-name-clash"] == ["b0"]
        history.undo()
        assert not inference.diagnostics()


def test_what_nothing_uses_only_warns(library: Registry) -> None:
    graph = chain(1, block())
    graph.apply(template_commands.set_template(graph, Template("empty")))
    (finding,) = Inference(graph, library).diagnostics()
    assert (finding.severity, finding.code, finding.template) == (
        Severity.WARNING,
        "template-without-output",
        "empty",
    )


def test_a_warning_inside_is_told_and_stops_nothing(library: Registry) -> None:
    layers = [replace(x, params={**x.params, "colour": "red"}) if x.name == "conv" else x for x in block().layers]
    inference = Inference(chain(1, Template("block", tuple(layers))), library)
    (finding,) = inference.diagnostics()
    assert (finding.severity, finding.code, finding.inner) == (Severity.WARNING, "unknown-parameter", "conv")
    assert inference.states["end"].ok


def test_attached_activations_of_instances_and_ports_count(library: Registry) -> None:
    template = block()
    layers = [replace(x, activation=ActivationSpec("prelu")) if x.name == "y" else x for x in template.layers]
    graph = chain(1, Template("block", tuple(layers)))
    graph.apply(commands.set_activation(graph, ["b0"], ActivationSpec("prelu")))
    keys = required_weights(Inference(graph, library))
    assert {WeightKey("b0.y", "activation_slope"), WeightKey("b0", "activation_slope")} <= set(keys)


def test_a_thousand_instances_are_inferred_quickly(library: Registry, blocks: Graph) -> None:
    graph = chain(1000, block())
    inference = Inference(graph, library)
    assert inference.states["end"].ok
    body = inference.read("b0").operator
    assert body is inference.read("b0").operator
    assert len(required_weights(inference)) == 2000


@pytest.mark.parametrize(("levels", "codes"), [(MAX_DEPTH, []), (MAX_DEPTH + 1, ["template-too-large"])])
def test_templates_are_in_templates_down_to_the_limit(library: Registry, levels: int, codes: list[str]) -> None:
    templates = []
    for level in range(levels):
        inside = "template" if level + 1 < levels else "identity"
        layers = (
            Layer("x", "template_input"),
            Layer(
                "inside",
                inside,
                (160, 0),
                (Source("x"),),
                {"template": f"t{level + 1}"} if inside != "identity" else {},
            ),
            Layer("y", "template_output", (320, 0), (Source("inside"),)),
        )
        templates.append(Template(f"t{level}", layers))
    graph = Graph(
        [
            Layer("in", "input", params={"dims": "8x8x3"}),
            Layer("all", "template", (160, 0), (Source("in"),), {"template": "t0"}),
            Layer("out", "output", (320, 0), (Source("all"),)),
        ],
        templates=templates,
    )
    assert [d.code for d in Inference(graph, library).diagnostics()] == codes


def test_a_bomb_is_refused_at_once(library: Registry) -> None:
    data = (DATA / "bad" / "template-too-large__bomb.xml").read_bytes()
    graph = parse_document(data).graph
    assert graph is not None
    assert [d.code for d in Inference(graph, library).diagnostics()] == ["template-too-large"]
    assert inline(graph, library)["b"].type == "template"


def test_the_weights_of_an_instance_have_the_name_of_the_template_that_shares_them(library: Registry) -> None:
    outer = Template(
        "outer",
        (
            Layer("x", "template_input"),
            Layer("own", "template", inputs=(Source("x"),), params={"template": "block"}),
            Layer(
                "common", "template", inputs=(Source("own"),), params={"template": "block", "shared_weights": "true"}
            ),
            Layer("y", "template_output", inputs=(Source("common"),)),
        ),
    )
    made = Layer("o", "template", inputs=(Source("picture"),), params={"template": "outer"})
    graph = Graph([Layer("picture", "input", params={"dims": "8x8x4"}), made], templates=[block(), outer])
    inference = Inference(graph, library)
    operator = inference.read("o").operator
    assert operator is not None
    names = [weight.name for weight in operator.weights(inference.states["o"].inputs)]
    assert names == ["own.conv.kernel", "own.conv.bias", "block.conv.kernel", "block.conv.bias"]
