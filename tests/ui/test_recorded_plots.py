"""What the charts of a run draw, item by item with colors, is recorded; bars are compared with a model of what is painted."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
pg = pytest.importorskip("pyqtgraph")
pytestmark = pytest.mark.gui

from painted import Stroke, role, strokes
from profile_kit import RUN, context, profile_of, profiling, steps
from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetrics, QImage, QPainter, QPen
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot
from recorded import check_lines
from window_kit import shown

from app.ui.engine.context import Context
from app.ui.engine.profiling import Entry, ProfilingController
from app.ui.profile.charts import AXES, PLOTS, ChartsPanel, sweep_of
from app.ui.profile.plots import BOUND_ROLES, TimelineBars, tip
from app.ui.profile.utilization_bars import UtilizationBars
from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.graph.diagnostics import DiagnosticError
from designer.profiling.machine import Machine
from designer.profiling.quantities import Quantity, measured, modelled, unavailable
from designer.profiling.schema import (
    UTILIZATION,
    OperatorProfile,
    PeakMemory,
    Profile,
    ProfileRun,
    RunPeaks,
    TrainingStep,
)
from designer.profiling.sweep import of_one_network
from designer.units import digits

__all__ = ["context", "profiling"]
MIB = 2**20
PEAKS = RunPeaks(measured(100e9), measured(20e9), measured(80e9))
STEP = TrainingStep(16, 100.0, 30.0, 50.0, 5.0, 10.0, 4.0, "compute", "why")


# --- plots, item by item -------------------------------------------------------------------------------------------


def ink(color: QColor) -> str:
    alpha = f" at {color.alpha()}" if color.alpha() != 255 else ""
    return f"{role(color)}{alpha}"


def pen_text(pen: Any) -> str:
    pen = pg.mkPen(pen) if pen is not None and not isinstance(pen, QPen) else pen
    if pen is None or pen.style() is Qt.PenStyle.NoPen:
        return "no pen"
    return f"pen {ink(pen.color())} {pen.widthF():g} {pen.style().name}"


def brush_text(brush: Any) -> str:
    brush = pg.mkBrush(brush) if brush is not None and not isinstance(brush, QBrush) else brush
    return "no brush" if brush is None or brush.style() is Qt.BrushStyle.NoBrush else f"brush {ink(brush.color())}"


def numbers(values: Any) -> str:
    return " ".join(f"{float(value):.4g}" for value in np.atleast_1d(np.asarray(values, float)))


def item_text(item: Any) -> Iterator[str]:
    """What one item of a plot shows."""
    if isinstance(item, pg.PlotDataItem):
        options = item.opts
        yield f"curve {item.name()!r}: x {numbers(item.xData)}; y {numbers(item.yData)}; {pen_text(options['pen'])}"
        yield f"  symbol {options['symbol']} {brush_text(options['symbolBrush'])} {pen_text(options['symbolPen'])}"
        if options["fillLevel"] is not None:
            yield f"  filled to {options['fillLevel']} with {brush_text(options['fillBrush'])}, steps {options['stepMode']}"
    elif isinstance(item, pg.ScatterPlotItem):
        for point in item.points():
            yield (
                f"point {numbers((point.pos().x(), point.pos().y()))}: {point.symbol()} {point.size():g} "
                f"{brush_text(point.brush())} {pen_text(point.pen())} data {point.data()}"
            )
    elif isinstance(item, pg.BarGraphItem):
        parts = {key: numbers(item.opts[key]) for key in ("x", "x0", "y", "y0", "width", "height") if item.opts.get(key) is not None}  # fmt: skip
        yield f"bars {parts} {brush_text(item.opts['brush'])} {pen_text(item.opts['pen'])}"
    elif isinstance(item, pg.TextItem):
        anchor = (item.anchor.x(), item.anchor.y())
        place = numbers((item.pos().x(), item.pos().y()))
        yield f"text {item.toPlainText()!r} at {place} anchor {anchor} {ink(item.color)}"
    elif isinstance(item, pg.LinearRegionItem):
        yield f"region {numbers(item.getRegion())} {brush_text(item.brush)} movable {item.movable}"
    elif isinstance(item, pg.InfiniteLine):
        yield f"line at {item.value():g} {pen_text(item.pen)} {item.label.format!r} {ink(item.label.color)}"
    elif isinstance(item, TimelineBars):
        for bar in item.bars:
            yield f"bar {bar.row}: {numbers(bar.rect.getRect())}{' chosen' if bar.row in item._chosen else ''}"
    else:
        yield type(item).__name__


def legend_text(plot: Any) -> Iterator[str]:
    for sample, label in plot.legend.items:
        options = sample.item.opts
        yield f"legend {label.text!r}: {brush_text(options.get('brush'))} {pen_text(options.get('pen'))}"
    yield f"legend at {plot.legend.pos().x() > plot.width() / 4} {plot.legend.pos().y() < plot.height() / 2}"


def plot_text(plot: Any) -> list[str]:
    found = [line for item in plot.getPlotItem().items for line in item_text(item)]
    found += legend_text(plot)
    for side in ("left", "right", "bottom"):
        axis = plot.getAxis(side)
        levels = axis._tickLevels
        ticks = [(f"{place:g}", text) for place, text in levels[0]] if levels is not None else "its own"
        if axis.isVisible():
            found.append(f"axis {side} {axis.labelText!r} scale {axis.scale:.4g} ticks {ticks}")
    state = plot.getViewBox().state
    if state["limits"]["yRange"][0] is not None:
        found.append(f"height {numbers(state['viewRange'][1])}")
    found.append(f"mouse {state['mouseEnabled']} limits {state['limits']['yLimits']} log {state['logMode']}")
    return found


FULL = replace(RUN, peaks=PEAKS, peak_memory=PeakMemory(12 * MIB, 1, {"head": 8 * MIB, "stem": 4 * MIB}), training=STEP)
LARGE = tuple(
    OperatorProfile(
        (name,),
        kind,
        1.0 + number,
        flops=10**6 * (number + 2),
        bytes=10**5 * (3 * number + 1),
        bound=bound,  # type: ignore[arg-type]
        precision=precision,
        memory_bytes=MIB * number,
    )
    for number, (name, kind, bound, precision) in enumerate(
        zip(
            "abcdef",
            "xyxyxy",
            ("compute", "memory", "cache", "launch", "", "memory"),
            ("", "fp32", "int8", "bf16", "tf32", ""),
            strict=True,
        )
    )
)
RUNS: dict[str, tuple[ProfileRun, ...]] = {
    "full": (FULL,),
    "every bound and precision, no peaks": (replace(RUN, operators=LARGE),),
    "no cache, no memory": (
        replace(
            RUN,
            peaks=RunPeaks(measured(100e9), unavailable("no"), measured(80e9)),
            operators=tuple(replace(row, memory_bytes=None) for row in LARGE[:2]),
        ),
    ),
    "no steps": (replace(RUN, operators=(), peaks=PEAKS),),
    "batches": tuple(replace(RUN, batch=batch, time_ms=time) for batch, time in ((1, 10.0), (4, 14.0), (2, 12.0))),
    "sizes": tuple(
        replace(RUN, batch=1, size=size, time_ms=time)
        for size, time in (("32x16", 40.0), ("8x8", 6.0), ("16x16", 20.0))
    ),
}


def test_every_item_of_every_chart(qtbot: QtBot, context: Context, profiling: ProfilingController) -> None:
    charts = shown(qtbot, ChartsPanel(context), 800, 500)
    lines: list[str] = []
    for name, runs in RUNS.items():
        profiling.add(profile_of(*runs, network=name))
        for number, (tab, _) in enumerate(PLOTS):
            charts.tabs.setCurrentIndex(number)
            plot = charts.plot()
            assert plot is not None
            if name in ("batches", "sizes") and tab not in AXES:
                continue
            lines += ["", f"# {name}: {tab}", *(plot_text(plot) if plot.isVisible() else ["(nothing)"])]
            chosen = profiling.entries[-1].run.operators[:2]
            if name == "full" and tab in ("roofline", "timeline", "memory"):
                profiling.choose_rows(chosen)
                charts._rest.timeout.emit()
                lines += ["", f"# {name}: {tab}, two steps chosen", *plot_text(plot)]
                profiling.choose_rows(())
                charts._rest.timeout.emit()
    check_lines("window/profile_plots.txt", lines)


def alike(dark: str, light: str) -> bool:
    """Whether two lines have the same roles; some roles have one color in the light theme."""
    pairs = zip(dark.split(), light.split(), strict=True)
    return all(set(a.split("/")) & set(b.split("/")) for a, b in pairs)


def test_plots_have_the_colors_of_the_theme(
    qapp: QApplication, qtbot: QtBot, context: Context, profiling: ProfilingController
) -> None:
    charts = shown(qtbot, ChartsPanel(context), 800, 500)
    for name, tabs in (("batches", (4,)), ("full", (0, 1, 2, 3, 6))):
        profiling.add(profile_of(*RUNS[name]))
        for number in tabs:
            charts.tabs.setCurrentIndex(number)
            plot = charts.plot()
            assert plot is not None
            dark = plot_text(plot)
            ranges = plot.getViewBox().viewRange()
            theme.apply(qapp, "light")
            try:
                pairs = zip(dark, plot_text(plot), strict=True)
                assert [a for a, b in pairs if not (alike(a, b) or a.startswith("text 'fp16"))] == []  # ink on a color
                assert plot.getViewBox().viewRange() == [pytest.approx(each) for each in ranges]
            finally:
                theme.apply(qapp, "dark")


def test_the_chart_of_the_tab_is_saved_with_its_sweep_and_reported(
    qtbot: QtBot, context: Context, profiling: ProfilingController, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    saved: list[tuple[Any, ...]] = []

    def save_figure(path: Path, name: str, run: ProfileRun, title: str, sweep: Any) -> None:
        if path.suffix == ".gif":
            raise DiagnosticError.of("bad-suffix", "GIF is not known", file=str(path))
        saved.append((path.name, name, run, title, sweep.runs if sweep is not None else None))

    monkeypatch.setitem(sys.modules, "app.reports.profile_figures", SimpleNamespace(save_figure=save_figure))
    said: list[tuple[str, str]] = []
    context.message.connect(lambda role, text: said.append((role, text)))
    charts = shown(qtbot, ChartsPanel(context), 800, 500)
    profiling.add(profile_of(*RUNS["batches"], network="net"))
    entry = profiling.current
    assert entry is not None
    ordered = tuple(sorted(RUNS["batches"], key=lambda run: run.batch))
    for number, (name, _) in enumerate(PLOTS):
        charts.tabs.setCurrentIndex(number)
        charts.save()
        dialog = charts.findChildren(QFileDialog)[-1]
        assert (dialog.windowTitle(), dialog.defaultSuffix()) == ("Save Chart", "png")
        assert dialog.acceptMode() is QFileDialog.AcceptMode.AcceptSave
        assert dialog.nameFilters() == ["Images (*.png *.svg *.pdf)"]
        charts.tabs.setCurrentIndex(0)  # another chart is shown until the file is chosen
        dialog.fileSelected.emit(str(tmp_path / f"my_{name}.svg"))
        dialog.reject()
        sweep = ordered if name == "batch" else None
        assert saved.pop() == (f"my_{name}.svg", name, entry.run, entry.title, sweep)
        assert said.pop() == ("info", f"Saved my_{name}.svg")
    charts._write(tmp_path / "a.gif", "timeline")
    ((severity, text),) = said
    assert severity == "error"
    assert "GIF is not known" in text
    for each in list(profiling.entries):
        profiling.remove(each)
    charts._write(tmp_path / "a.png", "timeline")
    assert saved == []
    qtbot.waitUntil(lambda: not charts.findChildren(QFileDialog))


def test_a_sweep_has_the_runs_that_differ_in_its_axis_only() -> None:
    chance = random.Random(5)
    pick = chance.choice
    for _ in range(60):
        entries = []
        for number in range(pick((1, 3, 8))):
            run = replace(
                RUN,
                batch=pick((1, 2, 4)),
                size=pick(("16x8", "32x16")),
                engine=pick(("torch", "torch", "onnxruntime")),
                flops=1000,
                learned=pick((5, 5, 5, 6)),  # of the network before an edit
                operators=(),
                time_ms=pick((10.0, 20.0)),
            )
            run = replace(run, flops=1000 * run.batch)
            profile = Profile(Machine(pick("AAB"), 4), pick(("net", "net", "other")), (run,))
            entries.append(Entry(number, profile, run))
        entry = pick(entries)
        for name in ("batch", "size"):
            found = sweep_of(entry, entries, name)
            by_value: dict[Any, ProfileRun] = {}
            for each in (*(e for e in entries if e is not entry), entry):
                one, other = replace(each.run, **{name: getattr(entry.run, name)}), entry.run
                settings = ("batch", "size", "engine", "precision", "layout")
                same = all(getattr(one, key) == getattr(other, key) for key in settings)
                if (
                    same
                    and each.profile.network == entry.profile.network
                    and each.profile.machine == entry.profile.machine
                    and of_one_network(entry.run, each.run)
                ):
                    by_value[getattr(each.run, name)] = each.run
            if len(by_value) < 2:
                assert found is None
                continue
            assert found is not None
            assert {getattr(run, name): id(run) for run in found.runs} == {
                key: id(run) for key, run in by_value.items()
            }
        assert sweep_of(entry, entries, "roofline") is None


# --- the bars of the timeline --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [3.0, 12.0, 30.0])
@pytest.mark.parametrize("chosen", [frozenset(), frozenset({1}), frozenset({0, 3})])
def test_the_timeline_paints_chosen_steps_last_and_names_the_wide_ones(
    qapp: QApplication, scale: float, chosen: frozenset[int]
) -> None:
    theme.apply(qapp, "dark")
    long = replace(steps()[1], layers=("a_layer_with_a_very_long_name_" * 4,))
    run = replace(RUN, operators=(*steps()[:3], long, steps()[3]))
    bars = TimelineBars(run, chosen, lambda row: None)

    def paint(painter: QPainter) -> None:
        painter.scale(scale, 100.0)
        bars.paint(painter, None)  # type: ignore[arg-type]

    ends = np.cumsum([row.time_ms for row in run.operators])
    order = [n for n in range(5) if n not in chosen] + [n for n in range(5) if n in chosen]
    expected: list[tuple[str, Any, str, str]] = []
    for number in order:
        row = run.operators[number]
        area = ((ends[number] - row.time_ms) * scale, 0.0, row.time_ms * scale, 100.0)
        edge = "text 3" if number in chosen else "surface 1"
        expected.append(("rect", area, BOUND_ROLES[row.bound], edge))
        if row.time_ms * scale > 48:
            expected.append(("text", area, row.name or "outside of operators", ""))
    found = strokes(paint)
    assert len(found) == len(expected)
    for stroke, (kind, area, what, edge) in zip(found, expected, strict=True):
        assert stroke.kind == kind
        if kind == "rect":
            assert stroke.area.getRect() == pytest.approx(area, abs=0.01)
            assert (stroke.fill, stroke.pen) == (what, edge)
            ground = stroke
            continue
        begin, _, end = stroke.text.partition("…")
        assert stroke.text == what or (what.startswith(begin) and what.endswith(end) and begin and end)
        assert stroke.area.center().x() == pytest.approx(area[0] + area[2] / 2, abs=2)
        assert stroke.area.center().y() == pytest.approx(50, abs=2)
        assert stroke.area.width() <= area[2] - 8 + 1
        assert stroke.fill == role(theme.ink_on(theme.color(ground.fill)))  # type: ignore[arg-type]


def test_the_edge_of_a_chosen_step_is_thin_at_every_scale(qapp: QApplication) -> None:
    theme.apply(qapp, "dark")
    for chosen, ink in ((frozenset({1}), "text"), (frozenset(), "surface")):
        image = QImage(500, 100, QImage.Format.Format_RGB32)
        painter = QPainter(image)
        painter.scale(30.0, 100.0)
        TimelineBars(RUN, chosen, lambda row: None).paint(painter, None)  # type: ignore[arg-type]
        painter.end()
        row = [image.pixelColor(x, 20) for x in range(115, 186)]
        edges = [x for x, color in enumerate(row, 115) if color == theme.color(ink)]  # type: ignore[arg-type]
        assert edges
        assert all(min(abs(x - edge) for edge in (120, 180)) <= 2 for x in edges)
        assert image.pixelColor(130, 20) == theme.color("warning")


class Watcher(QObject):
    """Notes the events of an object."""

    def __init__(self, watched: QObject, found: list[QEvent.Type]) -> None:
        super().__init__(watched)
        self.found = found

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.found.append(event.type())
        return False


class Hover:
    """An event of the mouse at a time."""

    def __init__(self, x: float, button: Qt.MouseButton = Qt.MouseButton.LeftButton) -> None:
        self.x, self.kind, self.ignored = x, button, False

    def pos(self) -> QPointF:
        return QPointF(self.x, 0.5)

    def button(self) -> Qt.MouseButton:
        return self.kind

    def ignore(self) -> None:
        self.ignored = True


def test_the_pointer_over_the_timeline_names_and_chooses_the_step_under_it(qapp: QApplication) -> None:
    rows = (replace(steps()[0], layers=("<b>",)), *steps()[1:])
    run = replace(RUN, operators=rows)
    clicked: list[int] = []
    bars = TimelineBars(run, frozenset(), clicked.append)
    assert bars.acceptHoverEvents()
    for x, row in ((1.0, 0), (5.0, 1), (17.0, None), (4.0, 1), (-1.0, None)):
        bars.hoverMoveEvent(Hover(x))  # type: ignore[arg-type]
        assert bars.toolTip() == ("" if row is None else plain_tip(tip(run, rows[row])))
        for button in (Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton):
            event = Hover(x, button)
            clicked.clear()
            bars.mousePressEvent(event)  # type: ignore[arg-type]
            chooses = row is not None and button is Qt.MouseButton.LeftButton
            assert (clicked, event.ignored) == ([row] if chooses else [], not chooses)
    assert TimelineBars(replace(RUN, operators=()), frozenset(), clicked.append).boundingRect() == QRectF(0, 0, 1, 1)


# --- the bars of the utilization -----------------------------------------------------------------------------------


KEYS = tuple(UTILIZATION)
Values = dict[str, Quantity]


def label(found: Quantity) -> str:
    return "-" if found.value is None else f"{digits(found.value)} %"


def expected_bars(
    metrics: QFontMetrics, keys: tuple[str, ...], whole: Values, selected: Values | None, name: str, width: int
) -> Iterator[tuple[str, str, float, float, float]]:
    """Kind with fill, text, left, top (the middle for texts) and width of everything that the bars paint."""
    line = metrics.height() + 4
    parts = [(whole, "accent")] + ([(selected, "positive_alt")] if selected is not None else [])
    x = 0.0
    for title, color in (("whole network", "accent"), (name, "positive_alt"))[: len(parts)]:
        shown_title = metrics.elidedText(title, Qt.TextElideMode.ElideMiddle, int(width - x - 14))
        yield f"rect {color}", "", x, 4, 10
        yield "text text", shown_title, x + 14, line / 2, 0
        x += 30 + metrics.horizontalAdvance(shown_title)
    most = max([100.0, *(part[key].value or 0.0 for part, _ in parts for key in keys if key in part)])
    texts = ["100 %", *(label(part[key]) for part, _ in parts for key in keys if key in part)]
    room = width - max(map(metrics.horizontalAdvance, texts)) - 8
    y = float(line)
    for key in keys:
        yield "text text", UTILIZATION[key], 0, y + metrics.height() / 2, 0
        y += line
        for part, color in parts:
            found = part.get(key)
            full = room * 100 / most
            yield "rect sunken", "", 0, y, full
            yield "polyline outline 1", "", full, y, 0
            if found is None or found.value is None:
                yield "text muted", "unavailable", 4, y + 7, 0
            else:
                length = max(1.0, room * found.value / most)
                if found.source.value == "measured":
                    yield f"rect {color}", "", 0, y, length
                else:
                    yield f"rect gradient {color} 1", "", 0.5, y + 0.5, length - 1
                yield "text text", label(found), max(full, length) + 4, y + 7, 0
            y += 18
        y += 4
    yield "text muted", "% of the peak", 0, y + metrics.height() / 2, 0


def found_bar(stroke: Stroke, metrics: QFontMetrics) -> tuple[str, str, float, float, float]:
    area = stroke.area
    kind = " ".join(part for part in (stroke.kind, stroke.fill, stroke.pen) if part)
    if stroke.kind == "text":
        return kind, stroke.text, area.left(), area.center().y(), 0
    return kind, "", area.left(), area.top(), area.width()


@pytest.mark.parametrize("seed", range(12))
def test_everything_that_the_bars_of_the_utilization_paint(qtbot: QtBot, seed: int) -> None:
    chance = random.Random(seed)
    theme.apply(QApplication.instance(), "dark")  # type: ignore[arg-type]
    bars = UtilizationBars()
    qtbot.addWidget(bars)

    def values() -> Values:
        some = (
            measured(0.0),
            measured(50.0),
            measured(12.345),
            modelled(75.0, "x"),
            modelled(250.0, "x"),
            unavailable("none"),
        )
        return {key: chance.choice(some) for key in chance.sample(KEYS, chance.choice((3, 4)))}

    for _ in range(2):
        keys = tuple(chance.sample(KEYS, chance.choice((0, 1, 2, 3))))
        whole, selected = values(), chance.choice((None, values()))
        name = chance.choice(("conv", "a long name of a selected step " * 4))
        bars.show_values(keys, whole, selected, name)
        metrics = bars.fontMetrics()
        line = metrics.height() + 4
        rows = 2 if selected is not None else 1
        size = QSize(240, 2 * line + 8 + len(keys) * (line + rows * 18 + 4))
        assert (bars.sizeHint(), bars.minimumSizeHint()) == (size, QSize(160, size.height()))
        width = chance.choice((240, 400))
        bars.resize(width, size.height())
        found = [found_bar(stroke, metrics) for stroke in strokes(bars)]
        expected = list(expected_bars(metrics, keys, whole, selected, name, width))
        assert [each[:2] for each in found] == [each[:2] for each in expected]
        for one, other in zip(found, expected, strict=True):
            assert one[2:] == pytest.approx(other[2:], abs=2.0 if "text" in one[0] else 0.02)


def test_new_values_and_themes_are_painted_at_once(qapp: QApplication, qtbot: QtBot) -> None:
    bars = shown(qtbot, UtilizationBars(), 300, 200)
    requests: list[QEvent.Type] = []
    bars.installEventFilter(Watcher(bars, requests))
    QApplication.processEvents()
    for act in (
        lambda: bars.show_values(KEYS[:1], {KEYS[0]: measured(1.0)}, None, ""),
        theme.changes().changed.emit,
    ):
        requests.clear()
        act()
        QApplication.processEvents()
        assert QEvent.Type.Paint in requests
