"""Constant tensors of any shape and element type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod

from designer.operators import api as op
from designer.texts import mark, tr, tr_data
from designer.units import dims_text

_REMEDY = mark("enter one number for all elements, or as many numbers as the shape has elements")
Numbers = tuple[int, ...] | tuple[float, ...] | tuple[bool, ...]


class TensorConstant(
    op.Operator,
    type="tensor_constant",
    title="Constant tensor",
    category=op.Category.INPUT_OUTPUT,
    synonyms=("constant", "buffer", "initializer", "fixed tensor", "indices", "mask"),
):
    """A constant tensor of any shape and element type: numbers from a parameter, or float32 values from the weights.

    With the batch size 1 or a lower rank, element-wise operators broadcast it.
    """

    inputs = ()

    shape: tuple[int, ...] = op.param(
        default=(1,), min=1, max=1_000_000_000, doc="Shape, outermost dimension first; empty for a single number."
    )
    dtype: str = op.param(default="float32", choices=op.ARRAY_TYPES, doc="Element type.")
    source: str = op.param(
        default="numbers",
        choices=("numbers", "weights"),
        doc="The numbers in 'numbers', or the tensor 'value' of the weights.",
    )
    numbers: str = op.param(
        default="0",
        visible_when=("source", "numbers"),
        multiline=True,
        doc="One number for all elements, or every element in order: 1,2,3. 1 is true.",
    )
    examples = (
        op.Example((), {"shape": (2, 3), "numbers": "0.5"}),
        op.Example((), {"shape": (4,), "dtype": "int64", "numbers": "3,1,0,2"}, "indices"),
        op.Example((), {"shape": (2, 2), "dtype": "bool", "numbers": "1,0,0,1"}, "truth values"),
        op.Example((), {"shape": (4, 3, 2), "source": "weights"}, "from the weights"),
    )

    def faults(self) -> Iterable[op.Fault]:
        if self.source == "weights":
            if self.dtype != "float32":
                yield op.Fault(
                    "dtype",
                    tr("weights are float32, not {dtype}", dtype=self.dtype),
                    tr("enter the numbers in 'numbers'"),
                )
            return
        try:
            count = len(numbers_of(self.numbers, self.dtype))
        except (ValueError, OverflowError):
            yield op.Fault(
                "numbers", tr("the values are not numbers of the type {dtype}", dtype=self.dtype), tr_data(_REMEDY)
            )
            return
        if count not in (1, prod(self.shape)):
            yield op.Fault(
                "numbers",
                tr(
                    "{count} values do not fill the shape {shape}", count=count, shape=dims_text(self.shape) or "scalar"
                ),
                tr_data(_REMEDY),
            )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return op.TensorType(self.shape, op.DataType(self.dtype))

    def _numbers(self) -> int | float | bool | Numbers:
        found = numbers_of(self.numbers, self.dtype)
        return found[0] if len(found) == 1 and self.shape else found

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        if self.source == "weights":
            return op.TorchParameter("value", self.shape, trainable=False)
        return op.TorchParameter(
            "value", self.shape, values=self._numbers(), trainable=False, persistent=False, dtype=self.dtype
        )

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        if self.source == "weights":
            return op.OnnxNode("Identity", (op.OnnxWeight("value"),))
        found = numbers_of(self.numbers, self.dtype)
        if len(found) == 1 and self.shape:
            return op.OnnxNode("Expand", (op.OnnxConstant(found[0], self.dtype), op.int64(*self.shape)))
        value = op.OnnxConstant(found if self.shape else found[0], self.dtype)
        if len(self.shape) < 2:
            return op.OnnxNode("Identity", (value,))
        return op.OnnxNode("Reshape", (value, op.int64(*self.shape)))

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        if self.source == "numbers":
            return ()
        return (op.Weight("value", self.shape, "value", init="zeros", trainable=False),)

    def summary(self) -> str:
        return (dims_text(self.shape) if prod(self.shape) > 1 else self.numbers)[:40]


@lru_cache(maxsize=512)
def numbers_of(text: str, dtype: str) -> Numbers:
    """The numbers in a comma-separated text. Raises ValueError for other text, and for numbers that `dtype` cannot hold."""
    parts = text.split(",")
    if op.DataType(dtype).is_float:
        return tuple(float(part) for part in parts)
    whole = tuple(int(part) for part in parts)
    if dtype == "bool":
        return tuple(bool(number) for number in whole)
    bits = 8 * op.DataType(dtype).itemsize
    low, high = (0, 2**bits) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    if any(not low <= number < high for number in whole):
        raise OverflowError(dtype)
    return whole
