"""What is compared with what: two to four variants, one image, one noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QFormLayout,
    QFrame,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

import samples
from analysis_layers.noise import KINDS, RANDOM, SCALES
from app.reports.comparison import LETTERS
from app.ui.compare.model import MOST, SideModel
from app.ui.compare.variant_row import VariantRow, title_of_source
from app.ui.compare.variants import VariantChoice, probable_weights
from app.ui.document.document import Document
from app.ui.document.locations import start_folder
from app.ui.engine.inputs import photographs, title_of
from app.ui.widgets import theme
from app.ui.widgets.file_dialogs import open_filter
from app.ui.widgets.narrow_combo import NarrowComboBox
from app.ui.widgets.slider import NumberSlider
from designer.files.document import DOCUMENTS
from designer.files.settings import PATTERN
from designer.runtime.images import IMAGES
from designer.texts import tr, tr_data

NO_NOISE = ""
SCALE_STEP = 0.01
_LEAST = 2


class Setup(QScrollArea):
    """Writes choices into the model; `changed` follows, and whoever hears it compares anew when asked to."""

    changed = Signal()
    compare_wanted = Signal()

    def __init__(
        self, model: SideModel, documents: Callable[[], list[Document]], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("side.setup")
        self.setAccessibleName(tr("What is compared"))
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._model = model
        self._documents = documents
        self.rows: list[VariantRow] = []
        self._offered: list[tuple[str, ...]] = []  # titles of the networks that the rows offer, with their variants
        self._column = QVBoxLayout()
        self._column.setSpacing(8)
        self.add = QPushButton(tr("Add Variant"))
        theme.set_icon(self.add, "plus")
        self.add.setObjectName("side.add")
        self.add.setAccessibleName(tr("Add a variant"))
        self.add.setToolTip(tr("Compare up to {count} variants", count=MOST))
        self.add.clicked.connect(self._on_add)
        self.run = QPushButton(tr("Compare"))
        theme.set_icon(self.run, "play")
        self.run.setObjectName("side.run")
        self.run.setAccessibleName(tr("Compare"))
        self.run.setToolTip(tr("Run all variants on the image (F5)"))
        self.run.clicked.connect(self.compare_wanted)
        inside = QWidget()
        main = QVBoxLayout(inside)
        main.setContentsMargins(0, 0, 4, 0)
        main.setSpacing(8)
        main.addWidget(self.run)
        main.addLayout(self._column)
        main.addWidget(self.add)
        main.addSpacing(8)
        main.addLayout(self._make_picture())
        main.addStretch(1)
        self.setWidget(inside)
        self.setMinimumWidth(inside.minimumSizeHint().width() + self.verticalScrollBar().sizeHint().width() + 4)
        model.status_changed.connect(self._show_status)
        model.finished.connect(self._show_all)
        model.started.connect(self._show_all)

    # --- variants ----------------------------------------------------------------------------------------------

    def show_choices(self) -> None:
        """Rows for the model's choices."""
        while len(self.rows) > len(self._model.choices):
            row = self.rows.pop()
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        while len(self.rows) < len(self._model.choices):
            index = len(self.rows)
            row = VariantRow(LETTERS[index])
            row.changed.connect(partial(self._on_choice, index))
            row.file_wanted.connect(partial(self._ask_document, index))
            row.weights_wanted.connect(partial(self._ask_weights, index))
            row.removed.connect(partial(self._on_remove, index))
            self._column.addWidget(row)
            self.rows.append(row)
        sources = self.sources()
        self._offered = list(map(_offer, sources))
        for row, choice in zip(self.rows, self._model.choices, strict=True):
            row.show_choice(choice, sources, removable=len(self.rows) > _LEAST)
        self.add.setEnabled(len(self.rows) < MOST)
        self._show_all()

    def refresh_sources(self) -> None:
        """Offer documents and variants that were opened, closed, made or renamed in the meantime."""
        if self.rows and list(map(_offer, self.sources())) != self._offered:
            self.show_choices()

    def sources(self) -> list[Document | Path]:
        """What can be compared without asking for a file: open documents, then samples, then files in use."""
        found: list[Document | Path] = list(self._documents())
        found += [path for path in samples.documents() if path.is_file()]
        for choice in self._model.choices:  # a file, or a tab that was closed in the meantime
            if choice.source not in found:
                found.append(choice.source)
        return found

    def _on_choice(self, index: int, choice: VariantChoice) -> None:
        self._model.choices[index] = choice
        self._changed()

    def _on_add(self) -> None:
        if len(self._model.choices) < MOST:
            self._model.choices.append(replace(self._model.choices[-1]))  # a choice of its own, though equal
            self.show_choices()
            self._changed()

    def _on_remove(self, index: int) -> None:
        if len(self._model.choices) > _LEAST:
            del self._model.choices[index]
            self.show_choices()
            self._changed()

    def _ask_document(self, index: int) -> None:
        folder = str(start_folder(self._model.choices[index].path))
        name, _ = QFileDialog.getOpenFileName(self, tr("Network to Compare"), folder, open_filter(DOCUMENTS))
        if name:
            self._model.choices[index] = replace(self._model.choices[index], source=Path(name), weights="", variant="")
            self._changed()
        self.show_choices()

    def _ask_weights(self, index: int) -> None:
        folder = QFileDialog.getExistingDirectory(
            self, tr("Folder of weights"), probable_weights(self._model.choices[index])
        )
        if folder:
            self._model.choices[index] = replace(self._model.choices[index], weights=folder)
            self._changed()
        self.show_choices()

    # --- the image -------------------------------------------------------------------------------------------

    def _make_picture(self) -> QFormLayout:
        form = QFormLayout()
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(4)
        self.picture = NarrowComboBox("side.picture", tr("Image"), tr("The image that every variant gets"))
        self.picture.activated.connect(self._on_picture)
        self.kind = QComboBox()
        self.kind.setObjectName("side.noise")
        self.kind.setAccessibleName(tr("Noise"))
        self.kind.setToolTip(tr("Added to the image here, the same for every variant; Noise layers are passed by"))
        for kind in (NO_NOISE, *KINDS):
            self.kind.addItem(kind.replace("_", " ") if kind else tr("none: the image is noisy already"), kind)
        self.kind.activated.connect(self._on_noise)
        self.scale = NumberSlider("side.scale", tr("Scale of the noise"), 0.0, 1.0, SCALE_STEP, significant=4)
        self.scale.released.connect(self._on_noise)
        self.seed = QSpinBox()
        self.seed.setObjectName("side.seed")
        self.seed.setAccessibleName(tr("Seed of the noise"))
        self.seed.setRange(0, 2**31 - 1)
        self.seed.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.seed.editingFinished.connect(self._on_noise)
        self.clean = NarrowComboBox("side.clean", tr("Clean image"))
        self.clean.activated.connect(self._on_clean)
        form.addRow(tr("Image"), self.picture)
        form.addRow(tr("Noise"), self.kind)
        form.addRow(tr("Scale"), self.scale)
        form.addRow(tr("Seed"), self.seed)
        form.addRow(tr("Clean"), self.clean)
        return form

    def show_picture(self) -> None:
        """The model's image and noise in the fields."""
        box, present = self.picture, self._model.picture
        box.clear()
        paths = [samples.HELD_OUT, *photographs()]
        if present is not None and present not in paths:
            paths.insert(0, present)
        for path in paths:
            box.addItem(title_of(path), path)
        box.insertSeparator(box.count())
        box.addItem(tr("Choose a file..."), None)
        box.setCurrentIndex(paths.index(present) if present in paths else -1)
        noise = self._model.noise
        self.kind.setCurrentIndex(self.kind.findData(noise.kind))
        self._show_scale()
        self.seed.setValue(noise.seed)

    def _show_scale(self) -> None:
        noise = self._model.noise
        self._show_clean()
        if noise.kind:
            self.scale.set_range(0.0, SCALES[noise.kind].most, SCALE_STEP)
            self.scale.setToolTip(tr_data(SCALES[noise.kind].doc))
        self.scale.set_value(noise.scale)
        self.scale.setEnabled(bool(noise.kind))
        self.seed.setEnabled(noise.kind in RANDOM)

    def _on_picture(self, index: int) -> None:
        chosen = self.picture.itemData(index)
        if chosen is None:
            folder = self._folder_of(self._model.picture)
            name, _ = QFileDialog.getOpenFileName(self, tr("Image to Compare On"), folder, open_filter(IMAGES))
            chosen = Path(name) if name else self._model.picture
        if chosen is not None:
            self.set_picture(Path(chosen))

    @staticmethod
    def _folder_of(image: Path | None) -> str:
        return str(image.parent) if image is not None and not str(image).startswith(PATTERN) else ""

    def _show_clean(self) -> None:
        """Where noise is added the image itself is the clean one."""
        box, file, added = self.clean, self._model.clean_file, bool(self._model.noise.kind)
        box.clear()
        box.addItem(tr("the image itself") if added else tr("unknown: the first variant is the measure"))
        if not added:
            if file is not None:
                box.addItem(file.name)
            box.insertSeparator(box.count())
            box.addItem(tr("Choose a file..."))
        box.setCurrentIndex(int(file is not None and not added))
        box.setEnabled(not added)
        box.setToolTip(tr("What the results are measured against, where the image is noisy already"))

    def _on_clean(self, index: int) -> None:
        if index == self.clean.count() - 1:
            folder = self._folder_of(self._model.clean_file or self._model.picture)
            name, _ = QFileDialog.getOpenFileName(self, tr("Clean Image"), folder, open_filter(IMAGES))
            self.set_clean(Path(name) if name else self._model.clean_file)
        else:
            self.set_clean(self._model.clean_file if index else None)

    def set_clean(self, path: Path | None) -> None:
        """Another clean version of an image that is noisy already; None: there is none."""
        different = path != self._model.clean_file
        self._model.clean_file = path
        self._show_clean()
        if different:
            self._changed()

    def set_picture(self, path: Path) -> None:
        """Another image, from here or from the table of a folder."""
        different = path != self._model.picture
        self._model.picture = path
        if different:
            self._model.clean_file = None  # it was of the other one
        self.show_picture()
        if different:
            self._changed()

    def _on_noise(self) -> None:
        model, kind = self._model, str(self.kind.currentData())
        noise = replace(model.noise, scale=self.scale.value, seed=self.seed.value()).of_kind(kind)
        if noise != model.noise:
            model.noise = noise
            self._show_scale()
            self._changed()

    # --- what runs ---------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        self.changed.emit()

    def _show_all(self) -> None:
        for index in range(len(self.rows)):
            self._show_status(index)

    def _show_status(self, index: int) -> None:
        model = self._model
        if index >= len(self.rows) or index >= len(model.status):
            return
        if model.errors[index]:
            self.rows[index].show_message(model.errors[index], "error")
        else:
            role = "warning" if LETTERS[index] in model.made and model.status[index] else "info"
            self.rows[index].show_message(model.status[index], role)  # type: ignore[arg-type]


def _offer(source: Document | Path) -> tuple[str, ...]:
    variants = source.settings.variants if isinstance(source, Document) else ()
    return (title_of_source(source), *(variant.name for variant in variants))
