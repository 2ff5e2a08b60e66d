"""The engine process as the window sees it: requests out, replies in, and a plain sentence when it dies."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QCoreApplication, QObject, QProcess, QProcessEnvironment, Signal

from app.process import module_command
from app.ui.widgets.texts import mark, tr, tr_data
from designer.graph.diagnostics import Diagnostic, Severity
from designer.runtime.shared import SharedFolder

if TYPE_CHECKING:
    from numpy.typing import NDArray

OnResult = Callable[[dict[str, Any]], None]
OnError = Callable[[tuple[Diagnostic, ...]], None]

PREFIX = "layerwright-"
MEMORY_FOLDER = 1 << 30  # bytes that must be free in the memory folder for it to be used
# What a request means to a person, for the sentence that says what a dead process was busy with.
_DOING = {
    "open": mark("it prepared the network"),
    "update": mark("it took over an edit of the network"),
    "set_param": mark("it took over a parameter"),
    "set_input": mark("it read an input"),
    "run": mark("it ran the network"),
    "profile": mark("it measured times"),
    "gradient": mark("it computed a gradient"),
    "export_video": mark("it wrote a video"),
}
QUIT_MS = 800  # how long a worker may take to leave when asked, before it is killed


@dataclass(slots=True)
class _Pending:
    method: str
    on_result: OnResult | None
    on_error: OnError | None


class EngineClient(QObject):
    """Runs `app.engine.worker` and talks JSON lines with it.

    Every request ends with exactly one call, `on_result` or `on_error`, also when the process dies or is cancelled (codes
    "engine-crashed" and "cancelled"); after `close` none is called. The process starts with the first request and again
    with the first one after a crash. `session` counts `open` requests and deaths: who remembers it knows whether the
    network that the worker holds is still theirs.
    """

    started = Signal()  # the worker answers
    crashed = Signal(str)  # it died by itself: what happened and what to do
    progress = Signal(object)  # dict: id, done, total, text
    busy_changed = Signal(bool)

    def __init__(self, parent: QObject | None = None, *, command: Sequence[str] | None = None) -> None:
        super().__init__(parent)
        self._command = tuple(command or module_command("app.engine.worker"))
        self._process: QProcess | None = None
        self._folder: Path | None = None
        self._shared: SharedFolder | None = None
        self._pending: dict[int, _Pending] = {}
        self._next_id = 1
        self._buffer = bytearray()
        self._errors: deque[str] = deque(maxlen=20)
        self._closed = False
        self.session = 0
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self.close)

    # --- asking ------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a reply is awaited."""
        return bool(self._pending)

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

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        on_result: OnResult | None = None,
        on_error: OnError | None = None,
    ) -> int:
        """Send a request; the callbacks come later from the event loop. Returns its id."""
        if self._closed:
            raise RuntimeError("the engine client is closed")
        process = self._process or self._start()
        number, self._next_id = self._next_id, self._next_id + 1
        if method == "open":
            self.session += 1
        was_busy = self.busy
        self._pending[number] = _Pending(method, on_result, on_error)
        line = json.dumps({"id": number, "method": method, "params": dict(params or {})}) + "\n"
        process.write(line.encode())
        if not was_busy:
            self.busy_changed.emit(True)
        return number

    def take(self, handle: Mapping[str, Any]) -> NDArray[np.generic]:
        """The array behind a handle, mapped and read-only. Its file is gone afterwards; the memory lives as the array."""
        if self._shared is None:
            raise RuntimeError("the engine has not been started")
        array = np.asarray(self._shared.get(dict(handle)))  # a plain array over the map: cheaper to compute with
        self._shared.free(dict(handle))
        return array

    def put(self, array: NDArray[np.generic]) -> dict[str, Any]:
        """Lend an array to the worker, which frees it; the handle goes into a request."""
        return self.putting()(array)

    def putting(self) -> Callable[[NDArray[np.generic]], dict[str, Any]]:
        """What lends an array to the present worker; it may be called in a thread."""
        if self._process is None:
            self._start()
        shared = self._shared
        assert shared is not None
        return lambda array: dict(shared.put(array))

    # --- stopping ----------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Stop what runs: the process is killed and a fresh one starts. Open requests end with the code "cancelled"."""
        if self._process is None:
            return
        self._end_process(kill=True)
        self.session += 1
        self._start()
        self._fail_all(
            Diagnostic("cancelled", tr("the work was cancelled"), Severity.INFO, remedy=tr("launch it again"))
        )

    def close(self, *, kill: bool = False) -> None:
        """End the process and remove its folder; no callback comes any more. `kill` does not wait for it to leave."""
        if self._closed:
            return
        self._closed = True
        self._pending.clear()
        self._end_process(kill=kill)

    # --- the process -------------------------------------------------------------------------------------------

    def _start(self) -> QProcess:
        self._folder = _make_folder()
        self._shared = SharedFolder(self._folder)
        self._buffer.clear()
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
        process.start(self._command[0], [*self._command[1:], "--shared", str(self._folder)])
        return process

    def _end_process(self, *, kill: bool) -> None:
        """Wait until the process is gone (never a zombie) and drop its folder. Says nothing to anyone."""
        process, self._process = self._process, None
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
                    process.write(b'{"id": 0, "method": "quit", "params": {}}\n')
                    process.closeWriteChannel()
                if kill or not process.waitForFinished(QUIT_MS):
                    process.kill()
                    process.waitForFinished(5000)
            process.deleteLater()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = self._shared = None

    def _finished(self, code: int, status: QProcess.ExitStatus) -> None:
        self._died(_death(code, status is QProcess.ExitStatus.CrashExit, self._errors))

    def _process_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and self._process is not None:
            self._died(tr("The engine process could not be started: {reason}.", reason=self._process.errorString()))

    def _died(self, what: str) -> None:
        if self._process is not None:
            self._read_errors()
        oldest = next(iter(self._pending.values()), None)
        doing = ""
        if oldest is not None:
            known = tr_data(_DOING.get(oldest.method, ""))
            doing = known or tr("it was busy with {method!r}", method=oldest.method)
        what = what.rstrip(".")
        if doing:
            message = tr("{what} while {doing}. Your document is unchanged.", what=what, doing=doing)
        else:
            message = tr("{what}. Your document is unchanged.", what=what)
        remedy = tr("Launch again to start a fresh engine; a smaller picture needs less memory.")
        self._end_process(kill=True)
        self.session += 1
        self.crashed.emit(f"{message} {remedy}")
        self._fail_all(Diagnostic("engine-crashed", message, remedy=remedy))

    def _fail_all(self, why: Diagnostic) -> None:
        failed, self._pending = list(self._pending.values()), {}
        if failed:
            self.busy_changed.emit(False)
        for pending in failed:
            if pending.on_error is not None:
                pending.on_error((why,))

    # --- replies -----------------------------------------------------------------------------------------------

    def _read(self) -> None:
        process = self._process
        if process is None:
            return
        self._buffer += process.readAllStandardOutput().data()
        while self._process is process:
            end = self._buffer.find(b"\n")
            if end < 0:
                return
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._line(line)

    def _read_errors(self) -> None:
        if self._process is not None:
            text = bytes(self._process.readAllStandardError().data()).decode(errors="replace")
            self._errors.extend(line for line in text.splitlines() if line.strip())

    def _line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self._errors.append(line.decode(errors="replace"))
            return
        event = message.get("event")
        if event == "ready":
            self.started.emit()
        elif event == "progress":
            self.progress.emit(message)
        else:
            self._reply(message)

    def _reply(self, message: dict[str, Any]) -> None:
        pending = self._pending.pop(message.get("id", -1), None)
        if pending is None:
            return
        if not self._pending:
            self.busy_changed.emit(False)
        if "error" in message:
            if pending.on_error is not None:
                pending.on_error(diagnostics_of(message["error"]))
        elif pending.on_result is not None:
            pending.on_result(message.get("result") or {})


def diagnostics_of(found: Any) -> tuple[Diagnostic, ...]:
    """Diagnostics from the plain dicts of a reply; what does not fit becomes one with the text as it came."""
    result = []
    names = set(Diagnostic.__dataclass_fields__)
    for item in found if isinstance(found, list) else [found]:
        try:
            fields = {k: v for k, v in item.items() if k in names}
            result.append(Diagnostic(**{**fields, "severity": Severity(fields.get("severity", "error"))}))
        except (AttributeError, TypeError, ValueError):
            result.append(
                Diagnostic("engine-error", tr("the engine answered: {item}", item=item), remedy=tr("launch again"))
            )
    return tuple(result)


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
        match = re.match(rf"{PREFIX}(\d+)-", old.name)
        if match and int(match[1]) != os.getpid() and not _alive(int(match[1])):
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=base))


def _roomy(folder: Path) -> bool:
    """Whether tensors fit there: containers often have a memory folder of 64 MiB, which one large picture fills."""
    return folder.is_dir() and os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= MEMORY_FOLDER


def _alive(pid: int) -> bool:
    if os.name != "posix":
        return True  # elsewhere the question itself would end the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
