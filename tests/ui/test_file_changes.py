"""Files of open documents that another program changes, replaces, moves or deletes: real files, a real watcher."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import os
import subprocess
import sys
from itertools import count
from pathlib import Path

from PySide6.QtCore import QEvent, QFileSystemWatcher, QPointF, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QMessageBox, QPushButton, QToolButton

from designer.files.disk_watch import OnDisk, digest_of
from designer.files.document import read_document, save_document, write_document
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Foreign, Layer, Source


def network(dims: str = "16x16x3") -> Graph:
    return Graph(
        [Layer("in", "input", params={"dims": dims}), Layer("out", "output", (320, 0), (Source("in"),))],
    )


@pytest.fixture
def path(tmp_path) -> Path:
    place = tmp_path / "net.xml"
    save_document(network(), place)
    return place


@pytest.fixture
def window(empty_window, path):
    empty_window.files.open(path)
    return empty_window


def rename(window, name: str = "mine") -> None:
    assert window.context.root.do(lambda g: commands.rename_layer(g, "out", name))


def click(window, name: str) -> None:
    button = window.disk.bar.findChild(QToolButton, f"disk.{name}")
    assert button is not None
    assert button.isVisible()
    assert button.toolTip()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def overwrite(path: Path, dims: str = "32x32x3") -> None:
    """Another program that writes into the file."""
    path.write_bytes(write_document(network(dims)))


def swap(path: Path, dims: str = "32x32x3") -> None:
    """An editor that writes a new file and puts it in the place of the old one."""
    other = path.with_name("net.xml.new")
    other.write_bytes(write_document(network(dims)))
    os.replace(other, path)


@pytest.mark.parametrize("write", [overwrite, swap])
def test_a_change_is_noticed_and_reloaded_as_a_step(window, path, qtbot, write):
    assert not window.disk.bar.isVisible()
    write(path)
    qtbot.waitUntil(window.disk.bar.isVisible)
    assert "net.xml" in window.disk.bar.text()
    click(window, "reload")
    assert window.context.root.graph["in"].params["dims"] == "32x32x3"
    assert window.context.root.history.is_clean
    assert not window.disk.bar.isVisible()
    window.context.undo()
    assert window.context.root.graph["in"].params["dims"] == "16x16x3"
    assert not window.context.root.history.is_clean
    write(path, "48x48x3")  # and it is watched on
    qtbot.waitUntil(window.disk.bar.isVisible)
    assert "unsaved changes" in window.disk.bar.text()


def test_a_change_back_to_what_was_opened_is_noticed_after_reloading(window, path):
    opened = path.read_bytes()
    overwrite(path)
    window.disk.check()
    assert window.disk.reload()
    path.write_bytes(opened)  # for instance another branch, and back
    window.disk.check()
    assert window.tabs.shown.disk == "changed"
    assert window.disk.reload()
    assert window.context.root.graph["in"].params["dims"] == "16x16x3"


def test_reloading_takes_the_settings_of_the_file_too(window, path):
    """Otherwise unsaved settings would count as saved, and be lost without a question."""
    root = window.context.root
    root.change_settings(iterations=20)
    assert window.files.save()
    root.change_settings(iterations=77)
    overwrite(path)
    window.disk.check()
    assert window.disk.reload()
    assert root.settings.iterations == 20
    assert root.history.is_clean
    window.context.undo()
    assert (root.settings.iterations, root.graph["in"].params["dims"]) == (77, "16x16x3")


def test_another_process_is_noticed(window, path, qtbot):
    text = path.read_text().replace("16x16x3", "64x64x3")
    code = f"import sys; open({str(path)!r}, 'w').write(sys.stdin.read())"
    subprocess.run([sys.executable, "-c", code], input=text, text=True, check=True, timeout=30)
    qtbot.waitUntil(window.disk.bar.isVisible)


def test_our_own_save_is_no_change(window, path, qtbot):
    rename(window)
    assert window.files.save()
    window.disk.check()
    assert window.tabs.shown.disk == "same"
    path.touch()  # another time, the same bytes
    window.disk.check()
    assert window.tabs.shown.disk == "same"
    assert not window.disk.bar.isVisible()


def test_keep_mine_counts_as_not_saved(window, path, qtbot):
    overwrite(path)
    qtbot.waitUntil(window.disk.bar.isVisible)
    click(window, "keep")
    assert not window.disk.bar.isVisible()
    assert not window.context.root.history.is_clean
    assert window.tabs.bar.tabText(0) == "● net.xml"
    window.disk.check()
    assert not window.disk.bar.isVisible()  # it was decided
    assert window.files.save()  # without another question
    assert read_document(path).graph["in"].params["dims"] == "16x16x3"


def test_compare_shows_the_differences(window, path, qtbot):
    overwrite(path)
    qtbot.waitUntil(window.disk.bar.isVisible)
    click(window, "compare")
    assert window.docks["differences"].isVisible()
    assert window.context.comparison.result.changed.keys() == {"in"}
    assert window.disk.bar.isVisible()  # nothing is decided yet


def answer(name: str) -> None:
    def act() -> None:
        box = QApplication.activeModalWidget()
        if isinstance(box, QMessageBox):
            button = box.findChild(QPushButton, name) or box.button(QMessageBox.StandardButton.Cancel)
            QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        else:
            QTimer.singleShot(20, act)

    QTimer.singleShot(20, act)


def test_saving_over_a_changed_file_asks(window, path, tmp_path, monkeypatch, qtbot):
    rename(window)
    overwrite(path)  # before the watcher has reported it: the file is checked before it is written
    theirs = path.read_bytes()
    answer("cancel")
    assert not window.files.save()
    assert path.read_bytes() == theirs
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(tmp_path / "other.xml"), ""))
    answer("changed_on_disk.elsewhere")
    assert window.files.save()
    assert path.read_bytes() == theirs
    assert "mine" in read_document(tmp_path / "other.xml").graph
    window.files.open(path)
    rename(window)
    overwrite(path, "48x48x3")
    answer("changed_on_disk.overwrite")
    assert window.files.save()
    assert "mine" in read_document(path).graph
    window.disk.check()
    assert not window.disk.bar.isVisible()


def test_a_deleted_file_is_noticed_and_saved_again(window, path, qtbot):
    path.unlink()
    qtbot.waitUntil(window.disk.bar.isVisible)
    assert "moved or deleted" in window.disk.bar.text()
    assert "no longer exists" in window.tabs.bar.tabToolTip(0)
    click(window, "save")
    assert read_document(path).graph == window.context.root.graph
    assert not window.disk.bar.isVisible()
    assert window.context.root.history.is_clean


def test_a_moved_file_can_stay_open(window, path, qtbot):
    path.rename(path.with_name("elsewhere.xml"))
    qtbot.waitUntil(window.disk.bar.isVisible)
    click(window, "keep")
    assert not window.context.root.history.is_clean
    window.disk.check()
    assert not window.disk.bar.isVisible()
    path.with_name("elsewhere.xml").rename(path)  # and it comes back
    window.disk.check()
    assert window.tabs.shown.disk == "same"


def test_the_bar_belongs_to_the_tab(window, path, tmp_path, qtbot):
    other = tmp_path / "other.xml"
    save_document(network(), other)
    window.files.open(other)
    overwrite(path)
    qtbot.waitUntil(lambda: window.tabs.all[0].disk == "changed")
    assert not window.disk.bar.isVisible()
    assert "Changed by another program" in window.tabs.bar.tabToolTip(0)
    window.tabs.step(1)
    assert window.disk.bar.isVisible()
    window.tabs.step(1)
    assert not window.disk.bar.isVisible()


def test_the_file_is_looked_at_when_the_window_becomes_active(window, path, qtbot):
    window.findChild(QFileSystemWatcher).removePaths(
        [*window.findChild(QFileSystemWatcher).files(), *window.findChild(QFileSystemWatcher).directories()]
    )
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    overwrite(path)
    QApplication.sendEvent(window, QEvent(QEvent.Type.ActivationChange))
    assert window.tabs.shown.disk == "changed"
    assert window.disk.bar.isVisible()


def test_a_file_that_cannot_be_read_any_more_leaves_what_is_open(window, path, qtbot):
    path.write_text("<NetworkModel")
    qtbot.waitUntil(window.disk.bar.isVisible)
    click(window, "reload")
    dialog = next(w for w in QApplication.topLevelWidgets() if w.objectName() == "findings")
    assert dialog.isVisible()
    dialog.close()
    assert "out" in window.context.root.graph
    assert window.disk.bar.isVisible()


def test_what_no_step_can_change_is_opened_anew_in_the_tab(window, path, tmp_path, qtbot):
    other = tmp_path / "other.xml"
    save_document(network(), other)
    window.files.open(other)
    window.tabs.step(1)
    window.context.select(("out",))
    viewer = window.canvas.viewer
    viewer.zoom_by(1.5 / viewer.zoom)
    viewer.go(QPointF(300, 40))
    graph = network()
    graph.foreign = (Foreign("<!-- by hand -->"),)
    path.write_bytes(write_document(graph))
    qtbot.waitUntil(window.disk.bar.isVisible)
    center = viewer.visible_center()
    click(window, "reload")
    assert window.context.root.graph == read_document(path).graph
    assert window.context.selection == ("out",)
    assert viewer.zoom == 1.5
    assert (viewer.visible_center() - center).manhattanLength() < 2
    assert [window.tabs.bar.tabText(i) for i in range(2)] == ["net.xml", "other.xml"]
    assert not window.disk.bar.isVisible()


def test_the_samples_are_not_watched(window):
    window.files.open_first(None)
    sample = window.context.root.path
    assert str(sample) not in window.findChild(QFileSystemWatcher).files()
    assert str(sample.parent) not in window.findChild(QFileSystemWatcher).directories()


def test_a_file_is_read_again_only_when_its_marks_differ(path):
    on_disk = OnDisk(path, digest_of(path.read_bytes()))
    assert on_disk.state() == "same"
    info = path.stat()
    path.write_bytes(path.read_bytes().replace(b"16x16x3", b"61x61x3"))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert on_disk.state() == "same"  # the same size at the same time: nobody does that by chance
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns + 1))
    assert on_disk.state() == "changed"
    assert on_disk.state() == "changed"


def test_what_no_step_can_bring_back_is_asked_about(window, path, qtbot):
    rename(window)
    graph = network()
    graph.foreign = (Foreign("<!-- by hand -->"),)
    path.write_bytes(write_document(graph))
    qtbot.waitUntil(window.disk.bar.isVisible)
    answer("nothing of that name: cancel")
    assert not window.disk.reload()
    assert "mine" in window.context.root.graph
    assert window.disk.bar.isVisible()


def test_a_busy_folder_does_not_put_off_the_look(window, path, qtbot):
    overwrite(path)
    numbers = count()

    def busy() -> bool:
        (path.parent / f"{next(numbers)}.txt").touch()  # the watcher notifies of every one
        return window.disk.bar.isVisible()

    qtbot.waitUntil(busy)


@pytest.mark.parametrize("unsaved", [False, True])
def test_the_notice_says_whether_there_are_unsaved_changes(window, path, unsaved):
    if unsaved:
        rename(window)
    overwrite(path)
    window.disk.check()
    text = next(label.text() for label in window.disk.bar.findChildren(QLabel) if path.name in label.text())
    assert "was changed by another program" in text
    assert ("and you have unsaved changes" in text) is unsaved


def test_the_notice_follows_later_edits(window, path):
    overwrite(path)
    window.disk.check()
    alone = "“net.xml” was changed by another program."
    both = "“net.xml” was changed by another program, and you have unsaved changes."
    assert window.disk.bar.text() == alone
    rename(window)
    assert window.disk.bar.text() == both
    window.context.root.undo()
    assert window.disk.bar.text() == alone
