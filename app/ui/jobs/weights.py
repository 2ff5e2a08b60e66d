"""What the engine's answer to `open` says about weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from designer.files.weights import WeightStatus

_LACKING = (WeightStatus.MISSING, WeightStatus.WRONG_SHAPE)


def weights_wanted(reply: Mapping[str, Any]) -> str:
    """A sentence on the weights that the network lacks; empty when it can run, with those of a file or with random ones."""
    if reply.get("note"):
        return ""  # what was lacking was filled, as the person agreed
    count = sum(1 for report in reply.get("report") or () if report.get("status") in _LACKING)
    if not count:
        return ""
    return f"{count} {'weights are' if count > 1 else 'weight is'} missing or of the wrong shape."
