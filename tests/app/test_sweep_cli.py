"""`layerwright sweep`: the trials are ordinary runs, in the order of their results; a sweep is stopped and continued."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from app.cli.main import app
from designer.files.document import save_document
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.runtime.images import write_image
from designer.training import run_registry
from designer.training.run_folder import RunFolder, Status

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SMALL = (
    "--steps 4 --batch 2 --patch 16 --workers 0 --synthetic 0 --validate-every 2 --threads 1 --no-tensorboard --no-monitor"
).split()


@pytest.fixture
def network(tmp_path: Path) -> Path:
    graph = Graph(
        [
            Layer("input", "input", params={"dims": "16x16x3", "tiling": "1"}),
            Layer("wide", "convolution", (100, 0), (Source("input"),), {"features": "4"}),
            Layer("conv", "convolution", (200, 0), (Source("wide"),), {"features": "3"}),
            Layer("output", "output", (400, 0), (Source("conv"),)),
        ],
        name="tiny",
    )
    save_document(graph, tmp_path / "net.xml")
    (tmp_path / "photos").mkdir()
    for name in "ab":
        write_image(tmp_path / "photos" / f"{name}.png", np.random.default_rng(0).random((1, 3, 48, 48), np.float32))
    return tmp_path / "net.xml"


def command(network: Path, *words: object) -> list[str]:
    start = [sys.executable, "-m", "app.cli.main", "sweep", str(network), "--data", str(network.parent / "photos")]
    return [*start, *SMALL, *map(str, words)]


def sweep(network: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(network, *words), capture_output=True, text=True, timeout=280, check=False, cwd=ROOT)


def results(network: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((network.with_name("net_sweep") / "results.json").read_text())
    return found


def test_a_grid_over_noise_and_widths_names_the_failed_trial_and_is_not_repeated(network: Path) -> None:
    words = ("--grid", "noise=25,5,300", "--grid", "width.wide=2", "--parallel", 2)
    done = sweep(network, *words)
    assert done.returncode == 1, done.stderr
    assert "trial_003 (noise 300, width.wide 2) failed" in done.stderr
    found = results(network)
    assert found[0]["metric"] == "psnr"
    assert float(str(found[0]["value"])) >= float(str(found[1]["value"]))
    assert found[2]["trial"] == "trial_003"
    assert [row["state"] for row in found] == ["finished", "finished", "failed"]
    with (network.with_name("net_sweep") / "results.csv").open(newline="") as file:
        assert [row["trial"] for row in csv.DictReader(file)] == [row["trial"] for row in found]
    (best,) = (RunFolder(Path(str(row["run"]))) for row in found if row["trial"] == "trial_002")
    assert best.settings()["noise"] == "5"
    assert best.notes().title == "noise 5, width.wide 2"
    assert "nn.Conv2d(3, 2," in (best.project / "model.py").read_text()
    assert {run.folder for run in run_registry.known_runs()} == {str(row["run"]) for row in found}
    written = best.checkpoint.stat().st_mtime_ns
    again = CliRunner().invoke(app, command(network, *words)[3:])
    assert "3 trials, 2 finished before" in again.stdout
    assert best.checkpoint.stat().st_mtime_ns == written
    other = CliRunner().invoke(app, command(network, "--grid", "noise=25")[3:])
    assert isinstance(other.exception, DiagnosticError)
    assert "another sweep" in str(other.exception)


def wait_for(run: RunFolder, condition: Callable[[Status], bool]) -> None:
    end = time.monotonic() + 100
    while not ((status := run.status()) and condition(status)):
        assert time.monotonic() < end, status
        assert status is None or status.state != "finished"
        time.sleep(0.02)


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the test."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_a_sweep_that_was_stopped_continues_with_its_checkpoints(network: Path) -> None:
    words = command(network, "--grid", "lr=0.001,0.002")
    words[words.index("--steps") + 1] = "1000"
    words[words.index("--validate-every") + 1] = "1000"
    run = RunFolder(network.with_name("net_sweep") / "network" / "runs" / "trial_001")
    with ended(subprocess.Popen(words, stdout=subprocess.DEVNULL, cwd=ROOT, start_new_session=True)) as process:
        wait_for(run, lambda status: status.step > 5)
        run.send("pause")  # so that it does not finish before it is stopped
        wait_for(run, lambda status: status.state == "paused")
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(100) == 130
    stopped = run.status()
    assert stopped is not None
    assert stopped.state == "stopped"
    assert run.checkpoint is not None
    assert [row["state"] for row in results(network)] == ["stopped", "waiting"]
    first = run.metrics.read_text().splitlines()[1]
    assert subprocess.run(words, stdout=subprocess.DEVNULL, cwd=ROOT, timeout=280, check=False).returncode == 0
    assert run.metrics.read_text().splitlines()[1] == first  # it was resumed, not repeated
    assert [(row["state"], row["step"]) for row in results(network)] == [("finished", 1000)] * 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense=1"], "nonsense is not a setting"),
        (["width.nothing=1"], "width.nothing: no layer with features"),
        (["lr=1e-4..1e-2"], "only a random search takes a range"),
        (["noise=1,1"], "different values"),
        (["noise=1", "--grid", "noise=2"], "each setting is searched once"),
        (["width.wide=-1"], "widths are whole numbers"),
        (["width.wide=0"], "wide"),
    ],
)
def test_searches_that_cannot_run_are_refused_before_training(network: Path, words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["sweep", str(network), "--data", str(network.parent / "photos"), "--grid", *words])
    assert isinstance(done.exception, DiagnosticError)
    assert said in str(done.exception)
    assert not network.with_name("net_sweep").exists()
