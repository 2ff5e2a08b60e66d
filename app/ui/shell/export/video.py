"""Analysis > Export Video: run the network on every frame of the inputs and write a video or a folder of images.

A separate engine process does the work, so the analysis remains usable; Cancel ends that process.
"""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import NamedTuple

from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QFileDialog, QLabel, QSpinBox, QWidget

from app.engine.protocol import ExportVideoReply, ExportVideoRequest, ProgressEvent
from app.ui.engine.analysis import analysis_of
from app.ui.engine.call import Findings
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.requests import open_variant
from app.ui.shell.export.dialog import ExportDialog
from designer.graph.diagnostics import DiagnosticError
from designer.runtime.images import ARRAYS
from designer.runtime.video_writer import CODECS, part_of
from designer.texts import tr, tr_data
from designer.units import duration


class OutputKind(NamedTuple):
    """A video with a codec or, with `suffix` "", a folder of files with the suffix `codec`."""

    title: str
    suffix: str
    codec: str


def kinds() -> tuple[OutputKind, ...]:
    """The video codecs, each with its default container, and the folder formats."""
    videos = (
        OutputKind(tr("{codec} ({suffix})", codec=tr_data(c.title), suffix=c.default[0]), c.default[0], name)
        for name, c in CODECS.items()
    )
    folders = (
        OutputKind(tr("Folder: {format} ({suffix})", format=tr_data(f.title), suffix=f.suffixes[0]), "", f.suffixes[0])
        for f in ARRAYS.writable
    )
    return (*videos, *folders)


class VideoExportDialog(ExportDialog):
    """Exports in a separate engine process, which is killed to stop the export."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        self._analysis = analysis_of(context)
        tracks = [t for t in self._analysis.playback.tracks.values() if t.kind != "camera" and t.frames]
        name = context.root.graph.name
        proposed = f"{tracks[0].path.stem}_{name}.mkv" if tracks else "result.mkv"
        super().__init__(context, "export_video", tr("Export Video"), proposed, parent)
        self._engine: EngineClient | None = None
        self._token = ""
        self._frames = min((t.frames for t in tracks), default=0)
        self._kinds = kinds()
        self.output = QComboBox()
        self.output.addItems(list(self._analysis.output_layers()))
        self.kind = QComboBox()
        self.kind.addItems([kind.title for kind in self._kinds])
        self.start = _number(1, max(self._frames, 1), 1)
        self.stop = _number(1, max(self._frames, 1), max(self._frames, 1))
        self.stop.setObjectName("export_video.stop")
        self.stop.setAccessibleName(tr("Last frame"))
        self.fps = QDoubleSpinBox()
        self.fps.setRange(0.1, 1000)
        self.fps.setDecimals(3)
        self.fps.setValue(next((t.fps for t in tracks if t.kind == "video"), 25.0))
        self.quality = _number(1, 100, 90)
        self.add_row("output", tr("&Output"), self.output)
        self.add_row("kind", tr("&Kind"), self.kind)
        self.add_target(tr("&File"))
        self.add_row("start", tr("F&rames"), self.start, QLabel(tr("to")), self.stop)
        self.add_row("fps", tr("Frames per &second"), self.fps)
        self.add_row("quality", tr("&Quality"), self.quality)
        self.start.setAccessibleName(tr("First frame"))
        self.form.setRowVisible(self.output, self.output.count() > 1)
        self.kind.currentIndexChanged.connect(self._follow_kind)
        for field in (self.start, self.stop):
            field.valueChanged.connect(self.check)
        self._follow_kind(0)
        self.check()

    def _follow_kind(self, index: int) -> None:
        """Adapt the file suffix to the kind, and show frame rate and quality only where they apply."""
        _, suffix, codec = self._kinds[index]
        path = Path(self.target.text().strip())
        if path.name:
            self.target.setText(str(path.with_suffix(suffix)))
        self.form.setRowVisible(self.fps, bool(suffix))
        self.form.setRowVisible(self.quality, codec == "mjpeg")

    def browse(self) -> None:
        title, suffix, _ = self._kinds[self.kind.currentIndex()]
        if suffix:
            name, _ = QFileDialog.getSaveFileName(self, tr("Video"), self.target.text(), f"{title} (*{suffix})")
        else:
            name, _ = QFileDialog.getSaveFileName(self, tr("New Folder"), self.target.text())
        if name:
            self.target.setText(str(Path(name).with_suffix(suffix)))

    def problem(self) -> str:
        if not self._frames:
            return tr("No input is a folder or a video with a known number of frames. Choose one in Analysis.")
        if self.start.value() > self.stop.value():
            return tr("The first frame is after the last frame. Swap them.")
        return super().problem()

    # --- working ---------------------------------------------------------------------------------------------

    def write(self, path: Path) -> None:
        try:
            opening = open_variant(self.context.root)
        except DiagnosticError as error:
            self.failed(error.diagnostics)
            return
        _, suffix, codec = self._kinds[self.kind.currentIndex()]
        self._token = secrets.token_hex(8)
        self._analysis.playback.pause()
        self._engine = EngineClient(self)
        self._engine.ask(opening, self, None, self._on_failed)
        inputs = self._analysis.inputs
        paths = {layer: inputs.path(layer) for layer in inputs.layers()}
        request = ExportVideoRequest(
            {layer: str(path) for layer, path in paths.items() if path is not None},
            {self.output.currentText(): str(path)},
            self.start.value() - 1,
            self.stop.value(),
            self.fps.value() if suffix else 0.0,
            codec if suffix else "",
            self.quality.value() if codec == "mjpeg" else 0,
            ".png" if suffix else codec,
            self._token,
        )
        self._engine.ask(request, self, self._exported, self._on_failed, progress=self._on_progress)

    def _on_progress(self, event: ProgressEvent) -> None:
        if event.total:
            text = tr("{done} of {total} frames", done=event.done, total=event.total)
            self.show_progress(event.done, event.total, text)

    def _exported(self, reply: ExportVideoReply) -> None:
        self.interrupt()
        self.written(
            tr(
                "{frames} frames in {time}, written to {path}",
                frames=reply.frames,
                time=duration(1e3 * reply.seconds),
                path=self._written_to,
            ),
            reply.notes,
        )

    def _on_failed(self, found: Findings) -> None:
        self.interrupt()
        self.failed(found)

    def interrupt(self) -> None:
        """End the process and remove its partial output."""
        engine, self._engine = self._engine, None
        if engine is None:
            return
        engine.close(kill=True)
        part = part_of(self._written_to, self._token)
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)
        engine.deleteLater()


def _number(low: int, high: int, value: int) -> QSpinBox:
    box = QSpinBox()
    box.setRange(low, high)
    box.setValue(value)
    return box
