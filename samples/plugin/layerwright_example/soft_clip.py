"""Soft clipping with a learned range for each channel."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class SoftClip(
    op.Operator,
    type="soft_clip",
    title="Soft clip",
    category=op.Category.ELEMENT_WISE,
    synonyms=("limit", "squash", "saturate"),
):
    """Compress large values to a limit that is learned for each channel: limit * tanh(gain * x / limit)."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    gain: float = op.param(default=1.0, min=0.01, max=100.0, doc="Slope at 0.")
    examples = (op.Example((op.image(3, 8, 8),)), op.Example((op.image(4, 6, 10),), {"gain": 2.0}, "steeper"))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        inputs[0].image()
        return inputs[0]

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        channels = inputs[0].image().c
        return (op.Weight("limit", (channels, 1, 1), torch="limit", init="ones"),)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        limit = op.TorchParameter("limit", (inputs[0].image().c, 1, 1), 1.0)
        scaled = op.TorchCall("torch.div", (op.TorchCall("torch.mul", (op.TorchInput(0), self.gain)), limit))
        return op.TorchCall("torch.mul", (op.TorchCall("torch.tanh", (scaled,)), limit))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        limit = op.OnnxWeight("limit")
        scaled = op.OnnxNode("Div", (op.OnnxNode("Mul", (op.OnnxInput(0), op.scalar(self.gain))), limit))
        return op.OnnxNode("Mul", (op.OnnxNode("Tanh", (scaled,)), limit))

    def summary(self) -> str:
        return f"gain {self.gain:g}"
