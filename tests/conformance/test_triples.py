"""Each operator of one image between others that engines merge with what follows two layers later."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest
from operator_oracles import REGISTRY, Case
from trials import CASES, Trial, disagreements, layer_of

from designer.graph.diagnostics import errors
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.runtime.api import Part

SAMPLE = 2  # triples that begin with a layer in `make test`; all of them in `make conformance`
SIZE = "12x12x4"
FIRST = {
    "convolution": {"features": "4", "kernel": "3x3", "padding": "same"},
    "depthwise_convolution": {"kernel": "3x3", "padding": "same"},
    "transposed_convolution": {"features": "4", "kernel": "2x2", "stride": "2x2"},
    "unary": {"function": "sin"},
    "instance_normalization": {},
    "upsample": {},
}
LAST = (
    Layer("last", "identity", activation=ActivationSpec("silu")),
    Layer("last", "identity", activation=ActivationSpec("gelu")),
    Layer("last", "unary", params={"function": "abs"}),
    Layer("last", "unary", params={"function": "negate"}),
    Layer("last", "convolution", params={"features": "3", "kernel": "3x3", "padding": "same"}),
    Layer("last", "batch_normalization", activation=ActivationSpec("relu")),
    Layer("last", "pooling", params={"operation": "max", "size": "2x2", "stride": "2x2"}),
)


def between() -> list[Case]:
    """The examples of operators and activations that read one image, without repetitions."""
    found = {(case.operator, case.activation): case for case in CASES if [kind.rank for kind in case.types] == [4]}
    return list(found.values())


def triples_from(first: str, order: random.Random | None = None) -> Iterator[Trial]:
    combined = [(case, last) for case in between() for last in LAST]
    if order is not None:
        order.shuffle(combined)
    for case, last in combined:
        layers = [
            Layer("image", "input", params={"dims": SIZE}),
            Layer("first", first, inputs=(Source("image"),), params=FIRST[first]),
            layer_of("middle", case, [Source("first")]),
            replace(last, inputs=(Source("middle"),)),
        ]
        inference = Inference(Graph(layers), REGISTRY)
        if not errors(inference.diagnostics()):
            part = Part(("first", "middle", "last"), (Source("image"),))
            types = tuple(inference.states["image"].outputs)
            name = f"{first} -> {case.name} -> {last.activation.type if last.activation else last.type}"
            yield Trial(name, inference, part, types, (Source("last"),))


@pytest.mark.parametrize("first", FIRST)
def test_triples_agree(first: str, every_pair: bool) -> None:
    triples = triples_from(first) if every_pair else islice(triples_from(first, random.Random(first)), SAMPLE)
    assert not [found for triple in triples for found in disagreements(triple)]
