"""A sweep on a cluster of two nodes gives the results of a local one, also when a node is lost."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_sweep_cli import network  # noqa: F401

from app.engine.sweep_job import prepare, run_here
from app.opened_network import open_network
from designer.graph.diagnostics import DiagnosticError
from designer.training.metrics import MetricsFile
from designer.training.run_folder import RunFolder
from exporters.pytorch import Training

ROOT = Path(__file__).parents[2]


def losses(run: RunFolder) -> dict[int, float]:
    """The validation losses by step."""
    metrics = MetricsFile(run.metrics)
    metrics.read()
    steps, values = metrics.curves.points("validation.loss")
    return dict(zip(steps.astype(int).tolist(), values.tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.timeout(300)  # a busy machine starts the processes of Ray slowly
def test_a_lost_node_loses_no_trial(network: Path) -> None:  # noqa: F811
    if importlib.util.find_spec("ray") is None or importlib.util.find_spec("ray.tune") is None:
        pytest.skip("Ray is not installed: pip install 'layerwright[cluster]'")
    driver = importlib.import_module("sweep_driver")
    photos, there, here = (network.parent / name for name in ("photos", "there", "here"))
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "app" / "sweep_driver.py"), str(network), str(photos), str(there)],
        capture_output=True,
        text=True,
        check=False,
        cwd=network.parent,
        timeout=280,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"states": {"trial_001": "finished", "trial_002": "finished"}, "lost": ["a node"]}
    opened, local, remote = open_network(network), driver.sweep_in(here, photos), driver.sweep_in(there, photos)
    run_here(local, prepare(local, opened.graph, opened.registry, Training(), network), 2, lambda *_: None)
    for trial in local.trials:
        expected, mirrored = losses(local.run(trial)), losses(remote.run(trial))
        assert len(expected) == 5
        assert mirrored == expected
        for path in (local.run(trial).path / "weights").iterdir():
            np.testing.assert_array_equal(np.load(remote.run(trial).path / "weights" / path.name), np.load(path))
    assert prepare(remote, opened.graph, opened.registry, Training(), network) == []


def test_without_ray_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.engine.cluster import Cluster

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "ray" else find(name, *more))
    with pytest.raises(DiagnosticError, match="Ray is not installed"):
        Cluster("127.0.0.1:6379")
