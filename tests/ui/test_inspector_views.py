"""What the views of the Channel Inspector paint, which clicks and keys they report, and how its controls act on them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import analysis_kit as kit
import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage, QMouseEvent, QRegion, QWheelEvent
from PySide6.QtWidgets import QApplication, QComboBox, QFileDialog, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.pixel_positions import scaled
from app.ui.engine.result import AnalysisResult
from app.ui.engine.weight_surgery import weight_surgery_of
from app.ui.inspector import channel_inspector
from app.ui.inspector.channel_grid import ChannelGrid
from app.ui.inspector.channel_inspector import ChannelInspectorPanel
from app.ui.inspector.channel_statistics import channel_statistics
from app.ui.inspector.color_bar import ColorBar
from app.ui.inspector.enlarged import EnlargedPage
from app.ui.inspector.histogram_strip import HistogramStrip
from app.ui.inspector.legend import BAR, Legend
from app.ui.inspector.look import Look, fit, pixels
from app.ui.inspector.matrix_view import MatrixView, ticks
from app.ui.inspector.order import Order, order_of
from app.ui.inspector.subject import Kind
from app.ui.widgets import theme
from app.ui.widgets.feature_view import FeatureView
from app.ui.widgets.image_view import DIMMED, ImageView, SplitMode
from app.ui.widgets.overlays import CrossOverlay
from app.ui.widgets.render import PALETTES, block_mean, palette, picture_pixels, to_image
from designer.graph.commands import remove_layers, rename_layer
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.units import number, numbers

pytestmark = pytest.mark.gui
LEFT, RIGHT, MIDDLE = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton
PLAIN, SHIFT, CONTROL = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.ControlModifier,
)
VALUES = np.random.default_rng(0).standard_normal((1, 8, 6, 5)).astype(np.float32)


def made(qtbot: QtBot, widget: QWidget, width: int = 400, height: int = 300) -> QWidget:
    qtbot.addWidget(widget)
    widget.resize(width, height)
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def near(one: QColor, other: QColor, levels: int = 12) -> bool:
    return all(abs(a - b) <= levels for a, b in zip(one.getRgb(), other.getRgb(), strict=True))


def has(image: QImage, area: tuple[float, float, float, float], color: QColor, levels: int = 12) -> bool:
    """Whether a color is in an area (left, top, right, bottom)."""
    left, top, right, bottom = map(int, area)
    return any(near(image.pixelColor(x, y), color, levels) for x in range(left, right) for y in range(top, bottom))


class Painted(QObject):
    """The parts of a widget that are painted."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.area = QRegion()
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Paint:
            self.area = self.area.united(event.region())  # type: ignore[attr-defined]
        return False


# --- painting ---------------------------------------------------------------------------------------------------------


def changes_of(kind: type) -> tuple[Callable[[], QWidget], dict[str, Callable[[QWidget], object]]]:
    """A widget with values, and the changes that are visible."""
    plane = VALUES[0, 0]
    image, other = (to_image(pixels(each, Look())) for each in (plane, -plane))

    def grid() -> QWidget:
        found = ChannelGrid("grid", "Channels")
        found.show_data(VALUES[0])
        return found

    def matrix() -> QWidget:
        found = MatrixView("matrix", "Map")
        found.show_values(plane)
        return found

    def features() -> QWidget:
        found = FeatureView("features", "Values")
        found.show_values(plane[0])
        return found

    def view() -> QWidget:
        found = ImageView("view", "Image", "")
        found.show_image(image)
        return found

    table: dict[type, tuple[Callable[[], QWidget], dict[str, Callable[[object], object]]]] = {
        ChannelGrid: (
            grid,
            {
                "values": lambda w: w.show_data(-VALUES[0]),  # type: ignore[attr-defined]
                "order": lambda w: w.set_order(list(range(7, -1, -1))),  # type: ignore[attr-defined]
                "names": lambda w: w.set_names(lambda channel: f"filter {channel}"),  # type: ignore[attr-defined]
                "mark": lambda w: w.set_mark((1, 2)),  # type: ignore[attr-defined]
                "look": lambda w: w.set_look(Look("gray")),  # type: ignore[attr-defined]
                "side": lambda w: w.set_side(60),  # type: ignore[attr-defined]
                "note": lambda w: w.set_note("random weights"),  # type: ignore[attr-defined]
                "dimmed": lambda w: w.set_dimmed(True),  # type: ignore[attr-defined]
                "nothing": lambda w: w.show_data(None),  # type: ignore[attr-defined]
            },
        ),
        MatrixView: (
            matrix,
            {
                "values": lambda w: w.show_values(-plane),  # type: ignore[attr-defined]
                "axes": lambda w: w.show_values(-plane, ("filter", "input")),  # type: ignore[attr-defined]
                "look": lambda w: w.set_look(Look("gray")),  # type: ignore[attr-defined]
                "note": lambda w: w.set_note("random weights"),  # type: ignore[attr-defined]
                "dimmed": lambda w: w.set_dimmed(True),  # type: ignore[attr-defined]
                "nothing": lambda w: w.show_values(None),  # type: ignore[attr-defined]
            },
        ),
        FeatureView: (
            features,
            {
                "values": lambda w: w.show_values(plane[1]),  # type: ignore[attr-defined]
                "labels": lambda w: w.set_labels(("cat", "dog", "emu", "fox", "gnu")),  # type: ignore[attr-defined]
                "note": lambda w: w.set_note("random weights"),  # type: ignore[attr-defined]
            },
        ),
        ImageView: (
            view,
            {
                "image": lambda w: w.show_image(other),  # type: ignore[attr-defined]
                "split": lambda w: w.set_split(SplitMode.VERTICAL, 0.5),  # type: ignore[attr-defined]
                "amount": lambda w: w.set_split(SplitMode.VERTICAL, 0.25),  # type: ignore[attr-defined]
                "overlays": lambda w: w.set_overlays((CrossOverlay(1, 2),)),  # type: ignore[attr-defined]
                "note": lambda w: w.set_note("random weights"),  # type: ignore[attr-defined]
                "dimmed": lambda w: w.set_dimmed(True),  # type: ignore[attr-defined]
                "zoom": lambda w: w.one_to_one(),  # type: ignore[attr-defined]
                "fit": lambda w: w.fit(),  # type: ignore[attr-defined]
                "nothing": lambda w: w.show_image(None),  # type: ignore[attr-defined]
                "empty": lambda w: w.set_empty_text("nothing yet"),  # type: ignore[attr-defined]
            },
        ),
        Legend: (
            Legend,
            {
                "look": lambda w: w.show_look(Look("gray"), "value"),  # type: ignore[attr-defined]
                "unit": lambda w: w.show_look(Look("gray"), "weight"),  # type: ignore[attr-defined]
            },
        ),
        HistogramStrip: (
            HistogramStrip,
            {
                "values": lambda w: w.show_statistics(channel_statistics(plane)),  # type: ignore[attr-defined]
                "others": lambda w: w.show_statistics(channel_statistics(plane + 2)),  # type: ignore[attr-defined]
                "nothing": lambda w: w.show_statistics(None),  # type: ignore[attr-defined]
            },
        ),
    }
    return table[kind]  # type: ignore[return-value]


def in_parts(surface: QWidget) -> QImage:
    """What is seen if each quarter is painted alone, as after another window or a tooltip covered it."""
    found = QImage(surface.size(), QImage.Format.Format_RGB32)
    middle = surface.rect().center()
    for x, y in product((0, middle.x()), (0, middle.y())):
        part = QRect(x, y, middle.x() + 2, middle.y() + 2).intersected(surface.rect())
        surface.render(found, part.topLeft(), QRegion(part))
    return found


@pytest.mark.parametrize("kind", [ChannelGrid, MatrixView, FeatureView, ImageView, Legend, HistogramStrip])
def test_every_change_is_painted_at_once(qtbot: QtBot, kind: type) -> None:
    """And a part of it as it is in the whole."""
    make, changes = changes_of(kind)
    widget = made(qtbot, make())
    surface = widget.viewport() if isinstance(widget, ChannelGrid) else widget
    painted = Painted(surface)
    before = surface.grab().toImage()
    for name, change in changes.items():
        QApplication.processEvents()
        painted.area = QRegion()
        change(widget)
        qtbot.waitUntil(lambda: painted.area.contains(surface.rect().center()), timeout=2000)
        assert QRegion(surface.rect()).subtracted(painted.area).isEmpty(), name
        if isinstance(widget, ChannelGrid):
            qtbot.waitUntil(lambda: widget.complete, timeout=2000)
        after = surface.grab().toImage()
        assert after != before, name
        images = (in_parts(surface), after.convertToFormat(QImage.Format.Format_RGB32))
        parts, whole = (np.array(image.constBits(), np.uint8).reshape(-1, 4)[:, :3] for image in images)
        assert (parts != whole).any(1).mean() < 0.005, name  # enlarged values are rounded at the edge of a part
        before = after


class Around(QWidget):
    """Accepts the clicks that a view leaves to the window around it."""

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()


@pytest.fixture
def grid(qtbot: QtBot) -> Iterator[ChannelGrid]:
    """Three channels of 4 x 2 pixels: -0.5, 0.5, and a column of ones on zeros."""
    window = made(qtbot, Around(), 420, 200)
    found = ChannelGrid("grid", "Channels", window)
    found.resize(420, 200)
    data = np.zeros((3, 2, 4), np.float32)
    data[0], data[1], data[2, :, 3] = -0.5, 0.5, 1
    found.set_side(120)
    found.show_data(data)
    found.show()
    qtbot.waitUntil(lambda: found.complete)
    yield found
    window.close()


def test_tiles_are_painted_with_their_values_captions_and_marks(grid: ChannelGrid, qtbot: QtBot) -> None:
    def color(channel: int, x: float, y: float) -> QColor:
        rect = grid.tile_rect(channel)
        place = rect.topLeft() + QPointF(x * rect.width() / 4, y * rect.height() / 2)
        return grid.seen().pixelColor(place.toPoint())

    def caption(channel: int, role: theme.RoleName) -> bool:
        rect = grid.tile_rect(channel)
        height = grid.fontMetrics().height()
        area = (rect.left(), rect.bottom() + 2, rect.right(), rect.bottom() + height)
        return has(grid.seen(), area, theme.color(role), 40)

    def framed(channel: int, role: theme.RoleName, away: int) -> bool:
        rect = grid.tile_rect(channel)
        line = [grid.seen().pixelColor(QPoint(int(rect.left()) + x, int(rect.top()) - away)) for x in (20, 40, 60)]
        return all(near(each, theme.color(role)) for each in line)

    assert near(color(0, 1.5, 0.5), QColor(128, 0, 0))
    assert near(color(1, 1.5, 0.5), QColor(0, 128, 0))
    assert near(color(2, 2.95, 0.5), QColor(0, 0, 0))  # edges of pixels are sharp
    assert near(color(2, 3.05, 0.5), QColor(0, 255, 0))
    assert [caption(channel, "warning") for channel in range(3)] == [False] * 3
    assert all(caption(channel, "muted") for channel in range(3))
    grid.set_captions(lambda channel: "dead" if channel == 1 else "", lambda channel: (0.0, 1.0))
    assert [caption(channel, "warning") for channel in range(3)] == [False, True, False]
    assert [framed(channel, "warning", 1) for channel in range(3)] == [False, True, False]
    grid.set_mark((3, 0))
    assert not caption(1, "warning")  # the value at the mark is there
    assert framed(1, "warning", 1)
    assert grid.caption(2, 120) == "2   1"
    rect = grid.tile_rect(0)
    at = (rect.topLeft() + QPointF(3.5 * rect.width() / 4, 0.5 * rect.height() / 2)).toPoint()
    seen = grid.seen()
    assert near(seen.pixelColor(at + QPoint(-6, 0)), theme.color("accent"))
    assert near(seen.pixelColor(at + QPoint(0, 6)), theme.color("accent"))
    assert near(seen.pixelColor(at), QColor(128, 0, 0))  # the pixel itself can be seen
    grid.set_mark(None)
    grid.setFocus()
    grid.set_current(2)
    qtbot.waitUntil(grid.hasFocus)
    assert [framed(channel, "accent", 2) for channel in range(3)] == [False, False, True]
    grid.clearFocus()
    assert not framed(2, "accent", 2)
    ground = theme.color("sunken")
    grid.set_dimmed(True)
    mixed = [
        round(DIMMED * value + (1 - DIMMED) * part) for value, part in zip((0, 128, 0), ground.getRgb(), strict=False)
    ]
    assert near(color(1, 1.5, 0.5), QColor(*mixed))
    area = (0, grid.viewport().height() - 30, 100, grid.viewport().height())
    assert not has(grid.seen(), area, theme.color("warning"), 40)
    grid.set_note("random weights")
    assert has(grid.seen(), area, theme.color("warning"), 40)


def test_captions_have_what_there_is_room_for(grid: ChannelGrid) -> None:
    grid.set_captions(lambda channel: "", lambda channel: (-1.0, 2.0) if channel else None)
    assert [grid.caption(1, width) for width in (109, 110)] == ["1", "1   -1 … 2"]
    assert grid.caption(0, 400) == "0"  # not known yet
    grid.set_names(lambda channel: f"filter {channel}")
    assert grid.caption(1, 400) == "filter 1"
    heights = []
    for side in (47, 48):
        grid.set_side(side)
        below = grid.tile_rect(0).bottomLeft() + QPointF(5, 5)
        heights.append(grid.channel_at(below))
    assert heights == [None, 0]  # small tiles have no captions


def test_other_numbers_of_channels_begin_at_the_first(grid: ChannelGrid, qtbot: QtBot) -> None:
    many = np.zeros((100, 2, 4), np.float32)
    grid.show_data(many)
    grid.set_order(list(range(99, -1, -1)))
    grid.set_current(3)
    scrolled = grid.verticalScrollBar().value()
    assert scrolled > 0
    grid.show_data(many + 1)  # the next run: all stays
    assert (grid.current, grid.verticalScrollBar().value(), list(grid.order)[:2]) == (3, scrolled, [99, 98])
    grid.show_data(many[:60])
    assert (grid.current, grid.verticalScrollBar().value(), list(grid.order)) == (0, 0, list(range(60)))
    qtbot.keyClick(grid, Qt.Key.Key_End)
    grid.show_data(many[:2])
    assert grid.current == 0
    chosen: list[int] = []
    grid.activated.connect(chosen.append)
    qtbot.keyClick(grid, Qt.Key.Key_Return)
    assert chosen == [0]


def test_the_note_is_painted_once_while_the_grid_scrolls(grid: ChannelGrid) -> None:
    grid.show_data(np.zeros((100, 2, 4), np.float32))
    QApplication.processEvents()
    for note in ("random weights", ""):
        grid.set_note(note)
        QApplication.processEvents()
        painted = Painted(grid.viewport())
        grid.verticalScrollBar().setValue(grid.verticalScrollBar().value() + 7)
        QApplication.processEvents()
        assert QRegion(grid.viewport().rect()).subtracted(painted.area).isEmpty() is bool(note)


# --- mouse and keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("button", "modifiers", "reported"),
    [
        (LEFT, PLAIN, ["activated"]),
        (LEFT, CONTROL, ["activated"]),
        (LEFT, SHIFT, ["pinned"]),
        (RIGHT, PLAIN, ["pinned"]),
        (MIDDLE, PLAIN, []),
    ],
)
def test_clicks_on_a_channel(
    grid: ChannelGrid,
    qtbot: QtBot,
    button: Qt.MouseButton,
    modifiers: Qt.KeyboardModifier,
    reported: list[str],
) -> None:
    found: list[tuple[str, object]] = []
    grid.activated.connect(lambda channel: found.append(("activated", channel)))
    grid.pinned.connect(lambda place: found.append(("pinned", place)))
    rect = grid.tile_rect(2)
    place = rect.topLeft() + QPointF(3.5 * rect.width() / 4, 0.5 * rect.height() / 2)
    qtbot.mouseClick(grid.viewport(), button, modifiers, place.toPoint())
    value = {"activated": 2, "pinned": (2, 3, 0)}
    assert found == [(name, value[name]) for name in reported]
    assert grid.current == (2 if reported else 0)
    qtbot.mouseClick(grid.viewport(), button, modifiers, QPoint(2, 2))
    assert len(found) == len(reported)  # nothing is there


def test_the_cursor_is_a_hand_over_channels_and_its_place_is_reported(grid: ChannelGrid, qtbot: QtBot) -> None:
    found: list[object] = []
    grid.probed.connect(found.append)
    for place, pixel, shape in (
        (grid.tile_rect(1).topLeft() + QPointF(2, 2), (1, 0, 0), Qt.CursorShape.PointingHandCursor),
        (grid.tile_rect(1).bottomLeft() + QPointF(2, 5), None, Qt.CursorShape.PointingHandCursor),  # its caption
        (grid.tile_rect(1).topLeft() - QPointF(3, -5), None, Qt.CursorShape.ArrowCursor),
    ):
        qtbot.mouseMove(grid.viewport(), place.toPoint())
        assert found[-1] == pixel
        assert grid.viewport().cursor().shape() is shape
    qtbot.mouseMove(grid.viewport(), grid.tile_rect(1).center().toPoint())
    assert found[-1] is not None
    QApplication.sendEvent(grid, QEvent(QEvent.Type.Leave))
    assert found[-1] is None


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_both_enter_keys_enlarge(grid: ChannelGrid, qtbot: QtBot, key: Qt.Key) -> None:
    grid.set_current(1)
    with qtbot.waitSignal(grid.activated) as chosen:
        qtbot.keyClick(grid, key)
    assert chosen.args == [1]


def turned(widget: QWidget, notches: int, modifiers: Qt.KeyboardModifier) -> None:
    place = QPointF(widget.rect().center())
    event = QWheelEvent(
        place,
        QPointF(widget.mapToGlobal(place.toPoint())),
        QPoint(),
        QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton,
        modifiers,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)


def test_control_and_the_wheel_change_the_size_within_its_limits(grid: ChannelGrid) -> None:
    sides: list[int] = []
    grid.side_changed.connect(sides.append)
    turned(grid.viewport(), 1, CONTROL)
    turned(grid.viewport(), -2, CONTROL)
    assert sides == [144, 100]
    assert grid.tile_rect(0).width() == 100
    for notches, limit in ((40, 512), (-40, 24)):
        turned(grid.viewport(), notches, CONTROL)
        assert sides[-1] == grid.tile_rect(0).width() == limit


def test_buttons_and_keys_of_a_single_channel(qtbot: QtBot) -> None:
    page = made(qtbot, EnlargedPage(), 500, 300)
    assert isinstance(page, EnlargedPage)
    page.show_plane(np.zeros((10, 20), np.float32), Look(), None, False)
    QApplication.processEvents()
    found: list[object] = []
    page.left.connect(lambda: found.append("left"))
    page.walked.connect(found.append)
    for name, expected in (("back", "left"), ("previous", -1), ("next", 1)):
        qtbot.mouseClick(page.findChild(QToolButton, f"channel_inspector.{name}"), LEFT)
        assert found.pop() == expected
    for key, expected in (
        (Qt.Key.Key_Escape, "left"),
        (Qt.Key.Key_Backspace, "left"),
        (Qt.Key.Key_Left, -1),
        (Qt.Key.Key_Right, 1),
    ):
        qtbot.keyClick(page.view, key)
        assert found.pop() == expected
    assert not found
    fitted = page.view.zoom
    assert fitted > 1
    for name, zoom in (("one", 1.0), ("fit", fitted)):
        qtbot.mouseClick(page.findChild(QToolButton, f"channel_inspector.{name}"), LEFT)
        assert page.view.zoom == zoom


# --- colors -----------------------------------------------------------------------------------------------------------


def test_every_control_of_the_colors_reports_its_look(qtbot: QtBot) -> None:
    bar = made(qtbot, ColorBar(), 900, 80)
    assert isinstance(bar, ColorBar)
    found: list[str] = []
    looks: list[Look] = []
    bar.look_changed.connect(looks.append)
    bar.look_touched.connect(lambda: found.append("touched"))
    bar.scale_changed.connect(lambda: found.append("scale"))
    bar.auto_requested.connect(lambda: found.append("auto"))
    bar.side_changed.connect(lambda side: found.append(f"side {side}"))
    look = Look()
    bar.set_look(1.0, 0.0)

    def click(name: str) -> None:
        qtbot.mouseClick(bar.findChild(QToolButton, f"channel_inspector.{name}"), LEFT)

    def write(box: QWidget, text: str) -> None:
        box.selectAll()  # type: ignore[attr-defined]
        qtbot.keyClicks(box, f"{text}\r")

    for act, expected, reported in (
        (lambda: write(bar.gain.box, "4"), replace(look, gain=4.0), ["touched"]),
        (lambda: write(bar.shift.box, "0.5"), replace(look, gain=4.0, shift=0.5), ["touched"]),
        (lambda: click("reset"), look, ["touched"]),
        (lambda: click("log"), replace(look, log=True), []),
        (lambda: click("log"), look, []),
        (lambda: click("each"), replace(look, each=True), ["scale"]),
        (lambda: click("each"), look, ["scale"]),
        (lambda: qtbot.keyClick(bar.palette_box, Qt.Key.Key_End), replace(look, palette=PALETTES[-1]), ["scale"]),
    ):
        found.clear()
        act()
        assert looks[-1] == bar.look == expected
        assert found == reported
    found.clear()
    click("auto")
    assert found == ["auto"]
    for key, side in ((Qt.Key.Key_Home, 24), (Qt.Key.Key_End, 512)):
        qtbot.keyClick(bar.side, key)
        assert found[-1] == f"side {side}"
    assert not bar.locked
    click("lock")
    assert bar.locked


@pytest.mark.parametrize("name", PALETTES)
def test_the_legend_has_the_colors_of_the_map_between_its_values(qtbot: QtBot, name: str) -> None:
    legend = Legend()
    made(qtbot, legend, *legend.sizeHint().toTuple())
    legend.show_look(Look(name, gain=2.0, shift=0.25), "weight")
    assert legend.toolTip() == "weight: ≤ -0.75 · -0.25 · ≥ 0.25"
    image, table = legend.grab().toImage(), palette(name)
    for place in (0.02, 0.25, 0.5, 0.75, 0.98):
        expected = QColor(int(table[1 + round(place * 254)]))
        assert near(image.pixelColor(round(place * legend.width()), BAR // 2), expected, 16)
    ends = []
    for text in ("≤ -0.75", "≥ 0.25"):  # a wider text needs more room
        width = legend.fontMetrics().horizontalAdvance(text)
        ends.append(width)
    inks = [
        [x for x in range(legend.width()) if has(image, (x, BAR + 3, x + 1, legend.height()), theme.color("muted"), 60)]
    ][0]
    assert min(inks) <= 3
    first = max(x for x in inks if x <= ends[0] + 1)
    assert first >= ends[0] - 4
    last = min(x for x in inks if x >= legend.width() - ends[1] - 2)
    assert last <= legend.width() - ends[1] + 4
    legend.show_look(Look(name, each=True), "weight")
    assert legend.toolTip() == "share of each channel's own range: low · of each channel · high"


# --- the panel --------------------------------------------------------------------------------------------------------


def inspector_of(qtbot: QtBot, graph: Graph) -> ChannelInspectorPanel:
    """The shown panel of a network."""
    context = Context(default_registry())
    context.set_document(Document(graph, context.registry))
    panel = ChannelInspectorPanel(context)
    context.setParent(panel)
    made(qtbot, panel, 1000, 600)
    return panel


@pytest.fixture
def panel(qtbot: QtBot) -> Iterator[ChannelInspectorPanel]:
    """On the hidden convolution of a network that does not run."""
    found = inspector_of(qtbot, kit.small_network(8))
    found.inspect("conv_h")
    yield found
    found.exporter.background.wait()
    engine = found._context.engine
    if engine is not None:
        engine.close()


def show(panel: ChannelInspectorPanel, value: np.ndarray) -> None:
    panel.subject.value = value
    panel.subject.changed.emit()


def choose(qtbot: QtBot, panel: ChannelInspectorPanel, name: str, row: int) -> None:
    """With the keyboard, as a user does."""
    box = panel.findChild(QComboBox, f"channel_inspector.{name}")
    qtbot.keyClick(box, Qt.Key.Key_Home)
    for _ in range(row):
        qtbot.keyClick(box, Qt.Key.Key_Down)


FORMS = {  # values and their kind: what is visible besides the view, and whether colors can be chosen
    "channels": (VALUES, Kind.OUTPUT, {"histogram", "legend", "order"}, True),
    "batch": (np.concatenate([VALUES, -VALUES]), Kind.OUTPUT, {"histogram", "legend", "order", "item"}, True),
    "filters": (VALUES[0][:, None], Kind.WEIGHTS, {"histogram", "legend", "order"}, True),
    "matrix": (VALUES[0, :, 0], Kind.WEIGHTS, {"histogram", "legend"}, True),
    "sequence": (VALUES[0, :1], Kind.OUTPUT, {"histogram", "legend"}, True),
    "bias": (VALUES[0, :, 0, 0], Kind.WEIGHTS, set(), False),
    "values": (VALUES[0, :1, 0], Kind.OUTPUT, set(), False),
}


@pytest.mark.parametrize("form", FORMS)
def test_controls_and_notes_are_those_of_the_form_of_a_tensor(panel: ChannelInspectorPanel, form: str) -> None:
    value, kind, visible, colors = FORMS[form]
    assert not panel.subjects.export.isEnabled()
    show(panel, VALUES)
    panel.look_at(kind)
    assert panel.subjects.export.isEnabled() is (kind is Kind.OUTPUT)
    panel.subject.note = "random weights"
    show(panel, value.copy())
    assert panel.subjects.export.isEnabled()
    names = ("histogram", "legend", "order", "item")
    parts = {name: panel.findChild(QWidget, f"channel_inspector.{name}") for name in names}
    assert {name for name, part in parts.items() if part.isVisible()} == visible
    assert panel.bar.isEnabled() is colors
    view = {"matrix": panel.matrix, "sequence": panel.matrix, "bias": panel.features, "values": panel.features}
    shown = view.get(form, panel.grid)
    assert shown.isVisible()
    assert panel.status_text.startswith(f"{panel.subject.title}   {' x '.join(map(str, value.shape))}")
    surface = shown.viewport() if isinstance(shown, ChannelGrid) else shown
    area = (0, surface.height() // 2, 150, surface.height())
    assert has(surface.grab().toImage(), area, theme.color("warning"), 40)
    assert panel.view.note == "random weights"
    panel.subject.forget()
    panel.subject.message = "It has no weights."
    panel.subject.changed.emit()
    assert not panel.subjects.export.isEnabled()
    assert panel._empty.isVisible()


def test_what_is_stale_is_dimmed_in_every_view(panel: ChannelInspectorPanel) -> None:
    def bright() -> dict[str, int]:
        show(panel, np.ones((1, 8, 6, 5), np.float32))
        panel.bar.set_look(1.0, 0.0)
        seen = {"grid": panel.grid.seen().pixelColor(panel.grid.tile_rect(0).center().toPoint())}
        panel.enlarge(0)
        seen["channel"] = panel.view.grab().toImage().pixelColor(panel.view.rect().center())
        panel.shrink()
        show(panel, np.ones((1, 8, 6), np.float32))
        panel.bar.set_look(1.0, 0.0)
        seen["matrix"] = panel.matrix.grab().toImage().pixelColor(panel.matrix.area().center().toPoint())
        return {name: color.green() for name, color in seen.items()}

    views = ("grid", "channel", "matrix")
    assert bright() == dict.fromkeys(views, 255)
    panel._analysis.stale_changed.emit(True)
    assert all(value < 150 for value in bright().values())
    panel._analysis.stale_changed.emit(False)
    assert bright() == dict.fromkeys(views, 255)


@pytest.mark.parametrize("row", range(len(PALETTES)))
@pytest.mark.parametrize("each", [False, True])
def test_every_view_has_the_chosen_colors(panel: ChannelInspectorPanel, qtbot: QtBot, row: int, each: bool) -> None:
    show(panel, VALUES)
    choose(qtbot, panel, "palette", row)
    if each:
        qtbot.mouseClick(panel.findChild(QToolButton, "channel_inspector.each"), LEFT)
    look = panel.bar.look
    assert (look.palette, look.each) == (PALETTES[row], each)
    if not each:
        fitted = fit(VALUES[0], look.palette)
        assert (look.gain, look.shift) == (pytest.approx(fitted.gain), pytest.approx(fitted.shift))
    panel.enlarge(5)
    own = fit(VALUES[0, 5], look.palette) if each else None
    assert panel.view.image == to_image(pixels(VALUES[0, 5], look, own))
    qtbot.mouseClick(panel.findChild(QToolButton, "channel_inspector.log"), LEFT)
    look = panel.bar.look
    assert look.log
    assert panel.view.image == to_image(pixels(VALUES[0, 5], look, own))
    assert panel.legend.texts()[0] == ("low" if each else f"≤ {number(-1 / look.gain - look.shift)}")
    show(panel, VALUES[0, :1].copy())
    look = panel.bar.look
    own = fit(VALUES[0, 0], look.palette) if each else None
    assert panel.matrix.image == to_image(pixels(VALUES[0, 0], look, own))


def test_the_statistics_of_a_kernel_are_those_of_a_filter(panel: ChannelInspectorPanel) -> None:
    show(panel, VALUES)
    panel.look_at(Kind.WEIGHTS)
    show(panel, VALUES[0][:, None].copy())
    panel.enlarge(3)
    low, high = VALUES[0, 3].min(), VALUES[0, 3].max()
    assert panel.status_text.startswith(f"filter 3   {number(low)} … {number(high)}")


def test_the_note_about_the_weights_follows_a_run_that_leaves_the_tensor_as_it_was(
    panel: ChannelInspectorPanel,
) -> None:
    show(panel, VALUES)
    for note in ("random weights", ""):
        panel.subject.note = note
        panel.subject.changed.emit()
        assert panel.view.note == note


def test_each_channel_is_titled_walked_and_removed_by_its_number(
    panel: ChannelInspectorPanel, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[tuple[object, ...]] = []
    surgery = weight_surgery_of(panel._context)
    monkeypatch.setattr(surgery, "operate", lambda kind, source, channels: removed.append((kind, source, channels)))
    show(panel, VALUES)
    title = panel.enlarged.title
    panel.grid.set_current(3)
    panel.enlarge(6)
    for step, channel in (("next", 7), ("next", 0), ("previous", 7), ("previous", 6)):
        qtbot.mouseClick(panel.findChild(QToolButton, f"channel_inspector.{step}"), LEFT)
        assert title.text() == f"channel {channel} (0 to 7)  ·  conv_h"
        low, high = VALUES[0, channel].min(), VALUES[0, channel].max()
        assert panel.status_text.startswith(f"channel {channel}   {number(low)} … {number(high)}")
        histogram = panel.findChild(HistogramStrip, "channel_inspector.histogram").statistics
        assert (histogram.low, histogram.high) == (low, high)
        qtbot.mouseClick(panel.findChild(QToolButton, "channel_inspector.remove_channel"), LEFT)
        assert removed.pop() == ("remove", "conv_h", (channel,))
    qtbot.mouseClick(panel.findChild(QToolButton, "channel_inspector.back"), LEFT)
    assert panel.grid.isVisible()
    assert panel.grid.current == 6
    qtbot.mouseClick(panel.grid.viewport(), LEFT, pos=panel.grid.tile_rect(7).center().toPoint())
    assert panel.focusWidget() is panel.view
    QApplication.processEvents()
    qtbot.mouseMove(panel.view, panel.view.place_of(3.5, 1.5).toPoint())
    for key, channel in ((Qt.Key.Key_Right, 0), (Qt.Key.Key_Right, 1), (Qt.Key.Key_Left, 0), (Qt.Key.Key_Left, 7)):
        qtbot.keyClick(panel.focusWidget(), key)  # the cursor stays where it is
        value, figures = number(float(VALUES[0, channel, 1, 3])), panel.statistics.of(channel)
        assert panel.status_text == f"channel {channel}  x 3  y 1   {value}   {figures.text()}"
        assert panel.findChild(HistogramStrip, "channel_inspector.histogram").statistics is figures
    show(panel, VALUES[:, :4].copy())  # fewer channels: all of them are shown
    assert panel.grid.isVisible()
    panel.look_at(Kind.WEIGHTS)
    show(panel, VALUES[0][:, None].copy())
    panel.enlarge(2)
    assert title.text().startswith("filter 2 (0 to 7)  ·  conv_h")


def test_the_histogram_is_that_of_the_channel_under_the_cursor(panel: ChannelInspectorPanel, qtbot: QtBot) -> None:
    show(panel, VALUES)
    qtbot.waitUntil(lambda: panel.statistics.complete)
    strip = panel.findChild(HistogramStrip, "channel_inspector.histogram")

    def channel() -> int:
        assert strip.statistics is not None
        return [float(plane.min()) for plane in VALUES[0]].index(strip.statistics.low)

    panel.grid.set_current(1)
    for hovered in (4, 0, 7):
        qtbot.mouseMove(panel.grid.viewport(), panel.grid.tile_rect(hovered).center().toPoint())
        assert channel() == hovered
    QApplication.sendEvent(panel, QEvent(QEvent.Type.Leave))
    assert channel() == 1
    assert panel.probe.hover is None
    flat = VALUES.copy()
    flat[0, (2, 5)] = 0.5
    show(panel, flat)
    qtbot.waitUntil(lambda: panel.statistics.complete)
    assert panel.status_text == "conv_h   1 x 8 x 6 x 5   2 dead (2, 5)"


def test_size_order_and_selection_follow_their_controls(panel: ChannelInspectorPanel, qtbot: QtBot) -> None:
    show(panel, VALUES)
    for row, order in enumerate(Order):
        choose(qtbot, panel, "order", row)
        assert list(panel.grid.order) == order_of(VALUES[0], order)
    qtbot.keyClick(panel.bar.side, Qt.Key.Key_Home)
    assert max(panel.grid.tile_rect(0).size().toTuple()) == 24
    turned(panel.grid.viewport(), 2, CONTROL)
    assert panel.bar.side.value() == max(panel.grid.tile_rect(0).size().toTuple()) == 35
    panel._context.select(("conv_0",))
    assert panel.source == "conv_h"
    qtbot.mouseClick(panel.findChild(QToolButton, "channel_inspector.follow"), LEFT)  # what is selected already
    assert panel.source == "conv_0"
    assert panel.subjects.layer.currentText() == "conv_0"
    panel._context.select(("mix_0", "conv_h"))
    assert panel.source == "conv_0"
    panel._context.inspect_requested.emit("mix_0")
    assert panel.subjects.layer.currentText() == "mix_0"
    panel.look_at(Kind.WEIGHTS)
    assert panel.subjects.kind.currentData() == Kind.WEIGHTS


@pytest.mark.parametrize("large", [False, True])
def test_the_inspected_layer_is_followed_until_it_is_deleted(
    panel: ChannelInspectorPanel, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    if large:
        monkeypatch.setattr(channel_inspector, "LARGE", 2)
    context, reported = panel._context, []
    context.inspected.connect(reported.append)
    document, box = context.document, panel.subjects.layer
    show(panel, VALUES)
    panel.probe.toggle((1, 2, 3))
    assert document.do(lambda g: rename_layer(g, "conv_h", "first"))
    qtbot.waitUntil(lambda: box.findText("first") >= 0)
    assert (panel.source, box.currentText(), reported) == ("first", "first", ["first"])
    assert panel.page is not None
    assert panel.probe.pin == (1, 2, 3)
    assert document.do(lambda g: remove_layers(g, ["first"]))
    qtbot.waitUntil(lambda: box.findText("first") < 0)
    assert (panel.source, box.currentText(), reported) == ("", "", ["first", ""])
    assert panel.page is None
    assert not panel.grid.isVisible()
    assert panel.probe.pin is None
    assert not panel.probe.unpin_button.isVisible()
    panel.inspect("conv_0")
    show(panel, VALUES)
    panel.probe.toggle((1, 2, 3))
    panel.inspect("mix_0")
    assert panel.probe.pin is None  # it was one of another layer
    assert panel.page is None
    panel.bar.set_look(3.0, 0.5)
    panel.probe.pin = (1, 2, 3)
    context.set_document(Document(kit.small_network(4), context.registry))
    assert panel.probe.pin is None
    assert (panel.bar.look.gain, panel.bar.look.shift) == (1.0, 0.0)
    panel.bar.set_look(3.0, 0.5)
    panel.bar.lock.setChecked(True)
    context.set_document(Document(kit.small_network(4), context.registry))
    assert (panel.bar.look.gain, panel.bar.look.shift) == (3.0, 0.5)


def test_a_range_is_kept_for_each_kind_of_map_and_scale(panel: ChannelInspectorPanel, qtbot: QtBot) -> None:
    show(panel, VALUES)
    kept = {}
    for gain, (row, each) in enumerate(((0, False), (3, False), (3, True), (0, True)), 2):
        choose(qtbot, panel, "palette", row)
        panel.bar.each.setChecked(each)
        panel.bar.gain.box.selectAll()
        qtbot.keyClicks(panel.bar.gain.box, f"{gain}\r")
        kept[row, each] = float(gain)
    for (row, each), expected in kept.items():
        choose(qtbot, panel, "palette", row)
        panel.bar.each.setChecked(each)
        assert panel.bar.look.gain == expected
    qtbot.mouseClick(panel.findChild(QToolButton, "channel_inspector.auto"), LEFT)
    auto = panel.bar.look.gain
    for layer in ("conv_0", "conv_h"):
        panel.inspect(layer)
        show(panel, VALUES.copy())
    assert panel.bar.look.gain == auto  # what was fitted by hand is kept, too
    qtbot.mouseClick(panel.findChild(QToolButton, "channel_inspector.reset"), LEFT)
    for layer in ("conv_0", "conv_h"):
        panel.inspect(layer)
        show(panel, VALUES.copy())
    assert panel.bar.look.gain == 1


# --- the probe --------------------------------------------------------------------------------------------------------


def finish(panel: ChannelInspectorPanel, **captures: np.ndarray) -> None:
    """A run of the network whose hidden tensors are these."""
    outputs = {"output_0": captures.pop("output_0")}
    panel._analysis.result = AnalysisResult(outputs, captures)
    panel._analysis.result_changed.emit()


def test_the_probe_is_of_the_item_and_the_channel_that_are_shown(panel: ChannelInspectorPanel, qtbot: QtBot) -> None:
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((2, 8, 6, 5)).astype(np.float32)
    image, result = (rng.random((2, 3, 6, 5)).astype(np.float32) for _ in range(2))
    finish(panel, conv_h=hidden, input_0=image, output_0=result)
    probe, pane = panel.probe, panel.probe.pane
    qtbot.mouseClick(probe.show_input, LEFT)
    QApplication.processEvents()
    for item in (0, 1):
        panel.subjects.item.setValue(item)
        assert pane.view.image == to_image(picture_pixels(image[item]))
        assert pane.title.text() == "input_0"
        for channel in (2, 5):
            panel.grid.set_current(channel)
            if item:
                panel.enlarge(channel)
            for x, y in ((3, 1), (4, 5), (0, 0)):
                qtbot.mouseMove(pane.view, pane.view.place_of(x + 0.5, y + 0.5).toPoint())
                value = number(float(hidden[item, channel, y, x]))
                assert panel.status_text.startswith(f"channel {channel}  x {x}  y {y}   {value}")
                assert probe.same.text().replace("\n", "  ·  ") == "  ·  ".join(
                    f"{name} ({x}, {y})  {' '.join(numbers([float(each) for each in array[item, :, y, x]]))}"
                    for name, array in (("input_0", image), ("output_0", result))
                )
                assert panel.grid._mark == (x, y)
            for button in (LEFT, RIGHT):
                assert not probe.unpin_button.isVisible()
                place = pane.view.place_of(3.5, 1.5).toPoint()
                qtbot.mouseMove(pane.view, place)
                qtbot.mouseClick(pane.view, button, pos=place)
                assert probe.pin == (channel, 3, 1)
                assert probe.unpin_button.isVisible()
                assert panel.status_text.startswith(f"channel {channel}  x 3  y 1   ")
                probe.leave()
                assert panel.status_text.startswith(f"pinned  channel {channel}  x 3  y 1   ")
                assert CrossOverlay(3, 1) in pane.view.overlays
                qtbot.mouseClick(probe.unpin_button, LEFT)
                assert probe.pin is None
                qtbot.mouseMove(pane.view, pane.view.place_of(0.5, 0.5).toPoint())
            panel.shrink()


def test_a_message_goes_and_a_value_that_the_cursor_has_left_too(panel: ChannelInspectorPanel, qtbot: QtBot) -> None:
    show(panel, VALUES[0, :1, 0])
    summary = panel.status_text
    panel.features.set_labels(("cat",))
    for index, name in ((0, "0 cat"), (4, "4")):
        place = QPoint(round((index + 0.5) * panel.features._across() / 5), 50)
        qtbot.mouseMove(panel.features, place)
        assert panel.status_text == f"feature {name}   {number(float(VALUES[0, 0, 0, index]))}"
    QApplication.sendEvent(panel.features, QEvent(QEvent.Type.Leave))
    assert panel.status_text == summary
    show(panel, VALUES[0, :1])
    area = panel.matrix.area()
    place = area.topLeft() + QPointF(3.5 * area.width() / 5, 1.5 * area.height() / 6)
    qtbot.mouseMove(panel.matrix, place.toPoint())
    assert panel.status_text == f"position 1  feature 3   {number(float(VALUES[0, 0, 1, 3]))}"
    QApplication.sendEvent(panel.matrix, QEvent(QEvent.Type.Leave))
    assert panel.status_text.startswith("conv_h   1 x 6 x 5")
    panel.probe._message_timer.setInterval(20)
    panel.probe.show_message("Saved image.png")
    assert panel.status_text == "Saved image.png"
    qtbot.waitUntil(lambda: panel.status_text.startswith("conv_h   1 x 6 x 5"))


def test_the_input_next_to_the_channels_is_one_that_the_layer_depends_on(qtbot: QtBot) -> None:
    layers = [
        Layer("a", "input", params={"dims": "8x8x3"}),
        Layer("b", "input", params={"dims": "8x8x3"}),
        Layer("of_a", "relu", inputs=(Source("a"),)),
        Layer("of_b", "relu", inputs=(Source("b"),)),
        Layer("both", "element_wise", inputs=(Source("of_a"), Source("of_b"))),
        Layer("y", "output", inputs=(Source("both"),)),
    ]
    panel = inspector_of(qtbot, Graph(layers))
    panel.probe.show_input.setChecked(True)
    tensors = {
        name: np.full((1, 3, 8, 8), n / 4, np.float32) for n, name in enumerate(("a", "b", "of_a", "of_b", "both"))
    }
    for layer, name in (("of_b", "b"), ("of_a", "a"), ("both", "a"), ("b", "b")):
        panel.inspect(layer)
        finish(panel, output_0=tensors["both"], **tensors)
        assert panel.probe.pane.title.text() == name
        assert panel.probe.pane.view.image == to_image(picture_pixels(tensors[name][0]))


def test_ticks_and_names_of_axes_are_at_their_rows_and_columns(qtbot: QtBot) -> None:
    view = MatrixView("matrix", "Map")
    made(qtbot, view, 500, 300)
    data = np.zeros((3, 40), np.float32)

    def ink(axes: tuple[str, str]) -> tuple[bool, bool]:
        """Whether there is a text at the left and at the bottom."""
        view.show_values(data, axes)
        image, color, line = view.grab().toImage(), theme.color("text"), view.fontMetrics().height()
        left = has(image, (0, 0, line + 2, view.height() - 2 * line - 8), color, 60)
        return left, has(image, (0, view.height() - line, view.width(), view.height()), color, 60)

    assert [ink(axes) for axes in (("", ""), ("filter", ""), ("", "input"), ("filter", "input"))] == [
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    ]
    image, area = view.grab().toImage(), view.area()
    marks = [
        x
        for x in range(round(area.left()), round(area.right()))
        if near(image.pixelColor(x, round(area.bottom()) + 2), theme.color("muted"), 40)
    ]
    expected = [area.left() + (number + 0.5) * area.width() / 40 for number in ticks(40, area.width())]
    assert len(expected) > 3
    assert all(any(abs(x - mark) <= 1.5 for mark in marks) for x in expected)
    assert all(any(abs(x - mark) <= 1.5 for x in expected) for mark in marks)
    down = [
        y
        for y in range(round(area.top()), round(area.bottom()))
        if near(image.pixelColor(round(area.left()) - 3, y), theme.color("muted"), 40)
    ]
    rows = [area.top() + (number + 0.5) * area.height() / 3 for number in range(3)]
    assert all(any(abs(y - mark) <= 1.5 for mark in down) for y in rows)
    assert all(any(abs(y - mark) <= 1.5 for y in rows) for mark in down)


# --- exports ----------------------------------------------------------------------------------------------------------


def test_files_are_named_after_the_tensor_and_have_what_is_shown(
    panel: ChannelInspectorPanel, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    proposed: list[str] = []

    def answer(_parent: object, _title: str, name: str, *_filters: str) -> tuple[str, str]:
        proposed.append(Path(name).name)
        return str(tmp_path / Path(name).name), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)

    def saved(way: str) -> str:
        panel.exporter.export(way)
        panel.exporter.background.wait()
        qtbot.waitUntil(lambda: not panel.exporter.background.running)
        qtbot.waitUntil(lambda: panel.status_text.startswith("Saved"))
        return proposed.pop()

    def copied() -> QImage:
        QGuiApplication.clipboard().clear()
        panel.exporter.export("copy")
        return QGuiApplication.clipboard().image()

    panel.exporter.export("copy")  # nothing is shown yet
    assert panel.status_text == ""
    show(panel, VALUES)
    assert copied().size() == panel.grid.sheet().size()
    panel.enlarge(3)
    assert [saved(way) for way in ("picture", "tensor", "statistics")] == ["conv_h_3.png", "conv_h.npy", "conv_h.csv"]
    np.testing.assert_array_equal(np.load(tmp_path / "conv_h.npy"), VALUES)
    assert QImage(str(tmp_path / "conv_h_3.png")).text("Comment").startswith("{")
    assert copied().size().toTuple() == (5, 6)
    panel.look_at(Kind.WEIGHTS)
    panel.subject.tensor = "weight"
    kernels = VALUES[0][:, None].repeat(5, 1)  # five kernels in each filter, with gaps between them
    show(panel, kernels)
    assert saved("statistics") == "conv_h_weight.csv"
    assert list(json.loads((tmp_path / "conv_h_weight.csv.provenance.json").read_text())["provenance"]) == [
        "conv_h weight"
    ]
    rows = (tmp_path / "conv_h_weight.csv").read_text().splitlines()[1:]
    means = [float(row.split(",")[3]) for row in rows]
    assert means == pytest.approx(kernels.mean(axis=(1, 2, 3)).tolist(), rel=1e-4)
    panel.enlarge(2)
    assert [saved(way) for way in ("picture", "tensor")] == ["conv_h_weight_2.png", "conv_h_weight.npy"]
    panel.subject.tensor = "bias"
    show(panel, VALUES[0, :, 0, 0].copy())
    assert copied().size() == panel.features.grab().toImage().size()
    assert saved("picture") == "conv_h_bias.png"
    for way in ("channels", "runs"):
        panel.exporter.export(way)
        assert panel.status_text.startswith("Nothing is there to be animated")
    show(panel, VALUES[0, :, 0].copy())
    shown = copied()
    assert shown == panel.matrix.grab().toImage().convertToFormat(shown.format())
    panel.look_at(Kind.GRADIENT)
    show(panel, VALUES)
    assert saved("tensor") == "conv_h_gradient.npy"
    panel.enlarge(1)
    assert [saved(way) for way in ("picture", "statistics")] == ["conv_h_gradient_1.png", "conv_h_gradient.csv"]
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    for way in ("picture", "tensor", "statistics", "channels"):
        panel.probe.show_message("nothing was written")
        panel.exporter.export(way)
        assert panel.status_text == "nothing was written", way
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", lambda _p, _t, name, *_: (str(tmp_path / "none" / Path(name).name), "")
    )
    panel.grid.set_side(24)
    for way in ("picture", "tensor", "statistics", "channels"):
        panel.exporter.export(way)
        panel.exporter.background.wait()
        qtbot.waitUntil(lambda: not panel.status_text.startswith("Writing"))
        assert str(tmp_path / "none") in panel.status_text, way


def test_a_sheet_without_room_for_all_channels_says_so(
    panel: ChannelInspectorPanel, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "sheet.png"), ""))
    monkeypatch.setattr("app.ui.inspector.channel_grid.MAX_PIXELS", 150 * 180 * 3)
    show(panel, VALUES)
    panel.exporter.export("picture")
    assert panel.status_text == "Writing …"
    panel.exporter.export("tensor")  # one after the other
    assert panel.status_text.startswith("Another file is being written")
    qtbot.waitUntil(lambda: panel.status_text.startswith("Saved"))
    assert f"with the first {panel.grid.on_sheet} of 8 channels" in panel.status_text
    assert 1 < panel.grid.on_sheet < 8
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "tensor.npy"), ""))
    panel.exporter.export("tensor")  # it has all of them
    qtbot.waitUntil(lambda: panel.status_text == "Saved tensor.npy")


def test_a_recording_has_the_runs_since_it_began(panel: ChannelInspectorPanel) -> None:
    record = panel.subjects.export._actions["record"]
    for _ in range(2):
        record.trigger()
        for number_of_run in range(2):
            show(panel, VALUES + number_of_run)
        assert len(panel.exporter._frames) == 3 - (_ == 0)
        record.trigger()
        show(panel, VALUES.copy())
        assert len(panel.exporter._frames) == 3 - (_ == 0)


def test_a_recording_has_what_is_shown_of_each_run(panel: ChannelInspectorPanel) -> None:
    """All channels in sight, one of them alone at its full size, a map or bars."""
    panel.subjects.export._actions["record"].trigger()
    frames = panel.exporter._frames
    show(panel, VALUES)
    assert frames[-1] == panel.grid.seen()
    panel.enlarge(2)
    show(panel, VALUES + 1)
    assert frames[-1] == panel.view.image
    assert frames[-1].size().toTuple() == (5, 6)
    panel.shrink()
    show(panel, VALUES[0, :1].copy())
    assert frames[-1].size() == panel.matrix.grab().toImage().size()
    show(panel, VALUES[0, :1, 0].copy())
    assert frames[-1].size() == panel.features.grab().toImage().size()
    assert len(frames) == 4
    panel.hide()
    show(panel, VALUES.copy())
    assert len(frames) == 4


def test_channels_that_are_large_enough_are_animated_at_their_own_size(panel: ChannelInspectorPanel) -> None:
    for size, times in (((3, 128), 1), ((128, 3), 1), ((2, 127), 2), ((64, 2), 2), ((43, 42), 3), ((1, 300), 1)):
        show(panel, np.random.default_rng(0).random((1, 2, *size)).astype(np.float32))
        make = panel.exporter.channels()
        assert make is not None
        assert [frame.size().toTuple() for frame in make()] == [(size[1] * times, size[0] * times)] * 2


def test_channels_that_are_too_large_together_are_animated_as_means(
    panel: ChannelInspectorPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(0).random((1, 2, 4, 256)).astype(np.float32)
    show(panel, values)
    for largest, block in ((values.size, 1), (values.size - 1, 2), (values.size // 4, 2), (values.size // 4 - 1, 3)):
        monkeypatch.setattr("app.ui.inspector.export.LARGEST", largest)
        make = panel.exporter.channels()
        assert make is not None
        for frame, plane in zip(make(), values[0], strict=True):
            small = to_image(pixels(block_mean(plane, block), panel.bar.look))
            times = -(-128 // max(small.width(), small.height()))
            assert frame == small.scaled(small.width() * times, small.height() * times)


def test_frames_of_channels_are_in_the_order_and_shape_of_the_grid(panel: ChannelInspectorPanel, qtbot: QtBot) -> None:
    wide = VALUES.repeat(2, 3)
    show(panel, wide)
    choose(qtbot, panel, "order", list(Order).index(Order.ENERGY))
    for each in (False, True):
        panel.bar.each.setChecked(each)
        make = panel.exporter.channels()
        assert make is not None
        for frame, channel in zip(make(), order_of(wide[0], Order.ENERGY), strict=True):
            own = fit(wide[0, channel], panel.bar.look.palette) if each else None
            expected = to_image(pixels(wide[0, channel], panel.bar.look, own))
            assert frame == expected.scaled(10 * 13, 6 * 13)


# --- the probe --------------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(panel: ChannelInspectorPanel, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the receptive field is asked for, of a panel whose hidden layer, input and output are of 6 x 5 pixels."""
    found: list[object] = []
    monkeypatch.setattr(panel.probe.field, "ask", lambda *args: found.append(args))
    monkeypatch.setattr(panel.probe.field, "clear", lambda: found.append("clear"))
    rng = np.random.default_rng(0)
    hidden, image, result = (rng.random((1, n, 6, 5)).astype(np.float32) for n in (8, 3, 3))
    finish(panel, conv_h=hidden, input_0=image, output_0=result)
    return found


def test_a_pin_is_kept_through_its_life(panel: ChannelInspectorPanel, asked: list[object]) -> None:
    probe, subject = panel.probe, panel.subject

    def state() -> tuple[object, ...]:
        return (
            probe.pin,
            probe.pinned_at(),
            probe.unpin_button.isVisible(),
            probe.show_input.isChecked(),
            probe._marked.spot,
            panel.grid._mark,
        )

    assert state() == (None, None, False, False, None, None)
    probe.toggle(None)
    assert (state()[0], asked) == (None, [])
    probe.toggle((2, 3, 1))
    pinned = ((2, 3, 1), (2, 1, 3), True, True, ((3, 1), (5, 6)), (3, 1))
    assert state() == pinned
    assert asked == [("conv_h", 3, 1, "input_0")]
    assert subject.at == (2, 1, 3)
    assert probe.pane.isVisible()
    probe._set_hover((4, 0, 6))  # below the tensor, which may have become smaller
    assert state() == pinned
    probe._set_hover((4, 0, 5))
    assert state() == (*pinned[:-1], (0, 5))
    assert not panel.status_text.startswith("pinned")
    assert {type(mark) for mark in probe.pane.view.overlays} == {CrossOverlay}
    assert len(probe.pane.view.overlays) == 2
    probe.leave()
    assert state() == pinned
    assert panel.status_text.startswith("pinned  channel 2  x 3  y 1   ")
    probe.toggle((5, 3, 1))  # another channel
    assert probe.pin == (5, 3, 1)
    assert asked[1:] == [("conv_h", 3, 1, "input_0")]
    probe.toggle((5, 3, 1))
    assert state() == (None, None, False, True, None, None)
    assert asked[2:] == ["clear"]
    assert subject.at is None
    probe.unpin()
    assert len(asked) == 3
    # a double click zooms: the two clicks before it leave no trace
    probe.show_input.setChecked(False)
    for place in ((1, 2, 4), None):
        before = state()
        probe._click((6, 4, 4))
        assert probe.pin == (6, 4, 4)
        probe._restore_pin()
        assert state() == before
        if place is not None:
            probe.toggle(place)
    assert probe.pin == (1, 2, 4)
    for kind in (Kind.WEIGHTS, Kind.GRADIENT):  # there only the output's pin is shown
        subject.kind = kind
        probe.toggle((0, 0, 0))
        assert probe.pin == (1, 2, 4)
    subject.kind = Kind.OUTPUT


def test_a_pin_follows_the_size_of_its_tensor(panel: ChannelInspectorPanel, asked: list[object]) -> None:
    probe = panel.probe
    probe.toggle((2, 3, 1))
    del asked[:]
    coarse, full = (np.random.default_rng(1).random((1, 8, *size)).astype(np.float32) for size in ((3, 2), (12, 10)))
    panel._analysis.result = AnalysisResult({}, {"conv_h": coarse}, coarse=2)
    panel._analysis.result_changed.emit()
    assert (probe.pin, asked) == ((2, 3, 1), [])
    assert panel.grid._mark == scaled((3, 1), (5, 6), (2, 3))
    finish(panel, conv_h=full, output_0=full)
    x, y = scaled((3, 1), (5, 6), (10, 12))
    assert (probe.pin, probe._pin_size) == ((2, x, y), (10, 12))
    assert asked == [("conv_h", x, y, "input_0")]
    assert panel.grid._mark == (x, y)
    assert probe._marked.spot == ((x, y), (10, 12))
    panel.inspect("conv_0")
    assert probe.pin is None
    assert asked[1:] == ["clear"]


def test_weights_and_gradients_are_drawn_as_they_are_while_results_are_coarse(
    panel: ChannelInspectorPanel, asked: list[object]
) -> None:
    large, small = (np.random.default_rng(0).random((8, 1, *size)).astype(np.float32) for size in ((7, 9), (3, 3)))
    for kind in Kind:
        panel.look_at(kind)
        panel._analysis.result = None
        for coarse, kernel in ((0, large), (2, small)):
            if coarse:
                panel._analysis.result = AnalysisResult(coarse=coarse)
            show(panel, kernel[None, :, 0] if kind is not Kind.WEIGHTS else kernel)
            panel.enlarge(1)
            assert panel.view.image is not None
            kept = kind is Kind.OUTPUT and coarse
            assert panel.view.image.size().toTuple() == ((9, 7) if kept else kernel.shape[:1:-1]), kind


def test_the_input_is_shown_where_it_is_asked_for(panel: ChannelInspectorPanel, asked: list[object]) -> None:
    probe, pane, result = panel.probe, panel.probe.pane, panel._analysis.result
    assert result is not None
    assert not pane.isVisible()
    probe.show_input.setChecked(True)
    image = to_image(picture_pixels(result.captures["input_0"][0]))
    assert (pane.isVisible(), pane.title.text(), pane.view.image) == (True, "input_0", image)
    other = {name: 1 - array for name, array in result.captures.items()}
    panel._analysis.result = AnalysisResult({}, other, coarse=2)
    panel._analysis.result_changed.emit()
    assert pane.view.image == image  # the full one follows
    panel._analysis.result = AnalysisResult({}, other)
    panel._analysis.result_changed.emit()
    assert pane.view.image == to_image(picture_pixels(other["input_0"][0]))
    panel.look_at(Kind.WEIGHTS)
    show(panel, VALUES[0])
    assert not pane.isVisible()
    probe.show_input.setChecked(False)
    probe.show_input.setChecked(True)
    assert not pane.isVisible()
    panel.look_at(Kind.OUTPUT)
    panel._analysis.result_changed.emit()
    assert pane.isVisible()
    probe.show_input.setChecked(False)
    assert not pane.isVisible()


def test_the_input_next_to_a_gradient_is_the_one_that_it_is_of(qtbot: QtBot) -> None:
    layers = [
        *(Layer(name, "input", params={"dims": "8x8x3"}) for name in ("a", "b")),
        Layer("both", "element_wise", inputs=(Source("a"), Source("b"))),
        Layer("y", "output", inputs=(Source("both"),)),
    ]
    panel = inspector_of(qtbot, Graph(layers))
    panel.probe.show_input.setChecked(True)
    panel.inspect("both")
    tensors = {name: np.full((1, 3, 8, 8), n / 4, np.float32) for n, name in enumerate(("a", "b", "both"))}
    subject = panel.subject
    for kind, tensor, name in (
        (Kind.OUTPUT, "b", "a"),
        (Kind.GRADIENT, "b", "b"),
        (Kind.GRADIENT, "a", "a"),
        (Kind.GRADIENT, "", "a"),
        (Kind.GRADIENT, "b", "b"),
    ):
        subject.kind, subject.tensor = kind, tensor
        panel._analysis.result = AnalysisResult({}, tensors)
        panel.probe.show_result()
        assert panel.probe.pane.title.text() == name
        assert panel.probe.pane.view.image == to_image(picture_pixels(tensors[name][0]))


def test_messages_and_places_outside_of_the_tensor(panel: ChannelInspectorPanel, asked: list[object]) -> None:
    probe = panel.probe
    heard: list[object] = []
    probe.changed.connect(lambda: heard.append(probe.hover))
    summary = panel.status_text
    assert summary.startswith("conv_h   1 x 8 x 6 x 5")
    for place in ((8, 0, 0), (0, 5, 0), (0, 0, 6)):
        probe._set_hover((0, 0, 0))
        assert probe.same.text() != ""
        probe._set_hover(place)
        assert (panel.status_text, probe.same.text()) == (summary, "")
    assert heard == [(0, 0, 0), (8, 0, 0), (0, 0, 0), (0, 5, 0), (0, 0, 0), (0, 0, 6)]
    probe._set_hover((0, 0, 6))
    assert len(heard) == 6
    panel.exporter.message.emit("Saved it.")
    assert probe.status.text() == "Saved it."
    probe.show_summary("other")
    assert probe.status.text() == "Saved it."
    probe._set_hover((1, 4, 5))  # the cursor moves
    assert probe.status.text().startswith("channel 1  x 4  y 5   ")
    probe.leave()
    assert (probe.status.text(), probe.same.text()) == (summary, "")


def test_the_input_is_pointed_at_while_channels_are_shown(panel: ChannelInspectorPanel, asked: list[object]) -> None:
    """A pixel of the input is the one of the channel at the same place; nothing else has such a place."""
    probe, pane = panel.probe, panel.probe.pane
    probe.show_input.setChecked(True)
    pane.view.probed.emit((2, 3))
    assert probe.hover == (panel.grid.current, 2, 3)
    assert panel.status_text.startswith(f"channel {panel.grid.current}  x 2  y 3   ")
    pane.view.probed.emit(None)
    assert probe.hover is None
    pane.view.clicked.emit()  # outside of the image
    assert probe.pin is None
    pane.view.right_clicked.emit((4, 1))
    assert probe.pin == (panel.grid.current, 4, 1)
    probe.unpin()
    show(panel, VALUES[:, :, 0].copy())  # a map of positions and features has no pixels
    for place in ((2, 3), None):
        pane.view.probed.emit(place)
        pane.view.right_clicked.emit(place)
        assert (probe.hover, probe.pin) == (None, None)


def test_between_the_kernels_of_a_filter_is_no_value(panel: ChannelInspectorPanel) -> None:
    show(panel, VALUES)
    panel.look_at(Kind.WEIGHTS)
    kernels = np.random.default_rng(0).random((3, 2, 3, 4)).astype(np.float32)
    show(panel, kernels)
    summary = panel.status_text
    for x, y, at in ((3, 2, (0, 3, 2)), (4, 1, None), (5, 0, (1, 0, 0)), (8, 2, (1, 3, 2))):
        panel.probe._set_hover((1, x, y))
        if at is None:
            assert panel.status_text == summary
        else:
            value = number(float(kernels[1, at[0], at[2], at[1]]))
            assert panel.status_text == f"filter 1  input channel {at[0]}  x {at[1]}  y {at[2]}   {value}"


def test_a_map_without_values_and_a_large_one(qtbot: QtBot) -> None:
    """More than 4096 rows or columns are drawn as means of blocks; places are those of the values."""
    view = made(qtbot, MatrixView("matrix", "Map"), 500, 300)
    probed: list[object] = []
    view.probed.connect(probed.append)
    for data in (None, np.zeros((0, 5), np.float32), np.zeros((4, 0), np.float32)):
        view.show_values(data)
        assert (view.image, view.place_at(view.area().center())) == (None, None)
        qtbot.mouseMove(view, view.area().center().toPoint())
        assert set(probed) <= {None}
        assert not view.grab().isNull()
    for columns, block in ((4095, 1), (4096, 1), (8191, 1), (8192, 2), (12288, 3)):
        values = np.arange(2 * columns, dtype=np.float32).reshape(2, columns) / columns
        view.show_values(values)
        assert view.image == to_image(pixels(block_mean(values, block), Look()))
        area = view.area()
        assert view.place_at(area.topLeft() + QPointF(0.01, 0.01)) == (0, 0)
        assert view.place_at(area.bottomRight() - QPointF(0.01, 0.01)) == (1, columns - 1)
        for dx, dy in ((-1, 1), (1, -1)):
            assert view.place_at(area.topLeft() + QPointF(dx, dy)) is None
            assert view.place_at(area.bottomRight() - QPointF(dx, dy)) is None


def test_lines_are_stacked_where_there_is_little_room(panel: ChannelInspectorPanel, asked: list[object]) -> None:
    probe = panel.probe
    probe.set_stacked(False)
    probe._set_hover((3, 1, 2))
    whole, others = probe.status.text(), probe.same.text()
    assert others.count("  ·  ") == 1
    figures = panel.statistics.of(3).text()
    assert whole.endswith(f"   {figures}")
    assert not probe.details.isVisible()
    probe.set_stacked(True)
    assert probe.details.isVisible()
    assert (probe.status.text(), probe.details.text()) == (whole.removesuffix(f"   {figures}"), figures)
    assert probe.same.text() == others.replace("  ·  ", "\n")
    height = probe.same.minimumHeight()
    assert height >= 2 * probe.same.fontMetrics().height()
    probe.leave()
    assert (probe.same.text(), probe.details.text()) == ("", "")
    assert probe.same.minimumHeight() == height  # nothing jumps when the cursor leaves
    probe._set_hover((3, 1, 2))
    probe.set_stacked(False)
    assert (probe.status.text(), probe.same.text(), probe.same.minimumHeight()) == (whole, others, 0)
