"""A session with the panels of the Train workspace on runs that no process trains: what they show after each step is recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytest.importorskip("pyqtgraph")
pytestmark = pytest.mark.gui

from panel_session import PanelSession
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox
from pytestqt.qtbot import QtBot
from recorded_state import compare, plain
from training_kit import Runs, make_run, project_context

from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.time_machine import time_machine_of
from app.ui.train.health_panel import HealthPanel
from app.ui.train.runs_panel import TrainingRunsPanel
from app.ui.train.training_panel import TrainingPanel
from app.ui.train.validation_panel import ValidationPanel
from app.ui.widgets import theme
from app.ui.widgets.image_view import ImageView
from designer.graph import commands
from designer.graph.graph import Graph
from designer.training.run_folder import Notes
from designer.training.sweep import Axis, Sweep, trials
from designer.training.watched_run import RunState, WatchedRun
from designer.training.watched_sweep import SweepSnapshot

COMMANDS = (
    "send", "resume", "use_weights", "delete", "delete_sweep", "write_notes", "stop_sweep", "continue_sweep", "start",
    "start_sweep", "fork", "make_samples", "make_example_data",
)  # fmt: skip


@pytest.fixture
def context(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Context:
    theme.apply(qapp, "dark")
    return project_context(tmp_path)


class Session(PanelSession):
    """The panels, whose commands are written down; the test writes the files of the runs."""

    def __init__(self, qtbot: QtBot, context: Context, patch: pytest.MonkeyPatch, *panels: Any) -> None:
        self.runs = Runs(qtbot, context)
        self.training = self.runs.training
        for name in COMMANDS:
            patch.setattr(self.training, name, lambda *words, name=name: self.said.append(f"{name} {_words(words)}"))
        patch.setattr(
            analysis_of(context), "show_weights", lambda path: self.said.append(f"weights {path and path.name}")
        )
        super().__init__(qtbot, context, *(panel(context) for panel in panels))

    def _state(self) -> dict[str, Any]:
        """With the images, and with the curves, which are one item of the plot."""
        found = super()._state()
        plots = [plot for panel in self.panels if (plot := getattr(panel, "plot", None)) is not None]
        for number, curve in enumerate(curve for plot in plots for curve in plot.bundle._curves):
            ends = f"{curve.x[0]:g} to {curve.x[-1]:g}: {curve.y[0]:.4g} to {curve.y[-1]:.4g}" if len(curve.x) else "-"
            found[f"curve {number}"] = f"{curve.title}, {len(curve.x)} points, {ends}"
        for view in (view for panel in self.panels for view in panel.findChildren(ImageView) if view.isVisible()):
            image = view.image
            if image is not None:
                place = [(x * (image.width() - 1), image.height() // 2) for x in (0, 1)]
                colors = " and ".join(image.pixelColor(round(x), y).name() for x, y in place)
                found[view.objectName()] = f"{image.width()} x {image.height()}, {colors} at its sides"
        return {**found, **{f"axis {number}": plot.getAxis("left").labelText for number, plot in enumerate(plots)}}

    def busy(self) -> bool:
        return time_machine_of(self.context)._job.running

    def write(self, what: str, run: WatchedRun, *metrics: dict[str, Any], **more: Any) -> None:
        """A run goes on: lines of its metrics, and other facts of its snapshot."""

        def write() -> None:
            with run.folder.metrics.open("a") as stream:
                stream.writelines(json.dumps(line) + "\n" for line in metrics)
            run.read()
            run.snapshot = replace(run.snapshot, **more)
            self.training.updated.emit()

        self.step(what, write)

    def pick(self, *runs: WatchedRun) -> None:
        self.step(f"choose {', '.join(run.snapshot.title for run in runs)}", lambda: self.training.choose(runs))


def _words(words: tuple[Any, ...]) -> str:
    return ", ".join(each.snapshot.title if isinstance(each, WatchedRun) else str(each) for each in words)


def logged(step: int, **more: Any) -> dict[str, Any]:
    return {"step": step, "loss": 1 / step, "elapsed": 2.0 * step, "learning_rate": 0.5, **more}


def test_runs_and_sweeps(qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    session = Session(qtbot, context, monkeypatch, TrainingRunsPanel)
    runs, training = session.runs, session.training
    a = runs.add("a", lr=0.5, noise="25")
    b = runs.add("b", lr=0.25, noise="25")
    session.step("two runs", lambda: None)
    session.select("training_runs.table", 0)
    session.select("training_runs.table", 1, also=True)
    session.choose("training_runs.metric", "loss")
    session.step("logarithmic", session.find("training_runs.logarithmic").click)
    session.choose("training_runs.smoothing", "Smoothed over 10 %")
    session.write("b goes on", b, logged(21, validation={"psnr": 31.0}), state=RunState.RUNNING)
    session.choose("training_runs.metric", "PSNR")
    session.select("training_runs.table", 1)
    session.select("training_runs.table", 0)
    session.choose("training_runs.smoothing", "Not smoothed")
    monkeypatch.setattr(
        "app.ui.train.runs_panel.ask_steps", lambda _p, shot: session.said.append(f"asks steps of {shot.title}") or 40
    )
    (a.folder.path / "checkpoints").mkdir()
    (a.folder.path / "checkpoints" / "last.pt").touch()
    session.write("a has a checkpoint", a)
    session.click("training_runs.extend")
    monkeypatch.setattr("app.ui.train.runs_panel.ask_steps", lambda _p, shot: 0)
    session.click("training_runs.extend")
    training.clone_requested.connect(lambda run: session.said.append(f"clone {run.snapshot.title}"))
    session.click("training_runs.clone")
    monkeypatch.setattr(
        "app.ui.train.runs_panel.ask_notes", lambda _p, shot: Notes(f"new {shot.title}", "first\nsecond")
    )
    session.click("training_runs.notes")
    session.select("training_runs.table", 1, twice=True)
    monkeypatch.setattr("app.ui.train.runs_panel.ask_notes", lambda _p, shot: None)
    session.click("training_runs.notes")
    a.folder.write_notes(Notes("renamed", "first\nsecond"))
    session.write("a is renamed", a)
    asked = []
    answers = [QMessageBox.StandardButton.No, QMessageBox.StandardButton.Yes, QMessageBox.StandardButton.Yes]
    monkeypatch.setattr(
        QMessageBox, "question", lambda _p, title, text: (asked.append(f"{title}: {text}"), answers.pop(0))[1]
    )
    session.write("b stops", b, state=RunState.STOPPED)
    session.select("training_runs.table", 0)
    session.click("training_runs.delete")
    session.select("training_runs.table", 1, also=True)
    session.click("training_runs.delete")
    sweep = Sweep(tmp_path / "sweep", tuple(trials([Axis.parse("lr=0.1,0.2,0.3")], 0)), {})
    inside = [WatchedRun(make_run(sweep.project(t), t.name, settings=dict(t.values))) for t in sweep.trials]
    for run in inside:
        run.read()
    going, stopped = SweepSnapshot(sweep, RunState.RUNNING), SweepSnapshot(sweep, RunState.STOPPED)
    session.step("a sweep", lambda: training._set_runs([a, b, *inside[:2]], {sweep.folder: going}))
    session.select("training_runs.table", 2)
    session.step("another trial", lambda: training._set_runs([a, b, *inside], {sweep.folder: going}))
    session.click("training_runs.sweep")
    session.select("training_runs.table", 0, also=True)
    session.select("training_runs.table", 2)
    session.write("a trial goes on", inside[1], logged(21, validation={"psnr": 40.0}), state=RunState.RUNNING)
    session.step("the sweep stops", lambda: training._set_runs([a, b, *inside], {sweep.folder: stopped}))
    session.write("the trial stops", inside[1], state=RunState.STOPPED)
    session.click("training_runs.sweep")
    session.click("training_runs.delete")
    table, model = session.panels[0].table, session.panels[0].model
    session.step("fold", lambda: table.collapse(model.index(2, 0)))
    session.step("read again", lambda: training._set_runs([a, b, *inside], {sweep.folder: stopped}))
    session.lines.append(f"folded {not table.isExpanded(model.index(2, 0))}")
    session.step(
        "it ends", lambda: training._set_runs([a, b, *inside], {sweep.folder: SweepSnapshot(sweep, RunState.FINISHED)})
    )
    session.lines += [plain(each) for each in asked]
    session.step("light", lambda: theme.apply(QApplication.instance(), "light"))
    session.step("dark", lambda: theme.apply(QApplication.instance(), "dark"))
    many = [runs.add(f"r{number}") for number in range(9)]
    session.pick(*many)  # more than have colors of their own
    session.step("no runs", lambda: training._set_runs([]))
    compare("training_runs", session.lines)


def test_validation_images_and_health(qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(qtbot, context, monkeypatch, ValidationPanel, HealthPanel)
    runs = session.runs
    a, b = runs.add("a"), runs.add("b")

    def slide(number: int) -> None:
        session.panels[0].step.set_value(number)
        session.panels[0].step.changed.emit(number)

    def health(run: WatchedRun, step: int, *problems: dict[str, Any]) -> None:
        run.folder.trail.mkdir(exist_ok=True)
        for path, line in (
            (run.folder.health, {"step": step, "layers": {}, "problems": problems}),
            (run.folder.trail / "index.jsonl", {"step": step, "file": f"{step}.npz", "kind": "key"}),
        ):
            with path.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
        np.savez(run.folder.trail / f"{step}.npz", weight=np.zeros(3, np.float32))

    session.pick(a)
    session.step("first images", lambda: runs.validate(a, 5, cat="red", dog="blue"))
    session.choose("validation.image", "dog")
    session.step("next images", lambda: runs.validate(a, 10, cat="green", dog="white"))
    session.write("metrics", a, {"step": 21, "validation": {"psnr": 30.5, "ssim": 0.75}})
    session.key("validation.step", Qt.Key.Key_Home)
    session.step(
        "slider back",
        lambda: slide(0),
    )
    session.step("newer images", lambda: runs.validate(a, 15, cat="black"))
    session.step(
        "slider on",
        lambda: slide(2),
    )
    session.choose("validation.left", "Target")
    session.step("images of b", lambda: runs.validate(b, 7, cat="cyan"))
    session.pick(a, b)
    session.choose("validation.left", "Input")
    session.step(
        "slider back",
        lambda: slide(0),
    )
    session.pick(b)
    session.step("health of b", lambda: (health(b, 5), runs.read(b)))
    session.step("health of b", lambda: (health(b, 10, {"layer": "conv", "kind": "dead", "since": 10}), runs.read(b)))
    session.select("network_health.problems", 0)
    session.choose("network_health.metric", "Gradient")
    session.step("back in time", lambda: session.panels[1].step.changed.emit(5.0))
    session.click("network_health.fork")
    session.step("later", lambda: (health(b, 15, {"layer": "image", "kind": "saturated", "since": 15}), runs.read(b)))
    session.click("network_health.leave")
    session.click("network_health.fork")
    (b.folder.trail / "10.npz").write_bytes(b"broken")
    session.step("a step that cannot be read", lambda: session.panels[1].step.changed.emit(10.0))
    session.pick(a)
    session.pick(b)
    session.step("light", lambda: theme.apply(QApplication.instance(), "light"))
    session.step("dark", lambda: theme.apply(QApplication.instance(), "dark"))
    session.step("no runs", lambda: session.training._set_runs([]))
    compare("training_images", session.lines)


def test_settings_and_progress(qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("app.ui.train.place_choice.configured_hosts", lambda: ["gpu"])
    session = Session(qtbot, context, monkeypatch, TrainingPanel)
    training, root = session.training, context.root
    session.lines = [line for line in session.lines if " tip: " not in line]
    session.choose("training.task", "Denoising")
    session.type("training.noise", "0-55")
    session.type("training.more", "--ema 0.9")
    session.click("training.start")
    session.click("training.samples")
    session.type("training.more", "ema 0.9")
    session.click("training.start")
    session.type("training.more", "")
    session.choose("training.where", "gpu")
    session.step("a host with blanks", lambda: session.find("training.where").setEditText(" gpu "))
    session.click("training.start")
    session.type("training.where.python", "~/venv/bin/python")
    session.click("training.start")
    monkeypatch.setattr(
        QFileDialog, "getExistingDirectory", lambda _p, title, start: session.said.append(f"asks {title}") or ""
    )
    session.click("training.validation.browse")
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda _p, title, start: str(tmp_path / "photos"))
    session.click("training.validation.browse")
    session.click("training.data.browse")
    session.choose("training.task", "Classification")
    session.click("training.example")
    session.step("example data", lambda: training.example_data_made.emit(tmp_path / "example"))
    session.choose("training.task", "Segmentation")
    session.step("example data", lambda: training.example_data_made.emit(tmp_path / "example"))
    session.choose("training.task", "Super-resolution")
    session.step("classes", lambda: root.do(lambda g: commands.set_params(g, {"conv": {"stride": "2x2"}})))
    session.step("a broken network", lambda: root.do(lambda g: commands.remove_layers(g, ["image"])))
    session.step("undo", root.undo)
    session.step(
        "the document's task", lambda: root.change_settings(task="denoising", recipe={"noise": "15", "epochs": "7"})
    )
    run = session.runs.add("a", lr=0.5, batch=4, noise="10-30", amp=True, ema=0.5, data="photos", steps=0, seed=0)
    run.snapshot = replace(run.snapshot, curves=replace(run.snapshot.curves, task="denoising"))
    session.step("clone", lambda: training.clone_requested.emit(run))
    session.pick(run)
    for state in RunState:
        session.write(f"state {state}", run, state=state, message=f"it says {state}", total_steps=60, step=22)
    session.write(
        "unreachable",
        run,
        state=RunState.RUNNING,
        host="gpu",
        is_unreachable=True,
        message="no route to the host",
        total_steps=60,
    )
    session.write(
        "on training images",
        run,
        state=RunState.PAUSED,
        total_steps=60,
        curves=replace(run.snapshot.curves, on_training=True),
    )
    session.click("training.pause")
    session.write("runs", run, state=RunState.RUNNING, total_steps=60)
    session.click("training.pause")
    session.click("training.stop")
    session.step("a problem", lambda: training.problem_changed.emit("The folder is not empty."))
    session.step("no problem", lambda: training.problem_changed.emit(""))
    first = context.root
    other = Document(Graph(), context.registry, parent=context)
    other.project = tmp_path / "other"
    session.type("training.project", str(tmp_path / "typed"))
    session.step("another document", lambda: context.set_document(other))
    session.step("first document", lambda: context.set_document(first))
    compare("training_settings", session.lines)
