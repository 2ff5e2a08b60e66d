"""Keep values in a range softly, with a learned range for each channel."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    OnnxWeight,
    Operator,
    Port,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchParameter,
    Weight,
    image,
    param,
    scalar,
)


class SoftClip(
    Operator,
    type="soft_clip",
    title="Soft clip",
    category=Category.ELEMENT_WISE,
    synonyms=("limit", "squash", "saturate"),
):
    """Bend large values towards a limit that is learned for each channel: limit * tanh(gain * x / limit)."""

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    gain: float = param(default=1.0, min=0.01, max=100.0, doc="Slope at zero.")
    examples = (Example((image(3, 8, 8),)), Example((image(4, 6, 10),), {"gain": 2.0}, "steeper"))

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        inputs[0].image()
        return inputs[0]

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        channels = inputs[0].image().c
        return (Weight("limit", (channels, 1, 1), torch="limit", init="ones"),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        limit = TorchParameter("limit", (inputs[0].image().c, 1, 1), 1.0)
        scaled = TorchCall("torch.div", (TorchCall("torch.mul", (TorchInput(0), self.gain)), limit))
        return TorchCall("torch.mul", (TorchCall("torch.tanh", (scaled,)), limit))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        limit = OnnxWeight("limit")
        scaled = OnnxNode("Div", (OnnxNode("Mul", (OnnxInput(0), scalar(self.gain))), limit))
        return OnnxNode("Mul", (OnnxNode("Tanh", (scaled,)), limit))

    def summary(self) -> str:
        return f"gain {self.gain:g}"
