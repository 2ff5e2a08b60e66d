"""Local response normalization."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import known
from designer.texts import tr


class LocalResponseNormalization(
    op.Operator,
    type="local_response_normalization",
    title="Local response normalization",
    category=op.Category.NORMALIZATION,
    synonyms=("lrn", "alexnet", "localresponsenorm"),
):
    """Divide each value by (bias + alpha / size * the sum of squares over neighboring channels) to the power beta."""

    inputs = (op.Port("x", rank=(3, 4), dtypes=op.FLOATS),)

    size: int = op.param(default=5, min=1, max=1023, doc="Number of neighboring channels, odd.")
    alpha: float = op.param(default=1e-4, min=1e-9, max=1000.0, doc="Factor of the sum of squares.")
    beta: float = op.param(default=0.75, min=1e-3, max=16.0, doc="Exponent.")
    bias: float = op.param(default=1.0, min=1e-6, max=1000.0, doc="Added to the sum to avoid division by 0.")
    examples = (
        op.Example((op.image(7, 3, 4),)),
        op.Example((op.image(3, 4, 4),), {"size": 3, "alpha": 0.5, "beta": 0.5, "bias": 2.0}, "strong"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        if self.size % 2 == 0:
            raise op.ShapeError(
                tr("the size must be odd, not {size}", size=self.size), remedy=tr("use {size}", size=self.size + 1)
            )
        for axis in range(1, inputs[0].rank):
            known(inputs[0], axis)
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs = {"size": self.size, "alpha": self.alpha, "beta": self.beta, "k": self.bias}
        return op.TorchModule("torch.nn.LocalResponseNorm", kwargs)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        attributes = {"size": self.size, "alpha": self.alpha, "beta": self.beta, "bias": self.bias}
        if inputs[0].rank == 4:
            return op.OnnxNode("LRN", attributes=attributes)
        # ONNX Runtime requires four dimensions
        wide = op.OnnxNode("Unsqueeze", (op.OnnxInput(0), op.int64(-1)))
        return op.OnnxNode("Squeeze", (op.OnnxNode("LRN", (wide,), attributes), op.int64(-1)))

    def summary(self) -> str:
        return f"{self.size} channels"
