"""The same place in several tensors: where it is, what stands there, and which part of the input it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray
from PySide6.QtCore import QObject, QTimer, Signal

from app.ui.engine.analysis import AnalysisController
from app.ui.engine.asking import ask
from app.ui.widgets.sentences import placed_text
from app.ui.widgets.texts import tr
from designer.graph.diagnostics import Diagnostic
from designer.units import number

Place = tuple[int, int, int]  # channel, x, y
Box = tuple[int, int, int, int]  # left, top, right, bottom; the last two are outside

REST = 60  # ms of rest after which the receptive field is asked for
PADDED = 128  # pixels that an output may be cropped by, beside what `tiling` had padded
STEPS = (1, 2, 3, 4, 6, 8, 16, 32, 64)  # between tensors of a network, either way
SHOWN = 4  # values that are told of a tensor


def scaled(place: tuple[int, int], here: tuple[int, int], there: tuple[int, int]) -> tuple[int, int]:
    """The pixel of a picture of `there` (width, height) at a pixel of one of `here`.

    Pictures whose sizes differ by whole steps up to a padding keep the step: the padding is at the right and bottom edge.
    """
    x, y = (_along(at, small, large) for at, small, large in zip(place, here, there, strict=True))
    return x, y


def _along(at: int, small: int, large: int) -> int:
    exact = large / small
    wholes = [float(w) for step in STEPS for w in (step, 1 / step)]
    near = min(wholes, key=lambda whole: abs(whole / exact - 1))
    factor = near if abs(large - near * small) < min(PADDED * min(1.0, near), large / 4) else exact
    return min(max(int((at + 0.5) * factor), 0), large - 1)


def reading(name: str, array: NDArray[Any], place: tuple[int, int], here: tuple[int, int], item: int = 0) -> str:
    """Name, pixel and values of a tensor N x C x H x W at a place of another one; empty for other ranks."""
    if array.ndim != 4 or not array.size:
        return ""
    x, y = scaled(place, here, (array.shape[3], array.shape[2]))
    values = array[min(item, len(array) - 1), :, y, x]
    texts = " ".join(number(float(v)) for v in values[:SHOWN])
    more = " …" if len(values) > SHOWN else ""
    return f"{name} ({x}, {y})  {texts}{more}"


def readings(
    tensors: Iterable[tuple[str, NDArray[Any]]], place: tuple[int, int], here: tuple[int, int], item: int = 0
) -> str:
    """One line about several tensors."""
    return "  ·  ".join(text for name, array in tensors if (text := reading(name, array, place, here, item)))


class Field(QObject):
    """The receptive field of a pixel, asked of the engine once the pixel rests."""

    changed = Signal()

    def __init__(self, analysis: AnalysisController, parent: QObject) -> None:
        super().__init__(parent)
        self._analysis = analysis
        self._wish: tuple[str, int, int, str] | None = None
        self._asked: tuple[str, int, int, str] | None = None
        self._flying = False
        self._rest = QTimer(self, singleShot=True, interval=REST, timeout=self._ask)
        self.box: Box | None = None
        self.text = ""
        analysis.result_changed.connect(self._again)

    def ask(self, source: str, x: int, y: int, layer: str) -> None:
        """For the pixel of `source`: which part of what was fed to `layer`."""
        wish = (source, x, y, layer)
        if wish != self._wish:
            self._wish = wish
            self._rest.start()

    def _again(self) -> None:
        """The network may be another one, or the engine be there again."""
        result = self._analysis.result
        if self._wish is not None and result is not None and not result.coarse:
            self._asked = None
            self._rest.start()

    def clear(self) -> None:
        self._rest.stop()
        self._wish = self._asked = None
        if self.box is not None or self.text:
            self.box, self.text = None, ""
            self.changed.emit()

    def _ask(self) -> None:
        if self._flying or self._wish is None or self._wish == self._asked or self._analysis.result is None:
            return
        self._asked, self._flying = self._wish, True
        source, x, y, layer = self._wish
        params = {"of": source, "y": y, "x": x, "input": layer}
        ask(self, self._analysis.engine, "receptive", params, self._came, self._refused)

    def _came(self, reply: Mapping[str, Any]) -> None:
        self._flying = False
        if self._asked == self._wish and self._wish is not None:
            left, top, right, bottom = (int(v) for v in reply.get("box", (0, 0, 0, 0)))
            self.box = (left, top, right, bottom) if right > left and bottom > top else None
            size = tr("field {width} x {height}", width=right - left, height=bottom - top)
            words = tr("measured") if reply.get("source") == "measured" else tr("computed")
            self.text = ", ".join(t for t in (size, words, str(reply.get("note") or "")) if t)
            self.changed.emit()
        self._ask()

    def _refused(self, found: tuple[Diagnostic, ...]) -> None:
        self._flying = False
        if self._asked == self._wish:
            self.box, self.text = None, placed_text(found[0]) if found else ""
            self.changed.emit()
        self._ask()
