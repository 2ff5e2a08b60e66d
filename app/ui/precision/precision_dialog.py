"""Mixed precision: finds the layers that have to stay in FP32, with the reasons, and adds a variant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.engine.protocol import ChoosePrecisionReply, ChoosePrecisionRequest, ProgressEvent
from app.ui.engine.analysis import analysis_of
from app.ui.engine.call import EngineCall, Findings
from app.ui.engine.context import Context
from app.ui.engine.requests import open_request
from app.ui.widgets import theme
from app.ui.widgets.growing_dialog import GrowingDialog
from app.ui.widgets.message import Message
from app.ui.widgets.sentences import placed_text
from designer.files.document import write_document
from designer.files.variants import Variant
from designer.precision.mixed import BUDGET_DB, MIXED
from designer.runtime.number_formats import FLOAT32
from designer.texts import mark, tr, tr_data, trn

TARGETS = (
    (MIXED, mark("Mixed: FP16, sensitive layers in FP32")),
    ("fp16", mark("FP16")),
    ("bf16", mark("BF16")),
)
HEADERS = (mark("Layer in FP32"), mark("Reason"))


class PrecisionDialog(GrowingDialog):
    """A form, the verdict of the engine, and the layers that stay in FP32, which the user can change before the variant is added."""

    accepted_variant = Signal(object)  # Variant
    chosen = Signal()  # the engine has answered

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("precision")
        self.setWindowTitle(tr("Find Precision"))
        self._context = context
        self._calls: list[EngineCall[Any]] = []
        self._precision = "fp16"
        form = self._make_form()
        self.search = QPushButton(tr("Find"))
        self.search.setObjectName("precision.find")
        theme.set_icon(self.search, "play")
        self.search.clicked.connect(self._on_find)
        self.status = Message("precision.status")
        self.kept = self._make_list()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.add = buttons.addButton(tr("Add Variant"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.add.setObjectName("precision.add")
        self.add.setEnabled(False)
        buttons.accepted.connect(self._on_add)
        buttons.rejected.connect(self.reject)
        main = QVBoxLayout(self)
        main.addLayout(form)
        main.addWidget(self.search)
        main.addWidget(self.status)
        main.addWidget(self.kept, 1)
        main.addWidget(buttons)
        self.resize(640, 420)
        self.finished.connect(lambda _: self.stop())
        self._show_enabled()

    def _make_form(self) -> QFormLayout:
        self.target = QComboBox()
        self.target.setObjectName("precision.target")
        self.target.setAccessibleName(tr("Precision"))
        for value, title in TARGETS:
            self.target.addItem(tr_data(title), value)
        self.folder = QLineEdit()
        self.folder.setObjectName("precision.folder")
        self.folder.setAccessibleName(tr("Folder of images"))
        self.folder.setPlaceholderText(tr("Images on which the result is compared with FP32"))
        self.folder.textChanged.connect(self._show_enabled)
        browse = QPushButton(tr("Choose..."))
        browse.setObjectName("precision.browse")
        browse.setAccessibleName(tr("Choose a folder of images"))
        browse.clicked.connect(self._on_browse)
        folder = QHBoxLayout()
        folder.addWidget(self.folder, 1)
        folder.addWidget(browse)
        self.budget = QDoubleSpinBox()
        self.budget.setObjectName("precision.budget")
        self.budget.setAccessibleName(tr("Budget"))
        self.budget.setToolTip(tr("PSNR against FP32 that must be reached"))
        self.budget.setRange(0, 150)
        self.budget.setSuffix(" dB")
        self.budget.setValue(BUDGET_DB)
        form = QFormLayout()
        form.addRow(tr("Precision"), self.target)
        form.addRow(tr("Images"), folder)
        form.addRow(tr("Budget"), self.budget)
        return form

    def _make_list(self) -> QTreeWidget:
        kept = QTreeWidget()
        kept.setObjectName("precision.kept")
        kept.setAccessibleName(tr("Layers that stay in FP32"))
        kept.setRootIsDecorated(False)
        kept.setHeaderLabels([tr_data(title) for title in HEADERS])
        kept.setToolTip(
            tr("A layer without a check mark is converted too. Click a row to show the layer on the canvas.")
        )
        kept.itemClicked.connect(lambda item, _: self._context.reveal(item.text(0)))
        return kept

    def _on_browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Folder of Images"))
        if folder:
            self.folder.setText(folder)

    def _show_enabled(self) -> None:
        self.search.setEnabled(bool(self._calls) or bool(self.folder.text().strip()))
        self.search.setText(tr("Stop") if self._calls else tr("Find"))

    def _on_find(self) -> None:
        if self._calls:
            self.stop()
            return
        document, engine = self._context.root, analysis_of(self._context).engine
        opening = open_request(document.settings, write_document(document.graph).decode())
        folder = str(Path(self.folder.text().strip()).expanduser())
        request = ChoosePrecisionRequest(str(self.target.currentData()), folder, self.budget.value())
        self.add.setEnabled(False)
        self.status.show_message(tr("Running the network …"), "info")
        self._calls = [
            engine.ask(opening, self, None, self._failed),
            engine.ask(request, self, self._done, self._failed, superseded=self._end, progress=self._advance),
        ]
        self._show_enabled()

    def stop(self) -> None:
        """Give up; the engine is stopped."""
        if self._calls:
            analysis_of(self._context).engine.cancel()
            self._end()

    def _end(self) -> None:
        calls, self._calls = self._calls, []
        for call in calls:
            call.cancel()
        self._show_enabled()

    def _advance(self, event: ProgressEvent) -> None:
        self.status.show_message(event.text, "info")

    def _failed(self, found: Findings) -> None:
        if self._calls:
            self._end()
            self.status.show_message("" if found[0].code == "cancelled" else placed_text(found[0]), "error")

    def _done(self, reply: ChoosePrecisionReply) -> None:
        self._end()
        self._precision = reply.precision
        self.kept.clear()
        for layer, reason in reply.kept.items():
            item = QTreeWidgetItem(self.kept, [layer, reason])
            item.setToolTip(1, reason)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(0, Qt.CheckState.Checked)
        self.kept.resizeColumnToContents(0)
        self.status.show_message(" ".join(verdict(reply)), "info" if reply.met else "warning")
        self.add.setEnabled(True)
        self.chosen.emit()

    def _on_add(self) -> None:
        rows = [self.kept.topLevelItem(index) for index in range(self.kept.topLevelItemCount())]
        kept = [row.text(0) for row in rows if row is not None and row.checkState(0) is Qt.CheckState.Checked]
        name = tr("Mixed") if kept else self._precision.upper()
        self.accepted_variant.emit(Variant(name, self._precision, dict.fromkeys(kept, FLOAT32.name)))
        self.accept()


def verdict(reply: ChoosePrecisionReply) -> list[str]:
    """What the engine found, in sentences."""
    quality = (
        tr("{db} dB against FP32 on {count} images.", db=f"{reply.psnr_db:.2f}", count=reply.images)
        if reply.psnr_db is not None
        else tr("Equal to FP32 on {count} images.", count=reply.images)
    )
    found = [quality]
    if not reply.met:
        found.append(tr("The budget is not met: this is the best that was found."))
    found += [
        tr("'{layer}' overflows: values up to {size}.", layer=layer, size=f"{size:.4g}")
        for layer, size in list(reply.overflow.items())[:3]
        if layer not in reply.kept
    ]
    if reply.bf16_db is not None:
        found.append(tr("BF16 has the range of FP32 and reaches {db} dB.", db=f"{reply.bf16_db:.2f}"))
    if reply.skipped:
        found.append(trn("{count} file was skipped.", "{count} files were skipped.", reply.skipped))
    return found
