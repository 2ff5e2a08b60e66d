"""A scrollable grid of channels. Only tiles that can be seen are computed; scrolling reuses those that stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, QSizeF, Qt, QTimer, Signal
from PySide6.QtGui import QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from app.ui.inspector.look import Fit, Look
from app.ui.inspector.tiles import Tiles
from app.ui.widgets import theme
from app.ui.widgets.image_view import DIMMED, paint_note
from app.ui.widgets.render import Floats
from designer.units import number

GAP = 8
MARGIN = 8
MAX_SHEET = 16000  # pixels of height of a saved sheet: it gets wider before it gets higher
MAX_PIXELS = 1 << 27  # of a saved sheet; channels beyond are left out
WORK = 0.012  # seconds of computing in one frame; what is missing then comes with the next


class ChannelGrid(QAbstractScrollArea):
    """Tiles in reading order. A click on one asks to enlarge it."""

    activated = Signal(int)  # a channel was clicked, or Enter pressed on it
    pinned = Signal(object)  # (channel, x, y) that was clicked with Shift or with the right button
    side_changed = Signal(int)  # by the wheel
    probed = Signal(object)  # (channel, x, y) under the cursor, or None

    def __init__(self, name: str, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.viewport().setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMinimumSize(120, 120)
        self._data: Floats | None = None
        self._order: Sequence[int] = ()  # channels in the order of their places
        self._place: dict[int, int] = {}
        self._side = 144
        self._note = ""
        self._dimmed = False
        self._current = 0
        self._flag: Callable[[int], str] = lambda channel: ""
        self._range: Callable[[int], tuple[float, float] | None] = lambda channel: None
        self._name: Callable[[int], str] = str
        self._mark: tuple[int, int] | None = None
        self._tiles = Tiles()
        self._next = QTimer(self, singleShot=True, interval=0, timeout=self._work)
        self.complete = True  # every channel in sight is drawn in the present values and look

    # --- what is shown -----------------------------------------------------------------------------------------

    @property
    def channels(self) -> int:
        return len(self._data) if self._data is not None else 0

    @property
    def rendered(self) -> int:
        """Number of thumbnails that are rendered."""
        return len(self._tiles)

    @property
    def current(self) -> int:
        return self._current

    def show_data(self, data: Floats | None, gaps: NDArray[np.bool_] | None = None) -> None:
        """C x H x W; `gaps` marks pixels without a value. The place and the order stay when the number of channels does."""
        before = self.channels
        self._data = data
        self._tiles.show(data, gaps)
        self.complete = data is None
        if self.channels != before:
            self._current = 0
            self.set_order(range(self.channels))
            self.verticalScrollBar().setValue(0)
        self._layout()

    def set_look(self, look: Look) -> None:
        self._tiles.set_look(look)
        self.complete = self._data is None
        self.viewport().update()

    def set_order(self, order: Sequence[int]) -> None:
        """A permutation of all channels."""
        self._order = order
        self._place = {channel: place for place, channel in enumerate(order)}
        self.viewport().update()

    def set_names(self, name: Callable[[int], str]) -> None:
        """What a channel is called in its caption."""
        self._name = name
        self.viewport().update()

    def set_mark(self, mark: tuple[int, int] | None) -> None:
        """A pixel that is marked, with its value, in every channel."""
        if mark != self._mark:
            self._mark = mark
            self.viewport().update()

    def set_side(self, side: int) -> None:
        """Length of the longer side of a tile, in pixels of the window."""
        if side != self._side:
            row = self._row_of(self.verticalScrollBar().value()) * self._columns()
            self._side = side
            self._layout()
            if self._data is not None:
                self.verticalScrollBar().setValue(int(row // self._columns() * self._pitch()[1]))

    def set_note(self, note: str) -> None:
        self._note = note
        self.viewport().update()

    def set_dimmed(self, dimmed: bool) -> None:
        if dimmed != self._dimmed:
            self._dimmed = dimmed
            self.viewport().update()

    def set_captions(
        self, flag: Callable[[int], str], value_range: Callable[[int], tuple[float, float] | None]
    ) -> None:
        """What is written under a channel: why it is marked, and its minimum and maximum (None: not known yet)."""
        self._flag, self._range = flag, value_range

    @property
    def on_sheet(self) -> int:
        """Number of channels that a sheet has room for."""
        if self._data is None:
            return 0
        across, down = self._pitch()
        return min(self.channels, max(1, int(MAX_PIXELS // (across * down))))

    def sheet(self) -> QImage:
        """The first `on_sheet` channels as they would be seen without scrolling, in more columns if MAX_SHEET requires it."""
        assert self._data is not None
        across, down = self._pitch()
        count, most = self.on_sheet, max(1, int(MAX_SHEET // down))
        columns = max(self._columns(), -(-count // most))
        rows = -(-count // columns)
        width = min(columns, count) * across + 2 * MARGIN - GAP
        image = QImage(int(width), int(rows * down + 2 * MARGIN - GAP), QImage.Format.Format_RGB32)
        painter = QPainter(image)
        painter.setFont(self.font())
        self._tiles.set_side(round(self._side * self.devicePixelRatioF()))
        painter.fillRect(image.rect(), theme.color("sunken"))
        for row in range(rows):
            channels = self._order[row * columns : min((row + 1) * columns, count)]
            self._tiles.make(channels)
            for column, channel in enumerate(channels):
                place = QPointF(MARGIN + column * across, MARGIN + row * down)
                self._paint_tile(painter, channel, QRectF(place, QSizeF(*self._tile_size())))
        painter.end()
        return image

    def fit_of(self, channel: int) -> Fit:
        """The range of one channel alone."""
        return self._tiles.fit_of(channel)

    @property
    def order(self) -> Sequence[int]:
        """The channels in their order."""
        return self._order

    def neighbour(self, channel: int, step: int) -> int:
        """The previous or next channel, wrapping around."""
        return self._order[(self._place[channel] + step) % self.channels]

    def seen(self) -> QImage:
        """What is in sight, every tile in the present values."""
        self._tiles.make(self.visible())
        return self.viewport().grab().toImage()

    def set_current(self, channel: int) -> None:
        """Move the cursor to a channel and scroll to it."""
        if not 0 <= channel < self.channels:
            return
        self._current = channel
        top = self.tile_rect(channel).top() + self.verticalScrollBar().value() - MARGIN
        height = self._pitch()[1]
        bar = self.verticalScrollBar()
        if top < bar.value():
            bar.setValue(int(top))
        elif top + height > bar.value() + self.viewport().height():
            bar.setValue(int(top + height - self.viewport().height() + MARGIN))
        self.viewport().update()

    # --- places ------------------------------------------------------------------------------------------------

    def _tile_size(self) -> tuple[float, float]:
        assert self._data is not None
        height, width = self._data.shape[1:]
        scale = self._side / max(height, width, 1)
        return max(width * scale, 4.0), max(height * scale, 4.0)

    def _caption(self) -> int:
        return self.fontMetrics().height() + 2 if self._side >= 48 else 0

    def _pitch(self) -> tuple[float, float]:
        width, height = self._tile_size()
        return width + GAP, height + GAP + self._caption()

    def _columns(self) -> int:
        if self._data is None:
            return 1
        return max(1, int((self.viewport().width() - 2 * MARGIN + GAP) // self._pitch()[0]))

    def _row_of(self, y: float) -> int:
        return max(0, int((y - MARGIN) // self._pitch()[1])) if self._data is not None else 0

    def tile_rect(self, channel: int) -> QRectF:
        """The image of a channel in viewport coordinates, without its caption."""
        width, height = self._tile_size()
        across, down = self._pitch()
        row, column = divmod(self._place[channel], self._columns())
        top = MARGIN + row * down - self.verticalScrollBar().value()
        return QRectF(MARGIN + column * across, top, width, height)

    def channel_at(self, place: QPointF) -> int | None:
        """The channel whose image or caption is there."""
        if self._data is None:
            return None
        across, down = self._pitch()
        column = int((place.x() - MARGIN) // across)
        row = int((place.y() + self.verticalScrollBar().value() - MARGIN) // down)
        place_there = row * self._columns() + column
        if not (0 <= column < self._columns() and 0 <= place_there < self.channels):
            return None
        channel = self._order[place_there]
        inside = self.tile_rect(channel).adjusted(0, 0, 0, self._caption()).contains(place)
        return channel if inside else None

    def visible(self) -> Sequence[int]:
        """The channels that can be seen."""
        if self._data is None:
            return ()
        top = self.verticalScrollBar().value()
        first = self._row_of(top) * self._columns()
        last = (self._row_of(top + self.viewport().height()) + 1) * self._columns()
        return self._order[first:last]

    def _layout(self) -> None:
        bar = self.verticalScrollBar()
        if self._data is None:
            bar.setRange(0, 0)
        else:
            rows = -(-self.channels // self._columns())
            pitch = self._pitch()[1]
            view = self.viewport().height()
            bar.setRange(0, max(0, int(2 * MARGIN + rows * pitch - GAP - view)))
            bar.setPageStep(view)
            bar.setSingleStep(max(16, int(pitch / 4)))
        self.viewport().update()

    # --- images ----------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.fillRect(event.rect(), theme.color("sunken"))
        if self._data is None:
            return
        shown = [c for c in self.visible() if event.region().intersects(self._whole_rect(c))]
        self._tiles.set_side(round(self._side * self.devicePixelRatioF()))
        self._tiles.make(shown, perf_counter() + WORK)
        self.complete = not self._tiles.missing(self.visible())
        if not self.complete:
            self._next.start()
        for channel in shown:
            rect = self.tile_rect(channel)
            self._paint_tile(painter, channel, rect)
            if channel == self._current and self.hasFocus():
                painter.setPen(QPen(theme.color("accent"), 2))
                painter.drawRect(rect.adjusted(-2, -2, 2, 2))
        if self._note:
            paint_note(painter, self._note, self.viewport().rect().bottomLeft() + QPointF(8, -8).toPoint())

    def _whole_rect(self, channel: int) -> QRect:
        """A tile with its caption and its frames."""
        return self.tile_rect(channel).adjusted(-4, -4, 4, self._caption() + 4).toAlignedRect()

    def _work(self) -> None:
        """Make some of the missing tiles; only they are painted again."""
        wanted = self._tiles.missing(self.visible())
        self._tiles.make(wanted, perf_counter() + WORK)
        left = set(self._tiles.missing(wanted))
        for channel in wanted:
            if channel not in left:
                self.viewport().update(self._whole_rect(channel))
        self.complete = not left
        if left:
            self._next.start()

    def _paint_tile(self, painter: QPainter, channel: int, rect: QRectF) -> None:
        tile, caption, flag = self._tiles.picture(channel), self._caption(), self._flag(channel)
        if tile is None:  # comes with the next frame
            painter.fillRect(rect, theme.color("raised"))
        else:
            painter.setOpacity(DIMMED if self._dimmed else 1.0)
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, tile.width() > rect.width())
            painter.drawImage(rect, tile)
            painter.setOpacity(1.0)
        if caption:
            metrics = painter.fontMetrics()
            place = QRectF(rect.left(), rect.bottom() + 1, rect.width(), caption)
            marked = flag and self._mark is None
            text = f"{self._name(channel)}   {flag}" if marked else self.caption(channel, rect.width())
            painter.setPen(theme.color("warning" if marked else "muted"))
            painter.drawText(place, 0, metrics.elidedText(text, Qt.TextElideMode.ElideRight, int(rect.width())))
        if flag:
            painter.setPen(QPen(theme.color("warning"), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(rect.adjusted(-1, -1, 0, 0))
        if self._mark is not None:
            self._paint_mark(painter, rect, self._mark)

    def _paint_mark(self, painter: QPainter, rect: QRectF, mark: tuple[int, int]) -> None:
        assert self._data is not None
        height, width = self._data.shape[1:]
        middle = QPointF(
            rect.left() + (mark[0] + 0.5) * rect.width() / width, rect.top() + (mark[1] + 0.5) * rect.height() / height
        )
        for ink, thick in ((theme.color("surface"), 3), (theme.color("accent"), 1)):
            painter.setPen(QPen(ink, thick))
            for step in (QPointF(1, 0), QPointF(-1, 0), QPointF(0, 1), QPointF(0, -1)):
                painter.drawLine(middle + step * 3, middle + step * 8)

    def caption(self, channel: int, width: float) -> str:
        """The text under a channel `width` pixels wide: its name, and the value at the mark or the range of all values."""
        name = self._name(channel)
        if self._mark is not None and self._data is not None:
            return f"{name}   {number(float(self._data[channel, self._mark[1], self._mark[0]]))}"
        known = self._range(channel) if width >= 110 and self._name is str else None
        return f"{name}   {number(known[0])} … {number(known[1])}" if known is not None else name

    # --- events ------------------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        return QSize(640, 320)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._layout()

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """What stays in sight is moved; only what comes into it is painted."""
        if self._note:
            self.viewport().update()
        else:
            self.viewport().scroll(dx, dy)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.probed.emit(self._pixel_at(event.position()))
        over = self.channel_at(event.position()) is not None
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if over else Qt.CursorShape.ArrowCursor)

    def _pixel_at(self, place: QPointF) -> tuple[int, int, int] | None:
        channel = self.channel_at(place)
        if channel is None or self._data is None:
            return None
        rect = self.tile_rect(channel)
        height, width = self._data.shape[1:]
        x = int((place.x() - rect.left()) / rect.width() * width)
        y = int((place.y() - rect.top()) / rect.height() * height)
        return (channel, x, y) if 0 <= x < width and 0 <= y < height else None

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        channel = self.channel_at(event.position())
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if channel is None:
            return
        if event.button() is Qt.MouseButton.RightButton or (shift and event.button() is Qt.MouseButton.LeftButton):
            self._current = channel
            self.pinned.emit(self._pixel_at(event.position()))
        elif event.button() is Qt.MouseButton.LeftButton:
            self._current = channel
            self.activated.emit(channel)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier and self._data is not None:
            self.set_side(min(512, max(24, round(self._side * 1.2 ** (event.angleDelta().y() / 120)))))
            self.side_changed.emit(self._side)
            event.accept()
        else:
            super().wheelEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        columns = self._columns()
        steps = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Up: -columns,
            Qt.Key.Key_Down: columns,
            Qt.Key.Key_Home: -self.channels,
            Qt.Key.Key_End: self.channels,
        }
        key = Qt.Key(event.key())
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.channels:
            self.activated.emit(self._current)
        elif key in steps and self.channels:
            place = min(max(self._place[self._current] + steps[key], 0), self.channels - 1)
            self.set_current(self._order[place])
        else:
            super().keyPressEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.probed.emit(None)
