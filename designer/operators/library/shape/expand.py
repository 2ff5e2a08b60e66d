"""Expansion."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr
from designer.units import dims_text


class Expand(op.Operator, type="expand", title="Expand", category=op.Category.SHAPE, synonyms=("broadcast", "repeat")):
    """Broadcast dimensions of 1 to a size; -1 keeps a dimension. With a second input, the first dimension becomes its batch."""

    inputs = (op.Port("x"), op.Port("like", optional=True, doc="The first dimension of the result is that of this."))

    shape: tuple[int, ...] = op.param(
        default=(-1, -1, -1, -1), min=-1, max=1_000_000_000, doc="Target shape, outermost dimension first."
    )
    examples = (
        op.Example((op.image(1, 1, 5),), {"shape": (-1, 3, 4, 5)}),
        op.Example((op.TensorType((1, 4)),), {"shape": (2, 3, -1)}, "new axis in front"),
        op.Example((op.TensorType((1, 1, 4)), op.image(3)), {"shape": (-1, 2, -1)}, "to the batch"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0]
        new = len(self.shape) - x.rank
        wanted = dims_text(self.shape)
        if new < 0 or 0 in self.shape or -1 in self.shape[:new]:
            raise op.ShapeError(
                tr("{x} cannot be expanded to {wanted}", x=x, wanted=wanted or "nothing"),
                port="x",
                remedy=tr("enter a size for every dimension"),
            )
        dims: list[op.Dim] = list(self.shape[:new])
        for size, target in zip(x.shape, self.shape[new:], strict=True):
            if target not in (-1, size) and size != 1:
                raise op.ShapeError(
                    tr(
                        "a dimension of {size} cannot be expanded to {target}: only a size of 1 can",
                        size=size,
                        target=target,
                    ),
                    port="x",
                    remedy=tr("set it to -1 to keep the dimension, or use Tile"),
                )
            dims.append(size if target == -1 else target)
        if len(inputs) > 1:
            dims[:1] = self._batch(inputs[1], dims)
        return x.with_shape(*dims)

    def _batch(self, like: op.TensorType, dims: Sequence[op.Dim]) -> Sequence[op.Dim]:
        if not dims or dims[0] != 1 or not like.shape:
            raise op.ShapeError(
                tr("only a first dimension of 1 can be expanded to the batch of {like}", like=like),
                port="x",
                remedy=tr("set the first dimension to 1, or disconnect the second input"),
            )
        return like.shape[:1]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        if len(inputs) > 1:
            batch = op.TorchMethod("size", op.TorchInput(1), (0,))
            return op.TorchMethod("expand", op.TorchInput(0), (batch, *self.shape[1:]))
        return op.TorchMethod("expand", op.TorchInput(0), (self.shape,))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        # ONNX's Expand keeps a dimension for the size 1
        sizes = [1 if size == -1 else size for size in self.shape]
        if len(inputs) > 1:
            batch = op.OnnxNode("Shape", (op.OnnxInput(1),), {"start": 0, "end": 1})
            wanted = op.OnnxNode("Concat", (batch, op.int64(*sizes[1:])), {"axis": 0}) if sizes[1:] else batch
            return op.OnnxNode("Expand", (op.OnnxInput(0), wanted))
        return op.OnnxNode("Expand", (op.OnnxInput(0), op.int64(*sizes)))

    def summary(self) -> str:
        return dims_text(self.shape)
