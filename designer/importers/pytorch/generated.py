"""What the code of an exported project says about its layers and a trace does not.

A class of such a project has one statement for each layer: its variable is the name of the layer, an activation in the same
statement is attached to it, and classes of templates are templates.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from designer.importers.pytorch.composites import Composite, is_positional, operator_of, positional_encoding
from designer.importers.pytorch.program import Frame, frames_of, module_of
from designer.importers.templates import ModuleClass, Scope
from designer.operators.generated_code import NETWORK, template_of

if TYPE_CHECKING:
    import torch
    from torch.fx import Node

_TARGET = re.compile(r"(\w+) = ")
_RETURN = re.compile(r"return (\w+)(?:, \(.*\))?(?:  # '(.+)')?")
_ACTIVATIONS = frozenset(
    """relu relu6 selu silu mish sigmoid hardsigmoid hardswish tanh softsign leaky_relu elu celu gelu softplus threshold prelu
    softmax log_softmax glu hardtanh softshrink rrelu""".split()
)


class Statement(NamedTuple):
    """A line of the code of one call of a module."""

    scope: Scope
    line: int


@dataclass(frozen=True)
class Role:
    """The part of a node in its statement. `attached`: it is the activation of the layer before it."""

    statement: Statement
    label: str
    attached: bool = False


@dataclass
class GeneratedCode:
    """The roles of nodes by name, the classes of templates, and the name of a single output; empty for other modules.

    `composites` are statements whose nodes are one layer together.
    """

    roles: dict[str, Role] = field(default_factory=dict)
    composites: list[Composite] = field(default_factory=list)
    classes: dict[Scope, ModuleClass] = field(default_factory=dict)
    output: str = ""


@dataclass(frozen=True)
class _Class:
    template: str
    inputs: tuple[str, ...]
    output: str


def read_code(module: torch.nn.Module, nodes: Sequence[Node]) -> GeneratedCode:
    """What the code of a module says about the nodes of its trace, if Layerwright generated it."""
    found = GeneratedCode()
    known = {path: kind for path, item in module.named_modules() if (kind := _class(type(item))) is not None}
    if "" not in known or known[""].template:
        return found
    found.output = known[""].output
    statements: dict[Statement, list[Node]] = defaultdict(list)
    targets: dict[Statement, str] = {}
    for node in nodes:
        if node.op != "call_function" or not hasattr(node.target, "_schema"):
            continue
        _, scope = module_of(node, "")
        path = tuple(part.partition("@")[0] for part in scope)
        frames = [frame for frame in frames_of(node) if "self.forward_training(" not in frame.code]
        for depth in range(1, len(scope) + 1):
            kind = known.get(".".join(path[:depth]))
            if kind is not None and kind.template and depth <= len(frames):
                frame = frames[depth - 1]
                assigned = _TARGET.match(frame.code)
                result = assigned[1] if assigned is not None else ""
                if not kind.output:  # its results are taken out of this variable
                    result = result.removesuffix("_part")
                arguments = _arguments(frame, path[depth - 1])
                found.classes[scope[:depth]] = ModuleClass(kind.template, kind.inputs, kind.output, arguments, result)
        target = _TARGET.match(frames[-1].code) if frames else None
        if ".".join(path) in known and target is not None:
            statement = Statement(scope, frames[-1].line)
            statements[statement].append(node)
            targets[statement] = target[1]
    found.composites = list(_composites(statements, targets))
    for statement, members in statements.items():
        name = targets[statement]
        if isinstance(members[-1].meta.get("val"), list | tuple):  # the results are taken out of it in other statements
            name = name.removesuffix("_part")
        label = ".".join((*(part.partition("@")[0] for part in statement.scope), name))
        found.roles |= _roles(statement, label, members)
    return found


def _composites(
    statements: Mapping[Statement, Sequence[Node]], targets: Mapping[Statement, str]
) -> Iterator[Composite]:
    for statement, members in statements.items():
        name = targets[statement]
        before = Statement(statement.scope, statement.line - 1)
        parts = statements[before] if targets.get(before) == f"{name}_part" else ()
        if is_positional([operator_of(node) for node in members], [operator_of(node) for node in parts]):
            label = ".".join((*(part.partition("@")[0] for part in statement.scope), name))
            yield Composite((*parts, *members), positional_encoding, label, statement.scope, f"{label}_")


def _roles(statement: Statement, label: str, nodes: Sequence[Node]) -> Mapping[str, Role]:
    """The last node, and the activations behind it, have the name of the variable."""
    roles: dict[str, Role] = {}
    last = len(nodes) - 1
    while last > 0 and operator_of(nodes[last]) in _ACTIVATIONS and nodes[last - 1] in nodes[last].all_input_nodes:
        if len(nodes[last - 1].users) > 1:
            break
        roles[nodes[last].name] = Role(statement, label, attached=True)
        last -= 1
    roles[nodes[last].name] = Role(statement, label)
    return roles | {node.name: Role(statement, f"{label}_{operator_of(node)}") for node in nodes[:last]}


def _class(cls: type) -> _Class | None:
    """What the source of a class says; None if Layerwright did not generate it."""
    title = (cls.__doc__ or "").partition("\n")[0]
    template = template_of(title)
    if title != NETWORK and not template:
        return None
    forward: Any = getattr(cls, "forward_training", None) or cls.forward  # type: ignore[attr-defined]
    try:
        lines = inspect.getsource(forward).splitlines()
    except (OSError, TypeError):  # without a file, for instance from a notebook
        return None
    end = _RETURN.fullmatch(lines[-1].strip())
    output = (end[2] or end[1]) if end is not None else ""
    arguments = inspect.signature(cls.forward).parameters.values()  # type: ignore[attr-defined]
    inputs = [item.name for item in arguments if item.name != "self" and "Module" not in str(item.annotation)]
    return _Class(template, tuple(inputs), output)


def _arguments(frame: Frame, name: str) -> tuple[str, ...]:
    """The variables with which a line calls the module `self.<name>`; empty if they are no variables."""
    try:
        tree = ast.parse(frame.code)
    except SyntaxError:
        return ()
    for item in ast.walk(tree):
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr == name:
            return tuple(arg.id for arg in item.args if isinstance(arg, ast.Name))
    return ()
