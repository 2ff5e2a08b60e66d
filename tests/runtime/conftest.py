"""Makes the helper module beside this file importable, and keeps torch to one thread: the machine is shared."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from designer.operators.registry import Registry, load


@pytest.fixture(scope="session")
def runtime_registry() -> Registry:
    return load(entry_points=False)
