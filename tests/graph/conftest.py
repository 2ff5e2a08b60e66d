from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from designer.operators.registry import Registry


def _tiny() -> ModuleType:
    name = "tests_graph_tiny_operators"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("tiny_operators.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def tiny() -> Registry:
    """A registry of a few small operators (see tiny_operators.py)."""
    registry = _tiny().tiny_registry()
    assert isinstance(registry, Registry)
    return registry
