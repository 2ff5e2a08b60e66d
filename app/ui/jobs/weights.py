"""What the engine's answer to `open` says about weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from designer.files.weights import WeightStatus

NAMED = 3  # layers that the sentence names
_LACKING = (WeightStatus.MISSING, WeightStatus.WRONG_SHAPE)


def weights_wanted(reply: Mapping[str, Any]) -> str:
    """A sentence on the weights that the network lacks; empty when it can run, with those of a file or with random ones."""
    if reply.get("note"):
        return ""  # what was lacking was filled, as the person agreed
    lacking = [report for report in reply.get("report") or () if report.get("status") in _LACKING]
    if not lacking:
        return ""
    layers = list(dict.fromkeys(str(report.get("layer", "")) for report in lacking))
    names = ", ".join(layers[:NAMED]) + (f" and {len(layers) - NAMED} more" if len(layers) > NAMED else "")
    what = f"{len(lacking)} weights are" if len(lacking) > 1 else "1 weight is"
    return f"{what} missing or of the wrong shape: of {names}."
