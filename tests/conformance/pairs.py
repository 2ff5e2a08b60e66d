"""Each operator before and after each other one, where their shapes fit."""

from __future__ import annotations

import random
from collections.abc import Iterator

from operator_oracles import REGISTRY, Case, Feeds
from trials import CASES, Trial, layer_of, outputs_of

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.types import ShapeError
from designer.runtime.api import Part


def names() -> list[str]:
    """The operators and activations that are paired."""
    return list(dict.fromkeys(case.subject.type for case in CASES))


def pairs_from(first: str, order: random.Random | None = None) -> Iterator[Trial]:
    """Every pair that begins with an operator: each example of it with the first fitting example of every other one."""
    by_second: dict[str, list[Case]] = {}
    for case in CASES:
        by_second.setdefault(case.subject.type, []).append(case)
    combined = [(case, others) for case in CASES if case.subject.type == first for others in by_second.values()]
    if order is not None:
        order.shuffle(combined)
    for one, others in combined:
        found = next((pair for other in others if (pair := fitted(one, other)) is not None), None)
        if found is not None:
            yield found


def fitted(one: Case, other: Case) -> Trial | None:
    """The pair, where the second operator accepts what the first one gives."""
    (made, *_) = one.operator.infer_checked(one.types)
    if one.activation is not None:
        made = one.activation.infer_checked((made,))[0]
    rest = other.types[1:]
    if len(other.types) > 1 and other.types[1] == other.types[0]:  # what is added, joined, ... has the same shape
        rest = tuple(made if kind == other.types[0] else kind for kind in rest)
    try:
        before = other.operator.infer_checked((made, *rest))
        if other.activation is not None:
            other.activation.infer_checked(before[:1])
    except (ShapeError, ValueError):
        return None
    types = (*one.types, *rest)
    lookup = Feeds(REGISTRY, {f"in_{i}": kind for i, kind in enumerate(types)})
    sources = [Source(name) for name in lookup.types]
    layers = [Layer(source.layer, "test_feed") for source in sources]
    layers.append(layer_of("first", one, sources[: len(one.types)]))
    layers.append(layer_of("second", other, [Source("first"), *sources[len(one.types) :]]))
    inference = Inference(Graph(layers), lookup)
    if inference.diagnostics():
        return None
    part = Part(("first", "second"), tuple(sources))
    return Trial(f"{one.name} -> {other.name}", inference, part, types, outputs_of(inference, "second"))
