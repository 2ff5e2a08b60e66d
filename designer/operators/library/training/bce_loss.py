"""Binary cross-entropy loss."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.training._loss import Loss
from designer.operators.shapes import known
from designer.texts import tr


class BceLoss(
    Loss,
    type="bce_loss",
    title="Binary cross-entropy loss",
    synonyms=("binary cross entropy", "sigmoid loss", "mask loss", "multi label"),
):
    """Negative log-likelihood of independent binary targets."""

    logits: bool = op.param(
        default=True, doc="x contains logits, to which a sigmoid is applied; otherwise probabilities in 0..1."
    )
    pos_weight: tuple[float, ...] = op.param(
        default=(),
        min=0.0,
        max=1e6,
        extension=True,
        doc="Weight of positive targets: one number, or one for each channel; empty: 1.",
    )
    examples = (
        op.Example((op.image(), op.image())),
        op.Example((op.TensorType((op.BATCH, 5)),) * 2, {"reduction": "sum"}, "sum"),
        op.Example((op.image(), op.image()), {"pos_weight": (3.0, 1.0, 0.5)}, "weights of the channels"),
        op.Example((op.TensorType((op.BATCH, 5)),) * 2, {"pos_weight": (2.5,)}, "one weight"),
        op.Example(
            (op.image(), op.image()), {"logits": False, "pos_weight": (3.0, 1.0, 0.5)}, "weights of probabilities"
        ),
    )

    def check(self, inputs: Sequence[op.TensorType]) -> None:
        super().check(inputs)
        count = len(self.pos_weight)
        if count > 1 and (inputs[0].rank < 2 or known(inputs[0], 1) != count):
            raise op.ShapeError(
                tr(
                    "the {count} numbers of pos_weight do not match the channels of {inputs}",
                    count=count,
                    inputs=inputs[0],
                ),
                port="x",
                remedy=tr("enter one number, or one for each channel (axis 1)"),
            )

    def value(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        x, target = op.TorchInput(0), op.TorchInput(1)
        if not self.pos_weight:
            path = "torch.nn.BCEWithLogitsLoss" if self.logits else "torch.nn.BCELoss"
            return op.TorchModule(path, {"reduction": self.reduction}, (x, target))
        weights: op.TorchExpr = op.TorchParameter(
            "pos_weight", (len(self.pos_weight),), self.pos_weight, trainable=False, persistent=False
        )
        if len(self.pos_weight) > 1 and inputs[0].rank > 2:
            weights = op.TorchMethod("view", weights, (-1, *(1,) * (inputs[0].rank - 2)))
        if self.logits:
            kwargs = {"pos_weight": weights, "reduction": self.reduction}
            return op.TorchCall("torch.nn.functional.binary_cross_entropy_with_logits", (x, target), kwargs)
        # BCELoss has no pos_weight; it also clamps logarithms at -100.
        yes = op.TorchCall("torch.mul", (op.TorchCall("torch.mul", (weights, target)), _logarithm(x)))
        no = op.TorchCall(
            "torch.mul", (op.TorchCall("torch.sub", (1, target)), _logarithm(op.TorchCall("torch.sub", (1, x))))
        )
        values = op.TorchCall("torch.neg", (op.TorchCall("torch.add", (yes, no)),))
        return values if self.reduction == "none" else op.TorchCall(f"torch.{self.reduction}", (values,))


def _logarithm(x: op.TorchExpr) -> op.TorchExpr:
    return op.TorchCall("torch.clamp", (op.TorchCall("torch.log", (x,)),), {"min": -100})
