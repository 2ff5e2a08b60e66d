"""The boxes that links go around."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from app.ui.canvas.obstacles import Obstacles, Rect


def test_a_moved_box_is_found_where_it_is_now() -> None:
    obstacles = Obstacles()
    before, now, other = Rect(0, 0, 10, 10), Rect(500, 500, 510, 510), Rect(0, 5, 10, 15)
    assert obstacles.put("a", before) is None
    assert obstacles.put("b", other) is None
    assert obstacles.put("a", now) == before
    assert obstacles.put("a", now) == now
    assert obstacles.within(Rect(-5, -5, 20, 20)) == [other]
    assert obstacles.within(Rect(490, 490, 600, 600)) == [now]
    assert obstacles.within(Rect(490, 490, 600, 600), "a") == []
    assert obstacles.within(Rect(510, 500, 600, 600)) == []  # they touch
    for grown in (
        Rect(500, 500, 550, 510),
        Rect(500, 500, 550, 560),
        Rect(480, 500, 550, 560),
        Rect(480, 470, 500, 560),
    ):
        assert obstacles.put("a", grown) == now
        now = grown
        for x, y in ((now.left, now.top), (now.right - 2, now.top), (now.left, now.bottom - 2)):
            assert obstacles.within(Rect(x, y, x + 2, y + 2)) == [now]
        assert obstacles.within(Rect(now.right, now.top, now.right + 9, now.bottom)) == []
        assert obstacles.within(Rect(now.left, now.bottom, now.right, now.bottom + 9)) == []
    assert obstacles.drop("a") == now
    assert obstacles.drop("a") is None
    assert obstacles.within(Rect(490, 490, 600, 600)) == []


def test_a_lane_passes_what_is_in_between_but_not_the_ends() -> None:
    obstacles = Obstacles()
    start, end = (0.0, 0.0), (600.0, 0.0)
    obstacles.put("start", Rect(-100, -50, 0, 50))
    obstacles.put("end", Rect(600, -50, 700, 50))
    assert obstacles.lane(start, end, "start", "end") is None
    obstacles.put("between", Rect(250, -50, 350, 40))
    lane = obstacles.lane(start, end, "start", "end")
    assert lane is not None
    assert lane < -50 or lane > 40
    assert obstacles.lane(start, end, "start", "end", "between") is None
    obstacles.put("between", Rect(250, 450, 350, 540))
    assert obstacles.lane(start, end, "start", "end") is None


BETWEEN = {  # a box between x = 250 and 350, the other end of the link, and the lane that leads around the box
    "above, which is nearer": ((-50, 40), 0, -64),
    "above, which is not much further": ((-80, 40), 0, -94),
    "below, which is much nearer": ((-80, 30), 0, 40),
    "below the lower end": ((-100, 110), 100, 120),
    "above the upper end": ((-60, 300), 100, -74),
    "below an end that is higher": ((-300, 20), -100, 30),
    "at the height of the start": ((60, 140), 200, 0),
    "at the height of the end": ((-20, 195), 200, 200),
    "nowhere within reach": ((-970, 970), 0, None),
    "just within reach": ((-940, 970), 0, -954),
    "nowhere, because nothing is in between": ((40, 90), 0, None),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_a_link_goes_around_a_box_on_the_cheaper_side(name: str) -> None:
    """Each unit of height costs one for each end, and two more below both ends, where the links of deeper layers are."""
    (top, bottom), end, lane = BETWEEN[name]
    obstacles = Obstacles()
    obstacles.put("between", Rect(250, top, 350, bottom))
    assert obstacles.lane((0, 0), (600, end)) == lane


@pytest.mark.parametrize("end", [300, -300])
def test_a_direct_link_that_misses_what_is_in_between_has_no_lane(end: int) -> None:
    """Boxes in two corners of the rectangle around it."""
    obstacles = Obstacles()
    low, high = sorted((0, end))
    corners = (Rect(20, high - 80, 160, high), Rect(440, low, 580, low + 80))
    for corner in corners if end > 0 else (Rect(20, low, 160, low + 80), Rect(440, high - 80, 580, high)):
        obstacles.put(corner, corner)
    assert obstacles.lane((0, 0), (600, end)) is None
    obstacles.put("middle", Rect(290, end / 2 - 10, 310, end / 2 + 10))
    assert obstacles.lane((0, 0), (600, end)) is not None


def test_a_lane_avoids_the_boxes_beside_it_and_short_links_have_none() -> None:
    obstacles = Obstacles()
    obstacles.put("between", Rect(250, -50, 350, 40))
    obstacles.put("above", Rect(250, -90, 350, -56))
    assert obstacles.lane((0, 0), (600, 0)) == 50
    obstacles.put("below", Rect(250, 44, 350, 300))
    assert obstacles.lane((0, 0), (600, 0)) == -104
    assert obstacles.lane((200, 0), (399, 0)) is None
    assert obstacles.lane((200, 0), (400, 0)) == -104


def test_links_that_pass_a_crowd_are_direct() -> None:
    obstacles = Obstacles()
    for number in range(400):
        obstacles.put(number, Rect(250 + number / 10, -50, 251 + number / 10, 40))
    assert obstacles.lane((0, 0), (600, 0)) == -64
    obstacles.put("one more", Rect(400, -50, 401, 40))
    assert obstacles.lane((0, 0), (600, 0)) is None


@pytest.mark.parametrize(("lower", "end"), [(lower, end) for lower in (False, True) for end in (0, 300, -300)])
def test_a_direct_link_is_free_if_it_misses_a_box_by_two_units(lower: bool, end: int) -> None:
    """A box above or below the middle of the link, at which it is `end` / 2 high; it is steep there only between its ends."""
    middle = end / 2
    for gap in (-6.0, -3.0, -1.0, 0.0, 1.0, 1.9, 2.1, 3.0, 6.0):
        obstacles = Obstacles()
        edge = middle + gap if lower else middle - gap
        box = Rect(299.9, edge, 300.1, edge + 400) if lower else Rect(299.9, edge - 400, 300.1, edge)
        obstacles.put("box", box)
        assert (obstacles.lane((0, 0), (600, end)) is None) is (gap > 2), gap
