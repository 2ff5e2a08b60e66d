"""Rules for links: which input ports layers have, and why a port rejects the output of another layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.template import INSTANCE, PARAMETER
from designer.graph.types import ShapeError, TensorType
from designer.operators.api import Role
from designer.operators.ports import Port
from designer.operators.registry import Read, Registry
from designer.texts import tr

Key = tuple[str, int]  # consumer, input index


def input_port(inference: Inference, layer: str, index: int) -> Port | None:
    """The declaration of the port that input `index` belongs to; None for unknown operators and extra inputs."""
    ports = _read(inference, layer).input_ports
    if index < len(ports):
        return ports[index]
    return ports[-1] if ports and ports[-1].variadic else None


def port_name(port: Port, number: int) -> str:
    """The name of a link at a port: `b`, or `b 2` for the second one of a variadic port."""
    return f"{port.name} {number + 1}" if number else port.name


def is_variadic(inference: Inference, layer: str, index: int) -> bool:
    """Whether input `index` belongs to a port that accepts any number of links."""
    port = input_port(inference, layer, index)
    return port is not None and port.variadic


def refusal(inference: Inference, source: Source, consumer: str, index: int) -> str:
    """Why input `index` of `consumer` cannot read `source`; empty if it can. Shapes are not checked (see `misfit`)."""
    port = input_port(inference, consumer, index)
    if port is None:
        return tr("this layer does not accept more inputs")
    tensor = inference.type_of(source)
    found = port.refusal(tensor) if tensor is not None else ""
    return tr("this layer {found}", found=found) if found else ""


def misfit(inference: Inference, source: Source, consumer: str, index: int, loose: Key | None = None) -> str:
    """The rule that `consumer` would break by reading `source` at input `index`; empty if there is none or it is unknown.

    `loose` is the link that is being moved, which its consumer no longer reads. An existing link at the port is not a
    reason, because it is replaced. The graph does not change; only the operator of `consumer` infers, once.
    """
    if loose == (consumer, index) and inference.graph[consumer].inputs[index] == source:
        return ""
    read = _read(inference, consumer)
    if read.operator is None or inference.type_of(source) is None:
        return ""
    layer = inference.graph[consumer]
    if loose is not None and loose[0] == consumer and loose[1] < len(layer.inputs):
        layer = layer.with_input(loose[1], None)
    types = _arriving(inference, layer.with_input(index, source).inputs, read.operator.input_ports())
    if types is None:
        return ""
    try:
        outputs = read.operator.infer_checked(types)
        if read.activation is not None:
            read.activation.infer_checked(outputs[:1])
    except ShapeError as error:
        return "" if error.code == "missing-input" else error.message
    except Exception:  # a plugin's mistake; Type Checking reports it where it matters
        return ""
    return ""


def network_ends(graph: Graph, registry: Registry, names: Iterable[str]) -> list[str]:
    """The layers among `names` that are inputs or outputs of the whole network."""
    return [n for n in names if registry.role(graph[n].type) in (Role.INPUT, Role.OUTPUT)]


def open_sides(graph: Graph, registry: Registry, layer: Layer) -> tuple[bool, bool]:
    """Whether a layer, which need not be in the graph, has inputs and outputs. One of unknown type has both."""
    template = graph.templates.get(layer.params.get(PARAMETER, "")) if layer.type == INSTANCE else None
    ports = template if template is not None else registry.get(layer.type)
    return (bool(ports.inputs), bool(ports.outputs)) if ports is not None else (True, True)


def _arriving(inference: Inference, inputs: Sequence[Source | None], ports: Sequence[Port]) -> list[TensorType] | None:
    """The types at the inputs of a layer; None if one is missing or unknown."""
    variadic = bool(ports) and ports[-1].variadic
    types: list[TensorType] = []
    for number, source in enumerate(inputs):
        tensor = inference.type_of(source) if source is not None else None
        if tensor is not None:
            types.append(tensor)
        elif source is not None or not (variadic and number >= len(ports) - 1):
            return None
    return types


def _read(inference: Inference, layer: str) -> Read:
    return cast(Read, inference.read(layer))
