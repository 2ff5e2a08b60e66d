"""Unary functions."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr

_FUNCTIONS = {
    "abs": ("torch.abs", "Abs"),
    "neg": ("torch.neg", "Neg"),
    "exp": ("torch.exp", "Exp"),
    "log": ("torch.log", "Log"),
    "log1p": ("torch.log1p", ""),
    "sqrt": ("torch.sqrt", "Sqrt"),
    "reciprocal": ("torch.reciprocal", "Reciprocal"),
    "square": ("torch.square", ""),
    "sign": ("torch.sign", "Sign"),
    "floor": ("torch.floor", "Floor"),
    "ceil": ("torch.ceil", "Ceil"),
    "round": ("torch.round", "Round"),
    "clip": ("torch.clamp", "Clip"),
    "erf": ("torch.erf", "Erf"),
    "sin": ("torch.sin", "Sin"),
    "cos": ("torch.cos", "Cos"),
    "tan": ("torch.tan", "Tan"),
    "asin": ("torch.asin", "Asin"),
    "acos": ("torch.acos", "Acos"),
    "atan": ("torch.atan", "Atan"),
    "sinh": ("torch.sinh", "Sinh"),
    "cosh": ("torch.cosh", "Cosh"),
    "asinh": ("torch.asinh", "Asinh"),
    "atanh": ("torch.atanh", "Atanh"),
}


class Unary(
    op.Operator,
    type="unary",
    title="Unary",
    category=op.Category.ELEMENT_WISE,
    synonyms=(*_FUNCTIONS, "negate", "clamp", "function"),
):
    """Apply a function to each value. round rounds halves to even. log1p is log(1 + x), accurate near 0."""

    inputs = (op.Port("x", dtypes=op.FLOATS),)

    function: str = op.param(default="abs", choices=tuple(_FUNCTIONS), doc="The function.")
    low: float = op.param(default=0.0, visible_when=("function", "clip"), doc="Lower bound of clip.")
    high: float = op.param(default=1.0, visible_when=("function", "clip"), doc="Upper bound of clip.")
    examples = tuple(op.Example((op.image(2, 3, 4),), {"function": name}, name) for name in _FUNCTIONS)

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        if self.function == "clip" and self.low > self.high:
            raise op.ShapeError(
                tr("the lower bound {low:g} must not exceed the upper bound {high:g}", low=self.low, high=self.high),
                remedy=tr("swap them"),
            )
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs = {"min": self.low, "max": self.high} if self.function == "clip" else {}
        return op.TorchCall(_FUNCTIONS[self.function][0], kwargs=kwargs)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        if self.function == "square":
            return op.OnnxNode("Mul", (op.OnnxInput(0), op.OnnxInput(0)))
        if self.function == "log1p":
            return _log1p(op.OnnxInput(0))
        if self.function == "clip":
            return op.OnnxNode("Clip", (op.OnnxInput(0), op.scalar(self.low), op.scalar(self.high)))
        return op.OnnxNode(_FUNCTIONS[self.function][1])

    def summary(self) -> str:
        return f"clip {self.low:g}..{self.high:g}" if self.function == "clip" else self.function


def _log1p(x: op.OnnxValue) -> op.OnnxValue:
    """log(1 + x), which ONNX does not have.

    Near 0, log(u) * x / (u - 1) for u = 1 + x makes up for the rounding of u (W. Kahan; D. Goldberg, What Every Computer Scientist Should
    Know About Floating-Point Arithmetic, theorem 4).
    """
    one = op.scalar(1.0)
    sum_ = op.OnnxNode("Add", (x, one))
    log = op.OnnxNode("Log", (sum_,))
    corrected = op.OnnxNode("Div", (op.OnnxNode("Mul", (log, x)), op.OnnxNode("Sub", (sum_, one))))
    small = op.OnnxNode("Where", (op.OnnxNode("Equal", (sum_, one)), x, corrected))
    return op.OnnxNode("Where", (op.OnnxNode("Less", (op.OnnxNode("Abs", (x,)), one)), small, log))
