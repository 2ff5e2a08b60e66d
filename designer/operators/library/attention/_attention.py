"""Attention in ONNX, shared by the attention operators."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    OnnxItem,
    OnnxNode,
    OnnxValue,
    OnnxWeight,
    int64,
    scalar,
)


def attended(
    q: OnnxValue,
    k: OnnxValue,
    v: OnnxValue,
    scale: float,
    *,
    mask: OnnxValue | None = None,
    causal: tuple[int, int] | None = None,
) -> OnnxValue:
    """softmax(q k^T * scale + mask) v over the last two axes of rank-4 tensors; `causal` is (queries, keys)."""
    turned = OnnxNode("Transpose", (k,), {"perm": (0, 1, 3, 2)})
    scores: OnnxValue = OnnxNode("Mul", (OnnxNode("MatMul", (q, turned)), scalar(scale)))
    if causal is not None:
        ones = OnnxNode("Expand", (scalar(1.0), int64(*causal)))
        seen = OnnxNode("Greater", (OnnxNode("Trilu", (ones,), {"upper": 0}), scalar(0.0)))
        scores = OnnxNode("Where", (seen, scores, scalar(float("-inf"))))
    if mask is not None:
        scores = OnnxNode("Add", (scores, mask))
    return OnnxNode("MatMul", (OnnxNode("Softmax", (scores,), {"axis": -1}), v))


def heads_of(x: OnnxValue, heads: int, size: int) -> OnnxValue:
    """N x L x heads * size as N x heads x L x size."""
    split = OnnxNode("Reshape", (x, int64(0, 0, heads, size)))
    return OnnxNode("Transpose", (split,), {"perm": (0, 2, 1, 3)})


def multi_head(
    inputs: Sequence[OnnxValue],
    lengths: Sequence[int],
    features: int,
    heads: int,
    names: Sequence[str],
    causal: bool = False,
) -> OnnxValue:
    """torch's multi-head attention; `names` are the weights in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias.

    The biases are left out where their names are empty.
    """
    size = features // heads
    parts = OnnxNode("Split", (OnnxWeight(names[0]),), {"axis": 0, "num_outputs": 3}, outputs=3)
    shifts = OnnxNode("Split", (OnnxWeight(names[1]),), {"axis": 0, "num_outputs": 3}, outputs=3) if names[1] else None
    projected = []
    for index, x in enumerate(inputs):
        matrix = OnnxNode("Transpose", (OnnxItem(parts, index),), {"perm": (1, 0)})
        value = OnnxNode("MatMul", (x, matrix))
        if shifts is not None:
            value = OnnxNode("Add", (value, OnnxItem(shifts, index)))
        projected.append(heads_of(value, heads, size))
    limits = (lengths[0], lengths[1]) if causal else None
    q, k, v = projected
    result = OnnxNode("Transpose", (attended(q, k, v, size**-0.5, causal=limits),), {"perm": (0, 2, 1, 3)})
    joined = OnnxNode("Reshape", (result, int64(0, 0, features)))
    out = OnnxNode("MatMul", (joined, OnnxNode("Transpose", (OnnxWeight(names[2]),), {"perm": (1, 0)})))
    return OnnxNode("Add", (out, OnnxWeight(names[3]))) if names[3] else out


def attention_flops(queries: int, keys: int, features: int) -> int:
    """Projections and the two products of multi-head attention, for one sample."""
    projections = 2 * features * features * (2 * queries + 2 * keys)
    return projections + 4 * queries * keys * features
