"""Crash recovery: journals without a running process, and the networks rebuilt from them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from designer.files import limits
from designer.files.atomic import remove_abandoned
from designer.files.document import read_document
from designer.files.file_lock import lock
from designer.files.journal import ENDING, MAKING, journal_folder
from designer.files.journal_format import (
    FORMAT,
    BaseRecord,
    ChangeRecord,
    GraphReplay,
    GraphSnapshot,
    Header,
    StateRecord,
    lines,
    read_line,
)
from designer.files.settings import Settings, find_settings, read_settings
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.graph import Graph
from designer.texts import tr

MAX_BYTES = 8 * limits.MAX_DOCUMENT_BYTES
StateT = TypeVar("StateT", bound=StateRecord)
LATEST = 1 << 40  # seconds since 1970
MAKING_SECONDS = 3600.0  # an incomplete journal older than this is abandoned

Disk = Literal["none", "same", "changed", "gone"]


@dataclass
class Unfinished:
    """A document with unsaved changes from an ended process.

    `graph` is the recovered network, None if nothing was recovered. `disk` compares the file with the one that was opened, and
    `on_disk` is the network in it now. The journal stays locked, so that it is offered only once, until `release` or `discard`.
    """

    journal: Path
    path: Path | None
    name: str
    opened: float
    changed: float
    digest: str
    graph: Graph | None
    disk: Disk
    on_disk: Graph | None
    settings: Mapping[str, Any]  # changed fields of the document's settings
    findings: tuple[Diagnostic, ...]
    _stream: int

    @property
    def title(self) -> str:
        return self.path.name if self.path is not None else tr("{name} (never saved)", name=self.name)

    def discard(self) -> None:
        """Remove the journal: its changes were recovered or rejected."""
        if os.name == "posix":
            _remove(self.journal)
        self.release()
        _remove(self.journal)

    def release(self) -> None:
        """Keep the journal for the next start."""
        stream, self._stream = self._stream, -1
        if stream >= 0:
            os.close(stream)


def unfinished(folder: Path | None = None) -> list[Unfinished]:
    """Documents left with unsaved changes, newest first. Journals without changes are removed. Never raises."""
    place = folder if folder is not None else journal_folder()
    try:
        files = sorted(place.iterdir())
    except OSError:
        return []
    found = []
    for file in files:
        if file.suffix == MAKING and _is_old(file):
            _remove(file)
        elif file.suffix == ENDING:
            left = _look(file)
            if left is not None:
                found.append(left)
    return sorted(found, key=lambda u: u.changed, reverse=True)


def _look(file: Path) -> Unfinished | None:
    """The document of a journal; None if the journal is in use, or has no changes and is removed."""
    try:
        stream = os.open(file, os.O_RDWR | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    if not lock(stream):
        os.close(stream)
        return None
    try:
        size = os.fstat(stream).st_size
        if not size:  # being created, or given up before it had a record
            if _is_old(file):
                _remove(file)
            os.close(stream)
            return None
        data = b"" if size > MAX_BYTES else file.read_bytes()
        left = _recover(file, data, stream, os.fstat(stream).st_mtime)
        if size > MAX_BYTES:
            left.findings += (
                _finding(
                    "journal-too-large", tr("{name} has {size} bytes", name=file.name, size=size), tr("discard it")
                ),
            )
    except Exception:  # an invalid journal stays on disk and must not prevent the program from starting
        os.close(stream)
        return None
    if left.path is not None:
        remove_abandoned(left.path.parent)
    empty = left.path is None and (left.graph is None or GraphSnapshot.of(left.graph).empty)
    same = empty or (left.graph is not None and left.graph == left.on_disk)
    if same and not left.settings and not left.findings:  # saved, or undone to the saved state or to a new network
        left.discard()
        return None
    return left


def _recover(file: Path, data: bytes, stream: int, changed: float) -> Unfinished:
    torn = 0
    header: Header | None = None
    changes: list[ChangeRecord] = []
    base: BaseRecord | None = None
    for text in lines(data):
        match read_line(text):
            case None:
                torn += text.endswith(b"\n")  # without a line end it is the write that the crash interrupted
            case Header(format=version) as record if header is None and version == FORMAT:
                header = record
            case BaseRecord() as record:  # a thread can write an older one after a newer one
                base = record if base is None or record.base >= base.base else base
            case ChangeRecord() as record:
                changes.append(record)
            case _:
                torn += 1
    header = header or Header(format=FORMAT)
    document = Path(header.path) if header.path else None
    disk, on_disk, matches = _on_disk(document, header.digest)
    state = GraphReplay()
    findings: list[Diagnostic] = []
    first, torn_base = _start(state, base, on_disk, whole=matches or header.empty)
    findings += torn_base
    numbers = {change.n for change in changes if change.n > first}
    used = len(numbers)
    missing = max(numbers, default=first) - first - used
    torn = max(torn, missing) + sum(not _applied(state.apply, change) for change in changes if change.n > first)
    if torn:
        message = tr(
            "damaged records in the journal: {torn} of {max}; some changes may be missing",
            torn=torn,
            max=max(torn, missing + used),
        )
        findings.append(_finding("journal-damaged", message, tr("compare it with the file before you save it")))
    times = [change.time for change in changes if 0 < change.time <= LATEST]
    return Unfinished(
        file,
        document,
        header.name or "network",
        header.opened if 0 < header.opened <= LATEST else changed,
        times[-1] if times else changed,
        header.digest,
        state.graph() if state.layers or state.frames or state.templates or used else None,
        disk,
        on_disk,
        _unsaved(state.settings, document),
        tuple(findings),
        stream,
    )


def _start(
    state: GraphReplay, base: BaseRecord | None, on_disk: Graph | None, *, whole: bool
) -> tuple[int, list[Diagnostic]]:
    """Set `state` to the graph that the records continue. Returns the number of the record before it, and diagnostics.

    `whole`: without a base record, that graph is the file on disk (or empty, for a document without a file).
    """
    if base is not None and _applied(state.base, base):
        return base.base, []
    if on_disk is not None:
        state.start(on_disk)
    else:
        state.start(Graph())
    if whole:
        return 0, []
    if on_disk is not None:
        message = (
            "the journal does not contain the network that was opened; its changes are applied to the current file"
        )
    else:
        message = "the journal does not contain the network that was opened; only changed layers were recovered"
    return 0, [_finding("journal-without-base", message, tr("review the network before you save it"))]


def _applied(apply: Callable[[StateT], None], record: StateT) -> bool:
    try:
        apply(record)
    except (ValueError, TypeError, AttributeError):
        return False
    return True


def _unsaved(settings: Mapping[str, Any], path: Path | None) -> dict[str, Any]:
    """The settings that differ from those in the settings file."""
    file = find_settings(path) if path is not None else None
    saved = read_settings(file).settings if file is not None else Settings()
    return {key: value for key, value in settings.items() if getattr(saved, key) != value}


def _on_disk(path: Path | None, digest: str) -> tuple[Disk, Graph | None, bool]:
    """The state of the file, the network in it, and whether its digest is `digest`."""
    if path is None:
        return "none", None, False
    reading = read_document(path)
    if not reading.digest:
        return "gone", None, False
    same = reading.digest == digest
    return "same" if same else "changed", reading.graph, same


def _finding(code: str, message: str, remedy: str) -> Diagnostic:
    return Diagnostic(code, message, Severity.WARNING, remedy=remedy)


def _is_old(file: Path) -> bool:
    try:
        return time.time() - file.stat().st_mtime > MAKING_SECONDS
    except OSError:
        return False


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):
        file.unlink()
