"""What a run did, as a tree: one row a step, and under it the layers that the engine ran together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.engine.protocol import RunStep
from app.ui.analysis.layer_infos import LayerInfo
from app.ui.widgets import theme
from designer.texts import tr
from designer.units import binary, number

__all__ = ["HEAT", "LAYER", "LayerInfo", "OverviewModel"]

Index = QModelIndex | QPersistentModelIndex
LAYER, TIME, MEMORY, STATE, SHAPE, TYPE, ENGINE = range(7)
COUNT = 7
HEAT = Qt.ItemDataRole.UserRole  # 0..1: the share of the largest of the column; None: no heat there
NOT_RUN = "-"  # the engine of layers that only hand on what they get


@dataclass(slots=True)
class _StepRow:
    step: RunStep
    left: tuple[str, ...]  # the layers that were not deleted since, in running order
    layers: list[str]  # the same in display order
    took: float = 0.0  # ms when it ran last: kept results keep the time that they cost
    work: float = 0.0  # of all layers of the step together: ms in a profile if it has all of them, else modelled
    profiled: bool = False


class OverviewModel(QAbstractItemModel):
    """Steps and layers. A step of one layer is that layer's row; a larger one has its layers as children."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[_StepRow] = []
        self._running: list[tuple[str, ...]] = []  # the steps in running order
        self._gone: frozenset[str] = frozenset()
        self._infos: dict[str, LayerInfo] = {}
        self._faults: dict[str, str] = {}
        self._marked = ""
        self._largest = (0.0, 0.0)  # ms and bytes of the hottest layer

    def show(self, steps: tuple[RunStep, ...], infos: dict[str, LayerInfo], gone: frozenset[str] = frozenset()) -> None:
        """Another run. With the same steps as before only the values change: order, selection and expansion stay.

        `gone` are layers that were deleted since the run. They have no rows, and keep their shares of the times of steps.
        """
        steps = tuple(step for step in steps if not gone.issuperset(step.layers))
        running = [step.layers for step in steps]
        if running == self._running and gone == self._gone:
            if infos is not self._infos:
                self._infos = infos
                self._measure()
                for at in range(len(self._rows)):
                    self._tell_row(at)
            place = {row.step.layers: number for number, row in enumerate(self._rows)}
            for step in steps:
                at = place[step.layers]
                row, before = self._rows[at], self._rows[at].step
                if step != before:
                    row.step = step
                    row.took = row.took if step.cached else step.milliseconds
                    self._tell_row(at)
            largest = self._largest
            self._measure()
            if self._largest != largest:
                self._tell_heat()
            return
        self.beginResetModel()
        took = {row.step.layers: row.took for row in self._rows}
        self._running, self._infos, self._gone = running, infos, gone
        self._rows = []
        for step in steps:
            left = tuple(name for name in step.layers if name not in gone)
            cost = took.get(step.layers, 0.0) if step.cached else step.milliseconds
            self._rows.append(_StepRow(step, left, list(left), cost))
        self._measure()
        self.endResetModel()

    def show_faults(self, faults: Mapping[str, str]) -> None:
        """Layers whose values are NaN or infinite, with what is known of it."""
        before, self._faults = self._faults, dict(faults)
        for name in before.keys() ^ faults.keys() | {n for n in faults if before.get(n) != faults[n]}:
            self._tell_layer(name)

    def mark(self, layer: str) -> None:
        """Mark the layer that is being inspected."""
        before, self._marked = self._marked, layer.partition(":")[0]
        for name in {before, self._marked} - {""}:
            self._tell_layer(name)

    def _tell_layer(self, name: str) -> None:
        at = self.find(name)
        if at.isValid():
            self.dataChanged.emit(at, at.siblingAtColumn(COUNT - 1), [])

    def _tell_row(self, row: int) -> None:
        """Only what differs is painted again: under a moving slider that is one step."""
        at = self.index(row, 0)
        self.dataChanged.emit(at, at.siblingAtColumn(COUNT - 1), [])
        inside = self.rowCount(at)
        if inside:
            last = self.index(inside - 1, COUNT - 1, at)
            self.dataChanged.emit(self.index(0, 0, at), last, [])

    def _tell_heat(self) -> None:
        """Every heat is a share of the largest amount."""
        groups = (self.index(at, 0) for at, row in enumerate(self._rows) if len(row.layers) > 1)
        for parent in (QModelIndex(), *groups):
            last = self.index(self.rowCount(parent) - 1, MEMORY, parent)
            self.dataChanged.emit(self.index(0, TIME, parent), last, [HEAT])

    # --- values ------------------------------------------------------------------------------------------------

    @property
    def largest(self) -> tuple[float, float]:
        """Milliseconds and bytes of the hottest layer."""
        return self._largest

    def _measure(self) -> None:
        for row in self._rows:
            infos = [self._info(name) for name in row.step.layers]
            row.profiled = len(infos) > 1 and all(i.measured is not None for i in infos if i.weight)
            row.work = sum((i.measured or 0.0) if row.profiled else i.weight for i in infos)
        pairs = [(self._time(row, name), self._memory(name)) for row in self._rows for name in row.layers]
        self._largest = (max((t for t, _ in pairs), default=0.0), max((m for _, m in pairs), default=0.0))

    def _time(self, row: _StepRow, layer: str) -> float:
        """Milliseconds of a layer; inside of a group its share by a profile or, without one, by the declared costs."""
        if len(row.step.layers) == 1:
            return row.took
        info = self._info(layer)
        return row.took * ((info.measured or 0.0) if row.profiled else info.weight) / (row.work or 1.0)

    def _row_time(self, row: _StepRow) -> float:
        """Milliseconds of a step, without the shares of layers that are gone."""
        whole = len(row.left) == len(row.step.layers)
        return row.took if whole else sum(self._time(row, name) for name in row.left)

    @property
    def profiled(self) -> bool:
        """Whether times of layers inside of a group follow a profile."""
        return any(row.profiled for row in self._rows)

    def _memory(self, layer: str) -> float:
        return float(self._info(layer).memory or 0)

    def _info(self, layer: str) -> LayerInfo:
        return self._infos.get(layer, LayerInfo("", "", ""))

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """By a column, layers inside of their groups; by none (-1) as they ran."""
        self.layoutAboutToBeChanged.emit()
        kept = [(index, self.layer_at(index), bool(index.internalId())) for index in self.persistentIndexList()]
        down = order is Qt.SortOrder.DescendingOrder
        ran = {layers: number for number, layers in enumerate(self._running)}
        self._rows.sort(key=lambda row: ran[row.step.layers])
        for row in self._rows:
            row.layers = list(row.left)
        if column >= 0:
            for row in self._rows:
                row.layers.sort(key=lambda name, row=row: self._key(row, name, column), reverse=down)  # type: ignore[misc]
            self._rows.sort(key=lambda row: self._row_key(row, column), reverse=down)
        for index, layer, inside in kept:
            found = self.find(layer)
            found = found if inside or not found.internalId() else found.parent()
            self.changePersistentIndex(index, found.siblingAtColumn(index.column()))
        self.layoutChanged.emit()

    def _key(self, row: _StepRow, name: str, column: int) -> Any:
        if column == TIME:
            return self._time(row, name)
        return self._memory(name) if column == MEMORY else self._layer_text(row, name, column)

    def _row_key(self, row: _StepRow, column: int) -> Any:
        if column == TIME:
            return self._row_time(row)
        if column == MEMORY:
            return sum(self._memory(name) for name in row.layers)
        return self._row_text(row, column)

    # --- places ------------------------------------------------------------------------------------------------

    def layer_at(self, index: Index) -> str:
        """The layer of a row; for a group its last layer."""
        if not index.isValid():
            return ""
        group = int(index.internalId())
        return self._rows[group - 1].layers[index.row()] if group else self._rows[index.row()].left[-1]

    def find(self, layer: str) -> QModelIndex:
        for at, row in enumerate(self._rows):
            if layer in row.layers:
                if len(row.layers) == 1:
                    return self.index(at, LAYER)
                return self.index(row.layers.index(layer), LAYER, self.index(at, 0))
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
            return len(self._rows)
        if parent.internalId() or parent.column() > 0:
            return 0
        layers = self._rows[parent.row()].layers
        return len(layers) if len(layers) > 1 else 0

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return COUNT

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return headers()[section]
        if role == Qt.ItemDataRole.ToolTipRole:
            return {
                TIME: tr(
                    "Measured time of a step, shared among its layers as in the profile that is displayed; "
                    "without a profile (italic) by their operations and bytes"
                ),
                MEMORY: tr("Bytes of what the layer makes, by its shapes"),
                STATE: tr("Whether it ran, its results were kept from before, or they are too large to be kept"),
            }.get(section)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        column, group = index.column(), int(index.internalId())
        row = self._rows[group - 1] if group else self._rows[index.row()]
        layer = self.layer_at(index)
        single = bool(group) or len(row.layers) == 1
        if role == Qt.ItemDataRole.DisplayRole:
            return self._layer_text(row, layer, column) if group else self._row_text(row, column)
        if role == HEAT:
            return self._heat(row, layer, column) if single else None
        if role == Qt.ItemDataRole.TextAlignmentRole and column in (TIME, MEMORY):
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.FontRole and column in (SHAPE, TIME, MEMORY):
            font = theme.mono_font()
            font.setItalic(self._is_modelled(row, column, bool(group)))
            return font
        if role == Qt.ItemDataRole.ForegroundRole:
            if single and layer in self._faults:
                return theme.color("error")
            return theme.color("muted") if row.step.cached or (group and column in (ENGINE, STATE)) else None
        if role == Qt.ItemDataRole.DecorationRole and column == LAYER:
            return self._icon(layer) if single else None
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._tip(row, layer, single)
        return None

    def _icon(self, layer: str) -> Any:
        if layer in self._faults:
            return theme.icon("alert-octagon", "error")
        if layer == self._marked:
            return theme.icon("eye-outline", "accent")
        category = self._info(layer).category
        return theme.category_icon(category) if category is not None else None

    def _tip(self, row: _StepRow, layer: str, single: bool) -> str:
        parts = []
        if single and layer in self._faults:
            parts.append(self._faults[layer])
        if len(row.layers) > 1:
            parts.append(tr("{count} layers run as one by {engine}", count=len(row.layers), engine=row.step.engine))
        if row.step.cached:
            parts.append(tr("not run again: nothing that it depends on has changed"))
        if row.step.dropped:
            parts.append(tr("its results are above the memory for kept ones: the next run computes it again"))
        return "\n".join([*parts, tr("double-click {layer} to see its channels", layer=layer)])

    def _heat(self, row: _StepRow, layer: str, column: int) -> float | None:
        if row.step.engine == NOT_RUN or column not in (TIME, MEMORY):
            return None
        value = self._time(row, layer) if column == TIME else self._memory(layer)
        largest = self._largest[0 if column == TIME else 1]
        return value / largest if largest > 0 and value > 0 else None

    def _is_modelled(self, row: _StepRow, column: int, inside: bool) -> bool:
        """Whether an amount is computed, not measured: all memory, and shares of a step's time without a profile."""
        share = inside or len(row.left) < len(row.step.layers)
        return column == MEMORY or (column == TIME and share and not row.profiled)

    def _layer_text(self, row: _StepRow, layer: str, column: int) -> str:
        """Of one layer; inside of a group its time is modelled."""
        info = self._info(layer)
        if column == TIME and len(row.step.layers) > 1:
            return _two(self._time(row, layer)) if row.took else "-"
        if column == MEMORY:
            return binary(info.memory) if info.memory else "-"
        if column == STATE and layer in self._faults:
            return tr("not finite")
        return {LAYER: layer, TYPE: info.title, SHAPE: info.shape}.get(column, "")

    def _row_text(self, row: _StepRow, column: int) -> str:
        step = row.step
        if column == TIME and len(row.left) == 1 < len(step.layers):
            return self._layer_text(row, row.left[0], column)
        if column == TIME:
            return _milliseconds(self._row_time(row)) if row.took and step.engine != NOT_RUN else "-"
        if column == STATE and row.left[-1] not in self._faults:
            return "" if step.engine == NOT_RUN else _state(step)
        if column == ENGINE:
            return step.engine
        if len(row.left) == 1:
            return self._layer_text(row, row.left[0], column)
        if column == STATE:
            return _state(step)
        if column == MEMORY:
            total = sum(self._memory(name) for name in row.left)
            return binary(total) if total else "-"
        many = f"{row.left[0]} … {row.left[-1]}"
        count = tr("{count} layers together", count=len(row.left))
        return {LAYER: many, TYPE: count, SHAPE: self._info(row.left[-1]).shape}.get(column, "")


def _state(step: RunStep) -> str:
    if step.dropped:
        return tr("not kept")
    return tr("kept") if step.cached else tr("run")


def _milliseconds(value: float) -> str:
    return number(value) if value < 9999.5 else f"{value:,.0f}"


def _two(value: float) -> str:
    """A modelled number has no more than two digits that mean something."""
    return f"{value:.0f}" if value >= 9.95 else f"{value:.2g}" if value >= 0.095 else f"{value:.2f}"


def headers() -> tuple[str, ...]:
    return (tr("Layer"), "ms", tr("Memory"), tr("Run"), tr("Output"), tr("Type"), tr("Engine"))
