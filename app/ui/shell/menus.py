"""The menus of a window: menu bar, tool bar, context menus, and lists that are filled when opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QPoint, Qt, QUrl
from PySide6.QtGui import QAction, QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QMainWindow, QMenu, QMenuBar

from app.ui.design import fixes as fixing
from app.ui.document.locations import sample_files
from app.ui.document.open_document import OpenDocument
from app.ui.engine.context import Context
from app.ui.shell.action_set import Actions
from app.ui.shell.docks import Docks
from app.ui.shell.files import Files
from app.ui.shell.layouts import Layouts
from app.ui.shell.tabs import Tabs
from app.ui.widgets.action import Action
from app.ui.widgets.tooltips import plain_tip
from designer.texts import tr, tr_data

PATH_WIDTH = 420  # pixels

# Menu titles with their sections; an action declares its sections. None is a separator, "<name>" a list filled on opening.
Entry = str | None | tuple[str, "tuple[Entry, ...]"]
MENUS: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    (
        "&File",
        (
            "File/new",
            ("New &From", ("File/new from",)),
            "File/open",
            ("Open &Sample", ("<samples>",)),
            ("Open &Recent", ("<recent>",)),
            "File/reopen",
            None,
            "File/save",
            "File/compare",
            None,
            ("&Import", ("File/import",)),
            ("&Export", ("File/export",)),
            "File/print",
            None,
            "File/close",
        ),
    ),
    (
        "&Edit",
        (
            "Edit/undo",
            None,
            "Edit/clipboard",
            None,
            "Edit/layers",
            None,
            "Edit/add",
            ("&Templates", ("Templates/make", None, "Templates/enter", None, "Templates/change")),
            ("&Weights", ("Edit/weights",)),
            None,
            ("&Links", ("Edit/links",)),
            "Edit/lay out",
            ("Al&ign", ("Edit/align", None, "Edit/distribute")),
            ("Nu&dge", ("Edit/nudge",)),
        ),
    ),
    (
        "&Select",
        ("Select/reach", ("&Walk", ("Select/step", "Select/extend")), None, "Select/find", None, "Select/problem"),
    ),
    (
        "&View",
        (
            "View/zoom",
            None,
            ("Saved &Views", ("View/recall", "View/store")),
            ("Show &On Nodes", ("View/on nodes",)),
            ("&Heat", ("View/heat", None, "View/critical path")),
            ("&Links", ("View/links",)),
            "View/minimap",
            ("&Documents", ("View/documents",)),
            ("&Panels", ("<windows>",)),
            ("&Theme", ("View/theme",)),
        ),
    ),
    ("&Run", ("Run/run",)),
    (
        "&Analysis",
        (
            "Analysis/pages",
            None,
            "Analysis/input",
            "Analysis/playback",
            ("Number &Format", ("Analysis/formats",)),
            "Analysis/export",
        ),
    ),
    ("&Tools", ("Panels/open",)),
    ("&Workspaces", ("Workspaces/choose", None, ("&Layouts", ("<layouts>",)), "Workspaces/layout")),
    ("&Help", ("Help/help",)),
)
CHOICES = "Workspaces/choose"  # titles that need the name of their menu to be understood
TOOLBAR = ("Tools/file", "Tools/undo", "Tools/canvas", "Tools/run")
FORMATS = "Canvas/formats"  # a submenu of the context menu
CONTEXT_MENU = (
    "Canvas/input",
    "Canvas/add",
    "Canvas/clipboard",
    "Canvas/templates",
    "Canvas/layers",
    "Canvas/links",
    "Canvas/arrange",
    FORMATS,
)


def menu_paths() -> dict[str, tuple[str, ...]]:
    """The titles of the menus that lead to each section, without mnemonics."""
    found: dict[str, tuple[str, ...]] = {}

    def collect(entries: tuple[Entry, ...], path: tuple[str, ...]) -> None:
        for entry in entries:
            if isinstance(entry, tuple):
                collect(entry[1], (*path, tr_data(entry[0]).replace("&", "")))
            elif entry is not None:
                found[entry] = path

    collect(MENUS, ())
    return found


def full_title(action: Action[Any], paths: Mapping[str, tuple[str, ...]]) -> str:
    """The title of an action with its submenu, without which "Dark" means nothing: `Theme: Dark`. `paths` are `menu_paths()`."""
    section, path = next(((section, paths[section]) for section in action.menus if section in paths), ("", ()))
    title = tr_data(action.title).replace("&", "").rstrip(".")
    submenu = path[-1] if len(path) > 1 or section == CHOICES else ""
    return f"{submenu}: {title}" if submenu.rstrip("s").casefold() not in title.casefold() else title


class Menus(QObject):
    """Builds the window's menus. `refresh` updates the actions before a menu is shown."""

    def __init__(
        self,
        window: QMainWindow,
        context: Context,
        actions: Actions,
        files: Files,
        tabs: Tabs,
        docks: Docks,
        layouts: Layouts,
        refresh: Callable[[], None],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._context = context
        self._actions = actions
        self._files = files
        self._tabs = tabs
        self._refresh = refresh
        self.layouts = layouts
        self.named: dict[str, QMenu] = {}  # menus filled on opening
        for title, entries in MENUS:
            self._fill(self._submenu(window.menuBar(), title), entries)
        self.named["<samples>"].aboutToShow.connect(self.fill_samples)
        self.named["<recent>"].aboutToShow.connect(self.fill_recent)
        self.named["<layouts>"].aboutToShow.connect(lambda: layouts.fill(self.named["<layouts>"]))
        for dock in docks.all:
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
                menu.addActions(self._actions.section(entry))

    def _submenu(self, parent: QMenu | QMenuBar, title: str) -> QMenu:
        """A submenu whose object name is derived from its English title."""
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
        paths = self._files.recent()
        self._files.expect(paths)
        for path in paths:
            self._add_path(menu, path, self._short(path))
        if paths:
            menu.addSeparator()
            menu.addAction(tr("&Clear List")).triggered.connect(self._files.clear_recent)
        else:
            menu.addAction(tr("No recent documents")).setEnabled(False)

    def _short(self, path: Path) -> str:
        """The path relative to the user's home, elided in the middle."""
        home, text = str(Path.home()), str(path)
        text = f"~{text[len(home) :]}" if text.startswith(f"{home}/") else text
        return self._window.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, PATH_WIDTH)

    def _add_path(self, menu: QMenu, path: Path, text: str) -> None:
        action: QAction = menu.addAction(text.replace("&", "&&"))
        action.setToolTip(plain_tip(str(path)))
        action.triggered.connect(lambda: self._files.open(path))

    def show_for_canvas(self, place: QPoint) -> None:
        self._refresh()
        menu = self._made("canvas.menu")
        for section in CONTEXT_MENU:
            actions = self._actions.section(section)
            if section == "Canvas/input":  # of input layers alone
                actions = [action for action in actions if action.isEnabled()]
            if menu.actions() and actions:
                menu.addSeparator()
            if section == FORMATS:
                menu.addMenu(tr("Number Format")).addActions(actions)
            else:
                menu.addActions(actions)
        fixing.add_menu(menu, self._context)
        menu.popup(place)

    def show_fixes(self, place: QPoint) -> None:
        """Show the fixes of the selected layer."""
        names, states = self._context.selection, self._context.document.inference.states
        if len(names) == 1 and names[0] in states:
            menu = self._made("canvas.fixes")
            fixing.fill(menu, self._context, states[names[0]].diagnostics)
            menu.popup(place)

    def show_for_tab(self, opened: OpenDocument, place: QPoint) -> None:
        """Show the context menu of a tab, current or not."""
        path = opened.document.path
        menu = self._made("tabs.menu")
        self._entry(menu, "close", tr("&Close"), lambda: self._files.close(opened))
        others = self._entry(menu, "close_others", tr("Close &Others"), lambda: self._files.close_others(opened))
        others.setEnabled(len(self._tabs) > 1)
        menu.addSeparator()
        folder = self._entry(menu, "open_folder", tr("Open Containing &Folder"), lambda: _show_folder(path))
        copy = self._entry(menu, "copy_path", tr("Copy &Path"), lambda: QGuiApplication.clipboard().setText(str(path)))
        for action in (folder, copy):
            action.setEnabled(path is not None)
            action.setToolTip(
                plain_tip(str(path)) if path is not None else tr("Unavailable: the network has not been saved")
            )
        menu.popup(place)

    def _made(self, name: str) -> QMenu:
        menu = QMenu(self._window)
        menu.setObjectName(name)
        menu.setToolTipsVisible(True)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return menu

    def _entry(self, menu: QMenu, name: str, text: str, do: Callable[[], object]) -> QAction:
        action: QAction = menu.addAction(text)
        action.setObjectName(f"{menu.objectName()}.{name}")
        action.triggered.connect(lambda _on=False: do())
        return action


def _show_folder(path: Path | None) -> None:
    if path is not None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent)))
