"""Giving up a run from another thread, when something newer is wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class InterruptedRunError(Exception):
    """The run was given up because somebody asked for that; nothing is wrong."""


class Interrupt:
    """A wish to end, which engines look at between layers or are told at once by a hook."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hooks: list[Callable[[], object]] = []
        self._asked = False

    @property
    def asked(self) -> bool:
        return self._asked

    def ask(self) -> None:
        with self._lock:
            self._asked = True
            for hook in self._hooks:
                hook()

    def check(self) -> None:
        """Raise InterruptedRunError where the end was asked for."""
        if self._asked:
            raise InterruptedRunError

    @contextmanager
    def hook(self, function: Callable[[], object]) -> Iterator[None]:
        """While inside, `function` is called from the asking thread; at once where it has been asked already."""
        with self._lock:
            self._hooks.append(function)
            if self._asked:
                function()
        try:
            yield
        finally:
            with self._lock:
                self._hooks.remove(function)


_current: ContextVar[Interrupt | None] = ContextVar("interrupt", default=None)
_NEVER = Interrupt()


def current() -> Interrupt:
    """The interrupt of the run that this thread is in."""
    return _current.get() or _NEVER


@contextmanager
def interruptible(interrupt: Interrupt | None) -> Iterator[None]:
    """What engines run inside ends when `interrupt` is asked to."""
    token = _current.set(interrupt)
    try:
        yield
    finally:
        _current.reset(token)
