"""A layer that changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    Category,
    Example,
    OnnxNode,
    OnnxValue,
    Operator,
    TensorType,
    TorchExpr,
    TorchInput,
    image,
)


class Identity(
    Operator,
    type="identity",
    title="Identity",
    category=Category.DEVELOPMENT,
    synonyms=("pass through", "noop", "nothing", "rename"),
):
    """Pass a tensor on unchanged: to name a point of the network, or to hold a place."""

    examples = (Example((image(),)),)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchInput(0)

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Identity")
