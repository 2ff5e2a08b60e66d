"""The folder of a run: settings, metrics and state in files for other programs, and progress for the user.

config.json     settings, versions, and the hash of model.py
metrics.jsonl   one JSON object per line: first {"schema": 1, "total_steps": N, "task": ..., "on_training": ...}, then one per logged
                step; "on_training": validation uses training images
status.json     state (running, paused, stopped, finished, failed), process, step
control         written by others: pause, resume or stop
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from config import HERE, PROJECT, Command, Config
from storage import StorageError, save_atomically

FILES = ("checkpoints", "config.json", "control", "health.jsonl", "metrics.jsonl", "status.json", "trail", "validation")
RESULTS = ("before_after.png", "curves.png", "events.out.tfevents.*", "weights", "weights.pt")
MOST_LINES = 10_000  # of metrics.jsonl; longer runs log the means of several steps
BETWEEN_READS = 0.25  # seconds: reading a loss waits for the device
BETWEEN_STATES = 1.0  # seconds


def open_folder(command: Command) -> Path:
    """The folder of the run of a command line. Raises StorageError if there is nothing to resume, or a run in the way."""
    runs = HERE / "runs"
    folder = Path(command.run or command.output)
    if command.resume:
        if command.run or command.output:
            return folder
        known = sorted(runs.glob("*/checkpoints/last.pt"), key=lambda path: path.stat().st_mtime)
        if not known:
            raise StorageError(f"there is no checkpoint in {runs}; start without --resume")
        return known[-1].parents[1]
    if os.environ.get("RANK", "0") != "0":  # the first process of torchrun prepares the folder, the others do not write
        return folder
    if command.output:
        for name in FILES:
            remove(folder / name)
        return folder
    if command.run:
        if (folder / "metrics.jsonl").exists() or (folder / "checkpoints").exists():
            raise StorageError(f"{folder} contains a run; use --resume to continue it, or another folder")
        return folder
    taken = [int(path.name) for path in runs.glob("*") if re.fullmatch(r"\d{1,6}", path.name)]
    return runs / f"{max(taken, default=0) + 1:03}"


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def versions() -> dict[str, str]:
    """Versions of what computes, and the hash of model.py."""
    content = (HERE / "model.py").read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # as git computes it
    return {"python": platform.python_version(), "torch": str(torch.__version__), "model.py": blob}


class Records:
    """Writes the files of a run, and prints progress: a bar, or one JSON object per line for programs.

    With `quiet` it does nothing: only the first of several processes reports.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.quiet = False
        self.stopped = False  # by the file `control`
        self.folder = HERE
        self.results: tuple[Path, ...] = ()
        self._replaces = False
        self._total = self._step = self._skipped = self._control = 0
        self._epoch_steps = self._batch = self._log_every = 1
        self._stated = -BETWEEN_STATES
        self._bar: Any = None
        self._board: Any = None

    def open(self, command: Command) -> None:
        """Choose the folder of the run. Weights and plots of numbered runs are also written to the project."""
        self.folder = open_folder(command)
        numbered = self.folder.parent == HERE / "runs" and not command.run
        self.results = (self.folder, HERE) if numbered else (self.folder,)
        self._replaces = bool(command.output) and not command.resume

    def begin(
        self,
        config: Config,
        step: int,
        total: int,
        epoch_steps: int,
        details: Mapping[str, Any],
        *,
        on_training: bool = False,
    ) -> None:
        """Begin a run, or continue one at `step`: later metrics and validation images of the interrupted run are removed.

        `on_training`: validation uses training images.
        """
        self._step, self._total, self._epoch_steps, self._batch = step, total, epoch_steps, config.batch
        self._log_every = max(1, total // MOST_LINES)
        if self.quiet:
            return
        (self.folder / "control").unlink(missing_ok=True)
        for path in (path for name in RESULTS for path in self.folder.glob(name)) if self._replaces else ():
            remove(path)  # only now, because a run can start from the weights of the one that it replaces
        for path in (self.folder / "validation").glob("step_*"):
            number = path.name.removeprefix("step_")
            if number.isdecimal() and int(number) > step:
                remove(path)
        settings = asdict(config)
        about = {"task": PROJECT["task"], "settings": settings, "seed": config.seed, "versions": versions(), **details}
        self._replace("config.json", json.dumps(about, indent=2))
        first = {"schema": 1, "total_steps": total, "task": PROJECT["task"], "on_training": on_training}
        header = json.dumps(first)
        self._replace("metrics.jsonl", "\n".join([header, *self._lines_up_to(step)]) + "\n")
        if config.tensorboard and find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(self.folder), purge_step=step + 1)
        self._state("running")
        self.event("start", step=step, steps=total, recipe=settings, **details)

    def _lines_up_to(self, step: int) -> list[str]:
        path = self.folder / "metrics.jsonl"
        if not step or not path.exists():
            return []
        lines = path.read_text("utf-8").splitlines()[1:]
        return [line for line in lines if line.endswith("}") and json.loads(line)["step"] <= step]

    def _replace(self, name: str, text: str, *, durable: bool = True) -> None:
        save_atomically(self.folder / name, lambda file: file.write(text.encode()), durable=durable)

    def due(self, step: int, seconds: float) -> bool:
        """Whether to read the losses, which were read `seconds` ago."""
        return seconds > BETWEEN_READS and step % self._log_every == 0

    def report(
        self,
        step: int,
        rows: list[dict[str, float]],
        seconds: float,
        elapsed: float,
        rates: Sequence[float],
        validation: Mapping[str, float],
    ) -> None:
        """Log the losses and learning rates of the last steps, which took `seconds`. `elapsed` is all time of training."""
        self._step = step
        if self.quiet:
            return
        speed = len(rows) / max(seconds, 1e-9)
        common = {"throughput": round(speed * self._batch, 2), "memory": memory()}
        entries: list[dict[str, Any]] = []
        for start in range(0, len(rows), self._log_every):
            part = rows[start : start + self._log_every]
            number = step - len(rows) + start + len(part)
            losses = {name: sum(row[name] for row in part) / len(part) for name in part[0]}
            when = {"step": number, "epoch": (number - 1) // self._epoch_steps + 1, "time": time.time()}
            spent = {
                "elapsed": round(elapsed - (step - number) / speed, 3),
                "loss": sum(losses.values()),
                "losses": losses,
                "learning_rate": rates[start + len(part) - 1],
            }
            entries.append({**when, **spent, **common})
        if validation:
            entries[-1]["validation"] = dict(validation)
        with (self.folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(entry) + "\n" for entry in entries))
        for entry in entries if self._board is not None else ():
            for name in ("loss", "learning_rate", "throughput"):
                self._board.add_scalar(name, entry[name], entry["step"])
            for name, value in entry.get("validation", {}).items():
                self._board.add_scalar(f"validation/{name}", value, entry["step"])
        self._state("running")
        last = entries[-1]
        self.event("step", step=step, steps=self._total, loss=last["loss"], losses=last["losses"], lr=last["learning_rate"],
                   seconds=round(elapsed, 2), steps_per_second=round(speed, 3))  # fmt: skip

    def note_skipped(self, names: Sequence[str]) -> None:
        """Report files that could not be read, when there are more of them than before."""
        if len(names) > self._skipped:
            self._skipped = len(names)
            shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            self.event("note", message=f"skipped {len(names)} that cannot be read: {shown}", skipped=len(names))

    def wait(self, signals: Sequence[int]) -> float:
        """Obey the file `control`: wait while it says "pause"; returns the seconds of the pause."""
        if self.quiet or self._command() != "pause":
            return 0.0
        began = time.monotonic()
        self._state("paused")
        while not signals and not self.stopped and self._command() not in ("resume", "stop"):
            time.sleep(0.05)
        self._state("running", "resumed")
        return time.monotonic() - began

    def _command(self) -> str:
        """A new command in the file `control`, or ""."""
        path = self.folder / "control"
        try:
            changed = path.stat().st_mtime_ns
            if changed == self._control:
                return ""
            self._control = changed
            command = path.read_text("utf-8").strip()
        except (OSError, ValueError):
            return ""
        self.stopped = self.stopped or command == "stop"
        return command

    def _state(self, state: str, message: str = "") -> None:
        """Write the state; while running, at most once a second."""
        now = time.monotonic()
        if state == "running" and not message and now - self._stated < BETWEEN_STATES:
            return
        self._stated = now
        status = {"state": state, "pid": os.getpid(), "step": self._step, "total_steps": self._total}
        text = json.dumps({**status, "message": message, "time": time.time()})
        self._replace("status.json", text, durable=state != "running")  # which is soon written again

    def event(self, event: str, **values: Any) -> None:
        """Show an event on the terminal."""
        if self.quiet:
            return
        if self.as_json:
            print(json.dumps({"event": event, **values}), flush=True)
        elif event == "start":
            self._bar = tqdm(total=values["steps"], initial=values["step"], unit="step", dynamic_ncols=True)
        elif event == "step" and self._bar is not None:
            self._bar.update(values["step"] - self._bar.n)
            parts = {name: f"{value:.4f}" for name, value in values["losses"].items() if len(values["losses"]) > 1}
            self._bar.set_postfix(loss=f"{values['loss']:.4f}", **parts, lr=f"{values['lr']:.1e}")
        elif event == "validation":
            tqdm.write(f"step {values['step']}: {', '.join(_results(values))}")
        elif "message" in values:
            tqdm.write(values["message"])

    def write_plots(self) -> None:
        """Write curves.png, and before_after.png of a validation image."""
        import plots

        for folder in self.results if not self.quiet else ():
            plots.curves(self.folder, folder / "curves.png")
            plots.before_after(self.folder, folder / "before_after.png")

    def end(self, state: str, event: str, message: str) -> None:
        """Report the end of a run that did not fail."""
        if self._bar is not None:
            self._bar.close()
        if self._board is not None:
            self._board.close()
        if not self.quiet:
            self._state(state, message)
        self.event(
            event, step=self._step, steps=self._total, message=message, weights=str(self.results[-1] / "weights")
        )

    def fail(self, message: str) -> None:
        """Report that the run failed."""
        if self.quiet:
            return
        if self._bar is not None:
            self._bar.close()
        if self._total:
            with suppress(OSError):  # such as a full disk, which was the reason
                self._state("failed", message)
        if self.as_json:
            print(json.dumps({"event": "error", "message": message}), flush=True)
        print(f"error: {message}", file=sys.stderr)


def memory() -> int:
    """The most memory that the process needed, on the GPU if it uses one, in bytes."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call, unused-ignore]
        return torch.cuda.max_memory_allocated()
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _results(values: Mapping[str, Any]) -> list[str]:
    """A validation as words."""
    shown = [f"{name} {value:.4f}" for name, value in values["losses"].items()]
    for name, value in reversed(list(values.items())):
        if name == "psnr":
            noisy = f" (noisy {values['noisy_psnr']:.2f} dB)" if "noisy_psnr" in values else ""
            shown.insert(0, f"PSNR {value:.2f} dB{noisy}")
        elif name not in ("step", "losses", "on_training", "noisy_psnr"):
            shown.insert(0, f"{name} {value:.4f}")
    return shown
