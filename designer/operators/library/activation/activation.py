"""An activation as a layer of its own."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxNode,
    OnnxValue,
    Operator,
    Port,
    TensorType,
    TorchExpr,
    TorchInput,
    image,
)


class ActivationLayer(
    Operator,
    type="activation",
    title="Activation",
    category=Category.ACTIVATION,
    synonyms=("relu", "non-linearity", "nonlinearity", "sigmoid", "gelu", "tanh", "silu", "softmax"),
):
    """Apply an activation function to a tensor. The attached activation does the work; choose it in the editor."""

    default_activation = "relu"
    inputs = (Port("x", dtypes=FLOATS),)
    examples = (Example((image(),)),)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchInput(0)

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Identity")
