"""Training: settings and start of a run or a sweep, and the progress of the run that is shown."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

import samples
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.training import StartRequest, SweepRequest, training_of
from app.ui.train.place_choice import PlaceChoice
from app.ui.train.run_progress import RunProgress
from app.ui.train.samples_dialog import SamplesDialog
from app.ui.train.settings_form import SettingsForm
from app.ui.train.sweep_dialog import SweepDialog
from app.ui.widgets import theme
from app.ui.widgets.choice_box import ChoiceBox
from app.ui.widgets.message import Message
from app.ui.widgets.run_choices import Choice
from app.ui.widgets.sentences import placed_text
from app.ui.widgets.typed_path import typed_path
from designer.graph.diagnostics import DiagnosticError, errors
from designer.graph.edits import ChangeSet
from designer.texts import tr, tr_data
from designer.training.watched_run import WatchedRun

LARGE = 5000  # layers; above, building the network to suggest a task would hold up the window
MEDIUM = 200  # layers; the same after each edit
PAUSE = 300  # ms without an edit before a task is suggested again


class TrainingPanel(QWidget):
    """The form of a new run above the progress of the current one."""

    panel_id = "training"
    title = "Training"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("training")
        self.setAccessibleName(tr("Training"))
        self._context = context
        self._training = training_of(context)
        self._document: Document | None = None
        self._project = ""  # the folder that was suggested
        self._suggested = ""  # the task; empty if the user chose one
        self._making = False  # example data
        self._later = QTimer(self, singleShot=True, interval=0, timeout=self._enable)
        self._settled = QTimer(self, singleShot=True, interval=PAUSE, timeout=self._follow_network)
        self.form = SettingsForm()
        self.task = ChoiceBox("training.task", tr("Task"), tr("What the network is trained for"))
        self.task.chosen.connect(self._choose_task)
        self.example = QPushButton(tr("Make Example Data"))
        self.example.setObjectName("training.example")
        self.example.setToolTip(
            tr("Write small images to train with: rendered digits, one folder per class, and shapes with their masks")
        )
        self.example.clicked.connect(self._make_example_data)
        self.samples = QPushButton(tr("Show Samples"))
        self.samples.setObjectName("training.samples")
        self.samples.setToolTip(tr("Show a page of training samples with their targets, made by the project's data.py"))
        self.samples.clicked.connect(self._show_samples)
        self.project = QLineEdit()
        self.project.setObjectName("training.project")
        self.project.setAccessibleName(tr("Project folder"))
        self.project.setToolTip(tr("Folder of the PyTorch project that trains; it is exported when a run starts"))
        self.project.setMinimumWidth(60)
        self.sweep = QPushButton(tr("Sweep..."))
        self.sweep.setObjectName("training.sweep")
        self.sweep.setToolTip(tr("Train with many settings or widths of layers, and compare the results"))
        self.sweep.clicked.connect(self._open_sweep)
        self.start = QPushButton(tr("Start Training"))
        self.start.setObjectName("training.start")
        theme.set_icon(self.start, "play")
        self.start.clicked.connect(self._start)
        self.problem = Message("training.problem")
        self.progress = RunProgress(self._training)
        self._lay_out()
        self._training.problem_changed.connect(self.problem.show_message)
        self._training.updated.connect(self._enable)
        self._training.runs_changed.connect(self._enable)
        self._training.runs_changed.connect(self._follow_project)
        self._training.clone_requested.connect(self._clone)
        self._training.example_data_made.connect(self._use_example_data)
        self._training.samples_made.connect(lambda path: SamplesDialog(path, self).show())
        context.root_changed.connect(self._on_document)
        self._on_document()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._settled.start()

    def _lay_out(self) -> None:
        browse = QToolButton()
        browse.setObjectName("training.project.browse")
        browse.setAccessibleName(tr("Choose the project folder"))
        browse.setToolTip(tr("Choose the project folder"))
        theme.set_icon(browse, "folder-open-outline")
        browse.clicked.connect(self._browse)
        row = QHBoxLayout()
        row.addWidget(self.project, 1)
        row.addWidget(browse)
        self.form.rows.addRow(tr("Project"), row)
        self.place = PlaceChoice(self.form.rows)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(8, 8, 8, 8)
        heading = QLabel(tr("New run"))
        font = heading.font()
        font.setBold(True)
        heading.setFont(font)
        column.addWidget(self.progress)
        column.addWidget(heading)
        column.addWidget(self.task)
        column.addWidget(self.example)
        column.addWidget(self.form)
        column.addWidget(self.samples)
        column.addWidget(self.sweep)
        column.addWidget(self.start)
        column.addWidget(self.problem)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setObjectName("training.scroll")
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setWidget(page)
        scroll.setMinimumWidth(page.minimumSizeHint().width() + scroll.verticalScrollBar().sizeHint().width() + 4)
        main = QVBoxLayout(self)
        main.setContentsMargins(0, 0, 0, 0)
        main.addWidget(scroll)

    def _on_document(self, *_: object) -> None:
        if self._document is not None:
            self._document.states_changed.disconnect(self._later.start)
            self._document.states_changed.disconnect(self._settled.start)
            self._document.changed.disconnect(self._on_change)
            self._document.path_changed.disconnect(self._follow_project)
            self._document = None
        if self._context.has_document:
            self._document = self._context.root
            self._document.states_changed.connect(self._later.start)
            self._document.states_changed.connect(self._settled.start)
            self._document.changed.connect(self._on_change)
            self._document.path_changed.connect(self._follow_project)
            self._suggest_project()
            self._suggest_task()
        self.place.refresh()
        self._enable()

    def _on_change(self, change: ChangeSet) -> None:
        if change.computed or change.removed:  # also a softmax, which leaves all shapes, suggests another task
            self._settled.start()

    def _follow_project(self) -> None:
        """The suggested folder is that of the latest run, or next to the file; one that the user chose stays."""
        if self._context.has_document and self.project.text() == self._project:
            self._suggest_project()

    def _suggest_project(self) -> None:
        self._project = str(self._training.project())
        self.project.setText(self._project)

    def _suggest_task(self) -> None:
        """Offer the tasks, with the one of the document, or else the one that the network suggests."""
        from exporters.pytorch.tasks import TASKS

        self._suggested = self._context.root.settings.task or self._task_of_network(LARGE) or "denoising"
        choices = [Choice(task.name, tr_data(task.title), "") for task in TASKS.values()]
        self.task.show_choices(choices, self._suggested)
        self._show_task(self._suggested)

    def _choose_task(self, task: str) -> None:
        self._suggested = ""
        self._show_task(task)

    def _follow_network(self) -> None:
        """Suggest the task again after an edit, unless the user or the document has chosen one."""
        if not self.isVisible() or not self._suggested or self._context.root.settings.task:
            return
        if self._task_of_network(MEDIUM) not in ("", self._suggested):
            self._suggest_task()

    def _task_of_network(self, most: int) -> str:
        """The task that the network suggests; "" if it has errors or more layers than `most`."""
        from exporters.pytorch.tasks import task_of_network

        document = self._context.root
        if len(document.graph) > most:
            return ""
        with suppress(DiagnosticError):  # an unfinished network
            return task_of_network(document.graph, document.registry).name
        return ""

    def _show_task(self, task: str) -> None:
        """Show the fields of a task, with the recipe of the document if it is for this task."""
        settings, photos = self._context.root.settings, str(samples.PHOTOGRAPHS)
        self.form.show_task(task)
        self.form.show_defaults(settings.recipe if task == settings.task else {})
        if task == "classification" and self.form.text("data") == photos:
            self.form.set_text("data", "")
        elif task in ("denoising", "super-resolution") and not self.form.text("data"):
            self.form.set_text("data", photos)
        self.example.setVisible(task in ("classification", "segmentation"))

    def _make_example_data(self) -> None:
        self._making = True
        self.example.setText(tr("Making Example Data ..."))
        self._training.make_example_data()
        self._enable()

    def _use_example_data(self, folder: Path) -> None:
        if self.task.currentData() == "classification":
            self.form.set_text("data", str(folder / "digits"))
        else:
            for name in ("inputs", "targets"):
                self.form.set_text(name, str(folder / "shapes" / name))

    def _browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Project Folder"), self.project.text())
        if folder:
            self.project.setText(folder)

    def _clone(self, run: object) -> None:
        assert isinstance(run, WatchedRun)
        task = self.task.findData(run.snapshot.curves.task)
        if task >= 0:
            self.task.setCurrentIndex(task)
            self._choose_task(run.snapshot.curves.task)
        self.form.show_settings(run.snapshot.settings)
        self.project.setText(str(run.folder.project))
        self.form.setFocus()

    def _enable(self) -> None:
        reason = self._reason()
        self.start.setEnabled(not reason)
        self.start.setToolTip(reason or tr("Export the project and train the network in a process of its own"))
        self.samples.setEnabled(not reason)
        self.sweep.setEnabled(not reason)
        self.example.setEnabled(not self._training.busy)
        if not self._training.busy:
            self.start.setText(tr("Start Training"))
            self.sweep.setText(tr("Sweep..."))
            self.example.setText(tr("Make Example Data"))
            self._making = False

    def _reason(self) -> str:
        """Why no run can be started; empty if one can."""
        if not self._context.has_document or not len(self._context.root.graph):
            return tr("Unavailable: the network has no layers")
        if errors(self._context.root.diagnostics()):
            return tr("Unavailable: the network has errors, see Type Checking")
        if self._training.busy and self._making:
            return tr("Unavailable: example data are being made")
        return tr("Unavailable: a run is being started") if self._training.busy else ""

    def _request(self) -> StartRequest | None:
        try:
            options = self.form.options()
        except DiagnosticError as error:
            self.problem.show_message(placed_text(error.diagnostics[0]))
            return None
        project, task = typed_path(self.project.text()).absolute(), str(self.task.currentData())
        return StartRequest(project, options, task, self.place.host(), self.place.python())

    def _start(self) -> None:
        request = self._request()
        if request is not None:
            self.start.setText(tr("Starting ..."))
            self._training.start(request)
            self._enable()

    def _show_samples(self) -> None:
        request = self._request()
        if request is not None:
            self._training.make_samples(request)
            self._enable()

    def _start_sweep(self, request: object) -> None:
        assert isinstance(request, SweepRequest)
        self.sweep.setText(tr("Starting ..."))
        self._training.start_sweep(request)
        self._enable()

    def _open_sweep(self) -> None:
        request = self._request()
        if request is not None:
            dialog = SweepDialog(self._context.root, request, self)
            dialog.requested.connect(self._start_sweep)
            dialog.open()
