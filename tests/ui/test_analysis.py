"""The Analysis panel with the real engine: launch, sliders, pictures, missing weights, a killed engine."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QAction, QDragEnterEvent, QDropEvent, QImage
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QSlider,
    QSplitter,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.engine.protocol import OpenRequest
from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.analysis.recipe_edit import RecipeEdit
from app.ui.engine.client import EngineClient
from app.ui.engine.result import Phase
from app.ui.widgets.image_view import ImageView
from designer.files.document import write_document
from designer.graph.commands import remove_layers, rename_layer, set_params
from designer.runtime.provenance import digest_of

pytestmark = pytest.mark.gui
WAIT, picture, small_network = kit.WAIT, kit.picture, kit.small_network


class Bench(kit.Launched):
    """A panel on a document, with shorthands for what a user does."""

    def __init__(self, qtbot: QtBot, engine: EngineClient) -> None:
        super().__init__(qtbot, engine)
        self.panel = AnalysisPanel(self.context)
        qtbot.addWidget(self.panel)
        self.panel.resize(900, 600)
        self.panel.show()

    def click(self, name: str) -> None:
        self.qtbot.mouseClick(self.find(QPushButton, name), Qt.MouseButton.LeftButton)

    def find(self, kind: type, name: str) -> QWidget:
        found = self.panel.findChild(kind, name)
        assert found is not None, name
        return found

    def label(self, name: str) -> str:
        found = self.find(QLabel, name)
        assert isinstance(found, QLabel)
        return found.text()

    def output(self) -> np.ndarray:
        assert self.analysis.result is not None
        return self.analysis.result.outputs["output_0"]

    @property
    def view(self) -> ImageView:
        view = self.find(ImageView, "analysis.output.output_0.picture")
        assert isinstance(view, ImageView)
        return view


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient) -> Bench:
    return Bench(qtbot, engine)


def test_without_a_document_the_panel_says_what_will_stand_there(bench: Bench) -> None:
    assert bench.label("analysis.status") == "Not launched"
    assert not bench.find(QPushButton, "analysis.launch").isEnabled()


@pytest.mark.parametrize(("width", "height", "level"), [(900, 600, True), (800, 1300, False), (500, 400, False)])
def test_the_controls_are_next_to_the_image_where_the_panel_is_wide(
    bench: Bench, width: int, height: int, level: bool
) -> None:
    bench.open(small_network())
    bench.panel.resize(width, height)
    QApplication.processEvents()
    split = bench.find(QSplitter, "analysis.split")
    assert isinstance(split, QSplitter)
    assert (split.orientation() is Qt.Orientation.Horizontal) is level
    assert bench.view.width() > width - (400 if level else 40)


def test_missing_weights_are_asked_for_and_random_ones_are_marked(bench: Bench, tmp_path: Path) -> None:
    bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.click("analysis.launch")
    bench.wait(Phase.WEIGHTS)
    assert "2 weights are missing" in bench.label("analysis.notice.text")
    assert bench.view.image is None
    bench.click("analysis.notice.random")
    bench.wait(Phase.READY)
    assert bench.view.note == "random weights (seed 0)"
    assert bench.view.image is not None
    assert (bench.view.image.width(), bench.view.image.height()) == (24, 16)


def test_weights_of_a_folder_are_used(bench: Bench, tmp_path: Path) -> None:
    kernel = np.zeros((3, 3, 3, 3), np.float32)
    kernel[[0, 1, 2], [0, 1, 2], 1, 1] = 1  # the identity
    np.save(tmp_path / "conv_0_kernel.npy", kernel)
    np.save(tmp_path / "conv_0_bias.npy", np.zeros(3, np.float32))
    graph = small_network()
    bench.open(graph)
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.analysis.choose_weights(tmp_path)
    bench.wait(Phase.READY)
    assert bench.view.note == ""
    layer = graph["mix_0"]
    assert layer.params["selection"] == "v_split"
    bench.context.document.do(lambda g: set_params(g, {"mix_0": {"selection": "difference"}}))
    bench.qtbot.waitUntil(lambda: float(np.abs(bench.output()).max()) < 1e-5, timeout=WAIT)


def test_after_an_edit_that_lacks_weights_the_next_one_runs_again(bench: Bench, tmp_path: Path) -> None:
    np.save(tmp_path / "conv_0_kernel.npy", np.zeros((3, 3, 3, 3), np.float32))
    np.save(tmp_path / "conv_0_bias.npy", np.zeros(3, np.float32))
    document = bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.analysis.choose_weights(tmp_path)
    bench.wait(Phase.READY)
    document.do(lambda g: set_params(g, {"conv_0": {"kernel": "5x5"}}))
    bench.wait(Phase.WEIGHTS)
    assert bench.analysis.stale
    document.undo()
    bench.wait(Phase.READY)
    assert not bench.analysis.stale
    assert bench.label("analysis.notice.text") == ""


def test_a_slider_moves_the_picture_reruns_only_mix_and_is_one_undo_step(bench: Bench, tmp_path: Path) -> None:
    document = bench.open(small_network())
    before = write_document(document.graph)
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.launch_random()
    first = bench.output()
    slider = bench.find(QSlider, "analysis.mix_0.amount")
    assert isinstance(slider, QSlider)
    _drag(bench.qtbot, slider, 0.9)
    bench.qtbot.waitUntil(lambda: not np.array_equal(bench.output(), first), timeout=WAIT)
    bench.wait(Phase.READY)
    assert bench.analysis.result is not None
    ran = [s.layers for s in bench.analysis.result.steps if not s.cached]
    assert ran in ([("mix_0",)], [])
    amount = float(document.graph["mix_0"].params["amount"])
    assert amount > 0.7
    document.undo()
    assert write_document(document.graph) == before
    assert slider.value() == 50
    bench.qtbot.waitUntil(lambda: np.array_equal(bench.output(), first), timeout=WAIT)


def test_the_split_line_is_dragged_on_the_picture(bench: Bench, tmp_path: Path) -> None:
    document = bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.launch_random()
    document.history.mark_clean()  # the picture and the random weights are steps of their own
    view, qtbot = bench.view, bench.qtbot
    start, end = view.place_of(12, 8).toPoint(), view.place_of(18, 8).toPoint()
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=start)
    for step in range(1, 5):
        qtbot.mouseMove(view, start + (end - start) * step / 4)
    qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=end)
    assert float(document.graph["mix_0"].params["amount"]) == pytest.approx(0.75, abs=0.02)
    document.undo()
    assert document.graph["mix_0"].params["amount"] == "0.5"
    assert document.history.is_clean


def test_the_value_under_the_cursor_and_zoom(bench: Bench, tmp_path: Path) -> None:
    bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.launch_random()
    view = bench.view
    bench.qtbot.mouseMove(view, view.place_of(20.5, 3.5).toPoint())
    red = float(bench.output()[0, 0, 3, 20])
    assert f"x 20  y 3   R {red:.3g}" in bench.label("analysis.output.output_0.probe")
    view.setFocus()
    bench.qtbot.keyClick(view, Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    assert view.zoom == 1.0
    assert bench.label("analysis.output.output_0.zoom") == "100 %"
    bench.qtbot.keyClick(view, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    assert view.zoom > 1.0


def test_options_of_another_kind_appear_and_a_wrong_recipe_is_told_where_it_stands(
    bench: Bench, tmp_path: Path
) -> None:
    document = bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.launch_random()
    box = bench.find(QComboBox, "analysis.mix_0.selection")
    assert isinstance(box, QComboBox)
    box.setFocus()
    bench.qtbot.keyClick(box, Qt.Key.Key_End)
    assert document.graph["mix_0"].params["selection"] == "custom"
    edit = bench.find(QLineEdit, "analysis.mix_0.recipe")
    assert isinstance(edit, QLineEdit)
    bench.qtbot.waitUntil(
        lambda: bool(bench.label("analysis.output.output_0.quality"))
    )  # its line takes room when it comes
    QApplication.processEvents()
    before = [widget.geometry() for widget in (edit, bench.view)]
    edit.clear()
    bench.qtbot.keyClicks(edit, "a * (")
    bench.wait(Phase.BLOCKED)
    problem = bench.label("analysis.mix_0.problem")
    assert problem.startswith("mix_0: ")
    QApplication.processEvents()
    shown = [label for label in bench.panel.findChildren(QLabel) if label.isVisible() and problem in label.text()]
    assert [label.objectName() for label in shown] == ["analysis.mix_0.problem"]
    assert bench.label("analysis.status") == "Not run: mix_0 has a problem"
    assert [widget.geometry() for widget in (edit, bench.view)] == before  # nothing moves while a user types
    assert bench.view.dimmed
    edit.selectAll()
    bench.qtbot.keyClicks(edit, "alpha * (a - b)")
    bench.wait(Phase.READY)
    assert bench.label("analysis.mix_0.problem") == ""
    assert not bench.view.dimmed


def test_a_file_is_dropped_in(bench: Bench, tmp_path: Path) -> None:
    bench.open(small_network())
    bench.launch_random()
    path = picture(tmp_path, size=(40, 20))
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    row = bench.find(QWidget, "analysis.input.input_0")
    how = (Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(row, QDragEnterEvent(QPoint(5, 5), *how))
    QApplication.sendEvent(row, QDropEvent(QPointF(5, 5), *how))
    bench.qtbot.waitUntil(lambda: bench.output().shape == (1, 3, 20, 40), timeout=WAIT)
    assert bench.label("analysis.input.input_0.size") == "40 x 20"


def test_an_opacity_that_the_network_does_not_read_is_named(bench: Bench, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.full((16, 24, 4), 128, np.uint8)).save(tmp_path / "transparent.png")
    bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", tmp_path / "transparent.png")
    bench.launch_random()
    wanted = "24 x 16 · opacity is not used"
    bench.qtbot.waitUntil(lambda: bench.label("analysis.input.input_0.size") == wanted, timeout=WAIT)
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.qtbot.waitUntil(lambda: bench.label("analysis.input.input_0.size") == "24 x 16", timeout=WAIT)


def test_a_picture_that_is_none_is_told_beside_it_and_another_mends_it(bench: Bench, tmp_path: Path) -> None:
    bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.launch_random()
    before = bench.output()
    bad = tmp_path / "bad.png"
    bad.write_text("no picture at all")
    bench.analysis.inputs.set_file("input_0", bad)
    bench.wait(Phase.BLOCKED)
    assert "bad.png" in bench.label("analysis.input.input_0.problem")
    assert bench.output() is before
    assert bench.view.dimmed
    bench.analysis.inputs.set_file("input_0", picture(tmp_path, "good.png"))
    bench.wait(Phase.READY)
    assert bench.label("analysis.input.input_0.problem") == ""
    assert not bench.view.dimmed


def test_a_network_that_cannot_run_says_why_and_goes_on_when_mended(bench: Bench, tmp_path: Path) -> None:
    document = bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.launch_random()
    document.do(lambda g: remove_layers(g, ["conv_0"]))
    bench.wait(Phase.BLOCKED)
    assert "connect" in bench.label("analysis.notice.text").lower()
    assert bench.view.dimmed
    document.undo()
    bench.wait(Phase.READY)
    assert bench.label("analysis.notice.text") == ""


def test_values_that_are_no_numbers_are_told_on_the_picture(bench: Bench, tmp_path: Path) -> None:
    bench.open(small_network())
    array = np.random.default_rng(0).random((1, 3, 16, 24), np.float32)
    array[:, :, :4] = np.nan
    np.save(tmp_path / "broken.npy", array)
    bench.analysis.inputs.set_file("input_0", tmp_path / "broken.npy")
    bench.launch_random()
    assert bench.analysis.result is not None
    share = bench.analysis.result.nonfinite["output_0"]
    assert bench.view.note == f"random weights (seed 0); {100 * share:.3g} % of the values are NaN or infinite"
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.qtbot.waitUntil(lambda: bench.view.note == "random weights (seed 0)", timeout=WAIT)


def test_an_edit_of_the_network_is_followed(bench: Bench, tmp_path: Path) -> None:
    document = bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.launch_random()
    first = bench.output()
    document.do(lambda g: set_params(g, {"conv_0": {"kernel": "5x5"}}))
    bench.qtbot.waitUntil(lambda: not np.array_equal(bench.output(), first), timeout=WAIT)
    assert bench.view.note


def test_a_killed_engine_is_explained_the_document_is_whole_and_restart_goes_on(
    bench: Bench, tmp_path: Path, engine: EngineClient
) -> None:
    document = bench.open(small_network(64))
    bench.analysis.inputs.set_file("input_0", picture(tmp_path, size=(768, 768)))
    bench.launch_random()
    document.do(lambda g: set_params(g, {"noise_0": {"seed": "5"}}))
    text = write_document(document.graph)
    assert bench.analysis.phase is Phase.RUNNING
    os.kill(engine.pid, signal.SIGKILL)
    bench.wait(Phase.FAILED)
    notice = bench.label("analysis.notice.text")
    assert "killed" in notice
    assert "Your document is unchanged" in notice
    assert bench.view.dimmed
    assert bench.view.image is not None
    assert write_document(document.graph) == text
    bench.click("analysis.notice.restart")
    bench.wait(Phase.READY)
    assert not bench.view.dimmed
    assert bench.label("analysis.notice.text") == ""


def test_an_engine_that_dies_at_rest_is_told_too(bench: Bench, tmp_path: Path, engine: EngineClient) -> None:
    document = bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.launch_random()
    os.kill(engine.pid, signal.SIGKILL)
    bench.wait(Phase.FAILED)
    document.do(lambda g: set_params(g, {"mix_0": {"amount": "0.75"}}))
    assert document.graph["mix_0"].params["amount"] == "0.75"
    assert not engine.running
    bench.click("analysis.notice.restart")
    bench.wait(Phase.READY)


def test_another_panel_may_use_the_engine_in_between(bench: Bench, tmp_path: Path, engine: EngineClient) -> None:
    document = bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.launch_random()
    first = bench.output()
    other = write_document(small_network(4)).decode()
    engine.ask(OpenRequest(other, seed=3), bench.analysis)
    document.do(lambda g: set_params(g, {"mix_0": {"amount": "0.75"}}))
    bench.qtbot.waitUntil(lambda: not np.array_equal(bench.output(), first), timeout=WAIT)
    document.undo()
    bench.qtbot.waitUntil(lambda: np.array_equal(bench.output(), first), timeout=WAIT)


def test_a_restless_slider_ends_on_its_last_value(bench: Bench, tmp_path: Path) -> None:
    document = bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", picture(tmp_path, size=(200, 100)))
    bench.launch_random()
    for step in range(60):
        document.do(lambda g, s=step: set_params(g, {"mix_0": {"amount": f"{s / 100}"}}, merge_key="drag"))
        if step % 7 == 0:
            QApplication.processEvents()
    bench.wait(Phase.READY)
    last = bench.output()
    bench.click("analysis.launch")
    bench.qtbot.waitUntil(lambda: bench.output() is not last, timeout=WAIT)
    assert np.array_equal(bench.output(), last)
    document.undo()
    assert document.graph["mix_0"].params["amount"] == "0.5"


def test_a_renamed_input_keeps_its_picture(bench: Bench, tmp_path: Path) -> None:
    document = bench.open(small_network())
    path = picture(tmp_path)
    bench.analysis.inputs.set_file("input_0", path)
    bench.launch_random()
    document.do(lambda g: rename_layer(g, "input_0", "photo"))
    assert dict(document.settings.input_files) == {"photo": str(path)}
    bench.qtbot.waitUntil(lambda: "photo" in bench.analysis.inputs.shapes, timeout=WAIT)
    bench.wait(Phase.READY)


def test_stop_ends_a_run_and_launch_goes_on(bench: Bench, tmp_path: Path) -> None:
    bench.open(small_network(64))
    bench.analysis.inputs.set_file("input_0", picture(tmp_path, size=(768, 768)))
    bench.analysis.launch_random()
    bench.qtbot.waitUntil(lambda: bench.find(QPushButton, "analysis.stop").isEnabled(), timeout=WAIT)
    bench.click("analysis.stop")
    assert bench.analysis.phase is Phase.STOPPED
    assert "Stopped" in bench.label("analysis.status")
    bench.click("analysis.launch")
    bench.wait(Phase.READY)


def test_another_document_starts_clean_and_late_replies_are_dropped(bench: Bench, tmp_path: Path) -> None:
    bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.analysis.launch_random()
    bench.open(small_network(8))
    assert bench.analysis.phase is Phase.IDLE
    assert bench.view.image is None
    bench.analysis.inputs.set_file("input_0", picture(tmp_path, size=(32, 32)))
    bench.launch_random()
    assert bench.output().shape[-2:] == (32, 32)


def test_every_control_has_a_name_for_people_and_for_tests(bench: Bench) -> None:
    bench.open(small_network())
    kinds = (QPushButton, QSlider, QComboBox, QLineEdit, ImageView)
    for kind in kinds:
        for widget in bench.panel.findChildren(kind):
            if widget.objectName().startswith("qt_"):
                continue
            assert widget.objectName().startswith("analysis"), widget
            assert widget.accessibleName(), widget.objectName()


def _drag(qtbot: QtBot, slider: QSlider, share: float) -> None:
    """Drag the handle of a slider from where it is to a share of its length."""
    from PySide6.QtWidgets import QStyle, QStyleOptionSlider

    option = QStyleOptionSlider()
    slider.initStyleOption(option)
    handle = slider.style().subControlRect(
        QStyle.ComplexControl.CC_Slider, option, QStyle.SubControl.SC_SliderHandle, slider
    )
    start = handle.center()
    end = QPoint(round(slider.width() * share), start.y())
    qtbot.mousePress(slider, Qt.MouseButton.LeftButton, pos=start)
    for step in range(1, 9):
        qtbot.mouseMove(slider, start + (end - start) * step / 8)
    qtbot.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=end)


def test_the_shown_picture_is_saved_and_copied(
    qtbot: QtBot, engine: EngineClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(qtbot, engine)
    bench.open(small_network())
    export = bench.find(QToolButton, "analysis.output.output_0.export")
    assert not export.isEnabled()
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.launch_random()
    assert export.isEnabled()
    for way, ending in (("picture", ".png"), ("tensor", ".npy")):
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, e=ending: (str(tmp_path / f"out{e}"), ""))
        bench.panel.findChild(QAction, f"analysis.output.output_0.export.{way}").trigger()
        saved = f"Saved out{ending}"
        qtbot.waitUntil(lambda s=saved: bench.label("analysis.output.output_0.probe") == s, timeout=WAIT)
    saved_image = QImage(str(tmp_path / "out.png"))
    assert saved_image == bench.view.image
    origin = json.loads(saved_image.text("Comment"))["provenance"]
    assert origin["document_sha256"] == digest_of(bench.context.root.graph)
    assert origin["weights"] == "random weights (seed 0)"
    assert np.array_equal(np.load(tmp_path / "out.npy"), bench.output())
    bench.panel.findChild(QAction, "analysis.output.output_0.export.copy").trigger()
    assert QApplication.clipboard().image() == bench.view.image


def test_a_flickering_mix_takes_turns_only_while_it_is_seen(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    bench = Bench(qtbot, engine)
    document = bench.open(small_network())
    bench.analysis.inputs.set_file("input_0", picture(tmp_path))
    bench.launch_random()
    document.do(lambda g: set_params(g, {"mix_0": {"selection": "flicker"}}))
    assert bench.panel.flicker.running
    edits = write_document(document.graph)
    bench.qtbot.waitUntil(lambda: bench.analysis.phase is Phase.READY, timeout=WAIT)
    first = bench.output()
    bench.qtbot.waitUntil(lambda: not np.array_equal(bench.output(), first), timeout=WAIT)
    assert {name for step in bench.analysis.result.steps if not step.cached for name in step.layers} <= {"mix_0"}
    assert write_document(document.graph) == edits
    bench.panel.hide()
    assert not bench.panel.flicker.running
    bench.qtbot.waitUntil(lambda: np.array_equal(bench.output(), first), timeout=WAIT)  # not the second input for ever
    bench.panel.show()
    assert bench.panel.flicker.running
    document.do(lambda g: set_params(g, {"mix_0": {"selection": "blend"}}))
    assert not bench.panel.flicker.running
    bench.wait(Phase.READY)


def test_a_wrong_recipe_is_underlined_where_it_is_wrong(qtbot: QtBot, engine: EngineClient) -> None:
    bench = Bench(qtbot, engine)
    document = bench.open(small_network())
    document.do(lambda g: set_params(g, {"mix_0": {"selection": "custom"}}))
    edit = bench.find(RecipeEdit, "analysis.mix_0.recipe")
    assert edit.problem is None
    edit.selectAll()
    qtbot.keyClicks(edit, "a + cat * 2")
    assert edit.problem == (4, 7)
    assert "'cat' is not known" in edit.toolTip()
    wrong = edit.grab().toImage()
    edit.selectAll()
    qtbot.keyClicks(edit, "a + sin(x)")
    assert edit.problem is None
    assert document.graph["mix_0"].params["recipe"] == "a + sin(x)"
    assert edit.grab().toImage() != wrong


def test_a_test_pattern_is_chosen_without_a_file(qtbot: QtBot, engine: EngineClient) -> None:
    bench = Bench(qtbot, engine)
    document = bench.open(small_network())
    button = bench.find(QToolButton, "analysis.input.input_0.photographs")
    action = next(a for a in button.menu().actions() if a.text() == "zone plate")
    action.trigger()
    assert document.settings.input_files == {"input_0": "pattern:zone_plate"}
    assert bench.label("analysis.input.input_0.file") == "zone plate"
    bench.launch_random()
    assert bench.analysis.inputs.shapes["input_0"] == (1, 3, 16, 24)
    assert bench.output().shape == (1, 3, 16, 24)
