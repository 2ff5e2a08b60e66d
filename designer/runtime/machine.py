"""Properties of this machine: cores, free memory and valid options."""

from __future__ import annotations

import os

from designer.graph.diagnostics import DiagnosticError
from designer.runtime.api import LAYOUTS, PRECISIONS, RunOptions
from designer.texts import tr


def physical_cores() -> int:
    """Physical cores that this process can use, at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        import psutil

        physical = psutil.cpu_count(logical=False) or allowed
    except (ImportError, OSError):
        physical = allowed
    return max(1, min(allowed, physical))


def free_memory() -> int:
    """Bytes that this process can still allocate: the free memory, within the limit of the process."""
    found = 8 << 30
    try:
        import psutil

        found = int(psutil.virtual_memory().available)
        used = int(psutil.Process().memory_info().vms)
    except (ImportError, OSError):
        used = 0
    try:
        import resource
    except ImportError:  # not on Windows
        return found
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return found if limit == resource.RLIM_INFINITY else max(0, min(found, limit - used))


def threads(options: RunOptions) -> int:
    """The number of threads to use: the option, or all cores."""
    return options.threads if options.threads > 0 else physical_cores()


def check_options(options: RunOptions) -> None:
    """Raise DiagnosticError for invalid options."""
    for name, value, known in (
        ("precision", options.precision, PRECISIONS),
        ("layout", options.layout, LAYOUTS),
    ):
        if value not in known:
            raise DiagnosticError.of(
                f"unknown-{name}",
                tr("'{value}' is not a {name}", value=value, name=name),
                remedy=tr("choose one of {known}", known=", ".join(known)),
            )
    if options.threads < 0:
        raise DiagnosticError.of(
            "bad-threads",
            tr("{threads} is not a valid number of threads", threads=options.threads),
            remedy=tr("use 0 for all cores"),
        )
