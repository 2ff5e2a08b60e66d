"""Local contrast normalization."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr


class LocalContrastNormalization(
    op.Operator,
    type="local_contrast_normalization",
    title="Local contrast normalization",
    category=op.Category.NORMALIZATION,
    synonyms=("lcn", "divisive normalization", "local contrast"),
):
    """Subtract the mean of the neighborhood from each pixel and divide by its standard deviation, per channel.

    All pixels of the square neighborhood have equal weight; Jarrett et al. (2009) use Gaussian weights, over all
    channels. At the border, only pixels inside the image are included.
    """

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    size: int = op.param(default=9, min=3, max=255, unit="pixels", doc="Size of the square neighborhood, odd.")
    epsilon: float = op.param(default=1e-4, min=1e-12, max=1.0, doc="Added to the variance to avoid division by 0.")
    examples = (
        op.Example((op.image(3, 12, 11),)),
        op.Example((op.image(2, 5, 6),), {"size": 3, "epsilon": 0.01}, "small"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        inputs[0].image()
        if self.size % 2 == 0:
            raise op.ShapeError(
                tr("the size must be odd, not {size}", size=self.size), remedy=tr("use {size}", size=self.size + 1)
            )
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        def mean(x: op.TorchExpr) -> op.TorchExpr:
            window = {"kernel_size": self.size, "stride": 1, "padding": self.size // 2, "count_include_pad": False}
            return op.TorchCall("torch.nn.functional.avg_pool2d", (x,), window)

        centered = op.TorchCall("torch.sub", (op.TorchInput(0), mean(op.TorchInput(0))))
        variance = op.TorchCall("torch.add", (mean(op.TorchCall("torch.square", (centered,))), self.epsilon))
        return op.TorchCall("torch.mul", (centered, op.TorchCall("torch.rsqrt", (variance,))))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        def mean(x: op.OnnxValue) -> op.OnnxValue:
            window = {"kernel_shape": (self.size, self.size), "pads": (self.size // 2,) * 4, "count_include_pad": 0}
            return op.OnnxNode("AveragePool", (x,), window)

        centered = op.OnnxNode("Sub", (op.OnnxInput(0), mean(op.OnnxInput(0))))
        variance = op.OnnxNode("Add", (mean(op.OnnxNode("Mul", (centered, centered))), op.scalar(self.epsilon)))
        return op.OnnxNode("Div", (centered, op.OnnxNode("Sqrt", (variance,))))

    def summary(self) -> str:
        return f"{self.size}x{self.size}"
