"""Tables of formats: what a suffix means, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from designer.files.document import DOCUMENTS, Reading, read_document, save_document
from designer.files.file_names import file_name
from designer.files.formats import Format, FormatTable, alternatives
from designer.files.weights import WEIGHTS, WeightKey, save_weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer

Table = FormatTable[str, str]
GRAPH = Graph([Layer("a", "identity")])


def table() -> Table:
    return FormatTable(
        "photos",
        (Format("One", (".one", ".1"), "read one", "write one"), Format("Two", (".two",), read="read two")),
    )


def refusal(table: Table, path: str, *, writing: bool = False) -> Diagnostic:
    with pytest.raises(DiagnosticError) as caught:
        (table.writer if writing else table.reader)(path)
    return caught.value.diagnostics[0]


def test_a_suffix_in_any_case_finds_its_format() -> None:
    assert table().reader("a/b.ONE") == "read one"
    assert table().writer("b.x.1") == "write one"
    assert table().reads("b.two")
    assert not table().writes("b.two")
    assert not table().reads("two")


@pytest.mark.parametrize(
    ("name", "stem"),
    [("a.b.XML", "a.b"), ("net.nv-neural-model", "net"), ("net.xml.nv-neural-model", "net.xml"), ("a.onnx", "a.onnx")],
)
def test_a_name_loses_the_suffix_of_its_table_only(name: str, stem: str) -> None:
    assert DOCUMENTS.stem(name) == stem


def test_other_suffixes_are_refused_with_those_that_exist() -> None:
    unknown = refusal(table(), "a/b.three")
    assert (unknown.code, unknown.file) == ("unknown-format", "a/b.three")
    assert unknown.message == "b.three: photos cannot be read from '.three' files"
    assert unknown.remedy == "use .one, .1 or .two"
    assert refusal(table(), "b.two", writing=True).remedy == "use .one or .1"
    assert refusal(table(), "b").message == "b: photos cannot be read from files without a suffix"


def test_a_suffix_has_one_format() -> None:
    with pytest.raises(ValueError, match=r"photos: \.1 already has a format"):
        table().register(Format("Three", (".three", ".1")))


def test_a_table_includes_what_is_registered_in_its_parts_later() -> None:
    part = table()
    whole: Table = FormatTable("inputs", tables=(part,), folder=part)
    part.register(Format("Three", (".three",), "read three"))
    assert whole.reader("a.three") == "read three"
    assert whole.title == "Inputs"
    assert whole.read_choices == ".one, .1, .two or .three, or a folder of .one, .1, .two or .three files"
    assert whole.write_choices == ".one or .1, or a folder of .one or .1 files"


def test_alternatives_in_words() -> None:
    assert [alternatives(words) for words in ((), ("a",), ("a", "b"), ("a", "b", "c"))] == [
        "",
        "a",
        "a or b",
        "a, b or c",
    ]


@pytest.mark.parametrize("name", ["net.onnx", "net.txt", "net"])
def test_networks_of_an_unknown_suffix_are_neither_written_nor_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        save_document(GRAPH, tmp_path / name)
    assert caught.value.diagnostics[0].remedy == "use .xml or .nv-neural-model"
    assert list(tmp_path.iterdir()) == []
    save_document(GRAPH, tmp_path / "net.xml")
    (tmp_path / "net.xml").rename(tmp_path / name)
    reading = read_document(tmp_path / name)
    assert reading.graph is None
    assert [d.code for d in reading.diagnostics] == ["unknown-format"]


@pytest.mark.parametrize("name", ["w.pt", "w.foo"])
def test_weights_are_not_written_into_a_folder_that_is_named_like_a_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        save_weights(tmp_path / name, {WeightKey("a", "kernel"): np.zeros(2, np.float32)})
    assert caught.value.diagnostics[0].remedy == "use .safetensors, or a folder of .npy files"
    assert list(tmp_path.iterdir()) == []


def test_a_format_that_is_registered_is_read_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DOCUMENTS, "formats", list(DOCUMENTS.formats))
    DOCUMENTS.register(
        Format("Layer names", (".names",), lambda path: Reading(Graph(name=path.read_text())), lambda g: "".join(g.layers).encode())
    )  # fmt: skip
    save_document(GRAPH, tmp_path / "net.names")
    reading = read_document(tmp_path / "net.names")
    assert reading.graph is not None
    assert reading.graph.name == "a"
    assert DOCUMENTS.read_choices == ".xml, .nv-neural-model or .names"


def test_weights_name_their_files_and_folders() -> None:
    assert WEIGHTS.read_choices == ".safetensors, .pt or .pth, or a folder of .npy or .bin files"


@pytest.mark.parametrize(
    ("proposed", "name"),
    [
        ("net.xml", "net.xml"),
        ("a/b:c.xml", "a_b_c.xml"),
        ("  .hidden. .png", "hidden.png"),
        ("", "network"),
        ("...", "network"),
        (".xml", "xml"),
        ("x" * 80 + ".xml", "x" * 60 + ".xml"),
        ("  " + "x" * 80, "x" * 60),
        ("version 1.5 small", "version 1.5 small"),
        ("a." + "b" * 11, "a." + "b" * 11),
        ("x" * 60 + "." + "b" * 12, "x" * 60),
        ("x" * 60 + ".größe", "x" * 60),
        ("line\nbreak.csv", "line_break.csv"),
    ],
)
def test_names_of_networks_become_names_of_files(proposed: str, name: str) -> None:
    assert file_name(proposed) == name


def test_each_table_says_what_it_reads_and_writes() -> None:
    inside = FormatTable("tensors", [Format("Array", (".npy",), read=1, write=1), Format("Raw", (".bin",), read=2)])
    part = FormatTable("parts", [Format("Extra", (".ex",), read=5)])
    table = FormatTable(
        "weights",
        [Format("Both", (".one", ".two"), read=3, write=3), Format("Written", (".out",), write=4)],
        tables=(part,),
        folder=inside,
    )
    assert table.title == "Weights"
    assert (table.read_suffixes, table.write_suffixes) == ((".one", ".two", ".ex"), (".one", ".two", ".out"))
    assert table.read_choices == ".one, .two or .ex, or a folder of .npy or .bin files"
    assert table.write_choices == ".one, .two or .out, or a folder of .npy files"
    for name, reads, writes in (("a.ONE", 1, 1), ("a.out", 0, 1), ("a.ex", 1, 0), ("a.npy", 0, 0), ("a", 0, 0)):
        assert (table.reads(name), table.writes(name)) == (bool(reads), bool(writes)), name
    for suffixes in ((".new", ".two"), (".ex",), (".out", ".new")):
        with pytest.raises(ValueError, match="already has a format"):
            table.register(Format("Again", suffixes))
    assert [format.title for format in table] == ["Both", "Written", "Extra"]
    with pytest.raises(DiagnosticError, match=r"weights cannot be written to '\.ex' files") as caught:
        table.writer("a.ex")
    assert caught.value.diagnostics[0].remedy == f"use {table.write_choices}"
    with pytest.raises(DiagnosticError, match="weights cannot be read from files without a suffix") as caught:
        table.reader("a")
    assert caught.value.diagnostics[0].remedy == f"use {table.read_choices}"
