"""What a training run writes and prints: its folder, states, commands, messages, and nothing from further processes."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from project_scripts import MODEL, scripts

torch = pytest.importorskip("torch")


@pytest.fixture
def module(tmp_path):
    with scripts(tmp_path) as get:
        yield get("records")


@pytest.fixture
def made(module, tmp_path, capsys):
    """Records of a run that has begun, whose events are printed as JSON."""
    config = module.Config(batch=4, tensorboard=False, seed=3)
    records = module.Records(as_json=True)
    records.folder, records.results = tmp_path / "run", (tmp_path / "run",)
    records.begin(config, 0, 10, 5, {"parameters": 12})
    return records


def status(records) -> dict:
    return json.loads((records.folder / "status.json").read_text())


def events(capsys) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def write(records, command: str, number: int = [0]) -> None:
    """Write a command; each one later than the one before."""
    path = records.folder / "control"
    path.write_text(command)
    number[0] += 1
    os.utime(path, ns=(number[0], number[0]))


def named(count: int) -> list[str]:
    return [f"{number}.png" for number in range(count)]


# --- the folder ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("present", "number"), [([], "001"), (["001", "002"], "003"), (["007"], "008"), (["002", "9"], "010"), (["1000"], "1001"), (["mine", "12a"], "001")]
)  # fmt: skip
def test_a_run_has_the_number_after_the_largest(module, tmp_path, present, number):
    for name in present:
        (tmp_path / "runs" / name).mkdir(parents=True)
    records = module.Records(as_json=True)
    records.open(module.Command({}, "", "", resume=False, json_progress=True))
    assert records.folder == tmp_path / "runs" / number
    assert records.results == (records.folder, tmp_path)


@pytest.mark.parametrize("option", ["run", "output"])
def test_a_run_in_a_folder_of_its_own_leaves_the_project_alone(module, tmp_path, option):
    records = module.Records(as_json=True)
    chosen = {"run": "", "output": "", option: str(tmp_path / "runs" / "mine")}
    records.open(module.Command({}, **chosen, resume=False, json_progress=True))
    assert records.folder == tmp_path / "runs" / "mine"
    assert records.results[0] == records.folder
    assert (tmp_path in records.results) is (option == "output")


def test_the_latest_checkpoint_is_resumed(module, tmp_path):
    command = module.Command({}, "", "", resume=True, json_progress=True)
    with pytest.raises(module.StorageError, match=r"there is no checkpoint in .*; start without --resume"):
        module.open_folder(command)
    for name, when in (("001", 50), ("002", 90), ("003", 70)):
        path = tmp_path / "runs" / name / "checkpoints" / "last.pt"
        path.parent.mkdir(parents=True)
        path.touch()
        os.utime(path, (when, when))
    (tmp_path / "runs" / "004").mkdir()
    assert module.open_folder(command) == tmp_path / "runs" / "002"
    for option in ({"run": "x", "output": ""}, {"run": "", "output": "x"}):
        assert module.open_folder(module.Command({}, **option, resume=True, json_progress=True)) == Path("x")


@pytest.mark.parametrize("present", ["metrics.jsonl", "checkpoints"])
@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_run_in_the_way_is_refused_by_the_first_process(module, tmp_path, monkeypatch, present, rank):
    (tmp_path / "mine" / present).mkdir(parents=True)
    monkeypatch.setenv("RANK", rank)
    command = module.Command({}, str(tmp_path / "mine"), "", resume=False, json_progress=True)
    if rank == "0":
        with pytest.raises(module.StorageError, match="contains a run; use --resume"):
            module.open_folder(command)
    else:
        assert module.open_folder(command) == tmp_path / "mine"
        replaced = module.Command({}, "", str(tmp_path / "mine"), resume=False, json_progress=True)
        assert module.open_folder(replaced) == tmp_path / "mine"
    assert (tmp_path / "mine" / present).exists()


def test_what_a_run_was_made_with(made, capsys):
    about = json.loads((made.folder / "config.json").read_text())
    assert (about["task"], about["seed"], about["parameters"], about["settings"]["batch"]) == ("denoising", 3, 12, 4)
    blob = hashlib.sha1(f"blob {len(MODEL)}\0{MODEL}".encode()).hexdigest()
    assert about["versions"]["model.py"] == blob
    assert about["versions"]["torch"] == torch.__version__
    (event,) = events(capsys)
    assert (event["event"], event["step"], event["steps"], event["parameters"]) == ("start", 0, 10, 12)
    first = json.loads((made.folder / "metrics.jsonl").read_text())
    assert first == {"schema": 1, "total_steps": 10, "task": "denoising", "on_training": False}


# --- commands and states ---------------------------------------------------------------------------------------------


def test_a_command_is_obeyed_once(made):
    assert (made.wait([]), made.stopped) == (0.0, False)
    write(made, "stop\n")
    assert (made.wait([]), made.stopped) == (0.0, True)
    made.stopped = False
    assert (made.wait([]), made.stopped) == (0.0, False)  # still there
    write(made, "anything")
    assert (made.wait([]), made.stopped) == (0.0, False)
    write(made, "stop")
    assert made._command() == "stop"
    (made.folder / "control").write_bytes(b"\xff\xfe")
    assert made._command() == ""


@pytest.mark.parametrize(("command", "stopped"), [("resume", False), ("stop", True)])
def test_a_pause_lasts_until_the_next_command(made, monkeypatch, module, command, stopped):
    seen = []

    def sleep(seconds):
        seen.append(status(made))
        write(made, command if len(seen) == 3 else "pause")

    monkeypatch.setattr(
        module, "time", SimpleNamespace(sleep=sleep, monotonic=iter(range(5, 500, 5)).__next__, time=lambda: 1.0)
    )
    write(made, "pause")
    paused = made.wait([])
    assert paused > 0
    assert [one["state"] for one in seen] == ["paused"] * 3
    assert (status(made)["state"], status(made)["message"], made.stopped) == ("running", "resumed", stopped)


def test_a_signal_ends_a_pause(made, monkeypatch, module):
    signals = []
    monkeypatch.setattr(module.time, "sleep", lambda _: signals.append(15))
    write(made, "pause")
    made.wait(signals)
    assert (signals, made.stopped) == ([15], False)


def test_the_state_is_written_at_most_once_a_second_while_running(made, monkeypatch, module):
    clock = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0], time=lambda: clock[0]))
    monkeypatch.setattr(made, "_stated", 0.0)
    written = []
    for now, state in (
        (100.0, "running"),
        (100.5, "running"),
        (100.9, "paused"),
        (101.5, "running"),
        (102.0, "running"),
        (102.1, "finished"),
    ):
        clock[0] = now
        made._state(state)
        written.append((status(made)["time"], status(made)["state"]))
    assert written == [
        (100.0, "running"), (100.0, "running"), (100.9, "paused"), (100.9, "paused"), (102.0, "running"), (102.1, "finished"),
    ]  # fmt: skip
    assert (status(made)["pid"], status(made)["total_steps"]) == (os.getpid(), 10)


def test_reports_and_ends(made, capsys):
    made.report(2, [{"l1": 0.5, "tv": 0.25}, {"l1": 0.25, "tv": 0.25}], 4.0, 9.0, [0.1, 0.2], {})
    made.end("finished", "end", "done")
    _, step, end = events(capsys)
    assert step == {
        "event": "step", "step": 2, "steps": 10, "loss": 0.5, "losses": {"l1": 0.25, "tv": 0.25}, "lr": 0.2,
        "seconds": 9.0, "steps_per_second": 0.5,
    }  # fmt: skip
    weights = str(made.folder / "weights")
    assert end == {"event": "end", "step": 2, "steps": 10, "message": "done", "weights": weights}
    assert (status(made)["state"], status(made)["message"], status(made)["step"]) == ("finished", "done", 2)
    lines = [json.loads(line) for line in (made.folder / "metrics.jsonl").read_text().splitlines()[1:]]
    assert [line["throughput"] for line in lines] == [2.0, 2.0]  # samples per second
    made.fail("broken")
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"event": "error", "message": "broken"}
    assert captured.err == "error: broken\n"
    assert (status(made)["state"], status(made)["message"]) == ("failed", "broken")


def test_memory_is_in_bytes(module):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert module.memory() == pytest.approx(peak * (1 if os.uname().sysname == "Darwin" else 1024), rel=0.2)
    assert module.memory() > 50 << 20


# --- messages --------------------------------------------------------------------------------------------------------


def test_files_that_are_skipped_are_reported_when_there_are_more(made, capsys):
    events(capsys)
    for count in (0, 2, 2, 1, 5, 6, 6):
        made.note_skipped(named(count))
    found = events(capsys)
    assert [event["skipped"] for event in found] == [2, 5, 6]
    assert found[0]["message"] == "skipped 2 that cannot be read: 0.png, 1.png"
    assert found[1]["message"].endswith("3.png, 4.png")
    assert found[2]["message"].endswith("3.png, 4.png, ...")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"losses": {"l1": 0.5}}, "l1 0.5000"),
        ({"psnr": 30.126, "losses": {"l1": 0.5, "tv": 0.25}}, "PSNR 30.13 dB, l1 0.5000, tv 0.2500"),
        ({"psnr": 30.0, "ssim": 0.9, "noisy_psnr": 20.5, "losses": {"l1": 0.5}}, "PSNR 30.00 dB (noisy 20.50 dB), ssim 0.9000, l1 0.5000"),
        ({"accuracy": 0.75, "losses": {"cross_entropy": 1.5}, "on_training": True}, "accuracy 0.7500, cross_entropy 1.5000"),
    ],
)  # fmt: skip
def test_a_validation_in_words(module, capsys, values, words):
    module.Records(as_json=False).event("validation", step=20, **values)
    assert capsys.readouterr().out == f"step 20: {words}\n"


def test_the_bar_shows_the_step_and_several_losses(module, capsys):
    records = module.Records(as_json=False)
    records.event("start", step=4, steps=10)
    records.event("step", step=7, steps=10, loss=0.5, losses={"l1": 0.5}, lr=1e-3)
    assert (records._bar.n, records._bar.total) == (7, 10)
    assert records._bar.postfix == "loss=0.5000, lr=1.0e-03"
    records.event("step", step=9, steps=10, loss=0.75, losses={"l1": 0.5, "tv": 0.25}, lr=1e-3)
    assert records._bar.n == 9
    assert records._bar.postfix == "l1=0.5000, loss=0.7500, lr=1.0e-03, tv=0.2500"
    records.event("note", message="said")
    assert "said\n" in capsys.readouterr().out
    records._bar.close()


def test_further_processes_write_and_print_nothing(module, tmp_path, capsys, monkeypatch):
    records = module.Records(as_json=True)
    records.folder, records.results, records.quiet = tmp_path / "run", (tmp_path / "run",), True
    records.begin(module.Config(batch=4, tensorboard=False), 0, 10, 5, {})
    records.report(2, [{"l1": 0.5}], 4.0, 9.0, [0.1], {})
    (tmp_path / "run").mkdir()
    write(records, "pause")
    done = threading.Event()
    thread = threading.Thread(target=lambda: (records.wait([]), done.set()), daemon=True)
    thread.start()
    assert done.wait(10)  # the first process obeys
    thread.join()
    records.note_skipped(named(3))
    records.write_plots()
    records.end("finished", "end", "done")
    records.fail("broken")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["control"]


def test_plots_are_drawn_where_results_are(made, monkeypatch, tmp_path):
    import plots

    drawn = []
    for name in ("curves", "before_after"):
        monkeypatch.setattr(plots, name, lambda run, path: drawn.append((run, path)))
    made.results = (made.folder, tmp_path)
    made.write_plots()
    assert drawn == [
        (made.folder, folder / name) for folder in made.results for name in ("curves.png", "before_after.png")
    ]
