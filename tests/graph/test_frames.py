"""Edits of comment frames."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_commands import check_reversible

from designer.graph import frames
from designer.graph.graph import Graph
from designer.graph.model import FOLDED, Frame, Layer


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


@pytest.mark.parametrize("order", [["inner", "outer"], ["outer", "inner"]])
def test_frames_collapse_together_with_those_inside_of_them(graph: Graph, order: list[str]) -> None:
    before = graph.copy()
    check_reversible(graph, frames.collapse(graph, [], order, members))
    inner, outer = graph.frames["inner"], graph.frames["outer"]
    assert (inner.collapsed, inner.folded) == (True, "outer")
    assert (outer.collapsed, outer.folded) == (True, "")
    assert [layer.folded for layer in graph] == ["inner", "outer"]
    graph.apply(frames.collapse(graph, [], order, members))
    assert graph == before


def test_frames_that_collapse_together_are_as_if_they_had_collapsed_one_after_the_other(graph: Graph) -> None:
    graph.apply(frames.add_frame(graph, (8, 8, 64, 64), "Deep"))
    open_ = {"outer": (["a", "b"], ["inner", "frame_0"]), "inner": (["a"], ["frame_0"]), "frame_0": (["a"], [])}
    together = graph.copy()
    together.apply(frames.collapse(together, [], ["outer", "frame_0", "inner"], open_.__getitem__))
    shown = {"outer": (["b"], ["inner"]), "inner": ([], ["frame_0"]), "frame_0": (["a"], [])}
    for key in ("frame_0", "inner", "outer"):
        graph.apply(frames.collapse(graph, [], [key], shown.__getitem__))
    assert together == graph


def test_removing_a_frame_shows_the_layers_in_it(graph: Graph) -> None:
    graph.apply(frames.collapse(graph, [], ["inner"], members))
    edit = frames.remove_frames(graph, ["inner", "outer"])
    assert edit.title == "Delete 2 frames"
    check_reversible(graph, edit)
    assert not graph.frames
    assert not graph["a"].folded


def test_removing_a_frame_releases_the_frames_in_it(graph: Graph) -> None:
    """Their ids are used again: another frame of the same id must not hide them."""
    graph.apply(frames.collapse(graph, [], ["outer"], members))
    edit = frames.remove_frames(graph, ["outer"])
    assert edit.title == "Delete frame"
    check_reversible(graph, edit)
    assert graph.frames == {"inner": Frame("inner", "Inner", rect=(0, 0, 160, 96))}


def test_removing_one_frame_leaves_layers_in_others_folded(graph: Graph) -> None:
    graph.apply(frames.add_frame(graph, (300, 0, 200, 100), "Right"))
    inside = {"inner": (["a"], []), "frame_0": (["b"], [])}
    graph.apply(frames.collapse(graph, [], ["inner", "frame_0"], inside.__getitem__))
    edit = frames.remove_frames(graph, ["inner"])
    assert edit.title == "Delete frame"
    assert edit.layers.keys() == {"a"}
    graph.apply(edit)
    assert (graph["a"].folded, graph["b"].folded) == ("", "frame_0")


@pytest.mark.parametrize(
    ("position", "frame"),
    [
        ((0, 0), "inner"),
        ((159, 95), "inner"),
        ((160, 95), "outer"),
        ((159, 96), "outer"),
        ((639, 319), "outer"),
        ((640, 0), None),
        ((0, 320), None),
        ((-1, 0), None),
        ((0, -1), None),
    ],
)
def test_the_frame_of_a_layer_is_the_smallest_around_its_corner(
    graph: Graph, position: tuple[int, int], frame: str | None
) -> None:
    found = frames.frame_of(graph, Layer("x", "tiny", position))
    assert (found.id if found is not None else None) == frame
    folded = Layer("x", "tiny", position, attributes={FOLDED: "outer"})
    assert frames.frame_of(graph, folded) is graph.frames["outer"]


def test_writing_into_a_frame(graph: Graph) -> None:
    check_reversible(graph, frames.write_frame(graph, "inner", " New title \n\n first\nsecond \n", least=120))
    found = graph.frames["inner"]
    assert (found.title, found.text, found.rect) == ("New title", "first\nsecond", (0, 0, 160, 120))
    graph.apply(frames.write_frame(graph, "inner", "Only", least=50))
    assert (graph.frames["inner"].text, graph.frames["inner"].rect) == ("", (0, 0, 160, 120))


def test_an_open_frame_moves_alone_and_a_collapsed_one_with_all_levels_inside(graph: Graph) -> None:
    edit = frames.move_frame(graph, "outer", (5, 9, 640, 320), {})
    assert edit.frames.keys() == {"outer"}
    graph.apply(frames.add_frame(graph, (10, 10, 50, 40), "Deep"))
    held = {"outer": (["b"], ["inner"]), "inner": (["a"], ["frame_0"])}
    graph.apply(frames.collapse(graph, [], ["inner"], held.__getitem__))
    graph.apply(frames.collapse(graph, [], ["outer"], held.__getitem__))
    check_reversible(graph, frames.move_frame(graph, "outer", (5, -9, 640, 320), {"b": (325, 7)}))
    rects = {key: frame.rect for key, frame in graph.frames.items()}
    assert rects == {"outer": (5, -9, 640, 320), "inner": (5, -9, 160, 96), "frame_0": (15, 1, 50, 40)}


def test_titles_of_collapsing(graph: Graph) -> None:
    assert frames.collapse(graph, [], ["inner"], members).title == "Collapse frame"
    assert frames.collapse(graph, [], ["inner", "outer"], members).title == "Collapse 2 frames"
    assert frames.collapse(graph, ["a"], ["inner"], members).title == "Collapse a"
    graph.apply(frames.collapse(graph, [], ["inner"], members))
    assert frames.collapse(graph, [], ["inner"], members).title == "Expand frame"
    mixed = frames.collapse(graph, ["a"], ["inner"], members)  # one of two is collapsed: both are
    graph.apply(mixed)
    assert graph["a"].collapsed
    assert graph.frames["inner"].collapsed
    assert graph["a"].folded == "inner"


def test_only_collapsed_frames_hide_a_layer(graph: Graph) -> None:
    held = {"outer": (["a", "b"], ["inner"]), "inner": (["a"], [])}
    graph.apply(frames.collapse(graph, [], ["inner"], held.__getitem__))
    held["outer"] = (["b"], ["inner"])
    assert frames.hiding(graph, graph["a"]) == ["inner"]
    assert frames.hiding(graph, graph["b"]) == []
    graph.apply(frames.collapse(graph, [], ["outer"], held.__getitem__))
    assert frames.hiding(graph, graph["a"]) == ["inner", "outer"]
    assert frames.hiding(graph, graph["b"]) == ["outer"]
    # a file can name frames that are expanded, are missing, or contain each other
    graph.frames["outer"] = replace(graph.frames["outer"], collapsed=False)
    assert frames.hiding(graph, graph["a"]) == ["inner"]
    assert frames.hiding(graph, graph["b"]) == []
    assert frames.hiding(graph, Layer("x", "tiny", attributes={FOLDED: "gone"})) == []
    graph.frames["outer"] = replace(graph.frames["outer"], collapsed=True, folded="inner")
    assert frames.hiding(graph, graph["a"]) == ["inner", "outer"]


def test_what_a_collapsed_frame_in_an_open_one_hides_moves_with_both(graph: Graph) -> None:
    graph.apply(frames.add_frame(graph, (16, 16, 64, 32), "Deep"))
    graph.apply(frames.collapse(graph, [], ["inner"], lambda key: (["a"], ["frame_0"])))
    check_reversible(graph, frames.move_frame(graph, "outer", (32, 48, 640, 320), {"b": (352, 64)}, within=["inner"]))
    rects = {key: frame.rect for key, frame in graph.frames.items()}
    assert rects == {"outer": (32, 48, 640, 320), "inner": (32, 48, 160, 96), "frame_0": (48, 64, 64, 32)}
    # frames that only lie inside move if they are named
    graph.apply(frames.move_frame(graph, "outer", (0, 0, 640, 320), {}))
    assert graph.frames["inner"].rect == (32, 48, 160, 96)
