"""Recipes: formulas entered by the user, parsed against an allow-list and evaluated with numpy.

A recipe is never passed to Python's eval. It can use the given names, numbers, + - * / ** %, comparisons,
parentheses and the functions in `FUNCTIONS`. Comparisons return 1.0 or 0.0.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from designer.texts import tr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_LENGTH = 1000
MAX_DEPTH = 32
NAMES = ("a", "b", "alpha", "x", "y")

LARGEST = 3.4028234e38  # of float32


class RecipeError(ValueError):
    """An invalid recipe. The message has the column (from 1) if there is one; `remedy` says what to do."""

    def __init__(self, message: str, remedy: str, column: int | None = None) -> None:
        super().__init__(f"the recipe {message}" if column is None else f"the recipe, at column {column}: {message}")
        self.column = column
        self.remedy = remedy


# name -> (numpy function, number of arguments); resolved when a recipe runs, so that parsing does not import numpy
FUNCTIONS: Mapping[str, tuple[str, int]] = {
    "abs": ("absolute", 1),
    "sqrt": ("sqrt", 1),
    "exp": ("exp", 1),
    "log": ("log", 1),
    "sin": ("sin", 1),
    "cos": ("cos", 1),
    "floor": ("floor", 1),
    "round": ("round", 1),
    "sign": ("sign", 1),
    "min": ("minimum", 2),
    "max": ("maximum", 2),
    "clip": ("clip", 3),
    "where": ("where", 3),
}
_BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
    ast.Mod: "mod",
}
_COMPARE: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
}
_USE = "use a, b, alpha, x, y, numbers, + - * / ** %, comparisons, brackets and " + ", ".join(FUNCTIONS)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A parsed recipe: `program` is a tree of ("=number", v), ("=name", n) or (numpy function, operands)."""

    text: str
    names: frozenset[str]
    program: tuple[Any, ...]

    def __call__(self, **values: NDArray[np.float32] | float) -> NDArray[np.float32]:
        """Evaluate the recipe over arrays that broadcast. Division by zero follows IEEE 754, without a warning."""
        import numpy as np

        given = {name: np.asarray(value, np.float32) for name, value in values.items()}
        with np.errstate(all="ignore"):
            return np.asarray(_run(self.program, given), np.float32)


@lru_cache(maxsize=64)
def parse(text: str, names: Sequence[str] = ("a", "b", "alpha")) -> Recipe:
    """Parse a recipe that can use `names`; raises RecipeError."""
    if len(text) > MAX_LENGTH:
        raise RecipeError(
            tr("has {count} characters, more than {MAX_LENGTH}", count=len(text), MAX_LENGTH=MAX_LENGTH),
            tr("shorten the recipe"),
        )
    if not text.strip():
        raise RecipeError(tr("is empty"), tr("enter a formula such as a * (1 - alpha) + b * alpha"))
    body = text.strip()
    indent = len(text) - len(text.lstrip())
    if "\n" in body or "\r" in body:
        raise RecipeError(tr("has more than one line"), tr("enter one formula on one line"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(body, mode="eval")
    except SyntaxError as error:
        column = indent + (error.offset or len(body) + 1)  # 0: the text is incomplete
        raise RecipeError(tr("this is not a formula"), "check brackets and operators; " + _USE, column) from None
    except (ValueError, RecursionError, MemoryError):
        raise RecipeError(tr("is not a formula"), "check brackets and operators; " + _USE) from None
    used: set[str] = set()
    reader = _Reader(body, indent, tuple(names), used)
    program = reader.read(tree.body, 0)
    return Recipe(text, frozenset(used), program)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Converts Python's syntax tree and rejects everything that is not on the list."""

    text: str
    indent: int
    names: tuple[str, ...]
    used: set[str]

    def error(self, node: ast.AST, message: str, remedy: str = _USE) -> RecipeError:
        # ast counts bytes of UTF-8, columns count characters
        offset = getattr(node, "col_offset", 0)
        column = len(self.text.encode()[:offset].decode(errors="ignore")) + self.indent + 1
        return RecipeError(message, remedy, column)

    def read(self, node: ast.expr, depth: int) -> tuple[Any, ...]:
        if depth > MAX_DEPTH:
            raise self.error(node, f"more than {MAX_DEPTH} levels deep", "simplify the formula")
        down = depth + 1
        match node:
            case ast.Constant(value=value):
                return ("=number", self.number(node, value))
            case ast.Name(id=name):
                return self.name(node, name)
            case ast.Call():
                return self.call(node, down)
            case ast.UnaryOp() | ast.BinOp() | ast.Compare():
                return self.operation(node, down)
            case ast.Attribute() | ast.Subscript():
                raise self.error(node, "dots and square brackets are not allowed")
        raise self.error(node, f"{_SAY.get(type(node), 'this')} is not allowed")

    def name(self, node: ast.AST, name: str) -> tuple[Any, ...]:
        if name not in self.names:
            raise self.error(node, f"'{name}' is not known", f"use {', '.join(self.names)}")
        self.used.add(name)
        return ("=name", name)

    def operation(self, node: ast.expr, down: int) -> tuple[Any, ...]:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return ("negative", (self.read(operand, down),))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand, down)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
                return (_BINARY[type(operator)], (self.read(left, down), self.read(right, down)))
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARE:
                return (_COMPARE[type(operator)], (self.read(left, down), self.read(right, down)))
            case ast.Compare(ops=[_, _, *_]):
                raise self.error(node, "only one comparison at a time", "write (a > 0) * (a < 1)")
        raise self.error(node, f"{_SAY.get(type(node), 'this')} is not allowed")

    def number(self, node: ast.AST, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(node, "only numbers are allowed here")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or abs(number) > LARGEST:
            raise self.error(node, "this number is too large", "use a number below 3e38")
        return number

    def call(self, node: ast.Call, depth: int) -> tuple[Any, ...]:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        known = FUNCTIONS.get(name)
        if known is None:
            shown = f"the function '{name}' is not known" if name else "only plain functions can be called"
            raise self.error(node, shown, f"use {', '.join(FUNCTIONS)}")
        function, count = known
        if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args) or len(node.args) != count:
            values = "value" if count == 1 else "values"
            raise self.error(node, f"{name} takes {count} {values}", f"write {name}({', '.join('abc'[:count])})")
        return (function, tuple(self.read(arg, depth) for arg in node.args))


_SAY: Mapping[type[ast.expr], str] = {
    ast.Lambda: "a lambda",
    ast.IfExp: "if ... else",
    ast.BoolOp: "and / or",
    ast.List: "a list",
    ast.Tuple: "a list",
    ast.Dict: "a dictionary",
    ast.JoinedStr: "text",
    ast.NamedExpr: "an assignment",
    ast.UnaryOp: "this sign",
    ast.BinOp: "this operator",
}


def _run(step: tuple[Any, ...], values: Mapping[str, NDArray[np.float32]]) -> Any:
    import numpy as np

    head, rest = step
    if head == "=number":
        return np.float32(rest)
    if head == "=name":
        return values[rest]
    parts = [_run(part, values) for part in rest]
    if head == "where":
        parts[0] = np.not_equal(parts[0], 0)
    return np.asarray(getattr(np, head)(*parts)).astype(np.float32, copy=False)
