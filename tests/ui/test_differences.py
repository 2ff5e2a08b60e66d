"""The open network compared with another one: the panel, the marks on the canvas, and both kept true while one edits."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("PySide6")

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu, QPushButton
from pytestqt.qtbot import QtBot
from window_kit import shown

from app.ui.design.differences import DifferencesPanel, rows
from app.ui.document.document import Document
from app.ui.document.import_record import ImportRecord
from app.ui.engine.context import Context
from designer.files.document import save_document
from designer.graph import commands
from designer.graph.compare import NetworkComparison, ValueDifference
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template_commands import make_template
from designer.importers.report import ImportReport
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui

CONV = {"features": "8", "kernel": "3x3"}


def network() -> Graph:
    return Graph(
        [
            Layer("in", "input", params={"dims": "64x64x3"}),
            Layer("a", "convolution", (320, 0), (Source("in"),), CONV),
            Layer("b", "convolution", (640, 0), (Source("a"),), CONV),
            Layer("out", "output", (960, 0), (Source("b"),)),
        ],
        name="four",
    )


@pytest.fixture
def window(empty_window, tmp_path):
    save_document(network(), tmp_path / "four.xml")
    assert empty_window.files.open(tmp_path / "four.xml")
    empty_window.actions_["file.compare"].trigger()
    return empty_window


def test_compare_with_asks_at_once_for_the_other_document(empty_window, qtbot):
    empty_window.files.new()
    empty_window.docks.panel("differences")
    menu = empty_window.findChild(QMenu, "differences.menu")
    with qtbot.waitSignal(menu.aboutToShow):
        empty_window.actions_["file.compare"].trigger()
    assert empty_window.docks["differences"].isVisible()
    assert "Another Document..." in [a.text().replace("&", "") for a in menu.actions()]
    menu.close()


def marks(window) -> dict[str, str]:
    """Sign by layer; what has no box of a layer is a ghost."""
    boxes = {name: window.canvas.projection.entry(name).area() for name in window.context.document.graph.layers}
    found = {}
    for mark in window.canvas.differences.item.marks:
        name = mark.ghost or next((n for n, box in boxes.items() if box == mark.rect), "stale")
        found[name] = mark.sign
    return found


def lines(panel) -> list[tuple[str, str, str]]:
    items = [panel.tree.topLevelItem(n) for n in range(panel.tree.topLevelItemCount())]
    return [(item.text(0), item.text(1), item.text(2)) for item in items]


def test_empty_until_asked_then_true_after_every_edit(window, qtbot):
    panel = window.docks.panel("differences")
    assert panel.empty.isVisible()
    QTest.mouseClick(panel.findChild(QPushButton, "differences.empty.action"), Qt.MouseButton.LeftButton)
    assert panel.head.text() == "Since the saved version: no differences"
    assert marks(window) == {}
    assert (panel.copy.isEnabled(), panel.close_button.isEnabled()) == (False, True)
    document = window.context.document
    document.do(lambda g: commands.set_params(g, {"a": {"features": "16"}}))
    document.do(lambda g: commands.add_layer(g, Layer("c", "identity", (320, 320), (Source("a"),))))
    document.do(lambda g: commands.remove_layers(g, ["b"]))
    qtbot.waitUntil(lambda: marks(window) == {"a": "~", "c": "+", "b": "−", "out": "~"})
    assert ("+ added", "c", "identity") in lines(panel)
    assert ("~ changed", "a", "features: 8 → 16") in lines(panel)
    assert ("− removed", "b", "convolution") in lines(panel)
    assert panel.copy.isEnabled()
    QTest.mouseClick(panel.copy, Qt.MouseButton.LeftButton)
    assert "- b (convolution)" in QGuiApplication.clipboard().text()
    for _ in range(3):
        document.undo()
    qtbot.waitUntil(lambda: marks(window) == {})
    assert panel.tree.topLevelItemCount() == 0


def test_a_line_leads_to_its_layer_and_the_end_takes_the_marks(window, qtbot):
    panel = window.docks.panel("differences")
    panel.with_saved()
    window.context.document.do(lambda g: commands.move_layers(g, {"b": (640, 320)}))
    qtbot.waitUntil(lambda: marks(window) == {"b": "→"})
    item = panel.tree.topLevelItem(0)
    QTest.mouseClick(panel.tree.viewport(), Qt.MouseButton.LeftButton, pos=panel.tree.visualItemRect(item).center())
    assert window.context.selection == ("b",)
    QTest.mouseClick(panel.close_button, Qt.MouseButton.LeftButton)
    assert panel.empty.isVisible()
    assert marks(window) == {}


def test_another_document_and_the_inside_of_a_template(window, qtbot, tmp_path):
    one = network()
    one.apply(make_template(one, ["a", "b"], "pair"))
    save_document(one, tmp_path / "one.xml")
    assert window.files.open(tmp_path / "one.xml")
    panel = window.docks.panel("differences")
    panel.with_file(tmp_path / "one.xml")
    instance = next(layer.name for layer in window.context.root.graph if layer.type == "template")
    assert window.context.enter(instance)
    window.context.document.do(lambda g: commands.set_params(g, {"b": {"features": "4"}}))
    qtbot.waitUntil(lambda: marks(window) == {"b": "~"})
    assert lines(panel) == [("~ changed", "b", "features: 8 → 4")]
    window.context.select(())
    panel.tree.itemClicked.emit(panel.tree.topLevelItem(0), 0)
    assert window.context.selection == ("b",)
    window.context.leave()
    assert ("~ changed template", "pair", "layers: 1 changed") in lines(panel)
    qtbot.waitUntil(lambda: marks(window) == {instance: "~"})  # from outside, what it is part of


def test_saving_changes_what_the_saved_version_is(window, qtbot, tmp_path):
    panel = window.docks.panel("differences")
    panel.with_saved()
    document = window.context.document
    document.do(lambda g: commands.set_params(g, {"a": {"features": "16"}}))
    qtbot.waitUntil(lambda: marks(window) == {"a": "~"})
    assert window.files.save()
    assert panel.head.text() == "Since the saved version: no differences"
    assert marks(window) == {}
    document.undo()
    qtbot.waitUntil(lambda: lines(panel) == [("~ changed", "a", "features: 16 → 8")])
    panel.with_file(document.path)
    assert window.files.save()
    assert lines(panel) == [("~ changed", "a", "features: 16 → 8")]  # a file that was chosen stays as it was read


def test_an_open_document_is_followed_until_it_is_closed(window, qtbot, tmp_path):
    save_document(network(), tmp_path / "two.xml")
    first = window.context.root
    assert window.files.open(tmp_path / "two.xml")
    panel = window.docks.panel("differences")
    panel.choose.menu().aboutToShow.emit()
    action = next(a for a in panel.choose.menu().actions() if a.text() == "four.xml")
    action.trigger()
    assert panel.head.text() == "Since four.xml: no differences"
    first.do(lambda g: commands.set_params(g, {"a": {"features": "5"}}))
    qtbot.waitUntil(lambda: marks(window) == {"a": "~"})
    first.history.mark_clean()
    window.files.close(window.tabs.of(first))
    qtbot.waitUntil(lambda: marks(window) == {})
    assert panel.empty.isVisible()


def test_a_file_that_cannot_be_read_is_told_and_the_comparison_stays(window, tmp_path, qtbot):
    from PySide6.QtWidgets import QApplication

    panel = window.docks.panel("differences")
    panel.with_saved()
    (tmp_path / "bad.xml").write_text("<no")
    panel.with_file(tmp_path / "bad.xml")
    dialog = next(w for w in QApplication.topLevelWidgets() if w.objectName() == "findings")
    dialog.close()
    assert panel.head.text().startswith("Since the saved version")


def test_a_network_that_was_never_saved_says_so(window):
    window.files.new()
    said = []
    window.context.message.connect(lambda severity, text: said.append(text))
    window.docks.panel("differences").with_saved()
    assert "no saved version" in said[-1]


def test_what_was_compared_with_is_followed_when_it_is_shown_itself(window, qtbot, tmp_path):
    save_document(network(), tmp_path / "two.xml")
    first = window.context.root
    assert window.files.open(tmp_path / "two.xml")
    window.context.comparison.with_document(first)
    window.files.open(tmp_path / "four.xml")
    assert window.context.root is first
    panel = window.docks.panel("differences")
    panel.with_saved()
    first.do(lambda g: commands.set_params(g, {"a": {"features": "5"}}))
    qtbot.waitUntil(lambda: marks(window) == {"a": "~"})
    window.tabs.step(1)
    assert panel.empty.isVisible()
    first.history.mark_clean()


def test_every_difference_is_a_row_of_its_own() -> None:
    """Several of each kind."""
    value, other = ValueDifference("kernel", "3x3", "5x5"), ValueDifference("stride", None, "2x2")
    rest = ValueDifference("input 1", "a", "b")
    found = NetworkComparison(
        ("n1", "n2"), ("o1", "o2"), {"b1": "a1", "b2": "a2"}, {"c1": (value, other), "c2": (other,)}, {"c2": (rest,), "c0": (rest,)},
        {"m1": ((0, 0), (5, -6)), "m2": ((1, 2), (3, 4))}, (ValueDifference("name", "x", "y"), rest), (value, other),
        ("t1", "t2"), ("t3", "t4"), {"t5": NetworkComparison(added=("z",)), "t6": NetworkComparison(removed=("z",))},
        {"n1": "pooling", "o2": "identity"},
    )  # fmt: skip
    assert list(rows(found)) == [
        ("+", "added", "n1", ["pooling"]),
        ("+", "added", "n2", [""]),
        ("−", "removed", "o1", [""]),
        ("−", "removed", "o2", ["identity"]),
        ("=", "renamed", "a1", ["b1 → a1"]),
        ("=", "renamed", "a2", ["b2 → a2"]),
        ("~", "changed", "c0", [str(rest)]),
        ("~", "changed", "c1", [str(value), str(other)]),
        ("~", "changed", "c2", [str(other), str(rest)]),
        ("+", "added template", "t1", [""]),
        ("+", "added template", "t2", [""]),
        ("−", "removed template", "t3", [""]),
        ("−", "removed template", "t4", [""]),
        ("~", "changed template", "t5", ["layers: 1 added"]),
        ("~", "changed template", "t6", ["layers: 1 removed"]),
        ("~", "frame", "", [str(value)]),
        ("~", "frame", "", [str(other)]),
        ("~", "document", "", [str(ValueDifference("name", "x", "y"))]),
        ("~", "document", "", [str(rest)]),
        ("→", "moved", "m1", ["0, 0 → 5, -6"]),
        ("→", "moved", "m2", ["1, 2 → 3, 4"]),
    ]


@pytest.mark.parametrize("origin", ["file", "import", "new"])
def test_what_can_be_done_with_a_comparison(qtbot: QtBot, tmp_path: Path, origin: str) -> None:
    """Only a network with a file of its own has a saved version, and only differences can be copied."""
    path = tmp_path / "four.xml"
    save_document(network(), path)
    context = Context(default_registry())
    document = Document(network(), context.registry, path if origin == "file" else None, parent=context)
    if origin == "import":
        document.imported = ImportRecord(path, ImportReport("four.onnx"), document)
        assert document.file == path
    context.set_document(document)
    said: list[tuple[str, str]] = []
    context.message.connect(lambda *what: said.append(what))
    panel = shown(qtbot, DifferencesPanel(context), 600, 300)

    def state() -> tuple[bool, bool, bool, bool, str]:
        menu = panel.choose.menu()
        menu.aboutToShow.emit()
        able = (panel.saved.isEnabled(), panel.copy.isEnabled(), panel.close_button.isEnabled())
        return *able, panel.tree.isVisible(), panel.head.text()

    saved = origin == "file"
    assert state() == (saved, False, False, False, "")
    panel.with_saved()
    if not saved:
        assert said == [("warning", "Cannot compare: this network has no saved version. Save it first.")]
        assert state() == (False, False, False, False, "")
        panel.with_file(path)
    same = state()
    assert same[:4] == (saved, False, True, True)
    assert lines(panel) == []
    assert document.do(lambda g: commands.set_params(g, {"a": {"features": "4"}}))
    qtbot.waitUntil(lambda: bool(lines(panel)))
    assert state()[:4] == (saved, True, True, True)
    QGuiApplication.clipboard().clear()
    panel.copy.click()
    assert QGuiApplication.clipboard().text() == context.comparison.result.text() != ""
    document.undo()
    qtbot.waitUntil(lambda: not lines(panel))
    assert state() == same
    assert document.do(lambda g: make_template(g, ["a", "b"], "Pair"))
    qtbot.waitUntil(lambda: bool(lines(panel)))
    assert context.enter("Pair")
    panel.copy.click()  # of the whole network, whatever is shown of it
    whole, inside = context.comparison.result.text(), context.comparison.shown().text()
    assert QGuiApplication.clipboard().text() == whole != inside
    context.leave()
    panel.close_button.click()
    assert state() == (saved, False, False, False, "")
