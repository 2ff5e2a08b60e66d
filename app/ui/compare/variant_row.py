"""The choices of one variant: network, saved variant, weights, engine, device, precision; under them what it does or why it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.ui.compare.variants import RANDOM, VariantChoice, settings_of
from app.ui.document.document import Document
from app.ui.document.locations import is_sample
from app.ui.widgets import run_choices, theme
from app.ui.widgets.choice_box import ChoiceBox
from app.ui.widgets.message import Message
from app.ui.widgets.narrow_combo import NarrowComboBox
from app.ui.widgets.param_section import tool_button
from app.ui.widgets.run_choices import Choice
from designer.texts import tr

FILE = "file"


class VariantRow(QFrame):
    """One variant, identified by its letter."""

    changed = Signal(VariantChoice)
    file_wanted = Signal()
    weights_wanted = Signal()
    removed = Signal()

    def __init__(self, letter: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        name = f"side.variant.{letter}"
        self.setObjectName(name)
        self.setAccessibleName(tr("Variant {letter}", letter=letter))
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self._choice: VariantChoice | None = None
        self._sources: list[Document | Path] = []
        badge = QLabel(letter)
        font = badge.font()
        font.setBold(True)
        badge.setFont(font)
        self.source = NarrowComboBox(
            f"{name}.network",
            tr("Network of {letter}", letter=letter),
            tr("An open document as it is now, a sample, or a file"),
        )
        self.source.activated.connect(self._on_source)
        self.remove = tool_button(
            f"{name}.remove",
            "close",
            tr("Remove variant {letter}", letter=letter),
            tr("Compare without it; two are the least"),
        )
        self.remove.clicked.connect(self.removed)
        self.variant = ChoiceBox(
            f"{name}.variant",
            tr("Variant of the network of {letter}", letter=letter),
            tr("A variant in the settings of the network; see the Variants panel"),
        )
        self.weights = ChoiceBox(
            f"{name}.weights", tr("Weights of {letter}", letter=letter), tr("Which weights it uses")
        )
        self.engine = ChoiceBox(f"{name}.engine", tr("Engine of {letter}", letter=letter), tr("Which program runs it"))
        self.device = ChoiceBox(f"{name}.device", tr("Device of {letter}", letter=letter), tr("Which device runs it"))
        self.precision = ChoiceBox(
            f"{name}.precision", tr("Precision of {letter}", letter=letter), tr("The number format it runs in")
        )
        self.variant.chosen.connect(self._on_variant)
        self.weights.chosen.connect(self._on_weights)
        self.engine.chosen.connect(lambda value: self._change(engine=value))
        self.device.chosen.connect(lambda value: self._change(device=value))
        self.precision.chosen.connect(lambda value: self._change(precision=value))
        self._message = Message(f"{name}.state")
        head = QHBoxLayout()
        head.addWidget(badge)
        head.addWidget(self.source, 1)
        head.addWidget(self.remove)
        grid = QGridLayout()
        grid.setVerticalSpacing(4)
        for row, (text, box) in enumerate(
            (
                (tr("Variant"), self.variant),
                (tr("Weights"), self.weights),
                (tr("Engine"), self.engine),
                (tr("Device"), self.device),
                (tr("Precision"), self.precision),
            )
        ):
            label = QLabel(text)
            label.setBuddy(box)
            grid.addWidget(label, row, 0)
            grid.addWidget(box, row, 1)
        grid.setColumnStretch(1, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 6, 8, 6)
        column.setSpacing(4)
        column.addLayout(head)
        column.addLayout(grid)
        column.addWidget(self._message)

    @property
    def state(self) -> str:
        """The message under the choices."""
        return self._message.text()

    def show_message(self, text: str, role: theme.RoleName) -> None:
        self._message.show_message(text, role)

    def show_choice(self, choice: VariantChoice, sources: Sequence[Document | Path], *, removable: bool) -> None:
        """Show a choice; `sources` are the networks that can be had without asking."""
        self._choice = choice
        self._sources = list(sources)
        self.remove.setEnabled(removable)
        box = self.source
        box.clear()
        for source in self._sources:
            box.addItem(title_of_source(source))
            box.setItemData(box.count() - 1, str(source) if isinstance(source, Path) else "", 3)  # tooltip
        box.insertSeparator(box.count())
        box.addItem(tr("Choose a file..."), FILE)
        box.setCurrentIndex(self._sources.index(choice.source) if choice.source in self._sources else -1)
        own = [Choice("", tr("from the settings")), Choice(RANDOM, tr("random (seed 0)"))]
        if choice.weights not in ("", RANDOM):
            own.insert(1, Choice(choice.weights, Path(choice.weights).name or choice.weights))
        self.weights.show_choices((*own, Choice(FILE, tr("Choose a folder..."))), choice.weights)
        settings = settings_of(choice.source)
        names = [Choice(variant.name, variant.name) for variant in settings.variants]
        self.variant.show_choices((Choice("", tr("none")), *names), choice.variant)
        self.variant.setEnabled(bool(names))
        self.engine.show_choices((Choice("", tr("from the settings")), *run_choices.engines()), choice.engine)
        engine, device = choice.engine or settings.engine, choice.device or settings.device
        self.device.show_choices((Choice("", tr("from the settings")), *run_choices.devices(engine)), choice.device)
        precisions = run_choices.precisions(engine, device)
        self.precision.show_choices((Choice("", tr("from the settings")), *precisions), choice.precision)
        self.precision.setEnabled(not choice.variant)  # a variant has its own

    def _on_source(self, index: int) -> None:
        if index < len(self._sources):
            self._change(source=self._sources[index], weights="", variant="")
        else:
            self.file_wanted.emit()

    def _on_variant(self, value: str) -> None:
        self._change(variant=value, **({"precision": ""} if value else {}))

    def _on_weights(self, value: str) -> None:
        if value == FILE:
            self.weights_wanted.emit()
        else:
            self._change(weights=value)

    def _change(self, **what: object) -> None:
        assert self._choice is not None
        self._choice = replace(self._choice, **what)  # type: ignore[arg-type]
        self.show_choice(self._choice, self._sources, removable=self.remove.isEnabled())
        self.changed.emit(self._choice)


def title_of_source(source: Document | Path) -> str:
    """How a network is called in the lists."""
    if isinstance(source, Document):
        return tr("{name} (open)", name=source.title)
    return tr("{name} (sample)", name=source.name) if is_sample(source) else source.name
