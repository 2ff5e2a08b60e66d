"""Headers and values of `.safetensors`, `.npy` and `.bin` files, and what is refused about them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded import check_recorded

from designer.files import limits
from designer.files.array_files import read_header, read_raw
from designer.files.safetensors_file import read_entries, read_entry, read_numbers, write_safetensors
from designer.graph.diagnostics import Diagnostic, DiagnosticError

BAD = Path(__file__).parents[1] / "data" / "bad" / "weights"


def told(found: Iterable[Diagnostic], folder: Path | None = None) -> Iterator[str]:
    for each in found:
        named = ("layer", "parameter", "file")
        where = ", ".join(f"{name} {getattr(each, name)}" for name in named if getattr(each, name) is not None)
        text = f"{each.severity.value} {each.code} ({where}): {each.message} - {each.remedy}"
        yield text.replace(str(folder), "...").replace(str(BAD), "bad") if folder else text


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


HEADS: dict[str, tuple[Any, int]] = {
    "fits": ({"t": ENTRY}, 8),
    "metadata": ({"__metadata__": {"a": "b"}, "t": ENTRY}, 8),
    "a name that begins with underscores": ({"__t": ENTRY}, 8),
    "an empty tensor between": ({"b": ENTRY, "a": {**ENTRY, "shape": [0], "data_offsets": [0, 0]}}, 8),
    "an empty tensor at the end": ({"b": ENTRY, "a": {**ENTRY, "shape": [3, 0], "data_offsets": [8, 8]}}, 8),
    "no tensors": ({}, 0),
    "no tensors but bytes": ({}, 3),
    "a list": ([], 0),
    "a text": ("x", 0),
    "nothing": (None, 0),
    "bytes after": ({"t": ENTRY}, 11),
    "too short": ({"t": ENTRY}, 7),
    "a gap": ({"t": {**ENTRY, "data_offsets": [4, 12]}}, 12),
    "an overlap": ({"t": ENTRY, "u": {**ENTRY, "data_offsets": [4, 12]}}, 12),
    "the same values twice": ({"t": ENTRY, "u": ENTRY}, 8),
    "before the values": ({"t": {**ENTRY, "data_offsets": [-4, 4]}}, 8),
    "backwards": ({"t": {**ENTRY, "shape": [0], "data_offsets": [8, 0]}}, 8),
    "another shape": ({"t": {**ENTRY, "shape": [3]}}, 8),
    "a negative size": ({"t": {**ENTRY, "shape": [-1, -2]}}, 8),
    "a size that is a fraction": ({"t": {**ENTRY, "shape": [2.0]}}, 8),
    "a size that is true": ({"t": {**ENTRY, "shape": [True, 2]}}, 8),
    "no type": ({"t": {k: v for k, v in ENTRY.items() if k != "dtype"}}, 8),
    "one offset": ({"t": {**ENTRY, "data_offsets": [8]}}, 8),
    "offsets as text": ({"t": {**ENTRY, "data_offsets": ["0", "8"]}}, 8),
    "more than is needed": ({"t": {**ENTRY, "other": 1}}, 8),
    "an entry that is a list": ({"t": [1]}, 8),
    "16 axes": ({"t": {**ENTRY, "shape": [1] * 15 + [2]}}, 8),
    "17 axes": ({"t": {**ENTRY, "shape": [1] * 16 + [2]}}, 8),
    "an unknown type": ({"n" * 100: {**ENTRY, "dtype": "X" * 30}}, 8),
    "a long name": ({"n" * 100: {**ENTRY, "shape": [3]}}, 8),
    "half bytes": ({"t": {**ENTRY, "dtype": "F4", "shape": [4, 4]}}, 8),
    "half bytes that do not fill one": ({"t": {**ENTRY, "dtype": "F4", "shape": [15]}}, 8),
    "six bits": ({"t": {**ENTRY, "dtype": "F6_E2M3", "shape": [4], "data_offsets": [0, 3]}}, 3),
}


def test_headers_of_safetensors_are_read_and_refused_as_recorded(tmp_path: Path) -> None:
    found = []
    path = tmp_path / "w.safetensors"
    for title, (head, count) in HEADS.items():
        text = json.dumps(head).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(count))
        begin = 8 + len(text)
        try:
            lines = [
                f"{name}: {e.type} {e.shape} at {e.begin - begin} to {e.end - begin}"
                for name, e in read_entries(path).items()
            ]
        except DiagnosticError as error:
            lines = list(told(error.diagnostics, tmp_path))
        found += [title, *(f"  {line}" for line in lines)]
    for title, data in {
        "empty": b"",
        "seven bytes": bytes(7),
        "a size beyond the end": (3).to_bytes(8, "little") + b"{}",
        "not JSON": (2).to_bytes(8, "little") + b"{x",
        "not text": (2).to_bytes(8, "little") + b"\xff\xff",
        "too deep": (100_000).to_bytes(8, "little") + b"[" * 100_000,
    }.items():
        path.write_bytes(data)
        with pytest.raises(DiagnosticError) as caught:
            read_entries(path)
        found += [title, *(f"  {line}" for line in told(caught.value.diagnostics, tmp_path))]
    check_recorded("documents/safetensors.txt", "\n".join(found) + "\n")


def test_a_header_of_more_than_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.safetensors"
    write_safetensors(path, {"a": np.ones(2, np.float32)})
    size = int.from_bytes(path.read_bytes()[:8], "little")
    monkeypatch.setattr(limits, "MAX_WEIGHT_HEADER", size)
    assert list(read_entries(path)) == ["a"]
    monkeypatch.setattr(limits, "MAX_WEIGHT_HEADER", size - 1)
    with pytest.raises(DiagnosticError, match=f"declares a header of {size} bytes, but the file has {size + 16}"):
        read_entries(path)


def test_tensors_of_safetensors_that_shrank_or_went_away_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    write_safetensors(path, {"a": np.arange(4, dtype=np.float32).reshape(2, 2), "b": np.ones((), np.float32)})
    entries = read_entries(path)
    assert read_entry(path, "a", entries["a"]).tolist() == [[0, 1], [2, 3]]
    assert read_numbers(path, "b", entries["b"]).tolist() == 1
    path.write_bytes(path.read_bytes()[:-1])
    assert read_entry(path, "a", entries["a"]).tolist() == [[0, 1], [2, 3]]
    with pytest.raises(DiagnosticError, match=r"w.safetensors was truncated while it was read"):
        read_entry(path, "b", entries["b"])
    path.unlink()
    with pytest.raises(DiagnosticError, match=r"w.safetensors cannot be read: No such file or directory"):
        read_entry(path, "a", entries["a"])
    with pytest.raises(DiagnosticError):
        read_entries(path)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("I64", [-(2**40), 3]),
        ("I32", [-(2**30), 3]),
        ("I16", [-(2**14), 3]),
        ("I8", [-100, 3]),
        ("U8", [200, 3]),
        ("BOOL", [True, False]),
        ("F32", [0.5, -3.0]),
        ("F64", [0.5, -3.0]),
        ("F16", [0.5, -3.0]),
        ("BF16", [0.5, -3.0]),
    ],
)
def test_numbers_of_each_type_have_their_values_and_shape(tmp_path: Path, kind: str, values: list[Any]) -> None:
    dtypes = {"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?", "F64": "<f8", "F16": "<f2"}
    array = np.array(values)
    data = array.astype(dtypes.get(kind, "<f4")).tobytes()
    if kind == "BF16":
        data = b"".join(data[n + 2 : n + 4] for n in (0, 4))
    head = json.dumps({"t": {"dtype": kind, "shape": [2, 1], "data_offsets": [0, len(data)]}}).encode()
    path = tmp_path / "w.safetensors"
    path.write_bytes(len(head).to_bytes(8, "little") + head + data)
    found = read_numbers(path, "t", read_entries(path)["t"])
    assert found.tolist() == [[value] for value in values]
    assert found.dtype == (np.float32 if "F" in kind else np.dtype(dtypes[kind]))


@pytest.mark.parametrize("durable", [True, False])
def test_only_durable_files_are_flushed_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    flushed = []
    monkeypatch.setattr("designer.files.atomic.os.fsync", flushed.append)
    write_safetensors(tmp_path / "w.safetensors", {"a": np.ones(2, np.float32)}, durable=durable)
    assert bool(flushed) == durable


def test_arrays_of_odd_types_and_shapes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    lines = []
    for array in (
        np.zeros(2, "<f2"),
        np.zeros(2, bool),
        np.zeros(2, "<c8"),
        np.zeros((1,) * 16 + (2,), np.float32),
        np.zeros((1,) * 15 + (2,), np.float32),
        np.zeros((), np.float32),
        np.zeros((2, 0), np.float64, order="F"),
    ):
        np.save(path, array)
        try:
            header = read_header(path)
            lines.append(f"{header.shape} {header.dtype} {header.fortran} {header.offset}")
        except DiagnosticError as error:
            lines += told(error.diagnostics, tmp_path)
    for change in (-1, 1):
        np.save(path, np.zeros((3, 2), np.float32))
        data = path.read_bytes()
        path.write_bytes(data[:change] if change < 0 else data + b"x")
        with pytest.raises(DiagnosticError) as caught:
            read_header(path)
        lines += told(caught.value.diagnostics, tmp_path)
    for version in ((1, 0), (2, 0), (3, 0)):
        with path.open("wb") as stream:
            np.lib.format.write_array(stream, np.zeros((3, 2), np.float32, order="F"), version)
        header = read_header(path)
        lines.append(f"{version} {header.shape} {header.dtype} {header.fortran} {header.offset}")
    data = bytearray(path.read_bytes())
    data[6] = 4
    path.write_bytes(bytes(data))
    with pytest.raises(DiagnosticError, match=r"is not a readable .npy file: "):
        read_header(path)
    with pytest.raises(DiagnosticError, match=r"a.bin cannot be read: No such file or directory"):
        read_raw(tmp_path / "a.bin", (2,))
    if np.dtype(np.longdouble).itemsize > 8:  # not on every system
        np.save(path, np.zeros(2, np.longdouble))
        with pytest.raises(DiagnosticError, match="values instead of floating-point numbers"):
            read_header(path)
    check_recorded("documents/npy.txt", "\n".join(lines) + "\n")
