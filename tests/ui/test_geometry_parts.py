"""Places, areas and small rules of the canvas and of image views, with values computed by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QObject, QPointF, QRectF, Qt
from pytestqt.qtbot import QtBot

from app.reports.comparison import CROP
from app.ui.analysis.overview_model import _two
from app.ui.analysis.transport import _place
from app.ui.canvas.edge_scroll import _speed
from app.ui.canvas.frames import FrameItem
from app.ui.canvas.gestures import best_port, snap
from app.ui.canvas.link_paths import CURVED, label_place, set_style
from app.ui.canvas.rect_index import RectIndex
from app.ui.canvas.saved_views import SavedView
from app.ui.compare.differences import absolute_pixels, levels, mean_levels, signed_pixels
from app.ui.compare.model import region_psnr
from app.ui.compare.pictures import values_at
from app.ui.compare.sectors import SectorView
from app.ui.engine.coarse_to_fine import BUDGET, CoarseToFine
from app.ui.engine.playback import Track
from app.ui.inspector.channel_grid import ChannelGrid
from app.ui.inspector.matrix_view import MatrixView
from app.ui.inspector.pages import Filters, Form, page_of
from app.ui.inspector.subject import Kind
from app.ui.widgets.feature_view import LIST, FeatureView
from app.ui.widgets.render import palette
from app.ui.widgets.split_line import SplitLine, SplitMode
from designer.graph.model import Frame

pytestmark = pytest.mark.gui
V, H = SplitMode.VERTICAL, SplitMode.HORIZONTAL


# --- images --------------------------------------------------------------------------------------------------------


def test_parts_of_a_split_image(qtbot: QtBot) -> None:
    view = SectorView("sectors", "Parts", "")
    qtbot.addWidget(view)
    view.set_amounts(0.3, 0.5)
    for count, areas, corners in (
        (1, [(0, 0, 10, 6)], [(0, 0)]),
        (2, [(0, 0, 3, 6), (3, 0, 10, 6)], [(0, 0), (1, 0)]),
        (3, [(0, 0, 3, 3), (3, 0, 10, 3), (0, 3, 10, 6)], [(0, 0), (1, 0), (0, 1)]),
        (4, [(0, 0, 3, 3), (3, 0, 10, 3), (0, 3, 3, 6), (3, 3, 10, 6)], [(0, 0), (1, 0), (0, 1), (1, 1)]),
    ):
        view.show_pictures([np.full((6, 10), 0xFF000000 + i, np.uint32) for i in range(count)], list("ABCD"[:count]))
        assert view.areas() == areas
        assert [(label.right, label.bottom) for label in view.labels()] == corners
        for i, (left, top, right, bottom) in enumerate(areas):
            assert {view.image.pixel(x, y) & 0xFF for x in (left, right - 1) for y in (top, bottom - 1)} == {i}
    view.set_amounts(0.0, 0.5)
    assert [label.right for label in view.labels()] == [False, True, False, False]


def test_only_the_left_button_moves_the_lines(qtbot: QtBot) -> None:
    view = SectorView("sectors", "Parts", "")
    qtbot.addWidget(view)
    view.resize(300, 200)
    view.show()
    view.show_pictures([np.full((6, 10), 0xFF000000, np.uint32)] * 4, list("ABCD"))
    button = Qt.MouseButton
    for held in (button.MiddleButton, button.RightButton, button.LeftButton):
        place, there = view.place_of(5, 3).toPoint(), view.place_of(7, 2).toPoint()
        qtbot.mousePress(view, held, pos=place)
        qtbot.mouseMove(view, there)
        qtbot.mouseRelease(view, held, pos=there)
        moved = view.amounts != (0.5, 0.5)
        assert moved is (held is button.LeftButton)
        view.fit()
    assert view.amounts == (pytest.approx(0.7, abs=0.02), pytest.approx(1 / 3, abs=0.02))


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize(
    ("grabbed", "lines"), [((5, 1), (True, False)), ((2, 3), (False, True)), ((5, 3), (True, True))]
)
def test_a_drag_moves_the_lines_that_were_grabbed(
    qtbot: QtBot, count: int, grabbed: tuple[int, int], lines: tuple[bool, bool]
) -> None:
    """The upright line, the level line, or both where they cross; the other one stays, wherever the pointer goes."""
    view = SectorView("sectors", "Parts", "")
    qtbot.addWidget(view)
    view.resize(300, 200)
    view.show()
    view.show_pictures([np.full((6, 10), 0xFF000000, np.uint32)] * count, list("ABCD"[:count]))
    before = view.amounts
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=view.place_of(*grabbed).toPoint())
    for x, y in ((7, 2), (3, 5), (8, 4)):
        qtbot.mouseMove(view, view.place_of(x, y).toPoint())
        moved = (x / 10 if lines[0] else before[0], y / 6 if lines[1] and count > 2 else before[1])
        assert view.amounts == pytest.approx(moved, abs=0.02)
    qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=view.place_of(8, 4).toPoint())
    after = view.amounts
    qtbot.mouseMove(view, view.place_of(1, 1).toPoint())
    assert view.amounts == after


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_the_cursor_is_that_of_the_line_under_the_pointer_and_a_cross_everywhere_else(qtbot: QtBot, count: int) -> None:
    """Also after a line was under it, or was dragged. Without images it is an arrow."""
    view = SectorView("sectors", "Parts", "")
    qtbot.addWidget(view)
    view.resize(300, 200)
    view.show()
    view.show_pictures([np.full((6, 10), 0xFF000000, np.uint32)] * count, list("ABCD"[:count]))
    shapes = Qt.CursorShape
    plain = shapes.CrossCursor if count else shapes.ArrowCursor
    upright = shapes.SplitHCursor if count > 1 else plain
    level = shapes.SplitVCursor if count > 2 else plain
    crossing = shapes.SizeAllCursor if count > 2 else upright
    middle = view.rect().toRectF().center()
    for x, y, shape in ((0, -60, upright), (-60, 0, level), (0, 0, crossing)):
        for place, expected in (((-70, -70), plain), ((x, y), shape), ((70, 70), plain), ((x, y), shape)):
            qtbot.mouseMove(view, (middle + QPointF(*place)).toPoint())
            assert view.cursor().shape() is expected, place
        if shape is not plain:
            before = view.amounts
            there = (middle + QPointF(-50, -40)).toPoint()
            qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=(middle + QPointF(x, y)).toPoint())
            qtbot.mouseMove(view, there)
            qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=there)
            assert view.amounts != before
            assert view.cursor().shape() is shape, "it is still over what it moved"
            qtbot.mouseMove(view, (middle + QPointF(70, 70)).toPoint())
            assert view.cursor().shape() is plain
            view.set_amounts(*before)


@pytest.mark.parametrize("size", [(300, 420), (420, 100)])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_lines_are_grabbed_where_they_divide_the_image(qtbot: QtBot, count: int, size: tuple[int, int]) -> None:
    """Also in views that the image does not fill. Of three images the third is below the upright line."""
    view = SectorView("sectors", "Parts", "")
    qtbot.addWidget(view)
    view.resize(*size)
    view.show()
    view.show_pictures([np.full((6, 10), 0xFF000000, np.uint32)] * count, list("ABCD"[:count]))
    view.set_amounts(0.3, 0.5)
    target = view._target()
    assert target.top() > 50 or target.left() > 50
    reach = 7.0  # pixels
    x_line, y_line = target.left() + 0.3 * target.width(), target.top() + 0.5 * target.height()
    lower = y_line if count == 3 else target.bottom()

    def places(low: float, line: float, high: float) -> list[float]:
        return [low - 9, low - 5, line - 8, line - 6, line + 6, line + 8, high + 5, high + 9]

    for x in places(target.left(), x_line, target.right()):
        for y in places(target.top(), y_line, target.bottom()):
            across = abs(x - x_line) <= reach and target.top() - reach <= y <= lower + reach
            down = abs(y - y_line) <= reach and target.left() - reach <= x <= target.right() + reach
            assert view._at(QPointF(x, y)) == (across and count >= 2, down and count >= 3), (x, y)


def test_a_split_line_is_grabbed_near_it() -> None:
    target = QRectF(10, 20, 200, 100)
    for way, x, y, amount in ((V, 60, 0, 0.25), (H, 0, 95, 0.75), (V, -5, 50, 0), (V, 500, 50, 1), (H, 50, 200, 1)):
        assert SplitLine(way).amount_at(QPointF(x, y), target) == amount
    for way, x, y, at in (
        (V, 117, 50, True),
        (V, 118, 50, False),
        (V, 103, 50, True),
        (V, 110, 127, True),
        (V, 110, 128, False),
        (H, 50, 77, True),
        (H, 50, 78, False),
        (H, 2, 70, False),
        (SplitMode.NONE, 110, 70, False),
    ):
        assert SplitLine(way, 0.5).is_at(QPointF(x, y), target) is at, (way, x, y)
    assert [SplitLine(V, 0.5).moved(step) for step in (0.01, -0.1, 0.6, -0.6)] == [0.51, 0.4, 1.0, 0.0]


def test_differences_have_the_color_of_their_channel_and_sign() -> None:
    mine, other = np.zeros((2, 1, 3, 2, 3), np.float32)
    mine[0, 0, 0, 1], other[0, 2, 1, 2], mine[0, 1, 1, 0] = 0.75, 0.5, 7.0
    other[0, 0, 0, 1] = 0.25
    found = levels(mine, other)
    assert [found[0, 0, 1], found[2, 1, 2], found[1, 1, 0], found[0, 0, 0]] == [49152, 16385, 65535, 32768]
    shown = absolute_pixels(found, 1.0)
    assert [hex(shown[at]) for at in ((0, 1), (1, 2), (1, 0), (0, 0))] == [
        "0xff800000",
        "0xff00007f",
        "0xff00ff00",
        "0xff000000",
    ]
    assert hex(absolute_pixels(found, 1.5)[0, 1]) == "0xffbf0000"
    assert hex(absolute_pixels(found[:1], 1.0)[0, 1]) == "0xff808080"
    assert mean_levels(found)[0, 1] == (49152 + 2 * 32768) // 3
    signed = signed_pixels(found[0], 1.0)
    assert (signed[0, 1], signed[0, 0]) == (palette("green / red")[192], palette("green / red")[128])
    assert signed_pixels(found[2], 4.0)[1, 2] == palette("green / red")[1]


def test_values_and_regions_of_a_compared_image() -> None:
    picture = np.arange(5 * 4 * 6, dtype=np.float32).reshape(1, 5, 4, 6)
    model = SimpleNamespace(pixels={"A": picture}.get)
    for key, place, values in (
        ("A", (5, 1), [11, 35, 59, 83]),
        ("A", (6, 1), ()),
        ("A", (5, 4), ()),
        ("A", None, ()),
        ("B", (0, 0), ()),
    ):
        assert values_at(model, key, place) == values
    clean = np.zeros((1, 1, 2 * CROP, 3 * CROP), np.float32)
    made = clean.copy()
    made[..., :CROP, CROP : 2 * CROP] = 0.1
    psnr = [region_psnr(clean, made, corner) for corner in ((CROP, 0), (0, CROP), (2 * CROP, 0))]
    assert psnr == [pytest.approx(20), np.inf, np.inf]


def test_pixels_of_tiles_maps_and_bars(qtbot: QtBot) -> None:
    grid, matrix, bars = ChannelGrid("g", "G"), MatrixView("m", "M"), FeatureView("f", "F")
    for view in (grid, matrix, bars):
        qtbot.addWidget(view)
        view.resize(700, 400)
    grid.show_data(np.zeros((3, 4, 8), np.float32))
    grid.set_order((2, 0, 1))
    for channel, x, y in ((2, 0, 0), (0, 5, 1), (1, 7, 3)):
        rect = grid.tile_rect(channel)
        place = rect.topLeft() + QPointF((x + 0.5) * rect.width() / 8, (y + 0.5) * rect.height() / 4)
        assert grid._pixel_at(place) == (channel, x, y)
        assert grid.channel_at(rect.topLeft() + QPointF(-2, 0)) is None
    assert grid._pixel_at(grid.tile_rect(0).bottomLeft() + QPointF(3, 5)) is None  # on the caption
    assert [grid.neighbour(c, step) for c, step in ((2, 1), (1, 1), (2, -1), (0, -1))] == [0, 2, 1, 2]
    matrix.show_values(np.zeros((5, 7), np.float32))
    area = matrix.area()
    for row, column in ((0, 0), (1, 3), (4, 6)):
        place = area.topLeft() + QPointF((column + 0.5) * area.width() / 7, (row + 0.5) * area.height() / 5)
        assert matrix.place_at(place) == (row, column)
    assert matrix.place_at(area.topLeft() - QPointF(1, 0)) is None
    assert matrix.place_at(area.bottomRight() + QPointF(0, 1)) is None
    for width, pairs in (
        (400, ((0, 0), (39.9, 0), (40, 1), (399, 9), (400, None))),
        (600, ((0, 0), (600 - LIST - 1, 9), (600 - LIST, None))),
    ):
        bars.resize(width, 200)
        bars.show_values(np.arange(10, dtype=np.float32))
        assert [bars.index_at(x) for x, _ in pairs] == [index for _, index in pairs]


def test_kernels_in_the_image_of_a_filter() -> None:
    filters = Filters(count=5, columns=3, height=2, width=4)
    for x, y, at in (
        (0, 0, (0, 0, 0)),
        (3, 1, (0, 3, 1)),
        (4, 0, None),
        (5, 0, (1, 0, 0)),
        (0, 2, None),
        (0, 3, (3, 0, 0)),
        (6, 4, (4, 1, 1)),
        (11, 4, None),
    ):
        assert filters.at(x, y) == at


def test_the_part_of_a_gradient_that_is_not_zero() -> None:
    gradient = np.zeros((1, 2, 40, 60), np.float32)
    whole = page_of(gradient, Kind.GRADIENT, cut=True)
    assert (whole.data.shape, whole.offset, whole.size) == ((2, 40, 60), (0, 0), (60, 40))
    gradient[0, 1, 20, 5] = 3
    page = page_of(gradient, Kind.GRADIENT, cut=True)
    assert (page.form, page.data.shape, page.offset, page.size) == (Form.CHANNELS, (2, 13, 12), (0, 14), (60, 40))
    assert page.data[1, 20 - 14, 5] == 3
    gradient[0, 0, 2:38, 59] = 1
    page = page_of(gradient, Kind.GRADIENT, cut=True)
    assert (page.data.shape, page.offset) == ((2, 38, 56), (4, 1))


# --- the canvas ----------------------------------------------------------------------------------------------------


def test_scrolling_at_the_edge_is_symmetric() -> None:
    for at, speed in (
        (-50, -22),
        (0, -22),
        (14, -11),
        (27, -1),
        (28, 0),
        (150, 0),
        (271, 0),
        (272, 1),
        (299, 22),
        (400, 22),
    ):
        assert _speed(at, 300) == speed
    assert all(_speed(299 - at, 300) == -_speed(at, 300) for at in range(300))


def test_the_grid_and_ports_that_a_drop_finds() -> None:
    for point, snapped in (((7, 9), (0, 16)), ((-9, -7), (-16, 0)), ((24.1, 39.9), (32, 32))):
        assert snap(QPointF(*point)) == QPointF(*snapped)

    def dot(name: str, *, refusal: str = "", misfit: str = "", links: tuple[int, ...] = ()) -> SimpleNamespace:
        return SimpleNamespace(name=name, refusal=refusal, misfit=misfit, is_input=True, links=links)

    refused, other, taken, free = dot("r", refusal="x"), dot("m", misfit="x"), dot("t", links=(1,)), dot("f")
    for dots, chosen in (
        ([refused, other, taken, free], free),
        ([refused, other, taken], taken),
        ([refused, other], other),
        ([refused], refused),
        ([], None),
    ):
        assert best_port(dots) is chosen
    taken.is_input = False  # an output feeds any number of inputs
    assert best_port([taken, free]) is taken


def test_rectangles_are_found_by_area() -> None:
    index: RectIndex[str] = RectIndex()
    index.put("a", 0, 0, 10, 20)
    index.put_all(["b", "c"], np.array([(30, 5, 40, 15), (-50, -60, -45, -20)], np.float64))
    for area, found in (
        ((10, 20, 12, 22), {"a"}),  # edges count
        ((11, 0, 29, 20), set()),
        ((0, 21, 100, 30), set()),
        ((5, 10, 35, 12), {"a", "b"}),
        ((-48, -30, -47, -25), {"c"}),
    ):
        assert set(index.within(*area)) == found
        assert index.count(*area) == len(found)
    assert index.extent() == (-50, -60, 90, 80)
    index.drop("a")
    index.drop("gone")
    assert index.extent() == (-50, -60, 90, 75)
    index.put_all(["b", "d"], np.array([(0, 0, 1, 1), (2, 2, 3, 4)], np.float64))
    assert set(index.within(0, 0, 5, 5)) == {"b", "d"}
    np.testing.assert_array_equal(index.rects(["d", "a"]), [(2, 2, 3, 4), (np.nan,) * 4])
    for each in "bcd":
        index.drop(each)
    assert index.extent() == (0, 0, 0, 0)


def test_texts_of_saved_views() -> None:
    for text, view in (
        ("-12,34,0.5000", SavedView(-12, 34, 0.5)),
        ("0,0,0.0190", SavedView(0, 0, 0.019)),
        ("4000000,-4000000,4.0000,a/:b", SavedView(4_000_000, -4_000_000, 4.0, ("a", ":b"))),
    ):
        assert SavedView.parse(text) == view
        assert str(view) == text
    for text in (
        "",
        "1,2",
        "4000001,0,1",
        "0,-4000001,1",
        "0,0,0.0189",
        "0,0,4.1",
        "0,0,nan",
        "a,0,1",
        "0,0,1,",
        "0,0,-1",
    ):
        assert SavedView.parse(text) is None, text


def test_grips_of_a_frame(qtbot: QtBot) -> None:
    frame = FrameItem(Frame("f", "Title", rect=(100, 50, 200, 120)))
    for zoom, x, y, grip in (
        (1, 100, 110, "l"),
        (1, 105, 110, "l"),
        (1, 107, 110, ""),
        (1, 300, 110, "r"),
        (1, 200, 50, "t"),
        (1, 200, 52, "t"),
        (1, 200, 54, "move"),
        (1, 200, 170, "b"),
        (1, 100, 50, "lt"),
        (1, 300, 170, "rb"),
        (1, 200, 110, ""),
        (1, 93, 110, ""),
        (0.5, 311, 110, "r"),
        (0.5, 313, 110, ""),
        (0.4, 200, 45, "move"),
        (1, 200, 43, ""),
    ):
        assert frame.grip(QPointF(x, y), zoom) == grip, (zoom, x, y)


def test_labels_are_in_the_middle_of_the_longest_piece() -> None:
    set_style(CURVED)
    start, end = QPointF(0, 0), QPointF(100, 40)
    assert label_place(start, end, None, []) == QPointF(50, 20)
    assert label_place(start, end, 90.0, []) == QPointF(50, 90)
    assert label_place(start, QPointF(100, 180), None, [QPointF(10, 0), QPointF(10, 200)]) == QPointF(10, 100)


# --- texts and budgets -----------------------------------------------------------------------------------------------


def test_places_in_sources_and_modelled_times() -> None:
    names = ("a.png", "b.png")
    for track, text in (
        (Track(None, "camera"), "no image taken yet"),
        (Track(None, "camera", position=3), "image 3"),
        (Track(None, "video"), "counting the frames …"),
        (Track(None, "folder", frames=2, names=names, position=1), "2 / 2  b.png"),
        (Track(None, "video", frames=200, fps=1.0, position=125), "frame 126 / 200  2:05.00"),
        (Track(None, "video", frames=200, fps=1.0, position=110), "frame 111 / 200  1:50.00"),
        (Track(None, "video", frames=200, fps=2.0, position=119), "frame 120 / 200  0:59.50"),
        (Track(None, "video", frames=3, fps=25.0, times=(0.0, 0.5, 61.25), position=2), "frame 3 / 3  1:01.25"),
    ):
        assert _place(track) == text
    times = {12.34: "12", 9.94: "9.9", 9.96: "10", 0.123: "0.12", 0.096: "0.096", 0.094: "0.09", 0.0: "0.00"}
    assert {value: _two(value) for value in times} == times


def test_the_budget_of_a_run_while_values_move(qtbot: QtBot) -> None:
    refined: list[bool] = []
    parent = QObject()
    made = CoarseToFine(parent, lambda: refined.append(True))
    for requests, budget in (
        ([(True, False)], BUDGET),
        ([(False, False)], 0),
        ([(True, False), (True, True)], BUDGET),
        ([(False, False), (True, True)], 0),  # what waits needs the full run
        ([(True, False), (False, True)], 0),
    ):
        for request in requests:
            made.request(*request)
        assert (made.send(), made.send()) == (budget, 0)
    made.refine()
    assert (made.refining, made.send()) == (True, 0)
    made.request(True, True)
    assert (made.refining, made.send()) == (False, BUDGET)
    for coarse, more, follows in ((False, False, False), (True, True, False), (True, False, True)):
        made.arrive(coarse, more)
        assert made._timer.isActive() is follows
    made.drop()
    assert not made._timer.isActive()
    assert not refined
