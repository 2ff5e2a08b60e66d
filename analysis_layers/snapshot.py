"""A point of the network to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from designer.operators.api import (
    BATCH,
    Category,
    Example,
    Operator,
    Role,
    TensorType,
    image,
    param,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


class Snapshot(
    Operator,
    type="snapshot",
    title="Snapshot",
    category=Category.ANALYSIS,
    role=Role.ANALYSIS,
    synonyms=("probe", "tap", "keep", "look"),
):
    """Mark a tensor to look at. It passes on unchanged; the label tells it apart from others."""

    label: str = param(default="", doc="What the tensor shows, in your own words.")
    examples = (Example((image(),)), Example((TensorType((BATCH, 5)),), {"label": "scores"}, "table"))

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (inputs[0],)

    def summary(self) -> str:
        return self.label[:40]
