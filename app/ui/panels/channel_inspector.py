"""Channel Inspector: every channel of a layer's tensor, in colours for its signs, while sliders move."""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QGuiApplication, QHideEvent, QImage, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from app.ui import theme
from app.ui.analysis.channel_grid import ChannelGrid
from app.ui.analysis.controller import analysis_of
from app.ui.analysis.elided import ElidedLabel
from app.ui.analysis.features import FeatureView
from app.ui.analysis.figures import Figures
from app.ui.analysis.histogram_strip import HistogramStrip
from app.ui.analysis.image_view import ImageView
from app.ui.analysis.inspector_bar import InspectorBar
from app.ui.analysis.look import Look
from app.ui.analysis.render import Floats, as_channels, number, signed_pixels, to_image
from app.ui.analysis.result import Array, Phase
from app.ui.analysis.saving import NPY, PNG, ask_path, save_picture, save_tensor, tell
from app.ui.context import Context
from app.ui.document import Document
from app.ui.widgets.empty_state import EmptyState
from designer.graph.edits import ChangeSet
from designer.graph.model import Source

EMPTY = "The channels of a layer stand here. Double-click a layer in the Network Overview, or choose one above."
IDLE = "The channels of a layer stand here. Launch Analysis runs the network."


class ChannelInspectorPanel(QWidget):
    """Asks the analysis to bring one tensor with every run, as long as it can be seen."""

    panel_id = "channel_inspector"
    title = "Channel Inspector"

    inspected = Signal(str)

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("channel_inspector")
        self.setAccessibleName("Channel Inspector")
        self._context = context
        self._analysis = analysis_of(context)
        self._document: Document | None = None
        self._source = ""
        self._tensor: Array | None = None
        self._data: Floats | None = None
        self._large: int | None = None
        self._look = Look()
        self._own: dict[str, tuple[float, float]] = {}  # magnify and shift that the person set, by tensor
        self._place: tuple[int, int, int] | None = None
        self._build()
        context.root_changed.connect(self._on_document)
        context.inspect_requested.connect(self.inspect)
        self._analysis.result_changed.connect(self._show_result)
        self._analysis.stale_changed.connect(self._show_stale)
        self._analysis.phase_changed.connect(self._show_page)
        if context.has_document:
            self._on_document(context.root)
        self._show_page()

    def _build(self) -> None:
        self.bar = InspectorBar()
        self.bar.source_chosen.connect(self.inspect)
        self.bar.look_changed.connect(self._set_look)
        self.bar.auto_requested.connect(self._auto_gain)
        self.bar.auto_requested.connect(self._keep_look)
        self.bar.look_touched.connect(self._keep_look)
        self.bar.export_requested.connect(self._export)
        self.figures = Figures(self)
        self.figures.changed.connect(self._show_figures)
        self.grid = ChannelGrid("channel_inspector.grid", "Channels")
        self.grid.activated.connect(self.enlarge)
        self.grid.probed.connect(self._probe)
        self.grid.set_flags(self.figures.flag)
        self.bar.side_changed.connect(self.grid.set_side)
        self.view = ImageView("channel_inspector.channel", "One channel", EMPTY)
        self.view.probed.connect(self._probe_large)
        self.features = FeatureView("channel_inspector.features", "Values of the layer")
        self.features.probed.connect(self._probe_feature)
        self._empty = EmptyState("channel_inspector", "layers-triple-outline", EMPTY, "Launch Analysis")
        self._empty.triggered.connect(self._analysis.launch)
        self._stack = QStackedWidget()
        for page in (self._empty, self.grid, self._large_page(), self.features):
            self._stack.addWidget(page)
        self._status = ElidedLabel()
        self._status.setObjectName("channel_inspector.probe")
        self._status.setAccessibleName("Value under the cursor")
        self._status.setFont(theme.mono_font())
        self._status.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(4)
        column.addWidget(self.bar)
        column.addWidget(self._stack, 1)
        self._histogram = HistogramStrip()
        line = QHBoxLayout()
        line.addWidget(self._histogram)
        line.addWidget(self._status, 1)
        column.addLayout(line)
        self.view.add_key(Qt.Key.Key_Escape, self.shrink)
        self.view.add_key(Qt.Key.Key_Backspace, self.shrink)
        self.view.add_key(Qt.Key.Key_Left, lambda: self._walk(-1))
        self.view.add_key(Qt.Key.Key_Right, lambda: self._walk(1))

    def _large_page(self) -> QWidget:
        page = QWidget()
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        for name, text, tip, action in (
            ("back", "All channels", "Back to the grid (Esc)", self.shrink),
            ("previous", "Previous", "The channel before (Left)", lambda: self._walk(-1)),
            ("next", "Next", "The next channel (Right)", lambda: self._walk(1)),
            ("fit", "Fit", "Show the whole channel (Ctrl+0)", self.view.fit),
            ("one", "1:1", "One value per screen pixel (Ctrl+1)", self.view.one_to_one),
        ):
            button = QToolButton()
            button.setText(text)
            button.setObjectName(f"channel_inspector.{name}")
            button.setAccessibleName(text)
            button.setToolTip(tip)
            button.setAutoRaise(True)
            button.clicked.connect(action)
            row.addWidget(button)
        self._large_title = ElidedLabel()
        self._large_title.setObjectName("channel_inspector.large_title")
        row.addWidget(self._large_title, 1)
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(row)
        column.addWidget(self.view, 1)
        self._large_widget = page
        return page

    # --- what is inspected -------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        return self._source

    @property
    def status_text(self) -> str:
        return self._status.text()

    def inspect(self, source: str) -> None:
        """Show another layer's tensor (`layer` or `layer:port`)."""
        if source == self._source:
            return
        self._source = source
        self._tensor = self._data = None
        self._large = None
        self.bar.show_source(source)
        self._ask()
        self._show_result()
        self.inspected.emit(source)

    def _ask(self) -> None:
        """The tensor is brought only while it can be seen: a capture costs time and memory."""
        if self._source and self.isVisible():
            self._analysis.set_capture(self._source)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._ask()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._analysis.set_capture("")

    def _on_document(self, document: Document) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_change)
        self._document = document
        document.changed.connect(self._on_change)
        self._source = ""
        self._tensor = self._data = None
        self._large = None
        self._own.clear()
        self.bar.show_document(document)
        self._show_result()

    def _on_change(self, change: ChangeSet) -> None:
        assert self._document is not None
        if not (change.added or change.removed or change.reconfigured):
            return
        layer, port = Source.parse(self._source)
        self.bar.show_document(self._document)
        if layer in change.renamed:
            before, self._source = self._source, str(Source(change.renamed[layer], port))
            if before in self._own:
                self._own[self._source] = self._own.pop(before)
            self._ask()
        elif layer in change.removed:
            self._source = ""
            self._tensor = self._data = None
            self._show_result()
        self.bar.show_source(self._source)

    # --- showing -----------------------------------------------------------------------------------------------

    def _show_result(self) -> None:
        result = self._analysis.result
        tensor = result.captures.get(self._source) if result is not None else None
        if self._tensor is not None and (tensor is self._tensor or not self.isVisible()):
            return  # the same values, or nobody looks: showing it asks again
        if tensor is not None and result is not None:
            first = self._tensor is None
            self._tensor = tensor
            self._data = as_channels(tensor)
            self.figures.show_data(self._data)
            if first:
                self._first_look()
            for view in (self.grid, self.view, self.features):
                view.set_note(result.note)
        if self._large is not None and (self._data is None or self._large >= len(self._data)):
            self._large = None
        self.grid.show_data(self._data)
        if self._tensor is not None and self._data is None:
            self.features.show_values(self._tensor)
        self._show_large()
        self._show_page()
        self._probe(self._place)

    def _show_page(self) -> None:
        self.bar.export.setEnabled(self._tensor is not None)
        self._histogram.setVisible(self._data is not None and self._tensor is not None)
        if self._tensor is None:
            ready = self._analysis.phase in (Phase.READY, Phase.RUNNING)
            waiting = f"Waiting for '{self._source}' …" if self._source and ready else ""
            layer = Source.parse(self._source).layer
            if self._document is not None and layer in self._document.training:
                waiting = f"'{layer}' is part of the training branch: inference leaves it out."
            problem = self._analysis.message if self._analysis.phase in _PROBLEMS else ""
            self._empty.show_text(waiting or problem or (EMPTY if ready else IDLE))
            self._empty.findChild(QWidget, "channel_inspector.empty.action").setVisible(not ready)
            self._stack.setCurrentWidget(self._empty)
        elif self._data is None:
            self._stack.setCurrentWidget(self.features)
        else:
            self._stack.setCurrentWidget(self.grid if self._large is None else self._large_widget)

    def _show_stale(self, stale: bool) -> None:
        self.grid.set_dimmed(stale)
        self.view.set_dimmed(stale)

    def _set_look(self, look: Look) -> None:
        self._look = look
        self.grid.set_look(look)
        self._show_large()

    def _first_look(self) -> None:
        """Another tensor: as the person left it, else so that its values can be seen."""
        if self._source in self._own:
            self.bar.set_look(*self._own[self._source])
        else:
            self.bar.set_look(1.0, 0.0)
            self._auto_gain()

    def _keep_look(self) -> None:
        self._own[self._source] = (self._look.gain, self._look.shift)

    def _auto_gain(self) -> None:
        """Magnify so that nearly all values lie inside the colours; zero stays zero."""
        if self._data is None or not self._data.size:
            return
        sample = self._data.reshape(-1)[:: max(1, self._data.size // 65536)]
        extreme = float(np.nanpercentile(np.abs(sample), 99.5))
        self.bar.set_look(1.0 / extreme if extreme > 0 else 1.0)

    def enlarge(self, channel: int) -> None:
        """Show one channel alone."""
        if self._data is None or not 0 <= channel < len(self._data):
            return
        self._large = channel
        self.view.show_image(None)  # another channel is fitted anew only when its size differs
        self._show_large()
        self._show_page()
        self.view.setFocus()

    def shrink(self) -> None:
        """Back to the grid, at the channel that was enlarged."""
        if self._large is not None:
            channel, self._large = self._large, None
            self._show_page()
            self.grid.set_current(channel)
            self.grid.setFocus()

    def _walk(self, step: int) -> None:
        if self._large is not None and self._data is not None:
            self._large = (self._large + step) % len(self._data)
            self._show_large()

    def _show_large(self) -> None:
        if self._large is None or self._data is None:
            return
        values = self._data[self._large]
        look = self._look
        self.view.show_image(to_image(signed_pixels(values, look.palette, look.gain, look.shift)))
        self._large_title.setText(f"{self._source}  ·  channel {self._large} of {len(self._data)}")
        self._show_figures()

    def _show_figures(self) -> None:
        """The histogram is of the channel under the cursor, the one shown alone, or the grid's current one."""
        if self._data is None:
            self._histogram.show_figures(None)
            return
        if self._large is None:
            self.grid.viewport().update()
        if self._place is None:
            self._status.setText(self._summary())
        channel = self._place[0] if self._place is not None else self._large
        channel = self.grid.current if channel is None else channel
        if channel < len(self._data) and (self.figures.complete or self._place is not None or self._large is not None):
            self._histogram.show_figures(self.figures.of(channel))

    def _export(self, kind: str) -> None:
        """The page or the channel shown alone as a picture, the whole tensor as numbers."""
        if self._tensor is None:
            return
        if kind == "copy":
            QGuiApplication.clipboard().setImage(self._picture().copy())
            self._status.setText("The picture is on the clipboard.")
            return
        name = self._source if self._large is None or kind == "tensor" else f"{self._source}_{self._large}"
        picture = kind == "picture"
        path = ask_path(self, "Save", f"{name}.png" if picture else f"{name}.npy", PNG if picture else NPY)
        if path is not None:
            tensor, done = self._tensor, f"Saved {path.name}"
            work = (lambda: save_picture(path, self._picture())) if picture else lambda: save_tensor(path, tensor)
            tell(work, self._status.setText, done)

    def _picture(self) -> QImage:
        """What is shown, without its scroll bars and at its own size."""
        if self._data is None:
            return self.features.grab().toImage()
        if self._large is not None and self.view.image is not None:
            return self.view.image
        return self.grid.sheet()

    # --- probing -----------------------------------------------------------------------------------------------

    def _probe_large(self, place: Any) -> None:
        self._probe((self._large, *place) if place is not None and self._large is not None else None)

    def _probe(self, place: Any) -> None:
        self._place = place
        data = self._data
        if place is None or data is None or place[0] >= len(data):
            self._status.setText(self._summary())
            return
        channel, x, y = place
        if y >= data.shape[1] or x >= data.shape[2]:
            return
        value = number(float(data[channel, y, x]))
        self._show_figures()
        self._status.setText(f"channel {channel}  x {x}  y {y}   {value}   {self.figures.of(channel).text()}")

    def _probe_feature(self, index: Any) -> None:
        if index is not None and self._tensor is not None:
            row = self._tensor[0] if self._tensor.ndim > 1 else self._tensor
            self._status.setText(f"feature {index}   {number(float(row.reshape(-1)[index]))}")

    def _summary(self) -> str:
        if self._tensor is None:
            return ""
        if self._large is not None and self._data is not None:
            return f"channel {self._large}   {self.figures.of(self._large).text()}"
        flags = "".join(f"   {count} {flag}" for flag, count in sorted(self.figures.flagged().items()))
        return f"{self._source}   {' x '.join(str(d) for d in self._tensor.shape)}{flags}"

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._probe(None)


_PROBLEMS = (Phase.FAILED, Phase.BLOCKED, Phase.WEIGHTS, Phase.STOPPED)
