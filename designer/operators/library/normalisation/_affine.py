"""The learned scale and bias of a normalisation."""

from __future__ import annotations

from designer.operators.api import OnnxConstant, OnnxValue, OnnxWeight, Weight


def affine_weights(shape: tuple[int, ...]) -> tuple[Weight, Weight]:
    """Scale and bias, which change nothing before training."""
    return Weight("scale", shape, "weight", init="ones"), Weight("bias", shape, "bias", init="zeros")


def affine_onnx(channels: int, learned: bool) -> tuple[OnnxValue, OnnxValue]:
    """Scale and bias for operators of ONNX that demand both."""
    if learned:
        return OnnxWeight("scale"), OnnxWeight("bias")
    return OnnxConstant((1.0,) * channels), OnnxConstant((0.0,) * channels)
