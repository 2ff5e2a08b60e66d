"""A comparison with another network: what it follows, what it shows inside of templates, and when it ends."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QObject

from app.ui.document.comparison import DELAY
from app.ui.document.document import Document
from app.ui.engine.context import Context
from designer.files.document import read_document, save_document
from designer.graph import commands
from designer.graph.compare import NetworkComparison, compare
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.graph.template_commands import edit_template
from designer.operators.registry import default_registry


def template(name: str, kind: str = "identity") -> Template:
    return Template(
        name,
        (
            Layer("x", "template_input"),
            Layer("inner", kind, (160, 0), (Source("x"),)),
            Layer("y", "template_output", (320, 0), (Source("inner"),)),
        ),
    )


def network() -> Graph:
    names = ("one", "two", "three")
    return Graph(
        [
            Layer("in", "input", params={"dims": "16x16x3"}),
            *(Layer(f"b_{name}", "template", (160, 0), (Source("in"),), {"template": name}) for name in names),
            Layer("out", "output", (320, 0), (Source("b_one"),)),
        ],
        name="net",
        templates=[template(name) for name in names],
    )


class Bench:
    """A context with one open file. `heard` counts the signals since the last look."""

    def __init__(self, path: Path) -> None:
        save_document(network(), path)
        self.path = path
        self.context = Context(default_registry())
        self.document = Document(network(), self.context.registry, path, parent=self.context)
        self.context.set_document(self.document)
        self.comparison = self.context.comparison
        self.count = 0
        self.comparison.changed.connect(self._count)

    def _count(self) -> None:
        self.count += 1

    def heard(self) -> int:
        found, self.count = self.count, 0
        return found

    def set(self, text: str, document: Document | None = None) -> None:
        (document or self.document).do(lambda g: commands.set_params(g, {"in": {"dims": text}}))

    def settle(self) -> None:
        """The delayed update, at once."""
        if self.comparison._later.isActive():
            assert (self.comparison._later.isSingleShot(), self.comparison._later.interval()) == (True, DELAY)
            self.comparison._later.stop()
            self.comparison._later.timeout.emit()


@pytest.fixture
def bench(qapp: QObject, tmp_path: Path) -> Bench:
    return Bench(tmp_path / "net.xml")


def test_nothing_is_compared_at_first(bench: Bench) -> None:
    comparison = bench.comparison
    bench.set("8x8x3")
    assert not comparison._later.isActive()
    assert (comparison.other, comparison.title, bool(comparison.result)) == (None, "", False)
    assert comparison.shown() == NetworkComparison()
    assert (comparison.shown_instances(), comparison.shown_other()) == (frozenset(), None)
    assert comparison.open_documents() == []


def test_edits_are_compared_with_the_saved_version_until_it_is_saved(bench: Bench) -> None:
    comparison = bench.comparison
    bench.set("8x8x3")
    comparison.with_saved()
    assert bench.heard() >= 2
    assert comparison.title == "the saved version"
    assert comparison.other == network()
    assert comparison.result == compare(network(), bench.document.graph)
    assert str(comparison.result.changed["in"][0]) == "dims: 16x16x3 → 8x8x3"
    bench.set("4x4x3")
    assert bench.heard() == 0, "typing goes on first"
    bench.settle()
    assert bench.heard() == 1
    assert str(comparison.result.changed["in"][0]) == "dims: 16x16x3 → 4x4x3"
    bench.document.mark_saved(bench.path)
    assert not comparison.result
    assert comparison.other == bench.document.graph
    bench.heard()
    bench.set("2x2x3")
    bench.settle()
    assert str(comparison.result.changed["in"][0]) == "dims: 4x4x3 → 2x2x3"
    assert comparison.title == "the saved version"
    comparison.with_graph(network(), "a file")
    bench.document.mark_saved(bench.path)
    assert str(comparison.result.changed["in"][0]) == "dims: 16x16x3 → 2x2x3", "another file is not saved"


def test_a_file_that_cannot_be_read_leaves_the_comparison(bench: Bench, tmp_path: Path) -> None:
    comparison = bench.comparison
    comparison.with_graph(Graph(), "empty")
    before = comparison.result
    (tmp_path / "bad.xml").write_text("<NetworkModel")
    bench.heard()
    with pytest.raises(DiagnosticError) as caught:
        comparison.with_file(tmp_path / "bad.xml")
    assert caught.value.diagnostics == read_document(tmp_path / "bad.xml").diagnostics
    assert (comparison.title, comparison.result, bench.heard()) == ("empty", before, 0)
    other = Graph([Layer("only", "input", params={"dims": "1x1x1"})])
    save_document(other, tmp_path / "other.xml")
    comparison.with_file(tmp_path / "other.xml")
    assert (comparison.title, comparison.other) == ("other.xml", other)
    assert "only" in comparison.result.removed
    bench.document.mark_saved(bench.path)
    assert "only" in comparison.result.removed


def test_another_network_is_kept_as_it_was_and_an_open_document_is_followed(bench: Bench) -> None:
    comparison, given = bench.comparison, network()
    comparison.with_graph(given, "given")
    given.apply(commands.set_params(given, {"in": {"dims": "5x5x3"}}))
    bench.set("7x7x3")
    bench.settle()
    assert str(comparison.result.changed["in"][0]) == "dims: 16x16x3 → 7x7x3"
    other = Document(network(), bench.context.registry, bench.path.with_name("other.xml"), parent=bench.context)
    comparison.with_document(other)
    assert comparison.title == "other.xml"
    bench.set("9x9x3", other)
    bench.settle()
    assert str(comparison.result.changed["in"][0]) == "dims: 9x9x3 → 7x7x3"
    comparison.with_graph(network(), "again")
    bench.heard()
    bench.set("3x3x3", other)
    assert not comparison._later.isActive(), "it is not compared any more"
    comparison.with_document(other)
    comparison.with_document(other)
    bench.set("1x1x3", other)
    bench.settle()
    assert str(comparison.result.changed["in"][0]) == "dims: 1x1x3 → 7x7x3"
    bench.heard()
    other.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert (comparison.other, bool(comparison.result)) == (None, False)
    assert bench.heard() == 1
    comparison.with_graph(network(), "again")
    assert comparison.result


def test_stopping_and_other_files_end_a_comparison(bench: Bench) -> None:
    comparison = bench.comparison
    bench.set("7x7x3")
    comparison.with_saved()
    bench.set("6x6x3")
    comparison.stop()
    assert not comparison._later.isActive()
    assert (comparison.other, bool(comparison.result)) == (None, False)
    assert bench.heard() >= 1
    bench.document.mark_saved(bench.path)
    assert comparison.other is None
    other = Document(network(), bench.context.registry, bench.path, parent=bench.context)
    comparison.with_document(other)
    bench.context.set_document(other)  # what it is compared with
    assert (comparison.other, bool(comparison.result)) == (None, False)
    bench.set("5x5x3", other)
    comparison.with_saved()
    assert str(comparison.result.changed["in"][0]) == "dims: 16x16x3 → 5x5x3"
    bench.heard()
    bench.set("4x4x3")
    bench.document.mark_saved(bench.path)
    assert (comparison._later.isActive(), bench.heard()) == (False, 0), "the first file is not open"
    other.mark_saved(bench.path)
    assert not comparison.result
    bench.context.set_document(bench.document)
    bench.set("3x3x3")
    comparison.with_graph(network(), "x")
    bench.set("2x2x3")
    assert comparison._later.isActive()


def test_inside_of_a_template_its_own_differences_are_shown(bench: Bench) -> None:
    comparison, document = bench.comparison, bench.document
    other = Graph(network().layers.values(), name="net", templates=[template("one"), template("two")])
    comparison.with_graph(other, "other")
    edit = commands.set_params(document.graph.inside("one"), {"inner": {"size": "3"}})
    document.do(lambda g: edit_template(g, "one", edit))
    moved = commands.move_layers(document.graph.inside("two"), {"inner": (500, 7)})
    document.do(lambda g: edit_template(g, "two", moved))
    bench.settle()
    result = comparison.result
    assert comparison.shown() is result
    assert comparison.shown_other() is comparison.other
    assert result.templates.keys() >= {"one"}
    assert comparison.shown_instances() == {"b_one"}, "moves mean nothing"
    bench.heard()
    for name, expected in (
        ("one", result.templates["one"]),
        ("two", result.templates.get("two", NetworkComparison())),
        ("three", NetworkComparison()),
    ):
        bench.context.set_scope(())
        assert bench.context.enter(f"b_{name}")
        assert bench.heard() >= 1
        assert comparison.shown() == expected, name
        shown = comparison.shown_other()
        assert shown == (None if name == "three" else other.inside(name))
        assert comparison.shown_instances() == frozenset()
    comparison.stop()
    assert comparison.shown() == NetworkComparison()
