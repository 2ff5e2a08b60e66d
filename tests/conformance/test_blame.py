"""Faults planted into single layers of an ONNX file: blame finds the layer, among the rounding errors of two engines."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from faulty_networks import SIDE, faults

from designer.operators.registry import Registry, load
from designer.precision.blame import blame
from designer.precision.computations import EngineComputation, FileComputation, names_in_file
from designer.runtime.api import RunOptions
from designer.runtime.session import Session
from exporters.onnx import export_onnx

PLANTED = 200
SAMPLE = 20


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load(entry_points=False)


def test_planted_faults_rank_first(registry, every_pair, tmp_path):
    count = PLANTED if every_pair else SAMPLE
    image = np.random.default_rng(5).random((1, 3, SIDE, SIDE), np.float32)
    missed = []
    for name, (graph, weights), layer, (wrong_graph, wrong_weights) in faults(registry, count):
        session = Session(graph, registry, weights, RunOptions(engine="torch", threads=1))
        session.set_input("image", image, is_image=True)
        ours = EngineComputation(session)
        export_onnx(wrong_graph, registry, wrong_weights, tmp_path / "wrong.onnx")
        model = onnx.load(tmp_path / "wrong.onnx")
        theirs = FileComputation(model, names_in_file(ours, model, {}), threads=1)
        found = blame(ours.operators([theirs]), ours, theirs, ours.inputs(), ours.outputs)
        assert sum(item.share for item in found.operators) == pytest.approx(1, abs=0.05), name
        if found.ranked()[0].layer != layer or found.first != layer:
            missed.append(f"{name} in '{layer}': {found.ranked()[0]}, first {found.first}")
    assert len(missed) <= 0.05 * count, missed
