"""Dropout."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.training._dropout import Dropping


class Dropout(
    Dropping,
    type="dropout",
    title="Dropout",
    category=op.Category.TRAINING,
    synonyms=("regularisation", "regularization", "drop"),
):
    """In training, set values to zero at random and scale the others; identity in inference."""

    inputs = (op.Port("x", dtypes=op.FLOATS),)
    examples = (op.Example((op.image(),), {"probability": 0.1}),)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchModule("torch.nn.Dropout", {"p": self.probability})
