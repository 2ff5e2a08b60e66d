"""Even contrast across an image."""

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
    ShapeError,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    image,
    param,
    scalar,
)
from designer.texts import tr


class LocalContrastNormalization(
    Operator,
    type="local_contrast_normalization",
    title="Local contrast normalization",
    category=Category.NORMALISATION,
    synonyms=("lcn", "divisive normalization", "local contrast"),
):
    """Subtract from every pixel the mean of its surroundings and divide by their deviation, channel by channel.

    The surroundings are a square in which all pixels count alike; Jarrett et al. (2009) weigh them with a Gaussian, over all
    channels. At the border only the surroundings inside the image count.
    """

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    size: int = param(default=9, min=3, max=255, unit="pixels", doc="Side of the surroundings, an odd number.")
    epsilon: float = param(default=1e-4, min=1e-12, max=1.0, doc="Added to the variance, so that nothing divides by 0.")
    examples = (
        Example((image(3, 12, 11),)),
        Example((image(2, 5, 6),), {"size": 3, "epsilon": 0.01}, "small"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        inputs[0].image()
        if self.size % 2 == 0:
            raise ShapeError(
                tr("the size must be odd, not {size}", size=self.size), remedy=tr("use {size}", size=self.size + 1)
            )
        return inputs[0]

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        def mean(x: TorchExpr) -> TorchExpr:
            window = {"kernel_size": self.size, "stride": 1, "padding": self.size // 2, "count_include_pad": False}
            return TorchCall("torch.nn.functional.avg_pool2d", (x,), window)

        centred = TorchCall("torch.sub", (TorchInput(0), mean(TorchInput(0))))
        variance = TorchCall("torch.add", (mean(TorchCall("torch.square", (centred,))), self.epsilon))
        return TorchCall("torch.mul", (centred, TorchCall("torch.rsqrt", (variance,))))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        def mean(x: OnnxValue) -> OnnxValue:
            window = {"kernel_shape": (self.size, self.size), "pads": (self.size // 2,) * 4, "count_include_pad": 0}
            return OnnxNode("AveragePool", (x,), window)

        centred = OnnxNode("Sub", (OnnxInput(0), mean(OnnxInput(0))))
        variance = OnnxNode("Add", (mean(OnnxNode("Mul", (centred, centred))), scalar(self.epsilon)))
        return OnnxNode("Div", (centred, OnnxNode("Sqrt", (variance,))))

    def summary(self) -> str:
        return f"{self.size}x{self.size}"
