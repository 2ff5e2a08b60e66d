"""Curves of training: what is computed of their points, and what the plot and its legend show after every step."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytest.importorskip("pyqtgraph")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QCoreApplication, QEvent, QRectF, Qt
from PySide6.QtGui import QColor, QPen
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.ui.train.curve_legend import LONGEST, CurveLegend
from app.ui.train.curve_plot import (
    _ROLES,
    _STYLES,
    BLOCK,
    NAMED,
    VERTICES,
    Curve,
    CurveBundle,
    CurvePlot,
    reduced,
    roomy,
)
from app.ui.widgets import theme

WAIT = 10_000


def curve(title: str, *values: float, first: float = 1.0) -> Curve:
    return Curve(title, np.arange(first, first + len(values)), np.array(values, float))


# --- points -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "area"),
    [
        ((), None),
        ((3.0,), (5.0, 3.0, 0.0, 0.0)),
        ((3.0, 3.0), (5.0, 3.0, 1.0, 0.0)),
        ((3.0, -1.0, 2.0), (5.0, -1.0, 2.0, 4.0)),
    ],
)
def test_a_curve_of_few_points_covers_an_area_that_is_not_empty(values, area) -> None:
    """Else a plot could not show it: an empty rectangle adds nothing to the range."""
    found = curve("a", *values, first=5.0).area
    if area is None:
        assert found.isNull()
        return
    assert not found.isEmpty()
    assert found.getRect() == pytest.approx(area, abs=1e-6)
    united = QRectF(20, 20, 1, 1).united(found)
    assert united.getRect() == pytest.approx((5, area[1], 16, 21 - area[1]), abs=1e-6)


@pytest.mark.parametrize(
    ("area", "expected"),
    [
        ((5.0, 30.0, 1e-9, 1e-9), (4.5, 28.5, 1.0, 3.0)),
        ((5.0, 0.0, 1e-9, 1e-9), (4.5, -0.5, 1.0, 1.0)),
        ((5.0, -2.0, 1e-9, 1e-9), (4.5, -2.1, 1.0, 0.2)),
        ((5.0, 1e-7, 4.0, 1e-9), (5.0, 0.95e-7, 4.0, 0.11e-7)),
        ((5.0, 3.0, 4.0, 2e-6), (5.0, 2.85, 4.0, 0.3)),
        ((5.0, 3.0, 4.0, 1e-3), (5.0, 3.0, 4.0, 1e-3)),
        ((5.0, 1e-5, 4.0, 1e-7), (5.0, 1e-5, 4.0, 1e-7)),
        ((5.0, 0.0, 1.0, 1.0), (5.0, 0.0, 1.0, 1.0)),
    ],
)
def test_a_point_and_a_flat_line_have_room_around_them(area, expected) -> None:
    assert roomy(QRectF(*area)).getRect() == pytest.approx(expected, rel=1e-4)


def test_logarithms_are_of_the_positive_values_at_their_steps() -> None:
    found = curve("a", 100.0, 0.0, -5.0, 0.001, 1.0).logarithm
    assert found.title == "a"
    assert found.x.tolist() == [1, 4, 5]
    assert found.y.tolist() == pytest.approx([2, -3, 0])
    assert curve("a", 0.0, -1.0).logarithm.area.isNull()


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 160, 1601])
def test_the_coarse_curve_has_the_extremes_of_every_block(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    found = Curve("a", np.arange(count, dtype=float), values)
    x, y = found.coarse
    assert len(x) <= max(2 * -(-count // BLOCK), count if count <= 2 else 2)
    size = -(-count // -(-count // BLOCK))  # blocks of equal size
    assert size <= BLOCK
    for first in range(0, count, size):
        block = values[first : first + size]
        assert {block.min(), block.max()} <= set(y.tolist())


@pytest.mark.parametrize("columns", [1, 3, 10, 50])
@pytest.mark.parametrize("count", [1, 2, 7, 20, 21, 101, 999])
def test_a_reduced_curve_has_every_peak_also_the_last_one(count: int, columns: int) -> None:
    x = np.arange(count, dtype=float)
    for place in {0, count // 2, max(count - 2, 0), count - 1}:
        for peak in (9.0, -9.0):
            y = np.sin(x)
            y[place] = peak
            at, values = reduced(x, y, -1, count, columns)
            assert peak in values.tolist()
            assert set(at[values == peak].tolist()) == {place}
            assert len(at) <= max(2 * columns + 2, 2)
            assert (np.diff(at) >= 0).all()


def test_what_is_painted_is_exact_until_there_are_too_many_points() -> None:
    """Points that are remembered coarsely are used only where many more are in sight than there are columns."""
    count, columns = 4000, 16
    made = Curve("a", np.arange(count, dtype=float), np.random.default_rng(2).normal(size=count))
    for low, high in ((100, 120), (100, 100 + 2 * columns), (50, 700), (0, 4 * BLOCK * columns - 2), (10.5, 10.6)):
        x, y = made.between(low, high, columns)
        exact = reduced(made.x, made.y, low, high, columns)
        assert (x.tolist(), y.tolist()) == (exact[0].tolist(), exact[1].tolist())
    x, y = made.between(0, count, columns)
    assert len(x) <= 2 * columns + 4
    assert (y.min(), y.max()) == (made.y.min(), made.y.max())


def test_what_is_painted_of_a_part_of_the_steps_has_the_detail_of_that_part(qtbot) -> None:
    rng = np.random.default_rng(3)
    curves = [Curve(name, np.arange(50_000.0), rng.normal(size=50_000)) for name in "ab"]
    bundle = CurveBundle()
    bundle.show_curves(curves, [QPen(), QPen()], False)
    for low, high, width in ((0.0, 50_000.0, 200), (1000.0, 1100.0, 200), (-50.0, 30.0, 8), (49_990.5, 60_000.0, 3000)):
        columns = max(16, min(width, VERTICES // 4))
        for curve, (x, y) in zip(curves, bundle.lines(low, high, width), strict=True):
            wanted = curve.between(low, high, columns)
            assert (x.tolist(), y.tolist()) == (wanted[0].tolist(), wanted[1].tolist())
    (x, _), _ = bundle.lines(1000.0, 1100.0, 200)
    assert set(x.tolist()) >= set(range(1000, 1100))


@pytest.mark.parametrize(("share", "half"), [(0.0, 0), (0.02, 0), (0.1, 1), (0.3, 3), (1.0, 10)])
def test_a_smoothed_curve_is_the_mean_of_a_share_of_the_points(share: float, half: int) -> None:
    values = np.random.default_rng(1).normal(size=20)
    found = Curve("a", np.arange(20.0), values).smoothed(share)
    assert found.y.tolist() == pytest.approx([values[max(0, n - half) : n + half + 1].mean() for n in range(20)])
    broken = Curve("a", np.arange(3.0), np.array([1.0, np.inf, 2.0]))
    assert broken.smoothed(1.0) is broken


# --- the plot ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def plot(qtbot: QtBot, qapp: QApplication) -> CurvePlot:
    theme.apply(qapp, "dark")
    made = CurvePlot("plot")
    qtbot.addWidget(made)
    made.resize(500, 400)
    made.show()
    qtbot.waitExposed(made)
    return made


def looks(number: int) -> tuple[str, Qt.PenStyle]:
    """The color and the style of a curve by its place."""
    return theme.color(_ROLES[number % len(_ROLES)]).name(), _STYLES[number // len(_ROLES)]


def test_the_plot_and_its_legend_after_every_step(qtbot: QtBot, qapp: QApplication, plot: CurvePlot) -> None:
    named: list[list[tuple[str, QPen]]] = []
    plot.named_changed.connect(named.append)
    shown: list[Curve] = []

    def follows() -> bool:
        """Whether the range is that of the curves."""
        wanted = plot.bundle.boundingRect()
        seen = plot.getViewBox().viewRect()
        near = (
            seen.contains(wanted) and seen.width() < 3 * wanted.width() + 1 and seen.height() < 3 * wanted.height() + 1
        )
        return near

    def show(title: str, logarithmic: bool, *curves: Curve) -> None:
        shown[:] = curves
        plot.show_curves(title, curves, logarithmic)

    def check(title: str, logarithmic: bool, news: bool) -> None:
        assert plot.getAxis("left").labelText == title
        assert plot.getAxis("bottom").labelText == "Step"
        assert plot.getAxis("left").logMode is logarithmic
        drawn = plot.bundle._curves
        wanted = [each.logarithm if logarithmic else each for each in shown]
        assert [(each.title, each.x.tolist(), each.y.tolist()) for each in drawn] == [
            (each.title, each.x.tolist(), each.y.tolist()) for each in wanted
        ]
        area = QRectF()
        for each in wanted:
            area = area.united(each.area)
        assert plot.bundle.boundingRect() == (area if area.isNull() else roomy(area))
        assert plot.getAxis("left").style["showValues"] is not area.isNull()
        pens = [(pen.color().name(), pen.style()) for pen in plot.bundle._pens]
        assert pens[:NAMED] == [looks(number) for number in range(min(len(shown), NAMED))]
        assert all(pen == (theme.color("muted").name(), Qt.PenStyle.SolidLine) for pen in pens[NAMED:])
        assert len(set(pens[:NAMED])) == min(len(shown), NAMED)
        assert bool(named) is news
        if news:
            (entries,) = named
            assert [(name, (pen.color().name(), pen.style())) for name, pen in entries] == [
                (each.title, looks(number)) for number, each in enumerate(shown[:NAMED])
            ]
        named.clear()

    a, b = curve("a", 1.0, 4.0, 2.0, 8.0), curve("b", 100.0, 10.0, 1.0)
    show("loss", False, a, b)
    check("loss", False, True)
    qtbot.waitUntil(follows, timeout=WAIT)
    longer = curve("a", 1.0, 4.0, 2.0, 8.0, 9.0, 9.0, 9.0, 9.0, 9.0, 300.0)
    show("loss", False, longer, b)
    check("loss", False, False)
    qtbot.waitUntil(follows, timeout=WAIT)
    plot.setXRange(2, 3, padding=0)
    show("loss", False, curve("a", *longer.y.tolist(), 5.0, 900.0), b)
    check("loss", False, False)
    QApplication.processEvents()
    assert plot.getViewBox().viewRange()[0] == [2, 3], "what the user chose stays while the runs go on"
    show("loss", True, a, b)
    check("loss", True, False)
    qtbot.waitUntil(follows, timeout=WAIT)
    plot.setXRange(2, 3, padding=0)
    show("accuracy", True, a, b)
    check("accuracy", True, False)
    qtbot.waitUntil(follows, timeout=WAIT)
    show("accuracy", False, a, b)
    check("accuracy", False, False)
    plot.setXRange(2, 3, padding=0)
    assert not follows()
    QTest.mouseDClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=plot.viewport().rect().center())
    qtbot.waitUntil(follows, timeout=WAIT)
    many = [curve(f"c{number}", number, number + 1.0) for number in range(NAMED + 3)]
    show("accuracy", False, *many)
    check("accuracy", False, True)
    show("accuracy", False, *many[:NAMED])
    check("accuracy", False, False)
    show("accuracy", False, *reversed(many[:NAMED]))
    check("accuracy", False, True)
    for mode in ("light", "dark"):
        theme.apply(qapp, mode)
        check("accuracy", False, True)
    show("accuracy", False)
    check("accuracy", False, True)
    show("loss", True, curve("a", -1.0))
    check("loss", True, True)
    show("loss", False, curve("a", -1.0))
    check("loss", False, False)
    qtbot.waitUntil(follows, timeout=WAIT)


def test_a_curve_of_one_point_is_painted_as_a_dot(qtbot: QtBot, qapp: QApplication, plot: CurvePlot) -> None:
    """As that of a run that was validated once."""

    def colored() -> int:
        qapp.processEvents()
        image = plot.grab().toImage()
        wanted = QColor(looks(0)[0])
        points = ((x, y) for x in range(image.width()) for y in range(image.height()))
        return sum(image.pixelColor(x, y) == wanted for x, y in points)

    plot.show_curves("a", [curve("a", 1.0, 2.0, 3.0)], False)
    line = colored()
    plot.show_curves("a", [curve("a", 2.0)], False)
    assert 4 <= colored() < line
    plot.show_curves("a", [], False)
    assert colored() == 0


def test_the_legend_has_an_entry_for_each_of_several_curves(qtbot: QtBot) -> None:
    legend = CurveLegend("legend")
    qtbot.addWidget(legend)
    pens = [QPen(theme.color(role)) for role in _ROLES]
    long = "a run with a very long name " * 3

    def entries() -> list[tuple[str, str]]:
        QApplication.processEvents()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        found = [label for label in legend.findChildren(QLabel) if not label.isHidden()]
        return [(label.text(), label.toolTip()) for label in found]

    for titles in (("a", "b"), ("b", "c", "d"), ("a",), (), ("x", long), ("y", "x")):
        legend.show_entries(list(zip(titles, pens, strict=False)))
        several = len(titles) > 1
        assert legend.isHidden() is not several
        found = entries()
        assert [text for text, _ in found] == [
            title if len(title) <= LONGEST else f"{title[: LONGEST - 1]}…" for title in titles if several
        ]
        assert all(title.strip() in tip for title, (_, tip) in zip(titles, found, strict=False))
