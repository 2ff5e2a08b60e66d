"""Exported projects of unusual networks: one channel, outputs without weights, sizes that are not powers of two; and their types."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from loss_networks import restorer
from PIL import Image
from pytorch_networks import node
from warm_python import run_python

from designer.files.document import read_document
from designer.graph.graph import Graph
from exporters.pytorch import Training, export_project

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "training"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_python(folder, "train.py", "--steps", "2", "--batch", "2", "--threads", "1", *arguments)


def test_one_channel_trains_without_a_warning(registry, tmp_path):
    export_project(read_document(DATA / "gray_denoiser.xml").graph, registry, tmp_path / "gray", "Gray")
    (tmp_path / "pictures").mkdir()
    gray = np.random.default_rng(0).integers(0, 255, (40, 40), dtype=np.uint8)
    Image.fromarray(gray).save(tmp_path / "pictures" / "a.png")
    done = run(tmp_path / "gray", "--data", str(tmp_path / "pictures"), "--synthetic", "0", "--patch", "16")
    assert done.returncode == 0, done.stderr


def test_an_output_without_weights_is_named(registry, tmp_path):
    graph = read_document(DATA / "train_first_output_without_weights.xml").graph
    export_project(graph, registry, tmp_path / "two", "Two")
    done = run(tmp_path / "two", "--synthetic", "2", "--patch", "16")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "the first output, 'a', does not depend on trainable weights" in done.stderr


def test_training_of_a_network_without_images_ends_with_a_message(registry, tmp_path):
    layers = [
        node("values", "tensor_input", shape=10),
        node("scaled", "scale_shift", "values"),
        node("o", "output", "scaled"),
    ]
    export_project(Graph(layers), registry, tmp_path / "numbers", "Numbers", Training("denoising"))
    done = run(tmp_path / "numbers", "--synthetic", "2", "--patch", "16")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "'values' of the network is N x 10, but the data are images" in done.stderr


@pytest.mark.parametrize(
    ("size", "layers", "multiple"),
    [
        (32, (("convolution", {"stride": "2x2"}), ("upsample", {"factor": "2x2"}), ("pooling", {"size": "4x4", "stride": "4x4"})), 4),
        (24, (("space_to_depth", {"block_size": 2}), ("pooling", {"size": "3x3", "stride": "3x3"})), 6),
    ],
)  # fmt: skip
def test_patches_are_multiples_of_what_layers_divide_by(registry, tmp_path, size, layers, multiple):
    made = [node("x", "input", dims=f"{size}x{size}x4")]
    for number, (kind, params) in enumerate(layers):
        made.append(node(f"l{number}", kind, made[-1].name, **params))
    export_project(Graph([*made, node("o", "output", made[-1].name)]), registry, tmp_path / "sized", "Sized")
    info = json.loads((tmp_path / "sized" / "project.json").read_text())
    assert info["inputs"][0]["multiple"] == multiple


def test_a_network_for_28_pixels_takes_multiples_of_4(registry, tmp_path):
    export_project(read_document(DATA / "patch_multiple_28.xml").graph, registry, tmp_path / "digits", "Digits")
    info = json.loads((tmp_path / "digits" / "project.json").read_text())
    assert info["inputs"][0]["multiple"] == 4


@pytest.mark.timeout(600)  # the first time on a busy machine
def test_types_of_the_generated_scripts(registry, tmp_path):
    """With the rules and the cache of the program, in which the types of torch are if it was checked before: reading them takes long."""
    export_project(restorer(node("compared", "l1_loss", "result", "clean")), registry, tmp_path / "net", "Net")
    _, head, rest = (ROOT / "pyproject.toml").read_text("utf-8").partition("[tool.mypy]")
    modules = [path.stem for path in (tmp_path / "net").glob("*.py")]
    own = f"[[tool.mypy.overrides]]\nmodule = {modules}\nwarn_return_any = false\ndisallow_untyped_calls = false\n\n"
    rules = tmp_path / "rules.toml"
    rules.write_text(f"{head}{rest.partition('[tool.pytest')[0]}{own}", "utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(rules), "--cache-dir", str(ROOT / ".mypy_cache"), "."]
    done = subprocess.run(command, cwd=tmp_path / "net", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
