"""Random zeros while training."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    Port,
    TensorType,
    TorchExpr,
    TorchModule,
    image,
)
from designer.operators.library.training._dropout import Dropping


class Dropout(
    Dropping,
    type="dropout",
    title="Dropout",
    category=Category.TRAINING,
    synonyms=("regularisation", "regularization", "drop"),
):
    """While training, set values to zero at random and enlarge the others; afterwards it changes nothing."""

    inputs = (Port("x", dtypes=FLOATS),)
    examples = (Example((image(),), {"probability": 0.1}),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchModule("torch.nn.Dropout", {"p": self.probability})
