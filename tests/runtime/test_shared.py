"""Tensors handed over through files in memory."""

from __future__ import annotations

import numpy as np
import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.runtime.shared import SharedFolder


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (2,), (), (0, 3)])
def test_a_tensor_goes_over_and_stays_after_its_file_is_gone(tmp_path, dtype, shape):
    array = (np.random.default_rng(0).random(shape) * 100).astype(dtype)
    handle = SharedFolder(tmp_path).put(array)
    receiver = SharedFolder(str(tmp_path))
    got = receiver.get(handle)
    receiver.free(handle)
    receiver.free(handle)
    assert list(tmp_path.iterdir()) == []
    assert got.dtype == array.dtype
    np.testing.assert_array_equal(got, array)


def test_a_map_cannot_be_written_to(tmp_path):
    folder = SharedFolder(tmp_path)
    got = folder.get(folder.put(np.zeros((2, 3), np.float32)))
    with pytest.raises(ValueError, match="read-only"):
        got[0] = 1


def test_views_are_written_in_order(tmp_path):
    folder = SharedFolder(tmp_path)
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1)
    np.testing.assert_array_equal(folder.get(folder.put(array)), array)


@pytest.mark.parametrize(
    "change",
    [
        {"file": "../x.raw"},
        {"file": "/etc/passwd"},
        {"file": "missing0.raw"},
        {"file": None},
        {"shape": [2, -3]},
        {"shape": [1 << 40, 4]},
        {"shape": [True, 6]},
        {"shape": "6"},
        {"shape": [7]},
        {"dtype": "object"},
        {"dtype": "float64"},
        {"dtype": None},
    ],
)
def test_a_handle_that_does_not_fit_is_refused(tmp_path, change):
    folder = SharedFolder(tmp_path)
    handle = {**folder.put(np.zeros((2, 3), np.float32)), **change}
    with pytest.raises(DiagnosticError) as caught:
        folder.get(handle)
    assert caught.value.diagnostics[0].code == "bad-handle"


def test_a_folder_that_is_gone(tmp_path):
    with pytest.raises(DiagnosticError) as caught:
        SharedFolder(tmp_path / "gone").put(np.zeros(3, np.float32))
    assert caught.value.diagnostics[0].code == "shared-memory"
