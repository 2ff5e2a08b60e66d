"""Charts, utilization and advice value by value: what each plot, bar and card shows of a run of which every field is different."""

from __future__ import annotations

from dataclasses import replace
from math import log10
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6")
pg = pytest.importorskip("pyqtgraph")
from profile_kit import NAMES, RUN, context, profile_of, profiling, steps
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QPushButton, QToolButton
from pytestqt.qtbot import QtBot
from window_kit import shown

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import ProfilingController
from app.ui.profile.advice_panel import AdvicePanel
from app.ui.profile.charts import PLOTS, ChartsPanel
from app.ui.profile.plots import POINT, RooflinePlot, SiAxis, tip
from app.ui.profile.utilization import UtilizationPanel, kinds
from app.ui.profile.utilization_bars import BAR, UtilizationBars
from app.ui.widgets import theme
from app.ui.widgets.sentences import sentence
from designer.graph import commands
from designer.graph.graph import Graph
from designer.profiling.machine import Machine
from designer.profiling.quantities import ValueSource, measured, modelled, text, unavailable
from designer.profiling.schema import OperatorProfile, PeakMemory, ProfileRun, RunPeaks, TrainingStep
from designer.profiling.sweep import pixels
from designer.units import quantity

pytestmark = pytest.mark.gui
__all__ = ["context", "profiling"]
LEFT = Qt.MouseButton.LeftButton
MIB = 2**20
PEAKS = RunPeaks(measured(100e9), measured(20e9), measured(80e9))
FULL = replace(RUN, peaks=PEAKS, peak_memory=PeakMemory(12 * MIB, 1, {"head": 8 * MIB, "stem": 4 * MIB}))


@pytest.fixture
def charts(qtbot: QtBot, context: Context) -> ChartsPanel:
    return shown(qtbot, ChartsPanel(context), 800, 500)


def plot_of(charts: ChartsPanel, name: str) -> Any:
    charts.tabs.setCurrentIndex([each for each, _ in PLOTS].index(name))
    found = charts.plot()
    assert found is not None
    return found


def keys(plot: Any) -> list[str]:
    return [label.text for _, label in plot.legend.items]


def labels(plot: Any) -> list[str]:
    return [plot.getAxis(side).labelText for side in ("bottom", "left")]


def curves(plot: Any) -> dict[str, list[float]]:
    """x and y of the first point, of the second one, ... of each line by name."""
    return {
        str(item.name()): [float(value) for point in zip(item.xData, item.yData, strict=True) for value in point]
        for item in plot.listDataItems()
        if isinstance(item, pg.PlotDataItem)
    }


def ticks(plot: Any, side: str) -> dict[float, str]:
    return dict(plot.getAxis(side)._tickLevels[0])


def texts(plot: Any) -> dict[str, tuple[float, float]]:
    return {
        item.toPlainText(): (item.pos().x(), item.pos().y())
        for item in plot.getPlotItem().items
        if isinstance(item, pg.TextItem)
    }


# --- the roofline ------------------------------------------------------------------------------------------------


def test_the_roofs_are_those_of_the_machine_and_points_are_under_them(
    charts: ChartsPanel, context: Context, profiling: ProfilingController
) -> None:
    bounds = ("compute", "memory", "cache", "launch", "")
    rows = tuple(
        OperatorProfile((name,), "x", 1.0 + n, flops=10**6 * (n + 2), bytes=10**5 * (3 * n + 1), bound=bound)
        for n, (name, bound) in enumerate(zip("abcde", bounds, strict=True))
    )
    others = (
        OperatorProfile(("free",), "x", 1.0, bytes=5),
        OperatorProfile(("still",), "x", 0.0, flops=5, bytes=5),
        OperatorProfile(("light",), "x", 1.0, flops=5),
    )
    every = (*others, *rows)
    profiling.add(profile_of(replace(FULL, operators=every, peak_memory=None)))
    plot = plot_of(charts, "roofline")
    points = plot.points.points()
    assert len(points) == len(rows)
    for point in points:
        row = every[point.data()]
        assert point.pos().x() == pytest.approx(log10(row.flops / row.bytes))
        assert point.pos().y() == pytest.approx(log10(row.flops / row.time_ms * 1e3))
        roles = {"compute": "accent", "memory": "warning", "cache": "info", "launch": "positive_alt", "": "muted"}
        assert point.brush().color() == theme.color(roles[row.bound])  # type: ignore[arg-type]
        assert (point.symbol(), point.size()) == ("o", POINT)
        assert plot._tip(x=0.0, y=0.0, data=point.data()) == tip(plot.run, row)
    found = curves(plot)
    low = min(*(row.flops / row.bytes for row in rows), 1.25) / 2
    high = max(*(row.flops / row.bytes for row in rows), 5.0) * 4
    assert list(found) == ["memory 20.0 GB/s", "cache 80.0 GB/s", "compute 100 GFLOP/s"]
    assert found["memory 20.0 GB/s"] == pytest.approx([low, low * 20e9, 5.0, 100e9])
    assert found["cache 80.0 GB/s"] == pytest.approx([low, low * 80e9, 1.25, 100e9])
    assert found["compute 100 GFLOP/s"] == pytest.approx([1.25, 100e9, high, 100e9])
    names = ["compute", "memory", "cache", "launch", "unknown"]
    assert keys(plot) == [*found, *(f"bound by {name}" for name in names)]
    assert labels(plot) == ["Intensity (FLOP/B)", "Achieved (FLOP/s)"]
    profiling.choose_rows([rows[3]])
    charts._rest.timeout.emit()
    marked = [point for point in plot.points.points() if point.symbol() == "d"]
    assert [every[point.data()].name for point in marked] == ["d"]
    assert marked[0].size() > POINT
    assert every[plot.points.points()[-1].data()].name == "d"  # above the others
    plot._clicked(None, [plot.points.points()[0]], None)
    assert profiling.chosen_rows == (every[plot.points.points()[0].data()],)


@pytest.mark.parametrize(
    ("peaks", "lines"),
    [
        (None, []),
        (RunPeaks(unavailable("no"), measured(20e9), measured(80e9)), []),
        (RunPeaks(measured(100e9), measured(20e9), unavailable("no")), ["memory 20.0 GB/s", "compute 100 GFLOP/s"]),
        (RunPeaks(measured(100e9), unavailable("no"), unavailable("no")), ["compute 100 GFLOP/s"]),
    ],
)
def test_only_known_roofs_are_drawn(
    charts: ChartsPanel, profiling: ProfilingController, peaks: RunPeaks | None, lines: list[str]
) -> None:
    profiling.add(profile_of(replace(FULL, peaks=peaks)))
    assert list(curves(plot_of(charts, "roofline"))) == lines


def test_chosen_points_are_above_the_others(charts: ChartsPanel, profiling: ProfilingController) -> None:
    rows = tuple(replace(steps()[0], layers=(name,), flops=10**9 * (4 - n)) for n, name in enumerate(NAMES))
    profiling.add(
        profile_of(replace(RUN, operators=rows, peaks=RunPeaks(measured(1e12), measured(1e10), measured(1e11))))
    )
    plot = charts.plot()
    assert isinstance(plot, RooflinePlot)
    for chosen in ((0,), (2,), (1, 3), ()):
        profiling.choose_rows([rows[number] for number in chosen])
        charts._rest.timeout.emit()
        order = [point.data() for point in plot.points.points()]
        assert sorted(order) == [0, 1, 2, 3]
        assert tuple(order[4 - len(chosen) :]) == chosen, "the last one is painted over the others"


def test_the_tip_of_a_step_has_its_values() -> None:
    fused, alone, bare, outside = RUN.operators
    assert tip(RUN, fused).split("\n") == [
        "stem + body",
        "convolution + relu",
        "4.00 ms, 25.0 % of the rows",
        "3.00 GFLOP/s",
        "786 MB/s",
        "4.00 x the time at the roof",
    ]
    assert tip(RUN, alone).split("\n")[-1] == "1.00 x the time at the roof"
    assert tip(RUN, bare).split("\n") == ["tail", "Custom", "0 s, 0 % of the rows"]
    assert tip(RUN, outside).split("\n") == ["outside of operators", "10.0 ms, 62.5 % of the rows"]


def test_logarithmic_ticks_are_named_at_round_numbers(qapp: QApplication) -> None:
    axis = SiAxis("left")
    values = [log10(step * 10.0**decade) for decade in (9, 10) for step in range(1, 10)]
    for high, steps_named in ((10.9, "1 2 5"), (11.1, "1")):
        axis.setRange(9.0, high)
        names = axis.logTickStrings(values, 1.0, None)
        expected = [f"{step}.00 G" if str(step) in steps_named else "" for step in range(1, 10)]
        expected += [f"{step}0.0 G" if str(step) in steps_named else "" for step in range(1, 10)]
        assert names == expected


# --- the timeline and the memory -----------------------------------------------------------------------------------


def test_bars_of_the_timeline_follow_each_other_in_running_order(
    qtbot: QtBot, charts: ChartsPanel, profiling: ProfilingController
) -> None:
    profiling.add(profile_of(FULL))
    plot = plot_of(charts, "timeline")
    bars = plot.bars.bars
    assert [(bar.rect.left(), bar.rect.width(), bar.row) for bar in bars] == [
        (0.0, 4.0, 0),
        (4.0, 2.0, 1),
        (6.0, 0.0, 2),
        (6.0, 10.0, 3),
    ]
    assert plot.bars.boundingRect().getRect() == (0.0, 0.0, 16.0, 1.0)
    at = [(x, plot.bars.at(x)) for x in (-0.1, 0.0, 3.99, 4.0, 5.99, 6.0, 15.99, 16.0)]
    assert at == [(-0.1, None), (0.0, 0), (3.99, 0), (4.0, 1), (5.99, 1), (6.0, 3), (15.99, 3), (16.0, None)]
    assert keys(plot) == ["bound by compute", "bound by memory", "bound by launch"]
    assert labels(plot)[0] == "Time (ms), steps in running order"
    for name, x in (("timeline", 5.0), ("memory", 1.0)):
        plot = plot_of(charts, name)
        QApplication.processEvents()
        place = plot.mapFromScene(plot.getViewBox().mapViewToScene(QPointF(x, 0.5)))
        qtbot.mouseMove(plot.viewport(), place + QPoint(3, 0))
        qtbot.mouseMove(plot.viewport(), place)
        qtbot.mouseClick(plot.viewport(), LEFT, pos=place)
        assert [row.name for row in profiling.chosen_rows] == [{5.0: "head", 1.0: "stem + body"}[x]]


def test_a_bar_has_the_color_of_its_bound_and_its_name(
    charts: ChartsPanel, profiling: ProfilingController, context: Context
) -> None:
    profiling.add(profile_of(FULL))
    plot = plot_of(charts, "timeline")

    def color(x: float) -> QColor:
        QApplication.processEvents()
        place = plot.mapFromScene(plot.getViewBox().mapViewToScene(QPointF(x, 0.05)))
        found: QColor = plot.grab().toImage().pixelColor(place)
        return found

    for x, role in ((2.0, "accent"), (5.0, "warning"), (11.0, "muted")):
        assert color(x) == theme.color(role)  # type: ignore[arg-type]
    plain = plot.grab().toImage()
    context.select(("head",))
    charts._rest.timeout.emit()
    QApplication.processEvents()
    assert plot.bars._chosen == {1}
    assert plot.grab().toImage() != plain
    for x, is_marked in ((4.0, True), (6.0, True), (16.0, False)):
        assert (color(x) == theme.color("text")) is is_marked


def test_the_memory_is_that_of_each_step_with_its_peak(charts: ChartsPanel, profiling: ProfilingController) -> None:
    profiling.add(profile_of(FULL))
    plot = plot_of(charts, "memory")
    (curve,) = (item for item in plot.listDataItems() if isinstance(item, pg.PlotDataItem) and item.opts["stepMode"])
    assert curve.xData.tolist() == [0.0, 4.0, 6.0, 6.0, 16.0]
    assert curve.yData.tolist() == [5.0, 9.0, 0.0, 0.0]
    assert labels(plot) == ["Time (ms), steps in running order", "Memory (MiB)"]
    assert texts(plot) == {"peak 12.0 MiB": (5.0, 12.0)}  # in the middle of its step
    (dot,) = (item for item in plot.getPlotItem().items if isinstance(item, pg.ScatterPlotItem))
    assert [(point.pos().x(), point.pos().y()) for point in dot.points()] == [(5.0, 12.0)]
    assert [(x, plot.row_at(x)) for x in (-1.0, 0.0, 3.9, 4.0, 6.0, 15.9, 16.0)] == [
        (-1.0, None),
        (0.0, 0),
        (3.9, 0),
        (4.0, 1),
        (6.0, 3),
        (15.9, 3),
        (16.0, None),
    ]
    profiling.choose_rows([profiling.entries[-1].run.operators[n] for n in (3, 1, 0)])
    charts._rest.timeout.emit()
    regions = [item.getRegion() for item in plot.getPlotItem().items if isinstance(item, pg.LinearRegionItem)]
    assert regions == [(0.0, 4.0), (4.0, 6.0), (6.0, 16.0)]
    assert charts.facts.text() == "Peak 12.0 MiB at head: head 8.00 MiB, stem 4.00 MiB"


# --- precision, training, sweeps -----------------------------------------------------------------------------------


def test_shares_of_precisions_are_stacked_and_named(charts: ChartsPanel, profiling: ProfilingController) -> None:
    rows = tuple(
        OperatorProfile((name,), "x", time, flops=flops, precision=precision)
        for name, time, flops, precision in (("a", 5.0, 1, ""), ("b", 3.0, 92, "fp32"), ("c", 2.0, 7, "int8"))
    )
    profiling.add(profile_of(replace(RUN, operators=rows)))
    plot = plot_of(charts, "precision")
    bars = [item for item in plot.getPlotItem().items if isinstance(item, pg.BarGraphItem)]
    assert [(list(bar.opts["y0"]), list(bar.opts["height"])) for bar in bars] == [
        ([0.0, 0.0], [50.0, 1.0]),
        ([50.0, 1.0], [30.0, 92.0]),
        ([80.0, 93.0], [20.0, 7.0]),
    ]
    assert len({bar.opts["brush"].name() for bar in bars}) == 3
    assert texts(plot) == {
        "fp16 50.0 %": (0.0, 25.0),
        "fp32 30.0 %": (0.0, 65.0),
        "fp32 92.0 %": (1.0, 47.0),
        "int8 20.0 %": (0.0, 90.0),
    }
    assert ticks(plot, "bottom") == {0: "Time", 1: "FLOPs"}
    assert labels(plot)[1] == "Share (%)"


def test_each_phase_of_a_training_step_is_named_at_its_bar(charts: ChartsPanel, profiling: ProfilingController) -> None:
    step = TrainingStep(16, 100.0, 30.0, 50.0, 5.0, 10.0, 4.0, "compute", "why")
    profiling.add(profile_of(replace(RUN, training=step)))
    plot = plot_of(charts, "training")
    (bars,) = (item for item in plot.getPlotItem().items if isinstance(item, pg.BarGraphItem))
    names = ticks(plot, "left")
    assert list(bars.opts["y"]) == sorted(bars.opts["y"], reverse=True)  # from top to bottom
    assert {names[y]: width for y, width in zip(bars.opts["y"], bars.opts["width"], strict=True)} == {
        "data 10.0 ms": 10.0,
        "forward 30.0 ms": 30.0,
        "backward 50.0 ms": 50.0,
        "optimizer 5.00 ms": 5.0,
        "waiting 4.00 ms": 4.0,
    }
    assert labels(plot)[0] == "Time (ms)"
    assert charts.facts.text().startswith("Training step of batch 16: 100 ms (data 10.0 ms, forward 30.0 ms")


@pytest.mark.parametrize(
    ("axis", "times"),
    [
        ("batch", [28.0, 10.0, 14.0, 12.0]),
        ("size", [40.0, 6.0, 20.0, 10.0]),
        ("batch", [20.0, 10.0, 28.0, 12.0]),  # the largest batch is not the slowest one
    ],
)
def test_a_sweep_is_drawn_over_its_axis_with_the_knee(
    qtbot: QtBot, charts: ChartsPanel, profiling: ProfilingController, axis: str, times: list[float]
) -> None:
    values: dict[str, list[Any]] = {"batch": [8, 1, 4, 2], "size": ["32x16", "8x8", "16x16", "16x8"]}
    runs = [
        replace(RUN, **{"batch": 1, axis: value}, time_ms=time) for value, time in zip(values[axis], times, strict=True)
    ]
    profiling.add(profile_of(*runs))
    plot = plot_of(charts, axis)
    ordered = sorted(runs, key=lambda run: (run.batch, pixels(run)))
    places = [float(run.batch if axis == "batch" else pixels(run)) for run in ordered]
    rates = [1e3 * run.batch / (run.time_ms or 1) * (pixels(run) * 1e-6 if axis == "size" else 1.0) for run in ordered]
    found = curves(plot)
    assert (found["throughput"][::2], found["throughput"][1::2]) == (places, pytest.approx(rates))
    scale = plot.getAxis("right").scale
    latencies = found["latency"][1::2]
    assert found["latency"][::2] == places
    assert [y * scale for y in latencies] == pytest.approx([run.time_ms for run in ordered])
    assert max(latencies) == pytest.approx(max(rates))  # both use the whole height
    names = [str(run.batch) if axis == "batch" else run.size for run in ordered]
    assert ticks(plot, "bottom") == dict(zip(places, names, strict=True))
    unit = {"batch": "images/s", "size": "Mpixel/s"}[axis]
    assert labels(plot) == [axis.capitalize(), f"Throughput ({unit})"]
    assert plot.getAxis("right").labelText == "Latency (ms)"
    knee = next(place for place, rate in zip(places, rates, strict=True) if rate >= 0.9 * max(rates))
    (line,) = (item for item in plot.getPlotItem().items if isinstance(item, pg.InfiniteLine))
    assert line.value() == knee
    assert keys(plot) == ["throughput", "latency"]
    label = names[places.index(knee)]
    assert f"knee at {axis} {label} with" in charts.facts.text()
    assert charts.facts.isVisible()
    only = replace(RUN, engine="onnxruntime")
    profiling.add(profile_of(only))  # no other run of this engine
    assert not plot.isVisible()
    profiling.add(
        replace(profile_of(replace(runs[0], **{axis: {"batch": 32, "size": "64x64"}[axis]})), machine=Machine("B", 2))
    )
    assert not plot.isVisible()  # nor of this machine
    profiling.show(profiling.entries[0])
    assert plot.isVisible()
    assert curves(plot) == found
    profiling.add(profile_of(*(replace(run, precision="fp32", time_ms=(run.time_ms or 0) * 2) for run in runs)))
    assert curves(plot)["throughput"][1::2] == pytest.approx([rate / 2 for rate in rates])
    profiling.remove(profiling.entries[-4])  # the largest one, while another one is shown
    qtbot.waitUntil(lambda: curves(plot)["throughput"][::2] == places[:-1])
    (low, high), _ = plot.getViewBox().viewRange()
    assert low < places[0] < places[-2] < high < places[-1]


# --- the panel of the charts ---------------------------------------------------------------------------------------

FACTS: list[tuple[str, dict[str, Any], str, bool]] = [  # plot, changes of the run, text, whether the plot is shown
    ("roofline", {}, "Steps bound by: 1 compute, 1 memory, 1 launch. 1 step without counted FLOPs has no point.", True),
    (
        "roofline",
        {"operators": tuple(replace(row, bound="cache" if row.layers else "") for row in steps())},
        "Steps bound by: 3 cache. 1 step without counted FLOPs has no point.",
        True,
    ),
    (
        "roofline",
        {"operators": (*steps()[:2], *(replace(steps()[1], layers=(name,), flops=0) for name in "ab"))},
        "Steps bound by: 3 memory, 1 compute. 2 steps without counted FLOPs have no point.",
        True,
    ),
    ("roofline", {"operators": steps()[:2]}, "Steps bound by: 1 compute, 1 memory.", True),
    ("roofline", {"operators": steps()[3:]}, "The peaks of the machine are unknown, so there is no roof.", True),
    ("timeline", {}, "", True),
    ("precision", {}, "", True),
    ("memory", {}, "", True),
    ("memory", {"operators": steps()[2:]}, "This profile has no memory of the steps.", True),
    ("memory", {"peak_memory": PeakMemory(3 * MIB, 0)}, "Peak 3.00 MiB at stem + body", True),
    (
        "memory",
        {"peak_memory": PeakMemory(9 * MIB, 1, {name: MIB * number for number, name in enumerate("abcdefg", 1)})},
        "Peak 9.00 MiB at head: g 7.00 MiB, f 6.00 MiB, e 5.00 MiB, d 4.00 MiB, c 3.00 MiB",
        True,
    ),
    ("training", {}, "Launch with Training step checked to see what a training step spends its time on.", False),
    (
        "batch",
        {},
        "Launch with several batches, such as 1,2,4,8, to see throughput and latency against the batch.",
        False,
    ),
    (
        "size",
        {},
        "Launch with several sizes, such as 128x128,256x256, to see throughput and latency against the size.",
        False,
    ),
]


@pytest.mark.parametrize(("name", "change", "text", "there"), FACTS)
def test_the_facts_of_a_chart_are_of_its_run(
    charts: ChartsPanel, profiling: ProfilingController, name: str, change: dict[str, Any], text: str, there: bool
) -> None:
    profiling.add(profile_of(replace(RUN, **change)))
    plot = plot_of(charts, name)
    assert (charts.facts.text(), plot.accessibleDescription()) == (text, text)
    assert charts.facts.isVisible() is (there and bool(text))
    assert plot.isVisible() is there
    save = charts.findChild(QToolButton, "charts.save")
    assert save is not None
    assert save.isEnabled() is there
    assert charts._nothing.isVisible() is not there
    if not there:
        assert text in {label.text() for label in charts._nothing.findChildren(QLabel)}
    plot_of(charts, "timeline")
    assert save.isEnabled()
    assert not charts._nothing.isVisible()
    assert not charts.facts.isVisible()


def test_every_tab_shows_its_plot_of_the_current_run(
    qtbot: QtBot, charts: ChartsPanel, context: Context, profiling: ProfilingController, tmp_path: Path
) -> None:
    assert [charts.tabs.tabText(number) for number in range(charts.tabs.count())] == [title for _, title in PLOTS]
    assert not charts.tabs.isVisible()
    step = TrainingStep(1, 1.0, 0.5, 0.25, 0.125, 0.1, 0.025, "compute", "why")
    other = replace(FULL, operators=steps()[:2], training=step)
    profiling.add(profile_of(FULL))
    profiling.add(profile_of(other))
    assert charts.tabs.isVisible()
    made: dict[str, Any] = {}
    for number in (1, 0):
        profiling.show(profiling.entries[number])
        for name, _ in PLOTS:
            plot = plot_of(charts, name)
            assert made.setdefault(name, plot) is plot
            assert plot.objectName() == f"charts.{name}"
            assert plot.run is profiling.entries[number].run
            context.select(("head",))
            qtbot.waitUntil(lambda plot=plot: plot.chosen == {1})
            context.select(())
            qtbot.waitUntil(lambda plot=plot: not plot.chosen)
    charts.hide()
    profiling.show(profiling.entries[1])
    charts.show()
    assert plot.run is profiling.entries[1].run
    for entry in list(profiling.entries):
        profiling.remove(entry)
    assert not charts.tabs.isVisible()


def test_what_is_zoomed_to_stays_while_the_run_is_shown(
    charts: ChartsPanel, context: Context, profiling: ProfilingController
) -> None:
    profiling.add(profile_of(FULL))
    plot = plot_of(charts, "timeline")
    whole = plot.getViewBox().viewRange()[0]
    assert whole[0] < 0 < 16 < whole[1]
    plot.getViewBox().setXRange(4.0, 6.0, padding=0)
    context.select(("head",))
    charts._rest.timeout.emit()
    theme.changes().changed.emit()
    assert plot.getViewBox().viewRange()[0] == pytest.approx([4.0, 6.0])
    profiling.add(profile_of(replace(FULL, operators=steps()[:1], peak_memory=None)))
    low, high = plot.getViewBox().viewRange()[0]
    assert low < 0
    assert 4 < high < 6


def test_a_chart_is_saved_under_its_name(qtbot: QtBot, charts: ChartsPanel, profiling: ProfilingController) -> None:
    profiling.add(profile_of(FULL))
    for name in ("timeline", "memory"):
        plot_of(charts, name)
        save = charts.findChild(QToolButton, "charts.save")
        qtbot.mouseClick(save, LEFT)
        dialog = charts.findChildren(QFileDialog, "charts.save_dialog")[-1]
        assert [Path(path).name for path in dialog.selectedFiles()] == [f"{name}.png"]
        assert dialog.defaultSuffix() == "png"
        dialog.reject()


# --- utilization ---------------------------------------------------------------------------------------------------


@pytest.fixture
def utilization(qtbot: QtBot, context: Context) -> UtilizationPanel:
    return shown(qtbot, UtilizationPanel(context), 464, 500)


def test_the_text_of_the_utilization_is_of_run_and_selection(
    utilization: UtilizationPanel, context: Context, profiling: ProfilingController
) -> None:
    assert not utilization.reasons.isVisible()
    counted = replace(RUN, operators=steps()[:2], device="cuda", counters="why not", peaks=replace(PEAKS, note="busy"))
    profiling.add(profile_of(counted))
    chart = utilization.chart

    def lines(tensor: str, memory: str, occupancy: str) -> list[str]:
        return [
            f"Tensor Core utilization: {tensor} %, measured (counted)",
            f"Memory throughput: {memory} %, measured (counted)",
            f"SM occupancy: {occupancy} %, measured (counted)",
        ]

    notes = ["", "Note: why not", "", "Note: busy"]
    whole = ["Whole network", *lines("7.67", "15.3", "23.0")]  # (11 x 4 + 1 x 2) / 6 and so on
    assert utilization.reasons.text().split("\n") == [*whole, *notes]
    for layers, name, values in (
        (("head",), "head", lines("1.00", "2.00", "3.00")),
        (("stem",), "stem + body", lines("11.0", "22.0", "33.0")),
        (("stem", "head"), "2 selected steps", lines("7.67", "15.3", "23.0")),
    ):
        context.select(layers)
        assert utilization.reasons.text().split("\n") == [*whole, "", name, *values, *notes]
        assert chart._selection == name
        assert chart.accessibleDescription() == utilization.reasons.text()
        QApplication.processEvents()
        assert chart.height() == chart.sizeHint().height()
    context.select(())
    assert chart.selected is None
    outside = replace(steps()[3], layers=())
    profiling.add(profile_of(replace(counted, device="cpu", operators=(*steps()[:2], outside), peaks=None)))
    assert utilization.reasons.text().split("\n") == whole  # a processor has no counters to miss
    profiling.choose_rows([profiling.entries[-1].run.operators[2]])
    assert chart._selection == "outside of operators"


@pytest.mark.parametrize("key", ["tensor_core", "occupancy"])
def test_one_counter_is_enough_for_the_bars_of_a_gpu(key: str) -> None:
    row = OperatorProfile(("a",), "x", 1.0, **{key: measured(1.0)})
    assert kinds(replace(RUN, operators=(row,))) == ("tensor_core", "memory_throughput", "occupancy")
    assert kinds(replace(RUN, operators=steps()[2:])) == ("compute_throughput", "memory_throughput")


def row_of_bar(bars: UtilizationBars, kind: int, part: int) -> int:
    """The middle of a bar: of the kind-th value, of the whole network or of the selection."""
    return round(bars._line() + kind * bars._step() + bars._line() + part * (BAR + 4) + BAR / 2)


def test_bars_are_as_long_as_their_values(qtbot: QtBot) -> None:
    bars = shown(qtbot, UtilizationBars(), 400, 300)
    keys = ("tensor_core", "memory_throughput", "occupancy")
    whole = {"tensor_core": measured(50.0), "memory_throughput": modelled(100.0), "occupancy": unavailable("none")}
    selected = {"tensor_core": measured(200.0), "memory_throughput": measured(25.0), "occupancy": measured(0.0)}
    bars.show_values(keys, whole, selected, "conv")
    bars.resize(400, bars.sizeHint().height())
    image = bars.grab().toImage()

    def painted(kind: int, part: int) -> int:
        color, y = theme.color("accent" if part == 0 else "positive_alt"), row_of_bar(bars, kind, part)
        columns = range(image.width())
        return max(
            (x + 1 for x in columns if image.pixelColor(x, y + 3) == color or image.pixelColor(x, y) == color),
            default=0,
        )

    full = painted(0, 1)
    assert full > 250
    lengths = [painted(0, 0), painted(1, 1), painted(2, 0)]
    assert lengths == pytest.approx([full * 50 / 200, full * 25 / 200, 0], abs=2)
    assert painted(1, 0) == pytest.approx(full * 100 / 200, abs=8)  # hatched
    y = row_of_bar(bars, 1, 0)
    hatched = [image.pixelColor(x, y) for x in range(2, full // 2 - 4)]
    assert {color == theme.color("accent") for color in hatched} == {True, False}
    solid = [image.pixelColor(x, row_of_bar(bars, 0, 0)) for x in range(1, full // 4 - 2)]
    assert set(map(QColor.name, solid)) == {theme.color("accent").name()}
    trough = image.pixelColor(full // 2 - 6, row_of_bar(bars, 2, 1))
    assert trough == theme.color("sunken")  # up to 100 %
    ground = image.pixelColor(image.width() - 1, image.height() - 1)
    assert image.pixelColor(full // 2 + 60, row_of_bar(bars, 2, 1)) == ground
    for number in range(2):  # the longest value has room for its text, whether it is of the network or of the selection
        values = ({**whole, "tensor_core": measured(123456.0)}, {**selected, "tensor_core": measured(1.0)})
        bars.show_values(keys, values[number], values[1 - number], "conv")
        image = bars.grab().toImage()
        text_of_it = bars.fontMetrics().horizontalAdvance(text(measured(123456.0), "%"))
        assert text_of_it > bars.fontMetrics().horizontalAdvance("100 %")
        assert painted(0, number) == pytest.approx(400 - text_of_it - 8, abs=1)
    height = bars.sizeHint().height()
    bars.show_values(keys, whole, None, "")
    assert bars.sizeHint().height() == height - 3 * (BAR + 4)
    bars.show_values(keys[:2], whole, None, "")
    assert bars.sizeHint().height() < height - 3 * (BAR + 4)
    assert bars.minimumSizeHint().height() == bars.sizeHint().height()
    small = {"tensor_core": measured(25.0), "memory_throughput": measured(50.0)}
    bars.show_values(keys[:2], small, None, "")
    image = bars.grab().toImage()
    quarter, half = painted(0, 0), painted(1, 0)
    assert half == pytest.approx(2 * quarter, abs=2)
    assert half < full - 60  # of 100 %, not of the largest value
    second = bars.grab().toImage()
    accent = theme.color("positive_alt")
    assert not any(second.pixelColor(x, y) == accent for x in range(0, 300, 2) for y in range(second.height()))


# --- advice ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def advice(qtbot: QtBot, context: Context) -> AdvicePanel:
    """Of a network whose convolutions have 5x5 kernels."""
    context.document.do(lambda g: commands.set_params(g, {name: {"kernel": "5x5"} for name in NAMES[:2]}))
    return shown(qtbot, AdvicePanel(context), 320, 600)


def slow_run(context: Context, **times: float) -> ProfileRun:
    shapes = {"inputs": ("N x 16 x 64 x 64",), "outputs": ("N x 16 x 64 x 64",)}
    rows = tuple(
        OperatorProfile((name,), "convolution", time, 0.01, flops=10**9, bytes=1000, bound="compute", **shapes)
        for name, time in times.items()
    )
    total = sum(times.values())
    return replace(
        RUN, precision="fp32", engine="torch", operators=rows, time_ms=total, spread_ms=0.01, flops=10**9 * len(rows)
    )


def cards(panel: AdvicePanel) -> list[tuple[str, list[str]]]:
    """The cards from top to bottom: name, and the texts of labels and buttons."""
    found = []
    for number in range(panel._cards.count()):
        item = panel._cards.itemAt(number)
        widget = item.widget() if item is not None else None
        assert widget is not None
        inside = (
            [widget] if isinstance(widget, QLabel) else widget.findChildren(QLabel) + widget.findChildren(QPushButton)
        )
        found.append((widget.objectName(), [each.text() for each in inside]))
    return found


def test_each_card_says_what_its_advice_says(
    qtbot: QtBot, advice: AdvicePanel, context: Context, profiling: ProfilingController
) -> None:
    profiling.add(profile_of(slow_run(context, stem=10.0, body=40.0, head=5.0)))
    profiling.add(profile_of(replace(profiling.entries[0].run, engine="onnxruntime", time_ms=20.0)))
    profiling.show(profiling.entries[0])
    found = advice.advice
    assert {each.source for each in found} == {ValueSource.MEASURED, ValueSource.MODELLED}
    assert {bool(each.layers) for each in found} == {True, False}
    assert [each.saving_ms for each in found] == sorted((each.saving_ms for each in found), reverse=True)
    shown_cards = cards(advice)
    assert [name for name, _ in shown_cards] == [f"advice.{number}" for number in range(len(found))]
    for each, (_, words) in zip(found, shown_cards, strict=True):
        message, remedy, saving, *buttons = words
        assert (message, remedy) == (sentence(each.message), sentence(each.remedy))
        assert saving == f"saves about {quantity(each.saving_ms / 1e3, 's')} ({each.source.value}: {each.reason})"
        assert buttons == ["Show on Canvas"] * bool(each.layers) + ["Apply"] * bool(each.edit is not None or each.fold)
    number = next(n for n, each in enumerate(found) if each.layers == ("stem",))
    reveal = advice.findChild(QPushButton, f"advice.{number}.reveal")
    with qtbot.waitSignal(context.reveal_requested) as told:
        qtbot.mouseClick(reveal, LEFT)
    assert told.args == ["stem"]
    assert [row.name for row in profiling.chosen_rows] == ["stem"]
    number = next(n for n, each in enumerate(found) if each.rule == "better-engine")
    assert context.root.settings.engine != "torch"
    qtbot.mouseClick(advice.findChildren(QPushButton, f"advice.{number}.apply")[-1], LEFT)  # others are deleted later
    titles = [words[0] for _, words in cards(advice)]
    assert titles[0] == sentence(found[number].message)
    assert titles.count(titles[0]) == 1  # it is not offered again before a run has measured it


def test_advice_that_the_document_refuses_is_not_applied(
    qtbot: QtBot, advice: AdvicePanel, context: Context, profiling: ProfilingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiling.add(profile_of(slow_run(context, stem=10.0, body=40.0)))
    before = cards(advice)
    said: list[object] = []
    context.message.connect(lambda *words: said.append(words))
    monkeypatch.setattr(context.root, "insert", lambda edit: False)
    number = next(n for n, each in enumerate(advice.advice) if each.edit is not None)
    qtbot.mouseClick(advice.findChild(QPushButton, f"advice.{number}.apply"), LEFT)
    assert (said, cards(advice)) == ([], before)


def test_advice_follows_edits_settings_and_the_document(
    qtbot: QtBot, advice: AdvicePanel, context: Context, profiling: ProfilingController
) -> None:
    first = context.root
    profiling.add(profile_of(slow_run(context, stem=10.0, body=40.0)))
    about = [each.layers for each in advice.advice]
    assert ("stem",) in about
    first.do(lambda g: commands.set_params(g, {"stem": {"kernel": "3x3"}}))
    qtbot.waitUntil(lambda: [each.layers for each in advice.advice] == [a for a in about if a != ("stem",)])
    advice.hide()
    first.undo()
    assert not advice._rest.isActive()
    assert ("stem",) not in [each.layers for each in advice.advice]
    advice.show()  # made up for
    assert [each.layers for each in advice.advice] == about
    first.change_settings(precision="bf16")
    assert advice._rest.isActive()
    qtbot.waitUntil(lambda: not advice._rest.isActive())
    fast = replace(profiling.entries[0].run, engine="onnxruntime", time_ms=20.0)
    profiling.add(replace(profile_of(fast), machine=Machine("faster", 64)))
    profiling.show(profiling.entries[0])
    assert "better-engine" not in [each.rule for each in advice.advice]
    profiling.add(profile_of(fast))
    profiling.show(profiling.entries[0])
    assert "better-engine" in [each.rule for each in advice.advice]
    other = Document(Graph(), context.registry, parent=context)
    context.set_document(other)
    assert not [each for each in advice.advice if each.layers]
    first.do(lambda g: commands.set_params(g, {"body": {"kernel": "3x3"}}))
    assert not advice._rest.isActive()  # nobody watches it any more
    for entry in list(profiling.entries):
        profiling.remove(entry)
    assert (cards(advice), advice.advice) == ([], [])


@pytest.mark.parametrize(
    ("change", "origin", "counts"),
    [
        ({}, {}, True),
        ({"batch": 9}, {}, False),
        ({"size": "1x1"}, {}, False),
        ({"time_ms": None}, {}, False),
        ({"source": ValueSource.MODELLED}, {}, False),
        ({}, {"path": Path("run.json")}, False),
        ({}, {"network": "another"}, False),
    ],
)
def test_only_a_run_of_the_same_inputs_measures_what_was_applied(
    qtbot: QtBot,
    advice: AdvicePanel,
    context: Context,
    profiling: ProfilingController,
    change: dict[str, Any],
    origin: dict[str, Any],
    counts: bool,
) -> None:
    profiling.add(profile_of(slow_run(context, stem=10.0, body=40.0)))
    first = advice.advice[0]
    with qtbot.waitSignal(context.message) as told:
        qtbot.mouseClick(advice.findChild(QPushButton, "advice.0.apply"), LEFT)
    assert told.args[0] == "info"
    assert told.args[1].endswith("Launch inference to measure the saving.")
    name, words = cards(advice)[0]
    assert name == "advice.applied"
    assert words[0] == sentence(first.message)
    assert words[1] == f"Applied. Predicted saving {first.saving_ms:.1f} ms."
    assert words[2] == "not measured yet"
    assert words[0] not in [each for _, text in cards(advice)[1:] for each in text]
    run = replace(slow_run(context, stem=10.0, body=20.0), **change)
    profiling.add(profile_of(run, network=origin.get("network", "net")), origin.get("path"))
    profiling.add(profile_of(slow_run(context, stem=1.0, body=1.0)))  # a later one
    assert cards(advice)[0][1][2].split("\n")[0] == ("measured 20.0 ms" if counts else "measured 48.0 ms")
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert "advice.applied" not in [name for name, _ in cards(advice)]
