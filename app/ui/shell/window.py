"""The main window: connects canvas, docks, actions, files and status bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import ref

import shiboken6
from PySide6.QtCore import QEvent, QPoint, QSettings, QSize, Qt, QTimer
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QMainWindow, QToolBar, QVBoxLayout, QWidget

from app.ui.analysis import actions as analysis_actions
from app.ui.analysis.image_input import ImageInput
from app.ui.canvas import actions as canvas_actions
from app.ui.canvas import layer_clipboard
from app.ui.canvas.canvas import Canvas
from app.ui.canvas.finder import Finder
from app.ui.canvas.saved_views import SavedViews
from app.ui.canvas.structure import Structure
from app.ui.canvas.walker import Walker
from app.ui.design import weight_edits
from app.ui.design.weight_edits import WeightEdits
from app.ui.document.document import Document
from app.ui.document.locations import is_sample
from app.ui.document.open_document import journal_notifier
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.number_formats import number_formats_of
from app.ui.precision import actions as precision_actions
from app.ui.shell import actions as shell_actions
from app.ui.shell import session
from app.ui.shell.action_set import Actions
from app.ui.shell.command_palette import CommandPalette
from app.ui.shell.disk_watch import DiskWatch
from app.ui.shell.docks import Docks
from app.ui.shell.export.exports import Exports
from app.ui.shell.files import Files
from app.ui.shell.import_bar import ImportBar
from app.ui.shell.layouts import Layouts
from app.ui.shell.live_totals import LiveTotals
from app.ui.shell.menus import TOOLBAR, Menus
from app.ui.shell.model_import import ModelImport
from app.ui.shell.panels import ANALYSIS, DESIGN, PROFILE, TRAIN
from app.ui.shell.recovery import Recovery
from app.ui.shell.shortcuts import Shortcuts
from app.ui.shell.status import StatusBar
from app.ui.shell.tabs import Tabs
from app.ui.shell.view_options import ViewOptions
from app.ui.shell.welcome import Welcome
from app.ui.widgets.action import DOCUMENT, LAYERS, VALID, Action, ActionGroup, ActionState, Need
from designer.graph.diagnostics import Diagnostic, Severity
from designer.importers.formats import NETWORKS
from designer.operators.registry import Registry
from designer.texts import tr

if TYPE_CHECKING:
    from app.ui.compare.window import SideWindow


def window_settings() -> QSettings:
    """The user's settings: window layout, recent files, theme."""
    from platformdirs import user_config_path

    return QSettings(str(user_config_path("layerwright") / "window.ini"), QSettings.Format.IniFormat)


class MainWindow(QMainWindow):
    """One window with its open documents, of which one is current."""

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
        self.docks = Docks(self, self.context, self.settings)
        self.models = ModelImport(self, self.context, self.tabs)
        self.models.on_shown = lambda: self.docks.show("import_report")
        self.files = Files(self, self.context, self.settings, self.tabs, self.models)
        self.files.elsewhere = lambda path: show_elsewhere(path, self)
        self.files.is_elsewhere = lambda path: any(w is not self and w.tabs.find(path) for w in shown_windows())
        self.files.on_new = lambda: self.docks.set_workspace(DESIGN)
        self.disk = DiskWatch(self, self.context, self.tabs, self.files, self.compare_saved)
        self.recovery = Recovery(self, self.context, self.tabs)
        self.recovery.elsewhere = lambda path: next(
            (w.tabs for w in shown_windows() if w is not self and w.tabs.find(path) is not None), None
        )
        self.setCentralWidget(self._centre())
        self._may_close = False  # the user has already confirmed
        self.walker = Walker(self.context, self.canvas)
        self.finder = Finder(self.context, self.canvas)
        self.views = SavedViews(self.context, self.canvas)
        self.structure = Structure(self.context, self.canvas)
        self.layouts = Layouts(self, self.context, self.docks, self.settings)
        self.view_options = ViewOptions(self.settings, self.canvas, self)
        self.image_input = ImageInput(self.context, self)
        self.weight_edits = WeightEdits(self.context, self)
        self.actions_ = self._make_actions()
        self.view_options.changed.connect(self.actions_.refresh_checks)
        self.canvas.heat.changed.connect(self.actions_.refresh_checks)  # a panel replaces the heat of a run
        self.canvas.show_when_empty(Welcome(self.actions_, self.files))
        self.commands = CommandPalette(self.actions_, self)
        self._watched: list[tuple[Any, Callable[..., None]]] = []  # connections of the current document
        self.menus = Menus(
            self, self.context, self.actions_, self.files, self.tabs, self.docks, self.layouts, self._refresh
        )
        self._build_toolbar()
        self._refresh_timer = QTimer(self)
        self._refresh_timer.setSingleShot(True)
        self._refresh_timer.setInterval(0)
        self._refresh_timer.timeout.connect(self._refresh)
        self.playback.sources_changed.connect(self._refresh_timer.start)
        self._connect()
        self._restore()

    # --- building --------------------------------------------------------------------------------------------

    def _make_actions(self) -> Actions:
        owners = (
            self,
            self.files,
            self.tabs,
            Exports(self.context, self.canvas, self),
            self.layouts,
            self.docks,
            self.view_options,
            self.canvas,
            self.canvas.heat,
            self.structure,
            self.walker,
            self.finder,
            self.views,
            self.playback,
            self.image_input,
            self.weight_edits,
            number_formats_of(self.context),
        )
        return Actions(
            self,
            self.canvas,
            GROUPS,
            {type(owner): owner for owner in owners},
            Shortcuts(self.settings, declared_actions()),
        )

    def _centre(self) -> QWidget:
        """The central widget: tabs, notice bar, breadcrumb and canvas."""
        centre = QWidget()
        box = QVBoxLayout(centre)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for widget in (self.tabs.bar, self.disk.bar, ImportBar(self.models.imports)):
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
        for section in TOOLBAR:
            if bar.actions():
                bar.addSeparator()
            for action in self.actions_.section(section):
                bar.addAction(action)
                button = bar.widgetForAction(action)
                button.setObjectName(f"toolbar.{action.objectName()}")
                button.setAccessibleName(action.text().replace("&", "").rstrip("."))
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
        self.canvas.fixes_requested.connect(self.menus.show_fixes)
        self.tabs.changed.connect(self._on_tabs)
        self.tabs.close_asked.connect(self.files.close)
        self.tabs.menu_asked.connect(self.menus.show_for_tab)
        journal_notifier().failed.connect(self._on_refused)
        self.status.problems_clicked.connect(lambda: self.docks.show("type_checking"))
        self.status.stop_clicked.connect(self.stop)
        self.status.busy_shown.connect(self._refresh_soon)
        self._held = layer_clipboard.ClipboardWatch(self)
        self._held.changed.connect(self._refresh_soon)

    def begin(self, paths: Sequence[Path] | None = None, *, trusted: bool = False) -> None:
        """Open these documents in the new window, or those of the last session. Code in `trusted` files runs without consent.

        On the first start the sample is opened and analyzed.
        """
        first = not paths and not self.settings.contains("geometry")
        stored = [] if paths else session.stored_tabs(self.settings)
        self.files.open_all(paths or [path for path, _ in stored], trusted=trusted)
        for path, shown in stored:
            known = self.tabs.find(path) if shown else None
            if known is not None:
                self.tabs.show(known)
        if all(opened.is_blank for opened in self.tabs.all):
            if self.models.imports.runs:
                self.files.new()  # the import replaces it
            else:
                self.files.open_first(None)
        self.start_engine_client()
        self.recovery.search()
        if first and self.context.root.settings.weights:
            self.run_analysis()

    def start_engine_client(self) -> None:
        """Create the engine client, after the first paint to keep startup fast. Its process starts with the first request."""
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
        """Follow the shown document and the file that it belongs to."""
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
        if shown_windows() == [self]:
            session.store_tabs(self.settings, self.tabs)

    def _on_refused(self, found: object) -> None:
        findings = [d for d in (found if isinstance(found, tuple) else (found,)) if isinstance(d, Diagnostic)]
        if findings:
            first = findings[0]
            self.context.message.emit("error", f"{first.message}: {first.remedy}" if first.remedy else first.message)

    def _refresh_soon(self, _what: object = None) -> None:
        self._refresh_timer.start()

    def _refresh(self) -> None:
        """Update title, actions and problem count."""
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

    def _state(self, document: Document | None, errors: int) -> ActionState:
        if document is None:
            return ActionState()
        return ActionState(
            document=True,
            layers=len(document.graph),
            selected=len(self.context.selection),
            selected_links=len(self.canvas.viewer.selected_links()),
            selected_frames=len(self.canvas.viewer.selected_frames()),
            undo=document.history.undo_title,
            redo=document.history.redo_title,
            can_paste=self._held.layers(),
            errors=errors,
            busy=self.status.busy,
            instances=len(self.structure.instances()),
            ports=len(self.structure.ports()),
            inside=bool(self.context.scope),
            template=bool(self.structure.template()),
            moving=bool(self.playback.tracks),
            ends=self.playback.ends,
            input_selected=bool(self.image_input.layer()),
            tabs=len(self.tabs),
            closed=self.files.closed,
        )

    # --- actions -------------------------------------------------------------------------------------

    def undo(self) -> None:
        self.context.undo()

    def redo(self) -> None:
        self.context.redo()

    def compare_with(self) -> None:
        """Ask for the version or document to compare with."""
        self.docks.show("differences")
        self.docks.panel("differences").choose_other()  # type: ignore[attr-defined]

    def compare_saved(self) -> None:
        """Show the differences between the open document and its file."""
        panel = self.docks.panel("differences")
        self.docks.show("differences")
        panel.with_saved()  # type: ignore[attr-defined]

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

    def train(self) -> None:
        """Show the settings of a training run."""
        self.docks.set_workspace(TRAIN)
        self.docks.show("training")

    def stop(self) -> None:
        if self.context.engine is not None:
            self.context.engine.cancel()

    def _inspect(self, layer: str) -> None:
        """Show the Channel Inspector. The request is repeated if the panel was created just now and missed it."""
        made = self.docks.fill("channel_inspector")
        self.docks.show("channel_inspector")
        if made:
            QTimer.singleShot(0, self, lambda: self.context.inspect_requested.emit(layer))

    def compare_side_by_side(self) -> SideWindow:
        """Show the Side by Side window, one per main window. An open one is raised and keeps its settings."""
        from app.ui.compare.window import SideWindow

        def documents() -> list[Document]:
            root = self.context.root
            return [root, *(o.document for o in self.tabs.all if o.document is not root)]

        side = self.findChild(SideWindow, "side")
        if side is None:
            side = SideWindow(self.context, documents, self)
            side.resize(self.size())
        fresh = not side.isVisible()
        side.show()
        side.raise_()
        side.activateWindow()
        if fresh:
            side.begin()
        return side

    def report(self) -> None:
        """Ask for a file and write the analysis report."""
        from app.ui.analysis.report import ask_report

        ask_report(self, self.context)

    def show_commands(self) -> None:
        self.commands.open_over(self)

    def show_shortcuts(self) -> None:
        from app.ui.shell.shortcuts_dialog import ShortcutsDialog

        ShortcutsDialog(self.actions_.shortcuts, self).open()

    def start_tour(self) -> None:
        from app.ui.shell.guided_tour import Tour

        for tour in self.findChildren(Tour):
            tour.end()
        Tour(self)

    def show_docs(self) -> None:
        from app.ui.shell.docs_viewer import DocsViewer

        DocsViewer(self).show()

    def show_about(self) -> None:
        from app.ui.shell.about import show_about

        show_about(self)

    # --- the window itself -----------------------------------------------------------------------------------

    def _restore(self) -> None:
        geometry = self.settings.value("geometry")
        if geometry is None or not self.restoreGeometry(geometry):
            screen = QGuiApplication.primaryScreen().availableGeometry()
            self.resize(min(1600, round(screen.width() * 0.94)), min(1000, round(screen.height() * 0.9)))
        self.docks.set_workspace(self.docks.last_workspace())
        self._refresh()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        _note_shown(self)
        if not event.spontaneous():
            QTimer.singleShot(0, self, self.docks.settle)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.ActivationChange and self.isActiveWindow():
            self.disk.check()

    def confirm_close(self) -> bool:
        """Ask about unsaved documents. True if the window can close; the next `close` then does not ask again."""
        self._may_close = self.files.confirm_close()
        return self._may_close

    def cancel_close(self) -> None:
        """Cancel a confirmed close: the next `close` asks again."""
        self._may_close = False

    def close_now(self) -> None:
        """Close without a question."""
        self._may_close = True
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        if not (self._may_close or self.confirm_close()):
            event.ignore()
            return
        self.docks.remember()
        self.settings.setValue("geometry", self.saveGeometry())
        if shown_windows() == [self]:
            session.store_tabs(self.settings, self.tabs)
        self.settings.sync()
        self.recovery.later()
        self.disk.end()
        self.models.imports.end()
        self.tabs.end()
        analysis_of(self.context).end()
        if self.context.engine is not None:
            self.context.engine.close()
        event.accept()
        _note_closed(self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape stops the current run unless another widget handles the key."""
        if event.key() == Qt.Key.Key_Escape and self.status.busy:
            self.stop()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        paths = _documents_of(event)
        if paths:
            event.acceptProposedAction()
            self.files.expect(paths)

    def dropEvent(self, event: QDropEvent) -> None:
        paths = _documents_of(event)
        if paths:
            event.acceptProposedAction()
            QTimer.singleShot(0, self, lambda: self.files.open_all(paths))  # do not block the drag source


def _documents_of(event: QDropEvent) -> list[Path]:
    """Paths of the dragged network files."""
    urls = event.mimeData().urls() if event.mimeData().hasUrls() else []
    paths = [Path(url.toLocalFile()) for url in urls if url.isLocalFile()]
    return [p for p in paths if NETWORKS.reads(p)]


# --- the windows of the process -------------------------------------------------------------------------------

OFFSET = QPoint(32, 32)  # of a new window from the previous one
_shown: list[ref[MainWindow]] = []
_made: list[MainWindow] = []  # keeps windows alive that nothing else references


def shown_windows() -> list[MainWindow]:
    """The open main windows, oldest first."""
    found = [window for link in _shown if (window := link()) is not None]
    return [window for window in found if shiboken6.isValid(window)]  # type: ignore[no-untyped-call]


def _note_shown(window: MainWindow) -> None:
    if window not in shown_windows():
        _shown.append(ref(window))


def _note_closed(window: MainWindow) -> None:
    _shown[:] = [link for link in _shown if link() is not None and link() is not window]
    if window in _made:
        _made.remove(window)
        window.deleteLater()


def new_window(other: MainWindow) -> MainWindow:
    """Another window with an empty network."""
    stored = other.settings.fileName()
    settings = type(other.settings)(stored, other.settings.format()) if stored else window_settings()
    window = MainWindow(other.context.registry, settings)
    _made.append(window)
    window.move(other.pos() + OFFSET)
    window.show()
    window.files.new()
    window.start_engine_client()
    return window


def show_elsewhere(path: Path, but: MainWindow) -> bool:
    """Show the document in another window that has it open. False if there is none."""
    for window in shown_windows():
        opened = window.tabs.find(path) if window is not but else None
        if opened is not None:
            window.tabs.show(opened)
            window.raise_()
            window.activateWindow()
            return True
    return False


def quit_all() -> bool:
    """Close all windows after confirmation. False if the user cancelled."""
    windows = shown_windows()
    for window in windows:
        if not window.confirm_close():
            for asked in windows:
                asked.cancel_close()
            return False
    for window in windows:
        window.close_now()
    return True


# --- actions of the window ------------------------------------------------------------------------------------


ACTIONS: tuple[Action[MainWindow], ...] = (
    Action(
        "file.new_window",
        "New &Window",
        "Open another window",
        new_window,
        ("File/new",),
        ("Ctrl+Shift+N",),
    ),
    Action(
        "file.quit",
        "&Quit",
        "Quit the program",
        lambda _window: quit_all(),
        ("File/close",),
        ("Ctrl+Q",),
        icon="power",
    ),
    Action(
        "file.compare",
        "&Compare With...",
        "Show what differs from the saved version or from another document",
        MainWindow.compare_with,
        ("File/compare",),
        (),
        (DOCUMENT,),
        "compare",
    ),
    Action(
        "edit.undo",
        "&Undo",
        "Undo the last edit",
        MainWindow.undo,
        ("Edit/undo", "Tools/undo"),
        ("Ctrl+Z",),
        (DOCUMENT, Need(lambda s: s.undo is not None, "there is nothing to undo")),
        "undo",
        hint=lambda s: tr("Undo: {edit}", edit=s.undo) if s.undo else "",
    ),
    Action(
        "edit.redo",
        "&Redo",
        "Redo the last undone edit",
        MainWindow.redo,
        ("Edit/undo", "Tools/undo"),
        ("Ctrl+Shift+Z", "Ctrl+Y"),
        (DOCUMENT, Need(lambda s: s.redo is not None, "there is nothing to redo")),
        "redo",
        hint=lambda s: tr("Redo: {edit}", edit=s.redo) if s.redo else "",
    ),
    Action(
        "run.analysis",
        "Launch &Analysis",
        "Run the network on an image and inspect the output of every layer",
        MainWindow.run_analysis,
        ("Run/run", "Tools/run"),
        ("F5",),
        (DOCUMENT, LAYERS, VALID),
        "flask-outline",
    ),
    Action(
        "run.inference",
        "Launch &Inference",
        "Measure the latency of the network and record the run",
        MainWindow.run_inference,
        ("Run/run", "Tools/run"),
        ("Ctrl+Return", "Ctrl+Enter"),
        (DOCUMENT, LAYERS, VALID),
        "play",
    ),
    Action(
        "run.train",
        "&Train",
        "Train the network in the Train workspace",
        MainWindow.train,
        ("Run/run",),
        ("F6",),
        (DOCUMENT, LAYERS, VALID),
        "school-outline",
    ),
    Action(
        "run.stop",
        "&Stop",
        "Stop the current run",
        MainWindow.stop,
        ("Run/run", "Tools/run"),
        ("Shift+F5",),
        (Need(lambda s: s.busy, "nothing is running"),),
        "stop",
    ),
    Action(
        "analysis.side_by_side",
        "&Compare Side by Side...",
        "Compare networks, weights and engines on the same image with the same noise",
        MainWindow.compare_side_by_side,
        ("Analysis/pages",),
        ("Ctrl+Shift+B",),
        (DOCUMENT, LAYERS),
        "compare-horizontal",
    ),
    Action(
        "analysis.report",
        "Save &Report...",
        "Save the analysis as a self-contained HTML report",
        MainWindow.report,
        ("Analysis/pages",),
        ("Ctrl+Shift+R",),
        (DOCUMENT, LAYERS),
        "text-box-outline",
    ),
    Action(
        "help.tour",
        "&Tour",
        "Learn the program in five steps on a sample",
        MainWindow.start_tour,
        ("Help/help",),
        icon="school-outline",
    ),
    Action(
        "help.docs",
        "&Documentation",
        "Show the pages about the program and its operators",
        MainWindow.show_docs,
        ("Help/help",),
        icon="text-box-outline",
    ),
    Action(
        "help.commands",
        "&Command Palette...",
        "Search all actions by name",
        MainWindow.show_commands,
        ("Help/help",),
        ("Ctrl+P", "Ctrl+Shift+P"),
        icon="format-list-bulleted",
    ),
    Action(
        "help.shortcuts",
        "&Keyboard Shortcuts",
        "Show and edit keyboard shortcuts, and list mouse gestures",
        MainWindow.show_shortcuts,
        ("Help/help",),
        ("F1",),
        icon="keyboard-outline",
    ),
    Action(
        "help.about",
        "&About Layerwright",
        "Show version and license",
        MainWindow.show_about,
        ("Help/help",),
        icon="information-outline",
    ),
)
GROUPS: tuple[ActionGroup[Any], ...] = (
    *shell_actions.ACTIONS,
    ActionGroup(MainWindow, ACTIONS),
    *canvas_actions.ACTIONS,
    *analysis_actions.ACTIONS,
    *weight_edits.ACTIONS,
    *precision_actions.ACTIONS,
)


def declared_actions() -> tuple[Action[Any], ...]:
    """All actions, in the order in which menus and lists show them."""
    return tuple(action for group in GROUPS for action in group.actions)
