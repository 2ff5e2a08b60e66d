"""The process that is started ahead of an import."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("PySide6")

from app.ui.engine import import_run
from app.ui.engine.import_run import Imports, ImportSource
from designer.operators.registry import Registry

pytestmark = pytest.mark.gui
REFUSES = """
import sys
sys.stdin.readline()
print('{"event": "failed", "diagnostics": [{"code": "bad", "message": "refused"}]}', flush=True)
"""


def test_an_import_does_not_wait_for_a_process_that_has_ended(qtbot, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(import_run, "import_command", lambda warm: [sys.executable, "-I", "-c", REFUSES])
    parent = import_run.QObject()
    imports = Imports(Registry(), parent)
    imports.prepare()
    assert imports._spare.waitForStarted()
    imports._spare.kill()
    assert imports._spare.waitForFinished()
    run = imports.start(ImportSource("model.onnx", tmp_path))
    found = []
    run.failed.connect(found.extend)
    with qtbot.waitSignal(run.ended, timeout=30_000):
        pass
    assert [problem.code for problem in found] == ["bad"]
