"""The vote itself: two images without names, three answers. It fills the window, so that nothing gives them away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app.reports.votes import EQUAL, LEFT, RIGHT, Vote, VoteTrial
from app.ui.compare.grid import PictureGrid
from app.ui.widgets.overlays import LabelOverlay
from app.ui.widgets.render import Pixels, to_image
from designer.texts import tr


class VotePage(QWidget):
    """Asks one trial after another. `ended` comes after the last one or when the user stops; `votes` are the answers."""

    ended = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("side.vote")
        self.setAccessibleName(tr("Blind vote"))
        self.votes: list[Vote] = []
        self._trials: Sequence[VoteTrial] = ()
        self._pictures: Sequence[Mapping[str, Pixels]] = ()
        self._since = 0.0
        self.question = QLabel(tr("Which of the two do you prefer?"))
        self.question.setObjectName("side.vote.question")
        self.progress = QProgressBar()
        self.progress.setObjectName("side.vote.progress")
        self.progress.setAccessibleName(tr("Votes given"))
        self.progress.setFormat("%v / %m")
        self.progress.setFixedWidth(160)
        self.stop = QPushButton(tr("Stop Voting"))
        self.stop.setObjectName("side.vote.stop")
        self.stop.setAccessibleName(tr("Stop voting"))
        self.stop.setToolTip(tr("End here; the votes that were given count (Esc)"))
        self.stop.clicked.connect(self.ended)
        head = QHBoxLayout()
        head.addWidget(self.question, 1)
        head.addWidget(self.progress)
        head.addWidget(self.stop)
        self.grid = PictureGrid("side.vote.pictures", "")
        self.answers: dict[str, QPushButton] = {}
        foot = QHBoxLayout()
        foot.addStretch(1)
        for answer, name, text, tip in (
            (LEFT, "left", tr("1: the left one"), tr("The left one is better (1)")),
            (EQUAL, "equal", tr("=: no difference"), tr("Neither is better (= or 0)")),
            (RIGHT, "right", tr("2: the right one"), tr("The right one is better (2)")),
        ):
            button = QPushButton(text)
            button.setObjectName(f"side.vote.{name}")
            button.setAccessibleName(tip)
            button.setToolTip(tip)
            button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            button.setMinimumWidth(160)
            button.clicked.connect(lambda _on=False, a=answer: self.answer(a))
            foot.addWidget(button)
            self.answers[answer] = button
        foot.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.addLayout(head)
        column.addWidget(self.grid, 1)
        column.addLayout(foot)
        for key, answer in (("1", LEFT), ("2", RIGHT), ("=", EQUAL), ("0", EQUAL)):
            shortcut = QShortcut(QKeySequence(key), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(lambda a=answer: self.answer(a))
        leave = QShortcut(QKeySequence("Esc"), self)
        leave.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        leave.activated.connect(self.ended)

    def begin(self, trials: Sequence[VoteTrial], pictures: Sequence[Mapping[str, Pixels]]) -> None:
        """Ask `trials`; `images` hold the colors of each image by the variants' keys."""
        self.votes = []
        self._trials, self._pictures = trials, pictures
        self.progress.setRange(0, len(trials))
        self.grid.forget_place()
        self._show()
        self.grid.panes["1"].setFocus()

    @property
    def trial(self) -> VoteTrial | None:
        """The one that is asked now."""
        return self._trials[len(self.votes)] if len(self.votes) < len(self._trials) else None

    def answer(self, answer: str) -> None:
        trial = self.trial
        if trial is None:
            return
        self.votes.append(Vote(trial, answer, perf_counter() - self._since))
        if self.trial is None:
            self.progress.setValue(len(self.votes))
            self.ended.emit()
        else:
            self._show()

    def _equal(self) -> None:
        self.answer(EQUAL)

    def _show(self) -> None:
        trial = self.trial
        assert trial is not None
        self.progress.setValue(len(self.votes))
        self.grid.show_keys(("1", "2"), {"1": tr("Left image"), "2": tr("Right image")})
        for pane in self.grid.panes.values():
            pane.add_key(Qt.Key.Key_Equal, self._equal)  # elsewhere it zooms
        for name, key in (("1", trial.left), ("2", trial.right)):
            pixels = self._pictures[trial.picture][key]
            if trial.square is not None:
                x, y, side = trial.square
                pixels = np.ascontiguousarray(pixels[y : y + side, x : x + side])
            height, width = pixels.shape
            self.grid.show_image(name, to_image(pixels), [LabelOverlay(name, (0, 0, width, height))])
        self._since = perf_counter()
