"""The exports of a window: each asks in a dialog of its own."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.ui.canvas.canvas import Canvas
from app.ui.engine.context import Context


class Exports:
    """Opens the dialogs; their modules are imported when they are first asked for."""

    def __init__(self, context: Context, canvas: Canvas, window: QWidget) -> None:
        self._context = context
        self._canvas = canvas
        self._window = window

    def pytorch(self) -> None:
        from app.ui.shell.export.pytorch import PyTorchExportDialog

        PyTorchExportDialog(self._context, self._window).open()

    def onnx(self) -> None:
        from app.ui.shell.export.onnx import OnnxExportDialog

        OnnxExportDialog(self._context, self._window).open()

    def picture(self, suffix: str = ".png") -> None:
        """A picture of what the canvas shows."""
        from app.ui.shell.export.picture import PictureDialog

        PictureDialog(self._context, self._canvas, suffix, self._window).open()

    def video(self) -> None:
        """Frames of an input; the dialog does not block the window."""
        from app.ui.shell.export.video import VideoExportDialog

        VideoExportDialog(self._context, self._window).show()
