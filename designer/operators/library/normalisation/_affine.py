"""The learned scale and bias of a normalisation, and its running statistics."""

from __future__ import annotations

from designer.operators.api import OnnxConstant, OnnxValue, OnnxWeight, Weight


def affine_weights(shape: tuple[int, ...]) -> tuple[Weight, Weight]:
    """Scale and bias, which change nothing before training."""
    return Weight("scale", shape, "weight", init="ones"), Weight("bias", shape, "bias", init="zeros")


def running_weights(shape: tuple[int, ...]) -> tuple[Weight, Weight]:
    """Mean and variance that training remembers and inference uses."""
    return (
        Weight("mean", shape, "running_mean", init="zeros", trainable=False),
        Weight("variance", shape, "running_var", init="ones", trainable=False),
    )


def affine_onnx(channels: int, learned: bool) -> tuple[OnnxValue, OnnxValue]:
    """Scale and bias for operators of ONNX that demand both."""
    if learned:
        return OnnxWeight("scale"), OnnxWeight("bias")
    return OnnxConstant((1.0,) * channels), OnnxConstant((0.0,) * channels)
