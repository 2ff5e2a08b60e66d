"""An engine that answers when a test says so, in place of the process."""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import QObject, Signal

from app.engine.protocol import OpenRequest, Request
from app.ui.engine.call import EngineCall
from designer.graph.diagnostics import Diagnostic, Severity
from designer.runtime.shared import Handle


class ScriptedEngine(QObject):
    """Takes requests like `EngineClient`; `next` gives the test the oldest of a kind, which it finishes or fails."""

    started = Signal()
    crashed = Signal(str)
    progress = Signal(object)
    busy_changed = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.opened: EngineCall[Any] | None = None
        self.running = True
        self.calls: list[EngineCall[Any]] = []
        self.arrays: dict[str, np.ndarray] = {}  # what handles are taken as, by file

    def ask(self, request, owner, done=None, failed=None, *, superseded=None, progress=None) -> EngineCall[Any]:
        call = EngineCall(request, owner, done, failed, superseded, progress)
        if isinstance(request, OpenRequest):
            self.opened = call
        self.calls.append(call)
        return call

    def take(self, handle: Handle) -> np.ndarray:
        return self.arrays.pop(handle.file)  # its file is gone afterwards

    def give(self, name: str, array: np.ndarray) -> Handle:
        """A handle of an array for a reply."""
        self.arrays[name] = array
        return Handle(name, array.shape, str(array.dtype))

    def cancel(self) -> None:
        calls, self.calls, self.opened = self.calls, [], None
        for call in calls:
            call.fail((Diagnostic("cancelled", "the work was cancelled", Severity.INFO, remedy="launch it again"),))

    def requests(self, kind: type[Request[Any]] = Request) -> list[Any]:
        """What waits for an answer, in order."""
        return [call.request for call in self.calls if isinstance(call.request, kind)]

    def next(self, kind: type[Request[Any]]) -> EngineCall[Any]:
        """The oldest request of a kind, which is answered now."""
        call = next(call for call in self.calls if isinstance(call.request, kind))
        self.calls.remove(call)
        return call
