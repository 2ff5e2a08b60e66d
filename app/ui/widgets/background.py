"""Background work in a thread, so that the window stays responsive. It must not touch Qt or the open document."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

import shiboken6
from PySide6.QtCore import QEventLoop, QObject, Signal

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.texts import tr

Result = TypeVar("Result")


class _Mailbox(QObject):
    """Delivers results in the window's thread.

    Threads emit on this object, which lives as long as the process: emitting on an object that the window deletes
    would crash.
    """

    arrived = Signal(object, object, bool, object)  # weak reference to a Background, thread, success, result

    def __init__(self) -> None:
        super().__init__()
        self.arrived.connect(self._deliver)

    def _deliver(self, address: object, thread: object, well: bool, answer: object) -> None:
        background = address() if isinstance(address, weakref.ref) else None
        if isinstance(background, Background) and shiboken6.isValid(background):  # type: ignore[no-untyped-call]
            background.take(thread)
            (background.done if well else background.failed).emit(answer)


@lru_cache(maxsize=1)
def _mailbox() -> _Mailbox:
    return _Mailbox()


class Background(QObject):
    """Runs a function in a thread. `done` carries its result, `failed` findings; both are emitted in the window's thread.

    When they are emitted, the next work can be started.
    """

    done = Signal(object)
    failed = Signal(object)  # tuple of Diagnostic

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether there is work whose result was not delivered, even if its thread has just ended."""
        return self._thread is not None

    def start(self, work: Callable[[], object]) -> None:
        """Start the work. Raises RuntimeError while previous work is running."""
        if self._thread is not None and self._thread.is_alive():
            raise RuntimeError("the previous work has not finished")
        job = (work, _mailbox(), weakref.ref(self))
        self._thread = threading.Thread(target=_run, args=job, name="layerwright-background", daemon=True)
        self._thread.start()

    def take(self, thread: object) -> None:
        """The result of `thread` is here; the thread itself may need a moment to end."""
        if thread is self._thread:
            self._thread = None

    def wait(self) -> None:
        """Block until the work has finished. Signals are emitted later, from the event loop."""
        if self._thread is not None:
            self._thread.join()


def awaited(work: Callable[[], Result], parent: QObject) -> Result:
    """Run `work` in a thread and return its result. Until then the window is painted but takes no input.

    Raises DiagnosticError with the findings of work that failed.
    """
    background, loop = Background(parent), QEventLoop()
    results: list[Any] = []
    failures: list[Any] = []  # tuples of Diagnostic
    background.done.connect(results.append)
    background.done.connect(loop.quit)
    background.failed.connect(failures.append)
    background.failed.connect(loop.quit)
    background.start(work)
    loop.exec(QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents)
    background.deleteLater()
    if failures:
        raise DiagnosticError(failures[0])
    return cast(Result, results[0])


def _run(work: Callable[[], object], mailbox: _Mailbox, address: weakref.ref[Background]) -> None:
    thread = threading.current_thread()
    try:
        result = work()
    except DiagnosticError as error:
        mailbox.arrived.emit(address, thread, False, error.diagnostics)
    except Exception as error:  # any error must reach the user
        finding = Diagnostic(
            "unexpected",
            f"{type(error).__name__}: {error}",
            remedy=tr("report this error with the steps that led to it"),
        )
        mailbox.arrived.emit(address, thread, False, (finding,))
    else:
        mailbox.arrived.emit(address, thread, True, result)
