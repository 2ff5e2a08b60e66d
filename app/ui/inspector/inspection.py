"""What the Channel Inspector shows now, for all of its parts."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QImage

from app.ui.inspector.channel_grid import ChannelGrid
from app.ui.inspector.matrix_view import MatrixView
from app.ui.inspector.pages import Form, TensorPage
from app.ui.inspector.subject import Subject
from app.ui.widgets.feature_view import FeatureView
from app.ui.widgets.image_view import ImageView


@dataclass(frozen=True)
class Views:
    """The widgets that draw a page: all channels, one channel alone, vectors and matrices."""

    grid: ChannelGrid
    channel: ImageView
    features: FeatureView
    matrix: MatrixView


@dataclass
class Inspection:
    """The tensor of `subject`, laid out as `page` (None: there is none yet)."""

    subject: Subject
    views: Views
    page: TensorPage | None = None
    item: int = 0  # of the batch
    channel: int | None = None  # the one that is shown alone

    def clear(self) -> None:
        """Nothing is shown until the subject brings another tensor."""
        self.page = self.channel = None
        self.item = 0

    @property
    def current_channel(self) -> int:
        """The channel that is shown alone, else the one selected in the grid."""
        return self.views.grid.current if self.channel is None else self.channel

    def picture(self) -> QImage:
        """What is shown, without scroll bars, at its full size."""
        views = self.views
        if self.page is None or self.page.form is Form.VALUES:
            return views.features.grab().toImage()
        if self.page.form is Form.MATRIX:
            return views.matrix.grab().toImage()
        if self.channel is not None and views.channel.image is not None:
            return views.channel.image
        return views.grid.sheet()
