"""Pooling to a given size."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxConstant,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    Operator,
    Port,
    Size2D,
    TensorType,
    TorchExpr,
    TorchModule,
    image,
    int64,
    param,
)


class AdaptivePooling(
    Operator,
    type="adaptive_pooling",
    title="Adaptive pooling",
    category=Category.POOLING,
    synonyms=("adaptive average pooling", "adaptiveavgpool2d", "adaptivemaxpool2d", "pool to size"),
):
    """Pool to a fixed size whatever the size of the input: windows are spread evenly and may overlap by one value."""

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    operation: str = param(default="average", choices=("average", "max"), doc="What is taken of a window.")
    size: Size2D = param(default=Size2D(1, 1), min=1, max=256, doc="Size of the result, width x height.")
    examples = (
        Example((image(3, 6, 8),), {"size": Size2D(4, 3)}),
        Example((image(3, 7, 5),), {"size": Size2D(3, 2)}, "uneven windows"),
        Example((image(3, 7, 5),), {"size": Size2D(3, 9), "operation": "max"}, "uneven windows, maximum"),
        Example((image(3, 6, 8),), {"size": Size2D(4, 3), "operation": "max"}, "maximum"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0].image()
        return inputs[0].with_shape(x.n, x.c, *self.size.hw)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        path = "torch.nn.AdaptiveAvgPool2d" if self.operation == "average" else "torch.nn.AdaptiveMaxPool2d"
        return TorchModule(path, {"output_size": self.size.hw})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        x = inputs[0].image()
        if self.size == Size2D(1, 1):
            return OnnxNode("GlobalAveragePool" if self.operation == "average" else "GlobalMaxPool")
        if x.h % self.size.height == 0 and x.w % self.size.width == 0:
            window = (x.h // self.size.height, x.w // self.size.width)
            op = "AveragePool" if self.operation == "average" else "MaxPool"
            return OnnxNode(op, attributes={"kernel_shape": window, "strides": window})
        if self.operation == "average":  # ONNX has no uneven windows: two products with averaging matrices
            rows = OnnxConstant(_averages(x.h, self.size.height))
            columns = OnnxNode("Transpose", (OnnxConstant(_averages(x.w, self.size.width)),), {"perm": (1, 0)})
            return OnnxNode("MatMul", (rows, OnnxNode("MatMul", (OnnxInput(0), columns))))
        return _maxima(_maxima(OnnxInput(0), x.h, self.size.height, 2), x.w, self.size.width, 3)

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


def _maxima(x: OnnxValue, size: int, count: int, axis: int) -> OnnxValue:
    parts: list[OnnxValue] = []
    for start, end in _windows(size, count):
        part = OnnxNode("Slice", (x, int64(start), int64(end), int64(axis)))
        parts.append(OnnxNode("ReduceMax", (part, int64(axis)), {"keepdims": 1}))
    return OnnxNode("Concat", tuple(parts), {"axis": axis})
