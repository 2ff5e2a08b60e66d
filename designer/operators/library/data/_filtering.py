"""Fixed filters, identical for each channel."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.formula import filter_constant
from designer.operators.library.convolution._filter import check_border, onnx_pad, torch_pad

BORDERS = ("reflect", "replicate", "zeros", "circular")


def torch_filtered(
    x: op.TorchExpr, values: Sequence[Sequence[float]], channels: int, name: str, border: str
) -> op.TorchExpr:
    """Filter `x` per channel, with the same output size; `values` are the rows of a filter of odd size."""
    rows, columns = len(values), len(values[0])
    padded = torch_pad(x, ((rows // 2, rows // 2), (columns // 2, columns // 2)), border)
    flat = tuple(value for row in values for value in row)
    kernel = op.TorchParameter(name, (1, 1, rows, columns), flat, trainable=False, persistent=False)
    filters = op.TorchMethod("expand", kernel, (channels, -1, -1, -1))
    return op.TorchCall("torch.nn.functional.conv2d", (padded, filters), {"groups": channels})


def onnx_filtered(x: op.OnnxValue, values: Sequence[Sequence[float]], channels: int, border: str) -> op.OnnxValue:
    rows, columns = len(values), len(values[0])
    padded = onnx_pad(x, ((rows // 2, rows // 2), (columns // 2, columns // 2)), border)
    attributes = {"kernel_shape": (rows, columns), "group": channels}
    return op.OnnxNode("Conv", (padded, filter_constant(values, channels)), attributes)


def check_borders(x: op.TensorType, border: str, rows: int, columns: int) -> None:
    size = x.image()
    check_border(border, rows // 2, size.h, "height")
    check_border(border, columns // 2, size.w, "width")
