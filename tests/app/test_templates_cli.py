"""The command line on the sample that is made of templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samples
from app.cli import main as cli

DOCUMENTS = Path(__file__).parents[1] / "data" / "agreement"
SAMPLE = samples.path("residual_blocks.xml")


def play(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr("sys.argv", ["layerwright", *(str(a) for a in arguments)])
    code: object = 0
    try:
        cli.main()
    except SystemExit as stop:
        code = stop.code
    assert not code


def test_check_shows_instances(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    play(monkeypatch, "check", SAMPLE, "--json")
    found = json.loads(capsys.readouterr().out)
    rows = {row["layer"]: row for row in found["layers"]}
    assert rows["group_1"]["shape"] == "N x 32 x 256 x 256"
    assert rows["group_1"]["parameters"] == 46_240
    assert not found["diagnostics"]


@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_run_and_capture_an_instance_and_what_is_inside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: str
) -> None:
    pytest.importorskip(engine)
    np.save(tmp_path / "in.npy", np.random.default_rng(0).random((1, 3, 16, 24), dtype=np.float32))
    play(
        monkeypatch,
        "run",
        SAMPLE,
        "--random-weights",
        0,
        "--engine",
        engine,
        "--threads",
        1,
        "--input",
        f"input_image={tmp_path / 'in.npy'}",
        "--output",
        f"output_image={tmp_path / 'out.npy'}",
        "--capture",
        f"group_1={tmp_path / 'group.npy'}",
        "--capture",
        f"group_1.add={tmp_path / 'add.npy'}",
    )
    assert np.load(tmp_path / "out.npy").shape == (1, 3, 16, 24)
    np.testing.assert_array_equal(np.load(tmp_path / "group.npy"), np.load(tmp_path / "add.npy"))


def test_check_counts_shared_weights_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = DOCUMENTS / "shared_parameters_count.xml"
    play(monkeypatch, "check", path)
    assert "84 parameters" in capsys.readouterr().out
    play(monkeypatch, "check", path, "--json")
    assert json.loads(capsys.readouterr().out)["parameters"] == 84


def test_weights_of_an_instance_with_a_full_stop_in_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The exported project's state dict comes back."""
    torch = pytest.importorskip("torch")
    path = DOCUMENTS / "dotted_template_instance.xml"
    play(monkeypatch, "export", "pytorch", path, "--output", tmp_path / "project", "--name", "Net")
    text = (tmp_path / "project" / "model.py").read_text()
    space: dict[str, Any] = {}
    exec(compile(text, "model.py", "exec"), space)
    network = space["Net"]()
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    array = np.random.default_rng(0).random((1, 3, 8, 8), dtype=np.float32)
    np.save(tmp_path / "in.npy", array)
    files = ["--input", f"in={tmp_path / 'in.npy'}", "--output", f"o={tmp_path / 'out.npy'}"]
    play(monkeypatch, "run", path, "--weights", tmp_path / "weights.pt", *files)
    with torch.no_grad():
        expected = network(torch.from_numpy(array)).numpy()
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-5)


def test_convert_keeps_every_byte(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    play(monkeypatch, "convert", SAMPLE, tmp_path / "copy.xml")
    assert (tmp_path / "copy.xml").read_bytes() == SAMPLE.read_bytes()


def test_exports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    play(monkeypatch, "export", "pytorch", SAMPLE, "--output", tmp_path / "project", "--name", "Net")
    assert "class ResidualBlock(nn.Module):" in (tmp_path / "project" / "model.py").read_text()
    play(monkeypatch, "export", "onnx", SAMPLE, "--output", tmp_path / "net.onnx", "--random-weights", 0)
    assert (tmp_path / "net.onnx").stat().st_size > 300_000
