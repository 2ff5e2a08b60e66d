"""Graph Passes: the passes of the current variant, what each does to the network, and whether the result stays equal."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.engine.protocol import PassesReply, PassRow
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.document_watch import DocumentWatch
from app.ui.engine.number_formats import number_formats_of
from app.ui.widgets import theme
from app.ui.widgets.frozen_tree import RowDelegate
from app.ui.widgets.message import Message
from designer.passes.passes import PASSES
from designer.texts import mark, tr, tr_data
from designer.units import UNAVAILABLE_SIGN, binary, percent

NAME = Qt.ItemDataRole.UserRole
HEADERS = (
    mark("Pass"),
    mark("Rewritings"),
    mark("Tensor accesses"),
    mark("Memory traffic\n(modelled)"),
    mark("Saved"),
    mark("Result"),
)
RESULT = len(HEADERS) - 1
TIPS = {
    1: mark("How often the pass changes the network"),
    2: mark("Tensors that layers read or write, before and after"),
    3: mark(
        "Bytes of these tensors and of the weights in FP32, for one image of the document's size, before and after"
    ),
    RESULT: mark("Largest difference to the outputs of the network on the current input"),
}


class PassesPanel(QWidget):
    """A table of all passes with a check mark each. Numbers of a pass that is off say what it would do."""

    panel_id = "graph_passes"
    title = "Graph Passes"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("graph_passes")
        self.setAccessibleName(tr("Graph Passes"))
        self._context = context
        self._formats = number_formats_of(context)
        self._document: Document | None = None
        self._rows: dict[str, PassRow] = {}
        self._tried: tuple[str, ...] = ()  # the passes of the variant when the rows were asked for
        self.subject = QLabel()
        self.subject.setObjectName("graph_passes.variant")
        self.subject.setTextFormat(Qt.TextFormat.PlainText)
        self.table = self._make_table()
        self.total = QLabel()
        self.total.setObjectName("graph_passes.total")
        self.compare = QPushButton(tr("Try Passes"))
        self.compare.setObjectName("graph_passes.compare")
        self.compare.setToolTip(
            tr("Count what each pass changes, and compare the results before and after on the current input")
        )
        theme.set_icon(self.compare, "play")
        self.compare.clicked.connect(self._on_compare)
        self.status = Message("graph_passes.status")
        main = QVBoxLayout(self)
        main.setContentsMargins(8, 8, 8, 8)
        row = QHBoxLayout()
        row.addWidget(self.subject, 1)
        row.addWidget(self.compare)
        main.addLayout(row)
        main.addWidget(self.status)
        main.addWidget(self.table, 1)
        main.addWidget(self.total)
        self._formats.busy_changed.connect(self._on_busy)
        self._formats.formats_changed.connect(self._on_settings)
        DocumentWatch(context, self).outdated.connect(self._forget)
        context.root_changed.connect(self._watch)
        theme.changes().changed.connect(self._show)
        self._watch()

    def _make_table(self) -> QTreeWidget:
        table = QTreeWidget()
        table.setObjectName("graph_passes.table")
        table.setAccessibleName(tr("Graph passes"))
        table.setRootIsDecorated(False)
        table.setItemDelegate(RowDelegate(table))
        theme.frame_check_boxes(table)
        table.setHeaderLabels([tr_data(title) for title in HEADERS])
        header = table.headerItem()
        for column, tip in TIPS.items():
            header.setToolTip(column, tr_data(tip))
        for column in range(1, RESULT):
            header.setTextAlignment(column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        table.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        for each in PASSES.values():
            item = QTreeWidgetItem(table, [tr_data(each.title)])
            item.setData(0, NAME, each.name)
            item.setToolTip(0, tr_data(each.tip))
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(0, Qt.CheckState.Unchecked)
            for column in range(1, RESULT):
                item.setTextAlignment(column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        table.itemChanged.connect(self._on_checked)
        return table

    # --- the document ----------------------------------------------------------------------------------------------

    def _watch(self, *_: object) -> None:
        self._document = self._context.root if self._context.has_document else None
        self.status.show_message("", "info")
        self._forget()

    def _forget(self) -> None:
        """Numbers of another network, of other weights or of another input are worth nothing."""
        self._rows = {}
        if not self._formats.busy:
            self.status.show_message("", "info")
        self._show()

    @property
    def _on(self) -> tuple[str, ...]:
        variant = self._formats.variant
        return variant.passes if variant is not None else ()

    def _on_settings(self) -> None:
        """Another variant is current, or it has other passes: numbers that were shown are found again."""
        if self._context.has_document and self._document is not self._context.root:
            return  # `_watch` comes next
        known = bool(self._rows)
        if not known and self._tried != self._on and not self._formats.busy:
            self.status.show_message("", "info")  # it is about other passes
        if known and tuple(name for name, row in self._rows.items() if row.on) != self._on:
            self._forget()
            if self.isVisible() and not self._formats.busy:
                self._on_compare()
        self._show()

    def _on_checked(self, item: QTreeWidgetItem, column: int) -> None:
        if not column:
            self._formats.set_pass(item.data(0, NAME), item.checkState(0) is Qt.CheckState.Checked)

    def _on_compare(self) -> None:
        if self._formats.busy:
            self._formats.stop()
        else:
            self._tried = self._on
            self._formats.measure_passes(self._on_found, self.status.show_message)

    def _on_busy(self, busy: bool) -> None:
        self.compare.setText(tr("Stop") if busy else tr("Try Passes"))
        theme.set_icon(self.compare, "stop" if busy else "play")

    # --- what is shown ---------------------------------------------------------------------------------------------

    def _on_found(self, reply: PassesReply) -> None:
        if self._tried != self._on:  # a pass was checked in the meantime
            self._forget()
            if self.isVisible():
                self._on_compare()
            return
        self._rows = {row.name: row for row in reply.rows}
        self._show()

    def _show(self) -> None:
        variant = self._formats.variant
        self.subject.setText(
            tr("Passes of the variant '{name}', which is current", name=variant.name)
            if variant is not None
            else tr("The current network has no passes. Check one to add a variant.")
        )
        self.setEnabled(self._document is not None)
        self.table.blockSignals(True)
        for index in range(self.table.topLevelItemCount()):
            item = self.table.topLevelItem(index)
            assert item is not None
            name = item.data(0, NAME)
            item.setCheckState(0, Qt.CheckState.Checked if name in self._on else Qt.CheckState.Unchecked)
            row = self._rows.get(name)
            color = theme.color("text" if row is None or row.on else "muted")
            for column, text in enumerate(cells(row), 1):
                item.setText(column, text)
                item.setForeground(column, color)
        self.table.blockSignals(False)
        self.total.setText(total_text([row for row in self._rows.values() if row.on]))
        self.total.setVisible(bool(self.total.text()))


def cells(row: PassRow | None) -> list[str]:
    """The cells of a pass behind its name."""
    if row is None:
        return [UNAVAILABLE_SIGN] * RESULT
    (accesses, fewer), (plain, less) = row.accesses, row.bytes
    return [
        str(row.count),
        tr("{before} → {after}", before=accesses, after=fewer),
        tr("{before} → {after}", before=binary(plain), after=binary(less)),
        percent(1 - less / plain) if plain else UNAVAILABLE_SIGN,
        result_text(row),
    ]


def result_text(row: PassRow) -> str:
    """Whether the outputs stay equal."""
    if not row.count:
        return tr("nothing to do")
    if row.equal:
        return tr("equal (difference {size})", size=f"{row.difference or 0:.1g}")
    if row.difference is None:
        return tr("outputs have other shapes, or values that are not finite")
    return tr("differs by up to {size}", size=f"{row.difference:.2g}")


def total_text(rows: list[PassRow]) -> str:
    """What the passes that are on save together."""
    if not rows:
        return ""
    (accesses, _), (_, fewer) = rows[0].accesses, rows[-1].accesses
    (plain, _), (_, less) = rows[0].bytes, rows[-1].bytes
    return tr(
        "Together: {accesses} → {fewer} tensor accesses, {plain} → {less} of memory traffic ({saved} less, modelled)",
        accesses=accesses,
        fewer=fewer,
        plain=binary(plain),
        less=binary(less),
        saved=percent(1 - less / plain) if plain else "0 %",
    )
