"""Amounts as color: one perceptual map (viridis), and a diverging one for signed amounts."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from app.ui.widgets.render import palette, to_image

MAP = "viridis"
SIGNED_MAP = "orange / blue"


def heat_color(share: float, *, signed: bool = False) -> QColor:
    """The color of an amount as a share of the largest one: 0 to 1, or -1 to 1 if signed."""
    if signed:
        return QColor.fromRgb(int(palette(SIGNED_MAP)[128 + round(min(max(share, -1.0), 1.0) * 127)]))
    return QColor.fromRgb(int(palette(MAP)[1 + round(min(max(share, 0.0), 1.0) * 254)]))


def paint_heat_bar(painter: QPainter, bar: QRectF, *, signed: bool = False) -> None:
    """Paint the map from its lowest to its highest value, left to right."""
    painter.drawImage(bar, to_image(palette(SIGNED_MAP if signed else MAP)[1:][None].copy()))
