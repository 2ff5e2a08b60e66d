"""What the Channel Inspector looks at: the layer, which of its tensors, which item of the batch, in which order."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QComboBox, QCompleter, QSizePolicy, QSpinBox, QWidget

from app.ui.document.document import Document
from app.ui.inspector.color_bar import LINE, tool_button
from app.ui.inspector.order import Order
from app.ui.inspector.subject import Kind
from app.ui.widgets import theme
from app.ui.widgets.export_button import ExportButton
from app.ui.widgets.flow import FlowLayout
from designer.operators.api import Operator
from designer.texts import tr


class SubjectBar(QWidget):
    """Emits the choices of the user."""

    source_chosen = Signal(str)  # layer or layer:port
    kind_chosen = Signal(object)  # Kind
    tensor_chosen = Signal(str)  # one of the names shown last
    item_chosen = Signal(int)
    order_chosen = Signal(object)  # Order
    export_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.layer = _box("layer", tr("Layer"), tr("The layer to look at, or one of its outputs; type to search"))
        self.layer.setEditable(True)
        self.layer.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.layer.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.layer.setMinimumContentsLength(14)
        self.layer.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        edit, completer = self.layer.lineEdit(), self.layer.completer()
        assert edit is not None
        assert completer is not None
        edit.setPlaceholderText(tr("choose a layer"))
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        completer.setCompletionMode(QCompleter.CompletionMode.PopupCompletion)
        self.layer.activated.connect(lambda index: self.source_chosen.emit(self.layer.itemText(index)))
        self.follow = tool_button("follow", "", tr("Follow the selection on the canvas"), check=True)
        theme.set_icon(self.follow, "crosshairs-gps")
        self.kind = _box("kind", tr("What to look at"), tr("What the layer makes, what it has learned, or a gradient"))
        for kind, title in (
            (Kind.OUTPUT, tr("Output")),
            (Kind.WEIGHTS, tr("Weights")),
            (Kind.GRADIENT, tr("Gradient")),
        ):
            self.kind.addItem(title, kind)
        self.kind.activated.connect(lambda: self.kind_chosen.emit(Kind(self.kind.currentData())))
        self.tensor = _box("tensor", tr("Tensor"), tr("Which weights, or the input that the gradient is of"))
        self.tensor.setMinimumContentsLength(8)
        self.tensor.activated.connect(lambda: self.tensor_chosen.emit(self.tensor.currentData()))
        self.tensor.hide()
        self.item = QSpinBox()
        self.item.setObjectName("channel_inspector.item")
        self.item.setAccessibleName(tr("Item of the batch"))
        self.item.setToolTip(tr("Which item of the batch is shown"))
        self.item.setPrefix(tr("item "))
        self.item.valueChanged.connect(self.item_chosen)
        self.item.hide()
        self.order = _box("order", tr("Order of the channels"), tr("Order of the channels"))
        for order, title in (
            (Order.INDEX, tr("by number")),
            (Order.ENERGY, tr("by energy")),
            (Order.MEAN, tr("by mean")),
            (Order.ZEROS, tr("by share of zeros")),
            (Order.SIMILARITY, tr("alike together")),
        ):
            self.order.addItem(title, order)
        self.order.activated.connect(lambda: self.order_chosen.emit(self.chosen_order))
        self.export = ExportButton("channel_inspector", statistics=True)
        self.export.requested.connect(self.export_requested)
        self._row = FlowLayout(self, spacing=6, line=LINE)
        self._row.add_labelled(tr("Layer"), self.layer)
        for widget in (self.follow, self.kind, self.tensor, self.item, self.order, self.export):
            self._row.addWidget(widget)

    @property
    def chosen_order(self) -> Order:
        return Order(self.order.currentData())  # Qt makes a plain text of it

    def add_buttons(self, *buttons: QWidget) -> None:
        """More of them, before the one to export."""
        for button in (*buttons, self.export):
            self._row.removeWidget(button)
            self._row.addWidget(button)

    def show_document(self, document: Document) -> None:
        """List the tensors in running order."""
        names = []
        more: dict[int, tuple[str, ...]] = {}  # ports after the first, by operator: many layers share one
        for name in document.graph.order()[0]:
            names.append(name)
            operator = document.inference.read(name).operator
            if isinstance(operator, Operator):
                if id(operator) not in more:
                    more[id(operator)] = tuple(port.name for port in operator.output_ports()[1:])
                names.extend(f"{name}:{port}" for port in more[id(operator)])
        if len(names) == self.layer.count() and names == [self.layer.itemText(i) for i in range(len(names))]:
            return
        shown = self.layer.currentText()
        with QSignalBlocker(self.layer):
            self.layer.clear()
            self.layer.addItems(names)
        self.show_source(shown if shown in names else "")

    def show_source(self, source: str) -> None:
        with QSignalBlocker(self.layer):
            self.layer.setCurrentIndex(self.layer.findText(source, Qt.MatchFlag.MatchExactly) if source else -1)
            if self.layer.currentIndex() < 0:  # nothing, or a layer inside of a template
                self.layer.setEditText(source)

    def show_kind(self, kind: Kind) -> None:
        self.kind.setCurrentIndex(self.kind.findData(kind))

    def show_tensors(self, tensors: Iterable[tuple[str, str]], shown: str) -> None:
        """(name, title) of the tensors that can be chosen; empty hides the choice."""
        tensors = list(tensors)
        if tensors != [(self.tensor.itemData(i), self.tensor.itemText(i)) for i in range(self.tensor.count())]:
            self.tensor.clear()
            for name, title in tensors:
                self.tensor.addItem(title, name)
        self.tensor.setCurrentIndex(max(0, self.tensor.findData(shown)) if tensors else -1)
        self.tensor.setVisible(bool(tensors))

    def show_items(self, count: int, item: int) -> None:
        """The size of the batch; of one there is nothing to choose."""
        with QSignalBlocker(self.item):
            self.item.setRange(0, max(0, count - 1))
            self.item.setSuffix(tr(" of {count}", count=count))
            self.item.setValue(item)
        self.item.setVisible(count > 1)


def _box(name: str, title: str, tip: str) -> QComboBox:
    box = QComboBox()
    box.setObjectName(f"channel_inspector.{name}")
    box.setAccessibleName(title)
    box.setToolTip(tip)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    return box
