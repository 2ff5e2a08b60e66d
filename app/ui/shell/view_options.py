"""Display options: link style, values on nodes, minimap and theme. Stored per user and shared by all windows."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QObject, QSettings, Signal
from PySide6.QtWidgets import QApplication

from app.ui.canvas import link_paths, node_metrics
from app.ui.canvas.canvas import Canvas
from app.ui.widgets import theme

LINKS, FIGURE, MINIMAP, THEME = "canvas/links", "canvas/figure", "minimap", "theme"


class _DisplayNotifier(QObject):
    drawn = Signal()  # link style or values on nodes changed
    themed = Signal()


@lru_cache(maxsize=1)
def _notifier() -> _DisplayNotifier:
    return _DisplayNotifier()


class ViewOptions(QObject):
    """The display options of one window. `changed` is emitted after a change in any window."""

    changed = Signal()

    def __init__(self, settings: QSettings, canvas: Canvas, parent: QObject) -> None:
        super().__init__(parent)
        self._settings = settings
        self._canvas = canvas
        link_paths.set_style(str(settings.value(LINKS, link_paths.CURVED)))
        node_metrics.show(str(settings.value(FIGURE, node_metrics.SHAPES)))
        canvas.minimap.want(settings.value(MINIMAP, True, type=bool) is not False)
        _notifier().drawn.connect(self._redraw)
        _notifier().themed.connect(self.changed)

    @property
    def links(self) -> str:
        return link_paths.style()

    def show_links(self, style: str) -> None:
        """Set the link style: curved or right angles."""
        link_paths.set_style(style)
        self._settings.setValue(LINKS, self.links)
        _notifier().drawn.emit()

    @property
    def figure(self) -> str:
        return node_metrics.shown()

    def show_figure(self, name: str) -> None:
        """Show shapes, parameters, FLOPs or memory under the nodes."""
        node_metrics.show(name)
        self._settings.setValue(FIGURE, self.figure)
        _notifier().drawn.emit()

    @property
    def minimap(self) -> bool:
        return self._canvas.minimap.wanted

    def toggle_minimap(self) -> None:
        self._canvas.minimap.want(not self.minimap)
        self._settings.setValue(MINIMAP, self.minimap)
        self.changed.emit()

    @property
    def theme_mode(self) -> str:
        return str(self._settings.value(THEME, "system"))

    def set_theme(self, mode: theme.Mode) -> None:
        app = QApplication.instance()
        if isinstance(app, QApplication):
            theme.apply(app, mode)
            self._settings.setValue(THEME, mode)
            _notifier().themed.emit()

    def _redraw(self) -> None:
        projection = self._canvas.projection
        if projection.document is not None:
            projection.refresh(list(projection.layers))
            projection.redraw_links()
        self.changed.emit()
