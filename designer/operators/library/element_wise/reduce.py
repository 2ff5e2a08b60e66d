"""Reduction over axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators import api as op
from designer.operators.shapes import axes_of

_FUNCTIONS = {
    "sum": ("torch.sum", "ReduceSum"),
    "mean": ("torch.mean", "ReduceMean"),
    "max": ("torch.amax", "ReduceMax"),
    "min": ("torch.amin", "ReduceMin"),
    "norm": ("torch.linalg.vector_norm", "ReduceL2"),
    "l1_norm": ("torch.linalg.vector_norm", "ReduceL1"),
    "product": ("torch.prod", "ReduceProd"),
    "sum_of_squares": ("torch.sum", "ReduceSumSquare"),
    "log_sum": ("torch.sum", "ReduceLogSum"),
    "log_sum_exp": ("torch.logsumexp", "ReduceLogSumExp"),
}


class Reduce(
    op.Operator,
    type="reduce",
    title="Reduce",
    category=op.Category.ELEMENT_WISE,
    synonyms=("sum", "mean", "average", "max", "min", "norm", "aggregate"),
):
    """Sum, mean, maximum, minimum or Euclidean norm over some axes."""

    inputs = (op.Port("x", rank=(1, 2, 3, 4, 5, 6), dtypes=op.FLOATS),)

    operation: str = op.param(default="mean", choices=tuple(_FUNCTIONS), doc="How the values are combined.")
    axes: tuple[int, ...] = op.param(default=(1,), min=-8, max=7, doc="Reduced axes; 1 is the channels; empty: all.")
    keep: bool = op.param(default=True, doc="Keep the axes as dimensions of 1; otherwise remove them.")
    examples = (
        op.Example((op.image(),)),
        op.Example((op.image(),), {"operation": "sum", "axes": (-1, 2), "keep": False}, "rows and columns"),
        op.Example((op.image(),), {"operation": "max", "axes": (0, 1, 2, 3), "keep": False}, "everything"),
        op.Example((op.image(),), {"operation": "min", "axes": ()}, "all axes"),
        op.Example((op.image(),), {"operation": "norm"}),
        op.Example((op.image(),), {"operation": "l1_norm", "axes": (2, 3)}),
        op.Example((op.image(2, 3, 4),), {"operation": "product", "axes": (1, 2), "keep": False}),
        op.Example((op.image(),), {"operation": "sum_of_squares"}),
        op.Example((op.image(),), {"operation": "log_sum_exp", "axes": (1, 3)}),
    )

    def _axes(self, x: op.TensorType) -> tuple[int, ...]:
        return axes_of(self.axes, x) or tuple(range(x.rank))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0]
        gone = self._axes(x)
        if self.keep:
            return x.with_shape(*(1 if axis in gone else size for axis, size in enumerate(x.shape)))
        return x.with_shape(*(size for axis, size in enumerate(x.shape) if axis not in gone))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        axes = self._axes(inputs[0])
        if self.operation == "product":  # torch takes one axis at a time
            made: op.TorchExpr = op.TorchInput(0)
            for axis in reversed(axes):
                made = op.TorchCall("torch.prod", (made, axis, self.keep))
            return made
        kwargs: dict[str, Any] = {"dim": axes, "keepdim": self.keep}
        if self.operation == "l1_norm":
            kwargs["ord"] = 1
        x = op.TorchCall("torch.square") if self.operation == "sum_of_squares" else op.TorchInput(0)
        found = op.TorchCall(_FUNCTIONS[self.operation][0], (x,), kwargs)
        return op.TorchCall("torch.log", (found,)) if self.operation == "log_sum" else found

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        axes = op.int64(*self._axes(inputs[0]))
        return op.OnnxNode(_FUNCTIONS[self.operation][1], (op.OnnxInput(0), axes), {"keepdims": int(self.keep)})

    def summary(self) -> str:
        return f"{self.operation} · {','.join(str(axis) for axis in self.axes) or 'all axes'}"
