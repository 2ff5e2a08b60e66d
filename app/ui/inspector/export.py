"""Export from the Channel Inspector: images, tensors, statistics and animations."""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Callable
from math import ceil, sqrt
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QWidget

from app.ui.inspector.animation import ANIMATIONS, save_animation
from app.ui.inspector.channel_statistics import channel_statistics
from app.ui.inspector.inspection import Inspection
from app.ui.inspector.look import Look, pixels
from app.ui.inspector.pages import Form
from app.ui.widgets.background import Background
from app.ui.widgets.export_button import ExportButton
from app.ui.widgets.file_output import VIEWS, ask_path
from app.ui.widgets.render import Floats, block_mean, to_image
from designer.files.formats import FormatTable
from designer.files.tables import CSV
from designer.runtime.images import TENSORS
from designer.runtime.provenance import Provenance, texts_of
from designer.texts import tr

RECORDED = 1 << 28  # bytes of recorded runs; the oldest go first
LARGEST = 1 << 26  # values of all channels that are animated at their full size
WIDEST = 1600  # pixels of a recorded image
FRAME = 125  # ms of a frame
SMALLEST = 128  # pixels of the longer side of a channel in an animation


class Exporter(QObject):
    """Writes what the inspector shows. While `button` records, every run leaves an image until they are saved."""

    message = Signal(str)  # how it went

    def __init__(
        self,
        shown: Inspection,
        look: Callable[[], Look],
        button: ExportButton,
        origin: Callable[[], Provenance],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._origin = origin
        self._shown = shown
        self._look = look
        self._button = button
        self._window = parent
        self._frames: deque[QImage] = deque()
        self._done = ""
        self.background = Background(self)
        self.background.done.connect(lambda _: self.message.emit(self._done))
        self.background.failed.connect(self._on_failed)

    def export(self, way: str) -> None:
        """One of the ways of the export button."""
        if self._shown.page is None:
            return
        if way == "copy":
            QGuiApplication.clipboard().setImage(self._shown.picture().copy())
            self.message.emit(tr("The image is on the clipboard."))
        elif way == "record":
            if self._button.recording:
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
        subject = self._shown.subject
        channel = self._shown.channel if way == "picture" else None
        name = subject.key if channel is None else f"{subject.key}_{channel}"
        table: FormatTable[Any, Any] = TENSORS if way == "tensor" else VIEWS
        path = ask_path(self._window, tr("Save"), f"{name}{table.write_suffixes[0]}", table)
        if path is None or subject.value is None:
            return
        content = (subject.value,) if way == "tensor" else (self._shown.picture(), self._origin().comment())
        done, grid = tr("Saved {name}", name=path.name), self._shown.views.grid
        if way == "picture" and channel is None and grid.on_sheet < grid.channels:
            done = tr(
                "Saved {name} with the first {count} of {total} channels. Make the channels smaller to save all.",
                name=path.name,
                count=grid.on_sheet,
                total=grid.channels,
            )
        self._start(lambda: table.writer(path)(path, *content), done)

    def _save_statistics(self) -> None:
        page = self._shown.page
        path = ask_path(self._window, tr("Save"), f"{self._shown.subject.key}.csv", CSV)
        if path is not None and page is not None:
            values, origin = page.values, {self._shown.subject.key: self._origin()}
            self._start(
                lambda: CSV.writer(path)(path, statistics(values), texts_of(origin)), tr("Saved {name}", name=path.name)
            )

    def _start(self, work: Callable[[], object], done: str) -> None:
        """Do it in a thread, then emit `message`."""
        if self.background.running:
            self.message.emit(tr("Another file is being written: try again when it is there."))
            return
        self._done = done
        self.message.emit(tr("Writing …"))
        self.background.start(work)

    # --- animations --------------------------------------------------------------------------------------------

    def channels(self) -> Callable[[], list[QImage]] | None:
        """What makes a frame for each channel, in the order of the grid; it may run in a thread."""
        page, look, grid = self._shown.page, self._look(), self._shown.views.grid
        order = list(grid.order)
        if page is None or page.form is not Form.CHANNELS:
            return None
        fits = {channel: grid.fit_of(channel) for channel in order} if look.each else {}
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
        """Keep an image of the present run, if the user wants them kept."""
        shown = self._shown
        if shown.page is None or not self._button.recording or not self._window.isVisible():
            return
        grid = shown.page.form is Form.CHANNELS and shown.channel is None
        image = shown.views.grid.seen() if grid else shown.picture()
        self._frames.append(image.scaledToWidth(WIDEST) if image.width() > WIDEST else image.copy())
        while sum(frame.sizeInBytes() for frame in self._frames) > RECORDED:
            self._frames.popleft()
        self._button.show_recorded(len(self._frames))

    def _animate(self, frames: Callable[[], list[QImage]] | None) -> None:
        if frames is None:
            self.message.emit(tr("Nothing is there to be animated: record some runs, or show a layer with channels."))
            return
        path = ask_path(self._window, tr("Save"), f"{self._shown.subject.key}.gif", ANIMATIONS)
        if path is not None:
            comment = self._origin().comment()
            self._start(lambda: save_animation(path, frames(), FRAME, comment), tr("Saved {name}", name=path.name))

    def _on_failed(self, found: Any) -> None:
        self.message.emit(f"{found[0].message}. {found[0].remedy}".strip())


def statistics(values: Floats) -> str:
    """Statistics of all channels (C x H x W) as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("channel", "minimum", "maximum", "mean", "deviation", "zeros", "not_finite", "flag"))
    for channel, plane in enumerate(values):
        f = channel_statistics(plane)
        writer.writerow((channel, f.low, f.high, f.mean, f.deviation, f.zeros, f.broken, f.flag))
    return text.getvalue()
