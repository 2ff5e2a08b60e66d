"""Edges that agree."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Example,
    Port,
    ShapeError,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    image,
)
from designer.operators.library.training._loss import Loss
from designer.texts import tr


class GradientLoss(
    Loss, type="gradient_loss", title="Gradient loss", synonyms=("edge loss", "gradient difference", "sharpness")
):
    """The mean absolute difference of the changes from pixel to pixel, to the right and down: edges stay where they are."""

    inputs = (Port("x", rank=4, dtypes=FLOATS), Port("target", rank=4, dtypes=FLOATS))
    examples = (Example((image(), image())), Example((image(), image()), {"reduction": "sum", "weight": 0.1}, "sum"))

    def check(self, inputs: Sequence[TensorType]) -> None:
        super().check(inputs)
        x = inputs[0].image()
        if x.h < 2 or x.w < 2:
            raise ShapeError(
                tr("an image of at least 2x2 is needed, not {w}x{h}", w=x.w, h=x.h),
                port="x",
                remedy=tr("use a larger image"),
            )

    def value(self, inputs: Sequence[TensorType]) -> TorchExpr:
        error = TorchCall("torch.sub", (TorchInput(0), TorchInput(1)))
        parts = []
        for axis in (2, 3):
            change = TorchCall("torch.diff", (error,), {"dim": axis})
            parts.append(self.reduced(TorchCall("torch.abs", (change,))))
        return TorchCall("torch.add", tuple(parts))
