"""The table of `make bench`: written into a folder that is not there yet, and never a reason to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from bench_kit import Report, medians_in_turns, table

ROOT = Path(__file__).parents[1]


def rows(*fill: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in fill]


def test_the_table_says_what_was_met() -> None:
    benchmark = SimpleNamespace(extra_info={}, disabled=False, stats={"median": 0.0421})
    report = Report(benchmark)
    report.ratio("U-Net", 55.0, "ms", peer=50.0, peer_name="torch", target=1.05)
    report.ratio("Mix", 1.0, "ms", peer=100.0, peer_name="full run", target=1 / 50)
    report.median("edit", target=50)
    report.value("open", 12_345.6, "ms", target=8000)
    made = {"fullname": "tests/benchmarks/test_canvas.py::test_opening[1000]", "extra_info": benchmark.extra_info}
    head, rule, *lines, _, last = table([made, {"fullname": "x.py::y", "extra_info": {}}]).splitlines()
    assert len({len(line) for line in (head, rule, *lines)}) == 1
    assert rows(head, *lines) == [
        ["group", "what", "ours", "peer", "ratio", "target", "met"],
        ["canvas", "U-Net", "55 ms", "50 ms torch", "1.1 x", "<= 1.05 x", "NO"],
        ["canvas", "Mix", "1 ms", "100 ms full run", "0.01 x", "<= 0.02 x", "yes"],
        ["canvas", "edit", "42.1 ms", "", "", "<= 50 ms", "yes"],
        ["canvas", "open", "12,346 ms", "", "", "<= 8,000 ms", "NO"],
    ]
    assert last == "2 of 4 targets met."


def test_works_are_timed_in_turns() -> None:
    played: list[str] = []
    medians_in_turns(lambda: played.append("ours"), lambda: played.append("peer"), pairs=3)
    warm_up, timed = played[:2], played[2:]
    assert warm_up == ["ours", "peer"]
    assert timed == ["ours", "peer", "peer", "ours", "ours", "peer"]


BUSY = """
def test_slow(benchmark, report):
    benchmark(int)
    report.value("never fast enough", 2.0, "ms", target=1.0)
"""


def test_a_missed_target_is_reported_and_fails_nothing(tmp_path: Path) -> None:
    """In a fresh clone: there is no folder for the results."""
    for name in ("conftest.py", "bench_kit.py"):
        (tmp_path / name).write_text((ROOT / "tests" / "benchmarks" / name).read_text("utf-8"), "utf-8")
    (tmp_path / "test_busy.py").write_text(BUSY)
    out = tmp_path / "build" / "bench.json"
    options = ("--benchmark-only", "--benchmark-quiet", f"--benchmark-json={out}", "-p", "no:pytest-qt", "-q")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST")} | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = out.with_suffix(".md").read_text("utf-8")
    assert text in done.stdout
    assert "Load average" in text
    assert "OMP_NUM_THREADS=" in text
    assert rows(text.splitlines()[-3]) == [["busy", "never fast enough", "2 ms", "", "", "<= 1 ms", "NO"]]
    assert json.loads(out.read_text("utf-8"))["benchmarks"][0]["extra_info"]["rows"][0]["target"] == 1.0
