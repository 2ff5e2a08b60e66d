"""Number Formats: formats to drag onto layers, what each does to the image, and the size of the weights against PSNR."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import shiboken6
from PySide6.QtCore import QElapsedTimer, QMimeData, QPoint, Qt, QTimer
from PySide6.QtGui import QDrag, QMouseEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QStackedWidget,
    QToolButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.engine.protocol import BitsReply, SizePoint
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.document_watch import DocumentWatch
from app.ui.engine.number_formats import TITLES, number_formats_of, reason_text
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.flow import FlowLayout
from app.ui.widgets.frozen_tree import RowDelegate
from app.ui.widgets.message import Message
from app.ui.widgets.tooltips import plain_tip
from designer.graph.edits import ChangeSet
from designer.graph.template import enclosing
from designer.operators.api import Role
from designer.precision.bits import EQUAL, LADDER
from designer.profiling.heat import Heat, Metric
from designer.runtime.number_formats import FLOAT32, FORMATS
from designer.texts import mark, tr, tr_data
from designer.units import binary

if TYPE_CHECKING:
    from app.ui.precision.size_plot import SizePlot

FORMAT_MIME = "application/x-layerwright-number-format"  # as in app/ui/canvas/viewer.py
MEASURED = LADDER[1:]
REASON = 2 + len(MEASURED)  # column
SLICE_MS = 30  # of filling the table per event loop turn
REST_MS = 100  # after an edit of the network
LARGE = 2000  # layers of a network that are listed after it has been shown
ERROR = Metric("format_error", mark("Error with one layer in this format"), "%", lambda row: None, extensive=False)


class FormatChip(QToolButton):
    """A number format: a click gives it to the selected layers, a drag to the layer under the pointer."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.format = name
        self._pressed = QPoint()
        self.setObjectName(f"number_formats.{name}")
        self.setText(tr_data(TITLES[name]))
        self.setAccessibleName(tr("Number format {name}", name=self.text()))
        self.setToolTip(tr("{bits} bits. Click for the selected layers, or drag onto a layer", bits=FORMATS[name].bits))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._pressed = event.position().toPoint()
        super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        far = (event.position().toPoint() - self._pressed).manhattanLength() >= QApplication.startDragDistance()
        if not event.buttons() & Qt.MouseButton.LeftButton or not far:
            return
        self.setDown(False)
        drag = QDrag(self)
        data = QMimeData()
        data.setData(FORMAT_MIME, self.format.encode())
        drag.setMimeData(data)
        drag.setPixmap(self.grab())
        drag.exec(Qt.DropAction.CopyAction)


class NumberFormatsPanel(QWidget):
    """Chips of formats, the layers with their formats and what formats cost, and the curve of choices."""

    panel_id = "number_formats"
    title = "Number Formats"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("number_formats")
        self.setAccessibleName(tr("Number Formats"))
        self._context = context
        self._formats = number_formats_of(context)
        self._found: BitsReply | None = None
        self._document: Document | None = None
        self._rows: Iterator[None] = iter(())  # those that the table lacks
        self._gone: list[QTreeWidgetItem] = []  # those that it no longer has
        self._filling = QTimer(self, interval=0, timeout=self._fill)
        self._rest = QTimer(self, singleShot=True, interval=REST_MS, timeout=self._show_layers)
        chips = FlowLayout()
        for name in FORMATS:
            chip = FormatChip(name)
            chip.clicked.connect(lambda _=False, name=name: self._formats.set_format(name))
            chips.addWidget(chip)
        self.measure = QPushButton(tr("Measure Bits"))
        self.measure.setObjectName("number_formats.measure")
        self.measure.setToolTip(
            tr("Measure what each number format of each layer does to the result for the present inputs")
        )
        theme.set_icon(self.measure, "gauge")
        self.measure.clicked.connect(self._on_measure)
        self.heat = QComboBox()
        self.heat.setObjectName("number_formats.heat")
        self.heat.setAccessibleName(tr("Heat"))
        self.heat.setToolTip(
            tr("Color the layers on the canvas by the error of the result if only they have this format")
        )
        self.heat.addItem(tr("No heat"), "")
        for name in MEASURED:
            self.heat.addItem(tr("Heat of {name}", name=tr_data(TITLES[name])), name)
        self.heat.currentIndexChanged.connect(self._show_heat)
        self.status = Message("number_formats.status")
        self.table = self._table()
        self._body = self._layers_or_hint(self.table)
        self.size_text = QLabel()
        self.size_text.setObjectName("number_formats.size")
        self.plot: SizePlot | None = None
        row = QHBoxLayout()
        row.addWidget(self.measure)
        row.addWidget(self.heat, 1)
        self._main = QVBoxLayout(self)
        self._main.setContentsMargins(8, 8, 8, 8)
        self._main.addLayout(chips)
        self._main.addLayout(row)
        self._main.addWidget(self.status)
        self._main.addWidget(self._body, 2)
        self._main.addWidget(self.size_text)
        DocumentWatch(context, self).outdated.connect(self._forget)
        self._formats.formats_changed.connect(self._show_layers)
        self._formats.busy_changed.connect(self._on_busy)
        context.root_changed.connect(self._on_document)
        self._on_document()

    def _table(self) -> QTreeWidget:
        table = QTreeWidget()
        table.setObjectName("number_formats.layers")
        table.setAccessibleName(tr("Layers and their number formats"))
        formats = (tr_data(TITLES[name]) for name in MEASURED)
        table.setHeaderLabels([tr("Layer"), tr("Format"), *formats, tr("Reason")])
        tip = tr("PSNR in dB against FP32, if only this layer has the format of the column")
        for column in range(2, 2 + len(MEASURED)):
            table.headerItem().setToolTip(column, tip)
            table.headerItem().setTextAlignment(column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        table.header().setStretchLastSection(False)
        table.setRootIsDecorated(False)
        table.setAlternatingRowColors(True)
        table.setUniformRowHeights(True)
        table.setItemDelegate(RowDelegate(table))
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        for chosen in (table.itemClicked, table.itemActivated):  # the second with Enter
            chosen.connect(lambda item: self._context.reveal(item.text(0)))
        return table

    def _layers_or_hint(self, table: QTreeWidget) -> QStackedWidget:
        """The table, and a hint as long as it is empty."""
        body = QStackedWidget()
        hint = tr("Add layers from the Layer Palette to choose their number formats here.")
        body.addWidget(EmptyState("number_formats", "layers-outline", hint))
        body.addWidget(table)
        return body

    # --- layers ---------------------------------------------------------------------------------------------------

    def _show_layers(self) -> None:
        if self._context.has_document and self._document is not self._context.root:
            return  # `_on_document` comes next
        self._rest.stop()
        place = self.table.verticalScrollBar().value()
        self._empty()
        self._rows = self._add_rows()
        self._fill()
        self._body.setCurrentIndex(1 if self.table.topLevelItemCount() else 0)
        self.table.verticalScrollBar().setValue(place)
        self.size_text.setText(self._size_text())
        self.size_text.setVisible(bool(self.size_text.text()))

    def _empty(self) -> None:
        """Show no row; `_fill` deletes them later: `QTreeWidget.clear` takes 0.1 s for 15,000."""
        self._gone += self.table.invisibleRootItem().takeChildren()
        self._rows = iter(())
        self._filling.start()

    def _fill(self) -> None:
        clock = QElapsedTimer()
        clock.start()
        for _ in itertools.chain(self._rows, self._delete_rows()):
            if clock.elapsed() >= SLICE_MS:
                return
        self._filling.stop()
        for column in range(self.table.columnCount()):
            self.table.resizeColumnToContents(column)

    def _delete_rows(self) -> Iterator[None]:
        while self._gone:
            shiboken6.delete(self._gone.pop())  # type: ignore[no-untyped-call]  # Python only forgets those that were taken
            yield

    def _add_rows(self) -> Iterator[None]:
        """Add the rows one by one: the layers that compute, each followed by those inside it that are known by name."""
        formats, reasons = self._formats.formats, self._formats.reasons
        measured = {item.layer: item.psnr for item in self._found.layers} if self._found is not None else {}
        layers = dict.fromkeys(self._layers())
        inside: dict[str, list[str]] = {}
        for name in dict.fromkeys((*measured, *formats, *reasons)):
            if name not in layers:
                inside.setdefault(next((outer for outer in enclosing(name) if outer in layers), ""), []).append(name)
        for layer in (*layers, ""):
            for name in (*((layer,) if layer else ()), *inside.get(layer, ())):
                self._add_row(name, measured, reasons)
                yield

    def _layers(self) -> list[str]:
        document = self._document
        if document is None:
            return []
        roles = {kind: document.registry.role(kind) for kind in document.graph.types}
        order, loops = document.graph.order()
        names = [name for name in (*order, *loops) if name not in document.training]
        return [name for name in names if roles[document.graph[name].type] is Role.COMPUTE]

    def _add_row(self, name: str, measured: Mapping[str, Mapping[str, float]], reasons: Mapping[str, str]) -> None:
        texts = [_db(measured[name][each]) for each in MEASURED] if name in measured else []
        format = self._formats.format_of(name)
        item = QTreeWidgetItem([name, tr_data(TITLES.get(format, format)), *texts])
        reason = reason_text(reasons.get(name, ""))
        item.setText(REASON, reason)
        item.setToolTip(REASON, plain_tip(reason))
        for column in range(2, 2 + len(texts)):
            item.setTextAlignment(column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.table.addTopLevelItem(item)

    def _size_text(self) -> str:
        if self._found is None:
            return ""
        bits = 0
        for item in self._found.layers:
            format = FORMATS.get(self._formats.format_of(item.layer), FLOAT32)  # settings may have any text
            bits += format.weight_bits((item.vectors,)) + format.weight_bits((1, item.weights - item.vectors))
        plain = sum(item.weights * 32 for item in self._found.layers)
        return tr("Weights: {size} instead of {plain}", size=binary(-(-bits // 8)), plain=binary(plain // 8))

    # --- measuring ------------------------------------------------------------------------------------------------

    def _on_measure(self) -> None:
        if self._formats.busy:
            self._formats.stop()
        else:
            self._formats.measure_bits(self._on_found, self.status.show_message)

    def _on_busy(self, busy: bool) -> None:
        self.measure.setText(tr("Stop") if busy else tr("Measure Bits"))
        theme.set_icon(self.measure, "stop" if busy else "gauge")

    def _on_found(self, found: BitsReply) -> None:
        self._found = found
        if self.plot is None:
            from app.ui.precision.size_plot import SizePlot

            self.plot = SizePlot()
            self.plot.chosen.connect(self._on_point)
            self._main.addWidget(self.plot, 2)
        self.plot.show_points(found.points)
        self.plot.show()
        self._show_layers()
        if not self.heat.currentData():
            self.heat.setCurrentIndex(self.heat.findData("int4"))
        self._show_heat()

    def _on_point(self, point: object) -> None:
        assert isinstance(point, SizePoint)
        self._formats.set_formats(point.formats)

    def _show_heat(self, *_: object) -> None:
        name = self.heat.currentData()
        if not name or self._found is None:
            self._context.heat_requested.emit(None)
            return
        values = {item.layer: 100 * 10 ** (-item.psnr[name] / 20) for item in self._found.layers}
        labels = {item.layer: f"{_db(item.psnr[name])} dB" for item in self._found.layers}
        self._context.heat_requested.emit(Heat(ERROR, values, labels))

    def _on_document(self) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_changed)
            self._document = None
        if self._context.has_document:
            self._document = self._context.root
            self._document.changed.connect(self._on_changed)
        self._found = None
        self.status.show_message("", "info")
        self.heat.setCurrentIndex(0)
        if self.plot is not None:
            self.plot.hide()
        if self._document is not None and len(self._document.graph) > LARGE:
            self._empty()
            self._body.setCurrentWidget(self.table)
            self._rest.start()
        else:
            self._show_layers()

    def _forget(self) -> None:
        """Measurements of another network, of other weights or of another input are worth nothing."""
        if not self._formats.busy:
            self.status.show_message("", "info")
        if self._found is None:
            return
        self._found = None
        if self.plot is not None:
            self.plot.hide()
        self._show_heat()
        self._show_layers()

    def _on_changed(self, change: ChangeSet) -> None:
        if change.added or change.removed:
            self._rest.start()


def _db(value: float) -> str:
    return "∞" if value >= EQUAL else f"{value:.1f}"
