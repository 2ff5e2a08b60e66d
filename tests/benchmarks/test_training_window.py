"""The Train workspace at work: redrawing many curves, the cost of the monitors, going to a step, and frames while a run trains."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time

import numpy as np
import pytest

pytest.importorskip("pytest_benchmark")
pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from bench_kit import medians_in_turns
from PySide6.QtCore import QDeadlineTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from window_kit import open_window

import resources
import samples
from app.ui.engine.analysis import analysis_of
from app.ui.engine.result import Phase
from app.ui.engine.time_machine import time_machine_of
from app.ui.engine.training import training_of
from app.ui.shell.panels import ANALYSIS, TRAIN
from app.ui.train.curve_plot import Curve, CurvePlot
from designer.training import trainer
from designer.training.run_folder import RunFolder

WAIT = 120_000
RUNS, POINTS = 250, 10_000


def until(condition) -> None:
    deadline = QDeadlineTimer(WAIT)
    while not condition():
        assert not deadline.hasExpired(), "waited too long"
        QTest.qWait(5)


def test_250_runs_of_10000_points(benchmark, report, qtbot) -> None:
    """One of the runs went on, or the plot is moved: everything is drawn again."""
    count, points = (8, 500) if benchmark.disabled else (RUNS, POINTS)
    rng = np.random.default_rng(0)
    x = np.arange(1.0, points + 1)
    curves = [Curve(f"run {n}", x, np.exp(-x / 3000) + rng.normal(0, 0.05, points)) for n in range(count)]
    plot = CurvePlot("plot")
    qtbot.addWidget(plot)
    plot.resize(1000, 320)
    with qtbot.waitExposed(plot):
        plot.show()
    plot.show_curves("loss", curves, False)
    plot.viewport().repaint()
    times, spent = [], []

    def redraw() -> None:
        curves[0] = Curve("run 0", x, curves[0].y + 0.001)
        began, worked = perf_counter(), thread_time()
        plot.show_curves("loss", curves, False)
        plot.getViewBox().setXRange(len(times), points - len(times), padding=0)
        plot.viewport().repaint()
        times.append((perf_counter() - began) * 1000)
        spent.append((thread_time() - worked) * 1000)

    benchmark.pedantic(redraw, rounds=2 if benchmark.disabled else 40)
    benchmark.extra_info["milliseconds"] = round(median(times), 1)
    report.value(f"redraw {RUNS} runs x {POINTS} points", median(spent), "ms", target=50)


def loaded(path: Path, name: str):
    """A Python file as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def monitor_module():
    return loaded(Path(resources.__file__).parent / "templates" / "pytorch" / "monitor.py", "bench_monitor")


def exported_sample(project: Path) -> None:
    from app.opened_network import open_network
    from exporters.pytorch import export_project

    network = open_network(samples.path("denoiser.xml"))
    export_project(network.graph, network.registry, project, "Denoiser")


def sample_network(project: Path):
    """The sample denoiser as torch module, with its trained weights."""
    torch = pytest.importorskip("torch")
    exported_sample(project)
    network = loaded(project / "model.py", "bench_model").Denoiser()
    stems = json.loads((project / "project.json").read_text())["weights"]
    folder = samples.weights("denoiser")
    network.load_state_dict({key: torch.from_numpy(np.load(folder / f"{stem}.npy")) for key, stem in stems.items()})
    return network


def test_monitors_while_training(benchmark, report, tmp_path) -> None:
    """Ten training steps of the sample denoiser with and without health and trail."""
    torch = pytest.importorskip("torch")
    side, batch = (16, 1) if benchmark.disabled else (64, 16)
    x = torch.rand(batch, 3, side, side)
    monitor = monitor_module()

    def trainer_of(monitored: bool):
        net = sample_network(tmp_path / "project")
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
        folder = tmp_path / f"run{monitored}"
        folder.mkdir()
        found = monitor.Monitor(folder, net, total_steps=2000, key_every=250) if monitored else None
        done = [0]

        def ten_steps() -> None:
            for _ in range(1 if benchmark.disabled else 10):
                done[0] += 1
                optimizer.zero_grad(set_to_none=True)
                (net(x) - x).abs().mean().backward()
                if found is not None:
                    found.after_backward(done[0], net)
                optimizer.step()
                if found is not None:
                    found.after_step(done[0], net, optimizer)

        return ten_steps

    ours, peer = trainer_of(True), trainer_of(False)
    benchmark.pedantic(ours, rounds=1)
    with_, without = medians_in_turns(ours, peer, 1 if benchmark.disabled else 10)
    report.ratio("10 training steps with monitors", with_, "ms", peer=without, peer_name="without", target=1.10)


def trail_of_the_sample(run: RunFolder, network, steps: int) -> None:
    """A trail with a frame every five steps around the weights of a network, as monitor.py writes it."""
    import torch

    trail = monitor_module().Trail(run.trail, steps, 250)
    trail.begin(0, network)
    for step in range(5, steps + 1, 5):
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(torch.randn_like(parameter) * 1e-4)
        trail.add(step, network)
    (run.path / "config.json").write_text(json.dumps({"settings": {}}))
    (run.path / "status.json").write_text(json.dumps({"state": "finished", "step": steps, "total_steps": steps}))


@pytest.mark.bench
def test_going_to_a_step(benchmark, report, qtbot, tmp_path) -> None:
    """The sample denoiser on its photo: from a move of the slider to the image of that step."""
    document = shutil.copy(samples.path("denoiser_analyze.xml"), tmp_path / "net.xml")
    shutil.copy(samples.path("denoiser_analyze.settings.xml"), tmp_path / "net.settings.xml")
    window = open_window(qtbot, tmp_path)
    window.start_engine_client()
    window.files.open_all([Path(document)])
    root = window.context.root
    root.change_settings(weights=str(samples.weights("denoiser")))
    inputs = {name: str(samples.HELD_OUT) for name in analysis_of(window.context).inputs.layers()}
    root.change_settings(input_files=inputs)
    project = tmp_path / "project"
    root.project = project
    run_folder = RunFolder(project / "runs" / "a")
    run_folder.trail.mkdir(parents=True)
    last = 60 if benchmark.disabled else 1000
    trail_of_the_sample(run_folder, sample_network(project), last)
    window.docks.set_workspace(ANALYSIS)
    analysis = analysis_of(window.context)
    analysis.launch()
    until(lambda: analysis.phase in (Phase.READY, Phase.FAILED, Phase.WEIGHTS, Phase.BLOCKED))
    assert analysis.phase is Phase.READY, analysis.message
    training, machine = training_of(window.context), time_machine_of(window.context)
    training.look()
    until(lambda: bool(training.runs) and len(training.runs[0].snapshot.frames) > last // 10)
    run = training.runs[0]
    steps = iter(range(5, last, 15))
    times: list[float] = []

    def scrub() -> None:
        step = next(steps)
        until(lambda: analysis.phase is Phase.READY)  # else the full image of the last step arrives first
        arrived = []
        analysis.result_changed.connect(lambda: arrived.append(perf_counter()))
        began = perf_counter()
        with qtbot.waitSignal(
            analysis.result_changed, timeout=WAIT
        ):  # `qWait` would hold up the thread that reads weights
            machine.go(run, step)
        times.append((arrived[0] - began) * 1000)
        analysis.result_changed.disconnect()

    with qtbot.waitSignal(analysis.result_changed, timeout=WAIT):
        machine.go(run, 0)
    benchmark.pedantic(scrub, rounds=2 if benchmark.disabled else 40)
    report.value("time machine: go to a step of the sample", median(times[1:] or times), "ms", target=100)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_frames_while_a_run_trains(benchmark, report, qtbot, tmp_path) -> None:
    """The canvas is panned while the sample denoiser trains with two threads on the same machine."""
    project = tmp_path / "project"
    exported_sample(project)
    run = RunFolder(project / "runs" / "a")
    options = {"data": str(samples.PHOTOGRAPHS), "steps": "100000", "threads": "2"}
    if benchmark.disabled:
        options |= {
            "batch": "1",
            "patch": "16",
            "synthetic": "0",
            "validation": str(samples.HELD_OUT.parent),
            "threads": "1",
        }
    pid = trainer.start(run, options)
    try:
        window = open_window(qtbot, tmp_path)
        window.files.open_all([shutil.copy(samples.path("denoiser.xml"), tmp_path / "net.xml")])
        window.docks.set_workspace(TRAIN)
        until(lambda: (status := run.status()) is not None and status.step > 0)
        bar = window.canvas.viewer.horizontalScrollBar()
        times: list[float] = []

        def pan() -> None:
            began = perf_counter()
            bar.setValue(bar.value() + (20 if len(times) % 2 else -20))
            window.canvas.viewer.viewport().repaint()
            QApplication.processEvents()
            times.append((perf_counter() - began) * 1000)

        benchmark.pedantic(pan, rounds=5 if benchmark.disabled else 300)
        assert run.process() == pid
    finally:
        os.kill(pid, signal.SIGKILL)
        for child in trainer._children:
            child.wait()
        trainer.reap()
    report.value("a frame of the canvas while a run trains", median(times), "ms", target=16.7)
