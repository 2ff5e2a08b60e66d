"""Color conversion."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.formula import Formula, OnnxFormula, Operand, TorchFormula
from designer.operators.library.data._color import SPACES, channels_of, from_rgb, to_rgb
from designer.texts import tr


class ColorConversion(
    op.Operator,
    type="colorconversion",
    title="Color conversion",
    category=op.Category.DATA,
    synonyms=("rgb", "bgr", "ycbcr", "yuv", "gray", "grayscale", "hsv", "lab", "linear", "srgb", "colour"),
):
    """Convert an image between color spaces.

    RGB is sRGB in 0..1, as in image files; linear RGB is proportional to light. YCbCr is that of JPEG with all components
    in 0..1; hue, saturation and value are in 0..1; L*a*b* is CIELAB with white point D65 (L* in 0..100). Gray is
    0.299 R + 0.587 G + 0.114 B.
    """

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    source: str = op.param(default="rgb", choices=SPACES, doc="Color space of the input.")
    target: str = op.param(default="ycbcr", choices=SPACES, doc="Color space of the output.")
    examples = (
        *(op.Example((op.image(3, 4, 5),), {"target": space}, f"rgb to {space}") for space in SPACES[1:]),
        *(
            op.Example((op.image(channels_of(space), 4, 5),), {"source": space, "target": "rgb"}, f"{space} to rgb")
            for space in SPACES[1:]
        ),
        op.Example((op.image(3, 4, 5),), {"source": "lab", "target": "ycbcr"}, "lab to ycbcr"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        wanted = channels_of(self.source)
        if x.c != wanted:
            raise op.ShapeError(
                tr(
                    "{source} has {wanted} channel{part}, the input has {c}",
                    source=self.source,
                    wanted=wanted,
                    part="" if wanted == 1 else "s",
                    c=x.c,
                ),
                port="x",
                remedy=tr("choose the color space of the input, or select channels with a Selector layer"),
            )
        return inputs[0].with_dim(1, channels_of(self.target))

    def _formula(self, f: Formula, x: Operand) -> Operand:
        return x if self.source == self.target else from_rgb(f, to_rgb(f, x, self.source), self.target)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        made: op.TorchExpr = self._formula(TorchFormula(), op.TorchInput(0))
        return made

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        made: op.OnnxValue = self._formula(OnnxFormula(), op.OnnxInput(0))
        return op.OnnxNode("Identity") if self.source == self.target else made

    def summary(self) -> str:
        return f"{self.source} to {self.target}".replace("_", " ")
