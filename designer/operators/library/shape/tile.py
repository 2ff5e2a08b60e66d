"""A tensor repeated."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    BATCH,
    Category,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    Operator,
    ShapeError,
    TensorType,
    TorchExpr,
    TorchInput,
    TorchMethod,
    image,
    int64,
    param,
)
from designer.operators.shapes import known
from designer.texts import tr


class Tile(Operator, type="tile", title="Tile", category=Category.SHAPE, synonyms=("repeat", "copy")):
    """Repeat a tensor along its axes."""

    repeats: tuple[int, ...] = param(default=(1, 1, 2, 2), min=1, max=65536, doc="How often, for every axis.")
    examples = (Example((image(2, 3, 4),)), Example((TensorType((BATCH, 4)),), {"repeats": (1, 3)}, "vector"))

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0]
        if len(self.repeats) != x.rank:
            raise ShapeError(
                tr("{count} repeats do not fit the {rank} axes of {x}", count=len(self.repeats), rank=x.rank, x=x),
                port="x",
                remedy=tr("give one number for each axis, the batch included"),
            )
        sizes = [
            size if count == 1 else known(x, axis) * count
            for axis, (size, count) in enumerate(zip(x.shape, self.repeats, strict=True))
        ]
        return x.with_shape(*sizes)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchMethod("repeat", TorchInput(0), (self.repeats,))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Tile", (OnnxInput(0), int64(*self.repeats)))

    def summary(self) -> str:
        return "x".join(str(count) for count in self.repeats)
