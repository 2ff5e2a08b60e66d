"""The picture view: zoom at the cursor, pan, fit, one to one, the split line, empty and dimmed."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QMainWindow
from pytestqt.qtbot import QtBot
from window_kit import wheel

from app.ui.compare.sectors import SectorView
from app.ui.widgets import theme
from app.ui.widgets.image_view import ImageView, SplitMode, Viewport
from app.ui.widgets.overlays import BoxOverlay, CrossOverlay
from app.ui.widgets.render import picture_pixels, to_image

pytestmark = pytest.mark.gui


@pytest.fixture
def view(qtbot: QtBot) -> ImageView:
    made = ImageView("test.picture", "Picture", "nothing yet")
    qtbot.addWidget(made)
    made.resize(400, 300)
    made.show_image(to_image(picture_pixels(np.random.default_rng(0).random((3, 100, 200), np.float32))))
    made.show()
    return made


def test_a_picture_is_fitted_and_stays_fitted_when_resized(view: ImageView) -> None:
    assert view.zoom == pytest.approx(2.0)
    view.resize(200, 300)
    assert view.zoom == pytest.approx(1.0)


def test_the_wheel_zooms_at_the_cursor(view: ImageView) -> None:
    place = view.place_of(150, 20)
    pixel = view.pixel_at(place)
    wheel(view, 4, place)
    assert view.zoom == pytest.approx(2 * 1.25**4)
    after = view.pixel_at(place)
    assert pixel is not None
    assert after is not None
    assert abs(after[0] - pixel[0]) <= 1
    assert abs(after[1] - pixel[1]) <= 1
    for _ in range(40):
        wheel(view, 3, place)
    assert view.zoom == 64.0


def test_dragging_pans_and_a_click_is_no_drag(view: ImageView, qtbot: QtBot) -> None:
    view.one_to_one()
    before = view.place_of(0, 0)
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=QPoint(200, 150))
    qtbot.mouseMove(view, QPoint(230, 140))
    qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=QPoint(230, 140))
    moved = view.place_of(0, 0) - before
    assert (round(moved.x()), round(moved.y())) == (30, -10)
    with qtbot.waitSignal(view.clicked):
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(200, 150))


@pytest.mark.parametrize(("height", "width"), [(100, 300), (50, 60)])
def test_an_image_of_another_size_is_fitted_and_centered_wherever_the_one_before_was_moved_to(
    view: ImageView, qtbot: QtBot, height: int, width: int
) -> None:
    view.one_to_one()
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=QPoint(200, 150))
    qtbot.mouseMove(view, QPoint(230, 140))
    qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=QPoint(230, 140))
    view.show_image(to_image(picture_pixels(np.zeros((3, height, width), np.float32))))
    first, last = view.place_of(0, 0), view.place_of(width, height)
    assert view.zoom == pytest.approx(min(400 / width, 300 / height))
    assert ((first + last) / 2).toTuple() == pytest.approx((200, 150), abs=1)


@pytest.mark.parametrize("way", ["left button", "middle button", "arrow keys"])
def test_a_fitted_image_is_moved_at_the_size_in_which_it_is_shown(view: ImageView, qtbot: QtBot, way: str) -> None:
    """Whatever the zoom was before it was fitted; a view that follows shows the same."""
    other = ImageView("test.other", "Other", "")
    qtbot.addWidget(other)
    other.resize(view.size())
    other.show_image(view.image)
    view.view_changed.connect(other.follow)
    for zoom in (None, 1.0, 5.0):
        if zoom is not None:
            view.set_zoom(zoom)
        view.fit()
        corners = [view.place_of(*corner) for corner in ((0, 0), (200, 100))]
        if way == "arrow keys":
            step = QPointF(0, -0.1 * view.height())
            qtbot.keyClick(view, Qt.Key.Key_Down)
        else:
            button = Qt.MouseButton.LeftButton if way == "left button" else Qt.MouseButton.MiddleButton
            step = QPointF(30, -10)
            qtbot.mousePress(view, button, pos=QPoint(200, 150))
            for share in (0.5, 1.0):
                qtbot.mouseMove(view, QPoint(200, 150) + (step * share).toPoint())
            qtbot.mouseRelease(view, button, pos=QPoint(200, 150) + step.toPoint())
        assert view.zoom == pytest.approx(2.0)
        assert [view.place_of(*corner) - step for corner in ((0, 0), (200, 100))] == corners
        assert not view.view.fitted
        assert other.view == view.view


@pytest.mark.parametrize("split", [SplitMode.NONE, SplitMode.VERTICAL])
def test_an_image_that_goes_away_while_it_is_dragged(view: ImageView, qtbot: QtBot, split: SplitMode) -> None:
    view.set_split(split, 0.5)
    moved: list[float] = []
    view.split_moved.connect(moved.append)
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=QPoint(200, 150))
    view.show_image(None)
    qtbot.mouseMove(view, QPoint(230, 140))
    qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=QPoint(230, 140))
    assert moved == []


def test_split_images_that_go_away_while_their_line_is_dragged(qtbot: QtBot) -> None:
    view = SectorView("test.split", "Split", "nothing yet")
    qtbot.addWidget(view)
    view.resize(400, 300)
    view.show_pictures([np.zeros((100, 200), np.uint32)] * 2, ["a", "b"])
    view.show()
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=QPoint(200, 150))
    view.show_pictures([], [])
    qtbot.mouseMove(view, QPoint(230, 140))
    qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=QPoint(230, 140))
    assert view.amounts == (0.5, 0.5)


def test_pixels_have_hard_edges_and_exact_places(view: ImageView) -> None:
    pixels = np.zeros((3, 2, 2), np.float32)
    pixels[:, 0, 1] = 1
    view.show_image(to_image(picture_pixels(pixels)))
    picture = view.grab().toImage()
    ratio = view.devicePixelRatioF()
    inside = view.place_of(1.02, 0.98) * ratio
    outside = view.place_of(0.98, 0.98) * ratio
    assert picture.pixelColor(inside.toPoint()).lightness() == 255
    assert picture.pixelColor(outside.toPoint()).lightness() == 0


def test_keys(view: ImageView, qtbot: QtBot) -> None:
    view.activateWindow()
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    assert view.zoom == 1.0
    qtbot.keyClick(view, Qt.Key.Key_Plus)
    assert view.zoom == 1.25
    qtbot.keyClick(view, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    assert view.zoom == pytest.approx(2.0)


@pytest.mark.parametrize("shown", [True, False], ids=["image", "empty"])
def test_every_other_key_is_left_to_what_is_around_the_view(qtbot: QtBot, view: ImageView, shown: bool) -> None:
    """Pressed, and before the shortcuts: the same keys, also those of the keypad."""
    if not shown:
        view.show_image(None)
    none, shift, control, alt = (
        getattr(Qt.KeyboardModifier, f"{n}Modifier") for n in ("No", "Shift", "Control", "Alt")
    )
    keypad = Qt.KeyboardModifier.KeypadModifier
    arrows = [Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down]
    signs = [Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus]
    numbers = [Qt.Key.Key_0, Qt.Key.Key_1]
    others = [Qt.Key.Key_Escape, Qt.Key.Key_PageUp, Qt.Key.Key_Space, Qt.Key.Key_2, Qt.Key.Key_Return, Qt.Key.Key_F]
    own = {(key, held) for key in (*arrows, *signs) for held in (none, shift)}
    own |= {(key, held) for key in numbers for held in (control, control | shift)}
    for key in (*arrows, *signs, *numbers, *others):
        for held in (none, shift, control, alt, control | shift, shift | alt):
            for kind in (QEvent.Type.KeyPress, QEvent.Type.ShortcutOverride):
                for pad in (none, keypad):
                    event = QKeyEvent(kind, key, held | pad)
                    event.setAccepted(kind is QEvent.Type.KeyPress)  # as the system sends it
                    view.event(event)
                    assert event.isAccepted() is ((key, held) in own), (kind, key, held)


def test_its_keys_go_before_the_window_s_shortcuts(qtbot: QtBot, view: ImageView) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    reported: list[bool] = []
    action = window.addAction("Another", QKeySequence("Ctrl+1"), lambda: reported.append(True))
    assert action.shortcut() == QKeySequence("Ctrl+1")
    window.setCentralWidget(view)
    window.resize(400, 300)
    with qtbot.waitExposed(window):
        window.show()
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    assert view.zoom == 1.0
    assert not reported
    window.takeCentralWidget()


def test_the_split_line_is_taken_hold_of_only_where_it_is(view: ImageView, qtbot: QtBot) -> None:
    view.set_split(SplitMode.HORIZONTAL, 0.5)
    on = view.place_of(30, 50).toPoint()
    moved: list[float] = []
    view.split_moved.connect(moved.append)
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=on)
    qtbot.mouseMove(view, view.place_of(30, 75).toPoint())
    with qtbot.waitSignal(view.split_released):
        qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=on)
    assert moved == [pytest.approx(0.75, abs=0.01)]
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=view.place_of(30, 20).toPoint())
    qtbot.mouseMove(view, view.place_of(30, 40).toPoint())
    qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=view.place_of(30, 40).toPoint())
    assert len(moved) == 1


@pytest.mark.parametrize(
    ("way", "start", "end", "expected"),
    [
        (SplitMode.VERTICAL, (100, 50), (100, 50), ["released"]),
        (SplitMode.VERTICAL, (100, 50), (140, 50), ["moved", "released"]),
        (SplitMode.VERTICAL, (30, 50), (30, 50), ["clicked"]),
        (SplitMode.VERTICAL, (30, 50), (70, 50), ["view"]),
        (SplitMode.HORIZONTAL, (30, 50), (30, 50), ["released"]),
        (SplitMode.HORIZONTAL, (30, 50), (30, 20), ["moved", "released"]),
        (SplitMode.NONE, (100, 50), (100, 50), ["clicked"]),
        (SplitMode.NONE, (100, 50), (60, 50), ["view"]),
    ],
)
def test_what_a_gesture_on_an_image_is(
    view: ImageView, qtbot: QtBot, way: SplitMode, start: tuple[int, int], end: tuple[int, int], expected: list[str]
) -> None:
    """One on the line is for it alone, also where it is not moved, and what comes after it is a gesture of its own."""
    view.set_split(way, 0.5)
    said: list[str] = []
    for name, signal in (
        ("moved", view.split_moved),
        ("released", view.split_released),
        ("clicked", view.clicked),
        ("view", view.view_changed),
    ):
        signal.connect(lambda *_, name=name: said.append(name))
    first, last = view.place_of(*start).toPoint(), view.place_of(*end).toPoint()
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=first)
    if first != last:
        qtbot.mouseMove(view, last)
    qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=last)
    assert said == expected
    said.clear()
    qtbot.mouseMove(view, QPoint(40, 80))
    assert said == []
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(40, 80))
    assert said == ["clicked"]


def test_keys_move_the_split_line_and_else_the_picture(view: ImageView, qtbot: QtBot) -> None:
    moved: list[float] = []

    def take(amount: float) -> None:
        moved.append(round(amount, 3))
        view.set_split(view.split, amount)

    view.split_moved.connect(take)
    view.set_split(SplitMode.VERTICAL, 0.5)
    qtbot.keyClick(view, Qt.Key.Key_Right)
    qtbot.keyClick(view, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    assert moved == [0.51, 0.41]
    view.one_to_one()
    before = view.place_of(0, 0)
    qtbot.keyClick(view, Qt.Key.Key_Down)  # across the line: the picture moves
    assert len(moved) == 2
    assert view.place_of(0, 0).y() < before.y()


def test_the_split_line_can_be_seen_from_the_cursor(view: ImageView, qtbot: QtBot) -> None:
    view.set_split(SplitMode.VERTICAL, 0.25)
    qtbot.mouseMove(view, view.place_of(50, 40).toPoint())
    assert view.cursor().shape() is Qt.CursorShape.SplitHCursor
    qtbot.mouseMove(view, view.place_of(90, 40).toPoint())
    assert view.cursor().shape() is Qt.CursorShape.CrossCursor


def test_marks_keep_their_place_on_the_picture(view: ImageView) -> None:
    view.show_image(to_image(picture_pixels(np.zeros((3, 100, 200), np.float32))))
    view.set_overlays((BoxOverlay(20, 10, 60, 50, "worst"), CrossOverlay(150, 50)))
    for zoom in (None, 3.0):
        if zoom is not None:
            view.set_zoom(zoom, view.place_of(20, 10))
        picture, ratio = view.grab().toImage(), view.devicePixelRatioF()
        corner = (view.place_of(20, 30) * ratio).toPoint()
        assert picture.pixelColor(corner) == theme.color("accent")
    view.fit()
    middle = view.place_of(150.5, 50.5)
    picture = view.grab().toImage()
    assert picture.pixelColor((middle * ratio).toPoint()) == Qt.GlobalColor.black  # the pixel itself stays free
    assert picture.pixelColor(((middle + QPointF(6, 0)) * ratio).toPoint()) != Qt.GlobalColor.black
    view.set_overlays(())
    assert view.grab().toImage().pixelColor(((middle + QPointF(6, 0)) * ratio).toPoint()) == Qt.GlobalColor.black


def test_views_follow_each_other(view: ImageView, qtbot: QtBot) -> None:
    other = ImageView("test.other", "Other", "")
    qtbot.addWidget(other)
    other.resize(200, 200)
    other.show_image(view.image)
    view.view_changed.connect(other.follow)
    wheel(view, 4, view.place_of(150, 20))
    assert other.view == view.view
    assert other.view != Viewport()
    view.fit()
    assert other.view.fitted


def test_dimmed_is_darker_and_a_note_stands_on_it(view: ImageView) -> None:
    view.show_image(to_image(picture_pixels(np.ones((3, 40, 40), np.float32))))
    place = view.rect().center()
    bright = view.grab().toImage().pixelColor(place * view.devicePixelRatioF()).lightness()
    view.set_dimmed(True)
    view.set_note("random weights (seed 0)")
    assert view.grab().toImage().pixelColor(place * view.devicePixelRatioF()).lightness() < bright
    view.show_image(None)
    assert view.pixel_at(QPointF(10, 10)) is None
    assert not view.grab().isNull()


def test_an_output_layer_may_show_a_part() -> None:
    from app.ui.analysis.output_view import shown_part
    from designer.graph.types import Size3D
    from designer.operators.registry import default_registry

    cls = default_registry().get("output")
    assert cls is not None
    array = np.arange(4 * 6 * 8, dtype=np.float32).reshape(1, 4, 6, 8)
    whole, start = shown_part(array, cls())
    assert whole.shape == array.shape
    assert start == (0, 0)
    part, start = shown_part(array, cls(width=3, height=2, channels=1, offset=Size3D(4, 1, 2)))
    assert np.array_equal(part, array[:, 2:3, 1:3, 4:7])
    assert start == (4, 1)
    assert shown_part(array, cls(offset=Size3D(100, 100, 100)))[0].shape == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("size", "zoom", "smooth"), [(200, None, True), (10, None, False), (10, 0.5, True), (200, 3.0, False)]
)
def test_a_magnified_image_shows_its_pixels_and_a_reduced_one_their_mean(
    size: int, zoom: float | None, smooth: bool, qtbot: QtBot
) -> None:
    """A chessboard of single pixels, fitted or at a zoom."""
    view = ImageView("test.picture", "Picture", "nothing yet")
    qtbot.addWidget(view)
    view.resize(100, 100)
    board = np.indices((size, size)).sum(0) % 2
    view.show_image(to_image(picture_pixels(np.repeat(board[None].astype(np.float32), 3, 0))))
    if zoom is not None:
        view.set_zoom(zoom)
    area = view._target().toRect() & view.rect()
    image = view.grab(area.adjusted(2, 2, -2, -2)).toImage()
    grays = {image.pixelColor(x, y).red() for x in range(image.width()) for y in range(image.height())}
    assert (grays == {0, 255}) is not smooth
    assert any(64 < gray < 192 for gray in grays) is smooth


def test_an_image_at_its_own_size_or_larger_begins_at_a_whole_pixel_and_a_reduced_one_where_it_is(
    qtbot: QtBot,
) -> None:
    view = ImageView("odd", "Odd", "nothing")
    qtbot.addWidget(view)
    view.resize(101, 75)
    view.show_image(to_image(picture_pixels(np.zeros((3, 40, 20), np.float32))))
    for zoom in (0.5, 0.9, 1.0, 1.5, 3.0):
        view.set_zoom(zoom)
        scale = zoom / view.devicePixelRatioF()
        place = view.view
        exact = QPointF(view.width() / 2 - place.x * 20 * scale, view.height() / 2 - place.y * 40 * scale)
        found = view._target()
        assert (found.width(), found.height()) == (20 * scale, 40 * scale)
        if zoom >= 1:
            assert found.left() == round(found.left()) == pytest.approx(exact.x(), abs=0.501), zoom
            assert found.top() == round(found.top()) == pytest.approx(exact.y(), abs=0.501), zoom
        else:
            assert found.topLeft() == exact, zoom
            assert exact != QPointF(round(exact.x()), round(exact.y()))
