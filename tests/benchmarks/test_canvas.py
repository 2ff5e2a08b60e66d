"""Opening, panning and editing large networks on the canvas, beside NodeGraphQt's own calls in one run, as ratios.

`make bench` measures 1,000, 3,000 and 10,000 layers; an ordinary test run goes through the same code once, small. Absolute
times are recorded and never judged: the machine may be busy.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import median
from time import perf_counter

import pytest

pytest.importorskip("pytest_benchmark")
pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QWidget

from app.ui.canvas.canvas import Canvas
from app.ui.context import Context
from app.ui.document import Document
from designer.files.document import parse_document, write_document
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.layout import Box, arrange
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.registry import default_registry

SIZE = (1400, 900)
SIZES = (1000, 3000, 10_000)
SMALL = 60
FRAMES = 30
PLAIN = 1000  # the plain library takes 90 s for 3,000


def network(count: int) -> Graph:
    """Rows of 100 layers, with skips over one layer."""
    layers = [Layer("in", "input", params={"dims": "64x64x3"})]
    for number in range(1, count):
        before = Source(layers[-1].name)
        kind = ("convolution", "batch_normalization", "element_wise", "identity")[number % 4]
        inputs = (before, Source(layers[-2].name)) if kind == "element_wise" and number > 1 else (before,)
        activation = ActivationSpec("relu") if kind == "convolution" else None
        params = {"features": "32"} if kind == "convolution" else {}
        place = (256 * (number % 100), 160 * (number // 100))
        layers.append(Layer(f"n{number:05d}", kind, place, inputs, params, activation))
    return Graph(layers)


@pytest.fixture
def canvas(qtbot):
    context = Context(default_registry())
    canvas = Canvas(context)
    canvas.context = context
    qtbot.addWidget(canvas)
    canvas.resize(*SIZE)
    canvas.show()
    qtbot.waitExposed(canvas)
    return canvas


def opened(canvas: Canvas, data: bytes) -> None:
    """From the text of a file to the painted canvas."""
    graph = parse_document(data).graph
    canvas.context.set_document(Document(graph, canvas.context.registry, parent=canvas.context))
    canvas.viewer.viewport().repaint()


def frame_seconds(view: QWidget, pan: Callable[[QPoint], object], frames: int) -> float:
    """The median of whole frames: moved a little, and everything painted anew."""
    times = []
    for step in range(frames):
        started = perf_counter()
        pan(QPoint(-17 if step % 2 else 15, 5))
        view.repaint()
        times.append(perf_counter() - started)
    return median(times)


def plain_library(count: int) -> tuple[QWidget, float]:
    """The same network by NodeGraphQt's documented calls; its window and the seconds until it was painted."""
    from NodeGraphQt import BaseNode, NodeGraph

    class Plain(BaseNode):  # type: ignore[misc]
        __identifier__ = "bench"
        NODE_NAME = "plain"

        def __init__(self) -> None:
            super().__init__()
            self.add_input("a", multi_input=True)
            self.add_output("y")

    graph = NodeGraph()
    graph.register_node(Plain)
    graph.widget.resize(*SIZE)
    graph.widget.show()
    QApplication.processEvents()
    document = network(count)
    started = perf_counter()
    graph.set_acyclic(False)  # its check is quadratic
    nodes = {
        layer.name: graph.create_node("bench.Plain", layer.name, pos=layer.position, push_undo=False)
        for layer in document
    }
    for producer, _, consumer, _ in document.links():
        nodes[producer].set_output(0, nodes[consumer].input(0))
    graph.viewer().viewport().repaint()
    seconds = perf_counter() - started
    widget: QWidget = graph.widget
    widget.graph = graph  # type: ignore[attr-defined]
    return widget, seconds


@pytest.mark.parametrize("count", SIZES)
def test_opening_and_panning(benchmark, canvas, count) -> None:
    data = write_document(network(SMALL if benchmark.disabled else count))
    benchmark.pedantic(opened, (canvas, data), rounds=1 if benchmark.disabled else 3)
    viewer = canvas.viewer
    frames = 2 if benchmark.disabled else FRAMES
    viewer.zoom_by(1 / viewer.zoom)
    near = frame_seconds(viewer.viewport(), viewer.pan, frames)
    viewer.frame_all()
    far = frame_seconds(viewer.viewport(), viewer.pan, frames)
    benchmark.extra_info.update(near_ms=round(near * 1000, 2), far_ms=round(far * 1000, 2))


def test_beside_the_plain_library(benchmark, canvas, qtbot) -> None:
    count, frames = (SMALL, 2) if benchmark.disabled else (PLAIN, FRAMES)
    widget, plain = plain_library(count)
    qtbot.addWidget(widget)
    their = widget.graph.viewer()
    their_view = their.viewport()

    def pan(run: QPoint) -> None:
        for bar, step in ((their.horizontalScrollBar(), run.x()), (their.verticalScrollBar(), run.y())):
            bar.setValue(bar.value() - step)

    data = write_document(network(count))
    started = perf_counter()
    opened(canvas, data)
    ours = perf_counter() - started
    viewer = canvas.viewer
    rows = {"open": (plain, ours)}
    viewer.zoom_by(1 / viewer.zoom)
    their.resetTransform()
    rows["pan_near"] = (frame_seconds(their_view, pan, frames), frame_seconds(viewer.viewport(), viewer.pan, frames))
    viewer.frame_all()
    their.setTransform(viewer.transform())
    rows["pan_far"] = (frame_seconds(their_view, pan, frames), frame_seconds(viewer.viewport(), viewer.pan, frames))
    for name, (theirs, own) in rows.items():
        benchmark.extra_info[name] = {
            "plain_ms": round(theirs * 1000, 1),
            "ours_ms": round(own * 1000, 1),
            "ratio": round(own / theirs, 3),
        }
    benchmark.pedantic(viewer.viewport().repaint, rounds=1 if benchmark.disabled else 5)
    if not benchmark.disabled:
        assert rows["open"][1] < rows["open"][0]
        assert rows["pan_far"][1] < rows["pan_far"][0] / 5
    widget.graph.viewer().close()
    del widget.graph


def test_one_edit(benchmark, canvas) -> None:
    opened(canvas, write_document(network(SMALL if benchmark.disabled else 1000)))
    document = canvas.context.document

    def edit() -> None:
        document.do(lambda g: commands.set_params(g, {"n00041": {"features": "48"}}))
        document.undo()

    benchmark(edit)
    assert document.history.is_clean


def test_deleting_forty_layers_and_undo(benchmark, canvas) -> None:
    opened(canvas, write_document(network(SMALL if benchmark.disabled else 1000)))
    document = canvas.context.document
    names = [f"n{i:05d}" for i in range(10, 50)]

    def edit() -> None:
        document.do(lambda g: commands.remove_layers(g, names))
        document.undo()

    benchmark(edit)
    assert document.history.is_clean


def test_automatic_layout(benchmark) -> None:
    dice = random.Random(1)
    layers = [Layer("n0", "x")]
    for number in range(1, SMALL if benchmark.disabled else 3000):
        sources = {dice.randrange(max(0, number - 9), number) for _ in range(1 + (number % 5 == 0))}
        layers.append(Layer(f"n{number}", "x", (0, 0), tuple(Source(f"n{s}") for s in sorted(sources))))
    graph = Graph(layers)
    boxes = {layer.name: Box(160, 72, (32, 50), {"": 32}) for layer in graph}
    benchmark.pedantic(arrange, (graph, boxes), rounds=1 if benchmark.disabled else 3)
