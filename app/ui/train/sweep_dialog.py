"""The plan of a sweep: settings with their values, grid or random search, and where the trials train."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.document.document import Document
from app.ui.engine.training import StartRequest, SweepRequest, default_project
from app.ui.train.settings_form import FIELDS
from app.ui.widgets import theme
from app.ui.widgets.choice_box import ChoiceBox
from app.ui.widgets.findings import without_icons
from app.ui.widgets.growing_dialog import GrowingDialog
from app.ui.widgets.message import Message
from app.ui.widgets.run_choices import Choice
from app.ui.widgets.sentences import placed_text
from app.ui.widgets.typed_path import typed_path
from designer.graph.diagnostics import DiagnosticError
from designer.texts import mark, tr, tr_data, trn
from designer.training.sweep import WIDTH, Axis, Trial, trials

MOST_AXES = 6
SEARCHED = ("lr", "noise", "batch", "patch", "steps", "seed")  # fields of the form
OTHERS = (
    ("weight_decay", mark("Weight decay")),
    ("ema", mark("Moving average")),
    ("optimizer", mark("Optimizer")),
    ("clip", mark("Gradient clipping")),
)


class AxisRow(QWidget):
    """A setting and its values."""

    changed = Signal()
    removed = Signal()

    def __init__(self, number: int, choices: list[Choice], chosen: str, values: str = "") -> None:
        super().__init__()
        self.setting = ChoiceBox(f"sweep.setting_{number}", tr("Setting"), tr("What differs between the trials"))
        self.setting.show_choices(choices, chosen)
        self.values = QLineEdit(values)
        self.values.setObjectName(f"sweep.values_{number}")
        self.values.setAccessibleName(tr("Values"))
        self.values.setPlaceholderText(tr("15, 25, 50 or 1e-4..1e-2"))
        self.values.setToolTip(
            tr(
                "Values separated by commas. For a random search also a range such as 1e-4..1e-2, drawn from on a log scale."
            )
        )
        remove = QToolButton()
        remove.setObjectName(f"sweep.remove_{number}")
        remove.setAccessibleName(tr("Remove this setting"))
        remove.setToolTip(tr("Remove this setting"))
        theme.set_icon(remove, "close")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.setting, 2)
        row.addWidget(self.values, 3)
        row.addWidget(remove)
        self.setting.chosen.connect(lambda _value: self.changed.emit())
        self.values.textChanged.connect(lambda _text: self.changed.emit())
        remove.clicked.connect(self.removed)

    def axis(self) -> Axis:
        """Raises DiagnosticError."""
        return Axis.parse(f"{self.setting.currentData()}={self.values.text()}")


class SweepDialog(GrowingDialog):
    """`requested` carries the SweepRequest; the options that all trials share are those of the training panel."""

    requested = Signal(object)  # SweepRequest

    def __init__(self, document: Document, base: StartRequest, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sweep")
        self.setAccessibleName(tr("Sweep"))
        self.setWindowTitle(tr("Sweep"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._base = base
        self._choices = _choices(document, base.task)
        self.rows: list[AxisRow] = []
        self._made = 0
        self._axes = QVBoxLayout()
        self._add = QPushButton(tr("Add Setting"))
        self._add.setObjectName("sweep.add")
        self._add.clicked.connect(self._add_free)
        self.search = ChoiceBox("sweep.search", tr("Search"), tr("Which combinations of the values are trained"))
        self.search.show_choices(
            [Choice("grid", tr("Every combination")), Choice("random", tr("Random combinations"))], "grid"
        )
        self.drawn = _number("sweep.trials", tr("Number of trials"), 20, 1000)
        self.where = ChoiceBox("sweep.where", tr("Where"), tr("Where the trials train"))
        reason = "" if find_spec("ray") is not None else tr('needs Ray: pip install "layerwright[cluster]"')
        self.where.show_choices(
            [Choice("here", tr("This machine")), Choice("cluster", tr("Ray cluster"), reason)], "here"
        )
        self.parallel = _number("sweep.parallel", tr("Trials at once"), 1, 64)
        self.address = QLineEdit()
        self.address.setObjectName("sweep.address")
        self.address.setAccessibleName(tr("Address of the cluster"))
        self.address.setPlaceholderText("192.168.0.10:6379")
        self.folder = QLineEdit(str(_free_folder(document)))
        self.folder.setObjectName("sweep.folder")
        self.folder.setAccessibleName(tr("Folder of the sweep"))
        self.count = QLabel()
        self.count.setObjectName("sweep.count")
        self.message = Message("sweep.message")
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.start = self._buttons.addButton(tr("&Start Sweep"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.start.setObjectName("sweep.start")
        self._buttons.accepted.connect(self._start)
        self._buttons.rejected.connect(self.reject)
        without_icons(self._buttons)
        self._lay_out()
        for field in (self.search, self.where):
            field.chosen.connect(lambda _value: self._check())
        for line in (self.address, self.folder):
            line.textChanged.connect(lambda _text: self._check())
        self.drawn.valueChanged.connect(lambda _value: self._check())
        self._add_free()

    def _lay_out(self) -> None:
        self._form = QFormLayout()
        self._form.addRow(tr("Search"), self.search)
        self._form.addRow(tr("Trials"), self.drawn)
        self._form.addRow(tr("Where"), self.where)
        self._form.addRow(tr("At once"), self.parallel)
        self._form.addRow(tr("Address"), self.address)
        self._form.addRow(tr("Folder"), self.folder)
        note = QLabel(tr("The trials share the other settings of the Training panel. Each is a run in Training Runs."))
        note.setWordWrap(True)
        column = QVBoxLayout(self)
        column.addWidget(note)
        column.addLayout(self._axes)
        column.addWidget(self._add)
        column.addLayout(self._form)
        column.addWidget(self.count)
        column.addWidget(self.message)
        column.addWidget(self._buttons)
        self.setMinimumWidth(520)

    def _add_free(self) -> None:
        """Add the first setting that is not searched yet."""
        used = {row.setting.currentData() for row in self.rows}
        self.add_row(next(choice.value for choice in self._choices if choice.value not in used))

    def add_row(self, name: str, values: str = "") -> None:
        """Add a setting."""
        self._made += 1
        row = AxisRow(self._made, self._choices, name, values)
        row.changed.connect(self._check)
        row.removed.connect(lambda: self._remove(row))
        self.rows.append(row)
        self._axes.addWidget(row)
        self._check()

    def _remove(self, row: AxisRow) -> None:
        self.rows.remove(row)
        self._axes.removeWidget(row)
        row.deleteLater()
        self._check()

    def planned(self) -> list[Trial]:
        """The trials. Raises DiagnosticError."""
        drawn = self.drawn.value() if self.search.currentData() == "random" else 0
        return trials([row.axis() for row in self.rows], drawn)

    def _check(self) -> None:
        """Show what the plan gives, or why it cannot be started."""
        random, cluster = self.search.currentData() == "random", self.where.currentData() == "cluster"
        for number, shown in ((1, random), (3, not cluster), (4, cluster)):
            self._form.setRowVisible(number, shown)
        self._add.setEnabled(len(self.rows) < min(MOST_AXES, len(self._choices)))
        entered = bool(self.rows) and all(row.values.text().strip() for row in self.rows)
        problem, found = "", 0
        if entered:
            try:
                found = len(self.planned())
            except DiagnosticError as error:
                problem = error.diagnostics[0].message
        self.message.show_message(problem)
        missing = ""
        if not self.rows:
            missing = tr("Add a setting")
        elif not entered:
            missing = tr("Enter the values of each setting")
        elif cluster and not self.address.text().strip():
            missing = tr("Enter the address of the cluster")
        elif not self.folder.text().strip():
            missing = tr("Enter a folder for the sweep")
        self.count.setText(missing or (trn("{count} trial", "{count} trials", found) if found else ""))
        self.start.setEnabled(found > 0 and not missing)

    def _start(self) -> None:
        cluster = self.address.text().strip() if self.where.currentData() == "cluster" else ""
        try:
            planned = tuple(self.planned())
        except DiagnosticError as error:
            self.message.show_message(placed_text(error.diagnostics[0]))
            return
        folder = typed_path(self.folder.text()).absolute()
        self.requested.emit(
            SweepRequest(folder, planned, self._base.options, self._base.task, self.parallel.value(), cluster)
        )
        self.accept()


def _number(name: str, label: str, value: int, most: int) -> QSpinBox:
    box = QSpinBox()
    box.setObjectName(name)
    box.setAccessibleName(label)
    box.setRange(1, most)
    box.setValue(value)
    return box


def _choices(document: Document, task: str) -> list[Choice]:
    """The settings that can be searched: fields of the task, other settings, and the features of layers."""
    fields = {field.name: field for field in FIELDS if not field.tasks or task in field.tasks}
    found = [Choice(name, tr_data(fields[name].title)) for name in SEARCHED if name in fields]
    found += [Choice(name, tr_data(title)) for name, title in OTHERS]
    layers = [layer.name for layer in document.graph if "features" in layer.params]
    return [*found, *(Choice(WIDTH + name, tr("Features of {layer}", layer=name)) for name in layers)]


def _free_folder(document: Document) -> Path:
    """A folder for a sweep that does not exist yet, next to the project of the document."""
    project = default_project(document)
    base = project.with_name(f"{project.name.removesuffix('_pytorch')}_sweep")
    others = (base.with_name(f"{base.name}_{number}") for number in range(2, 1000))
    return next(path for path in (base, *others) if not path.exists())
