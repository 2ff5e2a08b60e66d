"""Random networks agree on every engine, in both layouts, and exported."""

from __future__ import annotations

from random_networks import random_network
from trials import disagreements


def test_random_networks_agree(network_seeds: range) -> None:
    assert not [found for seed in network_seeds for found in disagreements(random_network(seed), seed=seed)]
