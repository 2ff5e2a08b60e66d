"""The figures of a comparison: PSNR, SSIM, time, the worst regions, and the values under the pointer."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.reports.comparison import LETTERS, ms_text, psnr_text, ssim_text
from app.ui.compare.model import CLEAN, INPUT, SideModel, region_psnr
from app.ui.compare.pictures import values_at
from app.ui.compare.variants import VariantChoice
from app.ui.widgets import theme
from designer.texts import tr
from designer.units import numbers

BEST = "★ "
PICTURE, PSNR, SSIM, TIME, REGION, VALUES = range(6)


class MetricsView(QWidget):
    """A table with one row per image. `region_wanted` has the square to mark: (left, top) or None, and its label."""

    region_wanted = Signal(object, str)

    def __init__(self, model: SideModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("side.figures")
        self.setAccessibleName(tr("Metrics"))
        self._model = model
        self._keys: list[str] = []
        self._choices: list[VariantChoice] = []  # of the rows
        self._place: tuple[int, int] | None = None
        self._region = -1
        self._make_table()
        self._lay_out()
        model.started.connect(self._on_started)
        model.pictures_changed.connect(self.refresh)
        model.measured_changed.connect(self.refresh)
        model.status_changed.connect(lambda _index: self.refresh())
        self.refresh()

    def _make_table(self) -> None:
        self.table = QTableWidget(0, 6)
        self.table.setObjectName("side.figures.table")
        self.table.setAccessibleName(tr("Metrics of the variants"))
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 6)
        self.table.setShowGrid(False)
        self.table.setWordWrap(False)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(PICTURE, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(72)
        header.setHighlightSections(False)
        self.table.itemSelectionChanged.connect(self._on_selected)

    def _lay_out(self) -> None:
        self.note = QLabel()
        self.note.setObjectName("side.figures.note")
        self.note.setWordWrap(True)
        self.region = QLabel()
        self.region.setObjectName("side.region")
        self.region.setAccessibleName(tr("Marked region"))
        self.region.setWordWrap(True)
        self.next = QPushButton(tr("Next Worst Region"))
        self.next.setObjectName("side.region.next")
        self.next.setAccessibleName(tr("Next worst region"))
        self.next.setToolTip(
            tr("Mark the next of the squares where the selected variant, or all together, are worst (W)")
        )
        self.next.clicked.connect(lambda: self.step(1))
        self.back = QPushButton(tr("Previous"))
        self.back.setObjectName("side.region.back")
        self.back.setAccessibleName(tr("Previous worst region"))
        self.back.setToolTip(tr("Mark the one before (Shift+W)"))
        self.back.clicked.connect(lambda: self.step(-1))
        buttons = QVBoxLayout()
        buttons.addWidget(self.next)
        buttons.addWidget(self.back)
        buttons.addWidget(self.region)
        buttons.addStretch(1)
        buttons.addWidget(self.note)
        side = QWidget()
        side.setLayout(buttons)
        side.setFixedWidth(220)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.table, 1)
        row.addWidget(side)

    # --- the table ---------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """All cells anew."""
        model = self._model
        keys = [INPUT, *([CLEAN] if model.knows_clean else []), *model.keys]
        measured = model.measured
        against = model.title(measured.reference) if measured.reference else ""
        at = self._values_title()
        titles = (tr("Image"), tr("PSNR (dB)"), "SSIM", tr("Time (ms)"), tr("Worst region (dB)"), at)
        table = self.table
        chosen = self._follow(self._key())
        self._keys, self._choices = keys, list(model.choices)
        table.setRowCount(len(keys))
        self._select(chosen)
        for column, title in enumerate(titles):
            item = QTableWidgetItem(title)
            item.setTextAlignment(_LEFT if column == PICTURE else _RIGHT)
            if column == TIME:
                item.setToolTip(tr("Of a second run: the first one after a change also builds the network"))
            table.setHorizontalHeaderItem(column, item)
        for row, key in enumerate(keys):
            for column, text in enumerate(self._texts(key)):
                self._put(row, column, text)
        note = tr("Measured against: {what}. {best}= best", what=against, best=BEST) if against else ""
        if model.noise.kind and model.enlarged is not None:
            note += " " + tr("For a clean image in the size of the results, choose no noise and its file.")
        self.note.setText(note)
        regions = self._regions()
        self.next.setEnabled(bool(regions))
        self.back.setEnabled(bool(regions))

    def _key(self) -> str:
        """The key of the selected row; empty without one."""
        rows = self.table.selectionModel().selectedRows()
        return self._keys[rows[0].row()] if rows else ""

    def _follow(self, key: str) -> str:
        """The key that the image of a key has now; empty if it is gone. A variant that was removed moves the letters of others."""
        now = self._model.choices
        if key not in LETTERS or len(now) >= len(self._choices):
            return key
        before = self._choices[LETTERS.index(key)]
        there = [letter for letter, choice in zip(LETTERS, now, strict=False) if choice is before]
        return key if key in there else next(iter(there), "")

    def _select(self, key: str) -> None:
        """Select the row of a key, or none."""
        if self._key() != key:
            with QSignalBlocker(self.table):
                self.table.clearSelection()
                if key in self._keys:
                    self.table.selectRow(self._keys.index(key))

    def _texts(self, key: str) -> list[str]:
        model, measured = self._model, self._model.measured
        found = measured.figures.get(key)
        if found is None:
            why = ""
            if key in LETTERS:
                index = LETTERS.index(key)
                why = tr("failed") if index < len(model.errors) and model.errors[index] else ""
            return [model.title(key), why or "-", "-", "-", "-", self._values(key)]
        stars = {name: BEST if key in measured.best(name) else "" for name in ("psnr", "ssim")}
        regions = measured.regions.get(key)
        reference, mine = model.pixels(measured.reference), model.pixels(key)
        worst = "-"
        if regions and reference is not None and mine is not None:
            worst = psnr_text(region_psnr(reference, mine, regions[0]))
        if key == measured.reference:
            return [model.title(key), tr("reference"), "-", ms_text(found.milliseconds), "-", self._values(key)]
        return [
            model.title(key),
            f"{stars['psnr']}{psnr_text(found.psnr)}",
            f"{stars['ssim']}{ssim_text(found.ssim)}",
            ms_text(found.milliseconds),
            worst,
            self._values(key),
        ]

    def _values(self, key: str) -> str:
        return "  ".join(text.rjust(6) for text in numbers(values_at(self._model, key, self._place)))

    def _put(self, row: int, column: int, text: str) -> None:
        item = self.table.item(row, column)
        if item is None:
            item = QTableWidgetItem()
            self.table.setItem(row, column, item)
        font = theme.mono_font() if column != PICTURE else self.font()
        font.setBold(text.startswith(BEST))
        item.setFont(font)
        item.setText(text)
        item.setTextAlignment(_LEFT if column == PICTURE else _RIGHT)

    def _values_title(self) -> str:
        place = self._place
        return tr("Value at {x}, {y}", x=place[0], y=place[1]) if place is not None else tr("Value at pointer")

    def probe(self, place: Any) -> None:
        """Show the values of a pixel."""
        self._place = place
        title = self.table.horizontalHeaderItem(VALUES)
        if title is not None:
            title.setText(self._values_title())
        for row, key in enumerate(self._keys):
            self._put(row, VALUES, self._values(key))

    # --- regions -----------------------------------------------------------------------------------------------

    def _selected(self) -> str:
        key = self._key()
        return key if key in self._model.measured.regions else ""

    def _regions(self) -> tuple[tuple[int, int], ...]:
        return self._model.measured.regions.get(self._selected(), ())

    def step(self, by: int) -> None:
        """Mark another of the worst regions."""
        regions = self._regions()
        if not regions:
            return
        self._region = (self._region + by) % len(regions) if self._region >= 0 else 0
        key = self._selected()
        who = self._model.title(key) if key else tr("all variants")
        count = tr("{number} of {count}", number=self._region + 1, count=len(regions))
        x, y = regions[self._region]
        self.region.setText(tr("{count} of {who}: x {x}, y {y}", count=count, who=who, x=x, y=y))
        self.region_wanted.emit((x, y), count)

    def _on_selected(self) -> None:
        self._region = -1
        regions = self._regions()
        self.next.setEnabled(bool(regions))
        self.back.setEnabled(bool(regions))

    def _on_started(self) -> None:
        self._region = -1
        self.region.setText("")
        self.region_wanted.emit(None, "")
        self.refresh()


_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
