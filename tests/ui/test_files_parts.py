"""Opening, saving and closing without a window: which documents are asked about, written, remembered and reopened."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import itertools
from collections.abc import Iterator
from pathlib import Path

from light_shell import LightShell, network
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

import samples
from app.ui.document import locations
from app.ui.document.document import Document
from app.ui.document.import_record import ImportRecord
from app.ui.document.locations import sample_files
from app.ui.document.open_document import OpenDocument
from app.ui.shell import files as files_module
from app.ui.shell import session
from app.ui.shell.actions import _STARTING_POINTS
from designer.files.document import DOCUMENTS, read_document, save_document, write_document
from designer.files.settings import Settings, find_settings, read_settings
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.importers.report import ImportReport
from exporters.pytorch import Training


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path) -> Iterator[LightShell]:
    made = LightShell(qtbot, tmp_path)
    yield made
    for tab in made.tabs.all:
        tab.document.history.mark_clean()


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """The dialogs with findings: title, text and codes."""
    found: list[tuple[object, ...]] = []
    monkeypatch.setattr(
        files_module, "show_findings", lambda title, text, findings, parent: found.append((title, text, [d.code for d in findings]))
    )  # fmt: skip
    return found


@pytest.fixture
def many(tmp_path: Path) -> list[Path]:
    """Files named a.xml to f.xml in the folder `many`."""
    (tmp_path / "many").mkdir()
    paths = [tmp_path / "many" / f"{name}.xml" for name in "abcdef"]
    for path in paths:
        save_document(network(name=path.stem), path)
    return paths


def edit(shell: LightShell, name: str = "mine", document: Document | None = None) -> None:
    assert (document or shell.context.root).do(lambda g: commands.set_property(g, "author_notes", name))


def recent(shell: LightShell) -> list[str]:
    return [path.name for path in shell.files.recent()]


# --- opening ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(_STARTING_POINTS))
def test_a_starting_point_is_a_new_network_with_its_task_and_recipe(shell, name) -> None:
    begun: list[str] = []
    shell.files.on_new = lambda: begun.append(shell.context.root.graph.name)
    shell.files.new_from(name)
    path, document = samples.starting_point(name), shell.context.root
    assert document.graph == read_document(path).graph
    assert (document.path, document.history.is_clean, document.history.undo_title) == (None, True, None)
    stored = find_settings(path)
    usual = read_settings(stored).settings if stored is not None else Settings()
    assert document.settings == Settings(task=usual.task, recipe=usual.recipe)
    assert begun == [document.graph.name]
    assert recent(shell) == []
    assert shell.files.closed == 0


def test_some_starting_points_have_a_task_and_some_a_recipe() -> None:
    stored = [find_settings(samples.starting_point(name)) for name in _STARTING_POINTS]
    settings = [read_settings(path).settings for path in stored if path is not None]
    assert any(each.task for each in settings)
    assert any(each.recipe for each in settings)


def test_a_starting_point_that_cannot_be_read_is_explained(shell, shown, monkeypatch, tmp_path) -> None:
    (tmp_path / "bad.xml").write_text("<NetworkModel")
    monkeypatch.setattr(samples, "starting_point", lambda name: tmp_path / "bad.xml")
    shell.files.on_new = lambda: shown.append(("new",))
    shell.files.new_from("denoiser")
    codes = [d.code for d in read_document(tmp_path / "bad.xml").diagnostics]
    assert shown == [("Not Opened", "bad.xml could not be opened.", codes)]
    assert shell.names == []


def test_models_are_imported_with_what_was_asked(shell, monkeypatch, tmp_path) -> None:
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(shell.models, "open", lambda path, *, show, trusted: asked.append((path.name, show, trusted)))
    names = [tmp_path / name for name in ("one.onnx", "two.pt2", "three.safetensors")]
    for show, trusted in itertools.product((True, False), repeat=2):
        assert shell.files.open(names[0], show=show, trusted=trusted)
        assert asked.pop() == ("one.onnx", show, trusted)
    shell.files.open_all(names, trusted=True)
    assert asked == [("one.onnx", True, True), ("two.pt2", False, True), ("three.safetensors", False, True)]
    asked.clear()
    shell.files.open_all(names[1:])
    assert asked == [("two.pt2", True, False), ("three.safetensors", False, False)]
    assert shell.names == []


def test_a_process_for_imports_is_prepared_where_one_of_the_files_needs_it(shell, monkeypatch, tmp_path) -> None:
    prepared: list[int] = []
    monkeypatch.setattr(shell.models.imports, "prepare", lambda: prepared.append(1))
    for names, expected in (((), 0), (("a.xml",), 0), (("a.xml", "b.onnx"), 1), (("a.onnx", "b.onnx"), 1)):
        shell.files.expect([tmp_path / name for name in names])
        assert len(prepared) == expected, names
        prepared.clear()
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([], ""))
    shell.files.ask_open()
    assert len(prepared) == 1
    assert shell.names == []


def test_all_files_that_were_chosen_are_opened_and_the_first_readable_one_is_shown(
    shell, shown, many, monkeypatch, tmp_path
) -> None:
    monkeypatch.setattr(shell.models.imports, "prepare", lambda: None)
    asked: list[tuple[str, str]] = []

    def choose(*names: str) -> None:
        chosen = [str(many[0].with_name(name)) for name in names]
        monkeypatch.setattr(
            QFileDialog, "getOpenFileNames", lambda parent, title, folder, _: (asked.append((title, folder)), (chosen, ""))[1]
        )  # fmt: skip
        shell.files.ask_open()

    many[1].write_text("<NetworkModel")
    for names, expected, unread in (
        ((), [], []),
        (("b.xml", "d.xml", "a.xml"), ["[d.xml]", "a.xml"], ["b.xml"]),
        (("a.xml", "b.xml", "c.xml"), ["d.xml", "[a.xml]", "c.xml"], ["b.xml"]),
        (("e.xml",), ["d.xml", "a.xml", "c.xml", "[e.xml]"], []),
    ):
        choose(*names)
        assert shell.names == expected, names
        assert [text for _, text, _ in shown] == [f"{name} could not be opened." for name in unread]
        shown.clear()
    assert asked == [("Open Networks", str(Path.home()))] * 2 + [("Open Networks", str(tmp_path / "many"))] * 2


def test_what_opening_a_document_shows_says_and_remembers(shell, shown, many, tmp_path) -> None:
    a, b, c = many[:3]
    assert shell.files.open(a)
    assert (shell.names, shell.said.pop()) == (["[a.xml]"], ("info", "Opened a.xml"))
    assert shell.files.open(b, show=False)
    assert (shell.names, shell.said.pop()) == (["[a.xml]", "b.xml"], ("info", "Opened b.xml"))
    assert recent(shell) == ["b.xml", "a.xml"]
    assert shell.files.open(b, show=False)
    assert shell.names == ["[a.xml]", "b.xml"]
    link = tmp_path / "link.xml"
    link.symlink_to(b)
    assert shell.files.open(link)
    assert (shell.names, shell.said) == (["a.xml", "[b.xml]"], [])
    shell.files.elsewhere = lambda path: path == c
    assert shell.files.open(c)
    assert (shell.names, recent(shell)) == (["a.xml", "[b.xml]"], ["b.xml", "a.xml"])
    shell.files.elsewhere = lambda path: False
    text = c.read_text()
    c.write_text(text.replace('edit_pos="', 'edit_pos="x'))
    assert shell.files.open(c)
    found = read_document(c).diagnostics
    assert shell.context.root.reading == found
    counted = sum(d.severity is not Severity.INFO for d in found)
    assert counted > 1
    assert shell.said.pop() == ("warning", f"Opened c.xml with {counted} problems: see Type Checking")
    assert shell.files.open(sample_files()[0])
    assert recent(shell) == ["c.xml", "b.xml", "a.xml"], "samples are in a menu of their own"
    b.write_text("<NetworkModel")
    shell.tabs.remove(shell.tabs.find(b))
    shell.said.clear()
    assert not shell.files.open(b)
    assert shown == [("Not Opened", "b.xml could not be opened.", [d.code for d in read_document(b).diagnostics])]
    assert recent(shell) == ["c.xml", "a.xml"]
    assert shell.said == []


@pytest.mark.parametrize(
    ("severities", "said"),
    [
        ((), ("info", "Opened a.xml")),
        ((Severity.INFO, Severity.INFO), ("info", "Opened a.xml")),
        ((Severity.INFO, Severity.WARNING), ("warning", "Opened a.xml with 1 problem: see Type Checking")),
        (
            (Severity.ERROR, Severity.INFO, Severity.WARNING),
            ("warning", "Opened a.xml with 2 problems: see Type Checking"),
        ),
    ],
)
def test_notes_of_the_reader_are_no_problems(shell, many, monkeypatch, severities, said) -> None:
    read = shell.files.read

    def with_findings(path: Path) -> OpenDocument:
        opened = read(path)
        opened.document.reading = tuple(Diagnostic("x", "it is so", severity) for severity in severities)
        return opened

    monkeypatch.setattr(shell.files, "read", with_findings)
    shell.files.open(many[0])
    assert shell.said == [said]


@pytest.mark.parametrize("large", [False, True])
def test_a_large_document_is_read_in_a_thread_to_the_same(shell, many, monkeypatch, large) -> None:
    waited: list[object] = []
    run = files_module.awaited
    monkeypatch.setattr(files_module, "LARGE", many[0].stat().st_size - large)
    monkeypatch.setattr(files_module, "awaited", lambda work, parent: (waited.append(parent), run(work, parent))[1])
    opened = shell.files.read(many[0])
    assert waited == ([shell] if large else [])
    assert opened.document.graph == network(name="a")
    assert opened.document.inference.states["conv"].outputs is not None
    many[1].write_text("<NetworkModel" + " " * 2000)
    with pytest.raises(DiagnosticError) as caught:
        shell.files.read(many[1])
    assert caught.value.diagnostics == read_document(many[1]).diagnostics
    opened.close()


@pytest.mark.parametrize("readable", [True, False])
def test_the_first_document_of_a_window(shell, shown, many, readable) -> None:
    if not readable:
        many[0].write_text("<")
    shell.files.open_first(many[0])
    assert len(shell.tabs) == 1
    assert len(shell.context.root.graph) == (3 if readable else 0)
    assert shell.context.root.path == (many[0] if readable else None)
    many[1].write_text("<")
    shell.files.open_first(many[1])
    assert len(shell.tabs) == 1, "another one is open"
    shell.files.open_first(None)
    assert shell.context.root.path == sample_files()[0]


# --- closing and reopening -------------------------------------------------------------------------------------------


def test_closed_documents_are_reopened_the_latest_first(shell, many, monkeypatch) -> None:
    monkeypatch.setattr(files_module, "CLOSED", 3)
    heard: list[int] = []
    shell.tabs.changed.connect(lambda: heard.append(shell.files.closed))
    shell.files.open_all(many)
    for path in many[:5]:
        assert shell.files.close(shell.tabs.find(path))
    assert shell.files.closed == 3
    assert shell.names == ["[f.xml]"]
    for name in ("e", "d", "c"):
        shell.files.reopen()
        assert shell.context.root.path.stem == name
    heard.clear()
    shell.files.reopen()
    assert heard, "the action is disabled now"
    assert shell.files.closed == 0
    assert sorted(shell.names) == ["[c.xml]", "d.xml", "e.xml", "f.xml"]


def test_a_document_is_kept_once_and_not_while_it_is_open(shell, shown, many) -> None:
    a, b, c = many[:3]
    shell.files.open_all([a, b, c])
    for path in (a, b):
        shell.files.close(shell.tabs.find(path))
    shell.files.open(a)
    assert shell.files.closed == 1
    shell.files.close(shell.tabs.find(a))
    shell.files.open(b)
    shell.files.close(shell.tabs.find(b))
    assert shell.files.closed == 2
    b.unlink()
    shell.files.reopen()
    assert shell.context.root.path == a, "the latest one is gone"
    assert (shell.files.closed, len(shown)) == (0, 1)
    save_document(network(name="b"), b)
    shell.files.close(shell.tabs.find(a))
    shell.files.open(b)
    a.unlink()
    shell.files.reopen()
    assert (shell.context.root.path, shell.files.closed, len(shown)) == (b, 0, 2)
    shell.files.close(shell.tabs.find(b))
    shell.tabs.show(shell.tabs.find(c))
    shell.tabs.shown.document.history.mark_clean()
    b.unlink()
    shell.files.save_to(b)
    assert shell.files.closed == 0, "it was saved under this name"
    assert recent(shell)[0] == "b.xml"


def test_a_model_that_is_open_again_is_not_reopened(shell, many, monkeypatch, tmp_path) -> None:
    source = tmp_path / "net.onnx"
    source.write_bytes(b"model")

    def imported(path: Path, **_: object) -> None:
        tab = shell.add(network(name="net"))
        tab.document.imported = ImportRecord(path, ImportReport("net.onnx"), tab.document)
        shell.models.on_opened(path)

    monkeypatch.setattr(shell.models, "open", imported)
    shell.files.open(many[0])
    for _ in range(2):
        shell.files.open(source)
        assert shell.files.closed == 0
        shell.files.close()
        assert shell.files.closed == 1
    shell.files.reopen()
    assert (shell.context.root.file, shell.files.closed) == (source, 0)


def test_what_closing_leaves(shell, many) -> None:
    shell.files.new()
    assert not shell.files.close(), "an empty network stays"
    assert shell.files.closed == 0
    shell.files.open(many[0])
    assert shell.files.close()
    assert (len(shell.tabs), shell.files.closed) == (1, 1)
    assert (shell.context.root.path, len(shell.context.root.graph)) == (None, 0)
    shell.files.open_all(many[1:4])
    middle = shell.tabs.find(many[2])
    shell.files.close_others(middle)
    assert shell.names == ["[c.xml]"]
    assert shell.files.closed == 3
    shell.files.reopen()
    assert shell.context.root.path == many[3]


class Questions:
    """Answers the questions before work is lost, and notes who asked and what was shown then."""

    def __init__(self, shell: LightShell, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shell, self.asked = shell, []
        self.one, self.many, self.changed = "cancel", None, "cancel"
        monkeypatch.setattr(files_module, "ask_unsaved", lambda name, parent: self._note("one", name, self.one))
        monkeypatch.setattr(
            files_module, "ask_unsaved_many", lambda names, parent: self._note("many", names, self.many)
        )
        monkeypatch.setattr(files_module, "ask_changed", lambda name, parent: self._note("changed", name, self.changed))

    def _note(self, kind: str, what: object, answer: object) -> object:
        self.asked.append((kind, what, next(n for n in self.shell.names if n.startswith("["))))
        return answer


@pytest.fixture
def questions(shell: LightShell, monkeypatch: pytest.MonkeyPatch) -> Questions:
    return Questions(shell, monkeypatch)


@pytest.mark.parametrize("answer", ["save", "discard", "cancel"])
def test_one_unsaved_document_is_shown_and_asked_about(shell, many, questions, answer) -> None:
    shell.files.open_all(many[:3])
    edit(shell, "b", shell.tabs.find(many[1]).document)
    questions.one = answer
    before = many[1].read_bytes()
    assert shell.files.confirm_close() is (answer != "cancel")
    assert questions.asked == [("one", "b.xml", "[● b.xml]")]
    assert (many[1].read_bytes() != before) is (answer == "save")
    assert len(shell.tabs) == 3
    shell.files.close(shell.tabs.find(many[0]))
    assert len(questions.asked) == 1, "it has no changes"


@pytest.mark.parametrize("chosen", [None, [], [0], [1], [2, 0], [0, 1, 2]])
def test_of_several_unsaved_documents_the_chosen_ones_are_saved(shell, many, questions, chosen) -> None:
    shell.files.open_all(many[:5])
    changed = [many[1], many[3], many[4]]
    before = {path: path.read_bytes() for path in many}
    for path in changed:
        edit(shell, path.stem, shell.tabs.find(path).document)
    questions.many = chosen
    assert shell.files.confirm_close() is (chosen is not None)
    assert questions.asked == [("many", ["b.xml", "d.xml", "e.xml"], "[a.xml]")]
    written = {path.stem for path in many if path.read_bytes() != before[path]}
    assert written == {changed[number].stem for number in chosen or ()}


def test_the_window_stays_when_a_document_cannot_be_saved(shell, many, questions, shown, monkeypatch) -> None:
    shell.files.open_all(many[:3])
    for path in many[:3]:
        edit(shell, path.stem, shell.tabs.find(path).document)
    questions.many = [0, 1, 2]
    save = OpenDocument.save

    def fails(opened: OpenDocument, path: Path) -> tuple[Diagnostic, ...]:
        if path == many[1]:
            raise DiagnosticError(Diagnostic("cannot-save", "no room"))
        return save(opened, path)

    monkeypatch.setattr(OpenDocument, "save", fails)
    assert not shell.files.confirm_close()
    assert shown == [
        (
            "Not Saved",
            f"The network could not be saved to {many[1]}. It is still open, and the old file is unchanged.",
            ["cannot-save"],
        )
    ]
    assert shell.names == ["a.xml", "[● b.xml]", "● c.xml"]
    questions.one = "save"
    assert not shell.files.close()
    assert len(shell.tabs) == 3
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    shell.files.new()
    edit(shell, "new")
    assert not shell.files.close(), "the dialog for the name was cancelled"
    assert len(shell.tabs) == 4
    assert questions.asked[-1][1].endswith(" (unsaved)")


def test_close_others_shows_the_one_that_stays_and_asks_about_the_others(shell, many, questions) -> None:
    shell.files.open_all(many[:4])
    for path in (many[0], many[2], many[3]):
        edit(shell, path.stem, shell.tabs.find(path).document)
    keep = shell.tabs.find(many[2])
    questions.many = None
    shell.files.close_others(keep)
    assert questions.asked == [("many", ["a.xml", "d.xml"], "[● c.xml]")]
    assert len(shell.tabs) == 4
    questions.many = [1]
    before = many[0].read_bytes()
    shell.files.close_others(keep)
    assert shell.names == ["[● c.xml]"]
    assert (many[0].read_bytes() == before, read_document(many[3]).graph.properties.get("author_notes")) == (True, "d")


# --- saving ----------------------------------------------------------------------------------------------------------


def test_where_save_writes(shell, many, monkeypatch, tmp_path, questions) -> None:
    asked: list[tuple[str, str]] = []
    target = tmp_path / "target.xml"

    def ask(parent: object, title: str, proposed: Path, table: object) -> Path | None:
        assert (parent, table) == (shell, DOCUMENTS)
        asked.append((title, str(proposed)))
        return target

    monkeypatch.setattr(files_module, "ask_save_path", ask)
    shell.files.open(many[0])
    edit(shell)
    assert shell.files.save()
    assert asked == []
    assert "author_notes" in read_document(many[0]).graph.properties
    sample = tmp_path / "samples" / "sample.xml"  # none of the program's own, which a mistake would overwrite
    sample.parent.mkdir()
    save_document(network(), sample)
    monkeypatch.setattr(locations, "_resolved_samples", lambda: frozenset({locations.resolved(sample)}))
    before = sample.read_bytes()
    shell.files.open(sample)
    edit(shell)
    assert shell.files.save()
    assert asked.pop() == ("Save Network", str(many[0].parent / sample.name))
    assert (sample.read_bytes(), shell.context.root.path) == (before, target)
    target = tmp_path / "second.xml"
    shell.files.new()
    shell.context.root.do(lambda g: commands.set_property(g, "name", "a/b: c"))
    assert shell.files.save()
    assert asked.pop()[1].startswith(str(tmp_path))
    assert "/a/b" not in shell.said[-1][1]
    assert shell.context.root.path == target
    target = None
    assert not shell.files.save_as()
    assert shell.said[-1] == ("info", "Saved second.xml")
    assert recent(shell)[:3] == ["second.xml", "target.xml", "a.xml"]


def test_a_file_that_is_open_elsewhere_is_not_overwritten(shell, many, shown, tmp_path) -> None:
    shell.files.open_all(many[:2])
    before = many[1].read_bytes()
    link = tmp_path / "link.xml"
    link.symlink_to(many[1])
    text = "The network could not be saved to {path}. It is still open, and the old file is unchanged."
    for path in (many[1], link):
        assert not shell.files.save_to(path)
        assert shown.pop() == ("Not Saved", text.format(path=path), ["open-elsewhere"])
    shell.files.is_elsewhere = lambda path: path == many[2]
    assert not shell.files.save_to(many[2])
    assert len(shown) == 1
    assert many[1].read_bytes() == before
    own = tmp_path / "own.xml"
    own.symlink_to(many[0])
    assert shell.files.save_to(own), "its own file by another name"


@pytest.mark.parametrize("answer", ["overwrite", "elsewhere", "cancel"])
def test_changes_of_another_program_are_overwritten_after_a_question_only(
    shell, many, questions, monkeypatch, tmp_path, answer
) -> None:
    questions.changed = answer
    monkeypatch.setattr(files_module, "ask_save_path", lambda *_: tmp_path / "other.xml")
    shell.files.open(many[0])
    edit(shell)
    many[0].write_bytes(write_document(network("64x64x3")))
    theirs = many[0].read_bytes()
    assert shell.files.save() is (answer != "cancel")
    assert questions.asked == [("changed", "a.xml", "[● a.xml]")]
    assert (many[0].read_bytes() == theirs) is (answer != "overwrite")
    assert (tmp_path / "other.xml").exists() is (answer == "elsewhere")
    assert shell.context.root.path == (tmp_path / "other.xml" if answer == "elsewhere" else many[0])
    many[0].unlink()
    assert shell.files.save_to(many[0]), "a file that is gone is written again"
    assert len(questions.asked) == 1


def test_what_saving_says(shell, many, monkeypatch) -> None:
    shell.files.open(many[0])
    found = (Diagnostic("cannot-save", "no room for settings"), Diagnostic("other", "second"))
    save = OpenDocument.save
    monkeypatch.setattr(OpenDocument, "save", lambda opened, path: (save(opened, path), found)[1])
    assert shell.files.save()
    assert shell.said[-1] == ("warning", "The settings were not saved: no room for settings")
    monkeypatch.undo()
    assert shell.files.save()
    assert shell.said[-1] == ("info", "Saved a.xml")


def test_the_project_of_every_saved_document_is_compared_one_after_the_other(shell, many, monkeypatch, qtbot) -> None:
    compared: list[tuple[str, str, object]] = []

    def outdated(graph, registry, folder: Path, training: object) -> tuple[str, ...]:
        compared.append((graph.name, folder.name, training))
        return {"one": ("model.py", "losses.py"), "two": (), "three": ("README.md",)}[folder.name]

    monkeypatch.setattr(files_module, "outdated_files", outdated)
    documents = []
    for path, project in zip(many, ("one", "two", "three", ""), strict=False):
        shell.files.open(path)
        shell.context.root.restore_settings(project=f"/projects/{project}" if project else "", task="denoise")
        documents.append(shell.context.root)
    shell.said.clear()
    text = "The exported project differs from the network: {names}. File > Export > Generate PyTorch Files updates it."
    training = Training.of(documents[0].settings)
    for document in (documents[0], documents[2], documents[3]):
        shell.files._compare_project(document)  # the second waits, the last has none
    qtbot.waitUntil(lambda: not shell.files._comparison.running and len(compared) == 2)
    assert compared == [("a", "one", training), ("c", "three", training)]
    assert shell.said == [
        ("info", text.format(names="model.py, losses.py")),
        ("info", text.format(names="README.md")),
    ]
    shell.said.clear()
    compared.clear()
    shell.tabs.show(shell.tabs.of(documents[1]))
    shell.files.save()
    qtbot.waitUntil(lambda: not shell.files._comparison.running and len(compared) == 1)
    assert shell.said == [("info", "Saved b.xml")]
    monkeypatch.setattr(files_module, "outdated_files", lambda *_: (_ for _ in ()).throw(OSError("no disk")))
    shell.files._compare_project(documents[0])
    shell.files._compare_project(documents[1])
    qtbot.waitUntil(lambda: not shell.files._comparison.running)
    assert shell.files._compared_next is None


# --- folders and recent files ----------------------------------------------------------------------------------------


def test_recent_files_are_the_newest_that_exist(shell, many, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(files_module, "RECENT", 4)

    def heard() -> list[str]:
        return [path.stem for path in shell.files.recent()]

    assert heard() == []
    shell.files.remember(many[0])
    assert heard() == ["a"]
    stored = shell.settings.value("recent")
    shell.settings.setValue("recent", stored if isinstance(stored, str) else stored[0])
    assert heard() == ["a"], "one name is stored as text"
    for path in many[1:]:
        shell.files.remember(path)
    assert heard() == ["f", "e", "d", "c"]
    shell.files.remember(many[3])
    assert heard() == ["d", "f", "e", "c"]
    link = tmp_path / "link.xml"
    link.symlink_to(many[5])
    shell.files.remember(link)
    assert heard() == ["f", "d", "e", "c"]
    many[4].unlink()
    assert heard() == ["f", "d", "c"]
    shell.files.forget(link)
    assert heard() == ["d", "c"]
    shell.files.clear_recent()
    assert heard() == []


def test_dialogs_begin_in_the_folder_of_the_document_or_of_the_newest_one(shell, many, tmp_path) -> None:
    assert shell.files._folder() == Path.home()
    shell.files.open(sample_files()[0])
    assert shell.files._folder() == Path.home()
    other = tmp_path / "other" / "x.xml"
    other.parent.mkdir()
    save_document(network(), other)
    shell.files.open(other)
    shell.files.open(many[0])
    assert shell.files._folder() == many[0].parent
    shell.files.open(sample_files()[0])
    assert shell.files._folder() == many[0].parent
    shell.files.new()
    assert shell.files._folder() == many[0].parent
    shell.files.open(other)
    assert shell.files._folder() == other.parent


# --- the last session ------------------------------------------------------------------------------------------------


def test_the_tabs_of_a_session_are_stored_in_their_order_with_the_current_one(shell, many, monkeypatch) -> None:
    assert session.stored_tabs(shell.settings) == []
    monkeypatch.chdir(many[0].parent)
    shell.files.open_all([Path(path.name) for path in many[:3]])
    shell.files.new()
    shell.tabs.show(shell.tabs.all[1])
    shell.tabs.bar.moveTab(2, 0)
    session.store_tabs(shell.settings, shell.tabs)
    monkeypatch.chdir("/")
    assert session.stored_tabs(shell.settings) == [(many[2], False), (many[0], False), (many[1], True)]
    monkeypatch.chdir(many[0].parent)
    many[0].unlink()
    assert session.stored_tabs(shell.settings) == [(many[2], False), (many[1], True)]
    shell.tabs.show(shell.tabs.all[3])
    session.store_tabs(shell.settings, shell.tabs)
    assert [shown for _, shown in session.stored_tabs(shell.settings)] == [False, False]
    for value, expected in ((str(many[1]), [many[1]]), ("", []), (None, []), ([], [])):
        shell.settings.setValue("tabs", value)
        assert [path for path, _ in session.stored_tabs(shell.settings)] == expected
    monkeypatch.setattr(session, "MOST", 2)
    session.store_tabs(shell.settings, shell.tabs)
    assert len(shell.settings.value("tabs")) == 2


@pytest.mark.parametrize(("name", "stored"), [("net.onnx", True), ("net.pt2", False)])
def test_an_import_is_stored_unless_reading_it_could_run_code(shell, tmp_path, name, stored) -> None:
    source = tmp_path / name
    source.write_bytes(b"model")
    tab = shell.add(network())
    tab.document.imported = ImportRecord(source, ImportReport(name), tab.document)
    session.store_tabs(shell.settings, shell.tabs)
    assert session.stored_tabs(shell.settings) == ([(source, True)] if stored else [])


def test_a_document_that_was_closed_through_a_link_is_open_again_under_its_own_name(shell, many, tmp_path) -> None:
    link = tmp_path / "link.xml"
    link.symlink_to(many[0])
    assert shell.files.open(link)
    assert shell.files.close()
    assert shell.files.closed == 1
    assert shell.files.open(many[0])
    assert shell.files.closed == 0
