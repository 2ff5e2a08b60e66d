"""The time limit of a test also ends a dialog that nobody answers, and a wait that was interrupted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

HANGING = Path(__file__).with_name("hanging_dialog.py")


def test_dialogs_and_waits_that_reach_the_limit_fail_their_tests_only(tmp_path: Path) -> None:
    # A folder of its own: at its end pytest removes those of earlier sessions, which can take minutes.
    options = ("-p", "no:xdist", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "temporary"))
    command = [sys.executable, "-m", "pytest", *options, str(HANGING)]
    done = subprocess.run(command, cwd=HANGING.parents[2], capture_output=True, text=True, timeout=60, check=False)
    assert "2 failed, 1 passed" in done.stdout
    assert "Timeout (>1.0s)" in done.stdout
    assert "dialog.exec()" in done.stdout, "the place where the test waits"
