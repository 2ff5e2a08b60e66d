"""Which engine, precision and device go together on this machine, and why the others do not. Knows neither Qt nor torch."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import metadata, util
from pathlib import Path
from typing import NamedTuple

from app.ui.widgets.texts import mark, tr, tr_data


class Choice(NamedTuple):
    """One value of a setting: its text for people, and the reason why it cannot be chosen now (empty: it can)."""

    value: str
    title: str
    reason: str = ""


ENGINE_TITLES = {"onnxruntime": "ONNX Runtime", "torch": "PyTorch"}
PRECISION_TITLES = {"fp32": mark("FP32 (single)"), "fp16": mark("FP16 (half)"), "bf16": mark("BF16 (brain float)")}
LAYOUT_TITLES = {"nchw": mark("NCHW (planes)"), "nhwc": mark("NHWC (channels last)")}


@lru_cache(maxsize=1)
def cuda_devices() -> tuple[int, str]:
    """How many CUDA devices torch could use here, and the reason where it is none."""
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return 0, mark("PyTorch is not installed")
    if version.endswith("+cpu"):
        return 0, mark("the installed PyTorch is built for the CPU only")
    cards = Path("/proc/driver/nvidia/gpus")
    count = len(os.listdir(cards)) if cards.is_dir() else 0
    return count, "" if count else mark("no NVIDIA card or driver was found")


def engines() -> tuple[Choice, ...]:
    modules = {"onnxruntime": "onnxruntime", "torch": "torch"}
    return tuple(
        Choice(value, title, "" if util.find_spec(modules[value]) else tr("it is not installed"))
        for value, title in ENGINE_TITLES.items()
    )


def devices(engine: str) -> tuple[Choice, ...]:
    count, reason = cuda_devices()
    why = tr_data(reason)
    if engine != "torch":
        why = tr("ONNX Runtime is installed for the CPU only; choose PyTorch")
    cards = tuple(Choice(f"cuda:{i}", tr("CUDA device {number}", number=i), why) for i in range(max(count, 1)))
    return (Choice("cpu", "CPU"), *cards)


def precisions(engine: str, device: str) -> tuple[Choice, ...]:
    why = ""
    if engine != "torch" or not device.startswith("cuda"):
        why = tr("needs PyTorch on a CUDA device; on a CPU it would only be slower")
    return tuple(Choice(v, tr_data(title), "" if v == "fp32" else why) for v, title in PRECISION_TITLES.items())


def tiles(present: int) -> tuple[Choice, ...]:
    """Sides of tiles, `present` among them where the file has another."""
    sides = sorted({256, 512, 1024, 2048, *([present] if present > 0 else [])})
    return (
        Choice("-1", tr("where memory asks for it")),
        Choice("0", tr("never")),
        *(Choice(str(side), tr("{side} x {side} pixels", side=side)) for side in sides),
    )


def layouts() -> tuple[Choice, ...]:
    return tuple(Choice(value, tr_data(title)) for value, title in LAYOUT_TITLES.items())
