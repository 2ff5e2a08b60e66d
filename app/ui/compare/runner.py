"""Runs variants one after another, each in its own engine process, so that none slows down or crashes another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from app.engine.protocol import OpenReply, ProgressEvent, RunReply, RunRequest, SetInputTensorRequest
from app.reports.comparison import ImageArray, check_comparable
from app.ui.compare.variants import Variant
from app.ui.engine.call import EngineCall, Findings
from app.ui.engine.client import EngineClient
from app.ui.engine.weights import weights_wanted
from app.ui.widgets.background import Background
from app.ui.widgets.sentences import placed_text
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.runtime.shared import Handle
from designer.texts import tr


@dataclass(frozen=True)
class Made:
    """What a variant made of the image; `note` says where weights come from that are of no file.

    `milliseconds` is nan for the first run after opening: it also builds the network, and is followed by one that does not. It is nan
    for every `emulated` run, whose time is not that of its number formats.
    """

    picture: ImageArray
    milliseconds: float
    note: str = ""
    weights: str = ""
    weights_sha256: str = ""
    emulated: bool = False


class _Lane(QObject):
    """One engine process and the network that it holds."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.client = EngineClient(self)
        self._opening: EngineCall[OpenReply] | None = None  # how the present network was opened
        self._weights: object = None  # what its files of weights were then
        self.warm = False  # the first run of a network also builds it
        self._calls: list[EngineCall[Any]] = []
        self._lending: Background | None = None

    def run(self, variant: Variant, picture: ImageArray, work: _Work) -> None:
        """`work.done` or `work.failed` is called later, unless `stop` comes before."""
        opening, weights = self._opening, _files_of(variant.opening.weights)
        same = opening is not None and opening.request == variant.opening and weights == self._weights
        if same and opening is self.client.opened:
            self._lend(variant, picture, work)
            return
        self.warm = False
        self._weights = weights

        def opened(reply: OpenReply) -> None:
            wanted = weights_wanted(reply)
            if wanted:
                self._opening = None
                remedy = tr("choose weights for it, or random ones")
                work.failed((Diagnostic("weights-missing", wanted.rstrip("."), remedy=remedy),))
            else:
                self._lend(variant, picture, work)

        def refused(found: Findings) -> None:
            self._opening = None
            work.failed(found)

        self._opening = self.client.ask(variant.opening, self, opened, refused, progress=work.progress)
        self._calls = [self._opening]

    def _lend(self, variant: Variant, picture: ImageArray, work: _Work) -> None:
        """Lend the image to the engine; a thread does it, for a large one takes longer than a frame of the window."""
        opening = self.client.opened
        job = self._lending = Background(self)

        def lent(handle: Any) -> None:
            job.deleteLater()
            wanted, held = job is self._lending, opening is not None and opening is self.client.opened
            if wanted and held:
                self._ask(variant, handle, work)
                return
            with suppress(DiagnosticError, RuntimeError):  # with the process its folder may be gone
                self.client.take(handle)
            if wanted:
                remedy = tr("run it again: a fresh engine starts")
                work.failed((Diagnostic("engine-crashed", tr("the engine has ended"), remedy=remedy),))

        def refused(found: Any) -> None:
            job.deleteLater()
            if job is self._lending:
                work.failed(found)

        job.done.connect(lent)
        job.failed.connect(refused)
        put = self.client.putting()
        job.start(lambda: put(np.ascontiguousarray(picture)))

    def stop(self) -> None:
        """Give up; a process that is at work is ended."""
        self._lending = None
        for call in self._calls:
            call.cancel()
        if self.client.busy:
            self.client.cancel()

    def _ask(self, variant: Variant, handle: Handle, work: _Work) -> None:
        refused: list[Diagnostic] = []
        feed = self.client.ask(SetInputTensorRequest(variant.input, handle), self, None, refused.extend)
        run = self.client.ask(
            RunRequest(),
            self,
            lambda reply: work.failed(tuple(refused)) if refused else work.done(reply),
            lambda found: work.failed((*refused, *(d for d in found if d not in refused))),
            progress=work.progress,
        )
        self._calls = [feed, run]


def _files_of(weights: str | None) -> list[tuple[str, int, int]]:
    """Name, size and time of a file of weights or of the files in a folder: training writes others into them."""
    found: list[tuple[str, int, int]] = []
    with suppress(OSError):
        path = Path(weights or "")
        for file in sorted(path.iterdir()) if weights and path.is_dir() else [path]:
            state = file.stat()
            found.append((file.name, state.st_size, state.st_mtime_ns))
    return found if weights else []


class _Work(NamedTuple):
    """What a lane calls while it runs a variant."""

    done: Callable[[RunReply], None]
    failed: Callable[[Findings], None]
    progress: Callable[[ProgressEvent], None]


@dataclass(eq=False)
class _Pass:
    """All variants on an image, one after the other."""

    variants: Sequence[Variant | None]
    picture: ImageArray
    index: int = -1  # of the variant that runs
    first: ImageArray | None = None  # the first result, whose size the others must have


class SideRunner(QObject):
    """`run` replaces what runs. Results come by `made` or `failed`, then `finished`; after `cancel` none comes."""

    progress = Signal(int, str)  # which variant, what it does
    made = Signal(int, object)  # which variant, Made
    failed = Signal(int, str)  # which variant, why, in a sentence
    finished = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lanes: list[_Lane] = []
        self._pass: _Pass | None = None

    @property
    def clients(self) -> list[EngineClient]:
        """The engine processes, in the order of the variants."""
        return [lane.client for lane in self._lanes]

    @property
    def running(self) -> bool:
        return self._pass is not None

    def run(self, variants: Sequence[Variant | None], picture: ImageArray) -> None:
        """Run what is not None on the image, in order."""
        self.cancel()
        self._pass = _Pass(variants, picture)
        self._next(self._pass)

    def cancel(self) -> None:
        """Give up. A process that is at work is ended."""
        present, self._pass = self._pass, None
        if present is not None and present.index >= 0:
            self._lanes[present.index].stop()

    def close(self) -> None:
        """End all processes."""
        self._pass = None
        for lane in self._lanes:
            lane.client.close()
            lane.deleteLater()
        self._lanes = []

    def _next(self, present: _Pass) -> None:
        """The next variant; a listener may have cancelled the pass by now."""
        if present is not self._pass:
            return
        following = (i for i in range(present.index + 1, len(present.variants)) if present.variants[i] is not None)
        index = next(following, None)
        if index is None:
            self._pass = None
            self.finished.emit()
            return
        while len(self._lanes) <= index:
            self._lanes.append(_Lane(self))
        present.index = index
        self._start(present, tr("Running …"))

    def _start(self, present: _Pass, text: str) -> None:
        self.progress.emit(present.index, text)
        variant = present.variants[present.index]
        if variant is not None and present is self._pass:
            work = _Work(partial(self._done, present), partial(self._fail, present), partial(self._advance, present))
            self._lanes[present.index].run(variant, present.picture, work)

    def _done(self, present: _Pass, reply: RunReply) -> None:
        index, variant = present.index, present.variants[present.index]
        assert variant is not None
        lane = self._lanes[index]
        taken = {name: lane.client.take(handle) for name, handle in reply.outputs.items()}
        result: NDArray[np.float32] = np.asarray(taken[variant.output], np.float32)
        try:
            check_comparable(variant.name, variant.output, result, present.picture, present.first)
        except DiagnosticError as error:
            self._fail(present, error.diagnostics)
            return
        present.first = result
        cold, lane.warm = not lane.warm and not reply.emulated, True
        spent = nan if cold or reply.emulated else reply.milliseconds
        emulated = tr("emulated: results are those of the format, times are not") if reply.emulated else ""
        note = "; ".join(text for text in (reply.note, emulated) if text)
        self.made.emit(index, Made(result, spent, note, reply.weights, reply.weights_sha256, reply.emulated))
        if present is not self._pass:
            return
        if cold:
            self._start(present, tr("Timing …"))
        else:
            self._next(present)

    def _fail(self, present: _Pass, found: Findings) -> None:
        first = next((d for d in found if d.severity is Severity.ERROR), found[0])
        self.failed.emit(present.index, placed_text(first))
        self._next(present)

    def _advance(self, present: _Pass, event: ProgressEvent) -> None:
        if event.text:
            self.progress.emit(present.index, tr("Running {what} …", what=event.text))
