"""A dialog that grows when its content needs more height."""

from __future__ import annotations

from PySide6.QtCore import QEvent
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDialog

OF_THE_SCREEN = 0.9


class GrowingDialog(QDialog):
    """Never lower than its content requires at the current width.

    Qt fits a window only when it is shown; wrapped text that appears later would squash the fields above it.
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
