"""The command line and networks with losses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from app.cli import main as cli
from designer.files.document import save_document
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source


def layer(name: str, kind: str, *inputs: str, **params: str) -> Layer:
    return Layer(name, kind, inputs=tuple(map(Source, inputs)), params=params)


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "trained.xml"
    layers = [
        layer("image", "input", dims="16x12x3"),
        layer("clean", "input", dims="16x12x3"),
        layer("conv", "convolution", "image", features="3", kernel="3x3"),
        layer("result", "output", "conv"),
        layer("loss", "ssim_loss", "conv", "clean"),
    ]
    save_document(Graph(layers, name="trained"), path)
    return path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr("sys.argv", ["layerwright", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_check_marks_the_training_branch(document, monkeypatch, capsys):
    assert run(monkeypatch, "check", document) == 0
    reported = capsys.readouterr().out
    assert "ssim_loss (training)" in reported
    assert "2 of the layers are the training branch" in reported
    assert run(monkeypatch, "check", document, "--json") == 0
    rows = json.loads(capsys.readouterr().out)["layers"]
    assert {row["layer"] for row in rows if row["training"]} == {"clean", "loss"}


def test_run_asks_for_no_target(document, monkeypatch, capsys, tmp_path):
    np.save(tmp_path / "image.npy", np.zeros((1, 3, 12, 16), np.float32))
    arguments = ["run", document, "--random-weights", 0, "--threads", 1, "--input", f"image={tmp_path / 'image.npy'}"]
    assert run(monkeypatch, *arguments, "--output", f"result={tmp_path / 'result.npy'}") == 0
    assert np.load(tmp_path / "result.npy").shape == (1, 3, 12, 16)
    capsys.readouterr()
    assert run(monkeypatch, *arguments, "--input", f"clean={tmp_path / 'image.npy'}") == 1
    assert "'clean' belongs to the training branch" in capsys.readouterr().err
    assert run(monkeypatch, *arguments, "--capture", f"loss={tmp_path / 'loss.npy'}") == 1
    assert "'loss' belongs to the training branch" in capsys.readouterr().err
