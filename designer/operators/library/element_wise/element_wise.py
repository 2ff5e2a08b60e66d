"""Element-wise arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from designer.operators import api as op
from designer.operators.shapes import broadcast
from designer.texts import tr

_FUNCTIONS = {
    "add": ("torch.add", "Add"),
    "subtract": ("torch.sub", "Sub"),
    "multiply": ("torch.mul", "Mul"),
    "divide": ("torch.div", "Div"),
    "minimum": ("torch.minimum", "Min"),
    "maximum": ("torch.maximum", "Max"),
    "power": ("torch.pow", "Pow"),
    "squared_difference": ("torch.sub", "Sub"),
}
_NUMBERS = (*op.FLOATS, *op.INTEGERS, op.DataType.INT16, op.DataType.INT8, op.DataType.UINT8)
_FLOAT_ONLY = ("divide", "power")


class ElementWise(
    op.Operator,
    type="element_wise",
    title="Element-wise",
    category=op.Category.ELEMENT_WISE,
    synonyms=("add", "sum", "subtract", "multiply", "divide", "min", "max", "power", "residual", "arithmetic"),
):
    """Combine tensors element by element; more than two from left to right: (a - b) - c.

    Dimensions are aligned at the end and must be equal or 1 (broadcasting).
    """

    inputs = (op.Port("a", dtypes=_NUMBERS), op.Port("b", dtypes=_NUMBERS, variadic=True))

    operation: str = op.param(default="add", choices=tuple(_FUNCTIONS), doc="Arithmetic operation.")
    examples = (
        op.Example((op.image(3), op.image(3))),
        op.Example((op.image(3), op.image(3)), {"operation": "subtract"}),
        op.Example(
            (op.image(3), op.image(3), op.image(1)), {"operation": "multiply"}, "three inputs, the last one broadcast"
        ),
        op.Example((op.image(3), op.image(3)), {"operation": "divide"}),
        op.Example((op.image(3), op.TensorType((3, 1, 1))), {"operation": "minimum"}, "a number a channel"),
        op.Example((op.image(3), op.image(3)), {"operation": "maximum"}),
        op.Example((op.image(3), op.TensorType((1,))), {"operation": "squared_difference"}),
        op.Example((op.image(3), op.image(3)), {"operation": "power"}),
    )

    def base_name(self) -> str:
        return self.operation

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        if self.operation in _FLOAT_ONLY and not inputs[0].dtype.is_float:
            raise op.ShapeError(
                tr(
                    "{operation} needs floating-point numbers, not {value}",
                    operation=self.operation,
                    value=inputs[0].dtype.value,
                ),
                port="a",
                remedy=tr("insert a Convert type layer before both inputs"),
            )
        if self.operation in ("minimum", "maximum") and inputs[0].dtype is op.DataType.INT16:
            raise op.ShapeError(
                tr("{operation} does not exist for int16", operation=self.operation),
                port="a",
                remedy=tr("insert a Convert type layer before the inputs"),
            )
        return reduce(broadcast, inputs)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        path = _FUNCTIONS[self.operation][0]

        def combine(left: op.TorchExpr, right: op.TorchExpr) -> op.TorchExpr:
            call = op.TorchCall(path, (left, right))
            return op.TorchCall("torch.square", (call,)) if self.operation == "squared_difference" else call

        terms: list[op.TorchExpr] = [op.TorchInput(i) for i in range(len(inputs))]
        return reduce(combine, terms)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        kind = _FUNCTIONS[self.operation][1]

        def combine(left: op.OnnxValue, right: op.OnnxValue) -> op.OnnxValue:
            node = op.OnnxNode(kind, (left, right))
            return op.OnnxNode("Mul", (node, node)) if self.operation == "squared_difference" else node

        terms: list[op.OnnxValue] = [op.OnnxInput(i) for i in range(len(inputs))]
        return reduce(combine, terms)

    def summary(self) -> str:
        return self.operation.replace("_", " ")
