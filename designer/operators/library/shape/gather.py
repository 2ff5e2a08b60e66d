"""Gather."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from designer.operators import api as op
from designer.operators.shapes import axis_of
from designer.texts import tr


class Gather(
    op.Operator, type="gather", title="Gather", category=op.Category.SHAPE, synonyms=("take", "index select", "lookup")
):
    """Select values along an axis with a tensor of indices.

    "slices": a vector of indices selects whole slices. "elements": each index selects one value, and the indices
    have the shape of the result (torch.gather).
    """

    inputs = (op.Port("x"), op.Port("index", dtypes=(op.DataType.INT64,)))

    axis: int = op.param(default=1, min=-8, max=7, doc="Axis of selection.")
    mode: str = op.param(default="slices", choices=("slices", "elements"), doc="What one index selects.")
    wrap: bool = op.param(default=False, extension=True, doc="Negative indices count from the end.")
    examples = (
        op.Example((op.image(4), op.TensorType((3,), op.DataType.INT64))),
        op.Example(
            (op.TensorType((op.BATCH, 4, 5)), op.TensorType((op.BATCH, 2, 5), op.DataType.INT64)),
            {"mode": "elements"},
            "single values",
        ),
        op.Example((op.image(4), op.TensorType((3,), op.DataType.INT64)), {"wrap": True}, "from the end"),
    )
    exceptions: ClassVar[Mapping[str, str]] = {"onnx_random": "random indices can be out of range"}

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x, index = inputs
        axis = axis_of(self.axis, x)
        if self.mode == "slices":
            if index.rank != 1:
                raise op.ShapeError(
                    tr("the indices of slices must be a vector, not {index}", index=index),
                    port="index",
                    remedy=tr("flatten the indices, or choose another mode"),
                )
            return x.with_shape(*x.shape[:axis], index.shape[0], *x.shape[axis + 1 :])
        if index.rank != x.rank:
            raise op.ShapeError(
                tr("the indices {index} must have the same rank as {x}", index=index, x=x),
                port="index",
                remedy=tr("insert a Reshape or Unsqueeze layer before the indices, or choose another mode"),
            )
        for place, (size, wanted) in enumerate(zip(x.shape, index.shape, strict=True)):
            small = isinstance(size, int) and isinstance(wanted, int) and wanted <= size
            if place != axis and size != wanted and not small:
                raise op.ShapeError(
                    tr("the indices {index} are larger than {x} along axis {place}", index=index, x=x, place=place),
                    port="index",
                    remedy=tr("use indices of at most the size of the tensor"),
                )
        return x.with_shape(*index.shape)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        path = "torch.index_select" if self.mode == "slices" else "torch.gather"
        index: op.TorchExpr = op.TorchInput(1)
        if self.wrap:
            size = op.TorchMethod("size", op.TorchInput(0), (self.axis,))
            from_end = op.TorchCall("torch.add", (index, size))
            index = op.TorchCall("torch.where", (op.TorchCall("torch.lt", (index, 0)), from_end, index))
        return op.TorchCall(path, (op.TorchInput(0), self.axis, index))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        if self.mode == "slices":
            return op.OnnxNode("Gather", (op.OnnxInput(0), op.OnnxInput(1)), {"axis": self.axis})
        # ONNX requires equal dimensions along the other axes, torch uses the first values of larger ones
        axis = axis_of(self.axis, inputs[0])
        x: op.OnnxValue = op.OnnxInput(0)
        for place, (size, wanted) in enumerate(zip(inputs[0].shape, inputs[1].shape, strict=True)):
            if place != axis and size != wanted and isinstance(wanted, int):
                x = op.OnnxNode("Slice", (x, op.int64(0), op.int64(wanted), op.int64(place)))
        return op.OnnxNode("GatherElements", (x, op.OnnxInput(1)), {"axis": self.axis})

    def summary(self) -> str:
        return f"{self.mode} · axis {self.axis}"
