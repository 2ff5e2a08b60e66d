"""A sortable table with a frozen first column, and with groups if the model is a tree."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import (
    QAbstractItemModel,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFontMetrics, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QApplication,
    QHeaderView,
    QSplitter,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QWidget,
)

from designer.texts import tr

FITTED_ROWS = 30  # rows that decide the widths of columns: measuring all rows of a large network takes seconds


class RowDelegate(QStyledItemDelegate):
    """Gives all rows the same height, whatever the font of a cell, so that the rows of both views align."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(super().sizeHint(option, index).width(), QFontMetrics(QApplication.font()).height() + 8)


class FrozenTree(QSplitter):
    """Two views of one model in a splitter: the first column on the left stays, the other columns scroll.

    Both share the selection, the order, the expanded groups and the vertical position.
    """

    menu_requested = Signal(QPoint)  # global position
    activated = Signal(QModelIndex)  # double click or Enter

    def __init__(self, name: str, title: str, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setObjectName(f"{name}.splitter")
        self.setChildrenCollapsible(False)
        self.setHandleWidth(3)
        self.frozen = self._make(f"{name}.frozen", tr("{title}, first column", title=title))
        self.table = self._make(name, title)
        self.addWidget(self.frozen)
        self.addWidget(self.table)
        self.setStretchFactor(1, 1)
        self.frozen.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.frozen.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)  # as tall as that of the table
        self.table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.set_grouped(False)
        self.table.setRootIsDecorated(False)
        ours, theirs = self.frozen.verticalScrollBar(), self.table.verticalScrollBar()
        ours.valueChanged.connect(theirs.setValue)
        theirs.valueChanged.connect(ours.setValue)
        self.frozen.expanded.connect(self.table.expand)
        self.frozen.collapsed.connect(self.table.collapse)
        self.table.expanded.connect(self.frozen.expand)
        self.table.collapsed.connect(self.frozen.collapse)
        self.frozen.header().sortIndicatorChanged.connect(partial(self._show_order, self.table.header()))
        self.table.header().sortIndicatorChanged.connect(partial(self._show_order, self.frozen.header()))

    def _make(self, name: str, title: str) -> QTreeView:
        view = QTreeView()
        view.setObjectName(name)
        view.setAccessibleName(title)
        view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        view.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setAlternatingRowColors(True)
        view.setUniformRowHeights(True)
        view.setAllColumnsShowFocus(True)
        view.setSortingEnabled(True)
        view.header().setStretchLastSection(False)
        view.header().setResizeContentsPrecision(FITTED_ROWS)
        view.header().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(
            lambda place, v=view: self.menu_requested.emit(v.viewport().mapToGlobal(place))
        )
        view.activated.connect(self.activated)
        view.setItemDelegate(RowDelegate(view))
        return view

    @property
    def views(self) -> tuple[QTreeView, QTreeView]:
        return self.frozen, self.table

    def set_model(self, model: QAbstractItemModel) -> None:
        """Show a model. Its header data must answer `InitialSortOrderRole` where the first click sorts descending."""
        for view in self.views:
            view.setModel(model)
        self.table.setSelectionModel(self.frozen.selectionModel())
        for column in range(1, model.columnCount()):
            self.frozen.setColumnHidden(column, True)
        self.frozen.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.table.setColumnHidden(0, True)
        height = self.table.header().sizeHint().height()
        for view in self.views:
            view.header().setFixedHeight(height)

    def selection(self) -> QItemSelectionModel:
        return self.frozen.selectionModel()

    def selected_rows(self) -> list[QModelIndex]:
        """The indexes of the selected rows in the first column, in selection order."""
        return self.selection().selectedRows()

    def set_grouped(self, grouped: bool) -> None:
        """Show the arrows that expand groups, or not."""
        self.frozen.setRootIsDecorated(grouped)

    def sort_by(self, column: int, order: Qt.SortOrder) -> None:
        (self.frozen if column == 0 else self.table).sortByColumn(column, order)

    def set_delegate(self, column: int, delegate: QAbstractItemDelegate) -> None:
        (self.frozen if column == 0 else self.table).setItemDelegateForColumn(column, delegate)

    def show_row(self, index: QModelIndex) -> None:
        """Scroll to a row without moving horizontally."""
        across = self.table.horizontalScrollBar().value()
        self.frozen.scrollTo(index)
        self.table.horizontalScrollBar().setValue(across)

    def fit_columns(self, widest: int) -> None:
        """Resize the columns to their contents, up to `widest` pixels."""
        for column in range(1, self.table.header().count()):
            self.table.resizeColumnToContents(column)
            self.table.setColumnWidth(column, min(self.table.columnWidth(column), widest))
        first = min(self.frozen.sizeHintForColumn(0) + 24, widest)
        self.setSizes([first, max(1, self.width() - first)])

    def on_copy(self, copy: Callable[[], object]) -> None:
        """Call `copy` on Ctrl+C in either view."""
        for view in self.views:
            shortcut = QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), view)
            shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(copy)

    def _show_order(self, header: QHeaderView, column: int, order: Qt.SortOrder) -> None:
        """Update the arrow of the other header; the shared model is sorted already."""
        with QSignalBlocker(header):
            header.setSortIndicator(column, order)
        header.viewport().update()
