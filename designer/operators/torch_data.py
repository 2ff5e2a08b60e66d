"""The torch form of an operator as data: an expression that the torch engine runs and the exporter prints.

Both walk the same expression, so the running module and the generated source cannot diverge. Paths are names in `torch`
and are resolved only there. No part of an expression is evaluated as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from designer.graph.types import TensorType


class TorchExpr:
    """Base of everything that yields a tensor (or a tuple of tensors) in `forward`."""


@dataclass(frozen=True)
class TorchInput(TorchExpr):
    """The layer's input number `index`."""

    index: int = 0


@dataclass(frozen=True)
class TorchModule(TorchExpr):
    """A submodule, constructed with `kwargs` and called with `args`.

    `path` is a class such as "torch.nn.Conv2d". The module of a layer is `self.<layer>`; if there are several, `name`
    distinguishes them and `self.<layer>` is a `torch.nn.ModuleDict` with these names.
    """

    path: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    args: tuple[Any, ...] = (TorchInput(0),)
    name: str = ""


@dataclass(frozen=True)
class TorchSource(TorchModule):
    """A submodule whose class a user wrote: `path` is its name in `text`, constructed with `positional` and `kwargs`.

    The engine runs it only if the user agreed to `text`, and checks its results against the types in `outputs`.
    """

    text: str = ""
    positional: tuple[Any, ...] = ()
    outputs: tuple[TensorType, ...] = ()


@dataclass(frozen=True)
class TorchParameter(TorchExpr):
    """A tensor of the layer, `self.<layer>_<name>`: a parameter if `trainable`, otherwise a buffer.

    `values` are its initial values: nested tuples, a number that fills it, or None for zeros. If `uniform` is not 0 they
    are drawn from -uniform..uniform instead. A buffer that is not `persistent` is a constant, not part of the state dict;
    `dtype` is its element type. Learned tensors are float32.
    """

    name: str
    shape: tuple[int, ...]
    values: Any = None
    trainable: bool = True
    persistent: bool = True
    uniform: float = 0.0
    dtype: str = "float32"


@dataclass(frozen=True)
class TorchCall(TorchExpr):
    """A call of a function such as "torch.cat" or "torch.nn.functional.pad".

    Arguments are expressions, numbers, strings, truth values, None, `TorchName`, or tuples and lists of these.
    """

    path: str
    args: tuple[Any, ...] = (TorchInput(0),)
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TorchMethod(TorchExpr):
    """A call of a tensor's method: `x.flip(1)`."""

    method: str
    target: Any = TorchInput(0)
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TorchItem(TorchExpr):
    """One of several results, `value[index]`; `index` may be an int, a slice or a tuple of these."""

    value: Any
    index: Any


@dataclass(frozen=True)
class TorchName:
    """A name in torch used as a value, for instance `torch.float32`."""

    path: str


def children(expr: Any) -> Iterator[Any]:
    """The direct sub-expressions and literals of `expr`."""
    if isinstance(expr, TorchModule):
        yield from expr.args
    elif isinstance(expr, TorchCall):
        yield from expr.args
        yield from expr.kwargs.values()
    elif isinstance(expr, TorchMethod):
        yield expr.target
        yield from expr.args
        yield from expr.kwargs.values()
    elif isinstance(expr, TorchItem):
        yield expr.value
    elif isinstance(expr, (tuple, list)):
        yield from expr


def walk(expr: Any) -> Iterator[Any]:
    """`expr` and all its sub-expressions, parents first; a shared expression occurs once."""
    seen: set[int] = set()
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        if isinstance(node, TorchExpr):
            if id(node) in seen:
                continue
            seen.add(id(node))
        yield node
        waiting.extend(reversed(tuple(children(node))))


def uses(expr: Any) -> dict[int, int]:
    """How often each sub-expression's value is read, by identity, if shared expressions are computed once.

    An item of a value is not computed separately: its uses are uses of the value.
    """
    found: dict[int, int] = {}
    order: list[TorchExpr] = []
    done: set[int] = set()

    def visit(node: Any) -> None:
        for child in children(node):
            if not isinstance(child, TorchExpr):
                visit(child)
            elif id(child) not in done:
                done.add(id(child))
                visit(child)
                order.append(child)

    def count(node: Any, times: int) -> None:
        for child in children(node):
            if isinstance(child, TorchExpr):
                found[id(child)] = found.get(id(child), 0) + times
            else:
                count(child, times)

    root = (expr,)
    visit(root)
    count(root, 1)
    for node in reversed(order):  # parents before children
        count(node, found[id(node)] if isinstance(node, TorchItem) else 1)
    return found


def modules(expr: Any) -> list[TorchModule]:
    """The submodules in `expr`, each once, in the order of a walk."""
    found: list[TorchModule] = []
    for node in walk(expr):
        if isinstance(node, TorchModule) and not any(node is other for other in found):
            found.append(node)
    return found


def uses_input(expr: Any, index: int = 0) -> int:
    """How often `expr` reads input `index`."""
    counts = uses(expr)
    return sum(counts[id(n)] for n in walk(expr) if isinstance(n, TorchInput) and n.index == index)
