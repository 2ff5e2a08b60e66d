"""The files of a run, and the list of runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from refusals import refusal

from designer.training import mirror, process_mark, run_folder, run_registry, trainer
from designer.training.run_folder import Notes, RemoteRun, RunFolder, Status


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
