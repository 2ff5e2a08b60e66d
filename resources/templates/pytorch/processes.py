"""The device, and the processes of torchrun that train together: gloo on CPUs, NCCL on GPUs."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from config import Config


class DeviceError(Exception):
    """The device cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Processes:
    """This process as one of `count`; number `rank` 0 reports and saves."""

    device: torch.device
    rank: int = 0
    count: int = 1

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """The mean of a tensor over all processes, on the CPU."""
        values = values.cpu()
        if self.count > 1:
            dist.all_reduce(values)
            values /= self.count
        return values

    def agree(self, *flags: bool) -> tuple[bool, ...]:
        """What the first process decided."""
        if self.count == 1:
            return flags
        decided = torch.tensor(flags, dtype=torch.uint8)
        dist.broadcast(decided, 0)
        return tuple(bool(flag) for flag in decided)

    def end(self) -> None:
        """Leave the group."""
        if self.count > 1:
            dist.destroy_process_group()


def open_processes(config: Config) -> Processes:
    """Choose the device, and join the other processes of torchrun. Raises DeviceError."""
    if config.threads:
        torch.set_num_threads(config.threads)
    try:
        device = torch.device(config.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        raise DeviceError(f"'{config.device}' is not a device; use cpu or cuda") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise DeviceError("no CUDA device is available; use --device cpu")
    rank, count = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if device.type == "cpu":
        keep_freed_memory()
    if count == 1:
        return Processes(device)
    if config.batch % count:
        raise DeviceError(f"--batch {config.batch} cannot be shared by {count} processes; use a multiple of {count}")
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=timedelta(days=30))  # a run can be paused for long
    return Processes(device, rank, count)


def keep_freed_memory() -> None:
    """Let glibc keep freed memory for the next step. To return it to the system and get it again, page by page, took a fifth of a step."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(-4, 0)  # M_MMAP_MAX: large tensors are on the heap,
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: which does not shrink
