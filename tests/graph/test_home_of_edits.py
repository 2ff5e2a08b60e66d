"""Edits are made in `designer`: the window asks for them."""

from __future__ import annotations

import ast
from pathlib import Path

import app


def test_the_window_makes_no_edits() -> None:
    found = [
        f"{path.name}:{node.lineno}"
        for path in sorted(Path(app.__file__).parent.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Edit"
    ]
    assert found == []
