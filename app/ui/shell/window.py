"""The window: wires canvas, docks, actions, files and status together. It holds no logic of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QSettings, QSize, Qt, QTimer
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QToolBar, QVBoxLayout, QWidget

from app.ui.canvas import clipboard
from app.ui.canvas.canvas import Canvas
from app.ui.canvas.finding import Finder
from app.ui.canvas.structure import Structure
from app.ui.canvas.views import SavedViews
from app.ui.canvas.walking import Walker
from app.ui.document.document import Document
from app.ui.document.locations import is_sample
from app.ui.document.opened import bell
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.shell import session, windows
from app.ui.shell.action_set import Actions
from app.ui.shell.canvas_options import CanvasLooks
from app.ui.shell.command_palette import CommandPalette
from app.ui.shell.disk_watch import DiskWatch
from app.ui.shell.docks import Docks
from app.ui.shell.files import Files
from app.ui.shell.handlers import handlers
from app.ui.shell.live_totals import LiveTotals
from app.ui.shell.menus import TOOLBAR
from app.ui.shell.panels import ANALYSIS, PROFILE
from app.ui.shell.recovery import Recovery
from app.ui.shell.requirements import State
from app.ui.shell.shortcuts import Shortcuts
from app.ui.shell.status import StatusBar
from app.ui.shell.tabs import Tabs
from app.ui.shell.window_menus import Menus
from app.ui.widgets import theme
from app.ui.widgets.texts import tr
from designer.files.document import DOCUMENTS
from designer.graph.diagnostics import Diagnostic, Severity
from designer.operators.registry import Registry


def window_settings() -> QSettings:
    """What belongs to the person: window layout, recent files, colours."""
    from platformdirs import user_config_path

    return QSettings(str(user_config_path("layerwright") / "window.ini"), QSettings.Format.IniFormat)


class MainWindow(QMainWindow):
    """One window with its open documents, of which one is shown."""

    def __init__(self, registry: Registry, settings: QSettings | None = None) -> None:
        super().__init__()
        self.setObjectName("window")
        self.setAccessibleName("Layerwright")
        self.setAcceptDrops(True)
        self.setDockNestingEnabled(True)
        self.settings = settings if settings is not None else window_settings()
        self.context = Context(registry, self)
        self.playback = analysis_of(self.context).playback
        self.canvas = Canvas(self.context)
        self.tabs = Tabs(self.context, self.canvas, self)
        self.status = StatusBar()
        self.setStatusBar(self.status)
        self.files = Files(self, self.context, self.settings, self.tabs)
        self.files.elsewhere = lambda path: windows.show_elsewhere(path, self)
        self.docks = Docks(self, self.context, self.settings)
        self.disk = DiskWatch(self, self.context, self.tabs, self.files, self.compare_saved)
        self.recovery = Recovery(self, self.context, self.tabs)
        self.setCentralWidget(self._centre())
        self._may_close = False  # the person was asked already
        self.walker = Walker(self.context, self.canvas)
        self.finder = Finder(self.context, self.canvas)
        self.views = SavedViews(self.context, self.canvas)
        self.structure = Structure(self.context, self.canvas)
        self.actions_ = Actions(self, self.canvas, Shortcuts(self.settings))
        self.commands = CommandPalette(self.actions_, self)
        self.actions_.connect_all(handlers(self))
        self.looks = CanvasLooks(self)
        self._watched: list[tuple[Any, Callable[..., None]]] = []  # of what is shown
        self.menus = Menus(self, self._refresh)
        self._build_toolbar()
        self._refresh_timer = QTimer(self)
        self._refresh_timer.setSingleShot(True)
        self._refresh_timer.setInterval(0)
        self._refresh_timer.timeout.connect(self._refresh)
        self.playback.sources_changed.connect(self._refresh_timer.start)
        self._connect()
        self._restore()

    # --- building --------------------------------------------------------------------------------------------

    def _centre(self) -> QWidget:
        """Tabs, what is to be said about the document, and the canvas."""
        centre = QWidget()
        box = QVBoxLayout(centre)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for widget in (self.tabs.bar, self.disk.bar):
            box.addWidget(widget)
        box.addWidget(self.canvas, 1)
        centre.setFocusProxy(self.canvas)
        return centre

    def _build_toolbar(self) -> None:
        bar = QToolBar(tr("Tools"), self)
        bar.setObjectName("toolbar")
        bar.setAccessibleName(tr("Tools"))
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
        self._totals = LiveTotals(context, self)
        self._totals.changed.connect(self.status.show_totals)
        context.inspect_requested.connect(self._inspect)
        context.agreement_wanted.connect(self._ask_agreement)
        self.canvas.selection_state_changed.connect(self._refresh_soon)
        self.canvas.menu_requested.connect(self.menus.show_for_canvas)
        self.tabs.changed.connect(self._on_tabs)
        self.tabs.close_asked.connect(self.files.close)
        self.tabs.menu_asked.connect(self.menus.show_for_tab)
        bell().rung.connect(self._on_refused)
        self.status.problems_clicked.connect(lambda: self.docks.show("type_checking"))
        self.status.stop_clicked.connect(self.stop)
        self.status.busy_shown.connect(self._refresh_soon)
        self._held = clipboard.Held(self)
        self._held.changed.connect(self._refresh_soon)

    def begin(self, paths: Sequence[Path] | None = None) -> None:
        """Fill the window that has just been shown: with these documents, or with those of the last time.

        The very first time the sample is analysed: a working example.
        """
        first = not paths and not self.settings.contains("geometry")
        stored = [] if paths else session.stored_tabs(self.settings)
        self.files.open_all(paths or [path for path, _ in stored])
        for path, shown in stored:
            known = self.tabs.find(path) if shown else None
            if known is not None:
                self.tabs.show(known)
        if all(opened.is_blank for opened in self.tabs.all):
            self.files.open_first(None)
        self.start_engine_client()
        self.recovery.look()
        if first and self.context.root.settings.weights:
            self.run_analysis()

    def start_engine_client(self) -> None:
        """Make the engine's client; its process starts with the first request. After the first paint: it costs time."""
        if self.context.engine is None:
            from app.ui.engine.client import EngineClient

            self.context.engine = EngineClient(self.context)
        engine = self.context.engine
        engine.busy_changed.connect(self.status.show_busy)
        engine.progress.connect(self.status.show_progress)
        engine.crashed.connect(self.status.show_crash)

    def _ask_agreement(self, then: object) -> None:
        from app.ui.design.custom_agreement import ask_agreement

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

    def _on_tabs(self) -> None:
        self._refresh_soon()
        if windows.shown_windows() == [self]:
            session.store_tabs(self.settings, self.tabs)

    def _on_refused(self, found: object) -> None:
        findings = [d for d in (found if isinstance(found, tuple) else (found,)) if isinstance(d, Diagnostic)]
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
            title = tr("{name} (sample)", name=f"{document.title}[*]") if sample else f"{document.title}[*]"
            self.setWindowTitle(f"{title} - Layerwright")
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
            can_paste=self._held.layers(),
            errors=errors,
            busy=self.status.busy,
            instances=len(self.structure.instances()),
            ports=len(self.structure.ports()),
            inside=bool(self.context.scope),
            template=bool(self.structure.template()),
            moving=bool(self.playback.tracks),
            ends=self.playback.ends,
            tabs=len(self.tabs),
            closed=self.files.closed,
        )

    # --- what actions do -------------------------------------------------------------------------------------

    def undo(self) -> None:
        self.context.undo()

    def redo(self) -> None:
        self.context.redo()

    def new_window(self) -> None:
        windows.new_window(self)

    def compare_saved(self) -> None:
        """Show what is different between what is open and its file."""
        panel = self.docks.panel("differences")
        self.docks.show("differences")
        panel.with_saved()  # type: ignore[attr-defined]

    def export_pytorch(self) -> None:
        from app.ui.shell.export.pytorch import PyTorchExportDialog

        PyTorchExportDialog(self.context, self).open()

    def export_onnx(self) -> None:
        from app.ui.shell.export.onnx import OnnxExportDialog

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
        from app.ui.shell.shortcuts_dialog import ShortcutsDialog

        ShortcutsDialog(self.actions_.shortcuts, self).open()

    def show_about(self) -> None:
        from app.ui.shell.about import show_about

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
        windows.note_shown(self)
        if not event.spontaneous():
            QTimer.singleShot(0, self, self.docks.settle)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.ActivationChange and self.isActiveWindow():
            self.disk.look()

    def may_leave(self) -> bool:
        """Whether all that is open is saved or may be lost; asks. The next `close` does not ask again."""
        self._may_close = self.files.may_leave()
        return self._may_close

    def stay(self) -> None:
        """The person stays after all: what was answered before counts no more, the next `close` asks again."""
        self._may_close = False

    def close_now(self) -> None:
        """Close without a question."""
        self._may_close = True
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        if not (self._may_close or self.may_leave()):
            event.ignore()
            return
        self.docks.remember()
        self.settings.setValue("geometry", self.saveGeometry())
        if windows.shown_windows() == [self]:
            session.store_tabs(self.settings, self.tabs)
        self.settings.sync()
        self.recovery.later()
        self.disk.end()
        self.tabs.end()
        analysis_of(self.context).end()
        if self.context.engine is not None:
            self.context.engine.close()
        event.accept()
        windows.note_closed(self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape that nobody else has a use for stops what is running."""
        if event.key() == Qt.Key.Key_Escape and self.status.busy:
            self.stop()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _documents_of(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        paths = _documents_of(event)
        if paths:
            event.acceptProposedAction()
            QTimer.singleShot(0, self, lambda: self.files.open_all(paths))  # who dragged them must not wait


def _documents_of(event: QDropEvent) -> list[Path]:
    """The networks that are dragged in."""
    urls = event.mimeData().urls() if event.mimeData().hasUrls() else []
    paths = [Path(url.toLocalFile()) for url in urls if url.isLocalFile()]
    return [p for p in paths if DOCUMENTS.reads(p)]
