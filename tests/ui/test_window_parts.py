"""What the window itself decides: the state of its actions, titles, starts, ends and drops, each with all that it does."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from PySide6.QtCore import QByteArray, QMimeData, QPoint, QPointF, QRect, QSettings, Qt, QUrl
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot
from window_kit import open_window, settle

from app.ui.document.document import Document
from app.ui.document.locations import sample_files
from app.ui.document.open_document import journal_notifier
from app.ui.shell import session
from app.ui.shell import window as window_module
from app.ui.shell.window import MainWindow, _documents_of, new_window, quit_all, show_elsewhere, shown_windows
from app.ui.widgets.action import ActionState
from designer.files.document import save_document
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer, Source
from designer.graph.template import Template


def network(name: str = "net") -> Graph:
    part = (
        Layer("x", "template_input"),
        Layer("inner", "identity", (160, 0), (Source("x"),)),
        Layer("y", "template_output", (320, 0), (Source("inner"),)),
    )
    return Graph(
        [
            Layer("in", "input", (0, 0), params={"dims": "16x16x3"}),
            Layer("conv", "convolution", (160, 0), (Source("in"),), {"features": "3"}),
            Layer("block", "template", (320, 0), (Source("conv"),), {"template": "part"}),
            Layer("out", "output", (480, 0), (Source("block"),)),
        ],
        name=name,
        frames=[Frame("f", "Frame", rect=(-40, -200, 120, 100))],
        templates=[Template("part", part)],
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "documents"
    place.mkdir()
    for name in ("one", "two", "three"):
        save_document(network(name), place / f"{name}.xml")
    return place


def test_the_state_of_the_actions_is_that_of_the_window_after_every_event(
    empty_window, folder, qtbot, monkeypatch
) -> None:
    window = empty_window
    expected = ActionState()
    viewer, context, root = window.canvas.viewer, window.context, None

    def check(what: str, **changes: object) -> None:
        nonlocal expected
        settle(window)
        expected = replace(expected, **changes)
        assert window.actions_._shown == expected, what
        assert window._state(context.document if context.has_document else None, expected.errors) == expected, what

    assert window.actions_._shown == expected, "nothing is open"
    window.files.open(folder / "one.xml")
    root = context.root
    check("open", document=True, layers=4, tabs=1)
    context.select(("conv",))
    check("a layer", selected=1)
    context.select(("in",))
    check("an input", input_selected=True)
    context.select(("in", "conv", "block"))
    check("three", selected=3, instances=1, template=True, input_selected=False)
    context.select(("block",))
    check("an instance", selected=1)
    context.select(())
    check("none", selected=0, instances=0, template=False)
    window.canvas.selection_state_changed.emit()
    links, chosen = len(viewer.selected_links()), len(viewer.selected_frames())
    check("links", selected_links=links, selected_frames=chosen)
    monkeypatch.setattr(viewer, "selected_links", lambda: [1, 2])
    monkeypatch.setattr(viewer, "selected_frames", lambda: [1, 2, 3])
    window.canvas.selection_state_changed.emit()
    check("two links and three frames", selected_links=2, selected_frames=3)
    monkeypatch.undo()
    window.canvas.selection_state_changed.emit()
    check("links again", selected_links=links, selected_frames=chosen)
    root.do(lambda g: commands.set_params(g, {"conv": {"features": "x"}}))
    check(
        "a mistake", undo=root.history.undo_title, errors=sum(d.severity is Severity.ERROR for d in root.diagnostics())
    )
    assert expected.errors > 0
    context.undo()
    check("undone", undo=None, redo=root.history.redo_title, errors=0)
    root.add_finding(Diagnostic("x", "a warning", Severity.WARNING))
    check("a warning")
    context.enter("block")
    inside = {"layers": 3, "inside": True, "template": True}
    check("inside", **inside)
    root.do(lambda g: commands.set_params(g, {"conv": {"features": "x"}}))
    check("a mistake of the file", undo=root.history.undo_title, redo=None, errors=expected.errors or 1)
    context.select(("x",))
    check("a port", selected=1, ports=1)
    context.leave()
    context.undo()
    settle(window)
    context.select(())
    check(
        "left",
        selected=0,
        ports=0,
        layers=4,
        inside=False,
        template=False,
        undo=None,
        redo=root.history.redo_title,
        errors=0,
    )
    for on in (True, False):
        window.status.show_busy(on)
        if on:
            qtbot.waitUntil(lambda: window.status.busy)
        check("busy", busy=on)
    for tracks, ends in (([1], False), ([1], True), ([], False)):
        monkeypatch.setattr(window.playback, "tracks", tracks)
        monkeypatch.setattr(type(window.playback), "ends", property(lambda _s, ends=ends: ends))
        window.playback.sources_changed.emit()
        check("playback", moving=bool(tracks), ends=ends)
    monkeypatch.undo()
    context.select(("conv",))
    settle(window)
    assert window.actions_["edit.copy"].isEnabled()
    window.actions_["edit.copy"].trigger()
    qtbot.waitUntil(lambda: window.actions_._shown.can_paste)
    check("copied", selected=1, can_paste=True)
    QApplication.clipboard().setText("something else")
    qtbot.waitUntil(lambda: not window.actions_._shown.can_paste)
    check("another clipboard", can_paste=False)
    window.files.open(folder / "two.xml")
    check("a second one", tabs=2, selected=0, redo=None)
    window.files.close()
    check("closed", tabs=1, closed=1, selected=1, redo=root.history.redo_title)


def test_titles_and_refusals(empty_window, folder) -> None:
    window = empty_window
    context, said = window.context, []
    context.message.connect(lambda severity, text: said.append((severity, text)))
    window.files.open(folder / "one.xml")
    settle(window)
    assert (window.windowTitle(), window.isWindowModified()) == ("one.xml[*] - Layerwright", False)
    context.root.do(lambda g: commands.rename_layer(g, "out", "end"))
    settle(window)
    assert window.isWindowModified()
    assert window.status.problems.text() == "No problems"
    context.enter("block")
    settle(window)
    assert (window.windowTitle(), window.isWindowModified()) == ("one.xml[*] - Layerwright", True)
    findings = Diagnostic("a", "it is refused", remedy="do it otherwise"), Diagnostic("b", "second")
    for where in (context.document, context.root):
        said.clear()
        where.refused.emit(findings)
        assert said == [("error", "it is refused: do it otherwise")]
    said.clear()
    context.document.refused.emit((Diagnostic("a", "without a remedy"),))
    journal_notifier().failed.emit(findings[1])
    assert said == [("error", "without a remedy"), ("error", "second")]
    first = context.root
    context.undo()
    window.files.open(folder / "two.xml")
    said.clear()
    first.refused.emit(findings)
    assert said == [], "it is not shown"
    window.files.open(sample_files()[0])
    settle(window)
    assert window.windowTitle() == f"{sample_files()[0].name}[*] (sample) - Layerwright"
    window.files.new()
    settle(window)
    assert window.windowTitle() == f"{context.root.graph.name} (unsaved)[*] - Layerwright"


@pytest.fixture
def calls(empty_window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What a window does when it begins, in place of doing it."""
    window, found = empty_window, []
    monkeypatch.setattr(
        window.files,
        "open_all",
        lambda paths, *, trusted=False: found.append(("open", [p.name for p in paths], trusted)),
    )
    monkeypatch.setattr(window.files, "open_first", lambda path: found.append(("first", path)))
    monkeypatch.setattr(window.files, "new", lambda: found.append("new"))
    monkeypatch.setattr(window, "start_engine_client", lambda: found.append("engine"))
    monkeypatch.setattr(window.recovery, "search", lambda: found.append("search"))
    monkeypatch.setattr(window, "run_analysis", lambda: found.append("analysis"))
    return found  # fmt: skip


def test_how_a_window_begins_without_documents_or_with_a_model(empty_window, calls, folder, monkeypatch) -> None:
    """The sample is analyzed only the first time. An import that runs replaces an empty network."""
    window = empty_window
    monkeypatch.setattr(type(window.tabs), "all", property(lambda _tabs: []))
    for weights in ("", "/some/weights.pt"):
        for again in (False, True):
            document = Document(network(), window.context.registry, folder / "one.xml", parent=window.context)
            document.restore_settings(weights=weights)
            window.settings.remove("geometry")
            if again:
                window.settings.setValue("geometry", b"x")

            def first(path: Path | None, document: Document = document) -> None:
                calls.append(("first", path))
                window.context.set_document(document)

            window.files.open_first = first
            window.begin()
            expected = [("open", [], False), ("first", None), "engine", "search"]
            assert calls == [*expected, *(["analysis"] if weights and not again else [])]
            calls.clear()
    monkeypatch.setattr(type(window.models.imports), "runs", property(lambda _imports: (1,)))
    window.begin([Path("net.onnx")])
    assert calls == [("open", ["net.onnx"], False), "new", "engine", "search"]
    monkeypatch.undo()


def test_how_a_window_begins_with_documents_and_with_those_of_the_last_session(
    empty_window, calls, folder, monkeypatch
) -> None:
    window = empty_window
    paths = [folder / f"{name}.xml" for name in ("one", "two", "three")]

    def open_all(given, *, trusted: bool = False) -> None:
        calls.append(("open", [path.name for path in given], trusted))
        for path in given:
            if path.exists():
                window.tabs.add(window.files.read(path))

    window.files.open_all = open_all
    window.begin(paths[:2], trusted=True)
    assert calls == [("open", ["one.xml", "two.xml"], True), "engine", "search"]
    for tab in window.tabs.all[1:]:
        window.tabs.remove(tab)
    calls.clear()
    monkeypatch.setattr(
        session, "stored_tabs", lambda settings: [(paths[1], True), (paths[2], False), (folder / "gone.xml", False)]
    )
    window.begin()
    assert calls == [("open", ["two.xml", "three.xml", "gone.xml"], False), "engine", "search"]
    assert window.context.root.path == paths[1], "the one that was shown"


class Noted:
    """Replaces methods of a window's parts by notes."""

    def __init__(self, window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: list[str] = []
        for part, names in (
            ("docks", ("remember", "set_workspace", "show", "fill")), ("recovery", ("later",)), ("disk", ("end",)), ("tabs", ("end",)),
        ):  # fmt: skip
            owner = getattr(window, part)
            for name in names:
                real = getattr(owner, name)
                monkeypatch.setattr(owner, name, self._note(f"{part}.{name}", real))
        monkeypatch.setattr(window.models.imports, "end", self._note("imports.end", window.models.imports.end))

    def _note(self, name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object) -> object:
            self.found.append(f"{name} {' '.join(map(str, args))}".strip())
            return real(*args)

        return call

    def taken(self) -> list[str]:
        found, self.found = self.found, []
        return found


def test_commands_open_the_workspace_and_the_panels_that_they_need(window, monkeypatch) -> None:
    noted, asked = Noted(window, monkeypatch), []
    for name in ("analysis", "inference", "inspect"):
        getattr(window.context, f"{name}_requested").connect(lambda *what, name=name: asked.append((name, *what)))
    monkeypatch.setattr(window.docks, "_build", lambda spec: QLabel(spec.title))  # panels of other tests
    monkeypatch.setattr(window.docks, "show", lambda name: noted.found.append(f"docks.show {name}"))
    window.run_analysis()
    shows = [each for each in noted.taken() if each.startswith("docks.show")]
    assert shows == ["docks.show analysis", "docks.show network_overview"]
    assert window.docks.workspace == "Analysis"
    assert asked == [("analysis",)]
    asked.clear()
    window.run_inference()
    shows = [each for each in noted.taken() if each.startswith("docks.show")]
    assert shows == [f"docks.show {name}" for name in ("run_logger", "operator_table", "utilisation")]
    assert (window.docks.workspace, asked) == ("Profile", [("inference",)])
    asked.clear()
    window.train()
    assert [each for each in noted.taken() if each.startswith("docks.show")] == ["docks.show training"]
    assert (window.docks.workspace, asked) == ("Train", [])
    made = iter((True, False))
    monkeypatch.setattr(window.docks, "fill", lambda name: (asked.append(("fill", name)), next(made))[1])
    window._inspect("conv")
    QApplication.processEvents()
    assert [each for each in asked if each[0] == "inspect"] == [("inspect", "conv")], "the new panel missed the request"
    assert {each for each in asked if each[0] == "fill"} == {("fill", "channel_inspector")}
    assert set(noted.taken()) == {"docks.show channel_inspector"}
    asked.clear()
    monkeypatch.setattr(window.docks, "fill", lambda name: False)
    window._inspect("conv")
    QApplication.processEvents()
    assert asked == []


class Side(QWidget):
    """Takes the place of the Side by Side window."""

    def __init__(self, context: object, documents: Callable[[], list[Document]], parent: MainWindow) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("side")
        self.documents, self.begun = documents, 0

    def begin(self) -> None:
        self.begun += 1


def test_one_side_by_side_window_begins_when_it_is_opened(empty_window, folder, monkeypatch) -> None:
    monkeypatch.setattr("app.ui.compare.window.SideWindow", Side)
    window = empty_window
    window.files.open_all([folder / f"{name}.xml" for name in ("one", "two", "three")])
    window.tabs.show(window.tabs.all[1])
    side = window.compare_side_by_side()
    assert [document.path.stem for document in side.documents()] == ["two", "one", "three"], (
        "the shown one is the first"
    )
    assert (side.begun, side.isVisible(), side.size()) == (1, True, window.size())
    assert window.compare_side_by_side() is side
    assert side.begun == 1, "it keeps its settings"
    side.close()
    assert window.compare_side_by_side() is side
    assert (side.begun, side.isVisible()) == (2, True)
    side.close()


def test_what_a_window_does_when_it_closes(empty_window, folder, monkeypatch) -> None:
    window = empty_window
    window.files.open_all([folder / "one.xml", folder / "two.xml"])
    settle(window)
    noted = Noted(window, monkeypatch)
    engine = SimpleNamespace(close=lambda: noted.found.append("engine.close"))
    window.context.engine = engine
    asked: list[int] = []
    answer = False
    monkeypatch.setattr(window.files, "confirm_close", lambda: (asked.append(1), answer)[1])
    window.settings.remove("geometry")
    window.settings.remove("tabs")

    def closes() -> bool:
        event = QCloseEvent()
        window.closeEvent(event)
        return event.isAccepted()

    assert not closes()
    assert (len(asked), noted.taken()) == (1, [])
    assert not window.settings.contains("geometry")
    assert window in shown_windows()
    assert not window.confirm_close()
    assert not closes()
    assert len(asked) == 3, "it asks again"
    answer = True
    assert window.confirm_close()
    answer = False
    window.cancel_close()
    assert not closes()
    assert len(asked) == 5
    answer = True
    assert window.confirm_close()
    answer = False
    assert closes()
    assert len(asked) == 6, "it was confirmed before"
    done = ["docks.remember", "recovery.later", "disk.end", "imports.end", "tabs.end", "engine.close"]
    assert [each for each in noted.taken() if "show" not in each] == done
    assert window.settings.contains("geometry")
    assert [Path(name).name for name in window.settings.value("tabs")] == ["one.xml", "two.xml"]
    assert window not in shown_windows()
    window.context.engine = None
    monkeypatch.undo()


@pytest.fixture
def pair(empty_window: MainWindow, folder: Path) -> Iterator[tuple[MainWindow, MainWindow]]:
    empty_window.files.open(folder / "one.xml")
    other = new_window(empty_window)
    yield empty_window, other
    if other in shown_windows():
        other.close_now()


def test_another_window_shares_settings_and_nothing_else(pair, folder) -> None:
    first, second = pair
    assert shown_windows() == [first, second]
    assert second.pos() - first.pos() == QPoint(32, 32)
    assert second.settings.fileName() == first.settings.fileName()
    assert second.settings is not first.settings
    assert second.settings.format() is first.settings.format()
    assert second.context.registry is first.context.registry
    assert (second.context.engine is not None, second.context.engine is not first.context.engine) == (True, True)
    assert (len(second.context.root.graph), second.context.root.path) == (0, None)
    path = folder / "one.xml"
    raised: list[str] = []
    for name, window in (("first", first), ("second", second)):
        window.raise_ = lambda name=name: raised.append(f"{name} is raised")
        window.activateWindow = lambda name=name: raised.append(f"{name} is activated")
    assert not show_elsewhere(path, first)
    assert raised == []
    first.files.open(folder / "two.xml")
    assert show_elsewhere(path, second)
    assert (first.context.root.path, raised) == (path, ["first is raised", "first is activated"])
    assert second.files.is_elsewhere(path)
    assert not first.files.is_elsewhere(path)
    assert second.recovery.elsewhere(path) is first.tabs
    assert first.recovery.elsewhere(path) is None
    stored = first.settings.value("tabs")
    second.files.open(folder / "three.xml")
    settle(second)
    assert first.settings.value("tabs") == stored, "two windows store no session"


def test_check_marks_follow_what_is_chosen_in_another_window(pair) -> None:
    first, second = pair

    def checked(window: MainWindow) -> list[str]:
        names = [
            name for name in window.actions_.declared if name.startswith(("view.links", "view.figure", "view.theme"))
        ]
        return [name for name in names if window.actions_[name].isChecked()]

    usual = ["view.links_curved", "view.figure_shapes", "view.theme_system"]
    assert checked(first) == checked(second) == usual
    try:
        for name in ("view.links_angled", "view.figure_flops", "view.theme_light"):
            second.actions_[name].trigger()
            assert name in checked(first)
        assert checked(first) == checked(second) == ["view.links_angled", "view.figure_flops", "view.theme_light"]
    finally:
        for name in usual:
            first.actions_[name].trigger()
    assert checked(first) == checked(second) == usual


def test_all_windows_quit_or_none(pair, monkeypatch) -> None:
    asked: list[str] = []
    for answers in ((True, False), (False, True), (True, True)):
        for name, window, answer in zip(("first", "second"), pair, answers, strict=True):
            monkeypatch.setattr(
                window.files, "confirm_close", lambda name=name, answer=answer: (asked.append(name), answer)[1]
            )
        assert quit_all() is all(answers)
        assert asked == (["first", "second"] if answers[0] else ["first"])
        asked.clear()
        assert shown_windows() == ([] if all(answers) else list(pair))
        if not all(answers):
            assert [window._may_close for window in pair] == [False, False]


def drag(paths: list[str]) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path) if path.startswith("/") else QUrl(path) for path in paths])
    return data


def test_only_networks_and_models_of_this_machine_can_be_dropped(window, monkeypatch) -> None:
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    expected, opened = [], []
    monkeypatch.setattr(window.files, "expect", lambda paths: expected.append([p.name for p in paths]))
    monkeypatch.setattr(window.files, "open_all", lambda paths: opened.append([p.name for p in paths]))
    for names, taken in (
        (["/a/net.xml", "/a/x.onnx"], ["net.xml", "x.onnx"]),
        (["/a/photo.png", "/a/net.xml", "/a/notes.txt"], ["net.xml"]),
        (["/a/photo.png"], []),
        (["https://example.org/net.xml"], []),
        ([], []),
    ):
        data = drag(names)
        enter = QDragEnterEvent(QPoint(5, 5), Qt.DropAction.CopyAction, data, left, none)
        enter.ignore()
        window.dragEnterEvent(enter)
        assert enter.isAccepted() is bool(taken)
        assert expected == ([taken] if taken else [])
        drop = QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, left, none)
        drop.ignore()
        assert [p.name for p in _documents_of(drop)] == taken
        window.dropEvent(drop)
        assert drop.isAccepted() is bool(taken)
        assert opened == [], "the other program goes on first"
        QApplication.processEvents()
        assert opened == ([taken] if taken else [])
        expected.clear()
        opened.clear()


def test_escape_stops_a_run_and_only_that(window, monkeypatch) -> None:
    stopped: list[int] = []
    window.context.engine = SimpleNamespace(cancel=lambda: stopped.append(1), close=lambda: None, busy=False)
    for busy in (False, True):
        monkeypatch.setattr(window.status, "busy", busy)
        QTest.keyClick(window, Qt.Key.Key_Escape)
        assert len(stopped) == busy
        QTest.keyClick(window, Qt.Key.Key_F12)
        assert len(stopped) == busy
    window.context.engine = None
    window.stop()
    assert len(stopped) == 1
    monkeypatch.undo()


def test_whatever_actions_depend_on_updates_them_soon(empty_window: MainWindow) -> None:
    window, context = empty_window, empty_window.context
    old, root = (Document(network(name), context.registry, parent=context) for name in ("old", "new"))
    context.set_document(old)
    context.set_document(root)
    assert context.enter("block")
    view = context.document
    nothing: frozenset[str] = frozenset()
    signals = {
        "selected layers": lambda: context.selection_changed.emit(()),
        "selected links and frames": window.canvas.selection_state_changed.emit,
        "tabs": window.tabs.changed.emit,
        "busy": lambda: window.status.busy_shown.emit(True),
        "clipboard": window._held.changed.emit,
        "inputs": window.playback.sources_changed.emit,
    }
    for kind, document in (("file", root), ("template", view)):
        signals |= {
            f"layers of the {kind}": lambda d=document: d.changed.emit(ChangeSet()),
            f"states of the {kind}": lambda d=document: d.states_changed.emit(nothing),
            f"unsaved {kind}": lambda d=document: d.clean_changed.emit(True),
            f"path of the {kind}": document.path_changed.emit,
        }
    for what, emit in signals.items():
        settle(window)
        assert not window._refresh_timer.isActive()
        emit()
        assert window._refresh_timer.isActive(), what
    settle(window)
    old.states_changed.emit(nothing)
    assert not window._refresh_timer.isActive(), "it is not shown"
    stop = window.actions_["run.stop"]
    for busy in (True, False):
        window.status._show_busy(busy)
        settle(window)
        assert stop.isEnabled() is busy


def test_a_window_of_another_size_comes_back_with_it(qtbot: QtBot, tmp_path: Path, monkeypatch) -> None:
    first = open_window(qtbot, tmp_path, size=(700, 560))
    first.files.new()
    first.close_now()
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    again = MainWindow(first.context.registry, settings)
    qtbot.addWidget(again, before_close_func=MainWindow.close_now)
    assert (again.width(), again.height()) == (700, 560)
    assert again.docks.workspace == "Design"


def test_a_window_without_a_stored_size_that_can_be_read_takes_most_of_the_screen(
    empty_window: MainWindow, monkeypatch
) -> None:
    class Screen:
        def availableGeometry(self) -> QRect:
            return room

    monkeypatch.setattr(window_module.QGuiApplication, "primaryScreen", staticmethod(Screen))
    empty_window.hide()
    for width, height, size in ((1400, 850, (1316, 765)), (3000, 2000, (1600, 1000))):
        room = QRect(0, 0, width, height)
        for stored in (None, b"x", QByteArray(b"x")):
            empty_window.resize(1280, 720)
            empty_window.settings.remove("geometry")
            if stored is not None:
                empty_window.settings.setValue("geometry", stored)
            empty_window._restore()
            assert (empty_window.width(), empty_window.height()) == size, stored


def test_a_refused_edit_is_reported_once_from_the_shown_scope_and_from_the_file(empty_window: MainWindow) -> None:
    """Also from the file while the inside of a template is shown, and no longer from a document that is not shown."""
    context, reported = empty_window.context, []
    old, new = (Document(network(name), context.registry, parent=context) for name in ("old", "new"))
    context.message.connect(lambda severity, text: reported.append((severity, text)))

    def refuse(document: Document) -> list[tuple[str, str]]:
        reported.clear()
        name = next(iter(document.graph.layers))
        assert not document.do(lambda g: commands.rename_layer(g, name, list(g.layers)[-1]))
        return list(reported)

    context.set_document(old)
    assert [severity for severity, _ in refuse(old)] == ["error"]
    assert context.enter("block")
    assert [severity for severity, _ in refuse(context.document)] == ["error"]
    assert [severity for severity, _ in refuse(old)] == ["error"]
    inside = context.document
    context.set_document(new)
    assert refuse(old) == refuse(inside) == []
    assert [severity for severity, _ in refuse(new)] == ["error"]
    finding = Diagnostic("code", "It does not fit", remedy="make it smaller")
    new.refused.emit((finding, replace(finding, message="more")))
    assert reported[1:] == [("error", "It does not fit: make it smaller")]


def test_side_by_side_is_one_window_that_begins_when_it_opens_and_offers_the_documents_of_the_tabs(
    empty_window: MainWindow, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shown document comes first, then the others in the order of their tabs."""
    begun: list[QWidget] = []

    class Side(QWidget):
        def __init__(self, context: object, documents: Callable[[], list[Document]], parent: QWidget) -> None:
            super().__init__(parent, Qt.WindowType.Window)
            self.setObjectName("side")
            self.documents = documents

        def begin(self) -> None:
            begun.append(self)

    monkeypatch.setattr("app.ui.compare.window.SideWindow", Side)
    window = empty_window
    for name in ("one", "two", "three"):
        assert window.files.open(folder / f"{name}.xml")
    window.tabs.show(window.tabs.all[1])
    side = window.compare_side_by_side()
    assert side.isVisible()
    assert side.size() == window.size()
    assert [document.path.stem for document in side.documents()] == ["two", "one", "three"]
    assert window.compare_side_by_side() is side
    assert begun == [side]
    side.resize(300, 200)
    side.hide()
    window.tabs.show(window.tabs.all[2])
    assert [document.path.stem for document in side.documents()] == ["three", "one", "two"]
    assert window.compare_side_by_side() is side
    assert begun == [side, side]
    assert (side.width(), side.height()) == (300, 200)
    assert len(window.findChildren(Side)) == 1
    assert window.context.enter("block")  # the whole network is compared, whatever is shown of it
    assert side.documents() == [window.tabs.all[number].document for number in (2, 0, 1)]
