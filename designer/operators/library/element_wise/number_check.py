"""Tests for NaN and infinite values."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op

_FUNCTIONS = {
    "nan": "torch.isnan",
    "infinite": "torch.isinf",
    "positive_infinite": "torch.isposinf",
    "negative_infinite": "torch.isneginf",
}


class NumberCheck(
    op.Operator,
    type="number_check",
    title="Number check",
    category=op.Category.ELEMENT_WISE,
    synonyms=("isnan", "isinf", "not a number", "infinite", "finite"),
):
    """True where a value is NaN or infinite. Use it with Where to replace such values."""

    inputs = (op.Port("x", dtypes=op.FLOATS),)

    test: str = op.param(default="nan", choices=tuple(_FUNCTIONS), doc="Values for which the result is true.")
    examples = tuple(op.Example((op.image(2, 3, 4),), {"test": name}, name) for name in _FUNCTIONS)

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0].with_dtype(op.DataType.BOOL)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall(_FUNCTIONS[self.test])

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        if self.test == "nan":
            return op.OnnxNode("IsNaN")
        attributes = {
            "detect_positive": int(self.test != "negative_infinite"),
            "detect_negative": int(self.test != "positive_infinite"),
        }
        return op.OnnxNode("IsInf", attributes=attributes)

    def summary(self) -> str:
        return self.test.replace("_", " ")
