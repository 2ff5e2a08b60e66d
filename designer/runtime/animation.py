"""Animated layers: their seed increases with the frame number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from designer.operators.api import Operator

if TYPE_CHECKING:
    from designer.runtime.session import Session

SEEDS = 2**31  # seeds are below this


class Animation:
    """The animated layers of a session: those with `animate` and `seed` parameters that are currently in effect."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.seeds: dict[str, int] = {}
        for layer in session.graph:
            operator = session.registry.read(layer).operator
            seed = seed_of(operator) if isinstance(operator, Operator) else None
            if seed is not None:
                self.seeds[layer.name] = seed

    def show(self, frame: int) -> None:
        """Set the frame of the following runs; frame 0 uses the seeds of the document."""
        for layer, seed in self.seeds.items():
            self._session.set_param(layer, "seed", str((seed + frame) % SEEDS))


def seed_of(operator: Operator) -> int | None:
    """The seed of an animated layer; None if it is not animated."""
    switch = operator.parameter("animate")
    if switch is None:  # nearly all layers, checked for every frame
        return None
    values = operator.values()
    seed = values.get("seed")
    animated = values["animate"] is True and switch.visible(values)
    return seed if animated and type(seed) is int else None
