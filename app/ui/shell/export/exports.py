"""The export commands of a window."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.ui.canvas.canvas import Canvas
from app.ui.engine.context import Context


class Exports:
    """Opens the export dialogs, whose modules are imported on first use."""

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

    def deploy(self) -> None:
        from app.ui.shell.export.deploy import DeployExportDialog

        DeployExportDialog(self._context, self._window).open()

    def tensorrt(self) -> None:
        """Open in a non-modal dialog, whose table selects layers on the canvas."""
        from app.ui.shell.export.tensorrt import TensorRtExportDialog

        TensorRtExportDialog(self._context, self._window).show()

    def picture(self, suffix: str = ".png") -> None:
        """Export a drawing of the network."""
        from app.ui.shell.export.picture import PictureDialog

        PictureDialog(self._context, self._canvas, suffix, self._window).open()

    def video(self) -> None:
        """Export the output for the frames of an input, in a non-modal dialog."""
        from app.ui.shell.export.video import VideoExportDialog

        VideoExportDialog(self._context, self._window).show()
