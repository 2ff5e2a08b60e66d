"""Flicker of a Mix: while the window shows it, its two tensors take turns."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer

from app.ui.analysis.controller import AnalysisController
from app.ui.analysis.result import Phase
from app.ui.document import Document

TURN = 500  # ms that each of the two is shown; below 3 changes a second nobody is put at risk


class Flicker(QObject):
    """Turns over the `phase` of mixes in the engine. The document is not touched: what is shown is no edit."""

    def __init__(self, analysis: AnalysisController, parent: QObject) -> None:
        super().__init__(parent)
        self._analysis = analysis
        self._document: Document | None = None
        self._on = False
        self._timer = QTimer(self, interval=TURN, timeout=self._turn)

    @property
    def running(self) -> bool:
        return self._timer.isActive()

    def follow(self, document: Document | None, visible: bool) -> None:
        """Start or stop, as the document's mixes and the window's visibility ask for."""
        self._document = document
        wanted = visible and bool(self._mixes())
        if wanted and not self._timer.isActive():
            self._timer.start()
        elif not wanted:
            self._timer.stop()

    def _mixes(self) -> list[str]:
        layers = self._document.graph if self._document is not None else ()
        return [layer.name for layer in layers if layer.type == "mix" and layer.params.get("selection") == "flicker"]

    def _turn(self) -> None:
        if self._analysis.phase is Phase.READY:  # else the next turn is soon enough
            self._on = not self._on
            for name in self._mixes():
                told = {"layer": name, "param": "phase", "text": str(self._on).lower()}
                self._analysis.engine.request("set_param", told, None, lambda found: self._timer.stop())
            self._analysis.again()
