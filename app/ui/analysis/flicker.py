"""Layers that move by themselves while the window shows them: a Mix that flickers, noise that is another in every frame."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer

from app.engine.protocol import SetParamRequest
from app.ui.document.document import Document
from app.ui.engine.analysis import AnalysisController
from app.ui.engine.result import Phase
from designer.operators.api import Operator
from designer.operators.params import format_value
from designer.runtime.animation import SEEDS, seed_of

FRAME = 40  # ms that a frame of animated noise is shown at least


class Flicker(QObject):
    """Turns over the `phase` of mixes and counts up the `seed` of layers that are animated (`animate`, also a plugin's).

    Only the engine gets the values; the document is not edited. At rest the engine gets the document's values again.
    """

    def __init__(self, analysis: AnalysisController, parent: QObject) -> None:
        super().__init__(parent)
        self._analysis = analysis
        self._document: Document | None = None
        self._on = False
        self._moved: set[str] = set()  # layers whose seed in the engine is not the document's
        self._frame = 0
        self._turns = QTimer(self, timeout=self._turn)
        self._frames = QTimer(self, interval=FRAME, timeout=self._next_frame)

    @property
    def running(self) -> bool:
        return self._turns.isActive() or self._frames.isActive()

    @property
    def interval(self) -> int:
        """Milliseconds between the turns of the mixes."""
        return self._turns.interval()

    def follow(self, document: Document | None, visible: bool) -> None:
        """Start or stop, as the document's layers and the window's visibility ask for."""
        self._document = document
        mixes = self._mixes() if visible else {}
        if mixes:
            interval = round(1000 / max(mixes.values()))
            if not self._turns.isActive() or self._turns.interval() != interval:
                self._turns.start(interval)
        else:
            self._turns.stop()
            self._turn_back()
        animated = set(self._animated()) if visible else set()
        if animated and not self._frames.isActive():
            self._frames.start()
        elif not animated:
            self._frames.stop()
        finished = self._moved - animated
        self._moved -= finished
        self._restore(finished, "seed")

    def _operators(self) -> dict[str, Operator]:
        """The layers that can move: few of a large document. A bypassed layer does not."""
        document = self._document
        if document is None:
            return {}
        types = {kind: document.registry.get(kind) for kind in document.graph.types}
        moving = {
            name for name, cls in types.items() if cls and (name == "mix" or cls.parameter("animate") is not None)
        }
        found = {
            layer.name: document.inference.read(layer.name).operator
            for layer in document.graph
            if layer.type in moving and not layer.bypassed
        }
        return {name: operator for name, operator in found.items() if isinstance(operator, Operator)}

    def _mixes(self) -> dict[str, float]:
        """Flickering mixes and how often they change in a second."""
        return {
            name: float(getattr(operator, "rate", 1.0))
            for name, operator in self._operators().items()
            if operator.type == "mix" and getattr(operator, "selection", "") == "flicker"
        }

    def _animated(self) -> dict[str, int]:
        """Animated layers and their seeds."""
        seeds = {name: seed_of(operator) for name, operator in self._operators().items()}
        return {name: seed for name, seed in seeds.items() if seed is not None}

    def _turn(self) -> None:
        if self._analysis.phase is Phase.READY:  # else the next turn is soon enough
            self._on = not self._on
            for name in self._mixes():
                self._send(name, "phase", str(self._on).lower())
            self._analysis.again(animated=True)

    def _turn_back(self) -> None:
        """Mixes that show their second input show what the document says again."""
        if self._on:
            self._on = False
            self._restore(set(self._mixes()), "phase")

    def _next_frame(self) -> None:
        if self._analysis.phase is not Phase.READY:
            return
        self._frame += 1
        for name, seed in self._animated().items():
            self._moved.add(name)
            self._send(name, "seed", str((seed + self._frame) % SEEDS))
        self._analysis.again(animated=True)

    def _restore(self, names: set[str], parameter: str) -> None:
        """The engine gets the document's values of layers that no longer move."""
        values = {name: operator.values() for name, operator in self._operators().items() if name in names}
        found = {name: format_value(own[parameter]) for name, own in values.items() if parameter in own}
        if found and self._analysis.phase in (Phase.READY, Phase.RUNNING):
            for name, text in found.items():
                self._send(name, parameter, text)
            self._analysis.again()

    def _send(self, layer: str, parameter: str, text: str) -> None:
        request = SetParamRequest(layer, parameter, text)
        self._analysis.engine.ask(request, self, None, lambda found: self._stop())

    def _stop(self) -> None:
        self._turns.stop()
        self._frames.stop()
