"""A weighted mean of two tensors."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
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


class LinearBlend(
    Operator,
    type="linear_blend",
    title="Linear blend",
    category=Category.ELEMENT_WISE,
    synonyms=("lerp", "mix", "interpolate", "weighted sum"),
):
    """a * (1 - alpha) + b * alpha. Dimensions of 1 are repeated."""

    inputs = (Port("a", dtypes=FLOATS), Port("b", dtypes=FLOATS))

    alpha: float = param(default=0.5, min=0.0, max=1.0, step=0.01, doc="Share of b: 0 is a alone, 1 is b alone.")
    invert_alpha: bool = param(default=False, doc="Use 1 - alpha instead: alpha is then the share of a.")
    examples = (
        Example((image(), image()), {"alpha": 0.25}),
        Example((image(), image(1)), {"alpha": 0.25, "invert_alpha": True}, "inverted"),
    )

    def _share(self) -> float:
        return 1.0 - self.alpha if self.invert_alpha else self.alpha

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return broadcast(inputs[0], inputs[1])

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.lerp", (TorchInput(0), TorchInput(1), self._share()))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        a = OnnxNode("Mul", (OnnxInput(0), scalar(1.0 - self._share())))
        b = OnnxNode("Mul", (OnnxInput(1), scalar(self._share())))
        return OnnxNode("Add", (a, b))

    def summary(self) -> str:
        return f"alpha {self._share():g}"
