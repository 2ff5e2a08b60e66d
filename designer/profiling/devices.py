"""Machines from their data sheets: peak operations and bandwidth, with the source. None of these values is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TERA, GIGA, MEBI = 1e12, 1e9, 2**20


@dataclass(frozen=True)
class DataSheet:
    """Dense peaks without sparsity: FLOP/s by precision, bytes per second of the memory, and size of the last-level cache."""

    name: str
    kind: str  # "gpu" or "cpu"
    flops_per_s: Mapping[str, float]
    memory_bytes_per_s: float
    cache_bytes: int
    source: str


def _gpu(name: str, fp32: float, half: float, gigabytes: float, cache: int, source: str) -> DataSheet:
    peaks = {"fp32": fp32 * TERA, "fp16": half * TERA, "bf16": half * TERA}
    return DataSheet(name, "gpu", peaks, gigabytes * GIGA, cache * MEBI, source)


def _cpu(name: str, cores: int, ghz: float, per_cycle: int, gigabytes: float, cache: int, source: str) -> DataSheet:
    peaks = {"fp32": cores * ghz * GIGA * per_cycle}
    return DataSheet(name, "cpu", peaks, gigabytes * GIGA, cache * MEBI, source)


_NVIDIA = "https://www.nvidia.com/en-us/data-center"
_IMAGES = "https://images.nvidia.com/aem-dam/Solutions/geforce"
DEVICES: tuple[DataSheet, ...] = (
    DataSheet(
        "T4",
        "gpu",
        {"fp32": 8.1 * TERA, "fp16": 65 * TERA},
        320 * GIGA,
        4 * MEBI,
        f"{_NVIDIA}/tesla-t4/ (data sheet)",
    ),
    _gpu("RTX 4090", 82.6, 165.2, 1008, 72, f"{_IMAGES}/ada/nvidia-ada-gpu-architecture.pdf (appendix A)"),
    _gpu(
        "RTX 5090",
        104.8,
        209.5,
        1792,
        96,
        f"{_IMAGES}/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf (appendix A)",
    ),
    _gpu("A100", 19.5, 312, 2039, 40, f"{_NVIDIA}/a100/ (80 GB SXM)"),
    _gpu("H100", 67, 989.5, 3350, 50, f"{_NVIDIA}/h100/ (SXM, half of the values with sparsity)"),
    _gpu("H200", 67, 989.5, 4800, 50, f"{_NVIDIA}/h200/ (SXM, half of the values with sparsity)"),
    _gpu("B200", 75, 2250, 8000, 126, f"{_NVIDIA}/hgx/ (HGX B200 over 8, half of the values with sparsity)"),
    DataSheet(
        "Jetson AGX Orin",
        "gpu",
        {"fp32": 5.3 * TERA, "fp16": 42.5 * TERA},
        204.8 * GIGA,
        4 * MEBI,
        "https://www.nvidia.com/content/dam/en-zz/Solutions/gtcf21/jetson-orin/nvidia-jetson-agx-orin-technical-brief.pdf",
    ),
    # CPUs: cores x base clock x FLOP per cycle (two FMA units of 8 or 16 numbers)
    _cpu(
        "EPYC 9654", 96, 2.4, 32, 460.8, 384, "https://www.amd.com/en/products/processors/server/epyc/9004-series.html"
    ),
    _cpu("Xeon Platinum 8480+", 56, 2.0, 64, 307.2, 105, "https://ark.intel.com (Xeon Platinum 8480+)"),
    _cpu(
        "Ryzen 9 7950X",
        16,
        4.5,
        32,
        83.2,
        64,
        "https://www.amd.com/en/products/processors/desktops/ryzen/7000-series.html",
    ),
)


def device_named(name: str) -> DataSheet | None:
    """The data sheet of a machine, by any case and without spaces: `rtx4090`."""
    wanted = name.lower().replace(" ", "")
    return next((sheet for sheet in DEVICES if sheet.name.lower().replace(" ", "") == wanted), None)
