"""Statistics of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from designer.operators import api as op

STATISTICS = ("mean", "deviation", "minimum", "maximum", "share of zeros")

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


class Statistics(
    op.Operator,
    type="statistics",
    title="Statistics",
    category=op.Category.ANALYSIS,
    role=op.Role.ANALYSIS,
    synonyms=("mean", "deviation", "minimum", "maximum", "sparsity", "dead channels"),
):
    """Mean, standard deviation, minimum, maximum and fraction of zeros of each sample. The tensor passes through unchanged."""

    inputs = (op.Port("x", rank=(1, 2, 3, 4, 5), dtypes=op.FLOATS),)
    outputs = (op.Port("y"), op.Port("figures", doc="N x 1 x 1 x 5 in the order of the description."))
    examples = (op.Example((op.image(),)), op.Example((op.TensorType((op.BATCH, 5)),), name="table"))

    def infer(self, inputs: Sequence[op.TensorType]) -> tuple[op.TensorType, ...]:
        return (inputs[0], inputs[0].with_shape(inputs[0].shape[0], 1, 1, len(STATISTICS)))

    def labels(self, port: str) -> Sequence[str]:
        return STATISTICS if port == "figures" else ()

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        import numpy as np

        flat = inputs[0].reshape(len(inputs[0]), -1)
        with np.errstate(all="ignore"):
            found = (
                flat.mean(axis=1, dtype=np.float64),
                flat.std(axis=1, dtype=np.float64),
                flat.min(axis=1),
                flat.max(axis=1),
                (flat == 0).mean(axis=1),
            )
        return (inputs[0], np.stack(found, axis=1).astype(np.float32).reshape(len(flat), 1, 1, len(STATISTICS)))
