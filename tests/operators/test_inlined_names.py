"""Layers of the network without templates and those of the document: their names, declarations, tensors and types."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from operator_oracles import REGISTRY

from designer.graph import commands, template_commands
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import BYPASSED, Layer, Source
from designer.graph.template import Template
from designer.operators import inlining
from designer.operators.deploy import deploy, without_analysis, without_observers
from designer.operators.inlining import declarations, inline, inlined, inlined_source, is_flat, renamed_path
from designer.operators.inside import InsideInference, feeds_of
from designer.operators.templates import TemplateLookup


def layer(name: str, kind: str, *inputs: str, bypassed: bool = False, **params: object) -> Layer:
    sources = tuple(Source.parse(text) for text in inputs)
    attributes = {BYPASSED: "true"} if bypassed else {}
    return Layer(name, kind, inputs=sources, params={k: str(v) for k, v in params.items()}, attributes=attributes)


def port(name: str, index: int = 0) -> Layer:
    return layer(name, "template_input", index=index)


def document() -> Graph:
    """Instances of two templates, of which one uses the other twice; dots in names; an instance that is passed through."""
    part = Template(
        "part",
        (
            port("x"),
            layer("conv", "convolution", "x", features=4, kernel="1x1"),
            layer("conv.b", "unary", "conv", function="abs"),
            layer("y", "template_output", "conv.b", index=0),
            layer("z", "template_output", "conv", index=1),
        ),
    )
    whole = Template(
        "whole",
        (
            port("a"),
            port("b", 1),
            layer("one", "template", "a", template="part"),
            layer("two", "template", "one:z", template="part"),
            layer("sum", "element_wise", "two", "b"),
            layer("r", "template_output", "sum"),
        ),
    )
    layers = [
        layer("image", "input", dims="8x6x3"),
        layer("p", "template", "image", template="part"),
        layer("p2", "template", "p:z", template="part"),
        layer("w", "template", "p2", "p", template="whole"),
        layer("v", "template", "w", "w", template="whole"),
        layer("off", "template", "v", "w", template="whole", bypassed=True),
        layer("end", "output", "off"),
    ]
    return Graph(layers, templates=[part, whole])


def edits(graph: Graph) -> Iterator[tuple[str, Edit]]:
    for old, new in (("p", "other"), ("p2", "p.2"), ("w", "a.long.name"), ("image", "picture"), ("off", "bypass")):
        yield f"{old} to {new}", commands.rename_layer(graph, old, new)
    for template, old, new in (
        ("part", "conv", "kernel"),
        ("part", "conv.b", "b"),
        ("whole", "one", "first.of.two"),
        ("whole", "sum", "s"),
        ("whole", "a", "left"),
    ):
        inner = commands.rename_layer(graph.inside(template), old, new)
        yield f"{template} {old} to {new}", template_commands.edit_template(graph, template, inner)
    for instance, name, template, old, new in (  # at once, with shorter and with longer names
        ("w", "a.long.name", "whole", "one", "u"),
        ("w", "a.long.name", "part", "conv", "kernel"),
        ("p2", "q", "part", "conv.b", "bias.of.conv"),
    ):
        first, after = commands.rename_layer(graph, instance, name), graph.copy()
        after.apply(first)
        inner = commands.rename_layer(after.inside(template), old, new)
        both = first.then(template_commands.edit_template(after, template, inner))
        yield f"{instance} to {name}, {template} {old} to {new}", both


@pytest.mark.parametrize("number", range(13))
def test_a_path_is_renamed_as_its_layer_is(number: int) -> None:
    """The layers of the network without templates have the same order before and after."""
    graph = document()
    title, edit = list(edits(graph))[number]
    before = list(inline(graph, REGISTRY).layers)
    found = {path: renamed_path(graph, edit, path) for path in [*before, "nothing", "nothing.inside", "p.nothing"]}
    graph.apply(edit)
    after = list(inline(graph, REGISTRY).layers)
    assert len(before) == len(after)
    unlike = {path for path in found if path not in before}
    assert {path: found[path] for path in unlike} == {
        "nothing": "nothing",
        "nothing.inside": "nothing.inside",
        "p.nothing": "other.nothing" if title == "p to other" else "p.nothing",
    }
    if [found[path] for path in before] != after:  # the order follows the names
        assert sorted(found[path] for path in before) == sorted(after)
        assert sum(found[path] != path for path in before) > 0
    kinds = {new: made.type for new, made in inline(graph, REGISTRY).layers.items()}
    again = document()
    assert {found[path]: made.type for path, made in inline(again, REGISTRY).layers.items()} == kinds


def test_each_layer_has_its_declaration() -> None:
    graph = document()
    flat = inline(graph, REGISTRY)
    found = declarations(graph)
    assert set(found) == set(flat.layers)
    for name, (template, declared) in found.items():
        assert name == declared.name or name.endswith(f".{declared.name}"), name
        layers = graph.templates[template].layers if template else tuple(graph)
        assert any(declared is each for each in layers), name
    assert found["p"].template == ""
    assert found["p.conv.b"].template == "part"
    assert found["w.one"].template == "whole"
    assert found["v.two.conv"].template == "part"
    assert "off.sum" not in found
    loop = Template("loop", (port("x"), layer("again", "template", "x", template="loop")))
    assert sorted(declarations(Graph([layer("i", "template", template="loop")], templates=[loop]))) == [
        "i",
        "i.again",
        "i.x",
    ]


@pytest.mark.parametrize(
    ("source", "inner"),
    [
        ("p", "p"),
        ("p:y", "p"),
        ("p:z", "p.z"),
        ("p:gone", "p:gone"),
        ("w:r", "w"),
        ("image:y", "image:y"),
        ("gone:z", "gone:z"),
    ],
)
def test_the_tensor_of_an_instance_without_templates(source: str, inner: str) -> None:
    assert inlined_source(document(), Source.parse(source)) == Source.parse(inner)


def test_types_inside_of_an_instance_are_those_of_the_network_without_templates() -> None:
    graph = document()
    outer = Inference(graph, TemplateLookup(REGISTRY, graph))
    flat = inlined(outer)
    assert not outer.diagnostics()
    for instance in ("p", "p2", "w", "v"):
        template = graph.templates[graph[instance].params["template"]]
        feeds = feeds_of(outer, instance, template.inputs)
        assert list(feeds) == list(template.inputs)
        inside = InsideInference(graph.inside(template.name), REGISTRY, feeds)
        for name in inside.graph.layers:
            if inside.graph[name].type == "template":
                continue
            found, expected = inside.states[name].outputs, flat.states[f"{instance}.{name}"].outputs
            assert found == expected, (instance, name)
    assert feeds_of(outer, "image", ("x",)) == {}
    assert feeds_of(outer, "gone", ("x",)) == {}


def test_types_that_are_not_known_are_notes_until_they_are() -> None:
    graph = document().inside("whole")
    image = Inference(document(), TemplateLookup(REGISTRY, document())).states["p"].outputs
    assert image is not None
    inference = InsideInference(graph, REGISTRY)
    assert [(d.code, d.layer, d.severity.name) for d in inference.diagnostics()] == [
        ("unknown-feed", "a", "INFO"),
        ("unknown-feed", "b", "INFO"),
    ]
    changed = inference.feed({"a": image[0]})
    assert {"a", "one", "two"} <= changed
    assert [d.layer for d in inference.diagnostics()] == ["b"]
    assert inference.feed({"a": image[0]}) == frozenset()
    assert {"b", "sum", "r"} <= inference.feed({"a": image[0], "b": image[0]})
    assert [str(d) for d in inference.diagnostics()] == []
    assert inference.states["sum"].outputs == (image[0],)
    assert "a" in inference.feed({"b": image[0]})
    assert [d.layer for d in inference.diagnostics()] == ["a"]


def test_what_is_flat_is_left_as_it_is() -> None:
    flat = Graph([layer("image", "input"), layer("end", "output", "image")])
    inference = Inference(flat, TemplateLookup(REGISTRY, flat))
    assert inlined(inference) is inference
    assert [is_flat(graph) for graph in (flat, document())] == [True, False]
    assert not is_flat(Graph([layer("image", "input"), layer("a", "identity", "image", bypassed=True)]))


def test_networks_without_what_only_observes() -> None:
    graph = Graph(
        [
            layer("image", "input", dims="8x6x3"),
            layer("seen", "watch", "image"),
            layer("a", "identity", "seen"),
            layer("target", "input", dims="8x6x3"),
            layer("loss", "mse_loss", "a", "target"),
            layer("p", "template", "a", template="part"),
            layer("end", "output", "p"),
        ],
        templates=[document().templates["part"]],
    )
    before = list(graph.layers)
    inside = ["p", "p.conv", "p.conv.b", "p.x", "p.y", "p.z"]
    assert sorted(deploy(graph, REGISTRY).layers) == ["a", "end", "image", *inside]
    assert list(without_observers(graph, REGISTRY).layers) == ["image", "a", "p", "end"]
    trained = without_analysis(graph, REGISTRY)
    assert list(trained.layers) == [name for name in before if name != "seen"]
    assert trained["a"].inputs == (Source("image"),)
    assert list(graph.layers) == before


def test_a_network_that_is_too_large_or_has_a_name_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = document()
    count = len(inline(graph, REGISTRY).layers)
    monkeypatch.setattr(inlining, "MAX_LAYERS", count)
    assert len(inline(graph, REGISTRY).layers) == count
    monkeypatch.setattr(inlining, "MAX_LAYERS", count - 1)
    with pytest.raises(DiagnosticError) as error:
        inline(graph, REGISTRY)
    (finding,) = error.value.diagnostics
    assert (finding.code, finding.layer) == ("too-large", None)
    assert finding.message == f"the network has more than {count - 1} layers, including those of its templates"
    monkeypatch.undo()
    taken = Graph([*graph, layer("w.sum", "identity", "image")], templates=graph.templates.values())
    with pytest.raises(DiagnosticError) as error:
        inline(taken, REGISTRY)
    (finding,) = error.value.diagnostics
    assert (finding.code, finding.layer) == ("template-name-clash", "w.sum")
    assert finding.message == "'w.sum' is the name of a layer inside an instance and of another layer"
