"""Which values are larger."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
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
    param,
    scalar,
)
from designer.operators.shapes import broadcast

_FUNCTIONS = {
    "less": ("torch.lt", "Less"),
    "less_or_equal": ("torch.le", "LessOrEqual"),
    "greater": ("torch.gt", "Greater"),
    "greater_or_equal": ("torch.ge", "GreaterOrEqual"),
    "equal": ("torch.eq", "Equal"),
    "not_equal": ("torch.ne", "Equal"),
}


class Compare(
    Operator,
    type="compare",
    title="Compare",
    category=Category.ELEMENT_WISE,
    synonyms=("less", "greater", "equal", "mask", "threshold", "test"),
):
    """True where the comparison of a with b holds; without b, a is compared with a number. Feeds "where"."""

    inputs = (Port("a", dtypes=FLOATS), Port("b", dtypes=FLOATS, optional=True))

    operation: str = param(default="greater", choices=tuple(_FUNCTIONS), doc="What must hold.")
    value: float = param(default=0.0, doc="The number that a is compared with where b is not connected.")
    examples = (
        Example((image(), image(1))),
        Example((image(),), {"operation": "less", "value": 0.5}, "with a number"),
        Example((image(), image()), {"operation": "not_equal"}),
        Example((image(), image()), {"operation": "equal"}),
        Example((image(), image()), {"operation": "less_or_equal"}),
        Example((image(), image()), {"operation": "greater_or_equal"}),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        result = broadcast(inputs[0], inputs[1]) if len(inputs) == 2 else inputs[0]
        return result.with_dtype(DataType.BOOL)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        other = TorchInput(1) if len(inputs) == 2 else self.value
        return TorchCall(_FUNCTIONS[self.operation][0], (TorchInput(0), other))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        other = OnnxInput(1) if len(inputs) == 2 else scalar(self.value)
        result = OnnxNode(_FUNCTIONS[self.operation][1], (OnnxInput(0), other))
        return OnnxNode("Not", (result,)) if self.operation == "not_equal" else result

    def summary(self) -> str:
        return self.operation.replace("_", " ")
