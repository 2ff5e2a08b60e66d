"""Reshape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from designer.operators import api as op
from designer.operators.shapes import known
from designer.texts import tr
from designer.units import dims_text


class Reshape(
    op.Operator, type="reshape", title="Reshape", category=op.Category.SHAPE, synonyms=("view", "unflatten", "resize")
):
    """Change the shape; the order of the values is kept. One dimension can be -1 and is inferred."""

    inputs = (op.Port("x", rank=(2, 3, 4, 5, 6)),)

    shape: tuple[int, ...] = op.param(
        default=(-1,),
        min=-1,
        max=1_000_000_000,
        doc="Shape without the batch, outermost dimension first; -1 at most once.",
    )
    keep_batch: bool = op.param(
        default=True,
        extension=True,
        doc="Keep the first axis, the batch; otherwise the shape is that of the whole tensor, whose size must be fixed.",
    )
    examples = (
        op.Example((op.image(3, 4, 5),), {"shape": (5, 12)}),
        op.Example((op.image(3, 4, 5),), {"shape": (2, -1, 3, 2)}, "one free dimension"),
        op.Example((op.TensorType((op.BATCH, 12)),), {"shape": (3, 2, 2)}, "vector to image"),
        op.Example((op.TensorType((12,)),), {"shape": (1, 3, -1), "keep_batch": False}, "all axes"),
    )

    def input_ports(self) -> tuple[op.Port, ...]:
        return self.inputs if self.keep_batch else (op.Port("x"),)

    def _shape(self, x: op.TensorType) -> tuple[int, ...]:
        total = prod(known(x, axis) for axis in range(1 if self.keep_batch else 0, x.rank))
        wanted = dims_text(self.shape)
        if (not self.shape and self.keep_batch) or 0 in self.shape or self.shape.count(-1) > 1:
            raise op.ShapeError(
                tr("{wanted} is not a shape", wanted=wanted or "nothing"),
                remedy=tr("use sizes of at least 1, and -1 at most once"),
            )
        fixed = prod(size for size in self.shape if size > 0)
        if total % fixed or (-1 not in self.shape and total != fixed):
            raise op.ShapeError(
                tr("the {total} values of a sample do not fit into {wanted}", total=total, wanted=wanted),
                port="x",
                remedy=tr("omit the batch, and use -1 for a dimension to infer"),
            )
        return tuple(total // fixed if size < 0 else size for size in self.shape)

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        shape = self._shape(inputs[0])
        return inputs[0].with_shape(inputs[0].shape[0], *shape) if self.keep_batch else inputs[0].with_shape(*shape)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        if not self.keep_batch:
            return op.TorchMethod("reshape", op.TorchInput(0), (self.shape,))
        flat: op.TorchExpr = op.TorchInput(0)
        if inputs[0].rank > 2:
            flat = op.TorchMethod("flatten", flat, (1,))
        return flat if len(self.shape) == 1 else op.TorchMethod("unflatten", flat, (1, self.shape))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Reshape", (op.OnnxInput(0), op.int64(*((0,) if self.keep_batch else ()), *self.shape)))

    def summary(self) -> str:
        return dims_text(self.shape)
