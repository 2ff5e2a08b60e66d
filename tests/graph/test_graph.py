"""The index of links, the order of layers, and edits that do not fit the graph."""

from __future__ import annotations

from dataclasses import replace

import pytest

from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity, errors
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Foreign, Frame, Layer, Source
from designer.graph.template import Template


def layer(name: str, *inputs: str, kind: str = "t") -> Layer:
    return Layer(name, kind, inputs=tuple(Source.parse(text) for text in inputs))


@pytest.fixture
def graph() -> Graph:
    """z -> b, a; a, b -> c; c -> d, and e alone."""
    return Graph(
        [layer("z"), layer("b", "z"), layer("a", "z:y", "z"), layer("c", "b", "a"), layer("d", "c"), layer("e")]
    )


def test_the_order_breaks_ties_by_name(graph: Graph) -> None:
    assert graph.order() == (["e", "z", "a", "b", "c", "d"], [])
    assert graph.order(["d", "b", "a", "gone"]) == (["a", "b", "d"], [])
    assert graph.order(["d", "c", "z"]) == (["c", "z", "d"], [])


def test_layers_on_and_behind_a_loop_have_no_order(graph: Graph) -> None:
    graph.apply(Edit("", {"a": (graph["a"], layer("a", "c"))}))
    assert graph.order() == (["e", "z", "b"], ["a", "c", "d"])
    assert set(graph.loops(["a", "c", "d"])) == {"a", "c"}
    assert graph.order(["c", "d"]) == (["c", "d"], [])
    assert graph.reaches("a", "a")
    assert not graph.reaches("d", "a")


def test_what_is_before_and_behind_layers(graph: Graph) -> None:
    assert graph.downstream(["b"]) == {"b", "c", "d"}
    assert graph.upstream(["c"]) == {"c", "b", "a", "z"}
    assert graph.downstream(["gone"]) <= {"gone"}
    assert graph.reaches("z", "d")
    assert not graph.reaches("e", "d")


def test_the_index_follows_every_edit(graph: Graph) -> None:
    def consumers(current: Graph) -> dict[str, set[str]]:
        return {name: set(current.consumers(name)) for name in (*current.layers, "gone")}

    assert consumers(graph)["z"] == {"a", "b"}
    assert graph.types == {"t": 6}
    edit = Edit(
        "", {"a": (graph["a"], layer("a", "b", kind="u")), "e": (graph["e"], None), "n": (None, layer("n", "gone"))}
    )
    before = graph.copy()
    graph.apply(edit)
    assert consumers(graph) == consumers(Graph(graph))
    assert consumers(graph)["gone"] == {"n"}
    assert graph.types == {"t": 5, "u": 1}
    graph.apply(edit.reversed())
    assert graph == before
    assert consumers(graph) == consumers(before)
    assert graph.types == {"t": 6}


def test_edits_that_do_not_fit_change_nothing(graph: Graph) -> None:
    template = Template("part", ())
    before = graph.copy()
    for edit, message in (
        (Edit("x", {"e": (layer("e", "z"), None)}), "edit 'x' cannot be applied: layer 'e' has changed since"),
        (Edit("x", {"n": (layer("n"), None)}), "layer 'n' has changed since"),
        (Edit("x", {"e": (None, layer("e"))}), "layer 'e' has changed since"),
        (Edit("x", {"n": (None, layer("m"))}), "edit 'x' stores layer 'm' under 'n'"),
        (
            Edit("x", {"n": (None, layer("n"))}, templates={"part": (template, None)}),
            "template 'part' has changed since",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            graph.apply(edit)
        assert graph == before
    with pytest.raises(ValueError, match="layer name 'a' is used twice"):
        Graph([layer("a"), layer("a")])


def test_equal_graphs_store_the_same() -> None:
    def made(**changes: object) -> Graph:
        values: dict[str, object] = {
            "name": "n",
            "attributes": {"x": "1"},
            "frames": [Frame("f")],
            "templates": [Template("t", ())],
        }
        return Graph([layer("a")], **{**values, **changes})  # type: ignore[arg-type]

    assert made() == made()
    for changes in ({"name": "m"}, {"attributes": {}}, {"frames": []}, {"templates": []}, {"user_version_tag": "2"}):
        assert made() != made(**changes)
    assert made() != Graph([replace(layer("a"), position=(1, 0))], name="n")
    copy = made().copy()
    copy.frames.clear()
    copy.properties["name"] = "other"
    assert made().frames
    assert made() != copy


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (Diagnostic("c", "m"), "error [c] m"),
        (Diagnostic("c", "m", Severity.INFO, remedy="r"), "info [c] m - r"),
        (Diagnostic("c", "m", line=3), "error [c] line 3: m"),
        (Diagnostic("c", "m", file="f.xml", line=3, layer="a", port="x"), "error [c] f.xml:3: layer 'a', port 'x': m"),
        (Diagnostic("c", "m", Severity.WARNING, file="f.xml"), "warning [c] f.xml: m"),
        (Diagnostic("c", "m", layer="a"), "error [c] layer 'a': m"),
    ],
)
def test_findings_as_text(finding: Diagnostic, text: str) -> None:
    assert str(finding) == text
    assert finding.as_dict()["severity"] == finding.severity.value


def test_only_errors_prevent_running_and_errors_carry_every_field() -> None:
    found = [Diagnostic("c", "m", severity) for severity in Severity]
    assert [each.severity for each in errors(found)] == [Severity.ERROR]
    fields = {
        "layer": "a",
        "port": "x",
        "parameter": "p",
        "line": 3,
        "file": "f.xml",
        "template": "block",
        "remedy": "do it",
    }
    (carried,) = DiagnosticError.of("c", "m", **fields).diagnostics
    assert carried.as_dict() == {"code": "c", "message": "m", "severity": "error", "inner": None, **fields}


def test_an_error_without_a_diagnostic_says_so() -> None:
    assert (str(DiagnosticError(())), DiagnosticError(()).diagnostics) == ("failed without a diagnostic", ())
    one, two = Diagnostic("a", "first"), Diagnostic("b", "second")
    assert str(DiagnosticError([one, two])) == f"{one}; {two}"
    assert DiagnosticError(one).diagnostics == (one,)


def test_the_inside_of_a_template_has_the_prefixes_but_nothing_else_of_the_document() -> None:
    block = Template("block", (layer("x"),), frames=(Frame("f"),), attributes={"xmlns:b": "urn:b", "note": "n"})
    other = Template("other", (layer("i", kind="template"),))
    graph = Graph(
        [layer("a")], attributes={"xmlns:a": "urn:a", "author": "me"}, frames=[Frame("g")], templates=[block, other]
    )
    inside = graph.inside("block")
    assert inside.attributes == {"xmlns:a": "urn:a"}
    assert (inside.name, [*inside.layers], [*inside.frames]) == ("block", ["x"], ["f"])
    assert inside.templates == graph.templates
    assert inside.foreign == ()


def test_every_instance_inside_a_template_counts() -> None:
    def use(name: str, template: str) -> Layer:
        return Layer(name, "template", params={"template": template})

    graph = Graph(
        [use("a", "outer"), use("b", "inner"), layer("c")],
        templates=[Template("outer", (use("x", "inner"), use("y", "inner"))), Template("inner")],
    )
    assert graph.instance_counts() == {"outer": 1, "inner": 3}


def test_a_copy_is_independent_and_everything_counts_for_equality(graph: Graph) -> None:
    graph.foreign = (Foreign("<!-- one -->"),)
    copied = graph.copy()
    assert copied == graph
    before = (dict(graph.types), {n: graph.consumers(n) for n in graph.layers}, [*graph.layers])
    copied.apply(Edit("", {"a": (graph["a"], None), "n": (None, layer("n", "c", kind="u"))}))
    copied.apply(Edit("", properties={"author": (None, "me")}, frames={"f": (None, Frame("f"))}))
    assert (dict(graph.types), {n: graph.consumers(n) for n in graph.layers}, [*graph.layers]) == before
    assert "author" not in graph.properties
    assert not graph.frames
    assert copied.types == {"t": 5, "u": 1}
    other = graph.copy()
    other.foreign = (Foreign("<!-- two -->"),)
    assert other != graph
    other = graph.copy()
    other.attributes["xmlns:a"] = "urn:a"
    assert other != graph
    assert graph.attributes == {}
