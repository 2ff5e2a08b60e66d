"""One of two values."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    BATCH,
    Category,
    DataType,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    Operator,
    Port,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    image,
)
from designer.operators.shapes import broadcast


class Where(
    Operator, type="where", title="Where", category=Category.ELEMENT_WISE, synonyms=("select", "if", "mask", "choose")
):
    """Take a where the condition is true, b elsewhere. Dimensions of 1 are repeated."""

    inputs = (Port("condition", dtypes=(DataType.BOOL,)), Port("a"), Port("b"))
    examples = (
        Example((image(1).with_dtype(DataType.BOOL), image(), image())),
        Example((TensorType((4,), DataType.BOOL), TensorType((BATCH, 4)), TensorType((1,))), name="vector"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        values = broadcast(inputs[1], inputs[2])
        shape = broadcast(inputs[0], values.with_dtype(DataType.BOOL), "condition").shape
        return values.with_shape(*shape)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.where", (TorchInput(0), TorchInput(1), TorchInput(2)))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Where", (OnnxInput(0), OnnxInput(1), OnnxInput(2)))
