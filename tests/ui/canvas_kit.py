"""Helpers of the canvas's tests: a small network, and real mouse events on ports, nodes and links."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.ui.canvas.canvas import Canvas
from app.ui.canvas.inline_editor import InlineEditor
from app.ui.canvas.node_look import node_look
from app.ui.document.document import Document
from app.ui.engine.context import Context
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.api import Category
from designer.operators.registry import default_registry

LEFT, MIDDLE = Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton


def small_graph() -> Graph:
    """input -> conv (relu) -> cat <- pool <- input, and a free convolution."""
    conv = {"features": "8", "kernel": "3x3", "padding": "same"}
    return Graph(
        [
            Layer("input", "input", (0, 0), params={"dims": "64x48x3"}),
            Layer("conv", "convolution", (320, 0), (Source("input"),), conv, ActivationSpec("relu")),
            Layer("free", "convolution", (320, 160), (), conv),
            Layer("cat", "concatenation", (640, 0), (Source("conv"), Source("input"))),
            Layer("out", "output", (960, 0), (Source("cat"),)),
        ],
        name="small",
    )


def open_canvas(qtbot: QtBot, graph: Graph, size: tuple[int, int] = (1300, 700)) -> Canvas:
    """A canvas without a window around it. `messages` collects what it reports."""
    context = Context(default_registry())
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    canvas.resize(*size)
    canvas.show()
    qtbot.waitExposed(canvas)
    context.set_document(Document(graph, context.registry, parent=context))
    canvas.context = context
    canvas.messages = []
    context.message.connect(lambda severity, text: canvas.messages.append((severity, text)))
    return canvas


def check(canvas, document) -> None:
    """Items, looks, places, links and their labels are those of the graph."""
    graph = document.graph
    assert set(canvas.projection.layers) == set(graph.layers)
    assert {i.layer for i in canvas.viewer.layer_items()} == set(graph.layers)
    links = set()
    for name in graph.layers:
        item = canvas.projection[name]
        assert item.pos() == QPointF(*graph[name].position)
        assert item.look == node_look(document, name, inspected=name == canvas.projection.inspected)
        for dot in item.inputs:
            for link in dot.links:
                assert link.target is dot
                shapes, number = link.source.node.look.shapes, link.source.index
                assert link.label == (shapes[number] if number < len(shapes) else "")
                assert link.path().pointAtPercent(1) == dot.center()
                assert link.path().pointAtPercent(0) == link.source.center()
                links.add((link.source.node.layer, name, dot.index))
                port = graph[name].inputs[dot.index].port
                assert link.source.look.name == port if port else link.source.index == 0
    wanted = {(s, c, i) for s, _, c, i in graph.links() if s in graph}
    assert links == wanted
    assert {i.layer for i in canvas.viewer.selected_layers()} == set(canvas.context.selection)
    check_indexes(canvas)


def check_indexes(canvas) -> None:
    """What is computed without items (bounds, ends of links, the far view) is what the items show."""
    items = canvas.projection
    shown = [name for name in items.layers if not items.hides(name)]
    assert {name for name in items.layers if items[name].isVisible()} == set(shown)
    areas = [items.entry(name).area() for name in shown] + [frame.seen for frame in items.collapsed_frames]
    extent = QRectF()
    for area in areas:
        extent = extent.united(area)
    assert items.extent() == extent
    for area in [items.entry(name).box().adjusted(30, 20, 200, -9) for name in shown[:12]]:
        assert set(items.within(area)) == {n for n in shown if items.entry(n).box().intersects(area)}
    lines = 0
    for edge in list(items.links):
        item, ends = items.link(*edge.key), items.ends(edge)
        if item is not None and ends is not None:
            assert ends == (item.source.center().toTuple(), item.target.center().toTuple())
            lines += item.isVisible()
    far = items.collect_far()
    tabs = far.blocks[Category.ACTIVATION]
    ghosts = {kind: rects for kind, rects in far.ghosts.items() if kind is not Category.ACTIVATION}
    blocks = [rect for rects in (*far.blocks.values(), *ghosts.values()) if rects is not tabs for rect in rects]
    assert len(blocks) == len(areas)
    for name in shown:
        item = items[name]
        place = item.layout.block.translated(item.pos())
        assert place in blocks
        ghosted = any(place in rects for rects in ghosts.values())
        same = [other for other in shown if items[other].layout.block.translated(items[other].pos()) == place]
        assert ghosted is any(items.entry(other).look.bypassed for other in same)  # layers can lie on top of each other
    assert len(far.selected) == len([n for n in canvas.context.selection if not items.hides(n)])
    assert bool(lines) is not far.links.isEmpty()


def at(canvas, place: QPointF) -> QPoint:
    """Viewport pixels of a canvas place."""
    return canvas.viewer.mapFromScene(place)


def rect(canvas, area: QRectF) -> QRect:
    """Viewport pixels of an area of the canvas."""
    return canvas.viewer.mapFromScene(area).boundingRect()


def node(canvas, name: str) -> QPoint:
    """A point on a layer's title bar."""
    item = canvas.projection[name]
    return at(canvas, item.pos() + QPointF(60, 12))


def output(canvas, name: str, index: int = 0) -> QPoint:
    return at(canvas, canvas.projection[name].outputs[index].center())


def port(canvas, name: str, index: int = 0) -> QPoint:
    return at(canvas, canvas.projection[name].inputs[index].center())


def drag(canvas, start: QPoint, end: QPoint, button=LEFT, keys=Qt.KeyboardModifier.NoModifier) -> None:
    """Press, move in steps, release."""
    view = canvas.viewer.viewport()
    QTest.mousePress(view, button, keys, start)
    for step in (0.3, 0.7, 1.0):
        QTest.mouseMove(view, start + (end - start) * step)
    QTest.mouseRelease(view, button, keys, end)


def settle(canvas) -> None:
    """Wait until the ports in view are checked for the link that is being dragged."""
    while canvas.links.waiting:
        QApplication.processEvents()


def write(window, text: str) -> None:
    """Type into the field that is open on the canvas, in place of what is selected there, and press Return."""
    (editor,) = (e for e in window.canvas.viewer.viewport().findChildren(InlineEditor) if e.isVisible())
    QTest.keyClicks(editor.field, text)
    QTest.keyClick(editor.field, Qt.Key.Key_Return)


def click(canvas, point: QPoint, keys=Qt.KeyboardModifier.NoModifier) -> None:
    QTest.mouseClick(canvas.viewer.viewport(), LEFT, keys, point)
