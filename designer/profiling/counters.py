"""Hardware counters of an NVIDIA GPU through `ncu` (Nsight Compute), if it is installed and permitted.

The network runs again in another process under `ncu`, with one NVTX range per layer. Kernels are replayed there, so its times are
not latencies: only percentages are used. Operators with several kernels are measured again as a whole (range
replay); if that fails, their kernels are averaged by duration.
"""

from __future__ import annotations

import csv
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from designer.profiling.quantities import Quantity, measured, unavailable

RANGE = "lw"  # NVTX ranges are called lw0, lw1, ... by the number of the layer
DURATION = "gpu__time_duration.sum"
LIMIT = 300  # seconds for one run of ncu

TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
TENSOR_V2 = "sm__pipe_tensor_cycles_active_v2.avg.pct_of_peak_sustained_active"
DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"

_USUAL = {"tensor_core": TENSOR, "memory_throughput": DRAM, "occupancy": WARPS}
_ADA = {**_USUAL, "tensor_core": TENSOR_V2}
_SHARED_MEMORY = {"tensor_core": TENSOR, "occupancy": WARPS}  # the memory belongs to the CPU: no DRAM counters
METRICS: Mapping[tuple[int, int], Mapping[str, str]] = {
    (7, 0): _USUAL,  # V100
    (7, 5): _USUAL,  # T4, RTX 20
    (8, 0): _USUAL,  # A100
    (8, 6): _USUAL,  # RTX 30, A10
    (8, 7): _SHARED_MEMORY,  # Orin
    (8, 9): _ADA,  # RTX 40, L4, L40
    (9, 0): _USUAL,  # H100, H200
    (10, 0): _USUAL,  # B200
    (10, 3): _USUAL,  # B300
    (11, 0): _SHARED_MEMORY,  # Thor
    (12, 0): _USUAL,  # RTX 50
    (12, 1): _SHARED_MEMORY,  # DGX Spark
}
"""ncu's metric of each utilization by compute capability. `tests/profiling/test_counter_metrics.py` checks the names with
NVIDIA's library."""

NO_NCU = (
    "ncu was not found; install NVIDIA Nsight Compute and add it to PATH (https://developer.nvidia.com/nsight-compute)"
)
NO_PERMISSION = (
    "the driver permits hardware counters to administrators only (ERR_NVGPUCTRPERM); run as administrator, or follow "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)


@dataclass(frozen=True)
class KernelCounters:
    """Metrics of one kernel, or of a whole range, under an NVTX range."""

    range: str
    metrics: Mapping[str, float]
    whole_range: bool = False


@dataclass(frozen=True)
class CounterResult:
    """Utilization in percent by layer; or `reason`: why there is none and what to do."""

    layers: Mapping[str, Mapping[str, Quantity]] = field(default_factory=dict)
    reason: str = ""


class CountersError(Exception):
    """Counters cannot be read; the message is the reason with the remedy."""


def read_counters(
    command: Sequence[str], layers: Sequence[str], capability: tuple[int, int], ncu: str | None = None
) -> CounterResult:
    """Run `command` under ncu. It must profile between cudaProfilerStart and Stop, with range `lw<n>` for `layers[n]`."""
    try:
        names = metric_names(capability)
        tool = ncu or shutil.which("ncu")
        if tool is None:
            raise CountersError(NO_NCU)
        with tempfile.TemporaryDirectory(prefix="layerwright-counters-") as folder:
            collect = _Collector(tool, Path(folder), command, names)
            kernels = collect("kernel", ())
            several = _several_kernels(kernels)
            if several:
                with suppress(CountersError):  # a range with a call that cannot be replayed: its kernels are averaged
                    kernels += collect("range", several)
    except CountersError as error:
        return CounterResult(reason=str(error))
    return layer_utilization(kernels, layers, names)


def metric_names(capability: tuple[int, int]) -> Mapping[str, str]:
    """ncu's metric for each utilization. Raises CountersError for an unknown chip."""
    if capability not in METRICS:
        known = ", ".join(f"{major}.{minor}" for major, minor in METRICS)
        raise CountersError(
            f"the counters of compute capability {capability[0]}.{capability[1]} are not known; this version knows {known}"
        )
    return METRICS[capability]


class _Collector:
    """Runs ncu and reads its report."""

    def __init__(self, tool: str, folder: Path, command: Sequence[str], names: Mapping[str, str]) -> None:
        self._tool = tool
        self._folder = folder
        self._command = command
        self._wanted = [DURATION, *names.values()]

    def __call__(self, replay: str, ranges: Iterable[str]) -> list[KernelCounters]:
        """Counters in kernel replay, or in range replay of the NVTX ranges `ranges`."""
        report = self._folder / f"{replay}.ncu-rep"
        options = [
            "--nvtx",
            "--profile-from-start=off",
            "--clock-control=none",
            "--cache-control=none",
            f"--replay-mode={replay}",
            *(f"--nvtx-include={name}/" for name in ranges),
            f"--metrics={','.join(self._wanted)}",
            "--force-overwrite",
            f"--export={report}",
        ]
        output = self._run([*options, *self._command])
        if not report.is_file():
            raise CountersError(f"ncu wrote no report: {last_line(output)}")
        module = report_module(Path(self._tool))
        if module is not None:
            return kernels_of(module.load_report(str(report)), self._wanted, whole_range=replay == "range")
        table = self._run([f"--import={report}", "--csv", "--page=raw", "--print-nvtx-rename=kernel"])
        return kernels_of_table(table, self._wanted, whole_range=replay == "range")

    def _run(self, arguments: Sequence[str]) -> str:
        try:
            done = subprocess.run([self._tool, *arguments], capture_output=True, text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            raise CountersError(f"ncu did not finish within {LIMIT} s; use a smaller image") from None
        except OSError as error:
            raise CountersError(f"ncu could not be started: {error.strerror or error}") from None
        output = done.stdout + done.stderr
        if "ERR_NVGPUCTRPERM" in output:
            raise CountersError(NO_PERMISSION)
        if done.returncode != 0:
            raise CountersError(f"ncu ended with status {done.returncode}: {last_line(output)}")
        return done.stdout


def last_line(output: str) -> str:
    return next((line.strip()[:200] for line in reversed(output.splitlines()) if line.strip()), "it printed nothing")


def report_module(tool: Path) -> Any | None:
    """The module `ncu_report`: installed as a package, or as a part of Nsight Compute; None without both."""
    if importlib.util.find_spec("ncu_report") is None:
        folder = tool.resolve().parent / "extras" / "python"
        if not (folder / "ncu_report.py").is_file():
            return None
        sys.path.append(str(folder))
    import ncu_report

    return ncu_report


def kernels_of(report: Any, wanted: Sequence[str], *, whole_range: bool = False) -> list[KernelCounters]:
    """The counters in a report that `ncu_report.load_report` returned."""
    found = []
    for number in range(report.num_ranges()):
        actions = report.range_by_idx(number)
        for index in range(actions.num_actions()):
            action = actions.action_by_idx(index)
            name = _range_of(action.nvtx_state())
            if name is not None:
                found.append(KernelCounters(name, _values(action.metric_by_name, wanted), whole_range))
    return found


def _range_of(state: Any) -> str | None:
    """Our NVTX range in the state of an action."""
    for domain in state.domains() if state is not None else ():
        for name in state.domain_by_id(domain).push_pop_ranges():
            if is_range(name):
                return str(name)
    return None


def is_range(name: str) -> bool:
    return name.startswith(RANGE) and name.removeprefix(RANGE).isdigit()


def _values(metric_by_name: Callable[[str], Any], wanted: Sequence[str]) -> dict[str, float]:
    found = {}
    for name in wanted:
        metric = metric_by_name(name)
        if metric is not None and metric.has_value() and isfinite(value := float(metric.as_double())):
            found[name] = value
    return found


def kernels_of_table(text: str, wanted: Sequence[str], *, whole_range: bool = False) -> list[KernelCounters]:
    """The counters in ncu's raw page as CSV, in which kernels have the names of their NVTX ranges."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    found = []
    for row in csv.DictReader(lines[start:]):
        name = (row.get("Kernel Name") or "").strip()
        if is_range(name):
            values = {key: number for key in wanted if (number := _number(row.get(key))) is not None}
            found.append(KernelCounters(name, values, whole_range))
    return found


def _number(text: str | None) -> float | None:
    """A finite number; None for an empty cell, "n/a" and "nan", which ncu writes where a counter has no value."""
    try:
        number = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return number if isfinite(number) else None


def _several_kernels(kernels: Iterable[KernelCounters]) -> list[str]:
    """The ranges with more than one kernel."""
    names = [kernel.range for kernel in kernels]
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def layer_utilization(
    kernels: Sequence[KernelCounters], layers: Sequence[str], names: Mapping[str, str]
) -> CounterResult:
    """Utilization by layer. A range measured as a whole replaces its kernels; otherwise kernels are averaged by duration."""
    by_layer: dict[str, list[KernelCounters]] = {}
    for kernel in kernels:
        number = int(kernel.range.removeprefix(RANGE))
        if number < len(layers):
            by_layer.setdefault(layers[number], []).append(kernel)
    if not by_layer:
        return CounterResult(reason="ncu reported no kernel in the range of a layer")
    return CounterResult({layer: _utilization(found, names) for layer, found in by_layer.items()})


def _utilization(kernels: Sequence[KernelCounters], names: Mapping[str, str]) -> dict[str, Quantity]:
    whole = [kernel for kernel in kernels if kernel.whole_range]
    used = whole or kernels
    method = "range replay" if whole else "kernel replay" + (", mean by duration" if len(kernels) > 1 else "")
    found = {}
    for key in ("tensor_core", "memory_throughput", "occupancy"):
        metric = names.get(key)
        if metric is None:
            found[key] = unavailable("this chip has no such counter")
            continue
        parts = [(k.metrics[metric], k.metrics.get(DURATION, 0.0)) for k in used if metric in k.metrics]
        total = sum(duration for _, duration in parts)
        if parts and len(parts) == 1:
            found[key] = measured(parts[0][0], f"{metric} (ncu, {method})")
        elif parts and total > 0:
            mean = sum(value * duration for value, duration in parts) / total
            found[key] = measured(mean, f"{metric} (ncu, {method})")
        else:
            found[key] = unavailable(f"ncu has no value of {metric} here")
    return found
