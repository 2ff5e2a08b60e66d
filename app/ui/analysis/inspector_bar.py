"""The controls above the channels: which tensor, in which colours, how much magnified."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QCompleter,
    QHBoxLayout,
    QLabel,
    QSlider,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.analysis.export_button import ExportButton
from app.ui.analysis.look import Look
from app.ui.analysis.render import PALETTES
from app.ui.analysis.slider import NumberSlider
from app.ui.document import Document
from designer.operators.api import Operator

TITLES = {
    "green / red": "green +  red −",
    "orange / blue": "orange +  blue −",
    "gray": "gray",
    "viridis": "viridis",
}


class InspectorBar(QWidget):
    """Layer, palette, magnify, shift and size of the tiles."""

    source_chosen = Signal(str)
    look_changed = Signal(Look)
    side_changed = Signal(int)
    auto_requested = Signal()
    look_touched = Signal()  # the person has set magnify or shift
    export_requested = Signal(str)  # "picture", "copy" or "tensor"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.layer = QComboBox()
        self.layer.setObjectName("channel_inspector.layer")
        self.layer.setAccessibleName("Layer")
        self.layer.setToolTip("The tensor to look at; type to search")
        self.layer.setEditable(True)
        self.layer.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.layer.setMinimumContentsLength(16)
        self.layer.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        edit, completer = self.layer.lineEdit(), self.layer.completer()
        assert edit is not None
        assert completer is not None
        edit.setPlaceholderText("choose a layer")
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        completer.setCompletionMode(QCompleter.CompletionMode.PopupCompletion)
        self.layer.activated.connect(lambda index: self.source_chosen.emit(self.layer.itemText(index)))
        self.palette_box = QComboBox()
        self.palette_box.setObjectName("channel_inspector.palette")
        self.palette_box.setAccessibleName("Colours")
        self.palette_box.setToolTip("Colours of values above and below zero")
        for name in PALETTES:
            self.palette_box.addItem(TITLES.get(name, name), name)
        self.palette_box.currentIndexChanged.connect(self._tell)
        self.gain = NumberSlider("channel_inspector.gain", "Magnify", 0.01, 1000.0, 0.01, logarithmic=True)
        self.gain.set_value(1.0)
        self.gain.setToolTip("Values are multiplied by this before they become colours")
        self.gain.changed.connect(self._touch)
        self.shift = NumberSlider("channel_inspector.shift", "Shift", -2.0, 2.0, 0.01)
        self.shift.set_value(0.0)
        self.shift.setToolTip("Is added to the values before they are magnified")
        self.shift.changed.connect(self._touch)
        auto = _tool("auto", "Auto", "Magnify so that the values fill the colours", self.auto_requested.emit)
        reset = _tool("reset", "Reset", "Magnify 1, shift 0", self._reset)
        self.side = QSlider(Qt.Orientation.Horizontal)
        self.side.setObjectName("channel_inspector.side")
        self.side.setAccessibleName("Size of the channels")
        self.side.setMinimumWidth(56)
        self.side.setToolTip("Size of the channels (Ctrl + wheel over them)")
        self.side.setRange(24, 512)
        self.side.setValue(144)
        self.side.setMaximumWidth(120)
        self.side.valueChanged.connect(self.side_changed)
        first, second = QHBoxLayout(), QHBoxLayout()
        for label, widget, stretch, row in (
            ("Layer", self.layer, 2, first),
            ("Colours", self.palette_box, 0, first),
            ("Size", self.side, 1, first),
            ("Magnify", self.gain, 2, second),
            ("Shift", self.shift, 2, second),
        ):
            text = QLabel(label)
            text.setBuddy(widget)
            row.addWidget(text)
            row.addWidget(widget, stretch)
        second.addWidget(auto)
        second.addWidget(reset)
        self.export = ExportButton("channel_inspector")
        self.export.wished.connect(self.export_requested)
        first.addWidget(self.export)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(first)
        column.addLayout(second)

    def show_document(self, document: Document) -> None:
        """List the tensors in running order."""
        names = []
        for name in document.graph.order()[0]:
            names.append(name)
            operator = document.inference.read(name).operator
            ports = operator.output_ports() if isinstance(operator, Operator) else ()
            names.extend(f"{name}:{port.name}" for port in ports[1:])
        if names == [self.layer.itemText(i) for i in range(self.layer.count())]:
            return
        shown = self.layer.currentText()
        with QSignalBlocker(self.layer):
            self.layer.clear()
            self.layer.addItems(names)
        self.show_source(shown if shown in names else "")

    def show_source(self, source: str) -> None:
        with QSignalBlocker(self.layer):
            self.layer.setCurrentIndex(self.layer.findText(source, Qt.MatchFlag.MatchExactly) if source else -1)
            if not source:
                self.layer.setEditText("")

    def set_look(self, gain: float, shift: float | None = None) -> None:
        """Magnify, and shift unless it stays."""
        self.gain.set_value(min(max(gain, 0.01), 1000.0))
        if shift is not None:
            self.shift.set_value(shift)
        self._tell()

    @property
    def look(self) -> Look:
        return Look(str(self.palette_box.currentData()), self.gain.value, self.shift.value)

    def _reset(self) -> None:
        self.gain.set_value(1.0)
        self.shift.set_value(0.0)
        self._touch()

    def _touch(self) -> None:
        self._tell()
        self.look_touched.emit()

    def _tell(self) -> None:
        self.look_changed.emit(self.look)


def _tool(name: str, text: str, tip: str, action: Callable[[], None]) -> QToolButton:
    button = QToolButton()
    button.setObjectName(f"channel_inspector.{name}")
    button.setAccessibleName(tip)
    button.setText(text)
    button.setToolTip(tip)
    button.setAutoRaise(True)
    button.clicked.connect(action)
    return button
