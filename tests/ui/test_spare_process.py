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


def test_only_onnx_files_and_processes_started_ahead_load_what_they_need_at_once(monkeypatch) -> None:
    started: list[list[str]] = []

    class Process:
        def __init__(self, _parent: object) -> None: ...

        def start(self, program: str, arguments: list[str]) -> None:
            started.append([program, *arguments])

    monkeypatch.setattr(import_run, "QProcess", Process)
    monkeypatch.setattr(import_run, "import_command", lambda warm: ["python", "-m", "warm" if warm else "cold"])
    imports = Imports(Registry(), import_run.QObject())
    for warm in (False, True):
        assert isinstance(imports._process(warm=warm), Process)
    assert started == [["python", "-m", "cold"], ["python", "-m", "warm"]]
