"""Training in the window: a run is started, watched, stopped, resumed, compared, noted, deleted, and its weights are used."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from ast import literal_eval
from pathlib import Path
from threading import Event

import numpy as np
import pytest

pytest.importorskip("PySide6")

from painted import strokes
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QColor, QImage, QPainter, QPen
from PySide6.QtWidgets import QApplication, QLabel, QMessageBox
from training_kit import WAIT, exported, make_run, training
from window_kit import network, open_window, show

import resources
import samples
from app.ui.document.document import Document
from app.ui.engine.training import StartRequest, default_project, training_of
from app.ui.shell.panels import TRAIN
from app.ui.train.curve_legend import LINE, CurveLegend
from app.ui.train.settings_form import FIELDS, SettingsForm
from app.ui.widgets.tooltips import plain_tip
from designer.files.weights import Weights, fill_missing, load_weights, required_weights, save_weights
from designer.graph.commands import set_params
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.training.run_folder import Notes, RunFolder
from designer.training.watched_run import RunState, WatchedRun
from exporters.pytorch.tasks import SETTING, TASKS, for_task

pytestmark = pytest.mark.gui
__all__ = ["exported", "training"]


def start(training, qtbot, project: Path, **options: str):
    """Start a run as the panel does, and wait until it trains."""
    known = set(training.runs)
    training.start(StartRequest(project, options))
    qtbot.waitUntil(lambda: training.problem or any(run not in known for run in training.runs), timeout=WAIT)
    assert not training.problem
    run = next(run for run in training.runs if run not in known)
    return run


def wait_state(qtbot, run, *states: RunState) -> None:
    qtbot.waitUntil(lambda: run.snapshot.state in states, timeout=WAIT)


def widget(window, panel: str, name: str):
    return window.docks.panel(panel).findChild(object, name)


def test_start_trains_in_a_process_and_draws_its_curve(window, training, exported, qtbot):
    panel = window.docks.panel("training")
    panel.project.setText(str(exported))
    panel.form.set_text("steps", "30")
    panel.form.set_text("lr", "0.01")
    panel.form.set_text("more", "--delay 0.001")
    panel.form.fields["data"].clear()
    panel.form.fields["noise"].clear()
    qtbot.mouseClick(panel.start, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(training.runs), timeout=WAIT)
    run = training.runs[0]
    wait_state(qtbot, run, RunState.FINISHED)
    assert run.snapshot.settings["lr"] == 0.01
    assert training.current is run
    plot = window.docks.panel("training_runs").plot
    qtbot.waitUntil(lambda: len(plot.bundle._curves) == 1 and len(plot.bundle._curves[0].x) == 30, timeout=WAIT)
    assert plot.bundle._curves[0].y.tolist() == [1 / step for step in range(1, 31)]
    state = widget(window, "training", "training.state")
    qtbot.waitUntil(lambda: state.text() == "finished, step 30 of 30", timeout=WAIT)
    assert "PSNR (dB)" in widget(window, "training", "training.metrics").text()


def test_a_network_without_a_file_keeps_the_project_that_it_trains_in(window, training, exported, qtbot, tmp_path):
    """Its runs are found again after it is saved and opened again."""
    run = start(training, qtbot, exported, steps="5")
    wait_state(qtbot, run, RunState.FINISHED)
    assert window.context.root.settings.project == str(exported)
    assert window.files.save_to(tmp_path / "mine.xml")
    window.files.new()
    window.tabs.remove(window.tabs.find(tmp_path / "mine.xml"))
    assert window.files.open(tmp_path / "mine.xml")
    qtbot.waitUntil(lambda: [each.folder.path for each in training.runs] == [run.folder.path], timeout=WAIT)


def test_pause_continue_stop_and_resume(window, training, exported, qtbot):
    run = start(training, qtbot, exported, steps="100000", delay="0.002")
    wait_state(qtbot, run, RunState.RUNNING)
    qtbot.waitUntil(lambda: "left" in widget(window, "training", "training.state").text(), timeout=WAIT)
    pause = widget(window, "training", "training.pause")
    qtbot.mouseClick(pause, Qt.MouseButton.LeftButton)
    wait_state(qtbot, run, RunState.PAUSED)
    qtbot.waitUntil(lambda: pause.text() == "Continue", timeout=WAIT)
    qtbot.mouseClick(pause, Qt.MouseButton.LeftButton)
    wait_state(qtbot, run, RunState.RUNNING)
    qtbot.mouseClick(widget(window, "training", "training.stop"), Qt.MouseButton.LeftButton)
    wait_state(qtbot, run, RunState.STOPPED)
    resume = widget(window, "training", "training.resume")
    qtbot.waitUntil(resume.isVisible, timeout=WAIT)
    step = run.snapshot.step
    training.resume(run, {"steps": str(step + 2)})
    wait_state(qtbot, run, RunState.FINISHED)
    assert run.snapshot.step == step + 2


def test_a_run_survives_its_window_and_is_found_again(qtbot, tmp_path, exported):
    first = open_window(qtbot, tmp_path)
    first.files.open_all([shutil.copy(Path(__file__).parents[2] / "samples" / "denoiser.xml", tmp_path / "net.xml")])
    run = start(training_of(first.context), qtbot, exported, steps="100000", delay="0.002")
    wait_state(qtbot, run, RunState.RUNNING)
    pid = run.folder.process()
    first.close_now()
    second = open_window(qtbot, tmp_path)
    second.files.open_all([tmp_path / "net.xml"])
    training = training_of(second.context)
    qtbot.waitUntil(lambda: len(training.runs) == 1, timeout=WAIT)
    found = training.runs[0]
    assert found.folder.path == run.folder.path
    assert found.folder.process() == pid
    wait_state(qtbot, found, RunState.RUNNING)
    training.send(found, "stop")
    wait_state(qtbot, found, RunState.STOPPED)


def test_two_windows_watch_one_run_and_one_of_them_resumes_it(qtbot, tmp_path, exported):
    windows = [open_window(qtbot, tmp_path / str(number)) for number in range(2)]
    for window in windows:  # as two processes would have it open
        context = window.context
        context.set_document(Document(network(), context.registry, tmp_path / "net.xml", parent=context))
    one, other = (training_of(window.context) for window in windows)
    run = start(one, qtbot, exported, steps="100000", delay="0.002")
    qtbot.waitUntil(lambda: len(other.runs) == 1, timeout=WAIT)
    same = other.runs[0]
    wait_state(qtbot, same, RunState.RUNNING)
    other.send(same, "stop")
    wait_state(qtbot, run, RunState.STOPPED)
    wait_state(qtbot, same, RunState.STOPPED)
    qtbot.waitUntil(lambda: not run.folder.process(), timeout=WAIT)
    one.resume(run)
    wait_state(qtbot, run, RunState.RUNNING)
    other.resume(same)
    qtbot.waitUntil(lambda: "is training already" in other.problem, timeout=WAIT)
    assert not one.problem


@pytest.mark.parametrize(
    ("state", "problem", "shown"),
    [
        ("finished", None, ""),  # what the trainer says then are hints for a terminal
        ("stopped", None, ""),
        ("stopped", {"layer": "conv", "kind": "dead", "since": 3}, "Stopped by a rule: conv: dead units since step 3."),
        ("failed", None, "Continue with --resume."),
    ],
)
def test_what_a_run_says_when_it_has_ended(window, training, exported, qtbot, state, problem, shown):
    folder = make_run(exported, "a", settings={})
    status = {"state": state, "pid": 0, "step": 20, "message": "continue with --resume"}
    (folder.path / "status.json").write_text(json.dumps(status))
    folder.health.write_text(json.dumps({"step": 20, "layers": {}, "stopped_by": problem}) + "\n")
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 1, timeout=WAIT)
    training.choose(training.runs)
    assert widget(window, "training", "training.message").text() == shown


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_trainer_is_reported_and_can_be_resumed(window, training, exported, qtbot):
    run = start(training, qtbot, exported, steps="100000", delay="0.002")
    qtbot.waitUntil(lambda: run.snapshot.step > 20, timeout=WAIT)
    os.kill(run.folder.process(), signal.SIGKILL)
    wait_state(qtbot, run, RunState.ENDED)
    message = widget(window, "training", "training.message")
    qtbot.waitUntil(lambda: "Resume continues from the last checkpoint" in message.text(), timeout=WAIT)
    qtbot.mouseClick(widget(window, "training", "training.resume"), Qt.MouseButton.LeftButton)
    wait_state(qtbot, run, RunState.RUNNING)


def test_a_failed_run_says_why(window, training, exported, qtbot):
    run = start(training, qtbot, exported, steps="50", fail="5")
    wait_state(qtbot, run, RunState.FAILED)
    assert run.snapshot.message == "the loss is NaN; use a smaller learning rate"


def test_options_that_the_project_refuses_are_reported(window, training, exported, qtbot):
    run = start(training, qtbot, exported, strange="1")
    wait_state(qtbot, run, RunState.FAILED)
    assert "unrecognized arguments: --strange 1" in run.snapshot.message


def test_a_deleted_folder_disappears_with_a_message(window, training, exported, qtbot):
    run = start(training, qtbot, exported, steps="3")
    wait_state(qtbot, run, RunState.FINISHED)
    qtbot.waitUntil(lambda: not run.folder.process(), timeout=WAIT)
    with qtbot.waitSignal(
        window.context.message, check_params_cb=lambda kind, text: "was deleted" in text, timeout=WAIT
    ):
        shutil.rmtree(run.folder.path)
    assert training.runs == []


def test_weights_are_used_as_an_edit(window, training, exported, qtbot):
    document = window.context.root
    folder = make_run(exported, "a", settings={})
    wanted = fill_missing(Weights(), required_weights(document.inference), 3).tensors
    save_weights(folder.path / "checkpoints" / "best", wanted)
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 1, timeout=WAIT)
    before = document.settings.weights
    qtbot.mouseClick(widget(window, "training", "training.use"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: document.settings.weights != before, timeout=WAIT)
    used = Path(document.settings.weights)
    training.delete(training.runs[0])
    assert not folder.path.exists()
    found = load_weights(used, required_weights(document.inference)).tensors
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[key], wanted[key]) for key in wanted), "they were copied"
    window.undo()
    assert document.settings.weights == before


def test_weights_of_another_network_are_refused(window, training, exported, qtbot):
    folder = make_run(exported, "a", settings={})
    needed = required_weights(window.context.root.inference)
    save_weights(folder.path / "checkpoints" / "best", {key: np.zeros(7, np.float32) for key in needed})
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 1, timeout=WAIT)
    training.use_weights(training.runs[0])
    qtbot.waitUntil(lambda: "no weights that fit the layer conv" in training.problem, timeout=WAIT)
    assert not window.context.root.settings.weights


def test_a_run_that_starts_while_the_folders_are_read_is_listed_once(training, exported, qtbot, monkeypatch):
    entered, released = Event(), Event()
    real = WatchedRun.read

    def read(self):
        entered.set()
        assert released.wait(WAIT / 1000)
        return real(self)

    run = make_run(exported, "a", settings={})
    monkeypatch.setattr(WatchedRun, "read", read)
    training.look()
    qtbot.waitUntil(entered.is_set, timeout=WAIT)
    training._work(lambda: run, training._on_started)
    qtbot.waitUntil(lambda: bool(training.runs), timeout=WAIT)
    (listed,) = training.runs
    with qtbot.waitSignal(training.updated, timeout=WAIT):
        released.set()
    assert training.runs == [listed]
    assert training.chosen == (listed,)


@pytest.mark.parametrize("is_shown_again", [False, True])
def test_a_run_that_starts_while_another_document_is_open_belongs_to_its_own(
    is_shown_again, window, training, exported, qtbot, tmp_path
):
    context, released = window.context, Event()
    first, second = context.root, Document(network(), context.registry, tmp_path / "other.xml", parent=context)
    run = make_run(exported, "a", settings={})

    def work():
        assert released.wait(WAIT / 1000)
        return run

    training._work(work, training._on_started)
    context.set_document(second)
    if is_shown_again:
        context.set_document(first)
        qtbot.waitUntil(lambda: len(training.runs) == 1, timeout=WAIT)
    released.set()
    qtbot.waitUntil(lambda: not training._starting, timeout=WAIT)
    assert [chosen.folder.path for chosen in training.chosen] == ([run.path] if is_shown_again else [])
    assert len(training.runs) == is_shown_again


def test_differing_settings_of_selected_runs_are_columns(window, training, exported, qtbot):
    for name, rate in (("a", 0.1), ("b", 0.2), ("c", 0.1)):
        make_run(exported, name, settings={"lr": rate, "batch": 8})
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 3, timeout=WAIT)
    panel = window.docks.panel("training_runs")
    training.choose(training.runs[:2])
    model = panel.model
    titles = [
        model.headerData(n, Qt.Orientation.Horizontal, Qt.ItemDataRole.DisplayRole) for n in range(model.columnCount())
    ]
    assert titles[-1] == "lr"
    column = model.columnCount() - 1
    assert [model.index(row, column).data() for row in range(3)] == ["0.1", "0.2", "0.1"]
    assert [bool(model.index(row, column).data(Qt.ItemDataRole.ForegroundRole)) for row in range(3)] == [
        True,
        True,
        False,
    ]
    assert [curve.title for curve in panel.plot.bundle._curves] == ["a", "b"]
    entries = panel.legend.findChildren(QLabel)
    assert [label.text() for label in entries] == ["a", "b"]
    raw = panel.plot.bundle._curves[0]
    panel.smoothing.setCurrentIndex(panel.smoothing.count() - 1)
    smooth = panel.plot.bundle._curves[0]
    assert len(raw.y) >= 20
    half = round(len(raw.y) * 0.05)
    np.testing.assert_allclose(smooth.y[10], raw.y[10 - half : 11 + half].mean())
    np.testing.assert_allclose(smooth.y[0], raw.y[: half + 1].mean())
    assert panel.legend.geometry().bottom() < panel.plot.geometry().top(), "it covers no curves"
    training.choose((training.runs[0], training.runs[2]))
    assert not model.differing

    # runs that are starting differ in nothing; their settings are compared as soon as they are known
    fourth = make_run(exported, "d", settings={})
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 4, timeout=WAIT)
    training.choose((training.runs[0], training.runs[3]))
    assert not model.differing
    (fourth.path / "config.json").write_text(json.dumps({"settings": {"lr": 0.3, "batch": 8}}))
    training.look()
    qtbot.waitUntil(lambda: model.differing == ("lr",), timeout=WAIT)
    assert model.index(3, column).data() == "0.3"


def test_validation_images_of_two_runs_are_compared_step_by_step(window, training, exported, qtbot):
    colors = {"a": {10: "#ff0000", 20: "#880000"}, "b": {10: "#0000ff", 20: "#000088"}}
    for name, shades in colors.items():
        run = make_run(exported, name, settings={})
        for step, color in shades.items():
            folder = run.path / "validation" / f"step_{step:06d}"
            folder.mkdir(parents=True)
            image = QImage(8, 4, QImage.Format.Format_RGB32)
            image.fill(QColor(color))
            assert image.save(str(folder / "photo.png"))
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 2, timeout=WAIT)
    panel = window.docks.panel("validation")
    training.choose(training.runs)
    assert (panel.left.currentText(), panel.right.currentText()) == ("Output of a", "Output of b")

    def halves() -> list[str]:
        return [panel.view.image.pixelColor(x, 1).name() for x in (0, 7)]

    assert halves() == ["#880000", "#000088"]
    panel.step.slider.setValue(panel.step.slider.minimum())
    assert halves() == ["#ff0000", "#0000ff"]
    training.choose(training.runs[:1])
    assert [panel.right.itemText(number) for number in range(panel.right.count())] == ["Input", "Output", "Target"]


def test_the_output_of_another_run_names_its_step_if_it_is_an_earlier_one(window, training, exported, qtbot):
    image = QImage(8, 4, QImage.Format.Format_RGB32)
    image.fill(QColor("#102030"))
    for name, steps in (("a", (5, 10, 20)), ("<b>b</b>", (10,))):
        run = make_run(exported, "b" if name != "a" else name, settings={})
        run.write_notes(Notes(name, ""))
        for step in steps:
            folder = run.path / "validation" / f"step_{step:06d}"
            folder.mkdir(parents=True)
            assert image.save(str(folder / "photo.png"))
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 2, timeout=WAIT)
    training.choose(training.runs)
    panel = window.docks.panel("validation")
    captions, slider = [panel.caption.text()], panel.step.slider
    for place in ((slider.minimum() + slider.maximum()) // 2, slider.minimum()):
        slider.setValue(place)
        captions.append(panel.caption.text())
    assert captions == [
        "step 20\nThe output of <b>b</b> is of step 10.",
        "step 10",
        "step 5\n<b>b</b> has no output up to this step.",
    ]
    assert panel.caption.textFormat() is Qt.TextFormat.PlainText
    for box, side, note in (
        (panel.left, "other", True), (panel.right, "target", True), (panel.left, "input", False), (panel.right, "other", True),
        (panel.right, "output", False),
    ):  # fmt: skip
        box.setCurrentIndex(box.findData(side))
        box.activated.emit(box.currentIndex())
        assert panel.caption.text() == "step 5" + "\n<b>b</b> has no output up to this step." * note


def test_a_validation_image_that_a_resumed_run_writes_again_is_shown(window, training, exported, qtbot):
    run = make_run(exported, "a", settings={})
    path = run.path / "validation" / "step_000010" / "photo.png"
    pair = run.path / "validation" / "inputs" / "photo.png"
    for each in (path, pair):
        each.parent.mkdir(parents=True)
    image = QImage(8, 4, QImage.Format.Format_RGB32)
    panel = window.docks.panel("validation")
    for number, color in enumerate(("#ff0000", "#0000ff")):
        image.fill(QColor(color))
        for each in (path, pair):
            assert image.save(str(each))
            os.utime(each, ns=(10**18 + number, 10**18 + number))
        training.look()
        qtbot.waitUntil(lambda: len(training.runs) == 1, timeout=WAIT)
        training.choose(training.runs)
        training.updated.emit()
        assert panel.view.image.pixelColor(7, 1).name() == color


def test_a_pair_of_different_sizes_is_drawn_with_every_pixel_of_the_larger_image(window, training, exported, qtbot):
    folder = make_run(exported, "a", settings={}).path / "validation"
    small, large = QImage(4, 2, QImage.Format.Format_RGB32), QImage(8, 4, QImage.Format.Format_RGB32)
    small.fill(QColor("#102030"))
    for y in range(4):
        for x in range(8):
            large.setPixelColor(x, y, QColor(x * 30, y * 60, 0))
    for name, image in (("step_000010", large), ("inputs", small), ("targets", large)):
        (folder / name).mkdir(parents=True)
        assert image.save(str(folder / name / "photo.png"))
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 1, timeout=WAIT)
    training.choose(training.runs)
    panel = window.docks.panel("validation")

    def pixels(columns: range) -> list[str]:
        return [panel.view.image.pixelColor(x, y).name() for y in range(4) for x in columns]

    for sides, low, high in (
        (("Input", "Target"), range(4), range(4, 8)),
        (("Output", "Input"), range(4, 8), range(4)),
    ):
        for box, text in zip((panel.left, panel.right), sides, strict=True):
            box.setCurrentIndex(box.findText(text))
            box.activated.emit(box.currentIndex())
        assert (panel.view.image.width(), panel.view.image.height()) == (8, 4)
        assert pixels(high) == [large.pixelColor(x, y).name() for y in range(4) for x in high]
        assert set(pixels(low)) == {"#102030"}


def test_health_that_was_not_measured_is_not_called_good(window, training, exported, qtbot):
    run = make_run(exported, "a", settings={})
    run.trail.mkdir()
    frame = {"step": 5, "file": "5.npz", "kind": "key"}
    (run.trail / "index.jsonl").write_text(json.dumps(frame) + "\n")
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 1, timeout=WAIT)
    training.choose(training.runs)
    summary, problems = (widget(window, "network_health", f"network_health.{name}") for name in ("summary", "problems"))
    assert summary.text() == "The health of the layers was not measured up to this step."

    def measured(step: int, *found: dict[str, object]) -> None:
        with run.health.open("a") as stream:
            stream.write(json.dumps({"step": step, "layers": {}, "problems": found}) + "\n")
        training.runs[0].read()
        training.updated.emit()

    measured(10)
    assert summary.text() == "No problems at this step."
    measured(20, {"layer": "conv", "kind": "dead", "since": 15})
    assert [problems.item(row).text() for row in range(problems.count())] == ["conv: dead units since step 15"]
    assert not summary.text()


def test_a_validation_that_is_being_written_keeps_the_chosen_image(window, training, exported, qtbot):
    """The images of a validation are written one after the other, each output before its input."""

    def write(*names: str) -> None:
        for name in names:
            path = run.path / "validation" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            image = QImage(8, 4, QImage.Format.Format_RGB32)
            image.fill(QColor("#102030"))
            assert image.save(str(path))

    def read() -> None:
        training.runs[0].read()
        training.updated.emit()

    run = make_run(exported, "a", settings={})
    write("step_000010/cat.png", "step_000010/dog.png")
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 1, timeout=WAIT)
    panel = window.docks.panel("validation")
    panel.image_box.setCurrentIndex(1)
    panel.image_box.activated.emit(1)
    panel.left.setCurrentIndex(panel.left.findText("Input"))
    panel.right.setCurrentIndex(panel.right.findText("Input"))
    panel.left.activated.emit(0)
    assert panel.view.image is None
    write("inputs/dog.png")
    read()
    assert panel.view.image is not None
    write("step_000020/cat.png")
    read()
    assert panel.image_box.count() == 1
    write("step_000020/dog.png")
    read()
    assert panel.image_box.currentText() == "dog.png"


def test_names_and_notes_are_kept_with_the_run(window, training, exported, qtbot):
    make_run(exported, "a", settings={})
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 1, timeout=WAIT)
    training.write_notes(training.runs[0], Notes("wide", "twice the channels"))
    qtbot.waitUntil(lambda: training.runs[0].snapshot.title == "wide", timeout=WAIT)
    panel = window.docks.panel("training_runs")
    assert panel.model.index(0, 0).data() == "wide"
    assert RunFolder(exported / "runs" / "a").notes() == Notes("wide", "twice the channels")


def in_dialog(act) -> list[object]:
    """Call `act` with the modal dialog that opens next; the list has its exceptions."""
    failures: list[object] = []

    def look() -> None:
        dialog = QApplication.activeModalWidget()
        if dialog is None:
            QTimer.singleShot(20, look)
            return
        try:
            act(dialog)
        except Exception as error:  # it would leave the dialog open
            failures.append(error)
            dialog.reject()

    QTimer.singleShot(0, look)
    return failures


def test_the_dialogs_of_the_table_extend_name_and_delete_a_run(window, training, exported, qtbot):
    run = start(training, qtbot, exported, steps="10")
    wait_state(qtbot, run, RunState.FINISHED)
    qtbot.waitUntil(lambda: not run.folder.process() and run.snapshot.can_resume, timeout=WAIT)
    buttons = {name: widget(window, "training_runs", f"training_runs.{name}") for name in ("extend", "notes", "delete")}

    def extend(dialog) -> None:
        assert dialog.labelText() == "Steps in total; 10 are done"
        assert dialog.intMinimum() == 11
        dialog.setIntValue(13)
        dialog.accept()

    qtbot.waitUntil(buttons["extend"].isEnabled, timeout=WAIT)
    failures = in_dialog(extend)
    qtbot.mouseClick(buttons["extend"], Qt.MouseButton.LeftButton)
    assert not failures
    qtbot.waitUntil(lambda: run.snapshot.state is RunState.FINISHED and run.snapshot.step == 13, timeout=WAIT)

    def name(dialog) -> None:
        assert dialog.name.placeholderText() == run.folder.name
        assert not dialog.name.text()
        assert not dialog.text.toPlainText()
        dialog.name.setText("short")
        dialog.text.setPlainText("more steps")
        dialog.accept()

    failures = in_dialog(name)
    qtbot.mouseClick(buttons["notes"], Qt.MouseButton.LeftButton)
    assert not failures
    assert run.folder.notes() == Notes("short", "more steps")
    qtbot.waitUntil(lambda: run.snapshot.title == "short", timeout=WAIT)
    failures = in_dialog(lambda dialog: dialog.accept())  # what was written is not lost
    qtbot.mouseClick(buttons["notes"], Qt.MouseButton.LeftButton)
    assert not failures
    assert run.folder.notes() == Notes("short", "more steps")

    def answer(button):
        return lambda box: qtbot.mouseClick(box.button(button), Qt.MouseButton.LeftButton)

    qtbot.waitUntil(lambda: not run.folder.process() and buttons["delete"].isEnabled(), timeout=WAIT)
    for button in (QMessageBox.StandardButton.No, QMessageBox.StandardButton.Yes):
        assert run.folder.path.is_dir()
        failures = in_dialog(answer(button))
        qtbot.mouseClick(buttons["delete"], Qt.MouseButton.LeftButton)
        assert not failures
    assert not training.problem
    assert not run.folder.path.exists()
    assert training.runs == []


def test_a_run_that_trains_cannot_be_deleted(window, training, exported, qtbot):
    run = start(training, qtbot, exported, steps="100000")
    wait_state(qtbot, run, RunState.RUNNING)
    training.delete(run)
    assert "Stop it first" in training.problem
    assert run.folder.path.exists()


def test_a_title_in_the_legend_is_behind_the_line_of_its_curve(qtbot):
    legend = CurveLegend("legend")
    qtbot.addWidget(legend)
    legend.resize(400, 40)
    colors = ("#ff0000", "#00aa00")
    legend.show_entries([(f"run {color}", QPen(QColor(color), 3)) for color in colors])
    legend.show()
    for entry, color in zip(legend.findChildren(QLabel), colors, strict=True):
        assert entry.text() == f"run {color}"
        image = entry.grab().toImage()
        assert image.pixelColor(LINE // 2, image.height() // 2).name() == color
    legend.show_entries([("alone", QPen())])
    assert not legend.isVisible()


def test_a_line_of_the_legend_has_the_pattern_and_width_of_its_curve(qtbot):
    legend = CurveLegend("legend")
    qtbot.addWidget(legend)
    solid, dashed = QPen(QColor("#ff0000"), 3), QPen(QColor("#00aa00"), 2, Qt.PenStyle.DashLine)
    long = "a title of " + "many " * 10
    legend.show_entries([("solid", solid), ("dashed", dashed), (long, solid)])
    entries = legend.findChildren(QLabel)
    assert [entry.text() for entry in entries] == ["solid", "dashed", f"{long[:39]}…"]
    assert [entry.toolTip() for entry in entries] == [plain_tip(text) for text in ("solid", "dashed", long)]
    for entry, (dash, width) in zip(entries, (("", 3), (" dashed", 2), ("", 3)), strict=True):
        (line,) = [each for each in strokes(entry) if each.kind != "text"]
        ink = "#00aa00" if dash else "#ff0000"
        assert line.pen.startswith(f"{ink} {width}{dash}")
        assert ("dashed" in line.pen) is bool(dash)
        middle = entry.height() // 2
        assert (line.area.left(), line.area.right(), line.area.top()) == (0, LINE, middle)
        (text,) = [each for each in strokes(entry) if each.kind == "text"]
        assert text.area.left() >= LINE
    legend.show_entries([("one", dashed), ("two", dashed)])
    assert [entry.text() for entry in legend.findChildren(QLabel) if entry not in entries] == ["one", "two"]
    assert not legend.isHidden()
    legend.show_entries([])
    assert legend.isHidden()


def test_nothing_starts_without_layers_or_with_errors(window, qtbot):
    panel = window.docks.panel("training")
    buttons = (panel.start, panel.sweep, panel.samples)
    wrong = Graph(
        [
            Layer("a", "input", params={"dims": "64x48x3"}),
            Layer("b", "convolution", inputs=(Source("a"),), params={"features": "8", "kernel": "banana"}),
            Layer("c", "output", inputs=(Source("b"),)),
        ]
    )
    for graph, said in ((Graph(), "has no layers"), (wrong, "has errors")):
        show(window, graph)
        qtbot.waitUntil(lambda said=said: said in panel.start.toolTip(), timeout=WAIT)
        assert not any(button.isEnabled() for button in buttons)
    window.context.document.do(lambda g: set_params(g, {"b": {"kernel": "3x3"}}))
    qtbot.waitUntil(lambda: all(button.isEnabled() for button in buttons), timeout=WAIT)
    assert "Unavailable" not in panel.start.toolTip()


@pytest.mark.parametrize("count", [1, 2, 7, 100, 1001])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 1.0])
def test_smoothed_curves_are_means_also_after_a_peak(count, share):
    """A loss that exploded once must not round the values after it away."""
    from app.ui.train.curve_plot import Curve

    y = np.random.default_rng(count).random(count)
    y[count // 3] = 1e25
    half = round(count * share / 2)
    expected = [y[max(place - half, 0) : place + half + 1].mean() for place in range(count)]
    np.testing.assert_allclose(Curve("a", np.arange(1.0, count + 1), y).smoothed(share).y, expected, rtol=1e-9)


def test_curves_keep_every_peak_when_they_are_reduced():
    from app.ui.train.curve_plot import Curve

    y = np.zeros(100_000)
    y[[777, 50_001, 99_998]] = (5.0, -7.0, 9.0)
    curve = Curve("a", np.arange(1.0, 100_001.0), y)
    x, reduced = curve.between(1, 100_000, 200)
    assert len(x) <= 402
    assert {5.0, -7.0, 9.0} <= set(reduced)
    assert np.all(np.diff(x) >= 0)
    x, reduced = curve.between(700, 800, 200)
    assert reduced.tolist().count(5.0) == 1
    assert x[0] <= 700
    assert x[-1] >= 800


@pytest.fixture
def plot(qtbot):
    from app.ui.train.curve_plot import CurvePlot

    made = CurvePlot("plot")
    qtbot.addWidget(made)
    made.resize(500, 400)
    made.show()
    qtbot.waitExposed(made)
    return made


def test_curves_are_painted_up_to_their_last_step_while_they_grow(plot, qtbot):
    from app.ui.train.curve_plot import Curve

    for count in (20, 120):
        steps = np.arange(1.0, count + 1)
        plot.show_curves("loss", [Curve("a", steps, np.sqrt(steps))], logarithmic=False)
        qtbot.waitUntil(lambda: plot.bundle.viewRect().contains(plot.bundle.boundingRect()), timeout=WAIT)


def test_the_project_folder_follows_the_first_save_unless_it_was_chosen(window, tmp_path):
    window.files.new_from("denoiser")
    panel = window.docks.panel("training")
    assert panel.form.fields["more"].placeholderText() == "such as --ema 0.999"  # an example, not what is used
    assert window.files.save_to(tmp_path / "mine.xml")
    assert Path(panel.project.text()) == training_of(window.context).project()
    assert Path(panel.project.text()).parent == tmp_path
    panel.project.setText("chosen")
    assert window.files.save_to(tmp_path / "other.xml")
    assert panel.project.text() == "chosen"


def test_axes_have_no_numbers_without_points(plot):
    from app.ui.train.curve_plot import Curve

    for values, logarithmic, known in (
        ([], False, False),
        ([2.0], False, True),
        ([-2.0], True, False),
        ([2.0], True, True),
    ):
        y = np.array(values)
        plot.show_curves("loss", [Curve("a", np.arange(1.0, len(y) + 1), y)], logarithmic)
        assert [plot.getAxis(side).style["showValues"] for side in ("bottom", "left")] == [known, known]


def test_unsaved_networks_of_one_name_have_projects_of_their_own(qapp, tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_data_path", lambda _name: tmp_path)
    registry = default_registry()
    first, second, third = (Document(Graph(name="net"), registry, parent=qapp) for _ in range(3))
    folders = [tmp_path / "projects" / name for name in ("net", "net_2", "net_3")]
    assert default_project(first) == folders[0]
    folders[0].mkdir(parents=True)
    folders[1].mkdir()  # of a network of another day
    assert [default_project(each) for each in (first, second, first)] == [folders[0], folders[2], folders[0]]
    third.path = tmp_path / "net.xml"
    assert default_project(third) == tmp_path / "net_pytorch"
    for each in (first, second, third):
        each.deleteLater()


def test_the_curve_of_a_finished_run_is_drawn_when_the_workspace_is_first_shown(window, exported, qtbot):
    make_run(exported, "a", settings={"steps": 20})
    show(window, Graph([layer for layer in network() if layer.name != "strange"], name="named"))
    window.context.root.project = exported
    training = training_of(window.context)
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 1 and len(training.runs[0].snapshot.curves.steps) == 20, timeout=WAIT)
    window.docks.set_workspace(TRAIN)
    panel = window.docks.panel("training_runs")
    qtbot.waitUntil(lambda: panel.plot is not None and panel.plot.isVisible(), timeout=WAIT)
    assert [len(x) for x, _ in panel.plot.bundle.lines(0, 20, 400)] == [20]


def test_numbers_at_an_axis_are_values_after_a_change_of_the_theme(plot, qtbot):
    """pyqtgraph multiplies them by 1000 where values are below 1, and by 1e-9 above 1e9; its label then says so, ours does not."""
    from app.ui.train.curve_plot import Curve
    from app.ui.widgets import theme

    axis = plot.getAxis("left")
    for low, high in ((0.05, 0.45), (2e9, 9e9)):
        plot.show_curves("loss", [Curve("a", np.array([1.0, 9.0]), np.array([low, high]))], False)
        qtbot.waitUntil(lambda high=high: high <= axis.range[1] < 2 * high, timeout=WAIT)
        for _ in range(2):
            QApplication.processEvents()
            plot.grab()
            picture = QImage(plot.size(), QImage.Format.Format_RGB32)
            painter = QPainter(picture)
            found = [float(text) for *_, text in axis.generateDrawSpecs(painter)[2]]
            painter.end()
            assert found
            assert all(axis.range[0] <= value <= axis.range[1] for value in found)
            theme.changes().changed.emit()


def test_the_project_of_a_sample_is_not_next_to_it(window):
    sample = samples.path("denoiser.xml")
    assert window.files.open(sample)
    project = training_of(window.context).project()
    assert Path(window.docks.panel("training").project.text()) == project
    assert project.name == "denoiser_sample"
    assert not project.is_relative_to(sample.parent)


def test_a_starting_point_shows_its_recipe_and_gets_example_data(window, training, qtbot, monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr("samples.training_data.main", made.append)
    monkeypatch.setattr("platformdirs.user_data_path", lambda _name: tmp_path / "data")
    window.files.new_from("segmenter")
    panel = window.docks.panel("training")
    assert panel.task.currentData() == "segmentation"
    assert panel.form.fields["batch"].placeholderText() == "8"
    example = widget(window, "training", "training.example")
    assert example.isVisibleTo(panel)
    start = widget(window, "training", "training.start")
    with qtbot.waitSignal(training.example_data_made, timeout=WAIT):
        example.click()
        assert (example.text(), example.isEnabled()) == ("Making Example Data ...", False)
        assert start.toolTip() == "Unavailable: example data are being made"
    qtbot.waitUntil(start.isEnabled)
    assert (example.text(), example.isEnabled()) == ("Make Example Data", True)
    assert len(made) == 1
    assert panel.form.options()["targets"] == str(tmp_path / "data" / "example-data" / "shapes" / "targets")
    with qtbot.waitSignal(training.example_data_made, timeout=WAIT):
        example.click()
    assert len(made) == 1, "it exists"
    window.files.new_from("denoiser")
    assert panel.form.fields["steps"].placeholderText() == "500"
    assert not example.isVisibleTo(panel)
    assert panel.form.text("data").endswith("photographs")


@pytest.mark.parametrize("task", sorted(TASKS))
def test_the_form_asks_for_settings_of_the_task_and_shows_their_defaults(task, qtbot):
    template = Path(resources.__file__).parent / "templates" / "pytorch" / "config.py"
    known = {
        found["name"]: literal_eval(found["default"])
        for found in SETTING.finditer(for_task(template.read_text("utf-8"), TASKS[task]))
    }
    form = SettingsForm()
    qtbot.addWidget(form)
    form.show_task(task)
    form.show_defaults({})
    asked = [field for number, field in enumerate(FIELDS) if form.rows.isRowVisible(number)]
    assert {field.name for field in asked} <= known.keys()
    texts = {
        field.name: form.fields[field.name].placeholderText()
        for field in asked
        if field.kind == "text" and field.default
    }
    assert texts.pop("steps") == f"{known['epochs']} epochs"
    assert texts.pop("device") == "automatic"
    assert texts == {name: str(known[name]) for name in texts}


def test_the_task_follows_the_network_until_one_is_chosen(window, qtbot):
    layers = [
        Layer("input", "input", params={"dims": "16x16x3"}),
        Layer("conv", "convolution", (160, 0), (Source("input"),), {"features": "32"}),
        Layer("up", "depth_to_space", (320, 0), (Source("conv"),), {"block_size": "2"}),
        Layer("output", "output", (480, 0), (Source("up"),)),
    ]
    show(window, Graph(layers, name="named"))
    window.docks.set_workspace(TRAIN)
    panel = window.docks.panel("training")
    assert panel.task.currentData() == "denoising"
    root = window.context.root
    root.do(lambda g: set_params(g, {"conv": {"features": "12"}}))
    qtbot.waitUntil(lambda: panel.task.currentData() == "super-resolution", timeout=WAIT)
    assert panel.form.text("data").endswith("photographs")

    with qtbot.waitSignal(panel._settled.timeout, timeout=WAIT):
        root.do(lambda g: set_params(g, {"conv": {"features": "32"}}))
    qtbot.waitUntil(lambda: panel.task.currentData() == "denoising", timeout=WAIT)

    panel.task.setFocus()
    qtbot.keyClick(panel.task, Qt.Key.Key_Home)
    qtbot.waitUntil(lambda: panel.task.currentIndex() == 0, timeout=WAIT)
    qtbot.keyClick(panel.task, Qt.Key.Key_Down)
    chosen = panel.task.currentData()
    assert chosen not in ("denoising", "super-resolution")
    with qtbot.waitSignal(panel._settled.timeout, timeout=WAIT):
        root.do(lambda g: set_params(g, {"conv": {"features": "12"}}))
    assert panel.task.currentData() == chosen


def test_run_train_shows_the_workspace(window, training):
    from window_kit import action

    window.docks.set_workspace("Design")
    QApplication.processEvents()
    action(window, "run.train").trigger()
    assert window.docks.workspace == TRAIN
    assert window.docks["training"].isVisible()


def test_a_clone_has_the_settings_of_its_run(window, training, exported, qtbot):
    settings = {
        "steps": 50,
        "epochs": 100,
        "lr": 0.02,
        "noise": "0-55",
        "amp": True,
        "ema": 0.99,
        "data": "",
        "workers": -1,
        "stop_on": "",
        "inputs": "/photos",
    }
    make_run(exported, "a", settings=settings, task="restoration")
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 1, timeout=WAIT)
    window.docks.show("training")
    window.docks.panel("training_runs").findChild(object, "training_runs.clone").click()
    panel = window.docks.panel("training")
    assert (panel.task.currentData(), panel.form.text("lr")) == ("restoration", "0.02")
    assert panel.form.options() == {
        "steps": "50", "lr": "0.02", "amp": True, "ema": "0.99", "stop_on": "", "inputs": "/photos"
    }  # fmt: skip
