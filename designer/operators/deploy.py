"""The network as it is deployed: without analysis layers and the training branch."""

from __future__ import annotations

from designer.graph.commands import remove_layers
from designer.graph.graph import Graph
from designer.operators.api import Role
from designer.operators.inlining import inline
from designer.operators.registry import Registry
from designer.operators.training_branch import training_branch


def deploy(graph: Graph, registry: Registry) -> Graph:
    """A copy of `graph` without templates, analysis layers and the training branch (see `training_branch`).

    Consumers of an analysis layer read its first input instead. Layers that lead nowhere stay, because the user may still
    be building them. Layers of unknown types stay too.
    """
    return without_observers(inline(graph, registry), registry)


def without_observers(graph: Graph, registry: Registry) -> Graph:
    """As `deploy`, but instances of templates are kept."""
    result = graph.copy()
    result.apply(remove_layers(result, sorted(training_branch(result, registry))))
    return without_analysis(result, registry)


def without_analysis(graph: Graph, registry: Registry) -> Graph:
    """A copy of `graph` as it is trained: without analysis layers, with the training branch."""
    result = graph.copy()
    analysis = [layer.name for layer in result if registry.role(layer.type) is Role.ANALYSIS]
    result.apply(remove_layers(result, analysis, heal=True))
    return result
