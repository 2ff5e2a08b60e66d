"""Yes or no."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    BATCH,
    Example,
    ShapeError,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchMethod,
    TorchModule,
    TorchParameter,
    image,
    param,
)
from designer.operators.library.training._loss import Loss
from designer.operators.shapes import known
from designer.texts import tr


class BceLoss(
    Loss,
    type="bce_loss",
    title="Binary cross-entropy loss",
    synonyms=("binary cross entropy", "sigmoid loss", "mask loss", "multi label"),
):
    """Minus the logarithm of the probability of the right answer, for values that are each a yes or a no of their own."""

    logits: bool = param(default=True, doc="x holds scores that a sigmoid turns into probabilities; else x is in 0..1.")
    pos_weight: tuple[float, ...] = param(
        default=(),
        min=0.0,
        max=1e6,
        extension=True,
        doc="How much a yes counts beside a no: one number, or one for every channel; empty: as much.",
    )
    examples = (
        Example((image(), image())),
        Example((TensorType((BATCH, 5)),) * 2, {"reduction": "sum"}, "sum"),
        Example((image(), image()), {"pos_weight": (3.0, 1.0, 0.5)}, "weights of the channels"),
        Example((TensorType((BATCH, 5)),) * 2, {"pos_weight": (2.5,)}, "one weight"),
        Example((image(), image()), {"logits": False, "pos_weight": (3.0, 1.0, 0.5)}, "weights of probabilities"),
    )

    def check(self, inputs: Sequence[TensorType]) -> None:
        super().check(inputs)
        count = len(self.pos_weight)
        if count > 1 and (inputs[0].rank < 2 or known(inputs[0], 1) != count):
            raise ShapeError(
                tr("{count} numbers in pos_weight do not fit the channels of {inputs}", count=count, inputs=inputs[0]),
                port="x",
                remedy=tr("give one number, or one for every channel (axis 1)"),
            )

    def value(self, inputs: Sequence[TensorType]) -> TorchExpr:
        x, target = TorchInput(0), TorchInput(1)
        if not self.pos_weight:
            path = "torch.nn.BCEWithLogitsLoss" if self.logits else "torch.nn.BCELoss"
            return TorchModule(path, {"reduction": self.reduction}, (x, target))
        weights: TorchExpr = TorchParameter(
            "pos_weight", (len(self.pos_weight),), self.pos_weight, trainable=False, persistent=False
        )
        if len(self.pos_weight) > 1 and inputs[0].rank > 2:
            weights = TorchMethod("view", weights, (-1, *(1,) * (inputs[0].rank - 2)))
        if self.logits:
            kwargs = {"pos_weight": weights, "reduction": self.reduction}
            return TorchCall("torch.nn.functional.binary_cross_entropy_with_logits", (x, target), kwargs)
        # BCELoss has no pos_weight; its logarithms end at -100 too.
        yes = TorchCall("torch.mul", (TorchCall("torch.mul", (weights, target)), _logarithm(x)))
        no = TorchCall("torch.mul", (TorchCall("torch.sub", (1, target)), _logarithm(TorchCall("torch.sub", (1, x)))))
        values = TorchCall("torch.neg", (TorchCall("torch.add", (yes, no)),))
        return values if self.reduction == "none" else TorchCall(f"torch.{self.reduction}", (values,))


def _logarithm(x: TorchExpr) -> TorchExpr:
    return TorchCall("torch.clamp", (TorchCall("torch.log", (x,)),), {"min": -100})
