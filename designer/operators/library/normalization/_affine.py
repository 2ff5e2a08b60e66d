"""Learned scale and bias of a normalization, and its running statistics."""

from __future__ import annotations

from designer.operators import api as op


def affine_weights(shape: tuple[int, ...]) -> tuple[op.Weight, op.Weight]:
    """Scale and bias, initialized to 1 and 0."""
    return op.Weight("scale", shape, "weight", init="ones"), op.Weight("bias", shape, "bias", init="zeros")


def running_weights(shape: tuple[int, ...]) -> tuple[op.Weight, op.Weight]:
    """Running mean and variance, updated in training and used in inference."""
    return (
        op.Weight("mean", shape, "running_mean", init="zeros", trainable=False),
        op.Weight("variance", shape, "running_var", init="ones", trainable=False),
    )


def affine_onnx(channels: int, learned: bool) -> tuple[op.OnnxValue, op.OnnxValue]:
    """Scale and bias for ONNX operators that require both."""
    if learned:
        return op.OnnxWeight("scale"), op.OnnxWeight("bias")
    return op.OnnxConstant((1.0,) * channels), op.OnnxConstant((0.0,) * channels)
