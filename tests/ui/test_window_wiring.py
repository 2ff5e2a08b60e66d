"""What the parts of the window ask of each other: every connection that its constructors make, and where the signals of parts lead."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from made_widgets import _signals
from PySide6.QtCore import QObject, QPoint, QTimer
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot
from recorded_state import compare
from window_kit import open_window, settle, show

from app.ui.design import custom_agreement
from app.ui.document.open_document import journal_notifier
from app.ui.engine.client import EngineClient
from app.ui.shell import window as window_module
from app.ui.shell.disk_watch import DiskWatch
from app.ui.shell.docks import Docks
from app.ui.shell.files import Files
from app.ui.shell.menus import Menus
from app.ui.shell.status import StatusBar
from app.ui.shell.window import MainWindow
from designer.graph.diagnostics import Diagnostic
from designer.graph.template_commands import make_template

OURS = frozenset(
    "MainWindow Context Canvas LayerViewer Minimap Tabs TabBar StatusBar Docks ModelImport DiskWatch Recovery LiveTotals "
    "Menus Actions Layouts ViewOptions Imports ImportBar NoticeBar HeatOverlay DifferenceMarker FormatMarks ConnectSearch "
    "QuickAdd CommandPalette SearchPopup ClipboardWatch Document TemplateView OpenDocument DocumentComparison Breadcrumb "
    "Welcome Playback AnalysisController ProfilingController TrainingController NumberFormats RunHealth TimeMachine "
    "ImageInput WeightEdits Background QFileSystemWatcher QDockWidget".split()
)


def connections(window: MainWindow) -> Counter[str]:
    """How many slots are connected to the signals of the parts of the program, and to those of the canvas that Qt has."""
    viewer = window.canvas.viewer
    parts = [each for each in (window, *window.findChildren(QObject)) if type(each).__name__ in OURS]
    parts += [viewer.horizontalScrollBar(), viewer.verticalScrollBar(), viewer.scene()]
    parts += [each for each in viewer.children() if isinstance(each, QTimer)]
    found: Counter[str] = Counter()
    for each in parts:
        for signal in _signals(each):
            found[f"{type(each).__name__}.{signal}"] += each.receivers(f"2{signal}")
    return +found


def test_the_notice_of_a_changed_file_shows_the_differences_from_it(qtbot: QtBot, tmp_path: Path, monkeypatch) -> None:
    made: list[tuple[object, ...]] = []
    monkeypatch.setattr(window_module, "DiskWatch", lambda *parts: made.append(parts) or DiskWatch(*parts))
    window = open_window(qtbot, tmp_path)
    ((parent, context, tabs, files, compare),) = made
    assert (parent, context, tabs, files) == (window, window.context, window.tabs, window.files)
    assert compare == window.compare_saved


def test_the_window_is_connected_as_recorded(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network, and what changes with one, with another tab, and inside of a template. Panels are left out."""
    monkeypatch.setattr(Docks, "_build", lambda _docks, spec: QWidget())
    window, found = open_window(qtbot, tmp_path), []
    graph = kit.small_graph()
    graph.apply(make_template(graph, ["conv"], "part"))
    before: Counter[str] = Counter()

    def note(what: str) -> None:
        nonlocal before
        settle(window)
        now = connections(window)
        changed = [f"{name}: {now[name]}" for name in sorted(now | before) if now[name] != before[name]]
        found.extend(("", f"# {what}", *changed))
        before = now

    note("nothing is open")
    show(window, graph)
    note("a network")
    window.files.new()
    note("another tab")
    window.tabs.step(1)
    assert window.context.enter("part_0")
    note("inside of a template of the first one")
    compare("window_connections", found)


def test_signals_of_parts_lead_to_what_they_ask_for(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, tuple[object, ...]]] = []

    def watch(owner: type, *names: str) -> None:
        for name in names:
            monkeypatch.setattr(owner, name, lambda _self, *given, name=name: asked.append((name, given)))

    watch(Files, "close")
    watch(Menus, "show_for_tab", "show_for_canvas", "show_fixes")
    watch(MainWindow, "stop")
    watch(StatusBar, "say", "show_totals", "show_busy", "show_progress", "show_crash")
    watch(DiskWatch, "check")
    opened: list[str] = []
    open_panel = Docks.show
    monkeypatch.setattr(Docks, "show", lambda docks, name: (opened.append(name), open_panel(docks, name))[1])
    monkeypatch.setattr(custom_agreement, "ask_agreement", lambda *given: asked.append(("agreement", given)))
    window = open_window(qtbot, tmp_path)
    show(window, kit.small_graph())
    window.start_engine_client()
    engine, tab = window.context.engine, window.tabs.shown
    assert isinstance(engine, EngineClient)
    assert window.context.engine.parent() is window.context
    place = QPoint(3, 4)
    settle(window)

    def then() -> None:
        """What follows an agreement, and does not happen without it."""
        asked.append(("then", ()))

    wrong = Diagnostic("full", "the disk is full", remedy="free some room")
    for emit, expected, panels in (
        (window.status.problems_clicked.emit, [], ["type_checking"]),
        (window.status.stop_clicked.emit, [("stop", ())], []),
        (lambda: window.tabs.close_asked.emit(tab), [("close", (tab,))], []),
        (lambda: window.tabs.menu_asked.emit(tab, place), [("show_for_tab", (tab, place))], []),
        (lambda: window.canvas.menu_requested.emit(place), [("show_for_canvas", (place,))], []),
        (lambda: window.canvas.fixes_requested.emit(place), [("show_fixes", (place,))], []),
        (lambda: window.context.message.emit("info", "a"), [("say", ("info", "a"))], []),
        (lambda: window._totals.changed.emit("a", "b"), [("show_totals", ("a", "b"))], []),
        (lambda: window.context.agreement_wanted.emit(then), [("agreement", (window.context, then, window))], []),
        (lambda: window.context.agreement_wanted.emit(None), [], []),
        (lambda: engine.busy_changed.emit(True), [("show_busy", (True,))], []),
        (lambda: engine.progress.emit("p"), [("show_progress", ("p",))], []),
        (lambda: engine.crashed.emit("why"), [("show_crash", ("why",))], []),
        (lambda: journal_notifier().failed.emit(wrong), [("say", ("error", "the disk is full: free some room"))], []),
        (window.models.on_shown, [], ["import_report"]),
        (
            lambda: window.context.document.refused.emit((wrong,)),
            [("say", ("error", "the disk is full: free some room"))],
            [],
        ),
        (lambda: window.context.inspect_requested.emit("conv"), [], ["channel_inspector"]),
    ):
        asked.clear()
        opened.clear()
        emit()
        assert ([a for a in asked if a[0] != "check"], opened) == (expected, panels)
    monkeypatch.setattr(EngineClient, "__init__", lambda *_: pytest.fail("there is an engine already"))
    window.start_engine_client()
    _check_activation(window, monkeypatch)


def _check_activation(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are checked when the window comes in front."""
    checked: list[str] = []
    monkeypatch.setattr(window.disk, "check", lambda: checked.append("check"))
    for active, kind, count in (
        (True, window_module.QEvent.Type.ActivationChange, 1),
        (False, window_module.QEvent.Type.ActivationChange, 0),
        (True, window_module.QEvent.Type.FontChange, 0),
    ):
        checked.clear()
        monkeypatch.setattr(MainWindow, "isActiveWindow", lambda _window, active=active: active)
        window.changeEvent(window_module.QEvent(kind))
        assert len(checked) == count
