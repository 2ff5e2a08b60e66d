"""Hardware counters of an NVIDIA GPU through `ncu` (Nsight Compute), where it is installed and allowed.

The program runs a second time under `ncu`, with one NVTX range for each layer. Its times are not latencies (kernels are
replayed), so only percentages are taken, weighted by the kernels' durations.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from designer.profiling.figures import Figure, measured, unavailable

RANGE = "lw:"  # before a layer's name in NVTX ranges
TIME = "gpu__time_duration.sum"
LIMIT = 300  # seconds that ncu may take
TITLES = {"tensor_cores": "Tensor Core cycles", "memory": "DRAM throughput", "occupancy": "active warps"}


@dataclass(frozen=True)
class Counters:
    """Utilization by layer in percent, or `reason`: why there is none."""

    layers: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)
    reason: str = ""


def metrics(capability: tuple[int, int]) -> dict[str, str]:
    """ncu's metric for each kind of utilization on chips of this compute capability."""
    tensor = "sm__pipe_tensor_cycles_active_v2" if capability == (8, 9) else "sm__pipe_tensor_cycles_active"
    return {
        "tensor_cores": f"{tensor}.avg.pct_of_peak_sustained_active",
        "memory": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    }


def read_counters(command: Sequence[str], capability: tuple[int, int], ncu: str | None = None) -> Counters:
    """Run `command` under ncu. It must profile between cudaProfilerStart and Stop, in ranges named `lw:<layer>`."""
    tool = ncu or shutil.which("ncu")
    if tool is None:
        return Counters(reason="hardware counters need ncu (NVIDIA Nsight Compute), which is not installed")
    wanted = metrics(capability)
    options = [
        "--csv",
        "--page=raw",
        "--nvtx",
        "--print-nvtx-rename=kernel",
        "--profile-from-start=off",
        "--clock-control=none",
        "--cache-control=none",
        "--replay-mode=kernel",
        f"--metrics={','.join([TIME, *wanted.values()])}",
    ]
    try:
        done = subprocess.run(
            [tool, *options, *command], capture_output=True, text=True, timeout=LIMIT, check=False, env=dict(os.environ)
        )
    except subprocess.TimeoutExpired:
        return Counters(reason=f"ncu did not end within {LIMIT} s")
    except OSError as error:
        return Counters(reason=f"ncu could not be started: {error.strerror or error}")
    output = done.stdout + done.stderr
    if "ERR_NVGPUCTRPERM" in output:
        return Counters(reason="reading hardware counters needs rights that this account lacks (ERR_NVGPUCTRPERM)")
    if done.returncode != 0:
        last = next((line for line in reversed(output.splitlines()) if line.strip()), "no message")
        return Counters(reason=f"ncu ended with status {done.returncode}: {last.strip()[:200]}")
    return parse(done.stdout, wanted)


def parse(text: str, wanted: Mapping[str, str]) -> Counters:
    """Percentages by layer from ncu's raw page as CSV; a metric that is not there is unavailable, not zero."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return Counters(reason="ncu wrote no table")
    rows = list(csv.DictReader(lines[start:]))
    weights: dict[str, float] = {}
    sums: dict[str, dict[str, float]] = {}
    for row in rows:
        name = (row.get("Kernel Name") or "").strip()
        span = _number(row.get(TIME))
        if not name.startswith(RANGE) or span is None:
            continue
        layer = name.removeprefix(RANGE)
        weights[layer] = weights.get(layer, 0.0) + span
        kinds = sums.setdefault(layer, {})
        for kind, metric in wanted.items():
            value = _number(row.get(metric))
            if value is not None:
                kinds[kind] = kinds.get(kind, 0.0) + span * value
    if not weights:
        return Counters(reason="ncu reported no kernel under a layer's name")
    return Counters({layer: _figures(sums[layer], span, wanted) for layer, span in weights.items() if span > 0})


def _figures(sums: Mapping[str, float], span: float, wanted: Mapping[str, str]) -> dict[str, Figure]:
    return {
        kind: measured(sums[kind] / span, "%", f"{TITLES[kind]} by hardware counters (ncu), weighted by kernel time")
        if kind in sums
        else unavailable("%", f"ncu has no value of {metric} on this chip")
        for kind, metric in wanted.items()
    }


def _number(text: str | None) -> float | None:
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None
