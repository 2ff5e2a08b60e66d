"""Edits of comment frames."""

from __future__ import annotations

import pytest
from test_commands import check_reversible

from designer.graph import frames
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer


@pytest.fixture
def graph() -> Graph:
    return Graph(
        [Layer("a", "tiny", (16, 16)), Layer("b", "tiny", (320, 16))],
        frames=[Frame("outer", "Outer", rect=(0, 0, 640, 320)), Frame("inner", "Inner", rect=(0, 0, 160, 96))],
    )


def members(frame: str) -> tuple[list[str], list[str]]:
    return (["a", "b"], ["inner"]) if frame == "outer" else (["a"], [])


def test_a_frame_is_added_under_a_free_id(graph: Graph) -> None:
    check_reversible(graph, frames.add_frame(graph, (0, 0, 64, 64)))
    assert graph.frames["frame_0"].rect == (0, 0, 64, 64)
    graph.apply(frames.add_frame(graph, (0, 0, 64, 64)))
    assert "frame_1" in graph.frames


def test_what_a_collapsed_frame_stands_for_moves_with_it(graph: Graph) -> None:
    graph.apply(frames.collapse(graph, [], ["outer"], members))
    assert graph["a"].folded == graph["b"].folded == graph.frames["inner"].folded == "outer"
    check_reversible(graph, frames.move_frame(graph, "outer", (32, 16, 640, 320), {"a": (48, 32), "b": (352, 32)}))
    assert graph.frames["inner"].rect == (32, 16, 160, 96)
    assert graph["a"].position == (48, 32)


def test_collapsing_again_expands(graph: Graph) -> None:
    before = graph.copy()
    check_reversible(graph, frames.collapse(graph, ["a"], ["outer"], members))
    assert graph["a"].collapsed
    graph.apply(frames.collapse(graph, ["a"], ["outer"], members))
    assert graph == before


def test_frames_collapse_together_with_those_inside_of_them(graph: Graph) -> None:
    check_reversible(graph, frames.collapse(graph, [], ["inner", "outer"], members))
    inner, outer = graph.frames["inner"], graph.frames["outer"]
    assert (inner.collapsed, inner.folded) == (True, "outer")
    assert (outer.collapsed, outer.folded) == (True, "")
    assert [layer.folded for layer in graph] == ["outer", "outer"]


def test_removing_a_frame_shows_the_layers_in_it(graph: Graph) -> None:
    graph.apply(frames.collapse(graph, [], ["inner"], members))
    edit = frames.remove_frames(graph, ["inner", "outer"])
    assert edit.title == "Delete 2 frames"
    check_reversible(graph, edit)
    assert not graph.frames
    assert not graph["a"].folded
