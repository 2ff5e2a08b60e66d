"""An image viewer with zoom, pan, fit, 1:1, the pixel under the cursor, a split line and overlays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui.widgets import theme
from app.ui.widgets.overlays import Overlay, paint_note
from app.ui.widgets.split_line import SplitLine, SplitMode

__all__ = ["DIMMED", "ImageView", "SplitMode", "Viewport", "paint_note"]

STEP = 1.25  # zoom factor of one wheel notch
LIMITS = (1 / 64, 64.0)
DIMMED = 0.45
NUDGE = (0.01, 0.1)  # share of the image by which arrow keys move the split line, without and with Shift
PAN = (0.1, 0.5)  # share of the view by which arrow keys pan, without and with Shift


@dataclass(frozen=True, slots=True)
class Viewport:
    """The visible part: fitted, or a zoom around a center (0..1 of the image's width and height)."""

    fitted: bool = True
    zoom: float = 1.0
    x: float = 0.5
    y: float = 0.5


class ImageView(QWidget):
    """Shows one QImage. Zoom 1 is one image pixel per device pixel; larger zooms keep hard pixel edges."""

    probed = Signal(object)  # (x, y) of the image pixel under the cursor, or None
    split_moved = Signal(float)  # 0..1 while the split line is dragged
    split_released = Signal()
    zoom_changed = Signal(float)
    view_changed = Signal(Viewport)  # the user zoomed or panned
    clicked = Signal()
    right_clicked = Signal(object)  # (x, y) of the image pixel, or None
    double_clicked = Signal()  # follows `clicked`, whose effect was not intended

    def __init__(self, name: str, title: str, empty: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(96, 96)
        self._empty = empty
        self._image: QImage | None = None
        self._fitted = True
        self._zoom = 1.0
        self._center = QPointF(0.5, 0.5)  # the image point at the center of the view, 0..1
        self._dimmed = False
        self._note = ""
        self._overlays: tuple[Overlay, ...] = ()
        self._line = SplitLine()
        self._drag: QPointF | None = None
        self._dragging_split = False
        self._moved = False
        control, plain = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.NoModifier
        self._keys: dict[tuple[Qt.Key, Qt.KeyboardModifier], Callable[[], None]] = {
            (Qt.Key.Key_0, control): self.fit,
            (Qt.Key.Key_1, control): self.one_to_one,
        }
        for key, factor in ((Qt.Key.Key_Plus, STEP), (Qt.Key.Key_Equal, STEP), (Qt.Key.Key_Minus, 1 / STEP)):
            self._keys[key, plain] = partial(self._zoom_by, factor)
        shift = Qt.KeyboardModifier.ShiftModifier
        for key, x, y in (
            (Qt.Key.Key_Left, -1, 0),
            (Qt.Key.Key_Right, 1, 0),
            (Qt.Key.Key_Up, 0, -1),
            (Qt.Key.Key_Down, 0, 1),
        ):
            self._keys[key, plain] = partial(self._arrow, x, y, far=False)
            self._keys[key, shift] = partial(self._arrow, x, y, far=True)

    # --- content -----------------------------------------------------------------------------------------

    @property
    def image(self) -> QImage | None:
        return self._image

    @property
    def zoom(self) -> float:
        return self._fit_zoom() if self._fitted else self._zoom

    @property
    def dimmed(self) -> bool:
        return self._dimmed

    @property
    def note(self) -> str:
        return self._note

    @property
    def split(self) -> SplitMode:
        return self._line.way

    @property
    def overlays(self) -> tuple[Overlay, ...]:
        return self._overlays

    def show_image(self, image: QImage | None) -> None:
        """Show another image. The view is kept if the size is the same, otherwise it is fitted."""
        before = self._image.size() if self._image is not None else None
        self._image = image
        if image is None:  # what was being dragged is gone
            self._drag, self._dragging_split = None, False
        if image is None or before != image.size():
            self._fitted = True
            self._center = QPointF(0.5, 0.5)
            self.zoom_changed.emit(self.zoom)
        self.update()

    def set_empty_text(self, text: str) -> None:
        self._empty = text
        self.update()

    def set_dimmed(self, dimmed: bool) -> None:
        """Dim the image: it is out of date."""
        if dimmed != self._dimmed:
            self._dimmed = dimmed
            self.update()

    def set_note(self, note: str) -> None:
        """Set a text drawn on the image, such as the source of the weights."""
        if note != self._note:
            self._note = note
            self.update()

    def set_split(self, split: SplitMode, amount: float) -> None:
        line = SplitLine(split, amount)
        if line != self._line:
            self._line = line
            self.update()

    def set_overlays(self, overlays: Sequence[Overlay]) -> None:
        """Set the overlays, in image pixels; they replace previous ones and are kept when the image changes."""
        if tuple(overlays) != self._overlays:
            self._overlays = tuple(overlays)
            self.update()

    # --- the view ----------------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Fit the whole image into the view."""
        self._fitted = True
        self._center = QPointF(0.5, 0.5)
        self._notify()

    def one_to_one(self) -> None:
        self.set_zoom(1.0)

    def set_zoom(self, zoom: float, at: QPointF | None = None) -> None:
        """Zoom around `at` (view coordinates, by default the center)."""
        if self._image is None:
            return
        zoom = min(max(zoom, LIMITS[0]), LIMITS[1])
        at = at if at is not None else QPointF(self.width() / 2, self.height() / 2)
        fixed = self._to_image(at)
        self._fitted = False
        self._zoom = zoom
        scale = self._scale()
        offset = QPointF((at.x() - self.width() / 2) / scale, (at.y() - self.height() / 2) / scale)
        self._move_center(fixed - offset)
        self._notify()

    @property
    def view(self) -> Viewport:
        return Viewport(self._fitted, self.zoom, self._center.x(), self._center.y())

    def follow(self, view: Viewport) -> None:
        """Show the same part as another view, without emitting `view_changed`."""
        if view != self.view:
            self._fitted, self._zoom, self._center = view.fitted, view.zoom, QPointF(view.x, view.y)
            self.zoom_changed.emit(self.zoom)
            self.update()

    def look_at(self, area: QRectF, zoom: float | None = None) -> None:
        """Center an area of the image, fitted or at `zoom`."""
        if self._image is None:
            return
        ratio = min(self.width() / max(area.width(), 1.0), self.height() / max(area.height(), 1.0))
        wanted = zoom if zoom is not None else ratio * self.devicePixelRatioF()
        self._fitted, self._zoom = False, min(max(wanted, LIMITS[0]), LIMITS[1])
        self._move_center(area.center())
        self._notify()

    def _notify(self) -> None:
        self.zoom_changed.emit(self.zoom)
        self.view_changed.emit(self.view)
        self.update()

    def pixel_at(self, position: QPointF) -> tuple[int, int] | None:
        """The image pixel at a position of the view."""
        if self._image is None:
            return None
        point = self._to_image(position)
        x, y = int(point.x() // 1), int(point.y() // 1)
        return (x, y) if 0 <= x < self._image.width() and 0 <= y < self._image.height() else None

    def place_of(self, x: float, y: float) -> QPointF:
        """The view position of an image point."""
        return self._target().topLeft() + QPointF(x, y) * self._scale()

    def _scale(self) -> float:
        """Viewport coordinates per image pixel."""
        return self.zoom / self.devicePixelRatioF()

    def _fit_zoom(self) -> float:
        if self._image is None or self._image.isNull():
            return 1.0
        ratio = min(self.width() / self._image.width(), self.height() / self._image.height())
        return float(min(ratio * self.devicePixelRatioF(), LIMITS[1]))

    def _target(self) -> QRectF:
        assert self._image is not None
        scale = self._scale()
        width, height = self._image.width() * scale, self._image.height() * scale
        left = self.width() / 2 - self._center.x() * width
        top = self.height() / 2 - self._center.y() * height
        if self.zoom >= 1:  # rounded to pixels, so that 1:1 is exact
            left, top = round(left), round(top)
        return QRectF(left, top, width, height)

    def _to_image(self, position: QPointF) -> QPointF:
        origin = self._target().topLeft()
        point: QPointF = (position - origin) / self._scale()
        return point

    def _move_center(self, center: QPointF) -> None:
        assert self._image is not None
        self._center = QPointF(
            min(max(center.x() / self._image.width(), 0.0), 1.0), min(max(center.y() / self._image.height(), 0.0), 1.0)
        )
        self.update()

    # --- events ------------------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        return QSize(384, 320)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._fitted:
            self.zoom_changed.emit(self.zoom)

    def wheelEvent(self, event: QWheelEvent) -> None:
        notches = event.angleDelta().y() / 120
        if notches and self._image is not None:
            self.set_zoom(self.zoom * STEP**notches, event.position())
            self.probed.emit(self.pixel_at(event.position()))
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._image is None or event.button() not in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            return
        self._moved = False
        self._dragging_split = event.button() is Qt.MouseButton.LeftButton and self._on_split(event.position())
        self._drag = event.position()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = event.position()
        if self._drag is None:
            self.probed.emit(self.pixel_at(place))
            self._set_cursor(place)
            return
        if self._dragging_split:
            self._moved = True
            self.split_moved.emit(self._line.amount_at(place, self._target()))
            return
        if not self._moved and (place - self._drag).manhattanLength() < 3:
            return
        self._moved = True
        assert self._image is not None
        step = (place - self._drag) / self._scale()
        self._drag = place
        self._fitted, self._zoom = False, self.zoom
        size = self._image.size()
        center = QPointF(self._center.x() * size.width(), self._center.y() * size.height())
        self.setCursor(Qt.CursorShape.ClosedHandCursor)
        self._move_center(center - step)
        self.view_changed.emit(self.view)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.RightButton and self._image is not None:
            self.right_clicked.emit(self.pixel_at(event.position()))
        if self._drag is None:
            return
        self._drag = None
        if self._dragging_split:
            self._dragging_split = False
            self.split_released.emit()
        elif not self._moved:
            self.clicked.emit()
        self._set_cursor(event.position())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Toggle between fit and 1:1 around the cursor."""
        self.double_clicked.emit()
        if self._fitted:
            self.set_zoom(1.0, event.position())
        else:
            self.fit()

    def add_key(self, key: Qt.Key, action: Callable[[], None]) -> None:
        """Call `action` when `key` is pressed."""
        self._keys[key, Qt.KeyboardModifier.NoModifier] = action

    def event(self, event: QEvent) -> bool:
        """While the view has the focus, its keys take precedence over the window's shortcuts."""
        if event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._action(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        action = self._action(event)
        if action is None:
            super().keyPressEvent(event)
        else:
            action()

    def _action(self, event: QKeyEvent) -> Callable[[], None] | None:
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        without = modifiers & ~Qt.KeyboardModifier.ShiftModifier  # "+" needs Shift on many keyboards
        key = Qt.Key(event.key())
        return self._keys.get((key, modifiers)) or self._keys.get((key, without))

    def _arrow(self, x: int, y: int, *, far: bool) -> None:
        """Move the split line if there is one, otherwise pan."""
        along = {SplitMode.VERTICAL: x, SplitMode.HORIZONTAL: y, SplitMode.NONE: 0}[self._line.way]
        if along:
            self.split_moved.emit(self._line.moved(along * NUDGE[far]))
            self.split_released.emit()
        elif self._image is not None:
            self._fitted, self._zoom = False, self.zoom
            size, scale = self._image.size(), self._scale()
            step = QPointF(x * self.width(), y * self.height()) * (PAN[far] / scale)
            self._move_center(QPointF(self._center.x() * size.width(), self._center.y() * size.height()) + step)
            self._notify()

    def _zoom_by(self, factor: float) -> None:
        self.set_zoom(self.zoom * factor)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.probed.emit(None)

    def _on_split(self, place: QPointF) -> bool:
        return self._image is not None and self._line.is_at(place, self._target())

    def _set_cursor(self, place: QPointF) -> None:
        if self._on_split(place):
            self.setCursor(self._line.cursor)
        else:
            self.setCursor(Qt.CursorShape.CrossCursor if self._image is not None else Qt.CursorShape.ArrowCursor)

    # --- painting ----------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color("sunken"))
        if self._image is None:
            painter.setPen(theme.color("muted"))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect().adjusted(16, 16, -16, -16), flags, self._empty)
        else:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, self.zoom < 1)
            painter.setOpacity(DIMMED if self._dimmed else 1.0)
            painter.drawImage(self._target(), self._image)
            painter.setOpacity(1.0)
            for overlay in self._overlays:
                overlay.paint(painter, self.place_of)
            self._paint_line(painter)
        if self._note:
            paint_note(painter, self._note, self.rect().bottomLeft() + QPoint(8, -8))
        if self.hasFocus():
            painter.setPen(QPen(theme.color("accent"), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def _paint_line(self, painter: QPainter) -> None:
        self._line.paint(painter, self._target(), QRectF(self.rect()))
