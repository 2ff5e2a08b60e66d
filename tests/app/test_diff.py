"""`layerwright diff`: what is different between two networks, as text and as data."""

from __future__ import annotations

import json
import subprocess
import sys

import samples
from designer.files.document import read_document, save_document
from designer.graph import commands


def diff(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.cli.main", "diff", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_nothing_is_different_from_itself():
    path = str(samples.path("denoiser.xml"))
    done = diff(path, path)
    assert (done.returncode, done.stdout) == (0, "no differences\n")


def test_every_change_is_a_line_and_the_status_says_so(tmp_path):
    path = samples.path("denoiser.xml")
    graph = read_document(path).graph
    assert graph is not None
    name = next(layer.name for layer in graph if layer.type == "convolution")
    graph.apply(commands.set_params(graph, {name: {"features": "7"}}))
    graph.apply(commands.move_layers(graph, {name: (4000, 4000)}))
    save_document(graph, tmp_path / "other.xml")
    done = diff(str(path), str(tmp_path / "other.xml"))
    assert done.returncode == 1
    assert f"~ {name}\n" in done.stdout
    assert "→ 7" in done.stdout
    assert f"> {name} moved" in done.stdout
    done = diff(str(path), str(tmp_path / "other.xml"), "--json", "--no-moves")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["changed"][name][0]["after"] == "7"
    assert found["moved"] == {}


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "bad.xml").write_text("<no")
    done = diff(str(samples.path("denoiser.xml")), str(tmp_path / "bad.xml"))
    assert done.returncode == 1
    assert "bad.xml" in done.stderr
    assert done.stdout == ""
