"""Network Overview: what the inference ran, in its order, with times. A double-click opens the Channel Inspector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from PySide6.QtCore import QModelIndex, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHeaderView, QLabel, QMenu, QTreeView, QVBoxLayout, QWidget

from app.engine.protocol import RunStep
from app.ui.analysis.faults import Faults
from app.ui.analysis.heat import HeatDelegate, HeatLegend
from app.ui.analysis.layer_infos import LayerInfos
from app.ui.analysis.overview_model import LAYER, MEMORY, STATE, TIME, OverviewModel
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.profiling import profiling_of
from app.ui.engine.result import AnalysisResult
from app.ui.widgets.empty_state import EmptyStack, EmptyState
from app.ui.widgets.notice import Notice
from designer.graph.edits import ChangeSet
from designer.texts import tr
from designer.units import binary, duration

DECORATION = 42  # indentation and icon of a name
NAMED = 13  # characters by which layers can be told apart
FRAME = 22  # margins and frame around the columns
CALM = 250  # ms between two updates while an input plays


class NetworkOverviewPanel(QWidget):
    """A tree of steps; the layer that is being inspected is marked, and the selection follows the canvas."""

    panel_id = "network_overview"
    title = "Network Overview"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("network_overview")
        self.setAccessibleName(tr("Network Overview"))
        self._context = context
        self._analysis = analysis_of(context)
        self._profiling = profiling_of(context)
        text = tr("Launch Analysis to see the layers that ran, with their times.")
        self._empty = EmptyState("network_overview", "format-list-bulleted", text, tr("Launch Analysis"))
        self._empty.triggered.connect(self._analysis.launch)
        self.model = OverviewModel(self)
        self._make_tree()
        self._lay_out()
        self._connect(context)

    def _make_tree(self) -> None:
        self.tree = _Tree()
        self.tree.setObjectName("network_overview.steps")
        self.tree.setAccessibleName(tr("Steps of the inference"))
        self.tree.setModel(self.model)
        self.tree.setUniformRowHeights(True)
        self.tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # names often differ at their ends
        self.tree.setIndentation(8)
        self.tree.setAlternatingRowColors(True)
        self.tree.setExpandsOnDoubleClick(False)
        self.tree.setEditTriggers(QTreeView.EditTrigger.NoEditTriggers)
        self.tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.tree.customContextMenuRequested.connect(self._menu)
        self.tree.doubleClicked.connect(self._inspect)
        self.tree.entered_key.connect(self._inspect)
        self.tree.selectionModel().currentRowChanged.connect(self._select)
        header = self.tree.header()
        header.setStretchLastSection(False)
        header.setSectionsClickable(True)
        header.setSortIndicatorClearable(True)  # the third click: as they ran
        header.setSortIndicator(-1, Qt.SortOrder.DescendingOrder)
        self.tree.setSortingEnabled(True)
        heat = HeatDelegate(self.tree)
        for section in (TIME, MEMORY):
            self.tree.setItemDelegateForColumn(section, heat)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)

    def _lay_out(self) -> None:
        self._summary = QLabel()
        self._summary.setObjectName("network_overview.summary")
        self._summary.setAccessibleName(tr("Summary of the run"))
        self._summary.setWordWrap(True)
        self.legend = HeatLegend("network_overview.legend")
        self.faults = Faults(self._analysis, self)
        self.faults.changed.connect(self._show_faults)
        self.notice = Notice("network_overview.notice", tr("Values that are NaN or infinite"))
        self.notice.add_button("go", tr("Show the layer"), tr("Show it on the canvas"), self._go_to_fault)
        self.notice.add_button("look", tr("Inspect"), tr("See its channels"), self._inspect_fault)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.notice)
        column.addWidget(self.tree, 1)
        column.addWidget(self.legend)
        column.addWidget(self._summary)
        self._stack = EmptyStack(self, self._empty, page)

    def _connect(self, context: Context) -> None:
        self.infos = LayerInfos(self)
        self.infos.changed.connect(self._show)
        self.model.modelReset.connect(self._on_other_steps)
        self._sized = self._fitted = False
        self._names: dict[str, str] = {}  # names that layers got since the last result, by those that they ran with
        self._deleted = False  # since the last result
        self._revision = 0
        self._document: Document | None = None
        self._selecting = False
        self._calm = QTimer(self, singleShot=True, interval=CALM, timeout=self._show)
        self._analysis.result_changed.connect(self._on_result)
        self._profiling.current_changed.connect(self._show)
        context.root_changed.connect(self._on_document)
        context.selection_changed.connect(self._follow_selection)
        context.inspect_requested.connect(self.model.mark)
        context.inspected.connect(self.model.mark)
        self.model.mark(context.inspected_layer)
        if context.has_document:
            self._on_document(context.root)

    def _on_document(self, document: Document) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_change)
            self._document.states_changed.disconnect(self._outdate)
        self._document = document
        document.changed.connect(self._on_change)
        document.states_changed.connect(self._outdate)
        self._revision += 1
        self._show()

    def _on_change(self, change: ChangeSet) -> None:
        if change.added or change.removed or change.rewired:
            self._outdate()
        self._follow_names(change)
        deleted = change.removed - change.renamed.keys()
        if self._deleted or deleted or (change.templates and self._gone()):  # perhaps nothing runs again without them
            self._deleted = True
            self._show()

    def _follow_names(self, change: ChangeSet) -> None:
        result = self._analysis.result
        if result is None or not (
            change.renamed or change.renamed_inside or change.renamed_templates or change.removed
        ):
            return
        for ran in {**self.infos.infos, **dict.fromkeys(name for step in result.steps for name in step.layers)}:
            now = self._names.get(ran, ran)
            self._names[ran] = self._context.path_after(now, change) or now  # a layer that is gone may come back

    def _outdate(self) -> None:
        """Types or shapes may be others; a slider's values leave them as they are."""
        self._revision += 1

    def _on_result(self) -> None:
        """Less often while a video plays: nobody reads values at that rate, and drawing them costs a frame."""
        self._names.clear()
        self._deleted = False
        if not self._analysis.playback.playing:
            self._show()
        elif not self._calm.isActive():
            self._calm.start()

    def _show(self) -> None:
        self._calm.stop()
        result = self._analysis.result
        if result is not None and result.coarse and self._sized:
            return  # times at a reduced size are not those of the network
        steps = self._steps_of(result) if result is not None else ()
        if result is None or self._document is None or not steps:
            self._stack.show_content(False)
            self.model.show((), {})
            return
        entry = self._profiling.current
        if self._deleted:  # as they ran: without a layer, the shapes and costs of those that follow can be unknown
            infos = {self._names.get(ran, ran): info for ran, info in self.infos.infos.items()}
        else:
            shapes, measured = self._analysis.inputs.shapes, entry.run if entry is not None else None
            self.infos.ask(self._document, shapes, self._revision, measured)
            infos = self.infos.infos
        run = {name for step in steps for name in step.layers}
        gone = self._gone() if self._deleted else frozenset[str]()
        first = tuple(RunStep((n,), "-", 0.0, False) for n in self._analysis.inputs.layers() if n not in run)
        last = tuple(RunStep((n,), "-", 0.0, False) for n in self._analysis.output_layers() if n not in run)
        before = self.model.rowCount()
        self.model.show((*first, *steps, *last), infos, gone)
        if before == 0 or not self._sized:
            self.tree.expandAll()
            self._fitted = False
        if not self._fitted:  # shapes, types and icons are known later
            self._sized, self._fitted = True, not run.isdisjoint(infos)
            for section in range(self.model.columnCount()):
                self.tree.resizeColumnToContents(section)
            digits = self.fontMetrics().horizontalAdvance("00000000")  # later values may be longer than the first
            for section in (TIME, MEMORY, STATE):
                self.tree.setColumnWidth(section, max(digits, self.tree.columnWidth(section)))
            self._fit_names()
        if before == 0:
            self._follow_selection(self._context.selection)
        time, memory = self.model.largest
        profiled = self.model.profiled
        self.legend.show_ends((duration(time), binary(memory)))
        note = f"  ·  {result.note}" if result.note else ""
        if profiled and entry is not None:
            note += "  ·  " + tr("times of layers by profile {title}", title=entry.title)
        self._summary.setText(f"{result.summary()}{note}")
        self._stack.show_content(True)

    def _steps_of(self, result: AnalysisResult) -> tuple[RunStep, ...]:
        """With the names of now. Empty if all layers were deleted."""
        if not self._deleted:
            return result.steps
        if self._gone().issuperset(self._present(result)):
            return ()
        return tuple(
            msgspec.structs.replace(step, layers=tuple(self._names.get(name, name) for name in step.layers))
            for step in result.steps
        )

    def _present(self, result: AnalysisResult) -> Iterator[str]:
        """The layers that ran, with the names of now."""
        return (self._names.get(name, name) for step in result.steps for name in step.layers)

    def _gone(self) -> frozenset[str]:
        """The layers that ran and are not in the document any more, in the network or in a template."""
        result = self._analysis.result
        names = self._present(result) if result is not None else iter(())
        return frozenset(name for name in names if self._context.find(name) is None)

    def _on_other_steps(self) -> None:
        """They come as they ran; the header may say otherwise."""
        header = self.tree.header()
        self.model.sort(header.sortIndicatorSection(), header.sortIndicatorOrder())
        self.tree.expandAll()

    def _show_faults(self) -> None:
        faults = self.faults
        self.model.show_faults(faults.layers)
        self.tree.resizeColumnToContents(STATE)
        self.notice.say(faults.text, "error", ("go", "look") if faults.culprit else ())

    def _go_to_fault(self) -> None:
        self._context.reveal(self.faults.culprit)

    def _inspect_fault(self) -> None:
        self._context.inspect_requested.emit(self.faults.culprit)

    def _fit_names(self) -> None:
        """In a narrow dock names are cut before times are, and for the memory if `NAMED` characters of them are left.

        Otherwise the memory is out of view: a number without its unit would mislead.
        """
        natural = self.tree.sizeHintForColumn(LAYER)
        bar, character = self.tree.verticalScrollBar().sizeHint().width(), self.fontMetrics().averageCharWidth()
        room = self.width() - FRAME - bar - self.tree.columnWidth(TIME)  # the bar can come later
        without_memory = room - self.tree.columnWidth(MEMORY)
        if without_memory >= NAMED * character + DECORATION:
            room = without_memory
        self.tree.setColumnWidth(LAYER, max(12 * character, min(room, natural)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._sized:
            self._fit_names()

    def _inspect(self, index: QModelIndex) -> None:
        layer = self.model.layer_at(index)
        if layer:
            self._context.inspect_requested.emit(layer)

    def _select(self, index: QModelIndex) -> None:
        layer = self.model.layer_at(index)
        group = index.isValid() and self.model.rowCount(index.siblingAtColumn(0)) > 0
        shown = self._context.in_sight(layer) if layer else ""
        if shown and not group and not self._selecting:
            self._selecting = True
            self._context.select((shown,))
            self._selecting = False

    def _follow_selection(self, names: Any) -> None:
        if self._selecting or len(names) != 1:
            return
        at = self.model.find(self._context.path_of(names[0]))
        if at.isValid():
            self._selecting = True
            self.tree.setCurrentIndex(at.siblingAtColumn(LAYER))
            self._selecting = False

    def _menu(self, place: QPoint) -> None:
        index = self.tree.indexAt(place)
        layer = self.model.layer_at(index)
        if not layer:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("Inspect channels of {layer}", layer=layer), lambda: self._inspect(index))
        menu.addAction(tr("Show on the canvas"), lambda: self._context.reveal(layer))
        menu.popup(self.tree.viewport().mapToGlobal(place))


class _Tree(QTreeView):
    entered_key = Signal(QModelIndex)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self.entered_key.emit(self.currentIndex())
        else:
            super().keyPressEvent(event)
