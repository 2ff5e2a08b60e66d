"""Opening the profile of a large network, and a click in its table until the canvas has painted the selection."""

from __future__ import annotations

from statistics import median
from time import perf_counter

import pytest

pytest.importorskip("pytest_benchmark")
pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.ui.canvas.canvas import Canvas
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import profiling_of
from app.ui.profile.charts import ChartsPanel
from app.ui.profile.operator_table import OperatorTablePanel
from app.ui.profile.run_logger import RunLoggerPanel
from app.ui.profile.utilization import UtilizationPanel
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.profiling.machine import Machine
from designer.profiling.profile_files import save_profile
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


@pytest.fixture
def opened(benchmark, qtbot) -> tuple[Context, Canvas, list[QWidget]]:
    """The canvas and the panels of profiles, all visible, with a large network without a run."""
    context = Context(default_registry())
    canvas = Canvas(context)
    panels = [panel(context) for panel in (OperatorTablePanel, ChartsPanel, UtilizationPanel, RunLoggerPanel)]
    for widget in (canvas, *panels):
        qtbot.addWidget(widget)
        widget.resize(1400, 400)
        widget.show()
        qtbot.waitExposed(widget)
    context.set_document(Document(chain(30 if benchmark.disabled else LAYERS), context.registry, parent=context))
    canvas.viewer.frame_all()
    while canvas.projection.busy:
        QApplication.processEvents()
    return context, canvas, panels


def profile_of(context: Context) -> Profile:
    rows = tuple(
        OperatorProfile(
            (layer.name,), "convolution", 0.1 + number % 7, 0.01, flops=10**6, bytes=10**4 * (1 + number % 9)
        )
        for number, layer in enumerate(context.document.graph)
        if layer.type == "convolution"
    )
    run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "64x64", sum(row.time_ms for row in rows), 0.1, rows)
    return Profile(Machine("a processor", 2), "chain", (run,))


def test_a_report_opens(benchmark, report, opened, tmp_path) -> None:
    context, canvas, panels = opened
    path = tmp_path / "profile.json"
    save_profile(path, profile_of(context))
    canvas.heat.show_metric("time")
    shown = [canvas.viewer.viewport(), *panels]

    def open_report() -> None:
        assert profiling_of(context).open_file(path)
        for widget in shown:
            widget.repaint()

    benchmark.pedantic(open_report, rounds=1)
    report.median(f"a report of {LAYERS:,} operators is opened and painted", target=1000)


def test_a_click_in_the_table_reaches_the_canvas(benchmark, report, opened) -> None:
    context, canvas, panels = opened
    table = panels[0]
    assert isinstance(table, OperatorTablePanel)
    profiling_of(context).add(profile_of(context))
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
