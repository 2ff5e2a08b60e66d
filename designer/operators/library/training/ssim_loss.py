"""SSIM loss."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from designer.operators import api as op
from designer.operators.library.training._loss import Loss
from designer.texts import tr


class SsimLoss(Loss, type="ssim_loss", title="SSIM loss", synonyms=("structural similarity", "ssim", "perceptual")):
    """1 - SSIM (structural similarity): compares luminance, contrast and structure in windows weighted by a Gaussian."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS), op.Port("target", rank=4, dtypes=op.FLOATS))

    window: int = op.param(default=11, min=1, max=63, unit="pixels", doc="Window size, odd.")
    sigma: float = op.param(default=1.5, min=0.05, max=100.0, unit="pixels", doc="Standard deviation of the Gaussian.")
    peak: float = op.param(default=1.0, min=1e-6, max=1e6, doc="Maximum of the value range.")
    examples = (
        op.Example((op.image(3, 13, 12), op.image(3, 13, 12))),
        op.Example((op.image(2, 6, 7),) * 2, {"window": 3, "weight": 0.2, "reduction": "sum"}, "small windows"),
    )

    def check(self, inputs: Sequence[op.TensorType]) -> None:
        super().check(inputs)
        x = inputs[0].image()
        if self.window % 2 == 0:
            raise op.ShapeError(
                tr("the window must be odd, not {window}", window=self.window),
                remedy=tr("use {window}", window=self.window + 1),
            )
        if x.h < self.window or x.w < self.window:
            raise op.ShapeError(
                tr(
                    "the window of {window}x{window} is larger than the image of {w}x{h}",
                    window=self.window,
                    w=x.w,
                    h=x.h,
                ),
                port="x",
                remedy=tr("use a smaller window"),
            )

    def value(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        channels = inputs[0].image().c
        curve = op.TorchParameter("window", (1, 1, 1, self.window), self._curve(), trainable=False, persistent=False)
        across = op.TorchMethod("expand", curve, (channels, -1, -1, -1))
        down = op.TorchMethod("transpose", across, (2, 3))
        x, target = op.TorchInput(0), op.TorchInput(1)

        def call(name: str, *args: op.TorchExpr | float) -> op.TorchExpr:
            return op.TorchCall(f"torch.{name}", args)

        all_five = op.TorchCall(
            "torch.cat", ((x, target, call("square", x), call("square", target), call("mul", x, target)),)
        )
        filtered = "torch.nn.functional.conv2d"
        rows = op.TorchCall(filtered, (all_five, across), {"groups": channels})
        means = op.TorchCall(filtered, (rows, down), {"groups": channels})
        parts = op.TorchCall("torch.chunk", (means, 5))
        mean_x, mean_t, square_x, square_t, product = (op.TorchItem(parts, index) for index in range(5))
        c1, c2 = (0.01 * self.peak) ** 2, (0.03 * self.peak) ** 2
        both = call("mul", mean_x, mean_t)
        energy = call("add", call("square", mean_x), call("square", mean_t))
        covariance = call("sub", product, both)
        variance = call("sub", call("add", square_x, square_t), energy)
        top = call("mul", call("add", call("mul", both, 2), c1), call("add", call("mul", covariance, 2), c2))
        bottom = call("mul", call("add", energy, c1), call("add", variance, c2))
        return self.reduced(call("rsub", call("div", top, bottom), 1.0))

    def _curve(self) -> tuple[float, ...]:
        half = self.window // 2
        curve = [exp(-0.5 * (place / self.sigma) ** 2) for place in range(-half, half + 1)]
        return tuple(value / sum(curve) for value in curve)

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        x = inputs[0].image()
        height, width = x.h - self.window + 1, x.w - self.window + 1
        images = inputs[0].concrete()[0]
        return 2 * 5 * self.window * images * x.c * width * (x.h + height)
