"""A tensor that does not change."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    Category,
    Example,
    OnnxNode,
    OnnxValue,
    OnnxWeight,
    Operator,
    Size3D,
    TensorType,
    TorchExpr,
    TorchMethod,
    TorchParameter,
    Weight,
    int64,
    param,
    scalar,
)


class InputCst(
    Operator,
    type="input_cst",
    title="Constant",
    category=Category.INPUT_OUTPUT,
    synonyms=("constant", "fill", "fixed tensor", "buffer"),
):
    """A constant tensor of shape 1 x C x H x W: one number everywhere, or values that the weights bring.

    Its batch is 1, so element-wise operators repeat it for every picture of a batch.
    """

    inputs = ()

    dims: Size3D = param(default=Size3D(1, 1, 1), min=1, max=65536, doc="Size as width x height x channels.")
    source: str = param(
        default="fill", choices=("fill", "weights"), doc="One number everywhere, or the tensor 'value' of the weights."
    )
    value: float = param(default=0.0, visible_when=("source", "fill"), doc="The number that fills the tensor.")
    examples = (
        Example((), {"dims": Size3D(4, 3, 2), "value": 0.5}),
        Example((), {"dims": Size3D(4, 3, 2), "source": "weights"}, "from the weights"),
    )

    def _shape(self) -> tuple[int, int, int, int]:
        return (1, self.dims.channels, self.dims.height, self.dims.width)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(self._shape())

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        if self.source == "weights":
            return TorchParameter("value", self._shape(), trainable=False)
        one = TorchParameter("value", (1, 1, 1, 1), values=self.value, trainable=False, persistent=False)
        return TorchMethod("expand", one, (self._shape(),))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        if self.source == "weights":
            return OnnxNode("Identity", (OnnxWeight("value"),))
        return OnnxNode("Expand", (scalar(self.value), int64(*self._shape())))

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        if self.source == "fill":
            return ()
        return (Weight("value", self._shape(), "value", init="zeros", trainable=False),)

    def summary(self) -> str:
        return f"{self.dims} · {self.value:g}" if self.source == "fill" else str(self.dims)
