"""Tensors handed over through files in memory."""

from __future__ import annotations

import signal
import sys

import msgspec
import numpy as np
import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.runtime.shared import Handle, SharedFolder


def changed(handle: Handle, change: dict) -> bytes:
    return msgspec.json.encode({**msgspec.structs.asdict(handle), **change})


@pytest.mark.parametrize(
    "change",
    [
        {"file": "../x.raw"},
        {"file": "/etc/passwd"},
        {"file": "0123.raw\n"},
        {"file": None},
        {"shape": [2, -3]},
        {"shape": [True, 6]},
        {"shape": [1 << 60]},
        {"shape": [1] * 17},
        {"shape": "6"},
        {"dtype": "object"},
        {"dtype": None},
    ],
)
def test_a_handle_that_names_no_tensor_of_the_folder_is_not_read(tmp_path, change):
    handle = SharedFolder(tmp_path).put(np.zeros((2, 3), np.float32))
    assert msgspec.json.decode(changed(handle, {}), type=Handle) == handle
    with pytest.raises(msgspec.ValidationError, match=next(iter(change))):
        msgspec.json.decode(changed(handle, change), type=Handle)


@pytest.mark.parametrize(
    "change", [{"file": "00000000.raw"}, {"shape": [1 << 40, 4]}, {"shape": [7]}, {"dtype": "float64"}]
)
def test_a_handle_that_does_not_fit_is_refused(tmp_path, change):
    folder = SharedFolder(tmp_path)
    handle = folder.put(np.zeros((2, 3), np.float32))
    with pytest.raises(DiagnosticError) as caught:
        folder.get(msgspec.json.decode(changed(handle, change), type=Handle))
    assert caught.value.diagnostics[0].code == "bad-handle"


def test_a_folder_that_is_gone(tmp_path):
    with pytest.raises(DiagnosticError) as caught:
        SharedFolder(tmp_path / "gone").put(np.zeros(3, np.float32))
    assert caught.value.diagnostics[0].code == "shared-memory"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no limit of file sizes")
def test_a_tensor_that_was_not_written_whole_leaves_no_file(tmp_path):
    import resource

    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(DiagnosticError) as caught:
            SharedFolder(tmp_path).put(np.zeros(1 << 16, np.float32))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert caught.value.diagnostics[0].code == "shared-memory"
    assert not list(tmp_path.iterdir())
