"""The Variants panel after any steps: every row has the numbers of exactly what it is now, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

pytest.importorskip("PySide6")

from engine_kit import ScriptedEngine
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from runtime_networks import chain

from app.engine.protocol import MeasureVariantsReply, MeasureVariantsRequest, ProgressEvent, Request, VariantRow
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.requests import run_settings
from app.ui.precision.variants_panel import HEADERS, NAME, STATUS, VariantsPanel, precision_text
from designer.files.variants import Variant
from designer.graph.commands import move_layers, set_params
from designer.graph.diagnostics import Diagnostic
from designer.operators.registry import default_registry
from designer.passes.passes import PASSES

pytestmark = pytest.mark.gui
PSNR = 3
STEPS = 60


class Bench:
    """The panel with a list of what must be shown: PSNR by name, with the variant that it was measured of."""

    def __init__(self, qtbot: QtBot) -> None:
        self.context = Context(default_registry())
        self.engine = ScriptedEngine()
        self.context.engine = self.engine  # type: ignore[assignment]
        network = ("conv", "convolution", {"features": 4})
        self.documents = [
            Document(chain(network, size="16x8x3"), self.context.registry, parent=self.context) for _ in "ab"
        ]
        for document in self.documents:
            document.change_settings(random_seed=1, input_files={"image": "pattern:edges"})
        self.context.set_document(self.documents[0])
        self.panel = VariantsPanel(self.context)
        qtbot.addWidget(self.panel)
        self.panel.show()
        self.measured: dict[str, tuple[Variant, float]] = {}
        self.asked: tuple[Variant, ...] | None = None
        self.edited = False  # since it was asked
        self.count = 0.0

    @property
    def document(self) -> Document:
        return self.context.root

    @property
    def variants(self) -> dict[str, Variant]:
        return {"": Variant(""), **{each.name: each for each in self.document.settings.variants}}

    # --- steps -----------------------------------------------------------------------------------------------------

    def add(self, precision: str) -> None:
        action = next(a for a in self.panel.add.menu().actions() if a.objectName() == f"variants.add.{precision}")
        if self.panel.add.isEnabled():
            action.trigger()

    def select(self, row: int) -> None:
        self.panel.table.setCurrentItem(self.panel.table.topLevelItem(row % self.panel.table.topLevelItemCount()))

    def click(self, name: str) -> None:
        button = getattr(self.panel, name)
        if button.isEnabled():
            button.click()

    def rename(self, text: str) -> None:
        item = self.panel.table.currentItem()
        old = item.data(0, NAME)
        if not old or self.asked is not None:
            return
        allowed = text not in self.variants
        item.setText(0, text)
        if allowed and old in self.measured:
            variant, psnr = self.measured.pop(old)
            self.measured[text] = replace(variant, name=text), psnr
        assert self.panel.selected == (text if allowed else old)

    def give_pass(self, name: str) -> None:
        action = next(a for a in self.panel.passes.menu().actions() if a.objectName() == f"variants.passes.{name}")
        if self.panel.passes.isEnabled():
            action.trigger()

    def edit(self, kernel: str) -> None:
        self.take_back(lambda: self.document.do(lambda g: set_params(g, {"conv": {"kernel": kernel}})))

    def computed(self) -> tuple[object, ...]:
        """What numbers depend on, apart from variants."""
        return dict(self.document.graph["conv"].params), *run_settings(self.document.settings)

    def take_back(self, step: Callable[[], object]) -> None:
        before = self.computed()
        step()
        if self.computed() != before:
            self.measured.clear()
            self.edited = True

    def go(self, number: int) -> None:
        self.context.set_document(self.documents[number])
        self.measured.clear()
        self.asked = None

    def measure(self) -> None:
        self.panel.measure.click()
        if self.asked is not None:
            self.asked = None
            assert not self.engine.calls, "the engine was stopped"
            return
        (request,) = self.engine.requests(MeasureVariantsRequest)
        assert request.variants == self.document.settings.variants
        self.asked, self.edited = request.variants, False

    def answer(self, refused: bool) -> None:
        if self.asked is None:
            return
        asked, self.asked = self.asked, None
        while not isinstance(self.engine.calls[0].request, MeasureVariantsRequest):
            self.engine.next(Request).finish(None)
        call = self.engine.next(MeasureVariantsRequest)
        call.advance(ProgressEvent(1, 0, len(asked) + 1, "small"))
        assert self.panel.status.text() == f"Running small (1 of {len(asked) + 1}) ..."
        if refused:
            call.fail((Diagnostic("broken", "it is broken"),))
            assert self.panel.status.text() == "It is broken."
            return
        rows = []
        found = {}
        for each in (Variant(""), *asked):
            self.count += 1
            rows.append(
                VariantRow(each.name, 1024, self.count, 0.5, 20.0, 0.25, 2.0, emulated=each.precision == "int8")
            )
            found[each.name] = each, self.count
        call.finish(MeasureVariantsReply(tuple(rows)))
        if self.edited:
            assert "changed in the meantime" in self.panel.status.text()
        else:
            self.measured |= found

    # --- what is shown -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        QApplication.processEvents()
        panel, variants, current = self.panel, self.variants, self.document.settings.variant
        for name, (variant, _) in list(self.measured.items()):
            if name and name in variants and variants[name] != variant:
                del self.measured[name]
        table = panel.table
        rows = [table.topLevelItem(row) for row in range(table.topLevelItemCount())]
        assert [row.data(0, NAME) for row in rows] == list(variants)
        for row, (name, variant) in zip(rows, variants.items(), strict=True):
            texts = [row.text(column) for column in range(len(HEADERS))]
            known = self.measured.get(name)
            assert texts[0] == (name or f"{self.document.graph.name} (FP32)")
            assert texts[1] == precision_text(variant)
            assert texts[PSNR] == (f"{known[1]:.2f}" if known is not None else "-"), name
            state = "not measured" if known is None else "emulated" if variant.precision == "int8" else "measured"
            assert texts[STATUS] == (f"current, {state}" if name == current else state)
            assert row.font(0).bold() is (name == current)
        busy, chosen = self.asked is not None, panel.selected
        assert chosen in variants
        assert panel.measure.text() == ("Stop" if busy else "Measure")
        assert panel.add.isEnabled() is not busy
        for button in (panel.duplicate, panel.delete, panel.passes):
            assert button.isEnabled() is (bool(chosen) and not busy)
        assert panel.current.isEnabled() is (chosen != current and not busy)
        on = {a.objectName().rpartition(".")[2] for a in panel.passes.menu().actions() if a.isChecked()}
        assert on == set(variants[chosen].passes)
        hint = panel.status.text().startswith("Add a variant, such as FP16")
        assert not hint or len(variants) == 1


@pytest.fixture
def bench(qtbot: QtBot) -> Bench:
    return Bench(qtbot)


@pytest.mark.parametrize("seed", range(6))
def test_rows_have_the_numbers_of_what_they_are_after_any_steps(bench: Bench, seed: int) -> None:
    dice, log = Random(seed), list[str]()
    bench.check()
    for _ in range(STEPS):
        number, name = dice.randrange(6), dice.choice(list(PASSES))
        acts: dict[str, Callable[[], object]] = {
            "fp16": lambda: bench.add("fp16"),
            "int8": lambda: bench.add("int8"),
            "select": lambda number=number: bench.select(number),
            "select another": lambda number=number: bench.select(number + 1),
            "duplicate": lambda: bench.click("duplicate"),
            "delete": lambda: bench.click("delete"),
            "current": lambda: bench.click("current"),
            "rename": lambda number=number: bench.rename(f"name {number}"),
            "pass": lambda name=name: bench.give_pass(name),
            "edit": lambda number=number: bench.edit(("1x1", "3x3", "5x5")[number % 3]),
            "move": lambda number=number: bench.document.do(lambda g: move_layers(g, {"conv": (16 * number, 0)})),
            "undo": lambda: bench.take_back(bench.document.undo),
            "redo": lambda: bench.take_back(bench.document.redo),
            "measure": bench.measure,
            "measure or stop": bench.measure,
            "answer": lambda: bench.answer(False),
            "answer it": lambda: bench.answer(False),
            "answer again": lambda: bench.answer(False),
            "refuse": lambda: bench.answer(True),
            "other document": lambda: bench.go(1),
            "first document": lambda: bench.go(0),
        }
        what = dice.choice(list(acts))
        log.append(what)
        acts[what]()
        try:
            bench.check()
        except AssertionError as error:
            raise AssertionError(f"after {log}: {error}") from error


# --- what is said and measured again --------------------------------------------------------------------------------


def test_the_message_is_that_of_the_measurement_until_it_is_over_and_then_of_no_other_settings(bench: Bench) -> None:
    panel, document, status = bench.panel, bench.document, bench.panel.status
    events: dict[str, Callable[[], object]] = {
        "the current variant": lambda: document.change_settings(variant="one" if not document.settings.variant else ""),
        "another variant": lambda: document.change_settings(variants=(*document.settings.variants, Variant("more"))),
        "undo": document.undo,
        "other runs": lambda: document.change_settings(iterations=document.settings.iterations + 1),
        "weights": lambda: document.change_settings(random_seed=document.settings.random_seed + 1),
        "the network": lambda: bench.edit("1x1" if document.graph["conv"].params.get("kernel") != "1x1" else "3x3"),
    }
    document.change_settings(variants=(Variant("one", "fp16"),))
    for name, event in events.items():
        panel.measure.click()
        event()
        assert status.text() == "Running the network ...", name
        bench.engine.calls[-1].advance(ProgressEvent(1, 0, 2, "one"))
        event()
        assert status.text() == "Running one (1 of 2) ...", name
        panel.measure.click()
        assert status.text() == "", name
        panel.measure.click()
        bench.engine.calls[-1].fail((Diagnostic("broken", "it is broken"),))
        assert status.text() == "It is broken.", name
        event()
        assert status.text() == "", name
        bench.engine.calls.clear()


def test_only_variants_whose_layers_were_found_are_measured_again_when_they_are_others(
    qtbot: QtBot, bench: Bench
) -> None:
    panel, document = bench.panel, bench.document
    panel._again.setInterval(0)
    found = {name: Variant(name, "fp16", {"conv": "float32"}, reasons={"conv": "a reason"}) for name in ("a", "b")}
    plain = {name: Variant(name, "fp16") for name in ("c", "d")}
    variants = found | plain
    document.change_settings(variants=tuple(variants.values()))
    for others in (("a",), ("c",), ("a", "c"), ("c", "d"), ("d", "b"), tuple(variants)):
        bench.measure()
        bench.answer(False)
        panel._again.stop()
        changed = {name: replace(variants[name], passes=tuple(PASSES)[:1]) for name in others}
        document.change_settings(variants=tuple((variants | changed).values()))
        asked = tuple(changed[name] for name in found if name in others)
        assert panel._again.isActive() is bool(asked), others
        if asked:
            qtbot.waitUntil(lambda: panel._question.busy)
            assert bench.engine.requests(MeasureVariantsRequest)[-1].variants == asked
            bench.asked = asked
            bench.answer(False)
        states = {item.data(0, NAME): item.text(STATUS) for item in map(panel.table.topLevelItem, range(5))}
        assert {name for name, state in states.items() if state.endswith("not measured")} == {*others} - {*found}
        document.undo()
        panel._again.stop()
