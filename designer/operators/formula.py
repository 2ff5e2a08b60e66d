"""Formulas that are written once and converted to torch data and ONNX data.

For operators whose computation is arithmetic, such as color conversions and tone curves. A formula is a function of a
`Formula` and its inputs; `TorchFormula` and `OnnxFormula` build the two forms. Operands are values of the same formula or
plain numbers; at least one operand of every step is a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from designer.operators.onnx_data import OnnxConstant, OnnxNode, OnnxValue, int64, scalar
from designer.operators.torch_data import TorchCall, TorchExpr, TorchItem

Operand = Any  # a value of the formula, or a number


class Formula(Protocol):
    """The operations of a formula. Images are N x C x H x W."""

    def add(self, a: Operand, b: Operand) -> Operand: ...
    def sub(self, a: Operand, b: Operand) -> Operand: ...
    def mul(self, a: Operand, b: Operand) -> Operand: ...
    def div(self, a: Operand, b: Operand) -> Operand: ...
    def power(self, a: Operand, exponent: float) -> Operand: ...
    def maximum(self, a: Operand, b: Operand) -> Operand: ...
    def minimum(self, a: Operand, b: Operand) -> Operand: ...
    def less(self, a: Operand, b: Operand) -> Operand: ...
    def equal(self, a: Operand, b: Operand) -> Operand: ...
    def where(self, condition: Operand, a: Operand, b: Operand) -> Operand: ...
    def exp(self, a: Operand) -> Operand: ...
    def log(self, a: Operand) -> Operand: ...
    def floor(self, a: Operand) -> Operand: ...
    def channel(self, a: Operand, index: int) -> Operand: ...
    def channels(self, parts: Sequence[Operand]) -> Operand: ...


class TorchFormula:
    """Builds a formula from torch calls."""

    def _call(self, name: str, a: Operand, b: Operand) -> TorchExpr:
        return TorchCall(f"torch.{name}", (a, b))

    def add(self, a: Operand, b: Operand) -> TorchExpr:
        return self._call("add", a, b) if isinstance(a, TorchExpr) else self._call("add", b, a)

    def sub(self, a: Operand, b: Operand) -> TorchExpr:
        return self._call("sub", a, b) if isinstance(a, TorchExpr) else self._call("rsub", b, a)

    def mul(self, a: Operand, b: Operand) -> TorchExpr:
        return self._call("mul", a, b) if isinstance(a, TorchExpr) else self._call("mul", b, a)

    def div(self, a: Operand, b: Operand) -> TorchExpr:
        if isinstance(a, TorchExpr):
            return self._call("div", a, b)
        return self._call("mul", TorchCall("torch.reciprocal", (b,)), a)

    def power(self, a: Operand, exponent: float) -> TorchExpr:
        return self._call("pow", a, exponent)

    def maximum(self, a: Operand, b: Operand) -> TorchExpr:
        if isinstance(b, TorchExpr):
            return self._call("maximum", a, b)
        return TorchCall("torch.clamp", (a,), {"min": b})

    def minimum(self, a: Operand, b: Operand) -> TorchExpr:
        if isinstance(b, TorchExpr):
            return self._call("minimum", a, b)
        return TorchCall("torch.clamp", (a,), {"max": b})

    def less(self, a: Operand, b: Operand) -> TorchExpr:
        return self._call("lt", a, b)

    def equal(self, a: Operand, b: Operand) -> TorchExpr:
        return self._call("eq", a, b)

    def where(self, condition: Operand, a: Operand, b: Operand) -> TorchExpr:
        return TorchCall("torch.where", (condition, a, b))

    def exp(self, a: Operand) -> TorchExpr:
        return TorchCall("torch.exp", (a,))

    def log(self, a: Operand) -> TorchExpr:
        return TorchCall("torch.log", (a,))

    def floor(self, a: Operand) -> TorchExpr:
        return TorchCall("torch.floor", (a,))

    def channel(self, a: Operand, index: int) -> TorchExpr:
        return TorchItem(a, (slice(None), slice(index, index + 1)))

    def channels(self, parts: Sequence[Operand]) -> TorchExpr:
        return TorchCall("torch.cat", (tuple(parts),), {"dim": 1})


class OnnxFormula:
    """Builds a formula from ONNX nodes."""

    def _node(self, op: str, *parts: Operand) -> OnnxValue:
        return OnnxNode(op, tuple(part if isinstance(part, OnnxValue) else scalar(part) for part in parts))

    def add(self, a: Operand, b: Operand) -> OnnxValue:
        return self._node("Add", a, b)

    def sub(self, a: Operand, b: Operand) -> OnnxValue:
        return self._node("Sub", a, b)

    def mul(self, a: Operand, b: Operand) -> OnnxValue:
        return self._node("Mul", a, b)

    def div(self, a: Operand, b: Operand) -> OnnxValue:
        return self._node("Div", a, b)

    def power(self, a: Operand, exponent: float) -> OnnxValue:
        return self._node("Pow", a, exponent)

    def maximum(self, a: Operand, b: Operand) -> OnnxValue:
        return self._node("Max", a, b)

    def minimum(self, a: Operand, b: Operand) -> OnnxValue:
        return self._node("Min", a, b)

    def less(self, a: Operand, b: Operand) -> OnnxValue:
        return self._node("Less", a, b)

    def equal(self, a: Operand, b: Operand) -> OnnxValue:
        return self._node("Equal", a, b)

    def where(self, condition: Operand, a: Operand, b: Operand) -> OnnxValue:
        return self._node("Where", condition, a, b)

    def exp(self, a: Operand) -> OnnxValue:
        return self._node("Exp", a)

    def log(self, a: Operand) -> OnnxValue:
        return self._node("Log", a)

    def floor(self, a: Operand) -> OnnxValue:
        return self._node("Floor", a)

    def channel(self, a: Operand, index: int) -> OnnxValue:
        return OnnxNode("Slice", (a, int64(index), int64(index + 1), int64(1)))

    def channels(self, parts: Sequence[Operand]) -> OnnxValue:
        return OnnxNode("Concat", tuple(parts), {"axis": 1})


def weighted(f: Formula, a: Operand, weights: Sequence[float], offset: float = 0.0) -> Operand:
    """The weighted sum of an image's channels plus `offset`, as one channel."""
    total: Operand = None
    for index, weight in enumerate(weights):
        if weight == 0:
            continue
        term = f.mul(f.channel(a, index), weight) if weight != 1 else f.channel(a, index)
        total = term if total is None else f.add(total, term)
    return f.add(total, offset) if offset else total


def matrix(
    f: Formula, a: Operand, rows: Sequence[Sequence[float]], offsets: Sequence[float] = (0.0, 0.0, 0.0)
) -> Operand:
    """An image whose channels are the `rows` of weights applied to the channels of `a`."""
    return f.channels([weighted(f, a, row, offset) for row, offset in zip(rows, offsets, strict=True)])


def filter_constant(values: Sequence[Sequence[float]], channels: int) -> OnnxValue:
    """One filter for every channel, as a grouped Conv expects it: channels x 1 x height x width."""
    one = OnnxConstant(((tuple(tuple(row) for row in values),),))
    return OnnxNode("Expand", (one, int64(channels, 1, len(values), len(values[0]))))
