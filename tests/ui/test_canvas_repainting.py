"""Whatever looks different after a change was painted because of the change, not by chance with the next one."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
import numpy as np
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, Qt, QTimer
from PySide6.QtGui import QImage, QRegion
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.ui.canvas import link_paths, node_metrics
from app.ui.widgets import theme
from designer.graph import commands, frames, routes
from designer.graph.bypass import bypass
from designer.graph.freezing import freeze
from designer.graph.model import Frame, Source
from designer.profiling.heat import Heat, Metric

NO_KEYS = Qt.KeyboardModifier.NoModifier
SLACK = 2  # pixels around what is painted: edges are antialiased


class Painted(QObject):
    """The parts of a viewport that are painted."""

    def __init__(self, viewport):
        super().__init__(viewport)
        self.viewport, self.region = viewport, QRegion()
        viewport.installEventFilter(self)

    def eventFilter(self, watched, event):
        if event.type() is QEvent.Type.Paint:
            self.region = self.region.united(event.region())
        return False

    def image(self) -> np.ndarray:
        """What the viewport looks like if all of it is painted."""
        kept = self.region
        image = self.viewport.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
        self.region = kept
        pixels = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4)
        return pixels[:, :, :3].astype(np.int16)


def settle() -> None:
    for _ in range(4):
        QApplication.processEvents()


class Scene:
    """A canvas with something of everything."""

    def __init__(self, canvas) -> None:
        self.canvas, self.viewer, self.context = canvas, canvas.viewer, canvas.context
        self.view, self.document = canvas.viewer.viewport(), canvas.context.document

    def do(self, request):
        return lambda: self.document.do(request)

    def press(self, place: QPoint) -> None:
        QTest.mousePress(self.view, kit.LEFT, NO_KEYS, place)

    def move(self, *places: QPoint) -> None:
        for place in places:
            QTest.mouseMove(self.view, place)

    def escape(self) -> None:
        QTest.keyClick(self.viewer, Qt.Key.Key_Escape)

    def link(self):
        return self.canvas.projection.link("conv", 0)

    def middle(self) -> QPoint:
        return kit.at(self.canvas, self.link().path().pointAtPercent(0.5))


def onto_a_link(s: Scene) -> None:
    """The free layer is dragged onto a link."""
    item = s.canvas.projection["free"]
    s.press(kit.node(s.canvas, "free"))
    run = s.middle() - kit.at(s.canvas, item.box().center())
    s.move(kit.node(s.canvas, "free") + QPoint(6, 6), kit.node(s.canvas, "free") + run)


def link_is_dragged(s: Scene) -> None:
    s.press(kit.output(s.canvas, "conv"))
    s.move(kit.output(s.canvas, "conv") + QPoint(10, 30), kit.output(s.canvas, "conv") + QPoint(20, 120))
    kit.settle(s.canvas)


def metric(name: str):
    def show(s: Scene) -> None:
        node_metrics.show(name)
        s.canvas.projection.refresh(s.canvas.projection.layers)

    return show


GIVEN = Heat(Metric("blame", "Share of the error", "%", lambda row: None, extensive=False), {"conv": 4.0, "cat": 1.0})
CHANGES = {
    "a layer is selected": lambda s: s.context.select(("conv",)),
    "all layers are selected": lambda s: s.canvas.select_all(),
    "a link is selected": lambda s: s.viewer.select_link(s.link()),
    "a frame is selected": lambda s: s.viewer.select_frame(s.canvas.projection.frame("f")),
    "a layer is inspected": lambda s: s.canvas.projection.inspect("conv"),
    "a link is hovered": lambda s: s.link().hoverEnterEvent(None),
    "a port is hovered": lambda s: s.canvas.projection["conv"].outputs[0].hoverEnterEvent(None),
    "a link is the target": lambda s: s.link().show_target(True),
    "a layer is dragged": lambda s: [
        s.press(kit.node(s.canvas, "conv")),
        s.move(kit.node(s.canvas, "conv") + QPoint(60, 40)),
    ],
    "a layer is dragged onto a link": onto_a_link,
    "a link is dragged": link_is_dragged,
    "a rubber band": lambda s: [s.press(QPoint(8, 640)), s.move(QPoint(700, 200))],
    "a frame is moved": lambda s: [
        s.press(kit.at(s.canvas, QPointF(420, 310))),
        s.move(kit.at(s.canvas, QPointF(520, 350))),
    ],
    "a point of a link is moved": lambda s: [
        s.press(kit.at(s.canvas, QPointF(560, 240))),
        s.move(kit.at(s.canvas, QPointF(600, 272))),
    ],
    "a layer is renamed": lambda s: s.document.do(lambda g: commands.rename_layer(g, "conv", "another_name")),
    "a layer is moved": lambda s: s.document.do(lambda g: commands.move_layers(g, {"conv": (340, 48)})),
    "a parameter is changed": lambda s: s.document.do(lambda g: commands.set_params(g, {"conv": {"features": "16"}})),
    "the input is changed": lambda s: s.document.do(lambda g: commands.set_params(g, {"input": {"dims": "32x32x1"}})),
    "a layer is bypassed": lambda s: s.document.do(lambda g: bypass(g, s.document.inference, ["conv"])),
    "a layer is frozen": lambda s: s.document.do(lambda g: freeze(g, ["conv"])),
    "a layer is collapsed": lambda s: s.document.do(
        lambda g: frames.collapse(g, ["conv"], [], s.canvas.projection.members)
    ),
    "a frame is collapsed": lambda s: s.document.do(
        lambda g: frames.collapse(g, [], ["f"], s.canvas.projection.members)
    ),
    "a layer is deleted": lambda s: s.document.do(
        lambda g: commands.delete(g, ["free"], [], variadic=lambda *_: False)
    ),
    "a link is made": lambda s: s.document.do(lambda g: commands.connect(g, Source("input"), "free", 0)),
    "a link gets a point": lambda s: s.document.do(lambda g: routes.set_route(g, "conv", 0, [(240, 120)], "Bend")),
    "links have right angles": lambda s: [link_paths.set_style(link_paths.ANGLED), s.canvas.projection.redraw_links()],
    "parameters are shown": metric("parameters"),
    "memory is shown": metric("memory"),
    "heat is shown": lambda s: s.context.heat_requested.emit(GIVEN),
    "another network is compared": lambda s: s.context.comparison.with_graph(kit.small_graph(), "another"),
}


BACK = {
    **dict.fromkeys(CHANGES, lambda s: s.document.undo()),
    **{name: lambda s: s.context.select(()) for name in CHANGES if name.endswith("selected")},
    "a link is selected": lambda s: s.viewer.select_items([]),
    "a frame is selected": lambda s: s.viewer.select_items([]),
    "a layer is inspected": lambda s: s.canvas.projection.inspect(""),
    "a link is hovered": lambda s: s.link().hoverLeaveEvent(None),
    "a port is hovered": lambda s: s.canvas.projection["conv"].outputs[0].hoverLeaveEvent(None),
    "a link is the target": lambda s: s.link().show_target(False),
    **{name: lambda s: s.escape() for name in CHANGES if "dragged" in name or "is moved" in name},
    "a rubber band": lambda s: s.escape(),
    "a layer is moved": lambda s: s.document.undo(),
    "links have right angles": lambda s: [
        link_paths.set_style(link_paths.CURVED),
        s.canvas.projection.redraw_links(),
    ],
    "parameters are shown": metric(node_metrics.SHAPES),
    "memory is shown": metric(node_metrics.SHAPES),
    "heat is shown": lambda s: s.context.heat_requested.emit(None),
    "another network is compared": lambda s: s.context.comparison.stop(),
}


@pytest.mark.parametrize("zoom", [1.0, 0.5, 0.12])
@pytest.mark.parametrize("name", CHANGES)
def test_what_looks_different_was_painted(qtbot, name, zoom):
    canvas = kit.open_canvas(qtbot, kit.small_graph())
    document = canvas.context.document
    document.do(frames.set_frame(document.graph, "f", Frame("f", "Encoder", "text", "", (272, 300, 304, 160))))
    document.do(lambda g: routes.set_route(g, "cat", 1, [(304, 240), (560, 240)], "Bend"))
    document.do(lambda g: commands.set_params(g, {"conv": {"features": "3"}}))
    canvas.minimap.want(False)
    canvas.viewer.zoom_by(zoom / canvas.viewer.zoom)
    canvas.viewer.centerOn(480, 160)
    before_metric, before_style = node_metrics.shown(), link_paths.style()
    try:
        qtbot.waitUntil(lambda: not canvas.projection.busy)
        painted = Painted(canvas.viewer.viewport())
        before = painted.image()
        scene = Scene(canvas)
        for change in (CHANGES[name], BACK[name]):
            settle()
            painted.region = QRegion()
            change(scene)
            settle()
            after = painted.image()
            shown = np.zeros(before.shape[:2], bool)
            for rect in painted.region:
                wide = QRect(rect).adjusted(-SLACK, -SLACK, SLACK, SLACK)
                shown[max(wide.top(), 0) : wide.bottom() + 1, max(wide.left(), 0) : wide.right() + 1] = True
            for child in (canvas.heat.legend,):
                place = QRect(child.pos(), child.size())
                shown[place.top() : place.bottom() + 1, place.left() : place.right() + 1] = True
            different = (np.abs(before - after) > 16).any(2)
            assert not (different & ~shown).any()
            assert different.any() or zoom < 1
            before = after
    finally:
        node_metrics.show(before_metric)
        link_paths.set_style(before_style)
        canvas.viewer.cancel_drag()


def test_nothing_is_left_of_the_colors_of_another_theme(qtbot, qapp):
    """Painted nodes and the minimap are cached."""
    images, maps = {}, {}
    try:
        for mode in ("dark", "light"):
            theme.apply(qapp, mode)
            for begin in ("dark", "light"):
                theme.apply(qapp, begin)
                canvas = kit.open_canvas(qtbot, kit.small_graph())
                canvas.minimap.want(False)
                canvas.minimap.findChild(QTimer).setInterval(0)
                painted = Painted(canvas.viewer.viewport())
                painted.image()
                canvas.minimap.redraw()
                settle()
                theme.apply(qapp, mode)
                settle()
                images[mode, begin] = painted.image()
                maps[mode, begin] = canvas.minimap.grab().toImage()
                canvas.close()
    finally:
        theme.apply(qapp)
    for mode in ("dark", "light"):
        assert (images[mode, "dark"] == images[mode, "light"]).all()
        assert maps[mode, "dark"] == maps[mode, "light"]
    assert (images["dark", "dark"] != images["light", "light"]).any()
    assert maps["dark", "dark"] != maps["light", "light"]
