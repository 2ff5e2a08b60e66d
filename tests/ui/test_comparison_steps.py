"""A comparison after any sequence of steps: the same as one that was begun anew, of the network that it names."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from app.ui.document.comparison import DELAY, DocumentComparison
from app.ui.document.document import Document
from app.ui.document.template_view import ScopeStep, TemplateView
from designer.files.document import read_document, save_document
from designer.graph import commands
from designer.graph.compare import NetworkComparison, compare
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.registry import default_registry

CONV = {"features": "8", "kernel": "3x3"}


def network(features: int) -> Graph:
    conv = {**CONV, "features": str(features)}
    ports = (
        Layer("x", "template_input", params={"index": "0"}),
        Layer("inner", "convolution", (160, 0), (Source("x"),), conv),
        Layer("y", "template_output", (320, 0), (Source("inner"),)),
    )
    return Graph(
        [
            Layer("in", "input", params={"dims": "64x64x3"}),
            Layer("a", "convolution", (320, 0), (Source("in"),), conv),
            Layer("b", "template", (640, 0), (Source("a"),), {"template": "block"}),
        ],
        name="net",
        templates=[Template("block", ports)],
    )


class Steps:
    """A comparison, and what it must show: `wanted` is the other network, or None, and `title` names it."""

    def __init__(self, folder) -> None:
        self.file, self.other_file = folder / "net.xml", folder / "other.xml"
        save_document(network(8), self.file)
        save_document(network(16), self.other_file)
        self.document = Document(network(8), default_registry(), self.file)
        self.open = Document(network(24), default_registry())
        self.comparison = DocumentComparison(self.document)
        self.comparison.follow(self.document)
        self.comparison.show(self.document)
        self.view = self.document
        self.inside = TemplateView(self.document, ScopeStep("b", "block"), self.document)
        self.document.changed.connect(self.inside.follow)
        self.kind, self.wanted, self.count = "", None, 0
        self.comparison.changed.connect(self._heard)
        self.heard = 0

    def _heard(self) -> None:
        self.heard += 1

    def with_file(self) -> None:
        self.comparison.with_file(self.other_file)
        self.kind, self.wanted = "other.xml", read_document(self.other_file).graph

    def with_saved(self) -> None:
        self.comparison.with_saved()
        self.kind, self.wanted = "the saved version", read_document(self.file).graph

    def with_document(self) -> None:
        self.comparison.with_document(self.open)
        self.kind, self.wanted = "net (unsaved)", self.open.graph

    def with_graph(self) -> None:
        other = network(3)
        self.comparison.with_graph(other, "a version")
        self.kind, self.wanted = "a version", network(3)
        other.apply(commands.set_params(other, {"a": {"features": "99"}}))  # the comparison has a copy

    def stop(self) -> None:
        self.comparison.stop()
        self.kind, self.wanted = "", None

    def bad_file(self) -> None:
        with pytest.raises(DiagnosticError):
            self.comparison.with_file(self.file.parent / "none.xml")

    def edit(self) -> None:
        self.count += 1
        self.document.do(lambda g: commands.set_params(g, {"a": {"features": str(30 + self.count)}}))

    def edit_inside(self) -> None:
        self.count += 1
        self.inside.do(lambda g: commands.set_params(g, {"inner": {"features": str(30 + self.count)}}))

    def edit_other(self) -> None:
        self.count += 1
        self.open.do(lambda g: commands.set_params(g, {"a": {"features": str(30 + self.count)}}))

    def undo(self) -> None:
        self.document.undo()

    def save(self) -> None:
        save_document(self.document.graph, self.file)
        self.document.mark_saved(self.file)
        if self.kind == "the saved version":
            self.wanted = self.document.graph.copy()

    def show_template(self) -> None:
        self.view = self.inside
        self.comparison.show(self.inside)

    def show_network(self) -> None:
        self.view = self.document
        self.comparison.show(self.document)

    def close_other(self) -> None:
        self.open.deleteLater()
        self.open = Document(network(24), default_registry())
        if self.kind == "net (unsaved)":
            self.kind, self.wanted = "", None

    def follow(self) -> None:
        """The open file is shown anew, as after a switch of tabs."""
        self.comparison.follow(self.document)
        self.kind, self.wanted = "", None

    def check(self) -> None:
        found, graph = self.comparison, self.document.graph
        assert (found.other is None) is (self.wanted is None)
        wanted = compare(self.wanted, graph) if self.wanted is not None else NetworkComparison()
        assert found.result == wanted
        if self.wanted is not None:
            assert found.title == self.kind
            changed = [name for name, template in wanted.templates.items() if template.means]
            assert found.shown_instances() == (
                frozenset({"b"}) if changed and self.view is self.document else frozenset()
            )
        else:
            assert found.shown_instances() == frozenset()
        if self.view is self.document:
            assert found.shown() == wanted
            assert found.shown_other() == self.wanted
        else:
            assert found.shown() == wanted.templates.get("block", NetworkComparison())
            inside = self.wanted.inside("block") if self.wanted is not None else None
            assert found.shown_other() == inside


STEPS = [name for name in vars(Steps) if not name.startswith("_") and name != "check"]
SILENT = {"bad_file"}  # what changes nothing


@pytest.mark.parametrize("seed", range(6))
def test_a_comparison_is_up_to_date_after_any_step(qtbot, tmp_path, seed):
    steps, numbers = Steps(tmp_path), Random(seed)
    for _ in range(30):
        step = numbers.choice(STEPS)
        before, heard = steps.comparison.result, steps.heard
        getattr(steps, step)()
        qtbot.waitUntil(lambda: not steps.comparison._later.isActive(), timeout=100 * DELAY)
        if step == "close_other":
            qtbot.waitUntil(lambda: (steps.comparison.other is None) is (steps.wanted is None))
        steps.check()
        assert steps.heard > heard or steps.comparison.result == before, (
            f"{step} changed the comparison without a signal"
        )
    steps.open.deleteLater()
    steps.document.deleteLater()


@pytest.mark.parametrize("step", ["with_file", "with_saved", "with_document", "with_graph"])
@pytest.mark.parametrize("before", ["with_file", "with_saved", "with_document", "with_graph", "stop", "follow"])
def test_what_was_compared_before_has_no_effect_any_more(qtbot, tmp_path, before, step):
    """After two ways to choose the other network: an edit of the open file, a save, and an edit of the other document."""
    steps = Steps(tmp_path)
    for name in (before, step, "edit", "save", "edit_other", "edit_inside", "show_template", "show_network"):
        getattr(steps, name)()
        qtbot.waitUntil(lambda: not steps.comparison._later.isActive(), timeout=100 * DELAY)
        steps.check()
    steps.open.deleteLater()
    steps.document.deleteLater()


def nested(features: int, place: int = 160) -> Graph:
    """Instances of a template, of one that uses it, and of another one, at the top and inside."""

    def ports(*inside: Layer) -> tuple[Layer, ...]:
        return (
            Layer("x", "template_input", params={"index": "0"}),
            *inside,
            Layer("y", "template_output", (640, 0), (Source(inside[-1].name),)),
        )

    inner = ports(Layer("conv", "convolution", (place, 0), (Source("x"),), {**CONV, "features": str(features)}))
    outer = ports(
        Layer("first", "template", (160, 0), (Source("x"),), {"template": "inner"}),
        Layer("then", "template", (320, 0), (Source("first"),), {"template": "other"}),
    )
    other = ports(Layer("act", "activation", (160, 0), (Source("x"),), {"function": "relu"}))
    templates = [Template("inner", inner), Template("outer", outer), Template("other", other)]
    layers = [Layer("in", "input", params={"dims": "64x64x3"})]
    layers += [
        Layer(f"{name}_{number}", "template", (320, 160 * number), (Source("in"),), {"template": name})
        for number, name in enumerate(("inner", "outer", "other", "inner"))
    ]
    return Graph(layers, name="net", templates=templates)


@pytest.mark.parametrize("how", ["changed inside", "moved inside", "the same", "template gone"])
def test_instances_are_marked_whose_template_differs_in_more_than_positions(qapp, how: str) -> None:
    """At the top and in a template that is shown, whose counterpart in the other network is that template."""
    document = Document(nested(8), default_registry())
    comparison = DocumentComparison(document)
    comparison.follow(document)
    views = {
        name: TemplateView(document, ScopeStep(f"{name}_x", name), document) for name in ("inner", "outer", "other")
    }
    assert comparison.shown_instances() == frozenset(), "nothing is shown and nothing is compared"
    comparison.show(document)
    assert comparison.shown_instances() == frozenset()
    assert comparison.shown_other() is None
    other = {
        "changed inside": nested(16),
        "moved inside": nested(8, 176),
        "the same": nested(8),
        "template gone": nested(16).copy(),
    }[how]
    if how == "template gone":
        other = network(8)
    comparison.with_graph(other, "other")
    changed = how == "changed inside"
    top = {"inner_0", "outer_1", "inner_3"} if changed else set()
    assert comparison.shown_instances() == top
    assert comparison.shown_other() == other
    inside = {"inner": set(), "outer": {"first"} if changed else set(), "other": set()}
    for name, view in views.items():
        comparison.show(view)
        assert comparison.shown_instances() == inside[name], name
        wanted = None if how == "template gone" else other.inside(name)
        assert comparison.shown_other() == wanted, name
        differs = name == "inner" and how in ("changed inside", "moved inside")
        assert bool(comparison.shown()) == differs, name
    comparison.stop()
    assert comparison.shown_instances() == frozenset()
    assert comparison.shown_other() is None
    document.deleteLater()


def test_documents_that_are_compared_no_more_are_not_followed(qapp, tmp_path) -> None:
    """Neither the other one after another choice, nor the open file after another one was opened."""
    first, second, other = (Document(network(n), default_registry()) for n in (8, 9, 24))
    comparison = DocumentComparison(first)
    comparison.follow(first)
    for leave in (lambda: comparison.with_graph(network(3), "a version"), lambda: comparison.with_document(second)):
        comparison.with_document(other)
        other.do(lambda g: commands.rename_layer(g, "a", "renamed"))
        assert comparison._later.isActive()
        leave()
        assert not comparison._later.isActive()
        other.undo()
        assert not comparison._later.isActive()
    comparison.follow(second)
    comparison.with_graph(network(3), "a version")
    first.do(lambda g: commands.rename_layer(g, "a", "renamed"))
    assert not comparison._later.isActive()
    second.do(lambda g: commands.rename_layer(g, "a", "renamed"))
    assert comparison._later.isActive()
    second.undo()
    save_document(second.graph, tmp_path / "second.xml")
    second.mark_saved(tmp_path / "second.xml")
    comparison.with_saved()
    saved = second.graph.copy()
    second.do(lambda g: commands.rename_layer(g, "a", "renamed"))
    first.mark_saved(tmp_path / "first.xml")
    assert comparison.other == saved != second.graph
    second.mark_saved(tmp_path / "second.xml")
    assert comparison.other == second.graph
    comparison.stop()
    for document in (first, second, other):
        document.deleteLater()
