"""The part of a network that only training needs: losses, and layers that nothing else reads."""

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
    """The losses, the layers that compute with their values, and every layer whose consumers are all among these.

    An input that only losses read therefore belongs to it; an output layer does not, unless it shows a loss.
    """
    if any(registry.role(layer.type) is Role.LOSS for item in graph.templates.values() for layer in item.layers):
        return _branch(*_flat(graph, registry)) & graph.layers.keys()
    roles = {name: registry.role(name) for name in graph.types}
    return _branch(graph, {layer.name: roles[layer.type] for layer in graph}) if Role.LOSS in roles.values() else _NONE


def _flat(graph: Graph, registry: Registry) -> tuple[Graph, dict[str, Role | None]]:
    """The network without templates, and the roles of its layers. Losses may be inside templates."""
    with suppress(DiagnosticError):  # type checking reports it
        graph = inline(graph, registry)
    return graph, {layer.name: registry.role(layer.type) for layer in graph}


def training_layers(inference: Inference) -> frozenset[str]:
    """The training branch of a network, from its inference."""
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
    """The layers whose values training adds up, by name: losses, or the layers computed from them.

    A loss that another layer computes with is not an end; output layers only show values.
    """
    losses = {layer.name for layer in graph if registry.role(layer.type) is Role.LOSS}
    behind = {name for name in graph.downstream(losses) if registry.role(graph[name].type) is not Role.OUTPUT}
    return tuple(sorted(name for name in behind if behind.isdisjoint(graph.consumers(name))))


def no_output(graph: Graph, registry: Registry) -> Diagnostic:
    """Why a network without an output layer cannot run."""
    if training_branch(graph, registry):
        return Diagnostic(
            "only-training",
            tr("the network has only a training branch, so nothing is left for inference"),
            remedy=tr("add an output layer and connect it to the result of the network"),
        )
    return Diagnostic(
        "no-output", tr("the network has no output layer"), remedy=tr("add an output layer and connect it")
    )


def missing_output(graph: Graph, registry: Registry) -> Diagnostic | None:
    """A note that a network with layers has no output, for a network that is being edited; None if it has one."""
    roles = {registry.role(name) for name in graph.types}
    if Role.INPUT not in roles or Role.OUTPUT in roles or len(graph) < 2:
        return None
    return replace(no_output(graph, registry), severity=Severity.INFO)


def training_only(layer: str) -> Diagnostic:
    """Why a layer of the training branch has no values in inference."""
    return Diagnostic(
        "training-only",
        tr("'{layer}' belongs to the training branch, which inference omits", layer=layer),
        layer=layer,
        remedy=tr("train the exported PyTorch project to see its values"),
    )
