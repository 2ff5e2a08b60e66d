"""The bar above compared images, alone: what it sets, and which images can be chosen after others came and went."""

from __future__ import annotations

import itertools
from itertools import permutations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QComboBox, QToolButton
from pytestqt.qtbot import QtBot

from app.ui.compare.mode_bar import ModeBar
from app.ui.compare.model import CLEAN, INPUT
from app.ui.compare.pictures import ViewMode


class Model(QObject):
    started = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = ["A", "B"]
        self.knows_clean = False

    def title(self, key: str) -> str:
        return f"title of {key}"


class View:
    def __init__(self, did: list[object]) -> None:
        self.set_zoom, self.fit = lambda zoom: did.append(("zoom", zoom)), lambda: did.append("fit")


class Pictures(QObject):
    zoom_changed = Signal(float)
    turned = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.mode, self.pair, self.against, self.alone = ViewMode.GRID, ("A", "B"), "", "A"
        self.gain, self.signed, self.with_input, self.with_clean = 4.0, False, True, True
        self.did: list[object] = []
        self.interval = 0

    def set_mode(self, mode: ViewMode) -> None:
        self.mode = mode

    def show_alone(self, key: str) -> None:
        self.alone = key

    def swap(self) -> None:
        self.did.append("swap")

    def refresh(self) -> None:
        self.did.append("refresh")

    def set_turning(self, interval: int) -> None:
        self.interval = interval

    def shown_view(self) -> View:
        return View(self.did)


class Bench:
    def __init__(self, qtbot: QtBot) -> None:
        self.model, self.pictures = Model(), Pictures()
        self.bar = ModeBar(self.model, self.pictures)  # type: ignore[arg-type]
        qtbot.addWidget(self.bar)
        self.model.started.emit()


@pytest.fixture
def bench(qtbot: QtBot) -> Bench:
    return Bench(qtbot)


def choices(box: QComboBox) -> list[tuple[str, str]]:
    return [(box.itemText(n), box.itemData(n)) for n in range(box.count())]


SETS = [(["A", "B"], False), (["A", "B", "C"], True), (["C"], False), (["B", "C"], True)]


@pytest.mark.parametrize("pair", list(permutations(("A", "B", "C", INPUT, CLEAN), 2)))
def test_chosen_images_stay_while_they_are_there(bench: Bench, pair: tuple[str, str]) -> None:
    """Another one, that is not the other of the pair, replaces each that is gone."""
    for keys, clean in SETS:
        for alone in ("A", "C", CLEAN):
            for against in ("", "B", CLEAN):
                bench.model.keys, bench.model.knows_clean = keys, clean
                pictures, bar = bench.pictures, bench.bar
                pictures.pair, pictures.alone, pictures.against = pair, alone, against
                bench.model.started.emit()
                there = [*keys, INPUT, *([CLEAN] * clean)]
                first = pair[0] if pair[0] in there else next(key for key in there if key != pair[1])
                second = pair[1] if pair[1] in there else next(key for key in there if key != first)
                assert pictures.pair == (first, second)
                assert pictures.alone == (alone if alone in there else first)
                assert pictures.against == (against if against in there else "")
                named = [(f"title of {key}", key) for key in there]
                assert choices(bar.first) == choices(bar.second) == named
                assert choices(bar.against) == [("reference", ""), *named]
                chosen = (bar.first.currentData(), bar.second.currentData(), bar.against.currentData())
                assert chosen == (first, second, pictures.against)


def test_every_control_sets_what_it_names(bench: Bench) -> None:
    bar, pictures = bench.bar, bench.pictures
    bar.first.setCurrentIndex(2)
    bar.first.activated.emit(2)
    assert (pictures.pair, pictures.alone) == ((INPUT, "B"), INPUT)
    bar.second.setCurrentIndex(0)
    bar.second.activated.emit(0)
    assert (pictures.pair, pictures.alone) == ((INPUT, "A"), INPUT)
    for mode, button in bar.modes.items():
        button.click()
        assert pictures.mode is mode
        assert [m for m, b in bar.modes.items() if b.isChecked()] == [mode]
        assert [m for m, b in bar.modes.items() if b.font().bold()] == [mode]
        assert [m for m, b in bar.modes.items() if b.font().underline()] == [mode]
        assert bar._options.currentWidget() is bar._pages[mode]
        pictures.did.clear()
        bar.signed.click()
        bar.against.setCurrentIndex(2)
        bar.against.activated.emit(2)
        bar.gain.set_value(pictures.gain + 3)
        bar.gain.changed.emit(bar.gain.value)
        assert bar.gain.value != 4.0
        assert (pictures.signed, pictures.against, pictures.gain) == (bar.signed.isChecked(), "B", bar.gain.value)
        assert pictures.did == ["refresh"] * (3 if mode is ViewMode.DIFFERENCE else 0)
    for box, name in ((bar.with_input, "with_input"), (bar.with_clean, "with_clean")):
        for on in (False, True):
            box.click()
            assert getattr(pictures, name) is on
            assert pictures.did.pop() == "refresh"
    pictures.did.clear()
    for name in ("fit", "one", "two"):
        bar.findChild(QToolButton, f"side.zoom.{name}").click()
    assert pictures.did == ["fit", ("zoom", 1.0), ("zoom", 2.0)]
    for zoom, text in ((0.256, "26 %"), (2.0, "200 %")):
        pictures.zoom_changed.emit(zoom)
        assert bar.zoom_label.text() == text


def test_images_take_turns_in_their_mode_alone_at_the_chosen_rate(bench: Bench) -> None:
    bar, pictures = bench.bar, bench.pictures
    acts = [*(lambda mode=mode: bar.set_mode(mode) for mode in ViewMode), lambda: bar.show_only("B"), bar.swap]
    for act, begun in itertools.product(acts, ViewMode):
        bar.set_mode(begun)
        act()
        assert pictures.interval == 0, "they do not turn by themselves before one asks for it"
        bar.rate.changed.emit(2.0)
        assert pictures.interval == 0
        assert not bar.automatic.isChecked()
    bar.set_mode(ViewMode.GRID)
    pictures.did.clear()
    bar.automatic.click()
    assert pictures.interval == 0
    for act in (lambda: bar.show_only("B"), bar.swap):
        bar.set_mode(ViewMode.GRID)
        assert pictures.interval == 0
        act()
        assert (pictures.mode, pictures.interval) == (ViewMode.TURNS, 500)
    assert (pictures.alone, pictures.did) == ("B", ["swap"])
    bar.rate.set_value(4.0)
    bar.rate.changed.emit(4.0)
    assert pictures.interval == 250
    bar.automatic.click()
    assert pictures.interval == 0
    bar.rate.changed.emit(4.0)
    assert pictures.interval == 0
    pictures.turned.emit("B")
    assert bar.other.toolTip() == "Shown: title of B. Show the other one (X)"


@pytest.mark.parametrize("alone", ["A", "B", "C", INPUT])
def test_the_image_that_is_shown_stays_as_long_as_it_is_of_the_chosen_pair(bench: Bench, alone: str) -> None:
    bench.model.keys = ["A", "B", "C"]
    bench.model.started.emit()
    bar, pictures = bench.bar, bench.pictures
    for first, second in permutations(("A", "B", "C", INPUT), 2):
        for box, key in ((bar.first, first), (bar.second, second)):
            pictures.alone = alone
            box.setCurrentIndex(box.findData(key))
            box.activated.emit(box.currentIndex())
            assert pictures.pair == (bar.first.currentData(), bar.second.currentData())
            assert pictures.alone == (alone if alone in pictures.pair else pictures.pair[0])
