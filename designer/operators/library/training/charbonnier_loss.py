"""A smooth absolute difference."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    Example,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    image,
    param,
)
from designer.operators.library.training._loss import Loss


class CharbonnierLoss(
    Loss, type="charbonnier_loss", title="Charbonnier loss", synonyms=("pseudo huber", "smooth l1", "restoration")
):
    """The mean of sqrt(difference^2 + epsilon^2): an absolute difference that is smooth at zero, usual in restoration."""

    epsilon: float = param(default=1e-3, min=1e-9, max=1e3, doc="Where the bend is.")
    examples = (Example((image(), image())), Example((image(), image()), {"reduction": "sum", "weight": 2.0}, "sum"))

    def value(self, inputs: Sequence[TensorType]) -> TorchExpr:
        squares = TorchCall("torch.square", (TorchCall("torch.sub", (TorchInput(0), TorchInput(1))),))
        return self.reduced(TorchCall("torch.sqrt", (TorchCall("torch.add", (squares, self.epsilon**2)),)))
