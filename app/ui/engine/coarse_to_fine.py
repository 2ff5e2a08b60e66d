"""Coarse to fine: while a slider moves a reduced picture is good enough, and the full one follows when it rests.

The engine decides whether a run is long enough for that (`budget`), and this, whose result is newer than whose.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

BUDGET = 40  # ms that a full run may take while a slider moves
SETTLED = 150  # ms without a move after which the full picture is computed


class Haste:
    """One wish at a time: `asked` for each, `sent` when it goes to the engine, `arrived` when its result is there."""

    def __init__(self, parent: QObject, refine: Callable[[], None]) -> None:
        self.number = 0  # of the wish that was sent last
        self.refining = False  # what is in flight, or goes out next, is the full run behind a coarse one
        self._moving = False  # the wish that waits comes from values that may go on changing
        self._shown = (0, True)  # the wish whose result is shown, and whether it is full
        self._timer = QTimer(parent, singleShot=True, interval=SETTLED, timeout=refine)

    def asked(self, moving: bool, waiting: bool) -> None:
        """Something is wished, together with what is `waiting` already. `moving`: only values of analysis layers changed."""
        self._moving = moving and (self._moving or not waiting or self.refining)
        self.refining = False
        self._timer.stop()

    def refine(self) -> None:
        """The full result of the wish whose coarse one is shown goes out next."""
        self._moving, self.refining = False, True

    def sent(self) -> tuple[int, int]:
        """Number of the wish that goes out now, and its budget in ms (0: the full run whatever it takes)."""
        if not self.refining:
            self.number += 1
        budget, self._moving = (BUDGET if self._moving else 0), False
        return self.number, budget

    def arrived(self, number: int, coarse: bool, more: bool) -> bool:
        """Whether a result may be shown: never an older one after a newer, nor a coarse one after its full one.

        `more`: another wish waits already, so a coarse result needs no full one of its own.
        """
        if (number, not coarse) < self._shown:
            return False
        self._shown = (number, not coarse)
        if coarse and not more:
            self._timer.start()
        return True

    def drop(self) -> None:
        """Another document or a stop: nothing follows."""
        self._timer.stop()
        self.refining = self._moving = False
