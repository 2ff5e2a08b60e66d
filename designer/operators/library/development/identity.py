"""Identity."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Identity(
    op.Operator,
    type="identity",
    title="Identity",
    category=op.Category.DEVELOPMENT,
    synonyms=("pass through", "noop", "nothing", "rename"),
):
    """Pass a tensor through unchanged, to name a point of the network or as a placeholder."""

    examples = (op.Example((op.image(),)),)

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchInput(0)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Identity")
