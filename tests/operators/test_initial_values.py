"""What evaluation mode hides: initial values against torch's own, and what recurrent layers drop between their layers."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from operator_oracles import LAYER, TORCH, Case, case_of, made, network, runner

from designer.files.weights import WeightKey, random_weights
from designer.graph.types import BATCH, TensorType

LEARNING = [
    case
    for case in TORCH
    if case.operator.type != "custom"  # its code decides
    and "state_dict" not in case.subject.exceptions
    and network(case).program().weights
]
ENOUGH = 4000  # numbers in each estimate
VALUES = 100_000  # of one tensor: the largest examples would take long


def declared(case: Case, layer: str = LAYER) -> dict[WeightKey, object]:
    return {WeightKey(layer, bound.tensor): bound.weight for bound in network(case).program().weights}


@pytest.mark.parametrize("case", LEARNING, ids=lambda case: case.name)
def test_random_weights_are_spread_as_torch_spreads_them(case: Case) -> None:
    net, needed = network(case), declared(case)
    smallest = min(math.prod(bound.weight.shape) for bound in net.program().weights)
    rounds = min(100, -(-ENOUGH // max(1, smallest)))
    ours: dict[str, list[np.ndarray]] = {}
    theirs: dict[str, list[np.ndarray]] = {}
    torch.manual_seed(0)
    for seed in range(rounds):
        state = runner(case, net=net).inner.state_dict()
        weights = random_weights(needed, seed)
        for bound in net.program().weights:
            ours.setdefault(bound.tensor, []).append(weights.tensors[WeightKey(LAYER, bound.tensor)].ravel()[:VALUES])
            theirs.setdefault(bound.tensor, []).append(state[bound.key].numpy().ravel()[:VALUES])
    for tensor in ours:
        here, there = np.concatenate(ours[tensor]), np.concatenate(theirs[tensor]).astype(np.float64)
        doubt = 5 / math.sqrt(len(here))
        assert here.std() == pytest.approx(there.std(), rel=max(0.1, doubt), abs=1e-6), tensor
        assert here.mean() == pytest.approx(there.mean(), abs=(1e-6 + there.std()) * doubt * 2), tensor


@pytest.mark.parametrize("case", LEARNING, ids=lambda case: case.name)
def test_no_two_tensors_have_the_same_random_numbers(case: Case) -> None:
    first, second = (random_weights(declared(case, name), 0).tensors for name in ("one", "two"))
    found = [array.ravel()[:VALUES] for array in (*first.values(), *second.values()) if array.size > 8 and array.std()]
    for one, other in combinations(found, 2):
        shared = min(len(one), len(other))
        assert abs(np.corrcoef(one[:shared], other[:shared])[0, 1]) < 6 / math.sqrt(shared)


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
def test_recurrent_layers_drop_between_their_layers_while_training(name: str) -> None:
    types = [TensorType((BATCH, 5, 4))]
    x = torch.randn(64, 5, 4, generator=torch.Generator().manual_seed(0))
    for layers, dropout, drops in ((2, 0.5, True), (2, 0.0, False), (1, 0.5, False)):
        module = runner(case_of(made(name, hidden=16, layers=layers, dropout=dropout), types))
        with torch.no_grad():
            still = module(x)[0]
            module.train()
            torch.manual_seed(1)
            trained = module(x)[0]
        assert torch.equal(trained, still) is not drops
    share = made(name, hidden=16, layers=2, dropout=1.0)
    module = runner(case_of(share, types)).train()
    assert torch.equal(module(x)[0][0], module(-x)[0][0])  # nothing of the first layer comes through
