"""Network Settings: engine, device, precision and other run options, and the weights."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.ui.design.size_rules_view import SizeRulesView
from app.ui.design.weights_report import WeightsReportView
from app.ui.document.document import Document
from app.ui.document.weights_dialog import ask_weights_file, ask_weights_folder
from app.ui.engine.context import Context
from app.ui.widgets import run_choices
from app.ui.widgets.choice_box import ChoiceBox
from app.ui.widgets.empty_state import EmptyStack, EmptyState
from app.ui.widgets.findings import located_finding
from app.ui.widgets.message import Message
from app.ui.widgets.number_field import NumberField
from app.ui.widgets.param_section import tool_button
from app.ui.widgets.tooltips import plain_tip
from app.ui.widgets.typed_path import typed_path
from designer.files.settings import ADAPTED, MAX_ITERATIONS, MAX_SEED, MAX_THREADS, Settings
from designer.files.weight_versions import is_version
from designer.texts import mark, tr, tr_data

_NO_DOCUMENT = mark("Open or create a network to choose its engine, device and weights here.")


class NetworkSettingsPanel(QWidget):
    panel_id = "network_settings"
    title = "Network Settings"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("network_settings")
        self._context = context
        self._document: Document | None = None
        self._empty = EmptyState("network_settings", "cog-outline", tr_data(_NO_DOCUMENT))
        self._stack = EmptyStack(self, self._empty, self._make_form(), margin=0)
        context.root_changed.connect(self._watch)
        if context.has_document:
            self._watch(context.root)

    # --- the form ----------------------------------------------------------------------------------------------

    def _make_form(self) -> QWidget:
        name = "network_settings"
        self._make_run_fields(name)
        run = self._run_rows()
        location = self._make_weights(name)
        return self._lay_out(name, run, location)

    def _make_run_fields(self, name: str) -> None:
        self._engine = ChoiceBox(f"{name}.engine", tr("Engine"), tr("Engine that runs the network"))
        self._device = ChoiceBox(f"{name}.device", tr("Device"), tr("Device that runs the network"))
        self._precision = ChoiceBox(f"{name}.precision", tr("Precision"), tr("Number format of tensors and weights"))
        self._layout = ChoiceBox(f"{name}.layout", tr("Layout"), tr("Memory layout of tensors; results are the same"))
        self._engine.chosen.connect(lambda v: self._change(engine=v))
        self._device.chosen.connect(lambda v: self._change(device=v))
        self._precision.chosen.connect(lambda v: self._change(precision=v))
        self._layout.chosen.connect(lambda v: self._change(layout=v))
        self._tile = ChoiceBox(f"{name}.tile", tr("Tiles"), tr("Run large images in tiles to save memory"))
        self._tile.chosen.connect(lambda v: self._change(tile=int(v)))
        self._threads = NumberField(f"{name}.threads", tr("Threads"), low=0, high=MAX_THREADS)
        self._threads.setToolTip(tr("CPU threads of the engine; 0 uses all cores"))
        self._iterations = NumberField(f"{name}.iterations", tr("Iterations"), low=1, high=MAX_ITERATIONS)
        self._iterations.setToolTip(tr("Number of timed runs of Launch Inference"))
        self._seed = NumberField(f"{name}.seed", tr("Seed of random weights"), low=0, high=MAX_SEED)
        self._seed.setToolTip(tr("The same seed gives the same weights"))
        self._messages = {
            key: Message(f"{name}.{key}.message")
            for key in ("engines", "choices", "threads", "iterations", "random_seed", "weights")
        }
        self._threads.edited.connect(lambda t: self._whole("threads", t, 0, MAX_THREADS))
        self._iterations.edited.connect(lambda t: self._whole("iterations", t, 1, MAX_ITERATIONS))
        self._seed.edited.connect(lambda t: self._whole("random_seed", t, 0, MAX_SEED))

    def _run_rows(self) -> QFormLayout:
        run = _form()
        run.addRow(tr("Engine"), self._engine)
        run.addRow(self._messages["engines"])
        run.addRow(tr("Device"), self._device)
        run.addRow(tr("Precision"), self._precision)
        run.addRow(tr("Layout"), self._layout)
        run.addRow(self._messages["choices"])
        run.addRow(tr("Tiles"), self._tile)
        run.addRow(tr("Threads (0: all)"), self._threads)
        run.addRow(self._messages["threads"])
        run.addRow(tr("Iterations"), self._iterations)
        run.addRow(self._messages["iterations"])

        return run

    def _make_weights(self, name: str) -> QHBoxLayout:
        self._weights = QLineEdit()
        self._weights.setObjectName(f"{name}.weights")
        self._weights.setAccessibleName(tr("Weights location"))
        self._weights.setPlaceholderText(tr("Folder or file with the weights"))
        self._weights.setClearButtonEnabled(True)
        self._weights.editingFinished.connect(self._typed_weights)
        self._weights.textChanged.connect(lambda t: self._typed_weights() if not t else None)
        folder = tool_button(
            f"{name}.weights.folder", "folder-open-outline", tr("Choose a folder"), tr("Choose a folder")
        )
        file = tool_button(f"{name}.weights.file", "file-outline", tr("Choose a file"), tr("Choose a file"))
        folder.clicked.connect(self._ask_folder)
        file.clicked.connect(self._ask_file)
        location = QHBoxLayout()
        location.setSpacing(4)
        location.addWidget(self._weights, 1)
        location.addWidget(folder)
        location.addWidget(file)
        self._report = WeightsReportView(f"{name}.weights")
        self._random = QCheckBox(tr("Random if missing"))
        self._random.setObjectName(f"{name}.random")
        self._random.setAccessibleName(tr("Fill missing weights with random numbers"))
        self._random.setToolTip(tr("Allows running an untrained network; results are marked as using random weights"))
        self._random.clicked.connect(lambda: self._change(random_seed=0 if self._random.isChecked() else None))
        return location

    def _lay_out(self, name: str, run: QFormLayout, location: QHBoxLayout) -> QWidget:
        seed = _form()
        seed.addRow(tr("Seed"), self._seed)
        seed.addRow(self._messages["random_seed"])

        body = QWidget()
        layout = QVBoxLayout(body)
        layout.setContentsMargins(12, 8, 12, 12)
        layout.setSpacing(8)
        layout.addWidget(_heading(tr("Run")))
        layout.addLayout(run)
        layout.addSpacing(8)
        layout.addWidget(_heading(tr("Input sizes")))
        layout.addWidget(SizeRulesView(self._context, f"{name}.sizes"))
        layout.addSpacing(8)
        layout.addWidget(_heading(tr("Weights")))
        layout.addLayout(location)
        layout.addWidget(self._messages["weights"])
        layout.addWidget(self._report)
        layout.addWidget(self._random)
        layout.addLayout(seed)
        layout.addStretch(1)
        scroll = QScrollArea()
        scroll.setObjectName(f"{name}.scroll")
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidget(body)
        return scroll

    # --- following the document --------------------------------------------------------------------------------

    def _watch(self, document: object) -> None:
        if self._document is not None:
            self._document.settings_changed.disconnect(self._show)
        if isinstance(document, Document):
            self._document = document
            document.settings_changed.connect(self._show)
            self._report.follow(document)
            for message in self._messages.values():
                message.show_message("")
            self._show()
            self._stack.show_content(True)

    def _show(self) -> None:
        if self._document is None:
            return
        settings = self._document.settings
        reasons = (
            self._engine.show_choices(run_choices.engines(), settings.engine),
            self._device.show_choices(run_choices.devices(settings.engine), settings.device),
            self._precision.show_choices(run_choices.precisions(settings.engine, settings.device), settings.precision),
            self._layout.show_choices(run_choices.layouts(settings.engine), settings.layout),
        )
        adapted = [d for d in self._document.reading if d.code == ADAPTED and self._is_default(settings)]
        problems = (*run_choices.engine_problems(), *map(located_finding, adapted))
        self._messages["engines"].show_message("\n".join(problems), "warning")
        self._tile.show_choices(run_choices.tiles(settings.tile), str(settings.tile))
        titles = (settings.engine, settings.device, settings.precision, settings.layout)
        broken = [f"{title}: {reason}." for title, reason in zip(titles, reasons, strict=True) if reason]
        self._messages["choices"].show_message(" ".join(broken), "warning")
        numbers = (
            ("threads", self._threads, settings.threads),
            ("iterations", self._iterations, settings.iterations),
            ("random_seed", self._seed, 0 if settings.random_seed is None else settings.random_seed),
        )
        for key, field, value in numbers:
            if not self._messages[key].text() and (not field.hasFocus() or field.text().strip() != str(value)):
                field.set_text(str(value))
        self._random.setChecked(settings.random_seed is not None)
        self._seed.setEnabled(settings.random_seed is not None)
        if self._weights.text() != settings.weights:
            self._weights.setText(settings.weights)
        self._weights.setToolTip(plain_tip(settings.weights))
        edited = bool(settings.weights) and is_version(Path(settings.weights))
        self._messages["weights"].show_message(
            tr("Edited weights that are not saved elsewhere: File > Save Weights As.") if edited else "", "warning"
        )

    def _is_default(self, settings: Settings) -> bool:
        """Whether engine, device and precision have their default values."""
        default = Settings()
        return all(getattr(settings, key) == getattr(default, key) for key in ("engine", "device", "precision"))

    # --- edits -------------------------------------------------------------------------------------------------

    def _change(self, **changes: object) -> None:
        if self._document is not None:
            self._document.change_settings(**changes)

    def _whole(self, key: str, text: str, low: int, high: int) -> None:
        digits = text.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) < 12 and low <= int(digits) <= high):
            self._messages[key].show_message(
                tr("'{text}' must be an integer from {low} to {high}.", text=text, low=low, high=high)
            )
            return
        self._messages[key].show_message("")
        self._change(**{key: int(digits)})

    def _typed_weights(self) -> None:
        text = self._weights.text().strip()
        if self._document is None or text == self._document.settings.weights:
            return
        base = self._document.path.parent if self._document.path is not None else Path.home()
        self._change(weights=str(base / typed_path(text)) if text else "")

    def _ask_folder(self) -> None:
        ask_weights_folder(self, self._document, self._use)

    def _ask_file(self) -> None:
        ask_weights_file(self, self._document, self._use)

    def _use(self, weights: Path) -> None:
        self._change(weights=str(weights))


def _form() -> QFormLayout:
    form = QFormLayout()
    form.setHorizontalSpacing(8)
    form.setVerticalSpacing(8)
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
    return form


def _heading(text: str) -> QLabel:
    label = QLabel(text)
    font = label.font()
    font.setBold(True)
    label.setFont(font)
    return label
