"""A session with the profiling panels on runs that nothing measured: what they show after each step is recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from panel_session import PanelSession
from profile_kit import NAMES, RUN, context, profile_of, profiling
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from recorded_state import compare, plain

from app.engine.protocol import PredictReply, TrainingMemoryRow
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import ProfilingController, State
from app.ui.profile.advice_panel import AdvicePanel
from app.ui.profile.operator_table import OperatorTablePanel
from app.ui.profile.run_differences import RunDifferencesPanel
from app.ui.profile.run_logger import RunLoggerPanel
from app.ui.profile.utilization import UtilizationPanel
from app.ui.profile.what_if_panel import WhatIfPanel
from app.ui.widgets import theme
from designer.graph import commands
from designer.graph.graph import Graph
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import OperatorProfile, ProfileRun

__all__ = ["context", "profiling"]
DEVICES = "what_if.machine item"  # a list of its own


class Session(PanelSession):
    """Panels of profiling, whose requests the test answers."""

    def __init__(
        self, qtbot: QtBot, context: Context, profiling: ProfilingController, patch: pytest.MonkeyPatch, *panels: Any
    ) -> None:
        self.profiling = profiling
        self.answers: list[Any] = []
        for name in ("launch", "stop", "launch_random"):
            patch.setattr(profiling, name, lambda name=name: self.said.append(name))
        patch.setattr(profiling, "predict", self._predict)
        patch.setattr(profiling, "stop_prediction", lambda: self.answers.pop()[1]("It was stopped."))
        patch.setattr(
            profiling, "remeasure", lambda two: self.said.append(f"measure {[e.number for e in two]} in turns")
        )
        super().__init__(qtbot, context, *(panel(context) for panel in panels))
        self.lines = [line for line in self.lines if not line.startswith(DEVICES)]

    def _predict(self, request: Any, done: Callable[[Any], None], failed: Callable[[str], None]) -> None:
        self.said.append(f"predict {request}")
        self.answers.append((done, failed))

    def run(self, what: str, run: ProfileRun, **more: Any) -> None:
        self.step(f"run {what}", lambda: self.profiling.add(profile_of(run), **more))

    def state(self, state: State, text: str = "") -> None:
        self.step(f"state {state} {text}", lambda: self.profiling._set_state(state, text))

    def edit(self, name: str, **params: str) -> None:
        root = self.context.root
        self.step(f"edit {name} {params}", lambda: root.do(lambda g: commands.set_params(g, {name: params})))

    def open(self, what: str, document: Document) -> None:
        self.step(what, lambda: self.context.set_document(document))


def slower(factor: float, **more: Any) -> ProfileRun:
    """The run of the kit with the same steps, which take another time."""
    rows = tuple(replace(row, time_ms=row.time_ms * factor) for row in RUN.operators[:2])
    return replace(RUN, operators=(*rows, RUN.operators[3]), time_ms=20.0 * factor, **more)


def test_runs_and_their_operators(
    qtbot: QtBot, context: Context, profiling: ProfilingController, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    panels = (RunLoggerPanel, OperatorTablePanel, RunDifferencesPanel, UtilizationPanel)
    session = Session(qtbot, context, profiling, monkeypatch, *panels)
    session.click("operator_table.empty.action")
    session.click("utilisation.empty.action")
    session.click("run_logger.launch")
    session.state(State.RUNNING, "Measuring ...")
    session.click("run_logger.launch")
    session.run("first", RUN)
    session.state(State.IDLE)
    session.select("operator_table.table.frozen", 1)
    session.select("operator_table.table.frozen", 3, also=True)
    session.step("select a layer", lambda: context.select(("head",)))
    session.step("select a layer without a step", lambda: context.select(("image",)))
    session.type("operator_table.filter", "conv 3x3")
    session.type("operator_table.filter", "")
    session.choose("operator_table.grouping", "By type")
    session.select("operator_table.table.frozen", 0)
    session.choose("operator_table.grouping", "By template")
    session.choose("operator_table.grouping", "No groups")
    session.run(
        "second",
        slower(1.5, engine="onnxruntime", device="cuda", batch=2, counters="no counters"),
        path=tmp_path / "two.json",
    )
    session.select("run_logger.table", 0, also=True)
    session.select("run_differences.table.frozen", 1)
    session.step("light", lambda: theme.apply(QApplication.instance(), "light"))
    session.step("dark", lambda: theme.apply(QApplication.instance(), "dark"))
    session.select("run_logger.table", 0)
    opened = tmp_path / "three.json"
    predicted = slower(
        0.5, source=ValueSource.MODELLED, iterations=0, partial="it was stopped", notes=("a note",), weights="random"
    )
    session.run("third", predicted, path=opened)
    session.select("run_logger.table", 1, also=True)
    session.state(State.FAILED, "The engine has ended.")
    session.state(State.WEIGHTS, "'stem' has no weights.")
    session.click("run_logger.notice.random")
    session.state(State.IDLE)
    session.click("run_logger.remove")
    session.click("run_logger.remove")
    session.number("run_logger.iterations", 30)
    session.step("undo", context.root.undo)
    session.type("run_logger.batches", "1,4")
    session.type("run_logger.layouts", "nhwc")
    session.lines.append(f"grid {profiling.grid}")
    session.step("training", session.find("run_logger.training").click)
    session.lines.append(f"training {profiling.training}")
    (tmp_path / "bad.json").write_text("{")
    session.step("a bad file", lambda: profiling.open_file(tmp_path / "bad.json"))
    first = context.root
    session.open("another document", Document(Graph(), context.registry, parent=context))
    session.open("first document", first)
    compare("profile_runs", [line for line in session.lines if "what_if" not in line])


def slow_run(**times: float) -> ProfileRun:
    shapes: dict[str, Any] = {"inputs": ("N x 16 x 64 x 64",), "outputs": ("N x 16 x 64 x 64",)}
    rows = tuple(
        OperatorProfile((name,), "convolution", time, 0.01, flops=10**9, bytes=1000, bound="compute", **shapes)
        for name, time in times.items()
    )
    total = sum(times.values())
    return replace(RUN, precision="fp32", operators=rows, time_ms=total, spread_ms=0.01, flops=10**9 * len(rows))


def test_advice_and_what_if(
    qtbot: QtBot, context: Context, profiling: ProfilingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.document.do(lambda g: commands.set_params(g, {name: {"kernel": "5x5"} for name in NAMES[:2]}))
    session = Session(qtbot, context, profiling, monkeypatch, AdvicePanel, WhatIfPanel)
    session.click("advice.empty.action")
    session.run("first", slow_run(stem=10.0, body=40.0, head=5.0))
    session.click("advice.1.reveal")
    session.click("advice.0.apply")
    session.run("after the change", slow_run(stem=10.0, body=20.0, head=5.0))
    session.step("undo", context.root.undo)
    session.step("redo", context.root.redo)
    session.edit("head", kernel="7x7")
    session.step("settings", lambda: context.root.change_settings(engine="torch", precision="bf16"))
    session.run("another engine", replace(slow_run(stem=1.0, body=2.0, head=1.0), engine="onnxruntime"))
    session.step("show the first", lambda: profiling.show(profiling.entries[0]))
    first = context.root
    session.click("what_if.predict")
    session.state(State.RUNNING)
    session.state(State.IDLE)
    session.click("what_if.predict")
    session.type("what_if.size", "64xy")
    session.click("what_if.predict")
    session.type("what_if.size", "64x48")
    session.choose("what_if.precision", "FP16")
    session.choose("what_if.optimizer", "SGD with momentum")
    session.number("what_if.batch", 8)
    session.click("what_if.predict")
    predicted = replace(
        RUN, precision="fp16", batch=8, size="16x8", source=ValueSource.MODELLED, notes=("first", "second")
    )
    rows = (TrainingMemoryRow("body", 1, 2, 4, 8), TrainingMemoryRow("stem", 1024, 2048, 4096, 8192))
    reply = PredictReply(profile_of(predicted), rows)
    session.choose("what_if.machine", "T4")
    session.step("answer", lambda: session.answers.pop()[0](reply))
    session.select("what_if.memory", 1)
    session.edit("head", kernel="3x3")
    session.click("what_if.predict")
    session.edit("head", kernel="5x5")
    session.step("answer", lambda: session.answers.pop()[0](reply))
    session.click("what_if.predict")
    session.step("refuse", lambda: session.answers.pop()[1]("It failed."))
    session.edit("head", kernel="3x3")
    session.click("what_if.predict")
    session.step("refuse", lambda: session.answers.pop()[1]("It failed."))
    session.open("another document", Document(Graph(), context.registry, parent=context))
    session.open("first document", first)
    session.step("remove all runs", lambda: [profiling.remove(entry) for entry in list(profiling.entries)])
    compare("profile_advice", [plain(line) for line in session.lines])
