"""The Training panel after any steps: task, fields, folder, place, buttons and message are compared with a model."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QLineEdit, QToolButton
from pytestqt.qtbot import QtBot
from random_steps import play
from training_kit import make_run
from window_kit import shown

import samples
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.training import StartRequest, SweepRequest, TrainingController, training_of
from app.ui.train import place_choice, training_panel
from app.ui.train.settings_form import FIELDS
from app.ui.train.training_panel import TrainingPanel
from designer.graph.commands import set_params
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template_commands import make_template
from designer.operators.registry import default_registry
from designer.training.watched_run import WatchedRun
from exporters.pytorch import tasks as exported_tasks
from exporters.pytorch.tasks import TASKS

PHOTOS = str(samples.PHOTOGRAPHS)
WITH_EXAMPLES = ("classification", "segmentation")
USUAL = {field.name: field.default for field in FIELDS}
EMPTY, WRONG, MAKING, STARTING = (
    "Unavailable: the network has no layers",
    "Unavailable: the network has errors, see Type Checking",
    "Unavailable: example data are being made",
    "Unavailable: a run is being started",
)


def network() -> Graph:
    layers = [
        Layer("image", "input", params={"dims": "16x8x3"}),
        Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "4"}),
        Layer("inner", "convolution", inputs=(Source("conv"),), params={"features": "4"}),
        Layer("output", "output", inputs=(Source("inner"),)),
    ]
    return Graph(layers)


class Pages(QDialog):
    """A page of samples without data."""

    opened: ClassVar[list[Path]] = []

    def __init__(self, path: Path, parent: object) -> None:
        super().__init__()
        self.opened.append(path)


class Panel:
    """The panel of a window whose work ends when a step says so."""

    def __init__(self, qtbot: QtBot, patch: pytest.MonkeyPatch, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.hosts = ["gpu"]
        self.suggests = "denoising"  # the network; "": nothing, as it is not finished
        patch.setattr(place_choice, "configured_hosts", lambda: list(self.hosts))
        patch.setattr(exported_tasks, "task_of_network", lambda _graph, _registry: self.suggest())
        patch.setattr(TrainingController, "look", lambda _self: None)  # runs are those of `run_is_added`
        patch.setattr(training_panel, "SamplesDialog", Pages)
        patch.setattr(QFileDialog, "getExistingDirectory", self.folder_dialog)
        Pages.opened = []
        self.context = Context(default_registry())
        self.folder = folder
        graphs = (network(), network(), network(), Graph())
        self.documents = [Document(graph, self.context.registry, parent=self.context) for graph in graphs]
        for number, document in enumerate(self.documents):
            if document.graph:
                document.do(lambda graph: make_template(graph, ["inner"], "Part"))
            document.project = folder / f"project {number}"
        self.documents[1].change_settings(task="segmentation", recipe={"lr": "0.5", "epochs": "7"})
        self.documents[2].change_settings(task="classification")
        self.training = training_of(self.context)
        patch.setattr(self.training._working, "start", lambda _work: None)
        self.panel = shown(qtbot, TrainingPanel(self.context), 500, 900)
        assert self.seen()["start"] == ("Start Training", False, EMPTY)
        assert not self.panel.sweep.isEnabled()
        self.panel._later.setInterval(0)
        self.panel._settled.setInterval(0)
        self.browsed = ""
        self.number = 0
        self.task = ""
        self.own_task = False  # the user chose it
        self.defaults: dict[str, str] = {}
        self.texts = dict.fromkeys(("data", "inputs", "targets", "more"), "")
        self.proposed = ""  # the folder of the project that follows the runs
        self.project = ""
        self.place = "This machine"
        self.listed = list(self.hosts)
        self.words = {"start": "Start Training", "sweep": "Sweep...", "example": "Make Example Data"}
        self.problem = ""
        self.busy = self.making = False
        self.begun = ""
        self.go(0)

    @property
    def document(self) -> Document:
        return self.context.root

    def suggest(self) -> exported_tasks.Task:
        if not self.suggests:
            raise DiagnosticError((Diagnostic("unfinished", "the network is not finished"),))
        return TASKS[self.suggests]

    def folder_dialog(self, _parent: object, title: str, begin: str) -> str:
        assert (title, begin) == ("Project Folder", self.project)
        return self.browsed

    # --- the model ---------------------------------------------------------------------------------------------------

    def suggested(self) -> str:
        runs = self.training.runs
        return str(runs[-1].folder.project if runs else self.document.project)

    def show_task(self, task: str) -> None:
        self.task = task
        mine = task == self.document.settings.task
        self.defaults = dict(self.document.settings.recipe) if mine else {}
        if task == "classification" and self.texts["data"] == PHOTOS:
            self.texts["data"] = ""
        if task in ("denoising", "super-resolution") and not self.texts["data"]:
            self.texts["data"] = PHOTOS

    def offer_task(self) -> None:
        self.own_task = False
        self.show_task(self.document.settings.task or self.suggests or "denoising")

    def follow(self) -> None:
        """After another run or another file."""
        if self.project == self.proposed:
            self.project = self.proposed = self.suggested()

    # --- steps -------------------------------------------------------------------------------------------------------

    def go(self, number: int) -> None:
        """Show another document."""
        self.number = number
        self.context.set_document(self.documents[number])
        self.project = self.proposed = self.suggested()
        self.problem = ""
        self.listed = list(self.hosts)
        self.offer_task()

    def host_appears(self) -> None:
        self.hosts.append(f"host {len(self.hosts)}")

    def choose_place(self) -> None:
        self.place = self.random.choice(("This machine", "gpu", "typed"))
        self.panel.place.box.setCurrentText(self.place)

    def choose_task(self) -> None:
        task = self.random.choice(list(TASKS))
        box = self.panel.task
        box.setCurrentIndex(box.findData(task))
        box.activated.emit(box.currentIndex())
        self.own_task = True
        self.show_task(task)

    def type_data(self) -> None:
        name = self.random.choice(list(self.texts))
        self.texts[name] = self.random.choice(("", "/mine", "/photos")) if name != "more" else self.texts[name]
        self.panel.form.set_text(name, self.texts[name])

    def type_options(self) -> None:
        self.texts["more"] = self.random.choice(("", "--ema 0.5", "ema 0.5"))
        self.panel.form.set_text("more", self.texts["more"])

    def type_project(self) -> None:
        self.project = self.random.choice((str(self.folder / "typed"), "typed/here"))
        self.panel.project.setText(self.project)

    def browse(self) -> None:
        self.browsed = self.random.choice(("", str(self.folder / "browsed")))
        button = self.panel.findChild(QToolButton, "training.project.browse")
        assert button is not None
        button.click()
        self.project = self.browsed or self.project

    def network_changes(self) -> None:
        """An edit of a network, which may be one that is not shown; the suggestion follows if the panel is visible."""
        document = self.random.choice((self.document, self.random.choice(self.documents)))
        self.suggests = self.random.choice(("", *TASKS))
        document.states_changed.emit(frozenset())
        assert self.panel._later.isActive() is (document is self.document)
        assert self.panel._settled.isActive() is (document is self.document)
        if document is self.document:
            self.settled()

    def settled(self) -> None:
        """What an edit or showing the panel leads to after a moment."""
        free = self.panel.isVisible() and not self.own_task and not self.document.settings.task
        if free and self.suggests not in ("", self.task):
            self.offer_task()

    def enter(self) -> None:
        """Show the inside of a part of the network, or all of it."""
        if not self.context.leave() and self.document.graph:
            assert self.context.enter("Part")

    def network_breaks(self) -> None:
        if "conv" in self.document.graph:
            present = self.document.graph["conv"].params.get("kernel")
            kernel = self.random.choice([size for size in ("3x3", "5x5", "wrong") if size != present])
            self.document.do(lambda graph: set_params(graph, {"conv": {"kernel": kernel}}))
            self.settled()

    def hide_and_show(self) -> None:
        self.panel.hide()
        self.network_changes()
        QApplication.processEvents()
        self.check(False)
        self.panel.show()
        self.settled()

    def document_chooses_task(self) -> None:
        """A setting that another dialog changed: it counts when the document is shown again, or its task is chosen."""
        self.document.change_settings(task=self.random.choice(("", "restoration")))

    def run_is_added(self) -> None:
        number = len(list(self.folder.glob("other*")))
        run = WatchedRun(
            make_run(
                self.folder / f"other {number}",
                "a",
                settings={"lr": 0.25, "data": "/of/run", "inputs": "/in", "seed": 3},
                task=self.random.choice(("", "denoising", "denoising", *TASKS)),
            )
        )
        run.read()
        self.training._set_runs([*self.training.runs, run][-2:])
        self.follow()

    def file_is_saved(self) -> None:
        self.document.project = self.folder / f"saved {self.random.randrange(1000)}"
        self.document.path_changed.emit()
        self.follow()

    def clone(self) -> None:
        if not self.training.runs:
            return
        run = self.random.choice(self.training.runs)
        task = run.snapshot.curves.task
        self.training.clone_requested.emit(run)
        if task in TASKS:
            self.own_task = True
            self.show_task(task)
        self.texts = {"data": "/of/run", "inputs": "/in", "targets": "", "more": ""}
        self.project = str(run.folder.project)
        assert self.panel.form.text("lr") == "0.25"
        assert self.panel.form.text("seed") == "3"

    def make_examples(self) -> None:
        if self.busy or self.task not in WITH_EXAMPLES:
            return
        QTest.mouseClick(self.panel.example, Qt.MouseButton.LeftButton)
        self.begin("example", "Making Example Data ...")
        self.making = True

    def begin(self, name: str, text: str = "") -> None:
        self.busy, self.problem, self.begun = True, "", name
        if text:
            self.words[name] = text

    def start(self) -> None:
        what = self.random.choice(("start", "samples", "sweep"))
        button = getattr(self.panel, what)
        assert button.isEnabled() is not bool(self.reason())
        if self.reason():
            return
        if what == "sweep":
            if self.texts["more"] == "ema 0.5":
                button.click()
                self.problem = "'ema' is not an option"
                return
            base = StartRequest(Path(self.project), {}, self.task)
            self.panel._start_sweep(SweepRequest(base.project / "sweep", (), {}, self.task))
            self.begin("sweep", "Starting ...")
            return
        button.click()
        if self.texts["more"] == "ema 0.5":
            self.problem = "'ema' is not an option"
            return
        self.begin(what, "Starting ..." if what == "start" else "")
        assert self.document.project == Path(self.project).absolute()

    def ends(self) -> None:
        """The work of the last step is done, or has failed."""
        if not self.busy:
            return
        self.busy = self.making = False
        self.words = {"start": "Start Training", "sweep": "Sweep...", "example": "Make Example Data"}
        if self.random.random() < 0.3:
            self.training._on_start_failed((Diagnostic("full", "the disk is full"),))
            self.problem = "The disk is full."
        elif self.begun == "example":
            self.training._on_worked(self.folder / "examples")
            if self.task == "classification":
                self.texts["data"] = str(self.folder / "examples" / "digits")
            else:
                for name in ("inputs", "targets"):
                    self.texts[name] = str(self.folder / "examples" / "shapes" / name)
        elif self.begun == "samples":
            before = len(Pages.opened)
            self.training._on_worked(self.folder / "page.png")
            assert Pages.opened[before:] == [self.folder / "page.png"]
        else:
            self.training._done = lambda _made: None
            self.training._on_worked(None)

    # --- what is shown -------------------------------------------------------------------------------------------------

    def reason(self) -> str:
        if not self.document.graph:
            return EMPTY
        if "conv" in self.document.graph and self.document.graph["conv"].params.get("kernel") == "wrong":
            return WRONG
        if self.busy:
            return MAKING if self.making else STARTING
        return ""

    def seen(self) -> dict[str, Any]:
        panel = self.panel
        form, box = panel.form, panel.place.box
        return {
            "task": panel.task.currentData(),
            "tasks": [panel.task.itemText(row) for row in range(panel.task.count())],
            "texts": {name: form.text(name) for name in ("data", "inputs", "targets", "more")},
            "fields": [field.name for row, field in enumerate(FIELDS) if form.rows.isRowVisible(row)],
            "defaults": {
                name: widget.placeholderText()
                for name, widget in form.fields.items()
                if isinstance(widget, QLineEdit) and name != "more"
            },
            "project": panel.project.text(),
            "place": box.currentText(),
            "places": [box.itemText(row) for row in range(box.count())],
            "python": not panel.place.python_line.isHidden(),
            "start": (panel.start.text(), panel.start.isEnabled(), panel.start.toolTip()),
            "samples": (panel.samples.text(), panel.samples.isEnabled()),
            "sweep": (panel.sweep.text(), panel.sweep.isEnabled()),
            "example": (panel.example.text(), panel.example.isEnabled(), not panel.example.isHidden()),
        }

    def expected(self) -> dict[str, Any]:
        reason = self.reason()
        defaults = {name: text for name, text in USUAL.items() if name != "amp"} | self.defaults
        if "epochs" in defaults:
            defaults["steps"] = f"{defaults.pop('epochs')} epochs"
        tip = reason or "Export the project and train the network in a process of its own"
        return {
            "task": self.task,
            "tasks": [task.title for task in TASKS.values()],
            "texts": self.texts,
            "fields": [field.name for field in FIELDS if not field.tasks or self.task in field.tasks],
            "defaults": defaults,
            "project": self.project,
            "place": self.place,
            "places": ["This machine", *self.listed],
            "python": self.place != "This machine",
            "start": (self.words["start"], not reason, tip),
            "samples": ("Show Samples", not reason),
            "sweep": (self.words["sweep"], not reason),
            "example": (self.words["example"], not self.busy, self.task in WITH_EXAMPLES),
        }

    def check(self, settled: bool = True) -> None:
        if settled:
            for _ in range(3):
                QCoreApplication.processEvents()
            assert not self.panel._later.isActive()
        seen, expected = self.seen(), self.expected()
        assert {name: (seen[name], each) for name, each in expected.items() if seen[name] != each} == {}
        assert self.panel.problem.text().startswith(self.problem)
        assert self.panel.problem.isHidden() is not bool(self.problem)


@pytest.mark.parametrize("seed", range(5))
def test_the_panel_shows_the_new_run_of_the_document_as_it_is(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int
) -> None:
    made = Panel(qtbot, monkeypatch, tmp_path, seed)
    steps: list[Callable[[], object]] = [
        lambda: made.go(made.random.randrange(4)),
        made.host_appears, made.choose_place, made.choose_task, made.choose_task, made.type_data, made.type_options,
        made.type_project, made.browse, made.network_changes, made.network_changes, made.network_breaks, made.enter,
        made.hide_and_show, made.document_chooses_task, made.run_is_added, made.file_is_saved, made.clone,
        made.make_examples, made.start, made.start, made.ends, made.ends,
    ]  # fmt: skip
    play(made, steps, 90)


@pytest.mark.parametrize("task", list(TASKS))
def test_example_data_and_the_settings_of_a_run_are_filled_in_for_every_task(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, task: str
) -> None:
    made = Panel(qtbot, monkeypatch, tmp_path, 1)
    others = [name for name in TASKS if name != task]
    for other in others:
        run = WatchedRun(
            make_run(
                tmp_path / other / task,
                "a",
                settings={"lr": 0.25, "data": "/of/run", "inputs": "/in", "seed": 3},
                task=task,
            )
        )
        run.read()
        made.training._set_runs([run])
        made.follow()
        made.panel._choose_task(other)
        made.panel.task.setCurrentIndex(made.panel.task.findData(other))
        made.own_task = True
        made.show_task(other)
        made.check()
        made.clone()
        made.check()
    if task in WITH_EXAMPLES:
        made.make_examples()
        made.check()
        monkeypatch.setattr(made.random, "random", lambda: 1.0)  # nothing fails
        made.ends()
        made.check()


@pytest.mark.parametrize("what", ["start", "samples"])
def test_the_folder_of_a_project_is_typed_like_other_paths(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str
) -> None:
    made = Panel(qtbot, monkeypatch, tmp_path, 1)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(made.random, "random", lambda: 1.0)  # nothing fails
    monkeypatch.setattr(made.random, "choice", lambda _words: what)
    for text, folder in (
        ("~/mine", "home/mine"),
        (" ~/two words ", "home/two words"),
        ("~nobody-of-that-name/mine", "~nobody-of-that-name/mine"),
        ("here/mine", "here/mine"),
        (str(tmp_path / "there"), "there"),
    ):
        made.panel.project.setText(text)
        made.project = str(tmp_path / folder)
        made.start()
        made.ends()
        assert made.document.project == tmp_path / folder
        assert made.panel.project.text() == text


def test_a_document_without_a_task_has_none_of_the_document_before(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = Panel(qtbot, monkeypatch, tmp_path, 1)
    for before in (1, 2):
        for suggests in ("", "restoration"):
            for after in (0, 3):
                made.suggests = suggests
                made.go(before)
                made.check()
                made.go(after)
                made.check()
                assert made.task == (suggests or "denoising")
