"""What losses share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from designer.operators.api import (
    FLOATS,
    Category,
    Operator,
    Port,
    Role,
    TensorType,
    TorchCall,
    TorchExpr,
    param,
)
from designer.operators.shapes import same_shape

LOSS_EXCEPTIONS: Mapping[str, str] = {"onnx": "a loss is not part of inference, so it has no ONNX form"}


class Loss(Operator):
    """A number that training makes smaller. It ends a training branch and is left out of inference and deployment."""

    category: ClassVar[Category] = Category.TRAINING
    role: ClassVar[Role] = Role.LOSS
    inputs: ClassVar[tuple[Port, ...]] = (
        Port("x", dtypes=FLOATS, doc="What the network gives."),
        Port("target", dtypes=FLOATS, doc="What it should give."),
    )
    outputs = (Port("loss"),)
    exceptions: ClassVar[Mapping[str, str]] = LOSS_EXCEPTIONS

    weight: float = param(default=1.0, min=0.0, max=1e6, doc="Factor of this loss in the sum of all losses.")
    reduction: str = param(default="mean", choices=("mean", "sum"), doc="How the values become one number.")

    def check(self, inputs: Sequence[TensorType]) -> None:
        """Raise ShapeError unless the inputs fit."""
        same_shape(inputs[0], inputs[1], "target")

    def value(self, inputs: Sequence[TensorType]) -> TorchExpr:
        """The loss without its weight."""
        raise NotImplementedError

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        self.check(inputs)
        return TensorType(())

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        value = self.value(inputs)
        return value if self.weight == 1 else TorchCall("torch.mul", (value, self.weight))

    def reduced(self, values: TorchExpr) -> TorchExpr:
        return TorchCall(f"torch.{self.reduction}", (values,))

    def summary(self) -> str:
        return "" if self.weight == 1 else f"x {self.weight:g}"
