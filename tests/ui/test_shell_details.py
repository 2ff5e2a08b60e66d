"""Small parts of the window, each alone: status bar, totals, display options, welcome, and lists of the menus."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from light_shell import LightShell, network
from PySide6.QtCore import QPoint, QSettings, Qt, QUrl
from PySide6.QtGui import QAction, QDesktopServices, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMainWindow, QMenu, QProgressBar, QToolButton
from pytestqt.qtbot import QtBot
from window_kit import shown

from app.engine.protocol import ProgressEvent
from app.ui.canvas import link_paths, node_metrics
from app.ui.document.locations import sample_files
from app.ui.shell import menus as menus_module
from app.ui.shell import view_options
from app.ui.shell.docs_viewer import DocsViewer
from app.ui.shell.live_totals import explanation, short_text
from app.ui.shell.menus import CONTEXT_MENU, FORMATS, Menus
from app.ui.shell.status import StatusBar
from app.ui.shell.view_options import ViewOptions
from app.ui.shell.welcome import HELP, LONGEST, OPENING, RECENT, Welcome
from app.ui.shell.window import MainWindow
from app.ui.widgets import theme
from designer.files.document import save_document
from designer.graph.diagnostics import Diagnostic, Severity
from designer.operators.live_cost import Total


def pixels(icon) -> bytes:
    return bytes(icon.pixmap(16, 16).toImage().constBits())


# --- the status bar --------------------------------------------------------------------------------------------------


@pytest.fixture
def bar(qtbot: QtBot) -> StatusBar:
    return shown(qtbot, StatusBar(), 900, 40)


def test_the_icon_of_the_problems_is_that_of_the_worst(bar: StatusBar) -> None:
    kinds = {Severity.ERROR: ("close-octagon", "error"), Severity.WARNING: ("alert", "warning"), Severity.INFO: ("information-outline", "info")}  # fmt: skip
    for counts in itertools.product((0, 1, 2), repeat=3):
        found = [
            Diagnostic("x", "y", severity) for severity, count in zip(kinds, counts, strict=True) for _ in range(count)
        ]
        bar.show_problems(found[::-1])
        worst = next(
            (kinds[s] for s, count in zip(kinds, counts, strict=True) if count), ("check-circle-outline", "positive")
        )
        assert pixels(bar.problems.icon()) == pixels(theme.icon(*worst)), counts
        words = [
            f"{n} {word}{'s' if n > 1 else ''}"
            for n, word in zip(counts, ("error", "warning", "note"), strict=True)
            if n
        ]
        if counts[0] or counts[1]:
            words = [word for word in words if "note" not in word]
        assert bar.problems.text() == (", ".join(words) or "No problems")


def test_progress_is_that_of_the_present_run(bar: StatusBar) -> None:
    progress, engine = bar.findChild(QProgressBar), bar.findChild(QLabel, "status.engine")
    heard: list[bool] = []
    bar.busy_shown.connect(heard.append)
    assert (engine.text(), progress.isVisible()) == ("Engine idle", False)
    bar._show_busy(True)
    assert (progress.minimum(), progress.maximum(), engine.text()) == (0, 0, "Engine running")
    for event, text in (
        (ProgressEvent(1, 3, 7, "reading"), "Engine: reading"),
        (ProgressEvent(1, 4, 7, ""), "Engine running"),
        (ProgressEvent(1, 150, 400, "a & b"), "Engine: a & b"),
    ):
        bar.show_progress(event)
        assert (progress.minimum(), progress.maximum(), progress.value()) == (0, event.total, event.done)
        assert engine.text() == text
    bar.show_busy(False)
    assert (engine.text(), progress.isVisible(), bar.busy) == ("Engine idle", False, False)
    bar._show_busy(True)
    assert (progress.maximum(), engine.text()) == (0, "Engine running"), "not of the run before"
    bar.show_crash("it ended")
    assert (engine.text(), bar.currentMessage(), bar.busy) == ("Engine stopped", "it ended", False)
    bar.say("info", "another message")
    bar._show_busy(True)
    assert bar.currentMessage() == "another message"
    bar.show_busy(False)
    bar.show_crash("again")
    bar._show_busy(True)
    assert bar.currentMessage() == ""
    assert heard == [True, False, True, False, True, False, True]
    bar.show_busy(False)


def test_the_totals_have_their_explanation_as_plain_text(bar: StatusBar) -> None:
    label = bar.findChild(QLabel, "status.totals")
    for text, more, tip in (
        ("1 FLOP", "a < b\nsecond & third", "<p>a &lt; b</p><p>second &amp; third</p>"),
        ("", "", ""),
        ("2", "x", "<p>x</p>"),
    ):
        bar.show_totals(text, more)
        assert (label.text(), label.toolTip(), label.accessibleDescription(), label.isVisible()) == (
            text,
            tip,
            more,
            bool(text),
        )


@pytest.mark.parametrize("training", [0, 1, 12])
@pytest.mark.parametrize("unknown", [0, 1, 3])
def test_the_explanation_of_the_totals_says_what_they_include(training: int, unknown: int) -> None:
    total = Total(
        flops=12_700_000_000, learned=260_163, weights=1_040_652, outputs=42_268_672, layers=9, unknown=unknown
    )
    assert short_text(total) == "~12.7 GFLOP · 260,163 parameters · ~41.3 MiB"
    lines = explanation(total, training).split("\n")
    assert lines[:4] == [
        "~12.7 GFLOP: operations for batch size 1 at the sizes of the input layers. Two per multiply-add of convolutions and matrix "
        "products, none for element-wise operations, as torch's FLOP counter does.",
        "260,163 learned parameters. Weights shared by the instances of a template count once.",
        "~41.3 MiB: 0.992 MiB of weights and 40.3 MiB of layer outputs in FP32. An engine that frees tensors early needs less.",
        "~ marks values computed from the operator declarations. The Profile workspace shows measured values.",
    ]
    more = [f"The training branch ({training} layers) is not included."] if training else []
    if unknown:
        more.append(
            f"{unknown} layer{'s' if unknown > 1 else ''} with unknown shapes {'are' if unknown > 1 else 'is'} not included."
        )
    assert lines[4:] == more


# --- display options -------------------------------------------------------------------------------------------------


class Canvas:
    """What display options change of a canvas."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self.minimap = SimpleNamespace(wanted=None, want=lambda on: setattr(self.minimap, "wanted", on))
        self.projection = SimpleNamespace(
            document=None,
            layers={"a": 1, "b": 2},
            refresh=self.done.append,
            redraw_links=lambda: self.done.append("links"),
        )


@pytest.fixture
def options(qtbot: QtBot, settings: QSettings, monkeypatch: pytest.MonkeyPatch):
    """Two windows with the same settings: (options, canvas, number of changes) of each."""
    style, metric = link_paths.style(), node_metrics.shown()
    owner = QMainWindow()
    qtbot.addWidget(owner)

    def make():
        canvas = Canvas()
        made = ViewOptions(settings, canvas, owner)  # type: ignore[arg-type]
        heard: list[int] = []
        made.changed.connect(lambda: heard.append(1))
        return made, canvas, heard

    yield make
    link_paths.set_style(style)
    node_metrics.show(metric)


def test_display_options_are_stored_and_shown_in_all_windows(options, settings: QSettings, monkeypatch) -> None:
    (one, first, heard), (two, second, also) = options(), options()
    assert (one.links, one.figure, one.minimap, one.theme_mode) == ("curved", "shapes", True, "system")
    one.show_links("angled")
    assert (settings.value("canvas/links"), two.links, first.done, second.done) == ("angled", "angled", [], [])
    assert (len(heard), len(also)) == (1, 1)
    first.projection.document = second.projection.document = object()
    one.show_figure("flops")
    assert (settings.value("canvas/figure"), two.figure) == ("flops", "flops")
    assert first.done == second.done == [["a", "b"], "links"]
    assert (len(heard), len(also)) == (2, 2)
    one.toggle_minimap()
    assert (one.minimap, two.minimap, first.minimap.wanted) == (False, True, False)
    assert settings.value("minimap", type=bool) is False
    assert (len(heard), len(also)) == (3, 2)
    three = options()[0]
    assert (three.links, three.figure, three.minimap) == ("angled", "flops", False)
    three.toggle_minimap()
    assert settings.value("minimap", type=bool) is True
    modes: list[str] = []
    monkeypatch.setattr(view_options.theme, "apply", lambda app, mode: modes.append(mode))
    for mode in ("dark", "light", "system"):
        one.set_theme(mode)
        assert (one.theme_mode, two.theme_mode, settings.value("theme"), modes[-1]) == (mode, mode, mode, mode)
    assert (len(heard), len(also)) == (6, 5)
    settings.sync()
    stored = QSettings(settings.fileName(), QSettings.Format.IniFormat)  # as text, as after a restart
    stored.setValue("minimap", "false")
    canvas = Canvas()
    ViewOptions(stored, canvas, one.parent())  # type: ignore[arg-type]
    assert canvas.minimap.wanted is False


# --- the welcome -----------------------------------------------------------------------------------------------------


class Actions:
    """Actions by name, with notes of what is triggered."""

    def __init__(self, parent) -> None:
        self.done: list[str] = []
        self._made: dict[str, QAction] = {}
        self._parent = parent

    def __getitem__(self, name: str) -> QAction:
        if name not in self._made:
            action = QAction(f"&Do {name}...", self._parent)
            action.setObjectName(name)
            action.setToolTip(f"tip of {name}")
            action.triggered.connect(lambda _on=False: self.done.append(name))
            self._made[name] = action
        return self._made[name]

    def section(self, name: str) -> list[QAction]:
        return [self[f"{name} {number}"] for number in (1, 2)]


def test_the_welcome_offers_starting_points_recent_documents_and_help(qtbot: QtBot, qapp) -> None:
    page = QMainWindow()
    qtbot.addWidget(page)
    opened, recent = [], [Path(f"/a/{'n' * (LONGEST - 5 + number)}.xml") for number in range(RECENT + 2)]
    files = SimpleNamespace(recent=lambda: recent, open=opened.append)
    actions = Actions(page)
    welcome = Welcome(actions, files)  # type: ignore[arg-type]
    page.setCentralWidget(welcome)
    page.show()
    QApplication.processEvents()

    def links(name: str = "") -> list[QToolButton]:
        found = [link for link in welcome.findChildren(QToolButton) if not link.isHidden()]
        return [link for link in found if link.objectName() == f"welcome.{name}"] if name else found

    names = [f"welcome.{name}" for name in ("File/new from 1", "File/new from 2", *OPENING, *HELP)]
    assert {link.objectName() for link in links()} == {*names, "welcome.recent"}
    for link in links():
        assert link.focusPolicy() == Qt.FocusPolicy.TabFocus  # reached by the keyboard, and a click leaves the focus
        if link.objectName() != "welcome.recent":
            name = link.objectName().removeprefix("welcome.")
            assert (link.text(), link.accessibleName(), link.toolTip()) == (
                f"Do {name}...",
                f"Do {name}...",
                f"tip of {name}",
            )
            link.click()
            assert actions.done.pop() == name
    shorter = [path.name if len(path.name) <= LONGEST else f"{path.name[: LONGEST - 1]}…" for path in recent[:RECENT]]
    assert [link.text() for link in links("recent")] == shorter
    assert max(map(len, shorter)) == LONGEST
    assert [link.toolTip() for link in links("recent")] == [str(path) for path in recent[:RECENT]]
    for link, path in zip(links("recent"), recent, strict=False):
        link.click()
        assert opened.pop() == path
    del recent[1:]
    recent.insert(0, Path("/b/new & old.xml"))
    page.hide()
    page.show()
    QApplication.processEvents()
    assert [link.text() for link in links("recent")] == ["new && old.xml", recent[1].name]
    for mode in ("light", "dark"):
        theme.apply(qapp, mode)
        assert {link.palette().buttonText().color().name() for link in links()} == {theme.color("accent").name()}
        assert welcome._hint.palette().windowText().color() == theme.color("muted")


# --- menus -----------------------------------------------------------------------------------------------------------


class Bench:
    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        self.shell = LightShell(qtbot, folder)
        self.window = QMainWindow()
        qtbot.addWidget(self.window)
        self.actions = Actions(self.window)
        self.refreshed, self.filled = [], []
        docks = SimpleNamespace(all=[SimpleNamespace(toggleViewAction=lambda: self.actions["dock"])])
        layouts = SimpleNamespace(fill=self.filled.append)
        self.menus = Menus(
            self.window, self.shell.context, self.actions, self.shell.files, self.shell.tabs, docks, layouts,
            lambda: self.refreshed.append(1),
        )  # type: ignore[arg-type]  # fmt: skip

    def popped(self) -> QMenu:
        (menu,) = [m for m in self.window.findChildren(QMenu) if m.isVisible()]
        return menu


@pytest.fixture
def bench(qtbot: QtBot, tmp_path: Path) -> Bench:
    return Bench(qtbot, tmp_path)


def test_menus_of_files_say_that_there_are_none(bench: Bench, monkeypatch) -> None:
    monkeypatch.setattr(menus_module, "sample_files", list)
    for name, text in (("<samples>", "No samples are installed"), ("<recent>", "No recent documents")):
        for _ in range(2):
            bench.menus.named[name].aboutToShow.emit()
        (action,) = bench.menus.named[name].actions()
        assert (action.text(), action.isEnabled()) == (text, False)


def test_the_menu_bar_has_every_section_in_its_order(bench: Bench) -> None:
    def flat(entries) -> list[str]:
        found = []
        for entry in entries:
            if entry is None:
                found.append("-")
            elif isinstance(entry, tuple):
                found += [f"> {entry[0]}", *flat(entry[1]), "<"]
            elif not entry.startswith("<"):
                found += [f"{entry} 1", f"{entry} 2"]
        return found

    def read(menu: QMenu) -> list[str]:
        found = []
        for action in menu.actions():
            if action.isSeparator():
                found.append("-")
            elif action.menu() is not None:
                assert action.menu().toolTipsVisible()
                found += [f"> {action.text()}", *read(action.menu()), "<"]
            elif action.objectName() != "dock":
                found.append(action.objectName())
        return found

    bar = bench.window.menuBar().actions()
    assert [action.text() for action in bar] == [title for title, _ in menus_module.MENUS]
    for action, (_, entries) in zip(bar, menus_module.MENUS, strict=True):
        assert read(action.menu()) == flat(entries)
        assert action.menu().toolTipsVisible()
        before = len(bench.refreshed)
        action.menu().aboutToShow.emit()
        assert len(bench.refreshed) == before + 1
    assert bench.menus.named["<windows>"].actions() == [bench.actions["dock"]]
    bench.menus.named["<layouts>"].aboutToShow.emit()
    assert bench.filled == [bench.menus.named["<layouts>"]]
    names = {menu.objectName() for menu in bench.window.menuBar().findChildren(QMenu)}
    assert {"menu.file", "menu.open_recent", "menu.show_on_nodes", "menu.theme"} <= names


def test_lists_of_documents_open_what_they_name(bench: Bench, tmp_path: Path, monkeypatch) -> None:
    opened: list[Path] = []
    expected: list[list[Path]] = []
    monkeypatch.setattr(bench.shell.files, "open", opened.append)
    monkeypatch.setattr(bench.shell.files, "expect", expected.append)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    samples, recent = bench.menus.named["<samples>"], bench.menus.named["<recent>"]
    for _ in range(2):
        samples.aboutToShow.emit()
        assert [action.text() for action in samples.actions()] == [path.name for path in sample_files()]
    samples.actions()[-1].trigger()
    assert opened.pop() == sample_files()[-1]
    recent.aboutToShow.emit()
    assert [(a.text(), a.isEnabled()) for a in recent.actions()] == [("No recent documents", False)]
    places = [tmp_path / "home" / "a & b.xml", tmp_path / "homestead" / "c.xml", tmp_path / "d.xml"]
    for place in places:
        place.parent.mkdir(exist_ok=True)
        save_document(network(), place)
        bench.shell.files.remember(place)
    monkeypatch.setattr(menus_module, "PATH_WIDTH", 100_000)
    for _ in range(2):
        recent.aboutToShow.emit()
        texts = [str(places[2]), str(places[1]), "~/a && b.xml"]
        assert [a.text() for a in recent.actions() if not a.isSeparator()] == [*texts, "&Clear List"]
    assert [a.toolTip() for a in recent.actions()][:3] == [str(place) for place in places[::-1]]
    assert expected[-1] == places[::-1]
    for action, place in zip(recent.actions(), places[::-1], strict=False):
        action.trigger()
        assert opened.pop() == place
    recent.actions()[-1].trigger()
    recent.aboutToShow.emit()
    assert [a.text() for a in recent.actions()] == ["No recent documents"]


@pytest.mark.parametrize("saved", [True, False])
def test_the_menu_of_a_tab_is_about_its_document(bench: Bench, tmp_path: Path, monkeypatch, saved: bool) -> None:
    path = tmp_path / "in" / "net.xml" if saved else None
    tab = bench.shell.add(network(name="fresh"), path)
    done: list[object] = []
    monkeypatch.setattr(bench.shell.files, "close", lambda opened: done.append(("close", opened)))
    monkeypatch.setattr(bench.shell.files, "close_others", lambda opened: done.append(("others", opened)))
    monkeypatch.setattr(QDesktopServices, "openUrl", done.append)
    for count in (1, 2):
        bench.menus.show_for_tab(tab, QPoint(0, 0))
        menu = bench.popped()
        entries = {action.objectName(): action for action in menu.actions() if not action.isSeparator()}
        assert [(name, action.text()) for name, action in entries.items()] == [
            ("tabs.menu.close", "&Close"), ("tabs.menu.close_others", "Close &Others"),
            ("tabs.menu.open_folder", "Open Containing &Folder"), ("tabs.menu.copy_path", "Copy &Path"),
        ]  # fmt: skip
        close, others, folder, copy = entries.values()
        assert others.isEnabled() is (count > 1)
        assert (folder.isEnabled(), copy.isEnabled()) == (saved, saved)
        why = str(path) if saved else "Unavailable: the network has not been saved"
        assert (folder.toolTip(), copy.toolTip()) == (why, why)
        close.trigger()
        assert done.pop() == ("close", tab)
        if count > 1:
            others.trigger()
            assert done.pop() == ("others", tab)
        if saved:
            folder.trigger()
            assert done.pop() == QUrl.fromLocalFile(str(path.parent))
            copy.trigger()
            assert QGuiApplication.clipboard().text() == str(path)
        menu.close()
        QApplication.processEvents()
        bench.shell.add(network(name="other"))


def test_the_menu_of_the_canvas_has_its_sections_and_input_actions_only_where_they_can_be_used(bench: Bench) -> None:
    bench.shell.add(network())
    for enabled in (False, True):
        for action in bench.actions.section("Canvas/input"):
            action.setEnabled(enabled)
        bench.refreshed.clear()
        bench.menus.show_for_canvas(QPoint(0, 0))
        assert bench.refreshed == [1]
        menu = bench.popped()
        expected: list[str] = []
        for section in CONTEXT_MENU:
            names = [action.objectName() for action in bench.actions.section(section)]
            if section == "Canvas/input" and not enabled:
                names = []
            expected += ["-"] if expected and names else []
            expected += ["Number Format"] if section == FORMATS else names
        found = [
            "-" if a.isSeparator() else a.text() if a.menu() is not None else a.objectName() for a in menu.actions()
        ]
        assert found == expected
        formats = next(a.menu() for a in menu.actions() if a.menu() is not None)
        assert formats.actions() == bench.actions.section(FORMATS)
        menu.close()
        QApplication.processEvents()


# --- the documentation -----------------------------------------------------------------------------------------------


def test_the_window_is_used_while_the_documentation_is_open(qtbot: QtBot) -> None:
    window = shown(qtbot, QLineEdit(), 300, 40)
    MainWindow.show_docs(cast(MainWindow, window))
    (viewer,) = window.findChildren(DocsViewer)
    assert (viewer.isVisible(), viewer.isWindow(), viewer.isModal()) == (True, True, False)
    assert QApplication.activeModalWidget() is None
    QTest.keyClicks(window, "typed")
    assert window.text() == "typed"
    viewer.close()
    qtbot.waitUntil(lambda: not window.findChildren(DocsViewer))
