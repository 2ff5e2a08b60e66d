"""Code in a document, on the command line and in the engine process: refused, shown, asked for."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

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


class Peer:
    """A worker and the pipes to it."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "app.engine.worker", "--shared", str(folder)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, cwd=ROOT, **pipes)
        self.line()

    def line(self) -> dict:
        return json.loads(self.process.stdout.readline())

    def send(self, method: str, **params: object) -> None:
        self.process.stdin.write(json.dumps({"id": 1, "method": method, "params": params}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: object) -> dict:
        self.send(method, **params)
        while "event" in (reply := self.line()):
            pass
        return reply

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


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
    (finding,) = peer.ask("open", document=text, threads=1)["error"]
    assert finding["code"] == "not-agreed"
    assert finding["layer"].startswith("mine")
    assert peer.ask("run")["error"][0]["code"] == "nothing-open"
    assert peer.ask("open", document=text, agreed=["no digest"])["error"][0]["code"] == "bad-request"
    assert "result" in peer.ask("open", document=text, threads=1, agreed=[digest(AGREEMENT)])
    assert "result" in peer.ask("set_input", layer="image", path=str(document.parent / "in.npy"))
    assert "outputs" in peer.ask("run")["result"], "what the text prints does not disturb the protocol"
    other = peer.ask("update", document=text.replace("0.25", "0.5"))
    assert other["error"][0]["code"] == "not-agreed"
    assert peer.ask("run")["error"][0]["code"] == "not-agreed", "and the engine itself refuses too"
