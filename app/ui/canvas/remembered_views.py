"""The last view of each file and template, restored when the user goes back."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from app.ui.canvas.viewer import LayerViewer
from app.ui.document.document import Document
from app.ui.document.open_document import ViewPlace
from app.ui.document.template_view import ScopeStep

Scope = tuple[ScopeStep, ...]


class RememberedViews:
    """Remembers the place in view by file and scope while the file is open."""

    def __init__(self, viewer: LayerViewer) -> None:
        self._viewer = viewer
        self._kept: WeakKeyDictionary[Document, dict[Scope, ViewPlace]] = WeakKeyDictionary()
        self._present: tuple[Document, Scope] | None = None

    def leave(self, root: Document, scope: Scope) -> None:
        """Store the view of the previous scope; `root` and `scope` are shown from now on."""
        if self._present is not None:
            file, old = self._present
            self._kept.setdefault(file, {})[old] = self._viewer.place()
        self._present = (root, scope)

    def restore(self) -> bool:
        """Restore the view of the current scope. Returns False if there is none."""
        if self._present is None:
            return False
        file, scope = self._present
        place = self._kept.get(file, {}).get(scope)
        if place is None:
            return False
        self._viewer.restore(place)
        return True
