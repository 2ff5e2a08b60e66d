"""Utilization: what its bars and its text show of a run."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from pytestqt.qtbot import QtBot
from window_kit import shown

from app.ui.profile.utilization import COUNTED, MODELLED, in_words
from app.ui.profile.utilization_bars import UtilizationBars
from designer.profiling.quantities import Quantity, ValueSource, measured, modelled, unavailable
from designer.profiling.schema import UTILIZATION


def test_every_value_is_whole_next_to_its_bar(qtbot: QtBot) -> None:
    values = {key: Quantity(0.888, ValueSource.MODELLED) for key in MODELLED}
    bars = shown(qtbot, UtilizationBars(), 240, 160)
    bars.show_values(MODELLED, values, values, "conv_2s")
    image = bars.grab().toImage()
    ground = image.pixelColor(image.width() - 1, image.height() - 1)
    assert all(image.pixelColor(image.width() - 1, y) == ground for y in range(image.height()))


def test_the_text_has_value_source_and_reason_of_every_kind() -> None:
    known, bare, missing = measured(62.5, "mean weighted by time"), modelled(5.0, ""), unavailable("only GPUs have SMs")
    found = dict(zip(COUNTED, (known, bare, missing, known), strict=False))
    keys = tuple(found)
    zero = in_words("conv_2s", keys[:1], {keys[0]: measured(0.0, "idle")}).splitlines()
    assert zero == ["conv_2s", f"{UTILIZATION[keys[0]]}: 0 %, measured (idle)"]
    lines = in_words("conv_2s", keys, found).splitlines()
    assert lines[0] == "conv_2s"
    assert [line.partition(": ")[0] for line in lines[1:]] == [UTILIZATION[key] for key in keys]
    texts = [line.partition(": ")[2] for line in lines[1:4]]
    assert texts == ["62.5 %, measured (mean weighted by time)", "5.00 %, modelled", "unavailable (only GPUs have SMs)"]
