"""The part of a network that is there for training alone: losses, and what nothing else needs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.api import Operator, Role
from designer.operators.inlining import inline
from designer.operators.registry import Registry
from designer.texts import tr

_NONE: frozenset[str] = frozenset()


def training_branch(graph: Graph, registry: Registry) -> frozenset[str]:
    """The losses, what computes with their values, and every layer all of whose consumers are among these.

    So an input that only losses read belongs to it. An output layer does not, unless it shows a loss: a loss may read it.
    """
    if any(registry.role(layer.type) is Role.LOSS for item in graph.templates.values() for layer in item.layers):
        return _branch(*_flat(graph, registry)) & graph.layers.keys()
    roles = {name: registry.role(name) for name in {layer.type for layer in graph}}
    return _branch(graph, {layer.name: roles[layer.type] for layer in graph}) if Role.LOSS in roles.values() else _NONE


def _flat(graph: Graph, registry: Registry) -> tuple[Graph, dict[str, Role | None]]:
    """The network without templates, and what its layers are. Losses may stand inside of templates."""
    with suppress(DiagnosticError):  # type checking tells of it
        graph = inline(graph, registry)
    return graph, {layer.name: registry.role(layer.type) for layer in graph}


def training_layers(inference: Inference) -> frozenset[str]:
    """The training branch of a network whose shapes were inferred with a registry."""
    operators = {name: inference.read(name).operator for name in inference.graph.layers}
    return _branch(inference.graph, {n: o.role if isinstance(o, Operator) else None for n, o in operators.items()})


def _branch(graph: Graph, roles: Mapping[str, Role | None]) -> frozenset[str]:
    found = graph.downstream(name for name, role in roles.items() if role is Role.LOSS)
    waiting = [producer for name in found for producer in graph[name].producers()]
    while waiting:
        name = waiting.pop()
        if name in found or name not in graph or not set(graph.consumers(name)) <= found:
            continue
        if roles[name] is not Role.OUTPUT:
            found.add(name)
            waiting.extend(graph[name].producers())
    return frozenset(found)


def loss_ends(graph: Graph, registry: Registry) -> tuple[str, ...]:
    """The layers whose values training adds up: losses, or what was made of them, in the order of names.

    A loss that another layer computes with does not count by itself; output layers only show values.
    """
    losses = {layer.name for layer in graph if registry.role(layer.type) is Role.LOSS}
    behind = {name for name in graph.downstream(losses) if registry.role(graph[name].type) is not Role.OUTPUT}
    return tuple(sorted(name for name in behind if behind.isdisjoint(graph.consumers(name))))


def no_output(graph: Graph, registry: Registry) -> Diagnostic:
    """Why a network without an output layer cannot run."""
    if training_branch(graph, registry):
        return Diagnostic(
            "only-training",
            tr("the network has only a training branch: nothing of it is left for inference"),
            remedy=tr("add an output layer and connect it to what the network should give"),
        )
    return Diagnostic(
        "no-output", tr("the network has no output layer"), remedy=tr("add an output layer and connect it")
    )


def missing_output(graph: Graph, registry: Registry) -> Diagnostic | None:
    """A note that nothing would come out of a network with layers, while it is edited; None where something does."""
    roles = {registry.role(name) for name in {layer.type for layer in graph}}
    if Role.INPUT not in roles or Role.OUTPUT in roles or len(graph) < 2:
        return None
    return replace(no_output(graph, registry), severity=Severity.INFO)


def training_only(layer: str) -> Diagnostic:
    """Why a layer of the training branch has no values in inference."""
    return Diagnostic(
        "training-only",
        tr("'{layer}' belongs to the training branch and is left out of inference", layer=layer),
        layer=layer,
        remedy=tr("train the exported PyTorch project to see its values"),
    )
