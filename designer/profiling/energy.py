"""Energy counters of the device: NVML for NVIDIA GPUs, RAPL for Intel and AMD processors."""

from __future__ import annotations

from collections.abc import Callable
from importlib import util
from pathlib import Path

from designer.profiling.quantities import measured, modelled, unavailable
from designer.profiling.schema import Energy

RAPL = Path("/sys/class/powercap/intel-rapl:0")
LEAST_SECONDS = 0.2  # the counters are updated every 1 to 100 ms

ReadJoules = Callable[[], float]


def energy_counter(device: str, rapl: Path = RAPL) -> ReadJoules | str:
    """A function that returns the joules used since some moment, or the reason why there is none."""
    return _nvml(device) if device != "cpu" else _rapl(rapl)


def energy_of(joules: float, seconds: float, runs: int, flops: int) -> Energy:
    """Energy per run from `joules` that `runs` runs used in `seconds`."""
    if seconds < LEAST_SECONDS or joules <= 0:
        return no_energy(f"the runs took {seconds:.2g} s, too short for the energy counter")
    reason = f"{runs} runs in {seconds:.2g} s, with the idle power of the device"
    per_run = joules / runs
    return Energy(
        measured(per_run, reason), measured(joules / seconds, reason), modelled(flops / per_run, "FLOP per joule")
    )


def no_energy(reason: str) -> Energy:
    return Energy(unavailable(reason), unavailable(reason), unavailable(reason))


def _nvml(device: str) -> ReadJoules | str:
    if util.find_spec("pynvml") is None:
        return "nvidia-ml-py is not installed; install layerwright[nvidia]"
    import pynvml

    from designer.profiling.gpu import gpu_id

    gpu = gpu_id(device)
    try:
        pynvml.nvmlInit()
        by_index = gpu.isdigit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(int(gpu)) if by_index else pynvml.nvmlDeviceGetHandleByUUID(gpu)
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    except pynvml.NVMLError as error:
        return f"NVML cannot read the energy counter: {error}"
    return lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) * 1e-3


def _rapl(folder: Path) -> ReadJoules | str:
    counter, limit = folder / "energy_uj", folder / "max_energy_range_uj"
    try:
        previous, around = int(counter.read_text()), int(limit.read_text())
    except FileNotFoundError:
        return "this processor or system has no RAPL energy counter"
    except PermissionError:
        return f"only root can read the RAPL energy counter; run `sudo chmod a+r {counter}`"
    except (OSError, ValueError) as error:
        return f"the RAPL energy counter cannot be read: {error}"
    total = 0

    def read() -> float:
        nonlocal previous, total
        now = int(counter.read_text())
        total += (now - previous) % (around + 1)  # the counter wraps around
        previous = now
        return total * 1e-6

    return read
