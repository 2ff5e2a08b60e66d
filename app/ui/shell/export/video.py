"""Analysis > Export Video: every frame of the inputs through the network, into a video or a folder.

An engine process of its own does the work, so the analysis goes on meanwhile; Cancel ends that process.
"""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import (
    QComboBox,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.engine.protocol import ExportVideoReply, ExportVideoRequest, ProgressEvent
from app.ui.document.locations import start_folder
from app.ui.engine.analysis import analysis_of
from app.ui.engine.call import Findings
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.requests import open_request
from app.ui.widgets.findings import finding_text, without_icons
from app.ui.widgets.growing import GrowingDialog
from app.ui.widgets.message import Message
from app.ui.widgets.texts import tr, tr_data
from app.ui.widgets.typed_path import taken, typed_path
from designer.files.document import write_document
from designer.runtime.images import ARRAYS
from designer.runtime.video_writer import CODECS, part_of


class Kind(NamedTuple):
    """What is written: a video of a codec, or with `suffix` "" a folder of files that end in `codec`."""

    title: str
    suffix: str
    codec: str


def kinds() -> tuple[Kind, ...]:
    """The codecs, each in its usual file, and the folders."""
    videos = (
        Kind(tr("{codec} ({suffix})", codec=tr_data(c.title), suffix=c.default[0]), c.default[0], name)
        for name, c in CODECS.items()
    )
    folders = (
        Kind(tr("Folder: {format} ({suffix})", format=tr_data(f.title), suffix=f.suffixes[0]), "", f.suffixes[0])
        for f in ARRAYS.writable
    )
    return (*videos, *folders)


class VideoExportDialog(GrowingDialog):
    """Asks for the place and the way, shows how far it is, and says what came of it."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._analysis = analysis_of(context)
        self._engine: EngineClient | None = None
        if parent is not None:
            parent.installEventFilter(self)
        self._token = ""
        self._target = Path()
        self.setObjectName("export_video")
        self.setAccessibleName(tr("Export video"))
        self.setWindowTitle(tr("Export Video"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._moving = {n: t for n, t in self._analysis.playback.tracks.items() if t.kind != "camera" and t.frames}
        self._frames = min((t.frames for t in self._moving.values()), default=0)
        first = next(iter(self._moving.values()), None)
        self.kind = self._combo("kind", tr("Kind of file"))
        self._kinds = kinds()
        for kind in self._kinds:
            self.kind.addItem(kind.title)
        self.output = self._combo("output", tr("Output layer"))
        self.output.addItems(list(self._analysis.output_layers()))
        stem = f"{first.path.stem}_{context.root.graph.name}" if first is not None else "result"
        home = start_folder(context.root.path)
        self.file = QLineEdit(str(home / f"{stem}.mkv"))
        self.file.setObjectName("export_video.file")
        self.file.setAccessibleName(tr("File"))
        self.file.setMinimumWidth(380)
        browse = QPushButton(tr("Browse..."))
        browse.setObjectName("export_video.browse")
        browse.setAccessibleName(tr("Choose the file"))
        browse.clicked.connect(self._browse)
        self.start = self._number("start", tr("First frame"), 1, max(self._frames, 1), 1)
        self.stop = self._number("stop", tr("Last frame"), 1, max(self._frames, 1), max(self._frames, 1))
        self.fps = QDoubleSpinBox()
        self.fps.setObjectName("export_video.fps")
        self.fps.setAccessibleName(tr("Frames a second"))
        self.fps.setRange(0.1, 1000)
        self.fps.setDecimals(3)
        rates = [track.fps for track in self._moving.values() if track.kind == "video"]
        self.fps.setValue(rates[0] if rates else 25.0)
        self.quality = self._number("quality", tr("Quality"), 1, 100, 90)
        self._form = form = QFormLayout()
        place = QHBoxLayout()
        place.addWidget(self.file, 1)
        place.addWidget(browse)
        span = QHBoxLayout()
        span.addWidget(self.start)
        span.addWidget(QLabel(tr("to")))
        span.addWidget(self.stop)
        span.addStretch(1)
        form.addRow(tr("&Output"), self.output)
        form.addRow(tr("&Kind"), self.kind)
        for title, buddy, row in ((tr("&File"), self.file, place), (tr("F&rames"), self.start, span)):
            label = QLabel(title)
            label.setBuddy(buddy)
            form.addRow(label, row)
        form.addRow(tr("Frames a &second"), self.fps)
        form.addRow(tr("&Quality"), self.quality)
        self._form.setRowVisible(self.output, self.output.count() > 1)
        self.bar = QProgressBar()
        self.bar.setObjectName("export_video.progress")
        self.bar.setAccessibleName(tr("Progress"))
        self.bar.hide()
        self.message = Message("export_video.message")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.export = buttons.addButton(tr("&Export"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.export.setObjectName("export_video.export")
        self.cancel = buttons.addButton(tr("&Cancel"), QDialogButtonBox.ButtonRole.ActionRole)
        self.cancel.setObjectName("export_video.cancel")
        self.cancel.setEnabled(False)
        self.cancel.clicked.connect(self._cancel)
        buttons.accepted.connect(self._start)
        buttons.rejected.connect(self.reject)
        without_icons(buttons)
        box = QVBoxLayout(self)
        box.addLayout(form)
        box.addWidget(self.bar)
        box.addWidget(self.message)
        box.addWidget(buttons)
        self.export.setDefault(True)  # once it is in the dialog: before, Qt forgets it
        self.kind.currentIndexChanged.connect(self._follow_kind)
        self.file.textChanged.connect(self._follow_file)
        self._follow_kind(0)
        self._follow_file()
        if not self._frames:
            self.export.setEnabled(False)
            self.message.tell(
                tr("No input is a folder or a video whose frames are known. Choose one in Analysis first.")
            )

    def _combo(self, name: str, title: str) -> QComboBox:
        combo = QComboBox()
        combo.setObjectName(f"export_video.{name}")
        combo.setAccessibleName(title)
        return combo

    def _number(self, name: str, title: str, low: int, high: int, value: int) -> QSpinBox:
        box = QSpinBox()
        box.setObjectName(f"export_video.{name}")
        box.setAccessibleName(title)
        box.setRange(low, high)
        box.setValue(value)
        return box

    def _follow_kind(self, index: int) -> None:
        """The file's ending goes with its kind; a rate and a quality only where there are such."""
        _, ending, codec = self._kinds[index]
        path = Path(self.file.text().strip())
        if path.name:
            self.file.setText(str(path.with_suffix(ending)))
        self._form.setRowVisible(self.fps, bool(ending))
        self._form.setRowVisible(self.quality, codec == "mjpeg")

    def _follow_file(self) -> None:
        if self._engine is None and self._frames:
            there = taken(typed_path(self.file.text()))
            self.message.tell(tr("The file is there already; it will be replaced.") if there else "", "info")

    def _browse(self) -> None:
        title, ending, _ = self._kinds[self.kind.currentIndex()]
        if ending:
            name, _ = QFileDialog.getSaveFileName(self, tr("Video"), self.file.text(), f"{title} (*{ending})")
        else:
            name, _ = QFileDialog.getSaveFileName(self, tr("A new folder"), self.file.text())
        if name:
            self.file.setText(str(Path(name).with_suffix(ending)))

    # --- working -----------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self.start.value() > self.stop.value():
            self.message.tell(tr("The first frame comes after the last one. Turn them round."))
            return
        document = self._context.root
        _, ending, codec = self._kinds[self.kind.currentIndex()]
        self._target = typed_path(self.file.text()).absolute()
        self._token = secrets.token_hex(8)
        self._analysis.playback.pause()
        self._engine = EngineClient(self)
        self.export.setEnabled(False)
        self.cancel.setEnabled(True)
        self.bar.setRange(0, 0)
        self.bar.show()
        self.message.tell(tr("Preparing the network …"), "info")
        opening = open_request(document.settings, write_document(document.graph).decode())
        self._engine.ask(opening, self, None, self._failed)
        inputs = self._analysis.inputs
        paths = {layer: inputs.path(layer) for layer in inputs.layers()}
        request = ExportVideoRequest(
            {layer: str(path) for layer, path in paths.items() if path is not None},
            {self.output.currentText(): str(self._target)},
            self.start.value() - 1,
            self.stop.value(),
            self.fps.value() if ending else 0.0,
            codec if ending else "",
            self.quality.value() if codec == "mjpeg" else 0,
            ".png" if ending else codec,
            self._token,
        )
        self._engine.ask(request, self, self._exported, self._failed, progress=self._on_progress)

    def _on_progress(self, event: ProgressEvent) -> None:
        if event.total:
            self.bar.setRange(0, event.total)
            self.bar.setValue(event.done)
            self.message.tell(tr("{done} of {total} frames", done=event.done, total=event.total), "info")

    def _exported(self, reply: ExportVideoReply) -> None:
        text = tr(
            "{frames} frames in {seconds:.1f} s, written to {path}",
            frames=reply.frames,
            seconds=reply.seconds,
            path=self._target,
        )
        self._finish()
        self.message.tell("\n".join([text, *reply.notes]), "positive")
        self._context.message.emit("info", text)

    def _failed(self, found: Findings) -> None:
        self._finish()
        self.message.tell("\n".join(finding_text(d) for d in found[:4]))

    def _cancel(self) -> None:
        self._finish()
        self.message.tell(tr("Cancelled; nothing was written."), "info")

    def _finish(self) -> None:
        """End the process, and clear what it may have left half done."""
        engine, self._engine = self._engine, None
        if engine is None:
            return
        engine.close(kill=True)
        part = part_of(self._target, self._token)
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)
        engine.deleteLater()
        self.bar.hide()
        self.cancel.setEnabled(False)
        self.export.setEnabled(True)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A window that closes takes its dialogs with it without asking them."""
        if watched is self.parent() and event.type() is QEvent.Type.Hide and not event.spontaneous():
            self._finish()
        return super().eventFilter(watched, event)

    def done(self, result: int) -> None:
        """Closing cancels."""
        self._finish()
        super().done(result)
