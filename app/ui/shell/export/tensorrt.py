"""File > Export > Export TensorRT Engine: sizes, sparse weights, and the layers of the engine that was built."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QHeaderView,
    QLineEdit,
    QSpinBox,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from app.ui.engine.context import Context
from app.ui.shell.export.command import CommandExportDialog
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.types import Size2D
from designer.runtime.engines import trt
from designer.texts import tr, trn
from exporters.tensorrt import SUFFIX, EngineFile, read_engine_file

_REFUSED = re.compile(r"\[not-in-tensorrt\] layer '([^']+)'")  # in the errors of the command


class TensorRtExportDialog(CommandExportDialog):
    """Builds an engine and lists its layers; a click selects the layers of the network that one computes."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        name = f"{context.root.graph.name}{SUFFIX}"
        super().__init__(context, "export_tensorrt", tr("Export TensorRT Engine"), name, parent, action=tr("&Build"))
        self.smallest = self._size(tr("Size of the document"))
        self.largest = self._size(tr("Size of the document"))
        self.batch = QSpinBox()
        self.batch.setRange(1, 1024)
        self.sparse = QCheckBox(tr("Allow kernels for weights with &2:4 sparsity"))
        self.sparse.setObjectName("export_tensorrt.sparse")
        self.add_target(tr("Engine &file"))
        self.add_weights()
        self.add_variant()
        self.add_model()
        self.add_row("smallest", tr("S&mallest image"), self.smallest)
        self.add_row("largest", tr("&Largest image"), self.largest)
        self.add_row("batch", tr("Largest &batch"), self.batch)
        self.form.addRow("", self.sparse)
        self.table = QTreeWidget()
        self.table.setObjectName("export_tensorrt.layers")
        self.table.setAccessibleName(tr("Layers of the engine"))
        self.table.setHeaderLabels([tr("Layers of the network"), tr("Precision"), tr("Kind"), tr("Nodes")])
        self.table.setRootIsDecorated(False)
        self.table.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.itemSelectionChanged.connect(self._select_layers)
        self.table.setMinimumSize(560, 220)
        self.form.addRow(self.table)
        self.form.setRowVisible(self.table, False)
        self._engine: EngineFile | None = None
        self.check()

    def _size(self, placeholder: str) -> QLineEdit:
        line = QLineEdit()
        line.setPlaceholderText(tr("{size}, or width x height such as 1920x1080", size=placeholder))
        line.textChanged.connect(self.check)
        return line

    def browse(self) -> None:
        path, _ = QFileDialog.getSaveFileName(self, tr("Engine File"), self.target.text(), f"TensorRT (*{SUFFIX})")
        if path:
            self.target.setText(path)

    def problem(self) -> str:
        missing = trt.unavailable()
        if missing is not None:
            return tr("{reason}. What to do: {remedy}.", reason=missing.message, remedy=missing.remedy)
        if self.path.suffix != SUFFIX:
            return tr("The file name must end with {suffix}.", suffix=SUFFIX)
        for line in (self.smallest, self.largest):
            try:
                if line.text().strip():
                    Size2D.parse(line.text())
            except ValueError as error:
                return str(error)
        return super().problem()

    def command(self, document: Path, path: Path) -> Sequence[str]:
        words = ["export", trt.NAME, str(document), "--output", str(path), "--max-batch", str(self.batch.value())]
        for option, line in (("--min-size", self.smallest), ("--max-size", self.largest)):
            words += [option, line.text().strip()] if line.text().strip() else []
        return [*words, "--sparse"] if self.sparse.isChecked() else words

    def succeeded(self, printed: str) -> None:
        try:
            self._engine = read_engine_file(self._written_to)
        except DiagnosticError as error:
            self.failed(error.diagnostics)
            return
        layers = self._engine.layers
        self.table.clear()
        for layer in layers:
            inside = ", ".join(layer.layers) or tr("(conversion)")
            self.table.addTopLevelItem(QTreeWidgetItem([inside, layer.precision, layer.kind, layer.operations]))
        self.form.setRowVisible(self.table, True)
        count = trn("{count} layer", "{count} layers", len(layers))
        self.written(tr("Engine with {count} written to {target}", count=count, target=self._written_to))

    def failed(self, found: str | Sequence[Diagnostic]) -> None:
        """Also select the layers that TensorRT refuses."""
        super().failed(found)
        if isinstance(found, str):
            self._select(_REFUSED.findall(found))

    def _select_layers(self) -> None:
        if self._engine is None:
            return
        rows = [self.table.indexOfTopLevelItem(item) for item in self.table.selectedItems()]
        self._select(name for row in rows for name in self._engine.layers[row].layers)

    def _select(self, names: Iterable[str]) -> None:
        if self.context.has_document:
            shown = (self.context.in_sight(name) for name in names)
            self.context.select(tuple(dict.fromkeys(name for name in shown if name)))
