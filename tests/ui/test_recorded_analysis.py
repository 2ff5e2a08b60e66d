"""Sessions in the panels of the analysis: what they show after each step is recorded and compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytestmark = [
    pytest.mark.gui,
    pytest.mark.timeout(600),
    pytest.mark.skipif(find_spec("onnxruntime") is None, reason="ONNX Runtime is not installed"),
]

from engine_here import EngineHere
from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot
from recorded_state import compare, lines
from shown_state import Shown, _walk, at_rest, named, of_tree
from window_kit import open_window, without_pauses

from app.ui.analysis.overview_model import HEAT, MEMORY, TIME
from app.ui.engine import coarse_to_fine
from app.ui.shell.window import MainWindow
from app.ui.widgets import theme
from app.ui.widgets.image_view import ImageView
from designer.files.document import save_document
from designer.files.settings import Settings, save_settings, settings_path
from designer.graph import commands
from designer.graph.bypass import bypass
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.runtime.images import write_image

LEFT, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton
PANELS = ("analysis", "channel_inspector", "network_overview")
TIMES = re.compile(r"\d[\d.,]*(?: \d+)? (?:µs|ms|s)\b")
ELSEWHERE = ("network_overview network_overview.steps row",)  # one line for each row instead
LEFT_OUT = re.compile(  # what never changes, and all but the texts of what is hidden
    r" accessible(#\d+)?: | (mode|speed) item \d|(?<! text): \(gone\)$"
    r"|^status status( tip: | message: $)"  # messages go after some seconds
    r"|^status status\.engine text: "  # what the engine does is seen or not, as it happens
    r"|zoom text: (?!100 %)"  # it depends on the fonts
    r"|\.(open|folder|camera|photographs|fit|one|range|quality|adjust|export|mark|reset_display|number|probe|file|status|size|frame|large_title|input_title|field|statistics|same_place) (tip|text: (Fit|1:1))"
)
W = TypeVar("W", bound=QWidget)


def layer(name: str, kind: str, x: int, *inputs: str, activation: str = "", **params: str) -> Layer:
    spec = ActivationSpec(activation) if activation else None
    return Layer(name, kind, (x, 0), tuple(Source.parse(i) for i in inputs), params, spec)


def restoring() -> Graph:
    """Noise and a mix around two convolutions, and an output of values."""
    return Graph(
        [
            layer("image", "input", 0, dims="16x12x3"),
            layer("noise", "noise", 200, "image", scale="0.1"),
            layer("encode", "convolution", 400, "noise", features="4", kernel="3x3", activation="relu"),
            layer("decode", "convolution", 600, "encode", features="3", kernel="3x3"),
            layer("mix", "mix", 800, "decode", "noise"),
            layer("out", "output", 1000, "mix"),
            layer("diff", "difference", 800, "decode", "image"),
            layer("map", "output", 1000, "diff", analysis_view="tensor"),
            layer("bars", "histogram", 800, "decode", ranges="4"),
            layer("counts", "output", 1000, "bars"),
        ],
        name="restoring",
    )


def folded() -> Graph:
    """A template with weights, used twice, and two inputs."""
    inner = (
        layer("p", "template_input", 0),
        layer("conv", "convolution", 200, "p", features="2", kernel="3x3"),
        layer("q", "template_output", 400, "conv"),
    )
    return Graph(
        [
            layer("left", "input", 0, dims="8x8x2"),
            layer("right", "input", 0, dims="8x8x2"),
            Layer("a", "template", (200, 0), (Source("left"),), {"template": "part"}),
            Layer("b", "template", (200, 200), (Source("right"),), {"template": "part"}),
            layer("sum", "element_wise", 400, "a", "b", operation="add"),
            layer("out", "output", 600, "sum"),
        ],
        name="folded",
        templates=(Template("part", inner),),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Documents and images of fixed values, one of them wider than the network says, one with opacity."""
    place = tmp_path / "documents"
    (place / "several").mkdir(parents=True)
    rng = np.random.default_rng(1)
    for name, channels, height, width in (
        ("photo", 3, 12, 16),
        ("wide", 3, 12, 20),
        ("opacity", 4, 12, 16),
        *((f"several/{n}", 3, 12, 16) for n in "abc"),
    ):
        write_image(place / f"{name}.png", rng.random((1, channels, height, width), np.float32))
    np.save(place / "beyond.npy", (rng.random((1, 3, 12, 16), np.float32) * 4 - 1))
    np.save(place / "left.npy", rng.random((3, 2, 8, 8), np.float32))
    np.save(place / "right.npy", rng.random((3, 2, 8, 8), np.float32))
    (place / "broken.png").write_bytes(b"nothing")
    made = {"image": "photo.png"}, {"left": "left.npy", "right": "right.npy"}
    for graph, files in zip((restoring(), folded()), made, strict=True):
        path = place / f"{graph.name}.xml"
        save_document(graph, path)
        inputs = {name: str(place / file) for name, file in files.items()}
        save_settings(Settings(input_files=inputs, random_seed=1, threads=1, engine="onnxruntime"), settings_path(path))
    return place


class Session:
    """Takes steps and writes down what each changes in the panels of the analysis, their actions and the status bar."""

    def __init__(self, qtbot: QtBot, window: MainWindow, folder: Path) -> None:
        self.qtbot, self.window, self.folder = qtbot, window, folder
        self.context = window.context
        for name in PANELS:
            window.docks.show(name)
        self.analysis, self.inspector, self.overview = (window.docks.panel(name) for name in PANELS)
        without_pauses(window)
        self.lines: list[str] = []
        self._before = self.state()

    def state(self) -> Shown:
        at_rest(self.qtbot, self.window)
        found: Shown = {}
        for name in PANELS:
            found |= named(name, of_tree(self.window.docks.panel(name)))
        found |= named("analysis", self._images(self.analysis))
        found |= named("channel_inspector", self._images(self.inspector))
        found |= named("channel_inspector", self._grid())
        found |= named("network_overview", self._rows())
        found |= named("status", of_tree(self.window.status))
        for name in self.window.actions_.declared:
            if name.startswith(("analysis.", "run.")):
                action = self.window.actions_[name]
                found[f"action {name}"] = "" if action.isEnabled() else action.toolTip()
        found["undo"] = f"{self.context.root.history.undo_title}" if self.context.has_document else ""
        found["selection"] = " ".join(self.context.selection)
        return {place: _timeless(text) for place, text in found.items() if not place.startswith(ELSEWHERE)}

    def _images(self, panel: QWidget) -> Iterator[tuple[str, Any]]:
        """What the images show, roughly, and what lies over them."""
        for view in panel.findChildren(ImageView):
            if view.isVisibleTo(panel):
                name = view.objectName()
                yield f"{name} colors", _colors(view.image)
                yield f"{name} over", (view.note, "dimmed" if view.dimmed else "", view.split.name, view.overlays)

    def _grid(self) -> Iterator[tuple[str, Any]]:
        inspector, grid = self.inspector, self.inspector.grid
        if inspector.shown.page is None:
            return
        if grid.isVisibleTo(inspector):
            grid.seen()
            grid._tiles.make(grid.order)
            for channel in grid.order:
                picture = grid._tiles.picture(channel)
                flag = inspector.statistics.flag(channel)
                yield f"channel {channel}", (grid.caption(channel, 200), flag, _colors(picture))
            yield "grid", (list(grid.order), f"current {grid.current}", f"mark {grid._mark}")
        legend = inspector.legend
        if legend.isVisibleTo(inspector):
            yield "legend", legend.texts()
        histogram = inspector._histogram.statistics
        if histogram is not None:
            counts = histogram.counts
            yield (
                "histogram",
                f"{counts.sum()} values around bin {(counts * np.arange(counts.size)).sum() / counts.sum():.2f}",
            )

    def _rows(self) -> Iterator[tuple[str, Any]]:
        """The rows of the overview, without their times."""
        model = self.overview.model
        for place, index in _walk(model, QModelIndex(), ""):
            texts = [index.siblingAtColumn(column).data() for column in range(model.columnCount())]
            texts[TIME] = "-" if texts[TIME] == "-" else "<time>"
            heat, ink = index.siblingAtColumn(MEMORY).data(HEAT), index.data(Qt.ItemDataRole.ForegroundRole)
            tip = index.data(Qt.ItemDataRole.ToolTipRole).partition("\n")[0]
            kind = next((role for role in ("muted", "error") if ink == theme.color(role)), "")
            yield f"row {place}", f"{texts} {kind} heat {0.0 if heat is None else heat:.3f} {tip}"

    def step(self, what: str, act: Callable[[], object]) -> None:
        at_rest(self.qtbot, self.window)
        act()
        now = self.state()
        found = [line for line in lines(now, since=self._before) if not LEFT_OUT.search(line)]
        self.lines += ["", f"# {what}", *found]
        self._before = now

    # --- ways to use the window ----------------------------------------------------------------------------------

    def do(self, action: str) -> None:
        assert self.window.actions_[action].isEnabled(), action
        self.step(action, self.window.actions_[action].trigger)

    def open(self, name: str) -> None:
        self.step(f"open {name}", lambda: self.window.files.open(self.folder / f"{name}.xml"))

    def find(self, kind: type[W], name: str) -> W:
        found = [w for w in self.window.findChildren(kind, name) if w.isVisibleTo(self.window)]
        assert len(found) == 1, (name, found)
        return found[0]

    def press(self, name: str) -> None:
        button = self.find(QAbstractButton, name)
        assert button.isEnabled(), name
        self.step(f"press {name}", button.click)

    def choose(self, name: str, text: str) -> None:
        box = self.find(QComboBox, name)
        row = box.findText(text)
        assert row >= 0, (name, text, [box.itemText(i) for i in range(box.count())])

        def act() -> None:
            box.setCurrentIndex(row)
            box.activated.emit(row)

        self.step(f"choose {name} {text}", act)

    def number(self, name: str, value: float) -> None:
        box = self.find(QAbstractSpinBox, f"{name}.number")

        def act() -> None:
            box.setFocus()
            box.selectAll()
            QTest.keyClicks(box, f"{value:g}")
            QTest.keyClick(box, Qt.Key.Key_Return)

        self.step(f"number {name} {value:g}", act)

    def type(self, name: str, text: str) -> None:
        edit = self.find(QLineEdit, name)

        def act() -> None:
            edit.setFocus()
            edit.selectAll()
            QApplication.clipboard().setText(
                text
            )  # at once: which of the texts in between would run depends on the machine
            QTest.keyClick(edit, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
            QTest.keyClick(edit, Qt.Key.Key_Return)

        self.step(f"type {name} {text}", act)

    def feed(self, layer: str, name: str) -> None:
        self.step(f"feed {layer} {name}", lambda: self.analysis._inputs[layer].chosen.emit(layer, self.folder / name))

    def select(self, *names: str) -> None:
        self.step(f"select {' '.join(names)}", lambda: self.context.select(names))

    def set(self, layer: str, **params: str) -> None:
        text = " ".join(f"{name}={value}" for name, value in params.items())
        document = self.context.document
        self.step(f"set {layer} {text}", lambda: document.do(lambda g: commands.set_params(g, {layer: params})))

    def edit(self, what: str, command: Callable[[Graph], Any]) -> None:
        self.step(what, lambda: self.context.document.do(command))

    def click(self, view: QWidget, place: QPoint, button: Qt.MouseButton = LEFT, what: str = "click") -> None:
        target = view.viewport() if hasattr(view, "viewport") else view

        def act() -> None:
            QTest.mouseMove(target, place)
            QTest.mouseClick(target, button, Qt.KeyboardModifier.NoModifier, place)

        self.step(f"{what} {view.objectName()}", act)

    def key(self, widget: QWidget, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        self.step(f"key {key.name} {widget.objectName()}", lambda: QTest.keyClick(widget, key, modifier))


def _timeless(text: Any) -> Any:
    return TIMES.sub("<time>", text) if isinstance(text, str) else text


def _colors(image: QImage | None) -> str:
    """Size and mean colors of the quarters of an image, 1 and a tenth of the level: the rounding of processors is within the tolerance."""
    if image is None or image.isNull():
        return "none"
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4)[:, :, 2::-1]
    down, across = image.height() // 2, image.width() // 2
    parts = (pixels[:down, :across], pixels[:down, across:], pixels[down:, :across], pixels[down:, across:])
    means = (",".join(f"{1 + v / 10:.2f}" for v in part.reshape(-1, 3).mean(0)) for part in parts if part.size)
    return f"{image.width()}x{image.height()} {' '.join(means)}"


@pytest.fixture
def session(qtbot: QtBot, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(coarse_to_fine, "BUDGET", 0)  # no run at a reduced size, however slow the machine is
    monkeypatch.setattr("app.ui.engine.client.EngineClient", EngineHere)
    settings = tmp_path / "settings"
    settings.mkdir()
    window = open_window(qtbot, settings, size=(1500, 1000))
    window.start_engine_client()
    window.actions_["workspace.analysis"].trigger()
    return Session(qtbot, window, folder)


def test_a_restoration_is_analyzed(session: Session) -> None:
    session.open("restoring")
    session.do("run.analysis")
    tabs = session.analysis._tabs
    session.step("the tab of out", lambda: tabs.setCurrentIndex(2))
    for kind in ("h split", "checkerboard", "blend", "difference", "signed difference", "amplified difference"):
        session.choose("analysis.mix.selection", kind)
    session.choose("analysis.mix.selection", "custom")
    session.type("analysis.mix.recipe", "alpha*(a-b)")
    session.edit("bypass mix", lambda g: bypass(g, session.context.document.inference, ["mix"]))
    session.number("analysis.mix.amount", 0.75)
    session.edit("end of the bypass", lambda g: bypass(g, session.context.document.inference, ["mix"]))
    for _ in range(3):
        session.do("edit.undo")
    session.type("analysis.mix.recipe", "alpha*(a-")
    session.do("edit.undo")
    session.choose("analysis.mix.selection", "v split")
    session.number("analysis.mix.amount", 0.25)
    for kind in ("uniform", "salt and pepper", "poisson", "speckle", "jpeg", "blur", "gaussian"):
        session.choose("analysis.noise.kind", kind)
    session.number("analysis.noise.scale", 0.4)
    session.number("analysis.noise.mean", -0.2)
    session.number("analysis.noise.seed", 3)
    session.press("analysis.noise.mono")
    session.do("edit.undo")
    session.step("the tab of map", lambda: tabs.setCurrentIndex(1))
    session.choose("analysis.diff.kind", "signed")
    session.number("analysis.diff.gain", 2.5)
    both = {
        "noise": {"scale": "0.3", "seed": "8"},
        "diff": {"gain": "4.0"},
        "mix": {"amount": "0.6"},
        "bars": {"high": "2.0"},
    }
    session.edit("several layers at once", lambda g: commands.set_params(g, both))
    session.do("edit.undo")
    session.step("the tab of counts", lambda: tabs.setCurrentIndex(0))
    session.number("analysis.bars.ranges", 2)
    session.number("analysis.bars.low", -1)
    session.number("analysis.bars.high", -2)  # ends before it starts
    session.do("edit.undo")
    compare("analysis_options", session.lines)


def test_an_output_is_looked_at(session: Session) -> None:
    session.open("restoring")
    session.press("analysis.output.counts.adjust")
    session.do("run.analysis")
    session.step("the tab of out", lambda: session.analysis._tabs.setCurrentIndex(2))
    session.press("analysis.output.out.adjust")
    session.choose("analysis.output.out.mode", "Signed")
    session.choose("analysis.output.out.mode", "Map")
    session.choose("analysis.output.out.mode", "Image")
    session.number("analysis.output.out.exposure", 1.5)
    session.number("analysis.output.out.gamma", 2)
    session.press("analysis.output.out.mark")
    session.press("analysis.output.out.reset_display")
    view = session.find(ImageView, "analysis.output.out.picture")
    session.click(view, _at(view, 2, 3), what="point at")
    session.press("analysis.output.out.one")
    session.press("analysis.output.out.fit")
    session.key(view, Qt.Key.Key_Plus)
    for name in ("wide.png", "opacity.png", "beyond.npy", "broken.png", "gone.png", "several", "photo.png"):
        session.feed("image", name)
        if name == "several":
            session.do("analysis.next")
            session.do("analysis.next")
            session.do("analysis.next")
            session.do("analysis.previous")
    session.set("out", width="8", offset="4x2x1")
    session.set("out", analysis_view="tensor")
    session.set("out", analysis_view="labels")
    session.do("edit.undo")
    session.do("edit.undo")
    document = session.context.document
    session.edit("bypass mix", lambda g: bypass(g, document.inference, ["mix"]))
    session.number("analysis.output.out.exposure", -1)
    session.edit("remove map", lambda g: commands.remove_layers(g, ["map"]))
    session.do("edit.undo")
    session.edit("rename out", lambda g: commands.rename_layer(g, "out", "result"))
    session.edit("rename image", lambda g: commands.rename_layer(g, "image", "i"))
    session.set("i", dims="16x12x1")
    session.do("edit.undo")
    session.edit("remove out", lambda g: commands.remove_layers(g, ["result"]))
    session.edit("remove counts and map", lambda g: commands.remove_layers(g, ["counts", "map"]))
    session.do("edit.undo")
    compare("analysis_output", session.lines)


def test_channels_are_inspected(session: Session) -> None:
    session.open("restoring")
    session.do("run.analysis")
    inspector, grid = session.inspector, session.inspector.grid
    session.choose("channel_inspector.layer", "encode")
    session.press("channel_inspector.each")
    for order in ("by energy", "by mean", "by share of zeros", "alike together", "by number"):
        session.choose("channel_inspector.order", order)
    session.press("channel_inspector.each")
    session.press("channel_inspector.log")
    for palette in ("gray", "viridis", "orange +  blue −", "green +  red −"):
        session.choose("channel_inspector.palette", palette)
    session.press("channel_inspector.log")
    session.number("channel_inspector.gain", 3)
    session.number("channel_inspector.shift", -0.125)
    session.press("channel_inspector.reset")
    session.press("channel_inspector.lock")
    session.choose("channel_inspector.layer", "decode")
    session.press("channel_inspector.lock")
    session.press("channel_inspector.auto")
    session.choose("channel_inspector.layer", "encode")
    session.click(grid, grid.tile_rect(2).center().toPoint(), what="enlarge in")
    session.press("channel_inspector.next")
    session.press("channel_inspector.next")
    session.press("channel_inspector.previous")
    session.set("noise", scale="0.5")
    session.click(inspector.view, _at(inspector.view, 4, 5), what="pin in")
    session.choose("channel_inspector.layer", "image")
    session.set("noise", scale="0.1")
    session.feed("image", "wide.png")
    session.choose("channel_inspector.layer", "encode")
    session.click(grid, grid.tile_rect(1).center().toPoint(), RIGHT, what="pin in")
    session.choose("channel_inspector.kind", "Gradient")
    session.set("noise", scale="0.2")
    session.press("channel_inspector.unpin")
    session.set("noise", scale="0.6")  # another gradient, for other channels are zero
    session.do("edit.undo")
    session.choose("channel_inspector.kind", "Weights")
    session.choose("channel_inspector.tensor", "bias  4")
    session.choose("channel_inspector.layer", "decode")
    session.click(grid, grid.tile_rect(0).center().toPoint(), what="enlarge in")
    session.key(inspector.view, Qt.Key.Key_Escape)
    session.choose("channel_inspector.layer", "noise")
    session.choose("channel_inspector.kind", "Output")
    session.press("channel_inspector.show_input")
    session.choose("channel_inspector.layer", "bars:shares")
    session.choose("channel_inspector.layer", "diff:psnr")
    session.feed("image", "photo.png")
    session.choose("channel_inspector.layer", "encode")
    session.set("encode", features="6")
    session.choose("channel_inspector.order", "by energy")
    session.edit("rename encode", lambda g: commands.rename_layer(g, "encode", "first"))
    session.key(grid, Qt.Key.Key_End)
    session.key(grid, Qt.Key.Key_Return)
    session.press("channel_inspector.remove_channel")  # which needs trained weights
    session.edit("bypass first", lambda g: bypass(g, session.context.document.inference, ["first"]))
    session.do("edit.undo")
    session.edit("remove first", lambda g: commands.remove_layers(g, ["first"], heal=True))
    session.do("edit.undo")
    session.press("channel_inspector.follow")
    session.select("mix")
    session.select("mix", "noise")
    session.select("out")
    compare("analysis_channels", session.lines)


def test_templates_inputs_and_other_documents(session: Session) -> None:
    session.open("folded")
    session.do("run.analysis")
    grid = session.inspector.grid
    session.step("inspect a.conv", lambda: session.context.inspect_requested.emit("a.conv"))
    session.select("b")
    session.choose("channel_inspector.kind", "Weights")
    session.choose("channel_inspector.kind", "Gradient")
    session.choose("channel_inspector.tensor", "to right")
    session.choose("channel_inspector.layer", "sum")
    session.press("channel_inspector.show_input")
    session.choose("channel_inspector.tensor", "to right")
    session.choose("channel_inspector.tensor", "to left")
    session.press("channel_inspector.show_input")
    session.step("inspect a.conv", lambda: session.context.inspect_requested.emit("a.conv"))
    session.choose("channel_inspector.kind", "Output")
    session.step("item 2", lambda: session.find(QAbstractSpinBox, "channel_inspector.item").stepBy(2))
    session.click(grid, grid.tile_rect(1).center().toPoint(), RIGHT, what="pin in")
    session.step("enter b", lambda: session.context.enter("b"))
    session.select("conv")
    session.press("channel_inspector.follow")
    session.set("conv", features="3")
    session.step("leave", session.context.leave)
    session.feed("right", "photo.png")
    session.feed("right", "right.npy")
    session.edit("rename a", lambda g: commands.rename_layer(g, "a", "c"))
    session.number("channel_inspector.gain", 7)
    session.open("restoring")
    session.do("run.analysis")
    session.choose("channel_inspector.layer", "decode")
    session.number("channel_inspector.gain", 5)
    session.press("channel_inspector.lock")
    session.do("tab.previous")  # locked: the same range for another document
    session.press("channel_inspector.lock")
    session.do("tab.next")  # back at the layer that was inspected there
    session.step(
        "bypass", lambda: session.context.document.do(lambda g: bypass(g, session.context.document.inference, ["mix"]))
    )
    session.do("tab.previous")
    session.do("run.analysis")
    session.edit("remove b", lambda g: commands.remove_layers(g, ["b"]))
    session.edit("remove left", lambda g: commands.remove_layers(g, ["left"]))
    session.do("edit.undo")
    session.do("edit.undo")
    session.step("engine", lambda: session.context.root.change_settings(precision="fp16"))
    session.do("edit.undo")
    session.step("no weights", lambda: session.context.root.change_settings(random_seed=None))
    session.do("run.analysis")
    session.press("analysis.notice.random")
    session.do("view.theme_dark")
    session.do("view.theme_light")
    session.step("as saved", session.context.root.history.mark_clean)
    session.do("file.close")
    session.do("file.reopen")
    compare("analysis_documents", session.lines)


def _at(view: ImageView, x: int, y: int) -> QPoint:
    """The middle of a pixel of the image."""
    return view.place_of(x + 0.5, y + 0.5).toPoint()
