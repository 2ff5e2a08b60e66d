"""Which range of values the colors of the Channel Inspector show: fitted, as the user set it, or locked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QObject

from app.ui.inspector.color_bar import ColorBar
from app.ui.inspector.look import SEQUENTIAL, fit, sample_of
from app.ui.widgets.render import Floats

Key = tuple[str, bool, bool]  # tensor, whether the map is sequential, whether each channel has a scale of its own


class Ranges(QObject):
    """`key` names the tensor that is shown, `values` brings it (None: nothing is shown)."""

    def __init__(
        self, bar: ColorBar, key: Callable[[], str], values: Callable[[], Floats | None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._bar = bar
        self._tensor = key
        self._values = values
        self._own: dict[Key, tuple[float, float]] = {}  # magnify and shift that the user set
        self._other = False
        bar.auto_requested.connect(self._fit)
        bar.auto_requested.connect(self._keep)
        bar.look_touched.connect(self._keep)
        bar.scale_changed.connect(self._restore)

    def forget(self) -> None:
        """Another document is open: nothing is kept but a locked range."""
        self._own.clear()
        if not self._bar.locked:
            self._bar.set_look(1.0, 0.0)
            self._bar.show_extent()

    def other_picture(self) -> None:
        """The next values are of another image, which needs another range."""
        self._other = True

    def rename(self, before: str, after: str) -> None:
        self._own.update({(after, *key[1:]): look for key, look in self._own.items() if key[0] == before})

    def values_came(self, first: bool) -> None:
        """Values to be shown, `first` of a tensor that was not shown before."""
        other, self._other = self._other, False
        if other and not self._bar.locked:
            self._own.clear()
        if first or other:
            values = self._values()
            if values is not None:
                self._bar.show_extent(float(np.abs(sample_of(values)).max(initial=0.0)))
            self._restore()

    def _key(self) -> Key:
        look = self._bar.look
        return self._tensor(), look.palette in SEQUENTIAL, look.each

    def _restore(self) -> None:
        """The range that the user set, else a fitted one; a locked range stays."""
        if self._bar.locked:
            return
        if self._key() in self._own:
            self._bar.set_look(*self._own[self._key()])
        else:
            self._fit()

    def _keep(self) -> None:
        self._own[self._key()] = (self._bar.look.gain, self._bar.look.shift)

    def _fit(self) -> None:
        """Nearly all values lie inside the colors."""
        look, values = self._bar.look, self._values()
        if look.each:
            self._bar.set_look(1.0, 0.0)
        elif values is not None:
            self._bar.show_fit(fit(values, look.palette))
