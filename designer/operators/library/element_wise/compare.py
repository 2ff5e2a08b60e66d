"""Comparison."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import broadcast
from designer.texts import tr

_FUNCTIONS = {
    "less": ("torch.lt", "Less"),
    "less_or_equal": ("torch.le", "LessOrEqual"),
    "greater": ("torch.gt", "Greater"),
    "greater_or_equal": ("torch.ge", "GreaterOrEqual"),
    "equal": ("torch.eq", "Equal"),
    "not_equal": ("torch.ne", "Equal"),
}
_NUMBERS = (*op.FLOATS, *op.INTEGERS, op.DataType.INT16, op.DataType.INT8, op.DataType.UINT8)


class Compare(
    op.Operator,
    type="compare",
    title="Compare",
    category=op.Category.ELEMENT_WISE,
    synonyms=("less", "greater", "equal", "mask", "threshold", "test"),
):
    """Compare a with b, or with a number if b is not connected; the result is boolean. Use it with Where."""

    inputs = (op.Port("a", dtypes=_NUMBERS), op.Port("b", dtypes=_NUMBERS, optional=True))

    operation: str = op.param(default="greater", choices=tuple(_FUNCTIONS), doc="Comparison operator.")
    value: float = op.param(default=0.0, doc="Number to compare with if b is not connected.")
    examples = (
        op.Example((op.image(), op.image(1))),
        op.Example((op.image(),), {"operation": "less", "value": 0.5}, "with a number"),
        op.Example((op.image(), op.image()), {"operation": "not_equal"}),
        op.Example((op.image(), op.image()), {"operation": "equal"}),
        op.Example((op.image(), op.image()), {"operation": "less_or_equal"}),
        op.Example((op.image(), op.image()), {"operation": "greater_or_equal"}),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        if len(inputs) == 1 and not inputs[0].dtype.is_float:
            raise op.ShapeError(
                tr("integers are compared with another tensor, not with a number"),
                port="a",
                remedy=tr("connect b, for instance to a Constant tensor"),
            )
        result = broadcast(inputs[0], inputs[1]) if len(inputs) == 2 else inputs[0]
        return result.with_dtype(op.DataType.BOOL)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        other = op.TorchInput(1) if len(inputs) == 2 else self.value
        return op.TorchCall(_FUNCTIONS[self.operation][0], (op.TorchInput(0), other))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        other = op.OnnxInput(1) if len(inputs) == 2 else op.scalar(self.value)
        result = op.OnnxNode(_FUNCTIONS[self.operation][1], (op.OnnxInput(0), other))
        return op.OnnxNode("Not", (result,)) if self.operation == "not_equal" else result

    def summary(self) -> str:
        return self.operation.replace("_", " ")
