"""Sessions with the panels of the Design workspace: what all of them show after each step is recorded and compared."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import difflib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
from PySide6.QtCore import QCoreApplication, QEvent, QModelIndex, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QFileDialog,
    QGridLayout,
    QInputDialog,
    QLineEdit,
    QMenu,
    QWidget,
)
from pytestqt.qtbot import QtBot
from recorded_state import compare, lines, plain
from shown_state import named, of_menu, of_tree

from app.ui.design.code_view import CodeViewPanel
from app.ui.design.differences import DifferencesPanel
from app.ui.design.import_report import ImportReportPanel
from app.ui.design.layer_editor import ParametersPanel
from app.ui.design.network_settings import NetworkSettingsPanel
from app.ui.design.palette import PalettePanel
from app.ui.design.type_checking import TypeCheckingPanel
from app.ui.design.weight_edits import WeightEdits
from app.ui.document.document import Document
from app.ui.document.import_record import ImportRecord
from app.ui.engine.context import Context
from app.ui.widgets import theme
from app.ui.widgets.background import Background
from app.ui.widgets.number_field import NumberField
from designer.files.document import save_document
from designer.files.weight_files import save_weights
from designer.files.weights import WeightKey
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Frame, Layer, Source
from designer.graph.template import Template
from designer.graph.template_commands import rename_template
from designer.importers.report import ComparedCase, ImportReport, NodeOutcome, Outcome
from designer.operators.registry import default_registry

WAIT = 60_000  # ms
PANELS = {
    panel.panel_id: panel
    for panel in (
        PalettePanel,
        ParametersPanel,
        NetworkSettingsPanel,
        TypeCheckingPanel,
        CodeViewPanel,
        ImportReportPanel,
        DifferencesPanel,
    )
}
LEFT_OUT = re.compile(  # engines of this machine, operators that the palette always has, and what says nothing
    r"^network_settings network_settings\.(engine|device|precision|layout)( item \d+| current| tip)|^\S+ QLabel"
    r"|^palette palette\.operators row \d+\.\d+|^network_settings network_settings\.engines"
    r"|^parameters \S+\.(help|reset)(#\d+)? (tip|accessible|checked|icon)|^parameters parameters\.\w+ (item \d+|current|checked)"
    r"|^parameters number |^parameters parameters\.\S+ (tip|accessible)|^code_view code_view.source text|^parameters .*: \(gone\)"
)


def workshop() -> Graph:
    """A network with templates, several outputs, a training branch, a problem with what depends on it, and an unknown layer."""
    part = (
        Layer("x", "template_input", params={"index": "0"}),
        Layer("inner", "convolution", (160, 0), (Source("x"),), {"features": "4"}),
        Layer("y", "template_output", (320, 0), (Source("inner"),), {"index": "0"}),
    )
    outer = (
        Layer("x", "template_input", params={"index": "0"}),
        Layer("p", "template", (160, 0), (Source("x"),), {"template": "part"}),
        Layer("y", "template_output", (320, 0), (Source("p"),), {"index": "0"}),
    )
    return Graph(
        [
            Layer("image", "input", (0, 0), params={"dims": "32x24x4"}),
            Layer(
                "first",
                "convolution",
                (200, 0),
                (Source("image"),),
                {"features": "4"},
                ActivationSpec("leaky_relu", {"slope": "0.3"}),
            ),
            Layer("norm", "batch_normalization", (400, 0), (Source("first"),)),
            Layer("second", "convolution", (600, 0), (Source("norm"),), {"features": "6", "kernel": "5x5"}),
            Layer("cut", "split", (600, 160), (Source("norm"),), {"sizes": "1,3"}),
            Layer("block", "template", (600, 240), (Source("norm"),), {"template": "part"}),
            Layer("nest", "template", (800, 240), (Source("block"),), {"template": "outer"}),
            Layer("sum", "element_wise", (1000, 240), (Source("nest"), Source("norm")), {"operation": "add"}),
            Layer("aim", "input", (1000, 400), params={"dims": "32x24x4"}),
            Layer("loss", "l1_loss", (1200, 400), (Source("sum"), Source("aim"))),
            Layer("odd", "convolution", (800, 0), (Source("second"),), {"features": "none"}),
            Layer("waits", "identity", (1000, 0), (Source("odd"),)),
            Layer("strange", "of_a_plugin", (1000, 160), (Source("norm"),), {"secret": "1", "key": "a & b"}),
            Layer("result", "output", (1200, 240), (Source("sum"),)),
        ],
        name="workshop",
        frames=[Frame("f", "Body", rect=(180, -60, 600, 260))],
        templates=[Template("part", part), Template("outer", outer)],
    )


def plain_network() -> Graph:
    return Graph(
        [
            Layer("image", "input", (0, 0), params={"dims": "16x8x3"}),
            Layer("soft", "gaussian_blur", (200, 0), (Source("image"),)),
            Layer("result", "output", (400, 0), (Source("soft"),)),
        ],
        name="plain & simple",
    )


class Session:
    """All panels over one context. `step` writes down what a step changes in them, and what they ask for and say."""

    def __init__(self, qtbot: QtBot, folder: Path, monkeypatch: pytest.MonkeyPatch, *panels: str) -> None:
        self.qtbot, self.folder, self.patch = qtbot, folder, monkeypatch
        self.context = Context(default_registry())
        self.said: list[str] = []
        self.context.message.connect(lambda severity, text: self.said.append(f"says {severity}: {text}"))
        self.context.reveal_requested.connect(lambda name: self.said.append(f"reveals {name}"))
        self.context.reveal_requested.connect(lambda name: self.context.select((name,)))
        self.context.add_requested.connect(lambda name: self.said.append(f"adds {name}"))
        self.context.canvas_requested.connect(lambda: self.said.append("goes to the canvas"))
        self.widget = QWidget()
        grid = QGridLayout(self.widget)
        self.panels: dict[str, QWidget] = {}
        for number, name in enumerate(panels):
            self.panels[name] = PANELS[name](self.context)
            grid.addWidget(self.panels[name], number // 3, number % 3)
        qtbot.addWidget(self.widget)
        self.widget.resize(1800, 1200)
        self.widget.show()
        qtbot.waitExposed(self.widget)
        self.widget.activateWindow()
        self.rest()
        self.before = self._state()
        self.lines = ["# at first", *self._counting(lines(self.before, icons=True))]

    def open(self, graph: Graph, name: str = "") -> Document:
        path = self.folder / name if name else None
        document = Document(graph, self.context.registry, path, parent=self.context)
        if path is not None:
            save_document(graph, path)
        self.step(f"open {graph.name}", lambda: self.context.set_document(document))
        return document

    def step(self, what: str, act: Callable[[], object]) -> None:
        self.said.clear()
        before = self.context.selection if self.context.has_document else ()
        act()
        self.rest()
        now = self._state()
        found = [*self._counting(lines(now, since=self.before, icons=True)), *map(plain, self.said)]
        found = [line for line in found if not line.startswith("code: ")]
        if now.get("code") != self.before.get("code"):
            found += _changed_code(str(self.before.get("code", "")), str(now.get("code", "")))
        if self.context.has_document and self.context.selection != before:
            found.append(f"selects {' '.join(self.context.selection)}")
        self.lines += ["", f"# {what}", *(found or ["nothing"])]
        self.before = now

    def select(self, *names: str) -> None:
        self.step(f"select {' '.join(names)}", lambda: self.context.select(names))

    def edit(self, what: str, act: Callable[[Graph], object]) -> None:
        self.step(what, lambda: self.context.document.do(act))

    def rest(self) -> None:
        def quiet() -> bool:
            QCoreApplication.processEvents()
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            timers = [*self.widget.findChildren(QTimer), *self.context.findChildren(QTimer)]
            waits = any(t.isActive() and t.interval() <= 400 for t in timers)
            jobs = [*self.widget.findChildren(Background), *self.context.findChildren(Background)]
            return not waits and not any(job.running for job in jobs)

        self.qtbot.waitUntil(lambda: quiet() and quiet(), timeout=WAIT)

    def _state(self):
        found = {}
        for name, panel in self.panels.items():
            found |= named(name, of_tree(panel))
            fields = (field for field in panel.findChildren(NumberField) if field.isVisible() and field.objectName())
            found |= named(name, ((f"number {field.objectName()}", field.text()) for field in fields))
            if isinstance(panel, ParametersPanel):
                found |= named(name, _of_editor(panel))
            if isinstance(panel, CodeViewPanel):
                found["code"] = panel.source()
        if self.context.has_document:
            history = self.context.root.history
            found["document undo"] = f"{history.undo_title}, {history.redo_title}"
        return found

    @staticmethod
    def _counting(found: list[str]) -> list[str]:
        return [line for line in found if not LEFT_OUT.search(line)]

    # --- gestures ----------------------------------------------------------------------------------------------

    def find(self, name: str) -> QWidget:
        found = [w for w in self.widget.findChildren(QWidget, name) if w.isVisible()]
        assert found, name
        return found[0]

    def click(self, name: str) -> None:
        button = self.find(name)
        assert button.isEnabled(), name
        assert isinstance(button, QAbstractButton)
        self.step(f"click {name}", button.click)

    def type(self, name: str, text: str, *, key: Qt.Key | None = None) -> None:
        """Replace the text of a field by keys, and press a key."""
        field = self.find(name)

        def keys() -> None:
            field.setFocus()
            QTest.keySequence(field, "Ctrl+A")
            QTest.keyClick(field, Qt.Key.Key_Delete)
            QTest.keyClicks(field, text)
            if key is not None:
                QTest.keyClick(field, key)

        self.step(f"type {name} '{text}'{f' {key.name}' if key is not None else ''}", keys)

    def choose(self, name: str, text: str) -> None:
        combo = self.find(name)
        assert isinstance(combo, QComboBox)
        index = combo.findText(text)
        assert index >= 0, [combo.itemText(i) for i in range(combo.count())]

        def choose() -> None:
            combo.setCurrentIndex(index)
            combo.activated.emit(index)

        self.step(f"choose {name} {text}", choose)

    def row(self, name: str, row: int, *, double: bool = False) -> None:
        """Click or double-click a row of a table or list."""
        view = self.find(name)
        assert isinstance(view, QAbstractItemView)
        index = view.model().index(row, 0, QModelIndex())

        def click() -> None:
            place = view.visualRect(index).center()
            QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
            if double:
                QTest.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)

        self.step(f"{'double-click' if double else 'click'} row {row} of {name}: {index.data()}", click)

    def menu(self, what: str, open_: Callable[[], object], press: str = "") -> None:
        """Open a menu, write down its entries, and choose one."""

        def act() -> None:
            open_()
            QApplication.processEvents()
            (menu,) = [m for m in self.widget.findChildren(QMenu) if m.isVisible()]
            self.rest()
            self.said += [f"offers {line}" for line in lines(named("", of_menu(menu, "")), icons=True)]
            if press:
                chosen = [a for a in menu.actions() if press in (a.text().replace("&", ""), a.objectName())]
                assert chosen, self.said
                chosen[0].trigger()
            menu.close()

        self.step(f"menu of {what}{f', {press}' if press else ''}", act)

    def ask(self, kind: str, answer: Path | str) -> None:
        """The answer of the next file dialogs; they write down where they begin."""

        def asked(_parent: object, title: str, folder: str = "", kinds: str = "", *_rest: object) -> object:
            self.said.append(f"asks {title} in {folder.replace(str(self.folder), '.')} for {kinds}")
            return str(answer) if kind == "getExistingDirectory" else (str(answer), "")

        self.patch.setattr(QFileDialog, kind, asked)


def _of_editor(panel: ParametersPanel) -> Iterator[tuple[str, object]]:
    """The value of every parameter, and the facts, which have no names."""
    if panel._stack.currentWidget() is not panel._empty:
        for rows in (panel._operator_rows, panel._activation_rows):
            for row in rows.rows.values() if rows is not None else ():
                inner = row.editor.inner
                if not row.editor.isHidden():
                    field = inner.findChild(QLineEdit) or inner
                    hint = field.placeholderText() if isinstance(field, QLineEdit | QComboBox) else ""
                    yield f"value of {inner.objectName()}", f"{row.editor.text()!r} {hint} {inner.statusTip()}".strip()
        for fact, text in panel._facts.facts().items():
            yield f"fact {fact}", text


def _changed_code(before: str, now: str) -> list[str]:
    """The lines of code that are new, and how many are gone."""
    found = list(difflib.unified_diff(before.splitlines(), now.splitlines(), n=0, lineterm=""))[2:]
    gone = sum(line.startswith("-") for line in found)
    return [*(f"code {line}" for line in found if line.startswith("+") and line != "+"), f"code without {gone} lines"]


@pytest.fixture
def make(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    return lambda *panels: Session(qtbot, tmp_path, monkeypatch, *panels)


def test_every_layer_is_shown_by_all_panels(make):
    session = make("parameters", "code_view", "type_checking")
    document = session.open(workshop(), "workshop.xml")
    for name in document.graph.layers:
        session.select(name)
    session.select("first", "second")
    session.select("first", "norm")
    session.select("block", "nest")
    session.select("aim", "loss")
    session.select("loss", "sum")
    session.select("strange", "first")
    session.select("strange", "odd", "first")
    session.step("code of all", session.find("code_view.only_selection").click)
    session.select("first")
    session.step("code of the selection", session.find("code_view.only_selection").click)
    session.step("enter", lambda: session.context.enter("nest"))
    session.step("enter", lambda: session.context.enter("p"))
    session.select("inner")
    session.edit("change inside", lambda g: commands.set_params(g, {"inner": {"features": "5"}}))
    session.step("undo", session.context.undo)
    other = session.open(plain_network())
    session.select("soft")
    session.step("back", lambda: session.context.set_document(document))
    session.step("leave", session.context.leave)
    session.step("leave", session.context.leave)
    session.select("second")
    session.edit("remove", lambda g: commands.remove_layers(g, ["second", "odd", "waits", "strange"]))
    session.step("other", lambda: session.context.set_document(other))
    session.edit("remove all", lambda g: commands.remove_layers(g, list(g.layers)))
    session.step("undo", session.context.undo)
    compare("design_layers", session.lines)


def test_every_control_of_the_layer_editor_and_of_type_checking(make):
    session = make("parameters", "type_checking")
    document = session.open(workshop(), "workshop.xml")
    session.select("second")
    session.type("parameters.features", "12")
    session.type("parameters.features", "8*2", key=Qt.Key.Key_Return)
    session.type("parameters.features", "0")
    session.type("parameters.features", "-", key=Qt.Key.Key_Escape)
    session.type("parameters.kernel.height", "3", key=Qt.Key.Key_Return)
    session.choose("parameters.padding", "tuple")
    session.type("parameters.padding_tuple.width", "2", key=Qt.Key.Key_Return)
    session.click("parameters.apply_bias")
    session.click("parameters.features.reset")
    session.click("parameters.features.help")
    session.click("parameters.help")
    session.choose("parameters.activation", "Hard tanh")
    session.type("parameters.activation.min_value", "-2", key=Qt.Key.Key_Return)
    session.type("parameters.name", "norm")
    session.type("parameters.name", "norm", key=Qt.Key.Key_Return)
    session.type("parameters.name", "third", key=Qt.Key.Key_Escape)
    session.type("parameters.name", "third", key=Qt.Key.Key_Return)
    session.click("parameters.reset_all")
    session.step("undo", session.context.undo)
    session.select("first", "third")
    session.choose("parameters.activation", "none")
    session.type("parameters.features", "5", key=Qt.Key.Key_Return)
    session.click("parameters.reset_all")
    session.step("undo", session.context.undo)
    session.select("block", "nest")
    session.choose("parameters.template", "part")
    session.step("rename a template", lambda: document.do(lambda g: rename_template(g, "part", "piece")))
    session.select("odd")
    session.click("parameters.fixes.0")
    session.step("undo", session.context.undo)
    session.select("waits")
    session.step("follow the link", lambda: session.find("parameters.facts.because").linkActivated.emit("odd"))
    session.select("strange")
    session.step("theme", lambda: theme.apply(QApplication.instance(), "light"))
    session.step("theme", lambda: theme.apply(QApplication.instance(), "dark"))
    session.row("type_checking.findings", 1)
    session.row("type_checking.findings", 0)
    table = session.find("type_checking.findings")
    session.step("copy", lambda: QTest.keySequence(table, "Ctrl+C"))
    session.lines.append(f"clipboard {QApplication.clipboard().text()!r}")

    def row_of(layer: str) -> int:
        return next(row for row in range(table.model().rowCount()) if table.model().index(row, 1).data() == layer)

    def menu_of(layer: str) -> None:
        table.customContextMenuRequested.emit(table.visualRect(table.model().index(row_of(layer), 3)).center())

    session.menu("a finding without a fix", lambda: menu_of(table.model().index(0, 1).data()))
    session.menu("a finding", lambda: menu_of("odd"), "fix.0")
    session.step("undo", session.context.undo)
    session.click("type_checking.error")
    session.type("type_checking.filter", "UNKNOWN")
    session.click("type_checking.error")
    session.type("type_checking.filter", "plugin odd")
    session.type("type_checking.filter", "no such word")
    session.edit("another problem", lambda g: commands.set_params(g, {"third": {"kernel": "0x0"}}))
    other = session.open(plain_network())
    session.step("back", lambda: session.context.set_document(document))
    session.type("type_checking.filter", "")
    session.row("type_checking.findings", row_of("odd"))
    session.click("type_checking.fixes.0")
    assert other.history.is_clean
    compare("design_controls", session.lines)


def test_every_control_of_differences_and_of_the_palette(make, tmp_path):
    session = make("differences", "palette")
    asked = session.click
    opened: list[Document] = []
    session.context.comparison.open_documents = lambda: list(opened)
    session.step("compare", session.panels["differences"].with_saved)
    never = session.open(plain_network())
    asked("differences.empty.action")
    document = session.open(workshop(), "workshop.xml")
    opened += [never, document]
    asked("differences.empty.action")
    session.edit("rename", lambda g: commands.rename_layer(g, "first", "start"))
    session.edit(
        "change",
        lambda g: commands.set_params(g, {"second": {"kernel": "7x7", "features": "3"}, "start": {"features": "5"}}),
    )
    session.edit("connect", lambda g: commands.connect(g, Source("start"), "strange", 0))
    session.edit("add", lambda g: commands.add_layer(g, Layer("new", "identity", (0, 600))))
    session.edit("remove", lambda g: commands.remove_layers(g, ["waits"]))
    session.edit("move", lambda g: commands.move_layers(g, {"norm": (401, 7)}))
    session.edit("property", lambda g: commands.set_property(g, "author_notes", "mine"))
    for number in range(session.find("differences.list").topLevelItemCount()):
        session.row("differences.list", number)
    asked("differences.copy")
    session.lines += [f"copied {line}" for line in QApplication.clipboard().text().splitlines()]
    session.step("enter", lambda: session.context.enter("nest"))
    session.step("enter", lambda: session.context.enter("p"))
    session.edit("change inside", lambda g: commands.set_params(g, {"inner": {"features": "6"}}))
    session.step("leave", lambda: session.context.set_scope(()))
    session.step("theme", lambda: theme.apply(QApplication.instance(), "light"))
    session.menu("others", session.panels["differences"].choose_other, "plain  simple (unsaved)")
    opened.remove(never)
    session.menu("others", session.panels["differences"].choose_other, "Saved Version")
    session.ask("getOpenFileName", "")
    session.menu("others", session.panels["differences"].choose_other, "Another Document...")
    save_document(plain_network(), tmp_path / "other.xml")
    session.ask("getOpenFileName", tmp_path / "other.xml")
    session.menu("others", session.panels["differences"].choose_other, "Another Document...")
    asked("differences.stop")
    # the palette
    tree = session.find("palette.operators")
    session.type("palette.search", "PAR")
    session.type("palette.search", "instance outer")
    session.type("palette.search", "gauss", key=Qt.Key.Key_Return)
    session.type("palette.search", "nothing of the kind")
    session.type("palette.search", "x", key=Qt.Key.Key_Escape)
    session.step("enter", lambda: session.context.enter("nest"))
    session.step("enter", lambda: session.context.enter("p"))
    session.step("leave", lambda: session.context.set_scope(()))
    head = tree.topLevelItem(0)
    session.menu("part", lambda: tree.customContextMenuRequested.emit(tree.visualItemRect(head.child(1)).center()))
    session.edit("remove an instance", lambda g: commands.remove_layers(g, ["nest"]))
    head = tree.topLevelItem(0)
    session.menu(
        "outer",
        lambda: tree.customContextMenuRequested.emit(tree.visualItemRect(head.child(0)).center()),
        "Delete Template",
    )
    session.step("undo", session.context.undo)
    head = tree.topLevelItem(0)
    session.menu(
        "part",
        lambda: tree.customContextMenuRequested.emit(tree.visualItemRect(head.child(1)).center()),
        "Open Template",
    )
    compare("design_differences", session.lines)


REPORT = ImportReport(
    "net.onnx",
    "pytorch 2.9",
    17,
    "",
    4,
    2,
    1,
    1,
    {"part": 2},
    None,
    None,
    warnings=("one warning",),
    outcomes=(
        NodeOutcome("conv_Conv", "Conv", Outcome.KNOWN, ("first", "norm")),
        NodeOutcome("part_Conv", "Conv", Outcome.KNOWN, ("nest.p.inner",)),
        NodeOutcome("lost_Conv", "Conv", Outcome.KNOWN, ("removed",)),
        NodeOutcome("odd_Odd", "Odd", Outcome.OPAQUE, (), "no rule"),
        NodeOutcome("fold_Shape", "Shape", Outcome.FOLDED),
    ),
    weights={"conv.weight": "first.kernel", "part.weight": "block.inner.kernel"},
)


def test_every_control_of_an_import_report(make, tmp_path):
    session = make("import_report")
    panel = session.panels["import_report"]
    session.step("copy nothing", panel.copy)
    session.step("save nothing", panel.save)
    plain = session.open(plain_network())
    document = Document(workshop(), session.context.registry, None, parent=session.context)
    record = document.imported = ImportRecord(tmp_path / "net.onnx", REPORT, document)
    session.step("open an import", lambda: session.context.set_document(document))
    for row in range(5):
        session.row("import_report.nodes", row)
    session.type("import_report.filter", "LOST")
    session.row("import_report.nodes", 0)
    session.type("import_report.filter", "")
    tabs = session.find("import_report.tabs")
    session.step("weights", lambda: tabs.setCurrentIndex(1))
    session.row("import_report.weights", 1)
    session.type("import_report.filter", "conv")
    session.step("templates", lambda: tabs.setCurrentIndex(2))
    session.type("import_report.filter", "")
    session.click("import_report.copy")
    session.lines += [f"copied {line}" for line in QApplication.clipboard().text().splitlines()]
    session.ask("getSaveFileName", "")
    session.click("import_report.save")
    session.ask("getSaveFileName", tmp_path / "report.json")
    session.click("import_report.save")
    session.lines.append(f"writes {sorted(json.loads((tmp_path / 'report.json').read_text()))}")
    session.ask("getSaveFileName", tmp_path / "none" / "report.json")
    session.click("import_report.save")
    cases = (ComparedCase({"x": (1, 4, 24, 32)}, 0.25, 0.5, "result"),)
    bad = msgspec.structs.replace(REPORT, cases=cases, max_abs_difference=0.25, max_rel_difference=0.5)
    session.step("compared", lambda: record.compared(bad))
    session.step("comparison", lambda: tabs.setCurrentIndex(3))
    session.step("other", lambda: session.context.set_document(plain))
    session.step("compared meanwhile", lambda: record.not_compared("it was stopped"))
    session.step("back", lambda: session.context.set_document(document))
    source = msgspec.structs.replace(REPORT, source="package.module:Net", opset=0, outcomes=(), nodes=0, templates={})
    module = Document(plain_network(), session.context.registry, None, parent=session.context)
    module.imported = ImportRecord(None, source, module)
    session.step("open a module", lambda: session.context.set_document(module))
    session.click("import_report.save")
    compare("design_import", session.lines)


def test_every_control_of_network_settings(make, tmp_path, monkeypatch):
    session = make("network_settings")
    document = session.open(workshop(), "workshop.xml")
    for name, texts in (
        ("threads", ("3", "-1", "x", "0")),
        ("iterations", ("7", "0", "12345678901234")),
        ("seed", ("5",)),
    ):
        if name == "seed":
            session.click("network_settings.random")
        for text in texts:
            session.type(f"network_settings.{name}", text, key=Qt.Key.Key_Return)
    session.click("network_settings.random")
    for number in range(1, session.find("network_settings.tile").count()):
        session.choose("network_settings.tile", session.find("network_settings.tile").itemText(number))
    session.step("undo", session.context.undo)
    weights = {
        WeightKey("first", "kernel"): np.zeros((4, 4, 3, 3), np.float32),
        WeightKey("x", "y"): np.zeros(2, np.float32),
    }
    save_weights(tmp_path / "some.safetensors", weights)
    session.ask("getOpenFileName", tmp_path / "some.safetensors")
    session.click("network_settings.weights.file")
    session.click("network_settings.weights.details")
    session.type("network_settings.weights", "gone.pt", key=Qt.Key.Key_Return)
    session.type("network_settings.weights", "")
    session.ask("getExistingDirectory", "")
    session.click("network_settings.weights.folder")
    other = session.open(plain_network(), "plain.xml")
    session.edit("another rule", lambda g: commands.add_connected(g, Layer("pool", "pooling"), Source("soft"), None))
    session.step("back", lambda: session.context.set_document(document))
    session.step("undo in the other", other.undo)
    session.step("read settings", lambda: document.restore_settings(threads=2, iterations=4, random_seed=9))
    compare("design_settings", session.lines)


def test_the_number_of_channels_is_asked_with_that_of_the_layer(make, monkeypatch):
    session = make("code_view")
    asked: list[tuple[object, ...]] = []
    made: list[tuple[object, ...]] = []
    answers = iter((7, 6, None, 3, 9))

    def ask(_parent: object, title: str, text: str, *numbers: int) -> tuple[int, bool]:
        asked.append((title, text, *numbers))
        answer = next(answers)
        return (answer or 4), answer is not None

    monkeypatch.setattr(QInputDialog, "getInt", ask)
    edits = WeightEdits(session.context, session.widget)
    monkeypatch.setattr(edits._surgery, "operate", lambda *what, **how: made.append((*what, *how.items())))
    session.open(workshop())
    for name in ("second", "second", "first", "odd"):
        session.context.select((name,))
        edits.set_channels()
    session.context.enter("block")
    session.context.select(("inner",))
    edits.set_channels()
    for command in (edits.insert_identity, edits.split, edits.fold):
        command()
    compare("design_channels", [*(f"asks {each}" for each in asked), *(f"does {each}" for each in made)])
