"""Makes the helper module beside this file importable, and keeps torch to one thread: the machine is shared."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread() -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
