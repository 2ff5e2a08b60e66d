"""What If: the predicted time of the network on other machines, precisions, batches and sizes, and its training memory."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QFormLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.engine.protocol import PredictReply, PredictRequest, TrainingMemoryRow
from app.ui.engine.context import Context
from app.ui.engine.document_watch import DocumentWatch
from app.ui.engine.profiling import Entry, profiling_of
from app.ui.widgets import theme
from app.ui.widgets.frozen_tree import RowDelegate
from app.ui.widgets.message import Message
from app.ui.widgets.narrow_combo import NarrowComboBox
from app.ui.widgets.sentences import placed_text
from designer.graph.diagnostics import DiagnosticError
from designer.profiling.configurations import sizes_of
from designer.profiling.devices import DEVICES
from designer.profiling.quantities import ValueSource
from designer.profiling.sweep import images_per_second
from designer.texts import mark, tr, tr_data
from designer.units import binary, digits, quantity

LARGEST_BATCH = 4096
PRECISIONS = ("fp32", "fp16", "bf16")
OPTIMIZERS = {
    "adam": mark("Adam"),
    "adamw": mark("AdamW"),
    "sgd": mark("SGD"),
    "sgd with momentum": mark("SGD with momentum"),
    "rmsprop": mark("RMSprop"),
}
MEMORY_COLUMNS = (
    mark("Layer"),
    mark("Total"),
    mark("Weights"),
    mark("Gradients"),
    mark("Optimizer"),
    mark("Activations"),
)


class WhatIfPanel(QWidget):
    """A form, the predicted time next to the one of the shown run, and the memory of a training step by layer."""

    panel_id = "what_if"
    title = "What If"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("what_if")
        self.setAccessibleName(tr("What If"))
        self._context = context
        self._profiling = profiling_of(context)
        self.machine = NarrowComboBox("what_if.machine", tr("Machine"))
        self.machine.addItem(tr("This machine"), "")
        for device in DEVICES:
            self.machine.addItem(device.name, device.name)
            self.machine.setItemData(self.machine.count() - 1, device.source, Qt.ItemDataRole.ToolTipRole)
        self.precision = NarrowComboBox("what_if.precision", tr("Precision"))
        for name in PRECISIONS:
            self.precision.addItem(name.upper(), name)
        self.optimizer = NarrowComboBox("what_if.optimizer", tr("Optimizer"))
        for name, title in OPTIMIZERS.items():
            self.optimizer.addItem(tr_data(title), name)
        self.batch = QSpinBox()
        self.batch.setObjectName("what_if.batch")
        self.batch.setAccessibleName(tr("Batch"))
        self.batch.setRange(1, LARGEST_BATCH)
        self.size_ = QLineEdit()
        self.size_.setObjectName("what_if.size")
        self.size_.setAccessibleName(tr("Size"))
        self.size_.textChanged.connect(lambda _text: self._forget_problem())
        self.size_.setPlaceholderText(tr("of the document"))
        self.size_.setToolTip(tr("Width x height, such as 512x512; empty: the size in the document"))
        self.predict = self._predict_button()
        self._predicting = False
        self._edited = False  # since the prediction was asked for
        self.status = Message("what_if.status")
        self.result = QLabel()
        self.result.setObjectName("what_if.result")
        self.result.setAccessibleName(tr("Prediction"))
        self.result.setWordWrap(True)
        self.result.setTextFormat(Qt.TextFormat.PlainText)
        self.result.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.memory = self._memory_table()
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, field in (
            (tr("Machine"), self.machine),
            (tr("Precision"), self.precision),
            (tr("Batch"), self.batch),
            (tr("Size"), self.size_),
            (tr("Optimizer"), self.optimizer),
        ):
            form.addRow(title, field)
        main = QVBoxLayout(self)
        main.setContentsMargins(8, 8, 8, 8)
        main.addLayout(form)
        main.addWidget(self.predict)
        main.addWidget(self.status)
        main.addWidget(self.result)
        main.addWidget(self.memory, 1)
        main.addStretch()  # while the table is hidden
        DocumentWatch(context, self).edited.connect(self._on_edit)
        context.root_changed.connect(self._on_document)
        self._profiling.state_changed.connect(lambda *_: self._enable())
        self._on_document()

    def _predict_button(self) -> QPushButton:
        button = QPushButton(tr("Predict"))
        button.setObjectName("what_if.predict")
        button.setToolTip(
            tr(
                "Nothing runs on the chosen machine. For this machine, new operators of the network are measured one by one, "
                "for a few seconds."
            )
        )
        theme.set_icon(button, "gauge")
        button.clicked.connect(self._on_clicked)
        return button

    def _memory_table(self) -> QTreeWidget:
        table = QTreeWidget()
        table.setObjectName("what_if.memory")
        table.setAccessibleName(tr("Memory of a training step by layer"))
        table.setColumnCount(len(MEMORY_COLUMNS))
        table.setHeaderLabels([tr_data(title) for title in MEMORY_COLUMNS])
        table.setRootIsDecorated(False)
        table.setAlternatingRowColors(True)
        table.setUniformRowHeights(True)
        table.setItemDelegate(RowDelegate(table))
        table.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        for chosen in (table.itemClicked, table.itemActivated):  # the second with Enter
            chosen.connect(lambda item: self._reveal(item.text(0)))
        policy = table.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # the form stays at the top
        table.setSizePolicy(policy)
        table.hide()
        return table

    def _on_clicked(self) -> None:
        if self._predicting:
            self._profiling.stop_prediction()
            self.status.show_message(tr("Stopped."), "info")
        else:
            self.ask()

    def ask(self) -> None:
        """Ask the engine for the prediction."""
        if not self._context.has_document:
            return
        try:
            sizes = sizes_of(self.size_.text())
        except DiagnosticError as error:
            self.status.show_message(placed_text(error.diagnostics[0]), "error")
            return
        size = (sizes[0].width, sizes[0].height) if sizes else None
        request = PredictRequest(
            self.machine.currentData(),
            self.precision.currentData(),
            self.batch.value(),
            size,
            self.optimizer.currentData(),
        )
        self._edited = False
        self._set_predicting(True)
        self.status.show_message(tr("Predicting …"), "info")
        machine = self.machine.currentText()  # another one may be chosen until the reply
        self._profiling.predict(request, lambda reply: self._show(reply, machine), self._failed)

    def _show(self, reply: PredictReply, machine: str) -> None:
        self._set_predicting(False)
        self.status.show_message("", "info")
        if self._edited:
            text = tr("The network was edited in the meantime. Predict again.")
            self.status.show_message(text, "warning")
            self._profiling.add(reply.profile)
            return
        (run,) = reply.profile.runs
        assert run.time_ms is not None
        lines = [
            tr(
                "{machine}, {precision}, batch {batch}, {size}: {time} (modelled)",
                machine=machine,
                precision=run.precision.upper(),
                batch=run.batch,
                size=run.size,
                time=quantity(run.time_ms / 1e3, "s"),
            )
        ]
        found = self._measured(reply.profile.network, run.size)
        if found is not None:
            factor = images_per_second(run) / images_per_second(found.run)
            lines.append(
                tr(
                    "{factor} x the images per second of run #{number} (measured)",
                    factor=digits(factor),
                    number=found.number,
                )
            )
        total = sum(_total(row) for row in reply.training)
        lines.append(tr("memory of a training step: {total} (modelled)", total=binary(total)))
        lines += [tr("note: {note}", note=note) for note in run.notes]
        self.result.setText("\n".join(lines))
        self._show_memory(reply.training)
        self._profiling.add(reply.profile)

    def _measured(self, network: str, size: str) -> Entry | None:
        """The shown run if it was measured at this size, or else the last one that was."""
        shown = self._profiling.current
        return next(
            (
                entry
                for entry in (shown, *reversed(self._profiling.entries))
                if entry is not None
                and (entry.profile.network, entry.run.size) == (network, size)
                and entry.run.source is ValueSource.MEASURED
                and entry.run.time_ms
            ),
            None,
        )

    def _show_memory(self, rows: tuple[TrainingMemoryRow, ...]) -> None:
        self.memory.clear()
        for row in sorted(rows, key=_total, reverse=True):
            sizes = (_total(row), row.weights, row.gradients, row.optimizer, row.activations)
            item = QTreeWidgetItem([row.layer, *(binary(size) for size in sizes)])
            for column in range(1, len(MEMORY_COLUMNS)):
                item.setTextAlignment(column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            self.memory.addTopLevelItem(item)
        self.memory.show()

    def _failed(self, text: str) -> None:
        self._set_predicting(False)
        self.status.show_message(text, "error")

    def _reveal(self, layer: str) -> None:
        if self._context.has_document:
            self._context.reveal(layer)

    def _on_document(self, *_: object) -> None:
        self._set_predicting(False)
        self.status.show_message("", "info")
        self._forget()
        self._enable()

    def _on_edit(self) -> None:
        self._edited = True
        self._forget_problem()
        self._forget()

    def _forget_problem(self) -> None:
        """What went wrong may be right now."""
        if not self._predicting:
            self.status.show_message("", "info")

    def _forget(self) -> None:
        """A prediction of another network is listed by the Inference Run Logger only."""
        self.result.clear()
        self.memory.clear()
        self.memory.hide()

    def _set_predicting(self, predicting: bool) -> None:
        self._predicting = predicting
        self.predict.setText(tr("Stop") if predicting else tr("Predict"))
        theme.set_icon(self.predict, "stop" if predicting else "gauge")

    def _enable(self) -> None:
        self.predict.setEnabled(self._context.has_document and not self._profiling.running)


def _total(row: TrainingMemoryRow) -> int:
    return row.weights + row.gradients + row.optimizer + row.activations
