"""How a training process is started, and its options."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import refusal

from designer.training import trainer
from designer.training.run_folder import RunFolder


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


def test_a_process_that_has_reported_its_end_is_waited_for(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    (run.project / "train.py").touch()
    run.record_process(os.getpid())
    for state, waits, starts in (("finished", 3, True), ("finished", 1000, False), ("running", 0, False)):
        (run.path / "status.json").write_text(f'{{"state": "{state}", "pid": {os.getpid()}}}')
        clock, naps = [0.0], []

        def sleep(seconds: float, clock: list[float] = clock, naps: list[float] = naps) -> None:
            clock[0] += seconds
            naps.append(seconds)

        monkeypatch.setattr(trainer.time, "sleep", sleep)
        monkeypatch.setattr(trainer.time, "monotonic", lambda clock=clock: clock[0])
        monkeypatch.setattr(
            RunFolder, "process", lambda _, naps=naps, waits=waits: os.getpid() if len(naps) < waits or not waits else 0
        )
        started: list[int] = []
        monkeypatch.setattr(trainer, "spawn", lambda *_, started=started: started.append(1) or os.getpid())
        if starts:
            assert trainer.start(run, {}) == os.getpid()
            assert naps == [0.05] * 3
        else:
            code, message, *_ = refusal(lambda: trainer.start(run, {}))
            assert (code, message) == ("run-trains", f"the run {run.name} is training already")
            assert clock[0] == pytest.approx(10.0, abs=0.11) if waits else not naps
        assert bool(started) == starts


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
