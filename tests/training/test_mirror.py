"""The copy of a run that another machine trains."""

from __future__ import annotations

import json

import pytest
from refusals import refusal

from designer.training import mirror
from designer.training.remote_agent import HERE_ONLY
from designer.training.run_folder import RunFolder


@pytest.mark.parametrize(
    "name",
    ["", "/x", "../x", "a/../x", "a/..", "a\\b", "a\0b", *HERE_ONLY, ".."],
)
def test_names_outside_of_the_copy_and_of_local_files_are_refused(run: RunFolder, name: str) -> None:
    found = refusal(lambda: mirror.store(run, [(name, 0, b"x")], 1))
    assert found == (
        "bad-answer",
        f"the other machine returned a file called {name}",
        None,
        "check which machine that is",
    )
    assert list(run.path.iterdir()) == []


def test_a_shorter_end_of_a_file_replaces_the_old_one(run: RunFolder) -> None:
    mirror.store(run, [("a/b.log", 0, b"0123456789"), ("..c", 0, b"x")], 1)
    mirror.store(run, [("a/b.log", 4, b"xy")], 1)
    assert (run.path / "a" / "b.log").read_bytes() == b"0123xy"
    mirror.store(run, [("deep/status.json", 0, b'{"pid": 5}'), ("status.json", 0, b"[1]")], 9)
    assert json.loads((run.path / "deep" / "status.json").read_text()) == {"pid": 5}
    assert (run.path / "status.json").read_bytes() == b"[1]"
