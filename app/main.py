"""The one command: `layerwright` and `layerwright FILE` open the window, everything else is the command line."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType


def main() -> None:
    """Entry of the scripts `layerwright` and `layerwright-gui`."""
    arguments = sys.argv[1:]
    if opens_window(arguments):
        raise SystemExit(run_window([Path(name) for name in arguments]))
    from app.cli import main as cli
    from app.process import leave_memory_at_exit

    leave_memory_at_exit()
    cli.main()


def opens_window(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for the window: no argument, or documents and models alone."""
    if any(name.startswith("-") for name in arguments):
        return False
    from designer.importers.formats import NETWORKS

    return all(NETWORKS.reads(name) for name in arguments)


def run_window(paths: Sequence[Path], *, trusted: bool = False) -> int:
    """Open the window and run it until it is closed; the process's exit status. `trusted`: as in `MainWindow.begin`."""
    if sys.platform.startswith("linux") and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    ):
        print(
            "layerwright: there is no display for a window. Set DISPLAY, or use the command line: layerwright --help",
            file=sys.stderr,
        )
        return 1
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    app = QApplication(sys.argv[:1])
    app.setApplicationName("layerwright")
    app.setApplicationDisplayName("")
    app.setDesktopFileName("layerwright")

    from app.ui.shell import focus_ring, language
    from app.ui.widgets import garbage, theme

    garbage.install(app)
    language.apply(app)  # before any text is made
    from app.ui.shell.window import MainWindow, window_settings
    from designer.operators.registry import default_registry

    settings = window_settings()
    mode = settings.value("theme")
    theme.apply(app, mode if mode in ("dark", "light") else "system")
    focus_ring.install(app)
    window = MainWindow(default_registry(), settings)
    window.show()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl+C in the terminal ends the program at once
    sys.excepthook = report_error
    QTimer.singleShot(0, window, lambda: window.begin(paths, trusted=trusted))
    return app.exec()


def report_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Exception hook: print the details in the terminal and show a sentence in all windows."""
    from app.ui.shell.window import shown_windows

    sys.__excepthook__(kind, error, trace)
    text = f"Something went wrong inside the program ({kind.__name__}: {error}). Save your work and report this."
    for window in shown_windows():
        window.context.message.emit("error", text)


if __name__ == "__main__":
    main()
