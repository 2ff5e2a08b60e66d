"""Adaptive pooling."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class AdaptivePooling(
    op.Operator,
    type="adaptive_pooling",
    title="Adaptive pooling",
    category=op.Category.POOLING,
    synonyms=("adaptive average pooling", "adaptiveavgpool2d", "adaptivemaxpool2d", "pool to size"),
):
    """Pool to a fixed output size; windows are distributed evenly and can overlap by one value."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    operation: str = op.param(
        default="average", choices=("average", "max"), doc="How the values of a window are combined."
    )
    size: op.Size2D = op.param(default=op.Size2D(1, 1), min=1, max=256, doc="Output size, width x height.")
    examples = (
        op.Example((op.image(3, 6, 8),), {"size": op.Size2D(4, 3)}),
        op.Example((op.image(3, 7, 5),), {"size": op.Size2D(3, 2)}, "uneven windows"),
        op.Example((op.image(3, 7, 5),), {"size": op.Size2D(3, 9), "operation": "max"}, "uneven windows, maximum"),
        op.Example((op.image(3, 6, 8),), {"size": op.Size2D(4, 3), "operation": "max"}, "maximum"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        return inputs[0].with_shape(x.n, x.c, *self.size.hw)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        path = "torch.nn.AdaptiveAvgPool2d" if self.operation == "average" else "torch.nn.AdaptiveMaxPool2d"
        return op.TorchModule(path, {"output_size": self.size.hw})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        x = inputs[0].image()
        if self.size == op.Size2D(1, 1):
            return op.OnnxNode("GlobalAveragePool" if self.operation == "average" else "GlobalMaxPool")
        if x.h % self.size.height == 0 and x.w % self.size.width == 0:
            window = (x.h // self.size.height, x.w // self.size.width)
            kind = "AveragePool" if self.operation == "average" else "MaxPool"
            return op.OnnxNode(kind, attributes={"kernel_shape": window, "strides": window})
        if self.operation == "average":  # ONNX does not support uneven windows: two products with averaging matrices
            rows = op.OnnxConstant(_averages(x.h, self.size.height))
            columns = op.OnnxNode("Transpose", (op.OnnxConstant(_averages(x.w, self.size.width)),), {"perm": (1, 0)})
            return op.OnnxNode("MatMul", (rows, op.OnnxNode("MatMul", (op.OnnxInput(0), columns))))
        return _maxima(_maxima(op.OnnxInput(0), x.h, self.size.height, 2), x.w, self.size.width, 3)

    def summary(self) -> str:
        return f"{self.operation} to {self.size}"


def _windows(size: int, count: int) -> list[tuple[int, int]]:
    """torch's windows: from floor(i * size / count) to ceil((i + 1) * size / count)."""
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _averages(size: int, count: int) -> tuple[tuple[float, ...], ...]:
    return tuple(
        tuple(1 / (end - start) if start <= place < end else 0.0 for place in range(size))
        for start, end in _windows(size, count)
    )


def _maxima(x: op.OnnxValue, size: int, count: int, axis: int) -> op.OnnxValue:
    parts: list[op.OnnxValue] = []
    for start, end in _windows(size, count):
        part = op.OnnxNode("Slice", (x, op.int64(start), op.int64(end), op.int64(axis)))
        parts.append(op.OnnxNode("ReduceMax", (part, op.int64(axis)), {"keepdims": 1}))
    return op.OnnxNode("Concat", tuple(parts), {"axis": axis})
