"""What the canvas paints: every look of nodes, ports, links, frames and marks, at the scales at which they look different.

The records in `tests/data/recorded/canvas` have what is painted in its order, with colors by their role. Where it is painted
is compared with what contains it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
import numpy as np
from painted import painted, role, strokes, texts
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QImage, QPainter, QPainterPath
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget
from recorded import check_recorded

from app.ui.canvas import node_metrics, node_paint
from app.ui.canvas.difference_marks import DifferenceMarks, Mark
from app.ui.canvas.format_marks import Badge, FormatBadges
from app.ui.canvas.frames import LARGE, LEAST_WIDTH, WHOLE, FrameItem, needed_height, text_top
from app.ui.canvas.heat_overlay import BAND, MIN_BAND, Cell, HeatItem
from app.ui.canvas.links import LiveLink
from app.ui.canvas.node import LayerItem
from app.ui.canvas.node_layout import MARK, MARK_GAP, PAD, PORT_RADIUS, fonts, layout
from app.ui.canvas.node_look import NodeLook, PortLook
from app.ui.widgets import theme
from app.ui.widgets.heat import heat_color
from designer.graph import routes
from designer.graph.graph import Graph
from designer.graph.model import GRID, ActivationSpec, Frame, Layer, Source
from designer.graph.template import Template
from designer.operators.api import Category
from designer.profiling.heat import DIFFERENCE, Heat, Metric

SCALES = (1.0, 0.6, 0.4, 0.16)
NAMED = re.compile(r"text '[^!?]+' filled")


@pytest.fixture(autouse=True)
def colors(qapp):
    """The light theme: there, fewer roles have the same color."""
    with theme.as_if(dark=False):
        yield


def every_look() -> Graph:
    """Layers of every look, most of them named after it."""
    conv = {"features": "8", "kernel": "3x3", "padding": "same"}
    inner = (
        Layer("x", "template_input", params={"index": "0"}),
        Layer("y", "template_output", (320, 0), (Source("x"),), {"index": "0"}),
        Layer("z", "template_output", (320, 160), (Source("x"),), {"index": "1"}),
    )
    return Graph(
        [
            Layer("image", "input", params={"dims": "64x48x3"}),
            Layer("plain", "convolution", (320, 0), (Source("image"),), conv, attributes={"lw:frozen": "true"}),
            Layer("attached", "convolution", (640, 0), (Source("plain"),), conv, ActivationSpec("relu")),
            Layer("bypassed", "convolution", (960, 0), (Source("attached"),), conv, attributes={"lw:bypassed": "true"}),
            Layer("closed", "convolution", (1280, 0), (Source("bypassed"),), conv, attributes={"lw:collapsed": "true"}),
            Layer("joined", "concatenation", (1600, 0), (Source("closed"), Source("plain"))),
            Layer("twice", "template", (1920, 0), (Source("joined"),), {"template": "both"}),
            Layer("again", "template", (1920, 300), (Source("joined"),), {"template": "both"}),
            Layer("output", "output", (2240, 0), (Source("twice"),)),
            Layer("error", "convolution", (320, 300), (), conv),
            Layer("after_error", "convolution", (640, 300), (Source("error"),), conv),
            Layer("strange", "of_a_plugin", (320, 600), (), {"secret": "1"}),
            Layer("target", "input", (1920, 600), params={"dims": "64x48x11"}),
            Layer("loss", "l1_loss", (2240, 600), (Source("again"), Source("target"))),
            Layer(
                "with_a_name_that_is_longer_than_its_box_was_made_for",
                "convolution",
                (640, 600),
                (Source("image"),),
                conv,
            ),
        ],
        name="looks",
        templates=[Template("both", inner)],
    )


@pytest.fixture
def canvas(qtbot):
    canvas = kit.open_canvas(qtbot, every_look(), (900, 600))
    canvas.projection.inspect("attached")
    canvas.context.select(("plain",))
    return canvas


def record(name: str, found: dict[str, list[str]]) -> None:
    """Compare what is painted with the record."""
    lines = [f"{place}: {line}" for place, painted_lines in found.items() for line in painted_lines or ["nothing"]]
    check_recorded(f"canvas/{name}.txt", "".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize("zoom", SCALES)
def test_nodes_of_every_look(canvas, zoom):
    names = canvas.projection.layers
    found = {name: painted(canvas.projection[name], zoom) for name in names}
    if zoom < node_paint.READABLE:  # where names are broken or cut off depends on the font
        found = {name: list(dict.fromkeys(NAMED.sub("text filled", line) for line in found[name])) for name in found}
    record(f"nodes_at_{zoom}", found)


@pytest.mark.parametrize("zoom", [1.0, 0.3])
def test_outlines_and_marks_of_nodes_in_every_state(qapp, zoom):
    """All that is painted besides texts: the outline is that of the selection before that of a problem before the others."""
    found = {}
    for problem, inspected, training, collapsed in product(("", "error", "warning", "unknown"), *[(False, True)] * 3):
        for selected, bypassed in ((False, False), (True, False), (False, True)):
            ports = (PortLook("x"), PortLook("y", free=True))
            look = NodeLook("n", "Title", Category.CONVOLUTION, "", "relu" if inspected else "", ports, ports[:1])
            look = replace(look, problem=problem, inspected=inspected, training=training)
            look = replace(look, collapsed=collapsed, bypassed=bypassed)
            item = LayerItem()
            item.show_look(look, layout(look))
            item.setSelected(selected)
            assert item.isSelected() is selected
            flags = {"inspected": inspected, "training": training, "alone": collapsed, "selected": selected}
            words = [problem, *(name for name, on in (flags | {"bypassed": bypassed}).items() if on)]
            right, lines = item.layout.box.right(), []
            for stroke in strokes(item, zoom):
                at = f" at {right - stroke.area.center().x():.0f}" if stroke.kind == "image" else ""
                if stroke.kind != "text" or stroke.text in "!?":
                    lines.append(f"{stroke}{at}")
            found[" ".join(filter(None, words)) or "plain"] = [", ".join(lines)]
    record(f"states_of_nodes_at_{zoom}", found)


def test_a_node_is_a_box_down_to_the_scale_at_which_its_texts_can_be_read(qapp):
    item, scale = LayerItem(), node_paint.READABLE
    look = NodeLook("n", "A title", None)
    item.show_look(look, layout(look))
    for detail, shown in ((scale, ["n", "A title"]), (scale + 0.01, ["n", "A title"]), (scale - 0.01, ["n"])):
        assert texts(lambda painter, detail=detail: node_paint.paint(painter, item, detail)) == shown


NAMES = ("n", "a_name_of_some_length", "a_name_that_is_longer_than_any_box_would_be_without_it")


@pytest.mark.parametrize("name", NAMES)
def test_a_node_of_any_look_has_room_for_its_parts(qapp, name):
    """Its name and the marks next to it, the texts and names of ports side by side, the tab of its activation, and what is below it."""
    f = fonts()

    def wide(font: str, *texts: str) -> float:
        return max((getattr(f, f"{font}_metrics").horizontalAdvance(text) for text in texts), default=0.0)

    many = tuple(PortLook(text) for text in ("prediction", "target", "mask", "weight"))
    for collapsed, problem, inspected, training in product(
        (False, True), ("", "unknown", "error"), *[(False, True)] * 2
    ):
        for ins, outs, activation, summary in (
            ((), (), "", ""),
            (many[:1], many[:1], "relu", "3 x 3"),
            (many, many[:1], "", "a summary of the parameters that is rather long"),
            (many[:2], many, "leaky_relu", ""),
        ):
            look = NodeLook(name, "A title", None, summary, activation, ins, outs, ("32 x 64 x 64",) * len(outs))
            look = replace(look, problem=problem, inspected=inspected, training=training, collapsed=collapsed)
            place = layout(look)
            marks = bool(problem) + inspected + training
            box, shown = place.box, not collapsed
            assert box.topLeft() == QPointF(0, 0)
            assert box.width() % (GRID // 2) == box.height() % (GRID // 2) == 0
            needed = PAD + wide("name", name) + marks * (MARK + MARK_GAP) + PAD
            assert needed <= box.width()
            if collapsed:  # no wider than for its name
                assert box.width() < needed + GRID // 2
                assert box.height() - (f.name_metrics.height() + 8) < GRID
                assert place.header == box.height()
                assert set(place.inputs) <= {(0.0, box.height() / 2)}
                assert set(place.outputs) <= {(box.width(), box.height() / 2)}
                assert place.tab.isEmpty()
            else:
                columns = [
                    wide("small", *(port.name for port in ports)) + 10 if len(ports) > 1 else 0.0
                    for ports in (ins, outs)
                ]
                assert [place.left, place.right] == columns
                body = max(wide("small", look.title), wide("mono", summary))
                assert PAD + columns[0] + body + columns[1] + PAD <= box.width()
                assert place.tab.isEmpty() is (not activation)
                assert place.tab.isEmpty() or place.tab.width() >= wide("small", activation) + 16
                steps = [b - a for a, b in pairwise([y for _, y in place.inputs])]
                assert all(step >= f.small_metrics.height() + 2 for step in steps)
            assert (len(place.inputs), len(place.outputs)) == (len(ins), len(outs))
            for number, (x, y) in enumerate(place.outputs):
                assert x == box.right() + (place.tab.width() if number == 0 and shown else 0)
                assert place.header <= y <= box.bottom() or collapsed
            for x, y in place.inputs:
                assert x == 0
                assert place.header < y < box.bottom() or collapsed
            assert box.contains(place.mark)
            assert place.mark.right() == box.right() - PAD
            assert place.mark.center().y() == place.header / 2
            reach = PORT_RADIUS + 2
            ports = [QRectF(x - reach, y - reach, 2 * reach, 2 * reach) for x, y in (*place.inputs, *place.outputs)]
            under = QRectF(PAD, box.bottom() + 2, wide("mono", look.under), f.mono_metrics.height() if shown else 0)
            for part in (box, place.tab, under if shown else box, *ports):
                assert place.bounds.contains(part) or part.isEmpty(), part


@pytest.mark.parametrize("zoom", [0.6, 0.25])
def test_a_block_has_its_whole_name_or_both_ends_of_it(canvas, zoom):
    for name in set(canvas.projection.layers) - {"closed"}:  # there is room for nothing there
        lines = [text for text in texts(canvas.projection[name], zoom) if text not in ("!", "?")]
        head, _, tail = "".join(lines).partition("…")
        assert name.startswith(head)
        assert name.endswith(tail)
        assert head + tail
        assert "…" in "".join(lines) or head == name


@pytest.mark.parametrize("zoom", [node_paint.READABLE, 0.8, 1.0])
def test_a_name_ends_before_the_marks_of_its_layer(qapp, zoom):
    """Also where it is larger than its box was made for, as with a small font of the application."""
    before, small = qapp.font(), qapp.font()
    small.setPointSizeF(5)
    look = NodeLook(f"{NAMES[-1]}_and_more", "Title", Category.CONVOLUTION, problem="error")
    try:
        for font, marks in product((before, small), range(3)):
            qapp.setFont(font)
            shown = replace(look, inspected=marks > 0, training=marks > 1)
            item = LayerItem()
            item.show_look(shown, layout(shown))
            (name,) = [stroke for stroke in strokes(item, zoom) if stroke.text.startswith("a_name")]
            assert name.area.left() == pytest.approx(PAD, abs=0.1)
            end = PAD + node_paint.name_font(zoom)[1].horizontalAdvance(name.text)
            assert end <= item.layout.mark.left() - marks * (MARK + MARK_GAP) + 0.5, (font, marks)
            (header,) = [stroke.area for stroke in strokes(item, zoom) if stroke.fill == "category Convolution"]
            assert header.getRect() == pytest.approx((0, 0, item.layout.box.width(), item.layout.header))
    finally:
        qapp.setFont(before)


@pytest.mark.parametrize("metric", node_metrics.METRICS)
def test_every_metric_is_below_its_layer(canvas, metric):
    before = node_metrics.shown()
    node_metrics.show(metric)
    try:
        canvas.projection.refresh(canvas.projection.layers)
        for name in canvas.projection.layers:
            item = canvas.projection[name]
            below = [
                s.text for s in strokes(item) if s.kind == "text" and s.area.center().y() > item.layout.box.bottom()
            ]
            shapes = [
                str(tensor).removeprefix("N x ")
                for tensor in canvas.context.document.inference.states[name].outputs or ()
            ]
            if item.look.collapsed:
                assert below == []
            elif metric == "shapes":
                assert below == ([", ".join(shapes)] if shapes else [])
            else:
                assert below == [item.look.metric]
    finally:
        node_metrics.show(before)


@pytest.mark.parametrize("zoom", [1.0, 1.5])
def test_everything_of_a_node_is_inside_its_bounds_and_no_text_meets_another(canvas, zoom):
    for name in canvas.projection.layers:
        item = canvas.projection[name]
        found = strokes(item, zoom)
        room = item.boundingRect().adjusted(-1, -1, 1, 1)
        assert all(room.contains(stroke.area.center()) for stroke in found), name
        placed = [stroke for stroke in found if stroke.kind == "text" and stroke.text not in "!?"]
        outside = [s.text for s in placed if s.area.right() > room.right() or s.area.bottom() > room.bottom() + 2]
        assert not outside, name
        box = item.layout.box
        wide = [s.text for s in placed if box.contains(s.area.center()) and s.area.right() > box.right() - PAD + 1]
        assert not wide, name
        for number, one in enumerate(placed):
            for other in placed[number + 1 :]:
                shared = one.area.intersected(other.area)
                assert min(shared.width(), shared.height()) <= 3, (name, one.text, other.text)


def test_ports_are_painted_where_links_end(canvas):
    for name in canvas.projection.layers:
        item = canvas.projection[name]
        circles = [s.area.center() for s in strokes(item) if s.kind in ("circle", "ellipse")]
        for dot in (*item.inputs, *item.outputs):
            assert any((center - dot.pos()).manhattanLength() < 0.01 for center in circles), (name, dot.look.name)
            assert dot.center() == item.pos() + dot.pos()


def test_ports_that_are_hovered_or_refused(canvas):
    item = canvas.projection["joined"]
    found = {}
    for state in ("hovered", "refused", "misfit"):
        dot = item.inputs[0]
        dot.hovered = state == "hovered"
        dot.refuse("no" if state == "refused" else "", "no" if state == "misfit" else "")
        found[state] = painted(item)
    record("ports", found)


def test_ports_in_every_combination_of_states(canvas):
    """Whether it is hovered, why it is refused, whether it is free, and whether it has a link."""
    item = canvas.projection["joined"]
    linked, free = item.inputs[0], item.inputs[-1]
    assert linked.connected_pipes
    assert not free.connected_pipes
    found = {}
    for dot, hovered, refusal, misfit, is_free in product((linked, free), *[(False, True)] * 4):
        dot.hovered = hovered
        dot.refuse("no" * refusal, "other" * misfit)
        dot.look = replace(dot.look, free=is_free)
        flags = {"linked": dot is linked, "hovered": hovered, "refused": refusal, "misfit": misfit, "free": is_free}
        made = strokes(lambda painter, dot=dot: node_paint._paint_port(painter, dot))
        lines = [f"{stroke} wide {stroke.area.width():g}" for stroke in made]
        found[" ".join(name for name, on in flags.items() if on) or "plain"] = [", ".join(lines)]
    record("ports_in_every_state", found)


# --- links -----------------------------------------------------------------------------------------------------------


def test_links_in_every_state(canvas):
    canvas.context.select(())
    link = canvas.projection.link("attached", 0)
    far = canvas.projection.link("joined", 1)
    found = {"plain": painted(link), "far out": painted(link, 0.6), "no room for the label": painted(far)}
    link.hoverEnterEvent(None)
    found["hovered"] = painted(link)
    link.hoverLeaveEvent(None)
    found["left"] = painted(link)
    link.setSelected(True)
    found["selected"] = painted(link)
    link.setSelected(False)
    for end in ("plain", "attached"):
        canvas.context.select((end,))
        found[f"with {end} selected"] = painted(link)
    canvas.context.select(("bypassed",))
    found["upstream of the selected layer"] = painted(link)
    canvas.context.select(("image",))
    found["downstream of the selected layer"] = painted(link)
    canvas.context.select(("error",))
    found["elsewhere"] = painted(link)
    document = canvas.context.document
    document.do(lambda g: routes.set_route(g, "attached", 0, [(500, 200), (560, 240)], "Bend"))
    found["with points"] = painted(canvas.projection.link("attached", 0))
    record("links", found)


@pytest.mark.parametrize("zoom", [1.0, 0.7, 0.6])
def test_links_in_every_combination_of_states(canvas, zoom):
    """What is selected or hovered has the color of activity, before that of the path; labels give way to titles of frames."""
    canvas.context.select(())
    document, link = canvas.context.document, canvas.projection.link("attached", 0)
    titles: list[QRectF] = []
    link._titles = lambda: titles
    found = {}
    for points, covered in product((False, True), repeat=2):
        document.do(
            lambda g, on=points: routes.set_route(g, "attached", 0, [(500, 200), (560, 240)] if on else [], "Bend")
        )
        titles[:] = (
            [link.label_box.adjusted(2, 2, 40, 40)] if covered else [QRectF(link.label_box.bottomRight(), QSizeF(9, 9))]
        )
        for hovered, selected, source, target, path in product((False, True), repeat=5):
            link.show_target(hovered)
            link.setSelected(selected)
            link.source.node.setSelected(source)
            link.target.node.setSelected(target)
            link.on_path = path
            flags = {"hovered": hovered, "selected": selected, "source": source, "target": target, "path": path}
            flags |= {"points": points, "label covered": covered}
            lines = [
                f"{stroke} wide {stroke.area.width():g}" if stroke.kind in ("circle", "ellipse") else str(stroke)
                for stroke in strokes(link, zoom)
            ]
            found.setdefault(", ".join(lines), []).append(
                " + ".join(name for name, on in flags.items() if on) or "plain"
            )
            assert link.emphasized is (hovered or selected or source or target)
    record(f"links_in_every_state_at_{zoom}", {" | ".join(states): [line] for line, states in found.items()})


def test_points_of_links_are_painted_where_they_are(canvas):
    canvas.context.document.do(lambda g: routes.set_route(g, "attached", 0, [(500, 200), (560, 240)], "Bend"))
    link = canvas.projection.link("attached", 0)
    circles = [s.area.center() for s in strokes(link) if s.kind in ("circle", "ellipse")]
    assert circles == [QPointF(500, 200), QPointF(560, 240)]


@pytest.mark.parametrize("inward", [False, True])
def test_a_link_that_is_dragged_runs_from_the_output_to_the_input(canvas, inward):
    live = LiveLink()
    canvas.viewer.scene().addItem(live)
    item = canvas.projection["plain"]
    port = item.inputs[0] if inward else item.outputs[0]
    found = {}
    for refused in (False, True):
        live.follow(port, QPointF(700, 500), refused=refused)
        ends = [live.path().pointAtPercent(at) for at in (0, 1)]
        assert ends == ([QPointF(700, 500), port.center()] if inward else [port.center(), QPointF(700, 500)])
        found["refused" if refused else "accepted"] = painted(live)
        style = live.pen().style()
        assert style is (Qt.PenStyle.DotLine if refused else Qt.PenStyle.DashLine)
    record("dragged_link", found)
    canvas.viewer.scene().removeItem(live)


# --- frames ----------------------------------------------------------------------------------------------------------

FRAMES = {
    "plain": Frame("f", "in", "first line", "", (0, 0, 400, 300)),
    "colored": Frame("f", "in", "", "#804000", (0, 0, 400, 300)),
    "with a bad color": Frame("f", "in", "", "no color", (0, 0, 400, 300)),
    "collapsed": Frame("f", "in", "first line", "", (0, 0, 400, 300), collapsed=True),
    "without a title": Frame("f", "", "first line", "", (0, 0, 400, 300)),
}


@pytest.mark.parametrize("zoom", [1.0, 0.4])
def test_frames_of_every_look(canvas, zoom):
    found = {}
    for name, frame in FRAMES.items():
        item = FrameItem(frame)
        canvas.viewer.scene().addItem(item)
        found[name] = painted(item, zoom)
        item.members = ("a",)
        item.setSelected(True)
        found[f"{name}, selected, with a layer"] = painted(item, zoom)
        canvas.viewer.scene().removeItem(item)
    record(f"frames_at_{zoom}", found)


@pytest.mark.parametrize("zoom", [1.0, 0.45, 0.4])
def test_frames_in_every_combination_of_states(qapp, zoom):
    found: dict[str, list[str]] = {}
    for collapsed, selected, color, text, members in product(
        (False, True), (False, True), ("", "#804000", "no color"), ("", "text"), ((), ("a",), ("a", "b"))
    ):
        item = FrameItem(Frame("f", "in", text, color, (0, 0, 400, 300), collapsed=collapsed))
        item.members = members
        item.setSelected(selected)
        states = ("collapsed" * collapsed, "selected" * selected, color, text, f"{len(members)} members")
        found.setdefault(", ".join(painted(item, zoom)), []).append(" + ".join(filter(None, states)))
    record(f"frames_in_every_state_at_{zoom}", {" | ".join(states): [line] for line, states in found.items()})


@pytest.mark.parametrize("zoom", [1.0, 0.5, 0.4, 0.2])
def test_a_long_title_is_cut_off_at_the_edge_of_its_frame(canvas, zoom):
    item = FrameItem(
        Frame("f", "the encoder of the network and all that belongs to it, with its skips", "", "", (0, 0, 300, 200))
    )
    (title,) = [stroke for stroke in strokes(item, zoom) if stroke.kind == "text"]
    assert title.text.endswith("…")
    assert title.area.right() <= 300
    assert title.area.left() >= 0
    assert len(title.text) > 1


@pytest.mark.parametrize("zoom", [1.0, 0.4, 0.26])
def test_the_title_of_a_collapsed_frame_is_read_from_afar(canvas, zoom):
    item = FrameItem(Frame("f", "residual", "", "", (0, 0, 300, 200), collapsed=True))
    title = next(stroke for stroke in strokes(item, zoom) if stroke.kind == "text")
    assert title.text == "residual"
    assert item.boundingRect().contains(title.area)


@pytest.mark.parametrize("title", ["", "in", "the encoder with all of its skips and more"])
@pytest.mark.parametrize("count", [0, 1, 12])
def test_the_box_of_a_collapsed_frame_has_room_for_its_title_and_the_count(canvas, title, count):
    item = FrameItem(Frame("f", title, "", "", (40, 20, 300, 200), collapsed=True))
    item.members = tuple("abcdefghijkl"[:count])
    found = [stroke for stroke in strokes(item) if stroke.kind == "text" and stroke.text]
    assert [stroke.text for stroke in found] == [
        *([title] if title else []),
        "1 layer" if count == 1 else f"{count} layers",
    ]
    width, height = item.seen.size().toTuple()
    assert item.seen.topLeft() == QPointF(40, 20)
    assert width >= LEAST_WIDTH
    assert width == LEAST_WIDTH or len(title) > 2
    for stroke in found:
        assert abs(stroke.area.center().y() - height / 2) < 4
    assert found[-1].area.right() == pytest.approx(width - PAD, abs=3)
    if title:
        assert found[0].area.left() == pytest.approx(PAD, abs=3)
        assert found[0].area.right() + PAD < found[-1].area.left()
    assert item.end(is_input=True) == QPointF(40, 20 + height / 2)
    assert item.end(is_input=False) == QPointF(40 + width, 20 + height / 2)


def anchor(area: QRectF, box: QRectF) -> str:
    """The edge of a box, or its middle, that a text is nearest to across, and whether it is inside."""
    left, right = area.left() - box.left(), box.right() - area.right()
    across = "middle" if abs(left - right) < 6 else "left" if left < right else "right"
    return f"{across}, {'inside' if box.adjusted(-1, -1, 1, 1).contains(area) else 'outside'}"


def test_texts_are_at_the_edges_at_which_they_were_recorded(canvas):
    """From top to bottom, for every look of nodes, frames, badges, marks and cells."""
    found = {}

    def add(name: str, item: object, box: QRectF, zoom: float = 1.0) -> None:
        seen = sorted(
            (s for s in strokes(item, zoom) if s.kind == "text" and s.text), key=lambda s: s.area.center().y()
        )
        found[f"{name} at {zoom}"] = [f"{s.text!r} {anchor(s.area, box)}" for s in seen]

    for name in set(canvas.projection.layers) - {"with_a_name_that_is_longer_than_its_box_was_made_for"}:
        add(name, canvas.projection[name], canvas.projection[name].layout.box)
    for name, frame in FRAMES.items():
        for zoom in (1.0, 0.4):
            item = FrameItem(frame)
            item.members = ("a", "b")
            add(f"frame {name}", item, QRectF(QPointF(), item.seen.size()), zoom)
    heat = HeatItem()
    heat.show_cells([Cell(QRectF(0, 0, 400, 200), 1.0, "4 s")], [])
    add("heat", heat, QRectF(0, 0, 400, 200))
    marks = DifferenceMarks()
    marks.show_marks([Mark("−", QRectF(0, 0, 400, 200), "gone")])
    add("difference", marks, QRectF(0, 0, 400, 200))
    badges = FormatBadges()
    badges.show_badges([Badge(QRectF(0, 0, 160, 18), "INT8", "tip")])
    add("format", badges, QRectF(0, 0, 160, 18))
    record("anchors", dict(sorted(found.items())))


@pytest.mark.parametrize("width", [160, 288, 448])
def test_a_frame_of_the_needed_height_shows_all_of_its_text(canvas, width):
    """One word more each time: some of the texts fill their last line."""
    words = "a note on why these features and not more of them were kept in this part".split()
    for count in range(4, 3 * len(words)):
        text = " ".join((words * 3)[:count])
        item = FrameItem(Frame("f", "title", text, "", (0, 0, width, needed_height(width, f"title\n{text}"))))
        for zoom in (1.0, WHOLE):
            assert " ".join(texts(item, zoom)[:-1]) == text
            assert all(s.area.bottom() <= item.seen.bottom() for s in strokes(item, zoom) if s.kind == "text")


@pytest.mark.parametrize("zoom", [1.0, 0.6, LARGE, 0.4, 0.2])
def test_the_text_of_a_frame_is_below_its_title(canvas, zoom):
    """From afar the title is above the frame, and the text begins at the upper edge. Only whole lines are painted."""
    text = "\n".join(f"line {number}" for number in range(40))
    item = FrameItem(Frame("f", "title", text, "", (0, 0, 400, 320)))
    *lines, title = [stroke for stroke in strokes(item, zoom) if stroke.kind == "text"]
    assert title.text == "title"
    shown = [stroke for stroke in lines if stroke.area.bottom() <= 320 - PAD + 1]
    assert [stroke.text for stroke in shown] == [f"line {number}" for number in range(len(shown))]
    assert len(shown) >= 2
    assert all(stroke.area.left() == pytest.approx(PAD, abs=2) for stroke in shown)
    if zoom >= LARGE:
        assert 0 <= title.area.top() < title.area.bottom() <= shown[0].area.top() + 1
        assert shown[0].area.top() == pytest.approx(text_top() / zoom, abs=3 / zoom)
    else:
        assert title.area.bottom() <= 0
        assert shown[0].area.top() == pytest.approx(PAD, abs=3)


@pytest.mark.parametrize("zoom", [1.0, 0.4])
@pytest.mark.parametrize(
    "text", ["a word " * 400, "\n" * 3 + "line\n" * 90, "w" * 900, "\U0001f600 word " * 200], ids=repr
)
def test_the_text_of_a_frame_stays_inside_without_clipping(canvas, text, zoom):
    """An SVG has none."""
    item = FrameItem(Frame("f", "", text, "", (0, 0, 200, 160)))
    found = [stroke for stroke in strokes(item, zoom) if stroke.kind == "text" and stroke.text]
    assert len(found) >= 2
    shown = "".join(stroke.text for stroke in found).replace(" ", "")
    assert "".join(text.split()).startswith(shown)
    for stroke in found:
        assert stroke.area.bottom() <= 160 - PAD + 1
        assert stroke.area.right() <= 200 + 1


@pytest.mark.parametrize("height", range(112, 176, 16))
def test_no_line_of_a_comment_is_cut_through(canvas, height):
    """Below the last whole line that fits there is nothing but the ground of the frame."""
    item = FrameItem(Frame("f", "", "gggg\n" * 40, "", (0, 0, 200, height)))
    image = QImage(200, height, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    item.paint(painter, QStyleOptionGraphicsItem(), None)
    painter.end()
    ground = image.pixel(150, height // 2)
    inked = [y for y in range(4, height - 4) if any(image.pixel(x, y) != ground for x in range(8, 80))]
    rows = [[y] for y in inked if y - 1 not in inked]
    for row in rows:
        while row[-1] + 1 in inked:
            row.append(row[-1] + 1)
    assert len(rows) >= 3
    assert {len(row) for row in rows} == {len(rows[0])}, "every line has its descenders"


def test_what_is_in_front_of_what(canvas):
    """Links are between comment frames and everything that they lead to: layers and collapsed frames."""
    link = next(edge.item for edge in canvas.projection.links if edge.item is not None)
    node = canvas.projection["plain"]
    opened, shut = (FrameItem(Frame("f", "title", collapsed=collapsed)) for collapsed in (False, True))
    live = LiveLink()
    assert opened.zValue() < link.zValue() < shut.zValue() < node.zValue() < live.zValue() < canvas.heat.item.zValue()
    selected = [item.flags() & item.GraphicsItemFlag.ItemIsSelectable for item in (opened, shut, link, node)]
    assert all(selected)


# --- marks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zoom", [1.0, 0.3])
def test_badges_of_number_formats(qapp, zoom):
    item = FormatBadges()
    item.show_badges([Badge(QRectF(0, 0, 60, 18), "INT8", "tip"), Badge(QRectF(100, 50, 60, 18), "FP16", "tip", True)])
    record(f"format_badges_at_{zoom}", {"badges": painted(item, zoom)})
    shapes = [stroke.area for stroke in strokes(item, zoom) if stroke.kind != "text"]
    for area, (left, middle) in zip(shapes, ((0, 9), (100, 59)), strict=True):
        assert area.center().y() == pytest.approx(middle)
        assert (area.left() if zoom == 1 else area.center().x()) == pytest.approx(left)


@pytest.mark.parametrize("zoom", [1.0, 0.3])
def test_marks_of_differences(qapp, zoom):
    item = DifferenceMarks()
    signs = "+~→−"
    item.show_marks([Mark(s, QRectF(0, 200 * n, 160, 48), "gone" if s == "−" else "") for n, s in enumerate(signs)])
    record(f"difference_marks_at_{zoom}", {"marks": painted(item, zoom)})
    badges = [stroke.area for stroke in strokes(item, zoom) if stroke.kind in ("circle", "ellipse")]
    assert len(badges) == (4 if zoom >= 0.35 else 0)
    for number, area in enumerate(badges):
        assert area.center() == QPointF(-6, 200 * number - 6)
        assert area.width() * zoom == pytest.approx(20, abs=0.01)


@pytest.mark.parametrize("zoom", [2.0, 1.0, 0.3, 0.1])
def test_the_frame_of_a_cell_of_the_heat_is_never_thinner_than_can_be_seen(qapp, zoom):
    item = HeatItem()
    item.show_cells([Cell(QRectF(0, 0, 144, 64), 1.0, "")], [])
    (frame,) = [stroke.area for stroke in strokes(item, zoom) if stroke.kind == "path"]
    band = max(BAND, MIN_BAND / zoom)
    found, expected = frame.getRect(), QRectF(0, 0, 144, 64).adjusted(-band, -band, band, band).getRect()
    assert found == pytest.approx(expected, abs=0.5)


@pytest.mark.parametrize("zoom", [1.0, 0.3])
def test_cells_of_the_heat(qapp, zoom):
    cells = {
        "none": Cell(QRectF(0, 0, 144, 64), 0.0, "0 s"),
        "most": Cell(QRectF(0, 200, 144, 64), 1.0, "4 s"),
        "less": Cell(QRectF(0, 400, 144, 64), -1.0, "-4 s", signed=True),
        "more": Cell(QRectF(0, 600, 144, 64), 1.0, "+4 s", signed=True),
        "problem": Cell(QRectF(0, 800, 144, 64), 0.5, "dead", problem=True),
        "without a label": Cell(QRectF(0, 1000, 144, 64), 0.5, ""),
    }
    item = HeatItem()
    item.show_cells(list(cells.values()), [])
    found = strokes(item, zoom)
    frames = [stroke for stroke in found if stroke.kind == "path"]
    wanted = [
        heat_color(0),
        heat_color(1),
        heat_color(-1, signed=True),
        heat_color(1, signed=True),
        theme.color("error"),
    ]
    colors = [role(ink) for ink in (*wanted, heat_color(0.5))]
    shown = [f for f in frames if any(f.area.contains(cell.rect) for cell in cells.values())]
    assert [frame.fill for frame in shown] == colors
    labels = [cell.label for cell in cells.values() if cell.label]
    assert [s.text for s in found if s.kind == "text"] == (labels if zoom == 1 else [])


def test_labels_of_the_heat_are_read_on_their_color_at_the_upper_right_of_their_layer(qapp):
    """Black or white, as the color needs it: some of both, in each theme."""
    for dark in (False, True):
        with theme.as_if(dark=dark):
            inks = set()
            for share, signed, problem in (
                *((n / 8, False, False) for n in range(9)),
                *((n / 4, True, False) for n in range(-4, 5)),
                (0.5, False, True),
            ):
                cell = Cell(QRectF(80, 40, 144, 64), share, "12 ms", signed, problem)
                item = HeatItem()
                item.show_cells([cell], [])
                found = strokes(item)
                (text,) = [stroke for stroke in found if stroke.kind == "text"]
                assert text.fill == role(theme.ink_on(cell.color)), share
                inks.add(theme.ink_on(cell.color).name())
                (plate,) = [s for s in found if s.area.contains(text.area.center()) and s.fill and s is not text]
                assert plate.fill == role(cell.color)
                assert plate.area.right() == pytest.approx(cell.rect.right() + BAND, abs=0.5)
                assert plate.area.bottom() == pytest.approx(cell.rect.top() - BAND + 2, abs=0.5)
                assert plate.area.left() <= text.area.left() <= text.area.right() <= plate.area.right()
            assert inks == {"#000000", "#ffffff"}


@pytest.mark.parametrize("by_hand", [False, True])
def test_number_formats_are_read_on_the_color_of_their_badge(qapp, by_hand):
    for dark in (False, True):
        with theme.as_if(dark=dark):
            item = FormatBadges()
            item.show_badges([Badge(QRectF(0, 0, 60, 18), "int8", "tip", by_hand)])
            plate, text = strokes(item)
            ground = theme.color("warning" if by_hand else "info")
            assert (plate.fill, text.fill, text.text) == (role(ground), role(theme.ink_on(ground)), "int8")
            assert plate.area.contains(text.area.center())


SIGNED = (False, True)


@pytest.mark.parametrize("signed", SIGNED)
def test_the_legend_has_the_colors_and_the_amounts_of_the_ends(canvas, signed):
    metric = DIFFERENCE if signed else Metric("blame", "Share of the error", "%", lambda row: None, extensive=False)
    for before in (Metric("other", "Another", "B", lambda row: None), DIFFERENCE):  # nothing is left of it
        canvas.heat.show_given(Heat(before, {"plain": 5.0, "attached": -9.0 if before is DIFFERENCE else 9.0}))
        canvas.heat.legend.grab()
    canvas.heat.show_given(Heat(metric, {"plain": 4.0, "attached": -2.0 if signed else 2.0}))
    legend = canvas.heat.legend
    found = strokes(legend)
    least, most = ("-4.00 s", "+4.00 s") if signed else ("0", "4.00 %")
    written = {stroke.text: stroke.area for stroke in found if stroke.kind == "text"}
    assert list(written) == [metric.title, least, most]
    assert written[least].left() < written[most].left()
    assert written[most].right() <= legend.width()
    assert written[least].right() < written[most].left()
    (bar,) = [stroke for stroke in found if stroke.kind == "image"]
    ends = (heat_color(-1, signed=True), heat_color(1, signed=True)) if signed else (heat_color(0), heat_color(1))
    assert bar.fill == " to ".join(color.name() for color in ends)


def test_the_far_view_is_painted_in_the_colors_of_the_nodes(canvas):
    canvas.context.select(("plain",))
    far = canvas.projection.collect_far()
    while not canvas.projection.collect_blocks():
        pass
    for zoom in (0.4, 0.16):
        found = strokes(lambda painter, zoom=zoom: far.paint(painter, zoom), zoom)
        blocks = {(s.fill, s.area.topLeft().toTuple()) for s in found if s.kind == "rect" and s.fill}
        nodes = {
            (s.fill, (s.area.topLeft() + canvas.projection[name].pos()).toTuple())
            for name in canvas.projection.layers
            for s in strokes(canvas.projection[name], zoom)
            if s.kind == "rect" and s.fill
        }
        assert blocks == nodes
        around = {
            (s.pen.partition(" ")[2], s.area.center().toTuple()) for s in found if s.kind == "rect" and not s.fill
        }
        wanted = {
            (s.pen.partition(" ")[2], (s.area.center() + canvas.projection[name].pos()).toTuple())
            for name in canvas.projection.layers
            for s in strokes(canvas.projection[name], zoom)
            if s.kind == "rect" and not s.fill and (zoom >= node_paint.NAMED or "dashed" not in s.pen)
        }
        assert around == wanted
        record(f"far_view_at_{zoom}", {"far view": [str(stroke) for stroke in found]})


# --- screens with more pixels ----------------------------------------------------------------------------------------


def ink(target: Callable[[QPainter], None], ratio: int, zoom: float) -> float:
    """How much is painted, in pixels of an ordinary screen, on a screen with `ratio` times as many a side."""
    image = QImage(1200 * ratio, 900 * ratio, QImage.Format.Format_ARGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(200, 200)
    painter.scale(zoom, zoom)
    target(painter)
    painter.end()
    alpha = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1, 4)[:, :, 3]
    return float(alpha.sum()) / 255 / ratio**2


def item_on(canvas, item) -> Callable[[QPainter], None]:
    """Paint an item of the canvas around the corner of its bounds."""
    area = item.boundingRect()
    option = QStyleOptionGraphicsItem()
    option.exposedRect = area

    def paint(painter: QPainter) -> None:
        painter.translate(-area.topLeft())
        item.paint(painter, option, None)

    return paint


def outline_of(canvas, what: str) -> Callable[[QPainter], None]:
    """What paints lines of a fixed width on the screen."""
    if what.startswith("link"):
        link = canvas.projection.link("twice", 0)
        link.set_label("")
        link.setSelected(what.endswith("selected"))
        return item_on(canvas, link)
    if what == "dragged link":
        live = LiveLink()
        canvas.viewer.scene().addItem(live)
        live.follow(canvas.projection["plain"].outputs[0], QPointF(900, 400), refused=False)
        return item_on(canvas, live)
    if what.startswith("differences"):
        marks = DifferenceMarks()
        marks.show_marks([Mark("+", QRectF(0, 0, 600, 400))])
        return item_on(canvas, marks)
    if what == "critical path":
        heat = HeatItem()
        heat.show_cells([], [QRectF(0, 0, 20, 20), QRectF(500, 400, 20, 20)])
        return item_on(canvas, heat)
    canvas.context.select(("loss",) if what == "selected blocks" else ("bypassed",))
    far = canvas.projection.collect_far()
    far.blocks, far.ghosts, far.problems = {}, {}, []
    far.training = far.training if what == "the training branch" else []
    far.selected = far.selected if what == "selected blocks" else []
    far.links = far.links if what == "links from afar" else QPainterPath()
    far.marked = far.marked if what == "links of the selected layer from afar" else {}
    return lambda painter: far.paint(painter, 0.3)


OUTLINES = {
    "link": 1.0,
    "link, selected": 1.0,
    "dragged link": 1.0,
    "differences": 0.3,
    "critical path": 1.0,
    "the training branch": 0.3,
    "selected blocks": 0.3,
    "links from afar": 0.3,
    "links of the selected layer from afar": 0.3,
}


@pytest.mark.parametrize("what", OUTLINES)
def test_lines_are_as_thick_on_a_screen_with_more_pixels(canvas, monkeypatch, what):
    monkeypatch.setattr(QWidget, "devicePixelRatioF", lambda widget: 1.0)
    one = ink(outline_of(canvas, what), 1, OUTLINES[what])
    monkeypatch.setattr(QWidget, "devicePixelRatioF", lambda widget: 2.0)
    two = ink(outline_of(canvas, what), 2, OUTLINES[what])
    assert one > 20
    assert two == pytest.approx(one, rel=0.12)


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["conv", "encoder_attention_7", "a.b.c.d", "convolution", "_", "a_very_long_name_of_a_layer_17"]
)
@pytest.mark.parametrize("zoom", [0.2, 0.25, 0.4, 0.65, 1.0])
def test_lines_of_a_name_are_inside_its_block(qapp, name, zoom):
    font, metrics = node_paint.name_font(zoom)
    for height in (16, 24, 40, 64, 96, 160):
        for width in (48, 96, 144, 240, 640):
            lines = node_paint.name_lines(width, height, name, zoom)
            assert len(lines) == 1 or 2 * font.pixelSize() <= height
            widest = max(metrics.horizontalAdvance(line) for line in lines)
            assert widest <= width - 2 * node_paint.EDGE / zoom or all(len(line) <= 2 for line in lines)
            whole = "".join(lines)
            head, _, tail = whole.partition("…")
            cut = name.startswith(head) and name.endswith(tail) and "…" in whole
            assert whole == name or cut or len(whole) < 2  # where there is hardly any room
            if metrics.horizontalAdvance(name) <= width - 2 * node_paint.EDGE / zoom - 1:
                assert lines == (name,)


@pytest.mark.parametrize(("name", "lines"), [("Hd", 1), ("Hdddddd.Hdddddd", 2)])
@pytest.mark.parametrize("block", [QRectF(20, 10, 96, 64), QRectF(60, 90, 96, 96)], ids=["above", "below"])
def test_the_lines_of_a_name_are_below_each_other_in_the_middle_of_the_block(qapp, name, lines, block):
    font, metrics = node_paint.name_font(1.0)
    assert len(node_paint.name_lines(block.width(), block.height(), name, 1.0)) == lines
    image = QImage(240, 240, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    node_paint.paint_name(painter, block, name, 1.0)
    painter.end()
    inked = [y for y in range(240) if any(image.pixelColor(x, y).alpha() > 96 for x in range(240))]
    columns = [x for x in range(240) if any(image.pixelColor(x, y).alpha() > 96 for y in range(240))]
    letter = metrics.tightBoundingRect("Hd").height()
    step = font.pixelSize() * node_paint.SPACING
    assert inked[-1] - inked[0] + 1 == pytest.approx(letter + (lines - 1) * step, abs=2.5)
    assert (inked[0] + inked[-1] + 1) / 2 == pytest.approx(block.center().y(), abs=2.5)
    assert (columns[0] + columns[-1] + 1) / 2 == pytest.approx(block.center().x(), abs=2)
