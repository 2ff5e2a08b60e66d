"""How `layerwright train` and `layerwright follow` start, remember and follow runs, which the test plays."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_kit import Run, layerwright

from app.cli import train
from designer.files.document import save_document
from designer.files.settings import Settings, save_settings, settings_path
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.training.run_folder import RunFolder
from designer.training.watched_run import RunState
from exporters.pytorch import Training

__all__ = ["layerwright"]


@pytest.fixture
def document(tmp_path: Path) -> Path:
    layers = [
        Layer("image", "input", params={"dims": "8x8x3"}),
        Layer("conv", "convolution", (320, 0), (Source("image"),), {"features": "3"}),
        Layer("result", "output", (640, 0), (Source("conv"),)),
    ]
    save_document(Graph(layers, name="small net"), tmp_path / "net.xml")
    return tmp_path / "net.xml"


class Started:
    """Everything that is done for a run, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, status: int = 0) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.status = status
        self.looks: Any = None
        log = self.log.append

        def host_start(host: Any, run: RunFolder, options: Any, say: Any) -> None:
            say("copying")
            log(("host", host.name, host.python, run.path, dict(options)))

        monkeypatch.setattr(
            "designer.training.trainer.start", lambda run, options: log(("here", run.path, dict(options)))
        )
        monkeypatch.setattr("designer.training.ssh_host.start", host_start)
        monkeypatch.setattr(
            "designer.training.ssh_host.Host", lambda name, python: SimpleNamespace(name=name, python=python)
        )
        monkeypatch.setattr("designer.training.ssh_host.follow", lambda run, say: ("follow", run.path, say))
        monkeypatch.setattr("designer.training.run_registry.remember", lambda run, file: log(("remember", run, file)))
        monkeypatch.setattr(
            "exporters.pytorch.export_project",
            lambda graph, registry, project, name, training: log(("export", len(graph), project, name, training)),
        )
        monkeypatch.setattr(train, "_follow", self.follow)

    def follow(self, folder: Path, looks: Any) -> int:
        self.log.append(("follow", folder))
        self.looks = looks
        return self.status


@pytest.mark.parametrize("output", ["", "project"])
@pytest.mark.parametrize("status", [0, 1, 130])
def test_a_run_here_is_started_remembered_and_followed(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, document: Path, output: str, status: int
) -> None:
    started = Started(monkeypatch, status)
    monkeypatch.chdir(document.parent)
    done = layerwright("train", "net.xml", "--data", "photos", "--steps", 7, *(("--output", output) if output else ()))
    project = document.parent / (output or "net_pytorch")
    (export, here, remember, follow) = started.log
    assert export == ("export", 3, project, "SmallNet", Training())
    assert here[0] == "here"
    run = here[1]
    assert run.parent == project / "runs"
    assert here[2] == {"data": str(document.parent / "photos"), "steps": "7"}
    assert (remember, follow) == (("remember", run, document), ("follow", run))
    assert started.looks is train._looks
    assert (done.code, done.out.replace("\n", ""), done.err) == (status, f"run {run}", "")


@pytest.mark.parametrize("detach", [True, False])
def test_a_run_on_a_host_is_followed_from_there(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, document: Path, detach: bool
) -> None:
    started = Started(monkeypatch, 1)
    done = layerwright("train", document, "--host", "big", *(["--detach"] if detach else []), "--lr", 0.5)
    assert [name for name, *_ in started.log] == ["export", "host", "remember", *([] if detach else ["follow"])]
    host = started.log[1]
    assert host[1:3] == ("big", "python3")
    assert host[4] == {"lr": "0.5"}
    assert (done.code, done.err) == (0 if detach else 1, "copying\n")
    if not detach:
        name, path, say = started.looks()
        assert (name, path) == ("follow", host[3])
        assert say is train._say


def test_a_run_is_followed_again(layerwright: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = Started(monkeypatch, 130)
    monkeypatch.chdir(tmp_path)
    done = layerwright("follow", "p/runs/a")
    assert (done.code, started.log) == (130, [("follow", tmp_path / "p" / "runs" / "a")])
    assert started.looks() == ("follow", tmp_path / "p" / "runs" / "a", train._say)


def test_words_that_cannot_be_read_write_nothing(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, document: Path
) -> None:
    started = Started(monkeypatch)
    assert layerwright("train", document, "stray").code == 1
    assert started.log == []


@pytest.mark.parametrize(("left", "said"), [(None, ""), (0.0, ", 0 s left"), (61.6, ", 62 s left")])
@pytest.mark.parametrize(
    ("values", "metrics"),
    [
        (
            {"loss": 0.123456, "validation.psnr": 31.5, "validation.ssim": None},
            ["loss 0.1235", "psnr 31.5"],
        ),
        ({"loss": 0.0, "validation.psnr": None, "validation.ssim": 0.0}, ["loss 0", "ssim 0"]),
        ({"loss": None, "validation.psnr": float("nan"), "validation.ssim": -1.0}, ["psnr nan", "ssim -1"]),
    ],
)
def test_a_step_is_printed_with_its_losses_and_the_time_that_is_left(
    capsys: pytest.CaptureFixture[str], left: float | None, said: str, values: dict[str, float], metrics: list[str]
) -> None:
    curves = SimpleNamespace(validated=("validation.psnr", "validation.ssim"), last=values.get)
    shot = SimpleNamespace(curves=curves, seconds_left=left, step=3, total_steps=40)
    train._print(SimpleNamespace(snapshot=shot))  # type: ignore[arg-type]
    assert capsys.readouterr().out == f"{', '.join(['step 3 of 40', *metrics])}{said}\n"


def test_task_and_recipe_of_the_document_are_those_of_the_project(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, document: Path
) -> None:
    started = Started(monkeypatch)
    save_settings(Settings(task="restoration", recipe={"batch": "3"}), settings_path(document))
    for more in ((), ("--host", "big")):
        assert layerwright("train", document, *more).code == 0
    trainings = [entry[4] for entry in started.log if entry[0] == "export"]
    assert trainings == [Training("restoration", {"batch": "3"})] * 2


def test_python_of_the_host_is_an_option(layerwright: Run, monkeypatch: pytest.MonkeyPatch, document: Path) -> None:
    started = Started(monkeypatch)
    assert layerwright("train", document, "--host", "big", "--host-python", "/opt/python", "--detach").code == 0
    assert [entry[1:3] for entry in started.log if entry[0] == "host"] == [("big", "/opt/python")]


TRAINS = (RunState.STARTING, RunState.RUNNING, RunState.PAUSED)
CODES = {RunState.FINISHED: 0, RunState.STOPPED: 130, RunState.FAILED: 1, RunState.ENDED: 1, RunState.MISSING: 1}


@pytest.mark.parametrize("seed", range(12))
def test_every_step_is_printed_once_until_the_run_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, seed: int
) -> None:
    """Random states and steps of a run; Ctrl+C in one of the looks sends a command and goes on with new looks."""
    source = random.Random(seed)
    shots = []
    step = total = 0
    for _ in range(source.randrange(1, 9)):
        total = total or source.choice([0, 40])
        step += source.choice([0, 0, 1, 5]) if total else 0
        shots.append(SimpleNamespace(state=source.choice(TRAINS), step=step, total_steps=total, message=""))
    last = source.choice([*CODES])
    message = source.choice(["", "why it ended"])
    shots.append(SimpleNamespace(state=last, step=step + source.choice([0, 2]), total_steps=total, message=message))
    stop_at = source.choice([None, *range(len(shots))])
    waiting, read, sent, begun = iter(shots), [], [], []

    class Watched:
        def __init__(self, folder: RunFolder) -> None:
            assert folder.path == tmp_path
            self.folder = SimpleNamespace(send=sent.append)

        def read(self) -> None:
            self.snapshot = next(waiting)
            read.append(self.snapshot)

    def looks() -> Iterator[None]:
        begun.append(len(read))
        while True:
            if len(read) == stop_at and not sent:
                raise KeyboardInterrupt
            yield

    monkeypatch.setattr("designer.training.watched_run.WatchedRun", Watched)
    monkeypatch.setattr(train, "_print", lambda run: print(f"at {run.snapshot.step} of {run.snapshot.total_steps}"))
    assert train._follow(tmp_path, looks) == CODES[last]
    steps = [shot.step for shot in shots if shot.total_steps]
    expected = [f"at {step} of 40" for number, step in enumerate(steps) if number == 0 or step != steps[number - 1]]
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [*expected, ": ".join(part for part in (last.text, message) if part)]
    assert read == shots
    stopped = stop_at is not None
    assert sent == ["stop"] * stopped
    assert captured.err == "stopping after this step\n" * stopped
    assert begun == ([0, stop_at] if stopped else [0])


def test_looks_at_the_files_of_a_run_are_half_a_second_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(train.time, "sleep", slept.append)
    looks = train._looks()
    for count in (1, 2, 3):
        assert next(looks) is None
        assert slept == [0.5] * count
