"""Random channels of zeros while training."""

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
    param,
)
from designer.operators.library.training._dropout import Dropping


class Dropout2d(
    Dropping,
    type="dropout_2d",
    title="Dropout 2D",
    category=Category.TRAINING,
    synonyms=("spatial dropout", "channel dropout"),
):
    """While training, set whole channels to zero at random and enlarge the others; afterwards it changes nothing."""

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    probability: float = param(default=0.5, min=0.0, max=1.0, step=0.05, doc="Share of channels that become zero.")
    examples = (Example((image(),), {"probability": 0.1}),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchModule("torch.nn.Dropout2d", {"p": self.probability})
