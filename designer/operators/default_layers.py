"""New layers with the defaults of their operators."""

from __future__ import annotations

from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer
from designer.graph.naming import unique_name
from designer.graph.template import INPUT, INSTANCE, OUTPUT, PARAMETER
from designer.graph.template_commands import new_instance, new_port
from designer.operators.registry import Registry

INSTANCE_OF = f"{INSTANCE}:"  # prefix of the type name with which palette and search list a template of the document


def default_layer(graph: Graph, registry: Registry, type_name: str, position: tuple[int, int]) -> Layer | None:
    """A layer of an operator or activation type with defaults and a free name; None if the type is unknown.

    `template:<name>` is an instance of that template of the document.
    """
    if type_name.startswith(INSTANCE_OF):
        template = type_name.removeprefix(INSTANCE_OF)
        return new_instance(graph, template, position) if template in graph.templates else None
    cls = registry.get(type_name)
    attached: ActivationSpec | None = None
    if cls is None:
        activation = registry.activations.get(type_name)
        cls = registry.get("activation")
        if activation is None or cls is None:
            return None
        attached = ActivationSpec(type_name, activation().texts(all=False))
    elif cls.type == "activation" and "relu" in registry.activations:
        attached = ActivationSpec("relu", registry.activations["relu"]().texts(all=False))
    texts = cls().texts(all=False)
    if cls.type in (INPUT, OUTPUT):
        return new_port(graph, cls.type, position, texts)
    if cls.type == INSTANCE and len(graph.templates) == 1:
        texts[PARAMETER] = next(iter(graph.templates))
    base = cls().base_name() if attached is None or cls.type == type_name else type_name
    return Layer(unique_name(base, graph.layers), cls.type, position, params=texts, activation=attached)
