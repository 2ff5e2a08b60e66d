"""State dicts in checkpoints of PyTorch: where they are found, and files that are refused."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded import check_recorded

from designer.files.torch_file import read_state_dict, read_tensor
from designer.files.weights import (
    load_weights,
)
from designer.graph.diagnostics import Diagnostic, DiagnosticError

BAD = Path(__file__).parents[1] / "data" / "bad" / "weights"


def told(found: Iterable[Diagnostic], folder: Path | None = None) -> Iterator[str]:
    for each in found:
        named = ("layer", "parameter", "file")
        where = ", ".join(f"{name} {getattr(each, name)}" for name in named if getattr(each, name) is not None)
        text = f"{each.severity.value} {each.code} ({where}): {each.message} - {each.remedy}"
        yield text.replace(str(folder), "...").replace(str(BAD), "bad") if folder else text


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def checkpoints(torch: Any) -> dict[str, Any]:
    one, two = {"a.weight": torch.ones(2)}, {"b.weight": torch.zeros(2), "b.num_batches_tracked": torch.tensor(3)}
    keys = (
        *("params_ema", "model_ema", "ema", "state_dict_ema", "network", "state_dict", "model_state_dict"),
        *("model", "module", "weights", "params"),
    )
    return {
        "plain": one,
        "counters": two,
        "counters alone": {"num_batches_tracked": torch.tensor(3)},
        "empty": {},
        "a list": [torch.ones(2)],
        "a number": 3,
        "other keys": {"epoch": 3, "lr": 0.1},
        "numbers as keys": {0: torch.ones(2)},
        **{f"under {key}": {"epoch": 3, key: one} for key in keys},
        **{f"{first} and {second}": {second: two, first: one} for first, second in pairwise(keys)},
        "three": dict.fromkeys(("params", "ema", "model"), one),
        "tensors and a model": {"step": torch.tensor(3.0), "model": one},
        "nested": {"ema": {"module": one}, "model": {"state_dict": two}},
        "an empty model": {"model": {}, "a.weight": torch.ones(2)},
        "a model that is not a dict": {"model": 3, "params": one},
        "wrapped": {f"module.{key}": value for key, value in one.items()},
        "compiled": {f"_orig_mod.{key}": value for key, value in one.items()},
        "wrapped and compiled": {f"module._orig_mod.{key}": value for key, value in one.items()},
        "compiled and wrapped": {f"_orig_mod.module.{key}": value for key, value in one.items()},
        "partly wrapped": {"module.a.weight": torch.ones(2), "b.weight": torch.ones(2)},
        "wrapped under a key": {"model": {"module.a.weight": torch.ones(2)}},
        "a module of that name": {"module": {"module.a": torch.ones(2)}, "other": 1},
    }


def test_state_dicts_are_found_in_checkpoints_as_recorded(tmp_path: Path, torch: Any) -> None:
    found = []
    path = tmp_path / "net.pt"
    for title, content in checkpoints(torch).items():
        torch.save(content, path)
        try:
            state = read_state_dict(path)
            lines = [f"key {state.key!r}, others {state.others}", *state.tensors]
            note = load_weights(path, {}).note
            lines += [note] if note else []
        except DiagnosticError as error:
            lines = list(told(error.diagnostics, tmp_path))
        found += [title, *(f"  {line}" for line in lines)]
    check_recorded("documents/checkpoints.txt", "\n".join(found) + "\n")


def test_archives_that_are_compressed_or_too_large_are_refused(tmp_path: Path, torch: Any) -> None:
    path, other = tmp_path / "net.pt", tmp_path / "other.pt"
    torch.save({"a.weight": torch.ones(200)}, path)
    assert list(read_state_dict(path).tensors) == ["a.weight"]
    with zipfile.ZipFile(path) as archive:
        parts = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with zipfile.ZipFile(path, "a") as archive:
        entry = archive.infolist()[0]
        entry.file_size = 10**9  # in the directory at the end
        archive.comment = b"x"
    expected = "is not a readable PyTorch file: its entries are compressed or larger than the file"
    for file in (path, other):
        with pytest.raises(DiagnosticError) as caught:
            read_state_dict(file)
        assert list(told(caught.value.diagnostics, tmp_path)) == [
            f"error bad-weights (file .../{file.name}): {file.name} {expected} - copy or write it again with "
            "torch.save(model.state_dict(), path)"
        ]


def test_a_checkpoint_that_calls_functions_names_at_most_eight(tmp_path: Path, torch: Any) -> None:
    names = ["getpid", "getppid", "getuid", "getgid", "geteuid", "getegid", "getcwd", "times", "uname", "cpu_count"]
    torch.save({"a": [Call(name) for name in names]}, tmp_path / "net.pt")
    with pytest.raises(DiagnosticError) as caught:
        read_state_dict(tmp_path / "net.pt")
    [found] = caught.value.diagnostics
    called = found.message.removeprefix("net.pt contains more than tensors: loading it would call ")
    listed = called.removesuffix(", so it was not loaded").split(", ")
    assert len(listed) == 8
    assert listed == sorted(listed)
    assert set(listed) < {f"{getattr(os, name).__module__}.{name}" for name in names}
    assert found.remedy.startswith("if you trust the file, convert it with the program that wrote it: torch.save(")


class Call:
    """Pickled as the call of a function of `os`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return getattr(os, self.name), ()


def test_a_tensor_of_a_state_dict_is_read_as_float32_in_c_order(tmp_path: Path, torch: Any) -> None:
    values = torch.arange(6.0).reshape(2, 3)
    for tensor in (values, values.to(torch.float64), values.to(torch.bfloat16), values.t().contiguous().t()):
        found = read_tensor(tmp_path / "net.pt", "t", tensor)
        assert (found.dtype, found.flags.c_contiguous) == (np.float32, True)
        assert found.tolist() == values.tolist()


def test_a_compressed_archive_that_is_not_smaller_is_refused_too(tmp_path: Path, torch: Any) -> None:
    """Random bytes grow when they are compressed, so the sizes alone say nothing."""
    path, packed = tmp_path / "net.pt", tmp_path / "packed.pt"
    torch.save({"a": torch.from_numpy(np.random.default_rng(0).integers(0, 256, 50_000, np.uint8))}, path)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        for entry in archive.infolist():
            made.writestr(entry.filename, archive.read(entry))
    with zipfile.ZipFile(packed) as archive:
        assert sum(entry.file_size for entry in archive.infolist()) < packed.stat().st_size
    with pytest.raises(DiagnosticError, match="its entries are compressed or larger than the file"):
        read_state_dict(packed)


@pytest.mark.parametrize("number", range(3))
def test_an_archive_with_one_compressed_entry_is_refused(tmp_path: Path, torch: Any, number: int) -> None:
    """Random bytes: the file is as large as its entries."""
    path, packed = tmp_path / "net.pt", tmp_path / "packed.pt"
    torch.save({"a": torch.from_numpy(np.random.default_rng(0).integers(0, 256, 50_000, np.uint8))}, path)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as made:
        chosen = [archive.infolist()[0], archive.infolist()[-1], archive.infolist()[2]][number]
        for entry in archive.infolist():
            kind = zipfile.ZIP_DEFLATED if entry is chosen else zipfile.ZIP_STORED
            made.writestr(entry.filename, archive.read(entry), kind)
    with pytest.raises(DiagnosticError, match="its entries are compressed or larger than the file"):
        read_state_dict(packed)


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (RuntimeError("reader failed: x. Do this.\nmore"), "bad-weights", "reader failed: x"),
        (RuntimeError("y" * 200), "bad-weights", "y" * 160),
        (RuntimeError(" \n"), "bad-weights", "RuntimeError"),
        (
            RuntimeError("Unsupported GLOBAL os.system and GLOBAL a.b"),
            "pickled-weights",
            "loading it would call os.system, a.b,",
        ),
    ],
)
def test_the_reason_of_torch_is_its_first_sentence(
    tmp_path: Path, torch: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str, reason: str
) -> None:
    path = tmp_path / "net.pt"
    torch.save({"a": torch.ones(2)}, path)

    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(torch, "load", failing)
    with pytest.raises(DiagnosticError) as caught:
        read_state_dict(path)
    [found] = caught.value.diagnostics
    assert found.code == code
    if code == "bad-weights":
        assert found.message == f"net.pt is not a readable PyTorch file: {reason}"
    else:
        assert reason in found.message
