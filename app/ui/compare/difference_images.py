"""Differences as they are shown: small ones at once, large ones by a thread, for they take longer than a frame of the window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QImage

from app.reports.comparison import ImageArray
from app.ui.compare.differences import Levels, absolute_pixels, levels, mean_levels, signed_pixels
from app.ui.widgets.background import Background
from app.ui.widgets.render import Pixels, to_image
from app.ui.widgets.sentences import placed_text

AT_ONCE = 1 << 20  # values of an image that is not worth a thread


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceRequest:
    """What is to be shown: `mine` - `other`."""

    mine: ImageArray
    other: ImageArray
    gain: float
    signed: bool

    def of(self, before: DifferenceRequest) -> bool:
        """Whether it is of the same images."""
        return self.mine is before.mine and self.other is before.other

    def same(self, before: DifferenceRequest) -> bool:
        return self.of(before) and (self.gain, self.signed) == (before.gain, before.signed)


Both = tuple[Levels, Levels]  # of the channels, and their mean


@dataclass(frozen=True, slots=True, eq=False)
class _Made:
    request: DifferenceRequest
    both: Both
    image: QImage


class DifferenceImages(QObject):
    """The latest difference of each key. Of several requests that come while one is made only the last is made."""

    changed = Signal()  # an image came that was not there when it was asked for

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._made: dict[str, _Made] = {}
        self._requests: dict[str, DifferenceRequest] = {}
        self._jobs: dict[str, Background] = {}
        self._failures: dict[str, tuple[DifferenceRequest, str]] = {}

    def image(self, key: str, request: DifferenceRequest) -> QImage | None:
        """The image, or the previous one of the same images until it is computed. None: there is none yet, or `problem` says why."""
        failure = self._failures.get(key)
        if failure is not None and failure[0].same(request):
            return None
        self._failures.pop(key, None)
        made = self._made.get(key)
        if made is not None and made.request.same(request):
            self._requests.pop(key, None)
            return made.image
        if request.mine.size <= AT_ONCE:
            self._keep(key, request, *_work(request, self._before(key, request))())
            return self._made[key].image
        self._requests[key] = request
        self._begin(key)
        return made.image if made is not None and made.request.of(request) else None

    def problem(self, key: str) -> str:
        """Why the image could not be made; empty if it could."""
        failure = self._failures.get(key)
        return failure[1] if failure is not None else ""

    @property
    def busy(self) -> bool:
        """Whether one is being made."""
        return bool(self._jobs)

    def clear(self) -> None:
        """Forget all; what is being made is dropped when it comes."""
        self._made, self._requests, self._jobs, self._failures = {}, {}, {}, {}

    def _before(self, key: str, request: DifferenceRequest) -> Both | None:
        made = self._made.get(key)
        return made.both if made is not None and made.request.of(request) else None

    def _keep(self, key: str, request: DifferenceRequest, both: Both, pixels: Pixels) -> None:
        self._made[key] = _Made(request, both, to_image(pixels))

    def _begin(self, key: str) -> None:
        if key in self._jobs:
            return
        request = self._requests[key]
        self._jobs[key] = job = Background(self)
        job.done.connect(partial(self._came, key, job, request))
        job.failed.connect(partial(self._failed, key, job, request))
        job.start(_work(request, self._before(key, request)))

    def _came(self, key: str, job: Background, request: DifferenceRequest, answer: object) -> None:
        job.deleteLater()
        if self._jobs.get(key) is not job:
            return
        assert isinstance(answer, tuple)
        self._keep(key, request, *answer)
        self._ended(key, request)

    def _failed(self, key: str, job: Background, request: DifferenceRequest, found: object) -> None:
        job.deleteLater()
        if self._jobs.get(key) is not job:
            return
        assert isinstance(found, tuple)
        self._failures[key] = request, placed_text(found[0])
        self._ended(key, request)

    def _ended(self, key: str, request: DifferenceRequest) -> None:
        del self._jobs[key]
        later = self._requests.get(key)
        if later is not None and not later.same(request):
            self._begin(key)
        else:
            self._requests.pop(key, None)
        self.changed.emit()


def _work(request: DifferenceRequest, both: Both | None) -> Callable[[], tuple[Both, Pixels]]:
    def make() -> tuple[Both, Pixels]:
        found = both
        if found is None:
            channels = levels(request.mine, request.other)
            found = (channels, mean_levels(channels))
        if request.signed:
            return found, signed_pixels(found[1], request.gain)
        return found, absolute_pixels(found[0], request.gain)

    return make
