"""The panels of the Design workspace step by step: everything that they show after selections, edits, undo and other documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QFileDialog,
    QInputDialog,
    QLabel,
    QMessageBox,
    QPushButton,
    QTableWidget,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot
from window_kit import empty, settle, shown

from app.ui.design import fixes, network_settings
from app.ui.design.code_view import CodeViewPanel
from app.ui.design.differences import DifferencesPanel
from app.ui.design.layer_editor import ParametersPanel
from app.ui.design.name_field import NameField
from app.ui.design.network_settings import NetworkSettingsPanel
from app.ui.design.palette import PalettePanel
from app.ui.design.type_checking import TypeCheckingPanel
from app.ui.design.weight_edits import WeightEdits
from app.ui.design.weights_report import WeightsReportView
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets import file_dialogs, run_choices, theme
from app.ui.widgets.param_section import ParamRow
from designer.files.document import save_document
from designer.files.settings import MAX_ITERATIONS, MAX_THREADS
from designer.files.weights import random_weights, required_weights, save_weights
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import INSTANCE, PARAMETER, Template
from designer.graph.template_commands import make_template
from designer.operators.registry import default_registry
from designer.surgery.sparsity import candidates, expected_gain

pytestmark = pytest.mark.gui
LEFT = Qt.MouseButton.LeftButton
WAIT = 10_000


def workshop(features: str = "8", kernel: str = "3x3") -> Graph:
    """Convolutions with and without activation, and two layers of types that nobody knows."""

    def conv(name: str, source: str, activation: ActivationSpec | None = None, **params: str) -> Layer:
        return Layer(name, "convolution", inputs=(Source(source),), params=params, activation=activation)

    leaky = ActivationSpec("leaky_relu", {"negative_slope": "0.1"})
    return Graph(
        [
            Layer("image", "input", params={"dims": "16x16x3"}),
            conv("first", "image", leaky, features=features, kernel=kernel),
            conv("second", "first", features="4", kernel="3x3"),
            conv("third", "second", ActivationSpec("relu"), features="4"),
            Layer("result", "output", inputs=(Source("third"),)),
            Layer("odd", "no_such_type", params={"b": "x", "a": "1"}),
            Layer("odder", "no_such_type", params={"c": "2"}),
        ]
    )


class Bench:
    """A context with a document, and another one that is not shown yet."""

    def __init__(self, graph: Graph | None = None) -> None:
        self.context = Context(default_registry())
        self.document = self.open(graph or workshop())
        self.other = Document(workshop("6"), self.context.registry, parent=self.context)
        self.said: list[tuple[str, str]] = []
        self.context.message.connect(lambda role, text: self.said.append((role, text)))

    def open(self, graph: Graph) -> Document:
        document = Document(graph, self.context.registry, parent=self.context)
        self.context.set_document(document)
        return document

    def set(self, layer: str, document: Document | None = None, **params: str) -> None:
        assert (document or self.context.document).do(lambda graph: commands.set_params(graph, {layer: params}))


# --- Layer Editor ----------------------------------------------------------------------------------------------------------


class Editor(Bench):
    def __init__(self, qtbot: QtBot) -> None:
        super().__init__()
        self.qtbot = qtbot
        self.panel = shown(qtbot, ParametersPanel(self.context), 340, 900)
        self.context.setParent(self.panel)

    def rows(self) -> dict[str, ParamRow]:
        panel = self.panel
        return {
            f"{prefix}{name}": row
            for prefix, section in (("", panel._operator_rows), ("activation.", panel._activation_rows))
            if section is not None
            for name, row in section.rows.items()
        }

    def find(self, name: str, kind: type[QWidget]) -> Any:
        return self.panel.findChild(kind, f"parameters.{name}")

    def state(self) -> dict[str, Any]:
        """What is seen, apart from the facts."""
        settle(self.panel)
        panel, texts = self.panel, {}
        if panel._stack.currentIndex() == 0:
            return {"empty": empty(panel).text()}
        rows = self.rows()
        raw = self.find("raw", QTableWidget)
        texts = [[raw.item(row, column).text() for column in (0, 1)] for row in range(raw.rowCount())]
        activation = self.find("activation", QComboBox)
        facts = panel._facts
        return {
            "heading": panel._heading.text(),
            "name": panel._name.line.text() if panel._name.isVisible() else "",
            "note": panel._note.text(),
            "raw": texts if raw.isVisible() else [],
            "activation": activation.currentText() or activation.placeholderText(),
            "rows": [name for name, row in rows.items() if row.editor.isVisible()],
            "wrong": {name: row._message.text() for name, row in rows.items() if row._message.isVisible()},
            "reset": panel._reset.isEnabled(),
            "help": panel._doc.isVisible(),
            "findings": [each.text() for each in facts._findings if each.isVisible()],
            "because": facts._because.isVisible(),
            "fixes": [fix.title for fix in panel._fixes.fixes] if panel._fixes.isVisible() else None,
        }

    def expect(self, what: str, **wanted: Any) -> None:
        found = self.state()
        assert {key: found.get(key) for key in wanted} == wanted, what

    def texts(self, *names: str) -> list[str]:
        rows = self.rows()
        return [rows[name].editor.text() for name in names]

    def type(self, name: str, text: str) -> None:
        line = self.find(name, QWidget)
        line = getattr(line, "lineEdit", lambda: line)()
        line.setFocus()
        line.selectAll()
        self.qtbot.keyClicks(line, text)


@pytest.fixture
def editor(qtbot: QtBot) -> Editor:
    return Editor(qtbot)


def test_the_layer_editor_shows_the_selected_layers_only(editor: Editor) -> None:
    context, panel, document = editor.context, editor.panel, editor.document
    nothing = {"empty": "Select a layer on the canvas to edit its parameters here."}
    fine = {"wrong": {}, "findings": [], "because": False, "fixes": None, "note": "", "raw": []}
    assert editor.state() == nothing
    context.select(("first",))
    editor.expect("one", heading="Convolution", name="first", activation="Leaky ReLU", reset=True, help=False, **fine)
    assert "activation.negative_slope" in editor.state()["rows"]
    assert editor.texts("features", "kernel", "activation.negative_slope") == ["8", "3x3", "0.1"]
    panel._help.click()
    editor.expect("help", help=True)
    context.select(("odd",))
    unknown = "The type “no_such_type” is unknown, so its parameters are shown as text. Install the plugin that provides it, or replace the layer."
    editor.expect("unknown", heading="no_such_type", name="odd", note=unknown, raw=[["a", "1"], ["b", "x"]], help=False)
    context.select(("odd", "odder"))
    editor.expect(
        "two", name="", note="2 of these layers have an unknown type.", raw=[], rows=[], findings=[], fixes=None
    )
    context.select(("odder", "first"))
    editor.expect("mixed", note="1 of these layers has an unknown type.", raw=[], heading="2 layers")
    context.select(("second",))
    editor.expect("another", heading="Convolution", name="second", activation="none", help=True, **fine)
    assert "activation.negative_slope" not in editor.rows()
    panel._help.click()
    context.select(("first", "second", "third"))
    editor.expect("three", heading="3 layers: Convolution", name="", activation="multiple values", reset=True, **fine)
    assert editor.texts("kernel", "features") == ["3x3", ""]
    context.select(("first", "third"))  # with other activations each
    assert not [name for name in editor.rows() if name.startswith("activation.")]
    leaky = [ActivationSpec("leaky_relu", {}), ActivationSpec("leaky_relu", {"negative_slope": "0.1"})]
    for spec, text, hint in (
        (leaky[0], "", "0.01, 0.1"),
        (leaky[1], "0.1", ""),
    ):  # a default that is not written counts
        assert document.do(lambda graph, spec=spec: commands.set_activation(graph, ["third"], spec))
        context.select(("first", "third"))
        assert editor.texts("activation.negative_slope") == [text]
        field = editor.rows()["activation.negative_slope"].editor.inner
        assert field.lineEdit().placeholderText() == hint
        document.undo()
    context.select(("third", "second"))
    assert editor.texts("features") == ["4"]
    editor.expect("two", activation="multiple values", reset=True)
    context.select(("image", "second"))
    editor.expect("other types", note="These layers have no parameters in common.", rows=[])
    context.select(("result",))
    editor.expect("one again", heading="Output", name="result", activation="none")
    assert "in common" not in editor.state()["note"]
    context.select(("first",))
    assert document.do(lambda graph: commands.remove_layers(graph, ["first"]))
    assert editor.state() == nothing
    document.undo()
    context.select(())
    context.select(("second",))
    context.set_document(editor.other)
    assert editor.state() == nothing
    context.select(("first",))
    assert editor.texts("features") == ["6"]
    editor.set("first", document, features="11")  # of the document that is not shown
    assert editor.texts("features") == ["6"]
    document.undo()
    editor.other.undo()
    editor.set("first", features="7")
    assert editor.texts("features") == ["7"]
    editor.expect("reset", reset=True)
    panel._reset.click()
    assert "8" not in editor.texts("features")
    editor.expect("after a reset", reset=False, activation="Leaky ReLU")


def test_facts_name_the_ports_that_are_connected(editor: Editor) -> None:
    """Also where a port before them is open."""
    document, context = editor.document, editor.context
    for name, inputs, expected in (
        ("both", (Source("image"), Source("first")), {"Input a": "image", "Input b": "first"}),
        ("second_only", (None, Source("first")), {"Input b": "first"}),
        ("first_only", (Source("first"),), {"Input a": "first"}),
    ):
        assert document.do(lambda g, n=name, i=inputs: commands.add_layer(g, Layer(n, "mix", inputs=i)))
        context.select((name,))
        settle(editor.panel)
        facts = editor.panel._facts.facts()
        found = {label: text for label, text in facts.items() if label.startswith("Input")}
        shapes = {"image": "N x 3 x 16 x 16", "first": "N x 8 x 16 x 16"}
        assert found == {label: f"{shapes[source]}\nfrom {source}" for label, source in expected.items()}


def test_a_wrong_value_is_said_once_at_its_field(editor: Editor) -> None:
    """Of parameters, of the parameters of an activation, and of parameters without a field; it goes with its layer."""
    context, document = editor.context, editor.document
    context.select(("first",))
    editor.set("first", kernel="axb")
    state = editor.state()
    assert list(state["wrong"]) == ["kernel"]
    assert state["findings"] == []
    document.undo()
    editor.expect("undone", wrong={}, findings=[], fixes=None)
    assert document.do(lambda graph: commands.set_activation_param(graph, ["first"], "negative_slope", "much"))
    state = editor.state()
    assert list(state["wrong"]) == ["activation.negative_slope"]
    assert state["findings"] == []
    context.select(("second",))
    editor.expect("another layer", wrong={}, findings=[], fixes=None, because=True)
    context.select(("first", "second"))
    state = editor.state()
    assert (state["wrong"], state["fixes"], len(state["findings"])) == ({}, None, 1)  # of several, below the facts
    document.undo()
    editor.expect("undone", wrong={}, findings=[], because=False)
    editor.set("first", nonsense="1")
    context.select(("first",))
    count = len(editor.state()["findings"])
    document.undo()
    editor.expect("undone", wrong={}, findings=[])
    editor.set("second", stride="64x64", kernel="64x64", padding="valid")
    context.select(("second",))
    state = editor.state()
    assert len(state["findings"]) == 1
    assert state["fixes"] is not None
    context.select(("first", "second"))
    editor.expect("several", fixes=None)
    context.select(("third",))
    editor.expect("what depends on it", because=True, fixes=None, findings=[])
    link = editor.panel._facts._because
    before = "dark" if theme.is_dark() else "light"
    theme.apply(QApplication.instance(), "light" if before == "dark" else "dark")
    switched = link.grab().toImage()
    text = link.text()
    link.clear()
    link.setText(text)  # in the colors of this theme
    assert switched == link.grab().toImage()
    theme.apply(QApplication.instance(), before)
    context.select(("second",))
    document.undo()
    editor.expect("mended", findings=[], fixes=None, because=False)
    assert count <= 1


def test_what_is_typed_and_not_applied_stays_with_its_layer(editor: Editor) -> None:
    context, document = editor.context, editor.document
    context.select(("first",))
    editor.type("kernel.width", "x")
    editor.type("activation.negative_slope", "steep")
    state = editor.state()
    assert set(state["wrong"]) == {"kernel", "activation.negative_slope"}
    assert document.history.undo_title is None
    editor.set("image", dims="32x32x3")  # another edit leaves them
    assert set(editor.state()["wrong"]) == {"kernel", "activation.negative_slope"}
    document.undo()
    assert document.do(
        lambda graph: commands.set_activation(
            graph, ["second"], ActivationSpec("leaky_relu", {"negative_slope": "0.1"})
        )
    )
    editor.set("second", features="8")
    context.select(("second",))  # the same texts in every field
    editor.expect("another layer", wrong={})
    assert editor.texts("kernel", "activation.negative_slope") == ["3x3", "0.1"]
    context.select(("first",))
    editor.expect("back", wrong={})
    assert editor.texts("kernel", "activation.negative_slope") == ["3x3", "0.1"]
    editor.panel._name.line.setText("")
    editor.qtbot.keyClicks(editor.panel._name.line, "odd")
    assert editor.panel._name._message.isVisible()
    context.select(("second",))
    editor.expect("name", name="second")
    assert not editor.panel._name._message.isVisible()


def test_a_name_that_is_typed_stays_while_other_things_change(editor: Editor) -> None:
    """Until the layer gets another name or another layer is shown."""
    context, document = editor.context, editor.document
    context.select(("second",))
    for wrong, typed in ((True, "first"), (False, "beginning")):
        editor.type("name", typed)
        for act in (
            lambda: editor.set("second", features="5"),
            lambda: editor.set("first", features="5"),
            document.undo,
            document.undo,
            lambda: document.do(lambda graph: commands.set_activation(graph, ["second"], ActivationSpec("relu"))),
            document.undo,
            lambda: document.do(lambda graph: commands.rename_layer(graph, "first", "other")),
            document.undo,
            theme.changes().changed.emit,
        ):
            act()
            editor.expect("another edit", name=typed)
            assert editor.panel._name._message.isVisible() is wrong
        assert document.do(lambda graph: commands.rename_layer(graph, "second", "elsewhere"))
        editor.expect("renamed elsewhere", name="elsewhere")
        assert not editor.panel._name._message.isVisible()
        editor.type("name", typed)
        document.undo()
        editor.expect("undone", name="second")


def test_a_search_for_fixes_ends_with_the_selection(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that takes several turns of the event loop."""
    context, panel = editor.context, editor.panel
    editor.set("second", stride="64x64", kernel="64x64", padding="valid")
    monkeypatch.setattr(fixes, "SLICE_MS", -1)
    for other in (("first",), ("first", "second"), ()):
        context.select(("second",))
        assert panel._search.active
        editor.qtbot.waitUntil(lambda: not panel._search.active, timeout=WAIT)
        assert panel._fixes.fixes
        assert panel._fixes.isVisible()
        context.select(("first",))
        context.select(("second",))
        assert panel._search.active
        context.select(other)
        editor.qtbot.waitUntil(lambda: not panel._search.active, timeout=WAIT)
        assert not panel._fixes.isVisible()
        assert panel._fixes.fixes == () or not other


def test_edits_of_one_field_are_one_step_for_one_selection(editor: Editor) -> None:
    context, document = editor.context, editor.document
    context.select(("first",))
    for text in ("1", "12", "123"):
        editor.type("features", text)
    assert document.graph["first"].params["features"] == "123"
    context.select(("second",))
    context.select(("first",))
    editor.type("features", "9")
    document.undo()
    assert document.graph["first"].params["features"] == "123"
    document.undo()
    assert document.graph["first"].params["features"] == "8"
    assert document.history.undo_title is None
    context.select(("first", "third"))
    editor.type("features", "5")
    assert [document.graph[name].params["features"] for name in ("first", "second", "third")] == ["5", "4", "5"]
    before = len(editor.said)
    box = editor.find("activation", QComboBox)
    box.setCurrentIndex(box.findData("relu"))
    box.activated.emit(box.currentIndex())
    assert [document.graph[name].activation for name in ("first", "third")] == [
        ActivationSpec("relu", {"alpha": "0.0"}),
        ActivationSpec("relu"),  # it had it before
    ]
    assert len(editor.said) == before
    editor.type("activation.alpha", "0.5")  # of both
    assert [document.graph[name].activation.params for name in ("first", "third")] == [{"alpha": "0.5"}] * 2
    assert document.graph["second"].activation is None
    document.undo()
    asked: list[str] = []
    context.canvas_requested.connect(lambda: asked.append("canvas"))
    for key, leaves in (
        (Qt.Key.Key_Return, True), (Qt.Key.Key_Enter, True), (Qt.Key.Key_Escape, True), (Qt.Key.Key_Tab, False), (Qt.Key.Key_A, False),
    ):  # fmt: skip
        editor.qtbot.keyClick(editor.panel, key)
        assert bool(asked) is leaves
        asked.clear()
    context.select(("first",))
    line = editor.panel._name.line
    line.setFocus()
    line.selectAll()
    editor.qtbot.keyClicks(line, "renamed")
    editor.qtbot.keyClick(line, Qt.Key.Key_Return)
    assert context.selection == ("renamed",)
    editor.expect("renamed", name="renamed", activation="ReLU")
    document.undo()
    assert "first" in document.graph


def test_a_layer_inside_of_a_template_is_renamed_there(editor: Editor) -> None:
    part = (
        Layer("x", "template_input"),
        Layer("first", "relu", inputs=(Source("x"),)),
        Layer("y", "template_output", inputs=(Source("first"),)),
    )
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "8x8x3"}),
            Layer("first", "template", inputs=(Source("image"),), params={"template": "part"}),
            Layer("out", "output", inputs=(Source("first"),)),
        ],
        templates=[Template("part", part)],
    )
    context, document = editor.context, editor.open(graph)
    context.enter("first")
    context.select(("first",))
    line = editor.panel._name.line
    line.setFocus()
    line.selectAll()
    editor.qtbot.keyClicks(line, "inner")
    editor.qtbot.keyClick(line, Qt.Key.Key_Return)
    assert context.selection == ("inner",)
    assert [layer.name for layer in document.graph.templates["part"].layers] == ["inner", "x", "y"]
    assert list(document.graph.layers) == ["image", "first", "out"]


def test_a_name_is_judged_while_it_is_typed(qtbot: QtBot) -> None:
    field = shown(
        qtbot, NameField("name", "Name", lambda text: "it is taken" if text in ("taken", "own") else None), 200, 60
    )
    sent: list[str] = []
    field.renamed.connect(sent.append)
    line = field.line

    def state() -> tuple[str, str, list[str]]:
        found = list(sent)
        sent.clear()
        return line.text(), field._message.text(), found

    field.show_name("own")
    line.setFocus()
    for keys, text, message in (("taken", "taken", "It is taken."), ("x", "takenx", "")):
        if keys != "x":
            line.selectAll()
        qtbot.keyClicks(line, keys)
        assert state() == (text, message, [])
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert state() == ("takenx", "", ["takenx"])
    field.show_name("takenx")
    line.selectAll()
    qtbot.keyClicks(line, "taken")
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert state() == ("taken", "It is taken.", [])
    qtbot.keyClick(line, Qt.Key.Key_Escape)
    assert state() == ("takenx", "", [])
    field.show_name("own")
    line.selectAll()
    qtbot.keyClicks(line, "ow")
    qtbot.keyClicks(line, "n")  # the name that it has, whatever the rule says
    assert state() == ("own", "", [])
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert state() == ("own", "", [])
    line.selectAll()
    qtbot.keyClicks(line, "taken")
    field.show_name("taken")  # renamed by another way to what is typed
    assert state() == ("taken", "", [])


# --- weights -------------------------------------------------------------------------------------------------------------------


def test_what_the_user_is_asked_before_weights_are_edited(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Pruning counts the whole network, also while a template is shown; a number that stays and a cancelled dialog do nothing."""
    graph = workshop("256", "3x3")
    graph.apply(commands.set_params(graph, {"second": {"features": "256"}}))
    assert "saves at most" in expected_gain(candidates(graph, default_registry()))
    graph.apply(make_template(graph, ["third"], "block"))
    bench = Bench(graph)
    context, window = bench.context, QWidget()
    qtbot.addWidget(window)
    context.setParent(window)
    edits = WeightEdits(context, window)
    done: list[tuple[object, ...]] = []
    monkeypatch.setattr(edits._surgery, "operate", lambda *what, **how: done.append((*what, *how.values())))
    asked: list[str] = []
    answers: list[str] = []

    def answer(box: QMessageBox) -> None:
        asked.append(box.text())
        button = next(b for b in box.buttons() if b.text().replace("&", "") == answers[-1])
        button.click()

    monkeypatch.setattr(QMessageBox, "exec", answer)
    whole = expected_gain(candidates(graph, context.registry))
    assert whole != expected_gain(candidates(graph.inside("block"), context.registry))
    for scope in ("", "block_0"):
        if scope:
            assert context.enter(scope)
        for text, expected in (("Cancel", []), ("Prune", [("prune", "")])):
            answers.append(text)
            edits.prune()
            assert (asked.pop(), done) == (whole, expected)
            done.clear()
    prompts: list[tuple[object, ...]] = []
    replies: list[tuple[int, bool]] = []

    def ask(_parent: object, title: str, text: str, *numbers: int) -> tuple[int, bool]:
        prompts.append((text, *numbers))
        return replies[-1]

    monkeypatch.setattr(QInputDialog, "getInt", ask)
    context.select(("third",))
    for reply, expected in (((4, True), []), ((9, False), []), ((9, True), [("features", "block_0.third", 9)])):
        replies.append(reply)
        edits.set_channels()
        text = "Channels of block_0.third (now 4); more keep the function of the network:"
        assert prompts.pop() == (text, 4, 1, 65536)
        assert done == expected
    done.clear()
    for command, name in ((edits.insert_identity, "identity"), (edits.split, "split"), (edits.fold, "fold")):
        command()
        assert done.pop() == (name, "block_0.third")
    edits.save_weights()
    assert bench.said.pop() == ("error", "The network has no weights. Choose them in Network Settings.")
    proposals: list[Path] = []
    monkeypatch.setattr(file_dialogs, "_saved_in", [tmp_path])

    def save(_parent: object, _title: str, proposed: str, *_rest: object) -> tuple[str, str]:
        proposals.append(Path(proposed))
        return "", ""

    monkeypatch.setattr(file_dialogs.QFileDialog, "getSaveFileName", save)
    root = context.root
    root.change_settings(weights=str(tmp_path / "old.safetensors"))
    edits.save_weights()
    named = Document(workshop(), context.registry, tmp_path / "my net.v2.xml", parent=context)
    named.change_settings(weights=str(tmp_path / "old.safetensors"))
    context.set_document(named)
    edits.save_weights()
    assert [path.name for path in proposals] == [f"{root.graph.name}.safetensors", "my net.v2.safetensors"]
    assert proposals[1].parent == tmp_path
    assert bench.said == []


def test_the_report_of_the_weights_is_of_the_present_ones(qtbot: QtBot, tmp_path: Path) -> None:
    """Text, severity and table for locations, networks and documents in turn."""
    graph = workshop()
    graph.apply(commands.remove_layers(graph, ["odd", "odder"]))
    bench = Bench(graph)
    document = bench.document
    view = shown(qtbot, WeightsReportView("weights"), 500, 400)
    view._later.setInterval(1)
    bench.context.setParent(view)
    details = view.findChild(QToolButton, "weights.details")
    label = view.findChild(QLabel, "weights.summary")
    table = view.findChild(QTableWidget, "weights.tensors")
    roles: tuple[theme.RoleName, ...] = ("error", "warning", "positive", "info")
    colors = {role: theme.color(role) for role in roles}

    def state() -> tuple[str, str, bool, bool, list[str]]:
        qtbot.waitUntil(lambda: not view._later.isActive() and not view._check._busy, timeout=WAIT)
        ink = label.palette().color(QPalette.ColorGroup.Active, QPalette.ColorRole.WindowText)
        role = next(role for role, color in colors.items() if color == ink)
        rows = [table.item(row, 1).text() for row in range(table.rowCount())]
        return label.text(), role, details.isVisible(), table.isVisible(), rows

    none = "No weights selected. Choose a folder or file to run the network with trained weights."
    full, other, broken, package = (
        tmp_path / f"{name}" for name in ("full.safetensors", "other.safetensors", "broken.safetensors", "model.pt")
    )
    needed = required_weights(document.inference)
    save_weights(full, random_weights(needed, 1).tensors)
    tensors = random_weights(needed, 2).tensors
    first = next(iter(tensors))
    del tensors[first]
    save_weights(other, tensors)
    broken.write_bytes(b"no weights")
    view.follow(document)
    assert state() == (none, "info", False, False, [])
    document.change_settings(weights=str(full))
    count = len(needed)
    assert state() == (f"{count} of {count} tensors bound.", "positive", True, False, ["bound"] * count)
    details.click()
    assert state()[3] is True
    document.change_settings(weights=str(other))
    text, role, *rest, rows = state()
    assert (text, role, rest) == (f"{count - 1} of {count} tensors bound, 1 missing.", "error", [True, True])
    assert rows == ["missing", *["bound"] * (count - 1)]
    document.change_settings(weights=str(broken))
    text, role, *rest, rows = state()
    assert (role, rest, rows) == ("error", [False, False], [])
    assert text.count(". ") >= 1  # what is wrong, and what to do
    document.change_settings(weights=str(tmp_path / "nowhere.safetensors"))
    text, role, *rest, rows = state()
    assert (role, rest, rows) == ("error", [False, False], [])
    assert text.count(". ") >= 1
    document.change_settings(weights=str(package))
    assert state() == (f"The file {package} does not exist. Choose another one.", "error", False, False, [])
    package.write_bytes(b"")
    document.change_settings(weights=str(full))
    document.change_settings(weights=str(package))
    later = ("The engine checks this file when the network runs.", "info", False, False, [])
    assert state() == later  # not the answer about the other file
    document.change_settings(weights=str(full))
    assert state()[:2] == (f"{count} of {count} tensors bound.", "positive")
    assert state()[3] is True  # the details stay open
    bench.set("second", features="5")
    text, role, *_, rows = state()
    assert (text, role) == (f"{count - 3} of {count} tensors bound, 3 wrong shape.", "error")
    assert rows[:4] == ["wrong shape"] * 3 + ["bound"]
    shapes = [[table.item(row, column).text() for column in (0, 2, 3)] for row in range(3)]
    assert shapes[0] == ["second.bias", "5", "4"]
    assert all(table.item(0, column).toolTip() for column in range(4))
    document.undo()
    assert state()[:2] == (f"{count} of {count} tensors bound.", "positive")
    for params, expected in (
        ({"kernel": "5x5"}, f"{count - 1} of {count} tensors bound, 1 wrong shape."),
        ({"apply_bias": "false"}, f"{count - 1} of {count - 1} tensors bound, 1 unexpected."),
    ):  # the shapes of all outputs stay
        before = dict(document.inference.states)
        bench.set("second", **params)
        assert document.inference.states == before
        assert state()[0] == expected
        document.undo()
        assert state()[:2] == (f"{count} of {count} tensors bound.", "positive")
    assert document.do(lambda g: commands.rename_layer(g, "second", "other"))
    assert state()[0] == f"{count - 2} of {count} tensors bound, 2 missing, 2 unexpected."
    document.undo()
    assert document.do(lambda g: commands.remove_layers(g, ["third"]))
    text, role, *_ = state()
    assert (text, role) == (f"{count - 2} of {count - 2} tensors bound, 2 unexpected.", "warning")
    checks: list[object] = []
    view._check.found.connect(checks.append)
    document.change_settings(threads=3)  # nothing about weights
    state()
    assert checks == []
    view.follow(bench.other)
    assert state() == (none, "info", False, False, [])
    document.undo()
    document.undo()
    bench.set("first", document, features="3")
    document.change_settings(weights=str(other))
    assert state() == (none, "info", False, False, [])  # of the document that is not followed
    view.follow(document)
    assert state()[1] == "error"
    document.change_settings(weights=str(full))
    document.change_settings(weights=str(other))  # waits for the first one
    document.change_settings(weights="")  # while the first file is read
    assert state() == (none, "info", False, False, [])
    view.follow(None)
    assert state() == (none, "info", False, False, [])


# --- Code View -------------------------------------------------------------------------------------------------------------------


def test_the_code_follows_document_selection_and_problems(qtbot: QtBot) -> None:
    graph = workshop()
    graph.apply(commands.remove_layers(graph, ["odd", "odder"]))
    bench = Bench(graph)
    context, document = bench.context, bench.document
    panel = shown(qtbot, CodeViewPanel(context), 600, 500)
    context.setParent(panel)

    def state() -> tuple[str, str, bool, bool, bool]:
        """What is shown: the scope, the problem, whether code is there, can be read and copied."""
        qtbot.waitUntil(lambda: not (panel._busy or panel._stale or panel._later.isActive()), timeout=WAIT)
        there = panel.source()
        return panel._scope.text(), panel._problem.text(), bool(there), panel._text.isEnabled(), panel._copy.isEnabled()

    whole = ("Whole network", "", True, True, True)
    assert state() == whole
    code = panel.source()
    context.select(("first",))
    assert state() == ("first", "", True, True, True)
    assert panel.source() != code
    context.select(("first", "second"))
    assert state() == ("2 selected layers", "", True, True, True)
    part = panel.source()
    panel._only_selection.click()
    assert (state(), panel.source()) == (whole, code)
    panel._only_selection.click()
    assert (state()[0], panel.source()) == ("2 selected layers", part)
    context.select(tuple(document.graph.layers))
    assert state()[0] == "5 selected layers"
    context.select(())
    assert (state(), panel.source()) == (whole, code)
    bench.set("second", kernel="axb")
    scope, problem, *rest = state()
    assert (scope, rest) == ("Whole network", [True, False, False])
    assert problem.startswith("No code generated. second: ")
    assert "more problem" not in problem
    assert panel.source() == code  # of before, and grey
    bench.set("first", kernel="axb")
    assert "(1 more problem)" in state()[1]
    document.undo()
    document.undo()
    assert (state(), panel.source()) == (whole, code)
    name = document.graph.name
    assert document.do(lambda g: commands.set_property(g, "name", "another_name"))
    assert (state(), panel.source() != code) == (whole, True)  # the class is called so
    document.undo()
    assert document.graph.name == name
    assert (state(), panel.source()) == (whole, code)
    bench.set("second", kernel="axb")
    state()
    bench.set("third", bench.other, kernel="axb")
    context.set_document(bench.other)
    scope, problem, there, *_ = state()
    assert (scope, problem, there) == ("", "", False)  # not the code of the other document
    assert panel._empty.text().startswith("No code generated. third: ")
    bench.other.undo()
    assert state() == whole
    assert panel.source() not in ("", code)
    mine = panel.source()
    document.undo()  # of the document that is not shown
    bench.set("first", document, features="31")
    assert (state(), panel.source()) == (whole, mine)
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert state() == ("", "", False, True, False)
    assert panel._empty.text() == "Add layers from the Layer Palette to see their PyTorch code here."
    context.set_document(document)
    assert state() == whole
    assert "31" in panel.source()
    assert panel.findChild(QPushButton, "code_view.nothing") is None


def test_code_that_is_out_of_date_is_not_shown(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    panel = shown(qtbot, CodeViewPanel(bench.context), 600, 500)
    bench.context.setParent(panel)

    def rest() -> None:
        qtbot.waitUntil(lambda: not (panel._busy or panel._stale or panel._later.isActive()), timeout=WAIT)

    rest()
    before = panel.source()
    works: list[Any] = []
    monkeypatch.setattr(panel._lane, "start", works.append)
    bench.set("first", features="21")
    panel._generate()
    bench.set("first", features="22")  # while the code is written
    panel._on_done(works.pop()())
    assert panel.source() == before
    panel._generate()
    panel._on_done(works.pop()())
    assert "22" in panel.source()
    assert "21" not in panel.source()


# --- Type Checking ---------------------------------------------------------------------------------------------------------------


def test_the_current_finding_over_edits_fixes_filters_and_documents(qtbot: QtBot) -> None:
    """The first one is offered with its fixes until the user chooses another one, which stays as long as it is there."""
    graph = workshop()
    graph.apply(commands.set_params(graph, {"first": {"stride": "x"}, "second": {"kernel": "y"}}))
    bench = Bench(graph)
    context, document = bench.context, bench.document
    panel = shown(qtbot, TypeCheckingPanel(context), 900, 400)
    context.setParent(panel)
    table = panel._table

    def state() -> tuple[str, list[str], bool]:
        """The layer of the current finding, those of all rows, and whether fixes are shown."""
        qtbot.waitUntil(
            lambda: not (panel._later.isActive() or panel._find_fixes.isActive() or panel._search.active), timeout=WAIT
        )
        model = table.model()
        layers = [model.index(row, 1).data() for row in range(model.rowCount())]
        current = panel._finding(table.currentIndex())
        return (current.layer or "" if current is not None else ""), layers, panel._fixes.isVisible()

    def choose(layer: str) -> None:
        place = table.visualRect(table.model().index(state()[1].index(layer), 3)).center()
        qtbot.mouseClick(table.viewport(), LEFT, pos=place)

    everything = state()[1]
    assert state()[0] == everything[0]
    assert {"first", "second", "odd", "odder"} <= set(everything)
    choose("second")
    assert state() == ("second", everything, True)
    bench.set("first", stride="1x1")  # another row is mended
    assert state() == ("second", [layer for layer in everything if layer != "first"], True)
    document.undo()
    assert state() == ("second", everything, True)
    panel._filter.setText("odd")
    assert state()[1] == ["odd", "odder"]
    assert state()[0] == "odd"
    panel._filter.setText("unknown-operator")  # its code
    assert state()[1] == ["odd", "odder"]
    panel._filter.setText("ODD no_such_type")
    assert state()[1] == ["odd", "odder"]
    panel._filter.setText("nothing like it")
    assert state() == ("", [], False)
    assert panel._empty.text() == f"The filter hides all {len(everything)} problems."
    panel._filter.setText("")
    assert state()[1:] == (everything, True)
    choose("second")
    table.sortByColumn(1, Qt.SortOrder.DescendingOrder)
    order = state()[1]
    assert order == sorted(order, reverse=True)
    bench.set("first", stride="2x2")
    assert state()[0] == "second"
    fix = panel._fixes.fixes[0]
    row = state()[1].index("second")
    count = len(state()[1])
    panel._fixes.chosen.emit(fix)
    after = state()
    assert len(after[1]) < count
    assert after[0] == after[1][min(row, len(after[1]) - 1)]  # on with what took its place
    document.undo()
    document.undo()
    bench.set("image", dims="8x8x3")  # nothing of this row
    assert state()[0] in state()[1]
    context.set_document(bench.other)
    assert state()[1] == sorted(state()[1], reverse=True)
    assert state()[1] == ["odder", "odd"]
    bench.set("first", document, stride="2x2")
    assert state()[1] == ["odder", "odd"]
    assert bench.other.do(lambda g: commands.remove_layers(g, ["odd", "odder"]))
    assert state() == ("", [], False)
    assert panel._empty.text() == "No problems found."
    bench.other.undo()
    assert state()[1] == ["odder", "odd"]


# --- Network Settings --------------------------------------------------------------------------------------------------------------


def test_settings_and_messages_are_those_of_the_open_document(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    context, document = bench.context, bench.document
    panel = shown(qtbot, NetworkSettingsPanel(context), 400, 900)
    context.setParent(panel)

    def state() -> dict[str, Any]:
        settle(panel)
        return {
            "engine": panel._engine.currentData(),
            "numbers": [field.text() for field in (panel._threads, panel._iterations, panel._seed)],
            "random": (panel._random.isChecked(), panel._seed.isEnabled()),
            "weights": panel._weights.text(),
            "messages": {key: each.text() for key, each in panel._messages.items() if each.text() and key != "engines"},
        }

    def type(field: Any, text: str) -> None:
        line = getattr(field, "lineEdit", lambda: field)()
        line.setFocus()
        line.selectAll()
        qtbot.keyClicks(line, text)

    fresh = state()
    assert fresh["messages"] == {}
    assert fresh["random"] == (False, False)
    for field, key, most in (
        (panel._threads, "threads", MAX_THREADS),
        (panel._iterations, "iterations", MAX_ITERATIONS),
    ):
        type(field, str(most))
        assert getattr(document.settings, key) == most
        assert key not in state()["messages"]
        type(field, str(most + 1))
        assert getattr(document.settings, key) == (most + 1) // 10  # without the last digit
        assert key in state()["messages"]
    assert set(state()["messages"]) == {"threads", "iterations"}
    context.set_document(bench.other)
    assert state() == fresh | {"engine": bench.other.settings.engine}  # nothing of the other document
    document.change_settings(threads=7)
    assert state()["numbers"] == fresh["numbers"]
    panel._random.click()
    assert (bench.other.settings.random_seed, state()["random"]) == (0, (True, True))
    type(panel._seed, "12")
    panel._random.click()
    assert (bench.other.settings.random_seed, state()["random"]) == (None, (False, False))
    panel._random.click()
    assert (bench.other.settings.random_seed, state()["numbers"][2]) == (0, "0")
    bench.other.undo()
    named = Document(workshop(), context.registry, tmp_path / "net.xml", parent=context)
    context.set_document(named)
    type(panel._weights, "numbers")
    qtbot.keyClick(panel._weights, Qt.Key.Key_Return)
    assert named.settings.weights == str(tmp_path / "numbers")  # next to the document
    assert (state()["weights"], state()["messages"]) == (str(tmp_path / "numbers"), {})
    version = tmp_path / "version.safetensors"
    edited = "Edited weights that are not saved elsewhere: File > Save Weights As."
    monkeypatch.setattr(network_settings, "is_version", lambda path: path == version)
    for weights, message in ((version, {"weights": edited}), (tmp_path / "other", {}), (version, {"weights": edited})):
        named.change_settings(weights=str(weights))
        assert state()["messages"] == message
    panel._weights.clear()
    assert (named.settings.weights, state()["messages"]) == ("", {})
    context.set_document(document)
    assert state()["numbers"][0] == "7"
    for engine, device in (("torch", "cpu"), ("torch", "cuda:0"), ("onnxruntime", "cuda:0"), ("onnxruntime", "cpu")):
        document.change_settings(engine=engine, device=device)
        assert state()["engine"] == engine
        offered = [panel._device.itemData(row) for row in range(panel._device.count())]
        assert offered[: len(run_choices.devices(engine))] == [choice.value for choice in run_choices.devices(engine)]
        formats = [panel._precision.itemText(row) for row in range(panel._precision.count())]
        expected = run_choices.precisions(engine, device)
        assert formats == [f"{c.title} - {c.reason}" if c.reason else c.title for c in expected]


# --- Differences ---------------------------------------------------------------------------------------------------------------------


def test_differences_end_and_begin_with_other_documents(qtbot: QtBot) -> None:
    graph = workshop()
    graph.apply(make_template(graph, ["third"], "block"))
    bench = Bench(graph)
    context, document = bench.context, bench.document
    panel = shown(qtbot, DifferencesPanel(context), 700, 400)
    context.setParent(panel)
    third = Document(workshop("5"), context.registry, parent=context)
    context.comparison.open_documents = lambda: [document, bench.other, third]

    def state() -> tuple[str, int, bool, bool, bool]:
        """The head, the number of rows, whether they are seen, and whether one can copy and end."""
        settle(panel)
        seen = panel._stack.currentWidget() is panel.tree
        return (
            panel.head.text(),
            panel.tree.topLevelItemCount(),
            seen,
            panel.copy.isEnabled(),
            panel.close_button.isEnabled(),
        )

    def offered() -> list[str]:
        panel._menu.aboutToShow.emit()
        return [action.text() for action in panel._menu.actions()[2:]]

    none = ("", 0, False, False, False)
    assert state() == none
    names = [bench.other.title, third.title]
    assert offered() == names
    panel._menu.actions()[2].trigger()
    head, rows, *rest = state()
    assert head.startswith(f"Since {bench.other.title}: ")
    assert (rows > 0, rest) == (True, [True, True, True])
    panel.close_button.click()
    assert state() == none
    assert offered() == names  # not twice
    instance = next(layer.name for layer in document.graph if layer.type == INSTANCE)
    assert context.enter(instance)
    assert offered() == names  # the file of the template is not another document
    context.set_scope(())
    panel._menu.actions()[3].trigger()
    assert state()[0].startswith(f"Since {third.title}: ")
    assert state()[2:] == (True, True, True)
    context.comparison.stop()
    assert state() == none


def test_without_a_document_nothing_is_compared(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context(default_registry())
    panel = shown(qtbot, DifferencesPanel(context), 700, 400)
    context.setParent(panel)
    said: list[object] = []
    asked: list[tuple[str, str]] = []
    context.message.connect(lambda *each: said.append(each))
    save_document(workshop(), tmp_path / "net.xml")

    def choose(parent: object, title: str, folder: str, kinds: str) -> tuple[str, str]:
        asked.append((title, folder))
        return str(tmp_path / "net.xml"), kinds

    monkeypatch.setattr(QFileDialog, "getOpenFileName", choose)
    panel.saved.trigger()
    panel.file.trigger()
    panel.empty.triggered.emit()
    panel._menu.aboutToShow.emit()
    assert (said, asked, panel.saved.isEnabled()) == ([], [("Compare With", str(Path.home()))], False)
    assert panel.saved.toolTip() == "this network has no saved version"
    assert (context.comparison.other, panel.head.text(), panel.copy.isEnabled()) == (None, "", False)
    document = Document(workshop("5"), context.registry, parent=context)
    context.set_document(document)
    panel._menu.aboutToShow.emit()
    assert (panel.saved.isEnabled(), panel.saved.toolTip()) == (False, "this network has no saved version")
    panel.empty.triggered.emit()
    assert said == [("warning", "Cannot compare: this network has no saved version. Save it first.")]
    panel.file.trigger()
    settle(panel)
    assert context.comparison.title == "net.xml"
    assert panel.head.text().startswith("Since net.xml: ")
    document.path = tmp_path / "net.xml"
    panel._menu.aboutToShow.emit()
    assert (panel.saved.isEnabled(), panel.saved.toolTip()) == (True, "Saved Version")
    panel.file.trigger()
    assert asked[-1] == ("Compare With", str(tmp_path))
    panel.copy.click()
    assert QGuiApplication.clipboard().text() == context.comparison.result.text() != ""


# --- Layer Palette -------------------------------------------------------------------------------------------------------------------


def test_the_palette_over_documents_templates_and_searches(qtbot: QtBot) -> None:
    graph = workshop()
    graph.apply(make_template(graph, ["third"], "block"))
    bench = Bench(graph)
    context, document = bench.context, bench.document
    panel = shown(qtbot, PalettePanel(context), 300, 700)
    context.setParent(panel)
    tree = panel._tree
    head = "Templates of This Document"

    def groups() -> dict[str, bool]:
        items = [tree.topLevelItem(row) for row in range(tree.topLevelItemCount())]
        return {item.text(0): item.isExpanded() for item in items}

    def templates() -> dict[str, tuple[str, bool]]:
        item = next(
            (tree.topLevelItem(r) for r in range(tree.topLevelItemCount()) if tree.topLevelItem(r).text(0) == head),
            None,
        )
        children = [item.child(row) for row in range(item.childCount())] if item is not None else []
        spoken = Qt.ItemDataRole.AccessibleTextRole
        return {
            each.text(0): (str(each.data(0, spoken)).rpartition(", ")[2], not each.isDisabled()) for each in children
        }

    assert templates() == {"block": ("1 instance", True)}
    assert all(groups().values())
    closed = list(groups())[2]
    next(
        tree.topLevelItem(r) for r in range(tree.topLevelItemCount()) if tree.topLevelItem(r).text(0) == closed
    ).setExpanded(False)
    panel._search.setText("conv")
    panel._search.setText("")
    assert [name for name, opened in groups().items() if not opened] == [closed]
    assert document.do(lambda g: commands.add_layer(g, Layer("again", INSTANCE, params={PARAMETER: "block"})))
    assert templates() == {"block": ("2 instances", True)}
    assert panel.recent() == ()  # instances are found by their template
    document.undo()
    assert templates() == {"block": ("1 instance", True)}
    assert [name for name, opened in groups().items() if not opened] == [closed]
    instance = next(layer.name for layer in document.graph if layer.type == INSTANCE)
    assert context.enter(instance)
    assert templates() == {"block": ("1 instance", False)}  # it would use itself
    context.set_scope(())
    assert templates() == {"block": ("1 instance", True)}
    for name, kind in (("a", "pooling"), ("b", "identity"), ("c", "pooling")):
        assert document.do(lambda g, n=name, k=kind: commands.add_layer(g, Layer(n, k)))
    assert panel.recent() == ("pooling", "identity")
    assert document.do(lambda g: commands.rename_layer(g, "b", "renamed"))
    assert panel.recent() == ("pooling", "identity")  # it was not added
    context.set_document(bench.other)
    assert templates() == {}
    assert document.do(lambda g: commands.add_layer(g, Layer("d", "mix")))
    assert panel.recent() == ("pooling", "identity")  # not here
    panel._search.setText("block")
    assert "block" not in groups()
    context.set_document(document)
    assert next(iter(groups())) == "block"
    panel._search.setText("no operator is called so")
    assert tree.isVisible() is False


def test_a_template_cannot_be_added_inside_of_itself_at_any_depth(qtbot: QtBot) -> None:
    """Neither in a template that it uses, nor in one that is used by one of those."""

    def part(name: str, *uses: str) -> Template:
        layers = [Layer("x", "template_input")]
        layers += [Layer(f"of_{use}", INSTANCE, inputs=(Source("x"),), params={PARAMETER: use}) for use in uses]
        return Template(name, (*layers, Layer("y", "template_output", inputs=(Source(layers[-1].name),))))

    graph = Graph(
        [
            Layer("image", "input", params={"dims": "8x8x3"}),
            Layer("big", INSTANCE, inputs=(Source("image"),), params={PARAMETER: "large"}),
            Layer("out", "output", inputs=(Source("big"),)),
        ],
        templates=[part("small"), part("middle", "small"), part("large", "middle"), part("apart", "small")],
    )
    bench = Bench(graph)
    panel = shown(qtbot, PalettePanel(bench.context), 300, 700)
    bench.context.setParent(panel)

    def offered() -> dict[str, bool]:
        found = {}
        for text in ("template", ""):  # in a search, and in the list
            panel._search.setText(text)
            items = panel._tree.findItems("", Qt.MatchFlag.MatchContains | Qt.MatchFlag.MatchRecursive)
            names = ("small", "middle", "large", "apart")
            these = {each.text(0): not each.isDisabled() for each in items if each.text(0) in names}
            assert not found or these == found
            found = these
            for each in items:
                if each.text(0) in names:
                    assert ("Cannot be added here: " in each.toolTip(0)) is each.isDisabled()
        return {name: found[name] for name in names}

    expected = {
        (): (True, True, True, True),
        ("big",): (True, True, False, True),
        ("big", "of_middle"): (True, False, False, True),
        ("big", "of_middle", "of_small"): (False, False, False, False),
    }
    for way, wanted in expected.items():
        bench.context.set_scope(())
        for name in way:
            assert bench.context.enter(name)
        assert tuple(offered().values()) == wanted, way
