"""The final check of generated source: it compiles and contains only what the program declares."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from designer.graph.diagnostics import DiagnosticError
from designer.operators.torch_data import (
    TorchCall,
    TorchMethod,
    TorchModule,
    TorchName,
    TorchParameter,
    TorchSource,
    walk,
)
from designer.operators.torch_program import Program, Submodule
from designer.texts import tr
from exporters.pytorch.subnetworks import ModuleReference
from exporters.pytorch.text import path_text

IMPORTS = frozenset({"import torch", "import torch.nn.functional as F", "from torch import nn"})
NODES = (
    *(ast.Module, ast.Import, ast.ImportFrom, ast.alias, ast.ClassDef, ast.FunctionDef, ast.arguments, ast.arg),
    *(ast.Expr, ast.Assign, ast.AnnAssign, ast.Return, ast.Call, ast.keyword, ast.Attribute, ast.Name, ast.Load),
    *(ast.Store, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Subscript, ast.Slice, ast.BinOp, ast.Add, ast.Sub),
    *(ast.Mult, ast.Div, ast.UnaryOp, ast.USub),
)
BUILTINS = frozenset({"dict", "float", "self", "str", "super", "tuple"})
MODULES = ("F", "nn", "torch")
# Names that the exporter writes for every network.
PATHS = frozenset(
    "nn.Module nn.ModuleDict nn.Parameter torch.Tensor torch.empty torch.float32 torch.full torch.tensor torch.zeros".split()
)
MEMBERS = frozenset({"__init__", "forward_training", "register_buffer", "reshape", "uniform_"})


@dataclass(frozen=True)
class Vocabulary:
    """Names allowed in a source: paths in torch, members of `self` and of tensors, and classes."""

    paths: frozenset[str]
    members: frozenset[str]
    classes: frozenset[str]


def vocabulary(programs: Iterable[Program], classes: Iterable[str]) -> Vocabulary:
    """The names that the source of `programs` can contain, from their data, not from their text."""
    paths, members, own = set(PATHS), set(MEMBERS), set(classes)
    for program in programs:
        members.update(attribute.name for attribute in program.attributes)
        contents = [attribute.content for attribute in program.attributes]
        paths.update(f"torch.{content.dtype}" for content in contents if isinstance(content, TorchParameter))
        for node in _nodes([step.value for step in program.steps] + [_parts(content) for content in contents]):
            if isinstance(node, TorchSource):
                own.add(node.path)
            elif isinstance(node, TorchCall | TorchModule | TorchName):
                paths.add(path_text(node.path))
            elif isinstance(node, TorchMethod):
                members.add(node.method)
    return Vocabulary(frozenset(paths), frozenset(members), frozenset(own))


def _parts(content: TorchModule | TorchParameter | Mapping[str, TorchModule]) -> Any:
    """A module with the values that it is constructed with, as a list to walk."""
    if isinstance(content, Mapping):
        return [_parts(module) for module in content.values()]
    if isinstance(content, TorchSource):
        return [content, *content.positional, *content.kwargs.values()]
    return [content, *content.kwargs.values()] if isinstance(content, TorchModule) else []


def _nodes(value: Any) -> Iterator[Any]:
    for node in walk(value):
        yield node
        if isinstance(node, Submodule | ModuleReference):
            yield from _nodes(node.args or ())


def check_source(text: str, words: Vocabulary) -> None:
    """Raise DiagnosticError unless the exporter writes every node of `text` with this vocabulary."""
    tree = _parsed(text)
    bound = BUILTINS | words.classes | {name for node in ast.walk(tree) for name in _bound(node)}
    for node in ast.walk(tree):
        if not isinstance(node, NODES) or not _allowed(node, words, bound):
            raise _refused(tr("contains `{unparse}`, which the exporter never writes", unparse=ast.unparse(node)[:60]))


def check_compiles(text: str) -> None:
    """Raise DiagnosticError unless Python can compile `text`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an invalid escape sequence in a custom layer's text
            compile(text, "generated", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refused(tr("cannot be compiled: {error}", error=str(error) or type(error).__name__)) from None


def _parsed(text: str) -> ast.Module:
    check_compiles(text)
    return ast.parse(text)


def _bound(node: ast.AST) -> Iterator[str]:
    """Names that a class, an argument or an assignment binds."""
    if isinstance(node, ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def _allowed(node: ast.AST, words: Vocabulary, bound: frozenset[str]) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return ast.unparse(node) in IMPORTS
    if isinstance(node, ast.Name):
        return node.id in bound or node.id in MODULES
    if isinstance(node, ast.Attribute):
        path = _path(node)
        if path.partition(".")[0] in MODULES:
            return path in words.paths or any(known.startswith(f"{path}.") for known in words.paths)
        return node.attr in words.members
    return True


def _path(node: ast.expr) -> str:
    """`torch.nn.Conv2d` of a chain of names; empty for members of anything else."""
    if isinstance(node, ast.Attribute):
        before = _path(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def _refused(reason: str) -> DiagnosticError:
    return DiagnosticError.of(
        "bad-source",
        tr("the generated source {reason}; it was not written", reason=reason),
        remedy=tr("rename layers and ports with unusual names, and report this as a bug"),
    )
