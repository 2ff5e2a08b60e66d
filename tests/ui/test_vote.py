"""The blind vote in the window: what is hidden, keys, results and files."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.gui

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from engine_here import EngineHere
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel, QPushButton, QTableWidget, QWidget
from pytestqt.qtbot import QtBot
from side_kit import WAIT, Side, photograph

from app.reports.votes import EQUAL, LEFT, RIGHT
from app.ui.compare import runner
from app.ui.widgets.render import picture_pixels


@pytest.fixture
def side(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Side]:
    monkeypatch.setattr(runner, "EngineClient", EngineHere)
    made = Side(qtbot, tmp_path)
    yield made
    made.window.close()
    made.window.deleteLater()


def start(side: Side, count: int) -> None:
    side.window.tabs.setCurrentWidget(side.window.voting)
    side.window.voting.count.setValue(count)
    side.qtbot.mouseClick(side.window.voting.start_button, Qt.MouseButton.LeftButton)


def words(widget: QWidget) -> str:
    """Everything that can be read of what is seen, tooltips and names for screen readers included."""
    seen = [w for w in [widget, *widget.findChildren(QWidget)] if w.isVisible()]
    found = [widget.windowTitle()]
    for each in seen:
        found += [each.toolTip(), each.accessibleName(), each.objectName()]
        if isinstance(each, QLabel | QPushButton):
            found.append(each.text())
        found += [str(overlay) for overlay in getattr(each, "overlays", ())]
    return "\n".join(found)


def test_nothing_tells_which_is_which_while_voting(side: Side) -> None:
    side.begin()
    assert "smooth" in words(side.window)
    start(side, 4)
    said = words(side.window)
    for secret in ("same", "smooth", "PSNR", "dB", "SSIM", "side.grid.A", "gaussian"):
        assert secret not in said
    assert not any(table.isVisible() for table in side.window.findChildren(QTableWidget))
    side.qtbot.keyClick(side.window, Qt.Key.Key_S)  # the other keys are off
    side.qtbot.keyClick(side.window, Qt.Key.Key_R)
    assert side.window.stack.currentWidget() is side.window.vote


def test_what_stands_left_is_what_the_trial_says(side: Side) -> None:
    side.begin()
    start(side, 6)
    vote = side.window.vote
    for _ in range(6):
        trial = vote.trial
        assert trial is not None
        for pane, key in (("1", trial.left), ("2", trial.right)):
            image = vote.grid.panes[pane].image
            assert image is not None
            expected = picture_pixels(side.model.made[key].picture[0])
            assert QColor(image.pixel(40, 30)) == QColor(int(expected[30, 40]))
        side.qtbot.keyClick(vote.grid.panes["1"], Qt.Key.Key_1)
    assert len(vote.votes) == 6


def test_keys_vote_and_the_table_counts_for_variants(side: Side) -> None:
    side.begin()
    start(side, 12)
    vote, pane = side.window.vote, side.window.vote.grid.panes["1"]
    for number in range(12):
        trial = vote.trial
        assert trial is not None
        if number < 2:
            side.qtbot.keyClick(pane, Qt.Key.Key_Equal)
        else:  # always for B
            side.qtbot.keyClick(pane, Qt.Key.Key_1 if trial.left == "B" else Qt.Key.Key_2)
    assert [v.answer for v in vote.votes[:2]] == [EQUAL, EQUAL]
    assert {v.answer for v in vote.votes[2:]} <= {LEFT, RIGHT}
    table = side.window.voting.table
    assert table.isVisible()
    texts = [table.item(0, column).text() for column in range(6)]
    assert texts[:5] == ["A same / B smooth", "0", "10", "2", "1"]  # twelve votes on one image are one
    assert "repeated views count once" in texts[5]
    side.window.voting.save(side.folder / "votes.json")
    found = json.loads((side.folder / "votes.json").read_text())
    assert found["pairs"][0]["b_preferred"] == 10
    assert found["provenance"]["B smooth"]["document"] == "smooth.xml"
    side.window.voting.save(side.folder / "votes.csv")
    assert len((side.folder / "votes.csv").read_text().splitlines()) == 13
    assert "smooth" in words(side.window)  # names are back
    side.qtbot.keyClick(side.window, Qt.Key.Key_S)
    assert side.window.pictures.split.isVisible()


def test_it_can_be_stopped_and_counts_what_was_given(side: Side) -> None:
    side.begin()
    start(side, 10)
    vote = side.window.vote
    side.qtbot.mouseClick(vote.answers[LEFT], Qt.MouseButton.LeftButton)
    side.qtbot.keyClick(vote.grid.panes["2"], Qt.Key.Key_Escape)
    assert side.window.isVisible()
    assert side.window.stack.currentIndex() == 0
    assert len(side.window.voting.votes) == 1
    assert "not significant" in side.window.voting.table.item(0, 5).text()


def test_squares_of_the_folder_s_pictures(side: Side) -> None:
    side.begin()
    photos = side.folder / "photos"
    photos.mkdir()
    for index in range(2):
        photograph(photos / f"{index}.png", index, (400, 300))
    side.window.folder.folder.setText(str(photos))
    side.window.folder.start()
    side.qtbot.waitUntil(lambda: not side.window.folder_run.running, timeout=WAIT)
    voting = side.window.voting
    voting.pictures.setCurrentIndex(1)
    voting.part.setCurrentIndex(1)
    start(side, 8)
    vote = side.window.vote
    pictures = set()
    for _ in range(8):
        trial = vote.trial
        assert trial is not None
        assert trial.square is not None
        x, y, length = trial.square
        image = vote.grid.panes["2"].image
        assert image is not None
        assert (image.width(), image.height()) == (length, length) == (256, 256)
        expected = side.window.folder_run.kept[trial.picture].pixels[trial.right]
        assert np.uint32(image.pixel(5, 6)) == expected[y + 6, x + 5]
        pictures.add(trial.picture)
        side.qtbot.keyClick(vote.grid.panes["1"], Qt.Key.Key_0)
    assert pictures == {0, 1}


def test_before_there_is_anything_to_vote_on_it_says_so(side: Side) -> None:
    side.window.show()
    side.window.tabs.setCurrentWidget(side.window.voting)
    assert not side.window.voting.start_button.isEnabled()
    assert "Compare two variants first" in side.window.voting.note.text()
