"""The state of a run from its files: who trains it, what it says, and what can be done with it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from designer.files.array_files import npy_bytes
from designer.graph.diagnostics import DiagnosticError
from designer.training import run_folder, trainer
from designer.training.health import Health, Problem
from designer.training.metrics import Curves
from designer.training.run_folder import Notes, RunFolder, new_name, runs_of
from designer.training.trail import Trail, float_tensors, write_frame
from designer.training.watched_run import RunSnapshot, RunState, WatchedRun

GONE = 1 << 22  # above every process id


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "runs" / "a")
    folder.path.mkdir(parents=True)
    return folder


def write(run: RunFolder, name: str, value: object) -> None:
    path = run.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def shot(run: RunFolder, **paths: str) -> RunSnapshot:
    watched = WatchedRun(run, {"width.a": "8"}, paths)
    watched.read()
    return watched.snapshot


def status(state: str, pid: int = GONE, step: int = 5, message: str = "said") -> dict[str, object]:
    return {"state": state, "pid": pid, "step": step, "total_steps": 90, "message": message}


@pytest.mark.parametrize(
    ("written", "state", "message"),
    [
        ("running", RunState.ENDED, "The process ended unexpectedly."),
        ("paused", RunState.ENDED, "The process ended unexpectedly."),
        ("stopped", RunState.STOPPED, "said"),
        ("finished", RunState.FINISHED, "said"),
        ("failed", RunState.FAILED, "said"),
    ],
)
def test_the_state_of_a_run_whose_process_is_gone(run: RunFolder, written: str, state: RunState, message: str) -> None:
    write(run, "status.json", status(written))
    found = shot(run)
    assert (found.state, found.step, found.total_steps) == (state, 5, 90)
    assert found.message.startswith(message)
    assert not found.state.trains


def test_a_run_that_never_reported_failed_with_its_last_output(run: RunFolder) -> None:
    assert (shot(run).state, shot(run).message) == (RunState.FAILED, "The process ended before it began to train.")
    run.log.write_text("Traceback\nImportError: no torch\n")
    assert (shot(run).state, shot(run).message) == (RunState.FAILED, "ImportError: no torch")
    write(run, "status.json", status("failed", message=""))
    assert shot(run).message == "ImportError: no torch"


@pytest.mark.parametrize("written", ["running", "paused"])
def test_the_status_of_a_living_process_counts_only_if_it_wrote_it(run: RunFolder, written: str) -> None:
    run.record_process(os.getpid())
    assert shot(run).state is RunState.STARTING
    write(run, "status.json", status("finished", GONE, 80))
    write(run, "metrics.jsonl", '{"schema": 1, "total_steps": 50}\n{"step": 7}\n')
    found = shot(run)
    assert (found.state, found.step) == (RunState.STARTING, 7)
    write(run, "status.json", status(written, os.getpid(), 3))
    found = shot(run)
    assert (found.state, found.step, found.total_steps) == (RunState(written), 7, 90)
    assert found.state.trains
    write(run, "status.json", {"state": written, "pid": os.getpid(), "step": 9})
    assert (shot(run).step, shot(run).total_steps) == (9, 50)


def test_a_rule_that_stopped_a_run_is_its_message(run: RunFolder) -> None:
    write(run, "status.json", status("stopped"))
    write(run, "health.jsonl", '{"step": 1, "layers": {}}\n')
    assert shot(run).message == "said"
    problem = {"layer": "conv", "kind": "dead", "since": 3}
    with run.health.open("a") as stream:
        stream.write(json.dumps({"step": 2, "layers": {}, "stopped_by": problem}) + "\n")
    assert shot(run).message == "Stopped by a rule: conv: dead units since step 3"
    assert shot(run).stopped_by == Problem("conv", "dead", 3)
    write(run, "status.json", status("finished"))
    assert shot(run).message == "said"


def test_a_run_elsewhere_shows_its_host_its_paths_and_the_connection(run: RunFolder) -> None:
    write(run, "remote.json", {"host": "gpu", "python": "py", "run": "x", "paths": {"data": "/photos"}})
    found = shot(run)
    assert (found.state, found.host) == (RunState.ENDED, "gpu")
    assert found.can_follow
    assert not found.can_resume
    assert "may train on gpu" in found.message
    assert f"layerwright follow {run.path}" in found.message
    assert found.settings == {}, "no configuration was copied yet"
    write(run, "config.json", {"settings": {"data": "../there", "inputs": "../in", "lr": 0.1}, "task": "x"})
    write(run, "connection.txt", "no route")
    found = shot(run, inputs="/mine", data="/other")
    assert found.settings == {"data": "/photos", "inputs": "/mine", "lr": 0.1}
    assert found.compared == {**found.settings, "width.a": "8"}
    assert (found.message, found.is_unreachable) == ("no route", True)
    (run.path / "remote.json").unlink()
    found = shot(run)
    assert (found.is_unreachable, found.host, found.settings["data"]) == (False, "", "../there")


def test_what_else_the_folder_has(run: RunFolder) -> None:
    write(run, "status.json", status("finished", step=1))
    write(run, "metrics.jsonl", '{"step": 7}\n{"step": 312}\n')
    write(run, "notes.json", {"title": "My run", "text": "better"})
    for name in ("step_000300", "step_000020", "step_x", "inputs", "other_5"):
        (run.path / "validation" / name).mkdir(parents=True)
    for name in ("b.png", "a.JPG", "c.jpeg", "d.txt"):
        (run.path / "validation" / "step_000020" / name).touch()
    write(
        run, "trail/index.jsonl", '{"step": 9, "file": "b", "kind": "key"}\n{"step": 2, "file": "a", "kind": "key"}\n'
    )
    found = shot(run)
    assert (found.step, found.title, found.notes) == (312, "My run", Notes("My run", "better"))
    assert found.validations == (20, 300)
    assert found.frames == (2, 9)
    assert run.validation_images(20) == ["a.JPG", "b.png", "c.jpeg"]
    assert run.validation_images(300) == run.validation_images(7) == []
    assert run.validation_image(20, "b.png").is_file()
    pair = [path.relative_to(run.path).as_posix() for path in run.validation_pair("b.png")]
    assert pair == ["validation/inputs/b.png", "validation/targets/b.png"]
    write(run, "notes.json", {"title": ""})
    assert shot(run).title == "a"


def test_validation_images_after_the_last_metrics_are_those_of_an_interrupted_attempt(run: RunFolder) -> None:
    for step in (20, 40):
        (run.path / "validation" / f"step_{step:06}").mkdir(parents=True)
    assert shot(run).validations == (20, 40), "no metrics are known"
    for lines, shown in (("", (20,)), ('{"step": 39}\n', (20,)), ('{"step": 39}\n{"step": 40}\n', (20, 40))):
        write(run, "metrics.jsonl", '{"step": 20}\n' + lines)
        assert shot(run).validations == shown


def test_whether_a_reading_is_another_one(run: RunFolder) -> None:
    watched = WatchedRun(run)
    write(run, "status.json", status("finished"))
    assert watched.read()
    assert watched.snapshot.settings == {}
    write(run, "metrics.jsonl", '{"step": 7}\n')
    assert watched.read()
    run.metrics.unlink()
    assert watched.read()
    assert len(watched.snapshot.curves.steps) == 0
    run.delete()
    assert watched.read()
    assert (watched.snapshot.state, watched.snapshot.message) == (RunState.MISSING, "the folder was deleted")
    assert not watched.read()


def test_the_time_that_is_left(run: RunFolder) -> None:
    curves = Curves(np.array([10, 20]), {"elapsed": np.array([5.0, 10.0])})
    training = RunSnapshot(run, RunState.RUNNING, 20, 100, curves=curves)
    assert training.seconds_left == 40
    for changed in (
        RunSnapshot(run, RunState.PAUSED, 20, 100, curves=curves),
        RunSnapshot(run, RunState.RUNNING, 20, 100),
        RunSnapshot(run, RunState.RUNNING, 20, 100, curves=curves, is_unreachable=True),
    ):
        assert changed.seconds_left is None
    assert RunSnapshot(run, RunState.RUNNING, 120, 100, curves=curves).seconds_left == 0
    measured = (Health(1, stopped_by=Problem("a", "dead", 1)), Health(2))
    assert RunSnapshot(run, health=measured).stopped_by is None


def test_which_runs_can_be_resumed(run: RunFolder) -> None:
    states = (RunState.STARTING, RunState.RUNNING, RunState.PAUSED, RunState.STOPPED, RunState.FAILED, RunState.ENDED)
    assert not any(RunSnapshot(run, state).can_resume for state in states)
    write(run, "checkpoints/last.pt", "x")
    assert [RunSnapshot(run, state).can_resume for state in states] == [False, False, False, True, True, True]
    assert [RunSnapshot(run, state, host="gpu").can_follow for state in states] == [False] * 5 + [True]
    assert not RunSnapshot(run, RunState.ENDED, host="gpu").can_resume
    assert run.weights is None
    (run.path / "checkpoints" / "best").mkdir()
    assert run.weights == run.path / "checkpoints" / "best"


def test_runs_of_a_project_are_folders_with_a_file_of_a_run(tmp_path: Path) -> None:
    assert runs_of(tmp_path) == []
    for name in ("b/process.json", "a/config.json", "c/status.json", "d/other.json"):
        (tmp_path / "runs" / name).parent.mkdir(parents=True)
        (tmp_path / "runs" / name).write_text("{}")
    (tmp_path / "runs" / "file").touch()
    assert [path.name for path in runs_of(tmp_path)] == ["a", "b", "c"]
    assert RunFolder(tmp_path / "runs" / "a").project == tmp_path


def test_a_new_run_is_named_after_the_time_and_has_a_free_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folder.time, "strftime", lambda form: "now")
    names = []
    for _ in range(3):
        names.append(new_name(tmp_path))
        (tmp_path / "runs" / names[-1]).mkdir(parents=True)
    assert names == ["now", "now_2", "now_3"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"settings": []}', '{"settings": 5}', "\x00"])
def test_broken_files_count_as_absent(run: RunFolder, text: str) -> None:
    for name in ("config.json", "status.json", "notes.json", "remote.json", "process.json"):
        write(run, name, text)
    assert (run.settings(), run.status(), run.remote(), run.process()) == ({}, None, None, 0)
    assert run.notes() == Notes()
    write(run, "../../project.json", '{"weights": {"a.b": "a_b"}, "other": 1}')
    assert run.weight_names() == {"a.b": "a_b"}
    (run.project / "project.json").unlink()
    assert run.weight_names() == {}


def test_the_end_of_the_output(run: RunFolder) -> None:
    assert trainer.last_output(run) == ""
    run.log.write_text("".join(f"line {number}\n" for number in range(5000)))
    assert trainer.last_output(run, 2) == "line 4998\nline 4999"
    assert trainer.last_output(run).splitlines() == [f"line {number}" for number in range(4980, 5000)]
    run.log.write_bytes(b"short \xff")
    assert trainer.last_output(run) == "short \ufffd"


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("import sys; open(sys.argv[-1], 'w').write(' '.join(sys.argv[1:-1]))", ""),
        ("import sys; print('one', file=sys.stderr); sys.exit('error: no photos')", "samples: no photos"),
        ("raise SystemExit(0)", ""),
    ],
)
def test_a_project_writes_a_page_of_samples(tmp_path: Path, script: str, problem: str) -> None:
    (tmp_path / "samples.py").write_text(script)
    page = tmp_path / "page.txt"
    if problem:
        with pytest.raises(DiagnosticError, match=problem) as caught:
            trainer.write_samples(tmp_path, {}, page)
        assert caught.value.diagnostics[0].file == str(tmp_path)
        return
    trainer.write_samples(tmp_path, {"batch_size": "4", "amp": False}, page)
    if page.exists():
        assert page.read_text() == "--batch-size 4 --no-amp --output"


def test_options_as_a_command_line_and_back() -> None:
    options = {"batch_size": "8", "amp": False, "compile": True, "lr": "-1"}
    words = trainer.arguments(options)
    assert words == ["--batch-size", "8", "--no-amp", "--compile", "--lr", "-1"]
    assert trainer.parse_options(words) == options
    assert trainer.parse_options(["--lr=1=2"]) == {"lr": "1=2"}
    for words in (["8"], ["--lr", "1", "2"], ["--lr=1", "2"], ["--no-amp=1"], ["--no-amp", "1"], ["--", "x"], ["-x"]):
        with pytest.raises(DiagnosticError, match=f"'{words[-1] if words[-1] != 'x' else '--'}' is not an option"):
            trainer.parse_options(words)


def test_the_folder_of_a_project(tmp_path: Path) -> None:
    assert trainer.project_folder(tmp_path / "net.xml", "other") == tmp_path / "net_pytorch"
    found = trainer.project_folder(None, "other")
    assert found.parts[-3:] == ("layerwright", "projects", "other")
    for name, folder in (("../a/b", "_a_b"), ("Netz 2 (ä)", "Netz 2 (ä)"), ("..", "network"), ("x" * 300, "x" * 60)):
        assert trainer.project_folder(None, name) == found.with_name(folder)


def frames(folder: Path, **files: dict[str, np.ndarray]) -> None:
    for name, arrays in files.items():
        with ZipFile(folder / name, "w") as archive:
            for key, array in arrays.items():
                content = npy_bytes(array) if array.dtype == np.float32 else _npy(array)
                archive.writestr(f"{key}.npy", content)


def _npy(array: np.ndarray) -> bytes:
    from io import BytesIO

    stream = BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_a_frame_whose_line_is_not_complete_waits_for_its_end(tmp_path: Path) -> None:
    line = '{"step": %d, "file": "%d.npz", "kind": "key"}'
    (tmp_path / "index.jsonl").write_text(f"{line % (10, 10)}\n{line % (20, 20)}")
    trail = Trail(tmp_path)
    assert trail.read()
    assert [frame.step for frame in trail.frames] == [10]
    with (tmp_path / "index.jsonl").open("a") as stream:
        stream.write("\n")
    assert trail.read()
    assert [frame.step for frame in trail.frames] == [10, 20]
    assert not trail.read()


def test_the_weights_of_a_frame(tmp_path: Path) -> None:
    whole = np.arange(6, dtype=np.float32).reshape(2, 3)
    change = np.array([[1, -2, 3], [0, 0, 7]], np.int8)
    counter = np.array(5, np.int64)
    frames(
        tmp_path,
        first={"w": whole, "n": counter},
        second={"w": change, "w//scale": np.array(0.5, np.float32), "n": counter + 1},
        other={"w": whole[:1], "w//scale": np.array(0.5, np.float32)},
    )
    lines = [
        {"step": 4, "file": "second", "kind": "difference", "key": 2},
        {"step": 2, "file": "first", "kind": "key"},
        {"step": 6, "file": "other", "kind": "difference", "key": 2},
        {"step": 8, "file": "second", "kind": "difference", "key": 4},
        {"step": 9, "file": "../x", "kind": "key"},
    ]
    (tmp_path / "index.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"step": 10')
    trail = Trail(tmp_path)
    assert trail.at(3) is None
    assert trail.read()
    assert not trail.read()
    assert [frame.step for frame in trail.frames] == [2, 4, 6, 8]
    assert [trail.at(step).step for step in (0, 2, 3, 4, 99)] == [2, 2, 2, 4, 8]  # type: ignore[union-attr]
    weights = trail.weights(trail.frames[1])
    assert weights.keys() == {"w", "n"}
    np.testing.assert_array_equal(weights["w"], whole + np.float32(0.5) * change)
    assert (weights["n"], weights["w"].dtype) == (6, np.float32)
    assert float_tensors(weights).keys() == {"w"}
    with pytest.raises(DiagnosticError, match="it does not fit its key frame"):
        trail.weights(trail.frames[2])
    with pytest.raises(DiagnosticError, match="its key frame is missing"):
        trail.weights(trail.frames[3])
    write_frame(tmp_path, 5, tmp_path / "made", {"w": "conv_kernel"})
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["conv_kernel.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / "made" / "conv_kernel.npy"), weights["w"])
    frames(tmp_path, first={"w": whole * 2, "n": counter})
    os.utime(tmp_path / "first", (1, 1))
    np.testing.assert_array_equal(trail.weights(trail.frames[0])["w"], whole * 2)
    (tmp_path / "index.jsonl").unlink()
    assert trail.read()
    assert trail.frames == ()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_a_process_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="the process cannot be started: No such file") as caught:
        trainer.spawn([str(tmp_path / "none")], tmp_path, tmp_path / "log")
    assert caught.value.diagnostics[0].file == str(tmp_path)
