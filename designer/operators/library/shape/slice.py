"""Slice."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import axis_of, known
from designer.texts import tr


class Slice(
    op.Operator,
    type="slice",
    title="Slice",
    category=op.Category.SHAPE,
    synonyms=("range", "narrow", "cut", "sub tensor", "channel range"),
):
    """Keep the values from `start` (inclusive) to `end` (exclusive) along an axis; negative indices count from the end."""

    axis: int = op.param(default=1, min=-8, max=7, doc="Axis that is cut; 1 is the channels.")
    start: int = op.param(default=0, min=-1_000_000_000, max=1_000_000_000, doc="First index that is kept.")
    end: int = op.param(
        default=0, min=-1_000_000_000, max=1_000_000_000, doc="First index that is not kept; 0: keep all to the end."
    )
    step: int = op.param(default=1, min=1, max=1_000_000, doc="Keep every n-th index.")
    examples = (
        op.Example((op.image(6),), {"start": 1, "end": 4}),
        op.Example((op.image(3, 8, 9),), {"axis": -1, "start": -6, "end": -1, "step": 2}, "from the end"),
        op.Example((op.image(3, 8, 9),), {"axis": 2, "start": 3}, "to the end"),
    )

    def _slice(self) -> slice:
        return slice(self.start, self.end or None, None if self.step == 1 else self.step)

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        axis = axis_of(self.axis, inputs[0])
        size = known(inputs[0], axis)
        kept = self._length(size)
        if kept < 1:
            raise op.ShapeError(
                tr(
                    "the range {start} to {end} of axis {axis} with size {size} is empty",
                    size=size,
                    axis=axis,
                    start=self.start,
                    end=self.end or "the end",
                ),
                port="x",
                remedy=tr("choose an end after the start"),
            )
        return inputs[0].with_dim(axis, kept)

    def _length(self, size: int) -> int:
        """How many indices of an axis are kept; below 1 for none. Arithmetic, so that it holds for symbolic sizes too."""
        start = max(size + self.start, 0) if self.start < 0 else self.start
        end = size if not self.end else size + self.end if self.end < 0 else min(self.end, size)
        return -(-(end - start) // self.step)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        axis = axis_of(self.axis, inputs[0])
        return op.TorchItem(op.TorchInput(0), (*(slice(None),) * axis, self._slice()))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        end = self.end or 2**63 - 1
        return op.OnnxNode(
            "Slice", (op.OnnxInput(0), op.int64(self.start), op.int64(end), op.int64(self.axis), op.int64(self.step))
        )

    def summary(self) -> str:
        step = "" if self.step == 1 else f":{self.step}"
        return f"axis {self.axis} · {self.start}:{self.end or ''}{step}"
