"""The engine in the process of the window: the requests and answers of `EngineClient`, carried out by the worker without its process."""

from __future__ import annotations

import shutil
from typing import Any

from PySide6.QtCore import QTimer

from app.engine.protocol import asked, read_event
from app.engine.worker import Server
from app.ui.engine.call import EngineCall
from app.ui.engine.client import EngineClient, _make_folder
from designer.runtime.shared import SharedFolder


class EngineHere(EngineClient):
    """Answers each request from the event loop. Importing the engines again and again takes most of the time of a process."""

    def _start(self) -> Any:
        self.folder = _make_folder()
        self._shared = SharedFolder(self.folder)
        self._process = Here(self, self._shared)  # type: ignore[assignment]
        return self._process

    def _send(self, process: Any, call: EngineCall[Any]) -> None:
        number, self._next_id = self._next_id, self._next_id + 1
        self._calls[number] = call
        process.queue.append(asked(number, call.request))
        QTimer.singleShot(0, self, process.answer)

    def _end_process(self, *, kill: bool) -> None:
        self._process = self.opened = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = self._shared = None


class Here:
    """In place of the process: a queue of requests, and a stream of answers."""

    def __init__(self, client: EngineHere, shared: SharedFolder) -> None:
        self._client = client
        self.queue: list[Any] = []
        self._server = Server(self, self, shared)  # type: ignore[arg-type]

    def answer(self) -> None:
        if self._client._process is self and self.queue:
            self._server._answer(self.queue.pop(0))

    def write(self, line: bytes) -> None:
        if self._client._process is self:
            self._client._event(read_event(line))

    def flush(self) -> None:
        pass
