"""Interrupting a run from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class InterruptedRunError(Exception):
    """The run was interrupted on request; this is not an error."""


class Interrupt:
    """A request to end a run. Engines check it between layers, or a hook notifies them at once."""

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
        """Raise InterruptedRunError if an interrupt was requested."""
        if self._asked:
            raise InterruptedRunError

    @contextmanager
    def hook(self, function: Callable[[], object]) -> Iterator[None]:
        """Inside the block, an interrupt calls `function` from the requesting thread, or at once if already requested."""
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
    """Engines that run inside the block end when `interrupt` is requested."""
    token = _current.set(interrupt)
    try:
        yield
    finally:
        _current.reset(token)
