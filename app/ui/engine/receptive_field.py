"""The receptive field of a pixel, asked of the engine once the pixel rests."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine.protocol import ReceptiveFieldReply, ReceptiveFieldRequest
from app.ui.engine.analysis import AnalysisController
from app.ui.engine.call import Findings
from app.ui.engine.latest_call import LatestCall
from app.ui.widgets.sentences import placed_text
from designer.texts import tr

Box = tuple[int, int, int, int]  # left, top, right, bottom; the last two are outside

REST = 60  # ms of rest after which the receptive field is asked for


class ReceptiveField(QObject):
    """Which part of an input a pixel depends on: `box`, None while it is not known or empty, and `text` about it."""

    changed = Signal()

    def __init__(self, analysis: AnalysisController, parent: QObject) -> None:
        super().__init__(parent)
        self._analysis = analysis
        self._request: ReceptiveFieldRequest | None = None
        self._call = LatestCall[ReceptiveFieldReply](self)
        self._rest = QTimer(self, singleShot=True, interval=REST, timeout=self._send)
        self.box: Box | None = None
        self.text = ""
        analysis.result_changed.connect(self._again)

    def ask(self, source: str, x: int, y: int, layer: str) -> None:
        """For the pixel of `source`: which part of what was fed to `layer`."""
        request = ReceptiveFieldRequest(source, y, x, layer)
        if request != self._request:
            self._request = request
            self._rest.start()

    def _again(self) -> None:
        """The network may be another one, or the engine be there again."""
        result = self._analysis.result
        if self._request is not None and result is not None and not result.coarse:
            self._rest.start()

    def clear(self) -> None:
        self._rest.stop()
        self._request = None
        self._call.cancel()
        if self.box is not None or self.text:
            self.box, self.text = None, ""
            self.changed.emit()

    def _send(self) -> None:
        if self._request is not None and self._analysis.result is not None:
            self._call.ask(self._analysis.engine, self._request, self._done, self._failed)

    def _done(self, reply: ReceptiveFieldReply) -> None:
        left, top, right, bottom = reply.box
        self.box = reply.box if right > left and bottom > top else None
        size = tr("field {width} x {height}", width=right - left, height=bottom - top)
        words = tr("measured") if reply.source == "measured" else tr("computed")
        self.text = ", ".join(t for t in (size, words, reply.note) if t)
        self.changed.emit()

    def _failed(self, found: Findings) -> None:
        self.box, self.text = None, placed_text(found[0])
        self.changed.emit()
