"""Opening, panning and editing large networks on the canvas, and NodeGraphQt's own calls for comparison.

`make bench` measures 1,000, 3,000 and 10,000 layers; an ordinary test run goes through the same code once, small.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter

import pytest

pytest.importorskip("pytest_benchmark")
pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QWidget

from app.ui.canvas.canvas import Canvas
from app.ui.document.document import Document
from app.ui.engine.context import Context
from designer.files.document import parse_document, write_document
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.layout import LayerBox, arrange
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.registry import default_registry

SIZE = (1400, 900)
SIZES = (1000, 3000, 10_000)
OPEN_MS = {1000: 1300, 3000: 3000, 10_000: 8000}  # targets
PAN_MS = {1000: 10, 3000: 16.7, 10_000: 33}
SMALL = 60
FRAMES = 30
PLAIN = (100, 1000)  # the plain library takes 90 s for 3,000


def network(count: int) -> Graph:
    """A U-Net after the other, each of 60 layers on five levels with skips, branches and names as people give them."""
    layers = [Layer("image", "input", params={"dims": "64x64x16"})]
    block = 0
    while len(layers) < count:
        layers += _unet(f"block{block:03d}", layers[-1].name, (5600 * (block % 6) + 320, 1600 * (block // 6)))
        block += 1
    return Graph(layers[:count])


def _unet(name: str, before: str, corner: tuple[int, int]) -> Iterator[Layer]:
    """Five stages down and up again; each stage has a branch that is added, each one up reads what came down."""
    skips: list[str] = []
    for stage in range(10):
        down = stage < 5
        x, y = corner[0] + 544 * stage, corner[1] + 224 * (stage if down else 9 - stage)
        part = f"{name}_{'encoder' if down else 'decoder'}{stage if down else 9 - stage}"
        if not down:
            yield Layer(f"{part}_skip", "element_wise", (x, y - 96), (Source(before), Source(skips.pop())))
            before = f"{part}_skip"
        yield Layer(
            f"{part}_conv", "convolution", (x, y), (Source(before),), {"features": "16"}, ActivationSpec("relu")
        )
        yield Layer(f"{part}_norm", "batch_normalization", (x + 272, y), (Source(f"{part}_conv"),))
        yield Layer(f"{part}_branch", "identity", (x, y + 96), (Source(before),))
        sources = (Source(f"{part}_norm"), Source(f"{part}_branch"))
        yield Layer(f"{part}_sum", "element_wise", (x + 272, y + 96), sources)
        before = f"{part}_sum"
        if down:
            skips.append(before)
            yield Layer(f"{part}_act", "activation", (x + 272, y + 208), (Source(before),), {}, ActivationSpec("relu"))
            before = f"{part}_act"


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
    """From the text of a file to the first painted picture, which can be edited."""
    graph = parse_document(data).graph
    canvas.context.set_document(Document(graph, canvas.context.registry, parent=canvas.context))
    canvas.viewer.viewport().repaint()


def settled(canvas: Canvas) -> None:
    """Until nothing is left to do in quiet moments."""
    while canvas.projection.busy:
        QApplication.processEvents()
    QApplication.processEvents()


def frame_seconds(view: QWidget, pan: Callable[[QPoint], object], frames: int) -> list[float]:
    """Whole frames: moved a little, and everything painted anew."""
    times = []
    for step in range(frames):
        started = perf_counter()
        pan(QPoint(-17 if step % 2 else 15, 5))
        view.repaint()
        times.append(perf_counter() - started)
    return times


def travel_seconds(canvas: Canvas, frames: int) -> list[float]:
    """Frames of a journey: zoomed out by steps of the wheel, across, and in again where nothing was seen before."""
    viewer, times = canvas.viewer, []
    steps: list[Callable[[], object]] = [lambda: viewer.zoom_by(1 / 1.2)] * (frames // 4)
    steps += [lambda: viewer.pan(QPoint(-60, -24))] * (frames // 4)
    steps += [lambda: viewer.zoom_by(1.2)] * (frames // 4)
    steps += [lambda: viewer.pan(QPoint(-40, 0))] * (frames // 4)
    for step in steps:
        started = perf_counter()
        step()
        viewer.viewport().repaint()
        times.append(perf_counter() - started)
    return times


def milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 2)


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
def test_opening_and_panning(benchmark, report, canvas, count) -> None:
    """The time is that of the first picture; `settled_ms` is until the whole network is measured in quiet moments."""
    data = write_document(network(SMALL if benchmark.disabled else count))
    benchmark.pedantic(opened, (canvas, data), rounds=1 if benchmark.disabled else 3)
    started = perf_counter()
    settled(canvas)
    rest = perf_counter() - started
    viewer = canvas.viewer
    frames = 4 if benchmark.disabled else FRAMES
    viewer.zoom_by(1 / viewer.zoom)
    viewer.viewport().repaint()
    near = frame_seconds(viewer.viewport(), viewer.pan, frames)
    journey = travel_seconds(canvas, 4 if benchmark.disabled else 80)
    viewer.frame_all()
    viewer.viewport().repaint()
    far = frame_seconds(viewer.viewport(), viewer.pan, frames)
    viewer.zoom_by(0.3 / viewer.zoom)
    viewer.viewport().repaint()
    middle = frame_seconds(viewer.viewport(), viewer.pan, frames)
    started = perf_counter()
    canvas.minimap.redraw()
    drawn = perf_counter() - started
    small = frame_seconds(canvas.minimap, lambda run: None, frames)
    if not benchmark.disabled:
        first = benchmark.stats["median"] * 1000
        report.value(f"open {count:,} layers, first image", first, "ms", target=1500)
        report.value(f"open {count:,} layers, all in place", first + rest * 1000, "ms", target=OPEN_MS[count])
    slower = milliseconds(max(median(near), median(far)))
    report.value(f"pan {count:,} layers, a frame", slower, "ms", target=PAN_MS[count])
    benchmark.extra_info.update(
        settled_ms=milliseconds(rest),
        near_ms=milliseconds(median(near)),
        near_worst_ms=milliseconds(max(near)),
        middle_ms=milliseconds(median(middle)),
        far_ms=milliseconds(median(far)),
        far_worst_ms=milliseconds(max(far)),
        journey_ms=milliseconds(median(journey)),
        journey_worst_ms=milliseconds(max(journey)),
        map_frame_ms=milliseconds(median(small)),
        map_redraw_ms=milliseconds(drawn),
    )


@pytest.mark.parametrize("count", PLAIN)
def test_compared_with_the_plain_library(benchmark, report, canvas, qtbot, count) -> None:
    frames = FRAMES
    if benchmark.disabled:
        count, frames = SMALL, 2
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
    for name in ("pan_near", "pan_far"):
        if name == "pan_near":
            viewer.zoom_by(1 / viewer.zoom)
        else:
            viewer.frame_all()
        their.setTransform(viewer.transform())
        their.centerOn(viewer.visible_center())
        theirs = frame_seconds(their_view, pan, frames)
        viewer.viewport().repaint()
        rows[name] = (median(theirs), median(frame_seconds(viewer.viewport(), viewer.pan, frames)))
    for name, (theirs, own) in rows.items():
        benchmark.extra_info[name] = {
            "plain_ms": round(theirs * 1000, 1),
            "ours_ms": round(own * 1000, 1),
            "ratio": round(own / theirs, 3),
        }
    benchmark.pedantic(viewer.viewport().repaint, rounds=1 if benchmark.disabled else 5)
    if count == PLAIN[-1]:  # with fewer nodes neither makes anyone wait
        for name, what, target in (("open", "open", 1), ("pan_far", "pan, all in view", 1 / 5)):
            theirs, own = (1000 * seconds for seconds in rows[name])
            report.ratio(f"{what}, {count:,} layers", own, "ms", peer=theirs, peer_name="NodeGraphQt", target=target)
    widget.graph.viewer().close()
    del widget.graph


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("what", ["edit", "undo", "redo"])
def test_one_edit(benchmark, report, canvas, count, what) -> None:
    """A parameter in the middle, with all that follows from it shown."""
    opened(canvas, write_document(network(SMALL if benchmark.disabled else count)))
    settled(canvas)
    document = canvas.context.document
    middle = sorted(layer.name for layer in document.graph if layer.type == "convolution")[len(document.graph) // 12]
    edit = commands.set_params(document.graph, {middle: {"kernel": "5x5"}})
    steps = {"edit": lambda: document.do(edit), "undo": document.undo, "redo": document.redo}

    def ready() -> None:
        while document.undo() is not None:
            pass
        if what != "edit":
            document.do(edit)
        if what == "redo":
            document.undo()
        settled(canvas)

    def done() -> None:
        steps[what]()
        canvas.viewer.viewport().repaint()

    benchmark.pedantic(done, setup=ready, rounds=1 if benchmark.disabled else 20)
    if count == SIZES[0]:
        report.median(f"{what} of one parameter, {count:,} layers", target=50 if what == "edit" else 30)
    assert document.history.is_clean is (what == "undo")


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("what", ["delete", "undo"])
def test_forty_layers(benchmark, report, canvas, count, what) -> None:
    """Deleting forty layers near the input, so that almost all others lose their shapes, and getting them back."""
    opened(canvas, write_document(network(SMALL if benchmark.disabled else count)))
    settled(canvas)
    document = canvas.context.document
    names = sorted(document.graph.layers)[5:45]

    def delete() -> None:
        document.do(lambda g: commands.remove_layers(g, names))

    def ready() -> None:
        if document.history.undo_title is not None:
            document.undo()
        if what == "undo":
            delete()
        settled(canvas)

    def done() -> None:
        if what == "undo":
            document.undo()
        else:
            delete()
        canvas.viewer.viewport().repaint()

    benchmark.pedantic(done, setup=ready, rounds=1 if benchmark.disabled else 5)
    if what == "undo" and count == SIZES[0]:
        report.median(f"undo of 40 layers deleted, {count:,} layers", target=100)
    assert document.history.is_clean is (what == "undo")


def test_automatic_layout(benchmark) -> None:
    dice = random.Random(1)
    layers = [Layer("n0", "x")]
    for number in range(1, SMALL if benchmark.disabled else 3000):
        sources = {dice.randrange(max(0, number - 9), number) for _ in range(1 + (number % 5 == 0))}
        layers.append(Layer(f"n{number}", "x", (0, 0), tuple(Source(f"n{s}") for s in sorted(sources))))
    graph = Graph(layers)
    boxes = {layer.name: LayerBox(160, 72, (32, 50), {"": 32}) for layer in graph}
    benchmark.pedantic(arrange, (graph, boxes), rounds=1 if benchmark.disabled else 3)


def test_automatic_layout_of_a_network(benchmark, canvas) -> None:
    """What Shift+L does to 3,000 layers: measured, laid out, one edit, shown."""
    opened(canvas, write_document(network(SMALL if benchmark.disabled else 3000)))
    settled(canvas)

    def done() -> None:
        canvas.arrange(everything=True)
        canvas.viewer.viewport().repaint()

    benchmark.pedantic(done, rounds=1)
    assert not canvas.context.document.history.is_clean
