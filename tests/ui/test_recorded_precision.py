"""A session with the panels of precision on answers that the test gives: what they show after each step is recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from analysis_kit import silent_engine

pytest.importorskip("PySide6")
pytest.importorskip("pyqtgraph")
pytestmark = pytest.mark.gui

from panel_session import PanelSession
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot
from recorded_state import compare, plain
from runtime_networks import chain

from app.engine.protocol import (
    BitsReply,
    BlamedOperator,
    BlameReply,
    ChoosePrecisionReply,
    CompareTensorReply,
    LayerBits,
    LayerSensitivity,
    MeasureVariantsReply,
    PassesReply,
    PassRow,
    ProgressEvent,
    SizePoint,
    VariantRow,
)
from app.ui.document.document import Document
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.number_formats import number_formats_of
from app.ui.engine.question import EngineQuestion
from app.ui.precision.blame_panel import BlamePanel
from app.ui.precision.number_formats_panel import MEASURED, NumberFormatsPanel
from app.ui.precision.passes_panel import PassesPanel
from app.ui.precision.variants_panel import VariantsPanel
from app.ui.widgets import theme
from designer.graph.commands import remove_layers, rename_layer, set_params
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.operators.registry import default_registry
from designer.passes.passes import PASSES

__all__ = ["silent_engine"]


@pytest.fixture
def context(qtbot: QtBot, qapp: QApplication) -> Context:
    theme.apply(qapp, "dark")
    made = Context(default_registry())
    convolutions = (("conv", "convolution", {"features": 4}), ("last", "convolution", {"features": 3}))
    made.set_document(Document(chain(*convolutions, size="16x8x3"), made.registry, parent=made))
    return made


class Session(PanelSession):
    """The four panels, whose questions to the engine the test answers."""

    def __init__(self, qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch, *kinds: Any) -> None:
        self.formats = number_formats_of(context)
        panels = [kind(context) for kind in kinds]
        self.variants = panels[-1]
        self._asked: object = None
        self._patch = monkeypatch
        super().__init__(qtbot, context, *panels)

    def questions(self) -> list[EngineQuestion]:
        found = [self.formats, self.variants, self.dialog]
        return [each._question for each in found if hasattr(each, "_question")]

    dialog: Any = None

    def step(self, what: str, act: Callable[[], object]) -> None:
        super().step(what, act)
        calls = next((each._calls for each in self.questions() if each.busy), None)
        asked = calls[-1] if calls else None
        if asked is not None and asked is not self._asked:
            self.lines.append(plain(f"asks {asked.request}"))
        self._asked = asked

    def _calls(self) -> list[Any]:
        (found,) = (each._calls for each in self.questions() if each.busy)
        return list(found)

    def progress(self, *of: tuple[int, int, str]) -> None:
        for done, total, text in of:
            event = ProgressEvent(0, done, total, text)
            self.step(f"progress {done} {total} {text}", lambda event=event: self._calls()[-1].advance(event))

    def answer(self, reply: Any) -> None:
        self.step(f"answer {type(reply).__name__}", lambda: self._calls()[-1].finish(reply))

    def refuse(self, text: str, code: str = "broken") -> None:
        calls = self._calls()
        self.step(f"refuse {text}", lambda: [call.fail((Diagnostic(code, text),)) for call in calls])

    def edit(self, kernel: str) -> None:
        root = self.context.root
        self.step(f"edit kernel {kernel}", lambda: root.do(lambda g: set_params(g, {"conv": {"kernel": kernel}})))

    def undo(self) -> None:
        self.step("undo", self.context.root.undo)

    def redo(self) -> None:
        self.step("redo", self.context.root.redo)

    def answers(self, name: str, path: Path | None) -> None:
        """What the next dialog for a file or folder answers."""
        text = str(path) if path is not None else ""
        folder = name == "getExistingDirectory"
        self._patch.setattr(QFileDialog, name, lambda *a, **k: text if folder else (text, ""))


@pytest.fixture
def started(
    qtbot: QtBot, context: Context, silent_engine: EngineClient, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Session]:
    return lambda *kinds: Session(qtbot, context, monkeypatch, *kinds)


def bits(low: float, *inside: str) -> BitsReply:
    """Every layer and format has another value."""
    names = ("conv", "last", *inside)
    layers = tuple(
        LayerBits(name, 100 * (1 + row), {each: low + 10 * row + 2 * n for n, each in enumerate(MEASURED)}, 4)
        for row, name in enumerate(names)
    )
    points = (
        SizePoint(2000, 90.0, {}),
        SizePoint(1000, 50.0, {"conv": "int8"}),
        SizePoint(500, 30.0, {"last": "int4"}),
    )
    return BitsReply(layers, points)


def test_number_formats_and_blame(
    started: Callable[..., Session], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    session = started(NumberFormatsPanel, BlamePanel)
    context = session.context
    context.select(("conv",))
    session.click("number_formats.int8")
    session.click("number_formats.measure")
    session.progress((0, 2, "conv"), (1, 2, "last"), (2, 2, ""))
    session.answer(bits(20.0, "elsewhere/inner"))
    session.choose("number_formats.heat", "Heat of FP16")
    session.step("point", lambda: session.panels[0].plot.chosen.emit(bits(0).points[2]))
    session.undo()
    session.choose("number_formats.heat", "No heat")
    session.select("number_formats.layers", 1)
    session.step("rename", lambda: context.root.do(lambda g: rename_layer(g, "last", "end")))
    session.undo()
    session.click("number_formats.measure")
    session.answer(bits(30.0))
    session.step("remove", lambda: context.root.do(lambda g: remove_layers(g, ["last"])))
    session.undo()
    session.click("number_formats.measure")
    session.refuse("the input has no image")
    session.edit("5x5")
    session.click("number_formats.measure")
    session.edit("7x7")
    session.answer(bits(40.0))
    session.click("number_formats.measure")
    session.click("number_formats.measure")
    session.click("blame.find")
    session.progress((1, 3, "conv"))
    blamed = BlameReply((BlamedOperator("conv", -0.25, 0.5), BlamedOperator("last", 1.25, 0.125)), 0.03, "conv")
    session.answer(blamed)
    session.select("blame.operators", 1)
    monkeypatch.setattr(EngineClient, "take", lambda _self, value: value)
    monkeypatch.setattr("app.ui.precision.blame_panel.ChannelPairs", lambda *a: Opened(session.said, *a))
    session.click("blame.channels")
    arrays = [np.full((1, 2, 3, 4), value, np.float32) for value in (0.25, 0.75)]
    session.answer(CompareTensorReply(*arrays))
    session.click("blame.first")
    session.refuse("the engine has ended")
    session.edit("3x3")
    session.choose("blame.b", "Number formats")
    session.click("blame.find")
    session.answer(BlameReply((BlamedOperator("last", 0.0, 0.0),), 1e-7, None))
    session.click("number_formats.float16")
    session.click("blame.find")
    session.click("number_formats.int4")
    session.answer(blamed)
    session.answers("getOpenFileName", None)
    session.click("blame.file")
    session.answers("getOpenFileName", tmp_path / "model.onnx")
    session.click("blame.file")
    session.click("blame.find")
    session.refuse("model.onnx cannot be read")
    session.choose("blame.a", "INT8")
    session.step("weights", lambda: context.root.change_settings(weights="other.pt"))
    session.click("blame.find")
    session.refuse("", "cancelled")
    first = context.root
    other = Document(Graph([Layer("only", "input", params={"dims": "8x8x3"})]), context.registry, parent=context)
    session.step("another document", lambda: context.set_document(other))
    session.step("first document", lambda: context.set_document(first))
    compare("precision_formats", session.lines)


class Opened:
    """In place of a dialog: writes down with what it is opened."""

    def __init__(self, said: list[str], layer: str, names: tuple[str, str], a: Any, b: Any, parent: object) -> None:
        self._said, self._what = said, f"channels of {layer}: {names[0]} {a.mean():.2f}, {names[1]} {b.mean():.2f}"

    def show(self) -> None:
        self._said.append(self._what)


def passes(on: tuple[str, ...], scale: int = 1) -> PassesReply:
    rows = []
    for number, name in enumerate(PASSES, 1):
        difference = {1: 0.0, 2: 1e-7, 3: None}.get(number, 0.02)
        counts = (9 * scale, (9 - number % 9) * scale), (4096 * scale, (4096 - 512 * (number % 7)) * scale)
        rows.append(PassRow(name, name in on, number - 1, *counts, difference, number < 3))
    return PassesReply(tuple(rows))


def test_passes_and_variants(started: Callable[..., Session], tmp_path: Path) -> None:
    session = started(PassesPanel, VariantsPanel)
    context = session.context
    names = list(PASSES)
    session.click("graph_passes.compare")
    session.answer(passes(()))
    session.check("graph_passes.table", 1)
    session.answer(passes((names[1],), 2))
    session.check("graph_passes.table", 0)
    session.check("graph_passes.table", 2)
    session.answer(passes((names[1],)))
    session.answer(passes(tuple(names[:3])))
    session.undo()
    session.refuse("the network has no output")
    session.edit("5x5")
    session.click("graph_passes.compare")
    session.click("graph_passes.compare")
    session.menu("variants.add", "variants.add.fp16")
    session.menu("variants.add", "variants.add.sparse")
    session.menu("variants.passes", f"variants.passes.{names[1]}")
    session.click("variants.duplicate")
    session.select("variants.table", 2)
    session.click("variants.current")
    session.click("variants.measure")
    session.progress((0, 5, "network"), (3, 5, "2:4 sparse"))
    rows = [
        VariantRow(v.name, 1000 + n, 30.0 + n, 0.9, 20.0 + n, 0.8, 5.0 + n)
        for n, v in enumerate(session.variants.variants)
    ]
    session.answer(MeasureVariantsReply((VariantRow("", 4000, None, None, 25.0, 0.7, 9.0), *rows)))
    item = session.variants.table.topLevelItem(2)
    session.step("rename", lambda: item.setText(0, "half"))
    session.undo()
    session.redo()
    item = session.variants.table.topLevelItem(2)
    session.step("rename to a name that is taken", lambda: item.setText(0, "2:4 sparse"))
    session.select("variants.table", 3)
    session.menu("variants.passes", f"variants.passes.{names[0]}")
    session.click("variants.delete")
    session.select("variants.table", 2)
    session.click("variants.delete")
    session.step("weights", lambda: context.root.change_settings(weights="other.pt"))
    session.click("variants.measure")
    session.refuse("it has no weights")
    session.step("weights", lambda: context.root.change_settings(weights=""))
    session.click("variants.measure")
    session.click("variants.measure")
    session.click("variants.measure")
    first = context.root
    other = Document(Graph([Layer("only", "input", params={"dims": "8x8x3"})]), context.registry, parent=context)
    session.step("another document", lambda: context.set_document(other))
    session.menu("variants.add", "variants.add.int8")
    session.step("first document", lambda: context.set_document(first))
    session.step("light", lambda: theme.apply(QApplication.instance(), "light"))
    session.step("dark", lambda: theme.apply(QApplication.instance(), "dark"))
    compare("precision_variants", session.lines)


def found(target: str, **more: Any) -> ChoosePrecisionReply:
    kept = {"conv": "it overflows in FP16"}
    sensitivity = (LayerSensitivity("last", 31.0, 47.0), LayerSensitivity("conv", 21.0, 57.0)) if more else ()
    return ChoosePrecisionReply(
        target, 41.25, not more, kept, 7, {"notes.txt": "it is not an image"} if more else {},
        "float16" if more else "float32", {"last": 70000.0, "conv": 90000.0}, 38.5 if more else None, sensitivity, **more
    )  # fmt: skip


def test_finding_a_precision(started: Callable[..., Session], tmp_path: Path) -> None:
    session = started(VariantsPanel)
    session.menu("variants.add", "variants.find")
    dialog = session.dialog = session.variants.findChildren(QApplication.activeModalWidget().__class__)[0]
    session.step("dialog", lambda: None)
    session.answers("getExistingDirectory", None)
    session.click("precision.browse")
    session.answers("getExistingDirectory", tmp_path)
    session.click("precision.browse")
    session.answers("getExistingDirectory", None)
    session.click("precision.browse")
    session.click("precision.find")
    session.progress((0, 7, "First images"), (3, 7, "Checking conv"))
    session.click("precision.find")
    session.click("precision.find")
    session.refuse("the folder has no images")
    session.choose("precision.target", "FP16")
    session.click("precision.find")
    session.answer(found("fp16"))
    session.select("precision.layers", 0)
    session.choose("precision.target", "INT8, sensitive layers in FP16")
    session.choose("precision.method", "Percentile")
    session.type("precision.size", "64x48")
    session.number("precision.count", 12)
    session.choose("precision.runtime", "TensorRT")
    session.click("precision.find")
    session.number("precision.count", 13)
    session.click("precision.find")
    session.answer(found("int8", bytes=1500, bytes_fp32=6000, report='{"a": 1}'))
    session.check("precision.layers", 1)
    session.answers("getSaveFileName", None)
    session.click("precision.save")
    session.answers("getSaveFileName", tmp_path / "none" / "report.json")
    session.click("precision.save")
    session.answers("getSaveFileName", tmp_path / "report.json")
    session.click("precision.save")
    assert (tmp_path / "report.json").read_text() == '{"a": 1}'
    session.step("budget", lambda: dialog.budget.setValue(0))
    session.click("precision.find")
    session.answer(found("int8", bytes=1500, bytes_fp32=6000, report="{}"))
    session.check("precision.layers", 0)
    session.step("add", dialog.add.click)
    session.lines.append(plain(f"variants {session.context.root.settings.variants}"))
    session.dialog = None
    session.menu("variants.add", "variants.calibrate")
    again = session.dialog = QApplication.activeModalWidget()
    session.type("precision.folder", "images")
    session.key("precision.folder", Qt.Key.Key_Return)
    session.click("precision.find")
    session.step("close", again.reject)
    session.dialog = None
    compare("precision_dialog", session.lines)
