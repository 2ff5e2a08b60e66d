"""Gradient loss."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.training._loss import Loss
from designer.texts import tr


class GradientLoss(
    Loss, type="gradient_loss", title="Gradient loss", synonyms=("edge loss", "gradient difference", "sharpness")
):
    """The mean absolute difference of horizontal and vertical image gradients, to preserve edges."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS), op.Port("target", rank=4, dtypes=op.FLOATS))
    examples = (
        op.Example((op.image(), op.image())),
        op.Example((op.image(), op.image()), {"reduction": "sum", "weight": 0.1}, "sum"),
    )

    def check(self, inputs: Sequence[op.TensorType]) -> None:
        super().check(inputs)
        x = inputs[0].image()
        if x.h < 2 or x.w < 2:
            raise op.ShapeError(
                tr("the image must be at least 2x2, not {w}x{h}", w=x.w, h=x.h),
                port="x",
                remedy=tr("use a larger image"),
            )

    def value(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        error = op.TorchCall("torch.sub", (op.TorchInput(0), op.TorchInput(1)))
        parts = []
        for axis in (2, 3):
            change = op.TorchCall("torch.diff", (error,), {"dim": axis})
            parts.append(self.reduced(op.TorchCall("torch.abs", (change,))))
        return op.TorchCall("torch.add", tuple(parts))
