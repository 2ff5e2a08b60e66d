"""Variants: other ways to run the open network, measured on its input, and which of them is current."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QMenu,
    QPushButton,
    QToolButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.engine.protocol import (
    MeasureVariantsReply,
    MeasureVariantsRequest,
    ProgressEvent,
    VariantRow,
)
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.document_watch import DocumentWatch
from app.ui.engine.question import EngineQuestion
from app.ui.precision.precision_dialog import PrecisionDialog
from app.ui.widgets import theme
from app.ui.widgets.frozen_tree import RowDelegate
from app.ui.widgets.message import Message
from app.ui.widgets.param_section import tool_button
from app.ui.widgets.sentences import placed_text
from app.ui.widgets.tooltips import plain_tip
from designer.files.variants import Variant
from designer.graph.diagnostics import DiagnosticError
from designer.passes.passes import PASSES
from designer.precision.mixed import MIXED
from designer.precision.variants import DENSE, INT8, added, changed, removed, with_pass
from designer.runtime.number_formats import FLOAT32
from designer.surgery.sparsity import PATTERN
from designer.texts import mark, tr, tr_data, trn
from designer.units import UNAVAILABLE_SIGN, binary, digits

NAME = Qt.ItemDataRole.UserRole
HEADERS = (
    mark("Variant"),
    mark("Precision"),
    mark("Weights\nsize"),
    mark("PSNR\nto FP32, dB"),
    mark("SSIM\nto FP32"),
    mark("PSNR\nto clean, dB"),
    mark("SSIM\nto clean"),
    mark("Time\nms"),
    mark("Status"),
)
PRECISION, STATUS = 1, len(HEADERS) - 1
TEMPLATES = (
    (mark("FP16"), "fp16", mark("Half precision: 11 significant bits, values up to 65504")),
    (mark("BF16"), "bf16", mark("Brain float: 8 significant bits, the range of FP32")),
    (mark("INT8"), "int8", mark("Whole numbers from -127 to 127, scaled to the range of each tensor")),
    (mark("FP32"), "fp32", mark("Single precision, for instance with other weights or another engine")),
)
SEARCHES = (
    (
        "find",
        mark("Find Precision..."),
        MIXED,
        mark("Find the layers that have to stay in FP32, on a folder of images"),
    ),
    (
        "calibrate",
        mark("Calibrate INT8..."),
        INT8,
        mark("Find the ranges of INT8 and the sensitive layers, on a folder of images"),
    ),
)
REST_MS = 800  # after the last change before a variant is measured again
EQUAL = 999.0  # what the engine sends for equal images


class VariantsPanel(QWidget):
    """A table of variants. The first row is the network itself; a check mark shows the current one."""

    panel_id = "variants"
    title = "Variants"
    measured = Signal()

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("variants")
        self.setAccessibleName(tr("Variants"))
        self._context = context
        self._document: Document | None = None
        self._measured: dict[str, VariantRow] = {}
        self._judged: dict[str, Variant] = {}  # the variants of the rows, as they were measured
        self._again = QTimer(self, singleShot=True, interval=REST_MS, timeout=self._judge_again)
        self._question = EngineQuestion(context, self)
        self._question.busy_changed.connect(lambda _: self._show_enabled())
        DocumentWatch(context, self).outdated.connect(self._forget)
        self.table = self._make_table()
        self.status = Message("variants.status")
        main = QVBoxLayout(self)
        main.setContentsMargins(8, 8, 8, 8)
        main.addLayout(self._make_buttons())
        main.addWidget(self.table, 1)
        main.addWidget(self.status)
        context.root_changed.connect(self._watch)
        theme.changes().changed.connect(self.refresh)
        self._watch()

    # --- widgets -----------------------------------------------------------------------------------------------

    def _make_table(self) -> QTreeWidget:
        table = QTreeWidget()
        table.setObjectName("variants.table")
        table.setAccessibleName(tr("Variants"))
        table.setRootIsDecorated(False)
        table.setUniformRowHeights(True)
        table.setItemDelegate(RowDelegate(table))
        table.setHeaderLabels([tr_data(title) for title in HEADERS])
        table.setEditTriggers(
            QAbstractItemView.EditTrigger.DoubleClicked | QAbstractItemView.EditTrigger.EditKeyPressed
        )
        header = table.header()
        header.setStretchLastSection(True)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        table.itemChanged.connect(self._on_edited)
        table.currentItemChanged.connect(lambda *_: self._show_enabled())
        return table

    def _make_buttons(self) -> QHBoxLayout:
        self.add = QToolButton()
        self.add.setObjectName("variants.add")
        self.add.setText(tr("Add"))
        self.add.setAccessibleName(tr("Add a variant"))
        self.add.setToolTip(tr("Add a variant of the network in another precision"))
        self.add.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.add.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        theme.set_icon(self.add, "plus")
        menu = QMenu(self.add)
        menu.setToolTipsVisible(True)
        for title, precision, tip in TEMPLATES:
            action = menu.addAction(tr_data(title))
            action.setObjectName(f"variants.add.{precision}")
            action.setToolTip(tr_data(tip))
            action.triggered.connect(lambda _=False, p=precision, t=title: self.add_variant(Variant(tr_data(t), p)))
        menu.addSeparator()
        sparse = menu.addAction(tr("2:4 Sparse"))
        sparse.setObjectName("variants.add.sparse")
        sparse.setToolTip(
            tr("Two of every four weights are 0, for sparse Tensor Cores; prune and retrain for better results")
        )
        sparse.triggered.connect(lambda: self.add_variant(Variant(tr("2:4 sparse"), sparsity=PATTERN)))
        menu.addSeparator()
        for name, title, target, tip in SEARCHES:
            action = menu.addAction(tr_data(title))
            action.setObjectName(f"variants.{name}")
            action.setToolTip(tr_data(tip))
            action.triggered.connect(lambda _=False, target=target: self.find_precision(target))
        self.add.setMenu(menu)
        self.duplicate = tool_button(
            "variants.duplicate", "content-copy", tr("Duplicate"), tr("Add a copy of the selected variant")
        )
        self.delete = tool_button("variants.delete", "delete-outline", tr("Delete"), tr("Delete the selected variant"))
        self.passes = self._make_passes()
        self.current = QPushButton(tr("Make Current"))
        self.current.setObjectName("variants.current")
        self.current.setToolTip(tr("Run the network as the selected variant: analysis, profile and exports"))
        self.measure = QPushButton(tr("Measure"))
        self.measure.setObjectName("variants.measure")
        theme.set_icon(self.measure, "gauge")
        self.measure.setToolTip(tr("Run all variants on the input image and compare the results"))
        self.duplicate.clicked.connect(self._on_duplicate)
        self.delete.clicked.connect(self._on_delete)
        self.current.clicked.connect(self._on_current)
        self.measure.clicked.connect(self._on_measure)
        row = QHBoxLayout()
        row.setSpacing(4)
        for button in (self.add, self.duplicate, self.delete, self.passes, self.current):
            row.addWidget(button)
        row.addStretch(1)
        row.addWidget(self.measure)
        return row

    def _make_passes(self) -> QToolButton:
        button = QToolButton()
        button.setObjectName("variants.passes")
        button.setText(tr("Passes"))
        button.setAccessibleName(tr("Graph passes of the selected variant"))
        button.setToolTip(tr("Graph passes that the selected variant has, such as folding batch normalizations"))
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(button)
        menu.setToolTipsVisible(True)
        for each in PASSES.values():
            action = menu.addAction(tr_data(each.title))
            action.setObjectName(f"variants.passes.{each.name}")
            action.setToolTip(tr_data(each.tip))
            action.setCheckable(True)
            action.triggered.connect(lambda on=False, name=each.name: self._on_pass(name, on))
        button.setMenu(menu)
        return button

    # --- the document ------------------------------------------------------------------------------------------

    def _watch(self, *_: object) -> None:
        if self._document is not None:
            self._document.settings_changed.disconnect(self._on_settings)
        self.stop()
        self._document = self._context.root if self._context.has_document else None
        self._measured = {}
        self.status.show_message("", "info")
        if self._document is not None:
            self._document.settings_changed.connect(self._on_settings)
        self.refresh()

    def _forget(self) -> None:
        """Measurements of another network, of other weights or of another image are worth nothing."""
        self._measured = {}
        self._on_settings()

    def _on_settings(self) -> None:
        """Show the variants; a problem that was shown may be solved now."""
        if not self._question.busy:
            self.status.show_message("", "info")
        self.refresh()

    @property
    def variants(self) -> Sequence[Variant]:
        return self._document.settings.variants if self._document is not None else ()

    @property
    def selected(self) -> str:
        """The name of the selected variant; empty for the network itself."""
        item = self.table.currentItem()
        return str(item.data(0, NAME)) if item is not None else ""

    def _drop_changed(self) -> None:
        """Forget measurements of variants that are others now; those whose formats were found are measured again."""
        changed = [v for v in self.variants if v.name in self._measured and self._judged.get(v.name) != v]
        for variant in changed:
            del self._measured[variant.name]
        if any(variant.reasons for variant in changed):
            self._again.start()

    def _judge_again(self) -> None:
        if not self._question.busy and self.isVisible():
            self.launch([v for v in self.variants if v.reasons and v.name not in self._measured])

    def refresh(self) -> None:
        """Show the variants of the document."""
        self._drop_changed()
        selected = self.selected
        self.table.blockSignals(True)
        self.table.clear()
        current = self._document.settings.variant if self._document is not None else ""
        if self._document is not None:
            self._add_row(Variant(""), tr("{name} (FP32)", name=self._document.graph.name or tr("network")), current)
        for variant in self.variants:
            self._add_row(variant, variant.name, current)
        self.table.blockSignals(False)
        self._select(selected)
        hint = tr("Add a variant, such as FP16, and measure what it does to the input image.")
        if not self.variants and self._document is not None and not self._question.busy:
            self.status.show_message(hint, "info")
        elif self.status.text() == hint:
            self.status.show_message("", "info")
        self._show_enabled()

    def _add_row(self, variant: Variant, title: str, current: str) -> None:
        found = self._measured.get(variant.name)
        texts = [title, precision_text(variant), *measured_texts(found)]
        item = QTreeWidgetItem(self.table, texts)
        item.setData(0, NAME, variant.name)
        item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
        if variant.name:
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsEditable)
        if variant.name == current:
            font = item.font(0)
            font.setBold(True)
            item.setFont(0, font)
            item.setIcon(0, theme.icon("check"))
        for column in range(2, STATUS):
            item.setTextAlignment(column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        item.setText(STATUS, self._status_text(variant, found, current))
        emulated = tr("emulated: results are those of the format, times are not")
        item.setToolTip(STATUS, plain_tip(emulated if found is not None and found.emulated else item.text(STATUS)))

    def _status_text(self, variant: Variant, found: VariantRow | None, current: str) -> str:
        parts = [tr("current")] if variant.name == current else []
        if found is None:
            parts.append(tr("not measured"))
        elif found.error:
            parts.append(found.error)
        elif found.emulated:
            parts.append(tr("emulated"))
        else:
            parts.append(tr("measured"))
        return ", ".join(parts)

    def _show_enabled(self) -> None:
        busy, name = self._question.busy, self.selected
        there = self._document is not None
        self.add.setEnabled(there and not busy)
        self.duplicate.setEnabled(bool(name) and not busy)
        self.delete.setEnabled(bool(name) and not busy)
        self.passes.setEnabled(bool(name) and not busy)
        used = next((variant.passes for variant in self.variants if variant.name == name), ())
        for action in self.passes.menu().actions():
            action.setChecked(action.objectName().rpartition(".")[2] in used)
        self.current.setEnabled(
            there and not busy and name != (self._document.settings.variant if self._document else "")
        )
        self.measure.setEnabled(there)
        self.measure.setText(tr("Stop") if busy else tr("Measure"))
        theme.set_icon(self.measure, "stop" if busy else "gauge")

    # --- edits -------------------------------------------------------------------------------------------------

    def _do(self, edit: Callable[[Sequence[Variant]], tuple[Variant, ...]], **more: str) -> bool:
        """One undo step that changes the list; a refusal is shown."""
        assert self._document is not None
        try:
            variants = edit(self.variants)
        except DiagnosticError as error:
            self.status.show_message(placed_text(error.diagnostics[0]), "error")
            self.refresh()
            return False
        self.status.show_message("", "info")
        self._document.change_settings(variants=variants, **more)
        return True

    def add_variant(self, variant: Variant) -> None:
        """Add a variant and select it."""
        if self._do(lambda variants: added(variants, variant)):
            self._select(self.variants[-1].name)

    def find_precision(self, target: str) -> PrecisionDialog:
        """Open the dialog that finds the layers which stay in FP32, or that are INT8."""
        dialog = PrecisionDialog(self._context, target, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.accepted_variant.connect(partial(self.add_variant))
        dialog.open()
        return dialog

    def _select(self, name: str) -> None:
        """Select a variant, or the first row if there is none of the name."""
        for index in reversed(range(self.table.topLevelItemCount())):
            item = self.table.topLevelItem(index)
            if item is not None and (item.data(0, NAME) == name or not index):
                self.table.setCurrentItem(item)
                return

    def _on_duplicate(self) -> None:
        variant = next(each for each in self.variants if each.name == self.selected)
        self.add_variant(variant)

    def _on_delete(self) -> None:
        assert self._document is not None
        name = self.selected
        more = {"variant": ""} if name == self._document.settings.variant else {}
        self._do(lambda variants: removed(variants, name), **more)

    def _on_pass(self, name: str, on: bool) -> None:
        """Give the selected variant a pass, or take it away."""
        variant = next(each for each in self.variants if each.name == self.selected)
        self._do(lambda variants: changed(variants, variant.name, with_pass(variant, name, on)))

    def _on_current(self) -> None:
        assert self._document is not None
        self._document.change_settings(variant=self.selected)

    def _on_edited(self, item: QTreeWidgetItem, column: int) -> None:
        """A name was edited in the table."""
        old, new = str(item.data(0, NAME)), item.text(0).strip()
        if column or not old or old == new or self._document is None:
            return
        variant = next(each for each in self.variants if each.name == old)
        more = {"variant": new} if old == self._document.settings.variant else {}
        if self._do(lambda variants: changed(variants, old, replace(variant, name=new)), **more):
            if old in self._measured:
                self._measured[new] = self._measured.pop(old)
                self._judged[new] = replace(variant, name=new)
            self.refresh()
            self._select(new)

    # --- measuring ---------------------------------------------------------------------------------------------

    def _on_measure(self) -> None:
        if self._question.busy:
            self.stop()
        else:
            self.launch()

    def launch(self, variants: Sequence[Variant] | None = None) -> None:
        """Run the network and its variants, or some of them, on its inputs."""
        document = self._document
        if document is None:
            return
        settings = replace(document.settings, precision="fp32")
        chosen = tuple(self.variants if variants is None else variants)
        self._judged.update((variant.name, variant) for variant in chosen)
        request = MeasureVariantsRequest(chosen, settings.engine, settings.layout, settings.device, settings.threads)
        self.status.show_message(tr("Running the network ..."), "info")
        self._question.ask(request, self._done, self._failed, self._advance, settings)

    def stop(self) -> None:
        """Give up a measurement; the engine is stopped."""
        if self._question.busy:
            self._question.stop()
            self.status.show_message("", "info")

    def _advance(self, event: ProgressEvent) -> None:
        self.status.show_message(
            tr("Running {name} ({done} of {total}) ...", name=event.text, done=event.done + 1, total=event.total),
            "info",
        )

    def _done(self, reply: MeasureVariantsReply) -> None:
        self._measured.update((row.name, row) for row in reply.rows)
        self.status.show_message("", "info")
        self.refresh()
        self.measured.emit()

    def _failed(self, text: str) -> None:
        self.status.show_message(text, "error")


def precision_text(variant: Variant) -> str:
    """The precision, and how many layers have another one: "FP16, 3 layers FP32"."""
    parts = [variant.precision.upper()]
    for name in dict.fromkeys(variant.formats.values()):
        count = list(variant.formats.values()).count(name)
        title = "FP32" if name == FLOAT32.name else name
        parts.append(trn("{count} layer {title}", "{count} layers {title}", count, title=title))
    if variant.sparsity != DENSE:
        parts.append(variant.sparsity)
    if variant.passes:
        parts.append(trn("{count} pass", "{count} passes", len(variant.passes)))
    if variant.by_hand:
        parts.append(tr("changed by hand"))
    return ", ".join(parts)


def measured_texts(found: VariantRow | None) -> list[str]:
    """The cells from the size to the time."""
    if found is None or found.error:
        return [UNAVAILABLE_SIGN] * 6
    return [
        binary(found.bytes),
        _decibels(found.psnr),
        _number(found.ssim, 4),
        _decibels(found.clean_psnr),
        _number(found.clean_ssim, 4),
        digits(found.milliseconds) if found.milliseconds is not None else UNAVAILABLE_SIGN,
    ]


def _decibels(value: float | None) -> str:
    return tr("equal") if value is not None and value >= EQUAL else _number(value, 2)


def _number(value: float | None, places: int) -> str:
    return f"{value:.{places}f}" if value is not None and isfinite(value) else UNAVAILABLE_SIGN
