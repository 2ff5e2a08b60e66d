"""Constant tensors."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class InputCst(
    op.Operator,
    type="input_cst",
    title="Constant",
    category=op.Category.INPUT_OUTPUT,
    synonyms=("constant", "fill", "fixed tensor", "buffer"),
):
    """A constant tensor of shape 1 x C x H x W: a single value, or values from the weights.

    The batch size is 1, so element-wise operators broadcast it over the batch.
    """

    inputs = ()

    dims: op.Size3D = op.param(default=op.Size3D(1, 1, 1), min=1, max=65536, doc="Size as width x height x channels.")
    source: str = op.param(
        default="fill", choices=("fill", "weights"), doc="A single value, or the tensor 'value' of the weights."
    )
    value: float = op.param(default=0.0, visible_when=("source", "fill"), doc="Value of all elements.")
    examples = (
        op.Example((), {"dims": op.Size3D(4, 3, 2), "value": 0.5}),
        op.Example((), {"dims": op.Size3D(4, 3, 2), "source": "weights"}, "from the weights"),
    )

    def _shape(self) -> tuple[int, int, int, int]:
        return (1, self.dims.channels, self.dims.height, self.dims.width)

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return op.TensorType(self._shape())

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        if self.source == "weights":
            return op.TorchParameter("value", self._shape(), trainable=False)
        one = op.TorchParameter("value", (1, 1, 1, 1), values=self.value, trainable=False, persistent=False)
        return op.TorchMethod("expand", one, (self._shape(),))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        if self.source == "weights":
            return op.OnnxNode("Identity", (op.OnnxWeight("value"),))
        return op.OnnxNode("Expand", (op.scalar(self.value), op.int64(*self._shape())))

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        if self.source == "fill":
            return ()
        return (op.Weight("value", self._shape(), "value", init="zeros", trainable=False),)

    def summary(self) -> str:
        return f"{self.dims} · {self.value:g}" if self.source == "fill" else str(self.dims)
