"""Tone mapping."""

from __future__ import annotations

from collections.abc import Sequence
from math import log1p

from designer.operators import api as op
from designer.operators.formula import Formula, OnnxFormula, Operand, TorchFormula

METHODS = ("reinhard", "exponential", "logarithmic", "aces", "clip")


class ToneMap(
    op.Operator,
    type="tone_map",
    title="Tone map",
    category=op.Category.DATA,
    synonyms=("hdr", "exposure", "gamma", "reinhard", "aces", "filmic"),
):
    """Map high dynamic range to 0..1: multiply by the exposure, apply a curve, raise to the power 1 / gamma.

    Values below 0 count as 0. The curves are x / (1 + x), 1 - exp(-x), log(1 + mu x) / log(1 + mu), a fit of the
    film curve ACES, and plain clipping.
    """

    inputs = (op.Port("x", dtypes=op.FLOATS),)

    method: str = op.param(default="reinhard", choices=METHODS, doc="Tone curve.")
    exposure: float = op.param(default=1.0, min=1e-6, max=1e6, doc="Factor before the curve.")
    mu: float = op.param(
        default=5000.0,
        min=1e-3,
        max=1e9,
        visible_when=("method", "logarithmic"),
        doc="Compression of the logarithmic curve.",
    )
    gamma: float = op.param(
        default=1.0, min=0.1, max=10.0, step=0.1, doc="The result is raised to the power 1 / gamma."
    )
    examples = (
        *(op.Example((op.image(3, 4, 5),), {"method": method, "exposure": 2.0}, method) for method in METHODS),
        op.Example((op.image(3, 4, 5),), {"gamma": 2.2}, "with gamma"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0]

    def _formula(self, f: Formula, x: Operand) -> Operand:
        light = f.mul(f.maximum(x, 0.0), self.exposure)
        match self.method:
            case "reinhard":
                result = f.div(light, f.add(light, 1.0))
            case "exponential":
                result = f.sub(1.0, f.exp(f.mul(light, -1.0)))
            case "logarithmic":
                result = f.div(f.log(f.add(f.mul(light, self.mu), 1.0)), log1p(self.mu))
            case "aces":
                top = f.mul(light, f.add(f.mul(light, 2.51), 0.03))
                bottom = f.add(f.mul(light, f.add(f.mul(light, 2.43), 0.59)), 0.14)
                result = f.minimum(f.div(top, bottom), 1.0)
            case _:
                result = f.minimum(light, 1.0)
        return result if self.gamma == 1 else f.power(result, 1 / self.gamma)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        made: op.TorchExpr = self._formula(TorchFormula(), op.TorchInput(0))
        return made

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        made: op.OnnxValue = self._formula(OnnxFormula(), op.OnnxInput(0))
        return made

    def summary(self) -> str:
        return self.method
