"""Trials on this machine: several at once, one that fails, and one that is training already. The trainer is a stand-in."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engine.sweep_job import run_here
from designer.training import trainer
from designer.training.sweep import Axis, Sweep, Trial, trials
from designer.training.watched_run import RunState


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "network").mkdir()
    shutil.copy(Path(__file__).parents[1] / "training" / "fake_trainer.py", tmp_path / "network" / "train.py")
    yield tmp_path
    for child in trainer._children:
        child.kill()
        child.wait(30)


def run(sweep: Sweep, parallel: int) -> dict[int, tuple[RunState, str]]:
    found = {}

    def ended(trial: Trial, state: RunState, message: str) -> None:
        found[trial.number] = state, message

    run_here(sweep, list(sweep.trials), parallel, ended)
    return found


def overlap(sweep: Sweep) -> int:
    """The most trials that trained at the same time."""
    spans = []
    for trial in sweep.trials:
        lines = sweep.run(trial).metrics.read_text().splitlines()[1:]
        times = [float(line.partition('"time": ')[2].partition(",")[0]) for line in (lines[0], lines[-1])]
        spans.append(times)
    return max(sum(start <= moment <= end for start, end in spans) for moment, _ in spans)


@pytest.mark.parametrize("parallel", [1, 2])
def test_no_more_trials_than_requested_train_at_once(folder: Path, parallel: int) -> None:
    sweep = Sweep(folder, tuple(trials([Axis.parse("lr=0.1,0.2,0.3")])), {"steps": "60"})
    assert {state for state, _ in run(sweep, parallel).values()} == {RunState.FINISHED}
    assert overlap(sweep) == parallel


def test_a_failed_trial_does_not_end_the_others(folder: Path) -> None:
    sweep = Sweep(folder, tuple(trials([Axis.parse("fail=5,0")])), {"steps": "20"})
    found = run(sweep, 1)
    assert found[1] == (RunState.FAILED, "the loss is NaN; use a smaller learning rate")
    assert found[2][0] is RunState.FINISHED
    assert [result.trial.number for result in sweep.write()] == [2, 1]
    assert "the loss is NaN" in (folder / "results.csv").read_text()


def test_a_trial_that_still_trains_after_its_command_was_killed_is_watched(folder: Path) -> None:
    sweep = Sweep(folder, tuple(trials([Axis.parse("lr=0.1")])), {"steps": "100"})
    (trial,) = sweep.trials
    pid = trainer.start(sweep.run(trial), sweep.arguments(trial))
    assert run(sweep, 1)[1][0] is RunState.FINISHED
    status = sweep.run(trial).status()
    assert status is not None
    assert status.pid == pid


def test_a_killed_trial_continues_from_its_checkpoint(folder: Path) -> None:
    sweep = Sweep(folder, tuple(trials([Axis.parse("lr=0.1")])), {"steps": "200"})
    (trial,) = sweep.trials
    folder_of_run = sweep.run(trial)
    pid = trainer.start(folder_of_run, sweep.arguments(trial))
    while folder_of_run.checkpoint is None:
        assert folder_of_run.process()
    os.kill(pid, signal.SIGKILL)
    first = folder_of_run.metrics.read_text().splitlines()[1]
    while folder_of_run.process():
        pass
    trainer.reap()
    assert run(sweep, 1)[1][0] is RunState.FINISHED
    assert folder_of_run.metrics.read_text().splitlines()[1] == first
