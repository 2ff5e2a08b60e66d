"""Training runs of a window: which there are, how they go on, and which are shown. The processes are independent of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

import shiboken6
from PySide6.QtCore import QObject, QTemporaryDir, QTimer, Signal

from app import training_folders
from app.process import module_command
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
from designer.training import run_registry, ssh_host, trainer
from designer.training.run_folder import RUNS, Command, Notes, RunFolder, new_name, runs_of
from designer.training.sweep import Sweep, Trial
from designer.training.trail import write_frame
from designer.training.trainer import Options, options_of
from designer.training.watched_run import RunSnapshot, WatchedRun
from designer.training.watched_sweep import SweepSnapshot, read_sweep, sweep_of

Made = TypeVar("Made")
BUSY, QUIET = 400, 2500  # ms between two looks at the files, with and without a process that trains


@dataclass(frozen=True)
class StartRequest:
    """A run to start: the folder of its project, the options of `train.py`, and the task; empty: the one that the network suggests.

    `host` is a name of the SSH configuration, and `python` the Python there; empty: it trains on this machine.
    """

    project: Path
    options: Options
    task: str = ""
    host: str = ""
    python: str = "python3"


@dataclass(frozen=True)
class SweepRequest:
    """A sweep to start in an empty folder: `parallel` trials at once here, or on the Ray cluster at an address."""

    folder: Path
    trials: tuple[Trial, ...]
    options: Options
    task: str = ""
    parallel: int = 1
    cluster: str = ""


class TrainingController(QObject):
    """Keeps the runs of the open document in sync with their folders."""

    runs_changed = Signal()  # other runs
    updated = Signal()  # the files of a run changed
    chosen_changed = Signal()  # other runs are shown
    samples_made = Signal(Path)
    example_data_made = Signal(Path)  # a folder with digits/ and shapes/
    clone_requested = Signal(object)  # WatchedRun: its settings, to start another run that differs
    problem_changed = Signal(str)  # why the last command was refused; empty: it was not

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.context = context
        self.runs: list[WatchedRun] = []
        self.sweeps: dict[Path, SweepSnapshot] = {}
        self.chosen: tuple[WatchedRun, ...] = ()
        self.problem = ""
        self._document: Document | None = None
        self._starting = False  # also while samples or weights are made
        self._done: Callable[[object], None] = lambda made: None
        self._origin: Document | None = None  # the document for which work was begun
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
    def busy(self) -> bool:
        """Whether a run is being started."""
        return self._starting

    def project(self) -> Path:
        """The project of the open document: the one of its latest run or export, else the default one."""
        document = self.context.root
        known = [run.folder.project for run in self.runs if self.sweep_of(run) is None]
        return known[-1] if known else document.project or default_project(document)

    def sweep_of(self, run: WatchedRun) -> SweepSnapshot | None:
        """The sweep that has the run as a trial."""
        return self.sweeps.get(run.folder.project.parent)

    def trials_of(self, sweep: SweepSnapshot) -> list[WatchedRun]:
        """The trials of a sweep that have started."""
        return [run for run in self.runs if run.folder.project.parent == sweep.folder]

    def choose(self, runs: Iterable[WatchedRun]) -> None:
        """Show these runs; the first one in detail."""
        chosen = tuple(runs)
        if chosen != self.chosen:
            self.chosen = chosen
            self.chosen_changed.emit()

    def _set_runs(self, runs: list[WatchedRun], sweeps: dict[Path, SweepSnapshot] | None = None) -> None:
        """Keep other runs; those that are gone are no longer chosen."""
        kept = tuple(run for run in self.chosen if run in runs)
        fewer = kept != self.chosen
        self.runs, self.chosen = runs, kept
        self.sweeps = self.sweeps if sweeps is None else sweeps
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
        self._say("")
        self._set_runs([], {})
        self.look()

    def look(self) -> None:
        """Read the folders of the runs in a thread; `updated` follows if something changed."""
        if self._reading.running or self._document is None:
            return
        document, known, sweeps = self._document, {run.folder.path: run for run in self.runs}, self.sweeps
        path, project = document.path, document.project or default_project(document)

        def read() -> _Reading:
            trainer.reap()
            trials = [each.sweep.run(trial).path for each in sweeps.values() for trial in each.sweep.trials]
            folders = _folders(path, project, [*known, *trials])
            found = _sweeps(folders, sweeps)
            runs = [known.get(folder) or _watched(folder, found) for folder in folders if folder.is_dir()]
            changed = [run.read() for run in runs]
            return _Reading(document, runs, found, any(changed) or found != sweeps)

        self._timer.stop()
        self._reading.start(read)

    def _on_read(self, found: object) -> None:
        reading = cast(_Reading, found)
        if reading.document is not self._document:
            self.look()
            return
        started = {**self.sweeps, **reading.sweeps}  # also those that were started while the folders were read
        sweeps = {folder: sweep for folder, sweep in started.items() if folder.is_dir()}
        listed = {
            run.folder.path: run for run in self.runs
        }  # a run that was started while the folders were read may be among them
        read = [run for run in reading.runs if run.folder.path.is_dir()]  # it may have been deleted since
        runs = [listed.get(run.folder.path, run) for run in read]
        states = [run.snapshot.state for run in runs] + [sweep.state for sweep in sweeps.values()]
        trains = any(state.trains for state in states)
        self._timer.start(BUSY if trains or self._starting else QUIET)
        others = [run for run in self.runs if run not in runs]
        runs = [*runs, *(run for run in others if run.folder.path.is_dir())]  # started while the folders were read
        for run in others:
            if run not in runs:
                self.context.message.emit(
                    "warning", tr("The folder of the run {name} was deleted", name=run.snapshot.title)
                )
        if runs != self.runs or sweeps.keys() != self.sweeps.keys():
            self._set_runs(runs, sweeps)
            if not self.chosen and runs:
                self.choose(runs[-1:])
        self.sweeps = sweeps
        if reading.changed:
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
            if request.host:
                ssh_host.start(ssh_host.Host(request.host, request.python), run, request.options, lambda text: None)
                _follow(run)
            else:
                trainer.start(run, request.options)
            run_registry.remember(run.path, path)
            return run

        document.use_project(request.project, request.task)
        self._work(work, self._on_started)

    def start_sweep(self, request: SweepRequest) -> None:
        """Export the projects of a sweep and start its process. Nothing happens while a run is being started."""
        if self._starting or not self._agreed(lambda: self.start_sweep(request)):
            return
        document = self.context.root
        graph, registry, path, settings = document.graph.copy(), document.registry, document.path, document.settings

        def work() -> SweepSnapshot | None:
            from app.engine import sweep_job, sweep_process
            from exporters.pytorch.project import Training

            sweep = Sweep(request.folder, request.trials, request.options)
            sweep_job.prepare(sweep, graph, registry, Training.of(settings, request.task), path)
            sweep_process.start(sweep, sweep_process.Place(request.parallel, request.cluster))
            return read_sweep(request.folder)

        self._work(work, self._on_sweep_started)

    def continue_sweep(self, snapshot: SweepSnapshot) -> None:
        """Train the trials that are not finished; stopped ones continue from their checkpoints."""

        def work() -> SweepSnapshot | None:
            from app.engine import sweep_process

            sweep_process.start(snapshot.sweep, sweep_process.read_place(snapshot.sweep))
            return read_sweep(snapshot.folder)

        self._work(work, self._on_sweep_started)

    def stop_sweep(self, snapshot: SweepSnapshot) -> None:
        """Stop the trials that train, with checkpoints, and start no others."""
        self._try(lambda: snapshot.sweep.job.send("stop"))

    def delete_sweep(self, snapshot: SweepSnapshot) -> None:
        """Delete the folder of a sweep that does not run, with its trials."""
        trials = self.trials_of(snapshot)

        def delete() -> None:
            for folder in (snapshot.sweep.job, *(run.folder for run in trials)):
                folder.refuse_while_training()  # before any is deleted
            for run in trials:
                run.folder.delete()
            snapshot.sweep.job.delete()
            for trial in snapshot.sweep.trials:
                run_registry.forget(snapshot.sweep.run(trial).path)
            sweeps = {folder: each for folder, each in self.sweeps.items() if folder != snapshot.folder}
            self._set_runs([run for run in self.runs if run not in trials], sweeps)

        self._try(delete)

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

        document.use_project(request.project, request.task)
        self._work(work, self.samples_made.emit)

    def make_example_data(self) -> None:
        """Write example data for classification and segmentation, unless it exists; `example_data_made` follows."""

        def work() -> Path:
            from platformdirs import user_data_path

            from samples import training_data

            folder = user_data_path("layerwright") / "example-data"
            if not folder.is_dir():
                part = Path(tempfile.mkdtemp(prefix="example-data-", dir=make_folder(folder.parent)))
                training_data.main(part)
                part.rename(folder)
            return folder

        self._work(work, self.example_data_made.emit)

    def _agreed(self, again: Callable[[], None]) -> bool:
        """Whether the user agreed to the code of custom layers; else the user is asked, and then `again` is called."""
        document = self.context.root
        if not not_agreed(document.graph, document.registry):
            return True
        self.context.agreement_wanted.emit(again)
        return False

    def resume(self, run: WatchedRun, options: Options | None = None) -> None:
        """Continue a run from its last checkpoint, where it was trained; `options` change it, such as the number of steps.

        One that may still train on another machine is followed again.
        """
        folder, path, shot = run.folder, self.context.root.path, run.snapshot

        def work() -> RunFolder:
            if shot.host:
                if not shot.can_follow:
                    ssh_host.resume(folder, options or {})
                _follow(folder)
            else:
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
        self._origin = self._document
        self._say("")
        self._working.start(work)
        self.updated.emit()

    def _on_worked(self, made: object) -> None:
        self._starting = False
        self._done(made)
        self.updated.emit()

    def _on_started(self, folder: RunFolder) -> None:
        if self._origin is not self._document:
            return  # it is found when its document is shown again
        run = self.find(folder.path)
        if run is None:
            run = WatchedRun(folder)
            self._set_runs([*self.runs, run])
        self.choose((run,))
        self.look()

    def _on_sweep_started(self, snapshot: SweepSnapshot | None) -> None:
        if snapshot is not None and self._origin is self._document:
            self._set_runs(self.runs, {**self.sweeps, snapshot.folder: snapshot})
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
            if not shiboken6.isValid(document):  # type: ignore[no-untyped-call]  # closed in the meantime
                target.unlink(missing_ok=True)
                return
            document.change_settings(weights=str(target), random_seed=None)
            text = tr("{document} uses the weights of {name}", document=document.title, name=shot.title)
            self.context.message.emit("info", text)

        self._work(work, use)

    def _try(self, command: Callable[[], None]) -> None:
        try:
            command()
        except DiagnosticError as error:
            self._refuse(error.diagnostics)
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            reason = f"{place}{error.strerror or error}"
            self._refuse((Diagnostic("system", reason, remedy=tr("check the folder and the free space")),))
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


@dataclass(frozen=True)
class _Reading:
    """What the folders say."""

    document: Document
    runs: list[WatchedRun]
    sweeps: dict[Path, SweepSnapshot]
    changed: bool


def default_project(document: Document) -> Path:
    """The default folder of a document's project.

    That of an unsaved document is one that no other document has used.
    """
    path = document.path
    proposed = training_folders.default_project(path, document.graph.name)
    return proposed if path is not None else _own_project(document, proposed)


_own_projects: WeakKeyDictionary[Document, tuple[Path, Path]] = (
    WeakKeyDictionary()
)  # of unsaved documents: the folder that their name proposes, and the one that is theirs


def _own_project(document: Document, proposed: Path) -> Path:
    """The folder of an unsaved document: `proposed`, or with a number if another one has it. It stays when it exists."""
    known = _own_projects.get(document)
    if known is not None and (known[0] == proposed or known[1].exists()):
        return known[1]
    others = {found for other, (_, found) in _own_projects.items() if other is not document}
    numbered = (proposed.with_name(f"{proposed.name}_{number}") for number in count(2))
    free = next(path for path in chain((proposed,), numbered) if path not in others and not path.exists())
    _own_projects[document] = (proposed, free)
    return free


def _folders(document: Path | None, project: Path, known: Iterable[Path]) -> list[Path]:
    """The folders of a document's runs: known ones, registered ones, and those in its project. By name, which is the date by default.

    Trials that have not started have no folder yet.
    """
    registered = run_registry.known_runs()
    name = str(document) if document is not None else None
    mine = [Path(run.folder) for run in registered if name is not None and run.document == name]
    return sorted(dict.fromkeys((*runs_of(project), *mine, *known)), key=lambda path: path.name)


def _sweeps(runs: Iterable[Path], known: Mapping[Path, SweepSnapshot]) -> dict[Path, SweepSnapshot]:
    """The sweeps that have these runs as trials, and those that are known, by their folders."""
    folders = {folder for run in runs if (folder := sweep_of(run)) is not None} | {*known}
    found = {folder: read_sweep(folder, known.get(folder)) for folder in sorted(folders) if folder.is_dir()}
    return {folder: snapshot for folder, snapshot in found.items() if snapshot is not None}


def _watched(folder: Path, sweeps: Mapping[Path, SweepSnapshot]) -> WatchedRun:
    run = RunFolder(folder)
    sweep = sweeps.get(run.project.parent)
    return WatchedRun(run) if sweep is None else sweep.watch(run)


def _follow(run: RunFolder) -> None:
    """Copy the files of a run on another machine in a process that survives the window."""
    words = module_command("app.cli.main", "follow", str(run.path))
    run.record_process(trainer.spawn(words, run.project, run.path / "follow.log"))


def training_of(context: Context) -> TrainingController:
    """The one controller of a window."""
    found: TrainingController | None = context.findChild(TrainingController, options=DIRECT)
    return found or TrainingController(context)
