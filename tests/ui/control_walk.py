"""Uses the controls of a widget in every order of two, and writes down what each use changes in what the widget shows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from effects import graph_state
from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QMenu,
    QPushButton,
    QScrollBar,
    QTabBar,
    QToolButton,
    QTreeView,
    QWidget,
)
from pytestqt.qtbot import QtBot
from recorded_state import lines
from shown_state import named, of_tree

from app.ui.engine.context import Context
from app.ui.widgets.background import Background
from app.ui.widgets.number_field import NumberField

MOST = 10  # lines that are kept of a step
WIDEST = 200  # characters of a line
TYPED = ("a", "12", "")
REQUESTS = (  # of a context
    *("reveal_requested", "inspect_requested", "canvas_requested", "add_requested", "analysis_requested"),
    *("inference_requested", "heat_requested", "format_dropped"),
)
Act = Callable[[], object]


def pairs(count: int) -> Iterator[int]:
    """A sequence of numbers below `count` in which each is followed once by each."""
    for number in range(count):
        yield number
        for later in range(number + 1, count):
            yield number
            yield later


class ControlWalk:
    """`owners` have threads that the widget waits for; of contexts also the document, its settings, the selection and what is said
    count. `without` are names of controls that are left alone, `acts` are further
    uses, `of` are the parts whose controls are used, and `unread` names what comes from elsewhere at any time."""

    def __init__(
        self,
        qtbot: QtBot,
        root: QWidget,
        owners: Sequence[QObject] = (),
        without: Sequence[str] = (),
        acts: Mapping[str, Act] | None = None,
        of: Sequence[QWidget] = (),
        unread: Sequence[str] = (),
    ) -> None:
        self.qtbot, self.root, self.owners = qtbot, root, (root, *owners)
        self.parts = of or (root,)
        self.unread = tuple(f" {name}" for name in unread)
        self.typed = 0
        self.chosen: Counter[str] = Counter()  # entries of each menu
        self.said: list[str] = []
        self.contexts = [owner for owner in self.owners if isinstance(owner, Context)]
        for context in self.contexts:
            context.message.connect(lambda severity, text: self.said.append(f"{severity}: {text}"))
            for name in REQUESTS:
                getattr(context, name).connect(lambda *values, name=name: self.said.append(f"{name} {values}"))
        root.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
        self.acts: dict[str, Act] = dict(acts or {})
        for part in self.parts:
            for widget in part.findChildren(QWidget):
                name = widget.objectName()
                if (
                    name
                    and not name.startswith("qt_")
                    and name not in self.acts
                    and not name.startswith(tuple(without))
                ):
                    act = self._act_of(name)
                    if act is not None:
                        self.acts[name] = act

    def _find(self, name: str) -> QWidget | None:
        """The control, if it can be used now."""
        for part in self.parts:
            for widget in part.findChildren(QWidget, name):
                if widget.isVisibleTo(self.root) and widget.isEnabledTo(self.root):
                    return widget
        return None

    def _act_of(self, name: str) -> Act | None:
        found = next(widget for part in self.parts for widget in part.findChildren(QWidget, name))
        for kind, use in USES:
            if isinstance(found, kind):
                if isinstance(found, QScrollBar) or (isinstance(found, QLineEdit) and found.isReadOnly()):
                    return None

                def act(use: Callable[[ControlWalk, Any], object] = use) -> object:
                    widget = self._find(name)
                    return use(self, widget) if widget is not None else "cannot be used"

                return act
        return None

    def settle(self) -> None:
        def quiet() -> bool:
            QApplication.processEvents()
            QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            return not any(job.running for owner in self.owners for job in owner.findChildren(Background))

        for _ in range(2):
            if not quiet():
                self.qtbot.waitUntil(quiet, timeout=30_000)

    def state(self) -> Any:
        self.settle()
        found = [("said", "; ".join(self.said))]
        self.said.clear()
        for context in self.contexts:
            found += _of_context(context)
        found += of_tree(self.root)
        found += [
            (f"{field.objectName()} number", field.text())
            for field in self.root.findChildren(NumberField)
            if field.isVisibleTo(self.root)
        ]
        for view in self.root.findChildren(QTreeView):
            if view.isVisibleTo(self.root) and view.model() is not None:
                count = view.model().rowCount()
                shown = [row for row in range(count) if not view.isRowHidden(row, QModelIndex())]
                found.append((f"{view.objectName()} shown", f"{len(shown)} of {count} {digest(*map(str, shown))}"))
        return named("", found)

    def walk(self, most: int = 10_000) -> list[str]:
        """The lines of the walk."""
        names = list(self.acts)
        before = self.state()
        said: list[str] = []
        for step, number in enumerate(pairs(len(names))):
            if step >= most:
                break
            answer = self.acts[names[number]]()
            if self.root.isHidden():
                answer = "closes"
                self.root.show()
            now = self.state()
            found = lines(now, self.unread, since=before, icons=True)
            said.append(f"# {names[number]}" + (f" {answer}" if isinstance(answer, str) else ""))
            rest = found[MOST:]
            said += [line if len(line) <= WIDEST else f"{line[:WIDEST]} {digest(line)}" for line in found[:MOST]]
            if rest:
                said.append(f"and {len(rest)} more {digest(*rest)}")
            before = now
        return said


def _of_context(context: Context) -> Iterator[tuple[str, object]]:
    """What panels can change of the document and of what is selected."""
    yield "selection", " ".join(context.selection)
    yield "scope", "/".join(step.instance or step.template for step in context.scope)
    if not context.has_document:
        return
    root = context.root
    yield from graph_state(root.graph).items()
    yield "undo", f"{root.history.steps} {root.history.undo_title} {root.history.redo_title}"
    for field in fields(root.settings):
        yield f"setting {field.name}", getattr(root.settings, field.name)


def digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:8]


# --- uses of a control ---------------------------------------------------------------------------------------------


def _button(walk: ControlWalk, button: QAbstractButton) -> str | None:
    menu = button.menu() if isinstance(button, QToolButton | QPushButton) else None
    if menu is None:
        button.click()
        return None
    return choose(walk, button.objectName(), menu)


def choose(walk: ControlWalk, name: str, menu: QMenu) -> str:
    """Choose the entry of a menu that follows the one that was chosen last."""
    entries = list(_entries(menu, ""))
    if not entries:
        return "is empty"
    path, action = entries[walk.chosen[name] % len(entries)]
    walk.chosen[name] += 1
    if not action.isEnabled():
        return f"{path} cannot be used"
    action.trigger()
    return path


def _entries(menu: QMenu, path: str) -> Iterator[tuple[str, QAction]]:
    menu.aboutToShow.emit()
    for action in menu.actions():
        if action.menu() is not None:
            yield from _entries(action.menu(), f"{path}{action.text()} > ")
        elif action.isVisible() and not action.isSeparator():
            yield f"{path}{action.text()}", action


def _combo(_walk: ControlWalk, box: QComboBox) -> str | None:
    if not box.count():
        return "is empty"
    model = box.model()
    number = box.currentIndex()
    for _ in range(box.count()):
        number = (number + 1) % box.count()
        if model.flags(model.index(number, 0)) & Qt.ItemFlag.ItemIsEnabled:
            break
    box.setCurrentIndex(number)
    box.activated.emit(number)
    return None


def _line(walk: ControlWalk, line: QLineEdit) -> str:
    text = TYPED[walk.typed % len(TYPED)]
    walk.typed += 1
    line.setFocus()
    line.selectAll()
    QTest.keyClick(line, Qt.Key.Key_Delete)
    QTest.keyClicks(line, text)
    line.editingFinished.emit()
    return f"is {text!r}"


def _spin(_walk: ControlWalk, spin: QAbstractSpinBox) -> None:
    before = spin.text()
    spin.stepUp()
    if spin.text() == before:
        spin.stepDown()
    spin.editingFinished.emit()


def _slider(_walk: ControlWalk, slider: QAbstractSlider) -> None:
    up = slider.value() < slider.maximum()
    slider.triggerAction(
        QAbstractSlider.SliderAction.SliderPageStepAdd if up else QAbstractSlider.SliderAction.SliderToMinimum
    )


def _view(_walk: ControlWalk, view: QAbstractItemView) -> str | None:
    model = view.model()
    if model is None or not model.rowCount(view.rootIndex()):
        return "is empty"
    index = view.currentIndex()
    if not index.isValid():
        view.setCurrentIndex(model.index(0, 0, view.rootIndex()))
        return None
    following = _below(view, index)
    view.setCurrentIndex(following if following.isValid() else model.index(0, 0, view.rootIndex()))
    return None


def _below(view: QAbstractItemView, index: QModelIndex) -> QModelIndex:
    if isinstance(view, QTreeView):
        return view.indexBelow(index)
    return index.sibling(index.row() + 1, index.column())


def _tabs(_walk: ControlWalk, bar: QTabBar) -> None:
    if bar.count():
        bar.setCurrentIndex((bar.currentIndex() + 1) % bar.count())


USES: tuple[tuple[Any, Callable[[ControlWalk, Any], object]], ...] = (
    (QAbstractButton, _button),
    (QComboBox, _combo),
    (QLineEdit, _line),
    (QAbstractSpinBox, _spin),
    (QAbstractSlider, _slider),
    (QAbstractItemView, _view),
    (QTabBar, _tabs),
)
