"""A sweep on a cluster of two nodes loses nothing when a node is lost."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.engine import sweep_cluster
from app.engine.sweep_cluster import Collector, Work, _obey, _pack, _Report, _unpack, run_on_cluster, train_on_node
from designer.graph.diagnostics import DiagnosticError
from designer.training.metrics import MetricsFile
from designer.training.run_folder import Command, Notes, RunFolder
from designer.training.sweep import Axis, Sweep, Trial, trials
from designer.training.watched_run import RunState

ROOT = Path(__file__).parents[2]
TRAINER = ROOT / "tests" / "training" / "fake_trainer.py"
STEPS = 20


@pytest.mark.slow
def test_a_lost_node_loses_no_trial(tmp_path: Path) -> None:
    if importlib.util.find_spec("ray") is None or importlib.util.find_spec("ray.tune") is None:
        pytest.skip("Ray is not installed: pip install 'layerwright[cluster]'")
    driver = importlib.import_module("sweep_driver")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "app" / "sweep_driver.py"), str(tmp_path / "sweep")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=240,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"states": {"trial_001": "finished", "trial_002": "finished"}, "lost": ["a node"]}
    sweep = driver.sweep_in(tmp_path / "sweep")
    starts = []
    for trial in sweep.trials:
        run = sweep.run(trial)
        metrics = MetricsFile(run.metrics)
        metrics.read()
        steps, losses = metrics.curves.points("loss")
        np.testing.assert_array_equal(steps, np.arange(1, driver.STEPS + 1))
        np.testing.assert_allclose(losses, 1 / steps)
        assert not run.process()
        starts.append(run.metrics.read_text().count('"schema"'))
    assert sorted(starts) == [1, 2]  # the trial of the lost node continued from the copied checkpoint


def test_without_ray_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.engine.cluster import Cluster

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "ray" else find(name, *more))
    with pytest.raises(DiagnosticError, match="Ray is not installed"):
        Cluster("127.0.0.1:6379")


# --- what a node and the collector do, without a cluster --------------------------------------------------------------


class Store:
    """What the tests need of Ray: values are stored once, and calls of an actor are carried out at once."""

    def __init__(self) -> None:
        self.stored: list[Any] = []

    def put(self, value: Any) -> Any:
        self.stored.append(value)
        return value

    def get(self, value: Any) -> Any:
        return value


class Remote:
    """A collector whose calls are written down; `order` is said by the user once files have come back that many times."""

    def __init__(self, collector: Collector, orders: dict[int, Callable[[], None]] | None = None) -> None:
        self.collector, self.orders = collector, orders or {}
        self.exchanged: list[list[str]] = []
        self.held = SimpleNamespace(remote=collector.held)
        self.exchange = SimpleNamespace(remote=self._exchange)

    def _exchange(self, number: int, parts: Sequence[tuple[str, int, bytes]]) -> Command | None:
        self.exchanged.append([name for name, _, _ in parts])
        if (order := self.orders.get(len(self.exchanged))) is not None:
            order()
        return self.collector.exchange(number, parts)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Store:
    """A module `ray` that stores what is put, and nothing else."""
    store, module = Store(), ModuleType("ray")
    module.put, module.get = store.put, store.get  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", module)
    monkeypatch.setattr(sweep_cluster, "LOOK", 0.02)
    return store


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    """Two learning rates for each of two widths; the projects have a replacement for the trainer, and data next to them."""
    axes = [Axis.parse("width.conv=4,8"), Axis.parse("lr=0.1,0.2")]
    data = tmp_path / "data"
    (data / "runs").mkdir(parents=True)
    (data / "runs" / "an image.txt").write_text("of a folder that has this name by chance")
    (data / "first.txt").write_text("a photo")
    made = Sweep(tmp_path / "sweep", tuple(trials(axes)), {"steps": str(STEPS), "delay": "0", "data": str(data)})
    made.open("a network")
    for trial in made.trials:
        made.project(trial).mkdir(exist_ok=True)
        shutil.copy(TRAINER, made.project(trial) / "train.py")
    return made


def losses(run: RunFolder) -> list[float]:
    metrics = MetricsFile(run.metrics)
    metrics.read()
    return [float(value) for value in metrics.curves.points("loss")[1]]


def starts(run: RunFolder) -> int:
    return run.metrics.read_text().count('"schema"')


def test_what_a_node_needs_is_stored_once_and_has_the_options_of_its_trial(ray: Store, sweep: Sweep) -> None:
    work = sweep_cluster._work(sweep, sweep.trials)
    assert list(work) == [1, 2, 3, 4]
    assert len(ray.stored) == 3, "two projects, and the data that all trials share"
    assert work[1].project is work[2].project is not work[3].project
    assert work[3].project is work[4].project
    for trial in sweep.trials:
        made = work[trial.number]
        assert made.name == trial.name
        assert made.options == {"threads": "1", "steps": "20", "delay": "0", "lr": trial.values["lr"]}
        assert made.data.keys() == {"data"}
        assert made.data["data"] is work[1].data["data"]
    chosen = Sweep(
        sweep.folder, sweep.trials[:1], {**sweep.options, "threads": "3", "validation": sweep.options["data"]}
    )
    (made,) = sweep_cluster._work(chosen, chosen.trials).values()
    assert made.options["threads"] == "3"
    assert made.data["validation"] is made.data["data"]


def test_a_project_travels_without_its_runs_and_everything_else_as_it_is(tmp_path: Path) -> None:
    project = tmp_path / "project"
    names = ("train.py", "runs/a/metrics.jsonl", "cache/b.bin", "package/runs/c.py", "package/cache.py", "running.txt")
    for name in names:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(name)
    found = _unpack(_pack(project), tmp_path / "node")
    written = {path.relative_to(found).as_posix(): path.read_text() for path in found.rglob("*") if path.is_file()}
    assert written == {name: name for name in names if not name.startswith(("runs/", "cache/"))}
    file = tmp_path / "weights.pt"
    file.write_bytes(b"weights")
    assert _unpack(_pack(file), tmp_path / "other").read_bytes() == b"weights"


def test_a_node_trains_a_trial_and_its_files_are_copied_while_it_trains(
    ray: Store, sweep: Sweep, tmp_path: Path
) -> None:
    trial = sweep.trials[1]
    run = sweep.run(trial)
    remote = Remote(Collector({trial.number: run.path}, 4321))
    train_on_node(trial.number, sweep_cluster._work(sweep, [trial])[trial.number], remote)
    assert losses(run) == pytest.approx([1 / step for step in range(1, STEPS + 1)])
    status = run.status()
    assert status is not None
    assert (status.state, status.step, status.pid) == ("finished", STEPS, 4321)
    settings = run.settings()
    assert settings["lr"] == 0.2
    assert Path(settings["data"]).name == "content"
    assert run.checkpoint is not None
    assert run.checkpoint.read_text() == "20"
    assert run.log.exists()
    assert remote.exchanged[-1] == [] or "status.json" in remote.exchanged[-1]


def test_an_interrupted_trial_continues_from_its_checkpoint_and_one_without_begins_anew(
    ray: Store, sweep: Sweep
) -> None:
    trial = sweep.trials[0]
    run = sweep.run(trial)
    collector = Collector({trial.number: run.path}, 7)
    run.path.mkdir(parents=True)
    run.metrics.write_text('{"schema": 1, "total_steps": 20}\n{"step": 1, "loss": 5.0}\n')
    assert collector.held(trial.number) == [], "without a checkpoint nothing of it is of use"
    remote = Remote(collector)
    train_on_node(trial.number, sweep_cluster._work(sweep, [trial])[trial.number], remote)
    assert starts(run) == 1
    assert losses(run)[0] == 1.0
    (run.path / "checkpoints" / "last.pt").write_text("10")
    (run.path / "notes.json").write_text("{}")
    (run.path / "first.png").write_bytes(b"an image of the first half")
    held = {name for name, _, _ in collector.held(trial.number)}
    assert held == {"config.json", "status.json", "metrics.jsonl", "output.log", "checkpoints/last.pt", "first.png"}
    again = Remote(collector)
    train_on_node(trial.number, sweep_cluster._work(sweep, [trial])[trial.number], again)
    assert starts(run) == 2
    assert len(losses(run)) == STEPS
    assert run.notes() == Notes()
    sent = [name for names in again.exchanged for name in names]
    assert "metrics.jsonl" in sent
    assert "first.png" not in sent, "what it was given does not travel back"
    lines = run.metrics.read_text().splitlines()
    assert len(lines) == 1 + STEPS + 1 + STEPS // 2, "what the node was given did not come back a second time"


def test_a_command_of_the_user_reaches_the_node_once(ray: Store, sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = sweep.trials[0]
    run = sweep.run(trial)
    slow = Sweep(sweep.folder, sweep.trials, {**sweep.options, "steps": "100000", "delay": "0.001"})
    sent: list[str] = []
    send = RunFolder.send
    monkeypatch.setattr(RunFolder, "send", lambda self, command: (sent.append(command), send(self, command)))

    def say(command: Command) -> Callable[[], None]:
        return lambda: (run.path / "control").write_text(command, "ascii") and None

    orders = {3: say("pause"), 6: say("resume"), 9: say("stop")}
    train_on_node(
        trial.number, sweep_cluster._work(slow, [trial])[trial.number], Remote(Collector({1: run.path}, 7), orders)
    )
    assert sent == ["pause", "resume", "stop"]
    status = run.status()
    assert status is not None
    assert status.state == "stopped"
    assert 0 < status.step < 100000
    assert len(losses(run)) == status.step
    quiet = SimpleNamespace(send=sent.append)
    last: Command | None = None
    for said in (None, "pause", "pause", None, "pause", "stop", "stop"):
        last = _obey(quiet, said, last)  # type: ignore[arg-type]
        assert last == said
    assert sent[3:] == ["pause", "pause", "stop"]


def test_the_end_of_a_trial_is_reported_with_its_state_and_reason(sweep: Sweep) -> None:
    said: list[tuple[str, RunState, str]] = []
    report = _Report(sweep, sweep.trials, lambda trial, state, message: said.append((trial.name, state, message)))
    ends = {1: ("finished", ""), 2: ("failed", "the loss is NaN"), 3: ("stopped", "it was stopped")}
    for trial in sweep.trials:
        run = sweep.run(trial)
        run.path.mkdir(parents=True)
        run.record_process(os.getpid())
        state, message = ends.get(trial.number, ("running", ""))
        status = {"state": state, "pid": 0, "step": 5, "message": message}
        (run.path / "status.json").write_text(json.dumps(status))
    for number in (2, 1, 3):
        report.ended(number)
    report.failed(4, RuntimeError("first line\n  the node ran out of memory  \n"))
    assert said == [
        ("trial_002", RunState.FAILED, "the loss is NaN"),
        ("trial_001", RunState.FINISHED, ""),
        ("trial_003", RunState.STOPPED, "it was stopped"),
        ("trial_004", RunState.FAILED, "  the node ran out of memory  ".rstrip()),
    ]
    assert not any((sweep.run(trial).path / "process.json").exists() for trial in sweep.trials)
    report.failed(4, None)
    report.failed(4, RuntimeError("x" * 1000))
    assert [message for _, _, message in said[4:]] == ["no reason was given", "x" * 300]


def test_trials_that_can_continue_keep_their_files_and_others_begin_anew(
    ray: Store, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["ray"]
    actors: list[dict[str, Any]] = []

    def remote(cls: type[Collector]) -> Any:
        def options(**more: Any) -> Any:
            actors.append(more)
            return SimpleNamespace(remote=lambda *words: Remote(cls(*words)))

        return SimpleNamespace(options=options)

    module.remote = remote  # type: ignore[attr-defined]
    module.get_runtime_context = lambda: SimpleNamespace(get_node_id=lambda: "here")  # type: ignore[attr-defined]
    scheduling = ModuleType("ray.util.scheduling_strategies")
    scheduling.NodeAffinitySchedulingStrategy = lambda node, soft: (node, soft)  # type: ignore[attr-defined]
    for name, each in (("ray.util", ModuleType("ray.util")), (scheduling.__name__, scheduling)):
        monkeypatch.setitem(sys.modules, name, each)
    addresses: list[str] = []
    monkeypatch.setattr(sweep_cluster, "Cluster", lambda address: addresses.append(address) or nullcontext())

    def tune(work: dict[int, Work], collector: Any, scratch: Path, report: Any) -> None:
        assert scratch.is_dir()
        for trial in waiting:
            run = sweep.run(trial)
            assert run.process() == os.getpid(), "it is not started a second time meanwhile"
            assert run.notes().title == trial.title
        for number in work:
            train_on_node(number, work[number], collector)
            report.ended(number)

    monkeypatch.setattr(sweep_cluster, "_tune", tune)
    stopped, failed, done = (sweep.run(trial) for trial in sweep.trials[:3])
    for run, state in ((stopped, "stopped"), (failed, "failed"), (done, "finished")):
        (run.path / "checkpoints").mkdir(parents=True)
        (run.path / "checkpoints" / "last.pt").write_text("10")
        (run.path / "config.json").write_text(json.dumps({"settings": {"steps": STEPS, "delay": 0}}))
        (run.path / "status.json").write_text(json.dumps({"state": state, "pid": 0, "step": 10}))
        run.metrics.write_text('{"schema": 1, "total_steps": 20}\n' + "".join(
            json.dumps({"step": step, "loss": 9.0}) + "\n" for step in range(1, 11)
        ))  # fmt: skip
        (run.path / "old.txt").touch()
    waiting = (sweep.trials[0], sweep.trials[1], sweep.trials[3])
    said: list[tuple[int, RunState]] = []

    def ended(trial: Trial, state: RunState, message: str) -> None:
        said.append((trial.number, state))

    run_on_cluster("127.0.0.1:6379", sweep, waiting, ended)
    assert addresses == ["127.0.0.1:6379"]
    assert actors == [{"num_cpus": 0, "scheduling_strategy": ("here", False)}]
    assert said == [(trial.number, RunState.FINISHED) for trial in waiting]
    assert losses(stopped) == [9.0] * 10 + [1 / step for step in range(11, STEPS + 1)]
    assert losses(failed) == [1 / step for step in range(1, STEPS + 1)]
    assert ((stopped.path / "old.txt").exists(), (failed.path / "old.txt").exists()) == (True, False)
    assert losses(done) == [9.0] * 10, "a trial that waits for nothing is left alone"
    assert not any(sweep.run(trial).process() for trial in sweep.trials)
    run_on_cluster("nowhere", sweep, (), ended)
    assert addresses == ["127.0.0.1:6379"]
