"""Neighboring tensors: a part that runs again for one hidden tensor also computes its neighbors.

Computing takes most of a run's time, returning tensors little. Inspecting the first layer of an image therefore costs one
run, and inspecting others afterwards none. Engines may compute a tensor differently if more outputs are requested (they fold
a normalization into the convolution before it, for instance), so the session compares the tensors that both runs have in
common before it uses the result, and otherwise tries again without the tensors that can be folded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod

import numpy as np

from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.api import Category
from designer.runtime.api import Array
from designer.runtime.network import operator_of, passes_through, type_of
from designer.runtime.plan import PartStep

FOLDED = (Category.NORMALIZATION, Category.ACTIVATION, Category.ELEMENT_WISE)
INTO = (Category.CONVOLUTION, Category.LINEAR, Category.NORMALIZATION)


def with_neighbors(
    inference: Inference, step: PartStep, inspected: Collection[Source], budget: int, batch: int, *, careful: bool
) -> PartStep:
    """`step` with the neighbors of `inspected` as further wanted tensors.

    The part's tensors are divided into groups of at most `budget` bytes; groups with an inspected tensor are added.
    `careful` omits tensors that an engine may fold.
    """
    groups: list[list[Source]] = [[]]
    room = budget
    for name in step.part.layers:
        if passes_through(inference, name):
            continue
        for source in inference.tensors(name):
            if careful and folded(inference, source):
                continue
            size = prod(type_of(inference, source).concrete(batch)) * 4
            if size > room and groups[-1]:
                groups.append([])
                room = budget
            groups[-1].append(source)
            room -= size
    near = [source for group in groups if any(s in inspected for s in group) for source in group]
    rest = [source for source in step.wanted if source not in near]  # in front, so that the order is always the same
    return PartStep(step.part, (*rest, *near))


def agree(first: Mapping[Source, Array], second: Mapping[Source, Array]) -> bool:
    """Whether the tensors that two results have in common are bit-identical (NaN equals NaN)."""
    return all(np.array_equal(first[s], second[s], equal_nan=True) for s in first.keys() & second.keys())


def folded(inference: Inference, source: Source) -> bool:
    """Whether a consumer of the tensor is of a kind that engines fold into its producer."""
    if operator_of(inference, source.layer).category not in INTO:
        return False
    names = list(inference.graph.consumers(source.layer))
    while names:
        name = names.pop()
        if passes_through(inference, name):
            names.extend(inference.graph.consumers(name))
        elif operator_of(inference, name).category in FOLDED:
            return True
    return False
