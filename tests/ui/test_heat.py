"""Heat on the canvas of the real window: which layers are colored, with which values, and what the legend says."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")

import canvas_kit as kit
from PySide6.QtCore import QEvent, QObject, QPointF, QRectF
from PySide6.QtGui import QColor, QRegion
from PySide6.QtWidgets import QApplication, QGraphicsRectItem
from window_kit import action, show

from app.ui.engine.number_formats import number_formats_of
from app.ui.engine.profiling import profiling_of
from app.ui.widgets import theme
from app.ui.widgets.heat import heat_color
from designer.graph.graph import Graph
from designer.graph.template import INSTANCE
from designer.graph.template_commands import make_template
from designer.profiling.heat import DIFFERENCE, Heat, Metric
from designer.profiling.machine import Machine
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun

pytestmark = pytest.mark.gui


@pytest.fixture
def heated(window, qtbot):
    """A window with a network of three layers in a row and a run of it."""
    from designer.graph import commands
    from designer.graph.model import Layer, Source

    graph = window.context.document.graph
    names = ("a", "b", "c")
    for number, name in enumerate(names):
        source = (Source(names[number - 1]),) if number else ()
        kind = "relu" if number else "input"
        layer = Layer(name, kind, position=(number * 240, 0), inputs=source)
        window.context.document.do(lambda g, made=layer: commands.add_layer(g, made))
    assert set(names) <= set(graph.layers)
    rows = tuple(OperatorProfile((name,), "relu", time_ms=float(time)) for name, time in (("b", 1), ("c", 4)))
    run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "8x8", 5.0, 0.1, rows)
    profiling_of(window.context).add(Profile(Machine("Test CPU", 2), "net", (run,)))
    return window


def test_the_heat_action_colors_layers_by_their_share_and_has_the_mark(heated, qtbot):
    action(heated, "view.heat_time").trigger()
    cells = {cell.label: cell for cell in heated.canvas.heat.item.cells}
    assert {label: cell.share for label, cell in cells.items()} == {"1.00 ms": 0.25, "4.00 ms": 1.0}
    assert heated.canvas.heat.legend.isVisibleTo(heated)
    assert "4.00 ms" in heated.canvas.heat.legend.accessibleDescription()
    assert action(heated, "view.heat_time").isChecked()
    heated.canvas.viewer.frame_all()
    view = heated.canvas.viewer
    cell = cells["4.00 ms"]
    edge = view.mapFromScene(QRectF(cell.rect).center().x(), cell.rect.top() - 4)
    painted = QColor(view.viewport().grab().toImage().pixel(edge))
    wanted = heat_color(1.0)
    assert abs(painted.red() - wanted.red()) + abs(painted.green() - wanted.green()) < 40
    action(heated, "view.heat_none").trigger()
    assert not heated.canvas.heat.item.cells
    assert not heated.canvas.heat.legend.isVisibleTo(heated)
    # the menu has its mark at the metric that is shown, and at None for the heat of a panel
    heat, names = heated.canvas.heat, ["none", "time", "flops", "memory", "roof", "difference"]

    def marked() -> list[str]:
        return [name for name in names if action(heated, f"view.heat_{name}").isChecked()]

    assert marked() == ["none"]
    for name in (*names, "time"):
        action(heated, f"view.heat_{name}").trigger()
        assert marked() == [name]
    heat.show_given(Heat(DIFFERENCE, {"a": 1.0}))
    assert marked() == ["none"]
    action(heated, "view.heat_time").trigger()
    assert marked() == ["time"]
    path = action(heated, "view.critical_path")
    for on in (True, False):
        path.trigger()
        assert (path.isChecked(), heat.critical, marked()) == (on, on, ["time"])


def test_layers_of_a_template_are_colored_at_their_instance(heated):
    heated.context.document.do(lambda g: make_template(g, ["b", "c"], "pair"))
    (instance,) = (layer.name for layer in heated.context.root.graph if layer.type == INSTANCE)
    times = (("a", 2.5), (f"{instance}.b", 1.0), (f"{instance}.c", 4.0))
    rows = tuple(OperatorProfile((name,), "relu", time_ms=time) for name, time in times)
    run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "8x8", 7.5, 0.1, rows)
    profiling_of(heated.context).add(Profile(Machine("Test CPU", 2), "net", (run,)))
    action(heated, "view.heat_time").trigger()

    def shares() -> dict[str, float]:
        return {cell.label: cell.share for cell in heated.canvas.heat.item.cells}

    assert shares() == {"2.50 ms": 0.5, "5.00 ms": 1.0}
    assert heated.context.enter(instance)
    assert shares() == {"1.00 ms": 0.25, "4.00 ms": 1.0}


def test_the_layers_of_a_collapsed_frame_are_colored_and_marked_as_one(heated, qtbot):
    from designer.graph import frames

    canvas, context = heated.canvas, heated.context
    action(heated, "view.heat_time").trigger()
    action(heated, "view.critical_path").trigger()
    number_formats_of(context).set_formats({"b": "int8", "c": "float16"})
    context.comparison.with_graph(Graph(), "nothing")
    assert [cell.label for cell in canvas.heat.item.cells] == ["1.00 ms", "4.00 ms"]
    assert [badge.text for badge in canvas.formats.item.badges] == ["INT8", "FP16"]
    box = canvas.projection.entry("b").area().united(canvas.projection.entry("c").area()).adjusted(-40, -60, 40, 40)
    context.document.do(lambda g: frames.add_frame(g, tuple(map(int, box.getRect())), "both"))
    (frame,) = context.document.graph.frames
    context.document.do(lambda g: frames.collapse(g, [], [frame], canvas.projection.members))
    assert canvas.projection.hides("b")
    place = canvas.projection.entry("b").area()
    assert [(cell.label, cell.share, cell.rect) for cell in canvas.heat.item.cells] == [("5.00 ms", 1.0, place)]
    assert canvas.heat.item.path == [canvas.projection.entry("a").area(), place]
    (badge,) = canvas.formats.item.badges
    assert badge.text == "INT8, FP16"
    assert [line.split(":")[0] for line in badge.tip.splitlines()] == ["b", "c"]

    def signs() -> list[str]:
        return [mark.sign for mark in canvas.differences.item.marks if mark.rect == place]

    qtbot.waitUntil(lambda: signs() == ["+"], timeout=5000)
    context.undo()
    assert [cell.label for cell in canvas.heat.item.cells] == ["1.00 ms", "4.00 ms"]
    assert [badge.text for badge in canvas.formats.item.badges] == ["INT8", "FP16"]


def test_layers_without_a_difference_are_not_framed_but_those_without_an_amount_are(heated):
    show_given = heated.canvas.heat.show_given
    show_given(Heat(DIFFERENCE, {"a": 0.0, "b": -2.0, "c": 1.0}))
    assert {cell.share: cell.signed for cell in heated.canvas.heat.item.cells} == {-1.0: True, 0.5: True}
    show_given(Heat(Metric("blame", "Error", "%", lambda row: None), {"a": 0.0, "b": 2.0}))
    assert {cell.share: cell.signed for cell in heated.canvas.heat.item.cells} == {0.0: False, 1.0: False}


@pytest.mark.parametrize("grown", [(0, 60), (60, 0), (-40, -80)])
def test_the_legend_stays_in_its_corner_when_the_canvas_gets_another_size(qtbot, grown):
    canvas = kit.open_canvas(qtbot, kit.small_graph())
    canvas.heat.show_given(Heat(Metric("blame", "Error", "%", lambda row: None), {"conv": 2.0}))
    legend, viewport = canvas.heat.legend, canvas.viewer.viewport()

    def corner() -> tuple[int, int]:
        return legend.x(), viewport.height() - legend.geometry().bottom() - 1

    before = corner()
    assert before[0] == before[1] > 0
    canvas.resize(canvas.width() + grown[0], canvas.height() + grown[1])
    assert corner() == before


def test_the_critical_path_goes_through_the_layers(heated):
    action(heated, "view.critical_path").trigger()
    areas = [heated.canvas.projection.entry(name).area() for name in ("a", "b", "c")]
    assert heated.canvas.heat.item.path == areas
    view = heated.canvas.viewer
    view.frame_all()
    image = view.viewport().grab().toImage()
    warning = QColor(theme.color("warning"))

    def marked(point: QPointF) -> bool:
        place = view.mapFromScene(point)
        around = [image.pixelColor(place.x() + x, place.y()) for x in range(-12, 13)]
        return any(abs(c.red() - warning.red()) + abs(c.blue() - warning.blue()) < 30 for c in around)

    assert marked((areas[0].center() + areas[1].center()) / 2)
    assert not marked(areas[1].center())  # the path does not hide the names of layers


def test_from_afar_only_overlays_that_are_visible_are_painted(window):
    show(window, kit.small_graph())
    viewer = window.canvas.viewer
    viewer.zoom_by(0.1 / viewer.zoom)
    overlay = QGraphicsRectItem(QRectF(viewer.seen()))
    overlay.setBrush(QColor("#123456"))
    viewer.scene().addItem(overlay)
    viewer.overlays.append(overlay)
    middle = viewer.viewport().rect().center()
    for visible in (False, True):
        overlay.setVisible(visible)
        viewer.viewport().update()
        assert (viewer.grab().toImage().pixelColor(middle).name() == "#123456") is visible
    viewer.overlays.remove(overlay)
    viewer.scene().removeItem(overlay)


def test_from_afar_nothing_stays_of_heat_and_badges_that_are_removed(heated, qtbot):
    class Painted(QObject):
        """The parts of the canvas that were painted."""

        def __init__(self, viewport):
            super().__init__(viewport)
            self.area = QRegion()
            viewport.installEventFilter(self)

        def eventFilter(self, watched, event):
            if event.type() is QEvent.Type.Paint:
                self.area = self.area.united(event.region())
            return False

    viewer, context = heated.canvas.viewer, heated.context
    formats = number_formats_of(context)
    metric = Metric("blame", "Share of the error", "%", lambda row: None, extensive=False)
    viewer.zoom_by(0.1 / viewer.zoom)
    painted = Painted(viewer.viewport())
    for show_it, remove_it, item in (
        (
            lambda: context.heat_requested.emit(Heat(metric, {"b": 10.0, "c": 40.0})),
            lambda: context.heat_requested.emit(None),
            heated.canvas.heat.item,
        ),
        (lambda: formats.set_format("int8", ["b"]), context.undo, heated.canvas.formats.item),
    ):
        show_it()
        for _ in range(3):  # the scene collects what changed
            QApplication.processEvents()
        area = viewer.mapFromScene(item.boundingRect()).boundingRect().intersected(viewer.viewport().rect())
        assert not area.isEmpty()
        painted.area = QRegion()
        remove_it()
        qtbot.waitUntil(lambda area=area: QRegion(area).subtracted(painted.area).isEmpty(), timeout=1000)


def test_heat_without_a_run_says_what_to_do(window, qtbot):
    with qtbot.waitSignal(window.context.message) as said:
        action(window, "view.heat_flops").trigger()
    assert "Launch inference in the Profile workspace" in said.args[1]
