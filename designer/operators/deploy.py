"""The network as it is deployed: without what observes, disturbs or trains it."""

from __future__ import annotations

from designer.graph.commands import remove_layers
from designer.graph.graph import Graph
from designer.operators.api import Role
from designer.operators.registry import Registry


def deploy(graph: Graph, registry: Registry) -> Graph:
    """A copy of `graph` without analysis layers, losses, what follows from losses, and what only these need.

    Whoever read an analysis layer reads that layer's first input instead. Layers that lead nowhere stay: the person may
    still be building them. Layers of unknown types stay too.
    """
    result = graph.copy()
    result.apply(remove_layers(result, _only_for_losses(result, registry)))
    analysis = [layer.name for layer in result if _role(registry, layer.type) is Role.ANALYSIS]
    result.apply(remove_layers(result, analysis, heal=True))
    return result


def _only_for_losses(graph: Graph, registry: Registry) -> list[str]:
    """The losses, what computes with their values, and every layer all of whose consumers are among these."""
    gone = graph.downstream(layer.name for layer in graph if _role(registry, layer.type) is Role.LOSS)
    waiting = [producer for name in gone for producer in graph[name].producers()]
    while waiting:
        name = waiting.pop()
        if name in gone or name not in graph or not set(graph.consumers(name)) <= gone:
            continue
        gone.add(name)
        waiting.extend(graph[name].producers())
    return [name for name in graph.layers if name in gone]


def _role(registry: Registry, type_name: str) -> Role | None:
    cls = registry.get(type_name)
    return cls.role if cls is not None else None
