"""Training works: a few steps on random images change the weights, are reported, and can be continued.

python -m pytest
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import config
import train

IMAGES = [entry["shape"] for entry in config.PROJECT["inputs"] if len(entry["shape"]) == 3]
MODE = {1: "L", 3: "RGB", 4: "RGBA"}.get(IMAGES[0][0]) if IMAGES else None
# only classification segmentation
CLASSES: int = config.PROJECT["outputs"][0]["shape"][0]
# only all


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    """The command line of a short run on random images."""
    if MODE is None:
        pytest.skip("the network does not take images")
    side = 2 * max(IMAGES[0][1:])
    folders = ["images"]
    # only restoration segmentation
    folders = ["images", "targets"]
    # only classification
    folders = [f"images/{number:04}" for number in range(CLASSES)]
    # only all
    rng = np.random.default_rng(0)
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
        for number in range(2):
            Image.fromarray(rng.integers(0, 256, (side, side), np.uint8)).convert(MODE).save(
                tmp_path / folder / f"{number}.png"
            )
    # only segmentation
    for path in (tmp_path / "targets").iterdir():
        Image.fromarray(rng.integers(0, CLASSES, (side, side), np.uint8)).save(path)
    # only all
    data = ["--data", str(tmp_path / "images")]
    # only restoration segmentation
    data = ["--inputs", str(tmp_path / "images"), "--targets", str(tmp_path / "targets")]
    # only denoising super-resolution
    data += ["--synthetic", "0"]
    # only denoising restoration segmentation super-resolution
    data += ["--patch", str(side // 2 * config.PROJECT["scale"])]
    # only all
    return [*data, "--batch", "2", "--workers", "0", "--steps", "2", "--device", "cpu", "--run", str(tmp_path / "run")]


def entries(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()[1:]]


def test_a_run_is_reported_and_continued(options: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert train.main(options) == 0
    assert [entry["step"] for entry in entries(run)] == [1, 2]
    before = torch.load(run / "weights.pt", weights_only=True)
    assert train.main(["--resume", "--run", str(run), "--steps", "4"]) == 0
    assert [entry["step"] for entry in entries(run)] == [1, 2, 3, 4]
    after = torch.load(run / "weights.pt", weights_only=True)
    assert any(not torch.equal(before[name], after[name]) for name in before)
