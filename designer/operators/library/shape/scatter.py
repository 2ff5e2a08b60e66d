"""Scatter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from designer.operators import api as op
from designer.operators.shapes import axis_of
from designer.texts import tr

_REDUCTIONS = {"none": "", "add": "sum", "mul": "prod", "min": "amin", "max": "amax"}


class Scatter(
    op.Operator,
    type="scatter",
    title="Scatter",
    category=op.Category.SHAPE,
    synonyms=("scatter elements", "index put", "write", "histogram", "splat"),
):
    """Write each of the `updates` at its index along an axis (torch.scatter), or combine it with the value there."""

    inputs = (
        op.Port("x", rank=(1, 2, 3, 4, 5), dtypes=op.FLOATS),
        op.Port("index", rank=(1, 2, 3, 4, 5), dtypes=(op.DataType.INT64,)),
        op.Port("updates", rank=(1, 2, 3, 4, 5), dtypes=op.FLOATS),
    )

    axis: int = op.param(default=1, min=-8, max=7, doc="Axis of the indices.")
    reduction: str = op.param(default="none", choices=tuple(_REDUCTIONS), doc="How values are combined.")
    examples = (
        op.Example(
            (op.TensorType((3, 4)), op.TensorType((3, 1), op.DataType.INT64), op.TensorType((3, 1))), {"axis": 1}
        ),
        op.Example(
            (op.TensorType((3, 4)), op.TensorType((3, 2), op.DataType.INT64), op.TensorType((3, 2))),
            {"axis": 1, "reduction": "add"},
            "sums",
        ),
    )
    exceptions: ClassVar[Mapping[str, str]] = {
        "onnx_random": "of several updates for one place, it is not defined which is written"
    }

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x, index, updates = inputs
        axis_of(self.axis, x)
        fits = index.rank == x.rank and all(
            one == other or (isinstance(one, int) and isinstance(other, int) and one <= other)
            for axis, (one, other) in enumerate(zip(index.shape, x.shape, strict=False))
            if axis != axis_of(self.axis, x)
        )
        if index.shape != updates.shape or not fits:
            raise op.ShapeError(
                tr(
                    "index {index} and updates {updates} must have the same shape, within {x}",
                    index=index,
                    updates=updates,
                    x=x,
                ),
                port="updates",
                remedy=tr("make the shapes equal, and not larger than x except along the axis"),
            )
        return x

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        axis = axis_of(self.axis, inputs[0])
        index: op.TorchExpr = op.TorchInput(1)
        from_end = op.TorchCall("torch.add", (index, op.TorchMethod("size", op.TorchInput(0), (axis,))))
        index = op.TorchCall("torch.where", (op.TorchCall("torch.lt", (index, 0)), from_end, index))
        arguments = (op.TorchInput(0), axis, index, op.TorchInput(2))
        if self.reduction == "none":
            return op.TorchCall("torch.scatter", arguments)
        return op.TorchCall("torch.scatter_reduce", (*arguments, _REDUCTIONS[self.reduction]))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        reads = (op.OnnxInput(0), op.OnnxInput(1), op.OnnxInput(2))
        return op.OnnxNode("ScatterElements", reads, {"axis": self.axis, "reduction": self.reduction})

    def summary(self) -> str:
        return f"axis {self.axis}" if self.reduction == "none" else f"{self.reduction} · axis {self.axis}"
