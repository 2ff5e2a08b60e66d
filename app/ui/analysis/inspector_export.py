"""What can be taken away from the Channel Inspector: pictures, numbers, figures and animations."""

from __future__ import annotations

import csv
import io
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication, QImage

from app.ui.analysis.animation import save_animation
from app.ui.analysis.figures import Figures
from app.ui.analysis.look import pixels
from app.ui.analysis.pages import Form
from app.ui.analysis.render import to_image
from app.ui.analysis.saving import ANIMATION, CSV, NPY, PNG, ask_path, save_picture, save_tensor, tell
from app.ui.jobs.background import Background
from app.ui.texts import tr
from designer.files.atomic import write_atomic

if TYPE_CHECKING:
    from app.ui.panels.channel_inspector import ChannelInspectorPanel

KEPT = 240  # recorded runs
WIDEST = 1600  # pixels of a recorded picture
FRAME = 125  # ms of a frame
SMALLEST = 128  # pixels of the longer side of a channel in an animation


class Exporter(QObject):
    """Writes what the panel shows. `recording` keeps a picture of every run until it is saved."""

    def __init__(self, panel: ChannelInspectorPanel) -> None:
        super().__init__(panel)
        self._panel = panel
        self._frames: deque[QImage] = deque(maxlen=KEPT)
        self._done = ""
        self.background = Background(self)
        self.background.done.connect(lambda _: self._say(self._done))
        self.background.failed.connect(self._failed)

    def export(self, way: str) -> None:
        """One of the ways of the export button."""
        panel = self._panel
        if panel.page is None:
            return
        if way == "copy":
            QGuiApplication.clipboard().setImage(self.picture().copy())
            self._say(tr("The picture is on the clipboard."))
        elif way == "record":
            self._frames.clear()
            self.record()
        elif way == "channels":
            self._animate(self.channels())
        elif way == "runs":
            self._animate(list(self._frames))
        else:
            self._save(way)

    def _save(self, way: str) -> None:
        panel = self._panel
        large = panel.large if way == "picture" else None
        name = panel.subject.key if large is None else f"{panel.subject.key}_{large}"
        ending, kind = {"picture": (".png", PNG), "tensor": (".npy", NPY), "statistics": (".csv", CSV)}[way]
        path = ask_path(panel, tr("Save"), f"{name}{ending}", kind)
        if path is None or panel.subject.value is None:
            return
        tensor = panel.subject.value
        work = {
            "picture": lambda: save_picture(path, self.picture()),
            "tensor": lambda: save_tensor(path, tensor),
            "statistics": lambda: write_atomic(path, self.statistics().encode()),
        }[way]
        tell(work, self._say, tr("Saved {name}", name=path.name))

    def picture(self) -> QImage:
        """What is shown, without its scroll bars and at its own size."""
        panel = self._panel
        if panel.page is None or panel.page.form is Form.VALUES:
            return panel.features.grab().toImage()
        if panel.page.form is Form.MATRIX:
            return panel.matrix.grab().toImage()
        if panel.large is not None and panel.view.image is not None:
            return panel.view.image
        return panel.grid.sheet()

    def statistics(self) -> str:
        """Figures of all channels as text, values separated by commas."""
        page = self._panel.page
        assert page is not None
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("channel", "minimum", "maximum", "mean", "deviation", "zeros", "not_finite", "flag"))
        figures: Figures = self._panel.figures
        for channel in range(len(page.values)):
            f = figures.of(channel)
            writer.writerow((channel, f.low, f.high, f.mean, f.deviation, f.zeros, f.broken, f.flag))
        return text.getvalue()

    # --- animations --------------------------------------------------------------------------------------------

    def channels(self) -> list[QImage]:
        """A frame for each channel, in the order of the grid."""
        panel = self._panel
        page = panel.page
        if page is None or page.form is not Form.CHANNELS:
            return []
        look, frames = panel.bar.look, []
        for channel in panel.grid.order:
            own = panel.grid.fit_of(channel) if look.each else None
            image = to_image(pixels(page.data[channel], look, own))
            times = -(-SMALLEST // max(image.width(), image.height()))
            frames.append(image.scaled(image.width() * times, image.height() * times) if times > 1 else image.copy())
        return frames

    def record(self) -> None:
        """Keep a picture of the present run, if the person wants them kept."""
        if self._panel.subjects.export.recording and self._panel.isVisible():
            image = self.picture()
            self._frames.append(image.scaledToWidth(WIDEST) if image.width() > WIDEST else image.copy())
            self._panel.subjects.export.show_recorded(len(self._frames))

    def _animate(self, frames: list[QImage]) -> None:
        if not frames:
            self._say(tr("Nothing is there to be animated: record some runs, or show a layer with channels."))
            return
        path = ask_path(self._panel, tr("Save"), f"{self._panel.subject.key}.gif", ANIMATION)
        if path is None or self.background.running:
            return
        self._done = tr("Saved {name}, {count} frames", name=path.name, count=len(frames))
        self._say(tr("Writing {name} …", name=path.name))
        self.background.start(lambda: _write(path, frames))

    def _failed(self, found: Any) -> None:
        self._say(f"{found[0].message}. {found[0].remedy}".strip())

    def _say(self, text: str) -> None:
        self._panel.probe.status.setText(text)


def _write(path: Path, frames: list[QImage]) -> None:
    save_animation(path, frames, FRAME)
