"""The Channel Inspector: a layer's tensor as a grid, colors, magnify, one channel alone, the value under the cursor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from inspector_kit import Inspecting
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QColor, QImage
from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QApplication, QComboBox, QFileDialog, QSlider
from pytestqt.qtbot import QtBot

from app.ui.engine.client import EngineClient
from app.ui.engine.result import Phase
from app.ui.inspector.channel_grid import ChannelGrid
from app.ui.inspector.channel_statistics import BINS, channel_statistics
from app.ui.inspector.look import Look
from app.ui.inspector.tiles import Tiles
from app.ui.widgets.feature_view import FeatureView
from app.ui.widgets.render import as_channels, block_mean, palette, picture_pixels, signed_pixels, to_bytes
from designer.graph.commands import rename_layer, set_params
from designer.units import number

pytestmark = pytest.mark.gui
engine_is_let_go = kit.engine_is_let_go


class Bench(Inspecting):
    SIZE = (800, 500)

    @property
    def grid(self) -> ChannelGrid:
        return self.panel.grid

    def inspect(self, layer: str, channels: int) -> None:
        self.context.inspect_requested.emit(layer)
        self.qtbot.waitUntil(lambda: self.grid.channels == channels, timeout=kit.WAIT)

    def captured(self, layer: str) -> np.ndarray:
        assert self.analysis.result is not None
        return self.analysis.result.captures[layer]


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> Bench:
    return Bench.launched(qtbot, engine, tmp_path)


def test_colours_of_signed_values() -> None:
    values = np.array([[-1.0, -0.5, 0.0, 0.5, 1.0, 9.0, np.nan]], np.float32)
    colours = [QColor(int(p)).getRgb()[:3] for p in signed_pixels(values, "green / red")[0]]
    assert colours[0] == (255, 0, 0)
    assert colours[2] == (0, 0, 0)
    assert colours[4] == colours[5] == (0, 255, 0)
    assert colours[6] == (0, 0, 0)
    assert colours[1][0] in range(126, 130)
    assert colours[3][1] in range(126, 130)
    assert [c[:1] for c in colours[3:5]] == [(0,), (0,)]
    shifted = signed_pixels(values[:, :1], "green / red", gain=2.0, shift=1.5)
    assert QColor(int(shifted[0, 0])).green() == 255
    for name in ("orange / blue", "gray", "viridis"):
        assert len(set(palette(name).tolist())) > 100


def test_pictures_are_rounded_and_clipped() -> None:
    plane = np.array([[-0.1, 0.0, 0.5, 1.0, 1.7]], np.float32)
    assert to_bytes(plane).tolist() == [[0, 0, 128, 255, 255]]
    rgb = np.stack([np.full((2, 2), v, np.float32) for v in (1.0, 0.5, 0.0)])
    assert QColor(int(picture_pixels(rgb)[0, 0])).getRgb()[:3] == (255, 128, 0)
    assert QColor(int(picture_pixels(rgb[:1])[1, 1])).getRgb()[:3] == (255, 255, 255)


def test_block_mean_and_ranks() -> None:
    data = np.arange(2 * 5 * 7, dtype=np.float32).reshape(2, 5, 7)
    expected = data[:, :4, :6].reshape(2, 2, 2, 3, 2).mean(axis=(2, 4))
    assert np.allclose(block_mean(data, 2), expected)
    assert as_channels(np.zeros((1, 3, 4, 5), np.float32)).shape == (3, 4, 5)  # type: ignore[union-attr]
    assert as_channels(np.zeros((2, 4, 5), np.float32)).shape == (2, 4, 5)  # type: ignore[union-attr]
    assert as_channels(np.zeros((1, 10), np.float32)) is None


@pytest.mark.parametrize("shape", [(1, 512), (512, 1), (2, 1000), (3, 7)])
def test_planes_thinner_than_a_block_keep_a_row(shape: tuple[int, int]) -> None:
    rows, columns = np.indices(shape, np.float32)
    blocks = block_mean(rows + 2 * columns, 4)
    height, width = (min(4, length) for length in shape)
    assert blocks.shape == (shape[0] // height, shape[1] // width)
    assert blocks[0, 0] == pytest.approx((rows + 2 * columns)[:height, :width].mean())
    tiles = Tiles()
    tiles.show(np.ones((2, *shape), np.float32))
    assert tiles.make(range(2))
    assert not tiles.picture(1).isNull()


def test_a_hidden_layer_is_captured_and_shown(bench: Bench) -> None:
    bench.inspect("conv_h", 8)
    assert bench.captured("conv_h").shape == (1, 8, 16, 24)
    assert "conv_h   1 x 8 x 16 x 24" in bench.panel.status_text
    assert bench.grid.grab().toImage().size().width() > 0


def test_input_and_output_are_tensors_too(bench: Bench) -> None:
    bench.inspect("input_0", 3)
    bench.inspect("conv_h", 8)
    bench.inspect("output_0", 3)
    assert np.array_equal(bench.captured("output_0"), bench.analysis.result.outputs["output_0"])


def test_the_layer_is_chosen_from_the_list(bench: Bench) -> None:
    box = bench.panel.findChild(QComboBox, "channel_inspector.layer")
    assert box is not None
    assert [box.itemText(i) for i in range(box.count())][:3] == ["input_0", "noise_0", "conv_h"]
    bench.qtbot.keyClicks(box.lineEdit(), "conv_h")
    bench.qtbot.keyClick(box, Qt.Key.Key_Return)
    bench.qtbot.waitUntil(lambda: bench.grid.channels == 8, timeout=kit.WAIT)


def test_the_value_under_the_cursor_is_told_with_its_place(bench: Bench) -> None:
    bench.inspect("conv_h", 8)
    rect = bench.grid.tile_rect(2)
    place = rect.topLeft()
    place.setX(place.x() + rect.width() * 20.5 / 24)
    place.setY(place.y() + rect.height() * 4.5 / 16)
    bench.qtbot.mouseMove(bench.grid.viewport(), place.toPoint())
    value = float(bench.captured("conv_h")[0, 2, 4, 20])
    assert f"channel 2  x 20  y 4   {value:.3g}" in bench.panel.status_text
    assert "deviation" in bench.panel.status_text


def test_a_click_enlarges_and_escape_goes_back(bench: Bench) -> None:
    bench.inspect("conv_h", 8)
    middle = bench.grid.tile_rect(3).center().toPoint()
    bench.qtbot.mouseClick(bench.grid.viewport(), Qt.MouseButton.LeftButton, pos=middle)
    view = bench.panel.view
    assert view.isVisible()
    assert view.image is not None
    assert (view.image.width(), view.image.height()) == (24, 16)
    bench.qtbot.mouseMove(view, view.place_of(7.5, 2.5).toPoint())
    assert f"channel 3  x 7  y 2   {float(bench.captured('conv_h')[0, 3, 2, 7]):.3g}" in bench.panel.status_text
    bench.qtbot.keyClick(view, Qt.Key.Key_Right)
    assert bench.panel.shown.channel == 4
    bench.qtbot.mouseMove(view, QPoint(2, 2))  # next to the image: the text is about the whole channel
    values = bench.captured("conv_h")[0, 4]
    assert f"channel 4   {number(values.min())} … {number(values.max())}   mean" in bench.panel.status_text
    bench.qtbot.keyClick(view, Qt.Key.Key_Escape)
    assert bench.grid.isVisible()
    assert bench.grid.current == 4
    bench.qtbot.keyClick(bench.grid, Qt.Key.Key_Return)
    assert view.isVisible()


def test_a_channel_with_a_single_value_is_not_called_zero() -> None:
    plane = np.zeros((100, 100), np.float32)
    assert "zeros 100 %" in channel_statistics(plane).text()
    plane[3, 4] = 0.5
    assert "zeros > 99.9 %" in channel_statistics(plane).text()
    plane[:10] = 0.5
    assert "zeros 90.0 %" in channel_statistics(plane).text()


def test_one_channel_needs_no_more_width_than_all(bench: Bench) -> None:
    bench.inspect("conv_h", 8)
    before = bench.panel.minimumSizeHint().width()
    bench.panel.enlarge(1)
    QApplication.processEvents()
    assert bench.panel.findChild(QAbstractButton, "channel_inspector.remove_channel").isVisible()
    assert bench.panel.minimumSizeHint().width() == before  # the panels around it stay as they are


def test_magnify_and_shift_change_the_colours(bench: Bench) -> None:
    bench.inspect("conv_h", 8)
    bench.panel.bar.set_look(1.0)
    before = bench.grid.grab().toImage()
    gain = bench.panel.findChild(QSlider, "channel_inspector.gain")
    assert gain is not None
    gain.setFocus()
    bench.qtbot.keyClick(gain, Qt.Key.Key_PageUp)
    assert bench.panel.bar.look.gain > 1.5
    assert bench.grid.grab().toImage() != before
    reset = bench.panel.findChild(object, "channel_inspector.reset")
    bench.qtbot.mouseClick(reset, Qt.MouseButton.LeftButton)
    assert bench.panel.bar.look == Look()


def test_the_first_look_is_magnified_and_the_own_setting_stays(bench: Bench) -> None:
    bench.inspect("conv_h", 8)
    auto = bench.panel.bar.look
    extreme = np.percentile(np.abs(bench.captured("conv_h")), 99.5)
    assert auto.gain == pytest.approx(1 / extreme, rel=0.05)
    gain = bench.panel.findChild(QSlider, "channel_inspector.gain")
    gain.setFocus()
    bench.qtbot.keyClick(gain, Qt.Key.Key_PageUp)
    own = bench.panel.bar.look
    assert own.gain > auto.gain
    bench.inspect("conv_0", 3)
    assert bench.panel.bar.look.gain == pytest.approx(
        1 / np.percentile(np.abs(bench.captured("conv_0")), 99.5), rel=0.05
    )
    bench.inspect("conv_h", 8)
    assert bench.panel.bar.look == own
    bench.context.document.do(lambda g: set_params(g, {"noise_0": {"scale": "0.9"}}))
    first = bench.analysis.result
    bench.qtbot.waitUntil(lambda: bench.analysis.result is not first, timeout=kit.WAIT)
    assert bench.panel.bar.look == own


def test_looking_at_the_next_layer_runs_nothing_again(bench: Bench) -> None:
    bench.inspect("conv_h", 8)
    bench.inspect("conv_0", 3)
    bench.qtbot.waitUntil(lambda: all(step.cached for step in bench.analysis.result.steps), timeout=kit.WAIT)


def test_figures_of_channels() -> None:
    rng = np.random.default_rng(0)
    plane = rng.normal(0.5, 2.0, (40, 50)).astype(np.float32)
    plane[:10] = 0
    figures = channel_statistics(plane)
    assert figures.mean == pytest.approx(plane.mean(), rel=1e-5)
    assert figures.deviation == pytest.approx(plane.std(), rel=1e-5)
    assert (figures.low, figures.high) == (plane.min(), plane.max())
    assert figures.zeros == 0.25
    assert figures.flag == ""
    expected, _ = np.histogram(plane, BINS, (plane.min(), plane.max()))
    assert figures.counts.sum() == plane.size
    assert np.abs(figures.counts - expected).max() <= 3  # values on an edge
    assert channel_statistics(np.zeros((4, 4), np.float32)).flag == "dead"
    assert channel_statistics(np.full((4, 4), 0.3, np.float32)).flag == "dead"
    for few in ([[0.7]], [[0.0]], [[0.7, 0.2]]):
        assert channel_statistics(np.array(few, np.float32)).flag == ""
    assert channel_statistics(np.clip(plane, -9, -0.1)).flag == "saturated"
    assert channel_statistics(np.maximum(plane - 3, 0)).flag == ""  # what ReLU makes is not saturation
    for low, high in ((0.0, 1e-38), (0.0, 1e-44), (-3e38, 3e38)):  # the width of a bin is outside of float32
        counts = channel_statistics(np.array([[low, low, low, high]], np.float32)).counts
        assert (counts[0], counts[-1], counts.sum()) == (3, 1, 4)
    plane[0, :3] = (np.nan, np.inf, -np.inf)
    broken = channel_statistics(plane)
    assert (broken.flag, broken.broken) == ("not finite", 3)
    assert np.isfinite(broken.mean)
    assert channel_statistics(np.full((2, 2), np.nan, np.float32)).broken == 4


@pytest.mark.parametrize("side", [24, 144, 400])
def test_ranges_under_the_channels_are_those_of_all_values(bench: Bench, side: int) -> None:
    bench.inspect("noise_0", 3)
    bench.grid.set_side(side)
    bench.qtbot.waitUntil(lambda: bench.panel.statistics.complete, timeout=kit.WAIT)
    for channel, values in enumerate(bench.captured("noise_0")[0]):
        expected = f"{channel}   {number(float(values.min()))} … {number(float(values.max()))}"
        assert bench.grid.caption(channel, 400) == expected


def test_dead_channels_are_flagged_in_the_grid(bench: Bench) -> None:
    bench.inspect("conv_h", 8)
    bench.qtbot.waitUntil(lambda: bench.panel.statistics.complete, timeout=kit.WAIT)
    assert "dead" not in bench.panel.status_text
    data = np.array(bench.captured("conv_h")[0])
    data[3] = 0
    bench.grid.show_data(data)
    before = bench.grid.grab().toImage()
    bench.panel.statistics.show_data(data)
    bench.qtbot.waitUntil(lambda: bench.panel.statistics.complete, timeout=kit.WAIT)
    assert bench.panel.statistics.flag(3) == "dead"
    assert bench.panel.statistics.flagged() == {"dead": 1}
    assert bench.grid.grab().toImage() != before


def trigger(bench: Bench, kind: str) -> None:
    action = bench.panel.findChild(QAction, f"channel_inspector.export.{kind}")
    assert action.isEnabled()
    action.trigger()


def written(bench: Bench, said: str) -> None:
    """Files are written by a thread."""
    bench.qtbot.waitUntil(lambda: said in bench.panel.status_text, timeout=kit.WAIT)
    bench.panel.exporter.background.wait()


def test_the_page_and_the_tensor_are_saved(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.inspect("conv_h", 8)
    proposed: list[str] = []

    def choose(_parent: object, _title: str, name: str, *_filters: str) -> tuple[str, str]:
        proposed.append(name)
        return str(tmp_path / Path(name).stem), ""  # the ending is left out

    monkeypatch.setattr(QFileDialog, "getSaveFileName", choose)
    trigger(bench, "tensor")
    written(bench, "Saved conv_h.npy")
    assert np.array_equal(np.load(tmp_path / "conv_h.npy"), bench.captured("conv_h"))
    trigger(bench, "picture")
    written(bench, "Saved conv_h.png")
    sheet = QImage(str(tmp_path / "conv_h.png"))
    assert sheet.width() > 300
    bench.panel.enlarge(2)
    trigger(bench, "picture")
    written(bench, "Saved conv_h_2.png")
    alone = QImage(str(tmp_path / "conv_h_2.png"))
    assert (alone.width(), alone.height()) == (24, 16)
    trigger(bench, "copy")
    assert QApplication.clipboard().image().size() == alone.size()
    assert [Path(name).name for name in proposed] == ["conv_h.npy", "conv_h.png", "conv_h_2.png"]
    assert Path(proposed[-1]).parent == tmp_path  # the folder of the last file
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a: (str(tmp_path / "none" / "x.png"), ""))
    trigger(bench, "picture")
    written(bench, "none")
    assert "Saved" not in bench.panel.status_text


def test_it_follows_a_slider_and_what_did_not_change_is_not_sent_again(bench: Bench) -> None:
    bench.inspect("conv_h", 8)
    held, first = bench.captured("conv_h"), bench.analysis.result
    bench.context.document.do(lambda g: set_params(g, {"mix_0": {"amount": "0.25"}}))
    bench.qtbot.waitUntil(lambda: bench.analysis.result is not first, timeout=kit.WAIT)
    assert bench.captured("conv_h") is held
    bench.context.document.do(lambda g: set_params(g, {"noise_0": {"scale": "0.5"}}))
    bench.qtbot.waitUntil(lambda: bench.captured("conv_h") is not held, timeout=kit.WAIT)
    assert not np.array_equal(bench.captured("conv_h"), held)


def test_a_renamed_layer_stays_inspected_and_a_hidden_panel_asks_for_nothing(bench: Bench) -> None:
    bench.inspect("conv_h", 8)
    bench.context.document.do(lambda g: rename_layer(g, "conv_h", "first"))
    assert bench.panel.source == "first"
    assert bench.analysis.capture == "first"
    bench.panel.hide()
    assert bench.analysis.capture == ""
    bench.panel.show()
    assert bench.analysis.capture == "first"


def test_the_inspected_layer_is_shown_again_when_one_comes_back_to_its_document(bench: Bench) -> None:
    bench.inspect("conv_h", 8)
    first = bench.context.root
    bench.open(kit.small_network(4))
    assert bench.panel.source == ""
    with bench.qtbot.waitSignal(bench.context.inspected) as reported:
        bench.context.set_document(first)
        bench.qtbot.waitUntil(lambda: bench.panel.source == "conv_h", timeout=kit.WAIT)
    assert reported.args == ["conv_h"]
    bench.wait(Phase.READY)
    bench.qtbot.waitUntil(lambda: bench.grid.channels == 8, timeout=kit.WAIT)
    second = bench.open(kit.small_network(4))
    first.do(lambda graph: rename_layer(graph, "conv_h", "other"))
    bench.context.set_document(first)
    assert bench.panel.source == ""  # that layer is gone
    assert bench.context.root is not second


def test_many_channels_scroll_and_only_visible_ones_are_computed(qtbot: QtBot) -> None:
    grid = ChannelGrid("grid", "Channels")
    qtbot.addWidget(grid)
    grid.resize(500, 300)
    grid.set_side(100)  # before there is anything to show
    grid.set_side(144)
    grid.show_data(np.random.default_rng(0).standard_normal((1024, 32, 32)).astype(np.float32))
    with qtbot.waitExposed(grid):
        grid.show()
    qtbot.waitUntil(lambda: grid.rendered > 0)
    assert 0 < grid.rendered < 40
    qtbot.waitUntil(lambda: grid.complete)
    grid.set_look(Look(gain=2.0))
    assert not grid.complete
    qtbot.waitUntil(lambda: grid.complete)
    qtbot.keyClick(grid, Qt.Key.Key_End)
    assert grid.current == 1023
    assert grid.verticalScrollBar().value() == grid.verticalScrollBar().maximum()
    rect = grid.tile_rect(1023)
    assert grid.channel_at(rect.center()) == 1023
    assert grid.viewport().rect().contains(rect.center().toPoint())


def test_a_sheet_has_all_channels_in_their_order(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = ChannelGrid("grid", "Channels")
    qtbot.addWidget(grid)
    grid.resize(200, 300)
    grid.show()
    grid.set_side(40)  # without captions
    data = np.arange(60, dtype=np.float32)[:, None, None] / 60 * np.ones((1, 4, 4), np.float32)
    grid.show_data(data)
    grid.set_order(list(reversed(range(60))))

    def greens() -> list[int]:
        sheet = grid.sheet()
        places = ((x, y) for y in range(8, sheet.height() - 8, 48) for x in range(8, sheet.width() - 8, 48))
        found = [sheet.pixelColor(x + 20, y + 20) for x, y in places]
        return [color.green() for color in found if color.red() == 0]

    expected = [255 * value for value in reversed(data[:, 0, 0].tolist())]
    for height, columns in ((16000, 3), (500, 6)):
        monkeypatch.setattr("app.ui.inspector.channel_grid.MAX_SHEET", height)
        assert grid.sheet().width() == 8 + columns * 48
        assert greens()[:60] == pytest.approx(expected, abs=3)
    monkeypatch.setattr("app.ui.inspector.channel_grid.MAX_PIXELS", 48 * 48 * 10)
    assert grid.on_sheet == 10
    assert greens() == pytest.approx(expected[:10], abs=3)
    for count, columns, rows in ((1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 3, 2), (6, 3, 2), (7, 3, 3)):
        grid.show_data(data[-count:])
        assert grid.sheet().size().toTuple() == (8 + columns * 48, 8 + rows * 48)
        assert greens() == pytest.approx([255 * value for value in data[-count:, 0, 0].tolist()], abs=3)


def test_features_are_bars(qtbot: QtBot) -> None:
    view = FeatureView("features", "Values")
    qtbot.addWidget(view)
    view.resize(400, 200)
    view.show_values(np.linspace(-1, 1, 10, dtype=np.float32)[None])
    view.show()
    seen: list[object] = []
    view.probed.connect(seen.append)
    qtbot.mouseMove(view, view.rect().center())
    assert seen[-1] in (4, 5)
    assert not view.grab().isNull()
    view.show_values(np.random.default_rng(0).standard_normal(5000).astype(np.float32))
    assert not view.grab().isNull()


def test_every_control_has_a_name_for_people_and_for_tests(qtbot: QtBot, engine: EngineClient) -> None:
    panel = Bench(qtbot, engine).panel
    for kind in (QAbstractButton, QSlider, QComboBox, QAbstractSpinBox, ChannelGrid, FeatureView):
        for widget in panel.findChildren(kind):
            if widget.isVisibleTo(panel) or isinstance(widget, ChannelGrid):
                assert widget.objectName().startswith("channel_inspector."), widget
                assert widget.accessibleName(), widget.objectName()
