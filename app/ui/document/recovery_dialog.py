"""Recover Unsaved Work: recover, compare or discard documents that a crash left with unsaved changes, or decide later."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QDateTime, QLocale, Qt, Signal
from PySide6.QtGui import QCloseEvent, QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.ui.widgets import theme
from app.ui.widgets.findings import without_icons
from app.ui.widgets.growing_dialog import GrowingDialog
from app.ui.widgets.sentences import finding_text
from app.ui.widgets.tooltips import plain_tip
from designer.files.recovery import Unfinished
from designer.graph.compare import compare
from designer.graph.graph import Graph
from designer.texts import mark, tr, tr_data, trn

NAME_WIDTH = 260  # pixels at most at first, so that the other columns are in view
STATES = {
    "none": mark("not saved"),
    "same": mark("unchanged"),
    "changed": mark("changed since"),
    "gone": mark("deleted"),
}


class RecoveryDialog(GrowingDialog):
    """A non-modal dialog that closes when its list is empty."""

    recover_asked = Signal(Unfinished)
    discard_asked = Signal(Unfinished)

    def __init__(self, left: Sequence[Unfinished], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("recover")
        self.setAccessibleName(tr("Recover Unsaved Work"))
        self.setWindowTitle(tr("Recover Unsaved Work"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        head = QLabel(tr("Layerwright quit before these changes were saved. No file is changed until you save."))
        head.setObjectName("recover.sentence")
        head.setWordWrap(True)
        self.list = QTreeWidget()
        self.list.setObjectName("recover.list")
        self.list.setAccessibleName(tr("Documents with unsaved work"))
        self.list.setRootIsDecorated(False)
        self.list.setUniformRowHeights(True)
        self.list.setColumnCount(4)
        self.list.setHeaderLabels([tr("Document"), tr("Last change"), tr("File"), tr("Folder")])
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self._left = dict(enumerate(left))
        self.list.addTopLevelItems([self._row(number, item) for number, item in self._left.items()])
        header = self.list.header()
        for column in (1, 2):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        self.list.setColumnWidth(0, min(self.list.sizeHintForColumn(0), NAME_WIDTH))
        first = self.list.topLevelItem(0)
        if first is not None:
            self.list.setCurrentItem(first)
        self.list.currentItemChanged.connect(self._refresh)
        self.list.itemDoubleClicked.connect(self.recover_current)  # Return presses the button
        self.note = QLabel()
        self.note.setObjectName("recover.note")
        self.note.setWordWrap(True)
        self.note.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.recover = self._button("recover", tr("&Recover"), self.recover_current)
        self.compare = self._button("compare", tr("&Compare..."), self.compare_current)
        self.discard = self._button("discard", tr("&Discard..."), self.discard_current)
        self.all = self._button("all", tr("Recover &All"), self.recover_all)
        self.later = self._button("later", tr("&Later"), self.close)
        self.later.setToolTip(tr("Ask again on the next start"))
        self.recover.setDefault(True)
        row = QHBoxLayout()
        for button in (self.recover, self.compare, self.discard):
            row.addWidget(button)
        row.addStretch(1)
        row.addWidget(self.all)
        row.addWidget(self.later)
        box = QVBoxLayout(self)
        box.addWidget(head)
        box.addWidget(self.list, 1)
        box.addWidget(self.note)
        box.addLayout(row)
        self.resize(680, 300)
        self._refresh()

    def _row(self, number: int, left: Unfinished) -> QTreeWidgetItem:
        when = QDateTime.fromSecsSinceEpoch(int(left.changed))
        folder = str(left.path.parent) if left.path is not None else ""
        time = QLocale().toString(when, QLocale.FormatType.ShortFormat)
        name = left.path.name if left.path is not None else left.name
        item = QTreeWidgetItem([name, time, tr_data(STATES[left.disk]), folder])
        item.setData(0, Qt.ItemDataRole.UserRole, number)
        item.setToolTip(0, plain_tip(left.title))
        item.setToolTip(3, plain_tip(folder))
        item.setIcon(0, theme.icon("alert", "warning") if left.findings else theme.icon("file-outline", "muted"))
        return item

    def _button(self, name: str, text: str, command: Callable[[], object]) -> QPushButton:
        button = QPushButton(text)
        button.setObjectName(f"recover.{name}")
        button.setAccessibleName(text.replace("&", "").rstrip("."))
        button.setAutoDefault(False)
        button.clicked.connect(command)
        return button

    def current(self) -> Unfinished | None:
        item = self.list.currentItem()
        return self._left.get(item.data(0, Qt.ItemDataRole.UserRole)) if item is not None else None

    def recover_current(self) -> None:
        left = self.current()
        if left is not None and left.graph is not None:
            self.recover_asked.emit(left)

    def recover_all(self) -> None:
        for left in list(self._left.values()):
            if left.graph is not None:
                self.recover_asked.emit(left)

    def discard_current(self) -> None:
        left = self.current()
        if left is not None:
            self.discard_asked.emit(left)

    def compare_current(self) -> None:
        left = self.current()
        if left is not None and left.graph is not None:
            before = left.on_disk if left.on_disk is not None else Graph()
            found = compare(before, left.graph)
            lines = [f"{tr('Settings')}: {key} → {value}" for key, value in sorted(left.settings.items())]
            text = found.text() + "\n".join(lines)
            parts = [found.summary()] if found or not lines else []
            parts += [trn("{count} setting", "{count} settings", len(lines))] if lines else []
            summary = "; ".join(parts)
            told = (
                tr("Unsaved changes relative to the file on disk: {summary}.", summary=summary)
                if left.on_disk is not None
                else tr("There is no file to compare with. In the unsaved network: {summary}.", summary=summary)
            )
            DifferencesDialog(left.title, told, text or tr("No differences."), self).open()

    def take(self, left: Unfinished) -> None:
        """Remove an entry that was recovered or discarded."""
        number = next(n for n, item in self._left.items() if item is left)
        del self._left[number]
        for row in range(self.list.topLevelItemCount()):
            item = self.list.topLevelItem(row)
            if item is not None and item.data(0, Qt.ItemDataRole.UserRole) == number:
                self.list.takeTopLevelItem(row)
                break
        if not self._left:
            self.close()
        self._refresh()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.reject()
        super().closeEvent(event)

    def _refresh(self) -> None:
        left = self.current()
        whole = left is not None and left.graph is not None
        reason = "" if whole else tr("Nothing of this document could be recovered")
        for button in (self.recover, self.compare):
            button.setEnabled(whole)
            button.setToolTip(reason)
        self.discard.setEnabled(left is not None)
        self.all.setVisible(len(self._left) > 1)
        notes = [finding_text(d) for d in left.findings] if left is not None else []
        if left is not None and left.disk == "changed":
            notes.append(tr("The file was changed after it was opened. Compare before you overwrite it."))
        self.note.setText("\n".join(notes))
        self.note.setVisible(bool(notes))


class DifferencesDialog(QDialog):
    """The differences between a file and its unsaved changes, as text."""

    def __init__(self, name: str, summary: str, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("recover_differences")
        self.setWindowTitle(tr("Differences of {name}", name=name))
        self.setAccessibleName(self.windowTitle())
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        head = QLabel(summary)
        head.setObjectName("recover_differences.summary")
        head.setWordWrap(True)
        view = QPlainTextEdit(text)
        view.setObjectName("recover_differences.text")
        view.setAccessibleName(tr("Differences"))
        view.setReadOnly(True)
        view.setTabChangesFocus(True)
        view.setFont(theme.mono_font())
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        copy = buttons.addButton(tr("&Copy"), QDialogButtonBox.ButtonRole.ActionRole)
        copy.setObjectName("recover_differences.copy")
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(text))
        without_icons(buttons)
        box = QVBoxLayout(self)
        box.addWidget(head)
        box.addWidget(view, 1)
        box.addWidget(buttons)
        self.resize(560, 360)
