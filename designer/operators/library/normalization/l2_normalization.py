"""L2 normalization."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import axis_of


class L2Normalization(
    op.Operator,
    type="l2_normalization",
    title="L2 normalization",
    category=op.Category.NORMALIZATION,
    synonyms=("unit length", "normalize vector", "cosine", "l2 norm"),
):
    """Divide the values along an axis by their Euclidean norm."""

    inputs = (op.Port("x", rank=(1, 2, 3, 4, 5), dtypes=op.FLOATS),)

    axis: int = op.param(default=1, min=-8, max=7, doc="Axis of the norm; 1 is the channels.")
    epsilon: float = op.param(default=1e-12, min=1e-12, max=1.0, doc="Lower bound of the norm, to avoid division by 0.")
    examples = (
        op.Example((op.image(3, 4, 5),)),
        op.Example((op.TensorType((op.BATCH, 6)),), {"axis": -1, "epsilon": 0.01}, "table"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        axis_of(self.axis, inputs[0])
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.normalize", kwargs={"dim": self.axis, "eps": self.epsilon})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        length = op.OnnxNode("ReduceL2", (op.OnnxInput(0), op.int64(self.axis)), {"keepdims": 1})
        return op.OnnxNode("Div", (op.OnnxInput(0), op.OnnxNode("Max", (length, op.scalar(self.epsilon)))))

    def summary(self) -> str:
        return f"axis {self.axis}"
