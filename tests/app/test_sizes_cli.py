"""`layerwright sizes`: rules as text and JSON, and --fix."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from app.cli import main as cli
from designer.files.document import save_document
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source


def play(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> object:
    monkeypatch.setattr("sys.argv", ["layerwright", *(str(a) for a in arguments)])
    try:
        cli.main()
    except SystemExit as stop:
        return stop.code
    return 0


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    path = tmp_path / "blocks.xml"
    layers = [
        Layer("photo", "input", params={"dims": "32x32x3"}),
        Layer("blocks", "space_to_depth", inputs=(Source("photo"),), params={"block_size": "4"}),
        Layer("back", "depth_to_space", inputs=(Source("blocks"),), params={"block_size": "4"}),
        Layer("result", "output", inputs=(Source("back"),)),
    ]
    save_document(Graph(layers), path)
    return path


def test_rules_and_causes_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], blocks: Path
) -> None:
    assert not play(monkeypatch, "sizes", blocks)
    printed = capsys.readouterr().out
    assert "height: multiples of 4" in printed
    assert "5 fails at blocks" in printed


def test_json_has_a_rule_for_each_axis(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], blocks: Path
) -> None:
    assert not play(monkeypatch, "sizes", blocks, "--json")
    found = json.loads(capsys.readouterr().out)["inputs"]
    assert [item["layer"] for item in found] == ["photo"]
    for axis in ("height", "width"):
        rule = found[0][axis]
        assert (rule["multiple_of"], rule["minimum"], rule["because"]) == (4, 4, ["blocks"])


def test_fix_writes_a_network_that_accepts_every_size(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], blocks: Path, tmp_path: Path
) -> None:
    before = blocks.read_bytes()
    fixed = tmp_path / "fixed.xml"
    assert not play(monkeypatch, "sizes", blocks, "--fix", "-o", fixed, "--json")
    found = json.loads(capsys.readouterr().out)["inputs"][0]
    assert (found["height"]["multiple_of"], found["width"]["minimum"]) == (1, 1)
    assert blocks.read_bytes() == before
    image = np.random.default_rng(0).random((1, 3, 7, 10), np.float32)
    np.save(tmp_path / "in.npy", image)
    arguments = ("run", fixed, "--input", f"photo={tmp_path / 'in.npy'}", "--output", f"result={tmp_path / 'out.npy'}")
    assert not play(monkeypatch, *arguments)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), image)


def test_fix_without_output_changes_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], blocks: Path
) -> None:
    assert not play(monkeypatch, "sizes", blocks, "--fix")
    assert b"pad_to_valid_size" in blocks.read_bytes()
    again = blocks.read_bytes()
    capsys.readouterr()
    assert not play(monkeypatch, "sizes", blocks, "--fix")
    assert blocks.read_bytes() == again
    assert capsys.readouterr().out.splitlines()[0] == "every size works already"
    copy = blocks.with_name("copy.xml")
    assert not play(monkeypatch, "sizes", blocks, "--fix", "-o", copy)
    assert capsys.readouterr().out.replace("\n", "").startswith(f"wrote {copy}")
    assert copy.read_bytes() == again


def test_a_network_without_a_valid_size_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "open.xml"
    save_document(Graph([Layer("in", "input"), Layer("conv", "convolution")]), path)
    assert play(monkeypatch, "sizes", path) == 1
    assert "conv" in capsys.readouterr().err
