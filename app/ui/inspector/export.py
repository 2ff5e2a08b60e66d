"""What can be taken away from the Channel Inspector: pictures, numbers, figures and animations."""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Callable
from functools import partial
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication, QImage

from app.ui.inspector.animation import save_animation
from app.ui.inspector.figures import channel_figures
from app.ui.inspector.look import pixels
from app.ui.inspector.pages import Form
from app.ui.widgets.background import Background
from app.ui.widgets.render import Floats, block_mean, to_image
from app.ui.widgets.saving import ANIMATION, CSV, NPY, PNG, ask_path, save_picture, save_tensor
from app.ui.widgets.texts import tr
from designer.files.atomic import write_atomic

if TYPE_CHECKING:
    from app.ui.inspector.channel_inspector import ChannelInspectorPanel

RECORDED = 1 << 28  # bytes of recorded runs; the oldest go first
LARGEST = 1 << 26  # values of all channels that are animated at their full size
WIDEST = 1600  # pixels of a recorded picture
FRAME = 125  # ms of a frame
SMALLEST = 128  # pixels of the longer side of a channel in an animation


class Exporter(QObject):
    """Writes what the panel shows. `recording` keeps a picture of every run until it is saved."""

    def __init__(self, panel: ChannelInspectorPanel) -> None:
        super().__init__(panel)
        self._panel = panel
        self._frames: deque[QImage] = deque()
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
            frames = list(self._frames)
            self._animate((lambda: frames) if frames else None)
        elif way == "statistics":
            self._save_statistics()
        else:
            self._save(way)

    def _save(self, way: str) -> None:
        panel = self._panel
        large = panel.large if way == "picture" else None
        name = panel.subject.key if large is None else f"{panel.subject.key}_{large}"
        ending, kind = {"picture": (".png", PNG), "tensor": (".npy", NPY)}[way]
        path = ask_path(panel, tr("Save"), f"{name}{ending}", kind)
        if path is None or panel.subject.value is None:
            return
        if way == "tensor":
            work = partial(save_tensor, path, panel.subject.value)
        else:
            work = partial(save_picture, path, self.picture())
        self._start(work, tr("Saved {name}", name=path.name))

    def _save_statistics(self) -> None:
        page, panel = self._panel.page, self._panel
        path = ask_path(panel, tr("Save"), f"{panel.subject.key}.csv", CSV)
        if path is not None and page is not None:
            values = page.values
            self._start(lambda: write_atomic(path, statistics(values).encode()), tr("Saved {name}", name=path.name))

    def _start(self, work: Callable[[], object], done: str) -> None:
        """Do it in a thread, and tell when it is done."""
        if self.background.running:
            self._say(tr("Another file is being written: try again when it is there."))
            return
        self._done = done
        self._say(tr("Writing …"))
        self.background.start(work)

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

    # --- animations --------------------------------------------------------------------------------------------

    def channels(self) -> Callable[[], list[QImage]] | None:
        """What makes a frame for each channel, in the order of the grid; it may run in a thread."""
        panel = self._panel
        page, look, order = panel.page, panel.bar.look, list(panel.grid.order)
        if page is None or page.form is not Form.CHANNELS:
            return None
        fits = {channel: panel.grid.fit_of(channel) for channel in order} if look.each else {}
        data = page.data

        def make() -> list[QImage]:
            block = max(1, ceil(sqrt(data.size / LARGEST)))
            frames = []
            for channel in order:
                image = to_image(pixels(block_mean(data[channel], block), look, fits.get(channel)))
                times = -(-SMALLEST // max(image.width(), image.height()))
                frames.append(image.scaled(image.width() * times, image.height() * times) if times > 1 else image)
            return frames

        return make

    def record(self) -> None:
        """Keep a picture of the present run, if the person wants them kept."""
        panel = self._panel
        if panel.page is None or not panel.subjects.export.recording or not panel.isVisible():
            return
        grid = panel.page.form is Form.CHANNELS and panel.large is None
        image = panel.grid.seen() if grid else self.picture()
        self._frames.append(image.scaledToWidth(WIDEST) if image.width() > WIDEST else image.copy())
        while sum(frame.sizeInBytes() for frame in self._frames) > RECORDED:
            self._frames.popleft()
        panel.subjects.export.show_recorded(len(self._frames))

    def _animate(self, frames: Callable[[], list[QImage]] | None) -> None:
        if frames is None:
            self._say(tr("Nothing is there to be animated: record some runs, or show a layer with channels."))
            return
        path = ask_path(self._panel, tr("Save"), f"{self._panel.subject.key}.gif", ANIMATION)
        if path is not None:
            self._start(lambda: save_animation(path, frames(), FRAME), tr("Saved {name}", name=path.name))

    def _failed(self, found: Any) -> None:
        self._say(f"{found[0].message}. {found[0].remedy}".strip())

    def _say(self, text: str) -> None:
        self._panel.probe.tell(text)


def statistics(values: Floats) -> str:
    """Figures of all channels as text, values separated by commas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("channel", "minimum", "maximum", "mean", "deviation", "zeros", "not_finite", "flag"))
    for channel, plane in enumerate(values):
        f = channel_figures(plane)
        writer.writerow((channel, f.low, f.high, f.mean, f.deviation, f.zeros, f.broken, f.flag))
    return text.getvalue()
