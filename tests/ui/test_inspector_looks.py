"""Colors, ranges, orders and exports of the Channel Inspector."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from inspector_kit import Inspecting
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QColor, QImage
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from app.ui.engine.client import EngineClient
from app.ui.inspector.animation import save_animation
from app.ui.inspector.color_bar import ColorBar
from app.ui.inspector.legend import GAP, Legend
from app.ui.inspector.look import Fit, Look, fit, pixels, sample_of, value_at
from app.ui.inspector.order import INLINE, Order, Sorter, order_of
from app.ui.inspector.tiles import Tiles
from app.ui.widgets.render import palette, signed_pixels
from designer.graph.commands import set_params
from designer.graph.diagnostics import DiagnosticError

pytestmark = pytest.mark.gui
engine_is_let_go = kit.engine_is_let_go


class Bench(Inspecting):
    def other_noise(self, scale: str) -> None:
        before = self.analysis.result
        self.context.document.do(lambda g: set_params(g, {"noise_0": {"scale": scale}}))
        self.qtbot.waitUntil(lambda: self.analysis.result is not before, timeout=kit.WAIT)


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> Bench:
    made = Bench.launched(qtbot, engine, tmp_path)
    made.inspect("conv_h")
    return made


# --- colors ---------------------------------------------------------------------------------------------------


def test_shift_is_added_before_values_are_magnified(qapp: QApplication) -> None:
    plane = np.array([[-0.5, 0.0, 0.25]], np.float32)
    shifted = pixels(plane, Look(gain=2.0, shift=0.25))
    np.testing.assert_array_equal(shifted, pixels((plane + np.float32(0.25)) * 2, Look()))
    own = Fit(gain=4.0, shift=-0.25)  # with `each`, shift and gain count after the channel's own
    shifted = pixels(plane, Look(gain=2.0, shift=0.25, each=True), own)
    np.testing.assert_array_equal(shifted, pixels(((plane + own.shift) * own.gain + np.float32(0.25)) * 2, Look()))
    for place in (-0.5, 0.0, 1.0):
        assert value_at(place, Look(gain=2.0, shift=0.25)) == place / 2 - 0.25


def test_a_logarithmic_scale_shows_what_is_small() -> None:
    values = np.array([[-1, -0.01, 0, 0.001, 0.01, 0.1, 1, np.nan]], np.float32)
    plain = [QColor(int(p)).green() for p in signed_pixels(values, "green / red")[0]]
    logarithmic = [QColor(int(p)).green() for p in signed_pixels(values, "green / red", log=True)[0]]
    assert plain[4] <= 3
    assert logarithmic == [*sorted(logarithmic[:7]), 0]
    assert [round(g / 255, 1) for g in logarithmic[3:7]] == [0.1, 0.3, 0.7, 1.0]
    look = Look(log=True, gain=2.0, shift=0.25)
    for place in (-1.0, -0.4, 0.0, 0.7, 1.0):
        value = np.array([[value_at(place, look)]], np.float32)
        index = list(palette("viridis")).index(pixels(value, Look("viridis", 2.0, 0.25, log=True))[0, 0])
        assert (index - 128) / 127 == pytest.approx(place, abs=0.02)


def test_what_is_no_number_is_seen(qapp: QApplication) -> None:
    plane = np.zeros((12, 12), np.float32)
    clean = pixels(plane, Look())
    plane[2:11, 2:11] = np.nan
    plane[0, 0] = np.inf
    for name in ("green / red", "viridis"):
        found = pixels(plane, Look(name))
        table = set(palette(name).tolist())
        inside = set(found[2:11, 2:11].ravel().tolist())
        assert len(inside) == 2
        assert not inside & table
        assert found[0, 0] in inside
        assert found[11, 11] in table
    assert set(clean.ravel().tolist()) == {0xFF000000}


def test_the_controls_of_the_colors_fit_one_line(qtbot: QtBot) -> None:
    bar = ColorBar()
    qtbot.addWidget(bar)
    bar.resize(730, 100)
    bar.show()
    assert bar.side.geometry().center().y() == pytest.approx(bar.palette_box.geometry().center().y(), abs=1)


def test_ranges_that_are_fitted() -> None:
    values = np.linspace(-1, 3, 10001, dtype=np.float32)
    assert fit(values, "green / red") == Fit(pytest.approx(1 / 2.97, rel=0.01), 0.0)
    sequential = fit(values, "viridis")
    assert sequential.gain == pytest.approx(0.5, rel=0.02)
    assert sequential.shift == pytest.approx(-1, abs=0.02)
    assert fit(np.full(5, 7, np.float32), "viridis") == Fit(1.0, -7.0)
    assert fit(np.array([np.nan, np.inf], np.float32), "green / red") == Fit()
    lonely = np.zeros(100_000, np.float32)
    lonely[0] = 4
    assert fit(lonely, "green / red").gain == 0.25
    bordered = np.ones((4, 1024, 128), np.float32)
    bordered[:, :, ::64] = 0  # every 8th value would be from a few columns only, these among them
    assert np.mean(sample_of(bordered) == 0) == pytest.approx(1 / 64, rel=0.1)
    own = Fit(10.0, -0.2)
    found = pixels(np.array([[0.3]], np.float32), Look("viridis", each=True), own)
    assert found[0, 0] == palette("viridis")[255]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("largest", [1e-36, 1e-38, 1e-40])
def test_a_channel_of_tiny_values_has_all_colors(largest: float) -> None:
    for name in ("green / red", "viridis"):
        values, usual = (np.linspace(-size, size, 5, dtype=np.float32)[None] for size in (largest, 1.0))
        look = Look(name, each=True)
        np.testing.assert_array_equal(pixels(values, look, fit(values, name)), pixels(usual, look, fit(usual, name)))


def test_each_channel_has_a_scale_of_its_own(bench: Bench) -> None:
    gain = bench.panel.bar.look.gain
    before = bench.panel.grid.grab().toImage()
    bench.click("each")
    assert bench.panel.bar.look.each
    assert (bench.panel.bar.look.gain, bench.panel.bar.look.shift) == (1.0, 0.0)
    assert bench.panel.grid.grab().toImage() != before
    bench.panel.enlarge(2)
    alone = bench.panel.view.image
    colours = {alone.pixelColor(x, y).getRgb()[:3] for x in range(24) for y in range(16)}
    assert {(0, 255, 0), (255, 0, 0)} & colours  # the whole range is used by this channel alone
    bench.panel.shrink()
    bench.click("each")
    assert bench.panel.bar.look.gain == pytest.approx(gain)


def test_a_locked_range_stays_for_other_layers_and_pictures(bench: Bench, tmp_path: Path) -> None:
    bench.click("lock")
    look = bench.panel.bar.look
    bench.inspect("conv_0")
    bench.qtbot.waitUntil(lambda: bench.panel.grid.channels == 3, timeout=kit.WAIT)
    assert bench.panel.bar.look == look
    before = bench.panel.page
    dark = np.full((1, 3, 16, 24), 0.01, np.float32)
    np.save(tmp_path / "dark.npy", dark)
    bench.analysis.inputs.set_file("input_0", tmp_path / "dark.npy")
    bench.qtbot.waitUntil(lambda: bench.panel.page is not before, timeout=kit.WAIT)
    assert bench.panel.bar.look == look


def test_another_picture_is_fitted_anew_and_a_slider_is_not(bench: Bench, tmp_path: Path) -> None:
    look = bench.panel.bar.look
    bench.other_noise("0.4")
    assert bench.panel.bar.look == look
    before = bench.panel.page
    np.save(tmp_path / "bright.npy", np.full((1, 3, 16, 24), 50, np.float32))
    bench.analysis.inputs.set_file("input_0", tmp_path / "bright.npy")
    bench.qtbot.waitUntil(lambda: bench.panel.page is not before, timeout=kit.WAIT)
    assert bench.panel.bar.look.gain < look.gain / 5


def test_the_shift_reaches_as_far_as_the_values(bench: Bench, tmp_path: Path) -> None:
    before = bench.panel.page
    np.save(tmp_path / "bright.npy", np.full((1, 3, 16, 24), 50, np.float32))
    bench.analysis.inputs.set_file("input_0", tmp_path / "bright.npy")
    bench.qtbot.waitUntil(lambda: bench.panel.page is not before, timeout=kit.WAIT)
    shift, largest = bench.panel.bar.shift, float(np.abs(bench.panel.page.values).max())
    assert largest > 2
    bench.qtbot.keyClick(shift.slider, Qt.Key.Key_End)
    assert largest <= shift.value <= 2.5 * largest
    shift.box.selectAll()
    bench.qtbot.keyClicks(shift.box, "3.25\r")
    assert bench.panel.bar.look.shift == 3.25
    bench.panel.bar.show_extent(0.003)  # of a layer with small values the steps are small
    assert shift.box.singleStep() == pytest.approx(0.005 / 200)


def test_the_legend_tells_the_values_of_its_ends(qtbot: QtBot) -> None:
    legend = Legend()
    qtbot.addWidget(legend)
    legend.show_look(Look(gain=4.0), "weight")
    assert legend.texts() == ["≤ -0.25", "0", "≥ 0.25"]
    legend.show_look(Look("viridis", gain=2.0, shift=-1.0), "value")
    assert legend.texts() == ["≤ 0.5", "1", "≥ 1.5"]
    assert "value" in legend.toolTip()
    legend.resize(legend.sizeHint())
    assert legend.middle() == "1  value"
    legend.resize(legend.fontMetrics().horizontalAdvance("≤ 0.5 ≥ 1.5 1") + 4 * GAP, legend.height())
    assert legend.middle() == "1"
    legend.resize(legend.fontMetrics().horizontalAdvance("≤ 0.5 ≥ 1.5"), legend.height())
    assert legend.middle() == ""
    legend.show_look(Look("viridis", gain=2.0, shift=-0.5 + 1e-9), "value")
    assert legend.texts() == ["≤ 0", "0.5", "≥ 1"]
    legend.show_look(Look("viridis", gain=2e6, shift=-1e-6), "small values")
    assert legend.texts() == ["≤ 5e-07", "1e-06", "≥ 1.5e-06"]
    legend.show_look(Look(each=True), "value")
    assert legend.texts()[0] == "low"
    assert not legend.grab().isNull()


def test_tiles_of_large_channels_are_means_and_come_a_few_at_a_time() -> None:
    data = np.zeros((6, 1200, 1200), np.float32)
    data[:, :600] = 1
    tiles = Tiles()
    tiles.show(data)
    assert not tiles.make(range(6), until=0.0)  # the time is over: one batch, no more
    assert 0 < len(tiles) < 6
    assert tiles.make(range(6))
    picture = tiles.picture(5)
    assert picture is not None
    assert (picture.width(), picture.height()) == (144, 144)
    assert picture.pixelColor(70, 20).green() == 255
    assert picture.pixelColor(70, 120).green() == 0
    tiles.show(np.ones((6, 1200, 1200), np.float32))
    assert tiles.picture(5) is picture  # shown until the new one is ready
    tiles.show(None)
    assert tiles.picture(5) is None


def test_tiles_of_another_side_are_made_again_from_the_values() -> None:
    tiles = Tiles()
    tiles.show(np.ones((2, 600, 400), np.float32))
    for side in (144, 72, 288):
        tiles.set_side(side)
        assert tiles.missing(range(2)) == [0, 1]
        assert tiles.make(range(2))
        picture = tiles.picture(1)
        assert picture is not None
        assert (picture.width(), picture.height()) == (side * 2 // 3, side)


# --- orders ----------------------------------------------------------------------------------------------------


def test_orders() -> None:
    rng = np.random.default_rng(0)
    base = rng.standard_normal((3, 20, 20)).astype(np.float32)
    data = np.stack([base[0], base[1] * 2, base[0] * 0.9, np.maximum(base[2], 0), base[1] * 2 + 0.01, -base[0] - 3])
    assert order_of(data, Order.INDEX) == list(range(6))
    assert order_of(data, Order.ZEROS)[0] == 3
    assert order_of(data, Order.MEAN)[-1] == 5
    energy = [float((c.astype(np.float64) ** 2).mean()) for c in data]
    assert order_of(data, Order.ENERGY) == sorted(range(6), key=lambda c: -energy[c])
    chain = order_of(data, Order.SIMILARITY)
    assert sorted(chain) == list(range(6))
    assert abs(chain.index(0) - chain.index(2)) == 1
    assert abs(chain.index(1) - chain.index(4)) == 1
    for strange in (np.nan, np.inf, -np.inf):  # counts as 0, and takes nothing of the others away
        odd, plain = data.copy(), data.copy()
        odd[2, 0, 0], plain[2, 0, 0] = strange, 0
        for order in (Order.ENERGY, Order.MEAN, Order.SIMILARITY):
            assert order_of(odd, order) == order_of(plain, order)
        assert sorted(order_of(odd, Order.ZEROS)) == list(range(6))


def test_the_chain_of_similarity_starts_at_the_most_energy_not_the_most_contrast() -> None:
    data = np.random.default_rng(0).standard_normal((3, 20, 20)).astype(np.float32)
    data[1] = 10
    assert order_of(data, Order.ENERGY)[0] == order_of(data, Order.SIMILARITY)[0] == 1


def test_channels_are_sorted_and_keys_follow_the_order(bench: Bench) -> None:
    for row, order in enumerate(Order):
        bench.choose("order", row)
        assert list(bench.panel.grid.order) == order_of(bench.panel.page.values, order)
    grid, order = bench.panel.grid, list(bench.panel.grid.order)
    grid.setFocus()
    bench.qtbot.keyClick(grid, Qt.Key.Key_Home)
    bench.qtbot.keyClick(grid, Qt.Key.Key_Right)
    assert grid.current == order[1]
    middle = grid.tile_rect(order[2]).center().toPoint()
    bench.qtbot.mouseClick(grid.viewport(), Qt.MouseButton.LeftButton, pos=middle)
    assert bench.panel.shown.channel == order[2]
    bench.qtbot.keyClick(bench.panel.view, Qt.Key.Key_Right)
    assert bench.panel.shown.channel == order[3]


def test_many_values_are_sorted_in_a_thread(qtbot: QtBot) -> None:
    from PySide6.QtCore import QObject

    parent = QObject()
    sorter = Sorter(parent)
    data = np.random.default_rng(0).standard_normal((20, 256, 256)).astype(np.float32)
    assert data.size > INLINE
    found: list[object] = []
    sorter.sorted.connect(found.append)
    sorter.sort(data, Order.MEAN)
    sorter.sort(data, Order.ENERGY)  # the last request counts
    assert found == []
    qtbot.waitUntil(lambda: bool(found), timeout=kit.WAIT)
    assert found == [order_of(data, Order.ENERGY)]
    sorter.wait()


def test_the_selection_on_the_canvas_is_followed(bench: Bench) -> None:
    bench.context.select(("conv_0",))
    assert bench.panel.source == "conv_h"
    bench.click("follow")
    assert bench.panel.source == "conv_0"
    with bench.qtbot.waitSignal(bench.context.inspected) as reported:
        bench.context.select(("mix_0",))
    assert reported.args == ["mix_0"]
    bench.context.select(("mix_0", "conv_h"))
    assert bench.panel.source == "mix_0"


# --- exports ---------------------------------------------------------------------------------------------------


def trigger(bench: Bench, way: str) -> None:
    action = bench.panel.findChild(QAction, f"channel_inspector.export.{way}")
    assert action.isEnabled()
    action.trigger()


def test_statistics_are_a_table(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a: (str(tmp_path / "figures"), ""))
    trigger(bench, "statistics")
    bench.qtbot.waitUntil(lambda: "Saved" in bench.panel.status_text, timeout=kit.WAIT)
    rows = list(csv.DictReader((tmp_path / "figures.csv").read_text().splitlines()))
    assert len(rows) == 8
    values = bench.panel.page.values
    assert float(rows[3]["mean"]) == pytest.approx(float(values[3].mean()), rel=1e-4)
    assert float(rows[7]["maximum"]) == float(values[7].max())


@pytest.mark.parametrize("ending", [".gif", ".webp", ".png"])
def test_channels_are_animated(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    path = tmp_path / f"channels{ending}"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a: (str(path), ""))
    if ending == ".png":
        bench.click("each")
    trigger(bench, "channels")
    bench.qtbot.waitUntil(lambda: "Saved" in bench.panel.status_text, timeout=kit.WAIT)
    with Image.open(path) as made:
        assert getattr(made, "n_frames", 1) == 8
        assert made.size == (144, 96)
        if ending != ".webp":
            comment = made.info["comment" if ending == ".gif" else "Comment"]
            assert json.loads(comment)["provenance"]["engine"] == "onnxruntime"
        made.seek(5)
        frame = np.asarray(made.convert("RGB"))
    own = bench.panel.grid.fit_of(5) if bench.panel.bar.look.each else None
    expected = pixels(bench.panel.page.data[5], bench.panel.bar.look, own)
    red = (expected >> np.uint32(16)) & np.uint32(255)
    assert np.abs(frame[3::6, 3::6, 0].astype(int) - red.astype(int)).max() <= (40 if ending == ".gif" else 0)


@pytest.mark.parametrize(
    ("look", "unit", "ends", "whole", "plain"),
    [
        (Look(), "weight", ("≤ -1", "≥ 1"), "0  weight", "0"),
        (Look(), "", ("≤ -1", "≥ 1"), "0", "0"),
        (Look(gain=2.0, shift=1.0), "value", ("≤ -1.5", "≥ -0.5"), "-1  value", "-1"),
        (Look(each=True), "weight", ("low", "high"), "of each channel", "of each channel"),
    ],
)
def test_the_middle_of_the_legend_has_the_unit_where_there_is_room(
    qtbot: QtBot, look: Look, unit: str, ends: tuple[str, str], whole: str, plain: str
) -> None:
    legend = Legend()
    qtbot.addWidget(legend)
    legend.show_look(look, unit)
    assert legend.texts() == [ends[0], plain, ends[1]]
    width = legend.fontMetrics().horizontalAdvance
    taken = 2 * max(map(width, ends)) + 2 * GAP
    narrow = plain if whole != plain else ""
    for room, text in ((width(whole), whole), (999, whole), (width(whole) - 1, narrow), (width(plain) - 1, "")):
        legend.setFixedWidth(taken + room)
        assert legend.middle() == text
    what = "share of each channel's own range" if look.each else unit
    assert legend.toolTip() == f"{what}: {' · '.join(legend.texts())}"


def test_runs_are_recorded_while_a_slider_moves(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not bench.panel.findChild(QAction, "channel_inspector.export.runs").isEnabled()
    trigger(bench, "record")
    for scale in ("0.2", "0.5", "0.9"):
        before = bench.panel.page
        bench.other_noise(scale)
        bench.qtbot.waitUntil(lambda before=before: bench.panel.page is not before, timeout=kit.WAIT)
    trigger(bench, "record")  # ends the recording, which can still be saved
    path = tmp_path / "runs.gif"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a: (str(path), ""))
    trigger(bench, "runs")
    bench.qtbot.waitUntil(lambda: "Saved" in bench.panel.status_text, timeout=kit.WAIT)
    with Image.open(path) as made:
        assert made.n_frames == 4


def test_what_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = QImage(4, 4, QImage.Format.Format_RGB32)
    with pytest.raises(DiagnosticError, match=r"\.bmp"):
        save_animation(tmp_path / "a.bmp", [frame], 100)
    with pytest.raises(DiagnosticError, match="no frames"):
        save_animation(tmp_path / "a.gif", [], 100)
    with pytest.raises(DiagnosticError, match=r"none"):
        save_animation(tmp_path / "none" / "a.gif", [frame, frame], 100)
    monkeypatch.setattr("app.ui.inspector.animation.LARGEST", 32)
    with pytest.raises(DiagnosticError, match="3 images of 4 x 4 are too many"):
        save_animation(tmp_path / "a.gif", [frame] * 3, 100)
    assert list(tmp_path.iterdir()) == []
    save_animation(tmp_path / "a.gif", [frame] * 2, 100)  # as many as there can be
