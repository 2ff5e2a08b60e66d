"""Which process an id refers to."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from designer.training import process_mark


@pytest.mark.skipif(sys.platform != "linux", reason="the mark is another one there")
def test_a_process_is_marked_by_the_start_of_the_machine_and_its_own() -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    assert process_mark.process_mark(os.getpid()) == f"{boot}:{ticks}"
    assert process_mark.process_mark(0) is None
    assert process_mark.process_mark(-1) is None
    assert process_mark.process_mark(1 << 22) is None


def test_a_process_runs_a_script_of_exactly_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    class Process:
        words: ClassVar[list[str]] = ["/usr/bin/python", "-u", "/folder/my_train.py", "--lr", "1"]
        state = psutil.STATUS_SLEEPING

        def __init__(self, pid: int) -> None:
            if pid != 7:
                raise psutil.NoSuchProcess(pid)

        def cmdline(self) -> list[str]:
            return self.words

        def status(self) -> str:
            return self.state

    monkeypatch.setattr(psutil, "Process", Process)
    assert process_mark.runs_script(7, "my_train.py")
    assert not process_mark.runs_script(7, "train.py")
    assert not process_mark.runs_script(8, "my_train.py")
    monkeypatch.setattr(Process, "state", psutil.STATUS_ZOMBIE)
    assert not process_mark.runs_script(7, "my_train.py"), "it has ended"
    assert process_mark.process_mark(7) is None
