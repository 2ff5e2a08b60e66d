"""Random networks agree on every engine, in both layouts, and exported."""

from __future__ import annotations

import pytest
from random_networks import random_network
from trials import disagreements

BLOCK = 50  # networks in one test


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    count, start = (int(metafunc.config.getoption(name)) for name in ("--networks", "--first-seed"))
    blocks = range(start, start + count, BLOCK)
    metafunc.parametrize("seeds", [range(i, min(i + BLOCK, start + count)) for i in blocks], ids=map(str, blocks))


def test_random_networks_agree(seeds: range) -> None:
    assert not [found for seed in seeds for found in disagreements(random_network(seed), seed=seed)]
