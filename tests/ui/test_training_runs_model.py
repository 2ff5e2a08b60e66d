"""Training Runs and the progress of a run in random sequences of runs, clicks and states, compared with a model."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytest.importorskip("pyqtgraph")
pytestmark = pytest.mark.gui

from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot
from training_kit import Runs, make_run, project_context
from window_kit import shown

from app.ui.engine.context import Context
from app.ui.train import runs_panel
from app.ui.train.curve_plot import Curve
from app.ui.train.run_progress import RunProgress, metric_title
from app.ui.train.runs_model import COLUMNS
from app.ui.train.runs_panel import TrainingRunsPanel
from app.ui.widgets import theme
from app.ui.widgets.sentences import sentence
from designer.training.run_folder import Notes
from designer.training.sweep import Axis, Sweep, trials
from designer.training.watched_run import RunSnapshot, RunState, WatchedRun
from designer.training.watched_sweep import SweepSnapshot
from designer.units import binary, digits

ROLE = Qt.ItemDataRole
CTRL, NONE = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.NoModifier
TITLES = {**{state: str(state) for state in RunState}, RunState.ENDED: "interrupted", RunState.MISSING: "deleted"}
FIRST = ["loss", "validation.psnr", "validation.ssim", "learning_rate", "throughput", "memory"]
METRICS: tuple[dict[str, Any], ...] = (  # of each run, besides its loss of 0.5
    {},
    {"learning_rate": 0.001234, "throughput": 100.0, "memory": 3 << 20, "epoch": 1, "time": 2.0},
    {"validation": {"psnr": 31.5, "ssim": 0.9}, "losses": {"l1_part": 0.25}},
    {"loss": 0.0, "validation": {"loss": 0.125, "iou": 0.0}, "throughput": 0.0},
    {"validation": {"accuracy": 0.75, "noisy_psnr": 20.0, "of_mine": 1.0}},
)


@pytest.fixture
def context(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Context:
    theme.apply(qapp, "dark")
    return project_context(tmp_path)


def seconds(value: float) -> str:
    """A duration, in seconds only below a minute, in hours and minutes from an hour on."""
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


class Trained:
    def __init__(self, qtbot: QtBot, context: Context, patch: pytest.MonkeyPatch, tmp_path: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.kit = Runs(qtbot, context)
        self.training = self.kit.training
        self.said: list[str] = []
        for name in (
            "send",
            "resume",
            "use_weights",
            "delete",
            "delete_sweep",
            "write_notes",
            "stop_sweep",
            "continue_sweep",
        ):
            patch.setattr(
                self.training, name, lambda *words, name=name: self.said.append(f"{name} {self.words(words)}")
            )
        self.training.clone_requested.connect(lambda run: self.said.append(f"clone {run.snapshot.title}"))
        patch.setattr(runs_panel, "ask_steps", lambda _panel, shot: 77 if shot.step % 2 else 0)
        patch.setattr(runs_panel, "ask_notes", lambda _panel, shot: Notes("", "") if shot.step % 2 else None)
        self.answer = QMessageBox.StandardButton.Yes
        patch.setattr(QMessageBox, "question", self.question)
        self.panel = shown(qtbot, TrainingRunsPanel(context), 1000, 600)
        self.owner = QWidget()
        self.progress = RunProgress(self.training)  # hides itself
        QVBoxLayout(self.owner).addWidget(self.progress)
        shown(qtbot, self.owner, 400, 400)
        plan = tuple(trials([Axis.parse("lr=0.1,0.2,0.3")], 0))
        self.sweeps = [Sweep(tmp_path / name, plan, {}) for name in ("first", "second")]
        self.known = [self.made(Path(self.kit.project), f"run{number}", number) for number in range(5)]
        self.inside = {
            sweep.folder: [
                self.made(sweep.project(trial), trial.name, number, dict(trial.values))
                for number, trial in enumerate(sweep.trials)
            ]
            for sweep in self.sweeps
        }
        self.folded: set[Path] = set()
        self.states = {sweep.folder: RunState.STOPPED for sweep in self.sweeps}

    def words(self, words: tuple[Any, ...]) -> str:
        shots = (each.snapshot if isinstance(each, WatchedRun) else each for each in words)
        return ", ".join(
            each.title if isinstance(each, RunSnapshot | SweepSnapshot | Notes) else str(each) for each in shots
        )

    def question(self, _parent: object, title: str, text: str) -> QMessageBox.StandardButton:
        self.said.append(f"{title}: {text}")
        return self.answer

    def made(self, project: Path, name: str, number: int, settings: dict[str, Any] | None = None) -> WatchedRun:
        own = {"lr": 0.5 * number, "noise": "25", "patch_size": 64} if number % 3 else {"lr": 0.5, "amp": False}
        folder = make_run(project, name, settings=settings or own, steps=30)
        line = {"step": 31, "loss": 0.5, "elapsed": 62.0, **METRICS[number]}
        with folder.metrics.open("a") as stream:
            stream.write(json.dumps({"step": 30, "loss": 1.0, "elapsed": 60.0}) + "\n")
            stream.write(json.dumps(line) + "\n")
        if number % 2:
            (folder.path / "checkpoints" / "best").mkdir(parents=True)
            (folder.path / "checkpoints" / "last.pt").touch()
        run = WatchedRun(folder)
        run.read()
        return run

    # --- steps -----------------------------------------------------------------------------------------------------

    def set_runs(self) -> None:
        pick = self.random.choice
        runs = self.random.sample(self.known, self.random.randrange(len(self.known) + 1))
        sweeps = {}
        for sweep in self.random.sample(self.sweeps, self.random.randrange(3)):
            sweeps[sweep.folder] = SweepSnapshot(sweep, self.states[sweep.folder])
            runs += self.inside[sweep.folder][: pick((0, 1, 3))]
        self.training._set_runs(runs, sweeps)

    def go_on(self) -> None:
        """Runs and sweeps have other states."""
        pick = self.random.choice
        for run in self.training.runs:
            if self.random.random() < 0.5:
                continue
            run.snapshot = replace(
                run.snapshot,
                state=pick([*RunState, *[RunState.RUNNING] * 3]),
                step=pick((0, 31, 40)),
                total_steps=pick((0, 40, 4000)),
                message=pick(("", "loss is not finite", "<b> of the user")),
                notes=pick((Notes("", ""), Notes("wide one", "first line\nsecond <i>"))),
                host=pick(("", "", "elsewhere")),
                is_unreachable=pick((False, False, False, True)),
            )
        for folder, each in self.training.sweeps.items():
            self.states[folder] = pick((RunState.RUNNING, RunState.STOPPED, RunState.FINISHED))
            self.training.sweeps[folder] = replace(each, state=self.states[folder])
        model = self.panel.model
        places = [model.index(row, 0) for row in range(model.rowCount())]
        places += [model.index(row, 0, top) for top in places for row in range(model.rowCount(top))]
        if self.differing() == list(model.differing):
            with self.changed() as ranges:
                self.training.updated.emit()
            last = model.columnCount() - 1
            for place in places:  # every cell is painted again
                assert any(
                    first.parent() == place.parent()
                    and first.row() <= place.row() <= end.row()
                    and end.column() == last
                    for first, end in ranges
                )
        else:
            self.training.updated.emit()

    @contextmanager
    def changed(self) -> Iterator[list[tuple[Any, Any]]]:
        """The cells that are said to have changed."""
        found: list[tuple[Any, Any]] = []

        def note(first: Any, last: Any, *_: Any) -> None:
            found.append((first, last))

        self.panel.model.dataChanged.connect(note)
        yield found
        self.panel.model.dataChanged.disconnect(note)

    def settings(self) -> None:
        if self.training.runs:
            run = self.random.choice(self.training.runs)
            made = self.random.choice(({}, {"lr": 0.25, "batch_size": 8}, dict(run.folder.settings())))
            run.snapshot = replace(run.snapshot, settings=made)
            self.training.updated.emit()

    def click(self) -> None:
        model, table = self.panel.model, self.panel.table
        places = [model.index(row, 0) for row in range(model.rowCount())]
        places += [model.index(row, 0, top) for top in places for row in range(model.rowCount(top))]
        if not places:
            return
        index = self.random.choice(places)
        item = model.item(index)
        members = [item] if isinstance(item, WatchedRun) else item.runs
        table.scrollTo(index)
        if index.parent().isValid():
            self.folded.discard(model.item(index.parent()).folder)  # it is opened to show the trial
        also = self.random.random() < 0.4
        before = self.training.chosen
        rows = {
            model.item(each)
            for each in table.selectionModel().selectedRows()
            if isinstance(model.item(each), WatchedRun)
        }
        QTest.mouseClick(
            table.viewport(), Qt.MouseButton.LeftButton, CTRL if also else NONE, table.visualRect(index).center()
        )
        if not also:
            assert list(self.training.chosen) == [run for run in model.runs() if run in members]
        elif isinstance(item, WatchedRun):
            assert rows == set(before)
            assert set(self.training.chosen) == rows ^ {item}  # also of a selected sweep
        else:
            assert set(self.training.chosen) >= set(before) - set(members)
        assert list(self.training.chosen) == [run for run in model.runs() if run in self.training.chosen]

    def fold(self) -> None:
        for row in self.panel.model.sweeps():
            opened = self.random.random() < 0.5 or not row.runs
            self.panel.table.setExpanded(self.panel.model.index_of(row), opened)
            (self.folded.discard if opened else self.folded.add)(row.folder)

    def choose(self) -> None:
        self.training.choose(
            self.random.sample(self.training.runs, min(len(self.training.runs), self.random.randrange(3)))
        )

    def metric(self) -> None:
        box = self.panel.metric_box
        if box.count():
            box.setCurrentIndex(self.random.randrange(box.count()))
            box.activated.emit(box.currentIndex())

    def look(self) -> None:
        self.panel.smoothing.setCurrentIndex(self.random.randrange(3))
        self.panel.logarithmic.setChecked(self.random.random() < 0.3)

    def busy(self) -> None:
        self.training._starting = self.random.random() < 0.5
        self.training.updated.emit()

    def press(self) -> None:
        """A button of the list does what it says with the chosen runs."""
        buttons = [name for name, each in self.panel._buttons.items() if each.isEnabled() and not each.isHidden()]
        if not buttons:
            return
        name = self.random.choice(buttons)
        self.answer = self.random.choice((QMessageBox.StandardButton.Yes, QMessageBox.StandardButton.No))
        chosen, sweep, group = list(self.training.chosen), self.sweep(), self.group()
        self.said.clear()
        self.panel._buttons[name].click()
        titles = [run.snapshot.title for run in chosen]
        yes = self.answer is QMessageBox.StandardButton.Yes
        odd = bool(chosen) and bool(chosen[0].snapshot.step % 2)
        if name == "extend":
            expected = [f"resume {titles[0]}, {{'steps': '77'}}"] if odd else []
        elif name == "clone":
            expected = [f"clone {titles[0]}"]
        elif name == "notes":
            expected = [f"write_notes {titles[0]}, "] if odd else []
        elif name == "sweep":
            assert sweep is not None
            expected = [f"{'stop' if sweep.state.trains else 'continue'}_sweep {sweep.title}"]
        elif group is not None:
            assert sweep is not None
            expected = [f"Delete Runs: Delete {sweep.title} with all checkpoints and images?"]
            expected += [f"delete_sweep {sweep.title}"] if yes else []
        else:
            expected = [f"Delete Runs: Delete {', '.join(titles)} with all checkpoints and images?"]
            expected += [f"delete {title}" for title in titles] if yes else []
        assert self.said == expected

    def command(self) -> None:
        """A button of the progress does what it says with the shown run."""
        names = ("pause", "stop", "resume", "use")
        buttons = [
            name
            for name in names
            if getattr(self.progress, name).isVisible() and getattr(self.progress, name).isEnabled()
        ]
        if not buttons:
            return
        name = self.random.choice(buttons)
        run = self.training.chosen[0]
        self.said.clear()
        getattr(self.progress, name).click()
        title = run.snapshot.title
        paused = run.snapshot.state is RunState.PAUSED
        expected = {
            "pause": f"send {title}, {'resume' if paused else 'pause'}",
            "stop": f"send {title}, stop",
            "resume": f"resume {title}",
            "use": f"use_weights {title}",
        }
        assert self.said == [expected[name]]

    # --- the model -------------------------------------------------------------------------------------------------

    def group(self) -> SweepSnapshot | None:
        """The sweep whose row is selected and whose trials are all that is chosen."""
        folder = self.panel._group
        if folder is None:
            return None
        sweep = self.training.sweeps[folder]
        assert self.trials_of(sweep) == list(self.training.chosen)
        return sweep

    def sweep(self) -> SweepSnapshot | None:
        if self.training.chosen:
            return self.training.sweeps.get(self.training.chosen[0].folder.project.parent)
        return self.group()

    def trials_of(self, sweep: SweepSnapshot) -> list[WatchedRun]:
        return [run for run in self.training.runs if run.folder.project.parent == sweep.folder]

    def best(self, shot: RunSnapshot) -> tuple[float, str] | None:
        """How good the best validation is, and its text."""
        units = {"psnr": "dB", "iou": "IoU", "accuracy": "accuracy", "loss": "loss"}
        for name, unit in units.items():
            values = shot.curves.points(f"validation.{name}")[1]
            if len(values):
                value = float(min(values) if name == "loss" else max(values))
                return (-value if name == "loss" else value), f"{digits(value)} {unit}"
        return None

    def state(self, shot: RunSnapshot) -> str:
        return TITLES[shot.state] + (f" on {shot.host}" if shot.host else "")

    def cells(self, run: WatchedRun) -> list[str]:
        shot = run.snapshot
        last = shot.curves.last("loss")
        best = self.best(shot)
        left = "-"
        if shot.seconds_left is not None:
            left = seconds(shot.seconds_left)
        cells = [
            shot.notes.title or shot.folder.name,
            self.state(shot),
            str(shot.step),
            left,
            "-" if last is None else digits(last),
            best[1] if best else "-",
            shot.notes.text,
        ]
        values = {**shot.settings, **shot.changed}
        return [*cells, *(str(values[name]) if values.get(name) is not None else "-" for name in self.differing())]

    def differing(self) -> list[str]:
        settings = [
            {**run.snapshot.settings, **run.snapshot.changed} for run in self.training.chosen if run.snapshot.settings
        ]
        names = dict.fromkeys(name for each in settings for name in each)
        return [name for name in names if len({str(each.get(name)) for each in settings}) > 1]

    def sweep_cells(self, sweep: SweepSnapshot) -> list[str]:
        runs = self.trials_of(sweep)
        done = len([run for run in runs if run.snapshot.state is RunState.FINISHED])
        rated = [
            (found[0], -number, found[1], run.snapshot.title)
            for number, run in enumerate(runs)
            if (found := self.best(run.snapshot))
        ]
        best = max(rated) if rated else None
        cells = [
            sweep.title,
            f"{TITLES[sweep.state]}, {done} of 3",
            "",
            "",
            "",
            "",
            f"best: {best[3]} ({best[2]})" if best else "",
        ]
        return cells + [""] * len(self.differing())

    def check(self) -> None:
        training, panel = self.training, self.panel
        model = panel.model
        trials_ = [run for sweep in training.sweeps.values() for run in self.trials_of(sweep)]
        single = [run for run in training.runs if run not in trials_]
        rows: list[tuple[Any, list[str], list[WatchedRun]]] = [(run, self.cells(run), []) for run in single]
        rows += [(sweep, self.sweep_cells(sweep), self.trials_of(sweep)) for sweep in training.sweeps.values()]
        assert model.rowCount() == len(rows)
        headers = [
            model.headerData(column, Qt.Orientation.Horizontal, ROLE.DisplayRole)
            for column in range(model.columnCount())
        ]
        names = ["Run", "State", "Step", "Left", "Loss", "Best", "Notes"]
        assert headers == names + [name.replace("_", " ") for name in self.differing()]
        header = panel.table.header()
        assert header.logicalIndex(header.count() - 1) == 6  # notes are last
        for number, (each, cells, inside) in enumerate(rows):
            top = model.index(number, 0)
            self.check_row(top, each, cells)
            assert model.rowCount(top) == len(inside)
            for place, run in enumerate(inside):
                below = model.index(place, 0, top)
                assert (below.parent(), model.index_of(run)) == (top, below)
                self.check_row(below, run, self.cells(run))
        for row in model.sweeps():
            assert panel.table.isExpanded(model.index_of(row)) is (row.folder not in self.folded)
        assert panel._stack.currentIndex() == (1 if rows else 0)
        selected = [model.item(index) for index in panel.table.selectionModel().selectedRows()]
        assert {each for each in selected if isinstance(each, WatchedRun)} == set(training.chosen)
        self.check_buttons()
        self.check_curves()
        self.check_progress()

    def check_row(self, index: Any, each: Any, cells: list[str]) -> None:
        chosen = each in self.training.chosen if isinstance(each, WatchedRun) else False
        message = each.snapshot.message if isinstance(each, WatchedRun) else each.message
        for column, text in enumerate(cells):
            cell = index.siblingAtColumn(column)
            assert (column, cell.data()) == (column, text.split("\n")[0])
            tip = sentence(message) if column == 1 and message else text
            marked = tip.replace("<", "&lt;").replace(">", "&gt;").replace("\n", "<br>")
            assert cell.data(ROLE.ToolTipRole) == (f"<p>{marked}</p>" if "<" in tip else tip)
            own = column >= len(COLUMNS)
            number = column in (2, 3, 4, 5)
            side = Qt.AlignmentFlag.AlignRight if number else Qt.AlignmentFlag.AlignLeft
            assert cell.data(ROLE.TextAlignmentRole) == side | Qt.AlignmentFlag.AlignVCenter
            font, ink = cell.data(ROLE.FontRole), cell.data(ROLE.ForegroundRole)
            assert (font is not None) is (own or number)
            assert font is None or font.bold() is (own and chosen)
            assert ink == (QBrush(theme.color("warning")) if own and chosen else None)

    def check_buttons(self) -> None:
        chosen, sweep, group = self.training.chosen, self.sweep(), self.group()
        one, busy = len(chosen) == 1, self.training.busy
        alive = (RunState.STARTING, RunState.RUNNING, RunState.PAUSED)
        trains = any(run.snapshot.state in alive for run in chosen)
        can_delete = (
            not trains and (bool(chosen) or sweep is not None) and not (group is not None and group.state in alive)
        )
        buttons = self.panel._buttons
        assert {name: buttons[name].isEnabled() for name in ("extend", "notes", "clone", "delete")} == {
            "extend": one and self.can_resume(chosen[0].snapshot) and not busy,
            "notes": one,
            "clone": one,
            "delete": can_delete,
        }
        button = buttons["sweep"]
        assert button.isVisible() is (sweep is not None and sweep.state is not RunState.FINISHED)
        if button.isVisible():
            assert sweep is not None
            runs = sweep.state in alive
            assert button.text() == ("Stop Sweep" if runs else "Continue Sweep")
            assert button.isEnabled() is (runs or not busy)
            icon = theme.icon("stop" if runs else "play").pixmap(16, 16).toImage()
            assert button.icon().pixmap(16, 16).toImage() == icon

    def can_resume(self, shot: RunSnapshot) -> bool:
        lost = bool(shot.host) and shot.state is RunState.ENDED
        trains = shot.state in (RunState.STARTING, RunState.RUNNING, RunState.PAUSED)
        return not trains and not lost and (shot.folder.path / "checkpoints" / "last.pt").exists()

    def check_curves(self) -> None:
        chosen, box, plot = self.training.chosen, self.panel.metric_box, self.panel.plot
        assert plot is not None
        names = dict.fromkeys(name for run in chosen for name in run.snapshot.curves.values)
        known = [name for name in FIRST if name in names]
        known += [name for name in names if name not in (*FIRST, "epoch", "time", "elapsed")]
        assert [box.itemData(row) for row in range(box.count())] == known
        assert [box.itemText(row) for row in range(box.count())] == [metric_title(name) for name in known]
        metric = box.currentData() or "loss"
        share = (0.0, 0.02, 0.1)[self.panel.smoothing.currentIndex()]
        curves = [Curve(run.snapshot.title, *run.snapshot.curves.points(metric)).smoothed(share) for run in chosen]
        assert [curve.title for curve in plot._curves] == [curve.title for curve in curves]
        for one, other in zip(plot._curves, curves, strict=True):
            np.testing.assert_array_equal(one.x, other.x)
            np.testing.assert_array_equal(one.y, other.y)
        assert plot._title == metric_title(metric)
        assert plot._logarithmic is self.panel.logarithmic.isChecked()

    # --- the progress ------------------------------------------------------------------------------------------------

    def check_progress(self) -> None:
        progress = self.progress
        assert progress.isVisible() is bool(self.training.chosen)
        if not self.training.chosen:
            return
        shot = self.training.chosen[0].snapshot
        assert progress.title.text() == (shot.notes.title or shot.folder.name)
        starting = shot.state is RunState.STARTING
        assert (progress.bar.minimum(), progress.bar.maximum()) == (0, 0 if starting else max(1, shot.total_steps))
        parts = [self.state(shot)]
        parts += [f"step {shot.step} of {shot.total_steps}"] if shot.total_steps else []
        parts += [f"{seconds(shot.seconds_left)} left"] if shot.seconds_left is not None else []
        assert progress.state.text() == ", ".join(parts)
        assert progress.metrics.text().split("\n") == list(self.metric_lines(shot))
        follows = bool(shot.host) and shot.state is RunState.ENDED
        bad = shot.state in (RunState.FAILED, RunState.ENDED, RunState.MISSING) and not follows
        role = "error" if bad else "warning" if shot.is_unreachable or follows else "note"
        text = "" if shot.state in (RunState.FINISHED, RunState.STOPPED) else sentence(shot.message)
        assert progress.message._text.accessibleName() == (f"{role}: {text}" if text else "")
        trains = shot.state in (RunState.STARTING, RunState.RUNNING, RunState.PAUSED)
        visible = {name: getattr(progress, name).isVisible() for name in ("pause", "stop", "resume", "use")}
        assert visible == {
            "pause": trains,
            "stop": trains,
            "resume": follows or (self.can_resume(shot) and shot.state is not RunState.FINISHED),
            "use": True,
        }
        assert progress.pause.text() == ("Continue" if shot.state is RunState.PAUSED else "Pause")
        assert progress.resume.text() == ("Follow" if follows else "Resume")
        assert progress.resume.isEnabled() is not self.training.busy
        best = (shot.folder.path / "checkpoints" / "best").is_dir()
        assert progress.use.isEnabled() is (best and not self.training.busy)

    def metric_lines(self, shot: RunSnapshot) -> Iterator[str]:
        titles = {
            "validation.psnr": "PSNR (dB)",
            "validation.ssim": "SSIM",
            "validation.iou": "mean IoU",
            "validation.accuracy": "accuracy",
            "validation.noisy_psnr": "PSNR of the inputs (dB)",
            "validation.loss": "validation loss",
            "validation.of_mine": "validation of mine",
        }
        found = [("loss", digits(shot.curves.last("loss") or 0.0))]
        found += [(titles[name], digits(float(shot.curves.points(name)[1][-1]))) for name in shot.curves.validated]
        for name, title, text in (
            ("learning_rate", "learning rate", lambda value: f"{value:.3g}"),
            ("throughput", "images/s", digits),
            ("memory", "memory", binary),
        ):
            values = shot.curves.points(name)[1]
            if len(values):
                found.append((title, text(float(values[-1]))))
        width = max(len(title) for title, _ in found)
        return (f"{title.ljust(width)}  {text}" for title, text in found)


@pytest.mark.parametrize("seed", range(2))
def test_runs_are_listed_compared_and_commanded_as_they_are(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int
) -> None:
    trained = Trained(qtbot, context, monkeypatch, tmp_path, seed)
    steps = [trained.click] * 6 + [trained.press, trained.go_on, trained.command] * 3 + [trained.set_runs] * 2
    steps += [trained.fold] * 3 + [trained.choose, trained.settings, trained.metric, trained.look, trained.busy]
    trained.set_runs()
    for _ in range(60):
        trained.random.choice(steps)()
        trained.check()


def test_what_differs_is_before_the_notes_also_for_other_runs_with_the_same_settings(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trained = Trained(qtbot, context, monkeypatch, tmp_path, 0)
    one, two, four = (trained.known[number] for number in (1, 2, 4))
    trained.training._set_runs([one, two, four], {})
    for chosen in ((one, two), (two, four), (one, four), (one,), (one, two)):
        trained.training.choose(chosen)
        trained.check()
        assert trained.differing() == (["lr"] if len(chosen) > 1 else [])


def test_a_sweep_is_folded_and_opened_again(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trained = Trained(qtbot, context, monkeypatch, tmp_path, 0)
    sweep = trained.sweeps[0]
    runs = trained.inside[sweep.folder]
    table, model = trained.panel.table, trained.panel.model
    for opened in (True, False, True, False):
        trained.training._set_runs([trained.known[0], *runs], {sweep.folder: SweepSnapshot(sweep, RunState.STOPPED)})
        table.setExpanded(model.index_of(model.sweeps()[0]), opened)
        for chosen in ((), (trained.known[0],)):
            trained.training.choose(chosen)
            assert table.isExpanded(model.index_of(model.sweeps()[0])) is opened


def test_a_sweep_is_deleted_as_a_whole_only_while_all_of_it_is_chosen(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trained = Trained(qtbot, context, monkeypatch, tmp_path, 0)
    first, second = (trained.inside[sweep.folder] for sweep in trained.sweeps)
    sweeps = {sweep.folder: SweepSnapshot(sweep, RunState.STOPPED) for sweep in trained.sweeps}
    alone = trained.known[0]
    trained.training._set_runs([alone, *first, *second], sweeps)
    table, model, delete = trained.panel.table, trained.panel.model, trained.panel._buttons["delete"]
    row = model.index_of(model.sweeps()[0])
    names = [run.snapshot.title for run in first]
    for chosen, said in (
        (None, ["delete_sweep Sweep of lr"]),
        (first, ["delete_sweep Sweep of lr"]),
        (first[:1], [f"delete {names[0]}"]),
        (first[1:], [f"delete {name}" for name in names[1:]]),
        ([*first, alone], [f"delete {run.snapshot.title}" for run in (*first, alone)]),
        ([alone], [f"delete {alone.snapshot.title}"]),
        (second, [f"delete {run.snapshot.title}" for run in second]),
    ):
        trained.training.choose(())
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, NONE, table.visualRect(row).center())
        assert list(trained.training.chosen) == first
        if chosen is not None:
            trained.training.choose(chosen)  # as a panel beside does
        trained.check_buttons()
        selected = [model.item(index) for index in table.selectionModel().selectedRows()]
        assert (model.sweeps()[0] in selected) is said[0].startswith("delete_sweep")
        trained.said.clear()
        delete.click()
        assert trained.said[1:] == said
    for _ in range(3):  # a row that is selected already
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, NONE, table.visualRect(row).center())
        assert list(trained.training.chosen) == first
        assert trained.group() is not None
        trained.check_buttons()


def test_trials_that_start_in_a_selected_sweep_are_chosen_too(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trained = Trained(qtbot, context, monkeypatch, tmp_path, 0)
    first, second = (trained.inside[sweep.folder] for sweep in trained.sweeps)
    sweeps = {sweep.folder: SweepSnapshot(sweep, RunState.RUNNING) for sweep in trained.sweeps}
    alone, table, model = trained.known[0], trained.panel.table, trained.panel.model

    def begin(*runs: WatchedRun) -> None:
        trained.training._set_runs([alone, *runs], sweeps)

    def click(item: Any) -> None:
        QTest.mouseClick(
            table.viewport(), Qt.MouseButton.LeftButton, NONE, table.visualRect(model.index_of(item)).center()
        )

    begin()
    click(model.sweeps()[0])
    for runs in (first[:1], first[:2], first, first[1:], [], first[2:], first):  # some are deleted meanwhile
        begin(*runs, *second[: len(runs)])
        group = trained.group()
        assert group is not None
        assert group.folder == trained.sweeps[0].folder
        assert list(trained.training.chosen) == runs
        selected = [model.item(index) for index in table.selectionModel().selectedRows()]
        assert {id(item) for item in selected} == {id(item) for item in (*runs, model.sweeps()[0])}
        trained.check_buttons()
    for item, chosen in ((first[0], [first[0]]), (alone, [alone])):
        begin(*first[:2])
        click(item)
        begin(*first)
        assert list(trained.training.chosen) == chosen
        assert trained.group() is None


def test_the_chosen_metric_stays_when_others_come_and_go(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trained = Trained(qtbot, context, monkeypatch, tmp_path, 0)
    one, two, three = (trained.known[number] for number in (1, 2, 3))
    trained.training._set_runs([one, two, three], {})
    box = trained.panel.metric_box
    for name, chosen in (
        ("validation.ssim", ((two,), (one, two), (two, three), (one, two, three), (two,))),
        ("loss", ((one,), (one, two))),
    ):
        trained.training.choose(chosen[0])
        box.setCurrentIndex(box.findData(name))
        box.activated.emit(box.currentIndex())
        for runs in chosen:
            trained.training.choose(runs)
            assert box.currentData() == name
            trained.check_curves()
    trained.training.choose((two,))
    box.setCurrentIndex(box.findData("validation.ssim"))
    trained.training.choose((one,))
    assert box.currentData() == "loss", "the run has no such metric"


@pytest.mark.parametrize("state", list(RunState))
@pytest.mark.parametrize("by_rule", [False, True])
def test_hints_for_a_terminal_are_not_shown_but_what_stopped_a_run_is(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: RunState, by_rule: bool
) -> None:
    runs = Runs(qtbot, context)
    progress = RunProgress(runs.training)
    owner = QWidget()
    progress.setParent(owner)
    qtbot.addWidget(owner)
    folder = make_run(Path(runs.project), "run", settings={}, steps=30)
    run = WatchedRun(folder)
    run.read()
    health = (SimpleNamespace(stopped_by="exploding" if by_rule else None),)
    run.snapshot = replace(run.snapshot, state=state, message="the loss is large", health=health)
    runs.training._set_runs([run], {})
    runs.training.choose((run,))
    progress.refresh()
    hidden = state is RunState.FINISHED or (state is RunState.STOPPED and not by_rule)
    assert progress.message.text() == ("" if hidden else "The loss is large.")


def test_a_run_at_its_last_step_has_no_time_left(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trained = Trained(qtbot, context, monkeypatch, tmp_path, 0)
    run = trained.known[0]
    trained.training._set_runs([run], {})
    trained.training.choose((run,))
    for step, left in ((40, "0 s"), (39, "2 s"), (10, "1 min 0 s")):
        run.snapshot = replace(run.snapshot, state=RunState.RUNNING, step=step, total_steps=40)
        trained.training.updated.emit()
        trained.check()
        assert trained.cells(run)[3] == left
        assert trained.progress.state.text() == f"running, step {step} of 40, {left} left"
