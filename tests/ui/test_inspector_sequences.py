"""The Channel Inspector step by step: what is shown after other values, colors, layers, tensors and documents in turn."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import analysis_kit as kit
import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, Signal
from PySide6.QtGui import QImage, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QToolButton, QWidget
from pytestqt.qtbot import QtBot
from window_kit import shown

from app.engine.protocol import GradientReply, GradientRequest, WeightsReply, WeightsRequest
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.result import AnalysisResult, Phase
from app.ui.inspector.channel_grid import ChannelGrid
from app.ui.inspector.channel_inspector import ChannelInspectorPanel
from app.ui.inspector.look import Fit, Look, fit, pixels
from app.ui.inspector.order import Order, Sorter, order_of
from app.ui.inspector.subject import REST, Kind, Subject
from app.ui.inspector.tiles import Tiles
from app.ui.widgets import theme
from app.ui.widgets.render import PALETTES, to_image
from designer.graph.commands import remove_layers, rename_layer, set_params
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.units import number

pytestmark = pytest.mark.gui
LEFT = Qt.MouseButton.LeftButton
WAIT = 5000


def noise(seed: int, *shape: int) -> np.ndarray:
    """Values that are neither symmetric nor of mean 0, other ones in every channel."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape) + rng.standard_normal((*shape[:-2], 1, 1))
    return (values * np.arange(1, shape[-3] + 1)[:, None, None]).astype(np.float32)


# --- tiles -----------------------------------------------------------------------------------------------------------------


def own_fit(plane: np.ndarray, look: Look, gaps: np.ndarray | None) -> Fit | None:
    return fit(np.ascontiguousarray(plane[~gaps] if gaps is not None else plane), look.palette) if look.each else None


@pytest.mark.parametrize("each", [False, True])
def test_tiles_have_the_present_values_in_the_present_colors(each: bool) -> None:
    """After each change of values, colors or size: tiles as if nothing had been before, and until then those of before."""
    tiles, side, look, gaps = Tiles(), 144, Look(), None
    data = noise(0, 3, 6, 5)

    def expected() -> list[QImage]:
        fresh = [pixels(plane, look, own_fit(plane, look, gaps)) for plane in data]
        return [to_image(found) for found in fresh]

    def check(what: str, before: list[QImage | None]) -> list[QImage]:
        assert tiles.missing(range(len(data))) == list(range(len(data))), what
        assert [tiles.picture(channel) for channel in range(len(data))] == before, what
        assert tiles.make(range(len(data)))
        found = [tiles.picture(channel) for channel in range(len(data))]
        wanted = expected()
        for channel, (tile, want) in enumerate(zip(found, wanted, strict=True)):
            if gaps is None:
                assert tile == want, f"{what}, channel {channel}"
            else:  # a gap has a color of its own
                places = [(x, y) for y, x in zip(*np.nonzero(~gaps), strict=True)]
                assert all(tile.pixel(x, y) == want.pixel(x, y) for x, y in places), f"{what}, channel {channel}"
                rest = [(x, y) for y, x in zip(*np.nonzero(gaps), strict=True)]
                assert {tile.pixelColor(x, y).name() for x, y in rest} == {theme.color("border").name()}, what
        assert tiles.missing(range(len(data))) == [], what
        return found  # type: ignore[return-value]

    tiles.set_side(side)
    tiles.show(data)
    made = check("first", [None] * 3)
    for palette in PALETTES[::-1]:
        look = Look(palette, gain=0.5, each=each)
        tiles.set_look(look)
        made = check(palette, list(made))
        if each:
            assert [tiles.fit_of(channel) for channel in range(3)] == [fit(plane, palette) for plane in data]
    look = Look("viridis", gain=2.0, log=True, each=each)
    tiles.set_look(look)
    made = check("gain", list(made))
    data = noise(1, 3, 6, 5) * 7
    tiles.show(data)
    made = check("other values", list(made))
    look = Look("green / red", each=True)
    tiles.set_look(look)
    made = check("each", list(made))
    gaps = np.zeros((6, 5), bool)
    gaps[2], data = True, data.copy()
    data[:, 2] = 1000.0  # what is in a gap does not count
    tiles.show(data, gaps)
    made = check("gaps", list(made))
    gaps, data = None, noise(2, 3, 5, 6)
    tiles.show(data)
    check("another shape", [None] * 3)
    tiles.show(None)
    assert (tiles.picture(0), tiles.make([0])) == (None, True)
    data = noise(3, 2, 8, 8)
    tiles.show(data)
    check("again", [None] * 2)


def test_tiles_of_another_size_are_made_of_the_values_again() -> None:
    data = noise(0, 2, 64, 48)
    tiles = Tiles()
    tiles.show(data)
    sizes = {}
    for side in (64, 16, 32, 200):
        tiles.set_side(side)
        tiles.make([0, 1])
        tile = tiles.picture(1)
        assert tile is not None
        sizes[side] = (tile.width(), tile.height())
        fresh = Tiles()
        fresh.set_side(side)
        fresh.show(data)
        fresh.make([1])
        assert tile == fresh.picture(1)
    assert sizes == {64: (48, 64), 16: (12, 16), 32: (24, 32), 200: (48, 64)}


# --- the grid ----------------------------------------------------------------------------------------------------------------


class Around(QWidget):
    """Accepts the clicks that a view leaves to the window around it."""

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()


def test_selection_order_and_place_of_the_grid_over_runs_and_tensors(qtbot: QtBot) -> None:
    around = shown(qtbot, Around(), 420, 300)
    grid = ChannelGrid("grid", "Channels", around)
    grid.resize(420, 300)
    grid.show()
    QTest.qWaitForWindowActive(around)
    grid.set_side(100)
    reported: list[tuple[str, Any]] = []
    grid.activated.connect(lambda channel: reported.append(("activated", channel)))
    grid.probed.connect(lambda place: reported.append(("probed", place)))

    def state() -> tuple[int, int, list[int], int]:
        return grid.current, grid.verticalScrollBar().value(), list(grid.order), grid.channels

    def rest() -> None:
        qtbot.waitUntil(lambda: grid.complete, timeout=WAIT)

    assert state() == (0, 0, [], 0)
    grid.show_data(noise(0, 40, 6, 5))
    assert state() == (0, 0, list(range(40)), 40)
    order = list(range(39, -1, -1))
    grid.set_order(order)
    grid.setFocus()
    columns = next(n for n in range(1, 40) if grid.tile_rect(order[n]).top() > grid.tile_rect(order[0]).top())
    assert columns > 1
    grid.set_current(39)
    for key, expected in (  # places, not numbers, of channels
        (Qt.Key.Key_Right, 38),
        (Qt.Key.Key_Down, 38 - columns),
        (Qt.Key.Key_Left, 39 - columns),
        (Qt.Key.Key_Up, 39),
        (Qt.Key.Key_Left, 39),  # it is the first
        (Qt.Key.Key_End, 0),
        (Qt.Key.Key_Right, 0),
        (Qt.Key.Key_Up, columns),
        (Qt.Key.Key_Home, 39),
    ):
        qtbot.keyClick(grid, key)
        assert grid.current == expected, key
    assert [grid.neighbour(39, step) for step in (1, -1)] == [38, 0]
    grid.set_current(12)
    scrolled = grid.verticalScrollBar().value()
    assert scrolled > 0
    rest()
    for data, look in ((noise(1, 40, 6, 5), Look("viridis")), (noise(2, 40, 6, 5), Look(each=True))):
        grid.show_data(data)  # the next runs
        assert not grid.complete
        assert state() == (12, scrolled, order, 40)
        rest()
        grid.set_look(look)
        assert not grid.complete
        assert state() == (12, scrolled, order, 40)
        rest()
    grid.set_side(50)
    assert grid.current == 12
    grid.set_side(100)
    grid.show_data(noise(3, 40, 6, 9))  # another width of tiles, as many channels
    assert (grid.current, list(grid.order)) == (12, order)
    grid.show_data(noise(3, 60, 6, 5))  # more channels
    assert state() == (0, 0, list(range(60)), 60)
    grid.set_current(59)
    grid.show_data(noise(3, 7, 6, 5))  # fewer
    assert state() == (0, 0, list(range(7)), 7)
    grid.set_current(5)
    grid.show_data(None)
    assert state() == (0, 0, [], 0)
    assert (grid.complete, grid.channel_at(QPointF(30, 30)), list(grid.visible())) == (True, None, [])
    reported.clear()
    qtbot.keyClick(grid, Qt.Key.Key_Return)
    assert reported == []
    grid.show_data(noise(3, 7, 6, 5))
    assert state() == (0, 0, list(range(7)), 7)
    grid.set_order([6, 5, 4, 3, 2, 1, 0])
    middle = grid.tile_rect(5).center().toPoint()
    qtbot.mouseMove(grid.viewport(), middle)
    qtbot.mouseClick(grid.viewport(), LEFT, pos=middle)
    assert (grid.current, reported) == (5, [("probed", (5, 2, 3)), ("activated", 5)])
    QApplication.sendEvent(grid.viewport(), QEvent(QEvent.Type.Leave))
    QApplication.sendEvent(grid, QEvent(QEvent.Type.Leave))
    assert reported[-1] == ("probed", None)
    grid.show_data(noise(4, 400, 6, 5))
    grid.set_current(300)
    for side in (50, 150, 100):
        seen = grid.visible()[0]
        grid.set_side(side)  # the same channels stay in sight
        assert abs(grid.visible()[0] - seen) < 20
        assert grid.verticalScrollBar().value() > 0


def test_channels_are_sorted_in_the_order_that_was_asked_for_last(qtbot: QtBot) -> None:
    """Small tensors at once, large ones in a thread; what is asked for meanwhile drops the answer."""
    owner = QObject()
    sorter, found = Sorter(owner), []
    sorter.sorted.connect(found.append)
    small, large, other = noise(0, 6, 5, 4), noise(1, 6, 600, 600), noise(2, 6, 600, 600)
    orders = {order: order_of(large, order) for order in Order}
    assert len({tuple(order) for order in orders.values()}) >= 4
    for order in Order:
        sorter.sort(small, order)
        assert found.pop() == order_of(small, order)
        sorter.sort(large, order)
        qtbot.waitUntil(lambda: len(found) == 1, timeout=WAIT)
        assert found.pop() == orders[order]
    sorter.sort(large, Order.ENERGY)
    sorter.sort(other, Order.SIMILARITY)
    sorter.sort(other, Order.MEAN)
    qtbot.waitUntil(lambda: len(found) == 1, timeout=WAIT)
    assert found.pop() == order_of(other, Order.MEAN)
    sorter.sort(large, Order.ENERGY)
    sorter.sort(small, Order.INDEX)
    assert found.pop() == list(range(6))
    sorter.wait()
    qtbot.waitUntil(lambda: not sorter._background.running, timeout=WAIT)
    assert found == []
    zeros = np.ones((3, 2, 4), np.float32)
    zeros[1], zeros[2, 0] = 0, 0
    assert order_of(zeros, Order.ZEROS) == [1, 2, 0]


def test_sorting_goes_on_after_a_failure(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what was asked for meanwhile, if there is something, and with the next request."""
    owner = QObject()
    sorter, found = Sorter(owner), []
    sorter.sorted.connect(found.append)
    large, fails = noise(1, 6, 600, 600), [True]

    def sort(data: np.ndarray, kind: Order) -> list[int]:
        if fails and fails.pop():
            raise ValueError("no order")
        return order_of(data, kind)

    monkeypatch.setattr("app.ui.inspector.order.order_of", sort)
    sorter.sort(large, Order.MEAN)
    qtbot.waitUntil(lambda: not sorter._background.running, timeout=WAIT)
    assert found == []
    fails.append(True)
    sorter.sort(large, Order.MEAN)
    sorter.sort(large, Order.ENERGY)
    qtbot.waitUntil(lambda: len(found) == 1, timeout=WAIT)
    assert found.pop() == order_of(large, Order.ENERGY)
    sorter.sort(large, Order.ZEROS)
    qtbot.waitUntil(lambda: len(found) == 1, timeout=WAIT)


# --- what the subject asks for -------------------------------------------------------------------------------------------------


class Call:
    def __init__(self, request: object, done: Any, failed: Any, superseded: Any) -> None:
        self.request, self.done, self.failed, self._superseded = request, done, failed, superseded
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Engine:
    """In place of the client of an engine: the test answers. Handles are the arrays themselves."""

    def __init__(self) -> None:
        self.opened: object = object()
        self.calls: list[Call] = []

    def ask(self, request: object, _owner: object, done: Any, failed: Any, *, superseded: Any = None) -> Call:
        self.calls.append(Call(request, done, failed, superseded))
        return self.calls[-1]

    def take(self, handle: Any) -> Any:
        return handle


class Inputs:
    def __init__(self) -> None:
        self.names: tuple[str, ...] = ("left", "right")

    def layers(self) -> tuple[str, ...]:
        return self.names


class Analysis(QObject):
    """In place of the controller of the analysis."""

    result_changed = Signal()

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context, self.engine, self.inputs = context, Engine(), Inputs()
        self.result: AnalysisResult | None = None
        self.phase, self.message = Phase.READY, ""

    def run(self, **kept: Any) -> None:
        self.result = AnalysisResult(**kept)
        self.result_changed.emit()


class Asking:
    """A subject, its requests to the engine, and its messages."""

    def __init__(self) -> None:
        registry = default_registry()
        self.context = Context(registry)
        graph = Graph(
            [
                Layer("left", "input", params={"dims": "8x8x3"}),
                Layer("right", "input", params={"dims": "8x8x3"}),
                Layer("conv", "convolution", inputs=(Source("left"),), params={"features": "4"}),
                Layer("norm", "convolution", inputs=(Source("right"),), params={"features": "4"}),
                Layer("output", "output", inputs=(Source("conv"),)),
            ]
        )
        self.context.set_document(Document(graph, registry, parent=self.context))
        self.analysis = Analysis(self.context)
        self.analysis.setParent(self.context)
        self.subject = Subject(self.analysis, self.context)  # type: ignore[arg-type]
        self.changes = 0
        self.subject.changed.connect(self._count)

    def _count(self) -> None:
        self.changes += 1

    def asked(self) -> list[object]:
        """The requests since the last time that nobody has answered."""
        return [call.request for call in self.analysis.engine.calls if not call.cancelled]

    def answer(self, reply: object) -> None:
        (call,) = [call for call in self.analysis.engine.calls if not call.cancelled]
        self.analysis.engine.calls.clear()
        call.done(reply)

    def fail(self, code: str) -> None:
        (call,) = [call for call in self.analysis.engine.calls if not call.cancelled]
        self.analysis.engine.calls.clear()
        call.failed((Diagnostic(code, f"it is {code}"),))

    def state(self) -> tuple[str, bool, str, str, list[str]]:
        """The tensor, whether it is there, the message, the note and the tensors that can be chosen."""
        subject = self.subject
        names = [name for name, _ in subject.choices()]
        return subject.tensor, subject.value is not None, subject.message, subject.note, names


def test_weights_are_asked_for_again_when_they_may_be_others(qtbot: QtBot) -> None:
    asking = Asking()
    subject, analysis = asking.subject, asking.analysis
    kernel, bias, other = noise(0, 4, 3, 3, 3), np.ones(4, np.float32), np.ones(5, np.float32)
    subject.choose("conv", Kind.WEIGHTS)
    subject.set_active(True)
    assert (asking.asked(), asking.state()) == ([], ("", False, "", "", []))  # nothing has run
    analysis.run(weights_sha256="1", note="random weights")
    assert asking.asked() == [WeightsRequest("conv")]
    asking.answer(WeightsReply({"kernel": kernel, "bias": bias}))  # type: ignore[dict-item]
    assert asking.state() == ("kernel", True, "", "random weights", ["kernel", "bias"])
    assert subject.key == subject.title == "conv kernel"
    analysis.run(weights_sha256="1")  # a slider moved: they are the same
    assert asking.asked() == []
    subject.choose_tensor("bias")
    assert (asking.asked(), subject.value is bias, subject.key) == ([], True, "conv bias")
    analysis.run(weights_sha256="2")  # they were trained
    assert asking.asked() == [WeightsRequest("conv")]
    asking.answer(WeightsReply({"kernel": kernel, "bias": other}))  # type: ignore[dict-item]
    assert (subject.value is other, asking.state()) == (True, ("bias", True, "", "", ["kernel", "bias"]))
    document = asking.context.document
    assert document.do(lambda g: set_params(g, {"conv": {"features": "5"}}))
    analysis.run(weights_sha256="2")  # of another shape
    assert asking.asked() == [WeightsRequest("conv")]
    asking.answer(WeightsReply({"kernel": kernel}))  # type: ignore[dict-item]
    assert asking.state() == ("kernel", True, "", "", ["kernel"])  # the bias is gone
    analysis.engine.opened = object()
    analysis.run(weights_sha256="2", note="random weights")  # a new engine
    assert asking.asked() == [WeightsRequest("conv")]
    asking.answer(WeightsReply({}))
    assert asking.state() == ("", False, "'conv' has no weights.", "random weights", [])
    subject.choose("norm")
    assert (asking.asked(), asking.state()) == ([WeightsRequest("norm")], ("", False, "", "", []))
    asking.fail("missing")
    assert asking.state() == ("", False, "It is missing.", "", [])
    subject.choose("conv")  # the same question as before, and its answer is gone
    assert asking.asked() == [WeightsRequest("conv")]
    asking.answer(WeightsReply({"kernel": kernel, "bias": bias}))  # type: ignore[dict-item]
    assert asking.state()[3] == "random weights"
    subject.choose("conv", Kind.OUTPUT)
    assert asking.asked() == []
    subject.choose("conv", Kind.WEIGHTS)  # they were let go of with the other kind
    assert (asking.asked(), subject.value) == ([WeightsRequest("conv")], None)
    asking.answer(WeightsReply({"kernel": kernel, "bias": bias}))  # type: ignore[dict-item]
    subject.choose_tensor("bias")
    subject.choose("norm")
    asking.answer(WeightsReply({"kernel": kernel, "bias": bias}))  # type: ignore[dict-item]
    assert asking.state()[0] == "kernel"  # which tensor was chosen was of the other layer
    subject.set_active(False)
    analysis.run(weights_sha256="3")
    assert asking.asked() == []  # nobody looks
    subject.set_active(True)
    assert asking.asked() == [WeightsRequest("norm")]
    asking.fail("engine-crashed")
    assert asking.state()[2] == "It is engine-crashed."
    analysis.run(weights_sha256="4")
    assert asking.state()[2] == ""  # it is asked again, and perhaps answers
    asking.answer(WeightsReply({"kernel": kernel}))  # type: ignore[dict-item]
    analysis.result = None
    analysis.result_changed.emit()
    assert asking.state() == ("kernel", False, "", "", [])


@pytest.mark.parametrize("inputs", [("left",), ("left", "right")])
def test_what_is_shown_is_called_by_its_layer_tensor_and_kind(qtbot: QtBot, inputs: tuple[str, ...]) -> None:
    """Files and ranges of colors are kept under the key; the title is written over the channels."""
    subject = Asking().subject
    subject._analysis = SimpleNamespace(inputs=SimpleNamespace(layers=lambda: list(inputs)))  # type: ignore[assignment]
    to = " to right" if len(inputs) > 1 else ""
    for kind, tensor, at, key, title in (
        (Kind.OUTPUT, "", None, "conv:one", "conv:one"),
        (Kind.OUTPUT, "", (1, 2, 3), "conv:one", "conv:one"),
        (Kind.WEIGHTS, "", None, "conv", "conv"),
        (Kind.WEIGHTS, "bias", None, "conv bias", "conv bias"),
        (Kind.GRADIENT, "", None, "conv:one gradient", "gradient of the sum of conv:one"),
        (Kind.GRADIENT, "right", None, f"conv:one gradient{to}", f"gradient of the sum of conv:one{to}"),
        (
            Kind.GRADIENT,
            "right",
            (1, 2, 3),
            f"conv:one gradient{to}",
            f"gradient of conv:one  channel 1  x 3  y 2{f' {to}' if to else ''}",
        ),
    ):
        subject.source, subject.kind, subject.tensor, subject.at = "conv:one", kind, tensor, at
        assert (subject.key, subject.title, subject.layer) == (key, title, "conv")


def test_a_gradient_is_asked_for_with_its_input_and_element(qtbot: QtBot) -> None:
    asking = Asking()
    subject, analysis = asking.subject, asking.analysis
    subject.set_active(True)
    subject.choose("conv", Kind.GRADIENT)
    analysis.run()
    assert asking.asked() == [GradientRequest("conv", "left", None)]
    gradient = noise(0, 1, 3, 8, 8)
    asking.answer(GradientReply(gradient, "random weights"))  # type: ignore[arg-type]
    assert asking.state() == ("left", True, "", "random weights", ["left", "right"])
    assert subject.title == "gradient of the sum of conv to left"
    subject.choose_tensor("right")
    assert asking.asked() == [GradientRequest("conv", "right", None)]
    asking.answer(GradientReply(gradient, ""))  # type: ignore[arg-type]
    assert asking.state() == ("right", True, "", "", ["left", "right"])
    subject.choose_at((1, 2, 3))
    assert asking.asked() == [GradientRequest("conv", "right", (1, 2, 3))]
    asking.answer(GradientReply(gradient, ""))  # type: ignore[arg-type]
    assert subject.title == "gradient of conv  channel 1  x 3  y 2  to right"
    changes = asking.changes
    analysis.run(coarse=4)
    assert not subject._rest.isActive()  # the full one follows
    analysis.run()
    assert (asking.asked(), asking.changes, subject.value is gradient) == ([], changes, True)  # once values rest
    qtbot.waitUntil(lambda: bool(asking.asked()), timeout=WAIT + REST)
    assert asking.asked() == [GradientRequest("conv", "right", (1, 2, 3))]
    asking.answer(GradientReply(gradient, ""))  # type: ignore[arg-type]
    analysis.inputs.names = ("left",)
    analysis.run()
    qtbot.waitUntil(lambda: bool(asking.asked()), timeout=WAIT + REST)
    assert asking.asked() == [GradientRequest("conv", "left", (1, 2, 3))]  # the other one was removed
    asking.answer(GradientReply(gradient, ""))  # type: ignore[arg-type]
    assert (subject.title, asking.state()[4]) == ("gradient of conv  channel 1  x 3  y 2", ["left"])
    subject.choose("norm")
    assert (subject.title, asking.state()[1]) == ("gradient of the sum of norm", False)
    assert asking.asked() == [GradientRequest("norm", "left", None)]
    asking.fail("not-connected")
    assert asking.state() == ("left", False, "It is not-connected.", "", ["left"])


# --- the panel -------------------------------------------------------------------------------------------------------------------


class Panel:
    """The inspector of a network that does not run: the test brings the results of each run."""

    def __init__(self, qtbot: QtBot) -> None:
        self.qtbot = qtbot
        self.context = Context(default_registry())
        self.documents = [self.document(8), self.document(4)]
        self.context.set_document(self.documents[0])
        self.panel = shown(qtbot, ChannelInspectorPanel(self.context), 1000, 600)
        self.context.setParent(self.panel)
        QTest.qWaitForWindowActive(self.panel)

    def document(self, features: int) -> Document:
        return Document(kit.small_network(features), self.context.registry, parent=self.context)

    def run(self, note: str = "", **captures: np.ndarray) -> None:
        analysis = self.panel._analysis
        outputs = {name: captures.pop(name) for name in ("output_0",) if name in captures}
        analysis.phase = Phase.READY
        analysis.result = AnalysisResult(outputs, captures, note=note)
        analysis.result_changed.emit()

    def bring(self, value: np.ndarray, note: str = "") -> None:
        """The answer of the engine about weights or a gradient."""
        self.panel.subject.value, self.panel.subject.note = value, note
        self.panel.subject.changed.emit()

    def click(self, name: str) -> None:
        self.qtbot.mouseClick(self.panel.findChild(QToolButton, f"channel_inspector.{name}"), LEFT)

    def choose(self, name: str, row: int) -> None:
        box = self.panel.findChild(QComboBox, f"channel_inspector.{name}")
        box.setCurrentIndex(row)
        box.activated.emit(row)

    def look(self) -> tuple[float, float]:
        look = self.panel.bar.look
        return round(look.gain, 5), round(look.shift, 5)

    def set_look(self, gain: float, shift: float) -> None:
        """As a user sets it."""
        bar = self.panel.bar
        bar.gain.set_value(gain)
        bar.shift.set_value(shift)
        bar._touch()

    def state(self) -> dict[str, Any]:
        """What a user sees apart from the images."""
        panel, probe = self.panel, self.panel.probe
        self.qtbot.waitUntil(
            lambda: panel.page is None or panel.page.form.value == "values" or panel.statistics.complete
        )
        views = {panel._empty: "empty", panel.grid: "grid", panel.enlarged: "one", panel.features: "bars"}
        view = views.get(panel._stack.currentWidget(), "map")  # type: ignore[call-overload]
        return {
            "layer": panel.subjects.layer.currentText(),
            "kind": panel.subjects.kind.currentText(),
            "view": view,
            "title": panel.enlarged.title.text() if view == "one" else "",
            "item": panel.subjects.item.text() if panel.subjects.item.isVisible() else "",
            "current": panel.shown.current_channel,
            "export": panel.subjects.export.isEnabled(),
            "remove": panel._remove.isVisible(),
            "text": panel.status_text if view != "empty" else panel._empty.text(),
            "same": probe.same.text(),
            "pin": probe.pin if probe.unpin_button.isVisible() else None,
            "input": probe.pane.isVisible(),
            "histogram": panel._histogram.toolTip() if panel._histogram.isVisible() else "",
            "note": {panel.grid._note, panel.view.note, panel.features.note, panel.matrix._note},
        }

    def expect(self, what: str, **wanted: Any) -> None:
        found = self.state()
        assert {key: found[key] for key in wanted} == wanted, what


@pytest.fixture
def bench(qtbot: QtBot) -> Iterator[Panel]:
    made = Panel(qtbot)
    yield made
    if made.context.engine is not None:
        made.context.engine.close()


def span(plane: np.ndarray) -> str:
    return f"Values from {number(float(plane.min()))} to {number(float(plane.max()))}"


def test_layers_kinds_items_and_documents_in_turn(bench: Panel) -> None:
    panel, context = bench.panel, bench.context
    launch = "Launch Analysis to see the channels of a layer."
    nothing = {"export": False, "remove": False, "histogram": "", "same": "", "pin": None, "title": "", "item": ""}
    bench.expect("at first", layer="", kind="Output", view="empty", text=launch, **nothing)
    context.inspect_requested.emit("conv_h")
    bench.expect("before a run", layer="conv_h", view="empty", text=launch, **nothing)
    hidden, first = noise(0, 2, 8, 6, 5), noise(1, 2, 3, 6, 5)
    bench.run("random weights", conv_h=hidden, conv_0=first, input_0=first, output_0=first)
    shape = "conv_h   2 x 8 x 6 x 5"
    bench.expect(
        "run", view="grid", item="item 0 of 2", text=shape, export=True, current=0, note={"random weights"}, same=""
    )
    bench.expect("its first channel", histogram=span(hidden[0, 0]), remove=False, input=False)
    panel.subjects.item.setValue(1)
    bench.expect("item", view="grid", item="item 1 of 2", histogram=span(hidden[1, 0]))
    panel.enlarge(5)
    title = "channel 5 (0 to 7)  ·  conv_h"
    bench.expect("one", view="one", title=title, remove=True, current=5, histogram=span(hidden[1, 5]))
    assert panel.status_text.startswith("channel 5   ")
    bench.run(conv_h=hidden + 1, conv_0=first, input_0=first, output_0=first)
    bench.expect("next run", view="one", title=title, item="item 1 of 2", note={""}, histogram=span(hidden[1, 5] + 1))
    bench.click("next")
    bench.expect("walk", title="channel 6 (0 to 7)  ·  conv_h", current=6, histogram=span(hidden[1, 6] + 1))
    bench.click("back")
    bench.expect("all", view="grid", title="", remove=False, current=6, text=shape)
    panel.enlarge(7)
    bench.run(conv_h=hidden[:, :3], conv_0=first, input_0=first, output_0=first)  # the layer got fewer channels
    bench.expect("fewer", view="grid", current=0, remove=False, text="conv_h   2 x 3 x 6 x 5", item="item 1 of 2")
    bench.run(conv_h=hidden, conv_0=first, input_0=first, output_0=first)
    panel.enlarge(2)
    panel.inspect("conv_0")
    bench.expect("another layer", layer="conv_0", view="grid", item="item 0 of 2", title="", remove=False)
    assert panel.status_text == "conv_0   2 x 3 x 6 x 5"
    bench.choose("kind", 1)
    bench.expect("weights", kind="Weights", layer="conv_0", text="", remove=False, histogram="", title="")
    bench.bring(noise(3, 4, 2, 3, 3), "trained")
    panel.enlarge(1)
    bench.expect("a filter", view="one", title="filter 1 (0 to 3)  ·  conv_0", remove=False, note={"trained"})
    bench.bring(np.arange(4, dtype=np.float32))
    bench.expect("bias", view="bars", text="conv_0   4", histogram="", title="", note={""})
    bench.bring(noise(3, 1, 4, 2)[0])
    bench.expect("matrix", view="map", text="conv_0   4 x 2", remove=False)
    bench.choose("kind", 0)
    bench.expect("output again", kind="Output", view="grid", current=0, text="conv_0   2 x 3 x 6 x 5")
    panel.subjects.item.setValue(1)
    panel.probe.toggle((2, 3, 1))
    bench.expect("pinned", pin=(2, 3, 1), input=True)
    assert panel.status_text.startswith("pinned  channel 2  x 3  y 1   ")
    context.set_document(bench.documents[1])
    bench.expect("another document", layer="", view="empty", text=launch, input=True, **nothing)
    context.inspect_requested.emit("conv_h")
    bench.run(conv_h=hidden[:1, :4], input_0=first)
    bench.expect("its layer", layer="conv_h", view="grid", text="conv_h   1 x 4 x 6 x 5", item="", pin=None, current=0)
    context.set_document(bench.documents[0])
    bench.expect("back", layer="conv_0", view="empty", text=launch, **nothing)
    document = bench.documents[1]
    assert document.do(lambda g: rename_layer(g, "conv_h", "other"))
    bench.expect("an edit of the document that is not shown", layer="conv_0", view="empty")
    names = [panel.subjects.layer.itemText(row) for row in range(panel.subjects.layer.count())]
    assert "conv_h" in names
    assert "other" not in names


def test_the_capture_is_asked_for_while_the_panel_is_seen(bench: Panel) -> None:
    panel, captured = bench.panel, bench.panel._analysis
    panel.inspect("conv_h")
    assert captured.capture == "conv_h"
    for hide, show in ((panel.hide, panel.show), (panel.hide, panel.show)):
        hide()
        assert captured.capture == ""
        bench.run(conv_h=noise(0, 1, 8, 6, 5), input_0=noise(1, 1, 3, 6, 5))
        show()
        assert captured.capture == "conv_h"
    bench.choose("kind", 1)
    assert captured.capture == "input_0"  # the image next to the filters
    bench.choose("kind", 0)
    assert captured.capture == "conv_h"
    panel.inspect("conv_0")
    assert captured.capture == "conv_0"
    assert bench.context.document.do(lambda g: rename_layer(g, "conv_0", "renamed"))
    assert captured.capture == "renamed"
    for kind, expected in ((0, ("renamed", ("picture",))), (1, ("picture", ()))):
        bench.choose("kind", kind)
        assert bench.context.document.do(lambda g: rename_layer(g, "input_0", "picture"))
        assert (captured.capture, captured.also) == expected
        bench.context.document.undo()


def test_a_panel_that_was_hidden_shows_what_it_showed(bench: Panel) -> None:
    """Behind another tab and back, also where there was another run in between."""
    panel, hidden = bench.panel, noise(0, 2, 8, 6, 5)
    first = noise(1, 2, 3, 6, 5)
    results = {"input_0": first, "conv_0": first, "output_0": first}
    panel.inspect("conv_h")
    bench.run(conv_h=hidden, **results)

    def again(what: str, **wanted: Any) -> None:
        before = bench.state()
        assert {key: before[key] for key in wanted} == wanted, what
        before["look"], before["order"] = bench.look(), list(panel.grid.order)
        for between in (lambda: None, lambda: bench.run(conv_h=hidden, **results)):
            panel.hide()
            between()
            panel.show()
            bench.qtbot.waitExposed(panel)
            after = bench.state()
            after["look"], after["order"] = bench.look(), list(panel.grid.order)
            assert after == before, what

    again("all", view="grid", current=0)
    panel.grid.set_current(3)
    bench.choose("order", 1)
    bench.set_look(0.25, 0.5)
    again("a channel", view="grid", current=3)
    panel.subjects.item.setValue(1)
    again("an item", view="grid", item="item 1 of 2")
    panel.probe.toggle((2, 3, 1))
    again("pinned", pin=(2, 3, 1), input=True)
    panel.enlarge(5)
    again("one", view="one", current=5, remove=True, pin=(2, 3, 1))
    panel.shrink()
    panel.probe.unpin()
    again("back", view="grid", current=5, pin=None)
    bench.context.document.do(lambda graph: rename_layer(graph, "conv_h", "renamed"))
    results = {**results, "renamed": hidden}
    bench.run(**results)
    again("renamed", layer="renamed", current=5)


def test_ranges_of_colors_over_tensors_images_locks_and_documents(bench: Panel) -> None:
    panel = bench.panel
    hidden, first = noise(0, 1, 8, 6, 5), noise(1, 1, 3, 6, 5) * 50

    def run(factor: float = 1.0) -> None:
        bench.run(conv_h=hidden * np.float32(factor), conv_0=first * np.float32(factor), input_0=first)

    def fitted(value: np.ndarray, palette: str = "green / red") -> tuple[float, float]:
        found = fit(value[0], palette)
        return round(found.gain, 5), round(found.shift, 5)

    def extent() -> float:
        return panel.bar.shift._high

    assert extent() == 2.0
    panel.inspect("conv_h")
    run()
    most = float(np.abs(hidden).max())
    assert bench.look() == fitted(hidden)
    assert most <= extent() <= 2.5 * most
    bench.set_look(0.5, 0.25)
    run(3)  # a slider moved: the user's range stays
    assert bench.look() == (0.5, 0.25)
    run()
    panel.inspect("conv_0")
    assert bench.look() == fitted(first)
    assert extent() >= float(np.abs(first).max())
    bench.choose("palette", list(PALETTES).index("viridis"))
    assert bench.look() == fitted(first, "viridis")
    bench.set_look(0.125, 0.5)
    bench.choose("palette", list(PALETTES).index("gray"))  # the other map from low to high
    assert bench.look() == (0.125, 0.5)
    bench.click("each")
    assert bench.look() == (1.0, 0.0)
    bench.set_look(4.0, 0.0)
    assert bench.context.document.do(lambda g: rename_layer(g, "conv_0", "renamed"))
    run(1)
    bench.run(conv_h=hidden, renamed=first, input_0=first)
    assert bench.look() == (4.0, 0.0)
    bench.click("each")
    assert bench.look() == (0.125, 0.5)
    bench.click("each")
    assert bench.look() == (4.0, 0.0)  # each scale keeps its own under the new name
    bench.click("each")
    bench.choose("palette", 0)
    assert bench.look() == fitted(first)
    panel.inspect("conv_h")
    run()
    assert bench.look() == (0.5, 0.25)
    bench.click("reset")
    run()
    assert bench.look() == (1.0, 0.0)
    panel.inspect("renamed")
    bench.run(conv_h=hidden, renamed=first, input_0=first)
    panel.inspect("conv_h")
    run()
    assert bench.look() == (1.0, 0.0)  # to reset is to set, too
    bench.click("auto")
    assert bench.look() == fitted(hidden)
    panel.inspect("renamed")
    bench.run(conv_h=hidden, renamed=first, input_0=first)
    panel.inspect("conv_h")
    run(2)
    assert bench.look() == fitted(hidden)  # to fit is to set, too
    panel._analysis.inputs.changed.emit()
    run(2)
    assert bench.look() == fitted(hidden * np.float32(2))  # of another image
    run(4)
    assert bench.look() == fitted(hidden * np.float32(2))  # of the same image
    bench.click("lock")
    panel._analysis.inputs.changed.emit()
    run(8)
    assert bench.look() == fitted(hidden * np.float32(2))
    panel.inspect("renamed")
    bench.run(conv_h=hidden, renamed=first, input_0=first)
    assert bench.look() == fitted(hidden * np.float32(2))
    bench.context.set_document(bench.documents[1])
    assert bench.look() == fitted(hidden * np.float32(2))
    bench.click("lock")
    panel.inspect("conv_h")
    run()
    bench.set_look(7.0, 0.5)
    bench.context.set_document(bench.documents[0])
    assert (bench.look(), extent()) == ((1.0, 0.0), 2.0)
    panel.inspect("conv_h")
    run()
    assert bench.look() == fitted(hidden)  # what was set in the other documents is forgotten
    bench.set_look(7.0, 0.5)
    bench.click("lock")
    bench.context.set_document(bench.documents[1])
    panel.inspect("conv_h")
    run()
    assert bench.look() == (7.0, 0.5)
    bench.click("lock")
    for layer, value in (("conv_0", first), ("conv_h", hidden)):
        panel.inspect(layer)
        assert bench.look() == fitted(value)  # it was locked, not set for this one


def test_the_probe_over_layers_of_other_sizes(bench: Panel) -> None:
    """Pin, cursor, values at the same place and the input image, over tensors of other sizes, kinds and messages."""
    panel, probe = bench.panel, bench.panel.probe
    image, hidden, small = noise(0, 1, 3, 8, 8), noise(1, 1, 8, 8, 8), noise(2, 1, 8, 4, 4)
    panel.inspect("conv_h")
    bench.run(conv_h=hidden, input_0=image, output_0=image)

    def hover(channel: int, x: int, y: int) -> None:
        panel.grid.probed.emit((channel, x, y))

    hover(3, 5, 2)
    assert panel.status_text.startswith("channel 3  x 5  y 2   ")
    assert probe.same.text().startswith("input_0 (5, 2)")
    assert "conv_h" not in probe.same.text()
    probe.show_message("Saved a.png")
    assert panel.status_text == "Saved a.png"
    hover(3, 6, 2)
    assert panel.status_text.startswith("channel 3  x 6  y 2   ")  # the message is gone
    panel.grid.probed.emit(None)
    bench.expect("left", text="conv_h   1 x 8 x 8 x 8", same="")
    probe.toggle((3, 6, 2))
    bench.expect("pinned", pin=(3, 6, 2), input=True)
    assert panel.status_text.startswith("pinned  channel 3  x 6  y 2   ")
    hover(1, 0, 0)
    assert panel.status_text.startswith("channel 1  x 0  y 0   ")  # not the pinned one
    panel.grid.probed.emit(None)
    bench.run(conv_h=small, input_0=image, output_0=image)  # an edit made the tensor smaller
    bench.expect("smaller", pin=(3, 3, 1))
    bench.run(conv_h=hidden, input_0=image, output_0=image)
    bench.expect("larger again", pin=(3, 7, 3))  # the middle of the pixel is kept
    bench.choose("kind", 2)
    assert (panel.subject.kind, panel.subject.at) == (Kind.GRADIENT, (3, 3, 7))  # of the pinned element
    bench.choose("kind", 0)
    bench.expect("output again", pin=(3, 7, 3))
    bench.run(conv_h=hidden[:, :2], input_0=image, output_0=image)  # without that channel
    bench.expect("without the channel", text="conv_h   1 x 2 x 8 x 8", same="")
    bench.choose("kind", 1)
    bench.bring(noise(3, 4, 2, 3, 3))
    bench.expect("weights", input=False, same="")
    bench.run(conv_h=hidden, input_0=image, output_0=image)
    bench.expect("weights after a run", input=False)
    bench.choose("kind", 0)
    bench.expect("output", input=True, pin=(3, 7, 3))
    bench.click("unpin")
    bench.expect("unpinned", pin=None, text="conv_h   1 x 8 x 8 x 8", same="", input=True)
    assert probe.pane.words.text() == ""
    assert probe.pane.view.overlays == ()
    bench.click("show_input")
    bench.expect("hidden", input=False)
    panel.enlarge(2)
    QApplication.processEvents()
    place = panel.view.place_of(4.5, 3.5).toPoint()
    bench.qtbot.mouseMove(panel.view, place + QPoint(1, 1))
    bench.qtbot.mouseClick(panel.view, LEFT, pos=place)
    bench.expect("a click", pin=(2, 4, 3), input=True)
    bench.qtbot.mouseDClick(panel.view, LEFT, pos=place)
    bench.expect("a double click", pin=None, input=False)  # as before its first click
    bench.click("show_input")
    assert probe.pane.title.text() == "input_0"
    assert bench.context.document.do(lambda g: rename_layer(g, "input_0", "photo"))
    bench.run(conv_h=hidden, photo=image, output_0=image)
    assert probe.pane.title.text() == "photo"  # the same image under another name
    assert probe.pane.view.image is not None


def test_the_layer_that_is_followed_is_the_one_selected_alone(bench: Panel) -> None:
    panel, context = bench.panel, bench.context
    bench.click("follow")
    for names, source in (
        (("conv_h",), "conv_h"),
        (("conv_h", "conv_0"), "conv_h"),
        ((), "conv_h"),
        (("conv_0", "conv_h"), "conv_h"),
        (("conv_0",), "conv_0"),
    ):
        context.select(names)
        assert (panel.source, panel.subjects.layer.currentText()) == (source, source)
    bench.click("follow")
    context.select(("mix_0",))
    assert panel.source == "conv_0"


def test_each_place_of_the_first_channel_is_found(qtbot: QtBot) -> None:
    """From the corner of a tile to its last pixel."""
    grid = shown(qtbot, ChannelGrid("grid", "Channels"), 420, 300)
    grid.set_side(100)
    grid.show_data(noise(0, 3, 4, 5))
    found: list[Any] = []
    grid.probed.connect(found.append)
    for channel in range(3):
        rect = grid.tile_rect(channel)
        for x, y in ((0, 0), (4, 3), (2, 1)):
            place = rect.topLeft() + QPointF((x + 0.5) * rect.width() / 5, (y + 0.5) * rect.height() / 4)
            qtbot.mouseMove(grid.viewport(), place.toPoint())
            assert found[-1] == (channel, x, y)
    qtbot.mouseMove(grid.viewport(), (rect.bottomRight() + QPointF(5, 40)).toPoint())
    assert found[-1] is None


def test_places_and_channels_that_are_not_there_change_nothing(bench: Panel) -> None:
    """Values and matrices have no pixels to pin, weights and gradients none of the input, and a layer may be gone."""
    panel, context = bench.panel, bench.context
    hidden, first = noise(0, 2, 8, 6, 5), noise(1, 2, 3, 6, 5)
    context.inspect_requested.emit("conv_h")
    panel.enlarge(0)
    panel.probe.toggle((0, 0, 0))
    bench.expect("no run", view="empty", pin=None)
    bench.run(conv_h=hidden, conv_0=first, input_0=first)
    for channel in (-1, 8, 99):
        panel.enlarge(channel)
        panel.grid.set_current(channel)
        bench.expect(f"channel {channel}", view="grid", current=0)
    panel.probe.toggle(None)
    bench.expect("no place", pin=None)
    for form, values in (("bars", noise(0, 2, 8, 1, 1)[:, :, 0, 0]), ("map", noise(0, 2, 8, 6))):
        bench.run(conv_h=values, conv_0=first, input_0=first)
        panel.enlarge(1)
        panel.probe.toggle((1, 0, 0))
        bench.expect(form, view=form, pin=None, input=False)
    bench.run(conv_h=hidden, conv_0=first, input_0=first)
    bench.choose("kind", 1)
    bench.bring(noise(3, 4, 2, 3, 3))
    panel.probe.toggle((1, 1, 1))
    bench.expect("weights", view="grid", pin=None)
    document = context.root
    assert document.do(lambda g: remove_layers(g, ["conv_h"]))
    bench.bring(noise(4, 4, 2, 3, 3))  # an answer about the layer that is gone
    assert panel.probe.pin is None
