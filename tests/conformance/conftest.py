"""Keeps torch to one thread, and knows how much is wanted."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread() -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)


BLOCK = 50  # random cases in one test


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of random cases get the seeds of a block of them."""
    for name, option in (("network_seeds", "--networks"), ("tiling_seeds", "--tiled-runs")):
        if name in metafunc.fixturenames:
            first, count = metafunc.config.getoption("--first-seed"), metafunc.config.getoption(option)
            starts = range(first, first + count, BLOCK)
            metafunc.parametrize(name, [range(i, min(i + BLOCK, first + count)) for i in starts], ids=map(str, starts))


@pytest.fixture(scope="session")
def every_pair(request: pytest.FixtureRequest) -> bool:
    """Whether everything is tried rather than a sample (`make conformance`)."""
    return bool(request.config.getoption("--all-pairs"))
