"""How widgets are made, as text: their properties, layouts, tab order and which of their signals are connected."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import cache
from typing import Any

from pyqtgraph import PlotWidget
from PySide6.QtCore import (
    QAbstractAnimation,
    QAbstractItemModel,
    QItemSelectionModel,
    QMetaMethod,
    QObject,
    QSize,
    QSortFilterProxyModel,
    Qt,
    QTimer,
)
from PySide6.QtGui import (
    QAction,
    QColor,
    QCursor,
    QFont,
    QIcon,
    QKeySequence,
    QShortcut,
    QStandardItemModel,
    QTextDocument,
    QValidator,
)
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QBoxLayout,
    QComboBox,
    QFormLayout,
    QGridLayout,
    QHeaderView,
    QLabel,
    QLayout,
    QLineEdit,
    QMenu,
    QScrollArea,
    QScrollBar,
    QSizePolicy,
    QSplitter,
    QStackedWidget,
    QStyledItemDelegate,
    QTableView,
    QTabWidget,
    QToolButton,
    QWidget,
)
from recorded_state import plain
from window_kit import with_parents

from app.ui.widgets.number_field import NumberField
from app.ui.widgets.size_field import SizeField
from app.ui.widgets.slider import NumberSlider, SumBox

# what depends on the moment, the machine, the font or the theme
LEFT_OUT = frozenset(
    "geometry frameGeometry normalGeometry x y pos frameSize size width height rect childrenRect childrenRegion frameRect "
    "isActiveWindow focus visible minimized maximized fullScreen sizeHint minimumSizeHint palette locale windowFilePath "
    "objectName modified cursorPosition selectedText hasSelectedText undoAvailable redoAvailable acceptableInput updatesEnabled "
    "minimumWidth minimumHeight maximumWidth maximumHeight styleSheet lineCount displayText html markdown plainText iconSize "
    "remainingTime active cleanText sizes currentColor windowIcon sliderPosition lastSelectedPath documentTitle blockCount "
    "handleWidth text menuRole iconText toolTipDuration currentText activeThreadCount depth menubar unifiedTitleAndToolBarOnMac "
    "document model sourceModel defaultSectionSize minimumSectionSize maximumSectionSize usesScrollButtons".split()
)
STYLED = ("textFormat", "PlainText")  # what the style of the program gives labels, if another test has applied it
PRIVATE = re.compile(
    r"^(qt_|_q_)|^QWidgetWindow|LineControl|TextControl|ScrollBarContainer|QStyleSheet|QMenuSloppy|QTornOff|Separator"
)
KINDS = (QWidget, QAction, QTimer, QShortcut, QSortFilterProxyModel, QValidator)
CLOSED = (QMenu, PlotWidget, QScrollBar, QTextDocument)  # whose parts are made by a library


def made(root: QWidget, without: Callable[[QObject], bool] = lambda _: False) -> list[str]:
    """A line for each widget, layout, action, timer and model in `root` with everything that differs from a fresh one of its class."""
    found = []
    for place, each in _walk(root, _name(root), without):
        facts = [*_properties(each), *_more(each), *_connected(each)]
        found.append(plain(f"{place}: {', '.join(facts)}" if facts else place))
    return [*found, *(f"tab order: {line}" for line in _tab_order(root))]


def receivers(owners: Iterable[QObject]) -> Counter[str]:
    """How many slots are connected to each signal of these objects and of all in them."""
    found: Counter[str] = Counter()
    for owner in owners:
        for each in (owner, *owner.findChildren(QObject)):
            for signal in _signals(each):
                count = each.receivers(f"2{signal}")
                if count:
                    found[f"{_class(each)}.{signal}"] += count
    return found


# --- objects ---------------------------------------------------------------------------------------------------------


def _walk(each: QObject, place: str, without: Callable[[QObject], bool]) -> Iterator[tuple[str, QObject]]:
    if not isinstance(each, QLayout):
        yield place, each
    if isinstance(each, CLOSED):
        return
    count: Counter[str] = Counter()
    for child in _parts(each):
        if without(child) or _is_private(child, each):
            continue
        name = _name(child)
        count[name] += 1
        inner = name if count[name] == 1 else f"{name}#{count[name]}"
        own = bool(child.objectName()) and isinstance(child, QWidget)
        yield from _walk(child, inner if own else f"{place} > {inner}", without)


def _parts(each: QObject) -> Iterator[QObject]:
    """The children that the program has made, apart from layouts and what belongs to the library."""
    for child in each.children():
        if isinstance(child, KINDS) or type(child).__module__.startswith("app."):
            yield child
    if isinstance(each, QScrollArea) and each.widget() is not None:
        yield each.widget()
    if isinstance(each, QTabWidget):
        yield from (each.widget(number) for number in range(each.count()))


def _is_private(child: QObject, parent: QObject) -> bool:
    if PRIVATE.search(child.objectName()) or PRIVATE.search(child.metaObject().className()):
        return True
    if isinstance(parent, QAbstractItemView):
        return isinstance(child, QWidget) and not isinstance(child, QHeaderView)
    if isinstance(parent, QComboBox | QAbstractSpinBox):
        return True
    if isinstance(parent, QLineEdit):
        return isinstance(child, QToolButton)  # the button that clears the field
    return isinstance(child, QScrollBar | QStyledItemDelegate | QAbstractAnimation) or type(child) is QObject


def _name(each: QObject) -> str:
    return each.objectName() or _class(each)


def _class(each: QObject) -> str:
    return type(each).__name__


def _base(kind: type) -> type:
    """The class of Qt that a class is derived from."""
    return next(each for each in kind.__mro__ if each.__module__.startswith("PySide6"))


def _fresh_of(each: QObject) -> dict[str, Any]:
    if isinstance(each, QHeaderView | QItemSelectionModel):
        view = next(
            p for p in with_parents(each) if isinstance(p, QAbstractItemView) and not isinstance(p, QHeaderView)
        )
        level = isinstance(each, QHeaderView) and each.orientation() == Qt.Orientation.Horizontal
        return _values(_base(type(view)), _base(type(each)), level)
    return _values(_base(type(each)))


@cache
def _values(kind: type, part: type | None = None, level: bool = False) -> dict[str, Any]:
    """The properties and the numbers of connections of a fresh object of a class of Qt, or of a part of one."""
    around = QWidget()
    try:
        fresh: Any = kind(around) if kind is QShortcut else kind()
    except (TypeError, NotImplementedError):
        return {}
    whole = fresh
    if part is not None:
        if fresh.model() is None:
            fresh.setModel(QStandardItemModel(fresh))
        fresh = fresh.selectionModel() if part is QItemSelectionModel else _header(fresh, level=level)
    found = {name: _text(value) for name, value in _read(fresh)}
    found |= {f"2{signal}": fresh.receivers(f"2{signal}") for signal in _signals(fresh)}
    around.deleteLater()
    if isinstance(whole, QWidget):
        whole.deleteLater()
    return found


def _header(view: Any, *, level: bool) -> QHeaderView:
    if not isinstance(view, QTableView):
        return view.header()
    return view.horizontalHeader() if level else view.verticalHeader()


def _read(each: QObject) -> Iterator[tuple[str, Any]]:
    if isinstance(each, QItemSelectionModel):
        return
    meta = each.metaObject()
    names = [
        meta.property(number).name() for number in range(meta.propertyCount()) if meta.property(number).isReadable()
    ]
    yield from ((name, each.property(name)) for name in names if name not in LEFT_OUT)


def _properties(each: QObject) -> Iterator[str]:
    before = _fresh_of(each)
    kind = type(each).__name__
    if kind != _base(type(each)).__name__:
        yield kind
    for name, value in _read(each):
        text = _text(value)
        if text != before.get(name) and (name, text) != STYLED:
            yield f"{name} {text}"


def _text(value: Any) -> str:
    if isinstance(value, Enum):
        return str(value.name)
    if isinstance(value, QSize):
        return f"{value.width() > 0} {value.height() > 0}" if value.width() < 1 << 23 else "any"
    if isinstance(value, QSizePolicy):
        return f"{value.horizontalPolicy().name} {value.verticalPolicy().name} {value.horizontalStretch()}"
    if isinstance(value, QFont):
        return f"{'bold ' if value.bold() else ''}{'italic ' if value.italic() else ''}{'fixed' if value.fixedPitch() else ''}".strip()
    if isinstance(value, QCursor):
        return value.shape().name
    if isinstance(value, QIcon):
        return "an icon" if not value.isNull() else ""
    if isinstance(value, QKeySequence):
        return value.toString()
    if isinstance(value, QColor):
        return "a color"
    if isinstance(value, QObject) or type(value).__module__.startswith(("PySide6", "Shiboken")):
        return type(value).__name__
    return str(value)


def _more(each: QObject) -> Iterator[str]:
    """What is not a property."""
    if isinstance(each, NumberField):
        yield f"from {each._low} to {each._high} by {each._step}{' whole' if each._whole else ''}"
    if isinstance(each, NumberSlider):
        yield f"by {each._step}{' logarithmic' if each._log else ''}"
    if isinstance(each, SumBox):
        yield f"digits {each._decimals} significant {each._significant}"
    if isinstance(each, SizeField) and each._optional:
        yield "optional"
    if isinstance(each, QWidget):
        yield from (f"lays out {line}" for line in _layout(each.layout())) if each.layout() is not None else ()
        for shortcut in (Qt.WidgetAttribute.WA_DeleteOnClose, Qt.WidgetAttribute.WA_TransparentForMouseEvents):
            if each.testAttribute(shortcut):
                yield shortcut.name
        if each.isHidden() and not each.isWindow():
            yield "hidden"
        if each.focusProxy() is not None:
            yield f"focus at {_name(each.focusProxy())}"
    if isinstance(each, QAbstractButton | QLabel | QLineEdit) and each.text():
        yield f"text {each.text()!r}"
    if isinstance(each, QLabel) and each.buddy() is not None:
        yield f"of {_name(each.buddy())}"
    if isinstance(each, QAction):
        yield f"keys {' '.join(key.toString() for key in each.shortcuts())}" if each.shortcuts() else "no keys"
    if isinstance(each, QComboBox):
        yield f"items {[(each.itemText(i), str(each.itemData(i))) for i in range(min(each.count(), 12))]}"
        yield f"current {each.currentText()!r}"
    if isinstance(each, QHeaderView):
        modes = [each.sectionResizeMode(section).name for section in range(each.count())]
        yield f"modes {' '.join(modes)}"
        yield f"hidden {[section for section in range(each.count()) if each.isSectionHidden(section)]}"
    if isinstance(each, QAbstractItemView) and each.itemDelegate() is not None:
        yield f"delegate {_class(each.itemDelegate())}"
    if isinstance(each, QSplitter):
        yield f"splits {[(_name(each.widget(i)), each.isCollapsible(i)) for i in range(each.count())]}"
    if isinstance(each, QStackedWidget):
        yield f"pages {[_name(each.widget(i)) for i in range(each.count())]}"
    if isinstance(each, QTabWidget):
        yield f"tabs {[(each.tabText(i), each.tabToolTip(i), _name(each.widget(i))) for i in range(each.count())]}"


def _layout(layout: QLayout) -> Iterator[str]:
    kind = type(layout).__name__
    items = []
    for number in range(layout.count()):
        item = layout.itemAt(number)
        if item is None:
            continue
        inner = item.layout()
        name = "space" if item.spacerItem() is not None else ""
        if item.widget() is not None:
            name = _name(item.widget())
        elif inner is not None:
            name = f"[{' '.join(_layout(inner))}]"
        if isinstance(layout, QBoxLayout) and layout.stretch(number):
            name += f"*{layout.stretch(number)}"
        elif isinstance(layout, QGridLayout):
            name += f"@{'/'.join(map(str, layout.getItemPosition(number)))}"
        elif isinstance(layout, QFormLayout):
            row, role = layout.getItemPosition(number)
            name += f"@{row} {role.name}{'' if layout.isRowVisible(row) else ' hidden'}"
        items.append(name)
    yield f"{kind}({', '.join(items)})"


# --- signals ---------------------------------------------------------------------------------------------------------


def _signals(each: QObject) -> list[str]:
    meta, found = each.metaObject(), []
    for number in range(meta.methodCount()):
        method = meta.method(number)
        if method.methodType() == QMetaMethod.MethodType.Signal:
            signature = bytes(method.methodSignature().data()).decode()
            if not signature.startswith(("destroyed", "objectNameChanged")):
                found.append(signature)
    return found


def _connected(each: QObject) -> Iterator[str]:
    if isinstance(each, QAbstractItemModel):
        return  # to the parts of a view
    before = _fresh_of(each)
    for signal in _signals(each):
        count = each.receivers(f"2{signal}")
        if count and count != before.get(f"2{signal}", 0):
            yield f"{signal.partition('(')[0]} connected{f' {count} times' if count > 1 else ''}"


def _tab_order(root: QWidget) -> Iterator[str]:
    each = root.nextInFocusChain()
    names = []
    while each is not root and each is not None:
        if (
            each.focusPolicy() & Qt.FocusPolicy.TabFocus
            and each.objectName()
            and not each.objectName().startswith("qt_")
        ):
            names.append(each.objectName())
        each = each.nextInFocusChain()
    if names:
        yield " ".join(names)
