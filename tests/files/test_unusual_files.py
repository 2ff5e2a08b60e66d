"""Files that are in use, cut short or of an unusual kind: what is reported, and that nothing else happens to them."""

from __future__ import annotations

import errno
import os
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from designer.files import atomic, recovery, schema, settings, snippets
from designer.files.array_files import ArrayHeader, as_float32, npy_bytes, read_array, read_header, read_raw
from designer.files.atomic import write_atomic
from designer.files.document import is_canonical, parse_document, write_document
from designer.files.json_text import problem_of
from designer.files.torch_file import read_state_dict
from designer.files.xml_tree import XmlError, parse_xml
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template

posix = pytest.mark.skipif(os.name != "posix", reason="files of POSIX")


def said(act: Any) -> tuple[str, str, str, str | None]:
    with pytest.raises(DiagnosticError) as caught:
        act()
    (found,) = caught.value.diagnostics
    return found.code, found.message, found.remedy, found.file


# --- arrays ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f2"])
@pytest.mark.parametrize("fortran", [False, True])
@pytest.mark.parametrize("shape", [(2, 3), (4,), (), (0, 3)])
def test_arrays_in_any_order_and_type(tmp_path: Path, dtype: str, fortran: bool, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    np.save(tmp_path / "a.npy", np.array(values, order="F" if fortran else "C"))
    header = read_header(tmp_path / "a.npy")
    found = read_array(tmp_path / "a.npy", header)
    assert (header.shape, found.dtype, found.shape, found.flags.c_contiguous) == (shape, np.float32, shape, True)
    np.testing.assert_array_equal(found, values.astype(np.float32))
    assert as_float32(values).shape == shape
    raw = values.astype("<f4").tobytes()
    (tmp_path / "a.bin").write_bytes(raw)
    np.testing.assert_array_equal(read_raw(tmp_path / "a.bin", shape), values.astype(np.float32))
    (tmp_path / "b.npy").write_bytes(npy_bytes(found))
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), found)
    assert np.load(tmp_path / "b.npy").dtype == np.dtype("<f4")


def test_arrays_that_vanish_or_shrink_before_they_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((2, 3), np.float32))
    header = read_header(tmp_path / "a.npy")
    (tmp_path / "a.bin").write_bytes(b"\0" * 20)
    shrunk = ("weight-size", "was truncated while it was read", "copy or write it again")
    larger = ArrayHeader((2, 4), header.dtype, header.fortran, header.offset)
    gone = ("bad-weights", "cannot be read: No such file or directory", "check the path and your permissions")
    for act, path, expected in (
        (lambda: read_array(tmp_path / "a.npy", larger), "a.npy", shrunk),
        (lambda: read_raw(tmp_path / "a.bin", (2, 3)), "a.bin", shrunk),
        (lambda: read_array(tmp_path / "gone.npy", header), "gone.npy", gone),
        (lambda: read_raw(tmp_path / "gone.bin", (2, 3)), "gone.bin", gone),
    ):
        code, message, remedy, file = said(act)
        assert (code, remedy, file) == (expected[0], expected[2], str(tmp_path / path))
        assert message.endswith(expected[1])
        assert path in message


# --- targets of a save -------------------------------------------------------------------------------------------


@posix
def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    elsewhere = "save somewhere else"
    for name, reason, remedy in (
        ("pipe", "it is not a regular file", elsewhere), ("folder", "it is a folder", "choose a file name"),
    ):  # fmt: skip
        path = tmp_path / name
        assert said(lambda path=path: write_atomic(path, b"new")) == (
            "cannot-save", f"{path} cannot be saved: {reason}; nothing on disk was changed", remedy, str(path)
        )  # fmt: skip
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


@pytest.mark.parametrize("system", ["posix", "nt"])
@pytest.mark.parametrize("fails", [False, True])
def test_the_folder_is_flushed_where_the_system_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, system: str, fails: bool
) -> None:
    calls: list[Any] = []

    def sync(stream: int) -> None:
        calls.append(("fsync", stream))
        if fails:
            raise OSError(errno.EINVAL, "not a file")

    fake = SimpleNamespace(
        name=system, O_RDONLY=os.O_RDONLY, open=lambda *given: calls.append(given) or 7, fsync=sync, close=lambda s: calls.append(("close", s))
    )  # fmt: skip
    monkeypatch.setattr(atomic, "os", fake)
    atomic._sync_folder(tmp_path)
    assert calls == ([] if system == "nt" else [(tmp_path, os.O_RDONLY), ("fsync", 7), ("close", 7)])


# --- journals ----------------------------------------------------------------------------------------------------


class Streams:
    """Which streams `recovery` opened and closed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open: list[int] = []
        usual = (os.open, os.close)

        def opened(*given: Any) -> int:
            stream = usual[0](*given)
            self.open.append(stream)
            return stream

        def closed(stream: int) -> None:
            usual[1](stream)
            self.open.remove(stream)

        monkeypatch.setattr(recovery.os, "open", opened)
        monkeypatch.setattr(recovery.os, "close", closed)


def test_journals_that_give_no_document_are_closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    streams = Streams(monkeypatch)
    assert recovery._look(path) is None
    path.write_bytes(b"x\n")
    locked = True
    monkeypatch.setattr(recovery, "lock", lambda stream: not locked)
    assert recovery._look(path) is None
    assert (path.read_bytes(), streams.open) == (b"x\n", [])
    locked = False

    def broken(*_: Any) -> Any:
        raise ValueError

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "_recover", broken)
        assert recovery._look(path) is None
    assert (path.read_bytes(), streams.open) == (b"x\n", [])
    path.write_bytes(b"")
    for old in (False, True):
        monkeypatch.setattr(recovery, "_is_old", lambda file, old=old: old)
        assert recovery._look(path) is None
        assert (path.exists(), streams.open) == (not old, [])


def test_the_age_of_a_file_that_is_being_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert not recovery._is_old(path)
    path.touch()
    made = path.stat().st_mtime
    for age, old in ((0, False), (recovery.MAKING_SECONDS - 1, False), (recovery.MAKING_SECONDS + 1, True)):
        monkeypatch.setattr(recovery.time, "time", lambda age=age: made + age)
        assert recovery._is_old(path) is old


# --- texts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("Expected `object`, got `array` - at `$`", "expected object, got array"),
        ("Expected `int`, got `str` - at `$[2].n`", "[2].n: expected int, got str"),
        ("Expected `int`, got `str` - at `key` in `$.a`", "key in $.a: expected int, got str"),
        ("", ""),
    ],
)
def test_the_place_of_an_error_in_json(error: str, text: str) -> None:
    assert problem_of(ValueError(error)) == text


@posix
@pytest.mark.parametrize(
    ("path", "relative"),
    [
        ("", ""), ("a.png", "a.png"), ("/data/doc/a.png", "a.png"), ("/data/photos/a.png", "../photos/a.png"), ("/a.png", "../../a.png"),
        ("C:\\photos\\a.png", "C:\\photos\\a.png"), ("pattern:noise", "pattern:noise"), ("camera:0", "camera:0"),
    ],
)  # fmt: skip
def test_paths_are_relative_to_the_document(path: str, relative: str) -> None:
    assert settings._relative(path, Path("/data/doc")) == relative
    if relative and path.startswith("/"):
        assert settings._absolute(relative, Path("/data/doc")) == path


def test_a_path_on_another_drive_stays_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> str:
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    monkeypatch.setattr(settings.os.path, "relpath", refused)
    path = Path.cwd() / "a.png"
    assert settings._relative(str(path), Path("/data")) == path.as_posix()


def test_without_lxml_the_schema_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lxml")
    wrong = b'<NetworkModel name="a" version="1"><Strange/></NetworkModel>'
    schema._schema.cache_clear()
    found = schema.check_schema(wrong)
    assert {(d.code, d.line, d.remedy) for d in found} == {("schema", 1, "see resources/schema/network_model.xsd")}
    assert all(d.message.startswith("the file violates the schema: ") for d in found)
    assert any("Strange" in d.message for d in found) or found
    assert schema.check_schema(b"<p:a/>") == []
    monkeypatch.setitem(sys.modules, "lxml", None)
    assert schema.check_schema(wrong) == []


@pytest.mark.parametrize(
    ("text", "code", "message", "line"),
    [
        (b"", "empty-file", "the file is empty", None),
        (b" \n ", "empty-file", "the file is empty", None),
        (b"<!DOCTYPE a>\n<a/>", "dtd", "a document type declaration is not allowed in a model file", 1),
        (b"\n<!-- a -->", "truncated", "the file ends too early (no element found)", 2),
        (b"<a>\n<b>", "truncated", "the file ends too early (no element found)", 2),
        (b"<a>\n<b", "truncated", "the file ends too early (unclosed token)", 2),
        (b"<a></b>", "not-xml", "the file is not well-formed XML: mismatched tag", 1),
        (b"plain text", "not-xml", "the file is not well-formed XML: syntax error", 1),
        (
            b"<a>\n\xff</a>",
            "bad-encoding",
            "the bytes are not valid in the encoding of the file (not well-formed (invalid token))",
            2,
        ),
        (
            b'<?xml version="1.0" encoding="ebcdic-cp-us"?><a/>',
            "bad-encoding",
            "the encoding 'ebcdic-cp-us' is not supported",
            1,
        ),
        (b"<a>\0</a>", "not-xml", "the file is not well-formed XML: not well-formed (invalid token)", 1),
    ],
)
def test_why_a_text_is_not_a_tree(text: bytes, code: str, message: str, line: int | None) -> None:
    with pytest.raises(XmlError) as caught:
        parse_xml(text)
    assert (caught.value.code, caught.value.message, caught.value.line) == (code, message, line)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("no layers", None), ("&lt;Layer but nothing else", None), ("<Layer name='a'", None),
        ('a <Layer name="x"/> b', '<Layer name="x"/>'), ('<Layer name="x"></Layer> <Layer name="y"/> z', '<Layer name="x"></Layer> <Layer name="y"/>'),
    ],
)  # fmt: skip
def test_texts_with_and_without_layers(text: str, part: str | None) -> None:
    found = snippets.model_text(text)
    if part is None:
        assert found is None or "Layer" in found
    else:
        assert found is not None
        assert found.splitlines()[1:-1] == [part]


def test_archives_that_are_compressed_or_damaged(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "a.pt"
    for content in (b"\0" * 1000, np.random.default_rng(0).bytes(1000)):  # the second one does not become smaller
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/data.pkl", content)
        code, message, _, file = said(lambda: read_state_dict(path))
        assert (code, file) == ("bad-weights", str(path))
        assert "its entries are compressed or larger than the file" in message
    data = bytearray(path.read_bytes())
    start = data.rindex(b"PK\x01\x02")
    data[start : start + 4] = b"XXXX"
    path.write_bytes(bytes(data))
    code, message, _, file = said(lambda: read_state_dict(path))
    assert (code, file) == ("bad-weights", str(path))
    assert "a.pt" in message


def test_what_a_document_must_not_have_to_be_written_as_it_was(tmp_path: Path) -> None:
    layers = [
        Layer("image", "input", params={"dims": "8x8x3"}),
        Layer(
            "conv",
            "convolution",
            (320, 0),
            (Source("image"),),
            {"features": "3"},
            ActivationSpec("relu", {"alpha": "0.0"}),
        ),
    ]
    graph = Graph(layers, name="net")
    data = write_document(graph)
    assert is_canonical(graph, data)
    assert is_canonical(parse_document(data).graph, data)
    assert not is_canonical(None, data)
    assert not is_canonical(graph, data + b"\n")
    conv, spec = layers[1], layers[1].activation
    assert spec is not None
    changed = [
        Graph(layers, name="net", attributes={"a": "b"}),
        Graph(layers, name="net", templates=[Template("t", ())]),
        Graph([layers[0], replace(conv, attributes={"a": "b"})], name="net"),
        Graph([layers[0], replace(conv, activation=replace(spec, attributes={"a": "b"}))], name="net"),
    ]
    for other in changed:
        assert not is_canonical(other, write_document(other))
    assert not is_canonical(Graph([replace(layers[0], params={"dims": "\x01"})], name="net"), data)
