"""Several values become one."""

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
    TensorType,
    TorchCall,
    TorchExpr,
    image,
    int64,
    param,
)
from designer.operators.shapes import axes_of

_FUNCTIONS = {
    "sum": ("torch.sum", "ReduceSum"),
    "mean": ("torch.mean", "ReduceMean"),
    "max": ("torch.amax", "ReduceMax"),
    "min": ("torch.amin", "ReduceMin"),
    "norm": ("torch.linalg.vector_norm", "ReduceL2"),
}


class Reduce(
    Operator,
    type="reduce",
    title="Reduce",
    category=Category.ELEMENT_WISE,
    synonyms=("sum", "mean", "average", "max", "min", "norm", "aggregate"),
):
    """Sum, mean, maximum, minimum or Euclidean norm over some axes."""

    inputs = (Port("x", rank=(1, 2, 3, 4, 5, 6), dtypes=FLOATS),)

    operation: str = param(default="mean", choices=tuple(_FUNCTIONS), doc="What is taken of the values.")
    axes: tuple[int, ...] = param(
        default=(1,), min=-8, max=7, doc="The axes that are taken together; 1 is the channels; empty: all."
    )
    keep: bool = param(default=True, doc="Keep the axes as dimensions of 1; otherwise they go.")
    examples = (
        Example((image(),)),
        Example((image(),), {"operation": "sum", "axes": (-1, 2), "keep": False}, "rows and columns"),
        Example((image(),), {"operation": "max", "axes": (0, 1, 2, 3), "keep": False}, "everything"),
        Example((image(),), {"operation": "min", "axes": ()}, "all axes"),
        Example((image(),), {"operation": "norm"}),
    )

    def _axes(self, x: TensorType) -> tuple[int, ...]:
        return axes_of(self.axes, x) or tuple(range(x.rank))

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0]
        gone = self._axes(x)
        if self.keep:
            return x.with_shape(*(1 if axis in gone else size for axis, size in enumerate(x.shape)))
        return x.with_shape(*(size for axis, size in enumerate(x.shape) if axis not in gone))

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        kwargs = {"dim": self._axes(inputs[0]), "keepdim": self.keep}
        return TorchCall(_FUNCTIONS[self.operation][0], kwargs=kwargs)

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        axes = int64(*self._axes(inputs[0]))
        return OnnxNode(_FUNCTIONS[self.operation][1], (OnnxInput(0), axes), {"keepdims": int(self.keep)})

    def summary(self) -> str:
        return f"{self.operation} · {','.join(str(axis) for axis in self.axes) or 'all axes'}"
