"""Tile."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import known
from designer.texts import tr


class Tile(op.Operator, type="tile", title="Tile", category=op.Category.SHAPE, synonyms=("repeat", "copy")):
    """Repeat a tensor along its axes."""

    repeats: tuple[int, ...] = op.param(
        default=(1, 1, 2, 2), min=1, max=65536, doc="Number of repetitions for each axis."
    )
    examples = (
        op.Example((op.image(2, 3, 4),)),
        op.Example((op.TensorType((op.BATCH, 4)),), {"repeats": (1, 3)}, "vector"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0]
        if len(self.repeats) != x.rank:
            raise op.ShapeError(
                tr("{count} repeats do not fit the {rank} axes of {x}", count=len(self.repeats), rank=x.rank, x=x),
                port="x",
                remedy=tr("enter one number for each axis, including the batch"),
            )
        sizes = [
            size if count == 1 else known(x, axis) * count
            for axis, (size, count) in enumerate(zip(x.shape, self.repeats, strict=True))
        ]
        return x.with_shape(*sizes)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchMethod("repeat", op.TorchInput(0), (self.repeats,))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Tile", (op.OnnxInput(0), op.int64(*self.repeats)))

    def summary(self) -> str:
        return "x".join(str(count) for count in self.repeats)
