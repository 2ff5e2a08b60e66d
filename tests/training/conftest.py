"""Folders of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from designer.training.run_folder import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "runs" / "a")
    folder.path.mkdir(parents=True)
    return folder
