"""A bar above the canvas with the progress of the import that runs, and a Cancel button."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QSizePolicy, QToolButton, QWidget

from app.ui.engine.import_run import ImportRun, Imports
from designer.texts import tr, trn

SHOWN_AFTER = 200  # ms: quick imports show nothing


class ImportBar(QFrame):
    """Shows the first import that has not opened its document yet. Cancel stops it; the next one follows."""

    def __init__(self, imports: Imports, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("import_bar")
        self._imports = imports
        self._text = QLabel()
        self._text.setObjectName("import_bar.text")
        self._text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._progress = QProgressBar()
        self._progress.setObjectName("import_bar.progress")
        self._progress.setAccessibleName(tr("Progress of the import"))
        self._progress.setTextVisible(False)
        self._progress.setMaximumWidth(240)
        self._cancel = QToolButton()
        self._cancel.setObjectName("import_bar.cancel")
        self._cancel.setText(tr("Cancel"))
        self._cancel.setAccessibleName(tr("Cancel the import"))
        self._cancel.setToolTip(tr("Stop the import; nothing is opened"))
        self._cancel.clicked.connect(self._stop)
        box = QHBoxLayout(self)
        box.setContentsMargins(12, 6, 8, 6)
        box.setSpacing(8)
        box.addWidget(self._text, 1)
        box.addWidget(self._progress)
        box.addWidget(self._cancel)
        self._soon = QTimer(self, singleShot=True, interval=SHOWN_AFTER, timeout=self._show)
        imports.started.connect(self._follow)
        self.hide()

    def _follow(self, run: object) -> None:
        assert isinstance(run, ImportRun)
        run.progress.connect(lambda done, total, text: self._advance(run, done, total, text))
        run.opened.connect(lambda _found: self._show())
        run.ended.connect(self._show)
        if not self._soon.isActive():
            self._soon.start()

    @property
    def _current(self) -> ImportRun | None:
        return next((run for run in self._imports.runs if not run.is_opened), None)

    def _show(self) -> None:
        """Show the import that is waited for; none: hide."""
        run = self._current
        if run is None:
            self._soon.stop()
            self.hide()
        elif not self._soon.isActive():
            self._advance(run, *run.step)
            self.show()

    def _advance(self, run: ImportRun, done: int, total: int, text: str) -> None:
        if run is not self._current:
            return
        more = sum(1 for other in self._imports.runs if not other.is_opened) - 1
        label = tr("Importing {name}: {text}", name=run.source.name, text=text)
        if more:
            label += "  " + trn("({count} more file)", "({count} more files)", more)
        self._text.setText(label)
        self._progress.setRange(0, total)
        self._progress.setValue(done)

    def _stop(self) -> None:
        run = self._current
        if run is not None:
            run.cancel()
