"""Side by Side step by step: after every choice, run, failure and vote, everything that its parts show and hold."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QBuffer, QIODevice, Qt
from PySide6.QtGui import QImage, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot
from side_kit import WAIT, network, photograph
from window_kit import shown

from analysis_layers.noise import KINDS, SCALES
from app.engine.protocol import OpenRequest
from app.reports.comparison import Row
from app.reports.votes import EQUAL, LEFT, RIGHT, Vote, VoteTrial
from app.ui.compare.folder_run import FolderRun, Kept
from app.ui.compare.folder_view import FolderView
from app.ui.compare.grid import PictureGrid
from app.ui.compare.model import NoiseChoice, SideModel
from app.ui.compare.runner import Made
from app.ui.compare.setup import Setup
from app.ui.compare.variants import Variant, VariantChoice
from app.ui.compare.vote_page import VotePage
from app.ui.compare.vote_view import VoteView
from app.ui.widgets import theme
from designer.operators.registry import default_registry
from designer.runtime.provenance import Provenance

pytestmark = pytest.mark.gui
UNKNOWN, ITSELF, FILE = "unknown: the first variant is the measure", "the image itself", "Choose a file..."
NOISY = "none: the image is noisy already"
GAUSSIAN = 25 / 255


# --- the image, its noise and its clean version ------------------------------------------------------------------------


class Choices:
    """The fields of the image over a model; `answer` is what the next dialog for a file answers."""

    def __init__(self, qtbot: QtBot, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.model = SideModel(default_registry())
        self.model.choices = [VariantChoice(network(folder, name)) for name in ("one", "two")]
        self.model.picture = photograph(folder / "first.png")
        self.setup = shown(qtbot, Setup(self.model, list), 320, 700)
        self.model.setParent(self.setup)
        self.setup.show_choices()
        self.setup.show_picture()
        self.changes = 0
        self.setup.changed.connect(self._count)
        self.answer: Path | None = None
        self.began: list[str] = []
        monkeypatch.setattr(QFileDialog, "getOpenFileName", self._dialog)

    def _count(self) -> None:
        self.changes += 1

    def _dialog(self, _parent: object, _title: str, start: str, *_rest: object) -> tuple[str, str]:
        self.began.append(start)
        return (str(self.answer) if self.answer is not None else "", "")

    def choose(self, box: Any, text: str, answer: Path | None = None) -> None:
        self.answer = answer
        index = box.findText(text)
        assert index >= 0, text
        box.setCurrentIndex(index)
        box.activated.emit(index)

    def state(self) -> tuple[object, ...]:
        """The shown image, noise and clean image, which of them can be changed, and the number of comparisons asked for."""
        setup = self.setup
        clean = [setup.clean.itemText(row) for row in range(setup.clean.count()) if setup.clean.itemText(row)]
        fields = (setup.scale, setup.seed, setup.clean)
        changes, self.changes = self.changes, 0
        return (
            setup.picture.currentText(),
            setup.kind.currentText(),
            round(setup.scale.value, 4),
            setup.seed.value(),
            [field.isEnabled() for field in fields],
            clean,
            setup.clean.currentText(),
            changes,
        )


def test_the_clean_image_follows_the_image_and_its_noise(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices = Choices(qtbot, tmp_path, monkeypatch)
    model, setup = choices.model, choices.setup
    clean, other, second = (tmp_path / name for name in ("clean.png", "other.png", "second.png"))
    without, with_clean, with_other = [UNKNOWN, FILE], [UNKNOWN, "clean.png", FILE], [UNKNOWN, "other.png", FILE]
    scale, off = round(GAUSSIAN, 4), [False, False, True]
    added = [True, True, False]

    def expect(picture: str, kind: str, fields: list[bool], names: list[str], current: str, changes: int) -> None:
        assert choices.state() == (picture, kind, scale, 0, fields, names, current, changes)

    expect("first.png", "gaussian", added, [ITSELF], ITSELF, 0)
    choices.choose(setup.kind, NOISY)
    expect("first.png", NOISY, off, without, UNKNOWN, 1)
    choices.choose(setup.clean, FILE)  # and then none
    expect("first.png", NOISY, off, without, UNKNOWN, 0)
    choices.choose(setup.clean, FILE, clean)
    expect("first.png", NOISY, off, with_clean, "clean.png", 1)
    assert model.clean_file == clean
    choices.choose(setup.clean, FILE)  # the chosen one stays
    expect("first.png", NOISY, off, with_clean, "clean.png", 0)
    choices.choose(setup.clean, "clean.png")
    expect("first.png", NOISY, off, with_clean, "clean.png", 0)
    choices.choose(setup.kind, "gaussian")  # it is not needed, and is kept for later
    expect("first.png", "gaussian", added, [ITSELF], ITSELF, 1)
    setup.show_picture()
    expect("first.png", "gaussian", added, [ITSELF], ITSELF, 0)
    assert model.clean_file == clean
    choices.choose(setup.kind, NOISY)
    expect("first.png", NOISY, off, with_clean, "clean.png", 1)
    choices.choose(setup.clean, UNKNOWN)
    expect("first.png", NOISY, off, without, UNKNOWN, 1)
    assert model.clean_file is None
    choices.choose(setup.clean, FILE, other)
    expect("first.png", NOISY, off, with_other, "other.png", 1)
    choices.choose(setup.picture, FILE)  # and then none
    expect("first.png", NOISY, off, with_other, "other.png", 0)
    choices.choose(setup.picture, FILE, second)  # of which `other.png` is not the clean version
    expect("second.png", NOISY, off, without, UNKNOWN, 1)
    assert (model.picture, model.clean_file) == (second, None)
    choices.choose(setup.clean, FILE, clean)
    setup.set_picture(second)  # the same image again, as from the table of a folder
    expect("second.png", NOISY, off, with_clean, "clean.png", 1)
    assert choices.began == [str(tmp_path)] * 7


def test_the_fields_of_the_noise_show_that_of_the_model(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices = Choices(qtbot, tmp_path, monkeypatch)
    model, setup = choices.model, choices.setup
    scales = {}
    for kind in ("uniform", "salt_and_pepper", "gaussian"):
        choices.choose(setup.kind, kind.replace("_", " "))
        scales[kind] = (model.noise.scale, setup.scale._high, setup.scale.toolTip())
        assert setup.scale.value == pytest.approx(model.noise.scale)
    assert len(set(scales.values())) == 3  # each kind has its own scale, range and explanation
    for kind in (*KINDS, *reversed(KINDS), "gaussian"):
        choices.choose(setup.kind, kind.replace("_", " "))
        assert (setup.scale._high, setup.scale.toolTip()) == (SCALES[kind].most, SCALES[kind].doc)
    assert len({scale.most for scale in SCALES.values()}) > 1
    choices.changes = 3
    setup.seed.setValue(5)
    setup.seed.editingFinished.emit()
    setup.scale.set_value(0.5)
    setup.scale.released.emit()
    assert (model.noise, choices.changes) == (NoiseChoice("gaussian", 0.5, 5), 5)
    model.noise = NoiseChoice("uniform", 0.125, 9)  # by another way
    setup.show_picture()
    assert choices.state()[1:5] == ("uniform", 0.125, 9, [True, True, False])
    choices.choose(setup.kind, NOISY)
    choices.choose(setup.kind, "uniform")
    assert (model.noise.kind, model.noise.seed) == ("uniform", 9)
    assert choices.state()[1:5] == ("uniform", round(model.noise.scale, 4), 9, [True, True, False])


def test_rows_of_variants_show_their_own_state(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What each variant does or why it fails, with its color, while variants are added, removed and run."""
    choices = Choices(qtbot, tmp_path, monkeypatch)
    model, setup = choices.model, choices.setup
    roles: tuple[theme.RoleName, ...] = ("error", "warning", "info")
    colors = {role: theme.color(role) for role in roles}

    def state() -> list[tuple[str, str]]:
        found = []
        for row in setup.rows:
            label = row._message._text
            ink = label.palette().color(QPalette.ColorGroup.Active, QPalette.ColorRole.WindowText)
            found.append((row.state, next(role for role, color in colors.items() if color == ink) if row.state else ""))
        return found

    def set_states(*states: tuple[str, str]) -> None:
        model.status, model.errors = [s for s, _ in states], [e for _, e in states]
        for index in range(len(states)):
            model.status_changed.emit(index)

    set_states(("Running …", ""), ("", ""))
    assert state() == [("Running …", "info"), ("", "")]
    model.made = {"A": Made(np.zeros((1, 3, 4, 4), np.float32), 1.0)}
    set_states(("random weights", ""), ("", "It broke."))
    assert state() == [("random weights", "warning"), ("It broke.", "error")]
    setup.add.click()
    assert [row.source.currentText() for row in setup.rows] == ["one.xml", "two.xml", "two.xml"]
    assert state()[:2] == [("random weights", "warning"), ("It broke.", "error")]
    assert (setup.add.isEnabled(), [row.remove.isEnabled() for row in setup.rows]) == (True, [True] * 3)
    setup.add.click()
    assert (setup.add.isEnabled(), len(model.choices)) == (False, 4)
    model.made = {}
    set_states(("", "First."), ("", ""), ("Running …", ""), ("", ""))
    assert state() == [("First.", "error"), ("", ""), ("Running …", "info"), ("", "")]
    for _ in range(2):
        setup.rows[-1].remove.click()
    assert (setup.add.isEnabled(), [row.remove.isEnabled() for row in setup.rows]) == (True, [False] * 2)
    setup.rows[0].remove.click()  # two are the least
    assert len(model.choices) == 2
    model.status, model.errors = ["", "Later."], ["Other.", ""]
    model.finished.emit()
    assert state() == [("Other.", "error"), ("Later.", "info")]
    model.status, model.errors = ["", ""], ["", ""]
    model.started.emit()
    assert state() == [("", ""), ("", "")]


# --- a folder, again and again -------------------------------------------------------------------------------------------


class FolderTask:
    """A run over folders without engines, and its view; the test gives the results of each image."""

    def __init__(self, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
        self.qtbot = qtbot
        self.model = SideModel(default_registry())
        self.run = FolderRun(self.model, self.model)
        self.view = shown(qtbot, FolderView(self.run), 900, 300)
        self.model.setParent(self.view)
        self.images: list[np.ndarray] = []
        self.taken = 0
        self.variants: list[Variant | None] = []
        self.errors: list[str] = []
        monkeypatch.setattr(self.model, "make_variants", self._make)
        monkeypatch.setattr(self.model.runner, "run", lambda _variants, image: self.images.append(image))

    def use(self, *names: str) -> None:
        """Variants by name; one that begins with "!" cannot be made."""
        self.model.choices = [VariantChoice(Path(f"{name}.xml")) for name in names]
        self.variants = [
            None
            if name.startswith("!")
            else Variant(f"{'ABCD'[i]} {name}", OpenRequest("text", name), "in", "out", 3, f"{name}.xml", name[0] * 64)
            for i, name in enumerate(names)
        ]
        self.errors = [f"{name} cannot be read." if name.startswith("!") else "" for name in names]

    def _make(self, *, shown: bool = False) -> list[Variant | None]:
        self.model.variants, self.model.errors = list(self.variants), list(self.errors)
        return self.model.variants

    def answer(self, *results: float | str | tuple[float, str] | None) -> None:
        """The results of the next image: an error that is added, why a variant failed (perhaps in its second run), or nothing."""
        self.qtbot.waitUntil(lambda: len(self.images) > self.taken, timeout=WAIT)
        self.taken += 1
        runner, image = self.model.runner, self.images[-1]
        for index, result in enumerate(results):
            first, why = result if isinstance(result, tuple) else (result, "")
            if isinstance(first, float):
                runner.made.emit(index, Made((image + first).astype(np.float32), 5.0 + index, "", f"{index}.npz"))
            if isinstance(first, str) or why:
                runner.failed.emit(index, first if isinstance(first, str) else why)
        done = self.run.done
        runner.finished.emit()
        self.qtbot.waitUntil(lambda: self.run.done > done, timeout=WAIT)

    def wait(self) -> None:
        self.qtbot.waitUntil(lambda: not self.run.running and not self.view._plotting.running, timeout=WAIT)

    def state(self) -> dict[str, Any]:
        run, view = self.run, self.view
        table = view.table
        names = [table.item(row, 0).text() for row in range(table.rowCount())]
        return {
            "rows": [row.name for row in run.rows],
            "failed": [[bool(figure.failure) for figure in row.figures[1:]] for row in run.rows],
            "paths": [path.name for path in run.paths],
            "kept": [(kept.name, sorted(kept.pixels)) for kept in run.kept],
            "failures": dict(run.failures),
            "skipped": list(run.skipped),
            "problem": run.problem,
            "place": (run.done, run.total, run.running),
            "names": dict(run.names),
            "documents": {name: origin.document for name, origin in run.provenance.items()},
            "columns": run.columns[1:],
            "table": names,
            "note": view.note.text(),
            "buttons": (view.start_button.isEnabled(), view.cancel_button.isEnabled()),
            "saved": {button.isEnabled() for button in view.save_buttons.values()},
            "plot": view.plot.image is not None,
        }


def test_a_run_over_a_folder_has_nothing_of_the_one_before(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = FolderTask(qtbot, monkeypatch)
    run, view = task.run, task.view
    first, second, nothing = (tmp_path / name for name in ("first", "second", "nothing"))
    for folder, count in ((first, 2), (second, 3), (nothing, 0)):
        folder.mkdir()
        for number in range(count):
            photograph(folder / f"{folder.name}_{number}.png", number)
    (first / "zzz.png").write_bytes(b"no image")
    task.use("mild", "strong")
    run.start(first)
    task.answer(0.01, "it broke")
    task.answer(0.02, (0.01, "it broke again"))
    task.wait()
    state = task.state()
    assert "zzz.png" in state["note"]
    assert state["skipped"][0] in state["note"]
    assert "B strong failed on 2 images: it broke again" in state["note"]
    assert {key: state[key] for key in state if key not in ("note", "skipped")} == {
        "rows": ["first_0.png", "first_1.png"],
        "failed": [[False, True], [False, True]],
        "paths": ["first_0.png", "first_1.png"],
        "kept": [("first_0.png", ["A"]), ("first_1.png", ["A"])],
        "failures": {"B strong": (2, "it broke again")},
        "problem": "",
        "place": (3, 3, False),
        "names": {"A": "A mild", "B": "B strong"},
        "documents": {"A mild": "mild.xml", "B strong": "strong.xml"},
        "columns": ["A mild", "B strong"],
        "table": ["first_0.png", "first_1.png", "mean", "deviation"],
        "buttons": (True, False),
        "saved": {True},
        "plot": True,
    }
    task.use("mild", "strong")  # the same names
    run.start(second)
    begun = {
        "rows": [],
        "failed": [],
        "paths": [],
        "kept": [],
        "failures": {},
        "skipped": [],
        "problem": "",
        "place": (0, 3, True),
        "names": {"A": "A mild", "B": "B strong"},
        "documents": {},
        "columns": ["A mild", "B strong"],
        "table": [],
        "note": "",
        "buttons": (False, True),
        "saved": {False},
        "plot": False,
    }
    assert task.state() == begun
    task.answer(0.01, 0.03)
    task.answer("out of memory", 0.02)
    task.answer(0.01, None)  # without a reason
    task.wait()
    state = task.state()
    assert state["failed"] == [[False, False], [True, False], [False, True]]
    assert [row.figures[2].failure for row in run.rows] == ["", "", "it has no result"]
    assert state["kept"] == [("second_0.png", ["A", "B"]), ("second_1.png", ["B"]), ("second_2.png", ["A"])]
    assert (state["failures"], state["skipped"]) == ({"A mild": (1, "out of memory")}, [])
    assert state["note"] == "A mild failed on 1 images: out of memory"
    times = [[figure.milliseconds for figure in row.figures[1:]] for row in run.rows]
    assert [times[0], times[1][1], times[2][0]] == [[5.0, 6.0], 6.0, 5.0]
    assert np.isnan([times[1][0], times[2][1]]).all()
    task.use("mild", "!gone", "other")
    run.start(second)
    assert (task.state()["failures"], task.state()["columns"]) == ({}, ["A mild", "C other"])
    for _ in range(3):
        task.answer(0.02, None, 0.01)
    task.wait()
    state = task.state()
    assert state["names"] == {"A": "A mild", "C": "C other"}
    assert state["documents"] == {"A mild": "mild.xml", "C other": "other.xml"}
    assert [kept[1] for kept in state["kept"]] == [["A", "C"]] * 3
    assert state["note"].startswith("3 images; deviation of PSNR up to ")
    times = [[figure.milliseconds for figure in row.figures[1:]] for row in run.rows]
    assert times == [[5.0, 7.0]] * 3
    task.use("!gone", "!away")
    run.start(second)
    empty = begun | {"columns": [], "names": {}, "buttons": (True, False), "problem": "!gone cannot be read."}
    assert task.state() == empty | {"note": "!gone cannot be read.", "place": (0, 0, False)}
    task.use("mild", "strong")
    run.start(nothing)
    state = task.state()
    assert (state["place"], state["rows"], state["note"]) == ((0, 0, False), [], state["problem"])
    assert "nothing" in state["problem"]
    run.start(second)
    assert task.state() == begun
    task.answer(0.01, 0.02)
    view.cancel_button.click()
    state = task.state()
    assert (state["rows"], state["place"], state["saved"]) == (["second_0.png"], (1, 3, False), {True})
    assert state["note"].startswith("1 image; measured against")
    task.wait()
    assert task.view.plot.image is not None


def test_a_folder_has_other_conditions_after_each_change_of_them(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report leaves the folder's table out unless noise, seed, clean image and variants are those of the comparison."""
    from app.ui.compare.folder_run import conditions_of

    task = FolderTask(qtbot, monkeypatch)
    model, run = task.model, task.run
    photograph(tmp_path / "image.png")
    task.use("mild", "strong")
    run.start(tmp_path)
    variants = list(task.variants)
    for change, back in (
        ({"noise": NoiseChoice(scale=0.5)}, {"noise": model.noise}),
        ({"noise": NoiseChoice(seed=4)}, {"noise": model.noise}),
        ({"noise": NoiseChoice("")}, {"noise": model.noise}),
        ({"clean_file": tmp_path / "image.png"}, {"clean_file": None}),
    ):
        assert run.conditions == conditions_of(model, variants)
        for name, value in change.items():
            setattr(model, name, value)
        assert run.conditions != conditions_of(model, variants)
        for name, value in back.items():
            setattr(model, name, value)
    assert run.conditions != conditions_of(model, variants[::-1])
    assert run.conditions != conditions_of(model, [*variants, None])
    run.cancel()


# --- votes -----------------------------------------------------------------------------------------------------------------


class Voting:
    """The tab of the vote over a model and a folder that have results of other networks."""

    def __init__(self, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
        self.model = SideModel(default_registry())
        self.run = FolderRun(self.model, self.model)
        self.view = shown(qtbot, VoteView(self.model, self.run), 900, 300)
        self.model.setParent(self.view)
        self.begun: list[tuple[list[VoteTrial], list[Any]]] = []
        self.view.begun.connect(lambda trials, pictures: self.begun.append((trials, pictures)))
        monkeypatch.setattr("app.ui.compare.vote_view.SystemRandom", lambda: Random(3))

    def compare(self, *names: str) -> None:
        """Results of the image that is shown."""
        model = self.model
        model.picture = Path("shown.png")
        model.choices = [VariantChoice(Path(f"{name}.xml")) for name in names]
        model.compared = [
            Variant(f"{'ABCD'[i]} {name}", OpenRequest(name), "in", "out", 3, f"{name}.xml", "0" * 64)
            for i, name in enumerate(names)
        ]
        image = np.zeros((1, 3, 30, 40), np.float32)
        model.made = {"ABCD"[i]: Made(image, 1.0) for i in range(len(names))}
        model.colours = {key: np.zeros((30, 40), np.uint32) for key in model.made}
        model.finished.emit()

    def keep(self, names: dict[str, str], *images: str) -> None:
        """Results of the folder's images: the letters of the variants after a colon, if only some have a result."""
        pixels = np.ones((20, 20), np.uint32)
        self.run.names = names
        parts = [image.partition(":") for image in images]
        self.run.kept = [Kept(name, dict.fromkeys(letters or names, pixels)) for name, _, letters in parts]
        self.run.provenance = {name: Provenance(f"{name[2:]}.xml", "0" * 64) for name in names.values()}
        self.run.finished.emit()

    def vote(self, *answers: str) -> list[str]:
        """Begin, and answer each trial; the first column of the table."""
        before = len(self.begun)
        self.view.start_button.click()
        assert len(self.begun) == before + 1
        trials = self.begun[-1][0]
        self.view.show_votes([Vote(t, a, 1.0) for t, a in zip(trials, answers, strict=False)])
        return [self.view.table.item(row, 0).text() for row in range(self.view.table.rowCount())]

    def saved(self, path: Path) -> tuple[list[str], list[str]]:
        """The networks and the images that a file of the votes names."""
        self.view.save(path)
        found = json.loads(path.read_text())
        return (
            [origin["document"] for origin in found["provenance"].values()],
            sorted({vote["image"] for vote in found["votes"]}),
        )


def test_a_vote_is_about_what_it_was_begun_with(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, images and networks of the votes on the shown image and on a folder that was run with other networks."""
    voting = Voting(qtbot, monkeypatch)
    view = voting.view
    saves = list(view.save_buttons.values())
    view.count.setValue(4)
    first = "Compare two variants first."
    assert (view.start_button.isEnabled(), view.note.text()) == (False, first)
    voting.keep({"A": "A old", "B": "B older"}, "x.png", "y.png")  # nothing is compared on an image
    assert view.start_button.isEnabled()
    assert view.pictures.currentIndex() == 0
    view.start_button.click()
    assert (voting.begun, view.note.text()) == ([], first)
    view.pictures.setCurrentIndex(1)
    assert voting.vote(LEFT, LEFT, EQUAL) == ["A old / B older"]
    assert all(button.isEnabled() for button in saves)
    assert voting.saved(tmp_path / "1.json") == (["old.xml", "older.xml"], ["x.png", "y.png"])
    voting.compare("new", "newer")
    assert view.pictures.currentIndex() == 1
    assert view.table.item(0, 0).text() == "A old / B older"  # as long as nobody votes again
    assert voting.saved(tmp_path / "2.json") == (["old.xml", "older.xml"], ["x.png", "y.png"])
    view.pictures.setCurrentIndex(0)
    assert voting.vote(LEFT, RIGHT) == ["A new / B newer"]
    assert len(view.votes) == 2
    assert voting.saved(tmp_path / "3.json") == (["new.xml", "newer.xml"], ["shown.png"])
    view.pictures.setCurrentIndex(1)
    assert voting.vote(EQUAL, EQUAL, EQUAL, EQUAL) == ["A old / B older"]
    assert [view.table.item(0, column).text() for column in range(1, 4)] == ["0", "0", "4"]
    voting.keep({"A": "A old", "B": "B older", "C": "C best"}, "x.png", "y.png:AC", "z.png")
    assert voting.vote(LEFT) == ["A old / C best"]  # B has no result of one of the images
    voting.keep({"A": "A old", "B": "B older"}, "x.png:A", "y.png:B")
    count = len(voting.begun)
    view.start_button.click()
    assert (len(voting.begun), view.note.text()) == (count, first)
    voting.run.kept = []
    voting.run.finished.emit()
    assert (view.pictures.currentIndex(), view.pictures.itemText(1)) == (0, "a folder (run over one first)")
    view.show_votes([])
    assert (view.table.rowCount(), [button.isEnabled() for button in saves]) == (0, [False] * len(saves))
    voting.model.made = {}
    voting.model.finished.emit()
    assert (view.start_button.isEnabled(), view.note.text(), view.start_button.toolTip()) == (False, first, first)


def test_a_vote_begins_anew(qtbot: QtBot) -> None:
    """Progress, answers, zoom and the part of each image, of a vote that was stopped and of the next one."""
    page = shown(qtbot, VotePage(), 700, 400)
    QTest.qWaitForWindowActive(page)
    numbers = np.arange(60 * 80, dtype=np.uint32).reshape(60, 80)
    pictures = [{"A": numbers, "B": numbers + 5000}, {"A": numbers + 10000, "B": numbers + 15000}]
    whole = [VoteTrial(0, "A", "B"), VoteTrial(1, "B", "A"), VoteTrial(0, "B", "A")]
    parts = [VoteTrial(1, "A", "B", (50, 10, 20)), VoteTrial(0, "B", "A", (0, 30, 30))]
    ended: list[int] = []
    page.ended.connect(lambda: ended.append(len(page.votes)))

    def state() -> tuple[int, int, list[tuple[int, int, int, int]]]:
        """Progress, and what is on the left and on the right: width, height, and the color at (3, 4)."""
        images = [page.grid.panes[name].image for name in "12"]
        found = [(i.width(), i.height(), i.pixel(3, 4) & 0xFFFFFF) for i in images if i is not None]
        return page.progress.value(), page.progress.maximum(), found  # type: ignore[return-value]

    at = 4 * 80 + 3
    page.begin(whole, pictures)
    assert state() == (0, 3, [(80, 60, at), (80, 60, at + 5000)])
    page.grid.panes["1"].set_zoom(3.0)
    assert page.grid.panes["2"].zoom == pytest.approx(3.0)
    page.answers[LEFT].click()
    assert state() == (1, 3, [(80, 60, at + 15000), (80, 60, at + 10000)])
    assert {pane.zoom for pane in page.grid.panes.values()} == {3.0}  # the same place of the next image
    page.stop.click()
    assert (ended, len(page.votes)) == ([1], 1)
    page.begin(parts, pictures)
    assert all(pane.view.fitted for pane in page.grid.panes.values())
    assert (page.votes, page.trial) == ([], parts[0])
    first, second = (10 + 4) * 80 + 53, (30 + 4) * 80 + 3
    assert state() == (0, 2, [(20, 20, first + 10000), (20, 20, first + 15000)])
    qtbot.keyClick(page.grid.panes["1"], Qt.Key.Key_2)
    assert state() == (1, 2, [(30, 30, second + 5000), (30, 30, second)])
    qtbot.keyClick(page.grid.panes["2"], Qt.Key.Key_0)
    assert (ended, [vote.answer for vote in page.votes]) == ([1, 2], [RIGHT, EQUAL])
    assert page.progress.value() == 2
    page.answer(LEFT)  # too late
    assert (ended, len(page.votes)) == ([1, 2], 2)


def test_the_plot_is_of_the_latest_run_and_theme(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if another run ends, or the theme changes, while a plot is drawn."""
    task = FolderTask(qtbot, monkeypatch)
    run, view = task.run, task.view
    works: list[object] = []

    class Plotting:
        running = False

        def start(self, work: object) -> None:
            self.running = True
            works.append(work)

    plotting = Plotting()
    monkeypatch.setattr(view, "_plotting", plotting)

    def picture(width: int) -> bytes:
        data = QBuffer()
        data.open(QIODevice.OpenModeFlag.WriteOnly)
        QImage(width, 4, QImage.Format.Format_RGB32).save(data, "PNG")
        return bytes(data.data().data())

    def came(width: int) -> int | None:
        """The width of the plot that is shown after one came."""
        plotting.running = False
        view._on_plotted(picture(width))
        return view.plot.image.width() if view.plot.image is not None else None

    def finish(name: str) -> None:
        run.columns, run.rows = ["input", "A a"], [Row(name, "", (), (4, 6))]
        run.started.emit()
        run.finished.emit()

    finish("first.png")
    assert (len(works), view.plot.image, view.plot._empty) == (1, None, "The plot is being drawn …")
    finish("second.png")  # while the first one is drawn
    assert len(works) == 1
    assert came(10) is None
    assert len(works) == 2
    assert came(20) == 20
    assert len(works) == 2
    theme.changes().changed.emit()
    assert len(works) == 3
    theme.changes().changed.emit()
    theme.changes().changed.emit()
    assert (came(30), len(works)) == (30, 4)  # in the colors of the last theme
    assert (came(40), len(works)) == (40, 4)
    run.rows = []
    run.started.emit()
    theme.changes().changed.emit()
    assert (view.plot.image, view.plot._empty, len(works)) == (None, "Run over a folder to see the plot.", 4)


def test_panes_have_the_titles_the_order_and_the_place_of_the_present_images(qtbot: QtBot) -> None:
    grid = shown(qtbot, PictureGrid("grid", "nothing yet"), 600, 400)
    image = QImage(40, 30, QImage.Format.Format_RGB32)
    image.fill(0xFF336699)

    def state() -> list[tuple[str, str, bool]]:
        """The title of each pane from left to right, then down, its key, and whether the whole image is seen."""
        places = {key: (pane.y(), pane.x()) for key, pane in grid.panes.items()}
        keys = sorted(places, key=places.__getitem__)
        assert keys == list(grid.panes)
        return [(grid.panes[key].accessibleName(), key, grid.panes[key].view.fitted) for key in keys]

    def show(*keys: str, title: str = "net") -> list[tuple[str, str, bool]]:
        grid.show_keys(keys, {key: f"{key} {title}" for key in keys})
        for key in keys:
            grid.show_image(key, image, [])
        return state()

    assert show("input", "A", "B") == [("input net", "input", True), ("A net", "A", True), ("B net", "B", True)]
    grid.panes["A"].set_zoom(2.0)
    assert {fitted for *_, fitted in state()} == {False}
    assert show("A", "B", title="other") == [("A other", "A", False), ("B other", "B", False)]
    found = show("input", "clean", "A", "B", "C")  # what comes back is at the same place
    assert [key for _, key, _ in found] == ["input", "clean", "A", "B", "C"]
    assert {(title.endswith(" net"), fitted) for title, _, fitted in found} == {(True, False)}
    assert {pane.zoom for pane in grid.panes.values()} == {2.0}
    assert [key for _, key, _ in show("B", "A")] == ["B", "A"]
    grid.forget_place()
    grid.show_image("A", None, [])
    grid.show_image("A", image, [])
    assert grid.panes["A"].view.fitted
