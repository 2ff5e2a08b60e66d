"""Work on files in a thread of its own, so that the window stays alive. It must not touch Qt or the open document."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import lru_cache

import shiboken6
from PySide6.QtCore import QObject, Signal

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.texts import tr


class _Mailbox(QObject):
    """Carries answers into the window's thread.

    Threads emit on this object, which lives as long as the process: emitting on one that the window deletes meanwhile
    would end the program.
    """

    arrived = Signal(object, bool, object)  # weak reference to a Background, whether it went well, answer

    def __init__(self) -> None:
        super().__init__()
        self.arrived.connect(self._deliver)

    def _deliver(self, address: object, well: bool, answer: object) -> None:
        background = address() if isinstance(address, weakref.ref) else None
        if isinstance(background, Background) and shiboken6.isValid(background):  # type: ignore[no-untyped-call]
            (background.done if well else background.failed).emit(answer)


@lru_cache(maxsize=1)
def _mailbox() -> _Mailbox:
    return _Mailbox()


class Background(QObject):
    """Runs one function. `done` brings its result, `failed` findings; both arrive in the window's thread."""

    done = Signal(object)
    failed = Signal(object)  # tuple of Diagnostic

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, work: Callable[[], object]) -> None:
        """Begin; one piece of work at a time."""
        if self.running:
            raise RuntimeError("the last piece of work is not finished")
        job = (work, _mailbox(), weakref.ref(self))
        self._thread = threading.Thread(target=_run, args=job, name="layerwright-background", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until the work is finished (the signals come later, from the event loop)."""
        if self._thread is not None:
            self._thread.join()


def _run(work: Callable[[], object], mailbox: _Mailbox, address: weakref.ref[Background]) -> None:
    try:
        result = work()
    except DiagnosticError as error:
        mailbox.arrived.emit(address, False, error.diagnostics)
    except Exception as error:  # whatever it is must reach the person, not die with the thread
        finding = Diagnostic(
            "unexpected", f"{type(error).__name__}: {error}", remedy=tr("report this, with what you did before")
        )
        mailbox.arrived.emit(address, False, (finding,))
    else:
        mailbox.arrived.emit(address, True, result)
