"""Difference of two tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from designer.operators import api as op
from designer.operators.shapes import same_shape

KINDS = ("absolute", "signed", "squared")

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


class Difference(
    op.Operator,
    type="difference",
    title="Difference",
    category=op.Category.ANALYSIS,
    role=op.Role.ANALYSIS,
    synonyms=("error map", "psnr", "ssim", "compare", "quality"),
):
    """A difference map of two images of the same size, with PSNR in decibels and SSIM for each image."""

    inputs = (op.Port("a", rank=4, dtypes=op.FLOATS), op.Port("b", rank=4, dtypes=op.FLOATS))
    outputs = (
        op.Port("y", doc="The difference map."),
        op.Port("psnr", doc="PSNR in decibels, N x 1 x 1 x 1, of values clipped to 0..peak."),
        op.Port("ssim", doc="SSIM, 1 for equal images, N x 1 x 1 x 1, of values clipped to 0..peak."),
    )

    kind: str = op.param(default="absolute", choices=KINDS, doc="Values of the map: |a - b|, a - b or its square.")
    gain: float = op.param(default=1.0, min=0.0, max=1e6, step=0.5, doc="Factor of the map.")
    peak: float = op.param(default=1.0, min=1e-6, max=1e6, doc="Maximum of the value range, for PSNR and SSIM.")
    examples = (
        op.Example((op.image(), op.image())),
        op.Example((op.image(1, 13, 12), op.image(1, 13, 12)), {"kind": "signed", "gain": 4.0}, "signed"),
        op.Example((op.image(), op.image()), {"kind": "squared", "peak": 255.0}, "squared"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> tuple[op.TensorType, ...]:
        same_shape(inputs[0], inputs[1], "b")
        metric = inputs[0].with_shape(inputs[0].image().n, 1, 1, 1)
        return (inputs[0], metric, metric)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        import numpy as np

        from designer.metrics import psnr, ssim

        a, b = inputs
        error = a - b
        if self.kind != "signed":
            error = np.abs(error) if self.kind == "absolute" else np.square(error)
        shape = (len(a), 1, 1, 1)
        metrics = (
            np.array([metric(x[None], y[None], self.peak) for x, y in zip(a, b, strict=True)], np.float32)
            for metric in (psnr, ssim)
        )
        return (error * np.float32(self.gain), *(values.reshape(shape) for values in metrics))

    def options(self) -> tuple[op.Option, ...]:
        return (
            op.Option("kind", "choice", "Map", choices=KINDS),
            op.Option("gain", "float", "Gain", min=0.0, max=20.0, step=0.5),
        )

    def summary(self) -> str:
        return self.kind if self.gain == 1 else f"{self.kind} x {self.gain:g}"
