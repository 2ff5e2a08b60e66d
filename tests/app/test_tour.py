"""The tour, with a very short training: it reaches its end and its figures say that the denoiser denoises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

import samples
from app.opened_network import load_weights_for, open_network
from app.reports.tour import channel_grid, run_tour
from designer.profiling.machine import this_machine
from designer.units import binary

pytestmark = pytest.mark.slow


def test_the_tour_reaches_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photographs = tmp_path / "photographs"  # whole ones take the validation 15 s
    photographs.mkdir()
    for path in sorted(samples.PHOTOGRAPHS.glob("*.jpg"))[:4]:
        with Image.open(path) as image:
            image.crop((0, 0, 96, 96)).save(photographs / f"{path.stem}.png")
    monkeypatch.setattr(samples, "PHOTOGRAPHS", photographs)
    page = run_tour(tmp_path / "tour", Console(quiet=True), steps=4)
    text = page.read_text()
    gains = [float(g) for g in re.findall(r"([+-]\d+\.\d+) dB", text)]
    assert len(gains) == 2, "one for the weights trained in the tour, one for the sample's"
    assert gains[-1] > 7.0
    assert "byte for byte" in text
    network = open_network(samples.path("denoiser_analyze.xml"))
    folders = (tmp_path / "tour" / "project" / "weights", samples.weights("denoiser"))
    hashes = [load_weights_for(network, folder, None).sha256 for folder in folders]
    assert [hash for hash in re.findall("[0-9a-f]{64}", text) if hash in hashes] == hashes, (
        "in the order of the columns"
    )
    assert f"Wrote denoiser.onnx, {binary((page.parent / 'denoiser.onnx').stat().st_size)}, accepted by" in text
    for picture in re.findall(r'<img src="([^"]+)"', text):
        assert (page.parent / picture).stat().st_size > 1000
    assert len(re.findall("<img", text)) >= 6
    headings = re.findall("<h[12][^>]*>([^<]+)</h", text)
    assert headings[-2:] == ["Networks", "Machine and versions"]
    assert text.count(f"<td>{this_machine().system}</td>") == 1


def test_channels_are_green_red_and_black() -> None:
    import numpy as np

    tensor = np.zeros((1, 2, 4, 4), np.float32)
    tensor[0, 0], tensor[0, 1] = 1.0, -1.0
    grid = channel_grid(tensor)[0]
    assert tuple(grid[:, 0, 0]) == (0.0, 1.0, 0.0)
    assert tuple(grid[:, 0, 6]) == (1.0, 0.0, 0.0)
