"""What is voted on, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random, SystemRandom

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QSpinBox,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.reports.votes import VOTES, Vote, VoteTrial, make_trials, results
from app.ui.compare.folder_run import FolderRun
from app.ui.compare.model import SideModel
from app.ui.widgets import theme
from app.ui.widgets.file_output import ask_path, report_result
from app.ui.widgets.render import Pixels
from designer.runtime.provenance import Provenance
from designer.texts import tr

SQUARE = 256
SEEDS = 2**31


class VoteView(QWidget):
    """The tab of the vote. `begun` carries the trials and the images that they are about."""

    begun = Signal(object, object)

    def __init__(self, model: SideModel, run: FolderRun, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("side.voting")
        self.setAccessibleName(tr("Blind vote"))
        self._model, self._run = model, run
        self.votes: list[Vote] = []
        self._names: dict[str, str] = {}
        self._titles: list[str] = []
        self._seed = 0
        self._origin: dict[str, Provenance] = {}  # of what is voted on
        form = self._make_form()
        self._make_table()
        self._lay_out(form)
        for sign in (model.started, model.finished, model.pictures_changed, run.started, run.finished):
            sign.connect(self.refresh)
        self.refresh()

    def _make_form(self) -> QWidget:
        self.pictures = QComboBox()
        self.pictures.setObjectName("side.voting.pictures")
        self.pictures.setAccessibleName(tr("Images to vote on"))
        self.part = QComboBox()
        self.part.setObjectName("side.voting.part")
        self.part.setAccessibleName(tr("Part of the images"))
        self.part.addItem(tr("whole images"), 0)
        self.part.addItem(tr("random squares of {side} pixels", side=SQUARE), SQUARE)
        self.count = QSpinBox()
        self.count.setObjectName("side.voting.count")
        self.count.setAccessibleName(tr("Number of votes"))
        self.count.setRange(1, 999)
        self.count.setValue(20)
        self.count.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.start_button = QPushButton(tr("Start Blind Vote"))
        self.start_button.setObjectName("side.voting.start")
        self.start_button.setAccessibleName(tr("Start the blind vote"))
        self.start_button.clicked.connect(self.start)
        self.note = QLabel()
        self.note.setObjectName("side.voting.note")
        self.note.setWordWrap(True)
        form = QFormLayout()
        form.addRow(tr("Images"), self.pictures)
        form.addRow(tr("Shown"), self.part)
        form.addRow(tr("Votes"), self.count)
        form.addRow(self.start_button)
        form.addRow(self.note)
        left = QWidget()
        left.setLayout(form)
        left.setFixedWidth(320)
        return left

    def _make_table(self) -> None:
        self.table = QTableWidget(0, 6)
        self.table.setObjectName("side.voting.table")
        self.table.setAccessibleName(tr("Results of the vote"))
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 6)
        self.table.setShowGrid(False)
        titles = (tr("Pair"), tr("First preferred"), tr("Second preferred"), tr("No difference"), "p", tr("Reading"))
        for column, title in enumerate(titles):
            item = QTableWidgetItem(title)
            item.setTextAlignment(_RIGHT if 0 < column < 5 else _LEFT)
            self.table.setHorizontalHeaderItem(column, item)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(5, QHeaderView.ResizeMode.Stretch)

    def _lay_out(self, left: QWidget) -> None:
        self.method = QLabel(
            tr(
                "p: two-sided sign test, votes without a preference left out. Stopping when p looks good makes it too small."
            )
        )
        self.method.setObjectName("side.voting.method")
        self.method.setWordWrap(True)
        self.save_buttons: dict[str, QPushButton] = {}
        buttons = QHBoxLayout()
        buttons.addWidget(self.method, 1)
        for kind in (format.suffixes[0].removeprefix(".") for format in VOTES.writable):
            button = QPushButton(f"{kind.upper()}...")
            button.setObjectName(f"side.voting.{kind}")
            button.setAccessibleName(tr("Save the votes as {kind}", kind=kind.upper()))
            button.setToolTip(tr("Save the votes as {kind}", kind=kind.upper()))
            button.clicked.connect(partial(self._ask_save, kind))
            buttons.addWidget(button)
            self.save_buttons[kind] = button
        right = QVBoxLayout()
        right.addWidget(self.table, 1)
        right.addLayout(buttons)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 4, 0, 0)
        row.addWidget(left)
        row.addLayout(right, 1)

    # --- before the vote ---------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """What could be voted on now."""
        chosen = self.pictures.currentData()
        kept = len(self._run.kept)
        self.pictures.clear()
        self.pictures.addItem(tr("the image that is shown"), "one")
        text = tr("the {count} images of the folder", count=kept) if kept else tr("a folder (run over one first)")
        self.pictures.addItem(text, "folder")
        item = self.pictures.model().item(1)  # type: ignore[attr-defined]
        item.setEnabled(bool(kept))
        self.pictures.setCurrentIndex(1 if chosen == "folder" and kept else 0)
        why = self._missing()
        self.start_button.setEnabled(not why)
        self.start_button.setToolTip(why or tr("Names and metrics are hidden until the end"))
        self.note.setText(why or tr("Names and metrics are hidden until the end. Keys: 1, 2, = and Esc."))
        for button in self.save_buttons.values():
            button.setEnabled(bool(self.votes))

    def _missing(self) -> str:
        if self._model.busy or self._run.running:
            return tr("A comparison is running: wait until it is finished.")
        if len(self._model.made) < 2 and not self._run.kept:
            return tr("Compare two variants first.")
        return ""

    def start(self) -> None:
        """Draw the trials."""
        if self.pictures.currentData() == "folder":
            shown: list[tuple[str, Mapping[str, Pixels]]] = [(kept.name, kept.pixels) for kept in self._run.kept]
            origin, names = dict(self._run.provenance), self._run.names
        else:
            made = {key: self._model.colours[key] for key in self._model.made}
            shown = [(self._model.picture.name if self._model.picture is not None else "", made)]
            origin, names = self._model.provenance(), {key: self._model.title(key) for key in made}
        keys = sorted(set.intersection(*(set(pixels) for _, pixels in shown)))
        if len(keys) < 2:
            self.note.setText(tr("Compare two variants first."))
            return
        self._seed = SystemRandom().randrange(SEEDS)
        self._names = {key: names[key] for key in keys}
        self._titles = [name for name, _ in shown]
        self._origin = origin
        sizes = [next(iter(pixels.values())).shape[::-1] for _, pixels in shown]
        trials: list[VoteTrial] = make_trials(
            keys, sizes, self.count.value(), int(self.part.currentData()), Random(self._seed)
        )
        self.begun.emit(trials, [pixels for _, pixels in shown])

    # --- after it ----------------------------------------------------------------------------------------------

    def show_votes(self, votes: list[Vote]) -> None:
        """The table of what was voted."""
        self.votes = list(votes)
        found = results(self.votes)
        self.table.setRowCount(len(found))
        for row, pair in enumerate(found):
            first, second = self._names[pair.a], self._names[pair.b]
            reading = tr("not significant at 5 %")
            if pair.views_a + pair.views_b < pair.wins_a + pair.wins_b:
                reading = tr("not significant at 5 %: repeated views count once")
            if pair.p < 0.05:
                better = first if pair.views_a > pair.views_b else second
                reading = tr("{name} is preferred (p < 0.05)", name=better)
            texts = (
                f"{first} / {second}",
                str(pair.wins_a),
                str(pair.wins_b),
                str(pair.ties),
                f"{pair.p:.3g}",
                reading,
            )
            for column, text in enumerate(texts):
                item = QTableWidgetItem(text)
                number = 0 < column < 5
                item.setFont(theme.mono_font() if number else self.font())
                item.setTextAlignment(_RIGHT if number else _LEFT)
                self.table.setItem(row, column, item)
        self.refresh()

    def _ask_save(self, kind: str, _checked: bool = False) -> None:
        path = ask_path(self, tr("Save"), f"votes.{kind}", VOTES)
        if path is not None:
            self.save(path)

    def save(self, path: Path) -> None:
        """Write the votes in the format of the suffix."""
        report_result(
            lambda: VOTES.writer(path)(path, self.votes, self._titles, self._names, self._seed, self._origin),
            lambda _good, text: self.note.setText(text),
            tr("Saved {name}", name=path.name),
        )


_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
