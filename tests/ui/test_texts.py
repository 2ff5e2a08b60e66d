"""Every text that a user reads goes through the catalogue: in a made-up language nothing English is left, nothing is cut."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import gettext
import os
from collections.abc import Iterator

import numpy as np
from mo_kit import compiled
from pseudo_kit import OPEN, Pseudo, Reader, domain_texts
from PySide6.QtCore import QPoint, QTranslator
from PySide6.QtWidgets import (
    QApplication,
    QDialogButtonBox,
    QMessageBox,
)
from window_kit import network, open_window

from app.ui.canvas.node_look import _port_tip
from app.ui.canvas.template_name import TemplateNameDialog
from app.ui.design.custom_agreement import AgreeDialog
from app.ui.document.document import Document
from app.ui.document.recovery_dialog import RecoveryDialog
from app.ui.document.unsaved import UnsavedDialog
from app.ui.engine.analysis import analysis_of
from app.ui.engine.profiling import profiling_of
from app.ui.engine.result import Phase
from app.ui.shell import language
from app.ui.shell.export.video import VideoExportDialog
from app.ui.shell.panels import PANELS, WORKSPACES
from app.ui.shell.window import MainWindow
from app.ui.widgets.findings import FindingsDialog
from designer import texts
from designer.files.document import save_document
from designer.files.recovery import Unfinished
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Layer, check_layer_name
from designer.graph.template import check_template_name
from designer.graph.types import Size2D
from designer.operators.api import Port
from designer.operators.registry import default_registry

WAIT = 60_000


@pytest.fixture
def pseudo() -> Iterator[None]:
    before = texts.take(Pseudo())
    yield
    texts.take(before)


@pytest.fixture
def window(pseudo, qtbot, tmp_path) -> MainWindow:
    return open_window(qtbot, tmp_path)


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


def test_texts_about_names_ports_and_parameters(pseudo) -> None:
    names = (" a", "a/b", "..", "", "x" * 200, "a.b")
    pad = default_registry().get("pad_to_valid_size")(remainder=Size2D(16, 16))
    (fault,) = pad.faults()
    found = [
        *map(check_template_name, names),
        *map(check_layer_name, names[:-1]),
        fault.message,
        fault.remedy,
        _port_tip(Port("x", optional=True)),
    ]
    assert [each for each in found if OPEN not in each] == []
    assert not any("layer" in (check_template_name(name) or "") for name in names)
    (wrong,) = default_registry().read(Layer("x", "dynamic_convolution", params={"stride": "?"})).diagnostics
    assert f"{OPEN}empty" in wrong.remedy


def test_every_panel(opened, qtbot, tmp_path) -> None:
    """With a document, with every layer selected in turn, and with results."""
    window, reader = opened, Reader()
    for spec in PANELS:
        window.docks.show(spec.id)
    QApplication.processEvents()
    QApplication.processEvents()  # a scroll bar that appears changes the layout again
    window.start_engine_client()
    context = window.context
    for layer in context.document.graph.layers:
        context.select((layer,))
        reader.learn(domain_texts(window))
        reader.read(window)
    np.save(tmp_path / "in.npy", np.zeros((1, 3, 16, 16), np.float32))
    analysis, profiling = analysis_of(context), profiling_of(context)
    analysis.inputs.set_file("input", tmp_path / "in.npy")
    window.run_analysis()
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)
    with qtbot.waitSignal(analysis.result_changed, timeout=WAIT):
        context.inspect_requested.emit("conv")
    with qtbot.waitSignal(profiling.current_changed, timeout=WAIT):
        window.run_inference()
    reader.learn(domain_texts(window))
    reader.read(window)
    for spec in PANELS:  # what is behind another tab has no size yet
        window.docks.show(spec.id)
        QApplication.processEvents()
        reader.read(window)
    assert not reader.found, reader.say()


def test_every_workspace_fits_a_small_screen(opened) -> None:
    window, reader = opened, Reader()
    reader.learn(domain_texts(window))
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
    reader.learn(domain_texts(window))

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
        "export.deploy",
        "export.tensorrt",
        "export.picture",
        "help.shortcuts",
        "help.about",
        "help.commands",
        "edit.add",
    ):
        QApplication.processEvents()
        action = window.actions_[name]
        action.setEnabled(True)
        action.trigger()
        look(name)
    window.context.select(("conv",))
    QApplication.processEvents()
    window.actions_["edit.rename"].trigger()
    reader.read(window.canvas.viewer)  # the name is edited on the canvas
    finding = Diagnostic("x", "⟦it is none⟧", layer="conv", line=3, remedy="⟦y⟧")
    FindingsDialog("⟦Not Opened⟧", "⟦x⟧", [finding], window).open()
    look("findings")
    UnsavedDialog(["one.xml", "two.xml"], window).show()
    look("unsaved")
    found = Unfinished(tmp_path, tmp_path, "x", 0, 0, "", network(), "same", Graph(), {"threads": 2}, (), -1)
    recover = RecoveryDialog([found, found], window)
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
        QApplication.processEvents()
        QApplication.processEvents()
        reader.learn(domain_texts(window))
        reader.learn(name for graph in (context.document.graph, context.root.graph) for name in graph.layers)
        reader.read(window)

    read()
    context.select(tuple(context.document.graph.layers)[:3])
    read()
    context.select(("conv1_1",) if "conv1_1" in context.document.graph else tuple(context.document.graph.layers)[-2:-1])
    for name in ("edit.frame", "edit.collapse", "edit.bypass", "edit.delete"):
        QApplication.processEvents()
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
    window.disk.check()
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
    assert language.wanted("", ["fr-FR", "en-GB", "de-DE"]) == ["fr_FR", "fr"], "who reads English needs no third"
    assert language.wanted("", ["POSIX"]) == language.wanted("", ["C.UTF-8"]) == language.wanted("EN_us", ["de"]) == []
    assert language.wanted("sr@latin", []) == ["sr@latin"]
    file = texts.file(tmp_path, "de")
    file.parent.mkdir(parents=True)
    file.write_bytes(compiled({"": "Content-Type: text/plain; charset=UTF-8\n", "Saved {name}": "{name} gesichert"}))
    monkeypatch.setenv(language.VARIABLE, "fr_FR")
    assert language.apply(qapp, tmp_path) == ""
    monkeypatch.setenv(language.VARIABLE, "de_DE")
    assert language.apply(qapp, tmp_path) == "de"
    assert os.environ[language.VARIABLE] == "de", "for the processes that the program starts"
    try:
        assert texts.tr("Saved {name}", name="x") == "x gesichert"
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        assert box.button(QDialogButtonBox.StandardButton.Cancel).text().replace("&", "") == "Abbrechen"
        box.deleteLater()
    finally:
        for translator in qapp.findChildren(QTranslator):
            qapp.removeTranslator(translator)
            translator.deleteLater()
