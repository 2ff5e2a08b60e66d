"""What a run did, as a tree: one row a step, and under it the layers that the engine ran together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.ui import theme
from app.ui.analysis.render import number
from app.ui.analysis.result import RunStep
from designer.operators.api import Category

Index = QModelIndex | QPersistentModelIndex
HEADERS = ("Layer", "ms", "Run", "Output", "Type", "Engine")
LAYER, TIME, STATE, SHAPE, TYPE, ENGINE = range(6)


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """What the document and the inference know of a layer."""

    type: str
    title: str
    shape: str
    category: Category | None = None


class OverviewModel(QAbstractItemModel):
    """Steps and layers. A step of one layer is that layer's row; a larger one has its layers as children."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._steps: tuple[RunStep, ...] = ()
        self._infos: dict[str, LayerInfo] = {}
        self._marked = ""

    def show(self, steps: tuple[RunStep, ...], infos: dict[str, LayerInfo]) -> None:
        """Another run. With the same steps as before only the figures change: selection and expansion stay."""
        same = infos == self._infos and [s.layers for s in steps] == [s.layers for s in self._steps]
        if same:
            before, self._steps = self._steps, steps
            for row, step in enumerate(steps):
                if step != before[row]:
                    self._tell_row(row, step.cached != before[row].cached)
            return
        self.beginResetModel()
        self._steps, self._infos = steps, infos
        self.endResetModel()

    def _tell_row(self, row: int, greyed: bool) -> None:
        """Only what differs is painted again: under a moving slider that is one row."""
        at = self.index(row, 0)
        self.dataChanged.emit(at, at.siblingAtColumn(len(HEADERS) - 1), [])
        inside = self.rowCount(at)
        if greyed and inside:
            last = self.index(inside - 1, len(HEADERS) - 1, at)
            self.dataChanged.emit(self.index(0, 0, at), last, [])

    def mark(self, layer: str) -> None:
        """Mark the layer that is being inspected."""
        before, self._marked = self._marked, layer
        for name in {before, layer} - {""}:
            at = self.find(name)
            if at.isValid():
                self.dataChanged.emit(at, at, [])

    def layer_at(self, index: Index) -> str:
        """The layer of a row; for a group its last layer."""
        if not index.isValid():
            return ""
        group = int(index.internalId())
        return self._steps[group - 1].layers[index.row()] if group else self._steps[index.row()].layers[-1]

    def find(self, layer: str) -> QModelIndex:
        for row, step in enumerate(self._steps):
            if layer in step.layers:
                if len(step.layers) == 1:
                    return self.index(row, LAYER)
                return self.index(step.layers.index(layer), LAYER, self.index(row, 0))
        return QModelIndex()

    # --- Qt's questions ----------------------------------------------------------------------------------------
    # The internal id of a layer inside a group is its group's row + 1; of a step it is 0.

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        if not self.hasIndex(row, column, parent):
            return QModelIndex()
        return self.createIndex(row, column, parent.row() + 1 if parent.isValid() else 0)

    def parent(self, index: Index = QModelIndex()) -> QModelIndex:  # type: ignore[override]  # noqa: B008
        group = int(index.internalId()) if index.isValid() else 0
        return self.createIndex(group - 1, 0, 0) if group else QModelIndex()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        if not parent.isValid():
            return len(self._steps)
        if parent.internalId() or parent.column() > 0:
            return 0
        layers = self._steps[parent.row()].layers
        return len(layers) if len(layers) > 1 else 0

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(HEADERS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return HEADERS[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        column, group = index.column(), int(index.internalId())
        step = self._steps[group - 1] if group else self._steps[index.row()]
        layer = self.layer_at(index)
        if role == Qt.ItemDataRole.DisplayRole:
            if group:
                return self._layer_text(layer, column)
            if len(step.layers) > 1:
                return self._group_text(step, column)
            return self._step_text(step, column)
        if role == Qt.ItemDataRole.TextAlignmentRole and column == TIME:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.FontRole and column in (SHAPE, TIME):
            return theme.mono_font()
        if role == Qt.ItemDataRole.ForegroundRole and (step.cached or (group and column in (ENGINE, STATE))):
            return theme.color("muted")
        if role == Qt.ItemDataRole.DecorationRole and column == LAYER:
            info = self._infos.get(layer)
            if layer == self._marked and (group or len(step.layers) == 1):
                return theme.icon("eye-outline", "accent")
            single = group or len(step.layers) == 1
            return theme.category_icon(info.category) if single and info is not None and info.category else None
        if role == Qt.ItemDataRole.ToolTipRole:
            many = f"{len(step.layers)} layers run as one by {step.engine}; " if len(step.layers) > 1 else ""
            return f"{many}double-click {layer} to see its channels"
        return None

    def _layer_text(self, layer: str, column: int) -> str:
        info = self._infos.get(layer, LayerInfo("", "", ""))
        return {LAYER: layer, TYPE: info.title, SHAPE: info.shape}.get(column, "")

    def _step_text(self, step: RunStep, column: int) -> str:
        if column in (ENGINE, TIME, STATE):
            return self._group_text(step, column)
        return self._layer_text(step.layers[0], column)

    def _group_text(self, step: RunStep, column: int) -> str:
        if column == TIME:
            return "-" if step.cached or step.engine == "-" else number(step.milliseconds)
        if column == STATE:
            return "" if step.engine == "-" else "kept" if step.cached else "run"
        many = f"{step.layers[0]} … {step.layers[-1]}"
        count = f"{len(step.layers)} layers together"
        shape = self._infos.get(step.layers[-1], LayerInfo("", "", "")).shape
        return {LAYER: many, TYPE: count, SHAPE: shape, ENGINE: step.engine}.get(column, "")
