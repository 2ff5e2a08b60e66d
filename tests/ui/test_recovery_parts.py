"""What recovering one document does to the tabs, for every state in which its file can be open, without a window."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from light_shell import LightShell, network
from pytestqt.qtbot import QtBot

from app.ui.shell import recovery
from designer.files.disk_watch import digest_of
from designer.files.document import save_document
from designer.files.journal import journal_folder
from designer.files.recovery import Unfinished, unfinished
from designer.files.settings import Settings
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.graph import Graph
from designer.graph.model import Foreign

NOTE = Diagnostic("journal-damaged", "a record is damaged", Severity.WARNING, remedy="compare it")
SETTINGS = {"iterations": 12, "precision": "fp16"}


@dataclass(eq=False)
class Left(Unfinished):
    """Notes what happens to its journal."""

    done: list[str] = field(default_factory=list)

    def discard(self) -> None:
        self.done.append("discard")

    def release(self) -> None:
        self.done.append("release")


def lost() -> Graph:
    graph = network(features="8")
    graph.apply(commands.rename_layer(graph, "out", "result"))
    return graph


def left(path: Path | None, graph: Graph | None, **changes: object) -> Left:
    digest = digest_of(path.read_bytes()) if path is not None and path.exists() else ""
    return replace(
        Left(
            Path("/journals/a.journal"), path, "lost & found", 0.0, 1e9, digest, graph, "same" if path else "none",
            network() if path else None, {}, (), -1,
        ),
        **changes,
    )  # fmt: skip


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path) -> Iterator[LightShell]:
    made = LightShell(qtbot, tmp_path)
    yield made
    for tab in made.tabs.all:
        tab.document.history.mark_clean()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "net.xml"
    save_document(network(), place)
    return place


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[bool]]:
    """What was asked, and the answers to come."""
    asked: list[str] = []
    given: list[bool] = []
    monkeypatch.setattr(recovery, "ask_discard", lambda title, parent: (asked.append(title), given.pop(0))[1])
    return asked, given


def offered(shell: LightShell, *entries: Left) -> None:
    shell.recovery._on_found(entries)


def journals() -> list[Path]:
    folder = journal_folder()
    return sorted(folder.iterdir()) if folder.exists() else []


def recovered_again() -> list[tuple[Graph | None, dict[str, object]]]:
    """What another start would offer after a crash now."""
    found = []
    for entry in unfinished():
        found.append((entry.graph, dict(entry.settings)))
        entry.release()
    return found


@pytest.mark.parametrize("state", ["not open", "open", "open in the background"])
@pytest.mark.parametrize("settings", [{}, SETTINGS], ids=["", "with settings"])
def test_a_file_without_other_changes_is_shown_as_it_was_lost(shell, path, tmp_path, answers, state, settings) -> None:
    other = tmp_path / "other.xml"
    save_document(network("8x8x3"), other)
    if state != "not open":
        shell.files.open(path)
    if state != "open":
        shell.files.open(other)
    entry = left(path, lost(), settings=settings, findings=(NOTE,))
    offered(shell, entry)
    shell.said.clear()
    shell.recovery.recover(entry)
    names = {
        "not open": ["other.xml", "[● net.xml]"],
        "open": ["[● net.xml]"],
        "open in the background": ["[● net.xml]", "other.xml"],
    }
    assert shell.names == names[state]
    document, tab = shell.context.root, shell.tabs.shown
    assert (document.graph, document.path) == (lost(), path)
    assert document.settings == Settings(**settings)
    assert document.reading == (NOTE,)
    assert not tab.is_clean
    assert document.history.undo_title is None
    assert tab.disk == "same"
    assert entry.done == ["discard"]
    assert shell.recovery.left == []
    assert shell.recovery.dialog is None
    assert shell.said == [("info", "Recovered net.xml. Save it to keep the changes.")]
    assert answers[0] == []
    assert len(journals()) == 1
    tab.journal.abandon()  # another crash
    assert recovered_again() == [(lost(), settings)]


def test_a_network_without_a_file_is_a_new_tab(shell, path, answers) -> None:
    shell.files.open(path)
    entry = left(None, lost(), settings={"project": "/projects/one"})
    offered(shell, entry)
    shell.recovery.recover(entry)
    assert shell.names == ["net.xml", "[● network]"]
    document = shell.context.root
    assert (document.path, document.graph, document.project) == (None, lost(), Path("/projects/one"))
    assert entry.done == ["discard"]
    assert shell.said[-1][1] == f"Recovered {entry.title}. Save it to keep the changes."


def test_a_blank_tab_makes_room(shell, path) -> None:
    shell.files.new()
    entry = left(path, lost())
    offered(shell, entry)
    shell.recovery.recover(entry)
    assert shell.names == ["[● net.xml]"]


@pytest.mark.parametrize("same", [False, True], ids=["", "that are the same"])
def test_a_tab_with_other_changes_takes_them_as_an_undoable_step(shell, path, answers, same) -> None:
    shell.files.open(path)
    document, tab = shell.context.root, shell.tabs.shown
    if same:
        document.do(lambda g: commands.set_params(g, {"conv": {"features": "8"}}))
        document.do(lambda g: commands.rename_layer(g, "out", "result"))
    else:
        document.do(lambda g: commands.rename_layer(g, "conv", "mine"))
    document.change_settings(iterations=12, threads=3)
    document.reading = (replace(NOTE, code="of the file"),)
    before, settings = document.graph.copy(), document.settings
    entry = left(path, lost(), settings=SETTINGS, findings=(NOTE,))
    offered(shell, entry)
    shell.recovery.recover(entry)
    assert shell.tabs.all == [tab]
    assert document.graph == lost()
    assert document.settings == replace(settings, **SETTINGS)
    assert [finding.code for finding in document.reading] == ["of the file", "journal-damaged"]
    assert not tab.is_clean
    assert entry.done == ["discard"]
    assert document.history.undo_title == "Recover net.xml"
    document.undo()
    assert (document.graph, document.settings) == (before, settings)
    document.redo()
    assert answers[0] == []
    tab.journal.abandon()
    ((graph, kept),) = recovered_again()
    assert graph == lost()
    assert kept["precision"] == "fp16"


@pytest.mark.parametrize("agrees", [True, False])
def test_what_no_edit_can_express_replaces_other_changes_after_a_question(shell, path, answers, agrees) -> None:
    shell.files.open(path)
    before = shell.context.root
    before.do(lambda g: commands.rename_layer(g, "conv", "mine"))
    graph = lost()
    graph.foreign = (Foreign("<!-- by hand -->"),)
    entry = left(path, graph)
    offered(shell, entry)
    answers[1].append(agrees)
    shell.said.clear()
    shell.recovery.recover(entry)
    assert answers[0] == ["net.xml"]
    assert shell.names == ["[● net.xml]"]
    assert (shell.context.root is before) is not agrees
    assert shell.context.root.graph == (graph if agrees else before.graph)
    assert entry.done == (["discard"] if agrees else [])
    assert shell.recovery.left == ([] if agrees else [entry])
    assert bool(shell.said) is agrees
    shell.recovery.later()


def test_nothing_is_asked_about_a_tab_without_other_changes(shell, path, answers) -> None:
    shell.files.open(path)
    graph = lost()
    graph.foreign = (Foreign("<!-- by hand -->"),)
    entry = left(path, graph)
    offered(shell, entry)
    shell.recovery.recover(entry)
    assert (answers[0], shell.names, shell.context.root.graph) == ([], ["[● net.xml]"], graph)


def test_a_file_that_was_changed_since_has_its_notice(shell, path) -> None:
    entry = left(path, lost(), disk="changed")
    save_document(network("48x48x3"), path)
    offered(shell, entry)
    shell.recovery.recover(entry)
    assert shell.tabs.shown.disk == "changed"
    assert not shell.disk.bar.isHidden()
    path.unlink()
    second = left(path, lost(), disk="gone", name="second")
    offered(shell, second)
    shell.recovery.recover(second)
    assert shell.tabs.shown.disk == "gone"


def test_another_window_with_the_file_takes_what_was_lost(shell, path, qtbot, tmp_path) -> None:
    (tmp_path / "second").mkdir()
    other = LightShell(qtbot, tmp_path / "second")
    other.files.open(path)
    shell.recovery.elsewhere = lambda asked: other.tabs if asked == path else None
    raised: list[str] = []
    for name, window in (("first", shell), ("second", other)):
        window.raise_ = lambda name=name: raised.append(f"{name} is raised")  # type: ignore[method-assign]
        window.activateWindow = lambda name=name: raised.append(f"{name} is activated")  # type: ignore[method-assign]
    entry, new = left(path, lost()), left(None, lost())
    offered(shell, entry, new)
    shell.recovery.recover(entry)
    assert (shell.names, other.names) == ([], ["[● net.xml]"])
    assert other.context.root.graph == lost()
    assert raised == ["second is raised", "second is activated"]
    shell.recovery.recover(new)
    assert shell.names == ["[● network]"]
    assert len(raised) == 2, "this window is in front already"
    other.tabs.shown.document.history.mark_clean()


def test_what_holds_nothing_is_not_recovered(shell, path) -> None:
    entry = left(path, None, findings=(NOTE,))
    offered(shell, entry)
    shell.recovery.recover(entry)
    assert (shell.names, entry.done, shell.recovery.left) == ([], [], [entry])
    shell.recovery.later()
    assert entry.done == ["release"]


def test_discard_asks_and_later_releases_the_rest(shell, path, answers) -> None:
    entries = [left(None, lost(), name=name) for name in ("one", "two", "three")]
    offered(shell, *entries)
    dialog = shell.recovery.dialog
    assert dialog is not None
    answers[1].extend((False, True))
    shell.recovery.discard(entries[0])
    assert (entries[0].done, shell.recovery.left) == ([], entries)
    shell.recovery.discard(entries[1])
    assert answers[0] == [entries[0].title, entries[1].title]
    assert entries[1].done == ["discard"]
    assert shell.recovery.left == [entries[0], entries[2]]
    assert [dialog.list.topLevelItem(row).text(0) for row in range(dialog.list.topLevelItemCount())] == ["one", "three"]
    dialog.close()
    assert [entry.done for entry in entries] == [["release"], ["discard"], ["release"]]
    assert (shell.recovery.left, shell.recovery.dialog) == ([], None)
    assert shell.names == []


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_search_ends_with_a_dialog_if_something_was_left(shell, qtbot, monkeypatch, count) -> None:
    entries = [left(None, lost(), name=f"n{number}") for number in range(count)]
    monkeypatch.setattr(recovery, "unfinished", lambda: tuple(entries))
    seen: list[bool] = []
    shell.recovery.searched.connect(lambda: seen.append(shell.recovery.dialog is not None))
    with qtbot.waitSignal(shell.recovery.searched):
        shell.recovery.search()
    assert seen == [count > 0]
    assert shell.recovery.left == entries
    if count:
        assert shell.recovery.dialog.isVisible()
        assert shell.recovery.dialog.list.topLevelItemCount() == count
        shell.recovery.dialog.recover_asked.emit(entries[0])
        assert entries[0].done == ["discard"]
    shell.recovery.later()
    assert [entry.done for entry in entries[1:]] == [["release"]] * (count - 1 if count else 0)
    for dialog in shell.findChildren(recovery.RecoveryDialog):
        dialog.close()
