"""Runs variants one after another, each in an engine process of its own: none slows down or takes along another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from app.reports.comparison import Picture, check_comparable
from app.ui.compare.variants import Variant
from app.ui.engine.client import EngineClient
from app.ui.engine.weights import weights_wanted
from app.ui.widgets.background import Background
from app.ui.widgets.sentences import placed_text
from app.ui.widgets.texts import tr
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity

Findings = tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Made:
    """What a variant made of the picture; `note` says where weights come from that are of no file.

    `milliseconds` is nan for the first run after opening: it also builds the network, and is followed by one that does not.
    """

    picture: Picture
    milliseconds: float
    note: str = ""


class _Lane(QObject):
    """One engine process and the network that it holds."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.client = EngineClient(self)
        self._opened: dict[str, Any] | None = None
        self._session = -1
        self.warm = False  # the first run of a network also builds it
        self._turn = 0  # what was begun before the last stop is dropped

    def run(
        self,
        variant: Variant,
        picture: Picture,
        done: Callable[[Mapping[str, Any]], None],
        failed: Callable[[Findings], None],
    ) -> None:
        """Exactly one of the two is called, later."""
        client = self.client
        if self._opened == variant.opened_with and self._session == client.session:
            self._feed(variant, picture, done, failed)
            return
        self._opened, self.warm = None, False

        def opened(reply: Mapping[str, Any]) -> None:
            wanted = weights_wanted(reply)
            if wanted:
                remedy = tr("choose weights for it, or random ones")
                failed((Diagnostic("weights-missing", wanted.rstrip("."), remedy=remedy),))
                return
            self._opened, self._session = variant.opened_with, session
            self._feed(variant, picture, done, failed)

        client.request("open", variant.opened_with, opened, failed)
        session = client.session

    def _feed(
        self,
        variant: Variant,
        picture: Picture,
        done: Callable[[Mapping[str, Any]], None],
        failed: Callable[[Findings], None],
    ) -> None:
        """Lend the picture to the engine; a thread does it, for a large one takes longer than a frame of the window."""
        turn, session = self._turn, self.client.session
        job = Background(self)

        def lent(handle: Any) -> None:
            job.deleteLater()
            if turn == self._turn and session == self.client.session and self.client.running:
                self._ask(variant, handle, done, failed)
                return
            with suppress(DiagnosticError, RuntimeError):  # with the process its folder may be gone
                self.client.take(handle)
            if turn == self._turn:
                remedy = tr("run it again: a fresh engine starts")
                failed((Diagnostic("engine-crashed", tr("the engine has ended"), remedy=remedy),))

        def refused(found: Any) -> None:
            job.deleteLater()
            if turn == self._turn:
                failed(found)

        job.done.connect(lent)
        job.failed.connect(refused)
        put = self.client.putting()
        job.start(lambda: put(np.ascontiguousarray(picture)))

    def stop(self) -> None:
        """Give up; a process that is at work is ended."""
        self._turn += 1
        if self.client.busy:
            self.client.cancel()

    def _ask(
        self,
        variant: Variant,
        handle: Mapping[str, Any],
        done: Callable[[Mapping[str, Any]], None],
        failed: Callable[[Findings], None],
    ) -> None:
        refused: list[Diagnostic] = []
        told = {"layer": variant.input, "handle": handle, "picture": True}
        self.client.request("set_input", told, None, refused.extend)
        self.client.request(
            "run",
            {},
            lambda reply: failed(tuple(refused)) if refused else done(reply),
            lambda found: failed((*refused, *(d for d in found if d not in refused))),
        )


class SideRunner(QObject):
    """`run` replaces what runs. Results come by `made` or `failed`, then `finished`; after `cancel` none comes."""

    told = Signal(int, str)  # which variant, what it does
    made = Signal(int, object)  # which variant, Made
    failed = Signal(int, str)  # which variant, why, in a sentence
    finished = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lanes: list[_Lane] = []
        self._variants: Sequence[Variant | None] = ()
        self._picture: Picture | None = None
        self._epoch = 0
        self._at = -1

    @property
    def running(self) -> bool:
        return self._at >= 0

    def run(self, variants: Sequence[Variant | None], picture: Picture) -> None:
        """Run what is not None on the picture, in order."""
        self.cancel()
        self._variants, self._picture = variants, picture
        self._next(0)

    def cancel(self) -> None:
        """Give up. A process that is at work is ended."""
        self._epoch += 1
        if self.running and self._at < len(self._lanes):
            self._lanes[self._at].stop()
        self._at = -1

    def close(self) -> None:
        """End all processes."""
        self._epoch += 1
        self._at = -1
        for lane in self._lanes:
            lane.client.close()
            lane.deleteLater()
        self._lanes = []

    def _next(self, index: int) -> None:
        while index < len(self._variants) and self._variants[index] is None:
            index += 1
        if index >= len(self._variants):
            self._at = -1
            self.finished.emit()
            return
        self._at = index
        while len(self._lanes) <= index:
            lane = _Lane(self)
            lane.client.progress.connect(partial(self._on_progress, len(self._lanes)))
            self._lanes.append(lane)
        variant, picture = self._variants[index], self._picture
        assert variant is not None
        assert picture is not None
        self.told.emit(index, tr("Running …"))
        epoch = self._epoch
        self._lanes[index].run(variant, picture, partial(self._done, epoch, index), partial(self._fail, epoch, index))

    def _done(self, epoch: int, index: int, reply: Mapping[str, Any]) -> None:
        lane, variant, picture = (
            self._lanes[index],
            self._variants[index] if epoch == self._epoch else None,
            self._picture,
        )
        taken = {name: lane.client.take(handle) for name, handle in (reply.get("outputs") or {}).items()}
        if variant is None or picture is None:
            return
        result: NDArray[np.float32] = np.asarray(taken[variant.output], np.float32)
        try:
            check_comparable(variant.name, variant.output, result, picture)
        except DiagnosticError as error:
            self._fail(epoch, index, error.diagnostics)
            return
        cold, lane.warm = not lane.warm, True
        spent = nan if cold else float(reply.get("milliseconds", 0.0))
        self.made.emit(index, Made(result, spent, str(reply.get("note") or "")))
        if epoch != self._epoch:
            return
        if cold:
            self.told.emit(index, tr("Timing …"))
            lane.run(variant, picture, partial(self._done, epoch, index), partial(self._fail, epoch, index))
        else:
            self._next(index + 1)

    def _fail(self, epoch: int, index: int, found: Findings) -> None:
        if epoch != self._epoch:
            return
        first = next((d for d in found if d.severity is Severity.ERROR), found[0])
        self.failed.emit(index, placed_text(first))
        if epoch == self._epoch:
            self._next(index + 1)

    def _on_progress(self, index: int, event: Any) -> None:
        if index == self._at and event.get("text"):
            self.told.emit(index, tr("Running {what} …", what=event["text"]))
