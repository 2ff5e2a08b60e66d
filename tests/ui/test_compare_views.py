"""The views of Side by Side on results that no engine made: each cell, image, caption and control against the images themselves."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from math import inf, isnan, nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PIL import Image
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from side_kit import WAIT, network, photograph
from window_kit import shown

from app.engine.protocol import OpenRequest, ProgressEvent
from app.reports.comparison import CROP, ImageArray, ImageMetrics
from app.ui.compare.differences import absolute_pixels, levels, mean_levels, signed_pixels
from app.ui.compare.grid import PictureGrid
from app.ui.compare.metrics_view import BEST, MetricsView
from app.ui.compare.mode_bar import ModeBar
from app.ui.compare.model import CLEAN, INPUT, Measured, NoiseChoice, SideModel, coloured, measure_all
from app.ui.compare.pictures import Pictures, ViewMode, values_at
from app.ui.compare.report import copy_of, write_comparison
from app.ui.compare.runner import Made, SideRunner
from app.ui.compare.sectors import SectorView
from app.ui.compare.variants import Variant, VariantChoice
from app.ui.widgets.overlays import BoxOverlay, CrossOverlay, LabelOverlay
from app.ui.widgets.render import palette, picture_pixels, to_image
from designer.graph.diagnostics import Diagnostic, Severity
from designer.metrics import psnr, ssim, worst_regions
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui
LEFT = Qt.MouseButton.LeftButton
WIDE, HIGH = 200, 150
MODES = list(ViewMode)


def image(seed: int, spread: float = 0.0, base: ImageArray | None = None) -> ImageArray:
    """A smooth image, or `base` with errors that grow to the right and down."""
    rng = np.random.default_rng(seed)
    if base is None:
        ys, xs = np.mgrid[:HIGH, :WIDE] / WIDE
        return np.stack([xs, ys, (xs + ys) / 2])[None].astype(np.float32)
    ys, xs = np.mgrid[:HIGH, :WIDE]
    return (base + rng.normal(0, spread, base.shape) * (0.2 + (xs // 70 + ys // 70))).astype(np.float32)


class Bench:
    """A model with results for its variants, as after a comparison."""

    def __init__(self, parent: QWidget) -> None:
        self.owner = parent
        self.model = SideModel(default_registry(), parent)

    def fill(self, letters: str = "ABC", *, clean: bool = True, failed: str = "") -> None:
        """Compare: one variant has smaller errors than the other; those that failed have no result."""
        model = self.model
        model.choices = [VariantChoice(Path(f"net_{letter}.xml")) for letter in letters]
        model.noise = NoiseChoice() if clean else NoiseChoice("")
        model.clean = image(0)
        model.noisy = image(1, 0.1, model.clean)
        model.variants = model.compared = [
            None
            if each in failed
            else Variant(model.title(each), OpenRequest("text", each), "in", "out", 3, f"{each}.xml", "0" * 64)
            for each in letters
        ]
        model.made, model.errors, model.status = {}, [""] * len(letters), [""] * len(letters)
        spreads = {"A": 0.06, "B": 0.02, "C": 0.04, "D": 0.03}
        for number, letter in enumerate(letters):
            if letter in failed:
                model.errors[number] = f"{letter} is broken."
            else:
                model.made[letter] = Made(image(2 + number, spreads[letter], model.clean), 10.0 * (number + 1))
        model.colours = {key: coloured(model.pixels(key))[0] for key in (INPUT, CLEAN, *model.made)}  # type: ignore[arg-type]
        key = model.reference
        reference = model.pixels(key)
        assert reference is not None
        model.measured = measure_all(key, reference, model.noisy, dict(model.made))
        for signal in (model.pictures_changed, model.measured_changed, model.finished):
            signal.emit()

    def pixels(self, key: str) -> ImageArray:
        found = self.model.pixels(key)
        assert found is not None
        return found


@pytest.fixture
def bench(qtbot: QtBot) -> Bench:
    owner = QWidget()
    qtbot.addWidget(owner)
    return Bench(owner)


# --- metrics -----------------------------------------------------------------------------------------------------


def cells(view: MetricsView) -> list[list[str]]:
    table = view.table
    found = []
    for row in range(table.rowCount()):
        items = [table.item(row, column) for column in range(6)]
        found.append([item.text() if item is not None else "" for item in items])
    return found


def headers(view: MetricsView) -> list[str]:
    items = [view.table.horizontalHeaderItem(column) for column in range(6)]
    return [item.text() if item is not None else "" for item in items]


def worst_psnr(reference: ImageArray, made: ImageArray) -> float:
    """PSNR of the worst square, searched here."""
    error = np.square(np.clip(made, 0, 1) - np.clip(reference, 0, 1))[0].sum(0)
    ((y, x),) = worst_regions(error.astype(np.float64), CROP, 1)
    part = (..., slice(y, y + CROP), slice(x, x + CROP))
    return psnr(reference[part], made[part])


@pytest.mark.parametrize("clean", [True, False])
def test_every_cell_of_the_metrics_is_of_its_image(qtbot: QtBot, bench: Bench, clean: bool) -> None:
    view = shown(qtbot, MetricsView(bench.model), 900, 260)
    titles = ["Image", "PSNR (dB)", "SSIM", "Time (ms)", "Worst region (dB)", "Value at pointer"]
    assert headers(view) == titles
    bench.fill("ABCD", clean=clean, failed="C")
    keys = [INPUT, *([CLEAN] if clean else []), *"ABCD"]
    reference = bench.pixels(CLEAN if clean else "A")
    expected = []
    for key in keys:
        title = bench.model.title(key)
        if key == "C":
            expected.append([title, "failed", "-", "-", "-", ""])
        elif key == CLEAN or (key == INPUT and not clean):
            expected.append([title, "-", "-", "-", "-", ""])
        elif key == "A" and not clean:
            expected.append([title, "reference", "-", "10.0", "-", ""])
        else:
            made = bench.pixels(key)
            star = BEST if key == "B" else ""
            time = f"{bench.model.made[key].milliseconds:.1f}" if key in bench.model.made else "-"
            worst = f"{worst_psnr(reference, made):.2f}" if key != INPUT else "-"
            values = [f"{star}{psnr(reference, made):.2f}", f"{star}{ssim(reference, made):.4f}"]
            expected.append([title, *values, time, worst, ""])
    assert cells(view) == expected
    assert [row[0] for row in expected][:2] == (["Input (gaussian:25/255)", "Clean"] if clean else ["Input", "A net_A"])
    against = "Clean" if clean else "A net_A"
    assert view.note.text() == f"Measured against: {against}. {BEST}= best"
    for row in range(len(keys)):
        for column in range(6):
            item = view.table.item(row, column)
            assert item is not None
            assert item.font().bold() is item.text().startswith(BEST)
            side = Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft
            assert item.textAlignment() & side
    bench.fill("AB", clean=clean)  # fewer rows
    assert [row[0] for row in cells(view)] == [bench.model.title(key) for key in keys[:-2]]
    bench.model.started.emit()


@pytest.mark.parametrize("noise", ["gaussian", ""])
@pytest.mark.parametrize("larger", [True, False])
def test_how_larger_results_are_measured_is_said_where_noise_is_added(
    qtbot: QtBot, bench: Bench, noise: str, larger: bool
) -> None:
    view = shown(qtbot, MetricsView(bench.model), 900, 260)
    bench.fill("AB")
    bench.model.noise = NoiseChoice(noise)
    bench.model.enlarged = bench.model.noisy if larger else None
    for against in ("A", ""):
        bench.model.measured = Measured(against, {}, {})
        view.refresh()
        said = f"Measured against: {bench.model.title(against)}. {BEST}= best" if against else ""
        advised = " For a clean image in the size of the results, choose no noise and its file."
        assert view.note.text() == said + (advised if noise and larger else "")


def test_the_values_at_the_pointer_are_those_of_every_image(qtbot: QtBot, bench: Bench) -> None:
    view = shown(qtbot, MetricsView(bench.model), 900, 260)
    bench.fill("AB", failed="B")
    for x, y in ((0, 0), (WIDE - 1, HIGH - 1), (60, 40)):
        view.probe((x, y))
        assert headers(view)[5] == f"Value at {x}, {y}"
        for key, row in zip((INPUT, CLEAN, "A"), cells(view), strict=False):
            values = [float(text) for text in row[5].split()]
            assert values == pytest.approx(bench.pixels(key)[0, :, y, x].tolist(), abs=0.006)
        assert cells(view)[3][5] == ""
    bench.fill("AB")
    assert cells(view)[3][5] != ""  # the place stays
    view.probe((WIDE, 0))
    assert {row[5] for row in cells(view)} == {""}
    view.probe(None)
    assert headers(view)[5] == "Value at pointer"
    assert values_at(bench.model, "A", (0, HIGH)) == ()
    assert values_at(bench.model, "nothing", (0, 0)) == ()


@pytest.mark.parametrize(("letters", "clean"), [("ABC", True), ("ABC", False), ("A", False)])
def test_figures_and_regions_are_those_of_each_result_and_of_all_together(
    bench: Bench, letters: str, clean: bool
) -> None:
    bench.fill(letters, clean=clean)
    model, measured = bench.model, bench.model.measured
    made = {key: item.picture for key, item in model.made.items()}
    reference = bench.pixels(CLEAN if clean else "A")
    others = {key: made[key] for key in letters if clean or key != "A"}
    assert measured.reference == (CLEAN if clean else "A")
    assert list(measured.figures) == [*([INPUT] if clean else []), *letters]
    for key, found in measured.figures.items():
        picture = bench.pixels(key)
        if key in others or key == INPUT:
            assert (found.psnr, found.ssim) == (psnr(reference, picture), ssim(reference, picture)), key
        else:
            assert isnan(found.psnr), key
            assert isnan(found.ssim), key
        assert isnan(found.milliseconds) if key == INPUT else found.milliseconds == model.made[key].milliseconds
    errors = {
        key: np.square(np.clip(picture, 0, 1) - np.clip(reference, 0, 1), dtype=np.float64)[0].sum(0)
        for key, picture in others.items()
    }
    if errors:
        errors[""] = sum(errors.values(), np.zeros_like(reference[0, 0], np.float64))
    expected = {key: tuple((x, y) for y, x in worst_regions(error, CROP, 5)) for key, error in errors.items()}
    assert measured.regions == expected
    assert all(expected.values())


def test_the_worst_regions_are_stepped_through_in_a_circle(qtbot: QtBot, bench: Bench) -> None:
    view = shown(qtbot, MetricsView(bench.model), 900, 260)
    marked: list[tuple[Any, str]] = []
    view.region_wanted.connect(lambda corner, label: marked.append((corner, label)))
    assert not view.next.isEnabled()
    view.step(1)
    assert marked == []
    bench.fill("AB")
    regions = bench.model.measured.regions
    for row, key, who in ((-1, "", "all variants"), (2, "A", "A net_A"), (3, "B", "B net_B")):
        if row >= 0:
            view.table.selectRow(row)
        corners = regions[key]
        assert len(corners) > 1
        assert view.next.isEnabled()
        assert view.back.isEnabled()
        count = len(corners)
        for place in [*range(count), 0]:
            qtbot.mouseClick(view.next, LEFT)
            x, y = corners[place]
            assert marked[-1] == ((x, y), f"{place + 1} of {count}")
            assert view.region.text() == f"{place + 1} of {count} of {who}: x {x}, y {y}"
        qtbot.mouseClick(view.back, LEFT)
        assert marked[-1] == (corners[-1], f"{count} of {count}")
    view.table.selectRow(0)  # the input has no regions of its own: those of all variants
    qtbot.mouseClick(view.back, LEFT)
    assert marked[-1] == (regions[""][0], f"1 of {len(regions[''])}")
    bench.model.measured = replace(bench.model.measured, regions={})
    bench.model.started.emit()
    assert marked[-1] == (None, "")
    assert not view.region.text()
    assert not view.next.isEnabled()
    assert not view.back.isEnabled()
    bench.fill("AB")
    corners = bench.model.measured.regions[""]
    qtbot.mouseClick(view.next, LEFT)  # another comparison begins at its worst region
    assert marked[-1] == (corners[0], f"1 of {len(corners)}")


def test_the_selected_image_stays_selected_when_rows_come_and_go(qtbot: QtBot, bench: Bench) -> None:
    view, model = shown(qtbot, MetricsView(bench.model), 900, 260), bench.model
    bench.fill("ABC")

    def selected() -> list[str]:
        rows = {index.row() for index in view.table.selectionModel().selectedRows()}
        return [cells(view)[row][0] for row in rows]

    view.table.selectRow(3)
    qtbot.mouseClick(view.next, LEFT)
    assert selected() == ["B net_B"]
    view.refresh()
    qtbot.mouseClick(view.next, LEFT)
    assert view.region.text().startswith("2 of 5 of B net_B")  # a table that was filled anew goes on
    bench.fill("ABC", clean=False)  # without the row of the clean image
    assert selected() == ["B net_B"]
    model.choices = list(model.choices)  # as after another choice for A
    model.choices[0] = VariantChoice(Path("other.xml"))
    model.started.emit()
    assert selected() == ["B net_B"]
    del model.choices[0]
    model.started.emit()
    assert selected() == ["A net_B"]
    model.choices.append(model.choices[0])
    model.started.emit()
    assert selected() == ["A net_B"]
    del model.choices[1]
    model.started.emit()
    assert selected() == ["A net_B"]
    model.choices = [VariantChoice(Path("other.xml"))]  # fewer, and none of those before
    model.started.emit()
    assert selected() == []
    view.table.selectRow(0)
    bench.fill("AB")
    assert selected() == ["Input (gaussian:25/255)"]


# --- images ------------------------------------------------------------------------------------------------------


class Shown:
    """The images and the bar over them."""

    def __init__(self, qtbot: QtBot, bench: Bench) -> None:
        self.qtbot, self.bench, self.model = qtbot, bench, bench.model
        self.pictures = shown(qtbot, Pictures(bench.model), 900, 600)
        self.bar = shown(qtbot, ModeBar(bench.model, self.pictures), 1000, 40)

    def compare(self, letters: str = "AB", **options: Any) -> None:
        self.bench.fill(letters, **options)
        self.model.started.emit()
        self.model.pictures_changed.emit()

    def mode(self, mode: ViewMode) -> None:
        self.qtbot.mouseClick(self.bar.modes[mode], LEFT)

    def choose(self, box: Any, value: str) -> None:
        box.setCurrentIndex(box.findData(value))
        box.activated.emit(box.currentIndex())

    def captions(self) -> dict[str, str]:
        return {
            key: next((o.text for o in pane.overlays if isinstance(o, LabelOverlay)), pane._empty)
            for key, pane in self.pictures.grid.panes.items()
        }


@pytest.fixture
def view(qtbot: QtBot, bench: Bench) -> Shown:
    return Shown(qtbot, bench)


def same(shown_image: Any, expected: np.ndarray) -> bool:
    """Whether an image has these colors at some places."""
    assert shown_image is not None
    assert (shown_image.width(), shown_image.height()) == expected.shape[::-1]
    places = [(3, 5), (120, 31), (WIDE - 1, HIGH - 1), (77, 90)]
    return all(QColor(shown_image.pixel(x, y)) == QColor(int(expected[y, x])) for x, y in places)


def test_every_pane_of_the_grid_has_its_own_image_and_title(view: Shown) -> None:
    assert view.captions() == {INPUT: "Press Compare to run the variants."} | dict.fromkeys(
        [CLEAN], "Press Compare to run the variants."
    )
    view.compare("ABC", failed="B")
    grid = view.pictures.grid
    assert list(grid.panes) == [INPUT, CLEAN, "A", "B", "C"]
    for key, pane in grid.panes.items():
        if key == "B":
            assert pane.image is None
            assert pane.overlays == ()
        else:
            assert same(pane.image, picture_pixels(view.bench.pixels(key)[0]))
    titles = {key: view.model.title(key) for key in grid.panes}
    assert view.captions() == {**titles, "B": "B net_B: B is broken."}
    assert {pane.accessibleName() for pane in grid.panes.values()} == set(titles.values())
    for box, key in ((view.bar.with_input, INPUT), (view.bar.with_clean, CLEAN)):
        box.click()
        assert key not in grid.panes
        box.click()
        assert list(grid.panes) == [INPUT, CLEAN, "A", "B", "C"]
    view.compare("AB", clean=False)
    assert list(grid.panes) == [INPUT, "A", "B"]
    before = grid.panes["A"].image
    view.model.pictures_changed.emit()
    assert grid.panes["A"].image is before  # what did not change is not drawn again
    view.compare("BA")
    assert same(grid.panes["A"].image, picture_pixels(view.bench.pixels("A")[0]))


def test_what_is_missing_says_why(view: Shown) -> None:
    view.compare("AB", failed="AB")
    model = view.model
    assert [model.waits(key) for key in (INPUT, "A", "B")] == [
        "Press Compare to run the variants.",
        "A net_A: A is broken.",
        "B net_B: B is broken.",
    ]
    model.errors = ["", ""]
    model.busy = True
    assert model.waits("A") == "A net_A: waits for its turn"
    model.problem = "The image is broken."
    assert model.waits("A") == "The image is broken."
    model.busy, model.problem = False, ""
    assert model.title("C") == "C"
    view.compare("AB")
    model.compared = []  # those of the image; columns are of the variants that were made last
    assert model.columns() == ["gaussian:25/255", "A net_A", "B net_B"]
    view.compare("AB", failed="AB")
    assert model.keys == ["A", "B"]
    assert model.columns() == ["gaussian:25/255"]
    model.noise = NoiseChoice("")
    assert model.columns() == ["input"]
    assert (model.knows_clean, model.reference) == (False, "")
    model.clean_file = Path("clean.png")
    assert (model.knows_clean, model.reference) == (True, CLEAN)


@pytest.mark.parametrize("gain", [1.0, 8.0])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("against", ["", "A", INPUT])
def test_a_difference_is_that_of_its_two_images(view: Shown, gain: float, signed: bool, against: str) -> None:
    view.compare("ABC")
    view.mode(ViewMode.DIFFERENCE)
    view.choose(view.bar.against, against)
    if signed:
        view.bar.signed.click()
    view.bar.gain.box.setValue(gain)
    other = against or CLEAN
    panes = view.pictures.grid.panes
    assert list(panes) == [key for key in "ABC" if key != against]
    sign = "-" if signed else "to"
    for key, pane in panes.items():
        caption = f"{view.model.title(key)} {sign} {view.model.title(other)}  x {gain:g}"
        assert view.captions()[key] == caption
        error = np.clip(view.bench.pixels(key)[0], 0, 1) - np.clip(view.bench.pixels(other)[0], 0, 1)
        for x, y in ((3, 5), (120, 31), (WIDE - 1, HIGH - 1)):
            got = QColor(pane.image.pixel(x, y))
            if signed:
                mean = float(error[:, y, x].mean()) * gain
                expected = QColor(int(palette("green / red")[int(np.clip(mean * 127 + 128.5, 1, 255))]))
            else:
                expected = QColor(*(min(255, round(abs(float(e)) * gain * 255)) for e in error[:, y, x]))
            for mine, theirs in zip(got.getRgb()[:3], expected.getRgb()[:3], strict=True):
                assert abs(mine - theirs) <= (6 if signed else 1)
    view.mode(ViewMode.GRID)
    assert "C" in panes
    assert view.captions()["C"] == "C net_C"


@pytest.mark.parametrize("clean", [True, False])
def test_the_images_of_each_mode_are_those_that_there_are_and_none_is_taken_from_itself(
    view: Shown, clean: bool
) -> None:
    pictures, bar = view.pictures, view.bar
    for letters in ("AB", "A"):
        view.compare(letters, clean=clean)
        there = [INPUT, *([CLEAN] if clean else [])]
        for against in ("", *letters, *there):
            for mode in (ViewMode.GRID, ViewMode.DIFFERENCE):
                view.mode(mode)
                view.choose(bar.against, against)
                other = against or (CLEAN if clean else "A")
                assert pictures.difference_to() == other
                shown_keys = (
                    [*there, *letters] if mode is ViewMode.GRID else [k for k in letters if k != other] or ["A"]
                )
                assert list(pictures.grid.panes) == pictures.keys() == shown_keys, (letters, against, mode)
        view.mode(ViewMode.SPLIT)
        assert pictures.keys() == list(letters)
        for alone in (*there, *letters):
            bar.show_only(alone)
            assert pictures.keys() == [alone]


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_levels_of_a_difference_have_its_sign_and_size(channels: int) -> None:
    rng = np.random.default_rng(channels)
    mine, other = (rng.uniform(-0.2, 1.2, (1, channels, 9, 7)).astype(np.float32) for _ in range(2))
    error = np.clip(mine[0], 0, 1) - np.clip(other[0], 0, 1)
    found = levels(mine, other)
    np.testing.assert_allclose((found.astype(float) - 32768) / 32767, error, atol=2e-5)
    np.testing.assert_allclose((mean_levels(found).astype(float) - 32768) / 32767, error.mean(0), atol=1e-4)
    for gain in (1.0, 5.0, 100.0):
        pixels = absolute_pixels(found, gain)
        shown_error = np.abs(error if channels > 2 else np.repeat(error[:1], 3, 0))
        expected = np.clip(shown_error * gain * 255 + 0.5, 0, 255).astype(int)
        for channel in range(3):
            got = (pixels >> (16 - 8 * channel)) & 0xFF
            assert np.abs(got.astype(int) - expected[channel]).max() <= 1 + gain * 0.01
        assert ((pixels >> 24) == 255).all()
        colors = signed_pixels(mean_levels(found), gain)
        brighter = QColor(int(colors[np.unravel_index(error.mean(0).argmax(), error[0].shape)]))
        darker = QColor(int(colors[np.unravel_index(error.mean(0).argmin(), error[0].shape)]))
        assert brighter.green() > brighter.red()
        assert darker.red() > darker.green()
    zero = levels(mine, mine)
    assert (absolute_pixels(zero, 100.0) == 0xFF000000).all()


def test_split_and_turns_show_what_is_there(view: Shown) -> None:
    view.compare("ABC", failed="B")
    view.mode(ViewMode.SPLIT)
    split = view.pictures.split
    assert split.isVisible()
    assert [label.text for label in split.labels()] == ["A net_A", "C net_C"]
    assert [o for o in split.overlays if isinstance(o, LabelOverlay)] == split.labels()
    view.mode(ViewMode.TURNS)
    single = view.pictures.single
    assert single.isVisible()
    seen = []
    for key in (INPUT, CLEAN, "A", "B", "C"):
        view.bar.show_only(key)
        seen.append(view.pictures.alone)
        if key == "B":
            assert single.image is None
            assert single._empty == "B net_B: B is broken."
        else:
            assert same(single.image, picture_pixels(view.bench.pixels(key)[0]))
        labels = [o.text for o in single.overlays if isinstance(o, LabelOverlay)]
        assert labels == [view.model.title(key)]
        assert view.bar.other.toolTip() == f"Shown: {view.model.title(key)}. Show the other one (X)"
    assert seen == [INPUT, CLEAN, "A", "B", "C"]
    keys = [view.bar.first.itemData(row) for row in range(view.bar.first.count())]
    assert keys == [*"ABC", INPUT, CLEAN]
    assert [view.bar.first.itemText(row) for row in range(len(keys))] == [view.model.title(key) for key in keys]
    view.choose(view.bar.first, "C")
    view.choose(view.bar.second, CLEAN)
    assert view.pictures.pair == ("C", CLEAN)
    turns = []
    for _ in range(3):
        view.qtbot.mouseClick(view.bar.other, LEFT)
        turns.append(view.pictures.alone)
    assert turns == [CLEAN, "C", CLEAN]
    view.mode(ViewMode.GRID)
    view.bar.swap()
    assert (view.pictures.mode, view.pictures.alone) == (ViewMode.TURNS, "C")


def test_the_input_is_shown_in_the_size_of_larger_results_once_they_are_there(view: Shown) -> None:
    view.compare("AB")
    model, pane = view.model, view.pictures.grid.panes[INPUT]
    before, others = pane.image, [view.pictures.grid.panes[key].image for key in "AB"]
    assert same(before, picture_pixels(view.bench.pixels(INPUT)[0]))
    assert model.noisy is not None
    model.enlarged = model.noisy.repeat(2, 2).repeat(2, 3)
    model.colours[INPUT] = picture_pixels(model.enlarged[0])
    model.pictures_changed.emit()
    assert same(pane.image, picture_pixels(model.enlarged[0]))
    assert [view.pictures.grid.panes[key].image for key in "AB"] == others
    assert all(view.pictures.grid.panes[key].image is image for key, image in zip("AB", others, strict=True)), (
        "what did not change is not drawn again"
    )


def test_the_pair_and_what_is_looked_at_stay_in_another_comparison(view: Shown) -> None:
    view.compare("ABC")
    view.mode(ViewMode.TURNS)
    view.choose(view.bar.second, "C")
    view.choose(view.bar.against, "C")
    view.compare("ABC")
    assert view.pictures.pair == ("A", "C")
    assert (view.bar.first.currentData(), view.bar.second.currentData()) == ("A", "C")
    view.bar.show_only(INPUT)
    view.compare("ABC")
    assert view.pictures.alone == INPUT
    view.bar.show_only("C")
    view.compare("AB")  # C was removed
    assert view.pictures.pair == ("A", "B")
    assert view.pictures.alone == "A"
    assert (view.bar.first.currentData(), view.bar.second.currentData()) == ("A", "B")
    assert view.bar.against.currentData() == ""
    assert view.pictures.difference_to() == CLEAN
    view.bar.swap()
    assert view.pictures.alone == "B"


def test_turning_by_itself_ends_with_the_mode(view: Shown) -> None:
    view.compare("AB")
    pictures, bar = view.pictures, view.bar
    bar.automatic.click()
    assert not pictures.turning  # not in the grid
    view.mode(ViewMode.TURNS)
    assert pictures.turning
    for rate, interval in ((1.0, 1000), (2.5, 400)):
        bar.rate.box.setValue(rate)
        assert pictures._turns.interval() == interval
    for mode in (ViewMode.GRID, ViewMode.SPLIT, ViewMode.DIFFERENCE):
        view.mode(mode)
        assert not pictures.turning
        view.mode(ViewMode.TURNS)
        assert pictures.turning
    before = pictures.alone
    with view.qtbot.waitSignal(pictures.turned, timeout=5000):
        bar.rate.box.setValue(3.0)
    assert pictures.alone != before
    bar.automatic.click()
    assert not pictures.turning
    bar.rate.box.setValue(1.0)
    assert not pictures.turning


def test_each_button_shows_its_mode_and_each_mode_its_options(view: Shown) -> None:
    view.compare("AB")
    pages = {
        ViewMode.GRID: view.bar.with_input,
        ViewMode.TURNS: view.bar.first,
        ViewMode.DIFFERENCE: view.bar.against,
    }
    for mode in [*MODES, ViewMode.GRID]:
        view.mode(mode)
        assert view.pictures.mode is mode
        for each, button in view.bar.modes.items():
            looks = (button.isChecked(), button.font().bold(), button.font().underline())
            assert looks == (each is mode,) * 3
        assert {each for each, widget in pages.items() if widget.isVisible()} == ({mode} & pages.keys())


@pytest.mark.parametrize("mode", MODES)
def test_zoom_and_place_are_kept_in_every_mode(view: Shown, mode: ViewMode) -> None:
    view.compare("AB")
    zooms = {text: view.bar.findChild(QWidget, f"side.zoom.{text}") for text in ("fit", "one", "two")}
    view.qtbot.mouseClick(zooms["two"], LEFT)
    assert view.bar.zoom_label.text() == "200 %"
    view.mode(mode)
    found = view.pictures.shown_view()
    assert found is not None
    assert found.isVisible()
    assert found.zoom == 2.0
    view.qtbot.mouseClick(zooms["one"], LEFT)
    assert (found.zoom, view.bar.zoom_label.text()) == (1.0, "100 %")
    view.qtbot.mouseClick(zooms["fit"], LEFT)
    assert view.bar.zoom_label.text() == f"{found.zoom * 100:.0f} %"
    assert found.zoom > 1.0
    view.qtbot.mouseClick(zooms["two"], LEFT)
    start = found.rect().center()
    view.qtbot.mousePress(found, LEFT, pos=start + QPoint(40, 40))
    view.qtbot.mouseMove(found, start + QPoint(10, 25))
    view.qtbot.mouseRelease(found, LEFT, pos=start + QPoint(10, 25))
    place = found.view
    view.compare("AB")
    assert found.view == place
    for other in MODES:
        view.mode(other)
        now = view.pictures.shown_view()
        assert now is not None
        assert now.view == place


@pytest.mark.parametrize("mode", MODES)
def test_a_region_and_the_pointer_are_marked_on_every_image(view: Shown, mode: ViewMode) -> None:
    view.compare("AB")
    view.mode(mode)
    pictures = view.pictures
    pictures.mark_region((WIDE - CROP + 10, 20), "2 of 5")
    views = list(pictures.grid.panes.values()) if pictures.grid.isVisible() else [pictures.shown_view()]
    box = BoxOverlay(WIDE - CROP + 10, 20, WIDE, 20 + CROP, "2 of 5", "warning")  # not beyond the image
    for each in views:
        assert [o for o in each.overlays if isinstance(o, BoxOverlay)] == [box]
        assert each.rect().contains(each.place_of(WIDE - 10, 50).toPoint())
    for corner in ((70, 40), (60, 30)):  # far enough from the edges
        pictures.mark_region(corner, "2 of 5")
        for each in views:
            middle = each.place_of(corner[0] + CROP / 2, corner[1] + CROP / 2) - QPointF(each.rect().center())
            assert middle.manhattanLength() < 3
    pictures.mark_region((WIDE - CROP + 10, 20), "2 of 5")
    seen: list[Any] = []
    pictures.probed.connect(seen.append)
    place = views[-1].place_of(WIDE - 19.5, 40.5).toPoint()
    view.qtbot.mouseMove(views[-1], place - QPoint(2, 2))
    view.qtbot.mouseMove(views[-1], place)
    assert seen[-1] == (WIDE - 20, 40)
    crosses = [[o for o in each.overlays if isinstance(o, CrossOverlay)] for each in views]
    in_grid = pictures.grid.isVisible()
    assert crosses == [[CrossOverlay(WIDE - 20, 40)] if in_grid else []] * len(views)
    QApplication.sendEvent(views[-1], QEvent(QEvent.Type.Leave))
    assert seen[-1] is None
    assert not any(isinstance(o, CrossOverlay) for each in views for o in each.overlays)
    view.model.started.emit()
    view.model.pictures_changed.emit()
    assert not any(isinstance(o, BoxOverlay) for each in views for o in each.overlays)
    pictures.mark_region((0, 0), "1 of 5")
    pictures.mark_region(None, "")
    assert not any(isinstance(o, BoxOverlay) for each in views for o in each.overlays)


# --- the page ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
def test_the_page_has_the_values_of_the_window(qtbot: QtBot, bench: Bench, tmp_path: Path, clean: bool) -> None:
    view = shown(qtbot, MetricsView(bench.model), 900, 260)
    bench.fill("ABC", clean=clean, failed="C")
    model = bench.model
    model.picture = Path("some") / "photo.png"
    model.made["B"] = replace(model.made["B"], note="random weights")
    seen = copy_of(model, None, 5.0, (), (), b"")
    assert seen.region == model.measured.regions[""][0]
    assert copy_of(model, (7, 9), 5.0, (), (), b"").region == (7, 9)
    assert list(seen.pictures) == ([CLEAN] if clean else []) + [INPUT, "A", "B"]
    assert seen.notes == ["B net_B: random weights", "C failed: C is broken."]
    path = tmp_path / "page.html"
    write_comparison(path, replace(seen, seed=7, noise=model.noise.text))
    page = path.read_text(encoding="utf-8")
    rows = [row for row in cells(view) if row[1] not in ("-", "failed")]
    for row in rows:
        line = "".join(f"<td[^>]*>{re.escape(text.replace(BEST, '* '))}</td>" for text in row[:5])
        assert re.search(line, page), row
    noise = "with gaussian:25/255 noise (seed 7), identical for all variants" if clean else "without added noise"
    assert f"photo.png {noise}." in page
    assert f"Against {'Clean' if clean else 'A net_A'};" in page
    assert "Differences x 5" in page
    x, y = model.measured.regions[""][0]
    assert f"The region that begins at x {x}, y {y}" in page
    differences = 2 if clean else 1
    shown_images = [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB"))
        for text in re.findall(r'data:image/webp;base64,([^"]+)"', page)
    ]
    assert len(shown_images) == 2 * len(seen.pictures) + differences
    whole, parts = shown_images[: len(seen.pictures)], shown_images[len(seen.pictures) : 2 * len(seen.pictures)]
    for one, part in zip(whole, parts, strict=True):
        assert np.array_equal(part, one[y : y + CROP, x : x + CROP])
    assert x != y


def test_the_selected_row_is_that_of_its_variant_after_another_one_was_removed(qtbot: QtBot, bench: Bench) -> None:
    view = shown(qtbot, MetricsView(bench.model), 900, 260)
    model = bench.model
    for selected, left in (("", ""), (CLEAN, CLEAN), ("A", ""), ("B", "A"), ("C", "B")):
        bench.fill("ABC")
        view.table.clearSelection()
        if selected:
            view.table.selectRow([INPUT, CLEAN, *"ABC"].index(selected))
        del model.choices[0]
        view.refresh()
        assert view._key() == left, selected


def test_only_an_image_with_errors_has_worst_regions_to_step_through(qtbot: QtBot, bench: Bench) -> None:
    view = shown(qtbot, MetricsView(bench.model), 900, 260)
    bench.fill("AB")
    bench.model.measured.regions["A"] = ()  # it equals the clean image
    for row, steps in ((2, False), (3, True), (2, False), (0, True)):
        view.table.selectRow(row)
        assert (view.next.isEnabled(), view.back.isEnabled()) == (steps, steps)


# --- parts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("psnrs", "reference", "best"),
    [
        ({"A": 30.0, "B": 31.0, INPUT: 40.0}, CLEAN, {"B"}),  # the input takes no part
        ({"A": 30.004, "B": 30.001}, CLEAN, set()),  # they are written alike
        ({"A": 31.0, "B": 30.0, "C": 31.0}, CLEAN, {"A", "C"}),
        ({"A": inf, "B": 30.0, "C": 29.0}, "A", {"B"}),  # nor what is measured against
        ({"A": nan, "B": 30.0}, CLEAN, set()),
        ({"A": nan, "B": 30.0, "C": 29.0}, CLEAN, {"B"}),
    ],
)
def test_the_best_variant_is_the_best_as_it_is_written(psnrs: dict[str, float], reference: str, best: set[str]) -> None:
    figures = {key: ImageMetrics(psnr, psnr / 100) for key, psnr in psnrs.items()}
    assert Measured(reference, figures).best("psnr") == best
    finer = {key: ImageMetrics(1.0, 0.5 + psnr / 1e6) for key, psnr in psnrs.items()}
    assert Measured(reference, finer).best("ssim") == set()  # four digits are equal


@pytest.mark.parametrize(
    ("size", "count", "columns"),
    [
        ((900, 300), 2, 2),
        ((300, 900), 2, 1),
        ((900, 300), 3, 3),
        ((600, 460), 4, 2),
        ((300, 1000), 3, 1),
        ((900, 500), 5, 3),
    ],
)
def test_images_have_equal_places_as_large_as_possible(
    qtbot: QtBot, size: tuple[int, int], count: int, columns: int
) -> None:
    grid = shown(qtbot, PictureGrid("grid", ""), *size)
    keys = list("ABCDE"[:count])
    grid.show_keys(keys, {key: f"title {key}" for key in keys})
    for key in keys:
        grid.show_image(key, to_image(np.full((HIGH, WIDE), 0xFF000000, np.uint32)), [])
    areas = [grid.panes[key].geometry() for key in keys]
    assert len({area.left() for area in areas}) == columns
    assert len({(area.width(), area.height()) for area in areas}) == 1
    assert [(area.top(), area.left()) for area in areas] == sorted((area.top(), area.left()) for area in areas)
    for number, area in enumerate(areas):
        assert grid.rect().contains(area)
        assert not any(area.intersects(other) for other in areas[number + 1 :])
    assert areas[-1].bottom() > grid.height() - 10
    assert max(area.right() for area in areas) > grid.width() - 10
    grid.show_keys(keys[1:], {key: f"title {key}" for key in keys})
    assert list(grid.panes) == keys[1:]
    assert grid.first() is grid.panes[keys[1]]
    for other in keys[1:]:
        grid.panes[other].set_zoom(2.0 + ord(other) % 2)
        assert {pane.zoom for pane in grid.panes.values()} == {2.0 + ord(other) % 2}


@pytest.mark.parametrize("size", [(40, 10), (12, 40), (20, 20), (0, 0)])
def test_columns_of_the_grid_are_those_that_show_the_images_largest(qtbot: QtBot, size: tuple[int, int]) -> None:
    """Without an image yet, as for one of 4 to 3."""
    grid = shown(qtbot, PictureGrid("grid", ""), 700, 500)
    image = to_image(np.full(size[::-1], 0xFF000000, np.uint32)) if size[0] else None
    wide, high = size if size[0] else (4, 3)
    for count in range(1, 6):
        keys = list("ABCDE"[:count])
        grid.show_keys(keys, {key: key for key in keys})
        for key in keys:
            grid.show_image(key, image, [])
        scales = {
            columns: min(grid.width() / columns / wide, grid.height() / -(-count // columns) / high)
            for columns in range(1, count + 1)
        }
        columns = len({grid.panes[key].x() for key in keys})
        assert scales[columns] == pytest.approx(max(scales.values())), (size, count)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_arrow_keys_move_the_lines_that_there_are(qtbot: QtBot, count: int) -> None:
    view = shown(qtbot, SectorView("split", "Split", ""), 400, 300)
    view.show_pictures([np.full((HIGH, WIDE), 0xFF000000, np.uint32)] * count, list("ABCD")[:count])
    key, shift = Qt.Key, Qt.KeyboardModifier.ShiftModifier
    for pressed, keys, moved in (
        (key.Key_Right, Qt.KeyboardModifier.NoModifier, (0.01, 0.0)),
        (key.Key_Left, shift, (-0.1, 0.0)),
        (key.Key_Down, Qt.KeyboardModifier.NoModifier, (0.0, 0.01)),
        (key.Key_Up, shift, (0.0, -0.1)),
    ):
        across, down = view.amounts
        qtbot.keyClick(view, pressed, keys)
        expected = (across + moved[0] * (count > 1), down + moved[1] * (count > 2))
        assert view.amounts == pytest.approx(expected)
    view.set_amounts(0.0, 1.0)
    qtbot.keyClick(view, key.Key_Left)
    qtbot.keyClick(view, key.Key_Down)
    assert view.amounts == (0.0, 1.0)


def test_a_difference_to_a_variant_without_a_result_is_that_to_the_reference(view: Shown) -> None:
    view.compare("ABC")
    view.mode(ViewMode.DIFFERENCE)
    view.choose(view.bar.against, "C")
    view.compare("ABC", failed="C")
    assert view.captions()["A"] == "A net_A to Clean  x 8"
    assert view.captions()["C"] == "C net_C: C is broken."
    view.compare("ABC")
    assert view.captions()["A"] == "A net_A to C net_C  x 8"


# --- the steps of a comparison ---------------------------------------------------------------------------------------


class Comparison:
    """A model whose variants are run by the test."""

    def __init__(self, bench: Bench, folder: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
        self.bench, self.model = bench, bench.model
        self.ran: list[np.ndarray] = []
        names = "ABCD"[:count]
        self.model.choices = [VariantChoice(network(folder, f"net_{name}")) for name in names]
        self.model.picture = photograph(folder / "photo.png")
        monkeypatch.setattr(self.model.runner, "run", lambda variants, image: self.ran.append(image))

    def begin(self, qtbot: QtBot) -> ImageArray:
        count = len(self.ran)
        self.model.compare()
        qtbot.waitUntil(lambda: len(self.ran) > count, timeout=WAIT)
        return self.ran[-1]


def test_a_comparison_from_its_start_to_its_values(
    qtbot: QtBot, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Comparison(bench, tmp_path, monkeypatch, 3)
    model, runner = task.model, bench.model.runner
    for first in (True, False):
        ended: list[bool] = []
        model.finished.connect(lambda ended=ended: ended.append(model.busy))
        noisy = task.begin(qtbot)
        assert model.busy
        assert (model.made, model.measured.figures, model.problem) == ({}, {}, "")
        assert list(model.colours) == [CLEAN, INPUT]
        np.testing.assert_array_equal(noisy, bench.pixels(INPUT))
        runner.progress.emit(0, "Running …")
        assert model.status == ["Running …", "", ""]
        cold = Made((noisy * 0.5).astype(np.float32), nan)
        broken = noisy.copy()
        broken[:, 0] = nan
        for index, made in (
            (1, Made(broken.astype(np.float32), nan, emulated=True)),
            (0, cold),
            (0, Made((noisy * 0.9).astype(np.float32), 5.0, "random weights")),
        ):
            runner.made.emit(index, made)
        runner.made.emit(2, Made(noisy, 1.0))
        runner.failed.emit(2, "It broke.")
        runner.finished.emit()
        qtbot.waitUntil(lambda ended=ended: bool(ended), timeout=WAIT)
        assert ended == [False]
        assert list(model.made) == ["A", "B"]
        assert model.status == ["random weights", "33.3 % of its values are NaN or infinite", ""]
        assert model.errors == ["", "", "It broke."]
        assert model.measured.figures["A"].psnr == pytest.approx(psnr(bench.pixels(CLEAN), noisy * np.float32(0.9)))
        assert set(model.measured.regions) == {"", "A", "B"}
        assert list(model.provenance()) == ["A net_A", "B net_B"]
        model.finished.disconnect()
        if first:
            runner.progress.emit(0, "late")
            runner.failed.emit(0, "late")
            assert (model.status[0], model.errors[0]) == ("random weights", "")


@pytest.mark.parametrize(
    ("picture", "networks", "problem"),
    [(None, True, "Choose an image."), ("gone.png", True, "gone.png"), ("photo.png", False, "No network can be run.")],
)
def test_what_keeps_a_comparison_from_running_is_said_until_the_next_one(
    qtbot: QtBot,
    bench: Bench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    picture: str | None,
    networks: bool,
    problem: str,
) -> None:
    photograph(tmp_path / "photo.png")
    model = bench.model
    bench.fill("AB")
    path = network(tmp_path, "net") if networks else tmp_path / "gone.xml"
    model.choices = [VariantChoice(path)] * 2
    model.picture = tmp_path / picture if picture else None
    with qtbot.waitSignal(model.finished, timeout=WAIT):
        model.compare()
    assert problem in model.problem
    assert not model.busy
    assert [model.pixels(key) for key in (INPUT, CLEAN, "A", "B")] == [None] * 4
    assert model.measured == Measured()
    assert [bool(why) for why in model.errors] == [not networks] * 2
    assert all(problem in model.waits(key) for key in (INPUT, CLEAN))
    ran: list[list[bool]] = []
    monkeypatch.setattr(
        model.runner, "run", lambda variants, _image: ran.append([each is not None for each in variants])
    )
    model.picture = tmp_path / "photo.png"
    model.choices = [VariantChoice(network(tmp_path, "net")), VariantChoice(tmp_path / "gone.xml")]
    model.compare()  # with one network that can run
    assert (model.busy, model.problem, model.waits(INPUT)) == (True, "", "Input (gaussian:25/255): waits for its turn")
    qtbot.waitUntil(lambda: ran == [[True, False]], timeout=WAIT)
    assert [model.pixels(key) is not None for key in (INPUT, CLEAN, "A", "B")] == [True, True, False, False]
    assert [bool(why) for why in model.errors] == [False, True]
    assert (model.busy, model.problem) == (True, "")


def test_networks_that_are_made_for_a_folder_leave_what_is_said_about_the_image(bench: Bench, tmp_path: Path) -> None:
    bench.fill("ABC", failed="BC")
    model = bench.model
    model.choices = [VariantChoice(network(tmp_path, f"net_{name}")) for name in "AB"] + [
        VariantChoice(tmp_path / "no.xml")
    ]
    model.status = ["random weights", "", ""]
    model.errors = ["", "It broke.", "before"]
    made = model.make_variants(shown=True)
    assert [variant is None for variant in made] == [False, False, True]
    assert model.status == ["random weights", "", ""]
    assert model.errors[:2] == ["", "It broke."]
    assert "no.xml" in model.errors[2]
    model.make_variants()
    assert (model.status, model.errors[:2]) == (["", "", ""], ["", ""])


class Lane:
    """Stands for an engine process."""

    def __init__(self) -> None:
        self.warm = False
        self.works: list[Any] = []
        self.stopped = 0
        self.client = self

    def run(self, variant: Variant, picture: ImageArray, work: Any) -> None:
        self.works.append(work)

    def take(self, handle: Any) -> Any:
        return handle

    def stop(self) -> None:
        self.stopped += 1


def reply(array: ImageArray, milliseconds: float = 7.0, **fields: Any) -> Any:
    usual = {"note": "", "weights": "w.npz", "weights_sha256": "ab", "emulated": False}
    return SimpleNamespace(outputs={"out": array, "other": array * 0}, milliseconds=milliseconds, **{**usual, **fields})


def test_variants_run_in_order_and_the_first_time_of_each_is_not_counted() -> None:
    runner = SideRunner()
    lanes = [Lane() for _ in range(3)]
    runner._lanes = lanes  # type: ignore[assignment]
    told: list[tuple[Any, ...]] = []
    runner.progress.connect(lambda index, text: told.append((index, text)))
    runner.made.connect(lambda index, made: told.append((index, made)))
    runner.failed.connect(lambda index, why: told.append((index, why)))
    runner.finished.connect(lambda: told.append(("finished",)))
    noisy = image(0)

    def variant(name: str) -> Variant:
        return Variant(name, OpenRequest("text", name), "in", "out", 3, f"{name}.xml", "")

    variants = [variant("A"), None, variant("C")]
    runner.run(variants, noisy)
    assert told == [(0, "Running …")]
    lanes[0].works[0].progress(ProgressEvent(1, 0, 2, "conv"))
    assert told.pop() == (0, "Running conv …")
    lanes[0].works[0].done(reply(noisy * 0.5))
    _, (index, made), again = told
    assert (index, again) == (0, (0, "Timing …"))
    assert isnan(made.milliseconds)
    np.testing.assert_array_equal(made.picture, noisy * 0.5)
    assert (made.weights, made.weights_sha256) == ("w.npz", "ab")
    told.clear()
    lanes[0].works[1].done(reply(noisy, 7.0, note="random weights"))
    assert (told[0][1].milliseconds, told[0][1].note) == (7.0, "random weights")
    assert told[1:] == [(2, "Running …")]
    told.clear()
    lanes[2].works[0].done(reply(noisy, 7.0, emulated=True))  # no second run: its time says nothing
    assert isnan(told[0][1].milliseconds)
    assert "emulated" in told[0][1].note
    assert told[1:] == [("finished",)]
    assert not runner.running
    told.clear()
    runner.run(variants, noisy)  # the networks are warm now
    lanes[0].works[-1].done(reply(noisy))
    assert told[1][1].milliseconds == 7.0
    lanes[2].works[-1].failed((Diagnostic("w", "a warning", severity=Severity.WARNING), Diagnostic("e", "it broke")))
    assert told[-2][0] == 2
    assert "t broke" in told[-2][1]
    assert told[-1] == ("finished",)
    runner.run(variants, noisy)
    told.clear()
    late = lanes[0].works[-1]
    runner.cancel()
    assert [lane.stopped for lane in lanes] == [1, 0, 0]
    assert not runner.running
    runner.run([variant("A")], noisy)
    told.clear()
    lanes[0].works[-1].done(reply(noisy[..., :-1]))
    assert "not an image like its input" in told[0][1]
    assert told[-1] == ("finished",)
    assert late is not lanes[0].works[-1]
    runner._lanes = []
