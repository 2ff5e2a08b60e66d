"""The machine and the software that a record was made on."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from designer.runtime.provenance import versions


@dataclass(frozen=True)
class Machine:
    """`versions` holds python, the engines, and driver and cuda where there is a GPU."""

    cpu: str
    cores: int
    gpu: str = ""
    system: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.cores < 0:
            raise ValueError("a machine has 0 cores or more")

    def device(self, options: Mapping[str, str]) -> str:
        """The name of the chip that a run with `options` used."""
        return self.gpu if options.get("device", "cpu") != "cpu" and self.gpu else self.cpu


def this_machine(*, gpu: str = "", extra: Mapping[str, str] | None = None) -> Machine:
    """This machine; packages' versions are read without importing them."""
    return Machine(
        cpu_name(),
        os.cpu_count() or 1,
        gpu,
        f"{platform.system()} {platform.release()}",
        versions() | dict(extra or {}),
    )


def cpu_name() -> str:
    """The processor's name as the system reports it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown processor"
