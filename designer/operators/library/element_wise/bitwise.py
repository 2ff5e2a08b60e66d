"""Operations on the bits of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators import api as op
from designer.operators.shapes import broadcast

_FUNCTIONS = {
    "and": ("torch.bitwise_and", "BitwiseAnd"),
    "or": ("torch.bitwise_or", "BitwiseOr"),
    "xor": ("torch.bitwise_xor", "BitwiseXor"),
    "not": ("torch.bitwise_not", "BitwiseNot"),
    "shift_left": ("torch.bitwise_left_shift", "BitShift"),
    "shift_right": ("torch.bitwise_right_shift", "BitShift"),
}
_SIGNED = (op.DataType.INT64, op.DataType.INT32, op.DataType.INT16, op.DataType.INT8)
_NUMBERS = op.TensorType((op.BATCH, 3, 4), op.DataType.INT64)
_BYTES = op.TensorType((op.BATCH, 3, 4), op.DataType.UINT8)


class Bitwise(
    op.Operator,
    type="bitwise",
    title="Bitwise",
    category=op.Category.ELEMENT_WISE,
    synonyms=("bit and", "bit or", "bit xor", "shift", "hash"),
):
    """Combine integers bit by bit, or shift the bits of a by b. Shifts take unsigned integers (uint8), as in ONNX."""

    operation: str = op.param(default="and", choices=tuple(_FUNCTIONS), doc="Operation on bits.")
    examples = (
        op.Example((_NUMBERS, _NUMBERS)),
        op.Example((_NUMBERS, _NUMBERS), {"operation": "or"}),
        op.Example((_NUMBERS, op.TensorType((4,), op.DataType.INT64)), {"operation": "xor"}, "broadcast"),
        op.Example((_NUMBERS,), {"operation": "not"}),
        op.Example((_BYTES, _BYTES), {"operation": "shift_left"}),
        op.Example((_BYTES, _BYTES), {"operation": "shift_right"}),
    )
    inputs = (op.Port("a", dtypes=(*_SIGNED, op.DataType.UINT8)), op.Port("b", dtypes=(*_SIGNED, op.DataType.UINT8)))

    def input_ports(self) -> tuple[op.Port, ...]:
        if self.operation == "not":
            return self.inputs[:1]
        if self.operation.startswith("shift"):
            return op.Port("a", dtypes=(op.DataType.UINT8,)), op.Port("b", dtypes=(op.DataType.UINT8,))
        return self.inputs

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0] if self.operation == "not" else broadcast(inputs[0], inputs[1])

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall(_FUNCTIONS[self.operation][0], tuple(op.TorchInput(i) for i in range(len(inputs))))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        attributes: dict[str, Any] = {}
        if self.operation.startswith("shift"):
            attributes["direction"] = self.operation.removeprefix("shift_").upper()
        reads = tuple(op.OnnxInput(i) for i in range(len(inputs)))
        return op.OnnxNode(_FUNCTIONS[self.operation][1], reads, attributes)

    def summary(self) -> str:
        return self.operation.replace("_", " ")
