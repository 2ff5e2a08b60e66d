"""Charbonnier loss."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.training._loss import Loss


class CharbonnierLoss(
    Loss, type="charbonnier_loss", title="Charbonnier loss", synonyms=("pseudo huber", "smooth l1", "restoration")
):
    """The mean of sqrt(difference^2 + epsilon^2): a smooth absolute difference, common in image restoration."""

    epsilon: float = op.param(default=1e-3, min=1e-9, max=1e3, doc="Range of differences that are smoothed.")
    examples = (
        op.Example((op.image(), op.image())),
        op.Example((op.image(), op.image()), {"reduction": "sum", "weight": 2.0}, "sum"),
    )

    def value(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        squares = op.TorchCall("torch.square", (op.TorchCall("torch.sub", (op.TorchInput(0), op.TorchInput(1))),))
        return self.reduced(op.TorchCall("torch.sqrt", (op.TorchCall("torch.add", (squares, self.epsilon**2)),)))
