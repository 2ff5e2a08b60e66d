"""Where."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import broadcast

_TRUTH = op.TensorType((op.BATCH, 3, 4), op.DataType.BOOL)


class Where(
    op.Operator,
    type="where",
    title="Where",
    category=op.Category.ELEMENT_WISE,
    synonyms=("select", "if", "mask", "choose"),
):
    """Select a where the condition is true, b otherwise. Dimensions of 1 are broadcast."""

    inputs = (op.Port("condition", dtypes=(op.DataType.BOOL,)), op.Port("a"), op.Port("b"))
    examples = (
        op.Example((op.image(1).with_dtype(op.DataType.BOOL), op.image(), op.image())),
        op.Example(
            (op.TensorType((4,), op.DataType.BOOL), op.TensorType((op.BATCH, 4)), op.TensorType((1,))), name="vector"
        ),
        op.Example((_TRUTH, _TRUTH, op.TensorType((4,), op.DataType.BOOL)), name="truth values"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        values = broadcast(inputs[1], inputs[2])
        shape = broadcast(inputs[0], values.with_dtype(op.DataType.BOOL), "condition").shape
        return values.with_shape(*shape)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.where", (op.TorchInput(0), op.TorchInput(1), op.TorchInput(2)))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        condition, a, b = (op.OnnxInput(index) for index in range(3))
        if inputs[1].dtype is op.DataType.BOOL:  # for which ONNX Runtime has no Where
            chosen = op.OnnxNode("And", (condition, a)), op.OnnxNode("And", (op.OnnxNode("Not", (condition,)), b))
            return op.OnnxNode("Or", chosen)
        return op.OnnxNode("Where", (condition, a, b))
