"""Normalizations that are made of several layers: what lies between a tensor and its quotient by its own statistics."""

from __future__ import annotations

from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.runtime.network import inputs_of

_STATISTICS = {"mean", "sum", "sum_of_squares", "norm", "l1_norm"}
_POINTWISE = {"element_wise", "unary", "reduce", "scale_shift", "identity"}


def normalization_groups(inference: Inference) -> dict[str, frozenset[str]]:
    """The layers of each normalization, by each of its layers.

    A normalization divides a tensor, or what arithmetic made of it, by something that was computed from its mean or sum. Its layers
    are those between the two; a statistic of another magnitude than the values that it divides is meaningless.
    """
    graph = inference.graph
    readers: dict[Source, list[str]] = {}
    for layer in graph:
        for source in inputs_of(inference, layer):
            readers.setdefault(source, []).append(layer.name)
    found: dict[str, frozenset[str]] = {}
    for layer in graph:
        if layer.type == "reduce" and layer.params.get("operation", "mean") in _STATISTICS:
            group = _group(inference, readers, inputs_of(inference, layer)[:1])
            joined = group.union(*(found[name] for name in group if name in found))
            found.update(dict.fromkeys(joined, joined))
    return found


def _group(inference: Inference, readers: dict[Source, list[str]], start: tuple[Source, ...]) -> frozenset[str]:
    """The layers between a tensor and the nearest divisions that have a statistic of it below and the tensor above."""
    below = _arithmetic_after(inference, readers, start)
    ends = [name for name in below if _divides_by_statistic(inference, name, below)]
    if not ends:
        return frozenset()
    first = min(ends, key=list(below).index)
    needed = inference.graph.upstream([first])
    return frozenset(name for name in below if name in needed)


def _arithmetic_after(
    inference: Inference, readers: dict[Source, list[str]], start: tuple[Source, ...]
) -> dict[str, bool]:
    """The pointwise layers that depend on a tensor, in order; True for those below a statistic of it."""
    found: dict[str, bool] = {}
    waiting = [(name, False) for source in start for name in readers.get(source, ())]
    for name, after in waiting:
        layer = inference.graph[name]
        statistic = after or layer.type == "reduce"
        if layer.type not in _POINTWISE or layer.activation is not None or found.get(name) in (True, statistic):
            continue
        found[name] = statistic
        waiting += [(reader, statistic) for source in inference.tensors(name) for reader in readers.get(source, ())]
    order = {name: number for number, name in enumerate(inference.graph.order()[0])}
    return dict(sorted(found.items(), key=lambda item: order[item[0]]))


def _divides_by_statistic(inference: Inference, name: str, below: dict[str, bool]) -> bool:
    layer: Layer = inference.graph[name]
    sources = inputs_of(inference, layer)
    if layer.type != "element_wise" or len(sources) != 2:
        return False
    divisor = sources[1].layer
    if layer.params.get("operation", "add") == "divide":
        return below.get(divisor, False)
    if layer.params.get("operation", "add") != "multiply":
        return False
    factors = [inference.graph[source.layer] for source in sources if below.get(source.layer, False)]
    return any(factor.type == "unary" and factor.params.get("function") == "reciprocal" for factor in factors)
