"""The settings of a new run: folders with data, and the options of the project's `train.py`. Empty fields keep its defaults."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QFileDialog, QFormLayout, QHBoxLayout, QLineEdit, QToolButton, QWidget

from app.ui.widgets import theme
from app.ui.widgets.typed_path import typed_path
from designer.texts import mark, tr, tr_data
from designer.training.trainer import Options, arguments, options_of, parse_options


@dataclass(frozen=True, slots=True)
class SettingField:
    """One option of `train.py`. `tasks` are those that have it; empty: all."""

    name: str
    title: str
    tip: str
    default: str = ""  # shown while the field is empty
    kind: str = "text"  # or "folder", "switch"
    tasks: tuple[str, ...] = ()


FIELDS = (
    SettingField(
        "data",
        mark("Images"),
        mark("Folder with training images; for classification, one folder of images for each class"),
        kind="folder",
        tasks=("denoising", "super-resolution", "classification"),
    ),
    SettingField(
        "inputs", mark("Inputs"), mark("Folder with input images"), kind="folder", tasks=("restoration", "segmentation")
    ),
    SettingField(
        "targets",
        mark("Targets"),
        mark("Folder with target images or masks, with the same names as the inputs"),
        kind="folder",
        tasks=("restoration", "segmentation"),
    ),
    SettingField(
        "validation",
        mark("Validation"),
        mark("Folder with validation images; by default every tenth image is held out"),
        mark("every tenth image"),
        kind="folder",
    ),
    SettingField(
        "noise",
        mark("Noise"),
        mark("Noise level of 255, or a range such as 0-55 for blind denoising"),
        "25",
        tasks=("denoising",),
    ),
    SettingField("steps", mark("Steps"), mark("Number of optimizer steps"), mark("100 epochs")),
    SettingField("batch", mark("Batch"), mark("Patches per step"), "16"),
    SettingField(
        "patch",
        mark("Patch"),
        mark("Size of the training patches in pixels"),
        "64",
        tasks=("denoising", "restoration", "segmentation", "super-resolution"),
    ),
    SettingField("lr", mark("Learning rate"), mark("Peak learning rate, with cosine decay to 0"), "0.001"),
    SettingField("validate_every", mark("Validate every"), mark("Steps between validations and checkpoints"), "250"),
    SettingField("seed", mark("Seed"), mark("The same seed gives the same run on the same machine"), "0"),
    SettingField(
        "device", mark("Device"), mark("cpu, cuda or cuda:1; by default a GPU if there is one"), mark("automatic")
    ),
    SettingField(
        "stop_on",
        mark("Stop on"),
        mark("Problems of a layer that stop the run: not_finite, exploding, vanishing, dead, frozen, saturated"),
        "not_finite",
    ),
    SettingField(
        "amp", mark("Mixed precision"), mark("Compute in float16 on a GPU, in bfloat16 on a CPU"), kind="switch"
    ),
)
MORE = "more"


class SettingsForm(QWidget):
    """A row for each field that the task has, and one for further options as on the command line."""

    edited = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.fields: dict[str, QLineEdit | QCheckBox] = {}
        self._task = ""
        self.rows = QFormLayout(self)
        self.rows.setContentsMargins(0, 0, 0, 0)
        self.rows.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        for field in FIELDS:
            self._add(field)
        self._add(
            SettingField(
                MORE,
                mark("More options"),
                mark("Further options of train.py, such as --ema 0.999 --clip 0.5. Its --help lists all."),
                mark("such as --ema 0.999"),  # unlike the other fields, nothing is used while it is empty
            )
        )

    def _add(self, field: SettingField) -> None:
        widget: QLineEdit | QCheckBox
        row: QWidget
        if field.kind == "switch":
            widget = QCheckBox(tr_data(field.title))
            widget.toggled.connect(lambda _on: self.edited.emit())
            row = widget
        else:
            widget = QLineEdit()
            widget.setPlaceholderText(tr_data(field.default) if field.default else "")
            widget.setMinimumWidth(60)
            widget.textChanged.connect(lambda _text: self.edited.emit())
            row = self._with_browse(field, widget) if field.kind == "folder" else widget
        widget.setObjectName(f"training.{field.name}")
        widget.setAccessibleName(tr_data(field.title))
        widget.setToolTip(tr_data(field.tip))
        self.fields[field.name] = widget
        if row is widget and isinstance(widget, QCheckBox):
            self.rows.addRow(widget)
        else:
            self.rows.addRow(tr_data(field.title), row)

    def _with_browse(self, field: SettingField, line: QLineEdit) -> QWidget:
        title = tr_data(field.title)
        button = QToolButton()
        button.setObjectName(f"training.{field.name}.browse")
        button.setAccessibleName(tr("Choose the folder of {name}", name=title))
        button.setToolTip(tr_data(field.tip))
        theme.set_icon(button, "folder-open-outline")

        def browse() -> None:
            folder = QFileDialog.getExistingDirectory(self, title, line.text())
            if folder:
                line.setText(folder)

        button.clicked.connect(browse)
        row = QWidget()
        box = QHBoxLayout(row)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(line, 1)
        box.addWidget(button)
        return row

    def show_task(self, task: str) -> None:
        """Show the fields of a task."""
        self._task = task
        for number, field in enumerate(FIELDS):
            self.rows.setRowVisible(number, not field.tasks or task in field.tasks)

    def show_defaults(self, recipe: Mapping[str, str]) -> None:
        """Show in empty fields the value that is used: the recipe of the document, or else the defaults of the project."""
        for field in FIELDS:
            widget = self.fields[field.name]
            if isinstance(widget, QLineEdit):
                default = tr_data(field.default) if field.default else ""
                if field.name == "steps" and "epochs" in recipe:
                    default = tr("{count} epochs", count=recipe["epochs"])
                widget.setPlaceholderText(recipe.get(field.name, default))

    def text(self, name: str) -> str:
        widget = self.fields[name]
        return widget.text().strip() if isinstance(widget, QLineEdit) else ""

    def set_text(self, name: str, text: str) -> None:
        widget = self.fields[name]
        if isinstance(widget, QLineEdit):
            widget.setText(text)

    def options(self) -> Options:
        """The options that the user set. Raises DiagnosticError for further options that are not a command line."""
        made: dict[str, str | bool] = {}
        for field in FIELDS:
            widget = self.fields[field.name]
            if field.tasks and self._task not in field.tasks:
                continue
            if isinstance(widget, QCheckBox):
                if widget.isChecked():
                    made[field.name] = True
            elif text := self.text(field.name):
                made[field.name] = str(typed_path(text)) if field.kind == "folder" else text
        return made | _further(self.text(MORE))

    def show_settings(self, settings: Mapping[str, Any]) -> None:
        """Fill in the settings of a run, to start another one that differs. Settings without a field become further options,
        and so does one that is empty, because an empty field has the default."""
        known = {field.name for field in FIELDS}
        for field in FIELDS:
            value, widget = settings.get(field.name), self.fields[field.name]
            if isinstance(widget, QCheckBox):
                widget.setChecked(value is True)
            else:
                widget.setText("" if value is None or (value == 0 and field.name != "seed") else str(value))
        others = {name: value for name, value in options_of(settings).items() if name not in known or value == ""}
        self.set_text(MORE, shlex.join(arguments(others)))


def _further(text: str) -> dict[str, str | bool]:
    try:
        words = shlex.split(text)
    except ValueError:  # a quotation mark without its counterpart
        words = text.split()
    return parse_options(words)
