"""Whether the weights on disk fit the network: a summary line and a table of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem, QToolButton, QVBoxLayout, QWidget

from app.ui.document.document import Document
from app.ui.widgets import theme
from app.ui.widgets.background import Background
from app.ui.widgets.message import Message
from app.ui.widgets.sentences import finding_text
from app.ui.widgets.tooltips import plain_tip
from designer.files.weight_report import shape_text
from designer.files.weights import WEIGHTS, WeightReport, WeightStatus, load_weights, required_weights
from designer.graph.diagnostics import Diagnostic
from designer.graph.edits import ChangeSet
from designer.graph.inference import Inference
from designer.texts import mark, tr, tr_data

_PAUSE_MS = 300
_WORDS = {
    WeightStatus.BOUND: mark("bound"),
    WeightStatus.MISSING: mark("missing"),
    WeightStatus.UNEXPECTED: mark("unexpected"),
    WeightStatus.WRONG_SHAPE: mark("wrong shape"),
}
_ORDER = (WeightStatus.WRONG_SHAPE, WeightStatus.MISSING, WeightStatus.UNEXPECTED, WeightStatus.BOUND)


class WeightsCheck(QObject):
    """Checks the weights in a thread. A newer request replaces a pending one."""

    found = Signal(object)  # tuple of WeightReport
    failed = Signal(object)  # tuple of Diagnostic

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._background = Background(self)
        self._background.done.connect(self._done)
        self._background.failed.connect(self._failed)
        self._busy = False
        self._wanted = False  # the answer of the running check
        self._waiting: tuple[Document, Path] | None = None

    def check(self, document: Document, path: Path) -> None:
        self._wanted = True
        if self._busy:
            self._waiting = (document, path)
            return
        self._busy = True
        graph, registry = document.graph.copy(), document.registry
        self._background.start(lambda: load_weights(path, required_weights(Inference(graph, registry))).reports)

    def forget(self) -> None:
        """Drop the pending request, and the answer of the running check."""
        self._waiting, self._wanted = None, False

    def _done(self, reports: object) -> None:
        if not self._next() and self._wanted:
            self.found.emit(reports)

    def _failed(self, found: object) -> None:
        if not self._next() and self._wanted:
            self.failed.emit(found)

    def _next(self) -> bool:
        self._busy = False
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self.check(*waiting)
        return waiting is not None


class WeightsReportView(QWidget):
    """Shows the weights report of a document, updated when its weights location or its layers change."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document: Document | None = None
        self._shown_for: tuple[Document | None, str] = (None, "")
        self._check = WeightsCheck(self)
        self._check.found.connect(self._found)
        self._check.failed.connect(self._refused)
        self._summary = Message(f"{name}.summary")
        self._details = QToolButton()
        self._details.setObjectName(f"{name}.details")
        self._details.setText(tr("Details"))
        self._details.setAccessibleName(tr("Show every tensor"))
        self._details.setToolTip(tr("Show every tensor with its shapes"))
        self._details.setCheckable(True)
        self._details.setVisible(False)
        self._table = _table(f"{name}.tensors")
        self._details.toggled.connect(self._table.setVisible)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._summary)
        layout.addWidget(self._details)
        layout.addWidget(self._table)
        self._later = QTimer(self, singleShot=True, interval=_PAUSE_MS)
        self._later.timeout.connect(self._start)

    def follow(self, document: Document | None) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_change)
            self._document.settings_changed.disconnect(self._on_settings)
        self._document = document
        if document is not None:
            document.changed.connect(self._on_change)
            document.settings_changed.connect(self._on_settings)
        self._start()

    def _on_change(self, change: ChangeSet) -> None:
        if change.computed or change.removed:  # a kernel has another shape also where the states of all layers stay
            self._later.start()

    def _on_settings(self) -> None:
        location = self._document.settings.weights if self._document is not None else ""
        if (self._document, location) != self._shown_for:
            self._start()

    def _start(self) -> None:
        document = self._document
        location = document.settings.weights if document is not None else ""
        self._shown_for = (document, location)
        self._check.forget()
        if document is None or not location:
            self._show(
                (), tr("No weights selected. Choose a folder or file to run the network with trained weights."), "info"
            )
            return
        path = Path(location)
        format = WEIGHTS.find(path)
        if format is not None and format.package:
            text = tr("The engine checks this file when the network runs.")
            exists = path.is_file()
            self._show(
                (),
                text if exists else tr("The file {path} does not exist. Choose another one.", path=path),
                "info" if exists else "error",
            )
            return
        self._check.check(document, path)

    def _found(self, reports: object) -> None:
        if isinstance(reports, tuple):
            text, role = summary(reports)
            self._show(reports, text, role)

    def _refused(self, found: object) -> None:
        first = found[0] if isinstance(found, tuple) and found else None
        if isinstance(first, Diagnostic):
            self._show((), finding_text(first), "error")

    def _show(self, reports: Sequence[WeightReport], text: str, role: theme.RoleName) -> None:
        self._summary.show_message(text, role)
        self._details.setVisible(bool(reports))
        self._table.setVisible(bool(reports) and self._details.isChecked())
        ordered = sorted(reports, key=lambda r: (_ORDER.index(r.status), r.key))
        self._table.setRowCount(len(ordered))
        for row, report in enumerate(ordered):
            name = f"{report.key.layer}.{report.key.tensor}" if report.key.layer else report.key.tensor
            texts = (name, tr_data(_WORDS[report.status]), _shape(report.needed), _shape(report.found))
            for column, cell in enumerate(texts):
                item = QTableWidgetItem(cell)
                item.setToolTip(plain_tip(report.source or cell))
                if column > 1:
                    item.setFont(theme.mono_font())
                self._table.setItem(row, column, item)


def summary(reports: Sequence[WeightReport]) -> tuple[str, theme.RoleName]:
    """A one-line summary of the reports, and its severity as a theme role."""
    count = {status: sum(1 for r in reports if r.status is status) for status in WeightStatus}
    needed = len(reports) - count[WeightStatus.UNEXPECTED]
    parts = [tr("{count} of {needed} tensors bound", count=count[WeightStatus.BOUND], needed=needed)]
    parts += [
        f"{count[status]} {tr_data(_WORDS[status])}"
        for status in (WeightStatus.MISSING, WeightStatus.WRONG_SHAPE, WeightStatus.UNEXPECTED)
        if count[status]
    ]
    bad = count[WeightStatus.MISSING] + count[WeightStatus.WRONG_SHAPE]
    role: theme.RoleName = "error" if bad else "warning" if count[WeightStatus.UNEXPECTED] else "positive"
    return ", ".join(parts) + ".", role


def _shape(shape: tuple[int, ...] | None) -> str:
    return "-" if shape is None else shape_text(shape)


def _table(name: str) -> QTableWidget:
    table = QTableWidget(0, 4)
    table.setObjectName(name)
    table.setAccessibleName(tr("Tensors of the weights"))
    table.setHorizontalHeaderLabels([tr("Tensor"), tr("Status"), tr("Expected"), tr("Found")])
    table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
    table.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
    table.verticalHeader().setVisible(False)
    table.verticalHeader().setDefaultSectionSize(table.fontMetrics().height() + 8)
    table.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    table.setMinimumHeight(160)
    table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    table.setVisible(False)
    return table
