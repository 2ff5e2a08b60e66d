"""`layerwright import`, and `layerwright run` on what it wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx_models import random, saved, small_network

from app.cli import import_ as command
from app.cli.main import app
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.importers.imported import Imported
from designer.operators.registry import Registry


def run(*args: object) -> object:
    """The exit status of a command; None for success."""
    return app([str(arg) for arg in args], standalone_mode=False)


def test_import_and_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(small_network(), tmp_path)
    document, weights, report = tmp_path / "y.xml", tmp_path / "weights", tmp_path / "report.json"
    run("import", path, "-o", document, "--weights", weights, "--report", report)
    found = json.loads(report.read_text())
    expected = {"nodes", "known", "opaque", "folded", "templates", "max_abs_difference", "max_rel_difference"}
    assert expected | {"not_compared_because"} <= set(found)
    assert "8 nodes: 8 known, 0 opaque, 0 folded" in capsys.readouterr().out
    np.save(tmp_path / "x.npy", random(1, 3, 24, 32))
    run(
        "run",
        document,
        "--weights",
        weights,
        "--input",
        f"image={tmp_path / 'x.npy'}",
        "--output",
        f"logits={tmp_path / 'y.npy'}",
    )
    assert np.load(tmp_path / "y.npy").shape == (1, 10)


def test_exit_status_1_if_the_outputs_disagree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of the import: the document has other weights than the file."""
    path = saved(small_network(), tmp_path)
    verified = Imported.verified

    def damaged(self: Imported, registry: Registry) -> Imported:
        changed = {key: array + np.float32(0.1) for key, array in self.weights.tensors.items()}
        return verified(replace(self, weights=Weights(changed)), registry)

    monkeypatch.setattr(Imported, "verified", damaged)
    assert run("import", path, "-o", tmp_path / "y.xml", "--report", tmp_path / "r.json") == 1
    assert json.loads((tmp_path / "r.json").read_text())["max_rel_difference"] > 1e-4


def test_formats_and_options_are_checked_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match=r"cannot be read from '\.txt' files"):
        run("import", tmp_path / "x.txt", "-o", tmp_path / "y.xml")
    with pytest.raises(DiagnosticError, match=r"cannot be written to '\.json' files"):
        run("import", tmp_path / "x.onnx", "-o", tmp_path / "y.json")
    with pytest.raises(DiagnosticError, match="'3xa' is not a shape"):
        run("import", tmp_path / "x.onnx", "-o", tmp_path / "y.xml", "--input", "image=3xa")
    assert command.IMPORTS.read_choices.startswith(".onnx")
