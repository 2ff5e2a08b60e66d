"""Requests about the opened network of which only the latest counts: while one is in flight, at most one waits behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from PySide6.QtCore import QObject

from app.engine.protocol import ReplyT, Request
from app.ui.engine.call import EngineCall, Findings
from app.ui.engine.client import EngineClient


class LatestCall(Generic[ReplyT]):
    """The one place to ask from. The answer to a request is dropped when another one was asked in the meantime."""

    def __init__(self, owner: QObject) -> None:
        self._owner = owner
        self._call: EngineCall[ReplyT] | None = None
        self._next: Callable[[], None] | None = None

    def ask(
        self,
        engine: EngineClient,
        request: Request[ReplyT],
        done: Callable[[ReplyT], None],
        failed: Callable[[Findings], None],
    ) -> None:
        """Send a request, as soon as the one in flight is answered; never to an engine that holds another network by then."""
        if self._call is not None:
            if self._call.request != request:
                self._call.cancel()
            opened = engine.opened
            self._next = lambda: self.ask(engine, request, done, failed) if engine.opened is opened else None
            return

        def came(reply: ReplyT) -> None:
            self._go_on()
            done(reply)

        def refused(found: Findings) -> None:
            self._go_on()
            failed(found)

        self._call = engine.ask(request, self._owner, came, refused, superseded=self._go_on)

    def cancel(self) -> None:
        """No answer is wanted any more."""
        self._next = None
        if self._call is not None:
            self._call.cancel()

    def _go_on(self) -> None:
        following, self._call, self._next = self._next, None, None
        if following is not None:
            following()
