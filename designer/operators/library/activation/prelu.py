"""PReLU."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import known


class Prelu(op.Activation, type="prelu", title="PReLU", synonyms=("parametric relu",)):
    """x if x > 0, otherwise a learned slope times x."""

    per_channel: bool = op.param(default=True, doc="Learn one slope per channel (axis 1) instead of a single one.")
    initial: float = op.param(default=0.25, min=-100.0, max=100.0, step=0.01, doc="Initial slope.")
    examples = (
        op.Example((op.image(4),)),
        op.Example((op.image(4),), {"per_channel": False, "initial": 0.1}, "one slope"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        if self.per_channel:
            known(inputs[0], 1)
        return inputs[0]

    def _slopes(self, inputs: Sequence[op.TensorType]) -> int:
        return inputs[0].dim(1) if self.per_channel else 1

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchModule("torch.nn.PReLU", {"num_parameters": self._slopes(inputs), "init": self.initial})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        slope: op.OnnxValue = op.OnnxWeight("slope")
        if self.per_channel and inputs[0].rank > 2:
            ones = (1,) * (inputs[0].rank - 2)
            slope = op.OnnxNode("Reshape", (slope, op.int64(-1, *ones)))
        elif inputs[0].rank == 0:  # the result would have the shape of the slope
            slope = op.OnnxNode("Squeeze", (slope,))
        return op.OnnxNode("PRelu", (op.OnnxInput(0), slope))

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        return (op.Weight("slope", (self._slopes(inputs),), "weight", init=f"constant:{self.initial!r}"),)
