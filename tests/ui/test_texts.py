"""Every text that a person reads goes through the catalogue: in a made-up language nothing English is left, nothing is cut."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import gettext
import html
import math
import re
import string
from collections.abc import Iterable, Iterator

import numpy as np
from mo_kit import compiled
from PySide6.QtCore import QAbstractListModel, QPoint, QSettings, Qt, QTranslator
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QDialogButtonBox,
    QGraphicsView,
    QGroupBox,
    QLabel,
    QLineEdit,
    QMenu,
    QMessageBox,
    QPlainTextEdit,
    QSpinBox,
    QTabBar,
    QTextEdit,
    QWidget,
)

import samples
from app.ui import language, texts
from app.ui.analysis.controller import analysis_of
from app.ui.analysis.result import Phase
from app.ui.dialogs.agree_custom import AgreeDialog
from app.ui.dialogs.export_video import VideoExportDialog
from app.ui.dialogs.findings import FindingsDialog
from app.ui.dialogs.recover import RecoverDialog
from app.ui.dialogs.template_name import TemplateNameDialog
from app.ui.dialogs.unsaved import UnsavedDialog
from app.ui.document import Document
from app.ui.panels import PANELS, WORKSPACES
from app.ui.profiling.controller import profiling_of
from app.ui.widgets.sentences import sentence
from app.ui.window import MainWindow
from designer.files.document import save_document
from designer.files.recovering import Unfinished
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.api import Category, Operator
from designer.operators.registry import default_registry
from designer.profiling.figures import Origin
from designer.runtime.patterns import PATTERNS

OPEN, CLOSE = "⟦", "⟧"
WAIT = 60_000


class Pseudo(gettext.NullTranslations):
    """A language that is 30 % longer than English, and easy to tell from it."""

    def gettext(self, message: str) -> str:
        plain = "".join(text for text, *_ in string.Formatter().parse(message)) if "{" in message else message
        return f"{OPEN}{message}{'~' * math.ceil(len(plain) * 0.3)}{CLOSE}"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)


def english(text: str) -> list[str]:
    """The pieces outside of the brackets. A bracket that is not closed was elided: the rest belongs to it."""
    depth, outside = 0, []
    for sign in html.unescape(re.sub(r"<[^<>]*>", "\n", text)):
        if sign == OPEN:
            depth += 1
        elif sign == CLOSE:
            depth -= 1
            outside.append("\n")
        elif depth == 0:
            outside.append(sign)
    return pieces("".join(outside))


def pieces(text: str) -> list[str]:
    """Apart where a list, a line or a sign parts them."""
    return [piece.strip(" .,;:()[]*~×&") for piece in re.split(r"\n|\s{2,}|\s[·-]\s|[,:([]\s?|\s\+\s", text)]


# --- what stays as it is -------------------------------------------------------------------------------------------

LAYERS = ("input", "noise", "conv", "mix", "strange", "output")
DATA = (
    r"[\w./~-]*\.(xml|npy|png|jpe?g|onnx|html|csv|json)",  # files
    r"(/[\w.-]+)+/?|test_every_dialog\d",  # folders
    rf"({'|'.join(LAYERS)}|named)(:\w+)?",  # layers, the network
    r"N x|float\d+|u?int\d+|fp\d+|bf16|n[ch][hw][cw]|[xy]\b|[NCHW]\b",  # shapes, number formats, coordinates
    r"(ms|s|[KMGT]iB|[kMGT]?B|[kMGT]?FLOP(/s)?|GB/s|px|x)\b",  # units
    r"(Ctrl|Shift|Alt|F\d+|Esc|Del|Space|Enter|Return|Home|End|Tab|Up|Down|Left|Right|Backspace|Ins|PgUp|PgDown)\b\+?",  # keys
    r"Layerwright|PyTorch|torch|ONNX Runtime|onnxruntime|ONNX|numpy|CPU|cpu|ComfyUI|Blender|of_a_plugin|secret|dncnn|denoiser\w*",  # names
    r"SSIM|PSNR|Letter|dB|NumPy|GIF|PNG|CSV|JSON|HTML",
    r"NodeGraph|Nodes\b",  # the library's menus, which are never shown
)


def declared() -> set[str]:
    """Texts of operators: titles, help, parameters. They are English in every language, as the files and the code are."""
    registry = default_registry()
    found = {c.value for c in Category}
    classes: list[type[Operator]] = [*registry, *registry.activations.values()]
    for cls in classes:
        found |= {cls.type, cls.title, *cls.help().splitlines(), cls.category.value}
        for parameter in cls.parameters:
            info = parameter.info
            found |= {parameter.name, parameter.title, info.doc, info.unit or "", *info.choices}
            found |= set(parameter.title.split(":"))
    found |= {path.stem.replace("_", " ") for path in samples.path("photographs").iterdir()} | {
        name.replace("_", " ") for name in PATTERNS
    }
    return {text for text in found if text}


def told(window: MainWindow) -> Iterator[str]:
    """What the domain and the engine say: findings, where a figure comes from, the machine. It stays English for now."""
    for finding in window.context.document.diagnostics():
        yield from (sentence(finding.message), sentence(finding.remedy), finding.message, finding.remedy)
        yield from (finding.code, finding.severity.value)
    yield from (origin.value for origin in Origin)
    for entry in profiling_of(window.context).entries:
        record = entry.record
        yield from (record.title, record.weights_note, *record.notes, *record.options.values())
        yield record.machine.device(record.options)
        figures = [*record.total.values(), *record.utilisation.values(), *record.checks.values()]
        for group in record.groups:
            figures += [*group.figures.values(), *group.utilisation.values()]
            yield from (group.what, group.summary)
            yield from (f"{name} {value}" for values in group.parameters.values() for name, value in values.items())
        yield from (figure.reason for figure in figures)


# --- reading the window --------------------------------------------------------------------------------------------


def texts_of(root: QWidget) -> Iterator[tuple[str, str]]:
    """What can be read in and under `root`: the place and the text."""
    for widget in (root, *root.findChildren(QWidget)):
        name = f"{type(widget).__name__} '{widget.objectName()}' in '{_place(widget)}'"
        if _foreign(widget):
            continue
        yield f"{name} accessible name", widget.accessibleName()
        yield f"{name} description", widget.accessibleDescription()
        yield f"{name} tip", widget.toolTip()
        yield f"{name} status tip", widget.statusTip()
        yield f"{name} window title", widget.windowTitle()
        if isinstance(widget, QLabel | QAbstractButton) and not _qts_own(widget):
            yield f"{name} text", widget.text()
        elif isinstance(widget, QGroupBox):
            yield f"{name} title", widget.title()
        elif isinstance(widget, QLineEdit | QPlainTextEdit | QTextEdit):
            yield f"{name} placeholder", widget.placeholderText()
        elif isinstance(widget, QComboBox):
            for index in range(widget.count()):
                yield f"{name} item", widget.itemText(index)
                yield f"{name} item's tip", widget.itemData(index, Qt.ItemDataRole.ToolTipRole) or ""
        elif isinstance(widget, QSpinBox):
            yield f"{name} around", f"{widget.prefix()} {widget.suffix()} {widget.specialValueText()}"
        elif isinstance(widget, QTabBar):
            for index in range(widget.count()):
                yield f"{name} tab", widget.tabText(index)
                yield f"{name} tab's tip", widget.tabToolTip(index)
        elif isinstance(widget, QMenu):
            yield f"{name} title", widget.title()
        elif isinstance(widget, QAbstractItemView):
            yield from _cells(widget, name)
        elif isinstance(widget, QGraphicsView) and widget.scene() is not None:
            for item in widget.scene().items():
                yield f"{type(item).__name__} in {name} tip", item.toolTip()
        for action in widget.actions():
            yield from _action(action, name)
    for action in root.findChildren(QAction):
        yield from _action(action, type(root).__name__)


def _action(action: QAction, name: str) -> Iterator[tuple[str, str]]:
    if not action.objectName().startswith(("qt_", "_q_", "edit-")):
        yield f"action '{action.objectName()}' in {name}", action.text()
        yield f"action '{action.objectName()}' in {name} tip", action.toolTip()
        yield f"action '{action.objectName()}' in {name} status tip", action.statusTip()


def _cells(view: QAbstractItemView, name: str) -> Iterator[tuple[str, str]]:
    model = view.model()
    if model is None:
        return
    lone = isinstance(model, QAbstractListModel)
    for column in range(1 if lone else model.columnCount()):
        for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            head = model.headerData(column, Qt.Orientation.Horizontal, role)
            yield f"{name} header {column}", head if isinstance(head, str) else ""
    parents = [view.rootIndex()]
    while parents:
        parent = parents.pop()
        for row in range(model.rowCount(parent)):
            parents.append(model.index(row, 0, parent))
            for column in range(1 if lone else model.columnCount(parent)):
                for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
                    cell = model.index(row, column, parent).data(role)
                    yield f"{name} row {row} column {column}", cell if isinstance(cell, str) else ""


def _place(widget: QWidget) -> str:
    parent = widget.parentWidget()
    while parent is not None and not parent.objectName():
        parent = parent.parentWidget()
    return parent.objectName() if parent is not None else ""


def _foreign(widget: QWidget) -> bool:
    """Parts that Qt or NodeGraphQt make, and that have no text of ours."""
    while widget is not None:
        if widget.objectName().startswith(("qt_", "ScrollLeft", "ScrollRight")):
            return True
        if type(widget).__module__.startswith("NodeGraphQt"):
            return True
        widget = widget.parentWidget()
    return False


def _qts_own(widget: QWidget) -> bool:
    """Standard buttons: Qt's translator is there for them."""
    box = widget.parentWidget()
    if not isinstance(box, QDialogButtonBox) or not isinstance(widget, QAbstractButton):
        return False
    return box.standardButton(widget) is not QDialogButtonBox.StandardButton.NoButton


class Reader:
    """Collects what is English, and what is cut."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._data = re.compile("|".join(rf"(?<!\w)({d})" for d in DATA))
        self.learn(declared())
        self.found: dict[str, str] = {}
        self.seen = 0

    def learn(self, known: Iterable[str]) -> None:
        """Words and sentences that stay as they are."""
        self._known |= {piece for text in known if text for piece in pieces(html.unescape(text))}

    def english(self, text: str) -> bool:
        rest = (self._data.sub(" ", piece) for piece in english(text) if piece not in self._known)
        return any(re.search(r"[^\W\d_]{2}", piece) for piece in rest)

    def read(self, root: QWidget) -> None:
        for place, text in texts_of(root):
            self.seen += OPEN in text
            if text and self.english(text):
                self.found.setdefault(text, place)
        for button in root.findChildren(QAbstractButton):
            if not button.isVisible() or not button.text() or _foreign(button):
                continue
            hint, size = button.sizeHint(), button.size()
            seen = button.visibleRegion().boundingRect()
            if seen.isEmpty():  # behind another tab: not laid out yet
                continue
            if hint.width() > size.width() or hint.height() > size.height() or seen.width() < size.width():
                self.found.setdefault(f"cut: {button.text()}", f"{button.objectName()} {hint} {size} {seen}")

    def say(self) -> str:
        return "\n".join(f"{text!r}: {place}" for text, place in sorted(self.found.items()))


# --- tests ---------------------------------------------------------------------------------------------------------


def network() -> Graph:
    return Graph(
        [
            Layer("input", "input", params={"dims": "16x16x3", "tiling": "1"}),
            Layer("noise", "noise", (160, 0), (Source("input"),)),
            Layer("conv", "convolution", (320, 0), (Source("noise"),), {"features": "3"}, ActivationSpec("relu")),
            Layer("mix", "mix", (480, 0), (Source("conv"), Source("noise"))),
            Layer("strange", "of_a_plugin", (320, 160), (), {"secret": "1"}),
            Layer("output", "output", (640, 0), (Source("mix"),)),
        ],
        name="named",
    )


@pytest.fixture
def pseudo() -> Iterator[None]:
    before = texts.take(Pseudo())
    yield
    texts.take(before)


@pytest.fixture
def window(pseudo, qtbot, tmp_path) -> MainWindow:
    window = MainWindow(default_registry(), QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat))
    window.resize(1366, 768)
    qtbot.addWidget(window, before_close_func=lambda w: w.close_now())
    window.show()
    qtbot.waitExposed(window)
    return window


@pytest.fixture
def opened(window) -> MainWindow:
    document = Document(network(), window.context.registry, parent=window.context)
    document.change_settings(random_seed=0, iterations=1)
    window.context.set_document(document)
    return window


def test_the_empty_window(window) -> None:
    reader = Reader()
    for spec in PANELS:
        window.docks.show(spec.id)
    QApplication.processEvents()
    reader.read(window)
    assert reader.seen > 500
    assert not reader.found, reader.say()


def test_every_panel(opened, qtbot, tmp_path) -> None:
    """With a document, with every layer selected in turn, and with results."""
    window, reader = opened, Reader()
    for spec in PANELS:
        window.docks.show(spec.id)
    window.start_engine_client()
    context = window.context
    for layer in context.document.graph.layers:
        context.select((layer,))
        reader.learn(told(window))
        reader.read(window)
    np.save(tmp_path / "in.npy", np.zeros((1, 3, 16, 16), np.float32))
    analysis, profiling = analysis_of(context), profiling_of(context)
    analysis.set_input("input", tmp_path / "in.npy")
    window.run_analysis()
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)
    with qtbot.waitSignal(analysis.result_changed, timeout=WAIT):
        context.inspect_requested.emit("conv")
    with qtbot.waitSignal(profiling.current_changed, timeout=WAIT):
        window.run_inference()
    reader.learn(told(window))
    reader.read(window)
    for spec in PANELS:  # what is behind another tab has no size yet
        window.docks.show(spec.id)
        QApplication.processEvents()
        reader.read(window)
    assert not reader.found, reader.say()


def test_every_workspace_fits_a_small_screen(opened) -> None:
    window, reader = opened, Reader()
    reader.learn(told(window))
    for name in WORKSPACES:
        window.docks.set_workspace(name)
        for dock in window.docks.all:
            if not dock.isHidden():
                dock.raise_()
                QApplication.processEvents()
                reader.read(window)
        assert (window.width(), window.height()) == (1366, 768), name
    assert not reader.found, reader.say()


def test_every_dialog(opened, tmp_path) -> None:
    window, reader = opened, Reader()

    def look(what: str) -> None:
        QApplication.processEvents()
        shown = [w for w in QApplication.topLevelWidgets() if w is not window and w.isVisible()]
        assert shown, what
        for dialog in shown:
            if not isinstance(dialog, QMessageBox) or dialog.text():
                reader.read(dialog)
            dialog.close()

    for name in (
        "export.pytorch",
        "export.onnx",
        "export.picture",
        "help.shortcuts",
        "help.about",
        "help.commands",
        "edit.add",
    ):
        window._refresh()
        action = window.actions_[name]
        action.setEnabled(True)
        action.trigger()
        look(name)
    window.context.select(("conv",))
    window._refresh()
    window.actions_["edit.rename"].trigger()
    look("edit.rename")
    finding = Diagnostic("x", "⟦it is none⟧", layer="conv", line=3, remedy="⟦y⟧")
    FindingsDialog("⟦Not Opened⟧", "⟦x⟧", [finding], window).open()
    look("findings")
    UnsavedDialog(["one.xml", "two.xml"], window).show()
    look("unsaved")
    found = Unfinished(tmp_path, tmp_path, "x", 0, 0, "", network(), "same", Graph(), {"threads": 2}, (), -1)
    recover = RecoverDialog([found, found], window)
    recover.show()
    recover.compare_current()
    look("recover")
    VideoExportDialog(window.context, window).show()
    look("export video")
    AgreeDialog({"": "conv", "x = 1": "mix"}, lambda: None, window).open()
    look("agree")
    TemplateNameDialog(network(), "⟦a⟧", "⟦b⟧", "⟦c⟧", "conv", print, window).open()
    look("template name")
    window.menus.layouts.save("named")
    window.menus.layouts.ask_name()
    look("layout name")
    window.menus.show_for_canvas(QPoint(0, 0))
    look("menu of the canvas")
    window.menus.show_for_tab(window.tabs.all[0], QPoint(0, 0))
    look("menu of a tab")
    window.menus.fill_samples()
    window.menus.fill_recent()
    reader.read(window.menuBar())
    window.start_engine_client()
    window.actions_["analysis.side_by_side"].trigger()
    look("side by side")
    assert not reader.found, reader.say()


def test_other_states_of_the_panels(window, qtbot, tmp_path) -> None:
    """The sample; several layers, links, a frame; a network with errors; the inside of a template; differences."""
    reader = Reader()
    for spec in PANELS:
        window.docks.show(spec.id)
    window.begin([])
    qtbot.waitUntil(lambda: bool(window.context.document), timeout=WAIT)
    context = window.context

    def read() -> None:
        window._refresh()
        QApplication.processEvents()
        reader.learn(told(window))
        reader.learn(name for graph in (context.document.graph, context.root.graph) for name in graph.layers)
        reader.read(window)

    read()
    context.select(tuple(context.document.graph.layers)[:3])
    read()
    context.select(("conv1_1",) if "conv1_1" in context.document.graph else tuple(context.document.graph.layers)[-2:-1])
    for name in ("edit.frame", "edit.collapse", "edit.bypass", "edit.delete"):
        window._refresh()
        window.actions_[name].trigger()
        read()
    read()
    window.actions_["file.compare"].trigger()
    read()
    assert not reader.found, reader.say()


def test_the_bar_over_the_canvas(window, tmp_path) -> None:
    path, reader = tmp_path / "net.xml", Reader()
    save_document(network(), path)
    window.files.open(path)
    path.write_text("another")
    window.disk.look()
    assert window.disk.bar.isVisible()
    reader.read(window.disk.bar)
    reader.read(window.tabs.bar)
    assert not reader.found, reader.say()


def test_a_slip_of_a_translator_does_not_stop_the_window(pseudo) -> None:
    class Slip(gettext.NullTranslations):
        def gettext(self, message: str) -> str:
            return "{nmae} {0}"

    texts.take(Slip())
    assert texts.tr("Saved {name}", name="x") == "Saved x"


def test_the_language_of_the_person(pseudo, qapp, tmp_path, monkeypatch) -> None:
    assert language.wanted("", ["de-AT", "de-Latn-AT", "fr-FR"]) == ["de_AT", "de", "de_Latn_AT", "fr_FR", "fr"]
    assert language.wanted("pt_BR.UTF-8", ["de-DE"]) == ["pt_BR", "pt"]
    assert language.wanted("", ["en-GB", "de-DE"]) == [] == language.wanted("C", [])
    assert "/" not in "".join(language.wanted("../../x", []))
    file = texts.file(tmp_path, "de")
    file.parent.mkdir(parents=True)
    file.write_bytes(compiled({"": "Content-Type: text/plain; charset=UTF-8\n", "Saved {name}": "{name} gesichert"}))
    monkeypatch.setenv(language.VARIABLE, "fr_FR")
    assert language.apply(qapp, tmp_path) == ""
    monkeypatch.setenv(language.VARIABLE, "de_DE")
    assert language.apply(qapp, tmp_path) == "de"
    try:
        assert texts.tr("Saved {name}", name="x") == "x gesichert"
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        assert box.button(QDialogButtonBox.StandardButton.Cancel).text().replace("&", "") == "Abbrechen"
        box.deleteLater()
    finally:
        for translator in qapp.findChildren(QTranslator):
            qapp.removeTranslator(translator)
            translator.deleteLater()
