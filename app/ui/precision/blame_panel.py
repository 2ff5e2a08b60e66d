"""Blame: which operators cause the difference between two computations of the network, in a table and on the canvas."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QStackedWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.computations import computation_titles, variant_name
from app.engine.protocol import BlamedOperator, BlameReply
from app.ui.document.locations import start_folder
from app.ui.engine.context import Context
from app.ui.engine.document_watch import DocumentWatch
from app.ui.engine.number_formats import number_formats_of
from app.ui.precision.channel_pairs import ChannelPairs
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.frozen_tree import RowDelegate
from app.ui.widgets.message import Message
from app.ui.widgets.narrow_combo import NarrowComboBox
from designer.files.variants import Variant
from designer.profiling.heat import Heat, Metric
from designer.texts import mark, tr
from designer.units import digits

SHARE = Metric("blame", mark("Share of the error"), "%", lambda row: None, extensive=False)


class BlamePanel(QWidget):
    """Two computations to choose, and the operators with their shares; the channels of an operator open side by side."""

    panel_id = "blame"
    title = "Blame"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("blame")
        self.setAccessibleName(tr("Blame"))
        self._context = context
        self._formats = number_formats_of(context)
        self._names = self._titles = ("", "")
        self._variants: tuple[Variant, ...] = ()  # those that the names mean
        self._summary = ""
        self._files: dict[str, str] = {}  # ONNX files that were chosen for the open document, and their titles
        self.a = self._combo("a", tr("First computation"), "fp32")
        self.b = self._combo("b", tr("Second computation"), "int8")
        self.file = QPushButton(tr("ONNX File..."))
        self.file.setObjectName("blame.file")
        self.file.setToolTip(
            tr("Compare with an ONNX file: one that was exported, or the one that the network was imported from")
        )
        self.file.clicked.connect(self._on_file)
        self.causes = QPushButton(tr("Find Causes"))
        self.causes.setObjectName("blame.find")
        self.causes.setToolTip(tr("Exchange single operators between the two computations, for the present inputs"))
        theme.set_icon(self.causes, "magnify")
        self.causes.clicked.connect(self._on_find)
        self.status = Message("blame.status")
        self.first = QPushButton()
        self.first.setObjectName("blame.first")
        self.first.setToolTip(tr("Show the channels of this operator in both computations"))
        self.first.hide()
        self.first.clicked.connect(lambda: self.show_channels(self.first.property("layer")))
        self.table = self._table()
        self.results = self._results(self.table)
        self.channels = self._compare_button()
        second = QHBoxLayout()
        second.addWidget(self.b, 1)
        second.addWidget(self.file)
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.addRow(tr("A"), self.a)
        form.addRow(tr("B"), second)
        main = QVBoxLayout(self)
        main.setContentsMargins(8, 8, 8, 8)
        main.addLayout(form)
        for widget in (self.causes, self.status, self.first):
            main.addWidget(widget)
        main.addWidget(self.results, 1)
        main.addWidget(self.channels)
        DocumentWatch(context, self).outdated.connect(self._forget)
        self._formats.busy_changed.connect(self._on_busy)
        self._formats.formats_changed.connect(self._offer)
        context.root_changed.connect(self._on_document)
        if context.has_document:
            self._on_document()

    def _combo(self, name: str, title: str, chosen: str) -> QComboBox:
        combo = NarrowComboBox(f"blame.{name}", title)
        combo.setProperty("usual", chosen)
        return combo

    def _compare_button(self) -> QPushButton:
        button = QPushButton(tr("Compare Channels"))
        button.setObjectName("blame.channels")
        button.setToolTip(tr("Show the channels of the selected operator in both computations"))
        button.setEnabled(False)
        button.clicked.connect(lambda: self.show_channels(self.table.currentItem().text(0)))
        return button

    def _results(self, table: QTreeWidget) -> QStackedWidget:
        """The table, and a hint as long as it is empty."""
        results = QStackedWidget()
        hint = tr("Find Causes lists the operators here that cause the difference between A and B")
        results.addWidget(EmptyState("blame", "magnify", hint))
        results.addWidget(table)
        return results

    def _table(self) -> QTreeWidget:
        table = QTreeWidget()
        table.setObjectName("blame.operators")
        table.setAccessibleName(tr("Operators and their shares of the error"))
        table.setHeaderLabels([tr("Operator"), tr("Share (%)"), tr("Own deviation")])
        header = table.headerItem()
        header.setToolTip(
            1, tr("Part of the error of the result; shares sum to 100 %. A negative one compensates others")
        )
        header.setToolTip(2, tr("Relative difference of the operator's results if it gets the same inputs"))
        for column in (1, 2):
            header.setTextAlignment(column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        table.header().setStretchLastSection(False)
        table.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        table.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        table.setRootIsDecorated(False)
        table.setAlternatingRowColors(True)
        table.setUniformRowHeights(True)
        table.setItemDelegate(RowDelegate(table))
        for chosen in (table.itemClicked, table.itemActivated):  # the second with Enter
            chosen.connect(lambda item: self._context.reveal(item.text(0)))
        table.itemDoubleClicked.connect(lambda item: self.show_channels(item.text(0)))
        table.itemSelectionChanged.connect(lambda: self.channels.setEnabled(bool(table.selectedItems())))
        return table

    # --- asking -----------------------------------------------------------------------------------------------------

    def _on_document(self) -> None:
        for combo in (self.a, self.b):
            combo.clear()
        self._files.clear()
        self._offer()
        self._clear()

    def _offer(self) -> None:
        """Offer the computations of the document, as its variants are now. What is chosen stays if it is still offered."""
        titles = computation_titles(self._context.root.settings.variants)
        for combo, files in ((self.a, {}), (self.b, self._files)):
            chosen = combo.currentData()
            combo.clear()
            for name, title in {**titles, **files}.items():
                combo.addItem(title, name)
            index = combo.findData(chosen)
            combo.setCurrentIndex(index if index >= 0 else combo.findData(combo.property("usual")))
        if self._variants != self._compared_variants():
            self._forget()

    def _compared_variants(self) -> tuple[Variant, ...]:
        """The variants of the document that are compared, as they are now."""
        return tuple(each for each in self._context.root.settings.variants if variant_name(each.name) in self._names)

    def _forget(self) -> None:
        """Shares of another network, of other weights, of another input or of another variant are worth nothing."""
        if self.results.currentWidget() is self.table:
            self._clear()
        elif not self._formats.busy:
            self.status.show_message("", "info")  # why there are none

    def _clear(self) -> None:
        self.table.clear()
        self.results.setCurrentIndex(0)
        self.first.hide()
        self.status.show_message("", "info")
        self._context.heat_requested.emit(None)

    def _on_file(self) -> None:
        folder = start_folder(self._context.root.file if self._context.has_document else None)
        path, _ = QFileDialog.getOpenFileName(
            self, tr("Compare with ONNX File"), str(folder), tr("ONNX models (*.onnx)")
        )
        if path:
            self.compare_with_file(Path(path))

    def compare_with_file(self, path: Path) -> None:
        """Choose a file as the second computation."""
        self._files[str(path)] = path.name
        self._offer()
        self.b.setCurrentIndex(self.b.findData(str(path)))

    def _on_find(self) -> None:
        if self._formats.busy:
            self._formats.stop()
            return
        self._clear()
        self._names = (self.a.currentData(), self.b.currentData())
        self._titles = (self.a.currentText(), self.b.currentText())
        self._variants = self._compared_variants()
        self._formats.blame(*self._names, self._on_found, self.status.show_message)

    def _on_busy(self, busy: bool) -> None:
        self.causes.setText(tr("Stop") if busy else tr("Find Causes"))
        theme.set_icon(self.causes, "stop" if busy else "magnify")

    # --- the answer -------------------------------------------------------------------------------------------------

    def _on_found(self, found: BlameReply) -> None:
        if self._variants != self._compared_variants():
            self.status.show_message(tr("The variant was changed in the meantime. Repeat the measurement."), "error")
            return
        self.results.setCurrentWidget(self.table)
        ranked = sorted(found.operators, key=lambda item: (abs(item.share), item.deviation), reverse=True)
        self.table.clear()
        for item in ranked:
            self.table.addTopLevelItem(_row(item))
        if found.first is None:
            text = tr(
                "{a} and {b} differ by {rms} RMS; no operator deviates by more than rounding.",
                a=self._titles[0],
                b=self._titles[1],
                rms=f"{found.rms:.2g}",
            )
        else:
            text = tr("{a} and {b} differ by {rms} RMS.", a=self._titles[0], b=self._titles[1], rms=f"{found.rms:.2g}")
            self.first.setText(tr("First deviating operator: {layer}", layer=found.first))
            self.first.setProperty("layer", found.first)
        self.first.setVisible(found.first is not None)
        self._summary = text
        self.status.show_message(text, "info")
        values = {item.layer: max(100 * item.share, 0.0) for item in found.operators}
        labels = {item.layer: f"{100 * item.share:.0f} %" for item in found.operators}
        self._context.heat_requested.emit(Heat(SHARE, values, labels))

    def show_channels(self, layer: str) -> None:
        """Open the channels of an operator in both computations."""
        self._formats.compare_tensor(layer, *self._names, partial(self._open, layer), self.status.show_message)

    def _open(self, layer: str, a: object, b: object) -> None:
        self.status.show_message(self._summary, "info")
        ChannelPairs(layer, self._titles, a, b, self.window()).show()


def _row(item: BlamedOperator) -> QTreeWidgetItem:
    row = QTreeWidgetItem([item.layer, f"{100 * item.share:.1f}", digits(item.deviation)])
    for column in (1, 2):
        row.setTextAlignment(column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return row
