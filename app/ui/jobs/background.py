"""Work on files in a thread of its own, so that the window stays alive. It must not touch Qt or the open document."""

from __future__ import annotations

import threading
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from designer.graph.diagnostics import Diagnostic, DiagnosticError


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
        self._thread = threading.Thread(target=self._run, args=(work,), name="layerwright-background", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until the work is finished (the signals come later, from the event loop)."""
        if self._thread is not None:
            self._thread.join()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            result = work()
        except DiagnosticError as error:
            self.failed.emit(error.diagnostics)
        except Exception as error:  # whatever it is must reach the person, not die with the thread
            finding = Diagnostic(
                "unexpected", f"{type(error).__name__}: {error}", remedy="report this, with what you did before"
            )
            self.failed.emit((finding,))
        else:
            self.done.emit(result)
