"""What the engine's answer to `open` says about weights."""

from __future__ import annotations

from app.engine.protocol import OpenReply
from designer.files.weights import WeightStatus
from designer.texts import tr, trn

NAMED = 3  # layers that the sentence names
_LACKING = (WeightStatus.MISSING, WeightStatus.WRONG_SHAPE)


def weights_wanted(reply: OpenReply) -> str:
    """A sentence on the weights that the network lacks; empty when it can run, with those of a file or with random ones."""
    if reply.note:
        return ""  # what was lacking was filled, as the user agreed
    lacking = [found for found in reply.report if found.status in _LACKING]
    if not lacking:
        return ""
    layers = list(dict.fromkeys(found.layer for found in lacking))
    names = ", ".join(layers[:NAMED])
    if len(layers) > NAMED:
        names = tr("{names} and {count} more", names=names, count=len(layers) - NAMED)
    return trn(
        "{count} weight is missing or of the wrong shape: of {names}.",
        "{count} weights are missing or of the wrong shape: of {names}.",
        len(lacking),
        names=names,
    )
