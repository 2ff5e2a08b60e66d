"""The probe of the Channel Inspector: one place in many tensors, pinned marks, receptive fields."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from inspector_kit import Inspecting
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtWidgets import QApplication, QToolButton
from pytestqt.qtbot import QtBot

from app.ui.engine.client import EngineClient
from app.ui.engine.pixel_positions import reading, scaled
from app.ui.inspector.subject import Kind
from app.ui.widgets.overlays import BoxOverlay, CrossOverlay
from designer.graph.commands import rename_layer, set_params
from designer.units import number, numbers

pytestmark = pytest.mark.gui
engine_is_let_go = kit.engine_is_let_go


class Bench(Inspecting):
    def place(self, channel: int, x: int, y: int) -> QPoint:
        """Where a pixel of a tile is on the grid."""
        assert self.panel.page is not None
        height, width = self.panel.page.data.shape[1:]
        rect = self.panel.grid.tile_rect(channel)
        return QPointF(
            rect.left() + rect.width() * (x + 0.5) / width, rect.top() + rect.height() * (y + 0.5) / height
        ).toPoint()

    def pin(self, channel: int, x: int, y: int) -> None:
        viewport = self.panel.grid.viewport()
        self.qtbot.mouseClick(viewport, Qt.MouseButton.RightButton, pos=self.place(channel, x, y))

    def leave(self) -> None:
        self.panel.probe.leave()

    def values(self, name: str, x: int, y: int) -> str:
        result = self.analysis.result
        assert result is not None
        array = result.captures[name] if name in result.captures else result.outputs[name]
        return " ".join(numbers([float(v) for v in array[0, :, y, x]]))


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> Bench:
    made = Bench.launched(qtbot, engine, tmp_path)
    made.inspect("conv_h")
    return made


def test_the_same_place_in_tensors_of_other_sizes() -> None:
    assert scaled((3, 5), (10, 10), (10, 10)) == (3, 5)
    assert scaled((3, 5), (10, 10), (20, 20)) == (7, 11)
    assert scaled((7, 10), (20, 20), (10, 10)) == (3, 5)
    assert scaled((9, 9), (10, 10), (5, 3)) == (4, 2)
    # an output of which the padding was cut off again has the same step as before
    assert scaled((100, 100), (512, 512), (500, 451)) == (100, 100)
    assert scaled((50, 50), (256, 256), (500, 500)) == (101, 101)
    assert scaled((99, 99), (100, 100), (70, 70)) == (69, 69)  # a small image is not half of another that lost padding
    for size in (1, 7, 64, 333):
        for there in (1, 2, 31, 400):
            assert all(0 <= v < there for v in scaled((size - 1, 0), (size, size), (there, there)))
    assert reading("a", np.zeros((1, 5)), (0, 0), (1, 1)) == ""


def test_the_place_under_the_cursor_is_told_in_all_tensors(bench: Bench) -> None:
    bench.qtbot.mouseMove(bench.panel.grid.viewport(), bench.place(2, 20, 4))
    same = bench.panel.probe.same.text()
    assert f"input_0 (20, 4)  {bench.values('input_0', 20, 4)}" in same
    assert f"output_0 (20, 4)  {bench.values('output_0', 20, 4)}" in same
    before = bench.panel.grid.grab().toImage()
    bench.qtbot.mouseMove(bench.panel.grid.viewport(), bench.place(2, 2, 12))
    assert bench.panel.grid.grab().toImage() != before  # a mark and a value in every channel


@pytest.mark.parametrize("width", [560, 700, 1000])
def test_values_of_other_tensors_are_whole(bench: Bench, width: int) -> None:
    bench.panel.resize(width, 500)
    for _ in range(2):  # a layout that changes is arranged again
        QApplication.processEvents()
    assert bench.panel.width() == width
    same, viewport = bench.panel.probe.same, bench.panel.grid.viewport()
    output = "output_of_a_network_with_a_long_name"
    bench.context.document.do(lambda g: rename_layer(g, "output_0", output))
    bench.qtbot.waitUntil(lambda: output in bench.analysis.result.outputs, timeout=kit.WAIT)
    bench.qtbot.mouseMove(viewport, bench.place(2, 20, 4))
    lines = same.text().split("\n")
    for name in ("input_0", output):
        assert f"{name} (20, 4)  {bench.values(name, 20, 4)}" in same.text()
    for _ in range(2):
        QApplication.processEvents()
    needed = [same.fontMetrics().horizontalAdvance(line) for line in lines]
    assert max(needed) <= same.width()
    assert same.height() >= len(lines) * same.fontMetrics().height()
    height = bench.panel.grid.height()
    bench.leave()
    for _ in range(3):
        QApplication.processEvents()
    assert bench.panel.grid.height() == height  # the image does not move under the cursor


def test_a_pinned_place_stays_while_values_change(bench: Bench) -> None:
    bench.pin(3, 10, 8)
    probe = bench.panel.probe
    assert probe.pin == (3, 10, 8)
    bench.qtbot.mouseMove(bench.panel.subjects, QPoint(2, 2))
    first = bench.panel.status_text
    assert first.startswith("pinned  channel 3  x 10  y 8")
    result = bench.analysis.result
    bench.context.document.do(lambda g: set_params(g, {"noise_0": {"scale": "0.9"}}))
    bench.qtbot.waitUntil(lambda: bench.analysis.result is not result, timeout=kit.WAIT)
    bench.qtbot.waitUntil(lambda: bench.panel.status_text != first, timeout=kit.WAIT)
    assert f"y 8   {number(float(bench.panel.page.values[3, 8, 10]))}" in bench.panel.status_text
    bench.pin(3, 10, 8)  # once more: away
    assert probe.pin is None
    assert probe.field.box is None


def test_the_receptive_field_is_drawn_on_the_input(bench: Bench) -> None:
    bench.pin(0, 10, 8)
    pane = bench.panel.probe.pane
    assert pane.isVisible()
    bench.qtbot.waitUntil(lambda: bench.panel.probe.field.box is not None, timeout=kit.WAIT)
    assert bench.panel.probe.field.box == (8, 6, 13, 11)  # a kernel of 5 x 5
    marks = pane.view.overlays
    assert BoxOverlay(8, 6, 13, 11) in marks
    assert CrossOverlay(10, 8) in marks
    assert "field 5 x 5, computed" in pane.words.text()
    bench.inspect("conv_0")
    bench.qtbot.waitUntil(lambda: bench.panel.source == "conv_0" and bench.panel.page is not None, timeout=kit.WAIT)
    assert bench.panel.probe.pin is None
    bench.pin(0, 0, 8)  # at the edge: what is behind it is not an image
    bench.qtbot.waitUntil(lambda: bench.panel.probe.field.box is not None, timeout=kit.WAIT)
    assert bench.panel.probe.field.box == (0, 5, 4, 12)
    assert "field 4 x 7" in pane.words.text()


def test_the_input_picture_is_probed_and_pinned_too(bench: Bench) -> None:
    button = bench.panel.findChild(QToolButton, "channel_inspector.show_input")
    bench.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    view = bench.panel.probe.pane.view
    bench.qtbot.waitUntil(lambda: view.isVisible() and view.image is not None)
    QApplication.processEvents()  # the pane gets its size
    bench.qtbot.mouseMove(view, view.place_of(5.5, 9.5).toPoint())
    bench.qtbot.waitUntil(lambda: "x 5  y 9" in bench.panel.status_text)
    bench.qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=view.place_of(5.5, 9.5).toPoint())
    assert bench.panel.probe.pin == (0, 5, 9)


def test_a_click_on_the_enlarged_channel_pins(bench: Bench) -> None:
    bench.panel.enlarge(4)
    view = bench.panel.view
    bench.qtbot.mouseMove(view, view.place_of(3.5, 2.5).toPoint())
    bench.qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=view.place_of(3.5, 2.5).toPoint())
    assert bench.panel.probe.pin == (4, 3, 2)
    assert CrossOverlay(3, 2) in view.overlays
    bench.qtbot.mouseClick(bench.panel.findChild(QToolButton, "channel_inspector.unpin"), Qt.MouseButton.LeftButton)
    assert view.overlays == ()


def test_the_right_button_pins_a_pixel_of_a_single_channel(bench: Bench) -> None:
    bench.panel.enlarge(4)
    view = bench.panel.view
    for pin in ((4, 3, 2), None):
        bench.qtbot.mouseClick(view, Qt.MouseButton.RightButton, pos=view.place_of(3.5, 2.5).toPoint())
        assert bench.panel.probe.pin == pin


def test_a_double_click_zooms_and_pins_nothing(bench: Bench) -> None:
    bench.panel.enlarge(4)
    view, probe = bench.panel.view, bench.panel.probe
    for x, pin in ((5, None), (7, (4, 10, 8))):
        if pin is not None:
            probe.toggle(pin)
        shown, zoom = probe.show_input.isChecked(), view.zoom
        place = view.place_of(x + 0.5, 5.5).toPoint()
        bench.qtbot.mouseMove(view, place)
        bench.qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=place)
        assert probe.pin == (4, x, 5)
        bench.qtbot.mouseDClick(view, Qt.MouseButton.LeftButton, pos=place)
        assert probe.pin == pin
        assert probe.show_input.isChecked() is shown
        assert view.zoom != zoom
        view.fit()


def test_weights_have_no_place_in_the_picture(bench: Bench) -> None:
    bench.pin(0, 10, 8)
    bench.panel.look_at(Kind.WEIGHTS)
    bench.qtbot.waitUntil(lambda: bench.panel.page is not None, timeout=kit.WAIT)
    assert not bench.panel.probe.pane.isVisible()
    bench.qtbot.mouseMove(bench.panel.grid.viewport(), bench.panel.grid.tile_rect(1).center().toPoint())
    assert bench.panel.probe.same.text() == ""
    bench.panel.look_at(Kind.OUTPUT)
    bench.qtbot.waitUntil(lambda: bench.panel.page is not None, timeout=kit.WAIT)
    assert bench.panel.probe.pane.isVisible()
    assert bench.panel.probe.pin == (0, 10, 8)


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("kind", [Kind.OUTPUT, Kind.WEIGHTS])
def test_a_double_click_leaves_the_input_as_it_was_for_every_tensor(bench: Bench, kind: Kind, asked: bool) -> None:
    """Of weights, too, where it is not shown."""
    probe, view = bench.panel.probe, bench.panel.view
    probe.show_input.setChecked(asked)
    bench.panel.look_at(kind)
    bench.qtbot.waitUntil(lambda: bench.panel.page is not None, timeout=kit.WAIT)
    bench.panel.enlarge(2)
    place = view.rect().center()
    bench.qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=place)
    bench.qtbot.mouseDClick(view, Qt.MouseButton.LeftButton, pos=place)
    assert (probe.show_input.isChecked(), probe.pin) == (asked, None)
    bench.panel.look_at(Kind.OUTPUT)
    bench.qtbot.waitUntil(lambda: bench.panel.page is not None, timeout=kit.WAIT)
    assert probe.pane.isVisible() is asked


def test_the_receptive_field_follows_an_edit(bench: Bench, tmp_path: Path) -> None:
    bench.pin(0, 10, 8)
    bench.qtbot.waitUntil(lambda: bench.panel.probe.field.box == (8, 6, 13, 11), timeout=kit.WAIT)
    bench.context.document.do(lambda g: set_params(g, {"conv_h": {"kernel": "3x3"}}))
    bench.qtbot.waitUntil(lambda: bench.panel.probe.field.box == (9, 7, 12, 10), timeout=kit.WAIT)
    bench.analysis.inputs.set_file(
        "input_0", kit.picture(tmp_path, "large.png", (48, 32))
    )  # the same place, a larger image
    bench.qtbot.waitUntil(lambda: bench.panel.probe.pin == (0, 21, 17), timeout=kit.WAIT)
    bench.qtbot.waitUntil(lambda: bench.panel.probe.field.box == (20, 16, 23, 19), timeout=kit.WAIT)


def test_the_pinned_place_is_marked_on_the_output_picture(bench: Bench) -> None:
    from app.ui.analysis.analysis_panel import AnalysisPanel
    from app.ui.analysis.output_view import OutputView

    panel = AnalysisPanel(bench.context)
    bench.qtbot.addWidget(panel)
    bench.pin(0, 10, 8)
    view = panel.findChild(OutputView, "analysis.output.output_0").view
    assert CrossOverlay(10, 8) in view.overlays
    result = bench.analysis.result
    bench.context.document.do(lambda g: set_params(g, {"noise_0": {"scale": "0.6"}}))
    bench.qtbot.waitUntil(lambda: bench.analysis.result is not result, timeout=kit.WAIT)
    assert CrossOverlay(10, 8) in view.overlays
    bench.pin(0, 10, 8)
    assert view.overlays == ()


def test_a_message_stands_until_the_cursor_moves(bench: Bench) -> None:
    bench.qtbot.waitUntil(lambda: bench.panel.statistics.complete, timeout=kit.WAIT)
    bench.panel.probe.show_message("Saved image.png")
    bench.panel.statistics.changed.emit()
    assert bench.panel.status_text == "Saved image.png"
    bench.qtbot.mouseMove(bench.panel.grid.viewport(), bench.place(2, 20, 4))
    assert "channel 2  x 20  y 4" in bench.panel.status_text


def test_a_place_outside_of_a_smaller_tensor_is_not_marked_on_the_input(bench: Bench) -> None:
    bench.pin(0, 10, 8)
    probe = bench.panel.probe
    assert bench.panel.page is not None
    width, height = bench.panel.page.size
    for place, marks in (((0, width - 1, height - 1), 2), ((0, width, 0), 1), ((0, 0, height), 1)):
        probe._set_hover(place)
        assert sum(isinstance(mark, CrossOverlay) for mark in probe.pane.view.overlays) == marks
        assert bool(probe.same.text()) == (marks == 2)


def test_the_pinned_place_follows_the_size_of_the_image_once(bench: Bench, tmp_path: Path) -> None:
    bench.pin(3, 10, 8)
    probe = bench.panel.probe
    size = bench.panel.page.size
    for factor in (2, 1):
        other = (24 * factor, 16 * factor)
        bench.analysis.inputs.set_file("input_0", kit.picture(tmp_path, f"{factor}.png", other))
        bench.qtbot.waitUntil(lambda other=other: bench.panel.page.size == other, timeout=kit.WAIT)
        place = scaled((10, 8), size, (48, 32))
        expected = place if factor == 2 else scaled(place, (48, 32), size)
        assert probe.pin == (3, *expected)
        for scale in ("0.2", "0.3"):  # runs of the same size leave it there
            result = bench.analysis.result
            bench.context.document.do(
                lambda g, scale=scale, factor=factor: set_params(g, {"noise_0": {"scale": f"{scale}{factor}"}})
            )
            bench.qtbot.waitUntil(lambda result=result: bench.analysis.result is not result, timeout=kit.WAIT)
            assert probe.pin == (3, *expected)


def test_the_input_image_stays_while_values_are_computed_at_a_reduced_size(bench: Bench) -> None:
    """The full image is seen meanwhile, with a place on it that is one of the full image."""
    bench.click("show_input")
    probe, full = bench.panel.probe, bench.analysis.result
    assert full is not None
    bench.qtbot.waitUntil(lambda: probe.pane.size_of_picture == (24, 16))
    captures = {name: np.ascontiguousarray(array[..., ::2, ::2]) for name, array in full.captures.items()}
    for result, size in (
        (replace(full, captures=captures, coarse=2), (24, 16)),
        (replace(full, captures=captures), (12, 8)),  # that one is of a smaller image
        (full, (24, 16)),
    ):
        bench.analysis.result = result
        bench.analysis.result_changed.emit()
        assert probe.pane.size_of_picture == size
        assert probe.pane.title.text() == "input_0"
    bench.click("show_input")
    assert not probe.pane.isVisible()
