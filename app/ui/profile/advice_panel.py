"""Advice: what to change in the network or its settings, the predicted saving, and the measured one after the change."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import Entry, profiling_of
from app.ui.engine.weight_surgery import weight_surgery_of
from app.ui.widgets.empty_state import EmptyStack, EmptyState
from app.ui.widgets.sentences import sentence
from designer.profiling.advice import Advice, Advisable, advise
from designer.profiling.difference import difference
from designer.profiling.quantities import ValueSource
from designer.texts import tr
from designer.units import quantity

REST_MS = 100  # after an edit of the network or its settings
SETTINGS = ("engine", "precision", "layout")  # that advice may change


@dataclass(frozen=True, eq=False)
class Applied:
    """Advice that was applied, the run that it was based on, and the number of the latest run at that time."""

    advice: Advice
    before: Entry
    document: Document
    latest: int

    @property
    def undone(self) -> bool:
        """Whether the layers and settings that the advice changed are as before it was applied."""
        edit, graph = self.advice.edit, self.document.graph
        if edit is None:  # folding removes the layer
            return self.advice.fold in graph
        return all(graph.get(name) == before for name, (before, _) in edit.layers.items()) and all(
            getattr(self.document.settings, name) == before for name, (before, _) in edit.settings.items()
        )


class AdvicePanel(QWidget):
    """One card per piece of advice, largest predicted saving first, and one per applied piece with what it saved."""

    panel_id = "advice"
    title = "Advice"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("advice")
        self.setAccessibleName(tr("Advice"))
        self._context = context
        self._profiling = profiling_of(context)
        self._surgery = weight_surgery_of(context)
        self.advice: list[Advice] = []
        self._applied: list[Applied] = []
        self._document: Document | None = None
        self._outdated = False  # the network or the list of runs changed while the panel was hidden
        self._rest = QTimer(self, singleShot=True, interval=REST_MS, timeout=self._show)
        self._empty = EmptyState(
            "advice",
            "lightbulb-outline",
            tr("Launch a profiled run to see what to change, and what it would save."),
            tr("Launch Inference"),
        )
        self._empty.triggered.connect(context.inference_requested)
        self._cards = QVBoxLayout()
        self._cards.setContentsMargins(0, 0, 0, 0)
        page = QWidget()
        page.setObjectName("advice.page")
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(self._cards)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setObjectName("advice.scroll")
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidget(page)
        self._stack = EmptyStack(self, self._empty, scroll)
        self._profiling.current_changed.connect(self._show)
        self._profiling.entries_changed.connect(self._on_edit)  # a measured saving may be of a run that was removed
        context.root_changed.connect(self._watch)
        self._watch()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._outdated:
            self._show()

    def apply(self, advice: Advice) -> None:
        """Carry out advice as one undoable step. The next run shows what it saved."""
        entry = self._profiling.current
        if entry is None or not self._context.has_document:
            return
        root = self._context.root
        if advice.fold:
            self._surgery.operate("fold", advice.fold, done=lambda title: self._applied_to(advice, entry, root, title))
        elif advice.edit is not None and root.insert(advice.edit):
            self._applied_to(advice, entry, root, advice.edit.title)

    def _applied_to(self, advice: Advice, entry: Entry, document: Document, title: str) -> None:
        latest = max((each.number for each in self._profiling.entries), default=entry.number)
        self._applied.append(Applied(advice, entry, document, latest))
        self._context.message.emit("info", tr("{title}. Launch inference to measure the saving.", title=title))
        self._show()

    def _watch(self, _: object = None) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_edit)
            self._document.settings_changed.disconnect(self._on_edit)
        self._document = self._context.root if self._context.has_document else None
        if self._document is not None:
            self._document.changed.connect(self._on_edit)
            self._document.settings_changed.connect(self._on_edit)
        self._show()

    def _on_edit(self, _: object = None) -> None:
        self._outdated = True
        if self.isVisible():
            self._rest.start()

    def _show(self, _: object = None) -> None:
        self._outdated = False
        self._rest.stop()
        while (item := self._cards.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.deleteLater()
        entry = self._profiling.current
        self._stack.show_content(entry is not None)
        self.advice = []
        if entry is not None:
            self._show_advice(entry)

    def _show_advice(self, entry: Entry) -> None:
        root = self._context.root if self._context.has_document else None
        foreign = root is not None and not entry.may_be_of(root)
        emulated = False
        if root is not None and not foreign:
            others = [
                other.run
                for other in self._profiling.entries
                if other.profile.machine == entry.profile.machine and other.may_be_of(root)
            ]
            settings = {name: getattr(root.settings, name) for name in SETTINGS}
            subject = Advisable(root.graph, entry.run, others, settings)
            self.advice, emulated = advise(subject), subject.emulated
        done = [applied for applied in self._applied if not applied.undone]
        for applied in done:
            if applied.document is root:
                self._cards.addWidget(self._applied_card(applied, entry))
        waiting = {applied.advice.message for applied in done if applied.before is entry}
        shown = [advice for advice in self.advice if advice.message not in waiting]
        for number, advice in enumerate(shown):
            self._cards.addWidget(self._card(advice, number))
        if not shown:
            text = tr("Nothing to change: no rule predicts a saving of 1 % of the run or more.")
            if foreign:
                text = tr(
                    "Run #{number} is of another document. Launch or select a run of this one.", number=entry.number
                )
            elif emulated:
                text = tr("The run emulates its number formats. Its times say nothing about what to change.")
            self._cards.addWidget(_nothing(text))

    def _card(self, advice: Advice, number: int) -> QFrame:
        source = tr("measured") if advice.source is ValueSource.MEASURED else tr("modelled")
        time = quantity(advice.saving_ms / 1e3, "s")
        saving = tr("saves about {time} ({source}: {reason})", time=time, source=source, reason=advice.reason)
        card, row = _frame(sentence(advice.message), sentence(advice.remedy), saving, f"advice.{number}")
        if advice.layers:
            reveal = QPushButton(tr("Show on Canvas"))
            reveal.setObjectName(f"advice.{number}.reveal")
            reveal.clicked.connect(lambda: self._reveal(advice))
            row.addWidget(reveal)
        if advice.edit is not None or advice.fold:
            button = QPushButton(tr("Apply"))
            button.setObjectName(f"advice.{number}.apply")
            button.setToolTip(tr("Change it in one step that Undo reverts"))
            button.clicked.connect(lambda: self.apply(advice))
            row.addWidget(button)
        row.addStretch(1)
        return card

    def _applied_card(self, applied: Applied, entry: Entry) -> QFrame:
        predicted = quantity(applied.advice.saving_ms / 1e3, "s")
        after = self._first_after(applied)
        if after is None:
            measured = tr("not measured yet")
        else:
            found = difference(applied.before.run, after.run)
            total = found.total  # an edit may add layers, so the whole network counts
            measured = (
                tr("measured: no difference beyond the noise of {noise}", noise=quantity(total.noise_ms / 1e3, "s"))
                if total.verdict == "none"
                else tr("measured {time}", time=quantity(-total.difference_ms / 1e3, "s"))
            )
            if found.doubt:
                measured = f"{measured}\n{tr('note: {note}', note=found.doubt)}"
        text = tr("Applied. Predicted saving {predicted}.", predicted=predicted)
        card, row = _frame(sentence(applied.advice.message), text, measured, "advice.applied")
        row.addStretch(1)
        return card

    def _first_after(self, applied: Applied) -> Entry | None:
        """The first measured run of this session after the advice was applied, of the same network and inputs."""
        before = applied.before.run
        return next(
            (
                entry
                for entry in self._profiling.entries
                if entry.number > applied.latest
                and entry.path is None
                and entry.may_be_of(applied.document)
                and (entry.opening is None or entry.opening != applied.before.opening)  # it ran already
                and entry.profile.network == applied.before.profile.network
                and entry.run.source is ValueSource.MEASURED
                and entry.run.time_ms
                and (entry.run.batch, entry.run.size) == (before.batch, before.size)
            ),
            None,
        )

    def _reveal(self, advice: Advice) -> None:
        rows = [
            row
            for row in (self._profiling.current.run.operators if self._profiling.current is not None else ())
            if set(row.layers) & set(advice.layers)
        ]
        self._profiling.choose_rows(rows)
        if self._context.has_document:
            self._context.reveal(advice.layers[0])


def _nothing(text: str) -> QLabel:
    label = QLabel(text)
    label.setObjectName("advice.nothing")
    label.setWordWrap(True)
    return label


def _frame(title: str, reason: str, saving: str, name: str) -> tuple[QFrame, QHBoxLayout]:
    """A card with a title, a reason and a saving, and the row for its buttons."""
    card = QFrame()
    card.setObjectName(name)
    card.setFrameShape(QFrame.Shape.StyledPanel)
    card.setAccessibleName(title)
    column = QVBoxLayout(card)
    column.setContentsMargins(8, 6, 8, 6)
    column.setSpacing(4)
    head = QLabel(title)
    head.setWordWrap(True)
    font = head.font()
    font.setBold(True)
    head.setFont(font)
    text = QLabel(reason)
    text.setWordWrap(True)
    value = QLabel(saving)
    value.setObjectName(f"{name}.saving")
    value.setWordWrap(True)
    for label in (head, text, value):
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        column.addWidget(label)
    row = QHBoxLayout()
    column.addLayout(row)
    return card, row
