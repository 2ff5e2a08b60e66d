"""Neighboring tensors: a part that runs again for one hidden tensor also computes its neighbors.

Most of a run's time is computing, not handing out tensors. So inspecting the first layer of an image costs one run, and
inspecting others afterwards costs none. Engines may compute a tensor another way when more is wanted of them (they fold a normalization
into the convolution before it, for instance). So the session compares what both runs have in common before it believes one,
and then tries again without the tensors that invite folding.
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


def widened(
    inference: Inference, step: PartStep, looked_at: Collection[Source], budget: int, batch: int, *, careful: bool
) -> PartStep:
    """`step` wanting the neighbors of `looked_at` too: the part's tensors are cut into groups of at most `budget` bytes, and
    the groups that hold one of them come along. `careful` leaves out what an engine may fold."""
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
    near = [source for group in groups if any(s in looked_at for s in group) for source in group]
    rest = [source for source in step.wanted if source not in near]  # in front: one order for every tensor of a group
    return PartStep(step.part, (*rest, *near))


def agree(first: Mapping[Source, Array], second: Mapping[Source, Array]) -> bool:
    """Whether two results have the same bits where they hold the same tensors (not-a-number is equal to itself)."""
    return all(np.array_equal(first[s], second[s], equal_nan=True) for s in first.keys() & second.keys())


def folded(inference: Inference, source: Source) -> bool:
    """Whether a reader of the tensor is of the kind that engines fold into its producer."""
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
