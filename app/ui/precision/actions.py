"""Actions on number formats of layers."""

from __future__ import annotations

from typing import Any

from app.ui.engine.number_formats import TITLES, NumberFormats
from app.ui.widgets.action import Action, ActionGroup, Need
from designer.runtime.number_formats import FORMATS

SELECTED = Need(lambda s: s.selected > 0, "select layers")


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
