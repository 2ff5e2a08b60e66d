"""Tabs and windows: real keys, clicks, drags and files."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QFileSystemWatcher, QMimeData, QPoint, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QContextMenuEvent, QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QListWidget, QMenu, QTabBar, QToolButton

from app.ui.document.document import Document
from app.ui.document.unsaved import UnsavedDialog
from app.ui.engine.analysis import analysis_of
from app.ui.engine.result import Phase
from app.ui.shell import session
from app.ui.shell.panels import PANELS
from app.ui.shell.window import MainWindow, new_window, shown_windows
from app.ui.widgets.findings import FindingsDialog
from app.ui.widgets.tooltips import plain_tip
from designer.files.document import read_document, save_document
from designer.files.settings import Settings, save_settings, settings_path
from designer.graph import commands
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.registry import default_registry

LEFT, MIDDLE = Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton
NO_KEYS = Qt.KeyboardModifier.NoModifier


def network(count: int = 3) -> Graph:
    layers = [Layer("in", "input", params={"dims": "16x16x3"})]
    for number in range(1, count):
        layers.append(Layer(f"n{number}", "identity", (320 * number, 0), (Source(layers[-1].name),)))
    return Graph(layers)


@pytest.fixture
def files(tmp_path) -> list[Path]:
    paths = [tmp_path / name for name in ("one.xml", "two.xml", "three.xml")]
    for number, path in enumerate(paths):
        save_document(network(3 + number), path)
    return paths


@pytest.fixture
def window(empty_window):
    return empty_window


def texts(window) -> list[str]:
    bar = window.tabs.bar
    return [bar.tabText(i) for i in range(bar.count())]


def names(window) -> list[str]:
    return [o.document.title for o in window.tabs.all]


def press(window, keys: str) -> None:
    window.canvas.viewer.setFocus()
    QApplication.processEvents()
    QTest.keySequence(window.canvas.viewer, keys)


def change(document: Document, text: str = "Mine") -> None:
    assert document.do(lambda g: commands.set_property(g, "author_notes", text))


def drop(target, paths: list[Path]) -> bool:
    """Drag files onto a widget as another program does; whether they were taken."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(p)) for p in paths])
    place = target.rect().center()
    enter = QDragEnterEvent(place, Qt.DropAction.CopyAction, mime, LEFT, NO_KEYS)
    QApplication.sendEvent(target, enter)
    if not enter.isAccepted():
        return False
    QApplication.sendEvent(target, QDropEvent(QPointF(place), Qt.DropAction.CopyAction, mime, LEFT, NO_KEYS))
    return True


# --- tabs ----------------------------------------------------------------------------------------------------------


def test_each_document_has_a_tab_and_an_open_one_is_not_opened_again(window, files):
    window.files.new()
    window.files.open_all(files)
    assert texts(window) == ["one.xml", "two.xml", "three.xml"]  # the blank one made room
    assert window.context.root.path == files[0]
    assert window.files.open(files[1])
    assert len(window.tabs) == 3
    assert window.context.root.path == files[1]
    assert window.windowTitle().startswith("two.xml")
    assert window.tabs.bar.tabToolTip(1) == str(files[1])


def test_a_click_shows_another_document(window, files):
    window.files.open_all(files)
    bar = window.tabs.bar
    QTest.mouseClick(bar, LEFT, NO_KEYS, bar.tabRect(2).center() - QPoint(20, 0))
    assert window.context.root.path == files[2]
    assert set(window.canvas.projection.layers) == {"in", "n1", "n2", "n3", "n4"}


def test_keys_go_around_the_tabs(window, files):
    window.files.open_all(files)
    press(window, "Ctrl+Tab")
    assert window.context.root.path == files[1]
    press(window, "Ctrl+Shift+Tab")
    press(window, "Ctrl+Shift+Tab")
    assert window.context.root.path == files[2]
    press(window, "Ctrl+Tab")
    assert window.context.root.path == files[0]


def test_what_is_not_saved_has_a_mark(window, files):
    window.files.open_all(files[:2])
    change(window.context.root)
    assert texts(window) == ["● one.xml", "two.xml"]
    assert "Unsaved changes" in window.tabs.bar.tabToolTip(0)
    assert "unsaved" in window.tabs.bar.accessibleTabName(0)
    QApplication.processEvents()
    assert window.isWindowModified()
    window.tabs.step(1)
    QApplication.processEvents()
    assert not window.isWindowModified()
    window.tabs.step(1)
    press(window, "Ctrl+S")
    assert texts(window) == ["one.xml", "two.xml"]


def test_ordinary_names_of_documents_are_whole_however_many_are_open(window, tmp_path):
    window.resize(1366, 768)
    paths = [tmp_path / f"denoiser_analysis_{number}.xml" for number in range(9)]
    for path in paths:
        save_document(network(3), path)
    window.files.open_all(paths)
    bar = window.tabs.bar
    QApplication.processEvents()
    for index in range(bar.count()):
        needed = bar.fontMetrics().horizontalAdvance(bar.tabText(index))
        assert bar.tabRect(index).width() > needed + bar.tabButton(index, QTabBar.ButtonPosition.RightSide).width()


def test_files_of_the_same_name_show_their_folder(window, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        save_document(network(), tmp_path / folder / "net.xml")
        window.files.open(tmp_path / folder / "net.xml")
    assert texts(window) == ["a/net.xml", "b/net.xml"]
    window.files.close()
    assert texts(window) == ["net.xml"]


def test_view_selection_and_undo_belong_to_the_document(window, files):
    window.files.open_all(files[:2])
    viewer = window.canvas.viewer
    viewer.zoom_by(1.7)
    viewer.go(QPointF(320, 40))
    window.context.select(("n1",))
    change(window.context.root)
    zoom, centre = viewer.zoom, viewer.visible_center()
    window.tabs.step(1)
    assert window.context.selection == ()
    assert window.context.root.history.undo_title is None
    viewer.zoom_by(0.5)
    window.context.select(("in", "n2"))
    window.tabs.step(1)
    assert window.context.selection == ("n1",)
    assert [i.layer for i in viewer.selected_layers()] == ["n1"]
    assert abs(viewer.zoom - zoom) < 0.01
    assert (viewer.visible_center() - centre).manhattanLength() < 4
    assert window.context.root.history.undo_title is not None
    window.tabs.step(1)
    assert window.context.selection == ("in", "n2")


def test_new_networks_are_told_apart(window):
    for _ in range(3):
        window.files.new()
        change(window.context.root)
    assert texts(window) == ["● network", "● network (2)", "● network (3)"]


def test_the_inside_of_a_template_is_shown_again(window, files):
    window.files.open_all(files[:2])
    block = Template("block", (Layer("i", "template_input"), Layer("o", "template_output", (320, 0), (Source("i"),))))
    instance = Layer("b", "template", (0, 320), (Source("in"),), {"template": "block"})
    window.context.root.do(Edit("Add", layers={"b": (None, instance)}, templates={"block": (None, block)}))
    assert window.context.enter("b")
    window.context.select(("o",))
    window.tabs.step(1)
    assert window.context.scope == ()
    window.tabs.step(1)
    assert window.context.document.graph.name == "block"
    assert window.context.selection == ("o",)
    assert set(window.canvas.projection.layers) == {"i", "o"}


def test_middle_click_and_button_close(window, files):
    window.files.open_all(files)
    bar = window.tabs.bar
    QTest.mouseClick(bar, MIDDLE, NO_KEYS, bar.tabRect(1).center())
    assert texts(window) == ["one.xml", "three.xml"]
    assert window.context.root.path == files[0]
    button = bar.tabButton(0, bar.ButtonPosition.RightSide)
    assert isinstance(button, QToolButton)
    assert button.accessibleName() == "Close one.xml"
    QTest.mouseClick(button, LEFT)
    assert texts(window) == ["three.xml"]
    assert window.context.root.path == files[2]


def test_close_and_reopen_by_key(window, files):
    window.files.open_all(files)
    press(window, "Ctrl+W")
    press(window, "Ctrl+W")
    assert texts(window) == ["three.xml"]
    press(window, "Ctrl+Shift+T")
    press(window, "Ctrl+Shift+T")
    assert texts(window) == ["three.xml", "two.xml", "one.xml"]
    assert window.context.root.path == files[0]
    QApplication.processEvents()
    assert "no document has been closed" in window.actions_["file.reopen"].toolTip()


def test_documents_closed_together_are_reopened_one_by_one(window, files):
    window.files.open_all(files)
    window.files.close_others(window.tabs.all[1])
    assert texts(window) == ["two.xml"]
    window.files.reopen()
    assert texts(window) == ["two.xml", "three.xml"]
    assert window.files.closed == 1


def test_the_last_documents_that_were_closed_are_remembered(window, files, monkeypatch):
    monkeypatch.setattr("app.ui.shell.files.CLOSED", 2)
    window.files.open_all(files)
    window.files.close_others(window.tabs.all[0])
    window.files.close()
    assert window.files.closed == 2
    window.files.reopen()
    window.files.reopen()
    assert set(texts(window)) >= {"one.xml", "three.xml"}
    assert "two.xml" not in texts(window)
    assert window.files.closed == 0


def test_the_last_tab_gives_way_to_a_new_network(window, files):
    window.files.open(files[0])
    press(window, "Ctrl+W")
    assert texts(window) == ["network"]
    assert len(window.context.root.graph) == 0
    QApplication.processEvents()
    assert "no other network" in window.actions_["tab.next"].toolTip()


def test_tabs_are_dragged_into_another_order(window, files):
    window.files.open_all(files)
    bar = window.tabs.bar
    start, end = bar.tabRect(0).center(), bar.tabRect(2).center() + QPoint(20, 0)
    QTest.mousePress(bar, LEFT, NO_KEYS, start)
    for step in range(1, 11):
        QTest.mouseMove(bar, start + (end - start) * step / 10)
    QTest.mouseRelease(bar, LEFT, NO_KEYS, end)
    assert names(window) == ["two.xml", "three.xml", "one.xml"]
    assert window.context.root.path == files[0]
    press(window, "Ctrl+Tab")
    assert window.context.root.path == files[1]


def test_the_menu_of_a_tab(window, files, monkeypatch):
    window.files.open_all(files)

    def choose(name: str) -> None:
        bar = window.tabs.bar
        bar.customContextMenuRequested.emit(bar.tabRect(1).center())
        menu = window.findChild(QMenu, "tabs.menu")
        action = next(a for a in menu.actions() if a.objectName() == f"tabs.menu.{name}")
        action.trigger()
        menu.close()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)

    choose("copy_path")
    assert QApplication.clipboard().text() == str(files[1])
    shown = []
    monkeypatch.setattr("app.ui.shell.menus.QDesktopServices.openUrl", lambda url: shown.append(url.toLocalFile()))
    choose("open_folder")
    assert shown == [str(files[1].parent)]
    choose("close_others")
    assert texts(window) == ["two.xml"]
    window.menus.show_for_tab(window.tabs.all[0], QPoint(0, 0))
    menu = window.findChild(QMenu, "tabs.menu")
    assert [action.text() for action in menu.actions() if not action.isEnabled()] == ["Close &Others"]
    menu.close()


def test_tips_of_entries_for_files_are_no_markup(window, tmp_path):
    path = tmp_path / "<b>bold<b>.xml"
    save_document(network(), path)
    assert window.files.open(path)
    window.menus.fill_recent()
    assert window.menus.named["<recent>"].actions()[0].toolTip() == plain_tip(str(path))
    window.menus.show_for_tab(window.tabs.all[0], QPoint(0, 0))
    menu = window.findChild(QMenu, "tabs.menu")
    tips = {action.objectName(): action.toolTip() for action in menu.actions()}
    assert tips["tabs.menu.open_folder"] == tips["tabs.menu.copy_path"] == plain_tip(str(path))
    menu.close()


def test_the_tabs_are_stored_while_they_are_open(window, files):
    """After a crash the next start opens them."""
    window.files.open_all(files)
    window.tabs.bar.setCurrentIndex(1)
    assert session.stored_tabs(window.settings) == [(files[0], False), (files[1], True), (files[2], False)]


def test_tabs_are_reached_by_keys(window, files):
    window.files.open_all(files)
    bar = window.tabs.bar
    bar.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(bar, Qt.Key.Key_Right)
    assert window.context.root.path == files[1]
    place = QPoint(bar.width() - 2, 2)  # next to all tabs
    QApplication.sendEvent(bar, QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, place, bar.mapToGlobal(place)))
    menu = window.findChild(QMenu, "tabs.menu")
    next(a for a in menu.actions() if a.objectName() == "tabs.menu.close").trigger()
    menu.close()
    assert texts(window) == ["one.xml", "three.xml"]


def test_saving_under_another_name_renames_the_tab(window, files, tmp_path, monkeypatch):
    window.files.open(files[0])
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(tmp_path / "other.xml"), ""))
    QApplication.processEvents()
    window.actions_["file.save_as"].trigger()
    assert texts(window) == ["other.xml"]
    assert read_document(tmp_path / "other.xml").graph == read_document(files[0]).graph


@pytest.mark.parametrize("where", ["tab", "window"])
def test_a_file_that_is_open_elsewhere_is_not_saved_over(window, files, where, monkeypatch, qtbot):
    window.files.open_all(files[:2] if where == "tab" else files[:1])
    other = window if where == "tab" else new_window(window)
    other.files.open(files[1])
    changed = next(o for o in other.tabs.all if o.document.path == files[1]).document
    changed.do(lambda g: commands.add_layer(g, Layer("mine", "identity")))
    window.tabs.show(window.tabs.find(files[0]))
    before = files[1].read_bytes()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(files[1]), ""))
    QApplication.processEvents()
    window.actions_["file.save_as"].trigger()
    dialog = window.findChild(FindingsDialog, "findings")
    assert dialog is not None
    assert "is open in another tab or window" in dialog.findChild(QListWidget).item(0).text()
    dialog.close()
    assert files[1].read_bytes() == before
    assert window.context.root.path == files[0]
    if other is window:
        window.tabs.remove(window.tabs.find(files[1]))
    else:
        other.close_now()
    window.actions_["file.save_as"].trigger()
    assert window.context.root.path == files[1]
    assert read_document(files[1]).graph == read_document(files[0]).graph


def test_a_document_that_others_set_has_a_tab_too(window, files):
    window.files.open(files[0])
    document = Document(network(7), window.context.registry, parent=window.context)
    window.context.set_document(document)
    assert texts(window) == ["one.xml", "network"]
    assert window.tabs.shown.document is document
    window.tabs.step(1)
    assert window.context.root.path == files[0]


def test_an_analysis_goes_on_when_one_comes_back(window, files, qtbot):
    """Never a picture of another document; and no click is needed to see one's own again."""
    window.files.open_all(files[:2])
    window.start_engine_client()
    analysis = analysis_of(window.context)
    window.context.root.change_settings(random_seed=0)
    params = {"dims": "16x16x3"}
    window.context.root.do(lambda g: commands.set_params(g, {"in": params}))
    window.context.root.do(lambda g: commands.add_layer(g, Layer("out", "output", (960, 0), (Source("n2"),))))
    analysis.launch()
    qtbot.waitUntil(lambda: analysis.result is not None, timeout=30_000)
    window.tabs.step(1)
    assert analysis.result is None
    QCoreApplication.processEvents()
    assert analysis.phase is Phase.IDLE  # the other one was never launched
    window.tabs.step(1)
    assert analysis.result is None
    qtbot.waitUntil(lambda: analysis.result is not None, timeout=30_000)
    assert set(analysis.result.outputs) == {"out"}


# --- dragging files in -------------------------------------------------------------------------------------------------


def test_files_dropped_on_the_canvas_open_in_tabs(window, files, tmp_path, qtbot):
    other = tmp_path / "notes.txt"
    other.write_text("no network")
    assert not drop(window.canvas.viewer.viewport(), [other])
    assert drop(window.canvas.viewer.viewport(), [other, *files])
    qtbot.waitUntil(lambda: len(window.tabs) == 3)
    assert texts(window) == ["one.xml", "two.xml", "three.xml"]
    assert window.context.root.path == files[0]
    assert drop(window.tabs.bar, [files[2]])
    qtbot.waitUntil(lambda: window.context.root.path == files[2])
    assert len(window.tabs) == 3


def test_an_unreadable_one_among_several_is_told_and_the_others_open(window, files, tmp_path):
    bad = tmp_path / "bad.xml"
    bad.write_text("<NetworkModel")
    window.files.open_all([files[0], bad, files[1]])
    assert texts(window) == ["one.xml", "two.xml"]
    dialog = next(w for w in QApplication.topLevelWidgets() if w.objectName() == "findings")
    assert dialog.isVisible()
    dialog.close()


def test_recent_files_are_shortened_in_the_middle(window, tmp_path):
    folder = tmp_path / ("a_folder_with_a_very_long_name_" * 4) / ("and_another_one_below_it_" * 4)
    folder.mkdir(parents=True)
    path = folder / "net.xml"
    save_document(network(), path)
    window.files.open(path)
    window.menus.fill_recent()
    entry = window.menus.named["<recent>"].actions()[0]
    assert "…" in entry.text()
    assert entry.text().endswith("net.xml")
    assert entry.toolTip() == str(path.resolve())


# --- closing and starting again --------------------------------------------------------------------------------------


def answer_many(action) -> None:
    """Do something with the question about several documents as soon as it appears."""

    def act() -> None:
        box = QApplication.activeModalWidget()
        if isinstance(box, UnsavedDialog) and box.isActiveWindow():  # until then, keys go to the window behind it
            action(box)
        else:
            QTimer.singleShot(20, act)

    QTimer.singleShot(20, act)


def test_closing_lists_all_documents_that_are_not_saved(window, files):
    window.files.open_all(files)
    for opened in (window.tabs.all[0], window.tabs.all[2]):
        change(opened.document)
    seen = []

    def cancel(box) -> None:
        seen.extend(check.text() for check in box.boxes)
        QTest.mouseClick(box.cancel, LEFT)

    answer_many(cancel)
    assert not window.close()
    assert seen == ["one.xml", "three.xml"]
    assert window.isVisible()

    def save_the_second(box) -> None:
        QTest.mouseClick(box.boxes[0], LEFT, NO_KEYS, QPoint(8, box.boxes[0].height() // 2))
        QTest.mouseClick(box.save, LEFT)

    answer_many(save_the_second)
    assert window.close()
    assert "author_notes" not in read_document(files[0]).graph.properties
    assert read_document(files[2]).graph.properties["author_notes"] == "Mine"


def test_discarding_all_saves_nothing(window, files):
    window.files.open_all(files)
    for opened in window.tabs.all:
        change(opened.document)
    before = [p.read_bytes() for p in files]

    def nothing_marked(box) -> None:
        for check in box.boxes:
            QTest.keyClick(check, Qt.Key.Key_Space)
        assert not box.save.isEnabled()
        assert box.save.toolTip()
        QTest.mouseClick(box.discard, LEFT)

    answer_many(nothing_marked)
    assert window.close()
    assert [p.read_bytes() for p in files] == before


def test_open_tabs_come_back_at_the_next_start(qtbot, settings, files):
    first = MainWindow(default_registry(), settings)
    qtbot.addWidget(first)
    first.show()
    qtbot.waitExposed(first)
    last = files[2].with_name("last.xml")
    last.write_bytes(files[2].read_bytes())
    first.files.open_all([*files, last])
    first.tabs.show(first.tabs.all[1])
    first.close()
    files[2].unlink()
    second = MainWindow(default_registry(), settings)
    qtbot.addWidget(second)
    second.show()
    qtbot.waitExposed(second)
    second.begin(None)
    assert texts(second) == ["one.xml", "two.xml", "last.xml"]
    assert second.context.root.path == files[1]
    second.close()
    third = MainWindow(default_registry(), settings)
    qtbot.addWidget(third)
    third.show()
    third.begin([files[0]])
    assert texts(third) == ["one.xml"]
    third.close()


@pytest.mark.parametrize("given", [True, False])
def test_only_the_sample_runs_at_the_first_start(qtbot, settings, files, monkeypatch, given):
    save_settings(Settings(weights=str(files[0].with_suffix(".pt"))), settings_path(files[0]))
    runs = []

    def run(window):
        runs.append(window)

    monkeypatch.setattr(MainWindow, "run_analysis", run)
    window = MainWindow(default_registry(), settings)
    qtbot.addWidget(window)
    window.begin([files[0]] if given else None)
    assert window.context.root.settings.weights
    assert runs == ([] if given else [window])
    window.close()
    again = MainWindow(default_registry(), settings)
    qtbot.addWidget(again)
    again.begin(None)
    assert len(runs) == (not given)
    again.close()


def test_the_command_opens_several_documents(files):
    code = (
        "import sys\n"
        "from PySide6.QtWidgets import QApplication\n"
        "from app import main\n"
        "from app.ui.shell.window import shown_windows\n"
        "def run(app):\n"
        "    while not shown_windows() or len(shown_windows()[0].tabs) < 2:\n"
        "        QApplication.processEvents()\n"
        "    window = shown_windows()[0]\n"
        "    print([o.document.title for o in window.tabs.all], window.context.root.title)\n"
        "    window.close()\n"
        "    return 0\n"
        "QApplication.exec = run\n"
        "main.main()\n"
    )
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-c", code, *(str(p) for p in files[:2])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "['one.xml', 'two.xml'] one.xml", done.stderr
    assert done.returncode == 0, done.stderr


# --- windows ---------------------------------------------------------------------------------------------------------


def test_another_window_has_everything_of_its_own(window, files, qtbot):
    window.files.open(files[0])
    press(window, "Ctrl+Shift+N")
    (other,) = [w for w in shown_windows() if w is not window]
    assert other.context is not window.context
    assert other.context.engine is not window.context.engine
    assert texts(other) == ["network"]
    other.files.open(files[1])
    assert texts(other) == ["two.xml"]
    assert texts(window) == ["one.xml"]
    assert window.files.open(files[1])  # it is open there: that window comes up
    assert texts(window) == ["one.xml"]
    assert other.close()
    assert window.isVisible()
    assert shown_windows() == [window]


def test_a_second_window_covers_neither_the_first_nor_its_stored_tabs(window, files):
    window.files.open_all(files[:2])
    stored = session.stored_tabs(window.settings)
    other = new_window(window)
    assert other.pos() != window.pos()
    other.files.open(files[2])
    window.tabs.step(1)
    assert session.stored_tabs(window.settings) == stored
    other.close()
    window.tabs.step(1)
    assert session.stored_tabs(window.settings) == stored
    window.tabs.step(1)
    assert [now for _, now in session.stored_tabs(window.settings)] == [False, True]


def test_quitting_asks_for_all_windows(window, files, qtbot):
    window.files.open(files[0])
    other = new_window(window)
    other.files.open(files[1])
    change(other.context.root)

    def stay() -> None:
        box = QApplication.activeModalWidget()
        if box is not None and box.objectName() == "unsaved":
            QTest.keyClick(box, Qt.Key.Key_Escape)
        else:
            QTimer.singleShot(20, stay)

    QTimer.singleShot(20, stay)
    QApplication.processEvents()
    window.actions_["file.quit"].trigger()
    assert window.isVisible()
    assert other.isVisible()
    change(window.context.root)  # the window that was asked first and had nothing to lose then is asked again
    QTimer.singleShot(20, stay)
    assert not window.close()
    for each in (window, other):
        each.context.root.history.mark_clean()
    window.actions_["file.quit"].trigger()
    assert not window.isVisible()
    assert shown_windows() == []


# --- nothing stays behind --------------------------------------------------------------------------------------------


def test_closing_a_tab_frees_the_document(window, files, qtbot):
    window.files.open_all(files[:2])
    for spec in PANELS:
        window.docks.show(spec.id)
    change(window.context.root)
    window.context.select(("n1",))
    QCoreApplication.processEvents()
    window.context.undo()
    document, graph = weakref.ref(window.context.root), weakref.ref(window.context.root.graph)
    opened = weakref.ref(window.tabs.shown)
    assert window.files.close()

    def gone() -> bool:
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        gc.collect()
        return document() is None and graph() is None and opened() is None

    qtbot.waitUntil(gone, timeout=3000)


def test_many_tabs_stay_readable(window, tmp_path):
    for number in range(12):
        path = tmp_path / f"a_network_with_a_name_that_is_rather_long_{number}.xml"
        save_document(network(), path)
        window.files.open(path)
    bar = window.tabs.bar
    assert all(150 <= bar.tabRect(i).width() <= 260 for i in range(bar.count()))
    assert bar.width() <= window.canvas.width()


def test_twenty_tabs_come_and_go(window, tmp_path):
    """No watcher, timer or widget stays of closed tabs."""
    paths = []
    for number in range(20):
        path = tmp_path / f"net{number}.xml"
        save_document(network(), path)
        paths.append(path)
    window.files.open(paths[0])
    children = len(window.tabs.bar.children())
    timers = len(window.findChildren(QTimer))
    window.files.open_all(paths)
    assert len(window.tabs) == 20
    window.files.close_others(window.tabs.all[0])
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert len(window.tabs.bar.children()) <= children + 2
    assert len(window.findChildren(QTimer)) <= timers
    assert window.findChild(QFileSystemWatcher).files() == [str(paths[0])]


def test_a_tab_says_what_happened_to_its_file_and_follows_the_name_of_the_network(window, files):
    window.files.open_all(files)
    bar, opened = window.tabs.bar, window.tabs.all
    text = files[1].read_text()

    def tips() -> list[str]:
        for each in opened:
            each.check_disk()
        return [bar.tabToolTip(number) for number in range(bar.count())]

    assert tips() == [str(path) for path in files]
    files[1].write_text(text.replace("16x16x3", "8x8x3"))
    files[2].unlink()
    wanted = [str(files[0]), f"{files[1]}\nChanged by another program", f"{files[2]}\nThe file no longer exists"]
    assert [tip.replace("<br>", "\n") for tip in tips()] == wanted
    window.tabs.show(opened[2])
    change(window.context.root)
    wanted[2] = f"{files[2]}\nUnsaved changes\nThe file no longer exists"
    assert tips()[2] == wanted[2]
    files[1].write_text(text)
    assert tips()[1] == str(files[1])
    window.context.root.undo()
    window.files.new()
    document = window.context.root
    assert document.do(lambda g: commands.set_property(g, "name", "denoiser"))
    assert texts(window)[-1] == "● denoiser"
    assert document.do(lambda g: commands.set_property(g, "name", "other"))
    assert texts(window)[-1] == "● other"
    document.undo()
    assert texts(window)[-1] == "● denoiser"
    document.undo()
    assert texts(window)[-1] == "network"


@pytest.mark.parametrize("close", range(4))
def test_the_neighbor_of_a_closed_tab_is_shown(window, files, tmp_path, close):
    """That on the right, or on the left for the last tab; another one stays shown."""
    save_document(network(), tmp_path / "four.xml")
    window.files.open_all([*files, tmp_path / "four.xml"])
    opened = window.tabs.all
    for shown in range(4):
        window.tabs.show(opened[shown])
        expected = opened[shown] if close != shown else opened[shown + 1] if shown < 3 else opened[shown - 1]
        window.files.close(opened[close])
        assert window.tabs.shown is expected
        assert window.context.root is expected.document
        window.files.reopen()
        window.tabs.bar.moveTab(3, close)
        opened = window.tabs.all
