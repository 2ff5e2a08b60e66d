"""Network Health after any steps: problems, slider, buttons and sentences are compared with a model."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from random_steps import play
from training_kit import make_run
from window_kit import shown

from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.run_health import run_health_of
from app.ui.engine.time_machine import time_machine_of
from app.ui.engine.training import TrainingController, training_of
from app.ui.train.health_panel import HealthPanel
from app.ui.widgets import theme
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.training.health import Health, Problem
from designer.training.watched_run import WatchedRun

TITLES = {"dead": "dead units", "saturated": "saturated units"}
METRIC_NAMES = ("problems", "gradient", "update", "activation", "dead", "saturated")
METRIC_TITLES = (
    "Problems only", "Gradient norm", "Update-to-weight ratio", "Mean absolute activation", "Share of dead units",
    "Share of saturated values",
)  # fmt: skip


class Panel:
    def __init__(self, qtbot: QtBot, patch: pytest.MonkeyPatch, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        patch.setattr(TrainingController, "look", lambda _self: None)
        context = Context(default_registry())
        layers = [
            Layer("image", "input", params={"dims": "16x8x3"}),
            Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "4"}),
            Layer("output", "output", inputs=(Source("conv"),)),
        ]
        graph = Graph(layers)
        context.set_document(Document(graph, context.registry, parent=context))
        patch.setattr(analysis_of(context), "show_weights", lambda _path: None)
        self.machine, self.training, self.health = (
            time_machine_of(context),
            training_of(context),
            run_health_of(context),
        )
        patch.setattr(self.machine._job, "start", lambda _work: None)
        self.forked: list[tuple[str, int]] = []
        patch.setattr(self.training, "fork", lambda run, step: self.forked.append((run.snapshot.title, step)))
        self.revealed: list[str] = []
        context.reveal_requested.connect(self.revealed.append)
        self.said: list[tuple[str, str]] = []
        context.message.connect(lambda level, text: self.said.append((level, text)))
        self.runs = []
        for name in "abc":
            self.runs.append(WatchedRun(make_run(folder, name, settings={}, steps=1)))
            self.runs[-1].read()
        self.training._set_runs(list(self.runs))
        self.panel = shown(qtbot, HealthPanel(context), 500, 600)
        self.run: WatchedRun | None = None
        self.step: int | None = None  # that the analysis shows
        self.value = 0  # of the slider
        self.metric = "problems"
        self.seen_list: list[str] = []
        self.visible_list = False

    # --- steps -------------------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Where the slider is after news."""
        if self.run is not None and self.step is not None:
            self.value = self.step
        elif self.run is not None and self.run.snapshot.frames:
            self.value = self.run.snapshot.frames[-1]

    def choose(self) -> None:
        self.run = self.random.choice((None, *self.runs, *self.runs))
        if self.training.current is not self.run:
            self.step = None
        self.training.choose((self.run,) if self.run is not None else ())
        self.follow()

    def goes_on(self) -> None:
        """Weights of some steps were kept, and the health was measured at others."""
        run = self.random.choice((self.run, *self.runs))
        if run is None:
            return
        pick = self.random.choice
        frames = sorted(self.random.sample(range(3, 40), pick((0, 1, 3, 5))))
        measured = []
        for step in sorted(self.random.sample(range(2, 40), pick((0, 1, 3, 5)))):
            names = self.random.sample(["image", "conv", "output"], pick((0, 1, 1, 2)))
            problems = tuple(Problem(name, pick(("dead", "saturated")), pick((1, step))) for name in names)
            measured.append(Health(step, {}, problems))
        run.snapshot = replace(run.snapshot, frames=tuple(frames), health=tuple(measured))
        self.training.updated.emit()
        self.follow()

    def frames_only(self) -> None:
        """A run whose health is not measured, or whose weights are not kept."""
        if self.run is not None:
            empty: dict[str, Any] = self.random.choice(({"health": ()}, {"frames": ()}))
            self.run.snapshot = replace(self.run.snapshot, **empty)
            self.training.updated.emit()
            self.follow()

    def slide(self) -> None:
        panel = self.panel
        if not panel.step.isVisible() or not panel.step.isEnabled():
            return
        key = self.random.choice((Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_PageDown))
        assert self.run is not None
        top = self.run.snapshot.frames[-1]
        page = max(1, top // 10)
        moved = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_PageDown: -page,
            Qt.Key.Key_Home: -top,
        }[key]
        place = min(self.value, top)  # a step after the last one is beyond the slider
        value = min(max(place + moved, 0), top)
        before = self.machine.step
        QTest.keyClick(panel.step.slider, key)
        if value != place:
            self.step = self.value = value
        assert self.machine.step == (self.step if value != place else before)

    def leave(self) -> None:
        self.panel.leave.click()
        self.step = None
        self.follow()

    def fork(self) -> None:
        if self.panel.fork.isEnabled() and self.run is not None:
            self.panel.fork.click()
            assert self.forked.pop() == (self.run.snapshot.title, self.recorded())
        assert self.forked == []

    def work(self) -> None:
        """Another run is being started, or has been."""
        self.training._starting = not self.training._starting
        self.training.updated.emit()
        self.follow()

    def choose_metric(self) -> None:
        row = self.random.randrange(len(METRIC_NAMES))
        self.panel.shown_metric.setCurrentIndex(row)
        self.metric = METRIC_NAMES[row]

    def hide(self) -> None:
        self.panel.setVisible(not self.panel.isVisible())

    def theme(self) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        theme.apply(app, self.random.choice(("light", "dark")))

    def problem(self) -> None:
        table = self.panel.list
        if table.isVisible() and table.count():
            row = self.random.randrange(table.count())
            layer = self.seen_list[row].split(":")[0]
            QApplication.processEvents()
            if self.random.random() < 0.5:
                table.scrollToItem(table.item(row))
                place = table.visualItemRect(table.item(row)).center()
                QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
            else:
                table.setCurrentRow(row)
                QTest.keyClick(table, Qt.Key.Key_Return)
            assert self.revealed == [layer]
            self.revealed.clear()

    def fails(self) -> None:
        """The weights of the step cannot be read: the analysis shows those of the document."""
        self.machine._wanted = None
        self.machine._on_failed((Diagnostic("broken", "the trail is broken"),))
        assert self.said == [("error", "The trail is broken.")]
        self.said.clear()
        if self.step is not None:
            self.step = None
            self.follow()

    # --- what is shown -------------------------------------------------------------------------------------------------

    def recorded(self) -> int:
        assert self.run is not None
        frames = self.run.snapshot.frames
        before = [frame for frame in frames if frame <= self.value]
        return before[-1] if before else frames[0] if frames else self.value

    def check(self) -> None:
        panel, run = self.panel, self.run
        assert self.health.metric == (self.metric if panel.isVisible() else "")
        box = panel.shown_metric
        assert tuple(box.itemText(row) for row in range(box.count())) == METRIC_TITLES
        if run is None:
            assert panel._stack.currentIndex() == 0
            return
        frames = run.snapshot.frames
        measured = [each for each in run.snapshot.health if self.step is None or each.step <= self.step]
        health = measured[-1] if measured else None
        assert panel._stack.currentIndex() == int(health is not None or bool(frames))
        assert panel.step.isEnabled() is bool(frames)
        assert (panel.step._low, panel.step._high) == (0, frames[-1] if frames else 1)
        assert panel.step.value == self.value
        assert panel.leave.isEnabled() is (self.step is not None)
        assert panel.fork.isEnabled() is (bool(frames) and not self.training.busy)
        if self.step is None:
            said = "The analysis shows the weights of the document. Move the slider to go to a step."
        else:
            said = f"The analysis shows step {self.recorded()} of the run."
        assert panel.where.text() == said
        problems = health.problems if health is not None else ()
        self.seen_list = [f"{each.layer}: {TITLES[each.kind]} since step {each.since}" for each in problems]
        items = [panel.list.item(row) for row in range(panel.list.count())]
        assert [item.text() for item in items] == self.seen_list
        alert = theme.icon("alert", "error").cacheKey()
        assert all(item.icon().cacheKey() == alert for item in items)
        assert panel.list.isHidden() is not bool(problems)
        if health is None:
            summary = ("The health of the layers was not measured up to this step.", "info")
        else:
            summary = ("" if problems else "No problems at this step.", "positive")
        assert (panel.summary.text(), panel.summary._role) == summary
        assert panel.summary.isHidden() is not bool(summary[0])


@pytest.mark.parametrize("seed", range(5))
def test_the_panel_shows_the_health_of_the_run_at_the_step_that_is_shown(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int
) -> None:
    made = Panel(qtbot, monkeypatch, tmp_path, seed)
    steps: list[Callable[[], None]] = [
        made.choose, made.goes_on, made.goes_on, made.frames_only, made.slide, made.slide, made.slide, made.leave,
        made.fork, made.work, made.choose_metric, made.hide, made.theme, made.problem, made.problem, made.fails,
    ]  # fmt: skip
    play(made, steps, 120)
    theme.apply(QApplication.instance(), "system")
