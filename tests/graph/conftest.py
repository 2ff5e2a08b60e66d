from __future__ import annotations

import pytest
from tiny_operators import tiny_registry

from designer.operators.registry import Registry


@pytest.fixture(scope="session")
def tiny() -> Registry:
    """A registry of a few small operators (see tiny_operators.py)."""
    return tiny_registry()
