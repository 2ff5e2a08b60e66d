"""MSE loss."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.training._loss import Loss


class MseLoss(Loss, type="mse_loss", title="MSE loss", synonyms=("mean squared error", "l2 loss", "psnr")):
    """The mean squared error, the basis of PSNR."""

    examples = (
        op.Example((op.image(), op.image())),
        op.Example((op.TensorType((op.BATCH, 5)),) * 2, {"reduction": "sum", "weight": 0.5}, "sum"),
    )

    def value(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchModule("torch.nn.MSELoss", {"reduction": self.reduction}, (op.TorchInput(0), op.TorchInput(1)))
