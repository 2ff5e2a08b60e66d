"""After a crash: what was not saved is offered, compared, recovered or given up. Nothing on disk changes before a save."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import gc
import os
from pathlib import Path

from PySide6.QtCore import QDateTime, QLocale, QSettings, Qt, QTimer
from PySide6.QtGui import QIcon, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QDialogButtonBox,
    QLabel,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)
from window_kit import open_window

from app.ui.document.document import Document
from app.ui.document.open_document import OpenDocument, journal_notifier
from app.ui.document.recovery_dialog import DifferencesDialog, RecoveryDialog
from app.ui.engine.training import training_of
from app.ui.shell.window import MainWindow, new_window
from app.ui.widgets import theme
from designer.files.disk_watch import digest_of
from designer.files.document import read_document, save_document, write_document
from designer.files.journal import journal_folder
from designer.files.recovery import Unfinished
from designer.files.safekeeping import Safekeeping
from designer.files.settings import Settings
from designer.graph import commands
from designer.graph.compare import compare
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.model import Layer, Source
from designer.graph.template_commands import make_template
from designer.operators.registry import default_registry

LEFT = Qt.MouseButton.LeftButton


def network() -> Graph:
    return Graph(
        [Layer("in", "input", params={"dims": "16x16x3"}), Layer("out", "output", (320, 0), (Source("in"),))],
    )


@pytest.fixture
def path(tmp_path) -> Path:
    place = tmp_path / "net.xml"
    save_document(network(), place)
    return place


def crash(path: Path | None, *edits) -> Graph:
    """Work of a process that ended before it saved; the network as it was then."""
    data = path.read_bytes() if path is not None else b""
    graph = read_document(path).graph if path is not None else Graph()
    history = History(graph)
    keeping = Safekeeping(history, path, digest_of(data) if path is not None else "")
    for edit in edits:
        history.commit(edit(graph))
    keeping.journal.abandon()
    return graph


def renamed(name: str):
    return lambda g: commands.rename_layer(g, "out", name)


@pytest.fixture
def start(qtbot, settings, tmp_path):
    """Start the program: a window that has searched for unsaved changes."""

    def make(*paths: Path) -> MainWindow:
        settings.setValue("geometry", b"")  # not the very first time
        window = open_window(qtbot, tmp_path)
        with qtbot.waitSignal(window.recovery.searched):
            window.begin(paths)
        return window

    return make


@pytest.fixture
def answer():
    """Answer the next question with a button."""

    def plan(button) -> None:
        def act() -> None:
            box = QApplication.activeModalWidget()
            if isinstance(box, QMessageBox):
                QTest.mouseClick(box.button(button), LEFT)
            else:
                QTimer.singleShot(20, act)

        QTimer.singleShot(20, act)

    return plan


def journals() -> list[Path]:
    folder = journal_folder()
    return sorted(folder.iterdir()) if folder.exists() else []


def press(dialog, name: str) -> None:
    QTest.mouseClick(getattr(dialog, name), LEFT)


def test_nothing_is_offered_where_nothing_was_left(start):
    assert start().recovery.dialog is None


def test_a_new_network_without_anything_in_it_is_not_offered(start):
    crash(None, lambda g: commands.add_layer(g, Layer("a", "input")), lambda g: commands.remove_layers(g, ["a"]))
    assert len(journals()) == 1
    assert start().recovery.dialog is None
    assert journals() == []


def test_recovering_opens_the_document_unsaved_where_it_was(start, path):
    before = path.read_bytes()
    lost = crash(path, renamed("result"))
    window = start()
    dialog = window.recovery.dialog
    assert dialog.isVisible()
    assert not dialog.isModal()
    assert dialog.list.topLevelItem(0).text(0) == "net.xml"
    assert dialog.list.topLevelItem(0).text(2) == "unchanged"
    press(dialog, "recover")
    root = window.context.root
    assert root.graph == lost
    assert root.path == path
    assert not root.history.is_clean
    assert path.read_bytes() == before
    assert window.tabs.bar.tabText(window.tabs.bar.currentIndex()) == "● net.xml"
    assert len(journals()) == 1  # it is safe at once: another crash would not lose it
    assert window.recovery.dialog is None
    assert window.files.save()
    assert read_document(path).graph == lost
    assert journals() == []


def test_what_is_recovered_survives_another_crash(start, path):
    crash(path, renamed("result"))
    first = start()
    press(first.recovery.dialog, "recover")
    first.context.root.do(lambda g: commands.add_layer(g, Layer("more", "identity")))
    opened = first.tabs.shown
    lost = opened.document.graph.copy()
    opened.journal.abandon()  # the process ends
    first.close_now()
    second = start()
    press(second.recovery.dialog, "recover")
    assert second.context.root.graph == lost
    assert second.context.root.path == path


def test_a_restored_tab_of_the_same_file_makes_room(start, path, tmp_path):
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    settings.setValue("tabs", [str(path)])
    settings.sync()
    lost = crash(path, renamed("result"))
    window = start()
    assert [o.document.path for o in window.tabs.all] == [path]
    press(window.recovery.dialog, "recover")
    assert [o.document.path for o in window.tabs.all] == [path]
    assert window.context.root.graph == lost
    assert set(window.canvas.projection.layers) == {"in", "result"}


@pytest.mark.parametrize("where", ["tab", "window"])
def test_a_tab_with_other_changes_takes_what_is_recovered_and_undo_gives_them_back(start, path, where):
    crash(path, renamed("result"), lambda g: Edit("Precision", settings={"precision": ("fp32", "fp16")}))
    window = start()
    other = window if where == "tab" else new_window(window)
    assert other.files.open(path)
    root = other.context.root
    root.do(renamed("mine"))
    mine = root.graph.copy()
    lost = window.recovery.left[0].graph
    press(window.recovery.dialog, "recover")
    assert [o.document for w in {window, other} for o in w.tabs.all if o.document.path == path] == [root]
    assert root.graph == lost
    assert root.settings.precision == "fp16"
    assert len(journals()) == 1
    root.undo()
    assert root.graph == mine
    assert root.settings.precision == "fp32"
    if other is not window:
        other.close_now()


@pytest.mark.parametrize("agreed", [True, False])
def test_what_no_edit_can_express_replaces_a_tab_with_other_changes_if_agreed(start, path, answer, agreed):
    path.write_bytes(path.read_bytes().replace(b"<NetworkModel ", b'<NetworkModel mood="calm" ', 1))
    crash(path, renamed("result"))
    save_document(network(), path)  # another program dropped what edits cannot express
    window = start(path)
    window.context.root.do(renamed("mine"))
    answer(QMessageBox.StandardButton.Discard if agreed else QMessageBox.StandardButton.Cancel)
    press(window.recovery.dialog, "recover")
    assert [o.document.path for o in window.tabs.all] == [path]
    assert ("result" if agreed else "mine") in window.context.root.graph
    assert len(window.recovery.left) == (0 if agreed else 1)
    if not agreed:
        window.recovery.dialog.close()


def test_compare_lists_what_differs_from_the_file(start, path, qtbot):
    crash(path, renamed("result"), lambda g: commands.set_params(g, {"in": {"dims": "64x64x3"}}))
    window = start()
    press(window.recovery.dialog, "compare")
    view = next(w for w in QApplication.topLevelWidgets() if w.objectName() == "recover_differences")
    text = view.findChild(QPlainTextEdit).toPlainText()
    assert "out renamed to result" in text
    assert "dims: 16x16x3 → 64x64x3" in text
    assert "1 renamed, 1 changed" in view.findChild(QLabel, "recover_differences.summary").text()
    view.close()
    assert window.recovery.dialog.isVisible()


def test_discard_asks_and_then_forgets(start, path, answer):
    before = path.read_bytes()
    crash(path, renamed("result"))
    window = start()

    answer(QMessageBox.StandardButton.Cancel)
    press(window.recovery.dialog, "discard")
    assert len(journals()) == 1
    answer(QMessageBox.StandardButton.Discard)
    press(window.recovery.dialog, "discard")
    assert journals() == []
    assert window.recovery.dialog is None
    assert path.read_bytes() == before


def test_later_offers_it_again(start, path):
    crash(path, renamed("result"))
    first = start()
    press(first.recovery.dialog, "later")
    assert len(journals()) == 1
    second = start()
    assert second.recovery.dialog is not None
    assert start().recovery.dialog is None  # the second window has it in its hands
    second.recovery.dialog.close()


def test_several_documents_are_recovered_at_once(start, path, tmp_path):
    other = tmp_path / "other.xml"
    save_document(network(), other)
    crash(path, renamed("one"))
    crash(other, renamed("two"))
    new = crash(None, lambda g: commands.add_layer(g, Layer("fresh", "input", params={"dims": "8x8x3"})))
    window = start()
    dialog = window.recovery.dialog
    assert dialog.list.topLevelItemCount() == 3
    assert dialog.list.currentItem() is dialog.list.topLevelItem(0)
    press(dialog, "all")
    graphs = {o.document.path: o.document.graph for o in window.tabs.all if not o.is_clean}
    assert "one" in graphs[path]
    assert "two" in graphs[other]
    assert graphs[None] == new
    assert len(journals()) == 3


def test_a_file_that_changed_since_is_said(start, path):
    crash(path, renamed("result"))
    theirs = network()
    theirs.apply(commands.set_params(theirs, {"in": {"dims": "48x48x3"}}))
    path.write_bytes(write_document(theirs))
    window = start()
    dialog = window.recovery.dialog
    assert dialog.list.topLevelItem(0).text(2) == "changed since"
    assert "Compare before you overwrite" in dialog.note.text()
    press(dialog, "recover")
    assert window.disk.bar.isVisible()
    assert read_document(path).graph == theirs


def test_a_damaged_journal_is_said_and_offered(start, path):
    crash(path, renamed("result"), lambda g: commands.set_params(g, {"in": {"dims": "64x64x3"}}))
    (journal,) = journals()
    journal.write_bytes(journal.read_bytes().replace(b"64x64x3", b"46x46x3"))
    window = start()
    dialog = window.recovery.dialog
    assert "Damaged" in dialog.note.text()
    assert "Compare it with the file" in dialog.note.text()
    press(dialog, "recover")
    assert "result" in window.context.root.graph


def test_a_journal_that_holds_nothing_can_only_be_discarded(start):
    journal_folder().mkdir(parents=True)
    (journal_folder() / "a.journal").write_bytes(b"\x00" * 100 + b"\n")
    window = start()
    dialog = window.recovery.dialog
    assert not dialog.recover.isEnabled()
    assert "Nothing of this document could be recovered" in dialog.recover.toolTip()
    assert dialog.discard.isEnabled()
    dialog.close()


def test_all_that_can_be_recovered_is_opened_at_once_and_the_rest_stays_listed(start, path, tmp_path):
    other = tmp_path / "other.xml"
    save_document(network(), other)
    journal_folder().mkdir(parents=True)
    for number in (0, 9):  # before and after the others by name
        (journal_folder() / f"{number}.journal").write_bytes(b"\x00" * 100 + b"\n")
    lost = [crash(path, renamed("result")), crash(other, renamed("image"))]
    os.utime(journal_folder() / "9.journal", (4e9, 4e9))  # the newest, the first in the list
    window = start()
    dialog = window.recovery.dialog
    assert dialog.list.topLevelItemCount() == 4
    press(dialog, "all")
    assert dialog.list.topLevelItemCount() == 2
    opened = [entry.document.graph for entry in window.tabs.all]
    assert all(graph in opened for graph in lost)
    dialog.close()


def test_settings_are_recovered(start, path):
    crash(path, lambda g: Edit("Precision", settings={"precision": ("fp32", "fp16")}))
    window = start()
    press(window.recovery.dialog, "recover")
    assert window.context.root.settings.precision == "fp16"
    assert window.files.save()
    window.files.close()
    window.files.open(path)
    assert window.context.root.settings.precision == "fp16"


def test_recovered_settings_survive_another_crash(start, path):
    crash(path, lambda g: Edit("Precision", settings={"precision": ("fp32", "fp16")}))
    first = start()
    press(first.recovery.dialog, "recover")
    first.context.root.do(renamed("result"))
    first.tabs.shown.journal.abandon()  # the process ends
    first.close_now()
    second = start()
    press(second.recovery.dialog, "recover")
    assert second.context.root.settings.precision == "fp16"
    assert "result" in second.context.root.graph.layers


def test_gestures_of_the_window_are_recorded_and_saving_ends_it(start, path):
    window = start(path)
    assert journals() == []
    root = window.context.root
    root.do(renamed("result"))
    root.do(lambda g: commands.move_layers(g, {"in": (64, 64)}))
    window.context.undo()
    window.tabs.shown.journal.wait()
    assert len(journals()) == 1
    assert window.files.save()
    assert journals() == []
    window.context.undo()
    assert len(journals()) == 1
    window.context.redo()
    window.close_now()
    assert journals() == []


def test_records_are_brought_to_the_disk_soon(start, path, monkeypatch, qtbot):
    monkeypatch.setattr("app.ui.document.open_document.SYNC_AFTER", 20)
    window = start(path)
    journal = window.tabs.shown.journal
    for number in range(3):
        window.context.root.do(renamed("r0") if number == 0 else _again(number))
    assert not journal.synced
    qtbot.waitUntil(lambda: journal.synced)


def test_a_folder_that_cannot_be_written_is_told_once(start, path, monkeypatch, tmp_path):
    blocked = tmp_path / "in_the_way"
    blocked.write_text("a file")
    monkeypatch.setenv("LAYERWRIGHT_JOURNAL", str(blocked / "journal"))
    journal_notifier.cache_clear()  # as in a process without a failure so far
    window = start(path)
    messages = []
    window.context.message.connect(lambda severity, text: messages.append((severity, text)))
    window.context.root.do(renamed("result"))
    window.context.root.do(lambda g: commands.rename_layer(g, "result", "again"))
    assert len([t for _, t in messages if "not recorded for recovery" in t]) == 1
    assert "again" in window.context.root.graph
    assert window.files.save()


def test_no_descriptor_and_no_thread_stays(start, path):
    window = start(path)
    place = Path("/proc/self/fd")
    if not place.is_dir():
        pytest.skip("needs /proc")

    def held() -> int:
        return sum(1 for link in place.iterdir() if ".journal" in os.path.realpath(link))

    for number in range(5):
        window.context.root.do(renamed(f"r{number}") if number == 0 else _again(number))
        window.tabs.shown.journal.wait()
        assert held() == 1
        assert window.files.save()
        gc.collect()
        assert held() == 0


def _again(number: int):
    return lambda g: commands.rename_layer(g, f"r{number - 1}", f"r{number}")


def test_an_edit_inside_of_a_template_is_recovered(start, path):
    graph = network()
    graph.apply(commands.add_layer(graph, Layer("body", "convolution", (160, 0), (Source("in"),), {"features": "3"})))
    graph.apply(make_template(graph, ["body"], "part"))
    save_document(graph, path)
    first = start(path)
    instance = next(layer.name for layer in first.context.root.graph if layer.type == "template")
    assert first.context.enter(instance)
    first.context.document.do(lambda g: commands.set_params(g, {"body": {"features": "7"}}))
    lost = first.context.root.graph.copy()
    assert lost != read_document(path).graph
    first.tabs.shown.journal.abandon()  # the process ends
    first.close_now()
    second = start()
    press(second.recovery.dialog, "recover")
    assert second.context.root.graph == lost
    assert second.context.enter(instance)
    assert second.context.document.graph["body"].params["features"] == "7"


@pytest.mark.parametrize("how", ["trained first", "changed first"])
def test_a_recovered_network_without_a_file_has_its_project_and_task(start, qapp, tmp_path, how):
    """Its runs are in the project; its other settings that are stored nowhere else come back too."""
    opened = OpenDocument(Document(network(), default_registry(), parent=qapp))
    document = opened.document
    document.restore_settings(recipe={"patch": "96"})
    if how == "trained first":
        document.use_project(tmp_path / "project", "denoising")
    document.do(renamed("result"))
    if how == "changed first":
        document.use_project(tmp_path / "project", "denoising")
    opened.journal.abandon()
    window = start()
    press(window.recovery.dialog, "recover")
    root = window.context.root
    assert root.graph == document.graph
    assert root.path is None
    assert root.project == tmp_path / "project"
    assert training_of(window.context).project() == tmp_path / "project"
    assert (root.settings.task, dict(root.settings.recipe)) == ("denoising", {"patch": "96"})
    assert window.files.save_to(tmp_path / "mine.xml")
    assert Document(root.graph, root.registry, tmp_path / "mine.xml", parent=qapp).project == tmp_path / "project"
    document.deleteLater()


def test_the_project_of_a_network_with_a_file_is_not_written_into_its_settings(qapp, path, tmp_path):
    document = Document(network(), default_registry(), path, parent=qapp)
    document.use_project(tmp_path / "project", "denoising")
    assert document.project == tmp_path / "project"
    assert document.settings == Settings()
    document.restore_settings(weights="other.safetensors")
    assert document.project == tmp_path / "project"
    document.restore_settings(project=str(tmp_path / "another"))
    assert document.project == tmp_path / "another"
    document.restore_settings(project="")
    assert document.project is None
    document.deleteLater()


# --- the dialog alone ------------------------------------------------------------------------------------------------


def entry(name: str, **fields) -> Unfinished:
    whole = {
        "path": Path("/networks") / f"{name}.xml", "name": name, "opened": 0.0, "changed": 1_500_000_000.75, "digest": "",
        "graph": network(), "disk": "same", "on_disk": network(), "settings": {}, "findings": (), "_stream": -1,
    }  # fmt: skip
    return Unfinished(Path(f"{name}.journal"), **whole | fields)


@pytest.fixture
def listed(qtbot):
    """A dialog that lists entries, and those that it asks to recover and to discard."""

    parent = QWidget()
    qtbot.addWidget(parent)

    def make(*entries: Unfinished) -> tuple[RecoveryDialog, list[str], list[str]]:
        dialog = RecoveryDialog(entries, parent)
        recovered, discarded = [], []
        dialog.recover_asked.connect(lambda left: recovered.append(left.name))
        dialog.discard_asked.connect(lambda left: discarded.append(left.name))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
        dialog.show()
        return dialog, recovered, discarded

    return make


def drawn(icon: QIcon) -> QImage:
    return icon.pixmap(16, 16).toImage()


DAMAGED = Diagnostic("journal-damaged", "damaged records", Severity.WARNING, remedy="compare it")
STATES = {"none": "not saved", "same": "unchanged", "changed": "changed since", "gone": "deleted"}


def test_a_row_says_the_name_the_time_the_state_and_the_folder(listed):
    """For every state of the file, with and without damage and a file. The time is local."""
    cases = [
        entry(
            f"{disk}_{damaged}_{saved}", disk=disk, findings=(DAMAGED,) * damaged, **({} if saved else {"path": None})
        )
        for disk in STATES
        for damaged in (False, True)
        for saved in (False, True)
    ]
    dialog, _, _ = listed(*cases)
    time = QLocale().toString(QDateTime.fromSecsSinceEpoch(1_500_000_000), QLocale.FormatType.ShortFormat)
    marks = {True: theme.icon("alert", "warning"), False: theme.icon("file-outline", "muted")}
    assert dialog.list.topLevelItemCount() == len(cases)
    for number, case in enumerate(cases):
        item = dialog.list.topLevelItem(number)
        name, folder = (case.path.name, str(case.path.parent)) if case.path else (case.name, "")
        assert [item.text(column) for column in range(4)] == [name, time, STATES[case.disk], folder]
        assert item.toolTip(0) == (name if case.path else f"{name} (never saved)")
        assert item.toolTip(3) == folder
        assert drawn(item.icon(0)) == drawn(marks[bool(case.findings)])


def test_notes_and_buttons_follow_the_current_row(listed):
    plain, changed = entry("plain"), entry("changed", disk="changed", findings=(DAMAGED,))
    lost = entry("lost", graph=None, findings=(DAMAGED, DAMAGED))
    dialog, recovered, discarded = listed(plain, changed, lost)
    damage, warning = (
        "Damaged records. Compare it.",
        "The file was changed after it was opened. Compare before you overwrite it.",
    )
    reason = "Nothing of this document could be recovered"
    notes = ["", f"{damage}\n{warning}", f"{damage}\n{damage}"]
    assert dialog.current() is plain
    for number in (0, 1, 2, 1, 0):
        dialog.list.setCurrentItem(dialog.list.topLevelItem(number))
        assert dialog.note.text() == notes[number]
        assert dialog.note.isHidden() == (not notes[number])
        for button in (dialog.recover, dialog.compare):
            assert (button.isEnabled(), button.toolTip()) == ((True, "") if number != 2 else (False, reason))
        assert dialog.discard.isEnabled()
        press(dialog, "discard")
        dialog.list.itemDoubleClicked.emit(dialog.list.topLevelItem(number), 0)
    assert discarded == ["plain", "changed", "lost", "changed", "plain"]
    assert recovered == ["plain", "changed", "changed", "plain"]
    assert dialog.recover.isDefault()
    assert not any(button.autoDefault() for button in (dialog.compare, dialog.discard, dialog.all, dialog.later))


def test_all_passes_over_what_is_lost(listed):
    dialog, recovered, _ = listed(entry("first"), entry("lost", graph=None), entry("last"))
    press(dialog, "all")
    assert recovered == ["first", "last"]


def test_an_entry_that_is_taken_leaves_the_list_and_the_last_one_closes_it(listed):
    entries = [entry(name) for name in "abc"]
    dialog, _, _ = listed(*entries)
    ended = []
    dialog.finished.connect(ended.append)
    dialog.list.setCurrentItem(dialog.list.topLevelItem(2))
    assert not dialog.all.isHidden()
    dialog.take(entries[0])
    assert [dialog.list.topLevelItem(row).text(0) for row in range(2)] == ["b.xml", "c.xml"]
    assert dialog.current() is entries[2]
    assert not dialog.all.isHidden()
    dialog.take(entries[2])
    assert dialog.current() is entries[1]
    assert dialog.all.isHidden()
    assert (dialog.isVisible(), ended) == (True, [])
    dialog.take(entries[1])
    assert dialog.current() is None
    assert not dialog.isVisible()
    assert not any(button.isEnabled() for button in (dialog.recover, dialog.compare, dialog.discard))
    assert ended == [RecoveryDialog.DialogCode.Rejected]


@pytest.mark.parametrize("how", ["later", "close"])
def test_later_and_the_cross_of_the_window_leave_everything(listed, how):
    dialog, recovered, discarded = listed(entry("a"), entry("b"))
    ended = []
    dialog.finished.connect(ended.append)
    press(dialog, "later") if how == "later" else dialog.close()
    assert ended == [RecoveryDialog.DialogCode.Rejected]
    assert not dialog.isVisible()
    assert recovered == discarded == []
    assert dialog.later.toolTip() == "Ask again on the next start"


@pytest.mark.parametrize("saved", [True, False], ids=["a file", "never saved"])
def test_compare_shows_all_differences(listed, saved):
    """Of the network and of the settings, of one and of both, and none."""
    after = network()
    after.apply(commands.rename_layer(after, "out", "result"))
    file = network() if saved else None
    before = file or Graph()
    for graph in (network(), after):
        for settings in ({}, {"task": "x"}, {"task": "x", "iterations": 3}):
            dialog, _, _ = listed(entry("a", graph=graph, on_disk=file, settings=settings))
            dialog.compare_current()
            (shown,) = dialog.findChildren(DifferencesDialog)
            found = compare(before, graph)
            rows = [*found.lines(), *(f"Settings: {key} → {settings[key]}" for key in sorted(settings))]
            parts = [found.summary()] if found or not settings else []
            parts += [f"{len(settings)} setting{'s' * (len(settings) > 1)}"] if settings else []
            begin = (
                "Unsaved changes relative to the file on disk"
                if saved
                else "There is no file to compare with. In the unsaved network"
            )
            assert shown.windowTitle() == shown.accessibleName() == "Differences of a.xml"
            assert shown.findChild(QLabel, "recover_differences.summary").text() == f"{begin}: {'; '.join(parts)}."
            view = shown.findChild(QPlainTextEdit)
            assert view.toPlainText().splitlines() == (rows or ["No differences."])
            assert view.isReadOnly()
            assert view.tabChangesFocus()
            assert view.font().family() == theme.mono_font().family()
            QApplication.clipboard().setText("before")
            shown.findChild(QPushButton, "recover_differences.copy").click()
            assert QApplication.clipboard().text() == view.toPlainText().rstrip("\n") + "\n" * bool(
                found and not settings
            )
            shown.findChild(QDialogButtonBox).rejected.emit()
            assert not shown.isVisible()


def test_long_names_leave_room_for_the_other_columns(listed):
    dialog, _, _ = listed(entry("name_" * 60), entry("b"))
    assert dialog.list.columnWidth(0) == 260
    short, _, _ = listed(entry("a"), entry("b"))
    assert short.list.columnWidth(0) < 160
