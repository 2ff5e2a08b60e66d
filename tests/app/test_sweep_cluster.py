"""A sweep on a cluster of two nodes loses nothing when a node is lost."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.training.metrics import MetricsFile

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_lost_node_loses_no_trial(tmp_path: Path) -> None:
    if importlib.util.find_spec("ray") is None or importlib.util.find_spec("ray.tune") is None:
        pytest.skip("Ray is not installed: pip install 'layerwright[cluster]'")
    driver = importlib.import_module("sweep_driver")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "app" / "sweep_driver.py"), str(tmp_path / "sweep")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=240,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"states": {"trial_001": "finished", "trial_002": "finished"}, "lost": ["a node"]}
    sweep = driver.sweep_in(tmp_path / "sweep")
    starts = []
    for trial in sweep.trials:
        run = sweep.run(trial)
        metrics = MetricsFile(run.metrics)
        metrics.read()
        steps, losses = metrics.curves.points("loss")
        np.testing.assert_array_equal(steps, np.arange(1, driver.STEPS + 1))
        np.testing.assert_allclose(losses, 1 / steps)
        assert not run.process()
        starts.append(run.metrics.read_text().count('"schema"'))
    assert sorted(starts) == [1, 2]  # the trial of the lost node continued from the copied checkpoint


def test_without_ray_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.engine.cluster import Cluster

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "ray" else find(name, *more))
    with pytest.raises(DiagnosticError, match="Ray is not installed"):
        Cluster("127.0.0.1:6379")
