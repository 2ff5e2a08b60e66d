"""Every value that the analysis and the Channel Inspector display, compared with the tensor that it comes from.

The tensors are computed by a session in this process, so that a value of another layer, channel or pixel is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from inspector_kit import Inspecting
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel, QSlider, QWidget
from pytestqt.qtbot import QtBot

from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.analysis.output_view import OutputView
from app.ui.engine.client import EngineClient
from app.ui.inspector.channel_statistics import BINS
from app.ui.inspector.subject import Kind
from app.ui.widgets.overlays import CrossOverlay
from app.ui.widgets.render import picture_pixels
from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.commands import set_params
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.registry import default_registry
from designer.runtime.session import Session

pytestmark = pytest.mark.gui
engine_is_let_go = kit.engine_is_let_go
WIDTH, HEIGHT = 24, 16
PLACES = ((0, 0), (WIDTH - 1, 0), (0, HEIGHT - 1), (WIDTH - 1, HEIGHT - 1), (7, 3))
NUMBER = r"-?\d[\d.]*(?:e[+-]\d+)?"


def tensors_of(graph: Graph, picture: Path, *names: str) -> Mapping[str, np.ndarray]:
    """Outputs and hidden tensors of the network with random weights of seed 0."""
    registry = default_registry()
    weights = fill_missing(Weights(), required_weights(Inference(graph, registry)), 0)
    session = Session(graph, registry, weights)
    session.set_input_file("input_0", picture)
    result = session.run([Source(name) for name in names])
    return {**result.outputs, **{str(source): array for source, array in result.captures.items()}}


def close(text: str, value: float) -> bool:
    """Whether a displayed number is a value in three significant digits."""
    return float(text) == pytest.approx(float(value), rel=6e-3, abs=1e-6)


def close_together(texts: Sequence[str], values: np.ndarray) -> bool:
    """Whether displayed numbers are values in three significant digits of the largest."""
    return [float(text) for text in texts] == pytest.approx(values.tolist(), abs=6e-3 * float(np.abs(values).max()))


def numbers(text: str) -> list[str]:
    return re.findall(NUMBER, text)


# --- the Channel Inspector -------------------------------------------------------------------------------------------


class Bench(Inspecting):
    def position(self, channel: int, x: int, y: int) -> QPoint:
        """Where a pixel of the tensor is on the grid."""
        page = self.panel.page
        assert page is not None
        height, width = page.data.shape[1:]
        rect = self.panel.grid.tile_rect(channel)
        across, down = (x - page.offset[0] + 0.5) / width, (y - page.offset[1] + 0.5) / height
        return QPointF(rect.left() + rect.width() * across, rect.top() + rect.height() * down).toPoint()

    def hover(self, channel: int, x: int, y: int) -> str:
        self.qtbot.mouseMove(self.panel.grid.viewport(), self.position(channel, x, y))
        return self.panel.status_text

    def leave(self) -> None:
        self.panel.probe.leave()


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> Bench:
    made = Bench.launched(qtbot, engine, tmp_path)
    made.inspect("conv_h")
    return made


@pytest.fixture
def tensors(bench: Bench, tmp_path: Path) -> Mapping[str, np.ndarray]:
    return tensors_of(kit.small_network(8), kit.picture(tmp_path), "input_0", "noise_0", "conv_h", "conv_0")


@pytest.mark.parametrize("layer", ["input_0", "noise_0", "conv_h", "conv_0"])
def test_values_and_statistics_of_every_channel(bench: Bench, tensors: Mapping[str, np.ndarray], layer: str) -> None:
    tensor = tensors[layer][0]
    bench.inspect(layer)
    bench.qtbot.waitUntil(lambda: bench.panel.grid.channels == len(tensor), timeout=kit.WAIT)
    bench.qtbot.waitUntil(lambda: bench.panel.statistics.complete, timeout=kit.WAIT)
    for channel, plane in enumerate(tensor):
        for x, y in PLACES:
            words = bench.hover(channel, x, y)
            assert words.startswith(f"channel {channel}  x {x}  y {y}   "), words
            value, low, high, mean, deviation, zeros = numbers(words)[3:]
            expected = (plane[y, x], plane.min(), plane.max(), plane.mean(), plane.std(), 100 * np.mean(plane == 0))
            for text, number in zip((value, low, high, mean, deviation, zeros), expected, strict=True):
                assert close(text, number), (words, expected)
        histogram = bench.panel.findChild(QWidget, "channel_inspector.histogram").statistics
        counts, _ = np.histogram(plane, BINS, (plane.min(), plane.max()))
        assert histogram.counts.sum() == plane.size
        assert np.abs(histogram.counts - counts).max() <= 1  # a value on an edge
        assert bench.panel.grid.caption(channel, 400).startswith(f"{channel}   ")
        bench.leave()
        low, high = numbers(bench.panel.grid.caption(channel, 400))[1:]
        assert close(low, plane.min())
        assert close(high, plane.max())


def test_values_of_a_single_channel_and_of_the_marked_pixel(bench: Bench, tensors: Mapping[str, np.ndarray]) -> None:
    tensor, view = tensors["conv_h"][0], bench.panel.view
    for channel in (0, 5):
        bench.panel.enlarge(channel)
        for x, y in PLACES:
            bench.qtbot.mouseMove(view, view.place_of(x + 0.5, y + 0.5).toPoint())
            words = bench.panel.status_text
            assert words.startswith(f"channel {channel}  x {x}  y {y}   "), words
            assert close(numbers(words)[3], tensor[channel, y, x])
        bench.panel.shrink()
    bench.qtbot.mouseClick(bench.panel.grid.viewport(), Qt.MouseButton.RightButton, pos=bench.position(2, 9, 4))
    bench.leave()
    words = bench.panel.status_text
    assert words.startswith("pinned  channel 2  x 9  y 4   "), words
    assert close(numbers(words)[3], tensor[2, 4, 9])
    for channel in range(8):  # the marked pixel of every channel
        assert close(numbers(bench.panel.grid.caption(channel, 400))[1], tensor[channel, 4, 9])
    same = bench.panel.probe.same.text()
    for name in ("input_0", "output_0"):
        found = re.search(rf"{name} \(9, 4\)  ({NUMBER}) ({NUMBER}) ({NUMBER})", same)
        assert found is not None, same
        assert close_together(found.groups(), tensors[name][0, :, 4, 9]), same


@pytest.mark.parametrize("gain", [1.0, 0.25, 4.0])
def test_magnified_colors(bench: Bench, tensors: Mapping[str, np.ndarray], gain: float) -> None:
    """Green above zero, red below, the full color at 1 / gain."""
    bench.panel.bar.set_look(gain, 0.0)
    for channel in (1, 6):
        bench.panel.enlarge(channel)
        image = bench.panel.view.image
        assert image is not None
        assert (image.width(), image.height()) == (WIDTH, HEIGHT)
        for x, y in product(range(0, WIDTH, 5), range(0, HEIGHT, 5)):
            value = float(np.clip(tensors["conv_h"][0, channel, y, x] * gain, -1, 1)) * 255
            red, green, blue, _ = QColor(image.pixel(x, y)).getRgb()
            assert red == pytest.approx(max(-value, 0), abs=2)
            assert green == pytest.approx(max(value, 0), abs=2)
            assert blue == 0
        bench.panel.shrink()


def test_a_gradient_of_which_a_part_is_drawn(bench: Bench) -> None:
    """The pinned pixel is named and marked where it is in the whole tensor, with and without the cursor on it."""
    bench.qtbot.mouseClick(bench.panel.grid.viewport(), Qt.MouseButton.RightButton, pos=bench.position(1, 10, 8))
    bench.leave()
    bench.panel.look_at(Kind.GRADIENT)
    bench.qtbot.waitUntil(lambda: bench.panel.page is not None, timeout=kit.WAIT)
    page = bench.panel.page
    assert page is not None
    left, top = page.offset
    assert left > 0
    assert top > 0
    assert bench.panel.probe.hover is None
    words = bench.panel.status_text
    assert words.startswith("pinned  channel 1  x 10  y 8   ")
    assert close(numbers(words)[3], page.data[1, 8 - top, 10 - left])
    for number in range(page.data.shape[0]):
        assert close(numbers(bench.panel.grid.caption(number, 400))[1], page.data[number, 8 - top, 10 - left])
    for x, y in ((10, 8), (left, top), (9, 7)):
        words = bench.hover(0, x, y)
        assert f"channel 0  x {x}  y {y}   " in words
        assert close(numbers(words)[3], page.data[0, y - top, x - left])
    bench.leave()
    bench.panel.enlarge(0)
    assert bench.panel.view.overlays == (CrossOverlay(10 - left, 8 - top),)


# --- the analysis ----------------------------------------------------------------------------------------------------


class Analyzed(kit.Launched):
    def __init__(self, qtbot: QtBot, engine: EngineClient, picture: Path, **mix: str) -> None:
        super().__init__(qtbot, engine)
        self.panel = AnalysisPanel(self.context)
        qtbot.addWidget(self.panel)
        self.panel.resize(900, 600)
        self.panel.show()
        graph = kit.small_network()
        graph.apply(set_params(graph, {"mix_0": mix}))
        self.open(graph)
        self.analysis.inputs.set_file("input_0", picture)
        self.launch_random()
        self.view = self.panel.findChild(OutputView, "analysis.output.output_0")
        self.tensors = tensors_of(graph, picture, "conv_0", "noise_0", "input_0")


@pytest.mark.parametrize("amount", [0.25, 0.5])
def test_both_sides_of_a_split_are_the_tensors_of_their_layers(
    qtbot: QtBot, engine: EngineClient, tmp_path: Path, amount: float
) -> None:
    made = Analyzed(qtbot, engine, kit.picture(tmp_path), selection="v_split", amount=str(amount))
    image, line = made.view.view.image, round(amount * WIDTH)
    assert image is not None
    for name, columns in (("conv_0", range(line)), ("noise_0", range(line, WIDTH))):
        expected = picture_pixels(made.tensors[name][0])
        for x, y in product(columns, range(HEIGHT)):
            assert QColor(image.pixel(x, y)) == QColor(int(expected[y, x])), (name, x, y)
            assert _near(expected[y, x], made.tensors[name][0, :, y, x])
    for x, y in PLACES:
        qtbot.mouseMove(made.view.view, made.view.view.place_of(x + 0.5, y + 0.5).toPoint())
        words, tensor = made.view.probe_text, made.tensors["conv_0" if x < line else "noise_0"]
        assert words.startswith(f"x {x}  y {y}   R ")
        assert close_together(numbers(words)[2:], tensor[0, :, y, x]), words


def _near(pixel: int, values: np.ndarray) -> bool:
    """Whether a pixel has the color of RGB values 0..1, rounded."""
    return all(
        abs(mine - theirs) <= 0.5001
        for mine, theirs in zip(QColor(int(pixel)).getRgb()[:3], np.clip(values, 0, 1) * 255, strict=True)
    )


def test_an_amplified_difference_and_its_share_out_of_range(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    made = Analyzed(qtbot, engine, kit.picture(tmp_path), selection="amplified_difference", gain="4.0")
    expected = 4 * np.abs(made.tensors["conv_0"] - made.tensors["noise_0"])[0]
    image = made.view.view.image
    assert image is not None
    assert all(
        _near(image.pixel(x, y) & 0xFFFFFFFF, expected[:, y, x]) for x, y in product(range(WIDTH), range(HEIGHT))
    )
    share = 100 * np.mean(expected > 1)
    shown = made.panel.findChild(QLabel, "analysis.output.output_0.range").text()
    assert share > 0
    assert close(numbers(shown.partition("> 1")[2])[0], share)


def test_psnr_under_the_output_is_that_of_the_exported_network(
    qtbot: QtBot, engine: EngineClient, tmp_path: Path
) -> None:
    made = Analyzed(qtbot, engine, kit.picture(tmp_path), selection="v_split", amount="0.0")
    label = made.panel.findChild(QLabel, "analysis.output.output_0.quality")
    for scale in ("0.1", "0.4"):
        graph = made.context.root.graph
        made.context.root.do(lambda g, scale=scale: set_params(g, {"noise_0": {"scale": scale}}))
        made.wait(kit.Phase.READY)
        qtbot.waitUntil(lambda: label.isVisible() and label.isEnabled() and "dB" in label.text(), timeout=kit.WAIT)
        found = tensors_of(graph, kit.picture(tmp_path), "conv_0", "input_0")
        error = np.clip(found["conv_0"], 0, 1).astype(np.float64) - np.clip(found["input_0"], 0, 1)
        shown = re.search(rf"PSNR ({NUMBER}) dB", label.text())
        assert shown is not None, label.text()
        assert float(shown.group(1)) == pytest.approx(-10 * np.log10(np.mean(error**2)), abs=0.006)


def test_a_slider_s_number_is_the_document_s(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    made = Analyzed(qtbot, engine, kit.picture(tmp_path))
    slider = made.panel.findChild(QSlider, "analysis.noise_0.scale")
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    made.wait(kit.Phase.READY)
    assert float(made.context.root.graph["noise_0"].params["scale"]) == pytest.approx(0.11)
    found = tensors_of(made.context.root.graph, kit.picture(tmp_path), "noise_0")
    assert made.analysis.result is not None
    np.testing.assert_allclose(made.analysis.result.outputs["output_0"][..., -1], found["noise_0"][..., -1], atol=1e-6)
