"""Refuses pipes, sockets and devices, which can block a reader forever."""

from __future__ import annotations

import stat
from pathlib import Path

from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_regular(path: Path) -> None:
    """Raise DiagnosticError for a pipe, a socket or a device. Readers report missing files and folders."""
    try:
        kind = _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except (OSError, ValueError):
        return
    if kind is not None:
        raise DiagnosticError.of(
            "not-a-file",
            tr("{path} is {kind}, but only regular files can be read", path=path, kind=kind),
            file=str(path),
            remedy=tr("save its content to a file and choose that file"),
        )
