"""Every step of a command of the Train workspace, with stand-ins for the exporter, processes, hosts and threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
from pytestqt.qtbot import QtBot
from training_kit import Runs, make_run

from app.process import module_command
from app.ui.document.document import Document
from app.ui.engine import training as module
from app.ui.engine.context import Context
from app.ui.engine.profiling import State, profiling_of
from app.ui.engine.training import BUSY, QUIET, StartRequest, SweepRequest, TrainingController
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.registry import default_registry
from designer.training import run_registry
from designer.training.run_folder import Notes, RunFolder
from designer.training.sweep import Axis, Sweep, trials
from designer.training.watched_run import RunState, WatchedRun
from designer.training.watched_sweep import SweepSnapshot

pytestmark = pytest.mark.gui
Log = list[tuple[Any, ...]]


def network(name: str = "my net") -> Graph:
    layers = [
        Layer("image", "input", params={"dims": "16x8x3"}),
        Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "4"}),
        Layer("output", "output", inputs=(Source("conv"),)),
    ]
    return Graph(layers, name=name)


@pytest.fixture
def context(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    monkeypatch.setattr("platformdirs.user_data_path", lambda _: tmp_path / "data")
    made = Context(default_registry())
    made.set_document(Document(network(), made.registry, parent=made))
    made.root.project = tmp_path / "project"
    return made


@pytest.fixture
def training(qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch) -> TrainingController:
    """A controller whose work is done at once, and whose folders are read when a test says so."""
    made = Runs(qtbot, context).training

    def work(job: Callable[[], object]) -> None:
        try:
            found = job()
        except DiagnosticError as error:
            made._on_start_failed(error.diagnostics)
        else:
            made._on_worked(found)

    monkeypatch.setattr(made._working, "start", work)
    return made


@pytest.fixture
def log(training: TrainingController, context: Context, monkeypatch: pytest.MonkeyPatch) -> Log:
    """What commands do, in order."""
    found: Log = []

    def listed(name: str, result: object = None) -> Callable[..., object]:
        return lambda *each, **more: found.append((name, *each, *([more] if more else []))) or result

    monkeypatch.setattr("exporters.pytorch.export_project", listed("export"))
    monkeypatch.setattr(module.trainer, "start", listed("start", 7))
    monkeypatch.setattr(module.trainer, "spawn", listed("spawn", 8))
    monkeypatch.setattr(module.trainer, "write_samples", listed("samples"))
    monkeypatch.setattr(module.ssh_host, "start", listed("start there"))
    monkeypatch.setattr(module.ssh_host, "resume", listed("resume there"))
    monkeypatch.setattr(module.run_registry, "remember", listed("remember"))
    monkeypatch.setattr(module.run_registry, "forget", listed("forget"))
    monkeypatch.setattr(module, "new_name", lambda project: "a new name")
    monkeypatch.setattr(RunFolder, "record_process", lambda self, pid: found.append(("process", self.path, pid)))
    monkeypatch.setattr(training._reading, "start", lambda work: found.append(("look",)))
    training.problem_changed.connect(lambda text: found.append(("problem", text)))
    training.chosen_changed.connect(lambda: found.append(("chosen", *(run.folder.path for run in training.chosen))))
    return found


def messages(context: Context) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    context.message.connect(lambda level, text: found.append((level, text)))
    return found


# --- starting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("host", ["", "gpu"])
def test_every_step_of_a_start(
    context: Context, training: TrainingController, log: Log, tmp_path: Path, host: str, saved: bool
) -> None:
    path = tmp_path / "net.xml" if saved else None
    context.root.path = path
    context.root.change_settings(recipe={"batch": "3"}, task="denoising")
    project, options = tmp_path / "p", {"steps": "5"}
    updates: list[int] = []
    training.updated.connect(lambda: updates.append(1))
    training.start(StartRequest(project, options, "restoration", host, "~/python"))
    folder = project / "runs" / "a new name"
    first, (kind, graph, registry, target, name, recipe), *rest = log
    assert first == ("problem", "")
    assert (kind, graph.name, graph is context.root.graph, registry) == ("export", "my net", False, context.registry)
    assert (target, name, recipe.task) == (project, "MyNet", "restoration")
    if host:
        kind, where, run, given, say = rest[0]
        assert (kind, where.name, where.python, run.path, given) == ("start there", "gpu", "~/python", folder, options)
        assert say("text") is None
        words = module_command("app.cli.main", "follow", str(folder))
        assert rest[1:3] == [("spawn", words, project, folder / "follow.log"), ("process", folder, 8)]
        rest = rest[3:]
    else:
        assert rest[0] == ("start", RunFolder(folder), options)
        rest = rest[1:]
    assert rest == [("remember", folder, path), ("chosen", folder), ("look",)]
    assert (context.root.project, updates, training.busy) == (project, [1, 1], False)
    if not saved:
        assert (context.root.settings.project, context.root.settings.task) == (str(project), "restoration")
    assert [run.folder.path for run in training.runs] == [folder]
    assert training.current is training.runs[0]


def test_a_start_that_fails_says_why_and_another_one_can_follow(
    context: Context, training: TrainingController, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = messages(context)

    def fails(*_: object) -> None:
        raise DiagnosticError.of("x", "there is no space", remedy="free some")

    with monkeypatch.context() as patch:
        patch.setattr(module.trainer, "start", fails)
        training.start(StartRequest(tmp_path / "p", {}))
    assert (training.busy, training.runs, training.problem) == (False, [], "There is no space. Free some.")
    assert said == [("error", training.problem)]
    assert not [each for each in log if each[0] == "remember"]
    training.start(StartRequest(tmp_path / "p", {}))
    assert (training.problem, len(training.runs)) == ("", 1)
    training.start(StartRequest(tmp_path / "p", {}))
    assert len(training.runs) == 1  # it is in the list already


def test_one_start_at_a_time(
    context: Context, training: TrainingController, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Callable[[], object]] = []
    monkeypatch.setattr(training._working, "start", jobs.append)
    request = StartRequest(tmp_path / "p", {})
    training.start(request)
    project = context.root.project
    again = StartRequest(tmp_path / "other", {})
    run = WatchedRun(make_run(tmp_path / "q", "a", settings={}))
    run.read()
    training.start(again)
    training.start_sweep(SweepRequest(tmp_path / "s", (), {}))
    training.make_samples(again)
    training.make_example_data()
    training.resume(run)
    training.fork(run, 3)
    assert (len(jobs), training.busy, context.root.project) == (1, True, project)
    other = Document(network("other"), context.registry, parent=context)
    context.set_document(other)
    log.clear()
    training._on_worked(jobs[0]())
    assert (training.busy, training.runs, training.chosen) == (False, [], ())
    assert ("look",) not in log  # it is found when its document is shown again


CODE = "import torch\nclass Doubled(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n"


@pytest.mark.parametrize("shown", [False, True], ids=["network", "template"])
def test_code_that_was_not_agreed_to_is_asked_for_before_anything_is_done(
    context: Context, training: TrainingController, log: Log, tmp_path: Path, shown: bool
) -> None:
    custom = Layer("own", "custom", inputs=(Source("image"),), params={"source": CODE, "class_name": "Doubled"})
    layers = [
        Layer("image", "input", params={"dims": "16x8x3"}),
        custom,
        Layer("out", "output", inputs=(Source("own"),)),
    ]
    inside = (Layer("x", "template_input"), Layer("y", "template_output", inputs=(Source("x"),)))
    if shown:
        layers.append(Layer("part", "template", inputs=(Source("image"),), params={"template": "block"}))
    graph = Graph(layers, templates=[Template("block", inside)])
    context.set_document(Document(graph, context.registry, parent=context))
    assert not shown or context.enter("part")
    asked: list[Callable[[], None]] = []
    context.agreement_wanted.connect(asked.append)
    log.clear()
    request, sweep = StartRequest(tmp_path / "p", {}), SweepRequest(tmp_path / "s", (), {})
    for command in (training.start, training.make_samples):
        command(request)
    training.start_sweep(sweep)
    assert (len(asked), log, training.busy) == (3, [], False)
    agreed = pytest.MonkeyPatch()
    with agreed.context() as patch:
        patch.setattr(module, "not_agreed", lambda *_: {})
        asked[0]()
        assert [each[0] for each in log if each[0] in ("start", "samples")] == ["start"]
        asked[1]()
        assert [each[0] for each in log if each[0] in ("start", "samples")] == ["start", "samples"]


def test_samples_are_written_by_the_exported_project(
    context: Context, training: TrainingController, log: Log, tmp_path: Path
) -> None:
    pages: list[Path] = []
    training.samples_made.connect(pages.append)
    training.make_samples(StartRequest(tmp_path / "p", {"noise": "5"}, "denoising"))
    assert [each[0] for each in log] == ["problem", "export", "samples"]
    assert log[1][3:5] == (tmp_path / "p", "MyNet")
    assert log[2] == ("samples", tmp_path / "p", {"noise": "5"}, pages[0])
    assert pages[0].name == "samples.png"
    assert (context.root.project, context.root.settings.task) == (tmp_path / "p", "denoising")


# --- sweeps --------------------------------------------------------------------------------------------------------


def sweep_in(folder: Path) -> Sweep:
    return Sweep(folder, tuple(trials([Axis.parse("lr=0.1,0.2")])), {"steps": "5"})


@pytest.fixture
def sweeps(log: Log, monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr("app.engine.sweep_job.prepare", lambda *each: log.append(("prepare", *each)))
    monkeypatch.setattr("app.engine.sweep_process.start", lambda *each: log.append(("sweep", *each)))
    monkeypatch.setattr("app.engine.sweep_process.read_place", lambda sweep: f"the place of {sweep.folder.name}")
    monkeypatch.setattr(module, "read_sweep", lambda folder: SweepSnapshot(sweep_in(folder), RunState.RUNNING))
    return log


@pytest.mark.parametrize("other", [True, False])
def test_every_step_of_a_sweep(
    context: Context,
    training: TrainingController,
    sweeps: Log,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    other: bool,
) -> None:
    from app.engine.sweep_process import Place

    context.root.path = tmp_path / "net.xml"
    context.root.change_settings(recipe={"batch": "3"}, task="denoising")
    made = sweep_in(tmp_path / "s")
    known = SweepSnapshot(sweep_in(tmp_path / "t"), RunState.FINISHED)
    training.sweeps = {known.folder: known}
    if other:
        jobs: list[Callable[[], object]] = []
        monkeypatch.setattr(training._working, "start", jobs.append)
    training.start_sweep(SweepRequest(made.folder, made.trials, made.options, "restoration", 3, "here:1"))
    if other:
        context.set_document(Document(network("other"), context.registry, parent=context))
        sweeps.clear()
        training._on_worked(jobs[0]())
        assert training.sweeps == {}
        assert sweeps[-1] == ("look",)
        return
    _, (kind, sweep, graph, registry, recipe, path), started, looked = sweeps
    assert (kind, sweep, graph.name, registry, path) == (
        "prepare",
        made,
        "my net",
        context.registry,
        tmp_path / "net.xml",
    )
    assert graph is not context.root.graph
    assert (recipe.task, dict(recipe.recipe)) == ("restoration", {})
    assert (started, looked) == (("sweep", made, Place(3, "here:1")), ("look",))
    assert list(training.sweeps) == [known.folder, made.folder]
    sweeps.clear()
    training.continue_sweep(known)
    assert sweeps == [("problem", ""), ("sweep", known.sweep, "the place of t"), ("look",)]


def test_the_whole_network_is_trained_while_a_template_is_shown(
    context: Context, training: TrainingController, sweeps: Log, tmp_path: Path
) -> None:
    inside = (Layer("x", "template_input"), Layer("y", "template_output", inputs=(Source("x"),)))
    graph = network("whole")
    whole = Graph(
        (*graph, Layer("part", "template", inputs=(Source("image"),), params={"template": "block"})),
        name="whole",
        templates=(Template("block", inside),),
    )
    context.set_document(Document(whole, context.registry, path=tmp_path / "net.xml", parent=context))
    context.root.change_settings(recipe={"batch": "3"})
    assert context.enter("part")
    assert context.document is not context.root
    request = StartRequest(tmp_path / "p", {}, "restoration")
    sweeps.clear()
    training.start(request)
    training.make_samples(request)
    made = sweep_in(tmp_path / "s")
    training.start_sweep(SweepRequest(made.folder, made.trials, made.options, "restoration"))
    sent = [each for each in sweeps if each[0] in ("export", "prepare")]
    graphs = [next(part for part in each if isinstance(part, Graph)) for each in sent]
    assert [each[0] for each in sent] == ["export", "export", "prepare"]
    assert graphs == [whole] * 3
    assert [each.name for each in graphs] == ["whole"] * 3
    assert sent[-1][-1] == tmp_path / "net.xml"
    assert next(each for each in sweeps if each[0] == "remember")[2] == tmp_path / "net.xml"
    assert (context.root.project, training.project()) == (tmp_path / "p", tmp_path / "p")


def test_a_sweep_is_stopped_by_a_command_in_its_folder(
    context: Context, training: TrainingController, sweeps: Log, tmp_path: Path
) -> None:
    made = sweep_in(tmp_path / "s")
    made.folder.mkdir()
    training.stop_sweep(SweepSnapshot(made, RunState.RUNNING))
    assert (made.folder / "control").read_text() == "stop"
    assert sweeps == [("problem", ""), ("look",)]


def test_a_sweep_of_which_something_trains_is_kept_whole(
    context: Context, training: TrainingController, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sweep_in(tmp_path / "s")
    made.open("a network")
    runs = [WatchedRun(make_run(made.project(trial), trial.name, settings={})) for trial in made.trials]
    snapshot = SweepSnapshot(made, RunState.STOPPED)
    training._set_runs(list(runs), {made.folder: snapshot})
    for trains in (made.folder, runs[1].folder.path):
        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "trains", lambda self, trains=trains: self.path == trains)
            training.delete_sweep(snapshot)
        assert training.problem
        assert all(run.folder.path.is_dir() for run in runs)
        assert (training.runs, list(training.sweeps)) == (runs, [made.folder])
    assert not [each for each in log if each[0] == "forget"]


# --- other commands ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "follows", "options"), [("", False, {"steps": "9"}), ("", False, None), ("gpu", True, {"steps": "9"}), ("gpu", False, {"steps": "9"}), ("gpu", False, None)]
)  # fmt: skip
def test_a_run_is_resumed_where_it_was_trained(
    context: Context, training: TrainingController, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    host: str, follows: bool, options: Any,
) -> None:  # fmt: skip
    context.root.path = tmp_path / "net.xml"
    run = WatchedRun(make_run(tmp_path / "p", "a", settings={}))
    run.read()
    run.snapshot = replace(run.snapshot, host=host)
    monkeypatch.setattr(type(run.snapshot), "can_follow", follows)
    training._set_runs([run])
    training.resume(run, options)
    folder = run.folder.path
    expected: Log = [("problem", "")]
    if not host:
        expected.append(("start", run.folder, options or {}, {"resume": True}))
    else:
        if not follows:
            expected.append(("resume there", run.folder, options or {}))
        words = module_command("app.cli.main", "follow", str(folder))
        expected += [("spawn", words, run.folder.project, folder / "follow.log"), ("process", folder, 8)]
    assert log == [*expected, ("remember", folder, tmp_path / "net.xml"), ("chosen", folder), ("look",)]
    assert training.runs == [run]


def test_small_commands_say_what_went_wrong_and_read_the_folders_again(
    context: Context, training: TrainingController, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = messages(context)
    one, other = (WatchedRun(make_run(tmp_path / "p", name, settings={})) for name in "ab")
    training._set_runs([one, other])
    training.choose((other,))
    log.clear()
    training.send(one, "pause")
    training.write_notes(one, Notes("a title", "text"))
    assert (one.folder.path / "control").read_text() == "pause"
    assert one.folder.notes() == Notes("a title", "text")
    assert log == [("problem", ""), ("look",)] * 2
    errors = [
        OSError(28, "No space left on device", "/a/b"),
        OSError("strange"),
        DiagnosticError.of("x", "it trains", remedy="stop it"),
    ]
    texts = [
        "/a/b: No space left on device. Check the folder and the free space.", "strange. Check the folder and the free space.",
        "It trains. Stop it.",
    ]  # fmt: skip
    for error, text in zip(errors, texts, strict=True):
        log.clear(), said.clear()

        def fails(*_: object, error: Exception = error) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "delete", fails)
            training.delete(one)
        assert training.problem.lower() == text.lower()
        assert (said, log) == ([("error", training.problem)], [("problem", training.problem), ("look",)])
        assert training.runs == [one, other]
    log.clear()
    training.delete(one)
    assert (training.runs, training.chosen) == ([other], (other,))
    assert log == [("forget", one.folder.path), ("problem", ""), ("look",)]
    assert not one.folder.path.exists()


def test_weights_that_cannot_be_used_say_why(
    context: Context, training: TrainingController, log: Log, tmp_path: Path
) -> None:
    run = WatchedRun(make_run(tmp_path / "p", "a", settings={}))
    run.read()
    training.use_weights(run)
    begin = "The weights of the run a cannot be used: "
    assert training.problem == f"{begin}it has no checkpoint yet. Wait for the first validation."
    best = run.folder.path / "checkpoints" / "best"
    best.mkdir(parents=True)
    np.save(best / "conv_kernel.npy", np.zeros((4, 3, 3, 3), np.float32))
    run.read()
    training.use_weights(run)
    assert training.problem == (
        f"{begin}it has no weights that fit the layer conv. Undo the edits since the run was started, or train the network again."
    )
    assert (context.root.settings.weights, training.busy) == ("", False)


# --- which runs there are ------------------------------------------------------------------------------------------


def reading(training: TrainingController, runs: list[WatchedRun], sweeps: Any = None, changed: bool = False) -> None:
    """What was read from the folders arrives."""
    assert training._document is not None
    training._on_read(module._Reading(training._document, runs, sweeps or {}, changed))


def test_what_was_read_of_the_folders_is_kept_with_what_began_meanwhile(
    context: Context, training: TrainingController, log: Log, tmp_path: Path
) -> None:
    said, updates, lists = messages(context), [], []
    training.updated.connect(lambda: updates.append(1))
    training.runs_changed.connect(lambda: lists.append(list(training.runs)))
    a, b, c = (WatchedRun(make_run(tmp_path / "p", name, settings={})) for name in "abc")
    for run in (a, b, c):
        run.read()
    reading(training, [a, b])
    assert (training.runs, training.chosen, lists, updates) == ([a, b], (b,), [[a, b]], [])
    assert (training._timer.isActive(), training._timer.interval()) == (True, QUIET)
    training._set_runs([a, b, c])  # it was started while the folders were read
    training.choose((c,))
    lists.clear()
    reading(training, [a, WatchedRun(b.folder)], changed=True)
    assert (training.runs, training.chosen, updates, lists) == ([a, b, c], (c,), [1], [])
    a.snapshot = replace(a.snapshot, state=RunState.PAUSED)
    reading(training, [a, b, c])
    assert training._timer.interval() == BUSY
    a.snapshot = replace(a.snapshot, state=RunState.FINISHED)
    training._starting = True
    reading(training, [a, b, c])
    assert training._timer.interval() == BUSY
    training._starting = False
    sweep = sweep_in(tmp_path / "s")
    sweep.folder.mkdir()
    running, gone = SweepSnapshot(sweep, RunState.RUNNING), SweepSnapshot(sweep_in(tmp_path / "gone"), RunState.RUNNING)
    reading(training, [a, b, c], {sweep.folder: running, gone.folder: gone})
    assert (training.sweeps, training._timer.interval()) == ({sweep.folder: running}, BUSY)
    assert lists == [[a, b, c]]
    finished = replace(running, state=RunState.FINISHED)
    reading(training, [a, b, c], {sweep.folder: finished})
    assert (training.sweeps, training._timer.interval(), len(lists)) == ({sweep.folder: finished}, QUIET, 1)
    assert said == []
    title = c.snapshot.title
    c.folder.delete()
    reading(training, [a, b, c])
    assert (training.runs, training.chosen) == ([a, b], (b,))
    assert said == [("warning", f"The folder of the run {title} was deleted")]
    context.set_document(Document(network("other"), context.registry, parent=context))
    log.clear()
    training._on_read(module._Reading(Document(network(), context.registry, parent=context), [a], {}, True))
    assert (training.runs, log) == ([], [("look",)])


def test_folders_that_cannot_be_read_say_why(context: Context, training: TrainingController, log: Log) -> None:
    training._on_read_failed((Diagnostic("x", "it cannot be read", remedy="repair it"),))
    assert training.problem == "It cannot be read. Repair it."
    assert (training._timer.isActive(), training._timer.interval()) == (True, QUIET)
    context.set_document(Document(network("other"), context.registry, parent=context))
    assert training.problem == ""  # it was about another document


def test_the_runs_of_a_document_are_those_of_its_project_and_those_that_it_started(
    context: Context, training: TrainingController, tmp_path: Path
) -> None:
    document, project = tmp_path / "net.xml", tmp_path / "project"
    inside = [make_run(project, name, settings={}).path for name in ("2024-01", "2024-03")]
    mine, foreign = (make_run(tmp_path / name, "2024-02", settings={}).path for name in ("mine", "foreign"))
    run_registry.remember(mine, document)
    run_registry.remember(foreign, tmp_path / "other.xml")
    run_registry.remember(inside[0], document)
    unsaved = make_run(tmp_path / "unsaved", "2024-00", settings={}).path
    run_registry.remember(unsaved, None)
    known = tmp_path / "known" / "runs" / "2023"
    assert module._folders(document, project, [known, mine]) == [known, inside[0], mine, inside[1]]
    assert module._folders(None, project, []) == inside


def test_an_unsaved_document_has_a_folder_of_its_own(context: Context, tmp_path: Path) -> None:
    projects = tmp_path / "data" / "projects"
    documents = [Document(network(name), context.registry, parent=context) for name in ("net", "net", "net", "b")]
    found = [module.default_project(document) for document in documents]
    assert found == [projects / name for name in ("net", "net_2", "net_3", "b")]
    assert [module.default_project(document) for document in documents] == found
    (projects / "net_4").mkdir(parents=True)
    another = Document(network("net"), context.registry, parent=context)
    assert module.default_project(another) == projects / "net_5"
    assert module._own_project(documents[3], projects / "c") == projects / "c"  # it was called otherwise
    (projects / "c").mkdir()
    assert module._own_project(documents[3], projects / "d") == projects / "c"  # it exists, and its runs are in it
    documents[0].path = tmp_path / "saved.xml"
    assert module.default_project(documents[0]) == tmp_path / "saved_pytorch"


# --- profiles ------------------------------------------------------------------------------------------------------


def test_a_launch_that_fails_is_said_of_its_document_also_inside_of_a_template(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = (
        Layer("x", "template_input"), Layer("conv", "convolution", inputs=(Source("x"),), params={"features": "3"}),
        Layer("y", "template_output", inputs=(Source("conv"),)),
    )  # fmt: skip
    layers = [
        Layer("image", "input", params={"dims": "16x8x3"}),
        Layer("block", "template", inputs=(Source("image"),), params={"template": "block"}),
        Layer("out", "output", inputs=(Source("block"),)),
    ]
    context.set_document(
        Document(Graph(layers, templates=[Template("block", inside)]), context.registry, parent=context)
    )
    said, asked = messages(context), []
    context.agreement_wanted.connect(asked.append)
    profiling = profiling_of(context)
    assert context.enter("block")
    assert context.document is not context.root
    for code, state, count in (
        ("out-of-memory", State.FAILED, 0),
        ("not-agreed", State.FAILED, 1),
        ("weights-missing", State.WEIGHTS, 1),
    ):
        said.clear()
        profiling._document = context.root
        profiling._failed((Diagnostic(code, "it failed"),))
        assert (profiling.state, profiling.message, len(asked)) == (state, "It failed.", count)
        assert said == ([("error", "It failed.")] if state is State.FAILED else [])
    assert os.sep
