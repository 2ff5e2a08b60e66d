"""All that a main window shows, as text by place, so that two windows can be compared."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from pyqtgraph import PlotDataItem, PlotWidget
from PySide6.QtCore import QAbstractItemModel, QCoreApplication, QEvent, QModelIndex, Qt, QTimer
from PySide6.QtGui import QAction, QBrush, QColor, QFont, QIcon, QImage
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QDoubleSpinBox,
    QGroupBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QPlainTextEdit,
    QProgressBar,
    QScrollBar,
    QSpinBox,
    QStatusBar,
    QTabBar,
    QTextEdit,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot
from window_kit import settle

from app.ui.canvas.minimap import Minimap
from app.ui.shell.panels import PANELS
from app.ui.shell.window import MainWindow
from app.ui.widgets.background import Background
from app.ui.widgets.empty_state import EmptyState

ROLE = Qt.ItemDataRole
WAIT = 120_000  # ms
PAUSE = 300  # ms that a panel waits at most after an edit
CANVAS = (800, 600)  # size of the canvas when it is compared as an image
EDGE, FEW = 48, 20  # levels and pixels by which images may differ
MOST_ROWS = 400  # of an item view that are read


class Picture:
    """An image that equals another one but for edges: links that overlap are painted in the order of the edits."""

    def __init__(self, image: QImage) -> None:
        image = image.convertToFormat(QImage.Format.Format_RGB32)
        pixels = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4)
        self.pixels = pixels[:, :, :3].astype(np.int16)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Picture) or other.pixels.shape != self.pixels.shape:
            return False
        return bool((np.abs(self.pixels - other.pixels).max(2) > EDGE).sum() <= FEW)

    __hash__ = None  # type: ignore[assignment]


Shown = dict[str, str | Picture]


def at_rest(qtbot: QtBot, window: MainWindow) -> None:
    """Wait until no thread, no question to the engine and no delayed update of the window goes on."""

    def quiet() -> bool:
        settle(window)
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        engine = window.context.engine
        waits = any(t.isActive() and t.isSingleShot() and t.interval() <= PAUSE for t in window.findChildren(QTimer))
        busy = waits or any(job.running for job in window.findChildren(Background))
        return not busy and not (engine is not None and engine.busy)

    qtbot.waitUntil(lambda: quiet() and quiet(), timeout=WAIT)  # what has just ended may begin the next work


def shown(qtbot: QtBot, window: MainWindow) -> Shown:
    """What the whole window shows, with every panel open in turn."""
    found: Shown = {}
    for spec in PANELS:
        window.docks.show(spec.id)
        at_rest(qtbot, window)
        found |= named(spec.id, of_tree(window.docks.panel(spec.id)))
    found |= named("tabs", of_tree(window.tabs.bar))
    found |= named("notices", of_tree(window.disk.bar))
    found |= named("canvas", _of_canvas(window))
    found |= named("status", of_tree(window.status))
    found |= named("menu", _of_menus(window))
    found |= named(
        "action", (line for name in window.actions_.declared for line in _action(name, window.actions_[name]))
    )
    found["title"] = f"{window.windowTitle()} {window.isWindowModified()}"
    return found


def differences(before: Shown, after: Shown, stays: Iterable[str] = ()) -> list[str]:
    """The places that show something else, each with both texts; places that begin with one of `stays` may."""
    allowed = tuple(stays)
    return [
        f"{place}: {before.get(place, 'nothing')!r} -> {after.get(place, 'nothing')!r}"
        for place in (before | after)
        if before.get(place) != after.get(place) and not place.startswith(allowed)
    ]


def named(room: str, found: Iterable[tuple[str, Any]]) -> Shown:
    """Facts by place; equal places are numbered."""
    count: Counter[str] = Counter()
    named = {}
    for place, value in found:
        count[place] += 1
        key = place if count[place] == 1 else f"{place}#{count[place]}"
        named[f"{room} {key}"] = value if isinstance(value, Picture) else str(value)
    return named


# --- widgets ---------------------------------------------------------------------------------------------------------


def of_tree(root: QWidget) -> Iterator[tuple[str, Any]]:
    """The facts of a widget and of all in it that can be seen."""
    if root.isHidden():
        return
    yield from _of(root)
    for widget in root.findChildren(QWidget):
        if widget.isVisibleTo(root) and not _inside_a_view(widget, root) and not _of_room(widget):
            yield from _of(widget)


def _of_room(widget: QWidget) -> bool:
    """The icon of an empty panel and the arrows of tabs depend on the size of the panel."""
    icon = isinstance(widget.parent(), EmptyState) and not widget.objectName()
    return icon or (isinstance(widget.parent(), QTabBar) and isinstance(widget, QToolButton))


def _inside_a_view(widget: QWidget, root: QWidget) -> bool:
    """Parts of item views, plots and menus are read with them."""
    parent = widget.parentWidget()
    while parent is not None and widget is not root:
        if isinstance(parent, QAbstractItemView | QHeaderView | PlotWidget | QMenu | QComboBox | QAbstractSpinBox):
            return True
        widget, parent = parent, parent.parentWidget()
    return False


def _of(widget: QWidget) -> Iterator[tuple[str, Any]]:
    name = f"{widget.objectName() or type(widget).__name__}"
    if isinstance(widget, QScrollBar) or name.startswith("qt_"):
        return
    yield f"{name} enabled", widget.isEnabled()
    if widget.toolTip():
        yield f"{name} tip", widget.toolTip()
    if widget.accessibleName():
        yield f"{name} accessible", widget.accessibleName()
    for kind, read in READERS:
        if isinstance(widget, kind):
            yield from ((f"{name} {what}", value) for what, value in read(widget))
            break
    else:
        if (
            type(widget).__module__.startswith("app.")
            and "paintEvent" in type(widget).__dict__
            and not isinstance(widget, Minimap)
        ):
            yield f"{name} painted", _picture(widget)


def _picture(widget: QWidget) -> str:
    """What a widget paints, in a size that depends on no splitter."""
    size = widget.size()
    widget.resize(240, 160)
    image = widget.grab().toImage()
    widget.resize(size)
    return _digest(image)


def _digest(image: QImage) -> str:
    if image.isNull():
        return ""
    data = image.convertToFormat(QImage.Format.Format_RGB32)
    return hashlib.sha256(bytes(data.constBits())).hexdigest()[:12]


def _icon(icon: QIcon) -> str:
    return _digest(icon.pixmap(16, 16).toImage()) if not icon.isNull() else ""


def _of_button(button: QAbstractButton) -> Iterator[tuple[str, Any]]:
    yield "text", button.text()
    yield "icon", _icon(button.icon())
    if button.isCheckable():
        yield "checked", button.isChecked()


def _of_combo(combo: QComboBox) -> Iterator[tuple[str, Any]]:
    model = combo.model()
    for row in range(combo.count()):
        enabled = bool(model.flags(model.index(row, 0)) & Qt.ItemFlag.ItemIsEnabled)
        yield f"item {row}", (combo.itemText(row), combo.itemData(row, ROLE.ToolTipRole), enabled)
    yield "current", combo.currentText()


def _of_spin(spin: QSpinBox | QDoubleSpinBox) -> Iterator[tuple[str, Any]]:
    yield "value", (spin.text(), spin.minimum(), spin.maximum())


def _of_label(label: QLabel) -> Iterator[tuple[str, Any]]:
    yield "text", label.text()
    if not label.pixmap().isNull():
        yield "image", _digest(label.pixmap().toImage())


def _of_tabs(bar: QTabBar) -> Iterator[tuple[str, Any]]:
    for tab in range(bar.count()):
        yield f"tab {tab}", (bar.tabText(tab), bar.tabToolTip(tab), bar.isTabEnabled(tab))
    yield "current", bar.currentIndex()


def _of_view(view: QAbstractItemView) -> Iterator[tuple[str, Any]]:
    model = view.model()
    if model is None:
        return
    header = view.horizontalHeader() if hasattr(view, "horizontalHeader") else getattr(view, "header", lambda: None)()
    count = 1 if isinstance(view, QListView) else model.columnCount(view.rootIndex())  # private in models of lists
    shown_columns = [c for c in range(count) if header is None or not header.isSectionHidden(c)]
    if header is not None:
        yield "columns", [model.headerData(column, Qt.Orientation.Horizontal) for column in shown_columns]
        if header.isSortIndicatorShown():
            yield "sorted", (header.sortIndicatorSection(), header.sortIndicatorOrder())
    for place, index in _walk(model, view.rootIndex(), ""):
        for column in shown_columns:
            cell = model.index(index.row(), column, index.parent())
            yield f"row {place} column {column}", _cell(cell)
    selection = view.selectionModel()
    yield "selected", sorted({(i.row(), i.parent().row()) for i in selection.selectedIndexes()}) if selection else ()


def _walk(model: QAbstractItemModel, parent: QModelIndex, path: str) -> Iterator[tuple[str, QModelIndex]]:
    for row in range(min(model.rowCount(parent), MOST_ROWS)):
        index = model.index(row, 0, parent)
        yield f"{path}{row}", index
        yield from _walk(model, index, f"{path}{row}.")


def _cell(cell: QModelIndex) -> str:
    """The text of a cell, and what differs from an ordinary one."""
    facts = [str(cell.data(ROLE.DisplayRole))]
    for role in (
        ROLE.ToolTipRole,
        ROLE.CheckStateRole,
        ROLE.BackgroundRole,
        ROLE.ForegroundRole,
        ROLE.DecorationRole,
        ROLE.FontRole,
    ):
        value = cell.data(role)
        if isinstance(value, QBrush):
            value = value.color()
        if isinstance(value, QColor):
            value = value.name()
        elif isinstance(value, QIcon):
            value = _icon(value)
        elif isinstance(value, QFont):
            value = "bold" if value.bold() else "italic" if value.italic() else None
        if value is not None and value != "":
            facts.append(f"{role.name}={value}")
    return " ".join(facts)


def _of_plot(plot: PlotWidget) -> Iterator[tuple[str, Any]]:
    for number, item in enumerate(plot.listDataItems()):
        if isinstance(item, PlotDataItem) and item.isVisible():
            x, y = item.getData()
            yield (
                f"curve {number}",
                (item.name(), "" if x is None else (np.round(x, 9).tolist(), np.round(y, 9).tolist())),
            )


def _of_text(edit: QTextEdit | QPlainTextEdit) -> Iterator[tuple[str, Any]]:
    yield "text", edit.toPlainText()


READERS: tuple[tuple[Any, Callable[[Any], Iterator[tuple[str, Any]]]], ...] = (
    (QAbstractButton, _of_button),
    (QComboBox, _of_combo),
    (QLabel, _of_label),
    (QLineEdit, lambda w: iter((("text", w.text()), ("placeholder", w.placeholderText())))),
    (QSpinBox | QDoubleSpinBox, _of_spin),
    (QTabBar, _of_tabs),
    (PlotWidget, _of_plot),
    (QAbstractItemView, _of_view),
    (QTextEdit | QPlainTextEdit, _of_text),
    (QProgressBar, lambda w: iter((("value", (w.minimum(), w.maximum(), w.value())),))),
    (QAbstractSlider, lambda w: iter((("value", (w.minimum(), w.maximum(), w.value())),))),
    (QGroupBox, lambda w: iter((("title", w.title()),))),
    (QStatusBar, lambda w: iter((("message", w.currentMessage()),))),
)


# --- canvas and menus ------------------------------------------------------------------------------------------------


def _of_canvas(window: MainWindow) -> Iterator[tuple[str, Any]]:
    """The layers and links with their marks, what lies over them, and an image of all."""
    canvas, viewer = window.canvas, window.canvas.viewer
    canvas.frame_all()
    settle(window)
    graph = window.context.document.graph
    for name in sorted(graph.layers):
        item = canvas.projection[name]
        yield f"layer {name}", (item.pos().toTuple(), item.isSelected(), item.toolTip(), item.look)
    yield "selection", window.context.selection
    yield "scope", window.context.scope
    for widget in canvas.findChildren(QWidget):
        if widget.isVisibleTo(canvas) and not viewer.viewport().isAncestorOf(widget):
            yield from _of(widget)
    size = viewer.size()
    viewer.resize(*CANVAS)
    canvas.frame_all()
    yield "image", Picture(viewer.grab().toImage())
    viewer.resize(size)


def _of_menus(window: MainWindow) -> Iterator[tuple[str, Any]]:
    for top in window.menuBar().actions():
        yield from of_menu(top.menu(), top.text())


def of_menu(menu: QMenu | None, path: str) -> Iterator[tuple[str, Any]]:
    if menu is None:
        return
    menu.aboutToShow.emit()
    for action in menu.actions():
        if action.isVisible() and not action.isSeparator():
            yield from _action(f"{path} > {action.text()}", action)
            yield from of_menu(action.menu(), f"{path} > {action.text()}")


def _action(name: str, action: QAction) -> Iterator[tuple[str, Any]]:
    checked = action.isChecked() if action.isCheckable() else ""
    yield name, (action.text(), action.isEnabled(), checked, action.toolTip())
