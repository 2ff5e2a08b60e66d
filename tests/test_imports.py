"""No circle of imports, imports for type checking included. Imports inside functions do not count: they run later."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("app", "designer", "exporters", "analysis_layers", "resources", "samples")


def modules_in(root: Path, rooms: tuple[str, ...]) -> dict[str, Path]:
    """The files of all modules by dotted name; templates of exported projects are not our modules."""
    files = (path for room in rooms for path in (root / room).rglob("*.py"))
    found = {".".join(path.relative_to(root).with_suffix("").parts): path for path in files}
    return {
        name.removesuffix(".__init__"): path
        for name, path in found.items()
        if not name.startswith("resources.templates.")
    }


def statements(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run with the module, or are read by type checkers."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from statements([part for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt)])


def imports_of(name: str, modules: dict[str, Path]) -> set[str]:
    """The modules among `modules` that one of them imports."""
    path = modules[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: set[str] = set()
    for node in statements(ast.parse(path.read_text()).body):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            continue
        source = resolve_name("." * node.level + (node.module or ""), package)
        inner = {f"{source}.{alias.name}" for alias in node.names}
        found |= inner if inner <= modules.keys() else {source, *inner}
    return found & modules.keys()


def circle(graph: dict[str, set[str]]) -> list[str]:
    """One circle, each module imported by the one before it; empty when there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_there_is_no_circle_of_imports() -> None:
    modules = modules_in(ROOT, ROOMS)
    assert " -> ".join(circle({name: imports_of(name, modules) for name in modules})) == ""


@pytest.mark.parametrize(
    "back", ["from room import a", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import room.a"]
)
def test_a_circle_is_named(tmp_path: Path, back: str) -> None:
    room = tmp_path / "room"
    room.mkdir()
    for name, text in {"__init__": "", "a": "from room.b import B", "b": "import room.c", "c": back}.items():
        (room / f"{name}.py").write_text(text)
    modules = modules_in(tmp_path, ("room",))
    found = circle({name: imports_of(name, modules) for name in modules})
    assert set(found) == {"room.a", "room.b", "room.c"}
    assert found[0] == found[-1]
    follows = dict(pairwise(found))
    assert follows["room.a"] == "room.b"


def test_an_import_inside_a_function_is_no_circle(tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    (room / "a.py").write_text("import room.b")
    (room / "b.py").write_text("def later():\n    import room.a")
    modules = modules_in(tmp_path, ("room",))
    assert circle({name: imports_of(name, modules) for name in modules}) == []
