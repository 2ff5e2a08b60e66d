"""A person at the window: pointer and keys of the X server (xdotool), and eyes that wait for what they expect.

The person plays in a thread of their own, so that modal dialogs and drags, which run event loops of their own, work as
they do for people. Everything that looks at a widget runs in the window's thread through `gui`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from threading import Event
from time import monotonic
from typing import Any, TypeVar

from PySide6.QtCore import QModelIndex, QObject, QPoint, QPointF, QRect, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QFileDialog,
    QLineEdit,
    QMenu,
    QScrollArea,
    QSlider,
    QTabBar,
    QWidget,
)

from app.ui.shell.window import MainWindow

W = TypeVar("W", bound=QWidget)
T = TypeVar("T")


class Gui(QObject):
    """Runs functions in the window's thread and hands their results back."""

    asked = Signal(object, object)

    def __init__(self) -> None:
        super().__init__()
        self.asked.connect(self._answer, Qt.ConnectionType.QueuedConnection)

    def _answer(self, function: Callable[[], Any], answers: Queue[tuple[bool, Any]]) -> None:
        try:
            answers.put((True, function()))
        except Exception as error:
            answers.put((False, error))

    def __call__(self, function: Callable[[], T]) -> T:
        answers: Queue[tuple[bool, Any]] = Queue()
        self.asked.emit(function, answers)
        good, value = answers.get(timeout=60)
        if not good:
            raise value
        result: T = value
        return result


class Player:
    """Everything that is done goes through the X server; only looking happens inside the program."""

    def __init__(self, window: MainWindow, gui: Gui, shots: Path) -> None:
        self.window = window
        self.gui = gui
        self.shots = shots
        self.count = 0
        self._tick = Event()  # never set: waiting for it is a pause that needs no sleep

    # --- looking ---------------------------------------------------------------------------------------------

    def wait(self, what: Callable[[], T], timeout: float = 30.0) -> T:
        """The first true value of `what`, looked at again and again."""
        end = monotonic() + timeout
        while True:
            value = self.gui(what)
            if value:
                return value
            if monotonic() > end:
                self.shoot("timeout")
                raise AssertionError(f"waited {timeout:.0f} s in vain: {what}")
            self._tick.wait(0.02)

    def find(self, kind: type[W], name: str, timeout: float = 15.0) -> W:
        """The visible widget called `name`, anywhere in the program; waits until it is there."""

        def there() -> list[W]:
            found = [w for w in QApplication.allWidgets() if isinstance(w, kind) and w.objectName() == name]
            return [w for w in found if w.isVisible()]

        try:
            return self.wait(there, timeout)[0]
        except AssertionError:
            raise AssertionError(f"no visible {kind.__name__} '{name}'") from None

    def line(self, name: str) -> QLineEdit:
        """The first line edit in (or at) the widget `name`."""
        widget = self.find(QWidget, name)
        if isinstance(widget, QLineEdit):
            return widget
        edit = self.gui(lambda: widget.findChild(QLineEdit))
        assert edit is not None, f"'{name}' has no line to type into"
        return edit

    def shoot(self, name: str) -> None:
        """Keep a picture of the whole screen, after everything that is pending was drawn."""
        self.count += 1
        path = str(self.shots / f"{self.count:02d}_{name}.png")
        self._tick.wait(0.3)
        assert self.gui(lambda: QApplication.primaryScreen().grabWindow(0).save(path))

    def centre(self, widget: QWidget) -> QPoint:
        return self.gui(lambda: widget.mapToGlobal(widget.rect().center()))

    def cell(self, view: QAbstractItemView, text: str) -> QPoint:
        """The middle of the first visible cell that says `text`, on the screen."""

        def look(parent: QModelIndex) -> QRect | None:
            model = view.model()
            for row in range(model.rowCount(parent)):
                for column in range(model.columnCount(parent)):
                    index = model.index(row, column, parent)
                    if str(index.data(Qt.ItemDataRole.DisplayRole)) == text:
                        view.scrollTo(index)
                        if not view.visualRect(index).isEmpty():
                            return view.visualRect(index)
                below = look(model.index(row, 0, parent))
                if below is not None:
                    return below
            return None

        rectangle = self.wait(lambda: look(QModelIndex()))
        assert rectangle is not None
        return self.gui(lambda: view.viewport().mapToGlobal(rectangle.center()))

    # --- doing -----------------------------------------------------------------------------------------------

    def xdo(self, *words: object) -> None:
        subprocess.run(["xdotool", *(str(w) for w in words)], check=True, capture_output=True, timeout=60)
        self.gui(lambda: None)

    def click_at(self, place: QPoint, times: int = 1, button: int = 1) -> None:
        extra = ["--repeat", times, "--delay", 60] if times > 1 else []
        self.xdo("mousemove", place.x(), place.y(), "sleep", 0.05, "click", *extra, button)

    def click(self, widget: QWidget) -> None:
        self.wait(widget.isEnabled)
        self.click_at(self.centre(widget))

    def drag(self, start: QPoint, end: QPoint) -> None:
        moves: list[object] = ["mousemove", start.x(), start.y(), "sleep", 0.1, "mousedown", 1, "sleep", 0.1]
        for place in (start + QPoint(14, 6), (start + end) / 2, end - QPoint(3, 3), end):
            moves += ["mousemove", place.x(), place.y(), "sleep", 0.12]
        self.xdo(*moves, "mouseup", 1)

    def scroll_to(self, widget: QWidget) -> None:
        """Turn the wheel over the scroll area around `widget` until all of it can be seen."""
        area = self.gui(lambda: _scroll_area(widget))
        if area is None:
            return
        for _ in range(40):
            if self.gui(lambda: widget.visibleRegion().boundingRect() == widget.rect()):
                return
            below = self.gui(lambda: widget.mapTo(area, QPoint(0, 0)).y() > area.height() / 2)
            corner = self.gui(lambda: area.viewport().mapToGlobal(QPoint(4, area.viewport().height() - 4)))
            self.xdo("mousemove", corner.x(), corner.y(), "click", 5 if below else 4)
        raise AssertionError(f"'{widget.objectName()}' cannot be scrolled into view")

    def drag_slider(self, slider: QSlider, by: int) -> None:
        """Take the handle and pull it `by` pixels."""
        from PySide6.QtWidgets import QStyle, QStyleOptionSlider

        def handle() -> QPoint:
            option = QStyleOptionSlider()
            slider.initStyleOption(option)
            rectangle = slider.style().subControlRect(
                QStyle.ComplexControl.CC_Slider, option, QStyle.SubControl.SC_SliderHandle, slider
            )
            return slider.mapToGlobal(rectangle.center())

        self.scroll_to(slider)
        start = self.gui(handle)
        self.drag(start, start + QPoint(by, 0))

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.xdo("key", "--clearmodifiers", key)

    def type(self, text: str) -> None:
        self.xdo("type", "--clearmodifiers", "--delay", 4, "--", text)

    def write(self, edit: QLineEdit, text: str, *, enter: bool = True) -> None:
        """Click into a line, replace its text, press Enter."""
        self.click(edit)
        self.wait(edit.hasFocus)
        self.keys("ctrl+a")
        self.type(text)
        self.wait(lambda: edit.text() == text)
        if enter:
            self.keys("Return")

    def menu(self, *titles: str) -> None:
        """Choose an entry by clicking through the menu bar and its submenus."""
        bar = self.window.menuBar()

        def heading() -> QPoint:
            action = next(a for a in bar.actions() if a.text().replace("&", "") == titles[0])
            return bar.mapToGlobal(bar.actionGeometry(action).center())

        self.click_at(self.gui(heading))
        menu = self.popup()
        for number, title in enumerate(titles[1:], 1):
            self.choose(menu, title)
            if number < len(titles) - 1:
                above = menu
                menu = self.wait(lambda above=above: self._submenu(above))

    def _submenu(self, above: QMenu) -> QMenu | None:
        menu = QApplication.activePopupWidget()
        return menu if isinstance(menu, QMenu) and menu is not above else None

    def choose(self, menu: QMenu, title: str) -> None:
        """Click the entry of an open menu that begins with `title`."""

        def entry() -> QPoint:
            action = next(a for a in menu.actions() if a.text().replace("&", "").startswith(title))
            assert action.isEnabled(), f"{title} is disabled: {action.toolTip()}"
            return menu.mapToGlobal(menu.actionGeometry(action).center())

        self.click_at(self.gui(entry))

    def popup(self) -> QMenu:
        """The menu that is open now."""
        menu = self.wait(QApplication.activePopupWidget)
        assert isinstance(menu, QMenu)
        return menu

    def tab(self, title: str) -> None:
        """Click the tab of a document."""
        bar = self.find(QTabBar, "tabs")

        def place() -> QPoint:
            number = next(i for i in range(bar.count()) if bar.tabText(i).startswith(title))
            return bar.mapToGlobal(bar.tabRect(number).center())

        self.click_at(self.gui(place))

    def file_dialog(self, path: Path) -> None:
        """Type a path into the open file dialog and accept it."""

        def there() -> list[QFileDialog]:
            return [d for d in QApplication.topLevelWidgets() if isinstance(d, QFileDialog) and d.isVisible()]

        dialog = self.wait(there)[0]
        edit = self.gui(lambda: dialog.findChild(QLineEdit, "fileNameEdit"))
        assert edit is not None
        self.write(edit, str(path))
        self.wait(lambda: not there())

    # --- the canvas ------------------------------------------------------------------------------------------

    def on_canvas(self, place: Callable[[], QPointF]) -> QPoint:
        """Screen pixels of a place on the canvas."""
        viewer = self.window.canvas.viewer
        return self.gui(lambda: viewer.viewport().mapToGlobal(viewer.mapFromScene(place())))

    def node(self, layer: str) -> QPoint:
        projection = self.window.canvas.projection
        return self.on_canvas(lambda: projection[layer].pos() + QPointF(48, 12))

    def connect(self, producer: str, consumer: str, index: int = 0) -> None:
        """Pull a link from an output to an input."""
        projection = self.window.canvas.projection
        start = self.on_canvas(projection[producer].outputs[0].center)
        self.drag(start, self.on_canvas(projection[consumer].inputs[index].center))


def _scroll_area(widget: QWidget) -> QScrollArea | None:
    parent = widget.parentWidget()
    while parent is not None and not isinstance(parent, QScrollArea):
        parent = parent.parentWidget()
    return parent


def has_display() -> bool:
    """Whether there is an X server and xdotool to play on it."""
    try:
        return subprocess.run(["xdotool", "getmouselocation"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
