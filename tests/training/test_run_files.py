"""The files of a training run, read while another process writes them, and the process that trains."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.training import run_folder, run_registry, trainer
from designer.training.health import HealthFile, health_at
from designer.training.metrics import MetricsFile, settings_differences
from designer.training.process_mark import process_mark
from designer.training.run_folder import Notes, RunFolder, runs_of

WAIT = 30.0


@pytest.fixture
def project(tmp_path):
    """A project whose training is the stand-in. Its processes end with the test."""
    shutil.copy(Path(__file__).with_name("fake_trainer.py"), tmp_path / "train.py")
    yield tmp_path
    for path in runs_of(tmp_path):
        pid = RunFolder(path).process()
        if pid:
            os.kill(pid, signal.SIGKILL)
    for child in trainer._children:
        child.wait(WAIT)


def wait_for(condition):
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def state_of(run: RunFolder) -> str:
    status = run.status()
    return status.state if status is not None else ""


def write_lines(path: Path, *lines: object, end: str = "\n") -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + end)


def test_metrics_are_read_as_they_grow_and_half_a_line_waits_for_its_end(tmp_path):
    path = tmp_path / "metrics.jsonl"
    file = MetricsFile(path)
    write_lines(path, {"schema": 1, "total_steps": 9, "task": "denoise"}, {"step": 1, "loss": 2.0})
    assert file.read()
    write_lines(path, '{"step": 2, "loss"', end="")
    file.read()
    assert file.curves.steps.tolist() == [1]
    write_lines(path, ": 1.0}", {"step": 3, "loss": 0.5, "validation": {"psnr": 21.5}})
    file.read()
    assert not file.read(), "nothing was appended"
    curves = file.curves
    assert (curves.total_steps, curves.task, curves.skipped) == (9, "denoise", 0)
    assert curves.points("loss")[1].tolist() == [2.0, 1.0, 0.5]
    assert [each.tolist() for each in curves.points("validation.psnr")] == [[3.0], [21.5]]
    assert curves.last("validation.psnr") == 21.5


def test_every_prefix_of_the_metrics_can_be_read(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write_lines(path, {"schema": 1, "total_steps": 3}, {"step": 1, "loss": 1.0}, {"step": 1, "loss": 2.0}, {"step": 2})
    data = path.read_bytes()
    path.write_bytes(b"")
    file = MetricsFile(path)
    for byte in data:
        with path.open("ab") as stream:
            stream.write(bytes([byte]))
        file.read()
    assert file.curves.steps.tolist() == [1, 2]
    assert file.curves.total_steps == 3


def test_broken_lines_are_counted_and_nan_is_a_gap(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write_lines(path, {"step": 1, "loss": 2.0}, "\x00\x00 not json", {"step": 2, "loss": float("nan")}, {"step": 3})
    file = MetricsFile(path)
    file.read()
    assert file.curves.steps.tolist() == [1, 2, 3]
    assert np.isnan(file.curves.values["loss"]).tolist() == [False, True, True]
    assert file.curves.skipped == 1


def test_a_resumed_part_replaces_what_followed_its_checkpoint(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write_lines(path, *({"step": step, "loss": 1.0} for step in range(1, 9)))
    file = MetricsFile(path)
    file.read()
    write_lines(path, {"schema": 1, "total_steps": 20}, *({"step": step, "loss": 2.0} for step in range(6, 11)))
    file.read()
    assert file.curves.steps.tolist() == list(range(1, 11))
    assert file.curves.values["loss"].tolist() == [1.0] * 5 + [2.0] * 5
    assert file.curves.total_steps == 20
    both = MetricsFile(path)  # the same when both parts are read at once
    both.read()
    assert both.curves.values["loss"].tolist() == file.curves.values["loss"].tolist()


def test_a_file_that_was_replaced_is_read_again(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write_lines(path, *({"step": step, "loss": 1.0} for step in range(1, 9)))
    file = MetricsFile(path)
    file.read()
    path.unlink()
    write_lines(path, {"step": 1, "loss": 5.0})
    assert file.read()
    assert file.curves.values["loss"].tolist() == [5.0]


def test_time_left_follows_the_time_of_training_and_not_the_clock(tmp_path):
    path = tmp_path / "metrics.jsonl"
    clock = [1e9, 1e9 + 1, 5.0, 2e9]  # set back and forth
    write_lines(path, *({"step": n + 1, "elapsed": n * 0.5, "time": now} for n, now in enumerate(clock)))
    file = MetricsFile(path)
    file.read()
    assert file.curves.seconds_per_step() == 0.5


def test_a_process_is_known_by_when_it_started(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mark = process_mark(child.pid)
    assert mark
    assert mark == process_mark(child.pid)
    assert mark != process_mark(os.getpid())
    child.kill()
    wait_for(lambda: process_mark(child.pid) is None)  # also before somebody asks for its exit status
    child.communicate()
    assert process_mark(child.pid) is None


def test_a_reused_process_id_is_not_the_trainer(project):
    run = RunFolder(project / "runs" / "a")
    run.path.mkdir(parents=True)
    run.record_process(os.getpid())
    assert run.process() == os.getpid()
    (run.path / "process.json").write_text(json.dumps({"pid": os.getpid(), "mark": "another start"}))
    (run.path / "status.json").write_text(json.dumps({"state": "running", "pid": os.getpid()}))
    assert run.process() == 0


def test_a_run_pauses_resumes_stops_and_goes_on(project):
    run = RunFolder(project / "runs" / "a")
    pid = trainer.start(run, {"steps": "100000", "delay": "0.002"})
    wait_for(lambda: state_of(run) == "running")
    assert run.process() == pid
    run.send("pause")
    wait_for(lambda: state_of(run) == "paused")
    run.send("resume")
    wait_for(lambda: state_of(run) == "running")
    run.send("stop")
    wait_for(lambda: state_of(run) == "stopped")
    wait_for(lambda: run.process() == 0)
    stopped = run.status().step
    trainer.start(run, {"steps": str(stopped + 3), "delay": "0.002"}, resume=True)
    wait_for(lambda: state_of(run) == "finished")
    assert run.status().step == stopped + 3


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sets the priority differently")
def test_training_has_a_lower_priority_than_the_window(project):
    run = RunFolder(project / "runs" / "a")
    pid = trainer.start(run, {"steps": "100000"})
    assert os.getpriority(os.PRIO_PROCESS, pid) == trainer.NICENESS


@pytest.mark.parametrize(
    ("state", "own", "trains"),
    [
        ("running", True, True),
        ("paused", True, True),
        ("finished", True, False),
        ("stopped", True, False),
        ("failed", True, False),
        ("stopped", False, True),
    ],
)
def test_a_status_that_an_earlier_process_left_ends_no_run(tmp_path, state, own, trains):
    """A resumed run keeps the status of its last process until it writes its own."""
    run = RunFolder(tmp_path)
    assert not run.trains()
    run.record_process(os.getpid())
    pid = os.getpid() if own else os.getpid() + 1
    (tmp_path / "status.json").write_text(json.dumps({"state": state, "pid": pid}))
    assert run.trains() is trains


def test_only_one_process_trains_a_run(project):
    run = RunFolder(project / "runs" / "a")
    trainer.start(run, {"steps": "100000"})
    with pytest.raises(DiagnosticError, match="is training already"):
        trainer.start(run, {"steps": "100000"}, resume=True)
    with pytest.raises(DiagnosticError, match="stop it first"):
        run.delete()


def test_two_windows_that_start_one_run_start_one_process(project):
    text = (
        "import sys; from pathlib import Path; from designer.training import trainer\n"
        "from designer.training.run_folder import RunFolder\n"
        f"run = RunFolder(Path({str(project / 'runs' / 'a')!r})); input()\n"
        "try: print(trainer.start(run, {'steps': '100000'}))\n"
        "except Exception as error: print('refused', error)\n"
    )
    windows = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for window in windows:
        window.stdin.write("\n")
        window.stdin.flush()
    answers = [window.communicate()[0] for window in windows]
    assert sorted(answer.startswith("refused") for answer in answers) == [False, True, True, True], answers


def test_a_killed_trainer_is_noticed_and_its_run_goes_on(project):
    run = RunFolder(project / "runs" / "a")
    pid = trainer.start(run, {"steps": "100000", "delay": "0.002"})
    wait_for(lambda: (run.status() or 0) and run.status().step >= 25)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: run.process() == 0)
    assert state_of(run) == "running", "it had no time to say anything else"
    trainer.start(run, {"steps": "40"}, resume=True)
    wait_for(lambda: state_of(run) == "finished")
    file = MetricsFile(run.metrics)
    file.read()
    assert file.curves.steps.tolist() == list(range(1, 41))


def test_a_deleted_folder_counts_as_an_empty_run(project):
    run = RunFolder(project / "runs" / "a")
    trainer.start(run, {"steps": "3"})
    wait_for(lambda: state_of(run) == "finished" and run.process() == 0)
    run.delete()
    run.delete()
    assert (run.status(), run.config(), run.process(), run.validation_steps()) == (None, {}, 0, [])
    assert run.notes() == Notes()


def test_a_folder_that_cannot_be_deleted_is_named(tmp_path, monkeypatch):
    run = RunFolder(tmp_path / "runs" / "a")
    run.path.mkdir(parents=True)

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(shutil, "rmtree", refuse)
    with pytest.raises(DiagnosticError, match="Permission denied") as caught:
        run.delete()
    (found,) = caught.value.diagnostics
    assert (found.code, found.file) == ("cannot-delete", str(run.path))


def test_a_trainer_of_a_terminal_counts_only_while_it_runs_and_for_no_recorded_process(tmp_path, monkeypatch):
    run = RunFolder(tmp_path / "runs" / "a")
    run.path.mkdir(parents=True)
    monkeypatch.setattr(run_folder, "process_mark", {7: "seven"}.get)
    monkeypatch.setattr(run_folder, "runs_script", lambda pid, script: pid in (7, 8))

    def found(status: int | None, record: tuple[int, str] | None) -> int:
        for name, data in (
            ("status.json", status and {"state": "running", "pid": status, "step": 1, "total_steps": 9}),
            ("process.json", record and dict(zip(("pid", "mark"), record, strict=True))),
        ):
            (run.path / name).unlink(missing_ok=True)
            if data:
                (run.path / name).write_text(json.dumps(data))
        assert status is None or run.status() is not None
        return run.process()

    assert found(None, None) == 0
    assert found(None, (7, "seven")) == 7, "it has not written a status yet"
    assert found(8, (7, "seven")) == 7
    assert found(None, (7, "other")) == 0, "another process has its id"
    assert found(7, (7, "other")) == 0, "another process has its id"
    assert found(8, (7, "other")) == 8, "it was resumed from a terminal"
    assert found(8, (9, "")) == 8
    assert found(9, None) == 0, "it has ended"
    assert found(8, None) == 8


def test_listing_runs_and_validation_leaves_no_folder_open(tmp_path, monkeypatch):
    run_registry.remember(tmp_path / "runs" / "a", None)
    run = RunFolder(tmp_path / "runs" / "a")
    (run.path / "validation" / "step_000002").mkdir(parents=True)
    (run.path / "config.json").write_text("{}")
    closed = []

    class Listing:
        def __init__(self, path):
            self.path, self.entries = path, scandir(path)

        def __enter__(self):
            return self.entries

        def __exit__(self, *error):
            closed.append(self.path)
            self.entries.close()

    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", Listing)
    assert [known.folder for known in run_registry.known_runs()] == [str(run.path)]
    assert runs_of(tmp_path) == [run.path]
    assert run.validation_steps() == [2]
    assert closed == [run_registry.registry_folder(), tmp_path / "runs", run.path / "validation"]


def test_a_folder_without_a_project_is_refused(tmp_path):
    with pytest.raises(DiagnosticError, match=r"train\.py"):
        trainer.start(RunFolder(tmp_path / "runs" / "a"), {})


def test_runs_are_found_again_and_forgotten(tmp_path):
    run_registry.remember(tmp_path / "runs" / "a", tmp_path / "net.xml")
    run_registry.remember(tmp_path / "runs" / "b", None)
    assert [Path(known.folder).name for known in run_registry.known_runs()] == ["a", "b"]
    (run_registry.registry_folder() / "broken.json").write_text("{")
    run_registry.forget(tmp_path / "runs" / "a")
    assert [(known.folder, known.document) for known in run_registry.known_runs()] == [
        (str(tmp_path / "runs" / "b"), "")
    ]


def test_only_settings_that_differ_are_listed():
    found = settings_differences([{"lr": 1, "batch": 8}, {"lr": 2, "batch": 8, "amp": True}])
    assert found == {"lr": [1, 2], "amp": [None, True]}


def test_health_is_read_as_it_grows(tmp_path):
    path = tmp_path / "health.jsonl"
    file = HealthFile(path)
    assert not file.read()
    problem = {"layer": "conv", "kind": "dead", "since": 10}
    write_lines(
        path, {"step": 10, "layers": {"conv": {"dead": 0.5, "gradient": None}}, "problems": [problem]}, "torn {"
    )
    write_lines(path, {"step": 20, "layers": {}, "stopped_by": problem})
    assert file.read()
    assert [health.step for health in file.measured] == [10, 20]
    assert str(health_at(file.measured, 15).problems[0]) == "conv: dead units since step 10"
    assert health_at(file.measured, 5) is None
    assert health_at(file.measured).stopped_by == file.measured[0].problems[0]
    write_lines(path, {"step": 20, "layers": {}})  # of a resumed run
    file.read()
    assert [health.step for health in file.measured] == [10, 20]
    assert health_at(file.measured).stopped_by is None
    assert not file.read()
    path.unlink()
    assert file.read()
    assert file.measured == ()
    assert not file.read()  # it is still missing
    write_lines(path, {"step": 30}, {"step": 40})
    assert file.read()
    other = tmp_path / "other"
    write_lines(other, {"step": 50})
    other.replace(path)  # another file, whose steps are later
    assert file.read()
    assert [health.step for health in file.measured] == [50]


def test_the_settings_of_a_run_are_options_again():
    settings = {
        "steps": 20,
        "epochs": 100,
        "data": "/photos",
        "validation": "",
        "workers": -1,
        "amp": False,
        "lr": 0.001,
        "stop_on": "",
    }
    found = trainer.options_of(settings)
    assert found == {"steps": "20", "data": "/photos", "amp": False, "lr": "0.001", "stop_on": ""}
    assert trainer.parse_options(trainer.arguments(found)) == found
    assert "epochs" in trainer.options_of({**settings, "steps": 0})
    with pytest.raises(DiagnosticError, match="strange"):
        trainer.parse_options(["--lr", "1", "strange"])
