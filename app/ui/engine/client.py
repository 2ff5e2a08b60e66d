"""The engine process as the window sees it: requests out, replies in, and a plain sentence when it dies."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QCoreApplication, QObject, QProcess, QProcessEnvironment, Signal

from app.engine.protocol import (
    MAX_LINE,
    VERSION,
    AnyEvent,
    Asked,
    DoneEvent,
    FailedEvent,
    HelloRequest,
    Malformed,
    OpenRequest,
    ProgressEvent,
    QuitRequest,
    ReadyEvent,
    ReplyT,
    Request,
    SupersededEvent,
    asked,
    handles,
    line_of,
    other_protocol,
    read_event,
    read_reply,
    too_long,
)
from app.process import module_command
from app.ui.engine.call import EngineCall, Findings
from app.ui.widgets.sentences import placed_text
from designer.graph.diagnostics import Diagnostic, Severity
from designer.runtime.shared import Handle, SharedFolder
from designer.texts import mark, tr, tr_data

if TYPE_CHECKING:
    from numpy.typing import NDArray

PREFIX = "layerwright-"
MEMORY_FOLDER = 1 << 30  # bytes that must be free in the memory folder for it to be used
# What a request means to a user, for the sentence that says what a dead process was busy with.
_DOING = {
    "open": mark("it prepared the network"),
    "update": mark("it took over an edit of the network"),
    "set_param": mark("it took over a parameter"),
    "set_input": mark("it read an input"),
    "run": mark("it ran the network"),
    "set_input_tensor": mark("it read an input"),
    "profile": mark("it measured times"),
    "gradient": mark("it computed a gradient"),
    "export_video": mark("it wrote a video"),
}
QUIT_MS = 800  # how long a worker may take to leave when asked, before it is killed


class EngineClient(QObject):
    """Runs `app.engine.worker` and exchanges lines of `app.engine.protocol` with it.

    Every request ends as `EngineCall` says, also when the process dies or is cancelled: it fails then, with the code
    "engine-crashed" or "cancelled". The process starts with the first request and again with the first one after a crash.
    `opened` is the call of the network that the process holds or prepares, None after a crash: whoever keeps theirs
    knows whether it is still so.
    """

    started = Signal()  # the engine is ready
    crashed = Signal(str)  # it died by itself: what happened and what to do
    progress = Signal(object)  # ProgressEvent, of whatever it does
    busy_changed = Signal(bool)

    def __init__(self, parent: QObject | None = None, *, command: Sequence[str] | None = None) -> None:
        super().__init__(parent)
        self._command = tuple(command or module_command("app.engine.worker"))
        self._process: QProcess | None = None
        self.folder: Path | None = None  # where tensors are handed over
        self._shared: SharedFolder | None = None
        self._calls: dict[int, EngineCall[Any]] = {}  # that wait for their answer, in the order of the requests
        self._next_id = 1
        self._buffer = bytearray()
        self._scanned = 0  # bytes of the buffer that hold no end of a line
        self._skipping = False  # the rest of a line that was too long
        self._errors: deque[str] = deque(maxlen=20)
        self._closed = False
        self.opened: EngineCall[Any] | None = None
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self.close)

    # --- asking ------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a reply is awaited."""
        return bool(self._calls)

    @property
    def waits_for(self) -> tuple[str, ...]:
        """The methods whose answers are awaited, in order."""
        return tuple(call.request.method for call in self._calls.values())

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def closed(self) -> bool:
        """Whether it was closed for good: nothing can be asked any more."""
        return self._closed

    @property
    def pid(self) -> int:
        """Process id of the worker, 0 when there is none."""
        return int(self._process.processId()) if self._process is not None else 0

    def ask(
        self,
        request: Request[ReplyT],
        owner: QObject,
        done: Callable[[ReplyT], None] | None = None,
        failed: Callable[[Findings], None] | None = None,
        *,
        superseded: Callable[[], None] | None = None,
        progress: Callable[[ProgressEvent], None] | None = None,
    ) -> EngineCall[ReplyT]:
        """Send a request. A client that was closed sends nothing, and then nothing is called."""
        call = EngineCall(request, owner, done, failed, superseded, progress)
        if not self._closed:
            process = self._process or self._start()
            was_busy = self.busy
            if isinstance(request, OpenRequest):
                self.opened = call
            self._send(process, call)
            if not was_busy:
                self.busy_changed.emit(True)
        return call

    def _send(self, process: QProcess, call: EngineCall[Any]) -> None:
        number, self._next_id = self._next_id, self._next_id + 1
        self._calls[number] = call
        process.write(line_of(asked(number, call.request)))

    def take(self, handle: Handle) -> NDArray[np.generic]:
        """The array behind a handle, mapped and read-only. Its file is gone afterwards; the memory lives as the array."""
        if self._shared is None:
            raise RuntimeError("the engine has not been started")
        array = np.asarray(self._shared.get(handle))  # a plain array over the map: cheaper to compute with
        self._shared.free(handle)
        return array

    def put(self, array: NDArray[np.generic]) -> Handle:
        """Lend an array to the worker, which frees it; the handle goes into a request."""
        return self.putting()(array)

    def putting(self) -> Callable[[NDArray[np.generic]], Handle]:
        """What lends an array to the present worker; it may be called in a thread."""
        if self._process is None:
            self._start()
        shared = self._shared
        assert shared is not None
        return shared.put

    # --- stopping ----------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Stop what runs: the process is killed and a fresh one starts. Open requests end with the code "cancelled"."""
        if self._process is None:
            return
        self._end_process(kill=True)
        self._start()
        self._fail_all(
            Diagnostic("cancelled", tr("the work was cancelled"), Severity.INFO, remedy=tr("launch it again"))
        )

    def close(self, *, kill: bool = False) -> None:
        """End the process and remove its folder; no callback comes any more. `kill` does not wait for it to leave."""
        if self._closed:
            return
        self._closed = True
        self._calls.clear()
        self._end_process(kill=kill)

    # --- the process -------------------------------------------------------------------------------------------

    def _start(self) -> QProcess:
        self.folder = _make_folder()
        self._shared = SharedFolder(self.folder)
        self._buffer.clear()
        self._scanned, self._skipping = 0, False
        self._errors.clear()
        process = QProcess(self)
        environment = QProcessEnvironment.systemEnvironment()
        environment.insert("PYTHONUNBUFFERED", "1")
        process.setProcessEnvironment(environment)
        process.readyReadStandardOutput.connect(self._read)
        process.readyReadStandardError.connect(self._read_errors)
        process.finished.connect(self._finished)
        process.errorOccurred.connect(self._process_error)
        self._process = process
        process.start(self._command[0], [*self._command[1:], "--shared", str(self.folder)])
        process.write(line_of(Asked(0, HelloRequest(VERSION))))
        return process

    def _end_process(self, *, kill: bool) -> None:
        """Wait until the process is gone (never a zombie) and drop its folder. Says nothing to anyone."""
        process, self._process, self.opened = self._process, None, None
        if process is not None:
            for sign in (
                process.finished,
                process.errorOccurred,
                process.readyReadStandardOutput,
                process.readyReadStandardError,
            ):
                sign.disconnect()
            if process.state() is not QProcess.ProcessState.NotRunning:
                if not kill:
                    process.write(line_of(Asked(0, QuitRequest())))
                    process.closeWriteChannel()
                if kill or not process.waitForFinished(QUIT_MS):
                    process.kill()
                    process.waitForFinished(5000)
            process.deleteLater()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = self._shared = None

    def _finished(self, code: int, status: QProcess.ExitStatus) -> None:
        self._read_errors()
        self._died(_death(code, status is QProcess.ExitStatus.CrashExit, self._errors))

    def _process_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and self._process is not None:
            self._died(tr("The engine process could not be started: {reason}.", reason=self._process.errorString()))

    def _died(self, what: str) -> None:
        doing = ""
        if self.waits_for:
            method = self.waits_for[0]
            doing = tr_data(_DOING.get(method, "")) or tr("it was busy with {method!r}", method=method)
        what = what.rstrip(".")
        if doing:
            message = tr("{what} while {doing}. Your document is unchanged.", what=what, doing=doing)
        else:
            message = tr("{what}. Your document is unchanged.", what=what)
        remedy = tr("Launch again to start a fresh engine; a smaller image needs less memory.")
        self._end_process(kill=True)
        self.crashed.emit(f"{message} {remedy}")
        self._fail_all(Diagnostic("engine-crashed", message, remedy=remedy))

    def _refused(self, found: Findings) -> None:
        """The engine and this window cannot work together."""
        self._end_process(kill=True)
        self.crashed.emit(placed_text(found[0]))
        self._fail_all(replace(found[0], code="engine-crashed"))

    def _fail_all(self, why: Diagnostic) -> None:
        failed, self._calls = list(self._calls.values()), {}
        if failed:
            self.busy_changed.emit(False)
        for call in failed:
            call.fail((why,))

    # --- replies -----------------------------------------------------------------------------------------------

    def _read(self) -> None:
        process = self._process
        if process is None:
            return
        self._buffer += process.readAllStandardOutput().data()
        while self._process is process:
            end = self._buffer.find(b"\n", self._scanned)
            if end < 0:
                if len(self._buffer) >= MAX_LINE and not self._skipping:
                    self._skipping = True
                    self._malformed(too_long())
                if self._skipping:
                    self._buffer.clear()
                self._scanned = len(self._buffer)
                return
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._scanned = 0
            if self._skipping:
                self._skipping = False
            elif len(line) >= MAX_LINE:  # its end came with the bytes beyond the limit
                self._malformed(too_long())
            elif line.strip():
                self._event(read_event(line))

    def _read_errors(self) -> None:
        if self._process is not None:
            text = bytes(self._process.readAllStandardError().data()).decode(errors="replace")
            self._errors.extend(line for line in text.splitlines() if line.strip())

    def _event(self, event: AnyEvent | Malformed) -> None:
        match event:
            case Malformed():
                self._malformed(event)
            case ReadyEvent():
                if event.protocol != VERSION:
                    self._refused((other_protocol(VERSION, event.protocol),))
                else:
                    self.started.emit()
            case ProgressEvent():
                call = self._calls.get(event.id)
                if call is not None:
                    self.progress.emit(event)
                    call.advance(event)
            case FailedEvent(id=0):  # what it answers to our hello
                self._refused(event.error)
            case FailedEvent():
                self._answered(event.id, lambda call: call.fail(event.error))
            case SupersededEvent():
                self._answered(event.id, lambda call: call.supersede())
            case DoneEvent():
                self._answered(event.id, lambda call: self._done(call, event))

    def _done(self, call: EngineCall[Any], event: DoneEvent) -> None:
        reply = read_reply(call.request, event)
        if isinstance(reply, Malformed):
            call.fail((_unreadable(reply),))
            return
        if not call.wanted and self._shared is not None:
            for handle in handles(reply):
                self._shared.free(handle)
        call.finish(reply)

    def _malformed(self, line: Malformed) -> None:
        self._answered(line.id, lambda call: call.fail((_unreadable(line),)))

    def _answered(self, number: int | None, notify: Callable[[EngineCall[Any]], None]) -> None:
        """The call with this number has its answer. Answers come in order: without a number it is the oldest one's."""
        if number is None:
            number = next(iter(self._calls), 0)
        call = self._calls.pop(number, None)
        if call is None:
            return
        if not self._calls:
            self.busy_changed.emit(False)
        notify(call)


def _unreadable(line: Malformed) -> Diagnostic:
    return Diagnostic(
        "bad-reply",
        tr("the engine sent an answer that cannot be read: {problem}", problem=line.problem),
        remedy=tr("launch again; if it stays, report it with this text"),
    )


def _death(code: int, by_signal: bool, errors: Sequence[str]) -> str:
    if by_signal:
        if code == 9:
            return tr("The engine process was killed (signal 9), often because memory ran out")
        if code == 11:
            return tr("The engine process crashed (invalid memory access)")
        with contextlib.suppress(ValueError):
            return tr("The engine process was ended by the signal {name}", name=signal.Signals(code).name)
        return tr("The engine process crashed (code {code})", code=code)
    last = errors[-1].strip().rstrip(".") if errors else ""
    if last:
        return tr("The engine process ended by itself with code {code}: {last}", code=code, last=last)
    return tr("The engine process ended by itself with code {code}", code=code)


def _make_folder() -> Path:
    """A private folder for tensors, in memory where the system has such a place. Clears those of dead windows."""
    memory = Path("/dev/shm")
    base = memory if _roomy(memory) else Path(tempfile.gettempdir())
    for old in base.glob(f"{PREFIX}*"):
        match = re.match(rf"{PREFIX}([0-9]{{1,18}})-", old.name)
        if match and int(match[1]) != os.getpid() and not _alive(int(match[1])):
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=base))


def _roomy(folder: Path) -> bool:
    """Whether tensors fit there: containers often have a memory folder of 64 MiB, which one large image fills."""
    return folder.is_dir() and os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= MEMORY_FOLDER


def _alive(pid: int) -> bool:
    if os.name != "posix":
        return True  # elsewhere the question itself would end the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's, or a name that somebody made up: it is left alone
        return True
    return True
