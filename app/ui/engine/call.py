"""A request to the engine process as the window sees it: it is done, fails or is superseded, and can be cancelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

import shiboken6
from PySide6.QtCore import QObject

from app.engine.protocol import ProgressEvent, ReplyT, Request
from designer.graph.diagnostics import Diagnostic

Findings = tuple[Diagnostic, ...]


class EngineCall(Generic[ReplyT]):
    """One request. Exactly one of `done`, `failed` and `superseded` is called, from the event loop, when its answer is there.

    `cancel` makes it superseded: what the engine answers is dropped. Nothing is called once Qt has deleted the owner, or
    once the client was closed.
    """

    def __init__(
        self,
        request: Request[ReplyT],
        owner: QObject,
        done: Callable[[ReplyT], None] | None,
        failed: Callable[[Findings], None] | None,
        superseded: Callable[[], None] | None,
        progress: Callable[[ProgressEvent], None] | None,
    ) -> None:
        self.request = request
        self._owner = owner
        self._done = done
        self._failed = failed
        self._superseded = superseded
        self._progress = progress
        self.cancelled = False

    def cancel(self) -> None:
        """The answer is of no use any more."""
        self.cancelled = True

    @property
    def wanted(self) -> bool:
        """Whether somebody waits for the answer."""
        return not self.cancelled and self._owner_lives

    @property
    def _owner_lives(self) -> bool:
        return bool(shiboken6.isValid(self._owner))  # type: ignore[no-untyped-call]

    # --- for the client ----------------------------------------------------------------------------------------

    def finish(self, reply: ReplyT) -> None:
        if not self.wanted:
            self.supersede()
        elif self._done is not None:
            self._done(reply)

    def fail(self, found: Findings) -> None:
        if not self.wanted:
            self.supersede()
        elif self._failed is not None:
            self._failed(found)

    def supersede(self) -> None:
        if self._superseded is not None and self._owner_lives:
            self._superseded()

    def advance(self, event: ProgressEvent) -> None:
        if self._progress is not None and self.wanted:
            self._progress(event)
