"""What follows a gesture at 1,000 layers: greyed ports, totals of the network, fixes."""

from __future__ import annotations

from itertools import count

import pytest

pytest.importorskip("pytest_benchmark")

from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.fixes import fixes
from designer.operators.live_cost import LiveCost
from designer.operators.registry import default_registry

LAYERS, SMALL = 1000, 60


def network(layers: int) -> Graph:
    found = [Layer("in", "input", params={"dims": "64x64x3"})]
    for number in range(1, layers):
        before = Source(found[-1].name)
        kind = ("convolution", "batch_normalization", "element_wise", "identity")[number % 4]
        inputs = (before, Source(found[-2].name)) if kind == "element_wise" and number > 1 else (before,)
        activation = ActivationSpec("relu") if kind == "convolution" else None
        params = {"features": "32"} if kind == "convolution" else {}
        place = (256 * (number % 40), 160 * (number // 40))
        found.append(Layer(f"n{number:04d}", kind, place, inputs, params, activation))
    return Graph(found)


@pytest.fixture
def graph(benchmark) -> Graph:
    return network(SMALL if benchmark.disabled else LAYERS)


def test_figures_of_the_whole_network(benchmark, graph) -> None:
    inference = Inference(graph, default_registry())

    def everything() -> LiveCost:
        live = LiveCost(inference)
        live.count()
        return live

    live = benchmark(everything)
    assert live.total().layers == len(graph)


def test_figures_after_one_edit(benchmark, graph) -> None:
    inference = Inference(graph, default_registry())
    live = LiveCost(inference)
    live.count()
    numbers = count(33)

    def edit() -> None:
        change = graph.apply(commands.set_params(graph, {"n0005": {"features": str(next(numbers))}}))
        live.note(inference.update(change) | change.computed)
        live.count()
        live.total()

    benchmark(edit)


def test_fixes_of_a_finding(benchmark, graph) -> None:
    graph.apply(commands.add_layer(graph, Layer("other", "input", params={"dims": "50x51x3", "tiling": "1"})))
    joined = Layer("joined", "concatenation", (0, 0), (Source("n0005"), Source("other")))
    graph.apply(commands.add_layer(graph, joined))
    inference = Inference(graph, default_registry())
    finding = next(d for d in inference.diagnostics() if d.layer == "joined")
    found = benchmark(fixes, graph, default_registry(), inference, finding)
    assert found


@pytest.mark.gui
def test_a_move_of_a_dragged_link(benchmark, report, graph, qtbot) -> None:
    """Of a link over a 2560 x 1440 view; the moves that follow the first one, without painting."""
    pytest.importorskip("PySide6")
    from PySide6.QtCore import QPoint, Qt
    from PySide6.QtTest import QTest

    from app.ui.canvas.canvas import Canvas
    from app.ui.document.document import Document
    from app.ui.engine.context import Context

    context = Context(default_registry())
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    canvas.resize(2560, 1440)
    canvas.show()
    qtbot.waitExposed(canvas)
    context.set_document(Document(graph, context.registry, parent=context))
    canvas.viewer.zoom_by(0.5 / canvas.viewer.zoom)
    canvas.viewer.reveal(canvas.projection["n0045"])
    view = canvas.viewer.viewport()
    start = canvas.viewer.mapFromScene(canvas.projection["n0045"].outputs[0].center())
    QTest.mousePress(view, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, start)
    steps = count(6)

    def move() -> None:
        QTest.mouseMove(view, start + QPoint(next(steps) % 300, 40))

    benchmark(move)
    report.median(f"move of a dragged link, {LAYERS:,} layers", target=16.7)
    QTest.keyClick(canvas.viewer, Qt.Key.Key_Escape)
    QTest.mouseRelease(view, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, start)
