"""What the canvas does when other parts of the window, or its own view, ask for something."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from app.ui.canvas.inline_editor import InlineEditor
from app.ui.canvas.links import LiveLink, PortDot
from app.ui.document.document import Document
from app.ui.engine.number_formats import number_formats_of
from app.ui.engine.run_health import run_health_of
from app.ui.widgets.tooltips import plain_tip
from designer.graph import commands, frames
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer, Source
from designer.graph.template import Template
from designer.profiling.heat import Heat, Metric
from designer.training.health import Health, Problem

BLAME = Metric("blame", "Share of the error", "%", lambda row: None, extensive=False)


@pytest.fixture
def canvas(qtbot):
    return kit.open_canvas(qtbot, kit.small_graph())


def marked(canvas) -> list[str]:
    return [name for name in canvas.projection.layers if canvas.projection[name].look.inspected]


def test_a_refused_link_is_reported_as_an_error_with_its_reason(canvas):
    canvas.viewer.link_refused.emit("it would close a loop")
    assert canvas.messages == [("error", "Not connected: it would close a loop")]


def test_the_keyboard_goes_to_the_canvas_when_it_is_asked_for(qtbot, canvas):
    field = QLineEdit(canvas)
    field.show()
    with qtbot.waitActive(canvas):
        canvas.activateWindow()
    field.setFocus()
    assert field.hasFocus()
    canvas.context.canvas_requested.emit()
    assert canvas.viewer.hasFocus()
    field.setFocus()
    canvas.setFocus()  # the view has the keyboard of the canvas
    assert canvas.viewer.hasFocus()


def test_the_mark_of_the_inspected_layer_follows_requests_and_the_inspector(canvas):
    context = canvas.context
    for signal, name in ((context.inspect_requested, "conv"), (context.inspected, "cat"), (context.inspected, "")):
        signal.emit(name)
        assert marked(canvas) == ([name] if name else [])
    context.inspected.emit("conv")
    context.set_document(Document(Graph([Layer("other", "input")]), context.registry, parent=context))
    assert marked(canvas) == []
    context.inspected.emit("other")
    context.set_document(Document(kit.small_graph(), context.registry, parent=context))
    assert marked(canvas) == []
    context.inspected.emit("conv")
    assert marked(canvas) == ["conv"]
    part = (Layer("x", "template_input"), Layer("conv", "convolution", (320, 0), (Source("x"),)))
    layers = [Layer("conv", "input"), Layer("block", "template", (320, 0), (Source("conv"),), {"template": "part"})]
    graph = Graph(layers, templates=[Template("part", part)])
    context.set_document(Document(graph, context.registry, parent=context))
    assert marked(canvas) == ["conv"], "a document that is shown later has its mark at once"
    context.inspected.emit("block.conv")
    assert marked(canvas) == []
    assert context.enter("block")
    assert marked(canvas) == ["conv"]
    context.inspected.emit("conv")
    assert marked(canvas) == [], "the layer of that name is outside"
    context.set_scope(())
    assert marked(canvas) == ["conv"]


def test_a_layer_that_is_asked_for_is_selected_and_brought_into_view(canvas):
    canvas.viewer.zoom_by(1 / canvas.viewer.zoom)
    canvas.viewer.go(QPointF(9000, 9000))
    canvas.context.reveal_requested.emit("cat")
    assert canvas.context.selection == ("cat",)
    assert canvas.viewer.seen().contains(canvas.projection.entry("cat").box())
    canvas.context.reveal_requested.emit("gone")
    assert canvas.context.selection == ("cat",)


def test_menus_and_dropped_formats_are_passed_on_with_their_places(canvas):
    said = []
    canvas.menu_requested.connect(lambda place: said.append(("menu", place)))
    canvas.fixes_requested.connect(lambda place: said.append(("fixes", place)))
    canvas.context.format_dropped.connect(lambda name, layer: said.append((name, layer)))
    canvas.viewer.menu_requested.emit(QPoint(3, 4))
    canvas.viewer.fixes_requested.emit(QPoint(5, 6))
    canvas.viewer.format_dropped.emit("int8", "conv")
    assert said == [("menu", QPoint(3, 4)), ("fixes", QPoint(5, 6)), ("int8", "conv")]


def test_a_double_click_inspects_or_enters(canvas):
    asked = []
    canvas.context.inspect_requested.connect(asked.append)
    canvas.viewer.inspect_requested.emit("conv")
    assert (asked, marked(canvas)) == (["conv"], ["conv"])


def test_health_names_problems_and_gives_way_to_what_is_asked_for(canvas):
    """A problem is named in place of the value of its layer. Heat of a panel, a metric of a profile or its path come first."""
    context, heat, health = canvas.context, canvas.heat, run_health_of(canvas.context)
    problems = (Problem("cat", "dead", 7), Problem("free", "frozen", 9), Problem("gone", "dead", 1))
    layers = {"conv": {"dead": 0.5}, "cat": {"dead": 0.25}, "gone": {"dead": 1.0}}

    def cells() -> list[tuple[QRectF, float, str, bool]]:
        return [(cell.rect, cell.share, cell.label, cell.problem) for cell in heat.item.cells]

    def cell(name: str, share: float, label: str, *, problem: bool = False) -> tuple[QRectF, float, str, bool]:
        return canvas.projection.entry(name).area(), share, label, problem

    health.health = Health(30, layers, problems)
    health.show_metric("dead")
    named = {
        problem.layer: cell(problem.layer, 0.5 if problem.layer == "cat" else 0.0, problem.text, problem=True)
        for problem in problems[:2]
    }
    values = [cell("conv", 1.0, "0.500"), named["cat"], named["free"]]
    assert cells() == values
    assert heat.item.isVisible()
    assert not heat.legend.isHidden()
    assert heat.legend.accessibleDescription()
    context.heat_requested.emit(Heat(BLAME, {"conv": 4.0}))
    assert cells() == [cell("conv", 1.0, "4.00 %")]
    context.heat_requested.emit(None)
    assert cells() == values
    heat.toggle_critical_path()
    assert cells() == []
    assert heat.legend.isHidden()
    heat.toggle_critical_path()
    assert cells() == values
    heat.show_metric("time")
    assert cells() == []
    heat.show_metric("")
    assert cells() == values
    health.show_metric("problems")
    assert cells() == [cell("cat", 0.0, problems[0].text, problem=True), named["free"]]
    assert heat.legend.isHidden()
    health.show_metric("")
    assert cells() == []
    assert not heat.item.isVisible()


def test_formats_and_colors_are_on_the_layers_of_the_document_that_is_shown(canvas):
    """At once after another document or a scope is shown, not only after the next edit."""
    context, formats = canvas.context, number_formats_of(canvas.context)
    first = context.document
    formats.set_format("int8", ["conv"])
    context.heat_requested.emit(Heat(BLAME, {"conv": 4.0}))

    def badges() -> list[str]:
        return [badge.text for badge in canvas.formats.item.badges]

    assert badges() == ["INT8"]
    place = canvas.formats.item.badges[0].rect
    layers = [Layer("in", "input", (0, 900)), Layer("conv", "convolution", (640, 900), (Source("in"),))]
    other = Document(Graph(layers), context.registry, parent=context)
    context.set_document(other)
    assert badges() == []
    assert not canvas.formats.item.isVisible()
    formats.set_format("int4", ["conv"])
    (badge,) = canvas.formats.item.badges
    assert canvas.projection.entry("conv").area().intersects(badge.rect)
    context.set_document(first)
    (badge,) = canvas.formats.item.badges
    assert (badge.text, badge.rect) == ("INT8", place)
    context.set_document(other)
    (badge,) = canvas.formats.item.badges
    assert canvas.projection.entry("conv").area().intersects(badge.rect)


def test_a_document_that_is_no_longer_shown_changes_nothing_on_the_canvas(canvas):
    """Neither by an edit, nor by a layer that is inserted, nor by states; the selection and the drag stay."""
    context, former = canvas.context, canvas.context.document
    other = Document(kit.small_graph(), context.registry, parent=context)
    context.set_document(other)
    context.select(("conv",))
    before = other.graph.copy()

    def add(name: str, place: tuple[int, int]):
        return lambda g: commands.add_layer(g, Layer(name, "identity", place))

    assert other.do(add("new", (320, 16)))
    assert former.insert(add("new", (320, 20)))
    assert former.do(lambda g: commands.set_params(g, {"input": {"dims": "16x16x1"}}))
    assert other.graph["new"].position == (320, 16)
    other.undo()
    assert other.graph == before
    assert former.do(lambda g: commands.remove_layers(g, ["conv"]))
    assert context.selection == ("conv",)
    kit.check(canvas, other)
    assert canvas.messages == []


def test_a_double_click_on_the_title_of_an_open_frame_edits_its_text(canvas):
    context = canvas.context
    context.document.do(lambda g: frames.set_frame(g, "f", Frame("f", "Title", "text", rect=(272, 300, 304, 160))))
    canvas.viewer.zoom_by(1 / canvas.viewer.zoom)
    canvas.viewer.centerOn(420, 200)
    title = kit.at(canvas, canvas.projection.frame("f").seen.topLeft() + QPointF(60, 14))
    kit.click(canvas, title)
    QTest.mouseDClick(canvas.viewer.viewport(), kit.LEFT, pos=title)
    (editor,) = canvas.viewer.viewport().findChildren(InlineEditor)
    assert editor.field.toPlainText() == "Title\ntext"
    editor.discard()


@pytest.mark.parametrize("zoom", [1.0, 0.1])
def test_badges_of_formats_are_seen_near_by_and_from_afar(canvas, zoom):
    canvas.minimap.want(False)
    canvas.viewer.zoom_by(zoom / canvas.viewer.zoom)
    canvas.viewer.centerOn(480, 100)
    view, formats = canvas.viewer.viewport(), number_formats_of(canvas.context)
    plain = view.grab().toImage()
    before = plain.copy()
    formats.set_formats({"conv": "int8"})
    marked = view.grab().toImage()
    area = canvas.projection.entry("conv").area()
    around = kit.rect(canvas, area.adjusted(-20, 0, 20, 40)).adjusted(-6, -6, 6, 6)
    assert plain.copy(around) != marked.copy(around)
    for image in (plain, marked):
        painter = QPainter(image)
        painter.fillRect(around, QColor("black"))
        painter.end()
    assert plain == marked, "nothing else has changed"
    formats.set_formats({})
    assert view.grab().toImage() == before


def test_ports_links_and_badges_under_the_pointer_show_it_and_what_they_are(canvas):
    """With the events of a pointer that moves over the canvas."""
    number_formats_of(canvas.context).set_formats({"conv": "int8"})
    canvas.viewer.zoom_by(1 / canvas.viewer.zoom)
    canvas.viewer.centerOn(480, 60)
    view, items = canvas.viewer.viewport(), canvas.projection
    link, (badge,) = items.link("out", 0), canvas.formats.item.badges
    nowhere = kit.at(canvas, QPointF(500, 300))
    ports = {dot: dot.look.tip for name in ("conv", "cat") for dot in (*items[name].inputs, *items[name].outputs)}
    places = [(dot, kit.at(canvas, dot.center())) for dot in ports]
    places += [(link, kit.at(canvas, link.path().pointAtPercent(0.5))), (badge, kit.at(canvas, badge.rect.center()))]
    for thing, place in places:
        QTest.mouseMove(view, nowhere)
        assert not link.emphasized
        assert not any(dot.hovered for dot in ports)
        assert canvas.formats.item.tip_at(QPointF(500, 300)) == ""
        QTest.mouseMove(view, place - QPoint(1, 0))
        QTest.mouseMove(view, place)
        assert link.emphasized is (thing is link)
        assert [dot for dot in ports if dot.hovered] == [dot for dot in ports if dot is thing]
        if isinstance(thing, PortDot):
            carried = thing.carried()
            assert bool(carried) is bool(thing.links or not thing.is_input)
            tip = f"{ports[thing]}, currently {carried}" if carried else ports[thing]
            assert thing.toolTip() == plain_tip(tip)
        elif thing is badge:
            assert canvas.formats.item.toolTip() == badge.tip == "INT8"


def test_what_lies_on_what_and_what_takes_clicks(canvas):
    """Links below layers; badges, colors and marks above them; the link that is dragged above links and below marks."""
    document, view = canvas.context.document, canvas.viewer.viewport()
    document.do(lambda g: frames.set_frame(g, "f", Frame("f", "Title", rect=(272, 300, 304, 160))))
    start = kit.output(canvas, "free")
    QTest.mousePress(view, kit.LEFT, pos=start)
    QTest.mouseMove(view, start + QPoint(30, 60))
    (live,) = (item for item in canvas.viewer.scene().items() if isinstance(item, LiveLink))
    stack = [
        canvas.projection.frame("f"),
        canvas.projection.link("out", 0),
        canvas.projection["conv"],
        live,
        canvas.formats.item,
        canvas.differences.item,
    ]
    heights = [item.zValue() for item in stack]
    assert heights == sorted(heights)
    assert len(set(heights)) == len(heights)
    for item in (live, canvas.formats.item, canvas.differences.item, canvas.heat.item):
        assert item.acceptedMouseButtons() is Qt.MouseButton.NoButton
        assert item in canvas.viewer.overlays
    for item in (canvas.projection.link("out", 0), canvas.projection["conv"], canvas.projection.frame("f")):
        assert item.flags() & item.GraphicsItemFlag.ItemIsSelectable
    canvas.viewer.cancel_drag()
    QTest.mouseRelease(view, kit.LEFT, pos=start)
