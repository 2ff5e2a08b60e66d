"""Dimensions of 1 are repeated."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr
from designer.units import dims_text


class Expand(op.Operator, type="expand", title="Expand", category=op.Category.SHAPE, synonyms=("broadcast", "repeat")):
    """Repeat dimensions of 1 up to a size; -1 leaves a dimension as it is."""

    shape: tuple[int, ...] = op.param(
        default=(-1, -1, -1, -1), min=-1, max=1_000_000_000, doc="The wanted dimensions, the first one first."
    )
    examples = (
        op.Example((op.image(1, 1, 5),), {"shape": (-1, 3, 4, 5)}),
        op.Example((op.TensorType((1, 4)),), {"shape": (2, 3, -1)}, "new axis in front"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0]
        new = len(self.shape) - x.rank
        wanted = dims_text(self.shape)
        if new < 0 or 0 in self.shape or -1 in self.shape[:new]:
            raise op.ShapeError(
                tr("{x} cannot be expanded to {wanted}", x=x, wanted=wanted or "nothing"),
                port="x",
                remedy=tr("name every dimension"),
            )
        dims: list[op.Dim] = list(self.shape[:new])
        for size, target in zip(x.shape, self.shape[new:], strict=True):
            if target not in (-1, size) and size != 1:
                raise op.ShapeError(
                    tr("a dimension of {size} cannot be expanded to {target}: only 1 can", size=size, target=target),
                    port="x",
                    remedy=tr("set it to -1 to keep the dimension, or use Tile"),
                )
            dims.append(size if target == -1 else target)
        return x.with_shape(*dims)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchMethod("expand", op.TorchInput(0), (self.shape,))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        # 1 leaves a dimension of ONNX's Expand as it is
        return op.OnnxNode("Expand", (op.OnnxInput(0), op.int64(*(1 if size == -1 else size for size in self.shape))))

    def summary(self) -> str:
        return dims_text(self.shape)
