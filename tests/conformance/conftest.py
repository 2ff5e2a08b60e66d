"""Keeps torch to one thread, and knows how much is wanted."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread() -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def every_pair(request: pytest.FixtureRequest) -> bool:
    """Whether everything is tried rather than a sample (`make conformance`)."""
    return bool(request.config.getoption("--all-pairs"))
