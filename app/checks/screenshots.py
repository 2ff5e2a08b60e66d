"""Images of the window, its panels and dialogs in both themes: `python -m app.checks.screenshots FOLDER` (needs a display)."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from PySide6.QtCore import QBuffer, QDeadlineTimer, QEventLoop, QIODevice, QSettings, QTimer
from PySide6.QtWidgets import QApplication, QWidget

import samples
from app.ui.engine.analysis import analysis_of
from app.ui.engine.profiling import profiling_of
from app.ui.shell.panels import ANALYSIS, DESIGN, PANELS, PROFILE
from app.ui.shell.window import MainWindow
from app.ui.widgets import theme
from designer.files.journal import VARIABLE
from designer.operators.registry import load

SIZE = (1600, 1000)
LAYER = "conv_2s"
LARGEST = 250_000  # bytes; a larger image gets a palette of 256 colors
KEPT = 112  # of them are colors of the window itself


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
    """Puts one window into the states that the images show."""

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
        """Write what a widget shows, when it has come to rest."""
        pause(250)
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        path = self.folder / f"{name}_{self.mode}.png"
        if not widget.grab().save(buffer, "PNG"):
            raise OSError(f"{path} could not be written")
        path.write_bytes(small(bytes(buffer.data().data())))

    def go(self) -> None:
        """All images of one theme."""
        from app.checks.screenshot_scenes import SCENES

        self.folder.mkdir(parents=True, exist_ok=True)
        self.workspaces()
        self.panels()
        for scene in SCENES:
            scene(self)
        self.window.close_now()

    def workspaces(self) -> None:
        """The window at design, analysis and profiling; leaves results for the images of the panels."""
        window, context, docks = self.window, self.window.context, self.window.docks
        window.files.open(samples.path("denoiser_analyze.xml"))
        wait(lambda: context.has_document and LAYER in context.root.graph)
        docks.set_workspace(DESIGN)
        context.select((LAYER,))
        docks.show("code_view")
        pause(800)
        self.keep(window, "window_design")

        docks.set_workspace(ANALYSIS)
        analysis = analysis_of(context)
        analysis.inputs.set_file("input_image", samples.HELD_OUT)
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

    def panels(self) -> None:
        """Every panel alone that opens by itself."""
        docks = self.window.docks
        for spec in PANELS:
            if spec.workspaces:
                docks.set_workspace(spec.workspaces[0])
                docks.show(spec.id)
                self.keep(docks[spec.id].widget(), f"panel_{spec.id}")


def small(png: bytes) -> bytes:
    """The same image; a large one with 256 colors: its most frequent ones as they are, the others of photographs."""
    from PIL import Image

    if len(png) <= LARGEST:
        return png
    with Image.open(io.BytesIO(png)) as image:
        picture = image.convert("RGB")
    pixels = np.asarray(picture).reshape(-1, 3)
    numbers, which, counts = np.unique(pixels @ np.array([1 << 16, 1 << 8, 1]), return_inverse=True, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:KEPT]
    colors = np.stack([numbers >> 16, numbers >> 8 & 255, numbers & 255], axis=1)[often]
    rest = pixels[~np.isin(which, often)]
    others = Image.fromarray(rest[None]).quantize(256 - KEPT, Image.Quantize.MEDIANCUT).getpalette()
    palette = Image.new("P", (1, 1))
    palette.putpalette([*colors.flatten().tolist(), *(others or [])[: 3 * (256 - KEPT)]])
    written = io.BytesIO()
    picture.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG).save(written, "PNG", optimize=True)
    return min(png, written.getvalue(), key=len)


def main() -> int:
    """Take all images; the one argument is the folder."""
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
