"""The dock widgets: created from the panel table, filled when first shown, arranged by workspace."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import QByteArray, QObject, QSettings, QSize, Qt, Signal
from PySide6.QtWidgets import QDockWidget, QLabel, QMainWindow, QTabBar, QWidget

from app.ui.engine.context import Context
from app.ui.shell.panels import DESIGN, PANELS, WORKSPACES, PanelSpec
from designer.texts import tr, tr_data

LAYOUT_VERSION = 1
_AREAS = {
    "left": Qt.DockWidgetArea.LeftDockWidgetArea,
    "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "bottom": Qt.DockWidgetArea.BottomDockWidgetArea,
}
# Shares of the window's width (left, right) and height (bottom) by workspace; chosen to fit 1280 x 720.
_SHARES: dict[str, dict[str, float]] = {
    "Design": {"left": 0.17, "right": 0.24, "bottom": 0.26},
    "Analysis": {"left": 0.22, "right": 0.32, "bottom": 0.36},
    "Profile": {"left": 0.21, "right": 0.22, "bottom": 0.46},
    "Train": {"left": 0.22, "right": 0.26, "bottom": 0.44},
}


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The panel layout of a workspace: Qt's state, and the open panels as `name:width:height,...` in pixels."""

    workspace: str
    state: QByteArray
    panels: str


class Docks(QObject):
    """The dock widgets of one main window."""

    workspace_changed = Signal(str)

    def __init__(self, window: QMainWindow, context: Context, settings: QSettings) -> None:
        super().__init__(window)
        self._window = window
        self._context = context
        self._settings = settings
        self._docks: dict[str, QDockWidget] = {}
        self._specs = {spec.id: spec for spec in PANELS}
        self._filled: set[str] = set()
        self._heads: dict[str, QDockWidget] = {}  # by side; empty after a layout was restored
        self.workspace = ""
        for spec in PANELS:
            self._docks[spec.id] = self._make(spec)

    def _make(self, spec: PanelSpec) -> QDockWidget:
        dock = QDockWidget(tr_data(spec.title), self._window)
        dock.setObjectName(f"dock.{spec.id}")
        dock.setAccessibleName(tr_data(spec.title))
        dock.setWidget(QWidget())
        dock.hide()
        dock.visibilityChanged.connect(lambda seen, name=spec.id: self._on_seen(name, seen))
        dock.toggleViewAction().triggered.connect(lambda on=False, name=spec.id: self._on_toggled(name, on))
        return dock

    def __getitem__(self, panel: str) -> QDockWidget:
        return self._docks[panel]

    @property
    def all(self) -> Iterable[QDockWidget]:
        return self._docks.values()

    def panel(self, name: str) -> QWidget:
        """The panel's widget, created on first use."""
        self.fill(name)
        return self._docks[name].widget()

    def fill(self, name: str) -> bool:
        """Create the panel if needed. True if it was created by this call."""
        if name in self._filled:
            return False
        self._filled.add(name)
        spec = self._specs[name]
        old = self._docks[name].widget()
        self._docks[name].setWidget(self._build(spec))
        if old is not None:
            old.deleteLater()
        return True

    def _build(self, spec: PanelSpec) -> QWidget:
        try:
            cls = getattr(importlib.import_module(f"app.ui.{spec.module}"), spec.class_name)
        except ImportError as error:  # a module or a library of the system is missing
            label = QLabel(
                tr(
                    "{title} is not available: {error}. Reinstall the program.",
                    title=tr_data(spec.title),
                    error=error,
                )
            )
            label.setWordWrap(True)
            label.setMargin(16)
            label.setAlignment(Qt.AlignmentFlag.AlignTop)
            return label
        panel: QWidget = cls(self._context)
        return panel

    def _on_toggled(self, name: str, on: bool) -> None:
        if on:
            self.show(name)

    def _on_seen(self, name: str, seen: bool) -> None:
        if seen:
            self.fill(name)

    def show(self, name: str) -> None:
        """Open a panel and bring it to the front."""
        self.fill(name)
        dock = self._docks[name]
        if self._window.dockWidgetArea(dock) is Qt.DockWidgetArea.NoDockWidgetArea:
            area = _AREAS[self._specs[name].area]
            neighbor = next((d for d in self._docks.values() if self._is_at(d, area)), None)
            if neighbor is None:
                self._window.addDockWidget(area, dock)
            else:
                self._window.tabifyDockWidget(neighbor, dock)  # side by side, neither would have enough room
        dock.show()
        dock.raise_()
        self._show_titles()

    def _show_titles(self) -> None:
        """Show the titles of tabs in full: the arrows of a tab bar lead to those without room."""
        for bar in self._window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
            bar.setElideMode(Qt.TextElideMode.ElideNone)
            bar.setUsesScrollButtons(True)

    def _is_at(self, dock: QDockWidget, area: Qt.DockWidgetArea) -> bool:
        return not dock.isHidden() and not dock.isFloating() and self._window.dockWidgetArea(dock) is area

    # --- workspaces ------------------------------------------------------------------------------------------

    def set_workspace(self, name: str) -> None:
        """Store the layout of the current workspace and switch to another one."""
        if name == self.workspace:
            return
        self.remember()
        state, panels = (self._settings.value(f"{what}/{name}") for what in ("workspaces", "panels"))
        good = isinstance(state, QByteArray)
        self._take(name, Arrangement(name, state, panels if isinstance(panels, str) else "") if good else None)

    def _take(self, name: str, stored: Arrangement | None) -> bool:
        """Show a workspace with its stored layout, or its default one. True if the stored layout could be restored."""
        changed, self.workspace = name != self.workspace, name
        size = self._window.size()
        self._heads = {}
        self._clear()  # docks missing from the stored layout would stay in place
        good = stored is not None and self._window.restoreState(stored.state, LAYOUT_VERSION)
        if stored is not None and good:
            self._keep_only(stored.panels)
        else:
            self.arrange()
        if self._window.size() != size:  # panels shown for a moment may have enlarged the window
            layout = self._window.layout()
            if layout is not None:
                layout.activate()
            self._window.resize(size)
        self._show_titles()
        if changed:
            self.workspace_changed.emit(name)
        return good

    def arrangement(self) -> Arrangement:
        """The current layout."""
        return Arrangement(self.workspace, self._window.saveState(LAYOUT_VERSION), ",".join(self._seen()))

    def restore(self, kept: Arrangement) -> bool:
        """Restore a layout in its workspace. False, with nothing changed, if the workspace is unknown."""
        if kept.workspace not in WORKSPACES:
            return False
        if kept.workspace != self.workspace:
            self.remember()
        return self._take(kept.workspace, kept)

    def remember(self) -> None:
        """Store the layout of the current workspace."""
        if self.workspace:
            now = self.arrangement()
            self._settings.setValue(f"workspaces/{self.workspace}", now.state)
            self._settings.setValue(f"panels/{self.workspace}", now.panels)
            self._settings.setValue("workspace", self.workspace)

    def last_workspace(self) -> str:
        """The workspace of the last session; Design by default."""
        stored = self._settings.value("workspace")
        return stored if isinstance(stored, str) and stored in WORKSPACES else DESIGN

    def arrange(self) -> None:
        """Apply the default layout of the workspace: the panels of one side as tabs, sizes as shares of the window."""
        window = self._window
        window.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.LeftDockWidgetArea)
        window.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea)
        self._clear()
        heads: dict[str, QDockWidget] = {}
        for spec in PANELS:
            if self.workspace not in spec.workspaces:
                continue
            dock = self._docks[spec.id]
            head = heads.setdefault(spec.area, dock)
            if head is dock:
                window.addDockWidget(_AREAS[spec.area], dock)
            else:
                window.tabifyDockWidget(head, dock)
            dock.show()
        for head in heads.values():
            head.raise_()
        self._heads = heads
        self.settle()

    def settle(self) -> None:
        """Apply the sizes of a default layout; only possible once the window is visible."""
        window = self._window
        shares = _SHARES[self.workspace]
        for area, head in self._heads.items():
            flat = area == "bottom"
            length = round((window.height() if flat else window.width()) * shares[area])
            window.resizeDocks([head], [length], Qt.Orientation.Vertical if flat else Qt.Orientation.Horizontal)

    def _seen(self) -> list[str]:
        """Open panels as `name:width:height` in pixels; zeros for those behind another tab."""
        shown = {panel: dock for panel, dock in self._docks.items() if not dock.isHidden()}
        sizes = {p: d.size() if not d.visibleRegion().isEmpty() else QSize(0, 0) for p, d in shown.items()}
        return [f"{panel}:{size.width()}:{size.height()}" for panel, size in sizes.items()]

    def _keep_only(self, stored: str) -> None:
        """Remove docks of other workspaces that Qt restored: its states include docks that were removed.

        They displaced the remaining docks, whose sizes are then set again.
        """
        if not stored:
            return
        wanted = {panel: (width, height) for panel, width, height in (entry.split(":") for entry in stored.split(","))}
        for panel, dock in self._docks.items():
            if panel not in wanted and not dock.isHidden():
                self._window.removeDockWidget(dock)
        sized = [(self._docks[p], int(w), int(h)) for p, (w, h) in wanted.items() if p in self._docks and int(w)]
        docks = [dock for dock, _, _ in sized]
        self._window.resizeDocks(docks, [w for _, w, _ in sized], Qt.Orientation.Horizontal)
        alone = [(dock, h) for dock, _, h in sized if not self._window.tabifiedDockWidgets(dock)]
        self._window.resizeDocks([d for d, _ in alone], [h for _, h in alone], Qt.Orientation.Vertical)

    def _clear(self) -> None:
        for dock in self._docks.values():
            if dock.isFloating():  # calling this for docked ones costs a tenth of the startup time
                dock.setFloating(False)
            self._window.removeDockWidget(dock)
