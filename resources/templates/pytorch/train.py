"""Train the network.

    python train.py DATA_OPTIONS --epochs 100
    python train.py --resume                        continues the last run exactly; --epochs 300 extends it
    torchrun --nproc-per-node 2 train.py ...        two processes share the batch

A run is a folder (runs/001, ...) with config.json, metrics.jsonl, checkpoints/, validation/, weights/ (one .npy file per
tensor, for the designer), weights.pt (a state dict) and plots. Weights and plots of numbered runs are also written here.
"""

from __future__ import annotations

import math
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import data
from checkpoints import restore, save_checkpoint
from config import HERE, Command, Config, parse
from images import WORKERS, DataError, Steps, loader
from monitor import Monitor
from objective import COMPARED, Objective, ObjectiveError, place
from optimization import learning_rate, make_optimizer, moving_average
from processes import DeviceError, Processes, open_processes
from records import Records
from storage import StorageError, adopt, apply_masks, read_file, sparse_masks
from validation import Validation


class TrainingError(Exception):
    """Training cannot continue; the message says why and what to do."""


ERRORS = (TrainingError, DataError, DeviceError, ObjectiveError, StorageError, OSError)


class Run:
    """A training run: data, network, optimizer and current step."""

    def __init__(
        self, config: Config, records: Records, processes: Processes, saved: dict[str, Any] | None = None
    ) -> None:
        self.config, self.records, self.processes, self.device = config, records, processes, processes.device
        self.samples, shown, on_training = data.open_data(config, HERE / "cache")
        self.validation = Validation(shown, on_training, config)
        self.epoch_steps = data.epoch_steps(self.samples, config)
        self.steps = config.steps or config.epochs * self.epoch_steps
        torch.manual_seed(config.seed)
        cuda = self.device.type == "cuda"
        half = torch.float16 if cuda else torch.bfloat16
        self.objective = Objective(amp_dtype=half if config.amp else None)
        self.objective.to(device=self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.network = self.objective.network
        self.parameters = [parameter for parameter in self.objective.parameters() if parameter.requires_grad]
        if not self.parameters:
            raise TrainingError("the network has no trainable weights; add a layer with weights, or unfreeze one")
        self.adopted = adopt(self.network, Path(config.from_weights)) if config.from_weights and not saved else None
        self.masks = sparse_masks(self.network) if config.sparse_2_4 and not saved else {}
        self.average = moving_average(config, self.network)
        self.optimizer = make_optimizer(config, self.parameters)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=config.amp and cuda)
        self.step, self.elapsed = 0, 0.0
        self.monitor: Monitor | None = None
        if saved is not None:
            restore(self, saved)
        self.forward: Any = torch.compile(self.objective) if config.compile else self.objective
        if processes.count > 1:
            self.forward = torch.nn.parallel.DistributedDataParallel(self.forward)
        self.samples.prepare(self.step * config.batch)
        numbers = Steps(self.step, self.steps, config.batch, processes.rank, processes.count)
        workers = config.workers if config.workers >= 0 else WORKERS if cuda else 1
        self.batches = iter(loader(self.samples, numbers, workers, cuda))
        self._unread: list[dict[str, torch.Tensor]] = []

    def save(self, best: bool) -> None:
        """Write the weights and a checkpoint for --resume; `best`: also the best weights."""
        if not self.processes.rank:
            save_checkpoint(self, best)
            self.records.event("checkpoint", step=self.step, path=str(self.records.folder / "checkpoints" / "last.pt"))

    def load(self) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
        """Inputs and targets of the next step, on the device."""
        self.samples.prepare(self.step * self.config.batch)
        return place(next(self.batches), self.device)

    def losses(self, inputs: tuple[torch.Tensor, ...], targets: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
        """Forward pass. Raises TrainingError if data and network do not fit."""
        try:
            losses: dict[str, torch.Tensor] = self.forward(inputs, targets)[1]
        except IndexError as error:
            raise TrainingError(f"a target is not valid for its loss: {error}; change sample() in data.py") from error
        except ValueError as error:  # of losses.py
            raise TrainingError(str(error)) from error
        except RuntimeError as error:
            if "memory" in str(error):
                raise TrainingError(f"{error}; use a smaller --batch or --patch") from error
            shapes = ", ".join(" x ".join(map(str, tensor.shape)) for tensor in inputs)
            raise TrainingError(f"the network cannot take {shapes}: {error}") from error
        if not any(loss.requires_grad for loss in losses.values()):
            raise TrainingError(f"{COMPARED} does not depend on trainable weights; connect it to a layer with weights")
        return losses

    def train_step(self) -> None:
        """Run one optimizer step."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.config, self.step, self.steps)
        losses = self.losses(*self.load())
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(torch.stack([*losses.values()]).sum()).backward()  # type: ignore[no-untyped-call, unused-ignore]
        self.step += 1
        self.scaler.unscale_(self.optimizer)
        if self.monitor is not None:
            self.monitor.after_backward(self.step, self.network)
        if self.config.clip:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.config.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.masks:
            apply_masks(self.network, self.masks)
        if self.average is not None:
            self.average.update_parameters(self.network)
        if self.monitor is not None:
            self.monitor.after_step(self.step, self.network, self.optimizer)
        self._unread.append({name: loss.detach() for name, loss in losses.items()})

    def read_losses(self) -> list[dict[str, float]]:
        """The losses of the steps since the last call. Raises TrainingError if one is not finite."""
        names = list(self._unread[0])
        values = self.processes.mean(torch.stack([torch.stack([*losses.values()]) for losses in self._unread]).float())
        rows = [dict(zip(names, row, strict=True)) for row in values.tolist()]
        self._unread.clear()
        for step, row in enumerate(rows, self.step - len(rows) + 1):
            wrong = [name for name, value in row.items() if not math.isfinite(value)]
            if wrong:
                raise TrainingError(
                    f"the loss ({', '.join(wrong)}) is NaN or infinite at step {step}; use a smaller --lr"
                )
        return rows

    def validate(self) -> tuple[dict[str, float], bool, bool]:
        """The values of a validation, whether it is the best so far, and whether to stop early."""
        if self.processes.rank:
            best, early = self.processes.agree(False, False)
            return {}, best, early
        objective = self.objective
        if self.average is not None:
            objective = Objective(self.average.module, objective.loss, objective.amp_dtype)
        metrics, losses = self.validation.run(objective, self.device, self.records.folder, self.step)
        if losses:
            shown = {"losses": losses, "on_training": self.validation.on_training}
            self.records.event("validation", step=self.step, **metrics, **shown)
        best, early = self.processes.agree(*self.validation.judge(metrics, losses))
        return {**metrics, **({"loss": sum(losses.values())} if losses else {})}, best, early

    def train(self, signals: list[int]) -> bool:
        """Train to the end or until a stop is requested; returns whether the end was reached."""
        if self.config.monitor and not self.records.quiet:
            self.monitor = Monitor(
                self.records.folder,
                self.network,
                total_steps=self.steps,
                key_every=self.config.validate_every,
                first=self.step,
                stop_on=self.config.stop_on.split(","),
                activations=not self.config.compile,
            )
        self.objective.train()
        began = time.monotonic()
        while self.step < self.steps:
            self.train_step()
            due = self.step % self.config.validate_every == 0 or self.step == self.steps
            began += self.records.wait(signals)
            seconds = time.monotonic() - began
            stop = bool(signals) or self.records.stopped
            read, stop = self.processes.agree(due or self.records.due(self.step, seconds), stop)
            if not read and not stop:
                continue
            rows = self.read_losses()
            self.elapsed += seconds
            values, best, early = self.validate() if due else ({}, False, False)
            rates = [learning_rate(self.config, step, self.steps) for step in range(self.step - len(rows), self.step)]
            self.records.report(self.step, rows, seconds, self.elapsed, rates, values)
            if due or stop:
                self.records.note_skipped(self.samples.broken_names())
                self.save(best)
            if early or stop:
                return early
            began = time.monotonic()
        return True


def train(command: Command, records: Records, signals: list[int]) -> int:
    """Train as the command line says; returns the exit status."""
    saved = read_file(records.folder / "checkpoints" / "last.pt") if command.resume else None
    config = command.config(saved["config"] if saved else None)
    processes = open_processes(config)
    records.quiet = processes.rank > 0
    run = Run(config, records, processes, saved)
    photos, synthetic = run.samples.counts()
    details = {"parameters": sum(parameter.numel() for parameter in run.parameters), "device": str(run.device)}
    details |= {"pictures": photos, "made_up": synthetic, "held_out": [name for name, *_ in run.validation.shown]}
    if run.adopted is not None:
        details["adopted"] = str(run.adopted)
    try:
        if run.step > run.steps:
            raise TrainingError(f"the run has trained {run.step} steps already; give more than {run.steps} --steps")
        records.begin(config, run.step, run.steps, run.epoch_steps, details, on_training=run.validation.on_training)
        records.note_skipped(run.samples.broken_names())
        ended = run.train(signals)
    finally:
        run.samples.close()
        processes.end()
    records.write_plots()
    if ended:
        records.end("finished", "done", f"weights are in {records.results[-1] / 'weights'}")
        return 0
    again = f'python train.py --resume --run "{records.folder}"'
    records.end("stopped", "stopped", f"stopped at step {run.step} of {run.steps}; continue with: {again}")
    return 130


def main(argv: Sequence[str] | None = None) -> int:
    command = parse(argv, __doc__ or "")
    signals: list[int] = []
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda received, frame: signals.append(received))
    records = Records(command.json_progress)
    try:
        records.open(command)
        return train(command, records, signals)
    except ERRORS as error:
        records.fail(_last_line(error))
        return 1


def _last_line(error: Exception) -> str:
    """The message; that of a process that loads data is below its traceback."""
    text = str(error).strip()
    return text.splitlines()[-1].partition(": ")[2] if "Original Traceback" in text else text


if __name__ == "__main__":
    sys.exit(main())
