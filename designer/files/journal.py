"""The recovery journal of an open document. Each edit appends a record, so that a crash loses at most the last one.

A journal is one file in the user's data folder, never next to the document. It exists only while there are unsaved changes
and is locked for the lifetime of its process: an unlocked journal was left by a crash (see recovery.py).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from designer.files.file_lock import lock
from designer.files.journal_format import FORMAT, Change, GraphSnapshot, Header, line, settings_data
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.texts import tr

ENDING = ".journal"
MAKING = ".making"  # suffix of a journal whose first record is not complete
VARIABLE = "LAYERWRIGHT_JOURNAL"
LARGE = 300  # records of at least this many layers are written by a thread
COMPACT_BYTES = 4 << 20  # a journal that has grown by this much is compacted


def journal_folder() -> Path:
    """The folder of the journals; an environment variable can override it."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    from platformdirs import user_state_path

    return user_state_path("layerwright") / "journal"


class Journal:
    """Records changes of `graph`. Failures do not raise: they are reported once, and editing continues.

    Call `record` after each change of the graph, including undo and redo. A record is written before `record` returns, so that
    it survives the end of the process; a large record is written before the next one. After `sync` records also survive a power
    failure.
    """

    def __init__(
        self,
        graph: Graph,
        path: Path | None,
        digest: str = "",
        *,
        folder: Path | None = None,
        on_failure: Callable[[Diagnostic], None] = lambda finding: None,
    ) -> None:
        self._graph = graph
        self._path = path
        self._digest = digest
        self._folder = folder if folder is not None else journal_folder()
        self._on_failure = on_failure
        self._mutex = threading.RLock()  # held briefly for each write and each change of `_stream`
        self._stream = -1
        self._file: Path | None = None
        self._failed = False
        self._count = 0  # records so far
        self._size = 0
        self._compact_at = COMPACT_BYTES
        self._synced = 0
        self._thread: threading.Thread | None = None  # the latest; each waits for the one before
        self._large: threading.Thread | None = None  # writes a record that is too large for the GUI thread
        self._settings: dict[str, Any] = {}  # fields changed since the last save
        self._start: GraphSnapshot | None = GraphSnapshot.of(graph)  # the graph before the first record

    @property
    def file(self) -> Path | None:
        """The file on disk; None while there are no changes."""
        return self._file

    @property
    def synced(self) -> bool:
        """Whether all records are on the disk itself, where a power cut does not lose them."""
        return self._synced == self._count

    def record(self, change: ChangeSet) -> None:
        """Append the current values of everything that `change` touched."""
        if self._failed or not change:
            return
        values = Change.of(self._graph, change)
        if not values:
            return
        self._settings.update(values.settings)
        if self._large is not None:
            self._large.join()
            self._large = None
        try:
            with self._mutex:
                if self._stream < 0:
                    self._begin()
                self._count += 1
                if values.weight < LARGE:
                    self._append(values.line(self._count))
        except OSError as error:
            self._fail(error)
            return
        if values.weight >= LARGE:
            self._large = self._in_thread(self._write, lambda number: values.line(number, gently=True), self._count)
        if self._start is not None:
            self._in_thread(self._write_base, self._start)
            self._start = None
        elif self._size > self._compact_at:
            self._compact_at = sys.maxsize  # one compaction at a time: `size` belongs to the file that is replaced
            state, settings, number, size = GraphSnapshot.of(self._graph), dict(self._settings), self._count, self._size
            self._in_thread(self._compact, size, self._header(), lambda: state.line(number, settings))

    def keep(self, settings: Mapping[str, Any] | None = None) -> bool:
        """Write the whole graph and the unsaved settings now, because they are stored nowhere else. Returns whether it succeeded."""
        if self._failed:
            return False
        self._settings.update(settings_data(settings or {}))
        try:
            with self._mutex:
                if self._stream < 0:
                    self._begin()
                self._append(GraphSnapshot.of(self._graph).line(self._count, self._settings))
                os.fsync(self._stream)
        except OSError as error:
            self._fail(error)
            return False
        self._start = None
        return True

    def saved(self, path: Path, digest: str) -> None:
        """The graph was saved to `path`: drop the records."""
        self.close()
        self._path, self._digest = path, digest
        self._failed, self._count, self._size, self._synced = False, 0, 0, 0
        self._compact_at = COMPACT_BYTES
        self._settings = {}
        self._start = GraphSnapshot.of(self._graph)

    def close(self) -> None:
        """Remove the journal: the document was saved, or its changes were discarded."""
        with self._mutex:
            stream, file = self._stream, self._file
            self._stream, self._file = -1, None
            if file is not None and os.name == "posix":
                _remove(file)
            if stream >= 0:
                with contextlib.suppress(OSError):
                    os.close(stream)
            if file is not None:
                _remove(file)

    def abandon(self) -> None:
        """Keep the file for the next start, as if the process had ended."""
        self.wait()
        with self._mutex:
            if self._stream >= 0:
                os.close(self._stream)
            self._stream, self._file = -1, None

    def sync(self) -> None:
        """Flush the records to disk in a thread, if there are new ones."""
        if self._stream >= 0 and not self.synced:
            self._in_thread(self._sync)

    def wait(self) -> None:
        """Wait for the threads to finish."""
        thread = self._thread
        if thread is not None:
            thread.join()

    # --- the file --------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = secrets.token_hex(8)
        file = self._folder / f"{name}{ENDING}"
        making = self._folder / f"{name}{MAKING}" if os.name == "posix" else file  # Windows cannot rename an open file
        self._stream = _create(making)
        self._file = file
        self._append(self._header())
        if making != file:
            os.rename(making, file)

    def _header(self) -> bytes:
        return line(
            Header(
                format=FORMAT,
                path=str(self._path.absolute()) if self._path is not None else None,
                name=self._graph.name,
                digest=self._digest,
                empty=self._start is not None and self._start.empty,
                opened=round(time.time(), 2),
                pid=os.getpid(),
            )
        )

    def _append(self, data: bytes) -> None:
        _write(self._stream, data)
        self._size += len(data)

    def _in_thread(self, work: Callable[..., None], *given: object) -> threading.Thread:
        """Run `work` after the previous thread. It gets the current file, because a save starts another one."""
        before, file = self._thread, self._file

        def run() -> None:
            time.sleep(0.001)  # let the calling thread continue: otherwise it waits 5 ms for the interpreter lock
            if before is not None:
                before.join()
            work(file, *given)

        self._thread = threading.Thread(target=run, name="layerwright-journal", daemon=True)
        self._thread.start()
        return self._thread

    def _write_base(self, file: Path, start: GraphSnapshot) -> None:
        self._write(file, start.line, 0)
        self._sync(file)

    def _write(self, file: Path, made: Callable[[int], bytes], number: int) -> None:
        data = made(number)
        with self._mutex:
            if self._file != file:
                return
            try:
                self._append(data)
            except OSError as error:
                self._fail(error)

    def _sync(self, file: Path) -> None:
        with self._mutex:
            if self._file != file or self._stream < 0:
                return
            count, stream = self._count, os.dup(self._stream)
        try:
            os.fsync(stream)
            self._synced = count
        except OSError:
            pass  # if the disk is gone, the next write reports it
        finally:
            os.close(stream)

    def _compact(self, file: Path, size: int, header: bytes, base: Callable[[], bytes]) -> None:
        """Replace the file by the header, the graph, and the records after the first `size` bytes."""
        making = self._folder / f"{secrets.token_hex(8)}{MAKING}"
        stream = -1
        try:
            stream = _create(making)
            data = header + base()
            _write(stream, data)
            os.fsync(stream)
            with self._mutex:
                if self._file != file:
                    return
                tail = file.read_bytes()[size:]
                _write(stream, tail)
                os.replace(making, file)
                self._stream, stream = stream, self._stream
                self._size = len(data) + len(tail)
                self._compact_at = self._size + COMPACT_BYTES
        except OSError:  # keep the long journal where an open file cannot be replaced
            with self._mutex:
                if self._file == file:
                    self._compact_at = self._size + COMPACT_BYTES
        finally:
            if stream >= 0:
                os.close(stream)
            _remove(making)

    def _fail(self, error: OSError) -> None:
        """Stop recording until the next save and report it. The file keeps its records and its lock."""
        self._failed = True
        self._on_failure(
            Diagnostic(
                "no-journal",
                tr(
                    "changes are not recorded for recovery: {folder}: {strerror}",
                    folder=self._folder,
                    strerror=error.strerror or error,
                ),
                Severity.WARNING,
                file=str(self._folder),
                remedy=tr(
                    "save often, and make that folder writable or free some space; recording resumes after saving"
                ),
            )
        )


def _create(path: Path) -> int:
    """Create a file, locked until it is closed or the process ends."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
    stream = os.open(path, flags, 0o600)
    if not lock(stream):
        os.close(stream)
        raise OSError("the file cannot be locked")
    return stream


def _write(stream: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(stream, view) :]


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
