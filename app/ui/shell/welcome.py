"""What an empty network shows on the canvas: starting points, recent documents, and help."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QFont, QPalette, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from app.ui.shell.action_set import Actions
from app.ui.shell.files import Files
from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.texts import tr

RECENT = 5
LONGEST = 28  # characters of a file name
OPENING = ("file.open",)
HELP = ("help.tour", "help.docs", "help.shortcuts")


class Welcome(QWidget):
    """Columns of links. `Canvas.show_when_empty` shows it."""

    def __init__(self, actions: Actions, files: Files) -> None:
        super().__init__()
        self.setObjectName("welcome")
        self.setAccessibleName(tr("Welcome"))
        self._files = files
        column = QVBoxLayout(self)
        column.setSpacing(16)
        title = QLabel(tr("Empty network"))
        large = QFont(title.font())
        large.setPointSizeF(large.pointSizeF() * 1.5)
        title.setFont(large)
        title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addWidget(title)
        self._hint = QLabel(tr("Press Space to search for an operator, or drag one from the Layer Palette."))
        self._hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addWidget(self._hint)
        row = QHBoxLayout()
        row.setSpacing(32)
        column.addLayout(row)
        start = self._column(row, tr("New From"))
        self._add(start, actions.section("File/new from"))
        start.addStretch(1)
        right = QVBoxLayout()
        row.addLayout(right)
        self._opening = self._column(right, tr("Open"))
        self._add(self._opening, [actions[name] for name in OPENING])
        self._recent: list[QToolButton] = []
        right.addSpacing(16)
        self._add(self._column(right, tr("Help")), [actions[name] for name in HELP])
        right.addStretch(1)
        theme.changes().changed.connect(self._apply_color)
        self._apply_color()

    def _column(self, row: QHBoxLayout | QVBoxLayout, title: str) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(2)
        head = QLabel(title)
        bold = QFont(head.font())
        bold.setBold(True)
        head.setFont(bold)
        head.setContentsMargins(4, 0, 0, 4)
        column.addWidget(head)
        row.addLayout(column)
        return column

    def _add(self, column: QVBoxLayout, actions: Iterable[QAction]) -> None:
        for action in actions:
            text = action.text().replace("&", "")
            self._link(column, action.objectName(), text, action.toolTip(), action.trigger)

    def _link(self, column: QVBoxLayout, name: str, text: str, tip: str, do: Callable[[], object]) -> QToolButton:
        link = QToolButton()
        link.setObjectName(f"welcome.{name}")
        link.setText(text.replace("&", "&&"))
        link.setAccessibleName(text)
        link.setToolTip(tip)
        link.setAutoRaise(True)
        link.setCursor(Qt.CursorShape.PointingHandCursor)
        link.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        link.clicked.connect(lambda: do())  # noqa: PLW0108 - an action can have parameters, and `checked` is not one of them
        column.addWidget(link)
        return link

    def showEvent(self, event: QShowEvent) -> None:
        self._list_recent()
        super().showEvent(event)

    def _list_recent(self) -> None:
        for link in self._recent:
            link.hide()
            link.deleteLater()
        self._recent = []
        for path in self._files.recent()[:RECENT]:
            text = path.name if len(path.name) <= LONGEST else f"{path.name[: LONGEST - 1]}…"
            self._recent.append(
                self._link(self._opening, "recent", text, plain_tip(str(path)), partial(self._files.open, path))
            )
        self._apply_color()
        self.adjustSize()

    def _apply_color(self) -> None:
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.WindowText, theme.color("muted"))
        self._hint.setPalette(palette)
        palette.setColor(QPalette.ColorRole.ButtonText, theme.color("accent"))
        for link in self.findChildren(QToolButton):
            link.setPalette(palette)
