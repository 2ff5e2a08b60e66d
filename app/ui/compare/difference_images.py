"""Differences as they are shown: small ones at once, large ones by a thread, for they take longer than a frame of the window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QImage

from app.reports.comparison import Picture
from app.ui.compare.differences import Levels, absolute_pixels, levels, mean_levels, signed_pixels
from app.ui.widgets.background import Background
from app.ui.widgets.render import Pixels, to_image

AT_ONCE = 1 << 20  # values of a picture that is not worth a thread


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """What is to be shown: `mine` - `other`."""

    mine: Picture
    other: Picture
    gain: float
    signed: bool

    def of(self, before: Wish) -> bool:
        """Whether it is of the same pictures."""
        return self.mine is before.mine and self.other is before.other

    def same(self, before: Wish) -> bool:
        return self.of(before) and (self.gain, self.signed) == (before.gain, before.signed)


Both = tuple[Levels, Levels]  # of the channels, and their mean


@dataclass(frozen=True, slots=True, eq=False)
class _Made:
    wish: Wish
    both: Both
    image: QImage


class DifferenceImages(QObject):
    """The latest difference of each key. Of several wishes that come while one is made only the last is made."""

    changed = Signal()  # an image came that was not there when it was asked for

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._made: dict[str, _Made] = {}
        self._wishes: dict[str, Wish] = {}
        self._jobs: dict[str, Background] = {}

    def image(self, key: str, wish: Wish) -> QImage | None:
        """The image; of the same pictures the one before stands until it is made. None: there is none yet."""
        made = self._made.get(key)
        if made is not None and made.wish.same(wish):
            self._wishes.pop(key, None)
            return made.image
        if wish.mine.size <= AT_ONCE:
            self._keep(key, wish, *_work(wish, self._before(key, wish))())
            return self._made[key].image
        self._wishes[key] = wish
        self._begin(key)
        return made.image if made is not None and made.wish.of(wish) else None

    @property
    def busy(self) -> bool:
        """Whether one is being made."""
        return bool(self._jobs)

    def clear(self) -> None:
        """Forget all; what is being made is dropped when it comes."""
        self._made, self._wishes, self._jobs = {}, {}, {}

    def _before(self, key: str, wish: Wish) -> Both | None:
        made = self._made.get(key)
        return made.both if made is not None and made.wish.of(wish) else None

    def _keep(self, key: str, wish: Wish, both: Both, pixels: Pixels) -> None:
        self._made[key] = _Made(wish, both, to_image(pixels))

    def _begin(self, key: str) -> None:
        if key in self._jobs:
            return
        wish = self._wishes[key]
        self._jobs[key] = job = Background(self)
        job.done.connect(partial(self._came, key, job, wish))
        job.start(_work(wish, self._before(key, wish)))

    def _came(self, key: str, job: Background, wish: Wish, answer: object) -> None:
        job.deleteLater()
        if self._jobs.get(key) is not job:
            return
        del self._jobs[key]
        assert isinstance(answer, tuple)
        self._keep(key, wish, *answer)
        later = self._wishes.get(key)
        if later is not None and not later.same(wish):
            self._begin(key)
        else:
            self._wishes.pop(key, None)
        self.changed.emit()


def _work(wish: Wish, both: Both | None) -> Callable[[], tuple[Both, Pixels]]:
    def make() -> tuple[Both, Pixels]:
        found = both
        if found is None:
            channels = levels(wish.mine, wish.other)
            found = (channels, mean_levels(channels))
        if wish.signed:
            return found, signed_pixels(found[1], wish.gain)
        return found, absolute_pixels(found[0], wish.gain)

    return make
