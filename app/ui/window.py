"""The window: wires canvas, docks, actions, files and status together. It holds no logic of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSettings, QSize, Qt, QTimer
from PySide6.QtGui import QAction, QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QShowEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QMenu, QToolBar

from app.ui import theme
from app.ui.action_set import Actions
from app.ui.actions import State
from app.ui.canvas import clipboard
from app.ui.canvas.canvas import Canvas
from app.ui.canvas.finding import Finder
from app.ui.canvas.structure import Structure
from app.ui.canvas.views import SavedViews
from app.ui.canvas.walking import Walker
from app.ui.command_palette import CommandPalette
from app.ui.context import Context
from app.ui.docks import Docks
from app.ui.document import Document
from app.ui.files import ENDINGS, Files, is_sample, sample_files
from app.ui.fixing import add_menu as add_fixes
from app.ui.handlers import handlers
from app.ui.menus import CONTEXT_MENU, MENUS, TOOLBAR, Entry
from app.ui.panels import ANALYSIS, PROFILE
from app.ui.shortcuts import Shortcuts
from app.ui.status import StatusBar
from designer.graph.diagnostics import Diagnostic, Severity
from designer.operators.registry import Registry


def window_settings() -> QSettings:
    """What belongs to the person: window layout, recent files, colours."""
    from platformdirs import user_config_path

    return QSettings(str(user_config_path("layerwright") / "window.ini"), QSettings.Format.IniFormat)


class MainWindow(QMainWindow):
    """One window with one open document."""

    def __init__(self, registry: Registry, settings: QSettings | None = None) -> None:
        super().__init__()
        self.setObjectName("window")
        self.setAccessibleName("Layerwright")
        self.setAcceptDrops(True)
        self.setDockNestingEnabled(True)
        self.settings = settings if settings is not None else window_settings()
        self.context = Context(registry, self)
        self.canvas = Canvas(self.context)
        self.setCentralWidget(self.canvas)
        self.status = StatusBar()
        self.setStatusBar(self.status)
        self.files = Files(self, self.context, self.settings)
        self.docks = Docks(self, self.context, self.settings)
        self.walker = Walker(self.context, self.canvas)
        self.finder = Finder(self.context, self.canvas)
        self.views = SavedViews(self.context, self.canvas)
        self.structure = Structure(self.context, self.canvas)
        self.actions_ = Actions(self, self.canvas, Shortcuts(self.settings))
        self.commands = CommandPalette(self.actions_, self)
        self.actions_.connect_all(handlers(self))
        self._menus: dict[str, QMenu] = {}
        self._watched: list[tuple[Any, Callable[..., None]]] = []  # of what is shown
        self._build_menus()
        self._build_toolbar()
        self._refresh_timer = QTimer(self)
        self._refresh_timer.setSingleShot(True)
        self._refresh_timer.setInterval(0)
        self._refresh_timer.timeout.connect(self._refresh)
        self._connect()
        self._restore()

    # --- building --------------------------------------------------------------------------------------------

    def _build_menus(self) -> None:
        for title, entries in MENUS:
            self._fill(self.menuBar().addMenu(title), entries)
        self._menus["<samples>"].aboutToShow.connect(self._fill_samples)
        self._menus["<recent>"].aboutToShow.connect(self._fill_recent)
        windows = self._menus["<windows>"]
        for dock in self.docks.all:
            windows.addAction(dock.toggleViewAction())
        for action in self.menuBar().actions():
            menu = action.menu()
            if isinstance(menu, QMenu):
                menu.aboutToShow.connect(self._refresh)

    def _fill(self, menu: QMenu, entries: tuple[Entry, ...]) -> None:
        menu.setToolTipsVisible(True)
        menu.setObjectName(menu.objectName() or f"menu.{menu.title().replace('&', '').replace(' ', '_').lower()}")
        for entry in entries:
            if entry is None:
                menu.addSeparator()
            elif isinstance(entry, tuple):
                self._fill(menu.addMenu(entry[0]), entry[1])
            elif entry.startswith("<"):
                self._menus[entry] = menu
            else:
                menu.addAction(self.actions_[entry])

    def _build_toolbar(self) -> None:
        bar = QToolBar("Tools", self)
        bar.setObjectName("toolbar")
        bar.setAccessibleName("Tools")
        bar.setMovable(False)
        bar.setIconSize(QSize(18, 18))
        for entry in TOOLBAR:
            if entry is None:
                bar.addSeparator()
            else:
                bar.addAction(self.actions_[entry])
                button = bar.widgetForAction(self.actions_[entry])
                button.setObjectName(f"toolbar.{entry}")
                button.setAccessibleName(self.actions_[entry].text().replace("&", "").rstrip("."))
        self.addToolBar(Qt.ToolBarArea.TopToolBarArea, bar)

    def _connect(self) -> None:
        context = self.context
        context.document_changed.connect(self._on_document)
        context.selection_changed.connect(self._refresh_soon)
        context.message.connect(self.status.say)
        context.inspect_requested.connect(self._inspect)
        context.agreement_wanted.connect(self._ask_agreement)
        self.canvas.selection_state_changed.connect(self._refresh_soon)
        self.canvas.menu_requested.connect(self._show_context_menu)
        self.status.problems_clicked.connect(lambda: self.docks.show("type_checking"))
        self.status.stop_clicked.connect(self.stop)
        self.status.busy_shown.connect(self._refresh_soon)
        QGuiApplication.clipboard().dataChanged.connect(self._refresh_soon)

    def begin(self, path: Path | None) -> None:
        """Fill the window that has just been shown. The very first time the sample is analysed: a working example."""
        first = path is None and not self.settings.contains("geometry")
        self.files.open_first(path)
        self.start_engine_client()
        if first and self.context.document.settings.weights:
            self.run_analysis()

    def start_engine_client(self) -> None:
        """Make the engine's client; its process starts with the first request. After the first paint: it costs time."""
        if self.context.engine is None:
            from app.ui.jobs.engine import EngineClient

            self.context.engine = EngineClient(self.context)
        engine = self.context.engine
        engine.busy_changed.connect(self.status.show_busy)
        engine.progress.connect(self.status.show_progress)
        engine.crashed.connect(self.status.show_crash)

    def _ask_agreement(self, then: object) -> None:
        from app.ui.dialogs.agree_custom import ask_agreement

        if callable(then):
            ask_agreement(self.context, then, self)

    # --- the document ----------------------------------------------------------------------------------------

    def _on_document(self, document: Document) -> None:
        """Follow what is shown, and the file that it belongs to."""
        for signal, slot in self._watched:
            signal.disconnect(slot)
        self._watched.clear()
        for item in dict.fromkeys((document, document.root)):
            for signal in (item.changed, item.states_changed, item.clean_changed, item.path_changed):
                self._watched.append((signal, self._refresh_soon))
            self._watched.append((item.refused, self._on_refused))
        for signal, slot in self._watched:
            signal.connect(slot)
        self._refresh()

    def _on_refused(self, found: object) -> None:
        findings = [d for d in found if isinstance(d, Diagnostic)] if isinstance(found, tuple) else []
        if findings:
            first = findings[0]
            self.context.message.emit("error", f"{first.message}: {first.remedy}" if first.remedy else first.message)

    def _refresh_soon(self, _what: object = None) -> None:
        self._refresh_timer.start()

    def _refresh(self) -> None:
        """Bring title, actions and the problem count up to date."""
        self._refresh_timer.stop()
        document = self.context.document if self.context.has_document else None
        found = document.root.diagnostics() if document is not None else ()
        self.actions_.refresh(self._state(document, sum(1 for d in found if d.severity is Severity.ERROR)))
        self.status.show_problems(found)
        if document is not None:
            sample = document.path is not None and is_sample(document.path)
            self.setWindowTitle(f"{document.title}[*]{' (sample)' if sample else ''} - Layerwright")
        self.setWindowModified(document is not None and not document.history.is_clean)

    def _state(self, document: Document | None, errors: int) -> State:
        if document is None:
            return State()
        return State(
            document=True,
            layers=len(document.graph),
            selected=len(self.context.selection),
            selected_links=len(self.canvas.viewer.selected_links()),
            selected_frames=len(self.canvas.viewer.selected_frames()),
            undo=document.history.undo_title,
            redo=document.history.redo_title,
            modified=not document.history.is_clean,
            can_paste=clipboard.can_paste(),
            errors=errors,
            busy=self.status.busy,
            instances=len(self.structure.instances()),
            ports=len(self.structure.ports()),
            inside=bool(self.context.scope),
            template=bool(self.structure.template()),
        )

    # --- menus that are filled when they open ----------------------------------------------------------------

    def _fill_samples(self) -> None:
        menu = self._menus["<samples>"]
        menu.clear()
        for path in sample_files():
            self._add_path(menu, path)
        if menu.isEmpty():
            menu.addAction("No samples are installed").setEnabled(False)

    def _fill_recent(self) -> None:
        menu = self._menus["<recent>"]
        menu.clear()
        paths = self.files.recent()
        for path in paths:
            self._add_path(menu, path)
        if paths:
            menu.addSeparator()
            menu.addAction("&Clear List").triggered.connect(self.files.clear_recent)
        else:
            menu.addAction("Nothing was open before").setEnabled(False)

    def _add_path(self, menu: QMenu, path: Path) -> None:
        action: QAction = menu.addAction(path.name.replace("&", "&&"))
        action.setToolTip(str(path))
        action.triggered.connect(lambda: self.files.open(path))

    def _show_context_menu(self, place: object) -> None:
        self._refresh()
        menu = QMenu(self)
        menu.setObjectName("canvas.menu")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._fill(menu, CONTEXT_MENU)
        add_fixes(menu, self.context)
        menu.popup(place)  # type: ignore[arg-type]

    # --- what actions do -------------------------------------------------------------------------------------

    def undo(self) -> None:
        self.context.undo()

    def redo(self) -> None:
        self.context.redo()

    def export_pytorch(self) -> None:
        from app.ui.dialogs.export_pytorch import PyTorchExportDialog

        PyTorchExportDialog(self.context, self).open()

    def export_onnx(self) -> None:
        from app.ui.dialogs.export_onnx import OnnxExportDialog

        OnnxExportDialog(self.context, self).open()

    def run_analysis(self) -> None:
        self.docks.set_workspace(ANALYSIS)
        for name in ("analysis", "network_overview"):
            self.docks.show(name)
        self.context.analysis_requested.emit()

    def run_inference(self) -> None:
        self.docks.set_workspace(PROFILE)
        for name in ("run_logger", "operator_table", "utilisation"):
            self.docks.show(name)
        self.context.inference_requested.emit()

    def stop(self) -> None:
        if self.context.engine is not None:
            self.context.engine.cancel()

    def _inspect(self, layer: str) -> None:
        """Show the Channel Inspector; one that is made only now has missed the request, so it is asked again."""
        made = self.docks.fill("channel_inspector")
        self.docks.show("channel_inspector")
        if made:
            QTimer.singleShot(0, self, lambda: self.context.inspect_requested.emit(layer))

    def toggle_minimap(self) -> None:
        wanted = not self.canvas.minimap.wanted
        self.canvas.minimap.want(wanted)
        self.settings.setValue("minimap", wanted)

    def set_theme(self, mode: theme.Mode) -> None:
        app = QApplication.instance()
        if isinstance(app, QApplication):
            theme.apply(app, mode)
            self.settings.setValue("theme", mode)

    def show_shortcuts(self) -> None:
        from app.ui.dialogs.shortcuts import ShortcutsDialog

        ShortcutsDialog(self.actions_.shortcuts, self).open()

    def show_about(self) -> None:
        from app.ui.dialogs.help import show_about

        show_about(self)

    # --- the window itself -----------------------------------------------------------------------------------

    def _restore(self) -> None:
        geometry = self.settings.value("geometry")
        if geometry is None or not self.restoreGeometry(geometry):
            screen = QGuiApplication.primaryScreen().availableGeometry()
            self.resize(min(1600, round(screen.width() * 0.94)), min(1000, round(screen.height() * 0.9)))
        self.canvas.minimap.want(self.settings.value("minimap", True, type=bool) is not False)
        self.docks.set_workspace(self.docks.last_workspace())
        self._refresh()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not event.spontaneous():
            QTimer.singleShot(0, self, self.docks.settle)

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self.files.may_leave():
            event.ignore()
            return
        self.docks.remember()
        self.settings.setValue("geometry", self.saveGeometry())
        self.settings.sync()
        if self.context.engine is not None:
            self.context.engine.close()
        event.accept()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _document_of(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        path = _document_of(event)
        if path is not None:
            event.acceptProposedAction()
            QTimer.singleShot(0, self, lambda: self.files.open(path))  # the program that dragged it must not wait


def _document_of(event: QDropEvent) -> Path | None:
    """The network that is dragged in, if one is."""
    urls = event.mimeData().urls() if event.mimeData().hasUrls() else []
    paths = [Path(url.toLocalFile()) for url in urls if url.isLocalFile()]
    return next((p for p in paths if p.suffix in ENDINGS), None)
