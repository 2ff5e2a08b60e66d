"""A folder on a cluster of two nodes gives the results of a local run, also when a node is lost."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import test_folder_job as local

from app.engine.cluster_job import process_on_cluster
from app.engine.folder_job import JOURNAL, FolderJob, process_folders
from designer.files.document import save_document
from designer.files.weights import save_weights
from designer.graph.diagnostics import DiagnosticError
from designer.runtime.images import write_image

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(900)  # a busy machine starts the processes of Ray slowly
def test_a_lost_node_loses_nothing(tmp_path: Path) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'layerwright[cluster]'")
    images = tmp_path / "images"
    images.mkdir()
    for number in range(16):
        write_image(images / f"{number}.png", np.random.default_rng(number).random((1, 3, 12, 16), np.float32))
    (images / "5.png").write_bytes(b"not an image")
    graph = local.network("true")
    save_document(graph, tmp_path / "net.xml")
    save_weights(tmp_path / "weights", local.weights(graph).tensors)
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "app" / "cluster_driver.py"), "net.xml", "weights", "images", "made"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=800,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"written": 15, "before": 0, "skipped": ["images/5.png"]}
    expected = process_folders(
        local.session(graph), FolderJob({"in": images}, {"out": tmp_path / "local"}, kind=".npy"), "key"
    )
    assert expected.written == 15
    names = {path.name for path in (tmp_path / "local").glob("*.npy")}
    assert {path.name for path in (tmp_path / "made").iterdir()} == {*names, JOURNAL}
    for name in names:
        np.testing.assert_array_equal(np.load(tmp_path / "made" / name), np.load(tmp_path / "local" / name))
    again = process_folders(
        local.session(graph), FolderJob({"in": images}, {"out": tmp_path / "made"}, kind=".npy"), "key"
    )
    assert (again.written, again.before) == (0, 15)  # the journal of the cluster is that of a local run


def test_without_ray_the_command_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_image(tmp_path / "a.png", np.zeros((1, 3, 12, 16), np.float32))
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "ray" else find(name, *more))
    job = FolderJob({"in": tmp_path}, {"out": tmp_path / "made"})
    with pytest.raises(DiagnosticError) as failed:
        process_on_cluster("127.0.0.1:6379", local.session(), job, "key")
    assert failed.value.diagnostics[0].message == "Ray is not installed"
    assert 'pip install "layerwright[cluster]"' in failed.value.diagnostics[0].remedy
