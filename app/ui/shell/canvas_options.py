"""How canvases show links and figures: chosen in the View menu, remembered for the person, the same in all windows."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.ui.canvas import link_paths, node_figures

if TYPE_CHECKING:
    from app.ui.shell.window import MainWindow

LINKS, FIGURE = "canvas/links", "canvas/figure"


class _Changes(QObject):
    changed = Signal()


@lru_cache(maxsize=1)
def _changes() -> _Changes:
    return _Changes()


class CanvasLooks(QObject):
    """The choices of one window's menu."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        link_paths.set_style(str(window.settings.value(LINKS, link_paths.CURVED)))
        node_figures.show(str(window.settings.value(FIGURE, node_figures.SHAPES)))
        for action in self._choices():
            window.actions_[action].setCheckable(True)
        self._mark()
        _changes().changed.connect(self._redraw)

    def show_links(self, style: str) -> None:
        """Draw links curved or at right angles."""
        link_paths.set_style(style)
        self._window.settings.setValue(LINKS, link_paths.style())
        _changes().changed.emit()

    def show_figure(self, name: str) -> None:
        """Write shapes, parameters, work or memory under the nodes."""
        node_figures.show(name)
        self._window.settings.setValue(FIGURE, node_figures.shown())
        _changes().changed.emit()

    def _choices(self) -> dict[str, bool]:
        """The actions, and whether each is the present choice."""
        links = {f"view.links_{name}": name == link_paths.style() for name in link_paths.STYLES}
        return links | {f"view.figure_{name}": name == node_figures.shown() for name in node_figures.FIGURES}

    def _mark(self) -> None:
        for action, chosen in self._choices().items():
            self._window.actions_[action].setChecked(chosen)

    def _redraw(self) -> None:
        self._mark()
        projection = self._window.canvas.projection
        if projection.document is not None:
            projection.refresh(list(projection.layers))
            projection.redraw_links()
