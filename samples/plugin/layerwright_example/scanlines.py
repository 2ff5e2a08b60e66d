"""Scan lines, as on an old screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from designer.operators import api as op

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Scanlines(
    op.Operator,
    type="scanlines",
    title="Scan lines",
    category=op.Category.ANALYSIS,
    role=op.Role.ANALYSIS,
    synonyms=("screen", "interlace", "crt"),
):
    """Darken lines of an image at a regular distance, to test the robustness of a network."""

    inputs = (op.Port("x", rank=4),)

    strength: float = op.param(default=0.5, min=0.0, max=1.0, doc="0: unchanged lines, 1: black lines.")
    distance: int = op.param(default=2, min=1, max=64, doc="Distance between dark lines.")
    examples = (op.Example((op.image(),)), op.Example((op.image(3, 9, 7),), {"strength": 1.0, "distance": 3}))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0]

    def evaluate(self, inputs: Sequence[NDArray[np.float32]]) -> tuple[NDArray[np.float32], ...]:
        result = inputs[0].copy()
        result[:, :, :: self.distance] *= 1 - self.strength
        return (result,)

    def options(self) -> tuple[op.Option, ...]:
        return (
            op.Option("strength", "float", "Strength", 0.0, 1.0, 0.01),
            op.Option("distance", "int", "Distance", 1, 16, 1),
        )
