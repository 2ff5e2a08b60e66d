"""Global pooling."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op

_FUNCTIONS = {
    "average": ("torch.mean", "ReduceMean"),
    "max": ("torch.amax", "ReduceMax"),
    "sum": ("torch.sum", "ReduceSum"),
}


class GlobalPooling(
    op.Operator,
    type="global_pooling",
    title="Global pooling",
    category=op.Category.POOLING,
    synonyms=("gap", "global average pooling", "global max pooling", "squeeze"),
):
    """Reduce each channel to the average, maximum or sum over all positions."""

    inputs = (op.Port("x", rank=(3, 4, 5), dtypes=op.FLOATS),)

    operation: str = op.param(
        default="average", choices=tuple(_FUNCTIONS), doc="How the values of a channel are combined."
    )
    keep: bool = op.param(default=True, doc="Keep height and width as dimensions of 1; otherwise remove them.")
    examples = (
        op.Example((op.image(3, 4, 5),)),
        op.Example((op.image(3, 4, 5),), {"operation": "max", "keep": False}, "maximum, flat"),
        op.Example((op.TensorType((op.BATCH, 3, 7)),), {"operation": "sum"}, "sequence"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0]
        return x.with_shape(*x.shape[:2], *((1,) * (x.rank - 2) if self.keep else ()))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        axes = tuple(range(2, inputs[0].rank))
        return op.TorchCall(_FUNCTIONS[self.operation][0], kwargs={"dim": axes, "keepdim": self.keep})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        axes = op.int64(*range(2, inputs[0].rank))
        return op.OnnxNode(_FUNCTIONS[self.operation][1], (op.OnnxInput(0), axes), {"keepdims": int(self.keep)})

    def summary(self) -> str:
        return self.operation
