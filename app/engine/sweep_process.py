"""Runs a sweep that was prepared, in a process that survives the window: `python app/process.py app.engine.sweep_process FOLDER`.

The state is in the folder of the sweep, as that of a run is in its folder. The command `stop` ends it with checkpoints.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from app.engine.sweep_job import Ended, run_here, unfinished
from app.process import module_command
from designer.files.atomic import write_atomic
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr, trn
from designer.training import mirror, trainer
from designer.training.run_folder import RunFolder, Status, Written
from designer.training.sweep import Sweep, Trial
from designer.training.watched_run import RunState

LOOK = 0.3  # seconds between two looks at the command
PLACE = "place.json"


class Place(Struct, frozen=True):
    """`place.json`: where trials train. So many at once on this machine, or on the Ray cluster at an address."""

    parallel: int = 1
    cluster: str = ""


def read_place(sweep: Sweep) -> Place:
    """The place that the sweep was last started with."""
    try:
        return msgspec.json.decode((sweep.folder / PLACE).read_bytes(), type=Place)
    except (OSError, ValueError):
        return Place()


def start(sweep: Sweep, place: Place) -> None:
    """Run the trials that are not finished in a process of their own. Raises DiagnosticError."""
    job = sweep.job
    _check_free(job)
    write_atomic(sweep.folder / PLACE, msgspec.json.encode(place))
    (job.path / "control").unlink(missing_ok=True)
    words = module_command("app.engine.sweep_process", str(sweep.folder))
    job.record_process(trainer.spawn(words, sweep.folder, job.log))


def conduct(sweep: Sweep, waiting: Sequence[Trial], place: Place, ended: Ended) -> None:
    """Run trials in this process. Raises KeyboardInterrupt after the command `stop`, and DiagnosticError."""
    job = sweep.job
    _check_free(job)
    if job.process() != os.getpid():  # not started by `start`
        (job.path / "control").unlink(missing_ok=True)
        job.record_process(os.getpid())
    failed: list[str] = []

    def count(trial: Trial, state: RunState, message: str) -> None:
        if state is RunState.FAILED:
            failed.append(trial.name)
        ended(trial, state, message)
        sweep.write()

    _report(job, "running")
    try:
        with _stopped_by_command(job):
            if place.cluster:
                from app.engine.sweep_cluster import run_on_cluster

                run_on_cluster(place.cluster, sweep, waiting, count)
            else:
                run_here(sweep, list(waiting), place.parallel, count)
    except KeyboardInterrupt:
        _report(job, "stopped")
        raise
    except DiagnosticError as error:
        found = error.diagnostics[0]
        _report(job, "failed", ". ".join(text for text in (found.message, found.remedy) if text))
        raise
    finally:
        sweep.write()
    names = ", ".join(failed)
    message = trn("{count} trial failed: {names}", "{count} trials failed: {names}", len(failed), names=names)
    _report(job, "finished", message if failed else "")


def _check_free(job: RunFolder) -> None:
    if job.process() not in (0, os.getpid()):
        raise DiagnosticError.of(
            "sweep-runs",
            tr("the sweep {name} is running already", name=job.name),
            file=str(job.path),
            remedy=tr("stop it first"),
        )


def _report(job: RunFolder, state: Written, message: str = "") -> None:
    status = Status(state, os.getpid(), message=message, time=time.time())
    write_atomic(job.path / "status.json", msgspec.json.encode(status))


@contextlib.contextmanager
def _stopped_by_command(job: RunFolder) -> Iterator[None]:
    """Interrupt the main thread, as Ctrl+C does, when the file `control` says stop."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK):
            if mirror.command(job) == "stop":
                _thread.interrupt_main()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def main(folder: str) -> int:
    sweep = Sweep.read(Path(folder))
    try:
        conduct(sweep, unfinished(sweep), read_place(sweep), lambda trial, state, message: None)
    except KeyboardInterrupt:
        return 130
    except DiagnosticError:
        return 1  # it is in the status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
