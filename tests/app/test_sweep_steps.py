"""Every step of a sweep on this machine, with stand-ins for the exporter, the trainer and its processes."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.engine import sweep_job, sweep_process
from app.engine.sweep_process import Place
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import load
from designer.training import run_registry, trainer
from designer.training.run_folder import RunFolder
from designer.training.sweep import Axis, Sweep, Trial, trials
from designer.training.watched_run import RunState, WatchedRun
from exporters.pytorch import Training

REGISTRY = load(entry_points=False)
CONFIG = b"""
class Other:
    ema: float = 0.5

class Config:
    name = "without a type"
    lr: float = 0.1
    steps: int = 5

    def width(self, noise: int) -> int:
        extra: int = 3
        return extra
"""


def refusal(call: Callable[..., object], *arguments: Any) -> Diagnostic:
    with pytest.raises(DiagnosticError) as failed:
        call(*arguments)
    return failed.value.diagnostics[0]


def sweep_of(folder: Path, *axes: str, **options: str) -> Sweep:
    return Sweep(folder, tuple(trials([Axis.parse(text) for text in axes])), options)


# --- preparation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("axes", "options", "wrong"),
    [
        (["lr=1,2"], {"steps": "5"}, ""),
        (["lr=1,2", "width.conv=3,4"], {}, ""),
        (["noise=1,2"], {}, "noise"),
        (["lr=1,2"], {"ema": "1"}, "ema"),
        (["lr=1,2"], {"name": "x"}, "name"),
        (["extra=1,2"], {}, "extra"),
        (["zoom=1,2"], {"batch": "3"}, "batch"),  # the first one by name
        (["batch=1,2"], {"zoom": "3"}, "batch"),
    ],
)
def test_settings_of_a_sweep_are_fields_of_the_configuration(
    tmp_path: Path, axes: list[str], options: dict[str, str], wrong: str
) -> None:
    sweep = sweep_of(tmp_path, *axes, **options)
    if not wrong:
        sweep_job._check_settings(CONFIG, sweep)
        return
    found = refusal(sweep_job._check_settings, CONFIG, sweep)
    assert (found.code, found.message) == ("bad-sweep", f"{wrong} is not a setting of the exported project")
    assert found.remedy == "use one of these: lr, steps; or width.LAYER"


def network() -> Graph:
    return Graph(
        [
            Layer("image", "input", params={"dims": "8x8x3"}),
            Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "3"}),
            Layer("result", "output", inputs=(Source("conv"),)),
        ],
        name="my network",
    )


def test_a_sweep_has_a_project_for_each_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[tuple[Any, ...]] = []

    def files(graph: Graph, registry: Any, name: str, training: Training) -> dict[str, bytes]:
        log.append(("files", graph["conv"].params["features"], name, training))
        return {"config.py": CONFIG, "train.py": b""}

    def export(graph: Graph, registry: Any, folder: Path, name: str, training: Training) -> None:
        log.append(("export", graph["conv"].params["features"], folder, name, training))

    monkeypatch.setattr(sweep_job, "project_files", files)
    monkeypatch.setattr(sweep_job, "export_project", export)
    monkeypatch.setattr(run_registry, "remember", lambda run, document: log.append(("remember", run, document)))
    sweep = sweep_of(tmp_path / "s", "width.conv=3,4", "lr=1,2")
    finished = sweep.run(sweep.trials[2])
    finished.path.mkdir(parents=True)
    training, document = Training("denoising", {"batch": "3"}), tmp_path / "n.xml"
    folder_is_free = refusal(sweep_job.prepare, sweep, network(), REGISTRY, training, document)
    assert folder_is_free.code == "folder-not-empty"
    assert [each[0] for each in log] == ["files", "files"]
    finished.path.rmdir()
    finished.path.parent.rmdir()
    finished.project.rmdir()
    log.clear()
    found = sweep_job.prepare(sweep, network(), REGISTRY, training, document)
    assert found == list(sweep.trials)
    assert log == [
        ("files", "3", "MyNetwork", training), ("files", "4", "MyNetwork", training),
        ("export", "3", tmp_path / "s" / "conv-3", "MyNetwork", training),
        ("export", "4", tmp_path / "s" / "conv-4", "MyNetwork", training),
        *(("remember", sweep.run(trial).path, document) for trial in sweep.trials),
    ]  # fmt: skip
    finished.path.mkdir(parents=True)
    (finished.path / "status.json").write_text(json.dumps({"state": "finished", "pid": 0, "step": 5}))
    assert [trial.number for trial in sweep_job.unfinished(sweep)] == [1, 2, 4]
    refused = refusal(
        sweep_job.prepare, sweep_of(tmp_path / "s", "width.conv=3,4"), network(), REGISTRY, training, None
    )
    assert refused.code == "folder-not-empty"
    log.clear()
    assert (
        refusal(sweep_job.prepare, sweep_of(tmp_path / "t", "ema=1,2"), network(), REGISTRY, training, None).code
        == "bad-sweep"
    )
    assert [each[0] for each in log] == ["files"]
    assert not (tmp_path / "t").exists()


# --- trials --------------------------------------------------------------------------------------------------------


def status(run: RunFolder, state: str, checkpoint: bool = False) -> None:
    (run.path / "checkpoints").mkdir(parents=True, exist_ok=True)
    (run.path / "status.json").write_text(json.dumps({"state": state, "pid": 0, "step": 5, "message": f"it {state}"}))
    if checkpoint:
        (run.path / "checkpoints" / "last.pt").touch()


@pytest.mark.parametrize(
    ("state", "checkpoint", "resumes"),
    [
        ("stopped", True, True),
        ("stopped", False, False),
        ("running", True, True),  # its process is gone: it was killed
        ("failed", True, False),
        ("finished", True, False),
        ("", False, False),
    ],
)
@pytest.mark.parametrize("parallel", [1, 3, 64])
def test_how_a_trial_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, checkpoint: bool, resumes: bool, parallel: int
) -> None:
    sweep = sweep_of(tmp_path, "lr=1,2", steps="5")
    trial, started = sweep.trials[1], []
    run = sweep.run(trial)
    if state:
        status(run, state, checkpoint)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)

    def start(folder: RunFolder, options: Any, *, resume: bool) -> int:
        started.append((folder, dict(options), resume, folder.path.exists()))
        folder.path.mkdir(parents=True, exist_ok=True)
        return 7

    monkeypatch.setattr(trainer, "start", start)
    assert sweep_job.can_resume(run) is resumes
    found = sweep_job.start_trial(sweep, trial, parallel)
    threads = {1: "12", 3: "4", 64: "1"}[parallel]
    assert started == [(run, {"threads": threads, "steps": "5", "lr": "2"}, resumes, resumes)]
    assert (found.folder, run.notes().title) == (run, "lr 2")


def test_threads_of_a_trial_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep, started = sweep_of(tmp_path, "lr=1,2", threads="3"), []
    sweep.run(sweep.trials[0]).path.mkdir(parents=True)
    monkeypatch.setattr(trainer, "start", lambda folder, options, *, resume: started.append(options["threads"]))
    monkeypatch.setattr(RunFolder, "write_notes", lambda *_: None)
    sweep_job.start_trial(sweep, sweep.trials[0], 2)
    assert started == ["3"]


def test_a_trial_that_trains_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = sweep_of(tmp_path, "lr=1,2")
    run = sweep.run(sweep.trials[0])
    run.path.mkdir(parents=True)
    run.record_process(os.getpid())
    monkeypatch.setattr(trainer, "start", lambda *_, **__: pytest.fail("it was started"))
    assert sweep_job.start_trial(sweep, sweep.trials[0], 1).folder == run


class Trials:
    """Trials that end at the looks with these numbers; a process may be there for one look longer."""

    def __init__(self, folder: Path, ends: dict[int, tuple[int, RunState, int]]) -> None:
        self.sweep = sweep_of(folder, f"lr={','.join(str(n) for n in ends)}")
        self.ends, self.look = ends, 0
        self.log: list[tuple[Any, ...]] = []

    def start(self, sweep: Sweep, trial: Trial, parallel: int) -> Any:
        self.log.append(("start", trial.number, parallel, self.look))
        stopped = []

        def ended() -> bool:
            return self.look >= self.ends[trial.number][0] or bool(stopped)

        def state() -> RunState:
            return RunState.STOPPED if stopped else self.ends[trial.number][1] if ended() else RunState.RUNNING

        folder = SimpleNamespace(
            send=lambda command: stopped.append(command) or self.log.append(("send", trial.number, command)),
            process=lambda: 0 if self.look >= sum(self.ends[trial.number][::2]) or stopped else 7,
        )
        run = SimpleNamespace(folder=folder, snapshot=None)
        run.read = lambda: setattr(run, "snapshot", SimpleNamespace(state=state(), message=f"message {trial.number}"))
        return run

    def ended(self, trial: Trial, state: RunState, message: str) -> None:
        self.log.append(("ended", trial.number, state, message, self.look))


@pytest.fixture
def reaped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(trainer, "reap", lambda: found.append(1))
    return found


def test_trials_start_as_others_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reaped: list[int]) -> None:
    found = Trials(
        tmp_path,
        {
            1: (3, RunState.FINISHED, 0),
            2: (1, RunState.FAILED, 1),
            3: (4, RunState.ENDED, 0),
            4: (5, RunState.FINISHED, 0),
        },
    )
    monkeypatch.setattr(sweep_job, "start_trial", found.start)
    monkeypatch.setattr(sweep_job.time, "sleep", lambda seconds: setattr(found, "look", found.look + 1))
    waiting = list(found.sweep.trials)
    sweep_job.run_here(found.sweep, waiting, 2, found.ended)
    assert waiting == list(found.sweep.trials)
    assert found.log == [
        ("start", 1, 2, 0), ("start", 2, 2, 0),
        ("ended", 2, RunState.FAILED, "message 2", 2),  # its process ends after its last word
        ("start", 3, 2, 2), ("ended", 1, RunState.FINISHED, "message 1", 3),
        ("start", 4, 2, 3), ("ended", 3, RunState.ENDED, "message 3", 4), ("ended", 4, RunState.FINISHED, "message 4", 5),
    ]  # fmt: skip
    assert reaped


def test_ctrl_c_stops_the_trials_that_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reaped: list[int]) -> None:
    found = Trials(tmp_path, dict.fromkeys((1, 2, 3), (99, RunState.FINISHED, 0)))

    def sleep(seconds: float) -> None:
        found.look += 1
        if found.look == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(sweep_job, "start_trial", found.start)
    monkeypatch.setattr(sweep_job.time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        sweep_job.run_here(found.sweep, list(found.sweep.trials), 2, found.ended)
    assert found.log[2:] == [
        ("send", 1, "stop"), ("send", 2, "stop"),
        ("ended", 1, RunState.STOPPED, "message 1", 3), ("ended", 2, RunState.STOPPED, "message 2", 3),
    ]  # fmt: skip


# --- the process of a sweep ----------------------------------------------------------------------------------------


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    made = sweep_of(tmp_path / "my sweep", "lr=1,2,3")
    made.open("a document")
    return made


def test_the_process_of_a_sweep_is_started_with_its_place(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    spawned: list[tuple[Any, ...]] = []
    monkeypatch.setattr(trainer, "spawn", lambda *each: spawned.append(each) or os.getpid())
    (sweep.folder / "control").write_text("stop")
    sweep_process.start(sweep, Place(2, "here:1"))
    ((words, folder, log),) = spawned
    assert words[-2:] == ["app.engine.sweep_process", str(sweep.folder)]
    assert (folder, log) == (sweep.folder, sweep.folder / "output.log")
    assert sweep_process.read_place(sweep) == Place(2, "here:1")
    assert not (sweep.folder / "control").exists()
    assert sweep.job.process() == os.getpid()


def test_a_sweep_runs_once(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunFolder, "process", lambda self: os.getpid() + 1)
    monkeypatch.setattr(trainer, "spawn", lambda *each: pytest.fail("it was started"))
    monkeypatch.setattr(sweep_process, "run_here", lambda *each: pytest.fail("it was run"))
    for call in (
        lambda: sweep_process.start(sweep, Place(2)),
        lambda: sweep_process.conduct(sweep, list(sweep.trials), Place(), lambda *_: None),
    ):
        found = refusal(call)
        assert (found.code, found.file) == ("sweep-runs", str(sweep.folder))
        assert (found.message, found.remedy) == ("the sweep my sweep is running already", "stop it first")
    assert not (sweep.folder / "place.json").exists()


def told(sweep: Sweep) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((sweep.folder / "status.json").read_text())
    return found


def test_the_state_of_a_sweep_is_in_its_folder(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[dict[str, Any]] = []
    results = sweep.folder / "results.csv"

    def here(found: Sweep, waiting: Any, parallel: int, ended: Any) -> None:
        states.append(told(sweep))
        assert not (sweep.folder / "control").exists()
        assert sweep.job.process() == os.getpid()
        assert not results.exists()
        ended(sweep.trials[0], RunState.FINISHED, "")
        assert results.exists()
        ended(sweep.trials[1], RunState.STOPPED, "")
        results.unlink()

    (sweep.folder / "control").write_text("stop")  # of an earlier process
    monkeypatch.setattr(sweep_process, "run_here", here)
    monkeypatch.setattr(sweep_process.time, "time", lambda: 12.5)
    sweep_process.conduct(sweep, list(sweep.trials), Place(), lambda *_: None)
    states.append(told(sweep))
    assert [(each["state"], each["pid"], each.get("message", ""), each["time"]) for each in states] == [
        ("running", os.getpid(), "", 12.5), ("finished", os.getpid(), "", 12.5)
    ]  # fmt: skip
    assert results.exists()

    def fails(found: Sweep, waiting: Any, parallel: int, ended: Any) -> None:
        for trial in sweep.trials[1:]:
            ended(trial, RunState.FAILED, "why")

    monkeypatch.setattr(sweep_process, "run_here", fails)
    sweep_process.conduct(sweep, list(sweep.trials), Place(), lambda *_: None)
    assert told(sweep)["message"] == "2 trials failed: trial_002, trial_003"

    def refused(found: Sweep, waiting: Any, parallel: int, ended: Any) -> None:
        raise DiagnosticError([Diagnostic("x", "no space"), Diagnostic("y", "other", remedy="z")])

    monkeypatch.setattr(sweep_process, "run_here", refused)
    with pytest.raises(DiagnosticError):
        sweep_process.conduct(sweep, list(sweep.trials), Place(), lambda *_: None)
    assert (told(sweep)["state"], told(sweep)["message"]) == ("failed", "no space")


def test_a_sweep_that_was_started_keeps_the_command_for_it(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep.job.record_process(os.getpid())
    (sweep.folder / "control").write_text("pause")
    monkeypatch.setattr(sweep_process, "run_here", lambda *each: None)
    sweep_process.conduct(sweep, [], Place(), lambda *_: None)
    assert (sweep.folder / "control").read_text() == "pause"


def test_a_sweep_runs_where_its_place_says(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    waiting = sweep.trials[1:]
    monkeypatch.setattr(
        "app.engine.sweep_cluster.run_on_cluster",
        lambda address, found, trials, ended: calls.append((address, found, trials)),
    )
    monkeypatch.setattr(
        sweep_process, "run_here", lambda found, trials, parallel, ended: calls.append((parallel, found, trials))
    )
    sweep_process.conduct(sweep, waiting, Place(3, "here:1"), lambda *_: None)
    sweep_process.conduct(sweep, waiting, Place(3), lambda *_: None)
    assert calls == [("here:1", sweep, waiting), (3, sweep, list(waiting))]


def test_the_command_stop_ends_a_sweep(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_process, "LOOK", 0.005)
    stopped = threading.Event()
    monkeypatch.setattr(sweep_process._thread, "interrupt_main", stopped.set)
    with sweep_process._stopped_by_command(sweep.job):
        (sweep.folder / "control").write_text("pause")
        assert not stopped.wait(0.03)
        (sweep.folder / "control").write_text("stop")
        assert stopped.wait(10)
    stopped.clear()
    with sweep_process._stopped_by_command(RunFolder(sweep.folder / "other")):
        pass
    assert not [thread for thread in threading.enumerate() if "watch" in thread.name]


@pytest.mark.parametrize(
    ("error", "code"),
    [(None, 0), (KeyboardInterrupt(), 130), (DiagnosticError.of("x", "no", remedy="none"), 1)],
)
def test_the_exit_status_of_a_sweep(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch, error: BaseException | None, code: int
) -> None:
    status(sweep.run(sweep.trials[0]), "finished")
    (sweep.folder / "place.json").write_text('{"parallel": 2}')
    calls: list[Any] = []

    def conduct(found: Sweep, waiting: Any, place: Place, ended: Any) -> None:
        calls.append((found, waiting, place))
        assert ended(None, RunState.FAILED, "") is None
        if error is not None:
            raise error

    monkeypatch.setattr(sweep_process, "conduct", conduct)
    assert sweep_process.main(str(sweep.folder)) == code
    assert calls == [(sweep, list(sweep.trials[1:]), Place(2))]


def test_the_end_of_a_run_is_read_from_its_folder(tmp_path: Path, reaped: list[int]) -> None:
    sweep = sweep_of(tmp_path, "lr=1,2")
    trial, log = sweep.trials[0], []
    status(sweep.run(trial), "stopped")
    running = {trial.name: (trial, WatchedRun(sweep.run(trial)))}
    sweep_job._collect(running, lambda *each: log.append(each))
    assert (running, log) == ({}, [(trial, RunState.STOPPED, "it stopped")])
