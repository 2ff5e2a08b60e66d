"""An engine process and the pipes to it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.engine.protocol import (
    VERSION,
    AnyEvent,
    DoneEvent,
    FailedEvent,
    Malformed,
    OpenReply,
    OpenRequest,
    ProgressEvent,
    ReadyEvent,
    ReplyT,
    Request,
    asked,
    line_of,
    read_event,
    read_reply,
)
from designer.graph.diagnostics import Diagnostic
from designer.runtime.shared import Handle, SharedFolder

ROOT = Path(__file__).parents[2]


class Peer:
    """Speaks to a worker as the window does."""

    def __init__(self, folder: Path) -> None:
        self.shared = SharedFolder(folder)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app.engine.worker", "--shared", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.number = 0
        self.progress: list[ProgressEvent] = []
        assert self.event() == ReadyEvent(self.process.pid, VERSION)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def event(self) -> AnyEvent:
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        event = read_event(line)
        assert not isinstance(event, Malformed), line
        return event

    def raw(self, text: bytes) -> None:
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def send(self, request: Request) -> int:
        self.number += 1
        self.raw(line_of(asked(self.number, request)))
        return self.number

    def answer(self, number: int | None) -> AnyEvent:
        """What comes for this request; progress is kept aside."""
        while isinstance(event := self.event(), ProgressEvent):
            self.progress.append(event)
        assert event.id == number
        return event

    def ask(self, request: Request[ReplyT]) -> ReplyT:
        event = self.answer(self.send(request))
        assert isinstance(event, DoneEvent), event
        reply = read_reply(request, event)
        assert not isinstance(reply, Malformed), reply
        return reply

    def refused(self, request: Request) -> Diagnostic:
        event = self.answer(self.send(request))
        assert isinstance(event, FailedEvent), event
        return event.error[0]

    def open(self, document: str, **options) -> OpenReply:
        return self.ask(OpenRequest(document, **{"seed": 0, "threads": 1, **options}))

    def take(self, handle: Handle) -> NDArray:
        array = np.array(self.shared.get(handle))
        self.shared.free(handle)
        return array
