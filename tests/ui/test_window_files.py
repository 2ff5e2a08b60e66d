"""Files of the window: opening, saving, unsaved work, bad input."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import os
from pathlib import Path

from PySide6.QtCore import QMimeData, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QLabel,
    QListWidget,
    QMessageBox,
    QPushButton,
)
from window_kit import action

from app.ui.document.locations import sample_files, start_folder
from app.ui.widgets.findings import FindingsDialog
from designer.files.document import DOCUMENTS, Reading, read_document
from designer.files.formats import Format
from designer.files.settings import Settings, read_settings, settings_path
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Layer

XML = """<?xml version="1.0"?>
<NetworkModel name="tiny" version="2" user_version_tag="1">
\t<Layer name="input" type="input" edit_pos="0,0">
\t\t<Parameters dims="64x48x3" rgba="false" scale="1.0" shift="0" tiling="1" />
\t</Layer>
\t<Layer name="output" type="output" edit_pos="320,0" input="input">
\t\t<Parameters analysis_view="image" channels="0" height="0" label_path="" offset="0x0x0" width="0" />
\t</Layer>
</NetworkModel>
"""


@pytest.fixture
def tiny(tmp_path) -> Path:
    path = tmp_path / "tiny.xml"
    path.write_text(XML)
    return path


def test_open_edit_save_byte_for_byte(window, tiny, monkeypatch):
    before = tiny.read_bytes()
    assert window.files.open(tiny)
    assert "tiny.xml" in window.windowTitle()
    assert not window.isWindowModified()
    action(window, "file.save").trigger()
    assert tiny.read_bytes() == before
    window.context.document.do(lambda g: commands.rename_layer(g, "output", "result"))
    QApplication.processEvents()
    assert window.isWindowModified()
    action(window, "file.save").trigger()
    QApplication.processEvents()
    assert not window.isWindowModified()
    assert b'name="result"' in tiny.read_bytes()
    assert window.files.recent() == [tiny.resolve()]


def test_save_as_adds_the_ending(window, tmp_path, monkeypatch):
    target = tmp_path / "made"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(target), ""))
    window.context.document.do(lambda g: commands.add_layer(g, Layer("a", "input")))
    action(window, "file.save").trigger()
    assert read_document(tmp_path / "made.xml").graph == window.context.document.graph
    assert window.context.document.path == tmp_path / "made.xml"


def test_a_network_is_named_after_its_file_until_it_has_another_name(window, tmp_path):
    graph = window.context.document.graph
    assert window.files.save_to(tmp_path / "mynet.xml")
    assert graph.name == "mynet"
    assert window.context.document.history.is_clean
    assert read_document(tmp_path / "mynet.xml").graph.name == "mynet"
    assert window.files.save_to(tmp_path / "second.xml")
    assert graph.name == "second"
    window.context.document.keep("name", "U-Net")
    assert window.files.save_to(tmp_path / "third.xml")
    assert graph.name == "U-Net"


def test_a_failed_save_leaves_the_name(window, tmp_path, monkeypatch):
    monkeypatch.setattr("app.ui.shell.files.show_findings", lambda *found: None)
    assert not window.files.save_to(tmp_path / "missing" / "mynet.xml")
    assert window.context.document.graph.name == "network"
    assert window.context.document.history.is_clean
    assert window.tabs.shown.is_blank


def test_save_as_takes_the_suffix_of_the_chosen_format(window, tmp_path, monkeypatch):
    seen = []

    def choose(parent, title, proposed, filters, chosen):
        seen.append((filters, chosen))
        return str(tmp_path / "made"), "Network of the 2022 tool (*.nv-neural-model)"

    monkeypatch.setattr(QFileDialog, "getSaveFileName", choose)
    assert window.files.save_as()
    assert seen == [("Network (*.xml);;Network of the 2022 tool (*.nv-neural-model)", "Network (*.xml)")]
    assert window.context.document.path == tmp_path / "made.nv-neural-model"


def test_save_as_refuses_another_suffix_and_names_those_that_exist(window, tmp_path, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(tmp_path / "made.onnx"), ""))
    assert not window.files.save_as()
    dialog = window.findChild(FindingsDialog, "findings")
    assert "use .xml or .nv-neural-model" in dialog.findChild(QListWidget).item(0).text()
    dialog.close()
    assert not list(tmp_path.glob("made*"))
    assert window.context.document.path is None


def test_a_format_that_is_registered_is_in_the_dialog_and_can_be_dropped(window, tmp_path, monkeypatch, qtbot):
    monkeypatch.setattr(DOCUMENTS, "formats", list(DOCUMENTS.formats))
    path = tmp_path / "a.names"
    path.write_text("made elsewhere")
    assert not _dropped(window, path)
    DOCUMENTS.register(Format("Names", (".names",), lambda path: Reading(Graph(name=path.read_text()))))
    filters = []
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *a: (filters.append(a[3]) or [], ""))
    window.files.ask_open()
    assert "Networks (*.xml *.nv-neural-model *.names);;" in filters[0]
    assert filters[0].startswith("Networks and models (*.xml *.nv-neural-model *.names *.onnx *.pth")
    assert _dropped(window, path)
    qtbot.waitUntil(lambda: window.context.root.path == path)
    assert window.context.root.graph.name == "made elsewhere"


def _dropped(window, path: Path) -> bool:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    place, left, none = window.rect().center(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(place, Qt.DropAction.CopyAction, mime, left, none)
    QApplication.sendEvent(window, enter)
    if enter.isAccepted():
        QApplication.sendEvent(window, QDropEvent(QPointF(place), Qt.DropAction.CopyAction, mime, left, none))
    return enter.isAccepted()


def test_a_document_with_the_longest_name_is_opened_and_saved(window, tmp_path):
    path = tmp_path / f"{'n' * 251}.xml"
    path.write_text(XML)
    assert window.files.open(path)
    window.context.document.do(lambda g: commands.rename_layer(g, "output", "result"))
    assert window.files.save()
    assert b'name="result"' in path.read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_links_that_go_round_are_explained(window, tmp_path):
    path = tmp_path / "round.xml"
    path.symlink_to(path)
    assert not window.files.open(path)
    dialog = window.findChild(FindingsDialog, "findings")
    assert "symbolic links" in dialog.findChild(QListWidget).item(0).text()
    dialog.close()


@pytest.mark.parametrize("data", [b"", b"<NetworkModel", b"no xml at all", XML[:200].encode()])
def test_unreadable_document_is_explained_and_nothing_changes(window, tmp_path, data, qtbot):
    window.context.document.do(lambda g: commands.add_layer(g, Layer("mine", "input")))
    bad = tmp_path / "bad.xml"
    bad.write_bytes(data)
    document = window.context.document
    assert not window.files.open(bad)
    dialog = window.findChild(FindingsDialog, "findings")
    assert dialog.isVisible()
    assert dialog.findChild(QListWidget).count() >= 1
    assert window.context.document is document
    assert "mine" in document.graph
    QTest.mouseClick(dialog.findChild(QPushButton, "findings.copy"), Qt.MouseButton.LeftButton)
    assert "error" in QApplication.clipboard().text()
    dialog.close()


def test_missing_document_is_explained(window, tmp_path):
    assert not window.files.open(tmp_path / "gone.xml")
    dialog = window.findChild(FindingsDialog, "findings")
    assert "gone.xml" in dialog.findChild(QLabel, "findings.sentence").text()
    assert "What to do" in dialog.findChild(QListWidget).item(0).text()
    dialog.close()


@pytest.mark.skipif(os.name != "posix", reason="needs a folder that cannot be written")
def test_failed_save_keeps_both(window, tmp_path, tiny):
    window.files.open(tiny)
    before = tiny.read_bytes()
    window.context.document.do(lambda g: commands.rename_layer(g, "output", "result"))
    assert not window.files.save_to(tmp_path / "missing" / "folder" / "x.xml")
    dialog = window.findChild(FindingsDialog, "findings")
    assert dialog.isVisible()
    assert tiny.read_bytes() == before
    assert "result" in window.context.document.graph
    QApplication.processEvents()
    assert window.isWindowModified()
    dialog.close()


def test_file_dropped_on_the_window_opens(window, tiny, qtbot):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tiny))])
    place, buttons, keys = window.rect().center(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(place, Qt.DropAction.CopyAction, mime, buttons, keys)
    QApplication.sendEvent(window, enter)
    assert enter.isAccepted()
    event = QDropEvent(QPointF(place), Qt.DropAction.CopyAction, mime, buttons, keys)
    QApplication.sendEvent(window, event)
    qtbot.waitUntil(lambda: window.context.document.path == tiny)


def answer(qtbot, button: QMessageBox.StandardButton) -> None:
    """Press a button of the question about unsaved work as soon as it appears."""

    def press_button() -> None:
        box = QApplication.activeModalWidget()
        if isinstance(box, QMessageBox):
            QTest.mouseClick(box.button(button), Qt.MouseButton.LeftButton)
        else:
            QTimer.singleShot(20, press_button)

    QTimer.singleShot(20, press_button)


def test_unsaved_work_is_asked_about(window, tiny, qtbot):
    window.files.open(tiny)
    document = window.context.document
    document.do(lambda g: commands.rename_layer(g, "output", "result"))
    answer(qtbot, QMessageBox.StandardButton.Cancel)
    assert not window.close()
    answer(qtbot, QMessageBox.StandardButton.Cancel)
    assert not window.files.close()
    assert window.context.document is document
    answer(qtbot, QMessageBox.StandardButton.Save)
    assert window.files.close()
    assert b'name="result"' in tiny.read_bytes()
    window.files.open(tiny)
    window.context.document.do(lambda g: commands.rename_layer(g, "result", "other"))
    answer(qtbot, QMessageBox.StandardButton.Discard)
    assert window.files.close()
    assert b'name="result"' in tiny.read_bytes()


def test_recent_files_are_the_last_ten_that_exist_newest_first(window, tmp_path, monkeypatch):
    monkeypatch.setattr("app.ui.shell.files.show_findings", lambda *found: None)
    paths = [tmp_path.resolve() / f"n{number}.xml" for number in range(12)]
    for path in paths:
        path.write_text("<NetworkModel")
        window.files.remember(path)
    window.files.remember(paths[5])
    assert [path.stem for path in window.files.recent()] == "n5 n11 n10 n9 n8 n7 n6 n4 n3 n2".split()
    assert not window.files.open(paths[10])  # it cannot be read
    paths[8].unlink()
    assert [path.stem for path in window.files.recent()] == "n5 n11 n9 n7 n6 n4 n3 n2".split()


def test_a_settings_file_is_written_only_for_settings_that_differ_or_did(window, tiny):
    window.files.open(tiny)
    window.context.document.do(lambda g: commands.rename_layer(g, "output", "result"))
    assert window.files.save()
    assert not settings_path(tiny).exists()
    for iterations in (33, Settings().iterations):  # the file of the first must not bring its value back
        window.context.root.change_settings(iterations=iterations)
        assert window.files.save()
        assert read_settings(settings_path(tiny)).settings.iterations == iterations


def test_saving_says_that_the_exported_project_differs(window, tiny, monkeypatch, qtbot):
    window.files.open(tiny)
    said, asked = [], []
    window.context.message.connect(lambda _severity, text: said.append(text))
    monkeypatch.setattr(
        "app.ui.shell.files.outdated_files", lambda *given: asked.append(given) or ("model.py",) * (len(asked) > 1)
    )
    assert window.files.save()
    window.context.root.change_settings(project=str(tiny.parent / "project"))
    for _ in range(2):  # the second save comes while the first is compared
        assert window.files.save()
    qtbot.waitUntil(lambda: any("project differs from the network: model.py." in text for text in said))
    assert [given[2] for given in asked] == [tiny.parent / "project"] * 2


def test_dialogs_begin_in_the_folder_of_the_document_but_not_in_that_of_the_samples(tmp_path):
    assert start_folder(tmp_path / "net.xml") == tmp_path.resolve()
    assert start_folder(None) == start_folder(sample_files()[0]) == Path.home()


def test_recent_files_menu(window, tiny):
    window.files.open(tiny)
    window.files.new()
    window.menus.fill_recent()
    entries = window.menus.named["<recent>"].actions()
    assert entries[0].text().endswith("tiny.xml")
    assert entries[0].toolTip() == str(tiny.resolve())
    entries[0].trigger()
    assert window.context.document.path == tiny.resolve()
    window.files.clear_recent()
    window.menus.fill_recent()
    assert not window.menus.named["<recent>"].actions()[0].isEnabled()


# --- what is opened, and opened again ---------------------------------------------------------------------------------


@pytest.fixture
def many(tmp_path) -> list[Path]:
    """Documents that say nothing when they are opened."""
    paths = [tmp_path / f"{name}.xml" for name in "abcdef"]
    for path in paths:
        path.write_text(XML.replace('name="tiny"', f'name="{path.stem}"'))
    return paths


def titles(window) -> list[str]:
    return [opened.document.title for opened in window.tabs.all]


def heard(window) -> list[tuple[str, str]]:
    """The messages of the window from now on."""
    said: list[tuple[str, str]] = []
    window.context.message.connect(lambda level, text: said.append((level, text)))
    return said


def test_documents_that_cannot_be_reopened_are_passed_over(window, many):
    window.files.open_all(many[:4])
    for _ in range(4):
        assert window.files.close()
    many[3].unlink()
    many[2].write_text("no network")
    assert window.files.closed == 4
    action(window, "file.reopen").trigger()
    assert titles(window) == ["b.xml"]
    for dialog in window.findChildren(FindingsDialog):
        dialog.close()
    assert window.files.closed == 1
    many[0].unlink()
    action(window, "file.reopen").trigger()
    for dialog in window.findChildren(FindingsDialog):
        dialog.close()
    QApplication.processEvents()
    assert titles(window) == ["b.xml"]
    assert window.files.closed == 0
    assert not action(window, "file.reopen").isEnabled()


def test_the_latest_closed_documents_are_kept_and_one_that_is_open_again_is_none(window, many, monkeypatch, tmp_path):
    monkeypatch.setattr("app.ui.shell.files.CLOSED", 3)
    window.files.open_all(many[:5])
    for _ in range(5):
        assert window.files.close(window.tabs.all[0])
    assert window.files.closed == 3
    window.files.open(many[4])
    assert window.files.closed == 2
    assert window.files.save_to(many[3])
    assert window.files.closed == 1
    window.files.reopen()
    assert titles(window) == ["d.xml", "c.xml"]
    QApplication.processEvents()
    assert not action(window, "file.reopen").isEnabled()


def test_the_first_of_several_files_that_can_be_read_is_shown(window, many, tmp_path):
    (tmp_path / "bad.xml").write_text("no network")
    window.files.open_all([tmp_path / "bad.xml", many[1], many[0], many[2]])
    assert titles(window) == ["b.xml", "a.xml", "c.xml"]
    assert window.context.root.path == many[1]
    for dialog in window.findChildren(FindingsDialog):
        dialog.close()
    window.files.open_all([many[2], tmp_path / "bad.xml", many[3]])
    assert titles(window) == ["b.xml", "a.xml", "c.xml", "d.xml"]
    assert window.context.root.path == many[2]
    for dialog in window.findChildren(FindingsDialog):
        dialog.close()


def test_a_document_is_said_to_have_problems_when_it_has_warnings_or_errors(window, tmp_path):
    """Notes are not problems; and samples are not recent files."""
    said = heard(window)
    broken = {
        "clean": XML,
        "one": XML.replace('edit_pos="0,0"', 'edit_pos="x"'),
        "two": XML.replace('edit_pos="0,0"', 'edit_pos="x"').replace('edit_pos="320,0"', 'edit_pos=""'),
    }
    for name, text in broken.items():
        path = tmp_path / f"{name}.xml"
        path.write_text(text)
        said.clear()
        assert window.files.open(path)
        assert len(window.context.root.reading) == list(broken).index(name)
        found = [d for d in window.context.root.reading if d.severity.value in ("error", "warning")]
        if found:
            count = f"{len(found)} problem" + ("s" if len(found) > 1 else "")
            assert said == [("warning", f"Opened {path.name} with {count}: see Type Checking")]
        else:
            assert said == [("info", f"Opened {path.name}")]
        assert window.files.recent()[0] == path.resolve()
    recent = window.files.recent()
    assert window.files.open(sample_files()[0])
    assert window.files.recent() == recent


def test_a_window_stays_when_one_of_several_documents_is_not_saved(window, many, monkeypatch):
    window.files.open_all(many[:3])
    for opened in window.tabs.all:
        opened.document.do(lambda g: commands.rename_layer(g, "output", "result"))
    asked: list[list[str]] = []
    answers: list[list[int] | None] = [None, [0, 1, 2], [1, 2], []]
    monkeypatch.setattr(
        "app.ui.shell.files.ask_unsaved_many", lambda names, _window: (asked.append(names), answers.pop(0))[1]
    )
    assert not window.confirm_close()
    assert [path.read_text().count("result") for path in many[:3]] == [0, 0, 0]
    many[1].write_text(XML.replace("64x48x3", "8x8x3"))  # by another program
    refused: list[str] = []
    monkeypatch.setattr("app.ui.shell.files.ask_changed", lambda name, _window: refused.append(name) or "cancel")
    assert not window.confirm_close()
    assert refused == ["b.xml"]
    assert [path.read_text().count("result") > 0 for path in many[:3]] == [True, False, False]
    assert window.context.root.path == many[1], "the one that was not saved is shown"
    monkeypatch.setattr("app.ui.shell.files.ask_changed", lambda name, _window: "overwrite")
    many[2].write_text(many[2].read_text())
    answers[0] = [0]
    assert window.confirm_close()
    assert [path.read_text().count("result") > 0 for path in many[:3]] == [True, True, False]
    assert asked == [["a.xml", "b.xml", "c.xml"]] * 2 + [["b.xml", "c.xml"]]
    window.cancel_close()
