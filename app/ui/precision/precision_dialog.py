"""Find Precision: finds the layers that cannot compute in a smaller number format, on a folder of images, and adds a variant."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QSpinBox,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.engine.protocol import ChoosePrecisionReply, ChoosePrecisionRequest, ProgressEvent
from app.ui.engine.context import Context
from app.ui.engine.number_formats import TITLES
from app.ui.engine.question import EngineQuestion
from app.ui.widgets import theme
from app.ui.widgets.growing_dialog import GrowingDialog
from app.ui.widgets.message import Message
from app.ui.widgets.sentences import placed_text
from app.ui.widgets.tooltips import plain_tip
from app.ui.widgets.typed_path import typed_path
from designer.files.atomic import write_atomic
from designer.files.variants import BY_HAND, CalibrationRecipe, Variant
from designer.graph.diagnostics import DiagnosticError
from designer.precision.int8 import FORMS
from designer.precision.mixed import BUDGET_DB, MIXED
from designer.precision.variants import INT8
from designer.runtime.number_formats import FLOAT16, FLOAT32
from designer.texts import mark, tr, tr_data, trn
from designer.units import binary

INT8_FP16 = "int8+fp16"
TARGETS = (
    (MIXED, mark("Mixed: FP16, sensitive layers in FP32")),
    ("fp16", mark("FP16")),
    ("bf16", mark("BF16")),
    (INT8, mark("INT8, sensitive layers in FP32")),
    (INT8_FP16, mark("INT8, sensitive layers in FP16")),
)
KEPT_IN = {INT8: FLOAT32.name, INT8_FP16: FLOAT16.name}  # the format of layers that are not INT8
METHODS = (
    ("minmax", mark("Smallest to largest value")),
    ("percentile", mark("Percentile: without extreme values")),
)
INT8_BUDGET_DB = 40.0
NO_BUDGET = 0.0
NAMED = 3  # most files and layers that a verdict names


class PrecisionDialog(GrowingDialog):
    """A form, the verdict of the engine, and the layers with their formats, which the user can change before the variant is added."""

    accepted_variant = Signal(object)  # Variant
    chosen = Signal()  # the engine has answered

    def __init__(self, context: Context, target: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("precision")
        self.setWindowTitle(tr("Find Precision"))
        self._context = context
        self._question = EngineQuestion(context, self)
        self._question.busy_changed.connect(lambda _: self._show_enabled())
        self._found: ChoosePrecisionReply | None = None
        self._recipe: CalibrationRecipe | None = None
        self.form = QFormLayout()
        self._make_form()
        self.search = QPushButton(tr("Find"))
        self.search.setObjectName("precision.find")
        theme.set_icon(self.search, "play")
        self.search.clicked.connect(self._on_find)
        self.bar = QProgressBar()
        self.bar.setObjectName("precision.progress")
        self.bar.setAccessibleName(tr("Progress"))
        self.bar.hide()
        self.status = Message("precision.status")
        self.layers = self._make_list()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.add = buttons.addButton(tr("Add Variant"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.add.setObjectName("precision.add")
        self.add.setEnabled(False)
        self.save = buttons.addButton(tr("Save Report..."), QDialogButtonBox.ButtonRole.ActionRole)
        self.save.setObjectName("precision.save")
        self.save.hide()
        self.save.clicked.connect(self._on_save)
        buttons.accepted.connect(self._on_add)
        buttons.rejected.connect(self.reject)
        main = QVBoxLayout(self)
        main.addLayout(self.form)
        for widget in (self.search, self.bar, self.status):
            main.addWidget(widget)
        main.addWidget(self.layers, 1)
        main.addWidget(buttons)
        self.resize(680, 560)
        self.finished.connect(lambda _: self.stop())
        self.target.setCurrentIndex(max(self.target.findData(target), 0))
        self._on_target()

    # --- widgets ---------------------------------------------------------------------------------------------------

    def _make_form(self) -> None:
        self.target = QComboBox()
        for value, title in TARGETS:
            self.target.addItem(tr_data(title), value)
        self.target.currentIndexChanged.connect(self._on_target)
        self.folder = QLineEdit()
        self.folder.setPlaceholderText(tr("Images like those that the network will get"))
        self.folder.textChanged.connect(self._on_choice)
        browse = QPushButton(tr("Choose..."))
        browse.setObjectName("precision.browse")
        browse.setAccessibleName(tr("Choose a folder of images"))
        browse.clicked.connect(self._on_browse)
        self.count = QSpinBox()
        self.count.setRange(1, 10000)
        self.count.setValue(CalibrationRecipe().count)
        self.pixels = QLineEdit()
        self.pixels.setPlaceholderText(tr("Size of the input, or width x height such as 256x256"))
        self.method = QComboBox()
        for name, title in METHODS:
            self.method.addItem(tr_data(title), name)
        self.percentile = QDoubleSpinBox()
        self.percentile.setRange(50, 100)
        self.percentile.setDecimals(3)
        self.percentile.setSingleStep(0.01)
        self.percentile.setSuffix(" %")
        self.percentile.setValue(CalibrationRecipe().percentile)
        self.percentile.setAccessibleName(tr("Per cent of the values inside of the range"))
        self.method.currentIndexChanged.connect(
            lambda _: self.percentile.setEnabled(self.method.currentData() == "percentile")
        )
        self.percentile.setEnabled(False)
        self.runtime = QComboBox()
        for name, form in FORMS.items():
            self.runtime.addItem(form.title, name)
        self.budget = QDoubleSpinBox()
        self.budget.setRange(NO_BUDGET, 150)
        self.budget.setSuffix(" dB")
        self.budget.setSpecialValueText(tr("none"))
        for box in (self.count, self.percentile, self.budget):
            box.valueChanged.connect(self._on_choice)
        for combo in (self.method, self.runtime):
            combo.currentIndexChanged.connect(self._on_choice)
        self.pixels.textChanged.connect(self._on_choice)
        self._row("target", tr("Precision"), self.target)
        self._row("folder", tr("Folder of images"), self.folder, browse)
        self._row("count", tr("Number of images"), self.count)
        self._row("size", tr("Size of images"), self.pixels)
        self._row("method", tr("Range of a tensor"), self.method, self.percentile)
        self._row("runtime", tr("Runtime"), self.runtime)
        self._row("budget", tr("Budget"), self.budget)
        self.budget.setToolTip(tr("PSNR against FP32 that must be reached"))
        self.count.setToolTip(tr("The first images of the folder by name"))
        self.runtime.setToolTip(tr("Runtimes expect different pairs of QuantizeLinear and DequantizeLinear"))

    def _row(self, name: str, title: str, field: QWidget, *others: QWidget) -> None:
        field.setObjectName(f"precision.{name}")
        field.setAccessibleName(title)
        for other in others:
            other.setObjectName(other.objectName() or f"precision.{name}.more")
        row = QHBoxLayout()
        row.addWidget(field, 1)
        for other in others:
            row.addWidget(other)
        self.form.addRow(title, row)

    def _make_list(self) -> QTreeWidget:
        layers = QTreeWidget()
        layers.setObjectName("precision.layers")
        layers.setAccessibleName(tr("Layers and their formats"))
        layers.setHeaderLabels([tr("Layer"), tr("Reason")])
        layers.setRootIsDecorated(False)
        layers.header().setStretchLastSection(False)
        theme.frame_check_boxes(layers)
        for chosen in (layers.itemClicked, layers.itemActivated):  # the second with Enter
            chosen.connect(lambda item, _: self._context.reveal(item.text(0)))
        return layers

    # --- the form --------------------------------------------------------------------------------------------------

    @property
    def _integer(self) -> bool:
        return self.target.currentData() in KEPT_IN

    def _on_target(self, _: int = 0) -> None:
        """Show the rows of the precision, with its usual budget."""
        for field in (self.count, self.pixels, self.method, self.runtime):
            self.form.setRowVisible(self._row_of(field), self._integer)
        with QSignalBlocker(self.budget):  # one choice
            self.budget.setValue(INT8_BUDGET_DB if self._integer else BUDGET_DB)
        self._on_choice()

    def _on_choice(self, _: object = None) -> None:
        """What is found or being found is of other choices."""
        if self._question.busy:
            self.stop()
        else:
            self._forget()
        self._show_enabled()

    def _row_of(self, field: QWidget) -> int:
        for row in range(self.form.rowCount()):
            item = self.form.itemAt(row, QFormLayout.ItemRole.FieldRole)
            layout = item.layout() if item is not None else None
            if layout is not None and layout.indexOf(field) >= 0:
                return row
        raise ValueError(field)

    def _on_browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Folder of Images"), self.folder.text().strip())
        if folder:
            self.folder.setText(folder)

    def _show_enabled(self) -> None:
        self.search.setEnabled(self._question.busy or bool(self.folder.text().strip()))
        self.search.setText(tr("Stop") if self._question.busy else tr("Find"))
        theme.set_icon(self.search, "stop" if self._question.busy else "play")
        self.bar.setVisible(self._question.busy)

    def _forget(self) -> None:
        """A result of other choices is not shown."""
        self._found = None
        self.layers.clear()
        self.add.setEnabled(False)
        self.save.hide()
        self.status.show_message("", "info")

    # --- the engine ------------------------------------------------------------------------------------------------

    def _on_find(self) -> None:
        if self._question.busy:
            self.stop()
            return
        self._forget()
        self.bar.setRange(0, 0)
        self.status.show_message(tr("Running the network ..."), "info")
        self._question.ask(self._request(), self._done, self._failed, self._advance)

    def _request(self) -> ChoosePrecisionRequest:
        target = str(self.target.currentData())
        folder = str(typed_path(self.folder.text()).absolute())
        self._recipe = (
            CalibrationRecipe(
                folder,
                self.count.value(),
                self.pixels.text().strip(),
                str(self.method.currentData()),
                self.percentile.value(),
                str(self.runtime.currentData()),
            )
            if self._integer
            else None
        )
        budget = self.budget.value() or None
        return ChoosePrecisionRequest(target, folder, budget, self._recipe, KEPT_IN.get(target, FLOAT32.name))

    def stop(self) -> None:
        """Give up; the engine is stopped."""
        if self._question.busy:
            self._question.stop()
            self.status.show_message(tr("Stopped. Nothing was changed."), "info")

    def _advance(self, event: ProgressEvent) -> None:
        self.bar.setRange(0, event.total)
        self.bar.setValue(event.done)
        self.status.show_message(event.text, "info")

    def _failed(self, text: str) -> None:
        self.status.show_message(text, "error")

    # --- the result ------------------------------------------------------------------------------------------------

    def _done(self, reply: ChoosePrecisionReply) -> None:
        self._found = reply
        kept_in = tr_data(TITLES[reply.format])
        titles = [tr("Layer in {format}", format=kept_in), tr("Reason")]
        if reply.sensitivity:
            titles += [tr("PSNR alone\nin INT8, dB"), tr("PSNR of all\nothers, dB")]
        self.layers.setColumnCount(len(titles))
        self.layers.setHeaderLabels(titles)
        self.layers.setToolTip(
            tr(
                "Layers with a check mark stay in {format}. Click a row to show the layer on the canvas.",
                format=kept_in,
            )
        )
        measured = {item.layer: (item.alone_db, item.without_db) for item in reply.sensitivity}
        for layer in dict.fromkeys((*reply.kept, *measured)):
            numbers = [f"{value:.1f}" for value in measured.get(layer, ())]
            self._add_layer(layer, reply.kept.get(layer, ""), numbers, kept=layer in reply.kept)
        header = self.layers.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        self.status.show_message(" ".join(verdict(reply)), "info" if reply.met else "warning")
        self.add.setEnabled(True)
        self.save.setVisible(bool(reply.report))
        self.chosen.emit()

    def _add_layer(self, layer: str, reason: str, numbers: list[str], *, kept: bool) -> None:
        item = QTreeWidgetItem(self.layers, [layer, reason, *numbers])
        item.setToolTip(1, plain_tip(reason))
        item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
        item.setCheckState(0, Qt.CheckState.Checked if kept else Qt.CheckState.Unchecked)
        for column in range(2, 2 + len(numbers)):
            item.setTextAlignment(column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)

    def _on_add(self) -> None:
        assert self._found is not None
        self.accepted_variant.emit(self._variant(self._found))
        self.accept()

    def _variant(self, reply: ChoosePrecisionReply) -> Variant:
        """The variant with the layers that have a check mark now; what the user changed is marked."""
        rows = [self.layers.topLevelItem(index) for index in range(self.layers.topLevelItemCount())]
        checked = [row.text(0) for row in rows if row is not None and row.checkState(0) is Qt.CheckState.Checked]
        reasons = {name: reply.kept[name] for name in checked if name in reply.kept}
        reasons.update(dict.fromkeys(sorted(set(checked) ^ reply.kept.keys()), BY_HAND))
        if self._recipe is not None:
            name = "INT8 + FP16" if reply.format == FLOAT16.name else "INT8"
        else:
            name = tr("Mixed") if checked else reply.precision.upper()
        formats = dict.fromkeys(checked, reply.format)
        return Variant(name, reply.precision, formats, reasons=reasons, calibration=self._recipe)

    def _on_save(self) -> None:
        assert self._found is not None
        name, _ = QFileDialog.getSaveFileName(
            self, tr("Save Report"), f"{self._context.root.graph.name}_int8.json", tr("JSON files (*.json)")
        )
        if name:
            try:
                write_atomic(Path(name), self._found.report.encode())
            except DiagnosticError as error:
                self.status.show_message(placed_text(error.diagnostics[0]), "error")
            else:
                self.status.show_message(tr("Saved {name}", name=Path(name).name), "info")


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
    if reply.bytes:
        found.append(tr("{size} instead of {plain}.", size=binary(reply.bytes), plain=binary(reply.bytes_fp32)))
    found += [
        tr("'{layer}' overflows: values up to {size}.", layer=layer, size=f"{size:.4g}")
        for layer, size in list(reply.overflow.items())[:NAMED]
        if layer not in reply.kept
    ]
    if reply.bf16_db is not None:
        found.append(tr("BF16 has the range of FP32 and reaches {db} dB.", db=f"{reply.bf16_db:.2f}"))
    if reply.skipped:
        count = trn("{count} file was skipped", "{count} files were skipped", len(reply.skipped))
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(reply.skipped.items())[:NAMED])
        found.append(f"{count} ({reasons}).")
    return found
