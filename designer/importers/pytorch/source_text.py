"""The text of a module that the user names, and what it offers. Nothing is executed: the text is shown before it may run."""

from __future__ import annotations

import ast
import importlib.machinery
import sys
from pathlib import Path

MAX_SOURCE = 4 << 20  # bytes


def source_file(place: str, folder: Path) -> Path | None:
    """The file of `file.py` or `package.module`, searched in `folder` and on the path; None if there is none.

    Packages around a module are not imported.
    """
    if place.endswith(".py"):
        path = folder / place
        return path if path.is_file() else None
    path_list: list[str] | None = [str(folder), *sys.path]
    spec = None
    name = ""
    for part in place.split("."):
        name = f"{name}.{part}" if name else part
        spec = importlib.machinery.PathFinder.find_spec(name, path_list)
        if spec is None:
            return None
        path_list = list(spec.submodule_search_locations or ())
    origin = spec.origin if spec is not None else None
    return Path(origin) if origin is not None and origin.endswith(".py") else None


def read_source(path: Path) -> str:
    """The text of a file; empty if it cannot be read or is too long for a source."""
    try:
        return path.read_text("utf-8", "replace") if path.stat().st_size <= MAX_SOURCE else ""
    except OSError:
        return ""


def callables(source: str) -> list[str]:
    """Names in a source that may make a module without arguments: classes with a base, the last one first, then functions."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    classes = [
        node.name for node in body if isinstance(node, ast.ClassDef) and node.bases and not _needs_arguments(node)
    ]
    functions = [node.name for node in body if isinstance(node, ast.FunctionDef) and not _required(node.args, 0)]
    return [name for name in (*reversed(classes), *functions) if not name.startswith("_")]


def _needs_arguments(node: ast.ClassDef) -> bool:
    makers = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
    return bool(makers) and _required(makers[0].args, 1) > 0


def _required(arguments: ast.arguments, own: int) -> int:
    """The number of arguments without a default, without the first `own`."""
    positional = [*arguments.posonlyargs, *arguments.args][own:]
    named = sum(1 for default in arguments.kw_defaults if default is None)
    return max(0, len(positional) - len(arguments.defaults)) + named
