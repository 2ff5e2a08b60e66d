"""The boxes that links go around."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")

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
