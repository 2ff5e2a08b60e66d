"""The table over a folder of images, with mean, deviation and a plot; saved as CSV, JSON or a page."""

from __future__ import annotations

from functools import partial
from math import isfinite
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QMenu,
    QProgressBar,
    QPushButton,
    QSplitter,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

import samples
from app.reports.comparison import Row, deviations, headings, means, summary
from app.reports.comparison_page import COMPARISONS, Inks, plot
from app.ui.compare.folder_run import FolderRun, best
from app.ui.widgets import theme
from app.ui.widgets.background import Background
from app.ui.widgets.elided import ElidedLabel
from app.ui.widgets.file_output import ask_path, write_in_thread
from app.ui.widgets.image_view import ImageView
from app.ui.widgets.tooltips import plain_tip
from app.ui.widgets.typed_path import typed_path
from designer.graph.diagnostics import Diagnostic
from designer.texts import tr, trn

BEST = "★ "


class FolderView(QWidget):
    """One row per image. `picture_wanted` has the one that was double-clicked."""

    picture_wanted = Signal(Path)

    def __init__(self, run: FolderRun, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("side.folder")
        self.setAccessibleName(tr("Folder of images"))
        self._run = run
        self._plotting = Background(self)
        self._plotting.done.connect(self._on_plotted)
        self._plotting.failed.connect(self._on_not_plotted)
        self._plotted: list[Row] = []  # rows of the run whose plot is made
        self._plot_wanted = False
        self.save_buttons: dict[str, QPushButton] = {}
        self._build()
        run.started.connect(self._on_started)
        run.row_added.connect(self._on_row)
        run.finished.connect(self._on_finished)
        theme.changes().changed.connect(self._draw)
        self._show_state()

    def _make_samples(self) -> QPushButton:
        """Our folders, with what the sample networks know of them."""
        button = _button("side.folder.samples", tr("Samples"), tr("Folders of photographs that come with the program"))
        menu = QMenu(button)
        for title, folder in (
            (tr("Training photographs: the sample networks have seen them"), samples.PHOTOGRAPHS),
            (tr("Held out: no sample network has seen them"), samples.HELD_OUT.parent),
        ):
            menu.addAction(title, partial(self.folder.setText, str(folder)))
        button.setMenu(menu)
        return button

    def _build(self) -> None:
        self.folder = QLineEdit(str(samples.PHOTOGRAPHS))
        self.folder.setObjectName("side.folder.path")
        self.folder.setAccessibleName(tr("Folder of images"))
        self.folder.returnPressed.connect(self.start)
        browse = _button("side.folder.browse", tr("Browse..."), tr("Choose a folder of images"))
        browse.clicked.connect(self._browse)
        self.samples = self._make_samples()
        self.start_button = _button("side.folder.start", tr("Run Over Folder"), tr("Compare on every image in it"))
        self.start_button.clicked.connect(self.start)
        self.cancel_button = _button("side.folder.cancel", tr("Cancel"), tr("Stop; the rows that are there stay"))
        self.cancel_button.clicked.connect(self._run.cancel)
        self.progress = QProgressBar()
        self.progress.setObjectName("side.folder.progress")
        self.progress.setAccessibleName(tr("Images that are done"))
        self.progress.setFormat("%v / %m")
        self.progress.setFixedWidth(120)
        bar = QHBoxLayout()
        bar.addWidget(self.folder, 1)
        for widget in (browse, self.samples, self.start_button, self.progress, self.cancel_button):
            bar.addWidget(widget)
        for kind in (format.suffixes[0].removeprefix(".") for format in COMPARISONS.writable):
            button = _button(f"side.folder.{kind}", f"{kind.upper()}...", tr("Save as {kind}", kind=kind.upper()))
            button.clicked.connect(partial(self._ask_save, kind))
            bar.addWidget(button)
            self.save_buttons[kind] = button
        self.note = ElidedLabel()
        self.note.setObjectName("side.folder.note")
        self.note.setAccessibleName(tr("State of the folder's comparison"))
        self.table = QTableWidget(0, 1)
        self.table.setObjectName("side.folder.table")
        self.table.setAccessibleName(tr("Metrics of every image"))
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 6)
        self.table.setShowGrid(False)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.horizontalHeader().setHighlightSections(False)
        self.table.setToolTip(tr("Double-click a row to look at its image"))
        self.table.cellDoubleClicked.connect(self._on_double)
        self.table.horizontalHeader().hide()
        self.plot = ImageView("side.folder.plot", tr("Plot of the metrics"), tr("Run over a folder to see the plot."))
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(self.table)
        split.addWidget(self.plot)
        split.setSizes([500, 500])
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(4)
        column.addLayout(bar)
        column.addWidget(split, 1)
        column.addWidget(self.note)

    # --- actions of the user ------------------------------------------------------------------------------------

    def start(self) -> None:
        self._run.start(typed_path(self.folder.text()))

    def _browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Folder of images"), self.folder.text())
        if folder:
            self.folder.setText(folder)

    def _ask_save(self, kind: str, _checked: bool = False) -> None:
        path = ask_path(self, tr("Save"), f"comparison.{kind}", COMPARISONS)
        if path is not None:
            self.save(path)

    def save(self, path: Path) -> None:
        """Write the comparison in the format of the suffix, in a thread."""
        columns, rows, origin = list(self._run.columns), list(self._run.rows), dict(self._run.provenance)
        title = tr("{names} over {count} images", names=" / ".join(columns[1:]), count=len(rows))
        write_in_thread(
            self,
            lambda: COMPARISONS.writer(path)(path, title, columns, rows, origin),
            lambda _well, text: self.note.setText(text),
            tr("Saved {name}", name=path.name),
        )

    def _on_double(self, row: int, _column: int) -> None:
        if row < len(self._run.paths):
            self.picture_wanted.emit(self._run.paths[row])

    # --- what is shown -----------------------------------------------------------------------------------------

    def _on_started(self) -> None:
        titles = headings(self._run.columns, [])
        self.table.setRowCount(0)
        self.table.setColumnCount(len(titles))
        for column, title in enumerate(titles):
            item = QTableWidgetItem(title.replace(" PSNR (dB)", "\nPSNR (dB)").replace(" (ms)", "\nms"))
            item.setTextAlignment(_LEFT if column == 0 else _RIGHT)
            self.table.setHorizontalHeaderItem(column, item)
        self.table.horizontalHeader().show()
        self.plot.set_empty_text(tr("Run over a folder to see the plot."))  # not of a run before
        self.plot.show_image(None)
        self._show_state()

    def _on_row(self, row: Row) -> None:
        rows = self._run.rows
        self.table.setRowCount(len(rows) + 2)
        texts = list(summary(self._run.columns, rows))
        star = best(row)
        for index in range(len(rows) - 1, len(rows) + 2):
            of_picture = index == len(rows) - 1
            for column, text in enumerate(texts[index]):
                marked = of_picture and star > 0 and column == 1 + 2 * star
                self._put(index, column, f"{BEST}{text}" if marked else text, bold=marked or not of_picture)
        for place, found in enumerate(row.figures):
            item = self.table.item(len(rows) - 1, 1 + 2 * place)
            if item is not None and found.failure:
                item.setToolTip(plain_tip(found.failure))
        self._mark_mean()
        self.table.scrollToBottom()
        self._show_state()

    def _mark_mean(self) -> None:
        """The best mean too, so that nobody has to compare numbers of a long table."""
        rows = self._run.rows
        counts = {sum(isfinite(row.figures[column].psnr) for row in rows) for column in range(1, len(rows[0].figures))}
        if len(counts - {0}) > 1:  # means over other images are not compared
            return
        found = Row("", "", means(rows), (0, 0))
        star = best(found)
        if star > 0:
            item = self.table.item(len(rows), 1 + 2 * star)
            if item is not None:
                item.setText(f"{BEST}{item.text()}")

    def _put(self, row: int, column: int, text: str, *, bold: bool) -> None:
        item = QTableWidgetItem(text)
        font = theme.mono_font() if column else self.font()
        font.setBold(bold)
        item.setFont(font)
        item.setTextAlignment(_RIGHT if column else _LEFT)
        self.table.setItem(row, column, item)

    def _on_finished(self) -> None:
        self._show_state()
        self._draw()

    def _show_state(self) -> None:
        run = self._run
        self.start_button.setEnabled(not run.running)
        self.cancel_button.setEnabled(run.running)
        self.progress.setVisible(run.running)
        self.progress.setRange(0, max(run.total, 1))
        self.progress.setValue(run.done)
        for button in self.save_buttons.values():
            button.setEnabled(bool(run.rows) and not run.running)
        if run.problem:
            self.note.setText(run.problem)
        elif run.skipped or run.failures:
            left_out = [tr("Left out: {what}", what="; ".join(run.skipped))] if run.skipped else []
            failed = [
                tr("{name} failed on {count} images: {why}", name=name, count=count, why=why)
                for name, (count, why) in run.failures.items()
            ]
            self.note.setText("  ".join([*failed, *left_out]))
        elif run.rows and not run.running:
            spread = max((f.psnr for f in deviations(run.rows)[1:]), default=0.0)
            text = trn("1 image", "{count} images", len(run.rows))
            text += tr("; deviation of PSNR up to {spread} dB", spread=f"{spread:.2f}") if len(run.rows) > 1 else ""
            references = list(dict.fromkeys(row.reference for row in run.rows if row.reference))
            if references:
                text += tr("; measured against {what}", what=", ".join(references))
            scale = max(row.scale for row in run.rows)
            if scale > 1:
                text += tr("; the input is enlarged {scale} times by bicubic interpolation", scale=scale)
            if run.paths and run.paths[0].parent == samples.PHOTOGRAPHS:
                text += tr("; the sample networks were trained on these photographs")
            self.note.setText(text)
        else:
            self.note.setText("")

    def _draw(self) -> None:
        """Make the plot in a thread, in the colors of the theme."""
        run = self._run
        if not run.rows or run.running:
            return
        if self._plotting.running:
            self._plot_wanted = True
            return
        self.plot.set_empty_text(tr("The plot is being drawn …"))
        self._plotted = run.rows
        self._plotting.start(partial(plot, list(run.columns), list(run.rows), _inks(), (7.6, 3.2)))

    def _on_plotted(self, answer: object) -> None:
        assert isinstance(answer, bytes)
        if self._plotted is self._run.rows:  # not of a run before
            self.plot.show_image(QImage.fromData(answer))
        self._draw_if_wanted()

    def _on_not_plotted(self, found: object) -> None:
        assert isinstance(found, tuple)
        assert isinstance(found[0], Diagnostic)
        self.plot.set_empty_text(found[0].message)
        self._draw_if_wanted()

    def _draw_if_wanted(self) -> None:
        if self._plot_wanted:
            self._plot_wanted = False
            self._draw()


def _inks() -> Inks:
    roles: tuple[theme.RoleName, ...] = ("muted", "accent", "positive_alt", "positive", "error")
    columns = tuple(theme.color(role).name() for role in roles)
    return Inks(theme.color("sunken").name(), theme.color("text").name(), theme.color("outline").name(), columns)


def _button(name: str, text: str, tip: str) -> QPushButton:
    button = QPushButton(text)
    button.setObjectName(name)
    button.setAccessibleName(tip)
    button.setToolTip(tip)
    return button


_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
