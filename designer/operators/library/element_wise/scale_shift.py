"""Times a number, plus a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators.api import (
    BATCH,
    FLOATS,
    Category,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    OnnxWeight,
    Operator,
    Port,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchParameter,
    Weight,
    image,
    param,
    scalar,
)
from designer.operators.shapes import known


class ScaleShift(
    Operator,
    type="scale_shift",
    title="Scale and shift",
    category=Category.ELEMENT_WISE,
    synonyms=("affine", "multiply add", "gain", "layer scale", "bias"),
):
    """x * scale + shift, with two fixed numbers, or with two learned ones for every channel that start as these."""

    inputs = (Port("x", rank=(2, 3, 4, 5), dtypes=FLOATS),)

    scale: float = param(default=1.0, doc="Factor.")
    shift: float = param(default=0.0, doc="Added afterwards.")
    learned: bool = param(default=False, doc="Learn both for every channel (axis 1).")
    examples = (
        Example((image(),), {"scale": 2.0, "shift": -0.5}),
        Example((image(3),), {"scale": 0.1, "learned": True}, "learned"),
        Example((TensorType((BATCH, 5)),), {"learned": True}, "table"),
    )

    def _shape(self, x: TensorType) -> tuple[int, ...]:
        return (known(x, 1), *(1,) * (x.rank - 2))

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        self._shape(inputs[0])
        return inputs[0]

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        scale: Any = self.scale
        shift: Any = self.shift
        if self.learned:
            shape = self._shape(inputs[0])
            scale = TorchParameter("scale", shape, values=self.scale)
            shift = TorchParameter("bias", shape, values=self.shift)
        return TorchCall("torch.add", (TorchCall("torch.mul", (TorchInput(0), scale)), shift))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        scale: OnnxValue = OnnxWeight("scale") if self.learned else scalar(self.scale)
        shift: OnnxValue = OnnxWeight("bias") if self.learned else scalar(self.shift)
        return OnnxNode("Add", (OnnxNode("Mul", (OnnxInput(0), scale)), shift))

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        if not self.learned:
            return ()
        shape = self._shape(inputs[0])
        return (
            Weight("scale", shape, "scale", init=f"constant:{self.scale!r}"),
            Weight("bias", shape, "bias", init=f"constant:{self.shift!r}"),
        )

    def summary(self) -> str:
        return "learned" if self.learned else f"x {self.scale:g} + {self.shift:g}"
