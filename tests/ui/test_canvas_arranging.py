"""Automatic layout and links that run around nodes, on the real window."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPoint, QPointF
from window_kit import press, show

import samples
from app.ui.canvas.canvas import Canvas
from app.ui.canvas.layout_boxes import laid_out, levels_of
from app.ui.shell.window import MainWindow
from designer.files.document import read_document
from designer.graph import commands, frames
from designer.graph.arrangement import Side, align, distribute
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Frame, Layer, Source


@pytest.fixture
def window(shared_window):
    return show(shared_window, kit.small_graph())


def crossed(canvas) -> list[tuple[str, str]]:
    """Links that run through a node that they do not belong to."""
    found = []
    boxes = {name: canvas.projection[name].box() for name in canvas.projection.layers}
    for consumer in canvas.projection.layers:
        for index in range(len(canvas.projection[consumer].inputs)):
            link = canvas.projection.link(consumer, index)
            if link is None:
                continue
            ends = {consumer, link.source.node.layer}
            path = link.path()
            points = [path.pointAtPercent(i / 400) for i in range(401)]
            found += [
                (f"{link.source.node.layer} to {consumer}", name)
                for name, box in boxes.items()
                if name not in ends and any(box.contains(p) for p in points)
            ]
    return found


def places(window: MainWindow | Canvas) -> dict[str, tuple[int, int]]:
    return {layer.name: layer.position for layer in window.context.document.graph}


def test_shift_l_lays_everything_out_as_one_step(window):
    before = places(window)
    press(window, "Shift+L")
    after = places(window)
    assert after != before
    assert after["input"][0] < after["conv"][0] < after["cat"][0] < after["out"][0]
    assert window.canvas.projection["conv"].pos() == QPointF(*after["conv"])
    assert window.context.document.history.undo_title == "Lay out"
    press(window, "Ctrl+Z")
    assert places(window) == before
    assert window.context.document.history.is_clean


def test_l_moves_the_selection_only(window):
    window.context.select(("conv", "cat"))
    before = places(window)
    press(window, "L")
    after = places(window)
    assert {n for n in after if after[n] != before[n]} <= {"conv", "cat"}
    assert window.context.selection == ("conv", "cat")


def test_frames_stay_around_their_layers(window):
    document = window.context.document
    document.do(frames.set_frame(document.graph, "f", Frame("f", "branch", rect=(300, -40, 240, 130))))
    document.do(commands.move_layers(document.graph, {"cat": (200, 400), "out": (100, 600)}))
    press(window, "Shift+L")
    x, y, width, height = document.graph.frames["f"].rect
    box = window.canvas.projection["conv"].box()
    assert x < box.left() < box.right() < x + width
    assert y < box.top() < box.bottom() < y + height
    press(window, "Ctrl+Z")
    assert document.graph.frames["f"].rect == (300, -40, 240, 130)


@pytest.mark.parametrize("path", samples.documents(), ids=lambda p: p.stem)
def test_no_link_runs_through_a_node_of_a_sample(window, path):
    graph = read_document(path).graph
    show(window, graph)
    assert crossed(window.canvas) == []
    press(window, "Shift+L")
    assert crossed(window.canvas) == []


def test_a_link_gives_way_to_a_node_that_is_dropped_on_it(window):
    canvas, document = window.canvas, window.context.document
    document.do(commands.move_layers(document.graph, {"conv": (320, 320), "cat": (800, 0), "out": (1100, 0)}))
    canvas.frame_all()
    assert crossed(canvas) == []
    start = kit.node(canvas, "free")
    kit.drag(canvas, start, kit.at(canvas, QPointF(460, 20)))
    assert document.graph["free"].position[1] < 96
    assert crossed(canvas) == []
    link = canvas.projection.link("cat", 1)
    around = link.path().boundingRect()
    document.undo()
    assert link.path().boundingRect() != around
    document.redo()
    document.do(commands.remove_layers(document.graph, ["free"]))
    assert link.path().boundingRect() != around


def test_a_link_around_a_node_is_hit_where_it_is_drawn(window):
    canvas, document = window.canvas, window.context.document
    document.do(commands.move_layers(document.graph, {"conv": (320, 320), "cat": (800, 0), "free": (400, 0)}))
    canvas.frame_all()
    link = canvas.projection.link("cat", 1)
    middle = kit.at(canvas, link.path().pointAtPercent(0.5))
    kit.click(canvas, middle)
    assert link.isSelected()
    assert canvas.viewer.hit(middle + QPoint(0, 60)) is not link


def test_the_paths_of_the_selected_layer_are_marked(window):
    canvas, document = window.canvas, window.context.document
    document.do(commands.add_layer(document.graph, Layer("side", "identity", (320, 480), (Source("input"),))))

    def marked() -> set[tuple[str, int]]:
        keys = [("conv", 0), ("cat", 0), ("cat", 1), ("out", 0), ("side", 0)]
        return {k for k in keys if canvas.projection.link(*k).on_path}

    kit.click(canvas, kit.node(canvas, "conv"))
    assert marked() == {("conv", 0), ("cat", 0), ("out", 0)}
    kit.click(canvas, kit.node(canvas, "side"))
    assert marked() == {("side", 0)}
    press(window, "Ctrl+A")
    assert marked() == set()


def test_layers_are_aligned_and_distributed_by_their_boxes_whatever_is_written_below_them(qtbot):
    """Shapes below are as wide and high as they are; unknown ones are not written."""
    conv = {"features": "8", "kernel": "3x3", "padding": "same"}
    layers = [
        Layer("input", "input", (0, 0), params={"dims": "64x48x3"}),
        Layer("largest", "top_k", (336, 48), (Source("input"),)),
        Layer("plain", "identity", (672, 400)),
        Layer("conv", "convolution", (1040, 208), (Source("input"),), conv, ActivationSpec("relu")),
        Layer("short", "convolution", (240, 640), (Source("input"),), conv),
    ]
    canvas = kit.open_canvas(qtbot, Graph(layers))
    document, names = canvas.context.document, ("short", "conv", "largest", "plain")
    document.do(lambda g: commands.collapse_layers(g, ["short"], True))
    boxes = {n: canvas.projection.entry(n).box() for n in names}
    assert len({box.height() for box in boxes.values()}) > 2
    assert len({canvas.projection.entry(n).area().height() - boxes[n].height() for n in names}) > 1
    sizes = {n: box.size().toTuple() for n, box in boxes.items()}
    canvas.context.select(names)
    wanted = {side: align(document.graph, sizes, names, side) for side in Side}
    wanted |= {way: distribute(document.graph, sizes, names, vertical=way) for way in (False, True)}
    before, moved = places(canvas), set()
    for how, edit in wanted.items():
        canvas.distribute(vertical=how) if isinstance(how, bool) else canvas.align(how)
        after = places(canvas)
        assert after == before | {n: new.position for n, (_, new) in edit.layers.items()}, how
        moved.add(tuple(after.values()))
        document.undo()
    assert len(moved) == len(wanted)


def test_a_network_that_is_not_shown_is_laid_out_as_on_the_canvas(qtbot):
    """With levels, activations, texts and several ports."""
    conv, half = {"features": "8", "kernel": "3x3", "padding": "same"}, {"size": "2x2", "stride": "2x2"}
    layers = [
        Layer("input", "input", params={"dims": "64x48x3"}),
        Layer("conv", "convolution", inputs=(Source("input"),), params=conv, activation=ActivationSpec("relu")),
        Layer("pool", "pooling", inputs=(Source("conv"),), params=half),
        Layer("low", "convolution", inputs=(Source("pool"),), params=conv),
        Layer("up", "upsample", inputs=(Source("low"),)),
        Layer("cat", "concatenation", inputs=(Source("up"), Source("conv"))),
        Layer("largest", "top_k", inputs=(Source("cat"),)),
        Layer("out", "output", inputs=(Source("largest"),)),
        Layer("places", "output", inputs=(Source("largest", "indices"),)),
        Layer("loose", "identity"),
    ]
    canvas = kit.open_canvas(qtbot, Graph(layers))
    document = canvas.context.document
    assert set(levels_of(document).values()) >= {0, 1}
    found = laid_out(document)
    canvas.arrange(everything=True)
    after = places(canvas)
    x, y = (after["input"][axis] - found["input"][axis] for axis in (0, 1))
    assert after == {n: (place[0] + x, place[1] + y) for n, place in found.items()}
