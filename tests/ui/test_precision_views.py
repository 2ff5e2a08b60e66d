"""The channels of two computations and the curve of sizes: everything that they show, compared with what the numbers say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytest.importorskip("pyqtgraph")
pytestmark = pytest.mark.gui

from pyqtgraph import PlotDataItem, ScatterPlotItem
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.engine.protocol import SizePoint
from app.ui.precision.channel_pairs import ChannelPairs
from app.ui.precision.size_plot import POINT, SizePlot
from app.ui.widgets import theme
from app.ui.widgets.render import PALETTES, signed_pixels, to_image
from designer.units import digits

# The shape of a tensor, and that of its first sample as channels.
SHAPES = (
    ((1, 3, 4, 5), (3, 4, 5)),
    ((2, 6, 2, 3), (6, 2, 3)),
    ((1, 1, 1, 1), (1, 1, 1)),
    ((1, 7), (1, 1, 7)),
)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("shape", "planes"), SHAPES)
def test_every_channel_is_shown_in_the_order_of_its_difference(
    qtbot: QtBot, shape: tuple[int, ...], planes: tuple[int, ...], seed: int
) -> None:
    chance = np.random.default_rng(seed)
    a = chance.normal(size=shape).astype(np.float32)
    b = (a + chance.normal(size=shape) * chance.choice((0.0, 0.01, 1.0))).astype(np.float32)
    if seed == 1:  # values of the last channel are not finite, in one of both
        last = int(np.prod(planes))
        b.flat[last - 1] = np.nan
        a.flat[max(last - 2, 0)] = -np.inf
    if seed == 2:  # the same infinity is not a difference
        a.flat[0] = b.flat[0] = np.inf
    if seed == 3:
        a[:] = b[:] = 0.5
    window = QWidget()
    qtbot.addWidget(window)
    pairs = ChannelPairs("body/conv", ("FP32", "<b>"), a, b, window)
    assert pairs.windowTitle() == "Channels of body/conv"
    texts = [label.text() for label in pairs.findChildren(QLabel)]
    assert [text for text in texts if text in ("FP32", "<b>", "Difference")] == ["FP32", "<b>", "Difference"]
    first, second = (each.ravel()[: int(np.prod(planes))].reshape(planes) for each in (a, b))
    with np.errstate(invalid="ignore"):
        difference = np.where(first == second, 0, second - first)
        errors = (difference.astype(float) ** 2).mean((1, 2))
    errors[~np.isfinite(errors)] = np.inf
    order = sorted(range(planes[0]), key=lambda number: -errors[number])
    assert (pairs.channel.minimum(), pairs.channel.maximum(), pairs.channel.value()) == (1, planes[0], 1)
    for place, number in enumerate(order, 1):
        pairs.channel.setValue(place)
        both = np.stack((first[number], second[number]))
        known = both[np.isfinite(both)]
        low, high = (known.min(), known.max()) if known.size else (0.0, 0.0)
        changes = difference[number][np.isfinite(difference[number])]
        largest = np.abs(changes).max() if changes.size else 0.0
        text = f"Channel {number}, from {digits(float(low))} to {digits(float(high))}; "
        text += f"the largest difference is {digits(float(largest))}"
        bad = 1 - np.isfinite(both).all(0).mean()
        if bad:
            text += f"; {digits(100 * bad)} % of the values are NaN or infinite"
        assert pairs.text.text() == text
        for view, plane in zip(pairs.views, both, strict=False):
            image = view.image
            assert (image.width(), image.height()) == planes[:0:-1]
            for (row, column), value in np.ndenumerate(plane):
                color = image.pixelColor(column, row)
                if np.isfinite(value):
                    gray = 255 * (value - low) / ((high - low) or 1.0)
                    assert color.red() == color.green() == color.blue()
                    assert color.red() == pytest.approx(gray, abs=1.01)
        scale = 1 / largest if largest else 1.0
        wanted = to_image(signed_pixels(difference[number].astype(np.float32), PALETTES[0], scale))
        assert pairs.views[2].image == wanted


def items(plot: SizePlot, kind: Any) -> list[Any]:
    return [item for item in plot.getPlotItem().items if isinstance(item, kind)]


def test_the_curve_has_the_best_choices_in_kilobytes_and_the_colors_of_the_theme(
    qtbot: QtBot, qapp: QApplication
) -> None:
    plot = SizePlot()
    qtbot.addWidget(plot)
    plain = SizePoint(8192, 999.0, {})  # FP32
    large, worse, same, equal, small = (
        SizePoint(size, psnr, {"a": "int8"})
        for size, psnr in ((4096, 60.25), (3072, 30.0), (2048, 41.5), (1024, 40.5), (1024, 41.5))
    )
    for points, best in (
        ((), []),
        ((plain,), []),
        ((plain, worse, large, same, equal, small), [large, small]),
        ((small,), [small]),
        ((), []),
    ):
        plot.show_points(points)
        for mode in ("", "light", "dark"):
            if mode:
                theme.apply(qapp, mode)
            assert plot.getAxis("bottom").labelText == "Weights (KiB)"
            assert plot.getAxis("left").labelText == "PSNR against FP32 (dB)"
            assert len(items(plot, ScatterPlotItem)) == len(items(plot, PlotDataItem)) == int(bool(best))
            for spots in items(plot, ScatterPlotItem):
                found = [(spot.data(), spot.pos().x(), spot.pos().y()) for spot in spots.points()]
                assert found == [(each, each.bytes / 1024, each.psnr) for each in best]
                assert {spot.brush().color().name() for spot in spots.points()} == {theme.color("accent").name()}
                assert {spot.size() for spot in spots.points()} == {POINT}
                tip = spots.opts["tip"]
                assert tip(x=0, y=0, data=best[-1]) == "1.00 KiB, 41.5 dB"
            for line in items(plot, PlotDataItem):
                x, y = line.getData()
                assert (x.tolist(), y.tolist()) == ([p.bytes / 1024 for p in best], [p.psnr for p in best])
                assert line.opts["pen"].color().name() == theme.color("accent").name()
    theme.apply(qapp, "system")
