"""RMS normalization."""

from __future__ import annotations

from designer.operators import api as op
from designer.operators.library.normalization._trailing import TrailingNormalization


class RmsNormalization(
    TrailingNormalization,
    type="rms_normalization",
    title="RMS normalization",
    category=op.Category.NORMALIZATION,
    synonyms=("rmsnorm", "root mean square"),
):
    """Divide the values of each position by their root mean square, then apply a learned scale."""

    module = "torch.nn.RMSNorm"

    def normalized(self, x: op.OnnxValue, kind: op.TensorType, axis: int) -> op.OnnxValue:
        squares = op.OnnxNode("ReduceMean", (op.OnnxNode("Mul", (x, x)), op.int64(*range(axis, 0))), {"keepdims": 1})
        result = op.OnnxNode("Div", (x, op.OnnxNode("Sqrt", (op.OnnxNode("Add", (squares, op.scalar(self.epsilon))),))))
        return op.OnnxNode("Mul", (result, op.OnnxWeight("scale"))) if self.affine else result
