"""Side by Side: a window of its own, because images need room, and its keys are then free of the canvas's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

import samples
from app.reports.comparison import LETTERS
from app.reports.page import PAGES
from app.ui.compare.folder_run import FolderRun, conditions_of
from app.ui.compare.folder_view import FolderView
from app.ui.compare.metrics_view import MetricsView
from app.ui.compare.mode_bar import ModeBar
from app.ui.compare.model import CLEAN, INPUT, MOST, SideModel
from app.ui.compare.pictures import Pictures, ViewMode
from app.ui.compare.report import copy_of, write_comparison
from app.ui.compare.setup import Setup
from app.ui.compare.variants import VariantChoice
from app.ui.compare.vote_page import VotePage
from app.ui.compare.vote_view import VoteView
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.inputs import default_picture, layers_of
from app.ui.widgets import theme
from app.ui.widgets.elided import ElidedLabel
from app.ui.widgets.file_output import ask_path, png_of, write_in_thread
from designer.files.settings import PATTERN
from designer.operators.api import Role
from designer.runtime.images import IMAGES
from designer.texts import tr

SETUP_WIDTH = 300
FIGURES_HEIGHT = 210
FOLDER_SHARE = 0.46  # of the height, for the table and plot of a folder


class SideWindow(QWidget):
    """Holds the parts together. `documents` returns the open networks."""

    def __init__(
        self,
        context: Context,
        documents: Callable[[], list[Document]] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("side")
        self.setAccessibleName(tr("Side by Side"))
        self.setWindowTitle(tr("Side by Side - Layerwright"))
        self._context = context
        self._documents = documents if documents is not None else self._open_document
        self.model = SideModel(context.registry, self)
        self.pictures = Pictures(self.model)
        self.bar = ModeBar(self.model, self.pictures)
        self.setup = Setup(self.model, self._documents)
        self.figures = MetricsView(self.model)
        self.folder_run = FolderRun(self.model, self)
        self.folder = FolderView(self.folder_run)
        self.voting = VoteView(self.model, self.folder_run)
        self.vote = VotePage()
        self._build()
        self._connect()
        self._keys()
        if parent is not None:
            parent.installEventFilter(self)

    # --- building ----------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.status = ElidedLabel()
        self.status.setObjectName("side.status")
        self.status.setAccessibleName(tr("Status of the comparison"))
        self.progress = QProgressBar()
        self.progress.setObjectName("side.progress")
        self.progress.setAccessibleName(tr("Progress of the comparison"))
        self.progress.setTextVisible(False)
        self.progress.setFixedWidth(160)
        self.stop_button = QPushButton(tr("Stop"))
        theme.set_icon(self.stop_button, "stop")
        self.stop_button.setObjectName("side.stop")
        self.stop_button.setAccessibleName(tr("Stop"))
        self.stop_button.setToolTip(tr("Give up what runs; results that are there stay"))
        self.stop_button.clicked.connect(self.stop)
        self.report_button = QPushButton(tr("Report..."))
        self.report_button.setObjectName("side.report")
        self.report_button.setAccessibleName(tr("Report"))
        self.report_button.setToolTip(tr("Write what is shown as a page with its images inside (Ctrl+R)"))
        self.report_button.clicked.connect(self._ask_report)
        foot = QHBoxLayout()
        foot.addWidget(self.status, 1)
        foot.addWidget(self.progress)
        foot.addWidget(self.stop_button)
        foot.addWidget(self.report_button)
        self._lay_out(foot)

    def _lay_out(self, foot: QHBoxLayout) -> None:
        self.tabs = QTabWidget()
        self.tabs.setObjectName("side.tabs")
        self.tabs.setAccessibleName(tr("Metrics, folder and vote"))
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.figures, tr("Metrics"))
        self.tabs.addTab(self.folder, tr("Folder"))
        self.tabs.addTab(self.voting, tr("Blind Vote"))
        self.tabs.currentChanged.connect(self._give_room)
        above = QWidget()
        column = QVBoxLayout(above)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.bar)
        column.addWidget(self.pictures, 1)
        self._upright = QSplitter(Qt.Orientation.Vertical)
        self._upright.setObjectName("side.upright")
        self._upright.setChildrenCollapsible(False)
        self._upright.addWidget(above)
        self._upright.addWidget(self.tabs)
        self._upright.setStretchFactor(0, 1)
        self._upright.setSizes([600, FIGURES_HEIGHT])
        self._level = QSplitter(Qt.Orientation.Horizontal)
        self._level.setObjectName("side.level")
        self._level.setChildrenCollapsible(False)
        self._level.addWidget(self.setup)
        self._level.addWidget(self._upright)
        self._level.setStretchFactor(1, 1)
        self._level.setSizes([SETUP_WIDTH, 1000])
        page = QWidget()
        main = QVBoxLayout(page)
        main.setContentsMargins(8, 8, 8, 8)
        main.addWidget(self._level, 1)
        main.addLayout(foot)
        self.stack = QStackedWidget()
        self.stack.addWidget(page)
        self.stack.addWidget(self.vote)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self.stack)

    def _give_room(self, index: int) -> None:
        """A table of images and a plot need more height than a few figures."""
        total = sum(self._upright.sizes())
        low = round(total * FOLDER_SHARE) if self.tabs.widget(index) is not self.figures else FIGURES_HEIGHT
        self._upright.setSizes([total - low, low])

    def _connect(self) -> None:
        model = self.model
        self.folder.picture_wanted.connect(self.setup.set_picture)
        self.voting.begun.connect(self.begin_vote)
        self.vote.ended.connect(self.end_vote)
        self.folder_run.started.connect(self._show_status)
        self.folder_run.finished.connect(self._show_status)
        self.setup.compare_wanted.connect(self.compare)
        self.setup.changed.connect(self.compare)
        self.pictures.probed.connect(self.figures.probe)
        self.figures.region_wanted.connect(self.pictures.mark_region)
        for sign in (model.started, model.finished):
            sign.connect(self._show_status)
        model.status_changed.connect(lambda _index: self._show_status())

    def _keys(self) -> None:
        bar = self.bar
        keys: dict[str, Callable[[], object]] = {
            "Esc": self.close,
            "F5": self.compare,
            "G": partial(bar.set_mode, ViewMode.GRID),
            "S": partial(bar.set_mode, ViewMode.SPLIT),
            "F": partial(bar.set_mode, ViewMode.TURNS),
            "D": partial(bar.set_mode, ViewMode.DIFFERENCE),
            "X": bar.swap,
            "W": partial(self.figures.step, 1),
            "Shift+W": partial(self.figures.step, -1),
            "N": partial(bar.show_only, INPUT),
            "R": partial(bar.show_only, CLEAN),
            "Ctrl+R": self._ask_report,
            "Ctrl+0": partial(bar.zoom, 0.0),
            "Ctrl+1": partial(bar.zoom, 1.0),
            "Ctrl+2": partial(bar.zoom, 2.0),
        }
        for index in range(MOST):
            keys[str(index + 1)] = partial(self._show_variant, index)
        self.shortcuts = {}
        for key, action in keys.items():
            shortcut = QShortcut(QKeySequence(key), self)
            shortcut.activated.connect(action)
            self.shortcuts[key] = shortcut

    # --- actions of the user ------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Compare something at once: the open network with a sample, on the image of the analysis."""
        if not self.model.choices:
            self._choose_first()
        self.setup.show_choices()
        self.setup.show_picture()
        self.compare()

    def compare(self) -> None:
        """Run what is chosen."""
        self.model.compare()

    def begin_vote(self, trials: Any, pictures: Any) -> None:
        """Hide everything that could identify the variants."""
        for shortcut in self.shortcuts.values():
            shortcut.setEnabled(False)
        self.setWindowTitle(tr("Blind Vote - Layerwright"))
        self.stack.setCurrentWidget(self.vote)
        self.vote.begin(trials, pictures)

    def end_vote(self) -> None:
        """Back to the names, with the result of the vote."""
        if self.stack.currentWidget() is not self.vote:
            return
        for shortcut in self.shortcuts.values():
            shortcut.setEnabled(True)
        self.setWindowTitle(tr("Side by Side - Layerwright"))
        self.stack.setCurrentIndex(0)
        self.voting.show_votes(self.vote.votes)

    def stop(self) -> None:
        self.folder_run.cancel()
        self.model.stop()

    def _ask_report(self) -> None:
        if self.report_button.isEnabled():
            path = ask_path(self, tr("Report"), "comparison.html", PAGES)
            if path is not None:
                self.save_report(path)

    def save_report(self, path: Path) -> None:
        """Write the page in a thread; the line at the foot says how it went."""
        run, pictures = self.folder_run, self.pictures
        same = run.conditions == conditions_of(self.model, self.model.compared)
        seen = copy_of(self.model, pictures.region, pictures.gain, run.columns, run.rows if same else [], png_of(self))
        if run.rows and not same:
            seen.notes.append("The folder's table is left out: it was made with other networks or settings.")
        write_in_thread(
            self,
            partial(write_comparison, path, seen),
            lambda _well, text: self.status.setText(text),
            tr("Wrote {name}", name=path.name),
        )

    def _choose_first(self) -> None:
        documents = self._documents()
        others: list[Document | Path] = [*documents[1:], samples.path("dncnn.xml"), samples.path("denoiser.xml")]
        sources: list[Document | Path] = [*documents[:1], *others]
        names = [getattr(s, "path", s) for s in sources]
        first = sources[0]
        second = next((s for s, name in zip(sources[1:], names[1:], strict=True) if name != names[0]), first)
        self.model.choices = [VariantChoice(first), VariantChoice(second)]
        self.model.picture = self._first_picture(documents[0] if documents else None)

    def _first_picture(self, document: Document | None) -> Path:
        if document is not None:
            for layer in layers_of(document.graph, document.registry, Role.INPUT):
                chosen = document.settings.input_files.get(layer)
                found = Path(chosen) if chosen else default_picture(document.graph, document.registry, layer)
                if found is not None and (IMAGES.reads(found) or str(found).startswith(PATTERN)):
                    return found
        return samples.HELD_OUT

    def _open_document(self) -> list[Document]:
        return [self._context.root] if self._context.has_document else []

    def _show_variant(self, index: int) -> None:
        if index < len(self.model.choices):
            self.bar.show_only(LETTERS[index])

    # --- messages ------------------------------------------------------------------------------------------

    def _show_status(self) -> None:
        model = self.model
        self.stop_button.setEnabled(model.busy or self.folder_run.running)
        self.report_button.setEnabled(bool(model.made) and not model.busy and not self.folder_run.running)
        self.progress.setVisible(model.busy)
        if model.busy:
            done = len(model.made) + sum(1 for e in model.errors if e)
            self.progress.setRange(0, len(model.choices))
            self.progress.setValue(done)
            doing = [f"{LETTERS[i]}: {text}" for i, text in enumerate(model.status) if text]
            self.status.setText(doing[-1] if doing else tr("Preparing the image …"))
            return
        failed = sum(1 for e in model.errors if e)
        if model.problem:
            self.status.setText(model.problem)
        elif failed:
            self.status.setText(
                tr("{count} of {all} variants failed; see the reason at each", count=failed, all=len(model.choices))
            )
        else:
            self.status.setText(self._what())

    def _what(self) -> str:
        model = self.model
        if model.noisy is None or model.picture is None:
            return ""
        size = f"{model.noisy.shape[3]} x {model.noisy.shape[2]}"
        return tr("{picture}, {size}, {noise}", picture=model.picture.name, size=size, noise=self._noise())

    def _noise(self) -> str:
        noise: Any = self.model.noise
        return tr("{noise}, seed {seed}", noise=noise.text, seed=noise.seed) if noise.kind else tr("no noise added")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Go when the main window goes."""
        if event.type() is QEvent.Type.Hide and watched is self.parent() and not event.spontaneous():
            self.close()
        return super().eventFilter(watched, event)

    def changeEvent(self, event: QEvent) -> None:
        """Networks and variants may have come, gone or been renamed in the main window."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.ActivationChange and self.isActiveWindow():
            self.setup.refresh_sources()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.folder_run.cancel()
        self.model.close()
        super().closeEvent(event)
