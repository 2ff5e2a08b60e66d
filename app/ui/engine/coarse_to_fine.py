"""Coarse to fine: while a slider moves a reduced image is good enough, and the full one follows when it rests.

The engine decides whether a run is long enough for that (`budget`). Runs go one at a time, so results come in their order.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

BUDGET = 40  # ms that a full run may take while a slider moves
SETTLED = 150  # ms without a move after which the full image is computed


class CoarseToFine:
    """`request` for each change, `send` when its run goes to the engine, `arrive` when the result is there."""

    def __init__(self, parent: QObject, refine: Callable[[], None]) -> None:
        self.refining = False  # what is in flight, or goes out next, is the full run behind a coarse one
        self._moving = False  # what waits comes from values that may go on changing
        self._timer = QTimer(parent, singleShot=True, interval=SETTLED, timeout=refine)

    def request(self, moving: bool, waiting: bool) -> None:
        """A run is wanted, together with what is `waiting` already. `moving`: only values of analysis layers changed."""
        self._moving = moving and (self._moving or not waiting or self.refining)
        self.refining = False
        self._timer.stop()

    def refine(self) -> None:
        """The full run of the values whose coarse result is shown goes out next."""
        self._moving, self.refining = False, True

    def send(self) -> int:
        """The budget in ms of the run that goes out now; 0: the full run whatever it takes."""
        budget, self._moving = (BUDGET if self._moving else 0), False
        return budget

    def arrive(self, coarse: bool, more: bool) -> None:
        """A result is there. `more`: another run is wanted already, so a coarse result needs no full one of its own."""
        if coarse and not more:
            self._timer.start()

    def drop(self) -> None:
        """Another document or a stop: nothing follows."""
        self._timer.stop()
        self.refining = self._moving = False
