"""A user's Python source as text: what can be determined without running it.

Here it is only parsed with `ast.parse`. Only `designer.runtime.engines.custom_module` executes it, and only after the user
agreed to exactly this text.
"""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from designer.texts import tr

MAX_SOURCE = 200_000  # characters; far above any layer, far below what makes the parser slow
MAX_LITERALS = 10_000
PROVIDED = ("torch", "nn", "F")  # names that the text can use without importing them


class CodeError(ValueError):
    """A text that breaks a rule; the message names the rule, `remedy` says what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Code:
    """A valid text: its top-level classes, and every name that it binds at the top level."""

    classes: tuple[str, ...]
    names: frozenset[str]


def digest(text: str) -> str:
    """SHA-256 of the text, which identifies it in stored agreements."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def agreement_text(source: str, class_name: str, positional: Sequence[Any], named: Mapping[str, Any]) -> str:
    """What the user agrees to before a custom layer runs: its source and the call that constructs the layer.

    The last line is the call and contains no line break, so no other layer has the same text.
    """
    values = [*map(repr, positional), *(f"{key}={value!r}" for key, value in named.items())]
    return f"{source}\n\n# The layer is made by {class_name!r} with ({', '.join(values)})"


@lru_cache(maxsize=256)
def parse_code(text: str) -> Code:
    """The top level of `text`. Raises a CodeError that names the line that Python cannot parse."""
    if len(text) > MAX_SOURCE:
        raise CodeError(
            tr("the source has {count} characters, the limit is {MAX_SOURCE}", count=len(text), MAX_SOURCE=MAX_SOURCE),
            tr("move parts to a plugin"),
        )
    tree = _parsed(text, "exec", "the source")
    assert isinstance(tree, ast.Module)
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            raise CodeError(
                tr(
                    "line {lineno} of the source imports from __future__, which is only possible at the top of a file",
                    lineno=node.lineno,
                ),
                tr("remove the line"),
            )
        names.update(_bound(node))
    return Code(tuple(n.name for n in tree.body if isinstance(n, ast.ClassDef)), frozenset(names))


def check_class(text: str, name: str) -> None:
    """Raise CodeError unless `text` parses and defines the class `name`."""
    code = parse_code(text)
    if name not in code.classes:
        known = ", ".join(code.classes) or "none"
        raise CodeError(
            tr("the source defines no class '{name}' (it defines: {known})", name=name[:80], known=known),
            tr("enter the name of one of its classes"),
        )


def _bound(node: ast.stmt) -> set[str]:
    """Names that a top-level statement binds, without imports, because importing twice is harmless."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


@lru_cache(maxsize=256)
def arguments(text: str) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """`1.0, "same", channels=3` as positional and named values. Raises CodeError for anything but plain literals."""
    rule = 'write plain values as in a call: 3, 0.5, "text", channels=8'
    if len(text) > MAX_LITERALS:
        raise CodeError(
            tr(
                "the arguments have {count} characters, the limit is {MAX_LITERALS}",
                count=len(text),
                MAX_LITERALS=MAX_LITERALS,
            ),
            rule,
        )
    tree = _parsed(f"f({text}\n)", "eval", "the arguments")
    assert isinstance(tree, ast.Expression)
    call = tree.body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.end_lineno is None:
        raise CodeError(tr("the arguments are not a list of values"), rule)
    named: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise CodeError(tr("the arguments contain **, which is not allowed"), rule)
        named[keyword.arg] = _value(keyword.value, rule)
    return tuple(_value(item, rule) for item in call.args), named


def literal(text: str) -> Any:
    """One plain value from its text. Raises CodeError for anything else."""
    rule = 'write a number, a text in quotes, or a list of these: 3, 0.5, "text", [1, 2]'
    if len(text) > MAX_LITERALS:
        raise CodeError(
            tr(
                "the value has {count} characters, the limit is {MAX_LITERALS}",
                count=len(text),
                MAX_LITERALS=MAX_LITERALS,
            ),
            rule,
        )
    tree = _parsed(text.strip(), "eval", "the value")
    assert isinstance(tree, ast.Expression)
    return _value(tree.body, rule)


def _value(node: ast.expr, rule: str) -> Any:
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool | int | float | str)):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = _value(node.operand, rule)
        if isinstance(inner, int | float) and not isinstance(inner, bool):
            return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.Tuple):
        return tuple(_value(item, rule) for item in node.elts)
    if isinstance(node, ast.List):
        return [_value(item, rule) for item in node.elts]
    shown = ast.unparse(node)[:60]
    raise CodeError(tr("'{shown}' is not a plain value; expressions are not evaluated", shown=shown), rule)


def _parsed(text: str, mode: str, what: str) -> ast.AST:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an invalid escape sequence in the user's text
            return ast.parse(text, mode=mode)
    except SyntaxError as error:
        where = f"line {error.lineno} of " if error.lineno and mode == "exec" else ""
        raise CodeError(f"{where}{what}: {error.msg}", tr("correct the text")) from None
    except (ValueError, RecursionError, MemoryError) as error:  # a null character, excessive nesting
        raise CodeError(
            tr("{what} cannot be read: {error}", what=what, error=str(error) or type(error).__name__),
            tr("correct the text"),
        ) from None
