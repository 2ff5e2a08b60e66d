"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import broadcast, known
from designer.texts import tr


class MatMul(
    op.Operator,
    type="matmul",
    title="Matrix product",
    category=op.Category.LINEAR,
    synonyms=("matrix multiplication", "dot", "bmm", "gemm"),
):
    """Multiply matrices in the last two axes; the other axes are broadcast."""

    inputs = (op.Port("a", rank=(2, 3, 4, 5), dtypes=op.FLOATS), op.Port("b", rank=(2, 3, 4, 5), dtypes=op.FLOATS))

    transpose_a: bool = op.param(default=False, doc="Transpose the last two axes of a.")
    transpose_b: bool = op.param(default=False, doc="Transpose the last two axes of b.")
    examples = (
        op.Example((op.TensorType((op.BATCH, 3, 4)), op.TensorType((op.BATCH, 4, 5)))),
        op.Example(
            (op.TensorType((op.BATCH, 3, 4)), op.TensorType((5, 4))), {"transpose_b": True}, "one matrix for all"
        ),
        op.Example((op.TensorType((op.BATCH, 2, 4, 3)), op.TensorType((2, 4, 5))), {"transpose_a": True}, "heads"),
    )

    def _sides(self, inputs: Sequence[op.TensorType]) -> tuple[op.TensorType, op.TensorType]:
        flags = (self.transpose_a, self.transpose_b)
        turned = [
            t.with_shape(*t.shape[:-2], t.shape[-1], t.shape[-2]) if flag else t
            for t, flag in zip(inputs, flags, strict=True)
        ]
        return turned[0], turned[1]

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        a, b = self._sides(inputs)
        if a.shape[-1] != b.shape[-2]:
            raise op.ShapeError(
                tr(
                    "the {shape} columns of a do not match the {shape2} rows of b",
                    shape=a.shape[-1],
                    shape2=b.shape[-2],
                ),
                port="b",
                remedy=tr("transpose one of them, or make the sizes equal"),
            )
        known(a, -1, "a")
        front = broadcast(a.with_shape(*a.shape[:-2]), b.with_shape(*b.shape[:-2]))
        return a.with_shape(*front.shape, a.shape[-2], b.shape[-1])

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        a: op.TorchExpr = op.TorchInput(0)
        b: op.TorchExpr = op.TorchInput(1)
        if self.transpose_a:
            a = op.TorchMethod("transpose", a, (-2, -1))
        if self.transpose_b:
            b = op.TorchMethod("transpose", b, (-2, -1))
        return op.TorchCall("torch.matmul", (a, b))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        sides: list[op.OnnxValue] = []
        for index, flag in enumerate((self.transpose_a, self.transpose_b)):
            side: op.OnnxValue = op.OnnxInput(index)
            if flag:
                rank = inputs[index].rank
                side = op.OnnxNode("Transpose", (side,), {"perm": (*range(rank - 2), rank - 1, rank - 2)})
            sides.append(side)
        return op.OnnxNode("MatMul", tuple(sides))

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        return 2 * outputs[0].elements() * self._sides(inputs)[0].concrete()[-1]
