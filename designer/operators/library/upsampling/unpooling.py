"""The inverse of pooling."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxInput,
    OnnxItem,
    OnnxNode,
    OnnxValue,
    Operator,
    Port,
    ShapeError,
    Size2D,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchItem,
    TorchMethod,
    image,
    int64,
    param,
)
from designer.texts import tr


class Unpooling(
    Operator,
    type="unpooling",
    title="Unpooling",
    category=Category.UPSAMPLING,
    synonyms=("maxunpool2d", "unpool", "inverse pooling", "segnet"),
):
    """Put every value into a window of zeros: where the maximum of the reference was, or else at the top left.

    The reference is the image that was pooled; its windows do not overlap and have the same size.
    """

    inputs = (
        Port("x", rank=4, dtypes=FLOATS),
        Port("reference", rank=4, dtypes=FLOATS, optional=True, doc="The image that was pooled."),
    )

    size: Size2D = param(default=Size2D(2, 2), min=1, max=256, doc="Window size, width x height.")
    examples = (
        Example((image(2, 3, 4), image(2, 6, 8))),
        Example((image(2, 3, 4),), {"size": Size2D(3, 2)}, "without a reference"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0].image()
        result = inputs[0].with_shape(x.n, x.c, x.h * self.size.height, x.w * self.size.width)
        if len(inputs) == 2 and inputs[1] != result:
            raise ShapeError(
                tr(
                    "the reference {inputs} is not {result}, which windows of {size} make of {inputs2}",
                    inputs=inputs[1],
                    result=result,
                    size=self.size,
                    inputs2=inputs[0],
                ),
                port="reference",
                remedy=tr("connect the input of the pooling layer"),
            )
        return result

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        window = self.size.hw
        if len(inputs) == 2:
            kwargs = {"kernel_size": window, "return_indices": True}
            places = TorchItem(TorchCall("torch.nn.functional.max_pool2d", (TorchInput(1),), kwargs), 1)
            return TorchCall("torch.nn.functional.max_unpool2d", (TorchInput(0), places), {"kernel_size": window})
        pad = "torch.nn.functional.pad"
        rows, columns = window[0] - 1, window[1] - 1
        wide = TorchCall(pad, (TorchMethod("unsqueeze", TorchInput(0), (4,)), (0, columns)))
        spread = TorchMethod("unsqueeze", TorchMethod("flatten", wide, (3, 4)), (3,))
        return TorchMethod("flatten", TorchCall(pad, (spread, (0, 0, 0, rows))), (2, 3))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        window = self.size.hw
        attributes = {"kernel_shape": window, "strides": window}
        if len(inputs) == 2:
            pooled = OnnxNode("MaxPool", (OnnxInput(1),), attributes, outputs=2)
            return OnnxNode("MaxUnpool", (OnnxInput(0), OnnxItem(pooled, 1)), attributes)
        wide = OnnxNode("Unsqueeze", (OnnxInput(0), int64(3, 5)))
        pads = int64(*(0,) * 6, 0, 0, 0, window[0] - 1, 0, window[1] - 1)
        sizes = OnnxNode("Mul", (OnnxNode("Shape"), int64(1, 1, *window)))
        return OnnxNode("Reshape", (OnnxNode("Pad", (wide, pads)), sizes))

    def summary(self) -> str:
        return str(self.size)
