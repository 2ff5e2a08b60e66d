"""Type conversion."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op

_CODES = {"float32": 1, "int64": 7, "int32": 6, "bool": 9, "float16": 10, "float64": 11, "uint8": 2, "int8": 3}


class Cast(
    op.Operator,
    type="cast",
    title="Convert type",
    category=op.Category.ELEMENT_WISE,
    synonyms=("to integer", "to float", "dtype", "astype", "convert"),
):
    """Convert values to another element type. Conversion to integers truncates; nonzero values are true."""

    target: str = op.param(default="float32", choices=tuple(_CODES), doc="Target element type.")
    examples = (
        op.Example((op.image(),), {"target": "int64"}),
        op.Example((op.TensorType((op.BATCH, 3), op.DataType.INT64),), {"target": "float32"}, "to float"),
        op.Example((op.image(),), {"target": "bool"}, "to truth values"),
        op.Example((op.TensorType((op.BATCH, 3), op.DataType.BOOL),), {"target": "int32"}, "of truth values"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0].with_dtype(op.DataType(self.target))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchMethod("to", op.TorchInput(0), (op.TorchName(f"torch.{self.target}"),))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Cast", attributes={"to": _CODES[self.target]})

    def summary(self) -> str:
        return f"to {self.target}"
