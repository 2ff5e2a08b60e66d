"""Sessions with files, tabs and panels: what the window, its settings and the disk show after each step is recorded and compared."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from collections.abc import Callable
from pathlib import Path

from effects import SessionEffects
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton, QToolButton
from recorded_state import compare, plain
from window_kit import settle, without_pauses

import samples
from app.ui.document.import_record import ImportRecord
from app.ui.document.locations import sample_files
from app.ui.shell import files
from app.ui.shell.export.deploy import DeployExportDialog
from app.ui.shell.export.onnx import OnnxExportDialog
from app.ui.shell.export.picture import PictureDialog
from app.ui.shell.export.pytorch import PyTorchExportDialog
from app.ui.shell.export.tensorrt import TensorRtExportDialog
from app.ui.shell.module_dialog import ModuleDialog
from app.ui.shell.window import MainWindow, new_window, shown_windows
from designer.files.document import save_document
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.graph.template_commands import rename_template
from designer.importers.report import ImportReport

LEFT = Qt.MouseButton.LeftButton


def network(count: int) -> Graph:
    layers = [Layer("in", "input", params={"dims": "16x16x3"})]
    layers += [
        Layer(f"n{i}", "identity", (320 * i, 0), (Source(layers[-1].name if i == 1 else f"n{i - 1}"),))
        for i in range(1, count)
    ]
    return Graph(layers)


@pytest.fixture
def folder(tmp_path) -> Path:
    """Documents, two of the same name in different folders, and one that cannot be read."""
    place = tmp_path / "documents"
    (place / "inner").mkdir(parents=True)
    for number, name in enumerate(("one", "two", "three", "inner/one")):
        save_document(network(2 + number), place / f"{name}.xml")
    (place / "bad.xml").write_text("<NetworkModel")
    return place


class Session:
    """Takes steps and writes down what each changes."""

    def __init__(self, window: MainWindow, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.window, self.folder = window, folder
        self.lines: list[str] = []
        self._effects = SessionEffects(window, folder)
        without_pauses(window)
        self._patch = monkeypatch

    def step(self, what: str, act: Callable[[], object], *answers: str) -> None:
        QApplication.processEvents()
        found = self._effects.of(act, *answers)
        self.lines += ["", f"# {what}", *map(plain, found)]

    def do(self, action: str, *answers: str) -> None:
        """Trigger an action of the window."""
        QApplication.processEvents()
        assert self.window.actions_[action].isEnabled(), action
        self.step(action, self.window.actions_[action].trigger, *answers)

    def open(self, *names: str) -> None:
        paths = [self.folder / name for name in names]
        self.step(f"open {' '.join(names)}", lambda: self.window.files.open_all(paths))

    def edit(self, text: str) -> None:
        root = self.window.context.root
        self.step(f"edit {text}", lambda: root.do(lambda g: commands.set_property(g, "author_notes", text)))

    def save_as(self, name: str, *answers: str) -> None:
        self._patch.setattr(
            QFileDialog, "getSaveFileName", lambda *a, **k: (str(self.folder / name) if name else "", "")
        )
        self.do("file.save_as", *answers)

    def saved(self, save: Callable[[], object]) -> None:
        """Save, and wait for what the comparison with the exported project reports."""
        save()
        job = self.window.files._comparison
        while job.running:
            QApplication.processEvents()

    def show(self, number: int) -> None:
        self.step(f"show tab {number}", lambda: self.window.tabs.bar.setCurrentIndex(number))

    def notice(self, name: str, *answers: str) -> None:
        """Press a button of the bar above the canvas."""
        button = self.window.disk.bar.findChild(QToolButton, f"disk.{name}")
        assert button is not None
        assert button.isVisible()
        self.step(f"notice {name}", lambda: QTest.mouseClick(button, LEFT), *answers)

    def other_program(self, name: str, count: int | None) -> None:
        """Another program writes or deletes a file; the window looks when it becomes active."""
        path = self.folder / name

        def write() -> None:
            if count is None:
                path.unlink()
            else:
                save_document(network(count), path)
            self.window.disk.check()

        self.step(f"another program writes {name}" if count else f"another program deletes {name}", write)


@pytest.fixture
def session(window, folder, monkeypatch) -> Session:
    return Session(window, folder, monkeypatch)


def test_opening_saving_and_closing(session):
    window = session.window
    session.open("one.xml")
    session.edit("a")
    session.do("edit.undo")
    session.do("edit.redo")
    session.do("file.save")
    session.edit("b")
    session.save_as("")
    session.save_as("copy.xml")
    session.open("one.xml", "inner/one.xml", "bad.xml", "gone.xml")
    session.save_as("copy.xml")  # it is open
    session.do("file.new")
    session.edit("c")
    session.do("file.close", "Cancel")
    session.do("file.close", "Discard")
    session.do("file.new")
    session.edit("d")
    session.save_as("made.xml")
    session.edit("e")
    session.do("file.close", "Save")
    session.do("file.reopen")
    session.do("file.close")
    (session.folder / "made.xml").unlink()
    session.do("file.close")
    session.do("file.reopen")
    for number in range(len(window.tabs)):
        window.tabs.all[number].document.keep("author_notes", f"x{number}")
    session.step("quit", window.confirm_close, "Cancel")
    session.step("quit", window.confirm_close, f"-{window.tabs.all[0].document.title}", "Save")
    session.do("file.save")
    for opened in window.tabs.all[1:3]:
        opened.document.keep("author_notes", "y")
    session.step("close others", lambda: window.files.close_others(window.tabs.all[0]), "Discard All")
    session.do("file.reopen")
    session.step("open a sample", lambda: window.files.open(sample_files()[0]))
    session.edit("f")
    session.save_as("sample.xml")
    session.step("clear", window.files.clear_recent)
    compare("session_files", session.lines)


def test_what_opening_and_saving_report(session, monkeypatch):
    """A document with problems, settings that cannot be read, and projects that were exported from another network."""
    window = session.window
    text = (session.folder / "three.xml").read_text()
    for name, old, new in (
        ("surplus", "<Layer ", "<Surplus /><Layer "),
        ("nowhere", 'edit_pos="', 'edit_pos="x'),
        ("missing", 'input="in"', 'input="gone"'),
    ):
        (session.folder / f"{name}.xml").write_text(text.replace(old, new))
        session.open(f"{name}.xml")
        session.lines += [f"finds {d.severity.value} {d.code}" for d in window.context.root.reading]
    (session.folder / "noted.xml").write_text(text.replace("<Layers>", "<Layers surplus='1'>", 1))
    session.open("noted.xml", "two.xml")
    for names in ((), ("model.py",), ("model.py", "losses.py", "README.md")):
        monkeypatch.setattr(files, "outdated_files", lambda *_args, names=names: names)
        window.context.root.change_settings(project=str(session.folder / "project"))
        session.step(f"save with outdated {names}", lambda: session.saved(window.files.save))
    window.context.root.change_settings(project="")
    session.step("save without a project", lambda: session.saved(window.files.save))
    monkeypatch.setattr(files.OpenDocument, "save", lambda _self, _path: (Diagnostic("x", "no room"),))
    session.step("save without settings", window.files.save)
    compare("session_reports", session.lines)


def test_two_windows(session, qtbot):
    """A document that is open in another window is shown there, and is not opened or overwritten here."""
    window = session.window
    session.open("one.xml", "two.xml")
    other = new_window(window)
    other.files.open_all([session.folder / "three.xml", session.folder / "inner" / "one.xml"])
    raised = []
    for each, name in ((window, "first"), (other, "second")):
        each.raise_ = lambda name=name: raised.append(f"raises {name}")  # type: ignore[method-assign]
        each.activateWindow = lambda name=name: raised.append(f"activates {name}")  # type: ignore[method-assign]

    def tell() -> None:
        settle(window)
        settle(other)
        session.lines += [*raised, f"the other window shows {other.context.root.title} in {len(other.tabs)} tabs"]
        raised.clear()

    session.open("inner/one.xml")
    tell()
    session.open("three.xml", "one.xml")
    tell()
    session.save_as("three.xml")
    tell()
    other.close_now()
    session.open("three.xml")
    session.lines.append(f"windows {len(shown_windows())}")
    compare("session_windows", session.lines)


def test_tabs(session):
    window = session.window
    session.open("one.xml", "two.xml", "three.xml")
    window.canvas.viewer.zoom_by(0.83 / window.canvas.viewer.zoom)
    window.context.select(("n1",))
    session.edit("a")
    session.do("tab.next")
    window.context.select(("in", "n2"))
    window.canvas.viewer.zoom_by(1.7 / window.canvas.viewer.zoom)
    session.do("tab.next")
    session.do("tab.next")
    session.do("tab.previous")
    session.show(1)
    session.step("move", lambda: window.tabs.bar.moveTab(1, 0))
    session.do("tab.next")
    session.do("edit.undo")
    session.step("close a tab in the background", lambda: window.tabs.close_asked.emit(window.tabs.all[2]))
    session.do("file.close")
    session.do("file.close")
    session.do("file.reopen")
    session.do("file.reopen")
    session.do("file.reopen")
    session.do("file.new")
    session.do("file.new")
    session.edit("b")
    session.do("file.new")
    session.edit("c")
    session.step("name", lambda: window.context.root.do(lambda g: commands.set_property(g, "name", "mine")))
    session.do("file.close", "Discard")
    compare("session_tabs", session.lines)


def test_files_that_other_programs_change(session):
    window = session.window
    session.open("one.xml", "two.xml")
    session.other_program("one.xml", 6)
    session.notice("compare")
    session.notice("reload")
    session.do("edit.undo")
    session.other_program("one.xml", 7)
    session.notice("keep")
    session.do("file.save")
    session.other_program("two.xml", 8)
    session.do("tab.next")
    session.edit("a")
    session.do("file.save", "Cancel")
    session.do("file.save", "Overwrite")
    session.other_program("two.xml", 4)
    session.save_as("elsewhere.xml")  # nothing is overwritten
    session.open("two.xml")
    session.other_program("two.xml", None)
    session.notice("keep")
    session.other_program("one.xml", None)
    session.show(0)
    session.notice("save")
    session.do("file.close")
    session.other_program("two.xml", 3)
    compare("session_disk", session.lines)
    window.context.root.history.mark_clean()


def test_inside_a_template(session):
    """What belongs to the file follows edits in a template: title, tab, undo, saving, and the tab that comes back."""
    context = session.window.context
    inner = (Layer("p", "template_input"), Layer("o", "template_output", (320, 0), (Source("p"),)))
    graph = network(2)
    layers = [
        *graph,
        *(Layer(f"b{i}", "template", (640, 160 * i), (Source("n1"),), {"template": "t"}) for i in range(2)),
    ]
    save_document(Graph(layers, templates=(Template("t", inner),)), session.folder / "with.xml")
    session.open("with.xml", "two.xml")
    session.step("enter", lambda: context.enter("b1"))
    session.step("add", lambda: context.document.do(lambda g: commands.add_layer(g, Layer("x", "identity", (160, 0)))))
    session.step("settings", lambda: context.document.change_settings(iterations=7))
    session.do("edit.undo")
    session.do("edit.undo")
    session.do("edit.redo")
    session.do("file.save")
    session.step("select", lambda: context.select(("x",)))
    session.do("tab.next")
    session.do("tab.next")
    session.step("rename", lambda: context.root.do(lambda g: rename_template(g, "t", "u")))
    session.step("rename", lambda: context.root.do(lambda g: commands.rename_layer(g, "b1", "c")))
    session.save_as("inside.xml")
    session.step("view", lambda: context.document.keep("author_notes", "z"))
    session.step("remove", lambda: context.root.do(lambda g: commands.remove_layers(g, ["c"])))
    session.do("edit.undo")
    session.step("enter", lambda: context.enter("c"))
    session.do("file.close", "Discard")
    compare("session_template", session.lines)


def test_where_file_dialogs_begin(session, monkeypatch, tmp_path):
    """The folder, proposed name and kinds of every file dialog, for each origin of the document."""
    window, asked = session.window, []

    def asks(kind: str, nothing: object) -> None:
        def ask(_parent: object, title: str = "", folder: str = "", kinds: str = "", *_rest: object) -> object:
            asked.append(f"{title} in {folder} for {kinds.partition(';;')[0]}")
            return nothing

        monkeypatch.setattr(QFileDialog, kind, ask)

    for kind in ("getOpenFileName", "getSaveFileName"):
        asks(kind, ("", ""))
    asks("getOpenFileNames", ([], ""))
    asks("getExistingDirectory", "")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))

    def look(what: str) -> None:
        asked.clear()
        context = window.context
        window.files.ask_open()
        window.files.save_as()
        window.docks.panel("differences").ask_file()
        window.weight_edits.save_weights()
        settings = window.docks.panel("network_settings")
        for name in ("folder", "file"):
            settings.findChild(QToolButton, f"network_settings.weights.{name}").click()
        record = window.docks.panel("import_report")
        record.save()
        for kind in (OnnxExportDialog, DeployExportDialog, PyTorchExportDialog, TensorRtExportDialog):
            dialog = kind(context, window)
            asked.append(f"{dialog.windowTitle()} to {dialog.target.text()}")
            dialog.browse()
            for button in dialog.findChildren(QPushButton):
                if button.objectName().endswith((".weights.browse", ".weights_file.browse", ".model.browse")):
                    button.click()
            dialog.deleteLater()
        for suffix in (".png", ".pdf"):
            picture = PictureDialog(context, window.canvas, suffix, window)
            asked.append(f"{picture.windowTitle()} to {picture.target.text()}")
            picture.browse()
            picture.deleteLater()
        module = ModuleDialog(window.settings, window.files._folder(), lambda _source: None, window)
        module._browse_module()
        module._browse_state()
        module.deleteLater()
        for line in asked:
            text = line.replace(str(samples.documents()[0].parent), "<samples>").replace(str(tmp_path), "<tmp>")
            session.lines.append(text)

    session.lines.append("# a new network")
    look("new")
    session.open("inner/one.xml")
    session.lines.append("# a saved network")
    look("saved")
    session.step("weights", lambda: window.context.root.change_settings(weights=str(tmp_path / "w" / "best.pt")))
    session.lines.append("# with weights")
    look("weights")
    session.step("open a sample", lambda: window.files.open(samples.documents()[0]))
    session.lines.append("# a sample")
    look("sample")
    session.do("file.new")
    session.edit("a")
    session.lines.append("# a new network after others")
    look("new")
    document = window.context.root
    report = ImportReport("net.onnx", "pytorch 2.9", 17, "", 0, 0, 0, 0, {}, None, None)
    document.imported = ImportRecord(session.folder / "net.onnx", report, document)
    window.context.root_changed.emit(document)
    session.lines.append("# an imported network")
    look("imported")
    document.history.mark_clean()
    compare("session_dialogs", session.lines)


def test_panels_and_options(session):
    window = session.window
    session.open("one.xml")
    names = [n for n in window.actions_.declared if n.startswith(("workspace.", "panel.", "view.links", "view.figure"))]
    for name in (*names, "view.minimap", "view.minimap", "view.theme_dark", "view.theme_light", "view.theme_system"):
        session.do(name)
    session.step("close a panel", window.docks["training_runs"].close)
    session.do("workspace.profile")
    session.do("view.reset_layout")
    session.step("layout", lambda: window.layouts.save("mine"))
    session.step("panel", lambda: window.docks.show("differences"))
    session.step("layout", lambda: window.layouts.show("mine"))
    session.step("layout", lambda: window.layouts.show("none"))
    session.step("layout", lambda: window.layouts.delete("mine"))
    session.step("inspect", lambda: window.context.inspect_requested.emit("n1"))
    session.step("problems", window.status.problems.click)
    session.step("compare", window.compare_saved)
    session.do("run.train")
    QCoreApplication.processEvents()
    compare("session_panels", session.lines)
