"""The network as it is deployed: without what observes, disturbs or trains it."""

from __future__ import annotations

from designer.graph.commands import remove_layers
from designer.graph.graph import Graph
from designer.operators.api import Role
from designer.operators.inlining import inline
from designer.operators.registry import Registry
from designer.operators.training_branch import training_branch


def deploy(graph: Graph, registry: Registry) -> Graph:
    """A copy of `graph` without templates, analysis layers, losses, what follows from losses, and what only these need.

    Whoever read an analysis layer reads that layer's first input instead. Layers that lead nowhere stay: the user may
    still be building them. Layers of unknown types stay too.
    """
    return without_observers(inline(graph, registry), registry)


def without_observers(graph: Graph, registry: Registry) -> Graph:
    """A copy of `graph` as `deploy` makes it, but instances of templates stay as they are."""
    result = graph.copy()
    result.apply(remove_layers(result, sorted(training_branch(result, registry))))
    return without_analysis(result, registry)


def without_analysis(graph: Graph, registry: Registry) -> Graph:
    """A copy of `graph` as it is trained: without analysis layers, but with its losses and what they need."""
    result = graph.copy()
    analysis = [layer.name for layer in result if registry.role(layer.type) is Role.ANALYSIS]
    result.apply(remove_layers(result, analysis, heal=True))
    return result
