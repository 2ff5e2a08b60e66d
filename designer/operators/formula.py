"""One formula, written once, as torch data and as ONNX data.

For operators whose computation is arithmetic: color conversions, tone curves, ... A formula is a function of a
`Formula` and its inputs; `TorchFormula` and `OnnxFormula` are the two ways to write it down. Operands are values of the
same formula or plain numbers; at least one operand of every step is a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from designer.operators.onnx_data import OnnxConstant, OnnxNode, OnnxValue, int64, scalar
from designer.operators.torch_data import TorchCall, TorchExpr, TorchItem

Part = Any  # a value of the formula, or a number


class Formula(Protocol):
    """What a formula can be made of. Images are N x C x H x W."""

    def add(self, a: Part, b: Part) -> Part: ...
    def sub(self, a: Part, b: Part) -> Part: ...
    def mul(self, a: Part, b: Part) -> Part: ...
    def div(self, a: Part, b: Part) -> Part: ...
    def power(self, a: Part, exponent: float) -> Part: ...
    def maximum(self, a: Part, b: Part) -> Part: ...
    def minimum(self, a: Part, b: Part) -> Part: ...
    def less(self, a: Part, b: Part) -> Part: ...
    def equal(self, a: Part, b: Part) -> Part: ...
    def where(self, condition: Part, a: Part, b: Part) -> Part: ...
    def exp(self, a: Part) -> Part: ...
    def log(self, a: Part) -> Part: ...
    def floor(self, a: Part) -> Part: ...
    def channel(self, a: Part, index: int) -> Part: ...
    def channels(self, parts: Sequence[Part]) -> Part: ...


class TorchFormula:
    """Writes a formula as torch calls."""

    def _call(self, name: str, a: Part, b: Part) -> TorchExpr:
        return TorchCall(f"torch.{name}", (a, b))

    def add(self, a: Part, b: Part) -> TorchExpr:
        return self._call("add", a, b) if isinstance(a, TorchExpr) else self._call("add", b, a)

    def sub(self, a: Part, b: Part) -> TorchExpr:
        return self._call("sub", a, b) if isinstance(a, TorchExpr) else self._call("rsub", b, a)

    def mul(self, a: Part, b: Part) -> TorchExpr:
        return self._call("mul", a, b) if isinstance(a, TorchExpr) else self._call("mul", b, a)

    def div(self, a: Part, b: Part) -> TorchExpr:
        if isinstance(a, TorchExpr):
            return self._call("div", a, b)
        return self._call("mul", TorchCall("torch.reciprocal", (b,)), a)

    def power(self, a: Part, exponent: float) -> TorchExpr:
        return self._call("pow", a, exponent)

    def maximum(self, a: Part, b: Part) -> TorchExpr:
        if isinstance(b, TorchExpr):
            return self._call("maximum", a, b)
        return TorchCall("torch.clamp", (a,), {"min": b})

    def minimum(self, a: Part, b: Part) -> TorchExpr:
        if isinstance(b, TorchExpr):
            return self._call("minimum", a, b)
        return TorchCall("torch.clamp", (a,), {"max": b})

    def less(self, a: Part, b: Part) -> TorchExpr:
        return self._call("lt", a, b)

    def equal(self, a: Part, b: Part) -> TorchExpr:
        return self._call("eq", a, b)

    def where(self, condition: Part, a: Part, b: Part) -> TorchExpr:
        return TorchCall("torch.where", (condition, a, b))

    def exp(self, a: Part) -> TorchExpr:
        return TorchCall("torch.exp", (a,))

    def log(self, a: Part) -> TorchExpr:
        return TorchCall("torch.log", (a,))

    def floor(self, a: Part) -> TorchExpr:
        return TorchCall("torch.floor", (a,))

    def channel(self, a: Part, index: int) -> TorchExpr:
        return TorchItem(a, (slice(None), slice(index, index + 1)))

    def channels(self, parts: Sequence[Part]) -> TorchExpr:
        return TorchCall("torch.cat", (tuple(parts),), {"dim": 1})


class OnnxFormula:
    """Writes a formula as ONNX nodes."""

    def _node(self, op: str, *parts: Part) -> OnnxValue:
        return OnnxNode(op, tuple(part if isinstance(part, OnnxValue) else scalar(part) for part in parts))

    def add(self, a: Part, b: Part) -> OnnxValue:
        return self._node("Add", a, b)

    def sub(self, a: Part, b: Part) -> OnnxValue:
        return self._node("Sub", a, b)

    def mul(self, a: Part, b: Part) -> OnnxValue:
        return self._node("Mul", a, b)

    def div(self, a: Part, b: Part) -> OnnxValue:
        return self._node("Div", a, b)

    def power(self, a: Part, exponent: float) -> OnnxValue:
        return self._node("Pow", a, exponent)

    def maximum(self, a: Part, b: Part) -> OnnxValue:
        return self._node("Max", a, b)

    def minimum(self, a: Part, b: Part) -> OnnxValue:
        return self._node("Min", a, b)

    def less(self, a: Part, b: Part) -> OnnxValue:
        return self._node("Less", a, b)

    def equal(self, a: Part, b: Part) -> OnnxValue:
        return self._node("Equal", a, b)

    def where(self, condition: Part, a: Part, b: Part) -> OnnxValue:
        return self._node("Where", condition, a, b)

    def exp(self, a: Part) -> OnnxValue:
        return self._node("Exp", a)

    def log(self, a: Part) -> OnnxValue:
        return self._node("Log", a)

    def floor(self, a: Part) -> OnnxValue:
        return self._node("Floor", a)

    def channel(self, a: Part, index: int) -> OnnxValue:
        return OnnxNode("Slice", (a, int64(index), int64(index + 1), int64(1)))

    def channels(self, parts: Sequence[Part]) -> OnnxValue:
        return OnnxNode("Concat", tuple(parts), {"axis": 1})


def weighted(f: Formula, a: Part, weights: Sequence[float], offset: float = 0.0) -> Part:
    """The sum of an image's channels times `weights`, plus `offset`: one channel."""
    total: Part = None
    for index, weight in enumerate(weights):
        if weight == 0:
            continue
        term = f.mul(f.channel(a, index), weight) if weight != 1 else f.channel(a, index)
        total = term if total is None else f.add(total, term)
    return f.add(total, offset) if offset else total


def matrix(f: Formula, a: Part, rows: Sequence[Sequence[float]], offsets: Sequence[float] = (0.0, 0.0, 0.0)) -> Part:
    """An image whose channels are the `rows` of weights applied to the channels of `a`."""
    return f.channels([weighted(f, a, row, offset) for row, offset in zip(rows, offsets, strict=True)])


def filter_constant(values: Sequence[Sequence[float]], channels: int) -> OnnxValue:
    """One small filter for every channel, as Conv with groups wants it: channels x 1 x height x width."""
    one = OnnxConstant(((tuple(tuple(row) for row in values),),))
    return OnnxNode("Expand", (one, int64(channels, 1, len(values), len(values[0]))))
