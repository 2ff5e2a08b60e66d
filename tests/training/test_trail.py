"""Damaged trails of weights."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from refusals import refusal

from designer.files.array_files import npy_bytes
from designer.training.trail import Frame, Trail, write_frame


def test_damaged_trails_name_the_file_and_the_reason(tmp_path: Path) -> None:
    remedy = "choose another step"
    missing = refusal(lambda: write_frame(tmp_path, 1, tmp_path / "made", {}))
    reason = f"the weights in {tmp_path} cannot be read: the run has no trail of weights"
    assert missing == ("bad-frame", reason, str(tmp_path), remedy)
    lines = [
        {"step": 1, "file": "gone", "kind": "key"},
        {"step": 2, "file": "text", "kind": "key"},
        {"step": 3, "file": "good", "kind": "difference", "key": 9},
        {"step": 4, "file": "a/b", "kind": "key"},
        {"step": 5, "file": "a\\b", "kind": "key"},
        {"step": 6, "file": "good", "kind": "unknown"},
        {"step": 7, "file": "first", "kind": "key"},
        {"step": 7, "file": "good", "kind": "key"},
    ]
    (tmp_path / "index.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "text").write_text("no archive")
    fortran = np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3))
    with ZipFile(tmp_path / "good", "w") as archive:
        archive.writestr("w.npy", npy_bytes(np.ones((2, 1), np.float32)))
        with archive.open("f.npy", "w") as stream:
            np.lib.format.write_array(stream, fortran, (1, 0))
    trail = Trail(tmp_path)
    assert trail.read()
    assert [(frame.step, frame.file) for frame in trail.frames] == [(1, "gone"), (2, "text"), (3, "good"), (7, "good")]
    reasons = ("No such file or directory", "File is not a zip file", "its key frame is missing")
    for frame, reason in zip(trail.frames, reasons, strict=False):
        path = tmp_path / frame.file
        message = f"the weights in {path} cannot be read: {reason}"
        assert refusal(lambda frame=frame: trail.weights(frame)) == ("bad-frame", message, str(path), remedy)
    weights = trail.weights(trail.frames[3])
    assert {name: array.tolist() for name, array in weights.items()} == {
        "w": [[1.0], [1.0]],
        "f": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]],
    }
    with ZipFile(tmp_path / "newer", "w") as archive, archive.open("w.npy", "w") as stream:
        np.lib.format.write_array(stream, fortran, (2, 0))
    found = refusal(lambda: trail.weights(Frame(1, "newer", "key")))
    assert found[1].endswith("the version of the .npy format is not 1.0")
