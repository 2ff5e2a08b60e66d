"""Scale and shift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators import api as op
from designer.operators.shapes import known


class ScaleShift(
    op.Operator,
    type="scale_shift",
    title="Scale and shift",
    category=op.Category.ELEMENT_WISE,
    synonyms=("affine", "multiply add", "gain", "layer scale", "bias"),
):
    """x * scale + shift, with fixed numbers or learned ones for each channel."""

    inputs = (op.Port("x", rank=(2, 3, 4, 5), dtypes=op.FLOATS),)

    scale: float = op.param(default=1.0, doc="Factor; the initial value if learned.")
    shift: float = op.param(default=0.0, doc="Offset; the initial value if learned.")
    learned: bool = op.param(default=False, doc="Learn both for each channel (axis 1).")
    examples = (
        op.Example((op.image(),), {"scale": 2.0, "shift": -0.5}),
        op.Example((op.image(3),), {"scale": 0.1, "learned": True}, "learned"),
        op.Example((op.TensorType((op.BATCH, 5)),), {"learned": True}, "table"),
    )

    def _shape(self, x: op.TensorType) -> tuple[int, ...]:
        return (known(x, 1), *(1,) * (x.rank - 2))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        self._shape(inputs[0])
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        scale: Any = self.scale
        shift: Any = self.shift
        if self.learned:
            shape = self._shape(inputs[0])
            scale = op.TorchParameter("scale", shape, values=self.scale)
            shift = op.TorchParameter("bias", shape, values=self.shift)
        return op.TorchCall("torch.add", (op.TorchCall("torch.mul", (op.TorchInput(0), scale)), shift))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        scale: op.OnnxValue = op.OnnxWeight("scale") if self.learned else op.scalar(self.scale)
        shift: op.OnnxValue = op.OnnxWeight("bias") if self.learned else op.scalar(self.shift)
        return op.OnnxNode("Add", (op.OnnxNode("Mul", (op.OnnxInput(0), scale)), shift))

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        if not self.learned:
            return ()
        shape = self._shape(inputs[0])
        return (
            op.Weight("scale", shape, "scale", init=f"constant:{self.scale!r}"),
            op.Weight("bias", shape, "bias", init=f"constant:{self.shift!r}"),
        )

    def summary(self) -> str:
        return "learned" if self.learned else f"x {self.scale:g} + {self.shift:g}"
