"""`layerwright train`: the project is exported, trains in a process of its own, and its progress is printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from designer.files.document import save_document
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.runtime.images import write_image
from designer.training import run_registry
from designer.training.run_folder import RunFolder, runs_of

pytestmark = pytest.mark.slow


@pytest.fixture
def network(tmp_path):
    graph = Graph(
        [
            Layer("input", "input", params={"dims": "16x16x3", "tiling": "1"}),
            Layer("conv", "convolution", (200, 0), (Source("input"),), {"features": "3"}),
            Layer("output", "output", (400, 0), (Source("conv"),)),
        ],
        name="tiny",
    )
    save_document(graph, tmp_path / "net.xml")
    photos = tmp_path / "photos"
    photos.mkdir()
    write_image(photos / "a.png", np.random.default_rng(0).random((1, 3, 48, 48), np.float32))
    return tmp_path / "net.xml"


def train(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app.cli.main", "train", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=200, check=False, cwd=Path(__file__).parents[2]
    )


def test_a_network_is_trained_and_found_again(network):
    options = (
        "--data",
        network.with_name("photos"),
        "--steps",
        6,
        "--batch",
        2,
        "--patch",
        16,
        "--workers",
        0,
        "--synthetic",
        0,
    )
    done = train(network, *options, "--validate-every", 3, "--threads", 1)
    assert done.returncode == 0, done.stderr
    assert "step 6 of 6" in done.stdout
    assert "of 0" not in done.stdout  # the number of steps is known when training begins
    assert "finished" in done.stdout
    (folder,) = runs_of(network.with_name("net_pytorch"))
    run = RunFolder(folder)
    assert run.settings()["batch"] == 2
    assert run.weights is not None
    assert [known.document for known in run_registry.known_runs()] == [str(network)]


def test_a_run_that_fails_says_why(network):
    done = train(network, "--data", network.with_name("nothing"), "--steps", 2)
    assert done.returncode == 1
    assert "nothing" in done.stdout


def test_words_that_are_no_options_are_refused_before_anything_is_written(network):
    done = train(network, "strange")
    assert done.returncode == 1
    assert "strange" in done.stderr
    assert not network.with_name("net_pytorch").exists()
