"""The engine process' methods on a network of templates: opened, run, edited, run again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

import samples
from app.engine.protocol import OpenRequest, RunRequest, SetInputTensorRequest, UpdateRequest, asked
from app.engine.worker import Worker
from designer.files.document import read_document, write_document
from designer.graph import commands, template_commands
from designer.graph.diagnostics import Severity
from designer.runtime.shared import SharedFolder


def test_open_run_edit_run(tmp_path: Path) -> None:
    graph = read_document(samples.path("residual_blocks.xml")).graph
    assert graph is not None
    shared = SharedFolder(tmp_path)
    worker = Worker(shared, lambda event: None)

    def answer(request):
        return worker.answer(asked(1, request))

    opened = answer(OpenRequest(write_document(graph).decode(), seed=0, threads=1))
    assert {found.layer for found in opened.report} >= {"group_1.block_1.conv_1", "group_2.conv"}
    assert not [d for d in opened.diagnostics if d.severity is Severity.ERROR]
    array = np.random.default_rng(0).random((1, 3, 16, 16), dtype=np.float32)
    answer(SetInputTensorRequest("input_image", shared.put(array)))
    wanted = RunRequest(("group_1", "group_1.block_2"))
    first = answer(wanted)
    assert {name: handle.shape for name, handle in first.captures.items()} == {
        "group_1": (1, 32, 16, 16),
        "group_1.block_2": (1, 32, 16, 16),
    }
    before = np.array(shared.get(first.captures["group_1"]))
    inside = graph.inside("residual_block")
    edit = commands.set_params(inside, {"add": {"operation": "subtract"}})
    graph.apply(template_commands.edit_template(graph, "residual_block", edit))
    updated = answer(UpdateRequest(write_document(graph).decode()))
    assert not [d for d in updated.diagnostics if d.severity is Severity.ERROR]
    second = answer(wanted)
    assert np.abs(np.array(shared.get(second.captures["group_1"])) - before).max() > 1e-3
