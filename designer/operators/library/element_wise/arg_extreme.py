"""Positions of the largest or smallest values."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import axis_of


class ArgExtreme(
    op.Operator,
    type="arg_extreme",
    title="Arg extreme",
    category=op.Category.ELEMENT_WISE,
    synonyms=("argmax", "argmin", "index of maximum", "class", "label"),
):
    """The index of the largest or smallest value along an axis; of equal values the first or the last."""

    inputs = (op.Port("x", rank=(1, 2, 3, 4, 5, 6), dtypes=op.FLOATS),)

    operation: str = op.param(default="max", choices=("max", "min"), doc="The value that is searched.")
    axis: int = op.param(default=1, min=-8, max=7, doc="Axis of the search; 1 is the channels.")
    keep: bool = op.param(default=False, doc="Keep the axis as a dimension of 1; otherwise remove it.")
    last: bool = op.param(default=False, doc="Of equal values, use the last instead of the first.")
    examples = (
        op.Example((op.TensorType((op.BATCH, 10)),)),
        op.Example((op.image(),), {"operation": "min", "axis": -1, "keep": True}, "smallest, kept axis"),
        op.Example((op.image(),), {"last": True, "axis": 2}, "the last of equal values"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        axis = axis_of(self.axis, inputs[0])
        dims = list(inputs[0].shape)
        dims[axis : axis + 1] = [1] if self.keep else []
        return inputs[0].with_shape(*dims).with_dtype(op.DataType.INT64)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        axis = axis_of(self.axis, inputs[0])
        path = f"torch.arg{self.operation}"
        if not self.last:
            return op.TorchCall(path, (op.TorchInput(0), axis, self.keep))
        from_the_end = op.TorchCall(path, (op.TorchMethod("flip", op.TorchInput(0), (axis,)), axis, self.keep))
        size = op.TorchMethod("size", op.TorchInput(0), (axis,))
        return op.TorchCall("torch.rsub", (op.TorchMethod("add", from_the_end, (1,)), size))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        attributes = {"axis": self.axis, "keepdims": int(self.keep), "select_last_index": int(self.last)}
        return op.OnnxNode("ArgMax" if self.operation == "max" else "ArgMin", attributes=attributes)

    def summary(self) -> str:
        return f"{self.operation} · axis {self.axis}"
