"""The fixes of the current finding as buttons."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QWidget

from app.ui.widgets import theme
from app.ui.widgets.flow import FlowLayout
from app.ui.widgets.tooltips import plain_tip
from designer.operators.fixes import Fix
from designer.texts import tr

LONGEST = 440  # maximum width of a button in pixels


class FixBar(QWidget):
    """`chosen` carries a Fix. Hidden until a finding is shown."""

    chosen = Signal(object)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(tr("Fixes"))
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._layout = FlowLayout(self)
        self._label = QLabel()
        self._label.setObjectName(f"{name}.label")
        self._layout.addWidget(self._label)
        self._buttons: list[QPushButton] = []
        self.fixes: tuple[Fix, ...] = ()
        self.hide()

    def show_search(self) -> None:
        """Show that the search for fixes is running."""
        self.show_fixes(())
        self._label.setText(tr("Searching for fixes..."))

    def show_fixes(self, fixes: Sequence[Fix] | None) -> None:
        """Offer these fixes. An empty sequence shows that there are none; None hides the bar."""
        self.fixes = tuple(fixes or ())
        self._label.setText(tr("Fix:") if self.fixes else tr("No fix available."))
        while len(self._buttons) < len(self.fixes):
            self._add_button()
        for button, fix in zip(self._buttons, self.fixes, strict=False):
            button.setToolTip(plain_tip(fix.title))
            button.setAccessibleName(tr("Fix: {what}", what=fix.title))
        for number, button in enumerate(self._buttons):
            button.setVisible(number < len(self.fixes))
        self._elide()
        height = self._buttons[0].sizeHint().height() if self._buttons else 0
        self._label.setMinimumHeight(height)
        self.setVisible(fixes is not None)
        self.updateGeometry()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        """Shorten the titles to what the bar has room for, in the middle: fixes of one kind differ at their ends."""
        for button, fix in zip(self._buttons, self.fixes, strict=False):
            button.setText("")
            room = min(self.width() - button.sizeHint().width(), LONGEST)
            shown = button.fontMetrics().elidedText(fix.title, Qt.TextElideMode.ElideMiddle, room)
            button.setText(shown.replace("&", "&&"))

    def _add_button(self) -> None:
        number = len(self._buttons)
        button = QPushButton()
        button.setObjectName(f"{self.objectName()}.{number}")
        theme.set_icon(button, "wrench-outline", "text")
        button.clicked.connect(lambda: self.chosen.emit(self.fixes[number]))
        self._layout.addWidget(button)
        self._buttons.append(button)
