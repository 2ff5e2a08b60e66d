"""Scaled dot-product attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators import api as op
from designer.operators.library.attention._attention import attended
from designer.operators.shapes import broadcast, known
from designer.texts import tr


class ScaledDotProductAttention(
    op.Operator,
    type="scaled_dot_product_attention",
    title="Scaled dot-product attention",
    category=op.Category.ATTENTION,
    synonyms=("attention", "sdpa", "softmax attention"),
):
    """softmax(query key^T * scale + mask) value: for each query, a weighted mean of the values.

    Tensors are N x heads x length x size. The mask is added to the scores; minus infinity excludes a key.
    """

    inputs = (
        op.Port("query", rank=4, dtypes=op.FLOATS),
        op.Port("key", rank=4, dtypes=op.FLOATS),
        op.Port("value", rank=4, dtypes=op.FLOATS),
        op.Port("mask", rank=(2, 3, 4), dtypes=op.FLOATS, optional=True, doc="Added to the scores."),
    )

    causal: bool = op.param(default=False, doc="Each query attends only to keys at its position or before.")
    scale: float = op.param(default=0.0, min=0.0, max=1000.0, doc="Factor of the scores; 0: 1 / sqrt(size).")
    examples = (
        op.Example(
            (op.TensorType((op.BATCH, 2, 5, 4)), op.TensorType((op.BATCH, 2, 6, 4)), op.TensorType((op.BATCH, 2, 6, 3)))
        ),
        op.Example((op.TensorType((op.BATCH, 2, 5, 4)),) * 3, {"causal": True, "scale": 0.3}, "causal"),
        op.Example((*(op.TensorType((op.BATCH, 2, 5, 4)),) * 3, op.TensorType((5, 5))), name="with a mask"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        q, k, v = inputs[:3]
        for name, tensor in zip(("query", "key", "value"), inputs, strict=False):
            for axis in (1, 2, 3):
                known(tensor, axis, name)
        if q.shape[:2] != k.shape[:2] or q.shape[3] != k.shape[3]:
            raise op.ShapeError(
                tr("query {q} and key {k} must be equal except for the length (axis 2)", q=q, k=k),
                port="key",
                remedy=tr("make the last axes equal, for instance with Fully connected"),
            )
        if k.shape[:3] != v.shape[:3]:
            raise op.ShapeError(
                tr("key {k} and value {v} must be equal except along the last axis", k=k, v=v),
                port="value",
                remedy=tr("make the other axes equal, for instance with Reshape or Permute"),
            )
        if len(inputs) == 4:
            if self.causal:
                raise op.ShapeError(
                    tr("causal cannot be combined with a mask"),
                    port="mask",
                    remedy=tr("include the causal mask in the mask"),
                )
            scores = q.with_shape(*q.shape[:3], k.shape[2])
            if broadcast(scores, inputs[3], "mask") != scores:
                raise op.ShapeError(
                    tr("the mask {inputs} does not fit scores of {scores}", inputs=inputs[3], scores=scores),
                    port="mask",
                    remedy=tr("use a mask that broadcasts to the scores"),
                )
        return q.with_shape(*q.shape[:3], v.shape[3])

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs: dict[str, Any] = {}
        if len(inputs) == 4:
            kwargs["attn_mask"] = op.TorchInput(3)
        if self.causal:
            kwargs["is_causal"] = True
        if self.scale:
            kwargs["scale"] = self.scale
        path = "torch.nn.functional.scaled_dot_product_attention"
        return op.TorchCall(path, (op.TorchInput(0), op.TorchInput(1), op.TorchInput(2)), kwargs)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        scale = self.scale or inputs[0].dim(3) ** -0.5
        mask = op.OnnxInput(3) if len(inputs) == 4 else None
        causal = (inputs[0].dim(2), inputs[1].dim(2)) if self.causal else None
        return attended(op.OnnxInput(0), op.OnnxInput(1), op.OnnxInput(2), scale, mask=mask, causal=causal)

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        batch, heads, queries, size = inputs[0].concrete()
        return 2 * batch * heads * queries * inputs[1].dim(2) * (size + inputs[2].dim(3))

    def summary(self) -> str:
        return "causal" if self.causal else ""
