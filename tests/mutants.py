"""Plants one small mistake after the other in a copy of the sources and prints those that no test finds (`make mutants`).

All tests of a room run once, to record which lines each of them executes; then each mistake is tried with the tests that execute its
line. Every survivor is a question: is the line not needed, or is a test missing? Which mistakes are planted follows from the seed.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData

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
    "designer/passes": ["tests/passes"],
    "designer/surgery": ["tests/surgery"],
    "designer/training": ["tests/training"],
    **{str(room.relative_to(ROOT)): WINDOW for room in sorted((ROOT / "app/ui").iterdir()) if any(room.glob("*.py"))},
}
SECONDS = 90  # of tests for one mistake
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
LOOKS = {
    "addSpacing",
    "addStretch",
    "setAccessibleName",
    "setContentsMargins",
    "setObjectName",
    "setSpacing",
    "setToolTip",
}


@dataclass(frozen=True)
class Mistake:
    room: str
    path: Path
    line: int
    before: str
    after: str
    number: int  # in the module


@dataclass(frozen=True)
class Record:
    """What the tests of a room execute."""

    tests: dict[Path, dict[int, set[str]]]  # by module and line
    seconds: dict[str, float]

    def of(self, mistake: Mistake) -> list[str]:
        """The tests that execute the line, at most for `SECONDS`: those of the module first, then some of each file."""
        words = set(mistake.path.stem.split("_"))
        executing = self.tests.get(mistake.path, {}).get(mistake.line, set()) & self.seconds.keys()
        order: dict[str, tuple[bool, int, float]] = {}
        files: Counter[str] = Counter()
        for test in sorted(executing, key=self.seconds.__getitem__):
            file = test.split("::")[0]
            order[test] = (words.isdisjoint(Path(file).stem.split("_")), files[file] // 3, self.seconds[test])
            files[file] += 1
        left, chosen = float(SECONDS), []
        for test in sorted(executing, key=order.__getitem__):
            if left >= self.seconds[test] or not chosen:
                chosen.append(test)
                left -= self.seconds[test]
        return chosen


def mistakes(room: str) -> Iterator[Mistake]:
    """Every mistake that can be planted in a room."""
    for path in sorted((ROOT / room).rglob("*.py")):
        yield from mistakes_in(path.relative_to(ROOT), room)


def mistakes_in(path: Path, room: str) -> Iterator[Mistake]:
    """Every mistake that can be planted in a module."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    for number, (line, before, after) in enumerate(changes(tree, TESTS[room] is WINDOW)):
        yield Mistake(room, path, line, before, after, number)


def source_with(mistake: Mistake) -> str:
    """The module with the mistake."""
    tree = ast.parse((ROOT / mistake.path).read_text("utf-8"))
    next(itertools.islice(changes(tree, TESTS[mistake.room] is WINDOW), mistake.number, None))
    return ast.unparse(tree)


def changes(tree: ast.Module, window: bool) -> Iterator[tuple[int, str, str]]:
    """Change a module in every way, one after the other: yields the line and what it was and is, while it is changed."""
    for node in ast.walk(tree):
        for index, statement in enumerate(body := getattr(node, "body", None) or []) if has_statements(node) else ():
            if can_be_missing(statement):
                body[index] = ast.copy_location(ast.Pass(), statement)
                yield statement.lineno, ast.unparse(statement), "(deleted)"
                body[index] = statement
        match node:
            case ast.Compare(ops=[op]) if type(op) in OPPOSITE:
                field, value = "ops", [OPPOSITE[type(op)]()]
            case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OPPOSITE:
                field, value = "op", OPPOSITE[type(op)]()
            case ast.If(test=test) | ast.IfExp(test=test):
                field, value = "test", ast.UnaryOp(ast.Not(), test)
            case ast.Constant(value=bool() as old):
                field, value = "value", not old
            case ast.Constant(value=int() as old) if not window:  # there most are sizes of widgets
                field, value = "value", old + 1
            case ast.Call(func=called, args=[first, second], keywords=[]) if not isinstance(second, ast.Starred):
                if ast.unparse(called) in ("max", "min") or ast.unparse(first) == ast.unparse(second):
                    continue
                field, value = "args", [second, first]
            case _:
                continue
        shown = node.test if isinstance(node, ast.If) else node
        kept, before = getattr(node, field), ast.unparse(shown)
        setattr(node, field, value)
        shown = node.test if isinstance(node, ast.If) else node
        yield node.lineno, before, ast.unparse(shown)
        setattr(node, field, kept)


def has_statements(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.If, ast.For, ast.While, ast.With, ast.Try))


def can_be_missing(statement: ast.stmt) -> bool:
    """Whether a developer could have forgotten a statement: a call, an attribute that is set, or an early return."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))):
            return name not in LOOKS
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
        case ast.If(body=[*_, ast.Return() | ast.Continue()], orelse=[]):
            return True
    return False


def environment(copy: Path, **more: str) -> dict[str, str]:
    paths = os.pathsep.join([str(copy), str(copy / "tests")])
    changes = {"PYTHONPATH": paths, "QT_QPA_PLATFORM": "offscreen", "CI": "1", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **changes, **more}


def record(copy: Path, room: str) -> Record:
    """Run all tests of a room; exits if one fails."""
    marks = "gui and not story" if TESTS[room] is WINDOW else "not gui"
    measured = "app/ui" if TESTS[room] is WINDOW else room
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "auto", "--dist", "worksteal", "-m", marks]
        command += ["-p", "executed_lines", "-p", "no:cacheprovider", *TESTS[room]]
        settings = environment(copy, RECORD=folder, MEASURED=str(copy / measured))
        if subprocess.run(command, cwd=copy, env=settings, check=False).returncode:
            sys.exit(f"the tests of {room} fail without a mistake: mend them first")
        tests: dict[Path, dict[int, set[str]]] = {}
        for file in Path(folder).glob("lines.*"):
            data = CoverageData(str(file))
            data.read()
            for module in data.measured_files():
                lines = tests.setdefault(Path(module).relative_to(copy), {})
                for line, names in data.contexts_by_lineno(module).items():
                    lines.setdefault(line, set()).update(names)
        seconds = {}
        for file in Path(folder).glob("seconds.*.json"):
            seconds |= json.loads(file.read_text("utf-8"))
    return Record(tests, seconds)


def found(mistake: Mistake, copy: Path, tests: list[str]) -> bool:
    """Whether a test fails, or never ends."""
    target = copy / mistake.path
    kept = target.read_bytes()
    target.write_text(source_with(mistake), "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    settings = environment(copy, PYTHONDONTWRITEBYTECODE="1")
    try:
        done = subprocess.run(command, cwd=copy, env=settings, capture_output=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        return True
    finally:
        target.write_bytes(kept)
    return done.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=list(TESTS), default=list(TESTS), help="where mistakes are planted"
    )
    parser.add_argument("--minutes", type=float, default=10, help="after the tests ran once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    candidates = [mistake for room in options.only for mistake in mistakes(room)]
    random.Random(options.seed).shuffle(candidates)
    with tempfile.TemporaryDirectory() as folder:
        copies: queue.Queue[Path] = queue.Queue()
        for job in range(options.jobs):
            copy = Path(folder) / str(job)
            shutil.copytree(
                ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache")
            )
            copies.put(copy)
        by_tests = {id(TESTS[room]) if TESTS[room] is WINDOW else room: room for room in options.only}
        records = {key: record(Path(folder) / "0", room) for key, room in by_tests.items()}
        end = time.monotonic() + options.minutes * 60

        def planted(mistake: Mistake) -> bool | None:
            """Whether the mistake is found; None when time is over."""
            if time.monotonic() > end:
                return None
            window = TESTS[mistake.room] is WINDOW
            tests = records[id(WINDOW) if window else mistake.room].of(mistake)
            if not tests and not window:
                tests = TESTS[mistake.room]  # executed at import or in another process
            copy = copies.get()
            try:
                seen = bool(tests) and found(mistake, copy, tests)
            finally:
                copies.put(copy)
            if not seen:
                note = "" if tests else "  (no test executes it)"
                print(f"{mistake.path}:{mistake.line}: {mistake.before}  ->  {mistake.after}{note}", flush=True)
            return seen

        with ThreadPoolExecutor(options.jobs) as pool:
            results = [result for result in pool.map(planted, candidates) if result is not None]
    print(f"{len(results)} of {len(candidates)} mistakes planted, {results.count(False)} not found")


if __name__ == "__main__":
    main()
