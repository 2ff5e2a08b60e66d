"""A comparison that is stopped or begun again at each of its steps: nothing of what ran before arrives later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot
from side_kit import network, photograph

from app.reports.comparison import ImageArray
from app.ui.compare import difference_images
from app.ui.compare.difference_images import DifferenceImages, DifferenceRequest
from app.ui.compare.differences import absolute_pixels, levels
from app.ui.compare.folder_run import FolderRun
from app.ui.compare.model import CLEAN, INPUT, NoiseChoice, SideModel
from app.ui.compare.runner import Made
from app.ui.compare.variants import VariantChoice
from app.ui.widgets.render import picture_pixels, to_image
from designer.files.settings import PATTERN
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.operators.registry import default_registry
from designer.runtime.images import read_image
from designer.runtime.patterns import PATTERNS, make_pattern
from designer.texts import tr

pytestmark = pytest.mark.gui
STEPS = ("preparing", "running", "drawing", "measuring")


class Signal:
    """Connected functions, called at once."""

    def __init__(self) -> None:
        self._functions: list[Callable[[Any], None]] = []

    def connect(self, function: Callable[[Any], None]) -> None:
        self._functions.append(function)

    def emit(self, value: Any) -> None:
        for function in self._functions:
            function(value)


class Job:
    """In place of `Background`: the work is done when the test says so."""

    held: list[Job]  # what was started and has not ended

    def __init__(self, parent: object) -> None:
        self.done, self.failed = Signal(), Signal()

    def start(self, work: Callable[[], object]) -> None:
        self._work = work
        self.held.append(self)

    def end(self) -> None:
        if self in self.held:
            self.held.remove(self)
        try:
            answer = self._work()
        except DiagnosticError as error:
            self.failed.emit(error.diagnostics)
        else:
            self.done.emit(answer)

    def deleteLater(self) -> None:
        """Nothing is to be deleted."""


class Task:
    """A model, and a run over a folder, of which each step is made by the test."""

    def __init__(self, owner: QWidget, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.owner = owner
        Job.held = []
        for module in ("model", "folder_run"):
            monkeypatch.setattr(f"app.ui.compare.{module}.Background", Job)
        self.model = SideModel(default_registry(), owner)
        self.run = FolderRun(self.model, owner)
        self.model.choices = [VariantChoice(network(folder, f"net_{name}")) for name in "AB"]
        self.first = photograph(folder / "first.png")
        self.second = photograph(folder / "second.png", 1, (70, 90))
        self.model.picture = self.first
        self.model.noise = NoiseChoice("")
        self.images: list[ImageArray] = []
        monkeypatch.setattr(self.model.runner, "run", lambda _variants, image: self.images.append(image))
        self.ended: list[bool] = []
        self.model.finished.connect(lambda: self.ended.append(self.model.busy))

    def made(self, share: float) -> None:
        """The variants' results of the latest image."""
        for index, factor in enumerate((share, share / 2)):
            self.model.runner.made.emit(index, Made((self.images[-1] * factor).astype(np.float32), 5.0 + index))

    def until(self, step: str, share: float = 0.9, between: Callable[[str], None] = lambda _step: None) -> None:
        """Compare up to this step, whose work has not ended; `between` is called at each one."""
        self.model.compare()
        mine = Job.held[-1]
        for reached in STEPS:
            between(reached)
            if reached == step:
                return
            if reached == "preparing":
                mine.end()
            elif reached == "running":
                self.made(share)
                drawn = Job.held[-2:]
                self.model.runner.finished.emit()
            else:
                for job in drawn:
                    job.end()
                mine = Job.held[-1]
        mine.end()

    def state(self) -> dict[str, Any]:
        """Everything that is known of the comparison."""
        model = self.model
        images = {key: model.pixels(key) for key in (INPUT, CLEAN, "A", "B")}
        return {
            "busy": model.busy,
            "problem": model.problem,
            "status": list(model.status),
            "errors": list(model.errors),
            "images": {
                key: None if image is None else (image.shape, float(image.sum())) for key, image in images.items()
            },
            "colours": {key: pixels.shape for key, pixels in model.colours.items()},
            "psnr": {key: found.psnr for key, found in model.measured.figures.items()},
            "reference": model.measured.reference,
        }


@pytest.fixture
def task(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    owner = QWidget()
    qtbot.addWidget(owner)
    return Task(owner, tmp_path, monkeypatch)


@pytest.mark.parametrize("act", ["stop", "close"])
@pytest.mark.parametrize("step", STEPS)
def test_what_ends_after_a_comparison_was_stopped_changes_nothing(task: Task, step: str, act: str) -> None:
    task.until(step)
    assert task.model.busy
    getattr(task.model, act)()
    assert not task.model.busy
    assert task.ended == (
        [False] if act == "stop" else []
    )  # nobody is there any more who wants to know of a closed one
    before, images = task.state(), len(task.images)
    assert (before["images"][INPUT] is None) is (step == "preparing")
    assert list(before["colours"]) == ([CLEAN, INPUT] if step != "preparing" else []) + ["A", "B"] * (
        step == "measuring"
    )
    for job in list(Job.held):
        job.end()
    assert (task.state(), len(task.images), len(task.ended)) == (before, images, int(act == "stop"))


@pytest.mark.parametrize(("kind", "clean"), [("gaussian", "first"), ("", "other"), ("impulse", "first")])
def test_a_clean_file_counts_only_where_no_noise_is_added(task: Task, tmp_path: Path, kind: str, clean: str) -> None:
    other = photograph(tmp_path / "other.png", 5)
    task.model.noise = NoiseChoice(kind, 0.1)
    task.model.clean_file = other
    task.until("running")
    assert task.model.clean is not None
    np.testing.assert_array_equal(task.model.clean, read_image({"first": task.first, "other": other}[clean], 3))
    assert (task.model.knows_clean, task.model.reference) == (True, CLEAN)
    task.model.enlarged = task.model.noisy  # as of larger results, which the image itself is not the clean version of
    assert task.model.knows_clean is not bool(kind)
    task.model.enlarged = None
    large = np.repeat(np.repeat(task.images[-1], 2, 2), 2, 3).astype(np.float32)
    for index in range(2):
        task.model.runner.made.emit(index, Made(large, 5.0))
    for job in list(Job.held):
        job.end()
    refused = not kind  # the clean file has another size than these results
    assert [("other.png" in why, bool(why)) for why in task.model.errors] == [(refused, refused)] * 2
    assert list(task.model.made) == ([] if refused else ["A", "B"])
    assert (task.model.enlarged is None) is refused
    task.model.runner.finished.emit()
    task.until("", 0.7)  # results of the size of the image
    assert (task.model.enlarged, task.model.knows_clean, task.model.errors) == (None, True, ["", ""])
    np.testing.assert_array_equal(task.model.pixels(INPUT), task.images[-1])
    assert list(task.model.measured.figures) == [INPUT, "A", "B"]
    assert list(task.model.colours) == [CLEAN, INPUT, "A", "B"]
    for key, pixels in task.model.colours.items():
        np.testing.assert_array_equal(pixels, picture_pixels(task.model.pixels(key)[0]), key)


@pytest.mark.parametrize("late", STEPS)
@pytest.mark.parametrize("step", STEPS)
def test_what_ends_during_the_next_comparison_is_not_of_it(task: Task, step: str, late: str) -> None:
    task.model.picture = task.second
    task.until("", 0.7)
    expected = task.state()
    assert list(expected["psnr"]) == ["A", "B"]
    assert expected["images"][INPUT][0] == (1, 3, 90, 70)
    task.model.picture = task.first
    task.until(step, 0.4)
    old = list(Job.held)
    task.model.picture = task.second
    task.ended.clear()
    task.until("", 0.7, lambda reached: [job.end() for job in old] if reached == late else None)
    assert task.state() == expected
    assert task.ended == [False, False]  # the first one was stopped
    assert not Job.held


@pytest.mark.parametrize("drawn", [True, False])
def test_a_variant_that_fails_while_it_is_timed_has_no_result(task: Task, drawn: bool) -> None:
    model, runner = task.model, task.model.runner
    model.compare()
    Job.held[-1].end()
    task.made(0.9)
    jobs = list(Job.held)
    if drawn:
        jobs.pop(0).end()
        assert list(model.made) == ["A"]
    runner.progress.emit(0, "Timing …")
    runner.failed.emit(0, "It broke.")
    assert (model.status, model.errors, list(model.made)) == (["", ""], ["It broke.", ""], [])
    runner.finished.emit()
    for job in jobs:
        job.end()
    Job.held[-1].end()
    assert (list(model.made), list(model.measured.figures), model.measured.reference) == (["B"], ["B"], "B")
    assert (model.errors, model.busy) == (["It broke.", ""], False)


FOLDER_STEPS = ("preparing", "running", "measuring")


def folder_until(task: Task, folder: Path, step: str) -> None:
    """Run over the folder up to this step of its second image."""
    task.run.start(folder)
    for number in range(2):
        for reached in FOLDER_STEPS:
            if number and reached == step:
                return
            if reached == "running":
                task.made(0.9)
                task.model.runner.finished.emit()
            else:
                Job.held[-1].end()


@pytest.mark.parametrize("act", ["cancel", "compare", "another"])
@pytest.mark.parametrize("step", FOLDER_STEPS)
def test_what_ends_after_a_folder_was_cancelled_adds_no_row(task: Task, tmp_path: Path, step: str, act: str) -> None:
    run = task.run
    for name, sizes in (("one", (80, 90, 100)), ("two", (70, 75))):
        (tmp_path / name).mkdir()
        for number, size in enumerate(sizes):
            photograph(tmp_path / name / f"{number}.png", number, (size, 64))
    ended: list[int] = []
    run.finished.connect(lambda: ended.append(len(run.rows)))
    folder_until(task, tmp_path / "one", step)
    assert (run.running, run.done, run.total, [row.name for row in run.rows]) == (True, 1, 3, ["0.png"])
    old, images = list(Job.held), len(task.images)
    if act == "cancel":
        run.cancel()
    elif act == "compare":  # the engines are wanted elsewhere
        task.model.compare()
    else:
        run.start(tmp_path / "two")
    assert ended == [1]
    names = [] if act == "another" else ["0.png"]
    for job in old:
        job.end()
    assert ([row.name for row in run.rows], [path.name for path in run.paths]) == (names, names)
    assert [kept.name for kept in run.kept] == names
    assert (run.running, ended, len(task.images)) == (act == "another", [1], images)
    if act == "another":
        Job.held[-1].end()
        assert task.images[-1].shape[3] == 70
        assert run.total == 2


def test_the_clean_image_of_a_folder_is_known_only_if_it_was_given(task: Task, tmp_path: Path) -> None:
    (tmp_path / "clean").mkdir()
    photograph(tmp_path / "clean" / "first.png", 5)
    (tmp_path / "noisy").mkdir()
    photograph(tmp_path / "noisy" / "first.png", 6)
    for kind, file, reference, clean in (
        ("", None, "A", None),
        ("", tmp_path / "clean" / "other.png", tr("the clean image"), tmp_path / "clean" / "first.png"),
        ("gaussian", None, tr("the clean image"), tmp_path / "noisy" / "first.png"),
        ("gaussian", tmp_path / "clean" / "other.png", tr("the clean image"), tmp_path / "noisy" / "first.png"),
    ):
        task.model.noise, task.model.clean_file = NoiseChoice(kind), file
        task.run.start(tmp_path / "noisy")
        Job.held[-1].end()
        task.made(0.9)
        task.model.runner.finished.emit()
        Job.held[-1].end()
        (row,) = task.run.rows
        assert row.reference.startswith(reference)
        assert np.isnan(row.figures[0].psnr) is np.bool_(clean is None)
        if clean is None:
            assert task.run._clean is None
        else:
            np.testing.assert_allclose(task.run._clean, read_image(clean, 3))
        assert not task.run.running


def test_of_several_requests_for_a_difference_the_last_one_is_made(
    task: Task, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    monkeypatch.setattr(difference_images, "Background", Job)
    monkeypatch.setattr(difference_images, "AT_ONCE", 0)
    images, changes = DifferenceImages(task.owner), []
    images.changed.connect(lambda: changes.append(1))
    rng = np.random.default_rng(0)
    mine, other, third = rng.random((3, 1, 3, 6, 8)).astype(np.float32)

    def asked(key: str, gain: float, theirs: ImageArray = other) -> object:
        return images.image(key, DifferenceRequest(mine, theirs, gain, False))

    def made(gain: float, theirs: ImageArray = other) -> object:
        return to_image(absolute_pixels(levels(mine, theirs), gain))

    for key, gain in (("A", 1.0), ("A", 2.0), ("A", 3.0), ("B", 5.0)):
        assert asked(key, gain) is None
    first, of_b = Job.held
    first.end()
    assert len(changes) == 1
    assert asked("A", 3.0) == made(1.0)  # the one before until the last one is there
    third_gain = Job.held[-1]
    third_gain.end()
    assert asked("A", 3.0) == made(3.0)
    assert images.busy
    of_b.end()
    assert (asked("B", 5.0), images.busy, Job.held) == (made(5.0), False, [])
    assert asked("A", 4.0) == made(3.0)
    assert asked("A", 5.0) == made(3.0)
    assert asked("A", 3.0) == made(3.0)  # what is there already is wanted again, so that 5 is not made
    Job.held[-1].end()
    assert (images.busy, Job.held) == (False, [])
    assert asked("A", 3.0) in (made(3.0), made(4.0))
    for job in list(Job.held):
        job.end()
    assert asked("A", 3.0, third) is None  # other images
    late = Job.held[-1]
    images.clear()
    assert (asked("A", 6.0, third), images.busy) == (None, True)
    count = len(changes)
    late.failed.emit((Diagnostic("late", "too late"),))
    late.end()
    assert (len(changes), images.problem("A")) == (count, "")
    Job.held[-1].failed.emit((Diagnostic("memory", "not enough memory"),))
    assert (images.problem("A"), images.busy) == ("Not enough memory.", False)
    assert asked("A", 6.0, third) is None
    assert asked("A", 7.0, third) is None
    Job.held[-1].end()
    assert asked("A", 7.0, third) == made(7.0, third)
    assert images.problem("A") == ""


@pytest.mark.parametrize("name", PATTERNS)
def test_a_test_pattern_is_compared_like_an_image(task: Task, name: str) -> None:
    task.model.picture = Path(f"{PATTERN}{name}")
    task.until("")
    clean = make_pattern(name, 3, 512, 512)
    np.testing.assert_array_equal(task.model.pixels(INPUT), clean)
    assert not task.model.problem
    task.model.noise = NoiseChoice(scale=0.25)
    task.until("")
    np.testing.assert_array_equal(task.model.pixels(CLEAN), clean)
    assert np.std(task.model.pixels(INPUT) - clean) > 0.2
