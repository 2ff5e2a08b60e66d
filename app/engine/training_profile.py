"""Times a training step of the exported PyTorch project: data loading, forward and backward pass, and optimizer.

The project is written to a temporary folder and runs unchanged in another process, in which its functions are wrapped by clocks.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from app.process import module_command
from designer.files.agreements import not_agreed
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.types import Size2D
from designer.operators.deploy import deploy
from designer.operators.registry import Registry
from designer.profiling.cost import cost_table
from designer.profiling.measure import machine_peaks, run_peaks, sized
from designer.profiling.schema import Profile, RunPeaks, TrainingStep, Verdict
from designer.runtime.api import RunOptions
from designer.runtime.machine import threads
from designer.texts import tr
from designer.units import duration, percent
from exporters.pytorch.project import export_project

PHASES = ("data", "forward", "backward", "optimizer")
INPUT_BOUND = 0.3  # share of the step in which data is loaded
WAITING = 0.3  # share of the step in no phase
BACKWARD = 2  # work of the backward pass over that of the forward pass
WARMUP = 3
LIMIT = 300  # seconds


def profile_training(
    graph: Graph, registry: Registry, options: RunOptions, *, batch: int = 16, patch: int = 64, steps: int = 10
) -> TrainingStep:
    """Time `steps` training steps with synthetic images. Raises DiagnosticError if the project cannot be exported or trained."""
    hidden = not_agreed(graph, registry, options.agreed)
    if hidden:
        message = tr("training runs the code of custom layers, which you have not allowed yet")
        raise DiagnosticError(Diagnostic("not-agreed", message, remedy=tr("read the code and allow it first")))
    with tempfile.TemporaryDirectory(prefix="layerwright-training-") as folder:
        project = Path(folder) / "project"
        export_project(graph, registry, project, "Network")
        given = [str(project), f"--steps={steps}", f"--batch={batch}", f"--patch={patch}", f"--device={options.device}"]
        command = module_command("app.engine.training_profile", *given, f"--threads={threads(options)}")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            raise _failed(tr("{steps} steps took longer than {LIMIT} s", steps=steps, LIMIT=LIMIT)) from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise _failed(lines[-1][:300] if lines else tr("it ended with status {status}", status=done.returncode))
    times: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    inference = sized(deploy(graph, registry), registry, Size2D(patch, patch))
    return training_step(times, batch, *_roofs(inference, batch, run_peaks(machine_peaks(options))))


def with_training_step(profile: Profile, graph: Graph, registry: Registry, options: RunOptions) -> Profile:
    """The profile with a measured training step in its first run. Raises as `profile_training`."""
    step = profile_training(graph, registry, options)
    return replace(profile, runs=(replace(profile.runs[0], training=step), *profile.runs[1:]))


def training_step(times: dict[str, float], batch: int, compute_ms: float, memory_ms: float) -> TrainingStep:
    """The step from the medians of its phases in ms. `compute_ms` and `memory_ms` are times at the two roofs."""
    step_ms = times["step"]
    waiting_ms = max(0.0, step_ms - sum(times[phase] for phase in PHASES))
    verdict, reason = _verdict(times, step_ms, waiting_ms, compute_ms, memory_ms)
    return TrainingStep(
        batch,
        step_ms,
        times["forward"],
        times["backward"],
        times["optimizer"],
        times["data"],
        waiting_ms,
        verdict,
        reason,
    )


def _verdict(
    times: dict[str, float], step_ms: float, waiting_ms: float, compute_ms: float, memory_ms: float
) -> tuple[Verdict, str]:
    if times["data"] >= INPUT_BOUND * step_ms:
        return "input", tr("loading data takes {part} of the step", part=percent(times["data"] / step_ms))
    if waiting_ms >= WAITING * step_ms:
        return "waiting", tr(
            "{part} of the step is in no phase: Python and launches", part=percent(waiting_ms / step_ms)
        )
    roofs = tr("operations at the peak take {c}, bytes {m}", c=duration(compute_ms), m=duration(memory_ms))
    return ("compute" if compute_ms >= memory_ms else "memory"), roofs


def _roofs(inference: Inference, batch: int, peaks: RunPeaks) -> tuple[float, float]:
    """Times in ms of the forward and backward pass at the compute peak and at the bandwidth of the memory."""
    total = cost_table(inference, batch=batch).total()
    passes = 1 + BACKWARD
    rate, bandwidth = peaks.flops_per_s.value, peaks.memory_bytes_per_s.value
    moved = total.bytes_read + total.bytes_written
    return (passes * total.flops / rate * 1e3 if rate else 0.0), (
        passes * moved / bandwidth * 1e3 if bandwidth else 0.0
    )


def _failed(reason: str) -> DiagnosticError:
    message = tr("the exported project cannot be trained: {reason}", reason=reason)
    return DiagnosticError(
        Diagnostic("training-failed", message, remedy=tr("export the project and run train.py to see more"))
    )


# --- in the other process ----------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Train the project in a folder for some steps; prints the median time of each phase in ms as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path)
    for name in ("steps", "batch", "patch", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args(arguments)
    sys.path.insert(0, str(given.project))
    import config  # type: ignore[import-not-found]  # of the project
    import processes  # type: ignore[import-not-found]
    import torch
    import train  # type: ignore[import-not-found]

    options = [f"--{name}={getattr(given, name)}" for name in ("batch", "patch", "device", "threads")]
    options += [f"--steps={given.steps + WARMUP}", "--synthetic=2", "--json-progress", f"--output={given.project}"]
    command = config.parse(options, "")
    settings = command.config()
    try:
        run = train.Run(settings, train.Records(as_json=True), processes.open_processes(settings))
        run.objective.train()
        print(json.dumps(_timed(run, torch, given.steps)))
        run.samples.close()
    except train.TrainingError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _timed(run: Any, torch: Any, steps: int) -> dict[str, float]:
    times: dict[str, list[float]] = {}

    def clocked(phase: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            _synchronize(run, torch)
            began = perf_counter()
            result = work(*given, **named)
            _synchronize(run, torch)
            times.setdefault(phase, []).append((perf_counter() - began) * 1e3)
            return result

        return timed

    run.load = clocked("data", run.load)
    run.losses = clocked("forward", run.losses)
    torch.Tensor.backward = clocked("backward", torch.Tensor.backward)
    run.scaler.step = clocked("optimizer", run.scaler.step)
    step = clocked("step", run.train_step)
    for _ in range(steps + WARMUP):
        step()
    return {phase: median(found[WARMUP:]) for phase, found in times.items()}


def _synchronize(run: Any, torch: Any) -> None:
    if run.device.type == "cuda":
        torch.cuda.synchronize(run.device)


if __name__ == "__main__":
    sys.exit(main())
