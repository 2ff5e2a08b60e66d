"""Shared parts of losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from designer.operators import api as op
from designer.operators.shapes import same_shape

LOSS_EXCEPTIONS: Mapping[str, str] = {"onnx": "a loss is not part of inference, so it is not exported to ONNX"}


class Loss(op.Operator):
    """A loss that training minimizes. It ends a training branch and is omitted in inference and deployment."""

    category: ClassVar[op.Category] = op.Category.TRAINING
    role: ClassVar[op.Role] = op.Role.LOSS
    inputs: ClassVar[tuple[op.Port, ...]] = (
        op.Port("x", dtypes=op.FLOATS, doc="Output of the network."),
        op.Port("target", dtypes=op.FLOATS, doc="Target of the output."),
    )
    outputs = (op.Port("loss"),)
    exceptions: ClassVar[Mapping[str, str]] = LOSS_EXCEPTIONS

    weight: float = op.param(default=1.0, min=0.0, max=1e6, doc="Weight of this loss in the sum of all losses.")
    reduction: str = op.param(default="mean", choices=("mean", "sum"), doc="Reduction to a single number.")

    def check(self, inputs: Sequence[op.TensorType]) -> None:
        """Raise ShapeError if the inputs do not match."""
        same_shape(inputs[0], inputs[1], "target")

    def value(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        """The loss without its weight."""
        raise NotImplementedError

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        self.check(inputs)
        return op.TensorType(())

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        value = self.value(inputs)
        return value if self.weight == 1 else op.TorchCall("torch.mul", (value, self.weight))

    def reduced(self, values: op.TorchExpr) -> op.TorchExpr:
        return op.TorchCall(f"torch.{self.reduction}", (values,))

    def summary(self) -> str:
        return "" if self.weight == 1 else f"x {self.weight:g}"
