"""Side by Side with real networks, engines and events."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.gui

import json
from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from pathlib import Path

import numpy as np
from engine_here import EngineHere
from PIL import Image
from PySide6.QtCore import QObject, QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QFileDialog,
    QLineEdit,
    QProgressBar,
    QSlider,
    QTabBar,
    QTableWidget,
    QTabWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot
from restoration_networks import restoring_unet, restoring_weights
from side_kit import WAIT, Side, network, photograph

import samples
from app.reports.comparison import ImageMetrics, Row
from app.ui.compare import difference_images, runner
from app.ui.compare.folder_run import best
from app.ui.compare.metrics_view import BEST, PSNR, SSIM, TIME, VALUES
from app.ui.compare.model import CLEAN, INPUT, NoiseChoice
from app.ui.compare.pictures import ViewMode
from app.ui.compare.variants import VariantChoice
from app.ui.compare.window import SideWindow
from app.ui.shell.window import MainWindow
from app.ui.widgets.render import picture_pixels
from designer.files.document import read_document, save_document
from designer.files.settings import Settings, save_settings, settings_path
from designer.files.variants import CalibrationRecipe
from designer.files.variants import Variant as SavedVariant
from designer.files.weight_files import save_weights
from designer.graph.commands import set_params
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.metrics import psnr, ssim, worst_regions
from designer.runtime.images import read_image, write_image
from designer.runtime.provenance import digest_of


@pytest.fixture
def side_of_processes(qtbot: QtBot, tmp_path: Path) -> Iterator[Side]:
    made = Side(qtbot, tmp_path)
    yield made
    made.window.close()
    made.window.deleteLater()


@pytest.fixture
def side(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Side:
    """Engines in this process: starting some takes longer than what they are asked."""
    monkeypatch.setattr(runner, "EngineClient", EngineHere)
    made: Side = request.getfixturevalue("side_of_processes")
    return made


def test_variants_get_the_same_noisy_picture_and_are_measured_against_the_clean_one(side_of_processes: Side) -> None:
    side = side_of_processes
    side.begin()
    model = side.model
    clean = read_image(side.folder / "picture.png")
    assert model.clean is not None
    assert model.noisy is not None
    assert np.array_equal(model.clean, clean)
    assert np.std(model.noisy - clean) == pytest.approx(25 / 255, rel=0.05)
    assert np.array_equal(model.made["A"].picture, model.noisy)  # A changes nothing
    assert not np.array_equal(model.made["B"].picture, model.noisy)
    found = model.measured.figures
    assert found["B"].psnr == pytest.approx(psnr(clean, model.made["B"].picture))
    assert found["B"].ssim == pytest.approx(ssim(clean, model.made["B"].picture))
    assert model.measured.best("psnr") == {"B"}
    keys = [INPUT, CLEAN, "A", "B"]
    assert side.cell(keys.index("B"), PSNR) == f"{BEST}{found['B'].psnr:.2f}"
    assert side.cell(keys.index("A"), SSIM) == f"{found['A'].ssim:.4f}"
    assert float(side.cell(keys.index("A"), TIME)) > 0
    assert len({client.pid for client in model.runner.clients}) == 2


def test_one_that_fails_says_why_and_the_others_go_on(side: Side) -> None:
    side.model.choices = [
        VariantChoice(network(side.folder, "small", 2, 2)),
        VariantChoice(side.document),
        VariantChoice(side.folder / "nowhere.xml"),
        VariantChoice(side.document, engine="torch", precision="fp16"),
    ]
    side.begin()
    errors = side.model.errors
    assert "not an image like its input" in errors[0]
    assert "nowhere.xml" in errors[2]
    assert "fp16" in errors[3]
    assert not errors[1]
    assert list(side.model.made) == ["B"]
    assert "3 of 4 variants failed" in side.window.status.text()
    assert "not an image like its input" in side.window.setup.rows[0].state


def test_an_engine_that_dies_takes_nobody_along(side_of_processes: Side, qtbot: QtBot) -> None:
    side = side_of_processes
    side.begin()
    lane = side.model.runner.clients[0]
    with qtbot.waitSignal(lane.crashed):
        import os
        import signal

        os.kill(lane.pid, signal.SIGKILL)
    qtbot.keyClick(side.window, Qt.Key.Key_F5)
    side.wait()
    assert set(side.model.made) == {"A", "B"}


def test_the_open_document_is_compared_as_it_is_now(side: Side) -> None:
    side.begin()
    before = side.model.made["A"].picture
    edit = set_params(side.document.graph, {"mean": {"size": "5x5", "padding": "2x2"}})
    assert side.document.do(edit)
    side.window.compare()
    side.wait()
    assert not np.array_equal(side.model.made["A"].picture, before)


def test_zoom_and_place_are_the_same_everywhere(side: Side, qtbot: QtBot) -> None:
    side.begin()
    panes = side.window.pictures.grid.panes
    assert list(panes) == [INPUT, CLEAN, "A", "B"]
    qtbot.keyClick(side.window, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    assert {pane.zoom for pane in panes.values()} == {2.0}
    assert side.window.bar.zoom_label.text() == "200 %"
    start = panes["A"].rect().center()
    qtbot.mousePress(panes["A"], Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(panes["A"], start + QPoint(-30, 10))
    qtbot.mouseRelease(panes["A"], Qt.MouseButton.LeftButton, pos=start + QPoint(-30, 10))
    assert len({pane.view for pane in panes.values()}) == 1
    qtbot.mouseClick(side.window.bar.modes[ViewMode.SPLIT], Qt.MouseButton.LeftButton)
    assert side.window.pictures.split.view == panes["A"].view


def test_pixels_are_exact_at_100_and_200_percent(side: Side, qtbot: QtBot) -> None:
    side.begin()
    pane = side.window.pictures.grid.panes["B"]
    expected = picture_pixels(side.model.made["B"].picture[0])
    ratio = pane.devicePixelRatioF()
    for key, zoom in ((Qt.Key.Key_1, 1), (Qt.Key.Key_2, 2)):
        qtbot.keyClick(side.window, key, Qt.KeyboardModifier.ControlModifier)
        shown = pane.grab().toImage()
        for x, y in ((40, 50), (41, 50), (60, 70)):
            for inside in range(zoom):
                place = pane.place_of(x, y) * ratio
                got = shown.pixel(round(place.x()) + inside, round(place.y()) + inside)
                assert QColor(got) == QColor(int(expected[y, x]))


def test_the_pointer_tells_the_values_of_all(side: Side, qtbot: QtBot) -> None:
    side.begin()
    pane = side.window.pictures.grid.panes["B"]
    qtbot.mouseMove(pane, pane.place_of(50.5, 60.5).toPoint())
    for row, key in enumerate((INPUT, CLEAN, "A", "B")):
        picture = side.model.pixels(key)
        assert picture is not None
        values = [float(t) for t in side.cell(row, VALUES).split()]
        assert values == pytest.approx([float(v) for v in picture[0, :, 60, 50]], abs=0.002)
    header = side.window.figures.table.horizontalHeaderItem(VALUES)
    assert header is not None
    assert "50, 60" in header.text()


def test_the_split_line_is_dragged_and_quarters_stand_for_four(side: Side, qtbot: QtBot) -> None:
    side.begin()
    qtbot.keyClick(side.window, Qt.Key.Key_S)
    split = side.window.pictures.split
    assert split.isVisible()
    a, b = (picture_pixels(side.model.made[k].picture[0]) for k in "AB")

    def shows(x: int, y: int) -> QColor:
        assert split.image is not None
        return QColor(split.image.pixel(x, y))

    assert shows(30, 40) == QColor(int(a[40, 30]))
    assert shows(60, 40) == QColor(int(b[40, 60]))
    on = split.place_of(48, 40).toPoint()
    qtbot.mouseMove(split, on)
    assert split.cursor().shape() is Qt.CursorShape.SplitHCursor
    qtbot.mousePress(split, Qt.MouseButton.LeftButton, pos=on)
    qtbot.mouseMove(split, split.place_of(24, 40).toPoint())
    qtbot.mouseRelease(split, Qt.MouseButton.LeftButton, pos=split.place_of(24, 40).toPoint())
    assert split.amounts[0] == pytest.approx(0.25, abs=0.02)
    assert shows(30, 40) == QColor(int(b[40, 30]))
    qtbot.keyClick(split, Qt.Key.Key_Right)
    assert split.amounts[0] == pytest.approx(0.26, abs=0.02)
    qtbot.mouseClick(side.window.setup.add, Qt.MouseButton.LeftButton)
    side.wait()
    qtbot.mouseClick(side.window.setup.add, Qt.MouseButton.LeftButton)
    side.wait()
    assert len(split.areas()) == 4
    assert {label.text for label in split.labels()} == {side.model.title(k) for k in "ABCD"}
    assert not side.window.setup.add.isEnabled()


def test_flicker_by_key_and_by_itself(side: Side, qtbot: QtBot) -> None:
    side.begin()
    qtbot.keyClick(side.window, Qt.Key.Key_F)
    pictures = side.window.pictures
    assert pictures.alone == "A"
    qtbot.keyClick(side.window, Qt.Key.Key_X)
    assert pictures.alone == "B"
    assert pictures.single.image is not None
    expected = picture_pixels(side.model.made["B"].picture[0])
    assert QColor(pictures.single.image.pixel(10, 10)) == QColor(int(expected[10, 10]))
    side.window.bar.rate.box.setValue(3.0)
    with qtbot.waitSignal(pictures.turned, timeout=WAIT):
        qtbot.mouseClick(side.window.bar.automatic, Qt.MouseButton.LeftButton, pos=QPoint(8, 8))
    assert pictures.turning
    qtbot.keyClick(side.window, Qt.Key.Key_N)  # the input alone
    assert pictures.alone == INPUT
    qtbot.keyClick(side.window, Qt.Key.Key_G)
    assert not pictures.turning


def test_differences_are_amplified(side: Side, qtbot: QtBot) -> None:
    side.begin()
    side.window.bar.gain.box.setValue(4.0)
    qtbot.keyClick(side.window, Qt.Key.Key_D)
    pane = side.window.pictures.grid.panes["B"]
    error = np.abs(np.clip(side.model.made["B"].picture, 0, 1) - side.model.clean)[0] * 4
    expected = picture_pixels(error.astype(np.float32))
    assert pane.image is not None
    got = QColor(pane.image.pixel(33, 44))
    for mine, theirs in zip(got.getRgb()[:3], QColor(int(expected[44, 33])).getRgb()[:3], strict=True):
        assert abs(mine - theirs) <= 1
    qtbot.mouseClick(side.window.bar.signed, Qt.MouseButton.LeftButton, pos=QPoint(8, 8))
    assert pane.image is not None
    assert QColor(pane.image.pixel(33, 44)).blue() == 0  # green or red


def test_differences_of_large_pictures_are_made_by_a_thread(
    side: Side, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    side.begin()
    qtbot.keyClick(side.window, Qt.Key.Key_D)
    pane = side.window.pictures.grid.panes["B"]
    assert pane.image is not None
    at_once = pane.image.copy()
    side.window.pictures.differences.clear()
    monkeypatch.setattr(difference_images, "AT_ONCE", 0)
    side.window.pictures.refresh()
    assert pane.image is None
    qtbot.waitUntil(lambda: pane.image == at_once, timeout=WAIT)
    for gain in (1.0, 2.0, 16.0):  # the previous image is shown until the last one is there
        side.window.bar.gain.box.setValue(gain)
        assert pane.image is not None
    monkeypatch.setattr(difference_images, "AT_ONCE", 1 << 20)
    side.window.pictures.differences.clear()
    side.window.pictures.refresh()
    last = pane.image.copy()
    assert last != at_once
    monkeypatch.setattr(difference_images, "AT_ONCE", 0)
    side.window.bar.gain.box.setValue(8.0)
    side.window.bar.gain.box.setValue(16.0)
    qtbot.waitUntil(lambda: not side.window.pictures.differences.busy, timeout=WAIT)
    assert pane.image == last


def test_a_difference_that_cannot_be_made_says_so_and_the_next_one_is_made(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(difference_images, "AT_ONCE", 0)
    owner = QObject()
    images = difference_images.DifferenceImages(owner)
    mine = np.zeros((1, 3, 4, 5), np.float32)
    wrong = difference_images.DifferenceRequest(mine, np.zeros((1, 3, 4, 6), np.float32), 1.0, False)
    assert images.image("B", wrong) is None
    with qtbot.waitSignal(images.changed, timeout=WAIT):
        assert images.busy
    assert images.image("B", wrong) is None
    assert not images.busy  # a failed difference is not made again and again
    assert "ValueError" in images.problem("B")
    right = difference_images.DifferenceRequest(mine, mine, 1.0, False)
    with qtbot.waitSignal(images.changed, timeout=WAIT):
        assert images.image("B", right) is None
    assert images.image("B", right) is not None
    assert images.problem("B") == ""


def test_worst_regions_are_marked_and_jumped_to(side: Side, qtbot: QtBot) -> None:
    side.model.picture = photograph(side.folder / "large.png", size=(300, 200))
    side.begin()
    model, panes = side.model, side.window.pictures.grid.panes
    regions = model.measured.regions[""]
    assert 1 < len(regions) <= 5
    error = sum(np.square(np.clip(model.made[k].picture, 0, 1) - model.clean)[0].sum(0) for k in "AB")
    assert regions[0][::-1] == worst_regions(np.asarray(error, np.float64), 64, 1)[0]
    for number in (1, 2):
        qtbot.keyClick(side.window, Qt.Key.Key_W)
        x, y = regions[number - 1]
        assert side.window.pictures.region == (x, y)
        assert any(getattr(o, "left", None) == x and getattr(o, "top", None) == y for o in panes["B"].overlays)
        middle = panes["B"].place_of(x + 32, y + 32).toPoint()
        assert panes["B"].rect().contains(middle)
    qtbot.mouseClick(side.window.figures.back, Qt.MouseButton.LeftButton)
    assert side.window.pictures.region == regions[0]


def test_without_noise_the_first_variant_is_the_measure(side: Side) -> None:
    side.model.noise = NoiseChoice("")
    side.begin()
    assert side.model.measured.reference == "A"
    assert isnan(side.model.measured.figures["A"].psnr)  # not measured against itself
    assert [side.cell(1, column) for column in (1, 2, 4)] == ["reference", "-", "-"]
    assert CLEAN not in side.window.pictures.grid.panes
    assert "A same" in side.window.figures.note.text()


def test_a_picture_that_is_noisy_already_is_measured_against_its_clean_file(
    side: Side, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = read_image(photograph(side.folder / "clean.png"))
    noisy = np.clip(clean + np.random.default_rng(0).normal(0, 0.1, clean.shape), 0, 1).astype(np.float32)
    write_image(side.folder / "noisy.png", noisy)
    model, setup = side.model, side.window.setup
    model.picture, model.noise = side.folder / "noisy.png", NoiseChoice("")
    side.begin()
    assert setup.clean.isEnabled()
    assert model.measured.reference == "A"
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_a: (str(side.folder / "clean.png"), ""))
    setup.clean.setFocus()
    qtbot.keyClick(setup.clean, Qt.Key.Key_End)  # Choose a file
    qtbot.waitUntil(lambda: not model.busy and model.measured.reference == CLEAN, timeout=WAIT)
    assert setup.clean.currentText() == "clean.png"
    assert np.array_equal(model.clean, clean)
    assert model.measured.figures["A"].psnr == pytest.approx(psnr(clean, read_image(model.picture)), abs=1e-6)
    assert model.measured.figures["B"].psnr > model.measured.figures["A"].psnr
    assert CLEAN in side.window.pictures.grid.panes
    setup.set_clean(photograph(side.folder / "small.png", size=(72, 40)))
    side.wait()
    assert "72 x 40" in model.problem
    assert "same image" in model.problem
    setup.set_picture(side.folder / "picture.png")
    side.wait()
    assert model.clean_file is None
    assert model.measured.reference == "A"


def test_networks_that_enlarge_are_compared_with_bicubic_interpolation(side: Side, qtbot: QtBot) -> None:
    document = side.folder / "twice.xml"
    layers = [
        Layer("image", "input", params={"dims": "32x24x3"}),
        Layer("larger", "upsample", (160, 0), (Source("image"),), {"factor": "2x2", "method": "nearest"}),
        Layer("result", "output", (320, 0), (Source("larger"),)),
    ]
    save_document(Graph(layers), document)
    large, small = side.folder / "large", side.folder / "reduced"
    for folder in (large, small):
        folder.mkdir()
    clean = read_image(photograph(large / "a.png"))
    height, width = clean.shape[2] // 2, clean.shape[3] // 2
    write_image(small / "a.png", clean.reshape(1, 3, height, 2, width, 2).mean((3, 5)))
    reduced = read_image(small / "a.png")
    nearest = reduced.repeat(2, 2).repeat(2, 3)
    planes = [Image.fromarray(plane).resize((2 * width, 2 * height), Image.Resampling.BICUBIC) for plane in reduced[0]]
    bicubic = np.stack([np.asarray(plane) for plane in planes])[None]
    model, pictures = side.model, side.window.pictures
    model.choices = [VariantChoice(document), VariantChoice(side.document)]
    model.picture, model.noise, model.clean_file = small / "a.png", NoiseChoice(""), large / "a.png"
    side.begin()
    assert np.array_equal(model.made["A"].picture, nearest)
    assert np.allclose(model.pixels(INPUT), bicubic, atol=1e-6)
    assert np.array_equal(model.colours[INPUT], picture_pixels(bicubic[0]))
    assert model.title(INPUT) == "Input (bicubic x 2)"
    assert "choose no noise" not in side.window.figures.note.text()
    assert model.measured.figures[INPUT].psnr == pytest.approx(psnr(clean, bicubic), abs=1e-4)
    assert model.measured.figures["A"].psnr == pytest.approx(psnr(clean, nearest), abs=1e-4)
    assert f"{width} x {height} pixels, that of others {2 * width} x {2 * height}" in model.errors[1]
    model.choices = [VariantChoice(document)]
    for mode in ViewMode:
        pictures.set_mode(mode)
    side.begin()
    run = side.window.folder_run
    run.start(small)
    qtbot.waitUntil(lambda: not run.running, timeout=WAIT)
    (row,) = run.rows
    assert row.figures[0].psnr == pytest.approx(psnr(clean, bicubic), abs=1e-4)
    assert "enlarged 2 times by bicubic interpolation" in side.window.folder.note.text()
    side.window.setup.set_clean(small / "a.png")  # as small as the input
    side.wait()
    assert (
        f"the clean image is {width} x {height} pixels, the results are {2 * width} x {2 * height}" in model.errors[0]
    )
    run.start(small)
    qtbot.waitUntil(lambda: not run.running, timeout=WAIT)
    assert not run.rows
    assert "the clean image is" in run.skipped[0]
    model.noise, model.choices = NoiseChoice("gaussian"), [VariantChoice(document)] * 2
    side.begin()
    assert not model.knows_clean
    assert CLEAN not in side.window.pictures.grid.panes
    assert (model.reference, model.title(INPUT)) == ("A", "Input (gaussian:25/255, bicubic x 2)")
    assert "choose no noise and its file" in side.window.figures.note.text()


def test_other_noise_by_the_controls(side: Side, qtbot: QtBot) -> None:
    side.begin()
    setup = side.window.setup
    assert setup.scale.box.text() == "0.09804"
    setup.scale.box.selectAll()
    qtbot.keyClicks(setup.scale.box, "15/255\r")  # as on a Noise layer
    side.wait()
    assert side.model.noise.text == "gaussian:15/255"
    assert abs(side.model.noise.scale - 15 / 255) < 1e-9
    setup.kind.setCurrentIndex(setup.kind.findData("salt_and_pepper"))
    setup.kind.activated.emit(setup.kind.currentIndex())
    side.wait()
    assert side.model.noise == NoiseChoice("salt_and_pepper", 0.05)
    assert "salt_and_pepper:0.05" in side.window.status.text()
    assert "Share of the values" in setup.scale.toolTip()
    setup.kind.setCurrentIndex(setup.kind.findData("blur"))
    setup.kind.activated.emit(setup.kind.currentIndex())
    side.wait()
    assert side.model.noise == NoiseChoice("blur", 1.5)
    assert setup.scale.slider.maximum() == 1000  # 10 pixels in steps of 0.01


def test_a_folder_gives_a_table_a_plot_and_files(side: Side, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    side.begin()
    photos = side.folder / "photos"
    photos.mkdir()
    for index in range(3):
        photograph(photos / f"{index}.png", index)
    (photos / "9.png").write_bytes(b"no picture")
    window, view = side.window, side.window.folder
    window.tabs.setCurrentWidget(view)
    monkeypatch.setenv("HOME", str(side.folder))
    view.folder.setText("~/photos")
    qtbot.mouseClick(view.start_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.folder_run.running, timeout=WAIT)
    assert [row.name for row in window.folder_run.rows] == ["0.png", "1.png", "2.png"]
    assert "9.png" in view.note.text()
    qtbot.waitUntil(lambda: view.plot.image is not None, timeout=WAIT)
    last = view.table.rowCount() - 1
    mean, deviation = view.table.item(last - 1, 5), view.table.item(last, 5)
    assert mean is not None
    assert deviation is not None
    values = [row.figures[2].psnr for row in window.folder_run.rows]
    assert float(mean.text().removeprefix(BEST)) == pytest.approx(np.mean(values), abs=0.006)
    assert float(deviation.text()) == pytest.approx(np.std(values), abs=0.006)
    first = view.table.item(0, 5)
    assert first is not None
    assert first.text().startswith(BEST)
    view.save(side.folder / "table.tsv")
    qtbot.waitUntil(lambda: "Use .csv, .json or .html" in view.note.text(), timeout=WAIT)
    view.save(side.folder / "table.csv")
    qtbot.waitUntil((side.folder / "table.csv").exists, timeout=WAIT)
    lines = (side.folder / "table.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * 3
    assert lines[-1].startswith("2.png,gaussian:25/255,B smooth,")
    assert lines[-1].endswith(",the clean image,")
    about = json.loads((side.folder / "table.csv.provenance.json").read_text())["provenance"]
    assert list(about) == ["A same", "B smooth"]
    for name, file in (("A same", "same.xml"), ("B smooth", "smooth.xml")):
        assert about[name]["document"] == file
        graph = read_document(side.folder / file).graph
        assert graph is not None
        assert about[name]["document_sha256"] == digest_of(graph)
        assert (about[name]["noise"], about[name]["noise_seed"]) == ("gaussian:25/255", "0")
    view.save(side.folder / "page.html")
    qtbot.waitUntil((side.folder / "page.html").exists, timeout=WAIT)
    assert about["A same"]["document_sha256"] in (side.folder / "page.html").read_text()
    assert (side.folder / "page.html").read_text().count("data:image/webp") == 3 * 2 * 4
    place = view.table.visualItemRect(view.table.item(1, 0)).center()
    qtbot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    qtbot.mouseDClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    side.wait()
    assert side.model.picture == photos / "1.png"
    assert side.model.clean is not None
    assert np.array_equal(side.model.clean, read_image(photos / "1.png"))


def test_a_folder_of_noisy_images_is_measured_against_the_folder_of_the_clean_one(side: Side, qtbot: QtBot) -> None:
    noisy, clean = side.folder / "noisy", side.folder / "clean"
    rng = np.random.default_rng(0)
    for folder in (noisy, clean):
        folder.mkdir()
    for index in range(2):
        image = read_image(photograph(clean / f"{index}.png", index))
        write_image(noisy / f"{index}.png", np.clip(image + rng.normal(0, 0.1, image.shape), 0, 1).astype(np.float32))
    photograph(noisy / "alone.png", 3)
    model, run = side.model, side.window.folder_run
    model.picture, model.noise, model.clean_file = noisy / "0.png", NoiseChoice(""), clean / "0.png"
    side.begin()
    run.start(noisy)
    qtbot.waitUntil(lambda: not run.running, timeout=WAIT)
    for row, index in zip(run.rows, range(2), strict=True):
        images = [read_image(folder / f"{index}.png") for folder in (clean, noisy)]
        assert row.reference == "the clean image"
        assert row.figures[1].psnr == pytest.approx(psnr(*images), abs=1e-6)
    assert "no clean version of alone.png" in side.window.folder.note.text()
    side.window.setup.set_clean(None)
    side.wait()
    run.start(clean)
    qtbot.waitUntil(lambda: not run.running, timeout=WAIT)
    for row in run.rows:
        assert row.reference == "A same"
        assert np.isnan([figure.psnr for figure in row.figures[:2]]).all()
        assert np.isfinite(row.figures[2].psnr)


def test_a_report_leaves_out_a_folder_table_of_other_settings(side: Side, qtbot: QtBot) -> None:
    side.begin()
    photos = side.folder / "photos"
    photos.mkdir()
    photograph(photos / "0.png")
    side.window.folder_run.start(photos)
    qtbot.waitUntil(lambda: not side.window.folder_run.running, timeout=WAIT)

    def report() -> str:
        path = side.folder / "report.html"
        path.unlink(missing_ok=True)
        side.window.save_report(path)
        qtbot.waitUntil(path.exists, timeout=WAIT)
        return path.read_text()

    assert "<h2>Folder</h2>" in report()
    side.model.noise = replace(side.model.noise, scale=50 / 255)
    side.model.compare()
    side.wait()
    text = report()
    assert "<h2>Folder</h2>" not in text
    assert "made with other networks or settings" in text


def test_means_that_are_written_alike_have_no_best_one() -> None:
    def row(*values: float) -> Row:
        return Row("mean", "", tuple(ImageMetrics(value, 0.5) for value in (20.0, *values)), (0, 0))

    assert best(row(28.5603, 28.5608)) == -1
    assert best(row(28.5603, 28.57, 27.0)) == 2
    assert best(row(float("nan"), 28.57)) == -1


def test_a_variant_that_fails_on_the_folder_is_named(side: Side, qtbot: QtBot) -> None:
    side.model.choices.append(VariantChoice(network(side.folder, "small", 2, 2)))
    side.begin()
    photos = side.folder / "photos"
    photos.mkdir()
    photograph(photos / "0.png")
    view, run = side.window.folder, side.window.folder_run
    view.folder.setText(str(photos))
    view.start()
    qtbot.waitUntil(lambda: not run.running, timeout=WAIT)
    assert len(run.rows) == 1
    assert "C small failed on 1 images" in view.note.text()
    assert "not an image like its input" in view.note.text()
    item = view.table.item(0, 7)
    assert item is not None
    assert item.text() == "failed"
    assert "not an image like its input" in item.toolTip()
    assert [view.table.item(0, column).toolTip() for column in (1, 3, 5)] == ["", "", ""]
    for ending in ("csv", "json", "html"):
        path = side.folder / f"table.{ending}"
        view.save(path)
        qtbot.waitUntil(lambda path=path: path.name in view.note.text(), timeout=WAIT)
        assert "not an image like its input" in path.read_text(encoding="utf-8")


def test_a_folder_can_be_cancelled_and_an_empty_one_says_so(side: Side, qtbot: QtBot) -> None:
    side.begin()
    photos = side.folder / "many"
    photos.mkdir()
    for index in range(20):
        photograph(photos / f"{index:02}.png", index)
    view, run = side.window.folder, side.window.folder_run
    view.folder.setText(str(photos))
    with qtbot.waitSignal(run.row_added, timeout=WAIT):
        view.start()
    side.window.tabs.setCurrentWidget(view)
    qtbot.mouseClick(view.cancel_button, Qt.MouseButton.LeftButton)
    assert not run.running
    assert 0 < len(run.rows) < 20
    (side.folder / "empty").mkdir()
    view.folder.setText(str(side.folder / "empty"))
    view.start()
    assert "no images" in view.note.text()


def test_stop_ends_a_run_over_a_folder_too(side: Side, qtbot: QtBot) -> None:
    """Its rows and the comparison of the image stay, and it can be run again."""
    side.begin()
    photos = side.folder / "many"
    photos.mkdir()
    names = [f"{index}.png" for index in range(8)]
    for index, name in enumerate(names):
        photograph(photos / name, index)
    window = side.window
    view, run, made = window.folder, window.folder_run, dict(side.model.made)
    view.folder.setText(str(photos))
    with qtbot.waitSignal(run.row_added, timeout=WAIT):
        view.start()
    assert (window.stop_button.isEnabled(), view.start_button.isEnabled()) == (True, False)
    there = list(run.rows)
    qtbot.mouseClick(window.stop_button, Qt.MouseButton.LeftButton)
    assert not run.running
    assert (window.stop_button.isEnabled(), view.start_button.isEnabled()) == (False, True)
    assert run.rows == there
    assert len(there) < len(names)
    assert side.model.made == made
    view.start()
    qtbot.waitUntil(lambda: not run.running, timeout=WAIT)
    assert [row.name for row in run.rows] == names


def test_escape_closes_and_ends_the_engines(side_of_processes: Side, qtbot: QtBot) -> None:
    side = side_of_processes
    side.begin()
    clients = side.model.runner.clients
    assert all(client.running for client in clients)
    qtbot.keyClick(side.window, Qt.Key.Key_Escape)
    assert not side.window.isVisible()
    assert not any(client.running for client in clients)
    side.begin()  # and again
    assert set(side.model.made) == {"A", "B"}


def test_the_menu_opens_it_with_the_tabs_and_it_goes_with_the_window(
    qtbot: QtBot, empty_window: MainWindow, tmp_path: Path
) -> None:
    window = empty_window
    assert window.files.open(network(tmp_path, "one", 1))
    assert window.files.open(network(tmp_path, "two"))
    window.context.root.change_settings(input_files={"image": str(photograph(tmp_path / "picture.png"))})
    window.actions_["analysis.side_by_side"].trigger()
    side = window.findChild(SideWindow, "side")
    assert side is not None
    qtbot.waitUntil(lambda: not side.model.busy, timeout=WAIT)
    assert [choice.title for choice in side.model.choices] == ["two", "one"]  # the shown one in front
    assert set(side.model.made) == {"A", "B"}
    assert side.model.picture == tmp_path / "picture.png"
    assert side.minimumSizeHint().width() <= 1366
    assert side.minimumSizeHint().height() <= 768
    titles = [side.setup.rows[0].source.itemText(i) for i in range(3)]
    assert titles[:2] == ["two.xml (open)", "one.xml (open)"]
    assert "(sample)" in titles[2]
    clients = side.model.runner.clients
    window.context.root.history.mark_clean()  # nothing is asked
    window.close()
    assert not side.isVisible()
    assert not any(client.running for client in clients)


def test_values_that_are_no_numbers_are_told_and_lose(side: Side) -> None:
    path = network(side.folder, "broken", 3)
    mend = '<Layer name="root" type="unary" edit_pos="80,0" input="image"><Parameters function="sqrt" /></Layer>'
    text = (
        path.read_text()
        .replace('input="image"', 'input="root"')
        .replace('<Layer name="mean"', f'{mend}<Layer name="mean"')
    )
    path.write_text(text)
    side.model.choices.append(VariantChoice(path))
    photograph(side.folder / "picture.png")
    side.model.noise = replace(NoiseChoice(), scale=60 / 255)
    side.begin()
    assert not side.model.errors[2], side.model.errors[2]
    assert "NaN or infinite" in side.window.setup.rows[2].state
    assert side.model.measured.best("psnr") == {"B"}
    assert side.cell(4, PSNR) == "-"
    assert side.model.measured.regions["C"]


def test_stopping_keeps_what_is_there(side: Side, qtbot: QtBot) -> None:
    side.begin()
    with qtbot.waitSignal(side.model.pictures_changed, timeout=WAIT):
        side.window.compare()
    qtbot.mouseClick(side.window.stop_button, Qt.MouseButton.LeftButton)
    assert not side.model.busy
    side.window.compare()
    side.wait()
    assert set(side.model.made) == {"A", "B"}


def test_everything_a_person_uses_has_names(side: Side) -> None:
    side.begin()
    kinds = (QAbstractButton, QComboBox, QAbstractSpinBox, QLineEdit, QTableWidget, QSlider, QProgressBar, QTabWidget)
    for tab in range(side.window.tabs.count()):
        side.window.tabs.setCurrentIndex(tab)
    for widget in side.window.findChildren(QWidget):
        inner = widget.objectName().startswith("qt_") or isinstance(widget.parent(), QAbstractSpinBox | QComboBox)
        if isinstance(widget, kinds) and not inner and not isinstance(widget.parent(), QTableWidget | QTabBar):
            assert widget.objectName(), widget
            assert widget.accessibleName(), widget.objectName()


def test_noise_layers_of_the_documents_are_passed_by(side: Side) -> None:
    path = network(side.folder, "own", 1)
    noise = '<Layer name="noise_0" type="noise" edit_pos="80,0" input="image"><Parameters scale="0.5" /></Layer>'
    text = path.read_text().replace('input="image"', 'input="noise_0"')
    path.write_text(text.replace('<Layer name="mean"', f'{noise}<Layer name="mean"'))
    side.model.choices[1] = VariantChoice(path)
    side.begin()
    assert np.array_equal(side.model.made["A"].picture, side.model.made["B"].picture)


def test_the_folders_of_the_samples_say_what_was_trained_on(side: Side) -> None:
    view = side.window.folder
    menu = view.samples.menu()
    assert menu is not None
    trained, held_out = menu.actions()
    assert "have seen them" in trained.text()
    held_out.trigger()
    assert Path(view.folder.text()) == samples.HELD_OUT.parent


def test_a_table_of_the_training_photographs_says_so(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    side.begin()
    folder = side.folder / "photos"
    folder.mkdir()
    photograph(folder / "0.png")
    side.window.folder.folder.setText(str(folder))
    for trained in (False, True):
        if trained:
            monkeypatch.setattr(samples, "PHOTOGRAPHS", folder)
        side.window.folder.start()
        side.qtbot.waitUntil(lambda: not side.window.folder_run.running, timeout=WAIT)
        assert ("were trained on these photographs" in side.window.folder.note.text()) is trained


def test_calibrated_int8_is_compared_as_it_is_exported(side: Side) -> None:
    images = side.folder / "calibration"
    images.mkdir()
    photograph(images / "0.png")
    graph = restoring_unet(4, 64)
    path = side.folder / "unet.xml"
    save_document(graph, path)
    kept = ("enc_0_a", "dec_0_b", "last", "sum")
    recipe = CalibrationRecipe(str(images), size="64x64")
    variant = SavedVariant("int8", "int8", dict.fromkeys(kept, "float32"), calibration=recipe)
    save_settings(Settings(variants=(variant,)), settings_path(path))
    save_weights(side.folder / "weights", restoring_weights(graph, side.document.registry).tensors)
    plain = VariantChoice(path, str(side.folder / "weights"))
    side.model.choices = [plain, replace(plain, variant="int8")]
    side.begin()
    single, quantized = (side.model.made[letter] for letter in "AB")
    assert 30 < psnr(single.picture, quantized.picture) < 70
    assert quantized.milliseconds > 0
    assert "emulated" not in side.model.status[1]
    (*_, origin) = side.model.provenance().values()
    assert (origin.engine, origin.precision) == ("onnxruntime", "int8")


def test_a_saved_variant_of_the_network_is_compared(side: Side) -> None:
    variants = (SavedVariant("half", "fp16"), SavedVariant("few bits", formats={"mean": "int4"}))
    side.document.change_settings(variants=variants)
    same = VariantChoice(side.document)
    side.model.choices = [same, replace(same, variant="few bits")]
    side.begin()
    assert [choice.full_title for choice in side.model.choices] == ["same", "same (few bits)"]
    single, coarse = (side.model.made[letter].picture for letter in "AB")
    assert np.abs(coarse - single).max() > 0.02
    assert [np.isnan(side.model.made[letter].milliseconds) for letter in "AB"] == [False, True]
    assert [("emulated" in text) for text in side.model.status[:2]] == [False, True]
    row = side.window.setup.rows[1]
    assert [row.variant.itemText(index) for index in range(row.variant.count())] == ["none", "half", "few bits"]
    assert not row.precision.isEnabled()
