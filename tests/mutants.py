"""Plants one small mistake after the other in a copy of the sources and prints those that no test finds (`make mutants`).

Every survivor is a question: is the line not needed, or is a test missing? Which mistakes are planted follows from the seed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
WINDOW = ["tests/ui"]
TESTS = {  # the sources in which mistakes are planted, and the tests that should find them
    "designer/graph": ["tests/graph", "tests/operators/test_templates.py", "tests/operators/test_size_contract.py"],
    "designer/files": ["tests/files", "tests/test_every_field.py"],
    "designer/runtime": ["tests/runtime", "tests/test_every_field.py"],
    "analysis_layers": [
        "tests/operators/test_analysis_layers.py",
        "tests/operators/test_recipe.py",
        "tests/operators/test_worked_examples.py",
    ],
    "designer/operators/library": [
        "tests/operators/test_worked_examples.py",
        "tests/operators/test_conformance.py",
        "tests/operators/test_shape_rules.py",
        "tests/operators/test_parameters_by_definition.py",
        "tests/operators/test_random_parameters.py",
        "tests/operators/test_engine_conformance.py",
        "tests/operators/test_initial_values.py",
        "tests/operators/test_registry.py",
        "tests/operators/test_live_cost.py",
    ],
    "exporters": ["tests/exporters"],
    "designer/importers": ["tests/importers"],
    "designer/precision": ["tests/precision"],
    "designer/profiling": ["tests/profiling"],
    "app/ui/analysis": WINDOW,
    "app/ui/document": WINDOW,
    "app/ui/engine": WINDOW,
}
OPPOSITE: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mistake:
    room: str
    path: Path
    line: int
    before: str
    after: str
    source: str  # of the whole module


def mistakes(room: str) -> Iterator[Mistake]:
    """Every mistake that can be planted in a room."""
    for path in sorted((ROOT / room).rglob("*.py")):
        yield from mistakes_in(path.relative_to(ROOT), room)


def mistakes_in(path: Path, room: str) -> Iterator[Mistake]:
    """Every mistake that can be planted in a module."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    for node in ast.walk(tree):
        match node:
            case ast.Compare(ops=[op]) if type(op) in OPPOSITE:
                field, value = "ops", [OPPOSITE[type(op)]()]
            case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OPPOSITE:
                field, value = "op", OPPOSITE[type(op)]()
            case ast.If(test=test) | ast.IfExp(test=test):
                field, value = "test", ast.UnaryOp(ast.Not(), test)
            case ast.Constant(value=bool() as old):
                field, value = "value", not old
            case ast.Constant(value=int() as old):
                field, value = "value", old + 1
            case _:
                continue
        shown = node.test if isinstance(node, ast.If) else node
        kept, before = getattr(node, field), ast.unparse(shown)
        setattr(node, field, value)
        shown = node.test if isinstance(node, ast.If) else node
        yield Mistake(room, path, node.lineno, before, ast.unparse(shown), ast.unparse(tree))
        setattr(node, field, kept)


def found(mistake: Mistake, copy: Path) -> bool:
    target = copy / mistake.path
    kept = target.read_bytes()
    target.write_text(mistake.source, "utf-8")
    try:
        return not passes(copy, mistake.room)
    finally:
        target.write_bytes(kept)


def passes(copy: Path, room: str) -> bool:
    """Whether all tests of a room pass; a test that never ends does not."""
    marks = "gui and not story" if TESTS[room] is WINDOW else "not gui"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", marks, "-p", "no:cacheprovider", *TESTS[room]]
    changes = {"PYTHONPATH": str(copy), "QT_QPA_PLATFORM": "offscreen", "CI": "1", "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **changes}
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=list(TESTS), default=list(TESTS), help="where mistakes are planted"
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    candidates = [mistake for room in options.only for mistake in mistakes(room)]
    random.Random(options.seed).shuffle(candidates)
    end, planted, survived = time.monotonic() + options.minutes * 60, 0, 0
    sound: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache"))
        for mistake in candidates:
            if time.monotonic() > end:
                break
            if mistake.room not in sound and not passes(copy, mistake.room):
                sys.exit(f"the tests of {mistake.room} fail without a mistake: mend them first")
            sound.add(mistake.room)
            planted += 1
            if not found(mistake, copy):
                survived += 1
                print(f"{mistake.path}:{mistake.line}: {mistake.before}  ->  {mistake.after}", flush=True)
    print(f"{planted} of {len(candidates)} mistakes planted, {survived} not found")


if __name__ == "__main__":
    main()
