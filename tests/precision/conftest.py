"""Loads the operators once."""

from __future__ import annotations

import pytest

from designer.operators.registry import Registry, load


@pytest.fixture(scope="session")
def registry() -> Registry:
    return load(entry_points=False)
