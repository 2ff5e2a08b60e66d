"""Amounts as color: one perceptual map (viridis), and a diverging one for signed amounts."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from app.ui.widgets.render import palette, to_image

MAP = "viridis"


def heat_color(share: float) -> QColor:
    """The color of an amount as a share of the largest one, 0 to 1."""
    return QColor.fromRgb(int(palette(MAP)[1 + round(min(max(share, 0.0), 1.0) * 254)]))


def paint_heat_bar(painter: QPainter, bar: QRectF) -> None:
    """Paint the map from 0 to 1, left to right."""
    painter.drawImage(bar, to_image(palette(MAP)[1:][None].copy()))
