"""Snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from designer.operators import api as op

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


class Snapshot(
    op.Operator,
    type="snapshot",
    title="Snapshot",
    category=op.Category.ANALYSIS,
    role=op.Role.ANALYSIS,
    synonyms=("probe", "tap", "keep", "look"),
):
    """Mark a tensor for inspection. It passes through unchanged; the label identifies it."""

    label: str = op.param(default="", doc="Description of the tensor.")
    examples = (op.Example((op.image(),)), op.Example((op.TensorType((op.BATCH, 5)),), {"label": "scores"}, "table"))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0]

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (inputs[0],)

    def summary(self) -> str:
        return self.label[:40]
