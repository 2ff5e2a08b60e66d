"""The tensors that measure restoration: the output of the deployed network, and the clean image before the noise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.api import Operator, Role

NOISE = "noise"


@dataclass(frozen=True, slots=True)
class Restoration:
    """`result` is the tensor that `output` has in an export, `clean` the tensor that the first Noise layer upstream reads."""

    output: str
    result: Source
    clean: Source


def restorations(inference: Inference, outputs: Iterable[str]) -> tuple[Restoration, ...]:
    """The `outputs` that have a clean image of the type of the result.

    There is no clean image without a Noise layer, with several that read different tensors, or if an input has a scale or
    shift, because the values are then not those of an image.
    """
    graph = inference.graph
    found = []
    for output in outputs:
        result = deployed_tensor(inference, output)
        clean = _clean(inference, result) if result is not None else None
        if result is None or clean is None or inference.type_of(result) != inference.type_of(clean):
            continue
        if all(_plain(inference, name) for name in graph.upstream([clean.layer])):
            found.append(Restoration(output, result, clean))
    return tuple(found)


def deployed_tensor(inference: Inference, output: str) -> Source | None:
    """What `output` reads if analysis layers pass their first input through."""
    source = next(iter(inference.graph[output].inputs), None)
    while source is not None and source.layer in inference.graph:
        if not _is_analysis(inference, source.layer):
            return source
        source = next(iter(inference.graph[source.layer].inputs), None)
    return None


def _clean(inference: Inference, result: Source) -> Source | None:
    graph = inference.graph
    noises = {name for name in graph.upstream([result.layer]) if _disturbs(graph, name)}
    first = (name for name in noises if len(noises & graph.upstream([name])) == 1)
    sources = {next(iter(graph[name].inputs), None) for name in first}
    return sources.pop() if len(sources) == 1 else None


def _disturbs(graph: Graph, name: str) -> bool:
    return graph[name].type == NOISE and not graph[name].bypassed


def _is_analysis(inference: Inference, name: str) -> bool:
    operator = inference.read(name).operator
    return isinstance(operator, Operator) and operator.role is Role.ANALYSIS


def _plain(inference: Inference, name: str) -> bool:
    """Whether a layer is not an input, or is an input without scale and shift."""
    operator = inference.read(name).operator
    if not isinstance(operator, Operator) or operator.role is not Role.INPUT:
        return True
    values = operator.values()
    return values.get("scale", 1.0) == 1.0 and values.get("shift", 0.0) == 0.0
