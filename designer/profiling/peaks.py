"""What this machine can do at most: operations a second and bytes a second, measured, never taken from a data sheet.

Memory has two roofs: the last-level cache and DRAM. Other programs' use of the processor is measured around the
calibration; a peak taken on a busy machine says so and is not kept for later.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from designer.profiling.quantities import Quantity, measured, unavailable
from designer.runtime.engine_registry import default_engines

BUSY_PERCENT = 5.0
CACHE_GUESS = 16 * 2**20
LARGEST = 512 * 2**20  # bytes of a copy in main memory, or twice the cache where that is more
LONGEST = 3.0  # seconds after which a busy machine is not measured again


@dataclass(frozen=True)
class Peaks:
    """Measured peaks. `cache_bytes` is the size of the last-level cache, 0 if its roof is not known.

    `others` holds further compute peaks by name, for instance "tf32"; `foreign` is other programs' share of all cores.
    """

    compute: Quantity  # FLOP/s
    cache: Quantity  # B/s, read and written
    memory: Quantity  # B/s, read and written
    cache_bytes: int
    foreign: Quantity  # %
    date: str
    engine: str
    precision: str
    threads: int
    others: Mapping[str, Quantity] = field(default_factory=dict)
    launch: Quantity = field(default=unavailable("the overhead of a launch was not measured"))  # ms

    @property
    def busy(self) -> bool:
        """Whether other programs took part of the machine while the peaks were measured."""
        return self.foreign.value is not None and self.foreign.value > BUSY_PERCENT

    @property
    def note(self) -> str:
        if self.busy and self.foreign.value is not None:
            return f"peak measured on a busy machine: other programs used {self.foreign.value:.0f} % of the cores"
        return "" if self.foreign.value is not None else f"load of other programs unknown: {self.foreign.reason}"


def best_rate(work: Callable[[], object], amount: float, *, seconds: float, least: int = 3) -> float:
    """`amount` per second of the fastest call of `work` within about `seconds`, after one call to warm up."""
    work()
    best = float("inf")
    end = time.perf_counter() + seconds
    runs = 0
    while runs < least or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
        runs += 1
    return amount / max(best, 1e-9)


def measure_cpu(engine: str, threads: int, *, seconds: float = 0.25, size: int = 1024, tries: int = 3) -> Peaks:
    """Measure this processor with the kernels of `engine` on `threads` threads; about 4 x `seconds`, longer with a large cache.

    On a busy machine it is measured up to `tries` times within `LONGEST`, and the best counts: a peak can only be under-measured.
    """
    end = time.perf_counter() + LONGEST
    threads = threads or os.cpu_count() or 1
    before = busy_times()
    cache_bytes = last_level_cache()
    small = max((cache_bytes or CACHE_GUESS) // 4, 2**20)
    large = max(min(4 * (cache_bytes or CACHE_GUESS), LARGEST), 2 * cache_bytes, 64 * 2**20)
    flops = cache = memory = 0.0
    what = ""
    for _ in range(tries):
        began = busy_times()
        rate, kind = _compute_peak(engine, threads, seconds, size)
        if rate > flops:
            flops, what = rate, kind
        cache = max(cache, copy_rate(small, threads, seconds))
        memory = max(memory, copy_rate(large, threads, seconds))
        if (foreign_load(began).value or 0.0) <= BUSY_PERCENT or time.perf_counter() > end:
            break
    reason = "" if cache_bytes else f"size of the cache unknown, {CACHE_GUESS >> 20} MiB assumed"
    return Peaks(
        measured(flops, what),
        measured(cache, reason or f"copy of {small >> 20} MiB in the last-level cache"),
        measured(memory, f"copy of {large >> 20} MiB in main memory"),
        cache_bytes or CACHE_GUESS,
        foreign_load(before),
        now(),
        engine,
        "fp32",
        threads,
    )


def _compute_peak(engine: str, threads: int, seconds: float, size: int) -> tuple[float, str]:
    """The fastest of the engine's kernels: libraries differ in which of them they do best."""
    rates = {}
    for name, make in default_engines().get(engine).kernels.items():
        work, flops = make(threads, size)
        rates[name] = best_rate(work, flops, seconds=seconds / 2)
    best = max(rates, key=lambda n: rates[n])
    return rates[best], f"{best} in {engine}, fp32, {threads} threads"


def copy_rate(total: int, threads: int, seconds: float) -> float:
    """Bytes read plus written per second while `threads` threads copy buffers of `total` bytes altogether."""
    part = max(total // (2 * threads) // 4, 1024)
    pairs = [(np.ones(part, np.float32), np.zeros(part, np.float32)) for _ in range(threads)]
    repeat = max(1, (4 * 2**20) // (8 * part))  # long enough that starting the threads does not count

    def copy(pair: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]) -> None:
        for _ in range(repeat):
            np.copyto(pair[1], pair[0])

    if threads == 1:
        return best_rate(lambda: copy(pairs[0]), 8.0 * part * repeat, seconds=seconds)
    with ThreadPoolExecutor(threads) as pool:
        return best_rate(lambda: list(pool.map(copy, pairs)), 8.0 * part * repeat * threads, seconds=seconds)


def last_level_cache() -> int:
    """Bytes of the largest cache of processor 0, or 0 where the system does not report it."""
    found = 0
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        scale = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:], 1)
        number = text.rstrip("KMG")
        found = max(found, int(number) * scale if number.isdigit() else 0)
    return found


def now() -> str:
    """The time in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).replace(microsecond=0).isoformat()


# --- other programs --------------------------------------------------------------------------------------------


def busy_times() -> tuple[float, float, float] | None:
    """(busy core-seconds of the whole machine, core-seconds of this process, clock), or None where unknown."""
    own = os.times()
    mine = own.user + own.system
    if sys.platform == "linux":
        try:
            fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
            ticks = [int(f) for f in fields]
        except (OSError, ValueError):
            return None
        # user, nice, system, irq, softirq, steal; idle (3) and iowait (4) are free time
        busy = sum(ticks[i] for i in (0, 1, 2, 5, 6, 7) if i < len(ticks))
        return busy / os.sysconf("SC_CLK_TCK"), mine, time.perf_counter()
    try:
        import psutil
    except ImportError:
        return None
    times = psutil.cpu_times()
    return float(times.user + times.system), mine, time.perf_counter()


def foreign_load(before: tuple[float, float, float] | None) -> Quantity:
    """Other programs' share of all cores since `before` (a value of `busy_times`)."""
    after = busy_times()
    if before is None or after is None:
        return unavailable("this system does not report how busy it is")
    span = after[2] - before[2]
    cores = os.cpu_count() or 1
    if span < 0.05:
        return unavailable("the calibration was too short to see other programs")
    foreign = (after[0] - before[0]) - (after[1] - before[1])
    return measured(max(0.0, 100.0 * foreign / (span * cores)), "processor time of other programs")


# --- kept per machine ------------------------------------------------------------------------------------------


def default_store() -> Path:
    """The file that keeps peaks: in the user's cache folder, also where platformdirs is not installed."""
    try:
        from platformdirs import user_cache_path
    except ImportError:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "layerwright" / "peaks.json"
    return user_cache_path("layerwright") / "peaks.json"


def cached(key: str, measure: Callable[[], Peaks], store: Path | None = None) -> Peaks:
    """The peaks kept under `key`, else those of `measure`, kept unless the machine was busy."""
    known = kept(key, store)
    if known is not None:
        return known
    found = measure()
    keep(key, found, store)
    return found


def kept(key: str, store: Path | None = None) -> Peaks | None:
    """The peaks kept under `key`. A broken store is ignored."""
    return _peaks(load_store(store or default_store()).get(key))


def keep(key: str, peaks: Peaks, store: Path | None = None) -> None:
    """Keep peaks for later, unless the machine was busy when they were measured."""
    if not peaks.busy:
        save_store(store or default_store(), key, peaks)


def _peaks(data: object) -> Peaks | None:
    """Peaks from plain data; None for anything else, and where msgspec is not installed (make gpu-check)."""
    try:
        import msgspec

        return msgspec.convert(data, Peaks)
    except (ImportError, ValueError):
        return None


def load_store(path: Path) -> dict[str, Any]:
    """The content of a store; empty if it is missing or broken."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def save_store(path: Path, key: str, record: Any) -> None:
    """Add a dataclass to a store of what was measured. A store that cannot be written is ignored: it is measured again."""
    content = {**load_store(path), key: asdict(record)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        temporary.write_text(json.dumps(content, indent=1))
        temporary.replace(path)
    except OSError:
        pass
