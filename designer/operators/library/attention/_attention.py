"""Attention in ONNX, shared by the attention operators."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


def attended(
    q: op.OnnxValue,
    k: op.OnnxValue,
    v: op.OnnxValue,
    scale: float,
    *,
    mask: op.OnnxValue | None = None,
    causal: tuple[int, int] | None = None,
) -> op.OnnxValue:
    """softmax(q k^T * scale + mask) v over the last two axes of rank-4 tensors; `causal` is (number of queries, number of keys)."""
    turned = op.OnnxNode("Transpose", (k,), {"perm": (0, 1, 3, 2)})
    scores: op.OnnxValue = op.OnnxNode("Mul", (op.OnnxNode("MatMul", (q, turned)), op.scalar(scale)))
    if causal is not None:
        ones = op.OnnxNode("Expand", (op.scalar(1.0), op.int64(*causal)))
        seen = op.OnnxNode("Greater", (op.OnnxNode("Trilu", (ones,), {"upper": 0}), op.scalar(0.0)))
        scores = op.OnnxNode("Where", (seen, scores, op.scalar(float("-inf"))))
    if mask is not None:
        scores = op.OnnxNode("Add", (scores, mask))
    return op.OnnxNode("MatMul", (op.OnnxNode("Softmax", (scores,), {"axis": -1}), v))


def heads_of(x: op.OnnxValue, heads: int, size: int) -> op.OnnxValue:
    """Reshape N x L x heads * size to N x heads x L x size."""
    split = op.OnnxNode("Reshape", (x, op.int64(0, 0, heads, size)))
    return op.OnnxNode("Transpose", (split,), {"perm": (0, 2, 1, 3)})


def multi_head(
    inputs: Sequence[op.OnnxValue],
    lengths: Sequence[int],
    features: int,
    heads: int,
    names: Sequence[str],
    causal: bool = False,
) -> op.OnnxValue:
    """torch.nn.functional.multi_head_attention_forward; `names` are the weights in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias.

    Biases with an empty name are omitted.
    """
    size = features // heads
    parts = op.OnnxNode("Split", (op.OnnxWeight(names[0]),), {"axis": 0, "num_outputs": 3}, outputs=3)
    shifts = (
        op.OnnxNode("Split", (op.OnnxWeight(names[1]),), {"axis": 0, "num_outputs": 3}, outputs=3) if names[1] else None
    )
    projected = []
    for index, x in enumerate(inputs):
        matrix = op.OnnxNode("Transpose", (op.OnnxItem(parts, index),), {"perm": (1, 0)})
        value = op.OnnxNode("MatMul", (x, matrix))
        if shifts is not None:
            value = op.OnnxNode("Add", (value, op.OnnxItem(shifts, index)))
        projected.append(heads_of(value, heads, size))
    limits = (lengths[0], lengths[1]) if causal else None
    q, k, v = projected
    result = op.OnnxNode("Transpose", (attended(q, k, v, size**-0.5, causal=limits),), {"perm": (0, 2, 1, 3)})
    joined = op.OnnxNode("Reshape", (result, op.int64(0, 0, features)))
    out = op.OnnxNode("MatMul", (joined, op.OnnxNode("Transpose", (op.OnnxWeight(names[2]),), {"perm": (1, 0)})))
    return op.OnnxNode("Add", (out, op.OnnxWeight(names[3]))) if names[3] else out


def attention_flops(queries: int, keys: int, features: int) -> int:
    """FLOPs of the projections and the two products of multi-head attention, for one sample."""
    projections = 2 * features * features * (2 * queries + 2 * keys)
    return projections + 4 * queries * keys * features
