"""Arithmetic expressions as numbers: `3*16`, `2**5`, `(64-32)/2`. The text is parsed with `ast` and never executed."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction

from designer.operators.params import format_float
from designer.texts import tr

MAX_LENGTH = 120  # characters of an expression
MAX_POWER = 64
MAX_BITS = 512  # of the numerator and denominator of intermediate results
NUMBERS = ("int", "float", "size2d", "size3d", "size2d?", "ints", "floats")
_TIMES = re.compile(r"\s*[x×]\s*")
_PLAIN = re.compile(r"\s*[+-]?[\d.]*([eE][+-]?\d*)?\s*\Z")
_DIGIT, _SIGN = re.compile(r"\d"), re.compile(r"[-+*/%()]")
_SUMS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
    ast.Mod: operator.mod,
}


class ExpressionError(ValueError):
    """The text is not a supported expression; the message names the violated rule."""


def is_expression(text: str) -> bool:
    """Whether a text looks like an expression: it has a digit and an operator or parentheses, and is not a plain number."""
    return bool(_DIGIT.search(text) and _SIGN.search(text)) and not _PLAIN.match(text)


def evaluate(text: str) -> Fraction:
    """The exact value of an expression of numbers, + - * / // % ** and parentheses. Raises ExpressionError otherwise."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            tr(
                "an expression can have at most {most} characters, this one has {count}",
                most=MAX_LENGTH,
                count=len(text),
            )
        )
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ExpressionError(
            tr("'{sum}' is not a valid expression; write for example 3*16 or (64-32)/2", sum=text.strip())
        ) from None
    return _value(tree.body)


def worked_out(kind: str, text: str) -> str:
    """The text of a parameter of this kind with its expressions evaluated: `2*8 x 3` -> `16x3`.

    Raises ExpressionError, also if an integer is required and an expression has another value.
    """
    if kind in ("int", "float"):
        return _text(evaluate(text), whole=kind == "int")
    if kind.startswith("size"):
        return "x".join(_text(evaluate(part), whole=True) for part in _TIMES.split(text.strip()))
    return ",".join(_text(evaluate(part), whole=kind == "ints") for part in text.split(","))


def _value(node: ast.expr) -> Fraction:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        try:
            return _bounded(Fraction(str(node.value)))
        except (ValueError, OverflowError):  # a number with too many digits, or an infinite one
            raise ExpressionError(tr("a number in the expression is too large")) from None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        value = _value(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow):
            return _power(left, right)
        step = _SUMS.get(type(node.op))
        if step is not None:
            try:
                return _bounded(step(left, right))
            except ZeroDivisionError:
                raise ExpressionError(tr("the expression divides by zero")) from None
    raise ExpressionError(tr("an expression can contain only numbers, + - * / // % ** and parentheses"))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > MAX_POWER:
        raise ExpressionError(tr("an exponent must be an integer from -{most} to {most}", most=MAX_POWER))
    if base == 0 and exponent < 0:
        raise ExpressionError(tr("the expression divides by zero"))
    return _bounded(Fraction(base ** int(exponent)))


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise ExpressionError(tr("a number in the expression is too large"))
    return value


def _text(value: Fraction, *, whole: bool) -> str:
    if not whole:
        return format_float(float(value))
    if value.denominator != 1:
        raise ExpressionError(tr("{value} is not an integer", value=format_float(float(value))))
    return str(value.numerator)
