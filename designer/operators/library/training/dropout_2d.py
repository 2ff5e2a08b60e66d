"""Dropout of channels."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.training._dropout import Dropping


class Dropout2d(
    Dropping,
    type="dropout_2d",
    title="Dropout 2D",
    category=op.Category.TRAINING,
    synonyms=("spatial dropout", "channel dropout"),
):
    """In training, set whole channels to zero at random and scale the others; identity in inference."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    probability: float = op.param(
        default=0.5, min=0.0, max=1.0, step=0.05, doc="Probability of a channel to be set to zero."
    )
    examples = (op.Example((op.image(),), {"probability": 0.1}),)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchModule("torch.nn.Dropout2d", {"p": self.probability})
