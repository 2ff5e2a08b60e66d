"""Selection of channels."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import axis_of, known
from designer.texts import tr


class Selector(
    op.Operator,
    type="selector",
    title="Selector",
    category=op.Category.SHAPE,
    synonyms=("pick channels", "index", "select", "channel", "swizzle", "reorder"),
):
    """Select channels, or indices along another axis, in any order; an index can be selected more than once."""

    indices: tuple[int, ...] = op.param(
        default=(0,),
        min=-1_000_000,
        max=1_000_000,
        doc="Selected indices, starting at 0; negative ones count from the end.",
    )
    axis: int = op.param(default=1, min=-8, max=7, doc="Axis of selection; 1 is the channels.")
    keep: bool = op.param(default=True, doc="Keep the axis if a single index is selected; otherwise remove it.")
    examples = (
        op.Example((op.image(4),), {"indices": (2, 0, -1, 2)}),
        op.Example((op.image(4),), {"indices": (1,), "keep": False}, "one channel without its axis"),
        op.Example((op.image(3, 4, 5),), {"indices": (3,), "axis": -2}, "one row"),
    )

    def _drops(self) -> bool:
        return not self.keep and len(self.indices) == 1

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0]
        axis = axis_of(self.axis, x)
        size = known(x, axis)
        if not self.indices:
            raise op.ShapeError(tr("no index is selected"), remedy=tr("enter at least one index"))
        for index in self.indices:
            if not -size <= index < size:
                raise op.ShapeError(
                    tr(
                        "index {index} is out of range for axis {axis} of size {size}",
                        index=index,
                        size=size,
                        axis=axis,
                    ),
                    port="x",
                    remedy=tr("choose a smaller index; the first one is 0"),
                )
        if self._drops():
            return x.with_shape(*x.shape[:axis], *x.shape[axis + 1 :])
        return x.with_dim(axis, len(self.indices))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        front = (slice(None),) * axis_of(self.axis, inputs[0])
        if self._drops():
            return op.TorchItem(op.TorchInput(0), (*front, self.indices[0]))
        return op.TorchItem(op.TorchInput(0), (*front, list(self.indices)))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        indices = op.OnnxConstant(self.indices[0], "int64") if self._drops() else op.int64(*self.indices)
        return op.OnnxNode("Gather", (op.OnnxInput(0), indices), {"axis": self.axis})

    def summary(self) -> str:
        shown = ",".join(str(index) for index in self.indices[:6]) + (",..." if len(self.indices) > 6 else "")
        return shown if self.axis == 1 else f"axis {self.axis} · {shown}"
