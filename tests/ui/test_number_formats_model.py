"""Number Formats, Blame and Graph Passes in random sequences of measurements, edits, variants and documents, compared with a model."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6")
pytest.importorskip("pyqtgraph")
pytestmark = pytest.mark.gui

from engine_kit import ScriptedEngine
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QApplication, QTreeWidget
from pytestqt.qtbot import QtBot
from runtime_networks import chain
from window_kit import shown

from app.computations import computation_titles, variant_name
from app.engine.protocol import (
    BitsReply,
    BitsRequest,
    BlamedOperator,
    BlameReply,
    LayerBits,
    PassesReply,
    PassRow,
    SizePoint,
)
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.number_formats import TITLES, NumberFormats, number_formats_of
from app.ui.precision import number_formats_panel
from app.ui.precision.blame_panel import BlamePanel
from app.ui.precision.number_formats_panel import MEASURED, REASON, NumberFormatsPanel
from app.ui.precision.passes_panel import PassesPanel
from app.ui.precision.size_plot import best_points
from app.ui.widgets import theme
from designer.files.variants import BY_HAND, Variant
from designer.graph.commands import add_layer, remove_layers, set_params
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template_commands import make_template
from designer.operators.registry import default_registry
from designer.passes.passes import PASSES
from designer.runtime.number_formats import FORMATS
from designer.units import binary, digits

BITS = {"float32": 32, "float16": 16, "bfloat16": 16}


def network(*names: str) -> Graph:
    return chain(*((name, "convolution", {"features": 3}) for name in names), size="16x8x3")


class Asked:
    """The questions of the panels to the engine, answered by the test."""

    def __init__(self, formats: NumberFormats, patch: pytest.MonkeyPatch) -> None:
        self.formats = formats
        self.waiting: tuple[str, tuple[Any, ...], Callable[..., None], Callable[..., None]] | None = None
        patch.setattr(NumberFormats, "busy", property(lambda _: self.waiting is not None))
        patch.setattr(formats, "stop", lambda: self.end("") if self.waiting is not None else None)
        for name in ("measure_bits", "blame", "measure_passes", "compare_tensor"):
            patch.setattr(formats, name, lambda *args, name=name: self.ask(name, *args))

    def ask(self, name: str, *args: Any) -> None:
        assert self.waiting is None
        *of, done, report = args
        self.waiting = name, tuple(of), done, report
        self.formats.busy_changed.emit(True)

    def answer(self, *reply: Any) -> None:
        assert self.waiting is not None
        _, _, done, report = self.waiting
        self.waiting = None
        self.formats.busy_changed.emit(False)
        report("", "info")
        done(*reply)

    def end(self, text: str) -> None:
        """A question that fails, or with an empty text is stopped."""
        assert self.waiting is not None
        report = self.waiting[3]
        self.waiting = None
        self.formats.busy_changed.emit(False)
        if text:
            report(text, "error")


class Bench:
    def __init__(self, qtbot: QtBot, patch: pytest.MonkeyPatch, seed: int, kind: Any) -> None:
        theme.apply(QApplication.instance(), "dark")  # type: ignore[arg-type]
        self.random = random.Random(seed)
        self.context = Context(default_registry())
        graphs = (network("conv", "last"), network("conv", "middle", "last"))
        self.documents = [Document(graph, self.context.registry, parent=self.context) for graph in graphs]
        self.context.set_document(self.documents[0])
        self.asked = Asked(number_formats_of(self.context), patch)
        self.heat: list[Any] = [None]
        self.revealed: list[str] = []
        self.panel = shown(qtbot, kind(self.context), 700, 600)
        self.context.setParent(self.panel)
        self.context.heat_requested.connect(self.heat.append)
        self.context.reveal_requested.connect(self.revealed.append)
        self.status = ""

    @property
    def root(self) -> Document:
        return self.context.root

    @property
    def variant(self) -> Variant | None:
        settings = self.root.settings
        return next((each for each in settings.variants if each.name == settings.variant), None)

    def rest(self) -> None:
        for _ in range(50):
            QCoreApplication.processEvents()
            timers = [getattr(self.panel, name, None) for name in ("_rest", "_filling")]
            active = [timer for timer in timers if timer is not None and timer.isActive()]
            for timer in active:
                if timer.isSingleShot():
                    timer.setInterval(0)
                    timer.start()
            if not active:
                return

    def edit(self) -> bool:
        kernel = self.random.choice(("1x1", "3x3", "5x5"))
        changes = self.root.graph["conv"].params.get("kernel") != kernel
        self.root.do(lambda g: set_params(g, {"conv": {"kernel": kernel}}))
        return changes

    def rows(self, table: QTreeWidget) -> list[list[str]]:
        items = [table.topLevelItem(row) for row in range(table.topLevelItemCount())]
        return [[item.text(column) for column in range(table.columnCount())] for item in items if item is not None]

    def message(self) -> str:
        return str(self.panel.status._text.accessibleName())


# --- Number Formats ---------------------------------------------------------------------------------------------------


class Formats(Bench):
    def __init__(self, qtbot: QtBot, patch: pytest.MonkeyPatch, seed: int) -> None:
        super().__init__(qtbot, patch, seed, NumberFormatsPanel)
        self.found: BitsReply | None = None
        self.chosen = ""  # the format of the heat

    def forget(self) -> None:
        self.found = None
        if self.asked.waiting is None:
            self.status = ""

    # steps

    def measure(self) -> None:
        self.panel.measure.click()
        self.asked_again()

    def asked_again(self) -> None:
        if self.asked.waiting is not None:
            assert self.asked.waiting[:2] == ("measure_bits", ())

    def answer(self) -> None:
        if self.asked.waiting is None:
            return
        pick = self.random.choice
        names = [*self.computing(), *pick(((), ("conv.inner", "elsewhere/inner")))]
        layers = tuple(
            LayerBits(
                name,
                pick((100, 1001)),
                {each: pick((12.0, 33.04, 199.9, 200.0, 999.0)) for each in MEASURED},
                pick((1, 4)),
            )
            for name in names
        )
        points = tuple(SizePoint(size, psnr, {"conv": "int8"}) for size, psnr in ((2048, 50.0), (1024, 30.0)))
        self.found = BitsReply(layers, points)
        self.asked.answer(self.found)
        self.status = ""
        self.chosen = self.chosen or "int4"

    def refuse(self) -> None:
        if self.asked.waiting is not None:
            self.asked.end("It failed.")
            self.status = "error: It failed."

    def change(self) -> None:
        if self.edit():
            self.forget()

    def layer(self) -> None:
        if "added" in self.root.graph:
            self.root.do(lambda g: remove_layers(g, ["added"]))
        else:
            new = Layer("added", "convolution", inputs=(Source("conv"),), params={"features": "3"})
            self.root.do(lambda g: add_layer(g, new))
        self.forget()

    def weights(self) -> None:
        weights = self.random.choice(("", "a.pt", "b.pt"))
        if weights != self.root.settings.weights:
            self.root.change_settings(weights=weights)
            self.forget()

    def variants(self) -> None:
        reasons = {self.random.choice(("conv", "conv.deep")): self.random.choice((BY_HAND, "<b> overflows"))}
        formats = self.random.choice(
            ({}, {"conv": "int8"}, {"conv": "int4", "conv.inner": "float32", "gone": "of_later"})
        )
        variants = (Variant("one", self.random.choice(("fp32", "fp16")), formats, reasons=reasons), Variant("two"))
        self.root.change_settings(variants=variants, variant=self.random.choice(("", "one", "two")))

    def chip(self) -> None:
        self.context.select(self.random.choice((("conv",), ("last", "conv"), ("last",))))
        name = self.random.choice(list(FORMATS))
        before = self.asked.formats.formats
        self.panel.findChild(object, f"number_formats.{name}").click()  # type: ignore[attr-defined]
        for layer in self.context.selection:
            assert self.asked.formats.format_of(layer) == name
        others = {layer: kind for layer, kind in before.items() if layer not in self.context.selection}
        now = {layer: kind for layer, kind in self.asked.formats.formats.items() if layer not in self.context.selection}
        assert now == others

    def point(self) -> None:
        if self.found is not None:
            self.panel.plot.chosen.emit(self.found.points[0])
            assert self.asked.formats.formats == ({} if self.base() == "int8" else {"conv": "int8"})

    def choose(self) -> None:
        self.panel.heat.setCurrentIndex(self.random.randrange(self.panel.heat.count()))
        self.chosen = self.panel.heat.currentData()

    def document(self) -> None:
        other = self.random.choice(self.documents)
        if other is self.root:
            return
        if self.asked.waiting is not None:
            self.asked.end("")  # the question is given up with its document
        self.found, self.status, self.chosen = None, "", ""
        self.context.set_document(other)

    # the model

    def base(self) -> str:
        kind = self.variant.precision if self.variant is not None else "fp32"
        return {"fp32": "float32", "fp16": "float16"}[kind]

    def computing(self) -> list[str]:
        graph = self.root.graph
        order, loops = graph.order()
        return [name for name in (*order, *loops) if graph[name].type == "convolution"]

    def format_of(self, name: str) -> str:
        formats = dict(self.variant.formats) if self.variant is not None else {}
        outer = name.rpartition(".")[0]
        return formats.get(name) or (outer and formats.get(outer)) or self.base()

    def check(self) -> None:
        self.rest()
        panel, found = self.panel, self.found
        measured = {item.layer: item.psnr for item in found.layers} if found is not None else {}
        reasons = dict(self.variant.reasons) if self.variant is not None else {}
        named = dict.fromkeys((*measured, *(self.variant.formats if self.variant is not None else ()), *reasons))
        layers = self.computing()
        names: list[str] = []
        for layer in layers:
            names += [layer, *(name for name in named if name.startswith(f"{layer}."))]
        names += [name for name in named if name not in names]
        expected = []
        for name in names:
            kind = self.format_of(name)
            psnr = ["∞" if measured[name][each] >= 200 else f"{measured[name][each]:.1f}" for each in MEASURED] if name in measured else [""] * len(MEASURED)  # fmt: skip
            reason = reasons.get(name, "")
            expected.append([name, TITLES.get(kind, kind), *psnr, "changed by hand" if reason == BY_HAND else reason])
        assert self.rows(panel.table) == expected
        for row in range(len(expected)):
            item = panel.table.topLevelItem(row)
            assert item is not None
            assert item.toolTip(REASON) == (
                "<p>&lt;b&gt; overflows</p>" if "<b>" in expected[row][-1] else expected[row][-1]
            )
        text = ""
        if found is not None:
            bits = sum(self.bits(item) for item in found.layers)
            plain = sum(4 * item.weights for item in found.layers)
            text = f"Weights: {binary(ceil(bits / 8))} instead of {binary(plain)}"
        assert (panel.size_text.text(), panel.size_text.isVisible()) == (text, bool(text))
        assert panel.heat.currentData() == self.chosen
        heat = self.heat[-1]
        if found is None or not self.chosen:
            assert heat is None
        else:
            db = {item.layer: item.psnr[self.chosen] for item in found.layers}
            assert heat.values == pytest.approx({layer: 100 / 10 ** (value / 20) for layer, value in db.items()})
            assert {layer: heat.label(layer) for layer in db} == {
                layer: "∞ dB" if value >= 200 else f"{value:.1f} dB" for layer, value in db.items()
            }
        assert (panel.plot is not None and panel.plot.isVisible()) is (found is not None)
        if found is not None:
            assert panel.plot is not None
            assert panel.plot._points == found.points
        assert panel.measure.text() == ("Stop" if self.asked.waiting is not None else "Measure Bits")
        assert self.message() == self.status

    def bits(self, item: LayerBits) -> int:
        kind = self.format_of(item.layer)
        if kind in BITS or kind not in FORMATS:
            return BITS.get(kind, 32) * item.weights
        return FORMATS[kind].weight_bits((item.vectors,)) + FORMATS[kind].weight_bits((1, item.weights - item.vectors))


@pytest.mark.parametrize("seed", range(2))
def test_number_formats_show_what_was_measured_of_the_document_as_it_is(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    bench = Formats(qtbot, monkeypatch, seed)
    steps = (
        [bench.measure] * 3 + [bench.answer] * 4 + [bench.choose, bench.variants, bench.chip] * 2 + [bench.document] * 4
    )
    steps += [bench.refuse] * 3 + [bench.change, bench.layer, bench.weights, bench.point]
    bench.check()
    for _ in range(70):
        bench.random.choice(steps)()
        bench.check()


def test_measurements_of_another_document_are_not_shown(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Formats(qtbot, monkeypatch, 0)
    bench.measure()
    bench.answer()
    bench.check()
    bench.found, bench.chosen = None, ""
    bench.context.set_document(bench.documents[1])
    bench.check()
    bench.context.set_document(bench.documents[0])
    bench.check()


def test_a_question_about_another_document_is_given_up(qtbot: QtBot) -> None:
    context, engine = Context(default_registry()), ScriptedEngine()
    context.engine = engine  # type: ignore[assignment]
    documents = [Document(network("conv"), context.registry, parent=context) for _ in "ab"]
    context.set_document(documents[0])
    formats = number_formats_of(context)
    said: list[object] = []
    formats.busy_changed.connect(said.append)
    formats.formats_changed.connect(lambda: said.append("formats"))
    formats.measure_bits(said.append, lambda text, _role: said.append(text))
    assert (said, formats.busy, len(engine.requests(BitsRequest))) == ([True], True, 1)
    context.set_document(documents[1])
    assert not formats.busy
    assert engine.calls == [], "the engine is stopped"
    assert [what for what in said if what != ""] == [True, False, "formats"]
    formats.set_formats({"conv": "float16"})
    assert said[-1] == "formats"
    assert (documents[0].settings.variants, len(documents[1].settings.variants)) == ((), 1)
    said.clear()
    documents[0].change_settings(random_seed=3)
    assert said == [], "one that was left is not followed"


def test_measurements_stay_while_a_template_is_shown(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Formats(qtbot, monkeypatch, 0)
    assert bench.root.do(lambda graph: make_template(graph, ["conv"], "part"))
    bench.rest()
    bench.measure()
    bench.answer()
    bench.rest()
    measured, found = bench.rows(bench.panel.table), bench.panel._found
    assert found is not None
    (instance,) = (layer.name for layer in bench.root.graph.layers.values() if layer.type == "template")
    for show in (lambda: bench.context.enter(instance), lambda: bench.context.set_scope(())):
        show()
        bench.rest()
        assert bench.panel._found is found
        assert bench.rows(bench.panel.table) == measured


def test_problems_of_another_document_are_not_shown(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Formats, Blame, Passes):
        bench = kind(qtbot, monkeypatch, 0)
        (bench.measure if isinstance(bench, Formats) else bench.find if isinstance(bench, Blame) else bench.compare)()
        bench.refuse()
        bench.check()
        bench.context.set_document(bench.documents[1])
        bench.status = ""
        bench.check()


def test_layers_of_a_large_document_are_listed_after_it_is_shown(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Formats(qtbot, monkeypatch, 0)
    monkeypatch.setattr(number_formats_panel, "LARGE", 3)
    bench.context.set_document(bench.documents[1])
    assert bench.rows(bench.panel.table) == []
    bench.check()


def test_layers_that_run_are_listed_in_loops_too_and_those_for_training_are_not(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def conv(name: str, source: str) -> Layer:
        return Layer(name, "convolution", inputs=(Source(source),), params={"features": "3"})

    layers = [
        *(Layer(name, "input", params={"dims": "16x8x3"}) for name in ("image", "clean")),
        *(conv("conv", "image"), conv("head", "clean"), conv("one", "other"), conv("other", "one")),
        Layer("result", "output", inputs=(Source("conv"),)),
        Layer("loss", "l1_loss", inputs=(Source("conv"), Source("head"))),
    ]
    bench = Formats(qtbot, monkeypatch, 0)
    bench.context.set_document(Document(Graph(layers), bench.context.registry, parent=bench.context))
    bench.rest()
    assert {row[0] for row in bench.rows(bench.panel.table)} == {"conv", "one", "other"}


def test_a_long_table_keeps_its_place(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Formats(qtbot, monkeypatch, 0)
    bench.context.set_document(
        Document(network("conv", *(f"c{number}" for number in range(60))), bench.context.registry)
    )
    bench.check()
    bar = bench.panel.table.verticalScrollBar()
    bar.setValue(20)
    bench.chip()
    assert bar.value() == 20


def test_the_best_points_are_those_that_no_other_one_beats() -> None:
    chance = random.Random(1)
    for _ in range(200):
        points = [
            SizePoint(chance.randrange(1, 6), float(chance.randrange(1, 6)), {"a": str(number)})
            for number in range(chance.randrange(8))
        ]
        best = best_points(points)
        values = [(point.bytes, point.psnr) for point in best]
        beaten = {
            (one.bytes, one.psnr)
            for one in points
            for other in points
            if (other.bytes <= one.bytes and other.psnr > one.psnr) or (other.bytes < one.bytes and other.psnr >= one.psnr)
        }  # fmt: skip
        assert values == sorted({(p.bytes, p.psnr) for p in points} - beaten, reverse=True)


# --- Blame --------------------------------------------------------------------------------------------------------------


class Blame(Bench):
    def __init__(self, qtbot: QtBot, patch: pytest.MonkeyPatch, seed: int) -> None:
        super().__init__(qtbot, patch, seed, BlamePanel)
        self.table: list[list[str]] | None = None
        self.first = ""
        self.values: dict[str, float] | None = None
        self.names = ("", "")
        self.titles = ("", "")
        self.compared: tuple[Variant, ...] = ()
        self.files: dict[str, str] = {}
        self.chosen = ["fp32", "int8"]

    def of_names(self) -> tuple[Variant, ...]:
        return tuple(each for each in self.root.settings.variants if variant_name(each.name) in self.names)

    def clear(self) -> None:
        self.table, self.first, self.values, self.status = None, "", None, ""

    def find(self) -> None:
        waits = self.asked.waiting is not None
        self.panel.causes.click()
        if waits:
            return
        self.clear()
        self.names = (self.chosen[0], self.chosen[1])
        offered = self.offered()
        self.titles = (offered[0][self.names[0]], offered[1][self.names[1]])
        self.compared = self.of_names()
        assert self.asked.waiting is not None
        assert self.asked.waiting[:2] == ("blame", self.names)

    def answer(self) -> None:
        if self.asked.waiting is None:
            return
        pick = self.random.choice
        shares = (-0.25, 0.0, 0.25, 1.25, 0.0004)
        operators = tuple(
            BlamedOperator(name, pick(shares), pick((0.0, 0.5, 0.125))) for name in ("conv", "last", "x.y")
        )
        first = pick((None, "conv", "last"))
        reply = BlameReply(operators, pick((0.03, 1.23456e-7)), first)
        self.asked.answer(reply)
        if self.compared != self.of_names():
            self.status = "error: The variant was changed in the meantime. Repeat the measurement."
            return
        ranked = sorted(operators, key=lambda each: (-abs(each.share), -each.deviation))
        self.table = [[each.layer, f"{100 * each.share:.1f}", digits(each.deviation)] for each in ranked]
        self.first = first or ""
        end = "." if first else "; no operator deviates by more than rounding."
        self.status = f"note: {self.titles[0]} and {self.titles[1]} differ by {reply.rms:.2g} RMS{end}"
        self.values = {each.layer: max(0.0, 100 * each.share) for each in operators}
        self.labels = {each.layer: f"{100 * each.share:.0f} %" for each in operators}

    def refuse(self) -> None:
        if self.asked.waiting is not None:
            self.asked.end("It failed.")
            self.status = "error: It failed."

    def forget(self) -> None:
        if self.table is not None:
            self.clear()
        elif self.asked.waiting is None:
            self.status = ""

    def change(self) -> None:
        if self.edit():
            self.forget()

    def variants(self) -> None:
        kinds = self.random.choice(("fp16", "bf16"))
        some = (Variant("one", kinds), Variant("two"), Variant("three"))
        variants = some[: self.random.choice((0, 1, 3))]
        self.root.change_settings(variants=variants, variant="")
        self.keep()
        if self.compared != self.of_names():
            self.forget()

    def offered(self) -> tuple[dict[str, str], dict[str, str]]:
        titles = computation_titles(self.root.settings.variants)
        return titles, {**titles, **self.files}

    def keep(self) -> None:
        for number, usual in enumerate(("fp32", "int8")):
            if self.chosen[number] not in self.offered()[number]:
                self.chosen[number] = usual

    def choose(self) -> None:
        number = self.random.randrange(2)
        combo = (self.panel.a, self.panel.b)[number]
        combo.setCurrentIndex(self.random.randrange(combo.count()))
        self.chosen[number] = combo.currentData()

    def file(self) -> None:
        path = Path(self.random.choice(("/a/model.onnx", "/b/other.onnx")))
        self.panel.compare_with_file(path)
        self.files[str(path)] = path.name
        self.chosen[1] = str(path)

    def document(self) -> None:
        other = self.random.choice(self.documents)
        if other is self.root:
            return
        if self.asked.waiting is not None:
            self.asked.end("")
        self.context.set_document(other)
        self.files.clear()
        self.chosen = ["fp32", "int8"]
        self.clear()

    def channels(self) -> None:
        if self.table is None or self.asked.waiting is not None:
            return
        row = self.random.randrange(len(self.table))
        self.panel.table.setCurrentItem(self.panel.table.topLevelItem(row))
        assert self.panel.channels.isEnabled()
        self.panel.channels.click()
        assert self.asked.waiting is not None
        assert self.asked.waiting[:2] == ("compare_tensor", (self.table[row][0], *self.names))
        self.asked.end("It has no channels.")
        self.status = "error: It has no channels."
        if self.first:
            self.panel.first.click()
            assert self.asked.waiting[:2] == ("compare_tensor", (self.first, *self.names))
            self.asked.end("It failed.")
            self.status = "error: It failed."

    def check(self) -> None:
        self.rest()
        panel = self.panel
        for combo, offered, chosen in zip((panel.a, panel.b), self.offered(), self.chosen, strict=True):
            entries = {combo.itemData(row): combo.itemText(row) for row in range(combo.count())}
            assert entries == offered
            assert combo.currentData() == chosen
        assert self.rows(panel.table) == (self.table or [])
        assert panel.table.isVisible() is (self.table is not None)
        assert panel.first.isVisible() is bool(self.first)
        if self.first:
            assert panel.first.text() == f"First deviating operator: {self.first}"
        heat = self.heat[-1]
        assert (heat.values if heat is not None else None) == self.values
        if self.values is not None:
            assert {layer: heat.label(layer) for layer in self.labels} == self.labels
        if self.table is None:
            assert not panel.channels.isEnabled()
        assert panel.causes.text() == ("Stop" if self.asked.waiting is not None else "Find Causes")
        assert self.message() == self.status


@pytest.mark.parametrize("seed", range(2))
def test_blame_shows_the_causes_of_the_chosen_computations_as_they_are(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    bench = Blame(qtbot, monkeypatch, seed)
    steps = [bench.find] * 4 + [bench.answer] * 5 + [bench.choose, bench.variants, bench.document, bench.channels] * 2
    steps += [bench.refuse, bench.change, bench.file]
    bench.check()
    for _ in range(80):
        bench.random.choice(steps)()
        bench.check()


# --- Graph Passes ---------------------------------------------------------------------------------------------------------


class Passes(Bench):
    def __init__(self, qtbot: QtBot, patch: pytest.MonkeyPatch, seed: int) -> None:
        super().__init__(qtbot, patch, seed, PassesPanel)
        self.found: dict[str, PassRow] = {}
        self.tried: tuple[str, ...] = ()

    def on(self) -> tuple[str, ...]:
        return self.variant.passes if self.variant is not None else ()

    # steps

    def compare(self) -> None:
        waits = self.asked.waiting is not None
        self.panel.compare.click()
        if not waits:
            self.asks()

    def asks(self) -> None:
        assert self.asked.waiting is not None
        assert self.asked.waiting[0] == "measure_passes"
        self.tried = self.on()

    def answer(self) -> None:
        if self.asked.waiting is None:
            return
        pick = self.random.choice
        rows = tuple(
            PassRow(
                name,
                name in self.on(),
                pick((0, 1, 12)),
                (pick((9, 20)), pick((3, 9))),
                (pick((0, 4096, 5000)), pick((0, 1024, 4096))),
                pick((None, 0.0, 1.26e-7, 0.0234)),
                pick((True, False)),
            )
            for name in PASSES
        )
        tried = self.tried
        self.asked.answer(PassesReply(rows))
        self.status = ""
        if tried != self.on():  # it is asked again
            self.found = {}
            self.asks()  # again
        else:
            self.found = {row.name: row for row in rows}

    def refuse(self) -> None:
        if self.asked.waiting is not None:
            self.asked.end("It failed.")
            self.status = "error: It failed."

    def forget(self) -> None:
        self.found = {}
        if self.asked.waiting is None:
            self.status = ""

    def change(self) -> None:
        if self.edit():
            self.forget()

    def check_pass(self) -> None:
        row = self.random.randrange(len(PASSES))
        item = self.panel.table.topLevelItem(row)
        assert item is not None
        name = list(PASSES)[row]
        on = item.checkState(0) is not Qt.CheckState.Checked
        self.asked_before = self.asked.waiting is not None
        item.setCheckState(0, Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)
        assert (name in self.on()) is on
        self.settings_came()

    def variants(self) -> None:
        names = list(PASSES)
        variants = (
            Variant("one", passes=(names[0],)),
            Variant("two", "fp16", passes=tuple(names[1:3])),
            Variant("none"),
        )
        self.asked_before = self.asked.waiting is not None
        self.root.change_settings(variants=variants, variant=self.random.choice(("", "one", "two", "none")))
        self.settings_came()

    def settings_came(self) -> None:
        """What was found of other passes is found again; what went wrong with other passes is not shown any more."""
        waits = self.asked_before
        if tuple(row.name for row in self.found.values() if row.on) != self.on() and self.found:
            self.found = {}
            if not waits:
                self.status = ""
                self.asks()
        elif not self.found and self.tried != self.on() and not waits:
            self.status = ""

    def document(self) -> None:
        other = self.random.choice(self.documents)
        if other is self.root:
            return
        if self.asked.waiting is not None:
            self.asked.end("")
        self.context.set_document(other)
        self.found, self.status = {}, ""
        assert self.asked.waiting is None  # nothing is measured of a document only because it is shown

    def check(self) -> None:
        self.rest()
        panel = self.panel
        name = self.variant.name if self.variant is not None else ""
        assert panel.subject.text() == (
            f"Passes of the variant '{name}', which is current"
            if name
            else "The current network has no passes. Check one to add a variant."
        )
        expected = []
        for each in PASSES.values():
            row = self.found.get(each.name)
            expected.append([each.title, *(self.texts(row) if row is not None else ["-"] * 5)])
        assert self.rows(panel.table) == expected
        for number, each in enumerate(PASSES.values()):
            item = panel.table.topLevelItem(number)
            assert item is not None
            assert (item.checkState(0) is Qt.CheckState.Checked) is (each.name in self.on())
            row = self.found.get(each.name)
            ink = theme.color("text" if row is None or row.on else "muted")
            assert {item.foreground(column).color().name() for column in range(1, 6)} == {ink.name()}
        rows = [row for row in self.found.values() if row.on]
        text = ""
        if rows:
            (many, _), (plain, _) = rows[0].accesses, rows[0].bytes
            few, less = rows[-1].accesses[1], rows[-1].bytes[1]
            text = (
                f"Together: {many} → {few} tensor accesses, {binary(plain)} → {binary(less)} of memory traffic "
                f"({f'{digits(100 * (1 - less / plain))} %' if plain else '0 %'} less, modelled)"
            )
        assert (panel.total.text(), panel.total.isVisible()) == (text, bool(text))
        assert panel.compare.text() == ("Stop" if self.asked.waiting is not None else "Try Passes")
        assert self.message() == self.status

    def texts(self, row: PassRow) -> list[str]:
        (many, few), (plain, less) = row.accesses, row.bytes
        if not row.count:
            result = "nothing to do"
        elif row.equal:
            result = f"equal (difference {row.difference or 0:.1g})"
        elif row.difference is None:
            result = "outputs have other shapes, or values that are not finite"
        else:
            result = f"differs by up to {row.difference:.2g}"
        saved = f"{digits(100 * (1 - less / plain))} %" if plain else "-"
        return [str(row.count), f"{many} → {few}", f"{binary(plain)} → {binary(less)}", saved, result]


@pytest.mark.parametrize("seed", range(2))
def test_passes_show_what_they_do_to_the_variant_as_it_is(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    bench = Passes(qtbot, monkeypatch, seed)
    steps = [bench.compare] * 3 + [bench.answer] * 4 + [bench.check_pass, bench.variants, bench.document] * 2
    steps += [bench.refuse, bench.change]
    bench.check()
    for _ in range(80):
        bench.random.choice(steps)()
        bench.check()


def test_passes_are_tried_again_only_by_a_visible_panel_and_one_question_at_a_time(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Passes(qtbot, monkeypatch, 0)
    names = list(PASSES)

    def choose(*passes: str) -> None:
        bench.root.change_settings(variants=(Variant("one", passes=passes),), variant="one")

    def try_them() -> None:
        bench.compare()
        bench.answer()
        bench.check()
        assert bench.found

    choose(names[0])
    try_them()
    bench.panel.hide()
    choose(names[1])
    assert bench.asked.waiting is None, "a hidden panel does not keep the engine busy"
    bench.found = {}
    bench.panel.show()
    bench.check()
    bench.compare()
    choose(names[2])
    bench.panel.hide()
    assert bench.asked.waiting is not None
    bench.asked.answer(PassesReply(()))
    assert bench.asked.waiting is None, "of other passes, and nobody sees them"
    bench.panel.show()
    bench.check()
    try_them()
    bench.asked.ask("blame", lambda _: None, lambda *_: None)  # another panel
    waiting = bench.asked.waiting
    choose(names[0])
    assert bench.asked.waiting is waiting, "that of another panel is not stopped"
    bench.found = {}
    bench.check()
