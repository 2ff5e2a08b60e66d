"""Another element type."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    BATCH,
    Category,
    DataType,
    Example,
    OnnxNode,
    OnnxValue,
    Operator,
    TensorType,
    TorchExpr,
    TorchInput,
    TorchMethod,
    TorchName,
    image,
    param,
)

_TYPES = ("float32", "int64", "int32", "bool")


class Cast(
    Operator,
    type="cast",
    title="Convert type",
    category=Category.ELEMENT_WISE,
    synonyms=("to integer", "to float", "dtype", "astype", "convert"),
):
    """Convert values to another element type. To whole numbers, what follows the point is dropped; not 0 is true."""

    target: str = param(default="float32", choices=_TYPES, doc="The type that the values get.")
    examples = (
        Example((image(),), {"target": "int64"}),
        Example((TensorType((BATCH, 3), DataType.INT64),), {"target": "float32"}, "to float"),
        Example((image(),), {"target": "bool"}, "to truth values"),
        Example((TensorType((BATCH, 3), DataType.BOOL),), {"target": "int32"}, "of truth values"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0].with_dtype(DataType(self.target))

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchMethod("to", TorchInput(0), (TorchName(f"torch.{self.target}"),))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Cast", attributes={"to": {"float32": 1, "int64": 7, "int32": 6, "bool": 9}[self.target]})

    def summary(self) -> str:
        return f"to {self.target}"
