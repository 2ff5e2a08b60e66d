"""Panels of the Train workspace on runs that no process trains: columns, buttons, images and health as the folders say."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QItemSelectionModel, Qt, Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QInputDialog, QLineEdit, QToolButton, QWidget
from pytestqt.qtbot import QtBot
from training_kit import WAIT, Runs, make_run, project_context

from app.ui.document.document import Document
from app.ui.document.template_view import ScopeStep
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.run_health import run_health_of
from app.ui.engine.time_machine import time_machine_of
from app.ui.engine.training import StartRequest, SweepRequest
from app.ui.train import validation_panel
from app.ui.train.health_panel import HealthPanel
from app.ui.train.run_progress import RunProgress, metric_lines, metric_title, time_text
from app.ui.train.runs_panel import TrainingRunsPanel
from app.ui.train.settings_form import FIELDS
from app.ui.train.training_panel import TrainingPanel
from app.ui.train.validation_panel import ValidationPanel
from app.ui.widgets import theme
from designer.files.weights import Weights, fill_missing, required_weights, save_weights
from designer.graph.commands import add_layer, move_layers, set_activation
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.graph.template_commands import set_template
from designer.operators.registry import default_registry
from designer.training import run_registry
from designer.training.metrics import Curves
from designer.training.run_folder import Notes, RunFolder
from designer.training.sweep import Axis, Sweep, trials
from designer.training.watched_run import RunSnapshot, RunState, WatchedRun
from designer.training.watched_sweep import SweepSnapshot
from designer.units import binary, digits

pytest.importorskip("pyqtgraph")
from app.ui.train.curve_plot import Curve, reduced

pytestmark = pytest.mark.gui


@pytest.fixture
def context(qtbot: QtBot, tmp_path: Path) -> Context:
    """An open network whose project has no runs yet."""
    return project_context(tmp_path)


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
    third = runs.add("c", lr=0.125, batch=8, patch_size=64)
    runs.training.choose((run, other, third))
    settings = [{name: row(number)[name] for name in ("lr", "batch", "patch size")} for number in range(3)]
    assert settings == [
        {"lr": "0.5", "batch": "-", "patch size": "-"},
        {"lr": "0.25", "batch": "-", "patch size": "-"},
        {"lr": "0.125", "batch": "8", "patch size": "64"},
    ]
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


def test_a_validation_image_that_was_half_written_is_loaded_with_the_next_news(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = ValidationPanel(context)
    shown(qtbot, panel)
    run = runs.add("a")
    runs.training.choose((run,))
    loaded, load = [], validation_panel._load
    half = True

    def counted(path: Path | None) -> QImage | None:
        loaded.append(path)
        return None if half else load(path)

    monkeypatch.setattr(validation_panel, "_load", counted)
    runs.validate(run, 5, dog="#050505")
    assert panel.view.image is None
    half = False
    loaded.clear()
    runs.training.updated.emit()
    assert panel.view.image is not None
    assert panel.view.image.pixelColor(7, 1).name() == "#050505"
    assert [path.name for path in loaded if path is not None] == ["dog.png"] * len(loaded)


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
    qtbot: QtBot, qapp: QApplication, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch
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
    for mode in ("light", "dark"):
        theme.apply(qapp, mode)
        assert panel.list.item(0).icon().cacheKey() == theme.icon("alert", "error").cacheKey()
    theme.apply(qapp, "system")
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


# --- progress, curves and settings ---------------------------------------------------------------------------------


def test_the_latest_metrics_are_those_of_the_run(qtbot: QtBot, context: Context, runs: Runs) -> None:
    progress = RunProgress(runs.training)
    shown(qtbot, progress)
    run = runs.add("a")
    validation = {
        "psnr": 31.25,
        "noisy_psnr": 20.125,
        "ssim": 0.875,
        "iou": 0.625,
        "accuracy": 0.5,
        "loss": 0.75,
        "own_value": 3.0,
    }
    lines = [
        {"step": 21, "loss": 9.0, "elapsed": 10.0, "learning_rate": 0.5, "throughput": 1.0, "memory": 1, "validation": validation},
        {"step": 22, "loss": 0.12345, "elapsed": 14.0, "learning_rate": 1.2345e-6, "throughput": 123.4, "memory": 3 << 20},
    ]  # fmt: skip
    with run.folder.metrics.open("a") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)
    runs.training.choose((run,))
    runs.read(run)
    found = [
        line.rsplit(maxsplit=1) if not line.endswith("iB") else line.rsplit(maxsplit=2)
        for line in progress.metrics.text().splitlines()
    ]
    assert [(title, " ".join(value)) for title, *value in found] == [
        ("loss", "0.123"), ("PSNR (dB)", "31.2"), ("PSNR of the inputs (dB)", "20.1"), ("SSIM", "0.875"), ("mean IoU", "0.625"),
        ("accuracy", "0.500"), ("validation loss", "0.750"), ("validation own value", "3.00"), ("learning rate", "1.23e-06"),
        ("images/s", "123"), ("memory", "3.00 MiB"),
    ]  # fmt: skip
    ends = {len(line) - len(line.split("  ")[-1].lstrip()) for line in progress.metrics.text().splitlines()}
    assert len(ends) == 1, "the values are one below the other"
    run.snapshot = replace(
        run.snapshot, state=RunState.RUNNING, total_steps=60, curves=replace(run.snapshot.curves, on_training=True)
    )
    runs.training.updated.emit()
    assert progress.state.text() == "running, step 22 of 60, 2 min 32 s left"  # 38 x 4 s
    assert progress.message.text().startswith("The validation images are training images: ")
    run.snapshot = replace(run.snapshot, host="gpu", message="no route to the host", is_unreachable=True)
    runs.training.updated.emit()
    assert progress.state.text() == "running on gpu, step 22 of 60"
    assert (progress.message.text(), progress.message._role) == ("No route to the host.", "warning")
    for state, role in ((RunState.FAILED, "error"), (RunState.ENDED, "warning"), (RunState.MISSING, "error")):
        run.snapshot = replace(run.snapshot, state=state, is_unreachable=False)
        runs.training.updated.emit()
        assert progress.message._role == role


@pytest.mark.parametrize(("low", "high", "ends"), [(10.5, 20.5, (10, 21)), (-5, 3, (0, 4)), (90, 200, (89, 99))])
def test_a_part_of_a_curve_reaches_the_edges_of_what_is_shown(low: float, high: float, ends: tuple[int, int]) -> None:
    x = np.arange(100.0)
    part, _ = reduced(x, -x, low, high, 50)
    assert (part[0], part[-1]) == ends


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (61, "1 min 1 s"), (3599.4, "59 min 59 s"), (3599.6, "1 h 0 min"),
        (3660, "1 h 1 min"), (90000, "25 h 0 min"),
    ],
)  # fmt: skip
def test_durations_have_their_two_largest_units(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


def test_curves_are_those_of_the_chosen_metric_and_runs(qtbot: QtBot, context: Context, runs: Runs) -> None:
    panel = TrainingRunsPanel(context)
    shown(qtbot, panel)
    made = [runs.add(name) for name in "ab"]
    for number, run in enumerate(made, 1):
        lines = [
            {"step": step, "epoch": 1, "time": 5.0, "elapsed": step, "loss": number / step, "learning_rate": number * 0.5,
             "losses": {"l1": number * step}, "memory": 7 + number, "throughput": 10.0 * number,
             "validation": {"ssim": 0.25 * number, "psnr": 30.0 + number, "loss": 0.5}}
            for step in (21, 22)
        ]  # fmt: skip
        with run.folder.metrics.open("a") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in lines)
        runs.read(run)
    runs.training.choose(made)
    box, plot = panel.metric_box, panel.plot
    names = [box.itemData(row) for row in range(box.count())]
    assert names == [
        "loss", "validation.psnr", "validation.ssim", "learning_rate", "throughput", "memory", "losses.l1", "validation.loss"
    ]  # fmt: skip

    def drawn() -> list[tuple[str, list[float], list[float]]]:
        return [(curve.title, curve.x.tolist(), curve.y.tolist()) for curve in plot._curves]

    for row, name in enumerate(names):
        box.setFocus()
        qtbot.keyClick(box, Qt.Key.Key_Home)
        for _ in range(row):
            qtbot.keyClick(box, Qt.Key.Key_Down)
        assert box.currentData() == name
        points = [run.snapshot.curves.points(name) for run in made]
        assert drawn() == [(title, x.tolist(), y.tolist()) for title, (x, y) in zip("ab", points, strict=True)]
        assert plot.getAxis("left").labelText == box.currentText() == metric_title(name)
    with made[1].folder.metrics.open("a") as stream:
        stream.write(json.dumps({"step": 23, "loss": 0.5, "losses": {"l2": 1.0}}) + "\n")
    runs.read(made[1])
    runs.training.choose(made[1:])
    assert (box.currentData(), box.count(), len(drawn())) == ("validation.loss", 9, 1)  # what was chosen stays
    qtbot.keyClick(box, Qt.Key.Key_Home)
    panel.logarithmic.click()
    assert plot.bundle._curves[0].y.tolist() == pytest.approx(np.log10(plot._curves[0].y).tolist())
    panel.logarithmic.click()
    assert plot.bundle._curves[0].y.tolist() == plot._curves[0].y.tolist()
    for row, share in enumerate((0.0, 0.02, 0.1)):
        panel.smoothing.setCurrentIndex(row)
        expected = Curve("b", *made[1].snapshot.curves.points("loss")).smoothed(share)
        assert drawn() == [("b", expected.x.tolist(), expected.y.tolist())]
        assert panel.smoothing.currentText() == (f"Smoothed over {round(100 * share)} %" if share else "Not smoothed")
    made[1].folder.write_notes(Notes("renamed", ""))
    runs.read(made[1])
    assert drawn()[0][0] == "renamed"


def test_columns_of_the_runs_get_wider_with_their_values_and_never_narrower(
    qtbot: QtBot, context: Context, runs: Runs
) -> None:
    panel = TrainingRunsPanel(context)
    shown(qtbot, panel)
    run = runs.add("a")
    runs.training.choose((run,))
    header = panel.table.header()
    for column in range(panel.model.columnCount()):
        needed = max(panel.table.sizeHintForColumn(column), header.sectionSizeHint(column))
        header.resizeSection(column, needed - 5)
        runs.training.updated.emit()
        assert header.sectionSize(column) == needed
        header.resizeSection(column, needed + 40)
        runs.training.updated.emit()
        assert header.sectionSize(column) == needed + 40


def test_a_run_is_extended_to_twice_its_steps_by_default(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = TrainingRunsPanel(context)
    shown(qtbot, panel)
    run, asked, resumed = runs.add("a"), [], []
    (run.folder.path / "checkpoints").mkdir()
    (run.folder.path / "checkpoints" / "last.pt").touch()
    runs.training.choose((run,))
    monkeypatch.setattr(QInputDialog, "getInt", lambda *words: (asked.append(words[3:]), answers.pop())[1])
    monkeypatch.setattr(runs.training, "resume", lambda *words: resumed.append(words))
    button = panel.findChild(QToolButton, "training_runs.extend")
    for step, total, proposed, least in ((20, 20, 40, 21), (30, 10, 31, 31)):
        run.snapshot = replace(run.snapshot, step=step, total_steps=total)
        runs.training.updated.emit()
        answers = [(50, True), (50, False)]
        for _ in range(2):
            qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        assert [words[:2] for words in asked] == [(proposed, least)] * 2
        assert [words[1] for words in resumed] == [{"steps": "50"}]
        asked.clear()
        resumed.clear()


@pytest.mark.parametrize(
    "answer", [Notes("a title", "text"), Notes("", "text"), Notes("a title", ""), Notes("", ""), None]
)
def test_all_that_was_entered_is_saved_as_the_notes_of_a_run(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch, answer: Notes | None
) -> None:
    """An empty name brings that of the folder back."""
    panel = TrainingRunsPanel(context)
    shown(qtbot, panel)
    run, saved = runs.add("a"), []
    runs.training.choose((run,))
    monkeypatch.setattr("app.ui.train.runs_panel.ask_notes", lambda _parent, shot: answer)
    monkeypatch.setattr(runs.training, "write_notes", lambda *words: saved.append(words))
    qtbot.mouseClick(panel.findChild(QToolButton, "training_runs.notes"), Qt.MouseButton.LeftButton)
    assert saved == ([(run, answer)] if answer is not None else [])


def test_everything_that_the_panel_says_is_in_the_request_of_a_run(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    panel, asked = TrainingPanel(context), []
    shown(qtbot, panel)
    for name in ("start", "make_samples"):
        monkeypatch.setattr(runs.training, name, lambda request, name=name: asked.append((name, request)))
    opened: list[tuple[Document, StartRequest]] = []
    monkeypatch.setattr(
        "app.ui.train.training_panel.SweepDialog",
        lambda document, base, _parent: opened.append((document, base)) or FakeDialog(),
    )
    part = Template("part", (Layer("in", "template_input"), Layer("out", "template_output", inputs=(Source("in"),))))
    assert context.document.do(lambda graph: set_template(graph, part))
    assert context.set_scope((ScopeStep("", "part"),))  # what is trained is the network around it
    panel.project.setText(str(tmp_path / "mine"))
    for task, fields in TASK_FIELDS.items():
        panel.task.setCurrentIndex(panel.task.findData(task))
        panel.task.activated.emit(panel.task.currentIndex())
        values = {name: f"value of {name}" for name in fields if name != "amp"}
        for name, widget in panel.form.fields.items():
            if isinstance(widget, QLineEdit):
                widget.setText(values.get(name, "hidden") if name != "more" else "--ema 0.5")
            else:
                widget.setChecked(True)
        for host, python in (("", "~/python"), ("gpu", ""), ("gpu", "~/python")):
            panel.place.box.setCurrentText(host or "This machine")
            panel.place.python_line.setText(python)
            assert panel.place.python_line.isVisible() is bool(host)
            options = {**values, "amp": True, "ema": "0.5"}
            expected = StartRequest(tmp_path / "mine", options, task, host, python or "python3")
            for button in (panel.start, panel.samples, panel.sweep):
                qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
            assert asked == [("start", expected), ("make_samples", expected)]
            assert opened == [(context.root, expected)]
            asked.clear()
            opened.clear()


class FakeDialog(QDialog):
    """Stands in for the dialog of a sweep."""

    requested = Signal(object)

    def open(self) -> None:
        pass


SHARED = {"validation", "steps", "batch", "lr", "validate_every", "seed", "device", "stop_on", "amp"}
TASK_FIELDS = {
    "denoising": SHARED | {"data", "noise", "patch"},
    "restoration": SHARED | {"inputs", "targets", "patch"},
    "super-resolution": SHARED | {"data", "patch"},
    "segmentation": SHARED | {"inputs", "targets", "patch"},
    "classification": SHARED | {"data"},
}


def test_what_happened_while_a_panel_was_hidden_is_shown_when_it_is_shown(
    qtbot: QtBot, context: Context, runs: Runs
) -> None:
    panel = TrainingRunsPanel(context)
    shown(qtbot, panel)
    run, other = runs.add("a"), runs.add("b")
    runs.training.choose((run,))

    def more(of: WatchedRun, loss: float) -> None:
        with of.folder.metrics.open("a") as stream:
            stream.write(json.dumps({"step": 21, "loss": loss}) + "\n")
        runs.read(of)

    for change in (
        lambda: more(run, 7.0),
        lambda: runs.training.choose((other, run)),
        lambda: more(other, 9.0),
        panel.logarithmic.click,
        lambda: panel.smoothing.setCurrentIndex(2),
        lambda: runs.training.choose((other,)),
        lambda: runs.training._set_runs([run]),
    ):
        panel.hide()
        change()
        panel.show()
        share = panel.smoothing.currentData()
        expected = [
            Curve(r.snapshot.title, *r.snapshot.curves.points("loss")).smoothed(share) for r in runs.training.chosen
        ]
        drawn = panel.plot._curves
        assert [(c.title, c.x.tolist(), c.y.tolist()) for c in drawn] == [
            (c.title, c.x.tolist(), c.y.tolist()) for c in expected
        ]
        assert panel.plot._logarithmic is panel.logarithmic.isChecked()


def test_the_row_of_a_sweep_is_selected_only_while_all_of_its_trials_are_chosen(
    qtbot: QtBot, context: Context, runs: Runs, tmp_path: Path
) -> None:
    panel = TrainingRunsPanel(context)
    shown(qtbot, panel)
    alone = runs.add("alone")
    sweep = Sweep(tmp_path / "one", tuple(trials([Axis.parse("lr=0.1,0.2")], 0)), {})
    trained = [WatchedRun(make_run(sweep.project(t), t.name, settings=dict(t.values))) for t in sweep.trials]
    for run in trained:
        run.read()
    snapshot = SweepSnapshot(sweep, RunState.STOPPED)
    runs.training._set_runs([alone, *trained], {sweep.folder: snapshot})
    table, model = panel.table, panel.model

    def selected() -> list[object]:
        items = [model.item(index) for index in table.selectionModel().selectedRows()]
        return [item if isinstance(item, WatchedRun) else "sweep" for item in items]

    flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
    for chosen in (trained[:1], trained[1:], [alone], [alone, *trained], []):
        (row,) = model.sweeps()
        table.selectionModel().select(model.index_of(row), flags)
        assert runs.training.chosen == tuple(trained)
        assert set(selected()) == {"sweep", *trained}
        runs.training.updated.emit()
        assert set(selected()) == {"sweep", *trained}
        runs.training.choose(chosen)  # by another panel
        assert set(selected()) == set(chosen)
        assert len(selected()) == len(chosen)
        delete = panel._buttons["delete"]
        assert delete.isEnabled() is bool(chosen)


def test_a_sweep_stays_folded_or_unfolded_while_its_trials_train(
    qtbot: QtBot, context: Context, runs: Runs, tmp_path: Path
) -> None:
    panel = TrainingRunsPanel(context)
    shown(qtbot, panel)
    sweeps, trained = {}, [runs.add("alone")]
    for name in ("one", "two"):
        sweep = Sweep(tmp_path / name, tuple(trials([Axis.parse("lr=0.1,0.2")], 0)), {})
        sweeps[sweep.folder] = SweepSnapshot(sweep, RunState.RUNNING)
        for trial in sweep.trials:
            trained.append(WatchedRun(make_run(sweep.project(trial), trial.name, settings=dict(trial.values))))
            trained[-1].read()
    table, model = panel.table, panel.model

    def again() -> list[bool]:
        """After each thing that makes the rows anew: which sweeps are unfolded."""
        found = []
        for act in (
            lambda: runs.training._set_runs(list(trained), sweeps),
            lambda: runs.training.choose(trained[1:3]),  # a column of what differs appears
            runs.training.updated.emit,
            lambda: runs.training.choose(()),
        ):
            act()
            found.append([table.isExpanded(model.index_of(row)) for row in model.sweeps()])
        assert found == found[:1] * len(found)
        return found[0]

    assert again() == [True, True]
    for fold, expected in (
        ((0, False), [False, True]),
        ((1, False), [False, False]),
        ((0, True), [True, False]),
        ((1, True), [True, True]),
        ((1, False), [True, False]),
    ):
        table.setExpanded(model.index_of(model.sweeps()[fold[0]]), fold[1])
        assert again() == expected


def test_a_folder_that_is_chosen_is_that_of_its_field(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = TrainingPanel(context)
    shown(qtbot, panel)
    button = panel.findChild(QToolButton, "training.project.browse")
    begun: list[str] = []
    for answer, expected in (("/projects/mine", "/projects/mine"), ("", "/projects/mine"), ("/other", "/other")):
        before = panel.project.text()
        monkeypatch.setattr(
            QFileDialog, "getExistingDirectory", lambda *words, answer=answer: (begun.append(words[2]), answer)[1]
        )
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        assert panel.project.text() == expected
        assert begun[-1] == before  # the dialog begins where the field is


# --- commands of the controller ---------------------------------------------------------------------------------------


def test_weights_of_a_run_take_the_place_of_random_ones_and_undo_brings_those_back(
    qtbot: QtBot, context: Context, runs: Runs
) -> None:
    document, said = context.root, list[tuple[str, str]]()
    context.message.connect(lambda level, text: said.append((level, text)))
    document.change_settings(random_seed=3)
    run = runs.add("a")
    needed = required_weights(document.inference)
    save_weights(run.folder.path / "checkpoints" / "best", fill_missing(Weights(), needed, 3).tensors)
    run.folder.write_notes(Notes("the good one", ""))
    runs.read(run)
    runs.training.use_weights(run)
    qtbot.waitUntil(lambda: not runs.training.busy, timeout=WAIT)
    settings = document.settings
    assert (Path(settings.weights).exists(), settings.random_seed) == (True, None)
    assert said == [("info", f"{document.title} uses the weights of the good one")]
    document.undo()
    assert (document.settings.weights, document.settings.random_seed) == ("", 3)


def test_a_run_from_a_step_of_another_one_names_it_and_begins_with_its_weights(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.add("a", lr=0.5, steps=7, from_weights="/of/an/earlier/run")
    run.folder.write_notes(Notes("the good one", ""))
    runs.read(run)
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr("app.ui.engine.training.write_frame", lambda *words: asked.append(words))

    def start(folder: RunFolder, options: dict[str, object], *, resume: bool = False) -> None:
        asked.append((folder, options, resume))
        make_run(folder.project, folder.name, settings={})

    monkeypatch.setattr("app.ui.engine.training.trainer.start", start)
    runs.training.fork(run, 5)
    qtbot.waitUntil(lambda: not runs.training.busy, timeout=WAIT)
    (trail, step, source, _), (folder, options, resume) = asked
    assert (trail, step) == (run.folder.trail, 5)
    assert folder.project == run.folder.project
    assert folder.path != run.folder.path
    assert source == folder.path / "from_weights"
    assert (options["from_weights"], options["lr"], options["steps"], resume) == (str(source), "0.5", "7", False)
    assert folder.notes() == Notes("", "From step 5 of the good one")
    assert runs.training.current is not None
    assert runs.training.current.folder.path == folder.path
    assert str(folder.path) in {known.folder for known in run_registry.known_runs()}


def test_a_deleted_sweep_leaves_no_trial_in_the_list_in_the_registry_or_on_the_disk(
    qtbot: QtBot, context: Context, runs: Runs, tmp_path: Path
) -> None:
    """Also of trials that have not started; other runs and sweeps stay."""
    alone, sweeps, trained = runs.add("alone"), {}, []
    for name in ("one", "two"):
        sweep = Sweep(tmp_path / name, tuple(trials([Axis.parse("lr=0.1,0.2,0.3")], 0)), {})
        sweep.open("a network")
        sweeps[sweep.folder] = SweepSnapshot(sweep, RunState.STOPPED)
        for trial in sweep.trials:
            run_registry.remember(sweep.run(trial).path, None)
        for trial in sweep.trials[:2]:
            trained.append(WatchedRun(make_run(sweep.project(trial), trial.name, settings=dict(trial.values))))
            trained[-1].read()
    run_registry.remember(alone.folder.path, None)
    runs.training._set_runs([alone, *trained], sweeps)
    runs.training.choose((trained[0], trained[2]))
    first, second = sweeps.values()

    def known() -> set[str]:
        return {each.folder for each in run_registry.known_runs()} & {
            str(path)
            for path in (alone.folder.path, *(s.sweep.run(t).path for s in (first, second) for t in s.sweep.trials))
        }

    assert len(known()) == 7
    running = replace(trained[1].snapshot, state=RunState.RUNNING)
    assert running.state.trains
    runs.training.delete_sweep(first)
    assert runs.training.problem == ""
    assert not first.folder.exists()
    assert runs.training.runs == [alone, *trained[2:]]
    assert runs.training.chosen == (trained[2],)
    assert list(runs.training.sweeps) == [second.folder]
    assert known() == {str(alone.folder.path), *(str(second.sweep.run(t).path) for t in second.sweep.trials)}
    runs.training.delete(alone)
    assert runs.training.runs == trained[2:]
    assert str(alone.folder.path) not in known()
    assert all(run.folder.path.exists() for run in trained[2:])


def test_every_step_that_is_asked_for_is_shown_whatever_was_shown_before(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the same one after the weights of the document, and after a step that cannot be read."""
    shown_: list[str] = []
    monkeypatch.setattr(
        analysis_of(context), "show_weights", lambda path: shown_.append(path.stem if path else "document")
    )
    machine, failed, changed = time_machine_of(context), list[str](), list[int | None]()
    machine.failed.connect(failed.append)
    machine.changed.connect(lambda: changed.append(machine.step))
    made = [runs.add(name) for name in "ab"]
    for run in made:
        run.folder.trail.mkdir()
        for step in (5, 10):
            with (run.folder.trail / "index.jsonl").open("a") as stream:
                stream.write(json.dumps({"step": step, "file": f"{step}.npz", "kind": "key"}) + "\n")
            np.savez(run.folder.trail / f"{step}.npz", weight=np.full(3, step, np.float32))

    def go(step: int, run: WatchedRun = made[0]) -> list[str]:
        machine.go(run, step)
        qtbot.waitUntil(lambda: not machine._job.running, timeout=WAIT)
        found, shown_[:] = list(shown_), []
        return found

    def leave() -> list[str]:
        machine.leave()
        found, shown_[:] = list(shown_), []
        return found

    assert go(5) == ["5"]
    assert go(7) == [], "the latest recorded step is shown already"
    assert machine.step == 7
    assert go(10) == ["10"]
    assert leave() == ["document"]
    assert leave() == []
    assert machine.step is None
    assert go(10) == ["10"]
    assert leave() == ["document"]
    assert go(5) == ["5"]
    assert go(5, made[1]) == ["5"], "of another run"
    assert go(5) == ["5"]
    (made[0].folder.trail / "10.npz").write_bytes(b"broken")
    assert go(10) == []
    assert len(failed) == 1
    assert machine.step == 5, "what is shown is still that"
    assert leave() == ["document"]
    assert go(10) == []
    assert (machine.step, len(failed)) == (None, 2)
    assert go(5) == ["5"]
    runs.training.choose((made[1],))
    assert shown_ == ["document"]
    assert machine.step is None
    assert changed[-1] is None
    shown_.clear()
    machine.go(made[0], 5)
    assert go(10, made[1]) == ["10"], "what was read of another run in between is not shown"


def test_weights_of_a_step_are_in_a_file_and_the_latest_files_are_kept(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While weights are read, only the latest of several requests is kept."""
    from app.ui.engine import time_machine as module
    from designer.files.safetensors_file import read_entries, read_entry

    monkeypatch.setattr(module, "KEPT", 2)
    paths: list[Path | None] = []
    monkeypatch.setattr(analysis_of(context), "show_weights", paths.append)
    machine = time_machine_of(context)
    assert time_machine_of(context) is machine
    failed: list[str] = []
    machine.failed.connect(failed.append)
    run = runs.add("a")
    run.folder.trail.mkdir()
    steps = (0, 5, 10, 15, 20)
    for step in steps:
        with (run.folder.trail / "index.jsonl").open("a") as stream:
            stream.write(json.dumps({"step": step, "file": f"{step}.npz", "kind": "key"}) + "\n")
        np.savez(run.folder.trail / f"{step}.npz", weight=np.full(3, step + 1, np.float32))
    for step in (5, 10, 0, 15, 0):
        machine.go(run, step)
        qtbot.waitUntil(lambda: not machine._job.running, timeout=WAIT)
        latest = paths[-1]
        assert latest is not None
        assert latest.stem == str(step)
        ((name, entry),) = read_entries(latest).items()
        assert read_entry(latest, name, entry).tolist() == [step + 1] * 3
    assert sorted(path.name for path in latest.parent.iterdir()) == ["0.safetensors", "15.safetensors"]
    del paths[:]
    for step in (5, 10, 20):
        machine.go(run, step)
    assert machine.step == 20
    qtbot.waitUntil(lambda: not machine._job.running, timeout=WAIT)
    assert [path and path.stem for path in paths][-1] == "20"
    assert "10" not in [path and path.stem for path in paths]
    assert failed == []
    machine.go(run, 5)
    machine.leave()
    qtbot.waitUntil(lambda: not machine._job.running, timeout=WAIT)
    assert paths[-1] is None, "what is written after one has left is not shown"
    assert machine.step is None


# --- the form of a new run --------------------------------------------------------------------------------------------


def test_the_recipe_of_the_document_is_shown_for_its_task_only(qtbot: QtBot, context: Context, runs: Runs) -> None:
    context.root.change_settings(task="restoration", recipe={"lr": "0.5", "batch": "3", "epochs": "7", "patch": "17"})
    panel = TrainingPanel(context)
    shown(qtbot, panel)
    usual = {field.name: field.default for field in FIELDS}

    def proposed() -> dict[str, str]:
        names = ("lr", "batch", "steps", "patch", "seed")
        return {name: panel.form.fields[name].placeholderText() for name in names}

    def choose(task: str) -> None:
        panel.task.setCurrentIndex(panel.task.findData(task))
        panel.task.activated.emit(panel.task.currentIndex())

    plain = {name: usual[name] for name in ("lr", "batch", "steps", "patch", "seed")}
    recipe = {**plain, "lr": "0.5", "batch": "3", "steps": "7 epochs", "patch": "17"}
    assert panel.task.currentData() == "restoration"
    assert proposed() == recipe
    for task in ("denoising", "restoration", "classification", "segmentation", "restoration"):
        choose(task)
        assert proposed() == (recipe if task == "restoration" else plain), task
        assert panel.example.isVisible() is (task in ("classification", "segmentation"))
    other = Document(context.root.graph.copy(), context.registry, parent=context)
    other.project = context.root.project
    context.set_document(other)
    assert proposed() == plain


def test_the_task_is_that_of_the_whole_network_if_it_is_not_too_large(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while a template is shown. Exactly as many layers as allowed are few enough; a network with errors has none."""
    from exporters.pytorch import tasks

    panel = TrainingPanel(context)
    qtbot.addWidget(panel)
    asked: list[object] = []

    def task_of(graph: Graph, registry: object) -> object:
        asked.append(graph)
        return tasks.TASKS["segmentation"]

    monkeypatch.setattr(tasks, "task_of_network", task_of)
    count = len(context.root.graph)
    for most, task in ((count - 1, ""), (count, "segmentation"), (count + 1, "segmentation")):
        assert panel._task_of_network(most) == task
    assert asked == [context.root.graph] * 2
    inner = (
        Layer("x", "template_input", params={"index": "0"}),
        *(Layer(f"i{number}", "identity", inputs=(Source("x"),)) for number in range(count)),
        Layer("y", "template_output", inputs=(Source("i0"),), params={"index": "0"}),
    )
    context.root.do(lambda g: set_template(g, Template("part", inner)))
    context.root.do(lambda g: add_layer(g, Layer("use", "template", params={"template": "part"})))
    context.enter("use")
    assert len(context.document.graph) > count + 1
    asked.clear()
    assert panel._task_of_network(count + 1) == "segmentation"
    assert asked == [context.root.graph]
    asked.clear()

    def refuse(graph: Graph, registry: object) -> object:
        raise DiagnosticError((Diagnostic("unfinished", "it has no output"),))

    monkeypatch.setattr(tasks, "task_of_network", refuse)
    assert panel._task_of_network(count + 1) == ""


def test_the_task_of_the_document_stays_whatever_the_network_suggests(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so does one that the user chose; else it follows the network."""
    suggested = ["denoising"]
    monkeypatch.setattr(TrainingPanel, "_task_of_network", lambda _self, _most: suggested[0])
    panel = TrainingPanel(context)
    shown(qtbot, panel)

    def edit(task: str) -> str:
        suggested[0] = task
        panel._follow_network()
        return str(panel.task.currentData())

    assert [edit(task) for task in ("classification", "", "super-resolution")] == [
        "classification", "classification", "super-resolution"
    ]  # fmt: skip
    context.root.change_settings(task="segmentation")
    assert edit("denoising") == "super-resolution", "what is shown stays until the document is shown again"
    context.root.change_settings(task="")
    assert edit("denoising") == "denoising"
    panel.task.setCurrentIndex(panel.task.findData("restoration"))
    panel.task.activated.emit(panel.task.currentIndex())
    assert edit("classification") == "restoration"
    other = Document(context.root.graph.copy(), context.registry, parent=context)
    other.project = context.root.project
    other.change_settings(task="segmentation")
    context.set_document(other)
    assert panel.task.currentData() == "segmentation"
    assert edit("denoising") == "segmentation"


def test_a_softmax_suggests_another_task(qtbot: QtBot, runs: Runs) -> None:
    """An edit after which every shape is the same; edits without a result do not matter."""
    conv = Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "5"})
    graph = Graph(
        [Layer("image", "input", params={"dims": "8x8x3"}), conv, Layer("out", "output", inputs=(Source("conv"),))]
    )
    context = Context(default_registry())
    document = Document(graph, context.registry, parent=context)
    context.set_document(document)
    panel = TrainingPanel(context)
    panel._settled.setInterval(1)
    shown(qtbot, panel)
    qtbot.waitUntil(lambda: not panel._settled.isActive())
    assert panel.task.currentData() == "denoising"
    states = dict(document.inference.states)
    for act, task in (
        (lambda: document.do(lambda g: set_activation(g, ["conv"], ActivationSpec("softmax"))), "segmentation"),
        (document.undo, "denoising"),
        (document.redo, "segmentation"),
    ):
        act()
        assert {name: state.outputs for name, state in document.inference.states.items()} == {
            name: state.outputs for name, state in states.items()
        }
        qtbot.waitUntil(lambda: not panel._settled.isActive())
        assert panel.task.currentData() == task
    document.do(lambda g: move_layers(g, {"conv": (64, 64)}))
    document.change_settings(threads=3)
    assert not panel._settled.isActive()


def test_the_task_of_a_clone_stays_whatever_the_network_suggests(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    suggested = ["denoising"]
    monkeypatch.setattr(TrainingPanel, "_task_of_network", lambda _self, _most: suggested[0])
    panel = TrainingPanel(context)
    shown(qtbot, panel)
    task = "restoration"
    run = WatchedRun(make_run(runs.project, "a", settings={"steps": 20}, task=task))
    run.read()
    runs.training._set_runs([run])
    runs.training.clone_requested.emit(run)
    assert panel.task.currentData() == task
    suggested[0] = "classification"
    panel._follow_network()
    assert panel.task.currentData() == task


def test_buttons_say_what_is_begun_and_the_message_what_was_refused_until_it_is_over(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = runs.training
    panel = TrainingPanel(context)
    shown(qtbot, panel)
    begun: list[str] = []

    def begin(name: str) -> None:
        begun.append(name)
        training._starting = True
        training._say("")
        training.updated.emit()

    def end(problem: str = "") -> None:
        training._starting = False
        if problem:
            training._say(problem)
        training.updated.emit()

    for name in ("start", "start_sweep", "make_samples", "make_example_data"):
        monkeypatch.setattr(training, name, lambda *_, name=name: begin(name))

    def state() -> tuple[str, str, bool, str]:
        return panel.start.text(), panel.example.text(), panel.start.isEnabled(), panel.problem.text()

    idle = ("Start Training", "Make Example Data", True, "")
    assert state() == idle
    for problem in ("", "The folder is not empty.", ""):
        panel.start.click()
        assert state() == ("Starting ...", "Make Example Data", False, "")
        assert panel.start.toolTip() == "Unavailable: a run is being started"
        assert not panel.samples.isEnabled()
        end(problem)
        assert state() == (*idle[:3], problem)
        assert panel.start.toolTip().startswith("Export the project")
        panel._start_sweep(SweepRequest(Path("sweep"), (), {}, "denoising"))
        assert (*state(), panel.sweep.text()) == ("Start Training", "Make Example Data", False, "", "Starting ...")
        end(problem)
        assert (*state(), panel.sweep.text()) == (*idle[:3], problem, "Sweep...")
    panel.form.set_text("more", "ema 0.9")
    panel.start.click()
    assert state()[:3] == idle[:3]
    assert panel.problem.text()
    panel.form.set_text("more", "")
    panel._make_example_data()
    assert state() == ("Start Training", "Making Example Data ...", False, "")
    assert panel.start.toolTip() == "Unavailable: example data are being made"
    end()
    assert state() == idle
    panel.samples.click()
    assert state() == ("Start Training", "Make Example Data", False, "")
    assert panel.start.toolTip() == "Unavailable: a run is being started"
    end()
    assert state() == idle
    assert begun == ["start", "start_sweep"] * 3 + ["make_example_data", "make_samples"]
    training._say("It was refused.")
    assert panel.problem.text() == "It was refused."
    other = Document(Graph(), context.registry, parent=context)
    other.project = context.root.project
    context.set_document(other)
    assert panel.problem.text() == ""
    assert panel.start.toolTip() == "Unavailable: the network has no layers"
    assert not panel.start.isEnabled()


def test_a_trial_that_is_found_in_its_folder_shows_what_its_sweep_changes(
    qtbot: QtBot, context: Context, runs: Runs, tmp_path: Path
) -> None:
    """Its widths, which are not among the settings of a run, and the folders of data of this machine; other runs have their own."""
    options = {"data": "/photos", "steps": "5"}
    sweep = Sweep(tmp_path / "one", tuple(trials([Axis.parse("width.conv=4,8"), Axis.parse("lr=0.1")], 0)), options)
    sweep.open("a network")
    settings = {"lr": 0.1, "data": "/there", "seed": 3}
    for trial in sweep.trials:
        make_run(sweep.project(trial), trial.name, settings=settings)
    make_run(runs.project, "alone", settings=settings)
    document = context.root
    for path in (sweep.run(sweep.trials[0]).path, runs.project / "runs" / "alone"):
        run_registry.remember(path, tmp_path / "a.xml")
    document.path = tmp_path / "a.xml"
    document.path_changed.emit()
    training = runs.training

    def found_all() -> bool:
        training.look()  # the second trial is found as one of the sweep
        return len(training.runs) == 3

    qtbot.waitUntil(found_all, timeout=WAIT)
    assert list(training.sweeps) == [sweep.folder]
    shown_now = {run.folder.project: run.snapshot.compared for run in training.runs}
    assert shown_now == {
        runs.project: settings,
        sweep.project(sweep.trials[0]): {**settings, "data": "/photos", "width.conv": "4"},
        sweep.project(sweep.trials[1]): {**settings, "data": "/photos", "width.conv": "8"},
    }
    assert training.project() == runs.project
    (found,) = training.sweeps.values()
    assert [run.folder.project for run in training.trials_of(found)] == [sweep.project(t) for t in sweep.trials]
    assert [training.sweep_of(run) for run in training.runs].count(found) == 2


def test_the_chosen_runs_stay_in_their_order_while_others_come_and_go(
    qtbot: QtBot, context: Context, runs: Runs
) -> None:
    """The first of them is the current one."""
    a, b, c = (runs.add(name) for name in "abc")
    training, heard = runs.training, []
    training.chosen_changed.connect(lambda: heard.append(training.chosen))
    training.choose((c, a, b))
    heard.clear()
    for now, chosen in (
        ([b, c, a], (c, a, b)),
        ([a, b, c, runs.add("d")], (c, a, b)),
        ([a, c], (c, a)),
        ([c, a, b], (c, a)),
        ([b, a], (a,)),
        ([], ()),
        ([a, b, c], ()),
    ):
        before = training.chosen
        training._set_runs(now)
        assert (training.runs, training.chosen) == (now, chosen)
        assert training.current is (chosen[0] if chosen else None)
        assert heard == ([chosen] if chosen != before else [])
        heard.clear()


@pytest.mark.parametrize("other", [True, False])
def test_a_run_that_was_started_is_listed_and_shown_in_its_own_document(
    qtbot: QtBot, context: Context, runs: Runs, monkeypatch: pytest.MonkeyPatch, other: bool
) -> None:
    training = runs.training
    first, known = context.root, runs.add("known")
    if other:
        context.set_document(Document(Graph(), context.registry, parent=context))
        qtbot.waitUntil(training._timer.isActive, timeout=WAIT)
        training._timer.stop()
    training._set_runs([known])
    training.choose((known,))
    training._origin = first
    looked: list[int] = []
    monkeypatch.setattr(training, "look", lambda: looked.append(1))
    started = make_run(runs.project, "started", settings={})
    for again in (False, True):
        training._on_started(started)
        names = [run.folder.name for run in training.runs]
        assert names == (["known"] if other else ["known", "started"]), again
        assert [run.folder.name for run in training.chosen] == [names[-1]]
        assert looked == ([] if other else [1])
        looked.clear()


@pytest.mark.parametrize("value", [0.0, 0.25])
def test_metrics_of_a_run_are_shown_also_if_they_are_0(tmp_path: Path, value: float) -> None:
    """A metric without a value has no line."""
    names = ("loss", "validation.accuracy", "validation.iou", "learning_rate", "throughput", "memory")
    known = {name: np.array([value, np.nan]) for name in names if name != "validation.iou"}
    curves = Curves(np.array([1, 2]), {**known, "validation.iou": np.array([np.nan, value])})
    shot = RunSnapshot(RunFolder(tmp_path), curves=curves)
    lines = [re.split(r"\s{2,}", line) for line in metric_lines(shot)]
    assert lines == [
        ["loss", digits(value)],
        ["accuracy", digits(value)],
        ["mean IoU", digits(value)],
        ["learning rate", f"{value:g}"],
        ["images/s", digits(value)],
        ["memory", binary(value)],
    ]
    assert metric_lines(RunSnapshot(RunFolder(tmp_path))) == []
