from __future__ import annotations

import pytest

from designer.operators.registry import Registry, default_registry


@pytest.fixture(scope="session")
def registry() -> Registry:
    return default_registry()
