"""Pictures of the window and of every panel in both themes: `python -m app.ui.screenshots FOLDER` (needs a display)."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QDeadlineTimer, QEventLoop, QSettings, QTimer
from PySide6.QtWidgets import QApplication, QWidget

import samples
from app.ui import theme
from app.ui.analysis.controller import analysis_of
from app.ui.dialogs.recover import RecoverDialog
from app.ui.dialogs.unsaved import UnsavedDialog
from app.ui.docks import Docks
from app.ui.panels import ANALYSIS, DESIGN, PANELS, PROFILE
from app.ui.profiling.controller import profiling_of
from app.ui.window import MainWindow
from designer.files.document import parse_document
from designer.files.journal import VARIABLE, Journal
from designer.files.recovering import unfinished
from designer.files.watching import digest_of
from designer.graph import commands
from designer.operators.registry import load

SIZE = (1600, 1000)
LAYER = "conv_2s"


def wait(what: Callable[[], object], seconds: float = 120.0) -> None:
    """Let the window work until `what` is true; TimeoutError after `seconds`."""
    deadline = QDeadlineTimer(int(seconds * 1000))
    while not what():
        if deadline.hasExpired():
            raise TimeoutError(f"the window did not come to rest in {seconds:.0f} s")
        pause(30)


def pause(milliseconds: int) -> None:
    """Let the window work for a moment."""
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


class Photographer:
    """Puts one window into the states that the pictures show."""

    def __init__(self, folder: Path, mode: Literal["dark", "light"], settings: QSettings) -> None:
        self.folder = folder
        self.mode = mode
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        theme.apply(app, mode)
        self.window = MainWindow(load(entry_points=False), settings)
        self.window.resize(*SIZE)
        self.window.show()
        self.window.start_engine_client()

    def keep(self, widget: QWidget, name: str) -> None:
        pause(250)
        path = self.folder / f"{name}_{self.mode}.png"
        if not widget.grab().save(str(path)):
            raise OSError(f"{path} could not be written")

    def go(self) -> None:
        """All pictures of one theme."""
        window, context, docks = self.window, self.window.context, self.window.docks
        self.folder.mkdir(parents=True, exist_ok=True)
        window.files.open(samples.path("denoiser_analyze.xml"))
        wait(lambda: context.has_document and LAYER in context.root.graph)
        docks.set_workspace(DESIGN)
        context.select((LAYER,))
        docks.show("code_view")
        pause(800)
        self.keep(window, "window_design")

        docks.set_workspace(ANALYSIS)
        analysis = analysis_of(context)
        analysis.set_input("input_image", samples.HELD_OUT)
        if analysis.result is None:
            analysis.launch()
        wait(lambda: analysis.result is not None and not analysis.stale)
        context.inspect_requested.emit(LAYER)
        wait(lambda: analysis.result is not None and LAYER in analysis.result.captures and not analysis.stale)
        self.keep(window, "window_analysis")

        docks.set_workspace(PROFILE)
        profiling = profiling_of(context)
        for name in ("run_logger", "operator_table", "utilisation"):
            docks.show(name)
        profiling.set_iterations(5)
        profiling.launch()
        wait(lambda: not profiling.running)
        pause(1500)
        self.keep(window, "window_profile")
        self.panels(docks)
        self.documents()
        window.close_now()

    def panels(self, docks: Docks) -> None:
        """Every panel alone."""
        for spec in PANELS:
            docks.set_workspace(spec.workspaces[0])
            docks.show(spec.id)
            self.keep(docks[spec.id].widget(), f"panel_{spec.id}")

    def documents(self) -> None:
        """Tabs, a file that another program changed, and what is asked after a crash and before changes are lost."""
        window = self.window
        window.docks.set_workspace(DESIGN)
        with tempfile.TemporaryDirectory() as home:
            paths = [Path(home) / name for name in ("oidn_like.xml", "dncnn.xml", "denoiser.xml")]
            for path in paths:
                path.write_bytes(samples.path(path.name).read_bytes())
            self.crash(paths[2])
            window.files.open_all(paths[:2])
            window.context.root.do(lambda g: commands.set_property(g, "author_notes", "mine"))
            paths[0].write_bytes(paths[0].read_bytes().replace(b"3x3", b"5x5"))
            window.disk.look()
            self.keep(window, "window_documents")
            left = unfinished()
            dialogs = (RecoverDialog(left, window), UnsavedDialog([path.name for path in paths], window))
            for dialog in dialogs:
                dialog.show()
                self.keep(dialog, f"dialog_{dialog.objectName()}")
                dialog.close()
            for item in left:
                item.discard()

    def crash(self, path: Path) -> None:
        """Leave a journal as a process does that ends before it saves."""
        data = path.read_bytes()
        graph = parse_document(data).graph
        assert graph is not None
        journal = Journal(graph, path, digest_of(data))
        journal.record(graph.apply(commands.remove_layers(graph, [list(graph.layers)[3]], heal=True)))
        journal.abandon()


def main() -> int:
    """Take all pictures; the one argument is the folder."""
    folder = Path(sys.argv[1])
    app = QApplication(sys.argv[:1])
    with tempfile.TemporaryDirectory() as home:
        os.environ[VARIABLE] = str(Path(home) / "journal")
        modes: tuple[Literal["dark", "light"], ...] = ("dark", "light")
        for mode in modes:
            settings = QSettings(str(Path(home) / f"{mode}.ini"), QSettings.Format.IniFormat)
            Photographer(folder, mode, settings).go()
    app.processEvents()
    return 0


if __name__ == "__main__":
    sys.exit(main())
