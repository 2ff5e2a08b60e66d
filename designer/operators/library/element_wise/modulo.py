"""Remainders of divisions."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import broadcast


class Modulo(
    op.Operator,
    type="modulo",
    title="Modulo",
    category=op.Category.ELEMENT_WISE,
    synonyms=("remainder", "mod", "fmod", "wrap"),
):
    """The remainder of a / b, with the sign of the divisor (Python's %) or of the dividend (C's fmod)."""

    inputs = (op.Port("a", dtypes=op.FLOATS + op.INTEGERS), op.Port("b", dtypes=op.FLOATS + op.INTEGERS))

    sign: str = op.param(default="divisor", choices=("divisor", "dividend"), doc="Whose sign the result has.")
    examples = (op.Example((op.image(), op.image()), {"sign": "dividend"}, "fractions"),)

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return broadcast(inputs[0], inputs[1])

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        path = "torch.remainder" if self.sign == "divisor" else "torch.fmod"
        return op.TorchCall(path, (op.TorchInput(0), op.TorchInput(1)))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        if self.sign == "divisor" and inputs[0].dtype.is_float:  # ONNX Runtime has it for integers only
            whole = op.OnnxNode("Floor", (op.OnnxNode("Div", (op.OnnxInput(0), op.OnnxInput(1))),))
            return op.OnnxNode("Sub", (op.OnnxInput(0), op.OnnxNode("Mul", (whole, op.OnnxInput(1)))))
        return op.OnnxNode("Mod", (op.OnnxInput(0), op.OnnxInput(1)), {"fmod": int(self.sign == "dividend")})

    def summary(self) -> str:
        return f"sign of the {self.sign}"
