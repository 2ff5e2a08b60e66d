"""Names and measured peaks of a CUDA device, with torch alone."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from typing import Any

from designer.profiling.peaks import Peaks, now
from designer.profiling.quantities import Quantity, measured, unavailable
from designer.runtime.engines.torch_timing import new_event

PRECISION_PEAK = {"fp32": "fp32", "fp16": "fp16", "bf16": "bf16"}


def gpu_versions(device: str) -> tuple[str, dict[str, str]]:
    """The chip's name, and the versions of CUDA, cuDNN and the driver."""
    import torch

    name = torch.cuda.get_device_name(torch.device(device))
    major, minor = torch.cuda.get_device_capability(torch.device(device))
    found = {"cuda": torch.version.cuda or "", "compute capability": f"{major}.{minor}"}
    cudnn: Any = torch.backends.cudnn
    if cudnn.version():
        found["cudnn"] = str(cudnn.version())
    driver = nvidia_smi("driver_version", gpu_id(device))
    return name, found | ({"driver": driver} if driver else {})


def free_gpu_memory(device: str) -> int:
    """Free bytes of the memory of a GPU."""
    import torch

    return int(torch.cuda.mem_get_info(torch.device(device))[0])


def gpu_id(device: str) -> str:
    """The UUID of a CUDA device, by which tools of the driver name a GPU whatever `CUDA_VISIBLE_DEVICES` says; its number where torch has none."""
    import torch

    try:
        found = getattr(torch.cuda.get_device_properties(torch.device(device)), "uuid", None)
    except (AssertionError, RuntimeError):  # no CUDA here
        found = None
    return f"GPU-{found}" if found is not None else device.partition(":")[2] or "0"


def nvidia_smi(field: str, gpu: str = "0") -> str:
    """One field of a GPU (see `gpu_id`) as nvidia-smi reports it, or empty."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    try:
        done = subprocess.run(
            [tool, f"--query-gpu={field}", "--format=csv,noheader,nounits", f"--id={gpu}"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip().splitlines()[0].strip() if done.stdout.strip() else ""


def gpu_key(device: str, precision: str) -> str:
    """Under which peaks of this device are kept."""
    name, versions = gpu_versions(device)
    import torch

    return f"{name} | {precision} | driver {versions.get('driver', '?')} | torch {torch.__version__}"


def measure_gpu(device: str, precision: str, *, size: int = 8192, copy_bytes: int = 2**30) -> Peaks:
    """Measure matrix products in FP32, TF32, FP16 and BF16 and copies, each the best of several runs with CUDA events."""
    import torch

    where = torch.device(device)
    foreign = _foreign(gpu_id(device))
    peaks: dict[str, Quantity] = {}
    for name, dtype, tf32 in (
        ("fp32", torch.float32, False),
        ("tf32", torch.float32, True),
        ("fp16", torch.float16, False),
        ("bf16", torch.bfloat16, False),
    ):
        peaks[name] = _matmul_peak(where, dtype, tf32, size)
    properties = torch.cuda.get_device_properties(where)
    cache_bytes = int(getattr(properties, "L2_cache_size", 0))
    memory = _copy(where, copy_bytes)
    cache = (
        _copy(where, cache_bytes // 4, repeat=50)
        if cache_bytes
        else unavailable("the size of the L2 cache is not known")
    )
    others = {name: figure for name, figure in peaks.items() if name != PRECISION_PEAK[precision]}
    return Peaks(
        peaks[PRECISION_PEAK[precision]], cache, memory, cache_bytes, foreign, now(), "torch", precision, 0, others
    )


def _matmul_peak(where: Any, dtype: Any, tf32: bool, size: int) -> Quantity:
    import torch

    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        a = torch.randn(size, size, device=where, dtype=dtype)
        b = torch.randn(size, size, device=where, dtype=dtype)
        out = torch.empty(size, size, device=where, dtype=dtype)
        seconds = best_seconds(lambda: torch.mm(a, b, out=out), 5)
    except RuntimeError as error:
        return unavailable(f"the matrix product failed: {str(error).splitlines()[0][:120]}")
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    kind = "TF32" if tf32 else str(dtype).removeprefix("torch.")
    return measured(2.0 * size**3 / seconds, f"{size} x {size} matrix product, {kind}")


def _copy(where: Any, total: int, repeat: int = 3) -> Quantity:
    import torch

    half = max(total // 2 // 4, 1024)
    source = torch.ones(half, device=where)
    target = torch.empty_like(source)
    seconds = best_seconds(lambda: target.copy_(source), 10, repeat)
    return measured(8.0 * half / seconds, f"copy of {total >> 20} MiB, read and written")


def best_seconds(work: Callable[[], object], runs: int, repeat: int = 1) -> float:
    """Seconds of one call of `work`, the best of `runs` measurements of `repeat` calls each, by CUDA events."""
    import torch

    work()
    torch.cuda.synchronize()
    best = float("inf")
    for _ in range(runs):
        start, end = new_event(), new_event()
        start.record()
        for _ in range(repeat):
            work()
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end) * 1e-3 / repeat)
    return max(best, 1e-9)


def _foreign(gpu: str) -> Quantity:
    """How busy the GPU was just before the calibration, by nvidia-smi."""
    text = nvidia_smi("utilization.gpu", gpu)
    if not text.isdigit():
        return unavailable("nvidia-smi did not report how busy the GPU was")
    return measured(float(text), "use of the GPU before the calibration")
