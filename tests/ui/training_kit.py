"""Projects whose training is a stand-in that needs no torch, and runs of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot
from window_kit import network, show

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.training import TrainingController, training_of
from app.ui.shell.panels import TRAIN
from app.ui.shell.window import MainWindow
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.training import trainer
from designer.training.run_folder import RunFolder, runs_of
from designer.training.watched_run import WatchedRun

STAND_IN = Path(__file__).parents[1] / "training" / "fake_trainer.py"
WAIT = 60000


def stand_in_project(folder: Path) -> Path:
    """A project in `folder` whose train.py is the stand-in."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(STAND_IN, folder / "train.py")
    return folder


def end_processes(folder: Path) -> None:
    """Kill what trains in a project, and wait until it is gone."""
    for path in runs_of(folder):
        pid = RunFolder(path).process()
        if pid:
            os.kill(pid, signal.SIGKILL)
    for child in trainer._children:
        child.wait(WAIT / 1000)
    trainer.reap()


def make_run(project: Path, name: str, *, settings: dict[str, object], steps: int = 20, task: str = "") -> RunFolder:
    """A finished run, written without a process."""
    run = RunFolder(project / "runs" / name)
    run.path.mkdir(parents=True)
    (run.path / "config.json").write_text(json.dumps({"settings": settings}))
    (run.path / "status.json").write_text(json.dumps({"state": "finished", "pid": 0, "step": steps}))
    lines = [
        {"schema": 1, "total_steps": steps, "task": task},
        *({"step": s, "loss": 1 / s} for s in range(1, steps + 1)),
    ]
    (run.path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


class Runs:
    """Runs of the document that are written by the test."""

    def __init__(self, qtbot: QtBot, context: Context) -> None:
        self.training: TrainingController = training_of(context)
        qtbot.waitUntil(self.training._timer.isActive, timeout=WAIT)  # the folders were read, and are not read again
        self.training._timer.stop()
        assert context.root.project is not None
        self.project = context.root.project

    def add(self, name: str, **settings: object) -> WatchedRun:
        run = WatchedRun(make_run(self.project, name, settings=settings))
        run.read()
        self.training._set_runs([*self.training.runs, run])
        return run

    def read(self, run: WatchedRun) -> None:
        run.read()
        self.training.updated.emit()

    def validate(self, run: WatchedRun, step: int, **images: str) -> None:
        """Validation images of one color each."""
        for name, color in images.items():
            path = run.folder.validation_image(step, f"{name}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            image = QImage(8, 4, QImage.Format.Format_RGB32)
            image.fill(QColor(color))
            assert image.save(str(path))
        self.read(run)


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the project; exporting it writes the stand-in."""
    folder = tmp_path / "project"
    monkeypatch.setattr(
        "exporters.pytorch.export_project", lambda graph, registry, target, *rest: stand_in_project(target)
    )
    yield folder
    end_processes(folder)


@pytest.fixture
def training(window: MainWindow, exported: Path) -> TrainingController:
    """The controller of a window in the Train workspace, with a network whose project is `exported`."""
    graph = network()
    graph = Graph([layer for layer in graph if layer.name != "strange"], name="named")
    show(window, graph)
    window.context.root.project = exported
    window.docks.set_workspace(TRAIN)
    return training_of(window.context)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for `ssh` that runs commands here with another home folder, and a configuration with the host `elsewhere`.

    The connection is broken while the file that is returned exists.
    """
    home, programs, broken = tmp_path / "home", tmp_path / "bin", tmp_path / "broken"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "config").write_text("Host elsewhere other\n  HostName 127.0.0.1\nHost *.invalid\n  User nobody\n")
    programs.mkdir()
    there = tmp_path / "there"
    there.mkdir()
    (programs / "ssh").write_text(
        "#!/bin/sh\n"
        f'for word; do case "$word" in unknown) echo "ssh: Could not resolve hostname unknown" >&2; exit 255;; esac; done\n'
        f'if [ -e {broken} ]; then echo "Connection refused" >&2; exit 255; fi\n'
        f'for word; do last=$word; done\nHOME={there} exec sh -c "$last"\n'
    )
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return broken


def project_context(folder: Path) -> Context:
    """An open network of one convolution, whose project in `folder` has no runs yet."""
    layers = [
        Layer("image", "input", params={"dims": "16x8x3"}),
        Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "4"}),
        Layer("output", "output", inputs=(Source("conv"),)),
    ]
    made = Context(default_registry())
    made.set_document(Document(Graph(layers), made.registry, parent=made))
    made.root.project = folder / "project"
    return made
