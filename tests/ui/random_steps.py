"""Panels that live through random steps, compared with their model after each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol


class Compared(Protocol):
    """A panel with its model: `check` compares the two, and `random` chooses the steps."""

    random: Random

    def check(self) -> None: ...


def play(made: Compared, steps: Sequence[Callable[[], None]], count: int) -> None:
    """Take `count` random steps and check after each; a failure names the last steps."""
    made.check()
    log: list[str] = []
    for _ in range(count):
        step = made.random.choice(steps)
        log.append(getattr(step, "__name__", "step"))
        try:
            step()
            made.check()
        except AssertionError as error:
            raise AssertionError(f"after {log[-12:]}: {error}") from error
