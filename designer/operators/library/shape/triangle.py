"""Triangular matrices."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Triangle(
    op.Operator,
    type="triangle",
    title="Triangle",
    category=op.Category.SHAPE,
    synonyms=("triu", "tril", "trilu", "causal mask", "upper", "lower"),
):
    """Keep the upper or lower triangle of the matrices in the last two axes; the other values become 0."""

    inputs = (op.Port("x", rank=(2, 3, 4, 5, 6), dtypes=(*op.FLOATS, op.DataType.INT64)),)

    part: str = op.param(default="lower", choices=("lower", "upper"), doc="Triangle that is kept.")
    diagonal: int = op.param(
        default=0, min=-1_000_000, max=1_000_000, doc="Last diagonal that is kept; 0 is the main one, 1 the one above."
    )
    examples = (
        op.Example((op.TensorType((op.BATCH, 4, 5)),)),
        op.Example((op.TensorType((op.BATCH, 4, 5)),), {"part": "upper", "diagonal": 1}, "above the main diagonal"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        path = "torch.triu" if self.part == "upper" else "torch.tril"
        return op.TorchCall(path, (op.TorchInput(0), self.diagonal))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        diagonal = op.OnnxConstant(self.diagonal, "int64")
        return op.OnnxNode("Trilu", (op.OnnxInput(0), diagonal), {"upper": int(self.part == "upper")})

    def summary(self) -> str:
        return self.part if not self.diagonal else f"{self.part} {self.diagonal:+d}"
