"""The second story: tabs, a template, a fix, differences, a probe, networks side by side, and work that a kill left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep

import pytest

pytest.importorskip("PySide6")

from player import Gui, Player, has_display
from PySide6.QtCore import QPoint, QSettings
from PySide6.QtWidgets import QAbstractItemView, QApplication, QDialog, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

import samples
from app.ui.compare.window import SideWindow
from app.ui.engine.analysis import analysis_of
from app.ui.inspector.channel_inspector import ChannelInspectorPanel
from app.ui.shell.window import MainWindow
from designer.files.disk_watch import digest_of
from designer.files.document import read_document
from designer.files.journal import VARIABLE
from designer.operators.registry import load
from designer.units import number

pytestmark = [pytest.mark.gui, pytest.mark.story, pytest.mark.slow]
SHOTS = Path(os.environ.get("LAYERWRIGHT_STORY", "build/story")) / "editing"
ROOT = Path(__file__).parents[2]
CHANNEL, PIXEL = 2, (120, 60)  # a place of `conv_2s`, which has half the picture's width and height


@pytest.fixture(autouse=True)
def own_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "journal"
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


def player_of(window: MainWindow, folder: Path) -> Player:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    return Player(window, Gui(), folder)


@pytest.mark.timeout(600)
def test_edit_fix_and_compare(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    player = player_of(window, SHOTS)
    with ThreadPoolExecutor(1) as thread:
        played = thread.submit(play, player, tmp_path)
        qtbot.waitUntil(played.done, timeout=580_000)
        played.result()


def play(player: Player, folder: Path) -> None:
    context = player.window.context
    player.keys("ctrl+w")  # the sample, that the two documents are alone
    for name in ("dncnn", "denoiser"):
        for ending in (".xml", ".settings.xml"):
            shutil.copy(samples.path(name + ".xml").with_suffix(ending), folder)
    for name in ("weights", "held_out"):
        (folder / name).symlink_to(samples.path("denoiser.xml").parent / name)
    for name in ("denoiser", "dncnn"):
        player.menu("File", "Open...")
        player.file_dialog(folder / f"{name}.xml")
        player.wait(lambda name=name: context.has_document and context.root.path == folder / f"{name}.xml")
    template(player)
    mend(player)
    differences(player)
    player.tab("denoiser")
    player.wait(lambda: context.root.path == folder / "denoiser.xml")
    probe(player)
    side_by_side(player, folder / "comparison.html")


def at_the_canvas(player: Player) -> None:
    """Click next to the layers: keys mean the canvas then, also after a dialog has gone."""
    canvas = player.window.canvas.viewer
    player.click_at(player.gui(lambda: canvas.viewport().mapToGlobal(QPoint(12, 12))))
    player.wait(canvas.hasFocus)


def select(player: Player, layer: str) -> None:
    """Click a layer, after bringing it into sight with the keys of the canvas."""
    at_the_canvas(player)
    player.keys("Home")
    player.click_at(player.node(layer))
    player.wait(lambda: player.window.context.selection == (layer,))


def template(player: Player) -> None:
    """Make a template of three layers, change it inside, come back, undo."""
    context = player.window.context
    before = player.gui(lambda: dict(context.root.graph.layers))
    select(player, "conv_1")
    player.keys("shift+Right", "shift+Right")
    player.wait(lambda: set(context.selection) == {"conv_1", "norm_1", "conv_2"})
    player.keys("ctrl+g")
    name = player.find(QLineEdit, "template_name.name")
    player.write(name, "pair")
    player.wait(lambda: "pair" in context.root.graph.templates and len(context.selection) == 1)
    instance = player.gui(lambda: context.selection[0])
    player.shoot("a_template")
    player.click_at(player.node(instance))
    player.keys("Return")
    player.wait(lambda: bool(context.scope))
    player.click_at(player.node("conv_2"))
    player.wait(lambda: context.selection == ("conv_2",))
    player.write(player.line("parameters.features"), "8*4")
    player.wait(lambda: context.document.graph["conv_2"].params["features"] == "32")
    player.shoot("inside_of_it")
    player.click_at(player.node("conv_1"))
    player.keys("BackSpace")
    player.wait(lambda: not context.scope)
    player.wait(lambda: ", 32, " in str(context.document.inference.states[instance].outputs))
    player.keys("ctrl+z")
    player.wait(lambda: ", 48, " in str(context.document.inference.states[instance].outputs))
    player.keys("ctrl+z")
    player.wait(lambda: not context.root.graph.templates)
    assert player.gui(lambda: dict(context.root.graph.layers)) == before
    assert player.gui(lambda: context.root.history.is_clean)


def mend(player: Player) -> None:
    """Break a rule, and click the fix that Type Checking offers."""
    context = player.window.context
    select(player, "conv_2")
    player.write(player.line("parameters.groups"), "5")
    player.wait(lambda: not context.document.inference.states["conv_2"].ok)
    player.gui(lambda: player.window.docks.show("type_checking"))
    player.click_at(player.cell(player.find(QAbstractItemView, "type_checking.findings"), "conv_2"))
    fix = player.find(QPushButton, "type_checking.fixes.0")
    player.shoot("a_fix_is_offered")
    player.click(fix)
    player.wait(lambda: all(state.ok for state in context.document.inference.states.values()))


def differences(player: Player) -> None:
    """What is another than in the saved version."""
    context = player.window.context
    player.menu("File", "Compare With")
    player.choose(player.popup(), "Saved Version")
    listed = player.find(QAbstractItemView, "differences.list")
    player.cell(listed, "conv_2")
    player.shoot("differences")
    select(player, "conv_0")
    player.keys("ctrl+z", "ctrl+z")
    player.wait(lambda: context.root.history.is_clean)
    player.wait(lambda: listed.model().rowCount() == 0)


def probe(player: Player) -> None:
    """Analyse, look into a hidden layer, and pin a place of it: its values and the part of the input it depends on."""
    context = player.window.context
    at_the_canvas(player)
    player.keys("F5")
    analysis = analysis_of(context)
    player.wait(lambda: analysis.result is not None and not analysis.stale, 90)
    player.gui(lambda: player.window.docks.show("network_overview"))
    steps = player.find(QAbstractItemView, "network_overview.steps")
    player.click_at(player.cell(steps, "conv_2s"), times=2)
    panel = player.find(ChannelInspectorPanel, "channel_inspector")
    player.wait(lambda: panel.source == "conv_2s" and panel.page is not None, 60)

    def place() -> QPoint:
        tile, size = panel.grid.tile_rect(CHANNEL), panel.page.size
        x = tile.left() + tile.width() * (PIXEL[0] + 0.5) / size[0]
        y = tile.top() + tile.height() * (PIXEL[1] + 0.5) / size[1]
        return panel.grid.viewport().mapToGlobal(QPoint(round(x), round(y)))

    player.click_at(player.gui(place), button=3)
    player.wait(lambda: panel.probe.field.box is not None, 60)
    channel, x, y = panel.probe.pin
    left, top, right, bottom = panel.probe.field.box
    assert channel == CHANNEL
    assert left <= 2 * x < right, "what it depends on is around the same place of the input"
    assert top <= 2 * y < bottom
    assert (right - left, bottom - top) == (5, 5), "two convolutions of 3 x 3"
    value = number(float(analysis.result.captures["conv_2s"][0, channel, y, x]))
    assert f"channel {channel}  x {x}  y {y}   {value} " in player.gui(lambda: panel.status_text)
    player.shoot("a_pinned_place")


def side_by_side(player: Player, page: Path) -> None:
    """Both open networks on the same noisy picture, split; the report is written."""
    at_the_canvas(player)
    player.keys("ctrl+shift+b")
    side = player.find(SideWindow, "side")
    player.wait(lambda: not side.model.busy and len(side.model.made) == 2 and side.model.measured.figures, 120)
    titles = [player.gui(lambda key=key: side.model.title(key)) for key in "AB"]
    assert ["denoiser" in titles[0], "dncnn" in titles[1]] == [True, True]
    gain = {key: side.model.measured.figures[key].psnr - side.model.measured.figures["input"].psnr for key in "AB"}
    assert min(gain.values()) > 5, "both take most of the noise away"
    player.keys("s")
    view = player.find(QWidget, "side.split")
    middle = player.centre(view)
    player.drag(middle, middle + QPoint(120, 0))
    player.wait(lambda: view.amounts[0] > 0.55)
    player.shoot("side_by_side")
    player.keys("ctrl+r")
    player.file_dialog(page)
    player.wait(lambda: page.is_file() and side.report_button.isEnabled())
    text = page.read_text()
    assert "dncnn" in text
    assert "data:image/png;base64," in text
    player.click_at(player.centre(side.figures))
    player.keys("Escape")
    player.wait(lambda: not side.isVisible())


@pytest.mark.timeout(300)
def test_killed_with_unsaved_work(qtbot: QtBot, tmp_path: Path, own_journal: Path) -> None:
    """Kill -9 while there are unsaved changes: the next start offers them, and they are all there."""
    if QApplication.platformName() != "xcb" or not has_display():
        pytest.skip("the story needs an X display and xdotool: run it with `make test`")
    path = tmp_path / "dncnn.xml"
    shutil.copy(samples.path("dncnn.xml"), path)
    digest = digest_of(path.read_bytes())
    expected = read_document(path).graph
    assert expected is not None
    kill_after_work(path, own_journal, len(expected))
    assert digest_of(path.read_bytes()) == digest, "the file is as it was"

    window = MainWindow(load(), QSettings(str(tmp_path / "next.ini"), QSettings.Format.IniFormat))
    qtbot.addWidget(window, before_close_func=lambda w: w.close_now())
    window.setGeometry(0, 0, 1600, 1000)
    with qtbot.waitExposed(window):
        window.show()
    window.begin([path])
    player = player_of(window, SHOTS / "killed")
    with ThreadPoolExecutor(1) as thread:
        played = thread.submit(recover, player, path)
        qtbot.waitUntil(played.done, timeout=120_000)
        played.result()


def xdo(*words: object) -> str:
    done = subprocess.run(["xdotool", *(str(w) for w in words)], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout


def kill_after_work(path: Path, journal: Path, layers: int) -> None:
    """Start the program, duplicate every layer by keys, and kill it."""
    command = [sys.executable, "-m", "app.main", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as program:
        try:
            found = xdo("search", "--sync", "--onlyvisible", "--name", path.name).split()[0]
            sizes = dict(line.split("=") for line in xdo("getwindowgeometry", "--shell", found).split())
            x = int(sizes["X"]) + int(sizes["WIDTH"]) * 2 // 5
            y = int(sizes["Y"]) + int(sizes["HEIGHT"]) // 5
            xdo("windowfocus", "--sync", found, "mousemove", x, y, "sleep", 0.5, "click", 1, "sleep", 0.3)
            xdo("key", "--clearmodifiers", "ctrl+a", "sleep", 0.3, "key", "--clearmodifiers", "ctrl+d")
            end = monotonic() + 30
            while b"conv_noise_" not in b"".join(p.read_bytes() for p in journal.glob("*") if p.is_file()):
                assert monotonic() < end, "nothing was written into the journal"
                sleep(0.05)
        finally:
            os.kill(program.pid, signal.SIGKILL)


def recover(player: Player, path: Path) -> None:
    """The dialog is there; its button brings the work back, unsaved."""
    context = player.window.context
    before = player.gui(lambda: set(context.root.graph.layers))
    player.find(QDialog, "recover")
    player.shoot("recovery_is_offered")
    player.click(player.find(QPushButton, "recover.recover"))
    player.wait(lambda: player.window.recovery.dialog is None)
    player.wait(lambda: len(context.root.graph) == 2 * len(before))
    assert player.gui(lambda: before < set(context.root.graph.layers))
    assert player.gui(lambda: context.root.path == path and not context.root.history.is_clean)
    player.shoot("recovered")
    player.click_at(player.centre(player.window.canvas.viewer))
    player.keys("ctrl+s")
    player.wait(lambda: context.root.history.is_clean)
    saved = read_document(path).graph
    assert saved is not None
    assert set(saved.layers) == player.gui(lambda: set(context.root.graph.layers))
