"""`make gpu-check`: is the network right and how fast is it on this machine's GPU?

Runs on any Python that has torch and numpy; nothing else is needed and nothing is installed. It runs the sample denoiser
in FP32 NCHW and FP16 NHWC, compares both with the processor, times every layer with CUDA events, measures the chip's
peaks, and writes a record that the window opens.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

try:
    import numpy as np
    from numpy.typing import NDArray
except ModuleNotFoundError:
    print("gpu-check: this Python lacks numpy: use one that has torch and numpy (make gpu-check PYTHON=...)")
    sys.exit(2)

from app.engine.counted_run import count
from designer.files.weights import Weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.registry import Registry
from designer.profiling.measure import Measurement, machine_of, measure, measure_peaks
from designer.profiling.network_part import whole_part
from designer.profiling.profile_files import save_profile
from designer.profiling.quantities import Quantity, measured, text
from designer.profiling.schema import UTILIZATION, Profile, ProfileRun, mean_utilization
from designer.runtime.api import RunOptions
from designer.runtime.engines.pytorch import TORCH
from designer.units import duration

ROOT = Path(__file__).resolve().parents[2]
Array = NDArray[np.float32]

# How far a result may be from the processor's in fp32; outputs are images of values about 0 to 1.
TOLERANCE = {"fp32": 1e-3, "fp16": 3e-2}
VARIANTS = {"cuda": (("fp32", "nchw"), ("fp16", "nhwc")), "cpu": (("fp32", "nchw"), ("fp32", "nhwc"))}
SEED = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 right, 1 a result is wrong, 2 it could not be run."""
    options = _arguments(arguments)
    try:
        return check(options)
    except ImportError as error:
        print(
            f"gpu-check: this Python lacks {error.name}: use one that has torch and numpy (make gpu-check PYTHON=...)"
        )
    except DiagnosticError as error:
        for diagnostic in error.diagnostics:
            print(f"gpu-check: {diagnostic}")
    return 2


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m app.checks.gpu_check", description=__doc__)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: a dry run without a GPU")
    parser.add_argument("--document", type=Path, default=ROOT / "samples" / "denoiser.xml")
    parser.add_argument("--weights", type=Path, default=None, help="default: the sample's, else seeded random")
    parser.add_argument("--size", type=int, default=None, help="height and width of the picture; default 1024, cpu 128")
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "records", help="folder for the record")
    return parser.parse_args(arguments)


def check(options: argparse.Namespace) -> int:
    """Do the whole check; DiagnosticError when it cannot be done."""
    import torch

    from designer.operators.registry import load

    if options.device == "cuda" and not torch.cuda.is_available():
        raise DiagnosticError(
            Diagnostic(
                "no-gpu",
                f"torch {torch.__version__} finds no CUDA device",
                remedy="run on a machine with an NVIDIA GPU, or try it dry with --device cpu --out DIR",
            )
        )
    registry = load(entry_points=False)
    size = options.size or (1024 if options.device == "cuda" else 128)
    inference = _network(options.document, registry, size)
    weights = _weights(options, inference)
    feeds = _inputs(inference)
    expected = _outputs(inference, weights, RunOptions(engine=TORCH.name), feeds)
    runs: list[ProfileRun] = []
    wrong = False
    for precision, layout in VARIANTS[options.device]:
        run = RunOptions(engine=TORCH.name, precision=precision, layout=layout, device=options.device)
        found = _outputs(inference, weights, run, feeds)
        checks, ok = compare(expected, found, TOLERANCE[precision])
        wrong = wrong or not ok
        measurement = Measurement(
            inference,
            weights,
            run,
            feeds,
            iterations=options.iterations,
            warmup=5,
            peaks=measure_peaks(run),  # not from the cache: the profile contains the peaks that were measured with it
            counters=count,
            checks=checks,
        )
        profile = measure([[measurement]])
        runs += profile.runs
        _show(profile, profile.runs[0], ok)
    profile = Profile(machine_of(run), inference.graph.name, tuple(runs))
    chip = slug(profile.machine.gpu) if options.device == "cuda" else "cpu"
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"gpu-{chip}-{datetime.now(UTC).date().isoformat()}.json"
    save_profile(path, profile)
    print(f"wrote {path}")
    return 1 if wrong else 0


def slug(name: str) -> str:
    """A chip's name for a file: "NVIDIA GeForce RTX 4090" is `geforce-rtx-4090`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower().replace("nvidia", "")).strip("-") or "unknown"


def _network(document: Path, registry: Registry, size: int) -> Inference:
    """The deployed network of a document with inputs of `size` x `size`."""
    from designer.files.document import parse_document
    from designer.graph.commands import set_params
    from designer.graph.types import Size3D
    from designer.operators.deploy import deploy

    try:
        data = document.read_bytes()
    except OSError as error:
        raise DiagnosticError(
            Diagnostic("cannot-read", f"it cannot be read: {error.strerror}", file=str(document), remedy="name another")
        ) from None
    reading = parse_document(data, str(document), validate=False)
    if reading.graph is None:
        raise DiagnosticError(reading.diagnostics)
    graph = deploy(reading.graph, registry)
    for layer in list(graph):
        if layer.type == "input":
            channels = Size3D.parse(layer.params.get("dims", "256x256x3")).channels
            graph.apply(set_params(graph, {layer.name: {"dims": str(Size3D(size, size, channels))}}))
    return Inference(graph, registry)


def _weights(options: argparse.Namespace, inference: Inference) -> Weights:
    from designer.files.weights import fill_missing, load_weights, required_weights

    needed = required_weights(inference)
    path = options.weights or ROOT / "samples" / "weights" / options.document.stem
    if options.weights is not None or path.is_dir():
        found = load_weights(path, needed)
        return found if found.complete else fill_missing(found, needed, SEED)
    return fill_missing(Weights(source="none"), needed, SEED)


def _inputs(inference: Inference) -> dict[str, Array]:
    """Seeded values 0..1 for every input, at its size."""
    rng = np.random.default_rng(SEED)
    feeds = {}
    for name in whole_part(inference)[2]:
        outputs = inference.states[name].outputs
        assert outputs is not None
        feeds[name] = rng.random(outputs[0].concrete(1), np.float32)
    return feeds


def _outputs(
    inference: Inference, weights: Weights, options: RunOptions, feeds: Mapping[str, Array]
) -> dict[str, Array]:
    from designer.profiling.network_part import whole_part
    from designer.runtime.engines.torch_engine import TorchEngine

    part, wanted, _ = whole_part(inference)
    compiled = TorchEngine(inference, weights, options).compile(part, wanted)
    made = compiled.run({Source(name): array for name, array in feeds.items()})
    return {str(source): np.asarray(array, np.float32) for source, array in made.items()}


def compare(
    expected: Mapping[str, Array], found: Mapping[str, Array], limit: float
) -> tuple[dict[str, Quantity], bool]:
    """The largest difference by output, and whether all stay within `limit`. What is not finite is wrong."""
    checks: dict[str, Quantity] = {}
    ok = True
    for name, array in expected.items():
        other = found[name]
        finite = bool(np.isfinite(other).all())
        difference = float(np.abs(np.nan_to_num(other) - array).max())
        scale = max(1.0, float(np.abs(array).max()))
        good = finite and difference <= limit * scale
        ok = ok and good
        reason = f"largest difference from the processor in fp32; allowed {limit * scale:.3g}"
        checks[f"difference {name}"] = measured(difference, reason if finite else f"{reason}; not all are finite")
    return checks, ok


def _show(profile: Profile, run: ProfileRun, ok: bool) -> None:
    print(f"\n{profile.title(run)}")
    print(f"  result {'equals' if ok else 'DIFFERS FROM'} the processor's: " + _list(run.checks))
    print(f"  whole network {duration(run.time_ms or 0.0)}, sum of the rows {duration(run.rows_ms)}")
    for key, found in mean_utilization(run.operators).items():
        print(f"  {UTILIZATION[key]}: {text(found, '%')} ({found.source.value}: {found.reason})")
    if run.peaks is not None:
        named = {"compute": run.peaks.flops_per_s, **run.peaks.others}
        print("  peaks: " + ", ".join(f"{name} {text(found, 'FLOP/s')}" for name, found in named.items()))
        print(f"  memory: {text(run.peaks.memory_bytes_per_s, 'B/s')}")
    for note in run.notes:
        print(f"  note: {note}")
    for row in run.by_saving()[:5]:
        print(f"  {duration(row.time_ms):>10}  {row.name} ({row.summary}), {row.bound} bound")


def _list(checks: Mapping[str, Quantity]) -> str:
    return ", ".join(f"{name} {found.value:.2e}" for name, found in checks.items() if found.value is not None)


if __name__ == "__main__":
    sys.exit(main())
