"""Training runs of a window: which there are, how they go on, and which are shown. The processes are independent of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from PySide6.QtCore import QObject, QTemporaryDir, QTimer, Signal

from app.ui.document.document import Document
from app.ui.engine.analysis import DIRECT
from app.ui.engine.context import Context
from app.ui.widgets.background import Background
from app.ui.widgets.sentences import placed_text
from designer.files.agreements import not_agreed
from designer.files.atomic import make_folder
from designer.files.settings import Settings
from designer.files.weight_versions import version_path, weight_versions
from designer.files.weights import load_weights, required_weights, save_weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.operators.registry import Registry
from designer.texts import tr
from designer.training import run_registry, trainer
from designer.training.run_folder import RUNS, Command, Notes, RunFolder, new_name, runs_of
from designer.training.trail import write_frame
from designer.training.trainer import Options, options_of, project_folder
from designer.training.watched_run import RunSnapshot, WatchedRun

Made = TypeVar("Made")
BUSY, QUIET = 400, 2500  # ms between two looks at the files, with and without a process that trains


@dataclass(frozen=True)
class StartRequest:
    """A run to start: the folder of its project, the options of `train.py`, and the task; empty: the one that the network suggests."""

    project: Path
    options: Options
    task: str = ""


class TrainingController(QObject):
    """Keeps the runs of the open document in sync with their folders."""

    runs_changed = Signal()  # other runs
    updated = Signal()  # the files of a run changed
    chosen_changed = Signal()  # other runs are shown
    samples_made = Signal(Path)
    clone_requested = Signal(object)  # WatchedRun: its settings, to start another run that differs
    problem_changed = Signal(str)  # why the last command was refused; empty: it was not

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.context = context
        self.runs: list[WatchedRun] = []
        self.chosen: tuple[WatchedRun, ...] = ()
        self.problem = ""
        self._document: Document | None = None
        self._starting = False  # also while samples or weights are made
        self._done: Callable[[object], None] = lambda made: None
        self._folder = QTemporaryDir()
        self._reading = Background(self)
        self._reading.done.connect(self._on_read)
        self._reading.failed.connect(self._on_read_failed)
        self._working = Background(self)
        self._working.done.connect(self._on_worked)
        self._working.failed.connect(self._on_start_failed)
        self._timer = QTimer(self, singleShot=True, timeout=self.look)
        context.root_changed.connect(self._on_document)
        if context.has_document:
            self._on_document(context.root)

    # --- the runs --------------------------------------------------------------------------------------------

    @property
    def current(self) -> WatchedRun | None:
        """The run that is shown: the first of the chosen ones."""
        return self.chosen[0] if self.chosen else None

    @property
    def snapshots(self) -> list[RunSnapshot]:
        return [run.snapshot for run in self.runs]

    @property
    def busy(self) -> bool:
        """Whether a run is being started."""
        return self._starting

    def project(self) -> Path:
        """The project of the open document: the one of its latest run or export, else the default one."""
        document = self.context.root
        known = [run.folder.project for run in self.runs]
        return known[-1] if known else document.project or project_folder(document.path, document.graph.name)

    def choose(self, runs: Iterable[WatchedRun]) -> None:
        """Show these runs; the first one in detail."""
        chosen = tuple(runs)
        if chosen != self.chosen:
            self.chosen = chosen
            self.chosen_changed.emit()

    def _set_runs(self, runs: list[WatchedRun]) -> None:
        """Keep other runs; those that are gone are no longer chosen."""
        kept = tuple(run for run in self.chosen if run in runs)
        fewer = kept != self.chosen
        self.runs, self.chosen = runs, kept
        self.runs_changed.emit()
        if fewer:
            self.chosen_changed.emit()

    def find(self, folder: Path) -> WatchedRun | None:
        return next((run for run in self.runs if run.folder.path == folder), None)

    def _on_document(self, document: Document) -> None:
        if self._document is not None:
            self._document.path_changed.disconnect(self.look)
        self._document = document
        document.path_changed.connect(self.look)
        self._set_runs([])
        self.look()

    def look(self) -> None:
        """Read the folders of the runs in a thread; `updated` follows if something changed."""
        if self._reading.running or self._document is None:
            return
        document, known = self._document, {run.folder.path: run for run in self.runs}
        path, project = document.path, document.project or project_folder(document.path, document.graph.name)

        def read() -> tuple[Document, list[WatchedRun], bool]:
            trainer.reap()
            runs = [known.get(folder) or WatchedRun(RunFolder(folder)) for folder in _folders(path, project, known)]
            changed = [run.read() for run in runs]
            return document, runs, any(changed)

        self._timer.stop()
        self._reading.start(read)

    def _on_read(self, found: object) -> None:
        document, runs, changed = cast(tuple[Document, list[WatchedRun], bool], found)
        if document is not self._document:
            self.look()
            return
        trains = any(run.snapshot.state.trains for run in runs)
        self._timer.start(BUSY if trains or self._starting else QUIET)
        others = [run for run in self.runs if run not in runs]
        runs = [*runs, *(run for run in others if run.folder.path.is_dir())]  # started while the folders were read
        for run in others:
            if run not in runs:
                self.context.message.emit(
                    "warning", tr("The folder of the run {name} was deleted", name=run.snapshot.title)
                )
        if runs != self.runs:
            self._set_runs(runs)
            if not self.chosen and runs:
                self.choose(runs[-1:])
        if changed:
            self.updated.emit()

    def _on_read_failed(self, found: object) -> None:
        self._timer.start(QUIET)
        self._refuse(found)

    # --- commands --------------------------------------------------------------------------------------------

    def start(self, request: StartRequest) -> None:
        """Export the project and start a run. Nothing happens while another one is being started."""
        if self._starting:
            return
        if not self._agreed(lambda: self.start(request)):
            return
        document = self.context.root
        graph, registry, path = document.graph.copy(), document.registry, document.path
        settings = document.settings

        def work() -> RunFolder:
            _export(graph, registry, settings, request)
            run = RunFolder(request.project / RUNS / new_name(request.project))
            trainer.start(run, request.options)
            run_registry.remember(run.path, path)
            return run

        document.project = request.project
        self._work(work, self._on_started)

    def make_samples(self, request: StartRequest) -> None:
        """Export the project and let it write a page of training samples; `samples_made` follows."""
        if self._starting or not self._agreed(lambda: self.make_samples(request)):
            return
        document = self.context.root
        graph, registry, settings = document.graph.copy(), document.registry, document.settings
        page = Path(self._folder.path()) / "samples.png"

        def work() -> Path:
            _export(graph, registry, settings, request)
            trainer.write_samples(request.project, request.options, page)
            return page

        document.project = request.project
        self._work(work, self.samples_made.emit)

    def _agreed(self, again: Callable[[], None]) -> bool:
        """Whether the user agreed to the code of custom layers; else the user is asked, and then `again` is called."""
        document = self.context.root
        if not not_agreed(document.graph, document.registry):
            return True
        self.context.agreement_wanted.emit(again)
        return False

    def resume(self, run: WatchedRun, options: Options | None = None) -> None:
        """Continue a run from its last checkpoint; `options` change it, such as the number of steps."""
        folder, path = run.folder, self.context.root.path

        def work() -> RunFolder:
            trainer.start(folder, options or {}, resume=True)
            run_registry.remember(folder.path, path)
            return folder

        self._work(work, self._on_started)

    def fork(self, run: WatchedRun, step: int) -> None:
        """Start a new run with the settings of another one, from the weights that it had at a step."""
        settings = run.snapshot.settings
        folder = RunFolder(run.folder.project / RUNS / new_name(run.folder.project))
        path = self.context.root.path

        def work() -> RunFolder:
            source = folder.path / "from_weights"
            write_frame(run.folder.trail, step, source, folder.weight_names())
            trainer.start(folder, {**options_of(settings), "from_weights": str(source)})
            run_registry.remember(folder.path, path)
            folder.write_notes(Notes("", tr("From step {step} of {run}", step=step, run=run.snapshot.title)))
            return folder

        self._work(work, self._on_started)

    def _work(self, work: Callable[[], Made], done: Callable[[Made], None]) -> None:
        """Do `work` in a thread, and then call `done` with its result. Nothing happens while other work goes on."""
        if self._starting:
            return
        self._starting, self._done = True, cast(Callable[[object], None], done)
        self._say("")
        self._working.start(work)
        self.updated.emit()

    def _on_worked(self, made: object) -> None:
        self._starting = False
        self._done(made)
        self.updated.emit()

    def _on_started(self, folder: RunFolder) -> None:
        run = self.find(folder.path)
        if run is None:
            run = WatchedRun(folder)
            self._set_runs([*self.runs, run])
        self.choose((run,))
        self.look()

    def _on_start_failed(self, found: object) -> None:
        self._starting = False
        self._refuse(found)
        self.updated.emit()

    def send(self, run: WatchedRun, command: Command) -> None:
        """Pause, resume or stop a run that trains."""
        self._try(lambda: run.folder.send(command))

    def write_notes(self, run: WatchedRun, notes: Notes) -> None:
        self._try(lambda: run.folder.write_notes(notes))

    def delete(self, run: WatchedRun) -> None:
        """Delete the folder of a run that does not train."""

        def delete() -> None:
            run.folder.delete()
            run_registry.forget(run.folder.path)
            self._set_runs([each for each in self.runs if each is not run])

        self._try(delete)

    def use_weights(self, run: WatchedRun) -> None:
        """Use the best weights of a run in the document, as an edit. They are copied, since the run may be deleted."""
        document, shot = self.context.root, run.snapshot
        needed = required_weights(document.inference)

        def work() -> Path:
            source = shot.folder.weights
            if source is None:
                raise _no_weights(shot, tr("it has no checkpoint yet"), tr("wait for the first validation"))
            weights = load_weights(source, needed)
            lacking = next((key.layer for key in needed if key not in weights.tensors), None)
            if lacking is not None:
                reason = tr("it has no weights that fit the layer {layer}", layer=lacking)
                raise _no_weights(
                    shot, reason, tr("undo the edits since the run was started, or train the network again")
                )
            target = version_path(
                make_folder(weight_versions()), Path(f"{shot.folder.project.name} {shot.folder.name}.pt")
            )
            save_weights(target, weights.tensors)
            return target

        def use(target: Path) -> None:
            document.change_settings(weights=str(target), random_seed=None)
            self.context.message.emit("info", tr("The document uses the weights of {name}", name=shot.title))

        self._work(work, use)

    def _try(self, command: Callable[[], None]) -> None:
        try:
            command()
        except DiagnosticError as error:
            self._refuse(error.diagnostics)
        except OSError as error:
            self._refuse((Diagnostic("system", str(error), remedy=tr("check the folder and the free space")),))
        else:
            self._say("")
        self.look()

    def _refuse(self, found: object) -> None:
        self._say(placed_text(cast(Sequence[Diagnostic], found)[0]))
        self.context.message.emit("error", self.problem)

    def _say(self, text: str) -> None:
        self.problem = text
        self.problem_changed.emit(text)


def _no_weights(shot: RunSnapshot, reason: str, remedy: str) -> DiagnosticError:
    return DiagnosticError.of(
        "no-weights",
        tr("the weights of the run {name} cannot be used: {reason}", name=shot.title, reason=reason),
        file=str(shot.folder.path),
        remedy=remedy,
    )


def _export(graph: Graph, registry: Registry, settings: Settings, request: StartRequest) -> None:
    from exporters.pytorch import class_name, export_project
    from exporters.pytorch.project import Training

    export_project(graph, registry, request.project, class_name(graph.name), Training.of(settings, request.task))


def _folders(document: Path | None, project: Path, known: Iterable[Path]) -> list[Path]:
    """The folders of a document's runs: known ones, registered ones, and those in its project. By name, which is the date by default."""
    registered = run_registry.known_runs()
    name = str(document) if document is not None else None
    mine = [Path(run.folder) for run in registered if name is not None and run.document == name]
    found = dict.fromkeys((*runs_of(project), *mine, *known))
    return sorted((path for path in found if path.is_dir()), key=lambda path: path.name)


def training_of(context: Context) -> TrainingController:
    """The one controller of a window."""
    found: TrainingController | None = context.findChild(TrainingController, options=DIRECT)
    return found or TrainingController(context)
