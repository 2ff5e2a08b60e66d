"""The probe of the Channel Inspector: the place under the cursor or pinned, in every tensor that is known there."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QVBoxLayout

from app.ui.engine.analysis import AnalysisController
from app.ui.engine.pinned_pixel import pinned_pixel_of
from app.ui.engine.pixel_positions import Place, readings, scaled
from app.ui.engine.receptive_field import ReceptiveField
from app.ui.engine.requests import outermost
from app.ui.inspector.channel_statistics import TensorStatistics
from app.ui.inspector.color_bar import tool_button
from app.ui.inspector.input_pane import InputPane
from app.ui.inspector.inspection import Inspection
from app.ui.inspector.pages import Form, TensorPage
from app.ui.inspector.subject import At, Kind
from app.ui.widgets import theme
from app.ui.widgets.elided import ElidedLabel
from app.ui.widgets.overlays import CrossOverlay
from designer.texts import tr
from designer.units import number

MESSAGE_TIME = 6000  # ms that a message is shown in place of values


class InspectorProbe(QObject):
    """Lines of text and the input image. `pin` is a pixel of the layer's output, whichever tensor is shown."""

    changed = Signal()  # another channel is under the cursor

    def __init__(
        self, analysis: AnalysisController, shown: Inspection, statistics: TensorStatistics, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._analysis = analysis
        self._shown = shown
        self._subject = shown.subject
        self._statistics = statistics
        self._summary = ""
        self._message = ""
        self._message_timer = QTimer(self, singleShot=True, interval=MESSAGE_TIME, timeout=self._clear_message)
        self.hover: Place | None = None
        self.pin: Place | None = None
        self._pin_size = (1, 1)  # width and height of the tensor that was pinned
        self._before: tuple[Place | None, tuple[int, int], bool] = (None, (1, 1), False)  # the last click on an image
        self._marked = pinned_pixel_of(analysis)
        self.field = ReceptiveField(analysis, self)
        self.pane = InputPane(self.field)
        self.pane.probed.connect(self._hover_input)
        self.pane.pinned.connect(self._pin_input)
        self.pane.view.double_clicked.connect(self._restore_pin)
        self.pane.hide()
        self.status = ElidedLabel()
        self.status.setObjectName("channel_inspector.probe")
        self.status.setAccessibleName(tr("Value under the cursor"))
        self.same = ElidedLabel()
        self.same.setObjectName("channel_inspector.same_place")
        self.same.setAccessibleName(tr("Values of other tensors at the same place"))
        self.details = ElidedLabel()
        self.details.setObjectName("channel_inspector.statistics")
        self.details.setAccessibleName(tr("Statistics of the channel"))
        self.details.hide()
        for label in (self.status, self.details, self.same):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.show_input = tool_button("show_input", "", tr("Show the input image next to the channels"), check=True)
        theme.set_icon(self.show_input, "image-outline")
        self.show_input.toggled.connect(self._show_pane)
        self.unpin_button = tool_button("unpin", tr("Unpin"), tr("Take the pinned mark away"), action=self.unpin)
        self.unpin_button.hide()
        views = shown.views
        views.grid.probed.connect(self._probe)
        views.grid.pinned.connect(self.toggle)
        views.channel.probed.connect(self._probe_channel)
        views.channel.clicked.connect(lambda: self._click(self.hover))
        views.channel.right_clicked.connect(self._pin_channel)
        views.channel.double_clicked.connect(self._restore_pin)
        views.matrix.probed.connect(self._probe_matrix)
        views.features.probed.connect(self._probe_feature)

    def lines(self, font: QFont) -> QVBoxLayout:
        """The lines of text."""
        column = QVBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for label in (self.status, self.details, self.same):
            label.setFont(font)
            column.addWidget(label)
        return column

    def set_stacked(self, stacked: bool) -> None:
        """Whether the statistics of the channel, and each of the other tensors, have lines of their own below that of the pixel."""
        if stacked is self.details.isHidden():
            self.details.setVisible(stacked)
            self.same.setMinimumHeight(0)
            self._show_texts()

    # --- what the panel shows ------------------------------------------------------------------------------------

    def show_page(self) -> None:
        """Another page is shown."""
        page, result = self._shown.page, self._analysis.result
        output = self._subject.kind is Kind.OUTPUT and result is not None and not result.coarse
        if page is not None and self.pin is not None and output and page.size != self._pin_size:
            channel, x, y = self.pin  # an edit has changed the size of the tensor
            x, y = scaled((x, y), self._pin_size, page.size)
            self.pin, self._pin_size = (channel, x, y), page.size
            self.field.ask(self._subject.source, x, y, self._input())
        self._show()

    def show_channel(self) -> None:
        """Another channel is shown alone, or all of them again. The cursor is on a pixel of the one that is shown alone."""
        if self.hover is not None and self._shown.channel is not None:
            self.hover = (self._shown.channel, *self.hover[1:])
        self._show()

    def show_result(self) -> None:
        """Another run: the input image and all values may have changed."""
        result = self._analysis.result
        self.pane.setVisible(self.show_input.isChecked() and self._subject.kind is not Kind.WEIGHTS)
        layer = self._input()
        array = result.captures.get(layer) if result is not None else None
        if self.show_input.isChecked() and not (result is not None and result.coarse and self.pane.size_of_picture):
            self.pane.show_input(layer, array, self._shown.item)
        self._show()

    def show_summary(self, summary: str) -> None:
        """Shown while the cursor is on no pixel."""
        self._summary = summary
        self._show_texts()

    def show_message(self, text: str) -> None:
        """Show the result of an action until the cursor moves or MESSAGE_TIME has passed."""
        self._message = text
        self._message_timer.start()
        self._show_texts()

    def _clear_message(self) -> None:
        self._message = ""
        self._show_texts()

    def leave(self) -> None:
        self._set_hover(None)

    # --- the pin -------------------------------------------------------------------------------------------------

    def pinned_at(self) -> At | None:
        """The pinned value as the engine calls it: channel, y, x."""
        return (self.pin[0], self.pin[2], self.pin[1]) if self.pin is not None else None

    def toggle(self, place: Any) -> None:
        """Pin a place, or take the pin away from it."""
        if place is None or self._shown.page is None or self._subject.kind is not Kind.OUTPUT:
            return
        if self._shown.page.form is not Form.CHANNELS:
            return
        if place == self.pin:
            self.unpin()
            return
        self.pin = place
        self._pin_size = self._shown.page.size
        self.show_input.setChecked(True)
        self._pinned()

    def _pin_channel(self, pixel: Any) -> None:
        self._probe_channel(pixel)
        self.toggle(self.hover)

    def _click(self, place: Any) -> None:
        self._before = (self.pin, self._pin_size, self.show_input.isChecked())
        self.toggle(place)

    def _restore_pin(self) -> None:
        """A double click zooms: the pin is where it was before the first click."""
        pin, size, shown = self._before
        if pin != self.pin:
            self.pin, self._pin_size = pin, size
            self._pinned()
        self.show_input.setChecked(shown)

    def unpin(self) -> None:
        if self.pin is not None:
            self.pin = None
            self._pinned()

    def _pinned(self) -> None:
        self.unpin_button.setVisible(self.pin is not None)
        if self.pin is None:
            self.field.clear()
        else:
            self.field.ask(self._subject.source, self.pin[1], self.pin[2], self._input())
        self._subject.choose_at(self.pinned_at())
        self._show()

    def _pin_input(self, pixel: Any) -> None:
        place = self._of_input(pixel)
        if place is not None and self._shown.page is not None:
            self._click((self._shown.current_channel, *place))

    # --- the cursor ----------------------------------------------------------------------------------------------

    def _probe(self, place: Any) -> None:
        across, down = self._shown.page.offset if self._shown.page is not None else (0, 0)
        self._set_hover((place[0], place[1] + across, place[2] + down) if place is not None else None)

    def _probe_channel(self, place: Any) -> None:
        self._probe((self._shown.channel, *place) if place is not None and self._shown.channel is not None else None)

    def _probe_matrix(self, place: Any) -> None:
        self._set_hover((0, place[1], place[0]) if place is not None else None)

    def _probe_feature(self, index: Any) -> None:
        if index is None or self._shown.page is None:
            self._show_texts()
            return
        name = self._shown.views.features.name_of(index)
        value = number(float(self._shown.page.values.reshape(-1)[index]))
        self.status.setText(tr("feature {name}   {value}", name=name, value=value))

    def _hover_input(self, pixel: Any) -> None:
        place = self._of_input(pixel)
        channel = self._shown.current_channel
        self._set_hover((channel, *place) if place is not None else None)

    def _of_input(self, pixel: Any) -> tuple[int, int] | None:
        """A pixel of the input image in what is shown."""
        size = self._size()
        return scaled(pixel[0], pixel[1], size) if pixel is not None and size is not None else None

    def _set_hover(self, place: Place | None) -> None:
        if place != self.hover:
            self.hover = place
            self._message = ""
            self._show()
            self.changed.emit()

    # --- showing -------------------------------------------------------------------------------------------------

    def _size(self) -> tuple[int, int] | None:
        page = self._shown.page
        if page is None or page.form is not Form.CHANNELS or page.filters is not None:
            return None
        return page.size

    def _input(self) -> str:
        """The input layer that the inspected one depends on first."""
        inputs = self._analysis.inputs.layers()
        if self._subject.kind is Kind.GRADIENT and self._subject.tensor in inputs:
            return self._subject.tensor
        document = self._analysis.context.root if self._analysis.context.has_document else None
        layer = outermost(document, self._subject.layer) if document is not None else ""
        above = document.graph.upstream([layer]) if document is not None and layer in document.graph else ()
        return next((name for name in inputs if name in above), inputs[0] if inputs else "")

    def _show_pane(self, shown: bool) -> None:
        self.pane.setVisible(shown and self._subject.kind is not Kind.WEIGHTS)
        if shown:
            self.show_result()

    def _pin_here(self) -> tuple[int, int] | None:
        """The pin in the tensor that is shown, which may be of another size: a gradient has the input's."""
        size = self._size()
        return scaled(self.pin[1:], self._pin_size, size) if self.pin is not None and size is not None else None

    def _drawn(self, place: tuple[int, int] | None) -> tuple[int, int] | None:
        """A pixel of the tensor as a pixel of the part that is drawn."""
        if place is None or self._shown.page is None:
            return None
        x, y = place[0] - self._shown.page.offset[0], place[1] - self._shown.page.offset[1]
        return (x, y) if 0 <= x < self._shown.page.data.shape[2] and 0 <= y < self._shown.page.data.shape[1] else None

    def _show(self) -> None:
        self._marked.show((self.pin[1:], self._pin_size) if self.pin is not None else None)
        size, pin = self._size(), self._pin_here()
        hover = self.hover[1:] if self.hover is not None and size is not None else None
        inside = hover is not None and size is not None and hover[0] < size[0] and hover[1] < size[1]
        drawn = self._drawn(pin)
        self._shown.views.grid.set_mark(self._drawn(hover if inside else None) or drawn)
        self._shown.views.channel.set_overlays([CrossOverlay(*drawn)] if drawn is not None else [])
        there = self.pane.size_of_picture
        if size is not None and there is not None:
            to = [scaled(p, size, there) if p is not None else None for p in (pin, hover if inside else None)]
            self.pane.mark(*to)
        else:
            self.pane.mark(None, None)
        self._show_texts()

    def _show_texts(self) -> None:
        self.details.setText("")
        if self._message:
            self.status.setText(self._message)
            return
        page, place = self._shown.page, self.hover
        if place is None and self.pin is not None and self._pin_here() is not None:
            x, y = self._pin_here() or (0, 0)
            place = (self.pin[0], x, y)
        if page is None or place is None or page.form is Form.VALUES:
            self.status.setText(self._summary)
            self.same.setText("")
            return
        channel, (x, y) = place[0], place[1:]
        if channel >= len(page.data) or self._drawn((x, y)) is None:
            self.status.setText(self._summary)
            self.same.setText("")
            return
        statistics = self._statistics.of(channel).text() if page.form is Form.CHANNELS and page.filters is None else ""
        words = [self._words(page, channel, x, y), statistics]
        if not self.details.isHidden():
            self.details.setText(words.pop())
        self.status.setText("   ".join(filter(None, words)))
        self._show_same(self._same(page, (x, y)))

    def _words(self, page: TensorPage, channel: int, x: int, y: int) -> str:
        value = number(float(page.data[channel, y - page.offset[1], x - page.offset[0]]))
        if page.filters is not None:
            at = page.filters.at(x, y)
            if at is None:
                return self._summary
            return tr(
                "filter {f}  input channel {c}  x {x}  y {y}   {value}",
                f=channel,
                c=at[0],
                x=at[1],
                y=at[2],
                value=value,
            )
        if page.form is Form.MATRIX:
            return tr(
                "{down} {y}  {across} {x}   {value}", down=page.axes[0], y=y, across=page.axes[1], x=x, value=value
            )
        pinned = tr("pinned  ") if self.hover is None else ""
        return tr(
            "{pinned}channel {c}  x {x}  y {y}   {value}",
            pinned=pinned,
            c=channel,
            x=x,
            y=y,
            value=value,
        )

    def _show_same(self, texts: list[str]) -> None:
        """The values of other tensors, in one line or in lines that keep their height when the cursor leaves."""
        stacked = not self.details.isHidden()
        self.same.setText(("\n" if stacked else "  ·  ").join(texts))
        if stacked:
            self.same.setMinimumHeight(max(self.same.minimumHeight(), self.same.sizeHint().height()))

    def _same(self, page: TensorPage, place: tuple[int, int]) -> list[str]:
        size, result = self._size(), self._analysis.result
        if size is None or result is None:
            return []
        shown = self._subject.key
        known = {
            **{n: result.captures[n] for n in self._analysis.inputs.layers() if n in result.captures},
            **result.outputs,
        }
        return readings([(n, a) for n, a in known.items() if n != shown], place, size, self._shown.item)
