"""Code in a document, on the command line and in the engine process: refused, shown, asked for."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from engine_peer import Peer

from app.engine.protocol import OpenRequest, RunRequest, SetInputRequest, UpdateRequest
from designer.files.agreements import agreed
from designer.files.document import save_document
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.code_text import agreement_text, digest

ROOT = Path(__file__).parents[2]
SOURCE = "class Custom(nn.Module):\n    def forward(self, x):\n        print('it runs')\n        return x * 0.25\n"
AGREEMENT = agreement_text(SOURCE, "Custom", (), {})
VALUE = np.random.default_rng(0).random((1, 3, 6, 8), np.float32)


def saved(tmp_path: Path, *, template: bool) -> Path:
    image = Layer("image", "input", params={"dims": "8x6x3", "tiling": "0"})
    if not template:
        graph = Graph([image, Layer("mine", "custom", inputs=(Source("image"),), params={"source": SOURCE})])
    else:
        inside = [
            Layer("x", "template_input"),
            Layer("mine", "custom", inputs=(Source("x"),), params={"source": SOURCE}),
            Layer("y", "template_output", inputs=(Source("mine"),)),
        ]
        instance = Layer("mine", "template", inputs=(Source("image"),), params={"template": "block"})
        graph = Graph([image, instance], templates=[Template("block", tuple(inside))])
    layers = [*graph, Layer("result", "output", inputs=(Source("mine"),))]
    path = tmp_path / "net.xml"
    save_document(Graph(layers, name="net", templates=graph.templates.values()), path)
    np.save(tmp_path / "in.npy", VALUE)
    return path


@pytest.fixture
def document(tmp_path: Path) -> Path:
    return saved(tmp_path, template=False)


def arguments(document: Path, *more: str) -> list[str]:
    files = ["--input", f"image={document.parent / 'in.npy'}", "--output", f"result={document.parent / 'out.npy'}"]
    return [sys.executable, "-m", "app.cli.main", "run", str(document), *files, "--threads", "1", *more]


def result(document: Path) -> np.ndarray:
    return np.load(document.parent / "out.npy")


def run(document: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments(document, *more), cwd=ROOT, capture_output=True, text=True, check=False)


def test_refused_with_the_remedy_and_run_by_digest(document: Path) -> None:
    for more in (("--trust-custom", "ask"), ("--trust-custom", digest("another"))):  # no terminal: nobody to ask
        done = run(document, *more)
        assert done.returncode == 1
        assert "not-agreed" in done.stderr
        assert f"--trust-custom {digest(AGREEMENT)}" in done.stderr
        assert "it runs" not in done.stdout
    done = run(document, "--trust-custom", digest(AGREEMENT))
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(result(document), VALUE * np.float32(0.25))
    assert agreed() == frozenset(), "a digest on the command line is for this run only"


@pytest.mark.parametrize(("answer", "runs"), [("yes", True), ("y", False)])
def test_asked_on_a_terminal(document: Path, answer: str, runs: bool) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    process = subprocess.run(
        arguments(document, "--trust-custom", "ask"),
        cwd=ROOT,
        stdin=theirs,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert "   2 |     def forward(self, x):" in process.stdout
    assert (process.returncode == 0) is runs, process.stderr
    assert agreed() == (frozenset({digest(AGREEMENT)}) if runs else frozenset())
    if runs:
        assert run(document).returncode == 0, "asked once for a text"
        other = document.read_text().replace("0.25", "0.5")
        document.write_text(other)
        assert run(document).returncode == 1


@pytest.fixture
def peer(tmp_path: Path):
    (tmp_path / "shared").mkdir(mode=0o700)
    made = Peer(tmp_path / "shared")
    yield made
    made.close()


@pytest.mark.parametrize("template", [False, True], ids=["plain", "inside a template"])
def test_worker_refuses_until_it_is_told(tmp_path: Path, peer: Peer, template: bool) -> None:
    document = saved(tmp_path, template=template)
    text = document.read_text()
    finding = peer.refused(OpenRequest(text, threads=1))
    assert finding.code == "not-agreed"
    assert finding.layer is not None
    assert finding.layer.startswith("mine")
    assert peer.refused(RunRequest()).code == "nothing-open"
    assert peer.refused(OpenRequest(text, agreed=("no digest",))).code == "bad-request"
    peer.ask(OpenRequest(text, threads=1, agreed=(digest(AGREEMENT),)))
    peer.ask(SetInputRequest("image", str(document.parent / "in.npy")))
    assert peer.ask(RunRequest()).outputs, "what the text prints does not disturb the protocol"
    assert peer.refused(UpdateRequest(text.replace("0.25", "0.5"))).code == "not-agreed"
    assert peer.refused(RunRequest()).code == "not-agreed", "and the engine itself refuses too"
