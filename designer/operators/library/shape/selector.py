"""Chosen channels."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    Category,
    Example,
    OnnxConstant,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    Operator,
    ShapeError,
    TensorType,
    TorchExpr,
    TorchInput,
    TorchItem,
    image,
    int64,
    param,
)
from designer.operators.shapes import axis_of, known
from designer.texts import tr


class Selector(
    Operator,
    type="selector",
    title="Selector",
    category=Category.SHAPE,
    synonyms=("pick channels", "index", "select", "channel", "swizzle", "reorder"),
):
    """Pick channels, or places along another axis, in any order; a place may be picked more than once."""

    indices: tuple[int, ...] = param(
        default=(0,),
        min=-1_000_000,
        max=1_000_000,
        doc="The places picked, from 0 on; negative ones count from the end.",
    )
    axis: int = param(default=1, min=-8, max=7, doc="The axis that is picked from; 1 is the channels.")
    keep: bool = param(default=True, doc="Keep the axis where a single place is picked; otherwise it goes.")
    examples = (
        Example((image(4),), {"indices": (2, 0, -1, 2)}),
        Example((image(4),), {"indices": (1,), "keep": False}, "one channel without its axis"),
        Example((image(3, 4, 5),), {"indices": (3,), "axis": -2}, "one row"),
    )

    def _drops(self) -> bool:
        return not self.keep and len(self.indices) == 1

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0]
        axis = axis_of(self.axis, x)
        size = known(x, axis)
        if not self.indices:
            raise ShapeError(tr("nothing is picked"), remedy=tr("write at least one place"))
        for index in self.indices:
            if not -size <= index < size:
                raise ShapeError(
                    tr("there is no place {index} among the {size} of axis {axis}", index=index, size=size, axis=axis),
                    port="x",
                    remedy=tr("choose a smaller index; the first one is 0"),
                )
        if self._drops():
            return x.with_shape(*x.shape[:axis], *x.shape[axis + 1 :])
        return x.with_dim(axis, len(self.indices))

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        front = (slice(None),) * axis_of(self.axis, inputs[0])
        if self._drops():
            return TorchItem(TorchInput(0), (*front, self.indices[0]))
        return TorchItem(TorchInput(0), (*front, list(self.indices)))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        indices = OnnxConstant(self.indices[0], "int64") if self._drops() else int64(*self.indices)
        return OnnxNode("Gather", (OnnxInput(0), indices), {"axis": self.axis})

    def summary(self) -> str:
        shown = ",".join(str(index) for index in self.indices[:6]) + (",..." if len(self.indices) > 6 else "")
        return shown if self.axis == 1 else f"axis {self.axis} · {shown}"
