"""The watch of the disk without a window: what is watched, what the bar offers, and what each choice does."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import os
from collections.abc import Callable
from pathlib import Path

from light_shell import LightShell, network
from PySide6.QtCore import QFileSystemWatcher
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from app.ui.document.locations import sample_files
from app.ui.document.open_document import OpenDocument
from app.ui.shell import disk_watch
from designer.files.document import read_document, save_document, write_document
from designer.files.settings import Settings, save_settings, settings_path, stored_settings
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Foreign


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path) -> LightShell:
    return LightShell(qtbot, tmp_path)


@pytest.fixture
def place(tmp_path: Path) -> Callable[[str], Path]:
    """Write a network to a file of this name."""

    def write(name: str, graph: Graph | None = None) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        save_document(graph if graph is not None else network(), path)
        return path

    return write


def watched(shell: LightShell) -> set[str]:
    watcher = shell.findChild(QFileSystemWatcher)
    return {*watcher.files(), *watcher.directories()}


def opened(shell: LightShell, path: Path, *, show: bool = True) -> OpenDocument:
    found = shell.files.read(path)
    shell.tabs.add(found, show=show)
    return found


def bar(shell: LightShell) -> tuple[str, list[tuple[str, str, str]]] | None:
    """The text of the bar with name, title and tip of each button; None while it is hidden."""
    if shell.disk.bar.isHidden():
        return None
    buttons = [b for b in shell.disk.bar.findChildren(QToolButton) if not b.isHidden()]
    return shell.disk.bar.text(), [(b.objectName(), b.text(), b.toolTip()) for b in buttons]


def press(shell: LightShell, name: str) -> None:
    (button,) = [b for b in shell.disk.bar.findChildren(QToolButton, f"disk.{name}") if not b.isHidden()]
    button.click()


# --- what is watched -------------------------------------------------------------------------------------------------


def test_files_and_folders_of_all_tabs_are_watched_and_no_others(shell, place, tmp_path) -> None:
    assert watched(shell) == set()
    shell.add(network())
    assert watched(shell) == set(), "a network without a file"
    one, two, three = place("a/one.xml"), place("a/two.xml"), place("b/three.xml")
    first = opened(shell, one)
    assert watched(shell) == {str(one), str(one.parent)}
    second = opened(shell, three, show=False)
    assert watched(shell) == {str(one), str(one.parent), str(three), str(three.parent)}
    third = opened(shell, two)
    opened(shell, sample_files()[0])
    everything = {str(one), str(two), str(one.parent), str(three), str(three.parent)}
    assert watched(shell) == everything, "samples do not change"
    shell.tabs.remove(second)
    assert watched(shell) == everything - {str(three), str(three.parent)}
    shell.tabs.remove(first)
    assert watched(shell) == {str(two), str(two.parent)}
    shell.tabs.show(third)
    third.save(tmp_path / "moved.xml")
    assert watched(shell) == {str(tmp_path / "moved.xml"), str(tmp_path)}
    (tmp_path / "moved.xml").unlink()
    shell.disk.check()
    assert watched(shell) == {str(tmp_path)}, "the folder in which it may come back"


def test_a_file_that_was_replaced_by_the_same_bytes_is_watched_anew(shell, place, tmp_path) -> None:
    path = place("one.xml")
    opened(shell, path)
    watcher = shell.findChild(QFileSystemWatcher)
    watcher.removePath(str(path))  # as happens when another file takes its place
    other = tmp_path / "new.xml"
    other.write_bytes(path.read_bytes())
    os.replace(other, path)
    shell.disk.check()
    assert shell.tabs.shown.disk == "same"
    assert watched(shell) == {str(path), str(tmp_path)}


def test_every_tab_is_checked_and_after_the_end_none(shell, place, qtbot) -> None:
    paths = [place(f"{name}.xml") for name in ("one", "two", "three")]
    tabs = [opened(shell, path) for path in paths]
    for path in paths[:2]:
        path.write_bytes(write_document(network("32x32x3")))
    shell.disk.check()
    assert [tab.disk for tab in tabs] == ["changed", "changed", "same"]
    shell.disk.end()
    assert watched(shell) == set()
    paths[2].unlink()
    shell.disk.check()
    assert tabs[2].disk == "same"
    assert watched(shell) == set()


def test_a_notification_begins_a_rest_that_others_do_not_prolong(shell, place) -> None:
    watcher, begun = shell.findChild(QFileSystemWatcher), []
    rest = shell.disk._rest
    path = place("one.xml")
    opened(shell, path)
    rest.stop()
    watcher.fileChanged.emit(str(path))
    assert rest.isActive()
    assert (rest.isSingleShot(), rest.interval()) == (True, disk_watch.REST)
    start = rest.start
    shell.disk._rest = type("Rest", (), {"isActive": rest.isActive, "start": lambda _: begun.append(start()), "stop": rest.stop})()  # fmt: skip
    watcher.fileChanged.emit(str(path))
    watcher.directoryChanged.emit(str(path.parent))
    assert begun == []
    rest.stop()
    watcher.directoryChanged.emit(str(path.parent))
    assert len(begun) == 1
    path.write_bytes(write_document(network("32x32x3")))
    rest.timeout.emit()
    assert shell.tabs.shown.disk == "changed"


# --- the bar ---------------------------------------------------------------------------------------------------------

CHANGED = [
    ("disk.reload", "&Reload", "Load the file. Undo restores your version"),
    ("disk.keep", "&Keep Mine", "Keep the open version. Saving will replace the file"),
    ("disk.compare", "&Compare", "Show the differences"),
]
GONE = [
    ("disk.save", "&Save Again", "Write the file to its previous location"),
    ("disk.keep", "&Keep Open", "Keep the network open as unsaved"),
]


def test_the_bar_is_of_the_state_of_the_file_of_the_shown_tab(shell, place) -> None:
    assert bar(shell) is None, "nothing is open"
    one, two = place("one.xml"), place("two.xml")
    first, second = opened(shell, one), opened(shell, two)
    changed = "“one.xml” was changed by another program."
    assert bar(shell) is None
    one.write_bytes(write_document(network("32x32x3")))
    shell.disk.check()
    assert bar(shell) is None, "of another tab"
    shell.tabs.show(first)
    assert bar(shell) == (changed, CHANGED)
    two.unlink()
    shell.disk.check()
    assert bar(shell) == (changed, CHANGED)
    shell.tabs.show(second)
    gone = "“two.xml” was moved or deleted. The network is still open in this window."
    assert bar(shell) == (gone, GONE)
    save_document(network(), two)
    shell.disk.check()
    assert bar(shell) is None, "it came back as it was"
    two.write_bytes(write_document(network("8x8x3")))
    shell.disk.check()
    assert bar(shell) == (changed.replace("one", "two"), CHANGED)
    two.unlink()
    shell.disk.check()
    assert bar(shell) == (gone, GONE), "another state has another notice"
    shell.tabs.show(first)
    assert bar(shell) == (changed, CHANGED)
    first.accept_disk()
    assert bar(shell) is None
    one.write_bytes(write_document(network("24x24x3")))
    first.document.do(lambda g: commands.rename_layer(g, "out", "mine"))
    shell.disk.check()
    assert bar(shell) == ("“one.xml” was changed by another program, and you have unsaved changes.", CHANGED)
    press(shell, "compare")
    assert shell.compared == 1
    assert bar(shell) is not None
    shell.add(network())
    assert bar(shell) is None
    shell.tabs.show(first)
    assert bar(shell) is not None


def test_keep_mine_makes_the_open_version_unsaved_and_knows_the_file(shell, place) -> None:
    one = place("one.xml")
    tab = opened(shell, one)
    one.write_bytes(write_document(network("32x32x3")))
    shell.disk.check()
    press(shell, "keep")
    assert bar(shell) is None
    assert (tab.is_clean, tab.disk) == (False, "same")
    assert tab.journal.file is not None, "it is nowhere else"
    shell.disk.check()
    assert bar(shell) is None
    one.write_bytes(write_document(network("48x48x3")))
    shell.disk.check()
    assert bar(shell) is not None, "another change"
    one.unlink()
    shell.disk.check()
    press(shell, "keep")
    shell.disk.check()
    assert (bar(shell), tab.disk) == (None, "same")


def test_save_again_writes_to_the_previous_place(shell, place) -> None:
    one, two = place("one.xml"), place("two.xml")
    first = opened(shell, one)
    opened(shell, two, show=False)
    first.document.do(lambda g: commands.rename_layer(g, "out", "mine"))
    one.unlink()
    shell.disk.check()
    press(shell, "save")
    assert "mine" in read_document(one).graph
    assert (first.is_clean, bar(shell)) == (True, None)
    assert shell.said[-1] == ("info", "Saved one.xml")
    assert str(one) in watched(shell)
    for tab in shell.tabs.all:
        tab.document.history.mark_clean()


# --- reload ----------------------------------------------------------------------------------------------------------

OTHERS = {"input_files": {"gone": "/nowhere.png"}}


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ({}, {}),
        ({}, {"iterations": 20}),
        ({"iterations": 77, **OTHERS}, {}),
        ({"iterations": 77, "threads": 3}, {"iterations": 20, "precision": "fp16", **OTHERS}),
        ({"input_files": {"in": "/a.png", "gone": "/b.png"}}, {"input_files": {"in": "/c.png"}}),
    ],
)
@pytest.mark.parametrize("edited", [False, True])
def test_reload_takes_network_and_settings_as_one_step(shell, place, mine, theirs, edited) -> None:
    one = place("one.xml")
    tab = opened(shell, one)
    document = tab.document
    if mine:
        document.change_settings(**mine)
    if edited:
        document.do(lambda g: commands.rename_layer(g, "out", "mine"))
    before, settings = document.graph.copy(), document.settings
    after = network("32x32x3", features="7")
    after.properties["author_notes"] = "theirs"
    save_document(after, one)
    if theirs:
        save_settings(Settings(**theirs), settings_path(one))
    shell.disk.check()
    shell.said.clear()
    assert shell.disk.reload()
    assert document.graph == read_document(one).graph == after
    stored = Settings(**theirs).pruned(after.layers)
    assert document.settings.pruned(after.layers) == stored
    assert (tab.is_clean, tab.disk, bar(shell)) == (True, "same", None)
    assert shell.said == [("info", "Reloaded one.xml")]
    assert document.history.undo_title == "Reload one.xml"
    assert shell.tabs.all == [tab]
    document.undo()
    assert (document.graph, document.settings) == (before, settings)
    assert not tab.is_clean
    document.redo()
    assert (document.graph, tab.is_clean) == (after, True)


def test_files_of_layers_that_are_gone_are_no_difference_to_the_file(shell, place) -> None:
    one = place("one.xml")
    tab = opened(shell, one)
    document = tab.document
    document.change_settings(**OTHERS)
    document.history.mark_clean()
    settings, undo = document.settings, document.history.undo_title
    one.write_bytes(one.read_bytes() + b"\n")
    shell.disk.check()
    assert tab.disk == "changed"
    assert shell.disk.reload()
    assert (document.settings, document.history.undo_title) == (settings, undo)
    assert (tab.is_clean, tab.disk) == (True, "same")


def test_reload_shows_the_findings_of_the_file_in_place_of_those_before(shell, place) -> None:
    one = place("one.xml")
    tab = opened(shell, one)
    tab.document.reading = (Diagnostic("old", "of the first reading"),)
    text = write_document(network("32x32x3")).decode()
    one.write_text(text.replace('edit_pos="160', 'edit_pos="x160'))
    settings_path(one).write_text("no settings")
    shell.disk.check()
    shown: list[tuple[Diagnostic, ...]] = []
    tab.document.states_changed.connect(lambda: shown.append(tab.document.reading))
    assert shell.disk.reload()
    assert shown[-1] == tab.document.reading
    assert tab.document.reading == (*read_document(one).diagnostics, *stored_settings(one).diagnostics)
    assert [finding.file for finding in tab.document.reading][1:] == [str(settings_path(one))]
    assert len(tab.document.reading) == 2


@pytest.mark.parametrize(
    ("edited", "agrees"), [(False, None), (True, True), (True, False)], ids=["clean", "discarded", "cancelled"]
)
def test_what_no_edit_can_express_replaces_the_tab_in_its_place(shell, place, monkeypatch, edited, agrees) -> None:
    one, two, three = (place(f"{name}.xml") for name in ("one", "two", "three"))
    opened(shell, one)
    tab = opened(shell, two)
    opened(shell, three, show=False)
    asked: list[str] = []
    monkeypatch.setattr(disk_watch, "ask_discard", lambda name, parent: (asked.append(name), agrees)[1])
    if edited:
        tab.document.do(lambda g: commands.rename_layer(g, "out", "mine"))
    shell.viewer.view, selection = "mine", ("conv",)
    shell.context.select(selection)
    graph = network("32x32x3")
    graph.foreign = (Foreign("<!-- by hand -->"),)
    two.write_bytes(write_document(graph))
    shell.disk.check()
    shell.said.clear()
    taken = agrees is not False
    assert shell.disk.reload() is taken
    assert asked == (["two.xml"] if edited else [])
    assert shell.context.root.graph == (read_document(two).graph if taken else tab.document.graph)
    assert shell.names == ["one.xml", f"[{'' if taken else '● '}two.xml]", "three.xml"]
    assert (bar(shell) is None) is taken
    assert shell.said == ([("info", "Reloaded two.xml")] if taken else [])
    assert (shell.context.selection, shell.viewer.view) == (selection, "mine")
    for each in shell.tabs.all:
        each.document.history.mark_clean()


def test_a_file_that_cannot_be_read_leaves_everything_and_is_explained(shell, place, monkeypatch) -> None:
    one = place("one.xml")
    tab = opened(shell, one)
    shown: list[tuple[object, ...]] = []
    monkeypatch.setattr(disk_watch, "show_findings", lambda *what: shown.append(what))
    before = tab.document.graph.copy()
    one.write_text("<NetworkModel")
    shell.disk.check()
    shell.said.clear()
    assert not shell.disk.reload()
    ((title, text, findings, parent),) = shown
    assert (title, text) == ("Not Reloaded", "one.xml could not be read. The open network is unchanged.")
    assert findings == read_document(one).diagnostics
    assert parent is shell
    assert tab.document.graph == before
    assert (bar(shell) or ("",))[0] == "“one.xml” was changed by another program."
    assert shell.said == []
    shell.add(network())
    assert not shell.disk.reload(), "a network without a file"
