"""Utilization: what its bars and its text show of a run."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from pytestqt.qtbot import QtBot
from window_kit import shown

from app.ui.profile.utilization import MODELLED
from app.ui.profile.utilization_bars import UtilizationBars
from designer.profiling.quantities import Quantity, ValueSource


def test_every_value_is_whole_next_to_its_bar(qtbot: QtBot) -> None:
    values = {key: Quantity(0.888, ValueSource.MODELLED) for key in MODELLED}
    bars = shown(qtbot, UtilizationBars(), 240, 160)
    bars.show_values(MODELLED, values, values, "conv_2s")
    image = bars.grab().toImage()
    ground = image.pixelColor(image.width() - 1, image.height() - 1)
    assert all(image.pixelColor(image.width() - 1, y) == ground for y in range(image.height()))
