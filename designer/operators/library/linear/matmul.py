"""The product of two matrices."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    BATCH,
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
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchMethod,
    param,
)
from designer.operators.shapes import broadcast, known
from designer.texts import tr


class MatMul(
    Operator,
    type="matmul",
    title="Matrix product",
    category=Category.LINEAR,
    synonyms=("matrix multiplication", "dot", "bmm", "gemm"),
):
    """Multiply the matrices that the last two axes hold; the axes before them are matched or repeated."""

    inputs = (Port("a", rank=(2, 3, 4, 5), dtypes=FLOATS), Port("b", rank=(2, 3, 4, 5), dtypes=FLOATS))

    transpose_a: bool = param(default=False, doc="Swap the last two axes of a first.")
    transpose_b: bool = param(default=False, doc="Swap the last two axes of b first.")
    examples = (
        Example((TensorType((BATCH, 3, 4)), TensorType((BATCH, 4, 5)))),
        Example((TensorType((BATCH, 3, 4)), TensorType((5, 4))), {"transpose_b": True}, "one matrix for all"),
        Example((TensorType((BATCH, 2, 4, 3)), TensorType((2, 4, 5))), {"transpose_a": True}, "heads"),
    )

    def _sides(self, inputs: Sequence[TensorType]) -> tuple[TensorType, TensorType]:
        flags = (self.transpose_a, self.transpose_b)
        turned = [
            t.with_shape(*t.shape[:-2], t.shape[-1], t.shape[-2]) if flag else t
            for t, flag in zip(inputs, flags, strict=True)
        ]
        return turned[0], turned[1]

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        a, b = self._sides(inputs)
        if a.shape[-1] != b.shape[-2]:
            raise ShapeError(
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

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        a: TorchExpr = TorchInput(0)
        b: TorchExpr = TorchInput(1)
        if self.transpose_a:
            a = TorchMethod("transpose", a, (-2, -1))
        if self.transpose_b:
            b = TorchMethod("transpose", b, (-2, -1))
        return TorchCall("torch.matmul", (a, b))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        sides: list[OnnxValue] = []
        for index, flag in enumerate((self.transpose_a, self.transpose_b)):
            side: OnnxValue = OnnxInput(index)
            if flag:
                rank = inputs[index].rank
                side = OnnxNode("Transpose", (side,), {"perm": (*range(rank - 2), rank - 1, rank - 2)})
            sides.append(side)
        return OnnxNode("MatMul", tuple(sides))

    def flops(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> int:
        return 2 * outputs[0].elements() * self._sides(inputs)[0].concrete()[-1]
