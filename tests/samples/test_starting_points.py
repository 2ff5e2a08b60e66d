"""The networks that File > New From offers: without problems, laid out, and ready to run."""

from __future__ import annotations

import json

import numpy as np
import pytest

import samples
from designer.files.document import read_document, write_document
from designer.files.settings import find_settings, read_settings
from designer.files.weights import random_weights, required_weights
from designer.graph.inference import Inference
from designer.graph.model import GRID
from designer.operators.registry import load
from designer.operators.training_branch import missing_output
from designer.runtime.api import RunOptions
from designer.runtime.session import Session
from exporters.pytorch import Training, export_project

REGISTRY = load(entry_points=False)
FOLDER = samples.FOLDER / "starting_points"
FILES = sorted(path for path in FOLDER.glob("*.xml") if not path.name.endswith(".settings.xml"))


def test_every_file_is_offered():
    assert [samples.starting_point(name) for name in sorted(samples.STARTING_POINTS)] == FILES


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_it_is_valid_canonical_and_reads_from_left_to_right(path):
    reading = read_document(path)
    graph = reading.graph
    assert graph is not None
    assert not reading.diagnostics
    assert graph.name == path.stem
    assert write_document(graph) == path.read_bytes()
    assert not Inference(graph, REGISTRY).diagnostics()
    assert missing_output(graph, REGISTRY) is None
    assert all(v % GRID == 0 for layer in graph for v in layer.position)
    for producer, _, consumer, _ in graph.links():
        assert graph[producer].position[0] < graph[consumer].position[0]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_it_has_a_task_and_a_recipe_that_its_project_takes(path, tmp_path):
    stored = find_settings(path)
    assert stored is not None
    settings, findings = read_settings(stored)
    assert not findings
    training = Training(settings.task, settings.recipe)
    export_project(read_document(path).graph, REGISTRY, tmp_path / "project", path.stem, training)
    info = json.loads((tmp_path / "project" / "project.json").read_text("utf-8"))
    assert info["task"] == settings.task
    assert info["model"][0].isupper()


@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_it_runs_on_random_weights(path, engine):
    pytest.importorskip(engine)
    graph = read_document(path).graph
    (source,) = (layer for layer in graph if layer.type == "input")
    width, height, channels = map(int, source.params["dims"].split("x"))
    weights = random_weights(required_weights(Inference(graph, REGISTRY)), seed=0)
    session = Session(graph, REGISTRY, weights, RunOptions(engine=engine, threads=1))
    image = np.random.default_rng(0).random((1, channels, height, width), np.float32)
    session.set_input(source.name, image, is_image=True)
    (result,) = session.run().outputs.values()
    (sink,) = (layer for layer in graph if layer.type == "output")
    expected = Inference(graph, REGISTRY).states[sink.name].outputs
    assert result.shape[1:] == expected[0].shape[1:]
    assert np.isfinite(result).all()
    assert result.std() > 0
