"""Normalisation by the root mean square."""

from __future__ import annotations

from designer.operators.api import (
    BATCH,
    Category,
    Example,
    OnnxNode,
    OnnxValue,
    OnnxWeight,
    TensorType,
    image,
    int64,
    scalar,
)
from designer.operators.library.normalisation._trailing import TrailingNormalisation


class RmsNormalization(
    TrailingNormalisation,
    type="rms_normalization",
    title="RMS normalization",
    category=Category.NORMALISATION,
    synonyms=("rmsnorm", "root mean square"),
):
    """Divide the values of each position by their root mean square, then scale them by learned numbers."""

    module = "torch.nn.RMSNorm"
    examples = (
        Example((TensorType((BATCH, 5, 6)),)),
        Example((image(3, 4, 5),), {"axis": 1, "epsilon": 0.01}, "everything but the batch"),
        Example((image(6, 3, 4),), {"over": "channels"}, "channels"),
        Example((TensorType((BATCH, 7)),), {"affine": False}, "without scale"),
    )

    def normalised(self, x: OnnxValue, kind: TensorType, axis: int) -> OnnxValue:
        squares = OnnxNode("ReduceMean", (OnnxNode("Mul", (x, x)), int64(*range(axis, 0))), {"keepdims": 1})
        result = OnnxNode("Div", (x, OnnxNode("Sqrt", (OnnxNode("Add", (squares, scalar(self.epsilon))),))))
        return OnnxNode("Mul", (result, OnnxWeight("scale"))) if self.affine else result
