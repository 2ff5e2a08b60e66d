"""Vectors of length 1."""

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
    scalar,
)
from designer.operators.shapes import axis_of


class L2Normalization(
    Operator,
    type="l2_normalization",
    title="L2 normalization",
    category=Category.NORMALISATION,
    synonyms=("unit length", "normalize vector", "cosine", "l2 norm"),
):
    """Divide the values along an axis by their Euclidean length."""

    inputs = (Port("x", rank=(1, 2, 3, 4, 5), dtypes=FLOATS),)

    axis: int = param(default=1, min=-8, max=7, doc="The axis along which the length is taken; 1 is the channels.")
    epsilon: float = param(default=1e-12, min=1e-12, max=1.0, doc="Smallest length that is divided by.")
    examples = (Example((image(3, 4, 5),)), Example((TensorType((BATCH, 6)),), {"axis": -1, "epsilon": 0.01}, "table"))

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        axis_of(self.axis, inputs[0])
        return inputs[0]

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.normalize", kwargs={"dim": self.axis, "eps": self.epsilon})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        length = OnnxNode("ReduceL2", (OnnxInput(0), int64(self.axis)), {"keepdims": 1})
        return OnnxNode("Div", (OnnxInput(0), OnnxNode("Max", (length, scalar(self.epsilon)))))

    def summary(self) -> str:
        return f"axis {self.axis}"
