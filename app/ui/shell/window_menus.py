"""The menus of a window: the menu bar, lists that are filled when they open, and those of the canvas and the tabs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Qt, QUrl
from PySide6.QtGui import QAction, QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QMenu, QMenuBar

from app.ui.design import fixes as fixing
from app.ui.document.locations import sample_files
from app.ui.shell.layouts import Layouts
from app.ui.shell.menus import CONTEXT_MENU, MENUS, Entry
from app.ui.widgets.texts import tr, tr_data

if TYPE_CHECKING:
    from app.ui.document.opened import Opened
    from app.ui.shell.window import MainWindow

PATH_WIDTH = 420  # pixels


class Menus(QObject):
    """Owns no menu: they are the window's."""

    def __init__(self, window: MainWindow, refresh: Callable[[], None]) -> None:
        super().__init__(window)
        self._window = window
        self._refresh = refresh  # brings the actions up to date
        self.layouts = Layouts(window)
        self.named: dict[str, QMenu] = {}  # those that the table calls "<name>"
        for title, entries in MENUS:
            self._fill(self._submenu(window.menuBar(), title), entries)
        self.named["<samples>"].aboutToShow.connect(self.fill_samples)
        self.named["<recent>"].aboutToShow.connect(self.fill_recent)
        self.named["<layouts>"].aboutToShow.connect(lambda: self.layouts.fill(self.named["<layouts>"]))
        for dock in window.docks.all:
            self.named["<windows>"].addAction(dock.toggleViewAction())
        for action in window.menuBar().actions():
            menu = action.menu()
            if isinstance(menu, QMenu):
                menu.aboutToShow.connect(refresh)

    def _fill(self, menu: QMenu, entries: tuple[Entry, ...]) -> None:
        menu.setToolTipsVisible(True)
        for entry in entries:
            if entry is None:
                menu.addSeparator()
            elif isinstance(entry, tuple):
                self._fill(self._submenu(menu, entry[0]), entry[1])
            elif entry.startswith("<"):
                self.named[entry] = menu
            else:
                menu.addAction(self._window.actions_[entry])

    def _submenu(self, parent: QMenu | QMenuBar, title: str) -> QMenu:
        """Named after its English title."""
        menu: QMenu = parent.addMenu(tr_data(title))
        menu.setObjectName(f"menu.{title.replace('&', '').replace(' ', '_').lower()}")
        return menu

    def fill_samples(self) -> None:
        menu = self.named["<samples>"]
        menu.clear()
        for path in sample_files():
            self._add_path(menu, path, path.name)
        if menu.isEmpty():
            menu.addAction(tr("No samples are installed")).setEnabled(False)

    def fill_recent(self) -> None:
        menu = self.named["<recent>"]
        menu.clear()
        files = self._window.files
        paths = files.recent()
        for path in paths:
            self._add_path(menu, path, self._short(path))
        if paths:
            menu.addSeparator()
            menu.addAction(tr("&Clear List")).triggered.connect(files.clear_recent)
        else:
            menu.addAction(tr("Nothing was open before")).setEnabled(False)

    def _short(self, path: Path) -> str:
        """The path from the person's home on, shortened in the middle."""
        home, text = str(Path.home()), str(path)
        text = f"~{text[len(home) :]}" if text.startswith(f"{home}/") else text
        return self._window.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, PATH_WIDTH)

    def _add_path(self, menu: QMenu, path: Path, text: str) -> None:
        action: QAction = menu.addAction(text.replace("&", "&&"))
        action.setToolTip(str(path))
        action.triggered.connect(lambda: self._window.files.open(path))

    def show_for_canvas(self, place: QPoint) -> None:
        self._refresh()
        menu = self._made("canvas.menu")
        self._fill(menu, CONTEXT_MENU)
        fixing.add_menu(menu, self._window.context)
        menu.popup(place)

    def show_for_tab(self, opened: Opened, place: QPoint) -> None:
        """What can be done with a tab, whether it is shown or not."""
        window, path = self._window, opened.document.path
        menu = self._made("tabs.menu")
        self._entry(menu, "close", tr("&Close"), lambda: window.files.close(opened))
        others = self._entry(menu, "close_others", tr("Close &Others"), lambda: window.files.close_others(opened))
        others.setEnabled(len(window.tabs) > 1)
        menu.addSeparator()
        folder = self._entry(menu, "open_folder", tr("Open Containing &Folder"), lambda: _show_folder(path))
        copy = self._entry(menu, "copy_path", tr("Copy &Path"), lambda: QGuiApplication.clipboard().setText(str(path)))
        for action in (folder, copy):
            action.setEnabled(path is not None)
            action.setToolTip(str(path) if path is not None else tr("Not now: the network was never saved"))
        menu.popup(place)

    def _made(self, name: str) -> QMenu:
        menu = QMenu(self._window)
        menu.setObjectName(name)
        menu.setToolTipsVisible(True)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return menu

    def _entry(self, menu: QMenu, name: str, text: str, wish: Callable[[], object]) -> QAction:
        action: QAction = menu.addAction(text)
        action.setObjectName(f"{menu.objectName()}.{name}")
        action.triggered.connect(lambda _on=False: wish())
        return action


def _show_folder(path: Path | None) -> None:
    if path is not None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent)))
