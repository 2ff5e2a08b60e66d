"""Unpooling."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr


class Unpooling(
    op.Operator,
    type="unpooling",
    title="Unpooling",
    category=op.Category.UPSAMPLING,
    synonyms=("maxunpool2d", "unpool", "inverse pooling", "segnet"),
):
    """Put each value into a window of zeros: at the maximum of the reference, or at the top left without one.

    The reference is the pooled image; its windows do not overlap and have the same size.
    """

    inputs = (
        op.Port("x", rank=4, dtypes=op.FLOATS),
        op.Port("reference", rank=4, dtypes=op.FLOATS, optional=True, doc="The image that was pooled."),
    )

    size: op.Size2D = op.param(default=op.Size2D(2, 2), min=1, max=256, doc="Window size, width x height.")
    examples = (
        op.Example((op.image(2, 3, 4), op.image(2, 6, 8))),
        op.Example((op.image(2, 3, 4),), {"size": op.Size2D(3, 2)}, "without a reference"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        result = inputs[0].with_shape(x.n, x.c, x.h * self.size.height, x.w * self.size.width)
        if len(inputs) == 2 and inputs[1] != result:
            raise op.ShapeError(
                tr(
                    "the reference is {reference} but must be {result} for windows of {size} and the input {x}",
                    reference=inputs[1],
                    result=result,
                    size=self.size,
                    x=inputs[0],
                ),
                port="reference",
                remedy=tr("connect the input of the pooling layer"),
            )
        return result

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        window = self.size.hw
        if len(inputs) == 2:
            kwargs = {"kernel_size": window, "return_indices": True}
            places = op.TorchItem(op.TorchCall("torch.nn.functional.max_pool2d", (op.TorchInput(1),), kwargs), 1)
            return op.TorchCall("torch.nn.functional.max_unpool2d", (op.TorchInput(0), places), {"kernel_size": window})
        pad = "torch.nn.functional.pad"
        rows, columns = window[0] - 1, window[1] - 1
        wide = op.TorchCall(pad, (op.TorchMethod("unsqueeze", op.TorchInput(0), (4,)), (0, columns)))
        spread = op.TorchMethod("unsqueeze", op.TorchMethod("flatten", wide, (3, 4)), (3,))
        return op.TorchMethod("flatten", op.TorchCall(pad, (spread, (0, 0, 0, rows))), (2, 3))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        window = self.size.hw
        attributes = {"kernel_shape": window, "strides": window}
        if len(inputs) == 2:
            pooled = op.OnnxNode("MaxPool", (op.OnnxInput(1),), attributes, outputs=2)
            return op.OnnxNode("MaxUnpool", (op.OnnxInput(0), op.OnnxItem(pooled, 1)), attributes)
        wide = op.OnnxNode("Unsqueeze", (op.OnnxInput(0), op.int64(3, 5)))
        pads = op.int64(*(0,) * 6, 0, 0, 0, window[0] - 1, 0, window[1] - 1)
        sizes = op.OnnxNode("Mul", (op.OnnxNode("Shape"), op.int64(1, 1, *window)))
        return op.OnnxNode("Reshape", (op.OnnxNode("Pad", (wide, pads)), sizes))

    def summary(self) -> str:
        return str(self.size)
