"""Normalisation within a sample."""

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


class LayerNormalization(
    TrailingNormalisation,
    type="layer_normalization",
    title="Layer normalization",
    category=Category.NORMALISATION,
    synonyms=("layernorm", "ln", "layer norm", "convnext"),
):
    """Bring the values of each position to mean 0 and variance 1, then scale and shift them by learned numbers."""

    module = "torch.nn.LayerNorm"
    with_bias = True
    examples = (
        Example((TensorType((BATCH, 5, 6)),)),
        Example((image(3, 4, 5),), {"axis": 1, "epsilon": 0.01}, "everything but the batch"),
        Example((image(6, 3, 4),), {"over": "channels"}, "channels"),
        Example((TensorType((BATCH, 7)),), {"affine": False}, "without scale"),
    )

    def normalised(self, x: OnnxValue, kind: TensorType, axis: int) -> OnnxValue:
        shape = int64(*self.shape(kind))
        scale: OnnxValue = OnnxWeight("scale") if self.affine else OnnxNode("Expand", (scalar(1.0), shape))
        bias = (OnnxWeight("bias"),) if self.affine else ()
        return OnnxNode("LayerNormalization", (x, scale, *bias), {"axis": axis, "epsilon": self.epsilon})
