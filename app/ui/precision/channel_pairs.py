"""The channels of one operator in two computations, with their difference, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QSpinBox, QVBoxLayout, QWidget

from app.ui.widgets.image_view import ImageView
from app.ui.widgets.render import PALETTES, as_channels, picture_pixels, signed_pixels, to_image
from designer.texts import tr
from designer.units import digits


class ChannelPairs(QDialog):
    """One channel of both computations in gray, scaled alike, and B - A in colors; the worst channel first."""

    def __init__(self, layer: str, names: tuple[str, str], a: Any, b: Any, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("channel_pairs")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Channels of {layer}", layer=layer))
        self._tensors = [_planes(tensor) for tensor in (a, b)]
        errors = np.square(_difference(*self._tensors), dtype=np.float64).mean((1, 2))
        self._order = np.argsort(-np.nan_to_num(errors, nan=np.inf, posinf=np.inf), kind="stable")
        self.channel = QSpinBox()
        self.channel.setObjectName("channel_pairs.channel")
        self.channel.setAccessibleName(tr("Place of the channel in the order of its difference"))
        self.channel.setRange(1, len(errors))
        self.channel.valueChanged.connect(self._show)
        self.text = QLabel()
        self.text.setObjectName("channel_pairs.text")
        titles = (*names, tr("Difference"))
        self.views = [ImageView(f"channel_pairs.view_{number}", title, "") for number, title in enumerate(titles)]
        row = QHBoxLayout()
        for title, view in zip(titles, self.views, strict=True):
            column = QVBoxLayout()
            label = QLabel(title)
            label.setTextFormat(Qt.TextFormat.PlainText)
            column.addWidget(label)
            column.addWidget(view, 1)
            row.addLayout(column, 1)
        top = QHBoxLayout()
        top.addWidget(QLabel(tr("Channel by difference")))
        top.addWidget(self.channel)
        top.addWidget(self.text, 1)
        main = QVBoxLayout(self)
        main.addLayout(top)
        main.addLayout(row, 1)
        self.resize(1080, 460)
        self._show(1)

    def _show(self, place: int) -> None:
        number = int(self._order[place - 1])
        a, b = (tensor[number] for tensor in self._tensors)
        (low, high), difference = _ends(a, b), _difference(a, b)
        largest = max(map(abs, _ends(difference)))
        span = high - low or 1.0
        for view, plane in zip(self.views, (a, b), strict=False):
            view.show_image(to_image(picture_pixels((plane[None] - low) / span)))
        self.views[2].show_image(to_image(signed_pixels(difference, PALETTES[0], 1 / largest if largest else 1.0)))
        text = tr(
            "Channel {number}, from {low} to {high}; the largest difference is {largest}",
            number=number,
            low=digits(low),
            high=digits(high),
            largest=digits(largest),
        )
        broken = 1 - float(np.mean(np.isfinite(a) & np.isfinite(b)))
        share = tr("{share} % of the values are NaN or infinite", share=digits(100 * broken)) if broken else ""
        self.text.setText("; ".join(part for part in (text, share) if part))


def _difference(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """B - A; 0 where both have the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(a == b, np.float32(0), b - a)


def _ends(*planes: NDArray[np.float32]) -> tuple[float, float]:
    """The smallest and largest finite value; 0 if there is none."""
    finite = np.concatenate([plane[np.isfinite(plane)] for plane in planes])
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def _planes(tensor: NDArray[Any]) -> NDArray[np.float32]:
    """The channels of the first sample as C x H x W; tensors without an image as one row."""
    found = as_channels(tensor)
    return np.asarray(tensor, np.float32).reshape(1, 1, -1) if found is None else found
