"""The table at the end of `make bench`. A target that is not met is reported there and never fails a benchmark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from bench_kit import Report, table

from designer.runtime.machine import physical_cores

FOLDER = Path(__file__).parent
TABLE = pytest.StashKey[str]()
LOAD = os.getloadavg() if hasattr(os, "getloadavg") else ()  # before the benchmarks add their own


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sizes are for measuring: an ordinary test run makes networks small, and one of them is enough.

    Benchmarks that take seconds with the smallest network as well are left to `make bench`: they assert nothing.
    """
    if config.getoption("benchmark_enable"):
        return
    left = [i for i in items if i.path.parent == FOLDER and (_larger(i) or i.get_closest_marker("bench"))]
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=left)


def _larger(item: pytest.Item) -> bool:
    """Whether a test is repeated for a size or an engine other than its first."""
    indices = item.callspec.indices if hasattr(item, "callspec") else {}
    return any(indices.get(name, 0) > 0 for name in ("count", "nodes", "desk", "engine"))


@pytest.fixture
def report(benchmark: Any) -> Report:
    """Rows for the table, declared by the benchmark that measures them."""
    return Report(benchmark)


def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    """Called before the JSON file is written: the table goes next to it, and is kept for the terminal."""
    path: Path = config.getoption("benchmark_json")
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"{header(output_json)}\n\n{table(output_json['benchmarks'])}\n"
    path.with_suffix(".md").write_text(text, "utf-8")
    config.stash[TABLE] = text


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if TABLE in config.stash:
        terminalreporter.write(f"\n{config.stash[TABLE]}\n")


def header(output_json: dict[str, Any]) -> str:
    """What decides how far the numbers can be trusted."""
    machine = output_json["machine_info"]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = ", ".join(f"{value:.1f}" for value in LOAD) or "unknown"
    threads = ", ".join(f"{name}={os.environ.get(name, 'unset')}" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"))
    return (
        f"{output_json['datetime'][:16]} UTC; {machine['cpu'].get('brand_raw', 'unknown processor')}, {cores} cores; "
        f"Python {machine['python_version']}\n"
        f"Load average before the run (1, 5, 15 minutes): {load}; threads: {physical_cores()} for engines, {threads}"
    )
