"""One channel, enlarged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.ui.inspector.color_bar import tool_button
from app.ui.inspector.look import Fit, Look, pixels
from app.ui.widgets.elided import ElidedLabel
from app.ui.widgets.image_view import ImageView
from app.ui.widgets.render import Floats, to_image
from designer.texts import tr


class EnlargedPage(QWidget):
    """`walked` carries -1 or 1."""

    left = Signal()  # back to the grid
    walked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = ImageView("channel_inspector.channel", tr("One channel"), "")
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        buttons: tuple[tuple[str, str, str, Callable[[], object]], ...] = (
            ("back", tr("All channels"), tr("Back to the grid (Esc)"), self.left.emit),
            ("previous", tr("Previous"), tr("The channel before (Left)"), lambda: self.walked.emit(-1)),
            ("next", tr("Next"), tr("The next channel (Right)"), lambda: self.walked.emit(1)),
            ("fit", tr("Fit"), tr("Show the whole channel (Ctrl+0)"), self.view.fit),
            ("one", tr("1:1"), tr("One value per screen pixel (Ctrl+1)"), self.view.one_to_one),
        )
        for name, text, tip, action in buttons:
            row.addWidget(tool_button(name, text, tip, action=action))
        self.title = ElidedLabel()
        self.title.setObjectName("channel_inspector.large_title")
        row.addWidget(self.title, 1)
        self._row = row
        self._size: tuple[int, ...] | None = None  # height and width of the last plane that was computed in full
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(row)
        column.addWidget(self.view, 1)
        self.view.add_key(Qt.Key.Key_Escape, self.left.emit)
        self.view.add_key(Qt.Key.Key_Backspace, self.left.emit)
        self.view.add_key(Qt.Key.Key_Left, lambda: self.walked.emit(-1))
        self.view.add_key(Qt.Key.Key_Right, lambda: self.walked.emit(1))

    def add_button(self, button: QWidget) -> None:
        """Another action on the channel, at the end of the line."""
        self._row.addWidget(button)

    def show_plane(self, plane: Floats, look: Look, own: Fit | None, coarse: bool) -> None:
        """A channel H x W. A coarse one is drawn at the size of the full one before it, so that zoom and place stay."""
        found = pixels(plane, look, own)
        if not coarse:
            self._size = plane.shape
        elif self._size is not None and self._size != plane.shape:
            rows, columns = (np.arange(n) * m // n for n, m in zip(self._size, plane.shape, strict=True))
            found = found[rows[:, None], columns]
        self.view.show_image(to_image(found))
