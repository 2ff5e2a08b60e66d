"""Squared for small differences, absolute for large ones."""

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
    param,
)
from designer.operators.library.training._loss import Loss


class HuberLoss(Loss, type="huber_loss", title="Huber loss", synonyms=("smooth l1",)):
    """Squared for small differences, absolute for large ones."""

    delta: float = param(default=1.0, min=1e-6, max=1e6, doc="Where squares turn into absolute differences.")
    examples = (
        Example((image(), image())),
        Example((TensorType((BATCH, 5)),) * 2, {"reduction": "sum", "weight": 0.5, "delta": 0.3}, "sum"),
    )

    def value(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchModule(
            "torch.nn.HuberLoss", {"reduction": self.reduction, "delta": self.delta}, (TorchInput(0), TorchInput(1))
        )
