"""One channel becomes three."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    Operator,
    Port,
    ShapeError,
    TensorType,
    TorchExpr,
    TorchInput,
    TorchMethod,
    image,
    int64,
)
from designer.texts import tr


class MonoToRgb(
    Operator,
    type="mono_to_rgb",
    title="Mono to RGB",
    category=Category.DATA,
    synonyms=("gray to rgb", "grayscale", "repeat channel"),
):
    """Repeat the only channel three times, so that a gray image can go where colour is expected."""

    inputs = (Port("x", rank=4, dtypes=FLOATS),)
    examples = (Example((image(1, 4, 5),)),)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0].image()
        if x.c != 1:
            raise ShapeError(
                tr("one channel is needed, not {c}", c=x.c), port="x", remedy=tr("pick one with a selector")
            )
        return inputs[0].with_dim(1, 3)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchMethod("expand", TorchInput(0), (-1, 3, -1, -1))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Expand", (OnnxInput(0), int64(1, 3, 1, 1)))
