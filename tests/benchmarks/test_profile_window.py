"""A click in the operator table until the canvas has painted the selection, in a profile of a large network."""

from __future__ import annotations

from statistics import median
from time import perf_counter

import pytest

pytest.importorskip("pytest_benchmark")
pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.ui.canvas.canvas import Canvas
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import profiling_of
from app.ui.profile.operator_table import OperatorTablePanel
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.profiling.machine import Machine
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun

LAYERS = 3000
FRAME_MS = 1000 / 60


def chain(count: int) -> Graph:
    """A chain of small convolutions in rows of sixty."""
    layers = [Layer("image", "input", params={"dims": "64x64x16"})]
    for number in range(count - 1):
        place = (272 * (number % 60), 112 * (number // 60) + 112)
        layers.append(
            Layer(f"conv_{number}", "convolution", place, (Source(layers[-1].name),), params={"features": "16"})
        )
    return Graph(layers)


def test_a_click_in_the_table_reaches_the_canvas(benchmark, report, qtbot) -> None:
    count = 30 if benchmark.disabled else LAYERS
    context = Context(default_registry())
    canvas, table = Canvas(context), OperatorTablePanel(context)
    for widget, size in ((canvas, (1400, 900)), (table, (1400, 400))):
        qtbot.addWidget(widget)
        widget.resize(*size)
        widget.show()
        qtbot.waitExposed(widget)
    context.set_document(Document(chain(count), context.registry, parent=context))
    rows = tuple(
        OperatorProfile((layer.name,), "convolution", 0.1 + number % 7, 0.01)
        for number, layer in enumerate(context.document.graph)
        if layer.type == "convolution"
    )
    run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "64x64", sum(row.time_ms for row in rows), 0.1, rows)
    profiling_of(context).add(Profile(Machine("a processor", 2), "chain", (run,)))
    canvas.viewer.frame_all()
    while canvas.projection.busy:
        QApplication.processEvents()
    view, times = table.tree.frozen, []

    def click(row: int) -> None:
        place = view.visualRect(view.model().index(row, 0)).center()
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
        canvas.viewer.viewport().repaint()

    for number in range(4 if benchmark.disabled else 20):
        started = perf_counter()
        click(number % 4)
        times.append(perf_counter() - started)
        assert context.selection
        QApplication.processEvents()
    report.value(f"click in a table of {LAYERS:,} rows, canvas painted", median(times) * 1000, "ms", target=FRAME_MS)
    benchmark.pedantic(click, (0,), rounds=1)
