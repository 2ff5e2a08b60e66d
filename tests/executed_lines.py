"""A plugin of pytest that records which test executes which line, and how long it takes (`-n 2 -p executed_lines`).

`RECORD` is the folder for the records and `MEASURED` lists folders of sources, separated by commas. `make mutants` uses it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from coverage import Coverage

FOLDER = Path(os.environ["RECORD"])
PROCESS = os.environ.get("PYTEST_XDIST_WORKER", "")  # the first process distributes the tests
COVERAGE = Coverage(FOLDER / f"lines.{PROCESS}", source=os.environ["MEASURED"].split(","), config_file=False)
SECONDS: dict[str, float] = {}


def pytest_configure() -> None:
    if PROCESS:
        COVERAGE.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    COVERAGE.switch_context(item.nodeid)
    began = time.monotonic()
    try:
        return (yield)
    finally:
        SECONDS[item.nodeid] = time.monotonic() - began
        COVERAGE.switch_context("")


def pytest_unconfigure() -> None:
    if PROCESS:
        COVERAGE.stop()
        COVERAGE.save()
        (FOLDER / f"seconds.{PROCESS}.json").write_text(json.dumps(SECONDS), "utf-8")
