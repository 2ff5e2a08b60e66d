"""The mean absolute difference."""

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


class L1Loss(Loss, type="l1_loss", title="L1 loss", synonyms=("mean absolute error", "mae")):
    """The mean absolute difference: robust against outliers, and pictures stay sharper than with squares."""

    examples = (
        Example((image(), image())),
        Example((TensorType((BATCH, 5)),) * 2, {"reduction": "sum", "weight": 0.5}, "sum"),
    )

    def value(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchModule("torch.nn.L1Loss", {"reduction": self.reduction}, (TorchInput(0), TorchInput(1)))
