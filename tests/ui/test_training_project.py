"""Training in the window with the real project and the real engine: samples, a run, health on the canvas, the time machine."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PySide6")

from analysis_kit import picture
from training_kit import WAIT, end_processes
from window_kit import show

from app.ui.engine.analysis import analysis_of
from app.ui.engine.result import Phase
from app.ui.engine.run_health import run_health_of
from app.ui.engine.time_machine import time_machine_of
from app.ui.engine.training import StartRequest, training_of
from app.ui.inspector.subject import Kind
from app.ui.shell.panels import TRAIN
from designer.files.safetensors_file import write_safetensors
from designer.files.weights import Weights, load_weights, required_weights
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.runtime.session import Session
from designer.training.trail import Trail, float_tensors
from designer.training.watched_run import RunState

pytestmark = [pytest.mark.gui, pytest.mark.slow]
LONG = 6 * WAIT
OPTIONS = {
    **{"steps": "20", "batch": "2", "patch": "16", "validate_every": "10", "threads": "1", "workers": "0", "seed": "1"},
    **{"synthetic": "0", "tensorboard": False},
}


def denoiser() -> Graph:
    relu = ActivationSpec("relu")
    return Graph(
        [
            Layer("input", "input", params={"dims": "24x16x3", "tiling": "1"}),
            Layer("first", "convolution", (200, 0), (Source("input"),), {"features": "4"}, relu),
            Layer("last", "convolution", (400, 0), (Source("first"),), {"features": "3"}),
            Layer("output", "output", (600, 0), (Source("last"),)),
        ],
        name="tiny",
    )


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(2):
        picture(folder, f"{number}.png", (48, 48))
    return folder


@pytest.fixture
def trained(window, tmp_path, photos, qtbot):
    """The window after a short run of the tiny network, its controller, and the run."""
    show(window, denoiser())
    window.docks.set_workspace(TRAIN)
    training = training_of(window.context)
    training.start(StartRequest(tmp_path / "project", {**OPTIONS, "data": str(photos)}))
    qtbot.waitUntil(lambda: bool(training.runs or training.problem), timeout=LONG)
    assert not training.problem
    run = training.runs[0]
    qtbot.waitUntil(lambda: not run.snapshot.state.trains, timeout=LONG)
    assert run.snapshot.state is RunState.FINISHED, run.snapshot.message
    qtbot.waitUntil(lambda: bool(run.snapshot.validations), timeout=LONG)
    yield window, training, run
    end_processes(tmp_path / "project")


def plain_run(registry, weights, image, folder):
    """The tiny network with the tensors of a step, without a window."""
    file = folder / "plain.safetensors"
    write_safetensors(file, float_tensors(weights))
    session = Session(denoiser(), registry, Weights())
    session.set_weights(load_weights(file, required_weights(session.inference)))
    session.set_input_file("input", image)
    return session.run([Source("first")])


def test_a_run_of_the_real_project_from_start_to_weights_and_back_in_time(trained, qtbot, tmp_path):
    window, training, run = trained
    shot = run.snapshot
    assert shot.settings["steps"] == 20
    assert shot.curves.total_steps == 20
    assert shot.validations == (10, 20)
    assert np.isfinite(shot.curves.points("loss")[1]).all()

    # validation images against the noisy input
    images = window.docks.panel("validation")
    qtbot.waitUntil(lambda: images.view.image is not None, timeout=WAIT)
    assert images.view.image.width() == 48
    assert images.caption.text().startswith("step 20, all images, which are training images: PSNR (dB) ")
    assert "validation images are training images" in window.docks.panel("training").progress.message.text()
    images.step.slider.setValue(images.step.slider.minimum())
    assert images.caption.text().startswith("step 10")

    # health on the canvas
    window.docks.show("network_health")
    health = window.docks.panel("network_health")
    qtbot.waitUntil(lambda: run_health_of(window.context).health is not None, timeout=WAIT)
    health.shown_metric.setCurrentIndex(health.shown_metric.findData("gradient"))
    cells = window.canvas.heat.item.cells
    assert len(cells) == 2
    assert window.canvas.heat.legend.isVisibleTo(window)

    # one click uses the weights, and the analysis runs with them
    training.use_weights(run)
    qtbot.waitUntil(lambda: bool(window.context.root.settings.weights), timeout=WAIT)
    analysis = analysis_of(window.context)
    image = picture(tmp_path, size=(24, 16))
    window.context.root.change_settings(input_files={"input": str(image)})
    analysis.launch()
    qtbot.waitUntil(lambda: analysis.phase in (Phase.READY, Phase.FAILED, Phase.WEIGHTS), timeout=LONG)
    assert analysis.phase is Phase.READY, analysis.message
    final = np.array(analysis.result.outputs["output"])

    # the slider goes back to the first step without an edit, and to the present again
    clean = window.context.root.history.is_clean
    title = window.context.root.history.undo_title
    machine = time_machine_of(window.context)
    with qtbot.waitSignal(analysis.result_changed, timeout=LONG):
        machine.go(run, 0)
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=LONG)
    first = np.array(analysis.result.outputs["output"])
    assert not np.array_equal(first, final)
    assert run_health_of(window.context).health is None, "nothing was measured before the first step"
    # channels and kernels follow it: they are those of a plain run with the weights of the step
    trail = Trail(run.folder.trail)
    trail.read()
    window.docks.show("channel_inspector")
    inspector = window.docks.panel("channel_inspector")
    inspector.inspect("first")
    for step in (20, 10, 0):
        weights = trail.weights(trail.at(step))
        plain = plain_run(window.context.registry, weights, image, tmp_path)
        machine.go(run, step)

        def is_shown(right=plain.outputs["output"]) -> bool:  # the inspector asks for results too
            return analysis.phase is Phase.READY and np.allclose(analysis.result.outputs["output"], right, atol=1e-6)

        qtbot.waitUntil(is_shown, timeout=LONG)
        assert not analysis.result.coarse
        np.testing.assert_allclose(analysis.result.outputs["output"], plain.outputs["output"], atol=1e-6)
        np.testing.assert_allclose(inspector.subject.value, plain.captures[Source("first")], atol=1e-6)
        inspector.look_at(Kind.WEIGHTS)
        kernel = weights["first.weight"]
        qtbot.waitUntil(lambda kernel=kernel: np.array_equal(inspector.subject.value, kernel), timeout=WAIT)
        with qtbot.waitSignal(analysis.result_changed, timeout=LONG):
            machine.go(run, 5)
        kernel = trail.weights(trail.at(5))["first.weight"]
        qtbot.waitUntil(lambda kernel=kernel: np.array_equal(inspector.subject.value, kernel), timeout=WAIT)
        inspector.look_at(Kind.OUTPUT)
    machine.leave()
    qtbot.waitUntil(lambda: np.array_equal(analysis.result.outputs["output"], final), timeout=LONG)
    assert (window.context.root.history.is_clean, window.context.root.history.undo_title) == (clean, title)

    # key frames are the checkpoints, bit by bit
    torch = pytest.importorskip("torch")
    saved = torch.load(run.folder.checkpoint, weights_only=True)["network"]
    weights = trail.weights(trail.at(20))
    assert weights.keys() == saved.keys()
    assert all(weights[name].tobytes() == saved[name].numpy().tobytes() for name in saved)

    # a new run from an earlier step
    training.fork(run, 10)
    qtbot.waitUntil(lambda: len(training.runs) == 2, timeout=LONG)
    forked = next(each for each in training.runs if each is not run)
    qtbot.waitUntil(lambda: not forked.snapshot.state.trains, timeout=LONG)
    assert forked.snapshot.state is RunState.FINISHED, forked.snapshot.message
    begin = Trail(forked.folder.trail)
    begin.read()
    there, here = trail.weights(trail.at(10)), begin.weights(begin.at(0))
    assert all(there[name].tobytes() == here[name].tobytes() for name in there)


def test_a_page_of_samples_is_made_by_the_project(window, tmp_path, photos, qtbot):
    show(window, denoiser())
    window.docks.set_workspace(TRAIN)
    panel = window.docks.panel("training")
    panel.project.setText(str(tmp_path / "project"))
    panel.form.set_text("data", str(photos))
    panel.form.set_text("patch", "16")
    panel.form.set_text("more", "--synthetic 0")
    assert panel.task.currentData() == "denoising"
    with qtbot.waitSignal(training_of(window.context).samples_made, timeout=LONG):
        panel.samples.click()
    dialog = panel.findChild(object, "training_samples")
    assert dialog.view.image.width() == 6 * 132 + 4
    dialog.close()


def test_broken_data_folders_are_named(window, tmp_path, qtbot):
    show(window, denoiser())
    training = training_of(window.context)
    training.make_samples(StartRequest(tmp_path / "project", {"data": str(tmp_path / "nothing")}))
    qtbot.waitUntil(lambda: bool(training.problem), timeout=LONG)
    assert "nothing" in training.problem
