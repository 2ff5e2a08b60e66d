"""The story of the product, played on the real window with the X server's pointer and keys. Keeps its screenshots."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("PySide6")

from player import Gui, Player
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QAbstractItemView, QApplication, QPushButton, QSlider, QToolButton, QWidget
from pytestqt.qtbot import QtBot

import samples
from app.ui.engine.analysis import analysis_of
from app.ui.shell.window import MainWindow

pytestmark = [pytest.mark.gui, pytest.mark.story, pytest.mark.slow]
SHOTS = Path(os.environ.get("LAYERWRIGHT_STORY", "build/story"))


@pytest.mark.timeout(600)
def test_design_train_reload_run_look(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    for old in SHOTS.glob("*.png"):
        old.unlink()
    player = Player(window, Gui(), SHOTS)
    with ThreadPoolExecutor(1) as thread:
        played = thread.submit(play, player, tmp_path)
        qtbot.waitUntil(played.done, timeout=580_000)
        played.result()


def play(player: Player, folder: Path) -> None:
    context = player.window.context
    player.wait(lambda: context.has_document and "input_image" in context.document.graph)
    player.shoot("sample")
    design(player, folder)
    project = export(player, folder)
    weights = train(project)
    reload_weights(player, weights)
    analyse(player)
    inspect(player)
    profile(player)


def palette_place(player: Player, title: str) -> QPoint:
    """Where the palette shows an operator, after typing its title into the search."""
    player.write(player.line("palette.search"), title, enter=False)
    return player.cell(player.find(QAbstractItemView, "palette.operators"), title)


def design(player: Player, folder: Path) -> None:
    """New network: drag operators in, connect, change parameters, see a problem, undo, save, reopen."""
    context = player.window.context
    player.menu("File", "New")
    player.wait(lambda: len(context.document.graph) == 0)
    viewer = player.window.canvas.viewer.viewport()
    corner = player.gui(lambda: viewer.mapToGlobal(QPoint(0, 0)))
    for index, title in enumerate(("Input", "Convolution", "Output")):
        player.drag(palette_place(player, title), corner + QPoint(70 + 260 * index, 120))
        player.wait(lambda count=index + 1: len(context.document.graph) == count)
    source, conv, target = "input_0", "convolution_0", "output_0"
    player.connect(source, conv)
    player.wait(lambda: context.document.graph[conv].inputs)
    player.connect(conv, target)
    player.wait(lambda: context.document.inference.states[target].ok)
    player.shoot("three_layers_connected")

    player.click_at(player.node(conv))
    player.wait(lambda: context.selection == (conv,))
    player.write(player.line("parameters.features"), "12")
    player.wait(lambda: "12" in str(context.document.inference.states[target].outputs))
    player.write(player.line("parameters.groups"), "5")
    player.wait(lambda: not context.document.inference.states[conv].ok)
    player.wait(lambda: context.document.inference.states[target].because_of == conv)
    player.shoot("a_problem_in_type_checking")
    player.click_at(player.node(conv))
    player.keys("ctrl+z")
    player.wait(lambda: context.document.inference.states[target].ok)
    assert "12" in player.gui(lambda: str(context.document.inference.states[target].outputs)), (
        "one step undone, not two"
    )

    saved = folder / "mine.xml"
    player.menu("File", "Save As")
    player.file_dialog(saved)
    player.wait(lambda: saved.is_file() and context.document.history.is_clean)
    before = player.gui(lambda: dict(context.document.graph.layers))
    player.menu("File", "New")
    player.wait(lambda: len(context.document.graph) == 0)
    player.menu("File", "Open...")
    player.file_dialog(saved)
    player.wait(lambda: context.document.path == saved)
    assert player.gui(lambda: dict(context.document.graph.layers)) == before


def export(player: Player, folder: Path) -> Path:
    """Open the sample by the menu and generate the PyTorch project."""
    context = player.window.context
    player.menu("File", "Open Sample", "denoiser_analyze")
    player.wait(lambda: "mix_0" in context.document.graph)
    player.menu("File", "Export", "Generate PyTorch")
    project = folder / "project"
    player.write(player.line("export_pytorch.target"), str(project), enter=False)
    generate = player.find(QPushButton, "export_pytorch.export")
    player.click(generate)
    player.wait(lambda: (project / "train.py").is_file() and generate.isEnabled())
    player.shoot("pytorch_export")
    player.keys("Escape")
    player.wait(lambda: QApplication.activeModalWidget() is None)
    return project


def train(project: Path) -> Path:
    """Train as a user does, from a shell; a few steps are enough for the story."""
    command = [sys.executable, "train.py", "--data", str(samples.PHOTOGRAPHS), "--noise", "25", "--steps", "6"]
    command += ["--batch", "2", "--patch", "32", "--threads", "2", "--json-progress"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "done"
    return project / "weights"


def reload_weights(player: Player, weights: Path) -> None:
    """Point Network Settings at the folder that training wrote."""
    context = player.window.context
    player.gui(lambda: player.window.docks.show("network_settings"))
    player.write(player.line("network_settings.weights"), str(weights))
    player.wait(lambda: context.document.settings.weights == str(weights))
    player.write(player.line("network_settings.iterations"), "3")
    player.wait(lambda: context.document.settings.iterations == 3)
    player.shoot("network_settings")


def analyse(player: Player) -> None:
    """Launch the analysis, choose a photograph, drag Noise and Mix, and see the picture follow."""
    context = player.window.context
    player.menu("Run", "Launch Analysis")
    analysis = analysis_of(context)
    player.wait(lambda: analysis.result is not None and not analysis.stale, 90)
    first = analysis.result
    player.click(player.find(QToolButton, "analysis.input.input_image.photographs"))
    player.choose(player.popup(), "astronaut")
    player.wait(lambda: analysis.result is not first and not analysis.stale, 60)
    player.shoot("analysis")
    for layer, param in (("noise_0", "scale"), ("mix_0", "amount")):
        shown, text = analysis.result, context.document.graph[layer].params[param]
        slider = player.find(QSlider, f"analysis.{layer}.{param}")
        player.drag_slider(slider, 40)
        player.wait(lambda layer=layer, param=param, text=text: context.document.graph[layer].params[param] != text)
        player.wait(lambda slider=slider: not slider.isSliderDown())  # every move of the drag has arrived
        player.wait(lambda shown=shown: analysis.result is not shown and not analysis.stale)
    ran = [step.layers for step in analysis.result.steps if not step.cached]
    assert ran == [("mix_0",)], "changing Mix runs only Mix"
    player.shoot("noise_and_mix_dragged")


def inspect(player: Player) -> None:
    """Double-click a hidden layer in the Network Overview and see its channels."""
    analysis = analysis_of(player.window.context)
    player.gui(lambda: player.window.docks.show("network_overview"))
    place = player.cell(player.find(QAbstractItemView, "network_overview.steps"), "conv_2s")
    player.click_at(place, times=2)
    layer = player.find(QWidget, "channel_inspector.layer")
    player.wait(lambda: "conv_2s" in str(layer.property("currentText")))
    player.wait(lambda: "conv_2s" in analysis.result.captures, 60)
    player.shoot("channel_inspector")


def profile(player: Player) -> None:
    """Launch inference with profiling; see the operators and the utilisation."""
    player.menu("Run", "Launch Inference")
    table = player.find(QAbstractItemView, "operator_table.table", 180)
    player.wait(lambda: table.model().rowCount() > 5, 180)
    player.shoot("profile")
