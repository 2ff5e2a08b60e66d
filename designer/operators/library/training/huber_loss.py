"""Huber loss."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.training._loss import Loss


class HuberLoss(Loss, type="huber_loss", title="Huber loss", synonyms=("smooth l1",)):
    """Squared for small differences, absolute for large ones."""

    delta: float = op.param(default=1.0, min=1e-6, max=1e6, doc="Threshold between squared and absolute differences.")
    examples = (
        op.Example((op.image(), op.image())),
        op.Example((op.TensorType((op.BATCH, 5)),) * 2, {"reduction": "sum", "weight": 0.5, "delta": 0.3}, "sum"),
    )

    def value(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchModule(
            "torch.nn.HuberLoss",
            {"reduction": self.reduction, "delta": self.delta},
            (op.TorchInput(0), op.TorchInput(1)),
        )
