"""What a function is called with, instead of the call."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import SimpleNamespace

import pytest


class ReachedError(Exception):
    """Raised by a function that was called; its argument has those of the call by name."""


def reach(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """Let a function raise ReachedError."""
    module, _, name = target.rpartition(".")
    signature = inspect.signature(getattr(import_module(module), name))

    def called(*arguments: object, **more: object) -> None:
        bound = signature.bind(*arguments, **more)
        bound.apply_defaults()
        raise ReachedError(SimpleNamespace(**bound.arguments))

    monkeypatch.setattr(target, called)
