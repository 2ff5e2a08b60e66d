"""How outputs are displayed: signed view, exposure, gamma and values out of range, against the values themselves."""

from __future__ import annotations

from itertools import pairwise, zip_longest

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QColor, QGuiApplication, QImage
from PySide6.QtWidgets import QLabel, QToolButton
from pytestqt.qtbot import QtBot

from analysis_layers.difference import Difference
from analysis_layers.mix import Mix
from app.reports.comparison import figures
from app.ui.analysis.display import Display, DisplayMode
from app.ui.analysis.output_view import OutputView
from app.ui.compare.differences import absolute_pixels, levels, mean_levels, signed_pixels
from app.ui.widgets import theme
from app.ui.widgets.image_view import SplitMode
from app.ui.widgets.overlays import CrossOverlay
from app.ui.widgets.render import are_probabilities, class_colors, to_image
from designer.graph.types import Size3D
from designer.operators.registry import default_registry
from designer.runtime.provenance import Provenance
from designer.units import numbers

pytestmark = pytest.mark.gui
VALUES = np.array([[-1.5, -1.0, -0.25, 0.0, 0.25, 1.0, 1.5]], np.float32)
GRAY = VALUES[None]


def grays(display: Display, image: np.ndarray = GRAY, own: DisplayMode = DisplayMode.IMAGE) -> list[int]:
    return [QColor(int(pixel)).green() for pixel in display.pixels(image, own)[0]]


def test_an_image_clips_and_a_signed_view_has_zero_in_the_middle() -> None:
    assert grays(Display()) == [0, 0, 0, 0, 64, 255, 255]
    assert grays(Display(DisplayMode.SIGNED)) == [0, 0, 96, 128, 159, 255, 255]
    below, zero, above = (
        QColor(int(p)).getRgb()[:3] for p in Display(DisplayMode.MAP).pixels(GRAY, DisplayMode.IMAGE)[0, 1::2][:3]
    )
    assert (below, zero) == ((255, 0, 0), (0, 0, 0))
    assert above == (0, 255, 0)
    assert grays(Display(), own=DisplayMode.SIGNED) == grays(Display(DisplayMode.SIGNED))


def test_exposure_is_in_stops_and_gamma_brightens() -> None:
    assert grays(Display(exposure=1.0))[4] == 128
    assert grays(Display(exposure=-2.0))[5] == 64
    assert grays(Display(DisplayMode.SIGNED, exposure=2.0))[2:5] == [0, 128, 255]
    assert grays(Display(gamma=2.0))[4] == 128
    assert grays(Display(exposure=-2.0, gamma=2.0))[5] == 128  # gamma comes last


def test_what_is_out_of_range_is_painted() -> None:
    found = Display(mark=True).pixels(np.repeat(GRAY, 3, 0), DisplayMode.IMAGE)[0].tolist()
    below, above = theme.color("accent").rgb(), theme.color("error").rgb()
    assert [p in (below, above) for p in found] == [True, True, True, False, False, False, True]
    assert found[0] == below
    assert found[-1] == above
    assert below not in Display(DisplayMode.SIGNED, mark=True).pixels(GRAY, DisplayMode.IMAGE)[0, 1:-1].tolist()


@pytest.mark.parametrize(
    ("shape", "note"),
    [
        ((3, 5), "item 0 of 3"),
        ((2, 3, 8, 10), "item 0 of 2"),
        ((2, 1, 4, 8, 10), "item 0 of 2"),
        ((1, 5), ""),
        ((5,), ""),
        ((1, 3, 8, 10), ""),
        ((4, 8, 10), ""),  # all of it is shown
    ],
)
def test_an_output_says_that_it_shows_one_item_of_a_batch(qtbot: QtBot, shape: tuple[int, ...], note: str) -> None:
    view = OutputView("y", lambda: Provenance("y.xml", "0" * 64))
    qtbot.addWidget(view)
    for weights in ("", "random weights"):
        view.show_array(np.zeros(shape, np.float32), note=weights)
        expected = "; ".join(text for text in (note, weights) if text)
        assert (view.view.note, view.features.note) == (expected, expected)


def test_the_view_follows_its_controls(qtbot: QtBot) -> None:
    view = OutputView("y", lambda: Provenance("y.xml", "0" * 64))
    qtbot.addWidget(view)
    view.resize(700, 400)
    view.show()
    image = np.full((1, 3, 8, 10), -0.5, np.float32)
    image[..., :5] = 0.25
    view.show_array(image)
    bar, adjust = view.display_bar, view.findChild(QToolButton, "analysis.output.y.adjust")
    assert adjust is not None
    out_of_range = view.findChild(QLabel, "analysis.output.y.range")
    assert out_of_range is not None
    for label in (f"analysis.output.y.{name}" for name in ("probe", "zoom", "range", "quality")):
        found = view.findChild(QLabel, label)
        assert found is not None
        assert found.accessibleName()
        assert found.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByMouse
    assert not bar.isVisible()
    qtbot.mouseClick(adjust, Qt.MouseButton.LeftButton)
    assert bar.isVisible()

    def pixel(x: int) -> int:
        assert view.view.image is not None
        return view.view.image.pixelColor(x, 4).red()

    assert (pixel(0), pixel(9)) == (64, 0)
    assert out_of_range.text() == "< 0: 50.0 %"
    for _ in range(2):
        qtbot.keyClick(bar.mode, Qt.Key.Key_Down)
    assert (pixel(0), pixel(9)) == (159, 64)
    assert out_of_range.text() == "0 is mid-gray"
    bar.exposure.box.selectAll()
    qtbot.keyClicks(bar.exposure.box, "1")
    qtbot.keyClick(bar.exposure.box, Qt.Key.Key_Return)
    assert pixel(0) == 191
    view.show_array(image * 2)  # the display stays with the next result
    assert pixel(0) == 255
    reset = view.findChild(QToolButton, "analysis.output.y.reset_display")
    assert reset is not None
    qtbot.mouseClick(reset, Qt.MouseButton.LeftButton)
    assert (pixel(0), pixel(9)) == (128, 0)
    assert bar.mode.currentIndex() == 0


def test_a_mark_outside_of_the_part_that_is_shown_is_not_drawn(qtbot: QtBot) -> None:
    view = OutputView("y", lambda: Provenance("y.xml", "0" * 64))
    qtbot.addWidget(view)
    output = default_registry().get("output")
    assert output is not None
    view.show_array(np.zeros((1, 3, 8, 8), np.float32), output(width=4, height=4, offset=Size3D(2, 1, 0)))
    for pixel, marks in (((2, 1), (CrossOverlay(0, 0),)), ((5, 4), (CrossOverlay(3, 3),)), ((1, 1), ()), ((5, 5), ())):
        view.mark((pixel, (8, 8)))
        assert view.view.overlays == marks


@pytest.mark.parametrize(("mode", "whole", "start"), [(SplitMode.VERTICAL, 10, 2), (SplitMode.HORIZONTAL, 16, 7)])
def test_the_split_line_is_where_the_tensor_is_split_also_on_a_part_of_it(
    qtbot: QtBot, mode: SplitMode, whole: int, start: int
) -> None:
    """The tensor is 10 wide and 16 high; 4 pixels of both are shown, from 2 and 7 on."""
    view = OutputView("y", lambda: Provenance("y.xml", "0" * 64))
    qtbot.addWidget(view)
    view.resize(400, 500)
    view.show()
    output = default_registry().get("output")
    assert output is not None
    part = output(width=4, height=4, offset=Size3D(2, 7, 0))
    view.set_split(mode, (start + 1) / whole)
    view.show_array(np.zeros((1, 3, 16, 10), np.float32), part)
    image, moved = view.view, []
    view.split_moved.connect(moved.append)
    for line in (1, 0, 4, 3):
        view.set_split(mode, (start + line) / whole)
        place = image.place_of(*((line, 1) if mode is SplitMode.VERTICAL else (1, line))).toPoint()
        there = image.place_of(*((2, 1) if mode is SplitMode.VERTICAL else (1, 2))).toPoint()
        qtbot.mousePress(image, Qt.MouseButton.LeftButton, pos=place)
        qtbot.mouseMove(image, there)
        qtbot.mouseRelease(image, Qt.MouseButton.LeftButton, pos=there)
        assert moved.pop() == pytest.approx((start + 2) / whole, abs=0.01)  # where it is dropped
        assert not moved
    view.set_split(mode, 0.0)  # beyond the part: at its border, where it can be grabbed
    qtbot.mousePress(image, Qt.MouseButton.LeftButton, pos=image.place_of(0, 0).toPoint())
    qtbot.mouseMove(image, there)
    qtbot.mouseRelease(image, Qt.MouseButton.LeftButton, pos=there)
    assert moved.pop() == pytest.approx((start + 2) / whole, abs=0.01)
    view.set_split(mode, 4 / whole)
    view.show_array(np.zeros((1, 3, 16, 10), np.float32), output())  # all of it
    key = Qt.Key.Key_Right if mode is SplitMode.VERTICAL else Qt.Key.Key_Down
    qtbot.keyClick(image, key, Qt.KeyboardModifier.ShiftModifier)
    assert moved == [pytest.approx(4 / whole + 0.1)]


@pytest.mark.parametrize(("channels", "names"), [(1, ""), (2, ""), (3, "RGB"), (4, "RGBA"), (5, ""), (9, "")])
def test_the_values_of_a_pixel_are_named_and_its_place_is_that_in_the_tensor(
    qtbot: QtBot, channels: int, names: str
) -> None:
    view = OutputView("y", lambda: Provenance("y.xml", "0" * 64))
    qtbot.addWidget(view)
    view.resize(700, 400)
    view.show()
    output = default_registry().get("output")
    assert output is not None
    array = np.random.default_rng(0).random((1, channels, 8, 10), np.float32)
    probe = view.findChild(QLabel, "analysis.output.y.probe")
    assert probe is not None
    for part, (left, top) in ((output(), (0, 0)), (output(width=6, height=5, offset=Size3D(3, 2, 0)), (3, 2))):
        view.show_array(array, part)
        for x, y in ((4, 3), (5, 2)):
            qtbot.mouseMove(view.view, view.view.place_of(x - left + 0.5, y - top + 0.5).toPoint())
            texts = numbers([float(value) for value in array[0, :4, y, x]])
            values = "  ".join(f"{name} {text}".strip() for name, text in zip_longest(names, texts, fillvalue=""))
            assert probe.text() == f"x {x}  y {y}   {values}{' …' if channels > 4 else ''}"


@pytest.mark.parametrize("of_recipe", [False, True])
@pytest.mark.parametrize("kind", ["image", "tensor", "labels"])
def test_an_output_is_colored_as_its_layer_says(qtbot: QtBot, kind: str, of_recipe: bool) -> None:
    """A recipe whose result is negative for more than a quarter of the values is shown as signed."""
    view = OutputView("y", lambda: Provenance("y.xml", "0" * 64))
    qtbot.addWidget(view)
    view.resize(700, 400)
    view.show()
    for negative, positive in ((10, 60), (30, 10), (30, 60)):
        array = np.full((1, 3, 10, 10), 0.5, np.float32)
        array.reshape(3, -1)[:, :negative] = -0.5
        array.reshape(3, -1)[:, 100 - positive :] = 1.5
        operator = default_registry().get("output")
        assert operator is not None
        view.show_array(array, operator(analysis_view=kind), of_recipe=of_recipe)
        assert view.features.isVisible() is (kind == "labels")
        if kind == "labels":
            continue
        signed = of_recipe and negative > 25
        own = DisplayMode.MAP if kind == "tensor" else DisplayMode.SIGNED if signed else DisplayMode.IMAGE
        assert view.view.image == to_image(Display().pixels(array[0], own))
        shares = "< 0: {} %   > 1: {} %".format(*(f"{float(each):.1f}" for each in (negative, positive)))
        label = view.findChild(QLabel, "analysis.output.y.range")
        assert label is not None
        assert label.text() == ("channel 0 of 3" if kind == "tensor" else "0 is mid-gray" if signed else shares)


def test_everything_around_the_output_is_of_what_is_shown_now(qtbot: QtBot) -> None:
    """An image with a note, the pixel under the cursor, a copy of it, another result, a row of values, and nothing."""
    view = OutputView("y", lambda: Provenance("y.xml", "0" * 64))
    qtbot.addWidget(view)
    view.resize(700, 400)
    view.show()

    def texts() -> list[str]:
        found = (view.findChild(QLabel, f"analysis.output.y.{name}") for name in ("probe", "zoom", "range"))
        return [label.text() for label in found if label is not None]

    def click(name: str) -> None:
        button = view.findChild(QToolButton, f"analysis.output.y.{name}")
        assert button is not None
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    def enabled() -> list[bool]:
        """Fit, 1:1, and how an image is displayed: a row of values has neither."""
        found = (view.findChild(QToolButton, f"analysis.output.y.{name}") for name in ("fit", "one", "adjust"))
        return [button.isEnabled() for button in found if button is not None] + [view.display_bar.isEnabled()]

    def copied() -> QImage:
        QGuiApplication.clipboard().clear()
        copy = view.findChild(QAction, "analysis.output.y.export.copy")
        assert copy is not None
        copy.trigger()
        assert texts()[0] == "The image is on the clipboard."
        return QGuiApplication.clipboard().image()

    assert texts() == ["", "", ""]
    assert not view.export.isEnabled()
    assert enabled() == [False, False, True, True]
    image = np.arange(240, dtype=np.float32).reshape(1, 3, 8, 10) / 200 - 0.1
    view.show_array(image, note="random weights")
    assert view.view.note == "random weights"
    assert view.export.isEnabled()
    assert texts() == ["", f"{view.view.zoom * 100:.0f} %", "< 0: 8.33 %   > 1: 7.92 %"]  # 20 and 19 of the 240
    assert enabled() == [True] * 4
    click("one")
    assert texts()[1] == "100 %"
    click("fit")
    assert texts()[1] == f"{view.view.zoom * 100:.0f} %" != "100 %"
    qtbot.mouseMove(view.view, view.view.place_of(3.5, 2.5).toPoint())
    qtbot.waitUntil(lambda: texts()[0] == "x 3  y 2   R 0.015  G 0.415  B 0.815")
    assert copied().pixelColor(3, 2).getRgb()[:3] == (4, 106, 208)
    view.show_array(image * 2)  # the cursor has not moved
    assert texts()[0] == "x 3  y 2   R 0.03  G 0.83  B 1.63"
    assert not view.view.note
    view.show_array(np.array([[0.5, -1.0, 2.0]], np.float32), note="random weights")
    assert view.features.isVisible()
    assert texts() == ["", "", ""]
    assert enabled() == [False] * 4
    plain = copied()
    assert plain.size() == view.features.grab().toImage().size()
    view.show_array(np.array([[0.5, -1.0, 2.0]], np.float32))
    assert copied() != plain  # without the note
    view.show_array(image)
    assert enabled() == [True] * 4
    view.show_array(image, default_registry().get("output")(analysis_view="labels"))
    assert enabled() == [False] * 4
    view.show_array(None)
    assert enabled() == [False, False, True, True]
    assert texts() == ["", "", ""]
    assert view.view.isVisible()
    assert not view.export.isEnabled()


def scores() -> np.ndarray:
    """Six classes at 4 x 5 pixels whose values do not add up to 1: class (x + y) % 6 is the largest."""
    values = np.random.default_rng(3).random((6, 4, 5)).astype(np.float32)
    for y in range(4):
        for x in range(5):
            values[(x + y) % 6, y, x] = 2
    return values


def test_probabilities_are_shown_as_classes_each_in_a_color_of_its_own(qtbot: QtBot) -> None:
    values = scores()
    view = OutputView("out", lambda: Provenance("y.xml", "0" * 64))
    qtbot.addWidget(view)
    view.resize(400, 400)
    view.show()
    legend = view.findChild(QLabel, "analysis.output.out.range")
    view.show_array(values[None])
    assert "channels 0 to 2 of 6" in legend.text()  # only what adds up to 1 is certainly about classes
    view.display_bar.mode.setCurrentText("Classes")
    assert legend.text() == "the largest of 6 classes"
    view.display_bar.mode.setCurrentText("As the layer says")
    view.show_array((values / values.sum(0))[None])
    assert legend.text() == "the largest of 6 classes"
    image = view.view.image
    assert image is not None
    shown = {(x + y) % 6: image.pixelColor(x, y).name() for y in range(4) for x in range(5)}
    assert all(image.pixelColor(x, y).name() == shown[(x + y) % 6] for y in range(4) for x in range(5))
    assert len(set(shown.values())) == 6
    assert shown[0] == "#000000"
    view.view.probed.emit((3, 1))
    assert view.probe_text.startswith("x 3  y 1   class 4: 0.")


def test_no_text_about_an_image_makes_the_panel_wider(qtbot: QtBot) -> None:
    view = OutputView("out", lambda: Provenance("y.xml", "0" * 64))
    qtbot.addWidget(view)
    view.show()
    QGuiApplication.processEvents()
    before = view.minimumSizeHint().width()
    view.show_array(scores()[None] * 10 - 5)
    for mode in ("As the layer says", "Signed", "Map", "Classes"):
        view.display_bar.mode.setCurrentText(mode)
        QGuiApplication.processEvents()
        assert view.findChild(QLabel, "analysis.output.out.range").text()
        assert view.minimumSizeHint().width() <= before + 50  # the zoom in percent


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (np.full((2, 3, 3), 0.5), True),
        (np.full((2, 3, 3), 0.4), False),
        (np.array([1.5, -0.5]).reshape(2, 1, 1), False),
        (np.ones((1, 3, 3)), False),
        (np.stack([np.ones((200, 200)), np.eye(200)]), False),  # only few pixels differ
        (np.full((2, 3, 3), np.nan), False),
    ],
)
def test_only_channels_that_add_up_to_one_are_probabilities(values: np.ndarray, wanted: bool) -> None:
    assert are_probabilities(values.astype(np.float32)) is wanted


def test_one_channel_has_two_classes_and_many_have_colors_that_differ() -> None:
    mask = np.array([[[0.2, 0.5, 0.51, 1.0]]], np.float32)
    found = Display(DisplayMode.CLASSES).pixels(mask, DisplayMode.IMAGE)[0]
    assert [int(pixel) for pixel in found] == [int(class_colors(2)[k]) for k in (0, 0, 1, 1)]
    colors = [QColor(int(pixel)) for pixel in class_colors(21)]
    assert len({color.name() for color in colors}) == 21
    for before, after in pairwise(colors):
        assert sum(abs(a - b) for a, b in zip(before.getRgb()[:3], after.getRgb()[:3], strict=True)) > 100
    assert [int(pixel) for pixel in class_colors(3)] == [int(pixel) for pixel in class_colors(21)[:3]]


def test_channels_that_an_image_leaves_out_are_named(qtbot: QtBot) -> None:
    view = OutputView("out", lambda: Provenance("y.xml", "0" * 64))
    qtbot.addWidget(view)
    legend = view.findChild(QLabel, "analysis.output.out.range")
    texts = []
    for count in (1, 2, 3, 4, 5):
        view.show_array(np.full((1, count, 4, 4), 0.75, np.float32))
        texts.append(legend.text())
    view.display_bar.mode.setCurrentText("Map")
    assert texts == ["", "channel 0 of 2", "", "", "channels 0 to 2 of 5"]
    assert legend.text() == "channel 0 of 5"


@pytest.mark.parametrize("gain", [1.0, 2.5, 20.0])
def test_differences_of_the_analysis_layers_are_those_of_side_by_side(gain: float) -> None:
    """The same colors for the same gain but for the rounding of a level, and the same PSNR and SSIM, also beyond 0..1."""
    rng = np.random.default_rng(5)
    a, b = (rng.random((1, 3, 24, 32), np.float32) for _ in range(2))
    difference, mix = (
        layer.evaluate((a, b))[0] if layer.type == "difference" else layer.evaluate((a, b))
        for layer in (Difference(gain=gain), Mix(selection="amplified_difference", gain=gain))
    )
    expected = channels(absolute_pixels(levels(a, b), gain))
    for name, made in (("difference", difference), ("mix", mix[0] if isinstance(mix, tuple) else mix)):
        shown = channels(Display().pixels(np.asarray(made)[0], DisplayMode.IMAGE))
        assert np.abs(shown - expected).max() <= 1, name
    one, two = a[:, :1], b[:, :1]
    signed = Difference(kind="signed", gain=gain).evaluate((one, two))[0]
    shown = channels(Display().pixels(signed[0], DisplayMode.MAP))
    assert np.abs(shown - channels(signed_pixels(mean_levels(levels(one, two)), gain))).max() <= 4  # one of 127 steps
    beyond = a * 2 - 0.5
    _, psnr, ssim = Difference(gain=gain).evaluate((beyond, b))
    found = figures(b, beyond)
    assert (float(psnr.item()), float(ssim.item())) == pytest.approx((found.psnr, found.ssim), rel=1e-6)


def channels(pixels: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(pixels).view(np.uint8).reshape(*pixels.shape, 4)[..., :3].astype(int)


def test_the_value_under_the_pointer_is_told_anew_when_the_display_changes(qtbot: QtBot) -> None:
    view = OutputView("out", lambda: Provenance("y.xml", "0" * 64))
    qtbot.addWidget(view)
    view.show_array(scores()[None])
    view.view.probed.emit((3, 1))
    assert "class" not in view.probe_text
    view.display_bar.mode.setCurrentText("Classes")
    assert view.probe_text.startswith("x 3  y 1   class 4: 2")
    view.show_array(None)
    assert view.probe_text == ""


def test_a_pixel_that_a_smaller_image_does_not_have_is_not_told(qtbot: QtBot) -> None:
    view = OutputView("y", lambda: Provenance("y.xml", "0" * 64))
    qtbot.addWidget(view)
    view.resize(700, 400)
    view.show()
    probe = view.findChild(QLabel, "analysis.output.y.probe")
    assert probe is not None
    view.show_array(np.ones((1, 3, 8, 10), np.float32))
    qtbot.mouseMove(view.view, view.view.place_of(9.5, 6.5).toPoint())
    for height, width in ((8, 10), (7, 10), (6, 10), (8, 10), (8, 9), (8, 10)):
        view.show_array(np.ones((1, 3, height, width), np.float32))
        assert bool(probe.text()) is (height > 6 and width > 9)
    view.show_array(np.ones((1, 5), np.float32))
    assert view.view.image is None
    view.show_array(np.ones((1, 3, 8, 10), np.float32))
    view.show_array(None)
    assert probe.text() == ""
