"""Projects whose training is a stand-in that needs no torch, and runs of them."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from designer.training import trainer
from designer.training.run_folder import RunFolder, runs_of

STAND_IN = Path(__file__).parents[1] / "training" / "fake_trainer.py"
WAIT = 60000


def stand_in_project(folder: Path) -> Path:
    """A project in `folder` whose train.py is the stand-in."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(STAND_IN, folder / "train.py")
    return folder


def end_processes(folder: Path) -> None:
    """Kill what trains in a project, and wait until it is gone."""
    for path in runs_of(folder):
        pid = RunFolder(path).process()
        if pid:
            os.kill(pid, signal.SIGKILL)
    for child in trainer._children:
        child.wait(WAIT / 1000)
    trainer.reap()


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the project; exporting it writes the stand-in."""
    folder = tmp_path / "project"
    monkeypatch.setattr(
        "exporters.pytorch.export_project", lambda graph, registry, target, *rest: stand_in_project(target)
    )
    yield folder
    end_processes(folder)
