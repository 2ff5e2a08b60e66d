"""The bar of imports shows the first one that is waited for, whatever the others report."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QLabel, QProgressBar, QToolButton
from pytestqt.qtbot import QtBot

from app.ui.engine.import_run import ImportRun, ImportSource
from app.ui.shell.import_bar import ImportBar
from designer.operators.registry import default_registry


class Queue(QObject):
    """Imports whose processes the test plays."""

    started = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.runs: tuple[ImportRun, ...] = ()

    def add(self, name: str) -> ImportRun:
        run = ImportRun(ImportSource(name, Path()), default_registry(), self)
        self.runs += (run,)
        run.ended.connect(lambda: self.drop(run))
        self.started.emit(run)
        return run

    def drop(self, run: ImportRun) -> None:
        self.runs = tuple(each for each in self.runs if each is not run)


def progress(run: ImportRun, *step: object) -> None:
    run.step = step  # type: ignore[assignment]
    run.progress.emit(*step)


def test_it_shows_the_first_import_and_then_the_next_one(qtbot: QtBot) -> None:
    imports = Queue()
    bar = ImportBar(imports)  # type: ignore[arg-type]
    qtbot.addWidget(bar)
    text, shown = bar.findChild(QLabel, "import_bar.text"), bar.findChild(QProgressBar, "import_bar.progress")
    first = imports.add("first.onnx")
    assert not bar.isVisible()
    qtbot.waitUntil(bar.isVisible)
    assert text.text() == "Importing first.onnx: reading the file"
    progress(first, 3, 8, "reading nodes")
    assert text.text() == "Importing first.onnx: reading nodes"
    assert (shown.value(), shown.maximum()) == (3, 8)
    second, third = imports.add("second.onnx"), imports.add("third.onnx")
    progress(first, 4, 8, "reading nodes")
    qtbot.waitUntil(lambda: text.text() == "Importing first.onnx: reading nodes  (2 more files)")
    first.is_opened = True
    first.opened.emit(None)
    qtbot.waitUntil(lambda: "second.onnx" in text.text())
    progress(second, 5, 9, "reading weights")
    progress(first, 7, 8, "comparing")
    assert text.text() == "Importing second.onnx: reading weights  (1 more file)"
    assert (shown.value(), shown.maximum()) == (5, 9)
    ended = []
    second.ended.connect(lambda: ended.append("second"))
    first.ended.connect(lambda: ended.append("first"))
    qtbot.mouseClick(bar.findChild(QToolButton, "import_bar.cancel"), Qt.MouseButton.LeftButton)
    assert ended == ["second"]
    assert text.text() == "Importing third.onnx: reading the file"
    assert bar.isVisible()
    third.is_opened = True
    third.opened.emit(None)
    assert not bar.isVisible()
    for run in imports.runs:
        run.abandon()


def test_an_import_that_is_quick_shows_nothing(qtbot: QtBot) -> None:
    imports = Queue()
    bar = ImportBar(imports)  # type: ignore[arg-type]
    qtbot.addWidget(bar)
    run = imports.add("quick.onnx")
    run.is_opened = True
    run.opened.emit(None)
    run.abandon()
    assert not bar._soon.isActive()
    assert not bar.isVisible()


def test_nothing_is_shown_of_the_first_moment_of_an_import(qtbot: QtBot) -> None:
    imports = Queue()
    bar = ImportBar(imports)  # type: ignore[arg-type]
    qtbot.addWidget(bar)
    text = bar.findChild(QLabel, "import_bar.text")
    quick, slow = imports.add("quick.onnx"), imports.add("slow.onnx")
    progress(quick, 1, 2, "reading nodes")
    assert not bar.isVisible()
    quick.is_opened = True
    quick.opened.emit(None)
    progress(slow, 1, 3, "reading weights")
    assert not bar.isVisible(), "the first moment is not over"
    bar._soon.stop()
    bar._soon.timeout.emit()
    assert bar.isVisible()
    assert text.text() == "Importing slow.onnx: reading weights"
    quick.abandon()
    assert bar.isVisible()
    slow.abandon()
    assert not bar.isVisible(), "it was not opened, and nothing is waited for"
    bar._stop()  # nothing to stop any more
