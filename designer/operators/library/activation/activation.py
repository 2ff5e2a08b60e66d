"""Activation layers."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class ActivationLayer(
    op.Operator,
    type="activation",
    title="Activation",
    category=op.Category.ACTIVATION,
    synonyms=("relu", "non-linearity", "nonlinearity", "sigmoid", "gelu", "tanh", "silu", "softmax"),
):
    """Apply an activation function to a tensor. Select the attached activation in the Layer Editor."""

    default_activation = "relu"
    inputs = (op.Port("x", dtypes=op.FLOATS),)
    examples = (op.Example((op.image(),)),)

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchInput(0)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Identity")
