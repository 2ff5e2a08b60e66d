"""The walkthrough of the 2022 tool, played with its names and places: noise before the network, Mix against the original."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.gui

from pathlib import Path

import canvas_kit as kit
import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QDockWidget,
    QFileDialog,
    QGroupBox,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QSlider,
    QWidget,
)
from pytestqt.qtbot import QtBot
from window_kit import open_window

import samples
from app.ui.analysis.network_overview import NetworkOverviewPanel
from app.ui.engine.analysis import analysis_of
from app.ui.engine.result import Phase
from app.ui.shell.window import MainWindow
from designer.runtime.images import read_image

WAIT = 60000
READERS = ("conv_enc_1", "conv_enc_b", "conv_pre_shuffle")


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> MainWindow:
    made = open_window(qtbot, tmp_path, size=(1600, 1000))
    assert made.files.open(samples.path("denoiser.xml"))
    made.start_engine_client()
    return made


def menu_action(window: MainWindow, *titles: str) -> QAction:
    """An entry of the menu bar, by the titles on the way; menus are filled as they are when they open."""
    actions = window.menuBar().actions()
    for title in titles[:-1]:
        found = next(a for a in actions if a.text().replace("&", "") == title)
        menu = found.menu()
        assert isinstance(menu, QMenu)
        menu.aboutToShow.emit()
        actions = menu.actions()
    return next(a for a in actions if a.text().replace("&", "").startswith(titles[-1]))


def look_at(window: MainWindow, *layers: str) -> None:
    """Zoom to these layers, so that ports can be hit."""
    window.context.select(layers)
    QApplication.processEvents()
    window.actions_["view.frame_selection"].trigger()
    QApplication.processEvents()


def insert(window: MainWindow, link: tuple[str, int], operator: str) -> str:
    """Double-click a link, search an operator, Enter: it goes into the link. The new layer's name."""
    graph = window.context.document.graph
    before = set(graph.layers)
    place = kit.at(window.canvas, window.canvas.projection.link(*link).path().pointAtPercent(0.5))
    QTest.mouseDClick(window.canvas.viewer.viewport(), Qt.MouseButton.LeftButton, pos=place)
    edit = window.findChild(QLineEdit, "quick_add.text")
    assert edit is not None
    QTest.keyClicks(edit, operator)
    QTest.keyClick(edit, Qt.Key.Key_Return)
    (made,) = set(graph.layers) - before
    return made


def connect(window: MainWindow, producer: str, consumer: str, index: int = 0) -> None:
    look_at(window, producer, consumer)
    kit.drag(window.canvas, kit.output(window.canvas, producer), kit.port(window.canvas, consumer, index))


def connect_far(window: MainWindow, producer: str, consumer: str, index: int) -> None:
    """Pull a link to a layer that is not in view at first; the canvas scrolls meanwhile, as it does at its edge."""
    look_at(window, producer)
    canvas, view = window.canvas, window.canvas.viewer.viewport()
    start = kit.output(canvas, producer)
    QTest.mousePress(view, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, start)
    QTest.mouseMove(view, start + QPoint(40, 0))
    canvas.viewer.centerOn(canvas.projection[consumer])
    QApplication.processEvents()
    end = kit.port(canvas, consumer, index)
    QTest.mouseMove(view, end - QPoint(6, 0))
    QTest.mouseMove(view, end)
    QTest.mouseRelease(view, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, end)


def found(window: MainWindow, kind: type, name: str) -> QWidget:
    widget = window.findChild(kind, name)
    assert isinstance(widget, QWidget), name
    return widget


def test_the_walkthrough(window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    document = window.context.document
    graph = document.graph

    # The Layer Palette and Network Settings are where the 2022 tool has them.
    assert "Layer Palette" in {dock.windowTitle() for dock in window.findChildren(QDockWidget)}
    menu_action(window, "Tools", "Network Settings").trigger()
    assert found(window, QWidget, "network_settings").isVisible()

    # Noise between the input and its three readers.
    look_at(window, "input_image", *READERS)
    noise = insert(window, ("conv_enc_1", 0), "noise")
    for reader in READERS[1:]:
        connect(window, noise, reader)
    assert [str(graph[name].inputs[0]) for name in READERS] == [noise] * 3
    assert str(graph[noise].inputs[0]) == "input_image"

    # Mix between conv_out_0 and output_image, against the original picture.
    look_at(window, "conv_out_0", "output_image")
    mix = insert(window, ("output_image", 0), "mix")
    connect_far(window, "input_image", mix, 1)
    assert [str(source) for source in graph[mix].inputs] == ["conv_out_0", "input_image"]
    assert str(graph["output_image"].inputs[0]) == mix

    # Open Image Input: right click on the input layer.
    look_at(window, "input_image")
    view = window.canvas.viewer.viewport()
    place = kit.node(window.canvas, "input_image")
    QTest.mouseClick(view, Qt.MouseButton.RightButton, pos=place)
    QApplication.sendEvent(view, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, view.mapToGlobal(place)))
    menu = found(window, QMenu, "canvas.menu")
    assert isinstance(menu, QMenu)
    first = menu.actions()[0]
    assert first.text().replace("&", "") == "Open Image Input..."
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a, **k: (str(samples.HELD_OUT), ""))
    first.trigger()
    menu.close()
    assert document.settings.input_files["input_image"] == str(samples.HELD_OUT)

    # Launch Analysis. Options have the names of the 2022 tool.
    menu_action(window, "Run", "Launch Analysis").trigger()
    analysis = analysis_of(window.context)
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)
    options = found(window, QGroupBox, f"analysis.options.{mix}")
    labels = {label.text() for label in options.findChildren(QLabel)}
    assert {"Mix Selection", "Mix Amount"} <= labels

    def pictures() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        assert analysis.result is not None
        clean = read_image(samples.HELD_OUT)
        height, width = clean.shape[-2:]
        made = analysis.result.captures["conv_out_0"][..., :height, :width]
        return analysis.result.outputs["output_image"], made, clean

    # V split: the result at the left, the original at the right.
    selection = found(window, QComboBox, f"analysis.{mix}.selection")
    assert isinstance(selection, QComboBox)
    QTest.keyClick(selection, Qt.Key.Key_Down)
    assert graph[mix].params["selection"] == "h_split"
    QTest.keyClick(selection, Qt.Key.Key_Home)
    assert selection.currentText() == "v split"
    qtbot.waitUntil(lambda: not analysis.stale and analysis.phase is Phase.READY, timeout=WAIT)
    assert graph[mix].params.get("selection", "v_split") == "v_split"
    shown, made, clean = pictures()
    half = clean.shape[-1] // 2
    np.testing.assert_array_equal(shown[..., : half - 1], made[..., : half - 1])
    np.testing.assert_array_equal(shown[..., half + 1 :], clean[..., half + 1 :])
    slider = found(window, QSlider, f"analysis.{mix}.amount")
    before = analysis.result
    QTest.keyClick(slider, Qt.Key.Key_Home)
    qtbot.waitUntil(lambda: analysis.result is not before and analysis.phase is Phase.READY, timeout=WAIT)
    np.testing.assert_array_equal(pictures()[0], clean)

    # A recipe of one's own, whose differences can be seen: zero is in the middle.
    QTest.keyClick(selection, Qt.Key.Key_End)
    assert graph[mix].params["selection"] == "custom"
    QTest.keyClick(found(window, QSlider, f"analysis.{mix}.amount"), Qt.Key.Key_End)
    options = found(window, QGroupBox, f"analysis.options.{mix}")
    assert "Mix Recipe" in {label.text() for label in options.findChildren(QLabel)}
    recipe = found(window, QLineEdit, f"analysis.{mix}.recipe")
    assert isinstance(recipe, QLineEdit)
    recipe.selectAll()
    QTest.keyClicks(recipe, "alpha * (a-b)")
    qtbot.waitUntil(lambda: not analysis.stale and analysis.phase is Phase.READY, timeout=WAIT)
    qtbot.waitUntil(lambda: np.allclose(pictures()[0], pictures()[1] - clean, atol=1e-6), timeout=WAIT)
    output = found(window, QWidget, "analysis.output.output_image")
    image = output.view.image  # type: ignore[attr-defined]
    shades = [image.pixelColor(x, image.height() // 2).lightness() for x in range(image.width())]
    assert 100 < np.mean(shades) < 155  # around mid-gray
    assert np.std(shades) > 1

    # Magnify, then look into conv_2s by a double click in the Network Overview.
    zoom = output.view.zoom  # type: ignore[attr-defined]
    QTest.keyClick(output.view, Qt.Key.Key_Plus)  # type: ignore[attr-defined]
    assert output.view.zoom > zoom  # type: ignore[attr-defined]
    overview = window.findChild(NetworkOverviewPanel)
    assert overview is not None
    if not overview.isVisible():
        menu_action(window, "View", "Panels", "Network Overview").trigger()
    qtbot.waitUntil(overview.isVisible)
    row = overview.model.find("conv_2s")
    overview.tree.scrollTo(row)
    viewport, place = overview.tree.viewport(), overview.tree.visualRect(row).center()
    QTest.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=place)
    QTest.mouseDClick(viewport, Qt.MouseButton.LeftButton, pos=place)
    qtbot.waitUntil(lambda: analysis.result is not None and "conv_2s" in analysis.result.captures, timeout=WAIT)
    inspector = found(window, QWidget, "channel_inspector")
    assert inspector.isVisible()

    # The Inference Run Logger.
    menu_action(window, "Tools", "Inference Run Logger").trigger()
    assert found(window, QWidget, "run_logger").isVisible()
    assert isinstance(found(window, QPushButton, "analysis.launch"), QPushButton)
