"""Yes or no."""

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


class BceLoss(
    Loss,
    type="bce_loss",
    title="Binary cross-entropy loss",
    synonyms=("binary cross entropy", "sigmoid loss", "mask loss", "multi label"),
):
    """Minus the logarithm of the probability of the right answer, for values that are each a yes or a no of their own."""

    logits: bool = param(default=True, doc="x holds scores that a sigmoid turns into probabilities; else x is in 0..1.")
    examples = (Example((image(), image())), Example((TensorType((BATCH, 5)),) * 2, {"reduction": "sum"}, "sum"))

    def value(self, inputs: Sequence[TensorType]) -> TorchExpr:
        path = "torch.nn.BCEWithLogitsLoss" if self.logits else "torch.nn.BCELoss"
        return TorchModule(path, {"reduction": self.reduction}, (TorchInput(0), TorchInput(1)))
