"""Find Next and Next Problem from wherever one is, and what a search matches."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit

from app.ui.canvas.canvas import Canvas
from app.ui.canvas.finder import Finder, matches
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source

CONV = {"features": "8", "kernel": "3x3", "padding": "same"}


def network() -> Graph:
    """From left to right: image, First, second, third, and three layers that read nothing, one of them with a bad kernel."""
    return Graph(
        [
            Layer("third", "convolution", (960, 0), (Source("second"),), {**CONV, "kernel": "5x5"}),
            Layer("image", "input", (0, 0), params={"dims": "64x48x3"}),
            Layer("First", "convolution", (320, 0), (Source("image"),), CONV, ActivationSpec("relu")),
            Layer("second", "convolution", (640, 0), (Source("First"),), CONV),
            Layer("out", "output", (1280, 0), (Source("third"),)),
            Layer("open_b", "pooling", (640, 320)),
            Layer("open_a", "pooling", (320, 320)),
            Layer("open_c", "convolution", (960, 320), (), {**CONV, "kernel": "0x0"}),
        ]
    )


@pytest.fixture
def canvas(qtbot) -> Canvas:
    return kit.open_canvas(qtbot, network())


@pytest.fixture
def finder(canvas: Canvas) -> Finder:
    return Finder(canvas.context, canvas)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("convolution", ["First", "second", "third", "open_c"]),
        ("CONVOLUTION kernel=3X3", ["First", "second"]),
        ("first", ["First"]),
        ("FIRST", ["First"]),
        ("relu", ["First"]),
        ("activation=relu conv", ["First"]),
        ("8 x 48 x 64", ["First", "second", "third", "out"]),
        ("48x64 out", ["out"]),
        ("open", ["open_a", "open_b", "open_c"]),
        ("conv pooling", []),
        ("nothing", []),
    ],
)
def test_every_word_is_looked_for_in_any_case_from_left_to_right(canvas: Canvas, query: str, names: list[str]) -> None:
    found = [name for name, _ in matches(canvas.context.document, query)]
    assert sorted(found, key=found.index) == found
    assert found == names


def test_the_next_match_is_behind_the_selected_one_and_goes_around(canvas: Canvas, finder: Finder) -> None:
    context = canvas.context
    finder._query = "convolution"
    names = ["First", "second", "third", "open_c"]
    order = [name for name, _ in matches(context.document, "convolution")]
    assert sorted(order) == sorted(names)
    for start, step, wanted in (
        ((), 1, order[0]), ((), -1, order[-1]), (("image",), 1, order[0]), (("image",), -1, order[-1]),
        ((order[0],), 1, order[1]), ((order[0],), -1, order[-1]), ((order[-1],), 1, order[0]), ((order[1],), -1, order[0]),
        (("image", order[1]), 1, order[2]), ((order[2], "image"), 1, order[0]),
    ):  # fmt: skip
        context.select(start)
        finder.next(step)
        assert context.selection == (wanted,), (start, step)
    context.select(("image",))
    finder._query = "nothing"
    finder.next()
    assert context.selection == ("image",)
    assert canvas.messages[-1] == ("info", "No layer matches 'nothing'.")


def test_problems_are_gone_through_from_the_selected_layer(canvas: Canvas, finder: Finder) -> None:
    """From what was selected in between, and around the ends; the message is that of the layer."""
    context = canvas.context
    order = ["open_a", "open_b", "open_c"]
    found = {d.layer for d in context.document.diagnostics()}
    assert found == set(order)

    def go(step: int = 1) -> str:
        finder.next_problem(step)
        (name,) = context.selection
        worst = next(d for d in context.document.diagnostics() if d.layer == name)
        level, text = canvas.messages[-1]
        assert level == worst.severity.value
        assert text.startswith(worst.message)
        return name

    assert [go() for _ in range(4)] == [*order, "open_a"]
    assert [go(-1) for _ in range(4)] == ["open_c", "open_b", "open_a", "open_c"]
    context.select(("open_a",))
    assert go() == "open_b"
    context.select(("open_a",))
    assert go(-1) == "open_c"
    for nothing in ((), ("image",)):
        context.select(nothing)
        assert go() == "open_a"
        context.select(nothing)
        assert go(-1) == "open_c"
    context.document.do(lambda g: commands.remove_layers(g, order))
    finder.next_problem()
    assert canvas.messages[-1] == ("info", "No problems")
