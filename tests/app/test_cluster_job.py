"""A folder on a cluster of two nodes gives the results of a local run, also when a node is lost."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import test_folder_job as local

from app.engine import cluster_job
from app.engine.cluster_job import process_on_cluster
from app.engine.folder_job import JOURNAL, FolderJob, frames_of, process_folders
from designer.files.document import save_document
from designer.files.weights import save_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.inlining import inline
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


def test_an_interrupted_job_continues_and_counts_what_was_done_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the process of a node in this one, which returns the results in another order."""
    images = tmp_path / "images"
    images.mkdir()
    for number in range(5):
        write_image(images / f"{number}.png", np.random.default_rng(number).random((1, 3, 12, 16), np.float32))
    (images / "3.png").write_bytes(b"not an image")
    asked: list[list[str]] = []

    def rows(network, frames):
        asked.append([frame.name for frame in frames])
        runner = cluster_job.Runner(network)
        return [runner(cluster_job._row(index, frame)) for index, frame in reversed(list(enumerate(frames)))]

    monkeypatch.setattr(cluster_job, "_rows", rows)
    monkeypatch.setattr(cluster_job, "Cluster", lambda address: nullcontext())
    graph = local.network("true")
    job = FolderJob({"in": images}, {"out": tmp_path / "made"}, stop=2, kind=".npy")
    reports: list[tuple[int, int, str]] = []
    first = process_on_cluster("here", local.session(graph), job, "key", lambda *each: reports.append(each))
    assert (first.written, first.before, first.skipped) == (2, 0, {})
    done = process_on_cluster(
        "here", local.session(graph), replace(job, stop=None), "key", lambda *each: reports.append(each)
    )
    assert (done.written, done.before, list(done.skipped)) == (2, 2, [str(images / "3.png")])
    assert asked == [["0", "1"], ["2", "3", "4"]]
    assert reports == [(1, 2, "1"), (2, 2, "0"), (3, 5, "4"), (4, 5, "3"), (5, 5, "2")]
    alone = FolderJob({"in": images}, {"out": tmp_path / "local"}, kind=".npy")
    here = process_folders(local.session(graph), alone, "key")
    assert done.notes == here.notes == ("random weights (seed 1)",)
    for number in (0, 1, 2, 4):
        made, expected = (np.load(tmp_path / folder / f"{number}.npy") for folder in ("made", "local"))
        np.testing.assert_array_equal(made, expected)


def test_a_cluster_without_a_usable_image_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(b"x")
    monkeypatch.setattr(
        cluster_job, "_rows", lambda network, frames: [{"index": 0, "skipped": "broken", "results": [], "notes": []}]
    )
    monkeypatch.setattr(cluster_job, "Cluster", lambda address: nullcontext())
    job = FolderJob({"in": tmp_path / "images"}, {"out": tmp_path / "made"})
    with pytest.raises(DiagnosticError, match="no-images"):
        process_on_cluster("here", local.session(), job, "key")


def test_a_node_has_the_weights_that_layers_share_after_graph_passes(tmp_path: Path) -> None:
    inside = (
        Layer("x", "template_input"),
        Layer("conv", "convolution", inputs=(Source("x"),), params={"features": "3"}),
        Layer("y", "template_output", inputs=(Source("conv"),)),
    )
    call = {"template": "block", "shared_weights": "true"}
    layers = [
        Layer("in", "input", params={"dims": "16x12x3"}),
        Layer("one", "template", inputs=(Source("in"),), params=call),
        Layer("two", "template", inputs=(Source("one"),), params=call),
        Layer("out", "output", inputs=(Source("two"),)),
    ]
    session = local.session(inline(Graph(layers, name="net", templates=[Template("block", inside)]), local.REGISTRY))
    write_image(tmp_path / "a.png", np.random.default_rng(0).random((1, 3, 12, 16), np.float32))
    job = FolderJob({"in": tmp_path}, {"out": tmp_path / "made"}, kind=".npy")
    runner = cluster_job.Runner(cluster_job._remote(session, job))
    (data,) = runner(cluster_job._row(0, frames_of(job)[0]))["results"]
    session.set_input_file("in", tmp_path / "a.png")
    np.testing.assert_allclose(np.load(io.BytesIO(data)), session.run().outputs["out"], atol=1e-6)
