"""L1 loss."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.training._loss import Loss


class L1Loss(Loss, type="l1_loss", title="L1 loss", synonyms=("mean absolute error", "mae")):
    """The mean absolute difference: robust against outliers, with sharper results than the mean squared error."""

    examples = (
        op.Example((op.image(), op.image())),
        op.Example((op.TensorType((op.BATCH, 5)),) * 2, {"reduction": "sum", "weight": 0.5}, "sum"),
    )

    def value(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchModule("torch.nn.L1Loss", {"reduction": self.reduction}, (op.TorchInput(0), op.TorchInput(1)))
