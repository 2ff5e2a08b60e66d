"""Panels of the Train workspace on runs that no process trains: columns, buttons, images and health as the folders say."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QToolButton, QWidget
from pytestqt.qtbot import QtBot
from training_kit import WAIT, make_run

from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.run_health import run_health_of
from app.ui.engine.time_machine import time_machine_of
from app.ui.engine.training import TrainingController, training_of
from app.ui.train.health_panel import HealthPanel
from app.ui.train.run_progress import RunProgress
from app.ui.train.runs_panel import TrainingRunsPanel
from app.ui.train.validation_panel import ValidationPanel
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.training.run_folder import Notes
from designer.training.watched_run import RunState, WatchedRun

pytest.importorskip("pyqtgraph")
pytestmark = pytest.mark.gui


@pytest.fixture
def context(qtbot: QtBot, tmp_path: Path) -> Context:
    """An open network whose project has no runs yet."""
    layers = [
        Layer("image", "input", params={"dims": "16x8x3"}),
        Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "4"}),
        Layer("output", "output", inputs=(Source("conv"),)),
    ]
    made = Context(default_registry())
    made.set_document(Document(Graph(layers), made.registry, parent=made))
    made.root.project = tmp_path / "project"
    return made


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
def runs(qtbot: QtBot, context: Context) -> Runs:
    return Runs(qtbot, context)


def shown(qtbot: QtBot, panel: QWidget) -> None:
    qtbot.addWidget(panel)
    panel.resize(900, 600)
    panel.show()


def test_all_columns_of_a_run_are_of_its_folder(qtbot: QtBot, context: Context, runs: Runs) -> None:
    panel = TrainingRunsPanel(context)
    shown(qtbot, panel)
    run, other = runs.add("a", lr=0.5), runs.add("b", lr=0.25)

    def row(number: int) -> dict[str, str]:
        model, horizontal = panel.model, Qt.Orientation.Horizontal
        return {
            model.headerData(column, horizontal): model.index(number, column).data()
            for column in range(model.columnCount())
        }

    plain = {"State": "finished", "Step": "20", "Left": "-", "Loss": "0.0500", "Best": "-", "Notes": ""}
    assert row(0) == {"Run": "a", **plain}
    lines = [
        {"step": 21, "loss": 2.0, "elapsed": 10.0},
        {"step": 22, "validation": {"psnr": 31.5}},
        {"step": 23, "loss": 4.0, "elapsed": 14.0, "validation": {"psnr": 28.25}},
    ]
    with run.folder.metrics.open("a") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)
    run.folder.write_notes(Notes("wide", "more features\nand less data"))
    run.read()
    run.snapshot = replace(run.snapshot, state=RunState.RUNNING, total_steps=123)
    with qtbot.waitSignal(panel.model.dataChanged):
        runs.training.updated.emit()
    fields = {
        "State": "running",
        "Step": "23",
        "Left": "3 min 20 s",
        "Loss": "4.00",
        "Best": "31.5 dB",
    }  # 100 x 4 s / 2
    assert row(0) == {"Run": "wide", **fields, "Notes": "more features"}
    assert panel.model.index(0, 6).data(Qt.ItemDataRole.ToolTipRole).endswith("and less data")
    runs.training.choose((run, other))
    assert [row(number)["lr"] for number in (0, 1)] == ["0.5", "0.25"]
    panel.table.clearSelection()
    assert "lr" not in row(0)
    runs.training._set_runs([other])
    assert [row(number) for number in range(panel.model.rowCount())] == [{"Run": "b", **plain}]
    runs.training._set_runs([])
    assert not panel.table.isVisible()


def test_buttons_of_runs_are_enabled_when_they_can_do_something(qtbot: QtBot, context: Context, runs: Runs) -> None:
    panel, progress = TrainingRunsPanel(context), RunProgress(runs.training)
    shown(qtbot, panel)
    qtbot.addWidget(progress)
    assert not progress.isVisible()
    run, other = runs.add("a"), runs.add("b")
    buttons = {name: panel.findChild(QToolButton, f"training_runs.{name}") for name in ("extend", "clone", "notes")}
    buttons["delete"] = panel.findChild(QToolButton, "training_runs.delete")

    def enabled() -> set[str]:
        return {name for name, button in buttons.items() if button is not None and button.isEnabled()}

    def visible() -> set[str]:
        found = (progress.pause, progress.stop, progress.resume)
        return {button.text() for button in found if button.isVisible()}

    assert enabled() == set()
    runs.training.choose((run,))
    for saved, state in product((False, True), RunState):
        if saved:
            (run.folder.path / "checkpoints" / "best").mkdir(parents=True, exist_ok=True)
            (run.folder.path / "checkpoints" / "last.pt").touch()
        run.snapshot = replace(run.snapshot, state=state)
        runs.training.updated.emit()
        trains = state in (RunState.STARTING, RunState.RUNNING, RunState.PAUSED)
        continues = saved and not trains
        expected = {"clone", "notes"} | ({"extend"} if continues else set()) | (set() if trains else {"delete"})
        assert enabled() == expected, state
        of_process = {"Continue" if state is RunState.PAUSED else "Pause", "Stop"} if trains else set()
        resumes = {"Resume"} if continues and state is not RunState.FINISHED else set()
        assert visible() == of_process | resumes, state
        assert progress.use.isEnabled() is saved
        assert (progress.bar.maximum(), progress.bar.value()) == ((0, 20) if state is RunState.STARTING else (20, 20))
    run.snapshot = replace(run.snapshot, state=RunState.ENDED, host="there")
    runs.training.updated.emit()
    assert (visible(), enabled()) == ({"Follow"}, {"clone", "notes", "delete"})
    run.snapshot = replace(run.snapshot, state=RunState.RUNNING)
    runs.training.choose((run, other))
    assert enabled() == set()  # one of them trains
    run.snapshot = replace(run.snapshot, state=RunState.STOPPED)
    runs.training.updated.emit()
    assert enabled() == {"delete"}
    panel.table.clearSelection()
    assert enabled() == set()
    assert not progress.isVisible()


def test_the_validation_images_follow_the_newest_step_until_the_slider_is_moved_back(
    qtbot: QtBot, context: Context, runs: Runs
) -> None:
    panel = ValidationPanel(context)
    shown(qtbot, panel)
    run, other = runs.add("a"), runs.add("b")
    runs.training.choose((run,))
    assert not panel.view.isVisible()

    def seen() -> tuple[str, str]:
        image = panel.view.image
        return panel.caption.text(), image.pixelColor(7, 1).name() if image is not None else ""

    runs.validate(run, 5, dog="#050505")
    assert panel.view.isVisible()
    assert seen() == ("step 5", "#050505")
    runs.validate(run, 10, dog="#101010")
    assert seen() == ("step 10", "#101010")
    panel.step.slider.setFocus()
    qtbot.keyClick(panel.step.slider, Qt.Key.Key_Home)
    runs.validate(run, 15, dog="#151515")
    assert seen() == ("step 5", "#050505")
    qtbot.keyClick(panel.step.slider, Qt.Key.Key_End)
    assert seen() == ("step 15", "#151515")
    runs.validate(run, 20, dog="#202020")
    assert seen() == ("step 20", "#202020")
    qtbot.keyClick(panel.step.slider, Qt.Key.Key_Home)
    runs.validate(other, 3, dog="#030303")
    runs.validate(other, 4, dog="#040404")
    runs.training.choose((other,))
    assert seen() == ("step 4", "#040404")  # the newest one of another run
    runs.training.choose(())
    assert not panel.view.isVisible()


def test_the_names_of_validation_images_are_those_of_the_step_of_the_slider(
    qtbot: QtBot, context: Context, runs: Runs
) -> None:
    panel = ValidationPanel(context)
    shown(qtbot, panel)
    run = runs.add("a")
    runs.training.choose((run,))
    names = {5: ("cat",), 10: ("cat", "dog"), 15: ("ant", "dog")}
    for step, written in names.items():
        runs.validate(run, step, **{name: f"#{step:02}{len(name):02}00" for name in written})
    panel.step.slider.setFocus()
    for key, step in ((Qt.Key.Key_Home, 5), (Qt.Key.Key_Right, 10), (Qt.Key.Key_Right, 15), (Qt.Key.Key_Left, 10)):
        qtbot.keyClick(panel.step.slider, key)
        box = panel.image_box
        assert [box.itemText(row) for row in range(box.count())] == [f"{name}.png" for name in names[step]]
        assert panel.caption.text() == f"step {step}"
        image = panel.view.image
        assert image is not None
        assert image.pixelColor(7, 1).name() == f"#{step:02}0300"
    qtbot.keyClick(panel.image_box, Qt.Key.Key_End)
    assert panel.image_box.currentText() == "dog.png"
    for key, name in ((Qt.Key.Key_Home, "cat.png"), (Qt.Key.Key_End, "dog.png")):  # chosen where it is written
        qtbot.keyClick(panel.step.slider, key)
        assert panel.image_box.currentText() == name


def test_the_health_follows_the_newest_step_until_the_slider_is_moved(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis_of(context), "show_weights", lambda path: None)  # no engine
    panel, machine, health = HealthPanel(context), time_machine_of(context), run_health_of(context)
    shown(qtbot, panel)
    run = runs.add("a")
    runs.training.choose((run,))
    run.folder.trail.mkdir()

    def measure(step: int, *problems: dict[str, object]) -> None:
        for path, line in (
            (run.folder.health, {"step": step, "layers": {}, "problems": problems}),
            (run.folder.trail / "index.jsonl", {"step": step, "file": f"{step}.npz", "kind": "key"}),
        ):
            with path.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
        np.savez(run.folder.trail / f"{step}.npz", weight=np.zeros(3, np.float32))
        runs.read(run)

    def seen() -> tuple[float, list[str], bool, bool]:
        items = [panel.list.item(row).text() for row in range(panel.list.count())]
        return panel.step.value, items, panel.leave.isEnabled(), panel.list.isVisible()

    assert not panel.list.isVisible()
    assert not panel.fork.isEnabled()
    dead = {"layer": "conv", "kind": "dead", "since": 10}
    measure(5)
    assert seen() == (5, [], False, False)
    assert panel.fork.isEnabled()
    measure(10, dead)
    assert seen() == (10, ["conv: dead units since step 10"], False, True)
    with qtbot.waitSignal(context.reveal_requested) as told:
        place = panel.list.visualItemRect(panel.list.item(0)).center()
        qtbot.mouseClick(panel.list.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert told.args == ["conv"]
    panel.step.slider.setFocus()
    for _ in range(4):
        qtbot.keyClick(panel.step.slider, Qt.Key.Key_Left)
    assert seen() == (6, [], True, False)
    assert panel.where.text() == "The analysis shows step 5 of the run."
    measure(15, dead, {"layer": "image", "kind": "saturated", "since": 15})
    assert seen() == (6, [], True, False)
    qtbot.mouseClick(panel.leave, Qt.MouseButton.LeftButton)
    assert seen() == (15, ["conv: dead units since step 10", "image: saturated units since step 15"], False, True)
    assert panel.where.text().startswith("The analysis shows the weights of the document.")
    machine.go(run, 15)
    assert panel.leave.isEnabled()  # the health is the same one
    qtbot.keyClick(panel.shown_metric, Qt.Key.Key_Down)
    assert health.metric == panel.shown_metric.currentData() == "gradient"
    panel.hide()
    assert not health.metric
    panel.show()
    assert health.metric == "gradient"
    runs.training.choose(())
    assert not panel.step.isVisible()
    qtbot.waitUntil(lambda: not machine._job.running, timeout=WAIT)
