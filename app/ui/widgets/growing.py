"""A dialog that grows when a message appears in it."""

from __future__ import annotations

from PySide6.QtCore import QEvent
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDialog

OF_THE_SCREEN = 0.9


class GrowingDialog(QDialog):
    """Never lower than its content needs at its width.

    Qt fits a window once, when it is shown; text that wraps and comes later would squash the fields above it.
    """

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() is QEvent.Type.LayoutRequest:
            self._fit()
        return done

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        layout = self.layout()
        if layout is not None:
            wrapped = layout.hasHeightForWidth()
            needed = layout.totalHeightForWidth(self.width()) if wrapped else layout.totalMinimumSize().height()
            limit = round(self.screen().availableGeometry().height() * OF_THE_SCREEN)
            self.setMinimumHeight(min(needed, limit))
