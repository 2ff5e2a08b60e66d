"""Tensors one after another."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
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
from designer.operators.shapes import axis_of, known
from designer.texts import tr


class Concatenation(
    Operator,
    type="concatenation",
    title="Concatenation",
    category=Category.SHAPE,
    synonyms=("concat", "cat", "join", "skip connection"),
):
    """Put tensors behind each other along one axis; axis 1 is the channels. All other dimensions must be equal."""

    inputs = (Port("x", variadic=True),)

    axis: int = param(default=1, min=-8, max=7, doc="The axis that grows; negative counts from the end.")
    examples = (
        Example((image(3), image(5), image(2))),
        Example((image(3, 4, 5), image(3, 4, 2)), {"axis": -1}, "side by side"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        first = inputs[0]
        axis = axis_of(self.axis, first)
        total = 0
        for number, tensor in enumerate(inputs, start=1):
            rest = tensor.shape[:axis] + tensor.shape[axis + 1 :]
            if tensor.rank != first.rank or rest != first.shape[:axis] + first.shape[axis + 1 :]:
                raise ShapeError(
                    tr(
                        "input {number} of {tensor} does not fit {first}: only axis {axis} may differ",
                        number=number,
                        tensor=tensor,
                        first=first,
                        axis=axis,
                    ),
                    port="x",
                    remedy=tr("make height and width equal, for instance by cropping or resizing"),
                )
            if tensor.dtype != first.dtype:
                raise ShapeError(
                    tr(
                        "input {number} is {value}, the first {value2}",
                        number=number,
                        value=tensor.dtype.value,
                        value2=first.dtype.value,
                    ),
                    port="x",
                    remedy=tr("put a Convert type layer before one of them"),
                )
            total += known(tensor, axis)
        return first.with_dim(axis, total)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.cat", (tuple(TorchInput(i) for i in range(len(inputs))),), {"dim": self.axis})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Concat", tuple(OnnxInput(i) for i in range(len(inputs))), {"axis": self.axis})

    def summary(self) -> str:
        return "" if self.axis == 1 else f"axis {self.axis}"
