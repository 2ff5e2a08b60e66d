"""Linear blend."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import broadcast


class LinearBlend(
    op.Operator,
    type="linear_blend",
    title="Linear blend",
    category=op.Category.ELEMENT_WISE,
    synonyms=("lerp", "mix", "interpolate", "weighted sum"),
):
    """a * (1 - alpha) + b * alpha. Dimensions of 1 are broadcast."""

    inputs = (op.Port("a", dtypes=op.FLOATS), op.Port("b", dtypes=op.FLOATS))

    alpha: float = op.param(default=0.5, min=0.0, max=1.0, step=0.01, doc="Weight of b: 0 is a, 1 is b.")
    invert_alpha: bool = op.param(default=False, doc="Use 1 - alpha instead, so alpha is the weight of a.")
    examples = (
        op.Example((op.image(), op.image()), {"alpha": 0.25}),
        op.Example((op.image(), op.image(1)), {"alpha": 0.25, "invert_alpha": True}, "inverted"),
    )

    def _share(self) -> float:
        return 1.0 - self.alpha if self.invert_alpha else self.alpha

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return broadcast(inputs[0], inputs[1])

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.lerp", (op.TorchInput(0), op.TorchInput(1), self._share()))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        a = op.OnnxNode("Mul", (op.OnnxInput(0), op.scalar(1.0 - self._share())))
        b = op.OnnxNode("Mul", (op.OnnxInput(1), op.scalar(self._share())))
        return op.OnnxNode("Add", (a, b))

    def summary(self) -> str:
        return f"alpha {self._share():g}"
