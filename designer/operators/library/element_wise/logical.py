"""Logic."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import broadcast

_FUNCTIONS = {
    "and": ("torch.logical_and", "And"),
    "or": ("torch.logical_or", "Or"),
    "xor": ("torch.logical_xor", "Xor"),
    "not": ("torch.logical_not", "Not"),
}
_TRUTH = op.TensorType((op.BATCH, 3, 4), op.DataType.BOOL)


class Logical(
    op.Operator,
    type="logical",
    title="Logical",
    category=op.Category.ELEMENT_WISE,
    synonyms=("and", "or", "xor", "not", "mask", "boolean"),
):
    """Combine truth values, for instance the results of Compare. Dimensions of 1 are broadcast."""

    inputs = (op.Port("a", dtypes=(op.DataType.BOOL,)), op.Port("b", dtypes=(op.DataType.BOOL,)))

    operation: str = op.param(default="and", choices=tuple(_FUNCTIONS), doc="Logical operation.")
    examples = (
        op.Example((_TRUTH, _TRUTH)),
        op.Example((_TRUTH, op.TensorType((4,), op.DataType.BOOL)), {"operation": "or"}, "broadcast"),
        op.Example((_TRUTH, _TRUTH), {"operation": "xor"}),
        op.Example((_TRUTH,), {"operation": "not"}),
    )

    def input_ports(self) -> tuple[op.Port, ...]:
        return self.inputs[:1] if self.operation == "not" else self.inputs

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0] if self.operation == "not" else broadcast(inputs[0], inputs[1])

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall(_FUNCTIONS[self.operation][0], tuple(op.TorchInput(i) for i in range(len(inputs))))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode(_FUNCTIONS[self.operation][1], tuple(op.OnnxInput(i) for i in range(len(inputs))))

    def summary(self) -> str:
        return self.operation
