"""What an operator does in torch, as data: an expression that the torch engine runs and the exporter prints.

Both walk the same expression, so the running module and the generated source cannot drift. Paths are names below
`torch` and are resolved there only. Nothing in an expression is ever evaluated as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


class TorchExpr:
    """Base of everything that yields a tensor (or a tuple of tensors) in `forward`."""


@dataclass(frozen=True)
class TorchInput(TorchExpr):
    """The layer's input number `index`."""

    index: int = 0


@dataclass(frozen=True)
class TorchModule(TorchExpr):
    """A submodule, made with `kwargs` and called with `args`.

    `path` is a class such as "torch.nn.Conv2d". A layer with one module has it as `self.<layer>`; `name` tells several
    modules of one layer apart: then `self.<layer>` is a `torch.nn.ModuleDict` with these names.
    """

    path: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    args: tuple[Any, ...] = (TorchInput(0),)
    name: str = ""


@dataclass(frozen=True)
class TorchParameter(TorchExpr):
    """A tensor that belongs to the layer: `self.<layer>_<name>`. Learned when `trainable`, else a buffer.

    `values` are its initial numbers: nested tuples, a plain number that fills it, or None for zeros; where `uniform` is not
    0 they are drawn at random between -uniform and uniform instead. A buffer that is not `persistent` is a constant of the computation: it moves with the model and is not in the state dict.
    """

    name: str
    shape: tuple[int, ...]
    values: Any = None
    trainable: bool = True
    persistent: bool = True
    uniform: float = 0.0


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
    """A name below torch used as a value, for instance `torch.float32`."""

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
    """`expr` and all its sub-expressions, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def modules(expr: Any) -> list[TorchModule]:
    """The submodules in `expr`, each once, in the order of a walk."""
    found: list[TorchModule] = []
    for node in walk(expr):
        if isinstance(node, TorchModule) and not any(node is other for other in found):
            found.append(node)
    return found


def uses_input(expr: Any, index: int = 0) -> int:
    """How often `expr` reads input `index`."""
    return sum(1 for node in walk(expr) if isinstance(node, TorchInput) and node.index == index)
