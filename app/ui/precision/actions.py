"""Actions on number formats of layers."""

from __future__ import annotations

from typing import Any

from app.ui.engine.number_formats import NumberFormats
from app.ui.widgets.action import Action, ActionGroup, Need
from designer.runtime.number_formats import FORMATS
from designer.texts import mark

SELECTED = Need(lambda s: s.selected > 0, "select layers")
TITLES = {
    "float32": mark("FP32"),
    "float16": mark("FP16"),
    "bfloat16": mark("BF16"),
    **{name: name.upper() for name, found in FORMATS.items() if found.is_integer},
}


def _format(name: str) -> Action[NumberFormats]:
    return Action(
        f"precision.format_{name}",
        TITLES[name],
        "Compute the selected layers in this number format, emulated on this machine",
        lambda formats: formats.set_format(name),
        ("Canvas/formats", "Analysis/formats"),
        (),
        (SELECTED,),
    )


ACTIONS: tuple[ActionGroup[Any], ...] = (ActionGroup(NumberFormats, tuple(_format(name) for name in FORMATS)),)
