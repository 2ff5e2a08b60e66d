"""Layer normalization."""

from __future__ import annotations

from designer.operators import api as op
from designer.operators.library.normalization._trailing import TrailingNormalization


class LayerNormalization(
    TrailingNormalization,
    type="layer_normalization",
    title="Layer normalization",
    category=op.Category.NORMALIZATION,
    synonyms=("layernorm", "ln", "layer norm", "convnext"),
):
    """Normalize the values of each position to mean 0 and variance 1, then apply a learned scale and bias."""

    module = "torch.nn.LayerNorm"
    with_bias = True

    def normalized(self, x: op.OnnxValue, kind: op.TensorType, axis: int) -> op.OnnxValue:
        shape = op.int64(*self.shape(kind))
        scale: op.OnnxValue = op.OnnxWeight("scale") if self.affine else op.OnnxNode("Expand", (op.scalar(1.0), shape))
        bias = (op.OnnxWeight("bias"),) if self.affine else ()
        return op.OnnxNode("LayerNormalization", (x, scale, *bias), {"axis": axis, "epsilon": self.epsilon})
