"""What runs, sweeps and hosts report: titles, every refusal with its place and remedy, and the files behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar
from zipfile import ZipFile

import numpy as np
import pytest

from designer.files.array_files import npy_bytes
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.training import mirror, process_mark, run_folder, run_registry, ssh_host, trainer
from designer.training.growing_file import GrowingFile
from designer.training.health import KINDS, METRICS, Health, HealthFile, HealthHeat, Problem
from designer.training.metrics import Curves, MetricsFile, settings_differences
from designer.training.progress import (
    Done,
    Failed,
    Saved,
    Started,
    Stepped,
    Stopped,
    Validated,
    parse_line,
)
from designer.training.remote_agent import HERE_ONLY
from designer.training.run_folder import Notes, RemoteRun, RunFolder, Status
from designer.training.ssh_host import Host
from designer.training.sweep import Axis, Result, Sweep, Trial, best_value, rate, trials
from designer.training.trail import Frame, Trail, write_frame
from designer.training.watched_run import RunSnapshot, RunState
from designer.training.watched_sweep import SweepSnapshot


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "runs" / "a")
    folder.path.mkdir(parents=True)
    return folder


def refusal(action: Callable[[], object]) -> tuple[str, str, str | None, str]:
    with pytest.raises(DiagnosticError) as caught:
        action()
    [found] = caught.value.diagnostics
    assert found.severity.value == "error"
    return found.code, found.message, found.file, found.remedy


# --- titles -------------------------------------------------------------------------------------------------------


def test_problems_statistics_and_states_have_their_titles() -> None:
    assert {kind: Problem("conv", kind, 30).text for kind in (*KINDS, "new_kind")} == {
        "not_finite": "NaN or infinite values since step 30",
        "exploding": "exploding gradient or weights since step 30",
        "vanishing": "vanishing gradient since step 30",
        "dead": "dead units since step 30",
        "frozen": "weights do not change since step 30",
        "saturated": "saturated units since step 30",
        "new_kind": "new_kind since step 30",
    }
    assert {metric.id: metric.title for metric in METRICS.values()} == {
        "gradient": "Gradient norm",
        "update": "Update-to-weight ratio",
        "activation": "Mean absolute activation",
        "dead": "Share of dead units",
        "saturated": "Share of saturated values",
    }
    assert [(state.value, state.text, state.trains) for state in RunState] == [
        ("starting", "starting", True),
        ("running", "running", True),
        ("paused", "paused", True),
        ("stopped", "stopped", False),
        ("finished", "finished", False),
        ("failed", "failed", False),
        ("ended", "interrupted", False),
        ("missing", "deleted", False),
    ]


def test_a_sweep_is_named_after_its_settings(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path / "folder", tuple(trials([Axis("lr", ("1", "2")), Axis("width.a", ("8",))])))
    assert SweepSnapshot(sweep, RunState.RUNNING).title == "Sweep of lr, width.a"
    assert SweepSnapshot(replace(sweep, trials=()), RunState.RUNNING).title == "folder"


@pytest.mark.parametrize(
    ("values", "logarithmic", "ends", "shares"),
    [
        ({}, False, ("0", "0"), []),
        ({}, True, ("1.00", "1.00"), []),
        ({"a": 0.0}, True, ("1.00", "1.00"), [0.0]),
        ({"a": 5.0}, True, ("5.00", "5.00"), [1.0]),
        ({"a": 1.0, "b": 100.0, "c": 10.0, "d": 0.0}, True, ("1.00", "100"), [0.0, 1.0, 0.5, 0.0]),
        ({"a": 1e-9, "b": 1.0}, True, ("0.00000100", "1.00"), [0.0, 1.0]),
        ({"a": 2.0, "b": 8.0}, False, ("0", "8.00"), [0.25, 1.0]),
    ],
)
def test_scales_of_health(
    values: dict[str, float], logarithmic: bool, ends: tuple[str, str], shares: list[float]
) -> None:
    heat = HealthHeat("", values, {}, logarithmic)
    assert heat.ends == ends
    assert [heat.share(name) for name in values] == pytest.approx(shares)
    assert (heat.text(0.25), heat.signed) == ("0.250", False)


# --- files of a run -----------------------------------------------------------------------------------------------


def test_the_files_of_a_run_are_where_the_trainer_writes_them(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "project" / "runs" / "first")
    assert (run.name, run.project) == ("first", tmp_path / "project")
    names = {
        "metrics": run.metrics,
        "health": run.health,
        "trail": run.trail,
        "log": run.log,
        "image": run.validation_image(7, "a.png"),
        "late image": run.validation_image(1234567, "a.png"),
        "input": run.validation_pair("a.png")[0],
        "target": run.validation_pair("a.png")[1],
    }
    assert {name: path.relative_to(run.path).as_posix() for name, path in names.items()} == {
        "metrics": "metrics.jsonl",
        "health": "health.jsonl",
        "trail": "trail",
        "log": "output.log",
        "image": "validation/step_000007/a.png",
        "late image": "validation/step_1234567/a.png",
        "input": "validation/inputs/a.png",
        "target": "validation/targets/a.png",
    }
    assert (run.checkpoint, run.weights) == (None, None)
    run.path.joinpath("checkpoints", "best").mkdir(parents=True)
    run.path.joinpath("checkpoints", "last.pt").touch()
    assert run.checkpoint == run.path / "checkpoints" / "last.pt"
    assert run.weights == run.path / "checkpoints" / "best"


def test_small_files_of_a_run_are_written_and_read(run: RunFolder) -> None:
    run.write_notes(Notes("Title", "ä text"))
    assert json.loads((run.path / "notes.json").read_text("utf-8")) == {"title": "Title", "text": "ä text"}
    assert run.notes() == Notes("Title", "ä text")
    for command in ("pause", "resume", "stop"):
        run.send(command)
        assert (run.path / "control").read_bytes() == command.encode()
        assert mirror.command(run) == command
    run.record_process(os.getpid())
    record = json.loads((run.path / "process.json").read_text())
    assert record == {"pid": os.getpid(), "mark": process_mark.process_mark(os.getpid())}
    status = {"state": "paused", "pid": 3, "step": 4, "total_steps": 5, "message": "m", "time": 6.5, "new": 1}
    (run.path / "status.json").write_text(json.dumps(status))
    assert run.status() == Status("paused", 3, 4, 5, "m", 6.5)
    (run.path / "status.json").write_text('{"state": "unheard of"}')
    assert run.status() is None
    (run.path / "config.json").write_text('{"settings": {"lr": 1}, "task": "denoise"}')
    assert (run.config(), run.settings()) == ({"settings": {"lr": 1}, "task": "denoise"}, {"lr": 1})
    (run.path / "remote.json").write_text('{"host": "h", "python": "p", "run": "r"}')
    assert run.remote() == RemoteRun("h", "p", "r", {}, {})
    (run.path / "connection.txt").write_bytes(b"no route \xff" + b"x" * 2000)
    assert run.connection_problem() == "no route \ufffd" + "x" * 990


def test_files_of_more_than_the_limit_are_not_read(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"title": "t"}'
    (run.path / "notes.json").write_text(text)
    monkeypatch.setattr(run_folder, "MAX_BYTES", len(text))
    assert run.notes().title == "t"
    monkeypatch.setattr(run_folder, "MAX_BYTES", len(text) - 1)
    assert run.notes() == Notes()


def test_steps_of_validation_are_numbers_of_folders(run: RunFolder) -> None:
    for name in ("step_000010", "step_2", "step_x", "step_", "other_3", "step", "step_1_2"):
        (run.path / "validation" / name).mkdir(parents=True)
    assert run.validation_steps() == [2, 10]


def test_a_run_that_trains_is_neither_deleted_nor_started(run: RunFolder) -> None:
    run.record_process(os.getpid())
    path = str(run.path)
    assert refusal(run.delete) == ("run-trains", "the run a is training", path, "stop it first")
    (run.project / "train.py").touch()
    again = refusal(lambda: trainer.start(run, {}))
    assert again == ("run-trains", "the run a is training already", path, "stop it first, or start another run")
    assert run.path.is_dir()


def test_runs_that_cannot_start_say_what_to_do(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "runs" / "a")
    assert refusal(lambda: trainer.start(run, {})) == (
        "no-project",
        f"{tmp_path} has no train.py",
        str(tmp_path),
        "export the network as a PyTorch project to that folder",
    )
    assert not run.path.exists()
    assert refusal(lambda: trainer.spawn(["x"], tmp_path, tmp_path / "none" / "log")) == (
        "cannot-start",
        "the process cannot be started: No such file or directory",
        str(tmp_path / "none"),
        "check the permissions and the free space of the folder",
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (subprocess.TimeoutExpired("x", 1), f"it took longer than {trainer.SAMPLES_SECONDS} s"),
        (OSError(13, "Permission denied"), "Permission denied"),
        (OSError("strange"), "strange"),
    ],
)
def test_samples_that_are_not_made_name_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def raising(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(trainer.subprocess, "run", raising)
    assert refusal(lambda: trainer.write_samples(tmp_path, {}, tmp_path / "page.png")) == (
        "no-samples",
        f"the project cannot make training samples: {said}",
        str(tmp_path),
        "check the folders and settings of the training",
    )


def test_samples_are_asked_for_with_the_options_and_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def run(words: list[str], **options: object) -> subprocess.CompletedProcess[bytes]:
        calls.append((words, options["cwd"], options["timeout"]))
        return subprocess.CompletedProcess(words, 1, b"", b"one\nerror: no photos\n \n")

    monkeypatch.setattr(trainer.subprocess, "run", run)
    found = refusal(lambda: trainer.write_samples(tmp_path, {"data": "/x", "amp": False}, tmp_path / "page.png"))
    assert found[1] == "the project cannot make training samples: no photos"
    words = [sys.executable, "samples.py", "--data", "/x", "--no-amp", "--output", str(tmp_path / "page.png")]
    assert calls == [(words, tmp_path, 120)]


def test_a_started_run_gets_its_options_and_forgets_commands_and_other_machines(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run.project / "train.py").touch()
    calls = []
    monkeypatch.setattr(trainer, "spawn", lambda *words: calls.append(words) or os.getpid())
    for resume in (False, True):
        for name in ("control", "remote.json"):
            (run.path / name).write_text("{}")
        assert trainer.start(run, {"lr": "0.1", "amp": False}, resume=resume) == os.getpid()
        assert not (run.path / "control").exists()
        assert not (run.path / "remote.json").exists()
        assert run.process() == os.getpid()
        (run.path / "process.json").unlink()
    words = ["--lr", "0.1", "--no-amp", "--run", str(run.path)]
    start = [sys.executable, "train.py"]
    assert calls == [
        ([*start, *words], run.project, run.log),
        ([*start, "--resume", *words], run.project, run.log),
    ]


def test_output_is_appended_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    log.write_text("before\n")
    trainer.spawn([sys.executable, "-S", "-c", "import os; print(os.getcwd())"], tmp_path, log)
    trainer._children[-1].wait(30)
    assert log.read_text().splitlines() == ["before", str(tmp_path)]
    trainer.reap()
    assert all(child.returncode is None for child in trainer._children)


def test_options_have_one_form_on_the_command_line() -> None:
    remedy = "write options as on the command line: --ema 0.999 --compile"
    for words, text in (
        (["8"], "8"),
        (["--lr", "1", "2"], "2"),
        (["--no-amp=1"], "--no-amp=1"),
        (["--lr", "1", "x" * 80], "x" * 60),
    ):
        found = refusal(lambda words=words: trainer.parse_options(words))
        assert found == ("bad-options", f"'{text}' is not an option of train.py", None, remedy)
    parsed = trainer.parse_options(["--batch-size=", "--no-compile", "--amp", "--stop-on", "dead", "--no-data"])
    assert parsed == {"batch_size": "", "compile": False, "amp": True, "stop_on": "dead", "data": False}
    settings = {
        "steps": 0, "epochs": 3, "lr": 0.0, "seed": 0, "data": "", "stop_on": "", "clip": -1, "amp": True, "list": [1],
        "nothing": None, "compile": False, "name": "x",
    }  # fmt: skip
    assert trainer.options_of(settings) == {
        "epochs": "3",
        "lr": "0.0",
        "seed": "0",
        "stop_on": "",
        "amp": True,
        "compile": False,
        "name": "x",
    }
    assert trainer.options_of({"lr": 1}) == {"lr": "1"}
    assert trainer.options_of({"steps": 5, "epochs": 3}) == {"steps": "5"}


def test_paths_of_options_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("data", "inputs", "targets", "validation", "from_weights")
    found = trainer.with_absolute_paths({**dict.fromkeys(names, "x"), "lr": "x", "amp": True})
    assert found == {**dict.fromkeys(names, str(tmp_path / "x")), "lr": "x", "amp": True}
    assert trainer.with_absolute_paths({"data": "", "inputs": False}) == {"data": "", "inputs": False}


# --- files that grow ----------------------------------------------------------------------------------------------


def test_a_growing_file_gives_each_line_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\nth")
    file = GrowingFile(path)
    assert file.read() == (True, [b"one", b"two"])
    assert file.read() == (False, [])
    with path.open("ab") as stream:
        stream.write(b"ree\n\nfive\r\nsix")
    assert file.read() == (False, [b"three", b"", b"five"])
    path.write_bytes(b"new\n")
    assert file.read() == (True, [b"new"])
    other = tmp_path / "other"
    other.write_bytes(b"new\nmore\nlines\n")
    other.replace(path)
    assert file.read() == (True, [b"new", b"more", b"lines"])
    path.unlink()
    with pytest.raises(OSError, match="No such file"):
        file.read()


def test_measurements_of_a_resumed_run_replace_all_later_ones(tmp_path: Path) -> None:
    path = tmp_path / "health.jsonl"
    path.write_text("".join(f'{{"step": {step}}}\n' for step in (10, 20, 30)))
    file = HealthFile(path)
    assert file.read()
    with path.open("a") as stream:
        stream.write('{"step": 15}\n{"step": 25}\n')
    assert file.read()
    assert [health.step for health in file.measured] == [10, 15, 25]
    assert all(health == Health(health.step) for health in file.measured)


def test_each_number_of_a_line_is_a_curve(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    numbers = {
        "epoch": 1.0,
        "time": 2.0,
        "elapsed": 3.0,
        "loss": 4.0,
        "learning_rate": 5.0,
        "throughput": 6.0,
        "memory": 7.0,
    }
    line = {"step": 5, **numbers, "losses": {"l1": 8.0}, "validation": {"psnr": 9.0, "loss": None}, "new": 1}
    path.write_text(
        '{"schema": 1, "total_steps": 9, "task": "denoise", "on_training": true}\n' + json.dumps(line) + "\n"
    )
    file = MetricsFile(path)
    assert file.read()
    curves = file.curves
    assert {name: curves.last(name) for name in curves.values} == {
        **numbers,
        "losses.l1": 8.0,
        "validation.psnr": 9.0,
        "validation.loss": None,
    }
    assert curves.validated == ("validation.psnr", "validation.loss")
    assert (curves.total_steps, curves.task, curves.on_training, curves.skipped) == (9, "denoise", True, 0)
    with path.open("a") as stream:
        stream.write(
            '{"step": 6, "loss": -Infinity, "time": Infinity, "epoch": NaN, "losses": {"l1": NaN}}\n{"step": "7"}\n'
        )
    assert file.read()
    assert file.curves.steps.tolist() == [5, 6]
    assert [file.curves.points(name)[0].tolist() for name in ("loss", "time", "epoch", "losses.l1")] == [[5.0]] * 4
    assert (file.curves.skipped, file.curves.task, file.curves.on_training) == (1, "denoise", True)
    with path.open("a") as stream:
        stream.write('{"schema": 2, "total_steps": "x"}\n{"broken\n')
    assert file.read()
    assert (file.curves.total_steps, file.curves.skipped) == (9, 2)


def test_settings_in_which_any_run_differs_are_listed_in_their_order() -> None:
    first = {"lr": 1, "batch": 8, "same": 3}
    assert settings_differences([first, {**first, "lr": 2, "amp": True}, first]) == {
        "lr": [1, 2, 1],
        "amp": [None, True, None],
    }
    assert settings_differences([first]) == settings_differences([]) == {}


# --- events -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (
            {"event": "start", "step": 1, "steps": 2, "parameters": 3, "pictures": 4, "made_up": 5, "device": "cpu",
             "held_out": ["a"], "recipe": {"lr": 1}},
            Started(1, 2, 3, 4, 5, "cpu", ("a",), {"lr": 1}),
        ),
        ({"event": "start", "step": 1, "steps": 2, "parameters": 3, "pictures": 4, "made_up": 5, "device": ""},
         Started(1, 2, 3, 4, 5, "")),
        (
            {"event": "step", "step": 1, "steps": 9, "loss": 2, "lr": 3, "seconds": 4, "steps_per_second": 2, "losses": {"a": 1}},
            Stepped(1, 9, 2, 3, 4, 2, {"a": 1}),
        ),
        ({"event": "validation", "step": 1}, Validated(1)),
        (
            {"event": "validation", "step": 1, "psnr": 2, "noisy_psnr": 3, "on_training": True, "losses": {"a": 1}},
            Validated(1, 2, 3, True, {"a": 1}),
        ),
        ({"event": "checkpoint", "step": 1, "path": "p"}, Saved(1, "p")),
        ({"event": "stopped", "step": 1, "steps": 2, "message": "m"}, Stopped(1, 2, "m")),
        ({"event": "done", "step": 1, "steps": 2, "weights": "w", "message": "m"}, Done(1, 2, "w", "m")),
        ({"event": "error", "message": "m"}, Failed("m")),
    ],
)  # fmt: skip
def test_each_event_has_its_fields(line: dict[str, object], event: object) -> None:
    assert parse_line(json.dumps(line)) == event


# --- processes ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="the mark is another one there")
def test_a_process_is_marked_by_the_start_of_the_machine_and_its_own() -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    assert process_mark.process_mark(os.getpid()) == f"{boot}:{ticks}"
    assert process_mark.process_mark(0) is None
    assert process_mark.process_mark(-1) is None
    assert process_mark.process_mark(1 << 22) is None


def test_a_process_runs_a_script_of_exactly_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    class Process:
        words: ClassVar[list[str]] = ["/usr/bin/python", "-u", "/folder/my_train.py", "--lr", "1"]
        state = psutil.STATUS_SLEEPING

        def __init__(self, pid: int) -> None:
            if pid != 7:
                raise psutil.NoSuchProcess(pid)

        def cmdline(self) -> list[str]:
            return self.words

        def status(self) -> str:
            return self.state

    monkeypatch.setattr(psutil, "Process", Process)
    assert process_mark.runs_script(7, "my_train.py")
    assert not process_mark.runs_script(7, "train.py")
    assert not process_mark.runs_script(8, "my_train.py")
    monkeypatch.setattr(Process, "state", psutil.STATUS_ZOMBIE)
    assert not process_mark.runs_script(7, "my_train.py"), "it has ended"
    assert process_mark.process_mark(7) is None


def test_known_runs_are_sorted_by_folder_and_have_their_documents(tmp_path: Path) -> None:
    for name, document in (("b", "1.xml"), ("a", "2.xml"), ("c", "0.xml")):
        run_registry.remember(tmp_path / name, tmp_path / "documents" / document)
    run_registry.remember(tmp_path / "a", tmp_path / "documents" / "3.xml")
    assert [(known.folder, known.document) for known in run_registry.known_runs()] == [
        (str(tmp_path / name), str(tmp_path / "documents" / document))
        for name, document in (("a", "3.xml"), ("b", "1.xml"), ("c", "0.xml"))
    ]
    run_registry.forget(tmp_path / "b")
    run_registry.forget(tmp_path / "unknown")
    assert [Path(known.folder).name for known in run_registry.known_runs()] == ["a", "c"]


# --- trails -------------------------------------------------------------------------------------------------------


def test_damaged_trails_name_the_file_and_the_reason(tmp_path: Path) -> None:
    remedy = "choose another step"
    missing = refusal(lambda: write_frame(tmp_path, 1, tmp_path / "made", {}))
    reason = f"the weights in {tmp_path} cannot be read: the run has no trail of weights"
    assert missing == ("bad-frame", reason, str(tmp_path), remedy)
    lines = [
        {"step": 1, "file": "gone", "kind": "key"},
        {"step": 2, "file": "text", "kind": "key"},
        {"step": 3, "file": "good", "kind": "difference", "key": 9},
        {"step": 4, "file": "a/b", "kind": "key"},
        {"step": 5, "file": "a\\b", "kind": "key"},
        {"step": 6, "file": "good", "kind": "unknown"},
        {"step": 7, "file": "first", "kind": "key"},
        {"step": 7, "file": "good", "kind": "key"},
    ]
    (tmp_path / "index.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "text").write_text("no archive")
    fortran = np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3))
    with ZipFile(tmp_path / "good", "w") as archive:
        archive.writestr("w.npy", npy_bytes(np.ones((2, 1), np.float32)))
        with archive.open("f.npy", "w") as stream:
            np.lib.format.write_array(stream, fortran, (1, 0))
    trail = Trail(tmp_path)
    assert trail.read()
    assert [(frame.step, frame.file) for frame in trail.frames] == [(1, "gone"), (2, "text"), (3, "good"), (7, "good")]
    reasons = ("No such file or directory", "File is not a zip file", "its key frame is missing")
    for frame, reason in zip(trail.frames, reasons, strict=False):
        path = tmp_path / frame.file
        message = f"the weights in {path} cannot be read: {reason}"
        assert refusal(lambda frame=frame: trail.weights(frame)) == ("bad-frame", message, str(path), remedy)
    weights = trail.weights(trail.frames[3])
    assert {name: array.tolist() for name, array in weights.items()} == {
        "w": [[1.0], [1.0]],
        "f": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]],
    }
    with ZipFile(tmp_path / "newer", "w") as archive, archive.open("w.npy", "w") as stream:
        np.lib.format.write_array(stream, fortran, (2, 0))
    found = refusal(lambda: trail.weights(Frame(1, "newer", "key")))
    assert found[1].endswith("the version of the .npy format is not 1.0")


# --- sweeps -------------------------------------------------------------------------------------------------------

EXAMPLE = "for instance --grid noise=15,25 --grid width.conv_1=16,32, or with --random lr=1e-4..1e-2"


@pytest.mark.parametrize(
    ("action", "text", "reason"),
    [
        (lambda: Axis.parse("noise"), "noise", "it needs a name and different values"),
        (lambda: Axis.parse(f"lr={'1,' * 60}"), f"lr={'1,' * 60}"[:80], "it needs a name and different values"),
        (lambda: Axis.parse("lr=a..1"), "lr=a..1", "the ends of a range are numbers"),
        (lambda: Axis.parse("lr=2..1"), "lr=2..1", "a range goes from a positive number to a larger one"),
        (lambda: trials([]), "", "each setting is searched once"),
        (lambda: trials([Axis("a", ("1",)), Axis("a", ("2",))]), "a, a", "each setting is searched once"),
        (
            lambda: trials([Axis("b", ("1",)), Axis("a", (), 1, 2)]),
            "a",
            "a grid needs values; only a random search takes a range",
        ),
        (lambda: trials([Axis("a", ("1",)), Axis("b", (), 1, 2)], 10_001), "a, b", "it has more than 10000 trials"),
        (lambda: Trial(1, {"width.a": "x"}).graph(Graph()), "width.a=x", "widths are whole numbers"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_says_why_and_how(action: Callable[[], object], text: str, reason: str) -> None:
    assert refusal(action) == ("bad-sweep", f"'{text}' cannot be searched: {reason}", None, EXAMPLE)


def test_folders_of_sweeps_say_what_is_wrong_with_them(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    sweep = Sweep(tmp_path, (Trial(1, {"lr": "1"}),))
    path = str(tmp_path)
    assert refusal(lambda: sweep.open("digest")) == (
        "folder-not-empty",
        f"{path} has another sweep or other files",
        path,
        "choose an empty folder; the same command with the same network continues a sweep",
    )
    assert refusal(lambda: Sweep.read(tmp_path)) == (
        "no-sweep",
        f"{path} has no sweep",
        path,
        "choose the folder of a sweep, which has a file sweep.json",
    )
    graph = Graph([Layer("a", "identity")])
    assert refusal(lambda: Trial(1, {"width.a": "8"}).graph(graph)) == (
        "bad-sweep",
        "width.a: no layer with features has that name",
        None,
        "name a layer such as a convolution, of the network itself and not of a template",
    )


def test_random_trials_are_those_of_every_other_version() -> None:
    """A sweep is continued only if the same trials are drawn again."""
    ranges = [
        Axis("lr", (), 1e-4, 1e-2),
        Axis("batch", (), 1, 64),
        Axis("width.a", (), 4, 64),
        Axis("noise", ("1", "2")),
    ]
    assert [list(trial.values.values()) for trial in trials(ranges, 4, 3)] == [
        ["0.0002992", "10", "11", "2"],
        ["0.001784", "1", "4", "2"],
        ["0.0003301", "3", "63", "2"],
        ["0.001208", "10", "12", "1"],
    ]
    lists = [Axis("a", ("1", "2", "3")), Axis("b", ("4", "5"))]
    assert [trial.title for trial in trials(lists)] == [f"a {a}, b {b}" for a in "123" for b in "45"]
    assert [trial.title for trial in trials(lists, 3, 5)] == ["a 3, b 4", "a 2, b 4", "a 3, b 5"]
    assert [trial.number for trial in trials(lists, 99)] == [1, 2, 3, 4, 5, 6]


def curves(**columns: list[float]) -> Curves:
    count = max(map(len, columns.values()), default=0)
    return Curves(np.arange(count), {f"validation.{name}": np.array(values) for name, values in columns.items()})


@pytest.mark.parametrize(
    ("columns", "best"),
    [
        ({}, ("", None)),
        ({"loss": [3.0, 1.0, 2.0]}, ("loss", 1.0)),
        ({"loss": [1.0], "accuracy": [0.5, 0.75], "iou": [0.25, 0.125], "psnr": [20.0, 30.0, 25.0]}, ("psnr", 30.0)),
        ({"loss": [1.0], "accuracy": [0.5, 0.75], "iou": [0.25, 0.125]}, ("iou", 0.25)),
        ({"loss": [1.0], "accuracy": [0.5, 0.75]}, ("accuracy", 0.75)),
        ({"psnr": [np.nan, np.inf], "loss": [-np.inf, 2.0]}, ("loss", 2.0)),
    ],
)
def test_the_metric_that_decides_and_its_best_value(
    columns: dict[str, list[float]], best: tuple[str, float | None]
) -> None:
    assert best_value(curves(**columns)) == best
    assert rate(curves(**columns)) == (best[1] if best[0] != "loss" or best[1] is None else -best[1])


def test_results_are_ordered_by_value_and_then_by_number(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)

    def order(metric: str, *values: float | None) -> list[int]:
        results = [Result(Trial(n, {}), run, None, 0, metric, value) for n, value in enumerate(values)]
        return [result.trial.number for result in sorted(results, key=lambda result: result.order)]

    assert order("loss", 0.5, None, 0.25, 0.5, 0.0) == [4, 2, 0, 3, 1]
    assert order("psnr", 20.0, None, 30.0, 20.0, -5.0, 0.0) == [2, 0, 3, 5, 4, 1]
    row = Result(Trial(12, {"lr": "1"}), run, None).row()
    assert list(row.items()) == [
        ("trial", "trial_012"),
        ("lr", "1"),
        ("state", "waiting"),
        ("metric", ""),
        ("value", None),
        ("step", 0),
        ("message", ""),
        ("run", str(tmp_path)),
    ]


# --- other machines -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["", "/x", "../x", "a/../x", "a/..", "a\\b", "a\0b", *HERE_ONLY, ".."],
)
def test_names_outside_of_the_copy_and_of_local_files_are_refused(run: RunFolder, name: str) -> None:
    found = refusal(lambda: mirror.store(run, [(name, 0, b"x")], 1))
    assert found == (
        "bad-answer",
        f"the other machine returned a file called {name}",
        None,
        "check which machine that is",
    )
    assert list(run.path.iterdir()) == []


def test_a_shorter_end_of_a_file_replaces_the_old_one(run: RunFolder) -> None:
    mirror.store(run, [("a/b.log", 0, b"0123456789"), ("..c", 0, b"x")], 1)
    mirror.store(run, [("a/b.log", 4, b"xy")], 1)
    assert (run.path / "a" / "b.log").read_bytes() == b"0123xy"
    mirror.store(run, [("deep/status.json", 0, b'{"pid": 5}'), ("status.json", 0, b"[1]")], 9)
    assert json.loads((run.path / "deep" / "status.json").read_text()) == {"pid": 5}
    assert (run.path / "status.json").read_bytes() == b"[1]"


def test_a_host_is_called_with_these_options_and_its_refusals_are_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    answer: list[tuple[int, bytes, bytes]] = []

    def ssh(words: list[str], *, input: bytes, **_: object) -> subprocess.CompletedProcess[bytes]:
        calls.append([*words, input.decode()])
        return subprocess.CompletedProcess(words, *answer[-1])

    monkeypatch.setattr(ssh_host.subprocess, "run", ssh)
    host = Host("user@gpu", "my python")
    answer.append((0, b'{"a": 1}', b"a warning"))
    assert host.ask("check", [1]) == {"a": 1}
    options = ["BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"]
    words = [word for option in options for word in ("-o", option)]
    command = "'my python' ~/.layerwright/agent.py check ~/.layerwright"
    assert calls == [["ssh", *words, "--", "user@gpu", command, "[1]"]]
    fit = "install what is missing there, or name a Python that has it with --host-python"
    lost = "check the name in your SSH configuration, and that `ssh user@gpu` works without a password"
    cases = [
        ((255, b"", b"one\nno route\n"), "no-connection", "cannot be reached: no route", lost),
        ((-9, b"", b""), "no-connection", "cannot be reached: ", lost),
        ((127, b"", b"sh: not found"), "host-unfit", "cannot train: it does not have my python", fit),
        ((1, b"", b"one\nlast\n"), "host-unfit", "cannot train: last", fit),
        ((3, b"", b""), "host-unfit", "cannot train: exit status 3", fit),
        ((0, b"Welcome", b""), "host-unfit", "cannot train: its shell prints other text before the answer", fit),
    ]
    for given, code, said, remedy in cases:
        answer.append(given)
        assert refusal(lambda: host.ask("check")) == (code, f"the host user@gpu {said}", None, remedy)
    for found, said in (
        ({"python": [3, 10], "missing": []}, "my python is version 3.10; 3.11 is needed"),
        ({"python": [3, 11], "missing": ["torch", "PIL"]}, "my python lacks torch, PIL"),
    ):
        answer.append((0, json.dumps(found).encode(), b""))
        assert refusal(host.open)[1] == f"the host user@gpu cannot train: {said}"
    for version in ([3, 11], [3, 12], [4, 0]):
        answer.append((0, json.dumps({"python": version, "missing": []}).encode(), b""))
        host.open()

    def nowhere(*_: object, **__: object) -> None:
        raise OSError(2, "No such file or directory")

    monkeypatch.setattr(ssh_host.subprocess, "run", nowhere)
    reason = "the program ssh cannot be started: No such file or directory"
    assert refusal(lambda: host.ask("check")) == ("no-ssh", reason, None, "install OpenSSH")
    assert refusal(lambda: Host("a b" * 40)) == (
        "bad-host",
        f"'{('a b' * 40)[:80]}' is not the name of a host",
        None,
        "use a name from your SSH configuration, or user@address",
    )


def test_data_and_runs_of_other_machines_are_refused_with_their_place(run: RunFolder) -> None:
    missing = run.path / "none"
    assert refusal(lambda: ssh_host.start(Host("gpu"), run, {"from_weights": str(missing)}, print)) == (
        "no-data",
        f"{missing} does not exist",
        str(missing),
        "check --from-weights",
    )
    path = str(run.path)
    remote = (f"{path} is not a run on another machine", path, "give the folder that layerwright train --host printed")
    assert refusal(lambda: ssh_host.resume(run, {})) == ("not-remote", *remote)
    (run.path / "remote.json").write_text('{"host": "gpu", "python": "p", "run": "r"}')
    run.record_process(os.getppid())
    found = refusal(lambda: next(ssh_host.follow(run, print)))
    assert found == ("run-trains", "another process follows the run a", path, "end that process first")
    assert run.process() == os.getppid()


def test_a_snapshot_has_the_title_of_its_notes_and_the_settings_that_can_differ(run: RunFolder) -> None:
    shot = RunSnapshot(run, settings={"lr": 1, "width.a": 0}, changed={"width.a": "8"})
    assert shot.title == "a"
    assert replace(shot, notes=Notes("Mine")).title == "Mine"
    assert shot.compared == {"lr": 1, "width.a": "8"}
    assert replace(shot, health=(Health(1), Health(2, stopped_by=Problem("a", "dead", 1)))).stopped_by == Problem(
        "a", "dead", 1
    )
