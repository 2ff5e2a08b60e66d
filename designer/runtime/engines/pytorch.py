"""PyTorch as an engine: every operator, on the CPU and on CUDA devices."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from designer.runtime.engine_api import Device, EngineDescriptor, requires
from designer.runtime.engines.kernels import CONV_CHANNELS
from designer.runtime.engines.torch_engine import TorchEngine
from designer.runtime.engines.torch_timing import TorchTimer
from designer.texts import tr

# Operators with a kernel that gives 0 for a query with NaN.
DROP_NAN = frozenset({"scaled_dot_product_attention", "multi_head_attention", "transformer_encoder_layer"})


@lru_cache(maxsize=1)
def cuda_devices() -> tuple[int, str]:
    """The number of CUDA devices that torch can use, and the reason if that is 0; without importing torch."""
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return 0, tr("PyTorch is not installed")
    if version.endswith("+cpu"):
        return 0, tr("the installed PyTorch supports only the CPU")
    cards = Path("/proc/driver/nvidia/gpus")
    count = len(os.listdir(cards)) if cards.is_dir() else 0
    return count, "" if count else tr("no NVIDIA GPU or driver was found")


def matrix_product(threads: int, size: int) -> tuple[Callable[[], object], float]:
    """A product of two `size` x `size` matrices."""
    import torch

    torch.set_num_threads(threads)
    a, b, out = torch.rand(size, size), torch.rand(size, size), torch.empty(size, size)
    return lambda: torch.mm(a, b, out=out), 2.0 * size**3


def convolution(threads: int, size: int) -> tuple[Callable[[], object], float]:
    """A 3x3 convolution, 64 to 64 channels on (size / 8)^2 pixels."""
    import torch

    torch.set_num_threads(threads)
    side, c = max(size // 8, 8), CONV_CHANNELS
    x = torch.rand(1, c, side, side).to(memory_format=torch.channels_last)
    w = torch.rand(c, c, 3, 3).to(memory_format=torch.channels_last)

    def run() -> object:
        with torch.inference_mode():
            return torch.nn.functional.conv2d(x, w, padding=1)

    return run, 2.0 * side * side * c * c * 9


TORCH = EngineDescriptor(
    name="torch",
    title="PyTorch",
    package="torch",
    engine=TorchEngine,
    step_timer=TorchTimer,
    kernels={"matrix product": matrix_product, "convolution": convolution},
    available=requires("torch", remedy="pip install torch"),
    devices=(Device("cpu"), Device("cuda", ("fp32", "fp16", "bf16"), cuda_devices)),
    layouts=("nchw", "nhwc"),
    skips_nan=DROP_NAN,
)
