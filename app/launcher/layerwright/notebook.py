"""Look at a live torch module from a notebook or script. The window runs in another process; this one never imports Qt."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def show(module: torch.nn.Module, *inputs: torch.Tensor) -> subprocess.Popen[bytes]:
    """Open the window on `module`, traced with example inputs; returns its process without waiting for it.

    The module is traced here, where it lives; its trace and weights are passed on as an exported program. Raises what
    `torch.export` raises for a module that cannot be traced.
    """
    from torch.export import export, save

    from layerwright import rooms

    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program: Any = export(module, inputs, strict=False)
    finally:
        for part, training in modes.items():
            part.training = training  # parts can have other modes, such as frozen normalizations
    folder = Path(tempfile.mkdtemp(prefix="layerwright-show-"))
    path = folder / f"{type(module).__name__}.pt2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(program, path)
    return subprocess.Popen([sys.executable, "-P", str(rooms() / "app" / "process.py"), "app.show_program", str(path)])
