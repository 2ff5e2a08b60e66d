"""Makes the helper modules beside this file importable, and loads the operators once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from designer.operators.registry import Registry, load


@pytest.fixture(scope="session")
def registry() -> Registry:
    return load(entry_points=False)
