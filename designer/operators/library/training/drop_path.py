"""Drop path."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.training._dropout import Dropping


class DropPath(
    Dropping,
    type="drop_path",
    title="Drop path",
    category=op.Category.TRAINING,
    synonyms=("stochastic depth", "droppath", "residual dropout"),
):
    """In training, set whole samples to zero at random and scale the others; identity in inference.

    At the end of a residual branch, it skips the branch for some samples (stochastic depth).
    """

    inputs = (op.Port("x", rank=(2, 3, 4, 5), dtypes=op.FLOATS),)

    probability: float = op.param(
        default=0.1, min=0.0, max=1.0, step=0.05, doc="Probability of a sample to be set to zero."
    )
    examples = (op.Example((op.image(),)), op.Example((op.TensorType((op.BATCH, 5)),), {"probability": 0.5}, "table"))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        first = (slice(None), *(slice(None, 1) for _ in range(inputs[0].rank - 1)))
        ones = op.TorchCall("torch.ones_like", (op.TorchItem(op.TorchInput(0), first),))
        kept = op.TorchModule("torch.nn.Dropout", {"p": self.probability}, (ones,))
        return op.TorchCall("torch.mul", (op.TorchInput(0), kept))
