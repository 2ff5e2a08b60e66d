"""One number for every channel."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    BATCH,
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

_FUNCTIONS = {
    "average": ("torch.mean", "ReduceMean"),
    "max": ("torch.amax", "ReduceMax"),
    "sum": ("torch.sum", "ReduceSum"),
}


class GlobalPooling(
    Operator,
    type="global_pooling",
    title="Global pooling",
    category=Category.POOLING,
    synonyms=("gap", "global average pooling", "global max pooling", "squeeze"),
):
    """Replace every channel by one number: the average, maximum or sum of all its positions."""

    inputs = (Port("x", rank=(3, 4, 5), dtypes=FLOATS),)

    operation: str = param(default="average", choices=tuple(_FUNCTIONS), doc="What is taken of a channel.")
    keep: bool = param(default=True, doc="Keep height and width as dimensions of 1; otherwise they go.")
    examples = (
        Example((image(3, 4, 5),)),
        Example((image(3, 4, 5),), {"operation": "max", "keep": False}, "maximum, flat"),
        Example((TensorType((BATCH, 3, 7)),), {"operation": "sum"}, "sequence"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0]
        return x.with_shape(*x.shape[:2], *((1,) * (x.rank - 2) if self.keep else ()))

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        axes = tuple(range(2, inputs[0].rank))
        return TorchCall(_FUNCTIONS[self.operation][0], kwargs={"dim": axes, "keepdim": self.keep})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        axes = int64(*range(2, inputs[0].rank))
        return OnnxNode(_FUNCTIONS[self.operation][1], (OnnxInput(0), axes), {"keepdims": int(self.keep)})

    def summary(self) -> str:
        return self.operation
