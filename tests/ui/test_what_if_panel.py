"""What If in random sequences of requests, answers, edits and documents, compared with a model; the engine is not asked."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from profile_kit import NAMES, RUN, context, profile_of, profiling
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from window_kit import shown

from app.engine.protocol import PredictReply, PredictRequest, TrainingMemoryRow
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import ProfilingController, State, profiling_of
from app.ui.profile.what_if_panel import WhatIfPanel
from app.ui.widgets import theme
from designer.graph import commands
from designer.graph.graph import Graph
from designer.operators.registry import default_registry
from designer.profiling.devices import DEVICES
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import ProfileRun
from designer.units import binary, digits, quantity

__all__ = ["context", "profiling"]
LEFT, ENTER = Qt.MouseButton.LeftButton, Qt.Key.Key_Return
SIZES = ("", "64x48", " 32x16 ", "8x4,64x48", "64xy", "0x5", "64")
GOOD = {"": None, "64x48": (64, 48), " 32x16 ": (32, 16), "8x4,64x48": (8, 4)}


class Asked:
    """The panel, the requests that it makes, and what it must show."""

    def __init__(self, qtbot: QtBot, context: Context, profiling: ProfilingController, patch: Any, seed: int) -> None:
        self.context, self.profiling, self.random = context, profiling, random.Random(seed)
        self.requests: list[PredictRequest] = []
        self.waiting: list[tuple[Callable[[Any], None], Callable[[str], None]]] = []
        patch.setattr(profiling, "predict", self._predict)
        patch.setattr(profiling, "stop_prediction", lambda: self.waiting.pop()[1]("The engine was stopped."))
        self.panel = shown(qtbot, WhatIfPanel(context), 400, 600)
        self.documents = [
            context.root,
            Document(context.root.graph.copy(), context.registry, parent=context),
        ]
        self.predicting = self.edited = False
        self.status = ""
        self.result: list[str] = []
        self.memory: list[list[str]] | None = None
        self.machine = ""

    def _predict(self, request: Any, done: Callable[[Any], None], failed: Callable[[str], None]) -> None:
        self.requests.append(request)
        self.waiting.append((done, failed))

    # --- steps -----------------------------------------------------------------------------------------------------

    def click(self) -> None:
        panel = self.panel
        number, size = len(self.requests), panel.size_.text()
        expected = PredictRequest(
            panel.machine.currentData(),
            panel.precision.currentData(),
            panel.batch.value(),
            GOOD.get(size),
            panel.optimizer.currentData(),
        )
        can = not self.profiling.running
        assert panel.predict.isEnabled() is can
        QTest.mouseClick(panel.predict, LEFT)
        if not can:
            assert len(self.requests) == number
        elif self.predicting:
            self.predicting, self.status = False, "note: Stopped."
        elif size in GOOD:
            assert self.requests[number:] == [expected]
            self.predicting, self.edited, self.status = True, False, "note: Predicting …"
            self.machine = panel.machine.currentText()
        else:
            assert len(self.requests) == number
            self.status = panel.status._text.accessibleName()
            assert self.status.startswith("error: ")
            assert size in self.status

    def answer(self) -> None:
        if not self.waiting:
            return
        pick = self.random.choice
        run = replace(
            RUN,
            source=ValueSource.MODELLED,
            precision=pick(("fp16", "bf16")),
            batch=pick((1, 8)),
            size=pick(("64x48", "16x8")),
            time_ms=pick((5.0, 20.0)),
            notes=pick(((), ("one",), ("one", "two"))),
        )
        sizes = (1, 3, 1024, 5000, 2**20)
        rows = tuple(
            TrainingMemoryRow(name, *(pick(sizes) for _ in range(4)))
            for name in self.random.sample(NAMES, pick((0, 1, 4)))
        )
        network = pick(("net", "net", "other"))
        measured = self.measured(network, run.size)
        count = len(self.profiling.entries)
        self.waiting.pop()[0](PredictReply(profile_of(run, network=network), rows))
        self.predicting = False
        assert [entry.run for entry in self.profiling.entries[count:]] == [run]
        if self.edited:
            self.status = "warning: The network was edited in the meantime. Predict again."
            return
        self.status = ""
        time = quantity((run.time_ms or 0.0) / 1e3, "s")
        first = f"{self.machine}, {run.precision.upper()}, batch {run.batch}, {run.size}: {time} (modelled)"
        totals = {row.layer: row.weights + row.gradients + row.optimizer + row.activations for row in rows}
        ordered = sorted(rows, key=lambda row: -totals[row.layer])
        self.result = [
            first,
            *measured(run),
            f"memory of a training step: {binary(sum(totals.values()))} (modelled)",
            *(f"note: {note}" for note in run.notes),
        ]
        self.memory = [
            [
                row.layer,
                *map(binary, (totals[row.layer], row.weights, row.gradients, row.optimizer, row.activations)),
            ]
            for row in ordered
        ]

    def measured(self, network: str, size: str) -> Callable[[ProfileRun], list[str]]:
        """The line that compares with the shown run, or else with the last one that was measured at this size."""
        fitting = [
            entry
            for entry in self.profiling.entries
            if entry.profile.network == network
            and entry.run.size == size
            and entry.run.source is ValueSource.MEASURED
            and entry.run.time_ms
        ]
        shown_run = self.profiling.current
        found = shown_run if shown_run in fitting else fitting[-1] if fitting else None

        def line(run: ProfileRun) -> list[str]:
            if found is None:
                return []
            assert run.time_ms
            assert found.run.time_ms
            factor = (run.batch / run.time_ms) / (found.run.batch / found.run.time_ms)
            return [f"{digits(factor)} x the images per second of run #{found.number} (measured)"]

        return line

    def refuse(self) -> None:
        if self.waiting:
            self.waiting.pop()[1]("It failed.")
            self.predicting, self.status = False, "error: It failed."

    def edit(self) -> None:
        layer, kernel = self.random.choice(NAMES), self.random.choice(("1x1", "3x3", "5x5", "7x7"))
        changes = self.context.root.graph[layer].params.get("kernel") != kernel
        self.context.root.do(lambda g: commands.set_params(g, {layer: {"kernel": kernel}}))
        if changes:
            self.edited, self.result, self.memory = True, [], None
            if not self.predicting:
                self.status = ""

    def settings(self) -> None:
        """Options of the engine are not what a prediction is of."""
        self.context.root.change_settings(engine=self.random.choice(("torch", "onnxruntime")))

    def type(self) -> None:
        text = self.random.choice(SIZES)
        if text != self.panel.size_.text():
            self.panel.size_.setText(text)
            if not self.predicting:
                self.status = ""

    def choose(self) -> None:
        panel = self.panel
        for box in (panel.machine, panel.precision, panel.optimizer):
            box.setCurrentIndex(self.random.randrange(box.count()))
        panel.batch.setValue(self.random.choice((1, 8, 4096)))

    def document(self) -> None:
        other = self.random.choice(self.documents)
        if other is not self.context.root:
            self.waiting.clear()  # the controller drops the prediction
            self.predicting, self.status, self.result, self.memory = False, "", [], None
            self.context.set_document(other)

    def run(self) -> None:
        pick = self.random.choice
        run = replace(
            RUN,
            batch=pick((1, 2)),
            size=pick(("64x48", "16x8")),
            time_ms=pick((10.0, 40.0, None, 0.0)),
            source=pick((ValueSource.MEASURED, ValueSource.MEASURED, ValueSource.MODELLED)),
        )
        self.profiling.add(profile_of(run, network=pick(("net", "net", "other"))), pick((None, Path("a.json"))))
        self.profiling.show(pick(self.profiling.entries))

    def state(self) -> None:
        self.profiling._set_state(self.random.choice((State.RUNNING, State.IDLE, State.IDLE)), "")

    # --- what is shown ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        panel = self.panel
        assert panel.predict.text() == ("Stop" if self.predicting else "Predict")
        icon = theme.icon("stop" if self.predicting else "gauge").pixmap(16, 16).toImage()
        assert panel.predict.icon().pixmap(16, 16).toImage() == icon
        assert panel.predict.isEnabled() is not self.profiling.running
        assert panel.status._text.accessibleName() == self.status
        assert panel.status.isVisible() is bool(self.status)
        assert panel.result.text() == "\n".join(self.result)
        assert panel.memory.isVisible() is (self.memory is not None)
        items = [panel.memory.topLevelItem(row) for row in range(panel.memory.topLevelItemCount())]
        rows = [[item.text(column) for column in range(6)] for item in items if item is not None]
        assert rows == (self.memory or [])
        for item in items:
            assert item is not None
            for column in range(6):
                right = bool(item.textAlignment(column) & Qt.AlignmentFlag.AlignRight)
                assert right is (column > 0)


@pytest.mark.parametrize("seed", range(3))
def test_the_panel_follows_requests_answers_edits_and_documents(
    qtbot: QtBot, context: Context, profiling: ProfilingController, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    asked = Asked(qtbot, context, profiling, monkeypatch, seed)
    steps = [asked.click] * 4 + [asked.answer] * 4 + [asked.type] * 2
    steps += [asked.refuse, asked.edit, asked.settings, asked.choose, asked.document, asked.run, asked.state]
    asked.check()
    for _ in range(120):
        asked.random.choice(steps)()
        asked.check()
    assert asked.requests


@pytest.mark.parametrize(("shown_run", "compared"), [(1, 1), (2, 2), (3, 2), (4, 2), (5, 2), (6, 2), (7, 2), (None, 2)])
def test_a_prediction_is_compared_with_the_shown_run_or_else_the_latest_measured_one(
    qtbot: QtBot, context: Context, profiling: ProfilingController, shown_run: int | None, compared: int
) -> None:
    panel = shown(qtbot, WhatIfPanel(context), 400, 600)
    modelled = replace(RUN, source=ValueSource.MODELLED)
    for run in (RUN, RUN, modelled, replace(RUN, size="8x8"), replace(RUN, time_ms=None), replace(RUN, time_ms=0.0)):
        profiling.add(profile_of(run))
    profiling.add(profile_of(RUN, network="other"))
    profiling.show(profiling.entries[shown_run - 1] if shown_run is not None else None)
    found = panel._measured("net", RUN.size)
    assert found is not None
    assert found.number == compared
    assert panel._measured("none", RUN.size) is None


def test_the_form_offers_every_machine_precision_and_optimizer(qtbot: QtBot, context: Context) -> None:
    panel = shown(qtbot, WhatIfPanel(context), 400, 600)

    def entries(box: Any) -> list[tuple[str, str]]:
        return [(box.itemText(row), box.itemData(row)) for row in range(box.count())]

    assert entries(panel.machine) == [("This machine", ""), *((device.name, device.name) for device in DEVICES)]
    tips = [panel.machine.itemData(row, Qt.ItemDataRole.ToolTipRole) for row in range(panel.machine.count())]
    assert tips == [None, *(device.source for device in DEVICES)]
    assert entries(panel.precision) == [("FP32", "fp32"), ("FP16", "fp16"), ("BF16", "bf16")]
    assert entries(panel.optimizer) == [
        ("Adam", "adam"),
        ("AdamW", "adamw"),
        ("SGD", "sgd"),
        ("SGD with momentum", "sgd with momentum"),
        ("RMSprop", "rmsprop"),
    ]
    assert (panel.batch.minimum(), panel.batch.maximum(), panel.batch.value()) == (1, 4096, 1)


def test_a_row_of_the_memory_shows_its_layer_on_the_canvas(
    qtbot: QtBot, context: Context, profiling: ProfilingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(qtbot, context, profiling, monkeypatch, 0)
    asked.click()
    rows = (TrainingMemoryRow("body", 1, 2, 4, 8), TrainingMemoryRow("stem", 1024, 2, 4, 8))
    asked.waiting.pop()[0](PredictReply(profile_of(replace(RUN, source=ValueSource.MODELLED)), rows))
    revealed: list[str] = []
    context.reveal_requested.connect(revealed.append)
    table = asked.panel.memory
    for row in (1, 0):
        item = table.topLevelItem(row)
        assert item is not None
        QTest.mouseClick(table.viewport(), LEFT, pos=table.visualItemRect(item).center())
        QTest.keyClick(table, ENTER)
    assert revealed == ["body", "body", "stem", "stem"]


def test_nothing_is_predicted_without_a_document(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context(default_registry())
    panel = shown(qtbot, WhatIfPanel(context), 400, 600)
    context.setParent(panel)
    monkeypatch.setattr(profiling_of(context), "predict", lambda *_: pytest.fail("asked"))
    assert not panel.predict.isEnabled()
    panel.ask()
    panel._reveal("stem")
    assert (panel.predict.text(), panel.status.text()) == ("Predict", "")
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert panel.predict.isEnabled()
