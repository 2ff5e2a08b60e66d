"""Validation Images in random sequences of steps, runs and choices: the image and its caption are those of a model."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication, QComboBox
from pytestqt.qtbot import QtBot
from training_kit import Runs
from window_kit import shown

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.train.validation_panel import ValidationPanel
from app.ui.widgets import theme
from app.ui.widgets.split_line import SplitLine, SplitMode
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.operators.registry import default_registry
from designer.training.run_folder import Notes
from designer.training.watched_run import WatchedRun
from designer.units import digits

SMALL, LARGE = (8, 4), (16, 8)  # sizes of inputs and of other images


@pytest.fixture
def context(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Context:
    theme.apply(qapp, "dark")
    made = Context(default_registry())
    graph = Graph([Layer("image", "input", params={"dims": "16x8x3"})])
    made.set_document(Document(graph, made.registry, parent=made))
    made.root.project = tmp_path / "project"
    return made


class Validated:
    def __init__(self, qtbot: QtBot, context: Context, seed: int) -> None:
        self.random = random.Random(seed)
        self.kit = Runs(qtbot, context)
        self.runs = [self.kit.add(name) for name in "abc"]
        self.colors: dict[Path, str] = {}  # of the images that were written
        self.steps: dict[WatchedRun, list[int]] = {run: [] for run in self.runs}
        self.scores: dict[tuple[WatchedRun, int], float] = {}
        for run in self.runs:
            for name in ("cat.png", "dog.png"):
                for path, size in zip(run.folder.validation_pair(name), (SMALL, LARGE), strict=True):
                    self.write(path, size)
        self.panel = shown(qtbot, ValidationPanel(context), 500, 500)
        self.run: WatchedRun | None = None
        self.other: WatchedRun | None = None
        self.following, self.place, self.name, self.amount = True, 0, "", 0.5
        self.names: list[str] = []
        self.image = ""
        self.left, self.right = "input", "output"
        self.sides: list[str] = []

    def write(self, path: Path, size: tuple[int, int] = LARGE) -> None:
        """Write an image of a color of its own, at a time of its own."""
        number = len(self.colors) + 1 + self.random.randrange(2**23)
        color = QColor(f"#{number % 2**24:06x}")
        image = QImage(*size, QImage.Format.Format_RGB32)
        image.fill(color)
        path.parent.mkdir(parents=True, exist_ok=True)
        assert image.save(str(path))
        moment = 10**9 * (1 + len(self.colors)) + self.random.randrange(10**8)
        os.utime(path, ns=(moment, moment))
        self.colors[path] = color.name()

    # --- steps -----------------------------------------------------------------------------------------------------

    def validate(self) -> None:
        run = self.random.choice(self.runs)
        step = (self.steps[run][-1] if self.steps[run] else 0) + self.random.choice((1, 5, 10))
        self.steps[run].append(step)
        for name in self.random.choice((("cat.png",), ("cat.png", "dog.png"), ("ant.png", "dog.png"))):
            self.write(run.folder.validation_image(step, name))
        line: dict[str, object] = {"step": step}
        if self.random.random() < 0.7:
            score = round(self.random.uniform(10, 40), 3)
            self.scores[run, step] = score
            line["validation"] = {"psnr": score}
        with run.folder.metrics.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        self.kit.read(run)
        self.updated()

    def rewrite(self) -> None:
        """A resumed run writes an image of the same step again."""
        outputs = [path for path in self.colors if path.parent.name.startswith("step_")]
        if outputs:
            path = self.random.choice(outputs)
            self.write(path)
            self.kit.training.updated.emit()
            self.updated()

    def rename(self) -> None:
        run = self.random.choice(self.runs)
        run.snapshot = replace(run.snapshot, notes=Notes(self.random.choice(("", "wide <i>", "narrow")), ""))
        self.kit.training.updated.emit()
        self.updated()

    def choose(self) -> None:
        runs = self.random.sample(self.runs, self.random.randrange(4))
        self.kit.training.choose(runs)
        self.updated()

    def slide(self) -> None:
        if self.run is None or not self.steps[self.run]:
            return
        self.place = self.random.randrange(len(self.steps[self.run]))
        slider = self.panel.step
        slider.set_value(self.place)
        slider.changed.emit(slider.value)
        self.following = self.place == len(self.steps[self.run]) - 1
        self.fill_names()

    def pick(self) -> None:
        """The user chooses an image or a side."""
        number = self.random.randrange(3)
        box = (self.panel.image_box, self.panel.left, self.panel.right)[number]
        if not box.count() or self.run is None:
            return
        box.setCurrentIndex(self.random.randrange(box.count()))
        box.activated.emit(box.currentIndex())
        if number == 0:
            self.image = self.name = box.currentText()
        else:
            setattr(self, ("left", "right")[number - 1], box.currentData())

    def split(self) -> None:
        self.amount = self.random.choice((0.0, 0.25, 0.5, 1.0))
        self.panel.view.split_moved.emit(self.amount)

    # --- the model -------------------------------------------------------------------------------------------------

    def updated(self) -> None:
        chosen = self.kit.training.chosen
        run = chosen[0] if chosen else None
        self.other = chosen[1] if len(chosen) > 1 else None
        if run is not self.run:
            self.run, self.following = run, True
        if run is None or not self.steps[run]:
            return
        last = len(self.steps[run]) - 1
        self.place = last if self.following else min(self.place, last)
        self.fill_names()
        sides = ["Input", "Output", "Target"]
        if self.other is not None:
            title, other = run.snapshot.title, self.other.snapshot.title
            sides = ["Input", f"Output of {title}", "Target", f"Output of {other}"]
        if sides != self.sides:
            self.sides = sides
            self.left, self.right = ("input", "output") if self.other is None else ("output", "other")

    def fill_names(self) -> None:
        assert self.run is not None
        step = self.steps[self.run][self.place]
        folder = self.run.folder.validation_image(step, "x").parent
        names = sorted(path.name for path in self.colors if path.parent == folder)
        if names != self.names:
            self.names = names
            self.image = self.name if self.name in names else names[0]

    def color(self, side: str, step: int) -> tuple[str, tuple[int, int]] | None:
        assert self.run is not None
        if side in ("input", "target"):
            path = self.run.folder.validation_pair(self.image)[side == "target"]
        elif side == "output":
            path = self.run.folder.validation_image(step, self.image)
        else:
            before = [each for each in self.steps[self.other] if each <= step] if self.other is not None else []
            if not before or self.other is None:
                return None
            path = self.other.folder.validation_image(before[-1], self.image)
        size = SMALL if side == "input" else LARGE
        return (self.colors[path], size) if path in self.colors else None

    def caption(self, step: int) -> str:
        assert self.run is not None
        score = self.scores.get((self.run, step))
        text = f"step {step}" if score is None else f"step {step}, all images: PSNR (dB) {digits(score)}"
        if self.other is None or "other" not in (self.left, self.right):
            return text
        before = [each for each in self.steps[self.other] if each <= step]
        title = self.other.snapshot.title
        if not before:
            return f"{text}\n{title} has no output up to this step."
        return text if before[-1] == step else f"{text}\nThe output of {title} is of step {before[-1]}."

    def check(self) -> None:
        panel, run = self.panel, self.run
        there = run is not None and bool(self.steps[run])
        assert panel.view.isVisible() is there
        if run is None or not there:
            return
        step = self.steps[run][self.place]
        assert round(panel.step.value) == self.place

        def entries(box: QComboBox) -> list[str]:
            return [box.itemText(row) for row in range(box.count())]

        assert (entries(panel.image_box), panel.image_box.currentText()) == (self.names, self.image)
        assert entries(panel.left) == entries(panel.right) == self.sides
        assert (panel.left.currentData(), panel.right.currentData()) == (self.left, self.right)
        assert panel.caption.text() == self.caption(step)
        left, right = self.color(self.left, step), self.color(self.right, step)
        image = panel.view.image
        only = left or right
        if only is None:
            assert image is None
            return
        assert image is not None
        both = left is not None and right is not None
        assert panel.view._line == SplitLine(SplitMode.VERTICAL if both else SplitMode.NONE, self.amount)
        size = LARGE if both and LARGE in (left[1], right[1]) else only[1]  # type: ignore[index]
        assert image.size().toTuple() == size
        cut = round(self.amount * size[0]) if both else size[0]
        row = [image.pixelColor(x, 1).name() for x in range(size[0])]
        assert row == [only[0]] * cut + [right[0] if right is not None else ""] * (size[0] - cut)


@pytest.mark.parametrize("seed", range(3))
def test_the_images_are_those_of_the_chosen_runs_step_and_sides(qtbot: QtBot, context: Context, seed: int) -> None:
    validated = Validated(qtbot, context, seed)
    steps = [validated.validate] * 5 + [validated.pick] * 5 + [validated.slide, validated.choose] * 3
    steps += [validated.split, validated.rewrite] * 2 + [validated.rename]
    for _ in range(100):
        validated.random.choice(steps)()
        validated.check()


def test_a_half_written_image_is_read_again_and_the_other_one_is_shown_meanwhile(
    qtbot: QtBot, context: Context
) -> None:
    validated = Validated(qtbot, context, 0)
    run = validated.runs[0]
    validated.kit.training.choose([run])
    name, output = "cat.png", run.folder.validation_image(1, "cat.png")
    validated.write(output)
    whole, color = output.read_bytes(), validated.colors[output]
    moment = output.stat().st_mtime_ns
    output.write_bytes(whole[:20])
    os.utime(output, ns=(moment, moment))
    run.folder.metrics.write_text(json.dumps({"step": 1}) + "\n")
    validated.kit.read(run)
    validated.kit.training.updated.emit()
    panel = validated.panel
    assert panel.image_box.currentText() == name
    assert panel.view.image.pixelColor(0, 0).name() == validated.colors[run.folder.validation_pair(name)[0]]
    output.write_bytes(whole)
    os.utime(output, ns=(moment, moment))  # a file system with coarse times
    validated.kit.training.updated.emit()
    assert panel.view.image.pixelColor(panel.view.image.width() - 1, 0).name() == color
