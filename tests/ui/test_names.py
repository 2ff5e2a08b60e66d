"""Every widget that a user needs has an object name and an accessible name: tests and screen readers need the same."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui


import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialogButtonBox,
    QDockWidget,
    QGraphicsView,
    QHeaderView,
    QLineEdit,
    QMessageBox,
    QPlainTextEdit,
    QScrollBar,
    QTabBar,
    QTabWidget,
    QTextEdit,
    QWidget,
)
from window_kit import in_plot_menu, network, show

from app.ui.document.recovery_dialog import RecoveryDialog
from app.ui.document.unsaved import UnsavedDialog
from app.ui.engine.analysis import analysis_of
from app.ui.engine.profiling import profiling_of
from app.ui.engine.result import Phase
from app.ui.shell.panels import PANELS
from app.ui.shell.window import MainWindow
from app.ui.widgets.findings import FindingsDialog
from designer.files.document import save_document
from designer.files.recovery import Unfinished
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph

USED = (
    QAbstractButton,
    QLineEdit,
    QAbstractSpinBox,
    QAbstractSlider,
    QComboBox,
    QAbstractItemView,
    QTabWidget,
    QTextEdit,
    QPlainTextEdit,
    QGraphicsView,
)
PARTS = (QAbstractSpinBox, QComboBox, QLineEdit, QTabBar, QAbstractItemView, QMessageBox, QDialogButtonBox, QDockWidget)
WAIT = 60_000
_DIALOGS = (
    "file.import_module",
    "export.pytorch",
    "export.onnx",
    "export.deploy",
    "export.tensorrt",
    "export.picture",
    "file.print",
    "view.save_layout",
    "help.shortcuts",
    "help.about",
    "help.commands",
)


def unnamed(root: QWidget) -> list[str]:
    """Widgets under `root`, itself too, that a user needs and that have no name, or nothing that could be read out."""
    found = []
    for widget in (root, *root.findChildren(QWidget)):
        if not used(widget):
            continue
        text = widget.accessibleName() or (widget.text() if isinstance(widget, QAbstractButton) else "")
        if not widget.objectName() or not text:
            parents = [widget.parentWidget()]
            while parents[-1] is not None and len(parents) < 3:
                parents.append(parents[-1].parentWidget())
            inside = " in ".join(f"{type(p).__name__} '{p.objectName()}'" for p in parents if p is not None)
            found.append(f"{type(widget).__name__} '{widget.objectName()}' says '{text}' in {inside}")
    return found


def used(widget: QWidget) -> bool:
    """Whether a user operates it as such: parts of another widget have no names of their own."""
    custom = widget.focusPolicy() & Qt.FocusPolicy.ClickFocus and type(widget).__module__.startswith("app.")
    if not isinstance(widget, USED) and not custom:
        return False
    if isinstance(widget, QScrollBar | QHeaderView) or widget.objectName().startswith("qt_"):
        return False
    parent = widget.parentWidget()
    if parent is None:
        return True
    if isinstance(parent, PARTS) and not (isinstance(parent, QDialogButtonBox) and widget.objectName()):
        return False
    if isinstance(parent.parentWidget(), QComboBox) or (
        isinstance(parent, QAbstractScrollArea) and parent.viewport() is widget
    ):
        return False
    if type(parent).__name__ == "TabSearchMenuWidget" or in_plot_menu(widget):  # the libraries' own, never shown
        return False
    # an action that its empty state does not offer
    return not (
        isinstance(widget, QAbstractButton) and widget.isHidden() and not widget.text() and widget.icon().isNull()
    )


@pytest.fixture
def window(empty_window: MainWindow) -> MainWindow:
    window = show(empty_window, network())
    window.context.document.change_settings(random_seed=0, iterations=1)
    return window


def test_every_widget_of_every_panel(window, qtbot, tmp_path) -> None:
    """Empty, with a document, with every layer selected in turn, and with results."""
    for spec in PANELS:
        window.docks.show(spec.id)
    left = set(unnamed(window))
    window.start_engine_client()
    context = window.context
    for layer in context.document.graph.layers:
        context.select((layer,))
        left |= set(unnamed(window))
    np.save(tmp_path / "in.npy", np.zeros((1, 3, 16, 16), np.float32))
    analysis, profiling = analysis_of(context), profiling_of(context)
    analysis.inputs.set_file("input", tmp_path / "in.npy")
    window.run_analysis()
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)
    with qtbot.waitSignal(analysis.result_changed, timeout=WAIT):
        context.inspect_requested.emit("conv")
    with qtbot.waitSignal(profiling.current_changed, timeout=WAIT):
        window.run_inference()
    left |= set(unnamed(window))
    assert not left, "\n".join(sorted(left))


def test_every_widget_of_every_dialog(window, qtbot, tmp_path) -> None:
    left: list[str] = []

    def look() -> None:
        for dialog in QApplication.topLevelWidgets():
            if dialog is not window and dialog.isVisible():
                left.extend(unnamed(dialog))
                if not dialog.objectName() or not (dialog.accessibleName() or dialog.windowTitle()):
                    left.append(f"{type(dialog).__name__} '{dialog.objectName()}' '{dialog.windowTitle()}'")
                dialog.close()

    for name in (*_DIALOGS, "edit.add"):
        QApplication.processEvents()
        action = window.actions_[name]
        action.setEnabled(True)
        action.trigger()
        QApplication.processEvents()
        assert [w for w in QApplication.topLevelWidgets() if w is not window and w.isVisible()], name
        look()
    window.context.select(("conv",))
    QApplication.processEvents()
    window.actions_["edit.rename"].trigger()
    QApplication.processEvents()
    look()
    FindingsDialog("Not Opened", "x could not be opened.", [Diagnostic("x", "it is none", remedy="y")], window).open()
    look()
    UnsavedDialog(["one.xml", "two.xml"], window).show()
    look()
    found = Unfinished(tmp_path, tmp_path, "x", 0, 0, "", network(), "same", Graph(), {"threads": 2}, (), -1)
    recover = RecoveryDialog([found, found], window)
    recover.show()
    recover.compare_current()
    QApplication.processEvents()
    look()
    assert not left, "\n".join(left)


def test_every_bar_over_the_canvas(window, tmp_path) -> None:
    path = tmp_path / "net.xml"
    save_document(network(), path)
    window.files.open(path)
    path.write_text("another")
    window.disk.check()
    assert window.disk.bar.isVisible()
    assert window.disk.bar.accessibleName()
    assert not unnamed(window.disk.bar) + unnamed(window.tabs.bar)
