"""The mean squared difference."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    BATCH,
    Example,
    TensorType,
    TorchExpr,
    TorchInput,
    TorchModule,
    image,
)
from designer.operators.library.training._loss import Loss


class MseLoss(Loss, type="mse_loss", title="MSE loss", synonyms=("mean squared error", "l2 loss", "psnr")):
    """The mean squared difference: what PSNR measures."""

    examples = (
        Example((image(), image())),
        Example((TensorType((BATCH, 5)),) * 2, {"reduction": "sum", "weight": 0.5}, "sum"),
    )

    def value(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchModule("torch.nn.MSELoss", {"reduction": self.reduction}, (TorchInput(0), TorchInput(1)))
