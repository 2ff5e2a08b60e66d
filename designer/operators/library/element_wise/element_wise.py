"""Arithmetic on two or more tensors, value by value."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from designer.operators.api import (
    FLOATS,
    INTEGERS,
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
    image,
    param,
)
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
_FLOAT_ONLY = ("divide", "power")


class ElementWise(
    Operator,
    type="element_wise",
    title="Element-wise",
    category=Category.ELEMENT_WISE,
    synonyms=("add", "sum", "subtract", "multiply", "divide", "min", "max", "power", "residual", "arithmetic"),
):
    """Combine tensors value by value; more than two are taken from left to right: (a - b) - c.

    Dimensions are aligned at the end and must be equal or 1; those of 1 are repeated.
    """

    inputs = (Port("a", dtypes=FLOATS + INTEGERS), Port("b", dtypes=FLOATS + INTEGERS, variadic=True))

    operation: str = param(default="add", choices=tuple(_FUNCTIONS), doc="What is done with each pair of values.")
    examples = (
        Example((image(3), image(3))),
        Example((image(3), image(3)), {"operation": "subtract"}),
        Example((image(3), image(3), image(1)), {"operation": "multiply"}, "three inputs, the last one broadcast"),
        Example((image(3), image(3)), {"operation": "divide"}),
        Example((image(3), TensorType((3, 1, 1))), {"operation": "minimum"}, "a number a channel"),
        Example((image(3), image(3)), {"operation": "maximum"}),
        Example((image(3), TensorType((1,))), {"operation": "squared_difference"}),
        Example((image(3), image(3)), {"operation": "power"}),
    )

    def base_name(self) -> str:
        return self.operation

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if self.operation in _FLOAT_ONLY and not inputs[0].dtype.is_float:
            raise ShapeError(
                tr(
                    "{operation} needs floating-point numbers, not {value}",
                    operation=self.operation,
                    value=inputs[0].dtype.value,
                ),
                port="a",
                remedy=tr("put a Convert type layer before both inputs"),
            )
        return reduce(broadcast, inputs)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        path = _FUNCTIONS[self.operation][0]

        def combine(left: TorchExpr, right: TorchExpr) -> TorchExpr:
            call = TorchCall(path, (left, right))
            return TorchCall("torch.square", (call,)) if self.operation == "squared_difference" else call

        terms: list[TorchExpr] = [TorchInput(i) for i in range(len(inputs))]
        return reduce(combine, terms)

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        op = _FUNCTIONS[self.operation][1]

        def combine(left: OnnxValue, right: OnnxValue) -> OnnxValue:
            node = OnnxNode(op, (left, right))
            return OnnxNode("Mul", (node, node)) if self.operation == "squared_difference" else node

        terms: list[OnnxValue] = [OnnxInput(i) for i in range(len(inputs))]
        return reduce(combine, terms)

    def summary(self) -> str:
        return self.operation.replace("_", " ")
