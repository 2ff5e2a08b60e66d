"""Whatever documents, weights and files are called, the terminal gets no control characters and no marks that reorder text."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_networks import hostile_graph
from PIL import Image

from app.cli import main as cli
from app.cli.console import PlainConsole
from designer.files.document import save_document

pytest.importorskip("onnxruntime")
ESCAPES = "\x1b[31m\x1b]0;owned\x07\x9b31m\x85\u202e:smile:[/x]"
Run = Callable[..., str]


@pytest.fixture
def layerwright(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Plays the command and returns everything that it printed."""

    def run(*arguments: object, status: int = 0) -> str:
        monkeypatch.setattr("sys.argv", ["layerwright", *(str(a) for a in arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        printed = "".join(capsys.readouterr())
        assert code == status, printed
        return printed

    return run


@pytest.fixture
def document(tmp_path: Path) -> Path:
    folder = tmp_path / ESCAPES.replace("/", "")
    folder.mkdir()
    save_document(hostile_graph(marked), folder / "hostile.xml")
    Image.new("RGB", (8, 8)).save(folder / "image.png")
    return folder / "hostile.xml"


def raw(text: str) -> set[str]:
    """The characters that a terminal would obey rather than show."""
    return {character for character in text if not character.isprintable() and character not in "\n\t"}


def marked(text: str) -> str:
    """A legal name that reorders what follows; an equals sign would end it in `--input NAME=PATH`."""
    return f"{text} [/x]\u202e".replace("/", "")


def test_no_command_prints_control_characters_of_a_document(layerwright: Run, document: Path, tmp_path: Path) -> None:
    image, random = document.with_name("image.png"), ("--random-weights", "1")
    other = document.with_name("other.xml")
    save_document(hostile_graph(marked, "plain"), other)
    printed = [
        layerwright("check", document),
        layerwright("check", document, "--json"),
        layerwright("diff", document, other, status=1),
        layerwright("diff", document, other, "--json", status=1),
        layerwright("convert", document, document.with_name("copy.xml")),
        layerwright("run", document, *random, f"--input={marked('image')}={image}", f"--output={marked('result')}={document.parent}/o.npy"),
        layerwright("run", document, f"--input={marked('image')}={image}", status=1),
        layerwright("profile", document, *random, "--iterations", "1", "--json", document.with_name("profile.json")),
        layerwright("export", "onnx", document, *random, "--output", document.with_name("n.onnx")),
        layerwright("export", "pytorch", document, "--output", document.with_name("project"), "--name", "Net"),
        layerwright("compare", document, other, *random, "--images", image, "--noise", "gaussian:5/255", status=1),
        layerwright("check", document.with_name(f"none{ESCAPES[:8]}.xml"), status=1),
    ]  # fmt: skip
    assert [raw(text) for text in printed] == [set()] * len(printed)
    assert all("\\u202e" in text for text in printed[:3])
    assert not any("\N{SMILING FACE WITH OPEN MOUTH}" in text for text in printed)


def test_no_name_of_a_tensor_reaches_the_terminal_as_it_is(layerwright: Run, document: Path) -> None:
    weights = document.with_name("weights.safetensors")
    header = json.dumps({ESCAPES: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    weights.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    printed = layerwright("profile", document, "--weights", weights, status=1)
    assert raw(printed) == set()


def test_the_source_of_a_custom_layer_is_shown_without_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from app.cli import trust

    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert not trust._ask(f"layer {ESCAPES}", f"import os  # {ESCAPES}\n")
    printed = capsys.readouterr().out
    assert raw(printed) == set()
    assert ":smile:[/x]" in printed


def test_cells_and_titles_of_tables_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.table import Table

    table = Table(title=ESCAPES)
    table.add_column(ESCAPES)
    table.add_row(ESCAPES)
    PlainConsole().print(table)
    printed = capsys.readouterr().out
    assert raw(printed) == set()
    assert printed.count("\\u001b[31m") == 3
